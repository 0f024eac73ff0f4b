"""The source of thinning in a kernel: windows, bounds, and candidates that may be rejected. See `thinning.py`.

In the loop over lanes `far` is the end of the window, `c0`, `c1`, ... are the bounds of the rates, summed up, and `a0`,
`a1`, ... the rates at the candidate `tn`, summed up. Where no candidate comes, u is infinite, so that nothing fires. A
step in which nothing fires is idle: it is no event, and no cap counts it. A model without time in its rates has none of
this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sateen.engine.hull import END
from sateen.engine.lanes import LAST_TIME, Lanes
from sateen.engine.thinning import LEAST, LEAST_SHARE, MARGIN, MOST_QUIET, SHORTEST, breaks_of, hulls_of
from sateen.language.expression import Delayed, Expression, Name
from sateen.model.model import CLOCK


def ceilings(lanes: Lanes, say: Callable[[str], None]) -> None:
    """The window that begins at `t`, and the bounds of the rates in it, summed up."""
    hulls = hulls_of(lanes.model)
    steps = {name: f"b{place}" for place, name in enumerate(n for hull in hulls if hull for n, _ in hull.steps)}
    spelt = {CLOCK: "t", END: "far", **steps}

    def spell(leaf: Name | Delayed) -> str:
        return spelt.get(leaf.name) or lanes.local(leaf)

    # Careful in every kernel: an end that is no number must stay none.
    within = replace(lanes.as_spelt(spell, frozenset(spelt), careful=True), fixed=lanes.loaded)
    say(f"      t = {lanes.slot('t')}")
    say(f"      width = {lanes.slot('width')}")
    say("      far = t + width")
    for place, side in enumerate(breaks_of(lanes.model)):
        say(f"      mark{place} = {within.source(side)}")
        say(f"      far = mark{place} if (mark{place} > t) & (mark{place} < far) else far")
    for j, (transition, hull) in enumerate(zip(lanes.model.transitions, hulls, strict=True)):
        if hull is None:
            bound = rate_source(lanes, j, transition.rate, transition.guard)
        else:
            for name, step in hull.steps:
                say(f"      {spelt[name]} = {within.source(step)}")
            bound = within.source(hull.high)
        say(f"      h{j} = {bound}")
        say(f"      c{j} = h{j}" + (f" + c{j - 1}" if j else ""))


def rate_source(lanes: Lanes, j: int, rate: Expression, guard: Expression | None) -> str:
    """A rate as it is in the state of the lane, at the time `tn`."""
    source = lanes.rates.source(rate)
    return source if guard is None else f"({source} if {lanes.moving.source(guard)} else 0.0)"


def candidate(lanes: Lanes, total: str, say: Callable[[str], None]) -> None:
    """The next candidate at `tn`, or the window's end; with a total of 0 in a window without end, nothing for ever."""
    say(f"      bounded = {total} < inf")  # what is no number is not
    say(f"      tn = t + wait / abs({total} * {MARGIN!r}) if bounded else t")
    say("      tn = far if (tn >= far) & bounded else tn")
    if lanes.logs and lanes.endless:
        say(f"      tn = {LAST_TIME!r} if (tn > {LAST_TIME!r}) & ({total} != 0.0) else tn")


def decision(lanes: Lanes, total: str, say: Callable[[str], None]) -> None:
    """Where the pick falls among the rates at `tn`, whether one fires, and how long the next window is."""
    for j, (transition, hull) in enumerate(zip(lanes.model.transitions, hulls_of(lanes.model), strict=True)):
        rate = f"h{j}" if hull is None else rate_source(lanes, j, transition.rate, transition.guard)
        say(f"      r{j} = {rate}")
        say(f"      a{j} = r{j}" + (f" + a{j - 1}" if j else ""))
    last = f"a{len(lanes.model.transitions) - 1}"
    rung = " & (rung == 0.0)" if lanes.model.events else ""
    say("      came = bounded & (tn < far)" + rung)
    say(f"      u = pick * ({total} * {MARGIN!r}) if came else inf")
    say(f"      fires = 1.0 if u < {last} else 0.0")
    quiet = lanes.slot("quiet")
    say(f"      late = (tn >= t + width){rung}")
    say(f"      still = 0.0 if came else ({quiet} + 1.0 if late else {quiet})")
    say(f"      {quiet} = still")
    say(f"      wide = 2.0 * width if still < {float(MOST_QUIET)!r} else inf")
    say(f"      idle = max(2.0 * (tn - t), {SHORTEST!r} * (1.0 + tn)) if width == inf else 0.5 * width")
    say("      less = max(t, 1.0) if width == inf else 0.5 * width")
    say("      wider = wide if late else width")
    say("      wider = idle if came & (fires == 0.0) else wider")
    say(f"      {lanes.slot('width')} = wider if bounded else less")
    say(f"      {lanes.slot('idle')} = {lanes.slot('idle')} + {lanes.slot('skip')}")
    say(f"      {lanes.slot('skip')} = 1.0 - fires" + (" if rung == 0.0 else 0.0" if rung else ""))


def doubts(lanes: Lanes, total: str) -> list[str]:
    """When a rate is no such thing at a time that matters, or has no bound."""
    matters = ["(tn <= T)"]
    latest = max(lanes.horizons, default=math.inf)
    matters += [f"(tn <= {lanes.constant(latest, 'latest')})"] if math.isfinite(latest) else []
    matters += ["(rung == 0.0)"] if lanes.model.events else []
    found = [f"(h{j} < 0.0)" for j in lanes.doubted_rates]
    wrong = [f"(r{j} < 0.0)" for j in lanes.doubted_rates] + [f"(not (a{len(lanes.model.transitions) - 1} < inf))"]
    found.append(f"(({' | '.join(wrong)}) & {' & '.join(matters)})")
    found.append(f"((not ({total} < inf)) & (width < {LEAST_SHARE!r} * t + {LEAST!r}))")
    return found


def loads(lanes: Lanes) -> list[str]:
    """What the loop reads of the parts that no event changes, once everything is written that reads them."""
    return [f"      p{part[1:]} = {lanes.slot(part)}" for part in lanes.fixed_parts]
