"""What a system is: the one intermediate form behind every way of writing a model.

A Model is a continuous-time Markov chain over integer variables. A Transition fires at a rate that depends on the
state, where its guard holds, and then adds constant changes, or assigns expressions, to variables. Reaction text
(`reactions.py`) uses counts, constants, parameters and reactions; readers of other languages also use bounds, guards,
updates by expression and events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from sateen.core.errors import InputError, MissingValueError, ModelError, nearest
from sateen.core.expression import Expression, number_text

__all__ = ["Constant", "Event", "Model", "Parameter", "Transition", "Variable"]


@dataclass(frozen=True, slots=True)
class Variable:
    """An integer that changes over time: a species, whose count is never negative, or a bounded variable.

    `initial` may read parameters and constants. A value outside [low, high] is an error of the model, not a wall.
    """

    name: str
    initial: Expression
    low: int | None = 0
    high: int | None = None


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
class Transition:
    """Something that happens at a rate: what it consumes and produces, or what it assigns.

    `consumed` and `produced` are (variable, count) pairs; `update` are (variable, expression) pairs that all read the
    state before. `guard` is a condition without which it cannot fire.
    """

    name: str
    rate: Expression
    consumed: tuple[tuple[str, int], ...] = ()
    produced: tuple[tuple[str, int], ...] = ()
    update: tuple[tuple[str, Expression], ...] = ()
    guard: Expression | None = None

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
        expressions = [self.rate, *(value for _, value in self.update)]
        if self.guard is not None:
            expressions.append(self.guard)
        return tuple(dict.fromkeys(name for expression in expressions for name in expression.names))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at a time, or at the moment a condition becomes true.

    Just one of `time` and `trigger` is given; `update` are (name, expression) pairs that all read the state before.
    """

    name: str
    update: tuple[tuple[str, Expression], ...]
    time: Expression | None = None
    trigger: Expression | None = None

    def __post_init__(self) -> None:
        if (self.time is None) == (self.trigger is None):
            raise ModelError(f"the event {self.name} needs either a time or a trigger")


@dataclass(frozen=True, slots=True)
class Model:
    """A parametric population model; immutable, and equal where its parts are equal.

    `warnings` are what the reader found legal but doubtful; they do not count in comparisons.
    """

    variables: tuple[Variable, ...]
    transitions: tuple[Transition, ...]
    parameters: tuple[Parameter, ...] = ()
    constants: tuple[Constant, ...] = ()
    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)

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
        from sateen.model.reactions import read_reactions

        return read_reactions(text)

    @staticmethod
    def load(path: str | FilePath, *, constants: Mapping[str, Any] | None = None) -> Model:
        """The model in a file; the suffix says in which language.

        `constants` gives values to those that a model in the PRISM language leaves open.
        """
        from sateen.model.load import load_model

        return load_model(FilePath(path), constants)

    @property
    def species(self) -> tuple[str, ...]:
        """The names of what changes, in the order of the state."""
        return tuple(variable.name for variable in self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that an expression of the model may read."""
        return (
            *self.species,
            *(constant.name for constant in self.constants),
            *(parameter.name for parameter in self.parameters),
        )

    def values(self, theta: Mapping[str, float] | None = None) -> dict[str, float]:
        """The value of every parameter and constant under `theta`; where one is missing, an error that names it."""
        given = dict(theta or {})
        known = [parameter.name for parameter in self.parameters]
        for name, value in given.items():
            if name not in known:
                raise MissingValueError(self._stranger(name, known))
            if not math.isfinite(value):
                raise InputError(f"the parameter {name} is {value}; it must be a finite number")
        values: dict[str, float] = {}
        for parameter in self.parameters:
            chosen = given.get(parameter.name, parameter.default)
            if chosen is None:
                raise MissingValueError(self._without_value(parameter.name, known))
            values[parameter.name] = float(chosen)
        for constant in self.constants:
            values[constant.name] = float(constant.value.evaluate(values))
        return values

    def initial(self, values: Mapping[str, float]) -> dict[str, float]:
        """The state at time 0 under the parameters and constants in `values`: whole numbers within bounds."""
        state: dict[str, float] = {}
        for variable in self.variables:
            count = float(variable.initial.evaluate(values))
            low = -math.inf if variable.low is None else variable.low
            high = math.inf if variable.high is None else variable.high
            if not (np.isfinite(count) and count == round(count) and low <= count <= high):
                source = "" if not variable.initial.names else f" (from {variable.initial})"
                wanted = "a whole number" if variable.low is None else f"a whole number from {low} on"
                wanted = wanted if variable.high is None else f"a whole number from {low} to {high}"
                raise InputError(f"{variable.name} starts at {number_text(count)}{source}; it needs {wanted}")
            state[variable.name] = count
        return state

    def _stranger(self, name: str, known: list[str]) -> str:
        if name in self.species:
            return f"{name} is a species; its initial count is a parameter only if the model says so: {name} = {name}0"
        if name in (constant.name for constant in self.constants):
            return f"{name} is a constant of the model; declare it as a parameter to vary it"
        return " ".join(filter(None, [f"the model has no parameter {name};", nearest(name, known)])).rstrip(";")

    def _without_value(self, name: str, known: list[str]) -> str:
        others = [other for other in (*known, *self.species, *self.names) if other != name]
        hint = nearest(name, others)
        return f"the parameter {name} has no value: {hint + ' If not, ' if hint else ''}give it one, {name}=..."

    def __str__(self) -> str:
        from sateen.model.written import written

        return written(self)

    def __repr__(self) -> str:
        return f"<Model: {len(self.variables)} species, {len(self.transitions)} reactions>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
