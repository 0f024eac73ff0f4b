"""The learners that are neural networks: their settings and checks. Light to import; `fit` loads JAX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log
from typing import ClassVar, Final

from sateen.core.errors import InputError
from sateen.learning.settings import Activation, Device, InputScale, Link, Precision, Recipe, check_settings

_CONFIDENCE: Final = 0.99  # that no quantile of the draws is further off than `quantile_error`


@dataclass(frozen=True, slots=True, kw_only=True)
class SVIBNN(Recipe):
    """A Bayesian neural network d-`width`-`width`-1 with independent normal weights.

    It is trained for `steps` mini-batches of `batch` points (None: 100, or 512 for 300,000 points or more), or for
    `epochs` over all points if given, at the learning rate `rate`. Before that, `pretraining` steps or epochs train the
    deterministic network at which the prior is centred, at `pretraining_rate` and with the prior precision
    `weight_decay` (None: the number of inputs, at most 10). With `cooling`, both rates fall to 0. The prior has the
    deviation `prior_scale` / `width`; with `layer_prior`, a layer has `prior_scale` over its own width instead, so that
    the output layer has `prior_scale`. Without `scale_likelihood`, the likelihood of a batch is not scaled to all
    points: the prior then counts once for every batch of an epoch. `guides` such networks are trained, each from its
    own random weights, and the posterior is their equal mixture (None: 1, or 4 for 300,000 points or more). Posterior
    quantiles are those of `draws` networks (None: as many as needed so that with 99 % probability the level of no
    quantile is off by more than `quantile_error`, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart).
    `precision` is that of the floating-point numbers. With `floor`, no interval is much narrower than the runs of the
    whole training support.

    >>> SVIBNN().number_of_draws, SVIBNN.faithful().number_of_draws
    (736, 1000)
    >>> SVIBNN(activation="relu")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: activation is 'silu', 'leaky-relu' or 'tanh', not 'relu'
    """

    inference: ClassVar[str] = "sateen.learning.networks.svi_bnn:fit"
    posterior_class: ClassVar[str] = "sateen.learning.networks.posterior:BNNPosterior"
    width: int = 20
    activation: Activation = "silu"
    link: Link = "probit"
    steps: int | None = 10_000
    epochs: int | None = None
    pretraining: int = 8000
    batch: int | None = None
    guides: int | None = None
    rate: float = 0.005
    pretraining_rate: float = 0.015
    weight_decay: float | None = None
    cooling: bool = True
    prior_scale: float = 1.0
    layer_prior: bool = False
    scale_likelihood: bool = True
    draws: int | None = None
    quantile_error: float = 0.06
    inputs: InputScale = "auto"
    device: Device = "auto"
    precision: Precision = "float32"
    floor: bool = True

    def __post_init__(self) -> None:
        check_settings(self, zero=("weight_decay",))
        if (self.steps is None) == (self.epochs is None):
            raise InputError("give steps or epochs, and set the other to None: a fit is as long as one of them says")

    @classmethod
    def faithful(cls) -> SVIBNN:
        """The settings in the paper's text: leaky ReLU, sigmoid, linear inputs, 2000 epochs, constant rates.

        The prior deviation of each layer is one over its own width, so it is 1 at the output.
        """
        return cls(
            width=30,
            activation="leaky-relu",
            link="logit",
            steps=None,
            epochs=2000,
            batch=100,
            guides=1,
            pretraining=500,
            rate=0.001,
            pretraining_rate=0.01,
            weight_decay=0.0,
            cooling=False,
            layer_prior=True,
            draws=1000,
            inputs="linear",
            floor=False,
        )

    @classmethod
    def as_run(cls) -> SVIBNN:
        """The settings in the scripts of the paper's authors: 5000 epochs at ten times the text's rate, and a
        likelihood that is not scaled to all points, which is why the published intervals are wide.
        """
        return replace(cls.faithful(), epochs=5000, rate=0.01, scale_likelihood=False)

    @property
    def number_of_draws(self) -> int:
        """How many networks are drawn from the posterior when it is fitted."""
        if self.draws is not None:
            return self.draws
        return ceil(log(2.0 / (1.0 - _CONFIDENCE)) / (2.0 * self.quantile_error**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNet(Recipe):
    """An ensemble of `nets` networks d-`width`-`width`-1, each with the linearised Laplace approximation around it.

    Each is trained for `steps` mini-batches of `batch` points (None: 256, or 512 for 300,000 points or more), at a
    learning rate that falls from `rate` to 0. `weight_decay` is the precision of the normal prior of every weight
    (None: the number of inputs, at least 1 and at most 10). The curvature is summed over `curvature_rows` randomly
    drawn rows, and scaled to all. For each network, `draws` draws from the posterior of the weights are kept, and their
    covariance represents it. `precision` is that of the floating-point numbers. With `floor`, no interval is much
    narrower than the runs of the whole training support.

    >>> LaplaceNet(nets=0)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: nets is a whole number from 1 up, not 0
    """

    inference: ClassVar[str] = "sateen.learning.networks.laplace_net:fit"
    posterior_class: ClassVar[str] = "sateen.learning.networks.posterior:LaplacePosterior"
    nets: int = 4
    width: int = 32
    activation: Activation = "silu"
    link: Link = "probit"
    steps: int = 15_000
    batch: int | None = None
    rate: float = 0.015
    weight_decay: float | None = None
    curvature_rows: int = 5000
    draws: int = 128
    inputs: InputScale = "auto"
    device: Device = "auto"
    precision: Precision = "float32"
    floor: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
