"""The reference simulator against closed forms and exact probabilities.

Seeds are counted from 0 and never chosen; a test fails when what it saw has a probability below one in a million.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, binomtest, kstest, poisson

from distributions import LEVEL, assert_distributed
from sateen.core.path import Verdict
from sateen.engine.simulate import simulate
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model

RUNS, POINTS = 40, 40  # runs at each of so many points of the SIR table
TABLE = FilePath(__file__).parent.parent / "data" / "sir_exact.csv"
SIR = """
    species S = 95, I = 5, R = 0
    constant N = 100
    infect:  S + I -> 2 I  @ beta * S * I / N
    recover: I -> R        @ gamma * I
"""

Probabilities = npt.NDArray[np.float64]


def final_counts(text: str, theta: dict[str, float], until: float, runs: int) -> npt.NDArray[np.int64]:
    """The count of the first species at time `until`, in each of many runs."""
    model = Model.parse(text)
    return np.array(
        [simulate(model, theta, until=until, seed=seed).states[-1, 0] for seed in range(runs)], dtype=np.int64
    )


def assert_mean_and_variance(counts: npt.NDArray[np.int64], probabilities: Probabilities) -> None:
    """Both within the normal error that the distribution's own second and fourth moment give them."""
    values = np.arange(len(probabilities))
    mean = float(values @ probabilities)
    second, fourth = (float((values - mean) ** power @ probabilities) for power in (2, 4))
    runs = len(counts)
    assert abs(counts.mean() - mean) < 4.9 * math.sqrt(second / runs)  # 4.9: one in a million
    assert abs(counts.var(ddof=1) - second) < 4.9 * math.sqrt((fourth - second**2 * (runs - 3) / (runs - 1)) / runs)


def convolved(*distributions: Sequence[float] | Probabilities) -> Probabilities:
    """The distribution of a sum of independent numbers."""
    total = np.ones(1)
    for each in distributions:
        total = np.convolve(total, each)
    return total


# Closed forms.


def test_pure_death_is_binomial() -> None:
    """Each of n survives to t with probability exp(-d t)."""
    counts = final_counts("species X = 40\nX -> 0 @ d * X", {"d": 0.5}, until=1.2, runs=3_000)
    survival = binom.pmf(np.arange(41), 40, math.exp(-0.5 * 1.2))
    assert_distributed(counts, survival)
    assert_mean_and_variance(counts, survival)


def test_immigration_and_death_are_binomial_plus_poisson() -> None:
    """Of n at first, each survives with probability exp(-d t); those that came since are Poisson."""
    k, d, t = 8.0, 0.7, 1.5
    counts = final_counts("species X = 6\n0 -> X @ k\nX -> 0 @ d * X", {"k": k, "d": d}, until=t, runs=3_000)
    survivors = binom.pmf(np.arange(7), 6, math.exp(-d * t))
    newcomers = poisson.pmf(np.arange(60), k / d * (1 - math.exp(-d * t)))
    both = convolved(survivors, newcomers)
    assert_distributed(counts, both)
    assert_mean_and_variance(counts, both)


def test_linear_birth_and_death_have_their_mean_and_variance() -> None:
    """The descendants of one are none, with a probability, or geometric; there are n such families.

    With g = exp((b-d) t), the mean is n g and the variance n (b+d)/(b-d) g (g-1).
    """
    b, d, t, n = 0.9, 0.5, 1.5, 4
    growth = math.exp((b - d) * t)
    counts = final_counts(f"species X = {n}\nX -> 2 X @ b * X\nX -> 0 @ d * X", {"b": b, "d": d}, until=t, runs=3_000)
    extinct, ratio = d * (growth - 1) / (b * growth - d), b * (growth - 1) / (b * growth - d)
    family = [extinct, *((1 - extinct) * (1 - ratio) * ratio ** (size - 1) for size in range(1, 300))]
    all_of_them = convolved(*[family] * n)
    values = np.arange(len(all_of_them))
    mean, variance = n * growth, n * (b + d) / (b - d) * growth * (growth - 1)
    assert math.isclose(values @ all_of_them, mean, rel_tol=1e-9)
    assert math.isclose((values - mean) ** 2 @ all_of_them, variance, rel_tol=1e-9)
    assert_mean_and_variance(counts, all_of_them)
    assert_distributed(counts, all_of_them)


def test_dimerisation_by_mass_action_has_its_equilibrium() -> None:
    """By detailed balance b dimers of 12 have the weight (k/j)^b 12! / ((12 - 2b)! b! 2^b): a factor of 2 shows."""
    model = Model.parse("species B = 3, A = 6\n2 A -> B @ mass_action(k)\nB -> 2 A @ mass_action(j)")
    k, j = 0.3, 1.0
    counts = np.array(
        [simulate(model, {"k": k, "j": j}, until=6, seed=seed).states[-1, 0] for seed in range(800)], dtype=np.int64
    )
    weights = [
        (k / j) ** dimers * math.factorial(12) / (math.factorial(12 - 2 * dimers) * math.factorial(dimers) * 2**dimers)
        for dimers in range(7)
    ]
    assert_mean_and_variance(counts, np.array(weights) / sum(weights))


def test_waiting_times_are_exponential() -> None:
    from_birth = simulate(Model.parse("species X = 0\n0 -> X @ k"), {"k": 3}, until=1e9, seed=0, max_events=20_000)
    assert kstest(np.diff(from_birth.times), "expon", args=(0, 1 / 3)).pvalue > LEVEL


def test_waiting_times_have_the_rate_of_the_state_they_are_spent_in() -> None:
    """The time spent with x left is Exp(d x), so scaled by d x all are Exp(1); two channels share the rate."""
    model = Model.parse("species X = 200\nX -> 0 @ 0.3 * X\nX -> 0 @ 0.2 * X")
    waits = []
    for seed in range(40):
        path = simulate(model, until=1e9, seed=seed)
        waits += (np.diff(path.times) * 0.5 * path["X"][:-1]).tolist()
    assert len(waits) == 8_000
    assert kstest(waits, "expon").pvalue > LEVEL


# SIR, at the points of the table that tell most.


@cache
def table() -> list[dict[str, float]]:
    """Those whose probabilities are the least sure: a count varies most there, and follows the rates most.

    These 40 of 164 points tell nearly as much as all: if both rates were 5 % off, the sum of the counts would be off by
    2.7 standard deviations, and with all points by 2.7 as well. So an error of 9 % in time is noticed as a rule.
    """
    with open(TABLE, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        points = [{name: float(row[name]) for name in ("beta", "gamma", "p")} for row in rows]
    assert len(points) == 164
    return sorted(points, key=lambda point: -point["p"] * (1 - point["p"]))[:POINTS]


@cache
def satisfied() -> list[int]:
    """In how many of its runs each point of the table satisfies the property."""
    model, formula = Model.parse(SIR), stl("(I > 0) U[100, 120] (I == 0)")
    counts = []
    for place, row in enumerate(table()):
        theta = {"beta": row["beta"], "gamma": row["gamma"]}
        seeds = range(place * RUNS, (place + 1) * RUNS)
        verdicts = [monitor(formula, simulate(model, theta, until=formula.horizon, seed=seed)) for seed in seeds]
        assert Verdict.UNKNOWN not in verdicts
        counts.append(verdicts.count(Verdict.TRUE))
    return counts


@pytest.mark.slow
def test_sir_agrees_with_the_exact_probability_at_every_point() -> None:
    """An exact binomial test each; together they err with a probability of at most one in a million (Bonferroni)."""
    for row, count in zip(table(), satisfied(), strict=True):
        pvalue = binomtest(count, RUNS, row["p"]).pvalue
        assert pvalue > LEVEL / POINTS, f"{count} of {RUNS} at {row}"


@pytest.mark.slow
def test_sir_agrees_with_the_exact_probabilities_in_sum() -> None:
    """The exact distribution of the sum of all counts: 40 binomials, convolved."""
    total = sum(satisfied())
    distribution = convolved(*(binom.pmf(np.arange(RUNS + 1), RUNS, row["p"]) for row in table()))
    assert math.isclose(distribution.sum(), 1, rel_tol=1e-9)
    lower, upper = distribution[: total + 1].sum(), distribution[total:].sum()
    assert 2 * min(lower, upper) > LEVEL, (
        f"{total}, where {np.arange(len(distribution)) @ distribution:.1f} was expected"
    )
