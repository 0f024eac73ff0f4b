"""Data to learn from, data to test on, and the truth to compare with, for every problem of the learning benchmarks.

    python benchmarks/learning_data.py a b own/r08/m1/phi2 [--seeds 1 2 3] [--folder FOLDER] [--workers 2]

makes what is missing and prints a line a problem; `training`, `testing` and `truth` give the same to other scripts.
All of it is kept in a folder, ~/.cache/sateen/benchmarks or the one that SATEEN_BENCHMARK_DATA names.

A problem is named

    a … i, l            the paper's configuration, in the variant that its published figures come from
    a/as-stated …       the same, as the paper prints it
    pinned/r08/phi1     a random network with eight rates that is kept with its test points and their truth
    own/r08/m2/phi3     one of the two random networks of our own with as many rates

Training sets are numbered by a seed. Sets with different numbers, and those of different problems, are independent of
each other, of the test set and of the runs behind the truth.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.core.errors import InputError, nearest
from sateen.paper.cases.configurations import CONFIGURATIONS, configuration
from sateen.paper.cases.design import Design
from sateen.paper.cases.random_ctmc import KINDS, MAX_EVENTS, Observe, informative_properties, pinned, random_network
from sateen.paper.published import DIMENSIONS

FloatArray = npt.NDArray[np.float64]
Role = Literal["train", "test", "truth"]
Family = Literal["paper", "as-stated", "pinned", "own"]
FAMILIES: Final[tuple[Family, ...]] = ("paper", "as-stated", "pinned", "own")
ROLES: Final[tuple[Role, ...]] = ("train", "test", "truth")

TRUTH_RUNS: Final = MappingProxyType({"sir": None, "lacz": 5000, "phosphorelay": 50_000})  # None: computed exactly
NETWORK_TRUTH_RUNS: Final = 20_000
GENERATED: Final = 5  # networks for each dimension, with the seeds 1000 r + 1 … 1000 r + 5
USED: Final = 2  # of them: the first that have an informative property of every kind

# Own networks: the seed of each, and the properties that `informative_properties` finds with it (see `choose`).
OWN: Final[Mapping[str, tuple[int, str, str, str]]] = MappingProxyType(
    {
        "r02/m1": (2001, "G[0, 10] S1 <= S3", "F[0, 10] S3 <= S2", "F[0, 10] G S1 < 20"),
        "r02/m2": (2003, "G[0, 10] S3 <= S2", "F[0, 10] S2 <= S3", "F[0, 10] G S3 < 20"),
        "r03/m1": (3001, "G[0, 10] S1 <= S2", "F[0, 10] S2 <= S1", "F[0, 10] G S2 < 20"),
        "r03/m2": (3002, "G[0, 10] S1 <= S4", "F[0, 10] S4 <= S1", "F[0, 10] G S1 < 20"),
        "r04/m1": (4001, "G[0, 10] S5 <= S3", "F[0, 10] S3 <= S1", "F[0, 10] G S2 < 20"),
        "r04/m2": (4005, "G[0, 10] S3 <= S4", "F[0, 10] S4 <= S5", "F[0, 10] G S1 < 20"),
        "r08/m1": (8001, "G[0, 10] S4 <= S3", "F[0, 10] S2 <= S7", "F[0, 10] G S8 < 20"),
        "r08/m2": (8002, "G[0, 10] S6 <= S5", "F[0, 10] S5 <= S3", "F[0, 10] G S7 < 20"),
        "r12/m1": (12001, "G[0, 10] S10 <= S7", "F[0, 10] S13 <= S8", "F[0, 10] G S4 < 20"),
        "r12/m2": (12002, "G[0, 10] S6 <= S11", "F[0, 10] S1 <= S9", "F[0, 10] G S7 < 20"),
        "r16/m1": (16001, "G[0, 10] S1 <= S2", "F[0, 10] S17 <= S5", "F[0, 10] G S1 < 20"),
        "r16/m2": (16002, "G[0, 10] S4 <= S11", "F[0, 10] S1 <= S4", "F[0, 10] G S14 < 20"),
        "r20/m1": (20001, "G[0, 10] S12 <= S17", "F[0, 10] S14 <= S12", "F[0, 10] G S10 < 20"),
        "r20/m2": (20002, "G[0, 10] S18 <= S13", "F[0, 10] S9 <= S18", "F[0, 10] G S6 < 20"),
    }
)


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
    """A function to learn, the designs of its data sets, and how its truth is found.

    `truth_runs` is None where the truth is computed; `stored` is a truth that came with the problem, and its points are
    then the test points.
    """

    name: str
    model: st.Model
    formula: st.Formula
    space: st.Space
    train: Design
    test: Design
    truth_runs: int | None
    stored: Truth | None = None

    def training_points(self, seed: int) -> st.Points:
        """The parameter values of the training set number `seed`."""
        return self.train.draw(self.space, self._seeds("train", seed)[0])

    def test_points(self) -> st.Points:
        """The parameter values of the test set, where the truth is known too."""
        return self.test.draw(self.space, self._seeds("test")[0]) if self.stored is None else self.stored.points

    def run_seed(self, role: Role, number: int = 0) -> int:
        """The seed of the runs of a set."""
        return int(self._seeds(role, number)[1].generate_state(1, np.uint64)[0] >> 1)

    def _seeds(self, role: Role, number: int = 0) -> list[np.random.SeedSequence]:
        """The seeds of the design and of the runs of a set."""
        return np.random.SeedSequence(number, spawn_key=(zlib.crc32(self.name.encode()), ROLES.index(role))).spawn(2)


def problem(name: str) -> Problem:
    """The problem of that name."""
    match name.split("/"):
        case [letter] if letter in CONFIGURATIONS:
            return _of_the_paper(name, letter, "paper-data")
        case [letter, "as-stated"] if letter in CONFIGURATIONS:
            return _of_the_paper(name, letter, "as-stated")
        case ["pinned", rates, kind] if name in names("pinned"):
            return _pinned(name, int(rates[1:]), kind)
        case ["own", rates, network, kind] if name in names("own"):
            return _own(name, f"{rates}/{network}", kind)
    hint = nearest(name, names()) or "names look like a, a/as-stated, pinned/r08/phi1 and own/r08/m1/phi2"
    raise InputError(f"there is no problem {name!r}; {hint}")


def names(family: Family | None = None) -> list[str]:
    """The names of the problems of a family, or of all."""
    families = {
        "paper": list(CONFIGURATIONS),
        "as-stated": [f"{letter}/as-stated" for letter in CONFIGURATIONS],
        "pinned": [f"pinned/r{rates:02d}/{kind}" for rates in DIMENSIONS for kind in KINDS],
        "own": [f"own/{network}/{kind}" for network in OWN for kind in KINDS],
    }
    return families[family] if family else [name for family in FAMILIES for name in families[family]]


def _of_the_paper(name: str, letter: str, variant: str) -> Problem:
    asked = configuration(letter).variant(variant)
    runs = TRUTH_RUNS[asked.case]
    return Problem(name, asked.model, asked.formula, asked.space, asked.train, asked.test, runs)


def _pinned(name: str, rates: int, kind: str) -> Problem:
    external = os.environ.get("SATEEN_EXTERNAL_DATA")
    folder = Path(external) if external else Path(__file__).resolve().parents[1] / "tests" / "data"
    network, place = pinned(folder / "random", rates), KINDS.index(kind)
    known = Truth(network.points, network.frequency[place], network.runs)
    train, test = Design("latin", 5000 * rates, 10), Design("latin", len(network.points), 1000)
    formula = network.properties[place]
    space = network.points.space
    return Problem(name, network.model, formula, space, train, test, network.runs, stored=known)


def _own(name: str, own: str, kind: str) -> Problem:
    rates, (seed, *texts) = int(own[1:3]), OWN[own]
    network, text = random_network(rates, seed), texts[KINDS.index(kind)]
    formula = st.stl(text, end=10 if kind == "phi3" else None)
    return Problem(name, network.model, formula, network.space, network.train, network.test, NETWORK_TRUTH_RUNS)


def choose(rates: int) -> dict[str, tuple[int | str, ...]]:
    """The rows of OWN for so many rates, found anew, which takes up to some minutes."""
    rows: dict[str, tuple[int | str, ...]] = {}
    for seed in range(1000 * rates + 1, 1000 * rates + 1 + GENERATED):
        kept = informative_properties(random_network(rates, seed), seed, observe=_counts_on_the_same_paths())
        if None not in kept:
            rows[f"r{rates:02d}/m{len(rows) + 1}"] = (seed, *map(str, kept))
        if len(rows) == USED:
            break
    return rows


def _counts_on_the_same_paths() -> Observe:
    """What `reference_counts` counts for one network, whose paths are simulated once and not for every formula."""
    paths: list[list[st.Path]] = []

    def counts(
        model: st.Model, formula: st.Formula, points: st.Points, *, runs: int, seed: int
    ) -> npt.NDArray[np.int64]:
        if not paths:
            seeds = np.random.default_rng(seed).integers(2**63, size=(len(points), runs)).tolist()
            paths.extend(
                [st.simulate(model, theta, until=formula.horizon, seed=each, max_events=MAX_EVENTS) for each in some]
                for theta, some in zip(points, seeds, strict=True)
            )
        return np.array([sum(st.monitor(formula, path) is st.Verdict.TRUE for path in some) for some in paths])

    return counts


def training(problem: Problem, seed: int, *, folder: Path | None = None, workers: int | None = None) -> st.Observations:
    """The training set number `seed`, from 1 up."""
    return _observed(problem, "train", seed, problem.train.runs, folder, workers)


def testing(problem: Problem, *, folder: Path | None = None, workers: int | None = None) -> st.Observations:  # noqa: PT028
    """The test set: few points, but many runs at each."""
    return _observed(problem, "test", 0, problem.test.runs, folder, workers)


def truth(problem: Problem, *, folder: Path | None = None, workers: int | None = None) -> Truth:
    """The truth at the test points."""
    if problem.stored is not None:
        return problem.stored
    if problem.truth_runs is not None:
        found = _observed(problem, "truth", 0, problem.truth_runs, folder, workers)
        if found.undecided.any():
            raise InputError(f"{found.undecided.sum()} runs behind the truth of {problem.name} are undecided")
        return Truth(found.points, found.frequency, problem.truth_runs)
    points, file = problem.test_points(), _file(problem, "truth-exact.npy", folder)
    if not file.exists():
        table = np.column_stack([points.theta, st.exact(problem.model, problem.formula, points)])
        partial = file.with_name(f".{file.name}.{os.getpid()}.npy")
        np.save(partial, table)
        partial.replace(file)
    *theta, probability = np.load(file).T
    sample = slice(len(points) // 2, len(points) // 2 + 1)  # tells whether the question is still the same
    again = st.exact(problem.model, problem.formula, points[sample])
    if not np.array_equal(np.transpose(theta), points.theta) or not np.allclose(probability[sample], again, atol=1e-9):
        raise InputError(f"{file} answers another question than {problem.name} asks now; delete it")
    return Truth(points, probability, None)


def _observed(
    problem: Problem, role: Role, number: int, runs: int, folder: Path | None, workers: int | None
) -> st.Observations:
    """The set of that role, read from its file if there is one."""
    numbered = f"{role}{number}" if role == "train" else role
    file, seed = _file(problem, f"{numbered}-{runs}runs.npz", folder), problem.run_seed(role, number)
    if file.exists():
        found = st.Observations.load(file)
        asked = (str(problem.model), str(problem.formula), problem.formula.end, seed)
        if (
            tuple(found.provenance[key] for key in ("model", "formula", "end", "seed")) != asked
            or found.space != problem.space
            or len(found) != (problem.train if role == "train" else problem.test).points
            or (found.trials != runs).any()
        ):
            raise InputError(f"{file} answers another question than {problem.name} asks now; delete it")
        return found
    points = problem.training_points(number) if role == "train" else problem.test_points()
    found = st.observe(problem.model, problem.formula, points, runs, seed=seed, workers=workers)
    found.save(file)
    return found


def _file(problem: Problem, what: str, folder: Path | None) -> Path:
    default = os.environ.get("SATEEN_BENCHMARK_DATA") or Path.home() / ".cache" / "sateen" / "benchmarks"
    place = Path(default if folder is None else folder)
    place.mkdir(parents=True, exist_ok=True)
    return place / f"{problem.name.replace('/', '-')}-{what}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", help="names of problems, or of a family: paper, as-stated, pinned, own")
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
                known = truth(asked, **where).probability
                quantiles = " ".join(f"{each:.4f}" for each in np.quantile(known, [0.05, 0.5, 0.95]))
                words += f"; with truth {time.perf_counter() - began:.1f} s, mean {known.mean():.4f}"
                words += f", deviation {known.std():.4f}, quantiles 5 50 95 %: {quantiles}"
                made.append("truth")
            print(" ".join(made), "|", words, flush=True)


if __name__ == "__main__":
    main()
