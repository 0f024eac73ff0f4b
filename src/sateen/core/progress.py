"""How long work says how far it is: to an object that is handed in, and that does nothing by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol, runtime_checkable

__all__ = ["SILENT", "Progress", "working"]


@runtime_checkable
class Progress(Protocol):
    """Whoever watches a piece of work: a bar, a log, or nobody.

    For each piece of work `start` is called once, then `advance` and `note` any number of times, then `finish` once,
    also after an error or Ctrl-C. All calls come from the thread that asked for the work. How fast it goes, and how
    long it will take, the watcher reckons from the calls of `advance`.
    """

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins: what it is, and how many of which unit are to be done."""

    def advance(self, n: int) -> None:
        """So many more are done."""

    def note(self, text: str) -> None:
        """Something worth a word, such as a step that takes its time before the first advance."""

    def finish(self) -> None:
        """The work is over, done or not."""


class _Silent:
    """Nobody watches."""

    __slots__ = ()

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, n: int) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


SILENT: Final[Progress] = _Silent()


@contextmanager
def working(progress: Progress, label: str, total: int, unit: str) -> Iterator[None]:
    """A piece of work, from its start to its finish, also after an error or Ctrl-C."""
    progress.start(label, total, unit)
    try:
        yield
    finally:
        progress.finish()
