"""How much the speed of one kernel varies from process to process, and how much within one: events a second, CPU time.

    python benchmarks/kernel_spread.py [PROCESSES]     prints a table and writes results/kernel_spread.json

Each process measures every kernel in several rounds, all kernels in each. What a process reaches at best should vary by
no more than 10 %. The *pace* of a process is how fast its kernels are on the average, each beside the median of all
processes. What is left of the spread when every speed is divided by that pace is what a kernel may owe to where its
code and its data lie; the pace itself slows all kernels alike, whatever their layout: other work, or the processor's
frequency.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import machine
import numpy as np

ROUNDS = 6
TARGET = 0.10
CHILD = f"""
import json, sys
from ssa import RACES, TRAJECTORIES, ours, run
runners = {{race.name: (race, ours(race, None)[0]) for race in RACES}}
speeds = {{name: [] for name in runners}}
for seed in range({ROUNDS}):
    for name, (race, runner) in runners.items():
        seconds, events = run(runner, race, TRAJECTORIES[name] // 4, seed, race.until)
        speeds[name].append(events / seconds)
json.dump(speeds, sys.stdout)
"""


def main() -> None:
    processes = int(sys.argv[1]) if sys.argv[1:] else 20
    command, here = [sys.executable, "-c", CHILD], Path(__file__).resolve().parent
    measured = [json.loads(subprocess.check_output(command, cwd=here)) for _ in range(processes)]
    best = {name: np.array([max(speeds[name]) for speeds in measured]) for name in measured[0]}
    relative = {name: speeds / np.median(speeds) for name, speeds in best.items()}
    pace = np.exp(np.mean([np.log(each) for each in relative.values()], axis=0))
    rows = []
    print(f"{'':8} {'slowest':>8} {'median':>8} {'fastest':>8} {'spread':>8} {'without pace':>13}   (Mevents/s)")
    for name, speeds in best.items():
        spread, rest = (float(np.abs(each - 1.0).max()) for each in (relative[name], relative[name] / pace))
        rows.append({"kernel": name, "best": speeds.tolist(), "spread": spread, "without_pace": rest})
        shown = " ".join(f"{each(speeds) / 1e6:8.0f}" for each in (np.min, np.median, np.max))
        print(f"{name:8} {shown} {spread:8.1%} {rest:13.1%}")
    about = machine.note("llvmlite", "numpy")
    machine.write("kernel_spread", {"processes": processes, "target": TARGET, "rows": rows, "machine": about})


if __name__ == "__main__":
    main()
