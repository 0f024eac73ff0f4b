"""How the modules of a PRISM model run together: their commands become transitions.

A command without an action runs alone. Commands with the same action run together, one of every module that knows the
action, wherever all their guards hold; their rates multiply. A module that knows the action, but has no command of it
enabled, blocks it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Final

from sateen.language.expression import Boolean, Expression, Name, Number, Operation
from sateen.language.grammar import Mistake
from sateen.language.prism_types import Typed, check_kind
from sateen.model.checks import negative_by_sign
from sateen.model.model import Transition
from sateen.model.prism_names import Copy, Names
from sateen.model.prism_text import Assigned, Command, Update

__all__ = ["transitions"]

_MOST_TRANSITIONS: Final = 10_000
_MOST_COMBINATIONS: Final = 100_000  # of commands, of which guards may exclude many
_MOST_NODES: Final = 2_000_000  # of all their expressions together
_ONE: Final = Number(1.0)


@dataclass(frozen=True, slots=True)
class _Step:
    """What one alternative of a command does, ready to be combined with those of other modules."""

    guard: tuple[Expression, ...]
    rate: Expression
    assigned: tuple[tuple[str, Expression], ...]
    size: int
    position: int


def transitions(names: Names) -> tuple[Transition, ...]:
    """Every transition of the modules run in parallel, in the order of the text."""
    steps = _Steps(names)
    found: list[tuple[str, Transition]] = []
    nodes = 0
    for label, combined in steps.combinations():
        transition = _transition(combined)
        if transition is None:
            continue
        nodes += sum(step.size for step in combined)
        if len(found) == _MOST_TRANSITIONS or nodes > _MOST_NODES:
            raise _too_many(label, combined[0].position)
        found.append((label, transition))
    moving = [pair for pair in found if pair[1].change or pair[1].update]
    # A jump that changes nothing is none, but a model needs something that can happen.
    return _named(moving or found[:1], set(steps.actions))


def _too_many(label: str, position: int) -> Mistake:
    remedy = "its commands are combined with each other: make their guards, or the modules, fewer"
    return Mistake(f"{label} leads to more transitions than can be run", position, remedy)


class _Steps:
    """The steps of every module by action."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.actions: dict[str, dict[str, list[_Step]]] = {}
        self.order: list[tuple[str, _Step | None]] = []  # an action, where it first stands, or a step alone
        for copy in names.copies:
            for command in copy.module.commands:
                self._add(copy, command)

    def combinations(self) -> Iterator[tuple[str, tuple[_Step, ...]]]:
        """What can happen together, with the action or the module it is called after."""
        total = 0
        for label, step in self.order:
            if step is not None:
                yield label, (step,)
                continue
            modules = self.actions[label].values()
            total += math.prod(map(len, modules))
            if total > _MOST_COMBINATIONS:
                raise _too_many(f"the action {label}", next(iter(modules))[0].position)
            for combined in product(*modules):
                yield label, combined

    def _add(self, copy: Copy, command: Command) -> None:
        guard = self.names.read(command.guard, copy)
        if guard.kind != "bool":
            raise Mistake(
                "a guard is true or false, and this is a number", command.guard.position, "compare it with something"
            )
        action = copy.new(command.action) if command.action else ""
        if action and action not in self.actions:
            self.order.append((action, None))
            self.actions[action] = {}
        known = self.actions[action].setdefault(copy.name, []) if action else []
        for update in command.updates:
            step = self._step(copy, bool(action), guard, update)
            known.append(step)
            if not action:
                self.order.append((copy.name, step))

    def _step(self, copy: Copy, shared: bool, guard: Typed, update: Update) -> _Step:
        rate = Typed(_ONE, "int") if update.rate is None else self.names.read(update.rate, copy)
        if rate.kind == "bool":
            raise Mistake("a rate is a number, and this is true or false", update.position)
        if negative_by_sign(rate.expression):
            raise Mistake(f"the rate {rate.expression} is never positive", update.position, "change its sign")
        if all(name in self.names.values for name in rate.expression.names):
            known = float(rate.expression.evaluate(self.names.values))
            if not 0.0 <= known < math.inf:
                raise Mistake(f"the rate is {known:g}", update.position, "rates are finite and at least 0")
        assigned: dict[str, Typed] = {}
        for each in update.assigned:
            name, value = self._assigned(copy, shared, each)
            if name in assigned:
                raise Mistake(f"{name} is assigned twice", each.position)
            assigned[name] = value
        size = guard.size + rate.size + sum(value.size for value in assigned.values())
        pairs = tuple((name, value.number) for name, value in assigned.items())
        return _Step(_conjuncts(guard.expression), rate.expression, pairs, size, update.position)

    def _assigned(self, copy: Copy, shared: bool, assigned: Assigned) -> tuple[str, Typed]:
        name = copy.new(assigned.name)
        if name not in self.names.declared:
            raise Mistake(f"{name} is not a variable", assigned.position, "only variables can be assigned")
        owner, kind = self.names.owner(name), self.names.declared[name][0].kind
        if owner is not None and owner != copy.name:
            remedy = f"let {owner} do it, in a command with the same action"
            raise Mistake(f"{copy.name} cannot change {name}, a variable of {owner}", assigned.position, remedy)
        if owner is None and shared:
            remedy = "as in PRISM: others may change it at the same time; leave the action out"
            raise Mistake(f"a command with an action cannot change the global {name}", assigned.position, remedy)
        value = self.names.read(assigned.value, copy)
        check_kind(name, kind, value, assigned.value)
        return name, value


def _conjuncts(guard: Expression) -> tuple[Expression, ...]:
    if guard == Boolean(True):
        return ()
    return guard.children if isinstance(guard, Operation) and guard.symbol == "and" else (guard,)


def _transition(steps: Sequence[_Step]) -> Transition | None:
    """Steps that happen together, not yet named; None if their guards exclude each other."""
    guards = tuple(dict.fromkeys(part for step in steps for part in step.guard))
    fixed: dict[str, float] = {}
    for part in guards:
        if part == Boolean(False):
            return None
        if (equality := _equality(part)) and fixed.setdefault(*equality) != equality[1]:
            return None
    factors = [step.rate for step in steps if step.rate != _ONE]
    rate = reduce(lambda left, right: Operation("*", (left, right)), factors) if factors else _ONE
    guard = guards[0] if len(guards) == 1 else Operation("and", guards)
    assigned = [(name, value) for step in steps for name, value in step.assigned if value != Name(name)]
    changes = [_change(name, value, fixed) for name, value in assigned]
    known = {name: change for (name, _), change in zip(assigned, changes, strict=True) if change is not None}
    if len(known) < len(assigned):
        return Transition("", rate, update=tuple(assigned), guard=guard if guards else None)
    return Transition(
        "",
        rate,
        consumed=tuple((name, -change) for name, change in known.items() if change < 0),
        produced=tuple((name, change) for name, change in known.items() if change > 0),
        guard=guard if guards else None,
    )


def _equality(condition: Expression) -> tuple[str, float] | None:
    """The variable and the number of a condition `x == 3`."""
    match condition:
        case Operation("==", (Name(name), value)) | Operation("==", (value, Name(name))):
            return None if (known := _literal(value)) is None else (name, known)
    return None


def _change(name: str, value: Expression, fixed: Mapping[str, float]) -> int | None:
    """What an assignment adds, if its form, or what the guard fixes, says that it is always the same."""
    match value:
        case Operation("+", (Name(read), step)) | Operation("+", (step, Name(read))) if read == name:
            added = _literal(step)
        case _:
            literal = _literal(value)
            added = literal - fixed[name] if literal is not None and name in fixed else None
    return None if added is None else int(added)


def _literal(expression: Expression) -> float | None:
    match expression:
        case Number(literal):
            return literal
        case Operation("-", (Number(literal),)):
            return -literal
    return None


def _named(found: Sequence[tuple[str, Transition]], actions: set[str]) -> tuple[Transition, ...]:
    """Calls them after their action, or their module, with numbers where there are several."""
    counts = Counter(label for label, _ in found)
    taken = {label for label in actions if counts[label] == 1}
    numbers: dict[str, int] = {}
    named = []
    for label, transition in found:
        name = label
        if label not in taken:
            numbers[label] = numbers.get(label, 0) + 1
            name = f"{label}_{numbers[label]}"
            while name in taken:
                name += "_"
            taken.add(name)
        named.append(replace(transition, name=name))
    return tuple(named)
