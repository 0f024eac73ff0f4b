"""Nominal against actual coverage: exact for a right forecast, and a band that knows of one training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import binom

import sateen as st
from known_beliefs import SPACE, Waves, drawn_observations
from sateen.report.data import (
    LEVELS,
    _ranks,
    _ranks_of_draws,
    coverage,
    coverage_noise,
    forecast_ranks,
    share_inside,
)


@given(trials=some.integers(1, 60), f=some.floats(0.001, 0.999), level=some.sampled_from(LEVELS))
def test_the_coverage_of_a_right_forecast_is_its_level_on_average_however_few_the_runs(
    trials: int, f: float, level: float
) -> None:
    counts = np.arange(trials + 1)
    ranks = _ranks(np.full((trials + 1, 1), f), counts, counts, np.full(trials + 1, trials))
    shares = [coverage(row[None, :], (level,))[0] for row in ranks]
    assert np.dot(binom.pmf(counts, trials, f), shares) == pytest.approx(level, abs=1e-9)


@given(trials=some.integers(1, 3000), f=some.lists(some.floats(0, 1), min_size=1, max_size=8), data=some.data())
def test_ranks_that_are_summed_up_are_those_of_the_beta_function(trials: int, f: Any, data: Any) -> None:
    counts = np.array(data.draw(some.lists(some.integers(0, trials), min_size=1, max_size=5)))
    quantiles = np.array(f)
    one_by_one = _ranks(np.tile(quantiles, (len(counts), 1)), counts, counts, np.full(len(counts), trials))
    assert _ranks_of_draws(quantiles, counts, trials) == pytest.approx(one_by_one, abs=1e-9)


def test_ranks_are_those_of_the_binomial_distribution() -> None:
    f, counts, trials = np.array([[0.2, 0.4], [0.7, 0.9]]), np.array([3, 9]), np.array([10, 10])
    wanted = [
        [binom.cdf(k - 1, 10, row).mean(), binom.cdf(k, 10, row).mean()] for k, row in zip(counts, f, strict=True)
    ]
    assert _ranks(f, counts, counts, trials) == pytest.approx(np.array(wanted), abs=1e-12)


def test_undecided_runs_leave_the_rank_open() -> None:
    belief, points = Waves(0.05), SPACE.grid(5)
    sure = st.Observations(points, [10] * 5, 0, [20] * 5)
    open_ended = st.Observations(points, [8] * 5, [4] * 5, [20] * 5)
    narrow, wide = forecast_ranks(belief, sure), forecast_ranks(belief, open_ended)
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (wide[:, 1] > narrow[:, 1]).all()
    nothing_known = st.Observations(points, [0] * 5, [20] * 5, [20] * 5)
    assert forecast_ranks(belief, nothing_known).tolist() == [[0.0, 1.0]] * 5
    assert coverage(forecast_ranks(belief, nothing_known)) == pytest.approx(np.array(LEVELS))


def outside(belief: Waves, truth: Waves, repeats: int) -> int:
    """How many of so many trainings lie outside the band of `belief` at level one half, when `truth` draws f."""
    points, rng = SPACE.uniform(60, seed=1), np.random.default_rng(2)
    place, missed = LEVELS.index(0.5), 0
    seen = drawn_observations(belief.base, points, 400, rng)
    low, high = coverage_noise(belief, seen, seed=3)[place]
    for f in truth.functions(repeats, rng):
        actual = coverage(forecast_ranks(belief, drawn_observations(f, points, 400, rng)))[place]
        missed += not low <= actual <= high
    return missed


def test_a_right_belief_lies_in_its_band_and_one_that_is_too_sure_does_not() -> None:
    right, too_sure = Waves(0.05), Waves(0.01)
    # The ends of the band are themselves quantiles of 200 draws; 1 in 10 outside is more than that explains.
    assert outside(right, right, 100) <= binom.isf(1e-6, 100, 0.1)
    assert outside(too_sure, right, 100) > binom.isf(1e-6, 100, 0.1)


def test_a_band_that_took_points_for_independent_would_be_too_narrow() -> None:
    points = SPACE.uniform(60, seed=1)
    seen = drawn_observations(Waves(0.05).base, points, 10_000, np.random.default_rng(2))
    low, high = coverage_noise(Waves(0.05), seen, seed=3)[LEVELS.index(0.5)]
    assert high - low > 2 * 2 * 1.96 * np.sqrt(0.25 / 60)


def test_the_band_is_the_same_for_the_same_seed() -> None:
    seen = drawn_observations(Waves(0.05).base, SPACE.uniform(20, seed=1), 50, np.random.default_rng(2))
    first, again, other = (coverage_noise(Waves(0.05), seen, seed=seed) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_a_frequency_is_inside_only_if_it_is_whatever_undecided_runs_would_be() -> None:
    points = SPACE.points({"beta": [0.0, 0.0, 0.0]})
    predicted = Waves(0.05).predict(points, level=0.9)
    assert predicted.lower[0] == pytest.approx(0.5 - 0.082, abs=1e-3)
    seen = st.Observations(points, [10, 9, 0], [0, 3, 0], [20, 20, 0])
    assert share_inside(predicted[:1], seen[:1]) == 1.0
    assert share_inside(predicted, seen) == 0.5  # the last has no run, and does not count
