"""Rates that may be negative, split into a way forward and a way back.

A law such as `kf*A*B - kr*C` is a net rate: a difference of two rates, of which a Markov chain needs each. Its form
alone decides: what is proved to be negative in no state is a rate; any other law is split. Sums are taken apart at
their signs, and a product or a quotient of a difference is the difference of products or quotients. Names count as
positive, except constants whose value in the file is negative. What this gives is checked by numbers: both ways must be
rates, and their difference must be the law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.core.seeds import stream
from sateen.language.expression import Expression, Number, Operation, Values, in_order, number
from sateen.model.sbml_math import sum_of
from sateen.model.signs import Signs, bounds, cancelled

Parts: TypeAlias = tuple[Expression | None, Expression | None]  # what is added, and what is taken away

_STATES: Final = 100  # at which a split is checked
_SMALL: Final = 10  # counts up to here are among them often
_FEWEST: Final = 3  # counts from 0 on that each name has at least once
_LARGEST: Final = 1e6
_TOLERANCE: Final = 1e-12  # of the sum of the two ways
_ONE: Final = Number(1.0)
_ZERO: Final = Number(0.0)
# What is never negative about a number that is rounded.
_ROUNDINGS: Final[Mapping[str, Callable[[Expression, Expression], Parts]]] = {
    "floor": lambda rounded, number: (number, Operation("-", (rounded,))),
    "ceil": lambda rounded, number: (rounded, Operation("-", (number,))),
}


@dataclass(frozen=True, slots=True)
class Split:
    """The two ways of a law that is not proved to be a rate; one of them is 0 where its form does not show it.

    `exact` says whether both are rates whose difference is the law, and `negative` whether the law is below 0 at one of
    the states where that is checked.
    """

    forward: Expression
    backward: Expression
    exact: bool
    negative: bool

    @property
    def one_way(self) -> bool:
        """Whether the form shows one way only."""
        return _ZERO in (self.forward, self.backward)


@dataclass(frozen=True, slots=True)
class Splitter:
    """How laws are split: `values` are of all names that do not move, `scale` the molecules in a unit of amount.

    What moves is a whole number, unless it is `real`; `varied` are those of the values that a user may change.
    """

    values: Mapping[str, float]
    scale: float = 1.0
    real: Set[str] = frozenset()
    varied: Set[str] = frozenset()

    def split(self, law: Expression) -> Split | None:
        """The two ways of a law; None where it is proved to be negative in no state."""
        signs = Signs(self.values, self.real)
        if self._is_rate(law, signs):
            return None
        found = self._ways(law, signs)
        if found.one_way and found.negative:  # as b*X - d*X with b < d is
            other = self._ways(law, self._free)
            return other if other.exact else found
        return found

    def depends(self, law: Expression) -> bool:
        """Whether a law whose form shows two ways is proved to be a rate by the values of what may be varied alone.

        Numbers such as 1 - p count as they are: they are one factor, and not two ways.
        """
        plain = self._computed(law)
        return not self._is_rate(plain, self._free) and self._ways(plain, self._free).exact

    @property
    def _free(self) -> Signs:
        """Proofs for all values of what may be varied, except that what is negative stays so."""
        values = {name: value for name, value in self.values.items() if name not in self.varied or value < 0.0}
        return Signs(values, self.real)

    def _computed(self, node: Expression) -> Expression:
        """An expression with a number in the place of each operation on what does not move."""
        if not isinstance(node, Operation):
            return node
        value = None if node.symbol == "-" else Signs(self.values).value(node)
        return Operation(node.symbol, tuple(map(self._computed, node.operands))) if value is None else number(value)

    def _is_rate(self, law: Expression, signs: Signs) -> bool:
        return signs.never_negative(law) or self._is_remainder(law, signs)

    def _ways(self, law: Expression, signs: Signs) -> Split:
        """The two ways that the form of a law shows, and what numbers say of them."""
        mixed: list[Expression] = []
        added, taken = (part or _ZERO for part in self._parts(law, signs, mixed))
        state = self._states(law)
        net, forward, backward = (self._at(each, state) for each in (law, added, taken))
        known = np.isfinite(net) & np.isfinite(forward) & np.isfinite(backward)
        both = (forward + backward)[known]
        exact = known.sum() >= _STATES // 2 and bool((forward[known] >= 0).all() and (backward[known] >= 0).all())
        gap = np.abs(forward[known] - backward[known] - net[known])
        exact = exact and bool((gap <= _TOLERANCE * both).all()) and _ZERO not in (added, taken) and not mixed
        return Split(added, taken, exact, bool((net < 0).any()))

    def _is_remainder(self, law: Expression, signs: Signs) -> bool:
        """Whether rounding keeps a law from being negative, as in `rem(A, 2)`, which is A - 2 * floor(A / 2)."""
        plain = self._settled(law)
        rounded = [each for each in in_order(plain) if isinstance(each, Operation) and each.symbol in _ROUNDINGS]
        given = [_sum(*_ROUNDINGS[each.symbol](each, each.operands[0])) for each in rounded]
        return bool(given) and signs.never_negative(plain, tuple(each for each in given if each is not None))

    def _settled(self, node: Expression) -> Expression:
        """An expression without the choices that bounds decide."""
        if not isinstance(node, Operation):
            return node
        operands = tuple(map(self._settled, node.operands))
        truth = self._truth(operands[0]) if node.symbol == "if" else None
        return Operation(node.symbol, operands) if truth is None else operands[1 if truth else 2]

    def _truth(self, condition: Expression) -> bool | None:
        """Whether a condition holds in every state or in none; None where bounds show neither."""
        match condition:
            case Operation("not", (operand,)):
                truth = self._truth(operand)
                return None if truth is None else not truth
            case Operation("and" | "or" as symbol, operands):
                parts, decisive = list(map(self._truth, operands)), symbol == "or"
                return decisive if decisive in parts else None if None in parts else not decisive
            case Operation("<" | "<=" | ">" | ">=" as symbol, (left, right)):
                less, more = (left, right) if symbol.startswith("<") else (right, left)
                low, high = bounds(Operation("+", (more, Operation("-", (less,)))), self.values)
                if symbol.endswith("="):
                    return True if low >= 0.0 else False if high < 0.0 else None
                return True if low > 0.0 else False if high <= 0.0 else None
        return None

    def _states(self, law: Expression) -> Values:
        """Random states, on a log scale and with small counts among them, the same for any choice of names."""
        random = stream(1, "split")
        state: dict[str, object] = dict(self.values)
        moving = [name for name in law.names if name not in self.values]
        for place, name in enumerate(moving):
            large = np.floor(np.exp(random.uniform(0, np.log(_LARGEST * max(self.scale, 1.0)), _STATES)))
            counts = np.where(random.random(_STATES) < 0.3, random.integers(0, _SMALL, _STATES), large)
            few = counts[_FEWEST * place : _FEWEST * (place + 1)]  # a few states in which it is 0, 1, ...
            few[:] = np.arange(len(few))
            state[name] = counts
        return state

    @staticmethod
    def _at(expression: Expression, state: Values) -> np.ndarray:
        return np.broadcast_to(np.asarray(expression.evaluate(state), np.float64), _STATES)

    def _parts(self, node: Expression, signs: Signs, mixed: list[Expression]) -> Parts:
        """What an expression adds and what it takes away, each a rate as far as its form shows.

        `mixed` gets products of two differences, as in (a - b) * (c - d): their form does not show the two ways.
        """
        if signs.never_negative(node):
            return node, None
        opposite = Operation("-", (node,))
        has_parts = isinstance(node, Operation) and node.symbol in ("-", "*", "/", "if")  # which say it more plainly
        if not has_parts and signs.never_negative(opposite):
            return None, opposite
        match node:
            case Operation("+", terms):
                pairs = [self._parts(term, signs, mixed) for term in terms]
                if not any(taken for _, taken in pairs):
                    return node, None
                return _sum(*(added for added, _ in pairs)), _sum(*(taken for _, taken in pairs))
            case Operation("-", (operand,)):
                added, taken = self._parts(operand, signs, mixed)
                return taken, added
            case Operation("*", (left, right)):
                (a, b), (c, d) = self._parts(left, signs, mixed), self._parts(right, signs, mixed)
                if b is None and d is None:
                    return node, None
                if None not in (a, b, c, d):
                    mixed.append(node)
                return _sum(self._times(a, c), self._times(b, d)), _sum(self._times(a, d), self._times(b, c))
            case Operation("/", (above, below)):
                (a, b), (c, d) = self._parts(above, signs, mixed), self._parts(below, signs, mixed)
                if b is None and d is None:
                    return node, None
                if c is None and d is not None:
                    return self._over(b, d), self._over(a, d)
                return self._over(a, below), self._over(b, below)
            case Operation("if", (condition, then, otherwise)):
                (a, b), (c, d) = self._parts(then, signs, mixed), self._parts(otherwise, signs, mixed)
                if b is None and d is None:
                    return node, None
                return _choice(condition, a, c), _choice(condition, b, d)
        return node, None

    def _times(self, left: Expression | None, right: Expression | None) -> Expression | None:
        if left is None or right is None:
            return None
        if _ONE in (left, right):
            return right if left == _ONE else left
        return self._cancelled(Operation("*", (left, right)))

    def _over(self, above: Expression | None, below: Expression) -> Expression | None:
        return None if above is None else self._cancelled(Operation("/", (above, below)))

    def _cancelled(self, node: Expression) -> Expression:
        """Without what moves and both multiplies and divides: A * (B / A) is not defined where A is 0, and B is."""
        return cancelled(node, lambda factor: not self.values.keys() >= set(factor.names))


def _sum(*parts: Expression | None) -> Expression | None:
    terms = [part for part in parts if part is not None]
    return sum_of(terms) if terms else None


def _choice(condition: Expression, then: Expression | None, otherwise: Expression | None) -> Expression | None:
    if then is None and otherwise is None:
        return None
    return Operation("if", (condition, then or _ZERO, otherwise or _ZERO))
