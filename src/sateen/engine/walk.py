"""Interval uniformization of a chain: its spans walked backward, eight bounds at a time.

What is computed, and why it bounds f, is said in `enclosure.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from sateen.core.errors import ExactError
from sateen.core.space import Space
from sateen.core.types import Array, FloatArray, IntArray
from sateen.engine.events import BoolArray
from sateen.engine.exact import Phase, Prepared
from sateen.engine.factors import Factors, Shares
from sateen.engine.motion import MOST_STEPS, SINKS, Limit, poisson_weights

INSTEAD: Final = 'tests by simulation take any model: certify(..., by="fresh")'
_ERROR: Final = 1e-10  # of all spans together, for what is cut off the Poisson weights
_UNIT: Final = 2.0**-53  # the relative error of one rounding
_FASTER: Final = 1.0 + 2.0**-20  # of Λ over the fastest state: more than all roundings in either


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The spans of a chain in order, and the pair in the first of them from where f is asked."""

    stages: tuple[Stage, ...]
    start: int

    @staticmethod
    def of(prepared: Prepared, shares: Sequence[Shares], factors: Factors, space: Space) -> Walk:
        """The walk of what `exact` prepared, given the terms of the edges of each chain."""
        if not prepared.phases:
            return Walk((), prepared.start)
        terms = [_terms(phase, shares[phase.regime]) for phase in prepared.phases]
        numbers = [_numbers(phase.size, edges) for phase, edges in zip(prepared.phases, terms, strict=True)]
        stages = []
        for phase, edges, number, after in zip(
            prepared.phases, terms, numbers, [*numbers[1:], np.arange(SINKS)], strict=True
        ):
            onward = np.empty(phase.size, dtype=np.int64)
            onward[number] = after[phase.onward]
            certain = _certain(phase, shares[phase.regime], factors, space)
            if certain is not None:
                certain = certain[np.argsort(number)]
            moved = (number[edges[0]], number[edges[1]], *edges[2:])
            stages.append(Stage.of(phase.duration, onward, moved, factors.count, certain))
        return Walk(tuple(stages), int(numbers[0][prepared.start]))

    def sides(self, slow: FloatArray, fast: FloatArray, upper: BoolArray) -> FloatArray:
        """One bound for each box, given the least and the largest value of every factor."""
        from sateen.engine.enclosure_kernel import LANES  # LLVM is loaded now

        if not self.stages:
            return np.full(len(slow), float(self.start))
        speeds = [stage.speed(fast) for stage in self.stages]
        finite = [stage.duration if stage.certain is None else 0.0 for stage in self.stages]
        work = sum(speed * duration for speed, duration in zip(speeds, finite, strict=True))
        bounds = np.empty(len(slow))
        order = np.argsort(work, kind="stable")
        for begin in range(0, len(order), LANES):
            jobs = order[begin : begin + LANES]
            lanes = np.resize(jobs, LANES)  # a lane that is not needed repeats another
            values = _aligned(SINKS)
            values[0], values[1] = ~upper[lanes], upper[lanes]
            error = np.zeros(LANES)
            for stage, speed in zip(reversed(self.stages), reversed(speeds), strict=True):
                values, more = stage.before(values, slow[lanes], fast[lanes], speed[lanes], _ERROR / len(self.stages))
                error += more
            found = np.clip(values[self.start] + error * (1 + 1e-6), 0.0, 1.0)
            bounds[jobs] = np.where(upper[lanes], found, np.maximum(np.nextafter(1.0 - found, -1.0), 0.0))[: len(jobs)]
        return bounds


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A phase as it is walked backward: its edges by source and factor.

    `edges` are the arrays that the kernel takes: where states with as many edges begin, the edges that have a factor to
    themselves, and those that share one. `leaving` and `slack` are, for every state and factor, the largest sum of
    coefficients and how uncertain it is. `certain` is the end of an endless span.
    """

    duration: float
    size: int
    onward: IntArray
    edges: tuple[Array, ...]
    leaving: csr_array
    slack: csr_array
    roundings: int
    certain: FloatArray | None

    @property
    def used(self) -> IntArray:
        """The factors of its edges."""
        return np.unique(self.leaving.indices).astype(np.int64)

    @staticmethod
    def of(
        duration: float,
        onward: IntArray,
        edges: _Edges,
        factors: int,
        certain: FloatArray | None = None,
    ) -> Stage:
        """A span along edges, given as sources, targets, factors, coefficients and the uncertainty of these."""
        from sateen.engine.enclosure_kernel import MOST_UNROLLED  # LLVM is loaded now

        sources, targets, factor, coefficient, width = edges
        size = len(onward)
        leaving = csr_array((coefficient + width, (sources, factor)), shape=(size, factors))
        slack = csr_array((width, (sources, factor)), shape=(size, factors))
        order = np.lexsort((factor, sources))
        sources, targets, factor, coefficient = sources[order], targets[order], factor[order], coefficient[order]
        fresh = np.ones(len(sources), dtype=np.bool_)
        fresh[1:] = (sources[1:] != sources[:-1]) | (factor[1:] != factor[:-1])
        first = np.flatnonzero(fresh)
        counts = np.diff(np.append(first, len(sources)))
        single = first[counts == 1]
        several, sizes = first[counts > 1], counts[counts > 1]
        inner = np.repeat(counts > 1, counts)
        states = np.arange(size + 1)
        lone = (np.searchsorted(sources[single], states), factor[single], targets[single], coefficient[single])
        groups = (np.searchsorted(sources[several], states), factor[several], np.append(0, np.cumsum(sizes)))
        grouped = (*groups, targets[inner], coefficient[inner])
        # Every difference, product and sum of a step, with room: see docs/guarantees.md.
        per_state = int(np.bincount(sources[first], minlength=size).max(initial=0))
        roundings = 4 * per_state + 2 * int(counts.max(initial=0)) + 16
        degree = np.diff(lone[0])
        degree[sources[several]] = MOST_UNROLLED + 1
        runs = np.searchsorted(np.minimum(degree, MOST_UNROLLED + 1), np.arange(MOST_UNROLLED + 3))
        edge_arrays = _narrow((runs, *lone, *grouped))
        return Stage(duration, size, onward, edge_arrays, leaving, slack, roundings, certain)

    def speed(self, fast: FloatArray) -> FloatArray:
        """Λ for each of the boxes: at least as fast as every state is left under every θ."""
        if self.certain is not None:
            return np.zeros(len(fast))
        speed = _FASTER * (self.leaving @ fast.T).max(axis=0, initial=0.0)
        if not (steps := float(speed.max(initial=0.0)) * self.duration) <= MOST_STEPS:
            raise ExactError(
                f"over a span of {self.duration:g} the fastest state is left some {steps:.3g} times, and bounds follow "
                f"at most {MOST_STEPS:,} steps",
                remedy=f"shorten the window or slow the fastest transition down; {INSTEAD}",
            )
        return np.asarray(speed)

    def before(
        self, after: FloatArray, slow: FloatArray, fast: FloatArray, speed: FloatArray, error: float
    ) -> tuple[FloatArray, FloatArray]:
        """The values at the begin of the span, a column for each lane, and a bound on what they lack."""
        from sateen.engine.enclosure_kernel import LANES, relaxed

        if self.certain is not None:
            return np.where(
                after[0] > after[1], 1.0 - self.certain[:, np.newaxis], self.certain[:, np.newaxis]
            ), np.zeros(LANES)
        goal = _aligned(self.size)
        goal[:] = after[self.onward]
        speed = np.maximum(speed, np.finfo(np.float64).tiny)
        windows = [poisson_weights(float(each) * self.duration, error) for each in speed]
        begin, end = min(first for first, _ in windows), max(first + len(window) for first, window in windows)
        weights = _aligned(end - begin)
        for lane, (first, window) in enumerate(windows):
            weights[first - begin : first - begin + len(window), lane] = window
        middle, radius = _aligned(self.leaving.shape[1]), _aligned(self.leaving.shape[1])
        middle[:] = (0.5 * (fast + slow) / speed[:, np.newaxis]).T
        radius[:] = (0.5 * (fast - slow) / speed[:, np.newaxis]).T
        empty, spare = _aligned(self.size), _aligned(self.size)
        values = relaxed(empty, spare, goal, weights, begin, middle, radius, *self.edges)
        steps = np.array([first + len(window) for first, window in windows])
        uncertain = np.asarray((self.slack @ fast.T).max(axis=0, initial=0.0)) / speed
        lengths = np.array([len(window) for _, window in windows])
        return values.reshape(-1, LANES), error + 8 * lengths * _UNIT + steps * (self.roundings * _UNIT + uncertain)


_Edges: TypeAlias = "tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]"


def _terms(phase: Phase, shares: Shares) -> _Edges:
    """The edges of a phase, one for each term: sources, targets, factors, coefficients and their uncertainty."""
    edge, term = shares.terms_of(phase.edges)
    sources, targets = phase.sources[edge], phase.targets[edge]
    return sources, targets, shares.factor[term], shares.coefficient[term], shares.width[term]


def _numbers(size: int, edges: _Edges) -> IntArray:
    """New numbers for the states of a phase: those with as many edges to themselves stand together."""
    from sateen.engine.enclosure_kernel import MOST_UNROLLED

    sources, _, factor, _, _ = edges
    _, place, counts = np.unique(np.stack([sources, factor]), axis=1, return_inverse=True, return_counts=True)
    alone = counts[place.reshape(-1)] == 1
    degree = np.bincount(sources[alone], minlength=size)
    degree[sources[~alone]] = MOST_UNROLLED + 1
    order = np.argsort(np.minimum(degree, MOST_UNROLLED + 1), kind="stable")
    numbers = np.empty(size, dtype=np.int64)
    numbers[order] = np.arange(size)
    return numbers


def _certain(phase: Phase, shares: Shares, factors: Factors, space: Space) -> FloatArray | None:
    """The values of an endless span that the graph alone decides, which it does where no rate can be 0."""
    if not isinstance(phase.motion, Limit):
        return None
    if len(phase.motion.doubtful):
        raise ExactError(
            "an operator without an end depends on rates after the last bound of a window, and bounds over boxes "
            "follow a finite time",
            remedy=f"give the operator a window that ends, such as F[0, 1000]; {INSTEAD}",
        )
    _, term = shares.terms_of(phase.edges)
    low = np.array([[each.low for each in space.ranges.values()]])
    high = np.array([[each.high for each in space.ranges.values()]])
    slow, _ = factors.ranges(low, high)
    if not (slow[0, shares.factor[term]] * (shares.coefficient[term] - shares.width[term]) > 0.0).all():
        raise ExactError(
            "a rate that an operator without an end waits for may be 0 at an end of the space",
            remedy=f"keep the parameters of the Space away from 0, or give the operator a window that ends; {INSTEAD}",
        )
    return phase.motion.certain


def _aligned(rows: int) -> FloatArray:
    """A table of zeros with a row of lanes for each of `rows`, none of which crosses a line of the cache."""
    from sateen.engine.enclosure_kernel import LANES

    buffer = np.zeros((rows + 1) * LANES)
    offset = (-buffer.ctypes.data % 64) // 8
    return buffer[offset : offset + rows * LANES].reshape(rows, LANES)


def _narrow(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Whole numbers as the kernel takes them."""
    return tuple(each if each.dtype.kind == "f" else each.astype(np.uint32) for each in arrays)
