"""PAC-Bayes: the mean error of functions drawn from a posterior, bounded from the data it was trained on.

For a prior π that does not depend on n independent observations, with probability 1 - δ over them and for every
posterior q at once, the mean error gen of a function drawn from q is bounded by its mean error emp on the data:

    Catoni          gen <= emp + λ/(8n) + (KL[q‖π] + ln 1/δ) / λ                for a λ fixed beforehand
    Maurer, Seeger  kl(emp ‖ gen) <= (KL[q‖π] + ln(2√n/δ)) / n                  with kl that of two coins

The error at a point is |L̄ - f(θ)|, with L̄ the frequency there. The best λ depends on the data through KL, so Catoni's
bound is taken for all λ of a geometric grid at once, each with its share of δ.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sateen.core.observations import Observations
from sateen.core.prediction import Posterior
from sateen.core.seeds import stream_seed
from sateen.core.types import FloatArray
from sateen.guarantee.betting import least_true, mean_upper_bound
from sateen.guarantee.conformal import distances

__all__ = ["catoni_bound", "coin_divergence", "greatest_mean", "mean_error_of_draws", "seeger_bound"]

_DRAWS: Final = 1000  # functions drawn from the posterior
_BLOCK: Final = 500  # rows at which they are drawn jointly
_STEP: Final = math.sqrt(2.0)  # from one λ of the grid to the next


def catoni_bound(empirical: float, divergence: float, points: int, miss: float) -> float:
    """Catoni's bound, the least over a grid of λ: at most 1.5 % above the best λ, but for the logarithm of its size.

    >>> round(catoni_bound(0.04, 20.0, 500, 0.05), 4)
    0.1997
    """
    grid = _temperatures(points, miss)
    price = divergence + math.log(len(grid) / miss)
    return min(1.0, empirical + float(np.min(grid / (8.0 * points) + price / grid)))


def seeger_bound(empirical: float, divergence: float, points: int, miss: float) -> float:
    """Maurer and Seeger's bound, which is much the tighter where the empirical error is small.

    >>> round(seeger_bound(0.04, 20.0, 500, 0.05), 4)
    0.1377
    """
    return greatest_mean(empirical, (divergence + math.log(2.0 * math.sqrt(points) / miss)) / points)


def greatest_mean(empirical: float, divergence: float) -> float:
    """The greatest p for which kl(empirical ‖ p) is at most `divergence`.

    >>> round(greatest_mean(0.0, 0.01), 6)  # 1 - exp(-0.01)
    0.00995
    """
    return least_true(lambda p: coin_divergence(empirical, p) > divergence, empirical, 1.0)


def coin_divergence(q: float, p: float) -> float:
    """The Kullback-Leibler divergence of a coin that shows heads with probability p from one with q, in nats."""
    heads = q * math.log(q / p) if q > 0 else 0.0
    tails = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1 else 0.0
    return heads + tails


def mean_error_of_draws(
    posterior: Posterior, observations: Observations, seed: int, miss: float
) -> tuple[float, float]:
    """The mean error on the observations of a function drawn from the posterior: an estimate, and a bound on it.

    Draws are finitely many, so the estimate is uncertain too; the bound fails with probability `miss`.
    Only the marginals matter to it, so draws are joint within blocks of rows and independent between them.
    """
    errors = np.zeros(_DRAWS)
    for start in range(0, len(observations), _BLOCK):
        rows = observations[start : start + _BLOCK]
        drawn = posterior.sample(rows.points, _DRAWS, seed=stream_seed(seed, "error bound", "functions", start))
        errors += distances(rows, drawn).sum(axis=1)
    errors = np.clip(errors / len(observations), 0.0, 1.0)
    return float(errors.mean()), mean_upper_bound(errors, miss)


def _temperatures(points: int, miss: float) -> FloatArray:
    """The grid of λ: from the best one for KL = 0 to that from which on the bound says nothing."""
    least, most = math.sqrt(8.0 * points * math.log(1.0 / miss)), 8.0 * points
    steps = max(0, math.ceil(math.log(most / least, _STEP)))
    return np.asarray(least * _STEP ** np.arange(steps + 1.0))
