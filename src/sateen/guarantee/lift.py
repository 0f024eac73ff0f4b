"""The binomial lift: from intervals for the frequency of fresh runs to intervals for the probability itself.

Let [A, B] contain the frequency K/M of M fresh runs at θ but for the probability ε₁, and let 0 < η < 1. With Clopper
and Pearson's one-sided bounds, which miss with probability η, let C = [lower_bound(⌈MA⌉), upper_bound(⌊MB⌋)], joined
with the posterior mean. Then C misses f(θ) with probability ε₁/(1 - η) at most. *Proof.* If f > upper_bound(⌊MB⌋), then
P(K <= MB) < η by definition of the bound: a fresh frequency exceeds B with probability 1 - η or more. Below likewise;
and since C is not empty, one θ has only one of the two. So ε₁ >= P(K/M ∉ [A, B]) >= (1 - η) P(f ∉ C). ∎

The claim fixes ε = ε₁/(1 - η); a small ε₁ buys an η above one half, and bounds that lie *inside* [A, B].

Where the points have different numbers of runs, no single M can stand for a fresh frequency. Then the bounds come
first: S⁺ = max(upper_bound(K) - f̂, f̂ - lower_bound(K), 0)/u at each point, T the m-th largest, and C = f̂ ± Tu.
*Proof.* Let S = |f - f̂|/u, unseen. Given θ_i and M_i, which must be fixed before the runs are made, S⁺_i >= S_i with
probability 1 - η or more. So there are independent coins Z_i, each 1 with probability 1 - η and independent of θ_i,
such that S⁺_i >= S_i where Z_i = 1. Let R_i = S_i where Z_i = 1, and -∞ elsewhere: these are independent and alike, and
their m-th largest T' is at most T. Hence (1 - η) P(S > T) <= (1 - η) P(S > T') = P(R > T') <= ε₁, for a fresh R. ∎

Both proofs also hold given the calibration, which makes them PAC; and, marginally, for a weighted threshold.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sateen.core.observations import Observations
from sateen.core.proportions import lower_bound, upper_bound
from sateen.core.types import FloatArray
from sateen.guarantee.conformal import ROUNDING, conformal_miss

__all__ = ["fewest_lifted_points", "lift_miss", "lifted", "lifted_distances"]

_MOST_POINTS: Final = 2**40  # that anyone is advised to observe


def lift_miss(points: int, rank: int, miss: float, confidence: float | None) -> float | None:
    """η: how often the binomial bounds may miss when the whole may miss with probability `miss`, ε.

    It is 1 - ε₁/ε, and None where that leaves nothing: the points are too few for the rank.

    >>> lift_miss(199, 1, 0.1, None), lift_miss(9, 1, 0.1, None)
    (0.95, None)
    """
    eta = 1.0 - conformal_miss(points, rank, confidence) / miss if rank <= points else 0.0
    return eta if eta > ROUNDING else None


def fewest_lifted_points(rank: int, miss: float, confidence: float | None) -> int | None:
    """With how many points the rank begins to leave something to the binomial bounds; None beyond all reason.

    >>> fewest_lifted_points(1, 0.1, None), fewest_lifted_points(1, 0.1, 0.95)
    (10, 29)
    """
    high = max(rank, 1)
    while lift_miss(high, rank, miss, confidence) is None:
        if high > _MOST_POINTS:
            return None
        high *= 2
    low = max(rank, high // 2)
    while low < high:
        middle = (low + high) // 2
        enough = lift_miss(middle, rank, miss, confidence) is not None
        low, high = (low, middle) if enough else (middle + 1, high)
    return high


def lifted(mean: FloatArray, reach: FloatArray, runs: int, eta: float) -> tuple[FloatArray, FloatArray]:
    """The lower and upper ends of C, from intervals mean ± reach for the frequency of `runs` runs."""
    slack = ROUNDING + 1e-12 * runs  # a count that rounding misses by a hair is meant; more only widens
    least = np.clip(np.ceil(runs * (mean - reach) - slack), 0, runs)
    most = np.clip(np.floor(runs * (mean + reach) + slack), 0, runs)
    lower, upper = lower_bound(least, runs, eta), upper_bound(most, runs, eta)
    return np.minimum(lower, mean), np.maximum(upper, mean)


def lifted_distances(observations: Observations, mean: FloatArray, eta: float) -> FloatArray:
    """S⁺ times u: how far the bounds on f at each point are from the mean; undecided runs count against both."""
    lower = lower_bound(observations.satisfied, observations.trials, eta)
    upper = upper_bound(observations.satisfied + observations.undecided, observations.trials, eta)
    return np.maximum(np.maximum(upper - mean, mean - lower), 0.0)
