"""How wide the intervals of a predictor are over its whole space: on average, and at the widest place that is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from sateen.core.prediction import Prediction
from sateen.core.seeds import stream
from sateen.core.space import Points, Space
from sateen.core.types import FloatArray

_EVERYWHERE: Final = 1024  # points of a Sobol sequence, over which the mean is taken
_MOST_CORNERS: Final = 10  # parameters, up to which all corners of the box are looked at
_STARTS: Final = 16  # widest points so far, around which the search continues
_AROUND: Final = 64  # points around each of them
_STEPS: Final = (0.1, 0.03, 0.01, 0.003)  # how far from it, as deviations in a box from -1 to 1


@dataclass(frozen=True, slots=True)
class Widths:
    """The `mean` width over the space, and the `greatest` that a search among `searched` points found."""

    mean: float
    greatest: float
    searched: int

    def __str__(self) -> str:
        """In words, for a sentence about intervals."""
        if self.searched == 1:
            return f"{self.mean:.3g} wide"
        return (
            f"{self.mean:.3g} wide on average and {self.greatest:.3g} at most (the widest found by a search of "
            f"{self.searched:,} points)"
        )


def widths_over(space: Space, predict: Callable[[Points], Prediction]) -> Widths:
    """The widths of what `predict` gives: at points of a Sobol sequence, in the corners, then where they are widest.

    The search looks around the widest points so far, ever more closely. It is the same each time, and what it finds is
    a width that occurs: the supremum may be a little larger.
    """
    if not space.names:
        only = float(predict(space.points({})).width[0])
        return Widths(only, only, 1)
    unit = np.clip(space.to_unit(space.sobol(_EVERYWHERE, seed=0).theta), -1.0, 1.0)
    width = _widths(space, predict, unit)
    mean = float(width.mean())
    if len(space) <= _MOST_CORNERS:
        corners = np.array(list(product((-1.0, 1.0), repeat=len(space))))
        unit, width = np.vstack([unit, corners]), np.append(width, _widths(space, predict, corners))
    searched, rng = len(unit), stream(0, "widest")
    for step in _STEPS:
        best = np.argsort(-width, kind="stable")[:_STARTS]
        moves = step * rng.standard_normal((_STARTS, _AROUND, len(space)))
        near = np.clip(unit[best][:, None] + moves, -1.0, 1.0).reshape(-1, len(space))
        unit, width = np.vstack([unit[best], near]), np.append(width[best], _widths(space, predict, near))
        searched += len(near)
    return Widths(mean, float(width.max()), searched)


def _widths(space: Space, predict: Callable[[Points], Prediction], unit: FloatArray) -> FloatArray:
    return np.asarray(predict(Points(space.from_unit(unit), space, "given")).width)
