"""EPGP: a Gaussian process fitted by expectation propagation.

Each observation has a normal site exp(-t g²/2 + b g) that stands for its likelihood L. What the others say of its g is
the cavity, a normal distribution; a site is right when cavity · site and cavity · L have the same mean and variance.
All sites are renewed at once, a part of the way where they would swing to and fro, until none moves. That takes a
while where f is almost 0 or 1, so with many observations a part of them finds where to begin.

The inducing points make g conditionally independent given w (the FITC prior), under which a site of precision t on g
acts on a(x)ᵀ w with the precision t / (1 + t spare(x)). With enough inducing points nothing is spare, and the prior is
the process itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sateen.core.observations import Observations
from sateen.core.progress import Progress, working
from sateen.core.threads import on_one_thread
from sateen.core.types import File, FloatArray
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Inferred, check_memory, fit_prior, inducing_among
from sateen.learning.gp.recipes import EPGP
from sateen.learning.gp.sparse import Basis, Whitened
from sateen.learning.gp.variational import Evaluation, Sites
from sateen.learning.inputs import check_task, sample_of
from sateen.learning.likelihood import Counts, tilted_moments

_LEAST_LEFT: Final = 1e-9  # of a marginal precision that a cavity keeps
_SHORTEST: Final = 0.05  # step
_SOME: Final = 12_500  # observations that find where to begin
_ROUGHLY: Final = 1e-2
_RIGHT: Final = 1e-4  # sites
_MANY_RIGHT: Final = 3e-3  # where a renewal takes its time
_MANY: Final = 2e8  # bytes of features, from which on it does
_NEARLY_RIGHT: Final = 1e-2
MOST_RENEWALS: Final = 100


@on_one_thread
def fit(
    recipe: EPGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `EPGP.fit`."""
    began = time.perf_counter()
    check_task(observations, seed)
    allows = f"`memory` allows {recipe.memory / 1e9:.3g} GB; take fewer, or SVIGP, which reads data in blocks"
    check_memory(recipe, observations, recipe.memory, "EPGP", allows)
    prior = fit_prior(observations, recipe, seed, _evidence, progress, checkpoint)
    sample = sample_of(observations[prior.fitted_rows], prior.inputs)
    basis = Basis.of(prior.kernel, inducing_among(recipe, prior.kernel, sample.x, seed))
    counts, features = Counts.of(sample, "probit"), basis.features(sample.x)
    spare = basis.spare(features)
    right = _RIGHT if features.nbytes < _MANY else _MANY_RIGHT
    with working(progress, "EPGP: posterior", MOST_RENEWALS, "renewals"):
        inferred = infer(counts, features, spare, right, progress)
    whole = len(sample) == prior.rows
    return prior.posterior(
        recipe, "ep-gp", observations, basis, inferred, link="probit", objective="evidence", whole=whole, began=began
    )


def infer(counts: Counts, features: FloatArray, spare: FloatArray, right: float, progress: Progress) -> Inferred:
    """The belief that sites make which are right to so much, or the best that was met, and what is wrong with it."""
    values: list[float] = []

    def step(evidence: float) -> None:
        values.append(evidence)
        progress.advance(1)

    start = beginning(counts, features, spare)
    end = propagate(counts, features, spare, start, tolerance=right, most=MOST_RENEWALS, step=step)
    trouble = ""
    if end.unrest > _NEARLY_RIGHT:
        trouble = f"the sites did not converge (they still call for changes of {end.unrest:.2g}); try SVIGP"
    return Inferred(end.q, (*values, end.evidence), trouble, end.interrupted)


def _evidence(counts: Counts, basis: Basis, x: FloatArray, sites: Sites) -> Evaluation:
    features = basis.features(x)
    end = propagate(counts, features, basis.spare(features), sites, tolerance=1e-2)
    if end.interrupted:
        raise KeyboardInterrupt
    return end.evidence, *evidence_slopes(end, basis, x, features), end.sites


@dataclass(frozen=True, slots=True, eq=False)
class Propagated:
    """q(w) made of sites, the logarithm of the evidence, and how far the sites are from right.

    `acting` are the sites as they act on a(x)ᵀ w, `known` the variances of that, `asked` the sites that q asks for.
    `pull` are the changes that the sites ask for in the means of g, in deviations; `unrest` is the largest of them, or
    of the log of a variance.
    `interrupted` marks a q that Ctrl-C kept from being improved.
    """

    q: Whitened
    evidence: float
    sites: Sites
    acting: Sites
    known: FloatArray
    asked: Sites
    pull: FloatArray
    unrest: float
    interrupted: bool = False


def beginning(counts: Counts, features: FloatArray, spare: FloatArray) -> Sites:
    """Sites to begin with: of many observations, those that suit what an evenly chosen part says, as if it were all."""
    stride = len(counts) // _SOME
    if stride < 2:
        return Sites.guess(counts)
    part = counts[::stride].times(stride)
    rough = propagate(part, features[::stride], spare[::stride], Sites.guess(part), tolerance=_ROUGHLY)
    if rough.interrupted:
        raise KeyboardInterrupt
    return Sites.asked_by(counts, features @ rough.q.mean, rough.q.spread(features) + spare)


def propagate(
    counts: Counts,
    features: FloatArray,
    spare: FloatArray,
    sites: Sites,
    *,
    tolerance: float = 1e-4,
    most: int = 60,
    step: Callable[[float], None] = lambda evidence: None,
) -> Propagated:
    """Sites that are right to `tolerance`, found from given ones; the least restless of those met if none are.

    `step` hears the log evidence after each renewal. Ctrl-C ends it with the best so far.
    """
    now = _evaluate(counts, features, spare, sites)
    best, length = now, 1.0
    try:
        for _ in range(most):
            if best.unrest < tolerance:
                break
            tried = _evaluate(counts, features, spare, now.sites.towards(now.asked, length))
            swings = float(tried.pull @ now.pull) < 0.0
            length = max(0.5 * length, _SHORTEST) if swings else min(1.0, 1.5 * length)
            now = tried
            if tried.unrest < best.unrest:
                best = tried
            step(now.evidence)
    except KeyboardInterrupt:
        return replace(best, interrupted=True)
    return best


def _evaluate(counts: Counts, features: FloatArray, spare: FloatArray, sites: Sites) -> Propagated:
    shrink = 1.0 / (1.0 + sites.precision * spare)
    acting = Sites(sites.precision * shrink, sites.shift * shrink)
    q = acting.gather(features)
    projected, known = features @ q.mean, q.spread(features)
    # The cavity of a(x)ᵀ w, then that of g.
    left = np.maximum(1.0 - acting.precision * known, _LEAST_LEFT)
    mean = (projected - known * acting.shift) / left
    variance = known / left + spare
    start = shrink * (projected + spare * sites.shift)
    log_mass, tilted_mean, tilted_variance = tilted_moments(counts, mean, variance, start)
    precision = np.maximum(1.0 / tilted_variance - 1.0 / variance, 0.0)
    shift = tilted_mean * (1.0 / variance + precision) - mean / variance
    pull = (tilted_mean - start) / np.sqrt(tilted_variance)
    spread = np.abs(np.log(tilted_variance / (spare * shrink + shrink**2 * known)))

    widened = 1.0 + sites.precision * variance
    exponent = sites.shift * (2.0 * mean + sites.shift * variance) - sites.precision * mean**2
    log_sites = 0.5 * (exponent / widened - np.log(widened))
    log_normal = 0.5 * float(q.mean @ (features.T @ acting.shift)) - q.half_log_determinant
    log_normal += 0.5 * float((sites.shift * acting.shift) @ spare + np.log(shrink).sum())
    evidence = float((log_mass - log_sites).sum()) + log_normal
    unrest = float(max(np.abs(pull).max(), spread.max()))
    return Propagated(q, evidence, sites, acting, known, Sites(precision, shift), pull, unrest)


def evidence_slopes(
    best: Propagated, basis: Basis, x: FloatArray, features: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivatives of the log evidence where sites are right: by the logs of the kernel, and by the inducing points.

    They are those of a Gaussian regression on the sites; the way through the sites adds nothing.
    """
    acting, mean = best.acting, best.q.mean
    surprise = acting.shift - acting.precision * (features @ mean)
    by_variance = surprise**2 - acting.precision * (1.0 - acting.precision * best.known)
    covariance = best.q.covariance()
    gathered = (features * acting.precision[:, None]).T @ features
    by_features = -(features * acting.precision[:, None]) @ covariance
    by_features += np.multiply.outer(surprise, mean)
    by_features -= features * by_variance[:, None]
    products = np.multiply.outer(mean, mean) - covariance @ gathered
    products -= (features * by_variance[:, None]).T @ features
    return basis.pull(x, features, by_features, 0.5 * float(by_variance.sum()), products)
