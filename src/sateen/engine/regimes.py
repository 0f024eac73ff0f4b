"""The chains of a model between the thresholds of the clock.

Between two thresholds every trigger is a function of the state. So there a jump, with all that it sets off, is one
transition of a Markov chain; and at a threshold every state goes over into one of the next chain. A model without
events is a single chain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sateen.core.errors import ExactError
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import Chain, Stop, explore, explore_from
from sateen.engine.events import Events, columns, just_after
from sateen.model.model import Event, Model

__all__ = ["Regime", "regimes_of"]


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
    if not model.events:
        return (Regime(0.0, explore(model, values, stop, max_states), np.empty(0, np.int64), False),)
    events = Events(model, values)
    times = [0.0, *_thresholds(model, values, last)]
    start, _ = events.begun(np.array([list(model.initial(values).values())]))
    regimes: list[Regime] = []
    for time, following in zip(times, (*times[1:], math.inf), strict=True):
        clock, closed = just_after(time), time >= last

        def settle(before: FloatArray, after: FloatArray, clock: float = clock) -> FloatArray:
            return events.settled(after, events.say(before, clock), clock)[0]

        ends: Stop = (lambda _, size: np.ones(size, np.bool_)) if closed else stop
        chain, places = explore_from(start, model, values, ends, max_states, settle)
        if regimes:
            regimes[-1] = _leading(regimes[-1], places)
        regimes.append(Regime(time, chain, np.empty(0, np.int64), closed))
        if following < math.inf:
            rows = chain.states[chain.followed]
            start, _ = events.passed(rows, events.say(rows, clock), following)
    return tuple(regimes)


def _leading(regime: Regime, places: IntArray) -> Regime:
    """The regime with the places to which its followed states go over; ends go nowhere."""
    onward = np.full(len(regime.chain), -1)
    onward[regime.chain.followed] = places
    return Regime(regime.begin, regime.chain, onward, regime.closed)


def _thresholds(model: Model, values: Mapping[str, float], last: float) -> list[float]:
    """The times after 0, and up to `last`, at which the clock may set off an event."""
    times = set[float]()
    for event in model.events:
        for side in event.thresholds:
            if moving := [name for name in side.names if name in model.species]:
                raise ExactError(_refusal(event, str(side), moving[0]))
            times.add(float(side.evaluate(values)))
    return sorted(time for time in times if 0.0 < time <= last and time < math.inf)


def _refusal(event: Event, side: str, name: str) -> str:
    reads = "" if side == name else f", which reads {name}"
    return (
        f"the event {event.name} waits for the time {side}{reads}, and {name} changes; exact takes times that only "
        "parameters and constants decide\n  simulate instead: runs follow every event"
    )
