"""Does every reader read what it is given, or refuse it in plain words, in little time and memory?

    python benchmarks/fuzz.py [CASES [FORMAT ...]]     prints a line a format and writes results/fuzz.json

A case of a format is fixed by its number. The rows of formats that are not run stay as they were.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from fuzzing import formats, fuzz

PROCESSES_EACH = 200  # how many fewer cases a format has whose every case compiles in a process of its own


def main() -> None:
    cases, names = int(sys.argv[1]) if sys.argv[1:] else 20_000, sys.argv[2:] or list(formats())
    kept = machine.RESULTS / "fuzz.json"
    rows: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["formats"] if kept.exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
            tally = fuzz(name, range(cases // PROCESSES_EACH if name == "kernel" else cases), Path(folder))
        print(tally.report(name), flush=True)
        rows[name] = {
            "cases": tally.cases,
            "violations": len(tally.complaints),
            "classes": {kind: len(cases) for kind, cases in tally.classes().items()},
            "outcomes": dict(tally.outcomes),
            "cpu_ms_a_case": round(1000 * tally.seconds / max(tally.cases, 1), 2),
            "slowest_cpu_s": round(tally.slowest[0], 2),
            "memory_mb": round(tally.memory),
            "machine": machine.note("numpy", "python-libsbml", "antimony"),
        }
        machine.write("fuzz", {"formats": rows})


if __name__ == "__main__":
    main()
