"""A scheduler of dask.distributed and its workers, as a Pool. The one file that knows dask, loaded when it is used.

Calls are sent and answers gathered in batches, by two threads of the pool's: one by one they would cost this process
and the scheduler more than the work.
What fails because of a worker or the scheduler is a `_Lost`; everything else is an error of the work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final, Self, TypeAlias, TypeVar
from uuid import uuid4

from sateen.core.errors import InputError, PoolError
from sateen.core.extras import install_command
from sateen.pools.pool import PATIENCE, Once

try:
    from distributed import Client, KilledWorker
    from distributed.comm import CommClosedError
    from distributed.protocol.pickle import dumps  # how dask itself sends a function
    from distributed.security import Security
except ImportError as error:
    remedy = f"install it with  {install_command('dask')}"
    raise InputError(f"a cluster needs dask, which is not installed here: {error}", remedy=remedy) from None

_Item = TypeVar("_Item")
_Call: TypeAlias = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]
_ASKING: Final = 4.0  # seconds that a scheduler may take to say which workers it has
_GATHERING: Final = 30.0  # seconds that a batch of answers may take; then it is lost
_MOST: Final = 500  # calls or answers in a batch
_MOST_BYTES: Final = 1 << 22  # of the arguments of a batch, or else of one call
_CONNECTING: Final = "10s"
_LOGGERS: Final = ("distributed", "distributed.client")
_ENDED: Final = ("closing", "closed")


class _Lost(Exception):
    """A call whose worker, or whose scheduler, is gone."""


class DaskPool:
    """The workers of a Client. Closing ends the Client only where the pool has opened it."""

    def __init__(self, client: Client, *, patience: float = PATIENCE) -> None:
        if client.asynchronous:
            problem = "{executor} is a Client that is asynchronous"
            raise InputError(problem, argument="executor", remedy="make it with Client(..., asynchronous=False)")
        if client.status in _ENDED:
            raise InputError("{executor} is a Client that is closed", argument="executor", remedy="open another one")
        self.client, self.patience = client, patience
        self._address = str(client.scheduler.address)
        self._name = f"sateen-{uuid4().hex[:12]}"
        self._calls = 0
        self._check = Once(dumps)  # dask would fail to send it in the midst of its connection
        self._asked: SimpleQueue[_Call | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[Any, Future[Any], str] | None] = SimpleQueue()
        self._end = ExitStack()
        threading.Thread(target=self._send, name="sateen sends", daemon=True).start()
        threading.Thread(target=self._gather, name="sateen gathers", daemon=True).start()

    @classmethod
    def at(cls, address: str, patience: float = PATIENCE) -> Self:
        """The workers of the scheduler at an address; `tls://` takes its certificates from dask's own settings."""
        with ExitStack() as end:
            end.enter_context(_quiet())
            _check_certificates(address)
            try:
                client = Client(address, set_as_default=False, timeout=_CONNECTING, name="sateen")
            except Exception as error:
                raise PoolError(
                    f"there is no scheduler at {address}: {error}\n"
                    "  start one, as docs/scale.md shows, or give another address; what is stored is kept"
                ) from None
            pool = cls(client, patience=patience)
            pool._end = end.pop_all()
            pool._end.callback(_close, client)
            return pool

    def __str__(self) -> str:
        return f"the cluster at {self._address}"

    @property
    def trouble(self) -> str:
        """What is wrong where there are no workers, as far as the Client knows; "" while it has its scheduler."""
        if self.ended:
            return "its scheduler is gone, or its Client was closed"
        return "" if self.client.status == "running" else "its scheduler is gone"

    @property
    def ended(self) -> bool:
        """Whether the Client is closed, as it is after a while without its scheduler."""
        return self.client.status in _ENDED

    @property
    def dashboard(self) -> str:
        """The address of dask's page that shows what the workers do; "" if there is none."""
        try:
            return str(self.client.dashboard_link or "")
        except Exception:
            return ""

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Hand out a call of a function of a module."""
        self._check(args)
        ours: Future[Any] = Future()
        self._asked.put((ours, work, args))
        return ours

    def places(self) -> int:
        """How many threads all workers have now."""
        try:
            if self.client.status != "running":
                return 0
            threads = self.client.sync(self.client.scheduler.ncores, callback_timeout=_ASKING)
            return sum(threads.values())
        except Exception:  # of many kinds, while a scheduler dies
            return 0

    def lost(self, error: BaseException) -> bool:
        """Whether a worker or the scheduler died."""
        return isinstance(error, _Lost)

    def close(self) -> None:
        """End the connection, if it was opened here."""
        self._asked.put(None)
        self._finished.put(None)
        self._end.close()

    def _send(self) -> None:
        """Hand out what was asked for, calls of the same function together, until the pool is closed."""
        for batch in _batches(self._asked, lambda call: sum(len(each) for each in call[2] if isinstance(each, bytes))):
            works: dict[tuple[Callable[..., Any], int], list[_Call]] = {}
            for call in batch:
                if not call[0].cancelled():
                    works.setdefault((call[1], len(call[2])), []).append(call)
            for (work, _), calls in works.items():
                keys = [f"{self._name}-{self._calls + number}" for number in range(len(calls))]
                self._calls += len(calls)
                columns = [list(column) for column in zip(*(args for *_, args in calls), strict=True)]
                try:
                    futures = self.client.map(work, *columns, key=keys, pure=False, retries=0)
                except Exception as error:
                    for ours, *_ in calls:
                        _set(ours, _Lost(f"{self} accepts no work: {error}"))
                    continue
                for theirs, (ours, _, args) in zip(futures, calls, strict=True):
                    self._join(theirs, ours, _functions(args))

    def _join(self, theirs: Any, ours: Future[Any], sent: str) -> None:
        ours.add_done_callback(lambda done: _forget(theirs) if done.cancelled() else None)
        theirs.add_done_callback(lambda done: self._finished.put((done, ours, sent)))

    def _gather(self) -> None:
        """Bring back what is finished, until the pool is closed."""
        for batch in _batches(self._finished):
            waiting = [each for each in batch if not each[1].cancelled()]
            finished = {theirs.key: theirs for theirs, *_ in waiting if theirs.status == "finished"}
            try:
                values = self._values(finished) if finished else {}
                why = "its worker died before the answer came"
            except Exception as error:
                values, why = {}, f"{type(error).__name__}: {error}"
            for theirs, ours, sent in waiting:
                value = values.get(theirs.key)
                _set(ours, _failure(theirs, why, sent) if value is None else value)
            batch.clear()  # a future that is forgotten frees its answer
            waiting, finished = [], {}

    def _values(self, finished: dict[str, Any]) -> dict[str, Any]:
        async def gathered() -> dict[str, Any]:
            values: dict[str, Any] = await self.client.gather(finished, errors="skip", asynchronous=True)
            return values

        values: dict[str, Any] = self.client.sync(gathered, callback_timeout=_GATHERING)
        return values


def _batches(queue: SimpleQueue[_Item | None], size: Callable[[_Item], int] = lambda item: 0) -> Iterator[list[_Item]]:
    """What is in the queue, so much of it at a time as fits into a batch, until None comes."""
    while (item := queue.get()) is not None:
        batch, bytes_ = [item], size(item)
        while len(batch) < _MOST and bytes_ < _MOST_BYTES and not queue.empty():
            if (item := queue.get()) is None:
                return
            batch.append(item)
            bytes_ += size(item)
        yield batch


def _set(ours: Future[Any], answer: object) -> None:
    """Give a future its answer, or the exception that there is instead; it may have been cancelled meanwhile."""
    with suppress(InvalidStateError):
        if isinstance(answer, Exception):
            ours.set_exception(answer)
        else:
            ours.set_result(answer)


def _functions(args: tuple[Any, ...]) -> str:
    """The functions among arguments, which are the user's, in words."""
    named = [each for each in args if callable(each)]
    names = (f"{each.__module__}.{getattr(each, '__qualname__', type(each).__qualname__)}" for each in named)
    return "".join(f" of {name}" for name in names)


def _failure(theirs: Any, why: str, sent: str) -> Exception:
    """Why a future of dask has no answer."""
    if theirs.status != "error":
        return _Lost(why if theirs.status == "finished" else "the scheduler is gone, or has forgotten the work")
    try:
        error = theirs.exception(timeout=_GATHERING)
    except Exception as failure:
        error = failure
    if isinstance(error, KilledWorker | CommClosedError | OSError | TimeoutError):
        return _Lost(f"{type(error).__name__}: {error}")
    return PoolError(
        f"a worker cannot do the work{sent}: {type(error).__name__}: {error}\n"
        "  install there what is installed here: the same sateen, and what your own code imports"
    )


def _check_certificates(address: str) -> None:
    """Refuse TLS without certificates here: a Client that fails on them cannot be closed, which dask tries for long."""
    if not address.startswith("tls:"):
        return
    try:
        why = "" if Security().get_connection_args("client").get("ssl_context") else "dask has no settings of TLS here"
    except (OSError, ValueError, TypeError) as error:
        why = f"the certificates in dask's settings of TLS cannot be used: {error}"
    if why:
        raise PoolError(
            f"{address} cannot be reached: {why}\n"
            "  name the certificates under distributed.comm.tls in dask's configuration, as docs/scale.md shows"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """What dask would log is told as errors."""
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _close(client: Client) -> None:
    with suppress(Exception):
        client.close(timeout=2)


def _forget(theirs: Any) -> None:
    """Drop work that nobody waits for."""
    with suppress(Exception):
        theirs.cancel(force=True)
