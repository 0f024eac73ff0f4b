"""kill -9 at any moment: the next run goes on, and its result is the same to the last bit.

A process is kept warm, with everything loaded and compiled; each run is a fork of it, so that the moments at which runs
are killed fall into the work itself and not into the loading of libraries. tests/faults/test_kills_by_stage.py kills
commands that have processes of their own, in the stage that it means.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from small_studies import changed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

KILLS = 10
TEXT = changed(("points = 24, runs = 20", "points = 24, runs = 4000"))

# Reads the names of files and folders, and runs the study of the file in the folder, in a fork whose process id it
# prints, and then its exit code.
WARM = """
import os, sys, tempfile
import sateen as st
with tempfile.TemporaryDirectory() as folder:
    st.Study.load(sys.argv[1]).run(folder, workers=1)
print("warm", flush=True)
for line in sys.stdin:
    file, folder = line.split()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            st.Study.load(file).run(folder, workers=2)
            code = 0
        finally:
            os._exit(code)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Runs:
    """Runs of a study in forks of a warm process."""

    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self.process, self.file = process, file

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def run(self, folder: Path, seconds: float | None = None, after: int = 0) -> int:
        """Run the study in a folder, kill it so many seconds after so many of its files, and give its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.file} {folder}\n")
        self.process.stdin.flush()
        child = int(self._answer())
        if seconds is not None:
            until = time.monotonic() + 300
            while len(finished(folder)) < after and not (folder / "result.json").exists():
                assert time.monotonic() < until, "the run hangs"
                time.sleep(0.001)
            time.sleep(seconds)
            with suppress(ProcessLookupError):  # it may have been faster
                os.kill(child, signal.SIGKILL)
        return int(self._answer())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    file = tmp_path_factory.mktemp("warm") / "decay.toml"
    file.write_text(TEXT)
    command = [sys.executable, "-c", WARM, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "warm\n"
        yield Runs(process, file)
        assert process.stdin is not None
        process.stdin.close()


def stored_runs(folder: Path) -> int:
    """How many runs are in the store, of all campaigns."""
    store = folder / "stages" / "runs.db"
    if not store.exists():
        return 0
    with sqlite3.connect(store) as connection:
        try:
            return int(connection.execute("SELECT coalesce(sum(stop - first), 0) FROM chunk").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # it was killed before the store had its tables


def finished(folder: Path) -> dict[Path, int]:
    """The files of finished stages, and when each was written."""
    files = [file for file in (folder / "stages").glob("[!.]*") if file.suffix in (".npz", ".safetensors", ".json")]
    return {file: file.stat().st_mtime_ns for file in files}


def test_kills_at_random_moments_each_go_on_to_the_identical_result(runs: Runs, tmp_path: Path) -> None:
    start = time.perf_counter()
    assert runs.run(tmp_path / "whole") == 0
    whole = time.perf_counter() - start
    wanted = (tmp_path / "whole" / "result.json").read_bytes()
    # Spread over the stages, however fast the machine is just then, and within each stage.
    files = len(finished(tmp_path / "whole"))
    moments = np.random.default_rng(20).uniform(0.0, 1.0, KILLS) * whole / files
    killed, found = 0, set()
    for number, moment in enumerate(moments.tolist()):
        folder = tmp_path / str(number)
        killed += runs.run(folder, moment, after=number * files // KILLS) == -signal.SIGKILL
        found.add(frozenset(file.name.split(".")[0] for file in finished(folder)))
        before, kept = stored_runs(folder), finished(folder)
        assert runs.run(folder) == 0
        assert (folder / "result.json").read_bytes() == wanted, f"kill {number}, {moment:.3f} s on"
        assert stored_runs(folder) >= before
        assert kept.items() <= finished(folder).items(), "a finished stage was made again"
        assert not list(folder.rglob(".*.part"))
        assert not list(folder.rglob("*.checkpoint"))
    assert killed >= KILLS // 2, "most runs ended before they were killed"
    assert len(found) >= 4, "the kills fell into too few stages"


def test_a_study_that_is_killed_again_and_again_still_comes_to_its_end(runs: Runs, tmp_path: Path) -> None:
    """Each run is killed once it has one more stage than the one before it, or a little later."""
    folder, rng = tmp_path / "decay", np.random.default_rng(21)
    start = time.perf_counter()
    assert runs.run(tmp_path / "whole") == 0
    whole = time.perf_counter() - start
    files = len(finished(tmp_path / "whole"))
    codes = [runs.run(folder, float(rng.uniform(0.0, 1.0)) * whole / files, after=turn) for turn in range(files)]
    assert codes.count(-signal.SIGKILL) >= 3
    assert runs.run(folder) == 0
    assert (folder / "result.json").read_bytes() == (tmp_path / "whole" / "result.json").read_bytes()
    assert list(st.Result.load(folder).properties) == ["gone"]
