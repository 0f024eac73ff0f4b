"""Properties in the PRISM language (CSL) as formulas and rewards: `P=? [ F<=T "full" ]`, `R=? [ C<=T ]`.

A file has constants, labels and properties. What a property asks beyond the probability of a path formula, or an
expected reward, is refused by name, and so is one whose constants have no value. The other properties of the file are
read all the same, and a warning says which are not.

`X φ` has no place in continuous time. Bounds of time are closed here: under `F<T` and `F<=T` the probability is the
same, for a jump at the very time T has probability 0.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, Protocol

from sateen.core.errors import FormulaError, InputError, SateenWarning, nearest
from sateen.core.printable import printable
from sateen.core.text import number_text, shown
from sateen.language.expression import Boolean, Expression, Operation, joined_parts, number
from sateen.language.grammar import MAX_DEPTH, Mistake, depth_of, pointed
from sateen.language.prism_syntax import Defined, Kind, Term
from sateen.language.prism_types import (
    Earned,
    Scope,
    Typed,
    check_kind,
    closed_value,
    given_value,
    typed,
    unknown_name,
)
from sateen.logic.csl_text import Item, Question, items, parse_definition, parse_question, refused_operator
from sateen.logic.formula import (
    ALWAYS,
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Iff,
    Implies,
    Interval,
    Node,
    Not,
    Or,
    Truth,
    Until,
)
from sateen.logic.properties import Properties, Property
from sateen.logic.rewards import Reward

_MOST_LISTED: Final = 20  # of the properties that cannot be asked


class HasScope(Protocol):
    """A model that was read from the PRISM language."""

    @property
    def scope(self) -> Scope:
        """What its properties may speak of."""


def read_properties(text: str, model: HasScope, *, constants: Mapping[str, object] | None = None) -> Properties:
    """The properties in a file, about a model that `read_prism` read; `constants` gives values to those without one.

    A SateenWarning lists those that are not supported, each with its line and the reason.

    >>> from sateen.model.prism import read_prism
    >>> light = read_prism('''
    ...     ctmc
    ...     module light on : bool; [] !on -> 2 : (on'=true); endmodule
    ...     rewards "energy" on : 60; endrewards
    ... ''')
    >>> text = 'const double T; "soon": P>=0.9 [ F<=T on ]; "used": R{"energy"}=? [ C<=T ];'
    >>> properties = read_properties(text, light, constants={"T": 3})
    >>> properties["soon"].formula, properties["soon"].comparison, properties["soon"].bound
    (stl('F[0, 3] on == 1'), '>=', 0.9)
    >>> print(properties["used"].formula)
    R{"energy"}[C<=3] of if(on == 1, 60, 0)
    """
    reader = _Reader(text, model.scope, dict(constants or {}))
    read: dict[str, Property[Any]] = {}
    refused: dict[str, FormulaError] = {}
    asked: list[Item] = []
    for item in items(text):
        if item.kind == "property":
            asked.append(item)
        else:
            reader.declare(item)
    reader.close()
    for place, item in enumerate(asked):
        name = item.name or f"property_{place + 1}"
        if name in read or name in refused:
            raise FormulaError(f"two properties are called {name}", text, item.start, "give one of them another name")
        try:
            read[name] = Property(name, *reader.property(item))
        except FormulaError as error:
            refused[name] = error
    if refused:
        lines = [f"line {error.line}, {name}: {error.message}" for name, error in refused.items()]
        if len(lines) > _MOST_LISTED:
            lines = [*lines[:_MOST_LISTED], f"and {len(lines) - _MOST_LISTED:,} more, in `refused`"]
        message = f"{len(refused)} of {len(asked)} properties cannot be asked:"
        warnings.warn(printable("\n  ".join([message, *lines])), SateenWarning, stacklevel=2)
    return Properties(MappingProxyType(read), MappingProxyType(refused))


class _Reader:
    """Collects the constants and labels of a file, then reads its properties."""

    def __init__(self, text: str, scope: Scope, given: Mapping[str, object]) -> None:
        self.text = text
        self.scope = scope
        self.given = given
        self.kinds: dict[str, Kind] = {}
        self.values: dict[str, float] = {}  # of constants of the file, and of those that the model left open
        self.labels: dict[str, Typed | _WithoutValue] = {}
        self.defined: list[tuple[Item, str, Term]] = []  # constants whose value is still to be worked out
        self.conditions: dict[str, tuple[Item, Term]] = {}  # labels that are still to be looked up
        for name, (kind, definition) in scope.open.items():
            if name in given:
                if definition is not None:
                    raise InputError(f"the constant {name} has a value already: {definition}")
                self.values[name] = self._given(name, kind)

    def declare(self, item: Item) -> None:
        """Takes in a constant or a label; what is wrong with one is an error of the file."""
        with pointed(self.text, FormulaError, item.start):
            defined = parse_definition(item)
            name = defined.name
            if item.kind == "constant":
                self._constant(item, defined)
                return
            if name in self.scope.labels or name in self.conditions or name in ("init", "deadlock"):
                raise Mistake(f'the label "{name}" has a meaning already', defined.position, "give it another name")
            assert defined.value is not None
            self.conditions[name] = (item, defined.value)

    def close(self) -> None:
        """Works out constants and labels, once all are declared, and refuses values that nothing asks for."""
        reads = {name: {each for each in _names(value) if each in self.kinds} for _, name, value in self.defined}
        while ready := [each for each in self.defined if reads[each[1]] <= self.values.keys()]:
            for item, name, value in ready:
                with pointed(self.text, FormulaError, item.start), suppress(_WithoutValue):
                    # Where it reads a constant without a value it has none either: an error of what uses it.
                    made = typed(value, self._lookup)
                    check_kind(name, self.kinds[name], made, value)
                    self.values[name] = self._value(made, value, f"the constant {name}")
            done = {name for _, name, _ in ready}
            self.defined = [each for each in self.defined if each[1] not in done]
        for name, (item, condition) in self.conditions.items():
            with pointed(self.text, FormulaError, item.start):
                try:
                    self.labels[name] = self._condition(condition)
                except _WithoutValue as missing:  # an error of the properties that use it, not of the file
                    self.labels[name] = missing
        for name, constant in self.given.items():
            if name in self.kinds or name in self.scope.open:
                continue
            if name not in self.scope.values:
                hint = nearest(name, [*self.kinds, *self.scope.open, *self.scope.values])
                if name in self.scope.names:
                    hint = "the model has it, but was read without a value for it: give it there too"
                raise InputError(f"there is no constant {name} to be given here" + (f"; {hint}" if hint else ""))
            if constant != self.scope.values[name]:
                was = number_text(self.scope.values[name])
                raise InputError(f"the constant {name} is {shown(constant)} here, but the model was read with {was}")

    def property(self, item: Item) -> tuple[Formula | Reward, str | None, float | None]:
        """What an item asks, and what it compares with which bound; FormulaError if that is not supported."""
        with pointed(self.text, FormulaError, item.start):
            if refusal := refused_operator(item):
                raise refusal
            question = parse_question(item)
            self._check_filter(question)
            asked = self._path(question) if question.operator == "P" else self._reward(question)
            bound: float | None = None
            if (limit := question.bound) is not None:
                bound = self._number(limit, f"the bound of {question.operator}")
                if question.operator == "P" and not 0 <= bound <= 1:
                    raise Mistake(f"a probability is between 0 and 1, not {bound:g}", limit.position)
                if bound < 0:
                    raise Mistake(f"a reward is never negative, and this is {bound:g}", limit.position)
        return asked, question.comparison, bound

    def _path(self, question: Question) -> Formula:
        root = self._node(question.path)
        if depth_of(root, lambda node: node.children) > MAX_DEPTH:
            raise Mistake(f"more than {MAX_DEPTH} levels of operators", question.path.position)
        return Formula(root)

    def _reward(self, question: Question) -> Reward:
        """What is earned: C<=t, I=t or F φ."""
        earned, path = self._earned(question), question.path
        if path.symbol == "F" and not path.operands[1:]:
            goal = self._present(path.operands[0])
            return Reward(self._rate(earned.rate, path), "F", goal=goal, name=earned.name)
        if path.symbol not in ("C", "I"):
            message = "rewards are asked for by C<=t, C, I=t or F"
            raise Mistake(message, path.position, "this is another path, for which sateen has no rewards")
        times = [self._number(time, "the time") for time in path.operands]
        if times and times[0] < 0:
            raise Mistake(f"the time is {times[0]:g}", path.operands[0].position, "times count from 0 up")
        if path.symbol == "C":
            until = times[0] if times else math.inf
            return Reward(self._rate(earned.rate, path), "C", until, name=earned.name)
        return Reward(self._rate(earned.state, path), "I", times[0], name=earned.name)

    def _rate(self, rate: Typed, term: Term) -> Expression:
        return self._closed(rate.number, term)

    def _earned(self, question: Question) -> Earned:
        """The rewards that a question is about; without a name or a number, the first ones."""
        rewards, which = self.scope.rewards, question.structure
        if not rewards:
            remedy = 'a model in the PRISM language has them in  rewards "name" ... endrewards'
            raise Mistake("the model has no rewards", question.path.position, remedy)
        if which is None:
            return rewards[0]
        if which.symbol == "label":
            for each in rewards:
                if each.name == which.text:
                    return each
            names = [each.name for each in rewards if each.name]
            hint = nearest(which.text, names) or f"it has {', '.join(names) or 'none with a name'}"
            raise Mistake(f'the model has no rewards "{which.text}"', which.position, hint)
        place = self._number(which, "the number of the rewards")
        if place not in range(1, len(rewards) + 1):
            raise Mistake(f"the model has no rewards {place:g}", which.position, f"they count from 1 to {len(rewards)}")
        return rewards[int(place) - 1]

    def _check_filter(self, question: Question) -> None:
        """Refuses a filter unless it asks for the value in the initial state."""
        asked = question.filter
        if asked is None:
            return
        initial = set(joined_parts("and", self.scope.initial))
        if asked.states is None or initial != set(joined_parts("and", self._present(asked.states))):
            where = asked.position if asked.states is None else asked.states.position
            message = f"this filter({asked.operator}, ...) is about other states than the initial one"
            raise Mistake(message, where, 'runs begin in the initial state: write "init"')

    def _given(self, name: str, kind: Kind) -> float:
        try:
            return given_value(name, kind, self.given[name])
        except ValueError as error:
            raise InputError(str(error)) from None

    def _constant(self, item: Item, constant: Defined) -> None:
        name, kind = constant.name, constant.kind
        if name in self.kinds or name in self.scope.names:
            raise Mistake(f"{name} is declared already", constant.position, "give it another name")
        self.kinds[name] = kind
        if constant.value is not None:
            if name in self.given:
                remedy = f"leave it open: const {kind} {name};"
                raise Mistake(f"the constant {name} has a value already", constant.position, remedy)
            self.defined.append((item, name, constant.value))
        elif name in self.given:
            self.values[name] = self._given(name, kind)

    def _lookup(self, term: Term) -> Typed:
        if term.symbol == "label":
            return self._label(term)
        name = term.text
        if name in self.kinds:
            if name not in self.values:
                raise _WithoutValue(name, term.position)
            return Typed.literal(self.values[name], self.kinds[name])
        if name not in self.scope.names:
            raise unknown_name(term, {**self.kinds, **self.scope.names}, "variable, constant or formula")
        return self.scope.names[name]

    def _label(self, term: Term) -> Typed:
        if term.text == "init":
            return Typed(self.scope.initial, "bool")
        if term.text == "deadlock":
            remedy = "write the condition under which nothing can happen"
            raise Mistake('the label "deadlock" is not supported', term.position, remedy)
        labels = {**self.scope.labels, **self.labels}
        if term.text not in labels:
            hint = nearest(term.text, labels)
            raise Mistake(f'there is no label "{term.text}" before this', term.position, hint)
        meaning = labels[term.text]
        if isinstance(meaning, _WithoutValue):
            raise _WithoutValue(meaning.name, term.position)
        return meaning

    def _condition(self, term: Term) -> Typed:
        """A condition on the present state."""
        made = typed(term, self._lookup)
        if made.kind != "bool":
            raise Mistake("this is a number, not a property", term.position, "compare it with something")
        return made

    def _present(self, term: Term) -> Expression:
        """The expression of a condition on the present state."""
        return self._closed(self._condition(term).expression, term)

    def _number(self, term: Term, purpose: str) -> float:
        made = typed(term, self._lookup)
        if made.kind == "bool":
            raise Mistake(f"{purpose} is a number, and this is true or false", term.position)
        return self._value(made, term, purpose)

    def _value(self, made: Typed, term: Term, purpose: str) -> float:
        closed = Typed(self._closed(made.number, term), "double")
        return closed_value(closed, term, {**self.scope.values, **self.values}, purpose)

    def _node(self, term: Term) -> Node:
        match term.symbol:
            case "F" | "G":
                kind = Eventually if term.symbol == "F" else Globally
                return kind(self._window(term, term.operands[1:]), self._node(term.operands[0]))
            case "U" | "W" | "R":
                left, right = map(self._node, term.operands[:2])
                window = self._window(term, term.operands[2:])
                if term.symbol == "U":
                    return Until(window, left, right)
                if term.symbol == "R":  # release
                    return Not(Until(window, Not(left), Not(right)))
                return Not(Until(window, And((left, Not(right))), And((Not(left), Not(right)))))  # weak until
            case "X":
                remedy = "in continuous time there is no next moment; ask for a time: F<=T"
                raise Mistake("X is not supported", term.position, remedy)
            case "&" | "|":
                joined = And if term.symbol == "&" else Or
                return joined(tuple(map(self._node, term.operands)))
            case "!":
                return Not(self._node(term.operands[0]))
            case "=>" | "<=>":
                left, right = map(self._node, term.operands)
                return Implies(left, right) if term.symbol == "=>" else Iff(left, right)
        return _nodes(self._present(term))

    def _closed(self, expression: Expression, term: Term) -> Expression:
        """An expression with values in the place of what the model left open."""
        for name, (_, definition) in reversed(list(self.scope.open.items())):
            if name in expression.names:
                if name not in self.values and definition is None:
                    raise _WithoutValue(name, term.position)
                expression = expression.substitute({name: definition or number(self.values[name])})
        return expression

    def _window(self, term: Term, bounds: tuple[Term, ...]) -> Interval:
        times = [self._number(bound, "the bound") for bound in bounds]
        for time, bound in zip(times, bounds, strict=True):
            if time < 0 or (time == 0 and term.text == "<"):
                message = "nothing lies before time 0" if time == 0 else f"the bound is {time:g}"
                raise Mistake(message, bound.position, "times count from 0 up")
        match term.text:
            case "<=" | "<":
                return Interval(0.0, times[0])
            case ">" if term.symbol in ("U", "W", "R"):
                message = f"{term.symbol} with a bound > is not supported"
                raise Mistake(message, bounds[0].position, "write >=; what holds at that very time may matter")
            case ">=" | ">":
                return Interval(times[0], math.inf)
            case "=":
                return Interval(times[0], times[0])
            case "[]":
                if times[0] > times[1]:
                    raise Mistake(f"this window ends before it begins: {times[0]:g} > {times[1]:g}", bounds[0].position)
                return Interval(*times)
        return ALWAYS


class _WithoutValue(Mistake):
    """A constant that has no value."""

    def __init__(self, name: str, position: int) -> None:
        remedy = f'give it one: {{constants={{"{name}": 10}}}}'
        super().__init__(f"the constant {name} has no value", position, remedy)
        self.name = name


def _nodes(condition: Expression) -> Node:
    """A condition as a formula."""
    match condition:
        case Boolean(literal):
            return Truth(literal)
        case Operation("and", operands):
            return And(tuple(map(_nodes, operands)))
        case Operation("or", operands):
            return Or(tuple(map(_nodes, operands)))
        case Operation("not", (operand,)):
            return Not(_nodes(operand))
    return Atom(condition)


def _names(term: Term) -> Iterator[str]:
    """The names that a term reads."""
    if term.symbol == "name":
        yield term.text
    for operand in term.operands:
        yield from _names(operand)
