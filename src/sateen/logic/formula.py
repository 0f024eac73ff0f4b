"""Formulas of signal temporal logic: an immutable tree, and what can be said of it without a path.

Every kind of node is final. `!`, `&`, `|`, `F` and `U` have their semantics in `monitor.py`, and in the engine; every
other operator says in its `meaning` what it stands for. `Formula` is the public face: a tree and how it is read
(`end`). How it is written is said in `parser.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import ClassVar, Final, TypeAlias

from sateen.core.errors import FormulaError
from sateen.core.text import number_text
from sateen.language.expression import RESERVED, Delayed, Expression, in_order

_WORDS: Final = {"F", "G", "U", "t", "eventually", "globally", "always", "until", "implies", "iff"}
FORMULA_RESERVED: Final = RESERVED | _WORDS

# How tightly each kind binds, loosest first.
_IFF, _IMPLIES, _OR, _AND, _UNTIL, _PREFIX, _ATOM = range(7)


@dataclass(frozen=True, slots=True)
class Interval:
    """The closed window [low, high] of an operator, 0 <= low <= high; high may be infinite."""

    low: float = 0.0
    high: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high or math.isinf(self.low):
            raise ValueError(f"a window needs 0 <= low <= high with a finite low, not [{self.low}, {self.high}]")

    def __str__(self) -> str:
        if self == ALWAYS:
            return ""
        closing = ")" if math.isinf(self.high) else "]"
        return f"[{number_text(self.low)}, {number_text(self.high)}{closing}"


ALWAYS: Final = Interval()


@dataclass(frozen=True, slots=True)
class Node:
    """A subformula."""

    binding: ClassVar[int] = _ATOM
    parts: ClassVar[tuple[str, ...]] = ()  # the names of the fields that hold a subformula each

    @property
    def children(self) -> tuple[Node, ...]:
        """The subformulas directly below, from left to right."""
        return tuple(getattr(self, name) for name in self.parts)

    @property
    def meaning(self) -> Node:
        """What a derived operator stands for; any other node stands for itself."""
        return self

    @property
    def negation(self) -> Node:
        """The opposite, without a double negation."""
        return Not(self)

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """The same kind of node, with every child changed."""
        return replace(self, **{name: change(getattr(self, name)) for name in self.parts})

    @property
    def core(self) -> Node:
        """The same formula without derived operators."""
        meaning = self.meaning
        return self.mapped(lambda child: child.core) if meaning is self else meaning.core

    def _inside(self, operand: Node, least: int) -> str:
        """The text of an operand, in brackets if it binds more loosely than `least`."""
        return str(operand) if operand.binding >= least else f"({operand})"


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """`true` or `false`."""

    value: bool

    @property
    def negation(self) -> Node:
        return Truth(not self.value)

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class Atom(Node):
    """A comparison of two arithmetic expressions, true or false at every instant."""

    comparison: Expression

    def __str__(self) -> str:
        return self.comparison.text(FORMULA_RESERVED)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`!φ`."""

    operand: Node
    binding: ClassVar[int] = _PREFIX
    parts: ClassVar[tuple[str, ...]] = ("operand",)

    @property
    def negation(self) -> Node:
        return self.operand

    def __str__(self) -> str:
        return f"!({self.operand})" if isinstance(self.operand, Atom) else f"!{self._inside(self.operand, _PREFIX)}"


@dataclass(frozen=True, slots=True)
class _Joined(Node):
    """Two or more operands with one sign between them; abstract."""

    operands: tuple[Node, ...]
    sign: ClassVar[str]

    @classmethod
    def of(cls, operands: Iterable[Node]) -> Node:
        """The operands joined, without `true` and `false`: their truth is known even where nothing else is."""
        parts, neutral = tuple(operands), Truth(cls is And)
        if neutral.negation in parts:
            return neutral.negation
        kept = tuple(part for part in parts if not isinstance(part, Truth))
        if len(kept) > 1:
            return cls(kept)
        return kept[0] if kept else neutral

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        return replace(self, operands=tuple(map(change, self.operands)))

    def __str__(self) -> str:
        return f" {self.sign} ".join(self._inside(each, self.binding + 1) for each in self.operands)


@dataclass(frozen=True, slots=True)
class And(_Joined):
    """`φ & ψ & …`: two or more."""

    binding: ClassVar[int] = _AND
    sign: ClassVar[str] = "&"


@dataclass(frozen=True, slots=True)
class Or(_Joined):
    """`φ | ψ | …`: two or more."""

    binding: ClassVar[int] = _OR
    sign: ClassVar[str] = "|"


@dataclass(frozen=True, slots=True)
class _Pair(Node):
    """A left and a right operand; abstract."""

    left: Node
    right: Node
    parts: ClassVar[tuple[str, ...]] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Implies(_Pair):
    """`φ -> ψ`, right-associative."""

    binding: ClassVar[int] = _IMPLIES

    @property
    def meaning(self) -> Node:
        return Or((Not(self.left), self.right))

    def __str__(self) -> str:
        return f"{self._inside(self.left, _IMPLIES + 1)} -> {self._inside(self.right, _IMPLIES)}"


@dataclass(frozen=True, slots=True)
class Iff(_Pair):
    """`φ <-> ψ`, left-associative."""

    binding: ClassVar[int] = _IFF

    @property
    def meaning(self) -> Node:
        return Or((And((self.left, self.right)), And((Not(self.left), Not(self.right)))))

    def __str__(self) -> str:
        return f"{self._inside(self.left, _IFF)} <-> {self._inside(self.right, _IFF + 1)}"


@dataclass(frozen=True, slots=True)
class _Windowed(Node):
    """An operator in front of its operand; abstract."""

    window: Interval
    operand: Node
    binding: ClassVar[int] = _PREFIX
    parts: ClassVar[tuple[str, ...]] = ("operand",)
    sign: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.sign}{self.window} {self._inside(self.operand, _PREFIX)}"


@dataclass(frozen=True, slots=True)
class Eventually(_Windowed):
    """`F[a,b] φ`: φ at some time of the window."""

    sign: ClassVar[str] = "F"


@dataclass(frozen=True, slots=True)
class Globally(_Windowed):
    """`G[a,b] φ`: φ at every time of the window."""

    sign: ClassVar[str] = "G"

    @property
    def meaning(self) -> Node:
        return Not(Eventually(self.window, Not(self.operand)))


@dataclass(frozen=True, slots=True)
class Until(Node):
    """`φ U[a,b] ψ`: ψ at some t' of the window, and φ at every moment of [t, t')."""

    window: Interval
    left: Node
    right: Node
    binding: ClassVar[int] = _UNTIL
    parts: ClassVar[tuple[str, ...]] = ("left", "right")

    def __str__(self) -> str:
        # Atoms need no brackets next to U, but readers do.
        left, right = (str(side) if isinstance(side, Truth) else f"({side})" for side in self.children)
        return f"{left} U{self.window} {right}"


Timed: TypeAlias = Eventually | Globally | Until


def delays_in(expression: Expression) -> list[Delayed]:
    """The delayed values that an expression reads, each once, in order."""
    return list(dict.fromkeys(leaf for leaf in in_order(expression) if isinstance(leaf, Delayed)))


def subformulas(node: Node) -> Iterator[Node]:
    """Every node, parents before children, from left to right; without recursion."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


@dataclass(frozen=True, slots=True)
class Formula:
    """A property of paths, true or false at time 0.

    `end` is None for the usual, infinite reading; with `end=T` the formula is read on the path cut at time T.

    >>> from sateen.logic.parser import stl
    >>> formula = stl("(I > 0) U[100, 120] (I == 0)")
    >>> formula.horizon, formula.species
    (120.0, ('I',))
    >>> print(~formula & stl("F[0, 5] I > 50"))
    !((I > 0) U[100, 120] (I == 0)) & F[0, 5] I > 50
    """

    root: Node
    end: float | None = None

    @property
    def horizon(self) -> float:
        """The time up to which a path decides it: at most `end`, infinite with an unbounded operator."""
        reach = _reach(self.root)
        horizon = float(reach)
        if Decimal(repr(horizon)) < reach:
            horizon = math.nextafter(horizon, math.inf)
        return horizon if self.end is None else min(horizon, self.end)

    @property
    def comparisons(self) -> list[Expression]:
        """What its atoms compare, in order."""
        return [node.comparison for node in subformulas(self.root) if isinstance(node, Atom)]

    @property
    def species(self) -> tuple[str, ...]:
        """The names its atoms read, each once, in order; a model or a path says which of them are parameters."""
        return tuple(dict.fromkeys(name for comparison in self.comparisons for name in comparison.names))

    @property
    def delays(self) -> tuple[Delayed, ...]:
        """The delayed values its atoms read, each once, in order."""
        return tuple(dict.fromkeys(leaf for comparison in self.comparisons for leaf in delays_in(comparison)))

    @property
    def measures(self) -> list[float]:
        """All times in it: the finite bounds of its windows, its delays, and its end."""
        windows = [node.window for node in subformulas(self.root) if isinstance(node, Timed)]
        bounds = [bound for window in windows for bound in (window.low, window.high) if math.isfinite(bound)]
        return bounds + [leaf.lag for leaf in self.delays] + ([] if self.end is None else [self.end])

    def __invert__(self) -> Formula:
        return Formula(Not(self.root), self.end)

    def __and__(self, other: Formula) -> Formula:
        return self._joined(other, And)

    def __or__(self, other: Formula) -> Formula:
        return self._joined(other, Or)

    def _joined(self, other: Formula, kind: type[And] | type[Or]) -> Formula:
        if not isinstance(other, Formula):
            return NotImplemented
        if self.end != other.end:
            message = f"one formula is read up to end={self.end}, the other up to end={other.end}"
            raise FormulaError(message, remedy="give both the same end= before joining them")
        operands = [each.root.operands if isinstance(each.root, kind) else (each.root,) for each in (self, other)]
        return Formula(kind(operands[0] + operands[1]), self.end)

    def __str__(self) -> str:
        return str(self.root)

    def __repr__(self) -> str:
        return f"stl({str(self)!r}{'' if self.end is None else f', end={number_text(self.end)}'})"

    def _repr_html_(self) -> str:
        from html import escape

        reading = "" if self.end is None else f" <small>read up to {number_text(self.end)}</small>"
        return f"<code>{escape(str(self))}</code>{reading}"


def _reach(node: Node) -> Decimal:
    """The sum of the bounds along the longest branch, as decimals: 0.7 and 0.1 reach 0.8."""
    below = max((_reach(child) for child in node.children), default=Decimal(0))
    if not isinstance(node, Timed):
        return below
    with localcontext(prec=1000):
        return below + Decimal(repr(float(node.window.high)))
