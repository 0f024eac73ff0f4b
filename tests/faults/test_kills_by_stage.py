"""SIGKILL in every stage: the next run goes on, and what it leaves is what an undisturbed run leaves, to the last bit.

A stage is known by the line that announces it, or by a file that appears. The moment of the kill is a share of how long
the stage took in an undisturbed run of the same test, so that a slow machine moves the kills with it.
"""

from __future__ import annotations

import signal
import sys
from typing import Final

import numpy as np
import pytest

from command_line import HEARING
from fault_runs import Bench, Moment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]

NIGHTLY_KILLS: Final = 100
# Killed by itself at one of its renames: AT_RENAME is "before 3", or "after 3".
AT_RENAME: Final = (
    "import os, signal; rename, (when, number), made = os.replace, os.environ['AT_RENAME'].split(), []\n"
    "def replace(*names):\n"
    "    made.append(names)\n"
    "    if len(made) != int(number): return rename(*names)\n"
    "    if when == 'after': rename(*names)\n"
    "    os.kill(os.getpid(), signal.SIGKILL)\n"
    "os.replace = replace\n"
    f"{HEARING}"
)


MOMENTS: Final = {
    "study": (
        Moment("train gone: "),
        Moment("train gone: ", file="stages/runs.db-wal", daily=True),
        Moment("test gone: "),
        Moment("plan: ", daily=True),
        Moment("plan: ", to="main"),
        Moment("calibrate gone: ", daily=True),
        Moment("guarantee gone: "),
        Moment("score gone: "),
        Moment("score gone: ", to="main", daily=True),
        Moment("", file="provenance.json"),
        Moment("", file=".report.html.*.part", at_once=True, daily=True),
    ),
    "network": (
        Moment("train gone: "),
        Moment("compiling the training step", daily=True),
        Moment("", file="stages/learn*.checkpoint", at_once=True, daily=True),
    ),
    "side by side": (
        Moment("learn gone own_learners:Pooled: ", daily=True),
        Moment("learn gone own_learners:Pooled: ", to="main"),
        Moment("", file="stages/learn.*.safetensors", to="main", at_once=True, daily=True),
    ),
    "decided": (
        Moment("refine gone: "),
        Moment("runs: ", daily=True),
        Moment("", file="stages/refine.*.safetensors", to="main", at_once=True),
        Moment("decide gone: "),
        Moment("certify gone: "),
        Moment("", file="stages/certify.*.certificate", at_once=True, daily=True),
        Moment("sensitivity gone: "),
        Moment("bounds gone: ", daily=True),
    ),
    "best": (
        Moment("optimise gone: "),
        Moment("runs: "),
        Moment("runs: ", to="main", daily=True),
        Moment("", file="stages/optimise.*.safetensors", at_once=True),
    ),
    "paper": (
        Moment("train1 a"),
        Moment("exact a", daily=True),
        Moment("fit a svi-gp 1"),
        Moment("fit a svi-gp 1", to="main", daily=True),
        Moment("plan a 1"),
        Moment("lift a 1"),
    ),
}
EVERY_MOMENT: Final = [(name, moment) for name, moments in MOMENTS.items() for moment in moments]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize("name", MOMENTS)
def test_what_is_killed_in_every_stage_leaves_what_an_undisturbed_run_leaves(bench: Bench, name: str) -> None:
    moments = [moment for moment in MOMENTS[name] if moment.daily]
    codes = [
        bench.stop(name, moment, name, share).code
        for moment, share in zip(moments, spread(len(moments), seed=list(MOMENTS).index(name)), strict=True)
    ]
    bench.check(name, name)
    assert codes.count(-signal.SIGKILL) >= len(codes) / 2, "most runs ended before they were killed"


def spread(many: int, seed: int) -> list[float]:
    """Random shares, one in each of so many equal parts of 0 to 1, in a random order."""
    rng = np.random.default_rng([13, seed])
    shares: list[float] = ((rng.permutation(many) + rng.uniform(0.0, 1.0, many)) / many).tolist()
    return shares


@pytest.mark.nightly
def test_a_hundred_kills_over_all_stages_each_leave_what_an_undisturbed_run_leaves(bench: Bench) -> None:
    rng = np.random.default_rng(100)
    killed, wrong = 0, list[str]()
    for number in range(NIGHTLY_KILLS):
        (name, moment), share = EVERY_MOMENT[number % len(EVERY_MOMENT)], float(rng.uniform(0.0, 1.0))
        try:
            killed += bench.stop(name, moment, f"nightly {number}", share).code == -signal.SIGKILL
            bench.check(name, f"nightly {number}")
        except AssertionError as error:
            wrong.append(f"kill {number}, {share:.3f} of {moment} in {name}: {error}")
    print(f"{NIGHTLY_KILLS - len(wrong)} of {NIGHTLY_KILLS} identical; {killed} were at work when they were killed")
    assert wrong == []
    assert killed >= 0.8 * NIGHTLY_KILLS, "too many runs ended before they were killed"


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "files"), [("small study", 9), ("paper, one process", 14)])
def test_what_is_killed_before_or_after_any_rename_leaves_what_an_undisturbed_run_leaves(
    bench: Bench, name: str, files: int
) -> None:
    for number in range(1, 40):
        for when in ("before", "after"):
            folder = f"{name} {when} {number}"
            ended = bench.begin(name, folder, AT_RENAME, AT_RENAME=f"{when} {number}").end()
            if ended.code == 0:
                break  # it has no more renames
            assert ended.code == -signal.SIGKILL, ended.err
            assert bool(list((bench.folder / folder).rglob(".*.part"))) == (when == "before")
            bench.check(name, folder)
        else:
            continue
        break
    assert ended.code == 0
    assert number > files
