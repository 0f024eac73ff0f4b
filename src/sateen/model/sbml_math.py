"""MathML as expressions: the formulas of an SBML file, with its functions inlined where they are called.

SBML mixes numbers and conditions: a condition is 1 or 0 where a number is needed, and a number that is not 0 is a true
condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, reduce
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from sateen.core.errors import ExpressionError, ModelError
from sateen.core.extras import install_command
from sateen.language.expression import (
    COMPARISONS,
    Boolean,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    is_condition,
    joined,
    joined_parts,
    number,
)
from sateen.language.grammar import MAX_DEPTH, Mistake, depth_of, refuse_overflow

Element: TypeAlias = Any  # an object of libsbml, which has no types
Lookup: TypeAlias = Callable[[str], Expression]

SBML_TIME: Final = Name("csymbol time")  # what csymbol time is read as: no SBML id has a space
AVOGADRO: Final = 6.02214076e23  # by definition, since 2019
AVOGADRO_2006: Final = 6.02214179e23  # as SBML Level 3 Version 1 has it
TAGS: Final[Mapping[str, str]] = {  # the elements of MathML that are symbols of expressions
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "^": "power",
    "log": "ln",
    "sqrt": "root",
    "ceil": "ceiling",
    "<": "lt",
    "<=": "leq",
    ">": "gt",
    ">=": "geq",
    "==": "eq",
    "!=": "neq",
    **{symbol: symbol for symbol in ("and", "or", "not", "min", "max", "abs", "exp", "floor", "sin", "cos")},
}
_TO_A_BASE: Final = "logarithm to a base"
_MOST_NODES: Final = 5_000  # of one expression, after functions and rules are inlined
_MANY: Final = 10_000  # operands, more than any formula has
_ONE: Final = Number(1.0)
_ZERO: Final = Number(0.0)
_LEAVES: Final[Mapping[str, Expression]] = {
    "pi": Number(math.pi),
    "e": Number(math.e),
    "true": Boolean(True),
    "false": Boolean(False),
    "time": SBML_TIME,
}


def library() -> Element:
    """libsbml, or an error that says how to install it."""
    try:
        import libsbml
    except ImportError:
        remedy = f"install it with  {install_command('sbml')}"
        raise ModelError("SBML files are read by python-libsbml, which is not installed", remedy=remedy) from None
    return libsbml


def children_of(node: Element) -> list[Element]:
    """The parts of a formula, from left to right."""
    return [node.getChild(index) for index in range(node.getNumChildren())]


class Functions:
    """The function definitions of a file, and the reader of every formula that may call them."""

    def __init__(self, definitions: Mapping[str, Element], avogadro: float) -> None:
        self.definitions = definitions
        self.avogadro = Number(avogadro)
        self._calling: list[str] = []
        self._depth = 0

    def read(self, node: Element, lookup: Lookup) -> Expression:
        """The expression of a formula; `lookup` says what its names stand for."""
        expression = _small(self._read(node, lookup))
        if depth_of(expression, lambda node: node.children) > MAX_DEPTH:
            raise Mistake(f"with functions and rules inlined, it has more than {MAX_DEPTH} levels of operations")
        try:
            refuse_overflow(expression, "", ExpressionError)
        except ExpressionError as error:
            raise Mistake(error.message) from None
        return expression

    def _read(self, node: Element, lookup: Lookup) -> Expression:
        kind = node.getType()
        symbol = _symbols().get(kind)
        if symbol is None:
            remedy = "supported are arithmetic, comparisons, logic, piecewise, exp, ln, min, max"
            raise Mistake(f"{_named(node)} is not supported", remedy=remedy)
        if symbol == "number":
            return self.avogadro if kind == library().AST_NAME_AVOGADRO else _literal(node)
        if symbol == "name":
            return lookup(node.getName())
        if symbol in _LEAVES:
            return _LEAVES[symbol]
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Mistake(f"more than {MAX_DEPTH} levels of operations")
            if symbol == "call":
                return _small(self._called(node, lookup))
            operands = [self._read(child, lookup) for child in _children(node, kind)]
        finally:
            self._depth -= 1
        return _built(symbol, operands)

    def _called(self, node: Element, lookup: Lookup) -> Expression:
        name = node.getName()
        definition = self.definitions.get(name)
        if definition is None or definition.getMath() is None:
            raise Mistake(f"there is no function {name}")
        if name in self._calling:
            raise Mistake(f"the function {name} calls itself: {' -> '.join([*self._calling, name])}")
        arguments = [self._read(child, lookup) for child in children_of(node)]
        names = [definition.getArgument(index).getName() for index in range(definition.getNumArguments())]
        if len(arguments) != len(names):
            raise Mistake(f"the function {name} takes {len(names)} arguments, not {len(arguments)}")
        given: dict[str, Expression] = dict(zip(names, arguments, strict=True))

        def inside(read: str) -> Expression:
            if read not in given:
                raise Mistake(f"the function {name} reads {read}, which is not one of its arguments")
            return given[read]

        self._calling.append(name)
        try:
            return self._read(definition.getBody(), inside)
        finally:
            self._calling.pop()


def _small(expression: Expression) -> Expression:
    """`expression`, if it does not have too many parts to be worked with."""
    if sum(1 for _ in islice(in_order(expression), _MOST_NODES + 1)) > _MOST_NODES:
        raise Mistake(f"with functions and rules inlined, it has more than {_MOST_NODES:,} parts")
    return expression


def _children(node: Element, kind: int) -> list[Element]:
    """The operands of a node. The library makes `a + b + c` a chain of pairs; here it is one sum again."""
    libsbml = library()
    chained = kind in (libsbml.AST_PLUS, libsbml.AST_TIMES, libsbml.AST_LOGICAL_AND, libsbml.AST_LOGICAL_OR)
    after: list[Element] = []
    while chained and node.getNumChildren() and node.getChild(0).getType() == kind:
        node, *others = children_of(node)
        after[:0] = others
    return children_of(node) + after


def _literal(node: Element) -> Expression:
    libsbml, kind = library(), node.getType()
    if kind == libsbml.AST_REAL_E:  # as it is written: the library multiplies, which may round twice
        value = float(f"{node.getMantissa()!r}e{node.getExponent()}")
    else:
        value = float(node.getInteger() if kind == libsbml.AST_INTEGER else node.getReal())
    if not math.isfinite(value):
        raise Mistake(f"{value:g} is not a finite number")
    return number(value)


def _named(node: Element) -> str:
    """What a part of a formula is called that has no place in an expression."""
    libsbml = library()
    nouns = {libsbml.AST_FUNCTION_DELAY: "a delay", libsbml.AST_FUNCTION_RATE_OF: "rateOf"}
    text: str = (
        nouns.get(node.getType()) or node.getName() or libsbml.formulaToL3String(node) or "this part of a formula"
    )
    return text if len(text) <= 60 else f"{text[:57]}..."


@cache
def _symbols() -> Mapping[int, str]:
    """What each kind of node of the library is here: AST_RELATIONAL_LT is <."""
    libsbml = library()
    symbols = {tag: symbol for symbol, tag in TAGS.items()}
    symbols |= {"log": _TO_A_BASE, **{tag: tag for tag in ("xor", "implies", "quotient", "rem", "piecewise")}}
    symbols |= {tag: tag for tag in _LEAVES} | {"name_time": "time", "name": "name", "function": "call"}
    symbols |= dict.fromkeys(("integer", "real", "real_e", "rational", "name_avogadro"), "number")
    groups = ("AST_", "AST_FUNCTION_", "AST_LOGICAL_", "AST_RELATIONAL_", "AST_CONSTANT_")
    kinds = {getattr(libsbml, group + tag.upper(), None): tag for tag in symbols for group in groups}
    return {kind: symbols[tag] for kind, tag in kinds.items() if kind is not None}


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
    return joined("+", (*joined_parts("+", terms[0]), *terms[1:])) if terms else _ZERO


def _built(symbol: str, operands: list[Expression]) -> Expression:
    """What an operation of MathML means, as an expression made of its operands."""
    least, most, make = _OPERATIONS[symbol]
    if not least <= len(operands) <= most:
        raise Mistake(f"{TAGS.get(symbol, symbol)} of {len(operands)} operands has no meaning")
    if symbol != "piecewise":
        operands = list(map(as_condition if symbol in _LOGICAL else as_number, operands))
    return make(symbol, operands)


def _plain(symbol: str, operands: list[Expression]) -> Expression:
    return Operation(symbol, tuple(operands))


def _difference(symbol: str, operands: list[Expression]) -> Expression:
    first, *rest = operands
    return sum_of([first, Operation(symbol, tuple(rest))]) if rest else Operation(symbol, (first,))


def _product(symbol: str, operands: list[Expression]) -> Expression:
    return reduce(lambda left, right: Operation(symbol, (left, right)), operands or [_ONE])


def _root(symbol: str, operands: list[Expression]) -> Expression:
    *degrees, value = operands
    if not degrees or degrees[0] == Number(2.0):
        return Operation(symbol, (value,))
    return Operation("^", (value, Operation("/", (_ONE, degrees[0]))))


def _logarithm(_symbol: str, operands: list[Expression]) -> Expression:
    *bases, value = operands
    base = bases[0] if bases else Number(10.0)
    return Operation("/", (Operation("log", (value,)), Operation("log", (base,))))


def _comparison(symbol: str, operands: list[Expression]) -> Expression:
    return joined("and", [Operation(symbol, pair) for pair in pairwise(operands)])


def _odd(_symbol: str, operands: list[Expression]) -> Expression:
    """Exclusive or: whether an odd number of conditions hold."""

    def either(left: Expression, right: Expression) -> Expression:
        alone = Operation("and", (left, Operation("not", (right,))))
        return Operation("or", (alone, Operation("and", (Operation("not", (left,)), right))))

    return reduce(either, operands) if operands else Boolean(False)


def _quotient(symbol: str, operands: list[Expression]) -> Expression:
    """The whole part of a quotient, towards 0; or what then remains."""
    above, below = operands
    ratio = Operation("/", (above, below))
    down, up = Operation("floor", (ratio,)), Operation("ceil", (ratio,))
    whole = Operation("if", (Operation(">=", (ratio, _ZERO)), down, up))
    return whole if symbol == "quotient" else sum_of([above, Operation("-", (Operation("*", (below, whole)),))])


def _pieces(_symbol: str, operands: list[Expression]) -> Expression:
    if len(operands) % 2 == 0:
        message = "a piecewise without <otherwise> is undefined where no piece applies"
        raise Mistake(message, remedy="add <otherwise>")
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


_LOGICAL: Final = ("and", "or", "not", "xor", "implies")  # their operands are conditions, those of others numbers
# How many operands each takes, at least and at most, and what is made of them.
_OPERATIONS: Final[Mapping[str, tuple[int, int, Callable[[str, list[Expression]], Expression]]]] = {
    "+": (0, _MANY, lambda _, operands: sum_of(operands)),
    "-": (1, 2, _difference),
    "*": (0, _MANY, _product),
    **dict.fromkeys(("/", "^"), (2, 2, _plain)),
    **dict.fromkeys(("abs", "exp", "log", "floor", "ceil", "sin", "cos", "not"), (1, 1, _plain)),
    **dict.fromkeys(("min", "max"), (1, _MANY, joined)),
    **dict.fromkeys(COMPARISONS, (2, _MANY, _comparison)),
    "!=": (2, 2, _comparison),
    "and": (0, _MANY, lambda _, operands: joined("and", operands or [Boolean(True)])),
    "or": (0, _MANY, lambda _, operands: joined("or", operands or [Boolean(False)])),
    "xor": (0, _MANY, _odd),
    "implies": (2, 2, lambda _, operands: Operation("or", (Operation("not", (operands[0],)), operands[1]))),
    "sqrt": (1, 2, _root),
    _TO_A_BASE: (1, 2, _logarithm),
    **dict.fromkeys(("quotient", "rem"), (2, 2, _quotient)),
    "piecewise": (0, _MANY, _pieces),
}
