"""The lanes against exact probabilities, closed forms and the reference simulator.

Seeds are counted from 0 and never chosen; a test fails when what it saw has a probability below one in a million.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, binomtest, fisher_exact, ks_2samp, kstest, norm, poisson

from distributions import LEVEL, assert_distributed
from lane_checks import count, disagreements, formulas_of, row
from lanes_by_hand import MASK, splitmix, uniforms
from sateen.core.path import Verdict
from sateen.engine.run import Runner, replay
from sateen.engine.simulate import simulate
from sateen.logic.monitor import monitor
from sateen.model.model import Model
from sateen.paper.cases import lacz, phosphorelay, sir
from sateen.paper.cases.models import VARIANTS

TABLE = FilePath(__file__).parent.parent / "data" / "sir_exact.csv"
SIR_RUNS = 20_000  # at each of the 164 points

FloatArray = npt.NDArray[np.float64]


# SIR, at the 164 points of the table.


@cache
def table() -> list[dict[str, float]]:
    with open(TABLE, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [{name: float(row[name]) for name in ("beta", "gamma", "p")} for row in rows]


@cache
def satisfied() -> list[int]:
    """In how many of its runs each point of the table satisfies the property."""
    runner = Runner(sir.model(), (sir.formula("as-stated"),))
    thetas = [row(sir.model(), {"beta": each["beta"], "gamma": each["gamma"]}) for each in table()]
    counts = runner.run(thetas, [[point, 0, SIR_RUNS] for point in range(len(thetas))], seed=0)
    assert counts.undecided.sum() == 0
    found: list[int] = counts.satisfied[0].tolist()
    return found


@pytest.mark.slow
def test_sir_agrees_with_the_exact_probability_at_every_point() -> None:
    """An exact binomial test each; together they err with a probability of at most one in a million (Bonferroni)."""
    points = table()
    assert len(points) == 164
    for each, hits in zip(points, satisfied(), strict=True):
        pvalue = binomtest(hits, SIR_RUNS, each["p"]).pvalue
        assert pvalue > LEVEL / len(points), f"{hits} of {SIR_RUNS} at {each}"


@pytest.mark.slow
def test_sir_agrees_with_the_exact_probabilities_in_sum_and_in_spread() -> None:
    """The sum over 3.28 million runs is normal; the squared standard scores are chi-square where counts are large."""
    p = np.array([each["p"] for each in table()])
    hits = np.array(satisfied())
    variance = SIR_RUNS * p * (1 - p)
    score = (hits.sum() - SIR_RUNS * p.sum()) / math.sqrt(variance.sum())
    assert 2 * norm.sf(abs(score)) > LEVEL
    large = variance > 50
    assert large.sum() > 50
    squares = float((((hits - SIR_RUNS * p) ** 2)[large] / variance[large]).sum())
    degrees = int(large.sum())
    # Wilson and Hilferty: the cube root of chi-square is normal.
    cube = ((squares / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    assert abs(cube) < norm.isf(LEVEL / 2)


# Closed forms, at one time.

FLOW = Model.parse("species X = n\nparameter n = 0, k = 0, d = 1\n0 -> X @ k\nX -> 0 @ d * X")
RUNS = 3000


def states_at(
    model: Model, theta: dict[str, float], time: float, runs: int = RUNS, seed: int = 0
) -> npt.NDArray[np.int64]:
    """The first count at a time, in each of many replayed runs."""
    last = [replay(model, theta, until=time, seed=seed, run=run).states[-1, 0] for run in range(runs)]
    return np.array(last, dtype=np.int64)


def test_pure_death_is_binomial() -> None:
    counts = states_at(FLOW, {"n": 40, "d": 0.5}, 1.2)
    assert_distributed(counts, binom.pmf(np.arange(41), 40, math.exp(-0.5 * 1.2)))


def test_immigration_and_death_are_binomial_plus_poisson() -> None:
    k, d, t = 8.0, 0.7, 1.5
    counts = states_at(FLOW, {"n": 6, "k": k, "d": d}, t)
    survivors = binom.pmf(np.arange(7), 6, math.exp(-d * t))
    newcomers = poisson.pmf(np.arange(60), k / d * (1 - math.exp(-d * t)))
    assert_distributed(counts, np.convolve(survivors, newcomers))


BOUNDS = (0, 1, 2, 4, 7, 11)


@pytest.mark.slow
def test_verdicts_at_a_time_have_the_distribution_of_the_counts() -> None:
    """200,000 runs a bound: what verdicts say of X(t) in pure death, in immigration-death and in between."""
    t = 1.5
    texts = [f"F[{t}, {t}] X <= {bound}" for bound in BOUNDS]
    runner = Runner(FLOW, formulas_of([*texts, f"G[0, {t}] X >= 3"]))
    for n, k, d in ((12, 0.0, 0.6), (0, 4.0, 0.9), (9, 3.0, 1.3)):
        counts = count(runner, {"n": n, "k": k, "d": d}, 200_000, seed=n)
        survivors = binom.pmf(np.arange(n + 1), n, math.exp(-d * t))
        both = np.convolve(survivors, poisson.pmf(np.arange(100), k / d * (1 - math.exp(-d * t))))
        for place, bound in enumerate(BOUNDS):
            p = min(1.0, float(both[: bound + 1].sum()))
            assert binomtest(int(counts.satisfied[place, 0]), 200_000, p).pvalue > LEVEL / 18, (n, k, d, bound)
        if k == 0:  # a death only falls
            stays = float(both[3:].sum())
            assert binomtest(int(counts.satisfied[-1, 0]), 200_000, stays).pvalue > LEVEL


QUEUE = Model.parse("species X = 0\narrive: 0 -> X @ lam\nserve: X -> 0 @ mu * min(X, 1)")


@pytest.mark.slow
def test_a_queue_settles_at_its_geometric_distribution() -> None:
    """M/M/1 with load 0.5, far past its relaxation; and the ruin of its busy period, P(max >= m) by gambler's ruin."""
    runner = Runner(QUEUE, formulas_of([*(f"F[60, 60] X >= {m}" for m in (1, 2, 3, 5)), "F[0, 60] X < 0"]))
    counts = count(runner, {"lam": 1.0, "mu": 2.0}, 60_000, seed=0)
    for place, m in enumerate((1, 2, 3, 5)):
        assert binomtest(int(counts.satisfied[place, 0]), 60_000, 0.5**m).pvalue > LEVEL / 4
    assert counts.satisfied[-1, 0] == 0


# Waits.


def test_waits_are_exponential() -> None:
    path = replay(FLOW, {"k": 3.0, "d": 0.0}, until=1e9, seed=0, max_events=100_000)
    waits = np.diff(path.times) * 3
    assert len(waits) == 100_000
    assert kstest(waits, "expon").pvalue > LEVEL
    assert abs(np.corrcoef(waits[1:], waits[:-1])[0, 1]) < norm.isf(LEVEL / 2) / math.sqrt(len(waits) - 1)


def first_uniforms(numbers: list[tuple[int, int, int]]) -> FloatArray:
    return np.array([next(uniforms(*each)) for each in numbers])


@pytest.mark.parametrize("moving", range(3), ids=["seed", "point", "run"])
def test_neighbouring_seeds_points_and_runs_are_independent(moving: int) -> None:
    """Uniform each, and without correlation: between the two uniforms of an event, and between neighbours."""
    places = [tuple(number if moving == place else 7 for place in range(3)) for number in range(20_000)]
    waits, picks = first_uniforms(places).T  # type: ignore[arg-type]
    limit = norm.isf(LEVEL / 2) / math.sqrt(len(waits) - 1)
    assert kstest(waits, "uniform").pvalue > LEVEL
    assert kstest(picks, "uniform").pvalue > LEVEL
    for one, other in ((waits, picks), (waits[1:], waits[:-1]), (picks[1:], picks[:-1]), (waits[1:], picks[:-1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < limit
        assert abs(np.corrcoef(np.abs(one - 0.5), np.abs(other - 0.5))[0, 1]) < limit


def test_every_bit_of_the_mix_is_as_often_one_as_zero_and_flips_with_every_bit_of_its_input() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.integers(2**64, size=4000, dtype=np.uint64).tolist()
    outputs = [splitmix(z) for z in inputs]
    assert len(set(outputs)) == len(outputs)
    limit = norm.isf(LEVEL / 2 / (65 * 64)) * 0.5 * math.sqrt(len(inputs))
    for bit in range(64):
        ones = sum(output >> bit & 1 for output in outputs)
        assert abs(ones - len(inputs) / 2) < limit
    for flipped in range(0, 64, 7):
        changed = np.zeros(64)
        for z, output in zip(inputs, outputs, strict=True):
            difference = output ^ splitmix((z ^ 1 << flipped) & MASK)
            changed += [difference >> bit & 1 for bit in range(64)]
        assert np.abs(changed - len(inputs) / 2).max() < limit


# The cases against the reference simulator.


def reference(model: Model, theta: dict[str, float], until: float, runs: int) -> list:
    return [simulate(model, theta, until=until, seed=seed) for seed in range(runs)]


@pytest.mark.slow
def test_sir_has_the_references_states_at_a_time() -> None:
    """Two-sample Kolmogorov-Smirnov on I and S at time 30, which for discrete counts errs on the safe side."""
    theta = {"beta": 0.12, "gamma": 0.05}
    ours = np.array([replay(sir.model(), theta, until=30, seed=0, run=run).states[-1] for run in range(2000)])
    theirs = np.array([path.states[-1] for path in reference(sir.model(), theta, 30, 250)])
    for column in range(2):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > LEVEL / 2


@pytest.mark.slow
def test_the_phosphorelay_has_the_references_frequencies_in_both_variants() -> None:
    model = phosphorelay.model()
    runner = Runner(model, tuple(phosphorelay.formula(variant) for variant in VARIANTS))
    assert disagreements(runner, {}, 40, seed=1, until=600) == []
    thetas = ({}, {"k1": 2.0, "k4": 30.0}, {"kp": 0.05, "k2": 5.0})
    for theta in thetas:
        counts = count(runner, theta, 20_000, seed=0)
        paths = reference(model, theta, 600, 60)
        for place, formula in enumerate(runner.formulas):
            verdicts = [monitor(formula, path) for path in paths]
            hits, known = int(counts.satisfied[place, 0]), verdicts.count(Verdict.TRUE)
            assert fisher_exact([[hits, 20_000 - hits], [known, 60 - known]]).pvalue > LEVEL / 6, (theta, formula)


@pytest.mark.slow
def test_lacz_has_the_monitors_verdicts_in_both_variants() -> None:
    """Nested and delayed, with thousands of events a run."""
    runner = Runner(lacz.model(), tuple(lacz.formula(variant) for variant in VARIANTS))
    for k2 in (300.0, 1000.0):  # where bursts are neither sure nor impossible
        assert disagreements(runner, {"k2": k2}, 2, seed=1, until=2300) == []
    counts = count(runner, {"k2": 300.0}, 500, seed=0)
    assert counts.undecided.sum() == 0
    assert ((counts.satisfied > 100) & (counts.satisfied < 400)).all()


@pytest.mark.slow
def test_lacz_has_the_references_counts_at_a_time() -> None:
    """Two-sample Kolmogorov-Smirnov on what transcription, its end and translation have made by time 40.

    It would notice a rate of R1, R2, R3, R8 or R9 that is half or twice what it should be.
    """
    made = ("TrLacZ2", "RbsRibosome", "TrRbsLacZ", "LacZ")
    model = lacz.model()
    theirs = [path.states[-1] for path in reference(model, {}, 40.0, 60)]
    ours = [replay(model, {}, until=40.0, seed=0, run=run).states[-1] for run in range(1000)]
    for column in (model.species.index(name) for name in made):
        assert ks_2samp([each[column] for each in ours], [each[column] for each in theirs]).pvalue > LEVEL / len(made)
