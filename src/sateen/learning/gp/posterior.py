"""The posterior of a sparse Gaussian process: what every Gaussian-process learner returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, eigh, qr, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.special import ndtr, ndtri, owens_t

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, check_draws
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.recipes import EPGP, SVIGP
from sateen.learning.likelihood import inverse_link, normal_nodes
from sateen.learning.posterior import LearnedPosterior, Summary
from sateen.learning.settings import Link

_MOST_JOINT: Final = 5000  # points drawn together
_CACHED: Final = 512  # rows whose covariances a processor keeps in its cache
_NODES: Final = 64  # for means under the logistic link
_LARGEST_VARIANCE: Final = 1e100  # whose square is still a number
_KNOWN: Final = 1e-13  # of a prior variance: directions that the data moved less than this are as in the prior
_SEEN: Final = (
    "its prior was learned from all of the training data, so kl() would measure nothing; fit SVIGP or EPGP "
    "with split=0.3, or give it length_scales, variance and inputs='log' or 'linear' beforehand"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GPPosterior(LearnedPosterior):
    """f = Φ(g), or the logistic function of g, for g = `offset` + a Gaussian process with `kernel`.

    What was learned is a normal distribution of the whitened values w at the inducing `points`: g(Z) = offset + L w,
    where L is `factor`, a lower Cholesky factor of K_mm, and w has the mean `mean` and the covariance Q Qᵀ, Q being
    `spread`. `unseen` marks the training rows on which neither kernel nor inputs depend. `kind` is the learner that it
    came from: "ep-gp", "svi-gp", "ep-gp-faithful" or "svi-gp-faithful".
    """

    kind: str = field()  # which, unlike a bare annotation, is no default taken from the base
    kernel: Kernel
    offset: float
    link: Link
    points: FloatArray
    factor: FloatArray
    mean: FloatArray
    spread: FloatArray
    unseen: npt.NDArray[np.bool_]
    _weights: FloatArray = field(init=False)
    _forms: FloatArray = field(init=False)
    _signs: FloatArray = field(init=False)

    @on_one_thread
    def __post_init__(self) -> None:
        for name in ("points", "factor", "mean", "spread"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.float64, order="C")))
        object.__setattr__(self, "unseen", read_only(np.array(self.unseen, dtype=np.bool_)))
        self._check_shapes()
        # The variance of g is k(x, x) - aᵀ(I - Q Qᵀ)a with a = L⁻¹ k(Z, x): signed squares of linear forms of k(Z, x).
        eigenvalues, directions = eigh(self.spread @ self.spread.T, check_finite=False)
        learned = 1.0 - eigenvalues
        kept = np.abs(learned) > _KNOWN
        scaled = directions[:, kept] * np.sqrt(np.abs(learned[kept]))
        stacked = np.column_stack([self.mean, scaled])
        solved = solve_triangular(self.factor, stacked, lower=True, trans=1, check_finite=False)
        forms, signs = solved[:, 1:], np.sign(learned[kept])
        if (signs > 0).all() and len(signs):  # turned so that they are triangular, they take half the time
            forms = np.asarray(qr(forms.T, mode="economic", check_finite=False)[1].T, dtype=np.float64)
        object.__setattr__(self, "_weights", read_only(np.ascontiguousarray(solved[:, 0])))
        object.__setattr__(self, "_forms", read_only(np.asfortranarray(forms)))
        object.__setattr__(self, "_signs", read_only(signs))
        if not np.isfinite(self._latent(self.points[:1])).all():
            raise InputError("the mean and the spread of the inducing values do not give a finite function")

    def _check_shapes(self) -> None:
        """Refuse parts that do not fit each other, before their products are taken."""
        count, inputs = len(self.mean) if self.mean.ndim else 0, self.inputs.dimension
        square, rows = (count, count), len(self.training.observations)
        shapes = {"points": (count, inputs), "factor": square, "mean": (count,), "spread": square, "unseen": (rows,)}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values.shape != shape or not np.isfinite(values).all():
                raise InputError(f"{name} has the shape {values.shape}, and {shape} finite numbers are needed")
        sound = np.isfinite(self.offset) and self.kernel.diagonal <= _LARGEST_VARIANCE
        if not count or len(self.kernel.length_scales) != inputs or not sound:
            raise InputError(f"{count} inducing points and {self.kernel} do not fit {inputs} inputs")

    @on_one_thread
    def latent_moments(self, points: object) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of g = Φ⁻¹(f) at each point, without the floor; exact under the probit link."""
        if self.link != "probit":
            return LearnedPosterior.latent_moments(self, points)
        mean, variance = self.latent(self.inputs.unit(self._points(points, extrapolate=False).theta))
        return mean, np.sqrt(variance)

    @on_one_thread
    def latent_covariance(self, points: object, *, seed: int) -> FloatArray:
        """The joint covariance of g = Φ⁻¹(f) at the points, without the floor; exact under the probit link.

        It is the sum of what the inducing values leave open, k(x, x') - a(x)ᵀa(x'), and of what is not known of them,
        a(x)ᵀQ Qᵀa(x'). The second part is never the difference of large numbers, so that small variances keep digits.
        """
        if self.link != "probit":
            return LearnedPosterior.latent_covariance(self, points, seed=seed)
        unit = self.inputs.unit(self._points(points, extrapolate=False).theta)
        covariances = self.kernel.between(unit, self.points)
        whitened = solve_triangular(self.factor, covariances.T, lower=True, check_finite=False)
        spread = self.spread.T @ whitened
        return np.asarray(self.kernel.between(unit, unit) - whitened.T @ whitened + spread.T @ spread)

    def updated(self, observations: Observations, *, seed: int, progress: Progress = SILENT) -> FullPosterior:
        """The same process fitted to other observations, with the kernel and the inputs that it has."""
        recipe, scales = self.recipe, set(self.inputs.scales)
        plain = isinstance(recipe, SVIGP | EPGP) and recipe.split is None and len(scales) == 1
        if not plain or observations.relevant != self.inputs.names or observations.space != self.space:
            return LearnedPosterior.updated(self, observations, seed=seed, progress=progress)
        lengths = dict(zip(self.inputs.names, self.kernel.length_scales, strict=True))
        kept = replace(
            recipe,
            inputs=scales.pop(),
            length_scales=tuple(lengths.get(name, 1.0) for name in self.space.names),
            variance=self.kernel.variance,
        )
        posterior: GPPosterior = kept.fit(observations, seed=seed, progress=progress)
        # The kernel was learned from some of these observations, which `kl` has to know.
        return replace(posterior, recipe=recipe, unseen=np.zeros(len(observations), np.bool_))

    def functions(self, n: int, *, seed: int) -> Callable[[object], FloatArray]:
        """`n` draws of the whole function f, as a function of points, however many they are."""
        from sateen.learning.gp.paths import draw_functions

        check_draws(n)
        drawn = draw_functions(self, n, seed)

        def functions(points: object) -> FloatArray:
            where = self._points(points, extrapolate=False)
            return self._with_floor(where, drawn(where), seed)

        return functions

    def latent(self, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of g at unit inputs."""
        if not isinstance(self.recipe, SVIGP) or self.recipe.device == "cpu":
            return self._latent(unit)
        from sateen.learning.gp.accelerated import forms_at

        forms = self.points, self._weights, self._forms, self._signs
        change, known = forms_at(self.kernel, *forms, unit, self.recipe.device)
        return self.offset + change, np.maximum(self.kernel.diagonal - known, 0.0)

    def _latent(self, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = np.empty(len(unit)), np.empty(len(unit))
        for start in range(0, len(unit), _CACHED):
            rows = slice(start, start + _CACHED)
            mean[rows], turned = self._forms_at(unit[rows])
            variance[rows] = self.kernel.diagonal - np.multiply(turned, turned, out=turned) @ self._signs
        return mean, np.maximum(variance, 0.0)

    def _forms_at(self, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean of g at unit inputs, and the linear forms of k(Z, x), a row for each x."""
        covariances = self.kernel.between(unit, self.points)
        mean = self.offset + covariances @ self._weights
        if not len(covariances) or self._forms.shape[0] != self._forms.shape[1] or (self._signs < 0).any():
            return mean, covariances @ self._forms
        return mean, dtrmm(1.0, self._forms, covariances.T, lower=1, trans_a=1, overwrite_b=1).T

    def kl(self) -> float:
        """KL of the posterior from the prior process, in nats.

        It is that of the inducing values, for given these the two processes are the same; and it does not matter where
        the inducing points came from. An InputError where the prior has seen all of the data.
        """
        if not self.unseen.any():
            raise InputError(f"{self.kind}: {_SEEN}")
        _, log_determinant = np.linalg.slogdet(self.spread)
        squares = float((self.spread**2).sum() + self.mean @ self.mean)
        return max(0.0, 0.5 * (squares - len(self.mean)) - float(log_determinant))

    @property
    def unseen_by_prior(self) -> Observations:
        """The training observations that the prior of `kl` does not depend on.

        Where they are a random part of independent uniform points, they are still independent and uniform.
        """
        observed = self.training.observations
        if self.unseen.all():
            return observed
        kept = observed[self.unseen]
        if not observed.points.iid:
            return kept
        return replace(kept, points=Points(kept.theta, kept.space, observed.points.design))

    def _summary(self, unit: FloatArray, level: float) -> Summary:
        mean, variance = self.latent(unit)
        width = ndtri(0.5 + 0.5 * level) * np.sqrt(variance)
        lower, upper = inverse_link(mean - width, self.link), inverse_link(mean + width, self.link)
        if self.link == "probit":
            return *_probit_moments(mean, variance), lower, upper
        nodes, weights = normal_nodes(_NODES)
        values = inverse_link(mean[:, None] + np.sqrt(variance)[:, None] * nodes, self.link)
        centre = values @ weights
        return centre, np.sqrt((values - centre[:, None]) ** 2 @ weights), lower, upper

    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        if len(unit) > _MOST_JOINT:
            gigabytes = 2 * 8 * len(unit) ** 2 / 1e9
            raise InputError(
                f"joint draws at {len(unit):,} points need {gigabytes:.3g} GB for their covariance; ask for at most "
                f"{_MOST_JOINT:,} points at once"
            )
        mean, turned = self._forms_at(unit)
        joint = self.kernel.between(unit, unit) - (turned * self._signs) @ turned.T
        noise = rng.standard_normal((n, len(unit))) @ _root(joint).T
        return inverse_link(mean + noise, self.link)

    def _slope(self, unit: FloatArray) -> FloatArray:
        mean, turned = self._forms_at(unit)
        variance = np.maximum(self.kernel.diagonal - (turned * turned) @ self._signs, 0.0)
        by_mean, by_variance = self._mean_slopes(mean, variance)
        by_covariance = (turned * (-2.0 * self._signs)) @ self._forms.T
        by_covariance *= by_variance[:, None]
        by_covariance += np.multiply.outer(by_mean, self._weights)
        return self.kernel.pull(by_covariance, unit, self.points).first

    def _mean_slopes(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How the mean of f changes with the mean and with the variance of g."""
        if self.link == "probit":
            widened = 1.0 + variance
            density = np.exp(-0.5 * mean**2 / widened) / np.sqrt(2.0 * np.pi * widened)
            return density, -0.5 * density * mean / widened
        nodes, weights = normal_nodes(_NODES)
        f = inverse_link(mean[:, None] + np.sqrt(variance)[:, None] * nodes, self.link)
        steep = f * (1.0 - f)
        return steep @ weights, 0.5 * (steep * (1.0 - 2.0 * f)) @ weights


def _probit_moments(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of Φ(g) for a normal g.

    For g of mean m and variance v, with h = m/√(1 + v) and Owen's T, E[Φ(g)] = Φ(h) and
    E[Φ(g)²] = Φ(h) - 2T(h, 1/√(1 + 2v)); taken on the side where Φ(h) is at most a half, the difference keeps its
    digits however small f is.
    """
    scaled = mean / np.sqrt(1.0 + variance)
    small = ndtr(-np.abs(scaled))
    square = small - 2.0 * owens_t(np.abs(scaled), 1.0 / np.sqrt(1.0 + 2.0 * variance))
    deviation = np.sqrt(np.maximum(square - small * small, 0.0))
    return ndtr(scaled), deviation


def _root(covariance: FloatArray) -> FloatArray:
    """A lower Cholesky factor, with as little jitter as the covariance needs."""
    if not len(covariance):
        return covariance
    identity, scale = np.eye(len(covariance)), float(np.abs(np.diag(covariance)).max())
    jitter = 1e-12 * max(scale, 1e-12)
    while True:
        try:
            return np.asarray(cholesky(covariance + jitter * identity, lower=True, check_finite=False))
        except LinAlgError:
            jitter *= 10.0
