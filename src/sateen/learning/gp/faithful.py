"""The paper's SVI-GP as its text tells it: a sparse Gaussian process whose every number is learned by Adam.

A latent g ~ GP(c, σ² exp(-|x - x'|² / 2l²)) with f = Φ(g) has values at m inducing points Z. With L Lᵀ = K_mm, the
belief about them is whitened: g(Z) = c + L w, where w ~ N(v, Q Qᵀ). Adam climbs the bound on the evidence

    ELBO = N/B Σ_batch E[ln p(count | g)] - KL[N(v, Q Qᵀ) ‖ N(0, I)]

by mini-batches, over c, σ², l, Z, v and Q together. It is there to be compared with; `SVIGP` is the one to use.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, isfinite, sqrt
from os.path import exists
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.interrupts import deferring_interrupts
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import SILENT, Progress
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.files.container import read_container, write_container
from sateen.learning.gp.faithful_bound import Settings, State, advance
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.result import normalise_fields
from sateen.learning.gp.sparse import Basis
from sateen.learning.inputs import FloatArray, InputScale, Sample, check_task, check_whole, inputs_of, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.networks.network import (
    Device,
    Precision,
    Rows,
    arithmetic,
    check_number,
    check_word,
    log_ways,
    rows_of,
    window_of,
)
from sateen.learning.record import Record
from sateen.learning.scale import check_input_scale, choose_inputs

__all__ = ["FaithfulSVIGP"]

_KIND: Final = "svi-gp-faithful"
_CAPACITY: Final = 256  # steps that one call can do; how many it does changes the pace, not the result
_BLOCK_SECONDS: Final = 0.5  # of work between two looks at Ctrl-C and at the clock
_CHECKPOINT_SECONDS: Final = 10.0
_FIRST_NOISE: Final = 1e-3  # deviation of the first v, as in GPyTorch
_SETTLED: Final = 1.0  # nats, from one tenth of the epochs to the next
_ROWS_AT_ONCE: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulSVIGP:
    """The paper's SVI-GP: `epochs` of Adam over mini-batches of `batch` points, at `learning_rate`.

    At most `inducing` points are taken from the training set, at random where it has more, and moved with all the rest
    if `optimise_inducing`. Expectations are taken at `nodes` Gauss-Hermite nodes. `jitter` is added to the diagonal of
    K_mm; how fast Adam climbs depends on it, and it is that of GPyTorch, which the paper used. With
    `precision="float32"` all but K_mm and its Cholesky factor is in single precision. Ask `forecast` how long a fit
    will take.

    >>> FaithfulSVIGP(epochs=0)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: epochs is a whole number from 1 up, not 0
    """

    epochs: int = 2000
    batch: int = 100
    learning_rate: float = 0.001
    inducing: int = 1000
    optimise_inducing: bool = True
    nodes: int = 20
    jitter: float = 1e-4
    inputs: InputScale = "linear"
    device: Device = "auto"
    precision: Precision = "float64"

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_input_scale(self.inputs)
        for name in ("epochs", "batch", "inducing", "nodes"):
            check_whole(getattr(self, name), name, 1)
        for name in ("learning_rate", "jitter"):
            check_number(name, getattr(self, name))
        for name in ("device", "precision"):
            check_word(name, getattr(self, name))
        if not isinstance(self.optimise_inducing, bool):
            raise InputError(f"optimise_inducing is True or False, not {self.optimise_inducing!r}")

    @on_one_thread
    def fit(
        self, observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
    ) -> GPPosterior:
        """The posterior over f that `observations` leave; the same seed gives the same one.

        Ctrl-C ends a fit that has made a step with what it has, and the record says so. `checkpoint` names a file that
        is written at once, every ten seconds and in the end, and from which a fit of the same observations and recipe
        with the same seed goes on, to the same result; only `epochs` may have been raised meanwhile.
        """
        began = time.perf_counter()
        check_task(observations, seed)
        inputs, notes = choose_inputs(observations, self.inputs, seed)
        sample = sample_of(observations, inputs)
        settings = asdict(replace(self, epochs=1, device="auto"))
        mark = checksum([_KIND, settings, inputs.content(), observations.fingerprint, int(seed)], {})
        with arithmetic(self.device, "float64"):
            course = _Course.of(self, sample, seed)
            start = course.resumed(checkpoint, mark)
            walk, interrupted = _walked(course, start, mark, progress, checkpoint)
            learned = [np.asarray(value, np.float64) for value in walk.state.parameters]
        basis, offset, mean, spread = _basis(self, learned), float(learned[0]), learned[4], np.tril(learned[5])
        steps, values = course.epochs(walk)
        values[-1] = _elbo_of_all(basis, sample, offset, mean, spread)
        verdict = _verdict(np.array(walk.values), self.epochs, interrupted)
        seconds = start.seconds + time.perf_counter() - began
        return GPPosterior(
            self,
            Training(observations),
            inputs,
            Record("elbo", steps, values, verdict, seconds, interrupted, notes),
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
    def forecast(self, observations: Observations) -> float:
        """The seconds that `fit` will take on this machine, reckoned from a few steps of it."""
        sample = sample_of(observations, inputs_of(observations, "linear"))
        with arithmetic(self.device, "float64"):
            course = _Course.of(self, sample, 0)
            walk, count, spent = course.advanced(course.start(), 1), 1, 0.0
            compiling = walk.seconds
            while spent < _BLOCK_SECONDS and count < _CAPACITY:
                before, count = walk.seconds, min(4 * count, _CAPACITY)
                walk = course.advanced(walk, count)
                spent = walk.seconds - before
        return compiling + course.steps * spent / count


class _Walk(NamedTuple):
    """How far a fit has come, and the ELBO as the batches told it.

    `values` are its means over the epochs that are finished, `open_sum` its sum in the one that is not.
    """

    state: State
    step: int
    values: tuple[float, ...]
    open_sum: float
    seconds: float


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
        if len(first) > recipe.inducing:
            chosen = np.random.default_rng([seed, 1]).choice(len(first), recipe.inducing, replace=False)
            first = first[np.sort(chosen)]
        settings = Settings(recipe.nodes, recipe.jitter, recipe.optimise_inducing, window_of(sample))
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

    def start(self) -> _Walk:
        noise = np.random.default_rng([self.seed, 2]).normal(0.0, _FIRST_NOISE, len(self.first))
        return _Walk(State.first(self.first, noise, self.recipe.precision), 0, (), 0.0, 0.0)

    def resumed(self, file: File | None, mark: str) -> _Walk:
        """The walk that a checkpoint tells of, or a new one where there is none."""
        walk = self.start()
        if file is None or not exists(file):
            return walk
        _, _, content, arrays = read_container(file, {"checkpoint": 1})
        if content.get("fit") != mark or content["step"] > self.steps:
            what = "other observations, another recipe or seed, or more epochs"
            raise InputError(f"{file} is a checkpoint of another fit: {what}; delete it, or name another file")
        told = tuple(arrays["values"].tolist()), content["open_sum"], content["seconds"]
        return _Walk(walk.state.with_arrays(arrays), content["step"], *told)

    def save(self, walk: _Walk, file: File, mark: str) -> None:
        """Write a checkpoint."""
        content = {"fit": mark, "step": walk.step, "open_sum": walk.open_sum, "seconds": walk.seconds}
        arrays = {**walk.state.arrays(), "values": np.array(walk.values)}
        write_container(file, "checkpoint", 1, content, arrays)

    def advanced(self, walk: _Walk, count: int) -> _Walk:
        """The walk `count` steps later."""
        began = time.perf_counter()
        batches, rate = self._batches(walk.step, count), self.recipe.learning_rate
        state, elbos = advance(walk.state, self.rows, *batches, count, rate, settings=self.settings)
        values, open_sum = list(walk.values), walk.open_sum
        for step, value in enumerate(np.asarray(elbos)[:count].tolist(), walk.step + 1):
            if not isfinite(value):
                raise _diverged(self.recipe)
            open_sum += value + self.ways
            if step % self.per_epoch == 0:
                values.append(open_sum / self.per_epoch)
                open_sum = 0.0
        seconds = walk.seconds + time.perf_counter() - began
        return _Walk(state, walk.step + count, tuple(values), open_sum, seconds)

    def epochs(self, walk: _Walk) -> tuple[FloatArray, FloatArray]:
        """After how many steps each epoch ended, also one that was not finished, and its mean ELBO."""
        ends, values = self.per_epoch * np.arange(1.0, len(walk.values) + 1), np.array(walk.values)
        if begun := walk.step % self.per_epoch:
            return np.append(ends, walk.step), np.append(values, walk.open_sum / begun)
        return ends, values

    def _batches(self, step: int, count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
        """The rows of so many steps, each epoch in a random order of its own; what is no row has the weight 0."""
        batch = min(self.recipe.batch, self.size)
        rows = np.zeros((_CAPACITY, batch), np.int32)
        weights = np.zeros((_CAPACITY, batch), self.recipe.precision)
        order, known = np.zeros(0, np.int64), -1
        for place in range(count):
            epoch, turn = divmod(step + place, self.per_epoch)
            if epoch != known:
                order, known = np.random.default_rng([self.seed, 3, epoch]).permutation(self.size), epoch
            own = order[turn * batch : (turn + 1) * batch]
            rows[place, : len(own)], weights[place, : len(own)] = own, 1.0
        return rows, weights


def _walked(course: _Course, walk: _Walk, mark: str, progress: Progress, checkpoint: File | None) -> tuple[_Walk, bool]:
    """The walk at its end, or where Ctrl-C ended it, and whether it did."""
    pace, saved, interrupted = 1, walk.seconds, False
    if checkpoint is not None:
        course.save(walk, checkpoint, mark)  # a file that cannot be written is better known now than later
    progress.start(_KIND, course.steps, "steps")
    try:
        if walk.step < course.steps:
            progress.note("compiling the training step")
        progress.advance(walk.step)
        while walk.step < course.steps:
            count, before = min(pace, course.steps - walk.step), walk.seconds
            with deferring_interrupts():
                walk = course.advanced(walk, count)
            wished = int(count * _BLOCK_SECONDS / max(walk.seconds - before, 1e-9))
            pace = max(1, min(wished, 8 * count, _CAPACITY))  # the first call compiles, and tells little
            if checkpoint is not None and walk.seconds - saved > _CHECKPOINT_SECONDS:
                course.save(walk, checkpoint, mark)
                saved = walk.seconds
            progress.advance(count)
    except KeyboardInterrupt:
        if not walk.step:
            raise
        interrupted = walk.step < course.steps
    finally:
        progress.finish()
    if checkpoint is not None:
        course.save(walk, checkpoint, mark)
    return walk, interrupted


def _verdict(values: FloatArray, epochs: int, interrupted: bool) -> str:
    """Whether the mean ELBO of the last tenth of the epochs is that of the tenth before, up to noise."""
    if interrupted:
        return f"interrupted after {len(values):,} of {epochs:,} epochs: fit again, with a checkpoint to go on from"
    tenth = len(values) // 10
    if tenth < 2:
        return f"{epochs} epochs are too few to tell whether the ELBO has settled: raise epochs"
    last, before = values[-tenth:], values[-2 * tenth : -tenth]
    rise = float(last.mean() - before.mean())
    noise = 3.0 * sqrt(float(last.var() + before.var()) / tenth)
    if abs(rise) <= max(_SETTLED, noise):
        return "converged"
    if rise < 0:
        return f"the ELBO fell by {-rise:.3g} nats in the last tenth of the epochs: lower learning_rate"
    return f"the ELBO still rose by {rise:.3g} nats in the last tenth of the epochs: raise epochs"


def _distinct(x: FloatArray) -> FloatArray:
    """The rows, each once, in the order of their first appearance."""
    if not x.shape[1]:
        return x[:1]
    _, places = np.unique(x, axis=0, return_index=True)
    return x[np.sort(places)]


def _basis(recipe: FaithfulSVIGP, learned: Sequence[FloatArray]) -> Basis:
    """The inducing points that were learned, and the factor of their covariance under the kernel that was."""
    _, raw_variance, raw_length, points, _, _ = learned
    length, variance = (float(np.logaddexp(0.0, raw)) for raw in (raw_length, raw_variance))
    if not all(np.isfinite(value).all() for value in learned) or not min(length, variance) > 0:
        raise _diverged(recipe)
    kernel = Kernel("rbf", (length,) * points.shape[1], variance, constant=0.0)
    try:
        factor = np.linalg.cholesky(kernel.between(points, points) + recipe.jitter * np.eye(len(points)))
    except np.linalg.LinAlgError:
        raise _diverged(recipe) from None
    return Basis(kernel, points, np.asfortranarray(factor), recipe.jitter)


def _elbo_of_all(basis: Basis, sample: Sample, offset: float, mean: FloatArray, spread: FloatArray) -> float:
    """The bound that all rows tell together."""
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
