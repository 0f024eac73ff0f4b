"""Where a Markov chain ends: bottom components by the graph alone, their probabilities by a linear system."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from sateen.core.errors import ExactError
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import reachable

__all__ = ["SOLUTION_ERROR", "Limit"]

SOLUTION_ERROR: Final = 5e-11
_REFINEMENTS: Final = 8


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
        return float(start @ self._solution(rates[self.edges]))

    def _solution(self, rates: FloatArray) -> FloatArray:
        """The probabilities from all states, refined until they are shown to be right.

        The equations are A h = b with A = I - W, where W are the chances of the next jump. If A v >= c > 0 for some
        v >= 0, then A has an inverse of norm at most max(v)/c, because that inverse is not negative. The v here is the
        expected number of jumps. Residuals are sums of differences, in extended precision where there is one.
        """
        count, begins = len(self.doubtful), np.searchsorted(self.sources, np.arange(len(self.doubtful)))
        exact_rates = rates.astype(np.longdouble)
        shares = exact_rates / np.add.reduceat(exact_rates, begins)[self.sources]

        def residual(values: Any) -> Any:
            return np.add.reduceat(shares * (values[self.targets] - values[self.doubtful][self.sources]), begins)

        place = np.full(len(self.certain), -1)
        place[self.doubtful] = np.arange(count)
        inner = place[self.targets] >= 0
        matrix = csc_array(
            (
                np.concatenate([np.ones(count), -shares[inner].astype(np.float64)]),
                (
                    np.concatenate([np.arange(count), self.sources[inner]]),
                    np.concatenate([np.arange(count), place[self.targets[inner]]]),
                ),
            ),
            shape=(count, count),
        )
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
            wrong = residual(values)
            error = most / least * (float(np.abs(wrong).max()) + 4 * float(np.finfo(np.longdouble).eps))
            if error <= SOLUTION_ERROR:
                return np.asarray(values, dtype=np.float64)
            values[self.doubtful] += factors.solve(wrong.astype(np.float64))
        raise _ill_conditioned(most)


def _ill_conditioned(jumps: float) -> ExactError:
    return ExactError(
        f"it takes about {jumps:.2g} jumps to decide an unbounded operator, too many for the digits of a double\n"
        "  give the operator a window that ends, or simulate"
    )
