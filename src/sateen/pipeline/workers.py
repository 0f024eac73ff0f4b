"""Worker processes: the same function on many items, side by side.

A worker ends when the process that called it does, however that ends, and leaves Ctrl-C to it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import ModuleType
from typing import TypeVar

from sateen.core.errors import SateenError
from sateen.core.interrupts import deferring_interrupts

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


def side_by_side(
    work: Callable[..., _Value],
    items: Sequence[_Item],
    arguments: Callable[[_Item], tuple[object, ...]],
    *,
    processes: int,
    began: Callable[[_Item], None],
    ended: Callable[[_Item, _Value], None],
) -> None:
    """Call `work(*arguments(item))` for every item, in so many processes, beginning in the order of the items.

    `work` is a function of a module. `ended` gets what it returned. An error of one, or Ctrl-C, ends all.
    """
    waiting = list(reversed(items))
    running: dict[Future[_Value], _Item] = {}
    with _processes(min(processes, len(items))) as pool:
        while waiting or running:
            while waiting and len(running) < processes:
                item = waiting.pop()
                began(item)
                with _starting():
                    running[pool.submit(work, *arguments(item))] = item
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                ended(running.pop(done), done.result())


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """New processes; they end at once, in the midst of their work, if the block fails."""
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, context, initializer=_begin_worker, initargs=(theirs, os.getcwd()))
    try:
        yield pool
    except BrokenProcessPool:
        ours.close()
        raise SateenError(
            "a worker process exited unexpectedly; the system may have been short of memory\n"
            "  run the same again with fewer workers: what is finished is kept"
        ) from None
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


@contextmanager
def _starting() -> Iterator[None]:
    """While a process starts: no main module, which would run the user's script again, up to this very call. Ctrl-C and
    SIGTERM wait; the new process inherits that they are blocked."""
    main, masks = sys.modules["__main__"], hasattr(signal, "pthread_sigmask")
    with deferring_interrupts():
        sys.modules["__main__"] = ModuleType("__main__")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM}) if masks else set()
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if masks:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin_worker(caller: Connection, folder: str) -> None:
    """Work in the caller's folder, leave Ctrl-C to it, and end with it: its end of the pipe closes when it wants that,
    and when it dies."""
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
