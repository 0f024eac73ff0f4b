"""What a Bayesian neural network believes: networks drawn from it when it was fitted, and their quantiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from math import floor, log
from typing import Any, ClassVar, Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.record import Record
from sateen.core.threads import processors
from sateen.core.types import Array as HostArray
from sateen.core.types import Arrays, FloatArray
from sateen.learning.inputs import Inputs
from sateen.learning.networks.network import Array, Net, arithmetic, blocks
from sateen.learning.posterior import LearnedPosterior, Parts, Summary
from sateen.learning.scale import scales_differ

__all__ = ["BNNPosterior"]

_Made = TypeVar("_Made")
_ROWS: Final = 1024  # at once, so that what a layer gives stays in the cache


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BNNPosterior(LearnedPosterior):
    """f of a network whose weights are independent normals with the means `mean` and the deviations `spread`.

    The rows of `draws` are the weights of networks that were drawn from it at the fit: quantiles, mean and deviation
    of f are theirs. `centre` are the weights of the deterministic network at which the prior was centred.
    """

    kind: ClassVar[str] = "svi-bnn"
    net: Net
    centre: HostArray
    mean: HostArray
    spread: HostArray
    draws: HostArray

    def __post_init__(self) -> None:
        for name in ("centre", "mean", "spread", "draws"):
            values = np.array(getattr(self, name), self.recipe.precision)
            fits = values.shape[-1] == self.net.size and values.ndim == 1 + (name == "draws")
            if not fits or not np.isfinite(values).all():
                raise InputError(f"{name} is no set of weights of {self.net}")
            object.__setattr__(self, name, read_only(values))

    def kl(self) -> float:
        """KL from independent standard normal weights, which have seen nothing, in nats.

        With inputs="auto" the data chose between two scales. Such a choice is itself part of the posterior, and a prior
        that is undecided between the two is ln 2 away.
        """
        mean, spread = self.mean.astype(np.float64), self.spread.astype(np.float64)
        nats = float(np.sum(0.5 * (spread**2 + mean**2 - 1.0) - np.log(spread)))
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
        weights = (self.mean + self.spread * noise).astype(self.mean.dtype)
        return np.concatenate(self._of_draws(unit, weights, np.asarray), axis=1).astype(np.float64)

    def _slope(self, unit: FloatArray) -> FloatArray:
        with self._arithmetic():
            weights = jax.device_put(self.draws)
            parts = [
                np.asarray(_mean_slope(self.net, weights, x), np.float64)[:count]
                for count, x in blocks(unit, _ROWS, self.recipe.precision)
            ]
            return np.concatenate(parts)

    def parts(self) -> Parts:
        shape = {"width": self.net.width, "activation": self.net.activation, "link": self.net.link}
        return shape, {"centre": self.centre, "mean": self.mean, "spread": self.spread, "draws": self.draws}

    @classmethod
    def from_parts(
        cls,
        recipe: Any,
        training: Training,
        inputs: Inputs,
        record: Record,
        content: Mapping[str, Any],
        arrays: Arrays,
    ) -> BNNPosterior:
        net = Net(inputs.dimension, content["width"], content["activation"], content["link"])
        weights = [arrays[name] for name in ("centre", "mean", "spread", "draws")]
        return cls(recipe, training, inputs, record, net, *weights)

    def _of_draws(self, unit: FloatArray, weights: HostArray, then: Callable[[HostArray], _Made]) -> list[_Made]:
        """What is made of f of each network, a row each, at some of the points after the other; by all processors."""
        with self._arithmetic():
            networks = jax.device_put(weights)

        def made(block: tuple[int, HostArray]) -> _Made:
            with self._arithmetic():  # of this thread
                return then(np.asarray(_probabilities(self.net, networks, block[1]))[:, : block[0]])

        parts = list(blocks(unit, _ROWS, self.recipe.precision))
        if len(parts) == 1:
            return [made(parts[0])]
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(made, parts))

    def _arithmetic(self) -> AbstractContextManager[None]:
        return arithmetic(self.recipe.device, self.recipe.precision, forgiving=True)


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
