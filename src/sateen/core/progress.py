"""How long work reports its progress: to an object that the caller passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Receives progress updates; the default ignores them.

    For each piece of work `start` is called once, then `advance` and `note` any number of times, then `finish` once,
    also after an error or Ctrl-C. All calls come from the thread that started the work. The receiver computes the rate
    and the time left from the calls of `advance`.
    """

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins: what it is, and how many of which unit it has."""

    def advance(self, n: int) -> None:
        """So many more are done."""

    def note(self, text: str) -> None:
        """A remark, such as which step takes long before the first advance."""

    def finish(self) -> None:
        """The work has ended, complete or not."""


class _Silent:
    """Ignores all updates."""

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
