"""Boxes of tolerances around a design, for what is not made, dosed or set exactly as it was designed.

On the scales of a space, sent to [-1, 1] for each parameter, every design θ has the box θ ± h. A design counts only if
its whole box lies in the space: f is not known outside, and a box that was cut at the edge would be another tolerance
there. So the designs fill the box [-(1-h), 1-h].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from sateen.core.counts import read_only
from sateen.core.errors import InputError, nearest
from sateen.core.sobol import sobol_cube
from sateen.core.space import Range, Space
from sateen.core.text import names_text, number_text
from sateen.core.types import FloatArray

_OFFSETS: Final = 16  # points of a box at which f is averaged
_CORNERS_UP_TO: Final = 4  # parameters with a tolerance: the corners of the box, where the least value often lies
_INNER: Final = 8  # more points, where the least value counts
_OFFSET_SEED: Final = 0  # the offsets are fixed: the same for every design and round


@dataclass(frozen=True, slots=True, eq=False)
class Tolerance:
    """The tolerance of designs in a space: `half` the half-widths where each range is [-1, 1], `worst` what counts.

    `offsets` are fixed points of the box, a row each, by which the mean of f over a box, or the least f in it, is
    estimated in a search. Without tolerances there is a single one, 0.
    """

    space: Space
    half: FloatArray
    worst: bool
    offsets: FloatArray

    @classmethod
    def of(cls, space: Space, within: Mapping[str, float] | None, worst: bool = False) -> Tolerance:
        """The tolerance of these half-widths: absolute on a linear scale; on a log scale 0.1 is a factor of 1.1.

        >>> Tolerance.of(Space(a=(0, 10), b=(0, 1)), {"a": 0.5}).half
        array([0.1, 0. ])
        """
        half = np.zeros(len(space))
        for name, width in (within or {}).items():
            if name not in space.names:
                remedy = nearest(name, space.names) or f"those that vary are {names_text(space.names)}"
                raise InputError(f"{{within}} has {name}, which does not vary", argument="within", remedy=remedy)
            range_ = space.ranges[name]
            place = space.names.index(name)
            half[place] = _share(range_, float(width))
            if half[place] >= 1.0:
                problem = f"{{within}} has {number_text(width)} for {name}: no such box fits into its range {range_}"
                raise InputError(problem, argument="within", remedy="take a smaller tolerance or a wider range")
        return cls(space, read_only(half), worst, read_only(_offsets(half, worst)))

    @property
    def exact(self) -> bool:
        """Whether there is no tolerance: a design is a single point."""
        return not self.half.any()

    def designs(self, unit: FloatArray) -> FloatArray:
        """Points that fill the space, moved to fill the designs instead."""
        return np.asarray(unit * (1.0 - self.half))

    def inside(self, unit: FloatArray) -> FloatArray:
        """The nearest designs to points on the unit scales."""
        reach = 1.0 - self.half
        return np.clip(unit, -reach, reach)

    def around(self, unit: FloatArray) -> FloatArray:
        """The values of θ at all offsets from each design: a row for each pair."""
        moved = unit[:, None, :] + self.offsets[None, :, :]
        return self.space.from_unit(moved.reshape(len(unit) * len(self.offsets), len(self.space)))

    def drawn(self, unit: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One θ for each design, uniform in its box on the scales of the space."""
        return self.space.from_unit(unit + self.half * (2.0 * rng.random(unit.shape) - 1.0))

    def worth(self, values: FloatArray) -> FloatArray:
        """What counts of the values at the offsets, which are the last axis: their mean, or the least."""
        return np.asarray(values.min(axis=-1) if self.worst else values.mean(axis=-1))

    def box(self, unit: FloatArray) -> Space:
        """The box of one design; parameters without a tolerance are fixed in it."""
        low, high = (self.space.from_unit((unit + sign * self.half)[None])[0] for sign in (-1.0, 1.0))
        middle = self.space.from_unit(unit[None])[0]
        parameters: dict[str, object] = dict(self.space.fixed)
        for place, (name, range_) in enumerate(self.space.ranges.items()):
            exact = self.half[place] == 0.0
            parameters[name] = middle[place] if exact else Range(low[place], high[place], range_.scale)
        return Space(parameters)

    def words(self, minimise: bool) -> str:
        """What counts of f at a design."""
        if self.exact:
            return "the probability"
        if not self.worst:
            return "the mean over the box of tolerances"
        return f"the {'largest' if minimise else 'least'} probability in the box of tolerances"


def _share(range_: Range, width: float) -> float:
    """A half-width where the range is [-1, 1]."""
    if range_.scale == "log":
        return 2.0 * math.log1p(width) / (math.log(range_.high) - math.log(range_.low))
    return 2.0 * width / (range_.high - range_.low)


def _offsets(half: FloatArray, worst: bool) -> FloatArray:
    moving = np.flatnonzero(half)
    if not len(moving):
        return np.zeros((1, len(half)))
    rng = np.random.default_rng(_OFFSET_SEED)
    inner = 2.0 * sobol_cube(len(moving), _INNER if worst else _OFFSETS, rng) - 1.0
    if worst and len(moving) <= _CORNERS_UP_TO:
        inner = np.concatenate([np.array(list(product((-1.0, 1.0), repeat=len(moving)))), inner])
    elif worst:
        inner = np.concatenate([np.sign(inner), inner])
    offsets = np.zeros((len(inner), len(half)))
    offsets[:, moving] = inner * half[moving]
    return offsets
