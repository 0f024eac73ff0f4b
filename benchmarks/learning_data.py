"""Data to learn from, data to test on, and the truth to compare with, for every problem of the learning benchmarks.

    python benchmarks/learning_data.py a b own/r08/m1/phi2 [--seeds 1 2 3] [--folder FOLDER] [--workers 2]

makes what is missing and prints a line a problem; `training`, `testing` and `truth` give the same to other scripts.
All of it is kept in a folder, ~/.cache/sateen/benchmarks or the one that SATEEN_BENCHMARK_DATA names.

A problem is named

    a … i, l            the paper's configuration, in the variant that its published figures come from
    a/as-stated …       the same, as the paper prints it
    i/fewer, l/fewer    those two with 400 test points instead of 4096, whose truth costs a tenth
    pinned/r08/phi1     a random network with eight rates that is kept with its test points and their truth
    own/r08/m2/phi3     one of the two random networks of our own with as many rates
    fresh/r08/phi3      the third, with fewer test points: kept apart, to judge what was chosen on the others

Training sets are numbered by a seed. Sets with different numbers, and those of different problems, are independent of
each other, of the test set and of the runs behind the truth.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.cases.configurations import CONFIGURATIONS, Design, configuration
from sateen.paper.cases.models import unknown_name
from sateen.paper.cases.random_ctmc import KINDS
from sateen.paper.published import DIMENSIONS
from sateen.paper.questions import NETWORKS, Question, Set, questions

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from pinned_networks import pinned

FloatArray = npt.NDArray[np.float64]
Family = Literal["paper", "as-stated", "fewer", "pinned", "own", "fresh"]
FAMILIES: Final[tuple[Family, ...]] = ("paper", "as-stated", "fewer", "pinned", "own", "fresh")
USED: Final = 2  # of our own networks for each dimension: the first that have an informative property of every kind
FRESH: Final = Design("latin", 100, 1000)  # test points
FEWER: Final = Design("latin", 400, 1000)


@dataclass(frozen=True, slots=True)
class Truth:
    """P(formula | θ) at the test points: exact, or the share of `runs` runs."""

    points: st.Points
    probability: FloatArray
    runs: int | None

    @property
    def error(self) -> FloatArray:
        """The standard error of each probability."""
        spread = np.sqrt(self.probability * (1 - self.probability))
        return np.zeros_like(spread) if self.runs is None else spread / np.sqrt(self.runs)


@dataclass(frozen=True, slots=True)
class Problem:
    """A question about one function; `stored` is a truth that came with it, and its points are then the test points."""

    question: Question
    stored: Truth | None = None

    @property
    def name(self) -> str:
        """The name of the problem."""
        return self.question.name

    @property
    def formula(self) -> st.Formula:
        """The only formula."""
        (formula,) = self.question.formulas.values()
        return formula

    @property
    def space(self) -> st.Space:
        """Where the parameters vary."""
        return self.question.space

    def points(self, role: Set, number: int = 0) -> st.Points:
        """The parameter values of a set; the truth is known at the test points."""
        return self.stored.points if self.stored and role != "train" else self.question.points(role, number)


def problem(name: str) -> Problem:
    """The problem of that name."""
    match name.split("/"):
        case [letter] if letter in CONFIGURATIONS:
            return Problem(*questions([letter]))
        case [letter, "as-stated"] if letter in CONFIGURATIONS:
            asked = configuration(letter).variant("as-stated")
            (question,) = questions([letter])
            return Problem(replace(question, name=name, formulas={name: asked.formula}, space=asked.space))
        case [letter, "fewer"] if name in names("fewer"):
            (question,) = questions([letter])
            return Problem(replace(question, name=name, formulas={name: question.formulas[letter]}, test=FEWER))
        case ["pinned", rates, kind] if name in names("pinned"):
            return _pinned(name, int(rates[1:]), kind)
        case ["own", rates, network, kind] if name in names("own"):
            return _network(name, rates, network, kind)
        case ["fresh", rates, kind] if name in names("fresh"):
            known = _network(name, rates, f"m{USED + 1}", kind)
            return Problem(replace(known.question, test=FRESH))
    raise unknown_name(f"there is no problem {name!r}", name, names())


def names(family: Family | None = None) -> list[str]:
    """The names of the problems of a family, or of all."""
    families = {
        "paper": list(CONFIGURATIONS),
        "as-stated": [f"{letter}/as-stated" for letter in CONFIGURATIONS],
        "fewer": ["i/fewer", "l/fewer"],
        "pinned": [f"pinned/r{rates:02d}/{kind}" for rates in DIMENSIONS for kind in KINDS],
        "own": [
            f"own/r{rates:02d}/m{place}/{kind}" for rates in NETWORKS for place in range(1, USED + 1) for kind in KINDS
        ],
        "fresh": [f"fresh/r{rates:02d}/{kind}" for rates in NETWORKS for kind in KINDS],
    }
    return families[family] if family else [name for family in FAMILIES for name in families[family]]


def _network(name: str, rates: str, network: str, kind: str) -> Problem:
    (question,) = (each for each in questions([rates]) if each.name == f"{rates}/{network}")
    return Problem(replace(question, name=name, formulas={name: question.formulas[f"{question.name}/{kind}"]}))


def _pinned(name: str, rates: int, kind: str) -> Problem:
    external = os.environ.get("SATEEN_EXTERNAL_DATA")
    folder = Path(external) if external else Path(__file__).resolve().parents[1] / "tests" / "data"
    network, place = pinned(folder / "random", rates), KINDS.index(kind)
    known = Truth(network.points, network.frequency[place], network.runs)
    train, test = Design("latin", 5000 * rates, 10), Design("latin", len(network.points), 1000)
    formulas = {name: network.properties[place]}
    space = network.points.space
    return Problem(Question(name, "random", network.model, formulas, space, train, test, network.runs), stored=known)


def training(problem: Problem, seed: int, *, folder: Path | None = None, workers: int | None = None) -> st.Observations:
    """The training set number `seed`, from 1 up."""
    return _observed(problem, "train", seed, problem.question.train.runs, folder, workers)


def testing(problem: Problem, *, folder: Path | None = None, workers: int | None = None) -> st.Observations:  # noqa: PT028
    """The test set: few points, but many runs at each."""
    return _observed(problem, "test", 0, problem.question.test.runs, folder, workers)


def truth(
    problem: Problem, *, runs: int | None = None, folder: Path | None = None, workers: int | None = None
) -> Truth:
    """The truth at the test points: exact, stored, or the share of `runs` runs at each (None: the question's own)."""
    question = problem.question
    if problem.stored is not None:
        return problem.stored
    if question.truth_runs is not None:
        runs = runs or question.truth_runs
        known = _observed(problem, "truth", 0, runs, folder, workers)
        if known.undecided.any():
            raise st.InputError(f"{known.undecided.sum()} runs behind the truth of {problem.name} are undecided")
        return Truth(known.points, known.frequency, runs)
    points, file = problem.points("test"), _file(problem, "truth-exact.npy", folder)
    if not file.exists():
        table = np.column_stack([points.theta, st.exact(question.model, problem.formula, points)])
        partial = file.with_name(f".{file.name}.{os.getpid()}.npy")
        np.save(partial, table)
        partial.replace(file)
    *theta, probability = np.load(file).T
    sample = slice(len(points) // 2, len(points) // 2 + 1)  # tells whether the question is still the same
    again = st.exact(question.model, problem.formula, points[sample])
    if not np.array_equal(np.transpose(theta), points.theta) or not np.allclose(probability[sample], again, atol=1e-9):
        raise st.InputError(f"{file} answers another question than {problem.name} asks now; delete it")
    return Truth(points, probability, None)


def _observed(
    problem: Problem, role: Set, number: int, runs: int, folder: Path | None, workers: int | None
) -> st.Observations:
    """The set of that role, read from its file if there is one."""
    question, numbered = problem.question, f"{role}{number}" if role == "train" else role
    file, seed = _file(problem, f"{numbered}-{runs}runs.safetensors", folder), question.run_seed(role, number)
    if file.exists():
        kept = st.Observations.load(file)
        asked = (str(question.model), str(problem.formula), problem.formula.end, seed)
        if (
            tuple(kept.provenance[key] for key in ("model", "formula", "end", "seed")) != asked
            or kept.space != question.space
            or len(kept) != (question.train if role == "train" else question.test).points
            or (kept.trials != runs).any()
        ):
            raise st.InputError(f"{file} answers another question than {problem.name} asks now; delete it")
        return kept
    points = problem.points(role, number)
    observed = st.observe(question.model, problem.formula, points, runs, seed=seed, workers=workers)
    observed.save(file)
    return observed


def _file(problem: Problem, what: str, folder: Path | None) -> Path:
    default = os.environ.get("SATEEN_BENCHMARK_DATA") or Path.home() / ".cache" / "sateen" / "benchmarks"
    place = Path(default if folder is None else folder)
    place.mkdir(parents=True, exist_ok=True)
    return place / f"{problem.name.replace('/', '-')}-{what}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", help="names of problems, or of a family: " + ", ".join(FAMILIES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1], help="numbers of the training sets")
    parser.add_argument("--without-truth", action="store_true", help="make the training and test sets only")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    where = {"folder": options.folder, "workers": options.workers}
    for given in options.problems:
        for name in names(given) if given in FAMILIES else [given]:
            began = time.perf_counter()
            asked = problem(name)
            sets = {f"train{seed}": training(asked, seed, **where) for seed in options.seeds}
            sets["test"] = testing(asked, **where)
            undecided = sum(int(each.undecided.sum()) for each in sets.values())
            words = f"{time.perf_counter() - began:.1f} s, {undecided} undecided runs"
            made = [name, *sets]
            if not options.without_truth:
                judge = truth(asked, **where)
                known = judge.probability
                quantiles = " ".join(f"{each:.4f}" for each in np.quantile(known, [0.05, 0.5, 0.95]))
                words += f"; with truth {time.perf_counter() - began:.1f} s, mean {known.mean():.4f}"
                words += f", standard error {np.sqrt(np.mean(judge.error**2)):.4f}"
                words += f", deviation {known.std():.4f}, quantiles 5 50 95 %: {quantiles}"
                made.append("truth")
            print(" ".join(made), "|", words, flush=True)


if __name__ == "__main__":
    main()
