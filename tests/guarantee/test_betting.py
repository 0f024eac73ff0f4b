"""The bound on a mean by betting: its promise over many draws, and its arithmetic against a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import binom

from sateen import InputError
from sateen.guarantee.error_bound import least_true, mean_upper_bound

CERTAIN = 1e-6

values = some.lists(some.floats(0, 1), min_size=1, max_size=60)
misses = some.floats(0.001, 0.5)

DRAWS = {
    "rarely 1": (0.02, lambda rng, n: rng.binomial(1, 0.02, n).astype(float)),
    "a fair coin": (0.5, lambda rng, n: rng.binomial(1, 0.5, n).astype(float)),
    "mostly 1": (0.9, lambda rng, n: rng.binomial(1, 0.9, n).astype(float)),
    "uniform": (0.5, lambda rng, n: rng.random(n)),
    "small": (0.05, lambda rng, n: rng.beta(2, 38, n)),
    "small, and rarely large": (0.05 * 0.99 + 0.9 * 0.01, lambda rng, n: np.where(rng.random(n) < 0.01, 0.9, 0.05)),
    "by turns": (0.3, lambda rng, n: np.where(np.arange(n) % 2, rng.binomial(1, 0.3, n), 0.6 * rng.random(n))),
}


@pytest.mark.parametrize("n", [5, 40, 200])
@pytest.mark.parametrize("name", DRAWS)
def test_the_mean_exceeds_the_bound_as_seldom_as_promised(name, n):
    assert binom.sf(_exceeded(name, n, 300) - 1, 300, 0.1) > CERTAIN


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_over_thousands_of_draws_too(name):
    assert binom.sf(_exceeded(name, 60, 3000) - 1, 3000, 0.1) > CERTAIN


def _exceeded(name: str, n: int, repetitions: int) -> int:
    """How often the mean exceeds its bound, which misses with probability 0.1 at most."""
    mean, draw = DRAWS[name]
    rng = np.random.default_rng(n)
    return sum(mean > mean_upper_bound(draw(rng, n), 0.1) for _ in range(repetitions))


def test_values_of_different_distributions_bound_what_is_below_the_mean_of_each():
    rng = np.random.default_rng(1)
    tops = np.linspace(0.4, 1.0, 50)  # uniform on [0, top]: means from 0.2 up
    exceeded = sum(mean_upper_bound(tops * rng.random(50), 0.05) < 0.2 for _ in range(300))
    assert binom.sf(exceeded - 1, 300, 0.05) > CERTAIN


@given(values, misses)
def test_the_bound_is_that_of_a_plain_loop_over_means(column, miss):
    found = mean_upper_bound(column, miss)
    grid = np.linspace(0, 1, 201)[:-1]
    given_up = [m for m in grid if _reaches(column, m, 1 / miss)]
    least = min(given_up, default=1.0)
    assert least - 1 / 200 - 1e-9 <= found <= least + 1e-9


def _reaches(column: list[float], mean: float, goal: float) -> bool:
    """Whether the bets against a mean ever multiply the capital by the goal."""
    capital, total, squares = 1.0, 0.5, 0.25
    best = 1.0
    for count, x in enumerate(column, start=1):
        variance = squares / count
        stake = min(math.sqrt(2 * math.log(goal) / (len(column) * variance)), 0.99 / (1 - mean))
        capital *= 1 - stake * (x - mean)
        best = max(best, capital)
        total += x
        squares += (x - total / (count + 1)) ** 2
    return best >= goal


@given(values, misses)
def test_whoever_may_miss_less_often_gets_a_greater_bound(column, miss):
    assert 0 <= mean_upper_bound(column, miss) <= 1
    constant = np.full(len(column), column[0])
    assert column[0] <= mean_upper_bound(constant, miss) <= mean_upper_bound(constant, miss / 2) + 1e-12


def test_zeros_leave_room_for_what_was_not_seen():
    """With probability δ, n draws of a coin that shows 1 with probability 1 - δ^(1/n) show only 0."""
    for n in (50, 300, 5000):
        least = 1 - 0.05 ** (1 / n)
        assert least <= mean_upper_bound(np.zeros(n), 0.05) <= 1.25 * least


def test_ones_leave_no_room():
    assert mean_upper_bound(np.ones(20), 0.05) == 1.0


def test_it_beats_hoeffding_where_values_vary_little():
    rng = np.random.default_rng(3)
    x = rng.beta(2, 38, 200)
    hoeffding = x.mean() + math.sqrt(math.log(20) / 400)
    assert mean_upper_bound(x, 0.05) - x.mean() < 0.25 * (hoeffding - x.mean())


@pytest.mark.parametrize("wrong", [[], [[0.1], [0.2]], [0.5, 1.1], [-0.1], [math.nan]])
def test_what_is_no_column_of_values_between_0_and_1_is_refused(wrong):
    with pytest.raises(InputError, match="between 0 and 1"):
        mean_upper_bound(wrong, 0.05)


@given(some.floats(0, 1), some.floats(0, 1))
def test_the_least_true_number_is_found_from_above(threshold, low):
    found = least_true(lambda x: x >= threshold, low, 1.0)
    assert max(threshold, low) <= found <= max(threshold, low) + 1e-11
