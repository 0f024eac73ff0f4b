"""How the runs of a campaign get done: cut into chunks, handed out, and entered as they come back.

Chunks are sized so that each takes about half a second, from what the ones before took; the counts do not depend on it.
Ctrl-C never falls between a chunk that is done and its entry in the ledger and in the store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, TypeAlias

from sateen.core.errors import InputError, SimulationError, StoreError
from sateen.core.interrupts import deferring_interrupts
from sateen.core.progress import Progress, working
from sateen.core.types import FloatArray, IntArray
from sateen.sampling.ledger import Chunk, Interval, Ledger, Tally
from sateen.sampling.source import Source
from sateen.sampling.store import Store

_SECONDS: Final = 0.4  # that a chunk should take
_LEAST_SECONDS: Final = 0.05  # that a chunk should take when there is little left to share out
_GROWTH: Final = 4  # times the largest chunk so far
FIRST_SIZE: Final = 64  # runs of the first chunks of a source that is fast
_MOST_POINTS: Final = 1 << 17  # in a chunk: its tables take some ten megabytes
_IN_FLIGHT: Final = 2  # chunks for each worker: one that it runs, one that waits
_LOOK_UP: Final = 0.2  # seconds after which a wait looks for Ctrl-C, which does not wake it on every system

_Counted: TypeAlias = Future[tuple[Tally, float]]
_Waiting: TypeAlias = dict[_Counted, Interval]


@dataclass(frozen=True, slots=True)
class Campaign:
    """Runs to be made by the workers of the pace, or by those of an executor, until the ledger has no gap."""

    source: Source
    theta: FloatArray
    ledger: Ledger
    pace: Pace
    executor: Executor | None
    progress: Progress
    stored: Store | None

    def run(self) -> None:
        """Make all runs that are missing."""
        if not (gaps := self.ledger.gaps()):
            return
        with working(self.progress, "observe", self.ledger.total - self.ledger.done, "runs"):
            if self.ledger.done:
                self.progress.note(f"{self.ledger.done:,} runs are in the store")
            if self.source.interruptible_soon:
                if self.source.needs_compile:
                    self.progress.note("compiling (once)")
                # The first run is made in this thread, and not timed: something is compiled or loaded for it.
                first = gaps[0][0], gaps[0][0] + 1
                points, items = self.ledger.items(*first)
                tally = self.source.count(self.theta[points], items)
                with deferring_interrupts():
                    self._enter(first, tally, 0.0)
                gaps = self.ledger.gaps()
            self.pace.lap()
            many = self.executor is None and self.pace.workers > 1
            threads = ThreadPoolExecutor(self.pace.workers, "sateen") if many else None
            try:
                while gaps:
                    clear = self._gather(self.executor or threads, gaps)
                    gaps = [] if clear else self._caught_up()
            finally:
                if threads:
                    threads.shutdown(wait=False, cancel_futures=True)

    def _gather(self, executor: Executor | None, gaps: list[Interval]) -> bool:
        """Make the runs in the gaps; stops early, and returns False, where another process has made some of them."""
        pieces = self._cut(gaps)
        waiting: _Waiting = {}
        clear = True
        room = _IN_FLIGHT * self.pace.workers if executor else 1
        # Work that is done at once, in this thread, must itself be open to Ctrl-C if it may take long.
        handing_out = deferring_interrupts if executor or self.source.interruptible_soon else nullcontext
        try:
            while True:
                while clear and len(waiting) < room and (piece := next(pieces, None)):
                    points, items = self.ledger.items(*piece)
                    with handing_out():
                        waiting[_handed_out(executor, self.source, self.theta[points], items)] = piece
                if not waiting:
                    return clear
                finished, _ = wait(waiting, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
                for future in finished:
                    clear &= self._take(waiting, future)
        except KeyboardInterrupt:
            self._drain(waiting)
            raise
        finally:
            for future in waiting:
                future.cancel()

    def _cut(self, gaps: list[Interval]) -> Iterator[Interval]:
        """The gaps in pieces, each sized when it is asked for."""
        left = sum(stop - first for first, stop in gaps)
        for first, stop in gaps:
            while first < stop:
                end = self.ledger.within(first, min(stop, first + self.pace.size(left)), _MOST_POINTS)
                yield first, end
                left -= end - first
                first = end

    def _take(self, waiting: _Waiting, future: _Counted) -> bool:
        """Enter a chunk that came back; False if another process had been faster."""
        try:
            tally, seconds = future.result()
        except Exception as error:
            if (explained := _explained(error)) is error:
                raise
            raise explained from error
        with deferring_interrupts():
            interval = waiting.pop(future)
            entered = self._enter(interval, tally, self.pace.lap())
        self.pace.learn(interval[1] - interval[0], seconds)
        self.source.raise_if_hopeless(self.ledger)
        return entered

    def _enter(self, interval: Interval, tally: Tally, seconds: float) -> bool:
        """The store comes first: what it refuses, because it is there already, must not be counted here either."""
        chunk = Chunk(*interval, tally, seconds)
        try:
            free = self.stored is None or self.stored.add(chunk)
        except StoreError:
            self.ledger.add(chunk)
            raise
        if free:
            self.ledger.add(chunk)
            self.progress.advance(chunk.stop - chunk.first)
        return free

    def _drain(self, waiting: _Waiting) -> None:
        """Enter what is being run; what has not begun is dropped. A second Ctrl-C ends the waiting."""
        for future in [future for future in waiting if future.cancel()]:
            del waiting[future]
        while waiting:
            finished, _ = wait(waiting, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
            for future in finished:
                if future.cancelled() or future.exception() is not None:
                    del waiting[future]
                else:
                    self._take(waiting, future)

    def _caught_up(self) -> list[Interval]:
        """The gaps after a look at what other processes have stored; half of the widest is left to them for now."""
        assert self.stored is not None
        before = self.ledger.done
        self.ledger.clear()
        self.stored.load(self.ledger)
        if self.ledger.done <= before:
            raise self.stored.damaged("it refuses runs that none of its rows has")
        self.progress.advance(self.ledger.done - before)
        gaps = self.ledger.gaps()
        if not gaps:
            return gaps
        widest = max(range(len(gaps)), key=lambda index: gaps[index][1] - gaps[index][0])
        first, stop = gaps[widest]
        middle = (first + stop) // 2
        ordered = [(middle, stop), *gaps[widest + 1 :], *gaps[:widest], (first, middle)]
        return [(low, high) for low, high in ordered if low < high]


class Pace:
    """How large the next chunk should be, learnt from the ones before; or a size that never changes."""

    def __init__(self, fixed: int | None, workers: int, first: int) -> None:
        self.fixed = fixed
        self.workers = workers
        self._next = first
        self._largest = first
        self._rate = math.inf  # runs a second
        self._mark = time.perf_counter()

    def lap(self) -> float:
        """The seconds since the lap before."""
        before, self._mark = self._mark, time.perf_counter()
        return self._mark - before

    def size(self, left: int) -> int:
        """How many runs to take, of so many that are left: towards the end less, so that all workers end together."""
        if self.fixed is not None:
            return self.fixed
        share = math.ceil(left / (_IN_FLIGHT * self.workers))
        least = 1 if math.isinf(self._rate) else int(self._rate * _LEAST_SECONDS)
        return max(1, min(self._next, max(share, least)))

    def learn(self, runs: int, seconds: float) -> None:
        """Take note of how long a chunk took."""
        rate = runs / max(seconds, 1e-6)
        self._rate = rate if math.isinf(self._rate) else min(rate, (self._rate + rate) / 2)
        self._largest = max(self._largest, runs)
        self._next = max(1, min(int(self._rate * _SECONDS), _GROWTH * self._largest))


def _counted(source: Source, theta: FloatArray, items: IntArray) -> tuple[Tally, float]:
    """The tally of the items, and how many seconds it took; a function that other processes find by its name."""
    start = time.perf_counter()
    return source.count(theta, items), time.perf_counter() - start


def _handed_out(executor: Executor | None, source: Source, theta: FloatArray, items: IntArray) -> _Counted:
    """The tally that an executor will have; without one, done at once in this thread."""
    if executor is None:
        return _counted_here(source, theta, items)
    try:
        return executor.submit(_counted, source, theta, items)
    except BrokenExecutor as error:
        raise _explained(error) from error
    except RuntimeError as error:
        raise InputError(
            f"the executor takes no work: {error}", argument="executor", remedy="give an {executor} that is open"
        ) from error


def _counted_here(source: Source, theta: FloatArray, items: IntArray) -> _Counted:
    """The same, done at once in this thread."""
    future: _Counted = Future()
    try:
        future.set_result(_counted(source, theta, items))
    except Exception as error:
        future.set_exception(error)
    return future


def _explained(error: Exception) -> Exception:
    """What an executor says, in words that say what next."""
    words = str(error)
    if isinstance(error, BrokenExecutor):
        return SimulationError(
            f"a worker of the executor died: {words}\n"
            "  out of memory? what is stored is kept; run the same again with a new executor and fewer workers"
        )
    if "pickle" in words.lower() or "local object" in words or type(error).__name__ == "PicklingError":
        return InputError(
            f"the black box cannot be sent to other processes: {words}\n"
            "  define it with `def` at the top level of a module, or use workers= for threads"
        )
    return error
