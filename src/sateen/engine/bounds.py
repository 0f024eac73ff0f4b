"""What counts and rates can become in a run of limited length, so that most kernels need not check them at every event.

With M the largest count so far, most assignments are at most M plus a constant, and a jump adds at most a constant. So
counts grow by a bounded step an event. Where that shows that they stay below 2^53, they stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.types import FloatArray
from sateen.engine.events import MOST_ROUNDS
from sateen.engine.rates import SafeRate
from sateen.language.expression import (
    LARGEST_WHOLE,
    Delayed,
    Expression,
    Name,
    Number,
    Operation,
    is_condition,
    joined_parts,
)
from sateen.model.model import Model, Variable

_LARGEST: Final = 1e290  # of one rate: there are not 1e18 of them
_MOST_FACTORS: Final = 18  # counts whose product is still a number


@dataclass(frozen=True, slots=True)
class _Line:
    """slope * M + offset; neither is negative."""

    slope: float
    offset: float

    def __add__(self, other: _Line) -> _Line:
        return _Line(self.slope + other.slope, self.offset + other.offset)

    def scaled(self, factor: float) -> _Line:
        """The line times a number from 0 on."""
        return _Line(*(part * factor if part else 0.0 for part in (self.slope, self.offset)))


@dataclass(frozen=True, slots=True)
class _Reach:
    """An expression lies between -low and high, where M is the largest count."""

    low: _Line
    high: _Line

    @property
    def size(self) -> _Line:
        """A bound on its absolute value."""
        return _upper(self.low, self.high)


_ZERO: Final = _Line(0.0, 0.0)
_ANYTHING: Final = _Reach(_Line(math.inf, math.inf), _Line(math.inf, math.inf))


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What a kernel does not check, because it cannot go wrong while counts and parameters are not too large: rates
    that are sums of products, and sides of atoms."""

    rates: tuple[SafeRate, ...]
    sides: tuple[Expression, ...]

    def may_fail(self, model: Model, values: Mapping[str, FloatArray], max_events: int) -> bool:
        """Whether, within `max_events` events under any of the `values`, a count might reach 2^53, a rate be negative
        or infinite, or a side undefined."""
        largest = largest_count(model, values, max_events)
        if not largest < LARGEST_WHOLE:
            return True
        sides_are_safe = all(_size(side, model, values, largest) <= _LARGEST for side in self.sides)
        return not (sides_are_safe and all(_is_safe(rate, values, largest) for rate in self.rates))


def largest_count(model: Model, values: Mapping[str, FloatArray], max_events: int) -> float:
    """A bound on every count of a run of `max_events` events, infinite where none is known."""
    known = {variable.name: _reach_of(variable) for variable in model.variables}
    start, step, rounds_step = 0.0, 0.0, 0.0
    for variable in _read_by_counts(model):
        start = max(start, _largest(variable.initial.evaluate(values)))
        for transition in model.transitions:
            step = max(step, abs(transition.change.get(variable.name, 0)))
            inside = {**known, **_guarded(transition.guard, known, values)}
            reaches = [_reach(value, inside, values) for name, value in transition.update if name == variable.name]
            start, step = _grown(start, step, reaches)
        for event in model.events:
            reaches = [_reach(value, known, values) for name, value in event.update if name == variable.name]
            start, rounds_step = _grown(start, rounds_step, reaches)
    # A jump adds the differences between the changes of the transitions, one after the other, and may go that far.
    detour = 2 * sum(abs(change) for transition in model.transitions for change in transition.change.values())
    # An instant has two sides, each with its rounds; time 0 is one more.
    return start + detour + (max_events + 1) * (step + 2 * (MOST_ROUNDS + 1) * rounds_step)


def _is_safe(rate: SafeRate, values: Mapping[str, FloatArray], largest: float) -> bool:
    """Whether a sum of products of counts up to `largest` can be neither negative nor infinite."""
    for coefficient, counts in rate:
        factor = np.asarray(coefficient.evaluate(values))
        if counts > _MOST_FACTORS or not np.all((factor >= 0.0) & (factor <= _LARGEST / max(largest, 1.0) ** counts)):
            return False
    return True


def _size(side: Expression, model: Model, values: Mapping[str, FloatArray], largest: float) -> float:
    """A bound on the absolute value of a side, and of every part of it, where counts are up to `largest`."""
    if isinstance(side, Name | Delayed) and side.name in model.species:
        return largest
    if set(model.species).isdisjoint(side.names):
        return _largest(side.evaluate(values))
    parts = [_size(part, model, values, largest) for part in side.children if not is_condition(part)]
    product = isinstance(side, Operation) and side.symbol == "*"
    return math.prod(max(part, 1.0) for part in parts) if product else sum(parts, 1.0)


def is_whole(expression: Expression, whole: frozenset[str]) -> bool:
    """Whether the form of an expression shows that its value is a whole number where those of the names `whole` are."""
    match expression:
        case Number(value):
            return float(value).is_integer()
        case Name(name):
            return name in whole
        case Operation("floor" | "ceil", _):
            return True
        case Operation("if", (_, then, otherwise)):
            return is_whole(then, whole) and is_whole(otherwise, whole)
        case Operation("^", (base, Number(power))):
            return is_whole(base, whole) and float(power).is_integer()
        case Operation("+" | "*" | "-" | "min" | "max" | "abs", operands):
            return all(is_whole(operand, whole) for operand in operands)
    return False


def _grown(start: float, step: float, reaches: Iterable[_Reach]) -> tuple[float, float]:
    """The greatest fixed value, and the greatest step, with further values that are assigned."""
    for reach in reaches:
        size = reach.size
        if size.slope > 1.0:
            step = math.inf
        elif size.slope:
            step = max(step, size.offset)
        else:
            start = max(start, size.offset)
    return start, step


def _read_by_counts(model: Model) -> list[Variable]:
    """The counts, and the real numbers that assignments to counts read, directly or not."""
    updates = [pair for each in model.transitions for pair in each.update]
    updates += [pair for each in model.events for pair in each.update]
    read = {variable.name for variable in model.variables if variable.whole}
    while more := {name for target, value in updates if target in read for name in value.names} - read:
        read |= more
    return [variable for variable in model.variables if variable.name in read]


def _reach_of(variable: Variable) -> _Reach:
    """A variable lies within its bounds, which are checked where a change might leave them."""
    low = _Line(1.0, 0.0) if variable.low is None else _Line(0.0, float(max(-variable.low, 0)))
    high = _Line(1.0, 0.0) if variable.high is None else _Line(0.0, float(max(variable.high, 0)))
    return _Reach(low, high)


def _guarded(
    guard: Expression | None, known: Mapping[str, _Reach], values: Mapping[str, FloatArray]
) -> dict[str, _Reach]:
    """The counts that a guard such as `X < 100 and Y == 0` bounds from above where it holds."""
    bounded = {}
    for part in () if guard is None else joined_parts("and", guard):
        match part:
            case Operation("<" | "<=" | "==", (Name(name), bound)) if values.keys() >= set(bound.names):
                bounded[name] = _Line(0.0, _largest(bound.evaluate(values)))
    return {name: _Reach(known[name].low, line) for name, line in bounded.items() if name in known}


def _reach(expression: Expression, known: Mapping[str, _Reach], values: Mapping[str, FloatArray]) -> _Reach:
    """Between what values an expression lies."""
    if is_condition(expression):
        return _ANYTHING
    if known.keys().isdisjoint(expression.names):
        value = np.asarray(expression.evaluate(values))
        size = _Line(0.0, _largest(value))
        return _Reach(_ZERO if np.all(value >= 0) else size, size)
    if isinstance(expression, Name):
        return known[expression.name]
    if not isinstance(expression, Operation):
        return _ANYTHING
    if expression.symbol == "if":
        _, *branches = (_reach(operand, known, values) for operand in expression.operands)
        return _Reach(_upper(*(each.low for each in branches)), _upper(*(each.high for each in branches)))
    parts = [_reach(operand, known, values) for operand in expression.operands]
    match expression.symbol:
        case "+":
            return _Reach(_total(part.low for part in parts), _total(part.high for part in parts))
        case "-":
            return _Reach(parts[0].high, parts[0].low)
        case "min":
            return _Reach(_upper(*(part.low for part in parts)), _least(part.high for part in parts))
        case "max":
            return _Reach(_least(part.low for part in parts), _upper(*(part.high for part in parts)))
        case "abs":
            return _Reach(_ZERO, parts[0].size)
        case "floor" | "ceil":
            spare = _Line(0.0, 1.0)
            return _Reach(parts[0].low if parts[0].low == _ZERO else parts[0].low + spare, parts[0].high + spare)
        case "*":
            return _product(parts[0], parts[1])
        case "/" if known.keys().isdisjoint(expression.operands[1].names):
            divisor = np.abs(expression.operands[1].evaluate(values))
            size = parts[0].size.scaled(1.0 / float(np.min(divisor)) if np.all(divisor > 0) else math.inf)
            return _Reach(size, size)
    return _ANYTHING


def _product(left: _Reach, right: _Reach) -> _Reach:
    size, other = sorted((left.size, right.size), key=lambda line: line.slope)
    if size.slope:
        return _ANYTHING
    product = other.scaled(size.offset)
    return _Reach(_ZERO if left.low == right.low == _ZERO else product, product)


def _total(lines: Iterable[_Line]) -> _Line:
    return sum(lines, _ZERO)


def _upper(*lines: _Line) -> _Line:
    """A line above all of these."""
    return _Line(max(line.slope for line in lines), max(line.offset for line in lines))


def _least(lines: Iterable[_Line]) -> _Line:
    return min(lines, key=lambda line: (line.slope, line.offset))


def _largest(values: FloatArray) -> float:
    """The largest absolute value, infinite where one is no number."""
    return float(np.nan_to_num(np.max(np.abs(values), initial=0.0), nan=math.inf, posinf=math.inf))
