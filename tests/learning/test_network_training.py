"""Training: which rows a step reads, how far it goes, and that pauses change nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chi2, kstest

from distributions import assert_distributed
from known_functions import PLANE, observed
from sateen.core.errors import InputError
from sateen.core.progress import SILENT, Progress, working
from sateen.files.container import read_container, write_container
from sateen.learning import checkpoint as checkpoints
from sateen.learning.checkpoint import Checkpoint
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.networks import training as network_training
from sateen.learning.networks.network import Net, Rows, arithmetic, log_ways, rows_of, window_of
from sateen.learning.networks.training import Batches, CountLoss, Schedule, Trained, Trainer
from watchers import Watcher

FloatArray = npt.NDArray[np.float64]
LEVEL = 1e-6
NOTHING: Any = ()


@dataclass(frozen=True)
class WhichRows:
    """Its value tells the rows of the batch: row i adds 2^i."""

    def noise(self, batch: int) -> int:
        return 0

    def __call__(self, parameters: Any, rows: Rows, noise: Any, fixed: Any) -> Any:
        return 0.0 * jnp.sum(parameters) + jnp.sum(2.0 ** rows.x[:, 0])


@dataclass(frozen=True)
class Bowl:
    """Half the squared distance from `fixed`."""

    def noise(self, batch: int) -> int:
        return 0

    def __call__(self, parameters: Any, rows: Rows, noise: Any, fixed: Any) -> Any:
        return 0.5 * jnp.sum((parameters - fixed) ** 2)


@dataclass(frozen=True)
class Slope:
    """A plane: wherever it is, Adam steps by the rate."""

    def noise(self, batch: int) -> int:
        return 0

    def __call__(self, parameters: Any, rows: Rows, noise: Any, fixed: Any) -> Any:
        return jnp.sum(parameters)


@dataclass(frozen=True)
class Noisy:
    """The mean square of the noise, or its first number, as the parameter stands; noise for `count` a row."""

    count: int
    square: bool

    def noise(self, batch: int) -> int:
        return batch * self.count

    def __call__(self, parameters: Any, rows: Rows, noise: Any, fixed: Any) -> Any:
        return 0.0 * jnp.sum(parameters) + (jnp.mean(noise**2) if self.square else noise[0])


def numbered(size: int) -> Sample:
    """A sample whose row i is i."""
    own = np.arange(size, dtype=float)
    return Sample(own[:, None].copy(), own.copy(), np.zeros(size), own + 1)


def counted(undecided: float = 0.0) -> Sample:
    seen = observed(PLANE, 10, 15, 4, undecided=undecided)
    return sample_of(seen, inputs_of(seen, "linear"))


@contextmanager
def training(
    total: int, progress: Progress = SILENT, checkpoint: Path | None = None, mark: str = "a"
) -> Iterator[Trainer]:
    trainer = Trainer(total, progress, Checkpoint.of(checkpoint, mark))
    with arithmetic("cpu", "float64"), working(progress, "test", total, "steps"):
        yield trainer


def trained(
    loss: Any, batches: Batches, course: Schedule, start: Any = (0.0,), fixed: Any = NOTHING, seed: int = 1
) -> Trained:
    with training(course.steps) as trainer:
        return trainer.train("it", loss, np.array(start), batches, fixed, course, np.random.default_rng([seed, 3]))


def batches_of(sample: Sample, batch: int, seed: int = 1) -> Batches:
    with arithmetic("cpu", "float64"):
        return Batches.of(sample, batch, seed, "float64")


def rows_read(size: int, batch: int, epochs: int, seed: int) -> list[list[set[int]]]:
    """Which rows each batch of each epoch had."""
    per_epoch = -(-size // batch)
    losses = trained(
        WhichRows(), batches_of(numbered(size), batch), Schedule(epochs * per_epoch, 0.1), seed=seed
    ).losses
    sets = [{row for row in range(size) if int(value) >> row & 1} for value in losses]
    return [sets[start : start + per_epoch] for start in range(0, len(sets), per_epoch)]


def plain_adam(slope: Any, start: FloatArray, rates: FloatArray) -> FloatArray:
    """Kingma and Ba's Algorithm 1, with their constants."""
    at, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step, rate in enumerate(rates, start=1):
        g = slope(at)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        at = at - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return at


def cosine(steps: int, rate: float) -> FloatArray:
    return np.asarray(rate * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps)))


@pytest.mark.parametrize(("size", "batch"), [(12, 4), (10, 4), (7, 6), (5, 1)])
def test_an_epoch_reads_every_row_and_no_batch_reads_one_twice(size: int, batch: int) -> None:
    per_epoch = -(-size // batch)
    for epoch in rows_read(size, batch, 100 // per_epoch, seed=2):
        assert all(len(rows) == batch for rows in epoch)
        assert set.union(*epoch) == set(range(size))


def test_an_epoch_begins_anywhere_with_the_same_probability() -> None:
    """So every row is read equally often in the long run, also where batches do not divide the rows."""
    order = np.asarray(batches_of(numbered(10), 4).rows.x)[:, 0].astype(int)
    windows = [set(order[start : start + 4].tolist()) for start in range(10)]
    starts = [windows.index(epoch[0]) for seed in range(12) for epoch in rows_read(10, 4, 33, seed)]
    assert len(starts) == 12 * 33
    assert_distributed(np.array(starts), np.full(10, 0.1))


def test_batches_are_shuffled_by_the_seed_and_keep_the_columns_of_a_row_together() -> None:
    batches = batches_of(numbered(30), 7)
    x, satisfied, _, trials = (np.asarray(column) for column in batches.rows)
    assert sorted(x[:30, 0]) == list(range(30))
    assert not np.array_equal(x[:30, 0], np.arange(30))
    assert np.array_equal(x[30:], x[:7])  # so that every batch is a slice
    assert np.array_equal(satisfied, x[:, 0])
    assert np.array_equal(trials, x[:, 0] + 1)
    assert np.array_equal(batches_of(numbered(30), 7).rows.x, x)
    assert not np.array_equal(batches_of(numbered(30), 7, seed=2).rows.x, x)


@pytest.mark.parametrize("undecided", [0.0, 0.4])
def test_the_loss_is_the_negative_log_posterior_density_for_each_row(undecided: float) -> None:
    sample, net = counted(undecided), Net(2, 3)
    weights = net.first_weights(np.random.default_rng(5), 0.4)
    with arithmetic("cpu", "float64"):
        rows = rows_of(sample, "float64")
        loss = CountLoss(net, window_of(sample))
        found, g = jax.jit(lambda at: (loss(at, rows, None, 2.5 / 10), net.output(at, rows.x)))(weights)
    fit = 0.0
    for low, more, trials, p in zip(sample.satisfied, sample.undecided, sample.trials, ndtr(g), strict=True):
        fit += np.log(np.sum(binom.pmf(np.arange(low, low + more + 1), trials, p)))
    wanted = fit - log_ways(sample) - 0.5 * 2.5 * np.sum(weights**2)
    assert -10 * float(found) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 4, 7])
def test_the_mean_over_all_batches_is_the_loss_of_all_rows(batch: int) -> None:
    """Hence mini-batches are unbiased: the fit is scaled by N / batch beside a prior that counts once."""
    net, loss = Net(2, 3), CountLoss(Net(2, 3), 0)
    batches, weights = batches_of(counted(), batch), net.first_weights(np.random.default_rng(5), 0.4)
    with arithmetic("cpu", "float64"):
        value = jax.jit(lambda rows: jax.value_and_grad(loss)(jnp.asarray(weights), rows, None, 0.3))
        whole, slope = value(rows_of(counted(), "float64"))
        parts = [value(Rows(*(column[start : start + batch] for column in batches.rows))) for start in range(10)]
    assert np.mean([own for own, _ in parts]) == pytest.approx(float(whole), rel=1e-12)
    assert np.allclose(np.mean([own for _, own in parts], axis=0), slope, rtol=1e-10, atol=1e-12)


def test_training_with_a_batch_of_all_rows_is_adam_on_all_of_them() -> None:
    """In whatever order they stand, and whatever more is asked for than there are."""
    net, loss, steps = Net(2, 3), CountLoss(Net(2, 3), 0), 60
    start, course = net.first_weights(np.random.default_rng(5), 0.4), Schedule(steps, 0.05)
    found = trained(loss, batches_of(counted(), 10), course, start, np.array(0.3))
    more = trained(loss, batches_of(counted(), 5000), course, start, np.array(0.3), seed=8)
    assert more.parameters.tobytes() == found.parameters.tobytes()
    with arithmetic("cpu", "float64"):
        rows = rows_of(counted(), "float64")
        slope = jax.jit(jax.grad(lambda at: loss(at, rows, None, 0.3)))
        wanted = plain_adam(lambda at: np.asarray(slope(at)), start, cosine(steps, 0.05))
    assert np.allclose(found.parameters, wanted, rtol=1e-8)
    assert np.abs(found.parameters - start).max() > 0.1


def test_adam_is_that_of_its_paper() -> None:
    start, centre = np.array([3.0, -1.0, 0.0]), np.array([1.0, 2.0, 1e-3])
    found = trained(Bowl(), batches_of(numbered(4), 4), Schedule(80, 0.1, 1.0), start, centre)
    assert np.allclose(found.parameters, plain_adam(lambda at: at - centre, start, np.full(80, 0.1)), rtol=1e-9)


@pytest.mark.parametrize("rest", [0.0, 0.25, 1.0])
def test_the_rate_sinks_along_a_cosine_to_the_rest(rest: float) -> None:
    """On a plane the way is the sum of the rates: those of the cosine sum to (n + 1) / 2."""
    found = trained(Slope(), batches_of(numbered(4), 2), Schedule(50, 0.01, rest), [0.0, 5.0])
    way = 0.01 * (50 * rest + (1 - rest) * 51 / 2)
    assert np.allclose(found.parameters, [-way, 5 - way], rtol=1e-6)
    heights = 5 - 2 * 0.01 * np.cumsum(rest + (1 - rest) * cosine(50, 1.0))
    assert np.allclose(found.losses, [5, *heights[:-1]], rtol=1e-6)


@pytest.mark.parametrize("steps", [1, 7, 100, 101, 230])
def test_losses_are_means_over_up_to_a_hundred_equal_parts_of_the_steps(steps: int) -> None:
    found = trained(Slope(), batches_of(numbered(4), 4), Schedule(steps, 0.01, 1.0), [0.0])
    sizes = np.diff([0, *found.ends])
    assert len(found.losses) == len(sizes) <= 100
    assert found.ends[-1] == found.done == steps
    assert set(sizes[:-1]) <= {math.ceil(steps / 100)}  # the last may be shorter
    assert 0 < sizes[-1] <= math.ceil(steps / 100)
    middles = found.ends - (sizes + 1) / 2  # on a plane with one slope a mean is the value in the middle
    assert np.allclose(found.losses, -0.01 * middles, rtol=1e-5, atol=1e-9)


def test_noise_is_standard_normal_and_new_for_every_step() -> None:
    batches = batches_of(numbered(10), 4)
    spread = trained(Noisy(50, True), batches, Schedule(100, 0.1)).losses
    assert LEVEL < chi2.cdf(200 * spread.sum(), 200 * 100) < 1 - LEVEL
    first = np.concatenate(
        [trained(Noisy(1, False), batches, Schedule(100, 0.1), seed=seed).losses for seed in range(4)]
    )
    assert len(set(first.tolist())) == 400
    assert kstest(first, "norm").pvalue > LEVEL
    again = trained(Noisy(1, False), batches, Schedule(100, 0.1), seed=3).losses
    assert np.array_equal(again, first[300:])


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_the_size_of_the_blocks_changes_no_bit(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    course, start, centre = Schedule(90, 0.1), [3.0, -1.0], np.array([1.0, 2.0])
    usual = trained(Bowl(), batches_of(numbered(7), 3), course, start, centre)
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", seconds)
    watcher = Watcher()
    with training(90, watcher) as trainer:
        batches, chance = batches_of(numbered(7), 3), np.random.default_rng([1, 3])
        found = trainer.train("it", Bowl(), np.array(start), batches, centre, course, chance)
    assert found.parameters.tobytes() == usual.parameters.tobytes()
    assert found.losses.tobytes() == usual.losses.tobytes()
    assert watcher.told == [("test", 90, "steps")]
    assert watcher.done == 90
    assert watcher.finished == 1


def two_things(trainer: Trainer) -> list[Trained]:
    """Bowls of 20 and 30 steps, the second only if the first was not interrupted."""
    found, batches = list[Trained](), batches_of(numbered(7), 3)
    for name, steps in {"one": 20, "other": 30}.items():
        course, chance = Schedule(steps, 0.1), np.random.default_rng([1, steps])
        found.append(trainer.train(name, Bowl(), np.array([3.0]), batches, np.array([1.0]), course, chance))
        if trainer.interrupted:
            break
    return found


@pytest.mark.parametrize("patience", [1, 13, 20, 21, 44, 50])
def test_ctrl_c_keeps_the_steps_that_were_made_and_a_checkpoint_goes_on_from_them(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)  # a step at a time
    file, watcher = tmp_path / "half.safetensors", Watcher(patience)
    with training(50, watcher, file) as trainer:
        stopped = two_things(trainer)
        assert trainer.interrupted
    assert watcher.finished == 1
    assert sum(one.done for one in stopped) == patience
    assert stopped[-1].ends[-1] == stopped[-1].done
    with training(50) as trainer:
        wanted = two_things(trainer)
    watcher = Watcher()
    with training(50, watcher, file) as trainer:
        resumed = two_things(trainer)
        assert not trainer.interrupted
    assert watcher.done == 50  # those of before are told at once
    for one, other in zip(resumed, wanted, strict=True):
        assert one.done == other.done
        assert one.parameters.tobytes() == other.parameters.tobytes()
        assert one.losses.tobytes() == other.losses.tobytes()
        assert one.ends.tobytes() == other.ends.tobytes()


def test_ctrl_c_before_the_first_step_leaves_the_start() -> None:
    with training(50, Watcher(0)) as trainer:
        (stopped,) = two_things(trainer)
    assert trainer.interrupted
    assert stopped.done == len(stopped.losses) == len(stopped.ends) == 0
    assert stopped.parameters.tolist() == [3.0]


def test_a_checkpoint_is_written_while_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_training, "_CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)
    file, write, written = tmp_path / "half.safetensors", checkpoints.write_container, list[dict[str, int]]()

    def noticed(file: Any, kind: str, version: int, content: Any, arrays: Any) -> None:
        written.append(dict(content["done"]))
        write(file, kind, version, content, arrays)

    monkeypatch.setattr(checkpoints, "write_container", noticed)
    with training(50, checkpoint=file) as trainer:
        two_things(trainer)
    each = [{"one": done} for done in range(1, 21)] + [{"one": 20, "other": done} for done in range(1, 31)]
    assert written == [{}, *each, {"one": 20, "other": 30}]  # the first shows that it can be written


def test_a_finished_checkpoint_is_the_result_and_remembers_the_time(tmp_path: Path) -> None:
    file = tmp_path / "whole.safetensors"
    with training(50, checkpoint=file) as trainer:
        wanted = two_things(trainer)
    kind, version, content, arrays = read_container(file)
    assert 0 < content["seconds"] <= trainer.seconds
    write_container(file, kind, version, {**content, "seconds": 1e4}, arrays)
    watcher = Watcher()
    with training(50, watcher, file) as trainer:
        found = two_things(trainer)
    assert watcher.done == 50
    assert trainer.seconds > 1e4
    assert [one.parameters.tobytes() for one in found] == [one.parameters.tobytes() for one in wanted]


def test_the_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.safetensors"
    with training(50, checkpoint=file, mark="a") as trainer:
        two_things(trainer)
    other = training(50, checkpoint=file, mark="b")
    with pytest.raises(InputError, match=r"other\.safetensors is a checkpoint of another fit"), other:
        pass


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_step(tmp_path: Path) -> None:
    watcher = Watcher()
    with (
        pytest.raises(InputError, match="cannot write"),
        training(50, watcher, tmp_path / "nowhere" / "half.safetensors") as trainer,
    ):
        two_things(trainer)
    assert watcher.done == 0


@pytest.mark.parametrize(
    "steps",
    [
        20_000_000,  # the paper's 2000 epochs over a million points
        24_000_000,  # times 100 is more than 32 bits hold
    ],
)
def test_the_last_steps_of_very_many_are_in_the_last_part(steps: int) -> None:
    with arithmetic("cpu", "float32"):
        batches, start = Batches.of(numbered(4), 4, 1, "float32"), np.zeros(1, np.float32)
        state = network_training._State(start, network_training._ADAM.init(start), np.zeros(100, np.float32))
        chance = network_training._Chance(*(np.zeros(count, np.int32) for count in (1, 0, 0)))
        end = Schedule(steps, 0.1)
        found = network_training._advance(
            state, batches.rows, NOTHING, chance, steps - 5, steps, end, loss=WhichRows(), size=4, batch=4
        )
    assert np.flatnonzero(found.sums).tolist() == [99]
