"""What the expressions of the PRISM language mean: Terms become typed expressions.

A value is an `int`, a `double` or a `bool`, as in PRISM: `/` is the division of real numbers, and a whole number is
never made of a double but by floor, ceil or round. A boolean variable is stored as 0 or 1, so a condition may have two
forms: the condition `b == 1`, and the number `b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from sateen.core.errors import nearest
from sateen.core.text import shown
from sateen.language.expression import LARGEST_WHOLE, Boolean, Expression, Name, Number, Operation, joined_parts, number
from sateen.language.grammar import MAX_DEPTH, Mistake
from sateen.language.prism_syntax import Kind, Term

_Needs: TypeAlias = Literal["numbers", "conditions", "whole numbers", ""]  # "": the operation itself checks
_Make: TypeAlias = "Callable[[Term, Sequence[Typed]], Typed]"

_MOST_NODES: Final = 20_000  # of an expression, once its formulas are inlined
_A: Final[Mapping[Kind, str]] = {"int": "an int", "double": "a double", "bool": "a bool"}
_KINDS: Final = {"numbers": ("int", "double"), "conditions": ("bool",), "whole numbers": ("int",)}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its type; `bit` is the 0 or 1 that a condition reads, where it reads one.

    `size` and `depth` are those of the tree, counted while it is made.
    """

    expression: Expression
    kind: Kind
    bit: Expression | None = None
    size: int = 1
    depth: int = 1

    @staticmethod
    def name(name: str, kind: Kind) -> Typed:
        """A variable or a constant; a boolean one is read as the condition that it is 1."""
        if kind != "bool":
            return Typed(Name(name), kind)
        return Typed(Operation("==", (Name(name), Number(1.0))), kind, Name(name), size=3, depth=2)

    @staticmethod
    def literal(value: float, kind: Kind) -> Typed:
        """A known value."""
        return Typed(Boolean(bool(value)), kind) if kind == "bool" else Typed(number(value), kind, size=2, depth=2)

    @property
    def as_number(self) -> Typed:
        """The value as a number: 0 or 1 for a condition."""
        if self.kind != "bool":
            return self
        if isinstance(self.expression, Boolean):
            return _ONE if self.expression.literal else _ZERO
        return _made("if", "int", self, _ONE, _ZERO) if self.bit is None else Typed(self.bit, "int")

    @property
    def number(self) -> Expression:
        """The expression of the value as a number."""
        return self.as_number.expression


_ONE: Final = Typed(Number(1.0), "int")
_ZERO: Final = Typed(Number(0.0), "int")
_HALF: Final = Typed(Number(0.5), "double")


@dataclass(frozen=True, slots=True)
class Earned:
    """What a structure of rewards pays: in a state per unit of time, and with its transitions' rewards included.

    A transition's reward is earned at the rate of the transition: the expected reward is the same as if it were paid
    when the transition fires. `name` may be "".
    """

    name: str
    state: Typed
    rate: Typed


@dataclass(frozen=True, slots=True)
class Scope:
    """What a model that was read lets properties speak of.

    `names` are its variables, constants and formulas, `labels` its conditions by name. `values` are the constants that
    are known; `open` are those that the model itself does not need and that are not, with their kinds and, where they
    have one, their definitions, each after those it reads. `initial` says that the model is in its initial state.
    `rewards` are its structures of rewards, in their order.
    """

    names: Mapping[str, Typed]
    labels: Mapping[str, Typed]
    values: Mapping[str, float]
    open: Mapping[str, tuple[Kind, Expression | None]]
    initial: Expression
    rewards: tuple[Earned, ...] = ()


def typed(term: Term, lookup: Callable[[Term], Typed]) -> Typed:
    """The typed expression of a Term; `lookup` knows its names and labels. What is wrong is a Mistake that points."""
    match term.symbol:
        case "number":
            return _number(term)
        case "truth":
            return Typed(Boolean(term.text == "true"), "bool")
        case "name" | "label":
            return lookup(term)
    if term.symbol not in _OPERATIONS:
        raise Mistake(f"{term.symbol} is an operator of time, and this is a condition on one moment", term.position)
    operands = [typed(operand, lookup) for operand in term.operands]
    needs, make = _OPERATIONS[term.symbol]
    for part, operand in zip(term.operands, operands, strict=True):
        if needs and operand.kind not in _KINDS[needs]:
            this, remedy = {
                "numbers": ("true or false", ""),
                "conditions": ("a number", "compare it with something"),
                "whole numbers": (_A[operand.kind], "make it one with floor, ceil or round"),
            }[needs]
            raise Mistake(f"{term.symbol} needs {needs}, and this is {this}", part.position, remedy)
    made = make(term, operands)
    if made.size > _MOST_NODES or made.depth > MAX_DEPTH:
        measure = f"{MAX_DEPTH} levels of" if made.depth > MAX_DEPTH else f"{_MOST_NODES:,}"
        raise Mistake(f"more than {measure} operations, once formulas are inlined", term.position)
    return made


def unknown_name(term: Term, known: Iterable[str], kinds: str) -> Mistake:
    """What to say of a name that nothing declares."""
    return Mistake(f"{term.text} is not a {kinds}", term.position, nearest(term.text, list(known)[:200]))


def check_kind(owner: str, kind: Kind, value: Typed, term: Term) -> None:
    """Refuses a value of another type than its owner has; a whole number is a double too."""
    if kind == value.kind or (kind == "double" and value.kind == "int"):
        return
    wanted = {"int": "a whole number", "double": "a number", "bool": "true or false"}
    remedy = "make it one with floor, ceil or round" if (kind, value.kind) == ("int", "double") else ""
    raise Mistake(f"{owner} needs {wanted[kind]}, and this is {_A[value.kind]}", term.position, remedy)


def closed_value(value: Typed, term: Term, values: Mapping[str, float], purpose: str) -> float:
    """The number that an expression comes to where `values` are known; else a Mistake that says what is missing."""
    for name in value.expression.names:
        if name not in values:
            raise without_value(purpose, name, term)
    result = float(value.number.evaluate(values))
    if not math.isfinite(result):
        raise Mistake(f"{purpose} comes to {result:g}", term.position)
    return result


def without_value(purpose: str, name: str, term: Term) -> Mistake:
    """What to say of a constant whose value is needed and is not known."""
    remedy = f'give it one: {{constants={{"{name}": 5}}}}'
    return Mistake(f"{purpose} reads {name}, which has no value", term.position, remedy)


def given_value(name: str, kind: Kind, value: object) -> float:
    """A value that was given for a constant, as a number; ValueError says why it is none of its kind."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise ValueError(f"the constant {name} is {shown(value)}, not a finite number")
    if kind == "bool" and result not in (0.0, 1.0):
        raise ValueError(f"{name} is a bool: true or false, not {shown(value)}")
    if kind == "int" and not (result.is_integer() and abs(result) <= LARGEST_WHOLE):
        raise ValueError(f"{name} is an int: a whole number, not {shown(value)}")
    return result


def _number(term: Term) -> Typed:
    value = float(term.text)
    whole = term.text.isdigit()
    if math.isinf(value) or (whole and value > LARGEST_WHOLE):
        raise Mistake(f"{term.text[:40]} is larger than any number here", term.position)
    return Typed(Number(value), "int" if whole else "double")


def _made(symbol: str, kind: Kind, *operands: Typed) -> Typed:
    expression = Operation(symbol, tuple(operand.expression for operand in operands))
    size = 1 + sum(operand.size for operand in operands)
    return Typed(expression, kind, None, size, 1 + max(operand.depth for operand in operands))


def _common(operands: Sequence[Typed]) -> Kind:
    """The type of arithmetic on numbers."""
    return "double" if any(operand.kind == "double" for operand in operands) else "int"


def _applied(symbol: str, kind: Kind | None = None) -> _Make:
    """Makes an operation of the operands; without a `kind`, of their common type."""
    return lambda _term, operands: _made(symbol, kind or _common(operands), *operands)


def _equality(term: Term, operands: Sequence[Typed]) -> Typed:
    left, right = operands
    if (left.kind == "bool") != (right.kind == "bool"):
        wrong = term.operands[0 if left.kind == "bool" else 1]
        raise Mistake(f"{term.symbol} compares true or false with a number", wrong.position)
    symbol = "==" if term.symbol == "=" else "!="
    return _agreement(symbol, left, right) if left.kind == "bool" else _made(symbol, "bool", left, right)


def _agreement(symbol: str, left: Typed, right: Typed) -> Typed:
    """Whether two conditions are equal, or unequal, by way of the numbers they are stored as."""
    for known, other in ((left, right), (right, left)):
        if isinstance(known.expression, Boolean):
            return other if known.expression.literal == (symbol == "==") else _negation(other)
    return _made(symbol, "bool", left.as_number, right.as_number)


def _joined(symbol: str, operands: Sequence[Typed]) -> Typed:
    """A conjunction or a disjunction, flat, without what does not matter."""
    decisive = Boolean(symbol == "or")
    if any(operand.expression == decisive for operand in operands):
        return Typed(decisive, "bool")
    kept = [operand for operand in operands if not isinstance(operand.expression, Boolean)]
    if not kept:
        return Typed(Boolean(symbol == "and"), "bool")
    if len(kept) == 1:
        return kept[0]
    parts = tuple(part for operand in kept for part in joined_parts(symbol, operand.expression))
    return replace(_made(symbol, "bool", *kept), expression=Operation(symbol, parts))


def _negation(condition: Typed) -> Typed:
    """The opposite; of a boolean variable, that it is 0, and of an equality, the inequality.

    The opposite of an order such as < is left as `not`, for both are false of what is not a number.
    """
    if condition.bit is not None:
        return replace(condition, expression=Operation("==", (condition.bit, _ZERO.expression)), bit=None)
    match condition.expression:
        case Boolean(literal):
            return Typed(Boolean(not literal), "bool")
        case Operation("==" | "!=" as symbol, operands):
            return replace(condition, expression=Operation("!=" if symbol == "==" else "==", operands))
        case Operation("not", (operand,)):
            return replace(condition, expression=operand)
    return _made("not", "bool", condition)


def _choice(term: Term, operands: Sequence[Typed]) -> Typed:
    condition, then, otherwise = operands
    if condition.kind != "bool":
        raise Mistake("? needs a condition, and this is a number", term.operands[0].position)
    if (then.kind == "bool") != (otherwise.kind == "bool"):
        wrong = term.operands[2]
        raise Mistake("one branch is a number, and the other is true or false", wrong.position)
    if isinstance(condition.expression, Boolean):
        return then if condition.expression.literal else otherwise
    chosen = _made("if", _common((then, otherwise)), condition, then.as_number, otherwise.as_number)
    return _made("==", "bool", chosen, _ONE) if then.kind == "bool" else chosen


def _power(_term: Term, operands: Sequence[Typed]) -> Typed:
    """A power; of whole numbers it is one, and a negative exponent is an error, as in PRISM: here it is infinite."""
    exponent = operands[1]
    power = _made("^", _common(operands), *operands)
    if power.kind == "double" or isinstance(exponent.expression, Number):
        return power
    return _erring(_made("<", "bool", exponent, _ZERO), power)


def _remainder(_term: Term, operands: Sequence[Typed]) -> Typed:
    """`mod(a, b)`, from 0 up to b - 1; a divisor that is not positive is an error, as in PRISM: here it is infinite."""
    value, divisor = operands
    whole = _made("*", "int", divisor, _made("floor", "int", _made("/", "double", value, divisor)))
    rest = _made("+", "int", value, _made("-", "int", whole))
    if isinstance(divisor.expression, Number) and divisor.expression.literal > 0:
        return rest
    return _erring(_made("<=", "bool", divisor, _ZERO), rest)


def _erring(wrong: Typed, right: Typed) -> Typed:
    """An expression that is infinite, which no rate and no variable can be, where a condition holds."""
    return _made("if", right.kind, wrong, _made("/", "double", _ONE, _ZERO), right)


# What the operands of each operation must be, and what is made of them.
_OPERATIONS: Final[Mapping[str, tuple[_Needs, _Make]]] = {
    "?": ("", _choice),
    "=>": ("conditions", lambda _, operands: _joined("or", (_negation(operands[0]), operands[1]))),
    "<=>": ("conditions", lambda _, operands: _agreement("==", *operands)),
    "|": ("conditions", lambda _, operands: _joined("or", operands)),
    "&": ("conditions", lambda _, operands: _joined("and", operands)),
    "!": ("conditions", lambda _, operands: _negation(operands[0])),
    "=": ("", _equality),
    "!=": ("", _equality),
    **{symbol: ("numbers", _applied(symbol, "bool")) for symbol in ("<", "<=", ">", ">=")},
    **{symbol: ("numbers", _applied(symbol)) for symbol in ("+", "*", "-", "min", "max")},
    "/": ("numbers", _applied("/", "double")),
    "floor": ("numbers", _applied("floor", "int")),
    "ceil": ("numbers", _applied("ceil", "int")),
    "round": ("numbers", lambda _, operands: _made("floor", "int", _made("+", "double", *operands, _HALF))),
    "pow": ("numbers", _power),
    "mod": ("whole numbers", _remainder),
    "log": ("numbers", lambda _, operands: _made("/", "double", *(_made("log", "double", each) for each in operands))),
}
