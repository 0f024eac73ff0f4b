"""A model as text, in the style of sateen's own."""

from __future__ import annotations

from sateen.core.expression import RESERVED, Expression, Name, number_text
from sateen.model.model import Model, Transition, Variable

__all__ = ["MODEL_RESERVED", "happens", "written"]

MODEL_RESERVED = RESERVED | {"when", "mass_action", "species", "constant", "parameter"}


def written(model: Model) -> str:
    """Text that reads back as an equal model.

    Bounds, updates by expression and events, which reaction text cannot say, are shown in its style.
    """
    lines = []
    if model.variables:
        lines.append("species " + ", ".join(map(_declared_variable, model.variables)))
    lines += [f"constant {_spelt(constant.name)} = {_text(constant.value)}" for constant in model.constants]
    for parameter in model.parameters:
        default = "" if parameter.default is None else f" = {number_text(parameter.default)}"
        lines.append(f"parameter {_spelt(parameter.name)}{default}")
    lines += [_written_transition(transition) for transition in model.transitions]
    for event in model.events:
        when = f"at {_text(event.time)}" if event.time is not None else f"when {_text(event.trigger)}"
        lines.append(f"event {_spelt(event.name)}: {_assigned(event.update)} {when}")
    return "\n".join(lines) + "\n"


def _declared_variable(variable: Variable) -> str:
    bounds = "" if variable.low == 0 and variable.high is None else f" in [{variable.low}, {variable.high}]"
    return f"{_spelt(variable.name)} = {_text(variable.initial)}{bounds}"


def happens(transition: Transition) -> str:
    """What a transition does, without its rate: `S + I -> 2 I`, or the assignments it makes."""
    if transition.update:
        return _assigned(transition.update)
    return f"{_side(transition.consumed)} -> {_side(transition.produced)}"


def _written_transition(transition: Transition) -> str:
    guard = "" if transition.guard is None else f" when {_text(transition.guard)}"
    return f"{_spelt(transition.name)}: {happens(transition)} @ {_text(transition.rate)}{guard}"


def _side(pairs: tuple[tuple[str, int], ...]) -> str:
    return " + ".join(f"{count} {_spelt(name)}" if count > 1 else _spelt(name) for name, count in pairs) or "0"


def _assigned(update: tuple[tuple[str, Expression], ...]) -> str:
    return ", ".join(f"{_spelt(name)} := {_text(value)}" for name, value in update)


def _spelt(name: str) -> str:
    return Name(name).text(MODEL_RESERVED)


def _text(value: Expression | None) -> str:
    return "" if value is None else value.text(MODEL_RESERVED)
