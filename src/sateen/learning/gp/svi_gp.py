"""SVIGP: a Gaussian process fitted by natural-gradient variational inference, of any number of points."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError, nearest
from sateen.core.observations import Observations
from sateen.core.progress import SILENT, Progress
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.learning.gp.hyper import maximise
from sateen.learning.gp.kernels import Kernel, KernelName
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Evaluated, Prior, Wanted, generator, settle, some_rows, working
from sateen.learning.gp.result import normalise_fields, posterior_of
from sateen.learning.gp.sparse import Basis, Whitened, choose_inducing, inducing_for
from sateen.learning.gp.stream import Stream, by_batches, by_passes
from sateen.learning.gp.variational import Sites, converge, elbo_slopes
from sateen.learning.inputs import FloatArray, InputScale, Sample, check_task, check_whole, sample_of
from sateen.learning.likelihood import Counts, Link

if TYPE_CHECKING:
    from sateen.learning.gp.faithful import FaithfulSVIGP

__all__ = ["SVIGP", "Hyperparameters"]

Hyperparameters: TypeAlias = Literal["subset", "joint"]
Rows: TypeAlias = tuple[tuple[float, ...], ...]
_KIND: Final = "svi-gp"
_LINKS: Final = ("probit", "logit")
_HYPERPARAMETERS: Final = ("subset", "joint")
_AT_ONCE: Final = 2e8  # bytes of features that are kept in memory; more are made anew, block by block, in every pass
_JOINT: Final = 4e9  # bytes that learning the kernel from all rows may take
_STEPS: Final = 50  # natural-gradient steps with all rows in memory
_TOLERANCE: Final = 1e-4  # nats that the last of them may add
_MANY_TOLERANCE: Final = 1e-2  # where a step takes its time; a hundredth of a nat moves no interval
_STREAM_PASSES: Final = 1
_BATCH_PASSES: Final = 10
_FEW_ROWS: Final = 4000  # to begin a stream with
_SOME_ROWS: Final = 50_000
_MOVED: Final = 0.05  # squared deviations, per direction: more than that at the end is not at rest
_POINT_STEPS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SVIGP:
    """A Gaussian process fitted by natural-gradient variational inference.

    `kernel` is "matern" (5/2) or "rbf", `link` "probit" or "logit". At most `inducing` points carry the process: by
    default 100, 200 or 500 for one, two or more parameters. They are chosen among the data, and moved to where they
    serve best with `optimise_inducing`; or they are given, as `inducing_points`, rows of parameter values.

    Every step takes in all of the data, read in blocks when they are many; with `batch` a step takes a random batch of
    that many points. `passes` limits the passes over the data: by default 50 steps, 1 pass over what is read in
    blocks, 10 with batches.

    Inputs are on a scale of length 2; `inputs` says whether log or linear. The evidence decides it with "auto", and
    finds length scales and variance unless these are given: `length_scales` is a number, or one for each varying
    parameter. At most 4,000 points are used for that, all of them with `hyperparameters="joint"`. With `split` all that
    is learned from a random share of the points, and the posterior from the others, so that `kl()` means something.

    >>> SVIGP(batch=-5)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: batch is a whole number from 1 up, not -5
    """

    kernel: KernelName = "matern"
    link: Link = "probit"
    inducing: int | None = None
    inducing_points: Rows | None = None
    optimise_inducing: bool = False
    batch: int | None = None
    passes: int | None = None
    inputs: InputScale = "auto"
    length_scales: float | tuple[float, ...] | None = None
    variance: float | None = None
    hyperparameters: Hyperparameters = "subset"
    split: float | None = None

    def __post_init__(self) -> None:
        normalise_fields(self)
        self._wanted().check()
        for name, known in (("link", _LINKS), ("hyperparameters", _HYPERPARAMETERS)):
            if (word := getattr(self, name)) not in known:
                hint = nearest(str(word), known)
                raise InputError(
                    f"{name} is {known[0]!r} or {known[1]!r}, not {word!r}" + (f"; {hint}" if hint else "")
                )
        for name in ("batch", "passes"):
            if (number := getattr(self, name)) is not None:
                check_whole(number, name, 1)
        if not isinstance(self.optimise_inducing, bool):
            raise InputError(f"optimise_inducing is True or False, not {self.optimise_inducing!r}")
        if self.inducing_points is not None:
            self._check_points(self.inducing_points)

    @classmethod
    def sparse_vi(cls, inducing_points: npt.ArrayLike, **settings: Any) -> SVIGP:
        """Sparse variational inference with fixed inducing points, rows of parameter values, and all data at once."""
        return cls(inducing_points=_rows(inducing_points), **settings)

    @classmethod
    def faithful(cls, **settings: Any) -> FaithfulSVIGP:
        """The paper's own SVI-GP, by Adam over mini-batches; to compare with, for it takes minutes to weeks."""
        from sateen.learning.gp.faithful import FaithfulSVIGP

        return FaithfulSVIGP(**settings)

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

        def polish(prior: Prior, sample: Sample) -> Prior:
            return self._moved(prior, sample, seed, progress)

        moving = polish if self.optimise_inducing else None
        prior = settle(observations, self._wanted(), self, seed, _elbo, progress, checkpoint, moving)
        sample = sample_of(observations[prior.fitted_rows], prior.inputs)
        points = prior.points
        if points is None:
            points = self._points(observations, prior.inputs.unit, prior.kernel, sample.x, seed)
        basis = Basis.of(prior.kernel, points)
        found = self._inferred(prior, basis, sample, seed, progress)
        return posterior_of(
            self,
            _KIND,
            observations,
            prior,
            basis,
            found.q,
            self.link,
            objective="elbo",
            values=found.values,
            trouble=found.trouble,
            interrupted=found.interrupted,
            whole=len(sample) == prior.rows and self.batch is None,
            seconds=time.perf_counter() - began,
            notes=found.notes,
        )

    def _inferred(self, prior: Prior, basis: Basis, sample: Sample, seed: int, progress: Progress) -> _Found:
        """The belief about w, by the way that suits the number of rows."""
        counts = Counts.of(sample, self.link)
        if self.batch is not None:
            stream = Stream.of(basis, sample.x, counts)
            passes = self.passes or _BATCH_PASSES
            with working(progress, "SVIGP: posterior", (passes + 1) * len(sample), "points") as advance:
                done = by_batches(stream, self.batch, passes, generator(seed, "batches"), advance)
            return _Found(done.q, done.values, _restless(done.shift), done.interrupted)
        few = some_rows(sample, _FEW_ROWS, generator(seed, "batches"))
        if len(few) == len(sample):
            return self._at_once(basis, sample, counts, None, _TOLERANCE, progress)
        first = self._at_once(basis, few, Counts.of(few, self.link), None, _MANY_TOLERANCE, progress)
        if first.interrupted or prior.interrupted:
            note = f"only {len(few):,} of {len(sample):,} points were taken in before Ctrl-C"
            return replace(first, interrupted=True, notes=(note,))
        if 8.0 * len(sample) * len(basis.points) <= _AT_ONCE:
            return self._at_once(basis, sample, counts, first.q, _MANY_TOLERANCE, progress)
        stream, passes = Stream.of(basis, sample.x, counts), self.passes or _STREAM_PASSES
        some = np.sort(generator(seed, "batches").permutation(len(sample))[:_SOME_ROWS])
        with working(
            progress, "SVIGP: posterior", passes * (len(sample) + 2 * len(some)) + 2 * len(some), "points"
        ) as advance:
            done = by_passes(stream, first.q, passes, some, advance)
        digits = "single" if stream.single else "double"
        note = f"the data were read in blocks, in {digits} precision; the ELBO is that before the last pass"
        return _Found(done.q, done.values, _restless(done.shift), done.interrupted, (note,))

    def _at_once(
        self,
        basis: Basis,
        sample: Sample,
        counts: Counts,
        start: Whitened | None,
        tolerance: float,
        progress: Progress,
    ) -> _Found:
        """All rows in every step, their features in memory; from the sites that a first belief asks for."""
        features = basis.features(sample.x)
        spare, sites = basis.spare(features), Sites.guess(counts)
        if start is not None:
            sites = Sites.asked_by(counts, features @ start.mean, start.spread(features) + spare)
        most, values = self.passes or _STEPS, []
        with working(progress, "SVIGP: posterior", most, "steps") as advance:

            def step(elbo: float) -> None:
                values.append(elbo)
                advance(1)

            found = converge(counts, features, spare, sites, tolerance=tolerance, most=most, step=step)
        restless = found.gain > max(10.0 * tolerance, 1e-6 * abs(found.elbo))
        trouble = f"the ELBO still rose by {found.gain:.2g} nats in the last step; raise passes" if restless else ""
        return _Found(found.q, (*values, found.elbo), trouble, found.interrupted)

    def _points(
        self,
        observations: Observations,
        unit: Callable[[FloatArray], FloatArray],
        kernel: Kernel,
        x: FloatArray,
        seed: int,
    ) -> FloatArray:
        """The inducing points: those given, or chosen among the rows."""
        if self.inducing_points is not None:
            return unit(observations.space.points(np.array(self.inducing_points)).theta)
        most = self.inducing or inducing_for(x.shape[1])
        candidates = generator(seed, "inducing").permutation(len(x))[: max(4000, 4 * most)]
        return choose_inducing(kernel, x[np.sort(candidates)], most)

    def _moved(self, prior: Prior, sample: Sample, seed: int, progress: Progress) -> Prior:
        """The prior with inducing points moved uphill on the ELBO, and the kernel with them."""
        most = self.inducing or inducing_for(sample.x.shape[1])
        start, counts = choose_inducing(prior.kernel, sample.x, most), Counts.of(sample, self.link)
        if not start.size:
            return prior
        sites = [Sites.guess(counts)]

        def objective(kernel: Kernel, points: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            found = _elbo(counts, Basis.of(kernel, points), sample.x, sites[0])
            sites[0] = found.sites
            return found.value, found.by_logs, found.by_points

        with working(progress, "SVIGP: inducing points", _POINT_STEPS, "evaluations") as advance:
            climb = maximise(
                objective,
                prior.kernel,
                points=start,
                most=_POINT_STEPS,
                step=lambda: advance(1),
                fixed=self._wanted().fixed,
            )
        values = np.append(prior.values, climb.values)
        return replace(prior, kernel=climb.kernel, points=climb.points, values=values, interrupted=climb.interrupted)

    def _wanted(self) -> Wanted:
        return Wanted(
            self.kernel,
            self.link,
            self.inducing,
            self.inputs,
            self.length_scales,
            self.variance,
            self.split,
            self.hyperparameters == "joint",
        )

    def _check_points(self, points: object) -> None:
        table = _rows(points)
        if not table or len({len(row) for row in table}) > 1:
            raise InputError("inducing_points are rows of parameter values, at least one, and all of one length")
        if self.inducing is not None or self.optimise_inducing:
            what = "inducing" if self.inducing is not None else "optimise_inducing"
            raise InputError(f"inducing_points are fixed, so {what} has nothing to choose; leave one of the two out")
        object.__setattr__(self, "inducing_points", table)

    def _check_memory(self, observations: Observations) -> None:
        if self.hyperparameters != "joint":
            return
        points = min(self.inducing or inducing_for(len(observations.relevant)), len(observations))
        needed = 5 * 8.0 * len(observations) * points
        if needed > _JOINT:
            raise InputError(
                f"hyperparameters='joint' needs {needed / 1e9:.3g} GB for {len(observations):,} points and {points:,} "
                f"inducing points, and {_JOINT / 1e9:.3g} GB is the most; use 'subset', or fewer inducing points"
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A belief about w, the ELBO on the way to it, and what is to be said about it."""

    q: Whitened
    values: tuple[float, ...]
    trouble: str
    interrupted: bool
    notes: tuple[str, ...] = ()


def _restless(shift: float) -> str:
    if shift <= _MOVED:
        return ""
    return f"another step would move the posterior by {shift**0.5:.2g} deviations; raise passes"


def _rows(points: Any) -> Rows:
    try:
        table = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2:
        raise InputError("inducing_points are rows of parameter values, such as [[0.1, 2.0], [0.2, 3.0]]")
    return tuple(tuple(row) for row in table.tolist())


def _elbo(counts: Counts, basis: Basis, x: FloatArray, sites: Sites) -> Evaluated:
    features = basis.features(x)
    found = converge(counts, features, basis.spare(features), sites, tolerance=1e-2)
    if found.interrupted:
        raise KeyboardInterrupt
    return Evaluated(found.elbo, *elbo_slopes(found, basis, x, features), found.sites)
