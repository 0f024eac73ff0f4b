"""What seconds buy: this many runs at the pace of the training, or the probability itself at this many points.

Seconds are turned into numbers once. The numbers are kept and used from then on, so that no result depends on the
clock again. Where a model is finite, computed labels give far narrower intervals than runs of the same cost; so they
are preferred as soon as the seconds are enough for some hundred points.

One calibration for several properties: the same points and runs, and for each property the rank that suits it.
Each property has a plan of its own. The runs are shared, so one plan must decide how many points and runs there are:
with a budget that of the property whose intervals would be widest, with a width that of the dearest. The others keep
their normaliser, and get the rank with which the rehearsal finds their intervals narrowest on those points and runs.
All of it is fixed before the calibration is observed, so every guarantee holds as if it were the only one.

Runs that are there already, of a plan for another level, are used again: the plan is then for as many points and runs.
Which they are was fixed before they were made, so this changes nothing for the guarantee.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sateen.core.errors import ExactError, InputError, SateenError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.space import Points, Space
from sateen.core.text import duration_text, plural
from sateen.core.types import Content
from sateen.engine.exact import MAX_STATES, ExactForecast, exact, forecast_exact
from sateen.files.plain import converted
from sateen.guarantee.plan import Plan, plan, resized
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.pipeline.folder import CachedFile, read_checksummed, write_checksummed
from sateen.study.spec import Calibration, GuaranteeSpec

if TYPE_CHECKING:
    from sateen.study.labels import Labels

Seconds: TypeAlias = float | Literal["training"]
TRAINING: Final = "training"
MEASURED: Final = ("seconds", "point_seconds")  # of a purchase: what differs from run to run, and is of no effect
_LEAST_POINTS: Final = 100  # computed, from which on labels are preferred to runs
_TIMES_THE_FEWEST: Final = 4  # points that the level needs, so that its rank is not the first
_MOST_POINTS: Final = 2000  # computed; more would hardly narrow the intervals
_MOST_STATES: Final = 50_000  # of a chain that is tried, where nobody asked for it
_TRIED: Final = 4  # points of a forecast
_TIMED: Final = 2  # points that are computed to see how long one takes
_MOST_RUNS: Final = 10**12
_MARGIN: Final = 1.5  # by which the seconds that are proposed exceed those measured


@dataclass(frozen=True, slots=True)
class Purchase:
    """What seconds of one processor buy, measured once.

    `asked` is what was asked for; `seconds` how many that are, and `point_seconds` how long a computed point takes, 0
    where there is none: both are measured. `runs` at the measured pace, 0 where that is not known; `points` at which
    probabilities are computed, 0 where they cannot be, or must not be: `why` says so. `states` and `steps` are of the
    chain, 0 where there is none. `must` is whether the user said which: True asks for computed ones, False for runs,
    None leaves the choice here.
    """

    asked: Seconds
    seconds: float
    point_seconds: float
    runs: int
    points: int
    states: int
    steps: int
    why: str
    must: bool | None

    def exact(self, fewest: int) -> bool:
        """Whether probabilities are computed, for a level that needs this many points at least."""
        if self.must is None:
            return self.points >= _wanted(fewest)
        if self.must and self.points < fewest:
            points = plural(self.points, "point")
            problem = f"{duration_text(self.seconds)} compute the probability at {points}, and the level needs {fewest}"
            enough = float(f"{_MARGIN * fewest * self.point_seconds:.2g}")
            raise InputError(problem, argument="seconds", remedy=f"give {{seconds={enough:g}}}, or {{points={fewest}}}")
        return self.must

    def budget(self, fewest: int) -> int:
        """The runs of a plan; few seconds buy those that the level needs in any case."""
        if not self.runs:
            problem = "{seconds} cannot be converted into runs, because it is not known how long a run takes"
            raise InputError(problem, argument="seconds", remedy="give {budget=100_000}")
        return max(self.runs, _TIMES_THE_FEWEST * fewest)

    def sentence(self, fewest: int) -> str:
        """What is bought, and why."""
        head = "the time of the training allows" if self.asked == TRAINING else f"{duration_text(self.asked)} allow"
        if self.exact(fewest):
            return f"{head} the probability itself at {plural(self.points, 'point')}: {self.why}"
        bought = plural(self.budget(fewest), "run") + ", the fewest for the level" * (self.budget(fewest) > self.runs)
        if not self.states:
            return f"{head} {bought}: {self.why}"
        few = f"only {plural(self.points, 'point')} could be computed, and {_wanted(fewest)} are wanted"
        return f"{head} {bought}: {few}; {self.why}"

    def used(self, fewest: int, labels: Labels, plan: Plan | None, *, reused: bool) -> dict[str, object]:
        """What a result says of it: the numbers, what was used and why, and what `repeat`s that anywhere.

        Without the measured times; `plan` is None for computed labels, and `reused` is whether another level planned.
        """
        if plan is None:
            reused = not self.exact(fewest)
            bought = f"the probability itself at {plural(len(labels), 'point')}"
            repeat = f"calibrate = {{ exact = true, points = {len(labels)} }}"
        elif reused:
            bought = f"{plural(plan.points, 'point')} with {plural(plan.runs, 'run')} each"
            repeat = f"calibrate = {{ points = {plan.points}, runs = {plan.runs} }}"
            repeat += f', and under [guarantee] rank = {plan.rank}, normaliser = "{plan.normaliser}"'
        else:
            repeat = f"calibrate = {{ budget = {self.budget(fewest)} }}"
        sentence = f"there are enough labels from another level: {bought}" if reused else self.sentence(fewest)
        content = {name: value for name, value in self.content().items() if name not in MEASURED}
        return {**content, "exact": plan is None, "reused": reused, "sentence": sentence, "repeat": repeat}

    def content(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_content(cls, content: Content) -> Purchase:
        """The purchase whose `content()` was kept."""
        return converted(dict(content), cls)


def purchase(
    model: Model | None,
    formulas: Mapping[str, Formula],
    posteriors: Mapping[str, FullPosterior],
    asked: Seconds,
    must: bool | None,
) -> Purchase:
    """What the seconds buy for properties that share their runs; `model` is None where there is none to compute."""
    learned = [posterior.training.observations.seconds for posterior in posteriors.values()]
    spent = max(learned) + sum(posterior.record.seconds for posterior in posteriors.values())
    seconds = spent if asked == TRAINING else float(asked)
    pace = max((each.seconds_per_run for each in posteriors.values() if each.seconds_per_run > 0), default=0.0)
    runs = max(_two_digits(min(seconds / pace, _MOST_RUNS)), 1) if pace else 0
    bought = Purchase(asked, seconds, 0.0, runs, 0, 0, 0, "as asked", must)
    if must is False:
        return bought
    try:
        return _computed(bought, model, formulas, next(iter(posteriors.values())).space)
    except SateenError as error:
        if must:
            raise
        return replace(bought, why=str(error).splitlines()[0] + ", so no property is" * (len(formulas) > 1))


def kept_purchase(file: FilePath, question: object, make: Callable[[], Purchase]) -> Purchase:
    """The purchase for a question that the file has; if it has none, a new one, which is added to it."""
    remedy = "delete the file, and the seconds are measured again"
    known = CachedFile(file, read_checksummed, remedy).value() if os.path.lexists(file) else {}
    key = fingerprint(question)
    if key not in known:
        known[key] = make().content()
        write_checksummed(file, known)
    return CachedFile(file, lambda _: Purchase.from_content(known[key]), remedy).value()


def forecasts(
    model: Model | None, formulas: Mapping[str, Formula], points: Points, *, max_states: int = MAX_STATES
) -> list[ExactForecast]:
    """What it takes to compute each property; an ExactError names the one that cannot be computed."""
    if model is None:
        raise ExactError("a callable can only be run")
    made = []
    for name, formula in formulas.items():
        try:
            made.append(forecast_exact(model, formula, points, max_states=max_states))
        except SateenError as error:
            problem = f"{name} cannot be computed: {error}"
            raise ExactError(problem, argument="exact", remedy="use runs instead of {exact=True}") from error
    return made


def some_points(space: Space, number: int) -> Points:
    """The first points at which a computation is tried."""
    return (space.sobol if space.names else space.uniform)(number, seed=0)


def _computed(bought: Purchase, model: Model | None, formulas: Mapping[str, Formula], space: Space) -> Purchase:
    """The purchase with the points at which the probabilities can be computed, and a word on why that many."""
    tried = some_points(space, _TRIED)
    each = forecasts(model, formulas, tried, max_states=MAX_STATES if bought.must else _MOST_STATES)
    states, steps = max(one.states for one in each), sum(one.steps for one in each)
    taken = sum(one.seconds for one in each)
    if bought.must or taken * _LEAST_POINTS <= 2.0 * bought.seconds:
        assert model is not None
        start = time.process_time()
        for formula in formulas.values():
            exact(model, formula, tried[:_TIMED], progress=None)
        taken = (time.process_time() - start) / _TIMED
    points = _two_digits(min(bought.seconds / max(taken, 1e-6), _MOST_POINTS))
    why = f"the chain has {plural(states, 'state')}, and a point takes about {plural(steps, 'step')}"
    return replace(bought, point_seconds=taken, points=points, states=states, steps=steps, why=why)


def _wanted(fewest: int) -> int:
    """The number of computed points from which on they are preferred to runs, if the level needs `fewest`."""
    return max(_LEAST_POINTS, _TIMES_THE_FEWEST * fewest)


def _two_digits(number: float) -> int:
    """The number, rounded down to two digits, which is as precise as a measured pace is.

    >>> _two_digits(123456.7), _two_digits(99.0), _two_digits(0.4)
    (120000, 99, 0)
    """
    whole = str(int(number))
    return int(whole[:2] + "0" * len(whole[2:]))


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of properties by name; none where labels are computed.

    `reused` is whether the runs were there, and those of another level, which would have planned others.
    """

    by_name: Mapping[str, Plan]
    reused: bool = False

    def content(self) -> dict[str, object]:
        """As plain data, without seconds, which differ from run to run."""
        return {
            "reused": self.reused,
            "plans": {name: each.timeless().content() for name, each in self.by_name.items()},
        }

    @classmethod
    def from_content(cls, content: Content) -> Plans:
        """The plans whose `content()` was kept."""
        return cls({name: Plan.from_content(each) for name, each in content["plans"].items()}, content["reused"])


def shared_plans(
    posteriors: Mapping[str, FullPosterior],
    calibration: Calibration,
    spec: GuaranteeSpec,
    least: int = 1,
    there: Observations | None = None,
    *,
    seed: int,
) -> Plans:
    """A plan for each property, all with the same points, `least` or more if the runs suffice, and the same runs.

    `there` are observations that were planned before.
    """
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
    best = leader.points, leader.runs
    if leader.points < least <= leader.budget:
        best = least, leader.budget // least
    points, runs = best if there is None else (len(there), int(there.trials[0]))
    resized_plans = {name: resized(each, posteriors[name], points, runs, seed=seed) for name, each in plans.items()}
    return Plans(resized_plans, reused=(points, runs) != best)
