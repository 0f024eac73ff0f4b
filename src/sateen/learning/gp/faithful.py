"""The paper's SVI-GP as its text describes it: a sparse Gaussian process whose every number is learned by Adam.

A latent g ~ GP(c, σ² exp(-|x - x'|² / 2l²)) with f = Φ(g) has values at m inducing points Z. With L Lᵀ = K_mm, the
belief about them is whitened: g(Z) = c + L w, where w ~ N(v, Q Qᵀ). Adam climbs the bound on the evidence

    ELBO = N/B Σ_batch E[ln p(count | g)] - KL[N(v, Q Qᵀ) ‖ N(0, I)]

by mini-batches, over c, σ², l, Z, v and Q together. With A = L^-1 K_mx, the latent values at a batch have the means
c + Aᵀ v and the variances σ² - Σ A² + Σ (Qᵀ A)², column by column. It is there to be compared with; `SVIGP` is the one
to use.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, isfinite, sqrt
from typing import Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax  # type: ignore[import-untyped, unused-ignore]
from jax.scipy.linalg import solve_triangular

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import Progress, working
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.core.types import Array as HostArray
from sateen.core.types import File, FloatArray
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.recipes import FaithfulSVIGP
from sateen.learning.gp.sparse import Basis
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.networks.network import Array, Rows, arithmetic, log_likelihood, log_ways, rows_of, window_of
from sateen.learning.networks.training import Trainer, task_of

_Learned: TypeAlias = "tuple[Parameters, Array]"  # and what Adam remembers of the slopes so far
_KIND: Final = "svi-gp-faithful"
_CAPACITY: Final = 256  # steps that one call can do; how many it does changes the pace, not the result
_FORECAST_SECONDS: Final = 0.5  # of work that tell how long a fit takes
_FIRST_NOISE: Final = 1e-3  # deviation of the first v, as in GPyTorch
_SETTLED: Final = 1.0  # nats, from one tenth of the epochs to the next
_ROWS_AT_ONCE: Final = 8192
_LEAST_VARIANCE: Final = 1e-12  # of a latent value, so that its root has a slope


@on_one_thread
def fit(
    recipe: FaithfulSVIGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `FaithfulSVIGP.fit`."""
    # The checkpoint of a fit with fewer epochs is that of this one.
    inputs, notes, sample, kept = task_of(_KIND, replace(recipe, epochs=1), observations, seed, checkpoint)
    with arithmetic(recipe.device, "float64"):
        course = _Course.of(recipe, sample, seed)
        trainer = Trainer(course.steps, progress, kept)
        with working(progress, _KIND, course.steps, "steps"):
            end, done = trainer.run("fit", course.start(), course.steps, course.advanced, _CAPACITY)
        if not done:
            raise KeyboardInterrupt
        learned = Parameters(*(np.asarray(value, np.float64) for value in end.parameters))
    basis, offset, mean, spread = _basis(recipe, learned), float(learned.offset), learned.mean, np.tril(learned.factor)
    steps, values = course.epochs(end, done)
    values[-1] = _elbo_of_all(basis, sample, offset, mean, spread)
    interrupted = done < course.steps
    verdict = _verdict(end.values, recipe.epochs, interrupted)
    return GPPosterior(
        recipe,
        Training(observations),
        inputs,
        Record("elbo", steps, values, verdict, trainer.seconds, interrupted, notes),
        kind=_KIND,
        kernel=basis.kernel,
        offset=offset,
        link="probit",
        points=basis.points,
        factor=np.ascontiguousarray(basis.factor),  # as a file gives it back, so that not a bit differs
        mean=mean,
        spread=spread,
        unseen=np.zeros(len(observations), np.bool_),
    )


@on_one_thread
def forecast(recipe: FaithfulSVIGP, observations: Observations) -> float:
    """As `FaithfulSVIGP.forecast`."""
    sample = sample_of(observations, inputs_of(observations, "linear"))
    with arithmetic(recipe.device, "float64"):
        course = _Course.of(recipe, sample, 0)
        state, done, count, seconds = course.start(), 0, 1, list[float]()
        while True:
            began = time.perf_counter()
            state, done = course.advanced(state, done, count), done + count
            seconds.append(time.perf_counter() - began)  # the first of which are for compiling
            if count == _CAPACITY or (done > 1 and seconds[-1] > _FORECAST_SECONDS):
                return seconds[0] + course.steps * seconds[-1] / count
            count *= 4


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
    """What has been learned, what Adam remembers of the slopes so far, and the ELBO as the batches estimate it.

    `values` are its means over the epochs that are finished, `open_sum` its sum in the one that is not.
    """

    parameters: Parameters
    memory: Array
    values: FloatArray
    open_sum: np.float64


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """What lies before a fit: the rows, the order in which they come, the first inducing points, and all steps."""

    recipe: FaithfulSVIGP
    rows: Rows
    first: FloatArray
    seed: int
    settings: Settings
    ways: float

    @classmethod
    def of(cls, recipe: FaithfulSVIGP, sample: Sample, seed: int) -> _Course:
        first = _distinct(sample.x)
        moved = recipe.optimise_inducing and not (recipe.fix_training_points and len(first) <= recipe.inducing)
        if len(first) > recipe.inducing:
            chosen = stream(seed, "inducing").choice(len(first), recipe.inducing, replace=False)
            first = first[np.sort(chosen)]
        settings = Settings(recipe.nodes, recipe.jitter, moved, window_of(sample))
        return cls(recipe, rows_of(sample, recipe.precision), first, seed, settings, log_ways(sample))

    @property
    def size(self) -> int:
        return len(self.rows.x)

    @property
    def per_epoch(self) -> int:
        """Steps of an epoch; the last of them may have a smaller batch."""
        return ceil(self.size / self.recipe.batch)

    @property
    def steps(self) -> int:
        return self.recipe.epochs * self.per_epoch

    def start(self) -> State:
        """Where GPyTorch begins too: c = 0, softplus of 0 for σ² and for l, and Q = I."""
        noise = stream(self.seed, "noise").normal(0.0, _FIRST_NOISE, len(self.first))
        values = (0.0, 0.0, 0.0, self.first, noise, np.eye(len(noise)))
        parameters = Parameters(*(jnp.asarray(value, self.recipe.precision) for value in values))
        return State(parameters, optax.adam(1.0).init(parameters), np.empty(0), np.float64(0.0))

    def advanced(self, state: State, done: int, count: int) -> State:
        """The state after `count` more steps than were done."""
        batches, rate = self._batches(done, count), self.recipe.learning_rate
        learned, elbos = advance(state[:2], self.rows, *batches, count, rate, settings=self.settings)
        values, open_sum = list(state.values), float(state.open_sum)
        for step, value in enumerate(np.asarray(elbos)[:count].tolist(), done + 1):
            if not isfinite(value):
                raise _diverged(self.recipe)
            open_sum += value + self.ways
            if step % self.per_epoch == 0:
                values.append(open_sum / self.per_epoch)
                open_sum = 0.0
        return State(learned[0], learned[1], np.array(values), np.float64(open_sum))

    def epochs(self, state: State, done: int) -> tuple[FloatArray, FloatArray]:
        """After how many steps each epoch ended, also one that was not finished, and its mean ELBO."""
        ends = self.per_epoch * np.arange(1.0, len(state.values) + 1)
        if begun := done % self.per_epoch:
            return np.append(ends, done), np.append(state.values, state.open_sum / begun)
        return ends, state.values.copy()

    def _batches(self, step: int, count: int) -> tuple[npt.NDArray[np.int32], HostArray]:
        """The rows of this many steps, each epoch in a random order of its own; what is not a row has the weight 0."""
        batch = min(self.recipe.batch, self.size)
        rows = np.zeros((_CAPACITY, batch), np.int32)
        weights = np.zeros((_CAPACITY, batch), self.recipe.precision)
        order, known = np.zeros(0, np.int64), -1
        for place in range(count):
            epoch, turn = divmod(step + place, self.per_epoch)
            if epoch != known:
                order, known = stream(self.seed, "order", epoch).permutation(self.size), epoch
            turned = order[turn * batch : (turn + 1) * batch]
            rows[place, : len(turned)], weights[place, : len(turned)] = turned, 1.0
        return rows, weights


def _verdict(values: FloatArray, epochs: int, interrupted: bool) -> str:
    """Whether the mean ELBO of the last tenth of the epochs is that of the tenth before, up to noise."""
    if interrupted:
        return f"interrupted after {len(values):,} of {epochs:,} epochs: fit again, with a checkpoint to resume from"
    tenth = len(values) // 10
    if tenth < 2:
        return f"{epochs} epochs are too few to tell whether the ELBO has settled: raise epochs"
    last, before = values[-tenth:], values[-2 * tenth : -tenth]
    rise = float(last.mean() - before.mean())
    noise = 3.0 * sqrt(float(last.var() + before.var()) / tenth)
    if abs(rise) <= max(_SETTLED, noise):
        return "converged"
    if rise < 0:
        return f"the ELBO fell by {-rise:.3g} in the last tenth of the epochs: lower learning_rate"
    return f"the ELBO still rose by {rise:.3g} in the last tenth of the epochs: raise epochs"


def _distinct(x: FloatArray) -> FloatArray:
    """The rows, each once, in the order of their first appearance."""
    if not x.shape[1]:
        return x[:1]
    _, places = np.unique(x, axis=0, return_index=True)
    return x[np.sort(places)]


def _basis(recipe: FaithfulSVIGP, learned: Parameters) -> Basis:
    """The inducing points that were learned, and the factor of their covariance under the kernel that was."""
    points, raw = learned.inducing, (learned.raw_length, learned.raw_variance)
    length, variance = (float(np.logaddexp(0.0, value)) for value in raw)
    if not all(np.isfinite(value).all() for value in learned) or not min(length, variance) > 0:
        raise _diverged(recipe)
    kernel = Kernel("rbf", (length,) * points.shape[1], variance, constant=0.0)
    try:
        factor = np.linalg.cholesky(kernel.between(points, points) + recipe.jitter * np.eye(len(points)))
    except np.linalg.LinAlgError:
        raise _diverged(recipe) from None
    return Basis(kernel, points, np.asfortranarray(factor), recipe.jitter)


def _elbo_of_all(basis: Basis, sample: Sample, offset: float, mean: FloatArray, spread: FloatArray) -> float:
    """The bound that all rows give together."""
    counts, fit = Counts.of(sample, "probit"), 0.0
    for start in range(0, len(sample), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        features = basis.features(sample.x[rows])
        variance = basis.spare(features) + np.sum((features @ spread) ** 2, axis=1)
        fit += float(counts[rows].expected(offset + features @ mean, variance)[0].sum())
    squares = float(np.sum(spread**2) + mean @ mean) - len(mean)
    return fit - 0.5 * squares + float(np.log(np.abs(np.diag(spread))).sum())


def _diverged(recipe: FaithfulSVIGP) -> InputError:
    return InputError(f"the fit diverged; lower learning_rate, which is {recipe.learning_rate:g}")


@partial(jax.jit, static_argnames=("settings",))
def advance(
    state: _Learned, data: Rows, rows: Array, weights: Array, count: Array, rate: Array, *, settings: Settings
) -> tuple[_Learned, Array]:
    """The parameters and Adam's memory after the first `count` of the batches in `rows`, and the ELBO of each."""
    adam, size = optax.adam(jnp.asarray(rate, weights.dtype)), len(data.x)

    def loss(parameters: Parameters, batch: Rows, weight: Array) -> Array:
        return -elbo(parameters, batch, weight, size, settings) / size

    def step(place: Array, carry: tuple[_Learned, Array]) -> tuple[_Learned, Array]:
        (parameters, memory), elbos = carry
        batch = Rows(*(column[rows[place]] for column in data))
        value, slopes = jax.value_and_grad(loss)(parameters, batch, weights[place])
        moves, memory = adam.update(slopes, memory)
        return (optax.apply_updates(parameters, moves), memory), elbos.at[place].set(-size * value)

    after: tuple[_Learned, Array] = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(len(rows), weights.dtype)))
    return after


def elbo(parameters: Parameters, batch: Rows, weight: Array, size: int, settings: Settings) -> Array:
    """The bound on the evidence of all `size` rows that a batch of them gives, but for the constants of its counts.

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
