"""How long runs take at this many places, and how many more would help: by the time that workers need to begin.

A worker starts, loads LLVM and gets the kernel before its first run. Where all workers together would need less time
than that for all runs, more of them do not help. `benchmarks/scale_plan.py` simulates what a scheduler adds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from sateen.core.text import duration_text, plural
from sateen.pools.pool import Pool

BEGIN: Final = 8.0  # seconds until a new worker makes its first run
_MOST: Final = 9000  # workers that one scheduler can serve with pieces of half a minute
_WAITING: Final = 5.0  # seconds for the first worker to be there


@dataclass(frozen=True, slots=True)
class Crowd:
    """This many places, for runs that take one of them this many seconds; None where nobody knows.

    `at_once` is how many tasks there are that cannot be cut, each for one place; None where all work can be.
    """

    places: int
    alone: float | None
    runs: int
    at_once: int | None = None

    @property
    def useful(self) -> int | None:
        """The most places that make it faster: with more, most of the time goes into beginning."""
        return None if self.alone is None else min(max(1, round(self.alone / BEGIN)), self.at_once or _MOST, _MOST)

    @property
    def seconds(self) -> float | None:
        """About how long it takes, with the places there are."""
        return None if self.alone is None or not self.places else BEGIN + self.alone / self.places

    @property
    def advice(self) -> str:
        """Whether more places would help."""
        if not self.places:
            return "no worker is connected now"
        if self.useful is None:
            what = "until some runs of the study are made" if self.runs else "because no runs are missing"
            return f"{plural(self.places, 'worker')} now; it is unknown how many would help, {what}"
        if self.places >= self.useful:
            few = f"there are {self.at_once:,} tasks" if self.useful == self.at_once else ""
            why = few or f"starting takes {duration_text(BEGIN)}"
            return f"more than {plural(self.useful, 'worker')} would not help: {why}"
        return f"up to about {self.useful:,} workers would make it faster"


def places_of(pool: Pool) -> int:
    """The places of a pool, after a short wait for the first."""
    until = time.monotonic() + _WAITING
    while not (places := pool.places()) and time.monotonic() < until:
        time.sleep(0.1)
    return places
