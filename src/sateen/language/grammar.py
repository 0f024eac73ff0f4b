"""From text to trees: the arithmetic grammar that models and formulas share, and errors that point.

User text is only ever data here: it is cut into tokens, the tokens are shifted and reduced by a table, and the trees
of `expression.py` come out. Text that is too long, too deep, or whose numbers overflow is refused before any
recursion meets it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from sateen.core.errors import ExpressionError, TextError
from sateen.language.expression import (
    FUNCTIONS,
    Boolean,
    Delayed,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    joined,
)

_T = TypeVar("_T")

MAX_CHARACTERS: Final = 20_000
MAX_DEPTH: Final = 100
_MAX_NAME: Final = 100

# A condition is never an arithmetic value and an arithmetic value is never a condition: the grammar keeps them apart.
ARITHMETIC: Final = r"""
    ?condition: clause | clause (_OR clause)+ -> any_of
    ?clause: literal | literal (_AND literal)+ -> all_of
    ?literal: simple | _NOT literal -> negated
    ?simple: comparison | truth | "(" condition ")"
    truth: TRUE | FALSE
    comparison: sum (COMPARISON sum)+

    ?sum: product | product ((PLUS | MINUS) product)+ -> total
    ?product: unary | product "*" unary -> times | product "/" unary -> over
    ?unary: power | "-" unary -> negative
    ?power: atom | atom _POWER unary -> raised
    ?atom: number | name | concentration | "(" sum ")" | call | choice
    number: NUMBER
    name: NAME | QUOTED
    concentration: LSQB NAME RSQB | LSQB QUOTED RSQB
    call: FUNCTION "(" sum ("," sum)* ")"
    choice: _IF "(" condition "," sum "," sum ")"

    LSQB: "["
    RSQB: "]"
    PLUS: "+"
    MINUS: "-"
    COMPARISON: "<=" | ">=" | "==" | "!=" | "<" | ">" | "="
    _POWER.3: /\^|\*\*/
    _AND.3: /&&?|and\b/
    _OR.3: /\|\|?|or\b/
    _NOT.3: /!(?!=)|not\b/
    _IF.3: /if\b/
    TRUE.3: /true\b/
    FALSE.3: /false\b/
    FUNCTION.3: /(?:FUNCTIONS)\b|(?:sin|cos)(?=\s*\()/
    NUMBER: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/
    NAME: /[^\W\d]\w*/
    QUOTED: /`[^`\n]*`/
    %ignore /\s+/
""".replace("FUNCTIONS)", "|".join(name for name in FUNCTIONS if name not in ("sin", "cos")) + ")")


class Mistake(Exception):
    """A mistake found while a tree is built; `pointed` makes it an error with a caret."""

    def __init__(self, message: str, position: int = 0, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.remedy = remedy


@contextmanager
def pointed(text: str, error: type[TextError], start: int = 0) -> Iterator[None]:
    """Mistakes, and errors about a part of `text` that begins at `start`, become errors that point into `text`."""
    try:
        yield
    except (Mistake, TextError) as mistake:
        raise error(mistake.message, text, start + mistake.position, mistake.remedy) from None


def legible(name: str, position: int) -> str:
    """A name, unless it is too long, or has characters that cannot be seen."""
    if len(name) > _MAX_NAME:
        raise Mistake(f"a name of {len(name)} characters", position, f"names have at most {_MAX_NAME}")
    if not name.isprintable():
        raise Mistake(f"the name {name!r} has characters that cannot be seen", position, "leave them out")
    return name


class TreeBuilder(Transformer[Token, object], Generic[_T]):
    """Builds trees of one kind of nodes, bottom-up, while the text is parsed."""

    def term(self, symbol: str, *operands: _T) -> _T:
        """The node of a symbol on its operands."""
        raise NotImplementedError

    @v_args(inline=True)
    def total(self, first: _T, *rest: Any) -> _T:
        signed = zip(rest[::2], rest[1::2], strict=True)
        return self.term("+", first, *(self.term("-", term) if sign == "-" else term for sign, term in signed))


def applied(symbol: str) -> Callable[..., object]:
    """The method of a TreeBuilder for a rule that only applies a symbol to its operands."""
    return lambda builder, *operands: builder.term(symbol, *operands)


@v_args(inline=True)
class Builder(TreeBuilder[Expression]):
    """The tree of each rule of ARITHMETIC."""

    any_of = applied("or")
    all_of = applied("and")
    negated = applied("not")
    times = applied("*")
    over = applied("/")
    negative = applied("-")
    raised = applied("^")
    choice = applied("if")

    def term(self, symbol: str, *operands: Expression) -> Expression:
        return Operation(symbol, operands)

    def number(self, token: Token) -> Expression:
        value = float(token)
        if math.isinf(value):
            raise Mistake(f"{_short(token)} is larger than any number here", token.start_pos or 0)
        return Number(value)

    def name(self, token: Token) -> Name:
        text = str(token).strip("`")
        position = token.start_pos or 0
        if token == "inf":
            raise Mistake("inf stands only in windows such as [5, inf)", position, "a species called inf is `inf`")
        if not text.strip():
            raise Mistake("an empty name", position, "put the name between the backquotes")
        if text.startswith("__"):
            raise Mistake(f"{_short(text)}: names do not begin with two underscores", position, "choose another name")
        return Name(legible(text, position))

    def concentration(self, _opening: Token, token: Token, _closing: Token) -> Name:
        return Name(f"[{self.name(token).name}]")

    def truth(self, token: Token) -> Expression:
        return Boolean(token.type == "TRUE")

    def comparison(self, *parts: Expression | Token) -> Expression:
        return joined("and", self.compared(parts))

    def compared(self, parts: Sequence[Expression | Token]) -> list[Expression]:
        """The comparisons of a chain: `0 < x < 5` is `0 < x` and `x < 5`."""
        sides = [part for part in parts if isinstance(part, Expression)]
        symbols = ["==" if part == "=" else str(part) for part in parts if isinstance(part, Token)]
        return [Operation(symbol, pair) for symbol, pair in zip(symbols, pairwise(sides), strict=True)]

    def call(self, function: Token, *arguments: Expression) -> Expression:
        many = function in ("min", "max")
        if many != (len(arguments) > 1):
            wanted = "two or more arguments" if many else "one argument"
            raise Mistake(f"{function} takes {wanted}, not {len(arguments)}", function.start_pos or 0)
        return Operation(str(function), arguments)


@dataclass(frozen=True, slots=True)
class Language:
    """A grammar with its builder, the error it raises and the hints it gives.

    `hint` is asked first: given the token that was not expected (None at the end), the one before it, and the whole
    text, it returns a message and a remedy, or None. `most` is the number of characters that are read.
    """

    grammar: str
    starts: tuple[str, ...]
    builder: Callable[[], Transformer[Token, object]]
    error: type[TextError]
    noun: str
    hint: Callable[[Token | None, Token | None, str], tuple[str, str] | None]
    most: int = MAX_CHARACTERS

    def read(self, text: str, start: str) -> Any:
        """The tree of `text`, or this language's error with a caret."""
        refuse_oversized(text, self.error, self.noun, self.most)
        self._refuse_deep(text)
        with pointed(text, self.error):
            try:
                return _table(self).parse(text, start=start)
            except UnexpectedInput as unexpected:
                raise self._pointed(unexpected, text) from None

    def _refuse_deep(self, text: str) -> None:
        if not text.strip():
            raise self.error(f"{self.noun} without any text")
        depth = 0
        for position, character in enumerate(text):
            depth += (character in "([") - (character in ")]")
            if depth > MAX_DEPTH:
                raise self.error(f"more than {MAX_DEPTH} levels of brackets", text, position)

    def _pointed(self, unexpected: UnexpectedInput, text: str) -> TextError:
        position = min(unexpected.pos_in_stream or 0, len(text))
        token: Token | None = None
        if isinstance(unexpected, UnexpectedCharacters):
            token = Token("STRANGE", text[position], start_pos=position)
        elif isinstance(unexpected, UnexpectedToken) and unexpected.token.type != "$END":
            token = unexpected.token
        else:
            position = len(text.rstrip())
        before = list(_table(self).lex(text[:position]))
        last = before[-1] if before else None
        if (token is None or token == ")") and (unmatched := _unmatched_bracket(text)) is not None:
            message = f"this {text[unmatched]!r} is never {'opened' if text[unmatched] in ')]' else 'closed'}"
            return self.error(message, text, unmatched)
        message, remedy = self.hint(token, last, text) or _shared_hint(token, last)
        return self.error(message, text, position, remedy)


def refuse_oversized(text: str, error: type[TextError], noun: str, most: int) -> None:
    """Refuses what is not text, or has too many characters to be read."""
    if not isinstance(text, str):
        raise error(f"{noun} is written as text, not as {type(text).__name__}")
    if len(text) > most:
        raise error(f"{noun} of {len(text):,} characters; at most {most:,} are read")


@cache
def _table(language: Language) -> Lark:
    return Lark(
        language.grammar,
        start=list(language.starts),
        parser="lalr",
        lexer="basic",
        transformer=language.builder(),
        maybe_placeholders=False,
    )


def _unmatched_bracket(text: str) -> int | None:
    """Where a round bracket stands alone, if one does."""
    opened: list[int] = []
    for position, character in enumerate(text):
        if character == "(":
            opened.append(position)
        elif character == ")":
            if not opened:
                return position
            opened.pop()
    return opened[-1] if opened else None


def _shared_hint(token: Token | None, before: Token | None) -> tuple[str, str]:
    """What the arithmetic of both languages can say of a token in the wrong place."""
    after_value = before is not None and before.type in ("NUMBER", "NAME", "QUOTED", "RPAR")
    if token is None:
        return "the text ends too soon", f"something must follow {str(before)!r}" if before and not after_value else ""
    if token.type == "STRANGE":
        return f"{str(token)!r} has no meaning here", "a name with such characters is written in backquotes"
    if token.type == "LPAR" and before is not None and before.type == "NAME":
        return f"{before} is not a function", f"the functions are {', '.join(FUNCTIONS)} and if(c, a, b)"
    if token.type in ("NAME", "QUOTED", "NUMBER", "LPAR", "FUNCTION") and after_value:
        remedy = f"a product is written {before} * {_short(token)}" if before != ")" else "a product is written with *"
        return f"an operator is missing before {_short(token)!r}", remedy
    if token.type == "COMPARISON" and before == "=":
        return "'=>' is not an operator", "write >= for 'at least'"
    return f"{_short(token)!r} cannot stand here", ""


def depth_of(root: _T, children: Callable[[_T], Iterable[_T]]) -> int:
    """How deep a tree is, counted without recursion and not far beyond MAX_DEPTH, so that it can be refused."""
    depth, layer = 0, [root]
    while layer and depth <= MAX_DEPTH:
        depth += 1
        layer = [child for node in layer for child in children(node)]
    return depth


def refuse_overflow(root: Expression, text: str, error: type[TextError]) -> None:
    """Refuses a tree with a constant part that is infinite or undefined; each largest such part is worked out once."""
    nodes = list(in_order(root))
    reading: set[int] = set()  # the ids of the nodes that read a name
    for node in reversed(nodes):
        if isinstance(node, Name | Delayed) or not reading.isdisjoint(map(id, node.children)):
            reading.add(id(node))
    for part in (root, *(child for node in nodes if id(node) in reading for child in node.children)):
        if id(part) not in reading and not math.isfinite(part.evaluate({})):
            raise error(f"{_short(str(part))} is not a finite number", text)


def _short(text: str) -> str:
    text = str(text)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _expression_hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    if token is not None and token.type == "LPAR" and before is not None and before.type == "NAME":
        rest = text[(token.start_pos or 0) + 1 :].lstrip()
        if rest[:1] == "t" and rest[1:].lstrip()[:1] in ("-", ")"):
            return f"{before}(t-...) is a delay, and only formulas have delays", f"a rate reads {before} as it is now"
    return None


_EXPRESSIONS: Final = Language(
    grammar=ARITHMETIC,
    starts=("sum", "condition"),
    builder=Builder,
    error=ExpressionError,
    noun="an expression",
    hint=_expression_hint,
)


def parse_expression(text: str) -> Expression:
    """The tree of an arithmetic expression; ExpressionError, with a caret, where there is none."""
    return _parsed(text, "sum")


def parse_condition(text: str) -> Expression:
    """The tree of a condition such as `A > 0 and not B >= 3`."""
    return _parsed(text, "condition")


def _parsed(text: str, start: str) -> Expression:
    tree: Expression = _EXPRESSIONS.read(text, start)
    if depth_of(tree, lambda node: node.children) > MAX_DEPTH:
        raise ExpressionError(f"more than {MAX_DEPTH} levels of operations", text)
    refuse_overflow(tree, text, ExpressionError)
    return tree
