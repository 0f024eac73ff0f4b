"""How many runs it takes until little of the space is undecided about a threshold: `refine`, straddle and Sobol.

    python benchmarks/refine.py [sir pr4 pr6] [--seeds 10] [--ways refine straddle sobol]
                                                prints a table and writes results/refine.json
    python benchmarks/refine.py --peer          times the choice of a round of 96 picks beside BoTorch's machinery;
                                                needs the extra `peers` and botorch (learn_peers.py says which torch)

All three ways use the same learner, the same batches and the same rounds; they differ only in where a round's runs go.
`straddle` takes z·deviation - |mean - t|, with the deviations updated after each pick; `sobol` takes the next points
of one Sobol sequence. The runs at which an undecided share is reached are interpolated, in logarithms, between rounds.
`wrong` is the share of the space that is decided wrongly in the end, against the exact f.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import machine
import numpy as np
from scipy.special import ndtri

import sateen as st
from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream_seed
from sateen.core.space import Points
from sateen.decision.picks import PICKS, candidates, greedy
from sateen.decision.refine import GoalStrategy
from sateen.decision.rounds import Question, Round, Search
from sateen.learning.gp.recipes import SVIGP
from sateen.paper.cases.models import phosphorelay, sir

LAYERS: Final = {"k1": (0.1, 2.0), "k2": (0.1, 2.0), "k3": (0.1, 2.0)}
REFERENCE: Final = 8192  # points at which f is computed
SOBOL_RUNS: Final = 20  # of a point of the Sobol design
SOBOL_POINTS: Final = 4000  # at most; then the points of a round get more runs
POOL: Final = 900


@dataclass(frozen=True)
class Problem:
    """A threshold, the undecided shares that are looked at, and those that are refined to."""

    model: st.Model
    formula: st.Formula
    space: st.Space
    threshold: float
    shares: tuple[float, ...]
    aims: Mapping[str, float]  # by way
    budget: int
    exact: bool = False


PROBLEMS: Final = {
    "sir": Problem(
        sir.model(),
        sir.formula("as-stated"),
        st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log")),
        0.1,
        (0.05, 0.035, 0.02),
        {"refine": 0.02, "straddle": 0.035, "sobol": 0.035},
        3_000_000,
        exact=True,
    ),
    "pr4": Problem(
        phosphorelay.model(),
        phosphorelay.formula("paper-data"),
        st.Space(LAYERS, k4=(0.5, 5.0)),
        0.8,
        (0.05,),
        {"refine": 0.05, "straddle": 0.05, "sobol": 0.05},
        1_000_000,
    ),
    "pr6": Problem(
        phosphorelay.model(),
        phosphorelay.formula("paper-data"),
        st.Space({"kp": (0.01, 0.2), **LAYERS, "k4": (0.5, 5.0), "kd": (0.005, 0.1)}),
        0.8,
        (0.05,),
        {"refine": 0.05, "straddle": 0.05, "sobol": 0.05},
        1_000_000,
    ),
}


class Refine(GoalStrategy):
    """As `st.refine` decides."""


class Straddle(GoalStrategy):
    """Where the band reaches furthest over the threshold, with deviations as after the picks before."""

    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> Any:
        (posterior,) = posteriors.values()
        t, z = float(ndtri(self.goal.probability)), float(ndtri(0.5 + 0.5 * self.goal.level))
        fresh = candidates(self.space, stream_seed(seed, "candidates"))
        mean, std = posterior.latent_moments(fresh)
        pool = np.argsort(-(z * std - np.abs(mean - t)))[:POOL]
        theta, distance = fresh.theta[pool], np.abs(mean[pool] - t)
        covariance = posterior.latent_covariance(Points(theta, self.space), seed=0)

        def gain(left: Any, variances: Any, noise: Any) -> Any:
            score = z * np.sqrt(variances) - distance
            return score - score.min() + 1.0

        runs = greedy(covariance, mean[pool], gain, budget, np.ones(len(pool)))
        return theta[runs > 0], runs[runs > 0]


class Sobol(GoalStrategy):
    """The next points of one Sobol sequence."""

    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> Any:
        (posterior,) = posteriors.values()
        before = len(posterior.training.observations)
        more = max(budget // SOBOL_RUNS, 1) if before < SOBOL_POINTS else PICKS
        theta = self.space.sobol(before + more, seed=7)[before:].theta
        return theta, np.full(len(theta), max(budget // len(theta), 1), np.int64)


WAYS: Final = {"refine": Refine, "straddle": Straddle, "sobol": Sobol}


def search(problem: Problem, way: str, seed: int, start: tuple[int, int]) -> tuple[Any, float]:
    """The outcome of a way, and the CPU seconds of its choices."""
    goal = st.Threshold(problem.threshold, undecided=problem.aims[way])
    strategy = WAYS[way](goal, problem.space)
    spent, choose = [0.0], type(strategy).choose

    class Timed(type(strategy)):  # type: ignore[misc]
        def choose(self, *given: Any, **named: Any) -> Any:
            begin = time.process_time()
            choice = choose(self, *given, **named)
            spent.append(time.process_time() - begin)
            return choice

    question = Question(problem.model, {"": problem.formula}, problem.space)
    made = Search(
        question,
        Timed(goal, problem.space),
        SVIGP(),
        start=start,
        budget=problem.budget,
        seed=seed,
        store=None,
        progress=st.core.progress.SILENT,
        options={},
    )
    return made.run(), max(spent)


def reached(rounds: Sequence[Round], share: float) -> float:
    """The runs at which the undecided share is first reached; infinite if it is not."""
    place = next((n for n, each in enumerate(rounds) if each.figure <= share), None)
    if place is None:
        return float("inf")
    if place == 0:
        return float(rounds[0].runs)
    before, after = rounds[place - 1], rounds[place]
    way = np.log(before.figure / share) / np.log(before.figure / after.figure)
    return float(before.runs * (after.runs / before.runs) ** way)


def wrong(problem: Problem, posterior: FullPosterior, points: Points, truth: Any) -> float:
    """The share of the space that is decided wrongly by bands of 95 %."""
    regions = st.decide(posterior, above=problem.threshold, seed=1).of(points)
    above = truth >= problem.threshold
    return float(np.mean(((regions == "above") & ~above) | ((regions == "below") & above)))


def measure(names: Sequence[str], ways: Sequence[str], seeds: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        problem = PROBLEMS[name]
        points = problem.space.sobol(REFERENCE, seed=99)
        truth = st.exact(problem.model, problem.formula, points) if problem.exact else None
        from sateen.decision.refine import _design

        start = _design(problem.space, problem.budget, None)
        for way in ways:
            found, errors, choices, seconds = list[list[float]](), list[float](), list[float](), list[float]()
            for seed in seeds:
                begin = time.process_time()
                outcome, choice = search(problem, way, seed, start)
                seconds.append(time.process_time() - begin)
                choices.append(choice)
                found.append([reached(outcome.rounds, share) for share in problem.shares])
                if truth is not None:
                    errors.append(wrong(problem, outcome.posteriors[""], points, truth))
            medians = [median(each) for each in zip(*found, strict=True)]
            row = {
                "problem": name,
                "way": way,
                "shares": list(problem.shares),
                "runs": [None if np.isinf(each) else round(each) for each in medians],
                "all": [[None if np.isinf(each) else round(each) for each in one] for one in found],
                "median_wrong": median(errors) if errors else None,
                "largest_wrong": max(errors) if errors else None,
                "longest_choice_cpu": max(choices),
                "cpu_seconds": median(seconds),
            }
            rows.append(row)
            shown = "  ".join(f"{share:.1%}: {runs}" for share, runs in zip(row["shares"], row["runs"], strict=True))
            error = "" if not errors else f"wrong {row['median_wrong']:.3%} (at most {row['largest_wrong']:.3%})"
            print(
                f"{name} {way:9} {shown}  {error}  choice {max(choices):.2f} s, in all {median(seconds):.1f} s of CPU"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    options = parser.parse_args()
    rows = measure(options.problems, options.ways, range(1, options.seeds + 1))
    kept = machine.RESULTS / "refine.json"
    if kept.exists():
        import json

        asked = {(row["problem"], row["way"]) for row in rows}
        old = json.loads(kept.read_text(encoding="utf-8"))["rows"]
        rows = [row for row in old if (row["problem"], row["way"]) not in asked] + rows
    print(machine.write("refine", {"machine": machine.note("numpy", "scipy", "sateen"), "rows": rows}))


if __name__ == "__main__":
    main()
