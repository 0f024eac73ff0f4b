"""What it costs to run a study in parts: CPU time of all parts and the merge against one run, and how even parts are.

    python benchmarks/parts.py [RUNS]     prints the figures and writes results/parts.json

The study is SIR with RUNS runs in all (8 million by default). CPU time is that of fresh processes of the command line,
so every part pays for its own start. How even parts are is reckoned, not timed: from the mean number of jumps of a path
at each point, for parts as they are dealt and for parts cut from the campaign in one piece each.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np

import sateen as st
from sateen.sampling.parts import part_runs

ROOT = Path(__file__).resolve().parents[1]
SATEEN = [sys.executable, "-m", "sateen"]
MODEL = "species S = 95, I = 5, R = 0\nconstant N = 100\nS + I -> 2 I @ beta*S*I/N\nI -> R @ gamma*I"
STUDY = """
study = {{ name = "sir", seed = 1 }}
model = {{ text = '''
{model}
''' }}
space = {{ beta = [0.005, 0.3], gamma = [0.005, 0.2] }}
property = {{ dies_out = "(I > 0) U[100, 120] (I == 0)" }}
learn = {{ learners = ["svi-gp"] }}
observe = {{ train = {{ points = 100, runs = {train} }}, test = {{ points = 100, runs = {test} }} }}
"""
PARTS = (4,)
REPEATS = 2  # paths of which the cost of a point is the mean


def cpu(folder: Path, *arguments: str) -> tuple[float, float]:
    """The CPU time and the wall time of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*SATEEN, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def cost_of_parts(folder: Path) -> list[dict[str, float]]:
    """CPU seconds of one run, and of parts with their merge and the run after it."""
    workers = ("--workers", "1")
    cpu(folder, "run", "sir.toml", "--part", "1/100000", "-o", "warm", *workers)  # the kernel is compiled once
    start, _ = cpu(folder, "run", "sir.toml", "--part", "2/100000", "-o", "warm", *workers)
    whole, _ = cpu(folder, "run", "sir.toml", "-o", "alone", *workers)
    rows = []
    for many in PARTS:
        names = [f"{number}-of-{many}" for number in range(1, many + 1)]
        parts = [cpu(folder, "run", "sir.toml", "--part", f"{i}/{many}", "-o", name, *workers)[0]
                 for i, name in enumerate(names, start=1)]  # fmt: skip
        merge, wall = cpu(folder, "merge", *names, "-o", f"all-{many}")
        after, _ = cpu(folder, "run", "sir.toml", "-o", f"all-{many}", *workers)
        results = [(folder / name / "result.json").read_bytes() for name in (f"all-{many}", "alone")]
        assert results[0] == results[1], "the results differ"
        total = sum(parts) + merge + after
        row = {"parts": many, "one run": whole, "all parts": sum(parts), "merge": merge, "run after": after}
        row |= {"merge, wall": wall, "ratio": total / whole, "start of a part": start}
        row["ratio without starts"] = (total - start * (many + 1)) / (whole - start)
        rows.append({key: round(value, 3) for key, value in row.items()})
        print("  ".join(f"{key} {value:.3g}" for key, value in rows[-1].items()), flush=True)
    return rows


def evenness(many: int = 40, runs: int = 1000) -> list[dict[str, object]]:
    """The cost of the dearest part over the mean cost, for several designs."""
    model, space = st.Model.parse(MODEL), st.Space(beta=(0.005, 0.3), gamma=(0.005, 0.2))
    designs = {
        "sobol, 128 points": space.sobol(128, seed=1),
        "uniform, 128 points": space.uniform(128, seed=1),
        "grid, 11 by 11": space.grid(11),
        "grid in beta, 31": st.Space(beta=(0.005, 0.3), gamma=0.05).grid(31),
    }
    rows: list[dict[str, object]] = []
    for name, points in designs.items():
        jumps = [
            np.mean([len(st.simulate(model, points[p], until=120, seed=100 * p + k).times) for k in range(REPEATS)])
            for p in range(len(points))
        ]
        cost = np.repeat(jumps, runs)
        total = len(cost)
        dealt = [sum(cost[a:b].sum() for a, b in part_runs(total, (i + 1, many))) for i in range(many)]
        pieces = [each.sum() for each in np.array_split(cost, many)]
        row = {"design": name, "dealt": max(dealt) / np.mean(dealt), "in one piece": max(pieces) / np.mean(pieces)}
        rows.append({key: value if isinstance(value, str) else round(float(value), 3) for key, value in row.items()})
        print(f"{name:24} dearest of {many} parts: {row['dealt']:.3f} of the mean as dealt, "
              f"{row['in one piece']:.3f} in one piece each", flush=True)  # fmt: skip
    return rows


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 8_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = STUDY.format(model=MODEL, train=runs // 1000, test=runs // 100 - runs // 1000)
        (folder / "sir.toml").write_text(text, encoding="utf-8")
        os.environ["PYTHONPATH"] = str(ROOT / "src")
        costs = cost_of_parts(folder)
    even = evenness()
    about = machine.note("numpy", "llvmlite", "scipy")
    machine.write("parts", {"runs": runs, "CPU seconds": costs, "evenness": even, "machine": about})


if __name__ == "__main__":
    main()
