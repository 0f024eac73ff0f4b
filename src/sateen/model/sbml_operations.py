"""What the operations of MathML mean: expressions made of expressions.

SBML mixes numbers and conditions: a condition is 1 or 0 where a number is needed, and a number that is not 0 is a true
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Final

from sateen.language.expression import COMPARISONS, Boolean, Expression, Number, Operation, is_condition

__all__ = ["BUILD", "Unreadable", "as_condition", "as_number", "sum_of"]

_ONE: Final = Number(1.0)
_ZERO: Final = Number(0.0)
_MANY: Final = 10_000  # operands, more than any formula has


class Unreadable(Exception):
    """A formula that cannot be read; whoever knows where it stands makes it an error that says so."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def as_number(expression: Expression) -> Expression:
    """A condition as 1 or 0, as SBML has it; a number as it is."""
    if isinstance(expression, Boolean):
        return _ONE if expression.literal else _ZERO
    return Operation("if", (expression, _ONE, _ZERO)) if is_condition(expression) else expression


def as_condition(expression: Expression) -> Expression:
    """A number as whether it is not 0, as SBML has it; a condition as it is."""
    return expression if is_condition(expression) else Operation("!=", (expression, _ZERO))


def sum_of(terms: list[Expression]) -> Expression:
    """A sum, added from the left; the first term may be one itself."""
    if not terms:
        return _ZERO
    first, *rest = terms
    if not rest:
        return first
    begun = first.operands if isinstance(first, Operation) and first.symbol == "+" else (first,)
    return Operation("+", (*begun, *rest))


def _needs(symbol: str, operands: list[Expression], least: int, most: int) -> None:
    if not least <= len(operands) <= most:
        raise Unreadable(f"{symbol} of {len(operands)} operands has no meaning")


def _sum(_symbol: str, operands: list[Expression]) -> Expression:
    return sum_of([as_number(operand) for operand in operands])


def _difference(symbol: str, operands: list[Expression]) -> Expression:
    _needs("minus", operands, 1, 2)
    first, *rest = map(as_number, operands)
    return sum_of([first, Operation(symbol, tuple(rest))]) if rest else Operation(symbol, (first,))


def _product(symbol: str, operands: list[Expression]) -> Expression:
    factors = [as_number(operand) for operand in operands] or [_ONE]
    return reduce(lambda left, right: Operation(symbol, (left, right)), factors)


def _binary(symbol: str, operands: list[Expression]) -> Expression:
    _needs(symbol, operands, 2, 2)
    return Operation(symbol, tuple(map(as_number, operands)))


def _unary(symbol: str, operands: list[Expression]) -> Expression:
    _needs(symbol, operands, 1, 1)
    return Operation(symbol, (as_number(operands[0]),))


def _extreme(symbol: str, operands: list[Expression]) -> Expression:
    _needs(symbol, operands, 1, _MANY)
    values = tuple(map(as_number, operands))
    return Operation(symbol, values) if len(values) > 1 else values[0]


def _root(_symbol: str, operands: list[Expression]) -> Expression:
    _needs("root", operands, 1, 2)
    *degrees, value = map(as_number, operands)
    if not degrees or degrees[0] == Number(2.0):
        return Operation("sqrt", (value,))
    return Operation("^", (value, Operation("/", (_ONE, degrees[0]))))


def _logarithm(_symbol: str, operands: list[Expression]) -> Expression:
    _needs("log", operands, 1, 2)
    *bases, value = map(as_number, operands)
    base = bases[0] if bases else Number(10.0)
    return Operation("/", (Operation("log", (value,)), Operation("log", (base,))))


def _comparison(symbol: str, operands: list[Expression]) -> Expression:
    _needs(symbol, operands, 2, 2 if symbol == "!=" else _MANY)
    pairs = [Operation(symbol, pair) for pair in pairwise(map(as_number, operands))]
    return pairs[0] if len(pairs) == 1 else Operation("and", tuple(pairs))


def _connective(symbol: str, operands: list[Expression]) -> Expression:
    conditions = tuple(map(as_condition, operands))
    if len(conditions) > 1:
        return Operation(symbol, conditions)
    return conditions[0] if conditions else Boolean(symbol == "and")


def _negation(symbol: str, operands: list[Expression]) -> Expression:
    _needs(symbol, operands, 1, 1)
    return Operation(symbol, (as_condition(operands[0]),))


def _odd(_symbol: str, operands: list[Expression]) -> Expression:
    """Exclusive or: whether an odd number of conditions hold."""

    def either(left: Expression, right: Expression) -> Expression:
        alone = Operation("and", (left, Operation("not", (right,))))
        return Operation("or", (alone, Operation("and", (Operation("not", (left,)), right))))

    return reduce(either, map(as_condition, operands)) if operands else Boolean(False)


def _implication(_symbol: str, operands: list[Expression]) -> Expression:
    _needs("implies", operands, 2, 2)
    left, right = map(as_condition, operands)
    return Operation("or", (Operation("not", (left,)), right))


def _quotient(symbol: str, operands: list[Expression]) -> Expression:
    """The whole part of a quotient, towards 0; or what then remains."""
    _needs(symbol, operands, 2, 2)
    above, below = map(as_number, operands)
    ratio = Operation("/", (above, below))
    down, up = Operation("floor", (ratio,)), Operation("ceil", (ratio,))
    whole = Operation("if", (Operation(">=", (ratio, _ZERO)), down, up))
    return whole if symbol == "quotient" else sum_of([above, Operation("-", (Operation("*", (below, whole)),))])


def _pieces(_symbol: str, operands: list[Expression]) -> Expression:
    if len(operands) % 2 == 0:
        raise Unreadable("a piecewise without <otherwise> is undefined where no piece applies", "add <otherwise>")
    result = operands[-1]
    logical = all(is_condition(value) for value in operands[::2])
    for value, condition in zip(operands[-3::-2], operands[-2::-2], strict=True):
        holds = as_condition(condition)
        if logical:
            other = Operation("and", (Operation("not", (holds,)), result))
            result = Operation("or", (Operation("and", (holds, value)), other))
        else:
            result = Operation("if", (holds, as_number(value), as_number(result)))
    return result


BUILD: Final[Mapping[str, Callable[[str, list[Expression]], Expression]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _binary,
    "^": _binary,
    **dict.fromkeys(("abs", "exp", "log", "floor", "ceil"), _unary),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(("and", "or"), _connective),
    "not": _negation,
    "xor": _odd,
    "implies": _implication,
    "root": _root,
    "log to a base": _logarithm,
    "quotient": _quotient,
    "rem": _quotient,
    "piecewise": _pieces,
}
