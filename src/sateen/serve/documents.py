"""What the user edits, as the page holds it: a model, a property, ranges; and the question that it makes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Meta, ValidationError, convert

import sateen as st
from sateen.core.errors import FormulaError, InputError, ModelError, ModelWarning, SpaceError, nearest
from sateen.core.prediction import Learner
from sateen.learning.registry import make_learner
from sateen.model.readers import MAX_CHARACTERS, READERS
from sateen.sampling.source import relevant
from sateen.serve.files import Folder
from sateen.study.function import find_function, load_function

Language: TypeAlias = Literal["sateen", "antimony", "sbml", "prism", "black-box"]
Source: TypeAlias = "st.Model | Callable[..., Any]"
_Body = TypeVar("_Body")
SUFFIXES: Final[Mapping[str, str]] = {"sateen": ".sateen", "antimony": ".ant", "sbml": ".xml", "prism": ".prism"}
BLACK_BOX: Final = "black-box"
_DECADE: Final = 10.0**0.5  # to each side of a value
LEARNER: Final = "svi-gp"
CAPS: Final = ("max_events", "max_time", "max_population")
_INDUCING: Final = {1: 100, 2: 100}  # by the number of parameters; the same throughout a campaign
_INDUCING_BEYOND: Final = 200
_MOST_PARAMETERS: Final = 20
_Text: TypeAlias = Annotated[str, Meta(max_length=4 * MAX_CHARACTERS)]
_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class RangeDocument:
    """One range, as the page holds it."""

    name: _Name
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class CapsDocument:
    """Where runs are stopped as undecided, as the page holds it; None where nothing is said."""

    max_events: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    max_time: Annotated[float, Meta(gt=0)] | None = None
    max_population: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """What the user edits, and what a study adds: its `name`, its `caps`, the `settings` of its learner, the `end` to
    which its property is read, and of its model `scale`, `split` and the names of its `constants`."""

    language: Language = "sateen"
    text: _Text | None = None
    source: Annotated[str, Meta(max_length=1000)] | None = None
    formula: Annotated[str, Meta(max_length=100_000)] = ""
    negate: bool = False
    ranges: Annotated[tuple[RangeDocument, ...], Meta(max_length=_MOST_PARAMETERS)] = ()
    fixed: dict[str, float] = field(default_factory=dict)
    learner: Annotated[str, Meta(max_length=200)] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    caps: CapsDocument = CapsDocument()
    scale: float | Annotated[str, Meta(max_length=100)] | None = None
    split: bool = True
    constants: Annotated[tuple[_Name, ...], Meta(max_length=1000)] = ()
    end: Annotated[float, Meta(ge=0)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    name: Annotated[str, Meta(max_length=1000)] | None = None

    @property
    def black_box(self) -> bool:
        """Whether a Python function stands in the place of the model."""
        return self.language == BLACK_BOX

    @property
    def title(self) -> str:
        """What its sessions are called."""
        return self.name or FilePath((self.source or "session").partition(":")[0]).stem


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a document asks: the model, the formula, the space and the learner."""

    document: Document
    model: Source
    formula: st.Formula | None
    space: st.Space
    learner: Learner
    settings: Mapping[str, object]

    @property
    def caps(self) -> dict[str, Any]:
        """Where runs are stopped as undecided, as `observe` takes it."""
        caps = self.document.caps
        return {name: value for name in CAPS if (value := getattr(caps, name)) is not None}

    def values(self, theta: Mapping[str, float]) -> dict[str, float]:
        """All parameters of one point, checked."""
        return self.space.points(dict(theta))[0]


def read_body(kind: type[_Body], body: object) -> _Body:
    """The body of a request as the kind says that it must be; an InputError that names the key if it is not."""
    if not isinstance(body, dict):
        raise InputError("the body of a request is a JSON object", remedy="reload the page")
    if strangers := [key for key in body if key not in kind.__annotations__]:
        raise InputError(f"there is no key {strangers[0][:100]!r} in this request", remedy="reload the page")
    try:
        read = convert(body, kind)
    except ValidationError as error:
        raise InputError(f"the request cannot be used: {error}", remedy="reload the page") from None
    return read


def model_of(document: Document, folder: Folder) -> tuple[Source, tuple[str, ...]]:
    """The model of a document, and what is doubtful in it; a black box only if the command line named it."""
    if document.black_box:
        address = folder.black_box(document.source)
        return load_function(find_function(address, folder.root)), ()
    text = document.text
    if text is None:
        if document.source is None:
            raise ModelError("there is no model", remedy="type one, open a file, or pick an example")
        text = folder.text(document.source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _read(document, text)
    return model, tuple(str(each.message) for each in caught if issubclass(each.category, ModelWarning))


def _read(document: Document, text: str) -> st.Model:
    reader = READERS[SUFFIXES[document.language]]
    if not text.strip():
        raise ModelError("the model is empty", remedy="type one, open a file, or pick an example")
    if reader.takes_scale:
        return reader.read(text, scale=document.scale, split=document.split)
    if reader.takes_constants:
        return reader.read(text, constants=constants_of(document, text))
    return reader.read(text)


def constants_of(document: Document, text: str) -> dict[str, float]:
    """Of a model in the PRISM language: the values, from what is fixed, of those open constants that cannot stay open,
    such as bounds, and of those to which a study gives a value; others are parameters."""
    from sateen.model.prism_text import parse_program

    declared = [each.name for each in parse_program(text).constants if each.value is None]
    varying = {each.name for each in document.ranges}
    fixed = {name: value for name, value in document.fixed.items() if name in declared and name not in varying}
    needed = {*document.constants, *_not_open(text, tuple(fixed.items()))}
    return {name: value for name, value in fixed.items() if name in needed}


@lru_cache(maxsize=8)
def _not_open(text: str, fixed: tuple[tuple[str, float], ...]) -> tuple[str, ...]:
    """The names without whose value the model cannot be read; all, if it cannot be read with all of them either."""
    read = READERS[SUFFIXES["prism"]].read

    def fails(without: str) -> bool:
        try:
            read(text, constants={name: value for name, value in fixed if name != without})
        except InputError:
            return True
        return False

    return tuple(name for name, _ in fixed if fails(name))


def space_of(document: Document, model: Source) -> st.Space:
    """The space of a document, whose names the model has, and which leaves no parameter without a value."""
    if not document.ranges:
        raise SpaceError("no parameter varies", remedy="give at least one parameter a range")
    given: dict[str, st.Range | float] = {}
    known = [each.name for each in model.parameters] if isinstance(model, st.Model) else None
    for each in document.ranges:
        if each.name in given:
            raise SpaceError(f"{each.name} has two ranges", remedy="keep one of them")
        try:
            given[each.name] = st.Range(each.low, each.high, "log" if each.log else "linear")
        except SpaceError as error:
            raise SpaceError(f"{each.name}: {error.message}", remedy=error.remedy) from None
    fixed = {name: value for name, value in document.fixed.items() if name not in given}
    if known is not None:
        fixed = {name: value for name, value in fixed.items() if name in known}
        for name in given:
            if name not in known:
                hint = nearest(name, known) or f"its parameters are {', '.join(known) or 'none'}"
                raise SpaceError(f"the model has no parameter {name}", remedy=hint)
    space = st.Space({**given, **fixed})
    if isinstance(model, st.Model):
        model.values(lowest(space))
    return space


def lowest(space: st.Space) -> dict[str, float]:
    """A point of the space."""
    return {name: each.low if isinstance(each, st.Range) else each for name, each in space.parameters}


def formula_of(document: Document, model: Source | None, space: st.Space | None) -> st.Formula | None:
    """The formula of a document; None for a black box that decides by itself. It may read the model's constants."""
    text = document.formula
    if not text.strip():
        if document.black_box:
            return None
        remedy = "such as F[0, 10] I == 0, which asks whether I is 0 at some time up to 10"
        raise FormulaError("there is no property", remedy=remedy)
    constants: dict[str, float] = {}
    if isinstance(model, st.Model):
        try:
            values = model.values({} if space is None else lowest(space))
            constants = {one.name: values[one.name] for one in model.constants if math.isfinite(values[one.name])}
        except InputError:  # a value is missing, of which the ranges tell
            constants = {}
    formula = st.stl(text, constants=constants, end=document.end)
    if isinstance(model, st.Model):
        for name in formula.species:
            if model.meaning(name) is None:
                raise FormulaError(
                    f"the model has no {name}",
                    text,
                    max(text.find(name), 0),
                    nearest(name, model.readable) or f"it has {', '.join(model.readable)}",
                )
    return ~formula if document.negate else formula


def question_of(document: Document, folder: Folder) -> Question:
    """All that a document asks, checked."""
    model, _ = model_of(document, folder)
    space = space_of(document, model)
    formula = formula_of(document, model, space)
    name = document.learner or LEARNER
    settings: dict[str, object] = {}
    if name in (LEARNER, "ep-gp"):
        settings = {"inducing": _INDUCING.get(len(space), _INDUCING_BEYOND)}
    settings |= document.settings
    return Question(document, model, formula, space, make_learner(folder.learner(name), settings), settings)


def check_model(document: Document, folder: Folder) -> dict[str, Any]:
    """Species, parameters with proposed ranges, and doubts."""
    model, doubts = model_of(document, folder)
    if not isinstance(model, st.Model):
        note = "a black box: its parameters are what your function reads from theta; give each a range"
        return {"ok": True, "species": [], "parameters": [], "warnings": list(doubts), "notes": [note], "reactions": 0}
    defaults = {each.name: each.default for each in model.parameters}
    try:
        values = model.values({name: 1.0 if value is None else value for name, value in defaults.items()})
        initial = {name: _finite(value) for name, value in model.initial(values).items()}
    except InputError:  # initial counts that depend on a parameter without a value
        initial = dict.fromkeys(model.species)
    notes = [f"the model assumes: {model.assumption}"] if model.assumption else []
    parameters = [{"name": name, "value": _finite(value), **_proposed(value)} for name, value in defaults.items()]
    return {
        "ok": True,
        "species": [{"name": name, "initial": value} for name, value in initial.items()],
        "parameters": parameters,
        "warnings": list(doubts),
        "notes": notes,
        "reactions": len(model.transitions),
    }


def _proposed(value: float | None) -> dict[str, object]:
    """A range of a decade around a value, on a log scale; for values below 0 a linear one, and for no value none."""
    if value is None:
        return {"low": None, "high": None, "log": True}
    if value > 0 and math.isfinite(value) and value / _DECADE > 0:
        return {"low": float(f"{value / _DECADE:.3g}"), "high": float(f"{value * _DECADE:.3g}"), "log": True}
    size = abs(value) if math.isfinite(value) else 1.0
    return {"low": float(f"{value - size:.3g}"), "high": float(f"{value + size:.3g}") or 1.0, "log": False}


def check_formula(document: Document, folder: Folder) -> dict[str, Any]:
    """The formula as it was read, its horizon, and the parameters that matter to it, as far as the model can be read.

    A mistake in the model is not repeated here: the formula is then checked by itself.
    """
    model: Source | None = None
    space: st.Space | None = None
    try:
        model, _ = model_of(document, folder)
        space = space_of(document, model)
    except InputError:
        pass
    formula = formula_of(document, model, space)
    if formula is None:
        return {"ok": True, "text": "", "horizon": None, "end": None, "parameters": [], "warnings": []}
    plain = formula_of(replace(document, negate=False), model, space)
    matter = list(relevant(model, plain)) if isinstance(model, st.Model) and plain is not None else []
    warnings = []
    if not math.isfinite(formula.horizon):
        warnings.append("the property has no horizon: a run may have to go on until nothing happens any more")
    return {
        "ok": True,
        "text": str(formula),
        "horizon": _finite(formula.horizon),
        "end": formula.end,
        "parameters": matter,
        "warnings": warnings,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
