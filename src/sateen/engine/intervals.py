"""Between which values an expression lies when its names lie in intervals: interval arithmetic, rounded outward.

A number is a pair (lowest, highest) of arrays, a condition a pair (surely, possibly) of arrays of truth values. Every
operation widens its result by at least its own rounding error, so that the pair holds the true values, which real
arithmetic gives. What is exact stays exact: whole numbers below 2^53, and zero, which decides whether a transition can
fire. Where an operation may be undefined the pair is (-inf, inf).

>>> import numpy as np
>>> from sateen.language.grammar import parse_expression
>>> low, high = interval(parse_expression("k * X"), {"k": (np.array(1.0), np.array(2.0)), "X": (np.array(3.0),) * 2})
>>> float(low), float(high)
(3.0, 6.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final, TypeAlias

import numpy as np

from sateen.core.types import Array, FloatArray
from sateen.language.expression import (
    COMPARISONS,
    LARGEST_WHOLE,
    Boolean,
    Expression,
    Name,
    Number,
    Operation,
    is_condition,
)

Interval: TypeAlias = tuple[FloatArray, FloatArray]
Pair: TypeAlias = tuple[Array, Array]  # an Interval, or what is surely and what is possibly true

_ULPS: Final = 8  # that exp, log and powers of the mathematical library may be wrong by, and some more
_PRODUCT_ULPS: Final = 16  # of a whole power below 64: at most 11 products


def interval(expression: Expression, values: Mapping[str, Interval]) -> Interval:
    """The lowest and the highest value of an expression where each name lies in the interval in `values`."""
    with np.errstate(all="ignore"):
        low, high = _pair(expression, values)
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def product(a: Interval, b: Interval) -> Interval:
    """The products of what lies in two intervals."""
    with np.errstate(all="ignore"):
        return _times(a, b)


def total(a: Interval, b: Interval) -> Interval:
    """The sums of what lies in two intervals."""
    with np.errstate(all="ignore"):
        return _plus(a, b)


def _pair(expression: Expression, values: Mapping[str, Interval]) -> Pair:
    match expression:
        case Number(literal):
            return np.float64(literal), np.float64(literal)  # type: ignore[return-value]
        case Boolean(truth):
            return np.bool_(truth), np.bool_(truth)  # type: ignore[return-value]
        case Name(name):
            return values[name]
        case Operation("if", (condition, then, otherwise)):
            return _chosen(_pair(condition, values), _pair(then, values), _pair(otherwise, values), is_condition(then))
        case Operation("^", (base, Number(exponent))) if exponent in range(64):
            return _whole_power(_pair(base, values), int(exponent))
        case Operation(symbol, operands):
            parts = [_pair(operand, values) for operand in operands]
            if symbol in COMPARISONS:
                return _compared(symbol, *parts)
            return reduce(_OPERATIONS[symbol], parts) if len(parts) > 1 else _FUNCTIONS[symbol](parts[0])
    raise TypeError(f"{type(expression).__name__} has no interval")


def _down(values: FloatArray, ulps: int = 1) -> FloatArray:
    for _ in range(ulps):
        values = np.nextafter(values, -np.inf)
    return values


def _up(values: FloatArray, ulps: int = 1) -> FloatArray:
    for _ in range(ulps):
        values = np.nextafter(values, np.inf)
    return values


def _sound(low: FloatArray, high: FloatArray) -> Interval:
    """The interval, or (-inf, inf) where an end is no number."""
    unknown = np.isnan(low) | np.isnan(high)
    return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)


def _plus(a: Pair, b: Pair) -> Interval:
    ends = []
    for x, y, away in ((a[0], b[0], _down), (a[1], b[1], _up)):
        rounded = x + y
        back = rounded - x
        lost = (x - (rounded - back)) + (y - back)  # what the sum lost by rounding, exactly
        ends.append(np.where(lost == 0.0, rounded, away(rounded)))
    return _sound(*ends)


def _negative(a: Pair) -> Interval:
    return -a[1], -a[0]


def _is_zero(a: Pair) -> Array:
    return np.asarray((a[0] == 0.0) & (a[1] == 0.0))


def _times(a: Pair, b: Pair) -> Interval:
    lows, highs = [], []
    for x in a:
        for y in b:
            rounded = x * y
            whole = (x == np.floor(x)) & (y == np.floor(y)) & (np.abs(rounded) < LARGEST_WHOLE)
            exact = whole | (x == 0.0) | (y == 0.0)
            lows.append(np.where(exact, rounded, _down(rounded)))
            highs.append(np.where(exact, rounded, _up(rounded)))
    low, high = _sound(reduce(np.minimum, lows), reduce(np.maximum, highs))
    positive = (a[0] >= 0.0) & (b[0] >= 0.0)  # then no product is below 0, also where one is too small for a double
    low = np.where(positive, np.maximum(low, 0.0), low)
    finite = np.isfinite(a[0]) & np.isfinite(a[1]) & np.isfinite(b[0]) & np.isfinite(b[1])
    zero = (_is_zero(a) | _is_zero(b)) & finite
    return np.where(zero, 0.0, low), np.where(zero, 0.0, high)


def _over(a: Pair, b: Pair) -> Interval:
    crosses = (b[0] <= 0.0) & (b[1] >= 0.0)
    safe = tuple(np.where(crosses, 1.0, end) for end in b)
    quotients = [x / y for x in a for y in safe]
    low, high = _sound(_down(reduce(np.minimum, quotients)), _up(reduce(np.maximum, quotients)))
    positive = (a[0] >= 0.0) & (safe[0] > 0.0)
    zero = _is_zero(a)
    low = np.where(zero, 0.0, np.where(positive, np.maximum(low, 0.0), low))
    high = np.where(zero, 0.0, high)
    return np.where(crosses, -np.inf, low), np.where(crosses, np.inf, high)


def _whole_power(a: Pair, power: int) -> Interval:
    if power == 0:
        return np.ones_like(a[0]), np.ones_like(a[1])
    if power == 1:
        return a
    ends = [_raised(end, power) for end in a]
    if power % 2:
        low, high = ends
        inside = np.zeros_like(low, dtype=np.bool_)
    else:
        low, high = np.minimum(*ends), np.maximum(*ends)
        inside = (a[0] <= 0.0) & (a[1] >= 0.0)
    whole = (a[0] == np.floor(a[0])) & (a[1] == np.floor(a[1])) & (np.maximum(*map(np.abs, ends)) < LARGEST_WHOLE)
    wide_low, wide_high = _down(low, _PRODUCT_ULPS), _up(high, _PRODUCT_ULPS)
    low, high = np.where(whole, low, wide_low), np.where(whole, high, wide_high)
    low = np.where(inside, 0.0, np.where((a[0] >= 0.0) | (power % 2 == 0), np.maximum(low, 0.0), low))
    return _sound(low, np.where(_is_zero(a), 0.0, high))


def _raised(base: FloatArray, power: int) -> FloatArray:
    """A whole power by products, which is exact where the result is a whole number below 2^53."""
    result = np.ones_like(base)
    while power:
        result = result * base if power & 1 else result
        base, power = base * base, power >> 1
    return result


def _power(a: Pair, b: Pair) -> Interval:
    """Powers of what is not negative: they are monotone in the base and in the exponent, so the corners are extreme."""
    corners = [np.power(x, y) for x in a for y in b]
    low = np.maximum(_down(reduce(np.minimum, corners), _ULPS), 0.0)
    high = _up(reduce(np.maximum, corners), _ULPS)
    doubtful = (a[0] < 0.0) | ((a[0] == 0.0) & (b[0] <= 0.0))
    low, high = _sound(low, np.where(_is_zero(a), 0.0, high))
    return np.where(doubtful, -np.inf, low), np.where(doubtful, np.inf, high)


def _increasing(function: Callable[[FloatArray], FloatArray], ulps: int) -> Callable[[Pair], Interval]:
    return lambda a: _sound(_down(function(a[0]), ulps), _up(function(a[1]), ulps))


def _sqrt(a: Pair) -> Interval:
    low, high = _increasing(np.sqrt, 1)(a)
    low, high = np.where(a[0] >= 0.0, np.maximum(low, 0.0), low), np.where(_is_zero(a), 0.0, high)
    return low, high


def _exp(a: Pair) -> Interval:
    low, high = _increasing(np.exp, _ULPS)(a)
    return np.maximum(low, 0.0), high


def _wave(function: Callable[[FloatArray], FloatArray], peak: float) -> Callable[[Pair], Interval]:
    """A sine, whose peaks and troughs lie half a turn apart. Where it may have one it has; from 1e9 on, who knows."""

    def within(a: Pair, place: float) -> Array:
        first, last = ((end - place) / (2.0 * np.pi) for end in a)
        sure = (np.abs(a[0]) < 1e9) & (np.abs(a[1]) < 1e9)
        return ~(sure & (np.floor(last + 1e-6) < np.ceil(first - 1e-6)))

    def found(a: Pair) -> Interval:
        low, high = np.minimum(*map(function, a)), np.maximum(*map(function, a))
        low, high = np.maximum(_down(low, _ULPS), -1.0), np.minimum(_up(high, _ULPS), 1.0)
        return np.where(within(a, peak - np.pi), -1.0, low), np.where(within(a, peak), 1.0, high)

    return found


def _abs(a: Pair) -> Interval:
    low = np.where((a[0] <= 0.0) & (a[1] >= 0.0), 0.0, np.minimum(np.abs(a[0]), np.abs(a[1])))
    return low, np.maximum(np.abs(a[0]), np.abs(a[1]))


def _compared(symbol: str, a: Pair, b: Pair) -> Pair:
    match symbol:
        case "<":
            return a[1] < b[0], a[0] < b[1]
        case "<=":
            return a[1] <= b[0], a[0] <= b[1]
        case ">" | ">=":
            return _compared(symbol.replace(">", "<"), b, a)
    surely = (a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0])
    possibly = (a[0] <= b[1]) & (b[0] <= a[1])
    return (surely, possibly) if symbol == "==" else (~possibly, ~surely)


def _chosen(condition: Pair, then: Pair, otherwise: Pair, truth: bool) -> Pair:
    surely, possibly = condition
    if truth:
        low = np.where(surely, then[0], np.where(possibly, then[0] & otherwise[0], otherwise[0]))
        return low, np.where(surely, then[1], np.where(possibly, then[1] | otherwise[1], otherwise[1]))
    low = np.where(surely, then[0], np.where(possibly, np.minimum(then[0], otherwise[0]), otherwise[0]))
    return low, np.where(surely, then[1], np.where(possibly, np.maximum(then[1], otherwise[1]), otherwise[1]))


_OPERATIONS: Final[Mapping[str, Callable[[Pair, Pair], Pair]]] = {
    "+": _plus,
    "*": _times,
    "/": _over,
    "^": _power,
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "and": lambda a, b: (a[0] & b[0], a[1] & b[1]),
    "or": lambda a, b: (a[0] | b[0], a[1] | b[1]),
}
_FUNCTIONS: Final[Mapping[str, Callable[[Pair], Pair]]] = {
    "-": _negative,
    "not": lambda a: (~a[1], ~a[0]),
    "abs": _abs,
    "exp": _exp,
    "log": _increasing(np.log, _ULPS),
    "sqrt": _sqrt,
    "sin": _wave(np.sin, 0.5 * np.pi),
    "cos": _wave(np.cos, 0.0),
    "floor": lambda a: (np.floor(a[0]), np.floor(a[1])),
    "ceil": lambda a: (np.ceil(a[0]), np.ceil(a[1])),
}
