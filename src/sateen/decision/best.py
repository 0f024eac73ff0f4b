"""The result of `optimise`, and the request for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal, TypeAlias

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Claim, Learner
from sateen.core.text import plural, values_text
from sateen.decision.contest import value_runs
from sateen.decision.optimum import Limit, OptimumStrategy
from sateen.decision.planning import least_points
from sateen.decision.refine import Running
from sateen.decision.rounds import Question, Round
from sateen.decision.tolerance import Tolerance

By: TypeAlias = Literal["fresh", "cells"]
HALF: Final = 0.4  # of the gap is the half-width of the value's interval


@dataclass(frozen=True, slots=True)
class ConstraintResult:
    """What fresh runs say of a constraint at the best point.

    `bound` is the one-sided bound of the claim, above the `estimate` for "<=" and below it for ">="; the constraint
    `holds` if the bound satisfies it.
    """

    sense: Literal["<=", ">="]
    limit: float
    estimate: float
    bound: float
    holds: bool
    claim: Claim


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestPoint:
    """The parameters `theta` for which a property is most probable, or least, as `optimise` found them.

    `value` is the frequency among fresh runs at this point, and [`lower`, `upper`] is the interval of the first of
    `claims`. The other claims are about the regret and the constraints. All claims hold together with the requested
    confidence. `regret` is how much better other parameters may be, or None if nothing is claimed about it. `reason`
    says why the search ended, and why a claim is missing. `runs` counts all runs, including those of the search.
    """

    theta: dict[str, float]
    value: float
    lower: float
    upper: float
    claims: tuple[Claim, ...]
    regret: float | None
    constraints: Mapping[str, ConstraintResult]
    posterior: FullPosterior
    observations: Observations
    rounds: tuple[Round, ...]
    runs: int
    reason: str
    minimise: bool = False
    posteriors: Mapping[str, FullPosterior] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether a bound on the regret is claimed and every constraint holds."""
        return self.regret is not None and all(each.holds for each in self.constraints.values())

    def __str__(self) -> str:
        kind = "least" if self.minimise else "largest"
        value = f"{self.value:.4g} there, between {self.lower:.4g} and {self.upper:.4g}"
        lines = [f"{kind} at {_values(self.theta)}: {value}"]
        if self.regret is None:
            lines.append("nothing is claimed about what may be better")
        for name, each in self.constraints.items():
            word = "holds" if each.holds else "is not shown"
            lines.append(f"{name} {each.sense} {each.limit:g} {word}: {each.estimate:.4g}, bound {each.bound:.4g}")
        lines += [str(claim) for claim in self.claims]
        return "; ".join([*lines, f"{plural(self.runs, 'run')}; {self.reason}"]) + "."

    def __repr__(self) -> str:
        return f"<BestPoint {_values(self.theta)}: {self.value:.4g} in [{self.lower:.4g}, {self.upper:.4g}]>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{each:.6g}</td></tr>" for name, each in self.theta.items())
        claims = "".join(f"<li>{escape(str(claim))}</li>" for claim in self.claims)
        caption = f"{self.value:.4g} in [{self.lower:.4g}, {self.upper:.4g}]; {self.reason}"
        return f"<table><caption>{escape(caption)}</caption>{rows}</table><ul>{claims}</ul>"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The requirements for a best point, and how its runs are made."""

    question: Question
    strategy: OptimumStrategy
    limits: Mapping[str, Limit]
    gap: float
    wrong: float
    error: float
    by: By
    learner: Learner | None
    running: Running
    seed: int

    @property
    def objective(self) -> str:
        """The name of the property that is optimised."""
        return self.strategy.objective

    @property
    def minimise(self) -> bool:
        """Whether less is better."""
        return self.strategy.goal.minimise

    @property
    def tolerance(self) -> Tolerance:
        """The box of tolerances."""
        return self.strategy.tolerance

    @property
    def share(self) -> float:
        """The error of each claim: the value, the regret by fresh designs, the worst of the box, each constraint."""
        return self.error / (1 + (self.by == "fresh") + self.tolerance.worst + len(self.limits))

    def runs(self, probability: float, each: int) -> int:
        """Runs for the value, if it is this, and for this many at each design that the claims need."""
        tests = (self.by == "fresh") + self.tolerance.worst
        value = value_runs(probability, HALF * self.gap, self.share)
        return value + tests * each * least_points(0, self.wrong, self.share, 0.5)


def _values(theta: Mapping[str, float]) -> str:
    """Parameters in words, to five digits."""
    return values_text({name: float(f"{value:.5g}") for name, value in theta.items()})
