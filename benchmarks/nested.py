"""Formulas that lanes decide as they run, against `monitor` on the path that `replay` gives, run by run.

    python benchmarks/nested.py [FIRST STOP [RUNS]]     writes results/nested.json

Each number is one kernel of random formulas: of what must last, or of delayed counts. A difference is any run on which
the lane says true, false or undecided and the monitor another of these.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from lane_formulas import Case, formula, looking_back

KINDS = {"what lasts": formula, "delayed": looking_back}


def main() -> None:
    given = list(map(int, sys.argv[1:]))
    first, stop, runs = (*given, *(0, 8, 160)[len(given) :])
    rows = []
    for kind, draw in KINDS.items():
        numbers: Counter[str] = Counter()
        apart: list[str] = []
        began = time.process_time()
        for number in range(first, stop):
            case = Case.of(number, draw)
            numbers["formulas"] += len(case.runner.formulas)
            numbers["formulas with a log"] += len(case.logged)
            numbers.update(map(str, case.verdicts(runs)))
            apart += case.apart(runs)
            numbers["runs compared"] += runs * len(case.runner.formulas)
        rows.append({"kind": kind, **numbers, "differences": len(apart), "first": apart[:3]})
        print(
            f"{kind}: {dict(numbers)}, {len(apart)} differences, {time.process_time() - began:.0f} s",
            *apart[:3],
            sep="\n",
        )
    result = {"numbers": [first, stop], "runs": runs, "rows": rows, "machine": machine.note("llvmlite", "numpy")}
    print(machine.write("nested", result))


if __name__ == "__main__":
    main()
