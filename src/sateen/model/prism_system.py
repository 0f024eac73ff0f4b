"""How the modules of a PRISM model run together: `system ... endsystem` as it is written, and what it means.

A part of the composition can do something alone, or take part in an action. `A || B` do the actions together that both
know, `A ||| B` none, `A |[a, b]| B` those that are listed; `A / {a}` hides actions, which then happen without a name,
and `A {a <- b}` renames them. Where parts do an action together, every command of the one meets every command of the
other; where only one of them has a command enabled, the action is blocked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, Final, Literal, TypeAlias

from lark import Token, Transformer, v_args

from sateen.core.errors import ModelError, nearest
from sateen.language.expression import Expression
from sateen.language.grammar import MAX_DEPTH, Language, Mistake, depth_of
from sateen.language.prism_syntax import Named
from sateen.model.readers import MAX_CHARACTERS

MOST_COMBINATIONS: Final = 100_000  # of commands, of which guards may exclude many

_Symbol: TypeAlias = Literal["module", "||", "|||", "|[]|", "/", "{}"]


@dataclass(frozen=True, slots=True)
class Composition:
    """A module, whose name is the only one of `names`, or an operator on parts with the actions it names.

    A renaming has a pair of names for each action: the old one and the new one.
    """

    symbol: _Symbol
    position: int
    parts: tuple[Composition, ...] = ()
    names: tuple[Named, ...] = ()

    @property
    def modules(self) -> tuple[Named, ...]:
        """The modules that it names, as often as it does."""
        return self.names if self.symbol == "module" else tuple(each for part in self.parts for each in part.modules)

    @property
    def plain(self) -> bool:
        """Whether it only writes out what a model without it does, perhaps in another order."""
        return self.symbol == "module" or (self.symbol == "||" and all(part.plain for part in self.parts))

    @property
    def introduced(self) -> set[str]:
        """The actions that renamings give."""
        own = {each.name for each in self.names[1::2]} if self.symbol == "{}" else set[str]()
        return own.union(*(part.introduced for part in self.parts))


def parse_system(text: str, start: int) -> Composition:
    """The composition in a text that is blank up to `start`."""
    if not text.strip():
        raise Mistake("this system has no module", start, "write one like  system a || b endsystem")
    system: Composition = _SYSTEMS.read(text, "system")
    if depth_of(system, lambda part: part.parts) > MAX_DEPTH:
        raise Mistake(f"more than {MAX_DEPTH} levels of operators", start)
    return system


def check_system(system: Composition, modules: Iterable[str]) -> None:
    """Every module of the model takes part exactly once."""
    missing = list(modules)
    known = tuple(missing)
    for module in system.modules:
        if module.name not in known:
            raise Mistake(f"there is no module {module.name}", module.position, nearest(module.name, known))
        if module.name not in missing:
            raise Mistake(f"{module.name} takes part twice", module.position, "every module takes part once")
        missing.remove(module.name)
    if missing:
        raise Mistake(f"{missing[0]} takes no part in this system", system.position, "every module takes part once")


@dataclass(frozen=True, slots=True)
class Step:
    """What one alternative of a command does, ready to be combined with those of other modules."""

    guard: tuple[Expression, ...]
    rate: Expression
    assigned: tuple[tuple[str, Expression], ...]
    size: int
    position: int


@dataclass(frozen=True, slots=True)
class Happening:
    """Steps that are taken together, each combination of them an alternative.

    `order` counts where it is first written, `label` is the name of its action or, without one, of its module, and
    `action` is "" where it has none or a hidden one.
    """

    order: int
    label: str
    action: str
    combinations: tuple[tuple[Step, ...], ...]

    def joined(self, other: Happening) -> Happening:
        """Either of two happenings of an action."""
        return self._with(other, self.combinations + other.combinations)

    def met(self, other: Happening) -> Happening:
        """Both together: every combination of steps of the one with every one of the other."""
        if len(self.combinations) * len(other.combinations) > MOST_COMBINATIONS:
            raise too_many(f"the action {self.label}", self.combinations[0][0].position)
        return self._with(other, tuple(a + b for a, b in product(self.combinations, other.combinations)))

    def _with(self, other: Happening, combinations: tuple[tuple[Step, ...], ...]) -> Happening:
        return replace(self, order=min(self.order, other.order), combinations=combinations)


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of a composition does without an action, and by each action that it knows: its alphabet."""

    alone: tuple[Happening, ...]
    shared: Mapping[str, Happening]

    @property
    def happenings(self) -> list[Happening]:
        """All of them, in the order of the text."""
        return sorted((*self.alone, *self.shared.values()), key=lambda each: each.order)


def too_many(label: str, position: int) -> Mistake:
    """What to say of an action that leads to more transitions than can be run."""
    remedy = "its commands are combined with each other: make their guards, or the modules, fewer"
    return Mistake(f"{label} leads to more transitions than can be run", position, remedy)


def composed(system: Composition | None, modules: Mapping[str, Part]) -> Part:
    """What a composition of modules does; without one, all synchronise on the actions that they share."""
    return _fully(modules.values()) if system is None or system.plain else _composed(system, modules)


def _composed(system: Composition, modules: Mapping[str, Part]) -> Part:
    if system.symbol == "module":
        return modules[system.names[0].name]
    parts = [_composed(part, modules) for part in system.parts]
    names = [each.name for each in system.names]
    match system.symbol:
        case "||":
            return _fully(parts)
        case "|||":
            return reduce(lambda left, right: _together(left, right, set()), parts)
        case "|[]|":
            return _together(parts[0], parts[1], set(names))
        case "/":
            hidden = [replace(each, action="") for name, each in parts[0].shared.items() if name in names]
            kept = {name: each for name, each in parts[0].shared.items() if name not in names}
            return Part((*parts[0].alone, *hidden), kept)
    renaming = dict(zip(names[::2], names[1::2], strict=True))
    renamed: dict[str, Happening] = {}
    for name, each in parts[0].shared.items():
        new = renaming.get(name, name)
        each = replace(each, label=new, action=new)
        renamed[new] = renamed[new].joined(each) if new in renamed else each
    return Part(parts[0].alone, renamed)


def _fully(parts: Iterable[Part]) -> Part:
    """Parts that do together whatever two of them know."""
    return reduce(lambda left, right: _together(left, right, left.shared.keys() & right.shared), parts)


def _together(left: Part, right: Part, actions: set[str]) -> Part:
    """Two parts that do some actions together and all else on their own."""
    shared: dict[str, Happening] = {}
    for name in {**left.shared, **right.shared}:
        one, other = left.shared.get(name), right.shared.get(name)
        if one is None or other is None:
            only = one or other
            assert only is not None
            # An action that waits for a part that does not know it never happens.
            shared[name] = replace(only, combinations=()) if name in actions else only
        else:
            shared[name] = one.met(other) if name in actions else one.joined(other)
    return Part((*left.alone, *right.alone), shared)


_GRAMMAR: Final = r"""
    system: composed
    ?composed: part
        | part ("||" part)+ -> full
        | part ("|||" part)+ -> interleaved
        | part "|[" NAME ("," NAME)* "]|" part -> restricted
    ?part: NAME -> module
        | "(" composed ")"
        | part "/" "{" NAME ("," NAME)* "}" -> hidden
        | part "{" NAME "<-" NAME ("," NAME "<-" NAME)* "}" -> renamed

    NAME: /[A-Za-z_][A-Za-z0-9_]*/
    %ignore /\s+/
"""


@v_args(inline=True)
class _SystemBuilder(Transformer[Token, object]):
    """The Composition of each rule."""

    def system(self, whole: Composition) -> Composition:
        return whole

    def module(self, name: Token) -> Composition:
        return Composition("module", name.start_pos or 0, names=(_named(name),))

    def full(self, *parts: Composition) -> Composition:
        return Composition("||", parts[0].position, parts)

    def interleaved(self, *parts: Composition) -> Composition:
        return Composition("|||", parts[0].position, parts)

    def restricted(self, left: Composition, *rest: Any) -> Composition:
        return Composition("|[]|", left.position, (left, rest[-1]), tuple(map(_named, rest[:-1])))

    def hidden(self, part: Composition, *names: Token) -> Composition:
        return Composition("/", part.position, (part,), tuple(map(_named, names)))

    def renamed(self, part: Composition, *names: Token) -> Composition:
        old = [str(name) for name in names[::2]]
        for place, name in enumerate(old):
            if name in old[:place]:
                raise Mistake(f"{name} is renamed twice", names[2 * place].start_pos or 0)
        return Composition("{}", part.position, (part,), tuple(map(_named, names)))


def _named(token: Token) -> Named:
    return Named(str(token), token.start_pos or 0)


def _hint(token: Token | None, before: Token | None, text: str) -> tuple[str, str] | None:
    operators = "the operators are  a || b,  a ||| b,  a |[x, y]| b,  a / {x},  a {x <- y}"
    if token is None:
        return "the composition ends too soon", operators
    if token == '"':
        return "systems with names are not supported", "write a single  system ... endsystem  without a name"
    if re.match(r"\|", token) and before is not None and before.type in ("NAME", "RPAR", "RBRACE"):
        return f"{token} needs brackets next to another operator", "write  (a || b) ||| c  or  a || (b ||| c)"
    return f"{str(token)[:40]!r} cannot stand here", operators


_SYSTEMS: Final = Language(
    grammar=_GRAMMAR,
    starts=("system",),
    builder=_SystemBuilder,
    error=ModelError,
    noun="a system",
    hint=_hint,
    most=MAX_CHARACTERS,
)
