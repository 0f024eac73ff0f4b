"""The bound that the paper's SVI-GP climbs, and Adam's steps up it, compiled by JAX.

With whitened inducing values w ~ N(v, Q Qᵀ), A = L^-1 K_mx and L Lᵀ = K_mm, the latent values at a batch have the means
c + Aᵀ v and the variances σ² - Σ A² + Σ (Qᵀ A)², column by column.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped, unused-ignore]
from jax.scipy.linalg import solve_triangular

from sateen.core.types import Array as HostArray
from sateen.core.types import Arrays, FloatArray
from sateen.learning.networks.network import Array, Rows, log_likelihood
from sateen.learning.settings import Precision

__all__ = ["Parameters", "Settings", "State", "advance", "elbo", "whitened"]

_LEAST_VARIANCE: Final = 1e-12  # of a latent value, so that its root has a slope


class Parameters(NamedTuple):
    """What Adam moves: c, σ² and l before softplus makes them positive, Z, v, and Q in its lower triangle."""

    offset: Array
    raw_variance: Array
    raw_length: Array
    inducing: Array
    mean: Array
    factor: Array


class Settings(NamedTuple):
    """What a step is compiled for; `window` is that of the likelihood."""

    nodes: int
    jitter: float
    optimise_inducing: bool
    window: int


class State(NamedTuple):
    """What has been learned, and what Adam remembers of the slopes so far."""

    parameters: Parameters
    memory: Array

    @classmethod
    def first(cls, inducing: FloatArray, mean: FloatArray, precision: Precision) -> State:
        """Where GPyTorch begins too: c = 0, softplus of 0 for σ² and for l, and Q = I."""
        values = (0.0, 0.0, 0.0, inducing, mean, np.eye(len(mean)))
        parameters = Parameters(*(jnp.asarray(value, precision) for value in values))
        return cls(parameters, optax.adam(1.0).init(parameters))

    def arrays(self) -> dict[str, HostArray]:
        """What a checkpoint keeps of it."""
        return {f"state{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(self))}

    def with_arrays(self, arrays: Arrays) -> State:
        """The state of the same shape that `arrays` describe."""
        leaves, structure = jax.tree.flatten(self)
        stored = [jnp.asarray(arrays[f"state{place}"], leaf.dtype) for place, leaf in enumerate(leaves)]
        state: State = jax.tree.unflatten(structure, stored)
        return state


@partial(jax.jit, static_argnames=("settings",))
def advance(
    state: State, data: Rows, rows: Array, weights: Array, count: Array, rate: Array, *, settings: Settings
) -> tuple[State, Array]:
    """The state after the first `count` of the batches in `rows`, and the ELBO of each."""
    adam, size = optax.adam(jnp.asarray(rate, weights.dtype)), len(data.x)

    def loss(parameters: Parameters, batch: Rows, weight: Array) -> Array:
        return -elbo(parameters, batch, weight, size, settings) / size

    def step(place: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        (parameters, memory), elbos = carry
        batch = Rows(*(column[rows[place]] for column in data))
        value, slopes = jax.value_and_grad(loss)(parameters, batch, weights[place])
        moves, memory = adam.update(slopes, memory)
        return State(optax.apply_updates(parameters, moves), memory), elbos.at[place].set(-size * value)

    after: tuple[State, Array] = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(len(rows), weights.dtype)))
    return after


def elbo(parameters: Parameters, batch: Rows, weight: Array, size: int, settings: Settings) -> Array:
    """The bound on the evidence of all `size` rows that a batch of them tells, but for the constants of its counts.

    Rows of the weight 0 are none.
    """
    features = _features(parameters, batch.x, settings)
    factor = jnp.tril(parameters.factor)
    mean = parameters.offset + parameters.mean @ features
    spare = jax.nn.softplus(parameters.raw_variance) - jnp.sum(features**2, axis=0)
    variance = jnp.maximum(spare, 0.0) + jnp.sum((factor.T @ features) ** 2, axis=0)
    nodes, shares = np.polynomial.hermite_e.hermegauss(settings.nodes)
    g = mean + jnp.sqrt(jnp.maximum(variance, _LEAST_VARIANCE)) * jnp.asarray(nodes, mean.dtype)[:, None]
    expected = jnp.asarray(shares / shares.sum(), mean.dtype) @ log_likelihood("probit", g, batch, settings.window)
    squares = jnp.sum(factor**2) + jnp.sum(parameters.mean**2) - len(factor)
    divergence = 0.5 * squares - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(factor))))
    return jnp.sum(weight * expected) * (size / jnp.sum(weight)) - divergence


def _features(parameters: Parameters, x: Array, settings: Settings) -> Array:
    """A = L^-1 K_mx, found in double precision, for K_mm is nearly singular."""
    wide = partial(jnp.asarray, dtype=jnp.float64)
    length, variance = (jax.nn.softplus(wide(raw)) for raw in (parameters.raw_length, parameters.raw_variance))
    moved = parameters.inducing if settings.optimise_inducing else jax.lax.stop_gradient(parameters.inducing)
    inducing = wide(moved) / length

    def covariance(other: Array) -> Array:
        squares = jnp.sum(inducing**2, axis=1)[:, None] + jnp.sum(other**2, axis=1) - 2.0 * inducing @ other.T
        return variance * jnp.exp(-0.5 * jnp.maximum(squares, 0.0))

    K_mm = covariance(inducing) + settings.jitter * jnp.eye(len(inducing))
    return whitened(K_mm, covariance(wide(x) / length)).astype(x.dtype)


@jax.custom_vjp
def whitened(K_mm: Array, K_mx: Array) -> Array:
    """L^-1 K_mx, where L Lᵀ = K_mm."""
    return _whitened_forward(K_mm, K_mx)[0]


def _whitened_forward(K_mm: Array, K_mx: Array) -> tuple[Array, tuple[Array, Array]]:
    L = jnp.linalg.cholesky(K_mm, symmetrize_input=False)
    features = solve_triangular(L, K_mx, lower=True)
    return features, (L, features)


def _whitened_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    """Slopes by K_mm, -sym(L^-T Ψ(Ā Aᵀ) L^-1), and by K_mx, L^-T Ā; Ψ is the lower triangle, its diagonal halved.

    The slope of a Cholesky factor asks for Ψ(Lᵀ L̄). Here L̄ = -tril(L^-T Ā Aᵀ), and since Lᵀ is upper triangular that
    is -Ψ(Ā Aᵀ): no two large matrices need be multiplied.
    """
    L, features = kept
    half = jnp.tril(slope @ features.T)
    both = half + half.T - jnp.diag(jnp.diagonal(half))
    left = solve_triangular(L, both, lower=True, trans=1)
    by_K_mm = -0.5 * solve_triangular(L, left.T, lower=True, trans=1)
    return by_K_mm, solve_triangular(L, slope, lower=True, trans=1)


whitened.defvjp(_whitened_forward, _whitened_backward)
