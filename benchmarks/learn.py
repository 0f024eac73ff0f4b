"""How accurate, how well calibrated and how fast the learners are.

    python benchmarks/learn.py small            SIR a, b, c and phosphorelay f, h: three methods, several training sets
    python benchmarks/learn.py large            phosphorelay l, a million points: the default learner, both variants
    python benchmarks/learn.py random           the pinned random networks: the default learner
    python benchmarks/learn.py growth           time and memory by the number of points
    python benchmarks/learn.py sbc              ranks of functions drawn from a prior, by method
    python benchmarks/learn.py predict          prediction at 100,000 points by what was learned from SIR c
    python benchmarks/learn.py table            the kept results of small, large and random as in docs/learning.md

The truth is exact for SIR and a share of 50,000 runs (20,000 for random networks) elsewhere: see learning_data.py.
CPU seconds are those of all threads together, the linear algebra kept on one. The first fit of a method in a process
compiles it; its extra time is shown apart.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import learning_data
import machine
import numpy as np

import sateen as st

LEVELS: Final = (0.5, 0.8, 0.9, 0.95, 0.99)
METHODS: Final[dict[str, Callable[[], Any]]] = {
    "ep-gp": lambda: st.EPGP(),
    "svi-gp": lambda: st.SVIGP(),
    "svi-bnn": lambda: st.SVIBNN(),
}
PACKAGES: Final = ("numpy", "scipy", "jax", "optax")


def fit(recipe: Any, observations: st.Observations, seed: int) -> tuple[Any, float, float]:
    """The posterior, and the CPU and wall seconds that it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    learn = recipe.fit if hasattr(recipe, "fit") else recipe
    posterior = learn(observations, seed=seed)
    return posterior, time.process_time() - cpu, time.perf_counter() - wall


def measured(name: str, recipe: Any, seed: int) -> dict[str, Any]:
    """One fit of a problem's training set number `seed`, against its labels and its truth."""
    problem = learning_data.problem(name)
    posterior, cpu, wall = fit(recipe, learning_data.training(problem, seed), seed)
    test, truth = learning_data.testing(problem), learning_data.truth(problem).probability
    began = time.process_time()
    prediction = posterior.predict(test.points)
    evaluation = time.process_time() - began
    scored = st.score(prediction, test, truth)
    covered = {}
    for level in LEVELS:
        band = posterior.predict(test.points, level=level)
        covered[str(level)] = float(np.mean((band.lower <= truth) & (truth <= band.upper)))
    return {
        "problem": name,
        "method": posterior.kind,
        "seed": seed,
        "rmse_truth": scored.rmse_truth,
        "rmse": scored.rmse,
        "accuracy": scored.accuracy,
        "wilson_accuracy": scored.wilson_accuracy,
        "width": scored.uncertainty,
        "coverage": covered,
        "coverage_slack": scored.coverage_slack,
        "verdict": posterior.record.verdict,
        "notes": list(posterior.record.notes),
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "evaluation_seconds": evaluation,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of one problem and method as one: means, and the best of the times."""
    mean = {
        key: float(np.mean([row[key] for row in rows]))
        for key in ("rmse_truth", "rmse", "accuracy", "wilson_accuracy", "width", "coverage_slack")
    }
    coverage = {level: float(np.mean([row["coverage"][level] for row in rows])) for level in rows[0]["coverage"]}
    times = {key: min(row[key] for row in rows) for key in ("cpu_seconds", "wall_seconds", "evaluation_seconds")}
    compiling = rows[0]["cpu_seconds"] - times["cpu_seconds"]
    converged = sum(row["verdict"] == "converged" for row in rows)
    about = {"problem": rows[0]["problem"], "method": rows[0]["method"], "fits": len(rows), "converged": converged}
    return {**about, **mean, "coverage": coverage, **times, "first_fit_extra_seconds": compiling}


HEADER: Final = (
    f"{'problem':<18}{'method':<13}{'fits':>5}{'RMSE f':>9}{'labels':>9}{'Acc':>7}{'Wilson':>8}{'width':>8}"
    f"{'cov50':>7}{'cov80':>7}{'cov90':>7}{'cov95':>7}{'cov99':>7}{'CPU s':>8}{'wall s':>8}{'compile':>8}"
)


def show(row: dict[str, Any]) -> None:
    coverage = "".join(f"{share:>7.3f}" for share in row["coverage"].values())
    print(
        f"{row['problem']:<18}{row['method']:<13}{row['fits']:>5}{row['rmse_truth']:>9.5f}{row['rmse']:>9.5f}"
        f"{row['accuracy']:>7.3f}{row['wilson_accuracy']:>8.4f}{row['width']:>8.4f}{coverage}"
        f"{row['cpu_seconds']:>8.2f}{row['wall_seconds']:>8.2f}{row['first_fit_extra_seconds']:>8.2f}",
        flush=True,
    )


def measure(problems: Iterable[str], methods: dict[str, Any], seeds: range) -> list[dict[str, Any]]:
    """A summary for each problem and method, printed as it is found."""
    print(HEADER)
    rows = []
    for name in problems:
        for recipe in methods.values():
            rows.append(summary([measured(name, recipe, seed) for seed in seeds]))
            show(rows[-1])
    return rows


def small(options: argparse.Namespace) -> dict[str, Any]:
    methods = {name: make() for name, make in METHODS.items() if not options.methods or name in options.methods}
    rows = []
    for name in options.problems or ["a", "b", "c", "f", "h"]:
        seeds = options.seeds if name in ("a", "f") else min(options.seeds, 8)
        rows += measure([name], methods, range(1, seeds + 1))
    return {"rows": rows}


def large(options: argparse.Namespace) -> dict[str, Any]:
    return {"rows": measure(options.problems or ["l", "l/as-stated"], {"default": st.learn}, range(1, 2))}


def random(options: argparse.Namespace) -> dict[str, Any]:
    rows = measure(options.problems or learning_data.names("pinned"), {"default": st.learn}, range(1, 2))
    print(f"{'rates':<8}{'RMSE f':>9}{'Wilson':>9}{'width':>8}{'cov95':>8}{'CPU s':>8}")
    by_rates = {}
    for rates in dict.fromkeys(row["problem"].split("/")[1] for row in rows):
        own = [row for row in rows if f"/{rates}/" in row["problem"]]
        means = {key: float(np.mean([row[key] for row in own])) for key in ("rmse_truth", "wilson_accuracy", "width")}
        means["coverage"] = float(np.mean([row["coverage"]["0.95"] for row in own]))
        means["cpu_seconds"] = max(row["cpu_seconds"] for row in own)
        by_rates[rates] = means
        print(f"{rates:<8}{means['rmse_truth']:>9.5f}{means['wilson_accuracy']:>9.4f}{means['width']:>8.4f}"
              f"{means['coverage']:>8.3f}{means['cpu_seconds']:>8.2f}")  # fmt: skip
    return {"rows": rows, "by_rates": by_rates}


def growth(options: argparse.Namespace) -> dict[str, Any]:
    """Each size in a process of its own, so that its memory is its own."""
    sizes = {"svi-gp": [10_000, 100_000, 1_000_000], "ep-gp": [1000, 3000, 10_000, 30_000, 100_000, 300_000]}
    print(f"{'method':<10}{'points':>10}{'CPU s':>9}{'wall s':>9}{'memory GB':>11}")
    rows = []
    for method, counts in sizes.items():
        for points in counts:
            command = [sys.executable, __file__, "one", "--methods", method, "--points", str(points)]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            row = json.loads(told.stdout.splitlines()[-1]) if told.returncode == 0 else {"refused": told.stderr[-300:]}
            rows.append({"method": method, "points": points, **row})
            if "refused" in row:
                print(f"{method:<10}{points:>10,}  {row['refused'].strip().splitlines()[-1]}", flush=True)
                break
            print(f"{method:<10}{points:>10,}{row['cpu_seconds']:>9.2f}{row['wall_seconds']:>9.2f}"
                  f"{row['gigabytes']:>11.2f}", flush=True)  # fmt: skip
    return {"rows": rows}


def one(options: argparse.Namespace) -> None:
    """One fit of the first points of configuration l, told as JSON."""
    problem = learning_data.problem("l")
    observations = learning_data.training(problem, 1)[: options.points]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, cpu, wall = fit(METHODS[options.methods[0]](), observations, 1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cpu_seconds": cpu, "wall_seconds": wall, "gigabytes": (after - before) / 1e6}))


def sbc(options: argparse.Namespace) -> dict[str, Any]:
    """Ranks of the true f among the posterior's draws, for functions drawn from a Gaussian process prior.

    With the hyper-parameters given, the prior is the learner's own and ranks should be uniform, but for the
    approximation; learned from the data, or under another prior, they need not be. With the floor of the deviation and
    without it.
    """
    from scipy.special import ndtr
    from scipy.stats import chisquare

    from sateen.learning.gp.kernels import Kernel

    space, tests, bins, draws = st.Space(x=(-1.0, 1.0)), 5, 10, 199
    kernel = Kernel("matern", (0.5,), 1.0)
    given = {"length_scales": (0.5,), "variance": 1.0, "inputs": "linear"}
    methods = {
        "ep-gp, own prior": st.EPGP(**given),
        "svi-gp, own prior": st.SVIGP(**given),
        "ep-gp": st.EPGP(),
        "svi-gp": st.SVIGP(),
        "svi-bnn": st.SVIBNN(),
        "laplace-net": st.LaplaceNet(),
    }
    rows = []
    print(f"{'method':<18}{'floor':<7}{'functions':>10}  shares of ranks in ten equal bins (uniform: .1 each), and p")
    for name, recipe in methods.items():
        if options.methods and name not in options.methods:
            continue
        count = options.functions if "gp" in name else max(options.functions // 5, 20)
        ranks: dict[str, list[int]] = {"no": [], "yes": []}
        for function in range(count):
            rng = np.random.default_rng([2026, function])
            points = space.uniform(60 + tests, seed=function)
            covariance = kernel.between(points.theta, points.theta) + 1e-9 * np.eye(len(points))
            f = ndtr(np.linalg.cholesky(covariance) @ rng.standard_normal(len(points)))
            counts = rng.binomial(20, f)
            seen = st.Observations(points[tests:], counts[tests:], 0, 20)
            fitted = recipe.fit(seen, seed=function)
            for floor, posterior in (("no", replace(fitted, floor=0.0)), ("yes", fitted)):
                drawn = posterior.sample(points[:tests], draws, seed=function)
                ranks[floor] += np.sum(drawn < f[:tests], axis=0).tolist()
        for floor, found in ranks.items():
            shares, _ = np.histogram(found, bins=bins, range=(0, draws + 1))
            about = {"method": name, "floor": floor == "yes", "functions": count}
            rows.append({**about, "shares": (shares / shares.sum()).tolist(), "p": float(chisquare(shares).pvalue)})
            print(f"{name:<18}{floor:<7}{count:>10}  " + " ".join(f"{share:.3f}" for share in rows[-1]["shares"])
                  + f"  p {rows[-1]['p']:.2g}", flush=True)  # fmt: skip
    return {"rows": rows}


NAMES: Final = {
    "a": "SIR a, 500 x 50",
    "b": "SIR b, 700 x 50",
    "c": "SIR c, 2500 x 50",
    "f": "phosphorelay f, 500 x 50",
    "h": "phosphorelay h, 8000 x 20",
    "l": "phosphorelay l, 1,000,000 x 20",
    "l/as-stated": "the same, as stated",
}


def predict(options: argparse.Namespace) -> dict[str, Any]:
    count = options.points or 100_000
    problem = learning_data.problem("c")
    points = problem.space.sobol(count, seed=0)
    seen = learning_data.training(problem, 1)
    rows = []
    for name, make in {**METHODS, "laplace-net": st.LaplaceNet}.items():
        posterior = make().fit(seen, seed=1)
        posterior.predict(points[:5000])  # compiles
        times = []
        for _ in range(3):
            cpu, wall = time.process_time(), time.perf_counter()
            posterior.predict(points)
            times.append((time.perf_counter() - wall, time.process_time() - cpu))
        wall, cpu = min(times)
        rows.append({"method": name, "points": count, "wall_seconds": wall, "cpu_seconds": cpu})
        print(f"{name:<13}{count:>9,} points{wall:>8.2f} s wall{cpu:>8.2f} s CPU", flush=True)
    return {"rows": rows}


def table() -> None:
    """The kept results as tables in Markdown."""
    kept = {
        part: json.loads((machine.RESULTS / f"learn-{part}.json").read_text()) for part in ("small", "large", "random")
    }
    print("| data | method | sets | RMSE | width at 95 % | coverage at 50, 80, 90, 95, 99 % | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for row in kept["small"]["rows"] + kept["large"]["rows"]:
        coverage = ", ".join(f"{share:.2f}" for share in row["coverage"].values())
        print(f"| {NAMES[row['problem']]} | {row['method']} | {row['fits']} | {row['rmse_truth']:.4f} "
              f"| {row['width']:.3f} | {coverage} | {row['cpu_seconds']:.1f} |")  # fmt: skip
    print("\n| rates | RMSE | Wilson-Acc | width at 95 % | coverage at 95 % | longest fit, CPU s |")
    print("|---|---|---|---|---|---|")
    for rates, row in kept["random"]["by_rates"].items():
        print(f"| {int(rates[1:])} | {row['rmse_truth']:.4f} | {100 * row['wilson_accuracy']:.1f} % "
              f"| {row['width']:.3f} | {row['coverage']:.2f} | {row['cpu_seconds']:.0f} |")  # fmt: skip


def main() -> None:
    parts = {"small": small, "large": large, "random": random, "growth": growth, "sbc": sbc, "predict": predict}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=[*parts, "one", "table"])
    parser.add_argument("--problems", nargs="*")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--seeds", type=int, default=32, help="training sets of a and f")
    parser.add_argument("--points", type=int)
    parser.add_argument("--functions", type=int, default=200)
    options = parser.parse_args()
    if options.part in ("one", "table"):
        one(options) if options.part == "one" else table()
        return
    about = machine.note(*PACKAGES)
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}; {about['versions']}")
    result = parts[options.part](options)
    if not (options.problems or options.methods):
        print(machine.write(f"learn-{options.part}", {"machine": about, **result}))


if __name__ == "__main__":
    main()
