"""A worker process, as the server sees it: commands go in, answers, states and frames come out, and it may be killed.

Messages are JSON, or a frame; nothing is unpickled. The worker ends when the server does, however that ends, for its
end of the pipe is then closed.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from sateen.pools.processes import starting
from sateen.serve.worker import FRAME, WORDS, work

_MOST_UNREAD: Final = 8  # messages of a worker that the server has not yet looked at: then the worker waits
_MOST_UNSENT: Final = 64  # commands that a worker has not yet taken
_END: Final = 1.0  # seconds


class FullError(Exception):
    """A worker that has too much to do."""


class WorkerProcess:
    """One worker. `heard(self, kind, data)` is called in a thread of its own; `kind` is b"" when the process is gone.

    Whoever has dealt with a message calls `done`: only so many are under way.
    """

    def __init__(self, setup: Mapping[str, Any], heard: Callable[[WorkerProcess, bytes, bytes], None]) -> None:
        self.warm = False
        self.ending = False
        self.gone = asyncio.Event()  # for the loop, once it has heard of it
        self._heard = heard
        self._room = threading.Semaphore(_MOST_UNREAD)
        self._unsent: queue.Queue[bytes | None] = queue.Queue(_MOST_UNSENT)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._connection: Connection = ours
        with starting():
            self.process: SpawnProcess = context.Process(target=work, args=(theirs, dict(setup)), daemon=True)
            self.process.start()
        theirs.close()
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        threading.Thread(target=self._speak, name="speak", daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.process.pid or 0

    def send(self, command: str, body: object, number: int | None = None) -> None:
        """Hand over a command; `number` is that of the answer which is waited for."""
        content = json.dumps({"command": command, "body": body, "id": number}).encode()
        try:
            self._unsent.put_nowait(content)
        except queue.Full:
            raise FullError from None

    def done(self) -> None:
        """A message was dealt with."""
        self._room.release()

    def kill(self) -> None:
        """End it at once."""
        self.ending = True
        self.process.kill()

    def close(self) -> None:
        """End it, and wait until it is gone."""
        self.kill()
        self._room.release()
        self.process.join(_END)

    def _listen(self) -> None:
        while True:
            try:
                message = self._connection.recv_bytes()
            except (EOFError, OSError):
                break
            kind = message[:1]
            if kind not in (FRAME, WORDS):
                break
            self._room.acquire()
            self._heard(self, kind, message[1:])
        self.process.kill()
        with suppress(queue.Full):
            self._unsent.put_nowait(None)
        self.process.join()
        self._heard(self, b"", b"")

    def _speak(self) -> None:
        while (content := self._unsent.get()) is not None:
            try:
                self._connection.send_bytes(content)
            except (OSError, ValueError):
                return
