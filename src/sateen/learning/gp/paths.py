"""Draws of whole functions from the posterior of a sparse Gaussian process, at any number of points.

A draw of g is offset + a(x)ᵀw + h(x) - a(x)ᵀL⁻¹h(Z), where a(x) = L⁻¹k(Z, x). The values w at the inducing points Z are
drawn from what was learned. The rest is what the inducing points leave open: a draw h of the prior, less what its own
values at Z tell of it (Matheron's rule; Wilson et al. 2020). Each h is a sum of waves with random frequencies of its
own: over all draws its covariance is that of the prior, though a single one is normal only given its frequencies.

No covariance of the points is needed, so that a million of them cost no more memory than their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.linalg import solve_triangular

from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray
from sateen.learning.gp.kernels import Kernel
from sateen.learning.likelihood import inverse_link

if TYPE_CHECKING:
    from sateen.learning.gp.posterior import GPPosterior

_WAVES: Final = 32  # frequencies of each draw, each with a cosine and a sine
_ROWS: Final = 512  # points at once
_MATERN_FREEDOM: Final = 5  # degrees of freedom of the frequencies of a Matérn 5/2


def draw_functions(posterior: GPPosterior, n: int, seed: int) -> Callable[[object], FloatArray]:
    """`n` draws of f, as a function of points that gives a row for each draw."""
    rng = stream(seed, "functions")
    values = posterior.mean + rng.standard_normal((n, len(posterior.mean))) @ posterior.spread.T
    prior = _prior_draws(posterior.kernel, n, rng)
    known = solve_triangular(posterior.factor, prior(posterior.points).T, lower=True, check_finite=False).T
    weights = values - known

    @on_one_thread
    def functions(points: object) -> FloatArray:
        theta = posterior._points(points, extrapolate=False).theta
        drawn = np.empty((n, len(theta)))
        for start in range(0, len(theta), _ROWS):
            rows = slice(start, start + _ROWS)
            unit = posterior.inputs.unit(theta[rows])
            covariances = posterior.kernel.between(unit, posterior.points)
            whitened = solve_triangular(posterior.factor, covariances.T, lower=True, check_finite=False)
            g = posterior.offset + weights @ whitened + prior(unit)
            drawn[:, rows] = inverse_link(g, posterior.link)
        return np.clip(drawn, 0.0, 1.0, out=drawn)

    return functions


def _prior_draws(kernel: Kernel, n: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    """`n` draws of the prior process without its offset, as a function of unit inputs that gives a row for each."""
    dimension = len(kernel.length_scales)
    frequencies = rng.standard_normal((dimension, n * _WAVES)) / np.reshape(kernel.length_scales, (dimension, 1))
    if kernel.name == "matern":
        frequencies /= np.sqrt(rng.chisquare(_MATERN_FREEDOM, n * _WAVES) / _MATERN_FREEDOM)
    heights = np.sqrt(kernel.variance / _WAVES) * rng.standard_normal((2, n, _WAVES))
    level = np.sqrt(kernel.constant) * rng.standard_normal((n, 1))
    waves, cosines, sines = (part.astype(np.float32) for part in (frequencies, *heights))  # which is twice as fast

    def draws(unit: FloatArray) -> FloatArray:
        angles = (unit.astype(np.float32) @ waves).reshape(len(unit), n, _WAVES)
        summed = np.einsum("pnw,nw->np", np.cos(angles), cosines) + np.einsum("pnw,nw->np", np.sin(angles), sines)
        return np.asarray(level + summed, dtype=np.float64)

    return draws
