"""Poisson weights, the motion of probability and its limit, each against formulas or dense linear algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.linalg import expm
from scipy.stats import poisson

from sateen.core.errors import ExactError
from sateen.engine import motion
from sateen.engine.motion import SOLUTION_ERROR, Flow, Limit, poisson_weights


@pytest.mark.parametrize("error", [1e-6, 1e-13])
@pytest.mark.parametrize("mean", [1e-300, 1e-9, 0.3, 1.0, 7.5, 100.0, 12_345.6, 1e6, 1e7])
def test_poisson_weights_are_the_probabilities_and_leave_out_less_than_the_error(mean, error):
    first, weights = poisson_weights(mean, error)
    counts = np.arange(first, first + len(weights))
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights == pytest.approx(poisson.pmf(counts, mean), abs=2e-12 + error, rel=1e-7)
    left_out = poisson.cdf(first - 1, mean) + poisson.sf(first + len(weights) - 1, mean)
    assert left_out <= error


@pytest.mark.parametrize("mean", [0.5, 30.0, 1e4, 1e6])
def test_poisson_weights_are_few(mean):
    """About six standard deviations on either side hold all but 1e-9."""
    _, weights = poisson_weights(mean, 1e-9)
    assert len(weights) <= 14 * math.sqrt(mean) + 14


def dense_after(size, sources, targets, rates, start, duration):
    generator = np.zeros((size, size))
    np.add.at(generator, (sources, targets), rates)
    generator -= np.diag(generator.sum(axis=1))
    return start @ expm(generator * duration)


@some.composite
def graphs(draw):
    """Edges between up to 9 states of which the first two are sinks, with rates over three decades."""
    size = draw(some.integers(3, 9))
    ends = some.tuples(some.integers(2, size - 1), some.integers(0, size - 1)).filter(lambda edge: edge[0] != edge[1])
    edges = draw(some.lists(ends, min_size=1, max_size=20))
    rates = [draw(some.sampled_from((0.01, 0.3, 1.0, 2.5, 20.0))) for _ in edges]
    sources, targets = np.array(edges, dtype=np.int64).T
    return size, sources, targets, np.array(rates)


@given(graphs(), some.sampled_from((0.0, 1e-6, 0.1, 3.0, 50.0, 2000.0)), some.integers(2, 8))
def test_flow_is_the_matrix_exponential(graph, duration, place):
    size, sources, targets, rates = graph
    start = np.zeros(size)
    start[min(place, size - 1)], start[1] = 0.75, 0.25
    after = Flow.along(size, sources, targets).after(duration, start, rates, 1e-11)
    assert after == pytest.approx(dense_after(size, sources, targets, rates, start, duration), abs=2e-11)
    assert after.sum() == pytest.approx(1, abs=1e-12)


def queue(size):
    """An M/M/1 queue of `size` places behind two sinks that it never reaches: arrivals at 1, service at 1.25."""
    low, high = np.arange(2, size + 1), np.arange(3, size + 2)
    return size + 2, np.concatenate([low, high]), np.concatenate([high, low]), np.repeat([1.0, 1.25], size - 1)


def test_a_long_queue_is_followed_only_where_it_is_busy():
    """What is computed stays near the front of 5,000 places, and equals what a queue of 400 does."""
    reached = []

    class Watched(Flow):
        __slots__ = ()

        def _stretch(self, shares, low, high):
            reached.append(high)
            return super()._stretch(shares, low, high)

    results = []
    for places in (400, 5000):
        size, sources, targets, rates = queue(places)
        flow = Flow.along(size, sources, targets)
        watched = Watched(*(getattr(flow, name) for name in Flow.__slots__))
        start = np.zeros(size)
        start[2] = 1.0
        results.append(watched.after(100.0, start, rates, 1e-11)[:402])
    assert max(reached) < 500
    assert results[1] == pytest.approx(results[0], abs=1e-11)


def test_a_steady_state_ends_the_steps_early():
    steps = []

    class Counted(motion._Stretch):
        __slots__ = ()

        def leap(self, now):
            steps.append(1)
            return super().leap(now)

    class Watched(Flow):
        __slots__ = ()

        def _stretch(self, shares, low, high):
            made = super()._stretch(shares, low, high)
            return Counted(made.low, made.high, made.step, made.squared)

    size, sources, targets, rates = queue(12)
    flow = Flow.along(size, sources, targets)
    start = np.zeros(size)
    start[2] = 1.0
    after = Watched(*(getattr(flow, name) for name in Flow.__slots__)).after(2e5, start, rates, 1e-11)
    stationary = 0.8 ** np.arange(12)
    assert after[2:] == pytest.approx(stationary / stationary.sum(), abs=1e-11)
    assert 2 * len(steps) < 2e5 / 10


def test_more_steps_than_rounding_allows_are_refused():
    size, sources, targets, rates = queue(3)
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    with pytest.raises(ExactError, match=r"2.25 times per unit of time.*10,000,000 steps"):
        Flow.along(size, sources, targets).after(1e7, start, rates, 1e-11)
    with pytest.raises(ExactError, match="steps"):
        Flow.along(size, sources, targets).after(1e10, start, rates * 1e300, 1e-11)


@given(graphs(), some.lists(some.booleans(), min_size=9, max_size=9))
def test_a_limit_is_where_a_very_long_time_leads(graph, sides):
    """Squaring a stochastic matrix over and over needs no graph to be understood."""
    size, sources, targets, rates = graph
    adjacent = np.eye(size)
    adjacent[sources, targets] = 1
    leads = np.linalg.matrix_power(adjacent, size) > 0
    leader = [int(np.argmax(leads[state] & leads[:, state])) for state in range(size)]  # a component has one side
    good = np.array([0, 1, *sides], dtype=np.int64)[leader]
    limit = Limit.along(size, sources, targets, good)
    matrix = dense_after(size, sources, targets, rates, np.eye(size), 1.0)
    for _ in range(40):
        matrix = matrix @ matrix
        matrix /= matrix.sum(axis=1, keepdims=True)
    found = [limit.probability(start, rates) for start in np.eye(size)]
    assert found == pytest.approx(matrix @ good, abs=1e-9)


def test_a_certain_end_is_certain_however_long_it_takes():
    """From 40 down to 0 against a drift: some 1e12 jumps, but nowhere else to end."""
    size, sources, targets, rates = queue(40)
    sources, targets, rates = np.append(sources, 2), np.append(targets, 1), np.append(rates, 1e-9)
    start = np.eye(size)[-1]
    assert Limit.along(size, sources, targets, np.arange(size) == 1).probability(start, rates) == 1.0


def gambler(size, up):
    """Between ruin, the sink 0, and `size`, the sink 1."""
    inside = np.arange(1, size)
    place = np.array([0, *(inside + 1), 1])
    sources, targets = np.repeat(place[inside], 2), np.column_stack([place[inside + 1], place[inside - 1]]).ravel()
    return size + 1, sources, targets, np.tile([up, 1 - up], size - 1)


@pytest.mark.parametrize(("size", "up"), [(2, 0.5), (10, 0.3), (50, 0.6), (1000, 0.5), (5000, 0.5), (300, 0.49)])
def test_a_gambler_is_ruined_as_often_as_the_formula_says(size, up):
    states, sources, targets, rates = gambler(size, up)
    limit = Limit.along(states, sources, targets, (np.arange(states) == 1).astype(np.int64))
    odds = (1 - up) / up
    for fortune in (1, size // 2, size - 1):
        expected = fortune / size if up == 0.5 else (1 - odds**fortune) / (1 - odds**size)
        start = np.eye(states)[fortune + 1]
        assert limit.probability(start, rates) == pytest.approx(expected, abs=SOLUTION_ERROR)


def test_an_end_that_doubles_cannot_compute_is_refused():
    """Two ends, each 1e-30 of a chance at a time."""
    size, sources, targets, rates = queue(3)
    sources, targets = np.append(sources, [2, 4]), np.append(targets, [0, 1])
    limit = Limit.along(size, sources, targets, (np.arange(size) == 1).astype(np.int64))
    with pytest.raises(ExactError, match="too many for the digits of a double"):
        limit.probability(np.eye(size)[3], np.append(rates, [1e-30, 1e-30]))
