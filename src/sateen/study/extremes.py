"""A property that no run, or every run, satisfied: what that bounds, said before anything that was learned.

Let run j be at the point θ_j, with any points that were fixed before the runs, and f̄ the mean of f(θ_j) over all N
runs. None is satisfied with the probability Π (1 - f(θ_j)), which is (1 - f̄)^N at most, for a product of numbers of a
given mean is greatest where they are equal. So if f̄ > b = 1 - δ^(1/N), that probability is below δ: with the confidence
1 - δ, f̄ is at most b, which is Clopper and Pearson's bound for 0 of N, and about 3/N for δ = 0.05 (the rule of three).
Where the number of runs was planned from earlier runs, all of these must have failed for the event, so N was fixed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sateen.core.observations import Observations
from sateen.core.proportions import upper_bound
from sateen.core.text import percent

_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Extreme:
    """`which` runs satisfied a property, "none" or "all" of `runs` at `points`.

    With the `confidence`, the mean of f over these points, each weighed by its runs, is within `bound` of 0, or of 1.
    """

    which: Literal["none", "all"]
    runs: int
    points: int
    bound: float
    confidence: float

    def sentence(self, name: str) -> str:
        """What there is to say first."""
        runs, points = f"{self.runs:,}", f"{self.points:,} points"
        if self.which == "none":
            seen, limit = f"no run satisfied {name}: 0 of {runs} at {points}", f"at most {self.bound:.2g}"
        else:
            seen, limit = f"every run satisfied {name}: all {runs} at {points}", f"at least 1 - {self.bound:.2g}"
        mean = f"Its mean probability over these points is {limit}, with confidence {percent(self.confidence)}"
        return f"{seen}. {mean}; at a single one of them it may be further away."


def extreme_of(parts: Iterable[Observations]) -> Extreme | None:
    """What all runs of a property have in common, if they all have it and none is undecided."""
    seen = list(parts)
    runs, satisfied = sum(int(each.trials.sum()) for each in seen), sum(int(each.satisfied.sum()) for each in seen)
    if not runs or satisfied not in (0, runs) or any(each.undecided.any() for each in seen):
        return None
    points = sum(int((each.trials > 0).sum()) for each in seen)
    bound = float(upper_bound(0, runs, 1.0 - _CONFIDENCE))
    return Extreme("all" if satisfied else "none", runs, points, bound, _CONFIDENCE)
