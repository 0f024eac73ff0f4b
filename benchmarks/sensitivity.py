"""How often the intervals of `st.sensitivity` hold the truth, on the SIR model of the paper.

    python benchmarks/sensitivity.py [--trainings 40] [--learners svi-gp ep-gp]
                                     prints a table for each learner and writes results/sensitivity.json

Each training is a Sobol design of 400 points with 50 runs at each, simulated with seeds of its own. The truth comes
from `st.exact` on a Chebyshev grid: the indices and elasticities are integrals of the polynomial through it, and its
error at random points is printed. Nothing was tuned on these seeds.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any, Final

import machine
import numpy as np

import sateen as st
from sateen.decision.sensitivity import KINDS
from sateen.learning.registry import make_learner
from sateen.paper.cases.models import sir

SPACE: Final = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
POINTS, RUNS, NODES, CHECKED = 400, 50, 41, 100


def grid() -> Any:
    """The ends and extrema of a Chebyshev polynomial, from -1 to 1."""
    return -np.cos(np.pi * np.arange(NODES) / (NODES - 1))


def interpolation(at: Any) -> Any:
    """The matrix that takes values on the grid to those of the polynomial through them."""
    weights = (-1.0) ** np.arange(NODES)
    weights[[0, -1]] /= 2
    apart = at[:, None] - grid()
    apart[apart == 0] = 1e-300
    table = weights / apart
    return table / table.sum(axis=1, keepdims=True)


def truth() -> tuple[dict[str, dict[str, float]], float]:
    """The exact numbers by kind and parameter, and the largest error of the polynomial at random points."""
    model, formula = sir.model(), sir.formula("as-stated")
    axis = grid()
    unit = np.reshape(np.meshgrid(axis, axis, indexing="ij"), (2, -1)).T
    table = np.reshape(st.exact(model, formula, SPACE.points(SPACE.from_unit(unit))), (NODES, NODES))
    checked = SPACE.uniform(CHECKED, seed=1)
    x, y = (interpolation(column) for column in SPACE.to_unit(checked.theta).T)
    error = np.abs(np.einsum("ni,ij,nj->n", x, table, y) - st.exact(model, formula, checked)).max()
    nodes, weights = np.polynomial.legendre.leggauss(200)
    weights = weights / 2
    across, step = interpolation(nodes), 1e-5
    slope = (interpolation(nodes + step) - interpolation(nodes - step)) / (2 * step)
    f = across @ table @ across.T
    mean = weights @ f @ weights
    variance = weights @ (f - mean) ** 2 @ weights
    alone = [weights @ (f @ weights - mean) ** 2 / variance, weights @ (weights @ f - mean) ** 2 / variance]
    theta = SPACE.from_unit(np.column_stack([nodes, nodes]))
    by_log = [  # dθ/dunit is half the range for beta, and θ times half the log of the ratio for gamma
        np.abs(theta[:, :1] * (slope @ table @ across.T) / ((0.3 - 0.005) / 2)),
        np.abs((across @ table @ slope.T) / (np.log(0.2 / 0.005) / 2)),
    ]
    found = {
        "first": alone,
        "total": [1 - alone[1], 1 - alone[0]],
        "elasticity": [weights @ each @ weights for each in by_log],
    }
    return {kind: dict(zip(SPACE.names, map(float, found[kind]), strict=True)) for kind in found}, float(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainings", type=int, default=40)
    parser.add_argument("--learners", nargs="+", default=["svi-gp", "ep-gp"])
    options = parser.parse_args()
    exact, error = truth()
    print(f"the truth is known within {error:.1g}")
    rows = list[dict[str, Any]]()
    for learner in options.learners:
        found, seconds = list[st.Sensitivity](), list[float]()
        for number in range(options.trainings):
            points = SPACE.sobol(POINTS, seed=2 * number)
            seen = st.observe(sir.model(), sir.formula("as-stated"), points, runs=RUNS, seed=2 * number + 1, workers=1)
            posterior = make_learner(learner).fit(seen, seed=number)
            start = time.process_time()
            found.append(st.sensitivity(posterior, seed=number))
            seconds.append(time.process_time() - start)
        print(f"{learner}: {options.trainings} trainings, {median(seconds):.2f} CPU s each\n{HEADER}")
        for kind in KINDS:
            for name, right in exact[kind].items():
                ends = [(each.lower[kind][name], each.upper[kind][name]) for each in found]
                row = {
                    "learner": learner,
                    "number": kind,
                    "parameter": name,
                    "exact": right,
                    "median": median(getattr(each, kind)[name] for each in found),
                    "width": median(high - low for low, high in ends),
                    "covered": sum(low <= right <= high for low, high in ends),
                    "trainings": options.trainings,
                    "seconds": median(seconds),
                }
                rows.append(row)
                print("{number:11s} {parameter:9s} {exact:.4f}  {median:.4f}  {width:.4f}  {covered:3d}".format(**row))
        result = {"machine": machine.note("numpy", "scipy"), "points": POINTS, "runs": RUNS, "rows": rows}
        print(machine.write("sensitivity", {**result, "error of the truth": error}))


HEADER: Final = "number      parameter  exact  median   width  covered"

if __name__ == "__main__":
    main()
