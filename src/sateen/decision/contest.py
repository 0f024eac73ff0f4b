"""What is claimed of a best point, by fresh runs only: the value there, and that hardly anything is better.

The value is the frequency among runs whose number was fixed beforehand, with Clopper and Pearson's interval. With a
box of tolerances every run has a θ of its own, drawn uniformly in the box: a run is then a coin whose probability is
the mean of f over the box, exactly.

For the regret, fresh designs are drawn uniformly, and each is tested by a bet (evidence.py) against its being better
than the value's bound by more than the gap. With constraints, a design is better only if it satisfies them too; so the
bet may be against any one of these. Which one is fixed by the posterior before the runs: a design that is better wins
such a bet with probability alpha at most, whichever it is.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.proportions import clopper_pearson, lower_bound, upper_bound
from sateen.core.seeds import stream, stream_seed
from sateen.core.space import Points
from sateen.core.text import plural
from sateen.core.types import FloatArray, IntArray
from sateen.decision.evidence import Look, Trial, bets
from sateen.decision.fresh import wrong_bound
from sateen.decision.optimum import Limit
from sateen.decision.planning import CertificatePlan, all_plans
from sateen.decision.refine import Running
from sateen.decision.rounds import Question
from sateen.decision.tolerance import Tolerance

Draw: TypeAlias = Callable[[int, np.random.Generator, Mapping[str, FullPosterior]], FloatArray]
_FORECAST_POINTS: Final = 512
_FORECAST_DRAWS: Final = 48
CHANCE: Final = 0.9  # to pass, at least, of a test that is taken
_HOPELESS: Final = 0.5  # a chance to pass below which no run is spent
_SAFE_Z: Final = 1.645  # deviations by which a constraint's frequency may be off, in the forecast of its runs


@dataclass(frozen=True, slots=True)
class Counts:
    """Runs of a property at one design: the satisfied ones, the undecided ones, and all."""

    satisfied: int
    undecided: int
    trials: int

    @classmethod
    def of(cls, seen: Observations) -> Counts:
        """The runs at all points of observations together."""
        return cls(int(seen.satisfied.sum()), int(seen.undecided.sum()), int(seen.trials.sum()))

    @property
    def frequency(self) -> float:
        """The share of satisfied runs; of undecided ones, half."""
        return (self.satisfied + 0.5 * self.undecided) / self.trials

    def interval(self, miss: float) -> tuple[float, float]:
        """Clopper and Pearson's interval; undecided runs count against both of its ends."""
        return clopper_pearson(self.satisfied, self.trials, 1.0 - miss, self.undecided)

    def bound(self, limit: Limit, miss: float) -> float:
        """The one-sided bound of the kind that a constraint needs."""
        if limit[0] == "<=":
            return float(upper_bound(self.satisfied + self.undecided, self.trials, miss))
        return float(lower_bound(self.satisfied, self.trials, miss))


def fresh_runs(
    question: Question, tolerance: Tolerance, unit: FloatArray, runs: int, seed: int, running: Running
) -> dict[str, Observations]:
    """Fresh runs at one design, each with a θ of its own in the box of tolerances."""
    rows = unit[None] if tolerance.exact else np.repeat(unit[None], runs, axis=0)
    theta = tolerance.drawn(rows, stream(seed, "tolerances"))
    return question.observe(
        Points(theta, question.space, "active"),
        runs if tolerance.exact else 1,
        seed=stream_seed(seed, "runs"),
        store=running.store,
        progress=running.progress,
        **running.observing,
    )


def value_runs(probability: float, half: float, miss: float) -> int:
    """How many runs make Clopper and Pearson's interval at most 2 `half` wide, if the frequency is as expected.

    >>> value_runs(0.5, 0.01, 0.05)
    9701
    """

    def narrow(runs: int) -> bool:
        low, high = clopper_pearson(round(probability * runs), runs, 1.0 - miss)
        return high - low <= 2.0 * half

    most = 16
    while not narrow(most):
        most *= 2
    return bisect_left(range(most), True, lo=1, key=narrow)


def limit_runs(probability: float, limit: Limit, miss: float, most: int) -> int:
    """How many runs show that a constraint is satisfied, by a fair chance, if the probability is this; at most `most`.

    >>> limit_runs(0.04, ("<=", 0.05), 0.025, 100_000)
    5665
    """

    def shown(runs: int) -> bool:
        count = probability * runs
        off = _SAFE_Z * math.sqrt(max(count * (1.0 - probability), 0.0))
        if limit[0] == "<=":
            return bool(upper_bound(math.ceil(min(count + off, runs)), runs, miss) <= limit[1])
        return bool(lower_bound(math.floor(max(count - off, 0.0)), runs, miss) >= limit[1])

    return bisect_left(range(most), True, lo=1, key=shown) if most > 1 else most


@dataclass(frozen=True, slots=True)
class Bet:
    """A statement about a property: its probability is at least `threshold`, or at most if it is `mirrored`."""

    name: str
    threshold: float
    mirrored: bool

    @property
    def tested(self) -> float:
        """The threshold of the test, mirrored where the statement is."""
        return 1.0 - self.threshold if self.mirrored else self.threshold

    @classmethod
    def against(cls, name: str, limit: Limit) -> Bet:
        """That a constraint is violated."""
        return cls(name, limit[1], mirrored=limit[0] == ">=")


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """A test of designs, at each of which one of the `bets` is played, all of it fixed before the runs.

    `draw(n, rng, posteriors)` draws n of them, independently, where every range is [-1, 1].

    Where designs have tolerances, every run has a θ of its own in the box of its design.
    """

    question: Question
    posteriors: Mapping[str, FullPosterior]
    tolerance: Tolerance
    bets: tuple[Bet, ...]
    draw: Draw

    def _guesses(self, unit: FloatArray) -> FloatArray:
        """For each bet, the posterior mean of what it says at each design."""
        theta = Points(self.tolerance.around(unit), self.question.space)
        rows = []
        for bet in self.bets:
            mean = self.posteriors[bet.name].predict(theta).mean.reshape(len(unit), -1).mean(axis=1)
            rows.append(1.0 - mean if bet.mirrored else mean)
        return np.array(rows)

    def played(self, unit: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """At each design: which bet is played, its threshold, and q. The one that is expected to grow fastest is."""
        guess = np.clip(self._guesses(unit), 0.0, 1.0)
        p = np.array([[bet.tested] for bet in self.bets]) + np.zeros_like(guess)
        q = np.array([bets(bet.tested, row) for bet, row in zip(self.bets, guess, strict=True)])
        growth = guess * np.log(q / p) + (1.0 - guess) * np.log((1.0 - q) / (1.0 - p))
        which = growth.argmax(axis=0)
        at = which, np.arange(len(unit))
        return which, p[at], q[at]

    def plans(self, wrong: float, error: float, seed: int) -> list[tuple[CertificatePlan, int]]:
        """Every plan for the test, with the runs that it needs to pass with a chance of 90 %, by the posterior."""
        count = max(_FORECAST_POINTS // len(self.tolerance.offsets), 16)
        unit = self.draw(count, stream(seed, "forecast designs"), self.posteriors)
        which, threshold, bet = self.played(unit)
        theta = Points(self.tolerance.around(unit), self.question.space)
        truth = np.empty((_FORECAST_DRAWS, count))
        for place, each in enumerate(self.bets):
            mine = which == place
            if not mine.any():
                continue
            draws = self.posteriors[each.name].sample(theta, _FORECAST_DRAWS, seed=stream_seed(seed, "draws", place))
            worth = draws.reshape(_FORECAST_DRAWS, count, -1).mean(axis=2)[:, mine]
            truth[:, mine] = 1.0 - worth if each.mirrored else worth

        def trial(alpha: float, cap: int) -> Trial:
            return Trial(threshold, bet, alpha, cap, mirrored=False)

        choices = ((None, np.ones(count, np.bool_), 1.0),)
        return list(all_plans(trial, truth, choices, wrong, error, seed))

    def test(self, wrong: float, error: float, budget: int, seed: int, running: Running) -> Verdict:
        """Forecast the test, and make it if it has a fair chance to pass and the budget suffices."""
        plans = self.plans(wrong, error, stream_seed(seed, "forecast"))
        best = max(plan.chance for plan, _ in plans)
        if best < _HOPELESS:
            return Verdict(False, 0, f"the posterior believes that the test passes with a chance of {100 * best:.0f} %")
        fair = [(plan, needed) for plan, needed in plans if plan.chance >= min(CHANCE, best)]
        within = [(plan, needed) for plan, needed in fair if needed <= budget]
        if not within:
            least = min(needed for _, needed in fair)
            return Verdict(False, 0, f"about {plural(least, 'run')} are needed for it, and {budget:,} are left", least)
        plan = min(within, key=lambda each: each[0].runs)[0]
        return self.play(plan, wrong, budget, seed, running)

    def play(self, plan: CertificatePlan, wrong: float, budget: int, seed: int, running: Running) -> Verdict:
        """The test as planned: whether the share of designs against which no bet can be won is at most `wrong`."""
        unit = self.draw(plan.points, stream(seed, "designs"), self.posteriors)
        which, threshold, bet = self.played(unit)
        trial = Trial(threshold, bet, plan.alpha, plan.cap, False, plan.flags, budget)
        outcome = trial.play(self._looker(unit, which, seed, running))
        bound = wrong_bound(outcome.flags, plan.points, plan.error, plan.alpha)
        words = f"{outcome.flags} of {plural(plan.points, 'fresh design')} were not shown, and {plan.flags} may be"
        return Verdict(bound <= wrong * (1.0 + 1e-9), outcome.runs, words)

    def _looker(
        self, unit: FloatArray, which: IntArray, seed: int, running: Running
    ) -> Callable[[int, IntArray], Look]:
        """What makes the runs of a look, and counts those that speak for the bet of each design."""

        def look(number: int, runs: IntArray) -> Look:
            each = stream_seed(seed, "look", number)
            exact = self.tolerance.exact
            rows = np.arange(len(unit)) if exact else np.repeat(np.arange(len(unit)), runs)
            theta = self.tolerance.drawn(unit[rows], stream(seed, "tolerances", number))
            seen = self.question.observe(
                Points(theta, self.question.space, "active"),
                runs if exact else 1,
                seed=each,
                store=running.store,
                progress=running.progress,
                **running.observing,
            )
            trials, successes, undecided = (np.zeros(len(unit), np.int64) for _ in range(3))
            for place, bet in enumerate(self.bets):
                mine = which[rows] == place
                one = seen[bet.name]
                won = one.trials - one.satisfied - one.undecided if bet.mirrored else one.satisfied
                for total, counts in ((trials, one.trials), (successes, won), (undecided, one.undecided)):
                    np.add.at(total, rows[mine], counts[mine])
            return Look(each, trials, successes, undecided)

        return look


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a contest came to: whether it passed, its runs, and why; `least` would have been needed to begin it."""

    passed: bool
    runs: int
    words: str
    least: int = 0


def look_seeds(seed: int, most: int) -> set[int]:
    """The seeds of all runs that a contest may make."""
    return {stream_seed(seed, "look", number) for number in range(most)}
