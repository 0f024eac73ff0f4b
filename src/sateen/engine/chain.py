"""The states that a model can reach, and the transitions between them: a chain for each regime of the clock.

States are found from the initial one outwards, a frontier at a time: all rates of a frontier are evaluated at once.
What is found depends on which transitions can fire, not on how fast they are, so a Chain made under one value of the
parameters serves under every other under which the same transitions fire.

Between two thresholds of the clock every trigger of an event is a function of the state. So there a jump, with all that
it sets off, is one transition of a Markov chain; and at a threshold every state goes over into one of the next chain. A
model without events is a single chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from sateen.core.errors import ExactError, SimulationError
from sateen.core.text import number_text
from sateen.core.types import FloatArray, IntArray
from sateen.engine.events import BoolArray, Events, columns, just_after
from sateen.language.expression import Value
from sateen.model.model import Model, Transition

Environment: TypeAlias = Mapping[str, Value]
Stop: TypeAlias = Callable[[Environment, int], BoolArray]
Settle: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

_NARROW: Final = 8  # states; a frontier of so few is extended along rays
_SHORTEST_RAY: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Reachable states, an initial one first, and an edge for every transition that leads from one to another.

    `followed` are the states whose transitions were followed, the others being ends; `fires` says, for every transition
    and every followed state, whether it can fire there. `slots` are the places of the edges' rates in such a table.
    """

    model: Model
    states: FloatArray
    followed: IntArray
    fires: BoolArray
    sources: IntArray
    targets: IntArray
    slots: IntArray

    def __len__(self) -> int:
        return len(self.states)

    def rates(self, values: Mapping[str, float]) -> FloatArray | None:
        """The rate of every edge under `values`, or None if other transitions fire under them."""
        environment = {**values, **columns(self.model, self.states[self.followed])}
        table = np.empty(self.fires.shape)
        with np.errstate(all="ignore"):
            for row, transition in zip(table, self.model.transitions, strict=True):
                row[:] = _rate(transition, environment, len(self.followed))
        if not (np.isfinite(table).all() and (table >= 0).all() and np.array_equal(table > 0, self.fires)):
            return None
        return table.ravel()[self.slots]


def explore(
    start: FloatArray,
    model: Model,
    values: Mapping[str, float],
    stop: Stop,
    max_states: int,
    settle: Settle | None = None,
) -> tuple[Chain, IntArray]:
    """Everything that can be reached from the states `start` under `values`, and the number of each of these.

    `stop(environment, size)` marks states that need not be left. More than `max_states` states are an ExactError; a
    rate or a count that no process can have is a SimulationError.
    `settle(before, after)` are the states after the events that jumps from states to states set off.
    """
    explorer = _Explorer(model, values, stop, max_states, settle)
    places, frontier = explorer.identify(start)
    with np.errstate(all="ignore"):
        while len(frontier):
            frontier = explorer.expand(frontier)
    return explorer.chain(), places


@dataclass(frozen=True, slots=True, eq=False)
class Regime:
    """The chain from the time `begin` until the next regime begins.

    When that is, followed state i goes over into state `onward[i]` of the next chain. A regime is `closed` if nothing
    after its first instant is asked; then its states are all ends.
    """

    begin: float
    chain: Chain
    onward: IntArray
    closed: bool

    def rates(self, values: Mapping[str, float], stop: Stop) -> FloatArray | None:
        """The rates of the chain's edges under `values`, or None if another chain is needed under them."""
        states = {**values, **columns(self.chain.model, self.chain.states)}
        if not self.closed:
            followed = np.flatnonzero(~stop(states, len(self.chain)))
            if not np.array_equal(followed, self.chain.followed):
                return None
        return self.chain.rates(values)


def regimes_of(
    model: Model, values: Mapping[str, float], stop: Stop, max_states: int, last: float = math.inf
) -> tuple[Regime, ...]:
    """The regimes of a model under `values`, up to the time `last`; `stop` marks states that need not be left."""
    events = Events(model, values)
    times = [0.0, *_thresholds(model, values, last)]
    start, _ = events.begun(np.array([list(model.initial(values).values())]))
    regimes: list[Regime] = []
    for time, following in zip(times, (*times[1:], math.inf), strict=True):
        clock, closed = just_after(time), time >= last

        def settle(before: FloatArray, after: FloatArray, clock: float = clock) -> FloatArray:
            return events.settled(after, events.say(before, clock), clock)[0]

        ends: Stop = (lambda _, size: np.ones(size, np.bool_)) if closed else stop
        chain, places = explore(start, model, values, ends, max_states, settle if model.events else None)
        if regimes:
            before = regimes[-1].chain
            onward = np.full(len(before), -1)
            onward[before.followed] = places
            regimes[-1] = replace(regimes[-1], onward=onward)
        regimes.append(Regime(time, chain, np.empty(0, np.int64), closed))
        if following < math.inf:
            rows = chain.states[chain.followed]
            start, _ = events.passed(rows, events.say(rows, clock), following)
    return tuple(regimes)


def _thresholds(model: Model, values: Mapping[str, float], last: float) -> list[float]:
    """The times after 0, and up to `last`, at which the clock may set off an event."""
    times = set[float]()
    for event in model.events:
        for side in event.thresholds:
            if moving := [name for name in side.names if name in model.species]:
                reads = "" if str(side) == moving[0] else f", which reads {moving[0]}"
                raise ExactError(
                    f"the event {event.name} waits for the time {side}{reads}, and {moving[0]} changes; exact takes "
                    "times that only parameters and constants decide\n  simulate instead: runs follow every event"
                )
            times.add(float(side.evaluate(values)))
    return sorted(time for time in times if 0.0 < time <= last and time < math.inf)


def shown(model: Model, state: FloatArray, values: Mapping[str, float]) -> str:
    """A state and the parameters, as an error names them."""
    where = ", ".join(f"{name} = {number_text(count)}" for name, count in zip(model.species, state, strict=True))
    under = ", ".join(f"{each.name} = {number_text(values[each.name])}" for each in model.parameters)
    return f"{where} (under {under})" if under else where


def reachable(size: int, sources: IntArray, targets: IntArray, roots: IntArray) -> IntArray:
    """The nodes of a graph that can be reached from the roots, in ascending order."""
    origin = np.full(len(roots), size)  # one node more, which leads to all roots
    places = (np.concatenate([sources, origin]), np.concatenate([targets, roots]))
    graph = csr_array((np.ones(len(places[0])), places), shape=(size + 1, size + 1))
    nodes = breadth_first_order(graph, size, return_predecessors=False)
    return np.sort(nodes[nodes < size]).astype(np.int64)


class _Explorer:
    """The states known so far, each under its bytes, and the edges found between them."""

    def __init__(
        self, model: Model, values: Mapping[str, float], stop: Stop, max_states: int, settle: Settle | None
    ) -> None:
        self.model, self.values, self.stop, self.max_states, self.settle = model, values, stop, max_states, settle
        self.known: dict[bytes, int] = {}
        self.blocks: list[FloatArray] = []
        self.followed: list[IntArray] = []
        self.fires: list[BoolArray] = []
        self.edges: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
        self.expanded = self.rows = 0  # how many states have been looked at, and how many of them followed
        self.ray = _SHORTEST_RAY

    def expand(self, frontier: FloatArray) -> FloatArray:
        """The states that are new after one more jump, or after a ray of jumps where they are few."""
        follow = np.flatnonzero(~self.stop(self._environment(frontier), len(frontier)))
        origins, rows = self.expanded + follow, frontier[follow]
        self.expanded += len(frontier)
        if not len(rows):
            return frontier[:0]
        environment = self._environment(rows)
        begin, self.rows = self.rows, self.rows + len(rows)
        fires = np.zeros((len(self.model.transitions), len(rows)), dtype=np.bool_)
        moves: list[tuple[FloatArray, IntArray, IntArray]] = []
        for index, transition in enumerate(self.model.transitions):
            rate = _rate(transition, environment, len(rows))
            self._check_rate(transition, rate, rows)
            fires[index] = rate > 0
            firing = np.flatnonzero(fires[index])
            after = self._fired(transition, rows[firing], environment, firing)
            moves.append((after, firing, np.full(len(firing), index)))
        self.followed.append(origins)
        self.fires.append(fires)
        if not moves:
            return frontier[:0]
        after, firing, which = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        targets, fresh = self.identify(after)
        leaves = targets != origins[firing]  # a jump that changes nothing is none
        self.edges.append((origins[firing][leaves], targets[leaves], which[leaves], begin + firing[leaves]))
        return self._extended(fresh) if 0 < len(fresh) <= _NARROW and self.settle is None else fresh

    def identify(self, rows: FloatArray) -> tuple[IntArray, FloatArray]:
        """The number of every state, and the states that were not known before, in the order of their numbers."""
        known, before = self.known, len(self.known)
        numbers = np.array([known.setdefault(key, len(known)) for key in _keys(rows)], dtype=np.int64)
        _, first = np.unique(numbers[numbers >= before], return_index=True)
        fresh = rows[numbers >= before][first]
        self.blocks.append(fresh)
        if len(known) > self.max_states:
            raise ExactError(self._too_many(np.concatenate([fresh, rows[:1]])))
        return numbers, fresh

    def chain(self) -> Chain:
        """What was found, edges sorted by their source."""
        states = np.concatenate(self.blocks)
        followed = np.concatenate([np.empty(0, np.int64), *self.followed])
        fires = np.concatenate([np.empty((len(self.model.transitions), 0), np.bool_), *self.fires], axis=1)
        nothing = (np.empty(0, np.int64),) * 4
        sources, targets, which, places = (np.concatenate(parts) for parts in zip(nothing, *self.edges, strict=True))
        order = np.argsort(sources, kind="stable")
        slots = (which * len(followed) + places)[order]
        return Chain(self.model, states, followed, fires, sources[order], targets[order], slots)

    def _environment(self, rows: FloatArray) -> Environment:
        return {**self.values, **columns(self.model, rows)}

    def _extended(self, fresh: FloatArray) -> FloatArray:
        """Few new states, and those that repeating one transition reaches from them.

        A long thin chain would otherwise be walked one state at a time. Rays grow while they succeed.
        """
        blocks, whole = [fresh], False
        for transition in self.model.transitions:
            change = np.array([transition.change.get(name, 0) for name in self.model.species], dtype=np.float64)
            if transition.update or not change.any():
                continue
            for row in fresh:
                ray = row + change * np.arange(self.ray + 1)[:, np.newaxis]
                environment = self._environment(ray[:-1])
                rate = _rate(transition, environment, self.ray)
                passes = (rate > 0) & (rate < math.inf) & ~self.stop(environment, self.ray)
                passes &= ~self._outside(ray[1:]).any(axis=1)
                reached = self.ray if passes.all() else int(np.argmin(passes))
                blocks.append(self.identify(ray[1 : reached + 1])[1])
                whole |= len(blocks[-1]) == self.ray
        self.ray = 2 * self.ray if whole else _SHORTEST_RAY
        return np.concatenate(blocks)

    def _fired(
        self, transition: Transition, rows: FloatArray, environment: Environment, firing: IntArray
    ) -> FloatArray:
        """The states after a transition; leaving a variable's bounds is an error of the model."""
        after = rows.copy()
        species = self.model.species
        for name, change in transition.change.items():
            after[:, species.index(name)] += change
        for name, expression in transition.update:
            value = expression.value(environment)
            after[:, species.index(name)] = value[firing] if isinstance(value, np.ndarray) else value
        after += 0.0  # -0 becomes 0: equal states have equal bytes
        outside = self._outside(after)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise SimulationError(
                f"{transition.name} takes {species[column]} to {number_text(after[row, column])} from "
                f"{shown(self.model, rows[row], self.values)}: "
                f"{self.model.variables[column].refusal(after[row, column])}\n"
                f"  its rate, or a guard, should stop it before: {transition.rate}"
            )
        return after if self.settle is None else self.settle(rows, after)

    def _outside(self, rows: FloatArray) -> BoolArray:
        """Which values no variable can have."""
        outside = np.empty(rows.shape, dtype=np.bool_)
        for column, variable in enumerate(self.model.variables):
            outside[:, column] = ~variable.allows(rows[:, column])
        return outside

    def _check_rate(self, transition: Transition, rate: FloatArray, rows: FloatArray) -> None:
        wrong = ~((rate >= 0) & (rate < math.inf))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise SimulationError(
                f"the rate of {transition.name} is {rate[row]:g} where {shown(self.model, rows[row], self.values)}: "
                f"{transition.rate}\n  a rate must be finite and not negative in every state that can be reached"
            )

    def _too_many(self, rows: FloatArray) -> str:
        column = int(np.argmax(np.abs(rows).max(axis=0)))
        name = self.model.species[column]
        largest = rows[np.argmax(np.abs(rows[:, column])), column]
        return (
            f"the model reaches more than {self.max_states:,} states, among them {name} = {number_text(largest)}, and "
            f"exact looks at each\n  bound it with a guard such as `when {name} < 100`, raise max_states, or simulate"
        )


def _rate(transition: Transition, environment: Environment, size: int) -> FloatArray:
    """The rates in all states of the environment; 0 where the guard does not hold."""
    rate = np.broadcast_to(transition.rate.value(environment), size)
    if transition.guard is None:
        return rate
    return np.where(transition.guard.value(environment), rate, 0.0)


def _keys(rows: FloatArray) -> list[bytes]:
    """The bytes of every row."""
    if not rows.shape[1]:
        return [b""] * len(rows)
    keys: list[bytes] = np.ascontiguousarray(rows).view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return keys
