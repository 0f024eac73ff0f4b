"""How long the command line takes to answer: wall time and CPU time of fresh processes, the best of several.

    python benchmarks/startup.py [ROUNDS]     prints a table and writes results/startup.json

The first process of each row is not counted: it warms the file system's cache and writes the compiled modules.
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


def seconds(program: str, arguments: tuple[str, ...], rounds: int) -> tuple[float, float]:
    """The least wall time and the least CPU time of fresh processes."""
    wall, cpu = [], []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "SATEEN_CACHE_DIR": cache}
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-c", program, *arguments]
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True, env=environment)
            wall.append(time.perf_counter() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall[1:]), min(cpu[1:])


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 10
    rows = []
    print(f"{'':40} {'wall':>8} {'CPU':>8} {'target':>8}")
    for name, (program, arguments, target) in CASES.items():
        wall, cpu = seconds(program, arguments, rounds)
        rows.append({"what": name, "wall": round(wall, 4), "cpu": round(cpu, 4), "target": target})
        print(f"{name:40} {wall:6.3f} s {cpu:6.3f} s {f'{target:6.2f} s' if target else '':>8}")
    machine.write("startup", {"rounds": rounds, "rows": rows, "machine": machine.note("numpy", "click", "scipy")})


if __name__ == "__main__":
    main()
