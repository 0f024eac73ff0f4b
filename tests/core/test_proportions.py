"""Bounds on a probability from a count: checked by enumerating every count, at every probability that matters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import binom

from sateen.core.proportions import hoeffding_margin, lower_bound, upper_bound

MISSES = (1e-6, 0.05, 0.5, 0.85, 0.95, 0.9999)


@pytest.mark.parametrize("trials", [1, 2, 7, 50, 400])
@pytest.mark.parametrize("miss", MISSES)
def test_at_no_probability_does_an_upper_bound_miss_more_often_than_it_may(trials, miss):
    counts = np.arange(trials + 1)
    bounds = upper_bound(counts, trials, miss)
    # The chance to miss grows with p up to each bound and then falls by a jump: its peaks lie at the bounds.
    for p in np.concatenate([bounds, bounds - 1e-9, bounds + 1e-9, np.linspace(0, 1, 101)]).clip(0, 1):
        assert binom.pmf(counts, trials, p)[bounds < p].sum() <= miss + 1e-6 * min(miss, 1 - miss) + 1e-9


@pytest.mark.parametrize("trials", [1, 2, 7, 50, 400])
@pytest.mark.parametrize("miss", MISSES)
def test_each_bound_is_the_probability_at_which_its_tail_is_the_miss(trials, miss):
    counts = np.arange(trials + 1)
    upper, lower = upper_bound(counts, trials, miss), lower_bound(counts, trials, miss)
    assert binom.cdf(counts[:-1], trials, upper[:-1]) == pytest.approx(np.full(trials, miss), rel=1e-9)
    assert binom.sf(counts[1:] - 1, trials, lower[1:]) == pytest.approx(np.full(trials, miss), rel=1e-9)
    assert (lower[0], upper[-1]) == (0.0, 1.0)


@given(trials=some.integers(1, 10**6), share=some.floats(0, 1), miss=some.floats(1e-9, 1 - 1e-9))
def test_the_lower_bound_mirrors_the_upper_one(trials, share, miss):
    satisfied = round(share * trials)
    mirrored = 1.0 - float(upper_bound(trials - satisfied, trials, miss))
    assert float(lower_bound(satisfied, trials, miss)) == pytest.approx(mirrored, abs=1e-12)


@given(trials=some.integers(1, 5000), miss=some.floats(1e-6, 1 - 1e-6))
def test_bounds_grow_with_the_count_and_stay_in_the_unit_interval(trials, miss):
    counts = np.arange(trials + 1)
    for bounds in (upper_bound(counts, trials, miss), lower_bound(counts, trials, miss)):
        assert (np.diff(bounds) > 0).all()
        assert 0.0 <= bounds[0] <= bounds[-1] <= 1.0


def test_without_a_run_nothing_is_known():
    assert (float(lower_bound(0, 0, 0.05)), float(upper_bound(0, 0, 0.05))) == (0.0, 1.0)


def test_points_may_have_different_numbers_of_runs():
    together = upper_bound([0, 5, 0, 50], [0, 50, 10, 50], 0.1)
    assert together.tolist() == [float(upper_bound(k, m, 0.1)) for k, m in [(0, 0), (5, 50), (0, 10), (50, 50)]]


def test_the_chernoff_margin_is_the_closed_form():
    assert hoeffding_margin(500, 0.05) == pytest.approx(math.sqrt(math.log(40) / 1000))
    assert round(float(hoeffding_margin(500, 0.05)), 4) == 0.0607
    assert hoeffding_margin([0, 500], 0.05).tolist() == [math.inf, float(hoeffding_margin(500, 0.05))]


@pytest.mark.parametrize("trials", [1, 10, 50])
@pytest.mark.parametrize("miss", [0.01, 0.1, 0.5])
def test_at_no_probability_is_a_frequency_further_away_than_the_margin_more_often_than_it_may(trials, miss):
    counts = np.arange(trials + 1)
    margin = hoeffding_margin(trials, miss)
    for p in np.linspace(0, 1, 1001):
        assert binom.pmf(counts, trials, p)[np.abs(counts / trials - p) > margin].sum() <= miss
