"""One random family after the other, the fast engine against everything else that knows the answer.

The lanes are compared run by run with `monitor` on the very path that `replay` gives; each such path, and those of
`simulate`, step by step with the meaning of the model; and the counts of the lanes, and of `simulate`, with the
probability of `exact`. Whatever they say must be the same: true, false, undecided because of a cap, or an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from path_audit import Unexplained, audited
from random_families import Family, Group
from sateen.core.errors import FormulaError, InputError, SateenError, SimulationError
from sateen.core.path import Path, Verdict
from sateen.engine.exact import exact
from sateen.engine.questions import flat
from sateen.engine.run import Runner, _Record, replay
from sateen.engine.simulate import simulate
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor

LEVEL: Final = 1e-11  # of each comparison in numbers
EXACT_ERROR: Final = 1e-10
RUNS: Final = 3  # of each point, one by one
COUNTED_POINTS: Final = 20  # of each kernel, in numbers
COUNTED_RUNS: Final = 1500
MOST_STATES: Final = 1000
SIMULATED_RUNS: Final = 2
SIMULATED_UNTIL: Final = 4.0
SIMULATED_EVENTS: Final = 300
FIRST_COUNTED: Final = 1000  # the runs before are those looked at one by one
SLOW_ERRORS: Final = 8  # in one of so many families errors are put into words, which takes a kernel more


@dataclass(frozen=True, slots=True)
class Difference:
    """Two that should say the same and do not."""

    kind: str
    family: int
    group: int
    formula: str
    theta: Mapping[str, float]
    detail: str

    def __str__(self) -> str:
        where = f"family {self.family}, group {self.group}, {self.formula} at {dict(self.theta)}"
        return f"{self.kind}: {where}\n  {self.detail}"


@dataclass(slots=True)
class Tally:
    """What was compared, how often, and where it differed."""

    numbers: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


class _Known(NamedTuple):
    """The part of a run that a lane knows, if any; whether a fault ends it; and whether that or a cap does."""

    path: Path | None
    fault: bool
    capped: bool


class _Terse(Runner):
    """Says of a run that went wrong only that it did."""

    def _fault(self, *_: object) -> Exception:
        return SimulationError("a run went wrong")


def check(family: Family) -> Tally:
    """Compares all that can be compared in a family."""
    tally = Tally()
    tally.numbers["models"] += 1
    simulated = _simulated(family, tally)
    for place, group in enumerate(family.groups):
        _Check(family, place, group, tally).all(simulated)
    return tally


def _simulated(family: Family, tally: Tally) -> list[list[Path]]:
    """A few paths of each point by the reference simulator, audited; none where one fails."""
    paths: list[list[Path]] = []
    for point, theta in enumerate(family.thetas[:COUNTED_POINTS]):
        try:
            made = [
                simulate(
                    family.model, theta, until=SIMULATED_UNTIL, seed=point + 1000 * run, max_events=SIMULATED_EVENTS
                )
                for run in range(SIMULATED_RUNS)
            ]
            for path in made:
                audited(family.model, path)
        except SateenError:
            made = []
        except Unexplained as error:
            tally.differences.append(Difference(f"simulate: {error.kind}", family.number, 0, "", theta, str(error)))
            made = []
        paths.append(made)
    return paths


class _Check:
    """One kernel at all points."""

    def __init__(self, family: Family, place: int, group: Group, tally: Tally) -> None:
        self.family, self.place, self.group, self.tally = family, place, group, tally
        self.model, self.formulas = family.model, group.formulas
        kind = Runner if family.number % SLOW_ERRORS == 0 else _Terse
        self.runner = kind(self.model, self.formulas, max_population=group.max_population)

    def all(self, simulated: Sequence[Sequence[Path]]) -> None:
        self.run_by_run()
        self.in_numbers(simulated)
        self.tally.numbers["kernels"] += 1 + ("_checked" in vars(self.runner))

    def differs(self, kind: str, theta: Mapping[str, float], formula: Formula | None, detail: str) -> None:
        text = " ; ".join(map(repr, self.formulas)) if formula is None else repr(formula)
        self.tally.differences.append(Difference(kind, self.family.number, self.place, text, theta, detail))

    # Run by run.

    def run_by_run(self) -> None:
        items = [(point, run, 1) for point in range(len(self.family.thetas)) for run in range(RUNS)]
        for (point, run, _), counted in zip(items, self.counted(items), strict=True):
            self.one_run(self.family.thetas[point], point, run, counted)
        self.tally.numbers["runs"] += len(items)
        self.tally.numbers["cases"] += len(self.family.thetas) * len(self.formulas)

    def counted(self, items: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int]] | SateenError]:
        """Of each item, for each formula, how many runs at least and at most satisfy it; or its error."""
        rows = [[self.family.thetas[point][name] for name in self.runner.parameters] for point, _, _ in items]
        caps = {"max_events": self.group.max_events, "max_time": self.group.max_time}
        try:
            counts = self.runner.run(rows, items, seed=self.family.number, **caps)  # type: ignore[arg-type]
        except SateenError as error:
            if len(items) == 1:
                return [error]
            half = len(items) // 2
            return self.counted(items[:half]) + self.counted(items[half:])
        low, unsure = counts.satisfied.T.tolist(), counts.undecided.sum(axis=1).T.tolist()
        return [[(a, a + b) for a, b in zip(*pair, strict=True)] for pair in zip(low, unsure, strict=True)]

    def one_run(
        self, theta: Mapping[str, float], point: int, run: int, counted: list[tuple[int, int]] | SateenError
    ) -> None:
        if _is_refused(counted):
            with pytest.raises(InputError):
                replay(self.model, theta, until=1.0, seed=0)
            self.tally.numbers["runs that are refused"] += 1
            return
        path, fault, capped = self.known(theta, point, run)
        expected = ["unknown"] * len(self.formulas)
        if path is not None:
            try:
                audited(self.model, path)
            except Unexplained as error:
                self.differs(f"replay: {error.kind}", theta, None, f"run {run}: {error}")
            expected = [_verdict(formula, path) for formula in self.formulas]
        if isinstance(counted, SateenError):
            self.tally.numbers["runs that fail"] += 1
            decided = "undefined" not in expected and "unknown" not in expected
            if not (fault or "undefined" in expected) or (decided and all(map(self.is_flat, self.formulas))):
                self.differs("lanes fail, replay does not", theta, None, f"run {run}: {counted} {_rows(path)}")
            return
        for formula, (low, high), word in zip(self.formulas, counted, expected, strict=True):
            said = "unknown" if low < high else "true" if low else "false"
            if word == "undefined" and path is not None:
                word = _before_undefined(formula, path)
            # With events a lane also stops at thresholds of the clock at which nothing happens.
            capped = capped or (bool(self.model.events) and formula.horizon > self.group.max_time)
            if said == "unknown" and word != "undefined" and capped and self.model.events:
                self.tally.numbers["cut short amid events"] += word != "unknown"
            elif said != word or (said == "unknown" and (fault or not capped)):
                detail = f"run {run}{', then a fault' * fault}: {_rows(path)}"
                self.differs(f"lanes {said}, replay {word}{', then a fault' * fault}", theta, formula, detail)

    def known(self, theta: Mapping[str, float], point: int, run: int) -> _Known:
        """What a lane can know of a run: all before a fault, and up to the first jump that a cap forbids."""
        horizon = max(formula.horizon for formula in self.formulas)
        until = 100.0 * self.group.max_time if self.group.max_time < horizon else horizon
        most = self.group.max_events
        record = _Record.of(self.model, (), theta, self.family.number, point, run, most + 1, until)
        times, states = record.rows[:, 0].tolist(), record.rows[:, 2:]
        ends = [place for place, time in enumerate(times) if time > self.group.max_time or place >= most]
        if self.group.max_population is not None:
            whole = [place for place, variable in enumerate(self.model.variables) if variable.whole]
            crowded = states[:, whole].max(axis=1) > self.group.max_population
            ends += [place + 1 for place in np.flatnonzero(crowded).tolist() if place + 1 < len(times)]
        fault = record.failed and not ends  # a cap comes before the state at fault
        if not (record.failed or ends):
            path = record.path(until)
            if record.capped or path.absorbed or until == horizon < math.inf:
                return _Known(path, False, record.capped)
            # It waits for longer than any time, or than the cap, and a lane knows for how long.
            end = math.nextafter(record.following, 0.0)
            return _Known(Path(times, states, path.species, end, values=path.values), False, True)
        kept = min([*ends, len(times) - 1])
        if kept == 0:
            return _Known(None, fault, True)
        # The state at fault may be none at all.
        path = Path(times[: kept + 1], states[[*range(kept), kept - 1]], self.model.species, values=record.values)
        return _Known(_beginning(path, kept), fault, True)

    # In numbers.

    def in_numbers(self, simulated: Sequence[Sequence[Path]]) -> None:
        thetas = self.family.thetas[:COUNTED_POINTS]
        asked = [place for place, formula in enumerate(self.formulas) if self.is_flat(formula)]
        known = {place: [self.exact(self.formulas[place], theta) for theta in thetas] for place in asked}
        if all(probability is None for each in known.values() for probability in each):
            return
        counted = self.counted([(point, FIRST_COUNTED, COUNTED_RUNS) for point in range(len(thetas))])
        for place, probabilities in known.items():
            formula = self.formulas[place]
            self.references(formula, probabilities, simulated)
            for point, (theta, probability, found) in enumerate(zip(thetas, probabilities, counted, strict=True)):
                if probability is None or _is_refused(found):
                    continue
                if isinstance(found, SateenError):
                    # Other formulas lead to states that this one does not ask for; what is decided at time 0 asks none.
                    words = {_verdict(formula, path) for path in simulated[point]} or {"undefined"}
                    if len(self.formulas) == 1 and "undefined" not in words:
                        self.differs("lanes fail, exact does not", theta, formula, str(found))
                    continue
                low, high = found[place]
                self.tally.numbers["compared with exact"] += 1
                self.tally.numbers["of these between 0.01 and 0.99"] += 0.01 < probability < 0.99 and low == high
                chance = _chance(low, high, [probability] * COUNTED_RUNS)
                if chance < LEVEL:
                    detail = f"{low} to {high} of {COUNTED_RUNS}, exact {probability!r}, chance {chance:.1e}"
                    self.differs("lanes, exact", theta, formula, detail)

    def is_flat(self, formula: Formula) -> bool:
        """Whether a lane stops at the event that decides the formula."""
        return flat(formula, [], eventful=bool(self.model.events) or self.model.timed) is not None

    def exact(self, formula: Formula, theta: Mapping[str, float]) -> float | None:
        try:
            return float(exact(self.model, formula, theta, max_states=MOST_STATES)[0])
        except SateenError:
            return None

    def references(
        self, formula: Formula, probabilities: Sequence[float | None], simulated: Sequence[Sequence[Path]]
    ) -> None:
        """How often the reference simulator satisfies a formula, all points together, against what is expected."""
        found: list[tuple[float, str]] = []
        for probability, paths in zip(probabilities, simulated, strict=True):
            if probability is not None:
                found += [(probability, _verdict(formula, path)) for path in paths]
        if not found:
            return
        words = [word for _, word in found]
        low = words.count("true")
        chance = _chance(low, len(words) - words.count("false"), [probability for probability, _ in found])
        self.tally.numbers["compared with simulate"] += 1
        if chance < LEVEL:
            detail = f"{low} of {len(words)}, expected {sum(each for each, _ in found):.2f}, chance {chance:.1e}"
            self.differs("simulate, exact", {}, formula, detail)


def _is_refused(counted: object) -> bool:
    """Whether there are no runs at such parameters; an atom that is undefined is a fault of a run."""
    return isinstance(counted, InputError) and not isinstance(counted, FormulaError)


def _verdict(formula: Formula, path: Path) -> str:
    try:
        return {Verdict.TRUE: "true", Verdict.FALSE: "false", Verdict.UNKNOWN: "unknown"}[monitor(formula, path)]
    except FormulaError:
        return "undefined"


def _before_undefined(formula: Formula, path: Path) -> str:
    """What the longest beginning of a path says on which the formula is defined."""
    for kept in range(len(path) - 1, 0, -1):
        word = _verdict(formula, _beginning(path, kept))
        if word != "undefined":
            return word if word != "unknown" else "undefined"
    return "undefined"


def _beginning(path: Path, kept: int) -> Path:
    """A path until just before the jump of that number."""
    end = max(math.nextafter(float(path.times[kept]), 0.0), float(path.times[kept - 1]))
    return Path(path.times[:kept], path.states[:kept], path.species, end=end, values=path.values)


def _chance(low: int, high: int, probabilities: Sequence[float]) -> float:
    """How probable a number of hits is that lies as far out as the nearest in [low, high]; two-sided, at most."""
    most = [min(probability + EXACT_ERROR, 1.0) for probability in probabilities]
    least = [max(probability - EXACT_ERROR, 0.0) for probability in probabilities]
    return min(1.0, 2.0 * min(_tail(low, most), _tail(len(least) - high, [1.0 - each for each in least])))


def _tail(hits: int, probabilities: Sequence[float]) -> float:
    """The probability of at least so many hits in independent trials."""
    if len(set(probabilities)) == 1:
        return float(binom.sf(hits - 1, len(probabilities), probabilities[0]))
    weights = np.ones(1)
    for probability in probabilities:
        weights = np.convolve(weights, (1.0 - probability, probability))
    return float(weights[hits:].sum())


def _rows(path: Path | None) -> str:
    rows = [] if path is None else list(zip(path.times.tolist(), path.states.tolist(), strict=True))
    return "; ".join(f"{time!r}: {state}" for time, state in rows[:8])
