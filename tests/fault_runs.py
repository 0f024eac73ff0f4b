"""Commands of sateen that are killed, starved or shut out: how they run, and what they must leave alike."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from command_line import HEARING, USUAL

PATIENCE: Final = 300.0  # seconds, after which what waits is taken to hang
# What differs from run to run, or follows from it; table.json has what the other tables of the paper say.
_TIMES: Final = {"seconds", "evaluation", "created", "started", "finished", "stages", "hashes", "checksum"}
_NOT_COMPARED: Final = {".txt", ".md", ".tex", ".db"}


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it printed, and after how many seconds each line of stderr came."""

    code: int
    out: str
    err: str
    at: tuple[float, ...]
    seconds: float

    def span(self, words: str) -> float:
        """The seconds from the first line with these words to the line after it, or to the end."""
        lines = self.err.splitlines()
        first = next(place for place, line in enumerate(lines) if words in line)
        return (*self.at, self.seconds)[first + 1] - self.at[first]


class Command:
    """A command in a session of its own, by which all its processes are found; stderr is read as it comes."""

    def __init__(
        self,
        *arguments: object,
        start: Sequence[str] = ("-c", HEARING),
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.at: list[float] = []
        self.began = time.perf_counter()
        self._out = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed at the end of the command)
        self.process = subprocess.Popen(
            [*before, sys.executable, *start, *map(str, arguments)],
            stdout=self._out,
            stderr=subprocess.PIPE,
            text=True,
            env={**USUAL, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.at.append(time.perf_counter() - self.began)
            self.lines.append(line.rstrip("\n"))

    def until(self, condition: Callable[[], object]) -> bool:
        """Wait until the condition holds, or the command has ended; whether it still runs."""
        while self.process.poll() is None and not condition():
            assert time.perf_counter() - self.began < PATIENCE, "the command hangs"
            time.sleep(0.001)
        return self.process.poll() is None

    def says(self, words: str) -> bool:
        """Whether a line of stderr has these words by now."""
        return any(words in line for line in self.lines)

    def family(self) -> dict[int, str]:
        """The living processes of its session, with their command lines."""
        found: dict[int, str] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state not in "ZX":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        return found

    def workers(self) -> list[int]:
        """Its worker processes, the oldest first."""
        return sorted(number for number, command in self.family().items() if "spawn_main" in command)

    def send(self, number: signal.Signals, *, to: str = "main") -> None:
        """Send a signal to the main process, to all ("group"), or to the oldest worker, if there is one ("worker")."""
        with suppress(ProcessLookupError):
            if to == "group":
                os.killpg(self.process.pid, number)
            else:
                for process in [self.process.pid] if to == "main" else self.workers()[:1]:
                    os.kill(process, number)

    def end(self) -> Ended:
        """Wait for its end, and that of its processes: none outlives it."""
        try:
            code = self.process.wait(PATIENCE)
            seconds = time.perf_counter() - self.began
            until = time.perf_counter() + PATIENCE
            while left := self.family():
                assert time.perf_counter() < until, f"these outlive the command: {left}"
                time.sleep(0.01)
        finally:
            self.send(signal.SIGKILL, to="group")
            self._reader.join()
            assert self.process.stderr is not None
            self.process.stderr.close()
        with self._out as out:
            out.seek(0)
            return Ended(code, out.read(), "\n".join(self.lines), tuple(self.at), seconds)


def run(*arguments: object, **options: Any) -> Ended:
    """A command that nobody disturbs, to its end."""
    return Command(*arguments, **options).end()


def contents(folder: Path) -> dict[str, object]:
    """All files of a result by name, with their content but for times; bytes where there are none."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {file.relative_to(folder).as_posix(): _content(file) for file in sorted(files)}


def _content(file: Path) -> object:
    if file.suffix in _NOT_COMPARED:
        return None
    if file.suffix == ".json":
        return _without_times(json.loads(file.read_bytes()))
    if file.suffix == ".safetensors":
        stored = file.read_bytes()
        start = 8 + int.from_bytes(stored[:8], "little")
        header = json.loads(stored[8:start])
        header["__metadata__"]["content"] = json.loads(header["__metadata__"]["content"])
        return _without_times(header), stored[start:]
    if file.name == "report.html":
        page = file.read_text(encoding="utf-8")
        return re.sub(r'<meta name="sateen-stamp"[^>]*>|<div class="timings">.*?</div>', "", page, flags=re.DOTALL)
    return file.read_bytes()


def _without_times(content: object) -> object:
    if isinstance(content, dict):
        return {key: _without_times(value) for key, value in content.items() if key not in _TIMES}
    return [_without_times(each) for each in content] if isinstance(content, list) else content


def finished(folder: Path) -> dict[Path, int]:
    """The files of finished tasks, and when each was written."""
    return {file: file.stat().st_mtime_ns for file in _finished(folder)}


def _finished(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("stages/[!.]*"):
        if file.suffix in (".npz", ".safetensors", ".json"):
            yield file
