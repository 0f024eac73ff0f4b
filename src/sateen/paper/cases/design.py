"""Where a data set of the paper looks: how many parameter values, how they spread, and how often each is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

import sateen as st
from sateen.paper.cases.variants import unknown_name

__all__ = ["Design", "DesignKind"]

DesignKind: TypeAlias = Literal["grid", "latin"]


@dataclass(frozen=True, slots=True)
class Design:
    """`points` parameter values, on a grid with as many per axis or in a Latin hypercube, and `runs` at each.

    Both spread evenly on the scale of each range.

    >>> square = Design("grid", points=2500, runs=50)
    >>> len(square.draw(st.Space(beta=(0, 1), gamma=(0, 1)))), square.total
    (2500, 125000)
    """

    kind: DesignKind
    points: int
    runs: int

    def __post_init__(self) -> None:
        if self.kind not in ("grid", "latin"):
            raise unknown_name(f"{self.kind!r} is no kind of design", str(self.kind), ("grid", "latin"))
        if min(self.points, self.runs) < 1:
            raise st.InputError(f"a design has points and runs, not {self.points} points of {self.runs} runs")

    @property
    def total(self) -> int:
        """The number of runs in all."""
        return self.points * self.runs

    def per_axis(self, dimension: int) -> int:
        """How many values a grid of so many dimensions has on each axis."""
        count = round(float(self.points ** (1 / dimension)))
        if count**dimension != self.points:
            raise st.InputError(f"{self.points} points make no grid of dimension {dimension} with as many on each axis")
        return count

    def draw(self, space: st.Space, seed: int | np.random.SeedSequence | None = None) -> st.Points:
        """The points in `space`. A grid is the same for every seed, and needs none; a Latin hypercube needs one."""
        if self.kind == "grid":
            return space.grid(self.per_axis(space.dimension))
        if seed is None:
            raise st.InputError("a Latin hypercube is drawn at random; give it a seed, seed=1")
        return space.latin(self.points, seed=seed)
