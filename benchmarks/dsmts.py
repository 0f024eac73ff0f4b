"""The SBML discrete stochastic test suite: how far 10,000 runs of every case are from what is known.

    SATEEN_EXTERNAL_DATA=... python benchmarks/dsmts.py            prints a table and writes results/dsmts.json

A row is a case: how many comparisons of a mean and of a deviation it makes; the largest |Z| of a mean; the largest |Z|
of a variance, with its standard error from the fourth moment; and the suite's own counts, |Z| > 3 of means and |Y| > 5
of variances, which may be a few in a hundred. Where the known deviation is 0, a run that differs is `wrong`.
Case 33 has two rows: against the table that follows from its model, and against the published one, which is that of
another chain (tests/dsmts_cases.py says which).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import machine
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from dsmts_cases import FAULTY, RUNS, case_folders, scores


def main() -> None:
    folders = case_folders(Path(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere")))
    if not folders:
        raise SystemExit("SATEEN_EXTERNAL_DATA names no folder with dsmts")
    rows = []
    print(f"{'case':8}{'compared':>9}{'|Z| mean':>10}{'|Z| var.':>10}{'|Z| > 3':>9}{'|Y| > 5':>9}{'wrong':>7}{'s':>7}")
    published = [folder for folder in folders if folder.name == FAULTY]
    for folder, name in [(each, each.name) for each in folders] + [(each, f"{each.name}*") for each in published]:
        begin = time.process_time()
        found = scores(folder, published=name.endswith("*"))
        row = {
            "case": name,
            "model": found.model,
            "compared": len(found.mean),
            "largest_mean": round(float(np.abs(found.mean).max()), 2),
            "largest_variance": round(float(np.abs(found.spread).max()), 2),
            "means_beyond_3": int(np.sum(np.abs(found.mean) > 3)),
            "variances_beyond_5": int(np.sum(np.abs(found.official) > 5)),
            "wrong": found.wrong,
        }
        rows.append(row)
        told = f"{row['case']:8}{row['compared']:9}{row['largest_mean']:10.2f}{row['largest_variance']:10.2f}"
        counts = f"{row['means_beyond_3']:9}{row['variances_beyond_5']:9}{row['wrong']:7}"
        print(f"{told}{counts}{time.process_time() - begin:7.1f}", flush=True)
    path = machine.write(
        "dsmts", {"runs": RUNS, "rows": rows, "machine": machine.note("numpy", "llvmlite", "python-libsbml")}
    )
    print(f"written to {path}")


if __name__ == "__main__":
    main()
