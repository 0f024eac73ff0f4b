"""What a count of successes says about their probability: intervals and one-sided bounds.

The one-sided bounds miss with probability at most `miss`, whatever the probability p is. `miss` may be any number in
(0, 1): above one half a bound lies on the other side of the frequency, which is what the lift makes use of.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.types import FloatArray

Limits: TypeAlias = tuple[float, float]
_NEVER: Final = 1e-18  # a variance of f, or a distance of its mean from 0 and 1, below which f counts as known
Z_95: Final = 1.959963984540054  # standard deviations of a normal variable hold 95 % of it between them


def wilson(frequency: npt.ArrayLike, trials: npt.ArrayLike, z: float = Z_95) -> tuple[FloatArray, FloatArray]:
    """The ends of Wilson's interval, where `z` is a normal quantile; it has positive width even if all runs agree.

    >>> low, high = wilson(0.0, 100)
    >>> f"{low:.4f} {high:.4f}"
    '0.0000 0.0370'
    """
    p = np.asarray(frequency, np.float64)
    share = z**2 / np.asarray(trials, np.float64)
    centre = (p + share / 2) / (1 + share)
    half = np.sqrt(share * p * (1 - p) + share**2 / 4) / (1 + share)
    return np.where(p == 0, 0.0, centre - half), np.where(p == 1, 1.0, centre + half)  # exact at the ends


def clopper_pearson(satisfied: float, runs: float, level: float, undecided: float = 0) -> Limits:
    """The interval that contains the probability in at least `level` of cases, if `runs` was fixed beforehand.

    Its lower limit is the probability under which `satisfied` or more have the chance (1 - level)/2; its upper limit is
    the one under which as many or fewer have it. Undecided runs count against the lower and for the upper limit.

    >>> [round(limit, 4) for limit in clopper_pearson(3, 10, 0.95)]
    [0.0667, 0.6525]
    """
    tail = (1.0 - level) / 2.0
    return float(lower_bound(satisfied, runs, tail)), float(upper_bound(satisfied + undecided, runs, tail))


def upper_bound(satisfied: npt.ArrayLike, trials: npt.ArrayLike, miss: float) -> FloatArray:
    """Clopper and Pearson's upper bound: the p for which a count of `satisfied` or less has the probability `miss`.

    For every p, a count K of `trials` runs has P(p > upper_bound(K)) <= miss. At K = trials, or without a run, it is 1.

    >>> round(float(upper_bound(0, 100, 0.05)), 5)  # 1 - 0.05 ** (1 / 100)
    0.02951
    """
    from scipy.special import betainccinv

    k, m = np.broadcast_arrays(np.asarray(satisfied, np.float64), np.asarray(trials, np.float64))
    inner = k < m
    inside = np.where(inner, k, 0.0)
    return np.where(inner, betainccinv(inside + 1.0, np.where(inner, m, 1.0) - inside, miss), 1.0)


def lower_bound(satisfied: npt.ArrayLike, trials: npt.ArrayLike, miss: float) -> FloatArray:
    """Clopper and Pearson's lower bound: the p for which a count of `satisfied` or more has the probability `miss`.

    For every p, a count K of `trials` runs has P(p < lower_bound(K)) <= miss. At K = 0 it is 0.

    >>> round(float(lower_bound(100, 100, 0.05)), 5)
    0.97049
    """
    from scipy.special import betaincinv

    k, m = np.broadcast_arrays(np.asarray(satisfied, np.float64), np.asarray(trials, np.float64))
    inner = k > 0
    inside = np.where(inner, k, 1.0)
    return np.where(inner, betaincinv(inside, np.where(inner, m, 1.0) - inside + 1.0, miss), 0.0)


def hoeffding_margin(trials: npt.ArrayLike, miss: float) -> FloatArray:
    """How far a frequency is from its probability, except with the probability `miss`: sqrt(ln(2/miss) / 2M).

    In statistical model checking it is known as the Chernoff bound. Without a run it is infinite.

    >>> round(float(hoeffding_margin(500, 0.05)), 4)
    0.0607
    """
    m = np.asarray(trials, np.float64)
    made = m > 0
    return np.where(made, np.sqrt(math.log(2.0 / miss) / (2.0 * np.where(made, m, 1.0))), math.inf)


def bounded_margin(deviation: float, trials: int, miss: float) -> float:
    """How far the mean of values in [0, 1] is below their expectation, except with the probability `miss`.

    `deviation` is that of the sample, with trials - 1 below. This is Maurer and Pontil's empirical Bernstein bound:
    s sqrt(2 ln(2/miss) / n) + 7 ln(2/miss) / (3 (n - 1)). It holds for every n from 2 on, and for the other side too.

    >>> round(bounded_margin(0.1, 10_000, 0.025), 5)
    0.00398
    """
    logarithm = math.log(2.0 / miss)
    return deviation * math.sqrt(2.0 * logarithm / trials) + 7.0 * logarithm / (3.0 * (trials - 1))


def beta_quantiles(mean: FloatArray, std: FloatArray, share: float | FloatArray) -> FloatArray:
    """Quantiles of the Beta distributions with these means and standard deviations; known values are themselves.

    A standard deviation that no distribution on [0, 1] with the mean has is taken as the largest that a Beta has.

    >>> beta_quantiles(np.array([0.5]), np.array([1 / 12**0.5]), 0.25).round(6)
    array([0.25])
    """
    from scipy.special import betaincinv

    mean = np.clip(mean, 0.0, 1.0)
    largest = mean * (1.0 - mean)
    variance = np.minimum(np.square(std), 0.999 * largest)
    known = (variance < _NEVER) | (largest < _NEVER)
    total = np.where(known, 1.0, largest / np.where(known, 1.0, variance) - 1.0)
    inside = np.where(known, 0.5, mean)
    return np.asarray(np.where(known, mean, betaincinv(inside * total, (1.0 - inside) * total, share)))
