"""How a kernel decides a formula: by masks while the events pass, or by the algebra on a log.

A formula is *flat* if it is a boolean combination of conditions at time 0 and of F, G and U over conditions of the
present state. Then every operator's status (true 1, false -1, undecided 0) follows from one segment [t, tn) of the path
at a time, Kleene's logic on statuses is min, max and minus, and the verdict is known at the very event that decides it.
So are formulas in which a condition must last, such as `F[a,b] G[c,d] p`, and their opposites, such as
`G[a,b] F[c,d] p`: `emit_stretch.py` says what a lane then remembers.

Any other formula is decided on a log of what its atoms read. The log is evaluated by the interval algebra, once with
everything unknown read against the formula and once read in its favour: where both agree, that is the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import reduce

from sateen.core.errors import FormulaError
from sateen.language.expression import Boolean, Delayed, Expression, Operation
from sateen.logic.formula import And, Atom, Eventually, Formula, Interval, Node, Not, Or, Truth, Until, delays_in
from sateen.logic.monitor import digits_after_point


@dataclass(frozen=True, slots=True)
class Lasting:
    """`G[low, high] held` with low < high; it ends at `end` if the path is read up to there."""

    held: Expression
    window: Interval
    end: float = math.inf


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a flat formula: `left` U[low, high] `right`, or `left` U[low, high] (`right` & `lasting`).

    F has no left side. A condition at time 0 has no window. Where `right` is not `true`, what lasts begins at once.
    """

    right: Expression
    left: Expression | None = None
    window: Interval | None = None
    lasting: Lasting | None = None

    @property
    def conditions(self) -> list[Expression]:
        """The conditions that it reads."""
        held = None if self.lasting is None else self.lasting.held
        return [each for each in (self.right, self.left, held) if each is not None]

    @property
    def delays(self) -> list[Delayed]:
        """The delayed values that it reads."""
        return [leaf for condition in self.conditions for leaf in delays_in(condition)]


class _Nested(Exception):
    """An operator stands below another in a way that no mask decides."""


def flat(formula: Formula, operators: list[Operator], *, eventful: bool = False, delayed: bool = False) -> str | None:
    """The verdict of a flat formula as source, from the statuses `s0`, `s1`, ... of the operators.

    Its operators are added to those that are there already. None, and nothing added, where the formula nests in another
    way; where it delays, unless `delayed` values can be read; and where anything lasts in an `eventful` model: there
    jumps at times that are given, not drawn, may be just as far apart as two bounds, and the algebra on the log alone
    tells such times apart without rounding.
    """
    if formula.delays and not delayed:
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
    lasting = [operator for operator in known[len(operators) :] if operator.lasting]
    if lasting and (eventful or any(operator.delays for operator in lasting)):
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
            left = None
        case Until(window, before, operand):
            left = state_condition(before)
            if left is None:
                raise _Nested
        case _:
            raise _Nested
    found = _operators(left, window, operand, end)
    # An empty window has no witness.
    return reduce(lambda x, y: f"max({x}, {y})", map(status, found)) if found else "-1.0"


def _operators(left: Expression | None, window: Interval, operand: Node, end: float | None) -> list[Operator]:
    """The operators of which any decides that `left` U[window] `operand` is true, as U distributes over |."""
    right = state_condition(operand)
    if right is not None:
        if end is not None and window.low > end:
            return []
        cut = window if end is None else Interval(window.low, min(window.high, end))
        return [Operator(right, left, cut)]
    match operand:
        case Or(operands):
            states = [part for part in operands if state_condition(part) is not None]
            others = [part for part in operands if state_condition(part) is None]
            choices = [*([Or.of(states)] if states else []), *others]
            return [operator for choice in choices for operator in _operators(left, window, choice, end)]
        case Eventually(inner, below) if left is None and not isinstance(below, Truth):
            low, high = _sum(window.low, inner.low), _sum(window.high, inner.high)
            return _operators(None, Interval(low, high), below, end)
        case Not(And(operands)):
            return _operators(left, window, Or(tuple(part.negation for part in operands)), end)
    return _lasting(left, window, _conjuncts(operand), end)


def _conjuncts(node: Node) -> list[Node]:
    """The subformulas of which a node says that all hold."""
    match node:
        case And(operands):
            return [each for operand in operands for each in _conjuncts(operand)]
        case Not(Or(operands)):
            return [each for operand in operands for each in _conjuncts(operand.negation)]
    return [node]


def _lasting(left: Expression | None, window: Interval, parts: list[Node], end: float | None) -> list[Operator]:
    """`left` U[window] of all the parts: conditions, and formulas G[inner] of a condition, all with the same window."""
    right = [part for part in parts if state_condition(part) is not None]
    kept = [_kept(part) for part in parts if state_condition(part) is None]
    inner = kept[0][0]
    if any(other != inner for other, _ in kept):
        raise _Nested
    if end is not None:
        if window.low > end:
            return []
        window = Interval(window.low, min(window.high, end))
        if inner.low > 0 and _sum(window.high, inner.low) > end:
            raise _Nested  # it lasts trivially where its window is beyond the end
    held = And.of(part for _, part in kept)
    if inner.low == inner.high:
        if inner.low == 0:
            return _operators(left, window, And.of([*right, held]), None)
        if not right and left is None:
            shifted = Interval(_sum(window.low, inner.low), _sum(window.high, inner.low))
            return _operators(None, shifted, held, None)
        raise _Nested
    if right and inner.low > 0:
        raise _Nested
    begins, lasts = state_condition(And.of(right)), state_condition(held)
    if begins is None or lasts is None or isinstance(lasts, Boolean):
        raise _Nested
    for total in ((window.high, inner.low), (window.low, inner.high), (inner.high, -inner.low)):
        _sum(*total)
    return [Operator(begins, left, window, Lasting(lasts, inner, math.inf if end is None else end))]


def _kept(node: Node) -> tuple[Interval, Node]:
    """The window and the operand of G, which is written as !F! in the core form."""
    if isinstance(node, Not) and isinstance(node.operand, Eventually):
        window, operand = node.operand.window, node.operand.operand
        while isinstance(operand, Eventually):  # F F and G G are one F and one G
            window = Interval(_sum(window.low, operand.window.low), _sum(window.high, operand.window.high))
            operand = operand.operand
        if state_condition(operand) is not None:
            return window, operand.negation
    raise _Nested


def decimal_sum(*times: float) -> float:
    """The double next to the sum of decimals."""
    with localcontext(prec=1000):
        return float(sum((Decimal(repr(float(time))) for time in times), Decimal(0)))


def _sum(*times: float) -> float:
    """The sum of decimals, if the double next to it is written like it: then comparisons do not turn on rounding."""
    total = decimal_sum(*times)
    with localcontext(prec=1000):
        if math.isfinite(total) and Decimal(repr(total)) != sum(Decimal(repr(float(time))) for time in times):
            raise _Nested
    return total


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
