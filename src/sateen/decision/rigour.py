"""Cells as the evidence of a certificate: rigorous bounds over boxes of θ, of which those on the asked side count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import numpy as np

from sateen.core.errors import InputError
from sateen.core.prediction import drawn_uniformly
from sateen.core.progress import Progress
from sateen.core.space import Space
from sateen.core.text import plural
from sateen.core.types import Array, Arrays, FloatArray
from sateen.decision.cells import threshold_cells
from sateen.decision.cover import CellCover, check_cover
from sateen.decision.fresh import Frozen
from sateen.engine.enclosure import Enclosure
from sateen.files.observations import check_array
from sateen.files.plain import converted
from sateen.logic.formula import Formula
from sateen.model.model import Model

_ENDS: Final = ("corner_low", "corner_high", "low", "high")
_WITHIN: Final = "cells/"  # begins the name of every array of cells


class _Told(TypedDict):
    """What a file says of cells, besides their arrays."""

    bounds_used: int
    reached: bool
    reason: str
    counterexample: list[float] | None


@dataclass(frozen=True, slots=True, eq=False)
class CellTest:
    """Cells with their bounds, and the directions that were declared, if any."""

    frozen: Frozen
    monotone: Mapping[str, str]
    cover: CellCover

    @property
    def count(self) -> int:
        """How many cells are surely on the asked side."""
        return int(np.count_nonzero(self.cover.status == self._status))

    @property
    def _status(self) -> int:
        return -1 if self.frozen.mirrored else 1

    @property
    def filled(self) -> bool:
        """Whether every cell is on the asked side."""
        return self.count == len(self.cover) > 0

    @property
    def volume(self) -> float:
        """The share of the space that is certified; of a box all or nothing."""
        if self.frozen.box is not None:
            return self.frozen.volume(0) if self.filled else 0.0
        return self.cover.below if self.frozen.mirrored else self.cover.above

    def left(self, volume: float) -> float:
        """The share of the space that no bound decides."""
        return self.cover.undecided

    def measure(self, volume: float) -> str:
        """The certified parameters, in words."""
        if self.frozen.box is not None and self.filled:
            return self.frozen.measure(volume).replace("drawn uniformly from", "in")
        share = volume if self.frozen.box is None else self.frozen.volume(0) * self._certified
        space = drawn_uniformly(self.frozen.regions.space).partition("(")[2]
        return f"in the union of {plural(self.count, 'cell')} ({100.0 * share:.3g} % of the space, {space}"

    @property
    def _certified(self) -> float:
        return self.cover.below if self.frozen.mirrored else self.cover.above

    @property
    def words(self) -> str:
        """How it was computed, in words."""
        cover = self.cover
        why = cover.reason
        if cover.counterexample is not None:
            named = zip(self.frozen.regions.space.names, cover.counterexample, strict=True)
            why += ", such as " + ", ".join(f"{name} = {value:.6g}" for name, value in named)
        computed = f"{plural(cover.bounds_used, 'bound')} over {plural(len(cover), 'cell')}"
        return f"{computed}, which leave {100.0 * cover.undecided:.3g} % undecided ({why})"

    def parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Words and arrays for a file."""
        cover = self.cover
        words = {name: getattr(cover, name) for name in ("bounds_used", "reached", "reason")}
        words["counterexample"] = None if cover.counterexample is None else list(cover.counterexample)
        arrays = {_WITHIN + name: getattr(cover, name) for name in (*_ENDS, "bound", "status")}
        return words, arrays

    @classmethod
    def from_parts(cls, frozen: Frozen, monotone: Mapping[str, str], content: object, arrays: Arrays) -> CellTest:
        """The cells that a file describes."""
        told = converted(content, _Told)
        regions = frozen.regions
        count, dimension = len(arrays[_WITHIN + "status"]), len(regions.space)
        for name in _ENDS:
            check_array(name, arrays[_WITHIN + name], (count, dimension), np.float64)
        check_array("bound", arrays[_WITHIN + "bound"], (count,), np.float64)
        check_array("status", arrays[_WITHIN + "status"], (count,), np.int8)
        theta = told["counterexample"]
        if theta is not None and len(theta) != dimension:
            raise InputError("its counterexample is not a point of the space")
        cover = CellCover(
            box=_whole(frozen),
            threshold=regions.threshold,
            side=regions.side,
            tolerance=frozen.tolerance,
            monotone=tuple(monotone.items()),
            **{name: arrays[_WITHIN + name] for name in (*_ENDS, "bound", "status")},
            bounds_used=told["bounds_used"],
            reached=told["reached"],
            reason=told["reason"],
            counterexample=None if theta is None else tuple(theta),
        )
        return cls(frozen, monotone, cover)

    def recheck(
        self,
        agree: Callable[[bool, str, str], None],
        model: object,
        formula: Formula | None,
        undecided: float | None,
        progress: Progress,
    ) -> None:
        """Compute every bound again, and whether the cells fill what they say; an InputError says what does not."""
        if not isinstance(model, Model) or formula is None:
            raise InputError("cells are computed from a model and a formula, which are missing")
        enclosure = Enclosure.of(model, formula, self.frozen.regions.space)
        found = check_cover(enclosure, self.cover, progress=progress)
        for line in found.lines:
            agree(found.holds, line, line)
        target = 0.0 if self.frozen.box is not None else undecided
        reached = self.cover.counterexample is None and (target is None or self.cover.undecided <= target)
        agree(self.cover.reached == reached, "the cells end as stated", "the cells did not reach what they state")


def cell_test(
    frozen: Frozen,
    model: Model,
    formula: Formula,
    monotone: Mapping[str, str],
    undecided: float,
    seconds: float | None,
    cells: int | None,
    progress: Progress,
) -> CellTest:
    """Cells that decide the space, or fill the box; the posterior's mean guesses which bounds are worth computing."""
    regions = frozen.regions

    def guess(theta: FloatArray) -> FloatArray:
        return regions.posterior.predict(theta).mean

    cover = threshold_cells(
        Enclosure.of(model, formula, regions.space),
        regions.threshold,
        regions.side,
        guess=guess,
        undecided=undecided,
        seconds=seconds,
        cells=cells,
        tolerance=frozen.tolerance,
        box=frozen.box,
        monotone=dict(monotone) or None,
        progress=progress,
    )
    return CellTest(frozen, monotone, cover)


def _whole(frozen: Frozen) -> Space:
    return frozen.regions.space if frozen.box is None else frozen.box
