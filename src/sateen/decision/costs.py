"""What a run costs at each θ, where that differs: events for a model, seconds for a black box.

Some points of the start are looked at: the same runs are made once more, and their events counted or their seconds
measured. Between these points the logarithm of the cost is a quadratic function of θ on the scales of the space. Only
ratios of costs matter. Seconds are noted in the store before they are used, so that a search that is resumed makes the
same choices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Space
from sateen.core.types import FloatArray
from sateen.model.model import Model

if TYPE_CHECKING:
    from sateen.decision.picks import Costs
    from sateen.decision.rounds import Question
    from sateen.sampling.notes import Notes

_POINTS: Final = 64
_RUNS: Final = 8  # of a model at each point; a black box is run once there
_RIDGE: Final = 1e-3
_MOST_RATIO: Final = 100.0  # of two costs: so that what is hardly known does not decide everything


def costs_of(question: Question, seed: int, notes: Notes) -> Costs:
    """The cost of a run at rows of θ, as measured once and noted."""
    known = notes.read("costs")
    if known is None:
        space = question.space
        points = space.sobol(_POINTS, seed=stream_seed(seed, "costs")) if space.names else space.points({})
        measured = _events if isinstance(question.model, Model) else _seconds
        known = {"theta": points.theta.tolist(), "cost": measured(question, points, stream_seed(seed, "cost runs"))}
        known = notes.write("costs", known)
    theta = np.array(known["theta"], np.float64).reshape(len(known["cost"]), len(question.space))
    return _surface(question.space, theta, np.array(known["cost"], np.float64))


def _events(question: Question, points: Points, seed: int) -> list[float]:
    """The events of a run of a model at each point, on average."""
    from sateen.engine.run import Runner

    model = question.model
    assert isinstance(model, Model)
    formulas = tuple(formula for formula in question.formulas.values() if formula is not None)
    runner = Runner(model, formulas)
    costs = []
    for place, theta in enumerate(points):
        values = model.values(theta)
        row = [[values[name] for name in runner.parameters]]
        costs.append(runner.run(row, [[place, 0, _RUNS]], seed=seed).events / _RUNS + 1.0)
    return costs


def _seconds(question: Question, points: Points, seed: int) -> list[float]:
    """The seconds of a run of a black box at each point."""
    function: Callable[..., object] = question.model  # type: ignore[assignment]
    costs = []
    for place, theta in enumerate(points):
        generator = np.random.default_rng([seed, place])
        start = time.perf_counter()
        with suppress(Exception):  # a run that fails takes time too; `observe` records failures
            function(theta, generator)
        costs.append(max(time.perf_counter() - start, 1e-9))
    return costs


def _surface(space: Space, theta: FloatArray, cost: FloatArray) -> Costs:
    """A cost at every θ: log-quadratic, by ridge regression, within the ratio that is allowed."""
    features = _features(space, theta)
    logs = np.log(cost)
    centre = float(logs.mean())
    penalty = _RIDGE * len(cost) * np.eye(features.shape[1])
    weights = np.linalg.solve(features.T @ features + penalty, features.T @ (logs - centre))
    reach = 0.5 * float(np.log(_MOST_RATIO))

    def costs(rows: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.clip(_features(space, rows) @ weights, -reach, reach)))

    return costs


def _features(space: Space, theta: FloatArray) -> FloatArray:
    unit = space.to_unit(theta)
    pairs = [unit[:, a] * unit[:, b] for a in range(unit.shape[1]) for b in range(a + 1)]
    return np.column_stack([np.ones(len(unit)), unit, *pairs])
