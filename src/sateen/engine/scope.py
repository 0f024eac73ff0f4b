"""The variables of a function that is translated, and the values of expressions over them.

A variable keeps the kind of what is first assigned to it. An expression is translated to the instructions that compute
it, in the order in which it is written; of `a and b`, `a or b` and `a if test else b` only what is needed is computed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from sateen.engine.instructions import (
    FLOAT,
    TRUTH,
    WHOLE,
    WORD,
    Grid,
    Instructions,
    Kind,
    Scalar,
    Value,
    literal,
    refuse,
)

NO_MEMORY: Final = -(2**63)  # what `run` returns where there is too little
ALIGNMENT: Final = 64  # bytes; of what a kernel allocates

# The function of that name for such arguments, and the kind of its result, if it has one; None if there is none.
Caller: TypeAlias = "Callable[[str, list[Value]], tuple[str, Kind | None] | None]"

OPERATORS: Final = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CASTS: Final = {"int": WHOLE, "int64": WHOLE, "float": FLOAT, "bool": TRUTH, "bool_": TRUTH, "U": WORD}
_NUMBERS: Final = {"inf": float("inf"), "nan": float("nan")}


def flat(value: Value) -> list[str]:
    """The parts of a value, as they are passed to a function."""
    if isinstance(value, Scalar):
        return [f"{value.kind.code} {value.code}"]
    strides = value.strides[:-1] if value.packed else value.strides
    return [f"ptr {value.data}", *(f"i64 {each}" for each in (*value.shape, *strides))]


def signature(value: Value) -> tuple[object, ...]:
    """All of a value that a function is translated for."""
    return (value.kind,) if isinstance(value, Scalar) else (value.kind, len(value.shape), value.packed)


class Scope:
    """The variables of one function. `chain` is the place of the chain of what it allocates, if it may."""

    def __init__(
        self, out: Instructions, constants: Mapping[str, ast.expr], caller: Caller, chain: str, fuses: bool
    ) -> None:
        self.out = out
        self.chain = chain
        self._constants = constants
        self._caller = caller
        self._fuses = fuses
        self._variables: dict[str, tuple[Value, list[str]]] = {}  # the shape of the value, and the places of its parts

    # Variables and arrays.

    def assign(self, name: str, value: Value) -> None:
        """Put a value into a variable."""
        if name not in self._variables:
            codes = [part.split(" ")[0] for part in flat(value)]
            self._variables[name] = value, [self.out.place(code) for code in codes]
        known, places = self._variables[name]
        if isinstance(known, Scalar):
            if not isinstance(value, Scalar):
                refuse(f"an array in the place of the number {name}")
            value = self.out.fitted(value, known.kind)
        elif signature(known) != signature(value):
            refuse(f"another kind of array in the place of {name}")
        for part, place in zip(flat(value), places, strict=True):
            self.out.say(f"store {part}, ptr {place}")

    def _variable(self, name: str) -> Value:
        known, places = self._variables[name]
        if isinstance(known, Scalar):
            return self.out.load(known.kind, places[0])
        data, *rest = (
            self.out.name(f"load {'i64' if index else 'ptr'}, ptr {place}") for index, place in enumerate(places)
        )
        axes = len(known.shape)
        strides = (*rest[axes:], "1") if known.packed else tuple(rest[axes:])
        return Grid(known.kind, data, tuple(rest[:axes]), strides)

    def contiguous(self, kind: Kind, data: str, shape: tuple[str, ...]) -> Grid:
        """An array without gaps."""
        strides = ["1"]
        for length in reversed(shape[1:]):
            strides.append(length if strides[-1] == "1" else self.out.name(f"mul nsw i64 {strides[-1]}, {length}"))
        return Grid(kind, data, shape, tuple(reversed(strides)))

    def _allocated(self, call: ast.Call, zeros: bool) -> Grid:
        if not self.chain:
            refuse("memory that is not allocated by run")
        shape = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else [call.args[0]]
        lengths = tuple(self.out.fitted(self.number(length), WHOLE).code for length in shape)
        kind = _CASTS[_called_name(call.args[1])] if len(call.args) > 1 else FLOAT
        size = lengths[0]
        for length in lengths[1:]:
            size = self.out.name(f"mul nsw i64 {size}, {length}")
        size = self.out.name(f"mul nsw i64 {size}, 8")
        data = self.out.name(f"call noalias align {ALIGNMENT} ptr @allocate(ptr {self.chain}, i64 {size})")
        missing, found = (f"b{self.out.fresh()}.{part}" for part in ("missing", "found"))
        self.out.branch(self.out.put(TRUTH, f"icmp eq ptr {data}, null"), missing, found)
        self.out.begin(missing)
        self.out.say(f"call void @release(ptr {self.chain})")
        self.out.say(f"ret i64 {NO_MEMORY}")
        self.out.begin(found)
        if zeros:
            self.out.say(f"call void @llvm.memset.p0.i64(ptr align {ALIGNMENT} {data}, i8 0, i64 {size}, i1 false)")
        return self.contiguous(kind, data, lengths)

    def place(self, target: ast.Subscript) -> Grid:
        """Where an entry of an array is, or a view of the array."""
        grid = self.value(target.value)
        if not isinstance(grid, Grid):
            refuse(ast.unparse(target))
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        whole = [isinstance(part, ast.Slice) for part in parts]
        if any(isinstance(part, ast.Slice) and (part.lower or part.upper or part.step) for part in parts):
            refuse(ast.unparse(target))
        index = [
            None if all_of_it else self.out.fitted(self.number(part), WHOLE)
            for part, all_of_it in zip(parts, whole, strict=True)
        ]
        return self.out.entry(grid, index)

    def put(self, target: ast.Subscript, value: Scalar) -> None:
        """Put a number into an entry of an array."""
        place = self.place(target)
        if place.shape:
            refuse(ast.unparse(target))
        self.out.store(self.out.fitted(value, place.kind), place.data)

    # Expressions.

    def number(self, expression: ast.expr) -> Scalar:
        """The value of an expression that is a number."""
        value = self.value(expression)
        if not isinstance(value, Scalar):
            refuse(f"an array where a number is wanted: {ast.unparse(expression)}")
        return value

    def value(self, expression: ast.expr) -> Value:
        """The value of an expression."""
        match expression:
            case ast.Constant(bool() | int() | float() as value):
                return literal(value)
            case ast.Name(name) if name in self._variables:
                return self._variable(name)
            case ast.Name(name) if name in self._constants:
                return self.value(self._constants[name])
            case ast.Name(name) | ast.Attribute(ast.Name("np"), name) if name in _NUMBERS:
                return literal(_NUMBERS[name])
            case ast.Subscript(ast.Attribute(array, "shape"), ast.Constant(int() as axis)):
                grid = self.value(array)
                return Scalar(WHOLE, grid.shape[axis]) if isinstance(grid, Grid) else refuse(ast.unparse(expression))
            case ast.Subscript():
                place = self.place(expression)
                return place if place.shape else self.out.load(place.kind, place.data)
            case ast.Call(ast.Name("fused"), [each]):
                return self._fused(each)
            case ast.BinOp(left, operator, right):
                return self.out.computed(OPERATORS[type(operator)], self.number(left), self.number(right))
            case ast.UnaryOp(ast.USub(), operand):
                return self.out.negated(self.number(operand))
            case ast.UnaryOp(ast.Not(), operand):
                return self.out.computed("^", self.out.truth(self.number(operand)), literal(True))
            case ast.Compare(left, [operator], [right]):
                return self.out.compared(OPERATORS[type(operator)], self.number(left), self.number(right))
            case ast.BoolOp():
                return self._decided(expression)
            case ast.IfExp():
                return self._either(expression)
            case ast.Call():
                result = self.call(expression)
                return refuse(ast.unparse(expression)) if result is None else result
        refuse(ast.unparse(expression))

    def branch(self, test: ast.expr, then: str, otherwise: str) -> None:
        """Go on in one of two blocks; of `a and b` or `a or b`, `b` is computed only where `a` leaves it open."""
        match test:
            case ast.BoolOp(operator, tests):
                for each in tests[:-1]:
                    further = f"b{self.out.fresh()}.more"
                    self.branch(each, *((further, otherwise) if isinstance(operator, ast.And) else (then, further)))
                    self.out.begin(further)
                self.branch(tests[-1], then, otherwise)
            case ast.UnaryOp(ast.Not(), operand):
                self.branch(operand, otherwise, then)
            case _:
                self.out.branch(self.number(test), then, otherwise)

    def _fused(self, expression: ast.expr) -> Scalar:
        """A sum or a difference, in which the first product that is written there is not rounded."""
        match expression:
            case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right) if self._fuses:
                return self._summed(left, right, subtracts=isinstance(operator, ast.Sub))
        return self.number(expression)

    def _summed(self, left: ast.expr, right: ast.expr, subtracts: bool) -> Scalar:
        symbol = "-" if subtracts else "+"
        for first, second, is_left in ((left, right, True), (right, left, False)):
            negative = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.USub)
            product = first.operand if isinstance(first, ast.UnaryOp) and negative else first
            if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
                a, b, c = map(self.number, (product.left, product.right, second))
                if FLOAT not in (a.kind, b.kind):
                    break
                a = self.out.negated(a) if negative != (subtracts and not is_left) else a
                c = self.out.negated(c) if subtracts and is_left else c
                return self.out.called("fma", a, b, c)
        return self.out.computed(symbol, self.number(left), self.number(right))

    def _decided(self, expression: ast.expr) -> Scalar:
        """The truth of an `and` or an `or`."""
        number = self.out.fresh()
        true, false, after = f"b{number}.true", f"b{number}.false", f"b{number}.after"
        self.branch(expression, true, false)
        for block in (true, false):
            self.out.begin(block)
            self.out.jump(after)
        self.out.begin(after)
        return self.out.joined(TRUTH, (literal(True), true), (literal(False), false))

    def _either(self, expression: ast.IfExp) -> Scalar:
        """The value of `then if test else otherwise`, of which only one is computed, unless that costs nothing."""
        if all(isinstance(each, ast.Constant | ast.Name) for each in (expression.body, expression.orelse)):
            test = self.out.truth(self.number(expression.test))
            return self.out.chosen(test, self.number(expression.body), self.number(expression.orelse))
        number = self.out.fresh()
        then, otherwise, after = f"b{number}.then", f"b{number}.else", f"b{number}.after"
        self.branch(expression.test, then, otherwise)
        sources = list[tuple[Scalar, str]]()
        wanted = [each.kind for each in map(self._constant, (expression.body, expression.orelse)) if each]
        for block, each in ((then, expression.body), (otherwise, expression.orelse)):
            self.out.begin(block)
            value = self.number(each)
            if sources:
                value = self.out.fitted(value, sources[0][0].kind)
            elif value.is_literal and FLOAT in wanted:
                value = self.out.cast(value, FLOAT)
            sources.append((value, self.out.block))
            self.out.jump(after)
        self.out.begin(after)
        return self.out.joined(sources[0][0].kind, *sources)

    def _constant(self, expression: ast.expr) -> Scalar | None:
        return literal(expression.value) if isinstance(expression, ast.Constant) else None  # type: ignore[arg-type]

    def call(self, call: ast.Call) -> Scalar | Grid | None:
        """The result of a call, if it has one."""
        name = _called_name(call.func)
        if name in ("zeros", "empty"):
            return self._allocated(call, zeros=name == "zeros")
        given = [self.value(argument) for argument in call.args]
        if target := self._caller(name, given):
            own, kind = target
            parts = ", ".join(part for each in given for part in flat(each))
            code = f"call {kind.code if kind else 'void'} {own}({parts})"
            if kind is not None:
                return self.out.put(kind, code)
            self.out.say(code)
            return None
        numbers = [each for each in given if isinstance(each, Scalar)]
        if len(numbers) < len(given):
            refuse(ast.unparse(call))
        if name in _CASTS:
            return self.out.cast(numbers[0], _CASTS[name])
        if name in ("as_bits", "as_double"):
            return self.out.bits(numbers[0], WORD if name == "as_bits" else FLOAT)
        return self.out.called(name, *numbers)


def _called_name(function: ast.expr) -> str:
    match function:
        case ast.Name(name) | ast.Attribute(ast.Name("np"), name):
            return name
    refuse(ast.unparse(function))
