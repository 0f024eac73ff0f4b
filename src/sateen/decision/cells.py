"""Where f is above or below a threshold, for every θ: cells of the space with bounds that decide them.

Cells are halved, the largest first. A guess of f at the centre says which bound to compute, and whether it pays: a
bound over a cell is off by about slope times the cell's half-width in log rates, and the slope is measured at every try
and passed on to the halves. What is decided is proved by its bound alone; guesses only save work.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.progress import SILENT, Progress, working
from sateen.core.space import Space
from sateen.core.text import percent, plural
from sateen.core.types import FloatArray
from sateen.decision.cover import CellCover, Side, check_cover
from sateen.decision.subdivision import Lattice, Limits, Root, checked_monotone, collapsed, volumes
from sateen.decision.supremum import Supremum, largest
from sateen.engine.enclosure import Enclosure

__all__ = ["CellCover", "Supremum", "check_cover", "largest", "threshold_cells"]

Guess: TypeAlias = Callable[[FloatArray], FloatArray]  # (n, dimension) parameters -> (n,) guesses of f

_FIRST_SLOPE: Final = 1.2
_WORTH: Final = 0.7  # of slope * half-width, from where on a try is worth its cost
_TRIES: Final = 64  # bounds computed at once
_CELLS: Final = 1024  # looked at, at once


def threshold_cells(
    enclosure: Enclosure,
    threshold: float,
    side: Side = "both",
    *,
    guess: Guess | None = None,
    undecided: float = 0.05,
    seconds: float | None = None,
    cells: int | None = None,
    tolerance: float = 0.0,
    box: Space | None = None,
    monotone: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
) -> CellCover:
    """Cells in which f is surely above or below a threshold, until at most a share `undecided` is left.

    With `box` and one `side`, all of the box must be on that side: the search ends early where a θ surely is not.
    `seconds` and `cells`, the number of bounds computed, end it too. `guess` gives f about, such as a posterior's mean;
    without one, f is computed at a lattice of points. Results depend on the clock only where `seconds` ends the search.
    `monotone` declares parameters in which f increases ("+") or decreases ("-"): the cell is then judged by its worst
    end along them, and what is proved rests on that declaration.
    """
    if not 0.0 < threshold < 1.0:
        raise InputError("the threshold must lie between 0 and 1", argument="threshold", remedy="probabilities do")
    if not 0.0 <= tolerance < 1.0:
        raise InputError("{tolerance} must lie in [0, 1)", argument="tolerance", remedy="it is added to a probability")
    if side not in ("above", "below", "both") or (box is not None and side == "both"):
        remedy = "a box is above or below; without a box both sides are decided"
        raise InputError("{side} must be 'above', 'below' or 'both'", argument="side", remedy=remedy)
    root = Root.of(enclosure, box)
    declared = checked_monotone(monotone, root.space.names)
    search = _Search(enclosure, root, threshold, side if box is not None else "both", tolerance, declared, guess, cells)
    target = 0.0 if box is not None else undecided
    limits, shown = Limits.from_now(cells, seconds), 0
    with working(progress, "cells", 100, "% decided"):
        while not (reason := search.end(target) or limits.over(search.used, -search.heap[0][0])):
            search.round()
            now = int(100 * (1.0 - search.undecided))
            progress.advance(now - shown)
            progress.note(f"undecided {percent(round(search.undecided, 4))} after {plural(search.used, 'bound')}")
            shown = now
    return search.cover(side, target, reason)


class _Search:
    """The cells so far: those decided, and a heap of the others, the largest first."""

    def __init__(
        self,
        enclosure: Enclosure,
        root: Root,
        threshold: float,
        side: Side,
        tolerance: float,
        monotone: dict[str, str],
        guess: Guess | None,
        most: int | None,
    ) -> None:
        self.enclosure, self.root, self.side, self.monotone, self.most = enclosure, root, side, monotone, most
        self.threshold, self.tolerance = threshold, tolerance
        self.used, self.serial = 0, 0
        self.counterexample: tuple[float, ...] | None = None
        self.guess: Guess
        if guess is None:
            self.guess = lattice = Lattice.of(enclosure, root, None if most is None else most // 4)
            self.used += lattice.cosines.size
        else:
            self.guess = guess
        self.undecided = 1.0
        self.decided: list[tuple[FloatArray, FloatArray, float, int]] = []
        self.heap: list[tuple[float, int, FloatArray, FloatArray, float]] = []
        self._push(*root.corners, np.array([_FIRST_SLOPE]))

    def end(self, target: float) -> str:
        """Why the search ends, or nothing while it continues."""
        if self.counterexample is not None:
            return "a parameter of the box is surely on the other side"
        if self.undecided <= target or not self.heap:
            return f"at most {percent(target)} is undecided" if target else "every cell is decided"
        return ""

    def round(self) -> None:
        """Look at the largest cells: bound those where that may decide, and halve the others."""
        room = _TRIES if self.most is None else min(_TRIES, self.most - self.used)
        taken = [heapq.heappop(self.heap) for _ in range(min(_CELLS, len(self.heap)))]
        low, high = (np.array([each[place] for each in taken]) for place in (2, 3))
        slopes = np.array([each[4] for each in taken])
        a, b = self.root.theta(low), self.root.theta(high)
        about = np.asarray(self.guess(self.root.theta(0.5 * (low + high))), dtype=np.float64)
        half = 0.5 * self.root.sizes(a, b).sum(axis=1) / max(len(self.root.relevant), 1)
        upper = about < self.threshold
        lift = self.tolerance if self.side == "both" else 0.0
        distance = np.abs(about - self.threshold) + lift
        if self.side != "both":
            upper = np.full(len(taken), self.side == "below")
            distance = np.where(upper, self.threshold - about, about - self.threshold) + self.tolerance
        tried = np.flatnonzero(distance > _WORTH * slopes * half)
        # Cells from the last try on wait: halves of those before them may come first.
        enough = int(tried[room]) if len(tried) > room else len(taken)
        for late in taken[enough:]:
            heapq.heappush(self.heap, late)
        tried = tried[tried < enough]
        split = np.ones(enough, dtype=np.bool_)
        if self.side != "both":
            self._look_for_counterexamples(low[:enough], high[:enough], distance[:enough] < 0.0)
        if len(tried):
            boxes = collapsed(self.root, a[tried], b[tried], upper[tried], self.monotone)
            bounds = self.enclosure.sides(*boxes, upper[tried])
            self.used += len(tried)
            proved = np.where(
                upper[tried], bounds <= self.threshold + self.tolerance, bounds >= self.threshold - self.tolerance
            )
            for place, bound, holds in zip(tried.tolist(), bounds.tolist(), proved.tolist(), strict=True):
                if holds:
                    self.decided.append((low[place], high[place], bound, -1 if upper[place] else 1))
                    self.undecided -= float(volumes(low[place : place + 1], high[place : place + 1])[0])
                    split[place] = False
                slopes[place] = max(abs(bound - about[place]) / max(half[place], 1e-12), 0.3 * slopes[place])
        halved = np.flatnonzero(split)
        if len(halved):
            self._push(*self.root.halves(low[halved], high[halved]), np.tile(slopes[halved], 2))

    def cover(self, side: Side, target: float, reason: str) -> CellCover:
        """What was found."""
        left = sorted(self.heap, key=lambda each: each[:2])
        rows = [*self.decided, *((low, high, math.nan, 0) for _, _, low, high, _ in left)]
        corner_low, corner_high = (np.array([row[place] for row in rows]) for place in (0, 1))
        return CellCover(
            box=self.root.space,
            threshold=self.threshold,
            side=side,
            tolerance=self.tolerance,
            monotone=tuple(self.monotone.items()),
            corner_low=corner_low,
            corner_high=corner_high,
            low=self.root.theta(corner_low),
            high=self.root.theta(corner_high),
            bound=np.array([row[2] for row in rows]),
            status=np.array([row[3] for row in rows], dtype=np.int8),
            bounds_used=self.used,
            reached=self.counterexample is None and (self.undecided <= target or not left),
            reason=reason,
            counterexample=self.counterexample,
        )

    def _push(self, low: FloatArray, high: FloatArray, slopes: FloatArray) -> None:
        for a, b, slope, volume in zip(low, high, slopes.tolist(), volumes(low, high).tolist(), strict=True):
            heapq.heappush(self.heap, (-volume, self.serial, a, b, slope))
            self.serial += 1

    def _look_for_counterexamples(self, low: FloatArray, high: FloatArray, doubted: npt.NDArray[np.bool_]) -> None:
        """Bound f at the centres where the guess is on the other side: one that surely is ends the search."""
        places = np.flatnonzero(doubted)[:8]
        if not len(places):
            return
        theta = self.root.theta(0.5 * (low[places] + high[places]))
        above = self.side == "above"
        bounds = self.enclosure.sides(theta, theta, np.full(len(places), above))
        self.used += len(places)
        wrong = bounds < self.threshold - self.tolerance if above else bounds > self.threshold + self.tolerance
        if wrong.any():
            self.counterexample = tuple(theta[int(np.argmax(wrong))].tolist())
