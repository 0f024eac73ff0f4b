"""Runs of a model, counted or replayed: what the rest of the house asks of the engine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sateen.core.errors import FormulaError, InputError, SimulationError, nearest
from sateen.core.expression import Delayed, Expression, Operation, in_order, number_text
from sateen.core.path import Path
from sateen.engine.kernel import REASONS, Kernel, is_cached, kernel, needs_checks
from sateen.logic.formula import Atom, Formula, subformulas
from sateen.model.model import Model

__all__ = ["REASONS", "Counts", "Runner", "replay"]

_MOST_EVENTS = 10**15  # so that counts stay exact whole numbers
_MOST_SEED = 2**63
_LARGEST_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class Counts:
    """How many runs satisfied each formula, and how many stayed undecided, by reason, for each item of work.

    `satisfied` is (formulas, items); `undecided` is (formulas, reasons, items), the reasons in the order of REASONS.
    """

    satisfied: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.int64]
    events: int


class Runner:
    """A model with formulas, ready to run many times; safe to share between threads.

    A run is fixed by (seed, point, run): the same whatever the chunk, the thread or the other formulas are.
    """

    def __init__(self, model: Model, formulas: tuple[Formula, ...], *, max_population: int | None = None) -> None:
        self.model = model
        self.formulas = formulas
        self.max_population = max_population
        _check_names(model, formulas)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The model's parameters, in the order of the columns of `theta`."""
        return tuple(parameter.name for parameter in self.model.parameters)

    @property
    def is_compiled(self) -> bool:
        """Whether the first run need not compile."""
        return is_cached(self.model, self.formulas, population=self.max_population is not None)

    @cached_property
    def _plain(self) -> Kernel:
        return kernel(self.model, self.formulas, population=self.max_population is not None)

    @cached_property
    def _checked(self) -> Kernel:
        return kernel(self.model, self.formulas, checked=True, population=self.max_population is not None)

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
        work = np.ascontiguousarray(items, dtype=np.int64).reshape(-1, 3)
        rows = np.ascontiguousarray(theta, dtype=np.float64)
        _check_limits(seed, max_events, max_time)
        if rows.size != len(work) * len(self.parameters):
            wanted = f"{len(self.parameters)} parameters for each of {len(work)} items of work"
            raise InputError(f"{rows.size} values are given, but there are {wanted}")
        rows = rows.reshape(len(work), len(self.parameters))
        values = self._values(rows)
        chosen = self._checked if needs_checks(self._plain.source, values) else self._plain
        asked = np.flatnonzero(work[:, 2] > 0)
        # Fresh arrays in C order: numba compiles anew for any other layout.
        some = np.zeros((len(self.formulas), len(asked)), np.int64)
        unsure = np.zeros((len(self.formulas), len(REASONS), len(asked)), np.int64)
        fault = np.zeros(2, np.int64)
        most = float(self.max_population if self.max_population is not None else _LARGEST_COUNT)
        events = 0
        if len(asked):
            events = chosen.run(
                rows[asked], work[asked], np.uint64(seed), float(max_time), int(max_events), most, some, unsure, fault
            )
        if events < 0:
            row = int(asked[fault[0]])
            given = dict(zip(self.parameters, rows[row].tolist(), strict=True))
            raise self._fault(given, seed, int(work[row, 0]), int(fault[1]), max_events)
        satisfied = np.zeros((len(self.formulas), len(work)), np.int64)
        undecided = np.zeros((len(self.formulas), len(REASONS), len(work)), np.int64)
        satisfied[:, asked], undecided[:, :, asked] = some, unsure
        return Counts(satisfied, undecided, int(events))

    def _values(self, rows: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Every parameter and constant as a column, after a check of the initial counts they lead to."""
        values: dict[str, Any] = {name: rows[:, index] for index, name in enumerate(self.parameters)}
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise InputError(f"the parameter {self.parameters[column]} is {rows[row, column]} in row {row}")
        for constant in self.model.constants:
            values[constant.name] = constant.value.evaluate(values)
        for variable in self.model.variables:
            counts = np.broadcast_to(variable.initial.evaluate(values), len(rows))
            low = -math.inf if variable.low is None else variable.low
            high = _LARGEST_COUNT // 2 if variable.high is None else variable.high
            wrong = ~((counts == np.round(counts)) & (counts >= low) & (counts <= high))
            if wrong.any():
                self.model.initial(self.model.values(dict(zip(self.parameters, rows[np.argmax(wrong)], strict=True))))
                raise InputError(f"{variable.name} starts at {counts[np.argmax(wrong)]:g}, too large to count exactly")
        return values

    def _fault(self, theta: dict[str, float], seed: int, point: int, run: int, max_events: int) -> Exception:
        """The error of a run that went wrong, told from its record."""
        states, _, _ = _record(self.model, theta, seed, point, run, math.inf, max_events, self.formulas)
        state = dict(zip(self.model.species, states[-1, 2:].tolist(), strict=True))
        when = float(states[-1, 0])
        values = {**self.model.values(theta), **state}
        where = f"at time {when:g}, where {_shown(state)}"
        again = f"  with {_shown(theta)}; replay it with seed {seed}, point {point}, run {run}"
        for transition in self.model.transitions:
            held = transition.guard is None or bool(transition.guard.evaluate(values))
            rate = float(transition.rate.evaluate(values)) if held else 0.0
            if not 0.0 <= rate < math.inf:
                return SimulationError(f"the rate of {transition.name} is {rate:g} {where}: {transition.rate}\n{again}")
        for variable in self.model.variables:
            low, high = variable.low, variable.high
            value = state[variable.name]
            if (low is not None and value < low) or (high is not None and value > high):
                message = f"{variable.name} becomes {number_text(value)} {where}; a rate, or a guard, should prevent it"
                return SimulationError(f"{message}\n{again}")
        for atom in (atom for formula in self.formulas for atom in _comparisons(formula)):
            if any(math.isnan(float(side.evaluate(values))) for side in atom.operands if not _delayed(side)):
                remedy = f"guard the division with if(c, a, b)\n{again}"
                return FormulaError(f"{atom} is undefined (0/0 or the like) {where}", remedy=remedy)
        return SimulationError(f"the summed rate is infinite, or a delayed atom undefined, {where}\n{again}")


def replay(
    model: Model,
    theta: Mapping[str, float] | None = None,
    *,
    until: float,
    seed: int,
    point: int = 0,
    run: int = 0,
    max_events: int = 1_000_000,
) -> Path:
    """The very path that `observe` saw as this run of this point, on [0, until]."""
    _check_limits(seed, max_events, until)
    values = model.values(theta)
    model.initial(values)
    given = {parameter.name: values[parameter.name] for parameter in model.parameters}
    states, time, outcome = _record(model, given, seed, point, run, until, max_events, ())
    if outcome == 2:
        raise Runner(model, ())._fault(given, seed, point, run, max_events)
    absorbed = math.isinf(time)
    end = float(states[-1, 0]) if outcome == 1 else until
    return Path(
        times=states[:, 0], states=states[:, 2:], species=model.species, end=end, absorbed=absorbed, values=values
    )


def _record(
    model: Model,
    theta: Mapping[str, float],
    seed: int,
    point: int,
    run: int,
    until: float,
    max_events: int,
    formulas: tuple[Formula, ...],
) -> tuple[npt.NDArray[np.float64], float, int]:
    """Every state of one run, the time of the jump after the last, and 0; 1 where a cap ended it; 2 where it failed."""
    row = np.array([[theta[parameter.name] for parameter in model.parameters]]).reshape(1, -1)
    made = kernel(model, formulas, checked=True, record=True)
    satisfied = np.zeros((len(formulas), 1), np.int64)
    undecided = np.zeros((len(formulas), len(REASONS), 1), np.int64)
    items = np.array([[point, run, 1]], np.int64)
    found: tuple[npt.NDArray[np.float64], float, int] = made.run(
        row, items, np.uint64(seed), until, max_events, float(_LARGEST_COUNT), satisfied, undecided,
        np.zeros(2, np.int64),
    )  # fmt: skip
    return found


def _check_names(model: Model, formulas: tuple[Formula, ...]) -> None:
    for formula in formulas:
        for name in formula.species:
            if name not in model.names:
                hint = nearest(name, model.names) or f"the model has {', '.join(model.names)}"
                place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(formula))
                message = f"{name} is neither a species nor a parameter of the model"
                raise FormulaError(message, str(formula), place.start() if place else 0, hint)
        for leaf in formula.delays:
            if leaf.name not in model.species:
                raise FormulaError(f"{leaf} delays {leaf.name}, which is no species of the model", str(formula))


def _check_limits(seed: int, max_events: int, max_time: float) -> None:
    if not 0 <= seed < _MOST_SEED:
        raise InputError(f"a seed is a whole number from 0 to 2^63 - 1, not {seed}")
    if not 1 <= max_events <= _MOST_EVENTS:
        raise InputError(f"max_events is a whole number from 1 to {_MOST_EVENTS:,}, not {max_events}")
    if not max_time > 0:
        raise InputError(f"max_time is a time after 0, not {max_time}")


def _comparisons(formula: Formula) -> list[Operation]:
    atoms = (node.comparison for node in subformulas(formula.root) if isinstance(node, Atom))
    return [atom for atom in atoms if isinstance(atom, Operation)]


def _delayed(side: Expression) -> bool:
    return any(isinstance(leaf, Delayed) for leaf in in_order(side))


def _shown(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {number_text(value)}" for name, value in values.items())
