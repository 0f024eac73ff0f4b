"""Calibrations rehearsed before any run of them is paid for: how wide the intervals of a lift would be.

What is unknown before a calibration is f itself. A rehearsal draws possible ones from the posterior, after making it
honest: where the posterior is more certain than it should be, held-out parts of its own training show it, and its
deviations are stretched by one factor. Counts at points all over the space are then drawn from each possible f, and the
lift's own algebra gives the intervals. Nothing here affects what a guarantee claims; it only tells what it will cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import betaincinv, betaln

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, complete
from sateen.core.prediction import Posterior, Prediction
from sateen.core.seeds import stream, stream_seed
from sateen.core.types import FloatArray
from sateen.guarantee.checks import learner_of, refitted
from sateen.guarantee.lift import lifted
from sateen.guarantee.normaliser import centre, difficulty, joined

_POINTS: Final = 1024  # θ on which calibrations are rehearsed
_TRUTHS: Final = 16  # possible f
_ORDERS: Final = 8  # quantiles of where the score of a rank lies
_THRESHOLDS: Final = 16  # at which widths are computed; between them they are interpolated

_FOLDS: Final = 3
_MANY_ROWS: Final = 50_000  # of the training, from which on some are held out once, not all in turn
_MOST_HELD_OUT: Final = 20_000
_FEWEST_ROWS: Final = 10
_SCALES: Final = 2.0 ** np.linspace(-3.0, 7.0, 101)
_USUAL: Final = 1.1  # scale, and its deviation on a log scale: measured on random networks that no benchmark uses
_DOUBT: Final = 0.35
_EDGE: Final = 1e-6  # means are kept this far from 0 and 1, and deviations above 0


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What a posterior says at points all over the space, and functions f, a row each, which it holds possible there.

    `scale` is the factor by which its deviations were stretched, `seconds_per_run` how long a run of the training took.
    """

    prediction: Prediction
    truths: FloatArray
    scale: float
    seed: int
    seconds_per_run: float = math.nan

    def most_points(self, rank: int) -> int:
        """How many points are rehearsed faithfully: with more, the score of the rank lies beyond those available."""
        return rank * len(self.prediction)

    def widths(self, points: int, runs: int, rank: int, eta: float, normaliser: str) -> FloatArray:
        """The mean width over θ of the lift, in equally likely calibrations with this many points and runs."""
        mean, u = centre(self.prediction), difficulty(normaliser, self.prediction, runs)
        thresholds = self._thresholds(mean, u, points, runs, rank)
        nodes = np.quantile(thresholds, np.linspace(0.0, 1.0, _THRESHOLDS))
        lower, upper = joined(*lifted(mean, nodes[:, None] * u, runs, eta), self.prediction, runs)
        return np.interp(thresholds.ravel(), nodes, np.mean(upper - lower, axis=1))

    def _thresholds(self, mean: FloatArray, u: FloatArray, points: int, runs: int, rank: int) -> FloatArray:
        """The score of the rank: quantiles of its distribution, a row for each possible f.

        A share of scores that is distributed as Beta(m, n - m + 1) is larger than the m-th largest of n.
        """
        counts = stream(self.seed, "rehearsal", "counts").binomial(runs, self.truths)
        scores = np.sort(np.abs(counts / runs - mean) / u, axis=1)
        larger = betaincinv(rank, points - rank + 1, (np.arange(_ORDERS) + 0.5) / _ORDERS)
        return np.quantile(scores, 1.0 - larger, axis=1)


def rehearse(posterior: Posterior, level: float, seed: int) -> Rehearsal:
    """The stage for a guarantee of this level: points, and functions that the posterior holds possible, made honest."""
    whole, space = complete(posterior), posterior.space
    design = space.sobol if space.names else space.uniform
    prediction = whole.predict(design(_POINTS, seed=stream_seed(seed, "rehearsal", "points")), level=level)
    mean, scale = centre(prediction), error_scale(posterior, seed)
    drawn = whole.sample(prediction.points, _TRUTHS, seed=stream_seed(seed, "rehearsal", "functions"))
    truths = np.clip(mean + scale * (drawn - mean), 0.0, 1.0)
    return Rehearsal(prediction, truths, scale, seed, whole.seconds_per_run)


def error_scale(posterior: Posterior, seed: int) -> float:
    """How many times its own standard deviations a posterior errs, as held-out parts of its training tell.

    The learner is fitted without a third of the training, three times; of very many rows, once and without 20,000.
    The counts there are likely or unlikely under a beta-binomial distribution with its mean and c times its deviation.
    Their noise often hides the error, so c begins as what is usual, 1.1 give or take 40 %, and the counts move it.
    A posterior that cannot be fitted again keeps what is usual.
    """
    learner = learner_of(posterior)
    if learner is None:
        return _USUAL
    training = complete(posterior).training.observations
    rows = np.flatnonzero((training.trials > 0) & (training.undecided == 0))
    if len(rows) < _FEWEST_ROWS:
        return _USUAL
    order = stream(seed, "rehearsal", "folds").permutation(len(rows))
    folds = np.array_split(order, _FOLDS) if len(rows) <= _MANY_ROWS else [order[:_MOST_HELD_OUT]]
    evidence = -0.5 * (np.log(_SCALES / _USUAL) / _DOUBT) ** 2
    for number, fold in enumerate(folds):
        held_out = np.zeros(len(rows), dtype=np.bool_)
        held_out[fold] = True
        part = refitted(learner, training[rows[~held_out]], stream_seed(seed, "rehearsal", "fit", number), "a plan")
        evidence += _log_likelihoods(part, training[rows[held_out]])
    weights = np.exp(evidence - evidence.max())
    return float(np.exp(np.average(np.log(_SCALES), weights=weights)))


def _log_likelihoods(posterior: FullPosterior, held_out: Observations) -> FloatArray:
    """Of the counts under each scale, but for a constant."""
    prediction = posterior.predict(held_out.points)
    mean = np.clip(prediction.mean, _EDGE, 1.0 - _EDGE)
    largest = mean * (1.0 - mean)
    values = np.empty(len(_SCALES))
    for place, scale in enumerate(_SCALES):
        variance = np.minimum((scale * np.maximum(prediction.std, _EDGE)) ** 2, 0.99 * largest)
        strength = largest / variance - 1.0
        a, b = mean * strength, (1.0 - mean) * strength
        values[place] = np.sum(betaln(a + held_out.satisfied, b + held_out.violated) - betaln(a, b))
    return values
