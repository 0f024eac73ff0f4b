"""Models in SBML, Levels 2 and 3: their discrete stochastic reading.

Amounts are numbers of molecules, and the kinetic law of a reaction is its rate. Species that are constant, or a
boundary that no event sets, are constants; parameters with a value are parameters with that default, those of single
reactions too; assignment rules are put in where they are read. Whatever a continuous-time Markov chain with events
cannot do is refused by name, with its id and its line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from sateen.core.errors import InputError, ModelWarning
from sateen.language.expression import Expression
from sateen.model.checks import consumption_fault, negative_by_sign
from sateen.model.model import Event, Model, Transition, Variable
from sateen.model.sbml_elements import Elements, Source, listed
from sateen.model.sbml_math import SBML_TIME, library
from sateen.model.sbml_names import Names
from sateen.model.sbml_reactions import events, transitions
from sateen.model.sbml_safety import line_start, look_over

__all__ = ["SbmlModel", "read_sbml"]

_DECLARATION: Final = re.compile(r"\A\ufeff?(?:\s*<\?xml\s[^>]*\?>)?")
_MOST_ERRORS: Final = 3  # of the library's, that are told
_LONGEST_SENTENCE: Final = 250  # characters of one


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
    header = look_over(text)
    source = origin or Source(text, lambda element: _first_character(text, element.getLine()))
    document = _document(text, source)
    model = document.getModel()
    if model is None:
        source.fail("this SBML file has no model", document)
    reversible = header.reversible if origin is None else frozenset()
    made = _assembled(model, source, reversible, tuple(f"the package {name} is not read" for name in header.packages))
    for doubt in _doubts(made.model.transitions, model, source):
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    return made


def _document(text: str, source: Source) -> Any:
    """The text as the library reads it, once it finds no error."""
    libsbml = library()
    document = libsbml.readSBMLFromString(_DECLARATION.sub(_as_utf_8, text, count=1))
    if not _errors(libsbml, document):
        for category in (libsbml.LIBSBML_CAT_UNITS_CONSISTENCY, libsbml.LIBSBML_CAT_MODELING_PRACTICE):
            document.setConsistencyChecks(category, False)
        document.checkConsistency()
    found = _errors(libsbml, document)
    if found:
        told = [f"line {error.getLine()}: {_sentence(error)}" for error in found[1:_MOST_ERRORS]]
        more = len(found) - _MOST_ERRORS
        remedy = "\n".join([*told, *([f"and {more} more"] if more > 0 else [])])
        source.fail(f"this is not valid SBML: {_sentence(found[0])}", found[0], remedy)
    return document


def _as_utf_8(declaration: re.Match[str]) -> str:
    """The first line of a text that is decoded already, whatever it said; as many lines as there were."""
    return '<?xml version="1.0" encoding="UTF-8"?>' + "\n" * declaration[0].count("\n")


def _errors(libsbml: Any, document: Any) -> list[Any]:
    every = [document.getError(index) for index in range(document.getNumErrors())]
    return [error for error in every if error.getSeverity() >= libsbml.LIBSBML_SEV_ERROR]


def _sentence(error: Any) -> str:
    """What the library says of an error in particular, without the rule that it quotes before."""
    lines = [line.strip() for line in error.getMessage().splitlines()]
    lines = [line for line in lines if line and not line.startswith("Reference:")]
    told = str(lines[-1] if lines else error.getShortMessage()).partition("For more information, see:")[0]
    if len(told) > _LONGEST_SENTENCE:
        told = told[:_LONGEST_SENTENCE].rpartition(". ")[0] or f"{told[:_LONGEST_SENTENCE]}..."
    return told.strip().rstrip(".")


def _assembled(model: Any, source: Source, reversible: frozenset[str], notes: tuple[str, ...]) -> SbmlModel:
    names = Names(Elements.of(model, source))
    if not names.file.species:
        source.fail("this model has no species", model)
    if not names.file.reactions:
        source.fail("this model has no reactions", model)
    changed = transitions(names, model, reversible)
    happening = events(names, model)
    variables = names.variables()
    if not variables:
        source.fail("nothing in this model changes: every species is constant, a boundary or set by a rule", model)
    for transition in changed:
        if negative_by_sign(transition.rate):
            law = names.file.reactions[transition.name].getKineticLaw()
            source.fail(f"the rate of {transition.name} is never positive: {transition.rate}", law)
    read = _read(changed, happening, variables)
    rules = {name: rule for name, rule in names.moving_rules().items() if SBML_TIME.name not in rule.names}
    remarks = [*notes, *_remarks(model, source, names, rules), *_doubts(changed, model, source)]
    made = Model(
        variables,
        changed,
        names.parameters(),
        names.constants({*read, *(name for rule in rules.values() for name in rule.names)}),
        happening,
        tuple(remarks),
    )
    _check_start(made, names)
    return SbmlModel(made, MappingProxyType(rules))


def _read(changed: tuple[Transition, ...], happening: tuple[Event, ...], variables: tuple[Variable, ...]) -> set[str]:
    """Every name that the model's expressions read."""
    expressions = [variable.initial for variable in variables]
    for event in happening:
        expressions += [event.trigger, *(value for _, value in event.update)]
    found = {name for expression in expressions for name in expression.names}
    return found | {name for transition in changed for name in transition.reads}


def _check_start(model: Model, names: Names) -> None:
    """Refuses amounts at the start that are not whole under the values in the file, if it gives all."""
    if any(parameter.default is None for parameter in model.parameters):
        return
    values = model.values()
    for variable in model.variables:
        try:
            Model((variable,), ()).initial(values)
        except InputError as error:
            names.fail(str(error), names.file.setter(variable.name))


def _remarks(model: Any, source: Source, names: Names, rules: Mapping[str, Expression]) -> Iterator[str]:
    for name, rule in rules.items():
        written = str(rule) if len(str(rule)) <= _LONGEST_SENTENCE else f"{str(rule)[:_LONGEST_SENTENCE]}..."
        yield source.note(f"{name} is put in where it is read: {name} = {written}", names.file.rules[name])
    for event in listed(model.getListOfEvents()):
        if event.getTrigger() is None or event.getTrigger().getMath() is None:
            yield source.note(f"the event {event.getId()} has no trigger, so it never happens", event)
    for constraint in names.file.unwatched:
        yield source.note("the constraint is not watched", constraint)
    for element in (model, *names.file.species.values()):
        if element.getSubstanceUnits() == "mole":
            yield source.note("amounts are said to be moles; they are read as molecules", element)


def _doubts(changed: tuple[Transition, ...], model: Any, source: Source) -> list[str]:
    """What is legal but may lead below 0."""
    faults = [(transition, consumption_fault(transition)) for transition in changed]
    return [
        source.note(f"{fault.message}; {fault.remedy}", model.getReaction(transition.name))
        for transition, fault in faults
        if fault is not None
    ]


def _first_character(text: str, line: int) -> int:
    """Where the first character of a line that is not a space stands."""
    start = line_start(text, max(line, 1))
    return start + len(text[start:]) - len(text[start:].lstrip())
