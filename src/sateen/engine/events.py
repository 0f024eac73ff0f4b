"""What events do at an instant, and when the clock can set one off: for the reference simulator and for `exact`.

Between two thresholds of the clock a trigger is a function of the state. So it is enough to look at the triggers when
the state jumps and when a threshold is reached; there twice, at the instant and just after it, which is where
`time > 25` becomes true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import SimulationError
from sateen.core.text import number_text, values_text
from sateen.core.types import FloatArray
from sateen.language.expression import Value
from sateen.model.model import CLOCK, Model

BoolArray: TypeAlias = npt.NDArray[np.bool_]

MOST_ROUNDS: Final = 1000  # at one instant
TINY: Final = 1e-300  # just after time 0: the least double would do, but some processors take it for 0


def just_after(time: float) -> float:
    """A clock that has passed `time`, and nothing else that a double can tell."""
    return max(math.nextafter(time, math.inf), TINY)


class Events:
    """The events of a model under given parameters and constants, on many states at once.

    States are the rows of an array; what triggers say is an array of a row for each event and a column for each state.
    """

    def __init__(self, model: Model, values: Mapping[str, float]) -> None:
        self.model = model
        self.values = values
        self.thresholds = tuple(dict.fromkeys(side for event in model.events for side in event.thresholds))

    def begun(self, rows: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The states at time 0, after its events, and what the triggers then say."""
        before = np.array([[event.initially] for event in self.model.events], dtype=np.bool_).reshape(-1, 1)
        return self.passed(rows, np.repeat(before, len(rows), axis=1), 0.0)

    def passed(self, rows: FloatArray, held: BoolArray, time: float) -> tuple[FloatArray, BoolArray]:
        """The states after all that happens when the clock passes `time`, at it and just after it."""
        when = f" at time {time:g}"
        return self.settled(*self.settled(rows, held, time, when), just_after(time), when)

    def settled(self, rows: FloatArray, held: BoolArray, clock: float, when: str = "") -> tuple[FloatArray, BoolArray]:
        """The states after all rounds at an instant, and what the triggers then say; `held` is what they said before.

        `clock` is the time that the triggers read, and `when` how an error names it.
        """
        for rounds in range(MOST_ROUNDS + 1):
            truth = self.say(rows, clock)
            fires = truth & ~held
            held = truth
            if not fires.any():
                return rows, held
            if rounds < MOST_ROUNDS:
                rows = self._after_round(rows, fires, when)
        ringing = np.flatnonzero(fires.any(axis=0))[0]
        raise blamed(self.model, self.values, rows[ringing], fires[:, ringing], when)

    def say(self, rows: FloatArray, clock: float) -> BoolArray:
        """What every trigger says in every state when the clock shows this time."""
        environment = {**self._environment(rows), CLOCK: clock}
        truth = np.empty((len(self.model.events), len(rows)), dtype=np.bool_)
        for line, event in zip(truth, self.model.events, strict=True):
            line[:] = event.trigger.evaluate(environment)
        return truth

    def ahead(self, rows: FloatArray, time: float) -> float:
        """The next threshold of the clock after `time` in any of the states; infinite if there is none."""
        environment = self._environment(rows)
        edges = [np.broadcast_to(side.evaluate(environment), len(rows)) for side in self.thresholds]
        return min((float(each) for side in edges for each in side if each > time), default=math.inf)

    def _after_round(self, rows: FloatArray, fires: BoolArray, when: str) -> FloatArray:
        """The states after one round: all values are computed, then assigned in the order of the events."""
        environment = self._environment(rows)
        after = rows.copy()
        for event, firing in zip(self.model.events, fires, strict=True):
            where = np.flatnonzero(firing)
            for name, expression in event.update if len(where) else ():
                place = self.model.species.index(name)
                given = np.broadcast_to(expression.evaluate(environment), len(rows))[where]
                fine = self.model.variables[place].allows(given)
                if not fine.all():
                    wrong = where[np.argmin(fine)]
                    raise blamed(self.model, self.values, rows[wrong], fires[:, wrong], when)
                after[where, place] = given + 0.0  # -0 becomes 0: equal states have equal bytes
        return after

    def _environment(self, rows: FloatArray) -> dict[str, Value]:
        return {**self.values, **columns(self.model, rows)}


def columns(model: Model, states: FloatArray) -> dict[str, FloatArray]:
    """The states as an array of values for each variable."""
    return dict(zip(model.species, np.ascontiguousarray(states.T), strict=True))


def blamed(
    model: Model,
    values: Mapping[str, float],
    state: Sequence[float] | FloatArray,
    fires: Sequence[bool] | BoolArray,
    when: str,
) -> SimulationError:
    """What is wrong with a round of the events that fire in `state`: a value, or that there is no last round."""
    counts = dict(zip(model.species, map(float, state), strict=True))
    ringing = [event for event, fired in zip(model.events, fires, strict=True) if fired]
    where = f"{when}, from {values_text(counts)}"
    for event in ringing:
        for name, expression in event.update:
            value = float(expression.evaluate({**values, **counts}))
            variable = model.variables[model.species.index(name)]
            if not variable.allows(np.float64(value)):
                message = f"the event {event.name} takes {name} to {number_text(value)}{where}"
                return SimulationError(f"{message}: {variable.refusal(value)}\n  the event sets it to {expression}")
    names = " and ".join(event.name for event in ringing)
    return SimulationError(
        f"events set each other off without end{where}: after {MOST_ROUNDS:,} rounds {names} would fire again\n"
        "  let the trigger of an event be false after what the event sets, and stay false"
    )
