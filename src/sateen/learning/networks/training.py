"""Training: Adam's steps over mini-batches, compiled once and run in blocks, with progress, checkpoints and Ctrl-C.

What a step does depends on its number and on the key alone, so neither the size of the blocks nor a pause at a
checkpoint changes a bit of the result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped, unused-ignore]

from sateen.core.interrupts import deferring_interrupts
from sateen.core.observations import Observations
from sateen.core.progress import Progress
from sateen.core.seeds import stream
from sateen.core.types import Array as HostArray
from sateen.core.types import File, FloatArray
from sateen.learning.checkpoint import Checkpoint
from sateen.learning.gp.recipes import FaithfulSVIGP
from sateen.learning.inputs import Inputs, Sample, check_task, sample_of
from sateen.learning.networks.network import Array, Net, Rows, log_likelihood, rows_of
from sateen.learning.networks.recipes import SVIBNN, LaplaceNet
from sateen.learning.scale import choose_inputs
from sateen.learning.settings import Precision

_BLOCK_SECONDS: Final = 0.3  # of work between two looks at Ctrl-C and at the clock
_CHECKPOINT_SECONDS: Final = 10.0
_RESERVOIR: Final = 1 << 22  # standard normal numbers
_EPOCHS: Final = 128  # whose numbers are rounded up to multiples of this
_SLOTS: Final = 100  # equal parts of all steps, over each of which the loss is averaged
MANY_POINTS: Final = 300_000
BATCH_OF_MANY: Final = 512  # where there are many points, less noise is worth its price
_ADAM: Final = optax.scale_by_adam()
_Tree = TypeVar("_Tree")


class Loss(Protocol):
    """What Adam lowers; it is compiled in, so it is hashable, and two that are equal do the same."""

    def __call__(self, parameters: Array, rows: Rows, noise: Array, fixed: Array) -> Array:
        """The loss for each row, as a batch of rows tells it; `fixed` is what never moves."""

    def noise(self, batch: int) -> int:
        """How many standard normal numbers a batch of rows asks for."""


@dataclass(frozen=True, slots=True)
class CountLoss:
    """The negative log posterior density of weights with independent normal priors, for each row."""

    net: Net
    window: int

    def noise(self, batch: int) -> int:
        """None is asked for."""
        return 0

    def __call__(self, parameters: Array, rows: Rows, noise: Array, fixed: Array) -> Array:
        """As `Loss` says; `fixed` is the precision of the prior, divided by the number of all rows."""
        fit = jnp.mean(log_likelihood(self.net.link, self.net.output(parameters, rows.x), rows, self.window))
        return 0.5 * jnp.sum(fixed * parameters**2) - fit


def task_of(
    name: str, recipe: SVIBNN | LaplaceNet | FaithfulSVIGP, observations: Observations, seed: int, file: File | None
) -> tuple[Inputs, tuple[str, ...], Sample, Checkpoint]:
    """What a recipe is trained for: the inputs and notes about them, the rows, and a checkpoint in the file."""
    check_task(observations, seed)
    inputs, notes, _ = choose_inputs(observations, recipe.inputs, seed)
    settings = asdict(replace(recipe, device="auto"))
    kept = Checkpoint.of(file, name, settings, inputs.content(), observations.fingerprint, int(seed))
    return inputs, notes, sample_of(observations, inputs), kept


class Batches(NamedTuple):
    """The rows in a random order, followed by as many of the first as a batch has, so that every batch is a slice."""

    rows: Rows
    size: int
    batch: int

    @classmethod
    def of(cls, sample: Sample, batch: int, seed: int, precision: Precision) -> Batches:
        """The rows of a sample, shuffled by the seed."""
        size, batch = len(sample), min(batch, len(sample))
        order = stream(seed, "order").permutation(size)
        return cls(rows_of(sample[np.concatenate([order, order[:batch]])], precision), size, batch)


class Schedule(NamedTuple):
    """How many steps there are, and how long: at first `rate`, then less and less, in the end `rest` of it."""

    steps: int
    rate: float
    rest: float = 0.0


class Trained(NamedTuple):
    """What training led to: the parameters after this many steps, and the mean loss over each part of them."""

    parameters: HostArray
    done: int
    ends: FloatArray
    losses: FloatArray


class _Chance(NamedTuple):
    """What chance decides. An epoch reads all rows once, from one of `starts` on and round to it.

    A step reads its noise in the `reservoir` of standard normal numbers, from one of `places` on. To draw them again
    for every step would take five times as long as all the rest of it.
    """

    starts: Array
    places: Array
    reservoir: Array

    @classmethod
    def of(cls, batches: Batches, steps: int, noise: int, rng: np.random.Generator) -> _Chance:
        epochs = steps * batches.batch // batches.size + 1
        starts = rng.integers(batches.size, size=epochs, dtype=np.int32)
        starts = np.pad(starts, (0, -epochs % _EPOCHS))  # so that a shorter fit has the same shapes
        if not noise:
            return cls(*map(jax.device_put, (starts, starts[:0], starts[:0])))
        size = noise + _RESERVOIR
        places = rng.integers(size - noise, size=steps, dtype=np.int32)
        reservoir = rng.standard_normal(size, dtype=np.float32).astype(batches.rows.x.dtype)
        return cls(*map(jax.device_put, (starts, places, reservoir)))


class _State(NamedTuple):
    """What has been learned, what Adam remembers of the slopes so far, and the sum of the losses in each slot."""

    parameters: Array
    memory: Array
    sums: Array


@partial(jax.jit, static_argnames=("loss", "size", "batch"))
def _advance(
    state: _State,
    rows: Rows,
    fixed: Array,
    chance: _Chance,
    first: int,
    last: int,
    course: Schedule,
    *,
    loss: Loss,
    size: int,
    batch: int,
) -> _State:
    """The state after the steps from `first` up to `last`."""
    per_epoch = -(-size // batch)
    length = -(-course.steps // _SLOTS)
    count = loss.noise(batch)

    def step(place: Array, state: _State) -> _State:
        start = (chance.starts[place // per_epoch] + (place % per_epoch) * batch) % size if batch < size else 0
        part = Rows(*(jax.lax.dynamic_slice_in_dim(column, start, batch) for column in rows))
        noise = jax.lax.dynamic_slice_in_dim(chance.reservoir, chance.places[place], count) if count else None
        value, slope = jax.value_and_grad(loss)(state.parameters, part, noise, fixed)
        move, memory = _ADAM.update(slope, state.memory)
        share = 0.5 * (1.0 + jnp.cos(jnp.pi * place / course.steps))
        rate = (course.rate * (course.rest + (1.0 - course.rest) * share)).astype(slope.dtype)
        return _State(state.parameters - rate * move, memory, state.sums.at[place // length].add(value))

    after: _State = jax.lax.fori_loop(first, last, step, state)
    return after


class Trainer:
    """Trains one thing after another, in this many steps in `total`, with a checkpoint from which the work resumes.

    Ctrl-C ends the work with what there is: `interrupted` is True from then on.
    """

    def __init__(self, total: int, progress: Progress, checkpoint: Checkpoint) -> None:
        self.interrupted = False
        self._total, self._progress, self._checkpoint = total, progress, checkpoint
        content, self._kept = checkpoint.read() or ({"done": {}, "seconds": 0.0}, {})
        self._done, self._earlier = dict[str, int](content["done"]), float(content["seconds"])
        self._began = time.perf_counter()
        self._write()  # a file that cannot be written is reported before the work, not after it

    @property
    def seconds(self) -> float:
        """How long the work took, also what an earlier call did for the same checkpoint."""
        return self._earlier + time.perf_counter() - self._began

    def train(
        self,
        name: str,
        loss: Loss,
        start: HostArray,
        batches: Batches,
        fixed: Array,
        course: Schedule,
        rng: np.random.Generator,
    ) -> Trained:
        """`start` after all steps of the course, or after those that were made before Ctrl-C."""
        chance = _Chance.of(batches, course.steps, loss.noise(batches.batch), rng)
        compiled = partial(_advance, loss=loss, size=batches.size, batch=batches.batch)

        def advance(state: _State, done: int, count: int) -> _State:
            later = compiled(state, batches.rows, fixed, chance, done, done + count, course)
            ready: _State = jax.block_until_ready(later)  # type: ignore[no-untyped-call, unused-ignore]
            return ready

        state = _State(start, _ADAM.init(start), np.zeros(_SLOTS, start.dtype))
        state, done = self.run(name, state, course.steps, advance)
        length = -(-course.steps // _SLOTS)
        ends = np.minimum(np.arange(length, done + length, length), done)
        losses = np.asarray(state.sums, np.float64)[: len(ends)] / np.diff(ends, prepend=0)
        return Trained(np.asarray(state.parameters), done, ends.astype(np.float64), losses)

    def run(
        self, name: str, state: _Tree, steps: int, advance: Callable[[_Tree, int, int], _Tree], most: int = sys.maxsize
    ) -> tuple[_Tree, int]:
        """A state, or what the checkpoint has under the name, after all steps or those before Ctrl-C; and how many.

        `advance` takes a state, how many steps led to it, and how many more to make: at most this many at once.
        """
        done, pace = self._done.get(name, 0), 1
        if done > steps:
            raise self._checkpoint.refusal()  # of a longer fit
        if name in self._done:
            leaves, structure = jax.tree.flatten(state)
            stored = [self._kept[f"{name}/{place}"].astype(leaf.dtype) for place, leaf in enumerate(leaves)]
            state = jax.tree.unflatten(structure, stored)
        try:
            if done < steps:
                self._progress.note("compiling the training step")
            self._progress.advance(done)
            while done < steps:
                count, began = min(pace, steps - done), time.perf_counter()
                with deferring_interrupts():
                    state, done = advance(state, done, count), done + count
                wished = int(count * _BLOCK_SECONDS / max(time.perf_counter() - began, 1e-9))
                pace = max(1, min(8 * count, wished, most))  # the first call compiles, and tells little
                if time.perf_counter() - self._saved > _CHECKPOINT_SECONDS:
                    self._keep(name, state, done)
                    self._write()
                self._progress.advance(count)
        except KeyboardInterrupt:
            self.interrupted = True
        self._keep(name, state, done)
        if self.interrupted or self._total == sum(self._done.values()):
            self._write()
        return state, done

    def _keep(self, name: str, state: object, done: int) -> None:
        self._done[name] = done
        self._kept |= {f"{name}/{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))}

    def _write(self) -> None:
        self._saved = time.perf_counter()
        self._checkpoint.write({"done": self._done, "seconds": self.seconds}, self._kept)


def first_weights(net: Net, sample: Sample, rng: np.random.Generator, precision: Precision) -> HostArray:
    """Random weights whose output is near the g of the frequency among all decided runs."""
    satisfied, decided = float(sample.satisfied.sum()), float((sample.trials - sample.undecided).sum())
    return net.first_weights(rng, (satisfied + 0.5) / (decided + 1.0)).astype(precision)


def prior_precision(weight_decay: float | None, net: Net) -> float:
    """The precision of the prior of every weight: by default as many as there are inputs, from 1 to 10."""
    return float(min(max(net.inputs, 1), 10) if weight_decay is None else weight_decay)
