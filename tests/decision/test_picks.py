"""A round of picks: what it weighs, and that its look-ahead is the exact update of a normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import sateen as st
from known_functions import PLANE, observed
from own_learners import Pooled
from sateen.core.posterior import fit_learner
from sateen.core.seeds import stream
from sateen.decision.picks import Interest, drawn_pool, figure_of, greedy, information, interest_of, pick_round


@pytest.fixture(scope="module")
def posterior():
    return st.SVIGP(length_scales=0.8, variance=1.0, inputs="log").fit(observed(PLANE, 120, 40, seed=3), seed=1)


def _covariance(n, seed):
    root = np.random.default_rng(seed).standard_normal((n, n + 3))
    return root @ root.T / n


def test_the_information_of_a_run_is_the_fisher_information():
    g, h = np.linspace(-4, 4, 17), 1e-5
    slope = (ndtr(g + h) - ndtr(g - h)) / (2 * h)
    assert information(g) == pytest.approx(slope**2 / (ndtr(g) * ndtr(-g)), rel=1e-7)


def test_a_pick_lowers_the_sum_as_far_as_conditioning_says():
    covariance, noise = _covariance(12, 1), np.full(12, 0.7)
    weight = np.random.default_rng(2).random(12)
    gains = Interest(weight, squared=True).gain(weight)(covariance, np.diag(covariance), noise)
    for i in range(12):
        after = covariance - np.outer(covariance[:, i], covariance[i]) / (covariance[i, i] + noise[i])
        assert gains[i] == pytest.approx(weight @ (np.diag(covariance) - np.diag(after)), rel=1e-12)


def test_a_small_chunk_lowers_deviations_at_the_rate_that_the_gain_says():
    covariance, noise = _covariance(9, 5), np.full(9, 1e9)
    weight = np.random.default_rng(6).random(9)
    gains = Interest(weight, squared=False).gain(weight)(covariance, np.diag(covariance), noise)
    for i in range(9):
        after = covariance - np.outer(covariance[:, i], covariance[i]) / (covariance[i, i] + noise[i])
        fall = weight @ (np.sqrt(np.diag(covariance)) - np.sqrt(np.diag(after)))
        assert gains[i] == pytest.approx(2.0 * fall, rel=1e-5)


def test_greedy_picks_agree_with_greedy_picks_by_full_conditioning():
    covariance, mean = _covariance(15, 3), np.random.default_rng(4).normal(size=15)
    weight, budget, picks = np.ones(15), 960, 24
    runs = greedy(covariance, mean, Interest(weight, True).gain(weight), budget, np.ones(15), picks)
    chunk = budget / picks
    chosen = np.zeros(15, int)
    for _ in range(picks):
        falls = []
        for i in range(15):
            tried = chosen.copy()
            tried[i] += 1
            information_matrix = np.diag(tried * chunk * information(mean))
            after = np.linalg.inv(np.linalg.inv(covariance) + information_matrix)
            falls.append(-np.trace(after))
        chosen[int(np.argmax(falls))] += 1
    assert (runs == (chosen * chunk).astype(int)).all()


def test_dear_points_are_picked_less():
    covariance, mean = np.eye(2), np.zeros(2)
    gain = Interest(np.ones(2), True).gain(np.ones(2))
    even = greedy(covariance, mean, gain, 960, np.ones(2))
    uneven = greedy(covariance, mean, gain, 960, np.array([1.0, 10.0]))
    assert even[0] == even[1]
    assert uneven[0] > 2 * uneven[1]


def test_the_interest_of_a_threshold_is_largest_where_the_mean_is_at_it():
    mean = np.linspace(-3, 3, 601)
    weight = interest_of(st.Threshold(0.1), mean, np.full(601, 0.2)).weight
    assert mean[np.argmax(weight)] == pytest.approx(ndtri(0.1), abs=0.01)


def test_intervals_that_are_narrow_enough_interest_a_width_less():
    std = np.array([0.01, 0.4])
    weight = interest_of(st.Width(0.1), np.zeros(2), std).weight
    assert weight[0] < 1e-3 * weight[1]


def test_weights_of_a_pool_make_up_for_what_it_leaves_out():
    rng = np.random.default_rng(8)
    interest = Interest(rng.exponential(size=20_000) ** 3, squared=False)
    sums = [drawn_pool(interest, np.ones(20_000), stream(seed, "pool"))[1].sum() for seed in range(40)]
    assert np.mean(sums) == pytest.approx(interest.weight.sum(), rel=0.02)


def test_a_pool_is_drawn_even_where_nothing_matters_any_more():
    pool, weight = drawn_pool(Interest(np.zeros(2000), False), np.full(2000, 1e-3), stream(1, "pool"))
    assert len(np.unique(pool)) == len(pool) == 900
    assert np.isfinite(weight).all()


def test_a_round_spends_its_budget_in_the_space_and_near_the_boundary(posterior):
    theta, runs = pick_round(st.Threshold(0.3), posterior, 9_600, seed=1)
    assert posterior.space.contains(theta).all()
    assert runs.sum() == 9_600
    mean, std = posterior.latent_moments(theta)
    assert np.median(np.abs(mean - ndtri(0.3)) / std) < 2.0


@pytest.mark.parametrize("runs", [40, 4_000, 400_000, 40_000_000])
def test_no_point_takes_more_than_a_fifth_of_a_round_however_much_is_known(runs):
    known = st.SVIGP(length_scales=0.8, variance=1.0, inputs="log").fit(observed(PLANE, 200, runs, seed=3), seed=1)
    _, chosen = pick_round(st.Threshold(0.3), known, 96 * runs, seed=2)
    assert chosen.max() <= 0.2 * chosen.sum()


@pytest.mark.parametrize("budget", [1, 7, 95, 97])
def test_a_small_budget_is_spent_too(posterior, budget):
    _, runs = pick_round(st.Error(0.01), posterior, budget, seed=1)
    assert runs.sum() == budget
    assert (runs > 0).all()


def test_the_same_seed_picks_the_same_round(posterior):
    first, second = (pick_round(st.Width(0.05), posterior, 5_000, seed=4) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_the_figure_of_a_threshold_is_the_share_of_bands_that_contain_it(posterior):
    points = PLANE.sobol(512, seed=1)
    prediction = posterior.predict(points, level=0.9)
    inside = (prediction.lower <= 0.3) & (prediction.upper >= 0.3)
    assert figure_of(st.Threshold(0.3, level=0.9), posterior, points) == pytest.approx(inside.mean(), abs=1e-9)


def test_joint_covariances_of_a_process_are_those_of_its_draws(posterior):
    points = PLANE.sobol(16, seed=2)
    covariance = posterior.latent_covariance(points, seed=1)
    draws = ndtri(posterior.sample(points, 40_000, seed=5))
    error = np.abs(np.cov(draws, rowvar=False) - covariance)
    deviation = np.sqrt(np.diag(covariance))
    assert (error < 6 * np.multiply.outer(deviation, deviation) * np.sqrt(2 / 40_000)).all()
    assert np.sqrt(np.diag(covariance)) == pytest.approx(posterior.latent_moments(points)[1], rel=1e-6)


def test_without_a_covariance_of_its_own_a_posterior_gives_that_of_its_draws():
    pooled = fit_learner(Pooled(), observed(PLANE, 20, 5, seed=1), seed=1)
    points = PLANE.sobol(4, seed=1)
    mean, std = pooled.latent_moments(points)
    assert mean == pytest.approx(np.full(4, ndtri(pooled.predict(points).mean[0])), abs=0.02)
    assert np.sqrt(np.diag(pooled.latent_covariance(points, seed=1))) == pytest.approx(std, rel=0.2)
