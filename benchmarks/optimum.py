"""The best point of the paper's SIR model: how good it is, what it costs, and whether its claims are true.

    python benchmarks/optimum.py [--quick] [--only search value claims]

search  The goal Optimum(regret=0.003) in 10 seeds: the runs of the search, and the true regret by exact. The largest
        value is that on a grid of 200 x 200: exact is computed on every tenth value of both axes, and then at all grid
        points around those that are within 0.15 of the largest, whose neighbours differ by less than that.
value   200 intervals of 95 % for f at the points that the searches recommend, 20 at each, from fresh runs with seeds of
        their own, as many as `optimise` takes for a half-width of 0.01; at least 173 shall contain the exact f.
claims  `optimise` with a gap of 0.02 and 1 % of the space that may be wrong: whether the regret is claimed, whether
        that is true at 1,000 uniform points, and the runs in all.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import machine
import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.core.seeds import stream_seed
from sateen.decision.contest import Counts, fresh_runs, value_runs
from sateen.decision.optimum import OptimumStrategy
from sateen.decision.refine import Running
from sateen.decision.rounds import Question
from sateen.decision.tolerance import Tolerance
from sateen.paper.cases.models import sir

FloatArray = npt.NDArray[np.float64]
MODEL, FORMULA = sir.model(), sir.formula("as-stated")
SPACE = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
GOAL = st.Optimum(regret=0.003)
SEEDS = 10
BUDGET = 150_000
REPETITIONS = 200
HALF = 0.01
GAP, WRONG = 0.02, 0.01
CLAIM_BUDGET = 1_000_000


def exact(theta: FloatArray) -> FloatArray:
    return np.asarray(st.exact(MODEL, FORMULA, SPACE.points(theta)))


def largest(size: int, coarse: int, margin: float) -> tuple[float, list[float]]:
    """The largest exact value on a grid of size x size, and where it is."""
    grid = SPACE.grid(size).theta.reshape(size, size, 2)
    rows = np.unique(np.append(np.arange(0, size, coarse), size - 1))
    first = exact(grid[np.ix_(rows, rows)].reshape(-1, 2)).reshape(len(rows), len(rows))
    near = np.zeros((size, size), bool)
    for a, b in np.argwhere(first > first.max() - margin):
        i, j = rows[a], rows[b]
        near[max(i - coarse, 0) : i + coarse + 1, max(j - coarse, 0) : j + coarse + 1] = True
    values = exact(grid[near])
    best = int(values.argmax())
    return float(values[best]), grid[near][best].tolist()


def search(seeds: int, top: float) -> tuple[list[dict[str, Any]], list[FloatArray]]:
    rows, points = [], []
    for seed in range(1, seeds + 1):
        start = time.process_time()
        done = st.refine(MODEL, FORMULA, SPACE, goal=GOAL, budget=BUDGET, seed=seed, workers=1)
        strategy = OptimumStrategy(GOAL, SPACE)
        theta, mean = strategy.best({"": done.posterior}, seed=stream_seed(seed, "figure"))
        seconds = time.process_time() - start
        truth = float(exact(theta[None])[0])
        rows.append(
            {
                "seed": seed,
                "runs": done.runs,
                "rounds": len(done.rounds),
                "reached": done.reached,
                "expected regret": done.figure,
                "true regret": max(top - truth, 0.0),
                "mean": mean,
                "exact": truth,
                "cpu seconds": round(seconds, 2),
            }
        )
        points.append(theta)
        print(
            f"seed {seed}: {done.runs:,} runs, true regret {rows[-1]['true regret']:.4f}, {seconds:.1f} s", flush=True
        )
    return rows, points


def value(points: list[FloatArray], repetitions: int) -> dict[str, Any]:
    question, tolerance = Question(MODEL, {"": FORMULA}, SPACE), Tolerance.of(SPACE, None)
    truths = exact(np.array(points))
    runs = value_runs(0.355, HALF, 0.05)
    covered, widths = 0, []
    for number in range(repetitions):
        place = number % len(points)
        unit = SPACE.to_unit(points[place][None])[0]
        seen = fresh_runs(question, tolerance, unit, runs, stream_seed(number, "repetition"), Running(workers=1))
        low, high = Counts.of(seen[""]).interval(0.05)
        covered += bool(low <= truths[place] <= high)
        widths.append(high - low)
    print(f"value: {covered} of {repetitions} intervals of {runs:,} runs cover, half-width {np.mean(widths) / 2:.4f}")
    return {"repetitions": repetitions, "runs": runs, "covered": covered, "half-width": float(np.mean(widths) / 2)}


def claims(seeds: int) -> list[dict[str, Any]]:
    judge = SPACE.uniform(1000, seed=77)
    f = exact(judge.theta)
    rows = []
    for seed in range(1, seeds + 1):
        start = time.process_time()
        best = st.optimise(MODEL, FORMULA, SPACE, budget=CLAIM_BUDGET, gap=GAP, wrong=WRONG, seed=seed, workers=1)
        seconds = time.process_time() - start
        truth = float(exact(np.array([[best.theta[name] for name in SPACE.names]]))[0])
        rows.append(
            {
                "seed": seed,
                "runs": best.runs,
                "regret": best.regret,
                "covered": bool(best.lower <= truth <= best.upper),
                "share above": float(np.mean(f > truth + GAP)),
                "cpu seconds": round(seconds, 2),
                "reason": best.reason,
            }
        )
        print(f"seed {seed}: {best.runs:,} runs, regret {best.regret}, {seconds:.1f} s", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only", nargs="+", choices=["search", "value", "claims"], default=["search", "value", "claims"]
    )
    asked = parser.parse_args()
    seeds = 2 if asked.quick else SEEDS
    result: dict[str, Any] = {"machine": machine.note("sateen", "numpy", "scipy", "llvmlite")}
    points = []
    if {"search", "value"} & set(asked.only):
        top, where = largest(50 if asked.quick else 200, 10, 0.15)
        result["largest"] = {"value": top, "theta": where}
        print(f"largest {top:.5f} at {where}", flush=True)
        result["search"], points = search(seeds, top)
        regrets = [row["true regret"] for row in result["search"]]
        runs = [row["runs"] for row in result["search"]]
        print(
            f"true regret: median {np.median(regrets):.4f}, most {max(regrets):.4f}; median runs {np.median(runs):,.0f}"
        )
    if "value" in asked.only:
        result["value"] = value(points, 20 if asked.quick else REPETITIONS)
    if "claims" in asked.only:
        result["claims"] = claims(seeds)
    if not asked.quick and len(asked.only) == 3:
        print(machine.write("optimum", result))


if __name__ == "__main__":
    main()
