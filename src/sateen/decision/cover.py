"""A box cut into cells that bounds decide, and whether that is what it says.

A check computes every bound again, and shows that the cells fill their box.

The cells of a subdivision come from halving, so the check halves too: as long as a box holds several cells, there must
be an axis whose middle no cell crosses. If a box in the end holds one cell that is the box itself, the cells are
disjoint and fill it. This is exact: corners are whole multiples of 2^-40.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.counts import read_only
from sateen.core.progress import SILENT, Progress, working
from sateen.core.space import Space
from sateen.core.text import percent, plural
from sateen.core.types import FloatArray, IntArray
from sateen.decision.subdivision import MOST_HALVINGS, Root, checked_monotone, collapsed, volumes
from sateen.engine.enclosure import Enclosure

Side: TypeAlias = Literal["above", "below", "both"]
Status: TypeAlias = npt.NDArray[np.int8]  # 1: above, -1: below, 0: undecided

_SAME: Final = 1e-9  # a bound that is computed again may differ by so much from the one that is stored
_ULPS: Final = 8  # and an end of a cell by so much: exp differs between machines
_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellCover:
    """A box cut into cells, each above the threshold, below it, or undecided, with the bound that proves it.

    `low` and `high` are the cells' ends, a row for each, and `corner_low` and `corner_high` the same as fractions of
    the box's ranges. `bound` is a lower bound of f in cells above, an upper one in cells below, and NaN elsewhere.
    With a tolerance, above means f >= threshold - tolerance, and below f <= threshold + tolerance. `above`, `below` and
    `undecided` are shares of the box. `counterexample` is a θ that is surely on the other side, where one side was
    asked for all of a box. `monotone` is what was assumed.
    """

    box: Space
    threshold: float
    side: Side
    tolerance: float
    monotone: tuple[tuple[str, str], ...]
    corner_low: FloatArray
    corner_high: FloatArray
    low: FloatArray
    high: FloatArray
    bound: FloatArray
    status: Status
    bounds_used: int
    reached: bool
    reason: str
    counterexample: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("corner_low", "corner_high", "low", "high", "bound", "status"):
            read_only(getattr(self, name))

    @property
    def above(self) -> float:
        """The share of the box where f is surely above."""
        return self._share(1)

    @property
    def below(self) -> float:
        """The share of the box where f is surely below."""
        return self._share(-1)

    @property
    def undecided(self) -> float:
        """The share of the box that no bound decides."""
        return self._share(0)

    def of(self, theta: FloatArray) -> Status:
        """1, -1 or 0 at each of the parameters: above, below or undecided; a decided cell's faces belong to it."""
        found = np.zeros(len(theta), dtype=np.int8)
        for low, high, status in zip(self.low, self.high, self.status, strict=True):
            if status:
                found[((low <= theta) & (theta <= high)).all(axis=1)] = status
        return found

    def _share(self, status: int) -> float:
        chosen = self.status == status
        return math.fsum(volumes(self.corner_low[chosen], self.corner_high[chosen]).tolist())

    def __len__(self) -> int:
        return len(self.status)

    def __repr__(self) -> str:
        shares = f"{percent(round(self.above, 4))} above, {percent(round(self.below, 4))} below"
        left = f"{percent(round(self.undecided, 4))} undecided"
        return f"<CellCover of {self.threshold:g}: {shares}, {left}, by {plural(self.bounds_used, 'bound')}>"


@dataclass(frozen=True, slots=True)
class CoverCheck:
    """Whether a cover holds, and what was looked at, a sentence each."""

    holds: bool
    lines: tuple[str, ...]


def check_cover(enclosure: Enclosure, cover: CellCover, *, progress: Progress = SILENT) -> CoverCheck:
    """Compute every bound of a cover again, and show that its cells fill its box without overlap."""
    root = Root.of(enclosure, cover.box)
    faults = [*_shape_faults(cover, root), *_end_faults(cover, root)]
    if faults:
        return CoverCheck(False, tuple(faults))
    fills = fills_the_unit_box(cover.corner_low, cover.corner_high)
    how = "fill the box without overlap" if fills else "overlap, or do not fill the box"
    lines = [f"the cells, {len(cover):,} of them, {how}"]
    wrong = _wrong_bounds(enclosure, cover, root, progress)
    decided = int(np.count_nonzero(cover.status))
    if len(wrong):
        row = int(wrong[0])
        where = ", ".join(
            f"{name} in [{a:.6g}, {b:.6g}]"
            for name, a, b in zip(root.space.names, cover.low[row], cover.high[row], strict=True)
        )
        lines.append(f"{plural(len(wrong), 'bound')} of {decided:,} do not hold, the first in the cell {where}")
    else:
        lines.append(f"the bounds of {plural(decided, 'decided cell')} were computed again, and each decides its cell")
        lines.append(f"{percent(round(1 - cover.undecided, 6))} of the box is decided")
    return CoverCheck(fills and not len(wrong), tuple(lines))


def fills_the_unit_box(low: FloatArray, high: FloatArray) -> bool:
    """Whether cells with these corners are a subdivision of the unit box by halving: disjoint, and filling it."""
    unit = 2**MOST_HALVINGS
    scaled_low, scaled_high = low * unit, high * unit
    if not ((scaled_low == np.floor(scaled_low)).all() and (scaled_high == np.floor(scaled_high)).all()):
        return False
    lows, highs = scaled_low.astype(np.int64), scaled_high.astype(np.int64)
    dimension = low.shape[1]
    waiting: list[tuple[IntArray, tuple[int, ...], tuple[int, ...]]] = [
        (np.arange(len(low)), (0,) * dimension, (unit,) * dimension)
    ]
    while waiting:
        rows, begin, end = waiting.pop()
        if not len(rows):
            return False  # nothing covers this part
        if len(rows) == 1:
            if tuple(lows[rows[0]].tolist()) != begin or tuple(highs[rows[0]].tolist()) != end:
                return False
            continue
        for axis in range(dimension):
            middle = (begin[axis] + end[axis]) // 2
            if begin[axis] < middle and not ((lows[rows, axis] < middle) & (highs[rows, axis] > middle)).any():
                left = highs[rows, axis] <= middle
                cut = (*end[:axis], middle, *end[axis + 1 :]), (*begin[:axis], middle, *begin[axis + 1 :])
                waiting += [(rows[left], begin, cut[0]), (rows[~left], cut[1], end)]
                break
        else:
            return False  # every middle is crossed: two cells overlap
    return True


def _shape_faults(cover: CellCover, root: Root) -> list[str]:
    shape = (len(cover.status), len(root.space))
    tables = (cover.corner_low, cover.corner_high, cover.low, cover.high)
    if any(table.shape != shape for table in tables) or cover.bound.shape != shape[:1] or not len(cover):
        return ["the tables of the cells do not fit each other"]
    if not np.isin(cover.status, (-1, 0, 1)).all():
        return ["a cell is neither above nor below nor undecided"]
    if not ((cover.corner_low >= 0) & (cover.corner_low < cover.corner_high) & (cover.corner_high <= 1)).all():
        return ["a cell leaves the box, or is empty"]
    if not (0.0 < cover.threshold < 1.0 and 0.0 <= cover.tolerance < 1.0):
        return ["the threshold or the tolerance is not a probability"]
    return []


def _end_faults(cover: CellCover, root: Root) -> list[str]:
    """The ends of cells, as parameters, are where their corners are, and one end for one corner."""
    faults = []
    expected_low, expected_high = root.theta(cover.corner_low), root.theta(cover.corner_high)
    for axis, (name, range_) in enumerate(root.space.ranges.items()):
        corners = np.concatenate([cover.corner_low[:, axis], cover.corner_high[:, axis]])
        ends = np.concatenate([cover.low[:, axis], cover.high[:, axis]])
        expected = np.concatenate([expected_low[:, axis], expected_high[:, axis]])
        if not (np.abs(ends - expected) <= _ULPS * np.spacing(np.abs(expected))).all():
            faults.append(f"an end of a cell along {name} is not where its corner is")
            continue
        known, first, places = np.unique(corners, return_index=True, return_inverse=True)
        if not (ends[first][places] == ends).all() or not (np.diff(ends[first]) > 0).all():
            faults.append(f"two cells that should share a face along {name} do not")
        elif (known[0] == 0.0 and ends[first[0]] != range_.low) or (
            known[-1] == 1.0 and ends[first[-1]] != range_.high
        ):
            faults.append(f"the cells do not reach the ends of {name}")
    return faults


def _wrong_bounds(enclosure: Enclosure, cover: CellCover, root: Root, progress: Progress) -> IntArray:
    """The decided cells whose bound, computed again, does not decide them or is not the one that is stored."""
    decided = np.flatnonzero(cover.status)
    monotone = checked_monotone(dict(cover.monotone), root.space.names)
    wrong = []
    with working(progress, "check", len(decided), "cells"):
        for begin in range(0, len(decided), _AT_ONCE):
            rows = decided[begin : begin + _AT_ONCE]
            upper = cover.status[rows] < 0
            boxes = collapsed(root, cover.low[rows], cover.high[rows], upper, monotone)
            bounds = enclosure.sides(*boxes, upper)
            most, least = cover.threshold + cover.tolerance, cover.threshold - cover.tolerance
            holds = np.where(upper, bounds <= most, bounds >= least) & (np.abs(bounds - cover.bound[rows]) <= _SAME)
            wrong.append(rows[~holds])
            progress.advance(len(rows))
    return np.concatenate([np.empty(0, np.int64), *wrong])
