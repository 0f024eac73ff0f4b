"""A file of PRISM properties as it is written: cut into its constants, labels and properties, each then parsed.

Operators of time bind more loosely than those of logic, as in PRISM: `F<=T a & b` is F<=T (a & b), and an operator of
time below `&` or `|` stands in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from lark import Token, v_args

from sateen.core.errors import FormulaError
from sateen.language.grammar import Language, Mistake
from sateen.language.prism_syntax import EXPRESSIONS, Defined, Term, TermBuilder, prism_hint, without_comments

_MAX_CHARACTERS: Final = 200_000
_MOST_ITEMS: Final = 1_000
_Comparison: TypeAlias = tuple[str | None, Term | None]
_TOKENS: Final = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|\S')
_NAMED: Final = re.compile(r'\s*"([A-Za-z_]\w*)"\s*:')
_FILTERED: Final = re.compile(r'(?:"[A-Za-z_]\w*"\s*:)?\s*filter\b')


@dataclass(frozen=True, slots=True)
class Item:
    """A constant, a label or a property, and where it begins in the file."""

    kind: str
    name: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Filter:
    """`filter(operator, property, states)`; without states it is about all of them."""

    operator: str
    states: Term | None
    position: int


@dataclass(frozen=True, slots=True)
class Question:
    """What a property asks: P of a path, or R of what is earned, and perhaps how it compares with a bound.

    What is earned is a path F φ, or a Term with the symbol C or I on the time that is given. `structure` says which
    rewards: by their label, or by a number that counts from 1.
    """

    operator: str
    path: Term
    comparison: str | None = None
    bound: Term | None = None
    structure: Term | None = None
    filter: Filter | None = None


def items(text: str) -> Iterator[Item]:
    """The parts of a file, in order. Properties end with ;, or with ] or a filter's ) where another part follows."""
    if not isinstance(text, str):
        raise FormulaError(f"properties are written as text, not as {type(text).__name__}")
    if len(text) > _MAX_CHARACTERS:
        raise FormulaError(f"properties of {len(text):,} characters; at most {_MAX_CHARACTERS:,} are read")
    plain = without_comments(text)
    for count, (start, stop) in enumerate(_pieces(plain)):
        if count == _MOST_ITEMS:
            raise FormulaError(f"more than {_MOST_ITEMS:,} properties in one file", text, start)
        piece = plain[start:stop]
        word = re.match(r"(const|rate|prob|label)\b", piece)
        if word:
            yield Item("label" if word[1] == "label" else "constant", "", piece, start)
            continue
        named = _NAMED.match(piece)
        begin = named.end() if named else 0
        yield Item("property", named[1] if named else "", piece[begin:], start + begin)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start, depth, last = -1, 0, ""
    for token in _TOKENS.finditer(text):
        ends = last == "]" or (last == ")" and _FILTERED.match(text, max(start, 0)) is not None)
        if start >= 0 and depth == 0 and ends and re.match(r'["A-Za-z_]', token[0]):
            yield start, token.start()
            start = -1
        if token[0] == ";":
            if start >= 0:
                yield start, token.start()
            start, depth, last = -1, 0, ""
            continue
        start = token.start() if start < 0 else start
        depth = max(depth + (token[0] in "([{") - (token[0] in ")]}"), 0)
        last = token[0]
    if start >= 0:
        yield start, len(text)


def refused_operator(item: Item) -> Mistake | None:
    """What to say of a property that asks for something else than a probability or an expected reward."""
    for pattern, message, remedy in _REFUSED:
        if match := re.match(rf"\s*({pattern})", item.text):
            return Mistake(message.format(match[1]), match.start(1), remedy)
    return None


# Of one state alone, each of these is the value there; of a property with a bound, whether it holds there.
_OF_VALUES: Final = ("state", "first", "min", "max", "sum", "+", "avg")
_OF_TRUTHS: Final = ("state", "first", "forall", "exists")

_PATHS: Final = "sateen computes P=? [ ... ] and R=? [ ... ] from the initial state"
_REFUSED: Final = (
    (r"(?:Pmin|Pmax|P\s*min|P\s*max)\b", "{} is not supported", "a ctmc leaves no choice: write P"),
    (r"(?:Rmin|Rmax)\b", "{} is not supported", "a ctmc leaves no choice: write R"),
    (r"R\s*(?:\{[^{}]*\})?\s*(?:min|max)\b", "{} is not supported", "a ctmc leaves no choice: write R{{...}}=?"),
    (r"R\b[^\[]*\[\s*S\s*\]", "rewards in the long run (S) are not supported", _PATHS),
    (r"S\b", "the steady-state operator {} is not supported", _PATHS),
    (r"[EA]\b", "the operator {} of CTL is not supported", _PATHS),
    (r"multi\b", "several objectives ({}) are not supported", _PATHS),
    (r"<<|\[\[", "the strategies of {} are not supported", _PATHS),
)

_GRAMMAR: Final = (
    EXPRESSIONS.replace("_LPAR expression _RPAR | call", "_LPAR path _RPAR | call")
    + r"""
    question: asked | _FILTER _LPAR operator _COMMA asked (_COMMA expression)? _RPAR -> filtered
    ?asked: "P" compared_with _LSQB path _RSQB -> probability
        | RELEASE structure? compared_with _LSQB gained _RSQB -> reward
    compared_with: _EQ _ASK | RELATION sum
    structure: "{" sum "}"
    ?gained: path | CUMULATED (RELATION sum)? -> gain | INSTANT _EQ sum -> gain
    operator: NAME | PLUS | _AND -> for_all | _OR -> exists
    ?path: step | step (UNTIL | WEAK | RELEASE) window? step -> timed
    ?step: expression | (EVENTUALLY | GLOBALLY | NEXT) window? step -> timed
    window: RELATION sum | _LSQB sum _COMMA sum _RSQB | _EQ sum -> instant

    UNTIL: "U"
    WEAK: "W"
    RELEASE: "R"
    EVENTUALLY: "F"
    GLOBALLY: "G"
    NEXT: "X"
    CUMULATED: "C"
    INSTANT: "I"
    _FILTER: "filter"
"""
)


@v_args(inline=True)
class _PropertyBuilder(TermBuilder):
    """Terms with operators of time: their operands, then the bounds; the text says of which kind those are."""

    def checked(self, token: Token) -> str:
        if token in ("S", "E", "A"):
            raise Mistake(f"the operator {token} is not supported inside P or R", token.start_pos or 0, _PATHS)
        return super().checked(token)

    def question(self, asked: Question) -> Question:
        return asked

    def probability(self, compared: _Comparison, path: Term) -> Question:
        return Question("P", path, compared[0], compared[1])

    def reward(self, *parts: Any) -> Question:
        """`R{structure}=? [ gained ]`, after the token R."""
        *structure, compared, gained = parts[1:]
        return Question("R", gained, compared[0], compared[1], structure[0] if structure else None)

    def filtered(self, operator: Filter, asked: Question, *states: Term) -> Question:
        """`filter(operator, asked, states)`, where the operator can be asked of one state."""
        position = operator.position or asked.path.position
        if operator.operator not in (_OF_TRUTHS if asked.comparison else _OF_VALUES):
            fits = operator.operator not in (*_OF_TRUTHS, *_OF_VALUES)
            why = "is not supported" if fits else "does not fit this property"
            raise Mistake(f"filter({operator.operator}, ...) {why}", position, 'ask for filter(state, ..., "init")')
        return replace(asked, filter=Filter(operator.operator, states[0] if states else None, position))

    def operator(self, token: Token) -> Filter:
        return Filter(str(token), None, token.start_pos or 0)

    def for_all(self) -> Filter:
        return Filter("forall", None, 0)

    def exists(self) -> Filter:
        return Filter("exists", None, 0)

    def compared_with(self, *parts: Any) -> _Comparison:
        return (str(parts[0]), parts[1]) if parts else (None, None)

    def structure(self, which: Term) -> Term:
        return which

    def gain(self, word: Token, *parts: Any) -> Term:
        """`C<=t`, `C` or `I=t`."""
        if len(parts) == 2 and parts[0] != "<=":
            raise Mistake("rewards are accumulated up to a time", parts[0].start_pos or 0, "write C<=t")
        return Term(str(word), word.start_pos or 0, parts[-1:])

    def timed(self, *parts: Any) -> Term:
        """`F a` or `a U b`, where a window may stand before the last operand."""
        kind, bounds = next((part for part in parts if isinstance(part, tuple)), ("", ()))
        *left, operator, right = (part for part in parts if not isinstance(part, tuple))
        made = self.term(str(operator), *left, right, *bounds, position=operator.start_pos or 0)
        return replace(made, text=kind)

    def window(self, *parts: Any) -> tuple[str, tuple[Term, ...]]:
        return (str(parts[0]), parts[1:]) if isinstance(parts[0], Token) else ("[]", parts)

    def instant(self, moment: Term) -> tuple[str, tuple[Term, ...]]:
        return "=", (moment,)


def _hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    """What the language of properties can say of a token in the wrong place."""
    kind = "" if token is None else token.type
    position = len(text) if token is None else token.start_pos or 0
    if before == "label":
        return "the name of a label stands in double quotes", f'write  label "{str(token)[:40]}" = ...'
    if token == "{" and "[" in text[:position]:
        return "filters in braces are not supported", 'write filter(state, P=? [ ... ], "init")'
    if not re.match(r"\s*(?:P\b|R\b|filter\b|const\b|rate\b|prob\b|label\b)", text):
        return "a property begins with P or R", _PATHS
    if kind == "_FILTER" or (token == "P" and "[" in text[:position]):
        return f"{token} inside P or R is not supported", _PATHS
    if re.match(r"\s*filter\b", text) and "[" not in text[:position]:
        return "a filter is about a property P or R", 'write filter(state, P=? [ ... ], "init")'
    if (asked := re.match(r"\s*([PR])\b", text)) and "[" not in text[:position]:
        sign = asked[1]
        return f"{sign} is followed by =?, or by a comparison", f"write {sign}=? [ ... ] or {sign}>=0.9 [ ... ]"
    if before == "]" and text.count("[", 0, position) == text.count("]", 0, position):
        return "a property ends with ]", "join formulas inside: P=? [ (F a) & (G b) ]; end properties with ;"
    if kind in ("UNTIL", "WEAK") and before is not None and before.type in ("_LSQB", "_LPAR"):
        return f"{token} needs a formula on its left", f"write  a {token} b"
    if kind in ("EVENTUALLY", "GLOBALLY", "NEXT", "UNTIL", "WEAK"):
        return f"{token} needs brackets here", f"write a temporal operator below ! & | => in brackets: a & ({token} b)"
    if kind == "RELEASE":
        return "the operator R is not supported inside P or R", _PATHS
    return prism_hint(token, before, text)


_PROPERTIES: Final = Language(
    grammar=_GRAMMAR,
    starts=("question", "constant", "labelled"),
    builder=_PropertyBuilder,
    error=FormulaError,
    noun="a property",
    hint=_hint,
)


def parse_question(item: Item) -> Question:
    """What a property asks: P=? [ path ], P>=p [ path ], R=? [ C<=t ], or a filter on one of these."""
    question: Question = _PROPERTIES.read(item.text, "question")
    return question


def parse_definition(item: Item) -> Defined:
    """A constant, with its value where it has one, or a label; positions count from the beginning of the item."""
    defined: Defined = _PROPERTIES.read(item.text, "constant" if item.kind == "constant" else "labelled")
    return defined
