"""`plan`: how many points and runs a calibration needs, before any of them is observed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from numbers import Integral
from typing import Any, Final

import numpy as np

from sateen.core.errors import InputError, nearest
from sateen.core.prediction import Posterior
from sateen.core.text import percent
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray
from sateen.guarantee.checks import check_posterior, check_share
from sateen.guarantee.lift import fewest_lifted_points, lift_miss
from sateen.guarantee.methods import LIFT_NORMALISERS, Normaliser
from sateen.guarantee.rehearsal import Rehearsal, rehearse

__all__ = ["Plan", "plan"]

_RANKS: Final = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
_MANY_TIMES: Final = 40  # the fewest points of a rank, beyond which more of them do not pay
_FIRST_RUNS: Final = 100  # at each point, with which the search for a width begins
_MOST_RUNS: Final = 10**9  # in all; no width is worth more
_MOST_STEPS: Final = 20  # of the search for a width; a handful is usual
_NEAR: Final = 0.02  # how close a plan comes to the width that is asked for, and to the best number of points
_WORTHWHILE: Final = 0.98  # of the width: what another normaliser must give to be preferred
_CHOICE: Final[tuple[Normaliser, ...]] = ("predictive", "constant")
_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What to observe for a calibration by the lift, and what intervals to expect of it.

    `points` drawn uniformly, with `runs` each; `rank` and `normaliser` for `calibrate`, which takes them from its
    `plan=`; `width` is the expected mean width of the intervals over θ, and nine of ten calibrations give one within
    `likely`. `seconds` is how long the runs take at the pace of the training, NaN where that is not known.
    """

    points: int
    runs: int
    rank: int
    normaliser: Normaliser
    width: float
    likely: tuple[float, float]
    level: float
    confidence: float | None
    seconds: float

    @property
    def budget(self) -> int:
        """The runs in all."""
        return self.points * self.runs

    def __str__(self) -> str:
        time = "" if math.isnan(self.seconds) else f", about {_duration(self.seconds)}"
        each = f"{self.runs:,} run{'s' * (self.runs != 1)} each"
        observe = f"observe {self.points:,} uniform points with {each} ({self.budget:,} runs{time})"
        sure = "on average" if self.confidence is None else f"with confidence {percent(self.confidence)}"
        width = f"{self.width:.3g} (likely {self.likely[0]:.3g} to {self.likely[1]:.3g})"
        expect = f"expect intervals of mean width {width} that cover {percent(self.level)} of parameters {sure}"
        return f"{observe} and calibrate with rank {self.rank}; {expect}"

    def __repr__(self) -> str:
        return f"<Plan: {self}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}.</p>"

    def content(self) -> dict[str, Any]:
        """The plan as plain data, with its sentence."""
        seconds = None if math.isnan(self.seconds) else self.seconds
        return {**asdict(self), "seconds": seconds, "budget": self.budget, "sentence": str(self)}


@on_one_thread
def plan(
    posterior: Posterior,
    *,
    width: float | None = None,
    budget: int | None = None,
    level: float = 0.9,
    confidence: float | None = 0.95,
    normaliser: Normaliser | None = None,
    seed: int = 0,
) -> Plan:
    """The cheapest calibration whose intervals have a mean `width`, or the narrowest that a `budget` of runs can buy.

    Give one of the two. `level` and `confidence` are those of the guarantee to come; `confidence=None` makes it
    marginal. All is found from the posterior and its training: calibrations are rehearsed on functions that it holds
    possible, after parts of the training have shown how much it errs, for which its recipe is fitted anew. `seed` is
    that of the rehearsal. The width is an expectation: a single calibration comes out somewhat wider or narrower.
    """
    check_posterior(posterior)
    check_share(level, "level", "0.9")
    if confidence is not None:
        check_share(confidence, "confidence", "0.95; None is marginal")
    if normaliser is not None and normaliser not in LIFT_NORMALISERS:
        hint = nearest(str(normaliser), LIFT_NORMALISERS) or f"there are {', '.join(LIFT_NORMALISERS)}"
        raise InputError(f"the lift has no normaliser {normaliser!r}; {hint}")
    if (width is None) == (budget is None):
        raise InputError("a plan is made for a width or for a budget; give one of them, such as width=0.06")
    if width is not None:
        check_share(width, "width", "0.06")
    fewest = _fewest(1, level, confidence)
    _check_budget(budget, fewest, level, confidence)
    search = _Search(rehearse(posterior, seed), level, confidence)
    if budget is not None:
        found = search.narrowest(int(budget), normaliser)
    else:
        assert width is not None
        found = search.cheapest(width, normaliser, fewest)
    return Plan(
        points=found.points,
        runs=found.runs,
        rank=found.rank,
        normaliser=found.normaliser,
        width=found.width,
        likely=search.likely(found),
        level=level,
        confidence=confidence,
        seconds=found.budget * posterior.seconds_per_run,
    )


@dataclass(frozen=True, slots=True)
class _Design:
    """A calibration, and how wide its intervals are in the rehearsal."""

    points: int
    runs: int
    rank: int
    normaliser: Normaliser
    width: float

    @property
    def budget(self) -> int:
        """The runs in all."""
        return self.points * self.runs


@dataclass(frozen=True, slots=True)
class _Search:
    """The search among calibrations of a level and a confidence, all rehearsed on one stage."""

    stage: Rehearsal
    level: float
    confidence: float | None

    def cheapest(self, width: float, normaliser: Normaliser | None, fewest: int) -> _Design:
        """The calibration with the fewest runs that is expected to be as narrow as `width`."""
        low, high = self.narrowest(fewest, normaliser), self.narrowest(_FIRST_RUNS * fewest, normaliser)
        if low.width <= width:
            return low
        while high.width > width:
            if high.budget >= _MOST_RUNS // 2:
                raise InputError(
                    f"no calibration of this posterior gives a mean width of {width:.3g}: even {high.budget:,} runs "
                    f"give {high.width:.3g}, because the posterior itself errs\n"
                    "  ask for a greater width, or learn from more points or runs first"
                )
            more = max(10.0, 1.5 * (high.width / width) ** 2)  # widths fall as the root of the runs, or more slowly
            low, high = high, self.narrowest(min(math.ceil(more * high.budget), _MOST_RUNS), normaliser)
        for step in range(_MOST_STEPS):
            if high.width >= (1.0 - _NEAR) * width or high.budget <= (1.0 + _NEAR) * low.budget:
                break
            # Following the line between the two is fast where it is one; every other step the middle keeps it safe.
            between = _on_the_line(low, high, width) if step % 2 == 0 else math.sqrt(low.budget * high.budget)
            tried = self.narrowest(round(between), normaliser or high.normaliser)
            low, high = (low, tried) if tried.width <= width else (tried, high)
        return high

    def narrowest(self, budget: int, normaliser: Normaliser | None) -> _Design:
        """The calibration of a budget with the narrowest intervals, which chooses its normaliser if none is given."""
        found = self._narrowest(budget, normaliser or _CHOICE[0])
        if normaliser is None:
            for other in _CHOICE[1:]:
                if self._width(found.points, found.runs, found.rank, other) < _WORTHWHILE * found.width:
                    found = self._narrowest(budget, other)
        return found

    def _narrowest(self, budget: int, normaliser: Normaliser) -> _Design:
        best: _Design | None = None
        for rank in _RANKS:
            fewest = _fewest(rank, self.level, self.confidence)
            most = min(budget, _MANY_TIMES * fewest, max(self.stage.most_points(rank), 4 * fewest))
            if fewest > most:
                break

            def width(points: int, rank: int = rank) -> float:
                return self._width(points, budget // points, rank, normaliser)

            points = _least_by_golden_section(width, fewest, most)
            found = _Design(points, budget // points, rank, normaliser, width(points))
            if best is not None and found.width > best.width:
                break
            best = found
        assert best is not None  # the budget was found to be large enough for the rank 1
        return best

    def likely(self, found: _Design) -> tuple[float, float]:
        """Between which widths nine of ten calibrations lie."""
        low, high = np.quantile(self._widths(found.points, found.runs, found.rank, found.normaliser), [0.05, 0.95])
        return float(low), float(high)

    def _width(self, points: int, runs: int, rank: int, normaliser: Normaliser) -> float:
        return float(np.mean(self._widths(points, runs, rank, normaliser)))

    def _widths(self, points: int, runs: int, rank: int, normaliser: Normaliser) -> FloatArray:
        eta = lift_miss(points, rank, 1.0 - self.level, self.confidence)
        return np.ones(1) if eta is None else self.stage.widths(points, runs, rank, eta, normaliser)


def _fewest(rank: int, level: float, confidence: float | None) -> int:
    points = fewest_lifted_points(rank, 1.0 - level, confidence)
    if points is None or points > _MOST_RUNS:
        raise InputError(f"no number of points that can be observed gives the level {percent(level)}; lower it")
    return points


def _check_budget(budget: Any, fewest: int, level: float, confidence: float | None) -> None:
    if budget is None:
        return
    if isinstance(budget, bool) or not isinstance(budget, Integral) or budget < 1:
        raise InputError(f"budget is a whole number of runs, such as 10_000, not {budget!r}")
    if budget < fewest:
        sure = "" if confidence is None else f" with the confidence {percent(confidence)}"
        raise InputError(
            f"a budget of {budget:,} runs is too small for the level {percent(level)}{sure}, which needs {fewest:,} "
            "points\n  raise the budget, or lower the level"
        )


def _least_by_golden_section(value: Callable[[int], float], low: int, high: int) -> int:
    """Where a function of a whole number that falls and then rises is least, to within a few hundredths."""
    a, b = math.log(low), math.log(high)
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_d = value(round(math.exp(c))), value(round(math.exp(d)))
    while b - a > 2 * _NEAR and round(math.exp(a)) + 1 < round(math.exp(b)):
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = value(round(math.exp(c)))
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            at_d = value(round(math.exp(d)))
    return round(math.exp(c if at_c <= at_d else d))


def _on_the_line(low: _Design, high: _Design, width: float) -> float:
    """The budget at which a line through the logarithms of two widths has a third, a little beyond on the safe side."""
    share = math.log(low.width / width) / math.log(low.width / high.width)
    return low.budget * math.exp(min(share + 0.02, 1.0) * math.log(high.budget / low.budget))


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> _duration(0.02), _duration(95), _duration(8000)
    ('0.02 s', '1.6 min', '2.2 h')
    """
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"
