"""An upper bound on a mean, by betting that values are lower than it.

Whoever claims that the mean of values in [0, 1] is at least m must accept the bet that pays 1 - λ(x - m) on each of
them, with 0 <= λ <= 1/(1 - m) fixed before x is seen: it is fair at best. Starting with 1, such bets reach 1/δ with
probability at most δ (Ville), so a claim against which they do is given up, and the least m that is given up bounds
the mean with confidence 1 - δ. How much to bet is learned from the values that went before (Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", 2024); no normality and no large number of values is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.types import FloatArray

__all__ = ["least_true", "mean_upper_bound"]

_MOST_STAKED: Final = 0.99  # of the capital: whoever stakes all of it is ruined by a single value of 1
_HALVINGS: Final = 40  # of an interval no longer than 1: to 1e-12


def mean_upper_bound(values: npt.ArrayLike, miss: float) -> float:
    """What the mean of independent values in [0, 1] exceeds with probability at most `miss`.

    The values need not have one distribution: then the bound is on any number that is at most the mean of each. They
    are bet on in their order, which must not have been chosen by looking at them.

    >>> round(mean_upper_bound(np.zeros(300), 0.05), 4)  # nothing but zeros leaves room for ln(1/0.05)/300
    0.0102
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x) or not ((x >= 0) & (x <= 1)).all():
        raise InputError("a bound on a mean needs a column of values between 0 and 1, and at least one")
    goal = math.log(1.0 / miss)
    stakes = _stakes(x, goal)

    def given_up(mean: float) -> bool:
        shares = np.minimum(stakes, _MOST_STAKED / (1.0 - mean))
        capital = np.cumsum(np.log1p(-shares * (x - mean)))
        return bool(capital.max() >= goal)

    return least_true(given_up, 0.0, 1.0)


def least_true(test: Callable[[float], bool], low: float, high: float) -> float:
    """The least number from `low` to `high` at which a test that changes once, from false to true, is true.

    `high` is not tested: it is the answer where nothing below passes. Rounding is upwards.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if test(middle) else (middle, high)
    return high


def _stakes(x: FloatArray, goal: float) -> FloatArray:
    """λ for each value, from those before it: what would reach the goal soonest if they went on with that variance."""
    count = np.arange(1.0, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (count + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * goal / (len(x) * before)))
