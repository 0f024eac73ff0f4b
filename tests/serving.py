"""A real `sateen serve` in a process of its own, driven as a page drives it, but without a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 120.0  # seconds, on a busy machine
SIR = "species S = 95, I = 5, R = 0\nconstant N = 100\nS + I -> 2 I @ beta * S * I / N\nI -> R @ gamma * I\n"
DECAY = "species A = 10\nA -> 0 @ mass_action(k)"


def document(**changes: Any) -> dict[str, Any]:
    """Decay, which takes next to no time."""
    ranges = [{"name": "k", "low": 0.1, "high": 2.0, "log": True}]
    return {"language": "sateen", "text": DECAY, "formula": "F[0, 2] A == 0", "ranges": ranges, **changes}


def sir(**changes: Any) -> dict[str, Any]:
    """An epidemic, of two parameters."""
    ranges = [
        {"name": "beta", "low": 0.005, "high": 0.3, "log": False},
        {"name": "gamma", "low": 0.005, "high": 0.2, "log": False},
    ]
    return {"language": "sateen", "text": SIR, "formula": "(I > 0) U[100, 120] (I == 0)", "ranges": ranges, **changes}


def wait_until(fine: Callable[[], bool]) -> None:
    """Wait for what nobody tells."""
    end = time.monotonic() + PATIENCE
    while not fine():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.02)


def client_of(address: str) -> httpx.Client:
    """What asks the server at an address."""
    base, _, token = address.strip().partition("/#token=")
    headers = {"Authorization": f"Bearer {token}", "X-Sateen": "1"}
    return httpx.Client(base_url=base, headers=headers, timeout=PATIENCE)


class Serving:
    """A server, from its start to its end."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "sateen", "serve", *map(str, arguments), "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.base, _, self.token = self.address.partition("/#token=")
        self.client = client_of(self.address)

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate()

    def post(self, path: str, /, **body: Any) -> Any:
        """What the server answers."""
        return self.client.post(f"/api/{path}", json=body).json()

    def get(self, path: str) -> Any:
        """What the server tells."""
        return self.client.get(f"/api/{path}").json()

    def state(self) -> dict[str, Any]:
        """The state, as the stream of events begins with it."""
        with self.client.stream("GET", "/api/events") as events:
            for line in events.iter_lines():
                if line.startswith("data:"):
                    return dict(json.loads(line[5:])["state"])
        raise AssertionError("no state came")

    def until(self, fine: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first state that is fine, as the events tell it."""
        end = time.monotonic() + PATIENCE
        with self.client.stream("GET", "/api/events") as events:
            for line in events.iter_lines():
                if line.startswith("data:") and fine(state := json.loads(line[5:])["state"]):
                    return dict(state)
                assert time.monotonic() < end, line
        raise AssertionError("the events ended")

    def learned(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The first state with a map of counted runs, and the header of that map. A preview has numbers too."""

        def counted(state: dict[str, Any]) -> bool:
            return bool(state["points"] and state["frame"] and self.header()["runs"])

        return self.until(counted), self.header()

    def settled(self) -> dict[str, Any]:
        """The state, once nothing goes on and the map shows all that was observed.

        Where a busy machine let a halt take too long, another worker opens the session again, and may find more runs
        than were told. Nothing in the state says so; but what is asked of the campaign waits for it, even if it is
        refused.
        """
        self.post("predict", points=[{}])

        def fine(state: dict[str, Any]) -> bool:
            if state["phase"] not in ("stopped", "paused") or not state["frame"]:
                return False
            return bool(self.header()["runs"] == state["runs"])

        return self.until(fine)

    def frame(self, after: int = 0) -> bytes:
        """The newest frame; empty if there is none that is newer."""
        return self.client.get("/api/frame", params={"after": after}).content

    def header(self) -> dict[str, Any]:
        """What the newest frame says of itself."""
        frame = self.frame()
        return dict(json.loads(frame[4 : 4 + int.from_bytes(frame[:4], "little")]))

    def both_workers(self) -> list[int]:
        """The two workers, as soon as one that was replaced is gone."""
        wait_until(lambda: len(self.workers()) == 2)
        return self.workers()

    def workers(self) -> list[int]:
        """The processes of the server that learn, or wait."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == self.process.pid and b"spawn_main" in words:
                found.append(int(entry.name))
        return sorted(found)

    def learner(self) -> int:
        """The worker that learns, as soon as there is one."""
        found: list[int] = []
        wait_until(lambda: bool(found.extend(self._learners()) or found))
        return found[0]

    def _learners(self) -> Iterator[int]:
        """The worker which has the session's store, or its lock, open."""
        for pid in self.workers():
            links = []
            with suppress(OSError):  # a process that has ended
                for link in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):  # a file that was closed meanwhile
                        links.append(os.readlink(link))
            if any(link.endswith(".lock") for link in links):
                yield pid
