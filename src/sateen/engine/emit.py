"""The source of a kernel: many trajectories of one model in lockstep lanes, verdicts included.

The generated function `run` advances W lanes one event at a time in a loop that the compiler turns into vector
instructions: all that a lane knows stands in one flat array F, at `F[l + offset]`, so that nothing can overlap. What
is rare (a lane that ends, is filled again, or has something to log) is left to a scalar tail. A trajectory is fixed by
(seed, point, run) alone, whatever lane, chunk or thread it runs in.

Source is made from expression trees only; no text of a user's stands in it. The sums in `fused(...)` may be computed
without rounding their product first. All others are rounded as numpy does it: comparisons and the 0 of a difference
turn on the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Final

from sateen.engine.algebra import algebra_source
from sateen.engine.bounds import Unchecked
from sateen.engine.emit_clock import candidate, ceilings, decision, doubts, loads
from sateen.engine.emit_delay import ring_bounds, ring_functions, ring_head, ring_tail, surely, unsure
from sateen.engine.emit_stretch import stretch_verdict
from sateen.engine.emit_tail import (
    capped_wait,
    event_tail,
    log_tail,
    news,
    ringing,
    sets_shape,
    settle_source,
    tail,
    watch_tail,
)
from sateen.engine.lanes import LANES, LAST_TIME, Lanes
from sateen.engine.questions import Operator
from sateen.language.expression import LARGEST_WHOLE, Expression, Name
from sateen.logic.formula import Formula
from sateen.model.model import Model

REASONS: Final = ("max_events", "max_time", "max_population")  # why a run may stay undecided
_MOST_SOURCES: Final = 512  # that are remembered
_FEW: Final = 16  # conditions that are written in a row
FULL: Final = 3  # how a record ends that has no room for a state
ALGEBRA: Final = "# The algebra of logic/intervals.py follows."


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Generated source, what it does not check, and the time beyond which it cannot decide.

    Logs keep the species in `columns`. `numbers` are arguments, so that kernels that differ in them alone are one.
    """

    text: str
    unchecked: Unchecked
    last_time: float
    columns: tuple[str, ...]
    numbers: tuple[float, ...]


@lru_cache(maxsize=_MOST_SOURCES)
def kernel_source(
    model: Model,
    formulas: tuple[Formula, ...],
    *,
    checked: bool = False,
    population: bool = False,
    record: bool = False,
    watched: tuple[str, ...] = (),
) -> KernelSource:
    """The kernel of `model` that decides `formulas` on the same trajectories.

    `checked` tests all rates and counts at every event, even where their form is safe under most parameters;
    `population` stops at a count above `max_population`; `record` keeps every state of a single trajectory;
    `watched` keeps the values of these species at given times.
    """
    lanes = Lanes(model, formulas, checked, population, record, watched)
    # In this order: what each part mentions gets a slot, and the head needs to know how many there are.
    functions = algebra_source(lanes.logged, lanes.atom_source, lanes.constant)
    body = _vector(lanes)
    functions += settle_source(lanes) if model.events else []
    functions += ring_functions(lanes, _plain_segment) if lanes.late else []
    rare = tail(lanes)
    calls = [ALGEBRA] if lanes.nested else []
    text = "\n".join([*_PRELUDE, *functions, "", *_head(lanes), *rare, *body, "  return events", *calls, ""])
    return KernelSource(text, lanes.unchecked, lanes.logged.last_time, lanes.columns, tuple(lanes.numbers))


def _vector(lanes: Lanes) -> list[str]:
    events = bool(lanes.model.events)
    lines = ["    nd = 0", "    ng = 0", *(["    nr = 0"] if events else [])]
    lines += [*(["    nw = 0"] if lanes.watched else []), *(["    nq = 0"] if lanes.late else [])]
    lines.append(f"    for l in range({LANES}):")
    say, begin = lines.append, len(lines)
    for name in lanes.tracked:
        say(f"      {lanes.local(Name(name))} = {lanes.slot('X_' + name)}")
    last = _total(lanes)
    if lanes.timed:
        ceilings(lanes, say)
        say(_random(lanes))
        candidate(lanes, last, say)
    else:
        _rates(lanes, say)
        say(f"      t = {lanes.slot('t')}")
        say(_random(lanes))
        say(f"      tn = t + wait / abs({last})")  # which may be -0: where nothing can happen, the wait is infinite
        if (lanes.logs or lanes.late) and lanes.endless:
            say(f"      tn = {LAST_TIME!r} if (tn > {LAST_TIME!r}) & ({last} != 0.0) else tn")
    if events:
        capped_wait(lanes, say)
    if lanes.timed:
        decision(lanes, last, say)
    else:
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
        crowded = any_of([f"({lanes.local(Name(name))} > most)" for name in whole])
        say(f"      {lanes.slot('crowded')} = 1.0 if {crowded} else 0.0")
        done.append(f"({lanes.slot('crowded')} != 0.0)")
    say(f"      dn = 1.0 if {' | '.join(done)} else 0.0")
    say(f"      dn = dn * {lanes.slot('act')}")
    say(f"      {lanes.slot('stop')} = dn")
    say("      nd += 1 if dn > 0.0 else 0")
    if lanes.watched:
        # What lasts until tn, for the tail: after the moves nothing else remembers it.
        for name in lanes.watched:
            say(f"      {lanes.slot('P_' + name)} = {lanes.local(Name(name))}")
        say(f"      nw += 1 if tn > {lanes.slot('ask')} else 0")
    say(f"      {lanes.slot('t')} = tn")
    _moves(lanes, say)
    ring_bounds(lanes, say)
    if events:
        ringing(lanes, say)
    if lanes.logs:
        news(lanes, say)
    say("    it += 1")
    if lanes.timed:
        lines[begin:begin] = loads(lanes)
    if events:
        lines.extend(event_tail(lanes))
    if lanes.logs:
        lines.extend(log_tail(lanes))
    if lanes.watched:
        lines.extend(watch_tail(lanes))
    if lanes.late:
        decided = [f"{lanes.slot(f'V{i}')} != 0.0" for i, verdict in enumerate(lanes.verdicts) if verdict is not None]
        decided += [f"{lanes.slot('settled')} != 0.0"] if lanes.nested else []
        lines.extend(ring_tail(lanes, " and ".join(decided)))
    return lines


def _total(lanes: Lanes) -> str:
    """The summed rate, or a bound on it."""
    name = "c" if lanes.timed else "a"
    return f"{name}{len(lanes.model.transitions) - 1}" if lanes.model.transitions else "0.0"


def _rates(lanes: Lanes, say: Callable[[str], None]) -> None:
    for j, transition in enumerate(lanes.model.transitions):
        rate = lanes.rates.source(transition.rate)
        if transition.guard is not None:
            rate = f"({rate} if {lanes.moving.source(transition.guard)} else 0.0)"
        if lanes.checks and j in lanes.doubted_rates:
            say(f"      r{j} = {rate}")
        say(f"      a{j} = fused({rate} + a{j - 1})" if j else f"      a{j} = {rate}")


def _doubts(lanes: Lanes, total: str) -> str:
    """When a rate, a count or an atom is no such thing; an atom only as long as its formula is undecided."""
    found = [f"({lanes.slot('wrong')} != 0.0)"] if lanes.model.events else []
    if lanes.timed:
        found += doubts(lanes, total)
    elif lanes.doubted_rates:
        found += [*(f"(r{j} < 0.0)" for j in lanes.doubted_rates), f"(not ({total} < inf))"]
    for variable in lanes.doubted_counts:
        value = lanes.local(Name(variable.name))
        # Written so that NaN is doubted too.
        found += [] if variable.low is None else [f"(not ({value} >= {float(variable.low)!r}))"]
        found += [] if variable.high is None else [f"(not ({value} <= {float(variable.high)!r}))"]
        if variable.whole and lanes.may_be_broken(variable):
            found.append(f"(floor({value}) != {value})")
        if variable.whole and lanes.checked:
            found.append(f"(not (abs({value}) < {float(LARGEST_WHOLE)!r}))")
    for side, place in lanes.doubted_sides:
        source, horizon = lanes.asked.source(side), lanes.horizons[place]
        asked = [f"({source} != {source})"]
        asked += [] if math.isinf(horizon) else [f"(t <= {lanes.constant(horizon, 'horizon', place)})"]
        asked += [f"(w{place} == 0.0)"] if len(lanes.formulas) > 1 else []
        found.append(f"({' & '.join(asked)})")
    return any_of(found)


def any_of(conditions: Sequence[str]) -> str:
    """Source that is true where any of many conditions is; in halves, so that no expression nests too deeply."""
    if len(conditions) <= _FEW:
        return " | ".join(conditions) or "False"
    half = len(conditions) // 2
    return f"({any_of(conditions[:half])}) | ({any_of(conditions[half:])})"


def _verdicts(lanes: Lanes, say: Callable[[str], None]) -> list[str]:
    """The statuses and verdicts of the flat formulas; returns what ends a lane."""
    absorbed = f"((tn == inf) & ({_total(lanes)} == 0.0))"  # a wait may be too long for a double, too
    doubts = []
    for index, operator in enumerate(lanes.operators):
        if operator.lasting is not None:
            hit, miss = stretch_verdict(lanes, index, operator, absorbed, say)
        elif operator.delays:
            hit, miss = _plain_segment(lanes, operator, absorbed, partial(surely, lanes))
            say(f"      doubt{index} = {unsure(lanes, index, operator)}")
            doubts.append(f"doubt{index}")
            hit, miss = f"{hit} & (not doubt{index})", f"{miss} & (not doubt{index})"
        else:
            hit, miss = _plain_segment(lanes, operator, absorbed, lanes.asked.source)
        say(f"      s{index} = 1.0 if {hit} else (-1.0 if {miss} else 0.0)")
        if lanes.remembers:
            say(f"      s{index} = {lanes.slot(f'S{index}')} if {lanes.slot(f'S{index}')} != 0.0 else s{index}")
            say(f"      {lanes.slot(f'S{index}')} = s{index}")
    if doubts:
        # A mark is kept up only while a formula that needs it is undecided.
        open_ = [f"({lanes.slot(f'V{index}')} == 0.0)" for index, ring in enumerate(lanes.rings) if ring]
        asked = f"({' | '.join(doubts)}) & ({' | '.join(open_)}) & ({lanes.slot('act')} != 0.0)"
        say(f"      ask = 1.0 if {asked} else 0.0")
        say(f"      {lanes.slot('unsure')} = ask")
        say("      nq += 1 if ask > 0.0 else 0")
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


def _plain_segment(
    lanes: Lanes, operator: Operator, absorbed: str, source: Callable[[Expression], str]
) -> tuple[str, str]:
    """When the segment [t, tn) makes an operator true, and else false. Undecided means that t is within b."""
    right = source(operator.right)
    if operator.window is None:
        return f"({right})", "True"
    (low, high), place = (operator.window.low, operator.window.high), lanes.operators.index(operator)
    begin, end = lanes.begin(place) if low else "", lanes.constant(high, "end", place)
    hits = [right] if low == 0 else [right, f"(tn > {begin})"]
    misses = [absorbed if math.isinf(high) else f"(tn > {end})"]
    if operator.left is not None:
        left = source(operator.left)
        hits += [] if low == 0 else [f"({left} | (t >= {begin}))"]
        misses.append(f"(not {left})")
    return "(" + " & ".join(hits) + ")", "(" + " | ".join(misses) + ")"


def _moves(lanes: Lanes, say: Callable[[str], None]) -> None:
    """The next state: changes telescoped over the comparisons of u with the summed rates, no branch."""
    transitions = lanes.model.transitions
    for j in range(len(transitions) - (0 if lanes.timed else 1)):
        # Where a rate is no number nothing fires.
        say(f"      m{j} = 0.0 if u < a{j} else 1.0" if lanes.timed else f"      m{j} = 1.0 if u >= a{j} else 0.0")
    for name in lanes.tracked:
        value = lanes.local(Name(name))
        changes = [transition.change.get(name, 0) for transition in transitions]
        changes += [0] if lanes.timed else []  # behind all rates lies what is rejected
        steps = [(j, now - before) for j, (before, now) in enumerate(pairwise(changes)) if now != before]
        # Summed first, the changes stay exact also beside a count near 2^53. One statement for each keeps them shallow.
        moved, sums = value, f"d{value[1:]}"
        if steps or any(changes[:1]):
            say(f"      {sums} = {'0.0' if lanes.checked else value} + {float(changes[0])!r}")
            for j, step in steps:
                say(f"      {sums} = fused({sums} + {float(step)!r} * m{j})")
            moved = f"({value} + {sums})" if lanes.checked else sums
        for j, transition in enumerate(transitions):
            for assigned, expression in transition.update:
                if assigned == name:
                    chosen = f"(u < a{j})" + (f" & (u >= a{j - 1})" if j else "")
                    moved = f"({lanes.moving.source(expression)} if {chosen} else {moved})"
        if moved != value:
            moved = f"({value} if rung > 0.0 else {moved})" if lanes.model.events else moved
            say(f"      y{value[1:]} = {moved}")
            say(f"      {lanes.slot('X_' + name)} = y{value[1:]}")


def _head(lanes: Lanes) -> list[str]:
    asked = ", times: float[:], states: float[:]" if lanes.watched else ""
    asked += ", book: float[:, :, :], told: float[:]" if lanes.record else ""
    asked += ", numbers: float[:]"
    lines = [
        "def run(theta: float[:, :], items: int[:, :], seed: word, T: float, max_events: int, most: float, "
        f"satisfied: int[:, :], undecided: int[:, :, :], fault: int[:]{asked}):",
        f"  F = np.zeros({len(lanes.slots) * LANES})",
        f"  row = np.zeros({LANES}, int)",
        f"  number = np.zeros({LANES}, int)",
        f"  start = np.zeros({LANES}, int)",
        f"  due = np.zeros({LANES}, int)",
    ]
    if lanes.watched:
        lines += [f"  seen = np.zeros({LANES}, int)", f"  place = np.zeros({LANES}, int)", "  begun = 0"]
        lines += [f"  for l in range({LANES}):", f"    {lanes.slot('ask')} = inf"]
    if lanes.logs:
        lines += [
            f"  size = np.zeros({LANES}, int)",
            f"  looked = np.zeros({LANES}, int)",
            f"  room = {'book.shape[1]' if lanes.record else 256}",
        ]
    if lanes.nested:
        lines += [
            f"  book = np.empty(({LANES}, room, {2 + len(lanes.columns)}))",
            "  places = np.empty(room, int)",
            f"  sets = np.empty({sets_shape(lanes)}, int)",
        ]
    lines += ring_head(lanes) if lanes.late else []
    return [*lines, "  item = 0", "  done_runs = 0", "  it = 0", "  events = 0", "  live = 0", "  nd = 1", "  wake = 0"]


_PRELUDE: Final = (
    '"""A kernel that sateen generated."""',
    "FAR = 1 << 62",
    "",
    "def mixed(z):",
    '  """Splitmix64: a bijection of 64 bits that leaves no pattern; seeds the generators of lanes."""',
    "  z = z + U(0x9E3779B97F4A7C15)",
    "  z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)",
    "  z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)",
    "  return z ^ (z >> U(31))",
    "",
)

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


def _random(lanes: Lanes) -> str:
    """Source of `wait`, a standard exponential, and of `pick`, uniform on [0, 1): xoshiro256++, two steps.

    The uniform under the logarithm has an odd mantissa, so that it is never 1, and a total rate of 0 waits for ever.
    The polynomial is summed in pairs (Estrin's scheme): a short chain of operations, and no division.
    """
    load = "; ".join(f"{word} = as_bits({lanes.slot('R_' + word)})" for word in "abcd")
    store = "; ".join(f"{lanes.slot('R_' + word)} = as_double({word})" for word in "abcd")
    terms = [f"fused({low!r} + {high!r} * f)" for low, high in zip(_LOG[::2], _LOG[1::2], strict=True)]
    for power in ("f2", "f4", "f8"):
        terms = [f"fused({low} + {high} * {power})" for low, high in zip(terms[::2], terms[1::2], strict=True)]
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
        f"      wait = fused(-(f * {terms[0]}) - h * 0.6931471805599453)"
    )
