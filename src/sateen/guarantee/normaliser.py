"""How difficult f is to predict at θ: what scores are divided by, so that intervals are wide where they must be.

Any positive function of θ that the training alone has fixed keeps the guarantee; a good one makes the intervals narrow.

- `posterior`: the posterior's standard deviation, s.
- `quantile`: half the width of the posterior's credible interval, at the level of the claim.
- `predictive`: of the frequency that is observed, u² = s² + f̂(1 - f̂)/M + 1/M², which stays away from 0.
- `constant`: the same everywhere.

Which of them is best depends on whether s tells where the posterior errs. `chosen` finds that out from the training.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sateen.core.errors import InputError, SateenError
from sateen.core.observations import Observations
from sateen.core.prediction import Posterior, Prediction
from sateen.core.types import FloatArray
from sateen.guarantee.conformal import largest
from sateen.guarantee.lift import lifted
from sateen.guarantee.methods import LIFT_NORMALISERS, Normaliser

__all__ = [
    "centre",
    "chosen",
    "difficulty",
    "refitted",
    "typical_runs",
]

_CHOOSING: Final = "choosing a normaliser", "pass normaliser='predictive', 'posterior' or 'constant'"
_LEAST: Final = 1e-6  # difficulty: a posterior may be certain, and 0 divides nothing
_FOLDS: Final = 3
_MOST_ROWS: Final = 2000  # of the training that are fitted anew
_FEWEST_ROWS: Final = 30
_REPETITIONS: Final = 24  # of the calibration, under the working model


def centre(prediction: Prediction) -> FloatArray:
    """The posterior mean f̂, which no posterior can carry out of [0, 1]."""
    return np.clip(prediction.mean, 0.0, 1.0)


def difficulty(normaliser: Normaliser, prediction: Prediction, runs: int) -> FloatArray:
    """u at each point of a posterior's prediction; `runs` is the M of the predictive one."""
    if normaliser == "constant":
        return np.ones(len(prediction))
    if normaliser == "quantile":
        return np.maximum(0.5 * prediction.width, _LEAST)
    if normaliser == "posterior":
        return np.maximum(prediction.std, _LEAST)
    return _predictive(centre(prediction), prediction.std, runs)


def typical_runs(observations: Observations) -> int:
    """One number of runs for all points, the harmonic mean where they differ; at least 1."""
    made = observations.trials[observations.trials > 0]
    return max(round(len(made) / float((1.0 / made).sum())), 1) if len(made) else 1


def chosen(
    posterior: Posterior, *, points: int, runs: int, rank: int, eta: float, seed: int
) -> tuple[Normaliser, dict[str, float]]:
    """The normaliser with which the lift is narrowest, judged by the training alone; and the mean width with each.

    The recipe is fitted anew without a third of the training, three times, which shows its errors at points that it has
    not seen. Less the noise of the frequencies, they make a working model of f, under which calibrations with as many
    points and runs as are at hand are simulated, with the same draws for all.
    No width is known where the training is too small to be divided; then it is the predictive one.
    """
    rng = np.random.default_rng(seed)
    mean, std, frequency, trials = _unseen(posterior, rng)
    if not len(mean):
        return "predictive", {}
    likely, doubt = _likely(mean, std, frequency, trials)
    rows = rng.integers(len(mean), size=(_REPETITIONS, points))
    truth = np.clip(likely[rows] + doubt[rows] * rng.standard_normal(rows.shape), 0.0, 1.0)
    distance = np.abs(rng.binomial(runs, truth) / runs - mean[rows])
    widths: dict[str, float] = {}
    difficulties = {"predictive": _predictive(mean, std, runs), "posterior": np.maximum(std, _LEAST)}
    for normaliser in LIFT_NORMALISERS:
        u = difficulties.get(normaliser, np.ones(len(mean)))
        thresholds = [largest(scores, rank) for scores in distance / u[rows]]
        ends = [lifted(mean, threshold * u, runs, eta) for threshold in thresholds]
        widths[normaliser] = float(np.mean([upper - lower for lower, upper in ends]))
    return min(LIFT_NORMALISERS, key=lambda normaliser: widths[normaliser]), widths


def _predictive(mean: FloatArray, std: FloatArray, runs: int) -> FloatArray:
    return np.sqrt(std**2 + mean * (1.0 - mean) / runs + 1.0 / runs**2)


def _unseen(posterior: Posterior, rng: np.random.Generator) -> tuple[FloatArray, ...]:
    """Mean and deviation at training points by fits that have not seen them, and the frequency and the runs there."""
    training = posterior.training.observations
    known = np.flatnonzero(training.trials > training.undecided)
    if len(known) < _FEWEST_ROWS:
        return (np.empty(0),) * 4
    kept = known[np.linspace(0, len(known) - 1, min(len(known), _MOST_ROWS)).round().astype(int)]
    folds = rng.permutation(len(kept)) % _FOLDS
    mean, std = np.empty(len(kept)), np.empty(len(kept))
    for fold in range(_FOLDS):
        unseen = kept[folds == fold]
        part = refitted(posterior.recipe, training[kept[folds != fold]], int(rng.integers(2**31)), *_CHOOSING)
        prediction = part.predict(training.points[unseen])
        mean[folds == fold], std[folds == fold] = centre(prediction), prediction.std
    return mean, std, training.frequency_bounds[kept].mean(axis=1), training.trials[kept].astype(np.float64)


def refitted(recipe: Any, part: Observations, seed: int, work: str, remedy: str = "") -> Posterior:
    """What a recipe learns from a part of its training; where it cannot, an error that names the work and a remedy."""
    remedy = f"\n  {remedy}" if remedy else ""
    if not hasattr(recipe, "fit"):
        raise InputError(f"{work} fits the recipe anew, and {recipe!r} has no `fit`{remedy}")
    try:
        posterior: Posterior = recipe.fit(part, seed=seed)
    except SateenError as error:
        raise InputError(f"{work} fits the recipe to parts of the training: {error}{remedy}") from error
    return posterior


def _likely(
    mean: FloatArray, std: FloatArray, frequency: FloatArray, trials: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where f is likely to be at each row, by the working model: a normal distribution's mean and deviation.

    Before the row's own frequency is heard, f lies around f̂ with the variance v = a + bf̂(1 - f̂) + cs², in which a, b
    and c are from 0 up and fit the squared errors best; the frequency then moves it.
    """
    from scipy.optimize import nnls

    noise = np.where(trials > 1, frequency * (1.0 - frequency) / np.maximum(trials - 1.0, 1.0), mean * (1.0 - mean))
    features = np.column_stack([np.ones(len(mean)), mean * (1.0 - mean), std**2])
    features /= np.maximum(features.mean(axis=0), _LEAST**2)
    weights, _ = nnls(features, (frequency - mean) ** 2 - noise)
    variance = features @ weights
    noise = np.maximum(mean * (1.0 - mean) / trials, 1.0 / trials**2)
    heard = variance / (variance + noise)
    return mean + heard * (frequency - mean), np.sqrt(heard * noise)
