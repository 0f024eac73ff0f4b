"""What the names in a PRISM model stand for: constants with their values, formulas, variables, renamed modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter

from sateen.core.errors import InputError, nearest
from sateen.language.expression import LARGEST_WHOLE, Expression, number
from sateen.language.grammar import MAX_DEPTH, Mistake
from sateen.language.prism_syntax import FUNCTIONS, Named, Term
from sateen.language.prism_types import Typed, check_kind, closed_value, given_value, typed, unknown_name, without_value
from sateen.model.model import Variable
from sateen.model.prism_text import Declared, Module, Program, Renamed


@dataclass(frozen=True, slots=True)
class Copy:
    """A module as it takes part: what it is called, what is written, and which names are read as others."""

    name: str
    module: Module
    renaming: Mapping[str, str]

    def new(self, name: str) -> str:
        """What a name of the written module is called in this copy."""
        return self.renaming.get(name, name)


class Names:
    """Every name of a program and what it stands for; `given` are values for constants without one."""

    def __init__(self, program: Program, given: Mapping[str, object]) -> None:
        self.formulas = {formula.name: formula for formula in program.formulas}
        self.constants = {constant.name: constant for constant in program.constants}
        self.copies = _copies(program.modules, set(self.formulas))
        self.declared: dict[str, tuple[Declared, Copy | None]] = {each.name: (each, None) for each in program.variables}
        for copy in self.copies:
            self.declared |= {copy.new(each.name): (each, copy) for each in copy.module.variables}
        self._check_once(program)
        self._expanded: dict[tuple[str, int], Typed] = {}
        self._expanding: list[str] = []
        self.definitions = self._definitions(given)
        self.values = self._values()
        self.variables = tuple(self._variable(name, *where) for name, where in self.declared.items())

    def read(self, term: Term, copy: Copy | None = None) -> Typed:
        """The typed expression of a term as a copy of a module reads it."""
        return typed(term, partial(self._lookup, copy=copy))

    def condition(self, term: Term, copy: Copy | None, rule: str) -> Typed:
        """The typed expression of a term that must be a condition."""
        made = self.read(term, copy)
        if made.kind != "bool":
            raise Mistake(f"{rule}, and this is a number", term.position, "compare it with something")
        return made

    def needed(self, names: Iterable[str]) -> set[str]:
        """The constants among some names, and those that they read, by way of others too."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.constants and name not in needed:
                needed.add(name)
                waiting += self.definitions[name].names if name in self.definitions else ()
        return needed

    def _lookup(self, term: Term, copy: Copy | None) -> Typed:
        if term.symbol == "label":
            remedy = "labels are for properties; write the condition itself, or a formula"
            raise Mistake(f'the label "{term.text}" cannot stand here', term.position, remedy)
        if term.text in self.formulas:
            return self._formula(term, copy)
        name = copy.new(term.text) if copy else term.text
        if name in self.declared:
            return Typed.name(name, self.declared[name][0].kind)
        if name in self.constants:
            return Typed.name(name, self.constants[name].kind)
        known = (*self.declared, *self.constants, *self.formulas)
        shown = term if name == term.text else Term("name", term.position, text=name)
        raise unknown_name(shown, known, "variable, constant or formula")

    def _formula(self, term: Term, copy: Copy | None) -> Typed:
        """A formula, inlined before names are changed: they are changed in it too."""
        key = (term.text, id(copy))
        if key not in self._expanded:
            if term.text in self._expanding:
                circle = " -> ".join([*self._expanding[self._expanding.index(term.text) :], term.text])
                raise Mistake(f"the formula {term.text} is defined by itself: {circle}", term.position)
            if len(self._expanding) == MAX_DEPTH:
                raise Mistake(f"more than {MAX_DEPTH} formulas within formulas", term.position)
            self._expanding.append(term.text)
            value = self.formulas[term.text].value
            assert value is not None
            self._expanded[key] = self.read(value, copy)
            self._expanding.pop()
        return self._expanded[key]

    def _definitions(self, given: Mapping[str, object]) -> dict[str, Expression]:
        """What every constant with a value is, each after those it reads."""
        values = {name: number(value) for name, value in self._given(given).items()}
        for name, constant in self.constants.items():
            if constant.value is not None:
                made = self._fixed(constant.value, None, f"the constant {name}")
                check_kind(name, constant.kind, made, constant.value)
                values[name] = made.number
            elif name not in values and constant.kind == "bool":
                remedy = f'give it one: {{constants={{"{name}": True}}}}'
                raise Mistake(f"the bool constant {name} has no value", constant.position, remedy)
        reads = {name: [each for each in value.names if each in values] for name, value in values.items()}
        try:
            return {name: values[name] for name in TopologicalSorter(reads).static_order()}
        except CycleError as error:
            circle: list[str] = error.args[1]
            position = self.constants[circle[0]].position
            raise Mistake(f"the constant {circle[0]} is defined by itself: {' -> '.join(circle)}", position) from None

    def _given(self, given: Mapping[str, object]) -> dict[str, float]:
        numbers = {}
        for name, value in given.items():
            constant = self.constants.get(name)
            if constant is None:
                hint = nearest(name, self.constants) or f"it has {', '.join(self.constants) or 'none'}"
                raise InputError(f"the model has no constant {name}; {hint}", argument="constants")
            if constant.value is not None:
                remedy = f"to give it elsewhere, leave it open: const {constant.kind} {name};"
                raise Mistake(f"the constant {name} has a value already", constant.position, remedy)
            try:
                numbers[name] = given_value(name, constant.kind, value)
            except ValueError as error:
                raise Mistake(str(error), constant.position) from None
        return numbers

    def _values(self) -> dict[str, float]:
        """The constants whose value is known."""
        values: dict[str, float] = {}
        for name, definition in self.definitions.items():
            if all(read in values for read in definition.names):
                constant = self.constants[name]
                where = constant.value or Term("name", constant.position)
                values[name] = closed_value(Typed(definition, "double"), where, values, f"the constant {name}")
        return values

    def _variable(self, name: str, declared: Declared, copy: Copy | None) -> Variable:
        low, high = self._bounds(name, declared, copy)
        if declared.initial is None:
            return Variable(name, number(float(low or 0)), low, high)
        noun = f"the initial value of {name}"
        made = self._fixed(declared.initial, copy, noun, "it is fixed before the run begins")
        check_kind(name, declared.kind, made, declared.initial)
        variable = Variable(name, made.number, low, high)
        if all(read in self.values for read in made.number.names):
            value = closed_value(made, declared.initial, self.values, noun)
            if not variable.allows(value):
                raise Mistake(f"{name} starts at {value:g}, outside [{low}..{high}]", declared.initial.position)
        return variable

    def _fixed(self, term: Term, copy: Copy | None, noun: str, remedy: str = "") -> Typed:
        """The typed expression of a term that is worked out before a run: it may read no variable."""
        made = self.read(term, copy)
        for name in made.expression.names:
            if name in self.declared:
                raise Mistake(f"{noun} reads the variable {name}", term.position, remedy)
        return made

    def _bounds(self, name: str, declared: Declared, copy: Copy | None) -> tuple[int | None, int | None]:
        if declared.kind == "bool":
            return 0, 1
        if declared.low is None or declared.high is None:
            return None, None
        noun, bounds = f"the range of {name}", []
        for term in (declared.low, declared.high):
            made = self._fixed(term, copy, noun)
            check_kind(noun, "int", made, term)
            needed = self.needed(made.expression.names)
            for constant in self.constants:
                if constant in needed and constant not in self.definitions:
                    raise without_value(noun, constant, term)
            bounds.append(int(closed_value(made, term, self.values, noun)))
        low, high = bounds
        if low > high or max(abs(low), abs(high)) > LARGEST_WHOLE:
            raise Mistake(f"{name} has no value in the range [{low}..{high}]", declared.low.position)
        return low, high

    def _check_once(self, program: Program) -> None:
        """Refuses a name that stands for two things."""
        everywhere: tuple[Named, ...] = (*program.constants, *program.formulas, *program.variables)
        names = [(each.name, each.position) for each in everywhere]
        names += [(copy.new(each.name), each.position) for copy in self.copies for each in copy.module.variables]
        seen: set[str] = set()
        for name, position in names:
            if name in seen:
                raise Mistake(f"{name} is declared twice", position, "give one of them another name")
            seen.add(name)


def _copies(modules: tuple[Module | Renamed, ...], formulas: set[str]) -> tuple[Copy, ...]:
    """Every module as it takes part, in order."""
    known: dict[str, Copy] = {each.name: Copy(each.name, each, {}) for each in modules if isinstance(each, Module)}
    order: dict[str, Copy] = {}
    for module in modules:
        if module.name in order:
            raise Mistake(f"two modules are called {module.name}", module.position, "give one of them another name")
        if isinstance(module, Renamed):
            known[module.name] = _renamed(module, known, formulas)
        order[module.name] = known[module.name]
    return tuple(order.values())


def _renamed(module: Renamed, known: Mapping[str, Copy], formulas: set[str]) -> Copy:
    base = known.get(module.base.name)
    if base is None:
        hint = nearest(module.base.name, known) or "a module that is itself renamed must come before"
        raise Mistake(f"there is no module {module.base.name} to rename", module.base.position, hint)
    names: dict[str, str] = {}
    for old, new in module.names:
        if old.name in names:
            raise Mistake(f"{old.name} is renamed twice", old.position)
        if old.name in FUNCTIONS:
            raise Mistake(f"the function {old.name} cannot be renamed here", old.position, "write the module out")
        if old.name in formulas:
            remedy = "formulas are inlined before names are changed: rename what the formula reads"
            raise Mistake(f"the formula {old.name} cannot be renamed", old.position, remedy)
        names[old.name] = new
    for variable in base.module.variables:
        if base.new(variable.name) not in names:
            remedy = f"add {base.new(variable.name)}=..., for two modules cannot share a variable"
            raise Mistake(f"{module.name} must rename the variable {base.new(variable.name)}", module.position, remedy)
    chained = {old: names.get(new, new) for old, new in base.renaming.items()}
    return Copy(module.name, base.module, names | chained)
