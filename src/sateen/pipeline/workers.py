"""Processes that do pieces of work side by side, and end when the one that called them does, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from sateen.core.errors import SateenError

__all__ = ["side_by_side"]

_Item = TypeVar("_Item")


def side_by_side(
    work: Callable[..., None],
    items: Sequence[_Item],
    arguments: Callable[[_Item], tuple[Any, ...]],
    *,
    processes: int,
    began: Callable[[_Item], None],
    ended: Callable[[_Item], None],
) -> None:
    """Do `work(*arguments(item))` for every item, in so many processes, beginning in the order of the items.

    `work` is a function of a module. An error of one, or Ctrl-C, ends all.
    """
    waiting = list(reversed(items))
    running: dict[Future[None], _Item] = {}
    with _crew(min(processes, len(items))) as crew:
        while waiting or running:
            while waiting and len(running) < processes:
                item = waiting.pop()
                began(item)
                running[crew.submit(work, *arguments(item))] = item
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                ended(running.pop(done))


@contextmanager
def _crew(processes: int) -> Iterator[ProcessPoolExecutor]:
    """New processes; they end at once, in the midst of their work, if the block fails."""
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    crew = ProcessPoolExecutor(processes, context, initializer=_enlist, initargs=(theirs,))
    try:
        yield crew
    except BrokenProcessPool:
        ours.close()
        raise SateenError(
            "a process at work ended without a word; the system may have been short of memory\n"
            "  run the same again with fewer workers: what is finished is kept"
        ) from None
    except BaseException:
        ours.close()
        raise
    finally:
        crew.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


def _enlist(caller: Connection) -> None:
    """Leave Ctrl-C to the caller, and end with it: its end of the pipe closes when it wants that, and when it dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()


def _end_with(caller: Connection) -> None:
    try:
        caller.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
