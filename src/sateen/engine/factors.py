"""The rates of a chain's edges as sums of factor times coefficient, and the range of every factor over a box.

A factor reads only parameters that vary, a coefficient only the state: `(k1 + k2 * X) * Y` is k1 times Y plus k2 times
X * Y. Edges whose rates share a factor can only speed up or slow down together, which is what makes bounds over a box
of parameters narrow. Where a rate is no such sum, as `X / (K + X)` with K varying, or one with a negative part, the
rate of every edge is a factor of its own, whose range is found by interval arithmetic on the whole expression; that is
as sure, but bounds are wider, because such edges choose independently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias

import numpy as np

from sateen.core.errors import ExactError
from sateen.core.space import Space
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import Chain
from sateen.engine.events import BoolArray, columns
from sateen.engine.intervals import Interval, interval, product
from sateen.language.expression import Expression, Number, Operation
from sateen.model.model import Model, Transition

_Key: TypeAlias = "tuple[Expression, ...]"
_MOST: Final = 32  # terms of one rate
_ZERO: Final = Number(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """The rates of one transition in some states, each a factor of its own, from the factor `first` on."""

    first: int
    rate: Expression
    states: Mapping[str, Interval]
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """All factors of a model: those that edges share, the first of which is 1, then those of single edges."""

    names: tuple[str, ...]  # the columns of boxes
    fixed: Mapping[str, Interval]
    shared: tuple[_Key, ...]
    own: tuple[_Own, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.shared) + sum(block.count for block in self.own)

    def reads(self, index: int) -> tuple[str, ...]:
        """The parameters that a factor reads, of those that vary."""
        if index < len(self.shared):
            read = [name for part in self.shared[index] for name in part.names]
        else:
            read = [
                name for each in self.own if each.first <= index < each.first + each.count for name in each.rate.names
            ]
        return tuple(dict.fromkeys(name for name in read if name in self.names))

    def ranges(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of every factor over every box: a row for each box, a column for each factor.

        A rate is never negative where the model is defined, so nothing is below 0.
        """
        least, most = np.empty((2, len(low), self.count))
        values = {**self.fixed, **{name: (low[:, i], high[:, i]) for i, name in enumerate(self.names)}}
        for index, key in enumerate(self.shared):
            least[:, index], most[:, index] = _range(key, values)
        upright = {name: (a.reshape(-1, 1), b.reshape(-1, 1)) for name, (a, b) in values.items()}
        for block in self.own:
            place = slice(block.first, block.first + block.count)
            least[:, place], most[:, place] = interval(block.rate, {**upright, **block.states})
        return np.maximum(least, 0.0), np.maximum(most, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The terms of a chain's edges: those of slot i, a transition in a state, are `starts[i]` … `starts[i + 1] - 1`.

    Each is a factor and a coefficient, which is uncertain by `width`.
    """

    slots: IntArray  # of the edges
    starts: IntArray
    factor: IntArray
    coefficient: FloatArray
    width: FloatArray

    def terms_of(self, edges: IntArray) -> tuple[IntArray, IntArray]:
        """The terms of edges: for each term the place in `edges` that it belongs to, and its own place."""
        slots = self.slots[edges]
        counts = self.starts[slots + 1] - self.starts[slots]
        owner = np.repeat(np.arange(len(edges)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return owner, np.repeat(self.starts[slots], counts) + np.arange(len(owner)) - before

    def possible(self, shape: tuple[int, int]) -> BoolArray:
        """Which transitions can fire in which states, under some θ of the space."""
        return np.asarray(np.diff(self.starts) > 0).reshape(shape)


def factored(
    model: Model,
    space: Space,
    values: Mapping[str, float],
    replacements: Mapping[str, Expression],
    chains: Sequence[Chain],
) -> tuple[Factors, list[Shares]]:
    """The factors of a model over a space, and the shares of them that the edges of each chain have.

    `replacements` are the model's constants as expressions of parameters, and `values` fixes those that do not vary.
    """
    low = np.array([[each.low for each in space.ranges.values()]])
    high = np.array([[each.high for each in space.ranges.values()]])
    fixed = {each.name: _point(values[each.name]) for each in model.parameters if each.name not in space.names}
    whole = {**fixed, **{name: (low[:, i], high[:, i]) for i, name in enumerate(space.names)}}
    varying, moving = frozenset(space.names), frozenset(model.species)
    rates = [transition.rate.substitute(replacements) for transition in model.transitions]
    split = [_terms_of(rate, varying, moving) for rate in rates]
    shared: dict[_Key, int] = {(): 0}
    # Shared factors are numbered first, so that those of single edges can follow.
    plans: list[list[_Plan]] = [
        [
            _plan(transition, rate, terms, chain, values, whole, fixed)
            for transition, rate, terms in zip(model.transitions, rates, split, strict=True)
        ]
        for chain in chains
    ]
    for plan in (plan for row in plans for plan in row):
        for key, _ in plan.terms:
            shared.setdefault(key, len(shared))
    own: list[_Own] = []
    following = len(shared)
    found = []
    for chain, row in zip(chains, plans, strict=True):
        columns_of: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = [_NOTHING]
        for order, (plan, rate) in enumerate(zip(row, rates, strict=True)):
            slots = order * len(chain.followed)
            for key, (least, most) in plan.terms:
                there = np.flatnonzero(most > 0.0)
                columns_of.append(
                    (slots + plan.open[there], np.full(len(there), shared[key]), *_centred(least, most, there))
                )
            if plan.own is not None:
                there = plan.own
                states = columns(model, chain.states[chain.followed[there]])
                own.append(_Own(following, rate, {name: (each, each) for name, each in states.items()}, len(there)))
                numbers = following + np.arange(len(there))
                columns_of.append((slots + there, numbers, np.ones(len(there)), np.zeros(len(there))))
                following += len(there)
        slot, factor, coefficient, width = (np.concatenate(parts) for parts in zip(*columns_of, strict=True))
        by_slot = np.argsort(slot, kind="stable")
        starts = np.searchsorted(slot[by_slot], np.arange(chain.fires.size + 1))
        found.append(Shares(chain.slots, starts, factor[by_slot], coefficient[by_slot], width[by_slot]))
    return Factors(space.names, fixed, tuple(shared), tuple(own)), found


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How a transition's rates are written in a chain: in the states `open`, where its guard holds, as `terms`, the
    factors and the range of the coefficients; or in the states `own` as they are."""

    open: IntArray
    terms: tuple[tuple[_Key, Interval], ...]
    own: IntArray | None


def _plan(
    transition: Transition,
    rate: Expression,
    terms: Sequence[_Term] | None,
    chain: Chain,
    values: Mapping[str, float],
    whole: Mapping[str, Interval],
    fixed: Mapping[str, Interval],
) -> _Plan:
    rows = chain.states[chain.followed]
    guard = True if transition.guard is None else transition.guard.evaluate({**values, **columns(chain.model, rows)})
    open_ = np.flatnonzero(np.broadcast_to(guard, len(rows)))
    states = {name: (each, each) for name, each in columns(chain.model, rows[open_]).items()}
    found: list[tuple[_Key, Interval]] = []
    for term in terms or ():
        least, most = _range(term.factors, whole)
        coefficient = _broadcast(interval(term.coefficient, {**fixed, **states}), len(open_))
        if not (least >= 0.0).all() or not np.isfinite(most).all():
            break
        if not ((coefficient[0] >= 0.0) & (coefficient[1] < np.inf)).all():
            break
        if (most > 0.0).any() and (coefficient[1] > 0.0).any():
            found.append((term.factors, coefficient))
    else:
        if terms is not None:
            return _Plan(open_, tuple(found), None)
    most = _broadcast(interval(rate, {**whole, **states}), len(open_))[1]
    if not (most < np.inf).all():
        raise ExactError(
            f"the rate of {transition.name} has no finite bound over the space: {rate}",
            remedy="keep divisors away from 0 and roots and logarithms in their domain, or narrow the Space",
        )
    return _Plan(open_, (), open_[most > 0.0])


def _range(key: _Key, values: Mapping[str, Interval]) -> Interval:
    """The range of a product of factors."""
    one = _point(1.0)
    return reduce(product, (interval(part, values) for part in key), one) if key else one


def _point(value: float) -> Interval:
    point = np.array(value)
    return point, point


def _broadcast(pair: Interval, size: int) -> Interval:
    return np.broadcast_to(pair[0], size), np.broadcast_to(pair[1], size)


def _centred(least: FloatArray, most: FloatArray, there: IntArray) -> tuple[FloatArray, FloatArray]:
    """The middle of intervals, and how far their ends are from it, rounded up."""
    low, high = least[there], most[there]
    middle = 0.5 * low + 0.5 * high
    width = np.maximum(high - middle, middle - low)
    return middle, np.where(low == high, 0.0, np.nextafter(width, np.inf))


@dataclass(frozen=True, slots=True)
class _Term:
    """A product: of `factors`, which read varying parameters and no state, and of `coefficient`, which reads neither
    of the varying parameters."""

    factors: tuple[Expression, ...]
    coefficient: Expression

    def __mul__(self, other: _Term) -> _Term:
        factors = tuple(sorted((*self.factors, *other.factors), key=str))
        if self.coefficient == Number(1.0):
            return _Term(factors, other.coefficient)
        if other.coefficient == Number(1.0):
            return _Term(factors, self.coefficient)
        return _Term(factors, Operation("*", (self.coefficient, other.coefficient)))


def _terms_of(rate: Expression, varying: frozenset[str], moving: frozenset[str]) -> tuple[_Term, ...] | None:
    """The terms of a rate, or None if it is no sum of such products.

    `varying` are the parameters that vary, `moving` what changes with the state.
    """
    read = frozenset(rate.names)
    if varying.isdisjoint(read):
        return (_Term((), rate),)
    split = _split(rate, varying, moving)
    if split is not None and len(split) <= _MOST:
        return split
    return (_Term((rate,), Number(1.0)),) if moving.isdisjoint(read) else None


def _split(rate: Expression, varying: frozenset[str], moving: frozenset[str]) -> tuple[_Term, ...] | None:
    match rate:
        case Operation("+", operands):
            parts = [_terms_of(operand, varying, moving) for operand in operands]
            return None if None in parts else tuple(term for part in parts if part for term in part)
        case Operation("-", (operand,)):
            inner = _terms_of(operand, varying, moving)
            return inner and tuple(_Term(term.factors, Operation("-", (term.coefficient,))) for term in inner)
        case Operation("*", (left, right)):
            a, b = _terms_of(left, varying, moving), _terms_of(right, varying, moving)
            return tuple(x * y for x in a for y in b) if a and b and len(a) * len(b) <= _MOST else None
        case Operation("/", (left, right)):
            a, below = _terms_of(left, varying, moving), frozenset(right.names)
            if a is None or not (varying.isdisjoint(below) or moving.isdisjoint(below)):
                return None
            if varying.isdisjoint(below):
                return tuple(_Term(term.factors, Operation("/", (term.coefficient, right))) for term in a)
            inverse = _Term((Operation("/", (Number(1.0), right)),), Number(1.0))
            return tuple(term * inverse for term in a)
        case Operation("^", (base, exponent)) if varying.isdisjoint(exponent.names):
            a = _terms_of(base, varying, moving)
            if a is None or len(a) != 1 or not moving.isdisjoint(exponent.names):
                return None
            factors = tuple(Operation("^", (factor, exponent)) for factor in a[0].factors)
            return (_Term(factors, Operation("^", (a[0].coefficient, exponent))),)
        case Operation("if", (condition, then, otherwise)) if varying.isdisjoint(condition.names):
            branches = [_terms_of(branch, varying, moving) for branch in (then, otherwise)]
            if None in branches:
                return None
            chosen = [
                _Term(term.factors, Operation("if", (condition, *((term.coefficient, _ZERO)[:: 1 if first else -1]))))
                for branch, first in zip(branches, (True, False), strict=True)
                for term in branch or ()
            ]
            return tuple(chosen)
        case _ if moving.isdisjoint(rate.names):
            return (_Term((rate,), Number(1.0)),)
    return None
