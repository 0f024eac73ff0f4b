"""A model as text, in the language of sateen."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from sateen.core.text import number_text
from sateen.language.expression import RESERVED, Expression, Name
from sateen.model.checks import consumption_faults

if TYPE_CHECKING:
    from sateen.model.model import Event, Model, Transition, Variable

__all__ = ["happens", "written"]

_RESERVED: Final = RESERVED | {
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
    for transition in model.transitions:
        guard = "" if transition.guard is None else f" when {_text(transition.guard)}"
        lines.append(f"{_spelt(transition.name)}: {happens(transition)} @ {_text(transition.rate)}{guard}")
    for event in model.events:
        initially = "" if event.initially else " initially false"
        lines.append(f"event {_spelt(event.name)}: {happens(event)} when {_text(event.trigger)}{initially}")
    return "\n".join(lines) + "\n"


def happens(one: Transition | Event) -> str:
    """What a transition or an event does: `S + I -> 2 I`, or the assignments it makes."""
    parts = [f"{_spelt(name)} := {_text(value)}" for name, value in one.update]
    consumed, produced = getattr(one, "consumed", ()), getattr(one, "produced", ())  # an event has neither
    if consumed or produced or not (parts or hasattr(one, "trigger")):
        parts.insert(0, f"{_side(consumed)} -> {_side(produced)}")
    return ", ".join(parts) or "0"


def _left_plain(model: Model) -> set[str]:
    """The species whose bounds need not be written: counts from 0 on, which no reaction drives below 0."""
    counts = {each.name for each in model.variables if (each.low, each.high) == (0, None)}
    faults = (fault for transition in model.transitions for fault in consumption_faults(transition).items())
    return counts - {name for name, fault in faults if fault.fatal}


def _declared(variable: Variable, plain: bool) -> str:
    declared = f"{_spelt(variable.name)} = {_text(variable.initial)}"
    if plain or not variable.whole:
        return declared
    low = "(-inf" if variable.low is None else f"[{variable.low}"
    high = "inf)" if variable.high is None else f"{variable.high}]"
    return f"{declared} in {low}, {high}"


def _side(pairs: tuple[tuple[str, int], ...]) -> str:
    return " + ".join(f"{count} {_spelt(name)}" if count > 1 else _spelt(name) for name, count in pairs) or "0"


def _spelt(name: str) -> str:
    return Name(name).text(_RESERVED)


def _text(value: Expression) -> str:
    return value.text(_RESERVED)
