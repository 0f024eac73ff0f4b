"""The claims about a best point, one after another, on what a search has left of the budget.

1. Runs about the best design and its rivals (rivals.py), after which the design is fixed.
2. Fresh runs at the design, their number fixed: the value, and the bounds of constraints.
3. More runs about rivals, now that it is known what counts as better. The posterior knows the runs of 2 by then.
4. Tests at fresh designs: the regret.

The runs of 2 and 4 are fresh: nothing that was fixed before them depends on them. What 3 does with the runs of 2 only
changes the bets of 4, which may depend on anything that came before.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Claim, drawn_uniformly
from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Range, Space
from sateen.core.text import plural
from sateen.core.types import FloatArray
from sateen.decision.best import HALF, BestPoint, ConstraintResult, Task
from sateen.decision.contest import Bet, Contest, Counts, Draw, fresh_runs, limit_runs, look_seeds, value_runs
from sateen.decision.evidence import MOST_LOOKS
from sateen.decision.optimum import Limit
from sateen.decision.refine import run_search
from sateen.decision.rivals import Contests, RivalStrategy
from sateen.decision.rounds import Outcome, joined
from sateen.decision.tolerance import Tolerance
from sateen.model.model import Model

LEAST_SEARCH: Final = 200  # runs
_DOUBTFUL: Final = 1.5  # a figure from which on no design is even probably feasible
_PREPARED: Final = 3.0  # times the runs so far: what a test may cost when the best design is fixed


class Claims:
    """What a search ended with, turned into a best point with claims.

    `left` is what is left of the budget, of which at most `ready` goes to runs before the design is fixed.
    """

    def __init__(self, task: Task, outcome: Outcome, left: int, ready: int) -> None:
        self.task, self.left, self.rounds = task, left, outcome.rounds
        self.posteriors, self.observations = dict(outcome.posteriors), dict(outcome.observations)
        self.notes = [outcome.reason]
        searched = self.observations[task.objective]
        self.runs = int(searched.trials.sum())
        self._check_seeds(searched)
        if outcome.rounds[-1].figure >= _DOUBTFUL:
            raise InputError(
                f"no parameter is likely to satisfy the constraints, after {plural(self.runs, 'run')} of search",
                argument="subject_to",
                remedy="loosen a limit, widen the space, or give a larger {budget}",
            )
        self.box = Tolerance.of(task.question.space, None) if task.tolerance.worst else task.tolerance
        if task.by == "fresh":
            strategy = RivalStrategy(
                self._contests(self._draw),
                self._bets(0.5),
                task.wrong,
                task.share,
                search=task.strategy,
                margin=(1.0 - HALF) * task.gap,
                aim=_PREPARED,
            )
            self._learn(strategy, ready, stream_seed(task.seed, "prepare"))
        self.design = task.strategy.design(self.posteriors, seed=stream_seed(task.seed, "design"))

    def _check_seeds(self, seen: Observations) -> None:
        """Refuse observations to begin with that have runs of the claims."""
        task = self.task
        mine = {stream_seed(stream_seed(task.seed, "value"), "runs")}
        for name in ("regret", "worst"):
            mine |= look_seeds(stream_seed(task.seed, name), MOST_LOOKS)
        if mine & set(seen.seeds):
            problem = f"the seed {task.seed} was used for the initial observations"
            raise InputError(problem, argument="seed", remedy="take another {seed}")

    def made(self) -> BestPoint:
        """All claims, the value first."""
        task = self.task
        seen = self._fresh(self._spot(self.design[None], self.posteriors)[0])
        counts = {name: Counts.of(each) for name, each in seen.items()}
        if self.box.exact:  # what the runs of the value say is known from now on
            self.observations = {name: joined(each, seen[name]) for name, each in self.observations.items()}
        (lower, upper), claim = self._value(counts[task.objective])
        claims = [claim]
        if task.tolerance.worst:
            lower, upper, claims = self._worst(lower, upper)
        regret, about = self._cells() if task.by == "cells" else self._regret(lower, upper)
        constraints = {name: self._constraint(name, limit, counts[name]) for name, limit in task.limits.items()}
        claims += [] if about is None else [about]
        claims += [each.claim for each in constraints.values()]
        space = task.question.space
        return BestPoint(
            theta=Points(space.from_unit(self.design[None]), space)[0],
            value=counts[task.objective].frequency,
            lower=lower,
            upper=upper,
            claims=tuple(claims),
            regret=regret,
            constraints=MappingProxyType(constraints),
            posterior=self.posteriors[task.objective],
            observations=self.observations[task.objective],
            rounds=self.rounds,
            runs=self.runs,
            reason="; ".join(self.notes),
            minimise=task.minimise,
            posteriors=MappingProxyType(dict(self.posteriors)),
        )

    # Runs

    def _spend(self, runs: int) -> None:
        self.runs += runs
        self.left -= runs

    def _learn(self, strategy: RivalStrategy, budget: int, seed: int) -> None:
        """The rounds of a strategy, if there are enough runs for them; all that was seen is learned."""
        task, before = self.task, int(self.observations[self.task.objective].trials.sum())
        if budget < LEAST_SEARCH:
            return
        start, running = dict(self.observations), task.running
        outcome = run_search(
            task.question, strategy, task.learner, budget=budget, seed=seed, start=start, running=running
        )
        self.posteriors, self.observations = dict(outcome.posteriors), dict(outcome.observations)
        self._spend(int(self.observations[task.objective].trials.sum()) - before)

    def _fresh(self, spot: FloatArray) -> dict[str, Observations]:
        """Fresh runs at the best design, as many as the claims need, or as there are."""
        task, share = self.task, self.task.share
        theta = Points(self.box.around(spot[None]), task.question.space)
        likely = self.posteriors[task.objective].predict(theta)
        mean, off = float(likely.mean.mean()), 2.0 * float(likely.std.mean())
        wanted = value_runs(min(max(0.5, mean - off), mean + off), HALF * task.gap, share)
        for name, limit in task.limits.items():
            about = self.posteriors[name].predict(theta)
            toward = 1.0 if limit[0] == "<=" else -1.0
            guess = float(np.clip(about.mean.mean() + toward * about.std.mean(), 0.0, 1.0))
            wanted = max(wanted, limit_runs(guess, limit, share, max(self.left // 2, wanted)))
        runs = max(min(wanted, self.left), 1)
        if runs < wanted:
            self.notes.append(f"the interval is wider than planned: {runs:,} runs were left for it, not {wanted:,}")
        self._spend(runs)
        return fresh_runs(task.question, self.box, spot, runs, stream_seed(task.seed, "value"), task.running)

    # The value

    def _spot(self, unit: FloatArray, posteriors: Mapping[str, FullPosterior]) -> FloatArray:
        """Where the value of designs is measured: at themselves; or where the posterior believes the box the worst."""
        tolerance = self.task.tolerance
        if not tolerance.worst:
            return unit
        theta = Points(tolerance.around(unit), tolerance.space)
        mean = posteriors[self.task.objective].predict(theta).mean.reshape(len(unit), -1)
        worst = mean.argmax(axis=1) if self.task.minimise else mean.argmin(axis=1)
        return np.asarray(np.clip(unit + tolerance.offsets[worst], -1.0, 1.0))

    def _value(self, counts: Counts) -> tuple[tuple[float, float], Claim]:
        share = self.task.share
        about = "" if self.box.exact else " with parameters drawn from the box of tolerances"
        measure = f"Clopper and Pearson's intervals of {plural(counts.trials, 'fresh run')}{about}"
        claim = Claim("probability", "frequentist", 1.0 - share, measure, runs=counts.trials)
        return counts.interval(share), claim

    def _constraint(self, name: str, limit: Limit, counts: Counts) -> ConstraintResult:
        """What the fresh runs say of a constraint."""
        sense, most = limit
        bound = counts.bound(limit, self.task.share)
        holds = bound <= most if sense == "<=" else bound >= most
        kind = "upper" if sense == "<=" else "lower"
        measure = (
            f"one-sided intervals of {name} with Clopper and Pearson's {kind} bound of {counts.trials:,} fresh runs"
        )
        claim = Claim("probability", "frequentist", 1.0 - self.task.share, measure, by=f"{name} {sense} {most:g}")
        return ConstraintResult(sense, most, counts.frequency, bound, bool(holds), claim)

    def _worst(self, low: float, high: float) -> tuple[float, float, list[Claim]]:
        """The bound that holds on all but a share of the box; the other end is that of its worst point."""
        task, design, half = self.task, self.design, self.task.tolerance.half
        bar = high + task.gap if task.minimise else low - task.gap

        def draw(count: int, rng: np.random.Generator, _: Mapping[str, FullPosterior]) -> FloatArray:
            return np.asarray(design + half * (2.0 * rng.random((count, len(design))) - 1.0))

        claims = []
        if 0.0 < bar < 1.0:
            if self._tested("worst", (Bet(task.objective, bar, task.minimise),), draw, "the box"):
                box = drawn_uniformly(task.tolerance.box(design)).replace("from the space", "from the box")
                statement = f"the probability is at {'most' if task.minimise else 'least'} {bar:.6g}"
                sure = 1.0 - task.share
                claims.append(Claim("region", "pac", 1.0 - task.wrong, box, confidence=sure, by=statement))
            else:
                bar = 1.0 if task.minimise else 0.0
        bar = min(max(bar, 0.0), 1.0)
        return (low, bar, claims) if task.minimise else (bar, high, claims)

    # The regret

    def _regret(self, lower: float, upper: float) -> tuple[float | None, Claim | None]:
        """That all but a share of the designs are at most the gap better, by tests at fresh ones."""
        task, tolerance = self.task, self.task.tolerance
        gap = 2.0 * task.gap if tolerance.worst else task.gap
        bar = upper - gap if task.minimise else lower + gap
        level = 1.0
        if 0.0 < bar < 1.0:
            level = 1.0 - task.wrong
            if not self._tested("regret", self._bets(bar), self._draw, "the space"):
                return None, None
        way = "below" if task.minimise else "above"
        than = f"the bound {upper if task.minimise else lower:.6g}" if tolerance.worst else "that at the best point"
        statement = f"{tolerance.words(task.minimise)} is at most {gap:.4g} {way} {than}"
        if task.limits:
            limits = " and ".join(f"{name} {sense} {limit:g}" for name, (sense, limit) in task.limits.items())
            statement += f", or {limits} does not hold,"
        sure = 1.0 - 2.0 * task.share
        claim = Claim("regret", "pac", level, self._measure(), confidence=sure, by=statement, value=gap)
        return gap, claim

    def _bets(self, bar: float) -> tuple[Bet, ...]:
        """That a design is not better than the bar, or that it violates one of the constraints."""
        objective = Bet(self.task.objective, bar, not self.task.minimise)
        return objective, *(Bet.against(name, limit) for name, limit in self.task.limits.items())

    def _draw(self, count: int, rng: np.random.Generator, known: Mapping[str, FullPosterior]) -> FloatArray:
        """Designs that are drawn uniformly; where the worst counts, the points of their boxes that seem the worst."""
        unit = 2.0 * rng.random((count, len(self.task.question.space))) - 1.0
        return self._spot(self.task.tolerance.designs(unit), known)

    def _measure(self) -> str:
        """How the designs of the regret are drawn, in words."""
        tolerance, space = self.task.tolerance, self.task.question.space
        if tolerance.exact:
            return drawn_uniformly(space)
        reach = [space.from_unit((sign * (1.0 - tolerance.half))[None])[0] for sign in (-1.0, 1.0)]
        ranges = {
            name: Range(float(low), float(high), each.scale)
            for (name, each), low, high in zip(space.ranges.items(), *reach, strict=True)
        }
        return drawn_uniformly(Space({**ranges, **space.fixed}))

    def _contests(self, draw: Draw) -> Contests:
        """The test of bets at designs of a draw, with posteriors that are known then."""

        def contest(posteriors: Mapping[str, FullPosterior], bets: tuple[Bet, ...]) -> Contest:
            return Contest(self.task.question, posteriors, self.box, bets, draw)

        return contest

    def _tested(self, name: str, bets: tuple[Bet, ...], draw: Draw, where: str) -> bool:
        """Whether a contest passes on what is left of the budget, after runs that make it cheaper."""
        task, contests, seed = self.task, self._contests(draw), stream_seed(self.task.seed, name)
        self._learn(RivalStrategy(contests, bets, task.wrong, task.share), self.left // 2, stream_seed(seed, "rivals"))
        verdict = contests(self.posteriors, bets).test(task.wrong, task.share, self.left, seed, task.running)
        self._spend(verdict.runs)
        if not verdict.passed:
            more = f"; a budget of about {self.runs + verdict.least:,} would suffice" if verdict.least else ""
            self.notes.append(f"nothing is claimed of {where}: {verdict.words}{more}")
        return verdict.passed

    def _cells(self) -> tuple[float, Claim]:
        """How much better f is anywhere, by rigorous bounds over cells."""
        from sateen.decision.supremum import largest
        from sateen.engine.enclosure import Enclosure

        task, space = self.task, self.task.question.space
        model, formula = task.question.model, task.question.formulas[task.objective]
        assert isinstance(model, Model)
        assert formula is not None
        enclosure = Enclosure.of(model, formula, space)
        theta = space.from_unit(self.design[None])
        (low,), (high,) = enclosure.bounds(theta, theta)
        known = float(high if task.minimise else low)
        most = largest(enclosure, space, task.gap, known, minimise=task.minimise, progress=task.running.progress)
        regret = max(known - most.lower if task.minimise else most.upper - known, 0.0)
        way = "below" if task.minimise else "above"
        statement = f"the probability is at most {regret:.4g} {way} that at the best point"
        measure = drawn_uniformly(space).replace("drawn uniformly from the space", "of the space")
        return regret, Claim("regret", "sure", 1.0, measure, by=statement, value=regret)
