"""A crew: jobs handed out to the places of a pool, whose answers come back once each, in any order.

A job whose place is lost is handed out again, so often and no more; tries are counted here, because a cluster counts
the deaths of workers against work that is innocent. Towards the end, free places start again what others are late with,
and the first answer counts. Where nobody knows how long a job should take, it is handed out once more after the
patience, then after twice as long, and so on: a cluster can lose work without a word. Answers come back by callbacks
into a queue: waiting costs the same for one and for many.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from sateen.core.errors import PoolError
from sateen.pools.pool import PATIENCE, Pool

_Job = TypeVar("_Job")
_Answer = TypeVar("_Answer")
Expected: TypeAlias = Callable[[], float]
TRIES: Final = 5  # of a job whose place is lost
_LOOK_UP: Final = 0.2  # seconds after which a wait looks for Ctrl-C, which does not wake it on every system
_LOOK_AT_PLACES: Final = 0.5  # seconds after which the places are counted again
_LATE: Final = 2.0  # times what a job should take; it is then begun once more where there is a place
_LEAST_LATE: Final = 2.0  # seconds
_ENDS: Final = "it has too little memory, or the work itself ends its process"
_STUCK: Final = 20.0  # times what the longest job should take, without any answer: then nobody is at work


class WrongAnswer(ValueError):
    """An answer that this job cannot have: the worker that gave it is taken as lost."""


class _Errand(Generic[_Job]):
    """A job that is handed out: when it was, how long it should take, and the futures of which the first counts."""

    __slots__ = ("args", "began", "expected", "futures", "job", "tries", "work")

    def __init__(self, job: _Job, work: Callable[..., Any], args: tuple[Any, ...], expected: Expected) -> None:
        self.job, self.work, self.args, self.expected = job, work, args, expected
        self.began, self.tries = 0.0, 0
        self.futures: list[Future[Any]] = []


class Crew(Generic[_Job, _Answer]):
    """The places of a pool at work for one caller. `read` makes an answer of what came back, or raises WrongAnswer.

    `ahead` is how many jobs a place has at a time, and `most` how many places are used. With one at a time, jobs are
    taken to be long, and their loss is noticed late. `kept` says in errors what is not lost, and how to resume.
    """

    def __init__(
        self,
        pool: Pool,
        read: Callable[[_Job, Any], _Answer],
        *,
        kept: str,
        most: int | None = None,
        ahead: int = 2,
        tries: int = TRIES,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.pool, self._read, self._kept, self._most, self._ahead, self._tries = pool, read, kept, most, ahead, tries
        self._note = note
        self._patience = float(getattr(pool, "patience", PATIENCE))
        self._unknown = self._patience if ahead > 1 else _STUCK * self._patience
        self._doubles = bool(getattr(pool, "doubles", True))
        self._back: SimpleQueue[Future[Any]] = SimpleQueue()
        self._out: dict[Future[Any], _Errand[_Job]] = {}
        self._again: deque[_Errand[_Job]] = deque()
        self.busy = 0  # jobs without an answer
        self.places = self._counted_places()
        self._looked = self._alive = self._answered = time.monotonic()
        self._told, self._had = False, self.places

    @property
    def room(self) -> int:
        """How many more jobs the places can have now."""
        return self._ahead * self.places - len(self._out) - len(self._again)

    def hand_out(self, job: _Job, work: Callable[..., Any], *args: Any, expected: Expected = lambda: math.inf) -> None:
        """Hand out a job; `expected` says how many seconds it should take, as far as that is known by then."""
        self.busy += 1
        self._submit(_Errand(job, work, args, expected))

    def answers(self) -> Iterator[tuple[_Job, _Answer]]:
        """The answers that are there, after a short wait if there is none yet; each job has one."""
        self._look()
        while self._again and self.places:
            self._submit(self._again.popleft())
        try:
            future = self._back.get(timeout=_LOOK_UP)
            while True:
                if (errand := self._out.get(future)) is not None:  # or else its twin was faster
                    yield from self._settled(errand, future)
                future = self._back.get_nowait()
        except Empty:
            return

    def dismiss(self) -> Iterator[tuple[_Job, _Answer]]:
        """Drop what has not begun, and wait for the answers of the rest; the last one may be there a second time."""
        self._again.clear()
        for future in [future for future in self._out if future.cancel()]:
            del self._out[future]
        while self._out:
            for future in wait(self._out, timeout=_LOOK_UP, return_when=FIRST_COMPLETED).done:
                errand = self._out.get(future)
                if errand is not None and future.exception() is None:
                    yield from self._settled(errand, future)
                self._out.pop(future, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop everything that is handed out."""
        for future in self._out:
            future.cancel()
        self._out.clear()

    def _submit(self, errand: _Errand[_Job]) -> None:
        future = self.pool.submit(errand.work, *errand.args)
        errand.began = time.monotonic()
        errand.futures.append(future)
        self._out[future] = errand
        future.add_done_callback(self._back.put)

    def _settled(self, errand: _Errand[_Job], future: Future[Any]) -> Iterator[tuple[_Job, _Answer]]:
        try:
            answer = self._read(errand.job, future.result())
        except Exception as error:
            if not (isinstance(error, WrongAnswer) or self.pool.lost(error)):
                raise
            self._lose(errand, future, error)
            return
        yield errand.job, answer
        for each in errand.futures:
            del self._out[each]
            each.cancel()
        self.busy -= 1
        self._answered = time.monotonic()

    def _lose(self, errand: _Errand[_Job], future: Future[Any], error: Exception) -> None:
        """Hand a job out again, unless a twin of it is still out, or it was lost too often."""
        del self._out[future]
        errand.futures.remove(future)
        errand.tries += 1
        if errand.tries >= self._tries:
            times = f" {errand.tries} times" if errand.tries > 1 else ""
            why = "its answers are damaged or impossible" if isinstance(error, WrongAnswer) else _ENDS
            raise PoolError(
                f"the same work was lost{times} with its worker; the last time: {error}\n"
                f"  look at the log of the worker: {why}; {self._kept}"
            ) from error
        if not errand.futures:
            self._again.append(errand)

    def _counted_places(self) -> int:
        places = self.pool.places()
        return min(self._most, places) if self._most is not None and places else places

    def _look(self) -> None:
        """Count the places, give up after too long without any, and start again what is late."""
        now = time.monotonic()
        if now - self._looked < _LOOK_AT_PLACES:
            return
        places = self._counted_places()
        if not places and self._answered > self._looked:
            places = self._had  # a scheduler that is busy may not say how many there are
        self._looked = now
        if places:
            self._alive, self._told, self._had = now, False, places
        trouble = "" if places else str(getattr(self.pool, "trouble", ""))
        if not places and not self._told:
            self._told = True
            self._note(f"{trouble or 'no worker'}; waiting for one, at most {self._patience:g} s")
        self.places = places
        if now - self._alive > self._patience or (not places and getattr(self.pool, "ended", False)):
            why = f": {trouble}" if trouble else ""
            raise PoolError(f"{_name(self.pool)} has had no worker for {now - self._alive:.0f} s{why}\n  {self._kept}")
        if places and self._doubles and self._out:
            longest = max(errand.expected() for errand in self._out.values())
            if now - max(self._answered, *(each.began for each in self._out.values())) > max(
                self._patience, _STUCK * longest
            ):
                raise PoolError(
                    f"{_name(self.pool)} has workers, but has not answered for {now - self._answered:.0f} s\n"
                    f"  look at its log; {self._kept}"
                )
            self._double(now)

    def _double(self, now: float) -> None:
        errands = list(dict.fromkeys(self._out.values()))
        silent = [
            errand
            for errand in errands
            if math.isinf(errand.expected()) and now - errand.began > self._unknown * 2 ** (len(errand.futures) - 1)
        ]
        if silent and self.places:
            self._note(f"no answer for {now - silent[0].began:.0f} s; the same work is handed out once more")
            for errand in silent:  # even if no place is free: what is lost may only seem to have one
                self._submit(errand)
        free = self.places - len(self._out)
        late = [
            errand
            for errand in errands
            if len(errand.futures) == 1 and now - errand.began > max(_LEAST_LATE, _LATE * errand.expected())
        ]
        for errand in sorted(late, key=lambda each: each.began)[: max(free, 0)]:
            self._submit(errand)


def _name(pool: Pool) -> str:
    return str(pool) if type(pool).__str__ is not object.__str__ else f"the {type(pool).__name__}"
