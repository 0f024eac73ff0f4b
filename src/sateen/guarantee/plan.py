"""`plan`: how many points and runs a calibration needs, before any of them is observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import numpy as np

from sateen.core.display import paragraph
from sateen.core.errors import InputError
from sateen.core.prediction import Posterior
from sateen.core.text import duration_text, html_table, percent, plural
from sateen.core.threads import on_one_thread
from sateen.core.types import Content
from sateen.files.plain import converted
from sateen.guarantee.checks import check_posterior
from sateen.guarantee.lift import fewest_lifted_points, lift_miss
from sateen.guarantee.rehearsal import Rehearsal, rehearse
from sateen.guarantee.request import Default, PlanRequest

_RANKS: Final = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
_MANY_TIMES: Final = 40  # the fewest points of a rank, beyond which more of them do not pay
_FIRST_RUNS: Final = 100  # at each point, with which the search for a width begins
_MOST_RUNS: Final = 10**9  # in all; no width is worth more
_MOST_STEPS: Final = 20  # of the search for a width; a handful is usual
_NEAR: Final = 0.02  # how close a plan comes to the width that is asked for, and to the best number of points
_WORTHWHILE: Final = 0.98  # of the width: what another normaliser must give to be preferred
_NO_BETTER: Final = 1.1  # times the narrowest width so far: there the search for a rank ends
_CHOICE: Final = ("predictive", "constant")
_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0


_MORE: Final = (4, 16)  # times the runs of a plan: what else is offered besides it
_OFFERED: Final = ("budget", "mean width", "time")


@dataclass(frozen=True, slots=True)
class Offer:
    """What another `budget` of runs would give: the expected mean `width`, and about how many `seconds` they take."""

    budget: int
    width: float
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What to observe for a calibration by the lift, and which intervals to expect.

    Draw `points` points uniformly, with `runs` runs each. `rank` and `normaliser` are for `calibrate`, which takes them
    from its `plan=`. `width` is the expected mean width of the intervals over θ; nine of ten calibrations give one
    within `likely`. `seconds` is how long the runs take at the speed of the training, or NaN if that is not known.
    `more` says what more runs would give, cheapest first.
    """

    points: int
    runs: int
    rank: int
    normaliser: str
    width: float
    likely: tuple[float, float]
    level: float
    confidence: float | None
    seconds: float
    more: tuple[Offer, ...] = ()

    @property
    def budget(self) -> int:
        """The total number of runs."""
        return self.points * self.runs

    @property
    def sentence(self) -> str:
        """What to observe, and what to expect from it."""
        time = "" if math.isnan(self.seconds) else f", about {duration_text(self.seconds)}"
        cost = f"{plural(self.runs, 'run')} each ({self.budget:,} runs{time})"
        observe = f"observe {self.points:,} uniform points with {cost}"
        sure = "on average" if self.confidence is None else f"with confidence {percent(self.confidence)}"
        width = f"{self.width:.3g} (likely {self.likely[0]:.3g} to {self.likely[1]:.3g})"
        expect = f"expect intervals of mean width {width} that cover {percent(self.level)} of parameters {sure}"
        return f"{observe} and calibrate with rank {self.rank}; {expect}"

    def __str__(self) -> str:
        return "\n".join([self.sentence, *self._table()])

    def __repr__(self) -> str:
        return f"<Plan: {self.sentence}>"

    def _repr_html_(self) -> str:
        table = html_table("What this budget and larger budgets give", _OFFERED, self._rows()) if self.more else ""
        return paragraph(f"{self.sentence}.") + table

    def _table(self) -> Iterator[str]:
        """What the plan gives and what more runs would, a line each; nothing if more runs would not help."""
        if self.more:
            for cells in (_OFFERED, *self._rows()):
                yield "".join(f"{cell:>15}" for cell in cells).rstrip()

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for each in (Offer(self.budget, self.width, self.seconds), *self.more):
            time = "not known" if math.isnan(each.seconds) else duration_text(each.seconds)
            yield f"{each.budget:,} runs", f"{each.width:.3g}", time

    def content(self) -> dict[str, object]:
        """The plan as plain data, with its sentence."""
        plain = {**asdict(self), "more": [asdict(each) for each in self.more]}
        for each in (plain, *plain["more"]):
            each["seconds"] = None if math.isnan(each["seconds"]) else each["seconds"]
        return {**plain, "budget": self.budget, "sentence": self.sentence}

    @classmethod
    def from_content(cls, content: Content) -> Plan:
        """The plan that `content()` describes."""
        more = [_with_seconds(each) for each in content.get("more", [])]
        return converted({**_with_seconds(content), "more": more}, cls)

    def timeless(self) -> Plan:
        """The plan without seconds, which differ from run to run."""
        return self.at_pace(math.nan)

    def at_pace(self, seconds_per_run: float) -> Plan:
        """The plan with the seconds that its runs, and those of the offers, take at a given speed."""
        more = tuple(replace(each, seconds=each.budget * seconds_per_run) for each in self.more)
        return replace(self, seconds=self.budget * seconds_per_run, more=more)


def _with_seconds(content: Content) -> Content:
    return {**content, "seconds": math.nan if content["seconds"] is None else content["seconds"]}


@on_one_thread
def plan(
    posterior: Posterior,
    *,
    width: float | None = None,
    budget: int | None = None,
    level: float | Default = "default",
    confidence: float | Default | None = "default",
    normaliser: str | None = None,
    seed: int,
) -> Plan:
    """The cheapest calibration whose intervals have a mean `width`, or the narrowest for a `budget` of runs.

    Give one of the two. `level` and `confidence` are those of the planned guarantee, by default 0.9 and 0.95;
    `confidence=None` makes it marginal. The plan depends on the posterior and its training. The learner is fitted to
    parts of the training data, which shows how large its errors are. Then calibrations are simulated on functions drawn
    from the posterior, with `seed`. The width is an expectation: a single calibration comes out somewhat wider or
    narrower. The plan does not change what the guarantee claims. Its `more` says what 4 and 16 times as many runs would
    give.
    """
    whole = check_posterior(posterior)
    request = PlanRequest.of(
        width=width, budget=budget, level=level, confidence=confidence, normaliser=normaliser, seed=seed
    )
    search = _Search(rehearse(whole, request.level, seed), request)
    best = search.narrowest(request.budget) if request.budget is not None else search.cheapest(request.width or 0.0)
    return replace(best, more=tuple(search.offers(best)))


def resized(original: Plan, posterior: Posterior, points: int, runs: int, *, seed: int) -> Plan:
    """The plan with this many points and runs, and the rank with which its intervals should be narrowest there.

    `seed` is that of the plan. For a calibration whose runs several posteriors share, each with a plan of its own.
    """
    if (original.points, original.runs) == (points, runs):
        return original
    stage, aim = rehearse(posterior, original.level, seed), (original.normaliser, original.level, original.confidence)
    best = _rehearsed(stage, points, runs, 1, *aim)
    for rank in range(2, points + 1):
        if lift_miss(points, rank, 1.0 - original.level, original.confidence) is None:
            break
        tried = _rehearsed(stage, points, runs, rank, *aim)
        if tried.width > _NO_BETTER * best.width:
            break
        best = tried if tried.width < best.width else best
    return replace(
        best, more=tuple(each for each in original.more if each.budget > best.budget and each.width < best.width)
    )


def _rehearsed(
    stage: Rehearsal, points: int, runs: int, rank: int, normaliser: str, level: float, confidence: float | None
) -> Plan:
    """The plan for a calibration of this size: what is expected of it, by the rehearsal."""
    eta = lift_miss(points, rank, 1.0 - level, confidence)
    widths = np.ones(1) if eta is None else stage.widths(points, runs, rank, eta, normaliser)
    low, high = np.quantile(widths, [0.05, 0.95])
    seconds = points * runs * stage.seconds_per_run
    likely = float(low), float(high)
    return Plan(points, runs, rank, normaliser, float(np.mean(widths)), likely, level, confidence, seconds)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search among calibrations that a request allows, all rehearsed on one stage, none of them twice."""

    stage: Rehearsal
    request: PlanRequest
    tried: dict[tuple[int, int, int, str], Plan] = field(default_factory=dict)

    def cheapest(self, width: float) -> Plan:
        """The calibration with the fewest runs that is expected to be as narrow as `width`."""
        low, high = (self.narrowest(budget) for budget in (self.request.fewest, _FIRST_RUNS * self.request.fewest))
        if low.width <= width:
            return low
        while high.width > width:
            if high.budget >= _MOST_RUNS // 2:
                raise InputError(
                    f"no calibration of this posterior gives a mean width of {width:.3g}: even {high.budget:,} runs "
                    f"give {high.width:.3g}, because the posterior itself errs",
                    argument="width",
                    remedy="ask for a greater {width}, or learn from more points or runs first",
                )
            far = min(high.width / width, _MOST_RUNS)
            more = max(10.0, 1.5 * far**2)  # widths fall as the root of the runs, or more slowly
            low, high = high, self.narrowest(min(math.ceil(more * high.budget), _MOST_RUNS))
        for step in range(_MOST_STEPS):
            if high.width >= (1.0 - _NEAR) * width or high.budget <= (1.0 + _NEAR) * low.budget:
                break
            # Following the line between the two is fast where it is one; every other step the middle keeps it safe.
            between = _on_the_line(low, high, width) if step % 2 == 0 else math.sqrt(low.budget * high.budget)
            tried = self._narrowest(round(between), high.normaliser)
            low, high = (low, tried) if tried.width <= width else (tried, high)
        return high

    def offers(self, best: Plan) -> Iterator[Offer]:
        """What more runs than those of a plan would give, if anything."""
        width = best.width
        for times in _MORE:
            if times * best.budget > _MOST_RUNS:
                return
            more = self._narrowest(times * best.budget, best.normaliser)
            if more.width < width:
                width = more.width
                yield Offer(more.budget, more.width, more.seconds)

    def narrowest(self, budget: int) -> Plan:
        """The calibration of a budget with the narrowest intervals, which chooses its normaliser if none is given."""
        if self.request.normaliser is not None:
            return self._narrowest(budget, self.request.normaliser)
        best = self._narrowest(budget, _CHOICE[0])
        for other in _CHOICE[1:]:
            if self._plan(best.points, best.runs, best.rank, other).width < _WORTHWHILE * best.width:
                best = self._narrowest(budget, other)
        return best

    def _narrowest(self, budget: int, normaliser: str) -> Plan:
        best: Plan | None = None
        for rank in _RANKS:
            fewest = fewest_lifted_points(rank, 1.0 - self.request.level, self.request.confidence) or _MOST_RUNS
            most = min(budget, _MANY_TIMES * fewest, max(self.stage.most_points(rank), 4 * fewest))
            if fewest > most:
                break

            def tried(points: int, rank: int = rank) -> Plan:
                return self._plan(points, budget // points, rank, normaliser)

            plan = tried(_least_by_golden_section(lambda points: tried(points).width, fewest, most))
            if best is not None and plan.width > best.width:
                break
            best = plan
        assert best is not None  # the request has checked that the budget is large enough for the rank 1
        return best

    def _plan(self, points: int, runs: int, rank: int, normaliser: str) -> Plan:
        size = points, runs, rank, normaliser
        if size not in self.tried:
            self.tried[size] = _rehearsed(self.stage, *size, self.request.level, self.request.confidence)
        return self.tried[size]


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


def _on_the_line(low: Plan, high: Plan, width: float) -> float:
    """The budget at which a line through the logarithms of two widths has a third, a little beyond on the safe side."""
    share = math.log(low.width / width) / math.log(low.width / high.width)
    return low.budget * math.exp(min(share + 0.02, 1.0) * math.log(high.budget / low.budget))
