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
_TOKENS: Final = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|\S')
_NAMED: Final = re.compile(r'\s*"([A-Za-z_]\w*)"\s*:')
_Question: TypeAlias = tuple[Term, str | None, Term | None]


@dataclass(frozen=True, slots=True)
class Item:
    """A constant, a label or a property, and where it begins in the file."""

    kind: str
    name: str
    text: str
    start: int


def items(text: str) -> Iterator[Item]:
    """The parts of a file, in order. Properties end with ;, or with ] where another part begins after it."""
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
        if start >= 0 and depth == 0 and last == "]" and re.match(r'["A-Za-z_]', token[0]):
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
    """What to say of a property that asks for something else than a probability."""
    for pattern, message, remedy in _REFUSED:
        if match := re.match(rf"\s*({pattern})", item.text):
            return Mistake(message.format(match[1]), match.start(1), remedy)
    return None


_PATHS: Final = "sateen computes probabilities of paths from the initial state: P=? [ ... ]"
_REFUSED: Final = (
    (r"(?:Pmin|Pmax|P\s*min|P\s*max)\b", "{} is not supported", "a ctmc leaves no choice: write P"),
    (r"R(?:min|max)?\b", "expected rewards ({}) are not supported", _PATHS),
    (r"S\b", "the steady-state operator {} is not supported", _PATHS),
    (r"[EA]\b", "the operator {} of CTL is not supported", _PATHS),
    (r"filter\b", "{} is not supported", _PATHS),
    (r"multi\b", "several objectives ({}) are not supported", _PATHS),
    (r"<<|\[\[", "the strategies of {} are not supported", _PATHS),
)

_GRAMMAR: Final = (
    EXPRESSIONS.replace("_LPAR expression _RPAR | call", "_LPAR path _RPAR | call")
    + r"""
    question: "P" (_EQ _ASK | RELATION sum) _LSQB path _RSQB
    ?path: step | step (UNTIL | WEAK | RELEASE) window? step -> timed
    ?step: expression | (EVENTUALLY | GLOBALLY | NEXT) window? step -> timed
    window: RELATION sum | _LSQB sum _COMMA sum _RSQB | _EQ sum -> instant

    UNTIL: "U"
    WEAK: "W"
    RELEASE: "R"
    EVENTUALLY: "F"
    GLOBALLY: "G"
    NEXT: "X"
"""
)


@v_args(inline=True)
class _PropertyBuilder(TermBuilder):
    """Terms with operators of time: their operands, then the bounds; the text says of which kind those are."""

    def checked(self, token: Token) -> str:
        if token in ("S", "E", "A", "filter"):
            raise Mistake(f"the operator {token} is not supported inside P", token.start_pos or 0, _PATHS)
        return super().checked(token)

    def question(self, *parts: Any) -> _Question:
        *wanted, path = parts
        return (path, str(wanted[0]), wanted[1]) if wanted else (path, None, None)

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
    if token == "{":
        return "filters are not supported", _PATHS
    if not re.match(r"\s*(?:P\b|const\b|rate\b|prob\b|label\b)", text):
        return "a property begins with P", _PATHS
    if re.match(r"\s*P\b", text) and "[" not in text[:position]:
        return "P is followed by =?, or by a comparison", "write P=? [ ... ] or P>=0.9 [ ... ]"
    if before == "]" and text.count("[", 0, position) == text.count("]", 0, position):
        return "a property ends with ]", "join formulas inside: P=? [ (F a) & (G b) ]; end properties with ;"
    if kind in ("UNTIL", "WEAK") and before is not None and before.type in ("_LSQB", "_LPAR"):
        return f"{token} needs a formula on its left", f"write  a {token} b"
    if kind in ("EVENTUALLY", "GLOBALLY", "NEXT", "UNTIL", "WEAK"):
        return f"{token} needs brackets here", f"below ! & | => an operator of time stands in brackets: a & ({token} b)"
    if kind == "P":
        return "P inside P is not supported", _PATHS
    if kind == "RELEASE":
        return "the operator R is not supported inside P", _PATHS
    return prism_hint(token, before, text)


_PROPERTIES: Final = Language(
    grammar=_GRAMMAR,
    starts=("question", "constant", "labelled"),
    builder=_PropertyBuilder,
    error=FormulaError,
    noun="a property",
    hint=_hint,
)


def parse_question(item: Item) -> _Question:
    """The path of a property P=? [ path ] or P>=p [ path ]; of the latter the comparison and the bound too."""
    question: _Question = _PROPERTIES.read(item.text, "question")
    return question


def parse_definition(item: Item) -> Defined:
    """A constant, with its value where it has one, or a label; positions count from the beginning of the item."""
    defined: Defined = _PROPERTIES.read(item.text, "constant" if item.kind == "constant" else "labelled")
    return defined
