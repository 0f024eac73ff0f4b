"""A model as SBML, Level 3 Version 2: amounts in one compartment, rates as kinetic laws, events with priorities.

A guard becomes a piecewise rate that is 0 where it does not hold; bounds become constraints, which SBML too holds to be
errors when they are broken. What SBML cannot say is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final
from xml.etree.ElementTree import Element, indent, tostring

from sateen.core.errors import ModelError
from sateen.language.expression import Boolean, Expression, Name, Number, Operation, concentrated, literal_value, number
from sateen.model.model import CLOCK, Event, Model, Transition, Variable, new_name
from sateen.model.readers import ModelReader
from sateen.model.sbml import read_sbml
from sateen.model.sbml_elements import REMARKS
from sateen.model.sbml_math import TAGS
from sateen.model.sbml_reactions import with_guard
from sateen.model.sbml_safety import MAX_BYTES
from sateen.model.written import assumed, observed

_CORE: Final = "http://www.sbml.org/sbml/level3/version2/core"
_MATH: Final = "http://www.w3.org/1998/Math/MathML"
_TIME: Final = "http://www.sbml.org/sbml/symbols/time"
_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_INTEGER: Final = 2**31


def write_sbml(model: Model) -> str:
    """The text of an SBML file that reads back as an equal model, up to brackets that change nothing.

    >>> decay = Model.parse("species X = 10\\nparameter k = 0.5\\ndecay: X -> 0 @ k * X")
    >>> print(write_sbml(decay).splitlines()[2].strip())
    <model substanceUnits="item" extentUnits="item">
    """
    _check(model)
    compartment = new_name("compartment", {*model.readable, *model.happening})
    counts = [variable for variable in model.variables if variable.whole]
    species = {variable.name for variable in counts}
    priorities = range(len(model.events), 0, -1)
    parts = {
        "listOfCompartments": [Element("compartment", {"id": compartment, "size": "1", "constant": "true"})],
        "listOfSpecies": [_species(variable, compartment) for variable in counts],
        "listOfParameters": _parameters(model),
        "listOfInitialAssignments": _initial_assignments(model),
        "listOfRules": _rules(model),
        "listOfConstraints": [bound for variable in counts for bound in _constraints(variable)],
        "listOfReactions": [_reaction(transition, species) for transition in model.transitions],
        "listOfEvents": [_event(event, priority) for event, priority in zip(model.events, priorities, strict=True)],
    }
    units = {"substanceUnits": "item", "extentUnits": "item"}
    root = _made(
        "sbml",
        {"xmlns": _CORE, "level": "3", "version": "2"},
        _made("model", units, *_annotation(model), *_lists(parts)),
    )
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _read(text: str, scale: float | str | None = None, split: bool = True) -> Model:
    return read_sbml(text, scale=scale, split=split).model


READER: Final = ModelReader(_read, write_sbml, takes_scale=True, max_bytes=MAX_BYTES)


def _check(model: Model) -> None:
    """Refuses names that are not ids, or not unique, and numbers that nothing changes."""
    seen: set[str] = set()
    if CLOCK in model.names:
        raise ModelError(f"in SBML {CLOCK} would be taken for the clock", remedy="give it another name")
    observables = [each.name for each in model.observables if not concentrated(each.name)]
    for name in (*model.names, *observables, *model.happening):
        if not _ID.fullmatch(name):
            raise ModelError(
                f"SBML cannot express the name {name}", remedy="ids are of letters, digits and _: rename it"
            )
        if name in seen:
            raise ModelError(f"two things are called {name}, and SBML has one id for each", remedy="rename one of them")
        seen.add(name)
    set_by_events = {name for event in model.events for name, _ in event.update}
    for variable in model.variables:
        if not variable.whole and variable.name not in set_by_events:
            raise ModelError(f"no event sets the real number {variable.name}", remedy="make it a parameter")


def _made(tag: str, attributes: Mapping[str, str], *children: Element, text: str | None = None) -> Element:
    element = Element(tag, dict(attributes))
    element.text = text
    element.extend(children)
    return element


def _lists(parts: Mapping[str, Iterable[Element]]) -> list[Element]:
    """Lists of elements by their tags, without those that are empty."""
    return [each for each in (_made(tag, {}, *elements) for tag, elements in parts.items()) if len(each)]


def _annotation(model: Model) -> Iterator[Element]:
    """What SBML has no place for, as lines of model text: concentrations, the order of observables, and assumptions."""
    lines = [*map(observed, model.observables)] if any(concentrated(each.name) for each in model.observables) else []
    lines += map(assumed, model.assumptions)
    if lines:
        namespace, tag = REMARKS
        yield _made("annotation", {}, _made(tag, {"xmlns": namespace}, text="\n".join(lines)))


def _literal(key: str, expression: Expression | None) -> dict[str, str]:
    """An attribute with a number of either sign; none for any other expression."""
    value = None if expression is None else literal_value(expression)
    return {} if value is None else {key: _digits(value)}


def _digits(value: float) -> str:
    """All digits that a number needs, without an exponent: libsbml may round one that has one."""
    return format(Decimal(repr(float(value))).normalize(), "f")


def _species(variable: Variable, compartment: str) -> Element:
    amount = _literal("initialAmount", variable.initial)
    flags = {"hasOnlySubstanceUnits": "true", "boundaryCondition": "false", "constant": "false"}
    return Element("species", {"id": variable.name, "compartment": compartment, **amount, **flags})


def _parameters(model: Model) -> Iterable[Element]:
    values: list[tuple[str, Expression | None]] = [(constant.name, None) for constant in model.constants]
    values += [(each.name, None if each.default is None else number(each.default)) for each in model.parameters]
    for name, value in values:
        yield Element("parameter", {"id": name, "constant": "true", **_literal("value", value)})
    for observable in model.observables:
        if not concentrated(observable.name):
            yield Element("parameter", {"id": observable.name, "constant": "false"})
    for variable in model.variables:
        if not variable.whole:
            initial = _literal("value", variable.initial)
            yield Element("parameter", {"id": variable.name, "constant": "false", **initial})


def _initial_assignments(model: Model) -> Iterable[Element]:
    """Of constants, always: it is by them that they are not parameters; of variables where it takes a formula."""
    values = [(constant.name, constant.value) for constant in model.constants]
    values += [(each.name, each.initial) for each in model.variables if literal_value(each.initial) is None]
    return [_made("initialAssignment", {"symbol": name}, _math(_node(value))) for name, value in values]


def _rules(model: Model) -> Iterable[Element]:
    """Observables; those of concentrations, whose names are no ids, stand in the annotation."""
    for observable in model.observables:
        if not concentrated(observable.name):
            yield _made("assignmentRule", {"variable": observable.name}, _math(_node(observable.value)))


def _constraints(variable: Variable) -> Iterable[Element]:
    """The bounds that a species does not have by itself; without a lower one, that it is above minus infinity."""
    below_all = _apply("minus", [Element("infinity")])
    limits: list[tuple[str, Element]] = []
    if variable.low != 0:
        limits.append(("geq", below_all if variable.low is None else _node(number(variable.low))))
    if variable.high is not None:
        limits.append(("leq", _node(number(variable.high))))
    for tag, limit in limits:
        yield _made("constraint", {}, _math(_apply(tag, [_node(Name(variable.name)), limit])))


def _reaction(transition: Transition, species: set[str]) -> Element:
    consumed, produced = _sides(transition)
    rate = with_guard(transition)
    read = [name for name in rate.names if name in species and name not in consumed and name not in produced]
    parts = {
        "listOfReactants": map(_reference, consumed.items()),
        "listOfProducts": map(_reference, produced.items()),
        "listOfModifiers": [Element("modifierSpeciesReference", {"species": name}) for name in read],
    }
    law = _made("kineticLaw", {}, _math(_node(rate)))
    return _made("reaction", {"id": transition.name, "reversible": "false"}, *_lists(parts), law)


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
                raise ModelError(f"{transition.name} sets {name} to {value}, which SBML cannot express", remedy=remedy)
    return consumed, produced


def _reference(side: tuple[str, int]) -> Element:
    return Element("speciesReference", {"species": side[0], "stoichiometry": str(side[1]), "constant": "true"})


def _event(event: Event, priority: int) -> Element:
    settings = {"initialValue": "true" if event.initially else "false", "persistent": "true"}
    assignments = [_made("eventAssignment", {"variable": name}, _math(_node(value))) for name, value in event.update]
    return _made(
        "event",
        {"id": event.name, "useValuesFromTriggerTime": "true"},
        _made("trigger", settings, _math(_node(event.trigger))),
        _made("priority", {}, _math(_number(priority))),
        *_lists({"listOfEventAssignments": assignments}),
    )


def _math(node: Element) -> Element:
    return _made("math", {"xmlns": _MATH}, node)


def _node(expression: Expression) -> Element:
    match expression:
        case Number(value):
            return _number(value)
        case Boolean(value):
            return Element("true" if value else "false")
        case Name(name) if name == CLOCK:
            return _made("csymbol", {"encoding": "text", "definitionURL": _TIME}, text=f" {name} ")
        case Name(name):
            return _made("ci", {}, text=f" {name} ")
        case Operation("if", (condition, then, otherwise)):
            piece = _made("piece", {}, _node(then), _node(condition))
            return _made("piecewise", {}, piece, _made("otherwise", {}, _node(otherwise)))
        case Operation(symbol, operands):
            return _apply(TAGS[symbol], map(_node, operands))
    raise ModelError(f"SBML cannot express {expression}")


def _number(value: float) -> Element:
    digits = _digits(value)
    small = "." not in digits and value < _LARGEST_INTEGER
    return _made("cn", {"type": "integer"} if small else {}, text=f" {digits} ")


def _apply(tag: str, operands: Iterable[Element]) -> Element:
    return _made("apply", {}, Element(tag), *operands)
