"""What the form of an expression shows of its sign, in every state: bounds, and proofs that it is never negative.

Whatever moves is a number from 0 on. A proof finds that each factor, term or choice is never negative; or that its
numerator and its denominator, multiplied out, have no negative coefficient, as in `1 - A / (A + K)`; or that the
condition of a choice keeps it so, as in `if(A > B, A - B, 0)`; or, where it reads one whole number, that it is negative
at none, as in `A * (A - 1)`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from sateen.language.expression import Expression, Name, Number, Operation

Bounds: TypeAlias = tuple[float, float]
Polynomial: TypeAlias = dict[frozenset[tuple[Expression, int]], Fraction]  # coefficients, by what is raised to what
Ratio: TypeAlias = tuple[Polynomial, Polynomial]

_ANY: Final[Bounds] = (-math.inf, math.inf)
_UNIT: Final[frozenset[tuple[Expression, int]]] = frozenset()
_MOST_TERMS: Final = 500  # of a polynomial
_MOST_POWER: Final = 20
_MOST_TRIED: Final = 1_000  # whole numbers
_NO_VALUES: Final[Mapping[str, float]] = MappingProxyType({})


def bounds(node: Expression, values: Mapping[str, float] = _NO_VALUES) -> Bounds:
    """The lowest and the highest value of a number; names without a value are numbers from 0 on.

    >>> from sateen.language.grammar import parse_expression
    >>> bounds(parse_expression("k * (2 + sin(w * X))"), {"k": 3.0})
    (3.0, 9.0)
    """
    with np.errstate(all="ignore"):
        return _bounds(node, values)


def _bounds(node: Expression, values: Mapping[str, float]) -> Bounds:
    match node:
        case Number(value):
            return value, value
        case Name(name):
            return _sound(values[name], values[name]) if name in values else (0.0, math.inf)
        case Operation("if", (_, then, otherwise)):
            return _hull((*_bounds(then, values), *_bounds(otherwise, values)))
        case Operation(symbol, operands) if symbol in _OPERATIONS:
            return reduce(_OPERATIONS[symbol], (_bounds(operand, values) for operand in operands))
        case Operation(symbol, (operand,)) if symbol in _FUNCTIONS:
            return _FUNCTIONS[symbol](_bounds(operand, values))
    return _ANY


def _sound(low: float, high: float) -> Bounds:
    return _ANY if math.isnan(low) or math.isnan(high) else (float(low), float(high))


def _hull(values: tuple[float, ...]) -> Bounds:
    return _sound(float(np.min(values)), float(np.max(values)))


def _times(a: Bounds, b: Bounds) -> Bounds:
    return _hull(tuple(x * y if x and y else 0.0 for x in a for y in b))


def _over(a: Bounds, b: Bounds) -> Bounds:
    if b[0] < 0.0 < b[1] or b == (0.0, 0.0):
        return _ANY
    if b[1] <= 0.0:
        return _over(_negative(a), _negative(b))
    return _times(a, (1.0 / b[1], 1.0 / b[0] if b[0] else math.inf))


def _power(a: Bounds, b: Bounds) -> Bounds:
    ends = [float(np.power(x, y)) for x in a for y in b]
    if a[0] >= 0.0:  # monotone in the base and in the exponent
        return _hull(tuple(ends))
    if b[0] != b[1] or not b[0].is_integer() or b[0] < 0.0:
        return _ANY
    return _hull(tuple(ends)) if b[0] % 2 else (0.0, max(ends))


def _negative(a: Bounds) -> Bounds:
    return -a[1], -a[0]


def _monotone(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    return lambda a: _sound(float(function(a[0])), float(function(a[1])))


def _wave(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    return lambda a: _sound(*(float(function(a[0])),) * 2) if a[0] == a[1] else (-1.0, 1.0)


def _from_0(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    return lambda a: _monotone(function)((max(a[0], 0.0), max(a[1], 0.0)))


_OPERATIONS: Final[Mapping[str, Callable[[Bounds, Bounds], Bounds]]] = {
    "+": lambda a, b: _sound(a[0] + b[0], a[1] + b[1]),
    "*": _times,
    "/": _over,
    "^": _power,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
_FUNCTIONS: Final[Mapping[str, Callable[[Bounds], Bounds]]] = {
    "-": _negative,
    "abs": lambda a: (max(a[0], -a[1], 0.0), max(-a[0], a[1])),
    "exp": _monotone(np.exp),
    "floor": _monotone(np.floor),
    "ceil": _monotone(np.ceil),
    "log": _from_0(np.log),
    "sqrt": _from_0(np.sqrt),
    "sin": _wave(np.sin),
    "cos": _wave(np.cos),
}


@dataclass(frozen=True, slots=True)
class Signs:
    """Proofs where names have these `values`; the others move, in whole numbers unless they are `real`."""

    values: Mapping[str, float]
    real: Set[str] = frozenset()
    _proved: dict[tuple[Expression, ...], bool] = field(default_factory=dict, repr=False, compare=False)
    _ratios: dict[Expression, Ratio] = field(default_factory=dict, repr=False, compare=False)

    def never_negative(self, node: Expression, given: tuple[Expression, ...] = ()) -> bool:
        """Whether a proof is found that a number is negative in no state in which those `given` are not.

        >>> from sateen.language.grammar import parse_expression
        >>> signs = Signs({"k": 2.0, "K": 10.0})
        >>> signs.never_negative(parse_expression("k * A * (1 - B / (B + K))"))
        True
        >>> signs.never_negative(parse_expression("k * A * (1 - A / K)"))
        False
        """
        key = (node, *given)
        if key not in self._proved:
            self._proved[key] = bounds(node, self.values)[0] >= 0.0 or self._is_proved(node, given)
        return self._proved[key]

    def _is_proved(self, node: Expression, given: tuple[Expression, ...]) -> bool:
        match node:
            case Operation("if", (condition, then, otherwise)):
                holds, fails = ((*given, *_implied(condition, truth)) for truth in (True, False))
                return self.never_negative(then, holds) and self.never_negative(otherwise, fails)
            case Operation("*" | "/") if self._factor_by_factor(node, given):
                return True
            case Operation("+", terms) if all(self.never_negative(term, given) for term in terms):
                return True
        return self._multiplied_out(node, given)

    def _factor_by_factor(self, node: Expression, given: tuple[Expression, ...]) -> bool:
        """Whether the factors that read the same names are never negative, each or all together."""
        above, below = factors(node)
        groups: dict[frozenset[str], list[Expression]] = defaultdict(list)
        for factor, times in Counter((*above, *below)).items():  # a quotient has the sign of the product
            if times % 2:
                groups[frozenset(set(factor.names) - self.values.keys())].append(factor)
        return all(
            all(self.never_negative(factor, given) for factor in group) or self._multiplied_out(product(group), given)
            for group in groups.values()
        )

    def _multiplied_out(self, node: Expression, given: tuple[Expression, ...]) -> bool:
        """Whether the numerator over the denominator, as polynomials, is never negative."""
        try:
            above, below = self._ratio(node)
            if not self._has_no_minus(below):
                above, below = _scaled(above, -1), _scaled(below, -1)
            if not self._has_no_minus(below):
                return False
            return any(map(self._is_positive, (above, *self._without(above, given))))
        except _TooLarge:
            return False

    def _without(self, polynomial: Polynomial, given: tuple[Expression, ...]) -> Iterator[Polynomial]:
        """The polynomial less a multiple of what is known not to be negative, which makes a minus vanish."""
        for each in given:
            known, below = self._ratio(each)
            if self._has_no_minus(below):
                for term, factor in polynomial.items():
                    if factor < 0 and known.get(term, 0) < 0:
                        yield _added(polynomial, _scaled(known, -factor / known[term]))

    def _is_positive(self, polynomial: Polynomial) -> bool:
        return self._has_no_minus(polynomial) or self._is_positive_at_whole_numbers(polynomial)

    def _has_no_minus(self, polynomial: Polynomial) -> bool:
        """Whether each term is a product of what is not negative."""
        return all(
            factor >= 0 and all(power % 2 == 0 or bounds(each, self.values)[0] >= 0.0 for each, power in term)
            for term, factor in polynomial.items()
        )

    def _is_positive_at_whole_numbers(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial of one whole number is at least 0 up to where its largest power outweighs the rest."""
        read = {each for term in polynomial for each, _ in term}
        if len(read) != 1 or not all(isinstance(each, Name) and each.name not in self.real for each in read):
            return False
        by_power = {sum(power for _, power in term): factor for term, factor in polynomial.items() if factor}
        degree = max(by_power)
        most = by_power[degree]
        # All roots lie below (Fujiwara).
        sizes = [
            float(abs(factor / most)) ** (1.0 / (degree - power))
            for power, factor in by_power.items()
            if power != degree
        ]
        last = 1.0 + 2.0 * max(sizes, default=0.0)
        if most < 0 or last > _MOST_TRIED:
            return False
        counts = range(math.ceil(last) + 1)
        return all(sum(factor * n**power for power, factor in by_power.items()) >= 0 for n in counts)

    def _ratio(self, node: Expression) -> Ratio:
        """An expression as a polynomial over another, of its names and of what is no polynomial."""
        if node not in self._ratios:
            self._ratios[node] = self._made_ratio(node)
        return self._ratios[node]

    def _made_ratio(self, node: Expression) -> Ratio:
        value = self.value(node)
        if value is not None:
            return {_UNIT: Fraction(repr(value))}, {_UNIT: Fraction(1)}
        match node:
            case Operation("+", terms):
                return reduce(_summed, map(self._ratio, terms))
            case Operation("-", (operand,)):
                above, below = self._ratio(operand)
                return _scaled(above, -1), below
            case Operation("*", (left, right)):
                (a, b), (c, d) = self._ratio(left), self._ratio(right)
                return _multiplied(a, c), _multiplied(b, d)
            case Operation("/", (left, right)):
                (a, b), (c, d) = self._ratio(left), self._ratio(right)
                return _multiplied(a, d), _multiplied(b, c)
            case Operation("^", (base, exponent)) if self.value(exponent) in range(1, _MOST_POWER):
                powers = [self._ratio(base)] * int(self.value(exponent) or 1)
                return reduce(lambda x, y: (_multiplied(x[0], y[0]), _multiplied(x[1], y[1])), powers)
        return {frozenset({(node, 1)}): Fraction(1)}, {_UNIT: Fraction(1)}

    def value(self, node: Expression) -> float | None:
        """The value of what does not move; None for anything else, and where it is no finite number."""
        if not self.values.keys() >= set(node.names):
            return None
        value = float(node.evaluate(self.values))
        return value if math.isfinite(value) else None


class _TooLarge(Exception):
    """A polynomial has too many terms to be worked with."""


def _added(a: Polynomial, b: Polynomial) -> Polynomial:
    result = dict(a)
    for term, factor in b.items():
        result[term] = result.get(term, 0) + factor
        if not result[term]:
            del result[term]
    if len(result) > _MOST_TERMS:
        raise _TooLarge
    return result


def _scaled(polynomial: Polynomial, by: Fraction | int) -> Polynomial:
    return {term: factor * by for term, factor in polynomial.items()}


def _multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) * len(b) > _MOST_TERMS:
        raise _TooLarge
    result: defaultdict[frozenset[tuple[Expression, int]], Fraction] = defaultdict(Fraction)
    for term, factor in a.items():
        for other, times in b.items():
            powers = Counter(dict(term))
            powers.update(dict(other))
            result[frozenset(powers.items())] += factor * times
    return {term: factor for term, factor in result.items() if factor}


def _summed(x: Ratio, y: Ratio) -> Ratio:
    (a, b), (c, d) = x, y
    if b == d:
        return _added(a, c), b
    return _added(_multiplied(a, d), _multiplied(c, b)), _multiplied(b, d)


def _implied(condition: Expression, truth: bool) -> tuple[Expression, ...]:
    """What is not negative where a condition holds, or fails."""
    match condition:
        case Operation("not", (operand,)):
            return _implied(operand, not truth)
        case Operation("and" | "or" as symbol, operands) if truth == (symbol == "and"):
            return tuple(each for operand in operands for each in _implied(operand, truth))
        case Operation("<" | "<=" | ">" | ">=" as symbol, (left, right)):
            less, more = (left, right) if truth == symbol.startswith("<") else (right, left)
            return (Operation("+", (more, Operation("-", (less,)))),)
        case Operation("==" | "!=" as symbol, (left, right)) if truth == (symbol == "=="):
            return _implied(Operation("<=", (left, right)), True) + _implied(Operation(">=", (left, right)), True)
    return ()


def factors(node: Expression) -> tuple[list[Expression], list[Expression]]:
    """What an expression multiplies, and what it divides by, from left to right; whole powers are written out."""
    match node:
        case Operation("*" | "/" as symbol, (left, right)):
            (a, b), (c, d) = factors(left), factors(right)
            return (a + c, b + d) if symbol == "*" else (a + d, b + c)
        case Operation("^", (base, Number(power))) if power in range(1, _MOST_POWER):
            above, below = factors(base)
            return above * int(power), below * int(power)
    return [node], []


def product(of: list[Expression]) -> Expression:
    """The product of factors, from the left; 1 where there are none."""
    return reduce(lambda left, right: Operation("*", (left, right)), of) if of else Number(1.0)


def cancelled(node: Expression, may: Callable[[Expression], bool]) -> Expression:
    """A product or a quotient without the factors that it both multiplies and divides by, as far as they `may` go.

    >>> from sateen.language.grammar import parse_expression
    >>> print(cancelled(parse_expression("A * B * (C / (A * B) / K)"), lambda factor: True))
    C / K
    """
    above, below = factors(node)
    both = Counter(filter(may, above)) & Counter(below)
    if not both:
        return node
    kept_above, kept_below = (_removed(side, both) for side in (above, below))
    return Operation("/", (product(kept_above), product(kept_below))) if kept_below else product(kept_above)


def _removed(side: list[Expression], both: Mapping[Expression, int]) -> list[Expression]:
    left, kept = Counter(both), []
    for factor in side:
        if left[factor]:
            left[factor] -= 1
        else:
            kept.append(factor)
    return kept
