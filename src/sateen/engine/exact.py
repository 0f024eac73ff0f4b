"""The probability that a finite model satisfies a formula, computed rather than sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import ExactError, FormulaError, InputError, MissingValueError, nearest
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points
from sateen.engine.chain import BoolArray, Chain, FloatArray, columns, explore, shown
from sateen.engine.limit import Limit
from sateen.engine.phases import SINKS, Phase, phases_of
from sateen.engine.progression import TRUE, Question, defined, holds
from sateen.engine.transient import Flow
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
    one probability a point. `progress` is told of each.

    The formula is a boolean combination of F, G and U over conditions on the present state, with any windows, and of
    such conditions at time 0; it may be read up to an `end`. Nested operators and delays are refused by name, and so
    are models with events and models that reach more than `max_states` states before the formula is decided.

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
    progress.start("exact", len(cases), "points")
    try:
        # Points that share a state space come one after the other, so that it is built once.
        for index in sorted(range(len(cases)), key=spaces.__getitem__):
            former = prepared if space == spaces[index] else None
            prepared, rates = _prepared(model, question, cases[index], max_states, former)
            probabilities[index], space = prepared.probability(rates), spaces[index]
            progress.advance(1)
    finally:
        progress.finish()
    return probabilities


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What the rates do not change: the chain, which conditions hold in its states, and the phases of the answer."""

    chain: Chain
    truth: BoolArray
    start: int
    phases: tuple[tuple[Phase, Flow | Limit], ...]

    def probability(self, rates: FloatArray) -> float:
        """The probability under the rates of the chain's edges."""
        # Before the first instant everything is in one place; after the last, all that is left is in the sinks.
        sizes = [*(phase.size for phase, _ in self.phases), len(SINKS)]
        now = np.zeros(sizes[0])
        now[self.start] = 1.0
        for (phase, motion), size in zip(self.phases, sizes[1:], strict=True):
            if isinstance(motion, Limit):
                return _between(motion.probability(now, rates[phase.edges]))
            now = motion.after(phase.duration, now, rates[phase.edges], _ERROR / len(self.phases))
            now = np.bincount(phase.onward, weights=now, minlength=size).astype(np.float64)
        return _between(float(now[SINKS.index(TRUE)]))


def _prepared(
    model: Model, question: Question, values: Mapping[str, float], max_states: int, former: _Prepared | None
) -> tuple[_Prepared, FloatArray]:
    """What answers the question under `values`, made of what answered it before where that fits, and the rates."""
    chain = None if former is None else former.chain
    rates = None if chain is None else chain.rates(values)
    if chain is None or rates is None or not _same_ends(chain, question, values):
        chain = explore(model, values, question.decided, max_states)
        rates = chain.rates(values)
        assert rates is not None
    truth = _truth(chain, question, values)
    if former is not None and chain is former.chain and np.array_equal(truth, former.truth):
        return former, rates
    start, phases = phases_of(chain, truth, question, max_states)
    return _Prepared(chain, truth, start, tuple((phase, _motion(phase)) for phase in phases)), rates


def _motion(phase: Phase) -> Flow | Limit:
    if math.isinf(phase.duration):
        return Limit.along(phase.size, phase.sources, phase.targets, phase.onward)
    return Flow.along(phase.size, phase.sources, phase.targets)


def _same_ends(chain: Chain, question: Question, values: Mapping[str, float]) -> bool:
    """Whether the states that decide the question, which may read parameters, are those where the chain ends."""
    environment = {**values, **columns(chain.model, chain.states)}
    return np.array_equal(np.flatnonzero(~question.decided(environment, len(chain))), chain.followed)


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
    """What the state space depends on beside the signs of rates: where it begins, and what updates read."""
    read = dict.fromkeys(
        name for transition in model.transitions for _, value in transition.update for name in value.names
    )
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
    if model.events:
        raise ExactError(f"the event {model.events[0].name} is beyond exact\n  it takes models without events")
    for name in formula.species:
        if name not in model.names:
            hint = nearest(name, model.names) or f"it has {', '.join(model.names)}"
            raise MissingValueError(f"{name} is neither a species nor a parameter of this model\n  {hint}")
