"""The source of a kernel: many trajectories of one model in lockstep lanes, verdicts included.

The generated function `run` advances W lanes one event at a time in a loop that the compiler turns into vector
instructions: all that a lane knows stands in one flat array F, at `F[l + offset]`, so that nothing can overlap. What
is rare (a lane that ends, is filled again, or has something to log) is left to a scalar tail. A trajectory is fixed by
(seed, point, run) alone, whatever lane, chunk or thread it runs in.

Source is made from expression trees only; no text of a user's stands in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from sateen.engine.algebra import algebra_source
from sateen.engine.bounds import Unchecked
from sateen.engine.emit_tail import capped_wait, event_tail, log_tail, ringing, sets_shape, settle_source, tail
from sateen.engine.events import TINY
from sateen.engine.lanes import LANES, Lanes
from sateen.engine.questions import Operator
from sateen.language.expression import LARGEST_WHOLE, Name
from sateen.logic import intervals
from sateen.logic.formula import Formula
from sateen.model.model import Model

_RESOLUTION: Final = 2.0**-52  # of a double
_LAST_TIME: Final = 1e307  # of the next jump, where there is one: an infinite time means that there is none
REASONS: Final = ("max_events", "max_time", "max_population")  # why a run may stay undecided
ALGEBRA: Final = "sateen_algebra"  # the name under which generated source finds the compiled algebra


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Generated source, what it does not check, and the time beyond which it cannot decide."""

    text: str
    unchecked: Unchecked
    last_time: float


@cache
def kernel_source(
    model: Model,
    formulas: tuple[Formula, ...],
    *,
    checked: bool = False,
    population: bool = False,
    record: bool = False,
) -> KernelSource:
    """The kernel of `model` that decides `formulas` on the same trajectories.

    `checked` tests all rates and counts at every event, even where their form is safe under most parameters;
    `population` stops at a count above `max_population`; `record` keeps every state of a single trajectory.
    """
    lanes = Lanes(model, formulas, checked, population, record)
    # In this order: what each part mentions gets a slot, and the head needs to know how many there are.
    functions = algebra_source(lanes.logged, lanes.atom_source)
    body = _vector(lanes)
    functions += settle_source(lanes) if model.events else []
    rare = tail(lanes)
    result = "np.empty((0, 0)), 0.0, 0" if record else "events"
    calls = [f"from {ALGEBRA} import {', '.join(intervals.__all__)}"] if lanes.nested else []
    options = _OPTIONS if lanes.contracts else _SAME_BITS
    text = "\n".join(
        [*_IMPORTS, options, *calls, *functions, "", *_head(lanes), *rare, *body, f"  return {result}", ""]
    )
    return KernelSource(text, lanes.unchecked, lanes.logged.last_time)


def _vector(lanes: Lanes) -> list[str]:
    events = bool(lanes.model.events)
    lines = ["    nd = 0", "    ng = 0", *(["    nr = 0"] if events else []), f"    for l in range({LANES}):"]
    say = lines.append
    for name in lanes.tracked:
        say(f"      {lanes.local(Name(name))} = {lanes.slot('X_' + name)}")
    _rates(lanes, say)
    last = f"a{len(lanes.model.transitions) - 1}" if lanes.model.transitions else "0.0"
    say(f"      t = {lanes.slot('t')}")
    say(_random(LANES))
    say(f"      wait = wait / {last} if {last} > 0.0 else inf")
    # Every state lasts, if only for as long as a double can tell: else it would not be seen.
    say(f"      least = t * {_RESOLUTION!r} + {TINY!r}")
    say("      tn = t + (wait if wait > least else least)")
    if lanes.endless:
        say(f"      tn = {_LAST_TIME!r} if (tn > {_LAST_TIME!r}) & ({last} > 0.0) else tn")
    if events:
        capped_wait(lanes, say)
    say(f"      u = pick * {last}")
    if len(lanes.formulas) > 1:
        for place in sorted({place for _, place in lanes.doubted_sides}):
            say(f"      w{place} = {lanes.slot(f'V{place}')}")
    done = _verdicts(lanes, say)
    if lanes.checks:
        say(f"      {lanes.slot('bad')} = 1.0 if {_doubts(lanes, last)} else 0.0")
        done.append(f"({lanes.slot('bad')} != 0.0)")
    if lanes.population:
        whole = [name for name in lanes.tracked if lanes.variable(name).whole]
        crowded = " | ".join(f"({lanes.local(Name(name))} > most)" for name in whole) or "False"
        say(f"      {lanes.slot('crowded')} = 1.0 if {crowded} else 0.0")
        done.append(f"({lanes.slot('crowded')} != 0.0)")
    say(f"      dn = 1.0 if {' | '.join(done)} else 0.0")
    say(f"      dn = dn * {lanes.slot('act')}")
    say(f"      {lanes.slot('stop')} = dn")
    say("      nd += 1 if dn > 0.0 else 0")
    say(f"      {lanes.slot('t')} = tn")
    _moves(lanes, say)
    if events:
        ringing(lanes, say)
    if lanes.logs:
        _news(lanes, say)
    say("    it += 1")
    if events:
        lines.extend(event_tail(lanes))
    if lanes.logs:
        lines.extend(log_tail(lanes))
    return lines


def _rates(lanes: Lanes, say: Callable[[str], None]) -> None:
    for j, transition in enumerate(lanes.model.transitions):
        rate = lanes.rates.source(transition.rate)
        if transition.guard is not None:
            rate = f"({rate} if {lanes.moving.source(transition.guard)} else 0.0)"
        if lanes.checks and j in lanes.doubted_rates:
            say(f"      r{j} = {rate}")
            rate = f"r{j}"
        say(f"      a{j} = {rate}" + (f" + a{j - 1}" if j else ""))


def _doubts(lanes: Lanes, total: str) -> str:
    """When a rate, a count or an atom is no such thing; an atom only as long as its formula is undecided."""
    doubts = [f"({lanes.slot('wrong')} != 0.0)"] if lanes.model.events else []
    doubts += [f"(r{j} < 0.0)" for j in lanes.doubted_rates]
    if lanes.doubted_rates:
        doubts.append(f"(not ({total} < inf))")
    for variable in lanes.doubted_counts:
        value = lanes.local(Name(variable.name))
        # Written so that NaN is doubted too.
        doubts += [] if variable.low is None else [f"(not ({value} >= {float(variable.low)!r}))"]
        doubts += [] if variable.high is None else [f"(not ({value} <= {float(variable.high)!r}))"]
        if variable.whole and lanes.may_be_broken(variable):
            doubts.append(f"(floor({value}) != {value})")
        if variable.whole and lanes.checked:
            doubts.append(f"(not (abs({value}) < {float(LARGEST_WHOLE)!r}))")
    for side, place in lanes.doubted_sides:
        source, horizon = lanes.moving.source(side), lanes.horizons[place]
        asked = [f"({source} != {source})"]
        asked += [] if math.isinf(horizon) else [f"(t <= {horizon!r})"]
        asked += [f"(w{place} == 0.0)"] if len(lanes.formulas) > 1 else []
        doubts.append(f"({' & '.join(asked)})")
    return " | ".join(doubts) or "False"


def _verdicts(lanes: Lanes, say: Callable[[str], None]) -> list[str]:
    """The statuses and verdicts of the flat formulas; returns what ends a lane."""
    for index, operator in enumerate(lanes.operators):
        hit, miss = _segment(lanes, operator)
        say(f"      s{index} = 1.0 if {hit} else (-1.0 if {miss} else 0.0)")
        if lanes.remembers:
            say(f"      s{index} = {lanes.slot(f'S{index}')} if {lanes.slot(f'S{index}')} != 0.0 else s{index}")
            say(f"      {lanes.slot(f'S{index}')} = s{index}")
    decided = []
    for index, verdict in enumerate(lanes.verdicts):
        if verdict is not None:
            say(f"      v{index} = {verdict}")
            say(f"      {lanes.slot(f'V{index}')} = v{index}")
            decided.append(f"(v{index} != 0.0)")
    ends = ["(tn > T)"] if lanes.formulas else ["(tn > T)", "(tn == inf)"]
    if lanes.logged.formulas:
        decided.append(f"({lanes.slot('settled')} != 0.0)")
        ends.append(f"(tn >= {lanes.slot('look')})")
    if decided:
        ends.append("(" + " & ".join(decided) + ")")
    return ends


def _segment(lanes: Lanes, operator: Operator) -> tuple[str, str]:
    """When the segment [t, tn) makes an operator true, and else false. Undecided means that t is within b."""
    right = lanes.moving.source(operator.right)
    if operator.window is None:
        return f"({right})", "True"
    low, high = operator.window.low, operator.window.high
    hits = [right] if low == 0 else [right, f"(tn > {low!r})"]
    misses = ["(tn == inf)" if math.isinf(high) else f"(tn > {high!r})"]
    if operator.left is not None:
        left = lanes.moving.source(operator.left)
        hits += [] if low == 0 else [f"({left} | (t >= {low!r}))"]
        misses.append(f"(not {left})")
    return "(" + " & ".join(hits) + ")", "(" + " | ".join(misses) + ")"


def _moves(lanes: Lanes, say: Callable[[str], None]) -> None:
    """The next state: changes telescoped over the comparisons of u with the summed rates, no branch."""
    transitions = lanes.model.transitions
    for j in range(len(transitions) - 1):
        say(f"      m{j} = 1.0 if u >= a{j} else 0.0")
    for name in lanes.tracked:
        value = lanes.local(Name(name))
        changes = [transition.change.get(name, 0) for transition in transitions]
        moved = f" + {float(changes[0])!r}" if any(changes[:1]) else ""
        for j in range(1, len(transitions)):
            if step := changes[j] - changes[j - 1]:
                times = "" if abs(step) == 1 else f"{float(abs(step))!r} * "
                moved += f" {'+' if step > 0 else '-'} {times}m{j - 1}"
        # Summed first, the changes stay exact also beside a count near 2^53.
        moved = f"{value} + (0.0{moved})" if moved and lanes.checked else value + moved
        for j, transition in enumerate(transitions):
            for assigned, expression in transition.update:
                if assigned == name:
                    chosen = f"(u < a{j})" + (f" & (u >= a{j - 1})" if j else "")
                    moved = f"({lanes.moving.source(expression)} if {chosen} else {moved})"
        if moved != value:
            moved = f"({value} if rung > 0.0 else {moved})" if lanes.model.events else moved
            say(f"      y{value[1:]} = {moved}")
            say(f"      {lanes.slot('X_' + name)} = y{value[1:]}")


def _news(lanes: Lanes, say: Callable[[str], None]) -> None:
    """Whether the jump at tn changes anything that the log keeps."""
    within = lanes.within_log("tn")
    within.append(f"({lanes.slot('act')} != 0.0)")
    changed = []
    if lanes.record:
        changed.append("True")
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


def _head(lanes: Lanes) -> list[str]:
    lines = [
        "@njit(**OPTIONS)",
        "def run(theta, items, seed, T, max_events, most, satisfied, undecided, fault):",
        # One aligned block for all lanes: how fast the loop runs must not depend on where the parts happen to lie.
        f"  block = np.zeros({(max(len(lanes.slots), 1) + 4) * LANES + 8})",
        "  first = (64 - block.ctypes.data % 64) % 64 // 8",
        f"  R = block[first : first + {4 * LANES}].view(np.uint64)",
        f"  F = block[first + {4 * LANES} :]",
        f"  row = np.zeros({LANES}, np.int64)",
        f"  number = np.zeros({LANES}, np.int64)",
        f"  start = np.zeros({LANES}, np.int64)",
        f"  due = np.zeros({LANES}, np.int64)",
    ]
    if lanes.logs:
        lines += [
            "  room = 256",
            f"  book = np.empty(({LANES}, room, {2 + len(lanes.columns)}))",
            f"  size = np.zeros({LANES}, np.int64)",
            f"  looked = np.zeros({LANES}, np.int64)",
            "  places = np.empty(room, np.int64)",
            f"  sets = np.empty({sets_shape(lanes)}, np.int64)",
        ]
    return [*lines, "  item = 0", "  done_runs = 0", "  it = 0", "  events = 0", "  live = 0", "  nd = 1", "  wake = 0"]


_IMPORTS: Final = [
    '"""A kernel that sateen generated; it may be deleted, and is then generated again."""',
    "import numpy as np",
    "from numba import njit",
    "from numpy import ceil, exp, floor, inf, log, maximum, minimum, rint, sqrt",
    "from sateen.engine.runtime import as_bits, as_double, mixed",
    "U = np.uint64",
    "FAR = 1 << 62",
]
_OPTIONS: Final = "OPTIONS = dict(nogil=True, error_model='numpy', fastmath={'contract', 'nsz'})"
# Products are rounded before they are summed, as numpy does it: where comparisons must not turn on the last bit.
_SAME_BITS: Final = _OPTIONS.replace("'contract', ", "")

# log(1 + f) = f q(f) for f in [sqrt(1/2) - 1, sqrt(2) - 1]: q interpolated at Chebyshev's points, relative error 8e-14.
_LOG: Final = (
    1.000000000000062,
    -0.500000000001198,
    0.3333333332698457,
    -0.2499999995085953,
    0.20000001045829344,
    -0.16666672812409963,
    0.14285651893509305,
    -0.12499653566468791,
    0.11112759669583894,
    -0.10010018946333504,
    0.09072809114387267,
    -0.08181441802079185,
    0.07699483716663819,
    -0.08244536646552593,
    0.07920345037583254,
    -0.03887367248535157,
)

_STEP: Final = (
    "      q = a + d; w = ((q << U(23)) | (q >> U(41))) + a; z = b << U(17)\n"
    "      c = c ^ a; d = d ^ b; b = b ^ c; a = a ^ d; c = c ^ z; d = (d << U(45)) | (d >> U(19))\n"
)


def _random(lanes: int) -> str:
    """Source of `wait`, a standard exponential, and of `pick`, uniform on [0, 1): xoshiro256++, two steps.

    The uniform under the logarithm has an odd mantissa, so that it is never 1, and a total rate of 0 waits for ever.
    The polynomial is summed in pairs (Estrin's scheme): a short chain of operations, and no division.
    """
    places = [f"R[l + {word * lanes}]" if word else "R[l]" for word in range(4)]
    load = "; ".join(f"{name} = {place}" for name, place in zip("abcd", places, strict=True))
    store = "; ".join(f"{place} = {name}" for name, place in zip("abcd", places, strict=True))
    terms = [f"({low!r} + {high!r} * f)" for low, high in zip(_LOG[::2], _LOG[1::2], strict=True)]
    for power in ("f2", "f4", "f8"):
        terms = [f"({low} + {high} * {power})" for low, high in zip(terms[::2], terms[1::2], strict=True)]
    return (
        f"      {load}\n"
        f"{_STEP}"
        "      e = 2.0 - as_double((w >> U(12)) | U(0x3FF0000000000001))\n"
        f"{_STEP}"
        "      pick = as_double((w >> U(12)) | U(0x3FF0000000000000)) - 1.0\n"
        f"      {store}\n"
        "      g = as_bits(e) - U(0x3FE6A09E667F3BCD)\n"
        "      h = as_double(((g + U(1024 << 52)) >> U(52)) | U(0x4330000000000000)) - 4503599627371520.0\n"
        "      f = as_double((g & U(0xFFFFFFFFFFFFF)) + U(0x3FE6A09E667F3BCD)) - 1.0\n"
        "      f2 = f * f; f4 = f2 * f2; f8 = f4 * f4\n"
        f"      wait = -(f * {terms[0]}) - h * 0.6931471805599453"
    )
