"""Workers that are killed, or run out of memory: an error that says what next, never a hang, and nothing is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import sateen as st
from fault_runs import Bench, finished
from watchers import Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

DECAY = st.Model.parse("species A = 5\nA -> 0 @ mass_action(k)")
GONE = st.stl("F[0, 2] A == 0")
POINTS = st.Space(k=(0.1, 2)).grid(5)
RUNS = 2000


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("workers"))


class Killer(Watcher):
    """Kills a worker of a pool once a chunk has come back."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        super().__init__()
        self.pool = pool

    def advance(self, n: int) -> None:
        super().advance(n)
        if self.calls == 2:  # the first run is made in this process
            os.kill(min(self.pool._processes), signal.SIGKILL)


def test_an_executor_whose_worker_is_killed_is_told_and_the_stored_runs_are_kept(tmp_path: Path) -> None:
    wanted = st.observe(DECAY, GONE, POINTS, RUNS, seed=1)
    store = tmp_path / "runs.db"
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        killer = Killer(pool)
        told = r"a worker of the executor died: .*\n  it had too little memory, .*what is stored is kept"
        with pytest.raises(st.SimulationError, match=told):
            st.observe(DECAY, GONE, POINTS, RUNS, seed=1, executor=pool, store=store, chunk=10, progress=killer)
        with pytest.raises(st.SimulationError, match=told):  # the pool is of no use any more, and that is told too
            st.observe(DECAY, GONE, POINTS, RUNS, seed=1, executor=pool, store=store)
    watcher = Watcher()
    assert st.observe(DECAY, GONE, POINTS, RUNS, seed=1, store=store, progress=watcher) == wanted
    assert 0 < watcher.total <= RUNS * len(POINTS) - killer.done


def test_an_executor_that_is_shut_down_is_told() -> None:
    pool = ProcessPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(st.InputError, match=r"the executor accepts no work: .*\n  give an executor that is open"):
        st.observe(DECAY, GONE, POINTS, RUNS, seed=1, executor=pool)


@pytest.mark.slow
def test_a_learning_process_that_is_killed_is_told_and_the_run_goes_on_later(bench: Bench) -> None:
    command = bench.begin("side by side", "worker")
    assert command.until(command.workers)
    command.send(signal.SIGKILL, to="worker")
    ended = command.end()
    assert ended.code == 1
    assert ended.err.endswith(
        "SateenError: a worker process exited unexpectedly; the system may have been short of memory\n"
        "  run the same again with fewer workers: what is finished is kept"
    )
    bench.check("side by side", "worker")


@pytest.mark.slow
def test_a_learning_process_that_is_out_of_memory_is_told_and_what_is_finished_is_kept(bench: Bench) -> None:
    ended = bench.begin("hungry", "hungry").end()
    assert ended.code == 1
    assert "Traceback" not in ended.err, ended.err
    assert "SateenError: there is not enough memory to compute learn." in ended.err
    assert "what is finished is kept" in ended.err
    assert any("train.gone" in file.name for file in finished(bench.folder / "hungry"))
