"""A posterior that is a table, over one parameter: what predicts f can be calibrated, and this one learns nothing.

It is linear between its knots, so at the knots it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from sateen import Observations, Space
from sateen.core.prediction import Claim, Prediction, Training
from sateen.core.space import Points

UNIT = Space(x=(0.0, 1.0))


@dataclass(frozen=True)
class Table:
    """The recipe: the same table, whatever is observed."""

    knots: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]

    def fit(self, observations: Observations, *, seed: int) -> TabledPosterior:
        assert seed >= 0
        return TabledPosterior(self, Training(observations))


@dataclass(frozen=True)
class TabledPosterior:
    recipe: Any  # knots, mean and std
    training: Training

    @property
    def space(self) -> Space:
        return self.training.observations.space

    @property
    def seconds_per_run(self) -> float:
        return float("nan")

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        own = isinstance(points, Points) and points.space == self.space
        where = points if own else self.space.points(points, extrapolate=extrapolate)
        place = where.theta[:, 0] if self.space.names else np.zeros(len(where))
        mean, std = (np.interp(place, self.recipe.knots, column) for column in (self.recipe.mean, self.recipe.std))
        half = ndtri((1 + level) / 2) * std
        claim = Claim("probability", "credible", level, "", by="table")
        return Prediction(where, mean, std, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1), level, claim)

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> npt.NDArray[np.float64]:
        believed = self.predict(points, extrapolate=extrapolate)
        drawn = np.random.default_rng(seed).standard_normal((n, 1))
        return np.clip(believed.mean + believed.std * drawn, 0, 1)

    def gradient(self, points: object, *, extrapolate: bool = False) -> npt.NDArray[np.float64]:
        where = self.space.points(points, extrapolate=extrapolate).theta[:, 0]
        piece = np.clip(np.searchsorted(self.recipe.knots, where) - 1, 0, len(self.recipe.knots) - 2)
        return (np.diff(self.recipe.mean) / np.diff(self.recipe.knots))[piece][:, None]

    def kl(self) -> float:
        return 0.0  # it has not moved from its prior

    @property
    def unseen_by_prior(self) -> Observations:
        return self.training.observations


def table_parts(posterior: TabledPosterior) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content and arrays that a file keeps of it; a test provides this as "posterior parts"."""
    training, recipe = posterior.training.observations, posterior.recipe
    arrays = {"knots": recipe.knots, "mean": recipe.mean, "std": recipe.std}
    columns = {"theta": training.theta, "satisfied": training.satisfied, "trials": training.trials}
    return {"design": training.points.design}, {**arrays, **columns}


def read_table(content: Mapping[str, Any], arrays: Mapping[str, Any]) -> TabledPosterior:
    """The posterior of `table_parts`, over the unit interval."""
    columns = {name: arrays[name] for name in ("theta", "satisfied", "trials")}
    training = Observations.from_counts(UNIT, **columns, design=content["design"])
    return Table(arrays["knots"], arrays["mean"], arrays["std"]).fit(training, seed=0)


def tabled(
    mean: npt.ArrayLike, std: npt.ArrayLike, knots: npt.ArrayLike = (0.0, 1.0), training: Observations | None = None
) -> TabledPosterior:
    """A posterior with this mean and this deviation at the knots; over the unit interval, or where the training is."""
    places, middle, spread = np.broadcast_arrays(*(np.asarray(each, float) for each in (knots, mean, std)))
    learned_from = training or Observations.from_counts(UNIT, {"x": [0.123456789]}, satisfied=[5], trials=10)
    return Table(places, middle, spread).fit(learned_from, seed=0)


def uniform_counts(f: Any, points: int, runs: npt.ArrayLike, rng: np.random.Generator) -> Observations:
    """Counts at fresh uniform points of the unit interval, where the probability is `f` of them."""
    theta = rng.random((points, 1))
    return Observations.from_counts(UNIT, theta, rng.binomial(runs, f(theta[:, 0])), runs, design="uniform")
