"""From text to formulas: the language, its sugar, and errors with a caret and a remedy.

formula   φ <-> φ, φ -> φ, φ | φ, φ & φ, φ U[a,b] φ, !φ, F[a,b] φ, G[a,b] φ, true, false, atom, (φ)
atom      a comparison of two arithmetic expressions, or a chain of them: 0 < x < 5
window    [a, b], [a, inf), [<=b], [>=a], or none, which is [0, inf)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from lark import Token, v_args

from sateen.core.errors import FormulaError, InputError, nearest
from sateen.core.text import finite, shown
from sateen.language.expression import COMPARISONS, Delayed, Expression, Name, Operation, number
from sateen.language.grammar import ARITHMETIC, MAX_DEPTH, Builder, Language, Mistake, depth_of, refuse_overflow
from sateen.logic.formula import (
    ALWAYS,
    FORMULA_RESERVED,
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
    Timed,
    Truth,
    Until,
)


def formula_of(given: object, what: str = "{formula}") -> Formula:
    """A formula as it is, or the one that text says; `what` names the argument in an error.

    >>> formula_of("F[0, 5] I > 3").horizon
    5.0
    """
    if isinstance(given, Formula):
        return given
    if not isinstance(given, str):
        problem = f"{what} is a Formula or text, such as 'F[0, 5] I > 3', not a {type(given).__name__}"
        raise InputError(problem, argument="formula", remedy="st.stl(text) makes a Formula, and takes an end too")
    return stl(given)


def stl(text: str, *, constants: Mapping[str, float] | None = None, end: float | None = None) -> Formula:
    """The formula in `text`.

    `constants` gives values to names, in windows, delays and atoms. `end` reads the formula on the path cut at that
    time: every window ends there at the latest, an F or U whose window is empty is false and such a G is true.

    >>> stl("F[0, T] x > 3 & G x >= 0", constants={"T": 10})
    stl('F[0, 10] x > 3 & G x >= 0')
    >>> stl("F[0, 10] G (S < 20)", end=10).horizon
    10.0
    """
    if end is not None and ((time := finite(end)) is None or time < 0):
        raise FormulaError(f"end is a time from 0 on, not {shown(end)}", remedy="end=None is the infinite reading")
    raw = _FORMULAS.read(text, "formula")
    if depth_of(raw, lambda part: (part.comparison,) if isinstance(part, Atom) else part.children) > MAX_DEPTH:
        raise FormulaError(f"more than {MAX_DEPTH} levels of operators", text)
    root = _Reader(text, dict(constants or {})).node(raw)
    return Formula(root, None if end is None else float(end))


# Tightest first: arithmetic, comparison, prefix, until (right), and, or, implies (right), iff (left).
_GRAMMAR: Final = (
    ARITHMETIC.replace("?atom: number | name |", "?atom: number | name | delayed |")
    + r"""
    ?formula: implication | formula _IFF implication -> iff
    ?implication: either | either _IMPLIES implication -> implies
    ?either: both | both (_OR both)+ -> or_
    ?both: until | until (_AND until)+ -> and_
    ?until: prefix | prefix _U window? until -> until
    ?prefix: base | _NOT prefix -> not_ | _F window? prefix -> eventually | _G window? prefix -> globally
    ?base: atomic | verum | "(" formula ")"
    atomic: sum (COMPARISON sum)+
    verum: TRUE | FALSE

    window: LSQB bound "," bound (RSQB | RPAR) | LSQB COMPARISON bound RSQB -> one_sided
    bound: NUMBER | NAME | QUOTED | INF | MINUS NUMBER
    delayed: name "(" _T MINUS bound ")" | name "(" _T ")"
        | concentration "(" _T MINUS bound ")" | concentration "(" _T ")"

    RPAR: ")"
    _F.3: /F\b|eventually\b/
    _G.3: /G\b|globally\b|always\b/
    _U.3: /U\b|until\b/
    _T.3: /t\b/
    INF.3: /inf\b/
    _IMPLIES.3: /->|implies\b/
    _IFF.4: /<->|iff\b/
"""
)


@dataclass(frozen=True, slots=True)
class _Window:
    """A window as written: bounds are tokens until the named constants are known."""

    low: tuple[Token, ...]
    high: tuple[Token, ...]
    position: int


@v_args(inline=True)
class _FormulaBuilder(Builder):
    """The tree as written, with windows and delays whose bounds may still be names."""

    iff = Iff
    implies = Implies
    not_ = Not

    def or_(self, *operands: Node) -> Node:
        return Or(operands)

    def and_(self, *operands: Node) -> Node:
        return And(operands)

    def until(self, left: Node, *rest: Any) -> Node:
        return Until(rest[0] if len(rest) == 2 else ALWAYS, left, rest[-1])

    def eventually(self, *rest: Any) -> Node:
        return Eventually(rest[0] if len(rest) == 2 else ALWAYS, rest[-1])

    def globally(self, *rest: Any) -> Node:
        return Globally(rest[0] if len(rest) == 2 else ALWAYS, rest[-1])

    def verum(self, token: Token) -> Node:
        return Truth(token.type == "TRUE")

    def atomic(self, *parts: Any) -> Node:
        atoms = tuple(Atom(comparison) for comparison in self.compared(parts))
        return atoms[0] if len(atoms) == 1 else And(atoms)

    def window(self, opening: Token, low: tuple[Token, ...], high: tuple[Token, ...], closing: Token) -> _Window:
        if closing == ")" and high[0].type != "INF":
            raise Mistake("windows are closed", closing.start_pos or 0, "write ], or [a, inf) for an unbounded one")
        return _Window(low, high, opening.start_pos or 0)

    def one_sided(self, opening: Token, symbol: Token, bound: tuple[Token, ...], closing: Token) -> _Window:
        position = symbol.start_pos or 0
        if symbol not in ("<=", ">="):
            raise Mistake(f"a window cannot begin with {symbol}", position, "windows are closed: F[<=5] or F[>=5]")
        zero, infinity = Token("NUMBER", "0"), Token("INF", "inf")
        low, high = ((zero,), bound) if symbol == "<=" else (bound, (infinity,))
        return _Window(low, high, opening.start_pos or 0)

    def bound(self, *tokens: Token) -> tuple[Token, ...]:
        return tokens

    def delayed(self, name: Name, *rest: Any) -> Expression:
        return Delayed(name.name, rest[-1]) if rest else name


class _Reader:
    """Puts values in the place of named constants, and so makes the final tree."""

    def __init__(self, text: str, constants: dict[str, float]) -> None:
        self.text = text
        self.constants = constants
        for name, value in constants.items():
            if finite(value) is None:
                raise FormulaError(f"the constant {name} is {shown(value)}, not a finite number")
        self.replacements = {name: number(float(value)) for name, value in constants.items()}

    def node(self, raw: Node) -> Node:
        if isinstance(raw, Atom):
            return Atom(self.atom(raw.comparison))
        resolved = replace(raw, window=self.window(raw.window)) if isinstance(raw, Timed) else raw
        return resolved.mapped(self.node)

    def atom(self, comparison: Expression) -> Expression:
        resolved = self.delays(comparison).substitute(self.replacements)
        assert isinstance(resolved, Operation)
        for side in resolved.operands:
            refuse_overflow(side, self.text, FormulaError)
        return resolved

    def delays(self, raw: Expression) -> Expression:
        """`raw` with every lag a number; a lag of 0 is not a delay."""
        if isinstance(raw, Delayed) and isinstance(raw.lag, tuple):
            lag = self.bound(raw.lag)
            if math.isinf(lag):
                raise FormulaError("a delay is finite", self.text, raw.lag[0].start_pos or 0)
            return Delayed(raw.name, lag) if lag > 0 else Name(raw.name)
        if isinstance(raw, Operation):
            return Operation(raw.symbol, tuple(map(self.delays, raw.operands)))
        return raw

    def window(self, raw: Interval | _Window) -> Interval:
        if isinstance(raw, Interval):
            return raw
        low, high = self.bound(raw.low), self.bound(raw.high)
        if math.isinf(low):
            raise FormulaError("a window begins at a finite time", self.text, raw.position)
        if low > high:
            message = f"this window ends before it begins: {low:g} > {high:g}"
            raise FormulaError(message, self.text, raw.position, "windows look like [100, 120]")
        return Interval(low, high)

    def bound(self, tokens: tuple[Token, ...]) -> float:
        last, position = tokens[-1], tokens[0].start_pos or 0
        if len(tokens) == 2:
            raise FormulaError("bounds are not negative", self.text, position, "windows and delays count from 0 up")
        if last.type == "INF":
            return math.inf
        if last.type == "NUMBER":
            value = float(last)
            if math.isinf(value):
                raise FormulaError(f"{last[:40]} is larger than any number here", self.text, position, "write inf")
            return value
        name = str(last).strip("`")
        if name not in self.constants:
            known = nearest(name, self.constants)
            remedy = known or f'give it one: {{constants={{"{name}": 10}}}}'
            raise FormulaError(f"the bound {name} has no value", self.text, position, remedy)
        if (value := float(self.constants[name])) < 0:
            raise FormulaError(f"the bound {name} = {value:g} is negative", self.text, position)
        return value


def _hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    """What the language of formulas can say of a token in the wrong place."""
    position = len(text) if token is None else token.start_pos or 0
    if text.rfind("[", 0, position) > text.rfind("]", 0, position):
        return _window_hint(token, before, text)
    kind = "" if token is None else token.type
    previous = "" if before is None else before.type
    if previous == "RSQB" and (bare := re.search(r"(\b[FGU]\s*)(\[[^\[\],]*\])\s*$", text[:position])):
        example = "intervals look like F[100, 120], or [<=120] for [0, 120]"
        return "a window has two bounds", f"{example}; {bare[2]} alone is a concentration"
    value = previous in ("NUMBER", "NAME", "QUOTED")
    if kind == "COMMA" and previous == "NUMBER" and before is not None:
        return "a comma outside a window", "windows are written in square brackets: F[0, 5]"
    if kind == "_T" or (previous == "_T" and kind != "PLUS"):
        return "t stands only in delays", "X(t-1) is the value of X one time unit earlier; a species called t is `t`"
    if previous == "_T":
        return "delays look backwards", "X(t-1) is the value of X one time unit earlier"
    if (called := re.search(r"\b(\w+)\s*\(\s*$", text[:position])) and called[1] not in FORMULA_RESERVED:
        return f"{called[1]} is not a function or an operator", "operators are F, G and U; a delay is X(t-1)"
    if kind == "INF":
        return "inf stands only in windows such as [5, inf)", "a species called inf is `inf`"
    if kind == "_U" and not value and previous != "RPAR":
        return "U needs a formula on its left", "until looks like (I > 0) U[100, 120] (I == 0)"
    if kind in ("_AND", "_OR", "_IMPLIES", "_IFF") and previous in ("", "LPAR", "_AND", "_OR", "_IMPLIES", "_IFF"):
        return f"{token} needs a formula on its left", ""
    if kind in ("", "RPAR", "_AND", "_OR", "_IMPLIES", "_IFF", "_U") and value:
        shown = str(before)
        return f"{shown} is a number, not a property", f"compare it with something: {shown} > 0"
    if kind in ("NAME", "QUOTED", "FUNCTION") and previous == "NUMBER" and not text[position - 1].isspace():
        return f"an operator is missing before {str(token)!r}", f"a product is written {before} * {token}"
    if kind in ("NAME", "QUOTED", "NUMBER", "LPAR", "_F", "_G", "_NOT", "TRUE", "FALSE") and (
        value or previous in ("RPAR", "TRUE", "FALSE")
    ):
        return f"an operator is missing before {str(token)!r}", "join formulas with &, |, -> or U[a, b]"
    if kind == "COMPARISON" and text.startswith("=>", position - 1 if previous == "COMPARISON" else position):
        return "=> is not an operator", "write >= for 'at least', -> for 'implies'"
    if kind == "COMPARISON" and previous == "COMPARISON":
        return f"{before}{token} is not a comparison", f"write one of {' '.join(COMPARISONS)}"
    if kind == "LSQB":
        return "a window without an operator", "it stands behind F, G or U: (I > 0) U[100, 120] (I == 0)"
    if kind in ("_AND", "_OR", "_IMPLIES", "_IFF", "_U") and previous == "RPAR":
        return f"before {token} stands a number, not a property", "compare it with something: (I > 0)"
    if kind == "STRANGE" and (spelt := _SYMBOLS.get(str(token))):
        return f"{str(token)!r} has no meaning here", f"write {spelt}"
    return None


# What people paste from papers, and how it is written here.
_SYMBOLS: Final = {
    "¬": "!",
    "∧": "&",
    "\N{LOGICAL OR}": "|",
    "→": "->",
    "⇒": "->",
    "↔": "<->",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "◇": "F",
    "◊": "F",
    "□": "G",
    "∞": "inf",
}


def _window_hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    start = text.rfind("[", 0, len(text) if token is None else token.start_pos)
    commas = text.count(",", start, len(text) if token is None else token.start_pos)
    operator = text[:start].rstrip()[-1:]
    example = f"intervals look like {operator if operator in ('F', 'G', 'U') else 'F'}[100, 120]"
    if token is not None and token.type == "RSQB" and not commas:
        return "a window has two bounds", f"{example}, or [<=120] for [0, 120]"
    if commas == 0 and before is not None and before.type in ("NUMBER", "NAME", "INF"):
        return "expected ',' between the two bounds", example
    if commas and before is not None and before.type in ("NUMBER", "NAME", "INF"):
        return "expected ']' after the interval", example
    return "bounds are numbers or named constants", example


_FORMULAS: Final = Language(
    grammar=_GRAMMAR,
    starts=("formula",),
    builder=_FormulaBuilder,
    error=FormulaError,
    noun="a formula",
    hint=_hint,
)
