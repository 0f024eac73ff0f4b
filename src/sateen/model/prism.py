"""Models in the PRISM language: continuous-time Markov chains, `ctmc`.

The modules are combined at once: every command, and every combination of commands with a common action, becomes a
Transition with a guard. Booleans are whole numbers 0 and 1. Constants without a value are parameters of the model,
unless one is given; those that bound a variable must be given. Rewards change nothing in the model: they are for its
properties. What changes the process and is not supported is refused by name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Final

from sateen.core.errors import ModelError, nearest
from sateen.language.expression import (
    Boolean,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    joined,
    joined_parts,
    literal_value,
)
from sateen.language.grammar import Mistake, pointed
from sateen.language.prism_syntax import Kind, Term
from sateen.language.prism_types import Earned, Scope, Typed, check_kind
from sateen.model.checks import MOST_MOLECULES, negative_by_sign
from sateen.model.model import Constant, Model, Parameter, Transition, names_read, new_name
from sateen.model.prism_names import Copy, Names
from sateen.model.prism_system import MOST_COMBINATIONS, Happening, Part, Step, composed, too_many
from sateen.model.prism_text import Assigned, Command, Program, Reward, Rewards, Update, parse_program
from sateen.model.readers import ModelReader, read_file

_MOST_TRANSITIONS: Final = 10_000
_MOST_NODES: Final = 2_000_000  # of all their expressions together
_MOST_REWARD_NODES: Final = 200_000  # of the rates of all rewards together
_ONE: Final = Number(1.0)
_NOTHING: Final = Number(0.0)


@dataclass(frozen=True, slots=True)
class PrismModel:
    """A model that was read from the PRISM language, and what its properties may speak of: formulas and labels."""

    model: Model
    scope: Scope

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels."""
        return tuple(self.scope.labels)


def read_prism(text: str, *, constants: Mapping[str, object] | None = None) -> PrismModel:
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
    with pointed(text, ModelError):
        return _assembled(text, program, dict(constants or {}))


def load_prism(path: Path, constants: Mapping[str, object] | None = None) -> PrismModel:
    """The model in a file in the PRISM language, with its labels and formulas, for properties."""
    return read_prism(read_file(path), constants=constants)


READER: Final = ModelReader(
    lambda text, constants: read_prism(text, constants=constants).model,
    takes_constants=True,
)


def _assembled(text: str, program: Program, given: Mapping[str, object]) -> PrismModel:
    if not program.modules:
        raise Mistake("this model has no module", len(text), "a module holds variables and commands")
    names = Names(program, given)
    if not names.variables:
        raise Mistake("this model has no variable", program.modules[0].position, "write one like  x : [0..5] init 0;")
    if not any(copy.module.commands for copy in names.copies):
        remedy = "write one like  [] x<5 -> 1 : (x'=x+1);"
        raise Mistake("this model has no command", program.modules[0].position, remedy)
    moves = _moves(names, program)
    if not moves:
        raise Mistake("nothing can happen in this model: no guard ever holds", program.modules[0].position)
    # A jump that changes nothing is none, but a model needs something that can happen.
    moving = [move for move in moves if move.transition.change or move.transition.update]
    transitions = _named(moving or moves[:1])
    needed = names.needed(names_read(names.variables, transitions))
    kept = {name: value for name, value in names.definitions.items() if name in names.values or name in needed}
    model = Model(
        names.variables,
        transitions,
        tuple(Parameter(name) for name in names.constants if name in needed and name not in names.definitions),
        tuple(Constant(name, value) for name, value in kept.items()),
    )
    return PrismModel(model, _scope(names, model, program, _rewards(names, program, moves)))


def _scope(names: Names, model: Model, program: Program, rewards: tuple[Earned, ...]) -> Scope:
    readable = {*names.declared, *names.constants}
    meanings = {name: names.read(Term("name", 0, text=name)) for name in readable}
    meanings |= {each.name: names.read(Term("name", each.position, text=each.name)) for each in program.formulas}
    labels: dict[str, Typed] = {}
    for label in program.labels:
        assert label.value is not None
        if label.name in labels:
            raise Mistake(f'two labels are called "{label.name}"', label.position, "give one of them another name")
        if label.name in ("init", "deadlock"):
            raise Mistake(f'the label "{label.name}" has a meaning in PRISM already', label.position)
        labels[label.name] = names.condition(label.value, None, "a label is a condition")
    undefined = [name for name in names.constants if name not in names.definitions]
    kept = set(model.names)
    opened: dict[str, tuple[Kind, Expression | None]] = {
        name: (names.constants[name].kind, names.definitions.get(name))
        for name in (*undefined, *names.definitions)
        if name not in kept
    }
    starts = [Operation("==", (Name(variable.name), variable.initial)) for variable in names.variables]
    return Scope(
        MappingProxyType(meanings),
        MappingProxyType(labels),
        MappingProxyType(names.values),
        MappingProxyType(opened),
        joined("and", starts),
        rewards,
    )


@dataclass(frozen=True, slots=True)
class _Move:
    """A transition that is not yet named, what it is called after, and the action by which it is seen to happen."""

    label: str
    action: str
    transition: Transition


def _moves(names: Names, program: Program) -> list[_Move]:
    """Everything that can happen, in the order of the text.

    A command without an action runs alone. Commands with the same action run together, one of every module that knows
    the action, wherever all their guards hold; their rates multiply. A module that knows the action, but has no command
    of it enabled, blocks it. A `system` may say otherwise.
    """
    parts: dict[str, Part] = {}
    order = 0
    for copy in names.copies:
        alone: list[Happening] = []
        shared: dict[str, Happening] = {}
        for command in copy.module.commands:
            order += 1
            steps = _steps(names, copy, command)
            if not command.action:
                alone += [Happening(order, copy.name, "", ((step,),)) for step in steps]
                continue
            action = copy.new(command.action)
            happening = Happening(order, action, action, tuple((step,) for step in steps))
            shared[action] = shared[action].joined(happening) if action in shared else happening
        parts[copy.name] = Part(tuple(alone), shared)
    moves: list[_Move] = []
    combinations = nodes = 0
    for happening in composed(program.system, parts).happenings:
        combinations += len(happening.combinations)
        for combined in happening.combinations:
            transition = _transition(combined)
            if transition is not None:
                nodes += sum(step.size for step in combined)
                moves.append(_Move(happening.label, happening.action, transition))
            if max(combinations / MOST_COMBINATIONS, len(moves) / _MOST_TRANSITIONS, nodes / _MOST_NODES) > 1:
                raise too_many(happening.label, combined[0].position)
    return moves


def _steps(names: Names, copy: Copy, command: Command) -> list[Step]:
    """The alternatives of a command."""
    guard = names.condition(command.guard, copy, "a guard is true or false")
    conjuncts = () if guard.expression == Boolean(True) else joined_parts("and", guard.expression)
    steps = []
    for update in command.updates:
        rate = _rate(names, copy, update)
        assigned: dict[str, Typed] = {}
        for each in update.assigned:
            name, value = _assigned(names, copy, bool(command.action), each)
            if name in assigned:
                raise Mistake(f"{name} is assigned twice", each.position)
            assigned[name] = value
        size = guard.size + rate.size + sum(value.size for value in assigned.values())
        pairs = tuple((name, value.number) for name, value in assigned.items())
        steps.append(Step(conjuncts, rate.expression, pairs, size, update.position))
    return steps


def _rate(names: Names, copy: Copy, update: Update) -> Typed:
    rate = Typed(_ONE, "int") if update.rate is None else names.read(update.rate, copy)
    if rate.kind == "bool":
        raise Mistake("a rate is a number, and this is true or false", update.position)
    if negative_by_sign(rate.expression):
        raise Mistake(f"the rate {rate.expression} is never positive", update.position, "change its sign")
    if all(name in names.values for name in rate.expression.names):
        known = float(rate.expression.evaluate(names.values))
        if not 0.0 <= known < math.inf:
            raise Mistake(f"the rate is {known:g}", update.position, "rates are finite and at least 0")
    return rate


def _assigned(names: Names, copy: Copy, shared: bool, assigned: Assigned) -> tuple[str, Typed]:
    name = copy.new(assigned.name)
    if name not in names.declared:
        raise Mistake(f"{name} is not a variable", assigned.position, "only variables can be assigned")
    declared, owner = names.declared[name]
    if owner is not None and owner is not copy:
        remedy = f"let {owner.name} do it, in a command with the same action"
        raise Mistake(f"{copy.name} cannot change {name}, a variable of {owner.name}", assigned.position, remedy)
    if owner is None and shared:
        remedy = "as in PRISM: others may change it at the same time; leave the action out"
        raise Mistake(f"a command with an action cannot change the global {name}", assigned.position, remedy)
    value = names.read(assigned.value, copy)
    check_kind(name, declared.kind, value, assigned.value)
    return name, value


def _transition(steps: Sequence[Step]) -> Transition | None:
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
    guard = joined("and", guards) if guards else None
    assigned = [(name, value) for step in steps for name, value in step.assigned if value != Name(name)]
    changes = [(name, _change(name, value, fixed)) for name, value in assigned]
    known = [(name, change) for name, change in changes if change is not None]
    if len(known) < len(assigned):
        return Transition("", rate, update=tuple(assigned), guard=guard)
    return Transition(
        "",
        rate,
        consumed=tuple((name, -change) for name, change in known if change < 0),
        produced=tuple((name, change) for name, change in known if change > 0),
        guard=guard,
    )


def _equality(condition: Expression) -> tuple[str, float] | None:
    """The variable and the number of a condition `x == 3`."""
    match condition:
        case Operation("==", (Name(name), value)) | Operation("==", (value, Name(name))):
            return None if (known := literal_value(value)) is None else (name, known)
    return None


def _change(name: str, value: Expression, fixed: Mapping[str, float]) -> int | None:
    """What an assignment adds, if its form, or what the guard fixes, says that it is always the same."""
    match value:
        case Operation("+", (Name(read), step)) | Operation("+", (step, Name(read))) if read == name:
            added = literal_value(step)
        case _:
            literal = literal_value(value)
            added = literal - fixed[name] if literal is not None and name in fixed else None
    return None if added is None or abs(added) > MOST_MOLECULES else int(added)


def _named(moves: Sequence[_Move]) -> tuple[Transition, ...]:
    """Calls them after their action, or their module, with numbers where there are several."""
    counts = Counter(move.label for move in moves)
    taken = {move.label for move in moves if move.action and counts[move.label] == 1}
    numbers: dict[str, int] = {}
    named = []
    for move in moves:
        name = move.label
        if name not in taken:
            numbers[name] = numbers.get(name, 0) + 1
            name = new_name(f"{name}_{numbers[name]}", taken)
        named.append(replace(move.transition, name=name))
    return tuple(named)


def _rewards(names: Names, program: Program, moves: Sequence[_Move]) -> tuple[Earned, ...]:
    """What each structure of rewards pays, as a rate in every state.

    A state's reward is earned per unit of time, and a transition's reward whenever the transition fires, also if it
    changes nothing. On average a transition of rate λ that pays r earns λr per unit of time, and over any time, also
    up to the first visit to some states, the expected sum is the same (Dynkin's formula).
    """
    actions = {copy.new(command.action) for copy in names.copies for command in copy.module.commands} - {""}
    if program.system is not None:
        actions |= program.system.introduced
    structures: dict[str, Earned] = {}
    nodes = 0
    for place, structure in enumerate(program.rewards):
        if structure.name and structure.name in structures:
            remedy = "give one of them another name"
            raise Mistake(f'two rewards are called "{structure.name}"', structure.position, remedy)
        made = _earned(names, structure, actions, moves)
        nodes += sum(1 for _ in in_order(made.rate.expression))
        if nodes > _MOST_REWARD_NODES:
            raise Mistake("these rewards are earned by too many transitions to be read", structure.position)
        structures[structure.name or str(place)] = made
    return tuple(structures.values())


def _earned(names: Names, structure: Rewards, actions: set[str], moves: Sequence[_Move]) -> Earned:
    states: list[Expression] = []
    transitions: list[Expression] = []
    for item in structure.items:
        guard, value = _reward(names, item)
        if item.action is None:
            states.append(_where(guard, value))
            continue
        if (action := item.action.name) and action not in actions:
            hint = nearest(action, actions) or "it stands between [ and ] of a command"
            raise Mistake(f"no command has the action {action}", item.action.position, hint)
        rates = [_firing(move.transition) for move in moves if move.action == action]
        if rates:
            paid = _sum(rates) if value == _ONE else Operation("*", (_sum(rates), value))
            transitions.append(_where(guard, paid))
    state, rate = _sum(states), _sum([*states, *transitions])
    return Earned(structure.name, Typed(state, "double"), Typed(rate, "double"))


def _reward(names: Names, item: Reward) -> tuple[Expression, Expression]:
    """The condition and the value of an item."""
    guard = names.condition(item.guard, None, "rewards are given under a condition")
    value = names.read(item.value)
    if value.kind == "bool":
        raise Mistake("a reward is a number, and this is true or false", item.value.position)
    if negative_by_sign(value.expression):
        raise Mistake("a reward is never negative", item.value.position, "ask for the positive part and subtract")
    return guard.expression, value.expression


def _firing(transition: Transition) -> Expression:
    """The rate at which a transition fires: 0 where its guard does not hold."""
    return transition.rate if transition.guard is None else _where(transition.guard, transition.rate)


def _where(condition: Expression, value: Expression) -> Expression:
    """A value where a condition holds, and else 0."""
    if isinstance(condition, Boolean):
        return value if condition.literal else _NOTHING
    return Operation("if", (condition, value, _NOTHING))


def _sum(terms: Iterable[Expression]) -> Expression:
    found = [term for term in terms if term != _NOTHING]
    return joined("+", found) if found else _NOTHING
