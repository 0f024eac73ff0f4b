"""A bar that says how far long work is, how fast it goes, and when it will end: on a terminal, or in a notebook."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from sateen.core.interrupts import deferring_interrupts
from sateen.core.printable import printable
from sateen.core.progress import SILENT, Progress
from sateen.core.text import duration_text

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_PATIENCE: Final = 1.0  # seconds without a bar
_MOMENT: Final = 0.1  # seconds between two pictures of a bar in a notebook


def usual_progress() -> Progress:
    """Who watches work by default: a bar in a notebook or on a terminal, and nobody where nobody looks on."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NotebookBar()
    return Bar(talkative=False) if sys.stderr is not None and sys.stderr.isatty() else SILENT


class _Patient(ABC):
    """A watcher of work, as `core/progress.py` describes it, that shows something for what takes more than a second."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._work = ("", 0, "")
        self._started = 0.0
        self._done = 0
        self._visible = False

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins."""
        self.finish()
        self._work = (label, total, unit)
        self._started = time.monotonic()
        self._done = 0

    def advance(self, n: int) -> None:
        """This many more are done; the bar appears once the work has taken long enough."""
        self._done += n
        seconds = max(time.monotonic() - self._started, 1e-9)
        if not self._visible:
            if seconds < self._patience or self._done >= self._work[1] or not self._seen():
                return
            with deferring_interrupts():  # a bar that is drawn must be known, or nothing would remove it
                self._draw()
                self._visible = True
        self._update(self._done / seconds)

    def finish(self) -> None:
        """The work is over, and its bar disappears."""
        if self._visible:
            with deferring_interrupts():
                self._visible = False
                self._remove()

    def _seen(self) -> bool:
        """Whether anybody would see it."""
        return True

    @abstractmethod
    def _draw(self) -> None: ...
    @abstractmethod
    def _update(self, rate: float) -> None: ...
    @abstractmethod
    def _remove(self) -> None: ...


class Bar(_Patient):
    """A bar on stderr, so that output can be piped; it draws only on a terminal.

    Notes are written in any case, or, if it is not `talkative`, only above a bar.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = _PATIENCE, *, talkative: bool = True) -> None:
        super().__init__(patience)
        self._stream = sys.stderr if stream is None else stream
        self._talkative = talkative
        self._drawn: RichProgress | None = None

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        if self._drawn is not None:
            self._drawn.console.print(printable(text), markup=False, highlight=False)
        elif self._talkative:
            click.echo(printable(text), file=self._stream)

    def _seen(self) -> bool:
        return self._stream.isatty()

    def _draw(self) -> None:
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
        self._drawn = drawn

    def _update(self, rate: float) -> None:
        if self._drawn is not None:
            for task in self._drawn.task_ids:
                self._drawn.update(task, completed=self._done, rate=_rate(rate))

    def _remove(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None


class NotebookBar(_Patient):
    """A bar below the cell of a notebook, made of HTML alone; when the work is over, nothing of it stays."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        super().__init__(patience)
        self._handle: Any = None
        self._shown = 0.0  # when it was last drawn
        self._note = ""

    def note(self, text: str) -> None:
        """What is happening, next to the bar."""
        self._note = printable(text)

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins."""
        super().start(label, total, unit)
        self._note = ""

    def _draw(self) -> None:
        display = sys.modules["IPython"].display
        self._handle = display.display(_bundle("", ""), raw=True, display_id=True)
        self._shown = 0.0

    def _update(self, rate: float) -> None:
        now = time.monotonic()
        if now - self._shown < _MOMENT:
            return
        self._shown = now
        label, total, unit = self._work
        left = "" if rate <= 0 else f", {duration_text(max(total - self._done, 0) / rate)} left"
        words = f"{label}: {self._done:,} of {total:,} {unit}, {_rate(rate)} a second{left}"
        bar = f'<progress value="{self._done}" max="{max(total, 1)}" style="vertical-align:middle"></progress>'
        note = f"<br><small>{escape(self._note)}</small>" if self._note else ""
        self._handle.update(_bundle(words, f"<p>{bar} {escape(printable(words))}{note}</p>"), raw=True)

    def _remove(self) -> None:
        self._handle.update(_bundle("", ""), raw=True)
        self._handle = None


def _bundle(plain: str, html: str) -> dict[str, str]:
    """What a notebook is shown: text for one without HTML."""
    return {"text/plain": plain, "text/html": html}


def _rate(rate: float) -> str:
    """A number a second, with a unit that keeps it short.

    >>> [_rate(rate) for rate in (0.25, 47, 12_345, 2_000_000)]
    ['0.25', '47', '12.3k', '2M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"
