"""The source that decides nested and delayed formulas on a lane's log, by the compiled interval algebra.

The log of a lane has, for every segment at which something changed, its time, the truth of the conditions that the
formulas read (a bit each) and the values of the species that are read with a delay. Times become whole ticks of
10^-digits 2^-k, with k as large as 62 bits allow, and so equal instants are equal integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias

from sateen.core.errors import FormulaError
from sateen.engine.questions import core_form, earliest, state_condition, tick_digits
from sateen.language.expression import LARGEST_WHOLE, Delayed, Expression, Name, Operation, Spelling
from sateen.logic.formula import And, Atom, Eventually, Formula, Interval, Node, Not, Or, Truth, Until, delays_in

_MOST_CONDITIONS = 50  # bits of the log that a double holds exactly


class Logged:
    """The formulas that need a log, and what the log must hold for them."""

    def __init__(self, formulas: tuple[Formula, ...]) -> None:
        self.formulas = formulas
        self.roots = [core_form(formula.root) for formula in formulas]
        self.conditions: list[Expression] = []
        self.delayed: list[str] = []
        for root in self.roots:
            self._gather(root)
        if len(self.conditions) > _MOST_CONDITIONS:
            raise FormulaError(f"{len(self.conditions)} different conditions; the engine takes {_MOST_CONDITIONS}")
        self.registers, self.room_factor, self.room_extra = 1, 1, 2

    @cached_property
    def horizon(self) -> float:
        """The time up to which a path decides all of them."""
        return max((formula.horizon for formula in self.formulas), default=0.0)

    @cached_property
    def last_time(self) -> float:
        """The latest time that ticks can tell, where the horizon is infinite; runs go no further."""
        if math.isfinite(self.horizon) or not any(any(formula.measures) for formula in self.formulas):
            return math.inf  # nothing measures time, so only the order of events matters
        return 2.0**56 / 10.0 ** max(map(tick_digits, self.formulas))

    def looks(self) -> list[float]:
        """The times at which a run is looked at for an early verdict; the last is just after the horizon."""
        final = math.nextafter(self.horizon, math.inf)
        first = min(min(earliest(formula.root) for formula in self.formulas), self.horizon)
        between = [first + (self.horizon - first) * share for share in (0.25, 0.5, 0.75)]
        return [*sorted({look for look in between if 0 < look < self.horizon}), final]

    def _gather(self, node: Node) -> None:
        condition = state_condition(node)
        if condition is not None and not delays_in(condition):
            if not isinstance(node, Truth) and condition not in self.conditions:
                self.conditions.append(condition)
        elif isinstance(node, Atom):
            self.delayed += [name for name in node.comparison.names if name not in self.delayed]
        else:
            for child in node.children:
                self._gather(child)


AtomSource: TypeAlias = Callable[[Expression, Spelling], str]
Constant: TypeAlias = Callable[[float, object], str]  # a number of the formula, for one use


def algebra_source(logged: Logged, atom_source: AtomSource, constant: Constant) -> list[str]:
    """A function `verdict_i` for each formula: 1 true, -1 false, 0 unknown, -2 where an atom is undefined."""
    lines: list[str] = []
    for order, (formula, root) in enumerate(zip(logged.formulas, logged.roots, strict=True)):
        writer = _Writer(logged, formula, atom_source, constant)
        lines += writer.functions(order, root)
        logged.registers = max(logged.registers, len(writer.rooms))
        largest = zip((logged.room_factor, logged.room_extra), *writer.rooms, strict=True)
        logged.room_factor, logged.room_extra = map(max, largest)
    return lines


class _Writer:
    """Writes `holds_i`, the algebra of one formula, and `verdict_i`, which calls it.

    Every set has a register, and beside it a room (factor, extra): for n log entries, factor n + extra switches.
    """

    def __init__(self, logged: Logged, formula: Formula, atom_source: AtomSource, constant: Constant) -> None:
        self.logged = logged
        self.formula = formula
        self.atom_source = atom_source
        self._constant = constant
        self.digits = tick_digits(formula)
        self.body: list[str] = []
        self.raw: dict[Expression, int] = {}  # registers of atoms, before the unknown is filled in
        self.rooms: list[tuple[int, int]] = []  # of the registers
        self.reach = 0.0  # how far bounds and delays can carry an instant of the path

    def functions(self, order: int, root: Node) -> list[str]:
        """The source of both functions of the formula in this place."""
        register = self.node(root, True)
        horizon = self.formula.horizon
        call = f"holds_{order}(F, l, book, size, k, last, {{}}, {{}}, places, sets)"
        return [
            "",
            f"def holds_{order}(F, l, book, size, k, last, endless, hopeful, places, sets):",
            *self.body,
            f"  return 1 if contains(sets[{register}], n{register}, 0) else 0",
            "",
            f"def verdict_{order}(F, l, book, size, time, places, sets):",
            *self._ticks(),
            # A tick is coarser than a double near time 0; states that last less than a tick are seen all the same.
            "  known = 0",
            "  for i in range(size):",
            "    later = i > 0 and book[i, 0] > book[i - 1, 0]",
            "    places[i] = max(2 * int(book[i, 0] * scale), places[i - 1] + 2 if later else 0)",
            "    known = places[i] + 1 if book[i, 0] < time else known",
            f"  final = {'time == inf' if math.isinf(horizon) else f'time > {self.constant(horizon)}'}",
            "  last = FAR if final else max(2 * int(time * scale) - 1, known)",
            f"  hope = {call.format('final', 'True')}",
            "  if hope == 2:",
            "    return -2.0",
            "  if hope == 0 or final:",
            "    return 2.0 * hope - 1.0",
            f"  return 1.0 * {call.format('False', 'False')}",
        ]

    def _ticks(self) -> list[str]:
        """The number of ticks in a unit of time: as many as leave the furthest instant below 2^60 positions."""
        unit = 10.0**self.digits
        horizon = self.formula.horizon
        if math.isfinite(horizon):
            k = 58 - math.ceil(math.log2((horizon + self.reach + 1.0) * unit))
            if k < 0:
                message = f"the bounds of {self.formula} are too far apart for {self.digits} digits after the point"
                raise FormulaError(message, remedy="round them, or measure time in another unit")
            return [f"  k = int({self.constant(float(k))})", f"  scale = {self.constant(unit * 2.0**k)}"]
        return [
            f"  time = time if time == inf else min(time, {self.constant(self.logged.last_time)})",
            "  furthest = book[size - 1, 0] if time == inf else time",
            f"  unit = {self.constant(unit)}",
            f"  k = 58 - int(ceil(np.log2((furthest + {self.constant(self.reach + 1.0)}) * unit)))",
            "  scale = unit * 2.0**k",
        ]

    def node(self, node: Node, positive: bool) -> int:
        """Writes the set of a subformula; the register that holds it."""
        if isinstance(node, Truth):
            register = self.register((0, 1))
            if node.value:
                self.body.append(f"  sets[{register}, 0] = 0")
            self.body.append(f"  n{register} = {int(node.value)}")
            return register
        condition = state_condition(node)
        if condition is not None and not delays_in(condition):
            return self.condition(condition, positive)
        match node:
            case Atom(comparison):
                return self.delayed(comparison, positive)
            case Not(operand):
                return self.call("complement", self.node(operand, not positive), extra=1)
            case And(operands) | Or(operands):
                name = "intersection" if isinstance(node, And) else "union"
                x = self.node(operands[0], positive)
                for operand in operands[1:]:
                    x = self.call(name, x, self.node(operand, positive))
                return x
            case Eventually(window, operand):
                x = self.cut(self.node(operand, positive))
                return self.call("eventually", x, more=self.bounds(window))
            case Until(window, left, right):
                x, y = self.node(left, positive), self.cut(self.node(right, positive))
                spare = self.register(self.room(x, y, copies=2))
                return self.call("until", x, y, more=(*self.bounds(window), f"sets[{spare}]"), copies=2)
        raise TypeError(f"{type(node).__name__} is no kind of formula")

    def register(self, room: tuple[int, int]) -> int:
        self.rooms.append(room)
        return len(self.rooms) - 1

    def room(self, *inputs: int, copies: int) -> tuple[int, int]:
        """The room for so many copies of some sets together."""
        factor, extra = map(sum, zip(*(self.rooms[x] for x in inputs), strict=True))
        return copies * factor, copies * extra

    def call(self, function: str, *inputs: int, more: tuple[str, ...] = (), extra: int = 0, copies: int = 1) -> int:
        """Writes a call; its result has room for so many copies of its inputs, and `extra` switches more."""
        factor, added = self.room(*inputs, copies=copies)
        out = self.register((factor, added + extra))
        given = [f"sets[{x}], n{x}" for x in inputs]
        self.body.append(f"  n{out} = {function}({', '.join([*given, *more, f'sets[{out}]'])})")
        return out

    def cut(self, x: int) -> int:
        """In the finite reading, witnesses stand no later than `end`."""
        if self.formula.end is None:
            return x
        return self.call("known_until", x, more=(self.shift(self.formula.end), "False"), extra=1)

    def bounds(self, window: Interval) -> tuple[str, str]:
        self.reach += window.high if math.isfinite(window.high) else window.low
        return self.shift(window.low), "-1" if math.isinf(window.high) else self.shift(window.high)

    def shift(self, time: float) -> str:
        """A time as a number of positions."""
        whole = int(Decimal(repr(time)).scaleb(self.digits))
        return f"({self.whole(whole)} << (k + 1))"

    def whole(self, value: int) -> str:
        """A whole number; left open where a double holds it."""
        return f"int({self.constant(float(value))})" if value < LARGEST_WHOLE else str(value)

    def constant(self, value: float) -> str:
        """A number of the formula, or infinity."""
        return self._constant(value, object())

    def condition(self, condition: Expression, positive: bool) -> int:
        if condition not in self.raw:
            bit = self.logged.conditions.index(condition)
            out = self.raw[condition] = self.register((1, 0))
            self.body.append(f"  n{out} = bit_switches(places, book[:, 1], {bit}, size, sets[{out}])")
        return self.unknown(condition, positive)

    def unknown(self, atom: Expression, positive: bool) -> int:
        """After what is known, read against the formula or, when hopeful, in its favour."""
        x = self.raw[atom]
        hope = "hopeful" if positive else "not hopeful"
        # Where everything is known, nothing is filled in: the set stays as it is for ever.
        return self.call("known_until", x, more=("last", f"n{x} % 2 == 1 if endless else {hope}"), extra=1)

    def delayed(self, comparison: Expression, positive: bool) -> int:
        """An atom with delays: merged over the path and its shifted copies, evaluated where any of them jumps."""
        if comparison in self.raw:
            return self.unknown(comparison, positive)
        lags = [0.0, *dict.fromkeys(leaf.lag for leaf in delays_in(comparison))]
        self.reach += sum(lags)
        out = self.raw[comparison] = self.register((len(lags), 0))
        column = {name: 2 + index for index, name in enumerate(self.logged.delayed)}

        def spell(leaf: Name | Delayed) -> str:
            pointer = lags.index(leaf.lag) if isinstance(leaf, Delayed) else 0
            return f"book[i{pointer}, {column[leaf.name]}]"

        assert isinstance(comparison, Operation)
        sides = [self.atom_source(side, spell) for side in comparison.operands]
        say = self.body.append
        for index, lag in enumerate(lags):
            say(f"  i{index} = 0")
            say(f"  d{index} = {self.shift(lag)}")
        say("  place = 0")
        say("  inside = False")
        say(f"  n{out} = 0")
        # What lies beyond the known, or the horizon, is not asked, and may be undefined.
        horizon = self.formula.horizon
        if math.isinf(horizon):
            say("  furthest = last")
        else:
            limit = self.whole(math.ceil(Decimal(repr(horizon)).scaleb(self.digits)))
            say(f"  furthest = min(last, ({limit} << (k + 1)) + 1)")
        say("  while place <= furthest:")
        for index in range(len(lags)):
            say(f"    while i{index} + 1 < size and places[i{index} + 1] + d{index} <= place:")
            say(f"      i{index} += 1")
        say(f"    left = {sides[0]}")
        say(f"    right = {sides[1]}")
        say("    if left != left or right != right:")
        say("      return 2")
        say(f"    truth = left {comparison.symbol} right")
        say("    if truth != inside:")
        say(f"      sets[{out}, n{out}] = place")
        say(f"      n{out} += 1")
        say("      inside = truth")
        say("    place = FAR")
        for index in range(len(lags)):
            say(f"    if i{index} + 1 < size:")
            say(f"      place = min(place, places[i{index} + 1] + d{index})")
        say("    if place == FAR:")
        say("      break")
        return self.unknown(comparison, positive)
