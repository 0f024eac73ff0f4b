"""One calibration for several properties: the same points and runs, and for each property the rank that suits it.

Each property has a plan of its own. The runs are shared, so one plan must decide how many points and runs there are:
with a budget that of the property whose intervals would be widest, with a width that of the dearest. The others keep
their normaliser, and get the rank with which the rehearsal finds their intervals narrowest on those points and runs.
All of it is fixed before the calibration is observed, so every guarantee holds as if it were the only one.
"""

from __future__ import annotations

from collections.abc import Mapping

from sateen.core.posterior import FullPosterior
from sateen.guarantee.plan import Plan, plan, resized
from sateen.study.spec import Calibration, GuaranteeSpec


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
    return {
        name: resized(each, posteriors[name], leader.points, leader.runs, seed=seed) for name, each in plans.items()
    }
