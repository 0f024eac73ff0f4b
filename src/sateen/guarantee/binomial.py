"""What a count of successes says about their probability: one-sided bounds, exact and without assumptions.

Each bound misses with probability at most `miss`, whatever the probability p is. `miss` may be any number in (0, 1):
above one half, a bound lies on the other side of the frequency, which is what the lift makes use of.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

__all__ = ["hoeffding_margin", "lower_bound", "upper_bound"]

FloatArray: TypeAlias = npt.NDArray[np.float64]


def upper_bound(satisfied: npt.ArrayLike, trials: npt.ArrayLike, miss: float) -> FloatArray:
    """Clopper and Pearson's upper bound: the p for which a count of `satisfied` or less has the probability `miss`.

    For every p, a count K of `trials` runs has P(p > upper_bound(K)) <= miss. At K = trials, or without a run, it is 1.

    >>> round(float(upper_bound(0, 100, 0.05)), 5)  # 1 - 0.05 ** (1 / 100)
    0.02951
    """
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
    k, m = np.broadcast_arrays(np.asarray(satisfied, np.float64), np.asarray(trials, np.float64))
    inner = k > 0
    inside = np.where(inner, k, 1.0)
    return np.where(inner, betaincinv(inside, np.where(inner, m, 1.0) - inside + 1.0, miss), 0.0)


def hoeffding_margin(trials: int, miss: float) -> float:
    """How far a frequency is from its probability at most, but for the probability `miss`: sqrt(ln(2/miss) / 2M).

    Statistical model checking knows it as the Chernoff bound.

    >>> round(hoeffding_margin(500, 0.05), 4)
    0.0607
    """
    return math.sqrt(math.log(2.0 / miss) / (2.0 * trials))
