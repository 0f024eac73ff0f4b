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

from sateen.core.errors import InputError, ModelError, ModelWarning
from sateen.core.text import number_text
from sateen.language.expression import Expression, Number, concentrated, literal_value, number
from sateen.model.model import Constant, Model, Observable, Parameter, Variable, names_read
from sateen.model.reactions import read_remarks
from sateen.model.sbml_elements import Source, flattened, listed, local_parameters, remarks_of, whole
from sateen.model.sbml_math import SBML_TIME, Element, library
from sateen.model.sbml_names import Names
from sateen.model.sbml_reactions import events_of, has_trigger, reactions_of, said
from sateen.model.sbml_safety import first_character, safe_header
from sateen.model.sbml_scale import molecules_of, scale_of, scale_remedy, unit_doubts
from sateen.model.sbml_split import Splitter

_DECLARATION: Final = re.compile(r"\A\ufeff?(?:\s*<\?xml\s[^>]*\?>)?")
_MOST_ERRORS: Final = 3  # of the library's, that are shown
_LONGEST_SENTENCE: Final = 250  # characters of one
_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SbmlModel:
    """A model that was read from SBML, and what its assignment rules set: expressions of the state, by id."""

    model: Model
    rules: Mapping[str, Expression]


def read_sbml(
    text: str, origin: Source | None = None, *, scale: float | str | None = None, split: bool = True
) -> SbmlModel:
    """The model that an SBML text describes; ModelError, with id and line, where it cannot be simulated.

    `origin` is the text it was made from, if it was made by a program: errors point there. `scale` is the number of
    molecules in a unit of amount, or "units"; without one, amounts are numbers of molecules. `split` says whether a net
    rate may be split into two directions.
    """
    header = safe_header(text)
    source = origin or Source(text, lambda element: first_character(text, element.getLine()))
    document = _document(text, source)
    if header.composed:
        inside = Source(text, lambda _: 0)  # the lines of what was flattened are not those of the text
        return read_sbml(flattened(document, source), inside, scale=scale, split=split)
    file = document.getModel()
    molecules = scale_of(scale, file, source)
    names = Names(file, source, molecules is not None)
    if not names.species:
        source.fail("this model has no species", file)
    if not names.reactions:
        source.fail("this model has no reactions", file)
    rounding: list[str] = []
    variables = _variables(names, molecules, rounding)
    if not variables:
        source.fail("nothing in this model changes: every species is constant, a boundary or set by a rule", file)
    values = _values(names, molecules)
    start = {**values, **{each.name: float(each.initial.evaluate(values)) for each in variables}}
    real = {SBML_TIME.name, *(each.name for each in variables if not each.whole)}
    varied = {each.name for each in _parameters(names)}
    splitter = Splitter(_values(names, molecules, zero=1.0), molecules or 1.0, real, varied)
    reactions = reactions_of(names, file, splitter, start, split)
    events = events_of(names, file)
    observed = {name: value for name, value in names.observed() if SBML_TIME.name not in value.names}
    written, assumptions = read_remarks(remarks_of(file))
    amounts = {name: names.amount(name) for name in names.counts}
    known = {each.name: each.value.substitute(amounts) for each in written if concentrated(each.name)} | observed
    order = dict.fromkeys((*(each.name for each in written), *known))
    observed = {name: known[name] for name in order if name in known}
    read = names_read(variables, reactions.transitions, events).union(*(value.names for value in observed.values()))
    unread = [f"the package {name} is not read" for name in header.packages]
    unread += [f"the package {name} is required, but nothing of it is used" for name in header.empty]
    sizes = [
        source.note(f"the compartment {each.getId()} has no size, and gets the size 1", each) for each in names.unsized
    ]
    counted = [] if molecules else [source.note(message, element) for message, element in unit_doubts(file)]
    doubts = (*sizes, *counted, *reactions.doubts)
    model = Model(
        variables,
        reactions.transitions,
        tuple(_parameters(names)),
        _constants(names, read, molecules),
        events,
        (*unread, *_remarks(file, names, molecules), *rounding, *reactions.notes, *doubts),
        tuple(Observable(name, value) for name, value in observed.items()),
        (*assumptions, *reactions.assumptions),
    )
    _check_start(model, names)
    for doubt in doubts:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    rules = {name: observed[name] for name in names.rules if name in observed}
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
            owner = next((name for name, count in names.counts.items() if count == variable.name), variable.name)
            names.fail(str(error), names.setter(owner), _scale_remedy(names) if not names.molecules else "")


def _remarks(model: Element, names: Names, molecules: float | None) -> Iterator[str]:
    note = names.source.note
    for name in names.rules:
        if names.moves_by_rule(name):
            rule = names.amount_set(name, names.ruled(name))
            timed = SBML_TIME.name in rule.names
            unread = "; it reads the time, so formulas and paths cannot show it" if timed else ""
            yield note(f"{name} is inlined: {name} = {said(rule)}{unread}", names.rules[name])
    for event in listed(model.getListOfEvents()):
        if not has_trigger(event):
            yield note(f"the event {event.getId()} has no trigger, so it never happens", event)
    for constraint in names.unwatched:
        yield note("the constraint is not checked during runs", constraint)
    if molecules is not None and names.counts:
        first, count = next(iter(names.counts.items()))
        message = f"amounts are counted: {number_text(molecules)} molecules are in a unit of amount"
        yield f"{message}, {count} = {names.molecules} * {first}; formulas read {first} as the file does"
        assigned = [f"{name} to {names.counts[name]}" for name in names.by_event if name in names.counts]
        if assigned:
            yield f"what events set is rounded to whole counts: {', '.join(assigned)}"


def _variables(names: Names, molecules: float | None, notes: list[str]) -> tuple[Variable, ...]:
    """What changes: species, and parameters that events set; `notes` gets what was rounded."""
    if molecules is None:
        counts = [_count(names, name) for name in names.counts]
    else:
        counts = [_scaled(names, name, molecules, notes) for name in names.counts]
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
        remedy = "a constraint of the model forbids it" if count is not None and count >= 0 else _scale_remedy(names)
        names.fail(f"the species {name} begins with {number_text(amount)}", where, remedy)
    return Variable(name, initial if count == amount else number(float(count)), low, high)


def _scale_remedy(names: Names) -> str:
    """What to do about amounts that are not whole numbers of molecules."""
    known = (literal_value(names.initial(name)) for name in names.counts)
    return scale_remedy(next(iter(names.species.values())).getModel(), [value for value in known if value is not None])


def _scaled(names: Names, name: str, molecules: float, notes: list[str]) -> Variable:
    """A species that is counted in molecules, of which a unit of amount has several."""
    amount = names.initial(name)
    where = names.assigned.get(name, names.species[name])
    value = literal_value(amount)
    if value is not None and value < 0:
        names.fail(f"the species {name} begins with {number_text(value)}", where, "an amount is at least 0")
    try:
        initial, inexact = molecules_of(amount, molecules, names.molecules)
    except ModelError as error:
        names.fail(f"the species {name}: {error.message}", where, error.remedy)
    if inexact:
        notes.append(names.source.note(f"{name} begins with {amount}, rounded to {initial} molecules", where))
    low, high = (None if each is None else each * molecules for each in names.bounds.get(name, (0, None)))
    least = None if low is None else math.ceil(low - _CLOSE * abs(low))
    most = None if high is None else math.floor(high + _CLOSE * abs(high))
    variable = Variable(names.counts[name], initial, least, most)
    if not initial.names and not variable.allows(float(initial.evaluate({}))):
        names.fail(f"the species {name} begins with {amount}", where, "a constraint of the model forbids it")
    return variable


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


def _values(names: Names, molecules: float | None, zero: float = 0.0) -> dict[str, float]:
    """The values of all that does not move, under the defaults of the file; 1 for a parameter without one.

    `zero` stands in the place of 0: a rate constant that is 0 by default may be another one in a run.
    """
    defaults = {each.name: 1.0 if each.default is None else each.default for each in _parameters(names)}
    parameters = [Parameter(name, default or zero) for name, default in defaults.items()]
    return Model((), (), tuple(parameters), _constants(names, names.compartments.keys(), molecules)).values()


def _constants(names: Names, read: Set[str], molecules: float | None) -> tuple[Constant, ...]:
    """What no run changes, each after those it reads; compartments only if they are among those `read`."""
    values = dict(_constant_values(names))
    placed: dict[str, Constant] = {}
    if molecules is not None:
        placed[names.molecules] = Constant(names.molecules, Number(molecules))
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
