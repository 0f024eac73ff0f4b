"""The book of a campaign: which of its runs are done, and what they counted.

All runs of all points are laid end to end: first those of point 0, then those of point 1, and so on. So any piece of
work, be it many points or a part of the runs of one, is an interval of whole numbers [first, stop), and what is
pending is a list of gaps. Counts are sums over disjoint intervals: they are the same however the work was cut, and in
whatever order it came back.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.observations import Failure
from sateen.core.types import IntArray
from sateen.sampling.parts import Interval, Part, common, length, part_runs

MOST_FAILURES: Final = 100  # of the runs that failed, this many are kept: the first


@dataclass(frozen=True, slots=True)
class Tally:
    """What some runs came to, by point: `satisfied` is (formulas, points), `undecided` (formulas, reasons, points)."""

    satisfied: IntArray
    undecided: IntArray
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """The tally of the runs [first, stop), over the points they belong to, and how many seconds one worker took."""

    first: int
    stop: int
    tally: Tally
    seconds: float


class Ledger:
    """The counts of a campaign so far, and which of its runs are pending: of all, or of a part of it."""

    def __init__(self, runs: IntArray, size: int, reasons: tuple[str, ...], part: Part | None = None) -> None:
        self.runs = runs
        self.reasons = reasons
        self.size = size
        self._ends = np.cumsum(runs)
        self.total = int(self._ends[-1]) if len(runs) else 0
        self._part = None if part is None else part_runs(self.total, part)
        self.clear()

    def clear(self) -> None:
        """Forget all counts."""
        self.satisfied = np.zeros((self.size, len(self.runs)), np.int64)
        self._undecided: dict[str, IntArray] = {}  # most campaigns have none, and they are as large as `satisfied`
        self._edges: list[int] = []  # where stretches of entered runs begin and end, by turns
        self.failures: tuple[Failure, ...] = ()
        self.seconds = 0.0
        self.done = 0

    def items(self, first: int, stop: int) -> tuple[slice, IntArray]:
        """The points of the runs [first, stop), and an item (point index, first run, number of runs) for each."""
        points = self._points(first, stop)
        index = np.arange(points.start, points.stop)
        begin = self._ends[points] - self.runs[points]
        from_run = np.maximum(first - begin, 0)
        number = np.minimum(stop - begin, self.runs[points]) - from_run
        return points, np.column_stack([index, from_run, number])

    def within(self, first: int, stop: int, most_points: int) -> int:
        """The largest stop, up to `stop`, for which [first, stop) has at most this many points."""
        points = self._points(first, stop)
        if points.stop - points.start <= most_points:
            return stop
        return int(self._ends[points.start + most_points - 1])

    def around(self, edge: int) -> tuple[int, int]:
        """Where the point begins that has the runs next to this edge, and where it ends; the edge, if it is between."""
        point = int(np.searchsorted(self._ends, edge))
        begin = int(self._ends[point] - self.runs[point])
        return (begin, int(self._ends[point])) if begin < edge < self._ends[point] else (edge, edge)

    def add(self, chunk: Chunk) -> None:
        """Enter a chunk, of whose runs none is entered yet."""
        if not self.is_open(chunk.first, chunk.stop):
            raise AssertionError(f"the runs {chunk.first} to {chunk.stop} are entered already")
        points = self._points(chunk.first, chunk.stop)
        self.satisfied[:, points] += chunk.tally.satisfied
        for index, reason in enumerate(self.reasons):
            if (undecided := chunk.tally.undecided[:, index]).any():
                self._undecided.setdefault(reason, np.zeros_like(self.satisfied))[:, points] += undecided
        failures = sorted((*self.failures, *chunk.tally.failures), key=lambda each: (each.point, each.run))
        self.failures = tuple(failures[:MOST_FAILURES])
        for edge in (chunk.first, chunk.stop):  # an edge of two stretches is none any more
            place = bisect_left(self._edges, edge)
            if place < len(self._edges) and self._edges[place] == edge:
                del self._edges[place]
            else:
                self._edges.insert(place, edge)
        self.seconds += chunk.seconds
        self.done += chunk.stop - chunk.first

    def gaps(self) -> list[Interval]:
        """The runs that are asked for and not entered."""
        edges = [0, *self._edges, self.total]
        gaps = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        return gaps if self._part is None else common(gaps, self._part)

    @property
    def pending(self) -> int:
        """How many runs are asked for and not entered."""
        return length(self.gaps())

    def is_open(self, first: int, stop: int) -> bool:
        """Whether none of the runs [first, stop) is entered."""
        place = bisect(self._edges, first)
        return not place % 2 and not any(edge < stop for edge in self._edges[place : place + 1])

    def undecided(self, formula: int) -> dict[str, IntArray]:
        """The undecided runs of each point, by reason."""
        return {reason: counts[formula] for reason, counts in self._undecided.items()}

    def trials(self) -> IntArray:
        """How many runs of each point are entered."""
        if self.done == self.total:
            return self.runs
        # How many runs before a place are entered grows along the stretches, and stays between them.
        edges = np.array([0, *self._edges], np.int64)
        lengths = np.diff(edges, prepend=0)
        lengths[1::2] = 0
        entered = np.interp(np.concatenate([[0], self._ends]), edges, np.cumsum(lengths))
        return np.asarray(np.diff(entered), np.int64)

    def _points(self, first: int, stop: int) -> slice:
        low, high = np.searchsorted(self._ends, [first, stop - 1], side="right").tolist()
        return slice(low, high + 1)
