"""Ctrl-C that waits for the right moment, and Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C was pressed in it, even if the block caught it.

    A fit that is interrupted returns the best it has. Where it is one of several fits of a plan or a comparison, the
    others would continue with it, and the result would depend on when the key was pressed. An error of the block after
    Ctrl-C counts as a consequence of it: compilers turn Ctrl-C into errors of their own.
    """
    with _listening(at_once=True) as pressed:
        try:
            yield
        except Exception:
            if not pressed:
                raise
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def deferring_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block.

    For short work in a library that must not be interrupted: a program that ends while JAX computes may crash.
    """
    with _listening(at_once=False) as pressed:
        yield
    if pressed:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, None)


@contextmanager
def _listening(at_once: bool) -> Iterator[list[int]]:
    """Every Ctrl-C in the block; the handler that was set before is called at once, or not at all."""
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    if not callable(handler):
        yield pressed
        return

    def noticed(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if at_once:
            handler(number, frame)

    signal.signal(signal.SIGINT, noticed)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
