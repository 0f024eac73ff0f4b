"""The heavy work of a sparse Gaussian process by JAX, on a GPU where there is one: sums over rows, and predictions.

It is the mathematics of `streaming` and of `posterior`, in double precision throughout, and agrees with them up to
rounding. Blocks are filled up with rows of no runs, which say nothing, so that what is compiled for one serves many.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln

from sateen.core.types import FloatArray
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import Basis, Whitened
from sateen.learning.gp.streaming import Add, Stream, Sums
from sateen.learning.inputs import Sample
from sateen.learning.likelihood import NODES, WIDE, Counts, normal_nodes
from sateen.learning.networks.network import Array, Rows, arithmetic, blocks, log_likelihood, rows_of, window_of
from sateen.learning.settings import Device, KernelName, Link

_ROWS: Final = 8192  # predicted at once


class _Covariance(NamedTuple):
    """The numbers of a kernel."""

    length_scales: Array
    variance: Array
    constant: Array

    @classmethod
    def of(cls, kernel: Kernel) -> _Covariance:
        return cls(np.array(kernel.length_scales), np.float64(kernel.variance), np.float64(kernel.constant))

    def between(self, name: KernelName, x: Array, z: Array) -> Array:
        """As `Kernel.between`."""
        left, right = x / self.length_scales, z / self.length_scales
        squares = jnp.sum(left**2, axis=1)[:, None] + jnp.sum(right**2, axis=1) - 2.0 * left @ right.T
        squares = jnp.maximum(squares, 0.0)
        if name == "rbf":
            return self.constant + self.variance * jnp.exp(-0.5 * squares)
        root = jnp.sqrt(5.0 * squares)
        return self.constant + self.variance * (1.0 + root + (5.0 / 3.0) * squares) * jnp.exp(-root)


class _Belief(NamedTuple):
    """A basis, and a distribution of its w."""

    covariance: _Covariance
    points: Array
    factor: Array
    mean: Array
    root: Array


def stream_of(basis: Basis, sample: Sample, link: Link) -> Stream:
    """The rows of a sample, to be read by JAX; within the `arithmetic` of a device."""
    (place,), adder = jnp.zeros(()).devices(), partial(_adder, window_of(sample))
    return Stream(basis, sample.x, Counts.of(sample, link), False, adder, f" by JAX on {place.device_kind}")


def _adder(window: int, basis: Basis, q: Whitened) -> Add:
    kernel = basis.kernel
    belief = jax.device_put(_Belief(_Covariance.of(kernel), basis.points, basis.factor, q.mean, q.root))

    def add(sums: Sums, x: FloatArray, counts: Counts) -> Sums:
        more = (1 << (len(x) - 1).bit_length()) - len(x)
        columns = (x, counts.satisfied, counts.undecided, counts.trials)
        filled = Sample(*(np.concatenate([column, np.zeros((more, *column.shape[1:]))]) for column in columns))
        here = window if filled.censored else 0
        added: Sums = _added(sums, rows_of(filled, "float64"), belief, name=kernel.name, link=counts.link, window=here)
        return added

    return add


@partial(jax.jit, static_argnames=("name", "link", "window"))
def _added(sums: Sums, rows: Rows, belief: _Belief, *, name: KernelName, link: Link, window: int) -> Sums:
    """The sums with those of a block; features are columns here."""
    covariance = belief.covariance
    features = solve_triangular(belief.factor, covariance.between(name, belief.points, rows.x), lower=True)
    spare = covariance.constant + covariance.variance - jnp.sum(features**2, axis=0)
    known = jnp.sum(solve_triangular(belief.root, features, lower=True) ** 2, axis=0)
    mean = belief.mean @ features
    value, slope, bend = _expected(link, mean, known + jnp.maximum(spare, 0.0), rows, window)
    asked = jnp.maximum(-bend, 0.0)
    weighted = features * jnp.sqrt(asked)
    likelihood, shift, precision = sums
    return likelihood + jnp.sum(value), shift + features @ (slope + asked * mean), precision + weighted @ weighted.T


def _expected(link: Link, mean: Array, variance: Array, rows: Rows, window: int) -> tuple[Array, Array, Array]:
    """As `Counts.expected`: the means of the derivatives are the derivatives of the mean, by the mean of g."""
    kinds = NODES if window else NODES[:2]
    padded = [np.pad(normal_nodes(count), [(0, 0), (0, kinds[-1] - count)]) for count in kinds]
    nodes = jnp.asarray(np.transpose(padded))  # of each kind, and their weights
    kind = jnp.where(rows.undecided > 0, 2, jnp.where(variance > WIDE, 1, 0))
    deviation, one = jnp.sqrt(variance), jnp.ones_like(mean)

    def expected(centre: Array) -> Array:
        def part(node: Array) -> Array:
            place, weight = node[:, kind]
            return weight * log_likelihood(link, centre + deviation * place, rows, window)

        # Sums over counts that undecided runs leave open are long, so the nodes come one by one.
        return jnp.sum(jax.lax.map(part, nodes, batch_size=1 if window else len(nodes)), axis=0)

    def slope_of(centre: Array) -> tuple[Array, Array]:
        return jax.jvp(expected, (centre,), (one,))

    (value, slope), (_, bend) = jax.jvp(slope_of, (mean,), (one,))
    k, trials = rows.satisfied, rows.trials
    ways = gammaln(trials + 1.0) - gammaln(k + 1.0) - gammaln(trials - k + 1.0)
    return ways + value, slope, bend


def forms_at(
    kernel: Kernel,
    points: FloatArray,
    weights: FloatArray,
    forms: FloatArray,
    signs: FloatArray,
    unit: FloatArray,
    device: Device,
) -> tuple[FloatArray, FloatArray]:
    """The linear form `weights` of k(Z, x) at each row x of `unit`, and the signed sum of squares of the `forms`.

    On the device, or on any where it is missing, as when a file came from another machine.
    """
    linear, squared = np.empty(len(unit)), np.empty(len(unit))
    with arithmetic(device, "float64", forgiving=True):
        covariance, start = _Covariance.of(kernel), 0
        held = jax.device_put((covariance, points, weights, forms, signs))
        for count, block in blocks(unit, _ROWS, "float64"):
            found = _forms(*held, block, name=kernel.name)
            for column, values in zip((linear, squared), found, strict=True):
                column[start : start + count] = values[:count]
            start += count
    return linear, squared


@partial(jax.jit, static_argnames=("name",))
def _forms(
    covariance: _Covariance, points: Array, weights: Array, forms: Array, signs: Array, x: Array, *, name: KernelName
) -> tuple[Array, Array]:
    table = covariance.between(name, x, points)
    return table @ weights, (table @ forms) ** 2 @ signs
