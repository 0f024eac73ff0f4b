"""How wide guaranteed intervals are, whether they cover the exact f, and whether plans keep their promise.

    python benchmarks/guarantee.py [--quick] [--only widths exact plans errors]

widths  SIR (a), Gaussian processes trained on 500 points with M runs: mean width and coverage of the exact f by each
        kind of interval, all from the same 200 M runs. Calibration points are drawn from 1000 uniform points at which f
        was computed exactly, and coverage is over the same 1000, so that it is known without error.
exact   The same with 200 computed labels in the place of runs, PAC 90 %, confidence 95 %, over 12 trainings of 50 runs
        at each point; what the 200 labels cost; and how many of 400 calibrations cover less than 90 %.
plans   Over 20 problems, the width that calibrations have beside the width that was planned.
errors  SIR (a): bounds on the mean error beside each other, and the true one.

An interval is valid if the number of failures is not rejected: in marginal claims, of one fresh point a calibration; in
PAC claims, of calibrations that cover less than the level. The test is one-sided, at 1e-6.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import learning_data
import machine
import numpy as np
import numpy.typing as npt
from scipy.stats import binom

import sateen as st
from sateen.guarantee.lift import fewest_lifted_points
from sateen.paper.cases.configurations import configuration
from sateen.paper.guarantees import with_own_prior
from sateen.paper.presets import label
from sateen.paper.published import METHODS

FloatArray = npt.NDArray[np.float64]
CERTAIN = 1e-6
CASE = configuration("a")
RUNS = (50, 200, 500)
LEVELS = (0.9, 0.95)
CONFIDENCE = 0.95
HELD_OUT = 200
TRAINED = 500
POPULATION = 1000

PROBLEMS = (
    *("a", "b", "c", "f", "g", "h"),
    *(f"pinned/r{rates:02d}/phi{kind}" for rates in (2, 3, 4, 8) for kind in (1, 2, 3)),
    *("pinned/r12/phi1", "pinned/r12/phi2"),
)


@dataclass(frozen=True)
class Population:
    """The points that calibrations draw from, and f at each of them."""

    points: st.Points
    probability: FloatArray

    def draw(self, n: int, runs: int, rng: np.random.Generator) -> st.Observations:
        rows = rng.integers(len(self.points), size=n)
        counts = rng.binomial(runs, self.probability[rows])
        return st.Observations.from_counts(self.points.space, self.points.theta[rows], counts, runs, design="uniform")


@dataclass(frozen=True)
class Row:
    """A kind of interval: who makes it from a posterior, from which draw, and whether it is valid for f."""

    name: str
    claim: str  # "none", "marginal" or "pac"
    make: Callable[[st.Posterior, int, float], Callable[[Callable[[int, int], st.Observations]], Any] | None]


def rows() -> list[Row]:
    """All kinds. `make(posterior, M, level)` gives what a calibration does with `draw(points, runs)`."""

    def paper(**keywords: Any) -> Any:
        return lambda posterior, m, level: (
            lambda draw: st.calibrate(posterior, draw(HELD_OUT, m), level=level, **keywords)
        )

    def bayes(posterior: st.Posterior, m: int, level: float) -> Any:
        return lambda draw: posterior

    def lift(share: int, confidence: float | None) -> Any:
        """With `share` times fewer points, and as many times more runs; None where the points are too few."""

        def make(posterior: st.Posterior, m: int, level: float) -> Any:
            if HELD_OUT // share < (fewest_lifted_points(1, 1 - level, confidence) or np.inf):
                return None
            keywords = {"level": level, "confidence": confidence, "normaliser": "predictive"}
            return lambda draw: st.calibrate(posterior, draw(HELD_OUT // share, share * m), **keywords)

        return make

    def planned(confidence: float | None) -> Any:
        def make(posterior: st.Posterior, m: int, level: float) -> Any:
            plan = st.plan(posterior, budget=HELD_OUT * m, level=level, confidence=confidence, seed=1)
            keywords = {"plan": plan, "normaliser": plan.normaliser}
            return lambda draw: st.calibrate(posterior, draw(plan.points, plan.runs), **keywords)

        return make

    return [
        Row("Bayes credible", "none", bayes),
        Row("NICP", "none", paper(method="nicp")),
        Row("NICP + Chernoff", "marginal", paper(method="chernoff", normaliser="posterior")),
        Row("lift, marginal, 200 x M", "marginal", lift(1, None)),
        Row("lift, marginal, 25 x 8M", "marginal", lift(8, None)),
        Row("lift, marginal, planned", "marginal", planned(None)),
        Row("lift, PAC, 50 x 4M", "pac", lift(4, CONFIDENCE)),
        Row("lift, PAC, planned", "pac", planned(CONFIDENCE)),
    ]


def exact_population() -> Population:
    """1000 uniform points and f there, computed once and kept."""
    folder = Path(os.environ.get("SATEEN_BENCHMARK_DATA") or Path.home() / ".cache" / "sateen" / "benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    points, file = CASE.space.uniform(POPULATION, seed=20_261_115), folder / "guarantee-a-population.npy"
    if not file.exists():
        np.save(file, np.column_stack([points.theta, st.exact(CASE.model, CASE.formula, points)]))
    theta, probability = np.load(file).T
    if not np.array_equal(theta, points.theta[:, 0]):
        raise SystemExit(f"{file} holds other points; delete it")
    return Population(points, probability)


def widths(population: Population, trainings: int, calibrations: int) -> dict[str, Any]:
    """The table of widths: a row for each kind, runs and level."""
    table: list[dict[str, Any]] = []
    for m in RUNS:
        gathered: dict[tuple[str, float], list[tuple[float, float, bool]]] = {}
        for training in range(1, trainings + 1):
            trained = st.observe(CASE.model, CASE.formula, CASE.space.grid(TRAINED), m, seed=1000 * m + training)
            posterior = st.SVIGP().fit(trained, seed=training)
            for level in LEVELS:
                for row in rows():
                    rng = np.random.default_rng([m, training, round(100 * level)])
                    if (calibration := row.make(posterior, m, level)) is not None:
                        found = [_outcome(calibration, posterior, level, population, rng) for _ in range(calibrations)]
                        gathered.setdefault((row.name, level), []).extend(found)
        for row in rows():
            for level in LEVELS:
                if found := gathered.get((row.name, level)):
                    table.append(
                        {"kind": row.name, "claim": row.claim, "runs": m, "level": level, **_tested(row, level, found)}
                    )
                    print("  " + _line(table[-1]), flush=True)
    return {"trainings": trainings, "calibrations": calibrations, "rows": table, "ratios": _ratios(table)}


def exactly(population: Population, trainings: int, calibrations: int) -> dict[str, Any]:
    """Calibrations by the truth: the labels of a training's first one are computed now, the others are known."""
    where = CASE.space.uniform(HELD_OUT, seed=7)
    began = time.process_time()
    st.exact(CASE.model, CASE.formula, where)
    seconds = time.process_time() - began
    each = calibrations // trainings
    found: list[tuple[float, float, bool]] = []
    first: list[float] = []
    for training in range(1, trainings + 1):
        trained = st.observe(CASE.model, CASE.formula, CASE.space.grid(TRAINED), 50, seed=50_000 + training)
        posterior = st.SVIGP().fit(trained, seed=training)
        rng = np.random.default_rng([7, training])

        def calibration(_: Any, rng: np.random.Generator = rng, posterior: st.Posterior = posterior) -> st.Guarantee:
            rows = rng.integers(len(population.points), size=HELD_OUT)
            points = st.Points(population.points.theta[rows], CASE.space, "uniform")
            return st.calibrate(posterior, truth=(points, population.probability[rows]))

        outcomes = [_outcome(calibration, posterior, 0.9, population, rng) for _ in range(each)]
        found, first = found + outcomes, [*first, outcomes[0][0]]
        print(f"  training {training}: width {outcomes[0][0]:.4f}, coverage {outcomes[0][1]:.4f}", flush=True)
    tested = _tested(Row("exact", "pac", lambda *_: None), 0.9, found)
    print(
        f"  mean width {np.mean(first):.4f} over {trainings} trainings; {HELD_OUT} labels in {seconds:.1f} s of CPU;"
        f" {tested['failures']} of {tested['of']} calibrations cover less than 90 %, p = {tested['p']:.2g}"
    )
    return {"points": HELD_OUT, "widths": first, "width": float(np.mean(first)), "seconds": seconds, **{"test": tested}}


def _outcome(
    calibration: Any, posterior: st.Posterior, level: float, population: Population, rng: np.random.Generator
) -> tuple[float, float, bool]:
    """Mean width, coverage, and whether a fresh point is covered, of one calibration."""
    made = calibration(lambda n, runs: population.draw(n, runs, rng))
    keywords = {"level": level} if made is posterior else {}
    band = made.predict(population.points, **keywords)
    covered = (band.lower <= population.probability) & (population.probability <= band.upper)
    return float(band.width.mean()), float(covered.mean()), bool(covered[rng.integers(len(covered))])


def _tested(row: Row, level: float, found: list[tuple[float, float, bool]]) -> dict[str, Any]:
    width, coverage, fresh = (np.array(column) for column in zip(*found, strict=True))
    marginal = row.claim != "pac"
    failures = int((~fresh).sum() if marginal else (coverage < level - 1e-12).sum())
    allowed = 1 - level if marginal else 1 - CONFIDENCE
    p = float(binom.sf(failures - 1, len(found), allowed))
    return {
        "width": float(width.mean()),
        "coverage": float(coverage.mean()),
        "least_coverage": float(coverage.min()),
        "failures": failures,
        "of": len(found),
        "p": p,
        "covers": p > CERTAIN,
    }


def _ratios(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times narrower than NICP + Chernoff the planned lifts are."""
    width = {(row["kind"], row["runs"], row["level"]): row["width"] for row in table}
    return [
        {
            "runs": m,
            "level": level,
            "marginal": width["NICP + Chernoff", m, level] / width["lift, marginal, planned", m, level],
            "pac": width["NICP + Chernoff", m, level] / width["lift, PAC, planned", m, level],
        }
        for m in RUNS
        for level in LEVELS
    ]


def _line(row: dict[str, Any]) -> str:
    verdict = "covers" if row["covers"] else "DOES NOT COVER"
    verdict = verdict if row["claim"] != "none" else f"no claim for f, {verdict}"
    test = f"{row['failures']} of {row['of']} fail, p = {row['p']:.2g}"
    width = f"width {row['width']:.4f}, coverage {row['coverage']:.4f}"
    return f"M={row['runs']:<4} {row['level']:.0%}  {row['kind']:<26}{width}; {test}: {verdict}"


def plans(problems: tuple[str, ...], calibrations: int) -> list[dict[str, Any]]:
    """Planned and obtained widths, each problem with a budget, for a marginal and for a PAC claim."""
    table = []
    for name in problems:
        problem = learning_data.problem(name)
        began = time.process_time()
        posterior = st.learn(learning_data.training(problem, 1), seed=1)
        learned = time.process_time() - began
        where = problem.space.uniform(1000, seed=77)
        for claim, confidence in (("marginal", None), ("pac", CONFIDENCE)):
            began = time.process_time()
            plan = st.plan(posterior, budget=20_000, confidence=confidence, seed=1)
            planning = time.process_time() - began
            obtained = []
            for number in range(calibrations):
                seed = 100_000 + 1000 * problems.index(name) + 100 * (confidence is None) + number
                points = problem.space.uniform(plan.points, seed=seed)
                held_out = st.observe(problem.question.model, problem.formula, points, plan.runs, seed=seed)
                guarded = st.calibrate(posterior, held_out, plan=plan, normaliser=plan.normaliser)
                obtained.append(float(guarded.predict(where).width.mean()))
            low, high = plan.likely
            row = {
                "problem": name,
                "claim": claim,
                "learner": posterior.kind,
                "points": plan.points,
                "runs": plan.runs,
                "rank": plan.rank,
                "normaliser": plan.normaliser,
                "planned": plan.width,
                "likely": [low, high],
                "obtained": obtained,
                "ratio": float(np.mean(obtained)) / plan.width,
                "within_likely": float(np.mean([low <= width <= high for width in obtained])),
                "seconds_learning": learned,
                "seconds_planning": planning,
            }
            table.append(row)
            print(
                f"  {name:<16}{claim:<9}{row['learner']:<12}{plan.points:>4} x {plan.runs:<5} planned {plan.width:.4f},"
                f" obtained {np.mean(obtained):.4f}, ratio {row['ratio']:.2f}, {row['within_likely']:.0%} within the"
                f" likely range, {planning:.1f} s",
                flush=True,
            )
    return table


def errors(population: Population, trainings: int) -> list[dict[str, Any]]:
    """Bounds on the mean error of each learner, and the true error, averaged over trainings."""
    table = []
    for name in METHODS:
        learner, recipe = label(name), with_own_prior(name, 0.2)
        for m in (50, 500):
            found: dict[str, list[float]] = {}
            for training in range(1, trainings + 1):
                points = CASE.space.uniform(TRAINED, seed=training)
                trained = st.observe(CASE.model, CASE.formula, points, m, seed=5000 * m + training)
                posterior = recipe.fit(trained, seed=training)
                held_out = population.draw(HELD_OUT, m, np.random.default_rng([m, training]))
                values = {
                    "true": float(np.abs(posterior.predict(population.points).mean - population.probability).mean()),
                    "betting": float(st.bound_error(posterior, held_out)),
                    "seeger": float(st.bound_error(posterior, method="seeger", seed=training)),
                    "catoni": float(st.bound_error(posterior, method="catoni", seed=training)),
                    "kl": posterior.kl(),
                }
                for name, value in values.items():
                    found.setdefault(name, []).append(value)
            row = {"learner": learner, "runs": m, **{name: float(np.mean(values)) for name, values in found.items()}}
            row["exceeded"] = {
                name: int(np.sum(np.array(found["true"]) > found[name])) for name in ("betting", "seeger", "catoni")
            }
            table.append(row)
            numbers = ", ".join(f"{name} {row[name]:.4g}" for name in found)
            print(f"  {learner:<8} M={m:<4} {numbers}; exceeded {row['exceeded']}", flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, and nothing written")
    parser.add_argument("--only", nargs="*", default=["widths", "exact", "plans", "errors"], help="parts to run")
    options = parser.parse_args()
    about = machine.note("sateen", "numpy", "scipy", "jax")
    print(f"{about['processor']}, load {about['load']}, {about['versions']}")
    population = exact_population()
    result: dict[str, Any] = {"machine": about}
    if "widths" in options.only:
        print("widths on SIR (a), all from 200 M runs:")
        result["widths"] = widths(population, *((1, 20) if options.quick else (4, 100)))
        for row in result["widths"]["ratios"]:
            print(
                f"  M={row['runs']:<4} {row['level']:.0%}: narrower than NICP + Chernoff by a factor of"
                f" {row['marginal']:.1f} (planned marginal lift) and {row['pac']:.1f} (planned PAC lift)"
            )
    if "exact" in options.only:
        print("200 computed labels on SIR (a):")
        result["exact"] = exactly(population, *((2, 20) if options.quick else (12, 400)))
    if "plans" in options.only:
        print("planned and obtained widths, 20,000 runs each:")
        result["plans"] = plans(PROBLEMS[:3] if options.quick else PROBLEMS, 3 if options.quick else 10)
        ratios = np.array([row["ratio"] for row in result["plans"]])
        within = int((abs(ratios - 1) < 0.3).sum())
        print(f"  obtained / planned: {ratios.min():.2f} to {ratios.max():.2f}; {within} of {len(ratios)} within 30 %")
    if "errors" in options.only:
        print("bounds on the mean error, SIR (a):")
        result["errors"] = errors(population, 1 if options.quick else 5)
    if not options.quick:
        stored = machine.RESULTS / "guarantee.json"
        kept = json.loads(stored.read_text()) if stored.exists() else {}
        machines = {**kept.get("machines", {}), **dict.fromkeys(options.only, about)}  # of the parts run since
        parts = {**kept, **result, "machine": kept.get("machine", about), "machines": machines}
        print(machine.write("guarantee", parts))


if __name__ == "__main__":
    main()
