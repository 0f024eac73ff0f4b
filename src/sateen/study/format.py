"""A study file as it is written: its tables and keys, each of its type; a mistake is shown at its line.

This is about form alone. What the tables mean, that a formula is one and that a model has the parameters of the space,
is for `reading.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert

from sateen.core.errors import TextError, nearest
from sateen.study.locate import KeyPath, positions

__all__ = ["CalibrateTable", "DesignTable", "GuaranteeTable", "ModelTable", "Page", "StudyTable"]

_Whole = Annotated[int, Meta(ge=1, le=10**12)]
_Share = Annotated[float, Meta(gt=0, lt=1)]
_Table = TypeVar("_Table", bound=Struct)
_SECTIONS: Final = ("study", "model", "space", "property", "observe", "learn", "guarantee")
_NAMED: Final = {"int": "a whole number", "float": "a number", "str": "text in quotes", "bool": "true or false"}
_NAMED_TOO: Final = {"object": "a table, { ... }", "array": "a list, [ ... ]", "null": "nothing"}

_LIMITS: Final = {">=": "not below", ">": "above", "<=": "not above", "<": "below"}


class StudyTable(Struct, forbid_unknown_fields=True, frozen=True):
    """[study]: what it is called, and the one seed from which those of all stages come."""

    name: str
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]


class ModelTable(Struct, forbid_unknown_fields=True, frozen=True):
    """[model]: its text, or its file, or a Python callable in its place."""

    text: str | None = None
    file: str | None = None
    callable: str | None = None
    constants: dict[str, bool | int | float | str] | None = None


class DesignTable(Struct, forbid_unknown_fields=True, frozen=True):
    """`train` and `test` in [observe]: how many points, how they are spread, and how many runs at each."""

    points: _Whole
    runs: _Whole
    design: Literal["sobol", "uniform", "latin", "grid"] | None = None


class CalibrateTable(Struct, forbid_unknown_fields=True, frozen=True):
    """`calibrate` in [observe]: what a plan may spend or shall reach, or how many points and runs without a plan."""

    budget: _Whole | None = None
    width: _Share | None = None
    points: _Whole | None = None
    runs: _Whole | None = None


class CapsTable(Struct, forbid_unknown_fields=True, frozen=True):
    """What else is in [observe]: where runs are stopped as undecided."""

    train: Any = None
    test: Any = None
    calibrate: Any = None
    max_events: _Whole | None = None
    max_time: Annotated[float, Meta(gt=0)] | None = None
    max_population: Annotated[int, Meta(ge=0)] | None = None


class GuaranteeTable(Struct, forbid_unknown_fields=True, frozen=True):
    """[guarantee]: what intervals shall promise, and of which method's posterior."""

    method: Literal["lift", "icp", "nicp", "chernoff"] = "lift"
    level: _Share = 0.9
    confidence: _Share | None = None
    marginal: bool = False
    of: str | None = None
    rank: _Whole | None = None
    normaliser: Literal["predictive", "posterior", "quantile", "constant"] | None = None
    split: _Share | None = None
    allow_trivial: bool = False


class Page:
    """The text of a study file, its tables, and where everything stands in it; `file` is how messages call it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text.replace("\r\n", "\n").removeprefix("\ufeff")
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            said, place = _syntax(str(error), self.text)
            remedy = "a study is a file in TOML: [tables] of lines key = value, text in quotes"
            raise TextError(f"{file}: {said}", self.text, place, remedy) from None
        except RecursionError:
            raise TextError(f"{file}: lists or tables are nested too deeply") from None
        self._places = positions(self.text)
        for name in self.content:
            if name not in _SECTIONS:
                known = ", ".join(f"[{each}]" for each in _SECTIONS)
                self.fail((name,), "there is no such table", nearest(name, _SECTIONS) or f"the tables are {known}")

    def has(self, *path: str) -> bool:
        """Whether there is something at the path."""
        place: Any = self.content
        for name in path:
            if not isinstance(place, dict) or name not in place:
                return False
            place = place[name]
        return True

    def section(self, name: str) -> Mapping[str, Any]:
        """A table at the top, with its keys as they are; an error if it is not there."""
        if name not in self.content:
            self.fail((), f"the table [{name}] is missing", f"add it: see {_EXAMPLES[name]}")
        return self._table((name,), self.content[name])

    def read(self, kind: type[_Table], *path: str) -> _Table:
        """The table at a path, as the kind says that it must be."""
        value: Any = self.content
        for name in path:
            value = value.get(name, {})
        table = self._table(path, value)
        known = kind.__struct_fields__
        if strangers := [key for key in table if key not in known]:
            hint = nearest(strangers[0], known) or f"the keys here are {', '.join(known)}"
            self.fail((*path, strangers[0]), "there is no such key", hint)
        try:
            return convert(dict(table), kind)
        except ValidationError as error:
            self._invalid(kind, path, table, str(error))

    def fail(self, path: KeyPath, message: str, remedy: str = "") -> NoReturn:
        """Raise the error that shows the line of the path."""
        place = next((self._places[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._places), None)
        where = f"{self.file}: {_dotted(path)}: " if path else f"{self.file}: "
        raise TextError(where + message, "" if place is None else self.text, place or 0, remedy)

    def fail_inside(self, path: KeyPath, error: TextError, value: str) -> NoReturn:
        """Raise an error in the text that stands at the path, shown at its own line in the study file."""
        if not error.text:
            self.fail(path, error.message, error.remedy)
        key = self._places[path]
        start = self.text.find(value, key)
        if start < 0 or error.text != value:  # a string with escapes, which stands in the file in other characters
            line = self.text.count("\n", 0, key) + 1
            message = f"{self.file}, line {line}: {_dotted(path)}: {error.message}"
            raise type(error)(message, error.text, error.position, error.remedy) from None
        message = f"{self.file}: {_dotted(path)}: {error.message}"
        raise type(error)(message, self.text, start + error.position, error.remedy) from None

    def _table(self, path: KeyPath, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.fail(path, f"a table is needed here, not {_shown(value)}", f"see {_EXAMPLES[str(path[0])]}")
        return value

    def _invalid(self, kind: type[Struct], path: tuple[str, ...], table: Mapping[str, Any], said: str) -> NoReturn:
        """What msgspec found, in words."""
        if missing := re.match(r"Object missing required field `(\w+)`", said):
            self.fail(path, f"{missing[1]} is missing", f"see {_EXAMPLES[path[0]]}")
        where = re.search(r"`\$\.(\w+)", said)
        key = where[1] if where else ""
        value = table.get(key)
        options = _options(get_type_hints(kind).get(key))
        if options and isinstance(value, str):
            hint = nearest(value, options) or f"there are {', '.join(options)}"
            self.fail((*path, key), f"{value!r} is not known here", hint)
        self.fail((*path, key), f"{_wanted(said)}, not {_shown(value)}")


_EXAMPLES: Final = {
    "study": '[study] with name = "sir" and seed = 1',
    "model": '[model] with file = "sir.sateen"',
    "space": "[space] with beta = [0.005, 0.3]",
    "property": '[property] with dies_out = "(I > 0) U[100, 120] (I == 0)"',
    "observe": '[observe] with train = { design = "sobol", points = 400, runs = 50 }',
    "learn": '[learn] with methods = ["svi-gp"]',
    "guarantee": '[guarantee] with method = "lift", level = 0.9, confidence = 0.95',
}


def _dotted(path: KeyPath) -> str:
    return ".".join(name for name in path if isinstance(name, str))


def _shown(value: Any) -> str:
    kinds: dict[type, str] = {dict: "a table", list: "a list", bool: str(value).lower()}
    return kinds.get(type(value), repr(value))


def _options(hint: Any) -> tuple[str, ...]:
    """The words among which a key chooses, if it does."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((found for each in get_args(hint) if (found := _options(each))), ())


def _wanted(said: str) -> str:
    """What was expected, from the words of msgspec: "Expected `int` >= 1 - at `$.runs`"."""
    expected = re.match(r"Expected `([^`]*)`(?: ([<>=]+) ([\d.e+-]+))?", said)
    if expected is None:
        return said
    kinds = [kind for part in expected[1].split(" | ") if (kind := part.split("[")[0]) != "null"]
    words = " or ".join({**_NAMED, **_NAMED_TOO}.get(kind, kind) for kind in kinds)
    limit = f" {_LIMITS[expected[2]]} {float(expected[3]):.15g}" if expected[2] else ""
    return f"{words}{limit} is needed"


def _syntax(said: str, text: str) -> tuple[str, int]:
    """The words of tomllib and the position that they tell."""
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", said)
    words = re.sub(r" \(at .*\)$", "", said)
    if place is None or place[1] is None:
        return words, len(text)
    start = sum(len(line) + 1 for line in text.split("\n")[: int(place[1]) - 1])
    return words, start + int(place[2]) - 1
