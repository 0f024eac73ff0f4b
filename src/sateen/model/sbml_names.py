"""What the ids in an SBML file stand for: species, parameters, compartments, rules and rates, now and at the start.

Amounts are numbers of molecules, or of units of `scale` molecules each; then the state has the counts, and a formula
that reads an amount reads the count divided by the scale. Where a species is measured by its concentration, a formula
that reads it reads the amount divided by the size of its compartment, and what sets it sets the concentration times
that size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from sateen.core.text import number_text
from sateen.language.expression import Expression, Name, Number, Operation, number
from sateen.language.grammar import Mistake
from sateen.model.checks import MOST_MOLECULES
from sateen.model.model import new_name
from sateen.model.sbml_elements import Source, bounds_of, by_id, listed, local_names, rules_of, whole, with_formula
from sateen.model.sbml_math import AVOGADRO, AVOGADRO_2006, SBML_TIME, Element, Functions, as_number

_ONE: Final = Number(1.0)
_MOST_NESTED: Final = 20  # values at the start that are read by way of each other


class Names:
    """Every id of a model and what it stands for, in the order of the file; what sets an id is found by that id.

    A rule stands after those that it reads; rules of kinds that are not supported are refused. `by_event` are the
    assignments of events; `local` is, for each reaction, what its local parameters are called in the whole model.
    `bounds` are those that constraints such as X <= 10 give to amounts; `unwatched` are the other constraints.
    `unsized` are compartments of Level 2 without a size, which get the size 1.
    `fixed` are the parameters on which the form of the model depends. `counts` are what the counts of species that
    move are called, and `molecules` is the name of the scale, or empty where amounts are counts.
    """

    def __init__(self, model: Element, source: Source, scaled: bool = False) -> None:
        self.source = source
        self.fail = source.fail
        self.species = by_id(model.getListOfSpecies())
        self.parameters = by_id(model.getListOfParameters())
        self.compartments = by_id(model.getListOfCompartments())
        self.unsized = _unsized(model, self.compartments.values())
        self.reactions = by_id(model.getListOfReactions())
        lists = [(each.getListOfReactants(), each.getListOfProducts()) for each in self.reactions.values()]
        references = [each for sides in lists for side in sides for each in listed(side)]
        self.references = {each.getId(): each for each in references if each.getId()}
        self.rules = rules_of(model, source)
        assigned = with_formula(listed(model.getListOfInitialAssignments()))
        self.assigned = {each.getSymbol(): each for each in assigned}
        events = listed(model.getListOfEvents())
        by_event = with_formula(each for event in events for each in listed(event.getListOfEventAssignments()))
        self.by_event = {each.getVariable(): each for each in by_event}
        ids = [*self.species, *self.parameters, *self.compartments, *self.reactions, *self.references]
        self.local = local_names(self.reactions, ids)
        self.bounds, self.unwatched = bounds_of(with_formula(listed(model.getListOfConstraints())), self.species)
        self.fixed: set[str] = set()
        self._owners: dict[str, str] = {}
        taken = {*ids, *(each for names in self.local.values() for each in names.values())}
        self.molecules = new_name("scale", taken) if scaled else ""
        movable = [name for name in self.species if self.is_variable(name)]
        self.counts = {name: new_name(f"{name}_count", taken) if scaled else name for name in movable}
        self._owners = {count: name for name, count in self.counts.items()}
        newest = (model.getLevel(), model.getVersion()) >= (3, 2)
        self._functions = Functions(by_id(model.getListOfFunctionDefinitions()), AVOGADRO if newest else AVOGADRO_2006)
        self._known: dict[tuple[str, str], Expression] = {}
        self._in_progress: list[tuple[str, str]] = []
        for name in self.rules:
            self.ruled(name)  # each after those that it reads

    def setter(self, name: str) -> Element:
        """The element that sets an id, or else the one that has it."""
        places = (self.rules, self.assigned, self.by_event, self.species, self.parameters, self.compartments)
        return next((place[name] for place in (*places, self.reactions, self.references) if name in place), None)

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
            return self.ruled(name)
        if name in self.species:
            return self.per_size(name, self.amount(name))
        if name in self.reactions:
            return self.rate(name)
        if name in self.references:
            return Number(float(self.stoichiometry(self.references[name], f"the stoichiometry {name}")))
        if name in self.compartments:
            self._size(self.compartments[name], f"{name} is read in a formula")
        elif name not in self.parameters:
            raise Mistake(f"nothing is called {name}")
        return Name(name)

    def amount(self, name: str) -> Expression:
        """The amount of a species, in the unit of the file."""
        count = Name(self.counts.get(name, name))
        return Operation("/", (count, Name(self.molecules))) if self.molecules and name in self.counts else count

    def rate(self, name: str) -> Expression:
        """The rate of a reaction, which its kinetic law says."""
        return self._once("rate", name, lambda: self._rate(self.reactions[name]))

    def _rate(self, reaction: Element) -> Expression:
        name, law = reaction.getId(), reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            remedy = "a stochastic model needs a rate: write one, such as k * X"
            self.fail(f"the reaction {name} has no kinetic law", reaction, remedy)
        local = self.local[name]

        def inside(read: str) -> Expression:
            return Name(local[read]) if read in local else self.now(read)

        return as_number(self.read(law, f"the rate of {name}", inside))

    def moves_by_rule(self, name: str) -> bool:
        """Whether a rule sets an id, and reads something that moves."""
        return name in self.rules and any(
            read == SBML_TIME.name or self.is_variable(read) for read in self.ruled(name).names
        )

    def ruled(self, name: str) -> Expression:
        """What an assignment rule sets an id to."""
        noun = f"the assignment rule for {name}"
        return self._once("assignment rule", name, lambda: self.read(self.rules[name], noun))

    def is_variable(self, name: str) -> bool:
        """Whether reactions or events may change what an id, or the count of one, stands for."""
        name = self._owners.get(name, name)
        if name in self.by_event:
            return True
        species = self.species.get(name)
        if species is None or name in self.rules:
            return False
        return not (species.getConstant() or species.getBoundaryCondition())

    # Sizes of compartments.

    def _size(self, compartment: Element, purpose: str) -> Expression:
        """The size of a compartment: a number, or its name where the number is computed."""
        name = compartment.getId()
        if name in self.by_event or self.moves_by_rule(name):
            remedy = "only compartments of constant size are supported"
            self.fail(f"the compartment {name} changes its size", self.setter(name), remedy)
        if name in self.rules or name in self.assigned:
            return Name(name)
        if not self.has_size(name):
            self.fail(f"the compartment {name} has no size, and {purpose}", compartment, 'write size="1"')
        return number(float(compartment.getSize()))

    def has_size(self, name: str) -> bool:
        """Whether an id is that of a compartment with a given size."""
        compartment = self.compartments.get(name)
        return compartment is not None and compartment.isSetSize() and math.isfinite(compartment.getSize())

    def _size_of(self, name: str) -> Expression | None:
        """The size that a concentration is multiplied by; None where a species is an amount, or the size is 1."""
        species = self.species.get(name)
        if species is None or species.getHasOnlySubstanceUnits():
            return None
        compartment = self.compartments[species.getCompartment()]
        if _is_point(compartment):
            return None
        size = self._size(compartment, f"{name} is measured by its concentration in it")
        if not size.names and float(size.evaluate({})) <= 0:
            self.fail(f"the compartment {compartment.getId()} has the size {size}", compartment, "it must be positive")
        return None if size == _ONE else Name(compartment.getId())

    def per_size(self, name: str, amount: Expression) -> Expression:
        """An amount of a species as formulas of the file read it: divided by the size of its compartment, or not."""
        size = self._size_of(name)
        return amount if size is None else Operation("/", (amount, size))

    def amount_set(self, name: str, value: Expression) -> Expression:
        """The amount of a species that is set to `value`, which may be a concentration; other things as they are."""
        size = self._size_of(name)
        return as_number(value) if size is None else Operation("*", (as_number(value), size))

    def observed(self) -> Iterator[tuple[str, Expression]]:
        """What formulas may read besides what the model has: amounts, concentrations `[S]`, and what rules set."""
        for name in self.rules:
            if self.moves_by_rule(name):
                yield name, self.amount_set(name, self.ruled(name))
        if self.molecules:
            yield from ((name, self.amount(name)) for name in self.counts)
        for name, species in self.species.items():
            place = species.getCompartment()
            sized = self.has_size(place) or place in self.rules or place in self.assigned
            if not sized or _is_point(self.compartments[place]):
                continue
            size = self.ruled(place) if place in self.rules else self._size(self.compartments[place], "")
            if SBML_TIME.name in size.names:
                remedy = "only compartments of constant size are supported"
                self.fail(f"the compartment {place} changes its size with time", self.setter(place), remedy)
            moves = self.moves_by_rule(name)
            amount = self.amount_set(name, self.ruled(name)) if moves else self.amount(name)
            if size != _ONE:
                yield f"[{name}]", Operation("/", (amount, size if self.moves_by_rule(place) else Name(place)))
            elif not (moves or self.is_variable(name)):  # else the model knows that [S] is the amount S
                yield f"[{name}]", amount

    # What holds at the start.

    def _start(self, name: str) -> Expression:
        """What an id reads as at time 0, from parameters and constants alone."""
        if name in self.reactions:
            raise Mistake(f"the rate of {name} is not known before the start", remedy="write the rate itself")
        if self.moves_by_rule(name):
            rule, noun = self.rules[name], f"the assignment rule for {name}"
            return self._once("value at the start", name, lambda: _at_zero(self.read(rule, noun, self._start)))
        if self.is_variable(name):
            return self.per_size(name, self.initial(name))
        return self.now(name)

    def initial(self, name: str) -> Expression:
        """The amount of a species, or the value of another thing, at time 0."""
        return self._once("initial value", name, lambda: self._initial(name))

    def _initial(self, name: str) -> Expression:
        if name in self.assigned:
            assigned = self.read(self.assigned[name], f"the initial assignment of {name}", self._start)
            return self.amount_set(name, _at_zero(assigned))
        if name in self.species:
            return self._initial_amount(name, self.species[name])
        element = self.parameters.get(name) or self.compartments[name]
        value = float(element.getValue() if name in self.parameters else element.getSize())
        if not math.isfinite(value):
            self.fail(f"{name} has no finite value at the start", element, f'write value="..." at {name}')
        return number(value)

    def _initial_amount(self, name: str, species: Element) -> Expression:
        if species.isSetInitialAmount():
            amount = float(species.getInitialAmount())
        elif species.isSetInitialConcentration():
            compartment = self.compartments[species.getCompartment()]
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

    # Stoichiometries.

    def stoichiometry(self, reference: Element, noun: str) -> int:
        """How many of a species take part in a reaction: a whole number that no run changes."""
        name, remedy = reference.getId(), "it must be a fixed whole number"
        if name in self.by_event:
            self.fail(f"{noun} is changed by an event", self.by_event[name], remedy)
        setter, lookup = self.rules.get(name), self.now
        if setter is None and reference.isSetStoichiometryMath():
            setter = reference.getStoichiometryMath()
        if setter is None and name in self.assigned:
            setter, lookup = self.assigned[name], self._start
        if setter is not None:
            value = self.fixed_value(as_number(self.read(setter, noun, lookup)), setter, noun)
        elif reference.isSetStoichiometry() or reference.getLevel() < 3:
            value = float(reference.getStoichiometry()) / (
                reference.getDenominator() or math.nan
            )  # of a Level 2 rational
        else:
            self.fail(f"{noun} has no value", reference, 'write stoichiometry="1"')
        count = whole(value)
        if count is None or count < 0:
            self.fail(f"{noun} is {number_text(value)}", reference, "it must be a whole number from 0 on")
        if count > MOST_MOLECULES:
            self.fail(f"{noun} is {count:,}", reference, f"it can be at most {MOST_MOLECULES:,}")
        return count

    def fixed_value(self, expression: Expression, element: Element, noun: str) -> float:
        """The value of an expression on which the form of the model depends; the parameters in it become constants."""
        values: dict[str, float] = {}
        for name in expression.names:
            parameter = self.parameters.get(name)
            if parameter is None or self.setter(name) is not parameter or not parameter.isSetValue():
                read = "time" if name == SBML_TIME.name else name
                self.fail(f"{noun} depends on {read}", element, "it must be a fixed whole number")
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
                self.fail(f"the {kind} of {name} depends on itself: {loop}", self.setter(name))
            if len(circle) > _MOST_NESTED:
                message = f"more than {_MOST_NESTED} values are read by way of each other: {' -> '.join(circle)}"
                self.fail(message, self.setter(name))
            self._in_progress.append(key)
            try:
                self._known[key] = make()
            finally:
                self._in_progress.pop()
        return self._known[key]


def _is_point(compartment: Element) -> bool:
    """Whether a compartment has no size, and species in it no concentration."""
    return bool(compartment.isSetSpatialDimensions() and compartment.getSpatialDimensionsAsDouble() == 0)


def _at_zero(expression: Expression) -> Expression:
    return expression.substitute({SBML_TIME.name: Number(0.0)})


def _unsized(model: Element, compartments: Iterable[Element]) -> list[Element]:
    """The compartments of Level 2 whose size nothing says, after they got the size 1."""
    set_elsewhere = {each.getSymbol() for each in listed(model.getListOfInitialAssignments())}
    set_elsewhere |= {each.getVariable() for each in listed(model.getListOfRules()) if not each.isAlgebraic()}
    found = []
    for each in compartments if model.getLevel() == 2 else ():
        if not (each.isSetSize() or _is_point(each) or each.getId() in set_elsewhere):
            each.setSize(1.0)
            found.append(each)
    return found
