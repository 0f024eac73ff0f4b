"""EPGP: a Gaussian process fitted by expectation propagation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.progress import SILENT, Progress
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.learning.gp.expectation import beginning, evidence_slopes, propagate
from sateen.learning.gp.kernels import KernelName
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Evaluated, Wanted, generator, settle, working
from sateen.learning.gp.result import normalise_fields, posterior_of
from sateen.learning.gp.sparse import Basis, choose_inducing, inducing_for
from sateen.learning.gp.variational import Sites
from sateen.learning.inputs import FloatArray, InputScale, check_task, sample_of
from sateen.learning.likelihood import Counts

__all__ = ["EPGP"]

_KIND: Final = "ep-gp"
_COPIES: Final = 5  # of the table of features that are in memory at a time
_RIGHT: Final = 1e-4  # sites
_MANY_RIGHT: Final = 3e-3  # where a renewal takes its time
_MANY: Final = 2e8  # bytes of features, from which on it does
_NEARLY_RIGHT: Final = 1e-2
_MOST_RENEWALS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class EPGP:
    """A Gaussian process with probit link, fitted by expectation propagation.

    `kernel` is "matern" (5/2) or "rbf". At most `inducing` points carry the process: by default 100, 200 or 500 for
    one, two or more parameters. Inputs are on a scale of length 2; `inputs` says whether log or linear. The evidence
    decides it with "auto", and finds length scales and variance unless these are given: `length_scales` is a number, or
    one for each varying parameter. With `split` all that is learned from a random share of the points, and the
    posterior from the others, so that `kl()` means something. A fit that needs more than `memory` bytes is refused.

    >>> EPGP(kernel="mattern")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: kernel is 'matern' or 'rbf', not 'mattern'; did you mean matern?
    """

    kernel: KernelName = "matern"
    inducing: int | None = None
    inputs: InputScale = "auto"
    length_scales: float | tuple[float, ...] | None = None
    variance: float | None = None
    split: float | None = None
    memory: float = 4e9

    def __post_init__(self) -> None:
        normalise_fields(self)
        self._wanted().check()
        if isinstance(self.memory, bool) or not isinstance(self.memory, int | float) or not self.memory > 0:
            raise InputError(f"memory is a number of bytes, such as 4e9, not {self.memory!r}")

    @on_one_thread
    def fit(
        self, observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
    ) -> GPPosterior:
        """The posterior over f; the same observations and seed give the same one, to the last bit.

        Ctrl-C ends it with the best so far, once there is any; its record says so. With `checkpoint` the kernel is kept
        in that file as soon as it is found, and a later fit of the same goes on from there.
        """
        began = time.perf_counter()
        check_task(observations, seed)
        self._check_memory(observations)
        prior = settle(observations, self._wanted(), self, seed, _evidence, progress, checkpoint)
        sample = sample_of(observations[prior.fitted_rows], prior.inputs)
        most = self.inducing or inducing_for(prior.inputs.dimension)
        candidates = generator(seed, "inducing").permutation(len(sample))[: max(4000, 4 * most)]
        basis = Basis.of(prior.kernel, choose_inducing(prior.kernel, sample.x[np.sort(candidates)], most))
        counts, features = Counts.of(sample, "probit"), basis.features(sample.x)
        spare = basis.spare(features)
        right = _RIGHT if features.nbytes < _MANY else _MANY_RIGHT
        values: list[float] = []
        with working(progress, "EPGP: posterior", _MOST_RENEWALS, "renewals") as advance:

            def step(evidence: float) -> None:
                values.append(evidence)
                advance(1)

            start = beginning(counts, features, spare)
            found = propagate(counts, features, spare, start, tolerance=right, most=_MOST_RENEWALS, step=step)
        trouble = ""
        if found.unrest > _NEARLY_RIGHT:
            trouble = f"the sites did not come to rest (they still ask for changes of {found.unrest:.2g}); try SVIGP"
        return posterior_of(
            self,
            _KIND,
            observations,
            prior,
            basis,
            found.q,
            "probit",
            objective="evidence",
            values=[*values, found.evidence],
            trouble=trouble,
            interrupted=found.interrupted,
            whole=len(sample) == prior.rows,
            seconds=time.perf_counter() - began,
        )

    def _wanted(self) -> Wanted:
        return Wanted(self.kernel, "probit", self.inducing, self.inputs, self.length_scales, self.variance, self.split)

    def _check_memory(self, observations: Observations) -> None:
        points = min(self.inducing or inducing_for(len(observations.relevant)), len(observations))
        needed = _COPIES * 8.0 * len(observations) * points
        if needed > self.memory:
            raise InputError(
                f"EPGP needs {needed / 1e9:.3g} GB for {len(observations):,} points and {points:,} inducing points, "
                f"and `memory` allows {self.memory / 1e9:.3g} GB; take fewer, or SVIGP, which reads data in blocks"
            )


def _evidence(counts: Counts, basis: Basis, x: FloatArray, sites: Sites) -> Evaluated:
    features = basis.features(x)
    found = propagate(counts, features, basis.spare(features), sites, tolerance=1e-2)
    if found.interrupted:
        raise KeyboardInterrupt
    return Evaluated(found.evidence, *evidence_slopes(found, basis, x, features), found.sites)
