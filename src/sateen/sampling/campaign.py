"""How the runs of a campaign get done: cut into chunks, handed out, and entered as they come back.

Chunks are sized by how long the ones before took, and by what a chunk costs besides its runs; the counts do not depend
on it. Ctrl-C never falls between a chunk that is done and its entry in the ledger and in the store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Protocol

from sateen.core.errors import InputError, PoolError, SateenError, SimulationError, StoreError
from sateen.core.interrupts import deferring_interrupts
from sateen.core.progress import Progress, working
from sateen.core.types import FloatArray, IntArray
from sateen.pools.crew import Crew
from sateen.pools.pool import ExecutorPool, Pool
from sateen.sampling import remote
from sateen.sampling.ledger import Chunk, Ledger, Tally
from sateen.sampling.parts import Interval
from sateen.sampling.source import BlackBox, Simulated, Source
from sateen.sampling.store import Store

_SECONDS: Final = 0.4, 30.0  # that a chunk should take, at least and at most
_LEAST_SECONDS: Final = 0.05  # that a chunk should take when there is little left to share out
_SHARES: Final = 2  # chunks for each worker into which the rest is cut
_FAR_SHARES: Final = 4  # for each worker elsewhere, of which some are slower than others
_HAND_OUT: Final = 3e-3  # seconds of a scheduler for a chunk, which it hands out one by one
_BUSY: Final = 0.9  # of its time is a scheduler busy, at most
_GROWTH: Final = 4  # times the largest chunk so far
FIRST_SIZE: Final = 64  # runs of the first chunks of a source that is fast
_MOST_POINTS: Final = 1 << 17  # in a chunk: its tables take some ten megabytes
_MOST_BYTES: Final = 1 << 22  # of the parameters of a chunk that travels
_STORED: Final = "what is stored is kept: run the same again to resume"
_NOT_STORED: Final = "there is no store, so the runs are not kept"


class Counting(Protocol):
    """What makes runs, as far as a campaign asks; `source.py` describes it."""

    @property
    def interruptible_soon(self) -> bool:
        """Whether what is begun is soon over."""

    @property
    def needs_compile(self) -> bool:
        """Whether the first run has to wait for a compiler."""

    def count(self, theta: FloatArray, items: IntArray) -> Tally:
        """The tally of items."""

    def raise_if_hopeless(self, ledger: Ledger) -> None:
        """Raise the error of the runs where it would be pointless to continue."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Runs to be made by the threads of the pace, or at the places of a pool, until the ledger has no gap.

    `workers` is how many places of the pool are used; None: all. `order` is what they are told.
    """

    source: Counting
    theta: FloatArray
    ledger: Ledger
    pace: Pace
    pool: Pool | None
    order: bytes
    workers: int | None
    progress: Progress
    stored: Store | None
    label: str = "observe"

    def run(self) -> None:
        """Make all runs that are missing."""
        if not (gaps := self.ledger.gaps()):
            return
        with working(self.progress, self.label, self.ledger.pending, "runs"):
            if self.ledger.done:
                self.progress.note(f"{self.ledger.done:,} runs are in the store")
            if self.source.interruptible_soon:
                if self.source.needs_compile:
                    self.progress.note("compiling (once)")
                # The first is made in this thread, and not timed: something is compiled or loaded for it.
                first = gaps[0][0], min(gaps[0][0] + self.pace.grain, gaps[0][1])
                points, items = self.ledger.items(*first)
                tally = self.source.count(self.theta[points], items)
                with deferring_interrupts():
                    self._enter(first, tally, 0.0)
                gaps = self.ledger.gaps()
            threads: ThreadPoolExecutor | None = None
            if self.pool is not None:
                assert isinstance(self.source, Simulated | BlackBox)  # nothing else travels
                code = remote.code_of(self.source)
                work: _Near | _Far = _Far(self.source, self.ledger, self.theta, self.order, code)
                pool = self.pool
                self.pace.cost = _HAND_OUT
            elif self.pace.workers > 1:
                threads = ThreadPoolExecutor(self.pace.workers, "sateen")
                work, pool = _Near(self.source, self.ledger, self.theta), ExecutorPool(threads)
            else:
                work, pool = _Near(self.source, self.ledger, self.theta), _Here()
            try:
                while gaps:
                    clear = self._gather(pool, work, gaps)
                    gaps = self.ledger.gaps() if clear else self._caught_up()
            finally:
                if threads:
                    threads.shutdown(wait=False, cancel_futures=True)

    def _gather(self, pool: Pool, work: _Near | _Far, gaps: list[Interval]) -> bool:
        """Make the runs in the gaps; stops early, and returns False, where another process has made some of them."""
        here = isinstance(pool, _Here)
        pieces = self._cut(gaps, work.most_points)
        clear = pending = True
        # Work that is done at once, in this thread, must itself be open to Ctrl-C if it may take long.
        handing_out = nullcontext if here and not self.source.interruptible_soon else deferring_interrupts
        ahead = 1 if here else 2  # chunks for each place: one that it makes, one that waits
        with Crew(pool, work.read, kept=self._kept, most=self.workers, ahead=ahead, note=self.progress.note) as crew:
            try:
                while True:
                    self.pace.workers = max(crew.places, 1)
                    while pending and crew.room > 0:
                        if not clear or (piece := next(pieces, None)) is None:
                            pending = False
                            break
                        with handing_out(), _in_words(self._kept):
                            expected = partial(self.pace.seconds, piece[1] - piece[0])
                            crew.hand_out(piece, *work.call(piece), expected=expected)
                    if not pending and not crew.busy:
                        return clear
                    with _in_words(self._kept):
                        for piece, (tally, seconds) in crew.answers():
                            clear &= self._take(piece, tally, seconds)
            except KeyboardInterrupt:
                for piece, (tally, seconds) in crew.dismiss():
                    if self.ledger.is_open(*piece):
                        self._take(piece, tally, seconds)
                raise

    @property
    def _kept(self) -> str:
        """What errors say of the runs that were made."""
        return _NOT_STORED if self.stored is None else _STORED

    def _cut(self, gaps: list[Interval], most_points: int) -> Iterator[Interval]:
        """The gaps in pieces, each sized when it is asked for."""
        left = sum(stop - first for first, stop in gaps)
        for first, stop in gaps:
            while first < stop:
                end = self.ledger.within(first, min(stop, first + self.pace.size(left)), most_points)
                yield first, end
                left -= end - first
                first = end

    def _take(self, piece: Interval, tally: Tally, seconds: float) -> bool:
        """Enter a chunk that came back; False if another process had been faster."""
        with deferring_interrupts():
            entered = self._enter(piece, tally, seconds)
        self.pace.learn(piece[1] - piece[0], seconds)
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
    """How large the next chunk should be, learnt from the ones before; or a size that never changes.

    Sizes that are learnt are multiples of `grain`, the number of runs that the source makes at once.
    """

    def __init__(self, fixed: int | None, workers: int, first: int, grain: int = 1) -> None:
        self.fixed = fixed
        self.grain = grain
        self.workers = workers
        self.cost = 0.0  # seconds of the process that hands out a chunk, besides its runs
        self._next = first
        self._largest = first
        self._rate = math.inf  # runs a second

    def size(self, left: int) -> int:
        """How many runs to take, of so many that are left: towards the end less, so that all workers end together."""
        if self.fixed is not None:
            return self.fixed
        share = math.ceil(left / ((_FAR_SHARES if self.cost else _SHARES) * self.workers))
        least = 1 if math.isinf(self._rate) else int(self._rate * max(_LEAST_SECONDS, self.workers * self.cost))
        return self.grain * math.ceil(max(1, min(self._next, max(share, least))) / self.grain)

    def seconds(self, runs: int) -> float:
        """How long this many runs should take; infinite while that is not known."""
        return math.inf if math.isinf(self._rate) else runs / self._rate

    def learn(self, runs: int, seconds: float) -> None:
        """Take note of how long a chunk took."""
        rate = runs / max(seconds, 1e-6)
        self._rate = rate if math.isinf(self._rate) else min(rate, (self._rate + rate) / 2)
        self._largest = max(self._largest, runs)
        least, most = _SECONDS
        long = min(max(self.workers * self.cost / _BUSY, least), most)
        self._next = max(1, min(int(self._rate * long), _GROWTH * self._largest))


@dataclass(frozen=True, slots=True)
class _Near:
    """Chunks that this process makes, in this thread or in others."""

    source: Counting
    ledger: Ledger
    theta: FloatArray
    most_points: ClassVar[int] = _MOST_POINTS

    def call(self, piece: Interval) -> tuple[Any, ...]:
        """What makes a chunk: a function and its arguments."""
        points, items = self.ledger.items(*piece)
        return _counted, self.source, self.theta[points], items

    def read(self, piece: Interval, answer: tuple[Tally, float]) -> tuple[Tally, float]:
        """What was made."""
        return answer


@dataclass(frozen=True, slots=True)
class _Far:
    """Chunks that others make: text and bytes go there, and the bytes that come back are checked."""

    source: Source
    ledger: Ledger
    theta: FloatArray
    order: bytes
    code: tuple[object, ...]
    modules: dict[str, str] = field(default_factory=dict)

    @property
    def most_points(self) -> int:
        """So many that their parameters are not a large message."""
        row: int = self.theta.shape[1]
        return min(_MOST_POINTS, max(1, _MOST_BYTES // (8 * max(1, row))))

    def call(self, piece: Interval) -> tuple[Any, ...]:
        """What makes a chunk: a function and its arguments."""
        points, items = self.ledger.items(*piece)
        theta = remote.theta_bytes(self.theta[points])
        spans = remote.spans_of(items)
        return remote.count, self.order, *self.code, int(items[0, 0]), theta, spans

    def read(self, piece: Interval, answer: object) -> tuple[Tally, float]:
        """What was made, if these runs can have come to it."""
        return remote.tally_of(answer, self.source, self.ledger.items(*piece)[1], self.modules)


class _Here:
    """The pool of this thread: a call is done at once."""

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def places(self) -> int:
        return 1

    def lost(self, error: BaseException) -> bool:
        return False

    def close(self) -> None: ...


def _counted(source: Counting, theta: FloatArray, items: IntArray) -> tuple[Tally, float]:
    """The tally of the items, and how many seconds it took."""
    start = time.perf_counter()
    return source.count(theta, items), time.perf_counter() - start


@contextmanager
def _in_words(kept: str) -> Iterator[None]:
    """What an executor says becomes an error that says what next, and what is kept."""
    try:
        yield
    except SateenError:
        raise
    except BrokenExecutor as error:
        raise SimulationError(
            f"a worker of the executor died: {error}\n"
            f"  it had too little memory, or the work ended its process; use a new executor, with fewer workers; {kept}"
        ) from error
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        raise InputError(
            f"the executor accepts no work: {error}", argument="executor", remedy="give an {executor} that is open"
        ) from error
    except CancelledError as error:
        raise PoolError(f"the executor was shut down before its work was done\n  {kept}") from error
    except Exception as error:
        words = str(error)
        if "pickle" in words.lower() or "local object" in words or type(error).__name__ == "PicklingError":
            raise InputError(
                f"the black box cannot be sent to other processes: {words}\n"
                "  define it with `def` at the top level of a module, or use workers= for threads"
            ) from error
        raise
