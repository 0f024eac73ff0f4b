"""Networks with a normal belief about their weights: the linearised Laplace approximation of an ensemble.

Each network is trained to the mode w* of its posterior density, under independent normal priors of precision a. There
its logarithm bends like the generalised Gauss-Newton matrix,

    A = Σ_i I_i J_iᵀ J_i + a I,

where J_i is the derivative of g by the weights at row i, and I_i Fisher's information on g in the counts of that row.
The belief about the weights is N(w*, A^-1), and g is taken to be linear in them.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import Progress, working
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.core.types import Array as HostArray
from sateen.core.types import File, FloatArray
from sateen.learning.inputs import Sample
from sateen.learning.networks.network import (
    Array,
    Net,
    Rows,
    arithmetic,
    information,
    jacobian,
    log_ways,
    rows_of,
    window_of,
)
from sateen.learning.networks.posterior import LaplacePosterior
from sateen.learning.networks.recipes import LaplaceNet
from sateen.learning.networks.training import (
    BATCH_OF_MANY,
    MANY_POINTS,
    Batches,
    CountLoss,
    Schedule,
    Trained,
    Trainer,
    first_weights,
    prior_precision,
    task_of,
)
from sateen.learning.settings import Precision

_BATCH: Final = 256
_CHUNK: Final = 500  # rows whose derivatives are held at once; also keeps sums in single precision short
_SETTLED: Final = 2.0  # nats below the mode are nothing, nor are
_NEAR: Final = 1.5  # nats for each direction of the weights that is known: draws from the belief are 0.5 below it
_GRADIENT_ROWS: Final = 16_384
_FIRST_JITTER: Final = 1e-7  # of the largest curvature, where rounding made A indefinite


def fit(
    recipe: LaplaceNet, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> LaplacePosterior:
    """As `LaplaceNet.fit`."""
    inputs, notes, sample, kept = task_of("laplace-net", recipe, observations, seed, checkpoint)
    net = Net(inputs.dimension, recipe.width, recipe.activation, recipe.link)
    decay = prior_precision(recipe.weight_decay, net)
    total = recipe.nets * recipe.steps
    trainer = Trainer(total, progress, kept)
    with arithmetic(recipe.device, recipe.precision), working(progress, "laplace-net", total, "steps"):
        trained = _trained(recipe, net, sample, seed, trainer)
        progress.note("finding the curvature")
        asked = recipe.curvature_rows, recipe.draws
        beliefs = [
            believed(net, one.parameters, sample, decay, *asked, stream(seed, "curvature", place))
            for place, one in enumerate(trained)
        ]
    values = log_ways(sample) - len(sample) * np.mean([one.losses for one in trained], axis=0)
    done = sum(one.done == recipe.steps for one in trained)
    verdict, stopped = _verdict(recipe.nets, done, beliefs), done < recipe.nets
    record = Record("log-posterior", trained[0].ends, values, verdict, trainer.seconds, stopped, notes)
    return LaplacePosterior(
        recipe,
        Training(observations),
        inputs,
        record,
        net=net,
        weights=np.array([one.parameters for one in trained]),
        factors=np.array([one.factor for one in beliefs]),
        misfit=float(np.mean([one.effective for one in beliefs]) / (4.0 * sample.trials.sum())),
    )


def held_out_mean(
    recipe: LaplaceNet, observations: Observations, hidden: HostArray, seed: int, progress: Progress
) -> FloatArray:
    """f by networks alone, without curvature, at the rows whose counts a mask hides from them.

    A hidden row stays among the others without a run, so that all shapes, and what is compiled for them, are those of a
    fit to all rows. Every row has a decided run.
    """
    inputs, _, sample, kept = task_of("laplace-net", recipe, observations, seed, None)
    net = Net(inputs.dimension, recipe.width, recipe.activation, recipe.link)
    total = recipe.nets * recipe.steps
    trainer = Trainer(total, progress, kept)
    seen = Sample(
        sample.x, *(np.where(hidden, 0.0, each) for each in (sample.satisfied, sample.undecided, sample.trials))
    )
    with arithmetic(recipe.device, recipe.precision), working(progress, "comparing with a network", total, "steps"):
        trained = _trained(recipe, net, seen, seed, trainer)
        if trainer.interrupted:
            raise KeyboardInterrupt  # nothing is learned yet
        x = np.asarray(sample.x[hidden], recipe.precision)
        means = [np.asarray(net.probability(net.output(one.parameters, x)), np.float64) for one in trained]
    return np.asarray(np.mean(means, axis=0))


def _trained(recipe: LaplaceNet, net: Net, sample: Sample, seed: int, trainer: Trainer) -> list[Trained]:
    """The networks whose training ended, or the only one that began before Ctrl-C."""
    size = BATCH_OF_MANY if len(sample) >= MANY_POINTS else _BATCH
    batches = Batches.of(sample, recipe.batch or size, seed, recipe.precision)
    fixed = np.asarray(prior_precision(recipe.weight_decay, net) / len(sample), recipe.precision)
    loss, course, trained = CountLoss(net, window_of(sample)), Schedule(recipe.steps, recipe.rate), list[Trained]()
    for place in range(recipe.nets):
        start = first_weights(net, sample, stream(seed, "weights", place), recipe.precision)
        one = trainer.train(f"net{place}", loss, start, batches, fixed, course, stream(seed, "training", place))
        if one.done == recipe.steps or (one.done and not trained):
            trained.append(one)
        if trainer.interrupted:
            break
    if not trained:
        raise KeyboardInterrupt
    if not all(np.isfinite(one.parameters).all() for one in trained):
        raise InputError(f"the fit diverged; lower rate, which is {recipe.rate:g}")
    return trained


def _verdict(nets: int, done: int, beliefs: list[Belief]) -> str:
    """Whether each network, of which this many are done, is about as near to its mode as draws from its belief."""
    if done < nets:
        return f"interrupted with {done} of {nets} networks trained: fit again, with a checkpoint to resume from"
    farthest = max(beliefs, key=lambda one: one.gain - _NEAR * one.effective)
    if farthest.gain <= max(_NEAR * farthest.effective, _SETTLED):
        return "converged"
    return (
        f"the log-posterior of a network could still rise by about {farthest.gain:.3g}, with "
        f"{farthest.effective:.3g} directions of its weights known: raise steps"
    )


class Belief(NamedTuple):
    """What is believed about the weights of a network: the draws, divided by the root of their number, are `factor`.

    `effective` is how many directions of the weights the counts determine, `gain` how many nats the log posterior
    density could still rise by.
    """

    factor: HostArray
    effective: float
    gain: float


@on_one_thread
def believed(
    net: Net, weights: HostArray, sample: Sample, decay: float, rows: int, draws: int, rng: np.random.Generator
) -> Belief:
    """The Laplace approximation around the weights of a network."""
    chosen, window = sample.some(rows, rng), window_of(sample)
    summed = curvature(net, weights, chosen, window) * (len(sample) / len(chosen))
    root = _root(summed, decay)
    inverse, _ = lapack.dtrtri(root, lower=1)
    effective = len(weights) - decay * float(np.sum(np.tril(inverse) ** 2))
    noise = rng.standard_normal((len(weights), draws)) / np.sqrt(draws)
    factor = solve_triangular(root, noise, lower=True, trans=1, check_finite=False)
    slope = solve_triangular(root, _slope(net, weights, sample, window, decay), lower=True, check_finite=False)
    return Belief(factor.astype(weights.dtype), max(effective, 0.0), 0.5 * float(slope @ slope))


def curvature(net: Net, weights: HostArray, sample: Sample, window: int) -> FloatArray:
    """Σ_i I_i J_iᵀ J_i over the rows of a sample."""
    total = np.zeros((net.size, net.size))
    at = jax.device_put(weights)
    for start in range(0, len(sample), _CHUNK):
        total += np.asarray(_squares(net, window, at, _chunk(sample, start, _CHUNK, at.dtype)), np.float64)
    return total


def _slope(net: Net, weights: HostArray, sample: Sample, window: int, decay: float) -> FloatArray:
    """The derivative of the negative log posterior density of the weights."""
    at, size = jax.device_put(weights), min(len(sample), _GRADIENT_ROWS)
    total = decay * weights.astype(np.float64)
    for start in range(0, len(sample), size):
        total += np.asarray(_descent(net, window, at, _chunk(sample, start, size, at.dtype)), np.float64)
    return total


def _chunk(sample: Sample, start: int, size: int, precision: Precision) -> Rows:
    """This many rows; those that are missing at the end have no runs, and tell nothing."""
    part = sample[start : start + size]
    missing = size - len(part)
    columns = (part.x, part.satisfied, part.undecided, part.trials)
    filled = (np.concatenate([column, np.zeros((missing, *column.shape[1:]))]) for column in columns)
    return rows_of(Sample(*filled), precision)


@partial(jax.jit, static_argnames=("net", "window"))
def _squares(net: Net, window: int, weights: Array, rows: Rows) -> Array:
    known = information(net.link, net.output(weights, rows.x), rows, window)
    scaled = jacobian(net, weights, rows.x) * jnp.sqrt(known)[:, None]
    return scaled.T @ scaled


@partial(jax.jit, static_argnames=("net", "window"))
def _descent(net: Net, window: int, weights: Array, rows: Rows) -> Array:
    loss, none = CountLoss(net, window), np.zeros((), weights.dtype)
    return len(rows.x) * jax.grad(loss)(weights, rows, None, none)


def _root(summed: FloatArray, decay: float) -> FloatArray:
    """The lower Cholesky factor of A; rounding may ask for a little more on its diagonal."""
    jitter, largest = 0.0, float(np.max(np.diagonal(summed), initial=1.0))
    while True:
        try:
            return np.asarray(cholesky(summed + (decay + jitter) * np.eye(len(summed)), lower=True))
        except np.linalg.LinAlgError:
            jitter = max(10.0 * jitter, _FIRST_JITTER * largest)
