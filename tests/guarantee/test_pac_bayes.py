"""Bounds on the mean error: closed forms, exact sums, and their promise where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import comb, rel_entr, xlogy
from scipy.stats import binom

import sateen as st
from known_beliefs import SPACE, Candidates, Waves, drawn_observations, no_observations
from sateen.core.prediction import Training
from sateen.guarantee.error_bound import (
    bound_error,
    catoni_bound,
    coin_divergence,
    greatest_mean,
    mean_error_of_draws,
    mean_upper_bound,
    seeger_bound,
)

CERTAIN = 1e-6
shares = some.floats(0, 1)
inner = some.floats(1e-9, 1 - 1e-9)

# The truth, and what might be believed instead of it.
HEIGHTS = np.linspace(0.1, 0.9, 9)
FLAT = tuple(lambda theta, height=height: np.full(len(theta), height) for height in HEIGHTS)


def truth(theta):
    return 0.3 + 0.2 * theta[:, 0]


def gibbs(observations, strength=2.0):
    """The candidates, weighted by how well they fit."""
    errors = np.abs(HEIGHTS[:, None] - observations.frequency).mean(axis=1)
    weights = np.exp(-strength * math.sqrt(len(observations)) * (errors - errors.min()))
    return Candidates(FLAT, weights / weights.sum(), Training(observations))


def observed(n, runs, rng):
    return drawn_observations(truth, SPACE.uniform(n, seed=int(rng.integers(2**31))), runs, rng)


def mean_error_of(height):
    """The mean over β of |0.3 + 0.2 β - height|."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    return float(np.abs(0.3 + 0.2 * grid - height).mean())


@given(shares, inner)
def test_the_divergence_of_coins_is_a_relative_entropy(q, p):
    assert coin_divergence(q, p) == pytest.approx(rel_entr(q, p) + rel_entr(1 - q, 1 - p), rel=1e-9, abs=1e-12)


@given(shares, some.floats(0, 20))
def test_the_greatest_mean_is_where_the_divergence_is_reached(q, divergence):
    p = greatest_mean(q, divergence)
    assert q <= p <= 1
    if p < 1 - 1e-9:
        assert coin_divergence(q, p) == pytest.approx(divergence, rel=1e-5, abs=1e-9)


@given(some.floats(0.01, 0.99), some.floats(0.001, 2))
def test_the_greatest_mean_is_that_of_a_search_over_a_grid(q, divergence):
    grid = np.linspace(q, 1 - 1e-6, 20_001)
    allowed = grid[rel_entr(q, grid) + rel_entr(1 - q, 1 - grid) <= divergence]
    assert greatest_mean(q, divergence) == pytest.approx(allowed.max(), abs=1e-4)


def test_without_an_error_the_greatest_mean_has_a_closed_form():
    for divergence in (1e-4, 0.01, 1.0, 10.0):
        assert greatest_mean(0.0, divergence) == pytest.approx(1 - math.exp(-divergence), rel=1e-8)
    assert greatest_mean(1.0, 0.1) == 1.0
    assert greatest_mean(0.3, 0.0) == pytest.approx(0.3)


@pytest.mark.parametrize("n", [*range(1, 31), 100, 1000])
def test_the_constant_of_maurer_is_at_most_two_roots_of_n_for_few_points_too(n):
    """The expectation of exp(n kl(frequency ‖ p)) over n tosses of a coin is the same sum for all p."""
    k = np.arange(n + 1)
    log_terms = np.log(comb(n, k)) if n < 500 else _log_comb(n, k)
    total = np.exp(log_terms + xlogy(k, k / n) + xlogy(n - k, 1 - k / n)).sum()
    assert total <= 2 * math.sqrt(n)


def _log_comb(n, k):
    steps = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return steps[n] - steps[k] - steps[n - k]


@given(shares, some.floats(0, 300), some.integers(1, 100_000), some.floats(0.001, 0.5))
def test_catonis_bound_is_near_that_of_the_best_temperature(empirical, divergence, n, miss):
    found = catoni_bound(empirical, divergence, n, miss)
    best = empirical + math.sqrt((divergence + math.log(1 / miss)) / (2 * n))  # as if λ could look at the data
    size = max(1.0, 1 + math.log(8 * n / math.log(1 / miss)) / math.log(2))
    price = math.sqrt((divergence + math.log((size + 2) / miss)) / (2 * n))
    assert min(1.0, best) <= found <= min(1.0, empirical + 1.02 * price) + 1e-9


@given(some.floats(0, 0.99), some.floats(0, 50), some.integers(50, 10_000))
def test_bounds_are_above_the_empirical_error_and_grow_with_the_divergence(empirical, divergence, n):
    for bound in (catoni_bound, seeger_bound):
        near, far = bound(empirical, divergence, n, 0.05), bound(empirical, divergence + 1, n, 0.05)
        assert empirical <= near <= far <= 1


def test_the_expected_error_of_draws_is_that_of_the_weighted_candidates():
    observations = observed(700, 30, np.random.default_rng(1))  # more rows than are drawn at once
    posterior = gibbs(observations)
    errors = np.abs(HEIGHTS[:, None] - observations.frequency).mean(axis=1)
    exact = float(posterior.weights @ errors)
    deviation = math.sqrt(float(posterior.weights @ (errors - exact) ** 2))
    estimate, upper = mean_error_of_draws(posterior, observations, seed=3, miss=CERTAIN)
    assert estimate == pytest.approx(exact, abs=5 * deviation / math.sqrt(1000))
    assert max(exact, estimate) <= upper <= exact + 0.03


@pytest.mark.parametrize("method", ["catoni", "seeger"])
def test_the_error_of_a_draw_exceeds_its_bound_as_seldom_as_promised(method):
    rng = np.random.default_rng(5)
    true_errors = np.array([mean_error_of(height) for height in HEIGHTS])
    exceeded = 0
    for repetition in range(60):
        posterior = gibbs(observed(40, 20, rng))
        bound = bound_error(posterior, method=method, confidence=0.8, seed=repetition)
        exceeded += posterior.weights @ true_errors > bound.value
        assert bound.value < 1
    assert binom.sf(exceeded - 1, 60, 0.2) > CERTAIN


@pytest.mark.parametrize(("method", "formula"), [("catoni", catoni_bound), ("seeger", seeger_bound)])
def test_a_pac_bayes_bound_is_its_formula_at_the_expected_error(method, formula):
    observations = observed(500, 50, np.random.default_rng(2))
    posterior = gibbs(observations)
    bound = bound_error(posterior, method=method, confidence=0.95, seed=1)
    exact = float(posterior.weights @ np.abs(HEIGHTS[:, None] - observations.frequency).mean(axis=1))
    assert bound.kl == posterior.kl()
    assert formula(exact, posterior.kl(), 500, 0.05) <= bound.value <= formula(exact + 0.01, posterior.kl(), 500, 0.045)
    assert (bound.points, bound.claim.points, bound.claim.runs) == (500, 500, 50)


def test_the_same_seed_gives_the_same_bound():
    posterior = gibbs(observed(100, 50, np.random.default_rng(2)))
    bounds = [bound_error(posterior, method="seeger", seed=seed) for seed in (1, 1, 2)]
    assert bounds[0] == bounds[1]
    assert bounds[0].value != bounds[2].value


def test_the_error_of_the_mean_exceeds_the_bet_as_seldom_as_promised():
    posterior = Waves(0.05)
    rng = np.random.default_rng(8)
    exceeded = 0
    for _ in range(200):
        f = posterior.functions(1, rng)[0]
        points = SPACE.uniform(60, seed=int(rng.integers(2**31)))
        bound = bound_error(posterior, drawn_observations(f, points, 10_000, rng), confidence=0.8)
        everywhere = SPACE.grid(1001)
        exceeded += np.abs(f(everywhere.theta) - posterior.predict(everywhere).mean).mean() > bound.value
    assert binom.sf(exceeded - 1, 200, 0.2) > CERTAIN


def test_a_bet_is_on_the_distances_between_frequencies_and_the_mean():
    posterior = Waves(0.05)
    held_out = observed(200, 50, np.random.default_rng(9))
    bound = bound_error(posterior, held_out, confidence=0.9)
    errors = np.abs(held_out.frequency - posterior.predict(held_out.points).mean)
    assert bound.empirical == pytest.approx(errors.mean())
    assert float(bound) == bound.value == mean_upper_bound(errors, 1 - 0.9)
    assert bound.kl is None


def test_undecided_runs_count_against_the_posterior_on_whichever_side_is_worse():
    posterior = Waves(0.05)
    points = SPACE.uniform(50, seed=4)
    rng = np.random.default_rng(4)
    held_out = drawn_observations(truth, points, 40, rng, undecided=6)
    mean = posterior.predict(points).mean
    ends = [np.abs((held_out.satisfied + more) / 40 - mean) for more in range(7)]
    assert bound_error(posterior, held_out).value == mean_upper_bound(np.max(ends, axis=0), 1 - 0.95)


def test_held_out_points_may_have_different_numbers_of_runs():
    held_out = observed(50, np.arange(1, 51), np.random.default_rng(4))
    bound = bound_error(Waves(0.05), held_out)
    assert bound.claim.runs is None
    assert bound.value < 1


def test_a_bound_is_a_number_with_a_claim_in_words():
    bound = bound_error(Waves(0.05), observed(300, 100, np.random.default_rng(1)), confidence=0.9)
    assert bound.claim.target == "mean error"
    assert (bound.claim.mode, bound.claim.confidence, bound.claim.value) == ("pac", 0.9, bound.value)
    assert bound.claim.by == "the posterior mean"
    assert str(bound).startswith("with probability 90 % over the data, the mean error")
    assert "over parameters drawn uniformly from the space (beta in [0, 1])" in str(bound)
    assert f"{bound.value:.4g}" in repr(bound)
    assert repr(bound).startswith("<ErrorBound betting: ")
    assert "&lt;ErrorBound betting" in bound._repr_html_()
    drawn = bound_error(gibbs(observed(80, 20, np.random.default_rng(1))), method="seeger", seed=1)
    assert drawn.claim.by == "a function drawn from the posterior, and so of the posterior mean"
    assert "nats from the prior" in repr(drawn)


HELD_OUT = observed(30, 20, np.random.default_rng(11))
GRID = drawn_observations(truth, SPACE.grid(30), 20, np.random.default_rng(11))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "betting bounds the error on held-out observations"),
        ({"held_out": HELD_OUT, "seed": 1}, "betting draws nothing at random; leave out the seed"),
        ({"held_out": HELD_OUT, "method": "catoni", "seed": 1}, "catoni bounds the error from the training"),
        ({"method": "seeger"}, "seeger draws functions from the posterior; give it a seed"),
        ({"method": "beting"}, "did you mean betting"),
        ({"method": "x"}, "there are betting, catoni, seeger"),
        ({"held_out": HELD_OUT, "confidence": 95}, "confidence is a number between 0 and 1"),
        ({"held_out": GRID}, "held_out has the design 'grid'"),
        ({"method": "catoni", "seed": 1}, "no training observation is left"),
    ],
)
def test_what_does_not_fit_the_method_is_refused(given, message):
    posterior = Candidates(FLAT, np.full(9, 1 / 9), Training(no_observations()))
    with pytest.raises(st.InputError, match=message):
        bound_error(posterior, **given)


def test_training_on_a_grid_bounds_nothing():
    with pytest.raises(st.InputError, match="the training has the design 'grid'"):
        bound_error(gibbs(GRID), method="catoni", seed=1)


def test_a_divergence_that_is_no_number_bounds_nothing():
    class Lost(Candidates):
        def kl(self):
            return math.inf

    with pytest.raises(st.InputError, match="inf nats from its prior"):
        bound_error(Lost(FLAT, np.full(9, 1 / 9), Training(HELD_OUT)), method="seeger", seed=1)


def test_the_training_itself_is_not_held_out():
    with pytest.raises(st.InputError, match="is a point of the training"):
        bound_error(gibbs(HELD_OUT), HELD_OUT)
