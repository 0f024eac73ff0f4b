"""The Gaussian processes against computations that share nothing with them: integrals, scipy's binomial, algebra.

On two or three points the posterior can be integrated on a grid; the inference must agree with it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import sateen as st
from sateen.core.observations import Observations
from sateen.learning.gp.ep_gp import evidence_slopes, propagate
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import Basis
from sateen.learning.gp.variational import Sites, converge, elbo_slopes
from sateen.learning.likelihood import Counts
from sateen.learning.settings import Link

FloatArray = npt.NDArray[np.float64]
SPACE = st.Space(x=(-1.0, 1.0))
GIVEN: dict[str, Any] = {"length_scales": 0.7, "variance": 1.5, "inputs": "linear"}
THETA = np.array([[-0.6], [0.1], [0.8]])


def prior_covariance(x: FloatArray, kernel: str) -> FloatArray:
    """Written out once more: constant 4, variance 1.5, length scale 0.7."""
    r = np.abs(x[:, None] - x[None, :]) / 0.7
    if kernel == "rbf":
        return 4.0 + 1.5 * np.exp(-0.5 * r**2)
    return 4.0 + 1.5 * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def integrated(k: list[int], m: list[int], kernel: str) -> tuple[float, FloatArray, FloatArray]:
    """The evidence, and the means and deviations of the latent g at the points, on a grid of it."""
    covariance = prior_covariance(THETA[: len(k), 0], kernel)
    axis = np.linspace(-12, 8, 301 if len(k) == 2 else 121)
    g = np.array(list(product(axis, repeat=len(k))))
    inverse = np.linalg.inv(covariance)
    log_prior = -0.5 * np.einsum("ij,jk,ik->i", g, inverse, g)
    log_prior -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    log_likelihood = sum(binom.logpmf(k[i], m[i], np.clip(ndtr(g[:, i]), 1e-300, 1)) for i in range(len(k)))
    weights = np.exp(log_prior + log_likelihood) * (axis[1] - axis[0]) ** len(k)
    mean = weights @ g / weights.sum()
    return float(np.log(weights.sum())), mean, np.sqrt(weights @ (g - mean) ** 2 / weights.sum())


CASES = [([3, 15], [20, 20]), ([0, 4], [10, 10]), ([1, 0], [1, 1]), ([2, 9, 5], [12, 12, 6])]


@pytest.mark.filterwarnings("ignore:.*next to nothing")
@pytest.mark.parametrize(("k", "m"), CASES)
@pytest.mark.parametrize("kernel", ["matern", "rbf"])
def test_expectation_propagation_agrees_with_the_integral(k: list[int], m: list[int], kernel: Any) -> None:
    evidence, mean, deviation = integrated(k, m, kernel)
    seen = Observations.from_counts(SPACE, THETA[: len(k)], k, m)
    posterior = st.EPGP(kernel=kernel, **GIVEN).fit(seen, seed=1)
    g_mean, g_variance = posterior.latent(THETA[: len(k)])
    assert np.abs((g_mean - mean) / deviation).max() < 0.02
    assert np.allclose(np.sqrt(g_variance), deviation, rtol=0.02)
    assert abs(posterior.record.values[-1] - evidence) < 0.02


@pytest.mark.filterwarnings("ignore:.*next to nothing")
@pytest.mark.parametrize(("k", "m"), CASES)
def test_the_elbo_is_below_the_evidence_and_near_it(k: list[int], m: list[int]) -> None:
    evidence, mean, deviation = integrated(k, m, "matern")
    seen = Observations.from_counts(SPACE, THETA[: len(k)], k, m)
    posterior = st.SVIGP(**GIVEN).fit(seen, seed=1)
    assert evidence - 0.3 < posterior.record.values[-1] < evidence
    assert np.abs((posterior.latent(THETA[: len(k)])[0] - mean) / deviation).max() < 0.3


def problem(seed: int, n: int = 25) -> tuple[FloatArray, Counts]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    trials = rng.integers(1, 30, n).astype(float)
    satisfied = rng.binomial(trials.astype(int), ndtr(np.sin(3 * x[:, 0]) + x[:, 1])).astype(float)
    return x, Counts(satisfied, np.zeros(n), trials, "probit")


def objectives(kind: str, kernel: Kernel, x: FloatArray, counts: Counts) -> tuple[float, FloatArray]:
    basis = Basis.of(kernel, x[::2])
    features = basis.features(x)
    start = Sites.guess(counts)
    if kind == "elbo":
        found = converge(counts, features, basis.spare(features), start, tolerance=1e-10, most=500)
        return found.elbo, elbo_slopes(found, basis, x, features)[0]
    settled = propagate(counts, features, basis.spare(features), start, tolerance=1e-9, most=500)
    return settled.evidence, evidence_slopes(settled, basis, x, features)[0]


@pytest.mark.parametrize("kind", ["elbo", "evidence"])
@pytest.mark.parametrize("name", ["matern", "rbf"])
def test_slopes_by_the_kernel_are_those_of_finite_differences(kind: str, name: Any) -> None:
    x, counts = problem(3)
    kernel = Kernel(name, (0.8, 1.3), 1.7)
    _, slopes = objectives(kind, kernel, x, counts)
    for place in range(3):
        step = np.zeros(3)
        step[place] = 1e-4
        above, below = (objectives(kind, kernel.at_logs(kernel.logs + sign * step), x, counts)[0] for sign in (1, -1))
        assert slopes[place] == pytest.approx((above - below) / 2e-4, rel=2e-3, abs=2e-3)


def test_with_every_point_inducing_it_is_dense_variational_inference() -> None:
    """Opper and Archambeau's fixed point, on the whole covariance, by plain algebra and 60-node quadrature."""
    rng = np.random.default_rng(8)
    theta = np.sort(rng.uniform(-1, 1, 12))
    k = rng.binomial(15, ndtr(np.sin(3 * theta)))
    K = prior_covariance(theta, "matern")
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    mean, covariance, e = np.zeros(12), K.copy(), 1e-5
    for _ in range(300):
        g = mean[:, None] + np.sqrt(np.diag(covariance))[:, None] * nodes

        def log_likelihood(g: FloatArray) -> FloatArray:
            return np.asarray(binom.logpmf(k[:, None], 15, np.clip(ndtr(g), 1e-300, 1 - 1e-16)))

        slope = (log_likelihood(g + e) - log_likelihood(g - e)) / (2 * e) @ weights
        bend = -((slope_at(log_likelihood, g, 1e-4)) @ weights)
        covariance = K - K @ np.linalg.solve(K + np.diag(1 / bend), K)
        mean = 0.5 * mean + 0.5 * covariance @ (bend * mean + slope)
    seen = Observations.from_counts(SPACE, theta[:, None], k, 15)
    posterior = st.SVIGP(**GIVEN).fit(seen, seed=1)
    g_mean, g_variance = posterior.latent(theta[:, None])
    assert np.allclose(g_mean, mean, atol=2e-3)
    assert np.allclose(np.sqrt(g_variance), np.sqrt(np.diag(covariance)), rtol=5e-3)


def slope_at(function: Any, g: FloatArray, step: float) -> FloatArray:
    """The second derivative, by differences."""
    return np.asarray((function(g + step) - 2 * function(g) + function(g - step)) / step**2)


def test_mini_batches_reach_the_elbo_of_all_the_data() -> None:
    rng = np.random.default_rng(4)
    theta = rng.uniform(-1, 1, (600, 1))
    k = rng.binomial(20, ndtr(1.5 * np.sin(4 * theta[:, 0])))
    seen = Observations.from_counts(SPACE, theta, k, 20)
    whole, batches = st.SVIGP(**GIVEN).fit(seen, seed=1), st.SVIGP(**GIVEN, batch=50, passes=40).fit(seen, seed=1)
    points = SPACE.grid(50)
    assert batches.record.values[-1] == pytest.approx(whole.record.values[-1], abs=1.0)
    assert np.abs(batches.predict(points).mean - whole.predict(points).mean).max() < 0.01


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_the_likelihood_is_the_binomial_one_and_its_derivatives_are_its_own(link: Link) -> None:
    satisfied, undecided = np.array([3.0, 0.0, 20.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.0, 5.0, 20.0])
    counts = Counts(satisfied, undecided, np.full(5, 20.0), link)
    for level in (-2.0, -0.3, 0.0, 1.2):
        g = np.full(5, level)
        f = ndtr(g) if link == "probit" else 1 / (1 + np.exp(-g))
        value, slope, bend = counts.at(g)
        terms = [binom.logpmf(np.arange(k, k + u + 1), 20, p) for k, u, p in zip(satisfied, undecided, f, strict=True)]
        known = [np.logaddexp.reduce(each) for each in terms]
        assert np.allclose(value, known, atol=1e-9)
        (above, steeper, _), (below, flatter, _) = counts.at(g + 1e-5), counts.at(g - 1e-5)
        assert np.allclose(slope, (above - below) / 2e-5, atol=1e-5)
        assert np.allclose(bend, (steeper - flatter) / 2e-5, atol=1e-4)


def test_expected_likelihoods_are_right_for_wide_beliefs_and_for_many_runs() -> None:
    for trials, mean, variance in product((1.0, 50.0, 1e5), (-2.0, 0.3), (0.01, 1.0, 25.0)):
        counts = Counts(np.array([round(0.3 * trials)]), np.zeros(1), np.array([trials]), "probit")
        g = mean + np.sqrt(variance) * np.linspace(-9, 9, 20_001)
        density = np.exp(-0.5 * ((g - mean) ** 2 / variance))
        wanted = [values @ density / density.sum() for values in (each[0] for each in counts.at(g[None, :]))]
        found = counts.expected(np.array([mean]), np.array([variance]))
        assert np.allclose([each[0] for each in found], wanted, rtol=0.015, atol=1e-6)
