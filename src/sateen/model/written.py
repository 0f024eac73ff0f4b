"""A model as text, in sateen's own language."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from sateen.core.errors import ModelError, ModelWarning
from sateen.core.text import number_text
from sateen.files.atomic import replacing
from sateen.language.expression import RESERVED, Expression, Name
from sateen.model.model import Event, Model, Transition, Variable
from sateen.model.reactions import consumption_faults, read_reactions

__all__ = ["MODEL_RESERVED", "bounds_text", "happens", "save_model", "written"]

_TEXT: Final = (".sateen", ".txt")
_SBML: Final = (".xml", ".sbml")

MODEL_RESERVED = RESERVED | {
    *("when", "in", "initially", "mass_action"),
    *("species", "real", "constant", "parameter", "event"),
}


def written(model: Model) -> str:
    """Text that reads back as an equal model."""
    plain = _left_plain(model)
    lines = []
    for whole, group in groupby(model.variables, key=lambda variable: variable.whole):
        declared = (_declared(variable, variable.name in plain) for variable in group)
        lines.append(f"{'species' if whole else 'real'} {', '.join(declared)}")
    lines += [f"constant {_spelt(constant.name)} = {_text(constant.value)}" for constant in model.constants]
    for parameter in model.parameters:
        default = "" if parameter.default is None else f" = {number_text(parameter.default)}"
        lines.append(f"parameter {_spelt(parameter.name)}{default}")
    lines += [_written_transition(transition) for transition in model.transitions]
    lines += [_written_event(event) for event in model.events]
    return "\n".join(lines) + "\n"


def save_model(model: Model, path: Path) -> None:
    """Write a model in the language of the suffix; what it cannot say is a ModelError, and nothing is written."""
    suffix = path.suffix.lower()
    if suffix in _TEXT:
        text = _text_that_reads_back(model)
    elif suffix in _SBML:
        from sateen.model.sbml_written import write_sbml

        text = write_sbml(model)
    else:
        known = f"known: {', '.join([*_TEXT, *_SBML])}"
        raise ModelError(f"{path}: no writer for {path.suffix or 'a file without suffix'}", remedy=known)
    with replacing(path) as stream:
        stream.write(text.encode("utf-8"))


def _text_that_reads_back(model: Model) -> str:
    """The text of a model, read again and compared: the form can hold what no text says, such as a name with a `."""
    text = written(model)
    for name in _all_names(model):
        if not name.strip() or "`" in name or "\n" in name:
            raise ModelError(f"the name {name!r} cannot be written as text", remedy="rename it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            again = read_reactions(text)
    except ModelError as error:
        raise ModelError(f"as text this cannot be read: {error.message}", text, error.position, error.remedy) from None
    for kind in ("variables", "transitions", "parameters", "constants", "events"):
        for part, other in zip(getattr(model, kind), getattr(again, kind), strict=False):
            if part != other:
                raise ModelError(f"{part.name} is not the same once it is written as text and read")
    if again != model:
        raise ModelError("this model is not the same once it is written as text and read")
    return text


def _all_names(model: Model) -> Iterator[str]:
    yield from model.names
    yield from (transition.name for transition in model.transitions)
    yield from (event.name for event in model.events)


def bounds_text(variable: Variable) -> str:
    """The range of a variable: `[0, 5]`, or `(-inf, inf)`."""
    low = "(-inf" if variable.low is None else f"[{variable.low}"
    high = "inf)" if variable.high is None else f"{variable.high}]"
    return f"{low}, {high}"


def happens(transition: Transition | Event) -> str:
    """What a transition or an event does: `S + I -> 2 I`, or the assignments it makes."""
    parts = [f"{_spelt(name)} := {_text(value)}" for name, value in transition.update]
    if isinstance(transition, Event):
        return ", ".join(parts) or "0"
    if transition.consumed or transition.produced or not parts:
        parts.insert(0, f"{_side(transition.consumed)} -> {_side(transition.produced)}")
    return ", ".join(parts)


def _left_plain(model: Model) -> set[str]:
    """The species whose bounds go without saying: counts from 0 on, which no reaction takes below without a look."""
    counts = {each.name: each for each in model.variables if (each.low, each.high) == (0, None)}
    faults = (fault for transition in model.transitions for fault in consumption_faults(transition, counts))
    return set(counts) - {name for name, fault in faults if fault.fatal}


def _declared(variable: Variable, plain: bool) -> str:
    bounds = "" if plain or not variable.whole else f" in {bounds_text(variable)}"
    return f"{_spelt(variable.name)} = {_text(variable.initial)}{bounds}"


def _written_transition(transition: Transition) -> str:
    guard = "" if transition.guard is None else f" when {_text(transition.guard)}"
    return f"{_spelt(transition.name)}: {happens(transition)} @ {_text(transition.rate)}{guard}"


def _written_event(event: Event) -> str:
    initially = "" if event.initially else " initially false"
    return f"event {_spelt(event.name)}: {happens(event)} when {_text(event.trigger)}{initially}"


def _side(pairs: tuple[tuple[str, int], ...]) -> str:
    return " + ".join(f"{count} {_spelt(name)}" if count > 1 else _spelt(name) for name, count in pairs) or "0"


def _spelt(name: str) -> str:
    return Name(name).text(MODEL_RESERVED)


def _text(value: Expression) -> str:
    return value.text(MODEL_RESERVED)
