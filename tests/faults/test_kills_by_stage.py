"""SIGKILL in every stage: the next run goes on, and what it leaves is what an undisturbed run leaves, to the last bit.

A stage is known by the line that announces it, or by a file that appears. The moment of the kill is a share of how long
the stage took in an undisturbed run of the same test, so that a slow machine moves the kills with it.
"""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from command_line import HEARING
from fault_runs import Command, Ended, contents, finished
from small_studies import changed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]

NIGHTLY_KILLS: Final = 100
# Every stage of it takes a tenth of a second or more.
PLANNED: Final = changed(
    ("points = 24, runs = 20", "points = 24, runs = 120000"),
    ("points = 40, runs = 20", "budget = 2000000"),
    ("points = 10, runs = 50", "points = 4000, runs = 50"),
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
STUDY: Final = ("run", "../study.toml", "-o", "result", "--workers", "2")
PAPER: Final = (
    *("paper", "a", "--share", "0.02", "--seeds", "1", "-l", "svi-gp,default"),
    *("-o", "result", "--workers", "2"),
)
# A checkpoint after every block of steps, instead of one in ten seconds.
OFTEN: Final = f"import sateen.learning.networks.training as training; training._CHECKPOINT_SECONDS = 0.0\n{HEARING}"
# Killed by itself at its first rename: before it, when AT_RENAME says so, or after it.
AT_RENAME: Final = (
    "import os, signal; rename = os.replace\n"
    "def replace(*names):\n"
    "    if os.environ['AT_RENAME'] == 'after': rename(*names)\n"
    "    os.kill(os.getpid(), signal.SIGKILL)\n"
    "os.replace = replace\n"
    f"{HEARING}"
)


@dataclass(frozen=True)
class Work:
    """A command in a folder, and the study beside it, if it has one."""

    command: tuple[str, ...] = STUDY
    study: str = ""
    start: str = HEARING


@dataclass(frozen=True)
class Moment:
    """When to kill: from a line of stderr, or from a file in the result, for a share of the stage; and whom."""

    words: str
    file: str = ""
    to: str = "group"
    at_once: bool = False


WORK: Final = {
    "study": Work(study=PLANNED),
    "network": Work(study=NETWORK, start=OFTEN),
    "side by side": Work(study=SIDE_BY_SIDE),
    "paper": Work(PAPER),
}
MOMENTS: Final = {
    "study": (
        Moment("train gone: "),
        Moment("train gone: ", file="stages/runs.db-wal"),
        Moment("test gone: "),
        Moment("plan: "),
        Moment("plan: ", to="main"),
        Moment("calibrate gone: "),
        Moment("guarantee gone: "),
        Moment("score gone: "),
        Moment("score gone: ", to="main"),
        Moment("", file="provenance.json"),
        Moment("", file=".report.html.*.part", at_once=True),
    ),
    "network": (
        Moment("train gone: "),
        Moment("compiling the training step"),
        Moment("compiling the training step"),
        Moment("", file="stages/learn*.checkpoint", at_once=True),
    ),
    "side by side": (
        Moment("learn gone own_learners:Pooled: "),
        Moment("learn gone own_learners:Pooled: ", to="main"),
        Moment("", file="stages/learn.*.safetensors", to="main", at_once=True),
    ),
    "paper": (
        Moment("train1 a"),
        Moment("exact a"),
        Moment("fit a svi-gp 1"),
        Moment("fit a svi-gp 1", to="main"),
        Moment("plan a 1"),
        Moment("lift a 1"),
    ),
}
EVERY_MOMENT: Final = [(name, moment) for name, moments in MOMENTS.items() for moment in moments]


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

    def kill(self, name: str, moment: Moment, folder: str, share: float) -> bool:
        """Kill a run after a share of the stage; whether it was still at work."""
        ended, _, ages = self.whole(name)
        span = 0.0 if moment.at_once else ended.span(moment.words) if moment.words else ages[moment.file]
        command, result = self.begin(name, folder), self.folder / folder / "result"
        before = finished(result)

        def has_come() -> bool:
            if moment.file:
                return any(file not in before for file in result.glob(moment.file))
            return command.says(moment.words)

        if command.until(has_come):
            time.sleep(share * span)
        command.send(signal.SIGKILL, to=moment.to)
        killed = command.end().code == -signal.SIGKILL
        assert before.items() <= finished(result).items(), "a finished task was computed again"
        return killed

    def check(self, name: str, folder: str) -> None:
        """Run again, to the end: all is there that an undisturbed run leaves, and nothing else; nothing is made twice."""
        result = self.folder / folder / "result"
        kept = finished(result)
        ended = self.begin(name, folder).end()
        assert ended.code == 0, ended.err
        assert kept.items() <= finished(result).items(), "a finished task was computed again"
        found, wanted = contents(result), self.whole(name)[1]
        assert found.keys() == wanted.keys()
        assert [file for file in wanted if found[file] != wanted[file]] == []


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize("name", MOMENTS)
def test_what_is_killed_in_every_stage_leaves_what_an_undisturbed_run_leaves(bench: Bench, name: str) -> None:
    shares = np.random.default_rng([13, list(MOMENTS).index(name)]).uniform(0.0, 1.0, len(MOMENTS[name]))
    killed = [
        bench.kill(name, moment, name, share) for moment, share in zip(MOMENTS[name], shares.tolist(), strict=True)
    ]
    bench.check(name, name)
    assert sum(killed) > len(killed) / 2, "most runs ended before they were killed"


@pytest.mark.nightly
def test_a_hundred_kills_over_all_stages_each_leave_what_an_undisturbed_run_leaves(bench: Bench) -> None:
    rng = np.random.default_rng(100)
    killed, wrong = 0, list[str]()
    for number in range(NIGHTLY_KILLS):
        (name, moment), share = EVERY_MOMENT[number % len(EVERY_MOMENT)], float(rng.uniform(0.0, 1.0))
        try:
            killed += bench.kill(name, moment, f"nightly {number}", share)
            bench.check(name, f"nightly {number}")
        except AssertionError as error:
            wrong.append(f"kill {number}, {share:.3f} of {moment} in {name}: {error}")
    print(f"{NIGHTLY_KILLS - len(wrong)} of {NIGHTLY_KILLS} identical; {killed} were at work when they were killed")
    assert wrong == []
    assert killed >= 0.8 * NIGHTLY_KILLS, "too many runs ended before they were killed"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["study", "paper"])
def test_what_is_killed_before_and_after_every_rename_leaves_what_an_undisturbed_run_leaves(
    bench: Bench, name: str
) -> None:
    folder, kills = f"renames {name}", 0
    for when in ("before", "after") * 30:
        ended = bench.begin(name, folder, AT_RENAME, AT_RENAME=when).end()
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended.err
        assert bool(list((bench.folder / folder).rglob(".*.part"))) == (when == "before")
        kills += 1
    assert ended.code == 0
    assert kills >= 2 * 9  # as many files are written
    bench.check(name, folder)
