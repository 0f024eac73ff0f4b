"""A model as text that reads back as an equal model."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Final

from sateen.core.text import number_text
from sateen.language.expression import RESERVED, Expression, Name
from sateen.model.checks import consumption_faults

if TYPE_CHECKING:
    from sateen.model.model import Event, Model, Observable, Transition, Variable

_RESERVED: Final = RESERVED | {
    *("when", "in", "initially", "mass_action"),
    *("species", "real", "constant", "parameter", "observable", "event"),
}


def model_text(model: Model) -> str:
    """Text that reads back as an equal model."""
    # Bounds need not be written of species that are counts from 0 on and that no reaction drives below 0.
    plain = {each.name for each in model.variables if (each.low, each.high) == (0, None)}
    faults = (fault for transition in model.transitions for fault in consumption_faults(transition).items())
    plain -= {name for name, fault in faults if fault.fatal}
    lines = []
    for whole, group in groupby(model.variables, key=lambda variable: variable.whole):
        declared = (_declared(variable, variable.name in plain) for variable in group)
        lines.append(f"{'species' if whole else 'real'} {', '.join(declared)}")
    lines += [f"constant {_spelt(constant.name)} = {_text(constant.value)}" for constant in model.constants]
    for parameter in model.parameters:
        default = "" if parameter.default is None else f" = {number_text(parameter.default)}"
        lines.append(f"parameter {_spelt(parameter.name)}{default}")
    lines += map(observed, model.observables)
    for transition in model.transitions:
        guard = "" if transition.guard is None else f" when {_text(transition.guard)}"
        lines.append(f"{_spelt(transition.name)}: {happens(transition)} @ {_text(transition.rate)}{guard}")
    for event in model.events:
        initially = "" if event.initially else " initially false"
        lines.append(f"event {_spelt(event.name)}: {happens(event)} when {_text(event.trigger)}{initially}")
    lines += map(assumed, model.assumptions)
    return "\n".join(lines) + "\n"


def assumed(assumption: str) -> str:
    """The line that says what a model takes for granted."""
    return f"assumes {json.dumps(assumption, ensure_ascii=not assumption.isprintable())}"


def observed(observable: Observable) -> str:
    """The line that says what an observable is."""
    return f"observable {_spelt(observable.name)} = {_text(observable.value)}"


def happens(one: Transition | Event) -> str:
    """What a transition or an event does: `S + I -> 2 I`, or the assignments it makes."""
    parts = [f"{_spelt(name)} := {_text(value)}" for name, value in one.update]
    consumed, produced = getattr(one, "consumed", ()), getattr(one, "produced", ())  # an event has neither
    if consumed or produced or not (parts or hasattr(one, "trigger")):
        parts.insert(0, f"{_side(consumed)} -> {_side(produced)}")
    return ", ".join(parts) or "0"


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
