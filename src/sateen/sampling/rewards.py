"""An expected reward of a model at one θ, from runs: the mean of what they earn, with an interval.

A path is piecewise constant, so what a run earns is a finite sum: its rate in every state times how long it stays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np

from sateen.core.display import paragraph
from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.progress import SILENT, Progress, working
from sateen.core.proportions import Limits, bounded_margin
from sateen.core.text import percent
from sateen.core.threads import processors
from sateen.core.types import FloatArray, IntArray
from sateen.engine.emit import REASONS
from sateen.engine.intervals import interval
from sateen.engine.kernel import Kernel, kernel
from sateen.engine.rewards import check_reward, earning, holding, wrong_rate
from sateen.engine.run import Runner, replay
from sateen.language.expression import LARGEST_WHOLE
from sateen.logic.rewards import Reward
from sateen.model.model import Model

FINITE: Final = -1
INFINITE: Final = -2
_FOREVER: Final = 1e300  # later than any time that is waited for
_FIRST_LOOK: Final = 1.0  # how long a run without a time is followed at first
_LONGER: Final = 4.0
_DEFAULT_RUNS: Final = 10_000
_CHUNK: Final = 64  # runs of a thread between two signs of progress
_BERNSTEIN: Final = "intervals made like this, by the empirical Bernstein bound,"
_NORMAL: Final = "intervals made like this, of normal quantiles,"


@dataclass(frozen=True, slots=True)
class RewardEstimate:
    """An estimate of an expected reward from runs; `claim` says what the interval from `lower` to `upper` promises.

    `value` is the mean reward of the `runs`, and `deviation` their standard deviation. Both are NaN if undecided runs
    leave them open, and `reasons` says why. `value` is infinite if some runs, `infinite` in number, show that the
    expectation is infinite. If no run can earn more than a bound, the interval holds for any number of runs, which
    makes it wide. `normal_lower` and `normal_upper` are the ends of the interval that holds asymptotically, as the
    number of runs grows. `sentences` and `str(estimate)` say it in words. `events` and `seconds` are those of all runs,
    without compilation.
    """

    value: float
    deviation: float
    lower: float
    upper: float
    level: float
    normal_lower: float
    normal_upper: float
    runs: int
    undecided: int
    infinite: int
    seconds: float
    claim: Claim
    sentences: tuple[str, ...]
    reasons: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    events: int = 0

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        return paragraph(str(self))


def estimate_reward(
    model: Model,
    reward: Reward,
    theta: Mapping[str, float],
    *,
    seed: int,
    runs: int | None,
    level: float,
    max_events: int,
    max_time: float,
    progress: Progress = SILENT,
) -> RewardEstimate:
    """The expected reward, estimated from `runs` runs. Run i is the one that `replay` shows for point 0, run i."""
    count = _DEFAULT_RUNS if runs is None else runs
    if count < 2:
        raise InputError("{runs} is 2 or more: a single reward has no deviation", argument="runs")
    earner = Earner(model, reward, theta, seed=seed, max_events=max_events, max_time=max_time)
    with working(progress, "compiling", 1, "kernel"):
        if not earner.is_compiled:
            progress.note("compiling (once)")
        earner.run(0, 2)
        progress.advance(1)
    started = time.perf_counter()
    with working(progress, "simulating", count, "runs"):
        earnings = list(_earnings(earner, count, progress))
    seconds = time.perf_counter() - started
    values = np.concatenate([each.values for each in earnings])
    ends = np.concatenate([each.ends for each in earnings])
    infinite, undecided = int((ends == INFINITE).sum()), int((ends >= 0).sum())
    lowest, highest = earner.range
    bounded = highest < math.inf
    sides = values, np.where(ends >= 0, highest, values)  # which differ where a run is undecided
    limits = normal = _normal_limits(*sides, level, lowest, highest)
    if bounded:
        limits = _sure_limits(*sides, level, lowest, highest)
        normal = limits if values.min() == values.max() else normal
    if infinite:
        limits = normal = math.inf, math.inf
    open_ = undecided > 0 and not infinite
    mode, measure = ("frequentist", _BERNSTEIN) if bounded else ("asymptotic", _NORMAL)
    claim = Claim("reward", mode, level, measure, runs=count, assuming=model.assumption)  # type: ignore[arg-type]
    return RewardEstimate(
        value=math.inf if infinite else math.nan if open_ else float(values.mean()),
        deviation=math.nan if infinite or open_ else float(values.std(ddof=1)),
        lower=limits[0],
        upper=limits[1],
        level=level,
        normal_lower=normal[0],
        normal_upper=normal[1],
        runs=count,
        undecided=undecided,
        infinite=infinite,
        seconds=seconds,
        claim=claim,
        sentences=tuple(_sentences(claim, limits, normal, infinite, undecided, values)),
        reasons=MappingProxyType({name: n for name, n in zip(REASONS, _counted(ends), strict=True) if n}),
        events=sum(each.events for each in earnings),
    )


def refuse_others(options: Mapping[str, object]) -> None:
    """Refuse options of an estimated probability that were given for a reward."""
    for name, value in options.items():
        if value is not None and value is not False:
            message = f"{{{name}}} is about a probability, and this is an expected reward"
            raise InputError(message, argument=name, remedy="say how many {runs} to make")


def _earnings(earner: Earner, runs: int, progress: Progress) -> Iterator[Earnings]:
    """What all runs earn, in chunks: as many at a time as there are threads, so that Ctrl-C is heard soon."""
    workers = processors()
    edges = [*range(0, runs, _CHUNK), runs]
    chunks = [(before, after - before) for before, after in pairwise(edges)]
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(chunks), workers):
            wave = chunks[start : start + workers]
            yield from pool.map(lambda chunk: earner.run(*chunk), wave)
            progress.advance(sum(size for _, size in wave))


def _counted(ends: FloatArray) -> list[int]:
    return [int((ends == place).sum()) for place in range(len(REASONS))]


def _normal_limits(low: FloatArray, high: FloatArray, level: float, lowest: float, highest: float) -> Limits:
    """The interval of normal quantiles for the mean of values of which each is between its `low` and its `high`.

    Where all agree, they do not tell how far others may deviate, and nothing is known but what bounds them.
    """
    from scipy.special import ndtri

    if low.min() == low.max() and low[0] < highest:
        return lowest, highest
    miss, root = (1.0 - level) / 2.0, math.sqrt(len(low))
    margin = float(-ndtri(miss)) * float(low.std(ddof=1)) / root
    lower = max(float(low.mean()) - margin, lowest)
    if np.isinf(high).any():
        return lower, math.inf
    return lower, min(float(high.mean()) + float(-ndtri(miss)) * float(high.std(ddof=1)) / root, highest)


def _sure_limits(low: FloatArray, high: FloatArray, level: float, lowest: float, highest: float) -> Limits:
    """The interval that holds for any number of runs, of values between `lowest` and `highest`."""
    miss, span = (1.0 - level) / 2.0, highest - lowest
    if span == 0.0:
        return lowest, highest
    margins = [span * bounded_margin(float(side.std(ddof=1)) / span, len(low), miss) for side in (low, high)]
    return max(float(low.mean()) - margins[0], lowest), min(float(high.mean()) + margins[1], highest)


def _sentences(
    claim: Claim, limits: Limits, normal: Limits, infinite: int, undecided: int, values: FloatArray
) -> Iterator[str]:
    """What the intervals promise, and what keeps them from being narrower."""
    if infinite:
        never = f"{infinite:,} of {len(values):,} runs ended where what is waited for can never happen"
        yield f"the expected reward is infinite: {never}, so its probability is less than 1"
        return
    share, bounded = percent(claim.level), claim.mode == "frequentist"
    if bounded:
        contain = f"{claim.measure} contain it in at least {share} of cases"
        yield f"the expected reward is from {limits[0]:.6g} to {limits[1]:.6g}: {contain}"
    asymptotic = f"as the number of runs grows, {_NORMAL} contain it in {share} of cases"
    what = "asymptotically it" if bounded else "the expected reward"
    yield f"{what} is from {normal[0]:.6g} to {normal[1]:.6g}: {asymptotic}"
    if not bounded and values.min() == values.max():
        yield "all runs earned the same, from which nothing follows about how far others may differ"
    if undecided:
        above = "the most that is possible" if bounded else "any amount"
        yield f"{undecided:,} undecided runs count with what they had earned below, and with {above} above"


@dataclass(frozen=True, slots=True)
class Earnings:
    """What runs earned, for as long as they were followed.

    `ends` is FINITE for a run that was followed to its end; INFINITE for one that shows that the expected reward is
    infinite, since what it waits for will never happen; and else the place in REASONS of why it is undecided.
    """

    values: FloatArray
    ends: IntArray
    events: int


class Earner:
    """A model with a reward under given parameters, ready to run many times; a run is fixed by (seed, run)."""

    def __init__(
        self,
        model: Model,
        reward: Reward,
        theta: Mapping[str, float],
        *,
        seed: int,
        max_events: int,
        max_time: float,
    ) -> None:
        check_reward(model, reward)
        self.model, self.reward, self.theta = model, reward, dict(theta)
        self.seed, self.max_events, self.max_time = seed, max_events, max_time
        self.values = model.values(theta)
        self._row = np.array([[self.values[each.name] for each in model.parameters]])
        # No run at all, but every check of one.
        Runner(model, ()).run(self._row, [[0, 0, 0]], seed=seed, max_events=max_events, max_time=max_time)
        self._kernel: Kernel = kernel(model, (), checked=True, record=True)

    @property
    def is_compiled(self) -> bool:
        """Whether the first run need not compile."""
        return self._kernel.is_cached

    @property
    def range(self) -> tuple[float, float]:
        """Between which values a run's reward lies whatever happens; the upper one may be infinite."""
        if not self.model.events:
            begin = {**self.values, **self.model.initial(self.values)}
            if self.reward.over == "I" and self.reward.time == 0.0:
                return (float(earning(self.reward.rate, begin, 1)[0]),) * 2
            if holding(self.reward.reached, begin, 1)[0]:
                return 0.0, 0.0
        if self.reward.time == math.inf:
            return 0.0, math.inf
        bounds = {name: (np.float64(value),) * 2 for name, value in self.values.items()}
        for variable in self.model.variables:
            low = -math.inf if variable.low is None else float(variable.low)
            high = math.inf if variable.high is None else float(variable.high)
            bounds[variable.name] = np.float64(low), np.float64(high)
        low, high = (float(end) for end in interval(self.reward.rate, bounds))  # type: ignore[arg-type]
        if not high < math.inf:
            return 0.0, math.inf
        spent = self.reward.time if self.reward.over == "C" else 1.0
        return max(low, 0.0) * spent, high * spent

    def run(self, first: int, runs: int) -> Earnings:
        """What the runs from number `first` on earn."""
        values, ends, events = np.zeros(runs), np.zeros(runs, np.int64), 0
        look = min(self.reward.time, self.max_time, _FIRST_LOOK if self.reward.time == math.inf else math.inf)
        for place in range(runs):
            until = look
            while True:
                rows, following, capped = self._recorded(first + place, until)
                value, end, time = self._earned(rows, following, capped, until, first + place)
                if end is not None:
                    break
                until = min(until * _LONGER, self.max_time, _FOREVER)
            values[place], ends[place] = value, end
            events += len(rows) - 1
            if self.reward.time == math.inf:
                look = min(max(look, 2.0 * time), self.max_time)
        return Earnings(values, ends, events)

    def _recorded(self, run: int, until: float) -> tuple[FloatArray, float, bool]:
        """The states of a run up to a time, when the next jump is, and whether max_events ended it."""
        fault = np.zeros(2 + len(self.model.events), np.int64)
        limits = np.uint64(self.seed), float(until), int(self.max_events), float(LARGEST_WHOLE)
        items = np.array([[0, run, 1]], np.int64)
        rows, following, outcome = self._kernel.record(self._row, items, *limits, fault)
        if outcome == 2:  # the run itself is at fault: to make it again says how
            again = partial(replay, self.model, self.theta, until=until, seed=self.seed, run=run, progress=None)
            again(max_events=self.max_events)
        return rows, float(following), outcome == 1

    def _earned(
        self, rows: FloatArray, following: float, capped: bool, until: float, run: int
    ) -> tuple[float, int | None, float]:
        """What was earned, how it ended, or None if it must be followed further, and when."""
        reward, size = self.reward, len(rows)
        columns = {name: rows[:, 2 + place] for place, name in enumerate(self.model.species)}
        environment = {**self.values, **columns}
        hits = np.flatnonzero(holding(reward.reached, environment, size))
        count = int(hits[0]) if len(hits) else size
        rates = earning(reward.rate, environment, size)[:count]
        fine = np.isfinite(rates) & (rates >= 0.0)
        if not fine.all():
            worst = int(np.argmin(fine))
            raise wrong_rate(reward, rates[worst], f"at time {rows[worst, 0]:g} of run {run}, seed {self.seed}")
        absorbed = following == math.inf and not capped
        if absorbed:
            until = reward.time
        known = float(rows[-1, 0]) if capped else min(until, following)
        times = np.append(rows[:, 0], known)[: count + 1]
        if absorbed and reward.time == math.inf and count == size:
            times = times[:count]  # what follows lasts for ever
        total = float(rates[: len(times) - 1] @ np.diff(times))
        if reward.over == "F" and len(hits):
            return total, FINITE, float(times[-1])
        if reward.time < math.inf and not capped and until >= reward.time:
            return (float(rates[-1]) if reward.over == "I" else total), FINITE, until
        if absorbed and reward.time == math.inf:
            ends_well = reward.over == "C" and rates[-1] == 0.0
            return total, FINITE if ends_well else INFINITE, float(rows[-1, 0])
        if capped or until >= min(self.max_time, _FOREVER):
            reason = "max_events" if capped else "max_time"
            return (0.0 if reward.over == "I" else total), REASONS.index(reason), known
        return total, None, known
