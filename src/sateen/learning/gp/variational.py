"""Variational inference of the latent function, by conjugate computations (Khan & Lin 2017).

The approximation q(w) has for each observation a normal site exp(-t s²/2 + b s) of s = a(x)ᵀ w, with a precision t and
a shift b, so that its own precision is P = I + Σ t a aᵀ. With lnL the log-likelihood of the observation, the best q has
t = -E[lnL''] and b = E[lnL'] + t E[g]. A step towards that is a step along the natural gradient of

    ELBO = Σ E[lnL] - KL[q || N(0, I)],

and is shortened whenever the ELBO would fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from sateen.core.types import FloatArray
from sateen.learning.gp.hyper import Objective
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import BLOCK, Basis, Whitened
from sateen.learning.likelihood import Counts

_SHORTEST: Final = 1e-3  # step
# What is found for a kernel: the value, its slopes by the kernel and by the inducing points, and the last sites.
Evaluation: TypeAlias = "tuple[float, FloatArray, FloatArray, Sites]"
Inference: TypeAlias = "Callable[[Counts, Basis, FloatArray, Sites], Evaluation]"


class Target(Protocol):
    """What a step goes to: the sites of each observation, or the natural parameters that these sum to."""

    def towards(self, other: Self, step: float) -> Self:
        """A part of the way to another."""


_Target = TypeVar("_Target", bound=Target)


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """The normal site of each observation: its precision and its shift."""

    precision: FloatArray
    shift: FloatArray

    @classmethod
    def guess(cls, counts: Counts) -> Sites:
        """What the counts alone suggest, at half their weight."""
        latent, curvature = counts.guess()
        return cls(0.5 * curvature, 0.5 * curvature * latent)

    @classmethod
    def asked_by(cls, counts: Counts, mean: FloatArray, variance: FloatArray) -> Sites:
        """The best sites for latent values of this mean and variance."""
        _, slope, bend = counts.expected(mean, variance)
        precision = np.maximum(-bend, 0.0)
        return cls(precision, slope + precision * mean)

    def towards(self, other: Sites, step: float) -> Sites:
        """A part of the way to other sites."""
        rest = 1.0 - step
        return Sites(rest * self.precision + step * other.precision, rest * self.shift + step * other.shift)

    def gather(self, features: FloatArray) -> Whitened:
        """The distribution of w that they make of the prior."""
        size = features.shape[1]
        precision, root = np.zeros((size, size)), np.sqrt(self.precision)[:, None]
        table = np.empty((min(BLOCK, len(features)), size))
        for start in range(0, len(features), BLOCK):
            block = features[start : start + BLOCK]
            weighted = np.multiply(block, root[start : start + BLOCK], out=table[: len(block)])
            precision += weighted.T @ weighted
        precision[np.diag_indices_from(precision)] += 1.0
        return Whitened.natural(precision, features.T @ self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class Variational(Generic[_Target]):
    """q(w) with what is known at it: the ELBO, the sites it was made of, and the sites that it asks for.

    `slopes` are the E[lnL'] of each observation, where they are kept. `gain` is what the last step added to the ELBO.
    `interrupted` marks a q that Ctrl-C kept from being improved.
    """

    q: Whitened
    elbo: float
    sites: _Target
    asked: _Target
    slopes: FloatArray = field(default_factory=lambda: np.empty(0))
    gain: float = np.inf
    interrupted: bool = False


def converge(
    counts: Counts,
    features: FloatArray,
    spare: FloatArray,
    sites: Sites,
    *,
    tolerance: float = 1e-4,
    most: int = 50,
    step: Callable[[float], None] = lambda elbo: None,
) -> Variational[Sites]:
    """The best q, found from given sites, until a step adds less than `tolerance` nats; `step` hears each ELBO.

    Ctrl-C ends it with the best so far.
    """
    return ascend(partial(_evaluate, counts, features, spare), sites, tolerance, most, step)


def ascend(
    evaluate: Callable[[_Target], Variational[_Target]],
    start: _Target,
    tolerance: float,
    most: int,
    step: Callable[[float], None],
) -> Variational[_Target]:
    """Where steps lead from `start` to what q asks for there, and so on; as `converge` says."""
    now = evaluate(start)
    length = 1.0
    try:
        for _ in range(most):
            tried = evaluate(now.sites.towards(now.asked, length))
            while not tried.elbo >= now.elbo - 1e-9 * abs(now.elbo) and length > _SHORTEST:
                length *= 0.5
                tried = evaluate(now.sites.towards(now.asked, length))
            gain = tried.elbo - now.elbo
            if not gain >= 0.0:  # rounding, or a step so short that it does not matter
                return replace(now, gain=0.0)
            now = replace(tried, gain=gain)
            step(now.elbo)
            if gain < tolerance * length:
                break
            length = min(1.0, 2.0 * length)
    except KeyboardInterrupt:
        return replace(now, interrupted=True)
    return now


def _evaluate(counts: Counts, features: FloatArray, spare: FloatArray, sites: Sites) -> Variational[Sites]:
    q = sites.gather(features)
    mean, known = features @ q.mean, q.spread(features)
    value, slope, bend = counts.expected(mean, known + spare)
    asked = np.maximum(-bend, 0.0)
    # tr P⁻¹ - m = -Σ t aᵀ P⁻¹ a, since P⁻¹ P = I.
    divergence = 0.5 * (float(q.mean @ q.mean) - float(sites.precision @ known)) + q.half_log_determinant
    return Variational(q, float(value.sum()) - divergence, sites, Sites(asked, slope + asked * mean), slope)


def evaluate_elbo(counts: Counts, basis: Basis, x: FloatArray, sites: Sites, most: int = 50) -> Evaluation:
    """The ELBO at the best q, found roughly, with its slopes."""
    features = basis.features(x)
    best = converge(counts, features, basis.spare(features), sites, tolerance=1e-2, most=most)
    if best.interrupted:
        raise KeyboardInterrupt
    return best.elbo, *elbo_slopes(best, basis, x, features), best.sites


def objective_of(inference: Inference, counts: Counts, x: FloatArray) -> Objective:
    """What an inference says of kernels and inducing points; each evaluation begins with the sites of the last."""
    sites = [Sites.guess(counts)]

    def objective(kernel: Kernel, points: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, by_logs, by_points, sites[0] = inference(counts, Basis.of(kernel, points), x, sites[0])
        return value, by_logs, by_points

    return objective


def elbo_slopes(
    best: Variational[Sites], basis: Basis, x: FloatArray, features: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivatives of the ELBO at its best q: by the logs of the kernel, and by the inducing points.

    They are the derivatives with q(w) held fixed; the way through q adds nothing where q is best.
    """
    precision, size = best.asked.precision, len(basis.points)
    known = np.eye(size) - best.q.covariance()
    weighted = features * precision[:, None]
    gathered = weighted.T @ features
    by_features = weighted @ known
    by_features += np.multiply.outer(best.slopes, best.q.mean)
    products = known @ gathered + np.multiply.outer(best.q.mean, features.T @ best.slopes)
    return basis.pull(x, features, by_features, -0.5 * float(precision.sum()), products)
