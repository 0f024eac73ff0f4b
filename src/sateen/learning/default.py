"""`learn`: a posterior by a learner of one's choice, or by the one that suits the observations, and why.

Measured on the paper's configurations and on random networks of our own (docs/learning.md): a Gaussian process is the
most accurate with up to four parameters that matter; networks are, and know how much they err, with eight or more, and
with a hundred thousand points of six parameters or more. In between, and wherever points are few for so many
parameters, the likelihood of held-out counts decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, fit_learner
from sateen.core.prediction import Learner
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.registry import load_object
from sateen.core.seeds import stream
from sateen.core.text import plural
from sateen.core.types import Array, File, FloatArray
from sateen.learning.gp.recipes import SVIGP
from sateen.learning.inputs import check_task
from sateen.learning.networks.recipes import LaplaceNet
from sateen.learning.posterior import LearnedPosterior
from sateen.learning.registry import make_learner

HeldOutMean: TypeAlias = Callable[[Observations, Array, int, Progress], FloatArray]  # f where a mask hides the counts
_FEW_PARAMETERS: Final = 4
_MANY_PARAMETERS: Final = 8
_POINTS_A_PARAMETER: Final = 160  # and more for each of many parameters, or the comparison decides
_MANY_POINTS: Final = 100_000
_MANY_POINTS_FROM: Final = 6  # parameters, from which on many points suit a network
_POINTS_FOR_A_NETWORK: Final = 200  # with fewer, a network has nothing to hold on to
_QUICK_ROWS: Final = 8000  # that the process of a comparison sees; its inducing points limit it, not they
_QUICK_INDUCING: Final = 250
_KERNEL_ROWS: Final = 2000  # that the kernel of a comparison is learned from
_KERNEL_INDUCING: Final = 100
_QUICK_STEPS: Final = 4000
_HELD_OUT: Final = 0.1
_MOST_HELD_OUT: Final = 5000
_NEVER: Final = 1e-9  # predictions are kept this far from 0 and 1 when they are scored


def learn(
    observations: Observations,
    learner: Learner | str | None = None,
    *,
    seed: int,
    progress: Progress | None = USUAL,
    checkpoint: File | None = None,
) -> FullPosterior:
    """A posterior over f, by any learner: an object with `fit`, a name such as "svi-gp" or "my_package:MyLearner".

    By default sateen chooses the learner by the observations, and the first of the posterior's `record.notes` says
    which and why. Parameters that cannot affect the verdict are left out, and a note says so. `progress` and
    `checkpoint` are passed to learners that take them.
    """
    progress = watcher(progress)
    check_task(observations, seed)
    chosen = make_learner(learner) if isinstance(learner, str) else Automatic() if learner is None else learner
    return fit_learner(chosen, observations, seed=seed, progress=progress, checkpoint=checkpoint)


@dataclass(frozen=True, slots=True)
class Automatic:
    """The learner that chooses one of sateen's own by the observations; its name is "default"."""

    def fit(
        self,
        observations: Observations,
        *,
        seed: int,
        progress: Progress | None = USUAL,
        checkpoint: File | None = None,
    ) -> LearnedPosterior:
        """The posterior by the recipe that suits the observations, with a note on which and why."""
        progress = watcher(progress)
        check_task(observations, seed)
        recipe, why = _chosen(observations, seed, progress)
        posterior: LearnedPosterior = recipe.fit(observations, seed=seed, progress=progress, checkpoint=checkpoint)
        notes = (f"{posterior.kind}: {why}", *posterior.record.notes)
        return replace(posterior, record=replace(posterior.record, notes=notes))


def _chosen(observations: Observations, seed: int, progress: Progress) -> tuple[SVIGP | LaplaceNet, str]:
    parameters = len(observations.relevant)
    points = int((observations.trials > observations.undecided).sum())
    matter = "1 parameter that matters" if parameters == 1 else f"{parameters} parameters that matter"
    about = f"{plural(points, 'point')}, {matter}"
    if parameters <= _FEW_PARAMETERS:
        return SVIGP(), f"{about}; with up to {_FEW_PARAMETERS} a Gaussian process is the most accurate"
    if points < _POINTS_FOR_A_NETWORK:
        return SVIGP(), f"{about}; a network needs at least {_POINTS_FOR_A_NETWORK} points"
    if parameters >= _MANY_PARAMETERS and points >= _POINTS_A_PARAMETER * parameters:
        return LaplaceNet(), f"{about}; with {_MANY_PARAMETERS} or more networks are the most accurate"
    if parameters >= _MANY_POINTS_FROM and points >= _MANY_POINTS:
        return LaplaceNet(), f"{about}; with this many points networks are the most accurate"
    ways = {"the Gaussian process": _by_process, "the network": _by_network}
    scores = _held_out_scores(ways, observations, seed, progress)
    best = max(scores, key=scores.__getitem__)
    behind = scores[best] - min(scores.values())
    why = f"{about}; {best} predicts held-out counts better, by {behind:.3g} in log score a point"
    return (LaplaceNet() if best == "the network" else SVIGP()), why


def _held_out_scores(
    ways: Mapping[str, HeldOutMean], observations: Observations, seed: int, progress: Progress
) -> dict[str, float]:
    """The mean log-likelihood of held-out counts under what each way learns from the others."""
    from scipy.special import xlog1py, xlogy

    known = observations[observations.trials > observations.undecided]
    count = min(int(len(known) * _HELD_OUT), _MOST_HELD_OUT)
    hidden = np.zeros(len(known), np.bool_)
    hidden[stream(seed, "choice").permutation(len(known))[:count]] = True
    scores, held_out = {}, known[hidden]
    for name, way in ways.items():
        mean = np.clip(way(known, hidden, seed, progress), _NEVER, 1 - _NEVER)
        scores[name] = float(np.mean(xlogy(held_out.satisfied, mean) + xlog1py(held_out.violated, -mean)))
    return scores


def _by_process(observations: Observations, hidden: Array, seed: int, progress: Progress) -> FloatArray:
    """By a process with few inducing points, and a kernel that is learned from fewer rows still."""
    order = stream(seed, "quick").permutation(np.flatnonzero(~hidden))
    few, more = (observations[np.sort(order[:count])] for count in (_KERNEL_ROWS, _QUICK_ROWS))
    first = SVIGP(inducing=_KERNEL_INDUCING, floor=False).fit(few, seed=seed, progress=progress)
    second = replace(first, recipe=SVIGP(inducing=_QUICK_INDUCING, floor=False))
    return second.updated(more, seed=seed, progress=progress).predict(observations.points[hidden]).mean


def _by_network(observations: Observations, hidden: Array, seed: int, progress: Progress) -> FloatArray:
    """By one network that is trained for fewer steps. JAX compiles them as for LaplaceNet itself, which saves that."""
    mean: Callable[..., FloatArray] = load_object("sateen.learning.networks.laplace_net:held_out_mean")  # type: ignore[assignment]
    return mean(LaplaceNet(nets=1, steps=_QUICK_STEPS), observations, hidden, seed, progress)
