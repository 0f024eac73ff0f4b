"""Properties in the PRISM language (CSL) as formulas: `P=? [ F<=T "full" ]`.

A file has constants, labels and properties. What a property asks beyond the probability of a path formula is refused by
name, and so is one whose constants have no value; the other properties of the file are read all the same. `X φ` has no
place in continuous time. Bounds of time are closed here: under `F<T` and `F<=T` the probability is the same, for a jump
at the very time T has probability 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from sateen.core.errors import FormulaError, InputError, nearest
from sateen.core.text import number_text, shown
from sateen.language.expression import Boolean, Expression, Operation, number
from sateen.language.grammar import MAX_DEPTH, Mistake, depth_of, pointed
from sateen.language.prism_syntax import Defined, Kind, Term
from sateen.language.prism_types import Scope, Typed, check_kind, closed_value, given_value, typed, unknown_name
from sateen.logic.csl_text import Item, items, parse_definition, parse_question, refused_operator
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


@dataclass(frozen=True, slots=True)
class Property:
    """A path formula of which the probability is asked, or compared: `comparison` is None, or one of < <= > >=."""

    name: str
    formula: Formula
    comparison: str | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Properties(Mapping[str, Property]):
    """The properties of a file by name; one without a name is called property_1, by its place among them.

    Iterating gives those in `read`. `refused` are the errors of the others; asking for one of them raises it.
    """

    read: Mapping[str, Property]
    refused: Mapping[str, FormulaError]

    def __getitem__(self, name: str) -> Property:
        if name in self.refused:
            raise copy(self.refused[name])
        if name not in self.read:
            known = [*self.read, *self.refused]
            hint = nearest(name, known) or f"there are {', '.join(known[:10])}{', ...' if known[10:] else ''}"
            raise KeyError(f"no property {name}; {hint}")
        return self.read[name]

    def __contains__(self, name: object) -> bool:
        return name in self.read

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)


class HasScope(Protocol):
    """A model that was read from the PRISM language."""

    @property
    def scope(self) -> Scope:
        """What its properties may speak of."""


def read_properties(text: str, model: HasScope, *, constants: Mapping[str, object] | None = None) -> Properties:
    """The properties in a file, about a model that `read_prism` read; `constants` gives values to those without one.

    >>> from sateen.model.prism import read_prism
    >>> light = read_prism("ctmc module light on : bool; [] !on -> 2 : (on'=true); endmodule")
    >>> text = 'const double T; "soon": P>=0.9 [ F<=T on ]; "often": S=? [ on ];'
    >>> properties = read_properties(text, light, constants={"T": 3})
    >>> properties["soon"].formula, properties["soon"].comparison, properties["soon"].bound
    (stl('F[0, 3] on == 1'), '>=', 0.9)
    >>> properties.refused["often"].message
    'the steady-state operator S is not supported'
    """
    reader = _Reader(text, model.scope, dict(constants or {}))
    read: dict[str, Property] = {}
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
            read[name] = reader.property(name, item)
        except FormulaError as error:
            refused[name] = error
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

    def property(self, name: str, item: Item) -> Property:
        """The property that an item asks about; FormulaError if it is none of those supported."""
        with pointed(self.text, FormulaError, item.start):
            if refusal := refused_operator(item):
                raise refusal
            path, comparison, limit = parse_question(item)
            bound: float | None = None
            if limit is not None and not 0 <= (bound := self._number(limit, "the bound of P")) <= 1:
                raise Mistake(f"a probability is between 0 and 1, not {bound:g}", limit.position)
            root = self._node(path)
            if depth_of(root, lambda node: node.children) > MAX_DEPTH:
                raise Mistake(f"more than {MAX_DEPTH} levels of operators", path.position)
        return Property(name, Formula(root), comparison, bound)

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
        return _nodes(self._closed(self._condition(term).expression, term))

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
