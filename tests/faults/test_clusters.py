"""Clusters whose parts are killed, late, slow, foreign or lying: the same counts, or an error that says what is kept.

The schedulers and workers are real processes of dask on this machine. Killing one loses what it had, at once, because
the cluster is told to allow no failure; tries are counted by sateen.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from clusters import Cluster, wait_for
from small_disks import small_disk
from watchers import Watcher

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills groups of processes"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # connections whose other end was killed
]

SIR = st.Model.parse("species S = 95, I = 5\nS + I -> 2 I @ beta*S*I/100\nI -> 0 @ mass_action(gamma)")
OVER = st.stl("F[0, 60] I == 0")
POINTS = st.Space(beta=(0.05, 0.3), gamma=(0.05, 0.2)).sobol(40, seed=1)
RUNS = 2000
SEED = 2


@pytest.fixture(scope="module")
def reference() -> st.Observations:
    return st.observe(SIR, OVER, POINTS, RUNS, seed=SEED)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pool(cluster: Cluster) -> Iterator[st.Pool]:
    with_two = st.open_pool(cluster.address)
    wait_for(lambda: with_two.places() == 2)
    yield with_two
    with_two.close()


class After(Watcher):
    """Does something once so many chunks have come back."""

    def __init__(self, chunks: int, act: Callable[[], object]) -> None:
        super().__init__()
        self.chunks, self.act = chunks, act

    def advance(self, n: int) -> None:
        super().advance(n)
        if self.calls == self.chunks:
            self.act()


def stored(file: Path) -> list[tuple[int, int]]:
    """The rows of a store, which must be disjoint."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT first, stop FROM chunk ORDER BY first").fetchall()
    connection.close()
    assert all(before[1] <= after[0] for before, after in pairwise(rows))
    return rows


@pytest.mark.parametrize("chunk", [None, 777, 20_000])
def test_a_cluster_makes_the_same_counts(
    pool: st.Pool, reference: st.Observations, chunk: int | None, tmp_path: Path
) -> None:
    file = tmp_path / "runs.db"
    assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=pool, chunk=chunk, store=file) == reference
    assert sum(stop - first for first, stop in stored(file)) == RUNS * len(POINTS)


def test_a_client_and_an_address_are_as_good(cluster: Cluster, pool: Any, reference: st.Observations) -> None:
    for executor in (pool.client, cluster.address):
        assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=executor) == reference
    assert pool.client.status == "running"  # it is not ours to close


def test_a_black_box_that_no_module_has_is_sent(pool: st.Pool) -> None:
    weight = 0.25

    def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
        return bool(rng.random() < weight + theta["beta"])

    there = st.observe(coin, None, POINTS, 30, seed=SEED, executor=pool, chunk=101)
    assert there == st.observe(coin, None, POINTS, 30, seed=SEED)


def test_a_black_box_of_a_module_that_was_changed_is_run_as_it_is_now(
    cluster: Cluster, pool: st.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(cluster.folder))  # where the workers look for modules too
    satisfied = []
    for answer in (True, False):
        (cluster.folder / "edited.py").write_text(f"def f(theta, rng):\n    return {answer}\n")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "edited", raising=False)
        module = importlib.import_module("edited")
        there = st.observe(module.f, None, POINTS, 5, seed=SEED, executor=pool, chunk=20)
        satisfied.append(int(there.satisfied.sum()))
    assert satisfied == [5 * len(POINTS), 0]


def test_a_study_whose_module_was_changed_is_run_as_it_is_now(cluster: Cluster, tmp_path: Path) -> None:
    file = cluster.folder / "edited_too.py"
    text = """
        study = { name = "edited", seed = 1 }
        model = { callable = "edited_too:f" }
        space = { k = [0.1, 0.9] }
        observe = { train = { points = 64, runs = 5 } }
        learn = { learners = ["svi-gp"] }
    """
    (tmp_path / "study.toml").write_text(textwrap.dedent(text))
    found = []
    for answer in (True, False):
        file.write_text(f"def f(theta, rng):\n    return {answer}\n")
        path = os.pathsep.join([str(cluster.folder), *sys.path])
        command = [sys.executable, "-m", "sateen", "run", str(tmp_path / "study.toml"), "--on", cluster.address]
        subprocess.run(
            [*command, "-o", str(tmp_path / "r")],
            env={**os.environ, "PYTHONPATH": path},
            check=True,
            capture_output=True,
        )
        (answered,) = st.Result.load(tmp_path / "r").properties.values()
        found.append(int(answered.train.satisfied.sum()))
    assert found == [5 * 64, 0]


def test_what_a_worker_cannot_load_is_named(pool: st.Pool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "only_here.py").write_text(
        "limit = 3\n\nclass Box:\n    def __call__(self, theta, rng):\n        return True\n"
    )
    (tmp_path / "needy.py").write_text("import only_here\n\ndef f(theta, rng):\n    return only_here.limit > 2\n")
    needy, only_here = importlib.import_module("needy"), importlib.import_module("only_here")
    words = r"a worker on .* cannot run the black box: needy:f cannot be run: .*No module named 'only_here'\n  install"
    with pytest.raises(st.PoolError, match=words):
        st.observe(needy.f, None, POINTS, 5, seed=SEED, executor=pool)
    with pytest.raises(st.PoolError, match=r"a worker cannot do the work of only_here.Box: (.|\n)*install there"):
        st.observe(only_here.Box(), None, POINTS, 5, seed=SEED, executor=pool)


def test_a_black_box_that_ends_its_worker_is_told(tmp_path: Path) -> None:
    def suicidal(theta: dict[str, float], rng: np.random.Generator) -> bool:
        os._exit(3)

    with Cluster(tmp_path, workers=1) as mortal:
        mortal.workers += [mortal.add() for _ in range(5)]
        pool = st.open_pool(mortal.address)
        try:
            wait_for(lambda: pool.places() == 6)
            with pytest.raises(
                st.PoolError, match=r"lost 5 times with its worker(.|\n)*the work itself ends its process"
            ):
                st.observe(suicidal, None, POINTS[:1], 1, seed=SEED, executor=pool)
        finally:
            pool.close()


def test_a_slow_worker_is_doubled_and_the_first_answer_counts(
    cluster: Cluster, pool: Any, reference: st.Observations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time\nfrom sateen.sampling import remote\n"
        "true = remote.true = getattr(remote, 'true', remote.count)\n"  # dask imports this twice
        "def count(*args):\n    time.sleep(4.0)\n    return true(*args)\n"
        "count.__module__, count.__qualname__ = true.__module__, true.__qualname__\nremote.count = count\n"
    )
    before = pool.places()
    worker = cluster.add("--preload", str(slow))
    wait_for(lambda: pool.places() == before + 1)
    try:
        file, submit = tmp_path / "runs.db", pool.submit
        asked = list[tuple[Any, ...]]()
        monkeypatch.setattr(pool, "submit", lambda *call: (asked.append(call), submit(*call))[1])
        assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=pool, chunk=1000, store=file) == reference
        assert len(asked) > len(set(asked))  # some work was begun twice
        assert sum(stop - first for first, stop in stored(file)) == RUNS * len(POINTS)
    finally:
        cluster.kill(worker)
        wait_for(lambda: pool.places() == before)


def test_a_closed_client_is_refused_at_once(cluster: Cluster) -> None:
    from distributed import Client

    client = Client(scheduler_file=str(cluster.file), set_as_default=False)
    address = client.scheduler.address
    pool = st.open_pool(client, patience=600.0)
    client.close()
    began = time.monotonic()
    with pytest.raises(st.InputError, match="executor is a Client that is closed\n  open another one"):
        st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=client)
    with pytest.raises(st.PoolError, match=f"the cluster at {address} has had no worker .*Client was closed"):
        st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=pool)
    assert time.monotonic() - began < 300
    pool.close()


def test_a_black_box_that_cannot_be_sent_is_told(pool: st.Pool) -> None:
    lock = threading.Lock()
    with pytest.raises(st.InputError, match="the black box cannot be sent to other processes"):
        st.observe(lambda theta, rng: lock.locked(), None, POINTS, 5, seed=SEED, executor=pool)


def test_studies_end_with_the_same_results(pool: st.Pool, tmp_path: Path) -> None:
    (tmp_path / "coins.py").write_text("def coin(theta, rng):\n    return rng.random() < theta['k']\n")
    coins = """
        study = { name = "coins", seed = 1 }
        model = { callable = "coins.py:coin" }
        space = { k = [0.1, 0.9] }
        observe = { train = { points = 64, runs = 20 } }
        learn = { learners = ["svi-gp"] }
    """
    decay = """
        study = { name = "decay", seed = 1 }
        model = { text = "species A = 10\\nA -> 0 @ mass_action(k)" }
        space = { k = [0.1, 2] }
        property = { gone = "F[0, 2] A == 0", half = "F[0, 1] A <= 5" }
        observe = { train = { points = 64, runs = 20 } }
        learn = { learners = ["laplace-net"], laplace-net = { nets = 1 } }
    """
    found = {}
    for text in (coins, decay):  # the workers do not have the file of the coin
        study = st.Study.parse(textwrap.dedent(text), file=tmp_path / "study.toml")
        here, there = tmp_path / f"{study.name}-here", tmp_path / f"{study.name}-there"
        study.run(here)
        found[study.name] = study.run(there, executor=pool).provenance
        assert (there / "result.json").read_bytes() == (here / "result.json").read_bytes()
    assert "elsewhere" not in found["coins"]  # a fit that takes no time is no work for others
    elsewhere = found["decay"]["elsewhere"]
    assert set(elsewhere) == {"learn gone laplace-net", "learn half laplace-net"}
    assert all(told["numpy"] == np.__version__ and told["processor"] for told in elsewhere.values())


def test_a_full_disk_is_told_the_workers_become_idle_and_it_goes_on_with_room(
    pool: Any, reference: st.Observations, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        options: dict[str, Any] = {"executor": pool, "chunk": 1000, "store": disk.folder / "runs.db"}
        disk.fill(120)
        with pytest.raises(st.StoreError, match="the disk is full") as caught:
            st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, **options)
        assert caught.value.partial.trials.sum() > 0
        wait_for(lambda: not any(pool.client.processing().values()))
        disk.empty()
        assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, **options) == reference
        assert sum(stop - first for first, stop in stored(disk.folder / "runs.db")) == RUNS * len(POINTS)


def test_workers_that_are_killed_and_one_that_joins_change_nothing(
    cluster: Cluster, pool: st.Pool, reference: st.Observations, tmp_path: Path
) -> None:
    file = tmp_path / "runs.db"
    late: list[float] = []

    def kill_one() -> None:
        cluster.kill(cluster.workers.pop())

    def kill_all() -> None:
        kill_one()
        wait_for(lambda: pool.places() == 0)
        cluster.workers = [cluster.add()]
        late.append(time.monotonic())

    class Both(After):
        def advance(self, n: int) -> None:
            super().advance(n)
            if self.calls == 20:
                kill_all()

    options: dict[str, Any] = {"executor": pool, "chunk": 1000, "store": file}
    assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, progress=Both(6, kill_one), **options) == reference
    assert sum(stop - first for first, stop in stored(file)) == RUNS * len(POINTS)
    assert late


def test_after_the_death_of_the_client_the_workers_become_idle(cluster: Cluster, pool: Any, tmp_path: Path) -> None:
    wait_for(lambda: pool.places() > 0)
    script = f"""
        import sateen as st
        from sateen.core.progress import SILENT

        class Told:
            def start(self, *_): ...
            def advance(self, n): print(n, flush=True)
            def note(self, text): ...
            def finish(self): ...

        model = st.Model.parse({str(SIR)!r})
        points = st.Space(beta=(0.05, 0.3), gamma=(0.05, 0.2)).sobol(40, seed=1)
        st.observe(model, st.stl({str(OVER)!r}), points, 10**9, seed=3, executor={cluster.address!r}, chunk=5000,
            store={str(tmp_path / "runs.db")!r}, progress=Told())
    """
    client = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    for _ in range(3):
        assert client.stdout.readline()
    wait_for(lambda: any(pool.client.processing().values()))
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    wait_for(lambda: not any(pool.client.processing().values()))
    assert stored(tmp_path / "runs.db")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("foreign")) as cluster:
        yield cluster


class TestForeigners:
    """A cluster to which workers come that cannot be used, until one can; then its scheduler dies."""

    def observe(self, cluster: Cluster, patience: float = 60.0, **options: Any) -> st.Observations:
        pool = st.open_pool(cluster.address, patience=patience)
        try:
            wait_for(lambda: pool.places() or not cluster.workers)
            return st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, executor=pool, **options)
        finally:
            pool.close()

    def test_1_without_workers(self, empty: Cluster) -> None:
        with pytest.raises(st.PoolError, match=r"the cluster at tcp://127.0.0.1:\d+ has had no worker for \d+ s"):
            self.observe(empty, patience=1.0)

    def test_2_a_worker_that_cuts_its_answers(self, empty: Cluster, tmp_path: Path) -> None:
        liar = tmp_path / "liar.py"
        liar.write_text(
            "from sateen.sampling import remote\n"
            "true = remote.true = getattr(remote, 'true', remote.count)\n"  # dask imports this twice
            "def count(*args):\n    return true(*args)[:-2]\n"
            "count.__module__, count.__qualname__ = true.__module__, true.__qualname__\nremote.count = count\n"
        )
        empty.workers = [worker := empty.add("--preload", str(liar))]
        with pytest.raises(st.PoolError, match=r"lost 5 times with its worker; .*damaged: its checksum differs"):
            self.observe(empty)
        empty.kill(worker)

    def test_2_a_worker_whose_counts_are_impossible(self, empty: Cluster, tmp_path: Path) -> None:
        liar = tmp_path / "liar.py"
        liar.write_text(
            "import zlib\nfrom sateen.pools import messages\nfrom sateen.sampling import remote\n"
            "true = remote.true = getattr(remote, 'true', remote.count)\n"
            "def count(*args):\n    words, parts = messages.unpacked(true(*args))\n"
            "    counts = zlib.decompress(parts[0])\n"
            "    return messages.packed(words, zlib.compress(bytes([255]) * len(counts)))\n"
            "count.__module__, count.__qualname__ = true.__module__, true.__qualname__\nremote.count = count\n"
        )
        empty.workers = [worker := empty.add("--preload", str(liar))]
        words = r"lost 5 times with its worker; .*counts that these runs cannot have(.|\n)*damaged or impossible"
        with pytest.raises(st.PoolError, match=words):
            self.observe(empty)
        empty.kill(worker)

    def test_3_a_worker_of_another_version(self, empty: Cluster, tmp_path: Path) -> None:
        package = Path(st.__file__).parent
        copy = tmp_path / "other" / "sateen"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        version = copy / "core" / "version.py"
        version.write_text(re.sub('"[0-9.]+"', '"0.0.9"', version.read_text()))
        empty.workers = [
            worker := empty.add(environment={"PYTHONPATH": os.pathsep.join([str(copy.parent), *sys.path])})
        ]
        with pytest.raises(
            st.PoolError, match=rf"not the same .*: sateen 0\.0\.9 there, {st.__version__} here, source"
        ):
            self.observe(empty)
        empty.kill(worker)

    def test_4_a_dead_scheduler_is_told_and_what_is_stored_goes_on(
        self, empty: Cluster, reference: st.Observations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        empty.workers = [empty.add()]
        file = tmp_path / "runs.db"

        def kill() -> None:
            empty.kill(empty.scheduler)

        words = (
            r"the cluster at tcp://127.0.0.1:\d+ has had no worker for \d+ s: its scheduler is gone.*\n  what is sto"
        )
        with pytest.raises(st.PoolError, match=words) as caught:
            self.observe(empty, patience=8.0, chunk=1000, store=file, progress=After(6, kill))
        kept = sum(stop - first for first, stop in stored(file))
        assert kept == caught.value.partial.trials.sum() >= 5000
        assert st.observe(SIR, OVER, POINTS, RUNS, seed=SEED, chunk=7777, store=file) == reference
        assert sum(stop - first for first, stop in stored(file)) == RUNS * len(POINTS)
        monkeypatch.setattr("sateen.pools.cluster._CONNECTING", "1s")  # all of it passes: dask tries until then
        with pytest.raises(st.PoolError, match=r"there is no scheduler at tcp://127.0.0.1:"):
            st.open_pool(empty.address)
