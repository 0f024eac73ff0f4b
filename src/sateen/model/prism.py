"""Models in the PRISM language: continuous-time Markov chains, `ctmc`.

The modules are put together at once: every command, and every combination of commands with a common action, becomes a
Transition with a guard. Booleans are whole numbers 0 and 1. Constants without a value are parameters of the model,
unless one is given; those that bound a variable must be given. Rewards are left out, with a note in `model.warnings`;
whatever else changes the process and is not supported is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sateen.core.errors import ModelError
from sateen.language.expression import Expression, Name, Operation
from sateen.language.grammar import Mistake
from sateen.language.prism_syntax import Term
from sateen.language.prism_types import Kind, Scope, Typed
from sateen.model.model import Constant, Model, Parameter
from sateen.model.prism_modules import transitions
from sateen.model.prism_names import Names
from sateen.model.prism_text import Defined, Program, parse_program

__all__ = ["PrismModel", "read_prism"]


@dataclass(frozen=True, slots=True)
class PrismModel:
    """A model that was read from the PRISM language, and what its properties may speak of: formulas and labels."""

    model: Model
    scope: Scope

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels."""
        return tuple(self.scope.labels)


def read_prism(text: str, *, constants: Mapping[str, Any] | None = None) -> PrismModel:
    """The model that a text in the PRISM language describes; `constants` gives values to those without one.

    >>> queue = read_prism('''
    ...     ctmc
    ...     const int capacity;
    ...     const double arrival;
    ...     module queue
    ...         jobs : [0..capacity];
    ...         [] jobs < capacity -> arrival : (jobs'=jobs+1);
    ...         [] jobs > 0        -> 2       : (jobs'=jobs-1);
    ...     endmodule
    ...     label "full" = jobs = capacity;
    ... ''', constants={"capacity": 5})
    >>> print(queue.model)
    species jobs = 0 in [0, 5]
    constant capacity = 5
    parameter arrival
    queue_1: 0 -> jobs @ arrival when jobs < capacity
    queue_2: jobs -> 0 @ 2 when jobs > 0
    <BLANKLINE>
    >>> queue.labels
    ('full',)
    """
    program = parse_program(text)
    try:
        return _assembled(text, program, dict(constants or {}))
    except Mistake as mistake:
        raise ModelError(mistake.message, text, mistake.position, mistake.remedy) from None


def _assembled(text: str, program: Program, given: Mapping[str, Any]) -> PrismModel:
    if not program.modules:
        raise Mistake("this model has no module", len(text), "a module holds variables and commands")
    names = Names(program, given)
    if not names.variables:
        raise Mistake("this model has no variable", program.modules[0].position, "write one like  x : [0..5] init 0;")
    if not any(copy.module.commands for copy in names.copies):
        remedy = "write one like  [] x<5 -> 1 : (x'=x+1);"
        raise Mistake("this model has no command", program.modules[0].position, remedy)
    happening = transitions(names)
    if not happening:
        raise Mistake("nothing can happen in this model: no guard ever holds", program.modules[0].position)
    read: list[Expression] = [variable.initial for variable in names.variables]
    read += [
        each for one in happening for each in (one.rate, one.guard, *dict(one.update).values()) if each is not None
    ]
    needed = names.needed(read)
    kept = {name: value for name, value in names.definitions.items() if name in names.values or name in needed}
    model = Model(
        names.variables,
        happening,
        tuple(Parameter(name) for name in names.constants if name in needed and name not in names.definitions),
        tuple(Constant(name, value) for name, value in kept.items()),
        warnings=tuple(
            f"line {text.count(chr(10), 0, block.position) + 1}: the rewards {block.name or 'here'} are not read"
            for block in program.rewards
        ),
    )
    return PrismModel(model, _scope(names, model, program))


def _scope(names: Names, model: Model, program: Program) -> Scope:
    readable = {*names.declared, *names.constants}
    meanings = {name: names.read(Term("name", 0, text=name)) for name in readable}
    meanings |= {each.name: names.read(Term("name", each.position, text=each.name)) for each in program.formulas}
    labels: dict[str, Typed] = {}
    for label in program.labels:
        labels[label.name] = _label(names, label, labels)
    opened: dict[str, tuple[Kind, Expression | None]] = {
        name: (constant.kind, None)
        for name, constant in names.constants.items()
        if name not in names.definitions and name not in model.names
    }
    opened |= {
        name: (names.constants[name].kind, value)
        for name, value in names.definitions.items()
        if name not in model.names
    }
    starts = tuple(Operation("==", (Name(variable.name), variable.initial)) for variable in names.variables)
    initial = starts[0] if len(starts) == 1 else Operation("and", starts)
    return Scope(
        MappingProxyType(meanings),
        MappingProxyType(labels),
        MappingProxyType(names.values),
        MappingProxyType(opened),
        initial,
    )


def _label(names: Names, label: Defined, before: Mapping[str, Typed]) -> Typed:
    assert label.value is not None
    if label.name in before:
        raise Mistake(f'two labels are called "{label.name}"', label.position, "give one of them another name")
    if label.name in ("init", "deadlock"):
        raise Mistake(f'the label "{label.name}" has a meaning in PRISM already', label.position)
    condition = names.read(label.value)
    if condition.kind != "bool":
        raise Mistake("a label is a condition, and this is a number", label.value.position, "compare it with something")
    return condition
