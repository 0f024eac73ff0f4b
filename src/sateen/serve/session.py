"""What the server knows: its two workers, the state of the campaign, and the newest frame.

One worker learns, the other one, in front, answers what is typed and clicked. If the one that learns does not stop in
time it is killed; the one in front takes its place, and opens the folder of the session, in which all runs are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from sateen.core.printable import printable
from sateen.serve.answers import Refused, refusal
from sateen.serve.processes import FullError, WorkerProcess
from sateen.serve.worker import FRAME

_STOP: Final = 0.25  # seconds in which a worker must stop, before it is killed
_MOST_DEATHS: Final = 3  # of workers that learn, without a round in between
Then: TypeAlias = Callable[[dict[str, Any]], None]
_MOST_LOOKS: Final = 5  # for a preview, which is dropped when something else is asked
_DEAD: Final = 2.0  # seconds for a killed process to be gone
_RESTARTED: Final = "the worker process was killed; another one has taken its place"
_CANNOT_START: Final = refusal("gone", "no worker process can start; the terminal says why", "end the server")
_KEPT: Final = "it was stopped in the middle of a step; all complete runs are kept"
_APART: Final = 1000  # between the frames of two questions: what the one before still draws is told by its number
GOING: Final = ("compiling", "preview", "learning", "certifying")
EMPTY: Final[Mapping[str, Any]] = {
    "phase": "empty",
    "session": None,
    "runs": 0,
    "points": 0,
    "undecided": 0,
    "frame": 0,
    "message": None,
    "error": None,
    "worker": "starting",
    "seconds": 0.0,
    "constant": None,
    "claims": [],
    "saved": None,
    "tabs": 0,
}


class Session:
    """The state of the page, the same for every tab."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        self.setup = dict(setup)
        self.state: dict[str, Any] = dict(EMPTY)
        self.document: dict[str, Any] | None = None
        self.frame = b""
        self.closing = False
        self.changed = asyncio.Condition()
        self.version = 0
        self._loop = asyncio.get_running_loop()
        self._workers: list[WorkerProcess] = []
        self._answers: dict[int, tuple[WorkerProcess, asyncio.Future[Any], Then | None]] = {}
        self._number = 0
        self._deaths = self._stillborn = 0
        self._preview_number = 0
        self._first = 0  # the least number that a frame of the present question has
        self._campaign = 0
        self._asked: Any = None  # the document of the campaign that begins
        self._reopened: asyncio.Task[None] | None = None
        self._view: dict[str, Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._acting = asyncio.Lock()
        self._beginning = threading.Lock()

    # The workers

    def begin(self) -> None:
        """Start the workers that are missing: the second one when the first is warm, for which the page waits."""
        with self._beginning:  # in whichever thread: to start a process takes a moment
            while not self.closing and len(self._workers) < (2 if any(worker.warm for worker in self._workers) else 1):
                self._workers.append(WorkerProcess(self.setup, self._heard))

    def end(self) -> None:
        """End all workers, at once."""
        self.closing = True
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()

    @property
    def learner(self) -> WorkerProcess:
        """The worker that learns."""
        return self._ready()[0]

    def _ready(self) -> list[WorkerProcess]:
        """The workers; the first one is begun now, if it was not before."""
        if not self._workers and self._stillborn < _MOST_DEATHS:
            self.begin()
        if not self._workers:
            raise Refused(_CANNOT_START)
        return self._workers

    @property
    def pids(self) -> list[int]:
        """The numbers of the worker processes, the one that learns first."""
        return [worker.pid for worker in self._workers]

    def _heard(self, worker: WorkerProcess, kind: bytes, data: bytes) -> None:
        """In the thread of the worker."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take, worker, kind, data)

    def _take(self, worker: WorkerProcess, kind: bytes, data: bytes) -> None:
        """A message of a worker; what one says that was replaced is not heeded."""
        if not kind:
            worker.gone.set()
            self._lost(worker)
            return
        worker.done()
        if worker not in self._workers or worker.ending:
            return
        if kind == FRAME:
            self._show(data)
            return
        message = json.loads(data)
        if "id" in message:
            _, answer, then = self._answers.pop(message["id"], (None, None, None))
            if answer is not None and not answer.done():
                if "error" in message:
                    answer.set_exception(Refused(message["error"]))
                else:
                    if then is not None:
                        then(message["value"])
                    answer.set_result(message["value"])
        elif message.get("warm"):
            worker.warm = True
            self.tell()
            if not self.closing:
                self.begin()
        elif "state" in message and worker is self.learner:
            if "runs" in message["state"]:
                self._deaths = 0
            self.tell(**message["state"])
            if message["state"].get("phase") == "compiling":
                self._soon(self._preview())

    async def _preview(self) -> None:
        """While the engine is compiled, let the worker in front look ahead, which gives way to what is typed."""
        for _ in range(_MOST_LOOKS):
            if self._preview_number <= self.state["frame"] or self.state["phase"] != "compiling":
                return
            with contextlib.suppress(Refused):
                if (await self.ask("preview", {"doc": self._asked, "frame": self._preview_number}))["shown"]:
                    return

    def _show(self, data: bytes) -> None:
        """A frame; a preview counts only before the first real one."""
        head = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
        if head["frame"] > self.state["frame"] and head["frame"] >= self._first:
            self.frame = data
            phase = {"phase": "preview"} if head["preview"] and self.state["phase"] == "compiling" else {}
            self.tell(frame=head["frame"], **phase)

    def _lost(self, worker: WorkerProcess) -> None:
        """A worker is gone: the others take over, a new one is begun, and what was asked of it is answered."""
        for number, (asked, answer, _) in list(self._answers.items()):
            if asked is worker:
                del self._answers[number]
                if not answer.done():
                    answer.set_exception(Refused(refusal("gone", _RESTARTED, "do the same again")))
        if worker not in self._workers or self.closing:
            return
        learned = worker is self.learner
        self._replace(worker)
        if not self._workers:
            return
        if learned and self.state["session"] is not None:
            self._deaths += 1
            phase = self.state["phase"]
            if phase in GOING and self._deaths > _MOST_DEATHS:
                why = "the worker process is killed again and again; there may be too little memory"
                self.tell(phase="failed", error=refusal("gone", why, "take a smaller model, or close programs"))
                phase = "failed"
            goes_on = phase in GOING and phase != "certifying"  # which is asked for again, if it is still wanted
            next_phase = "learning" if goes_on else "paused" if phase == "paused" else "stopped"
            message = f"{_RESTARTED}; it continues with the runs that are kept" if goes_on else _RESTARTED
            self._reopen(next_phase, message, worker)
        elif learned:
            self.tell(message=_RESTARTED)

    def _replace(self, worker: WorkerProcess) -> None:
        """Another worker takes the place of one that is gone, and a new one is begun."""
        self._workers.remove(worker)
        self._stillborn = 0 if worker.warm else self._stillborn + 1
        if self._stillborn >= _MOST_DEATHS:  # what cannot start is not started for ever
            for other in self._workers:
                other.kill()
            self._workers.clear()
            self.tell(phase="failed", error=_CANNOT_START)
            return
        self.begin()
        self.tell(worker="restarted")

    def _reopen(self, phase: str, message: str, old: WorkerProcess) -> None:
        """Let the new worker open the session that the old one had; what is asked of it meanwhile waits."""
        frame = max(self.state["frame"], self._first) + 1  # an earlier one would be taken for the question before
        body = {"name": self.state["session"], "phase": phase, "frame": frame, "view": self._view}
        self.tell(message=message)
        self._reopened = self._loop.create_task(self._ask_again(body, old))

    async def _ask_again(self, body: dict[str, Any], old: WorkerProcess) -> None:
        await self._gone(old)
        if self._reopened is not asyncio.current_task():  # another question has come in between
            return
        try:
            await self.ask("reopen", body, front=False, then=lambda told: self.tell(claims=told["claims"]))
        except Refused as refused:
            if refused.content["kind"] != "gone":
                self.tell(phase="failed", error=refused.content)

    # Asking

    async def ask(self, command: str, body: object, *, front: bool = True, then: Then | None = None) -> Any:
        """The answer of a worker, the one in front or the one that learns; Refused if it is an error.

        `then` is called with the answer before anything else that the worker says is heard.
        """
        workers = self._ready()
        worker = next((each for each in workers[::-1] if each.warm), workers[-1]) if front else workers[0]
        self._number += 1
        number = self._number
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._answers[number] = worker, answer, then
        try:
            worker.send(command, body, number)
            return await answer
        except FullError:
            raise Refused(refusal("busy", "there is too much to do; wait a moment")) from None
        finally:
            self._answers.pop(number, None)

    # State

    def tell(self, **changes: Any) -> None:
        """Change the state, and wake whoever waits for it."""
        if "worker" not in changes and self.state["worker"] != "restarted":
            changes["worker"] = "warm" if any(worker.warm for worker in self._workers[:1]) else "starting"
        for name in ("message", "error"):
            if changes.get(name) is not None:
                changes[name] = changes[name] if name == "error" else printable(changes[name])
        self.state.update(changes)
        self.version += 1
        self._soon(self._wake())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something soon; the loop itself does not keep what it has to do."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def news(self, seen: int, seconds: float) -> None:
        """Wait until the state is another one than the version that was seen, but not longer than so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.changed:
                await self.changed.wait_for(lambda: self.version != seen or self.closing)

    def content(self) -> dict[str, Any]:
        """The state as the page gets it: its version, the number of the question, and 0 for an earlier one's frame."""
        frame = self.state["frame"] if self.state["frame"] >= self._first else 0
        return {**self.state, "frame": frame, "campaign": self._campaign, "version": self.version}

    async def close_soon(self) -> None:
        """Let those who wait know that the server ends."""
        self.closing = True
        await self._wake()

    # Acting

    async def start(self, document: Any, name: object, study: str | None = None) -> dict[str, Any]:
        """Begin a campaign, in the place of the one that is going; or go on from what a study has observed."""
        async with self._acting:
            worker = self.learner
            await self._make_way()
            first = self.state["frame"] + _APART
            self._preview_number, self._asked = first, document
            body = {"doc": document, "name": name, "frame": first + 1, "study": study}
            await self._launched("campaign", body, worker, lambda begun: self._begun(document, begun, first))
            return self.content()

    async def open(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The document of a file, an example or a session, and the state that goes with it."""
        opened = await self.ask("document", asked)
        if opened["study"] is not None:
            await self.start(opened["doc"], None, opened["study"])
        else:
            async with self._acting:
                worker = self.learner
                await self._make_way()
                document, first = opened["doc"], self.state["frame"] + _APART
                if opened["session"] is None:
                    await self._launched("leave", {}, worker, lambda begun: self._begun(document, begun, first))
                else:
                    body = {"name": opened["session"], "frame": first}
                    await self._launched("reopen", body, worker, lambda begun: self._begun(document, begun, first))
        return {"doc": opened["doc"], "state": self.content()}

    async def _launched(self, command: str, body: dict[str, Any], old: WorkerProcess, then: Then) -> None:
        """A command that begins; if it fails, a worker that took over opens the session of before."""
        try:
            await self.ask(command, body, front=False, then=then)
        except Refused:
            if old is not self.learner and self.state["session"] is not None:
                self._reopen("stopped", _KEPT, old)
            raise

    def _begun(self, document: Any, begun: Mapping[str, Any], first: int) -> None:
        """Another question is on the page, whose frames have numbers from `first` on."""
        self.document, self._view, self._deaths, self._first = document, None, 0, first
        self._campaign += 1
        kept = {name: self.state[name] for name in ("frame", "tabs")}
        self.tell(**{**EMPTY, **kept, "worker": "warm", **begun})

    async def halt(self, phase: str) -> dict[str, Any]:
        """Pause or stop."""
        async with self._acting:
            await self._halt(phase)
            return self.content()

    async def resume(self) -> dict[str, Any]:
        """Go on."""
        async with self._acting:
            self._loaded()
            await self._open_again()
            await self.ask("resume", {}, front=False)
            self.tell(message=None, error=None, worker="warm")
            return self.content()

    async def act(self, command: str, body: object) -> Any:
        """A command to the campaign that is there."""
        self._loaded()
        await self._open_again()
        return await self.ask(command, body, front=False)

    async def look(self, view: dict[str, Any]) -> Any:
        """Other axes, or another slice."""
        told = await self.act("view", view)
        self._view = view
        return told

    async def _open_again(self) -> None:
        """Wait for a session that another worker opens."""
        if self._reopened is not None:
            await asyncio.shield(self._reopened)

    def current(self) -> Any:
        """The document that is learned."""
        self._loaded()
        return self.document

    def _loaded(self) -> None:
        if self.state["session"] is None:
            raise Refused(refusal("input", "nothing has been started yet", "press Start first"))

    async def _make_way(self) -> None:
        """Halt for another question. A worker that takes over does not open the old session, which would push the new
        one aside."""
        worker = self.learner
        await self._halt("stopped")
        self._reopened = None
        if worker is not self.learner:
            await self._gone(worker)

    @staticmethod
    async def _gone(worker: WorkerProcess) -> None:
        """Wait until a killed worker is gone, and with it its lock on the folder."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(worker.gone.wait(), _DEAD)

    async def _halt(self, phase: str) -> None:
        """Stop what is going on, kindly, and after a moment by force."""
        if self.state["session"] is None or self.state["phase"] not in (*GOING, "stopping", "failed", "paused"):
            return
        worker = self.learner
        if self.state["phase"] in GOING:
            self.tell(phase="stopping", error=None)
        asked = asyncio.ensure_future(self.ask("halt", {"phase": phase}, front=False))
        done, _ = await asyncio.wait((asked,), timeout=_STOP)
        if done and asked.exception() is None:
            return
        asked.cancel()
        if worker in self._workers:
            worker.kill()
            self._replace(worker)
            self.tell(phase=phase, worker="warm" if self.learner.warm else "starting")
            self._reopen(phase, _KEPT, worker)
