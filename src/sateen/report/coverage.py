"""How often intervals are right, judged by runs that nobody learned from: nominal against actual coverage.

The truth is not known at the test points, only the frequency among their runs, which has noise of its own. So what is
judged is the whole forecast of a count: of k satisfied runs among M, if f is as believed and runs are binomial given f.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction, Predictor
from sateen.core.seeds import stream
from sateen.core.types import FloatArray, IntArray
from sateen.report.data import Json, short

__all__ = ["LEVELS", "coverage", "coverage_data", "coverage_noise", "forecast_ranks", "share_inside"]

LEVELS: Final = tuple(n / 20 for n in range(1, 20))
_QUANTILES: Final = 32  # of f at each point, over which the forecast of the count is averaged
_ASKED: Final = (0.02, 0.6, 0.9, 0.99)  # levels of the intervals between whose ends the quantiles are interpolated
_LEAST: Final = 1e-12  # length of a range of ranks, and distance of an end from 0 and 1
_DRAWS: Final = 200  # of the whole function, for the band of a right belief
_MOST_SIMULATED: Final = 100  # points for that band


def coverage_data(
    posteriors: Mapping[str, FullPosterior],
    leading: str,
    guarantee: Predictor | None,
    met: float | None,
    test: Observations,
    *,
    seed: int,
) -> Json:
    """Nominal and actual coverage of each posterior, the band of the `leading` one, and how the guarantee fares.

    `met` is the share of test points where the guaranteed interval meets that of the runs.
    """
    observed = test[test.trials > 0]
    guaranteed = None
    if guarantee is not None and met is not None:
        prediction = guarantee.predict(observed.points)
        guaranteed = {"level": prediction.level, "inside": share_inside(prediction, observed), "met": met}
    noise = coverage_noise(posteriors[leading], observed, seed=seed)
    return {
        "points": len(observed),
        "design": test.points.design,
        "learner": leading,
        "levels": list(LEVELS),
        "noise": {"low": short(noise[:, 0]), "high": short(noise[:, 1])},
        "actual": {name: short(coverage(forecast_ranks(each, observed))) for name, each in posteriors.items()},
        "guarantee": guaranteed,
    }


def forecast_ranks(posterior: FullPosterior, observed: Observations) -> FloatArray:
    """For each point, between which ranks of its forecast the count lies: P(K < k) and P(K ≤ k), a row each.

    Under a right forecast a uniform draw between the two is uniform on [0, 1]. Undecided runs leave the count open, and
    the range is that much longer.
    """
    return _ranks(
        _quantiles(posterior, observed), observed.satisfied, observed.satisfied + observed.undecided, observed.trials
    )


def _ranks(f: FloatArray, first: IntArray, last: IntArray, trials: IntArray) -> FloatArray:
    """The ranks below `first` and up to `last` in binomial counts averaged over the quantiles `f` of each point."""
    ends = [_up_to(k[:, None], trials[:, None], f).mean(axis=1) for k in (first - 1, last)]
    return np.stack(ends, axis=1)


def _up_to(k: IntArray, trials: IntArray, f: FloatArray) -> FloatArray:
    """The probability of at most `k` satisfied runs, which is a tail of the beta distribution."""
    from scipy.special import betaincc

    inside = np.clip(k, 0, np.maximum(trials - 1, 0))
    tail = betaincc(inside + 1.0, np.maximum(trials - inside, 1.0), f)
    return np.where(k < 0, 0.0, np.where(k >= trials, 1.0, tail))


def _ranks_of_draws(f: FloatArray, counts: IntArray, trials: int) -> FloatArray:
    """The same for many counts at one point, a row each: the probabilities of all counts between are summed up."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(counts.min(), counts.max() + 1)
    ways = gammaln(trials + 1.0) - gammaln(k + 1.0) - gammaln(trials - k + 1.0)
    each = np.exp(ways[:, None] + xlogy(k[:, None], f) + xlog1py(trials - k[:, None], -f)).mean(axis=1)
    before = float(_up_to(k[:1] - 1, np.array([trials]), f).mean())
    up_to = np.minimum(before + np.cumsum(each), 1.0)
    place = counts - k[0]
    return np.stack([np.maximum(up_to[place] - each[place], 0.0), up_to[place]], axis=1)


def _quantiles(posterior: FullPosterior, observed: Observations) -> FloatArray:
    """Evenly spread quantiles of f at each point, a row each.

    They are interpolated on the probit scale, where those of a Gaussian process lie on a line.
    """
    from scipy.special import ndtr, ndtri

    predictions = [posterior.predict(observed.points, level=level) for level in _ASKED]
    tails = [(1 - level) / 2 for level in _ASKED]
    known = ndtri(np.array([*reversed(tails), *(1 - tail for tail in tails)]))
    ends = [each.lower for each in reversed(predictions)] + [each.upper for each in predictions]
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


def coverage_noise(
    posterior: FullPosterior, observed: Observations, levels: tuple[float, ...] = LEVELS, *, seed: int
) -> FloatArray:
    """Between what the coverage lies 95 times in 100 if the posterior's belief is right, a row for each level.

    Functions are drawn from the posterior, jointly over all points, and counts from each. So the band knows that the
    errors at neighbouring points go together: a coverage far from the level may well be the luck of one training.
    """
    rows = _evenly(len(observed), _MOST_SIMULATED)
    part = observed[rows]
    f = _quantiles(posterior, part)
    truths = posterior.sample(part.points, _DRAWS, seed=seed)
    counts = stream(seed, "coverage").binomial(part.trials, truths)
    ranks = np.stack([_ranks_of_draws(*row) for row in zip(f, counts.T, part.trials.tolist(), strict=True)], axis=1)
    shares = np.stack([coverage(each, levels) for each in ranks])
    ends: FloatArray = np.quantile(shares, [0.025, 0.975], axis=0).T
    return ends


def _evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """All of so many rows, or `most` of them, evenly spread."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def share_inside(prediction: Prediction, observed: Observations) -> float:
    """The share of points whose frequency lies in the predicted interval, for whatever the undecided runs would be."""
    used = observed.trials > 0
    low, high = observed.frequency_bounds[used].T
    inside = (prediction.lower[used] <= low) & (high <= prediction.upper[used])
    return float(np.mean(inside)) if used.any() else float("nan")
