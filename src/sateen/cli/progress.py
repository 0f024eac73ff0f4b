"""A bar on the terminal that says how far long work is, how fast it goes, and when it will end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TextIO

import click

from sateen.core.interrupts import deferring_interrupts
from sateen.core.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_PATIENCE: Final = 1.0  # seconds without a bar


class Bar:
    """A watcher of work, as `core/progress.py` describes it, that shows a bar for what takes more than a second.

    It writes to stderr, so that output can be piped, and draws only on a terminal. Notes are written in any case.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = _PATIENCE) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._patience = patience
        self._work = ("", 0, "")
        self._started = 0.0
        self._done = 0
        self._drawn: RichProgress | None = None

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins."""
        self.finish()
        self._work = (label, total, unit)
        self._started = time.monotonic()
        self._done = 0

    def advance(self, n: int) -> None:
        """So many more are done; the bar appears once the work has taken long enough."""
        self._done += n
        seconds = max(time.monotonic() - self._started, 1e-9)
        if self._drawn is None:
            if seconds < self._patience or self._done >= self._work[1] or not self._stream.isatty():
                return
            with deferring_interrupts():  # a bar that is drawn must be known, or nothing would remove it
                self._drawn = self._bar()
        for task in self._drawn.task_ids:
            self._drawn.update(task, completed=self._done, rate=_rate(self._done / seconds))

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        if self._drawn is None:
            click.echo(printable(text), file=self._stream)
        else:
            self._drawn.console.print(printable(text), markup=False, highlight=False)

    def finish(self) -> None:
        """The work is over, and its bar disappears."""
        if self._drawn is not None:
            with deferring_interrupts():
                self._drawn.stop()
                self._drawn = None

    def _bar(self) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        label, total, unit = self._work
        drawn = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn(f"{{task.fields[rate]}} {unit}/s, time left"),
            TimeRemainingColumn(),
            console=Console(file=self._stream),
            transient=True,
        )
        drawn.add_task(label, total=total, completed=self._done, rate="")
        drawn.start()
        return drawn


def _rate(rate: float) -> str:
    """A number a second, with a unit that keeps it short.

    >>> [_rate(rate) for rate in (0.25, 47, 12_345, 2_000_000)]
    ['0.25', '47', '12.3k', '2M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"
