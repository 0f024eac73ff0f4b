"""The reactions and events of an SBML file, as transitions and events of the intermediate form."""

from __future__ import annotations

import math
from typing import Any, Final

from sateen.language.expression import COMPARISONS, Expression, Name, Number, Operation, in_order
from sateen.model.model import CLOCK, Event, Transition
from sateen.model.sbml_elements import listed, whole
from sateen.model.sbml_math import SBML_TIME
from sateen.model.sbml_names import Names
from sateen.model.sbml_operations import as_condition, sum_of

__all__ = ["events", "transitions"]

_CLOCK: Final = Name(CLOCK)
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def transitions(names: Names, model: Any, reversible: frozenset[str]) -> tuple[Transition, ...]:
    """Every reaction of the file; those that the discrete reading has no meaning for are refused.

    `reversible` are the ids of those that the file says to be so, in so many words.
    """
    factor = model.getConversionFactor() if model.isSetConversionFactor() else ""
    return tuple(_transition(names, each, factor, name in reversible) for name, each in names.file.reactions.items())


def _transition(names: Names, reaction: Any, factor: str, reversible: bool) -> Transition:
    name = reaction.getId()
    if reversible:
        remedy = (
            "split it into two reactions, one for each direction, each with its own rate\n"
            'if it only goes forward, write reversible="false"'
        )
        names.fail(f"the reaction {name} is reversible", reaction, remedy)
    if reaction.isSetFast() and reaction.getFast():
        remedy = "a fast reaction has no rate of its own; remove the attribute, or the reaction"
        names.fail(f"the reaction {name} is fast, which is not supported", reaction, remedy)
    rate = names.rate(name)
    if reaction.getReversible() and (backward := _backward(names, rate)) is not None:
        remedy = f"split it into two reactions, one for each direction; the rate of the second would be {backward}"
        names.fail(f"the rate of {name} is that of a reversible reaction: {rate}", reaction, remedy)
    consumed = _side(names, listed(reaction.getListOfReactants()), name, factor)
    produced = _side(names, listed(reaction.getListOfProducts()), name, factor)
    match rate:
        case Operation("if", (guard, guarded, Number(0.0))):
            return Transition(name, guarded, consumed, produced, guard=guard)
    return Transition(name, rate, consumed, produced)


def _backward(names: Names, rate: Expression) -> Expression | None:
    """A part of a rate that is subtracted and depends on the state, if there is one: the way back."""
    for node in in_order(rate):
        terms = node.children if isinstance(node, Operation) and node.symbol == "+" else ()
        for term in terms:
            taken = isinstance(term, Operation) and term.symbol == "-"
            if taken and any(names.is_variable(name) for name in term.names):
                return term.children[0]
    return None


def _side(names: Names, references: list[Any], reaction: str, factor: str) -> tuple[tuple[str, int], ...]:
    """What stands on one side, counted; species that reactions do not change are left out."""
    counts: dict[str, int] = {}
    for reference in references:
        name = reference.getSpecies()
        species = names.file.species[name]
        noun = f"the stoichiometry of {name} in {reaction}"
        count = names.stoichiometry(reference, noun)
        if species.getConstant() or species.getBoundaryCondition():
            continue
        count *= _converted(names, species, species.getConversionFactor() or factor)
        counts[name] = counts.get(name, 0) + count
    return tuple((name, count) for name, count in counts.items() if count)


def _converted(names: Names, species: Any, factor: str) -> int:
    if not factor:
        return 1
    noun = f"the conversion factor of {species.getId()}"
    value = names.fixed_value(Name(factor), species, noun)
    count = whole(value)
    if count is None or count < 1:
        names.fail(f"{noun} is {value:g}", species, "it must be a whole number from 1 on")
    return count


def events(names: Names, model: Any) -> tuple[Event, ...]:
    """Every event of the file, those of higher priority first."""
    elements = [each for each in listed(model.getListOfEvents()) if each.isSetTrigger() and _has_formula(each)]
    elements.sort(key=lambda event: -_priority(names, event))
    alone = len(elements) == 1
    taken = {each.getId() for each in elements}
    found = []
    for place, element in enumerate(elements, start=1):
        name = element.getId() or f"event_{place}"
        while not element.getId() and name in taken:
            name += "_"
        taken.add(name)
        found.append(_event(names, element, name, alone))
    if found and CLOCK in (*names.file.species, *names.file.parameters, *names.file.compartments):
        names.fail(f"{CLOCK} is the clock in a model with events", names.file.setter(CLOCK), "give it another id")
    return tuple(found)


def _has_formula(event: Any) -> bool:
    return event.getTrigger().getMath() is not None


def _priority(names: Names, event: Any) -> float:
    priority = event.getPriority()
    if priority is None or priority.getMath() is None:
        return -math.inf
    value = names.read(priority, f"the priority of the event {event.getId()}")
    if value.names:
        remedy = "only numbers are supported; they order events that happen at one instant"
        names.fail(f"the priority of the event {event.getId()} is {value}", priority, remedy)
    return float(value.evaluate({}))


def _event(names: Names, event: Any, name: str, alone: bool) -> Event:
    delay, trigger = event.getDelay(), event.getTrigger()
    if delay is not None and delay.getMath() is not None:
        waits = names.read(delay, f"the delay of the event {name}")
        if waits.names or float(waits.evaluate({})) != 0.0:
            remedy = "only events without delay are supported; a chain of reactions can stand for a random delay"
            names.fail(f"the event {name} has a delay", delay, remedy)
    if not alone and trigger.isSetPersistent() and not trigger.getPersistent():
        remedy = 'with other events it could be called off by one of them: write persistent="true"'
        names.fail(f"the trigger of the event {name} is not persistent", trigger, remedy)
    if not alone and event.isSetUseValuesFromTriggerTime() and not event.getUseValuesFromTriggerTime():
        remedy = 'with other events the values depend on their order: write useValuesFromTriggerTime="true"'
        names.fail(f"the event {name} does not use the values at the time of its trigger", event, remedy)
    noun = f"the trigger of the event {name}"
    condition = _timed(names, as_condition(names.read(trigger, noun)), trigger, noun)
    initially = trigger.getInitialValue() if trigger.isSetInitialValue() else True
    update = tuple(
        _assignment(names, each, name) for each in listed(event.getListOfEventAssignments()) if each.getMath()
    )
    return Event(name, update, condition, bool(initially))


def _assignment(names: Names, assignment: Any, event: str) -> tuple[str, Expression]:
    name = assignment.getVariable()
    if name not in names.file.species and name not in names.file.parameters:
        what = "a compartment" if name in names.file.compartments else "a stoichiometry"
        remedy = "events may change species and parameters"
        names.fail(f"the event {event} changes {name}, {what}", assignment, remedy)
    value = names.amount_set(name, names.read(assignment, f"what the event {event} makes of {name}"))
    if SBML_TIME.name in value.names:
        remedy = "only its trigger may read the time"
        names.fail(f"the event {event} sets {name} to a value that depends on time", assignment, remedy)
    return name, value


def _timed(names: Names, condition: Expression, trigger: Any, noun: str) -> Expression:
    """A trigger in which the clock stands alone on the left of every comparison that reads it."""
    if SBML_TIME.name not in condition.names:
        return condition
    if isinstance(condition, Operation) and condition.symbol in ("and", "or", "not"):
        parts = tuple(_timed(names, operand, trigger, noun) for operand in condition.operands)
        return Operation(condition.symbol, parts)
    if isinstance(condition, Operation) and condition.symbol in COMPARISONS:
        left, right = condition.operands
        if SBML_TIME.name in right.names:
            left, right, symbol = right, left, _MIRRORED[condition.symbol]
        else:
            symbol = condition.symbol
        terms = left.operands if isinstance(left, Operation) and left.symbol == "+" else (left,)
        others = [term for term in terms if term != SBML_TIME]
        if len(others) == len(terms) - 1 and not any(SBML_TIME.name in each.names for each in (*others, right)):
            return Operation(symbol, (_CLOCK, sum_of([right, *map(_negative, others)])))
    remedy = "compare the time with something, as in time >= 25"
    names.fail(f"{noun} reads the time within a formula", trigger, remedy)


def _negative(term: Expression) -> Expression:
    return term.operands[0] if isinstance(term, Operation) and term.symbol == "-" else Operation("-", (term,))
