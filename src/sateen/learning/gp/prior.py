"""What a Gaussian process believes before it is fitted: its inputs and its kernel, and where they come from.

They are given, or learned: from all observations, or from a random part of them, so that the prior has not seen the
rest. Either way the counts of at most 4,000 rows decide; more do not change a handful of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.observations import Observations
from sateen.core.progress import Progress
from sateen.core.types import File
from sateen.files.container import read_container, write_container
from sateen.learning.gp.hyper import Climb, first_kernel, maximise
from sateen.learning.gp.kernels import Kernel, KernelName, check_kernel_name
from sateen.learning.gp.sparse import Basis, choose_inducing, inducing_for
from sateen.learning.gp.variational import Sites
from sateen.learning.inputs import FloatArray, Inputs, InputScale, Sample, check_whole, sample_of
from sateen.learning.likelihood import Counts, Link
from sateen.learning.scale import check_input_scale, choose_scale, scales_differ

__all__ = ["Evaluated", "Inference", "Prior", "Wanted", "generator", "settle", "some_rows", "working"]

KERNEL_ROWS: Final = 4000
_KERNEL_INDUCING: Final = 200  # are enough to learn a kernel with
_MOST_EVALUATIONS: Final = 100
_CHECKPOINT: Final = "checkpoint"
_VERSION: Final = 1
_STREAMS: Final = {"split": 0, "kernel": 2, "inducing": 3, "batches": 4}  # independent draws from one seed; 1: scale.py


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What an inference says of a kernel: a value, its slopes by kernel and by inducing points, and the last sites."""

    value: float
    by_logs: FloatArray
    by_points: FloatArray
    sites: Sites


Inference: TypeAlias = Callable[[Counts, Basis, FloatArray, Sites], Evaluated]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a recipe asks of the prior."""

    kernel: KernelName
    link: Link
    inducing: int | None
    inputs: InputScale
    length_scales: float | tuple[float, ...] | None
    variance: float | None
    split: float | None
    every_row: bool = False

    def check(self) -> None:
        """Refuse what cannot be meant."""
        check_kernel_name(self.kernel)
        check_input_scale(self.inputs)
        if self.inducing is not None:
            check_whole(self.inducing, "inducing", 1)
        if self.length_scales is not None:
            given = self.length_scales if isinstance(self.length_scales, tuple) else (self.length_scales,)
            if not all(_is_number(scale) and 0 < scale < np.inf for scale in given):
                meant = "a positive number, or a tuple of one for each varying parameter"
                raise InputError(f"length_scales is {meant}, not {self.length_scales!r}")
        if self.variance is not None and not (_is_number(self.variance) and 0 < self.variance < np.inf):
            raise InputError(f"variance is a positive number, not {self.variance!r}")
        if self.split is not None and not (_is_number(self.split) and 0 < self.split < 1):
            raise InputError(
                f"split is the share of points that the prior is learned from, such as 0.3, not {self.split}"
            )

    def sees_data(self, observations: Observations) -> bool:
        """Whether anything in the prior has to be learned."""
        scales_missing = self.length_scales is None and bool(observations.relevant)
        undecided_inputs = self.inputs == "auto" and scales_differ(observations)
        return scales_missing or self.variance is None or undecided_inputs

    @property
    def fixed(self) -> tuple[bool, bool]:
        """Whether length scales and variance were given."""
        return self.length_scales is not None, self.variance is not None

    def scales_of(self, observations: Observations) -> tuple[float, ...] | None:
        """The length scales that were given for the parameters that matter."""
        if self.length_scales is None:
            return None
        names = observations.space.names
        if not isinstance(self.length_scales, tuple):
            return (float(self.length_scales),) * len(observations.relevant)
        if len(self.length_scales) != len(names):
            given = f"length_scales has {len(self.length_scales)} numbers, and {len(names)} parameters vary"
            raise InputError(f"{given}: {', '.join(names)}")
        by_name = dict(zip(names, self.length_scales, strict=True))
        return tuple(float(by_name[name]) for name in observations.relevant)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Inputs and kernel, how they were found, and which rows of the observations they know nothing of.

    `values` are those of the objective on the way; `rows` is how many rows decided. `points` are inducing points that
    were moved with the kernel.
    """

    inputs: Inputs
    kernel: Kernel
    notes: tuple[str, ...]
    values: FloatArray
    rows: int
    rested: bool
    interrupted: bool
    unseen: npt.NDArray[np.bool_]
    points: FloatArray | None = None

    @property
    def fitted_rows(self) -> npt.NDArray[np.bool_]:
        """The rows that the posterior is made of: those that the prior has not seen, or all where it saw all."""
        return self.unseen if self.unseen.any() else ~self.unseen


def settle(
    observations: Observations,
    wanted: Wanted,
    recipe: Any,
    seed: int,
    inference: Inference,
    progress: Progress,
    checkpoint: File | None,
    polish: Callable[[Prior, Sample], Prior] | None = None,
) -> Prior:
    """The prior that a recipe asks for, from a checkpoint of the same fit if there is one.

    `polish` may improve the prior with the rows that its kernel was learned from.
    """
    asked = {"recipe": asdict(recipe), "class": type(recipe).__name__, "relevant": list(observations.relevant)}
    mark = checksum([observations.fingerprint, asked, int(seed)], {})
    unseen = _unseen(observations, wanted, seed)
    if checkpoint is not None and FilePath(checkpoint).exists():
        return _resumed(observations, checkpoint, mark, unseen)
    seen = observations if unseen.all() or not unseen.any() else observations[~unseen]
    choice = choose_scale(seen, wanted.inputs, seed)
    inputs = Inputs(observations.space, choice.inputs.names, choice.inputs.scales)
    sample = sample_of(seen, inputs)
    if not wanted.every_row:
        sample = some_rows(sample, KERNEL_ROWS, generator(seed, "kernel"))
    start = _start(observations, wanted, choice.kernel)
    with working(progress, f"{asked['class']}: kernel", _MOST_EVALUATIONS, "evaluations") as advance:
        climb = _climb(sample, start, wanted, inference, lambda: advance(1))
    notes = choice.notes
    if wanted.sees_data(observations) and len(sample) < len(observations):
        notes += (f"the kernel was learned from {len(sample):,} of {len(observations):,} points",)
    values = np.array(climb.values)
    prior = Prior(inputs, climb.kernel, notes, values, len(sample), climb.rested, climb.interrupted, unseen)
    if polish is not None and not prior.interrupted:
        prior = polish(prior, sample)
    if checkpoint is not None and not prior.interrupted:
        _keep(prior, checkpoint, mark)
    return prior


def _climb(sample: Sample, start: Kernel, wanted: Wanted, inference: Inference, step: Callable[[], None]) -> Climb:
    counts = Counts.of(sample, wanted.link)
    most = wanted.inducing or inducing_for(sample.x.shape[1])
    most = most if wanted.every_row else min(most, _KERNEL_INDUCING)
    sites = [Sites.guess(counts)]

    def climb(start: Kernel) -> Climb:
        points = choose_inducing(start, _spread_rows(sample.x, most), most)

        def objective(kernel: Kernel, _: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            found = inference(counts, Basis.of(kernel, points), sample.x, sites[0])
            sites[0] = found.sites
            return found.value, found.by_logs, found.by_points

        return maximise(objective, start, most=_MOST_EVALUATIONS, relative_gain=1e-5, step=step, fixed=wanted.fixed)

    first = climb(start)
    scales = np.array([first.kernel.length_scales, start.length_scales])
    if first.interrupted or not (scales[0] < 0.5 * scales[1]).any():
        return first
    try:
        second = climb(first.kernel)  # a rougher function than the inducing points were chosen for
    except KeyboardInterrupt:
        return replace(first, interrupted=True)
    return replace(second, values=(*first.values, *second.values))


def _start(observations: Observations, wanted: Wanted, found: Kernel | None) -> Kernel:
    start = first_kernel(wanted.kernel, len(observations.relevant))
    if found is not None and found.name == wanted.kernel:
        start = found
    if (scales := wanted.scales_of(observations)) is not None:
        start = replace(start, length_scales=scales)
    return start if wanted.variance is None else replace(start, variance=float(wanted.variance))


def _unseen(observations: Observations, wanted: Wanted, seed: int) -> npt.NDArray[np.bool_]:
    """The rows that the prior will not depend on."""
    if wanted.split is None:
        return np.full(len(observations), not wanted.sees_data(observations))
    rows = round(wanted.split * len(observations))
    if not 0 < rows < len(observations):
        raise InputError(f"split={wanted.split} of {len(observations)} points leaves one of the parts without any")
    unseen = np.ones(len(observations), np.bool_)
    unseen[generator(seed, "split").permutation(len(observations))[:rows]] = False
    return unseen


def _keep(prior: Prior, checkpoint: File, mark: str) -> None:
    content: dict[str, Any] = {"fit": mark, "inputs": prior.inputs.content(), "kernel": prior.kernel.content()}
    content |= {"notes": list(prior.notes), "rows": prior.rows, "rested": prior.rested}
    arrays = {"values": prior.values} | ({} if prior.points is None else {"points": prior.points})
    write_container(checkpoint, _CHECKPOINT, _VERSION, content, arrays)


def _resumed(observations: Observations, checkpoint: File, mark: str, unseen: npt.NDArray[np.bool_]) -> Prior:
    *_, content, arrays = read_container(checkpoint, {_CHECKPOINT: _VERSION})
    if content.get("fit") != mark:
        remedy = "name another file, or delete this one"
        raise InputError(f"{checkpoint} is a checkpoint of another fit: other data, recipe or seed; {remedy}")
    return Prior(
        Inputs.from_content(observations.space, content["inputs"]),
        Kernel.from_content(content["kernel"]),
        tuple(content["notes"]),
        arrays["values"],
        content["rows"],
        content["rested"],
        False,
        unseen,
        arrays.get("points"),
    )


def generator(seed: int, purpose: str) -> np.random.Generator:
    """The source of one purpose's random numbers, independent of the other purposes'."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS[purpose],)))


def some_rows(sample: Sample, most: int, rng: np.random.Generator) -> Sample:
    """At most so many rows, drawn at random, in their order."""
    return sample if len(sample) <= most else sample[np.sort(rng.permutation(len(sample))[:most])]


def _spread_rows(x: FloatArray, most: int) -> FloatArray:
    """Candidates for inducing points: evenly many of all rows."""
    candidates = max(KERNEL_ROWS, 4 * most)
    return x[:: -(-len(x) // candidates)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


@contextmanager
def working(progress: Progress, label: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Tell a watcher of a piece of work, of its end too however it comes; what is given says how much more is done."""
    progress.start(label, total, unit)
    try:
        yield progress.advance
    finally:
        progress.finish()
