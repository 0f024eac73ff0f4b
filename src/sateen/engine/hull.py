"""How large a rate that reads the clock can become in a window of time: interval arithmetic on its form.

While a state lasts, only the clock moves. So of a rate only the parts that read the clock have two ends, and each end
is an expression of the state, of the window's begin (the clock itself) and of its end. Ends that are needed again get
names: a hull is a list of steps, each of which may read those before. The simulator evaluates it, the lanes emit it.

A window holds its begin and not its end, so `time < 10` surely holds in a window that ends at 10. An end that is not
known is infinite or no number; comparisons with it are not sure. Rounding is left to who uses a hull: an end may be
wrong in its last digits, as the rate itself may be.

>>> from sateen.language.grammar import parse_expression
>>> hull = Hull.of(parse_expression("k * (1 + 2 * time) * X"), frozenset({"X"}))
>>> float(hull.evaluate({"k": 0.5, "X": 4.0, "time": 1.0, END: 3.0}))
14.0
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.language.expression import (
    COMPARISONS,
    Boolean,
    Expression,
    Name,
    Number,
    Operation,
    Value,
    in_order,
    number,
)
from sateen.model.model import CLOCK

END: Final = "the end of the window"  # under this name steps read it; no user's name has spaces
Ends: TypeAlias = tuple[Expression, Expression]  # the lowest and the highest value; what surely and what possibly holds

_CLOCK: Final = Name(CLOCK)
_END: Final = Name(END)
_ZERO: Final = Number(0.0)
_ONE: Final = Number(1.0)
_INFINITY: Final = Operation("/", (_ONE, _ZERO))
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_TURN: Final = Number(2.0 * math.pi)
_PEAK: Final = {"sin": 0.5 * math.pi, "cos": 0.0}  # where they are 1


def reads_clock(expression: Expression) -> bool:
    """Whether the clock stands in an expression."""
    return CLOCK in expression.names


def breaks(expression: Expression) -> Iterator[Expression]:
    """What the clock is compared with, where it stands alone: there an expression may jump."""
    for node in in_order(expression):
        match node:
            case Operation(symbol, (left, right)) if symbol in COMPARISONS and _CLOCK in (left, right):
                side = right if left == _CLOCK else left
                if not reads_clock(side):
                    yield side


@dataclass(frozen=True, slots=True)
class Hull:
    """The upper end of a rate in a window: `steps` are (name, expression) pairs, and `high` reads them."""

    steps: tuple[tuple[str, Expression], ...]
    high: Expression

    @staticmethod
    def of(rate: Expression, counts: frozenset[str], guard: Expression | None = None, label: str = "") -> Hull:
        """The hull of a rate that is 0 where its guard does not hold.

        `counts` are the names that are never negative, and `label` tells its steps from those of other hulls.
        """
        law = rate if guard is None else Operation("if", (guard, rate, _ZERO))
        builder = _Builder(counts, label)
        _, high = builder.ends(law)
        needed, steps = set(high.names), []
        for name, step in reversed(builder.steps):
            if name in needed:
                needed.update(step.names)
                steps.append((name, step))
        return Hull(tuple(reversed(steps)), high)

    def evaluate(self, values: Mapping[str, Value]) -> Value:
        """The upper end where the state, the parameters, the clock and END have these values; NaN if it has none."""
        environment = dict(values)
        with np.errstate(all="ignore"):
            for name, step in self.steps:
                environment[name] = step.value(environment)
            return self.high.value(environment)


class _Builder:
    """Collects the steps of one hull."""

    def __init__(self, counts: frozenset[str], label: str) -> None:
        self.counts, self.label = counts, label
        self.steps: list[tuple[str, Expression]] = []
        self.known: dict[Expression, Ends] = {}

    def ends(self, node: Expression) -> Ends:
        """The ends of a number; each has a name, unless it is short."""
        if not reads_clock(node):
            return node, node
        if node not in self.known:
            low, high = self._ends(node)
            self.known[node] = self._named(low), self._named(high)
        return self.known[node]

    def _named(self, value: Expression) -> Expression:
        if not isinstance(value, Operation):
            return value
        name = f"step {self.label} {len(self.steps)}"
        self.steps.append((name, value))
        return Name(name)

    def _ends(self, node: Expression) -> Ends:
        match node:
            case Name():
                return _CLOCK, _END
            case Operation("if", (condition, then, otherwise)):
                surely, possibly = self.truth(condition)
                (a, b), (c, d) = self.ends(then), self.ends(otherwise)
                low = _if(surely, a, _if(possibly, _least(a, c), c))
                return low, _if(surely, b, _if(possibly, _most(b, d), d))
            case Operation("+" | "min" | "max" as symbol, operands):
                lows, highs = zip(*map(self.ends, operands), strict=True)
                return Operation(symbol, lows), Operation(symbol, highs)
            case Operation("-", (operand,)):
                low, high = self.ends(operand)
                return Operation("-", (high,)), Operation("-", (low,))
            case Operation("*", (left, right)):
                return self._product(left, right)
            case Operation("/", (above, below)):
                return self._quotient(above, below)
            case Operation("^", (base, exponent)):
                return self._power(base, exponent)
            case Operation("abs", (operand,)):
                low, high = self.ends(operand)
                size = _most(Operation("abs", (low,)), Operation("abs", (high,)))
                return _most(_ZERO, _most(low, Operation("-", (high,)))), size
            case Operation("sin" | "cos" as symbol, (operand,)):
                return self._wave(symbol, *self.ends(operand))
            case Operation("exp" | "log" | "sqrt" | "floor" | "ceil" as symbol, (operand,)):
                low, high = self.ends(operand)
                return Operation(symbol, (low,)), Operation(symbol, (high,))
        raise TypeError(f"{node} has no hull")

    def _product(self, left: Expression, right: Expression) -> Ends:
        if not reads_clock(right):
            left, right = right, left
        (a, b), (c, d) = self.ends(left), self.ends(right)
        if reads_clock(left):
            if self._never_negative(left) and self._never_negative(right):
                return _zeroed(_zeroed(_times(a, c), a), c), _zeroed(_zeroed(_times(b, d), b), d)
            corners = tuple(_zeroed(_zeroed(_times(x, y), x), y) for x in (a, b) for y in (c, d))
            return Operation("min", corners), Operation("max", corners)
        low, high = (_zeroed(_times(left, end), left) for end in (c, d))
        if self._never_negative(left):
            return low, high
        positive = Operation(">=", (left, _ZERO))
        return _if(positive, low, high), _if(positive, high, low)

    def _quotient(self, above: Expression, below: Expression) -> Ends:
        (a, b), (c, d) = self.ends(above), self.ends(below)
        if not reads_clock(below):
            low, high = Operation("/", (a, below)), Operation("/", (b, below))
            if self._never_negative(below):
                return low, high
            positive = Operation(">=", (below, _ZERO))
            return _if(positive, low, high), _if(positive, high, low)
        if self._never_negative(above) and self._never_negative(below):
            return Operation("/", (a, d)), _if(_above(c, _ZERO), Operation("/", (b, c)), _INFINITY)
        corners = tuple(dict.fromkeys(Operation("/", (x, y)) for x in (a, b) for y in (c, d)))
        fine = Operation("or", (_above(c, _ZERO), _above(_ZERO, d)))
        low, high = Operation("min", corners), Operation("max", corners)
        return _if(fine, low, Operation("-", (_INFINITY,))), _if(fine, high, _INFINITY)

    def _power(self, base: Expression, exponent: Expression) -> Ends:
        (a, b), (c, d) = self.ends(base), self.ends(exponent)
        if isinstance(exponent, Number) and exponent.literal in range(1, 64):
            low, high = Operation("^", (a, exponent)), Operation("^", (b, exponent))
            if exponent.literal % 2 or self._never_negative(base):
                return low, high
            inside = Operation("and", (Operation("<=", (a, _ZERO)), Operation(">=", (b, _ZERO))))
            return _if(inside, _ZERO, _least(low, high)), _most(low, high)
        corners = tuple(dict.fromkeys(Operation("^", (x, y)) for x in (a, b) for y in (c, d)))
        low, high = (Operation(symbol, corners) for symbol in ("min", "max"))
        fine = Operation(
            "or", (_above(a, _ZERO), Operation("and", (Operation(">=", (a, _ZERO)), Operation(">=", (c, _ZERO)))))
        )
        return _if(fine, low, Operation("-", (_INFINITY,))), _if(fine, high, _INFINITY)

    def _wave(self, symbol: str, low: Expression, high: Expression) -> Ends:
        """A sine is 1, or -1, within a window that holds one of its peaks, or troughs; else its ends are extreme."""
        at_low, at_high = Operation(symbol, (low,)), Operation(symbol, (high,))

        def within(place: float) -> Expression:
            first, last = (Operation("/", (_plus(end, -place), _TURN)) for end in (low, high))
            return Operation(">=", (Operation("floor", (last,)), Operation("ceil", (first,))))

        peak = _PEAK[symbol]
        lowest = _if(within(peak - math.pi), number(-1.0), _least(at_low, at_high))
        return lowest, _if(within(peak), _ONE, _most(at_low, at_high))

    def truth(self, node: Expression) -> Ends:
        """What surely and what possibly holds of a condition."""
        if not reads_clock(node):
            return node, node
        match node:
            case Operation("not", (operand,)):
                surely, possibly = self.truth(operand)
                return _not(possibly), _not(surely)
            case Operation("and" | "or" as symbol, operands):
                surely_all, possibly_all = zip(*map(self.truth, operands), strict=True)
                return Operation(symbol, surely_all), Operation(symbol, possibly_all)
            case Operation("if", (condition, then, otherwise)):  # of conditions
                other = Operation("and", (_not(condition), otherwise))
                return self.truth(Operation("or", (Operation("and", (condition, then)), other)))
            case Operation(symbol, (left, right)) if symbol in COMPARISONS:
                return self._compared(symbol, left, right)
        raise TypeError(f"{node} has no hull")

    def _compared(self, symbol: str, left: Expression, right: Expression) -> Ends:
        if symbol == "!=":
            surely, possibly = self._compared("==", left, right)
            return _not(possibly), _not(surely)
        if symbol in (">", ">=") or (symbol == "==" and right == _CLOCK):
            left, right, symbol = right, left, _MIRRORED[symbol]
        (a, b), (c, d) = self.ends(left), self.ends(right)
        if symbol == "==":
            apart = Operation("or", (_above(a, d), _above(c, b)))
            if left == _CLOCK and not reads_clock(right):
                apart = Operation("or", (_above(_CLOCK, right), Operation(">=", (right, _END))))
            return Boolean(False), _not(apart)
        # Written so that an end that is no number makes nothing sure. The clock does not reach its end.
        strict = Operation("<=" if left == _CLOCK or symbol == "<=" else "<", (b, c))
        early = right == _CLOCK or symbol == "<"
        return strict, _not(Operation(">=" if early else ">", (a, d)))

    def _never_negative(self, node: Expression) -> bool:
        """Whether the form shows that a value is at least 0; the clock is."""
        match node:
            case Number():
                return True
            case Name(name):
                return name == CLOCK or name in self.counts
            case Operation("exp" | "sqrt" | "abs", _):
                return True
            case Operation("^", (_, Number(power))) if power in range(0, 64, 2):
                return True
            case Operation("if", (_, then, otherwise)):
                return self._never_negative(then) and self._never_negative(otherwise)
            case Operation("+" | "*" | "/" | "min" | "max" | "floor" | "ceil" | "^", operands):
                return all(map(self._never_negative, operands))
        return False


def _if(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    if isinstance(condition, Boolean):
        return then if condition.literal else otherwise
    return then if then == otherwise else Operation("if", (condition, then, otherwise))


def _not(condition: Expression) -> Expression:
    if isinstance(condition, Boolean):
        return Boolean(not condition.literal)
    return Operation("not", (condition,))


def _above(left: Expression, right: Expression) -> Expression:
    return Operation(">", (left, right))


def _least(left: Expression, right: Expression) -> Expression:
    return Operation("min", (left, right))


def _most(left: Expression, right: Expression) -> Expression:
    return Operation("max", (left, right))


def _plus(value: Expression, constant: float) -> Expression:
    return Operation("+", (value, number(constant))) if constant else value


def _times(left: Expression, right: Expression) -> Expression:
    return _ZERO if _ZERO in (left, right) else Operation("*", (left, right))


def _zeroed(product: Expression, factor: Expression) -> Expression:
    """A product that is 0 if this factor is, also where the other is infinite: then the rate is 0 at all times."""
    if isinstance(factor, Number):
        return product
    return Operation("if", (Operation("==", (factor, _ZERO)), _ZERO, product))
