"""The verdict of a formula on a path, exactly and in dense time, and its explanation.

Every subformula gets two sets of times: those at which it certainly holds, and those at which it possibly holds given
that nothing is known after the path's end. The verdict is read off at time 0. Kleene's three-valued logic is what
results when both sets go through the same algebra, with their roles exchanged by negation.

Numbers are taken as the decimals they print as: 0.3 is three tenths. So `0.1 + 0.2` and `0.3` are the same instant,
and all instants are whole numbers of one common tick.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from typing import Final, TypeAlias

import numpy as np

from sateen.core.display import pictured
from sateen.core.errors import FormulaError, MissingValueError, nearest
from sateen.core.path import Path, Verdict
from sateen.core.registry import call_provider
from sateen.core.text import number_text, values_text
from sateen.language.expression import Expression, Operation, Value, concentrated
from sateen.logic import intervals
from sateen.logic.formula import And, Atom, Eventually, Formula, Interval, Node, Not, Or, Truth, Until, delays_in
from sateen.logic.parser import formula_of

_Set: TypeAlias = list[int]  # switches, as in intervals.py
_Environment: TypeAlias = Mapping[str, Value] | Mapping[str | tuple[str, float], Value]
_ALL: Final[_Set] = [0]
_NONE: Final[_Set] = []
_FOREVER: Final = -2  # in the place of the end of a set without one: even, for infinity is never in it


def monitor(formula: Formula | str, path: Path) -> Verdict:
    """Whether the path satisfies the formula: TRUE, FALSE, or UNKNOWN if the path is too short to tell.

    The formula may be text.

    >>> path = Path(times=[0, 110], states=[5, 0], species="I", end=150)
    >>> monitor("(I > 0) U[100, 120] (I == 0)", path)
    <Verdict.TRUE: 'true'>
    """
    formula = formula_of(formula)
    return _verdict(_Evaluation(formula, path).both(formula.root))


def explain(formula: Formula | str, path: Path) -> Explanation:
    """For every subformula, the times at which it holds and those at which it is unknown.

    >>> from sateen.logic.parser import stl
    >>> path = Path(times=[0, 110], states=[5, 0], species="I", end=150)
    >>> print(explain(stl("(I > 0) U[100, 120] (I == 0)"), path))
    true: (I > 0) U[100, 120] (I == 0)
    (I > 0) U[100, 120] (I == 0)  [0, 10]     unknown (150, inf)
      I > 0                       [0, 110)    unknown (150, inf)
      I == 0                      [110, 150]  unknown (150, inf)
    """
    formula = formula_of(formula)
    evaluation = _Evaluation(formula, path)
    rows = []
    for node, depth in _with_depth(formula.root):
        certain, possible = evaluation.both(node)
        doubtful = _apply(intervals.intersection, possible, _complement(certain))
        rows.append(Row(node, depth, evaluation.clock.spans(certain), evaluation.clock.spans(doubtful)))
    verdict = _verdict(evaluation.both(formula.root))
    return Explanation(formula, verdict, path.end, tuple(rows))


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of times; `stop` may be infinite."""

    start: float
    stop: float
    closed_start: bool
    closed_stop: bool

    def __str__(self) -> str:
        if self.start == self.stop:
            return f"{{{self.start:.6g}}}"
        opening, closing = "[" if self.closed_start else "(", "]" if self.closed_stop else ")"
        return f"{opening}{self.start:.6g}, {self.stop:.6g}{closing}"


@dataclass(frozen=True, slots=True)
class Row:
    """A subformula, how deep it stands, and when it holds and when that is unknown."""

    node: Node
    depth: int
    holds: tuple[Span, ...]
    unknown: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `explain`: the verdict, and a row for every subformula, parents first."""

    formula: Formula
    verdict: Verdict
    end: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [("  " * row.depth + str(row.node), _list(row.holds), _list(row.unknown)) for row in self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(2)]
        text = [f"{self.verdict}: {self.formula}"]
        for label, holds, unknown in lines:
            doubt = f"  unknown {unknown}" if unknown else ""
            text.append(f"{label:<{widths[0]}}  {holds or 'never':<{widths[1]}}{doubt}".rstrip())
        return "\n".join(text)

    @property
    def lanes(self) -> list[tuple[str, int, list[tuple[float, float]], list[tuple[float, float]]]]:
        """For a picture: each row's text, depth, and the times, up to the path's end, when it holds and is unknown."""
        return [
            (str(row.node), row.depth, _drawn(row.holds, self.end), _drawn(row.unknown, self.end)) for row in self.rows
        ]

    def plot(self, ax: object = None) -> object:
        """A row for every subformula over time: filled where it holds, hatched where unknown; the verdict is marked."""
        return call_provider("plot explanation", self.lanes, self.end, ax=ax, verdict=self.verdict)

    def _repr_html_(self) -> str:
        from html import escape

        verdict = f"{self.verdict} at time 0: {self.formula}"
        return pictured(self.plot, verdict, f"<pre>{escape(str(self))}</pre>", "In words")


def _list(spans: Sequence[Span], most: int = 4) -> str:
    shown = " ".join(map(str, spans[:most]))
    return shown if len(spans) <= most else f"{shown} and {len(spans) - most} more"


def _drawn(spans: Sequence[Span], end: float) -> list[tuple[float, float]]:
    """The spans as pairs, without those that begin only after the end."""
    return [(span.start, span.stop) for span in spans if span.start < end or (span.start == end and span.closed_start)]


def _with_depth(root: Node) -> Iterable[tuple[Node, int]]:
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(node.children))


class _Clock:
    """Exact time: every number that matters as a whole number of ticks of 10^-digits."""

    def __init__(self, numbers: Iterable[float]) -> None:
        decimals = {number: Decimal(repr(number)) for number in numbers}
        self.digits = max(map(digits_after_point, decimals.values()), default=0)
        self.ticks = {number: int(decimal.scaleb(self.digits)) for number, decimal in decimals.items()}

    def position(self, time: float) -> int:
        """The position of an instant, or the shift by a bound; an infinite bound is UNBOUNDED."""
        return intervals.UNBOUNDED if math.isinf(time) else 2 * self.ticks[time]

    def spans(self, members: _Set) -> tuple[Span, ...]:
        """The intervals of a set, in the path's own unit of time."""
        return tuple(
            Span(self.time(start), self.time(stop), start % 2 == 0, stop % 2 == 1)
            for start, stop in zip_longest(members[::2], members[1::2], fillvalue=_FOREVER)
        )

    def time(self, position: int) -> float:
        return math.inf if position == _FOREVER else float(Fraction(position // 2, 10**self.digits))


def digits_after_point(decimal: Decimal) -> int:
    """How many digits a number has after the point, trailing zeros left out."""
    exponent = decimal.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


class _Evaluation:
    """Both sets of every subformula, each computed once."""

    def __init__(self, formula: Formula, path: Path) -> None:
        times = path.times.tolist()
        self.clock = _Clock([*times, path.end, *formula.measures])
        self.path = path
        self.jumps = [self.clock.position(time) for time in times]
        self.horizon = formula.horizon
        self.last = None if formula.end is None else self.clock.position(formula.end)
        self.values = _values(formula, path)
        self.sets: dict[Node, tuple[_Set, _Set]] = {}

    def both(self, node: Node) -> tuple[_Set, _Set]:
        """The times at which `node` certainly holds, and at which it possibly holds; one object where they agree."""
        if node not in self.sets:
            self.sets[node] = self._compute(node)
        return self.sets[node]

    def _compute(self, node: Node) -> tuple[_Set, _Set]:
        match node:
            case Truth(value):
                everything = _ALL if value else _NONE
                return everything, everything
            case Atom(comparison):
                return self._atom(comparison)
            case Not(operand):
                certain, possible = self.both(operand)
                return _pair(_complement, (possible,), (certain,))
            case And(operands):
                return self._fold(intervals.intersection, operands)
            case Or(operands):
                return self._fold(intervals.union, operands)
            case Eventually(window, operand):
                certain, possible = self.both(operand)
                return _pair(lambda x: self._eventually(window, x), (certain,), (possible,))
            case Until(window, left, right):
                (sure_left, maybe_left), (sure_right, maybe_right) = self.both(left), self.both(right)
                return _pair(lambda x, y: self._until(window, x, y), (sure_left, sure_right), (maybe_left, maybe_right))
        if node.meaning is node:
            raise TypeError(f"{type(node).__name__} is not a kind of formula")
        return self.both(node.meaning)

    def _fold(self, join: Callable[..., int], operands: tuple[Node, ...]) -> tuple[_Set, _Set]:
        result = self.both(operands[0])
        for operand in operands[1:]:
            certain, possible = self.both(operand)
            result = _pair(lambda x, y: _apply(join, x, y), (result[0], certain), (result[1], possible))
        return result

    def _eventually(self, window: Interval, x: _Set) -> _Set:
        x = self._cut(x)
        return _filled(len(x), intervals.eventually, x, len(x), *self._bounds(window))

    def _until(self, window: Interval, x: _Set, y: _Set) -> _Set:
        y = self._cut(y)
        room = 2 * (len(x) + len(y))
        return _filled(room, intervals.until, x, len(x), y, len(y), *self._bounds(window), [0] * room)

    def _bounds(self, window: Interval) -> tuple[int, int]:
        return self.clock.position(window.low), self.clock.position(window.high)

    def _cut(self, x: _Set) -> _Set:
        """In the finite reading, witnesses stand no later than `end`."""
        return x if self.last is None else _known_until(x, self.last, False)

    def _atom(self, comparison: Expression) -> tuple[_Set, _Set]:
        positions, environment = self._environment(comparison)
        truth = np.broadcast_to(self._truth(comparison, positions, environment), len(positions)).tolist()
        holds = _filled(len(positions), intervals.switches, positions, truth, len(positions))
        if self.path.absorbed:
            return holds, holds
        last = self.clock.position(self.path.end)
        return _known_until(holds, last, False), _known_until(holds, last, True)

    def _environment(self, comparison: Expression) -> tuple[list[int], _Environment]:
        """The positions at which the atom may change, and the values of what it reads there."""
        delays = delays_in(comparison)
        if not delays:
            return self.jumps, self.values
        shifts = {0: self.jumps}
        for lag in {leaf.lag for leaf in delays}:
            shift = self.clock.position(lag)
            shifts[shift] = [position + shift for position in self.jumps]
        positions = sorted({position for shifted in shifts.values() for position in shifted})
        current = {shift: _latest(shifted, positions) for shift, shifted in shifts.items()}
        environment: dict[str | tuple[str, float], Value] = {
            name: value[current[0]] if isinstance(value, np.ndarray) else value for name, value in self.values.items()
        }
        for leaf in delays:
            environment[leaf.name, leaf.lag] = self.values[leaf.name][current[self.clock.position(leaf.lag)]]
        return positions, environment

    def _truth(self, comparison: Expression, positions: list[int], environment: _Environment) -> Value:
        assert isinstance(comparison, Operation)
        left, right = (side.evaluate(environment) for side in comparison.operands)
        undefined = np.broadcast_to(np.isnan(left) | np.isnan(right), len(positions))
        if np.any(undefined) and (index := self._first_seen(undefined, positions)) is not None:
            time = self.clock.time(positions[index])
            state = values_text(self.path.at(min(time, self.path.end)))
            raise FormulaError(
                f"{comparison} is undefined (such as 0/0) at time {number_text(time)}",
                remedy=f"there {state}; guard the division with if(c, a, b)",
            )
        return comparison.evaluate(environment)

    def _first_seen(self, undefined: Value, positions: list[int]) -> int | None:
        """The first index at which something is undefined for a time, however short, within what is known and asked."""
        known = math.inf if self.path.absorbed else self.clock.position(self.path.end)
        for index in np.flatnonzero(undefined).tolist():
            superseded = index + 1 < len(positions) and positions[index + 1] == positions[index]
            asked = self.clock.time(positions[index]) <= self.horizon
            if not superseded and positions[index] <= known and asked:
                return int(index)
        return None


def _latest(shifted: list[int], positions: list[int]) -> list[int]:
    """For each position, the index of the last jump that has happened; before the first, the initial value's."""
    index, indices = bisect(shifted, shifted[0]) - 1, []
    for position in positions:
        while index + 1 < len(shifted) and shifted[index + 1] <= position:
            index += 1
        indices.append(index)
    return indices


def _values(formula: Formula, path: Path) -> dict[str, Value]:
    """The columns and parameters of the path, after a check that they are all that the formula reads."""
    values: dict[str, Value] = {**path.values, **{name: path.column(name) for name in path.species}}
    for name in formula.species:
        if name not in values and (amount := concentrated(name)) in values:
            values[name] = values[amount]  # as in a compartment of size 1
        if name not in values:
            hint = nearest(name, values) or f"it has {', '.join(values)}"
            raise MissingValueError(f"{name} is neither a species nor a parameter of this path\n  {hint}")
    for leaf in formula.delays:
        if leaf.name not in path.species and concentrated(leaf.name) not in path.species:
            raise MissingValueError(f"{leaf} delays {leaf.name}, which is not a species of this path")
    return values


def _pair(compute: Callable[..., _Set], certain: tuple[_Set, ...], possible: tuple[_Set, ...]) -> tuple[_Set, _Set]:
    """`compute` on both; once where nothing is in doubt."""
    first = compute(*certain)
    doubtless = all(x is y for x, y in zip(certain, possible, strict=True))
    return first, first if doubtless else compute(*possible)


def _filled(room: int, function: Callable[..., int], *arguments: object) -> _Set:
    """What a function of the algebra writes into that much room."""
    out = [0] * room
    return out[: function(*arguments, out)]


def _apply(join: Callable[..., int], x: _Set, y: _Set) -> _Set:
    return _filled(len(x) + len(y), join, x, len(x), y, len(y))


def _complement(x: _Set) -> _Set:
    return _filled(len(x) + 1, intervals.complement, x, len(x))


def _known_until(x: _Set, last: int, beyond: bool) -> _Set:
    return _filled(len(x) + 1, intervals.known_until, x, len(x), last, beyond)


def _verdict(both: tuple[_Set, _Set]) -> Verdict:
    certain, possible = (intervals.contains(x, len(x), 0) for x in both)
    return Verdict.TRUE if certain else Verdict.UNKNOWN if possible else Verdict.FALSE
