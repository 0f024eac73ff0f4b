"""The probability that a finite model satisfies a formula, computed rather than sampled.

The model's chain is taken together with what remains to be decided: one Markov chain for each span between the bounds
of windows, a phase. Its states are pairs (state of the model, rest of the formula), so operators that depend on each
other are decided together. Pairs whose rest is false or true are lumped into two sinks. A pair's rest changes when a
state is entered, and at the bounds of windows; only pairs that can be reached are kept. Where a new regime of the model
begins, a span ends too, and events may change the state of a pair before its rest is looked at.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.core.errors import ExactError, FormulaError, InputError, MissingValueError, nearest
from sateen.core.progress import USUAL, Progress, watcher, working
from sateen.core.space import Points
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import Chain, Regime, reachable, regimes_of, shown
from sateen.engine.events import BoolArray, columns
from sateen.engine.motion import Flow, Limit
from sateen.engine.observables import written_out
from sateen.engine.progression import FALSE, TRUE, Moment, Question, defined, holds, settled, untils
from sateen.engine.rewards import exact_rewards, refuse_timed
from sateen.logic.formula import Atom, Formula, Node, subformulas
from sateen.logic.parser import formula_of
from sateen.logic.rewards import Reward
from sateen.model.given import check_model
from sateen.model.model import Model

MAX_STATES: Final = 1_000_000
_ERROR: Final = 5e-11  # of all phases together; an unbounded one has its own bound, and rounding comes on top
_STEP_SECONDS: Final = 1e-5  # of a step of a chain, whatever its size
_EDGE_SECONDS: Final = 4e-9  # of a step for each edge
_END_STEPS: Final = 100  # that finding where a chain ends is worth
_SINKS: Final[tuple[Node, ...]] = (FALSE, TRUE)  # the first two states of every phase


def exact(
    model: Model,
    formula: Formula | Reward | str,
    points: Points | Mapping[str, float] | Sequence[Mapping[str, float]],
    *,
    max_states: int = MAX_STATES,
    progress: Progress | None = USUAL,
) -> FloatArray:
    """P(formula | θ) at every point, to ten decimals; of a Reward, its expectation at every point.

    `points` are Points, a sequence of mappings θ, or a single mapping. The result is always an array with one
    probability for each point. `progress` advances with each point.

    The formula is a boolean combination of F, G and U over conditions on the present state, with any windows, and of
    such conditions at time 0; it may be read up to an `end`. Nested operators and delays are refused with an error that
    names them. So are models that reach more than `max_states` states before the formula is decided, and events that
    wait for a time that depends on the state.

    The absolute error is at most 1e-10. Half of it is for the time spans between the bounds of windows: truncated
    Poisson weights, states too improbable to follow, and stopping at a steady state. The other half is for unbounded
    operators. Rounding adds to this: a span takes about n = (fastest rate out of a state) * (length of the span) steps,
    each of which adds about 1e-16 of the probability at worst; roundings cancel in practice, to about 1e-16 sqrt(n).

    A reward accumulated up to a time, or at a time, has an error of at most 1e-10 of the largest rate of earning (times
    that time). One without a time has an error of at most 1e-10 of the largest expectation from any state. It is
    infinite if its goal is not reached with probability 1.

    >>> from sateen.logic.parser import stl
    >>> queue = Model.parse('''
    ...     species X = 0
    ...     arrive: 0 -> X @ 1 when X < 9
    ...     serve:  X -> 0 @ mu * min(X, 1)
    ... ''')
    >>> exact(queue, stl("F[0, 10] X == 9"), [{"mu": 1.0}, {"mu": 2.0}]).round(6)
    array([0.072067, 0.004931])
    """
    progress = watcher(progress)
    check_model(model)
    if isinstance(formula, Reward):
        _check_max_states(max_states)
        cases = [model.values(theta) for theta in _thetas(points)]
        return exact_rewards(model, formula, cases, max_states, progress)
    formula = formula_of(formula)
    check_question(model, formula, max_states)
    question = Question.of(written_out(model, formula))
    cases = [model.values(theta) for theta in _thetas(points)]
    spaces = [_space(model, values) for values in cases]
    probabilities = np.empty(len(cases))
    prepared: Prepared | None = None
    space = None
    with working(progress, "exact", len(cases), "points"):
        # Points that share a state space come one after the other, so that it is built once.
        for index in sorted(range(len(cases)), key=spaces.__getitem__):
            former = prepared if space == spaces[index] else None
            prepared, rates = prepare(model, question, cases[index], max_states, former)
            probabilities[index], space = prepared.probability(rates), spaces[index]
            progress.advance(1)
    return np.clip(probabilities, 0.0, 1.0)  # rounding may put one just outside


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What the rates do not change: the chains, which conditions hold in their states, the phases of the answer."""

    regimes: tuple[Regime, ...]
    truths: tuple[BoolArray, ...]
    start: int
    phases: tuple[Phase, ...]

    def probability(self, rates: Sequence[FloatArray]) -> float:
        """The probability under the rates of the edges of each chain."""
        # Before the first instant everything is in one place; after the last, all that is left is in the sinks.
        sizes = [*(phase.size for phase in self.phases), len(_SINKS)]
        now = np.zeros(sizes[0])
        now[self.start] = 1.0
        for phase, size in zip(self.phases, sizes[1:], strict=True):
            speeds = rates[phase.regime][phase.edges]
            if isinstance(phase.motion, Limit):
                return phase.motion.probability(now, speeds)
            now = phase.motion.after(phase.duration, now, speeds, _ERROR / len(self.phases))
            now = np.bincount(phase.onward, weights=now, minlength=size).astype(np.float64)
        return float(now[_SINKS.index(TRUE)])


def prepare(
    model: Model, question: Question, values: Mapping[str, float], max_states: int, former: Prepared | None
) -> tuple[Prepared, list[FloatArray]]:
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
    return Prepared(regimes, truths, *_phases(regimes, truths, question, max_states)), rates


def _rates(regimes: Sequence[Regime], question: Question, values: Mapping[str, float]) -> list[FloatArray]:
    """The rates of the edges of each chain, or none if other chains are needed under `values`."""
    every = [regime.rates(values, question.decided) for regime in regimes]
    rates = [each for each in every if each is not None]
    return rates if len(rates) == len(every) else []


def _truth(chain: Chain, question: Question, values: Mapping[str, float]) -> BoolArray:
    """A row for every condition and a column for every state; a comparison with what is no number is an error."""
    environment = {**values, **columns(chain.model, chain.states)}
    for atom in dict.fromkeys(part for condition in question.conditions for part in subformulas(condition)):
        if isinstance(atom, Atom) and not (fine := defined(atom, environment, len(chain))).all():
            place = shown(chain.model, chain.states[np.argmin(fine)], values)
            remedy = f"there {place}; guard the division with if(c, a, b)"
            raise FormulaError(f"{atom} is undefined (such as 0/0) in a state that can be reached", remedy=remedy)
    rows = [holds(condition, environment, len(chain)) for condition in question.conditions]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(chain))


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


def check_question(model: Model, formula: Formula, max_states: int) -> None:
    """Raise if this is no question: a formula that reads a name that the model has not."""
    _check_max_states(max_states)
    refuse_timed(model)
    for name in formula.species:
        if model.meaning(name) is None:
            hint = nearest(name, model.readable) or f"it has {', '.join(model.readable)}"
            raise MissingValueError(f"{name} is neither a species nor a parameter of this model\n  {hint}")


def _check_max_states(max_states: int) -> None:
    if isinstance(max_states, bool) or not isinstance(max_states, int) or max_states < 1:
        raise InputError(f"max_states is a whole number from 1 up, not {max_states!r}")


@dataclass(frozen=True, slots=True)
class ExactForecast:
    """The `states` of the largest chain, the `steps` along all chains, and about how many `seconds` a point takes."""

    states: int
    steps: int
    seconds: float


def forecast_exact(model: Model, formula: Formula, points: Points, *, max_states: int) -> ExactForecast:
    """The mean cost over some points. What `exact` refuses is refused here: too many states, or another formula."""
    check_question(model, formula, max_states)
    question = Question.of(formula)
    prepared, costs = None, []
    for theta in points:
        prepared, rates = prepare(model, question, model.values(theta), max_states, prepared)
        steps = seconds = 0.0
        for phase in prepared.phases:
            speeds = np.bincount(phase.sources, rates[phase.regime][phase.edges], minlength=phase.size)
            endless = isinstance(phase.motion, Limit) or math.isinf(phase.duration)
            taken = _END_STEPS if endless else 1.0 + float(speeds.max(initial=0.0)) * phase.duration
            steps, seconds = steps + taken, seconds + taken * (_STEP_SECONDS + _EDGE_SECONDS * len(phase.edges))
        costs.append((max((phase.size for phase in prepared.phases), default=1), steps, seconds))
    states, steps, seconds = np.mean(costs, axis=0).tolist()
    return ExactForecast(round(states), round(steps), seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The chain of pairs on a span of length `duration` between two instants; the last span may be infinite.

    `motion` is along its edges, from `sources` to `targets`; their rates are those of `edges`, which are edges of the
    regime's chain. When the span is over, pair i goes on as pair `onward[i]` of the next phase, or as a sink after the
    last one. On an infinite span, `onward[i]` is the sink of pair i should its rest stay undecided for ever.
    """

    regime: int
    duration: float
    size: int
    motion: Flow | Limit
    sources: IntArray
    targets: IntArray
    edges: IntArray
    onward: IntArray


def _phases(
    regimes: Sequence[Regime], truths: Sequence[BoolArray], question: Question, max_states: int
) -> tuple[int, tuple[Phase, ...]]:
    """Where a question starts, and the phases that answer it.

    `truths` has, for every regime, a row for every condition of the question and a column for every state of the chain.
    The number is the place of the initial pair in the first phase; without phases, of its sink.
    """
    if question.root in _SINKS:
        return _SINKS.index(question.root), ()
    kinds, kind_of = np.unique(np.concatenate(truths, axis=1), axis=1, return_inverse=True)
    letters = tuple(dict(zip(question.conditions, kind.tolist(), strict=True)) for kind in kinds.T)
    borders = np.cumsum([len(regime.chain) for regime in regimes])[:-1]
    products = [
        _Product(regime.chain, letters, kind_of_state, max_states)
        for regime, kind_of_state in zip(regimes, np.split(kind_of.reshape(-1), borders), strict=True)
    ]
    rest = question.progress(question.root, Moment(0.0, True), letters[products[0].kind_of[0]])
    if rest in _SINKS:
        return _SINKS.index(rest), ()
    begins = [regime.begin for regime in regimes]
    instants = sorted({*question.instants, *begins})
    stops = (*instants[1:], math.inf)
    entries: _Entries = {rest: np.arange(len(regimes[0].chain)) == 0}
    spans: list[tuple[int, _Groups, list[tuple[_Group, Node, IntArray, IntArray]]]] = []
    for start, stop in zip(instants, stops, strict=True):
        place = bisect_right(begins, start) - 1
        groups = products[place].reached(entries, Moment(start, False))
        crosses = place + 1 < len(begins) and begins[place + 1] == stop
        product = products[place + crosses]
        moves = _passage(groups, product, regimes[place].onward if crosses else None, Moment(stop, True))
        spans.append((place, groups, moves))
        entries = {}
        for _, other, _, states in moves:
            if other not in _SINKS:
                entries[other] = entries.get(other, False) | product.mask(states)
        if not entries:
            break
    phases = []
    followings = [groups for _, groups, _ in spans[1:]]
    for start, stop, (place, groups, moves), following in zip(instants, stops, spans, (*followings, {}), strict=False):
        size = len(_SINKS) + sum(len(group.states) for group in groups.values())
        onward = np.arange(size)
        for group, other, chosen, states in moves:
            onward[group.first + chosen] = _places(following, other, states)
        sources, targets, edges = products[place].edges(groups)
        endless = math.isinf(stop)
        motion = Limit.along(size, sources, targets, onward) if endless else Flow.along(size, sources, targets)
        phases.append(Phase(place, stop - start, size, motion, sources, targets, edges, onward))
    return spans[0][1][rest].first, tuple(phases)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The pairs with one rest: their states in ascending order, the place of the first of them, and the rest after."""

    states: IntArray
    first: int
    after: tuple[Node, ...]  # entering a state of each kind


_Entries: TypeAlias = dict[Node, BoolArray]  # for every rest, which states it is met with first
_Groups: TypeAlias = dict[Node, _Group]


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """The chain, and the kind of every state: `letters[kind]` says which conditions hold in it."""

    chain: Chain
    letters: tuple[dict[Node, bool], ...]
    kind_of: IntArray
    max_states: int

    def reached(self, entries: _Entries, moment: Moment) -> _Groups:
        """The pairs that can be reached from the entries during a span, by rest.

        Untils are only ever decided, so rests are taken in the order of how much they leave open.
        """
        groups: _Groups = {}
        entries = {rest: states.copy() for rest, states in entries.items()}
        waiting = [(-len(untils(rest)), order, rest) for order, rest in enumerate(entries)]
        heapq.heapify(waiting)
        sources, targets, size = self.chain.sources, self.chain.targets, len(_SINKS)
        while waiting:
            rest = heapq.heappop(waiting)[-1]
            after = self.after(rest, moment)
            parts = dict(self.parted(after, targets))
            stays = parts.get(rest, np.empty(0, np.int64))
            states = reachable(len(self.chain), sources[stays], targets[stays], np.flatnonzero(entries[rest]))
            groups[rest] = _Group(states, size, after)
            size += len(states)
            if size > self.max_states + len(_SINKS):
                raise ExactError(
                    f"the model's {len(self.chain):,} states make more than {self.max_states:,} pairs with what is "
                    "left of the formula\n  raise max_states, ask for fewer operators at a time, or simulate"
                )
            inside = self.mask(states)
            for other in parts:
                arrived = targets[parts[other][inside[sources[parts[other]]]]]
                if other == rest or other in _SINKS or not len(arrived):
                    continue
                if other not in entries:
                    entries[other] = np.zeros(len(self.chain), dtype=np.bool_)
                    heapq.heappush(waiting, (-len(untils(other)), len(entries), other))
                entries[other][arrived] = True
        return groups

    def edges(self, groups: _Groups) -> tuple[IntArray, IntArray, IntArray]:
        """The sources and targets of all edges between pairs, and the edges of the model that they are."""
        blocks = [(np.empty(0, np.int64),) * 3]
        for rest, group in groups.items():
            edges = np.flatnonzero(self.mask(group.states)[self.chain.sources])
            for other, chosen in self.parted(group.after, self.chain.targets[edges]):
                taken = edges[chosen]
                sources = _places(groups, rest, self.chain.sources[taken])
                blocks.append((sources, _places(groups, other, self.chain.targets[taken]), taken))
        sources, targets, edges = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return sources, targets, edges

    def after(self, rest: Node, moment: Moment) -> tuple[Node, ...]:
        """The rest after an instant in a state of each kind; after an infinite time every until is false."""
        if math.isinf(moment.time):
            return (settled(rest, lambda until: False),) * len(self.letters)
        return tuple(Question.progress(rest, moment, letter) for letter in self.letters)

    def parted(self, after: tuple[Node, ...], states: IntArray) -> Iterator[tuple[Node, IntArray]]:
        """The places in `states` that lead to each rest; only rests to which some do."""
        rests = list(dict.fromkeys(after))
        number = np.array([rests.index(rest) for rest in after])[self.kind_of[states]]
        for index, rest in enumerate(rests):
            if len(places := np.flatnonzero(number == index)):
                yield rest, places

    def mask(self, states: IntArray) -> BoolArray:
        mask = np.zeros(len(self.chain), dtype=np.bool_)
        mask[states] = True
        return mask


def _passage(
    groups: _Groups, product: _Product, onto: IntArray | None, moment: Moment
) -> list[tuple[_Group, Node, IntArray, IntArray]]:
    """The instant that ends a span: for each group and each rest after it, which states lead there, and to which.

    The states after it are those of the product; `onto` maps the group's states to them, if they are not the same.
    """
    moves = []
    for rest, group in groups.items():
        states = group.states if onto is None else onto[group.states]
        for other, chosen in product.parted(product.after(rest, moment), states):
            moves.append((group, other, chosen, states[chosen]))
    return moves


def _places(groups: _Groups, rest: Node, states: IntArray) -> IntArray:
    if rest in _SINKS:
        return np.full(len(states), _SINKS.index(rest))
    return groups[rest].first + np.searchsorted(groups[rest].states, states)
