"""The source of a kernel: many trajectories of one model in lockstep lanes, verdicts included.

The generated function `run` advances W lanes one event at a time in a loop that the compiler turns into vector
instructions: all that a lane knows stands in one flat array F, at `F[l + offset]`, so that nothing can overlap. What
is rare (a lane that ends, is filled anew, or has something to log) is left to a scalar tail. A trajectory is fixed by
(seed, point, run) alone, whatever lane, chunk or thread it runs in.

Source is made from expression trees only; no text of a user's stands in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sateen.core.errors import FormulaError, InputError
from sateen.core.expression import COMPARISONS, Boolean, Delayed, Expression, Name, Operation, Spelling, in_order
from sateen.engine.algebra import Logged, algebra_source
from sateen.engine.questions import Flat, Operator, flat
from sateen.engine.rates import Moving, safe_rate
from sateen.logic.formula import Formula
from sateen.model.checks import consumption_fault
from sateen.model.model import Model

__all__ = ["LANES", "KernelSource", "kernel_source"]

LANES: Final = 16
_REASONS: Final = ("max_events", "max_time", "max_population")
_PARTIAL: Final = frozenset({"/", "^", "log", "sqrt", "exp"})  # operations that can make NaN of finite numbers
_FIRST_LOOK: Final = 250  # events before which an early verdict would cost more than it saves


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Generated source, and the fixed factors that must be within [0, 1e200] for it to be safe without checks."""

    text: str
    coefficients: tuple[Expression, ...]
    needs_checks: bool


def kernel_source(
    model: Model,
    formulas: tuple[Formula, ...],
    *,
    checked: bool = False,
    population: bool = False,
    record: bool = False,
) -> KernelSource:
    """The kernel of `model` that decides `formulas` on the same trajectories.

    `checked` tests rates and counts at every event (where their form does not prove them good); `population` stops
    at a count above `max_population`; `record` keeps every state of a single trajectory.
    """
    if model.events:
        raise InputError(f"the event {model.events[0].name} cannot be simulated yet; models without events can")
    return _Kernel(model, formulas, checked, population, record).source()


class _Kernel:
    """Gathers what the lanes hold, then writes the source part by part."""

    def __init__(
        self, model: Model, formulas: tuple[Formula, ...], checked: bool, population: bool, record: bool
    ) -> None:
        self.model = model
        self.formulas = formulas
        self.population = population
        self.record = record
        self.slots: dict[str, int] = {}
        self.fixed_parts: dict[Expression, str] = {}
        counts = frozenset(model.species)
        self.moving = Moving(counts, self.local, self.fixed)
        self.flats: list[Flat | None] = [flat(formula) for formula in formulas]
        self.operators: list[Operator] = []
        for form in self.flats:
            for operator in form.operators if form else ():
                if operator not in self.operators:
                    self.operators.append(operator)
        self.logged = Logged(tuple(f for f, form in zip(formulas, self.flats, strict=True) if form is None))
        safe = [safe_rate(transition.rate, counts) for transition in model.transitions]
        self.coefficients = tuple(each for form in safe if form for each in form.coefficients)
        self.doubted_rates = [j for j, form in enumerate(safe) if checked or form is None]
        self.doubted_counts = [name for name in model.species if checked or self._may_leave_bounds(name)]
        self.doubted_atoms = [atom for atom in self._conditions() if _partial(atom)]
        self.checks = bool(self.doubted_rates or self.doubted_counts or self.doubted_atoms)
        self.tracked = self._tracked()

    def source(self) -> KernelSource:
        algebra = algebra_source(self.logged, self.atom_source)
        body = self._vector()
        tail = self._tail()
        end = "np.empty((0, 0)), 0.0, 0" if self.record else "events"
        text = "\n".join([*_IMPORTS, *algebra, "", *self._head(), *tail, *body, f"  return {end}", ""])
        return KernelSource(text, self.coefficients, self.checks)

    # -- what the lanes hold

    def slot(self, name: str) -> str:
        """The place of a lane's value in the flat array."""
        offset = self.slots.setdefault(name, len(self.slots)) * LANES
        return f"F[l + {offset}]" if offset else "F[l]"

    def local(self, leaf: Name | Delayed) -> str:
        return f"x{self.model.species.index(leaf.name)}"

    def fixed(self, expression: Expression) -> str:
        """A part that no event changes: a literal, or a slot that is filled with the lane."""
        if not expression.names:
            return repr(float(expression.evaluate({}))) if not _is_condition(expression) else repr(
                bool(expression.evaluate({}))
            )
        if expression not in self.fixed_parts:
            self.fixed_parts[expression] = f"C{len(self.fixed_parts)}"
        place = self.slot(self.fixed_parts[expression])
        return f"({place} != 0.0)" if _is_condition(expression) else place

    def parameter(self, leaf: Name | Delayed) -> str:
        """A parameter or constant, as the tail spells it while it fills a lane."""
        constants = [constant.name for constant in self.model.constants]
        if leaf.name in constants:
            return f"n{constants.index(leaf.name)}"
        parameters = [parameter.name for parameter in self.model.parameters]
        if leaf.name not in parameters:
            raise FormulaError(f"{leaf.name} is neither a species nor a parameter of the model")
        return f"k{parameters.index(leaf.name)}"

    def atom_source(self, expression: Expression, spell: Spelling) -> str:
        """A side of a delayed atom, over logged values."""
        return Moving(frozenset(self.model.species), spell, self.fixed).source(expression)

    def _conditions(self) -> list[Expression]:
        conditions = [side for each in self.operators for side in (each.left, each.right) if side is not None]
        return conditions + list(self.logged.conditions)

    def _may_leave_bounds(self, name: str) -> bool:
        variable = next(variable for variable in self.model.variables if variable.name == name)
        for transition in self.model.transitions:
            if any(name == assigned for assigned, _ in transition.update):
                return True
            change = transition.change.get(name, 0)
            if change and (variable.high is not None or variable.low not in (0, None)):
                return True
            if change < 0 and variable.low == 0 and consumption_fault(transition) is not None:
                return True
        return False

    def _tracked(self) -> list[str]:
        """The species that a kernel must follow: those that something reads, or that may go wrong."""
        if self.record or self.population:
            return list(self.model.species)
        read = {name for transition in self.model.transitions for name in transition.reads}
        read |= {name for formula in self.formulas for name in formula.species}
        return [name for name in self.model.species if name in read or name in self.doubted_counts]

    # -- the loop over lanes

    def _vector(self) -> list[str]:
        lines = ["    nd = 0", "    ng = 0", f"    for l in range({LANES}):"]
        say = lines.append
        for name in self.tracked:
            say(f"      {self.local(Name(name))} = {self.slot('X_' + name)}")
        self._rates(say)
        last = f"a{len(self.model.transitions) - 1}"
        say(f"      t = {self.slot('t')}")
        say(_RANDOM.format(r0="R[l]", r1=f"R[l + {LANES}]", r2=f"R[l + {2 * LANES}]", r3=f"R[l + {3 * LANES}]"))
        say(f"      tn = t + wait / {last}")
        say(f"      u = pick * {last}")
        done = self._verdicts(say)
        self._logging(say)
        if self.checks:
            say(f"      {self.slot('bad')} = 1.0 if {self._doubts(last)} else 0.0")
            done.append(f"({self.slot('bad')} != 0.0)")
        if self.population:
            crowded = " | ".join(f"({self.local(Name(name))} > most)" for name in self.tracked)
            say(f"      {self.slot('crowded')} = 1.0 if {crowded} else 0.0")
            done.append(f"({self.slot('crowded')} != 0.0)")
        say(f"      dn = 1.0 if {' | '.join(done)} else 0.0")
        say(f"      dn = dn * {self.slot('act')}")
        say(f"      {self.slot('stop')} = dn")
        say("      nd += 1 if dn > 0.0 else 0")
        say(f"      {self.slot('t')} = tn")
        self._moves(say)
        say("    it += 1")
        if self.record or self.logged.formulas:
            lines.extend(self._log_tail())
        return lines

    def _rates(self, say: Callable[[str], None]) -> None:
        for j, transition in enumerate(self.model.transitions):
            rate = self.moving.source(transition.rate)
            if transition.guard is not None:
                rate = f"({rate} if {self.moving.source(transition.guard)} else 0.0)"
            if self.checks and j in self.doubted_rates:
                say(f"      r{j} = {rate}")
                rate = f"r{j}"
            say(f"      a{j} = {rate}" + (f" + a{j - 1}" if j else ""))

    def _doubts(self, total: str) -> str:
        """When a rate, a count or an atom is no such thing."""
        doubts = [f"(r{j} < 0.0)" for j in self.doubted_rates]
        if self.doubted_rates:
            doubts.append(f"(not ({total} < inf))")
        for variable in self.model.variables:
            if variable.name in self.doubted_counts:
                value = self.local(Name(variable.name))
                doubts += [] if variable.low is None else [f"({value} < {float(variable.low)!r})"]
                doubts += [] if variable.high is None else [f"({value} > {float(variable.high)!r})"]
        for condition in self.doubted_atoms:
            for side in _sides(condition):
                source = self.moving.source(side)
                doubts.append(f"({source} != {source})")
        return " | ".join(doubts) or "False"

    def _verdicts(self, say: Callable[[str], None]) -> list[str]:
        """The statuses and verdicts of the flat formulas; returns what ends a lane."""
        for index, operator in enumerate(self.operators):
            hit, miss = self._segment(operator)
            say(f"      s{index} = 1.0 if {hit} else (-1.0 if {miss} else 0.0)")
            if self._remembered():
                say(f"      s{index} = {self.slot(f'S{index}')} if {self.slot(f'S{index}')} != 0.0 else s{index}")
                say(f"      {self.slot(f'S{index}')} = s{index}")
        decided = []
        for index, form in enumerate(self.flats):
            if form is not None:
                say(f"      v{index} = {self._renumbered(form)}")
                say(f"      {self.slot(f'V{index}')} = v{index}")
                decided.append(f"(v{index} != 0.0)")
        ends = ["(tn > T)"]
        if self.logged.formulas:
            decided.append(f"({self.slot('settled')} != 0.0)")
            ends.append(f"(tn >= {self.slot('look')})")
        if decided:
            ends.append("(" + " & ".join(decided) + ")")
        return ends

    def _remembered(self) -> bool:
        """Whether an operator's status must outlive the event that decides it."""
        return len(self.operators) > 1 or len(self.formulas) > 1 or self.operators[0].window is None

    def _renumbered(self, form: Flat) -> str:
        verdict = form.verdict
        for index in reversed(range(len(form.operators))):
            verdict = verdict.replace(f"s{index}", f"s<{self.operators.index(form.operators[index])}>")
        return verdict.replace("<", "").replace(">", "")

    def _segment(self, operator: Operator) -> tuple[str, str]:
        """When the segment [t, tn) makes an operator true, and else false. Undecided means that t is within b."""
        right = self.moving.source(operator.right)
        if operator.window is None:
            return right, "True"
        low, high = operator.window.low, operator.window.high
        hits = [right] if low == 0 else [right, f"(tn > {low!r})"]
        misses = ["(tn == inf)" if math.isinf(high) else f"(tn > {high!r})"]
        if operator.left is not None:
            left = self.moving.source(operator.left)
            hits += [] if low == 0 else [f"({left} | (t >= {low!r}))"]
            misses.append(f"(not {left})")
        return "(" + " & ".join(hits) + ")", "(" + " | ".join(misses) + ")"

    def _moves(self, say: Callable[[str], None]) -> None:
        """The next state: changes telescoped over the comparisons of u with the summed rates, no branch."""
        transitions = self.model.transitions
        for name in self.tracked:
            value = self.local(Name(name))
            changes = [transition.change.get(name, 0) for transition in transitions]
            terms = [value] + ([f"{float(changes[0])!r}"] if changes[0] else [])
            for j in range(1, len(transitions)):
                if step := changes[j] - changes[j - 1]:
                    terms.append(f"({float(step)!r} if u >= a{j - 1} else 0.0)")
            moved = " + ".join(terms)
            for j, transition in enumerate(transitions):
                for assigned, expression in transition.update:
                    if assigned == name:
                        chosen = f"(u < a{j})" + (f" & (u >= a{j - 1})" if j else "")
                        moved = f"({self.moving.source(expression)} if {chosen} else {moved})"
            if moved != value:
                say(f"      {self.slot('X_' + name)} = {moved}")

    # -- the log of what nested formulas read

    def _logging(self, say: Callable[[str], None]) -> None:
        if self.record:
            say(f"      {self.slot('from')} = t")
            for name in self.model.species:
                say(f"      {self.slot('L_' + name)} = {self.local(Name(name))}")
            say("      ng += 1")
            return
        if not self.logged.formulas:
            return
        bits = " + ".join(
            f"({float(2**k)!r} if {self.moving.source(condition)} else 0.0)"
            for k, condition in enumerate(self.logged.conditions)
        )
        say(f"      bits = {bits or '0.0'}")
        changed = [f"(bits != {self.slot('bits')})"]
        for name in self.logged.delayed:
            changed.append(f"({self.local(Name(name))} != {self.slot('L_' + name)})")
        say(f"      news = 1.0 if {' | '.join(changed)} else 0.0")
        say(f"      {self.slot('news')} = news")
        say("      ng += 1 if news > 0.0 else 0")
        say(f"      {self.slot('from')} = t")
        say(f"      {self.slot('bits')} = bits")
        for name in self.logged.delayed:
            say(f"      {self.slot('L_' + name)} = {self.local(Name(name))}")

    def _log_tail(self) -> list[str]:
        columns = self.model.species if self.record else self.logged.delayed
        news = "True" if self.record else f"{self.slot('news')} != 0.0"
        lines = [
            "    if ng > 0:",
            f"      for l in range({LANES}):",
            f"        if {news} and {self.slot('act')} == 1.0:",
            "          i = size[l]",
            "          if i == room:",
            "            room *= 2",
            f"            grown = np.empty(({LANES}, room, {2 + len(columns)}))",
            "            grown[:, :i] = book",
            "            book = grown",
            f"            places = np.empty(room, np.int64)\n            sets = np.empty({self._sets_shape()}, np.int64)",
            f"          book[l, i, 0] = {self.slot('from')}",
            f"          book[l, i, 1] = {'0.0' if self.record else self.slot('bits')}",
        ]
        lines += [f"          book[l, i, {2 + k}] = {self.slot('L_' + name)}" for k, name in enumerate(columns)]
        lines.append("          size[l] = i + 1")
        return lines

    def _sets_shape(self) -> str:
        return f"({max(self.logged.registers, 1)}, {self.logged.room_factor} * room + {self.logged.room_extra})"

    # -- the scalar tail

    def _tail(self) -> list[str]:
        act, stop = self.slot("act"), self.slot("stop")
        lines = [
            "  while True:",
            "    if nd > 0 or it >= wake:",
            "      due_now = it >= wake",
            f"      for l in range({LANES}):",
            f"        if {stop} != 0.0 or (due_now and it >= due[l]):",
            f"          if {act} == 1.0:",
        ]
        lines += ["            " + line for line in self._judge()]
        lines.append(f"          if {act} == 0.0 and item < items.shape[0]:")
        lines += ["            " + line for line in self._fill()]
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

    def _judge(self) -> list[str]:
        """What happens to a lane that stopped, or that it is time to look at."""
        lines = ["fired = it - start[l]", f"time = {self.slot('t')}"]
        if self.checks:
            lines += [f"if {self.slot('bad')} != 0.0:", *("  " + line for line in self._fault())]
        verdicts = [f"V{index}" for index in range(len(self.formulas))]
        nested = [index for index, form in enumerate(self.flats) if form is None]
        if nested:
            lines.append(f"final = time > T or fired >= max_events or time > {self.logged.horizon!r} or time == inf")
        for order, index in enumerate(nested):
            place = self.slot(f"V{index}")
            lines += [
                f"if {place} == 0.0 and (final or fired >= {_FIRST_LOOK}):",
                f"  {place} = verdict_{order}(F, l, book[l], size[l], time, places, sets)",
                f"  if {place} == -2.0:",
                *("    " + line for line in self._fault()),
            ]
        finished = " and ".join(f"{self.slot(name)} != 0.0" for name in verdicts) or "False"
        crowded = f"{self.slot('crowded')} != 0.0" if self.population else "False"
        lines += [
            f"finished = {finished}",
            "expired = time > T",
            "exhausted = fired >= max_events and not expired",
            f"crowded = {crowded}",
            "if finished or expired or exhausted or crowded:",
            "  reason = 2 if crowded else (1 if expired else 0)",
        ]
        for index, name in enumerate(verdicts):
            lines += [
                f"  if {self.slot(name)} > 0.0:",
                f"    satisfied[{index}, row[l]] += 1",
                f"  elif {self.slot(name)} == 0.0:",
                f"    undecided[{index}, reason, row[l]] += 1",
            ]
        lines += ["  events += fired if exhausted else fired - 1", f"  {self.slot('act')} = 0.0", "  live -= 1"]
        if self.record:
            lines.append("  return book[l, : size[l]].copy(), time, 1 if exhausted or crowded else 0")
        if nested:
            lines += ["else:", *("  " + line for line in self._look_again(nested))]
        return lines

    def _look_again(self, nested: list[int]) -> list[str]:
        """A lane goes on: when its nested formulas are looked at next."""
        settled = " and ".join(f"{self.slot(f'V{index}')} != 0.0" for index in nested)
        lines = [f"if {settled}:", f"  {self.slot('settled')} = 1.0", f"  {self.slot('look')} = inf"]
        lines += ["  due[l] = start[l] + max_events", "else:"]
        if math.isinf(self.logged.horizon):
            lines.append("  due[l] = min(start[l] + max_events, it + fired)")
        else:
            looks = self.logged.looks()
            lines.append(f"  {self.slot('look')} = {looks[-1]!r}")
            for look in reversed(looks[:-1]):
                lines += [f"  if time < {look!r}:", f"    {self.slot('look')} = {look!r}"]
            lines.append("  due[l] = start[l] + max_events")
        return lines

    def _fault(self) -> list[str]:
        """Says which run went wrong; a record of it tells where and why."""
        stop = "return book[l, : size[l]].copy(), time, 2" if self.record else "return -1"
        return ["fault[0] = row[l]", "fault[1] = number[l]", stop]

    def _fill(self) -> list[str]:
        """The next trajectory into a free lane."""
        lines = [
            "row[l] = item",
            "number[l] = items[item, 1] + done_runs",
            "z = mixed(mixed(mixed(seed) ^ U(items[item, 0])) ^ U(number[l]))",
        ]
        lines += [f"R[l + {q * LANES}] = mixed(z + U({q}))" for q in range(4)]
        for index in range(len(self.model.parameters)):
            lines.append(f"k{index} = theta[item, {index}]")
        for index, constant in enumerate(self.model.constants):
            lines.append(f"n{index} = {constant.value.emit(self.parameter)}")
        for name in self.tracked:
            variable = next(each for each in self.model.variables if each.name == name)
            lines.append(f"{self.slot('X_' + name)} = floor({variable.initial.emit(self.parameter)} + 0.5)")
        for expression, part in self.fixed_parts.items():
            source = expression.emit(self.parameter)
            lines.append(f"{self.slot(part)} = {f'1.0 if {source} else 0.0' if _is_condition(expression) else source}")
        cleared = [f"S{index}" for index in range(len(self.operators))] if self.operators and self._remembered() else []
        cleared += [f"V{index}" for index in range(len(self.formulas))]
        lines += [f"{self.slot(name)} = 0.0" for name in ("t", *cleared)]
        lines += [f"{self.slot('act')} = 1.0", "live += 1", "start[l] = it", "due[l] = it + max_events"]
        if self.record or self.logged.formulas:
            lines.append("size[l] = 0")
        if self.logged.formulas:
            lines += [f"{self.slot('bits')} = -1.0", f"{self.slot('settled')} = 0.0"]
            if math.isinf(self.logged.horizon):
                lines += [f"{self.slot('look')} = inf", f"due[l] = it + min(max_events, {_FIRST_LOOK})"]
                lines.append("wake = min(wake, due[l])")
            else:
                lines.append(f"{self.slot('look')} = {self.logged.looks()[0]!r}")
        lines += ["done_runs += 1", "if done_runs == items[item, 2]:", "  item += 1", "  done_runs = 0"]
        return lines

    def _head(self) -> list[str]:
        columns = self.model.species if self.record else self.logged.delayed
        lines = [
            "@njit(**OPTIONS)",
            "def run(theta, items, seed, T, max_events, most, satisfied, undecided, fault):",
            f"  F = np.zeros({max(len(self.slots), 1) * LANES})",
            f"  R = np.zeros({4 * LANES}, np.uint64)",
            f"  row = np.zeros({LANES}, np.int64)",
            f"  number = np.zeros({LANES}, np.int64)",
            f"  start = np.zeros({LANES}, np.int64)",
            f"  due = np.zeros({LANES}, np.int64)",
        ]
        if self.record or self.logged.formulas:
            lines += [
                "  room = 256",
                f"  book = np.empty(({LANES}, room, {2 + len(columns)}))",
                f"  size = np.zeros({LANES}, np.int64)",
                "  places = np.empty(room, np.int64)",
                f"  sets = np.empty({self._sets_shape()}, np.int64)",
            ]
        return [*lines, "  item = 0", "  done_runs = 0", "  it = 0", "  events = 0", "  live = 0", "  nd = 1", "  wake = 0"]


def _is_condition(expression: Expression) -> bool:
    if isinstance(expression, Operation):
        return expression.symbol in (*COMPARISONS, "and", "or", "not")
    return isinstance(expression, Boolean)


def _partial(condition: Expression) -> bool:
    """Whether some state may leave a side of the condition undefined."""
    return any(isinstance(node, Operation) and node.symbol in _PARTIAL for node in in_order(condition))


def _sides(condition: Expression) -> list[Expression]:
    """The sides of the comparisons in a condition that may be undefined."""
    sides = []
    for node in in_order(condition):
        if isinstance(node, Operation) and node.symbol in COMPARISONS:
            sides += [side for side in node.operands if _partial(side)]
    return sides


_IMPORTS: Final = [
    '"""A kernel that sateen generated; it may be deleted and will be made anew."""',
    "import numpy as np",
    "from numba import njit",
    "from numpy import ceil, exp, floor, inf, log, sqrt",
    "from sateen.engine.runtime import as_bits, as_double, mixed",
    "from sateen.engine.runtime import complement, contains, eventually, intersection, known_until, union, until",
    "from sateen.engine.runtime import bit_switches",
    "U = np.uint64",
    "FAR = 1 << 62",
    "OPTIONS = dict(nogil=True, cache=True, error_model='numpy', fastmath={'contract', 'nsz'})",
]

# xoshiro256++ twice: `wait` is a standard exponential by a polynomial logarithm of a uniform in (0, 1), `pick` is
# uniform on [0, 1). The odd mantissa keeps the first uniform away from 1, so that a total rate of 0 waits for ever.
_STEP: Final = (
    "      q = a + d; w = ((q << U(23)) | (q >> U(41))) + a; z = b << U(17); c = c ^ a; d = d ^ b; b = b ^ c; a = a ^ d;"
    " c = c ^ z; d = (d << U(45)) | (d >> U(19))"
)
_RANDOM: Final = (
    "      a = {r0}; b = {r1}; c = {r2}; d = {r3}\n"
    + _STEP
    + "\n      e = 2.0 - as_double((w >> U(12)) | U(0x3FF0000000000001))\n"
    + _STEP
    + "\n      pick = as_double((w >> U(12)) | U(0x3FF0000000000000)) - 1.0\n"
    "      {r0} = a; {r1} = b; {r2} = c; {r3} = d\n"
    "      g = as_bits(e) - U(0x3FE6A09E667F3BCD)\n"
    "      h = as_double(((g + U(1024 << 52)) >> U(52)) | U(0x4330000000000000)) - 4503599627371520.0\n"
    "      m = as_double((g & U(0xFFFFFFFFFFFFF)) + U(0x3FE6A09E667F3BCD))\n"
    "      f = (m - 1.0) / (m + 1.0)\n"
    "      y = f * f\n"
    "      p = ((((((y * (1.0 / 15) + 1.0 / 13) * y + 1.0 / 11) * y + 1.0 / 9) * y + 1.0 / 7) * y + 0.2) * y"
    " + 1.0 / 3) * y + 1.0\n"
    "      wait = -(2.0 * f) * p - h * 0.6931471805599453"
)
