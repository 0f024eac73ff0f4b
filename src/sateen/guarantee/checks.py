"""The conditions of a guarantee that the program checks, so that the user need not.

Each refusal says what is wrong, why it matters, and what would work.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError, SateenError
from sateen.core.observations import QUESTION, Observations
from sateen.core.posterior import FullPosterior, complete, fit_learner, training_of
from sateen.core.prediction import Learner, Posterior
from sateen.core.space import Points
from sateen.core.types import Array


def check_posterior(posterior: Posterior) -> FullPosterior:
    """The posterior with every ability; what does not predict, or has a guarantee already, is refused."""
    if hasattr(posterior, "claim") and hasattr(posterior, "posterior"):
        raise InputError("this is a guarantee already; give the posterior that it was made from, its `posterior`")
    if not isinstance(posterior, Posterior):
        raise InputError(f"a guarantee is made from a posterior, not from a {type(posterior).__name__}; see st.learn")
    return complete(posterior)


def check_held_out(held_out: object, posterior: Posterior) -> None:
    """Observations that a guarantee of the posterior can rest on: independent, fresh, in its space, with runs.

    Only a posterior that keeps its training lets us check that they are fresh.
    """
    if not isinstance(held_out, Observations):
        problem = f"{{held_out}} are Observations, not a {type(held_out).__name__}; see st.observe"
        raise InputError(problem, argument="held_out")
    if held_out.space != posterior.space:
        raise InputError(
            f"{{held_out}} is drawn from another space than the posterior's, where it would prove nothing:\n"
            f"  {held_out.space!r}\n  {posterior.space!r}",
            argument="held_out",
        )
    if not held_out.trials.any():
        raise InputError("{held_out} has no runs", argument="held_out", remedy="observe some points first")
    check_independent(held_out, "{held_out}")
    training = training_of(posterior)
    if training is not None:
        check_fresh(held_out, training.observations)


def check_independent(observations: Observations, name: str) -> None:
    """Points that were drawn independently, and uniformly in the space: on nothing else does a guarantee rest."""
    elsewhere = "if these were drawn so elsewhere, say so: st.Observations.from_counts(..., design='uniform')"
    check_uniform(observations.points, name, f"observe space.uniform(n, seed=...); {elsewhere}")


def check_uniform(points: Points, name: str, remedy: str) -> None:
    """Refuse a design that is not one of independent draws."""
    if not points.iid:
        problem = (
            f"{name} has the design {points.design!r}, and a guarantee rests on points that were drawn independently"
        )
        raise InputError(problem, argument="design", remedy=remedy)


def check_fresh(held_out: Observations, training: Observations) -> None:
    """No point and no run of the training, and the same question."""
    if all("model" in each.provenance for each in (held_out, training)):
        for key in QUESTION:
            mine, its = held_out.provenance.get(key), training.provenance.get(key)
            if mine != its:
                problem = f"{{held_out}} and training differ in their {key}:\n  {mine}\n  {its}"
                raise InputError(problem, argument="held_out", remedy="observe the same")
    known = held_out.origin[:, 0] >= 0
    if (shared := _among(held_out.origin, training.origin) & known).any():
        seed = int(held_out.origin[np.argmax(shared), 0])
        raise InputError(
            f"{{held_out}} shares the seed {seed} with the training: the random numbers of its runs are the same",
            argument="held_out",
            remedy="observe it with another seed",
        )
    check_new(held_out.points, training.theta, "{held_out}")


def check_new(points: Points, training: Array, name: str) -> None:
    """Refuse a point of the training; without a parameter that varies, all points are the same, and allowed."""
    if points.space.names and (seen := _among(points.theta, training)).any():
        raise InputError(
            f"row {int(np.argmax(seen))} of {name} is a point of the training, which the posterior has seen",
            argument=name.strip("{}"),
            remedy="draw new points, with a seed of their own",
        )


def learner_of(posterior: Posterior) -> Learner | None:
    """The learner that can be fitted to parts of the posterior's training; None where one of the two is missing."""
    try:
        learner: object = complete(posterior).recipe
    except InputError:
        return None
    return learner if isinstance(learner, Learner) and training_of(posterior) is not None else None


def refitted(learner: Learner, part: Observations, seed: int, work: str, remedy: str = "") -> FullPosterior:
    """What a learner learns from a part of its training; an error names the work and a remedy."""
    try:
        return fit_learner(learner, part, seed=seed)
    except SateenError as error:
        problem = f"{work} fits the learner to parts of the training: {error}"
        raise InputError(problem, argument="normaliser" if remedy else "", remedy=remedy) from error


def _among(rows: Array, others: Array) -> npt.NDArray[np.bool_]:
    """For each row, whether it is one of the others, to the last bit."""

    def whole(table: Array) -> Array:
        return np.ascontiguousarray(table).view(f"V{table.dtype.itemsize * table.shape[1]}").ravel()

    return np.isin(whole(rows), whole(others))
