"""An oracle for verdicts: the definition of SEMANTICS.md, quantifier by quantifier, in exact fractions.

It shares nothing with the monitor but the tree of the formula, and it knows no sets of times. To say whether φ holds at
some moment of a window it looks: at the two ends of the window, at every critical instant inside, and once between each
pair of neighbours among these. That is enough, since the truth of a node is constant between its critical instants:
truth at t depends only on where t, t + a and t + b lie among the critical instants below, so it can change only when
one of the three passes one of them. A number is read as the decimal it prints as: 0.1 is one tenth.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sateen.language.expression import Delayed, Expression, Name, Number, Operation, in_order
from sateen.logic.formula import (
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Iff,
    Implies,
    Node,
    Not,
    Or,
    Truth,
    Until,
    subformulas,
)

if TYPE_CHECKING:
    from sateen.core.path import Path

# Kleene's three values in order: `and` is min, `or` is max, `not` is 2 - value.
FALSE, UNKNOWN, TRUE = 0, 1, 2
VERDICTS = (False, None, True)

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def decimal(value: float) -> Fraction:
    """The number that a float prints as."""
    return Fraction(repr(float(value)))


def verdict(formula: Formula, path: Path, **readings: Any) -> bool | None:
    """Whether `formula` holds on `path` at time 0; None where that is unknown."""
    return verdict_at(formula, path, Fraction(0), **readings)


def verdict_at(formula: Formula, path: Path, time: Fraction, **readings: Any) -> bool | None:
    """Whether `formula` holds on `path` at `time`; None where that is unknown."""
    oracle = Oracle(formula, path, instants=[time], **readings)
    return oracle.verdict(formula.root, time)


class Oracle:
    """A formula on a path. Inside, every time is a whole number of ticks, so that all arithmetic is exact.

    `instants` are further times at which verdicts will be asked. `closed_until` and `read` are for the tests that show
    which cases tell the right reading from a wrong one: φ on [t, t'] in `φ U ψ`, and another meaning of floats.
    """

    def __init__(
        self,
        formula: Formula,
        path: Path,
        *,
        instants: Iterable[Fraction] = (),
        closed_until: bool = False,
        read: Callable[[float], Fraction] = decimal,
    ) -> None:
        self.closed_until = closed_until
        times = {time: read(time) for time in (*path.times.tolist(), path.end, *_bounds_and_lags(formula))}
        divisors = [time.denominator for time in (*times.values(), *instants)]
        # Each temporal operator may halve once more to look between two instants, and so may who asks.
        self.ticks = math.lcm(*divisors) * 2 ** (_temporal_depth(formula.root) + 2)
        self._in_ticks = {time: (exact * self.ticks).numerator for time, exact in times.items()}
        self.jumps = [self._in_ticks[time] for time in path.times.tolist()]
        self.known_until = None if path.absorbed else self._in_ticks[path.end]
        self.end = None if formula.end is None else self._in_ticks[formula.end]
        self.states = [[_plain(decimal(count)) for count in state] for state in path.states.tolist()]
        self.parameters = {name: _plain(decimal(value)) for name, value in path.values.items()}
        self.column = {name: column for column, name in enumerate(path.species)}
        self._own = {node: node for node in subformulas(formula.root)}
        self._instants: dict[int, list[int]] = {}  # by the id of a node of the formula, as nodes are slow to hash
        self._truth: dict[tuple[int, int], int] = {}

    def verdict(self, node: Node, time: Fraction) -> bool | None:
        """Whether a subformula holds at `time`."""
        ticks = time * self.ticks
        assert ticks.denominator == 1, f"{time} is finer than a tick: name it in `instants`"
        return VERDICTS[self.at(self._own[node], ticks.numerator)]

    def critical_instants(self, node: Node) -> list[Fraction]:
        """Times, in order and from 0, between and beyond which the truth of a subformula does not change."""
        return [Fraction(instant, self.ticks) for instant in self._critical(self._own[node])]

    # What can change, and when.

    def _critical(self, node: Node) -> list[int]:
        known = self._instants.get(id(node))
        if known is None:
            known = self._instants[id(node)] = sorted({0, *(each for each in self._changes(node) if each > 0)})
        return known

    def _changes(self, node: Node) -> Iterator[int]:
        if isinstance(node, Atom):
            lags = {leaf.lag for leaf in in_order(node.comparison) if isinstance(leaf, Delayed)}
            for shift in (0, *(self._in_ticks[lag] for lag in lags)):
                yield from (jump + shift for jump in self.jumps)
            if self.known_until is not None:
                yield self.known_until
        elif isinstance(node, Eventually | Globally | Until):
            below = {instant for child in node.children for instant in self._critical(child)}
            if self.end is not None:
                below.add(self.end)
            bounds = {0, self._in_ticks[node.window.low]}
            if math.isfinite(node.window.high):
                bounds.add(self._in_ticks[node.window.high])
            yield from (instant - bound for instant in below for bound in bounds)
        else:
            for child in node.children:
                yield from self._critical(child)

    # When a node holds.

    def at(self, node: Node, time: int) -> int:
        """The truth of a subformula at a time in ticks."""
        key = (id(node), time)
        truth = self._truth.get(key)
        if truth is None:
            truth = self._truth[key] = self._evaluate(node, time)
        return truth

    def _evaluate(self, node: Node, time: int) -> int:
        match node:
            case Truth(value):
                return TRUE if value else FALSE
            case Atom(comparison):
                return self._atom(comparison, time)
            case Not(operand):
                return TRUE - self.at(operand, time)
            case And(operands):
                return min(self.at(operand, time) for operand in operands)
            case Or(operands):
                return max(self.at(operand, time) for operand in operands)
            case Implies(left, right):
                return max(TRUE - self.at(left, time), self.at(right, time))
            case Iff(left, right):
                one, other = self.at(left, time), self.at(right, time)
                return UNKNOWN if UNKNOWN in (one, other) else TRUE * (one == other)
            case Eventually(_, operand):
                return max((self.at(operand, each) for each in self._looked_at(node, operand, time)), default=FALSE)
            case Globally(_, operand):
                return min((self.at(operand, each) for each in self._looked_at(node, operand, time)), default=TRUE)
            case Until():
                return self._until(node, time)
        raise NotImplementedError(f"the brute force does not know {node!r}")

    def _until(self, node: Until, time: int) -> int:
        """Some t' of the window has ψ at t' and φ at every moment of [time, t')."""
        low, high = self._window(node, time)
        if high < low:
            return FALSE
        critical = {*self._critical(node.left), *self._critical(node.right)}
        instants = sorted({time, low, high, *(each for each in critical if time < each < high)})
        found, before = FALSE, TRUE  # `before`: φ at every moment of [time, the witness)
        for instant, following in zip(instants, [*instants[1:], None], strict=True):
            if instant >= low:
                here = min(self.at(node.right, instant), before)
                found = max(found, min(here, self.at(node.left, instant)) if self.closed_until else here)
            before = min(before, self.at(node.left, instant))
            if following is None or before == FALSE or found == TRUE:
                break
            # A witness between two instants leaves a part of this gap before it, where φ is as at its middle.
            middle = (instant + following) // 2
            before = min(before, self.at(node.left, middle))
            if instant >= low:
                found = max(found, min(self.at(node.right, middle), before))
        return found

    def _looked_at(self, node: Eventually | Globally, operand: Node, time: int) -> Iterator[int]:
        """The times of the window at which to look: both ends, critical instants, and once between neighbours."""
        low, high = self._window(node, time)
        if high < low:
            return
        critical = self._critical(operand)
        last = low
        yield low
        for instant in [*critical[bisect_right(critical, low) : bisect_left(critical, high)], high]:
            if instant > last:
                yield (last + instant) // 2
                yield instant
                last = instant

    def _window(self, node: Eventually | Globally | Until, time: int) -> tuple[int, int]:
        low = time + self._in_ticks[node.window.low]
        if math.isfinite(node.window.high):
            high = time + self._in_ticks[node.window.high]
            return low, high if self.end is None else min(high, self.end)
        if self.end is not None:
            return low, self.end
        # One time unit beyond all that can change stands for the rest of time.
        return low, max(low, *(self._critical(child)[-1] for child in node.children)) + self.ticks

    # Atoms.

    def _atom(self, comparison: Expression, time: int) -> int:
        if self.known_until is not None and time > self.known_until:
            return UNKNOWN
        if not isinstance(comparison, Operation) or comparison.symbol not in _COMPARE:
            raise NotImplementedError(f"the brute force compares two numbers, it does not know {comparison}")
        left, right = (self._value(operand, time) for operand in comparison.operands)
        return TRUE if _COMPARE[comparison.symbol](left, right) else FALSE

    def _value(self, expression: Expression, time: int) -> Any:
        match expression:
            case Number(literal):
                return _plain(decimal(literal))
            case Name(name):
                return self._read(name, time)
            case Delayed(name, lag):
                return self._read(name, time - self._in_ticks[lag])
            case Operation("+", operands):
                return sum(self._value(operand, time) for operand in operands)
            case Operation("*", operands):
                return math.prod(self._value(operand, time) for operand in operands)
            case Operation("-", (operand,)):
                return -self._value(operand, time)
        raise NotImplementedError(f"the brute force adds and multiplies, it does not know {expression}")

    def _read(self, name: str, time: int) -> Any:
        if name not in self.column:
            return self.parameters[name]
        # The last jump at or before `time`: states are right-continuous, and of tied jumps the last one wins.
        # Before time 0 there is the value at time 0.
        return self.states[bisect_right(self.jumps, max(time, 0)) - 1][self.column[name]]


def _plain(value: Fraction) -> Fraction | int:
    """A whole number as an int, which is faster and as exact."""
    return value.numerator if value.denominator == 1 else value


def _temporal_depth(node: Node) -> int:
    below = max((_temporal_depth(child) for child in node.children), default=0)
    return below + isinstance(node, Eventually | Globally | Until)


def _bounds_and_lags(formula: Formula) -> Iterator[float]:
    if formula.end is not None:
        yield formula.end
    for node in subformulas(formula.root):
        if isinstance(node, Eventually | Globally | Until):
            yield from (bound for bound in (node.window.low, node.window.high) if math.isfinite(bound))
        elif isinstance(node, Atom):
            yield from (leaf.lag for leaf in in_order(node.comparison) if isinstance(leaf, Delayed))
