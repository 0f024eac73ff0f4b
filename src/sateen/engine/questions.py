"""How a kernel decides a formula: by masks while the events pass, or by the algebra on a log.

A formula is *flat* if it is a boolean combination of conditions at time 0 and of F, G and U over conditions of the
present state. Then every operator's status (true 1, false -1, undecided 0) follows from one segment [t, tn) of the path
at a time, Kleene's logic on statuses is min, max and minus, and the verdict is known at the very event that decides it.

Any other formula is decided on a log of what its atoms read. The log is evaluated by the interval algebra, once with
everything unknown read against the formula and once read in its favour: where both agree, that is the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from sateen.core.errors import FormulaError
from sateen.language.expression import Boolean, Expression, Operation
from sateen.logic.formula import And, Atom, Eventually, Formula, Interval, Node, Not, Or, Truth, Until, delays_in
from sateen.logic.monitor import digits_after_point


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a flat formula: `left` U[low, high] `right`.

    F has no left side. A condition at time 0 has no window.
    """

    right: Expression
    left: Expression | None = None
    window: Interval | None = None


class _Nested(Exception):
    """An operator stands below another."""


def flat(formula: Formula, operators: list[Operator]) -> str | None:
    """The verdict of a flat formula as source, from the statuses `s0`, `s1`, ... of the operators.

    Its operators are added to those that are there already. None, and nothing added, where the formula nests or delays.
    """
    if formula.delays:
        return None
    known = list(operators)

    def status(operator: Operator) -> str:
        if operator not in known:
            known.append(operator)
        return f"s{known.index(operator)}"

    try:
        verdict = _flat_source(core_form(formula.root), formula.end, status)
    except _Nested:
        return None
    operators[:] = known
    return verdict


def _flat_source(node: Node, end: float | None, status: Callable[[Operator], str]) -> str:
    condition = state_condition(node)
    match node:
        case Truth(value):
            return "1.0" if value else "-1.0"
        case _ if condition is not None:
            return status(Operator(condition))
        case Not(operand):
            return f"(-{_flat_source(operand, end, status)})"
        case And(operands) | Or(operands):
            function = "min" if isinstance(node, And) else "max"
            parts = [_flat_source(operand, end, status) for operand in operands]
            return reduce(lambda x, y: f"{function}({x}, {y})", parts)
        case Eventually(window, operand):
            left, right = None, state_condition(operand)
        case Until(window, before, operand):
            left, right = state_condition(before), state_condition(operand)
            if left is None:
                raise _Nested
        case _:
            raise _Nested
    if right is None:
        raise _Nested
    if end is not None and window.low > end:
        return "-1.0"  # an empty window has no witness
    cut = window if end is None else Interval(window.low, min(window.high, end))
    return status(Operator(right, left, cut))


def state_condition(node: Node) -> Expression | None:
    """A formula without temporal operators as one condition on the present state; None if it has operators."""
    match node:
        case Truth(value):
            return Boolean(value)
        case Atom(comparison):
            return comparison
        case Not(operand):
            inner = state_condition(operand)
            return None if inner is None else Operation("not", (inner,))
        case And(operands) | Or(operands):
            parts = [state_condition(operand) for operand in operands]
            known = tuple(part for part in parts if part is not None)
            symbol = "and" if isinstance(node, And) else "or"
            return Operation(symbol, known) if len(known) == len(parts) else None
    return None


def present_atoms(formula: Formula) -> list[Operation]:
    """The comparisons of a formula that read the present alone, without delay."""
    present = [comparison for comparison in formula.comparisons if not delays_in(comparison)]
    return [comparison for comparison in present if isinstance(comparison, Operation)]


# Each comparison and its negation are one atom, decided once.
_OPPOSITE = {"<=": ">", "<": ">=", "!=": "=="}


def core_form(node: Node) -> Node:
    """The same formula in !, &, |, F and U alone, without truth values where they do not matter."""
    return _simplified(node.core)


def _simplified(node: Node) -> Node:
    match node:
        case Atom(Operation(symbol, operands)) if symbol in _OPPOSITE:
            return Not(Atom(Operation(_OPPOSITE[symbol], operands)))
        case Not(operand):
            return _simplified(operand).negation
        case And(operands) | Or(operands):
            return type(node).of(map(_simplified, operands))
    return node.mapped(_simplified)


def earliest(node: Node) -> float:
    """A time before which no path decides the formula."""
    return min(_earliest(core_form(node)))


def _earliest(node: Node) -> tuple[float, float]:
    """Times before which it cannot become true, and false."""
    match node:
        case Not(operand):
            true, false = _earliest(operand)
            return false, true
        case And(operands) | Or(operands):
            trues, falses = zip(*(_earliest(operand) for operand in operands), strict=True)
            return (max(trues), min(falses)) if isinstance(node, And) else (min(trues), max(falses))
        case Eventually(window, operand):
            true_below, false_below = _earliest(operand)
            return window.low + true_below, window.high + false_below
        case Until(window, left, right):
            (_, left_false), (right_true, right_false) = _earliest(left), _earliest(right)
            return window.low + right_true, min(left_false, window.high + right_false)
        case Truth(value):
            return (0.0, math.inf) if value else (math.inf, 0.0)
    return 0.0, 0.0


_MOST_DIGITS = 12  # of the bounds, after the point: ticks must leave room for the times in 62 bits


def tick_digits(formula: Formula) -> int:
    """How many digits after the point the bounds, delays and end of a formula have."""
    digits = max((digits_after_point(Decimal(repr(measure))) for measure in formula.measures), default=0)
    if digits > _MOST_DIGITS:
        message = f"the bounds of {formula} have {digits} digits after the point; the engine takes {_MOST_DIGITS}"
        raise FormulaError(message, remedy="round them, or measure time in another unit")
    return digits
