"""What happens in an SBML file: its reactions as transitions, and its events.

Net rates are split, amounts are scaled, and counts are kept from falling below 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sateen.language.expression import COMPARISONS, Expression, Name, Number, Operation, joined, joined_parts
from sateen.model.checks import consumption_fault, consumption_faults, negative_by_sign
from sateen.model.model import CLOCK, Event, Transition, new_name
from sateen.model.sbml_elements import listed, whole
from sateen.model.sbml_math import SBML_TIME, Element, as_condition, sum_of
from sateen.model.sbml_names import Names
from sateen.model.sbml_scale import rounded
from sateen.model.sbml_split import Split, Splitter

Sides: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]

_LONGEST: Final = 250  # characters of a rate in a note
_MOST_SHOWN: Final = 5  # reactions in an assumption
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ALLOW: Final = "or leave out split=False, and it is split like this"


@dataclass(frozen=True, slots=True)
class Reactions:
    """The transitions of a file, what is doubtful about them, what was done to them, and what it takes for granted."""

    transitions: tuple[Transition, ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]


def reactions_of(
    names: Names, model: Element, splitter: Splitter, start: Mapping[str, float], split: bool
) -> Reactions:
    """The reactions of a file; `start` are all values at time 0."""
    start = {**start, SBML_TIME.name: 0.0}
    factor = model.getConversionFactor() if model.isSetConversionFactor() else ""
    taken = set(names.reactions)
    transitions: list[Transition] = []
    doubts: list[str] = []
    notes: list[str] = []
    divided: list[str] = []
    for name, reaction in names.reactions.items():
        if reaction.isSetFast() and reaction.getFast():
            remedy = "a fast reaction has no rate of its own; remove the attribute, or the reaction"
            names.fail(f"the reaction {name} is fast, which is not supported", reaction, remedy)
        law = names.rate(name)
        if negative_by_sign(law):
            names.fail(f"the rate of {name} is never positive: {said(law)}", reaction.getKineticLaw())
        sides = _sides(names, reaction, factor)
        ways = splitter.split(law)
        # A difference that is negative at the start is not a rate in one direction, whatever the attribute says.
        two_ways = ways is not None and not ways.one_way
        reversible = reaction.getReversible() or (two_ways and bool(law.evaluate(start) < 0))
        if ways is None or not reversible or not (ways.exact or ways.negative):
            made = [_transition(names, name, law, sides)]
            if ways is None and splitter.depends(law):
                notes.append(names.source.note(_conditional(name, law), reaction))
            if ways is not None:
                doubtful = not reversible and (ways.negative or two_ways)
                doubt = names.source.note(_doubt(name, law, ways, reversible), reaction)
                (doubts if doubtful else notes).append(doubt)
        else:
            _refuse_unless_split(names, reaction, law, ways, split)
            divided.append(name)
            back = new_name(f"{name}_reverse", taken)
            made = [
                _transition(names, name, ways.forward, sides),
                _transition(names, back, ways.backward, (sides[1], sides[0])),
            ]
            forward, backward = said(ways.forward), said(ways.backward)
            message = f"the net rate of {name} is split: forward {forward}, back {backward} (as {back})"
            notes.append(names.source.note(message, reaction))
        for transition in made:
            if names.molecules:
                guarded = _guarded(transition)
                if guarded is not transition:
                    message = f"{transition.name} has a guard, so that no count falls below 0: when {guarded.guard}"
                    notes.append(names.source.note(message, reaction))
                transition = guarded
            elif (fault := consumption_fault(transition)) is not None:
                doubts.append(names.source.note(f"{fault.message}; {fault.remedy}", reaction))
            transitions.append(_clocked(names, transition))
    return Reactions(tuple(transitions), tuple(doubts), tuple(notes), _assumptions(divided))


def _clocked(names: Names, transition: Transition) -> Transition:
    """The transition, in which the time of SBML is the clock."""
    if SBML_TIME.name not in transition.reads:
        return transition
    _refuse_other_clock(names, "rates that depend on time")
    clock = {SBML_TIME.name: Name(CLOCK)}
    guard = None if transition.guard is None else transition.guard.substitute(clock)
    return replace(transition, rate=transition.rate.substitute(clock), guard=guard)


def _refuse_other_clock(names: Names, what: str) -> None:
    local = (each for ids in names.local.values() for each in ids.values())
    if CLOCK in (*names.species, *names.parameters, *names.compartments, *local):
        names.fail(f"{CLOCK} is the clock in a model with {what}", names.setter(CLOCK), "give it another id")


def _assumptions(divided: list[str]) -> tuple[str, ...]:
    """What a split takes for granted: the net rates do not say it."""
    if not divided:
        return ()
    shown = ", ".join(divided[:_MOST_SHOWN]) + (f" and {more} more" if (more := len(divided) - _MOST_SHOWN) > 0 else "")
    which = f"the net rate of {shown} is" if len(divided) == 1 else f"the net rates of {shown} are"
    return (f"{which} split into the two directions that the form of the law shows",)


def _doubt(name: str, law: Expression, ways: Split, reversible: bool) -> str:
    """What to say of a law that is read as the rate of one direction, and may be negative."""
    if not reversible and not ways.one_way:
        parts = f"forward {said(ways.forward)}, back {said(ways.backward)}"
        return (
            f'the rate of {name} is a difference, {parts}, and is read as one rate, because of reversible="false"; two '
            "reactions would have the same mean and more noise, and a run stops where this rate is negative"
        )
    if ways.negative:
        return f"the rate of {name} is negative in some states, where a run stops: {said(law)}"
    return f"nothing shows that the rate of {name} is never negative; a run stops where it is: {said(law)}"


def _conditional(name: str, law: Expression) -> str:
    """What to say of a difference that is a rate under the values of the file."""
    return (
        f"the rate of {name} is a difference, and is read as one rate, because it is negative in no state under the "
        f"values of the file; under others it may be, and then a run stops: {said(law)}"
    )


def _refuse_unless_split(names: Names, reaction: Element, law: Expression, ways: Split, split: bool) -> None:
    name, back = reaction.getId(), said(ways.backward)
    if not ways.exact:
        parts = f"  forward: {said(ways.forward)}\n  back: {back}"
        remedy = f"its form suggests\n{parts}\nwhich are not both rates in every state; write two reactions"
        message = f"the rate of {name} is negative in some states, and cannot be split: {said(law)}"
        names.fail(message, reaction, f"{remedy}, or max(0, ...) if it should be 0 there")
    if not split:
        remedy = f"split it into two reactions, one for each direction; the rate of the second would be {back}"
        names.fail(f"the rate of {name} is that of a reversible reaction: {said(law)}", reaction, f"{remedy}\n{_ALLOW}")


def _transition(names: Names, name: str, rate: Expression, sides: Sides) -> Transition:
    """A reaction in one direction. A rate that is 0 outside a condition is one with a guard."""
    rate, guard = without_guard(rate)
    if names.molecules:  # a law counts units of amount
        rate = Operation("*", (Name(names.molecules), rate))
    consumed, produced = sides
    return Transition(name, rate, consumed, produced, guard=guard)


def without_guard(law: Expression) -> tuple[Expression, Expression | None]:
    """The rate and the guard that a law says; SBML has no guards, and writes a law that is 0 outside a condition."""
    match law:
        case Operation("if", (guard, rate, Number(0.0))):
            return rate, guard
    return law, None


def with_guard(transition: Transition) -> Expression:
    """The law that says the rate and the guard of a transition: `without_guard` reads it back."""
    if transition.guard is None:
        return transition.rate
    return Operation("if", (transition.guard, transition.rate, Number(0.0)))


def _guarded(transition: Transition) -> Transition:
    """The transition with a guard for each species that it could take below 0."""
    needs = [name for name, fault in consumption_faults(transition).items() if not fault.guarded]
    if not needs:
        return transition
    enough = [Operation(">=", (Name(name), Number(float(-transition.change[name])))) for name in needs]
    given = () if transition.guard is None else (transition.guard,)
    return replace(transition, guard=joined("and", (*given, *enough)))


def _sides(names: Names, reaction: Element, factor: str) -> Sides:
    """What a reaction consumes and produces."""
    name = reaction.getId()
    consumed, produced = reaction.getListOfReactants(), reaction.getListOfProducts()
    return _side(names, listed(consumed), name, factor), _side(names, listed(produced), name, factor)


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
        counts[names.counts[name]] = counts.get(names.counts[name], 0) + count
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


def said(rate: Expression) -> str:
    """A rate as messages show it: not too long, and with the clock by its name."""
    text = str(rate.substitute({SBML_TIME.name: Name(CLOCK)}))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def events_of(names: Names, model: Element) -> tuple[Event, ...]:
    """Every event of the file, those of higher priority first."""
    elements = [each for each in listed(model.getListOfEvents()) if has_trigger(each)]
    elements.sort(key=lambda event: -_priority(names, event))
    alone = len(elements) == 1
    taken = {each.getId() for each in elements}
    events = []
    for place, element in enumerate(elements, start=1):
        name = element.getId() or new_name(f"event_{place}", taken)
        events.append(_event(names, element, name, alone))
    if events:
        _refuse_other_clock(names, "events")
    return tuple(events)


def has_trigger(event: Element) -> bool:
    """Whether an event can happen at all."""
    return event.getTrigger() is not None and event.getTrigger().getMath() is not None


def _priority(names: Names, event: Element) -> float:
    priority = event.getPriority()
    if priority is None or priority.getMath() is None:
        return -math.inf
    value = names.read(priority, f"the priority of the event {event.getId()}")
    if value.names:
        remedy = "only numbers are supported; they order events that happen at one instant"
        names.fail(f"the priority of the event {event.getId()} is {said(value)}", priority, remedy)
    return float(value.evaluate({}))


def _event(names: Names, event: Element, name: str, alone: bool) -> Event:
    delay, trigger = event.getDelay(), event.getTrigger()
    if delay is not None and delay.getMath() is not None:
        waits = names.read(delay, f"the delay of the event {name}")
        if waits.names or float(waits.evaluate({})) != 0.0:
            remedy = "only events without delay are supported; a chain of reactions can stand for a random delay"
            names.fail(f"the event {name} has a delay", delay, remedy)
    if not alone and trigger.isSetPersistent() and not trigger.getPersistent():
        remedy = 'with other events one of them could cancel it: write persistent="true"'
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
    if names.molecules and name in names.counts:
        value = rounded(value, names.molecules)
    return names.counts.get(name, name), value


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
        timed, others = ([term for term in terms if (SBML_TIME.name in term.names) == reads] for reads in (True, False))
        speed = _speed(timed[0])
        if len(timed) == 1 and speed and SBML_TIME.name not in right.names:
            if speed < 0:  # a - time <= b is time + b >= a
                symbol, right, others = _MIRRORED[symbol], _negative(right), list(map(_negative, others))
            shifted = [term for term in (right, *map(_negative, others)) if term != Number(0.0)]
            bound = sum_of(shifted)
            if abs(speed) != 1.0:
                bound = Operation("/", (bound, Number(abs(speed))))
            return Operation(symbol, (Name(CLOCK), bound))
    remedy = "compare the time with something, as in time >= 25"
    names.fail(f"{noun} reads the time within a formula", trigger, remedy)


def _speed(term: Expression) -> float | None:
    """By which number a term multiplies the time, if it does nothing else with it."""
    match term:
        case Operation("-", (operand,)):
            speed = _speed(operand)
            return None if speed is None else -speed
        case Operation("*", (left, right)) if not left.names or not right.names:
            speed, factor = (_speed(right), left) if not left.names else (_speed(left), right)
            return None if speed is None else speed * float(factor.evaluate({}))
        case Operation("/", (left, right)) if not right.names:
            speed = _speed(left)
            return None if speed is None else speed / float(right.evaluate({}) or math.inf)
    return 1.0 if term == SBML_TIME else None


def _negative(term: Expression) -> Expression:
    if term == Number(0.0):
        return term
    return term.operands[0] if isinstance(term, Operation) and term.symbol == "-" else Operation("-", (term,))
