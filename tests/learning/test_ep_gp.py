"""Expectation propagation, and the learner EPGP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from processes import Small, observed
from sateen.core.errors import InputError
from sateen.learning.gp.ep_gp import beginning, evidence_slopes, propagate
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.recipes import EPGP
from sateen.learning.gp.sparse import Basis
from sateen.learning.gp.variational import Sites
from sateen.learning.likelihood import Counts


def marginals(problem, found):
    """Means and deviations of the latent values at the data."""
    return problem.features @ found.q.mean, np.sqrt(found.q.spread(problem.features))


@pytest.mark.parametrize(
    "counts",
    [((1, 6, 8), (8, 8, 8), (0, 0, 0)), ((0, 0, 1), (5, 20, 1), (0, 0, 0)), ((1, 2, 0), (8, 8, 8), (0, 3, 5))],
)
def test_mean_deviation_and_evidence_are_those_of_brute_force(counts):
    satisfied, trials, undecided = counts
    problem = Small(satisfied, trials, undecided)
    found = propagate(problem.counts, problem.features, problem.spare, Sites.guess(problem.counts), tolerance=1e-9)
    mean, deviation = marginals(problem, found)
    assert found.unrest < 1e-8
    assert np.abs(mean - problem.mean).max() < 0.02 * problem.deviation.max()
    assert deviation == pytest.approx(problem.deviation, rel=0.02)
    assert found.evidence == pytest.approx(problem.log_evidence, abs=0.01)


def test_one_observation_is_exact():
    """With a single site the tilted distribution is the posterior."""
    kernel, x = Kernel("rbf", (1.0,), 1.5), np.zeros((1, 1))
    counts = Counts(np.array([2.0]), np.array([0.0]), np.array([9.0]), "probit")
    basis = Basis.of(kernel, x)
    features = basis.features(x)
    found = propagate(counts, features, basis.spare(features), Sites.guess(counts), tolerance=1e-10)
    g = np.linspace(-15, 15, 60001)
    density = np.exp(counts.at(g[None])[0][0] - 0.5 * g * g / kernel.diagonal)
    assert (features @ found.q.mean)[0] == pytest.approx(g @ density / density.sum(), rel=1e-6)
    exact = np.log(density.sum() * (g[1] - g[0]) / np.sqrt(2 * np.pi * kernel.diagonal))
    assert found.evidence == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("inducing", [12, 4])
def test_slopes_of_the_evidence_are_its_derivatives(inducing):
    """With as many inducing points as data, and with few."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (12, 2))
    counts = Counts(rng.binomial(15, 0.3, 12).astype(float), np.zeros(12), np.full(12, 15.0), "probit")
    kernel, points, h = Kernel("matern", (0.6, 1.1), 1.4), x[:inducing].copy(), 1e-4

    def evidence(kernel=kernel, points=points):
        basis = Basis.of(kernel, points)
        features = basis.features(x)
        found = propagate(counts, features, basis.spare(features), Sites.guess(counts), tolerance=1e-11, most=200)
        return found, basis, features

    found, basis, features = evidence()
    by_logs, by_points = evidence_slopes(found, basis, x, features)
    for axis in range(3):
        step = np.eye(3)[axis] * h
        up, down = (evidence(kernel.at_logs(kernel.logs + sign * step))[0].evidence for sign in (1, -1))
        assert by_logs[axis] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-5)
    for index in [(0, 0), (3, 1)]:
        move = np.zeros_like(points)
        move[index] = h
        up, down = (evidence(points=points + sign * move)[0].evidence for sign in (1, -1))
        assert by_points[index] == pytest.approx((up - down) / (2 * h), rel=1e-3, abs=1e-4)


def test_sites_that_were_wrong_are_damped_until_they_are_right():
    """From sites of absurd weight, on sharp data."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, (40, 1)), axis=0)
    satisfied = np.where(x[:, 0] > 0, 1000.0, 0.0)
    counts = Counts(satisfied, np.zeros(40), np.full(40, 1000.0), "probit")
    basis = Basis.of(Kernel("matern", (0.5,), 3.0), x)
    features = basis.features(x)
    start = Sites(np.full(40, 1e4), np.full(40, -1e4))
    found = propagate(counts, features, basis.spare(features), start, most=200)
    assert np.isfinite(found.evidence)
    assert found.unrest < 0.05


def test_of_many_observations_a_part_finds_where_to_begin_and_not_where_to_end():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (30_000, 1))
    trials = np.full(len(x), 10.0)
    satisfied = rng.binomial(10, ndtr(3 * x[:, 0] - 2)).astype(float)
    counts = Counts(satisfied, np.zeros(len(x)), trials, "probit")
    basis = Basis.of(Kernel("matern", (0.8,), 5.0), np.linspace(-1, 1, 20)[:, None])
    features = basis.features(x)
    spare = basis.spare(features)
    steps = {}
    for name, start in {"guess": Sites.guess(counts), "part": beginning(counts, features, spare)}.items():
        values = []
        steps[name] = propagate(counts, features, spare, start, tolerance=1e-5, step=values.append), len(values)
    (one, many), (other, few) = steps.values()
    assert few < many
    assert one.evidence == pytest.approx(other.evidence, abs=1e-4)
    assert np.allclose(one.q.mean, other.q.mean, atol=1e-3)
    assert beginning(counts[:100], features[:100], spare[:100]).shift == pytest.approx(Sites.guess(counts[:100]).shift)


def test_it_refuses_what_needs_more_memory_than_is_allowed_and_says_how_much():
    with pytest.raises(InputError, match=r"EPGP needs 0\.00048 GB for 120 points and 100 inducing points.*SVIGP"):
        EPGP(memory=1e5).fit(observed(), seed=1)
    assert EPGP(memory=1e5, inducing=10).fit(observed(), seed=1).record.converged


@pytest.mark.parametrize("memory", [0, -1.0, True, "much"])
def test_memory_is_a_number_of_bytes(memory):
    with pytest.raises(InputError, match="memory is a number of bytes"):
        EPGP(memory=memory)


def test_few_inducing_points_lose_evidence_but_nothing_breaks():
    obs = observed()
    settings = {"length_scales": 0.7, "variance": 1.0, "inputs": "log"}
    few, many = (EPGP(inducing=n, **settings).fit(obs, seed=1) for n in (3, 60))
    assert few.record.values[-1] < many.record.values[-1]
    assert few.points.shape == (3, 1)
