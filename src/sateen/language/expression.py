"""Arithmetic over names: one small language for rates, atoms, guards and updates.

An Expression is a frozen tree of leaves (Number, Boolean, Name, Delayed) and Operations. It prints back as text that
parses to an equal tree, evaluates on a dict of numbers or of arrays, and emits source for the engine. Arithmetic is
IEEE: `1/0` is infinite and `0/0` is not a number; who evaluates decides what that means.

>>> from sateen.language.grammar import parse_expression
>>> rate = parse_expression("beta * S * I / N")
>>> print(rate, rate.names)
beta * S * I / N ('beta', 'S', 'I', 'N')
>>> float(rate.evaluate({"beta": 0.12, "S": 95, "I": 5, "N": 100}))
0.57
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from sateen.core.text import number_text

Value: TypeAlias = Any  # a numpy scalar, or an array of them
Values: TypeAlias = Mapping[Any, Value]  # by name, or by (name, lag) where a value is delayed
Spelling: TypeAlias = "Callable[[Name | Delayed], str]"  # how the engine spells a name in source

FUNCTIONS: Final = ("min", "max", "abs", "exp", "log", "sqrt", "floor", "ceil", "sin", "cos")
COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
LARGEST_WHOLE: Final = 2**53  # whole numbers beyond are not exact
RESERVED: Final = frozenset({*FUNCTIONS, "if", "and", "or", "not", "true", "false", "inf"})

_COMPUTE: Final[Mapping[str, Callable[..., Value]]] = {
    "or": np.logical_or,
    "and": np.logical_and,
    "not": np.logical_not,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "+": np.add,
    "*": np.multiply,
    "/": np.true_divide,
    "-": np.negative,
    "^": np.power,
    "min": np.minimum,
    "max": np.maximum,
    **{function: getattr(np, function) for function in FUNCTIONS[2:]},
}

# How tightly each symbol binds; a looser operand is printed in brackets. Whatever is not here is an atom of the text.
_BINDING: Final = {"or": 0, "and": 1, "not": 2, **dict.fromkeys(COMPARISONS, 3), "+": 4, "*": 5, "/": 5, "-": 6, "^": 7}
_ATOM: Final = 8
_SOURCE_MARKS: Final = {"or": "|", "and": "&", "^": "**"}
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")


class Expression:
    """A node of the tree: one of the four leaves, or an Operation."""

    __slots__ = ()

    @property
    def binding(self) -> int:
        """How tightly it binds, among the texts of its kind."""
        return _ATOM

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands, from left to right."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names it reads, each once, in order of appearance."""
        leaves = (node for node in in_order(self) if isinstance(node, Name | Delayed))
        return tuple(dict.fromkeys(leaf.name for leaf in leaves))

    def evaluate(self, values: Values) -> Value:
        """Its value where each name has the value, or the array of values, in `values`."""
        with np.errstate(all="ignore"):
            return self.value(values)

    def value(self, values: Values) -> Value:
        """`evaluate` without silencing numpy's warnings: for loops that silence them once."""
        raise NotImplementedError

    def substitute(self, replacements: Mapping[str, Expression]) -> Expression:
        """The same tree with names replaced by trees; what is delayed stays."""
        return self

    def emit(self, spell: Spelling) -> str:
        """Source in which every operation is bracketed and every name is spelt by `spell`."""
        raise NotImplementedError

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        """Text that parses back to an equal tree; names in `reserved` are quoted in backquotes."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A finite number that is not negative; `number(-3)` makes the tree of -3."""

    literal: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.literal) and math.copysign(1.0, self.literal) > 0):
            raise ValueError(f"a Number is finite and not negative, not {self.literal}")

    def value(self, values: Values) -> Value:
        return np.float64(self.literal)

    def emit(self, spell: Spelling) -> str:
        return repr(float(self.literal))

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        return number_text(self.literal)


@dataclass(frozen=True, slots=True)
class Boolean(Expression):
    """`true` or `false`."""

    literal: bool

    def value(self, values: Values) -> Value:
        return np.bool_(self.literal)

    def emit(self, spell: Spelling) -> str:
        return repr(self.literal)

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        return "true" if self.literal else "false"


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A species, a parameter or a constant."""

    name: str

    def value(self, values: Values) -> Value:
        value = values[self.name]
        return value if isinstance(value, np.ndarray) else np.float64(value)

    def substitute(self, replacements: Mapping[str, Expression]) -> Expression:
        return replacements.get(self.name, self)

    def emit(self, spell: Spelling) -> str:
        return spell(self)

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        if amount := concentrated(self.name):
            return f"[{Name(amount).text(reserved)}]"
        plain = _PLAIN_NAME.fullmatch(self.name) and self.name not in reserved
        return self.name if plain else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Delayed(Expression):
    """`X(t-1)`: the value that X had `lag` time units earlier; before time 0, its initial value.

    It evaluates under the key `(name, lag)`.
    """

    name: str
    lag: float

    def value(self, values: Values) -> Value:
        return values[self.name, self.lag]

    def emit(self, spell: Spelling) -> str:
        return spell(self)

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        return f"{Name(self.name).text(reserved)}(t-{number_text(self.lag)})"


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """A symbol on its operands.

    `+`, `and`, `or`, `min` and `max` take two or more and work from the left; a term that is subtracted is
    `Operation("-", (term,))`. `if` takes a condition and two branches, of which only the one taken is evaluated.
    """

    symbol: str
    operands: tuple[Expression, ...]

    @property
    def binding(self) -> int:
        return _BINDING.get(self.symbol, _ATOM)

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.operands

    def value(self, values: Values) -> Value:
        if self.symbol == "if":
            condition, then, otherwise = self.operands
            holds = condition.value(values)
            if isinstance(holds, np.ndarray):
                return np.where(holds, then.value(values), otherwise.value(values))
            return (then if holds else otherwise).value(values)
        if self.symbol == "^" and (power := _whole_power(self.operands[1])) is not None:
            return _product(self.operands[0].value(values), power)
        computed = [operand.value(values) for operand in self.operands]
        compute = _COMPUTE[self.symbol]
        return reduce(compute, computed) if len(computed) > 1 else compute(computed[0])

    def substitute(self, replacements: Mapping[str, Expression]) -> Expression:
        return Operation(self.symbol, tuple(operand.substitute(replacements) for operand in self.operands))

    def emit(self, spell: Spelling) -> str:
        parts = [operand.emit(spell) for operand in self.operands]
        if self.symbol == "if":
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        if self.symbol in ("min", "max"):  # as numpy has them: what is no number stays none
            return reduce(lambda left, right: f"{self.symbol}imum({left}, {right})", parts)
        if self.symbol in FUNCTIONS:
            return f"{self.symbol}({', '.join(parts)})"
        if len(parts) == 1:
            return f"({self.symbol} {parts[0]})"
        if self.symbol == "^" and (power := _whole_power(self.operands[1])) is not None:
            parts[1] = str(power)
        return "(" + f" {_SOURCE_MARKS.get(self.symbol, self.symbol)} ".join(parts) + ")"

    def text(self, reserved: frozenset[str] = RESERVED) -> str:
        if self.binding == _ATOM:
            return f"{self.symbol}({', '.join(operand.text(reserved) for operand in self.operands)})"
        # The first operand of a left-associative symbol may bind as tightly as the symbol, the others must bind more.
        least = [self.binding + 1] * len(self.operands)
        if self.symbol in ("*", "/", "not", "-"):
            least[0] = self.binding
        elif self.symbol == "^":
            least[1] = _BINDING["-"]
        parts = [_bracketed(operand, bound, reserved) for operand, bound in zip(self.operands, least, strict=True)]
        if self.symbol == "+":
            return parts[0] + "".join(_added(term, reserved) for term in self.operands[1:])
        if len(parts) == 1:
            return f"{self.symbol} {parts[0]}" if self.symbol == "not" else f"-{parts[0]}"
        return ("^" if self.symbol == "^" else f" {self.symbol} ").join(parts)


def _bracketed(operand: Expression, least: int, reserved: frozenset[str]) -> str:
    text = operand.text(reserved)
    return text if operand.binding >= least else f"({text})"


def _added(term: Expression, reserved: frozenset[str]) -> str:
    """A further term of a sum with its sign: ` + x` or ` - x`."""
    sign = "+"
    if isinstance(term, Operation) and term.symbol == "-":
        sign, term = "-", term.operands[0]
    return f" {sign} {_bracketed(term, _BINDING['*'], reserved)}"


def _whole_power(exponent: Expression) -> int | None:
    """A literal exponent for which a power is a product."""
    return int(exponent.literal) if isinstance(exponent, Number) and exponent.literal in range(64) else None


def _product(base: Value, power: int) -> Value:
    """A whole power, to the bit as kernels compute it."""
    result = np.ones_like(base)
    while power:
        result = result * base if power & 1 else result
        base, power = base * base, power >> 1
    return result


def concentrated(name: str) -> str:
    """The species whose concentration a name says: `S` of `[S]`; empty for any other name."""
    return name[1:-1] if name[:1] == "[" and name[-1:] == "]" else ""


def number(value: float) -> Expression:
    """The tree of a finite number of any sign."""
    return Operation("-", (Number(-value),)) if value < 0 else Number(abs(value))


def literal_value(expression: Expression) -> float | None:
    """The number that `number` makes this tree of; None for any other tree."""
    match expression:
        case Number(value):
            return value
        case Operation("-", (Number(value),)):
            return -value
    return None


def joined(symbol: str, operands: Sequence[Expression]) -> Expression:
    """`symbol` on its operands, such as "and" on conditions; the only operand itself where there is one."""
    return operands[0] if len(operands) == 1 else Operation(symbol, tuple(operands))


def joined_parts(symbol: str, expression: Expression) -> tuple[Expression, ...]:
    """The operands of an expression that `symbol` joins; any other expression is its only part."""
    same = isinstance(expression, Operation) and expression.symbol == symbol
    return expression.children if same else (expression,)


def in_order(expression: Expression) -> Iterator[Expression]:
    """Every node, parents before children, from left to right; without recursion."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def is_condition(expression: Expression) -> bool:
    """Whether an expression is true or false, not a number."""
    if isinstance(expression, Operation):
        chooses = expression.symbol == "if" and is_condition(expression.operands[1])
        return chooses or expression.symbol in (*COMPARISONS, "and", "or", "not")
    return isinstance(expression, Boolean)
