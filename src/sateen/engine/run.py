"""Runs of a model, counted or replayed: what the rest of the house asks of the engine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from sateen.core.errors import FormulaError, InputError, SimulationError, nearest
from sateen.core.path import Path, Verdict, before_jump
from sateen.core.progress import SILENT, USUAL, Progress, watcher
from sateen.core.seeds import check_seed
from sateen.core.text import number_text, values_text
from sateen.core.types import FloatArray, IntArray
from sateen.engine.emit import REASONS
from sateen.engine.events import blamed
from sateen.engine.kernel import Kernel, kernel
from sateen.engine.observables import path_of, written_out
from sateen.engine.questions import present_atoms
from sateen.engine.thinning import rests, wrong_rate
from sateen.language.expression import LARGEST_WHOLE, Name, Value
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor
from sateen.model.given import check_model
from sateen.model.model import Model

_MOST_EVENTS = 10**15  # so that counts stay exact whole numbers
_FOREVER = 1e300  # later than any time that is waited for
_SOON = 1e-300  # sooner than any jump


@dataclass(frozen=True, slots=True)
class Counts:
    """How many runs satisfied each formula, and how many stayed undecided, by reason, for each item of work.

    `satisfied` is (formulas, items); `undecided` is (formulas, reasons, items), the reasons in the order of REASONS.
    """

    satisfied: IntArray
    undecided: IntArray
    events: int


class Runner:
    """A model with formulas, ready to run many times; safe to share between threads.

    A run is fixed by (seed, point, run): the same whatever the chunk, the thread or the other formulas are.
    """

    def __init__(
        self,
        model: Model,
        formulas: tuple[Formula, ...],
        *,
        max_population: int | None = None,
        watched: tuple[str, ...] = (),
    ) -> None:
        self.model = model
        self.watched = watched
        self._last: tuple[tuple[bytes, int], Kernel] | None = None
        _check_names(model, formulas)
        self.formulas = tuple(written_out(model, formula) for formula in formulas)
        self.max_population = max_population

    @property
    def parameters(self) -> tuple[str, ...]:
        """The model's parameters, in the order of the columns of `theta`."""
        return tuple(parameter.name for parameter in self.model.parameters)

    @property
    def is_compiled(self) -> bool:
        """Whether the first run need not compile."""
        return self._plain.is_cached

    @cached_property
    def _plain(self) -> Kernel:
        return kernel(self.model, self.formulas, population=self.max_population is not None, watched=self.watched)

    @cached_property
    def _checked(self) -> Kernel:
        population = self.max_population is not None
        return kernel(self.model, self.formulas, checked=True, population=population, watched=self.watched)

    def run(
        self,
        theta: npt.ArrayLike,
        items: npt.ArrayLike,
        *,
        seed: int,
        max_events: int = 1_000_000,
        max_time: float = math.inf,
    ) -> Counts:
        """The counts of every item (point index, first run, number of runs) under its row of `theta`.

        Releases Python's lock while it runs. A rate or count that no process can have stops it with SimulationError.
        """
        return self._run(theta, items, seed, max_events, max_time)

    def states(
        self, theta: npt.ArrayLike, items: npt.ArrayLike, times: FloatArray, *, seed: int, max_events: int
    ) -> FloatArray:
        """The watched species of every run of the items at the times, which increase: an array (runs, times, species).

        States that a run did not come to within `max_events` are NaN.
        """
        runs = int(np.asarray(items).reshape(-1, 3)[:, 2].sum())
        states = np.empty((runs, len(times), len(self.watched)))
        until = max(float(times[-1]), _SOON)
        self._run(theta, items, seed, max_events, until, np.append(times, math.inf), states.reshape(-1))
        return states

    def _run(
        self,
        theta: npt.ArrayLike,
        items: npt.ArrayLike,
        seed: int,
        max_events: int,
        max_time: float,
        *watching: FloatArray,
    ) -> Counts:
        work = np.ascontiguousarray(items, dtype=np.int64).reshape(-1, 3)
        rows = np.ascontiguousarray(theta, dtype=np.float64)
        _check_limits(seed, max_events, max_time)
        if rows.size != len(work) * len(self.parameters):
            wanted = f"{len(self.parameters)} parameters for each of {len(work)} items of work"
            raise InputError(f"{rows.size} values are given, but there are {wanted}")
        rows = rows.reshape(len(work), len(self.parameters))
        chosen = self._chosen(rows, max_events)
        asked = np.flatnonzero(work[:, 2] > 0)
        # Fresh arrays in C order: a kernel knows no other.
        some = np.zeros((len(self.formulas), len(asked)), np.int64)
        unsure = np.zeros((len(self.formulas), len(REASONS), len(asked)), np.int64)
        fault = np.zeros(2 + len(self.model.events), np.int64)
        most = float(self.max_population if self.max_population is not None else LARGEST_WHOLE)
        last_time = min(float(max_time), chosen.source.last_time, _FOREVER)
        events = 0
        if len(asked):
            events = chosen.run(
                rows[asked], work[asked], np.uint64(seed), last_time, int(max_events), most, some, unsure, fault,
                *watching,
            )  # fmt: skip
        if events < 0:
            row = int(asked[fault[0]])
            given = dict(zip(self.parameters, rows[row].tolist(), strict=True))
            raise self._fault(given, seed, int(work[row, 0]), int(fault[1]), max_events)
        satisfied = np.zeros((len(self.formulas), len(work)), np.int64)
        undecided = np.zeros((len(self.formulas), len(REASONS), len(work)), np.int64)
        satisfied[:, asked], undecided[:, :, asked] = some, unsure
        return Counts(satisfied, undecided, int(events))

    def _chosen(self, rows: FloatArray, max_events: int) -> Kernel:
        """The kernel that is safe under these parameters; for runs of one point, made in parts, the answer is kept."""
        key = rows.tobytes(), max_events
        last = self._last
        if last is not None and last[0] == key:
            return last[1]
        doubtful = self._plain.source.unchecked.may_fail(self.model, self._values(rows), max_events)
        chosen = self._checked if doubtful else self._plain
        if len(rows) == 1:
            self._last = key, chosen
        return chosen

    def _values(self, rows: FloatArray) -> dict[str, Value]:
        """Every parameter and constant as a column, after a check of the initial counts they lead to."""
        values: dict[str, Value] = {name: rows[:, index] for index, name in enumerate(self.parameters)}
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise InputError(f"the parameter {self.parameters[column]} is {rows[row, column]} in row {row}")
        for constant in self.model.constants:
            values[constant.name] = constant.value.evaluate(values)
        _check_small(values)
        for variable in self.model.variables:
            counts = np.broadcast_to(variable.initial.evaluate(values), len(rows))
            wrong = ~variable.allows(counts)
            if wrong.any():
                self.model.initial(self.model.values(dict(zip(self.parameters, rows[np.argmax(wrong)], strict=True))))
        return values

    def _fault(self, theta: dict[str, float], seed: int, point: int, run: int, max_events: int) -> Exception:
        """The error of a run that went wrong, from its record."""
        horizon = max((formula.horizon for formula in self.formulas), default=math.inf)
        record = _Record.of(self.model, self.formulas, theta, seed, point, run, max_events, horizon)
        error = record.fault() or record.undefined_delay()
        again = (
            f"  {f'with {values_text(theta)}; ' if theta else ''}replay it with seed {seed}, point {point}, run {run}"
        )
        if isinstance(error, FormulaError):
            return FormulaError(error.message, remedy=f"{error.remedy}\n{again}")
        return SimulationError(f"{error}\n{again}")


def replay(
    model: Model,
    theta: Mapping[str, float] | None = None,
    *,
    until: float,
    seed: int,
    point: int = 0,
    run: int = 0,
    max_events: int = 1_000_000,
    progress: Progress | None = USUAL,
) -> Path:
    """Exactly the path that `observe` counted as this run at this point, on [0, until]; `until` may be infinite.

    It ends early after `max_events` jumps. A run that failed fails again.
    """
    progress = watcher(progress)
    check_model(model)
    if not until >= 0:
        raise InputError(f"until is a time from 0 on, not {until}")
    _check_limits(seed, max_events, max(until, _SOON))
    if not kernel(model, (), checked=True, record=True).is_cached:
        progress.note("compiling (once)")
    values = model.values(theta)
    _check_small(values)
    model.initial(values)
    given = {parameter.name: values[parameter.name] for parameter in model.parameters}
    record = _Record.of(model, (), given, seed, point, run, max_events, until)
    if record.failed or record.impossible_count():
        raise Runner(model, ())._fault(given, seed, point, run, max_events)
    return record.path(until)


def follow(
    model: Model,
    formula: Formula,
    theta: Mapping[str, float],
    *,
    seed: int,
    point: int = 0,
    run: int = 0,
    max_events: int = 1_000_000,
    max_time: float = math.inf,
    progress: Progress = SILENT,
) -> Path:
    """Exactly the path behind a verdict that was counted, for as long as it was followed there, or as is needed."""
    again = partial(replay, model, theta, seed=seed, point=point, run=run, progress=progress)
    limit = min(formula.horizon, max_time) or 1.0  # a formula about time 0 alone is shown with some of what follows
    until = limit if math.isfinite(limit) else 1.0
    while True:
        path = before_jump(again(until=until, max_events=max_events), max_events)
        if path.end < until or monitor(formula, path) is not Verdict.UNKNOWN:
            return path
        if until >= min(limit, _FOREVER):
            break
        until = min(2.0 * until, limit)
    # A run that max_time ended was followed up to its next jump, which may have decided it.
    further = before_jump(again(until=_FOREVER, max_events=len(path)), len(path))
    return Path(path.times, path.states, path.species, max(further.end, path.end), further.absorbed, path.values)


@dataclass(frozen=True, slots=True)
class _Record:
    """Every state of one run: a row each of the time, an unused place, and the counts.

    `following` is the time of the jump after the last; a run that `failed` has its last state to blame.
    """

    model: Model
    formulas: tuple[Formula, ...]
    values: Mapping[str, float]
    rows: FloatArray
    following: float
    capped: bool
    failed: bool
    ringing: tuple[bool, ...]  # which events fire in the round that went wrong, if one did

    @classmethod
    def of(
        cls,
        model: Model,
        formulas: tuple[Formula, ...],
        theta: Mapping[str, float],
        seed: int,
        point: int,
        run: int,
        max_events: int,
        until: float,
    ) -> _Record:
        """The record of a run, made again; atoms of the formulas that are undefined make it fail."""
        row = np.array([theta[parameter.name] for parameter in model.parameters], np.float64).reshape(1, -1)
        items = np.array([[point, run, 1]], np.int64)
        made = kernel(model, formulas, checked=True, record=True)
        limits = (np.uint64(seed), min(float(until), _FOREVER), int(max_events), float(LARGEST_WHOLE))
        fault = np.zeros(2 + len(model.events), np.int64)
        rows, following, outcome = made.record(row, items, *limits, fault)
        ringing = tuple((fault[2:] != 0).tolist())
        return cls(model, formulas, model.values(theta), rows, following, outcome == 1, outcome == 2, ringing)

    def path(self, until: float) -> Path:
        """The run on [0, until], or up to where a cap ended it."""
        end = float(self.rows[-1, 0]) if self.capped or math.isinf(until) else until
        absorbed = math.isinf(self.following) or (self.model.timed and not self.capped and self._rests(end))
        return path_of(self.model, self.rows[:, 0], self.rows[:, 2:], end, absorbed, self.values)

    def _rests(self, time: float) -> bool:
        """Whether nothing happens after a time, whatever rates the clock gives; a lane finds out later than that."""
        return not self.model.events and rests(self.model, {**self.values, **self._last}, time)

    @property
    def _last(self) -> dict[str, float]:
        """The last state."""
        return dict(zip(self.model.species, self.rows[-1, 2:].tolist(), strict=True))

    def fault(self) -> Exception | None:
        """What is wrong with the last state, if anything is."""
        state = self._last
        values = {**self.values, **state}
        where = f"at time {self.rows[-1, 0]:g}, where {values_text(state)}"
        if any(self.ringing):
            return blamed(self.model, self.values, self.rows[-1, 2:], self.ringing, f" at time {self.rows[-1, 0]:g}")
        if impossible := self.impossible_count():
            return SimulationError(f"{impossible}\n  its rates, a guard or max_population should stop it before")
        if self.model.timed:
            if wrong := wrong_rate(self.model, values, self.following):
                return SimulationError(wrong)
        else:
            for transition in self.model.transitions:
                held = transition.guard is None or bool(transition.guard.evaluate(values))
                rate = float(transition.rate.evaluate(values)) if held else 0.0
                if not 0.0 <= rate < math.inf:
                    return SimulationError(f"the rate of {transition.name} is {rate:g} {where}: {transition.rate}")
        for atom in (atom for formula in self.formulas for atom in present_atoms(formula)):
            if any(math.isnan(float(side.evaluate(values))) for side in atom.operands):
                message = f"{atom} is undefined (such as 0/0) {where}"
                return FormulaError(message, remedy="guard the division with if(c, a, b)")
        return SimulationError(f"the summed rate is infinite {where}") if self.failed else None

    def impossible_count(self) -> str:
        """Which variable has a value in the last state that it cannot have, and why; nothing where all are fine."""
        time, *state = self.rows[-1, [0, *range(2, self.rows.shape[1])]].tolist()
        for variable, value in zip(self.model.variables, state, strict=True):
            if not variable.allows(value):
                where = f"at time {time:g}, where {values_text(dict(zip(self.model.species, state, strict=True)))}"
                return f"{variable.name} becomes {number_text(value)} {where}: {variable.refusal(value)}"
        return ""

    def undefined_delay(self) -> Exception:
        """What the monitor says of the delayed atom that stopped the run."""
        path = self.path(max(self.rows[-1, 0], min((formula.horizon for formula in self.formulas), default=0.0)))
        try:
            for formula in self.formulas:
                monitor(formula, path)
        except FormulaError as error:
            return error
        return SimulationError(f"the run cannot be decided at time {self.rows[-1, 0]:g}")


def _check_names(model: Model, formulas: tuple[Formula, ...]) -> None:
    for formula in formulas:
        for name in formula.species:
            if model.meaning(name) is None:
                hint = nearest(name, model.readable) or f"the model has {', '.join(model.readable)}"
                place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(formula))
                message = f"{name} is neither a species nor a parameter of the model"
                raise FormulaError(message, str(formula), place.start() if place else 0, hint)
        for leaf in formula.delays:
            if model.meaning(leaf.name) == Name(leaf.name) and leaf.name not in model.species:
                raise FormulaError(f"{leaf} delays {leaf.name}, which is not a species of the model", str(formula))


def _check_small(values: Mapping[str, Value]) -> None:
    """Refuse values below the least normal double: rates that read them might vanish, and that would not be noticed."""
    for name, column in values.items():
        size = np.abs(np.atleast_1d(column))
        if (small := (size > 0.0) & (size < np.finfo(np.float64).tiny)).any():
            message = f"{name} is {size[small][0]:g}, too small to be computed with; take 0, or another unit of time"
            raise InputError(message)


def _check_limits(seed: int, max_events: int, max_time: float) -> None:
    check_seed(seed, of_runs=True)
    if not 1 <= max_events <= _MOST_EVENTS:
        raise InputError(f"max_events is a whole number from 1 to {_MOST_EVENTS:,}, not {max_events}")
    if not max_time > 0:
        raise InputError(f"max_time is a time after 0, not {max_time}")
