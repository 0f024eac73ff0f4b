"""How long `learn` takes on random networks with 8 rates and more: CPU seconds of new processes, compilation included.

    python benchmarks/learn_time.py [PROBLEM ...]   prints a table and writes results/learn-time.json

Each problem has a process of its own, in which `learn` has the learner that it chooses itself. CPU seconds are those of
all threads together, the linear algebra kept on one. The networks named `fresh` are those on which nothing was chosen.
Training sets of theirs are number 21, those of other problems number 1: see learning_data.py.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import time
from typing import Any, Final

import learning_data
import machine
import numpy as np

import sateen as st

PROBLEMS: Final = tuple(f"{family}/r{rates:02d}/phi1" for rates in (8, 12, 16, 20) for family in ("fresh", "pinned"))
MEDIAN, WORST = 15.0, 22.0  # CPU seconds that it should not exceed


def one(name: str) -> dict[str, Any]:
    """The time of one fit in this process."""
    number = 21 if name.startswith("fresh") else 1
    observations = learning_data.training(learning_data.problem(name), number)
    cpu, wall = time.process_time(), time.perf_counter()
    posterior: Any = st.learn(observations, seed=number)
    spent = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    return {"problem": name, "number": number, "kind": posterior.kind, "why": posterior.record.notes[0], **spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--one", action="store_true", help="fit the only problem in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.problems)))
        return
    rows = list[dict[str, Any]]()
    print(f"{'problem':<16}{'CPU s':>8}{'wall s':>8}  learner and why")
    for name in options.problems:
        told = subprocess.run([sys.executable, __file__, name, "--one"], capture_output=True, text=True, check=True)
        row = json.loads(told.stdout.splitlines()[-1])
        rows.append(row)
        print(f"{name:<16}{row['cpu_seconds']:>8.1f}{row['wall_seconds']:>8.1f}  {row['why']}", flush=True)
    spent = [row["cpu_seconds"] for row in rows]
    result = {"median": float(np.median(spent)), "worst": max(spent), "target": {"median": MEDIAN, "worst": WORST}}
    print(f"median {result['median']:.1f} (target {MEDIAN:g}), worst {result['worst']:.1f} (target {WORST:g}) CPU s")
    machine.write("learn-time", {"machine": machine.note("numpy", "scipy", "jax", "optax"), **result, "rows": rows})


if __name__ == "__main__":
    main()
