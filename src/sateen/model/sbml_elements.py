"""The elements of an SBML file: where they stand, and what rules, constraints and ids say by themselves."""

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

ById: TypeAlias = Mapping[str, Element]
Bounds: TypeAlias = tuple[int | None, int | None]

REMARKS: Final = ("urn:sateen:model", "remarks")  # namespace and tag of what sateen writes into an annotation
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
    """The whole number that a value is up to rounding, if it is one that can be counted exactly.

    Only 0 is 0: an amount of 1e-22 may be sixty molecules, in moles.
    """
    if not math.isfinite(value) or abs(value) >= LARGEST_WHOLE:
        return None
    count = round(value)
    if value and not count:
        return None
    return count if abs(value - count) <= _CLOSE * max(1.0, abs(value)) else None


def by_id(elements: Element) -> dict[str, Element]:
    """The elements of one of the library's lists, by their ids."""
    return {each.getId(): each for each in listed(elements)}


def with_formula(elements: Iterable[Element]) -> list[Element]:
    """Level 3 Version 2 lets formulas be left out; what has none says nothing."""
    return [each for each in elements if each.getMath() is not None]


def rules_of(model: Element, source: Source) -> dict[str, Element]:
    """The assignment rules by what they set, each after those that it reads; other rules are refused."""
    rules = {}
    for rule in listed(model.getListOfRules()):
        if rule.isAlgebraic():
            source.fail("an algebraic rule is not supported", rule, "solve it by hand, and write an assignment rule")
        if rule.isRate():
            remedy = "a stochastic model changes only by reactions and events"
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


def local_names(reactions: ById, others: list[str]) -> dict[str, dict[str, str]]:
    """A parameter of one reaction keeps its name if nothing else has it; else the reaction's name is its prefix."""
    local = {name: [each.getId() for each in local_parameters(reaction)] for name, reaction in reactions.items()}
    uses = Counter([*others, *(each for names in local.values() for each in names)])
    taken = set(uses)
    return {
        reaction: {name: name if uses[name] == 1 else new_name(f"{reaction}_{name}", taken) for name in names}
        for reaction, names in local.items()
    }


def bounds_of(constraints: list[Element], species: ById) -> tuple[dict[str, Bounds], tuple[Element, ...]]:
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


def remarks_of(model: Element) -> str:
    """The lines of model text in the annotation of a model, which say what SBML has no place for."""
    annotation = model.getAnnotation()
    parts = [] if annotation is None else children_of(annotation)
    ours = [each for part in parts if (part.getURI(), part.getName()) == REMARKS for each in children_of(part)]
    return "\n".join(each.getCharacters() for each in ours if each.isText())


def flattened(document: Element, source: Source) -> str:
    """The text of the plain model that one composed of submodels, by the package comp, stands for.

    No other file is opened: definitions in other files were refused before. The text is read like any other then, with
    every check.
    """
    libsbml = library()
    properties = libsbml.ConversionProperties()
    properties.addOption("flatten comp", True)
    properties.addOption("leavePorts", False)
    properties.addOption("performValidation", False)
    properties.addOption("abortIfUnflattenable", "requiredOnly")
    if document.convert(properties) != libsbml.LIBSBML_OPERATION_SUCCESS:
        errors = [document.getError(index) for index in range(document.getNumErrors())]
        message = errors[-1].getShortMessage() if errors else "the library says nothing more"
        source.fail(f"this composed model cannot be flattened: {message}", document, "flatten it, or write it out")
    return str(libsbml.writeSBMLToString(document))
