"""Normalisers: what scores are divided by, so that intervals are wide where f is difficult to predict.

A normaliser is any positive function of θ that the training alone has fixed: every one keeps the guarantee, and a good
one makes the intervals narrow. `NORMALISERS` is the one table of them, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from sateen.core.posterior import training_of

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.posterior import FullPosterior
    from sateen.core.prediction import Prediction
    from sateen.core.types import FloatArray

Difficulty: TypeAlias = "Callable[[Prediction, int], FloatArray]"
_LEAST: Final = 1e-6  # difficulty: a posterior may be certain, and scores cannot be divided by 0
_RESOLUTION: Final = 1e-6  # of an end: nearer to 0 or 1 than this, it is 0 or 1


def centre(prediction: Prediction) -> FloatArray:
    """The posterior mean f̂, kept within [0, 1] whatever the posterior says."""
    return np.clip(prediction.mean, 0.0, 1.0)


def _predictive(prediction: Prediction, runs: int) -> FloatArray:
    """The deviation of the frequency that is observed: u² = s² + f̂(1 - f̂)/M + 1/M², which stays away from 0."""
    mean = centre(prediction)
    return np.asarray(np.sqrt(prediction.std**2 + mean * (1.0 - mean) / runs + 1.0 / runs**2))


def _posterior(prediction: Prediction, runs: int) -> FloatArray:
    """The posterior's standard deviation, s."""
    return np.maximum(prediction.std, _LEAST)


def _quantile(prediction: Prediction, runs: int) -> FloatArray:
    """Half the width of the posterior's credible interval, at the level of the claim."""
    return np.maximum(0.5 * prediction.width, _LEAST)


def _constant(prediction: Prediction, runs: int) -> FloatArray:
    """The same everywhere."""
    return np.ones(len(prediction))


NORMALISERS: Final[Mapping[str, Difficulty]] = MappingProxyType(
    {"predictive": _predictive, "posterior": _posterior, "quantile": _quantile, "constant": _constant}
)


def difficulty(normaliser: str, prediction: Prediction, runs: int, floor: float = 0.0) -> FloatArray:
    """u at each point of a posterior's prediction; `runs` is the M of the predictive one, `floor` is added to all."""
    return NORMALISERS[normaliser](prediction, runs) + floor


def joined(lower: FloatArray, upper: FloatArray, prediction: Prediction, runs: int) -> tuple[FloatArray, FloatArray]:
    """An interval for f from runs, joined with the credible interval and with what is a quarter of a run from the mean.

    What is proven of an interval holds for a larger one. A guarantee is then never a point, and never surer than the
    posterior that it is made from.
    """
    mean = centre(prediction)
    least = np.minimum(prediction.lower, mean - 0.25 / runs)
    most = np.maximum(prediction.upper, mean + 0.25 / runs)
    return np.clip(np.minimum(lower, least), 0.0, 1.0), np.clip(np.maximum(upper, most), 0.0, 1.0)


def rounded_outward(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """An interval within [0, 1], with an end that is 0 or 1 where it is next to it.

    An event that no run showed may be impossible, and an end at 3e-14 would exclude that. This only widens.

    >>> rounded_outward(np.array([-0.1, 3e-14, 0.2]), np.array([0.1, 0.5, 1 - 1e-9]))
    (array([0. , 0. , 0.2]), array([0.1, 0.5, 1. ]))
    """
    low, high = np.where(lower < _RESOLUTION, 0.0, lower), np.where(upper > 1.0 - _RESOLUTION, 1.0, upper)
    return np.minimum(low, 1.0), np.maximum(high, 0.0)


def runs_per_point(held_out: Observations, posterior: FullPosterior) -> tuple[int | None, int]:
    """The number of runs of every point, None where they differ; and the number that stands for them in a difficulty.

    Runs that differ may differ by what is known of their points, and a difficulty must not depend on the points that
    were drawn. So the training's runs stand for them: their harmonic mean, or 1 where no runs are known.
    """
    numbers = np.unique(held_out.trials)
    if len(numbers) == 1:
        return int(numbers[0]), int(numbers[0])
    training = training_of(posterior)
    made = np.empty(0) if training is None else training.observations.trials
    made = made[made > 0]
    return None, max(round(len(made) / float((1.0 / made).sum())), 1) if len(made) else 1
