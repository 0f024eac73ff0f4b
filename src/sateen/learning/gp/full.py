"""The paper's EP-GP: expectation propagation with the full covariance K of all N points, and no inducing points.

The process has the mean 0 and the kernel σ² exp(-|x - x'|²/2l²), with one l for all inputs. Such a K is singular to
rounding, so it is factorised with pivots, K = F Fᵀ, until no more than 1e-10 of any variance is left: to that, F is the
whole of K, square or narrower. The sites are those of `ep_gp`; with S = diag(t) of their precisions,

    (K + S⁻¹)⁻¹ = S - S F (I + Fᵀ S F)⁻¹ Fᵀ S

has no inverse of K in it. It is there to be compared with; `EPGP` is the one to use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.linalg import lapack

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.progress import Progress, working
from sateen.core.threads import on_one_thread
from sateen.core.types import File, FloatArray
from sateen.learning.gp.ep_gp import MOST_RENEWALS, Propagated, infer, propagate
from sateen.learning.gp.hyper import Climb, Objective, maximise
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import COPIES, MOST_EVALUATIONS, first_of, fixed, prior_of
from sateen.learning.gp.recipes import FaithfulEPGP
from sateen.learning.gp.sparse import Basis, solve_rows
from sateen.learning.gp.variational import Sites
from sateen.learning.inputs import Sample, check_task, sample_of
from sateen.learning.likelihood import Counts

_KIND: Final = "ep-gp-faithful"
_SPENT: Final = 1e-10  # of the variance: where less is left, it is rounding
_RIGHT: Final = 1e-7  # sites
_SEARCH_RIGHT: Final = 1e-4  # while the kernel is sought
_GAIN: Final = 1e-8  # of the evidence that ends the search for the kernel
_FIRST_STEP: Final = 0.5  # in the logs of the kernel
_ROWS: Final = 512  # of a square matrix at once


@on_one_thread
def fit(
    recipe: FaithfulEPGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `FaithfulEPGP.fit`."""
    began = time.perf_counter()
    check_task(observations, seed)
    _check_memory(recipe, len(observations))

    def search(sample: Sample, compared: Kernel | None, step: Callable[[], None]) -> Climb:
        return _best_kernel(recipe, sample, first_of(recipe, observations, "rbf", compared), step)

    prior = prior_of(observations, recipe, seed, search, progress, checkpoint)
    sample = sample_of(observations[prior.fitted_rows], prior.inputs)
    basis, features = factorised(prior.kernel, sample.x)
    with working(progress, f"{type(recipe).__name__}: posterior", MOST_RENEWALS, "renewals"):
        inferred = infer(Counts.of(sample, "probit"), features, basis.spare(features), _RIGHT, progress)
    whole = len(sample) == prior.rows
    return prior.posterior(
        recipe, _KIND, observations, basis, inferred, link="probit", objective="evidence", whole=whole, began=began
    )


def _check_memory(recipe: FaithfulEPGP, points: int) -> None:
    """Refuse what could take more bytes than allowed, as it would if F were as wide as K."""
    needed = COPIES * 8.0 * points**2
    if needed > recipe.memory:
        raise InputError(
            f"EPGP.faithful() needs up to {needed / 1e9:,.5g} GB for {points:,} points and their full covariance, and "
            f"`memory` allows {recipe.memory / 1e9:.3g} GB; take EPGP, whose memory grows with the points and not with "
            "their square, or raise `memory`"
        )


def factorised(kernel: Kernel, x: FloatArray) -> tuple[Basis, FloatArray]:
    """F with K = F Fᵀ for the covariance K of the points; and the points of its pivots, whose rows are triangular."""
    packed, order, rank, _ = lapack.dpstrf(kernel.between(x, x).T, lower=1, tol=_SPENT * kernel.variance, overwrite_a=1)
    triangle, order = np.tril(packed[:, :rank]), order - 1
    features = np.empty(triangle.shape)
    features[order] = triangle
    return Basis(kernel, x[order[:rank]], np.asfortranarray(triangle[:rank]), 0.0), features


def _best_kernel(recipe: FaithfulEPGP, sample: Sample, start: Kernel, step: Callable[[], None]) -> Climb:
    """The kernel of the largest evidence, with one length scale for all inputs."""
    inputs = sample.x.shape[1]
    shared = replace(start, length_scales=start.length_scales[:1], constant=0.0)
    objective = shared_evidence(Counts.of(sample, "probit"), sample.x)
    climb = maximise(
        objective,
        shared,
        fixed=fixed(recipe),
        most=MOST_EVALUATIONS,
        relative_gain=_GAIN,
        first_step=_FIRST_STEP,
        step=step,
    )
    return replace(climb, kernel=_for_all(climb.kernel, inputs))


def _for_all(shared: Kernel, inputs: int) -> Kernel:
    """The kernel whose every length scale is that of one with a single input."""
    return replace(shared, length_scales=shared.length_scales * inputs)


def shared_evidence(counts: Counts, x: FloatArray) -> Objective:
    """The evidence for kernels with a single length scale, which is that of all inputs.

    Each evaluation begins with the sites of the last.
    """
    sites = [Sites.guess(counts)]

    def objective(shared: Kernel, points: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        kernel = _for_all(shared, x.shape[1])
        basis, features = factorised(kernel, x)
        end = propagate(counts, features, basis.spare(features), sites[0], tolerance=_SEARCH_RIGHT)
        if end.interrupted:
            raise KeyboardInterrupt
        sites[0] = end.sites
        by_logs = _slopes(end, kernel, x, features)
        together = [by_logs[:-1].sum()] if x.shape[1] else []
        return end.evidence, np.array([*together, by_logs[-1]]), np.zeros(points.shape)

    return objective


def _slopes(end: Propagated, kernel: Kernel, x: FloatArray, features: FloatArray) -> FloatArray:
    """Derivatives of the log evidence by the logs of the kernel, where the sites are right.

    They are those of a Gaussian regression on the sites, ½ Σ (c cᵀ - (K + S⁻¹)⁻¹) ∂K, with c = b - t E[g].
    """
    precision = end.sites.precision
    surprise = end.sites.shift - precision * (features @ end.q.mean)  # c
    turned = solve_rows(end.q.root, features * precision[:, None])
    by_logs = np.zeros(len(kernel.logs))
    by_logs[-1] = -0.5 * kernel.variance * precision.sum()  # S, which is diagonal, as the length scales never are
    for first in range(0, len(x), _ROWS):
        rows = slice(first, first + _ROWS)
        adjoint = turned[rows] @ turned.T
        adjoint += np.multiply.outer(surprise[rows], surprise)
        pull = kernel.pull(0.5 * adjoint, x[rows], x)
        by_logs += np.append(pull.length_scales, pull.variance)
    return by_logs
