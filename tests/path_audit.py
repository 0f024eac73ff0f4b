"""Whether a path is one that its model can take: every step explained by the meaning of transitions and events."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from sateen.core.path import Path
from sateen.engine.events import MOST_ROUNDS, just_after
from sateen.model.model import Model

State = dict[str, float]
Held = list[bool]


class Unexplained(AssertionError):
    """A step of a path that nothing in its model explains."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def audited(model: Model, path: Path) -> set[str]:
    """Checks every state and every step of a path of the model; says what kinds of steps there are."""
    for state in path.states:
        for variable, value in zip(model.variables, state, strict=True):
            if not variable.allows(value):
                raise Unexplained("a value that is none", f"{variable.name} is {value!r}; it needs {variable.needs}")
    with np.errstate(all="ignore"):
        return _Auditor(model, path.values).steps(path)


class _Auditor:
    """The meaning of a model, on one state at a time."""

    def __init__(self, model: Model, values: Mapping[str, float]) -> None:
        self.model, self.values = model, values
        self.thresholds = [side for event in model.events for side in event.thresholds]

    def steps(self, path: Path) -> set[str]:
        seen = set[str]()
        states = [dict(zip(path.species, each, strict=True)) for each in path.states.tolist()]
        held = [event.initially for event in self.model.events]
        state, held = self.passing(self.model.initial(self.values), held, 0.0)
        if state != states[0]:
            raise Unexplained("another initial state", f"{states[0]} instead of {state}")
        for (start, stop), after in zip(pairwise([*path.times.tolist(), path.end]), [*states[1:], None], strict=True):
            marks = self.marks(state, start, stop)
            for mark in marks:
                if mark < stop or after is None:
                    rang, held = self.passing(state, held, mark)
                    if rang != state:
                        raise Unexplained("an event that is missing", f"{rang} at {mark}")
            if after is None:
                break
            if stop in marks:
                found = [self.passing(state, held, stop)]
                seen.add("clock")
            else:
                jumps = self.jumps(state)
                found = [self.rounds(reached, held, stop) for reached in jumps]
                seen.add("jump" if after in jumps else "jump with events")
            matching = [held for reached, held in found if reached == after]
            if not matching:
                raise Unexplained("a jump that nothing explains", f"from {state} to {after} at {stop!r}")
            state, held = after, matching[0]
        if path.absorbed and self.jumps(state):
            raise Unexplained("absorbed where something can happen", f"in {state}")
        return seen

    def rounds(self, state: State, held: Held, clock: float) -> tuple[State, Held]:
        """What comes of a state at an instant, and what the triggers then say."""
        for _ in range(MOST_ROUNDS + 1):
            seen = {**self.values, **state, "time": clock}
            said = [bool(event.trigger.value(seen)) for event in self.model.events]
            firing = [event for event, now, before in zip(self.model.events, said, held, strict=True) if now > before]
            held = said
            if not firing:
                break
            state = state | {name: float(value.value(seen)) for event in firing for name, value in event.update}
        return state, held

    def passing(self, state: State, held: Held, time: float) -> tuple[State, Held]:
        """What comes of a state when the clock passes a time."""
        return self.rounds(*self.rounds(state, held, time), just_after(time))

    def marks(self, state: State, after: float, until: float) -> list[float]:
        """The times in (after, until] at which the clock may set off an event."""
        seen = {**self.values, **state}
        times = {float(side.value(seen)) for side in self.thresholds}
        return sorted(time for time in times if after < time <= until)

    def jumps(self, state: State) -> list[State]:
        """The states to which a transition can lead."""
        reached, seen = [], {**self.values, **state}
        for each in self.model.transitions:
            if each.guard is not None and not each.guard.value(seen):
                continue
            rate = float(each.rate.value(seen))
            if not rate >= 0:  # a product may be infinite in one order of its factors and finite in another
                raise Unexplained("a rate that is none", f"{each.rate} is {rate} in {state}")
            if rate > 0:
                after = state | {name: state[name] + change for name, change in each.change.items()}
                reached.append(after | {name: float(value.value(seen)) for name, value in each.update})
        return reached
