"""Processes on this machine. They end when the process that opened them does, however that ends, and leave Ctrl-C to
it. One that dies takes the others of its pool with it; the next call begins new ones."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any, ClassVar, Final

from sateen.core.errors import InputError
from sateen.core.interrupts import deferring_interrupts
from sateen.pools.pool import Once

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_OURS: Final = "sateen"  # its value where the user has not set it


class ProcessPool:
    """This many processes, begun as they are needed."""

    doubles: ClassVar[bool] = False

    def __init__(self, count: int) -> None:
        self._count = count
        self._check = Once(_check)
        self._begin()

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Hand out a call of a function of a module."""
        self._check(args)
        with starting():
            try:
                return self._executor.submit(work, *args)
            except BrokenProcessPool:
                self.close()
                self._begin()
                return self._executor.submit(work, *args)

    def places(self) -> int:
        """How many processes there are, or will be."""
        return self._count

    def lost(self, error: BaseException) -> bool:
        """Whether a process died."""
        return isinstance(error, BrokenProcessPool)

    def close(self) -> None:
        """End the processes at once, in the midst of what they do."""
        self._ours.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._theirs.close()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = context.Pipe(duplex=False)
        arguments = self._theirs, os.getcwd()
        with _safe_path():
            self._executor = ProcessPoolExecutor(self._count, context, initializer=_begin_worker, initargs=arguments)


def _check(work: Callable[..., Any]) -> None:
    """Refuse what other processes cannot get, here: the thread that sends would break the pool on its way."""
    if "__main__" in (getattr(work, "__module__", ""), type(work).__module__):
        problem = "the black box cannot be sent to other processes: it is defined in the script that runs"
        raise InputError(f"{problem}\n  define it in a module that the script imports, or use workers= for threads")
    ForkingPickler.dumps(work)


@contextmanager
def starting() -> Iterator[None]:
    """While a process starts: no main module, which would run the user's script again, up to this very call. Ctrl-C and
    SIGTERM wait; the new process inherits that they are blocked."""
    main, masks = sys.modules["__main__"], hasattr(signal, "pthread_sigmask")
    with deferring_interrupts(), _safe_path():
        sys.modules["__main__"] = ModuleType("__main__")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM}) if masks else set()
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if masks:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def _safe_path() -> Iterator[None]:
    """While Python starts: it begins with modules of its own, and not with files of the current folder that have their
    names, which may be anybody's. Then multiprocessing gives it the path of this process."""
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        os.environ.pop(_SAFE_PATH, None)


def started() -> None:
    """In the new process: what was set for its start alone is not handed on to programs that it starts."""
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]


def _begin_worker(caller: Connection, folder: str) -> None:
    """Work in the caller's folder, leave Ctrl-C to it, and end with it: its end of the pipe closes when it wants that,
    and when it dies."""
    started()
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()


def _end_with(caller: Connection) -> None:
    try:
        caller.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
