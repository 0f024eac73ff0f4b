"""What makes runs: a model with its engine, or a Python callable. Both travel to other processes.

`size` says how many formulas are decided on each run, and `reasons` why a run may stay undecided. `count` gives the
tally of every item (point index, first run, number of runs), each under its row of `theta`; `interruptible_soon` says
that it is soon over, so that Ctrl-C can wait for it, and `needs_compile` that the first run has to wait for a compiler.
`identity` is all that decides what a run comes to, besides the point and the seed, as JSON represents it.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np

from sateen.core.errors import InputError, SimulationError, StoreError
from sateen.core.observations import Failure
from sateen.core.path import Path, Verdict
from sateen.core.space import Points, Space
from sateen.core.text import values_text
from sateen.core.types import FloatArray, IntArray
from sateen.engine.emit import REASONS, kernel_source
from sateen.language.expression import Expression
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor
from sateen.model.model import Model
from sateen.sampling.ledger import MOST_FAILURES, Ledger, Tally

if TYPE_CHECKING:
    from sateen.engine.run import Runner

Function: TypeAlias = "Callable[[dict[str, float], np.random.Generator], object]"
_SHORT, _FAILED = range(2)  # the places of the reasons
_MOST_WORDS: Final = 2000  # characters of the error of a run that are kept
_HOPELESS: Final = 20  # runs that all failed, and nothing else, are enough


@dataclass(frozen=True, slots=True)
class Simulated:
    """A model that decides formulas on its runs.

    `columns` say where each parameter of the model comes from: the number of a column of `theta`, or a value.
    """

    model: Model
    formulas: tuple[Formula, ...]
    columns: tuple[int | float, ...]
    seed: int
    max_events: int
    max_time: float
    max_population: int | None
    reasons: ClassVar[tuple[str, ...]] = REASONS
    interruptible_soon: ClassVar[bool] = True

    @property
    def runner(self) -> Runner:
        """The engine, one for each process."""
        return _runner(self.model, self.formulas, self.max_population)

    @property
    def size(self) -> int:
        return len(self.formulas)

    @property
    def needs_compile(self) -> bool:
        return not self.runner.is_compiled

    def count(self, theta: FloatArray, items: IntArray) -> Tally:
        rows = np.empty((len(theta), len(self.columns)))
        for place, column in enumerate(self.columns):
            rows[:, place] = theta[:, column] if isinstance(column, int) else column
        counts = self.runner.run(rows, items, seed=self.seed, max_events=self.max_events, max_time=self.max_time)
        return Tally(counts.satisfied, counts.undecided)

    def identity(self) -> dict[str, object]:
        population = self.max_population is not None
        source = kernel_source(self.model, self.formulas, population=population).text
        return {
            "model": str(self.model),
            "formulas": [[str(formula), formula.end] for formula in self.formulas],
            "max_events": self.max_events,
            "max_time": str(self.max_time),
            "max_population": self.max_population,
            "engine": hashlib.sha256(source.encode()).hexdigest(),  # another engine may make other runs
        }

    def raise_if_hopeless(self, ledger: Ledger) -> None:
        """Never: any run may be of use."""


@lru_cache(maxsize=8)
def _runner(model: Model, formulas: tuple[Formula, ...], max_population: int | None) -> Runner:
    from sateen.engine.run import Runner  # LLVM is loaded now

    return Runner(model, formulas, max_population=max_population)


def relevant(model: Model, formula: Formula) -> tuple[str, ...]:
    """The parameters that can affect the probability of `formula`, in the order of the model.

    Let C be the least set of species that holds those the formula reads and, with a species, every species read by the
    rate or the guard of a transition that changes it, or by the value it then gets. A transition that changes nothing
    in C never matters to C, and all others have rates that are functions of C and of parameters alone. So the part of
    the state that lies in C is a Markov chain of its own, whose law, hence that of the verdict, depends only on the
    parameters in those rates, guards, values and initial counts, and in the formula's atoms. The rest has no effect.

    The argument needs runs that end at the formula's horizon. An unbounded operator may be decided because the whole
    model comes to rest, a cap stops a run because of all that happens in it, and an event may be set off by anything:
    with an event or an unbounded operator all parameters are returned, and `observe` does so where a cap was reached.

    >>> from sateen.logic.parser import stl
    >>> model = Model.parse('''
    ...     species A = 10, B = 0
    ...     A -> 0 @ mass_action(decay)
    ...     0 -> B @ birth
    ... ''')
    >>> relevant(model, stl("F[0, 5] A == 0"))
    ('decay',)
    """
    everything = tuple(parameter.name for parameter in model.parameters)
    if model.events or math.isinf(formula.horizon):
        return everything
    reached: set[str] = set()
    waiting = [read for name in formula.species if (meaning := model.meaning(name)) for read in meaning.names]
    constants = {constant.name: constant.value for constant in model.constants}
    initial = {variable.name: variable.initial for variable in model.variables}
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if name in constants:
            waiting += constants[name].names
        elif name in initial:
            waiting += [read for each in (initial[name], *_influences(model, name)) for read in each.names]
    return tuple(name for name in everything if name in reached)


def _influences(model: Model, species: str) -> list[Expression]:
    """What decides when a species changes, and to what."""
    influences: list[Expression] = []
    for transition in model.transitions:
        assigned = [value for name, value in transition.update if name == species]
        if assigned or transition.change.get(species):
            influences += [transition.rate, *assigned, *([] if transition.guard is None else [transition.guard])]
    return influences


@dataclass(frozen=True, slots=True)
class BlackBox:
    """A function of parameters and a random generator that answers with a bool, or with a path for `formulas`.

    The generator of a run is made from (seed, point, run), so a run is the same wherever it is made. An exception of
    the function is recorded and the run counts as undecided; an answer of another type stops everything.
    """

    function: Function
    formulas: tuple[Formula, ...]
    space: Space
    seed: int
    reasons: ClassVar[tuple[str, ...]] = ("short path", "failed")
    interruptible_soon: ClassVar[bool] = False
    needs_compile: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return max(len(self.formulas), 1)

    def count(self, theta: FloatArray, items: IntArray) -> Tally:
        points = Points(theta, self.space)
        satisfied = np.zeros((self.size, len(items)), np.int64)
        undecided = np.zeros((self.size, len(self.reasons), len(items)), np.int64)
        failures: list[Failure] = []
        for row, (point, first, number) in enumerate(items.tolist()):
            for run in range(first, first + number):
                try:
                    answer = self._answer(points[row], point, run)
                except Exception as error:
                    undecided[:, _FAILED, row] += 1
                    if len(failures) < MOST_FAILURES:
                        failures.append(Failure(points[row], self.seed, point, run, _words(error)))
                    continue
                for place, verdict in enumerate(self._verdicts(answer, points[row])):
                    satisfied[place, row] += verdict is Verdict.TRUE
                    undecided[place, _SHORT, row] += verdict is Verdict.UNKNOWN
        return Tally(satisfied, undecided, tuple(failures))

    def identity(self) -> dict[str, object]:
        formulas = [[str(formula), formula.end] for formula in self.formulas]
        return {"function": name_of(self.function), "source": _source(self.function), "formulas": formulas}

    def raise_if_hopeless(self, ledger: Ledger) -> None:
        """Raise, with the first exception as the cause, if every run so far has failed."""
        failed = ledger.undecided(0).get(self.reasons[_FAILED])
        if failed is None or ledger.done < min(_HOPELESS, ledger.total) or failed.sum() < ledger.done:
            return
        first = ledger.failures[0]
        cause: Exception | None = None
        try:
            self._answer(dict(first.theta), first.point, first.run)
        except Exception as error:
            cause = error
        raise SimulationError(
            f"all of the first {ledger.done} runs of {name_of(self.function)} failed: {first.error}\n  with "
            f"{values_text(first.theta)}; seed {first.seed}, point {first.point}, run {first.run}"
        ) from cause

    def _answer(self, theta: dict[str, float], point: int, run: int) -> object:
        return self.function(theta, np.random.default_rng(np.random.SeedSequence((self.seed, point, run))))

    def _verdicts(self, answer: object, theta: dict[str, float]) -> list[Verdict]:
        """What an answer says, one verdict for each formula, or the only one where there is no formula."""
        name = name_of(self.function)
        if isinstance(answer, Path):
            if not self.formulas:
                problem = f"{name} returns paths, which a formula must decide"
                raise InputError(problem, argument="formula", remedy="give a {formula}")
            return [monitor(formula, _informed(answer, formula, theta)) for formula in self.formulas]
        if isinstance(answer, Verdict):
            verdict = answer
        elif isinstance(answer, bool | np.bool_) or (isinstance(answer, int | np.integer) and answer in (0, 1)):
            verdict = Verdict.of(bool(answer))
        else:
            given = repr(answer) if isinstance(answer, int | np.integer) else f"a {type(answer).__name__}"
            raise InputError(f"{name} returns {given}; a black box answers with a bool, or with a Path")
        if self.formulas:
            problem = f"{name} decides by itself, so a formula has nothing to decide"
            raise InputError(problem, argument="formula", remedy="give {formula=None}")
        return [verdict]


Source: TypeAlias = Simulated | BlackBox


def name_of(function: Function) -> str:
    """The name of a callable, with its module."""
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"


def _words(error: Exception) -> str:
    """An error of a run as a store and a file can keep it: not too long, and in characters that are whole."""
    return f"{type(error).__name__}: {error}"[:_MOST_WORDS].encode(errors="backslashreplace").decode()


def _informed(path: Path, formula: Formula, theta: dict[str, float]) -> Path:
    """The path, with the parameters it was made under where the formula reads them."""
    if all(name in path.species or name in path.values for name in formula.species):
        return path
    values = {**theta, **path.values}
    return Path(path.times, path.states, path.species, path.end, path.absorbed, values)


def _source(function: Function) -> str:
    """The text of a function, by which a store knows it again."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    if not text or not inspect.isfunction(function) or function.__closure__ or "<lambda>" in function.__qualname__:
        raise StoreError(
            f"a store cannot distinguish {name_of(function)} from other black boxes\n"
            "  write it as a function in a file, with `def` and outside of other functions, or leave out store="
        )
    return text
