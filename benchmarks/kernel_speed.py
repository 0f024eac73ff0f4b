"""What a change of the engine costs: events a second of the kernels of two revisions, in interleaved processes.

    python benchmarks/kernel_speed.py REVISION [PROCESSES]     prints a table and writes results/kernel_speed.json

Each process measures every kernel of one revision in CPU time, best of several rounds; the two revisions take turns.
The ratio is that of the medians over processes: above 1, the working tree is slower than REVISION.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
CHILD = f"""
import json, sys
from ssa import QUESTIONS, RACES, TRAJECTORIES, ours, run
speeds = {{}}
for race in RACES:
    for label, formula in {{"no formula": None, **QUESTIONS[race.name]}}.items():
        runner, _ = ours(race, formula)
        until = race.until if formula is None else float("inf")
        pairs = [run(runner, race, TRAJECTORIES[race.name] // 2, seed, until) for seed in range({ROUNDS})]
        speeds[f"{{race.name}}: {{label}}"] = max(events / seconds for seconds, events in pairs)
json.dump(speeds, sys.stdout)
"""


def speeds(tree: Path, cache: Path) -> dict[str, float]:
    """Events a second of every kernel of a source tree, in a process of its own."""
    folders = [tree / "src", ROOT / "benchmarks"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, folders)), "SATEEN_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, stdout=subprocess.PIPE, check=True, cwd=cache)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    revision, processes = sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 20
    about = machine.note("llvmlite", "numpy")
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", before, revision], cwd=ROOT, check=True)
        try:
            measured: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
            for name, tree in (("before", before), ("now", ROOT)):
                (Path(folder) / f"cache-{name}").mkdir(mode=0o700)
                speeds(tree, Path(folder) / f"cache-{name}")  # compiles, and is not counted
            for _ in range(processes):
                measured["before"].append(speeds(before, Path(folder) / "cache-before"))
                measured["now"].append(speeds(ROOT, Path(folder) / "cache-now"))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", before], cwd=ROOT, check=True)
    rows = []
    print(f"{'':40} {'before':>10} {'now':>10} {'ratio':>7}   (million events a second, medians)")
    for kernel in measured["now"][0]:
        medians = {name: statistics.median(each[kernel] for each in sets) for name, sets in measured.items()}
        ratio = medians["before"] / medians["now"]
        rows.append({"kernel": kernel, **medians, "ratio": ratio})
        print(f"{kernel:40} {medians['before'] / 1e6:10.1f} {medians['now'] / 1e6:10.1f} {ratio:7.3f}")
    overall = statistics.geometric_mean(row["ratio"] for row in rows)
    print(f"geometric mean of the ratios: {overall:.3f}")
    result = {"revision": revision, "processes": processes, "rows": rows, "geometric_mean": overall, "machine": about}
    print(machine.write("kernel_speed", result))


if __name__ == "__main__":
    main()
