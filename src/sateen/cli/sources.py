"""What commands read: a model, a property, observations, a posterior or a guarantee, as a command line names them.

A property is a formula, `F[0, 10] X > 5`; or a question in the PRISM language, `P=? [ F<=10 "full" ]`; or one of a file
of such questions, `queue.props:full` by its name or `queue.props:2` by its place. It names a file where it, or what
stands before its last colon, ends in .props, .csl or .pctl.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import sateen as st
from sateen.cli.options import given_scale
from sateen.cli.output import say, warn
from sateen.core.errors import (
    FormulaError,
    InputError,
    Interrupted,
    ModelError,
    ModelWarning,
    SateenError,
    SateenWarning,
    nearest,
)
from sateen.core.reading import opened, read_text

if TYPE_CHECKING:
    from sateen.core.posterior import FullPosterior
    from sateen.language.prism_types import Scope
    from sateen.logic.properties import Properties, Property

PROPERTY_SUFFIXES: Final = (".props", ".csl", ".pctl")
_MOST_BYTES: Final = 1_000_000  # of a file of properties
_QUESTION: Final = re.compile(
    r"\s*(?:filter\s*\(|(?:[A-Z]\w*\s*(?:\{[^}]*\})?\s*=\s*\?|[PR]\s*(?:\{[^}]*\})?\s*[<>]=?[^\[\]]*)\s*\[)"
)  # no formula begins so

_Error = TypeVar("_Error", FormulaError, ModelError)


@dataclass(frozen=True, slots=True)
class Source:
    """A model that was read from a file, what its properties may speak of, and the constants given for them alone."""

    file: str
    model: st.Model
    scope: Scope
    constants: Mapping[str, float]


def load_model(file: str, constants: Mapping[str, float] = MappingProxyType({})) -> Source:
    """The model in a file, with its warnings on stderr. Constants that it does not declare are kept for properties."""
    from sateen.model.prism import load_prism

    with quiet_warnings():
        if not _is_prism(file):
            model = st.Model.load(file, scale=given_scale())
            source = Source(file, model, _scope(model), constants)
        else:
            _refuse_scale(file)
            declared = _declared(file)
            given = {name: value for name, value in constants.items() if name in declared}
            try:
                read = load_prism(Path(file), given)
            except ModelError as error:
                raise _with_open(error, _open(declared)) from None
            rest = {name: value for name, value in constants.items() if name not in declared}
            source = Source(file, read.model, read.scope, rest)
    for doubt in source.model.warnings:
        warn(doubt)
    return source


def load_study(file: str, folder: str | None = None) -> st.Study:
    """The study in a file, with the warnings about its model on stderr, unless its result is of this very model."""
    _refuse_scale(file)
    with quiet_warnings():
        study = st.Study.load(file)
    doubts = getattr(study.model, "warnings", ())
    if doubts and not _has_result(study, study.folder if folder is None else Path(folder)):
        for doubt in doubts:
            warn(doubt)
    return study


def _has_result(study: st.Study, folder: Path) -> bool:
    """Whether a result of the study's model is in the folder."""
    try:
        content = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return bool(content["question"]["model"] == str(study.model))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _refuse_scale(file: str) -> None:
    if given_scale() is not None:
        raise click.UsageError(f"--scale is for models in SBML or Antimony, and {file} is neither")


@contextmanager
def quiet_warnings(kind: type[SateenWarning] = ModelWarning) -> Iterator[None]:
    """Python's warnings about a model are left out; the model keeps them, to be printed once it is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kind)
        yield


def load_posterior(file: str) -> FullPosterior:
    """The posterior in a file, to be calibrated; a guarantee has been calibrated already."""
    loaded = load_learned(file)
    if isinstance(loaded, st.Guarantee):
        raise InputError(f"{file} is a guarantee already; give the posterior that it was made from")
    return loaded


def load_learned(file: str) -> FullPosterior | st.Guarantee:
    """The posterior or the guarantee in a file."""
    _refuse_scale(file)
    with reading(file):
        loaded: FullPosterior | st.Guarantee | st.Observations = st.load(file)
    if isinstance(loaded, st.Observations | st.Truth):
        raise InputError(f"{file} holds observations; `sateen learn` learns from them")
    return loaded


def load_observations(file: str, space: Mapping[str, st.Range | float]) -> st.Observations:
    """The observations in a file that `save` or `to_csv` wrote, or in a table of another program with its space."""
    labels = load_labels(file, space)
    if isinstance(labels, st.Truth):
        raise InputError(f"{file} holds computed probabilities; learners learn from runs")
    return labels


def load_labels(file: str, space: Mapping[str, st.Range | float] = MappingProxyType({})) -> st.Observations | st.Truth:
    """The observations in a file, or the truth that `sateen calibrate --exact --observations` kept."""
    from sateen.model.readers import READERS

    _refuse_scale(file)
    suffix = Path(file).suffix.lower()
    if suffix in READERS.builtin and suffix != ".txt":  # which may be either
        raise click.UsageError(f"{file} is a model; say what to observe, with -p FORMULA and --vary beta=0.005:0.3")
    with reading(file):
        with opened(file, sys.maxsize) as stream:
            start = stream.read(9)
        if start[8:] != b"{" and not start.startswith(b"PK"):
            try:
                return st.Observations.from_csv(file, st.Space(space) if space else None)
            except InputError as error:
                if error.argument != "extrapolate":
                    raise
                raise InputError(error.message, remedy="move it inside or widen its range in --space") from None
        if space:
            raise click.UsageError(f"--space: {file} has its own space")
        loaded = st.load(file)
    if not isinstance(loaded, st.Observations | st.Truth):
        raise InputError(f"{file} is what was learned already; `sateen predict` and `sateen inspect` read it")
    return loaded


def kept(file: str | None, observe: Callable[[], st.Observations]) -> st.Observations:
    """What is observed, written to a file if one is given; after Ctrl-C, what was observed before it."""
    try:
        observed = observe()
    except Interrupted as stop:
        if file is not None and stop.partial is not None and stop.partial.trials.any():
            _write_observations(stop.partial, file)
            say(f"{file} has what was observed: {int(stop.partial.trials.sum()):,} runs")
        raise
    if file is not None:
        _write_observations(observed, file)
    return observed


def _write_observations(observations: st.Observations, file: str) -> None:
    """Write them as a table if the name ends in .csv, and else as `save` does."""
    try:
        (observations.to_csv if file.lower().endswith(".csv") else observations.save)(file)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None


def question_of(training: st.Observations, remedy: str) -> tuple[st.Model, st.Formula]:
    """The model and the formula that a training observed, if its observations have all of them."""
    text, asked, end = (training.provenance.get(key) for key in ("model", "formula", "end"))
    why = "its observations do not name the model"
    if isinstance(text, str):
        why = f"it was a {text}" if text.startswith("black box") else "its model cannot be read back from its text"
    if isinstance(text, str) and isinstance(asked, str):
        try:
            with quiet_warnings():
                model = st.Model.parse(text)
            formula = st.stl(asked, end=end)
        except SateenError:
            pass
        else:
            if (str(model), str(formula)) == (text, asked):
                return model, formula
    raise InputError(f"what the posterior was learned from cannot be observed again: {why}", remedy=remedy)


def caps_of(training: st.Observations) -> dict[str, Any]:
    """Where the runs of a training were stopped as undecided."""
    names = ("max_events", "max_time", "max_population")
    return {name: training.provenance[name] for name in names if training.provenance.get(name) is not None}


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Names a file that cannot be read, and says why."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def text_in(file: str) -> str:
    """The text of a file of properties."""
    with reading(file):
        return read_text(file, _MOST_BYTES)


def read_property(source: Source, values: Mapping[str, float], text: str, end: float | None) -> Property[st.Formula]:
    """The formula that -p gives, about a model whose parameters and constants have these values."""
    from sateen.logic.properties import Property

    asked = read_question(source, values, text, end)
    if isinstance(asked.formula, st.Reward):
        which = asked.name or text
        remedy = "`sateen check` estimates and computes it, and so do st.estimate and st.exact"
        raise InputError(f"{which} asks for an expected reward, and a formula is needed here", remedy=remedy)
    return Property(asked.name, asked.formula, asked.comparison, asked.bound)


def read_question(
    source: Source, values: Mapping[str, float], text: str, end: float | None
) -> Property[st.Formula | st.Reward]:
    """The formula or the reward that -p gives, about a model whose parameters and constants have these values."""
    from sateen.logic.properties import Property

    file, name = _named(text)
    if file or _QUESTION.match(text):
        properties, order = properties_in(source, file, text)
        chosen = _chosen(properties, order, file or "-p", name)
        formula: st.Formula | st.Reward = chosen.formula
        if end is not None and isinstance(formula, st.Reward):
            raise InputError("--end says how a formula is read, and this is a reward", remedy="leave it out")
        if end is not None and isinstance(formula, st.Formula):
            formula = st.Formula(formula.root, end)
        return Property(f"{file}:{chosen.name}" if file else "", formula, chosen.comparison, chosen.bound)
    check_constants(source, [name for name in source.constants if re.search(rf"\b{re.escape(name)}\b", text)])
    constants = {each.name: values[each.name] for each in source.model.constants if math.isfinite(values[each.name])}
    return Property("", st.stl(text, constants={**constants, **source.constants}, end=end))


def properties_in(source: Source, file: str, text: str = "") -> tuple[Properties, list[str]]:
    """The properties in a file, or in a text, and the names of all of them, refused ones too, in their order."""
    from sateen.logic.csl import read_properties
    from sateen.logic.csl_text import items

    if file:
        text = text_in(file)
    check_constants(source, [*_constants_in(text), *source.scope.open, *source.scope.values], file)
    try:
        with quiet_warnings(SateenWarning):  # of properties that are not asked for
            properties = read_properties(text, source, constants=source.constants)
        order = [item.name for item in items(text) if item.kind == "property"]
    except FormulaError as error:
        raise _in_file(error, file) from None
    return properties, [name or f"property_{place + 1}" for place, name in enumerate(order)]


def check_constants(source: Source, known: list[str], file: str = "") -> None:
    """Refuse a constant that neither the model nor the properties leave open, with a list of those that are open."""
    unknown = [name for name in source.constants if name not in known]
    if not unknown:
        return
    name = unknown[0]
    places: dict[str, list[str]] = {}
    if _is_prism(source.file):
        places[source.file] = _open(_declared(source.file))
    if file:
        places[file] = _open(_constants_in(text_in(file)))
    hint = nearest(name, [each for names in places.values() for each in names])
    lines = [f"--const {name}: no constant {name} is left open" + (f"; {hint}" if hint else "")]
    lines += [f"  {place} leaves open: {', '.join(names) or 'none'}" for place, names in places.items()]
    if name in (parameter.name for parameter in source.model.parameters):
        lines.append(f"  {name} is a parameter of {source.file}: give it with --at {name}=...")
    raise InputError("\n".join(lines))


def _named(text: str) -> tuple[str, str]:
    """The file and the name in `FILE` or `FILE:NAME`; nothing for a text that names no file."""
    if text.lower().endswith(PROPERTY_SUFFIXES) and "\n" not in text:
        return text, ""
    file, colon, name = text.rpartition(":")
    if colon and file.lower().endswith(PROPERTY_SUFFIXES):
        return file, name.strip().strip('"')
    return "", ""


def _chosen(properties: Properties, order: list[str], file: str, name: str) -> Property[Any]:
    if not order:
        raise InputError(f"{file} has no property")
    if not name and len(order) > 1:
        refused = {each: f"  (refused: {error.message})" for each, error in properties.refused.items()}
        listed = "\n".join(f"  {file}:{each}{refused.get(each, '')}" for each in order)
        raise InputError(f"{file} has {len(order)} properties; say which, by name or by place, such as :1\n{listed}")
    if name.isdigit():
        if not 1 <= int(name) <= len(order):
            raise InputError(f"{file} has {len(order)} properties; there is no property {name}")
        name = order[int(name) - 1]
    name = name or order[0]
    try:
        return properties[name]
    except KeyError:
        hint = nearest(name, order) or f"there are {', '.join(order[:10])}{', ...' if order[10:] else ''}"
        raise InputError(f"{file} has no property {name}; {hint}") from None
    except FormulaError as error:
        raise _in_file(error, file) from None


def _in_file(error: FormulaError, file: str) -> FormulaError:
    """The error with the name of its file, and with the constants that the file leaves open, if it is about one."""
    message = f"{file}: {error.message}" if file not in ("", "-p") else error.message
    named = FormulaError(message, error.text, error.position, error.remedy)
    return _with_open(named, _open(_constants_in(error.text)))


def _with_open(error: _Error, names: list[str]) -> _Error:
    if "{constants=" not in error.remedy or not names:
        return error
    return type(error)(error.message, error.text, error.position, f"{error.remedy}\nopen here: {', '.join(names)}")


def _is_prism(file: str) -> bool:
    from sateen.model.readers import READERS

    return READERS.builtin.get(Path(file).suffix.lower()) == READERS.builtin[".prism"]


def _declared(file: str) -> dict[str, bool]:
    """The constants that a model in the PRISM language declares, and whether each is open."""
    from sateen.model.prism_text import parse_program
    from sateen.model.readers import read_file

    return {each.name: each.value is None for each in parse_program(read_file(Path(file))).constants}


def _constants_in(text: str) -> dict[str, bool]:
    """The constants that a text of properties declares, and whether each is open; mistakes are found elsewhere."""
    from sateen.logic.csl_text import items, parse_definition

    declared: dict[str, bool] = {}
    try:
        for item in items(text):
            if item.kind == "constant":
                constant = parse_definition(item)
                declared[constant.name] = constant.value is None
    except FormulaError:
        pass
    return declared


def _open(declared: Mapping[str, bool]) -> list[str]:
    return [name for name, still_open in declared.items() if still_open]


def _scope(model: st.Model) -> Scope:
    """What properties in the PRISM language may speak of in a model of another language."""
    from sateen.language.expression import Name, Operation
    from sateen.language.prism_types import Scope, Typed

    whole = {variable.name for variable in model.variables if variable.whole}
    names = {name: Typed.name(name, "int" if name in whole else "double") for name in model.readable}
    values: dict[str, float] = {}
    for constant in model.constants:
        if all(name in values for name in constant.value.names):
            values[constant.name] = float(constant.value.evaluate(values))
    starts = tuple(Operation("==", (Name(variable.name), variable.initial)) for variable in model.variables)
    initial = starts[0] if len(starts) == 1 else Operation("and", starts)
    nothing: Mapping[str, Typed] = MappingProxyType({})
    return Scope(MappingProxyType(names), nothing, MappingProxyType(values), MappingProxyType({}), initial)
