"""The paper's Bayesian neural network: independent normal weights, found by stochastic variational inference.

A network with the weights w has f = Φ(g_w). First a deterministic network is trained; then q(w) = Π N(m_i, s_i²) climbs

    ELBO = N/B Σ_batch E_q[ln p(count | g_w)] - KL[q ‖ N(trained weights, 1/m²)],

where m is the width of the hidden layers, or with `layer_prior` that of each layer itself. Without `scale_likelihood`
the factor N/B is left out. The expectation is taken by local reparametrisation: given the values of one layer, those of
the next before activation are independent normals, which are drawn instead of w.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

import jax.numpy as jnp
import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import Progress, working
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.types import Array as HostArray
from sateen.core.types import File, FloatArray
from sateen.learning.inputs import Sample
from sateen.learning.networks.network import Array, Net, Rows, arithmetic, log_likelihood, log_ways, window_of
from sateen.learning.networks.posterior import BNNPosterior
from sateen.learning.networks.recipes import SVIBNN
from sateen.learning.networks.training import (
    Batches,
    CountLoss,
    Schedule,
    Trained,
    Trainer,
    first_weights,
    prior_precision,
    task_of,
)

_FIRST_SPREAD: Final = 0.2  # of the deviation of the prior, with which that of q begins
_FEWEST_SLOTS: Final = 20  # parts of the steps that tell whether the ELBO has settled
_SETTLED: Final = 2.0  # nats in all, or
_SETTLED_A_ROW: Final = 0.005  # nats for each row


def fit(
    recipe: SVIBNN, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> BNNPosterior:
    """As `SVIBNN.fit`."""
    inputs, notes, sample, kept = task_of("svi-bnn", recipe, observations, seed, checkpoint)
    net = Net(inputs.dimension, recipe.width, recipe.activation, recipe.link)
    first = _steps(recipe, recipe.pretraining, sample)
    second = _steps(recipe, recipe.steps or recipe.epochs or 0, sample)
    total = first + second
    trainer = Trainer(total, progress, kept)
    with arithmetic(recipe.device, recipe.precision), working(progress, "svi-bnn", total, "steps"):
        centre, q = _trained(recipe, net, sample, seed, trainer, first, second)
    elbo = log_ways(sample) - len(sample) * q.losses
    verdict = _verdict(elbo, q.done, second, len(sample), recipe.cooling)
    record = Record("elbo", q.ends, elbo, verdict, trainer.seconds, q.done < second, notes)
    mean, spread = q.parameters[0], np.exp(q.parameters[1])
    noise = stream(seed, "draws").standard_normal((recipe.number_of_draws, len(mean)), dtype=np.float32)
    draws = (mean + spread * noise).astype(mean.dtype)
    return BNNPosterior(recipe, Training(observations), inputs, record, net, centre, mean, spread, draws)


def _steps(recipe: SVIBNN, count: int, sample: Sample) -> int:
    """So many steps, or epochs, in steps."""
    return count if recipe.epochs is None else count * ceil(len(sample) / min(recipe.batch, len(sample)))


def _trained(
    recipe: SVIBNN, net: Net, sample: Sample, seed: int, trainer: Trainer, first: int, second: int
) -> tuple[HostArray, Trained]:
    """The weights of the deterministic network, and q: its means and the logarithms of its deviations."""
    batches, window = Batches.of(sample, recipe.batch, seed, recipe.precision), window_of(sample)
    rest = 0.0 if recipe.cooling else 1.0
    decay = prior_precision(recipe.weight_decay, net)
    start = first_weights(net, sample, stream(seed, "weights"), recipe.precision)
    course, fixed = Schedule(first, recipe.pretraining_rate, rest), np.asarray(decay / len(sample), recipe.precision)
    chance = stream(seed, "pretraining")
    alone = trainer.train("net", CountLoss(net, window), start, batches, fixed, course, chance)
    if trainer.interrupted:
        raise KeyboardInterrupt  # nothing is believed yet
    spread = _prior_spread(recipe, net)
    guide = np.stack([alone.parameters, np.log(_FIRST_SPREAD * spread)])
    size = len(sample) if recipe.scale_likelihood else batches.batch
    prior = alone.parameters, spread, np.asarray(size, recipe.precision)
    course, chance = Schedule(second, recipe.rate, rest), stream(seed, "training")
    q = trainer.train("guide", Bound(net, window), guide, batches, prior, course, chance)
    if not q.done:
        raise KeyboardInterrupt
    if not np.isfinite(q.parameters).all():
        raise InputError(f"the fit diverged; lower rate, which is {recipe.rate:g}, or pretraining_rate")
    return alone.parameters, q


def _prior_spread(recipe: SVIBNN, net: Net) -> HostArray:
    """The deviation of the prior of every weight."""
    widths = [columns if recipe.layer_prior else recipe.width for _, columns in net.shapes]
    sizes = [(rows + 1) * columns for rows, columns in net.shapes]  # with the biases
    return np.repeat(recipe.prior_scale / np.array(widths), sizes).astype(recipe.precision)


@dataclass(frozen=True, slots=True)
class Bound:
    """The negative ELBO for each row: KL / N less the mean of ln p(count | g) over a batch."""

    net: Net
    window: int

    def noise(self, batch: int) -> int:
        """One number for each unit and row."""
        return batch * (2 * self.net.width + 1)

    def __call__(self, parameters: Array, rows: Rows, noise: Array, fixed: Array) -> Array:
        """As `Loss` says; `fixed` are the means and deviations of the prior, and how many rows the KL is shared by."""
        centre, spread, size = fixed
        mean, log_deviation = parameters
        g = noisy_output(self.net, mean, jnp.exp(2.0 * log_deviation), rows.x, noise.reshape(len(rows.x), -1))
        fit = jnp.mean(log_likelihood(self.net.link, g, rows, self.window))
        return divergence(mean, log_deviation, centre, spread) / size - fit


def noisy_output(net: Net, mean: Array, variance: Array, x: Array, noise: Array) -> Array:
    """g at each row of `x`, each under a network of its own with independent normal weights, one layer at a time.

    `noise` has a standard normal number for each unit, in the rows that `x` has.
    """
    widths = [columns for _, columns in net.shapes]
    values, start = x, 0
    for centre, spread, width in zip(net.layers(mean), net.layers(variance), widths, strict=True):
        values = net.activate(values) if start else values
        deviation = jnp.sqrt((values * values) @ spread[0] + spread[1])
        values = values @ centre[0] + centre[1] + deviation * noise[:, start : start + width]
        start += width
    return values[:, 0]


def divergence(mean: Array, log_deviation: Array, centre: Array, spread: Array) -> Array:
    """KL[Π N(mean, deviation²) ‖ Π N(centre, spread²)] in nats."""
    ratio = jnp.exp(log_deviation) / spread
    return jnp.sum(0.5 * (ratio**2 + ((mean - centre) / spread) ** 2 - 1.0) - jnp.log(ratio))


def _verdict(elbo: FloatArray, done: int, steps: int, rows: int, cooling: bool) -> str:
    """Whether the ELBO over a quarter of the steps is that of the quarter before, up to noise and to rounding.

    It is the last quarter; but a rate that sinks to 0 makes that one flat, wherever it is, and then the third tells.
    """
    if done < steps:
        return f"interrupted after {done:,} of {steps:,} steps: fit again, with a checkpoint to resume from"
    if len(elbo) < _FEWEST_SLOTS:
        return f"{steps} steps are too few to tell whether the ELBO has settled: raise steps"
    quarter = len(elbo) // 4
    end = len(elbo) - quarter if cooling else len(elbo)
    last, before = elbo[end - quarter : end], elbo[end - 2 * quarter : end - quarter]
    rise = float(last.mean() - before.mean())
    noise = 3.0 * sqrt(float(last.var() + before.var()) / quarter)
    if rise <= max(_SETTLED, _SETTLED_A_ROW * rows, noise):
        return "converged"
    return f"the ELBO still rose by {rise:.3g} nats in the {'third' if cooling else 'last'} quarter: raise steps"
