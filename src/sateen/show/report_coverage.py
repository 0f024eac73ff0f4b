"""How often intervals are right, judged by runs that nobody learned from: nominal against actual coverage.

The truth is not known at the test points, only the frequency among their runs, which has noise of its own. So what is
judged is the whole forecast of a count: of k satisfied runs among M, if f is as believed and runs are binomial given f.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.observations import Observations
from sateen.core.prediction import Posterior, Prediction

__all__ = ["LEVELS", "coverage", "coverage_noise", "forecast_ranks", "share_inside"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
LEVELS: Final = tuple(n / 20 for n in range(1, 20))
_QUANTILES: Final = 64  # of f at each point, over which the forecast of the count is averaged
_ASKED: Final = (0.02, 0.6, 0.9, 0.99)  # levels of the intervals between whose ends the quantiles are interpolated
_LEAST: Final = 1e-12  # length of a range of ranks, and distance of an end from 0 and 1
_NINETY_FIVE: Final = 1.959963984540054


def forecast_ranks(posterior: Posterior, seen: Observations) -> FloatArray:
    """For each point, between which ranks of its forecast the count lies: P(K < k) and P(K ≤ k), a row each.

    Under a right forecast a uniform draw between the two is uniform on [0, 1]. Undecided runs leave the count open, and
    the range is that much longer.
    """
    from scipy.special import bdtr

    f = _quantiles(posterior, seen)
    trials = seen.trials[:, None].astype(np.float64)
    first, last = seen.satisfied[:, None] - 1.0, (seen.satisfied + seen.undecided)[:, None].astype(np.float64)
    below = np.where(first < 0, 0.0, bdtr(np.maximum(first, 0.0), trials, f))
    up_to = np.where(last >= trials, 1.0, bdtr(np.minimum(last, trials), trials, f))
    return np.stack([below.mean(axis=1), up_to.mean(axis=1)], axis=1)


def _quantiles(posterior: Posterior, seen: Observations) -> FloatArray:
    """Evenly spread quantiles of f at each point, a row each.

    They are interpolated on the probit scale, where those of a Gaussian process lie on a line.
    """
    from scipy.special import ndtr, ndtri

    predicted = {level: posterior.predict(seen.points, level=level) for level in _ASKED}
    tails = [(1 - level) / 2 for level in _ASKED]
    known = ndtri(np.array([*reversed(tails), *(1 - tail for tail in tails)]))
    ends = [own.lower for own in reversed(predicted.values())] + [own.upper for own in predicted.values()]
    table = ndtri(np.clip(np.stack(ends, axis=1), _LEAST, 1 - _LEAST))
    wanted = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.asarray(ndtr([np.interp(wanted, known, row) for row in table]), dtype=np.float64)


def coverage(ranks: FloatArray, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """The share of points whose count lies in the central interval of each level of its forecast.

    A count whose range of ranks lies only partly inside counts for that part, so the share of a right forecast is the
    level itself on average, also for few runs, and no random number is needed.

    >>> coverage(np.array([[0.0, 1.0], [0.45, 0.55]]), (0.5,)).round(4).tolist()
    [0.75]
    """
    low, high = ranks.T
    length = np.maximum(high - low, _LEAST)
    shares = []
    for level in levels:
        start, stop = (1 - level) / 2, (1 + level) / 2
        inside = np.clip(np.minimum(high, stop) - np.maximum(low, start), 0.0, None) / length
        shares.append(float(np.mean(np.clip(inside, 0.0, 1.0))))
    return np.array(shares)


def coverage_noise(points: int, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """Within what the coverage of a right forecast at so many points lies 95 times in 100, a row for each level."""
    nominal = np.array(levels)
    reach = _NINETY_FIVE * np.sqrt(nominal * (1 - nominal) / max(points, 1))
    ends: FloatArray = np.stack([nominal - reach, nominal + reach], axis=1)
    return ends.clip(0.0, 1.0)


def share_inside(predicted: Prediction, seen: Observations) -> float:
    """The share of points whose frequency lies in the predicted interval, for whatever the undecided runs would be."""
    used = seen.trials > 0
    low, high = seen.frequency_bounds[used].T
    inside: Any = (predicted.lower[used] <= low) & (high <= predicted.upper[used])
    return float(np.mean(inside)) if used.any() else float("nan")
