"""The parts of a PRISM model as they are written: declarations, modules and commands, not yet looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from lark import Token, Tree, v_args

from sateen.core.errors import ModelError
from sateen.language.grammar import Language, Mistake, pointed, refuse_oversized
from sateen.language.prism_syntax import (
    EXPRESSIONS,
    FUNCTIONS,
    Defined,
    Kind,
    Named,
    Term,
    TermBuilder,
    prism_hint,
    without_comments,
)
from sateen.model.prism_system import Composition, check_system, parse_system
from sateen.model.readers import MAX_CHARACTERS

Part: TypeAlias = Any  # what a rule of the grammar was made into: a token, a Term or one of the classes below


@dataclass(frozen=True, slots=True)
class Declared(Named):
    """A variable: a bool, or an int with or without bounds."""

    kind: Kind
    low: Term | None
    high: Term | None
    initial: Term | None


@dataclass(frozen=True, slots=True)
class Assigned(Named):
    """`(x' = value)`."""

    value: Term


@dataclass(frozen=True, slots=True)
class Update:
    """What one alternative of a command does, and at which rate; None is the rate 1."""

    rate: Term | None
    assigned: tuple[Assigned, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Command:
    """`[action] guard -> rate: update + ...`; the action "" stands for none."""

    action: str
    guard: Term
    updates: tuple[Update, ...]


@dataclass(frozen=True, slots=True)
class Module(Named):
    """Variables and the commands that change them."""

    variables: tuple[Declared, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Renamed(Named):
    """A module that is a copy of another, with other names."""

    base: Named
    names: tuple[tuple[Named, str], ...]


@dataclass(frozen=True, slots=True)
class Reward:
    """`guard : value;`, earned in states, or `[action] guard : value;`, by transitions; None stands for states."""

    action: Named | None
    guard: Term
    value: Term


@dataclass(frozen=True, slots=True)
class Rewards(Named):
    """`rewards "name" ... endrewards`; the name may be ""."""

    items: tuple[Reward, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A whole file; without a `system`, all modules synchronise on the actions that they share."""

    constants: tuple[Defined, ...]
    formulas: tuple[Defined, ...]
    labels: tuple[Defined, ...]
    variables: tuple[Declared, ...]
    modules: tuple[Module | Renamed, ...]
    rewards: tuple[Rewards, ...]
    system: Composition | None = None


def parse_program(text: str) -> Program:
    """The parts of a model; ModelError, with a caret, where the text is not a model or has what is not supported."""
    refuse_oversized(text, ModelError, "a model", MAX_CHARACTERS)
    with pointed(text, ModelError):
        body, block = _without_system(without_comments(text))
        parts: dict[str, Any] = _PROGRAMS.read(body, "program")
        _check_type(parts.pop("type"))
        program = Program(**parts)
        if block is None:
            return program
        system = parse_system(*block)
        check_system(system, [module.name for module in program.modules])
        return replace(program, system=system)


def _without_system(text: str) -> tuple[str, tuple[str, int] | None]:
    """The text with its `system ... endsystem` blotted out; and nothing but what stands in it, and where it begins."""
    blocks = list(re.finditer(r'(?s)(?<!")\bsystem\b(?!")(.*?)(\bendsystem\b|\Z)', text))
    if not blocks:
        return text, None
    block = blocks[0]
    if not block[2]:
        raise Mistake("this system is never closed", block.start(), "it ends with endsystem")
    if len(blocks) > 1:
        raise Mistake("a second system ... endsystem", blocks[1].start(), "a model has one at most")
    inside = _blotted(text[: block.start(1)]) + block[1]
    return text[: block.start()] + _blotted(block[0]) + text[block.end() :], (inside, block.start())


def _blotted(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _check_type(kinds: Sequence[Token]) -> None:
    if not kinds:
        remedy = "write ctmc at its beginning; without it PRISM reads a model with choices, which has no probability"
        raise Mistake("this model does not say that it is a ctmc", 0, remedy)
    for kind in kinds:
        if kind not in ("ctmc", "stochastic"):
            remedy = "sateen runs continuous-time Markov chains: ctmc"
            raise Mistake(f"the model type {kind} is not supported", kind.start_pos or 0, remedy)
    if len(kinds) > 1:
        raise Mistake("the model says twice what it is", kinds[1].start_pos or 0)


_GRAMMAR: Final = (
    EXPRESSIONS
    + r"""
    program: (type | constants | formulas | labels | variables | modules | rewards | initial)*
    type: TYPE
    constants: constant _SEMICOLON
    formulas: formula _SEMICOLON
    labels: labelled _SEMICOLON
    variables: "global" variable
    modules: module | renamed
    rewards: structure
    formula: "formula" NAME _EQ expression
    module: "module" NAME variable* command* "endmodule"
    renamed: "module" NAME _EQ NAME _LSQB renaming (_COMMA renaming)* _RSQB "endmodule"
    renaming: NAME _EQ NAME
    initial: INIT expression "endinit"
    structure: REWARDS LABEL? reward* "endrewards"
    reward: acting? expression _COLON expression _SEMICOLON
    acting: _LSQB NAME? _RSQB

    variable: NAME _COLON extent ("init" expression)? _SEMICOLON
    extent: _LSQB expression ".." expression _RSQB | BOOL | INT | CLOCK
    command: _LSQB NAME? _RSQB expression _ARROW updates _SEMICOLON
    updates: update | alternative ("+" alternative)*
    alternative: expression _COLON update
    update: assigned (_AND assigned)* | TRUE
    assigned: _LPAR PRIMED _EQ expression _RPAR

    TYPE.2: /(?:TYPES)\b/
    CLOCK: "clock"
    INIT: "init"
    REWARDS: "rewards"
    _ARROW: "->"
    PRIMED.2: /[A-Za-z_][A-Za-z0-9_]*'/
"""
).replace("TYPES", "ctmc|stochastic|dtmc|probabilistic|mdp|nondeterministic|pta|pomdp|popta|smg|csg|idtmc|imdp|lts|ma")


@v_args(inline=True)
class _ProgramBuilder(TermBuilder):
    """The parts of a file by kind, each below a Tree of its kind until the file is whole."""

    def program(self, *parts: Tree[Part]) -> dict[str, tuple[Part, ...]]:
        kinds = ("type", "constants", "formulas", "labels", "variables", "modules", "rewards")
        return {kind: tuple(part.children[0] for part in parts if part.data == kind) for kind in kinds}

    def formula(self, name: Token, value: Term) -> Defined:
        return Defined(self.checked(name), name.start_pos or 0, "bool", value)

    def variable(self, name: Token, extent: Part, initial: Term | None = None) -> Declared:
        position = name.start_pos or 0
        if extent.children == ["clock"]:
            raise Mistake("clocks are not supported", position, "they belong to a pta; a ctmc has none")
        kind: Kind = "bool" if extent.children == ["bool"] else "int"
        low, high = extent.children if len(extent.children) == 2 else (None, None)
        return Declared(self.checked(name), position, kind, low, high, initial)

    def module(self, name: Token, *parts: Part) -> Module:
        variables = tuple(part for part in parts if isinstance(part, Declared))
        commands = tuple(part for part in parts if isinstance(part, Command))
        return Module(self.checked(name), name.start_pos or 0, variables, commands)

    def renamed(self, name: Token, base: Token, *names: tuple[Named, str]) -> Renamed:
        of = Named(str(base), base.start_pos or 0)
        return Renamed(self.checked(name), name.start_pos or 0, of, names)

    def renaming(self, old: Token, new: Token) -> tuple[Named, str]:
        return Named(str(old), old.start_pos or 0), str(new) if new in FUNCTIONS else self.checked(new)

    def initial(self, word: Token, condition: Term) -> Part:
        remedy = "give every variable its own value: x : [0..5] init 2;"
        raise Mistake("init ... endinit is not supported: a run begins in one state", word.start_pos or 0, remedy)

    def structure(self, word: Token, *parts: Part) -> Rewards:
        name = str(parts[0]).strip('"') if parts and isinstance(parts[0], Token) else ""
        return Rewards(name, word.start_pos or 0, tuple(each for each in parts if isinstance(each, Reward)))

    def reward(self, *parts: Part) -> Reward:
        *action, guard, value = parts
        return Reward(action[0] if action else None, guard, value)

    def acting(self, *name: Token) -> Named:
        return Named(str(name[0]), name[0].start_pos or 0) if name else Named("", 0)

    def command(self, *parts: Part) -> Command:
        *action, guard, updates = parts
        return Command(self.checked(action[0]) if action else "", guard, updates)

    def updates(self, *alternatives: Update) -> tuple[Update, ...]:
        return alternatives

    def alternative(self, rate: Term, update: Update) -> Update:
        return replace(update, rate=rate, position=rate.position)

    def update(self, *assigned: Part) -> Update:
        first = assigned[0]
        if isinstance(first, Token):  # true: nothing changes
            return Update(None, (), first.start_pos or 0)
        return Update(None, assigned, first.position)

    def assigned(self, primed: Token, value: Term) -> Assigned:
        return Assigned(primed.rstrip("'"), primed.start_pos or 0, value)


def _hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    """What the language of models can say of a token in the wrong place."""
    if token is None:
        return "the text ends too soon", "a module ends with endmodule, a declaration or a command with ;"
    if before == "label":
        return "the name of a label stands in double quotes", f'write  label "{str(token)[:40]}" = ...'
    if "invariant" in (token, before):
        return "invariants are not supported", "they belong to a pta; a ctmc has none"
    if token.type == "PRIMED":
        return "an assignment stands in brackets", "write (x'=1), and join several with &: (x'=1) & (y'=2)"
    if token.type in _BEGINNINGS and before is not None and before.type in _ENDINGS:
        return f"a semicolon is missing before {str(token)[:40]!r}", "declarations and commands end with ;"
    return prism_hint(token, before, text)


_BEGINNINGS: Final = {"MODULE", "ENDMODULE", "_LSQB", "CONST", "FORMULA", "LABEL", "GLOBAL", "TYPE", "NAME"}
_ENDINGS: Final = {"NUMBER", "NAME", "TRUE", "FALSE", "_RPAR", "_RSQB", "BOOL", "INT"}

_PROGRAMS: Final = Language(
    grammar=_GRAMMAR,
    starts=("program",),
    builder=_ProgramBuilder,
    error=ModelError,
    noun="a model",
    hint=_hint,
    most=MAX_CHARACTERS,
)
