"""One calibration for several properties: the same points and runs, and for each property the rank that suits it.

Each property has a plan of its own. The runs are shared, so one plan must decide how many points and runs there are:
with a budget that of the property whose intervals would be widest, with a width that of the dearest. The others keep
their normaliser, and get the rank with which the rehearsal finds their intervals narrowest on those points and runs.
All of it is fixed before the calibration is observed, so every guarantee holds as if it were the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from sateen.core.posterior import FullPosterior
from sateen.guarantee.lift import lift_miss
from sateen.guarantee.plan import Plan, plan, plan_of
from sateen.guarantee.rehearsal import rehearse
from sateen.study.spec import Calibration, GuaranteeSpec

__all__ = ["plan_from_content", "shared_plans"]

_NO_BETTER: Final = 1.1  # times the narrowest width so far: there the search for a rank ends


def shared_plans(
    posteriors: Mapping[str, FullPosterior], calibration: Calibration, spec: GuaranteeSpec, *, seed: int
) -> dict[str, Plan]:
    """A plan for each property, all with the same points and runs."""
    plans = {
        name: plan(
            posterior,
            width=calibration.width,
            budget=calibration.budget,
            level=spec.level,
            confidence=spec.confidence,
            normaliser=spec.normaliser,
            seed=seed,
        )
        for name, posterior in posteriors.items()
    }
    leader = max(plans.values(), key=lambda each: each.width if calibration.width is None else each.budget)
    return {name: _moved(each, leader, posteriors[name], seed) for name, each in plans.items()}


def _moved(original: Plan, leader: Plan, posterior: FullPosterior, seed: int) -> Plan:
    """The plan with the points and runs of the leader, and the rank that suits them."""
    points, runs = leader.points, leader.runs
    if (original.points, original.runs) == (points, runs):
        return original
    stage = rehearse(posterior, seed)
    level, confidence = original.level, original.confidence
    best: Plan | None = None
    for rank in range(1, points + 1):
        if lift_miss(points, rank, 1.0 - level, confidence) is None:
            break
        tried = plan_of(stage, points, runs, rank, original.normaliser, level, confidence)
        if best is None or tried.width < best.width:
            best = tried
        elif tried.width > _NO_BETTER * best.width:
            break
    assert best is not None  # the leader's points are enough for the rank 1, for level and confidence are the same
    return best


def plan_from_content(content: Mapping[str, Any]) -> Plan:
    """The plan whose `content()` was kept."""
    stored = {field.name: content[field.name] for field in fields(Plan)}
    seconds = float("nan") if stored["seconds"] is None else stored["seconds"]
    return Plan(**{**stored, "likely": tuple(stored["likely"]), "seconds": seconds})
