"""Watchers of progress, for the tests of whoever tells of it."""

from __future__ import annotations

import math

__all__ = ["Watcher"]


class Watcher:
    """Remembers what it was told, and presses Ctrl-C when `patience` steps are done."""

    def __init__(self, patience: float = math.inf) -> None:
        self.patience, self.done, self.finished = patience, 0, 0
        self.told = list[tuple[str, int, str]]()

    @property
    def total(self) -> int:
        """How much work was announced last."""
        return self.told[-1][1]

    def start(self, label: str, total: int, unit: str) -> None:
        self.told.append((label, total, unit))

    def advance(self, n: int) -> None:
        self.done += n
        if self.done >= self.patience:
            raise KeyboardInterrupt

    def note(self, text: str) -> None: ...

    def finish(self) -> None:
        self.finished += 1
