"""Where a Markov chain is after a given time, by uniformization, and where it ends.

Uniformization reads a chain with generator Q as one that jumps at the events of a Poisson process of rate Λ, at least
as fast as every state is left: exp(Qt) = Σₖ Poisson(Λt; k) Pᵏ with P = I + Q/Λ. Nothing in it is ever subtracted from
a probability, so rounding adds a relative error of some 1e-16 a step, and no more. Where a chain ends is found by the
graph alone, its bottom components, and their probabilities by a linear system.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import daxpy
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from sateen.core.errors import ExactError
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import reachable

SINKS: Final = 2  # the first states of a chain, which are never left
MOST_STEPS: Final = 10_000_000  # of a uniformized chain, as many as the jumps of the longest path that is simulated
SOLUTION_ERROR: Final = 5e-11  # of the probabilities where a chain ends
_REFINEMENTS: Final = 8
_MARGIN: Final = 1.02  # of Λ over the fastest state: every state may stay, so that steps converge where they can
_INTERVAL: Final = 16  # pairs of steps between looks at where probability is and how much a step still changes


def poisson_weights(mean: float, error: float) -> tuple[int, FloatArray]:
    """The Poisson probabilities of first, first + 1, …, all but at most `error` of them, made to sum to 1.

    Bernstein's inequality says where to look: P(N >= mean + x) <= exp(-x²/(2 mean + 2x/3)) and, on the other side,
    P(N <= mean - x) <= exp(-x²/(2 mean)). The weights are products of ratios from the mode outwards, which neither
    overflow nor cancel.

    >>> first, weights = poisson_weights(3.0, 1e-12)
    >>> first, float(weights[2].round(6))
    (0, 0.224042)
    """
    exponent = math.log(8 / error)
    mode = math.floor(mean)
    low = max(0, math.floor(mean - math.sqrt(2 * mean * exponent)))
    high = math.ceil(mean + exponent / 3 + math.sqrt(exponent**2 / 9 + 2 * mean * exponent))
    above = np.cumprod(mean / np.arange(mode + 1, high + 1))
    below = np.cumprod(np.arange(mode, low, -1) / mean) if mode > low else np.empty(0)
    weights = np.concatenate([below[::-1], [1.0], above])
    weights /= weights.sum()
    # These bounds are generous: what together weighs next to nothing is cut off, on either side.
    first = int(np.searchsorted(np.cumsum(weights), error / 4))
    last = len(weights) - int(np.searchsorted(np.cumsum(weights[::-1]), error / 4))
    kept = weights[first:last]
    return low + first, kept / kept.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """How probability moves along the edges of a chain, whatever their rates. No edge leaves the sinks.

    Only a part of the chain is busy at a time. From states i and up, one step leads to `lowest[i]` and up; from states
    up to i, to at most `highest[i]`. So a stretch of states is known to hold all probability for some steps, and only
    that stretch is computed.
    """

    size: int
    sources: IntArray
    order: IntArray  # of the edges, and of staying in every state, by target
    columns: IntArray
    starts: IntArray
    lowest: list[int]
    highest: list[int]

    @staticmethod
    def along(size: int, sources: IntArray, targets: IntArray) -> Flow:
        """The flow along edges between `size` states."""
        stay = np.arange(size)
        rows, columns = np.concatenate([targets, stay]), np.concatenate([sources, stay])
        order = np.lexsort((columns, rows))
        starts = np.searchsorted(rows[order], np.arange(size + 1))
        lowest, highest, inner = stay.copy(), stay.copy(), targets >= SINKS
        np.minimum.at(lowest, sources[inner], targets[inner])
        np.maximum.at(highest, sources[inner], targets[inner])
        lowest, highest = np.minimum.accumulate(lowest[::-1])[::-1], np.maximum.accumulate(highest)
        return Flow(size, sources, order, columns[order], starts, lowest.tolist(), highest.tolist())

    def after(self, duration: float, start: FloatArray, rates: FloatArray, error: float) -> FloatArray:
        """The distribution after a time, in total variation within `error` of the true one but for rounding.

        A third of the error is for the tails of the Poisson weights, and a third for probabilities too small to follow.
        The last is for stopping at a steady state: a step never changes a distribution by more than the step before, so
        once `steps left * last change` is small enough, no step that is left matters.
        """
        leaving = np.bincount(self.sources, rates, minlength=self.size)
        fastest = _MARGIN * float(leaving.max())
        mean = fastest * duration
        if not mean <= MOST_STEPS:
            raise ExactError(
                f"the fastest state is left {fastest / _MARGIN:.3g} times per unit of time: {duration:g} units "
                f"take more than {MOST_STEPS:,} steps\n  shorten the window, or slow the fastest transition down"
            )
        if mean == 0.0:
            return start
        shares = np.concatenate([rates / fastest, 1.0 - leaving / fastest])[self.order]
        first, weights = poisson_weights(mean, error / 3)
        # Steps are taken two by two: the weights of even ones, and of odd ones, meet the same distribution.
        pairs = np.pad(weights, (first % 2, (first + len(weights)) % 2)).reshape(-1, 2)
        begin, end = first // 2, first // 2 + len(pairs)
        least = error / 3 / self.size / (end // _INTERVAL + 1)
        result, now = np.zeros(self.size), np.where(start < least, 0.0, start)
        stretch = self._stretch(shares, *self._busy(SINKS, now))
        now = stretch.gather(now)
        even, odd = np.zeros((2, len(now)))
        for pair in range(end):
            look = pair % _INTERVAL == 0
            if look:
                now = np.where(now < least, 0.0, now)
                low, high = self._busy(stretch.low, now)
                if not stretch.suits(low, high):
                    result += stretch.spread(even + stretch.step @ odd, self.size)
                    everywhere = stretch.spread(now, self.size)
                    stretch = self._stretch(shares, low, high)
                    now = stretch.gather(everywhere)
                    even, odd = np.zeros((2, len(now)))
            if pair >= begin:
                even = daxpy(now, even, a=pairs[pair - begin, 0])
                odd = daxpy(now, odd, a=pairs[pair - begin, 1])
            following = stretch.leap(now)
            if look and float(np.abs(following - now).sum()) * (end - pair) <= error / 3:
                left = pairs[max(pair + 1 - begin, 0) :].sum(axis=0)
                even, odd = even + left[0] * following, odd + left[1] * following
                break
            now = following
        result += stretch.spread(even + stretch.step @ odd, self.size)
        distribution: FloatArray = result / result.sum()
        return distribution

    def _busy(self, first: int, now: FloatArray) -> tuple[int, int]:
        """Between which states probability can be until the next look; `now` is on the sinks and on `first` and up."""
        busy = np.flatnonzero(now[SINKS:])
        if not len(busy):
            return first, first
        low, high = first + int(busy[0]), first + int(busy[-1])
        for _ in range(2 * _INTERVAL):
            low, high = self.lowest[low], self.highest[high]
        return low, high + 1

    def _stretch(self, shares: FloatArray, low: int, high: int) -> _Stretch:
        """The steps between the states low … high - 1 and the sinks, row by row."""
        rows = np.concatenate([np.arange(SINKS), np.arange(low, high)])
        taken = np.concatenate([np.arange(self.starts[SINKS]), np.arange(self.starts[low], self.starts[high])])
        columns = self.columns[taken]
        local = np.where(columns < SINKS, columns, columns - low + SINKS)
        inside = (columns < SINKS) | ((columns >= low) & (columns < high))
        lengths = self.starts[rows + 1] - self.starts[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.where(inside, shares[taken], 0.0), np.where(inside, local, 0)
        size = len(rows)
        indices, pointers = entries[1].astype(np.int32), starts.astype(np.int32)
        step = csr_array((entries[0], indices, pointers), shape=(size, size))
        squared = step @ step if step.nnz <= 4 * size else None
        return _Stretch(low, high, step, squared if squared is not None and squared.nnz <= 2 * step.nnz else None)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """The sinks and the states low … high - 1, as if they were the whole chain."""

    low: int
    high: int
    step: csr_array
    squared: csr_array | None  # two steps at once, where that is less work

    def leap(self, now: FloatArray) -> FloatArray:
        """A distribution two steps later."""
        later: FloatArray = self.step @ (self.step @ now) if self.squared is None else self.squared @ now
        return later

    def suits(self, low: int, high: int) -> bool:
        """Whether it holds low … high - 1 and is not much longer."""
        return self.low <= low and high <= self.high and self.high - self.low <= 2 * (high - low)

    def gather(self, everywhere: FloatArray) -> FloatArray:
        """The part of a distribution that lies here."""
        return np.concatenate([everywhere[:SINKS], everywhere[self.low : self.high]])

    def spread(self, here: FloatArray, size: int) -> FloatArray:
        """A distribution that lies here, on the whole chain."""
        everywhere = np.zeros(size)
        everywhere[:SINKS], everywhere[self.low : self.high] = here[:SINKS], here[SINKS:]
        return everywhere


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Where a chain ends, whatever its rates: the probability that it is absorbed on the good side.

    A chain ends in one of its bottom components, the sets of states that lead to each other and nowhere else.
    `certain` is the probability from the states where the graph alone tells it, and `doubtful` are the others, for
    which equations must be solved; their edges are sorted by source.
    """

    certain: FloatArray
    doubtful: IntArray
    sources: IntArray  # of the edges that leave doubtful states, as places in `doubtful`
    targets: IntArray
    edges: IntArray

    @staticmethod
    def along(size: int, sources: IntArray, targets: IntArray, good: IntArray) -> Limit:
        """The limit of a chain in which ending in state i is good where `good[i]` is 1."""
        graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(size, size))
        components, member_of = connected_components(graph, directed=True, connection="strong")
        bottom = np.ones(components, dtype=np.bool_)
        bottom[member_of[sources[member_of[sources] != member_of[targets]]]] = False
        ends = bottom[member_of]
        won, lost = (reachable(size, targets, sources, np.flatnonzero(ends & (good == side))) for side in (1, 0))
        can_win, can_lose = np.zeros((2, size), dtype=np.bool_)
        can_win[won], can_lose[lost] = True, True
        doubtful = np.flatnonzero(can_win & can_lose)
        edges = np.flatnonzero((can_win & can_lose)[sources])
        edges = edges[np.argsort(sources[edges], kind="stable")]
        places = np.searchsorted(doubtful, sources[edges])
        return Limit(np.where(can_lose, 0.0, 1.0), doubtful, places, targets[edges], edges)

    def probability(self, start: FloatArray, rates: FloatArray) -> float:
        """The probability of a good end from the distribution `start`, within SOLUTION_ERROR."""
        if not start[self.doubtful].any():
            return float(start @ self.certain)
        return float(start @ self.values(rates))

    def values(self, rates: FloatArray, earned: FloatArray | None = None) -> FloatArray:
        """The probabilities from all states, refined until they are shown to be right, within SOLUTION_ERROR.

        With rates `earned` per unit of time in doubtful states, what is earned there is added on average; the error is
        then relative to the largest value.

        The equations are A h = b with A = I - W, where W are the chances of the next jump. If A v >= c > 0 for some
        v >= 0, then A has an inverse of norm at most max(v)/c, because that inverse is not negative. The v here is the
        expected number of jumps. Residuals are sums of differences, in extended precision where there is one.
        """
        rates = rates[self.edges]
        count, begins = len(self.doubtful), np.searchsorted(self.sources, np.arange(len(self.doubtful)))
        exact_rates = rates.astype(np.longdouble)
        leaving = np.add.reduceat(exact_rates, begins)
        shares = exact_rates / leaving[self.sources]
        visit = 0.0 if earned is None else earned[self.doubtful] / leaving

        def residual(values: npt.NDArray[np.longdouble]) -> npt.NDArray[np.longdouble]:
            return np.add.reduceat(shares * (values[self.targets] - values[self.doubtful][self.sources]), begins)

        place = np.full(len(self.certain), -1)
        place[self.doubtful] = np.arange(count)
        inner = place[self.targets] >= 0
        places = self.sources[inner], place[self.targets[inner]]
        chances = csc_array((shares[inner].astype(np.float64), places), shape=(count, count))
        matrix = eye_array(count, format="csc") - chances
        try:
            factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
        except RuntimeError:  # singular, for all that doubles can tell
            raise _ill_conditioned(math.inf) from None
        jumps = np.zeros(len(self.certain), dtype=np.longdouble)
        jumps[self.doubtful] = factors.solve(np.ones(count))
        least = float(-residual(jumps).max())
        most = float(jumps.max())
        if not (least > 0.5 and jumps.min() >= 0):
            raise _ill_conditioned(most)
        values = self.certain.astype(np.longdouble)
        for _ in range(_REFINEMENTS):
            wrong = residual(values) + visit
            scale = max(1.0, float(np.abs(values).max()))
            error = most / least * (float(np.abs(wrong).max()) + 4 * scale * float(np.finfo(np.longdouble).eps))
            if error <= SOLUTION_ERROR * scale:
                return np.asarray(values, dtype=np.float64)
            values[self.doubtful] += factors.solve(wrong.astype(np.float64))
        raise _ill_conditioned(most)


def _ill_conditioned(jumps: float) -> ExactError:
    return ExactError(
        f"without a last time it takes about {jumps:.2g} jumps to decide, too many for the digits of a double\n"
        "  give it a window that ends, or simulate"
    )
