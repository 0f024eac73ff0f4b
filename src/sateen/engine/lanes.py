"""What the lanes of a kernel hold, and what must be watched while they run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sateen.core.errors import FormulaError
from sateen.engine.algebra import Logged
from sateen.engine.bounds import Unchecked, is_whole
from sateen.engine.questions import Operator, flat, present_atoms
from sateen.engine.rates import Moving, is_partial, safe_rate
from sateen.language.expression import Delayed, Expression, Name, Operation, Spelling, in_order, is_condition
from sateen.logic.formula import Formula
from sateen.model.checks import consumption_fault
from sateen.model.model import Model, Variable

LANES: Final = 16


class Lanes:
    """The layout of the flat array F: every value of a lane has a slot, given on first mention."""

    def __init__(
        self, model: Model, formulas: tuple[Formula, ...], checked: bool, population: bool, record: bool
    ) -> None:
        self.model = model
        self.formulas = () if record else formulas  # a record decides nothing, but fails where they would
        self.checked = checked
        self.population = population
        self.record = record
        self.slots: dict[str, int] = {}
        self.fixed_parts: dict[Expression, str] = {}
        self.counts = frozenset(model.species)
        self.moving = self.as_spelt(self.local)
        self.rates = replace(self.moving, regroups=True)  # in every kernel, so that they make the very same runs
        self.operators: list[Operator] = []  # of all flat formulas
        self.verdicts = [flat(formula, self.operators) for formula in self.formulas]
        self.nested = [index for index, verdict in enumerate(self.verdicts) if verdict is None]
        self.logged = Logged(tuple(self.formulas[index] for index in self.nested))
        trusted = frozenset(variable.name for variable in model.variables if self._is_count(variable))
        safe = [safe_rate(transition.rate, self.counts, trusted) for transition in model.transitions]
        self.doubted_rates = [j for j, form in enumerate(safe) if checked or form is None]
        self.doubted_counts = [each for each in model.variables if checked or self._may_leave_bounds(each)]
        # Delayed sides are checked with their log.
        asked = [(side, place) for place, each in enumerate(formulas) for side in _present_sides(each)]
        present = [side for side, _ in asked]
        self.doubted_sides = [(side, place) for side, place in asked if checked or is_partial(side)]
        self.horizons = [formula.horizon for formula in formulas]
        trusted_sides = [side for side in (*present, *_compared(model, formulas)) if not is_partial(side)]
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
        alone = len(self.operators) == 1 and len(self.formulas) == 1
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
        return f"x{self.model.species.index(leaf.name)}"

    def after(self, leaf: Name | Delayed) -> str:
        """A count after the jump, as the loop over lanes spells it."""
        return self.local(leaf).replace("x", "y") if self.jumps(leaf.name) else self.local(leaf)

    def jumps(self, name: str) -> bool:
        """Whether a transition changes what is called so."""
        return any(name in each.change or name in dict(each.update) for each in self.model.transitions)

    def fixed(self, expression: Expression) -> str:
        """A part that no event changes: a literal, or a slot that is filled with the lane."""
        if not expression.names:
            value = expression.evaluate({})
            return repr(bool(value) if is_condition(expression) else float(value))
        if expression not in self.fixed_parts:
            self.fixed_parts[expression] = f"C{len(self.fixed_parts)}"
        place = self.slot(self.fixed_parts[expression])
        return f"({place} != 0.0)" if is_condition(expression) else place

    def parameter(self, leaf: Name | Delayed) -> str:
        """A parameter or constant, as the tail spells it while it fills a lane."""
        constants = [constant.name for constant in self.model.constants]
        if leaf.name in constants:
            return f"n{constants.index(leaf.name)}"
        parameters = [parameter.name for parameter in self.model.parameters]
        if leaf.name not in parameters:
            raise FormulaError(f"{leaf.name} is neither a species nor a parameter of the model")
        return f"k{parameters.index(leaf.name)}"

    def as_spelt(self, spell: Spelling, clock: frozenset[str] = frozenset()) -> Moving:
        """Emits expressions over counts, and perhaps the clock, that `spell` spells, such as those in the log."""
        return Moving(self.counts | clock, spell, self.fixed, careful=self.checked)

    def atom_source(self, expression: Expression, spell: Spelling) -> str:
        """An expression in the order it is written in, over counts that `spell` spells."""
        return self.as_spelt(spell).source(expression)

    @property
    def contracts(self) -> bool:
        """Whether products may be summed without rounding them first: never where that could turn a comparison, nor
        where a threshold is computed in two places."""
        return not self.model.events and not any(map(self._sums_products, _discerning(self.model, self.formulas)))

    def _sums_products(self, expression: Expression) -> bool:
        constants: dict[str, Expression] = {}
        for constant in self.model.constants:
            constants[constant.name] = constant.value.substitute(constants)
        nodes = in_order(expression.substitute(constants))
        return {"*", "+"} <= {
            "*" if node.symbol == "^" else node.symbol for node in nodes if isinstance(node, Operation)
        }

    def bits_source(self, spell: Spelling) -> str:
        """The truth of the conditions that the log keeps, a bit each."""
        sources = [self.atom_source(condition, spell) for condition in self.logged.conditions]
        return " + ".join(f"({float(2**bit)!r} if {source} else 0.0)" for bit, source in enumerate(sources)) or "0.0"

    def within_log(self, time: str) -> list[str]:
        """When a jump at that time is early enough to be logged."""
        if not self.record and math.isfinite(self.logged.horizon):
            return [f"({time} <= {self.logged.horizon!r})"]
        return [f"({time} <= T)", f"({time} < inf)"]

    def may_be_broken(self, variable: Variable) -> bool:
        """Whether a transition might assign a number that is not whole."""
        whole = frozenset(each.name for each in self.model.variables if each.whole)
        assigned = [value for each in self.model.transitions for name, value in each.update if name == variable.name]
        return not all(is_whole(value, whole) for value in assigned)

    @property
    def endless(self) -> bool:
        """Whether runs may go on for ever, so that absorption must be told from a wait that is no number."""
        return self.record or any(math.isinf(formula.horizon) for formula in self.formulas)

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
        read |= {name for formula in self.formulas for name in formula.species}
        read |= {variable.name for variable in self.doubted_counts}
        for event in self.model.events:
            read |= {*event.trigger.names, *(name for name, _ in event.update)}
            read |= {name for _, value in event.update for name in value.names}
        return [name for name in self.model.species if name in read]


def _present_sides(formula: Formula) -> list[Expression]:
    """The sides of the comparisons that read the present alone."""
    return [side for atom in present_atoms(formula) for side in atom.operands]


def _discerning(model: Model, formulas: tuple[Formula, ...]) -> Iterator[Expression]:
    """What must be computed to the last bit: conditions, and the values that are assigned or start a run."""
    yield from (variable.initial for variable in model.variables)
    for transition in model.transitions:
        yield from (value for _, value in transition.update)
        yield from () if transition.guard is None else (transition.guard,)
        yield from (node for node in in_order(transition.rate) if is_condition(node))
    for event in model.events:
        yield from (event.trigger, *(value for _, value in event.update))
    for formula in formulas:
        yield from formula.comparisons


def _compared(model: Model, formulas: tuple[Formula, ...]) -> Iterator[Expression]:
    """The operands of every min and max."""
    rates = (transition.rate for transition in model.transitions)
    for expression in (*rates, *_discerning(model, formulas)):
        for node in in_order(expression):
            if isinstance(node, Operation) and node.symbol in ("min", "max"):
                yield from node.operands
