"""Fuzzing: every reader is given spoilt inputs, and must read them or refuse them in plain words.

Case i of a format is fixed by the two of them, so each can be repeated, in Python or in a shell:

    fuzz_case("sbml", 1234)
    python tests/fuzzing.py sbml 1234

Cases run in child processes, one after another: a child that hangs, crashes or takes too much memory shows which case
it was. `python tests/fuzzing.py sbml 0 20000` runs so many and prints what went wrong, by class.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final

import sateen

HERE: Final = Path(__file__).resolve().parent
CORPUS = Path(os.environ.get("SATEEN_FUZZ_CORPUS", HERE / "fuzz" / "corpus"))  # what once failed, by format
SECONDS: Final = 5  # of processor time for a case
SILENCE: Final = 60  # seconds without a word after which a child hangs
MOST_MEMORY: Final = 500  # MB above what the child takes once all is loaded
SPARE_MEMORY: Final = 4 * 2**30  # bytes of addresses above that, so that no case takes the machine's
FORBIDDEN: Final = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "os.fork")
WRITING: Final = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod")


class TooSlow(BaseException):
    """A case took longer than it may; no Exception, so that no reader catches it."""


@dataclass
class Tally:
    """What became of some cases: `complaints` by case, `seconds` in all, and of the slowest, `memory` in MB."""

    cases: int = 0
    complaints: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    memory: float = 0.0

    def classes(self) -> dict[str, list[str]]:
        """The cases by what was wrong with them, most first."""
        found: dict[str, list[str]] = {}
        for case, complaint in self.complaints.items():
            found.setdefault(class_of(complaint), []).append(case)
        return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))

    def report(self, name: str) -> str:
        """A line about all of it, and one for each class."""
        speed = 1000 * self.seconds / max(self.cases, 1)
        lines = [
            f"{name}: {self.cases:,} cases, {len(self.complaints):,} violations; {speed:.1f} ms a case, slowest "
            f"{self.slowest[0]:.2f} s ({self.slowest[1]}); {self.memory:.0f} MB above the start; {dict(self.outcomes)}"
        ]
        for kind, cases in self.classes().items():
            shown = ", ".join(f'fuzz_case("{name}", {case})' for case in cases[:3])
            lines.append(f"  {len(cases):5,} x {kind}\n          {shown}\n          {self.complaints[cases[0]][:400]}")
        return "\n".join(lines)


def class_of(complaint: str) -> str:
    """The complaint without what differs from case to case: what is wrong, and where it was raised."""
    first = complaint.partition("\n")[0]
    first = re.sub(r"^raw '[^']*'", "raw character", first)
    raised = re.match(r"(?:[a-z' ]+: )?[\w ]+ at [^:]+:\S+?(?=:|$)", first)
    return re.sub(r"\d+", "#", raised[0] if raised else first[:80])


def formats() -> dict[str, Any]:
    """All formats by name."""
    from fuzz.saved import SAVED
    from fuzz.texts import TEXTS

    return {**TEXTS, **SAVED}


def load_format(name: str) -> Any:
    """A format, without what the others need."""
    if name == "planted":
        from fuzz.planted import PLANTED

        return PLANTED
    from fuzz.texts import TEXTS

    return TEXTS[name] if name in TEXTS else formats()[name]


def case_data(name: str, case: int | str, prepared: Any) -> bytes:
    """The input of a case: a number, `large how`, or the name of a file in the corpus."""
    chosen = load_format(name)
    if isinstance(case, int):
        return chosen.mutate(Random(f"{name} {case}"), prepared)
    kind, _, how = case.partition(" ")
    return chosen.large[how](prepared) if kind == "large" else (CORPUS / name / case).read_bytes()


def fuzz_case(name: str, case: int | str) -> None:
    """Run one case in this process, and raise AssertionError if it goes wrong."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepared = load_format(name).prepare(Path(folder))
        data = case_data(name, case, prepared)
        complaint = judged(name, data, prepared, Path(folder))[1]
        assert complaint is None, f'fuzz_case("{name}", {case!r}): {complaint}\n{data[:2000]!r}'


def judged(name: str, data: bytes, prepared: Any, folder: Path) -> tuple[str, str | None]:
    """What came of an input, and what is wrong with that, if anything is."""
    import builtins

    from fuzz.judging import complaint_about
    from sateen.core.errors import SateenError, SateenWarning

    chosen = load_format(name)
    outcome, complaint = "read", None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            chosen.read(data, prepared, folder)
        except TooSlow as error:
            from fuzz.judging import frame_of

            outcome, complaint = "slow", f"too slow at {frame_of(error)}"
        except Exception as error:
            outcome = "refused" if isinstance(error, SateenError) else "wrong"
            complaint = complaint_about(error, chosen.name)
    if strange := [each for each in caught if not issubclass(each.category, SateenWarning)]:
        complaint = complaint or f"{strange[0].category.__name__}: {strange[0].message}"
    if getattr(builtins, "sateen_canary", None):
        del builtins.sateen_canary  # type: ignore[attr-defined]
        complaint = "code was run"
    return outcome, complaint


def fuzz(name: str, cases: Sequence[int | str], folder: Path, seconds: float = SECONDS) -> Tally:
    """Run cases of a format in child processes that work in `folder`; each may take so many seconds."""
    tally, left = Tally(), list(cases)
    failures = folder / "failures"
    failures.mkdir(parents=True, exist_ok=True)
    while left:
        done = 0
        for line in _child(name, left, folder, seconds):
            case = str(line["case"])
            done += 1
            tally.cases += 1
            tally.outcomes[line["outcome"]] += 1
            tally.seconds += line["seconds"]
            tally.slowest = max(tally.slowest, (line["seconds"], case))
            tally.memory = max(tally.memory, line["memory"])
            if line["complaint"]:
                tally.complaints[case] = line["complaint"]
        left = left[done:]
    return tally


def _child(name: str, cases: list[int | str], folder: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """The lines of a child process; if it dies or hangs, the last one is about the case that did it."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "PYTHONFAULTHANDLER": "", "PYTHONUTF8": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [Path(sateen.__file__).parents[1], HERE]))  # the same sateen
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    command = [sys.executable, __file__, "--child", name, str(folder), str(seconds)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(cases).encode())
    child.stdin.close()
    seen, rest = 0, b""
    why = ""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(SILENCE + (60 if not seen else 0)):
                child.kill()
                why = f"hangs: no word for {SILENCE} s"
                break
            some = os.read(child.stdout.fileno(), 1 << 16)
            if not some:
                break
            *lines, rest = (rest + some).split(b"\n")
            for line in lines:
                seen += 1
                yield json.loads(line)
    child.stdout.close()
    code = child.wait()
    if seen < len(cases) and (why or code != 0):
        if not seen and not why and code == 1:
            raise AssertionError(f"the child process of {name} failed before its first case")
        why = why or f"the process died with code {code}"
        yield {"case": cases[seen], "outcome": "died", "complaint": why, "seconds": 0.0, "memory": 0.0}


def _serve(name: str, folder: Path, most_seconds: float) -> None:
    """The child process: reads a list of cases, writes a line for each."""
    cases = json.load(sys.stdin)
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    noise = os.open(folder / "noise", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    prepared = load_format(name).prepare(folder)
    judged(name, load_format(name).warm(prepared), prepared, folder)
    watch = _Watch(folder, sys.executable if name == "antimony" else "")  # the library runs in a process of its own
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    signal.signal(signal.SIGPROF, _too_slow)
    gc.collect()
    start = _memory(peak=False)
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + SPARE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in cases:
        data = case_data(name, case, prepared)
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        began, quiet = _cpu_seconds(), os.fstat(noise).st_size
        signal.setitimer(signal.ITIMER_PROF, most_seconds)
        try:
            watch.on = name != "kernel"
            outcome, complaint = judged(name, data, prepared, folder)
        except TooSlow:  # between the reader and the judge
            outcome, complaint = "slow", "too slow"
        finally:
            watch.on = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        memory = _memory(peak=True) - start
        if os.fstat(noise).st_size > quiet:
            said = os.pread(noise, 200, quiet).decode(errors="replace")
            complaint = complaint or f"a library prints: {said!a}"
        if watch.seen:
            complaint = complaint or f"does what no reader does: {watch.seen.pop()}"
            watch.seen.clear()
        if memory > MOST_MEMORY:
            complaint = complaint or f"takes more than {MOST_MEMORY} MB: {memory:.0f} MB"
        if complaint:
            (folder / "failures" / f"{name}-{case}").write_bytes(data)
        seconds = _cpu_seconds() - began
        told = {"case": case, "outcome": outcome, "complaint": complaint, "seconds": seconds, "memory": memory}
        lines.write(json.dumps(told) + "\n")


class _Watch:
    """Notes what a reader of files has no business to do: start programs, connect, write elsewhere."""

    def __init__(self, folder: Path, program: str) -> None:
        self.on = False
        self.program = program  # the only one that may be started
        self.seen: set[str] = set()
        self.folder = os.fspath(folder)
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in FORBIDDEN and not (event == "subprocess.Popen" and arguments[0] == self.program):
            self.seen.add(f"{event} {arguments!a:.200}")
        elif event == "open" and isinstance(arguments[0], str) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            if not self._is_ours(arguments[0]):
                self.seen.add(f"opens {arguments[0]!a:.200} for writing")
        elif event in WRITING and not self._is_ours(arguments[1 if event in ("os.symlink", "os.link") else 0]):
            self.seen.add(f"{event} {arguments!a:.200}")

    def _is_ours(self, path: Any) -> bool:
        name = os.path.abspath(os.fsdecode(path))
        return name.startswith((self.folder, "/dev/null")) or "__pycache__" in name


def _cpu_seconds() -> float:
    """The CPU time of this process and of the processes that it has started and waited for."""
    return sum(os.times()[:4])


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def _memory(peak: bool) -> float:
    """The memory of this process in MB, now or at most since it was last forgotten."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{'VmHWM' if peak else 'VmRSS'}:\s*(\d+)", status)[0]) / 1024


def main(arguments: list[str]) -> None:
    """Run one case here, or many in children: FORMAT CASE, or FORMAT FIRST STOP; `all` is every format."""
    if arguments[0] == "--child":
        _serve(arguments[1], Path(arguments[2]), float(arguments[3]))
        return
    name, *numbers = arguments
    if len(numbers) == 1:
        fuzz_case(name, int(numbers[0]) if numbers[0].isdigit() else numbers[0])
        print("as it should be")
        return
    for each in formats() if name == "all" else name.split(","):
        folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{each}-"))
        print(fuzz(each, range(int(numbers[0]), int(numbers[1])), folder).report(each), flush=True)
        print(f"  inputs of violations: {folder / 'failures'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
