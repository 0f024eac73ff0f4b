"""Parts and merges that are killed, or left without space: nothing is lost, and the bits are the same."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from fault_runs import contents, every, run
from small_studies import changed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

STUDY: Final = changed(
    ("points = 24, runs = 20", "points = 24, runs = 25000"),
    ("points = 40, runs = 20", "points = 3000, runs = 200"),
    ("points = 10, runs = 50", "points = 4000, runs = 200"),
)
TOTAL: Final = 2_000_000
# A merge that is killed in the middle: after so many rows are entered it kills itself.
KILLED: Final = """
import os, signal
import sateen.sampling.merge as merge
entered, insert = 0, merge._Merge._insert
def counted(self, row):
    global entered
    entered += 1
    if entered == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    insert(self, row)
merge._Merge._insert = counted
from sateen.cli import main; main(prog_name="sateen")
"""
# A part that gets a signal when so many of its runs are stored.
STOPPED: Final = """
import os
from sateen.sampling.store import Store
stored, add = [0], Store.add
def counted(self, chunk):
    if stored[0] > {after}:
        os.kill(os.getpid(), {number})
    stored[0] += chunk.stop - chunk.first
    return add(self, chunk)
Store.add = counted
from sateen.cli import main; main(prog_name="sateen")
"""


def runs_in(folder: Path) -> int:
    if not (folder / "stages" / "runs.db").exists():
        return 0
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(folder / "stages" / "runs.db")) as connection:
        return int(connection.execute("SELECT coalesce(sum(stop - first), 0) FROM chunk").fetchone()[0])
    return 0  # its tables are not there yet


def part(number: int, folder: str) -> tuple[str, ...]:
    return ("run", "study.toml", "--part", f"{number}/2", "-o", folder, "--workers", "2")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study, its two parts, and its result on one machine."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "study.toml").write_text(STUDY)
    for number in (1, 2):
        assert run(*part(number, f"part-{number}"), folder=folder).code == 0
    assert run("run", "study.toml", "-o", "alone", folder=folder).code == 0
    return folder


def goes_on(desk: Path, merged: str) -> None:
    """The study goes on from the merged runs, makes none, and comes to the same bytes."""
    assert runs_in(desk / merged) == TOTAL
    assert run("run", "study.toml", "-o", merged, folder=desk).code == 0
    assert runs_in(desk / merged) == TOTAL
    assert (desk / merged / "result.json").read_bytes() == (desk / "alone" / "result.json").read_bytes()


@pytest.mark.parametrize("number", every([signal.SIGKILL, signal.SIGTERM], signal.SIGKILL))
def test_a_part_that_is_killed_goes_on_and_one_that_is_queued_again_elsewhere_counts_once(
    desk: Path, number: signal.Signals
) -> None:
    folder = f"stopped-{number.name}"
    program = STOPPED.format(after=10_000, number=int(number))
    stopped = run(*part(2, folder), folder=desk, start=("-c", program))
    assert stopped.code != 0
    assert 10_000 < (kept := runs_in(desk / folder)) < TOTAL // 2
    # The stopped part, the same part of another job, and the first part: each run once.
    into = f"merged-{number.name}"
    assert run("merge", folder, "part-1", "part-2", "-o", into, folder=desk).code == 0
    goes_on(desk, into)
    again = run(*part(2, folder), folder=desk)
    assert again.code == 0, again.err
    assert f"{TOTAL // 2 - kept:,} runs made now" in again.out
    assert run("merge", "part-1", folder, "-o", f"{into}-later", folder=desk).code == 0
    assert runs_in(desk / f"{into}-later") == TOTAL


@pytest.mark.parametrize("after", every([1, 60], 60))
def test_a_merge_that_is_killed_leaves_its_target_usable_and_is_made_again(desk: Path, after: int) -> None:
    into = f"killed-{after}"
    assert run("merge", "part-1", "-o", into, folder=desk).code == 0
    before = runs_in(desk / into)
    ended = run("merge", "part-2", "-o", into, folder=desk, start=("-c", KILLED.format(after=after)))
    assert ended.code == -signal.SIGKILL
    assert runs_in(desk / into) == before
    assert run("merge", "part-2", "-o", into, folder=desk).code == 0
    goes_on(desk, into)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_merge_on_a_full_disk_says_so_loses_nothing_and_goes_on_when_there_is_room(desk: Path, disk: Path) -> None:
    assert run("merge", "part-1", "-o", disk / "all", folder=desk).code == 0
    before, parts = runs_in(disk / "all"), {name: contents(desk / name) for name in ("part-1", "part-2")}
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    ballast.write_bytes(b"0" * (room.f_bavail * room.f_frsize))
    full = run("merge", "part-2", "-o", disk / "all", folder=desk)
    assert (full.code, "Traceback" in full.err) == (1, False)
    assert "StoreError: the store" in full.err
    assert "disk" in full.err
    assert "run the same again" in full.err
    ballast.unlink()
    assert runs_in(disk / "all") == before
    assert {name: contents(desk / name) for name in parts} == parts
    done = run("merge", "part-2", "-o", disk / "all", folder=desk)
    assert done.code == 0, done.err
    assert runs_in(disk / "all") == TOTAL
