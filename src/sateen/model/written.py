"""A model as text, in sateen's own language."""

from __future__ import annotations

from itertools import groupby

from sateen.core.expression import RESERVED, Expression, Name, number_text
from sateen.model.model import Event, Model, Transition, Variable
from sateen.model.reactions import consumption_faults

__all__ = ["MODEL_RESERVED", "bounds_text", "happens", "written"]

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
    variables = {variable.name: variable for variable in model.variables}
    faults = (fault for transition in model.transitions for fault in consumption_faults(transition, variables))
    careless = {name for name, fault in faults if fault.fatal}
    return {name for name, each in variables.items() if (each.low, each.high) == (0, None) and name not in careless}


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
