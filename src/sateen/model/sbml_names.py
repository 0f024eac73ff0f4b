"""What the ids in an SBML file stand for: species, parameters, compartments, rules and rates, now and at the start.

Amounts are numbers of molecules. Where a species is measured by its concentration, a formula that reads it reads the
amount divided by the size of its compartment, and what sets it sets the concentration times that size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Set
from typing import Final

from sateen.core.text import number_text
from sateen.language.expression import Expression, Name, Number, Operation, number
from sateen.language.grammar import Mistake
from sateen.model.model import Constant, Parameter, Variable
from sateen.model.sbml_elements import Elements, Source, local_parameters, whole
from sateen.model.sbml_math import SBML_TIME, Element, Functions, as_number

__all__ = ["Names"]

_MOST_NESTED: Final = 20  # values at the start that are read by way of each other


class Names:
    """Every id of a model and what it stands for."""

    def __init__(self, model: Element, source: Source) -> None:
        self.file = file = Elements(model, source)
        self.fail = source.fail
        self.fixed: set[str] = set()  # parameters on which the form of the model depends
        self._functions = Functions(file.functions)
        self._known: dict[tuple[str, str], Expression] = {}
        self._in_progress: list[tuple[str, str]] = []
        for name in file.rules:
            self._ruled(name)  # each after those that it reads

    # What is read while the model runs.

    def read(self, owner: Element, noun: str, lookup: Callable[[str], Expression] | None = None) -> Expression:
        """The formula of an element, as it reads while the model runs; `noun` says what the element is."""
        formula = owner.getMath()
        if formula is None:
            self.fail(f"{noun} has no formula", owner)
        try:
            return self._functions.read(formula, lookup or self.now)
        except Mistake as problem:
            self.fail(f"{noun}: {problem.message}", owner, problem.remedy)

    def now(self, name: str) -> Expression:
        """What an id reads as while the model runs."""
        if self.moves_by_rule(name):
            return self._ruled(name)
        if name in self.file.species:
            return self._per_size(name, Name(name))
        if name in self.file.reactions:
            return self.rate(name)
        if name in self.file.references:
            return Number(float(self.stoichiometry(self.file.references[name], f"the stoichiometry {name}")))
        if name in self.file.compartments:
            self._size(self.file.compartments[name], f"{name} is read in a formula")
        elif name not in self.file.parameters:
            raise Mistake(f"nothing is called {name}")
        return Name(name)

    def rate(self, name: str) -> Expression:
        """The rate of a reaction, which its kinetic law says."""
        return self._once("rate", name, lambda: self._rate(self.file.reactions[name]))

    def _rate(self, reaction: Element) -> Expression:
        name, law = reaction.getId(), reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            remedy = "a stochastic model needs a rate: write one, such as k * X"
            self.fail(f"the reaction {name} has no kinetic law", reaction, remedy)
        local = self.file.local[name]

        def inside(read: str) -> Expression:
            return Name(local[read]) if read in local else self.now(read)

        rate = as_number(self.read(law, f"the rate of {name}", inside))
        if SBML_TIME.name in rate.names:
            remedy = "between two reactions a rate must not change; an event can switch it at a time"
            self.fail(f"the rate of {name} depends on time", law, remedy)
        return rate

    def moving_rules(self) -> dict[str, Expression]:
        """The amounts and values that assignment rules set in every state, as expressions of the state."""
        moving = [name for name in self.file.rules if self.moves_by_rule(name)]
        return {name: self.amount_set(name, self._ruled(name)) for name in moving}

    def moves_by_rule(self, name: str) -> bool:
        """Whether a rule sets an id, and reads something that moves."""
        return name in self.file.rules and any(
            read == SBML_TIME.name or self.is_variable(read) for read in self._ruled(name).names
        )

    def _ruled(self, name: str) -> Expression:
        rules = self.file.rules
        return self._once("assignment rule", name, lambda: self.read(rules[name], f"the assignment rule for {name}"))

    def is_variable(self, name: str) -> bool:
        """Whether reactions or events may change what an id stands for."""
        if name in self.file.by_event:
            return True
        species = self.file.species.get(name)
        if species is None or name in self.file.rules:
            return False
        return not (species.getConstant() or species.getBoundaryCondition())

    # Sizes of compartments.

    def _size(self, compartment: Element, purpose: str) -> Expression:
        """The size of a compartment: a number, or its name where the number is computed."""
        name = compartment.getId()
        if name in self.file.by_event or self.moves_by_rule(name):
            remedy = "only compartments of constant size are supported"
            self.fail(f"the compartment {name} changes its size", self.file.setter(name), remedy)
        if name in self.file.rules or name in self.file.assigned:
            return Name(name)
        if not self._has_size(name):
            self.fail(f"the compartment {name} has no size, and {purpose}", compartment, 'write size="1"')
        return number(float(compartment.getSize()))

    def _has_size(self, name: str) -> bool:
        compartment = self.file.compartments.get(name)
        return compartment is not None and compartment.isSetSize() and math.isfinite(compartment.getSize())

    def _size_of(self, name: str) -> Expression | None:
        """The size that a concentration is multiplied by; None where a species is an amount, or the size is 1."""
        species = self.file.species.get(name)
        if species is None or species.getHasOnlySubstanceUnits():
            return None
        compartment = self.file.compartments[species.getCompartment()]
        if compartment.isSetSpatialDimensions() and compartment.getSpatialDimensionsAsDouble() == 0:
            return None
        size = self._size(compartment, f"{name} is measured by its concentration in it")
        if not size.names and float(size.evaluate({})) <= 0:
            self.fail(f"the compartment {compartment.getId()} has the size {size}", compartment, "it must be positive")
        return None if size == Number(1.0) else Name(compartment.getId())

    def _per_size(self, name: str, amount: Expression) -> Expression:
        size = self._size_of(name)
        return amount if size is None else Operation("/", (amount, size))

    def amount_set(self, name: str, value: Expression) -> Expression:
        """The amount of a species that is set to `value`, which may be a concentration; other things as they are."""
        size = self._size_of(name)
        return as_number(value) if size is None else Operation("*", (as_number(value), size))

    # What holds at the start.

    def _start(self, name: str) -> Expression:
        """What an id reads as at time 0, from parameters and constants alone."""
        if name in self.file.reactions:
            raise Mistake(f"the rate of {name} is not known before the start", remedy="write the rate itself")
        if self.moves_by_rule(name):
            rule, noun = self.file.rules[name], f"the assignment rule for {name}"
            return self._once("value at the start", name, lambda: _at_zero(self.read(rule, noun, self._start)))
        if self.is_variable(name):
            return self._per_size(name, self.initial(name))
        return self.now(name)

    def initial(self, name: str) -> Expression:
        """The amount of a species, or the value of another thing, at time 0."""
        return self._once("initial value", name, lambda: self._initial(name))

    def _initial(self, name: str) -> Expression:
        file = self.file
        if name in file.assigned:
            assigned = self.read(file.assigned[name], f"the initial assignment of {name}", self._start)
            return self.amount_set(name, _at_zero(assigned))
        if name in file.species:
            return self._initial_amount(name, file.species[name])
        element = file.parameters.get(name) or file.compartments[name]
        value = float(element.getValue() if name in file.parameters else element.getSize())
        if not math.isfinite(value):
            self.fail(f"{name} has no finite value at the start", element, f'write value="..." at {name}')
        return number(value)

    def _initial_amount(self, name: str, species: Element) -> Expression:
        if species.isSetInitialAmount():
            amount = float(species.getInitialAmount())
        elif species.isSetInitialConcentration():
            compartment = self.file.compartments[species.getCompartment()]
            size = self._size(compartment, f"{name} begins with a concentration in it")
            amount = float(species.getInitialConcentration())
            if size.names:
                return Operation("*", (number(amount), size))
            amount *= float(size.evaluate({}))
        else:
            remedy = 'write initialAmount="0", or an initial assignment'
            self.fail(f"the species {name} has no amount at the start", species, remedy)
        if not math.isfinite(amount):
            self.fail(f"the species {name} begins with {amount:g}", species, "it must be a finite number")
        return number(amount)

    # What the intermediate form is given.

    def variables(self) -> tuple[Variable, ...]:
        """What changes: species, and parameters that events set."""
        counts = [self._count(name) for name in self.file.species if self.is_variable(name)]
        real = [name for name in self.file.parameters if self.is_variable(name)]
        return (*counts, *(Variable(name, self.initial(name), None, None, whole=False) for name in real))

    def _count(self, name: str) -> Variable:
        initial = self.initial(name)
        low, high = self.file.bounds.get(name, (0, None))
        if initial.names:
            return Variable(name, initial, low, high)
        amount = float(initial.evaluate({}))
        count = whole(amount)
        if count is None or not Variable(name, initial, low, high).allows(count):
            where = self.file.assigned.get(name, self.file.species[name])
            remedy = "amounts are numbers of molecules here, not moles: whole numbers from 0 on"
            if count is not None and count >= 0:
                remedy = "a constraint of the model forbids it"
            self.fail(f"the species {name} begins with {number_text(amount)}", where, remedy)
        return Variable(name, initial if count == amount else number(float(count)), low, high)

    def parameters(self) -> tuple[Parameter, ...]:
        """What a user may choose: global parameters that nothing sets, and those of single reactions."""
        file = self.file
        kept = set(file.parameters) - {*file.rules, *file.assigned, *file.by_event, *self.fixed}
        parameters = [self._parameter(name, each) for name, each in file.parameters.items() if name in kept]
        for reaction, names in file.local.items():
            local = local_parameters(file.reactions[reaction])
            parameters += [self._parameter(names[each.getId()], each) for each in local]
        return tuple(parameters)

    def _parameter(self, name: str, element: Element) -> Parameter:
        value = float(element.getValue()) if element.isSetValue() else math.nan
        if math.isinf(value):
            self.fail(f"the parameter {name} is infinite", element, "give it a finite value")
        return Parameter(name, None if math.isnan(value) else value)

    def constants(self, read: Set[str]) -> tuple[Constant, ...]:
        """What no run changes, each after those it reads; compartments only if they are among those `read`."""
        values = dict(self._constant_values())
        placed: dict[str, Constant] = {}
        path: list[str] = []  # from a constant to one that it reads, by way of others

        def place(name: str) -> None:
            if name in path:
                circle = " -> ".join([*path[path.index(name) :], name])
                self.fail(f"{path[-1]} is defined by itself: {circle}", self.file.setter(path[-1]))
            path.append(name)
            for each in values[name].names:
                if each in values and each not in placed:
                    place(each)
            path.pop()
            placed[name] = Constant(name, values[name])

        for name in values:
            if name not in placed and (name not in self.file.compartments or name in read):
                place(name)
        return tuple(placed.values())

    def _constant_values(self) -> Iterator[tuple[str, Expression]]:
        """What no run changes, in the order of the file; sizes that are not given are left out."""
        file = self.file
        for name in (*file.compartments, *file.parameters, *file.species):
            if name in file.by_event or self.is_variable(name) or self.moves_by_rule(name):
                continue
            if name in file.rules:
                yield name, self.amount_set(name, self._ruled(name))
            elif name in file.assigned or name in file.species or name in self.fixed or self._has_size(name):
                yield name, self.initial(name)

    # Stoichiometries.

    def stoichiometry(self, reference: Element, noun: str) -> int:
        """How many of a species take part in a reaction: a whole number that no run changes."""
        name, remedy = reference.getId(), "it must be a fixed whole number"
        if name in self.file.by_event:
            self.fail(f"{noun} is changed by an event", self.file.by_event[name], remedy)
        setter, lookup = self.file.rules.get(name), self.now
        if setter is None and reference.isSetStoichiometryMath():
            setter = reference.getStoichiometryMath()
        if setter is None and name in self.file.assigned:
            setter, lookup = self.file.assigned[name], self._start
        if setter is not None:
            value = self.fixed_value(as_number(self.read(setter, noun, lookup)), setter, noun)
        elif reference.isSetStoichiometry() or reference.getLevel() < 3:
            value = float(reference.getStoichiometry())
        else:
            self.fail(f"{noun} has no value", reference, 'write stoichiometry="1"')
        count = whole(value)
        if count is None or count < 0:
            self.fail(f"{noun} is {number_text(value)}", reference, "it must be a whole number from 0 on")
        return count

    def fixed_value(self, expression: Expression, element: Element, noun: str) -> float:
        """The value of an expression on which the form of the model depends; the parameters in it become constants."""
        values: dict[str, float] = {}
        for name in expression.names:
            parameter = self.file.parameters.get(name)
            if parameter is None or self.file.setter(name) is not parameter or not parameter.isSetValue():
                self.fail(f"{noun} depends on {name}", element, "it must be a fixed whole number")
            self.fixed.add(name)
            values[name] = float(parameter.getValue())
        return float(expression.evaluate(values))

    def _once(self, kind: str, name: str, make: Callable[[], Expression]) -> Expression:
        """What `make` makes, made once; what depends on itself is refused."""
        key = (kind, name)
        if key not in self._known:
            circle = [each for _, each in self._in_progress] + [name]
            if key in self._in_progress:
                loop = " -> ".join(circle[self._in_progress.index(key) :])
                self.fail(f"the {kind} of {name} depends on itself: {loop}", self.file.setter(name))
            if len(circle) > _MOST_NESTED:
                message = f"more than {_MOST_NESTED} values are read by way of each other: {' -> '.join(circle)}"
                self.fail(message, self.file.setter(name))
            self._in_progress.append(key)
            try:
                self._known[key] = make()
            finally:
                self._in_progress.pop()
        return self._known[key]


def _at_zero(expression: Expression) -> Expression:
    return expression.substitute({SBML_TIME.name: Number(0.0)})
