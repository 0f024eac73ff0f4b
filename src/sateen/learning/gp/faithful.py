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
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.interrupts import deferring_interrupts
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import Progress
from sateen.core.record import Record
from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.core.types import Array, File, FloatArray
from sateen.learning.checkpoint import Checkpoint
from sateen.learning.gp.faithful_bound import Settings, State, advance
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.sparse import Basis
from sateen.learning.inputs import Sample, check_task, inputs_of, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.networks.network import Rows, arithmetic, log_ways, rows_of, window_of
from sateen.learning.scale import choose_inputs

if TYPE_CHECKING:
    from sateen.learning.gp.recipes import FaithfulSVIGP

__all__ = ["fit", "forecast"]

_KIND: Final = "svi-gp-faithful"
_CAPACITY: Final = 256  # steps that one call can do; how many it does changes the pace, not the result
_BLOCK_SECONDS: Final = 0.5  # of work between two looks at Ctrl-C and at the clock
_CHECKPOINT_SECONDS: Final = 10.0
_FIRST_NOISE: Final = 1e-3  # deviation of the first v, as in GPyTorch
_SETTLED: Final = 1.0  # nats, from one tenth of the epochs to the next
_ROWS_AT_ONCE: Final = 8192


@on_one_thread
def fit(
    recipe: FaithfulSVIGP, observations: Observations, seed: int, progress: Progress, checkpoint: File | None
) -> GPPosterior:
    """As `FaithfulSVIGP.fit`."""
    began = time.perf_counter()
    check_task(observations, seed)
    inputs, notes = choose_inputs(observations, recipe.inputs, seed)
    sample = sample_of(observations, inputs)
    settings = asdict(replace(recipe, epochs=1, device="auto"))
    kept = Checkpoint.of(checkpoint, _KIND, settings, inputs.content(), observations.fingerprint, int(seed))
    with arithmetic(recipe.device, "float64"):
        course = _Course.of(recipe, sample, seed)
        start = course.resumed(kept)
        end, interrupted = _run(course, start, kept, progress)
        learned = [np.asarray(value, np.float64) for value in end.state.parameters]
    basis, offset, mean, spread = _basis(recipe, learned), float(learned[0]), learned[4], np.tril(learned[5])
    steps, values = course.epochs(end)
    values[-1] = _elbo_of_all(basis, sample, offset, mean, spread)
    verdict = _verdict(np.array(end.values), recipe.epochs, interrupted)
    seconds = start.seconds + time.perf_counter() - began
    return GPPosterior(
        recipe,
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
def forecast(recipe: FaithfulSVIGP, observations: Observations) -> float:
    """As `FaithfulSVIGP.forecast`."""
    sample = sample_of(observations, inputs_of(observations, "linear"))
    with arithmetic(recipe.device, "float64"):
        course = _Course.of(recipe, sample, 0)
        reached, count, spent = course.advanced(course.start(), 1), 1, 0.0
        compiling = reached.seconds
        while spent < _BLOCK_SECONDS and count < _CAPACITY:
            before, count = reached.seconds, min(4 * count, _CAPACITY)
            reached = course.advanced(reached, count)
            spent = reached.seconds - before
    return compiling + course.steps * spent / count


class _Reached(NamedTuple):
    """How far a fit has come, and the ELBO as the batches told it.

    `values` are its means over the epochs that are finished, `open_sum` its sum in the one that is not.
    """

    state: State
    step: int
    values: tuple[float, ...]
    open_sum: float
    seconds: float

    def parts(self) -> tuple[dict[str, float], dict[str, Array]]:
        """What a checkpoint keeps of it."""
        content = {"step": self.step, "open_sum": self.open_sum, "seconds": self.seconds}
        return content, {**self.state.arrays(), "values": np.array(self.values)}


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
            chosen = stream(seed, "inducing").choice(len(first), recipe.inducing, replace=False)
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

    def start(self) -> _Reached:
        noise = stream(self.seed, "noise").normal(0.0, _FIRST_NOISE, len(self.first))
        return _Reached(State.first(self.first, noise, self.recipe.precision), 0, (), 0.0, 0.0)

    def resumed(self, checkpoint: Checkpoint) -> _Reached:
        """How far the checkpoint has come, or the start where there is none."""
        start, kept = self.start(), checkpoint.read()
        if kept is None:
            return start
        content, arrays = kept
        if content["step"] > self.steps:
            raise checkpoint.refusal()  # of a fit with more epochs
        values = tuple(arrays["values"].tolist())
        state = start.state.with_arrays(arrays)
        return _Reached(state, content["step"], values, content["open_sum"], content["seconds"])

    def advanced(self, reached: _Reached, count: int) -> _Reached:
        """How far `count` more steps come."""
        began = time.perf_counter()
        batches, rate = self._batches(reached.step, count), self.recipe.learning_rate
        state, elbos = advance(reached.state, self.rows, *batches, count, rate, settings=self.settings)
        values, open_sum = list(reached.values), reached.open_sum
        for step, value in enumerate(np.asarray(elbos)[:count].tolist(), reached.step + 1):
            if not isfinite(value):
                raise _diverged(self.recipe)
            open_sum += value + self.ways
            if step % self.per_epoch == 0:
                values.append(open_sum / self.per_epoch)
                open_sum = 0.0
        seconds = reached.seconds + time.perf_counter() - began
        return _Reached(state, reached.step + count, tuple(values), open_sum, seconds)

    def epochs(self, reached: _Reached) -> tuple[FloatArray, FloatArray]:
        """After how many steps each epoch ended, also one that was not finished, and its mean ELBO."""
        ends, values = self.per_epoch * np.arange(1.0, len(reached.values) + 1), np.array(reached.values)
        if begun := reached.step % self.per_epoch:
            return np.append(ends, reached.step), np.append(values, reached.open_sum / begun)
        return ends, values

    def _batches(self, step: int, count: int) -> tuple[npt.NDArray[np.int32], Array]:
        """The rows of so many steps, each epoch in a random order of its own; what is no row has the weight 0."""
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


def _run(course: _Course, reached: _Reached, checkpoint: Checkpoint, progress: Progress) -> tuple[_Reached, bool]:
    """How far all steps come, or those before Ctrl-C, and whether it was pressed."""
    pace, saved, interrupted = 1, reached.seconds, False
    checkpoint.write(*reached.parts())  # a file that cannot be written is better known now than later
    progress.start(_KIND, course.steps, "steps")
    try:
        if reached.step < course.steps:
            progress.note("compiling the training step")
        progress.advance(reached.step)
        while reached.step < course.steps:
            count, before = min(pace, course.steps - reached.step), reached.seconds
            with deferring_interrupts():
                reached = course.advanced(reached, count)
            wished = int(count * _BLOCK_SECONDS / max(reached.seconds - before, 1e-9))
            pace = max(1, min(wished, 8 * count, _CAPACITY))  # the first call compiles, and tells little
            if reached.seconds - saved > _CHECKPOINT_SECONDS:
                checkpoint.write(*reached.parts())
                saved = reached.seconds
            progress.advance(count)
    except KeyboardInterrupt:
        if not reached.step:
            raise
        interrupted = reached.step < course.steps
    finally:
        progress.finish()
    checkpoint.write(*reached.parts())
    return reached, interrupted


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
