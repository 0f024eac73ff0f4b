"""Pool, the protocol of all places where work is done, and how an Executor, a Client or an address becomes one.

An address is `local:4` (processes on this machine), `tcp://host:8786` or `tls://host:8786` (a scheduler of dask), or
`dask:scheduler.json` (the file that a scheduler of dask writes). dask pickles functions, so who can reach an open port
of a cluster can run anything there: an address without encryption is refused beyond this machine, unless it is called
`insecure`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from ipaddress import ip_address
from pathlib import Path as FilePath
from typing import Any, ClassVar, Final, ParamSpec, Protocol, TypeAlias, TypeVar, runtime_checkable
from urllib.parse import urlsplit

from sateen.core.errors import InputError
from sateen.core.reading import read_text
from sateen.core.registry import load_object
from sateen.core.threads import processors

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
HERE: Final = "here"  # in the place of an address: this process
PATIENCE: Final = 60.0  # seconds without any worker, after which work is given up
_PROCESSES: Final = "sateen.pools.processes:ProcessPool"  # loaded when they are used
_DASK: Final = "sateen.pools.cluster:DaskPool"
_MOST_PROCESSES: Final = 4096
_MOST_BYTES: Final = 2**20  # of the file of a scheduler
_FORMS: Final = "local:4, tcp://host:8786, tls://host:8786 or dask:scheduler.json"


@runtime_checkable
class Pool(Protocol):
    """The workers that do the work. Any object with these four methods is a Pool.

    A pool may also have `patience`, the seconds to wait without any worker before giving up, by default 60; `doubles =
    False` if no worker is slower than the others, so that nothing needs to be started twice; `trouble`, a text that
    says why there is no worker; and `ended`, whether there will never be one again.
    """

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Submit a call of a module's function; its arguments are bytes, numbers and, rarely, another function."""

    def places(self) -> int:
        """How many calls can run at once now; 0 while there is no worker. Never raises."""

    def lost(self, error: BaseException) -> bool:
        """Whether a future failed because its worker did, and not the work itself: then the work is submitted again."""

    def close(self) -> None:
        """Close what the pool has opened itself, and nothing else."""


Executing: TypeAlias = "Executor | Pool | str | Any"  # Any: a dask Client, whose type is there only with dask


class Once:
    """A check of functions before they are sent, made once for each; it raises for those that cannot be."""

    def __init__(self, check: Callable[[Any], object]) -> None:
        self._check = check
        self._passed: list[object] = []

    def __call__(self, args: tuple[Any, ...]) -> None:
        """Check those of the arguments that are functions."""
        for each in args:
            if callable(each) and not any(each is one for one in self._passed):
                self._check(each)
                self._passed.append(each)


@dataclass(frozen=True, slots=True)
class ExecutorPool:
    """Any Executor of concurrent.futures, or one that behaves like it. A broken one stays broken."""

    executor: Executor
    doubles: ClassVar[bool] = False

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self.executor.submit(work, *args)

    def places(self) -> int:
        told = getattr(self.executor, "_max_workers", None)
        return told if isinstance(told, int) and told > 0 else processors()

    def lost(self, error: BaseException) -> bool:
        return False

    def close(self) -> None:
        """Nothing: the one who opened the executor closes it."""


def open_pool(where: Executing, *, insecure: bool = False, patience: float = PATIENCE) -> Pool:
    """The pool behind an address, a dask Client, or an Executor; a Pool is returned as it is.

    Pass it as `executor=` to `observe`, `refine` and the others, and `close()` it at the end. Processes and connections
    are then opened only once. `patience` is how many seconds to wait without any worker. `insecure` allows an
    unencrypted address beyond this machine.

    >>> pool = open_pool("local:2")
    >>> pool.places()
    2
    >>> pool.close()
    """
    if isinstance(where, str):
        return _at(where, insecure, patience)
    if type(where).__module__.partition(".")[0] == "distributed" and hasattr(where, "scheduler_info"):
        pool: Pool = _dask()(where, patience=patience)
        return pool
    if isinstance(where, Pool):
        return where
    if hasattr(where, "submit"):
        return ExecutorPool(where)
    kinds = "concurrent.futures.Executor, a dask Client, a Pool or an address"
    raise InputError(f"{{executor}} is a {kinds}, not a {type(where).__name__}", argument="executor", remedy=_FORMS)


@contextmanager
def opened(where: Executing | None, *, insecure: bool = False) -> Iterator[Pool | None]:
    """The pool, which is closed at the end of the block unless it was one before; None for nothing, or "here"."""
    pool = None if where is None or where == HERE else open_pool(where, insecure=insecure)
    try:
        yield pool
    finally:
        if pool is not None and pool is not where:
            pool.close()


def with_pool(verb: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function, whose argument `executor=` is opened once, for as long as it runs."""

    @wraps(verb)
    def opening(*args: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with opened(named.get("executor")) as pool:
            if "executor" in named:
                named["executor"] = pool
            return verb(*args, **named)

    return opening


def _at(address: str, insecure: bool, patience: float) -> Pool:
    kind, place = parse_address(address, insecure)
    if kind == "local":
        processes: Any = load_object(_PROCESSES)
        return processes(int(place))  # type: ignore[no-any-return]
    return _dask().at(place, patience)  # type: ignore[no-any-return]


def _dask() -> Any:
    return load_object(_DASK)


def parse_address(address: str, insecure: bool = False) -> tuple[str, str]:
    """The kind of an address, "local" or "dask", and the number of processes or where the scheduler is.

    What is not an address, or is open to anybody, is refused; nothing is connected.
    """
    kind, _, rest = address.strip().partition(":")
    if kind == "local":
        if not re.fullmatch("[0-9]{1,6}", rest) or not 1 <= int(rest) <= _MOST_PROCESSES:
            problem = f"{{executor}} is {address!r}, without a number of processes"
            raise InputError(problem, argument="executor", remedy="such as local:4")
        return kind, rest
    place = _scheduler_of(rest) if kind == "dask" else address.strip()
    scheme, host, port = _parts_of(place)
    if scheme not in ("tcp", "tls") or not host:
        raise InputError(f"{{executor}} is {address!r}, which is not an address", argument="executor", remedy=_FORMS)
    if not port:
        raise InputError(f"{{executor}} is {address!r}, without a port", argument="executor", remedy=_FORMS)
    if scheme == "tcp" and not insecure and not _is_here(host):
        raise InputError(
            f"{place} is not encrypted, and beyond this machine: anyone who reaches it can run code on its workers",
            argument="executor",
            remedy="use tls://; or, if every machine of that network is trusted, {insecure=True}",
        )
    return "dask", place


def beside(address: str, folder: FilePath) -> str:
    """The address, whose file, if it names one, is looked for from a folder on."""
    kind, _, file = address.strip().partition(":")
    return f"{kind}:{folder / file}" if kind == "dask" else address


def _parts_of(place: str) -> tuple[str, str | None, int | None]:
    """The scheme, the host and the port of an address, as far as it has them."""
    try:
        url = urlsplit(place)
        return url.scheme, url.hostname, url.port
    except ValueError:  # such as an IPv6 address without its last bracket, or a port that is no number
        return "", None, None


def _scheduler_of(file: str) -> str:
    """The address in the file that a scheduler writes."""
    try:
        place = json.loads(read_text(FilePath(file), _MOST_BYTES))["address"]
    except OSError as error:
        why = f"{error.strerror or error}"
    except (ValueError, KeyError, TypeError):
        why = "it has no address of a scheduler"
    else:
        return str(place)
    remedy = "dask scheduler --scheduler-file FILE writes one"
    raise InputError(f"{{executor}}: {file} cannot be used: {why}", argument="executor", remedy=remedy)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
