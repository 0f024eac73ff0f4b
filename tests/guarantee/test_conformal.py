"""Ranks and thresholds: closed forms, the peers' numbers, and laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import beta, binom

from sateen import InputError, Observations
from sateen.guarantee.conformal import (
    WeightedThreshold,
    conformal_miss,
    conformal_rank,
    density_rank,
    distances,
    fewest_points,
    largest,
    unbounded_share,
    weights_of,
)
from tabled import UNIT

LEVELS = [Fraction(n, 1000) for n in (500, 750, 800, 900, 950, 975, 990, 995, 999)]


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_the_marginal_rank_is_the_exact_one_also_where_the_quotient_is_whole(level):
    miss = 1.0 - float(level)  # as calibrate has it: a little less, or more, than the fraction
    for points in range(1, 2100):
        from_below = math.ceil((points + 1) * level)
        assert conformal_rank(points, miss, None) == max(points + 1 - from_below, 0)


def test_too_few_points_have_no_rank_and_an_infinite_threshold():
    assert conformal_rank(8, 1.0 - 0.9, None) == 0
    assert conformal_rank(9, 1.0 - 0.9, None) == 1
    assert conformal_rank(28, 1.0 - 0.9, 0.95) == 0
    assert conformal_rank(29, 1.0 - 0.9, 0.95) == 1
    assert largest(np.array([0.1, 0.2]), 0) == math.inf


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("miss", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("points", [1, 10, 29, 58, 200, 1000])
def test_the_pac_rank_is_the_greatest_whose_binomial_tail_is_sure_enough(points, miss, confidence):
    rank = conformal_rank(points, miss, confidence)
    # P(Beta(m, n - m + 1) <= miss) = P(Bin(n, miss) >= m)
    if rank:
        assert binom.sf(rank - 1, points, miss) >= confidence
        assert conformal_miss(points, rank, confidence) <= miss + 1e-12
    if rank < points:
        assert binom.sf(rank, points, miss) < confidence


@pytest.mark.parametrize(("points", "rank", "confidence"), [(29, 1, 0.95), (200, 10, 0.9), (50, 50, 0.99)])
def test_the_pac_miss_is_a_quantile_of_the_beta_distribution(points, rank, confidence):
    assert conformal_miss(points, rank, confidence) == pytest.approx(beta.ppf(confidence, rank, points - rank + 1))


@pytest.mark.parametrize("confidence", [None, 0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("level", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_so_many_points_would_do_and_one_less_would_not(level, confidence):
    miss = 1.0 - level
    enough = fewest_points(miss, confidence)
    assert conformal_rank(enough, miss, confidence) >= 1
    assert enough == 1 or conformal_rank(enough - 1, miss, confidence) == 0


def test_how_many_points_would_do_is_known_also_for_a_level_beyond_all_reason():
    assert fewest_points(1e-12, 0.95) == pytest.approx(2.9957e12, rel=1e-4)
    assert fewest_points(1e-12, None) == pytest.approx(1e12, rel=1e-8)


@pytest.mark.parametrize("normalised", [False, True])
def test_thresholds_are_those_of_crepes(normalised):
    crepes = pytest.importorskip(
        "crepes", reason="crepes, or scikit-learn which it needs, is not installed", exc_type=ImportError
    )
    rng = np.random.default_rng(1)
    for points in (7, 8, 15, 16, 63, 64, 200):
        errors, u = rng.normal(size=points), rng.uniform(0.1, 1, points) if normalised else None
        peer = crepes.ConformalRegressor().fit(errors, u)
        for level in (0.5, 0.75, 0.875, 0.9375):  # exact in binary: crepes does not guard against rounding
            rank = conformal_rank(points, 1.0 - level, None)
            if not rank:
                with pytest.warns(UserWarning, match="too small"):
                    (interval,) = peer.predict_int(np.zeros(1), np.ones(1) if normalised else None, confidence=level)
            else:
                (interval,) = peer.predict_int(np.zeros(1), np.ones(1) if normalised else None, confidence=level)
            ours = largest(np.abs(errors) / (u if normalised else 1.0), rank)
            assert interval.tolist() == [-ours, ours]


@given(some.lists(some.floats(0, 10), min_size=1, max_size=50), some.integers(1, 50))
def test_the_score_of_a_rank_is_that_of_the_sorted_scores(scores, rank):
    rank = min(rank, len(scores))
    assert largest(np.array(scores), rank) == sorted(scores, reverse=True)[rank - 1]


@given(
    some.lists(some.floats(0, 10), min_size=1, max_size=80),
    some.floats(0.01, 0.99),
    some.floats(0.001, 1000),
)
def test_a_constant_density_weighs_as_none_does(scores, miss, constant):
    weighted = WeightedThreshold(
        np.array(scores), np.full(len(scores), constant), miss, lambda t: constant + 0 * t[:, 0]
    )
    plain = largest(np.array(scores), conformal_rank(len(scores), miss, None))
    theta = np.array([[0.1], [0.9]])
    assert weighted.at(theta).tolist() == [plain, plain]


@given(
    some.lists(some.tuples(some.integers(0, 20), some.integers(0, 5)), min_size=1, max_size=30),
    some.integers(0, 5),
    some.integers(1, 19),
)
def test_a_weighted_threshold_is_the_least_score_below_which_enough_weight_lies(rows, own, percents):
    scores, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    if not weights.any():
        weights[0] = 1.0
    threshold = WeightedThreshold(scores, weights, percents / 20, lambda t: np.full(len(t), float(own)))
    (found,) = threshold.at(np.zeros((1, 1)))
    wanted = (1 - Fraction(percents, 20)) * Fraction(int(weights.sum()) + own)
    enough = [score for score in sorted(scores) if weights[scores <= score].sum() >= wanted]
    assert found == (enough[0] if enough else math.inf)


def test_the_rank_that_a_density_needs_is_one_where_it_is_constant_and_grows_with_its_peak():
    assert density_rank(lambda t: np.ones(len(t)), UNIT, 200) == 1
    ramp, peak = (density_rank(lambda t, power=power: t[:, 0] ** power, UNIT, 200) for power in (1, 7))
    assert 2 <= ramp < peak <= 20


def test_a_rank_that_a_density_needs_leaves_hardly_any_parameter_without_a_bound():
    rng = np.random.default_rng(2)

    def density(theta):
        return theta[:, 0] ** 3

    rank = density_rank(density, UNIT, 200)
    for _ in range(50):
        theta = rng.random((200, 1))
        threshold = WeightedThreshold(rng.random(200), density(theta), rank / 201, density)
        assert unbounded_share(threshold, UNIT) < 0.05


def test_undecided_runs_count_against_the_mean_on_both_sides():
    observed = Observations.from_counts(UNIT, {"x": [0.1, 0.2, 0.3]}, [2, 2, 2], 10, undecided=[0, 5, 8])
    assert distances(observed, np.full(3, 0.4)) == pytest.approx([0.2, 0.3, 0.6])


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (lambda t: t, r"density gave float64 of shape \(3, 1\) for 3 points"),
        (lambda t: 1.0, r"density gave float64 of shape \(\) for 3 points"),
        (lambda t: np.array(["a", "b", "c"]), "gives n numbers"),
        (lambda t: -t[:, 0], r"density is -0.1 at \[0.1\]; it must be a finite number from 0 up"),
        (lambda t: np.array([1.0, np.nan, 1.0]), r"density is nan at \[0.2\]"),
        (lambda t: np.array([1.0, 1.0, np.inf]), r"density is inf at \[0.3\]"),
    ],
)
def test_a_density_that_is_none_is_refused(density, message):
    with pytest.raises(InputError, match=message):
        weights_of(density, np.array([[0.1], [0.2], [0.3]]))
