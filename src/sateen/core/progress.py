"""How long work reports its progress: to an object that the caller passes, by default to a bar if somebody looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol, cast, runtime_checkable

from sateen.core.registry import call_provider


@runtime_checkable
class Progress(Protocol):
    """Receives progress updates. By default a bar shows them in notebooks and on terminals; `progress=None` is silent.

    For each piece of work `start` is called once, then `advance` and `note` any number of times, then `finish` once,
    also after an error or Ctrl-C. All calls come from the thread that started the work. The receiver computes the rate
    and the time left from the calls of `advance`.
    """

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins: what it is, and how many of which unit it has."""

    def advance(self, n: int) -> None:
        """This many more are done."""

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


class _Usual(_Silent):
    """Stands for what is usual where the work is done; `watcher` says what that is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "USUAL"


SILENT: Final[Progress] = _Silent()
USUAL: Final[Progress] = _Usual()  # a bar in notebooks and on terminals for what takes more than a second, else nothing


def watcher(progress: Progress | None) -> Progress:
    """Who watches the work: for None nobody, for USUAL a bar if somebody looks on, else who was given."""
    if progress is None:
        return SILENT
    return cast(Progress, call_provider("usual progress")) if isinstance(progress, _Usual) else progress


@contextmanager
def working(progress: Progress, label: str, total: int, unit: str) -> Iterator[None]:
    """A piece of work, from its start to its finish, also after an error or Ctrl-C."""
    progress.start(label, total, unit)
    try:
        yield
    finally:
        progress.finish()
