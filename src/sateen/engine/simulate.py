"""One path of a model, by Gillespie's direct method: readable, exact, and the reference for the fast engine.

In a state whose transitions have rates a₁ … aᵣ, of sum a, the process waits an Exp(a) time; the transition that then
fires is the j-th with probability aⱼ/a. Where a threshold of the clock comes first, at which an event may happen, the
process is looked at there and waits again: an exponential time has no memory. Where rates read the clock, a and the aⱼ
are bounds that hold for some time, and a candidate may be rejected: see `thinning.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from sateen.core.errors import InputError, SimulationError
from sateen.core.path import Path
from sateen.core.progress import SILENT, Progress, working
from sateen.core.text import number_text, values_text
from sateen.engine.events import Events, just_after
from sateen.engine.observables import path_of
from sateen.engine.thinning import Still, Windows
from sateen.model.model import Model, Transition

State = dict[str, float]

_PARTS: Final = 100  # of a run, as its progress is reported
_JUMPS: Final = 100  # between two reports


def simulate(
    model: Model,
    theta: Mapping[str, float] | None = None,
    *,
    until: float,
    seed: int,
    max_events: int = 10_000_000,
    progress: Progress = SILENT,
) -> Path:
    """One path of the model on [0, until], under the parameters `theta`.

    The path ends earlier, and is marked absorbed, when nothing can happen any more; after `max_events` jumps it ends
    there, unfinished: `path.end` is less than `until`.

    >>> sir = Model.parse('''
    ...     species S = 95, I = 5, R = 0
    ...     S + I -> 2 I @ beta * S * I / 100
    ...     I -> R       @ gamma * I
    ... ''')
    >>> path = simulate(sir, {"beta": 0.12, "gamma": 0.05}, until=150, seed=1)
    >>> path.at(0)
    {'S': 95.0, 'I': 5.0, 'R': 0.0}
    """
    if not (math.isfinite(until) and until >= 0):
        raise InputError(f"until is a time from 0 on, not {until}")
    values = model.values(theta)
    events = Events(model, values)
    rows, held = events.begun(np.array([list(model.initial(values).values())]))
    state = dict(zip(model.species, rows[0].tolist(), strict=True))
    rng = np.random.default_rng(seed)
    times, states = [0.0], [list(state.values())]
    time, absorbed = 0.0, False
    pace: Still | Windows = Windows(model) if model.timed else Still(model)
    done = 0
    with np.errstate(all="ignore"), working(progress, "simulating", _PARTS, "%"):
        while len(times) <= max_events:
            if len(times) % _JUMPS == 0:
                before, done = done, int(_PARTS * max(time / until, len(times) / max_events))
                progress.advance(done - before)
            environment = {**values, **state}
            rates, edge = pace.rates(environment, time)
            try:
                total = math.fsum(rates)
            except OverflowError:
                raise SimulationError(
                    f"the rates add up to infinity at time {time:g}, where {values_text(state)}"
                ) from None
            threshold = events.ahead(rows, time) if model.events else math.inf
            if total == 0.0 and threshold == math.inf and pace.rests(environment, time):
                absorbed = True
                break
            # Every state lasts, if only for as long as a double can tell: else it would not be seen.
            jump = max(time + rng.exponential() / total, just_after(time)) if total else math.inf
            begin, time = time, min(jump, threshold, edge)
            if not time <= until:
                break
            if time < threshold:
                point = rng.random() * total if jump < edge else math.inf
                transition = pace.chosen(environment, begin, time, point)
                if transition is None:
                    continue
                state = _fired(model, transition, values, state, time)
            if model.events:
                after = np.array([list(state.values())])
                if time >= threshold:
                    rows, held = events.passed(after, held, time)
                else:
                    rows, held = events.settled(after, held, time, f" at time {time:g}")
                state = dict(zip(model.species, rows[0].tolist(), strict=True))
            if time >= threshold and state == dict(zip(model.species, states[-1], strict=True)):
                continue
            times.append(time)
            states.append(list(state.values()))
    capped = len(times) > max_events and not absorbed
    end = times[-1] if capped else until
    return path_of(model, times, states, end, absorbed, values)


def _fired(model: Model, transition: Transition, values: Mapping[str, float], state: State, time: float) -> State:
    """The state after a transition; leaving a variable's bounds is an error of the model."""
    after = dict(state)
    for name, change in transition.change.items():
        after[name] += change
    for name, expression in transition.update:
        after[name] = float(expression.value({**values, **state}))
    for variable in model.variables:
        value = after[variable.name]
        if not variable.allows(value):
            raise SimulationError(
                f"{transition.name} takes {variable.name} to {number_text(value)} at time {time:g}, "
                f"from {values_text(state)}: {variable.refusal(value)}\n"
                f"  its rate, or a guard, should stop it before: {transition.rate}"
            )
    return after
