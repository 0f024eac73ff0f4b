"""The paper's Bayesian neural network: independent normal weights, found by stochastic variational inference.

A network with the weights w has f = Φ(g_w). First a deterministic network is trained; then q(w) = Π N(m_i, s_i²) climbs

    ELBO = N/B Σ_batch E_q[ln p(count | g_w)] - KL[q ‖ N(trained weights, 1/m²)],

where m is the width of the hidden layers, or with `layer_prior` that of each layer itself. Without `scale_likelihood`
the factor N/B is left out. The expectation is taken by local reparametrisation: given the values of one layer, those of
the next before activation are independent normals, which are drawn instead of w.

Where there are many points, several such q are found, from different random weights, and their equal mixture is the
posterior: what they differ in is not known to any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, NamedTuple

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

_BATCH: Final = 100
_GUIDES_OF_MANY: Final = 4
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
    is_large = len(sample) >= MANY_POINTS
    count = recipe.guides or (_GUIDES_OF_MANY if is_large else 1)
    batch = recipe.batch or (BATCH_OF_MANY if is_large else _BATCH)
    first, second = (_steps(recipe, each, len(sample), batch) for each in (recipe.pretraining, recipe.steps))
    trainer = Trainer(count * (first + second), progress, kept)
    with arithmetic(recipe.device, recipe.precision), working(progress, "svi-bnn", count * (first + second), "steps"):
        batches = Batches.of(sample, batch, seed, recipe.precision)
        guides = _Search(recipe, net, sample, batches, seed, trainer, first, second).guides(count)
    elbos = log_ways(sample) - len(sample) * np.array([each.q.losses for each in guides])
    done = sum(each.q.done for each in guides)
    verdicts = [_verdict(each, done, count * second, len(sample), recipe.cooling) for each in elbos]
    verdict = next((each for each in verdicts if each != "converged"), "converged")
    record = Record(
        "elbo", guides[0].q.ends, elbos.mean(axis=0), verdict, trainer.seconds, done < count * second, notes
    )
    centre, mean = (np.array([getattr(each, name) for each in guides]) for name in ("centre", "mean"))
    spread = np.exp([each.q.parameters[1] for each in guides])
    noise = stream(seed, "draws").standard_normal((recipe.number_of_draws, net.size), dtype=np.float32)
    which = np.arange(len(noise)) % len(guides)
    draws = (mean[which] + spread[which] * noise).astype(mean.dtype)
    return BNNPosterior(recipe, Training(observations), inputs, record, net, centre, mean, spread, draws)


def _steps(recipe: SVIBNN, count: int | None, rows: int, batch: int) -> int:
    """This many steps, or epochs, in steps; those of the recipe where None is given."""
    if recipe.epochs is None:
        return count or 0
    return (count or recipe.epochs) * ceil(rows / min(batch, rows))


class _Guide(NamedTuple):
    """The weights of a deterministic network, and the q that begins there."""

    centre: HostArray
    q: Trained

    @property
    def mean(self) -> HostArray:
        """The means of the weights under q."""
        return np.asarray(self.q.parameters[0])


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for guides: `first` steps for a deterministic network, then `second` for a guide that begins there."""

    recipe: SVIBNN
    net: Net
    sample: Sample
    batches: Batches
    seed: int
    trainer: Trainer
    first: int
    second: int

    def guides(self, count: int) -> list[_Guide]:
        """So many; after Ctrl-C those that were found, or the first as far as it had come."""
        found = list[_Guide]()
        for place in range(count):
            one = self._guide(place)
            if one.q.done == self.second or (one.q.done and not found):
                found.append(one)
            if self.trainer.interrupted:
                break
        if not found:
            raise KeyboardInterrupt  # nothing is believed yet
        if not all(np.isfinite(each.q.parameters).all() for each in found):
            raise InputError(f"the fit diverged; lower rate, which is {self.recipe.rate:g}, or pretraining_rate")
        return found

    def _guide(self, place: int) -> _Guide:
        recipe, net, window = self.recipe, self.net, window_of(self.sample)
        mark, names = (str(place), (place,)) if place else ("", ())  # the first is that of a fit with one guide
        rest = 0.0 if recipe.cooling else 1.0
        start = first_weights(net, self.sample, stream(self.seed, "weights", *names), recipe.precision)
        decay = np.asarray(prior_precision(recipe.weight_decay, net) / len(self.sample), recipe.precision)
        course, chance = Schedule(self.first, recipe.pretraining_rate, rest), stream(self.seed, "pretraining", *names)
        loss = CountLoss(net, window)
        alone = self.trainer.train(f"net{mark}", loss, start, self.batches, decay, course, chance)
        if self.trainer.interrupted:
            return _Guide(alone.parameters, alone._replace(done=0))
        spread = _prior_spread(recipe, net)
        guide = np.stack([alone.parameters, np.log(_FIRST_SPREAD * spread)])
        size = len(self.sample) if recipe.scale_likelihood else self.batches.batch
        prior = alone.parameters, spread, np.asarray(size, recipe.precision)
        course, chance = Schedule(self.second, recipe.rate, rest), stream(self.seed, "training", *names)
        bound = Bound(net, window)
        return _Guide(
            alone.parameters, self.trainer.train(f"guide{mark}", bound, guide, self.batches, prior, course, chance)
        )


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
    return f"the ELBO still rose by {rise:.3g} in the {'third' if cooling else 'last'} quarter: raise steps"
