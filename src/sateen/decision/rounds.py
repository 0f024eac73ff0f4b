"""Rounds of runs: observe, fit, choose where to run next, until the figure of a goal is small enough.

A round is fixed by the seed, its number and what was observed before it, so a search that was stopped resumes to the
same bits. What was decided is written to the store before it is used: the figure, and the points and runs of the next
round. A resumed search reads these, and fits only where it continues. The kernel, or whatever else a learner is slow to
learn, is learned again when the runs have grown by a factor.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from sateen.core.errors import InputError, Interrupted
from sateen.core.fingerprints import fingerprint
from sateen.core.interrupts import heeding_interrupts
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, fit_learner
from sateen.core.prediction import Learner
from sateen.core.progress import Progress, working
from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Space
from sateen.core.threads import on_one_thread
from sateen.core.types import File, FloatArray, IntArray
from sateen.core.version import VERSION
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.sampling.notes import Notes
from sateen.sampling.observe import ObserveOptions, observe
from sateen.sampling.source import BlackBox, Function, name_of

GROWTH: Final = 0.3  # of the runs so far, that a round may add
_RELEARN: Final = 1.5  # times the runs at which the kernel was learned
_LEAST_SHARE: Final = 0.08  # of the runs so far, that a round adds if the goal is near
_TREND: Final = 4  # rounds from which the next is forecast
_FAR: Final = 50.0  # a goal is out of reach, in logarithms of runs
_STALLED_FACTOR: Final = 4.0  # times the runs without ...
_STALLED_GAIN: Final = 0.02  # ... a gain this small is not progress
_MOST_ROUNDS: Final = 200


@dataclass(frozen=True, slots=True)
class Round:
    """What was known after a round: `figure` is the goal's, `points` and `runs` are those of all rounds so far."""

    number: int
    points: int
    runs: int
    figure: float
    note: str


class Strategy(Protocol):
    """What decides in a search: how far the goal is, and where to run next. Posteriors are by property."""

    @property
    def aim(self) -> float:
        """The figure at which the goal is reached."""

    def words(self, figure: float) -> str:
        """The figure in words."""

    def identity(self) -> object:
        """All that its decisions depend on besides posteriors and seeds, as plain data."""

    def figure(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> float:
        """How far the goal is."""

    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> tuple[FloatArray, IntArray]:
        """The points of the next round, a row each, and the runs at each, at most `budget` together."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is observed: a model or a black box, and its formulas by name; None for what a black box decides itself."""

    model: Model | Function
    formulas: Mapping[str, Formula | None]
    space: Space

    def observe(self, points: Points, runs: object, *, seed: int, **options: Any) -> dict[str, Observations]:
        """The observations by name, all from one set of runs."""
        formulas = {name: formula for name, formula in self.formulas.items() if formula is not None}
        observed = observe(self.model, formulas or None, points, runs, seed=seed, **options)  # type: ignore[call-overload]
        return self.by_name(observed)

    def by_name(self, observed: Observations | Mapping[str, Observations]) -> dict[str, Observations]:
        """What `observe` gave, by name also where a black box decides itself."""
        return {next(iter(self.formulas)): observed} if isinstance(observed, Observations) else dict(observed)

    def identity(self) -> dict[str, object]:
        """What it asks, as plain data, by which a store knows it; a black box is known by its name and its text."""
        model: object = str(self.model)
        if not isinstance(self.model, Model):
            model = BlackBox(self.model, (), self.space, 0).identity()
        formulas = {name: None if each is None else [str(each), each.end] for name, each in self.formulas.items()}
        return {"sateen": VERSION, "model": model, "formulas": formulas, "space": repr(self.space)}


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a search ends with: observations and posteriors by property, its rounds, and why it ended."""

    observations: Mapping[str, Observations]
    posteriors: Mapping[str, FullPosterior]
    rounds: tuple[Round, ...]
    reached: bool
    reason: str


class Search:
    """Rounds of runs about a question, from a start until a strategy is content or the budget is spent."""

    def __init__(
        self,
        question: Question,
        strategy: Strategy,
        learner: Learner,
        *,
        start: Mapping[str, Observations] | tuple[int, int],
        budget: int,
        seed: int,
        store: File | None,
        progress: Progress,
        options: ObserveOptions,
    ) -> None:
        self.question, self.strategy, self.learner = question, strategy, learner
        self.start, self.budget, self.seed, self.progress = start, budget, seed, progress
        self.store, self.options = store, options
        self.rounds: list[Round] = []
        self.sizes: list[int] = []  # rows of the observations after each round
        self.observations: dict[str, Observations] = {}
        self.given = sum(map(_runs, start.values())) // len(start) if isinstance(start, Mapping) else 0
        self._learned: dict[str, tuple[int, FullPosterior]] = {}

    @on_one_thread
    def run(self) -> Outcome:
        """Do all rounds that are missing."""
        key = "" if self.store is None else self._key()
        with working(self.progress, "refine", self.budget, "runs"), Notes(self.store, key) as notes:
            try:
                return self._rounds(notes)
            except KeyboardInterrupt:
                raise Interrupted(self._stopped(), self._partial()) from None

    def _rounds(self, notes: Notes) -> Outcome:
        self._begin()
        while True:
            number = len(self.rounds)
            decision = notes.read(f"round {number}")
            if decision is None:
                decision = self._decide(number)
                notes.write(f"round {number}", decision)
            self.rounds.append(Round(number, self.points, self.runs, decision["figure"], decision["note"]))
            self.progress.note(decision["note"])
            if decision["reason"]:
                posteriors = {name: self._posterior(name, number) for name in self.observations}
                return Outcome(
                    self.observations, posteriors, tuple(self.rounds), decision["reached"], decision["reason"]
                )
            theta = np.array(decision["theta"], np.float64).reshape(len(decision["runs"]), len(self.question.space))
            self._add(Points(theta, self.question.space, "active"), np.array(decision["runs"], np.int64), number + 1)

    def _begin(self) -> None:
        """The observations of the start: those that are given, or of a design that fills the space."""
        if isinstance(self.start, Mapping):
            self.observations = dict(self.start)
            self.sizes.append(self.points)
            return
        points, runs = self.start
        space = self.question.space
        design = space.sobol(points, seed=stream_seed(self.seed, "start")) if space.names else space.points({})
        self._add(Points(design.theta, space, "active"), runs if space.names else points * runs, 0)

    def _add(self, points: Points, runs: object, number: int) -> None:
        seed = stream_seed(self.seed, "round", number)
        if any(seed in each.seeds for each in self.observations.values()):
            problem = f"the seed {self.seed} was used for the initial observations"
            raise InputError(problem, argument="seed", remedy="take another {seed}")
        inner = _Forwarded(self.progress)
        try:
            observed = self.question.observe(points, runs, seed=seed, store=self.store, progress=inner, **self.options)
        except Interrupted as stop:
            if stop.partial is not None:
                self._join(self.question.by_name(stop.partial))
            raise
        self._join(observed)
        self.sizes.append(self.points)

    def _join(self, observed: Mapping[str, Observations]) -> None:
        before = self.observations
        self.observations = {name: joined(before[name], more) if before else more for name, more in observed.items()}

    @property
    def points(self) -> int:
        """How many points were observed so far."""
        return len(next(iter(self.observations.values())))

    @property
    def runs(self) -> int:
        """How many runs were made so far, those of the start too."""
        return _runs(next(iter(self.observations.values())))

    def _decide(self, number: int) -> dict[str, Any]:
        """What is known after the last round, and where to run next, as plain data."""
        with heeding_interrupts():
            posteriors = {name: self._posterior(name, number) for name in self.observations}
        figure = self.strategy.figure(posteriors, seed=stream_seed(self.seed, "figure"))
        note = f"{self.runs:,} runs: {self.strategy.words(figure)}"
        left = self.budget - (self.runs - self.given)
        reached, reason = self._ended(figure, left, number)
        decision: dict[str, Any] = {"figure": figure, "note": note, "reached": reached, "reason": reason}
        if reason:
            return decision
        size = self._size(figure, left)
        theta, runs = self.strategy.choose(posteriors, size, seed=stream_seed(self.seed, "choice", number))
        return {**decision, "theta": theta.tolist(), "runs": runs.tolist()}

    def _ended(self, figure: float, left: int, number: int) -> tuple[bool, str]:
        """Whether the goal is reached, and why the search ends, if it does."""
        words = self.strategy.words(figure)
        if figure <= self.strategy.aim:
            return True, f"the goal is reached after {self.runs:,} runs: {words}"
        if left < 1:
            return False, f"the budget is spent: {words} after {self.runs:,} runs"
        past = [each for each in self.rounds if each.runs * _STALLED_FACTOR <= self.runs]
        # A figure that rests on few runs may be small by chance: the largest of some rounds is compared.
        if past and figure > (1.0 - _STALLED_GAIN) * max(each.figure for each in past[-_TREND:]):
            than = f"no better than after {past[-1].runs:,} runs"
            return False, f"more runs do not help this learner: {words} after {self.runs:,} runs, {than}"
        if number >= _MOST_ROUNDS:
            return False, f"{_MOST_ROUNDS} rounds are made: {words} after {self.runs:,} runs"
        return False, ""

    def _size(self, figure: float, left: int) -> int:
        """The runs of the next round: a share of those so far, fewer where the trend says that fewer will do."""
        size = GROWTH * self.runs
        recent = [(each.runs, each.figure) for each in self.rounds[1 - _TREND :]] + [(self.runs, figure)]
        if len(recent) == _TREND and min(value for _, value in recent) > 0:
            logs = np.log(np.array(recent, np.float64))
            slope = -float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
            if slope > 0:
                missing = self.runs * math.expm1(min(math.log(figure / self.strategy.aim) / slope, _FAR))
                size = min(size, max(missing, _LEAST_SHARE * self.runs))
        whole = max(int(size), 1)
        return left if left < 1.5 * whole else whole

    def _posterior(self, name: str, number: int) -> FullPosterior:
        """What the learner makes of the observations after a round; the kernel is that of an earlier one, if it can."""
        since = self._learned_at(number)
        known = self._learned.get(name)
        if known is None or known[0] != since:
            rows = self.observations[name][: self.sizes[since]]
            posterior = fit_learner(
                self.learner, rows, seed=stream_seed(self.seed, "fit", since), progress=_Forwarded(self.progress)
            )
            _check_whole(posterior)
            self._learned[name] = known = since, posterior
        if since == number:
            return known[1]
        seed = stream_seed(self.seed, "fit", number)
        posterior = known[1].updated(self.observations[name], seed=seed, progress=_Forwarded(self.progress))
        _check_whole(posterior)
        return posterior

    def _learned_at(self, number: int) -> int:
        """The last round up to this one at which everything is learned again."""
        trials = next(iter(self.observations.values())).trials
        runs = [int(trials[:size].sum()) for size in self.sizes]
        since = 0
        for later in range(1, number + 1):
            since = later if runs[later] > _RELEARN * runs[since] else since
        return since

    def _key(self) -> str:
        """What fixes all decisions of the search."""
        start = (
            {name: each.fingerprint for name, each in self.start.items()}
            if isinstance(self.start, Mapping)
            else list(self.start)
        )
        settings = asdict(self.learner) if is_dataclass(self.learner) else repr(self.learner)
        limits = {name: value for name, value in self.options.items() if name.startswith("max_")}
        content = {
            "question": self.question.identity(),
            "strategy": self.strategy.identity(),
            "learner": [
                name_of(type(self.learner)),
                json.loads(json.dumps(settings, default=str)),
                _code(self.learner),
            ],
            "start": start,
            "budget": self.budget,
            "seed": self.seed,
            "limits": limits,
        }
        return fingerprint(content)

    def _stopped(self) -> str:
        done = f"stopped after {self.runs if self.observations else 0:,} of at most {self.given + self.budget:,} runs"
        kept = ".partial has them" if self.store is None else f"the store {self.store} has them: run the same again"
        return f"{done}; {kept}"

    def _partial(self) -> object:
        return self.observations if len(self.observations) != 1 else next(iter(self.observations.values()))


class _Forwarded:
    """Passes the advances and notes of a part to the progress of the whole, whose beginning and end are its own."""

    __slots__ = ("counted", "whole")

    def __init__(self, whole: Progress) -> None:
        self.whole, self.counted = whole, False

    def start(self, label: str, total: int, unit: str) -> None:
        self.counted = unit == "runs"

    def advance(self, n: int) -> None:
        if self.counted:
            self.whole.advance(n)

    def note(self, text: str) -> None:
        self.whole.note(text)

    def finish(self) -> None: ...


def joined(before: Observations, more: Observations) -> Observations:
    """The rows of both; the points were chosen by what was seen, which their design says."""
    both = before + more
    return replace(both, points=Points(both.theta, both.space, "active"))


def _code(learner: Learner) -> str:
    """The source of a user's own learner, so that decisions by an earlier version are not mistaken for its own."""
    if type(learner).__module__.startswith("sateen."):
        return ""
    with suppress(OSError, TypeError):
        return inspect.getsource(type(learner))
    return "unknown"


def _runs(observations: Observations) -> int:
    return int(observations.trials.sum())


def _check_whole(posterior: FullPosterior) -> None:
    """A fit that Ctrl-C ended early is not a basis for decisions."""
    if posterior.record.interrupted:
        raise KeyboardInterrupt
