"""Where the next runs should go, and how many at each point: one round of a refinement.

The latent g = Φ⁻¹(f) has at each point x a mean μ and a standard deviation s. A goal weighs how much what is not known
at x matters; for a threshold at t = Φ⁻¹(p) the undecided volume is about ∫ δ(μ - t) 2zs dx. A round goes

1. from fresh candidates that fill the space to a pool, drawn with probability ∝ their interest and weighted by what
   that leaves out;
2. from the joint posterior covariance C on the pool to picks. One more chunk of c runs at point i is an observation of
   g with the noise v = 1/(cI), where I = φ(μ)²/(Φ(1-Φ)) is the information of a run; it changes the covariance by
   -C[:, i]C[i, :]/(C[i, i] + v). The pick is the point whose chunk lowers the weighted uncertainty most.

A point that is picked again gets more runs: that is how the number of runs is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream, stream_seed
from sateen.core.space import Points, Space
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray, IntArray
from sateen.decision.goals import Error, Threshold, Width

PICKS: Final = 96  # of a round
_POOL: Final = 900
_CANDIDATES: Final = 16_384
_MANY_CANDIDATES_UP_TO: Final = 2  # parameters; beyond, a prediction takes longer, and half of them will do
_FLOOR: Final = 1e-3  # of the median variance: after many updates, rounding would let one point take every pick
_STEEP: Final = 4.0  # how soon intervals that are narrow enough lose their interest
Gain: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # of covariance, variances and noise
Costs: TypeAlias = Callable[[FloatArray], FloatArray]  # of a run at each row of θ, relative to each other


@dataclass(frozen=True, slots=True)
class Interest:
    """How much what is not known at each candidate matters.

    The goal is to lower Σ weight · s, or Σ weight · s² where it is `squared`.
    """

    weight: FloatArray
    squared: bool

    def gain(self, weight: FloatArray) -> Gain:
        """How much a chunk at each point of a pool would lower the sum, whose weights in the pool are given."""

        def gain(covariance: FloatArray, variances: FloatArray, noise: FloatArray) -> FloatArray:
            worth = weight if self.squared else weight / np.sqrt(variances)
            return np.asarray((worth @ (covariance * covariance)) / (variances + noise))

        return gain


def interest_of(goal: Threshold | Width | Error, mean: FloatArray, std: FloatArray) -> Interest:
    """The interest of a goal in candidates at which g has these means and standard deviations."""
    if isinstance(goal, Threshold):
        distance = (mean - ndtri(goal.probability)) / std
        return Interest(np.exp(-0.5 * distance**2) / std, squared=False)
    steepness = np.exp(-0.5 * mean**2) / np.sqrt(2.0 * np.pi)  # of f in g
    if isinstance(goal, Error):
        return Interest(steepness**2, squared=True)
    z = float(ndtri(0.5 + 0.5 * goal.level))
    width = ndtr(mean + z * std) - ndtr(mean - z * std)
    return Interest(steepness**2 * np.minimum(1.0, width / goal.width) ** _STEEP, squared=True)


def figure_of(goal: Threshold | Width | Error, posterior: FullPosterior, points: Points) -> float:
    """The figure that a goal wants to be small, over points that fill the space."""
    if isinstance(goal, Error):
        return float(np.sqrt(np.mean(posterior.predict(points).std ** 2)))
    if isinstance(goal, Width):
        return float(np.quantile(posterior.predict(points, level=goal.level).width, goal.share))
    mean, std = posterior.latent_moments(points)
    z = float(ndtri(0.5 + 0.5 * goal.level))
    return float(np.mean(np.abs(mean - ndtri(goal.probability)) <= z * std))


def candidates(space: Space, seed: int) -> Points:
    """Fresh points that fill the space."""
    if not space.names:
        return space.points({})
    few = len(space) > _MANY_CANDIDATES_UP_TO
    return space.sobol(_CANDIDATES // 2 if few else _CANDIDATES, seed=seed)


@on_one_thread
def pick_round(
    goal: Threshold | Width | Error,
    posterior: FullPosterior,
    budget: int,
    *,
    seed: int,
    costs: Costs | None = None,
) -> tuple[FloatArray, IntArray]:
    """The points of a round, a row each, and the runs at each: together `budget`."""
    fresh = candidates(posterior.space, stream_seed(seed, "candidates"))
    mean, std = posterior.latent_moments(fresh)
    interest = interest_of(goal, mean, np.maximum(std, np.finfo(np.float64).tiny))
    pool, weight = drawn_pool(interest, std, stream(seed, "pool"))
    theta = fresh.theta[pool]
    covariance = posterior.latent_covariance(Points(theta, posterior.space), seed=stream_seed(seed, "covariance"))
    price = np.ones(len(pool)) if costs is None else costs(theta)
    runs = greedy(covariance, mean[pool], interest.gain(weight), budget, price)
    kept = runs > 0
    return theta[kept], runs[kept]


def drawn_pool(interest: Interest, std: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The candidates in the pool, and their weights: their interest over their chance to be in the pool.

    The chance is proportional to what a candidate contributes to the sum, and at most 1: few candidates lie near a
    thin boundary, and those are all in the pool. Systematic sampling in random order keeps the chances exactly, so the
    weighted sum over the pool is an unbiased estimate of the sum over all candidates.
    """
    worth = interest.weight * (std**2 if interest.squared else 1.0)
    if not 0.0 < float(worth.sum()) < np.inf:  # nothing matters any more, as far as doubles can tell
        worth = std + np.finfo(np.float64).tiny
    chance = _chances(worth, _POOL)
    order = rng.permutation(len(chance))
    steps = np.floor(np.cumsum(chance[order]) + rng.random())
    pool = np.sort(order[np.diff(steps, prepend=0.0) > 0])
    return pool, np.asarray(interest.weight[pool] / chance[pool])


def _chances(worth: FloatArray, size: int) -> FloatArray:
    """Chances proportional to the worth, at most 1 each, that add up to `size` where that many have any worth."""
    chance = np.where(worth > 0.0, 1.0, 0.0)
    open_ = worth > 0.0
    while open_.sum() > (room := size - int((chance[~open_] > 0).sum())):
        scaled = worth[open_] * (room / worth[open_].sum())
        if (scaled <= 1.0).all():
            chance[open_] = scaled
            break
        open_[np.flatnonzero(open_)[scaled > 1.0]] = False
    return chance


def information(mean: FloatArray) -> FloatArray:
    """The Fisher information of one run about g = Φ⁻¹(f): φ(g)²/(Φ(g)Φ(-g))."""
    return np.asarray(np.exp(-(mean**2)) / (2.0 * np.pi) / np.maximum(ndtr(mean) * ndtr(-mean), 1e-300))


def greedy(
    covariance: FloatArray, mean: FloatArray, gain: Gain, budget: int, price: FloatArray, picks: int = PICKS
) -> IntArray:
    """How many runs each point of a pool gets, when each of the picks goes where it gains most for its price."""
    picks = min(picks, budget)
    chunk = budget / picks
    noise = 1.0 / (chunk * np.maximum(information(mean), 1e-300))
    floor = _FLOOR * float(np.median(np.diag(covariance)))
    chosen = np.zeros(len(mean), np.int64)
    left = covariance.copy()
    for _ in range(picks):
        variances = np.maximum(np.diag(left), floor)
        best = int(np.argmax(gain(left, variances, noise) / price))
        chosen[best] += 1
        column = left[:, best].copy()
        left -= np.multiply.outer(column / (variances[best] + noise[best]), column)
    shares = np.cumsum(chosen) * budget // picks  # rounded so that together they are the budget
    return np.asarray(np.diff(shares, prepend=0), np.int64)
