"""EPGP: a Gaussian process fitted by expectation propagation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.progress import Progress
from sateen.core.threads import on_one_thread
from sateen.core.types import File, FloatArray
from sateen.learning.gp.expectation import beginning, evidence_slopes, propagate
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Evaluated, fit_prior, inducing_among, memory_needed, working
from sateen.learning.gp.sparse import Basis
from sateen.learning.gp.variational import Sites
from sateen.learning.inputs import check_task, sample_of
from sateen.learning.likelihood import Counts

if TYPE_CHECKING:
    from sateen.learning.gp.recipes import EPGP

__all__ = ["fit"]

_RIGHT: Final = 1e-4  # sites
_MANY_RIGHT: Final = 3e-3  # where a renewal takes its time
_MANY: Final = 2e8  # bytes of features, from which on it does
_NEARLY_RIGHT: Final = 1e-2
_MOST_RENEWALS: Final = 100


@on_one_thread
def fit(
    recipe: EPGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `EPGP.fit`."""
    began = time.perf_counter()
    check_task(observations, seed)
    _check_memory(recipe, observations)
    prior = fit_prior(observations, recipe, seed, _evidence, progress, checkpoint)
    sample = sample_of(observations[prior.fitted_rows], prior.inputs)
    basis = Basis.of(prior.kernel, inducing_among(recipe, prior.kernel, sample.x, seed))
    counts, features = Counts.of(sample, "probit"), basis.features(sample.x)
    spare = basis.spare(features)
    right = _RIGHT if features.nbytes < _MANY else _MANY_RIGHT
    values: list[float] = []
    with working(progress, "EPGP: posterior", _MOST_RENEWALS, "renewals") as advance:

        def step(evidence: float) -> None:
            values.append(evidence)
            advance(1)

        start = beginning(counts, features, spare)
        end = propagate(counts, features, spare, start, tolerance=right, most=_MOST_RENEWALS, step=step)
    trouble = ""
    if end.unrest > _NEARLY_RIGHT:
        trouble = f"the sites did not come to rest (they still ask for changes of {end.unrest:.2g}); try SVIGP"
    return prior.posterior(
        recipe,
        "ep-gp",
        observations,
        basis,
        end.q,
        "probit",
        objective="evidence",
        values=[*values, end.evidence],
        trouble=trouble,
        interrupted=end.interrupted,
        whole=len(sample) == prior.rows,
        seconds=time.perf_counter() - began,
    )


def _check_memory(recipe: EPGP, observations: Observations) -> None:
    needed, points = memory_needed(recipe, observations)
    if needed > recipe.memory:
        raise InputError(
            f"EPGP needs {needed / 1e9:.3g} GB for {len(observations):,} points and {points:,} inducing points, "
            f"and `memory` allows {recipe.memory / 1e9:.3g} GB; take fewer, or SVIGP, which reads data in blocks"
        )


def _evidence(counts: Counts, basis: Basis, x: FloatArray, sites: Sites) -> Evaluated:
    features = basis.features(x)
    end = propagate(counts, features, basis.spare(features), sites, tolerance=1e-2)
    if end.interrupted:
        raise KeyboardInterrupt
    return Evaluated(end.evidence, *evidence_slopes(end, basis, x, features), end.sites)
