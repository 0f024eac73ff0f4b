"""How many expected rewards of the Quantitative Verification Benchmark Set come out as Storm published them.

    SATEEN_EXTERNAL_DATA=... python benchmarks/prism_rewards.py     prints a table and writes results/prism_rewards.json

Files that are not there are left out and named. Published values have ten digits, and Storm's precision is 1e-6 where
it is not exact: a value agrees where it is nearer than 1e-6 of it. Seconds are of CPU, the chain built anew.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import machine

import sateen as st
from sateen.logic.csl import read_properties
from sateen.model.prism import load_prism

FOLDER = Path(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere")) / "qvbs"
TOLERANCE = 1e-6

# (model, its constants, those of its properties, the published values); qcomp.org/benchmarks, results of 2018
PUBLISHED: list[tuple[str, dict[str, int], dict[str, float], dict[str, float]]] = [
    ("tandem/tandem", {"c": 5}, {"T": 1000, "t": 0.2}, {"customers_T": 3.576667592}),
    ("tandem/tandem", {"c": 7}, {"T": 1000, "t": 0.2}, {"customers_T": 5.154112416}),
    ("tandem/tandem", {"c": 15}, {"T": 1000, "t": 0.2}, {"customers_T": 11.55612449}),
    ("tandem/tandem", {"c": 31}, {"T": 1000, "t": 0.2}, {"customers_T": 24.44505}),
    ("embedded/embedded", {"MAX_COUNT": 2}, {"T": 12}, {
        "danger_T": 0.008269622665, "danger_time": 0.2931856862419295, "down_T": 0.02802901538, "up_T": 11.96370136,
        "up_time": 423.8443172811176}),
    ("embedded/embedded", {"MAX_COUNT": 4}, {"T": 12}, {
        "danger_T": 0.008300024202, "danger_time": 0.3270547346, "down_T": 0.02784782518, "up_T": 11.96385215,
        "up_time": 471.0627075}),
    ("cluster/cluster", {"N": 2}, {"T": 2000, "t": 20}, {
        "below_min": 0.004659192406, "operational": 99.87643558, "repairs": 17.36977828}),
    ("cluster/cluster", {"N": 4}, {"T": 2000, "t": 20}, {
        "below_min": 0.007363146871, "operational": 99.87593254, "repairs": 33.34469884}),
    ("polling/polling.10", {}, {"T": 16}, {"served": 1.116806306, "waiting": 1.588579115}),
]  # fmt: skip


def compared(name: str, constants: dict[str, int], asked: dict[str, float], known: dict[str, float]) -> list[Any]:
    file = FOLDER / f"{name}.prism"
    system = load_prism(file, constants)
    text = (file.parent / f"{file.parent.name}.props").read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.SateenWarning)
        properties = read_properties(text, system, constants=asked)
    rows = []
    for each, published in known.items():
        begin = time.process_time()
        found = float(st.exact(system.model, properties[each].formula, {})[0])
        seconds = time.process_time() - begin
        rows.append([name, constants, each, published, found, abs(found / published - 1), round(seconds, 3)])
    return rows


def main() -> None:
    there = [case for case in PUBLISHED if (FOLDER / f"{case[0]}.prism").is_file()]
    missing = sorted({case[0] for case in PUBLISHED} - {case[0] for case in there})
    rows = [row for case in there for row in compared(*case)]
    for name, constants, each, published, found, difference, seconds in rows:
        where = " ".join(f"{key}={value}" for key, value in constants.items())
        print(f"{name:20} {where:12} {each:12} {published:<18.10g} {found:<18.10g} {difference:.1e}  {seconds:.2f} s")
    agree = sum(row[5] <= TOLERANCE for row in rows)
    print(
        f"{agree} of {len(rows)} agree within {TOLERANCE:g}" + (f"; not there: {', '.join(missing)}" if missing else "")
    )
    columns = ["model", "constants", "property", "published", "found", "difference", "seconds"]
    result = {"agree": agree, "of": len(rows), "tolerance": TOLERANCE, "missing": missing}
    machine.write(
        "prism_rewards",
        {
            "machine": machine.note("numpy", "scipy"),
            **result,
            "rows": [dict(zip(columns, row, strict=True)) for row in rows],
        },
    )


if __name__ == "__main__":
    main()
