"""What the posteriors of sateen's own learners share: inputs on their scales, predicting in blocks, parts for files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Self, TypeAlias, get_origin, get_type_hints

import numpy as np

from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior, check_draws, check_level, credible
from sateen.core.prediction import Prediction, Training
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.space import Points, Scale, Space
from sateen.core.threads import on_one_thread
from sateen.core.types import Array, Arrays, FloatArray
from sateen.files.plain import converted
from sateen.learning.floor import LEVEL, raised, shifted
from sateen.learning.inputs import Inputs

Summary: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # mean, std, lower, upper
Common: TypeAlias = tuple[Any, Training, Inputs, Record]  # what every posterior has first
Parts: TypeAlias = tuple[dict[str, Any], dict[str, Array]]  # what a file keeps: words, and arrays
_PLAIN: Final = (str, int, float)
_COMMON: Final = ("recipe", "training", "inputs", "record")
_LARGEST_FLOOR: Final = np.pi**2  # that a variance of angles can be
_BLOCK: Final = 8192  # rows predicted at once, so that memory stays bounded


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedPosterior(FullPosterior):
    """A distribution over f that a recipe learned from observations.

    A kind of posterior says how to summarise, draw and differentiate f at unit inputs; everything about θ, levels,
    blocks, claims and files is here. `floor` is the least variance of arcsin √f that is believed anywhere.
    """

    recipe: Any = field()  # which, unlike a bare annotation, is no default taken from the base
    training: Training = field()
    inputs: Inputs
    record: Record = field()
    floor: float = field(default=0.0, kw_only=True)

    @property
    def space(self) -> Space:
        """Where it predicts."""
        return self.inputs.space

    @on_one_thread
    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        """Mean, standard deviation and credible interval of f at points, a dict, an array or a data frame.

        The bounds are the quantiles (1 - level)/2 and (1 + level)/2 of f. Points outside the space are refused, unless
        `extrapolate`.
        """
        check_level(level)
        where = self._points(points, extrapolate)
        columns = [np.empty(len(where)) for _ in range(4)]
        for rows, unit in self._blocks(where):
            summary = raised(self._summary(unit, level), level, self.floor)
            for column, values in zip(columns, summary, strict=True):
                column[rows] = np.clip(values, 0.0, 1.0)
        mean, std, lower, upper = columns
        claim = credible(self.space, level, self.kind, self.training.observations.assumption)
        return Prediction(where, mean, std, lower, np.maximum(lower, upper), level, claim)

    @on_one_thread
    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> FloatArray:
        """`n` joint draws of f at the points, a row each; the same seed gives the same draws."""
        check_draws(n)
        where, rng = self._points(points, extrapolate), stream(seed, "sample")
        if not len(where):
            return np.empty((n, 0))
        draws = np.clip(self._draws(self.inputs.unit(where.theta), n, rng), 0.0, 1.0)
        return self._with_floor(where, draws, seed)

    @on_one_thread
    def gradient(self, points: object, *, extrapolate: bool = False) -> FloatArray:
        """The derivatives of the mean by each varying parameter, a row for each point, a column for each name."""
        where = self._points(points, extrapolate)
        slopes = np.empty((len(where), self.inputs.dimension))
        for rows, unit in self._blocks(where):
            slopes[rows] = self._slope(unit)
        return self.inputs.by_theta(slopes, where.theta)

    def latent_moments(self, points: object) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of g = Φ⁻¹(f) at each point, without the floor.

        With `latent_covariance` they say what further runs would teach, and no run lowers the floor at one point alone.
        """
        return FullPosterior.latent_moments(replace(self, floor=0.0), points)

    def latent_covariance(self, points: object, *, seed: int) -> FloatArray:
        """The joint covariance of g = Φ⁻¹(f) at the points, without the floor."""
        return FullPosterior.latent_covariance(replace(self, floor=0.0), points, seed=seed)

    def _with_floor(self, points: Points, draws: FloatArray, seed: int) -> FloatArray:
        """Draws of f at the points with what the floor adds: all points of a draw are shifted together."""
        if not self.floor or not len(points):
            return draws
        parts = [self._summary(unit, LEVEL) for _, unit in self._blocks(points)]
        mean, std, lower, upper = (np.concatenate(column) for column in zip(*parts, strict=True))
        return shifted(draws, (mean, std, lower, upper), self.floor, stream(seed, "floor"))

    @abstractmethod
    def _summary(self, unit: FloatArray, level: float) -> Summary:
        """Mean, standard deviation and the two quantiles of f at unit inputs."""

    @abstractmethod
    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """`n` joint draws of f at unit inputs, a row each."""

    @abstractmethod
    def _slope(self, unit: FloatArray) -> FloatArray:
        """The derivatives of the mean by each unit input, a row for each row."""

    def parts(self) -> Parts:
        """What a file keeps of it besides recipe, training, inputs and record: the other fields, arrays apart."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _fields_of(type(self))}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        words = {name: value for name, value in values.items() if name not in arrays}
        return {name: value if isinstance(value, _PLAIN) else asdict(value) for name, value in words.items()}, arrays

    @classmethod
    def from_parts(cls, common: Common, content: Mapping[str, Any], arrays: Arrays) -> Self:
        """The posterior that `parts` described."""
        hints, values = get_type_hints(cls), dict[str, Any]()
        for name in _fields_of(cls):
            stored = get_origin(hints[name]) is np.ndarray
            values[name] = arrays[name] if stored else converted(content[name], hints[name])
        if not 0.0 <= values["floor"] <= _LARGEST_FLOOR:
            raise InputError(f"floor is a variance of angles, not {values['floor']}")
        return cls(*common, **values)

    def _scales(self) -> dict[str, Scale]:
        return {**FullPosterior._scales(self), **dict(zip(self.inputs.names, self.inputs.scales, strict=True))}

    def _blocks(self, points: Points) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, len(points), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(points)))
            yield rows, self.inputs.unit(points.theta[rows])


def _fields_of(posterior_class: type[LearnedPosterior]) -> list[str]:
    """The fields that a class of posteriors has besides those of all."""
    return [field.name for field in fields(posterior_class) if field.init and field.name not in _COMMON]
