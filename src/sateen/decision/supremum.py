"""The largest value of f over a space, between two sure numbers, by branch and bound."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.progress import SILENT, Progress, working
from sateen.core.space import Space
from sateen.core.types import FloatArray
from sateen.decision.subdivision import Limits, Root, volumes
from sateen.engine.enclosure import Enclosure

_CELLS: Final = 16  # halved at once
_CENTRES: Final = 8  # of the best halves, at which f is computed


@dataclass(frozen=True, slots=True)
class Supremum:
    """The largest value of f, or the least, lies between `lower` and `upper`; both are sure.

    `theta` is the point found where f is largest, in the order of the space's names: there f is at least `lower` (for
    the least value, at most `upper`), if not a larger value was known before. None if no point was better than that.
    """

    lower: float
    upper: float
    theta: tuple[float, ...] | None
    bounds_used: int
    reached: bool
    reason: str


def largest(
    enclosure: Enclosure,
    space: Space | None = None,
    gap: float = 0.01,
    best: float | None = None,
    *,
    minimise: bool = False,
    cells: int | None = None,
    seconds: float | None = None,
    progress: Progress = SILENT,
) -> Supremum:
    """The largest value of f over a box in the enclosure's space, known within `gap`; with `minimise`, the least.

    `best` is a value that f is known to reach: nothing below it is looked for. `cells`, the number of bounds, and
    `seconds` end the search early; what is found until then is as sure, only wider.
    """
    if not gap > 0.0:
        raise InputError("{gap} must be positive", argument="gap", remedy="0.01 finds the value within 0.01")
    root = Root.of(enclosure, space)
    # For the least value of f, 1 - f is maximised: its upper bounds are lower bounds of f.
    known = 0.0 if best is None else (1.0 - best if minimise else best)
    theta: tuple[float, ...] | None = None

    def above(low: FloatArray, high: FloatArray) -> FloatArray:
        bounds = enclosure.sides(root.theta(low), root.theta(high), np.full(len(low), not minimise))
        return 1.0 - bounds if minimise else bounds

    def reached_at(points: FloatArray) -> FloatArray:
        bounds = enclosure.sides(points, points, np.full(len(points), minimise))
        return 1.0 - bounds if minimise else bounds

    low, high = root.corners
    heap = [(-float(above(low, high)[0]), 0, low[0], high[0])]
    used, serial, reason = 1, 1, ""
    limits = Limits.from_now(cells, seconds)
    with working(progress, "largest value", 0 if cells is None else cells, "bounds"):
        while not reason:
            reached = f"known within {gap:g}" if -heap[0][0] <= known + gap else ""
            if reason := reached or limits.over(used, float(volumes(heap[0][2][None], heap[0][3][None])[0])):
                break
            taken = [heapq.heappop(heap)]
            while heap and len(taken) < _CELLS and -heap[0][0] > known + gap:
                taken.append(heapq.heappop(heap))
            low, high = root.halves(np.array([each[2] for each in taken]), np.array([each[3] for each in taken]))
            bounds = np.minimum(above(low, high), np.tile([-each[0] for each in taken], 2))
            order = np.argsort(-bounds, kind="stable")[:_CENTRES]
            centres = root.theta(0.5 * (low[order] + high[order]))
            values = reached_at(centres)
            if values.max() > known:
                known, theta = float(values.max()), tuple(centres[int(np.argmax(values))].tolist())
            for bound, a, b in zip(bounds.tolist(), low, high, strict=True):
                heapq.heappush(heap, (-bound, serial, a, b))
                serial += 1
            used += len(bounds) + len(order)
            progress.advance(len(bounds) + len(order))
            progress.note(f"between {known:.4f} and {-heap[0][0]:.4f}")
    lower, upper = known, max(known, -heap[0][0])
    if minimise:
        lower, upper = 1.0 - upper, 1.0 - lower
    return Supremum(lower, upper, theta, used, upper - lower <= gap, reason)
