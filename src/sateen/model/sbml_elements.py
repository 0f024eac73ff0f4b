"""The elements of an SBML file, by their ids, and where they stand in its text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn

from sateen.core.errors import ModelError
from sateen.model.sbml_math import library

__all__ = ["Elements", "Source", "listed", "local_parameters", "whole"]

_LARGEST: Final = 2**53
_CLOSE: Final = 1e-9  # relative: a product such as 0.7 * 10 is a whole number up to rounding


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where in it an element of the file that the library read stands."""

    text: str
    find: Callable[[Any], int]

    def fail(self, message: str, element: Any, remedy: str = "") -> NoReturn:
        """Refuses an element, and points to it."""
        raise ModelError(message, self.text, self.find(element), remedy)

    def note(self, message: str, element: Any) -> str:
        """A remark on an element, with its line."""
        return f"line {self.text.count(chr(10), 0, self.find(element)) + 1}: {message}"


@dataclass(frozen=True, slots=True)
class Elements:
    """What a model has, by id, in the order of the file; rules and assignments are found by what they set.

    A rule stands after those that it reads. `by_event` are the assignments of events; `local` is, for each reaction,
    what its own parameters are called in the whole model. `bounds` are those that constraints such as X <= 10 give to
    amounts; `unwatched` are the other constraints.
    """

    source: Source
    species: Mapping[str, Any]
    parameters: Mapping[str, Any]
    compartments: Mapping[str, Any]
    reactions: Mapping[str, Any]
    references: Mapping[str, Any]
    functions: Mapping[str, Any]
    rules: Mapping[str, Any]
    assigned: Mapping[str, Any]
    by_event: Mapping[str, Any]
    local: Mapping[str, Mapping[str, str]]
    bounds: Mapping[str, tuple[int | None, int | None]]
    unwatched: tuple[Any, ...]

    @classmethod
    def of(cls, model: Any, source: Source) -> Elements:
        """The elements of the library's model; rules of kinds that are not supported are refused."""
        reactions = _by_id(model.getListOfReactions())
        sides = [side for each in reactions.values() for side in (each.getListOfReactants(), each.getListOfProducts())]
        references = {each.getId(): each for side in sides for each in listed(side) if each.getId()}
        species, parameters = _by_id(model.getListOfSpecies()), _by_id(model.getListOfParameters())
        compartments = _by_id(model.getListOfCompartments())
        events = [
            each for event in listed(model.getListOfEvents()) for each in listed(event.getListOfEventAssignments())
        ]
        return cls(
            source,
            species,
            parameters,
            compartments,
            reactions,
            references,
            _by_id(model.getListOfFunctionDefinitions()),
            _rules(model, source),
            {each.getSymbol(): each for each in _with_formula(listed(model.getListOfInitialAssignments()))},
            {each.getVariable(): each for each in _with_formula(events)},
            _local_names(reactions, [*species, *parameters, *compartments, *reactions, *references]),
            *_bounds(_with_formula(listed(model.getListOfConstraints())), species),
        )

    def setter(self, name: str) -> Any:
        """The element that sets an id, or else the one that has it."""
        places = (self.rules, self.assigned, self.by_event, self.species, self.parameters, self.compartments)
        return next((place[name] for place in (*places, self.reactions, self.references) if name in place), None)


def listed(elements: Any) -> list[Any]:
    """The elements of one of the library's lists."""
    return [elements.get(index) for index in range(elements.size())]


def local_parameters(reaction: Any) -> list[Any]:
    """The parameters that only the kinetic law of a reaction reads."""
    law = reaction.getKineticLaw()
    if law is None:
        return []
    return listed(law.getListOfLocalParameters()) or listed(law.getListOfParameters())


def whole(value: float) -> int | None:
    """The whole number that a value is up to rounding, if it is one that can be counted exactly."""
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return None
    return round(value) if abs(value - round(value)) <= _CLOSE * max(1.0, abs(value)) else None


def _by_id(elements: Any) -> dict[str, Any]:
    return {each.getId(): each for each in listed(elements)}


def _with_formula(elements: Iterable[Any]) -> list[Any]:
    """Level 3 Version 2 lets formulas be left out; what has none says nothing."""
    return [each for each in elements if each.getMath() is not None]


def _rules(model: Any, source: Source) -> dict[str, Any]:
    found = {}
    for rule in listed(model.getListOfRules()):
        if rule.isAlgebraic():
            source.fail("an algebraic rule is not supported", rule, "solve it by hand, and write an assignment rule")
        if rule.isRate():
            remedy = "a stochastic model moves by reactions and events only"
            source.fail(f"the rate rule for {rule.getVariable()} is not supported", rule, remedy)
        if rule.getMath() is not None:
            found[rule.getVariable()] = rule
    reads = {name: [each for each in _names_in(rule.getMath()) if each in found] for name, rule in found.items()}
    try:
        return {name: found[name] for name in TopologicalSorter(reads).static_order()}
    except CycleError as error:
        circle: list[str] = error.args[1]
        source.fail(f"the assignment rule for {circle[0]} depends on itself: {' -> '.join(circle)}", found[circle[0]])


def _names_in(formula: Any) -> set[str]:
    found: set[str] = set()
    waiting = [formula]
    while waiting:
        node = waiting.pop()
        if node.isName():
            found.add(node.getName())
        waiting += [node.getChild(index) for index in range(node.getNumChildren())]
    return found


def _local_names(reactions: Mapping[str, Any], others: list[str]) -> dict[str, dict[str, str]]:
    """A parameter of one reaction keeps its name if no other thing has it; else the reaction's name is put before."""
    own = {name: [each.getId() for each in local_parameters(reaction)] for name, reaction in reactions.items()}
    uses = Counter([*others, *(each for names in own.values() for each in names)])
    taken = set(uses)
    found: dict[str, dict[str, str]] = {}
    for reaction, names in own.items():
        found[reaction] = {}
        for name in names:
            called = name if uses[name] == 1 else f"{reaction}_{name}"
            while called != name and called in taken:
                called += "_"
            taken.add(called)
            found[reaction][name] = called
    return found


def _bounds(
    constraints: list[Any], species: Mapping[str, Any]
) -> tuple[dict[str, tuple[int | None, int | None]], tuple[Any, ...]]:
    """The bounds of amounts that constraints give, and the constraints that are none."""
    libsbml = library()
    found: dict[str, tuple[int | None, int | None]] = {}
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
        low, high = found.get(name, (0, None))
        found[name] = (bound, high) if side == 0 else (low, bound)
    return found, tuple(others)


def _limit(node: Any) -> float:
    """A whole number or an infinity, of either sign; NaN for anything else."""
    sign = 1.0
    if node.isUMinus():
        sign, node = -1.0, node.getChild(0)
    value = sign * float(node.getValue()) if node.isNumber() else math.nan
    return value if math.isinf(value) or whole(value) is not None else math.nan
