"""The watcher of progress that tests share."""

from __future__ import annotations

import math

__all__ = ["Watcher"]


class Watcher:
    """Records every update of progress, checks their order, and presses Ctrl-C where it is asked to.

    Ctrl-C comes as soon as `patience` steps are done, or at the call of `advance` whose number is `at`, from 1.
    """

    def __init__(self, patience: float = math.inf, *, at: int | None = None) -> None:
        self.patience, self.at = patience, at
        self.updates = list[tuple[object, ...]]()  # all of them, as ("start", label, total, unit) and so on
        self.told = list[tuple[str, int, str]]()  # label, total and unit of each piece of work
        self.done_of_each = list[int]()
        self.notes = list[str]()
        self.calls, self.open, self.finished = 0, 0, 0

    @property
    def total(self) -> int:
        """How much work was announced last."""
        return self.told[-1][1]

    @property
    def done(self) -> int:
        """How many steps are done, of all pieces of work."""
        return sum(self.done_of_each)

    def start(self, label: str, total: int, unit: str) -> None:
        assert self.open == 0
        assert label
        assert total > 0
        self.open = 1
        self.told.append((label, total, unit))
        self.done_of_each.append(0)
        self.updates.append(("start", label, total, unit))

    def advance(self, n: int) -> None:
        assert self.open == 1
        assert n >= 0
        self.calls += 1
        self.done_of_each[-1] += n
        self.updates.append(("advance", n))
        if self.done >= self.patience or self.calls == self.at:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.updates.append(("note", text))

    def finish(self) -> None:
        self.open -= 1
        self.finished += 1
        self.updates.append(("finish",))
