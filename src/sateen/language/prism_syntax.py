"""The expressions and declarations of the PRISM language as written: what its models and its properties share.

The text becomes a tree of Terms, in which names are not yet looked up and nothing has a type; `prism_types.py` makes
expressions of them. Operators bind as in PRISM, loosest first: `? :`, `=>`, `<=>`, `|`, `&`, `!`, `= !=`,
`< <= >= >`, `+ -`, `* /`, unary `-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from lark import Token, v_args

from sateen.language.grammar import MAX_DEPTH, Mistake, TreeBuilder, applied, legible

Kind: TypeAlias = Literal["int", "double", "bool"]

# How many arguments each function takes; None is two or more.
FUNCTIONS: Final = {"min": None, "max": None, "floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}
_WORDS: Final = """
    A bool clock const ctmc C double dtmc E endinit endinvariant endmodule endobservables endrewards endsystem false
    formula filter func F global G init invariant I int label max mdp min module X nondeterministic observable
    observables of Pmax Pmin P pomdp popta probabilistic prob pta rate rewards Rmax Rmin R S stochastic system true U W
"""
_RESERVED: Final = frozenset(_WORDS.split())

EXPRESSIONS: Final = r"""
    ?expression: implication | implication _ASK implication _COLON expression -> choice
    ?implication: equivalence | implication _IMPLIES equivalence -> implies
    ?equivalence: either | equivalence _IFF either -> iff
    ?either: both | both (_OR both)+ -> any_of
    ?both: negation | negation (_AND negation)+ -> all_of
    ?negation: equality | _NOT negation -> negated
    ?equality: relation | equality _EQ relation -> equal | equality _NE relation -> unequal
    ?relation: sum | relation RELATION sum -> compared
    ?sum: product | product ((PLUS | MINUS) product)+ -> total
    ?product: unary | product _TIMES unary -> times | product _OVER unary -> over
    ?unary: atom | MINUS unary -> negative
    ?atom: number | name | truth | _LPAR expression _RPAR | call | LABEL -> label
    number: NUMBER
    name: NAME
    truth: TRUE | FALSE
    call: FUNCTION _LPAR expression (_COMMA expression)* _RPAR
        | FUNC _LPAR NAME (_COMMA expression)+ _RPAR -> old_call

    constant: (CONST | RATE | PROB) (INT | DOUBLE | BOOL)? NAME (_EQ expression)?
    labelled: "label" LABEL _EQ expression

    _ASK: "?"
    _COLON: ":"
    _SEMICOLON: ";"
    _COMMA: ","
    _LPAR: "("
    _RPAR: ")"
    _LSQB: "["
    _RSQB: "]"
    _IMPLIES: "=>"
    _IFF: "<=>"
    _OR: "|"
    _AND: "&"
    _NOT: "!"
    _EQ: "="
    _NE: "!="
    RELATION: "<=" | ">=" | "<" | ">"
    PLUS: "+"
    MINUS: "-"
    _TIMES: "*"
    _OVER: "/"
    TRUE: "true"
    FALSE: "false"
    FUNC: "func"
    CONST: "const"
    RATE: "rate"
    PROB: "prob"
    INT: "int"
    DOUBLE: "double"
    BOOL: "bool"
    FUNCTION.2: /(?:FUNCTIONS)(?=\s*\()/
    NUMBER: /[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?/
    NAME: /[A-Za-z_][A-Za-z0-9_]*/
    LABEL: /"[A-Za-z_][A-Za-z0-9_]*"/
    %ignore /\s+/
""".replace("FUNCTIONS)", "|".join(FUNCTIONS) + ")")


@dataclass(frozen=True, slots=True)
class Term:
    """A node of the tree as written: a symbol on its operands, or a leaf with its text.

    Leaves are `number`, `name`, `truth` and `label`; a function is its own symbol. `position` is where it begins.
    """

    symbol: str
    position: int
    operands: tuple[Term, ...] = ()
    text: str = ""
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Named:
    """A name and where it stands."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Defined(Named):
    """A constant, a formula or a label: a name for a value, or for one that is still to be given."""

    kind: Kind
    value: Term | None


def _leaf(symbol: str) -> Callable[[TermBuilder, Token], Term]:
    """The method of TermBuilder for a rule that is one token."""
    return lambda _builder, token: Term(symbol, token.start_pos or 0, text=token.strip('"'))


@v_args(inline=True)
class TermBuilder(TreeBuilder[Term]):
    """The Term, or the definition, of each rule of EXPRESSIONS."""

    choice = applied("?")
    implies = applied("=>")
    iff = applied("<=>")
    any_of = applied("|")
    all_of = applied("&")
    negated = applied("!")
    equal = applied("=")
    unequal = applied("!=")
    times = applied("*")
    over = applied("/")
    number, truth, label = map(_leaf, ("number", "truth", "label"))

    def name(self, token: Token) -> Term:
        return Term("name", token.start_pos or 0, text=self.checked(token))

    def checked(self, token: Token) -> str:
        """The text of a name, unless PRISM keeps the word for itself."""
        position = token.start_pos or 0
        if token in _RESERVED:
            raise Mistake(f"{token} is a reserved word of PRISM", position, "choose another name")
        return legible(str(token), position)

    def compared(self, left: Term, symbol: Token, right: Term) -> Term:
        return self.term(str(symbol), left, right)

    def negative(self, minus: Token, operand: Term) -> Term:
        return self.term("-", operand, position=minus.start_pos)

    def call(self, function: Token, *arguments: Term) -> Term:
        position = function.start_pos or 0
        wanted = FUNCTIONS.get(str(function), 0)
        if wanted == 0:
            raise Mistake(f"{function} is not a function", position, f"the functions are {', '.join(FUNCTIONS)}")
        if len(arguments) != wanted and (wanted is not None or len(arguments) < 2):
            wants = {None: "two or more arguments", 1: "one argument", 2: "two arguments"}[wanted]
            raise Mistake(f"{function} takes {wants}, not {len(arguments)}", position)
        return self.term(str(function), *arguments, position=position)

    def old_call(self, word: Token, function: Token, *arguments: Term) -> Term:
        """`func(min, a, b)`, an old spelling of `min(a, b)`."""
        return self.call(function, *arguments)

    def constant(self, word: Token, *rest: Any) -> Defined:
        kinds: dict[str, Kind] = {"int": "int", "double": "double", "bool": "bool"}
        kind: Kind = "int" if word == "const" else "double"
        if rest[0] in kinds:
            kind, rest = kinds[rest[0]], rest[1:]
        name, *value = rest
        return Defined(self.checked(name), name.start_pos or 0, kind, value[0] if value else None)

    def labelled(self, label: Token, value: Term) -> Defined:
        return Defined(label.strip('"'), label.start_pos or 0, "bool", value)

    def term(self, symbol: str, *operands: Term, position: int | None = None) -> Term:
        """A node, unless it is too deep."""
        where = operands[0].position if position is None else position
        depth = 1 + max(operand.depth for operand in operands)
        if depth > MAX_DEPTH:
            raise Mistake(f"more than {MAX_DEPTH} levels of operations", where)
        return Term(symbol, where, operands, depth=depth)


def without_comments(text: str) -> str:
    """The text with its comments, from // to the end of the line, blotted out at the same length."""
    return re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)


def prism_hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    """What PRISM's languages can say of a token in the wrong place."""
    position = len(text) if token is None else token.start_pos or 0
    if token is not None and token.type == "STRANGE":
        if token == "#":
            return "# belongs to PRISM's preprocessor", "run prismpp on the file first, and read what it writes"
        if token == '"':
            return "a label is a name in double quotes", 'write it like "full"'
        return f"{str(token)!r} has no meaning here", "powers are pow(a, b), remainders mod(a, b)" * (token in "^%")
    if before == "=" and token == "=":
        return "== is not an operator of PRISM", "write ="
    for wrong, right in (("&&", "&"), ("||", "|")):
        if text.startswith(wrong, max(position - 1, 0)):
            return f"{wrong} is not an operator of PRISM", f"write {right}"
    if token is not None and token.type == "_LPAR" and before is not None and before.type == "NAME":
        return f"{before} is not a function", f"the functions are {', '.join(FUNCTIONS)}"
    if token is not None and str(token) in _RESERVED:
        return f"{token} cannot stand here", f"{token} is a reserved word of PRISM"
    if text.startswith("->", position) and before is not None and before.type == "_RSQB":
        return "a command needs a guard before ->", "write true where it is always enabled"
    return None
