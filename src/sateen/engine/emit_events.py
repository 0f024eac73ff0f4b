"""The source of events in a kernel. A model without events has none of it.

In the loop over lanes the next threshold of the clock caps the waiting time, and the triggers are looked at after every
jump. What then happens is rare, and is left to the scalar function `settle`, which makes the rounds of an instant. What
each trigger said last has a slot in the lane, and so has whether a round went wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from sateen.engine.events import MOST_ROUNDS, TINY
from sateen.engine.lanes import LANES, Lanes
from sateen.engine.rates import Moving
from sateen.language.expression import Delayed, Expression, Name, Spelling
from sateen.model.model import CLOCK, Variable

__all__ = ["capped_wait", "event_tail", "first_events", "ringing", "settle_source"]


def capped_wait(lanes: Lanes, say: Callable[[str], None]) -> None:
    """The jump at `tn`, or the threshold of the clock that comes before it: then `rung` is 1, and nothing jumps."""
    tau = "inf"
    sides = dict.fromkeys(side for event in lanes.model.events for side in event.thresholds)
    for index, side in enumerate(sides):
        say(f"      edge{index} = {lanes.moving.source(side)}")
        say(f"      tau{index} = edge{index} if (edge{index} > t) & (edge{index} < {tau}) else {tau}")
        tau = f"tau{index}"
    say(f"      rung = 1.0 if ({tau} <= tn) & ({tau} < inf) else 0.0")
    say(f"      tn = {tau} if rung > 0.0 else tn")


def ringing(lanes: Lanes, say: Callable[[str], None]) -> None:
    """Whether a lane must be looked at: 2 if the clock passes a threshold, 1 if a jump makes a trigger true."""
    ring = "2.0 * rung"
    for index, event in enumerate(lanes.model.events):
        held = lanes.slot(f"H{index}")
        say(f"      said{index} = 1.0 if {_trigger(lanes, event.trigger, lanes.after, 'tn')} else 0.0")
        say(f"      ring{index} = max({ring}, said{index} - {held})")
        say(f"      {held} = min(said{index}, {held})")
        ring = f"ring{index}"
    say(f"      ring = {ring} if (tn < inf) & ({lanes.slot('act')} != 0.0) & ({lanes.slot('bad')} == 0.0) else 0.0")
    say(f"      {lanes.slot('ring')} = ring")
    say("      nr += 1 if ring > 0.0 else 0")


def event_tail(lanes: Lanes) -> list[str]:
    """The rounds of the lanes that rang; then their logs see the state after all of them, and nothing between."""
    time = lanes.slot("t")
    lines = [f"settle(F, l, {time}, {lanes.slot('ring')} == 2.0{_reporting(lanes)})"]
    if lanes.logs:
        changed = [
            f"{lanes.slot('X_' + name)} != book[l, size[l] - 1, {2 + k}]" for k, name in enumerate(lanes.columns)
        ]
        if lanes.logged.conditions:
            lines.append(f"{lanes.slot('bits')} = {lanes.bits_source(_slots(lanes))}")
            changed.append(f"{lanes.slot('bits')} != book[l, size[l] - 1, 1]")
        if lanes.record:
            changed += [f"{lanes.slot('ring')} == 1.0", f"{lanes.slot('wrong')} != 0.0"]
        within = " and ".join(lanes.within_log(time))
        lines += [
            f"news = 1.0 if ({' or '.join(changed)}) and {within} else 0.0",
            f"ng += int(news - {lanes.slot('news')})",
            f"{lanes.slot('news')} = news",
        ]
    rings = [
        "    if nr > 0:",
        f"      for l in range({LANES}):",
        f"        if {lanes.slot('ring')} != 0.0:",
    ]
    return [*rings, *("          " + line for line in lines)]


def first_events(lanes: Lanes) -> list[str]:
    """What happens at time 0 in a lane that has just been filled."""
    held = [f"{lanes.slot(f'H{i}')} = {float(event.initially)!r}" for i, event in enumerate(lanes.model.events)]
    return [*held, f"{lanes.slot('wrong')} = 0.0", f"settle(F, l, 0.0, np.bool_(True){_reporting(lanes)})"]


def settle_source(lanes: Lanes) -> list[str]:
    """The function `settle`: the rounds at time `t` in lane `l`; of the clock's two sides if it is `passing` one.

    A round that goes wrong is not made: the lane keeps the state before it, and a record keeps which events fire.
    """
    events = lanes.model.events
    lines = [
        "",
        "@njit(**OPTIONS)",
        f"def settle(F, l, t, passing{_reporting(lanes)}):",
        "  for side in range(2 if passing else 1):",
        f"    clock = max(np.nextafter(t, inf), {TINY!r}) if side else t",
        f"    for rounds in range({MOST_ROUNDS + 1}):",
    ]
    # Names are given once, and branches are few: the compiler's time grows with either faster than with the events.
    for index, event in enumerate(events):
        held = lanes.slot(f"H{index}")
        lines += [
            f"      said{index} = {_trigger(lanes, event.trigger, _slots(lanes), 'clock')}",
            f"      fires{index} = bool(said{index}) & ({held} == 0.0)",
            f"      {held} = 1.0 if said{index} else 0.0",
        ]
    lines += [f"      if not ({' | '.join(f'fires{index}' for index in range(len(events)))}):", "        break"]
    wrong, assigned = [f"(rounds == {MOST_ROUNDS})"], []
    for index, event in enumerate(events):
        for place, (target, expression) in enumerate(event.update):
            value, slot = f"value{index}_{place}", lanes.slot("X_" + target)
            lines.append(f"      {value} = 0.0 + {lanes.atom_source(expression, _slots(lanes))}")
            wrong.append(f"(fires{index} & (not ({_allowed(lanes.variable(target), value)})))")
            assigned.append(f"      {slot} = {value} if fires{index} else {slot}")
    lines += [f"      if {' | '.join(wrong)}:", f"        {lanes.slot('wrong')} = 1.0"]
    if lanes.record:
        lines += [f"        fault[{2 + index}] = 1 if fires{index} else 0" for index in range(len(events))]
    return [*lines, "        return", *assigned]


def _reporting(lanes: Lanes) -> str:
    return ", fault" if lanes.record else ""


def _slots(lanes: Lanes) -> Spelling:
    """The counts of a lane as the tail spells them."""
    return lambda leaf: lanes.slot(f"X_{leaf.name}")


def _trigger(lanes: Lanes, trigger: Expression, spell: Spelling, clock: str) -> str:
    def with_clock(leaf: Name | Delayed) -> str:
        return clock if leaf.name == CLOCK else spell(leaf)

    return Moving(lanes.counts | {CLOCK}, with_clock, lanes.fixed).source(trigger)


def _allowed(variable: Variable, value: str) -> str:
    """Whether a variable can have a value; written so that what is no number fails."""
    allowed = [f"({value} - {value} == 0.0)"]
    if variable.whole:
        allowed.append(f"(floor({value}) == {value})")
    allowed += [] if variable.low is None else [f"({value} >= {float(variable.low)!r})"]
    allowed += [] if variable.high is None else [f"({value} <= {float(variable.high)!r})"]
    return " & ".join(allowed)
