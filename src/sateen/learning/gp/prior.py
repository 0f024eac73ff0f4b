"""What a Gaussian process believes before it is fitted: its inputs and its kernel, and where they come from.

They are given, or learned: from all observations, or from a random part of them, so that the prior has not seen the
rest. Either way the counts of at most 4,000 rows decide; more do not change a handful of numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.core.progress import Progress, working
from sateen.core.record import Objective, Record
from sateen.core.seeds import stream
from sateen.core.types import Array, File, FloatArray
from sateen.learning.checkpoint import Checkpoint
from sateen.learning.gp.hyper import Climb, first_kernel, maximise
from sateen.learning.gp.hyper import Objective as KernelObjective
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.recipes import EPGP, SVIGP, FaithfulEPGP
from sateen.learning.gp.sparse import Basis, Whitened, choose_inducing, inducing_for
from sateen.learning.gp.variational import Inference, objective_of
from sateen.learning.inputs import Inputs, Sample, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.scale import choose_inputs, scales_differ
from sateen.learning.settings import KernelName, Link

KERNEL_ROWS: Final = 4000
_KERNEL_INDUCING: Final = 200  # are enough to learn a kernel with
MOST_EVALUATIONS: Final = 100
COPIES: Final = 5  # of the table of features that are in memory at a time
# The best kernel for a sample, given the one that the comparison of scales found, if there was any; it calls at each
# evaluation.
Search: TypeAlias = "Callable[[Sample, Kernel | None, Callable[[], None]], Climb]"


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """A belief q about the whitened inducing values, and how it was found.

    `values` are those of the objective on the way; `trouble` is what is wrong, if anything is.
    """

    q: Whitened
    values: tuple[float, ...]
    trouble: str
    interrupted: bool
    notes: tuple[str, ...] = ()


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

    def posterior(
        self,
        recipe: EPGP | SVIGP | FaithfulEPGP,
        kind: str,
        observations: Observations,
        basis: Basis,
        inferred: Inferred,
        *,
        link: Link,
        objective: Objective,
        whole: bool,
        began: float,
    ) -> GPPosterior:
        """The posterior of a recipe that has this prior, from what was inferred since the time `began`.

        The values met while the kernel was sought come before the others if they are about the same rows, which `whole`
        says.
        """
        q, values = inferred.q, inferred.values
        shown = [*self.values, values[-1]] if whole and values else list(values)
        ended = inferred.interrupted or self.interrupted
        steps, verdict = np.arange(1.0, len(shown) + 1.0), self._verdict(inferred.trouble, ended)
        seconds, notes = time.perf_counter() - began, (*self.notes, *inferred.notes)
        return GPPosterior(
            recipe,
            Training(observations),
            self.inputs,
            Record(objective, steps, np.array(shown), verdict, seconds, ended, notes),
            kind=kind,
            kernel=self.kernel,
            offset=0.0,
            link=link,
            points=basis.points,
            factor=basis.factor,
            mean=q.mean,
            spread=solve_triangular(q.root, np.eye(len(q.mean)), lower=True, trans=1, check_finite=False),
            unseen=self.unseen,
        )

    def _verdict(self, trouble: str, interrupted: bool) -> str:
        if interrupted:
            return "interrupted by Ctrl-C: the best so far; fit again, with a checkpoint, for the rest"
        if not self.rested:
            evaluations = f"when the search for the kernel ended after {len(self.values)} evaluations"
            return f"the objective still rose {evaluations}; give length_scales and variance, or more points"
        return trouble or "converged"

    def parts(self) -> tuple[dict[str, object], dict[str, Array]]:
        """What a checkpoint keeps of it."""
        content = {"inputs": self.inputs.content(), "kernel": asdict(self.kernel), "notes": list(self.notes)}
        arrays = {"values": self.values} | ({} if self.points is None else {"points": self.points})
        return {**content, "rows": self.rows, "rested": self.rested}, arrays


def fit_prior(
    observations: Observations,
    recipe: EPGP | SVIGP,
    seed: int,
    inference: Inference,
    progress: Progress,
    checkpoint: File | None,
    *,
    link: Link = "probit",
    every_row: bool = False,
    polish: Callable[[Prior, Sample], Prior] | None = None,
) -> Prior:
    """The prior that a recipe asks for, from a checkpoint of the same fit if there is one.

    The kernel is learned from some of the rows, or from `every_row`. `polish` may improve the prior with the rows that
    its kernel was learned from.
    """

    def search(sample: Sample, compared: Kernel | None, step: Callable[[], None]) -> Climb:
        most = recipe.inducing or inducing_for(sample.x.shape[1])
        most = most if every_row else min(most, _KERNEL_INDUCING)
        objective = objective_of(inference, Counts.of(sample, link), sample.x)
        climb = partial(maximise, fixed=fixed(recipe), most=MOST_EVALUATIONS, relative_gain=1e-5, step=step)
        return _climb(climb, objective, sample.x, most, first_of(recipe, observations, recipe.kernel, compared))

    return prior_of(observations, recipe, seed, search, progress, checkpoint, every_row=every_row, polish=polish)


def prior_of(
    observations: Observations,
    recipe: EPGP | SVIGP | FaithfulEPGP,
    seed: int,
    search: Search,
    progress: Progress,
    checkpoint: File | None,
    *,
    every_row: bool = False,
    polish: Callable[[Prior, Sample], Prior] | None = None,
) -> Prior:
    """As `fit_prior`, with the kernel that a search finds."""
    name = type(recipe).__name__
    settings = {setting: value for setting, value in asdict(recipe).items() if setting != "device"}
    kept = Checkpoint.of(checkpoint, name, settings, observations.fingerprint, list(observations.relevant), int(seed))
    unseen = _unseen(observations, recipe, seed)
    if (stored := kept.read()) is not None:
        content, arrays = stored
        return Prior(
            Inputs.from_content(observations.space, content["inputs"]),
            Kernel(**content["kernel"]),
            tuple(content["notes"]),
            arrays["values"],
            content["rows"],
            content["rested"],
            False,
            unseen,
            arrays.get("points"),
        )
    seen = observations if unseen.all() or not unseen.any() else observations[~unseen]
    with working(progress, f"{name}: kernel", MOST_EVALUATIONS, "evaluations"):
        inputs, notes, compared = choose_inputs(seen, recipe.inputs, seed, partial(progress.advance, 0))
        sample = sample_of(seen, inputs)
        if not every_row:
            sample = sample.some(KERNEL_ROWS, stream(seed, "kernel"))
        climb = search(sample, compared, partial(progress.advance, 1))
    if _sees_data(recipe, observations) and len(sample) < len(observations):
        notes += (f"the kernel was learned from {len(sample):,} of {len(observations):,} points",)
    values = np.array(climb.values)
    prior = Prior(inputs, climb.kernel, notes, values, len(sample), climb.rested, climb.interrupted, unseen)
    if polish is not None and not prior.interrupted:
        prior = polish(prior, sample)
    if not prior.interrupted:
        kept.write(*prior.parts())
    return prior


def fixed(recipe: EPGP | SVIGP | FaithfulEPGP) -> tuple[bool, bool]:
    """Whether length scales and variance were given."""
    return recipe.length_scales is not None, recipe.variance is not None


def inducing_among(recipe: EPGP | SVIGP, kernel: Kernel, x: FloatArray, seed: int) -> FloatArray:
    """The inducing points, chosen among the rows, or among a random part of them where they are many."""
    most = recipe.inducing or inducing_for(x.shape[1])
    candidates = stream(seed, "inducing").permutation(len(x))[: max(KERNEL_ROWS, 4 * most)]
    return choose_inducing(kernel, x[np.sort(candidates)], most)


def check_memory(recipe: EPGP | SVIGP, observations: Observations, most: float, what: str, limit: str) -> None:
    """Refuse what would take more than this many bytes for the features of all rows; `limit` says it is too much."""
    points = min(recipe.inducing or inducing_for(len(observations.relevant)), len(observations))
    needed, size = COPIES * 8.0 * len(observations) * points, f"{len(observations):,} points"
    if needed > most:
        raise InputError(f"{what} needs {needed / 1e9:.3g} GB for {size} and {points:,} inducing points, and {limit}")


def _sees_data(recipe: EPGP | SVIGP | FaithfulEPGP, observations: Observations) -> bool:
    """Whether anything in the prior has to be learned."""
    scales_missing = recipe.length_scales is None and bool(observations.relevant)
    undecided_inputs = recipe.inputs == "auto" and scales_differ(observations)
    return scales_missing or recipe.variance is None or undecided_inputs


def _scales_of(recipe: EPGP | SVIGP | FaithfulEPGP, observations: Observations) -> tuple[float, ...] | None:
    """The length scales that were given for the parameters that matter."""
    given, names = recipe.length_scales, observations.space.names
    if given is None:
        return None
    if not isinstance(given, tuple):
        return (float(given),) * len(observations.relevant)
    if len(given) != len(names):
        raise InputError(
            f"length_scales has {len(given)} numbers, and {len(names)} parameters vary: {', '.join(names)}"
        )
    by_name = dict(zip(names, given, strict=True))
    return tuple(float(by_name[name]) for name in observations.relevant)


def _climb(
    search: Callable[[KernelObjective, Kernel], Climb],
    objective: KernelObjective,
    x: FloatArray,
    most: int,
    start: Kernel,
) -> Climb:
    """The best kernel, with inducing points among evenly many of all rows."""
    candidates = x[:: -(-len(x) // max(KERNEL_ROWS, 4 * most))]

    def climb(start: Kernel) -> Climb:
        points = choose_inducing(start, candidates, most)
        return search(lambda kernel, _: objective(kernel, points), start)

    first = climb(start)
    scales = np.array([first.kernel.length_scales, start.length_scales])
    if first.interrupted or not (scales[0] < 0.5 * scales[1]).any():
        return first
    try:
        second = climb(first.kernel)  # a rougher function than the inducing points were chosen for
    except KeyboardInterrupt:
        return replace(first, interrupted=True)
    return replace(second, values=(*first.values, *second.values))


def first_of(
    recipe: EPGP | SVIGP | FaithfulEPGP, observations: Observations, name: KernelName, compared: Kernel | None
) -> Kernel:
    """Where the search for the kernel begins: where the comparison of scales ended, if it was of the same kind."""
    start = first_kernel(name, len(observations.relevant))
    if compared is not None and compared.name == name:
        start = compared
    if (scales := _scales_of(recipe, observations)) is not None:
        start = replace(start, length_scales=scales)
    return start if recipe.variance is None else replace(start, variance=float(recipe.variance))


def _unseen(observations: Observations, recipe: EPGP | SVIGP | FaithfulEPGP, seed: int) -> npt.NDArray[np.bool_]:
    """The rows that the prior will not depend on."""
    if recipe.split is None:
        return np.full(len(observations), not _sees_data(recipe, observations))
    rows = round(recipe.split * len(observations))
    if not 0 < rows < len(observations):
        raise InputError(f"split={recipe.split} of {len(observations)} points leaves one of the parts without any")
    unseen = np.ones(len(observations), np.bool_)
    unseen[stream(seed, "split").permutation(len(observations))[:rows]] = False
    return unseen
