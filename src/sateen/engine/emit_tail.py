"""The source of what is rare in a kernel: events, logging, judging lanes that stopped, and filling free ones.

In the loop over lanes the next threshold of the clock caps the waiting time, and the triggers are looked at after every
jump. What then happens is left to the scalar function `settle`, which makes the rounds of an instant. What each trigger
said last has a slot in the lane, and so has whether a round went wrong. A model without events has none of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from sateen.engine.emit_delay import ring_fill
from sateen.engine.emit_stretch import stretch_fill
from sateen.engine.events import MOST_ROUNDS, TINY
from sateen.engine.lanes import LANES, Lanes
from sateen.language.expression import LARGEST_WHOLE, Delayed, Expression, Name, Spelling, is_condition
from sateen.model.model import CLOCK, Variable

# An early verdict is looked for when it costs little beside the events since the last look.
_LEAST_EVENTS: Final = 250
_EVENTS_AN_ENTRY: Final = 48


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


def settle_source(lanes: Lanes) -> list[str]:
    """The function `settle`: the rounds at time `t` in lane `l`; of the clock's two sides if it is `passing` one.

    A round that goes wrong is not made: the lane keeps the state before it, and a record keeps which events fire.
    """
    events = lanes.model.events
    lines = [
        "",
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
            lines.append(f"      {value} = 0.0 + {lanes.as_spelt(_slots(lanes)).source(expression)}")
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

    return lanes.as_spelt(with_clock, frozenset({CLOCK})).source(trigger)


def _allowed(variable: Variable, value: str) -> str:
    """Whether a variable can have a value; written so that what is no number fails."""
    allowed = [f"({value} - {value} == 0.0)"]
    if variable.whole:
        allowed += [f"(floor({value}) == {value})", f"(abs({value}) < {float(LARGEST_WHOLE)!r})"]
    allowed += [] if variable.low is None else [f"({value} >= {float(variable.low)!r})"]
    allowed += [] if variable.high is None else [f"({value} <= {float(variable.high)!r})"]
    return " & ".join(allowed)


def news(lanes: Lanes, say: Callable[[str], None]) -> None:
    """Whether the jump at `tn` changes anything that the log keeps."""
    within = lanes.within_log("tn")
    within.append(f"({lanes.slot('act')} != 0.0)")
    changed = []
    if lanes.record:
        changed.append("(fires > 0.0)" if lanes.timed else "True")
    elif lanes.logged.conditions:
        say(f"      bits = {lanes.bits_source(lanes.after)}")
        changed.append(f"(bits != {lanes.slot('bits')})")
    if not lanes.record:
        columns = [Name(name) for name in lanes.columns if lanes.jumps(name)]
        changed += [f"({lanes.after(name)} != {lanes.local(name)})" for name in columns]
    if lanes.checks:
        within.append(f"({lanes.slot('bad')} == 0.0)")
    say(f"      news = 1.0 if ({' | '.join(changed) or 'False'}) & {' & '.join(within)} else 0.0")
    say(f"      {lanes.slot('news')} = news")
    if lanes.logged.conditions:
        say(f"      {lanes.slot('bits')} = bits")
    say("      ng += 1 if news > 0.0 else 0")


def log_tail(lanes: Lanes) -> list[str]:
    """Adds the jumps that matter to the logs, which grow as they must."""
    lines = [
        "    if ng > 0:",
        f"      for l in range({LANES}):",
        f"        if {lanes.slot('news')} != 0.0:",
        "          if size[l] == room:",
        *(["            return 3"] if lanes.record else _growth(lanes)),
    ]
    # Every state lasts, if only for as long as a double can tell: else a log would not show it.
    lines += [
        f"          moment = {lanes.slot('t')}",
        "          if moment <= book[l, size[l] - 1, 0]:",
        f"            moment = max(np.nextafter(book[l, size[l] - 1, 0], inf), {TINY!r})",
    ]
    lines += ["          " + line for line in _entry(lanes, "moment")]
    return [*lines, "          ng -= 1", "          if ng == 0:", "            break"]


def _growth(lanes: Lanes) -> list[str]:
    return [
        "            room *= 2",
        f"            grown = np.empty(({LANES}, room, {2 + len(lanes.columns)}))",
        f"            for lane in range({LANES}):",
        "              for entry in range(room // 2):",
        f"                for column in range({2 + len(lanes.columns)}):",
        "                  grown[lane, entry, column] = book[lane, entry, column]",
        "            book = grown",
        "            places = np.empty(room, int)",
        f"            sets = np.empty({sets_shape(lanes)}, int)",
    ]


def watch_tail(lanes: Lanes) -> list[str]:
    """Keeps the watched values of the lanes whose clocks passed a time that is asked for; the last such time is inf."""
    return [
        "    if nw > 0:",
        f"      for l in range({LANES}):",
        f"        if {lanes.slot('t')} > {lanes.slot('ask')}:",
        f"          while times[seen[l]] < {lanes.slot('t')}:",
        *(f"            states[place[l] + {k}] = {lanes.slot('P_' + name)}" for k, name in enumerate(lanes.watched)),
        f"            place[l] += {len(lanes.watched)}",
        "            seen[l] += 1",
        f"          {lanes.slot('ask')} = times[seen[l]]",
    ]


def _entry(lanes: Lanes, time: str) -> list[str]:
    """One entry of a lane's log: a time, the bits, the counts."""
    lines = [f"book[l, size[l], 0] = {time}"]
    if lanes.logged.conditions:
        lines.append(f"book[l, size[l], 1] = {lanes.slot('bits')}")
    lines += [f"book[l, size[l], {2 + k}] = {lanes.slot('X_' + name)}" for k, name in enumerate(lanes.columns)]
    return [*lines, "size[l] += 1"]


def sets_shape(lanes: Lanes) -> str:
    """The registers of the algebra, and how many switches each must hold."""
    return f"({max(lanes.logged.registers, 1)}, {lanes.logged.room_factor} * room + {lanes.logged.room_extra})"


def tail(lanes: Lanes) -> list[str]:
    """What happens between the loops over lanes: those that stopped, or are due, are judged and filled again."""
    act, stop = lanes.slot("act"), lanes.slot("stop")
    lines = [
        "  while True:",
        "    if nd > 0 or it >= wake:",
        "      due_now = it >= wake",
        f"      for l in range({LANES}):",
        f"        if {stop} != 0.0 or (due_now and it >= due[l]):",
        f"          if {act} == 1.0:",
    ]
    lines += ["            " + line for line in _judge(lanes)]
    lines.append(f"          if {act} == 0.0 and item < items.shape[0]:")
    lines += ["            " + line for line in _fill(lanes)]
    lines += [
        f"          {stop} = 0.0",
        "      if due_now:",
        "        wake = FAR",
        f"        for l in range({LANES}):",
        f"          if {act} == 1.0:",
        "            wake = min(wake, due[l])",
        "      if live == 0:",
        "        break",
    ]
    return lines


def _judge(lanes: Lanes) -> list[str]:
    """What happens to a lane that stopped, or that it is time to look at."""
    lines = ["fired = it - start[l]", f"time = {lanes.slot('t')}"]
    if lanes.timed:
        lines[0] = f"fired = it - start[l] - int({lanes.slot('idle')} + {lanes.slot('skip')})"
    if lanes.checks:
        lines += [f"if {lanes.slot('bad')} != 0.0:", *("  " + line for line in _fault(lanes))]
    verdicts = [f"V{index}" for index in range(len(lanes.formulas))]
    lines.append(f"crowded = {lanes.slot('crowded')} != 0.0" if lanes.population else "crowded = False")
    if lanes.nested:
        horizon = lanes.constant(lanes.logged.horizon, "log")
        lines += [
            f"final = crowded or time > T or fired >= max_events or time > {horizon} or time == inf",
            f"worth = final or fired - looked[l] >= {_LEAST_EVENTS} + {_EVENTS_AN_ENTRY} * size[l]",
            "if worth:",
            "  looked[l] = fired",
        ]
    for order, index in enumerate(lanes.nested):
        place = lanes.slot(f"V{index}")
        lines += [
            f"if {place} == 0.0 and worth:",
            f"  {place} = verdict_{order}(F, l, book[l], size[l], time, places, sets)",
            f"  if {place} == -2.0:",
            *("    " + line for line in _fault(lanes)),
        ]
    finished = " and ".join(f"{lanes.slot(name)} != 0.0" for name in verdicts) or "time == inf"
    lines += [
        f"finished = {finished}",
        "expired = time > T",
        "exhausted = fired >= max_events and not expired",
        "if finished or expired or exhausted or crowded:",
        "  reason = 2 if crowded else (1 if expired else 0)",
    ]
    for index, name in enumerate(verdicts):
        lines += [
            f"  if {lanes.slot(name)} > 0.0:",
            f"    satisfied[{index}, row[l]] += 1",
            f"  elif {lanes.slot(name)} == 0.0:",
            f"    undecided[{index}, reason, row[l]] += 1",
        ]
    if lanes.watched:  # what a run that was cut short would have come to is unknown
        lines += ["  while times[seen[l]] < inf:", "    seen[l] += 1"]
        lines += [f"    for k in range({len(lanes.watched)}):", "      states[place[l] + k] = np.nan"]
        lines += [f"    place[l] += {len(lanes.watched)}", f"  {lanes.slot('ask')} = inf"]
    last = f"fired - 1 + int({lanes.slot('skip')})" if lanes.timed else "fired - 1"
    lines += [f"  events += fired if exhausted else {last}", f"  {lanes.slot('act')} = 0.0", "  live -= 1"]
    if lanes.record:
        lines += ["  told[0] = time", "  told[1] = size[l]", "  return 1 if exhausted or crowded else 0"]
    if lanes.nested:
        lines += ["else:", *("  " + line for line in _look_again(lanes))]
    elif lanes.timed:
        lines += ["else:", f"  due[l] = {lanes.cap}"]
    return lines


def _look_again(lanes: Lanes) -> list[str]:
    """A lane goes on: when its nested formulas are looked at next."""
    settled = " and ".join(f"{lanes.slot(f'V{index}')} != 0.0" for index in lanes.nested)
    lines = [f"if {settled}:", f"  {lanes.slot('settled')} = 1.0", f"  {lanes.slot('look')} = inf"]
    lines += [f"  due[l] = {lanes.cap}", "else:"]
    if math.isinf(lanes.logged.horizon):
        lines.append(f"  due[l] = min({lanes.cap}, it + {'it - start[l]' if lanes.timed else 'fired'})")
    else:
        looks = [lanes.constant(look, "look", place) for place, look in enumerate(lanes.logged.looks())]
        lines.append(f"  {lanes.slot('look')} = {looks[-1]}")
        for look in reversed(looks[:-1]):
            lines += [f"  if time < {look}:", f"    {lanes.slot('look')} = {look}"]
        lines.append(f"  due[l] = {lanes.cap}")
    return lines


def _fault(lanes: Lanes) -> list[str]:
    """Says which run went wrong; a record of it tells where and why."""
    stop = ["told[0] = time", "told[1] = size[l]", "return 2"] if lanes.record else ["return -1"]
    return ["fault[0] = row[l]", "fault[1] = number[l]", *stop]


def _fill(lanes: Lanes) -> list[str]:
    """The next trajectory into a free lane."""
    lines = [
        "row[l] = item",
        "number[l] = items[item, 1] + done_runs",
        "z = mixed(mixed(mixed(seed) ^ U(items[item, 0])) ^ U(number[l]))",
    ]
    lines += [f"{lanes.slot('R_' + word)} = as_double(mixed(z + U({q})))" for q, word in enumerate("abcd")]
    for index in range(len(lanes.model.parameters)):
        lines.append(f"k{index} = theta[item, {index}]")
    for index, constant in enumerate(lanes.model.constants):
        lines.append(f"n{index} = {lanes.still(constant.value)}")
    for name in lanes.tracked:
        initial = lanes.still(lanes.variable(name).initial)
        initial = f"rint({initial})" if lanes.variable(name).whole else initial
        lines.append(f"{lanes.slot('X_' + name)} = {initial}")
    first = len(lines)
    lines += [f"{lanes.slot(f'H{i}')} = {float(event.initially)!r}" for i, event in enumerate(lanes.model.events)]
    if lanes.model.events:
        lines += [f"{lanes.slot('wrong')} = 0.0", f"settle(F, l, 0.0, True{_reporting(lanes)})"]
    if lanes.timed:
        lines += [f"{lanes.slot('width')} = inf", *(f"{lanes.slot(name)} = 0.0" for name in ("idle", "skip", "quiet"))]
    cleared = [f"S{index}" for index in range(len(lanes.operators))] if lanes.remembers else []
    cleared += [f"V{index}" for index in range(len(lanes.formulas))]
    lines += [f"{lanes.slot(name)} = 0.0" for name in ("t", *cleared)]
    lines += stretch_fill(lanes) + (ring_fill(lanes) if lanes.late else [])
    lines += [f"{lanes.slot('act')} = 1.0", "live += 1", "start[l] = it", "due[l] = it + max_events"]
    if lanes.logged.conditions:
        lines.append(f"{lanes.slot('bits')} = {lanes.bits_source(_slots(lanes))}")
    if lanes.watched:
        lines += ["seen[l] = 0", f"place[l] = begun * {len(lanes.watched)} * (times.shape[0] - 1)", "begun += 1"]
        lines.append(f"{lanes.slot('ask')} = times[0]")
    if lanes.logs:
        lines += ["size[l] = 0", *_entry(lanes, "0.0")]
    if lanes.nested:
        lines += [f"{lanes.slot('settled')} = 0.0", "looked[l] = 0"]
        if math.isinf(lanes.logged.horizon):
            lines += [f"{lanes.slot('look')} = inf", f"due[l] = it + min(max_events, {_LEAST_EVENTS})"]
            lines.append("wake = min(wake, due[l])")
        else:
            lines.append(f"{lanes.slot('look')} = {lanes.constant(lanes.logged.looks()[0], 'look', 0)}")
    lines[first:first] = _parts(lanes)  # when all that is read of them is known
    lines += ["done_runs += 1", "if done_runs == items[item, 2]:", "  item += 1", "  done_runs = 0"]
    return lines


def _parts(lanes: Lanes) -> list[str]:
    """What no event changes."""
    lines = []
    for part, expression in lanes.fixed_parts.items():
        source = lanes.still(expression)
        lines.append(f"{lanes.slot(part)} = {f'1.0 if {source} else 0.0' if is_condition(expression) else source}")
    return lines
