"""What the lanes of a kernel hold, and what must be watched while they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from sateen.core.errors import FormulaError
from sateen.engine.algebra import Logged
from sateen.engine.bounds import Unchecked, is_whole
from sateen.engine.questions import Operator, flat, present_atoms
from sateen.engine.rates import Moving, is_partial, safe_rate
from sateen.engine.thinning import is_timed
from sateen.language.expression import (
    Delayed,
    Expression,
    Name,
    Number,
    Operation,
    Spelling,
    in_order,
    is_condition,
    literal_value,
    number,
)
from sateen.logic.formula import Formula
from sateen.model.checks import consumption_fault
from sateen.model.model import CLOCK, Model, Variable

LANES: Final = 16
_WRITTEN_OUT: Final = (0.0, 1.0, -1.0)  # numbers that stand in the source of rates; others are arguments
_WRITTEN_IN_FORMULAS: Final = (0.0,)  # a comparison with it, of which there are many, needs no load
_MARK: Final = "\0"  # begins the name of a number; no name of a user's has it
LAST_TIME: Final = 1e307  # of the next jump, where there is one: an infinite time means that there is none


class Lanes:
    """The layout of the flat array F: every value of a lane has a slot, given on first mention."""

    def __init__(
        self,
        model: Model,
        formulas: tuple[Formula, ...],
        checked: bool,
        population: bool,
        record: bool,
        watched: tuple[str, ...] = (),
    ) -> None:
        self.model = model
        self.formulas = () if record else formulas  # a record decides nothing, but fails where they would
        self.checked = checked
        self.population = population
        self.record = record
        self.watched = watched  # species whose values are kept at given times
        self.slots: dict[str, int] = {}
        self.fixed_parts: dict[str, Expression] = {}
        self.numbers: list[float] = []  # those that the source leaves open, in the order in which they are passed
        self._parts: dict[object, str] = {}
        self._seen: list[Expression] = []  # the numbers that parts are made of, whose identity must last
        self.counts = frozenset(model.species)
        self.timed = model.timed
        clock = frozenset({CLOCK}) if self.timed else frozenset()
        self.moving = self.as_spelt(self.at_candidate, clock, careful=self.timed)
        if self.timed:
            self.moving = replace(self.moving, fixed=self.loaded)
        self.rates = replace(self.moving, regroups=True)  # in every kernel, so that they make the very same runs
        # For the conditions of formulas.
        self.asked = replace(self.moving, opened=partial(self.loaded if self.timed else self.fixed, opens=True))
        self.operators: list[Operator] = []  # of all flat formulas
        clocked = bool(model.events) or self.timed  # steps end at times that are not drawn, too
        self.verdicts = [
            flat(each, self.operators, eventful=clocked, delayed=self._may_ring(each)) for each in self.formulas
        ]
        # What the lanes read from the past as they run: not what a formula mentions where it does not matter.
        self.late = list(dict.fromkeys(leaf for operator in self.operators for leaf in operator.delays))
        self.rings = [
            bool(self.late and formula.delays) and verdict is not None
            for formula, verdict in zip(self.formulas, self.verdicts, strict=True)
        ]
        self.nested = [index for index, verdict in enumerate(self.verdicts) if verdict is None]
        self.logged = Logged(tuple(self.formulas[index] for index in self.nested))
        trusted = frozenset(variable.name for variable in model.variables if self._is_count(variable))
        safe = [
            None if self.timed and is_timed(each) else safe_rate(each.rate, self.counts, trusted)
            for each in model.transitions
        ]
        self.doubted_rates = [j for j, form in enumerate(safe) if checked or form is None]
        self.doubted_counts = [each for each in model.variables if checked or self._may_leave_bounds(each)]
        # Delayed sides are checked with their log; those that need none cannot be undefined.
        asked = [(side, place) for place, each in enumerate(formulas) for side in _present_sides(each)]
        present = [side for side, _ in asked]
        self.doubted_sides = [(side, place) for side, place in asked if checked or is_partial(side)]
        self.horizons = [formula.horizon for formula in formulas]
        compared = (side for side in _compared(model, formulas) if clock.isdisjoint(side.names))
        ringing = [each for each, ring in zip(self.formulas, self.rings, strict=True) if ring]
        late_sides = [side for each in ringing for side in _sides(each.comparisons)]
        trusted_sides = [side for side in (*present, *late_sides, *compared) if not is_partial(side)]
        self.unchecked = Unchecked(tuple(form for form in safe if form), tuple(dict.fromkeys(trusted_sides)))
        self.checks = bool(self.doubted_rates or self.doubted_counts or self.doubted_sides or model.events)
        self.tracked = self._tracked()

    @property
    def columns(self) -> tuple[str, ...]:
        """The species whose values the log keeps."""
        return self.model.species if self.record else tuple(self.logged.delayed)

    @property
    def logs(self) -> bool:
        """Whether lanes keep a log."""
        return self.record or bool(self.nested)

    @property
    def remembers(self) -> bool:
        """Whether an operator's status must outlive the event that decides it."""
        alone = len(self.operators) == 1 and len(self.formulas) == 1 and not self.late
        return bool(self.operators) and not (alone and self.operators[0].window is not None)

    def variable(self, name: str) -> Variable:
        """The variable of that name."""
        return self.model.variables[self.model.species.index(name)]

    def slot(self, name: str) -> str:
        """The place of a lane's value in the flat array."""
        offset = self.slots.setdefault(name, len(self.slots)) * LANES
        return f"F[l + {offset}]" if offset else "F[l]"

    def local(self, leaf: Name | Delayed) -> str:
        """A count, as the loop over lanes spells it."""
        if isinstance(leaf, Delayed):
            return f"z{self.late.index(leaf)}"
        return f"x{self.model.species.index(leaf.name)}"

    def at_candidate(self, leaf: Name | Delayed) -> str:
        """A count, or the clock when the next jump may come."""
        return "tn" if self.timed and leaf.name == CLOCK else self.local(leaf)

    def after(self, leaf: Name | Delayed) -> str:
        """A count after the jump, as the loop over lanes spells it."""
        return self.local(leaf).replace("x", "y") if self.jumps(leaf.name) else self.local(leaf)

    def jumps(self, name: str) -> bool:
        """Whether a transition changes what is called so."""
        return any(name in each.change or name in dict(each.update) for each in self.model.transitions)

    def fixed(self, expression: Expression, opens: bool = False) -> str:
        """A part that no event changes: a literal, or a slot that is filled with the lane.

        Where it `opens`, more numbers are such slots, so that formulas that differ in them share a kernel.
        """
        if not expression.names:
            value = expression.evaluate({})
            if is_condition(expression):
                return repr(bool(value))
            if not math.isfinite(value) or value in (_WRITTEN_IN_FORMULAS if opens else _WRITTEN_OUT):
                return repr(float(value))
            # By identity: two that happen to be equal may differ in another formula, with the same kernel.
            self._seen.append(expression)
            return self._part(("number", id(expression)), number(float(value)))
        place = self._part(expression, expression)
        return f"({place} != 0.0)" if is_condition(expression) else place

    def constant(self, value: float, *use: object) -> str:
        """A time of a formula, as `fixed` spells it.

        It has a place for each `use`: times of two uses that happen to be equal may differ in another formula.
        """
        return repr(value) if math.isinf(value) else self._part(use, number(value))

    def begin(self, place: int) -> str:
        """Where the window of the operator in this place begins, which is after 0."""
        window = self.operators[place].window
        assert window is not None
        return self.constant(window.low, "begin", place)

    def _part(self, key: object, expression: Expression) -> str:
        part = self._parts.setdefault(key, f"C{len(self._parts)}")
        self.fixed_parts[part] = expression
        return self.slot(part)

    def still(self, expression: Expression) -> str:
        """What only reads parameters and constants, as the tail computes it while it fills a lane."""
        return self._open(expression).emit(self.parameter)

    def _open(self, expression: Expression) -> Expression:
        """The expression with its numbers left open, but for exponents, which say how a power is computed."""
        if (value := literal_value(expression)) is not None:
            self.numbers.append(value)
            return Name(f"{_MARK}{len(self.numbers) - 1}")
        match expression:
            case Operation("^", (base, Number() as exponent)):
                return Operation("^", (self._open(base), exponent))
            case Operation(symbol, operands):
                return Operation(symbol, tuple(map(self._open, operands)))
        return expression

    def loaded(self, expression: Expression, opens: bool = False) -> str:
        """A part that no event changes, as a variable of the loop: a load that only one branch of a choice needs would
        keep the loop from being vectorised."""
        source = self.fixed(expression, opens)
        part = self._parts.get(expression if expression.names else ("number", id(expression)))
        if part is None:
            return source
        variable = f"p{part[1:]}"
        return f"({variable} != 0.0)" if is_condition(expression) else variable

    def parameter(self, leaf: Name | Delayed) -> str:
        """A parameter, a constant or a number, as the tail spells it while it fills a lane."""
        if leaf.name.startswith(_MARK):
            return f"numbers[{leaf.name.removeprefix(_MARK)}]"
        constants = [constant.name for constant in self.model.constants]
        if leaf.name in constants:
            return f"n{constants.index(leaf.name)}"
        parameters = [parameter.name for parameter in self.model.parameters]
        if leaf.name not in parameters:
            raise FormulaError(f"{leaf.name} is neither a species nor a parameter of the model")
        return f"k{parameters.index(leaf.name)}"

    def as_spelt(self, spell: Spelling, others: frozenset[str] = frozenset(), *, careful: bool = False) -> Moving:
        """Emits expressions over counts, and what else moves, that `spell` spells, such as those in the log."""
        return Moving(self.counts | others, spell, self.fixed, careful=careful or self.checked)

    def atom_source(self, expression: Expression, spell: Spelling) -> str:
        """A part of a formula in the order it is written in, over counts that `spell` spells."""
        return replace(self.as_spelt(spell), opened=partial(self.fixed, opens=True)).source(expression)

    def bits_source(self, spell: Spelling) -> str:
        """The truth of the conditions that the log keeps, a bit each."""
        sources = [self.atom_source(condition, spell) for condition in self.logged.conditions]
        return " + ".join(f"({float(2**bit)!r} if {source} else 0.0)" for bit, source in enumerate(sources)) or "0.0"

    def within_log(self, time: str) -> list[str]:
        """When a jump at that time is early enough to be logged."""
        if not self.record and math.isfinite(self.logged.horizon):
            return [f"({time} <= {self.constant(self.logged.horizon, 'log')})"]
        return [f"({time} <= T)", f"({time} < inf)"]

    def may_be_broken(self, variable: Variable) -> bool:
        """Whether a transition might assign a number that is not whole."""
        whole = frozenset(each.name for each in self.model.variables if each.whole)
        assigned = [value for each in self.model.transitions for name, value in each.update if name == variable.name]
        return not all(is_whole(value, whole) for value in assigned)

    @property
    def cap(self) -> str:
        """When a lane that goes on may have made all its events: idle steps are none."""
        return "it + max_events - fired" if self.timed else "start[l] + max_events"

    @property
    def endless(self) -> bool:
        """Whether runs may go on for ever, so that absorption must be told from a wait that is no number."""
        return self.record or any(math.isinf(formula.horizon) for formula in self.formulas)

    def _may_ring(self, formula: Formula) -> bool:
        """Whether its delays may be read from a ring: all sides are numbers, and the times of all jumps are drawn."""
        return not (
            self.checked or self.model.events or self.timed or any(map(is_partial, _sides(formula.comparisons)))
        )

    def _is_count(self, variable: Variable) -> bool:
        """Whether it is a whole number from 0 on, as long as it stays within its bounds."""
        assigned = any(variable.name == name for each in self.model.transitions for name, _ in each.update)
        return variable.low is not None and variable.low >= 0 and not assigned

    def _may_leave_bounds(self, variable: Variable) -> bool:
        """Whether the form of the transitions leaves it open that a variable leaves its bounds."""
        for transition in self.model.transitions:
            if any(variable.name == assigned for assigned, _ in transition.update):
                return True
            change = transition.change.get(variable.name, 0)
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
        read |= {*self.watched, *(name for formula in self.formulas for name in formula.species)}
        read |= {variable.name for variable in self.doubted_counts}
        for event in self.model.events:
            read |= {*event.trigger.names, *(name for name, _ in event.update)}
            read |= {name for _, value in event.update for name in value.names}
        return [name for name in self.model.species if name in read]


def _present_sides(formula: Formula) -> list[Expression]:
    """The sides of the comparisons that read the present alone."""
    return _sides(present_atoms(formula))


def _sides(comparisons: Iterable[Expression]) -> list[Expression]:
    return [side for each in comparisons if isinstance(each, Operation) for side in each.operands]


def _compared(model: Model, formulas: tuple[Formula, ...]) -> Iterator[Expression]:
    """The operands of every min and max."""
    for expression in (*_expressions(model), *(each for formula in formulas for each in formula.comparisons)):
        for node in in_order(expression):
            if isinstance(node, Operation) and node.symbol in ("min", "max"):
                yield from node.operands


def _expressions(model: Model) -> Iterator[Expression]:
    """All that a model has to compute."""
    yield from (variable.initial for variable in model.variables)
    for transition in model.transitions:
        yield from (transition.rate, *(value for _, value in transition.update))
        yield from () if transition.guard is None else (transition.guard,)
    for event in model.events:
        yield from (event.trigger, *(value for _, value in event.update))
