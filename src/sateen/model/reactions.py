"""The reader of model text, the language of sateen.

    species S = 95, I = I0             # initial counts: numbers, parameters, or expressions of them
    species x = 0 in [-5, 10]          # bounds; an open end is (-inf, 10] or [0, inf)
    real dose = 0.5                    # a real number, which only events change
    constant N = 100
    observable total = S + I           # a name that formulas and paths may read
    parameter gamma = 0.05, beta       # with or without a default; undeclared free names are parameters too
    infect:  S + I -> 2 I  @ beta * S * I / N
    recover: I -> R        @ mass_action(gamma)
    0 -> S                 @ 0.1 when S < 50        # a guard
    serve:   x := x - 1, busy := 0  @ mu when x > 0 # assignments, which all read the state before
    event cure: I := 0, dose := 2 when time >= 25   # at the instant its trigger becomes true
    I -> R  @ gamma * I * (1 + sin(0.26 * time))    # the clock, unless something is declared under its name
    assumes "nobody is born"           # what claims name as taken for granted

A reaction consumes what stands left of the arrow and produces what stands right of it, at the rate after `@`; `0` is
nothing. `mass_action(k)` is k times the number of ways to choose the reactants: k·A·B, or k·A(A-1)/2 for 2 A. An event
whose trigger is true at time 0 happens there only if `initially false` stands behind it.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Final

from sateen.core.errors import ModelError, ModelWarning, nearest
from sateen.language.expression import LARGEST_WHOLE, Expression, Name
from sateen.language.grammar import refuse_oversized
from sateen.model.checks import consumption_faults, negative_by_sign
from sateen.model.model import (
    CLOCK,
    Constant,
    Event,
    Model,
    Observable,
    Parameter,
    Transition,
    Variable,
    names_read,
    new_name,
)
from sateen.model.reactions_text import ASSUMES, NAME, WHEN, Piece, lines_of
from sateen.model.readers import MAX_CHARACTERS, ModelReader

_MOST_HINTS: Final = 50  # names among which a misspelt one is looked for
_DECLARED: Final = re.compile(rf"\s*({NAME}|\[{NAME}\])\s*(?:=(?!=)(.*))?$", re.DOTALL)
_EVENT: Final = re.compile(r"\s*event\b")
_NO_RATE: Final = ("this reaction has no rate", "write it after @, as in  I -> R @ gamma * I")
_NO_CLOCK: Final = f"the clock is {CLOCK}; if t is not a time: parameter t"
_KINDS: Final = ("species", "real", "constant", "observable", "parameter")


def read_reactions(text: str) -> Model:
    """The model that `text` describes, checked; doubts are given as ModelWarning and kept in `model.warnings`."""
    refuse_oversized(text, ModelError, "a model", MAX_CHARACTERS)
    reader = _Reader(text)
    for line in lines_of(text):
        reader.line(line)
    model = reader.model()
    for doubt in model.warnings:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    return model


def read_remarks(text: str) -> tuple[tuple[Observable, ...], tuple[str, ...]]:
    """The observables and the assumptions that lines of model text say, such as another language has no place for."""
    refuse_oversized(text, ModelError, "a model", MAX_CHARACTERS)
    reader = _Reader(text)
    for line in lines_of(text):
        reader.line(line)
    return tuple(reader.observables.values()), tuple(reader.assumptions)


def write_reactions(model: Model) -> str:
    """The text of a model, read again and compared: the form can hold what no text says, such as a name with a `."""
    text = str(model)
    for name in (*model.names, *model.happening):
        if not name.strip() or "`" in name or "\n" in name:
            raise ModelError(f"the name {name!r} cannot be written as text", remedy="rename it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            again = read_reactions(text)
    except ModelError as error:
        raise ModelError(f"as text this cannot be read: {error.message}", text, error.position, error.remedy) from None
    for kind in ("variables", "transitions", "parameters", "constants", "observables", "events"):
        for part, other in zip(getattr(model, kind), getattr(again, kind), strict=False):
            if part != other:
                raise ModelError(f"{part.name} is not the same once it is written as text and read")
    if again != model or again.assumptions != model.assumptions:
        raise ModelError("this model is not the same once it is written as text and read")
    return text


READER: Final = ModelReader(read_reactions, write_reactions)


@dataclass(frozen=True, slots=True)
class _Reaction:
    """A reaction and where its sides and its rate stand."""

    transition: Transition
    sides: Piece
    rate: Piece


class _Reader:
    """Collects declarations, reactions and events line by line, then puts the model together."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.where: dict[str, Piece] = {}  # where each name was declared
        self.variables: dict[str, Variable] = {}
        self.constants: dict[str, Constant] = {}
        self.observables: dict[str, Observable] = {}
        self.parameters: dict[str, Parameter] = {}
        self.reactions: list[_Reaction] = []
        self.events: dict[str, tuple[Event, Piece, Piece]] = {}  # with where its assignments and its trigger stand
        self.labels: set[str] = set()
        self.in_bounds: set[str] = set()  # species whose bounds are written: who writes them knows them
        self.doubts: list[str] = []
        self.assumptions: list[str] = []

    def line(self, line: Piece) -> None:
        kind = line.text.split(maxsplit=1)[0]
        if assumes := ASSUMES.match(line.text):
            self.assumptions.append(line.part(assumes.end()).sentence())
            return
        if kind in _KINDS:
            rest = line.part(line.text.index(kind) + len(kind))
            for declared in rest.split(","):
                self.declare(kind, declared)
        elif _EVENT.match(line.text) and (kind == "event" or "@" not in line.text):
            self.event(line.part(line.text.index("event") + len("event")))
        elif "@" in line.text or re.search(r"[-=]>|<[-=]|:=", line.text):
            self.reaction(line)
        else:
            hint = nearest(kind, [*_KINDS, "parameters", "constants", "event"])
            remedy = hint or "a reaction looks like  infect: S + I -> 2 I @ beta * S * I"
            line.fail("this line is neither a declaration nor a reaction", remedy)

    def declare(self, kind: str, declared: Piece) -> None:
        match = _DECLARED.match(declared.text)
        if match is None:
            declared.fail(f"expected a name and a value, such as {kind} X = 5")
        name = self.name(declared.part(match.start(1), match.end(1)))
        if match[1].startswith("[") and kind != "observable":
            declared.fail(f"{match[1]} is a concentration, which only an observable is", f"observable {match[1]} = ...")
        given = None if match[2] is None else declared.part(match.start(2))
        if given is None:
            if kind != "parameter":
                what = {"species": "an initial count", "real": "an initial value"}.get(kind, "a value")
                example = 100 if kind == "constant" else 0
                declared.fail(f"{name} needs {what}", f"write  {kind} {name} = {example}")
            self.parameters[name] = Parameter(name)
        elif kind in ("species", "real"):
            self.variables[name] = self.variable(kind, name, given)
        elif kind == "constant":
            self.constants[name] = Constant(name, given.expression())
        elif kind == "observable":
            self.observables[name] = Observable(name, given.expression())
        else:
            value = given.expression()
            if value.names:
                given.fail("a default is a number", f"write  constant {name} = {value}")
            self.parameters[name] = Parameter(name, float(value.evaluate({})))

    def variable(self, kind: str, name: str, given: Piece) -> Variable:
        piece, bounds = given.bounded()
        initial = piece.expression()
        if kind == "real":
            if bounds is not None:
                given.part(len(piece.text)).fail("a real number has no bounds", "only species have them")
            return Variable(name, initial, None, None, whole=False)
        if bounds is not None:
            self.in_bounds.add(name)
        low, high = bounds or (0, None)
        if not initial.names:
            count = float(initial.evaluate({}))
            if not (count.is_integer() and abs(count) < LARGEST_WHOLE and (bounds or count >= 0)):
                piece.fail(f"a count is a whole number{'' if bounds else ' from 0 on'}, not {initial}")
            if not Variable(name, initial, low, high).allows(count):
                piece.fail(f"{name} starts at {initial}, outside its bounds")
        return Variable(name, initial, low, high)

    def name(self, piece: Piece) -> str:
        tree = piece.expression()
        assert isinstance(tree, Name)
        if tree.name in self.where:
            line = self.where[tree.name].line
            piece.fail(f"{tree.name} is declared twice", f"first on line {line}; give one of them another name")
        self.where[tree.name] = piece
        return tree.name

    def reaction(self, line: Piece) -> None:
        name, body = line.label()
        happening, *rates = body.split("@")
        if not rates:
            line.rest().fail(*_NO_RATE)
        if len(rates) > 1:
            rates[1].fail("a second rate", "a reaction has one @, with its rate after it")
        rate, condition = rates[0].cut(WHEN)
        guard = None if condition is None else condition.expression(condition=True)
        if rate.blank:
            line.rest().fail(*_NO_RATE)
        if name and name in self.labels:
            line.fail(f"two reactions are called {name}", "give one of them another name")
        self.labels.add(name)
        parts = list(happening.split(","))
        sides = None if ":=" in parts[0].masked() else parts.pop(0)
        consumed, produced = ((), ()) if sides is None else map(self.side, sides.sides())
        update = self.assignments(parts)
        transition = Transition(name, rate.rate(consumed), consumed, produced, update, guard)
        for target in dict(update):
            if not self.variables[target].whole:
                happening.fail(f"{target} is a real number, which only events change", f"as in  event e: {target} := 2")
        self.reactions.append(_Reaction(transition, happening, rate))

    def event(self, piece: Piece) -> None:
        name, body = piece.label()
        if not name:
            piece.fail("an event has a name, then a colon", "it looks like  event reset: X := 50 when time >= 25")
        if name in self.events:
            piece.fail(f"two events are called {name}", "give one of them another name")
        if (at := piece.masked().find("@")) >= 0:
            piece.part(at).fail("an event has no rate", "it happens when its trigger becomes true; leave event out")
        written, trigger, initially = body.triggered()
        update = () if written.nothing else self.assignments(list(written.split(",")))
        condition = trigger.expression(condition=True)
        try:
            self.events[name] = Event(name, update, condition, initially), written, trigger
        except ModelError as error:
            in_update = any(CLOCK in value.names for _, value in update)
            (written if in_update else trigger).fail(error.message, error.remedy)

    def assignments(self, pieces: list[Piece]) -> tuple[tuple[str, Expression], ...]:
        """What `x := x - 1, busy := 0` assigns."""
        update: dict[str, Expression] = {}
        for piece in pieces:
            name, value = piece.assignment()
            target = self.known(name, piece)
            if name in update:
                piece.fail(f"{name} is assigned twice", "all assignments read the state before; write one")
            update[name] = value.expression()
            if target.whole and not update[name].names:
                number = float(update[name].evaluate({}))
                if not number.is_integer():
                    value.fail(f"{name} is a whole number, and this is {update[name]}")
                if not target.allows(number):
                    self._doubt(value, f"{name} := {update[name]} is outside the bounds of {name}")
        return tuple(update.items())

    def side(self, piece: Piece) -> tuple[tuple[str, int], ...]:
        counts: dict[str, int] = {}
        for term, name, count in piece.terms():
            if not self.known(name, term).whole:
                term.fail(f"{name} is a real number, which only events change", "only species take part in reactions")
            counts[name] = counts.get(name, 0) + count
        return tuple(counts.items())

    def known(self, name: str, piece: Piece) -> Variable:
        """The variable of that name; an error where none was declared above."""
        if name not in self.variables:
            remedy = nearest(name, self.variables) or f"declare it first: species {name} = 0"
            if name in self.parameters or name in self.constants:
                remedy = f"what events change is declared: real {name} = 1"
            piece.fail(f"{name} is not a species", remedy)
        return self.variables[name]

    def model(self) -> Model:
        if not self.variables:
            remedy = "begin with a line such as  species S = 95, I = 5"
            raise ModelError("this model has no species", self.text, 0, remedy)
        if not self.reactions and not self.events:
            remedy = "add a line such as  I -> R @ gamma * I"
            raise ModelError("this model has no reactions", self.text, len(self.text), remedy)
        if self.events and CLOCK in self.where:
            remedy = "triggers read the time under that name; choose another"
            self.where[CLOCK].fail(f"in a model with events {CLOCK} is the clock", remedy)
        taken = {reaction.transition.name for reaction in self.reactions}
        for place, reaction in enumerate(self.reactions):  # those without a name are r1, r2, ... by their place
            name = reaction.transition.name or new_name(f"r{place + 1}", taken)
            self.reactions[place] = replace(reaction, transition=replace(reaction.transition, name=name))
        self._free_names()
        for reaction in self.reactions:
            self._check(reaction)
        self._unused()
        return Model(
            tuple(self.variables.values()),
            tuple(reaction.transition for reaction in self.reactions),
            tuple(self.parameters.values()),
            tuple(self.constants.values()),
            tuple(event for event, _, _ in self.events.values()),
            warnings=tuple(self.doubts),
            observables=tuple(self.observables.values()),
            assumptions=tuple(self.assumptions),
        )

    def _check(self, reaction: _Reaction) -> None:
        transition = reaction.transition
        if negative_by_sign(transition.rate):
            reaction.rate.fail(f"the rate {transition.rate} is never positive", "rates are at least 0: change its sign")
        faults = {name: each for name, each in consumption_faults(transition).items() if self.variables[name].low == 0}
        for name, fault in faults.items():
            if fault.fatal and name not in self.in_bounds:
                reaction.sides.fail(fault.message, fault.remedy)
        for name, fault in faults.items():
            # Where bounds are written, a guard that keeps them is usual.
            if name not in self.in_bounds or fault.fatal or name in transition.rate.names:
                self._doubt(reaction.sides, f"{fault.message}; {fault.remedy}")
                break

    def _doubt(self, piece: Piece, message: str) -> None:
        self.doubts.append(f"line {piece.line}: {message}")

    def _free_names(self) -> None:
        """Makes every name that nothing declares a parameter, after a check of what declarations read."""
        for variable in self.variables.values():
            self._fixed_before(variable.name, variable.initial, set(self.constants))
        earlier: set[str] = set()
        for constant in self.constants.values():
            self._fixed_before(constant.name, constant.value, earlier)
            earlier.add(constant.name)
        for reaction in self.reactions:
            for name in reaction.transition.reads:
                if name in ("t", CLOCK) and name not in self.where:
                    if any(name in value.names for _, value in reaction.transition.update):
                        message = f"{name} is not declared, and assignments cannot depend on time"
                        reaction.sides.fail(message, f"if it is not a time, declare it: parameter {name}")
                    if name == "t":
                        reaction.rate.fail("t is not declared", _NO_CLOCK)
                    continue
                self._known_or_parameter(name, reaction.rate)
        for event, written, trigger in self.events.values():
            for piece, names in ((written, event.assigned_from), (trigger, event.trigger.names)):
                for name in names:
                    if name == "t" and name not in self.where:
                        piece.fail("t is not declared", _NO_CLOCK)
                    if name != CLOCK:
                        self._known_or_parameter(name, piece)
        for observable in self.observables.values():
            for name in observable.value.names:
                if name == CLOCK and self._has_clock:
                    self.where[observable.name].fail("an observable cannot read the clock", "it follows from the state")
                self._known_or_parameter(name, self.where[observable.name])

    @property
    def _has_clock(self) -> bool:
        """Whether events, rates or guards may read the clock, so that nothing else can be called so undeclared."""
        timed = any(CLOCK in reaction.transition.reads for reaction in self.reactions)
        return bool(self.events) or (timed and CLOCK not in self.where)

    def _fixed_before(self, owner: str, value: Expression, constants: set[str]) -> None:
        for name in value.names:
            if name in self.variables:
                self.where[owner].fail(f"{owner} cannot read the species {name}", "it is fixed before the run begins")
            if name in self.constants and name not in constants:
                self.where[owner].fail(f"{owner} reads the constant {name}, which is defined later", "swap them")
            if name == CLOCK and self._has_clock:
                self.where[owner].fail(f"{owner} cannot read the clock", "it is fixed before the run begins")
            self._known_or_parameter(name, self.where[owner])

    def _known_or_parameter(self, name: str, piece: Piece) -> None:
        if name in self.observables:
            piece.fail(f"{name} is an observable, which only formulas and paths read", "write out what it stands for")
        if name not in self.variables and name not in self.constants:
            self.parameters.setdefault(name, Parameter(name))

    def _unused(self) -> None:
        """Doubts about declared parameters that nothing reads."""
        transitions = (reaction.transition for reaction in self.reactions)
        read = names_read(self.variables.values(), transitions, (event for event, _, _ in self.events.values()))
        read.update(*(constant.value.names for constant in self.constants.values()))
        read.update(*(observable.value.names for observable in self.observables.values()))
        undeclared = [name for name in self.parameters if name not in self.where]
        for name in self.parameters:
            if name not in read:
                hint = nearest(name, undeclared[:_MOST_HINTS]).replace("did you mean", "was it meant by")
                self._doubt(self.where[name], f"nothing uses the parameter {name}" + (f"; {hint}" if hint else ""))
