"""Ctrl-C at the right moment, and Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["deferring_interrupts", "heeding_interrupts"]


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Raises KeyboardInterrupt at the end of the block if Ctrl-C was pressed in it, whoever caught it there.

    A fit that Ctrl-C ends returns the best it has. Where it is one of several that a plan or a comparison makes, the
    rest would go on with it, and what comes out would depend on when the key was pressed. An error of the block after
    Ctrl-C is taken for its consequence: a compiler makes one of it.
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
    """Lets Ctrl-C wait for the end of the block.

    For short work in a library that does not expect to be left half-way: a program that ends while JAX computes may
    crash.
    """
    with _listening(at_once=False) as pressed:
        yield
    if pressed:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, None)


@contextmanager
def _listening(at_once: bool) -> Iterator[list[int]]:
    """Every Ctrl-C in the block; whoever was in charge hears of it at once, or not at all."""
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    if not callable(handler):
        yield pressed
        return

    def noticed(number: int, frame: Any) -> None:
        pressed.append(number)
        if at_once:
            handler(number, frame)

    signal.signal(signal.SIGINT, noticed)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
