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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from command_line import HEARING, USUAL
from small_studies import BEST, DECIDE, SMALL, TWO, WITHOUT, changed

PATIENCE: Final = 300.0  # seconds, after which what waits is taken to hang
# What differs from run to run, or follows from it; table.json has what the other tables of the paper say.
_TIMES: Final = {"seconds", "evaluation", "created", "started", "finished", "stages", "hashes", "checksum"}
_WITH_OTHERS: Final = ("refine.", "certify.", "optimise.")  # tasks whose main file, in JSON, is written last
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


def every(values: Iterable[Any], *daily: Any) -> list[Any]:
    """Values of a test's parameter, of which only those in `daily` are tried outside the nightly tests."""
    return [each if each in daily else pytest.param(each, marks=pytest.mark.nightly) for each in values]


def contents(folder: Path) -> dict[str, object]:
    """All files of a result by name, with their content but for times; bytes where there are none."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {file.relative_to(folder).as_posix(): _content(file) for file in sorted(files)}


def _content(file: Path) -> object:
    if file.suffix in _NOT_COMPARED:
        return None
    if file.suffix == ".json" and file.name != "result.json":  # which is the same to the last bit
        return _without_times(json.loads(file.read_bytes()))
    if file.suffix in (".safetensors", ".certificate"):
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
        beside = file.name.startswith(_WITH_OTHERS) and not file.with_suffix(".json").exists()
        if file.suffix in (".npz", ".safetensors", ".certificate", ".json") and not beside:
            yield file


# Every stage of it takes about a tenth of a second or more: each run has a thousand events that cost time and no more.
PLANNED: Final = changed(
    ("species A = 5\n", "species A = 5, B = 0\n"),
    ("mass_action(k)\n", "mass_action(k)\n0 -> B @ 600\n"),
    ("points = 24, runs = 20", "points = 24, runs = 2000"),
    ("points = 40, runs = 20", "budget = 30000"),
    ("points = 10, runs = 50", "points = 1000, runs = 50"),
    ('normaliser = "constant"', ""),
)
NETWORK: Final = changed(
    ("calibrate = { points = 40, runs = 20 }\ntest      = { points = 10, runs = 50 }\n", ""),
    ('["svi-gp"]', '["svi-bnn"]'),
    ("[learn.svi-gp]", "[learn.svi-bnn]"),
    ("inducing = 8", "steps = 2000"),
    ('[guarantee]\nnormaliser = "constant"\n', ""),
)
# Learners of one's own are taken to be slow: they are fitted in processes.
SIDE_BY_SIDE: Final = changed(
    ('["svi-gp"]', '["svi-gp", "own_learners:Pooled"]'),
    ('gone = "F[0, 2] A == 0"', 'gone = "F[0, 2] A == 0"\nhalf = "F[0, 1] A <= 2"'),
)
DECIDED: Final = changed(
    ("undecided = 0.08\nbudget = 6000", "undecided = 0.02\nbudget = 400000"),
    ("wrong = 0.1, confidence = 0.9", "wrong = 0.002"),
    text=WITHOUT + DECIDE,
)
STUDY: Final = ("run", "../study.toml", "-o", "result", "--workers", "2")
PAPER: Final = (
    *("paper", "a", "--share", "0.02", "--seeds", "1", "-l", "svi-gp,default"),
    *("-o", "result", "--workers", "2"),
)
# A checkpoint after every block of steps, instead of one in ten seconds.
OFTEN: Final = f"import sateen.learning.networks.training as training; training._CHECKPOINT_SECONDS = 0.0\n{HEARING}"
# No process may have more than 16 GB, most of which is never used.
LITTLE_MEMORY: Final = f"import resource; resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))\n{HEARING}"


@dataclass(frozen=True)
class Work:
    """A command in a folder, and the study beside it, if it has one."""

    command: tuple[str, ...] = STUDY
    study: str = ""
    start: str = HEARING


@dataclass(frozen=True)
class Moment:
    """When to kill: from a line of stderr, or from a file in the result, for a share of the stage; and whom.

    Only those that are `daily` are tried outside the nightly tests.
    """

    words: str
    file: str = ""
    to: str = "group"
    at_once: bool = False
    daily: bool = False


WORK: Final = {
    "study": Work(study=PLANNED),
    "network": Work(study=NETWORK, start=OFTEN),
    "side by side": Work(study=SIDE_BY_SIDE),
    "decided": Work(study=DECIDED),
    "best": Work(study=changed(("gap = 0.2", "gap = 0.05"), ("budget = 30000", "budget = 300000"), text=TWO + BEST)),
    "paper": Work(PAPER),
    "small study": Work(study=SMALL),
    "hungry": Work(
        study=changed(("own_learners:Pooled", "own_learners:Hungry"), text=SIDE_BY_SIDE), start=LITTLE_MEMORY
    ),
    "paper, one process": Work((*PAPER[:-1], "1")),
}


class Bench:
    """Runs of the commands, each in a folder of its own; the undisturbed ones are made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole: dict[str, tuple[Ended, dict[str, object], dict[str, float]]] = {}

    def begin(self, name: str, folder: str, start: str = "", **environment: str) -> Command:
        """Run a command in a folder under this name."""
        work, path = WORK[name], self.folder / folder
        path.mkdir(exist_ok=True)
        (self.folder / "study.toml").write_text(work.study)
        return Command(*work.command, start=("-c", start or work.start), folder=path, environment=environment)

    def whole(self, name: str) -> tuple[Ended, dict[str, object], dict[str, float]]:
        """An undisturbed run: how it ended, what it left, and how many seconds before its end each file was made."""
        if name not in self._whole:
            ended, now = self.begin(name, f"whole {name}").end(), time.time()
            assert ended.code == 0, ended.err
            result = self.folder / f"whole {name}" / "result"
            ages = {file.name: now - file.stat().st_mtime for file in result.glob("*") if file.is_file()}
            self._whole[name] = ended, contents(result), ages
        return self._whole[name]

    def stop(
        self, name: str, moment: Moment, folder: str, share: float, number: signal.Signals = signal.SIGKILL
    ) -> Ended:
        """Kill a run after a share of the stage, or send it another signal; at the latest when the next stage begins.

        So a run that is faster than the undisturbed one was, on a machine that was busy then, is stopped all the same.
        """
        ended, _, ages = self.whole(name)
        span = 0.0 if moment.at_once else ended.span(moment.words) if moment.words else ages[moment.file]
        command, result = self.begin(name, folder), self.folder / folder / "result"
        before = finished(result)

        def has_come() -> bool:
            if moment.file:
                return any(file not in before for file in result.glob(moment.file))
            return command.says(moment.words)

        if command.until(has_come):
            until = time.perf_counter() + share * span
            lines = next((place for place, line in enumerate(command.lines) if moment.words in line), 0) + 1
            command.until(lambda: time.perf_counter() >= until or (not moment.file and len(command.lines) > lines))
        command.send(number, to=moment.to)
        stopped = command.end()
        assert before.items() <= finished(result).items(), "a finished task was computed again"
        return stopped

    def check(self, name: str, folder: str) -> None:
        """Run again, to the end: nothing is made twice, and there is what an undisturbed run leaves, and no more."""
        result = self.folder / folder / "result"
        kept = finished(result)
        ended = self.begin(name, folder).end()
        assert ended.code == 0, ended.err
        assert kept.items() <= finished(result).items(), "a finished task was computed again"
        found, wanted = contents(result), self.whole(name)[1]
        assert found.keys() == wanted.keys()
        assert [file for file in wanted if found[file] != wanted[file]] == []
