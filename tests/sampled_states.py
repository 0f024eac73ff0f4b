"""The states of many runs at given times, from the compiled engine: what published means and variances are held to."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError, SimulationError
from sateen.engine.emit import REASONS
from sateen.engine.kernel import kernel
from sateen.engine.run import replay
from sateen.model.model import Model

__all__ = ["states_at"]

_LARGEST_COUNT = 2.0**53


def states_at(
    model: Model,
    theta: Mapping[str, float] | None,
    times: npt.ArrayLike,
    *,
    runs: int,
    seed: int,
    max_events: int = 100_000_000,
) -> npt.NDArray[np.float64]:
    """The states of `runs` runs at `times`, as an array (runs, times, species): those that `observe` sees at point 0.

    Paths are right-continuous: at the instant of a jump or an event it is the state after it.
    """
    asked = np.asarray(times, np.float64)
    if asked.ndim != 1 or not asked.size or not np.all(np.isfinite(asked) & (asked >= 0)):
        raise InputError("times are finite numbers from 0 on, at least one")
    values = model.values(theta)
    model.initial(values)
    row = np.array([[values[parameter.name] for parameter in model.parameters]], np.float64)
    record = kernel(model, (), checked=True, record=True)
    nothing, nowhere = np.zeros((0, 1), np.int64), np.zeros((0, len(REASONS), 1), np.int64)
    # An instant beyond the last time, so that what happens then has happened.
    until = math.nextafter(float(asked.max()), math.inf)
    item, fault = np.array([[0, 0, 1]], np.int64), np.zeros(2 + len(model.events), np.int64)
    found = np.empty((runs, len(asked), len(model.variables)))
    for run in range(runs):
        item[0, 1] = run
        limits = (np.uint64(seed), until, max_events, _LARGEST_COUNT)
        states, _, outcome = record.run(row, item, *limits, nothing, nowhere, fault)
        if outcome == 2:
            replay(model, theta, until=until, seed=seed, run=run, max_events=max_events)  # fails again, and says why
        if outcome == 1:
            raise SimulationError(f"run {run} ended after {max_events:,} events, before time {until:g}")
        found[run] = states[np.searchsorted(states[:, 0], asked, side="right") - 1, 2:]
    return found
