"""The network that two learners share: three layers from unit inputs to a latent g, and how likely counts are for g.

f = Φ(g), or the logistic function of g. A row with k satisfied, u undecided and M runs in all says only that the true
count lies in [k, k + u]:

    L(g) = Σ_{j = k}^{k + u} C(M, j) f^j (1 - f)^(M - j).

The factor C(M, k) does not depend on g and is left out of what is trained; `log_ways` has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr
from scipy import special

from sateen.core.errors import InputError
from sateen.core.extras import install_command
from sateen.core.types import Array as HostArray
from sateen.core.types import FloatArray
from sateen.learning.inputs import Sample
from sateen.learning.networks.compilations import kept_compilations
from sateen.learning.settings import Activation, Device, Link, Precision

Array: TypeAlias = Any  # of JAX, traced or not

_LOG_TWO_PI: Final = float(np.log(2 * np.pi))
_FEW_ROWS: Final = 64  # are not worth a large block
_FIRST_OUTPUT: Final = 0.1  # of its usual size, so that training begins with g near a constant


@dataclass(frozen=True, slots=True)
class Net:
    """The shape of a network with three layers: `inputs` - `width` - `width` - 1.

    Its weights are one vector, layer by layer, each with its matrix, row by row, and then its biases.

    >>> Net(2, 30).size
    1051
    """

    inputs: int
    width: int
    activation: Activation = "silu"
    link: Link = "probit"

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The shape of the matrix of each layer."""
        return (self.inputs, self.width), (self.width, self.width), (self.width, 1)

    @property
    def size(self) -> int:
        """How many weights there are, biases included."""
        return sum((rows + 1) * columns for rows, columns in self.shapes)

    def first_weights(self, rng: np.random.Generator, frequency: float) -> FloatArray:
        """Random weights to begin with; the output is near the g of a frequency."""
        parts = list[FloatArray]()
        for place, (rows, columns) in enumerate(self.shapes):
            scale = sqrt(2.0 / max(rows, 1)) * (_FIRST_OUTPUT if place == 2 else 1.0)
            parts += [scale * rng.standard_normal(rows * columns), np.zeros(columns)]
        parts[-1][:] = special.ndtri(frequency) if self.link == "probit" else special.logit(frequency)
        return np.concatenate(parts)

    def layers(self, weights: Array) -> list[tuple[Array, Array]]:
        """The matrix and the biases of each layer."""
        layers, start = [], 0
        for rows, columns in self.shapes:
            middle, end = start + rows * columns, start + (rows + 1) * columns
            layers.append((weights[start:middle].reshape(rows, columns), weights[middle:end]))
            start = end
        return layers

    def activate(self, values: Array) -> Array:
        """The activation of hidden units."""
        if self.activation == "silu":
            return jax.nn.silu(values)
        return jnp.tanh(values) if self.activation == "tanh" else jax.nn.leaky_relu(values)

    def output(self, weights: Array, x: Array) -> Array:
        """g at each row of `x`."""
        first, second, (matrix, bias) = self.layers(weights)
        hidden = self.activate(x @ first[0] + first[1])
        hidden = self.activate(hidden @ second[0] + second[1])
        return hidden @ matrix[:, 0] + bias[0]

    def probability(self, g: Array) -> Array:
        """f for a latent g."""
        return ndtr(g) if self.link == "probit" else jax.nn.sigmoid(g)


class Rows(NamedTuple):
    """Counts at unit inputs, on the device."""

    x: Array
    satisfied: Array
    undecided: Array
    trials: Array


def rows_of(sample: Sample, precision: Precision) -> Rows:
    """The rows of a sample."""
    columns = (sample.x, sample.satisfied, sample.undecided, sample.trials)
    return Rows(*(jax.device_put(np.asarray(column, precision)) for column in columns))


def window_of(sample: Sample) -> int:
    """How many counts are summed over for a row with undecided runs; 0 if no row has any.

    Further than 8 deviations from its mean a binomial count adds less than rounding.
    """
    if not sample.censored:
        return 0
    widest: float = min(sample.undecided.max() + 1.0, 8.0 * sqrt(sample.trials.max()) + 40.0)
    return ceil(widest)


def log_ways(sample: Sample) -> float:
    """Σ ln C(M, k) over the rows, which the likelihood of counts has besides what depends on g."""
    k, trials = sample.satisfied, sample.trials
    return float(np.sum(special.gammaln(trials + 1) - special.gammaln(k + 1) - special.gammaln(trials - k + 1)))


def log_likelihood(link: Link, g: Array, rows: Rows, window: int) -> Array:
    """ln L(g) / C(M, k) of each row; `window` is that of the whole sample.

    Of a sum that is longer than the window, the part around the binomial mean is taken.
    """
    yes, no = (log_ndtr(g), log_ndtr(-g)) if link == "probit" else (jax.nn.log_sigmoid(g), jax.nn.log_sigmoid(-g))
    if not window:
        return rows.satisfied * yes + (rows.trials - rows.satisfied) * no
    low, high, trials = rows.satisfied, rows.satisfied + rows.undecided, rows.trials
    likeliest = jnp.floor(trials * jnp.exp(jax.lax.stop_gradient(yes)))
    first = jnp.clip(likeliest - window // 2, low, jnp.maximum(low, high - window + 1))
    asked = first[..., None] + jnp.arange(window, dtype=g.dtype)
    count, whole = jnp.minimum(asked, trials[..., None]), trials[..., None]
    ways = gammaln(low + 1)[..., None] + gammaln(trials - low + 1)[..., None] - gammaln(count + 1)
    terms = ways - gammaln(whole - count + 1) + count * yes[..., None] + (whole - count) * no[..., None]
    return jax.nn.logsumexp(terms, axis=-1, where=asked <= high[..., None])


def information(link: Link, g: Array, rows: Rows, window: int) -> Array:
    """How sharply the counts of each row tell g: Fisher's information, or -(ln L)'' where runs are undecided."""
    known = rows.trials * _of_one_run(link, g)
    if not window:
        return known
    one = Rows(*(column[:, None] for column in rows))

    def bend(value: Array, row: Rows) -> Array:
        return jax.grad(jax.grad(lambda at: log_likelihood(link, at[None], row, window)[0]))(value)

    curvature = -jax.vmap(bend)(g, one)
    return jnp.where(rows.undecided > 0, jnp.clip(curvature, 0.0, known), known)


def angle(net: Net, g: Array) -> tuple[Array, Array]:
    """φ = arcsin √f and its derivative by g; on this scale every run tells equally much, whatever f is."""
    f, other = net.probability(g), net.probability(-g)
    return jnp.arctan2(jnp.sqrt(f), jnp.sqrt(other)), 0.5 * jnp.sqrt(_of_one_run(net.link, g))


def jacobian(net: Net, weights: Array, x: Array) -> Array:
    """The derivatives of g at each row of `x` by every weight."""
    return jax.vmap(jax.grad(net.output), (None, 0))(weights, x)


def blocks(x: FloatArray, size: int, precision: Precision) -> Iterator[tuple[int, HostArray]]:
    """The rows of `x` in blocks of one size, so that what is compiled for one serves all; how many of each are real."""
    size = size if len(x) > _FEW_ROWS else _FEW_ROWS
    for start in range(0, len(x), size):
        rows = x[start : start + size]
        whole = np.zeros((size, x.shape[1]), precision)
        whole[: len(rows)] = rows
        yield len(rows), whole


@contextmanager
def arithmetic(device: Device, precision: Precision, *, forgiving: bool = False) -> Iterator[None]:
    """Work goes to the device, compiled, with numbers as wide as asked for; only within.

    `forgiving` takes any device where the one asked for is missing, as when a file came from another machine.
    """
    place = _place(device, forgiving)
    wide, exactly = jax.enable_x64(precision == "float64"), jax.default_matmul_precision("highest")
    with wide, exactly, jax.default_device(place), jax.disable_jit(False), kept_compilations():
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise MemoryError(f"JAX has too little memory: {error}") from None


def _place(device: Device, forgiving: bool) -> jax.Device:
    try:
        return jax.devices(None if device == "auto" else device)[0]
    except (AssertionError, RuntimeError):  # JAX raises either
        if device == "auto":
            remedy = "unset JAX_PLATFORMS, or install JAX for the platform that it names"
            raise InputError(f"JAX finds nothing to compute on; {remedy}") from None
        if not forgiving:
            how = f" with  {install_command('gpu')}" if device == "gpu" else ""
            remedy = f"take device='auto', or install JAX for it{how}"
            raise InputError(f"JAX finds no {device} here; {remedy}") from None
        return _place("auto", forgiving)


def _of_one_run(link: Link, g: Array) -> Array:
    """Fisher's information on g that one run has: f'(g)² / (f (1 - f))."""
    if link == "logit":
        return jnp.exp(jax.nn.log_sigmoid(g) + jax.nn.log_sigmoid(-g))
    return jnp.exp(-g * g - _LOG_TWO_PI - log_ndtr(g) - log_ndtr(-g))
