"""A Python callable as a source of runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import numpy as np

from sateen.core.errors import InputError, SimulationError, StoreError
from sateen.core.observations import Failure
from sateen.core.path import Path, Verdict
from sateen.core.space import Points, Space
from sateen.core.text import values_text
from sateen.core.types import FloatArray, IntArray
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor
from sateen.sampling.ledger import MOST_FAILURES, Ledger, Tally

__all__ = ["BlackBox", "Function", "name_of"]

Function: TypeAlias = "Callable[[dict[str, float], np.random.Generator], object]"
_SHORT, _FAILED = range(2)  # the places of the reasons
_HOPELESS: Final = 20  # runs that all failed, and nothing else, are enough


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
                        failures.append(Failure(points[row], self.seed, point, run, f"{type(error).__name__}: {error}"))
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


def name_of(function: Function) -> str:
    """The name of a callable, with its module."""
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"


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
            f"a store cannot tell {name_of(function)} from other black boxes\n"
            "  write it as a function in a file, with `def` and outside of other functions, or leave out store="
        )
    return text
