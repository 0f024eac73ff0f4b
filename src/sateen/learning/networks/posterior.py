"""What networks believe: those drawn from a Bayesian neural network, or an ensemble that is linear in its weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from math import floor, log
from typing import ClassVar, Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.threads import processors
from sateen.core.types import Array as HostArray
from sateen.core.types import FloatArray
from sateen.learning.floor import probability_deviation
from sateen.learning.networks.network import Array, Net, angle, arithmetic, blocks, jacobian
from sateen.learning.posterior import LearnedPosterior, Summary
from sateen.learning.scale import scales_differ

_Made = TypeVar("_Made")
_ROWS: Final = 1024  # at once, so that what a layer gives, or derivatives by all weights, stays in the cache


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkPosterior(LearnedPosterior):
    """What posteriors made of networks of one shape share: where they are computed, and how their mean changes."""

    net: Net

    def _check_net(self, networks: int) -> None:
        """Refuse a shape that does not fit the inputs, and no networks at all."""
        if self.net.inputs != self.inputs.dimension or self.net.width < 1 or networks < 1:
            raise InputError(f"{networks} networks {self.net} do not fit {self.inputs.dimension} inputs")

    @property
    @abstractmethod
    def _networks(self) -> HostArray:
        """The weights of the networks whose mean is the mean of f, a row each."""

    def _slope(self, unit: FloatArray) -> FloatArray:
        with self._arithmetic():
            weights = jax.device_put(self._networks)
            slopes = [
                np.asarray(_mean_slope(self.net, weights, x), np.float64)[:count] for count, x in self._parts_of(unit)
            ]
        return np.concatenate(slopes)

    def _parts_of(self, unit: FloatArray) -> list[tuple[int, HostArray]]:
        return list(blocks(unit, _ROWS, self.recipe.precision))

    def _arithmetic(self) -> AbstractContextManager[None]:
        return arithmetic(self.recipe.device, self.recipe.precision, forgiving=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BNNPosterior(NetworkPosterior):
    """f of a network whose weights are independent normals, with a row of means `mean` and of deviations `spread`.

    Several rows are an equal mixture. The rows of `draws` are the weights of networks that were drawn from it at the
    fit: quantiles, mean and deviation of f are theirs. A row of `centre` has the weights of the deterministic network
    at which the prior was centred.
    """

    kind: ClassVar[str] = "svi-bnn"
    centre: HostArray
    mean: HostArray
    spread: HostArray
    draws: HostArray

    def __post_init__(self) -> None:
        self._check_net(len(np.atleast_1d(self.draws)))
        for name in ("centre", "mean", "spread", "draws"):
            values = np.atleast_2d(np.array(getattr(self, name), self.recipe.precision))
            fits = values.shape[1:] == (self.net.size,) and (
                name == "draws" or len(values) == len(np.atleast_2d(self.mean))
            )
            if not fits or not np.isfinite(values).all():
                raise InputError(f"{name} is not a set of weights of {self.net}")
            object.__setattr__(self, name, read_only(values))
        if not (self.spread > 0).all():
            raise InputError("the deviations of the weights are positive, and not all of these are")

    @property
    def _networks(self) -> HostArray:
        return self.draws

    def kl(self) -> float:
        """KL from independent standard normal weights, which have seen nothing, in nats.

        That of a mixture is at most the mean of its parts', because KL is convex, and that bound is given. With
        inputs="auto" the data chose between two scales. Such a choice is itself part of the posterior, and a prior that
        is undecided between the two is ln 2 away.
        """
        mean, spread = self.mean.astype(np.float64), self.spread.astype(np.float64)
        nats = float(np.sum(0.5 * (spread**2 + mean**2 - 1.0) - np.log(spread))) / len(mean)
        chosen = self.recipe.inputs == "auto" and scales_differ(self.training.observations)
        return nats + (log(2.0) if chosen else 0.0)

    @property
    def unseen_by_prior(self) -> Observations:
        """All training observations: the prior of `kl` is fixed beforehand."""
        return self.training.observations

    def _summary(self, unit: FloatArray, level: float) -> Summary:
        count = len(self.draws)
        place = min(max(floor((count + 1) * (1.0 - level) / 2.0), 1), (count + 1) // 2) - 1

        def summed_up(f: HostArray) -> Summary:
            moments = f.mean(axis=0, dtype=np.float64), f.std(axis=0, dtype=np.float64)
            ordered = np.sort(np.ascontiguousarray(f.T), axis=1)  # which is faster than to select the two
            return *moments, ordered[:, place], ordered[:, count - 1 - place]

        parts = self._of_draws(unit, self.draws, summed_up)
        mean, std, lower, upper = (np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True))
        return mean, std, lower, upper

    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((n, self.net.size), dtype=np.float32)
        which = rng.integers(len(self.mean), size=n)
        weights = (self.mean[which] + self.spread[which] * noise).astype(self.mean.dtype)
        return np.concatenate(self._of_draws(unit, weights, np.asarray), axis=1).astype(np.float64)

    def _of_draws(self, unit: FloatArray, weights: HostArray, then: Callable[[HostArray], _Made]) -> list[_Made]:
        """What is made of f of each network, a row each, at some of the points after the other; by all processors."""
        with self._arithmetic():
            networks = jax.device_put(weights)

        def made(block: tuple[int, HostArray]) -> _Made:
            with self._arithmetic():  # of this thread
                return then(np.asarray(_probabilities(self.net, networks, block[1]))[:, : block[0]])

        parts = self._parts_of(unit)
        if len(parts) == 1:
            return [made(parts[0])]
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(made, parts))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaplacePosterior(NetworkPosterior):
    """An equal mixture of networks, on the scale of the angle φ = arcsin √f, where each is normal.

    A row of `weights` is a network, and the matrix F in `factors` next to it gives the covariance F Fᵀ of its weights.
    At a point φ has the mean of its network and the variance |φ'(g) J F|², J being the derivative of g by the weights.
    To the variance of the mixture `misfit` is added everywhere: networks err also where they are sure and agree, and
    about as much as the counts leave them free to, on average. The mean of f is that of the networks.
    """

    kind: ClassVar[str] = "laplace-net"
    weights: HostArray
    factors: HostArray
    misfit: float

    def __post_init__(self) -> None:
        table, columns = (len(np.atleast_1d(self.weights)), self.net.size), np.shape(self.factors)[-1:]
        self._check_net(table[0])
        if not 0 <= self.misfit <= np.pi**2:
            raise InputError(f"misfit is a variance of angles, not {self.misfit}")
        shapes: dict[str, tuple[int, ...]] = {"weights": table, "factors": (*table, *columns)}
        for name, shape in shapes.items():
            values = np.array(getattr(self, name), self.recipe.precision)
            if values.shape != shape or not np.isfinite(values).all():
                raise InputError(f"{name} has the shape {values.shape}, and {shape} finite numbers are needed")
            object.__setattr__(self, name, read_only(values))

    @property
    def _networks(self) -> HostArray:
        return self.weights

    def kl(self) -> float:
        """Refused: networks that are linear around trained weights have no prior that has not seen the data."""
        raise InputError(
            f"{self.kind} is linear around networks fitted to the data, so it has no prior for kl() that has not seen "
            "the data; use bound_error(method='betting'), or learn with SVIBNN, or a Gaussian process with split=0.3"
        )

    def _summary(self, unit: FloatArray, level: float) -> Summary:
        with self._arithmetic():
            weights, factors = jax.device_put(self.weights), jax.device_put(self.factors)
            moments = [
                [np.asarray(values, np.float64)[:, :count] for values in _moments(self.net, weights, factors, x)]
                for count, x in self._parts_of(unit)
            ]
        f, phi, variance = (np.concatenate(values, axis=1) for values in zip(*moments, strict=True))
        between = phi.var(axis=0, ddof=1) if len(phi) > 1 else 0.0
        deviation = np.sqrt(variance.mean(axis=0) + between + self.misfit)
        mean = f.mean(axis=0)
        middle, reach = np.arcsin(np.sqrt(mean)), float(ndtri((1.0 + level) / 2.0)) * deviation
        lower, upper = (np.sin(np.clip(middle + sign * reach, 0.0, np.pi / 2.0)) ** 2 for sign in (-1.0, 1.0))
        return mean, probability_deviation(middle, deviation), lower, upper

    def _draws(self, unit: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Each draw is a network of the mixture, with weights drawn for it, all of it shifted alike by the misfit."""
        choice = rng.integers(len(self.weights), size=n)
        noise = rng.standard_normal((n, self.factors.shape[-1]))
        phi = np.sqrt(self.misfit) * rng.standard_normal((n, 1)) + np.zeros((n, len(unit)))
        with self._arithmetic():
            for place, pair in enumerate(zip(self.weights, self.factors, strict=True)):
                weights, matrix = map(jax.device_put, pair)
                mine, start = np.flatnonzero(choice == place), 0
                for count, x in self._parts_of(unit):
                    moves = _moves(self.net, weights, matrix, x)
                    middle, moved = (np.asarray(values, np.float64)[:count] for values in moves)
                    phi[mine, start : start + count] += middle + noise[mine] @ moved.T
                    start += count
        return np.asarray(np.sin(np.clip(phi, 0.0, np.pi / 2.0)) ** 2)


@partial(jax.jit, static_argnames=("net",))
def _probabilities(net: Net, networks: Array, x: Array) -> Array:
    return jax.lax.map(lambda weights: net.probability(net.output(weights, x)), networks)


@partial(jax.jit, static_argnames=("net",))
def _mean_slope(net: Net, networks: Array, x: Array) -> Array:
    """The mean over networks of the derivatives of f by each input."""

    def of_one(total: Array, weights: Array) -> tuple[Array, None]:
        slopes = jax.grad(lambda at: jnp.sum(net.probability(net.output(weights, at))))(x)
        return total + slopes, None

    return jax.lax.scan(of_one, jnp.zeros_like(x), networks)[0] / len(networks)


@partial(jax.jit, static_argnames=("net",))
def _moments(net: Net, weights: Array, factors: Array, x: Array) -> tuple[Array, Array, Array]:
    """f, φ and the variance of φ for each network, a row each, at the rows of `x`."""

    def of_one(pair: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        middle, moved = _moves(net, *pair, x)
        return net.probability(net.output(pair[0], x)), middle, jnp.sum(moved**2, axis=1)

    moments: tuple[Array, Array, Array] = jax.lax.map(of_one, (weights, factors))
    return moments


@partial(jax.jit, static_argnames=("net",))
def _moves(net: Net, weights: Array, factor: Array, x: Array) -> tuple[Array, Array]:
    """φ at the rows of `x`, and what each column of the factor moves it by."""
    middle, slope = angle(net, net.output(weights, x))
    return middle, slope[:, None] * (jacobian(net, weights, x) @ factor)
