"""The source that decides `left` U[a, b] (right & G[c, d] held) while the events pass.

Where `held` lasts without a break, only the earliest time s at which the rest is satisfied counts: what begins later
ends later. So a lane remembers, of the present stretch of `held`, one number: its *goal* s + d, which is -1 while there
is no such s. The operator is true once a stretch goes on beyond its goal. Without `right`, a stretch that begins at t
has s = max(a, t - c); with it c is 0, and s is the first time from a on at which `right` holds as well.

`latest` is b at first. Where `left` fails for the first time, at t, it becomes min(b, t). Once there is no goal, and
times up to latest + c are known, the operator is false. These are the verdicts of the algebra on what is known: a
condition after tn may be true or false.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sateen.engine.lanes import Lanes
from sateen.engine.questions import Operator, decimal_sum
from sateen.language.expression import Boolean


def stretch_verdict(
    lanes: Lanes, index: int, operator: Operator, absorbed: str, say: Callable[[str], None]
) -> tuple[str, str]:
    """When the segment [t, tn) makes an operator true, and else false; keeps what must be remembered."""
    assert operator.window is not None
    assert operator.lasting is not None
    lasting = operator.lasting
    (a, b), (c, d) = ((window.low, window.high) for window in (operator.window, lasting.window))
    latest, last_known = "", ""
    if operator.left is None:
        last_known = lanes.constant(decimal_sum(b, c), "known", index)
    else:
        latest, place = f"latest{index}", lanes.slot(f"B{index}")
        say(f"      {latest} = {place} if {lanes.asked.source(operator.left)} else min({place}, t)")
        say(f"      {place} = {latest}")
        last_known = f"({latest} + {lanes.constant(c, 'opening', index)})" if c > 0 else latest
    opens = [f"(t <= {last_known})"] if operator.left is not None or math.isfinite(b) else []
    if operator.right != Boolean(True):
        opens += [lanes.asked.source(operator.right), *([f"(tn > {lanes.begin(index)})"] if a > 0 else [])]
    reached = f"t + {lanes.constant(decimal_sum(d, -c), 'lasting', index)}"
    reached = f"max({reached}, {lanes.constant(decimal_sum(a, d), 'first', index)})" if a > 0 or c > 0 else reached
    reached = f"min({reached}, {lanes.constant(lasting.end, 'last', index)})" if math.isfinite(lasting.end) else reached
    goal, place = f"goal{index}", lanes.slot(f"G{index}")
    begun = f"({reached} if {' & '.join(opens)} else -1.0)" if opens else f"({reached})"
    say(f"      {goal} = {place} if {place} >= 0.0 else {begun}")
    say(f"      {goal} = {goal} if {lanes.asked.source(lasting.held)} else -1.0")
    say(f"      {place} = {goal}")
    passed = f"(tn > {goal})" if math.isfinite(min(d, lasting.end)) else absorbed
    known = [absorbed] if math.isinf(b) else []
    known += [f"(tn > {last_known})"] if operator.left is not None or math.isfinite(b) else []
    hit, miss = f"(({goal} >= 0.0) & {passed})", f"(({goal} < 0.0) & ({' | '.join(known)}))"
    if operator.left is not None and a > 0:  # what failed too early may have a goal
        begin = lanes.begin(index)
        return f"({hit} & ({latest} >= {begin}))", f"({miss} | ({latest} < {begin}))"
    return hit, miss


def stretch_fill(lanes: Lanes) -> list[str]:
    """What a fresh lane remembers."""
    lines = []
    for index, operator in enumerate(lanes.operators):
        if operator.lasting is not None and operator.window is not None:
            lines.append(f"{lanes.slot(f'G{index}')} = -1.0")
            if operator.left is not None:
                lines.append(f"{lanes.slot(f'B{index}')} = {lanes.constant(operator.window.high, 'end', index)}")
    return lines
