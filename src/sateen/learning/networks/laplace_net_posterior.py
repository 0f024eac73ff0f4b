"""What an ensemble of networks believes, each of which is linear in its weights around those that were trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.record import Record
from sateen.core.types import Array as HostArray
from sateen.core.types import Arrays, FloatArray
from sateen.learning.inputs import Inputs
from sateen.learning.networks.network import Array, Net, angle, arithmetic, blocks, jacobian
from sateen.learning.posterior import LearnedPosterior, Parts, Summary

__all__ = ["LaplacePosterior"]

_ROWS: Final = 1024  # whose derivatives by all weights are held at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaplacePosterior(LearnedPosterior):
    """An equal mixture of networks, on the scale of the angle φ = arcsin √f, where each is normal.

    A row of `weights` is a network, and the matrix F in `factors` beside it tells the covariance F Fᵀ of its weights.
    At a point φ has the mean of its network and the variance |φ'(g) J F|², J being the derivative of g by the weights.
    To the variance of the mixture `misfit` is added everywhere: networks err also where they are sure and agree, and
    about as much as the counts leave them free to, on average. The mean of f is that of the networks.
    """

    kind: ClassVar[str] = "laplace-net"
    net: Net
    weights: HostArray
    factors: HostArray
    misfit: float

    def __post_init__(self) -> None:
        table = (len(self.weights), self.net.size)
        shapes: dict[str, tuple[int, ...]] = {"weights": table, "factors": (*table, np.shape(self.factors)[-1])}
        for name, shape in shapes.items():
            values = np.array(getattr(self, name), self.recipe.precision)
            if values.shape != shape or not np.isfinite(values).all():
                raise InputError(f"{name} is of the shape {values.shape}, and {shape} finite numbers are wanted")
            object.__setattr__(self, name, read_only(values))

    def kl(self) -> float:
        """Refused: networks that are linear around trained weights have no prior that has not seen the data."""
        raise InputError(
            f"{self.kind} believes in networks made linear where the data led them, so no prior for kl() has not seen "
            "the data; use bound_error(method='betting'), or learn with SVIBNN, or a Gaussian process with split=0.3"
        )

    @property
    def unseen_by_prior(self) -> Observations:
        """No training observation."""
        return self.training.observations[:0]

    def _summary(self, unit: FloatArray, level: float) -> Summary:
        with self._arithmetic():
            weights, factors = jax.device_put(self.weights), jax.device_put(self.factors)
            found = [
                [np.asarray(values, np.float64)[:, :count] for values in _moments(self.net, weights, factors, x)]
                for count, x in self._blocks_of(unit)
            ]
        f, phi, variance = (np.concatenate(values, axis=1) for values in zip(*found, strict=True))
        between = phi.var(axis=0, ddof=1) if len(phi) > 1 else 0.0
        deviation = np.sqrt(variance.mean(axis=0) + between + self.misfit)
        mean = f.mean(axis=0)
        middle, reach = np.arcsin(np.sqrt(mean)), float(ndtri((1.0 + level) / 2.0)) * deviation
        lower, upper = (np.sin(np.clip(middle + sign * reach, 0.0, np.pi / 2.0)) ** 2 for sign in (-1.0, 1.0))
        return mean, _deviation(middle, deviation), lower, upper

    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Each draw is a network of the mixture, with weights drawn for it, all of it shifted alike by the misfit."""
        choice = rng.integers(len(self.weights), size=n)
        noise = rng.standard_normal((n, self.factors.shape[-1]))
        phi = np.sqrt(self.misfit) * rng.standard_normal((n, 1)) + np.zeros((n, len(unit)))
        with self._arithmetic():
            for place, (own, factor) in enumerate(zip(self.weights, self.factors, strict=True)):
                weights, matrix = jax.device_put(own), jax.device_put(factor)
                mine, start = np.flatnonzero(choice == place), 0
                for count, x in self._blocks_of(unit):
                    found = _moves(self.net, weights, matrix, x)
                    middle, moved = (np.asarray(values, np.float64)[:count] for values in found)
                    phi[mine, start : start + count] += middle + noise[mine] @ moved.T
                    start += count
        return np.asarray(np.sin(np.clip(phi, 0.0, np.pi / 2.0)) ** 2)

    def _slope(self, unit: FloatArray) -> FloatArray:
        with self._arithmetic():
            weights = jax.device_put(self.weights)
            found = [
                np.asarray(_mean_slope(self.net, weights, x), np.float64)[:count] for count, x in self._blocks_of(unit)
            ]
        return np.concatenate(found)

    def parts(self) -> Parts:
        shape = {"width": self.net.width, "activation": self.net.activation, "link": self.net.link}
        return {**shape, "misfit": self.misfit}, {"weights": self.weights, "factors": self.factors}

    @classmethod
    def from_parts(
        cls,
        recipe: Any,
        training: Training,
        inputs: Inputs,
        record: Record,
        content: Mapping[str, Any],
        arrays: Arrays,
    ) -> LaplacePosterior:
        net = Net(inputs.dimension, content["width"], content["activation"], content["link"])
        own = arrays["weights"], arrays["factors"], float(content["misfit"])
        return cls(recipe, training, inputs, record, net, *own)

    def _blocks_of(self, unit: FloatArray) -> Iterator[tuple[int, HostArray]]:
        return blocks(unit, _ROWS, self.recipe.precision)

    def _arithmetic(self) -> AbstractContextManager[None]:
        return arithmetic(self.recipe.device, self.recipe.precision, forgiving=True)


@partial(jax.jit, static_argnames=("net",))
def _moments(net: Net, weights: Array, factors: Array, x: Array) -> tuple[Array, Array, Array]:
    """f, φ and the variance of φ for each network, a row each, at the rows of `x`."""

    def of_one(own: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        middle, moved = _moves(net, *own, x)
        return net.probability(net.output(own[0], x)), middle, jnp.sum(moved**2, axis=1)

    found: tuple[Array, Array, Array] = jax.lax.map(of_one, (weights, factors))
    return found


@partial(jax.jit, static_argnames=("net",))
def _moves(net: Net, weights: Array, factor: Array, x: Array) -> tuple[Array, Array]:
    """φ at the rows of `x`, and what each column of the factor moves it by."""
    middle, slope = angle(net, net.output(weights, x))
    return middle, slope[:, None] * (jacobian(net, weights, x) @ factor)


@partial(jax.jit, static_argnames=("net",))
def _mean_slope(net: Net, weights: Array, x: Array) -> Array:
    """The mean over networks of the derivatives of f by each input."""

    def of_one(own: Array) -> Array:
        return jax.grad(lambda at: jnp.sum(net.probability(net.output(own, at))))(x)

    return jnp.mean(jax.lax.map(of_one, weights), axis=0)


def _deviation(middle: FloatArray, deviation: FloatArray) -> FloatArray:
    """The standard deviation of sin² φ for a normal φ."""
    once, twice = np.exp(-2.0 * deviation**2), np.exp(-8.0 * deviation**2)
    of_square = 0.5 * (1.0 + np.cos(4.0 * middle) * twice) - (np.cos(2.0 * middle) * once) ** 2
    return np.asarray(0.5 * np.sqrt(np.maximum(of_square, 0.0)))
