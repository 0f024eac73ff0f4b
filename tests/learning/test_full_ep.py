"""The paper's EP-GP, with the full covariance, against the textbook written out (Rasmussen & Williams, ch. 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import gammaln, log_ndtr

import sateen as st
from known_functions import LINE, PLANE, observed
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.learning.gp import prior as gp_prior
from sateen.learning.gp.full import factorised, shared_evidence
from sateen.learning.gp.kernels import Kernel
from sateen.learning.inputs import inputs_of, sample_of
from sateen.learning.likelihood import Counts

FloatArray = npt.NDArray[np.float64]
LENGTH, VARIANCE = 0.6, 1.7


def covariance(x: FloatArray, z: FloatArray) -> FloatArray:
    """The squared exponential, one length scale for all inputs, and no constant."""
    squares = ((x[:, None, :] - z[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(VARIANCE * np.exp(-0.5 * squares / LENGTH**2))


def moments(satisfied: float, trials: float, mean: float, variance: float) -> tuple[float, float, float]:
    """ln ∫ N(g; mean, variance) Bin(satisfied; trials, Φ(g)) dg, and the mean and the variance of g, on a fine grid."""
    g = mean + np.sqrt(variance) * np.linspace(-12.0, 12.0, 24_001)
    ways = gammaln(trials + 1) - gammaln(satisfied + 1) - gammaln(trials - satisfied + 1)
    log_density = ways + satisfied * log_ndtr(g) + (trials - satisfied) * log_ndtr(-g)
    log_density += -0.5 * (g - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    top = log_density.max()
    weights = np.exp(log_density - top)
    centre = weights @ g / weights.sum()
    return (
        float(top + np.log(weights.sum() * (g[1] - g[0]))),
        float(centre),
        float(weights @ (g - centre) ** 2 / weights.sum()),
    )


@dataclass
class Textbook:
    """Algorithms 3.5 and 3.6: sites renewed one after the other, with a rank-one update of the covariance after each.

    The moments are those of binomial counts; the evidence is their equation 3.65.
    """

    x: FloatArray
    satisfied: FloatArray
    trials: FloatArray

    def __post_init__(self) -> None:
        count, K = len(self.x), covariance(self.x, self.x)
        self.tau, self.nu = np.zeros(count), np.zeros(count)
        mu, sigma = np.zeros(count), K.copy()
        cavity_mean, cavity_variance, log_mass = np.zeros(count), np.zeros(count), np.zeros(count)
        for _ in range(200):
            before = self.tau.copy(), self.nu.copy()
            for i in range(count):
                cavity_variance[i] = 1.0 / (1.0 / sigma[i, i] - self.tau[i])
                cavity_mean[i] = cavity_variance[i] * (mu[i] / sigma[i, i] - self.nu[i])
                log_mass[i], mean, variance = moments(
                    self.satisfied[i], self.trials[i], cavity_mean[i], cavity_variance[i]
                )
                change = 1.0 / variance - 1.0 / cavity_variance[i] - self.tau[i]
                self.tau[i] += change
                self.nu[i] = mean / variance - cavity_mean[i] / cavity_variance[i]
                column = sigma[:, i].copy()
                sigma -= change / (1.0 + change * column[i]) * np.outer(column, column)
                mu = sigma @ self.nu
            root = np.sqrt(self.tau)
            B = np.eye(count) + root[:, None] * K * root
            sigma = K - (K * root) @ np.linalg.solve(B, root[:, None] * K)
            mu = sigma @ self.nu
            if max(np.abs(self.tau - before[0]).max(), np.abs(self.nu - before[1]).max()) < 1e-10:
                break
        self.noisy = K + np.diag(1.0 / self.tau)
        self.targets = self.nu / self.tau
        _, log_determinant = np.linalg.slogdet(self.noisy)
        wide = cavity_variance + 1.0 / self.tau
        terms = log_mass + 0.5 * np.log(wide) + 0.5 * (cavity_mean - self.targets) ** 2 / wide
        fit = self.targets @ np.linalg.solve(self.noisy, self.targets)
        self.evidence = float(terms.sum() - 0.5 * log_determinant - 0.5 * fit)

    def latent(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of g."""
        k = covariance(x, self.x)
        solved = np.linalg.solve(self.noisy, k.T)
        return k @ np.linalg.solve(self.noisy, self.targets), VARIANCE - np.einsum("ij,ji->i", k, solved)


def mixed(space: st.Space, points: int, seed: int) -> Observations:
    """Counts with different trials, two of them at one point."""
    seen = observed(space, points, np.arange(points) % 30 + 1, seed)
    rows = np.append(np.arange(points), 0)
    return Observations(space.points(seen.theta[rows]), seen.satisfied[rows], 0, seen.trials[rows], seed=seed)


@pytest.mark.parametrize(("space", "points"), [(LINE, 25), (PLANE, 30)], ids=["one input", "two inputs"])
def test_posterior_and_evidence_are_those_of_the_textbook(space: st.Space, points: int) -> None:
    seen = mixed(space, points, 21)
    posterior = st.EPGP.faithful(length_scales=LENGTH, variance=VARIANCE).fit(seen, seed=1)
    inputs = inputs_of(seen, "linear")
    textbook = Textbook(
        inputs.unit(seen.theta), *(np.asarray(each, np.float64) for each in (seen.satisfied, seen.trials))
    )
    assert posterior.record.values[-1] == pytest.approx(textbook.evidence, abs=1e-6)
    x = inputs.unit(space.uniform(60, seed=22).theta)
    for found, wanted in zip(posterior.latent(x), textbook.latent(x), strict=True):  # type: ignore[attr-defined]
        assert np.abs(found - wanted).max() < 1e-6
    assert posterior.record.converged
    assert posterior.kernel.constant == 0.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("length", [0.02, 0.3, 5.0])
def test_the_factor_is_the_whole_covariance_however_singular_that_is(length: float) -> None:
    x = np.vstack([np.random.default_rng(3).uniform(-1, 1, (80, 2)), np.zeros((2, 2))])
    kernel = Kernel("rbf", (length, length), 4.0, constant=0.0)
    basis, features = factorised(kernel, x)
    assert np.abs(features @ features.T - kernel.between(x, x)).max() < 1e-9
    assert np.abs(basis.features(x) - features).max() < 1e-5
    assert len(basis.points) <= 81


@pytest.mark.parametrize("space", [LINE, PLANE])
def test_slopes_of_the_evidence_are_its_derivatives_by_the_shared_scale_and_the_variance(space: st.Space) -> None:
    seen = mixed(space, 40, 23)
    sample = sample_of(seen, inputs_of(seen, "linear"))
    objective = shared_evidence(Counts.of(sample, "probit"), sample.x)
    kernel, nothing, h = Kernel("rbf", (0.5,), 2.0, constant=0.0), np.zeros((0, 1)), 1e-3
    _, slopes, _ = objective(kernel, nothing)
    for axis in range(2):
        step = h * np.eye(2)[axis]
        up, down = (objective(kernel.at_logs(kernel.logs + sign * step), nothing)[0] for sign in (1, -1))
        assert slopes[axis] == pytest.approx((up - down) / (2 * h), rel=1e-3, abs=1e-3)


def test_the_kernel_is_where_the_evidence_is_large_not_where_it_is_small() -> None:
    seen = observed(PLANE, 200, 50, 24)
    kernel = st.EPGP.faithful().fit(seen, seed=1).kernel  # type: ignore[attr-defined]
    assert len(set(kernel.length_scales)) == 1
    sample = sample_of(seen, inputs_of(seen, "linear"))
    objective = shared_evidence(Counts.of(sample, "probit"), sample.x)
    logs, nothing = np.log([kernel.length_scales[0], kernel.variance]), np.zeros((0, 1))
    shared = Kernel("rbf", kernel.length_scales[:1], kernel.variance, constant=0.0)
    best = objective(shared, nothing)[0]
    for away in ([0.4, 0.0], [-0.4, 0.0], [0.0, 1.0], [0.0, -1.0]):
        assert objective(shared.at_logs(logs + away), nothing)[0] < best


def test_it_refuses_a_covariance_beyond_the_memory_and_says_what_to_use() -> None:
    words = r"EPGP\.faithful\(\) needs up to 0\.000256 GB for 80 points .* allows 0\.0001 GB; take EPGP"
    with pytest.raises(InputError, match=words):
        st.EPGP.faithful(memory=1e5).fit(observed(LINE, 80, 40, 25), seed=1)
    assert st.EPGP.faithful(memory=256_000).fit(observed(LINE, 80, 40, 25), seed=1).record.converged
    with pytest.raises(InputError, match="needs up to 9 GB for 15,000 points"):
        st.EPGP.faithful().fit(observed(LINE, 15_000, 1, 25), seed=1)


def test_a_kernel_that_is_given_is_taken_and_its_prior_has_seen_nothing() -> None:
    posterior = st.EPGP.faithful(length_scales=0.4, variance=3.0).fit(observed(PLANE, 40, 40, 26), seed=1)
    kernel = posterior.kernel  # type: ignore[attr-defined]
    assert (kernel.name, kernel.constant) == ("rbf", 0.0)
    assert (*kernel.length_scales, kernel.variance) == pytest.approx((0.4, 0.4, 3.0), rel=1e-12)
    assert 0 < posterior.kl() < np.inf
    assert len(posterior.unseen_by_prior) == 40
    part = st.EPGP.faithful(split=0.25).fit(observed(PLANE, 40, 40, 26), seed=1)
    assert len(part.unseen_by_prior) == 30


def test_a_kernel_from_some_of_the_points_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp_prior, "KERNEL_ROWS", 50)
    notes = st.EPGP.faithful().fit(observed(LINE, 80, 40, 27), seed=1).record.notes
    assert "the kernel was learned from 50 of 80 points" in notes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"memory": 0}, "memory is a number of bytes"),
        ({"length_scales": -1.0}, "length_scales is a number above 0"),
        ({"variance": "large"}, "variance is a number above 0"),
        ({"split": 1.0}, "split is the share of points"),
        ({"inputs": "logg"}, "did you mean log"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        st.EPGP.faithful(**settings)
