"""The elements of an SBML file, by their ids, and where they stand in its text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, NoReturn, TypeAlias

from sateen.core.errors import ModelError
from sateen.language.expression import LARGEST_WHOLE
from sateen.model.model import new_name
from sateen.model.sbml_math import Element, children_of, library

__all__ = ["Elements", "Source", "listed", "local_parameters", "whole"]

ById: TypeAlias = Mapping[str, Element]
Bounds: TypeAlias = tuple[int | None, int | None]

_CLOSE: Final = 1e-9  # relative: a product such as 0.7 * 10 is a whole number up to rounding


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


class Elements:
    """What a model has, by id, in the order of the file; rules and assignments are found by what they set.

    A rule stands after those that it reads; rules of kinds that are not supported are refused. `by_event` are the
    assignments of events; `local` is, for each reaction, what its local parameters are called in the whole model.
    `bounds` are those that constraints such as X <= 10 give to amounts; `unwatched` are the other constraints.
    """

    def __init__(self, model: Element, source: Source) -> None:
        self.source = source
        self.species = _by_id(model.getListOfSpecies())
        self.parameters = _by_id(model.getListOfParameters())
        self.compartments = _by_id(model.getListOfCompartments())
        self.functions = _by_id(model.getListOfFunctionDefinitions())
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

    def setter(self, name: str) -> Element:
        """The element that sets an id, or else the one that has it."""
        places = (self.rules, self.assigned, self.by_event, self.species, self.parameters, self.compartments)
        return next((place[name] for place in (*places, self.reactions, self.references) if name in place), None)


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
