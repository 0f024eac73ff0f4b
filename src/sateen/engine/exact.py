"""The probability that a finite model satisfies a formula, computed rather than sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import FormulaError, InputError, MissingValueError, nearest
from sateen.core.progress import SILENT, Progress, working
from sateen.core.space import Points
from sateen.core.types import FloatArray
from sateen.engine.chain import Chain, shown
from sateen.engine.events import BoolArray, columns
from sateen.engine.motion import Flow, Limit
from sateen.engine.phases import SINKS, Phase, phases_of
from sateen.engine.progression import TRUE, Question, defined, holds
from sateen.engine.regimes import Regime, regimes_of
from sateen.logic.formula import Atom, Formula, subformulas
from sateen.model.model import Model

__all__ = ["exact"]

_ERROR: Final = 5e-11  # of all phases together; an unbounded one has its own bound, and rounding comes on top


def exact(
    model: Model,
    formula: Formula,
    points: Points | Mapping[str, float] | Sequence[Mapping[str, float]],
    *,
    max_states: int = 1_000_000,
    progress: Progress = SILENT,
) -> FloatArray:
    """P(formula | θ) at every point, to ten decimals.

    `points` are Points, a sequence of mappings θ, or one mapping, which is one point: the result is always an array of
    one probability a point. `progress` is advanced by each.

    The formula is a boolean combination of F, G and U over conditions on the present state, with any windows, and of
    such conditions at time 0; it may be read up to an `end`. Nested operators and delays are refused by name, and so
    are models that reach more than `max_states` states before the formula is decided, and events that wait for a time
    that depends on the state.

    The absolute error is at most 1e-10. Half of it is for the spans of time between bounds of windows: what is cut off
    Poisson weights, states too improbable to follow, stopping at a steady state. Half is for unbounded operators.
    Rounding comes on top: a span takes about n = (fastest rate out of a state) * (length of the span) steps, each of
    which adds some 1e-16 of the probability at worst; in practice roundings cancel, and the sum is about 1e-16 sqrt(n).

    >>> from sateen.logic.parser import stl
    >>> queue = Model.parse('''
    ...     species X = 0
    ...     arrive: 0 -> X @ 1 when X < 9
    ...     serve:  X -> 0 @ mu * min(X, 1)
    ... ''')
    >>> exact(queue, stl("F[0, 10] X == 9"), [{"mu": 1.0}, {"mu": 2.0}]).round(6)
    array([0.072067, 0.004931])
    """
    _check(model, formula, max_states)
    question = Question.of(formula)
    cases = [model.values(theta) for theta in _thetas(points)]
    spaces = [_space(model, values) for values in cases]
    probabilities = np.empty(len(cases))
    prepared: _Prepared | None = None
    space = None
    with working(progress, "exact", len(cases), "points"):
        # Points that share a state space come one after the other, so that it is built once.
        for index in sorted(range(len(cases)), key=spaces.__getitem__):
            former = prepared if space == spaces[index] else None
            prepared, rates = _prepared(model, question, cases[index], max_states, former)
            probabilities[index], space = prepared.probability(rates), spaces[index]
            progress.advance(1)
    return probabilities


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What the rates do not change: the chains, which conditions hold in their states, the phases of the answer."""

    regimes: tuple[Regime, ...]
    truths: tuple[BoolArray, ...]
    start: int
    phases: tuple[tuple[Phase, Flow | Limit], ...]

    def probability(self, rates: Sequence[FloatArray]) -> float:
        """The probability under the rates of the edges of each chain."""
        # Before the first instant everything is in one place; after the last, all that is left is in the sinks.
        sizes = [*(phase.size for phase, _ in self.phases), len(SINKS)]
        now = np.zeros(sizes[0])
        now[self.start] = 1.0
        for (phase, motion), size in zip(self.phases, sizes[1:], strict=True):
            speeds = rates[phase.regime][phase.edges]
            if isinstance(motion, Limit):
                return _between(motion.probability(now, speeds))
            now = motion.after(phase.duration, now, speeds, _ERROR / len(self.phases))
            now = np.bincount(phase.onward, weights=now, minlength=size).astype(np.float64)
        return _between(float(now[SINKS.index(TRUE)]))


def _prepared(
    model: Model, question: Question, values: Mapping[str, float], max_states: int, former: _Prepared | None
) -> tuple[_Prepared, list[FloatArray]]:
    """What answers the question under `values`, made of what answered it before where that fits, and the rates."""
    regimes = () if former is None else former.regimes
    rates = _rates(regimes, question, values)
    if not rates:
        regimes = regimes_of(model, values, question.decided, max_states, question.last)
        rates = _rates(regimes, question, values)
        assert rates
    truths = tuple(_truth(regime.chain, question, values) for regime in regimes)
    if former is not None and regimes is former.regimes and all(map(np.array_equal, truths, former.truths)):
        return former, rates
    start, phases = phases_of(regimes, truths, question, max_states)
    return _Prepared(regimes, truths, start, tuple((phase, _motion(phase)) for phase in phases)), rates


def _rates(regimes: Sequence[Regime], question: Question, values: Mapping[str, float]) -> list[FloatArray]:
    """The rates of the edges of each chain, or none if other chains are needed under `values`."""
    every = [regime.rates(values, question.decided) for regime in regimes]
    rates = [each for each in every if each is not None]
    return rates if len(rates) == len(every) else []


def _motion(phase: Phase) -> Flow | Limit:
    if math.isinf(phase.duration):
        return Limit.along(phase.size, phase.sources, phase.targets, phase.onward)
    return Flow.along(phase.size, phase.sources, phase.targets)


def _truth(chain: Chain, question: Question, values: Mapping[str, float]) -> BoolArray:
    """A row for every condition and a column for every state; a comparison with what is no number is an error."""
    environment = {**values, **columns(chain.model, chain.states)}
    for atom in dict.fromkeys(part for condition in question.conditions for part in subformulas(condition)):
        if isinstance(atom, Atom) and not (fine := defined(atom, environment, len(chain))).all():
            place = shown(chain.model, chain.states[np.argmin(fine)], values)
            remedy = f"there {place}; guard the division with if(c, a, b)"
            raise FormulaError(f"{atom} is undefined (0/0 or the like) in a state that can be reached", remedy=remedy)
    rows = [holds(condition, environment, len(chain)) for condition in question.conditions]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(chain))


def _between(probability: float) -> float:
    """Rounding may put a probability just outside [0, 1]."""
    return min(max(probability, 0.0), 1.0)


def _space(model: Model, values: Mapping[str, float]) -> tuple[float, ...]:
    """What the state space depends on beside the signs of rates: where it begins, and what updates and events read."""
    expressions = [value for transition in model.transitions for _, value in transition.update]
    expressions += [value for event in model.events for _, value in event.update]
    expressions += [event.trigger for event in model.events]
    read = dict.fromkeys(name for expression in expressions for name in expression.names)
    return (*model.initial(values).values(), *(values[name] for name in read if name in values))


def _thetas(points: Points | Mapping[str, float] | Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    thetas: list[Mapping[str, float]] = [points] if isinstance(points, Mapping) else list(points)
    for theta in thetas:
        if not isinstance(theta, Mapping):
            raise InputError(f"a point is a mapping such as {{'beta': 0.1}}, not {theta!r}; or give Points of a Space")
    return thetas


def _check(model: Model, formula: Formula, max_states: int) -> None:
    if not isinstance(formula, Formula):
        raise InputError(f"exact takes a formula, as stl makes it from text, not {formula!r}")
    if isinstance(max_states, bool) or not isinstance(max_states, int) or max_states < 1:
        raise InputError(f"max_states is a whole number from 1 up, not {max_states!r}")
    for name in formula.species:
        if name not in model.names:
            hint = nearest(name, model.names) or f"it has {', '.join(model.names)}"
            raise MissingValueError(f"{name} is neither a species nor a parameter of this model\n  {hint}")
