"""What commands work on, as a command line names it: a model in a file, a property, observations.

A property is a formula, `F[0, 10] X > 5`; or a question in the PRISM language, `P=? [ F<=10 "full" ]`; or one of a file
of such questions, `queue.props:full` by its name or `queue.props:2` by its place. It names a file where it, or what
stands before its last colon, ends in .props, .csl or .pctl.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from sateen.cli.files import load, read_formula, reading, replacing, warn
from sateen.core.errors import FormulaError, InputError, Interrupted, ModelError, nearest

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.space import Points, Range, Space
    from sateen.language.prism_types import Scope
    from sateen.logic.properties import Properties, Property
    from sateen.model.model import Model

__all__ = [
    "DESIGNS",
    "PROPERTY_SUFFIXES",
    "Source",
    "asked",
    "no_constant",
    "observed",
    "opened",
    "properties_in",
    "stored_observations",
    "text_in",
    "write_observations",
]

DESIGNS = ("sobol", "uniform", "latin", "grid")
PROPERTY_SUFFIXES: Final = (".props", ".csl", ".pctl")
_MODELS = (".sateen", ".prism", ".sm", ".xml", ".sbml", ".ant")  # suffixes that no table has; .txt may be either
_MOST_BYTES: Final = 1_000_000  # of a file of properties
_SPACE = "--space 'beta=0.005:0.3,gamma=0.005:0.2:log'"
_QUESTION: Final = re.compile(
    r"\s*(?:[A-Z]\w*\s*(?:\{[^}]*\})?\s*=\s*\?|P\s*[<>]=?[^\[\]]*)\s*\["
)  # no formula begins so
_IN_PYTHON: Final = re.compile(r"constants=\{[^}]*\}, or ")


@dataclass(frozen=True, slots=True)
class Source:
    """A model that was read from a file, what its properties may speak of, and the constants given for them alone."""

    file: str
    model: Model
    scope: Scope
    constants: Mapping[str, float]


def opened(file: str, constants: Mapping[str, float]) -> Source:
    """The model in a file. Of `constants`, those that the model declares are given to it; the others are kept."""
    from sateen.model.prism import load_prism

    if not _is_prism(file):
        model = load(file)
        return Source(file, model, _scope(model), constants)
    declared = _declared(file)
    try:
        read = load_prism(Path(file), {name: value for name, value in constants.items() if name in declared})
    except ModelError as error:
        if "--const" not in error.remedy:
            raise
        remedy = f"{_IN_PYTHON.sub('', error.remedy)}\nopen here: {', '.join(_open(declared))}"
        raise ModelError(error.message, error.text, error.position, remedy) from None
    rest = {name: value for name, value in constants.items() if name not in declared}
    return Source(file, read.model, read.scope, rest)


def asked(source: Source, values: Mapping[str, float], text: str, end: float | None) -> Property:
    """The property that `-p` gives, about a model whose parameters and constants have these values."""
    from sateen.logic.formula import Formula
    from sateen.logic.properties import Property

    file, name = _named(text)
    if file or _QUESTION.match(text):
        properties, order = properties_in(source, file, text)
        chosen = _chosen(properties, order, file or "-p", name)
        formula = chosen.formula if end is None else Formula(chosen.formula.root, end)
        return Property(f"{file}:{chosen.name}" if file else "", formula, chosen.comparison, chosen.bound)
    for constant in source.constants:
        if not re.search(rf"\b{re.escape(constant)}\b", text):
            raise no_constant(source, constant)
    constants = {each.name: values[each.name] for each in source.model.constants if math.isfinite(values[each.name])}
    remedy = "give it a value, as in --const T=10; or name a constant of the model, or write a number"
    return Property("", read_formula(text, {**constants, **source.constants}, end, remedy))


def properties_in(source: Source, file: str, text: str = "") -> tuple[Properties, list[str]]:
    """The properties in a file, or in a text, and the names of all of them, refused ones too, in their order."""
    from sateen.logic.csl import read_properties
    from sateen.logic.csl_text import items

    if file:
        with reading(file):
            text = text_in(file)
    try:
        properties = read_properties(text, source, constants=source.constants)
        order = [item.name for item in items(text) if item.kind == "property"]
    except FormulaError as error:
        raise _at_the_command_line(error, file) from None
    except InputError as error:
        if stranger := re.match(r"there is no constant (\w+) ", str(error)):
            raise no_constant(source, stranger[1], file) from None
        raise
    return properties, [name or f"property_{place + 1}" for place, name in enumerate(order)]


def no_constant(source: Source, name: str, file: str = "") -> InputError:
    """The error about a constant that nothing leaves open; it lists what is open."""
    places: list[tuple[str, list[str]]] = []
    if _is_prism(source.file):
        places.append((source.file, _open(_declared(source.file))))
    if file:
        places.append((file, _open_in_properties(text_in(file))))
    known = [each for _, names in places for each in names]
    hint = nearest(name, known)
    said = [f"--const {name}: nothing leaves a constant {name} open" + (f"; {hint}" if hint else "")]
    said += [f"  {place} leaves open: {', '.join(names) or 'none'}" for place, names in places]
    if name in (parameter.name for parameter in source.model.parameters):
        said.append(f"  {name} is a parameter of {source.file}: give it with --at {name}=...")
    return InputError("\n".join(said))


def _named(text: str) -> tuple[str, str]:
    """The file and the name in `FILE` or `FILE:NAME`; nothing for a text that names no file."""
    if text.lower().endswith(PROPERTY_SUFFIXES) and "\n" not in text:
        return text, ""
    file, colon, name = text.rpartition(":")
    if colon and file.lower().endswith(PROPERTY_SUFFIXES):
        return file, name.strip().strip('"')
    return "", ""


def _chosen(properties: Properties, order: list[str], file: str, name: str) -> Property:
    if not order:
        raise InputError(f"{file} has no property")
    if not name and len(order) > 1:
        listed = "\n".join(f"  {file}:{each}{_refusal(properties, each)}" for each in order)
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
        raise _at_the_command_line(error, file) from None


def _refusal(properties: Properties, name: str) -> str:
    return f"  (refused: {properties.refused[name].message})" if name in properties.refused else ""


def _at_the_command_line(error: FormulaError, file: str) -> FormulaError:
    message = f"{file}: {error.message}" if file not in ("", "-p") else error.message
    remedy = _IN_PYTHON.sub("", error.remedy)
    if remedy != error.remedy and (left_open := _open_in_properties(error.text)):
        remedy += f"\nopen here: {', '.join(left_open)}"
    return FormulaError(message, error.text, error.position, remedy)


def _is_prism(file: str) -> bool:
    from sateen.model.readers import READERS

    suffix = Path(file).suffix.lower()
    return suffix in READERS and READERS[suffix].takes_constants


def text_in(file: str) -> str:
    """The text of a file of properties, or of a model in the PRISM language."""
    if os.path.getsize(file) > _MOST_BYTES:
        raise InputError(f"{file} is too large to be read: at most {_MOST_BYTES:,} bytes are")
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text in UTF-8") from None


def _declared(file: str) -> dict[str, bool]:
    """The constants that a model in the PRISM language declares, and whether each is open."""
    from sateen.model.prism_text import parse_program

    try:
        return {each.name: each.value is None for each in parse_program(text_in(file)).constants}
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror or error}") from None


def _open(declared: Mapping[str, bool]) -> list[str]:
    return [name for name, still_open in declared.items() if still_open]


def _open_in_properties(text: str) -> list[str]:
    from sateen.logic.csl_text import items, parse_constant

    constants = (parse_constant(item) for item in items(text) if item.kind == "constant")
    return [name for name, _, _, value in constants if value is None]


def _scope(model: Model) -> Scope:
    """What properties in the PRISM language may speak of in a model of another language."""
    from sateen.language.expression import Name, Operation
    from sateen.language.prism_types import Scope, Typed

    whole = {variable.name for variable in model.variables if variable.whole}
    names = {name: Typed.name(name, "int" if name in whole else "double") for name in model.names}
    values: dict[str, float] = {}
    for constant in model.constants:
        if all(name in values for name in constant.value.names):
            values[constant.name] = float(constant.value.evaluate(values))
    starts = tuple(Operation("==", (Name(variable.name), variable.initial)) for variable in model.variables)
    initial = starts[0] if len(starts) == 1 else Operation("and", starts)
    nothing: Mapping[str, Typed] = MappingProxyType({})
    return Scope(MappingProxyType(names), nothing, MappingProxyType(values), MappingProxyType({}), initial)


def stored_observations(file: str, given: Mapping[str, Range | float]) -> Observations:
    """The observations in a file that `save` or `to_csv` wrote, or in a table of another program with its space."""
    from zipfile import is_zipfile

    from sateen.core.observations import Observations
    from sateen.core.space import Space

    suffix = os.path.splitext(file)[1].lower()
    if suffix in _MODELS:
        raise click.UsageError(f"{file} is a model; say what to observe, with -p FORMULA and --vary beta=0.005:0.3")
    if suffix == ".safetensors":
        raise InputError(f"{file} is what was learned already; `sateen predict` and `sateen inspect` read it")
    if is_zipfile(file) and given:
        raise click.UsageError(f"--space: {file} tells its space itself")
    try:
        with reading(file):
            if is_zipfile(file):
                return Observations.load(file)
            return Observations.from_csv(file, Space(given) if given else None)
    except InputError as error:
        said = str(error).replace("pass it, from_csv(file, space)", f"give it, as in {_SPACE}")
        raise InputError(said.replace("or pass extrapolate=True", "or widen the range")) from None


def observed(
    model: str,
    text: str,
    vary: Mapping[str, Range],
    at: Mapping[str, float],
    *,
    end: float | None,
    design: str,
    points: int,
    runs: int,
    max_events: int,
    seed: int,
    file: str | None,
    constants: Mapping[str, float] = MappingProxyType({}),
) -> Observations:
    """Observations of a model at points of a design; what an interrupted campaign has done is kept in `file`.

    The seeds of the design and of the runs are drawn from `seed`: no two stages share random numbers.
    """
    from numpy.random import SeedSequence

    from sateen.cli.progress import Bar
    from sateen.core.space import Space
    from sateen.sampling.observe import observe

    if twice := [name for name in at if name in vary]:
        raise click.UsageError(f"{twice[0]} is in --vary and in --at: either it varies or it is fixed")
    source = opened(model, constants)
    system = source.model
    warn(system)
    for_design, for_runs = (int(child.generate_state(1)[0]) for child in SeedSequence(seed).spawn(2))
    chosen = _designed(Space({**vary, **at}), design, points, for_design)
    formula = asked(source, system.values(chosen[0]), text, end).formula
    try:
        return observe(system, formula, chosen, runs, seed=for_runs, max_events=max_events, progress=Bar())
    except Interrupted as stop:
        if file is not None and stop.partial is not None and stop.partial.trials.any():
            write_observations(stop.partial, file)
            click.echo(f"{file} has what was observed: {int(stop.partial.trials.sum()):,} runs", err=True)
        raise


def write_observations(observations: Observations, file: str) -> None:
    """Write them as a table if the name ends in .csv, and else as `save` does."""
    with replacing(file) as temporary:
        (observations.to_csv if file.lower().endswith(".csv") else observations.save)(temporary)


def _designed(space: Space, design: str, count: int, seed: int) -> Points:
    if design == "grid":
        return space.grid(count)
    drawn: Points = getattr(space, design)(count, seed=seed)
    return drawn
