"""The 51 models of BioModels that SATEEN_EXTERNAL_DATA has: which are read, how, and whether they are read rightly.

    SATEEN_EXTERNAL_DATA=... python benchmarks/biomodels.py [PYTHON]   prints a table, writes results/biomodels.json

A row is a model: read as it is, with net rates split, with a scale (the one that the refusal proposes), or refused and
why. PYTHON is an interpreter that has libroadrunner (pip install libroadrunner): then rates and stoichiometries are
compared with its at three random states, and means of runs with its solution of the ODEs for some models.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import machine
import numpy as np

import sateen as st

STATES = 3
PEER = Path(__file__).with_name("biomodels_peer.py")
# Models whose means are compared, how many times larger than proposed the scale is, and until when.
MEANS = {"044": (10, 0.02), "084": (10, 0.2), "098": (10, 0.02)}
RUNS = 30


def main() -> None:
    files = sorted(Path(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere"), "biomodels").glob("*.xml"))
    if not files:
        raise SystemExit("SATEEN_EXTERNAL_DATA names no folder with biomodels")
    peer = sys.argv[1] if len(sys.argv) > 1 else ""
    warnings.simplefilter("ignore", st.ModelWarning if hasattr(st, "ModelWarning") else UserWarning)
    rows = []
    for file in files:
        row = looked_at(file, peer)
        rows.append(row)
        scale = f"scale {row['scale']:g}" if row["scale"] else ""
        split = "split" if row["split"] else ""
        errors = f"{row['rate_error']:.0e} {row['changes_equal']}" if "rate_error" in row else ""
        mean = f"|Z| {row['largest_z']:.1f}" if "largest_z" in row else ""
        print(f"{file.stem[-3:]}  {row['how']:8}{scale:14}{split:7}{errors:12}{mean:10}{row['why']}", flush=True)
    read = sum(row["how"] == "read" for row in rows)
    scaled, split = sum(bool(row["scale"]) for row in rows), sum(row["split"] for row in rows)
    print(f"{read} of {len(rows)} are read; {scaled} with a scale, {split} with net rates split")
    compared = [row for row in rows if "rate_error" in row]
    if compared:
        worst = max(row["rate_error"] for row in compared)
        equal = all(row["changes_equal"] for row in compared)
        print(f"rates of {len(compared)} models within {worst:.0e} of libroadrunner's; stoichiometries equal: {equal}")
    result = {"read": read, "models": len(rows), "scaled": scaled, "split": split, "rows": rows}
    print(machine.write("biomodels", {**machine.note("sateen", "python-libsbml"), **result}))


def looked_at(file: Path, peer: str) -> dict[str, Any]:
    """A row of the table."""
    row: dict[str, Any] = {"model": file.stem, "how": "refused", "scale": None, "split": False, "why": ""}
    try:
        model, row["scale"] = loaded(file)
    except st.SateenError as error:
        return {**row, "why": str(error).splitlines()[0]}
    row |= {"how": "read", "split": bool(model.assumptions)}
    if peer:
        row |= compared(file, model, row["scale"] or 1.0, peer)
        if file.stem[-3:] in MEANS:
            row["largest_z"] = deviation(file, row["scale"] or 1.0, peer)
    return row


def loaded(file: Path) -> tuple[st.Model, float | None]:
    """The model, with the scale that its refusal proposes if it needs one."""
    try:
        return st.Model.load(file), None
    except st.ModelError as error:
        proposed = re.search(r"scale=([-+.e\d]+)", str(error))
        if proposed is None:
            raise
        return st.Model.load(file, scale=float(proposed[1])), float(proposed[1])


def compared(file: Path, model: st.Model, scale: float, peer: str) -> dict[str, Any]:
    """The largest relative difference of a rate from libroadrunner's, and whether stoichiometries are equal."""
    random = np.random.default_rng(int(file.stem[-3:]))
    values = model.values()
    start = model.initial(values)
    ids = {name: species_of(model, name) for name in start}
    states = []
    for _ in range(STATES):
        # A whole number near the start, and a fifth of the largest where it starts with nothing.
        most = max([count for count in start.values() if count] or [100.0])
        counts = {n: np.floor(random.uniform(0.5, 1.5) * (start[n] or 0.2 * most)) + 3 for n in start}
        states.append({name: count if ids[name] else start[name] for name, count in counts.items()})
    amounts = [{ids[name]: float(count) / scale for name, count in state.items() if ids[name]} for state in states]
    answer = asked(peer, {"file": str(file), "states": amounts, "times": []})
    worst = 0.0
    for state, theirs in zip(states, answer["rates"], strict=True):
        environment = {"time": 0.0, **values, **state}
        ours: dict[str, list[float]] = {}
        for transition in model.transitions:
            back = transition.name.endswith("_reverse") and transition.name not in theirs
            rate = float(transition.rate.evaluate(environment)) / scale
            if transition.guard is not None and not transition.guard.evaluate(environment):
                rate = 0.0
            name = transition.name.removesuffix("_reverse") if back else transition.name
            ours.setdefault(name, []).append(-rate if back else rate)
        for name, rates in ours.items():
            size = max(map(abs, rates)) or 1e-300
            worst = max(worst, abs(sum(rates) - theirs[name]) / max(size, abs(theirs[name])))
    equal = True
    for transition in model.transitions:
        if transition.name in answer["stoichiometry"]:
            change = {ids[name]: float(count) for name, count in transition.change.items()}
            equal = equal and change == answer["stoichiometry"][transition.name]
    return {"rate_error": worst, "changes_equal": equal}


def species_of(model: st.Model, name: str) -> str:
    """The species of the file that a variable counts; empty for a real number."""
    whole = next(each.whole for each in model.variables if each.name == name)
    scaled = any(constant.name == "scale" for constant in model.constants) and name.endswith("_count")
    return "" if not whole else name.removesuffix("_count") if scaled else name


def deviation(file: Path, scale: float, peer: str) -> float:
    """The largest |Z| of a mean of runs against the solution of the ODEs, at a scale larger than proposed."""
    larger, until = MEANS[file.stem[-3:]]
    model = st.Model.load(file, scale=scale * larger)
    names = [species_of(model, name) for name in model.species]
    request = {"file": str(file), "states": [], "times": [until], "species": [name for name in names if name]}
    known = asked(peer, request)["solution"][0][1:]
    last = [st.simulate(model, until=until, seed=seed).at(until) for seed in range(RUNS)]
    seen = np.array([[state[name] for name in names if name] for state in last])
    error = np.sqrt(seen.var(axis=0, ddof=1) / RUNS)
    # The mean of a non-linear model is off its ODE by about one molecule.
    return float((np.abs(seen.mean(axis=0) - known) / np.hypot(error, 1.0 / (scale * larger))).max())


def asked(peer: str, request: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run([peer, PEER], input=json.dumps(request), capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
