"""Ctrl-C that is not lost: learners end a fit early on it and return what they have, which no stage may keep."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["heeding_interrupts"]


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Raises KeyboardInterrupt at the end of the block if Ctrl-C was pressed in it, whoever caught it there.

    A fit that Ctrl-C ends returns the best it has. Where it is one of several that a plan or a comparison makes, the
    rest would go on with it, and what comes out would depend on when the key was pressed.
    """
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    if not callable(handler):
        yield
        return
    pressed: list[int] = []

    def noticed(number: int, frame: Any) -> None:
        pressed.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, noticed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt
