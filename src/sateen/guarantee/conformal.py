"""Inductive conformal prediction: how far a fresh score can be, from n scores of the same kind.

Let S_1, ..., S_n and a fresh S be independent draws of one distribution, and T the m-th largest of the n. Then
P(S > T) <= m / (n + 1): among n + 1 exchangeable scores, at most m are larger than the m-th largest of the others. And
given the n scores, P(S > T) is a random number that is, in distribution, at most Beta(m, n - m + 1): so it exceeds the
quantile 1 - δ of that Beta with probability δ at most. Ties only help.

The first is the marginal statement, the second the PAC one, with the confidence 1 - δ. Here every score is a distance
between a posterior mean and a frequency, divided by a difficulty that the training alone has fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.space import Points, Space
from sateen.core.text import percent
from sateen.core.types import FloatArray

if TYPE_CHECKING:
    from sateen.guarantee.request import CalibrateRequest, Density

_WIDENED: Final = 1e-12  # at each end of an interval, so that what lies on its ends is inside
_LOOKS: Final = 1024  # points at which a density is looked at beforehand
ROUNDING: Final = 1e-9  # of a rank or a weight: 1 - 0.9 is a little less than 0.1


def conformal_miss(points: int, rank: int, confidence: float | None) -> float:
    """How often a fresh score exceeds the `rank`-th largest of `points` scores, at most.

    >>> conformal_miss(199, 10, None), round(conformal_miss(29, 1, 0.95), 3)
    (0.05, 0.098)
    """
    if confidence is None:
        return rank / (points + 1)
    from scipy.special import betaincinv

    return float(betaincinv(rank, points - rank + 1, confidence))


def conformal_rank(points: int, miss: float, confidence: float | None) -> int:
    """The greatest rank whose score a fresh one exceeds with probability `miss` at most; 0 where no rank does.

    Marginally it is floor((n + 1) miss): counted from below, the rank ceil((n + 1)(1 - miss)).

    >>> conformal_rank(199, 0.05, None), conformal_rank(18, 0.05, None), conformal_rank(29, 0.1, 0.95)
    (10, 0, 1)
    """
    if confidence is None:
        return min(math.floor((points + 1) * miss + ROUNDING), points)
    from scipy.special import betainc

    ranks = np.arange(1, points + 1)
    return int(np.count_nonzero(betainc(ranks, points - ranks + 1, miss) >= confidence))


def fewest_points(miss: float, confidence: float | None) -> int:
    """With how many points there is a rank at all.

    >>> fewest_points(0.05, None), fewest_points(0.1, 0.95)
    (19, 29)
    """
    if confidence is None:
        return max(math.ceil(1.0 / miss - 1.0 - ROUNDING / miss), 1)
    from scipy.special import betainc

    points = math.ceil(math.log1p(-confidence) / math.log1p(-miss))
    return next(n for n in (points - 1, points, points + 1) if n and betainc(1, n, miss) >= confidence)


def distances(observations: Observations, mean: FloatArray) -> FloatArray:
    """How far the frequency at each point can be from the mean, whatever the undecided runs would have become."""
    low, high = observations.frequency_bounds.T
    return farthest(low, high, mean)


def farthest(low: FloatArray, high: FloatArray, mean: FloatArray) -> FloatArray:
    """How far from the mean something between `low` and `high` can be."""
    return np.asarray(np.maximum(high - mean, mean - low))


def largest(scores: FloatArray, rank: int) -> float:
    """The `rank`-th largest score; infinite for the rank 0.

    >>> largest(np.array([0.3, 0.1, 0.2]), 1), largest(np.array([0.3]), 0)
    (0.3, inf)
    """
    return float(np.partition(scores, len(scores) - rank)[len(scores) - rank]) if rank else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class WeightedThreshold:
    """What a fresh score exceeds with probability `miss` at most, when θ has a `density` and the scores were uniform.

    At θ it is the least t such that the scores up to t have the share 1 - miss of all weight, where score i weighs
    density(θ_i), and density(θ) lies at infinity (Tibshirani, Barber, Candès and Ramdas 2019).
    """

    scores: FloatArray
    weights: FloatArray
    miss: float
    density: Density

    def __post_init__(self) -> None:
        order = np.argsort(self.scores)
        for name in ("scores", "weights"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name)[order], np.float64)))

    def at(self, theta: FloatArray) -> FloatArray:
        """The threshold at each row of θ: infinite where θ alone weighs more than the share `miss`."""
        below = np.cumsum(self.weights)
        wanted = (1.0 - self.miss) * (below[-1] + weights_of(self.density, theta))
        place = np.searchsorted(below, wanted * (1.0 - ROUNDING))
        return np.asarray(np.append(self.scores, math.inf)[place])


def density_rank(density: Density, space: Space, points: int) -> int:
    """The least rank with which nearly every θ can expect a finite threshold, by the density alone.

    The weight at θ must be at most the share rank/(points + 1) of all weight. How the weights vary is looked at
    beforehand, at points of the space that have nothing to do with the calibration.
    """
    weights = weights_of(density, space.uniform(_LOOKS, seed=0).theta)
    if not weights.any():
        return 1  # the held-out points may tell more
    total = max(points * weights.mean() - 3.0 * points**0.5 * weights.std(), weights.mean())
    share = float(weights.max() / (weights.max() + total))
    return max(math.ceil((points + 1) * share - ROUNDING), 1)


def unbounded_share(threshold: WeightedThreshold, space: Space) -> float:
    """The share of θ, drawn with the density, where the threshold is infinite."""
    theta = space.uniform(_LOOKS, seed=0).theta
    weights = weights_of(threshold.density, theta)
    return float(weights @ np.isinf(threshold.at(theta)) / weights.sum()) if weights.any() else 0.0


def threshold_of(
    request: CalibrateRequest, held_out: Observations | Points, scores: FloatArray, rank: int, miss: float
) -> tuple[float | None, WeightedThreshold | None]:
    """The score of the rank; or, with a density, the weighted threshold that a fresh score exceeds as seldom as `miss`.

    A density with which the threshold is infinite for most θ is refused, unless trivial intervals are allowed.
    """
    if request.density is None:
        return largest(scores, rank), None
    weights = weights_of(request.density, held_out.theta)
    if not weights.any():
        problem = "{density} is 0 at every held-out point, so none of them counts; observe more points"
        raise InputError(problem, argument="density")
    threshold = WeightedThreshold(scores, weights, miss, request.density)
    lost = unbounded_share(threshold, held_out.space)
    if lost > 0.5 and not request.allow_trivial:
        raise InputError(
            f"{len(held_out):,} held-out points are too few for this {{density}}: for {percent(round(lost, 2))} of the "
            "parameters drawn with it, the interval would be [0, 1]",
            argument="density",
            remedy="observe more points, lower the {level}, or pass {allow_trivial=True}",
        )
    return None, threshold


def around(mean: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of intervals mean ± half."""
    return mean - half - _WIDENED, mean + half + _WIDENED


def weights_of(density: Density, theta: FloatArray) -> FloatArray:
    """The density at each row of θ, checked."""
    weights = np.asarray(density(theta))
    if weights.shape != (len(theta),) or weights.dtype.kind not in "iuf":
        raise InputError(
            f"{{density}} gave {weights.dtype.name} of shape {weights.shape} for {len(theta)} points; "
            "it takes an (n, dimension) array of θ and gives n numbers",
            argument="density",
        )
    if (wrong := ~(np.isfinite(weights) & (weights >= 0))).any():
        row = int(np.argmax(wrong))
        problem = f"{{density}} is {weights[row]} at {theta[row].tolist()}; it must be a finite number from 0 up"
        raise InputError(problem, argument="density")
    return weights.astype(np.float64)
