"""The probability that a model satisfies a formula at one θ, from runs that are counted: statistical model checking.

How many runs are made is chosen in one of three ways: by their number, by the width that the interval should have, or
by a yes-or-no question about the probability, which the runs continue to answer. Each has an interval that is valid for
its way of stopping; `sequential.py` says why.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Final, overload

import numpy as np

from sateen.core.display import paragraph
from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.progress import USUAL, Progress, watcher, working
from sateen.core.proportions import Limits, clopper_pearson
from sateen.core.text import percent, plural
from sateen.core.threads import processors
from sateen.engine.emit import REASONS
from sateen.engine.run import Counts, Runner
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.logic.rewards import Reward
from sateen.model.given import check_model
from sateen.model.model import Model
from sateen.sampling.bayes import UNIFORM, BayesAnswer, BayesTest, Prior, answered
from sateen.sampling.rewards import RewardEstimate, estimate_reward, refuse_others
from sateen.sampling.sequential import (
    Bits,
    Decision,
    SequentialTest,
    Tally,
    anytime,
    credible,
    until_answered,
    until_width,
)

_DEFAULT_RUNS: Final = 10_000
_INDIFFERENCE: Final = 0.01
_ERROR: Final = 0.05
_FIRST_CHUNK: Final = 64  # runs for each thread, before it is known how long they take
_WAVE_SECONDS: Final = 0.2  # between two signs of progress
_TEST: Final = re.compile(r"\s*P\s*(>=?|<=?)\s*(\S+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of P(formula | θ) from runs; `claim` says what the interval from `lower` to `upper` promises.

    `sentences` and `str(estimate)` say it in words. `probability` is the frequency among the `runs`, or NaN if
    undecided runs leave it open; `reasons` says why they are undecided. `bayes_lower` and `bayes_upper` are the ends of
    the central credible interval of the `level`, under a uniform prior or that of the Bayesian test. `planning` counts
    further runs that were made only to plan the number of runs. `events` and `seconds` are those of all runs, without
    compilation. `decision` is the answer to a test, and `bayes` has its evidence if the test is Bayesian.
    """

    probability: float
    lower: float
    upper: float
    level: float
    bayes_lower: float
    bayes_upper: float
    satisfied: int
    undecided: int
    runs: int
    seconds: float
    claim: Claim
    sentences: tuple[str, ...]
    decision: Decision | None = None
    reasons: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    planning: int = 0
    events: int = 0
    bayes: BayesAnswer | None = None

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        runs = plural(self.runs, "run")
        seen = f"Of {runs}, {self.undecided:,} are undecided" if math.isnan(self.probability) else ""
        return paragraph("\n".join((seen or f"Frequency {self.probability:.4g} among {runs}", *self.sentences)))


@overload
def estimate(
    model: Model,
    formula: Reward,
    theta: Mapping[str, float] | None = None,
    *,
    seed: int,
    runs: int | None = None,
    level: float = 0.95,
    max_events: int = 1_000_000,
    max_time: float = math.inf,
    progress: Progress | None = USUAL,
) -> RewardEstimate: ...


@overload
def estimate(
    model: Model,
    formula: Formula | str,
    theta: Mapping[str, float] | None = None,
    *,
    seed: int,
    runs: int | None = None,
    width: float | None = None,
    test: str | None = None,
    level: float = 0.95,
    indifference: float | None = None,
    error: float | None = None,
    bayes: bool = False,
    prior: Prior | None = None,
    factor: float | None = None,
    max_runs: int = 10_000_000,
    max_events: int = 1_000_000,
    max_time: float = math.inf,
    progress: Progress | None = USUAL,
) -> Estimate: ...


def estimate(
    model: Model,
    formula: Formula | Reward | str,
    theta: Mapping[str, float] | None = None,
    *,
    seed: int,
    runs: int | None = None,
    width: float | None = None,
    test: str | None = None,
    level: float = 0.95,
    indifference: float | None = None,
    error: float | None = None,
    bayes: bool = False,
    prior: Prior | None = None,
    factor: float | None = None,
    max_runs: int = 10_000_000,
    max_events: int = 1_000_000,
    max_time: float = math.inf,
    progress: Progress | None = USUAL,
) -> Estimate | RewardEstimate:
    """P(formula | theta), estimated from `runs` runs, or from as many as a `width` or a `test` needs.

    For a Reward, such as `read_properties` makes from R=? [ ... ], its expectation is estimated from `runs` runs.

    A test is text such as `"P > 0.3"`. The answer is wrong with probability at most `error` (0.05), provided that the
    probability is further than `indifference` (0.01) from the threshold. With `bayes`, the test ends when the Bayes
    factor reaches `factor`, under the prior Beta(a, b) given by `prior` = (a, b), by default uniform. Then `error`
    bounds the probability, under that prior and given the runs, that the answer is wrong, and no indifference is
    needed. A width or a test makes at most `max_runs` runs. A run is undecided after `max_events` jumps, or at
    `max_time`. Run i is the one that `replay` shows for point 0, run i.

    >>> from sateen.logic.parser import stl
    >>> decay = Model.parse('''
    ...     species X = 1
    ...     X -> 0 @ mass_action(k)
    ... ''')
    >>> result = estimate(decay, stl("F[0, 1] X == 0"), {"k": math.log(2)}, seed=1, runs=10_000)
    >>> result.lower < 0.5 < result.upper
    True
    """
    progress = watcher(progress)
    check_model(model)
    _check(runs, width, test, level, max_runs)
    if isinstance(formula, Reward):
        others = {"width": width, "test": test, "indifference": indifference, "error": error}
        refuse_others({**others, "bayes": bayes, "prior": prior, "factor": factor})
        earned = partial(estimate_reward, model, formula, theta or {}, seed=seed, runs=runs, level=level)
        return earned(max_events=max_events, max_time=max_time, progress=progress)
    formula = formula_of(formula)
    _check_test(test, indifference, error, bayes, prior, factor)
    question = None if test is None else _Question.read(test, indifference, error, bayes, prior, factor)
    runner = Runner(model, (formula,))
    values = model.values(theta)
    row = [values[name] for name in runner.parameters]
    workers = processors()
    measure = "intervals made like this"
    sentences: list[str] = []
    with ThreadPoolExecutor(workers) as pool:
        make = partial(runner.run, seed=seed, max_events=max_events, max_time=max_time)
        source = _Runs(make, row, pool, workers, progress)
        source.compile(runner.is_compiled, singly=question is not None)
        started = time.perf_counter()
        decision: Decision | None = None
        found: BayesAnswer | None = None
        if question is not None:
            with working(progress, "testing", max_runs, "runs"):
                counted, answer = until_answered(source.each, question.test, max_runs)
            decision = question.decision(answer)
            limits = anytime(counted.satisfied, counted.runs, level, counted.undecided)
            measure = "the intervals after all runs of such a test together"
            found = question.found(counted)
            sentences.append(question.sentence(decision, counted, max_runs, found))
        elif width is not None:
            counted, limits, _ = until_width(source.count, width, level, max_runs)
        else:
            counted = source.count(_DEFAULT_RUNS if runs is None else runs)
            limits = clopper_pearson(counted.satisfied, counted.runs, level, counted.undecided)
        seconds = time.perf_counter() - started
    claim = Claim("probability", "frequentist", level, measure, runs=counted.runs, assuming=model.assumption)
    sentences += _sentences(claim, limits, counted, width)
    belief = credible(counted.satisfied, counted.runs, level, counted.undecided, found.prior if found else UNIFORM)
    return Estimate(
        probability=math.nan if counted.undecided else counted.satisfied / counted.runs,
        lower=limits[0],
        upper=limits[1],
        level=level,
        bayes_lower=belief[0],
        bayes_upper=belief[1],
        satisfied=counted.satisfied,
        undecided=counted.undecided,
        runs=counted.runs,
        seconds=seconds,
        claim=claim,
        sentences=tuple(sentences),
        decision=decision,
        reasons=MappingProxyType({name: n for name, n in zip(REASONS, counted.reasons, strict=True) if n}),
        planning=source.made - counted.runs if width is not None else 0,
        events=source.events,
        bayes=found,
    )


class _Runs:
    """The runs of a model at one θ, in order, each made once, on all processors."""

    def __init__(
        self, make: Callable[..., Counts], row: list[float], pool: Executor, workers: int, progress: Progress
    ) -> None:
        self.made = 0
        self.events = 0
        self._make = make
        self._row = row
        self._pool = pool
        self._workers = workers
        self._progress = progress
        self._chunk = _FIRST_CHUNK

    def compile(self, compiled: bool, singly: bool) -> None:
        """Make two runs that nobody counts, so that no time is lost where it counts."""
        with working(self._progress, "compiling", 1, "kernel"):
            if not compiled:
                self._progress.note("compiling (once)")
            self._counts(0, 2, singly)
            self._progress.advance(1)

    def count(self, runs: int) -> Tally:
        """The next runs, counted together."""
        with working(self._progress, "simulating", runs, "runs"):
            chunks = [
                Tally(many, int(counts.satisfied.sum()), tuple(counts.undecided.sum(axis=(0, 2)).tolist()))
                for many, counts in self._waves(runs, False)
            ]
        return sum(chunks, Tally(reasons=(0,) * len(REASONS)))

    def each(self, runs: int) -> tuple[Bits, Bits]:
        """The next runs one by one: whether each satisfied the formula, and whether it is undecided, by reason."""
        counts = [counts for _, counts in self._waves(runs, True)]
        satisfied = np.concatenate([one.satisfied[0] for one in counts])
        return satisfied > 0, np.concatenate([one.undecided[0] for one in counts], axis=1) > 0

    def _waves(self, runs: int, singly: bool) -> Iterator[tuple[int, Counts]]:
        """Chunks of the next runs, as many at a time as there are threads, and small enough to hear Ctrl-C."""
        stop = self.made + runs
        while self.made < stop:
            size = min(self._chunk * self._workers, stop - self.made)
            edges = [self.made + size * part // self._workers for part in range(self._workers + 1)]
            sizes = [after - before for before, after in pairwise(edges)]
            started = time.perf_counter()
            wave = list(self._pool.map(self._counts, edges, sizes, [singly] * self._workers))
            faster = _WAVE_SECONDS / max(time.perf_counter() - started, 1e-9)
            self._chunk = max(int(max(sizes) * min(faster, 4.0)), _FIRST_CHUNK)
            self.made += size
            self.events += sum(counts.events for counts in wave)
            self._progress.advance(size)
            yield from zip(sizes, wave, strict=True)

    def _counts(self, first: int, runs: int, singly: bool) -> Counts:
        items = [(0, run, 1) for run in range(first, first + runs)] if singly else [(0, first, runs)]
        return self._make(np.tile(self._row, (len(items), 1)), np.array(items, np.int64).reshape(-1, 3))


@dataclass(frozen=True, slots=True)
class _Question:
    """A test as it was asked, and in the form in which it is made, which is always P > threshold."""

    relation: str
    test: SequentialTest | BayesTest

    @classmethod
    def read(
        cls,
        text: str,
        indifference: float | None,
        error: float | None,
        bayes: bool,
        prior: Prior | None,
        factor: float | None,
    ) -> _Question:
        match = _TEST.fullmatch(text)
        try:
            relation, threshold = match.group(1), float(match.group(2))  # type: ignore[union-attr]
        except (AttributeError, ValueError):
            raise InputError(f"{text!r} is not a test of a probability; write P > 0.3, or >=, < or <=") from None
        error = _ERROR if error is None else error
        if bayes:
            return cls(relation, BayesTest.of(threshold, UNIFORM if prior is None else prior, factor, error))
        return cls(relation, SequentialTest(threshold, _INDIFFERENCE if indifference is None else indifference, error))

    def decision(self, answer: Decision) -> Decision:
        """The answer to what was asked: P < q is accepted where P > q is rejected."""
        opposite: dict[Decision, Decision] = {"accepted": "rejected", "rejected": "accepted"}
        return answer if ">" in self.relation else opposite.get(answer, answer)

    def found(self, counted: Tally) -> BayesAnswer | None:
        """What a Bayesian test rests on; None for Wald's."""
        return answered(self.test, self.relation, counted) if isinstance(self.test, BayesTest) else None

    def sentence(self, decision: Decision, counted: Tally, max_runs: int, found: BayesAnswer | None) -> str:
        """What the answer means."""
        asked = f"P {self.relation} {self.test.threshold:g}"
        evidence = "" if found is None else f"; {found}"
        if decision == "undecided" and counted.runs < max_runs:
            return f"{asked} stays undecided: it depends on what the undecided runs would have become{evidence}"
        if decision == "undecided":
            return f"{asked} is undecided after {counted.runs:,} runs, the most that were allowed{evidence}"
        if isinstance(self.test, BayesTest):
            return f"{asked} is {decision}: {found}"
        high = (">" in self.relation) == (decision == "accepted")
        other = self.test.threshold + (-self.test.indifference if high else self.test.indifference)
        side = "less" if high else "more"
        error = f"with probability {self.test.error:g} at most"
        return f"{asked} is {decision}: if P were {other:g} or {side}, this would happen {error}"


def _sentences(claim: Claim, limits: Limits, counted: Tally, width: float | None) -> Iterator[str]:
    """What the interval promises, with limits rounded outwards, and what keeps it from being narrower."""
    scale = 10 ** (2 + max(-math.floor(math.log10(limits[1] - limits[0])), 0))
    lower, upper = math.floor(limits[0] * scale) / scale, math.ceil(limits[1] * scale) / scale
    contain = f"{claim.measure} contain it in at least {percent(claim.level)} of cases"
    yield f"P is from {lower:.10g} to {upper:.10g}: {contain}"
    if counted.undecided:
        yield f"{counted.undecided:,} undecided runs count as violations below, and as satisfactions above"
    if width is not None and limits[1] - limits[0] > width:
        culprit = "the undecided runs keep it wider" if counted.undecided else "it takes more runs than were allowed"
        yield f"the width {width:g} was not reached: {culprit}"


def _check(runs: int | None, width: float | None, test: str | None, level: float, max_runs: int) -> None:
    given = [name for name, value in (("runs", runs), ("width", width), ("test", test)) if value is not None]
    if len(given) > 1:
        names = " and ".join(f"{{{name}}}" for name in given)
        raise InputError(f"{names} say in different ways how many runs to make; give one of them", argument=given[0])
    for name, number in (("runs", runs), ("max_runs", max_runs)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise InputError(f"{{{name}}} is a whole number from 1 up, not {number!r}", argument=name)
    for name, share in (("width", width), ("level", level)):
        if share is not None and not 0.0 < share < 1.0:
            raise InputError(f"{{{name}}} is between 0 and 1, not {share!r}", argument=name)


def _check_test(
    test: str | None,
    indifference: float | None,
    error: float | None,
    bayes: bool,
    prior: Prior | None,
    factor: float | None,
) -> None:
    """Refuse what a test does not heed."""
    if not isinstance(bayes, bool):
        raise InputError(f"{{bayes}} is True or False, not {bayes!r}", argument="bayes")
    if bayes and test is None:
        raise InputError(
            "{bayes} is a way to answer a test, and there is none",
            argument="bayes",
            remedy="give a {test}, such as 'P > 0.3'",
        )
    if bayes and indifference is not None:
        raise InputError("a Bayesian test has no {indifference}; leave it out", argument="indifference")
    for name, value in (("prior", prior), ("factor", factor)):
        if value is not None and not bayes:
            raise InputError(f"{{{name}}} applies only to a Bayesian test; add {{bayes=True}}", argument=name)
    if factor is not None and error is not None:
        problem = "{factor} and {error} both say how much evidence a Bayesian test needs; give one of them"
        raise InputError(problem, argument="factor")
