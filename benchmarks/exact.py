"""What `exact` costs: milliseconds a point on SIR and on a long queue, and how far it is from what is known.

    python benchmarks/exact.py            prints a table and writes results/exact.json

Times are the best of several rounds, in CPU time of one core, each round over all points with the state space built
anew: that is what a call costs. "build" is what a call with a single point costs beyond an average point.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path

import machine
import numpy as np

import sateen as st

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5


def sir_case() -> tuple[st.Model, st.Formula, list[dict[str, float]], np.ndarray]:
    model = st.Model.parse("""
        species S = 95, I = 5, R = 0
        infect:  S + I -> 2 I @ beta * S * I / 100
        recover: I -> R       @ gamma * I
    """)
    with open(ROOT / "tests" / "data" / "sir_exact.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    points = [{"beta": float(row["beta"]), "gamma": float(row["gamma"])} for row in rows]
    return model, st.stl("(I > 0) U[100, 120] (I == 0)"), points, np.array([float(row["p"]) for row in rows])


def queue(places: int) -> st.Model:
    return st.Model.parse(f"""
        species X = 0
        arrive: 0 -> X @ 1 when X < {places - 1}
        serve:  X -> 0 @ mu * min(X, 1)
    """)


def queue_case(when: float) -> tuple[st.Model, st.Formula, list[dict[str, float]], np.ndarray | None]:
    points = [{"mu": mu} for mu in np.linspace(1.1, 2.0, 10).tolist()]
    formula = st.stl(f"F[{when}, {when}] X >= 5")
    # Long after, the queue has forgotten how it began: P(X >= 5) = mu^-5, but for mu^-10000 at the far end.
    known = np.array([point["mu"] ** -5 for point in points]) if when >= 10_000 else None
    return queue(10_000), formula, points, known


def best(model: st.Model, formula: st.Formula, points: Sequence[dict[str, float]]) -> tuple[float, np.ndarray]:
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        found = st.exact(model, formula, points)
        seconds.append(time.process_time() - begin)
    return min(seconds), found


def main() -> None:
    cases = {
        "SIR, (I > 0) U[100, 120] (I == 0)": (5136, sir_case()),
        "M/M/1/K, F[100, 100] X >= 5": (10_000, queue_case(100.0)),
        "M/M/1/K, F[10000, 10000] X >= 5": (10_000, queue_case(10_000.0)),
        "M/M/1/K, F X >= 9999": (10_000, (queue(10_000), st.stl("F X >= 9999"), [{"mu": 1.0}], np.ones(1))),
    }
    rows = []
    for name, (states, (model, formula, points, known)) in cases.items():
        alone, _ = best(model, formula, points[:1])
        together, found = best(model, formula, points)
        per_point = together / len(points)
        rows.append(
            {
                "case": name,
                "states": states,
                "points": len(points),
                "ms_per_point": round(1e3 * per_point, 2),
                "ms_build": round(1e3 * max(alone - per_point, 0.0), 1),
                "largest_error": None if known is None else float(np.abs(found - known).max()),
            }
        )
    print(f"{'case':36} {'states':>7} {'points':>7} {'ms/point':>9} {'build ms':>9} {'largest error':>14}")
    for row in rows:
        error = "-" if row["largest_error"] is None else f"{row['largest_error']:.1e}"
        print(
            f"{row['case']:36} {row['states']:>7,} {row['points']:>7} {row['ms_per_point']:>9.2f} "
            f"{row['ms_build']:>9.1f} {error:>14}"
        )
    about = machine.note("numpy", "scipy")
    print(machine.write("exact", {"machine": about, "rounds": ROUNDS, "cases": rows}))


if __name__ == "__main__":
    main()
