"""A model as SBML, Level 3 Version 2: amounts in one compartment, rates as kinetic laws, events with priorities.

A guard becomes a piecewise rate that is 0 where it does not hold; bounds become constraints, which SBML too holds to be
errors when they are broken. What SBML cannot say is refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sateen.core.errors import ModelError
from sateen.language.expression import Boolean, Expression, Name, Number, Operation, number
from sateen.model.model import CLOCK, Event, Model, Transition, Variable, new_name

__all__ = ["write_sbml"]

_CORE: Final = "http://www.sbml.org/sbml/level3/version2/core"
_MATH: Final = "http://www.w3.org/1998/Math/MathML"
_TIME: Final = "http://www.sbml.org/sbml/symbols/time"
_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_INTEGER: Final = 2**31
_TAGS: Final[Mapping[str, str]] = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "^": "power",
    "log": "ln",
    "sqrt": "root",
    "ceil": "ceiling",
    "<": "lt",
    "<=": "leq",
    ">": "gt",
    ">=": "geq",
    "==": "eq",
    "!=": "neq",
    **{symbol: symbol for symbol in ("and", "or", "not", "min", "max", "abs", "exp", "floor")},
}


def write_sbml(model: Model) -> str:
    """The text of an SBML file that reads back as an equal model, up to brackets that change nothing.

    >>> decay = Model.parse("species X = 10\\nparameter k = 0.5\\ndecay: X -> 0 @ k * X")
    >>> print(write_sbml(decay).splitlines()[2].strip())
    <model substanceUnits="item" extentUnits="item">
    """
    _check(model)
    compartment = new_name("compartment", {*model.names, *model.happening})
    root = Element("sbml", {"xmlns": _CORE, "level": "3", "version": "2"})
    body = SubElement(root, "model", {"substanceUnits": "item", "extentUnits": "item"})
    compartments = SubElement(body, "listOfCompartments")
    SubElement(compartments, "compartment", {"id": compartment, "size": "1", "constant": "true"})
    counts = [variable for variable in model.variables if variable.whole]
    _list(body, "listOfSpecies", [_species(variable, compartment) for variable in counts])
    _list(body, "listOfParameters", _parameters(model))
    _list(body, "listOfInitialAssignments", _initial_assignments(model))
    _list(body, "listOfConstraints", [bound for variable in counts for bound in _constraints(variable)])
    species = {variable.name for variable in counts}
    _list(body, "listOfReactions", [_reaction(transition, species) for transition in model.transitions])
    _list(body, "listOfEvents", [_event(each, len(model.events) - place) for place, each in enumerate(model.events)])
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _check(model: Model) -> None:
    """Refuses names that are no ids, or not unique, and numbers that nothing changes."""
    seen: set[str] = set()
    for name in (*model.names, *model.happening):
        if not _ID.fullmatch(name):
            raise ModelError(f"SBML cannot say the name {name}", remedy="ids are of letters, digits and _: rename it")
        if name in seen:
            raise ModelError(f"two things are called {name}, and SBML has one id for each", remedy="rename one of them")
        seen.add(name)
    set_by_events = {name for event in model.events for name, _ in event.update}
    for variable in model.variables:
        if not variable.whole and variable.name not in set_by_events:
            raise ModelError(f"no event sets the real number {variable.name}", remedy="make it a parameter")


def _list(parent: Element, tag: str, elements: Iterable[Element]) -> None:
    """A list of elements, if there are any."""
    found = list(elements)
    if found:
        SubElement(parent, tag).extend(found)


def _literal(expression: Expression) -> str | None:
    """The text of an expression that is a number of either sign; None for any other."""
    negative = isinstance(expression, Operation) and expression.symbol == "-"
    inner = expression.children[0] if negative else expression
    if not isinstance(inner, Number):
        return None
    return ("-" if negative else "") + _digits(inner.literal)


def _digits(value: float) -> str:
    """All digits that a number needs, without an exponent: libsbml may round one that has one."""
    return format(Decimal(repr(float(value))).normalize(), "f")


def _species(variable: Variable, compartment: str) -> Element:
    element = Element("species", {"id": variable.name, "compartment": compartment})
    if (amount := _literal(variable.initial)) is not None:
        element.set("initialAmount", amount)
    for key, value in (("hasOnlySubstanceUnits", "true"), ("boundaryCondition", "false"), ("constant", "false")):
        element.set(key, value)
    return element


def _parameters(model: Model) -> Iterable[Element]:
    for constant in model.constants:
        yield Element("parameter", {"id": constant.name, "constant": "true"})
    for parameter in model.parameters:
        element = Element("parameter", {"id": parameter.name, "constant": "true"})
        if parameter.default is not None:
            element.set("value", _literal(number(parameter.default)) or "")
        yield element
    for variable in model.variables:
        if not variable.whole:
            element = Element("parameter", {"id": variable.name, "constant": "false"})
            if (value := _literal(variable.initial)) is not None:
                element.set("value", value)
            yield element


def _initial_assignments(model: Model) -> Iterable[Element]:
    """Of constants, always: it is by them that they are not parameters; of variables where it takes a formula."""
    values = [(constant.name, constant.value) for constant in model.constants]
    values += [(each.name, each.initial) for each in model.variables if _literal(each.initial) is None]
    for name, value in values:
        element = Element("initialAssignment", {"symbol": name})
        element.append(_math(value))
        yield element


def _constraints(variable: Variable) -> Iterable[Element]:
    """The bounds that a species has not by itself; without a lower one, that it is above minus infinity."""
    limits: list[tuple[str, float]] = []
    if variable.low != 0:
        limits.append(("geq", -math.inf if variable.low is None else float(variable.low)))
    if variable.high is not None:
        limits.append(("leq", float(variable.high)))
    for tag, limit in limits:
        comparison = _apply(tag, [_node(Name(variable.name))])
        comparison.append(_apply("minus", [Element("infinity")]) if math.isinf(limit) else _node(number(limit)))
        element = Element("constraint")
        SubElement(element, "math", {"xmlns": _MATH}).append(comparison)
        yield element


def _reaction(transition: Transition, species: set[str]) -> Element:
    consumed, produced = _sides(transition)
    rate = transition.rate
    if transition.guard is not None:
        rate = Operation("if", (transition.guard, rate, Number(0.0)))
    element = Element("reaction", {"id": transition.name, "reversible": "false"})
    for tag, side in (("listOfReactants", consumed), ("listOfProducts", produced)):
        _list(element, tag, [_reference(name, count) for name, count in side.items()])
    read = [name for name in rate.names if name in species and name not in consumed and name not in produced]
    _list(element, "listOfModifiers", [Element("modifierSpeciesReference", {"species": name}) for name in read])
    SubElement(element, "kineticLaw").append(_math(rate))
    return element


def _sides(transition: Transition) -> tuple[dict[str, int], dict[str, int]]:
    consumed, produced = dict(transition.consumed), dict(transition.produced)
    for name, value in transition.update:
        match value:
            case Operation("+", (Name(same), Number(step))) if same == name and step.is_integer():
                produced[name] = produced.get(name, 0) + int(step)
            case Operation("+", (Name(same), Operation("-", (Number(step),)))) if same == name and step.is_integer():
                consumed[name] = consumed.get(name, 0) + int(step)
            case _:
                remedy = "a reaction of SBML adds and takes away fixed numbers of molecules"
                raise ModelError(f"{transition.name} sets {name} to {value}, which SBML cannot say", remedy=remedy)
    return consumed, produced


def _reference(name: str, count: int) -> Element:
    return Element("speciesReference", {"species": name, "stoichiometry": str(count), "constant": "true"})


def _event(event: Event, priority: int) -> Element:
    element = Element("event", {"id": event.name, "useValuesFromTriggerTime": "true"})
    settings = {"initialValue": "true" if event.initially else "false", "persistent": "true"}
    SubElement(element, "trigger", settings).append(_math(event.trigger))
    SubElement(element, "priority").append(_math(Number(float(priority))))
    assignments = []
    for name, value in event.update:
        assignment = Element("eventAssignment", {"variable": name})
        assignment.append(_math(value))
        assignments.append(assignment)
    _list(element, "listOfEventAssignments", assignments)
    return element


def _math(expression: Expression) -> Element:
    element = Element("math", {"xmlns": _MATH})
    element.append(_node(expression))
    return element


def _node(expression: Expression) -> Element:
    match expression:
        case Number(value):
            return _number(value)
        case Boolean(value):
            return Element("true" if value else "false")
        case Name(name) if name == CLOCK:
            return _text(Element("csymbol", {"encoding": "text", "definitionURL": _TIME}), name)
        case Name(name):
            return _text(Element("ci"), name)
        case Operation("if", (condition, then, otherwise)):
            choice = Element("piecewise")
            SubElement(choice, "piece").extend([_node(then), _node(condition)])
            SubElement(choice, "otherwise").append(_node(otherwise))
            return choice
        case Operation(symbol, operands):
            return _apply(_TAGS[symbol], map(_node, operands))
    raise ModelError(f"SBML cannot say {expression}")


def _number(value: float) -> Element:
    digits = _digits(value)
    small = "." not in digits and value < _LARGEST_INTEGER
    return _text(Element("cn", {"type": "integer"} if small else {}), digits)


def _apply(tag: str, operands: Iterable[Element]) -> Element:
    element = Element("apply")
    SubElement(element, tag)
    element.extend(operands)
    return element


def _text(element: Element, text: str) -> Element:
    element.text = f" {text} "
    return element
