"""kill -9 at any moment: the next run goes on, and its result is the same to the last bit.

A process is kept warm, with everything loaded and compiled; each run is a fork of it, so that the moments at which runs
are killed fall into the work itself and not into the loading of libraries.
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

KILLS = 30
TEXT = changed(("points = 24, runs = 20", "points = 24, runs = 4000"))
PLANNED = changed(("points = 40, runs = 20", "budget = 40000"), ('normaliser = "constant"', ""), text=TEXT)

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

    def run(self, folder: Path, seconds: float | None = None) -> int:
        """Run the study in a folder, kill it after so many seconds, and give its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.file} {folder}\n")
        self.process.stdin.flush()
        child = int(self._answer())
        if seconds is not None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):  # it may have been faster
                os.kill(child, signal.SIGKILL)
        return int(self._answer())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    file = tmp_path_factory.mktemp("warm") / "decay.toml"
    file.write_text(PLANNED)
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


def test_thirty_kills_at_random_moments_each_go_on_to_the_identical_result(runs: Runs, tmp_path: Path) -> None:
    runs.file.write_text(TEXT)
    start = time.perf_counter()
    assert runs.run(tmp_path / "whole") == 0
    whole = time.perf_counter() - start
    wanted = (tmp_path / "whole" / "result.json").read_bytes()
    moments = np.random.default_rng(20).uniform(0.0, 1.0, KILLS) * whole
    killed, found = 0, set()
    for number, moment in enumerate(moments.tolist()):
        folder = tmp_path / str(number)
        killed += runs.run(folder, moment) == -signal.SIGKILL
        found.add(frozenset(file.name.split(".")[0] for file in finished(folder)))
        before, kept = stored_runs(folder), finished(folder)
        assert runs.run(folder) == 0
        assert (folder / "result.json").read_bytes() == wanted, f"kill {number}, after {moment:.3f} s"
        assert stored_runs(folder) >= before
        assert kept.items() <= finished(folder).items(), "a finished stage was made again"
        assert not list(folder.rglob(".*.part"))
        assert not list(folder.rglob("*.checkpoint"))
    assert killed >= KILLS // 2, "most runs ended before they were killed"
    assert len(found) >= 4, "the kills fell into too few stages"


def test_a_study_that_is_killed_again_and_again_still_comes_to_its_end(runs: Runs, tmp_path: Path) -> None:
    runs.file.write_text(PLANNED)
    folder, rng = tmp_path / "decay", np.random.default_rng(21)
    start = time.perf_counter()
    assert runs.run(tmp_path / "whole") == 0
    whole = time.perf_counter() - start
    for turn in range(100):
        if runs.run(folder, float(rng.uniform(0.1, 0.6)) * whole * (1 + turn / 5)) == 0:
            break
    assert turn > 1
    assert (folder / "result.json").read_bytes() == (tmp_path / "whole" / "result.json").read_bytes()
    assert list(st.Result.load(folder).properties) == ["gone"]


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_a_run_with_processes_side_by_side_that_is_killed_goes_on_to_the_identical_result(
    tmp_path: Path, share: float
) -> None:
    learners = ('["svi-gp"]', '["svi-gp", "own_learners:Pooled"]')  # the latter is taken to be slow, hence processes
    file = tmp_path / "decay.toml"
    file.write_text(changed(learners, ('gone = "F[0, 2] A == 0"', 'gone = "F[0, 2] A == 0"\nhalf = "F[0, 1] A <= 2"')))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = "import sys, sateen as st; st.Study.load(sys.argv[1]).run(sys.argv[2], workers=2)"

    def begin(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, str(file), str(folder)], env=environment)

    start = time.perf_counter()
    assert begin(tmp_path / "whole").wait() == 0
    whole = time.perf_counter() - start
    stopped = begin(tmp_path / "stopped")
    time.sleep(share * whole)
    stopped.kill()
    stopped.wait()
    kept = finished(tmp_path / "stopped")
    assert begin(tmp_path / "stopped").wait() == 0
    assert kept.items() <= finished(tmp_path / "stopped").items(), "a finished task was computed again"
    results = [(tmp_path / name / "result.json").read_bytes() for name in ("whole", "stopped")]
    assert results[0] == results[1]
