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

    For short work that must not be interrupted: a program that ends while JAX computes may crash, and a process that is
    left while it starts fails.
    """
    with _listening(at_once=False) as pressed:
        yield
    if pressed:
        handler = signal.getsignal(pressed[0])
        if callable(handler):
            handler(pressed[0], None)


@contextmanager
def _listening(at_once: bool) -> Iterator[list[int]]:
    """Every Ctrl-C in the block, and every SIGTERM where a handler is set for that; the handler is called at once, or
    not at all."""
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if main}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}

    def noticed(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if at_once:
            before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, noticed)
    try:
        yield pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
