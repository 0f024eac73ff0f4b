"""The paper's Bayesian neural network: independent normal weights, found by stochastic variational inference.

A network with the weights w has f = Φ(g_w). First a deterministic network is trained; then q(w) = Π N(m_i, s_i²) climbs

    ELBO = N/B Σ_batch E_q[ln p(count | g_w)] - KL[q ‖ N(trained weights, 1/m²)],

where m is the width of the hidden layers. The expectation is taken by local reparametrisation: given
the values of one layer, those of the next before activation are independent normals, which are drawn instead of w.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import ceil, log, sqrt
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import SILENT, Progress
from sateen.core.types import File
from sateen.learning.gp.result import normalise_fields
from sateen.learning.inputs import FloatArray, InputScale, Sample, check_task, check_whole, sample_of
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
    log_likelihood,
    log_ways,
    window_of,
)
from sateen.learning.networks.svi_bnn_posterior import BNNPosterior
from sateen.learning.networks.training import Batches, CountLoss, Schedule, Trained, Trainer, first_weights
from sateen.learning.record import Record
from sateen.learning.scale import check_input_scale, choose_inputs

__all__ = ["SVIBNN", "BNNPosterior", "Bound", "divergence", "noisy_output"]

_CONFIDENCE: Final = 0.99  # that no quantile of the draws is further off than `quantile_error`
_FIRST_SPREAD: Final = 0.2  # of the deviation of the prior, with which that of q begins
_FEWEST_SLOTS: Final = 20  # parts of the steps that tell whether the ELBO has settled
_SETTLED: Final = 2.0  # nats in all, or
_SETTLED_A_ROW: Final = 0.005  # nats for each row


@dataclass(frozen=True, slots=True, kw_only=True)
class SVIBNN:
    """A Bayesian neural network d-`width`-`width`-1 with independent normal weights.

    It is trained for `steps` mini-batches of `batch` points, or for `epochs` over all of them where these are given, at
    `rate`; before that, `pretraining` as many train the deterministic network at which the prior is centred, at
    `pretraining_rate` and with the prior precision `weight_decay` (None: as many as there are inputs, at most 10). Both
    rates sink to 0 with `cooling`. The prior has the deviation `prior_scale` / `width`. Posterior quantiles are those
    of `draws` networks (None: so many that with 99 % probability no quantile is off by more than `quantile_error` in
    its level, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart). `precision` is that of numbers.

    >>> SVIBNN().number_of_draws, SVIBNN.faithful().number_of_draws
    (736, 1000)
    >>> SVIBNN(activation="relu")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: activation is not 'relu'; take one of silu, leaky-relu, tanh
    """

    width: int = 20
    activation: Activation = "silu"
    link: Link = "probit"
    steps: int | None = 10_000
    epochs: int | None = None
    pretraining: int = 8000
    batch: int = 100
    rate: float = 0.005
    pretraining_rate: float = 0.015
    weight_decay: float | None = None
    cooling: bool = True
    prior_scale: float = 1.0
    draws: int | None = None
    quantile_error: float = 0.06
    inputs: InputScale = "auto"
    device: Device = "auto"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_input_scale(self.inputs)
        for name in ("activation", "link", "device", "precision"):
            check_word(name, getattr(self, name))
        for name in ("width", "pretraining", "batch"):
            check_whole(getattr(self, name), name, 1)
        for name in ("steps", "epochs", "draws"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name, 1)
        if (self.steps is None) == (self.epochs is None):
            raise InputError("give steps or epochs, and set the other to None: a fit is as long as one of them says")
        for name in ("rate", "pretraining_rate", "prior_scale", "quantile_error"):
            check_number(name, getattr(self, name))
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, zero=True)
        if not isinstance(self.cooling, bool):
            raise InputError(f"cooling is True or False, not {self.cooling!r}")

    @classmethod
    def faithful(cls) -> SVIBNN:
        """The paper's settings: leaky ReLU, sigmoid, linear inputs, 500 and then 2000 epochs, constant rates."""
        return cls(
            width=30,
            activation="leaky-relu",
            link="logit",
            steps=None,
            epochs=2000,
            pretraining=500,
            rate=0.001,
            pretraining_rate=0.01,
            weight_decay=0.0,
            cooling=False,
            draws=1000,
            inputs="linear",
        )

    @property
    def number_of_draws(self) -> int:
        """How many networks are drawn from the posterior when it is fitted."""
        if self.draws is not None:
            return self.draws
        return ceil(log(2.0 / (1.0 - _CONFIDENCE)) / (2.0 * self.quantile_error**2))

    def fit(
        self, observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
    ) -> BNNPosterior:
        """The posterior over f that `observations` leave; the same seed gives the same one.

        Ctrl-C ends a fit whose deterministic network is trained with what it has, and the record says so. `checkpoint`
        names a file that is written every ten seconds and in the end, and from which a fit of the same observations and
        recipe with the same seed goes on, to the same result.
        """
        check_task(observations, seed)
        inputs, notes = choose_inputs(observations, self.inputs, seed)
        sample = sample_of(observations, inputs)
        net = Net(inputs.dimension, self.width, self.activation, self.link)
        settings = asdict(replace(self, device="auto"))
        mark = checksum(["svi-bnn", settings, inputs.content(), observations.fingerprint, int(seed)], {})
        first, second = self._steps(self.pretraining, sample), self._steps(self.steps or self.epochs or 0, sample)
        with (
            arithmetic(self.device, self.precision),
            Trainer("svi-bnn", first + second, progress, checkpoint, mark) as trainer,
        ):
            trained, q = self._trained(net, sample, seed, trainer, first, second)
            draws = _drawn(q.parameters, self.number_of_draws, seed)
        elbo = log_ways(sample) - len(sample) * q.losses
        verdict = _verdict(elbo, q.done, second, len(sample), self.cooling)
        record = Record("elbo", q.ends, elbo, verdict, trainer.seconds, q.done < second, notes)
        mean, spread = q.parameters[0], np.exp(q.parameters[1])
        return BNNPosterior(self, Training(observations), inputs, record, net, trained, mean, spread, draws)

    def _steps(self, count: int, sample: Sample) -> int:
        """So many steps, or epochs, in steps."""
        return count if self.epochs is None else count * ceil(len(sample) / min(self.batch, len(sample)))

    def _trained(
        self, net: Net, sample: Sample, seed: int, trainer: Trainer, first: int, second: int
    ) -> tuple[Any, Trained]:
        """The weights of the deterministic network, and q: its means and the logarithms of its deviations."""
        batches, window = Batches.of(sample, self.batch, seed, self.precision), window_of(sample)
        rest = 0.0 if self.cooling else 1.0
        decay = min(max(net.inputs, 1), 10) if self.weight_decay is None else self.weight_decay
        start = first_weights(net, sample, [seed, 2], self.precision)
        course, fixed = Schedule(first, self.pretraining_rate, rest), np.asarray(decay / len(sample), self.precision)
        alone = trainer.train("net", CountLoss(net, window), start, batches, fixed, course, [seed, 3])
        if trainer.interrupted:
            raise KeyboardInterrupt  # nothing is believed yet
        spread = np.full_like(alone.parameters, self.prior_scale / self.width)
        guide = np.stack([alone.parameters, np.log(_FIRST_SPREAD * spread)])
        prior = alone.parameters, spread, np.asarray(len(sample), self.precision)
        course = Schedule(second, self.rate, rest)
        q = trainer.train("guide", Bound(net, window), guide, batches, prior, course, [seed, 4])
        if not q.done:
            raise KeyboardInterrupt
        if not np.isfinite(q.parameters).all():
            raise InputError(f"the fit diverged; lower rate, which is {self.rate:g}, or pretraining_rate")
        return alone.parameters, q


@dataclass(frozen=True, slots=True)
class Bound:
    """The negative ELBO for each row: KL / N less the mean of ln p(count | g) over a batch."""

    net: Net
    window: int

    def noise(self, batch: int) -> int:
        """One number for each unit and row."""
        return batch * (2 * self.net.width + 1)

    def __call__(self, parameters: Array, rows: Rows, noise: Array, fixed: Any) -> Array:
        """As `Loss` says; `fixed` are the means and deviations of the prior, and how many rows there are in all."""
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
    for own, spread, width in zip(net.layers(mean), net.layers(variance), widths, strict=True):
        values = net.activate(values) if start else values
        deviation = jnp.sqrt((values * values) @ spread[0] + spread[1])
        values = values @ own[0] + own[1] + deviation * noise[:, start : start + width]
        start += width
    return values[:, 0]


def divergence(mean: Array, log_deviation: Array, centre: Array, spread: Array) -> Array:
    """KL[Π N(mean, deviation²) ‖ Π N(centre, spread²)] in nats."""
    ratio = jnp.exp(log_deviation) / spread
    return jnp.sum(0.5 * (ratio**2 + ((mean - centre) / spread) ** 2 - 1.0) - jnp.log(ratio))


def _drawn(parameters: Any, count: int, seed: int) -> Any:
    """Networks drawn from q, a row of weights each."""
    mean, log_deviation = parameters
    noise = np.random.default_rng([seed, 5]).standard_normal((count, len(mean)), dtype=np.float32)
    return (mean + np.exp(log_deviation) * noise).astype(mean.dtype)


def _verdict(elbo: FloatArray, done: int, steps: int, rows: int, cooling: bool) -> str:
    """Whether the ELBO over a quarter of the steps is that of the quarter before, up to noise and to rounding.

    It is the last quarter; but a rate that sinks to 0 makes that one flat, wherever it is, and then the third tells.
    """
    if done < steps:
        return f"interrupted after {done:,} of {steps:,} steps: fit again, with a checkpoint to go on from"
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
