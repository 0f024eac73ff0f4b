"""Posteriors that are known in closed form, against which bounds and plans are tested.

They predict, draw functions and tell how far they are from a prior, as whatever is learned does, only more simply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

import sateen as st
from sateen.core.prediction import Claim, Prediction, Training, drawn_uniformly

SPACE = st.Space(beta=(0.0, 1.0))


def no_observations(space: st.Space = SPACE) -> st.Observations:
    return st.Observations.from_counts(space, np.empty((0, len(space))), [], [])


def drawn_observations(
    f: Callable[[Any], Any], points: st.Points, runs: Any, rng: np.random.Generator, undecided: Any = 0
):
    """Counts at the points when f is the truth; of `undecided` runs at each, nobody saw the end."""
    trials = np.broadcast_to(runs, len(points))
    satisfied = rng.binomial(trials - undecided, f(points.theta))
    return st.Observations(points, satisfied, undecided, trials)


class Known:
    """What the beliefs share."""

    space: st.Space
    seconds_per_run = 0.001

    def _points(self, points: object) -> st.Points:
        return points if isinstance(points, st.Points) else self.space.points(points)


@dataclass(frozen=True)
class Waves(Known):
    """f = base + a cos(πβ) + b sin(πβ), with a and b normal of deviation `spread`: so f has that deviation everywhere.

    As a recipe it believes the same whatever it is shown.
    """

    spread: float
    base: Callable[[Any], Any] = lambda theta: 0.5 + 0.2 * np.sin(3 * theta[:, 0])
    space: st.Space = SPACE
    training: Training = field(default_factory=lambda: Training(no_observations()))

    @property
    def recipe(self) -> Waves:
        return self

    def fit(self, observations: st.Observations, *, seed: int) -> Waves:
        return replace(self, training=Training(observations))

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        where = self._points(points)
        mean = self.base(where.theta)
        half = ndtri((1 + level) / 2) * self.spread
        claim = Claim("probability", "credible", level, drawn_uniformly(self.space))
        return Prediction(where, mean, np.full(len(where), self.spread), mean - half, mean + half, level, claim)

    def functions(self, n: int, rng: np.random.Generator) -> list[Callable[[Any], Any]]:
        """`n` functions of this belief."""
        pairs = self.spread * rng.standard_normal((n, 2))
        return [lambda theta, pair=pair: self._wave(theta, *pair) for pair in pairs]

    def _wave(self, theta: Any, a: float, b: float) -> Any:
        angle = np.pi * theta[:, 0]
        return np.clip(self.base(theta) + a * np.cos(angle) + b * np.sin(angle), 0.0, 1.0)

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> Any:
        theta = self._points(points).theta
        return np.array([f(theta) for f in self.functions(n, np.random.default_rng(seed))])


@dataclass(frozen=True)
class Candidates(Known):
    """One of finitely many functions, each with its weight; the prior gives all of them the same."""

    functions: tuple[Callable[[Any], Any], ...]
    weights: Any
    training: Training
    space: st.Space = SPACE
    recipe: Any = None

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        where = self._points(points)
        values = self._values(where.theta)
        mean = self.weights @ values
        std = np.sqrt(np.maximum(self.weights @ values**2 - mean**2, 0))
        claim = Claim("probability", "credible", level, drawn_uniformly(self.space))
        return Prediction(where, mean, std, values.min(axis=0), values.max(axis=0), level, claim)

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> Any:
        chosen = np.random.default_rng(seed).choice(len(self.functions), size=n, p=self.weights)
        return self._values(self._points(points).theta)[chosen]

    def kl(self) -> float:
        some = self.weights[self.weights > 0]
        return float(np.sum(some * np.log(some * len(self.functions))))

    @property
    def unseen_by_prior(self) -> st.Observations:
        return self.training.observations

    def _values(self, theta: Any) -> Any:
        return np.array([f(theta) for f in self.functions])
