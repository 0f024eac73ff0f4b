"""How θ becomes what a learner sees: the parameters that matter, each on a scale from -1 to 1; and the counts there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.space import Range, Scale, Space
from sateen.core.types import Array, FloatArray
from sateen.files.plain import converted
from sateen.learning.settings import check_whole


@dataclass(frozen=True, slots=True)
class Inputs:
    """The columns of θ that a learner looks at, and the scale on which each is sent to [-1, 1].

    >>> inputs = Inputs(Space(beta=(1, 100), gamma=(0, 1)), ("beta",), ("log",))
    >>> inputs.unit([[10, 0.5], [100, 0.5]])
    array([[0.],
           [1.]])
    """

    space: Space
    names: tuple[str, ...]
    scales: tuple[Scale, ...]

    @property
    def dimension(self) -> int:
        """How many parameters the learner looks at."""
        return len(self.names)

    def _axes(self) -> Iterator[tuple[int, int, Range]]:
        """Of each of them its place, its column in θ, and its range on its scale."""
        for axis, (name, scale) in enumerate(zip(self.names, self.scales, strict=True)):
            yield axis, self.space.names.index(name), replace(self.space.ranges[name], scale=scale)

    def unit(self, theta: npt.ArrayLike) -> FloatArray:
        """The (n, dimension) table that stands for the rows of θ; beyond the space it goes beyond [-1, 1]."""
        table = np.asarray(theta, dtype=np.float64)
        unit = np.empty((len(table), self.dimension))
        for axis, column, range_ in self._axes():
            unit[:, axis] = range_.to_unit(table[:, column])
        return unit

    def by_theta(self, slopes: FloatArray, theta: FloatArray) -> FloatArray:
        """Derivatives by the unit inputs as derivatives by every parameter; those not looked at have none."""
        result = np.zeros((len(theta), len(self.space.names)))
        for axis, column, range_ in self._axes():
            stretch = 2.0 / (range_.high - range_.low)
            if range_.scale == "log":
                stretch = 2.0 / (np.log(range_.high / range_.low) * theta[:, column])
            result[:, column] = slopes[:, axis] * stretch
        return result

    def content(self) -> dict[str, list[str]]:
        """What a file needs to know besides the space."""
        return {"names": list(self.names), "scales": list(self.scales)}

    @classmethod
    def from_content(cls, space: Space, content: Mapping[str, list[Any]]) -> Inputs:
        """The inputs that `content` describes, if they fit the space."""
        names = converted(content["names"], tuple[str, ...])
        if len(set(names)) < len(names) or not set(names) <= set(space.names):
            raise InputError(f"the inputs are to be among {', '.join(space.names)}, each once")
        inputs = cls(space, names, converted(content["scales"], tuple[Scale, ...]))
        inputs.unit(np.empty((0, len(space))))  # fails if the scales do not fit the space
        return inputs


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Counts at unit inputs, as floats: the rows of observations from which something can be learned."""

    x: FloatArray
    satisfied: FloatArray
    undecided: FloatArray
    trials: FloatArray

    def __post_init__(self) -> None:
        for name in ("x", "satisfied", "undecided", "trials"):
            read_only(getattr(self, name))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def censored(self) -> bool:
        """Whether some runs are undecided."""
        return bool(self.undecided.any())

    def __getitem__(self, rows: slice | Array) -> Sample:
        return Sample(self.x[rows], self.satisfied[rows], self.undecided[rows], self.trials[rows])

    def some(self, most: int, rng: np.random.Generator) -> Sample:
        """At most this many rows, drawn at random, in their order."""
        return self if len(self) <= most else self[np.sort(rng.permutation(len(self))[:most])]


def inputs_of(observations: Observations, scale: Scale | Literal["declared"]) -> Inputs:
    """The relevant parameters on one scale, or each on that of its range.

    With "log", parameters whose range touches 0 or goes below it are linear.
    """
    space, names = observations.space, observations.relevant

    def of(range_: Range) -> Scale:
        if scale == "declared":
            return range_.scale
        return "log" if scale == "log" and range_.low > 0 else "linear"

    return Inputs(space, names, tuple(of(space.ranges[name]) for name in names))


def sample_of(observations: Observations, inputs: Inputs) -> Sample:
    """The rows with a decided run; the others say nothing."""
    known = observations.trials > observations.undecided
    if not known.any():
        raise InputError("no run at any point was decided, so there is nothing to learn from; raise max_events or runs")
    columns = (observations.satisfied, observations.undecided, observations.trials)
    counts = [column[known].astype(np.float64) for column in columns]
    return Sample(inputs.unit(observations.theta[known]), *counts)


def check_task(observations: object, seed: object) -> None:
    """Refuse what no learner can fit to, or start from."""
    if not isinstance(observations, Observations):
        raise InputError(f"a fit takes Observations, not a {type(observations).__name__}; see st.observe")
    check_whole(seed, "seed", 0)
