"""`posterior_from`: a posterior from a plain function that gives means and standard deviations of f, or draws of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import CompletedPosterior, credible
from sateen.core.prediction import Learner, Prediction
from sateen.core.proportions import beta_quantiles
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.space import Points, Space
from sateen.core.types import Array, FloatArray
from sateen.learning.registry import learner_name

Function: TypeAlias = Callable[[FloatArray], Array | tuple[Array, Array]]


def posterior_from(
    function: Function, observations: Observations, *, learner: Learner, seed: int, record: Record | None = None
) -> CompletedPosterior:
    """A posterior from a function of an (n, d) array of parameters: what the `fit` of your own learner returns.

    The function returns `(mean, std)`, two arrays of n numbers, or an array of draws of f with k rows and n columns.
    With mean and standard deviation, f at each point has the Beta distribution with these two moments: its quantiles
    are the credible interval, and a joint draw takes the same quantile at all points. Draws are used directly: their
    quantiles are the interval, and `sample` draws whole rows. Values are cut to [0, 1]. Derivatives are differences.
    There is no prior, so `kl()` is refused. `save` keeps the learner, its settings, the observations and the seed, and
    `st.load` fits again.

    >>> import sateen as st
    >>> class Everywhere:
    ...     def fit(self, observations, *, seed):
    ...         share = observations.frequency.mean()
    ...         return st.posterior_from(lambda theta: (np.full(len(theta), share), np.full(len(theta), 0.05)),
    ...                                  observations, learner=self, seed=seed)
    >>> seen = st.Observations.from_counts(st.Space(beta=(0, 1)), [[0.2], [0.8]], [2, 4], [10, 10])
    >>> st.learn(seen, learner=Everywhere(), seed=1).predict({"beta": 0.5}, level=0.9)
    <Prediction at 1 point: mean 0.3 to 0.3, intervals of width 0.164 at 90 %>
    """
    name = learner_name(learner)
    belief = _Belief(function, observations.space, name)
    return CompletedPosterior(belief, learner, observations, int(seed), name, record)


@dataclass(frozen=True, slots=True, eq=False)
class _Belief:
    """What a function says of f."""

    function: Function
    space: Space
    kind: str

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        where = points if isinstance(points, Points) else self.space.points(points, extrapolate=extrapolate)
        mean, std, draws = self._values(where)
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        if draws is not None:
            lower, upper = np.quantile(draws, tails, axis=0)
        else:
            lower, upper = (beta_quantiles(mean, std, share) for share in tails)
        return Prediction(where, mean, std, lower, upper, level, credible(self.space, level, self.kind))

    def sample(self, points: Points, n: int, *, seed: int) -> FloatArray:
        mean, std, draws = self._values(points)
        rng = stream(seed, "sample")
        if draws is None:
            return beta_quantiles(mean, std, rng.uniform(size=(n, 1)))
        return draws[rng.integers(len(draws), size=n)]

    def _values(self, points: Points) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Mean and standard deviation at the points, and the draws if the function gives these."""
        given, count = self.function(points.theta), len(points)
        if isinstance(given, tuple):
            mean, std = (np.asarray(column, dtype=np.float64) for column in given)
            self._check("the means have", mean, (count,))
            self._check("the standard deviations have", std, (count,))
            if (std < 0).any():
                raise InputError(f"{self.kind} gives a negative standard deviation")
            return np.clip(mean, 0.0, 1.0), std, None
        draws = np.asarray(given, dtype=np.float64)
        self._check("the draws have", draws, (len(draws) if draws.ndim == 2 else -1, count))
        draws = np.clip(draws, 0.0, 1.0)
        return draws.mean(axis=0), draws.std(axis=0), draws

    def _check(self, what: str, values: FloatArray, shape: tuple[int, ...]) -> None:
        if values.shape != shape or not np.isfinite(values).all() or 0 in shape[:-1]:
            wanted = "finite numbers, (mean, std) of n each or draws in k rows of n"
            raise InputError(f"{self.kind}: {what} the shape {values.shape} for n = {shape[-1]}; return {wanted}")
