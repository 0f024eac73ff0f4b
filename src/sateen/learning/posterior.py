"""What all learned posteriors share: reading points, predicting in blocks, gradients, names, files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction, Training, drawn_uniformly
from sateen.core.space import Points, Space
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.learning.inputs import FloatArray, Inputs
from sateen.learning.record import Record

__all__ = ["LearnedPosterior", "Parts", "Summary"]

Summary: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # mean, std, lower, upper
Parts: TypeAlias = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]  # what a file keeps: words, and arrays
_BLOCK: Final = 8192  # rows predicted at once, so that memory stays bounded
_IMPORTANCE_POINTS: Final = 1024


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedPosterior(ABC):
    """A distribution over f that a recipe learned from observations.

    A kind of posterior says how to summarise, draw and differentiate f at unit inputs, and what a file keeps of it;
    everything about θ, levels, blocks and claims is here.
    """

    recipe: Any
    training: Training
    inputs: Inputs
    record: Record

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the learner in files and on the command line, such as "svi-gp"."""

    @property
    def space(self) -> Space:
        """Where it predicts."""
        return self.inputs.space

    @property
    def seconds_per_run(self) -> float:
        """How long one simulated run took in training; NaN where that is not known."""
        observed = self.training.observations
        runs = int(observed.trials.sum())
        return observed.seconds / runs if observed.seconds > 0 and runs else float("nan")

    @on_one_thread
    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        """Mean, standard deviation and credible interval of f at points, a dict, an array or a data frame.

        The bounds are the quantiles (1 - level)/2 and (1 + level)/2 of f. Points outside the space are refused, unless
        `extrapolate`.
        """
        if not 0 < level < 1:
            raise InputError(f"level is a probability between 0 and 1, such as 0.95, not {level}")
        where = self._points(points, extrapolate)
        columns = [np.empty(len(where)) for _ in range(4)]
        for rows, unit in self._blocks(where):
            for column, values in zip(columns, self._summary(unit, level), strict=True):
                column[rows] = np.clip(values, 0.0, 1.0)
        mean, std, lower, upper = columns
        claim = Claim("probability", "credible", level, drawn_uniformly(self.space), by=self.kind)
        return Prediction(where, mean, std, lower, np.maximum(lower, upper), level, claim)

    @on_one_thread
    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> FloatArray:
        """`n` joint draws of f at the points, a row each; the same seed gives the same draws."""
        if n < 1:
            raise InputError(f"the number of draws is a whole number from 1 up, not {n}")
        where = self._points(points, extrapolate)
        return np.clip(self._draws(self.inputs.unit(where.theta), n, np.random.default_rng(seed)), 0.0, 1.0)

    @on_one_thread
    def gradient(self, points: object, *, extrapolate: bool = False) -> FloatArray:
        """The derivatives of the mean by each varying parameter, a row for each point, a column for each name."""
        where = self._points(points, extrapolate)
        slopes = np.empty((len(where), self.inputs.dimension))
        for rows, unit in self._blocks(where):
            slopes[rows] = self._slope(unit)
        return self.inputs.by_theta(slopes, where.theta)

    def importance(self, *, seed: int = 0) -> dict[str, float]:
        """Which parameters matter, the most important first: how steeply the mean changes with each, on average.

        The root mean square, over the space, of the derivative of the mean by the parameter when its whole range, on
        the scale the learner uses, has the length 1. Parameters that cannot affect the verdict have 0.
        """
        points = self.space.sobol(_IMPORTANCE_POINTS, seed=seed) if self.space.names else self.space.points({})
        slopes = np.concatenate([self._slope(unit) for _, unit in self._blocks(points)])
        steepness = dict(zip(self.inputs.names, 2.0 * np.sqrt(np.mean(slopes**2, axis=0)), strict=True))
        whole = {name: float(steepness.get(name, 0.0)) for name in self.space.names}
        return dict(sorted(whole.items(), key=lambda item: -item[1]))

    def save(self, file: File) -> None:
        """Write one safe file (safetensors, with JSON inside), which `st.load` reads back."""
        from sateen.learning.archive import write_posterior

        write_posterior(self, file)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean and its 95 % intervals over one parameter, or the mean over two."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return self.predict(self.space.grid(200 if len(self.space) == 1 else 50)).plot(ax=ax)

    @abstractmethod
    def kl(self) -> float:
        """How far it is, in nats, from a prior that has not seen `unseen_by_prior`."""

    @property
    @abstractmethod
    def unseen_by_prior(self) -> Observations:
        """The training observations that the prior of `kl` does not depend on."""

    @abstractmethod
    def _summary(self, unit: FloatArray, level: float) -> Summary:
        """Mean, standard deviation and the two quantiles of f at unit inputs."""

    @abstractmethod
    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """`n` joint draws of f at unit inputs, a row each."""

    @abstractmethod
    def _slope(self, unit: FloatArray) -> FloatArray:
        """The derivatives of the mean by each unit input, a row for each row."""

    @abstractmethod
    def parts(self) -> Parts:
        """What a file keeps of it besides recipe, training, inputs and record."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls,
        recipe: Any,
        training: Training,
        inputs: Inputs,
        record: Record,
        content: Mapping[str, Any],
        arrays: Mapping[str, Any],
    ) -> LearnedPosterior:
        """The posterior that `parts` described."""

    def _points(self, points: object, extrapolate: bool) -> Points:
        if isinstance(points, Points) and not extrapolate and points.space == self.space:
            inside = self.space.contains(points.theta)
            if inside.all():
                return points  # with its design
        return self.space.points(points, extrapolate=extrapolate)

    def _blocks(self, points: Points) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, len(points), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(points)))
            yield rows, self.inputs.unit(points.theta[rows])

    def __repr__(self) -> str:
        observed = self.training.observations
        marks = "" if self.record.converged else f"; {self.record.verdict}"
        return f"<Posterior {self.kind} over {self.space!r} from {len(observed):,} points{marks}>"

    def _repr_html_(self) -> str:
        from html import escape

        ranked = ", ".join(f"{name} {share:.3g}" for name, share in self.importance().items())
        lines = [repr(self), str(self.record), f"steepness by parameter: {ranked}" if ranked else ""]
        return "<p>" + "<br>".join(escape(line) for line in lines if line) + "</p>"
