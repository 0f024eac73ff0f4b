"""How fast and how large the server of `sateen serve` is, and what its workers cost, without a browser.

    python benchmarks/serve.py     prints a table and writes results/serve.json

One visit with the SIR example. Wall times hold for an idle machine, and the result says how loaded it was; where it
matters CPU times stand beside them. The lag of the event loop is the time of a request that the loop answers by itself.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from sateen.serve.frames import read_frame
from serving import Serving, sir

POINTS = 1000  # until which frames are looked at
STOPS = 5
COMPILING = 0.1  # seconds after a start, in which a simulator is not compiled
TICKS = os.sysconf("SC_CLK_TCK")
AT = {"beta": 0.1, "gamma": 0.05}
# What is measured, with its limit (SERVE.md, "To reach").
LIMITS = {
    "workers warm": 4.0,
    "CPU until the workers are warm, larger one": None,
    "start to the first map, kernel cached": 0.5,
    "between frames up to 1,000 points, median": 0.3,
    "between frames up to 1,000 points, longest": 2.0,
    "CPU between frames, median": None,
    "CPU between frames, longest": None,
    "click to 20 runs while learning, 95th percentile": 0.4,
    "lag of the loop while learning, 95th percentile": 0.1,
    "lag of the loop while learning, longest": 0.1,
    "stop while learning, longest": 0.5,
    "start to the first picture, kernel not cached": 1.5,
    "stop while compiling": 0.5,
    "end of the server": 3.0,
}


def cpu(pid: int) -> float:
    """The CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> float:
    """The most memory that a process has had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def first_frame(serving: Serving, counted: bool) -> float:
    """Seconds from a start to the first frame; it may be a preview, of runs that are not counted, or may not."""
    began = time.perf_counter()
    serving.post("campaign", doc=sir())
    while True:
        frame = serving.frame()
        if frame and not (counted and read_frame(frame)[0]["preview"]):
            return time.perf_counter() - began
        time.sleep(0.005)


def learning(serving: Serving) -> dict[str, Any]:
    """Frames, clicks and requests while a campaign learns."""
    clicks: list[float] = []
    lags: list[float] = []
    done = threading.Event()

    def click() -> None:
        batch = 0
        while not done.is_set():
            batch, began = batch + 1, time.perf_counter()
            serving.post("runs", theta=AT, count=20, batch=batch)
            clicks.append(time.perf_counter() - began)
            time.sleep(0.2)

    def look() -> None:
        while not done.is_set():
            began = time.perf_counter()
            serving.client.get("/api/frame", params={"after": 10**9})
            lags.append(time.perf_counter() - began)
            time.sleep(0.01)

    first = first_frame(serving, counted=True)
    learner = serving.learner()
    threads = [threading.Thread(target=each) for each in (click, look)]
    for thread in threads:
        thread.start()
    at, spent, number, points = [], [], 0, 0
    while points < POINTS:
        frame = serving.frame(number)
        if frame:
            head = read_frame(frame)[0]
            number, points = head["frame"], head["points"]
            at.append(time.perf_counter())
            spent.append(cpu(learner))
        time.sleep(0.01)
    done.set()
    for thread in threads:
        thread.join()
    gaps, costs = ([b - a for a, b in pairwise(times)] for times in (at, spent))
    return {
        "start to the first map, kernel cached": first,
        "between frames up to 1,000 points, median": statistics.median(gaps),
        "between frames up to 1,000 points, longest": max(gaps),
        "CPU between frames, median": statistics.median(costs),
        "CPU between frames, longest": max(costs),
        "click to 20 runs while learning, 95th percentile": sorted(clicks)[int(0.95 * len(clicks))],
        "lag of the loop while learning, 95th percentile": sorted(lags)[int(0.95 * len(lags))],
        "lag of the loop while learning, longest": max(lags),
    }


def stopped(serving: Serving) -> float:
    """Seconds that a stop takes."""
    began = time.perf_counter()
    serving.post("stop")
    return time.perf_counter() - began


def visit(cache: str) -> tuple[dict[str, float], dict[str, float]]:
    """The seconds and the megabytes of one visit."""
    os.environ["SATEEN_CACHE_DIR"] = cache
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with Serving(folder) as serving:
            serving.until(lambda state: state["worker"] == "warm")
            took = {"workers warm": time.perf_counter() - began}
            took["CPU until the workers are warm, larger one"] = max(map(cpu, serving.workers()))
            took["start to the first picture, kernel not cached"] = first_frame(serving, counted=False)
            serving.post("campaign", doc=sir(formula="F[0, 100] G[0, 1] I < 1"))
            time.sleep(COMPILING)
            took["stop while compiling"] = stopped(serving)
            serving.post("campaign", doc=sir())
            serving.until(lambda state: state["points"] >= 64)
            serving.post("stop")
            serving.settled()
            took |= learning(serving)
            stops = []
            for _ in range(STOPS):
                stops.append(stopped(serving))
                serving.settled()
                points = serving.state()["points"]
                serving.post("resume")
                serving.until(lambda state, points=points: state["points"] > points)
            took["stop while learning, longest"] = max(stops)
            sizes = {"server": memory(serving.process.pid)}
            sizes["largest worker"] = max(map(memory, serving.workers()))
            began = time.perf_counter()
            serving.process.terminate()
            serving.process.wait()
            took["end of the server"] = time.perf_counter() - began
    return took, sizes


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        took, sizes = visit(cache)
    for name, limit in LIMITS.items():
        print(f"{name:52} {took[name]:7.3f} s {f'{limit:6.2f} s' if limit else '':>9}")
    for name, limit in (("server", 150), ("largest worker", 400)):
        print(f"{'memory of the ' + name:52} {sizes[name]:7.0f} MB {limit:5} MB")
    result = {"seconds": {name: round(each, 4) for name, each in took.items()}, "limits": LIMITS}
    sizes = {name: round(each) for name, each in sizes.items()}
    machine.write("serve", {**result, "megabytes": sizes, "machine": machine.note("starlette", "uvicorn", "numpy")})


if __name__ == "__main__":
    main()
