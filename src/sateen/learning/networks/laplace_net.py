"""Networks with a normal belief about their weights: the linearised Laplace approximation of an ensemble.

Each network is trained to the mode w* of its posterior density, under independent normal priors of precision a. There
its logarithm bends like the generalised Gauss-Newton matrix,

    A = Σ_i I_i J_iᵀ J_i + a I,

where J_i is the derivative of g by the weights at row i, and I_i Fisher's information on g in the counts of that row.
The belief about the weights is N(w*, A^-1), and g is taken to be linear in them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, lapack, solve_triangular

from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import SILENT, Progress
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.learning.gp.result import normalise_fields
from sateen.learning.inputs import FloatArray, InputScale, Sample, check_task, check_whole, sample_of
from sateen.learning.networks.laplace_net_posterior import LaplacePosterior
from sateen.learning.networks.network import (
    Activation,
    Array,
    Device,
    Link,
    Net,
    Precision,
    Rows,
    arithmetic,
    check_number,
    check_word,
    information,
    jacobian,
    log_ways,
    rows_of,
    window_of,
)
from sateen.learning.networks.training import Batches, CountLoss, Schedule, Trained, Trainer, first_weights
from sateen.learning.record import Record
from sateen.learning.scale import check_input_scale, choose_inputs

__all__ = ["Belief", "LaplaceNet", "LaplacePosterior", "believed", "curvature"]

_MANY_POINTS: Final = 300_000
_BATCH: Final = 256
_BATCH_OF_MANY: Final = 512  # where there are many points, less noise is worth its price
_CHUNK: Final = 500  # rows whose derivatives are held at once; also keeps sums in single precision short
_SETTLED: Final = 2.0  # nats below the mode are nothing, nor are
_NEAR: Final = 1.5  # nats for each direction of the weights that is known: draws from the belief are 0.5 below it
_GRADIENT_ROWS: Final = 16_384
_FIRST_JITTER: Final = 1e-7  # of the largest curvature, where rounding made A indefinite


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNet:
    """An ensemble of `nets` networks d-`width`-`width`-1, each with the linearised Laplace approximation around it.

    Each is trained for `steps` mini-batches of `batch` points (None: 256, or 512 where there are 300,000 points or
    more), with steps of `rate` that sink to 0. `weight_decay` is the precision of the normal prior of every weight
    (None: as many as there are inputs, at least 1 and at most 10). The curvature is summed over `curvature_rows` rows,
    drawn at random, and scaled to all. Of the belief about the weights, `draws` draws for each network are kept, whose
    covariance stands for it. `precision` is that of numbers.

    >>> LaplaceNet(nets=0)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: nets is a whole number from 1 up, not 0
    """

    nets: int = 4
    width: int = 32
    activation: Activation = "silu"
    link: Link = "probit"
    steps: int = 15_000
    batch: int | None = None
    rate: float = 0.015
    weight_decay: float | None = None
    curvature_rows: int = 10_000
    draws: int = 128
    inputs: InputScale = "auto"
    device: Device = "auto"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_input_scale(self.inputs)
        for name in ("activation", "link", "device", "precision"):
            check_word(name, getattr(self, name))
        for name in ("nets", "width", "steps", "curvature_rows", "draws"):
            check_whole(getattr(self, name), name, 1)
        if self.batch is not None:
            check_whole(self.batch, "batch", 1)
        check_number("rate", self.rate)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay)

    def fit(
        self, observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
    ) -> LaplacePosterior:
        """The posterior over f that `observations` leave; the same seed gives the same one.

        Ctrl-C ends a fit that has made a step with the networks that are trained by then, and the record says so.
        `checkpoint` names a file that is written every ten seconds and in the end, and from which a fit of the same
        observations and recipe with the same seed goes on, to the same result.
        """
        check_task(observations, seed)
        inputs, notes = choose_inputs(observations, self.inputs, seed)
        sample = sample_of(observations, inputs)
        net = Net(inputs.dimension, self.width, self.activation, self.link)
        settings = asdict(replace(self, device="auto"))
        mark = checksum(["laplace-net", settings, inputs.content(), observations.fingerprint, int(seed)], {})
        decay = self.decay_for(net)
        with (
            arithmetic(self.device, self.precision),
            Trainer("laplace-net", self.nets * self.steps, progress, checkpoint, mark) as trainer,
        ):
            trained = self._trained(net, sample, seed, trainer)
            progress.note("finding the curvature")
            beliefs = [
                believed(net, one.parameters, sample, decay, self.curvature_rows, self.draws, [seed, 4, place])
                for place, one in enumerate(trained)
            ]
        values = log_ways(sample) - len(sample) * np.mean([one.losses for one in trained], axis=0)
        done = sum(one.done == self.steps for one in trained)
        verdict, stopped = self._verdict(done, beliefs), done < self.nets
        record = Record("log-posterior", trained[0].ends, values, verdict, trainer.seconds, stopped, notes)
        return LaplacePosterior(
            self,
            Training(observations),
            inputs,
            record,
            net=net,
            weights=np.array([one.parameters for one in trained]),
            factors=np.array([one.factor for one in beliefs]),
            misfit=float(np.mean([one.effective for one in beliefs]) / (4.0 * sample.trials.sum())),
        )

    def decay_for(self, net: Net) -> float:
        """The precision of the prior of every weight."""
        return float(min(max(net.inputs, 1), 10)) if self.weight_decay is None else float(self.weight_decay)

    def _trained(self, net: Net, sample: Sample, seed: int, trainer: Trainer) -> list[Trained]:
        """The networks whose training ended, or the only one that began before Ctrl-C."""
        size = _BATCH_OF_MANY if len(sample) >= _MANY_POINTS else _BATCH
        batches = Batches.of(sample, self.batch or size, seed, self.precision)
        loss, fixed = CountLoss(net, window_of(sample)), np.asarray(self.decay_for(net) / len(sample), self.precision)
        course, found = Schedule(self.steps, self.rate), list[Trained]()
        for place in range(self.nets):
            start = first_weights(net, sample, [seed, 2, place], self.precision)
            one = trainer.train(f"net{place}", loss, start, batches, fixed, course, [seed, 3, place])
            if one.done == self.steps or (one.done and not found):
                found.append(one)
            if trainer.interrupted:
                break
        if not found:
            raise KeyboardInterrupt
        if not all(np.isfinite(one.parameters).all() for one in found):
            raise InputError(f"the fit diverged; lower rate, which is {self.rate:g}")
        return found

    def _verdict(self, done: int, beliefs: list[Belief]) -> str:
        """Whether each network, so many of which are done, is about as near to its mode as draws from its belief."""
        if done < self.nets:
            return (
                f"interrupted with {done} of {self.nets} networks trained: fit again, with a checkpoint to go on from"
            )
        farthest = max(beliefs, key=lambda one: one.gain - _NEAR * one.effective)
        if farthest.gain <= max(_NEAR * farthest.effective, _SETTLED):
            return "converged"
        return (
            f"the log-posterior of a network could still rise by about {farthest.gain:.3g} nats, with "
            f"{farthest.effective:.3g} directions of its weights known: raise steps"
        )


class Belief(NamedTuple):
    """What is believed about the weights of a network: the draws, divided by the root of their number, are `factor`.

    `effective` is how many directions of the weights the counts determine, `gain` how many nats the log posterior
    density could still rise by.
    """

    factor: npt.NDArray[Any]
    effective: float
    gain: float


@on_one_thread
def believed(
    net: Net, weights: npt.NDArray[Any], sample: Sample, decay: float, rows: int, draws: int, seed: list[int]
) -> Belief:
    """The Laplace approximation around the weights of a network."""
    rng = np.random.default_rng(seed)
    chosen = sample if len(sample) <= rows else sample[np.sort(rng.permutation(len(sample))[:rows])]
    window = window_of(sample)
    summed = curvature(net, weights, chosen, window) * (len(sample) / len(chosen))
    root = _root(summed, decay)
    inverse, _ = lapack.dtrtri(root, lower=1)
    effective = len(weights) - decay * float(np.sum(np.tril(inverse) ** 2))
    noise = rng.standard_normal((len(weights), draws)) / np.sqrt(draws)
    factor = solve_triangular(root, noise, lower=True, trans=1, check_finite=False)
    slope = solve_triangular(root, _slope(net, weights, sample, window, decay), lower=True, check_finite=False)
    return Belief(factor.astype(weights.dtype), max(effective, 0.0), 0.5 * float(slope @ slope))


def curvature(net: Net, weights: npt.NDArray[Any], sample: Sample, window: int) -> FloatArray:
    """Σ_i I_i J_iᵀ J_i over the rows of a sample."""
    total = np.zeros((net.size, net.size))
    at = jax.device_put(weights)
    for start in range(0, len(sample), _CHUNK):
        total += np.asarray(_squares(net, window, at, _chunk(sample, start, _CHUNK, at.dtype)), np.float64)
    return total


def _slope(net: Net, weights: npt.NDArray[Any], sample: Sample, window: int, decay: float) -> FloatArray:
    """The derivative of the negative log posterior density of the weights."""
    at, size = jax.device_put(weights), min(len(sample), _GRADIENT_ROWS)
    total = decay * weights.astype(np.float64)
    for start in range(0, len(sample), size):
        total += np.asarray(_descent(net, window, at, _chunk(sample, start, size, at.dtype)), np.float64)
    return total


def _chunk(sample: Sample, start: int, size: int, precision: Any) -> Rows:
    """So many rows; those that are missing at the end have no runs, and tell nothing."""
    own = sample[start : start + size]
    missing = size - len(own)
    filled = [np.concatenate([column, np.zeros((missing, *column.shape[1:]))]) for column in (own.x, own.satisfied)]
    others = [np.concatenate([column, np.zeros(missing)]) for column in (own.undecided, own.trials)]
    return rows_of(Sample(*filled, *others), precision)


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
