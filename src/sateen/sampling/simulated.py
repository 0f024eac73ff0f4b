"""A model and its engine as a source of runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sateen.core.types import IntArray
from sateen.engine.emit import kernel_source
from sateen.engine.run import REASONS, Runner
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.sampling.ledger import Ledger, Tally

__all__ = ["Simulated"]


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

    @property
    def runner(self) -> Runner:
        """The engine, one for each process."""
        return _runner(self.model, self.formulas, self.max_population)

    @property
    def size(self) -> int:
        return len(self.formulas)

    @property
    def reasons(self) -> tuple[str, ...]:
        return REASONS

    @property
    def brief(self) -> bool:
        return True

    @property
    def cold(self) -> bool:
        return not self.runner.is_compiled

    def count(self, theta: npt.NDArray[np.float64], items: IntArray) -> Tally:
        rows = np.empty((len(theta), len(self.columns)))
        for place, column in enumerate(self.columns):
            rows[:, place] = theta[:, column] if isinstance(column, int) else column
        counts = self.runner.run(rows, items, seed=self.seed, max_events=self.max_events, max_time=self.max_time)
        return Tally(counts.satisfied, counts.undecided)

    def asked(self) -> dict[str, Any]:
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

    def judge(self, ledger: Ledger) -> None:
        """Any run may be of use."""


@lru_cache(maxsize=8)
def _runner(model: Model, formulas: tuple[Formula, ...], max_population: int | None) -> Runner:
    return Runner(model, formulas, max_population=max_population)
