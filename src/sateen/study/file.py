"""The text of a study file: its tables, typed, and the place of every key, so that a mistake is shown in its line.

This is about form alone. What the tables mean, that a formula is one and that a model has the parameters of the space,
is for `reading.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NoReturn, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, ValidationError, convert

from sateen.core.errors import InputError, TextError, nearest

KeyPath: TypeAlias = "tuple[str | int, ...]"  # ("observe", "train", "points"); numbers count the entries of lists
_Table = TypeVar("_Table")
_SECTIONS: Final = ("study", "model", "space", "property", "observe", "learn", "guarantee", "decide", "run")
_NAMED: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "object": "a table, { ... }",
    "array": "a list, [ ... ]",
}
_TOML_NAMES: Final = {"plan": "a plan", "formula": "table [property]", "constants": "a constant of the model"}
_TOML_NONE: Final = {"confidence": "marginal = true", "formula": "no table [property]"}
_LIMITS: Final = {">=": "not below", ">": "above", "<=": "not above", "<": "below"}

_GAP: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SEPARATOR: Final = re.compile(rf"{_GAP.pattern},?{_GAP.pattern}")  # between the parts of a list or table
_SPACES: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# Of a string in three quotes, the first three that are not escaped end it; one or two more belong to it.
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:\\.|[^"\\])*"' + r"|'[^']*'", re.DOTALL
)
_MOST_PARTS: Final = 32  # of a dotted key
_WORD: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-]){_WORD}(?:[ \t]*+\.[ \t]*+{_WORD}){{{_MOST_PARTS}}}")
_LONG_NUMBER: Final = re.compile(r"(?<!\w)\d(?:_?\d){4300,}")
_TOO_LARGE: Final = "a whole number has at most 64 bits, so it is below 2^63, about 9.2e18"
_MOST_SHOWN: Final = 1000  # characters of a message
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")


@dataclass(frozen=True, slots=True)
class StudyTable:
    """[study]: what it is called, and the one seed from which those of all stages come."""

    name: str
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class ModelTable:
    """[model]: its text, or its file, or a Python callable in its place."""

    text: str | None = None
    file: str | None = None
    callable: str | None = None
    constants: dict[str, bool | int | float | str] | None = None
    scale: float | str | None = None
    split: bool = True


@dataclass(frozen=True, slots=True)
class CapsTable:
    """What else is in [observe]: where runs are stopped as undecided."""

    train: object = None
    test: object = None
    calibrate: object = None
    max_events: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    max_time: Annotated[float, Meta(gt=0)] | None = None
    max_population: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None


@dataclass(frozen=True, slots=True)
class GuaranteeTable:
    """[guarantee]: what intervals must cover, and `of` which learner; `CalibrateRequest` checks the values."""

    method: str = "lift"
    level: float | None = None
    confidence: float | None = None
    marginal: bool = False
    of: str | None = None
    rank: int | None = None
    normaliser: str | None = None
    split: float | None = None
    allow_trivial: bool = False


@dataclass(frozen=True, slots=True)
class RunTable:
    """[run]: where the work is done, which decides nothing of the result."""

    on: str | None = None


class StudyFile:
    """The text of a study file, its tables, and where everything stands in it; `file` is how messages call it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text.replace("\r\n", "\n").removeprefix("\ufeff")
        self.file = file
        if long := _LONG_KEY.search(self.text):  # tomllib takes cubic time for it
            raise TextError(f"{file}: a key has more than {_MOST_PARTS} parts", self.text, long.start())
        try:
            self.content: dict[str, object] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            message, place = _syntax(str(error), self.text)
            remedy = "a study is a file in TOML: [tables] of lines key = value, text in quotes"
            raise TextError(f"{file}: {shortened(message)}", self.text, place, remedy) from None
        except ValueError:  # Python reads no whole number of more than 4,300 digits
            number = _LONG_NUMBER.search(self.text)
            raise TextError(f"{file}: {_TOO_LARGE}", self.text, number.start() if number else 0) from None
        except RecursionError:
            raise TextError(f"{file}: lists or tables are nested too deeply") from None
        self._places = positions(self.text)
        self._check_numbers()
        for name in self.content:
            if name not in _SECTIONS:
                known = ", ".join(f"[{each}]" for each in _SECTIONS)
                self.fail((name,), "there is no such table", nearest(name, _SECTIONS) or f"the tables are {known}")

    def _check_numbers(self) -> None:
        """Refuse whole numbers that do not have the 64 bits of TOML."""
        waiting: list[tuple[KeyPath, object]] = [((), self.content)]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, dict):
                waiting += [((*path, name), each) for name, each in reversed(value.items())]
            elif isinstance(value, list):
                waiting += [((*path, place), each) for place, each in enumerate(value)]
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                self.fail(path, _TOO_LARGE)

    def has(self, *path: str) -> bool:
        """Whether there is something at the path."""
        place: object = self.content
        for name in path:
            if not isinstance(place, dict) or name not in place:
                return False
            place = place[name]
        return True

    def section(self, name: str) -> Mapping[str, object]:
        """A table at the top, with its keys as they are; an error if it is not there."""
        if name not in self.content:
            self.fail((), f"the table [{name}] is missing", f"add it: see {EXAMPLES[name]}")
        return self._table((name,), self.content[name])

    def read(self, kind: type[_Table], *path: str) -> _Table:
        """The table at a path, as the kind says that it must be; empty if it is not there."""
        table: Mapping[str, object] = self.content
        for n, name in enumerate(path, start=1):
            table = self._table(path[:n], table.get(name, {}))
        self.check_keys(path, table, tuple(kind.__annotations__))
        try:
            return convert(dict(table), kind)
        except ValidationError as error:
            self._invalid(kind, path, table, str(error))

    def check_keys(self, path: KeyPath, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        """Refuse a key that is not known."""
        if strangers := [key for key in table if key not in known]:
            hint = nearest(strangers[0], known) or f"the keys here are {', '.join(known)}"
            self.fail((*path, strangers[0]), "there is no such key", hint)

    def fail(self, path: KeyPath, message: str, remedy: str = "") -> NoReturn:
        """Raise the error that shows the line of the path."""
        place = next((self._places[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._places), None)
        where = f"{self.file}: {_dotted(path)}: " if path else f"{self.file}: "
        raise TextError(where + shortened(message), "" if place is None else self.text, place or 0, shortened(remedy))

    def fail_inside(self, path: KeyPath, error: TextError, value: str) -> NoReturn:
        """Raise an error in the text that stands at the path, shown at its line in the study file."""
        remedy = TextError("", remedy=error.remedy).worded(toml_words).strip()
        if not error.text:
            self.fail(path, error.message, remedy)
        key = self._places[path]
        start = self.text.find(value, key)
        if start < 0 or error.text != value:  # a string with escapes, which stands in the file in other characters
            line = self.text.count("\n", 0, key) + 1
            message = f"{self.file}, line {line}: {_dotted(path)}: {shortened(error.message)}"
            raise type(error)(message, error.text, error.position, remedy) from None
        message = f"{self.file}: {_dotted(path)}: {shortened(error.message)}"
        raise type(error)(message, self.text, start + error.position, remedy) from None

    def fail_with(self, path: KeyPath, error: InputError) -> NoReturn:
        """Raise an error that names arguments, in the words of a study file, at the line of the path."""
        texts = (error.message, error.remedy)
        self.fail(path, *(InputError(text, argument=error.argument).worded(toml_words) for text in texts))

    def _table(self, path: KeyPath, value: object) -> Mapping[str, object]:
        if not isinstance(value, dict):
            self.fail(path, f"a table is needed here, not {_shown(value)}", f"see {EXAMPLES[str(path[0])]}")
        return value

    def _invalid(self, kind: type[object], path: tuple[str, ...], table: Mapping[str, object], text: str) -> NoReturn:
        """What msgspec complains of, in words."""
        if missing := re.match(r"Object missing required field `(\w+)`", text):
            self.fail(path, f"{missing[1]} is missing", f"see {EXAMPLES[path[0]]}")
        where = re.search(r"`\$\.(\w+)", text)
        key = where[1] if where else ""
        value = table.get(key)
        options = _options(get_type_hints(kind).get(key))
        if options and isinstance(value, str):
            hint = nearest(value, options) or f"there are {', '.join(options)}"
            self.fail((*path, key), f"{value!r} is not known here", hint)
        self.fail((*path, key), f"{_wanted(text)}, not {_shown(value)}")


EXAMPLES: Final = {
    "study": '[study] with name = "sir" and seed = 1',
    "model": '[model] with file = "sir.sateen"',
    "space": "[space] with beta = [0.005, 0.3]",
    "property": '[property] with dies_out = "(I > 0) U[100, 120] (I == 0)"',
    "observe": '[observe] with train = { design = "sobol", points = 400, runs = 50 }',
    "learn": '[learn] with learners = ["svi-gp"]',
    "guarantee": '[guarantee] with method = "lift", level = 0.9, confidence = 0.95',
    "run": '[run] with on = "local:4"',
    "decide": "[decide] with above = 0.1, undecided = 0.03 and budget = 100000",
}


def toml_words(argument: str, value: str | None) -> str:
    """An argument, with its value if there is one, as a study file writes it.

    >>> toml_words("allow_trivial", "True"), toml_words("method", "'lift'"), toml_words("rank", None)
    ('allow_trivial = true', 'method = "lift"', 'rank')
    """
    if value == "None" and argument in _TOML_NONE:
        return _TOML_NONE[argument]
    if argument == "theta" and value:  # {"beta": ...} is a line of [space]
        return re.sub(r'[{}"]', "", value).replace(":", " =")
    if value is None or argument in _TOML_NAMES:
        return _TOML_NAMES.get(argument, argument)
    return f"{argument} = {value.lower() if value in ('True', 'False') else value}".replace("'", '"')


def shortened(text: str) -> str:
    """The text, or its beginning and its end if it is long."""
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN // 2]} … {text[-_MOST_SHOWN // 4 :]}"


def _dotted(path: KeyPath) -> str:
    return ".".join(shortened(name) for name in path if isinstance(name, str))


def _shown(value: object) -> str:
    kinds: dict[type, str] = {dict: "a table", list: "a list", bool: str(value).lower()}
    return kinds.get(type(value), repr(value))


def _options(hint: object) -> tuple[str, ...]:
    """The words among which a key chooses, if it does."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((options for each in get_args(hint) if (options := _options(each))), ())


def _wanted(text: str) -> str:
    """What was expected, from the words of msgspec: "Expected `int` >= 1 - at `$.runs`"."""
    expected = re.match(r"Expected `([^`]*)`(?: ([<>=]+) ([\d.e+-]+))?", text)
    if expected is None:
        return text
    kinds = [kind for part in expected[1].split(" | ") if (kind := part.split("[")[0]) != "null"]
    words = " or ".join(_NAMED.get(kind, kind) for kind in kinds)
    limit = f" {_LIMITS[expected[2]]} {float(expected[3]):.15g}" if expected[2] else ""
    return f"{words}{limit} is needed"


def _syntax(message: str, text: str) -> tuple[str, int]:
    """The words of tomllib, and the position in them."""
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    words = re.sub(r" \(at .*\)$", "", message)
    if place is None or place[1] is None:
        return words, len(text)
    start = sum(len(line) + 1 for line in text.split("\n")[: int(place[1]) - 1])
    return words, start + int(place[2]) - 1


def positions(text: str) -> Mapping[KeyPath, int]:
    """The place of every key of a TOML text that `tomllib` reads, by its path, counted in characters from the start.

    >>> where = positions("[observe]\\ntrain = { points = 400, runs = 50 }")
    >>> where["observe",], where["observe", "train", "runs"]
    (1, 34)
    """
    return _KeyScanner(text).document()


class _KeyScanner:
    """Reads a text from key to key, and writes down their places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.places: dict[KeyPath, int] = {}
        self.tables: dict[KeyPath, int] = {}  # how many entries each list of tables has so far

    def document(self) -> dict[KeyPath, int]:
        """Every line: a header, or a key and its value."""
        table: KeyPath = ()
        while self._skip(_GAP) < len(self.text):
            if self.text[self.place] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.places

    def _header(self) -> KeyPath:
        """`[a.b]`, or `[[a.b]]`, which begins the next entry of a list."""
        many = self.text.startswith("[[", self.place)
        self.place += 1 + many
        path: KeyPath = ()
        keys = self._key()
        for number, (name, place) in enumerate(keys):
            path = (*path, name)
            self.places.setdefault(path, place)
            if many and number == len(keys) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
                self.places.setdefault(path, place)
        self.place += 1 + many
        return path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for name, place in self._key():
            path = (*path, name)
            self.places.setdefault(path, place)
        self.place += 1  # the sign =
        self._skip(_SPACES)
        self._value(path)

    def _key(self) -> list[tuple[str, int]]:
        """The parts of a dotted key, each with its place; the spaces behind are passed over too."""
        parts = []
        while True:
            start = self._skip(_SPACES)
            if self.text[start] in "\"'":
                self._skip(_STRING)
                name = str(tomllib.loads(f"key = {self.text[start : self.place]}")["key"])
            else:
                name = self.text[start : self._skip(_BARE_KEY)]
            parts.append((name, start))
            if self.text[self._skip(_SPACES)] != ".":
                return parts
            self.place += 1

    def _value(self, path: KeyPath) -> None:
        first = self.text[self.place]
        if first not in "[{":
            self._skip(_STRING if first in "\"'" else _SCALAR)
            return
        self.place += 1
        number = 0
        while self.text[self._skip(_SEPARATOR)] not in "]}":
            if first == "{":
                self._pair(path)
            else:
                self.places[*path, number] = self.place
                self._value((*path, number))
                number += 1
        self.place += 1

    def _skip(self, what: re.Pattern[str]) -> int:
        """Go to where the match ends that begins here, if there is one; the place after it."""
        match = what.match(self.text, self.place)
        self.place = match.end() if match else self.place
        return self.place
