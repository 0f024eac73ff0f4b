"""`learn`: a posterior by a learner of one's choice, or by the one that suits the observations, and why.

Measured on the paper's configurations and on random networks of our own (docs/learning.md): a Gaussian process is the
most accurate with up to four parameters that matter; networks are, and know how much they err, with eight or more, and
with a hundred thousand points of six parameters or more. In between, and wherever points are few for so many
parameters, the likelihood of held-out counts decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, fit_learner
from sateen.core.prediction import Learner
from sateen.core.progress import SILENT, Progress
from sateen.core.seeds import stream
from sateen.core.text import plural
from sateen.core.types import File
from sateen.learning.gp.recipes import SVIGP
from sateen.learning.inputs import check_task
from sateen.learning.networks.recipes import LaplaceNet
from sateen.learning.posterior import LearnedPosterior
from sateen.learning.registry import make_learner

_FEW_PARAMETERS: Final = 4
_MANY_PARAMETERS: Final = 8
_POINTS_A_PARAMETER: Final = 160  # and more for each of many parameters, or the comparison decides
_MANY_POINTS: Final = 100_000
_MANY_POINTS_FROM: Final = 6  # parameters, from which on many points suit a network
_POINTS_FOR_A_NETWORK: Final = 200  # with fewer, a network has nothing to hold on to
_FEWER_INDUCING: Final = 250
_FEWER_STEPS: Final = 6000
_HELD_OUT: Final = 0.1
_MOST_HELD_OUT: Final = 5000
_NEVER: Final = 1e-9  # predictions are kept this far from 0 and 1 when they are scored


def learn(
    observations: Observations,
    learner: Learner | str | None = None,
    *,
    seed: int,
    progress: Progress = SILENT,
    checkpoint: File | None = None,
) -> FullPosterior:
    """A posterior over f, by any learner: an object with `fit`, a name such as "svi-gp" or "my_package:MyLearner".

    By default the learner is the one that suits the observations, and the posterior's `record.notes` begin with which
    and why. Parameters that cannot affect the verdict are left out, and a note says so. `progress` and `checkpoint` go
    to learners that take them.
    """
    check_task(observations, seed)
    chosen = make_learner(learner) if isinstance(learner, str) else Automatic() if learner is None else learner
    return fit_learner(chosen, observations, seed=seed, progress=progress, checkpoint=checkpoint)


@dataclass(frozen=True, slots=True)
class Automatic:
    """The learner that chooses one of sateen's own by the observations; its name is "default"."""

    def fit(
        self, observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
    ) -> LearnedPosterior:
        """The posterior by the recipe that suits the observations, with a note on which and why."""
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
        return LaplaceNet(), f"{about}; with so many points networks are the most accurate"
    quick: dict[str, SVIGP | LaplaceNet] = {  # compared by a cheaper kind of each
        "the Gaussian process": SVIGP(inducing=_FEWER_INDUCING),
        "the network": LaplaceNet(nets=1, steps=_FEWER_STEPS),
    }
    scores = _held_out_scores(quick, observations, seed, progress)
    best = max(scores, key=scores.__getitem__)
    behind = scores[best] - min(scores.values())
    why = f"{about}; {best} predicts held-out counts better, by {behind:.3g} nats a point"
    return type(quick[best])(), why


def _held_out_scores(
    recipes: Mapping[str, SVIGP | LaplaceNet], observations: Observations, seed: int, progress: Progress
) -> dict[str, float]:
    """The mean log-likelihood of held-out counts under what each recipe learns from the others."""
    from scipy.special import xlog1py, xlogy

    count = min(int(len(observations) * _HELD_OUT), _MOST_HELD_OUT)
    order = stream(seed, "choice").permutation(len(observations))
    held_out, others = observations[np.sort(order[:count])], observations[np.sort(order[count:])]
    scores = {}
    for name, recipe in recipes.items():
        fitted = recipe.fit(others, seed=seed, progress=progress)
        mean = np.clip(fitted.predict(held_out.points).mean, _NEVER, 1 - _NEVER)
        scores[name] = float(np.mean(xlogy(held_out.satisfied, mean) + xlog1py(held_out.violated, -mean)))
    return scores
