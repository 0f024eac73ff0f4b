"""Models in SBML, Levels 2 and 3: their discrete stochastic reading.

Amounts are numbers of molecules, and the kinetic law of a reaction is its rate. Species that are constant, or a
boundary that no event sets, are constants; parameters with a value are parameters with that default, those of single
reactions too; assignment rules are inlined. Whatever a continuous-time Markov chain with events
cannot do is refused by name, with its id and its line.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sateen.core.errors import InputError, ModelWarning
from sateen.core.text import number_text
from sateen.language.expression import COMPARISONS, Expression, Name, Number, Operation, in_order, joined_parts, number
from sateen.model.checks import consumption_fault, negative_by_sign
from sateen.model.model import CLOCK, Constant, Event, Model, Parameter, Transition, Variable, names_read, new_name
from sateen.model.sbml_math import SBML_TIME, Element, as_condition, library, sum_of
from sateen.model.sbml_names import Names, Source, listed, local_parameters, whole
from sateen.model.sbml_safety import first_character, safe_header

_DECLARATION: Final = re.compile(r"\A\ufeff?(?:\s*<\?xml\s[^>]*\?>)?")
_MOST_ERRORS: Final = 3  # of the library's, that are shown
_LONGEST_SENTENCE: Final = 250  # characters of one
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class SbmlModel:
    """A model that was read from SBML, and what its assignment rules set: expressions of the state, by id."""

    model: Model
    rules: Mapping[str, Expression]


def read_sbml(text: str, origin: Source | None = None) -> SbmlModel:
    """The model that an SBML text describes; ModelError, with id and line, where it cannot be simulated.

    `origin` is the text it was made from, if it was made by a program: errors point there, and an arrow that is called
    reversible is believed only if the rate says so too.
    """
    packages, reversible = safe_header(text)
    source = origin or Source(text, lambda element: first_character(text, element.getLine()))
    file = _document(text, source).getModel()
    names = Names(file, source)
    if not names.species:
        source.fail("this model has no species", file)
    if not names.reactions:
        source.fail("this model has no reactions", file)
    declared = reversible if origin is None else frozenset()
    transitions = tuple(_transition(names, file, each, name in declared) for name, each in names.reactions.items())
    events = _events(names, file)
    variables = _variables(names)
    if not variables:
        source.fail("nothing in this model changes: every species is constant, a boundary or set by a rule", file)
    moving = {name: names.amount_set(name, names.ruled(name)) for name in names.rules if names.moves_by_rule(name)}
    rules = {name: rule for name, rule in moving.items() if SBML_TIME.name not in rule.names}
    read = names_read(variables, transitions, events).union(*(rule.names for rule in rules.values()))
    doubts = list(_doubts(names, transitions))
    unread = (f"the package {name} is not read" for name in packages)
    remarks = (*unread, *_remarks(file, source, names, rules), *doubts)
    model = Model(variables, transitions, tuple(_parameters(names)), _constants(names, read), events, remarks)
    _check_start(model, names)
    for doubt in doubts:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    return SbmlModel(model, MappingProxyType(rules))


def _document(text: str, source: Source) -> Element:
    """The text as the library reads it, once it finds no error."""
    libsbml = library()
    document = libsbml.readSBMLFromString(_DECLARATION.sub(_as_utf_8, text, count=1))
    if not _errors(libsbml, document):
        for category in (libsbml.LIBSBML_CAT_UNITS_CONSISTENCY, libsbml.LIBSBML_CAT_MODELING_PRACTICE):
            document.setConsistencyChecks(category, False)
        document.checkConsistency()
    if errors := _errors(libsbml, document):
        lines = [f"line {error.getLine()}: {_sentence(error)}" for error in errors[1:_MOST_ERRORS]]
        if (more := len(errors) - _MOST_ERRORS) > 0:
            lines.append(f"and {more} more")
        source.fail(f"this is not valid SBML: {_sentence(errors[0])}", errors[0], "\n".join(lines))
    if document.getModel() is None:
        source.fail("this SBML file has no model", document)
    return document


def _as_utf_8(declaration: re.Match[str]) -> str:
    """The first line of a text that is decoded already, whatever it declared; as many lines as there were."""
    return '<?xml version="1.0" encoding="UTF-8"?>' + "\n" * declaration[0].count("\n")


def _errors(libsbml: Element, document: Element) -> list[Element]:
    every = [document.getError(index) for index in range(document.getNumErrors())]
    return [error for error in every if error.getSeverity() >= libsbml.LIBSBML_SEV_ERROR]


def _sentence(error: Element) -> str:
    """What the library says of an error in particular, without the rule that it quotes before."""
    lines = [line.strip() for line in error.getMessage().splitlines()]
    lines = [line for line in lines if line and not line.startswith("Reference:")]
    sentence = str(lines[-1] if lines else error.getShortMessage()).partition("For more information, see:")[0]
    if len(sentence) > _LONGEST_SENTENCE:
        sentence = sentence[:_LONGEST_SENTENCE].rpartition(". ")[0] or f"{sentence[:_LONGEST_SENTENCE]}..."
    return sentence.strip().rstrip(".")


def _check_start(model: Model, names: Names) -> None:
    """Refuses amounts at the start that are not whole under the values in the file, if it gives all."""
    if any(parameter.default is None for parameter in model.parameters):
        return
    values = model.values()
    for variable in model.variables:
        try:
            Model((variable,), ()).initial(values)
        except InputError as error:
            names.fail(str(error), names.setter(variable.name))


def _remarks(model: Element, source: Source, names: Names, rules: Mapping[str, Expression]) -> Iterator[str]:
    for name, rule in rules.items():
        written = str(rule) if len(str(rule)) <= _LONGEST_SENTENCE else f"{str(rule)[:_LONGEST_SENTENCE]}..."
        yield source.note(f"{name} is inlined: {name} = {written}", names.rules[name])
    for event in listed(model.getListOfEvents()):
        if not _has_trigger(event):
            yield source.note(f"the event {event.getId()} has no trigger, so it never happens", event)
    for constraint in names.unwatched:
        yield source.note("the constraint is not watched", constraint)
    for element in (model, *names.species.values()):
        if element.getSubstanceUnits() == "mole":
            yield source.note("the unit of amounts is the mole; they are read as molecules", element)


def _doubts(names: Names, transitions: tuple[Transition, ...]) -> Iterator[str]:
    """What is legal but may lead below 0; a rate that is never positive is refused."""
    for transition in transitions:
        reaction = names.reactions[transition.name]
        if negative_by_sign(transition.rate):
            message = f"the rate of {transition.name} is never positive: {transition.rate}"
            names.fail(message, reaction.getKineticLaw())
        if (fault := consumption_fault(transition)) is not None:
            yield names.source.note(f"{fault.message}; {fault.remedy}", reaction)


def _transition(names: Names, model: Element, reaction: Element, reversible: bool) -> Transition:
    """A reaction, refused if it has no discrete meaning; it is `reversible` if the file explicitly declares it so."""
    name = reaction.getId()
    factor = model.getConversionFactor() if model.isSetConversionFactor() else ""
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
        for term in joined_parts("+", node):
            taken = term is not node and isinstance(term, Operation) and term.symbol == "-"
            if taken and any(names.is_variable(name) for name in term.names):
                return term.children[0]
    return None


def _side(names: Names, references: list[Element], reaction: str, factor: str) -> tuple[tuple[str, int], ...]:
    """What stands on one side, counted; species that reactions do not change are left out."""
    counts: dict[str, int] = {}
    for reference in references:
        name = reference.getSpecies()
        species = names.species[name]
        noun = f"the stoichiometry of {name} in {reaction}"
        count = names.stoichiometry(reference, noun)
        if species.getConstant() or species.getBoundaryCondition():
            continue
        count *= _converted(names, species, species.getConversionFactor() or factor)
        counts[name] = counts.get(name, 0) + count
    return tuple((name, count) for name, count in counts.items() if count)


def _converted(names: Names, species: Element, factor: str) -> int:
    if not factor:
        return 1
    noun = f"the conversion factor of {species.getId()}"
    value = names.fixed_value(Name(factor), species, noun)
    count = whole(value)
    if count is None or count < 1:
        names.fail(f"{noun} is {value:g}", species, "it must be a whole number from 1 on")
    return count


def _events(names: Names, model: Element) -> tuple[Event, ...]:
    """Every event of the file, those of higher priority first."""
    elements = [each for each in listed(model.getListOfEvents()) if _has_trigger(each)]
    elements.sort(key=lambda event: -_priority(names, event))
    alone = len(elements) == 1
    taken = {each.getId() for each in elements}
    events = []
    for place, element in enumerate(elements, start=1):
        name = element.getId() or new_name(f"event_{place}", taken)
        events.append(_event(names, element, name, alone))
    if events and CLOCK in (*names.species, *names.parameters, *names.compartments):
        names.fail(f"{CLOCK} is the clock in a model with events", names.setter(CLOCK), "give it another id")
    return tuple(events)


def _has_trigger(event: Element) -> bool:
    return event.getTrigger() is not None and event.getTrigger().getMath() is not None


def _priority(names: Names, event: Element) -> float:
    priority = event.getPriority()
    if priority is None or priority.getMath() is None:
        return -math.inf
    value = names.read(priority, f"the priority of the event {event.getId()}")
    if value.names:
        remedy = "only numbers are supported; they order events that happen at one instant"
        names.fail(f"the priority of the event {event.getId()} is {value}", priority, remedy)
    return float(value.evaluate({}))


def _event(names: Names, event: Element, name: str, alone: bool) -> Event:
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


def _assignment(names: Names, assignment: Element, event: str) -> tuple[str, Expression]:
    name = assignment.getVariable()
    if name not in names.species and name not in names.parameters:
        what = "a compartment" if name in names.compartments else "a stoichiometry"
        remedy = "events may change species and parameters"
        names.fail(f"the event {event} changes {name}, {what}", assignment, remedy)
    value = names.amount_set(name, names.read(assignment, f"what the event {event} makes of {name}"))
    if SBML_TIME.name in value.names:
        remedy = "only its trigger may read the time"
        names.fail(f"the event {event} sets {name} to a value that depends on time", assignment, remedy)
    return name, value


def _timed(names: Names, condition: Expression, trigger: Element, noun: str) -> Expression:
    """A trigger in which the clock stands alone on the left of every comparison that reads it."""
    if SBML_TIME.name not in condition.names:
        return condition
    if isinstance(condition, Operation) and condition.symbol in ("and", "or", "not"):
        parts = tuple(_timed(names, operand, trigger, noun) for operand in condition.operands)
        return Operation(condition.symbol, parts)
    if isinstance(condition, Operation) and condition.symbol in COMPARISONS:
        symbol, (left, right) = condition.symbol, condition.operands
        if SBML_TIME.name in right.names:
            left, right, symbol = right, left, _MIRRORED[symbol]
        terms = joined_parts("+", left)
        others = [term for term in terms if term != SBML_TIME]
        if len(others) == len(terms) - 1 and not any(SBML_TIME.name in each.names for each in (*others, right)):
            return Operation(symbol, (Name(CLOCK), sum_of([right, *map(_negative, others)])))
    remedy = "compare the time with something, as in time >= 25"
    names.fail(f"{noun} reads the time within a formula", trigger, remedy)


def _negative(term: Expression) -> Expression:
    return term.operands[0] if isinstance(term, Operation) and term.symbol == "-" else Operation("-", (term,))


def _variables(names: Names) -> tuple[Variable, ...]:
    """What changes: species, and parameters that events set."""
    counts = [_count(names, name) for name in names.species if names.is_variable(name)]
    real = [name for name in names.parameters if names.is_variable(name)]
    return (*counts, *(Variable(name, names.initial(name), None, None, whole=False) for name in real))


def _count(names: Names, name: str) -> Variable:
    initial = names.initial(name)
    low, high = names.bounds.get(name, (0, None))
    if initial.names:
        return Variable(name, initial, low, high)
    amount = float(initial.evaluate({}))
    count = whole(amount)
    if count is None or not Variable(name, initial, low, high).allows(count):
        where = names.assigned.get(name, names.species[name])
        remedy = "amounts are numbers of molecules here, not moles: whole numbers from 0 on"
        if count is not None and count >= 0:
            remedy = "a constraint of the model forbids it"
        names.fail(f"the species {name} begins with {number_text(amount)}", where, remedy)
    return Variable(name, initial if count == amount else number(float(count)), low, high)


def _parameters(names: Names) -> Iterator[Parameter]:
    """What a user may choose: global parameters that nothing sets, and those of single reactions."""
    free = set(names.parameters) - {*names.rules, *names.assigned, *names.by_event, *names.fixed}
    elements = [(name, each) for name, each in names.parameters.items() if name in free]
    for reaction, local in names.local.items():
        elements += [(local[each.getId()], each) for each in local_parameters(names.reactions[reaction])]
    for name, element in elements:
        value = float(element.getValue()) if element.isSetValue() else math.nan
        if math.isinf(value):
            names.fail(f"the parameter {name} is infinite", element, "give it a finite value")
        yield Parameter(name, None if math.isnan(value) else value)


def _constants(names: Names, read: Set[str]) -> tuple[Constant, ...]:
    """What no run changes, each after those it reads; compartments only if they are among those `read`."""
    values = dict(_constant_values(names))
    placed: dict[str, Constant] = {}
    path: list[str] = []  # from a constant to one that it reads, by way of others

    def place(name: str) -> None:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            names.fail(f"{path[-1]} is defined by itself: {circle}", names.setter(path[-1]))
        path.append(name)
        for each in values[name].names:
            if each in values and each not in placed:
                place(each)
        path.pop()
        placed[name] = Constant(name, values[name])

    for name in values:
        if name not in placed and (name not in names.compartments or name in read):
            place(name)
    return tuple(placed.values())


def _constant_values(names: Names) -> Iterator[tuple[str, Expression]]:
    """What no run changes, in the order of the file; sizes that are not given are left out."""
    for name in (*names.compartments, *names.parameters, *names.species):
        if names.is_variable(name) or names.moves_by_rule(name):
            continue
        if name in names.rules:
            yield name, names.amount_set(name, names.ruled(name))
        elif name in names.assigned or name in names.species or name in names.fixed or names.has_size(name):
            yield name, names.initial(name)
