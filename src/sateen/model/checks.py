"""What the form of a rate shows before any run: signs, zeros, and reactions that could drive a count below 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sateen.core.errors import ModelError
from sateen.language.expression import Boolean, Expression, Number, Operation
from sateen.model.signs import bounds

if TYPE_CHECKING:
    from sateen.model.model import Transition

MOST_MOLECULES: Final = 10**9  # of a species in one reaction
_MOST_COUNTS: Final = 20  # of a species that are tried one by one


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which a reaction can drive a count below 0; fatal where nothing prevents it, unless it is `guarded`."""

    message: str
    remedy: str
    fatal: bool
    guarded: bool = False


def refuse_too_many(reaction: str, counts: Iterable[tuple[str, int]]) -> None:
    """Refuses a reaction in which more of a species take part than text can say; `counts` are pairs with its name."""
    for name, count in counts:
        if count > MOST_MOLECULES:
            remedy = f"at most {MOST_MOLECULES:,} of a species can"
            raise ModelError(f"{count:,} {name} take part in {reaction or 'a reaction'}", remedy=remedy)


def consumption_faults(transition: Transition) -> dict[str, Fault]:
    """What is wrong with how a reaction's rate sees the species that it uses up, for each where something is.

    With too few of a species left the reaction must stop: its rate must be 0 there, or its guard false.
    """
    faults = {name: _worst(_faults_of(transition, name, -change)) for name, change in transition.change.items()}
    return {name: fault for name, fault in faults.items() if fault is not None}


def consumption_fault(transition: Transition) -> Fault | None:
    """The worst of `consumption_faults`, if there is one."""
    return _worst(consumption_faults(transition).values())


def _worst(faults: Iterable[Fault]) -> Fault | None:
    return max(faults, key=lambda fault: fault.fatal, default=None)


def _faults_of(transition: Transition, name: str, taken: int) -> Iterator[Fault]:
    """What is wrong at each count of `name` that is too small, the first of each kind first."""
    seen = name in transition.rate.names
    blind = f"{transition.name} consumes {name}, which its rate {transition.rate} does not see"
    for count in range(min(taken, _MOST_COUNTS)):
        here = {name: Number(float(count))}
        if _vanishes(transition.rate.substitute(here)):
            continue
        guarded = transition.guard is not None and _decided(transition.guard.substitute(here)) is False
        if guarded and not seen:
            yield Fault(blind, f"only its guard keeps {name} from falling below 0", fatal=False, guarded=True)
        elif not guarded and seen:
            remedy = f"its rate should be 0 there: mass_action(k), or a guard: when {name} >= {taken}"
            yield Fault(
                f"{transition.name} takes {taken} {name} and may still fire with {count} left", remedy, fatal=False
            )
        elif not guarded:
            remedy = f"multiply the rate by {name}, or add a guard: when {name} >= {taken}"
            yield Fault(f"{blind}: {name} could fall below 0", remedy, fatal=True)


def negative_by_sign(rate: Expression) -> bool:
    """Whether the form of a rate makes it negative wherever the names in it are positive."""
    low, high = bounds(rate)
    return low < 0 and high <= 0


def _vanishes(node: Expression) -> bool:
    """Whether the form shows that a value is 0."""
    if not node.names:
        return not isinstance(node, Boolean) and float(node.evaluate({})) == 0.0
    if not isinstance(node, Operation):
        return False
    zero = [_vanishes(operand) for operand in node.operands]
    match node.symbol:
        case "*":
            return any(zero)
        case "/" | "-" | "abs" | "sqrt" | "floor" | "ceil":
            return zero[0]
        case "^":
            return zero[0] and isinstance(node.operands[1], Number) and node.operands[1].literal > 0
        case "+" | "max":
            return all(zero)
        case "min":
            return any(zero) and bounds(node)[0] >= 0
        case "if":
            chosen = _decided(node.operands[0])
            return (zero[1] and zero[2]) if chosen is None else zero[1 if chosen else 2]
    return False


def _decided(condition: Expression) -> bool | None:
    """The truth of a condition where its form shows it."""
    if not condition.names:
        return bool(condition.evaluate({}))
    if not isinstance(condition, Operation) or condition.symbol not in ("and", "or", "not"):
        return None
    parts = [_decided(operand) for operand in condition.operands]
    if condition.symbol == "not":
        return None if parts[0] is None else not parts[0]
    decisive = condition.symbol == "or"
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive
