"""Rates that read the clock: windows of time in which they have bounds, and what a run learns from one window.

Let λ(s) be the summed rate at time s while the state stays as it is, and B a bound of it on a window [t, e) that the
past decides. Candidates come after Exp(B) times. One at s < e is accepted with probability λ(s)/B, and a candidate
from e on is not looked at: the clock moves on to e. That is exact. Candidates in the window are a Poisson process of
rate B, and those accepted, each with probability λ(s)/B by itself, one of rate λ(s) (Lewis and Shedler, 1979); what the
window holds does not depend on what came before it, so that windows may follow each other (Ogata, 1981). One uniform
decides both that a candidate is accepted and what then fires: laid end to end, the rates at s cover λ(s) of B.

How long windows are changes the work and never the law. A run begins with one that never ends, which bounded laws
allow. A window is half as long after a candidate that is rejected, and where a law has no bound; it is twice as long
after one in which nothing came, and after twenty of these in a row the next never ends: that is how a run finds out
that nothing can happen any more. A window ends at the latest where a law compares the clock with something, for there
the law may jump. The simulator follows these rules in Python, and the lanes in the source that `emit_clock.py` writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from sateen.core.errors import SimulationError
from sateen.core.text import values_text
from sateen.engine.hull import END, Hull, breaks, reads_clock
from sateen.language.expression import Expression
from sateen.model.model import CLOCK, Model, Transition

MARGIN: Final = 1.0 + 2.0**-30  # of a bound over its law, which may be rounded otherwise
MOST_QUIET: Final = 20  # windows in a row in which nothing comes
SHORTEST: Final = 1e-12  # beside the time that has passed, of one after a window without end
LEAST: Final = 1e-30  # a law without a bound in a window so short has none
LEAST_SHARE: Final = 1e-14  # or in one so short beside the time that has passed


@cache
def hulls_of(model: Model) -> tuple[Hull | None, ...]:
    """The hull of every transition that reads the clock, and None for the others."""
    counts = frozenset(each.name for each in model.variables if each.low is not None and each.low >= 0)
    return tuple(
        Hull.of(each.rate, counts, each.guard, str(place)) if is_timed(each) else None
        for place, each in enumerate(model.transitions)
    )


def is_timed(transition: Transition) -> bool:
    """Whether the rate or the guard of a transition reads the clock, in a model that has one."""
    return reads_clock(transition.rate) or (transition.guard is not None and reads_clock(transition.guard))


@cache
def breaks_of(model: Model) -> tuple[Expression, ...]:
    """What rates and guards compare the clock with, each once."""
    read = [part for each in model.transitions for part in (each.rate, each.guard) if part is not None]
    return tuple(dict.fromkeys(side for part in read for side in breaks(part)))


class Still:
    """The rates of a run that nothing but a jump changes."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._rates: list[float] = []

    def rates(self, environment: Mapping[str, float], time: float) -> tuple[list[float], float]:
        """Every rate in the state of the environment, and until when it holds: for ever."""
        self._rates = [_rate(each, environment, self.model, time) for each in self.model.transitions]
        return self._rates, math.inf

    def rests(self, environment: Mapping[str, float], time: float) -> bool:
        """Whether rates that are 0 stay so."""
        return True

    def chosen(self, environment: Mapping[str, float], begin: float, time: float, point: float) -> Transition | None:
        """The transition under `point` when the rates are laid end to end; behind all of them the last that may."""
        fires = _under(self.model.transitions, self._rates, point)
        possible = [each for each, rate in zip(self.model.transitions, self._rates, strict=True) if rate > 0.0]
        return fires or possible[-1]


class Windows:
    """The bounds of a run whose rates read the clock, window by window."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.width = math.inf
        self.quiet = 0  # how many windows in a row passed without a candidate

    def rates(self, environment: Mapping[str, float], time: float) -> tuple[list[float], float]:
        """A bound on every rate from `time` on, in the state of the environment, and until when all of them hold."""
        marks = [float(side.value(environment)) for side in breaks_of(self.model)]
        following = min((mark for mark in marks if mark > time), default=math.inf)
        while True:
            end = min(time + self.width, following)
            found = bounds(self.model, environment, time, end)
            if min(found, default=0.0) < 0.0:  # then one of them is negative from now on
                for each in self.model.transitions:
                    _rate(each, {**environment, CLOCK: time}, self.model, time)
            if sum(found) < math.inf:
                return [MARGIN * each for each in found], end
            self.width = 0.5 * self.width if self.width < math.inf else max(1.0, time)
            if self.width < LEAST_SHARE * time + LEAST:
                raise SimulationError(_unbounded(self.model, environment, time))

    def rests(self, environment: Mapping[str, float], time: float) -> bool:
        """Whether bounds that are 0 are so in a window without end."""
        return rests(self.model, environment, time)

    def chosen(self, environment: Mapping[str, float], begin: float, time: float, point: float) -> Transition | None:
        """The transition under `point` when the rates at `time` are laid end to end; None where it is rejected.

        `point` is infinite where no candidate came in the window that began at `begin`.
        """
        here = {**environment, CLOCK: time}
        rates = [_rate(each, here, self.model, time) for each in self.model.transitions]
        fires = _under(self.model.transitions, rates, point)
        if point < math.inf:
            self.quiet = 0
            if fires is None:
                shorter = max(2.0 * (time - begin), SHORTEST * (1.0 + time))
                self.width = 0.5 * self.width if self.width < math.inf else shorter
        elif time >= begin + self.width:  # and nothing else ended it
            self.quiet += 1
            self.width = 2.0 * self.width if self.quiet < MOST_QUIET else math.inf
        return fires


def bounds(model: Model, environment: Mapping[str, float], time: float, end: float) -> list[float]:
    """An upper bound on every rate in [time, end) while the state stays as it is; infinite or NaN if none is found."""
    window = {**environment, CLOCK: time, END: end}
    found = []
    for transition, hull in zip(model.transitions, hulls_of(model), strict=True):
        if hull is not None:
            found.append(float(hull.evaluate(window)))
        elif transition.guard is None or transition.guard.evaluate(window):
            found.append(float(transition.rate.evaluate(window)))
        else:
            found.append(0.0)
    return found


def rests(model: Model, environment: Mapping[str, float], time: float) -> bool:
    """Whether no reaction can happen from `time` on, whatever the clock shows, in the state of the environment."""
    return all(bound == 0.0 for bound in bounds(model, environment, time, math.inf))


def wrong_rate(model: Model, environment: Mapping[str, float], time: float) -> str:
    """Which rate is negative, infinite, undefined or without a bound at a time or just before; empty if none is."""
    for moment in (time, math.nextafter(time, -math.inf)):
        for each in model.transitions:
            try:
                _rate(each, {**environment, CLOCK: moment}, model, moment)
            except SimulationError as error:
                return str(error)
    return _unbounded(model, environment, time)


def _unbounded(model: Model, environment: Mapping[str, float], time: float) -> str:
    """Which rate has no bound just after a time, as an error says it; empty if all have one."""
    found = bounds(model, environment, time, time + LEAST_SHARE * time + LEAST)
    for each, bound in zip(model.transitions, found, strict=True):
        if not bound < math.inf:
            state = values_text({name: environment[name] for name in model.species})
            return (
                f"the rate of {each.name} has no bound just after time {time:g}, where {state}: {each.rate}\n"
                "  it may grow beyond any number there, or be undefined; a condition can keep it from that: "
                "if(time > 1, a, b)"
            )
    return ""


def _under(transitions: Sequence[Transition], rates: Sequence[float], point: float) -> Transition | None:
    """The transition under `point` when the rates are laid end to end; None behind all of them."""
    for transition, rate in zip(transitions, rates, strict=True):
        if point < rate:
            return transition
        point -= rate
    return None


def _rate(transition: Transition, environment: Mapping[str, float], model: Model, time: float) -> float:
    if transition.guard is not None and not transition.guard.value(environment):
        return 0.0
    rate = float(transition.rate.value(environment))
    if not 0.0 <= rate < math.inf:
        state = values_text({name: environment[name] for name in model.species})
        raise SimulationError(
            f"the rate of {transition.name} is {rate:g} at time {time:g}, where {state}: {transition.rate}\n"
            "  a rate must be finite and not negative in every state that can be reached"
        )
    return rate
