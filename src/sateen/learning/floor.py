"""The floor of a posterior's deviations: where a learner is surest, it is no surer than its fit as a whole allows.

In the angle φ = arcsin √f one run carries the information 4, whatever f is. With the deviation s_i of φ at training
point i, which has N_i runs, p = Σ 4 N_i s_i² is the number of parameters that the counts had to determine, and
p / (4 ΣN) is the mean variance of φ, weighted by runs. A learner that is much surer than that at some point owes it to
its prior: near f = 0 and 1, kernels and networks promise more than counts can show. So half the mean variance is the
least that is believed of φ anywhere. Counts determine one parameter at least, the height of f: where a prior alone
fixes even that, as with one point or with the same count everywhere, p is taken to be 1. The mean of f stays as it is,
and intervals only become wider.

What is added has a joint law of its own: one normal number for each draw of f shifts φ at all points alike. Independent
shifts would look like dependence on every parameter, and inflate sensitivity indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sateen.core.types import FloatArray

if TYPE_CHECKING:
    from sateen.learning.posterior import LearnedPosterior, Summary

LEVEL: Final = 0.95  # of the intervals that tell deviations of the angle
_SHARE: Final = 0.5  # of the mean variance
_MOST_ROWS: Final = 1024  # of the training, which are enough for a mean, and are one block of networks' work


def floor_of(posterior: LearnedPosterior) -> float:
    """Half the mean variance of φ over the training points, weighted by their decided runs; p is 1 or more."""
    training = posterior.training.observations
    runs = (training.trials - training.undecided).astype(np.float64)
    known = np.flatnonzero(runs > 0)
    rows = known[np.linspace(0, len(known) - 1, min(len(known), _MOST_ROWS)).round().astype(int)]
    prediction = posterior.predict(training.points[rows], level=LEVEL)
    variance = angle_deviation(prediction.lower, prediction.upper, LEVEL) ** 2
    of_one_parameter = 1.0 / (4.0 * float(runs.sum()))
    return _SHARE * max(float(np.average(variance, weights=runs[rows])), of_one_parameter)


def angle(f: FloatArray) -> FloatArray:
    """φ = arcsin √f."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(f, 0.0, 1.0))))


def probability(phi: FloatArray) -> FloatArray:
    """f = sin² φ."""
    return np.asarray(np.sin(phi) ** 2)


def angle_deviation(lower: FloatArray, upper: FloatArray, level: float) -> FloatArray:
    """The deviation of a normal φ whose central interval of this level has the given ends."""
    from scipy.special import ndtri

    return np.asarray((angle(upper) - angle(lower)) / (2.0 * float(ndtri(0.5 + 0.5 * level))))


def raised(summary: Summary, level: float, floor: float) -> Summary:
    """Mean, deviation and interval of f, where the variance of φ is less than `floor` with that variance."""
    from scipy.special import ndtri

    mean, std, lower, upper = summary
    short = angle_deviation(lower, upper, level) ** 2 < floor
    middle, deviation = angle(mean), np.full(len(mean), np.sqrt(floor))
    reach = float(ndtri(0.5 + 0.5 * level)) * deviation
    least, most = (probability(np.clip(middle + sign * reach, 0.0, np.pi / 2.0)) for sign in (-1.0, 1.0))
    return (
        mean,
        np.where(short, np.maximum(std, probability_deviation(middle, deviation)), std),
        np.where(short, np.minimum(lower, least), lower),
        np.where(short, np.maximum(upper, most), upper),
    )


def shifted(draws: FloatArray, summary: Summary, floor: float, rng: np.random.Generator) -> FloatArray:
    """Draws of f, a row each, with what the floor adds to the variance of φ: one shift for all points of a draw.

    `summary` is that of the posterior without the floor, at `LEVEL`.
    """
    missing = np.sqrt(np.maximum(floor - angle_deviation(*summary[2:], LEVEL) ** 2, 0.0))
    return probability(angle(draws) + rng.standard_normal((len(draws), 1)) * missing)


def probability_deviation(middle: FloatArray, deviation: FloatArray) -> FloatArray:
    """The standard deviation of sin² φ for a normal φ."""
    once, twice = np.exp(-2.0 * deviation**2), np.exp(-8.0 * deviation**2)
    of_square = 0.5 * (1.0 + np.cos(4.0 * middle) * twice) - (np.cos(2.0 * middle) * once) ** 2
    return np.asarray(0.5 * np.sqrt(np.maximum(of_square, 0.0)))
