"""How long the first answer takes: wall time and CPU time of fresh processes, the best of several.

    python benchmarks/startup.py [ROUNDS]     prints a table and writes results/startup.json

The first process of each row is not counted: it warms the file system's cache and writes the compiled modules. Where a
row is "cold", every process has an empty cache of kernels; where it is "kept", all processes share one. Counts are
those of 64 points with 50 runs each, and fits are to 256 points with 50 runs each, of the epidemic SIR with one
parameter. The rows "another number" first count under one formula, and the CPU time is that of counting under a second
formula of the same process whose bounds and threshold differ, compilation included.
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

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "import sys; from sateen.cli import main; main(sys.argv[1:], prog_name='sateen')"
MODEL = """
import sateen as st
model = st.Model.parse("species S = 95, I = 5, R = 0\\nS + I -> 2 I @ beta * S * I / 100\\nI -> R @ 0.05 * I")
space = st.Space(beta=(0.005, 0.3))
def observe(formula, points):
    return st.observe(model, st.stl(formula), space.sobol(points, seed=1), runs=50, seed=2, workers=1)
"""
COUNTS = MODEL + "import sys; observe(sys.argv[1], 64)"
FIT = MODEL + "import sys; getattr(st, sys.argv[1])().fit(observe('(I > 0) U[100, 120] (I == 0)', 256), seed=3)"
# What the process itself measures is printed: CPU seconds of counting under the second formula.
ANOTHER = (
    MODEL
    + """
import sys, time
observe(sys.argv[1], 64)
began = time.process_time()
observe(sys.argv[2], 64)
print(time.process_time() - began)
"""
)
FORMULAS = {
    "flat": ("(I > 0) U[100, 120] (I == 0)", "(I > 0) U[90, 125] (I == 0)"),
    "nested": ("F[0, 50] G[0, 10] I > 40", "F[0, 60] G[0, 12] I > 30"),
    "delayed": ("F[0, 50] I > I(t-5) + 10", "F[0, 60] I > I(t-4) + 12"),
}
# Name: the program, its arguments, whether the cache is kept, and the CPU time of the machine to reach.
FIRST: dict[str, tuple[str, tuple[str, ...], bool, float | None]] = {
    **{
        f"counts, {name}, cold": (COUNTS, pair[:1], False, 1.8 if name == "flat" else 3.5)
        for name, pair in FORMULAS.items()
    },
    **{
        f"counts, {name}, kept": (COUNTS, pair[:1], True, 0.6 if name == "flat" else None)
        for name, pair in FORMULAS.items()
    },
    **{f"another number, {name}": (ANOTHER, pair, True, None) for name, pair in FORMULAS.items()},
    "SVIBNN, cold": (FIT, ("SVIBNN",), False, None),
    "SVIBNN, kept": (FIT, ("SVIBNN",), True, 2.5),
    "LaplaceNet, cold": (FIT, ("LaplaceNet",), False, None),
    "LaplaceNet, kept": (FIT, ("LaplaceNet",), True, 5.5),
}
# Name: the program, its arguments, and the wall time that it should not exceed on an idle machine.
CASES: dict[str, tuple[str, tuple[str, ...], float | None]] = {
    "python": ("pass", (), None),
    "import sateen": ("import sateen", (), 0.05),
    "sateen --help": (COMMAND, ("--help",), 0.35),
    "sateen learn --help": (COMMAND, ("learn", "--help"), None),
    "sateen inspect examples/sir.sateen": (COMMAND, ("inspect", "examples/sir.sateen"), None),
    "sateen inspect examples/sir.toml": (COMMAND, ("inspect", "examples/sir.toml"), 0.6),
    "sateen run --dry-run examples/sir.toml": (COMMAND, ("run", "--dry-run", "examples/sir.toml"), None),
}


def seconds(program: str, arguments: tuple[str, ...], rounds: int, kept: bool = False) -> tuple[float, float]:
    """The least wall time and the least CPU time of fresh processes, or the least CPU time that they print."""
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        for place in range(rounds + 1):
            cache = Path(folder) / ("kept" if kept else str(place))
            environment = {**os.environ, "SATEEN_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-c", program, *arguments]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, env=environment, text=True)
            wall.append(time.perf_counter() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            cpu.append(float(done.stdout) if program is ANOTHER else spent)
    return min(wall[1:]), min(cpu[1:])


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 10
    rows = []
    print(f"{'':40} {'wall':>8} {'CPU':>8} {'target':>8}")
    cases = {name: (program, arguments, False, target) for name, (program, arguments, target) in CASES.items()}
    for name, (program, arguments, kept, target) in {**cases, **FIRST}.items():
        wall, cpu = seconds(program, arguments, rounds, kept)
        rows.append({"what": name, "wall": round(wall, 4), "cpu": round(cpu, 4), "target": target})
        aim = "" if target is None else f"{target:6.2f} s"
        print(f"{name:40} {wall:6.3f} s {cpu:6.3f} s {aim:>8}", flush=True)
    about = machine.note("numpy", "click", "scipy", "llvmlite", "jax")
    machine.write("startup", {"rounds": rounds, "rows": rows, "machine": about})


if __name__ == "__main__":
    main()
