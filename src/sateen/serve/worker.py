"""The program of a worker process: it reads commands from the server, and answers them.

Three threads: one reads, and acts at once on what cannot wait (stop, pause, resume); the main thread answers what is
typed and clicked; the third one learns. Heavy modules are imported here and nowhere in the server.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from sateen.core.registry import load_object
from sateen.pools.processes import started

if TYPE_CHECKING:
    from sateen.serve.desk import Desk


WORDS: Final = b"J"
FRAME: Final = b"F"
_BLAS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_DESK: Final = "sateen.serve.desk:Desk"  # loaded in the worker: it brings all that is heavy


class Channel:
    """The way back to the server; any thread may use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def tell(self, content: Mapping[str, object]) -> None:
        """Send plain data."""
        self._send(WORDS + json.dumps(content, allow_nan=False).encode())

    def show(self, frame: bytes) -> None:
        """Send a frame."""
        self._send(FRAME + frame)

    def _send(self, content: bytes) -> None:
        try:
            with self._lock:
                self._connection.send_bytes(content)
        except OSError:  # the server is gone
            os._exit(1)


def work(connection: Connection, setup: dict[str, Any]) -> None:
    """Answer commands until the server is gone."""
    started()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()
    made: queue.Queue[Desk] = queue.Queue(1)
    threading.Thread(target=_read, args=(connection, waiting, made), name="read", daemon=True).start()
    # What is typed and what is learned meet in this process: threads of BLAS would only wait for each other.
    os.environ.update(dict.fromkeys(_BLAS, "1"))
    channel = Channel(connection)
    desk: Desk = load_object(_DESK)(setup, channel)  # type: ignore[operator]
    made.put(desk)

    def warm_up() -> None:
        desk.warm_up()
        channel.tell({"warm": True})

    threading.Thread(target=warm_up, name="warm up", daemon=True).start()
    while True:
        desk.answer(waiting.get())


def _read(connection: Connection, waiting: queue.Queue[dict[str, Any]], made: queue.Queue[Desk]) -> None:
    desk: Desk | None = None
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)
        desk = desk or made.get()
        if not desk.at_once(message):
            waiting.put(message)
