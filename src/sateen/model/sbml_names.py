"""What the ids in an SBML file stand for: species, parameters, compartments, rules and rates, now and at the start.

Amounts are numbers of molecules. Where a species is measured by its concentration, a formula that reads it reads the
amount divided by the size of its compartment, and what sets it sets the concentration times that size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, NoReturn, TypeAlias

from sateen.core.errors import ModelError
from sateen.core.text import number_text
from sateen.language.expression import LARGEST_WHOLE, Expression, Name, Number, Operation, number
from sateen.language.grammar import Mistake
from sateen.model.checks import MOST_MOLECULES
from sateen.model.model import new_name
from sateen.model.sbml_math import SBML_TIME, Element, Functions, as_number, children_of, library

ById: TypeAlias = Mapping[str, Element]
Bounds: TypeAlias = tuple[int | None, int | None]

_CLOSE: Final = 1e-9  # relative: a product such as 0.7 * 10 is a whole number up to rounding
_MOST_NESTED: Final = 20  # values at the start that are read by way of each other


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where in it an element of the file that the library read stands."""

    text: str
    find: Callable[[Element], int]

    def fail(self, message: str, element: Element, remedy: str = "") -> NoReturn:
        """Refuses an element, and points to it."""
        raise ModelError(message, self.text, self.find(element), remedy)

    def note(self, message: str, element: Element) -> str:
        """A remark on an element, with its line."""
        return f"line {self.text.count(chr(10), 0, self.find(element)) + 1}: {message}"


class Names:
    """Every id of a model and what it stands for, in the order of the file; what sets an id is found by that id.

    A rule stands after those that it reads; rules of kinds that are not supported are refused. `by_event` are the
    assignments of events; `local` is, for each reaction, what its local parameters are called in the whole model.
    `bounds` are those that constraints such as X <= 10 give to amounts; `unwatched` are the other constraints.
    `fixed` are the parameters on which the form of the model depends.
    """

    def __init__(self, model: Element, source: Source) -> None:
        self.source = source
        self.fail = source.fail
        self.species = _by_id(model.getListOfSpecies())
        self.parameters = _by_id(model.getListOfParameters())
        self.compartments = _by_id(model.getListOfCompartments())
        self.reactions = _by_id(model.getListOfReactions())
        lists = [(each.getListOfReactants(), each.getListOfProducts()) for each in self.reactions.values()]
        references = [each for sides in lists for side in sides for each in listed(side)]
        self.references = {each.getId(): each for each in references if each.getId()}
        self.rules = _rules(model, source)
        assigned = _with_formula(listed(model.getListOfInitialAssignments()))
        self.assigned = {each.getSymbol(): each for each in assigned}
        events = listed(model.getListOfEvents())
        by_event = _with_formula(each for event in events for each in listed(event.getListOfEventAssignments()))
        self.by_event = {each.getVariable(): each for each in by_event}
        ids = [*self.species, *self.parameters, *self.compartments, *self.reactions, *self.references]
        self.local = _local_names(self.reactions, ids)
        self.bounds, self.unwatched = _bounds(_with_formula(listed(model.getListOfConstraints())), self.species)
        self.fixed: set[str] = set()
        self._functions = Functions(_by_id(model.getListOfFunctionDefinitions()))
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
            return self._per_size(name, Name(name))
        if name in self.reactions:
            return self.rate(name)
        if name in self.references:
            return Number(float(self.stoichiometry(self.references[name], f"the stoichiometry {name}")))
        if name in self.compartments:
            self._size(self.compartments[name], f"{name} is read in a formula")
        elif name not in self.parameters:
            raise Mistake(f"nothing is called {name}")
        return Name(name)

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

        rate = as_number(self.read(law, f"the rate of {name}", inside))
        if SBML_TIME.name in rate.names:
            remedy = "between two reactions a rate must not change; an event can switch it at a time"
            self.fail(f"the rate of {name} depends on time", law, remedy)
        return rate

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
        """Whether reactions or events may change what an id stands for."""
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
        if name in self.reactions:
            raise Mistake(f"the rate of {name} is not known before the start", remedy="write the rate itself")
        if self.moves_by_rule(name):
            rule, noun = self.rules[name], f"the assignment rule for {name}"
            return self._once("value at the start", name, lambda: _at_zero(self.read(rule, noun, self._start)))
        if self.is_variable(name):
            return self._per_size(name, self.initial(name))
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
            value = float(reference.getStoichiometry())
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


def listed(elements: Element) -> list[Element]:
    """The elements of one of the library's lists."""
    return [elements.get(index) for index in range(elements.size())]


def local_parameters(reaction: Element) -> list[Element]:
    """The parameters that only the kinetic law of a reaction reads."""
    law = reaction.getKineticLaw()
    if law is None:
        return []
    return listed(law.getListOfLocalParameters()) or listed(law.getListOfParameters())


def whole(value: float) -> int | None:
    """The whole number that a value is up to rounding, if it is one that can be counted exactly."""
    if not math.isfinite(value) or abs(value) >= LARGEST_WHOLE:
        return None
    return round(value) if abs(value - round(value)) <= _CLOSE * max(1.0, abs(value)) else None


def _by_id(elements: Element) -> dict[str, Element]:
    return {each.getId(): each for each in listed(elements)}


def _with_formula(elements: Iterable[Element]) -> list[Element]:
    """Level 3 Version 2 lets formulas be left out; what has none says nothing."""
    return [each for each in elements if each.getMath() is not None]


def _rules(model: Element, source: Source) -> dict[str, Element]:
    rules = {}
    for rule in listed(model.getListOfRules()):
        if rule.isAlgebraic():
            source.fail("an algebraic rule is not supported", rule, "solve it by hand, and write an assignment rule")
        if rule.isRate():
            remedy = "a stochastic model moves by reactions and events only"
            source.fail(f"the rate rule for {rule.getVariable()} is not supported", rule, remedy)
        if rule.getMath() is not None:
            rules[rule.getVariable()] = rule
    reads = {name: [each for each in _names_in(rule.getMath()) if each in rules] for name, rule in rules.items()}
    try:
        return {name: rules[name] for name in TopologicalSorter(reads).static_order()}
    except CycleError as error:
        circle: list[str] = error.args[1]
        source.fail(f"the assignment rule for {circle[0]} depends on itself: {' -> '.join(circle)}", rules[circle[0]])


def _names_in(formula: Element) -> list[str]:
    names: list[str] = []
    waiting = [formula]
    while waiting:
        node = waiting.pop()
        if node.isName():
            names.append(node.getName())
        waiting += children_of(node)
    return names


def _local_names(reactions: ById, others: list[str]) -> dict[str, dict[str, str]]:
    """A parameter of one reaction keeps its name if nothing else has it; else the reaction's name is its prefix."""
    local = {name: [each.getId() for each in local_parameters(reaction)] for name, reaction in reactions.items()}
    uses = Counter([*others, *(each for names in local.values() for each in names)])
    taken = set(uses)
    return {
        reaction: {name: name if uses[name] == 1 else new_name(f"{reaction}_{name}", taken) for name in names}
        for reaction, names in local.items()
    }


def _bounds(constraints: list[Element], species: ById) -> tuple[dict[str, Bounds], tuple[Element, ...]]:
    """The bounds of amounts that constraints give, and the constraints that are none."""
    libsbml = library()
    bounds: dict[str, Bounds] = {}
    others = []
    for constraint in constraints:
        formula = constraint.getMath()
        side = {libsbml.AST_RELATIONAL_GEQ: 0, libsbml.AST_RELATIONAL_LEQ: 1}.get(formula.getType())
        named = formula.getChild(0) if side is not None and formula.getNumChildren() == 2 else None
        name = named.getName() if named is not None and named.isName() else ""
        limit = _limit(formula.getChild(1)) if name in species else math.nan
        if math.isnan(limit) or not species[name].getHasOnlySubstanceUnits() or limit == math.inf:
            others.append(constraint)
            continue
        bound = None if math.isinf(limit) else round(limit)
        low, high = bounds.get(name, (0, None))
        bounds[name] = (bound, high) if side == 0 else (low, bound)
    return bounds, tuple(others)


def _limit(node: Element) -> float:
    """A whole number or an infinity, of either sign; NaN for anything else."""
    sign = 1.0
    if node.isUMinus():
        sign, node = -1.0, node.getChild(0)
    value = sign * float(node.getValue()) if node.isNumber() else math.nan
    return value if math.isinf(value) or whole(value) is not None else math.nan


def _at_zero(expression: Expression) -> Expression:
    return expression.substitute({SBML_TIME.name: Number(0.0)})
