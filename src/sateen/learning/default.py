"""`learn`: which recipe suits the observations, and why.

Measured on the paper's configurations and on random networks of our own (docs/learning.md): a Gaussian process is the
most accurate with up to four parameters that matter; networks are, and know how much they err, with eight or more, and
with a hundred thousand points of six parameters or more. In between, and wherever points are few for so many
parameters, the likelihood of held-out counts decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from scipy.special import xlog1py, xlogy

from sateen.core.observations import Observations
from sateen.core.progress import SILENT, Progress
from sateen.core.types import File
from sateen.learning.gp.svi_gp import SVIGP
from sateen.learning.inputs import check_task

if TYPE_CHECKING:
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["learn"]

Recipe: TypeAlias = Any
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
    observations: Observations, *, seed: int, progress: Progress = SILENT, checkpoint: File | None = None
) -> LearnedPosterior:
    """A posterior over f by the recipe that suits the observations; its `record.notes` begin with which and why.

    Parameters that cannot affect the verdict are left out, and a note says so.
    """
    check_task(observations, seed)
    recipe, why = _chosen(observations, seed, progress)
    posterior: LearnedPosterior = recipe.fit(observations, seed=seed, progress=progress, checkpoint=checkpoint)
    notes = (f"{posterior.kind}: {why}", *posterior.record.notes)
    return replace(posterior, record=replace(posterior.record, notes=notes))


def _chosen(observations: Observations, seed: int, progress: Progress) -> tuple[Recipe, str]:
    parameters = len(observations.relevant)
    points = int((observations.trials > observations.undecided).sum())
    matter = "1 parameter that matters" if parameters == 1 else f"{parameters} parameters that matter"
    about = f"{points:,} point{'' if points == 1 else 's'}, {matter}"
    if parameters <= _FEW_PARAMETERS:
        return SVIGP(), f"{about}; with up to {_FEW_PARAMETERS} a Gaussian process is the most accurate"
    if points < _POINTS_FOR_A_NETWORK:
        return SVIGP(), f"{about}; a network needs at least {_POINTS_FOR_A_NETWORK} points"

    from sateen.learning.networks.laplace_net import LaplaceNet

    if parameters >= _MANY_PARAMETERS and points >= _POINTS_A_PARAMETER * parameters:
        return LaplaceNet(), f"{about}; with {_MANY_PARAMETERS} or more networks are the most accurate"
    if parameters >= _MANY_POINTS_FROM and points >= _MANY_POINTS:
        return LaplaceNet(), f"{about}; with so many points networks are the most accurate"
    rivals: dict[str, tuple[Recipe, Callable[[], Recipe]]] = {  # compared by a cheaper kind of each
        "the Gaussian process": (SVIGP(inducing=_FEWER_INDUCING), SVIGP),
        "the network": (LaplaceNet(nets=1, steps=_FEWER_STEPS), LaplaceNet),
    }
    scores = _held_out_scores({name: quick for name, (quick, _) in rivals.items()}, observations, seed, progress)
    best = max(scores, key=scores.__getitem__)
    behind = scores[best] - min(scores.values())
    return rivals[best][1](), f"{about}; {best} predicts held-out counts better, by {behind:.3g} nats a point"


def _held_out_scores(
    recipes: dict[str, Recipe], observations: Observations, seed: int, progress: Progress
) -> dict[str, float]:
    """The mean log-likelihood of held-out counts under what each recipe learns from the others."""
    count = min(int(len(observations) * _HELD_OUT), _MOST_HELD_OUT)
    order = np.random.default_rng(seed).permutation(len(observations))
    held_out, others = observations[np.sort(order[:count])], observations[np.sort(order[count:])]
    scores = {}
    for name, recipe in recipes.items():
        fitted = recipe.fit(others, seed=seed, progress=progress)
        mean = np.clip(fitted.predict(held_out.points).mean, _NEVER, 1 - _NEVER)
        scores[name] = float(np.mean(xlogy(held_out.satisfied, mean) + xlog1py(held_out.violated, -mean)))
    return scores
