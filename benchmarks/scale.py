"""What a cluster costs, on this machine: a scheduler and workers of dask as processes of their own.

    python benchmarks/scale.py [PART ...]     prints each part and keeps it in results/scale.json

- `cpu`: the CPU time of all processes, client, scheduler and two workers, over that of local threads, on the same runs;
  with dask's profiler, which is on unless it is told off, and without.
- `flight`: the CPU time of the client for each piece, with 2,000 under way.
- `points`: 10^6 points: what is sent, and the memory of the client.
- `waits`: from a worker's joining to its first work; from the death of the scheduler to the error, beyond the patience.
- `same`: fingerprints of three sources by 1, 2 and 4 workers in three cuts, with each fault of `FAULTS`: workers that
  are killed, join late or are slow, and a client that is killed. SCALE_WORKERS=1 and SCALE_FAULTS=0,3 choose
  some of them.
- `paper`: how long a reduced `sateen paper random` takes `local:2`, over two processes without a pool, turn by turn,
  with warm caches; SCALE_PARTS=r02,r03, SCALE_SHARE=0.1 and SCALE_TURNS=3 choose how much of it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import sateen as st
from clusters import Cluster, wait_for
from sateen.paper.cases.configurations import configuration
from sateen.paper.reproduction import Reproduction
from sateen.pools.pool import opened
from watchers import Watcher

SECONDS = float(os.environ.get("SCALE_SECONDS", "60"))  # of CPU that local threads take, in the part `cpu`
NAMES = {"sir": "a", "phosphorelay": "f"}


PROFILER = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"


@contextmanager
def cluster(workers: int, threads: int = 1, settings: Any = None) -> Iterator[tuple[Cluster, Any]]:
    """A cluster and the pool of its workers."""
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), settings=settings) as made:
        made.workers = [made.add(threads=threads) for _ in range(workers)]
        pool = st.open_pool(made.address, patience=5.0)
        try:
            wait_for(lambda: pool.places() == workers * threads)
            yield made, pool
        finally:
            pool.close()


def cpu_of(process: Any) -> float:
    """The CPU seconds of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def question(name: str) -> tuple[Any, Any, st.Points]:
    """A model, a formula and points."""
    case = configuration(NAMES[name])
    return case.model, case.formula, case.space.sobol(512, seed=1)


def part_cpu() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for profiler in (True, False):
        with cluster(2, settings={PROFILER: str(profiler)}) as (made, pool):
            for name in NAMES:
                model, formula, points = question(name)
                st.observe(model, formula, points, 20, seed=1, workers=2)
                st.observe(model, formula, points, 20, seed=1, executor=pool, chunk=1000)  # all have the kernel now
                if name not in found:
                    start = time.process_time()
                    st.observe(model, formula, points, 500, seed=2, workers=2)
                    found[name] = {"runs": max(20, int(500 * SECONDS / (time.process_time() - start))) * len(points)}
                runs = found[name]["runs"] // len(points)
                start = time.process_time()
                here = st.observe(model, formula, points, runs, seed=3, workers=2)
                local = time.process_time() - start
                before, start = list(map(cpu_of, made.processes)), time.process_time()
                there = st.observe(model, formula, points, runs, seed=3, executor=pool)
                client = time.process_time() - start
                scheduler, *workers = (cpu_of(each) - was for each, was in zip(made.processes, before, strict=True))
                assert here == there
                row = {"local": local, "client": client, "scheduler": scheduler, "workers": sum(workers),
                       "ratio": (client + scheduler + sum(workers)) / local}  # fmt: skip
                found[name]["with profiler" if profiler else "without profiler"] = row
                print(f"{name}, profiler {profiler}: {row}", flush=True)
    return found


def part_flight() -> dict[str, Any]:
    model, formula, points = question("sir")
    with cluster(1, threads=1000) as (_, pool):
        st.observe(model, formula, points, 1, seed=1, executor=pool, chunk=64)
        pieces, start = 6000, time.process_time()
        st.observe(model, formula, points[:60], 100, seed=1, executor=pool, chunk=1)
        return {"pieces": pieces, "milliseconds": 1000 * (time.process_time() - start) / pieces}


def part_points() -> dict[str, Any]:
    model, formula, points = question("sir")
    points = points.space.uniform(10**6, seed=1)
    sent = [0, 0]

    def counted(submit: Callable[..., Any]) -> Callable[..., Any]:
        def counting(work: Any, /, *args: Any) -> Any:
            sent[0] += sum(len(each) for each in args if isinstance(each, bytes))
            sent[1] += 1
            return submit(work, *args)

        return counting

    with cluster(2) as (_, pool):
        pool.submit = counted(pool.submit)
        st.observe(model, formula, points, 1, seed=1, executor=pool)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"points": len(points), "pieces": sent[1], "sent_megabytes": sent[0] / 1e6, "client_megabytes": most}


def part_waits() -> dict[str, Any]:
    model, formula, points = question("sir")
    told: dict[str, float] = {}
    with cluster(1) as (made, pool):

        def watch() -> None:
            time.sleep(2)
            client = pool.client
            known = set(client.nthreads())
            made.add()
            wait_for(lambda: set(client.nthreads()) - known)
            joined = time.monotonic()
            (new,) = set(client.nthreads()) - known
            wait_for(lambda: client.processing().get(new))
            told["new_worker"] = time.monotonic() - joined
            made.kill(made.scheduler)
            told["died"] = time.monotonic()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            st.observe(model, formula, points, 10**9, seed=1, executor=pool)
        except st.PoolError as error:
            print(error)
        told["dead_scheduler_beyond_patience"] = time.monotonic() - told.pop("died") - pool.patience
        watcher.join()
    return told


def coin(theta: dict[str, float], rng: Any) -> bool:
    """The black box, which a store knows by its text."""
    return bool(rng.random() < theta["k"])


def sources() -> dict[str, tuple[Any, Any, st.Points, int]]:
    """What the part `same` asks of each source: a model, a formula, points and runs."""
    models = {name: (*question(name), 40) for name in NAMES}
    return {**models, "black box": (coin, None, st.Space(k=(0.0, 1.0)).grid(300), 40)}


class Then(Watcher):
    """Does something once, when two pieces have come back."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def advance(self, n: int) -> None:
        super().advance(n)
        if self.calls == 2:
            self.act()


class Faults:
    """What can go wrong with a cluster of so many workers while a campaign runs, each a method."""

    def __init__(self, made: Cluster, pool: Any, workers: int) -> None:
        self.made, self.pool, self.workers = made, pool, workers

    def none(self) -> None: ...

    def kill(self) -> None:
        self.made.kill(self.made.workers.pop())
        self.made.workers.append(self.made.add())

    def kill_all(self) -> None:
        while self.made.workers:
            self.made.kill(self.made.workers.pop())
        wait_for(lambda: self.pool.places() == 0)
        self.made.workers = [self.made.add() for _ in range(self.workers)]

    def late(self) -> None:
        there = self.pool.places()
        self.made.workers.append(self.made.add())
        wait_for(lambda: self.pool.places() > there)

    def recovered(self) -> None:
        """As many workers as at the beginning, before the next campaign."""
        while len(self.made.workers) > self.workers:
            self.made.kill(self.made.workers.pop())
        wait_for(lambda: self.pool.places() == len(self.made.workers))


# The settings of the scheduler, what happens in the midst of a campaign, and whether one worker more is slow.
TOLERANT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3"}  # dask's own; those of `clusters.py` allow none
FAULTS = {
    "none": ({}, "none", False),
    "one worker killed": (TOLERANT, "kill", False),
    "one worker killed, no failures allowed": ({}, "kill", False),
    "all workers killed": ({}, "kill_all", False),
    "a worker joins late": ({}, "late", False),
    "a slow worker, and work begun twice": ({}, "none", True),
    "the client killed, and resumed": ({}, "client", False),
}
SLOW = """
import time
from sateen.sampling import remote
true = remote.true = getattr(remote, "true", remote.count)
def count(*args):
    time.sleep(2.5)
    return true(*args)
count.__module__, count.__qualname__ = true.__module__, true.__qualname__
remote.count = count
"""
CUTS = (None, 331, 1800)


def killed_client(made: Cluster, name: str, chunk: int | None, store: Path) -> None:
    """A process that makes these runs, and is killed when it has told of two pieces."""
    asked = ["--client", name, made.address, str(chunk or 0), str(store)]
    client = subprocess.Popen([sys.executable, __file__, *asked], stdout=subprocess.PIPE)
    assert client.stdout is not None
    for _ in range(2):
        client.stdout.readline()
    client.kill()
    client.wait()
    client.stdout.close()


def client(name: str, address: str, chunk: str, store: str) -> None:
    """What the process does that is killed."""

    class Telling(Watcher):
        def advance(self, n: int) -> None:
            print(n, flush=True)

    options: dict[str, Any] = {"executor": address, "chunk": int(chunk) or None, "store": store}
    st.observe(*sources()[name], seed=4, progress=Telling(), **options)


def part_same() -> dict[str, Any]:
    asked = sources()
    wanted = {name: st.observe(*given, seed=4).fingerprint for name, given in asked.items()}
    same, different, begun = 0, [], time.monotonic()
    chosen = os.environ.get("SCALE_FAULTS", ",".join(map(str, range(len(FAULTS)))))
    faults = {name: FAULTS[name] for place, name in enumerate(FAULTS) if str(place) in chosen.split(",")}
    for workers in map(int, os.environ.get("SCALE_WORKERS", "1,2,4").split(",")):
        for fault, (settings, act, slow) in faults.items():
            with cluster(workers, settings=settings) as (made, pool):
                pool.patience = 60.0
                happens = Faults(made, pool, workers)
                if slow:
                    (made.folder / "slow.py").write_text(SLOW)
                    made.add("--preload", str(made.folder / "slow.py"))
                    wait_for(lambda pool=pool, all_=workers + 1: pool.places() == all_)
                for name, given in asked.items():
                    for chunk in CUTS:
                        options: dict[str, Any] = {"executor": pool, "chunk": chunk}
                        if act == "client":
                            store = made.folder / f"{name}-{chunk}.db"
                            killed_client(made, name, chunk, store)
                            options = {"executor": pool, "chunk": 777, "store": store}
                        else:
                            options["progress"] = Then(getattr(happens, act))
                        if st.observe(*given, seed=4, **options).fingerprint == wanted[name]:
                            same += 1
                        else:
                            different.append([workers, fault, name, chunk])
                        if not slow:
                            happens.recovered()
            passed = f"{time.monotonic() - begun:.0f} s"
            print(f"{workers} workers, {fault}: {same} the same, {len(different)} different; {passed}", flush=True)
    return {"same": same, "different": different, "faults": list(faults), "seconds": time.monotonic() - begun}


def cpu_of_all() -> float:
    """The CPU seconds of this process and of all that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def part_paper() -> dict[str, Any]:
    """A reduced `sateen paper random` by two processes and by `local:2`, turn by turn; the first turns warm caches."""
    parts = os.environ.get("SCALE_PARTS", "random").split(",")
    share, turns = float(os.environ.get("SCALE_SHARE", "0.1")), int(os.environ.get("SCALE_TURNS", "3"))
    asked: dict[str, Any] = {"learners": ("svi-gp", "default"), "seeds": 1, "workers": 2, "progress": Watcher()}
    clock: dict[str, list[float]] = {"two processes": [], "local:2": []}
    cpu: dict[str, list[float]] = {name: [] for name in clock}
    stages: dict[str, list[dict[str, float]]] = {name: [] for name in clock}
    scores = []
    for turn in range(1 + turns):
        for name in clock if turn % 2 else reversed(clock):
            with tempfile.TemporaryDirectory() as folder:
                start, used = time.perf_counter(), cpu_of_all()
                with opened(name if name.startswith("local") else None) as pool:
                    run = Reproduction(parts, folder, share=share, pool=pool, **asked)
                    found = run.run()
                seconds, used = time.perf_counter() - start, cpu_of_all() - used
            scores.append([(row.learner, row.figures["rmse"]) for row in found.dimensions])
            print(f"{name}, {f'turn {turn}' if turn else 'to warm caches'}: {seconds:.1f} s, CPU {used:.1f} s; "
                  f"{ {stage: round(each, 1) for stage, each in run.spent.items()} }", flush=True)  # fmt: skip
            if turn:
                clock[name].append(seconds)
                cpu[name].append(used)
                stages[name].append(dict(run.spent))
    assert all(each == scores[0] for each in scores)
    best, least = ({name: min(each) for name, each in told.items()} for told in (clock, cpu))
    return {"parts": parts, "share": share, "seconds": clock, "cpu": cpu, "stages": stages,
            "ratio": best["local:2"] / best["two processes"],
            "cpu_ratio": least["local:2"] / least["two processes"]}  # fmt: skip


PARTS = {"cpu": part_cpu, "flight": part_flight, "points": part_points, "waits": part_waits, "same": part_same,
         "paper": part_paper}  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        client(*sys.argv[2:])
        return
    file = machine.RESULTS / "scale.json"
    for name in sys.argv[1:] or PARTS:
        result = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        found = {**PARTS[name](), "machine": machine.note("dask", "distributed", "llvmlite", "numpy")}
        print(f"{name}: {found}", flush=True)
        machine.write("scale", {**result, name: found})


if __name__ == "__main__":
    main()
