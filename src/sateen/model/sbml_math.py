"""MathML as expressions: the formulas of an SBML file, with its functions put in where they are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, TypeAlias

from sateen.core.errors import ExpressionError, ModelError
from sateen.language.expression import Boolean, Expression, Name, Number, in_order, number
from sateen.language.grammar import MAX_DEPTH, depth_of, refuse_overflow
from sateen.model.sbml_operations import BUILD, Unreadable

__all__ = ["SBML_TIME", "Functions", "Lookup", "library"]

Lookup: TypeAlias = Callable[[str], Expression]

SBML_TIME: Final = Name("csymbol time")  # what csymbol time is read as: no SBML id has a space
_MOST_NODES: Final = 5_000  # of one expression, after functions and rules are put in


class Functions:
    """The function definitions of a file, and the reader of every formula that may call them."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self._calling: list[str] = []
        self._depth = 0

    def read(self, node: Any, lookup: Lookup) -> Expression:
        """The expression of a formula; `lookup` says what its names stand for."""
        expression = _small(self._read(node, lookup))
        if depth_of(expression, lambda node: node.children) > MAX_DEPTH:
            raise Unreadable(f"with functions and rules put in, it has more than {MAX_DEPTH} levels of operations")
        try:
            refuse_overflow(expression, "", ExpressionError)
        except ExpressionError as error:
            raise Unreadable(error.message) from None
        return expression

    def _read(self, node: Any, lookup: Lookup) -> Expression:
        kind = node.getType()
        symbol = _symbols().get(kind)
        if symbol is None:
            remedy = "what is: arithmetic, comparisons, logic, piecewise, exp, ln, min, max"
            raise Unreadable(f"{_named(node)} is not supported", remedy)
        if symbol == "number":
            return _literal(node)
        if symbol == "name":
            return lookup(node.getName())
        if symbol in _LEAVES:
            return _LEAVES[symbol]
        if symbol == "avogadro":
            return number(float(node.getReal()))
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Unreadable(f"more than {MAX_DEPTH} levels of operations")
            if symbol == "call":
                return _small(self._called(node, lookup))
            operands = [self._read(child, lookup) for child in _children(node, kind)]
        finally:
            self._depth -= 1
        return BUILD[symbol](symbol, operands)

    def _called(self, node: Any, lookup: Lookup) -> Expression:
        name = node.getName()
        definition = self.definitions.get(name)
        if definition is None or definition.getMath() is None:
            raise Unreadable(f"there is no function {name}")
        if name in self._calling:
            raise Unreadable(f"the function {name} calls itself: {' -> '.join([*self._calling, name])}")
        arguments = [self._read(node.getChild(index), lookup) for index in range(node.getNumChildren())]
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
            return self._read(definition.getBody(), inside)
        finally:
            self._calling.pop()


def _small(expression: Expression) -> Expression:
    """`expression`, if it has not too many parts to be worked with."""
    if sum(1 for _ in islice(in_order(expression), _MOST_NODES + 1)) > _MOST_NODES:
        raise Unreadable(f"with functions and rules put in, it has more than {_MOST_NODES:,} parts")
    return expression


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


_LEAVES: Final[Mapping[str, Expression]] = {
    "pi": Number(math.pi),
    "e": Number(math.e),
    "true": Boolean(True),
    "false": Boolean(False),
    "time": SBML_TIME,
}


def library() -> Any:
    """libsbml, or an error that says how to install it."""
    try:
        import libsbml
    except ImportError:
        remedy = "install it with  pip install antimony python-libsbml, or in a clone  pip install '.[sbml]'"
        raise ModelError("SBML files are read by python-libsbml, which is not installed", remedy=remedy) from None
    return libsbml


def _named(node: Any) -> str:
    """What a part of a formula is called that has no place in an expression."""
    libsbml = library()
    own = {libsbml.AST_FUNCTION_DELAY: "a delay", libsbml.AST_FUNCTION_RATE_OF: "rateOf"}
    text: str = own.get(node.getType()) or node.getName() or libsbml.formulaToL3String(node) or "this part of a formula"
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
