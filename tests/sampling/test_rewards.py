"""Estimated rewards: against exact ones, their intervals' coverage, their claims, and runs that stay undecided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import sateen as st
from sateen.core.errors import InputError, MissingValueError, SimulationError
from sateen.core.proportions import bounded_margin
from sateen.language.grammar import parse_condition, parse_expression
from sateen.logic.rewards import Reward
from sateen.sampling.rewards import FINITE, Earner

LEVEL = 1e-6
SPREAD = 5.0  # standard errors, beyond which a normal mean is with probability 6e-7

# An epidemic that ends, with bounded counts, and immigration without bounds: one kernel each.
EPIDEMIC = st.Model.parse("""
    species S = 9 in [0, 10], I = 1 in [0, 10]
    infect:  S + I -> 2 I @ b * S * I / 10
    recover: I -> 0       @ I
""")
CROWD = st.Model.parse("species X = 0\nenter: 0 -> X @ a\nleave: X -> 0 @ X")
THETA = {"b": 2.0}


def accumulated(rate: str, time: float = math.inf) -> Reward:
    return Reward(parse_expression(rate), "C", time)


def at(rate: str, time: float) -> Reward:
    return Reward(parse_expression(rate), "I", time)


def until(goal: str, rate: str = "1") -> Reward:
    return Reward(parse_expression(rate), "F", goal=parse_condition(goal))


@pytest.mark.parametrize(
    "reward",
    [accumulated("I", 2.0), accumulated("b * S * I / 10", 1.5), at("S * I", 1.0), until("I == 0"), accumulated("S * I"),
     until("I == 0 or I > 3", "I + S")],
    ids=str,
)  # fmt: skip
def test_the_mean_of_runs_is_near_the_exact_value(reward):
    found = st.estimate(EPIDEMIC, reward, THETA, seed=11, runs=2_000)
    exact = float(st.exact(EPIDEMIC, reward, THETA)[0])
    assert abs(found.value - exact) < SPREAD * found.deviation / math.sqrt(2_000)
    assert found.undecided == found.infinite == 0
    assert found.lower <= found.normal_lower <= found.value <= found.normal_upper <= found.upper


def test_what_a_run_earns_is_what_its_path_says():
    reward = accumulated("S * I + 1", 2.5)
    earner = Earner(EPIDEMIC, reward, THETA, seed=5, max_events=10**6, max_time=math.inf)
    earned = earner.run(3, 20)
    for place in range(20):
        path = st.replay(EPIDEMIC, THETA, until=2.5, seed=5, run=3 + place)
        stays = np.diff(np.append(path.times, 2.5))
        rates = path.column("S") * path.column("I") + 1
        assert earned.values[place] == pytest.approx(float(rates @ stays), rel=1e-12)
    assert (earned.ends == FINITE).all()


def test_runs_are_the_same_in_whatever_chunks_they_are_made():
    earner = Earner(EPIDEMIC, until("I == 0", "S"), THETA, seed=5, max_events=10**6, max_time=math.inf)
    whole, parts = earner.run(0, 40), [earner.run(start, 8) for start in range(0, 40, 8)]
    assert np.array_equal(whole.values, np.concatenate([part.values for part in parts]))
    assert whole.events == sum(part.events for part in parts)


def test_the_count_of_arrivals_has_the_mean_of_poisson():
    found = st.estimate(CROWD, accumulated("a", 3.0), {"a": 4.0}, seed=2, runs=50)
    assert (found.value, found.lower, found.upper, found.deviation) == (12.0, 12.0, 12.0, 0.0)  # the rate is constant
    crowd = st.estimate(CROWD, at("X", 3.0), {"a": 4.0}, seed=2, runs=2_000)
    mean = 4.0 * (1 - math.exp(-3.0))
    assert abs(crowd.value - mean) < SPREAD * math.sqrt(mean / 2_000)
    assert crowd.deviation**2 == pytest.approx(mean, rel=0.2)  # for it has the law of Poisson


# What the intervals claim.


def test_a_bounded_reward_has_an_interval_for_any_number_of_runs_and_an_unbounded_one_an_asymptotic_one():
    bounded = st.estimate(EPIDEMIC, at("I", 1.0), THETA, seed=3, runs=100)
    assert bounded.claim.mode == "frequentist"
    assert "contain the expected reward in at least 95 % of cases" in str(bounded.claim)
    margin = 10 * bounded_margin(bounded.deviation / 10, 100, 0.025)
    assert (bounded.lower, bounded.upper) == pytest.approx(
        (max(bounded.value - margin, 0), min(bounded.value + margin, 10))
    )
    free = st.estimate(CROWD, at("X", 1.0), {"a": 4.0}, seed=3, runs=100)
    assert free.claim.mode == "asymptotic"
    assert "as the number of runs grows" in str(free.claim)
    assert (free.lower, free.upper) == (free.normal_lower, free.normal_upper)
    assert free.upper - free.lower == pytest.approx(2 * 1.959964 * free.deviation / 10, rel=1e-6)


def test_intervals_contain_the_mean_as_often_as_they_claim():
    # Values of 0 and 10, rarely 10: hard for normal quantiles, and the empirical Bernstein bound must hold.
    rng = np.random.default_rng(7)
    misses = 0
    for _ in range(2_000):
        values = 10.0 * (rng.random(40) < 0.03)
        margin = 10 * bounded_margin(float(values.std(ddof=1)) / 10, 40, 0.025)
        misses += not values.mean() - margin <= 0.3 <= values.mean() + margin
    assert binom.sf(misses - 1, 2_000, 0.05) > LEVEL
    earner = Earner(CROWD, at("X", 3.0), {"a": 4.0}, seed=9, max_events=10**6, max_time=math.inf)
    values = earner.run(0, 8_000).values.reshape(160, 50)
    half = 1.959964 * values.std(axis=1, ddof=1) / math.sqrt(50)
    misses = int((np.abs(values.mean(axis=1) - 4.0 * (1 - math.exp(-3.0))) > half).sum())
    assert binom.sf(misses - 1, 160, 0.075) > LEVEL  # of 50 runs the claim is nearly true


def test_runs_that_all_earn_the_same_claim_nothing_about_others():
    rare = st.estimate(CROWD, at("if(X > 60, 1, 0) * X", 1.0), {"a": 4.0}, seed=1, runs=20)
    assert (rare.value, rare.lower, rare.upper) == (0.0, 0.0, math.inf)
    assert "from which nothing follows" in str(rare)


# Runs that stay undecided, and expectations that are infinite.


def test_undecided_runs_are_counted_and_open_the_interval_upwards():
    reward = until("X >= 6")
    cut = st.estimate(CROWD, reward, {"a": 4.0}, seed=4, runs=200, max_events=40)
    assert cut.undecided == cut.reasons["max_events"] > 0
    assert math.isnan(cut.value)
    assert cut.upper == math.inf
    whole = st.estimate(CROWD, reward, {"a": 4.0}, seed=4, runs=200)
    assert whole.undecided == 0
    assert cut.lower < whole.lower
    assert "undecided runs count with what they had earned below, and with any amount above" in str(cut)
    early = st.estimate(CROWD, reward, {"a": 4.0}, seed=4, runs=200, max_time=0.5)
    assert early.undecided == early.reasons["max_time"] > 150


def test_an_undecided_run_of_a_bounded_reward_counts_with_the_most_that_is_possible():
    cut = st.estimate(EPIDEMIC, at("I", 3.0), THETA, seed=4, runs=200, max_events=4)
    whole = st.estimate(EPIDEMIC, at("I", 3.0), THETA, seed=4, runs=200)
    assert 0 < cut.undecided < 200
    assert cut.lower < whole.lower < whole.upper < cut.upper < math.inf


def test_a_run_that_ends_elsewhere_shows_that_the_expectation_is_infinite():
    found = st.estimate(EPIDEMIC, until("S == 0"), THETA, seed=6, runs=100)
    assert found.infinite > 0
    assert found.value == found.lower == math.inf
    assert "the expected reward is infinite" in str(found)
    assert st.exact(EPIDEMIC, until("S == 0"), THETA)[0] == math.inf
    assert st.estimate(EPIDEMIC, accumulated("S + 1"), THETA, seed=6, runs=10).infinite == 10


def test_what_holds_at_once_is_worth_nothing():
    found = st.estimate(CROWD, until("X == 0"), {"a": 4.0}, seed=6, runs=10)
    assert (found.value, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert st.estimate(CROWD, at("X + 2", 0.0), {"a": 4.0}, seed=6, runs=10).upper == 2.0


# What is refused.


@pytest.mark.parametrize(
    "option",
    [{"width": 0.1}, {"test": "P > 0.5"}, {"indifference": 0.1}, {"error": 0.1}, {"bayes": True}, {"prior": (1, 1)},
     {"factor": 3.0}],
)  # fmt: skip
def test_options_of_probabilities_are_refused(option):
    with pytest.raises(InputError, match=f"{next(iter(option))} is about a probability"):
        st.estimate(CROWD, at("X", 1.0), {"a": 1.0}, seed=1, **option)


def test_a_single_run_an_unknown_name_and_a_negative_reward_are_refused():
    with pytest.raises(InputError, match="runs is 2 or more"):
        st.estimate(CROWD, at("X", 1.0), {"a": 1.0}, seed=1, runs=1)
    with pytest.raises(MissingValueError, match="Y is neither"):
        st.estimate(CROWD, at("Y", 1.0), {"a": 1.0}, seed=1)
    with pytest.raises(SimulationError, match=r"the reward is -\d+ at time .* of run \d+, seed 1"):
        st.estimate(CROWD, at("0 - X", 5.0), {"a": 4.0}, seed=1)
    with pytest.raises(InputError, match="max_time is a time after 0"):
        st.estimate(CROWD, at("X", 5.0), {"a": 4.0}, seed=1, max_time=0.0)
