"""What a system is: the one intermediate form behind every way of writing a model.

A Model is a continuous-time Markov chain over integer variables. A Transition fires at a rate that depends on the
state, where its guard holds, and then adds constant changes, or assigns expressions, to variables. An Event changes the
state at the very instant its trigger becomes true, and may also set variables that are real numbers. Reaction text
(`reactions.py`) and the readers of other languages all make this form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path as FilePath
from typing import Final

import numpy as np

from sateen.core.errors import InputError, MissingValueError, ModelError, nearest
from sateen.core.text import finite, number_text, shown
from sateen.language.expression import (
    COMPARISONS,
    LARGEST_WHOLE,
    Expression,
    Name,
    Operation,
    Value,
    concentrated,
    in_order,
    is_condition,
)
from sateen.model.checks import refuse_too_many
from sateen.model.readers import READERS, load_model, save_model
from sateen.model.written import model_text

CLOCK: Final = "time"  # the name under which triggers, rates and guards read the time


@dataclass(frozen=True, slots=True)
class Variable:
    """An integer that changes over time: a species, whose count is never negative, or a bounded variable.

    `initial` may read parameters and constants. A value outside [low, high] is an error of the model, not a wall; so is
    one from 2^53 on, where doubles no longer tell whole numbers apart.
    Where `whole` is False it is a real number without bounds, which only events change.
    """

    name: str
    initial: Expression
    low: int | None = 0
    high: int | None = None
    whole: bool = True

    def __post_init__(self) -> None:
        if not self.whole and (self.low, self.high) != (None, None):
            raise ModelError(f"{self.name} is a real number, which has no bounds: low and high are None")

    @property
    def needs(self) -> str:
        """What its values are, as errors say it: `a whole number from 0 on`."""
        if not self.whole:
            return "a finite number"
        low = "" if self.low is None else f" from {self.low}"
        high = "" if self.high is None else f" to {self.high}"
        return f"a whole number{low}{high or (' on' if low else '')}"

    def allows(self, values: Value) -> Value:
        """Which of the values, an array of them or one, it can have."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        fine = np.isfinite(values) & (values >= low) & (values <= high)
        return fine & (values == np.floor(values)) & (np.abs(values) < LARGEST_WHOLE) if self.whole else fine

    def refusal(self, value: float) -> str:
        """Why it cannot have a value that it does not allow."""
        vast = self.whole and abs(value) >= LARGEST_WHOLE and self.high is None
        return "counts are exact only below 2^53" if vast else f"it needs {self.needs}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A name for a value that no run changes; it may read parameters and constants before it."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that is chosen for a run; without a default it must be given."""

    name: str
    default: float | None = None


@dataclass(frozen=True, slots=True)
class Observable:
    """A name for a value that follows from the state: formulas and paths read it, and no rate does."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Transition:
    """Something that happens at a rate: what it consumes and produces, or what it assigns.

    `consumed` and `produced` are (variable, count) pairs; `update` are (variable, expression) pairs that all read the
    state before. `guard` is a condition without which it cannot fire. Rate and guard may read the clock, whose name is
    `time` unless something of the model is called so.
    """

    name: str
    rate: Expression
    consumed: tuple[tuple[str, int], ...] = ()
    produced: tuple[tuple[str, int], ...] = ()
    update: tuple[tuple[str, Expression], ...] = ()
    guard: Expression | None = None

    def __post_init__(self) -> None:
        refuse_too_many(self.name, (*self.consumed, *self.produced))

    @property
    def change(self) -> dict[str, int]:
        """What firing adds to each variable; variables that stay the same are left out."""
        net: dict[str, int] = {}
        for pairs, sign in ((self.consumed, -1), (self.produced, 1)):
            for name, count in pairs:
                net[name] = net.get(name, 0) + sign * count
        return {name: count for name, count in net.items() if count}

    @property
    def reads(self) -> tuple[str, ...]:
        """The names that its rate, its guard and its updates read, each once."""
        guard = () if self.guard is None else (self.guard,)
        return _names_in((self.rate, *(value for _, value in self.update), *guard))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at the very instant a condition, its `trigger`, goes from false to true.

    A jump can make it so, and so can the clock, also between jumps. The trigger reads variables, parameters, constants
    and the clock, whose name is `time`; the clock stands alone on one side of a comparison: `time >= 25` is an event at
    time 25, `time >= 10 and X > 5` waits for both. `initially` is the value that the trigger is taken to have just
    before time 0: one that is true at 0 fires there only if `initially` is False.

    `update` are (variable, expression) pairs. All events whose triggers became true at one instant make a round: all
    their values are computed from the state before the round, then assigned in the order of the model's events. Then
    the triggers are evaluated again; those that became true again make a further round at the same instant. The state
    at an instant is the one after all rounds: the states between have no duration, and no formula sees them.

    `time > 25` becomes true just after 25; the event happens at 25, after those of `time >= 25`.
    """

    name: str
    update: tuple[tuple[str, Expression], ...]
    trigger: Expression
    initially: bool = True

    def __post_init__(self) -> None:
        if not is_condition(self.trigger):
            raise ModelError(
                f"the trigger of the event {self.name} is {self.trigger}, a number",
                remedy="a trigger is a condition, such as X > 0",
            )
        for name, value in self.update:
            if CLOCK in value.names:
                raise ModelError(f"the event {self.name} sets {name} to {value}: only its trigger may read the time")
        self._clock_sides()

    @property
    def assigned_from(self) -> tuple[str, ...]:
        """The names that its assignments read, each once."""
        return _names_in(value for _, value in self.update)

    @property
    def thresholds(self) -> tuple[Expression, ...]:
        """What the trigger compares the clock with, each once."""
        return tuple(dict.fromkeys(self._clock_sides()))

    def _clock_sides(self) -> list[Expression]:
        clock, nodes = Name(CLOCK), list(in_order(self.trigger))
        comparisons = [node for node in nodes if isinstance(node, Operation) and node.symbol in COMPARISONS]
        pairs = [node.operands for node in comparisons if clock in node.operands]
        sides = [right if left == clock else left for left, right in pairs]
        if nodes.count(clock) > len(sides) or any(CLOCK in side.names for side in sides):
            raise ModelError(
                f"the event {self.name} reads the time within {self.trigger}",
                remedy="the time stands alone on one side of a comparison: time >= 25",
            )
        return sides


@dataclass(frozen=True, slots=True)
class Model:
    """A parametric population model; immutable. Two models are equal if their parts are equal.

    `warnings` lists what the reader found legal but doubtful, and `assumptions` what it assumed where the file leaves
    something open. Comparisons ignore both. `timed` says whether a transition reads the clock; a name `time` that the
    model declares is not the clock.
    """

    variables: tuple[Variable, ...]
    transitions: tuple[Transition, ...]
    parameters: tuple[Parameter, ...] = ()
    constants: tuple[Constant, ...] = ()
    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    observables: tuple[Observable, ...] = ()
    assumptions: tuple[str, ...] = field(default=(), compare=False)
    timed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        timed = CLOCK not in self.names and any(CLOCK in transition.reads for transition in self.transitions)
        object.__setattr__(self, "timed", timed)
        for observable in self.observables:
            if unknown := [name for name in observable.value.names if name not in self.names]:
                message = f"the observable {observable.name} reads {unknown[0]}, which the model does not have"
                raise ModelError(message, remedy=nearest(unknown[0], self.names))
        if self.events:
            self._check_events()
        updates = [(each, *pair) for each in (self.transitions if timed else ()) for pair in each.update]
        for each, name, value in updates:
            if CLOCK in value.names:
                raise ModelError(f"{each.name} sets {name} to {value}: only rates, guards and triggers read the time")
        real = {variable.name for variable in self.variables if not variable.whole}
        for transition in self.transitions if real else ():
            changed = {*transition.change, *(name for name, _ in transition.update)}
            if wrong := sorted(real & changed):
                raise ModelError(f"{transition.name} changes {wrong[0]}, a real number, which only events may change")

    @staticmethod
    def parse(text: str) -> Model:
        """The model that a text of reactions describes.

        >>> model = Model.parse('''
        ...     species S = 95, I = 5, R = 0
        ...     constant N = 100
        ...     parameter gamma = 0.05
        ...     infect:  S + I -> 2 I  @ beta * S * I / N
        ...     recover: I -> R        @ gamma * I
        ... ''')
        >>> model.species, [parameter.name for parameter in model.parameters]
        (('S', 'I', 'R'), ['gamma', 'beta'])
        """
        return READERS[".sateen"].read(text)

    @staticmethod
    def load(
        path: str | FilePath,
        *,
        constants: Mapping[str, object] | None = None,
        scale: float | str | None = None,
        split: bool = True,
    ) -> Model:
        """The model in a file; the suffix says in which language.

        `constants` gives values to the unspecified constants of a PRISM model. For SBML and Antimony, `scale` is the
        number of molecules in a unit of amount, or "units" for the number that the units of the file imply.
        `split=False` refuses net rates of reversible reactions, which are otherwise split into two.
        """
        return load_model(FilePath(path), constants, scale=scale, split=split)

    def save(self, path: str | FilePath) -> None:
        """Write the model to a file, whole or not at all; the suffix says in which language.

        The suffixes .sateen and .txt mean text, which reads back as an equal model; .xml and .sbml mean SBML. What the
        language cannot express is refused.
        """
        save_model(self, FilePath(path))

    @property
    def species(self) -> tuple[str, ...]:
        """The names of all variables, in the order of the state."""
        return tuple(variable.name for variable in self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that an expression of the model may read."""
        return (
            *self.species,
            *(constant.name for constant in self.constants),
            *(parameter.name for parameter in self.parameters),
        )

    @property
    def assumption(self) -> str:
        """What the reader assumed, as claims word it: empty, or the end of `this assumes that ...`."""
        return ", and that ".join(self.assumptions)

    @property
    def readable(self) -> tuple[str, ...]:
        """The names that a formula may read: those of `names` and of observables; `[S]` is the concentration of S."""
        return (*self.names, *(observable.name for observable in self.observables))

    def meaning(self, name: str) -> Expression | None:
        """What a name in a formula stands for; None if the model has no such name.

        A concentration `[S]` without an observable is the amount S, as in a compartment of size 1.
        """
        for observable in self.observables:
            if observable.name == name:
                return observable.value
        if name in self.names:
            return Name(name)
        amount = concentrated(name)
        counted = (*self.species, *(observable.name for observable in self.observables))
        return self.meaning(amount) if amount in counted else None

    @property
    def happening(self) -> tuple[str, ...]:
        """The names of what changes the state: transitions, then events."""
        return (*(transition.name for transition in self.transitions), *(event.name for event in self.events))

    def values(self, theta: Mapping[str, float] | None = None) -> dict[str, float]:
        """The value of every parameter and constant under `theta`; a missing value is an error that names it."""
        given = dict(theta or {})
        known = [parameter.name for parameter in self.parameters]
        for name, value in given.items():
            if name not in known:
                raise MissingValueError(self._unknown(name, known))
            if finite(value) is None:
                raise InputError(f"the parameter {name} is {shown(value)}; it must be a finite number")
        values: dict[str, float] = {}
        for parameter in self.parameters:
            chosen = given.get(parameter.name, parameter.default)
            if chosen is None:
                others = [other for other in (*known, *self.species, *self.names) if other != parameter.name]
                hint = f"{near} If not, " if (near := nearest(parameter.name, others)) else ""
                remedy = f'{hint}give it one: {{theta={{"{parameter.name}": ...}}}}'
                raise MissingValueError(f"the parameter {parameter.name} has no value", argument="theta", remedy=remedy)
            values[parameter.name] = float(chosen)
        for constant in self.constants:
            values[constant.name] = float(constant.value.evaluate(values))
        return values

    def initial(self, values: Mapping[str, float]) -> dict[str, float]:
        """The state at time 0, before any event, under the parameters and constants in `values`; it is checked."""
        state: dict[str, float] = {}
        for variable in self.variables:
            count = float(variable.initial.evaluate(values))
            if not variable.allows(count):
                source = "" if not variable.initial.names else f" (from {variable.initial})"
                raise InputError(f"{variable.name} starts at {number_text(count)}{source}; {variable.refusal(count)}")
            state[variable.name] = count
        return state

    def _check_events(self) -> None:
        """Events read and set what the model has, and nothing but their triggers reads the clock."""
        if CLOCK in self.names:
            raise ModelError(f"{CLOCK} is the clock in a model with events; nothing else can have that name")
        known = {*self.names, CLOCK}
        for event in self.events:
            if unknown := [name for name in (*event.trigger.names, *event.assigned_from) if name not in known]:
                message = f"the event {event.name} reads {unknown[0]}, which the model does not have"
                raise ModelError(message, remedy=nearest(unknown[0], known))
            if unknown := [name for name, _ in event.update if name not in self.species]:
                message = f"the event {event.name} sets {unknown[0]}, which is not a variable of the model"
                raise ModelError(message, remedy=nearest(unknown[0], self.species))

    def _unknown(self, name: str, known: list[str]) -> str:
        if name in self.species:
            return f"{name} is a species; its initial count is a parameter only if the model says so: {name} = {name}0"
        if name in (constant.name for constant in self.constants):
            return f"{name} is a constant of the model; declare it as a parameter to vary it"
        return " ".join(filter(None, [f"the model has no parameter {name};", nearest(name, known)])).rstrip(";")

    def __str__(self) -> str:
        """Text that reads back as an equal model."""
        return model_text(self)

    def __repr__(self) -> str:
        return f"<Model: {len(self.variables)} species, {len(self.transitions)} reactions>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def new_name(name: str, taken: set[str]) -> str:
    """`name`, with as many _ behind it as make it differ from those `taken`; it is then one of them."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def names_read(
    variables: Iterable[Variable], transitions: Iterable[Transition], events: Iterable[Event] = ()
) -> set[str]:
    """Every name that the expressions of these parts of a model read."""
    names = {*_names_in(variable.initial for variable in variables)}
    names.update(*(transition.reads for transition in transitions))
    return names.union(*((*event.trigger.names, *event.assigned_from) for event in events))


def _names_in(expressions: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for expression in expressions for name in expression.names))
