"""Values and LLVM's instructions on them, as `translate.py` writes them: text, a line for each.

A number is a float (64 bits), a whole number (64 bits, signed), a word (64 bits, unsigned) or a truth. Floats follow
IEEE, but for the signs of zeros, which may be lost.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import reduce
from typing import Final, NoReturn, TypeAlias


@dataclass(frozen=True, slots=True)
class Kind:
    """What numbers may be: its name in source, and LLVM's."""

    name: str
    code: str


FLOAT: Final = Kind("float", "double")
WHOLE: Final = Kind("int", "i64")
WORD: Final = Kind("word", "i64")
TRUTH: Final = Kind("bool", "i1")
INDEX: Final = Kind("index", "i32")  # in arrays that are made by numpy
KINDS: Final = {kind.name: kind for kind in (FLOAT, WHOLE, WORD, TRUTH)}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number: a constant, or what an instruction left."""

    kind: Kind
    code: str

    @property
    def is_literal(self) -> bool:
        """Whether it is a whole number that was written down."""
        return self.kind is WHOLE and not self.code.startswith("%")


@dataclass(frozen=True, slots=True)
class Grid:
    """An array: where its first entry is, how long each axis is, and how many entries apart its neighbours are."""

    kind: Kind
    data: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]

    @property
    def packed(self) -> bool:
        """Whether the last axis is known to have no gaps."""
        return self.strides[-1:] == ("1",)


Value: TypeAlias = Scalar | Grid

_FLOATS: Final = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_WHOLES: Final = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "ashr"}
_ORDERS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_INTRINSICS: Final = {"exp", "log", "log2", "sqrt", "sin", "cos", "floor", "ceil", "rint", "pow", "fma"}


def refuse(what: str) -> NoReturn:
    """Source that a kernel cannot have: a mistake of the house, not of a user."""
    raise TypeError(f"generated source cannot be compiled: {what}")


def literal(value: float | int | bool) -> Scalar:
    """A constant."""
    if isinstance(value, bool):
        return Scalar(TRUTH, "true" if value else "false")
    if isinstance(value, int):
        return Scalar(WHOLE, str((value + 2**63) % 2**64 - 2**63))
    return Scalar(FLOAT, f"0x{struct.pack('>d', value).hex()}")


class Instructions:
    """The instructions of one function, in the order in which they are written."""

    def __init__(self) -> None:
        self.head: list[str] = []  # the places of variables
        self.lines: list[str] = []
        self.block = "entry"
        self.flags = "nsz"
        self._count = 0

    def fresh(self) -> int:
        """A number that no other value or block of the function has."""
        self._count += 1
        return self._count

    def say(self, line: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {line}")

    def put(self, kind: Kind, code: str) -> Scalar:
        """Add an instruction; its result."""
        return Scalar(kind, self.name(code))

    def name(self, code: str) -> str:
        """Add an instruction; the name of its result."""
        name = f"%t{self.fresh()}"
        self.say(f"{name} = {code}")
        return name

    def place(self, code: str) -> str:
        """A place in memory for a variable of the function."""
        name = f"%p{self.fresh()}"
        self.head.append(f"  {name} = alloca {code}")
        return name

    def begin(self, block: str) -> None:
        """Begin a block, which what comes before leads to."""
        self.lines.append(f"{block}:")
        self.block = block

    def jump(self, block: str) -> None:
        """Go on in a block."""
        self.say(f"br label %{block}")

    def branch(self, condition: Scalar, then: str, otherwise: str) -> None:
        """Go on in one of two blocks."""
        self.say(f"br i1 {self.truth(condition).code}, label %{then}, label %{otherwise}")

    def joined(self, kind: Kind, *sources: tuple[Scalar, str]) -> Scalar:
        """What was computed in the one of several blocks from which this one was entered."""
        return self.put(kind, f"phi {kind.code} " + ", ".join(f"[{value.code}, %{block}]" for value, block in sources))

    # Conversions.

    def cast(self, value: Scalar, kind: Kind) -> Scalar:
        """The number as a number of another kind, as Python's `float`, `int` and `bool` have it."""
        if value.kind is kind:
            return value
        if kind is TRUTH:
            return self.truth(value)
        if value.is_literal:
            return Scalar(WORD, value.code) if kind is WORD else literal(float(int(value.code)))
        match value.kind, kind:
            case (Kind("int"), Kind("word")) | (Kind("word"), Kind("int")):
                return Scalar(kind, value.code)
            case Kind("int"), Kind("float"):
                return self.put(kind, f"sitofp i64 {value.code} to double")
            case Kind("float"), Kind("int"):
                return self.put(kind, f"fptosi double {value.code} to i64")
            case Kind("bool"), Kind("int"):
                return self.put(kind, f"zext i1 {value.code} to i64")
        refuse(f"a {value.kind.name} as a {kind.name}")

    def fitted(self, value: Scalar, kind: Kind) -> Scalar:
        """The number where one of a kind is wanted: nothing is converted in silence but whole numbers to floats."""
        if value.kind is not kind and not (value.is_literal or (value.kind is WHOLE and kind is FLOAT)):
            refuse(f"a {value.kind.name} where a {kind.name} is wanted")
        return self.cast(value, kind)

    def alike(self, left: Scalar, right: Scalar) -> tuple[Scalar, Scalar]:
        """Two numbers as two of one kind."""
        if FLOAT in (left.kind, right.kind):
            return self.fitted(left, FLOAT), self.fitted(right, FLOAT)
        return (self.fitted(left, right.kind), right) if left.is_literal else (left, self.fitted(right, left.kind))

    def truth(self, value: Scalar) -> Scalar:
        """Whether a number is not 0."""
        return value if value.kind is TRUTH else self.compared("!=", value, literal(0))

    def bits(self, value: Scalar, kind: Kind) -> Scalar:
        """The same 64 bits as a number of another kind."""
        return self.put(kind, f"bitcast {value.kind.code} {value.code} to {kind.code}")

    # Arithmetic.

    def computed(self, symbol: str, left: Scalar, right: Scalar) -> Scalar:
        """An operation of Python's on two numbers; division by 0 follows IEEE."""
        if symbol == "**":
            return self._power(left, right)
        if symbol == "/":
            left = self.fitted(left, FLOAT)
        left, right = self.alike(left, right)
        kind, operands = left.kind, f"{left.code}, {right.code}"
        if kind is FLOAT and symbol in _FLOATS:
            return self.put(FLOAT, f"{_FLOATS[symbol]} {self.flags} double {operands}")
        if kind is WHOLE and symbol in ("//", "%"):
            return self._floored(symbol, operands, right)
        if kind is TRUTH and symbol not in ("&", "|", "^"):
            refuse(f"{symbol} on truths")
        if kind is not FLOAT and symbol in _WHOLES:
            code = "lshr" if kind is WORD and symbol == ">>" else _WHOLES[symbol]
            return self.put(kind, f"{code} {kind.code} {operands}")
        refuse(f"{symbol} on numbers of kind {kind.name}")

    def _floored(self, symbol: str, operands: str, divisor: Scalar) -> Scalar:
        """The quotient rounded down, or the remainder that goes with it."""
        rest = self.put(WHOLE, f"srem i64 {operands}")
        other = self.computed("&", self.compared("!=", rest, literal(0)), self._opposite(rest, divisor))
        if symbol == "%":
            return self.computed("+", rest, self.chosen(other, divisor, literal(0)))
        return self.computed("-", self.put(WHOLE, f"sdiv i64 {operands}"), self.cast(other, WHOLE))

    def _opposite(self, left: Scalar, right: Scalar) -> Scalar:
        return self.compared("<", self.computed("^", left, right), literal(0))

    def _power(self, base: Scalar, exponent: Scalar) -> Scalar:
        """A power; a product where the exponent is a whole number that is written down."""
        base = self.fitted(base, FLOAT)
        if not exponent.is_literal:
            return self.called("pow", base, self.fitted(exponent, FLOAT))
        result, rest = literal(1.0), int(exponent.code)
        while rest:
            result = self.computed("*", result, base) if rest & 1 else result
            base, rest = self.computed("*", base, base), rest >> 1
        return result

    def compared(self, symbol: str, left: Scalar, right: Scalar) -> Scalar:
        """A comparison, which holds for nothing that is no number, except that it differs."""
        left, right = self.alike(left, right)
        order = _ORDERS[symbol]
        if left.kind is FLOAT:
            ordered = f"{'u' if symbol == '!=' else 'o'}{order}"
            return self.put(TRUTH, f"fcmp {self.flags} {ordered} double {left.code}, {right.code}")
        signed = "" if order in ("eq", "ne") else ("s" if left.kind is WHOLE else "u")
        return self.put(TRUTH, f"icmp {signed}{order} {left.kind.code} {left.code}, {right.code}")

    def negated(self, value: Scalar) -> Scalar:
        """The number with the other sign."""
        if value.is_literal:
            return literal(-int(value.code))
        if value.kind is FLOAT:
            return self.put(FLOAT, f"fneg {self.flags} double {value.code}")
        return self.computed("-", literal(0), value)

    def chosen(self, condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
        """One of two numbers, which are computed in either case."""
        then, otherwise = self.alike(then, otherwise)
        code = then.kind.code
        return self.put(then.kind, f"select i1 {condition.code}, {code} {then.code}, {code} {otherwise.code}")

    def called(self, name: str, *operands: Scalar) -> Scalar:
        """A function of numbers."""
        if name in ("min", "max"):  # as Python has them: the first of those that nothing goes before
            return reduce(lambda best, each: self._better("<" if name == "min" else ">", best, each), operands)
        if name in ("minimum", "maximum"):  # as numpy has them: what is no number stays none
            return self._extreme("<=" if name == "minimum" else ">=", *operands)
        given = [self.fitted(each, FLOAT) for each in operands]
        arguments = ", ".join(f"double {each.code}" for each in given)
        if name == "abs":
            return self.put(FLOAT, f"call {self.flags} double @llvm.fabs.f64({arguments})")
        if name == "nextafter":
            return self.put(FLOAT, f"call double @nextafter({arguments})")
        if name in _INTRINSICS:
            return self.put(FLOAT, f"call {self.flags} double @llvm.{name}.f64({arguments})")
        refuse(f"a call of {name}")

    def _better(self, symbol: str, best: Scalar, each: Scalar) -> Scalar:
        best, each = self.alike(best, each)
        return self.chosen(self.compared(symbol, each, best), each, best)

    def _extreme(self, symbol: str, left: Scalar, right: Scalar) -> Scalar:
        left, right = self.fitted(left, FLOAT), self.fitted(right, FLOAT)
        ordered = self.chosen(self.compared(symbol, left, right), left, right)
        undefined = self.chosen(self.compared("!=", left, left), left, right)
        either = self.put(TRUTH, f"fcmp {self.flags} uno double {left.code}, {right.code}")
        return self.chosen(either, undefined, ordered)

    # Arrays.

    def entry(self, grid: Grid, index: list[Scalar | None]) -> Grid:
        """An entry's place as a grid without axes, or a view: None stands for a whole axis."""
        place, shape, strides = "0", list[str](), list[str]()
        index = index + [None] * (len(grid.strides) - len(index))
        for each, length, stride in zip(index, grid.shape, grid.strides, strict=True):
            if each is None:
                shape.append(length)
                strides.append(stride)
                continue
            step = each.code if stride == "1" else self.name(f"mul nsw i64 {each.code}, {stride}")
            place = step if place == "0" else self.name(f"add nsw i64 {place}, {step}")
        data = self.name(f"getelementptr inbounds {grid.kind.code}, ptr {grid.data}, i64 {place}")
        return Grid(grid.kind, data, tuple(shape), tuple(strides))

    def load(self, kind: Kind, place: str) -> Scalar:
        """What stands at a place."""
        return self.put(kind, f"load {kind.code}, ptr {place}")

    def store(self, value: Scalar, place: str) -> None:
        """Put a number at a place."""
        self.say(f"store {value.kind.code} {value.code}, ptr {place}")
