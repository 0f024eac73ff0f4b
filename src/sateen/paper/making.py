"""Making pieces of the paper's experiments, those that one processor makes side by side.

First come all data and truths, each made by all processors; then the fits, and the plans of calibrations, in as many
processes as there are workers; then the runs for calibrations, and these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sateen.core.interrupts import heeding_interrupts
from sateen.core.threads import on_one_thread
from sateen.paper.forecast import in_words
from sateen.paper.pieces import Piece
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.workers import side_by_side

__all__ = ["Maker", "make_piece"]

_ORDER: Final = ("data", "truth", "fit", "plan", "held-out", "lift")
_SIDE_BY_SIDE: Final = ("fit", "plan")
_TELLING: Final = 0.2  # of the work, from which on the pace of a machine shows
_LEFT_BEHIND: Final = (".db", ".db-wal", ".db-shm", ".checkpoint")  # beside a piece, while it is made


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes pieces in a folder, with so many workers.

    `expected` says about how many seconds of the whole a piece takes. `tell` hears of every piece that is begun.
    Another process makes a piece by `elsewhere(*order(piece))`.
    """

    folder: ResultFolder
    workers: int
    expected: Callable[[Piece], float]
    tell: Callable[[str], None]
    elsewhere: Callable[..., None]
    order: Callable[[Piece], tuple[Any, ...]]

    def make(self, missing: Sequence[Piece]) -> dict[str, float]:
        """Make what is missing; the seconds that each kind of piece took, which come one after the other."""
        whole = sum(map(self.expected, missing))
        began = time.perf_counter()
        begun: list[Piece] = []
        done: list[float] = []

        def begin(piece: Piece) -> None:
            begun.append(piece)
            known = sum(done)
            pace = (time.perf_counter() - began) / known if known > _TELLING * whole else 1.0
            left = in_words(pace * (whole - known))
            self.tell(f"{len(begun)} of {len(missing)}, about {left} left: {piece.label}")

        def end(piece: Piece) -> None:
            done.append(self.expected(piece))

        spent: dict[str, float] = {}
        for kind in _ORDER:
            pieces, start = [piece for piece in missing if piece.kind == kind], time.perf_counter()
            if kind in _SIDE_BY_SIDE and min(self.workers, len(pieces)) > 1:
                pieces.sort(key=self.expected, reverse=True)  # so that none is left alone at the end for long
                options: dict[str, Any] = {"processes": self.workers, "began": begin, "ended": end}
                side_by_side(self.elsewhere, pieces, self.order, **options)
            else:
                for piece in pieces:
                    begin(piece)
                    make_piece(self.folder, piece)
                    end(piece)
            if pieces:
                spent[kind] = time.perf_counter() - start
        return spent

    def clear(self, pieces: Sequence[Piece]) -> None:
        """Clear away what a run left that was killed after the last file of a piece, and before it could."""
        for piece in pieces:
            for file in piece.files:
                for rest in _LEFT_BEHIND:
                    file.with_suffix(rest).unlink(missing_ok=True)


def make_piece(folder: ResultFolder, piece: Piece) -> None:
    """Make a piece, on one thread but for its runs, and write its files."""
    with folder.writing(piece.files[0]):
        with heeding_interrupts():
            save = on_one_thread(piece.make)()
        save()
