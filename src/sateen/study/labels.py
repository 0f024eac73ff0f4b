"""Labels of held-out points: observations from runs, or the truth, computed in pieces that a stopped run resumes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final, TypeAlias

import numpy as np

from sateen.core.errors import ExactError, InputError, SateenError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.progress import Progress, working
from sateen.core.space import Points
from sateen.core.threads import processors
from sateen.engine.exact import exact
from sateen.guarantee.truth import Truth
from sateen.learning.stored import load
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.pipeline.folder import read_checksummed, write_checksummed
from sateen.pipeline.workers import side_by_side

Labels: TypeAlias = Observations | Truth
Piece: TypeAlias = tuple[str, int]  # the name of a formula, and the first row of the points
_ROWS: Final = 8  # of a piece; what is computed together does not depend on the workers
_WORTHWHILE: Final = 3.0  # seconds left to compute, from which on processes are worth their start
_KEEP_EVERY: Final = 1.0  # seconds


def load_labels(file: FilePath) -> Labels:
    """The observations or the truth in the file of a task."""
    labels = load(file)
    if not isinstance(labels, Observations | Truth):
        raise InputError(f"{file} has no labels, but a {type(labels).__name__}")
    return labels


def compute_truths(
    model: Model,
    formulas: Mapping[str, Formula],
    points: Points,
    *,
    checkpoint: FilePath,
    workers: int | None,
    progress: Progress,
) -> dict[str, Truth]:
    """The probability of each formula at all points, to ten decimals, the same to the last bit for any `workers`.

    What is done is in the file `checkpoint`, at most a second old, from which a run that was stopped resumes.
    """
    asked = fingerprint(
        {
            "model": str(model),
            "formulas": {name: [str(one), one.end] for name, one in formulas.items()},
            "theta": points.theta.tolist(),
            "fixed": dict(points.space.fixed),
        }
    )
    done = _Done.resumed(checkpoint, asked)
    pieces = [(name, row) for name in formulas for row in range(0, len(points), _ROWS)]
    waiting = [piece for piece in pieces if piece not in done.values]
    with working(progress, "exact", len(pieces), "pieces"):
        progress.advance(len(pieces) - len(waiting))
        try:
            while waiting:
                few = min(workers or processors(), len(waiting)) < 2
                if not few and done.seconds and done.mean_seconds * len(waiting) > _WORTHWHILE:
                    _beside(model, formulas, points, waiting, workers or processors(), done, progress)
                    break
                piece = waiting.pop(0)
                done.add(piece, *_timed(model, formulas[piece[0]], _part(points, piece), piece[0]))
                progress.advance(1)
        finally:
            done.keep()
    return {name: Truth(points, np.array(done.column(name)), done.spent(name)) for name in formulas}


def _beside(
    model: Model,
    formulas: Mapping[str, Formula],
    points: Points,
    pieces: list[Piece],
    workers: int,
    done: _Done,
    progress: Progress,
) -> None:
    def asked(piece: Piece) -> tuple[object, ...]:
        return model, formulas[piece[0]], _part(points, piece), piece[0]

    def ended(piece: Piece, outcome: tuple[list[float], float]) -> None:
        done.add(piece, *outcome)
        progress.advance(1)

    side_by_side(_timed, pieces, asked, processes=workers, began=lambda _: None, ended=ended)


def _part(points: Points, piece: Piece) -> Points:
    return points[np.arange(piece[1], min(piece[1] + _ROWS, len(points)))]


def _timed(model: Model, formula: Formula, points: Points, name: str) -> tuple[list[float], float]:
    """The probabilities at some points, and the processor's seconds that they took."""
    start = time.process_time()
    try:
        values = exact(model, formula, points, progress=None).tolist()
    except SateenError as error:
        problem = f"{name} cannot be computed: {error}"
        raise ExactError(problem, remedy="use runs instead of {exact=True}", argument="exact") from error
    return values, time.process_time() - start


class _Done:
    """The pieces that are computed, and the file that keeps them."""

    def __init__(self, file: FilePath, asked: str) -> None:
        self.file, self.asked = file, asked
        self.values: dict[Piece, list[float]] = {}
        self.seconds: dict[Piece, float] = {}
        self.kept = time.monotonic()

    @classmethod
    def resumed(cls, file: FilePath, asked: str) -> _Done:
        """What the file has of this question; a file that is damaged, or of another, is of no use."""
        done = cls(file, asked)
        with suppress(SateenError, OSError, KeyError, TypeError, ValueError):
            content = read_checksummed(file)
            if content["asked"] == asked:
                for name, row, values, seconds in content["pieces"]:
                    done.values[name, row], done.seconds[name, row] = values, seconds
        return done

    @property
    def mean_seconds(self) -> float:
        """How long a piece takes."""
        return sum(self.seconds.values()) / len(self.seconds)

    def add(self, piece: Piece, values: list[float], seconds: float) -> None:
        """Enter a piece, and keep it soon."""
        self.values[piece], self.seconds[piece] = values, seconds
        if time.monotonic() - self.kept > _KEEP_EVERY:
            self.keep()

    def keep(self) -> None:
        """Write what is done."""
        pieces = [[*piece, values, self.seconds[piece]] for piece, values in self.values.items()]
        write_checksummed(self.file, {"asked": self.asked, "pieces": pieces})
        self.kept = time.monotonic()

    def column(self, name: str) -> list[float]:
        """All values of a formula, in the order of the points."""
        rows = sorted(row for each, row in self.values if each == name)
        return [value for row in rows for value in self.values[name, row]]

    def spent(self, name: str) -> float:
        """How long all values of a formula took."""
        return sum(seconds for (each, _), seconds in self.seconds.items() if each == name)
