"""SVIGP: a Gaussian process fitted by natural-gradient variational inference, of any number of points."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from sateen.core.observations import Observations
from sateen.core.progress import Progress, working
from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.learning.gp.hyper import maximise
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Inferred, Prior, check_memory, fit_prior, fixed, inducing_among
from sateen.learning.gp.recipes import SVIGP
from sateen.learning.gp.sparse import Basis, Whitened, choose_inducing, inducing_for
from sateen.learning.gp.streaming import Stream, by_batches, by_passes, by_steps
from sateen.learning.gp.variational import Sites, Variational, converge, evaluate_elbo, objective_of
from sateen.learning.inputs import Sample, check_task, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.settings import Device

_AT_ONCE: Final = 2e8  # bytes of features that are kept in memory; more are recomputed, block by block, in every pass
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


@on_one_thread
def fit(
    recipe: SVIGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `SVIGP.fit`."""
    with _arithmetic(recipe.device):
        return _fitted(recipe, observations, seed, progress, checkpoint)


def _arithmetic(device: Device) -> AbstractContextManager[None]:
    """JAX's on the device, which must be there; or none, where NumPy does the work and JAX is not even loaded."""
    if device == "cpu":
        return nullcontext()
    from sateen.learning.networks.network import arithmetic

    return arithmetic(device, "float64")


def _fitted(
    recipe: SVIGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    began = time.perf_counter()
    check_task(observations, seed)
    joint = recipe.hyperparameters == "joint"
    if joint:
        limit = f"{_JOINT / 1e9:.3g} GB is the most; use 'subset', or fewer inducing points"
        check_memory(recipe, observations, _JOINT, "hyperparameters='joint'", limit)

    prior = fit_prior(
        observations,
        recipe,
        seed,
        evaluate_elbo,
        progress,
        checkpoint,
        link=recipe.link,
        every_row=joint,
        polish=partial(_moved, recipe, progress) if recipe.optimise_inducing else None,
    )
    inputs = prior.inputs
    sample, points = sample_of(observations[prior.fitted_rows], inputs), prior.points
    if recipe.inducing_points is not None:
        points = inputs.unit(observations.space.points(np.array(recipe.inducing_points)).theta)
    elif points is None and recipe.selection == "random":
        points = sample.some(recipe.inducing or inducing_for(inputs.dimension), stream(seed, "inducing")).x
    elif points is None:
        points = inducing_among(recipe, prior.kernel, sample.x, seed)
    basis = Basis.of(prior.kernel, points)
    inferred = _inferred(recipe, prior, basis, sample, seed, progress)
    whole = len(sample) == prior.rows and recipe.batch is None
    return prior.posterior(
        recipe, "svi-gp", observations, basis, inferred, link=recipe.link, objective="elbo", whole=whole, began=began
    )


def _inferred(recipe: SVIGP, prior: Prior, basis: Basis, sample: Sample, seed: int, progress: Progress) -> Inferred:
    """The belief about w, by the way that suits the number of rows."""
    data = _stream(recipe, basis, sample)
    notes = (data.note,) if data.by else ()
    if recipe.batch is not None:
        passes = recipe.passes or _BATCH_PASSES
        with working(progress, "SVIGP: posterior", (passes + 1) * len(sample), "points"):
            done = by_batches(data, recipe.batch, passes, stream(seed, "batches"), progress.advance)
        return Inferred(done.q, done.values, _restless(done.shift), done.interrupted, notes)
    few = sample.some(_FEW_ROWS, stream(seed, "first rows"))
    if len(few) == len(sample):
        return _at_once(recipe, basis, sample, None, _TOLERANCE, progress)
    first = _at_once(recipe, basis, few, None, _MANY_TOLERANCE, progress)
    if first.interrupted or prior.interrupted:
        note = f"only {len(few):,} of {len(sample):,} points were read before Ctrl-C"
        return replace(first, interrupted=True, notes=(note,))
    if 8.0 * len(sample) * len(basis.points) <= _AT_ONCE:
        if not data.by:
            return _at_once(recipe, basis, sample, first.q, _MANY_TOLERANCE, progress)
        climb = partial(by_steps, data, first.q)
        return replace(_converged(recipe, climb, _MANY_TOLERANCE, progress), notes=notes)
    passes = recipe.passes or _STREAM_PASSES
    some = np.sort(stream(seed, "some rows").permutation(len(sample))[:_SOME_ROWS])
    with working(progress, "SVIGP: posterior", passes * (len(sample) + 2 * len(some)) + 2 * len(some), "points"):
        done = by_passes(data, first.q, passes, some, progress.advance)
    note = f"{data.note}; the ELBO is that before the last pass"
    return Inferred(done.q, done.values, _restless(done.shift), done.interrupted, (note,))


def _stream(recipe: SVIGP, basis: Basis, sample: Sample) -> Stream:
    """The rows, to be read by NumPy or on the device."""
    if recipe.device == "cpu":
        return Stream.of(basis, sample.x, Counts.of(sample, recipe.link))
    from sateen.learning.gp.accelerated import stream_of

    return stream_of(basis, sample, recipe.link)


def _at_once(
    recipe: SVIGP, basis: Basis, sample: Sample, start: Whitened | None, tolerance: float, progress: Progress
) -> Inferred:
    """All rows in every step, their features in memory; from the sites that a first belief asks for."""
    counts, features = Counts.of(sample, recipe.link), basis.features(sample.x)
    spare, sites = basis.spare(features), Sites.guess(counts)
    if start is not None:
        sites = Sites.asked_by(counts, features @ start.mean, start.spread(features) + spare)
    return _converged(recipe, partial(converge, counts, features, spare, sites), tolerance, progress)


def _converged(recipe: SVIGP, climb: Callable[..., Variational[Any]], tolerance: float, progress: Progress) -> Inferred:
    """Where a climb with all rows in every step ends."""
    most, values = recipe.passes or _STEPS, list[float]()
    with working(progress, "SVIGP: posterior", most, "steps"):

        def step(elbo: float) -> None:
            values.append(elbo)
            progress.advance(1)

        end = climb(tolerance=tolerance, most=most, step=step)
    restless = end.gain > max(10.0 * tolerance, 1e-6 * abs(end.elbo))
    trouble = f"the ELBO still rose by {end.gain:.2g} in the last step; raise passes" if restless else ""
    return Inferred(end.q, (*values, end.elbo), trouble, end.interrupted)


def _moved(recipe: SVIGP, progress: Progress, prior: Prior, sample: Sample) -> Prior:
    """The prior with inducing points moved uphill on the ELBO, and the kernel with them."""
    most = recipe.inducing or inducing_for(sample.x.shape[1])
    start, counts = choose_inducing(prior.kernel, sample.x, most), Counts.of(sample, recipe.link)
    if not start.size:
        return prior
    objective, step = objective_of(evaluate_elbo, counts, sample.x), partial(progress.advance, 1)
    with working(progress, "SVIGP: inducing points", _POINT_STEPS, "evaluations"):
        climb = maximise(objective, prior.kernel, points=start, most=_POINT_STEPS, step=step, fixed=fixed(recipe))
    values = np.append(prior.values, climb.values)
    return replace(prior, kernel=climb.kernel, points=climb.points, values=values, interrupted=climb.interrupted)


def _restless(shift: float) -> str:
    if shift <= _MOVED:
        return ""
    return f"another step would move the posterior by {shift**0.5:.2g} deviations; raise passes"
