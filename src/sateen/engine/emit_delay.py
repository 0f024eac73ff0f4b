"""The source that decides atoms with delays while the events pass: `F[a,b] X - X(t-1) > 3`, without a log.

All lanes take their steps together, so one *ring* of rows keeps the past of all: a row for each step, with the time at
which each lane entered its state and the counts that the formulas read. A *mark* for each lane and lag tells the row
whose counts are read now. The ring grows where a lane's marks fall behind it; nothing is ever overwritten that is read.

While the present state lasts, what is delayed may jump. Few of these jumps matter. A lane keeps the least and the
largest value that each delayed count has had since its mark, and so can have from now on. If a condition is the same
for all between them, the loop over lanes takes the segment as a whole. Else the lane is *unsure*, and the scalar
function `resolve` takes the segment apart at the times at which anything jumps; and now and then it looks for the least
and the largest value anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sateen.engine.lanes import LANES, Lanes
from sateen.engine.questions import Operator
from sateen.language.expression import COMPARISONS, Delayed, Expression, Name, Operation
from sateen.logic.formula import delays_in

_ROWS: Final = 512  # of a ring at first; it is a power of 2
_STRIDE: Final = 16  # rows that are skipped at once, and the least number of rows between two looks for new bounds

Segment = Callable[[Lanes, Operator, str, Callable[[Expression], str]], tuple[str, str]]


def surely(lanes: Lanes, condition: Expression) -> str:
    """The source of a condition on the bounds of what is delayed: when it holds whatever the values between are."""
    return _truths(lanes, condition)[0]


def unsure(lanes: Lanes, index: int, operator: Operator) -> str:
    """When the segment [t, tn) must be taken apart for an operator."""
    doubts = []
    for condition in operator.conditions:
        sure, possible = _truths(lanes, condition)
        doubts += [f"({possible} & (not {sure}))"] if sure != possible else []
    asked = [f"({lanes.slot(f'S{index}')} == 0.0)", f"({' | '.join(doubts) or 'False'})"]
    if operator.window is not None and operator.window.low > 0 and not (operator.left and delays_in(operator.left)):
        asked.append(f"(tn > {lanes.begin(index)})")
    return " & ".join(asked)


def ring_head(lanes: Lanes) -> list[str]:
    """The ring, and where it must be looked at next."""
    width = _width(lanes)
    return [
        f"  mask = {_ROWS - 1}",
        f"  ring = np.zeros({_ROWS * width})",
        f"  marks = np.zeros({LANES * len(_lags(lanes))}, int)",
        f"  viewed = np.zeros({LANES}, int)",
        f"  full = {_ROWS}",
    ]


def ring_fill(lanes: Lanes) -> list[str]:
    """The first row of a fresh lane: before time 0 there is the initial value."""
    lines = [f"o = (it & mask) * {_width(lanes)} + l", "ring[o] = 0.0"]
    lines += [f"ring[o + {offset}] = {place}" for offset, place in _row(lanes)]
    lines += [f"marks[l + {k * LANES}] = it" for k in range(len(_lags(lanes)))]
    for k, leaf in enumerate(lanes.late):
        lines += [f"{lanes.slot(f'{side}{k}')} = {lanes.slot('X_' + leaf.name)}" for side in ("low", "high")]
    return [*lines, "viewed[l] = it"]


def ring_bounds(lanes: Lanes, say: Callable[[str], None]) -> None:
    """The least and the largest values with those of the next state."""
    for k, leaf in enumerate(lanes.late):
        for side, function in ((f"low{k}", "min"), (f"high{k}", "max")):
            say(f"      {lanes.slot(side)} = {function}({lanes.slot(side)}, {lanes.after(Name(leaf.name))})")


def ring_tail(lanes: Lanes, decided: str) -> list[str]:
    """After each step: a row more, and the segments of the lanes that are unsure."""
    width = _width(lanes)
    return [
        "    if it >= full:",
        *("      " + line for line in _widening(lanes)),
        f"    o = (it & mask) * {width}",
        f"    for l in range({LANES}):",
        f"      ring[o + l] = {lanes.slot('t')}",
        *(f"      ring[o + {offset} + l] = {place}" for offset, place in _row(lanes)),
        "    if nq > 0:",
        f"      for l in range({LANES}):",
        f"        if {lanes.slot('unsure')} != 0.0:",
        "          resolve(F, ring, marks, viewed, mask, it, l)",
        f"          if {lanes.slot('stop')} == 0.0 and {decided}:",
        f"            {lanes.slot('stop')} = 1.0",
        "            nd += 1",
    ]


def ring_functions(lanes: Lanes, segment: Segment) -> list[str]:
    """`resolve`, the segment before row `it` of lane `l` taken apart, and `oldest_row`, the first still read."""
    return ["", *_resolve(lanes, segment), "", *_oldest_row(lanes)]


def _resolve(lanes: Lanes, segment: Segment) -> list[str]:
    width, lags = _width(lanes), _lags(lanes)
    places = {name: LANES * (1 + column) for column, name in enumerate(_columns(lanes))}
    operators = [(index, each) for index, each in enumerate(lanes.operators) if each.delays]
    lines = [
        "def resolve(F, ring, marks, viewed, mask, it, l):",
        f"  o = ((it - 1) & mask) * {width} + l",
        "  t = ring[o]",
        *(f"  {lanes.local(Name(name))} = ring[o + {place}]" for name, place in places.items()),
        f"  end = ring[(it & mask) * {width} + l]",
        *_advance(lanes, "t", "  "),
        *(f"  s{index} = {lanes.slot(f'S{index}')}" for index in range(len(lanes.operators))),
        "  while True:",
        "    tn = end",
    ]
    for k, lag in enumerate(lags):
        lines += [f"    n{k} = {_time(lanes, f'q{k} + 1')} + {lanes.constant(lag, 'lag', k)} if q{k} + 1 < it else inf"]
        lines += [f"    tn = n{k} if n{k} < tn else tn"]
    for leaf in lanes.late:
        row = f"(q{lags.index(leaf.lag)} & mask) * {width} + l + {places[leaf.name]}"
        lines.append(f"    {lanes.local(leaf)} = ring[{row}]")
    for index, operator in operators:
        hit, miss = segment(lanes, operator, "(tn == inf)", lanes.asked.source)
        lines += [f"    if s{index} == 0.0:", f"      s{index} = 1.0 if {hit} else (-1.0 if {miss} else 0.0)"]
    lines += ["    if not tn < end:", "      break"]
    for k in range(len(lags)):
        lines.append(f"    q{k} += 1 if n{k} <= tn else 0")
    lines += ["    t = tn"]
    lines += [f"  {lanes.slot(f'S{index}')} = s{index}" for index, _ in operators]
    for index, verdict in enumerate(lanes.verdicts):
        if verdict is not None and lanes.formulas[index].delays:
            lines.append(f"  {lanes.slot(f'V{index}')} = {verdict}")
    lines += [f"  marks[l + {k * LANES}] = q{k}" for k in range(len(lags))]
    oldest = "q0" if len(lags) == 1 else f"min({', '.join(f'q{k}' for k in range(len(lags)))})"
    lines += [f"  if it - viewed[l] < max({_STRIDE}, (it - {oldest}) // 4):", "    return", "  viewed[l] = it"]
    for place, leaf in enumerate(lanes.late):
        at = f"ring[(row & mask) * {width} + l + {places[leaf.name]}]"
        lines += ["  row = it", f"  low = {at}", "  high = low", f"  for row in range(q{lags.index(leaf.lag)}, it):"]
        lines += [
            f"    value = {at}",
            "    low = value if value < low else low",
            "    high = value if value > high else high",
        ]
        lines += [f"  {lanes.slot(f'low{place}')} = low", f"  {lanes.slot(f'high{place}')} = high"]
    return lines


def _oldest_row(lanes: Lanes) -> list[str]:
    """All marks are moved to where they are read now."""
    lines = ["def oldest_row(F, ring, marks, mask, it):", "  oldest = it", f"  for l in range({LANES}):"]
    open_ = [f"{lanes.slot(f'V{i}')} == 0.0" for i, formula in enumerate(lanes.formulas) if lanes.rings[i]]
    lines += [f"    if {lanes.slot('act')} == 1.0 and ({' or '.join(open_)}):"]
    lines += [f"      t = {_time(lanes, 'it - 1')}", *_advance(lanes, "t", "      ")]
    for k in range(len(_lags(lanes))):
        lines += [f"      marks[l + {k * LANES}] = q{k}", f"      oldest = min(oldest, q{k})"]
    return [*lines, "  return oldest"]


def _widening(lanes: Lanes) -> list[str]:
    """If rows that are read fill half of the ring, it becomes larger."""
    width = _width(lanes)
    return [
        "oldest = oldest_row(F, ring, marks, mask, it)",
        "rows = mask + 1",
        "while 2 * (it - oldest) >= rows:",
        "  rows *= 2",
        "if rows > mask + 1:",
        f"  larger = np.zeros(rows * {width})",
        "  for old in range(oldest, it):",
        f"    for column in range({width}):",
        f"      larger[(old & (rows - 1)) * {width} + column] = ring[(old & mask) * {width} + column]",
        "  ring = larger",
        "  mask = rows - 1",
        "full = oldest + rows",
    ]


def _advance(lanes: Lanes, time: str, indent: str) -> Iterator[str]:
    """Moves the marks of a lane to the rows that are read at a time."""
    for k, lag in enumerate(_lags(lanes)):
        yield f"{indent}q{k} = marks[l + {k * LANES}]"
        for stride in (_STRIDE, 1):
            read_from = f"{_time(lanes, f'q{k} + {stride}')} + {lanes.constant(lag, 'lag', k)}"
            yield f"{indent}while q{k} + {stride} < it and {read_from} <= {time}:"
            yield f"{indent}  q{k} += {stride}"


def _lags(lanes: Lanes) -> list[float]:
    return list(dict.fromkeys(leaf.lag for leaf in lanes.late))


def _columns(lanes: Lanes) -> list[str]:
    """The species that operators with delays read, delayed or not."""
    read = {
        name for operator in lanes.operators if operator.delays for each in operator.conditions for name in each.names
    }
    return [name for name in lanes.model.species if name in read]


def _width(lanes: Lanes) -> int:
    return LANES * (1 + len(_columns(lanes)))


def _row(lanes: Lanes) -> list[tuple[int, str]]:
    """Where in a row each count stands, and where in the lane."""
    return [(LANES * (1 + column), lanes.slot("X_" + name)) for column, name in enumerate(_columns(lanes))]


def _time(lanes: Lanes, row: str) -> str:
    return f"ring[(({row}) & mask) * {_width(lanes)} + l]"


def _truths(lanes: Lanes, condition: Expression) -> tuple[str, str]:
    """The source of whether a condition surely holds, and whether it possibly does."""
    if not delays_in(condition):
        source = lanes.asked.source(condition)
        return source, source
    if not isinstance(condition, Operation):
        return "False", "True"
    if condition.symbol == "not":
        sure, possible = _truths(lanes, condition.operands[0])
        return f"(not {possible})", f"(not {sure})"
    if condition.symbol in ("and", "or"):
        sign = " & " if condition.symbol == "and" else " | "
        sures, possibles = zip(*(_truths(lanes, operand) for operand in condition.operands), strict=True)
        return f"({sign.join(sures)})", f"({sign.join(possibles)})"
    sides = [bounds for bounds in (_bounds(lanes, side) for side in condition.operands) if bounds is not None]
    if condition.symbol not in COMPARISONS or len(sides) != 2:
        return "False", "True"
    (a, b), (c, d) = sides
    match condition.symbol:
        case ">" | ">=":
            return f"({a} {condition.symbol} {d})", f"({b} {condition.symbol} {c})"
        case "<" | "<=":
            return f"({b} {condition.symbol} {c})", f"({a} {condition.symbol} {d})"
    same, meet = f"(({a} == {d}) & ({b} == {c}))", f"(({a} <= {d}) & ({c} <= {b}))"
    return (same, meet) if condition.symbol == "==" else (f"(not {meet})", f"(not {same})")


def _bounds(lanes: Lanes, side: Expression) -> tuple[str, str] | None:
    """The source of the least and the largest value of a side, if its form gives them; rounding keeps their order."""
    if not delays_in(side):
        source = lanes.asked.source(side)
        return source, source
    if isinstance(side, Delayed):
        place = lanes.late.index(side)
        return lanes.slot(f"low{place}"), lanes.slot(f"high{place}")
    parts = [_bounds(lanes, operand) for operand in side.children]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not isinstance(side, Operation):
        return None
    lows, highs = zip(*known, strict=True)
    match side.symbol:
        case "+":
            return f"({' + '.join(lows)})", f"({' + '.join(highs)})"
        case "-":
            return f"(-{highs[0]})", f"(-{lows[0]})"
        case "*" if len(known) == 2 and (lows[0] == highs[0] or lows[1] == highs[1]):
            one, other = f"({lows[0]} * {lows[1]})", f"({highs[0]} * {highs[1]})"
            return f"min({one}, {other})", f"max({one}, {other})"
        case "abs":
            return f"max(0.0, max({lows[0]}, -{highs[0]}))", f"max(-{lows[0]}, {highs[0]})"
    return None
