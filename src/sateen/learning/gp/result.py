"""From what an inference found to the posterior that is returned, with its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from sateen.core.observations import Observations
from sateen.core.prediction import Training
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.prior import Prior
from sateen.learning.gp.sparse import Basis, Whitened
from sateen.learning.likelihood import Link
from sateen.learning.record import Objective, Record

__all__ = ["normalise_fields", "posterior_of"]


def posterior_of(
    recipe: Any,
    kind: str,
    observations: Observations,
    prior: Prior,
    basis: Basis,
    q: Whitened,
    link: Link,
    *,
    objective: Objective,
    values: Sequence[float],
    trouble: str,
    interrupted: bool,
    whole: bool,
    seconds: float,
    notes: tuple[str, ...] = (),
) -> GPPosterior:
    """The posterior of a recipe, from its prior and the belief about the whitened inducing values.

    `values` are those of the objective while the belief was found. Those met while the kernel was sought come before
    them if they are about the same rows, which `whole` says. `trouble` is what is wrong, if anything is.
    """
    shown = [*prior.values, values[-1]] if whole and values else list(values)
    ended = interrupted or prior.interrupted
    record = Record(
        objective,
        np.arange(1.0, len(shown) + 1.0),
        np.array(shown),
        _verdict(prior, trouble, ended),
        seconds,
        ended,
        (*prior.notes, *notes),
    )
    spread = solve_triangular(q.root, np.eye(len(q.mean)), lower=True, trans=1, check_finite=False)
    return GPPosterior(
        recipe,
        Training(observations),
        prior.inputs,
        record,
        kind=kind,
        kernel=prior.kernel,
        offset=0.0,
        link=link,
        points=basis.points,
        factor=basis.factor,
        mean=q.mean,
        spread=spread,
        unseen=prior.unseen,
    )


def _verdict(prior: Prior, trouble: str, interrupted: bool) -> str:
    if interrupted:
        return "interrupted by Ctrl-C: the best so far; fit again, with a checkpoint, for the rest"
    if not prior.rested:
        evaluations = f"when the search for the kernel ended after {len(prior.values)} evaluations"
        return f"the objective still rose {evaluations}; give length_scales and variance, or more points"
    return trouble or "converged"


def normalise_fields(recipe: Any) -> None:
    """Turn numbers of numpy's, and lists, in a frozen recipe into plain numbers and tuples, which files keep."""
    for field in fields(recipe):
        object.__setattr__(recipe, field.name, _plain(getattr(recipe, field.name)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
