"""The conditions of a guarantee that the program checks, so that the user need not.

Each refusal says what is wrong, why it matters, and what would do.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Posterior

__all__ = ["check_fresh", "check_held_out", "check_independent", "check_posterior", "check_share", "one_number_of_runs"]

_ASKED: Final = ("model", "formula", "end")


def check_share(value: Any, name: str, example: str) -> float:
    """`value` as a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise InputError(f"{name} is a number between 0 and 1, such as {example}, not {value!r}")
    return float(value)


def check_posterior(posterior: Any) -> None:
    """It predicts, and tells what it learned from; and no guarantee was made of it yet."""
    if hasattr(posterior, "claim") and hasattr(posterior, "posterior"):
        raise InputError("this is a guarantee already; give the posterior that it was made from, its `posterior`")
    if not (hasattr(posterior, "predict") and hasattr(posterior, "training")):
        raise InputError(f"a guarantee is made from a posterior, not from a {type(posterior).__name__}; see st.learn")


def check_held_out(held_out: Any, posterior: Posterior) -> None:
    """Observations that a guarantee of the posterior can rest on: independent, fresh, in its space, with runs."""
    if not isinstance(held_out, Observations):
        raise InputError(f"held_out are Observations, not a {type(held_out).__name__}; see st.observe")
    if held_out.space != posterior.space:
        raise InputError(
            f"held_out is drawn from another space than the posterior's, where it would prove nothing:\n"
            f"  {held_out.space!r}\n  {posterior.space!r}"
        )
    if not held_out.trials.any():
        raise InputError("held_out has no runs; observe some points: st.observe(model, formula, points, runs=...)")
    check_independent(held_out, "held_out")
    check_fresh(held_out, posterior.training.observations)


def check_independent(observations: Observations, name: str) -> None:
    """Points that were drawn independently, and uniformly in the space: on nothing else does a guarantee rest."""
    if not observations.points.iid:
        raise InputError(
            f"{name} has the design {observations.points.design!r}, and a guarantee rests on points that were drawn "
            "independently\n"
            "  observe space.uniform(n, seed=...); if these were drawn so elsewhere, say so: "
            "st.Observations.from_counts(..., design='uniform')"
        )


def check_fresh(held_out: Observations, training: Observations) -> None:
    """No point and no run of the training, and the same question."""
    if all("model" in each.provenance for each in (held_out, training)):
        for key in _ASKED:
            mine, its = held_out.provenance.get(key), training.provenance.get(key)
            if mine != its:
                raise InputError(f"held_out and training differ in their {key}:\n  {mine}\n  {its}\n  observe the same")
    known = held_out.origin[:, 0] >= 0
    if (shared := _among(held_out.origin, training.origin) & known).any():
        seed = int(held_out.origin[np.argmax(shared), 0])
        raise InputError(
            f"held_out shares the seed {seed} with the training: the random numbers of its runs are the same\n"
            "  observe it with another seed"
        )
    # Without a parameter that varies, all points are the same.
    if held_out.space.names and (seen := _among(held_out.theta, training.theta)).any():
        raise InputError(
            f"row {int(np.argmax(seen))} of held_out is a point of the training, which the posterior has seen\n"
            "  draw the points anew: space.uniform(n, seed=...), with a seed of their own"
        )


def one_number_of_runs(held_out: Observations, method: str) -> int:
    """The runs per point, where a method needs the same number at all of them."""
    numbers = np.unique(held_out.trials)
    if len(numbers) > 1:
        several = " and ".join(f"{number:,}" for number in numbers[:2]) if len(numbers) == 2 else _between(numbers)
        raise InputError(
            f"held_out mixes {several} runs per point; {method} needs one number\n"
            "  observe all points with the same runs, or take method='lift', which can do without"
        )
    return int(numbers[0])


def _among(rows: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """For each row, whether it is one of the others, to the last bit."""

    def whole(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(table).view(f"V{table.dtype.itemsize * table.shape[1]}").ravel()

    return np.isin(whole(rows), whole(others))


def _between(numbers: Any) -> str:
    return f"{numbers[0]:,} to {numbers[-1]:,}"
