"""How work is halted in the midst of a step: by its Progress, which raises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_HALF: Final = 0.5
_TICK: Final = 0.2  # seconds between two reports of progress


class Halted(BaseException):
    """The work was halted, in the midst of a step."""


class TooSlowError(Exception):
    """Only a `share` of a piece of work was done within the patience that there is."""

    def __init__(self, share: float) -> None:
        super().__init__(f"only {share:.0%} was done")
        self.share = share


class Watch:
    """The Progress of a campaign, which raises Halted when it is to stop, and tells how far a piece of work is.

    With a `patience`, in seconds, it raises TooSlowError where less than half is done by then.
    """

    def __init__(
        self, halted: threading.Event, tell: Callable[[str, float], None], patience: float | None = None
    ) -> None:
        self._halted, self._tell, self._patience = halted, tell, patience
        self._total, self._done, self._told = 1, 0, 0.0
        self._began: float | None = None

    def start(self, label: str, total: int, unit: str) -> None:
        self._total, self._done = max(total, 1), 0
        self.check()

    def advance(self, n: int) -> None:
        self._done += n
        self.check()
        now, share = time.monotonic(), min(self._done / self._total, 1.0)
        self._began = self._began or now
        if self._patience is not None and now - self._began > self._patience and share < _HALF:
            raise TooSlowError(share)
        if now - self._told > _TICK:
            self._told = now
            self._tell("", share)

    def note(self, text: str) -> None:
        self.check()
        self._tell(text, min(self._done / self._total, 1.0))

    def finish(self) -> None: ...

    def check(self) -> None:
        """Raise Halted if the work shall stop."""
        if self._halted.is_set():
            raise Halted


class CompilingError(Exception):
    """The compiled engine is not ready."""


class Impatient:
    """Progress that does not wait for a compiler."""

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, n: int) -> None: ...

    def note(self, text: str) -> None:
        if text.startswith("compiling"):
            raise CompilingError

    def finish(self) -> None: ...
