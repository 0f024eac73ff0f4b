"""MathML as expressions: the formulas of an SBML file, with its functions put in where they are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, reduce
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from sateen.core.errors import ModelError
from sateen.core.expression import (
    COMPARISONS,
    Boolean,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    number,
)
from sateen.core.grammar import MAX_DEPTH, depth_of

__all__ = [
    "SBML_TIME",
    "Functions",
    "Lookup",
    "Unreadable",
    "as_condition",
    "as_number",
    "checked",
    "library",
    "sum_of",
]

Lookup: TypeAlias = Callable[[str], Expression]

SBML_TIME: Final = Name("csymbol time")  # what csymbol time is read as: no SBML id has a space
_MOST_NODES: Final = 20_000  # of one expression, after functions and rules are put in
_ONE: Final = Number(1.0)
_ZERO: Final = Number(0.0)


class Unreadable(Exception):
    """A formula that cannot be read; whoever knows where it stands makes it an error that says so."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Functions:
    """The function definitions of a file, and the reader of every formula that may call them."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self._calling: list[str] = []
        self._depth = 0

    def read(self, node: Any, lookup: Lookup) -> Expression:
        """The expression of a formula; `lookup` says what its names stand for."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Unreadable(f"more than {MAX_DEPTH} levels of operations")
            return checked(self._read(node, lookup))
        finally:
            self._depth -= 1

    def _read(self, node: Any, lookup: Lookup) -> Expression:
        kind = node.getType()
        symbol = _symbols().get(kind)
        if symbol is None:
            named = node.getName() or _written(node)
            raise Unreadable(f"{named} is not supported", "what is: arithmetic, comparisons, logic, piecewise, exp, ln")
        if symbol == "number":
            return _literal(node)
        if symbol == "name":
            return lookup(node.getName())
        if symbol in _LEAVES:
            return _LEAVES[symbol]
        if symbol == "avogadro":
            return number(float(node.getReal()))
        if symbol == "call":
            return self._called(node, lookup)
        operands = [self.read(child, lookup) for child in _children(node, kind)]
        return _BUILD[symbol](symbol, operands)

    def _called(self, node: Any, lookup: Lookup) -> Expression:
        name = node.getName()
        definition = self.definitions.get(name)
        if definition is None or definition.getMath() is None:
            raise Unreadable(f"there is no function {name}")
        if name in self._calling:
            raise Unreadable(f"the function {name} calls itself: {' -> '.join([*self._calling, name])}")
        arguments = [self.read(node.getChild(index), lookup) for index in range(node.getNumChildren())]
        names = [definition.getArgument(index).getName() for index in range(definition.getNumArguments())]
        if len(arguments) != len(names):
            raise Unreadable(f"the function {name} takes {len(names)} arguments, not {len(arguments)}")
        given: dict[str, Expression] = dict(zip(names, arguments, strict=True))

        def inside(read: str) -> Expression:
            if read not in given:
                raise Unreadable(f"the function {name} reads {read}, which is not one of its arguments")
            return given[read]

        self._calling.append(name)
        try:
            return self.read(definition.getBody(), inside)
        finally:
            self._calling.pop()


def checked(expression: Expression) -> Expression:
    """`expression`, if it is small enough to be worked with."""
    if sum(1 for _ in islice(in_order(expression), _MOST_NODES + 1)) > _MOST_NODES:
        raise Unreadable(f"with functions and rules put in, it has more than {_MOST_NODES:,} parts")
    if depth_of(expression, lambda node: node.children) > MAX_DEPTH:
        raise Unreadable(f"with functions and rules put in, it has more than {MAX_DEPTH} levels of operations")
    return expression


def is_condition(expression: Expression) -> bool:
    """Whether an expression is true or false, not a number."""
    if isinstance(expression, Operation):
        return expression.symbol in (*COMPARISONS, "and", "or", "not")
    return isinstance(expression, Boolean)


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


def _children(node: Any, kind: int) -> list[Any]:
    """The operands of a node. The library makes `a + b + c` a chain of pairs; here it is one sum again."""
    libsbml = library()
    chained = kind in (libsbml.AST_PLUS, libsbml.AST_TIMES, libsbml.AST_LOGICAL_AND, libsbml.AST_LOGICAL_OR)
    after: list[Any] = []
    while chained and node.getNumChildren() and node.getChild(0).getType() == kind:
        after[:0] = [node.getChild(index) for index in range(1, node.getNumChildren())]
        node = node.getChild(0)
    return [node.getChild(index) for index in range(node.getNumChildren())] + after


def _literal(node: Any) -> Expression:
    libsbml, kind = library(), node.getType()
    if kind == libsbml.AST_REAL_E:  # as it is written: the library multiplies, which may round twice
        value = float(f"{node.getMantissa()!r}e{node.getExponent()}")
    else:
        value = float(node.getInteger() if kind == libsbml.AST_INTEGER else node.getReal())
    if not math.isfinite(value):
        raise Unreadable(f"{value:g} is no finite number")
    return number(value)


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
    _needs(symbol, operands, 1, _MOST_NODES)
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
    _needs(symbol, operands, 2, 2 if symbol == "!=" else _MOST_NODES)
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


_LEAVES: Final[Mapping[str, Expression]] = {
    "pi": Number(math.pi),
    "e": Number(math.e),
    "true": Boolean(True),
    "false": Boolean(False),
    "time": SBML_TIME,
}

_BUILD: Final[Mapping[str, Callable[[str, list[Expression]], Expression]]] = {
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


def library() -> Any:
    """libsbml, or an error that says how to install it."""
    try:
        import libsbml
    except ImportError:
        remedy = "install it with  pip install 'sateen[sbml]'"
        raise ModelError("SBML files are read by python-libsbml, which is not installed", remedy=remedy) from None
    return libsbml


def _written(node: Any) -> str:
    text: str = library().formulaToL3String(node) or "this part of a formula"
    return text if len(text) <= 60 else f"{text[:57]}..."


@cache
def _symbols() -> Mapping[int, str]:
    """What each kind of node of the library is here."""
    kinds = library()
    return {
        **dict.fromkeys((kinds.AST_INTEGER, kinds.AST_REAL, kinds.AST_REAL_E, kinds.AST_RATIONAL), "number"),
        kinds.AST_NAME: "name",
        kinds.AST_NAME_TIME: "time",
        kinds.AST_NAME_AVOGADRO: "avogadro",
        kinds.AST_FUNCTION: "call",
        kinds.AST_CONSTANT_PI: "pi",
        kinds.AST_CONSTANT_E: "e",
        kinds.AST_CONSTANT_TRUE: "true",
        kinds.AST_CONSTANT_FALSE: "false",
        kinds.AST_PLUS: "+",
        kinds.AST_MINUS: "-",
        kinds.AST_TIMES: "*",
        kinds.AST_DIVIDE: "/",
        **dict.fromkeys((kinds.AST_POWER, kinds.AST_FUNCTION_POWER), "^"),
        kinds.AST_FUNCTION_ABS: "abs",
        kinds.AST_FUNCTION_EXP: "exp",
        kinds.AST_FUNCTION_LN: "log",
        kinds.AST_FUNCTION_LOG: "log to a base",
        kinds.AST_FUNCTION_ROOT: "root",
        kinds.AST_FUNCTION_FLOOR: "floor",
        kinds.AST_FUNCTION_CEILING: "ceil",
        kinds.AST_FUNCTION_MIN: "min",
        kinds.AST_FUNCTION_MAX: "max",
        kinds.AST_FUNCTION_QUOTIENT: "quotient",
        kinds.AST_FUNCTION_REM: "rem",
        kinds.AST_FUNCTION_PIECEWISE: "piecewise",
        kinds.AST_LOGICAL_AND: "and",
        kinds.AST_LOGICAL_OR: "or",
        kinds.AST_LOGICAL_NOT: "not",
        kinds.AST_LOGICAL_XOR: "xor",
        kinds.AST_LOGICAL_IMPLIES: "implies",
        kinds.AST_RELATIONAL_LT: "<",
        kinds.AST_RELATIONAL_LEQ: "<=",
        kinds.AST_RELATIONAL_GT: ">",
        kinds.AST_RELATIONAL_GEQ: ">=",
        kinds.AST_RELATIONAL_EQ: "==",
        kinds.AST_RELATIONAL_NEQ: "!=",
    }
