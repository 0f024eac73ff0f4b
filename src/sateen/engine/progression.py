"""What remains to be decided of a formula, while a path unfolds.

Every question that `exact` can answer is a boolean combination of untils `φ U[a,b] ψ` over conditions of the present
state, asked at time 0: F φ is `true U φ`, G φ is `!F !φ`, and a condition at time 0 is `F[0,0]` of itself. Such an
until is decided by the state alone, and by where the time stands to its window:

    before a       a state without φ makes it false
    from a to b    a state with ψ makes it true; otherwise one without φ makes it false
    at b           what is still undecided becomes false

So what is left of the formula, with the decided untils replaced by their verdicts, is all that need be remembered of
the past. This is formula progression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import ExactError
from sateen.engine.chain import Environment
from sateen.engine.events import BoolArray
from sateen.language.expression import Operation
from sateen.logic.formula import (
    And,
    Atom,
    Eventually,
    Formula,
    Iff,
    Interval,
    Node,
    Not,
    Or,
    Timed,
    Truth,
    Until,
    delays_in,
    subformulas,
)

TRUE: Final = Truth(True)
FALSE: Final = Truth(False)
_INSTEAD: Final = "  simulate instead: runs decide every formula"


@dataclass(frozen=True, slots=True)
class Moment:
    """The instant `time`, or the open span that follows it up to the next instant that matters."""

    time: float
    instant: bool

    def verdict(self, until: Until, left: bool, right: bool) -> bool | None:
        """What the moment decides of an until that was undecided before, in a state where its sides hold or not."""
        if self.time >= until.window.low:
            if right:
                return True
            if self.instant and self.time >= until.window.high:
                return False
        return None if left else False


@dataclass(frozen=True, slots=True)
class Question:
    """A formula as a combination of untils, whose windows are cut at `end` if it has one."""

    root: Node

    @staticmethod
    def of(formula: Formula) -> Question:
        """The question that a formula asks; ExactError, which names the part, if it is none of these."""
        _refuse_others(formula.root)
        return Question(settled(_combination(formula.root, formula.end), lambda until: None))

    @property
    def conditions(self) -> tuple[Node, ...]:
        """The conditions on states that decide it, each once."""
        return tuple(dict.fromkeys(side for until in untils(self.root) for side in (until.left, until.right)))

    @property
    def instants(self) -> tuple[float, ...]:
        """Time 0 and every later bound of a window, in order."""
        bounds = {bound for until in untils(self.root) for bound in (until.window.low, until.window.high)}
        return tuple(sorted({0.0, *(bound for bound in bounds if math.isfinite(bound))}))

    @property
    def last(self) -> float:
        """The time after which nothing is asked."""
        return max((until.window.high for until in untils(self.root)), default=0.0)

    def decided(self, environment: Environment, size: int) -> BoolArray:
        """For every state of the environment, whether entering it decides all untils, whenever that is."""
        decided = np.ones(size, dtype=np.bool_)
        for until in untils(self.root):
            fails = ~holds(until.left, environment, size)
            if until.window.low > 0:
                decided &= fails
            elif until.window.high > 0:
                decided &= fails | holds(until.right, environment, size)
        return decided

    @staticmethod
    def progress(rest: Node, moment: Moment, truth: Mapping[Node, bool]) -> Node:
        """What is left of `rest` after a moment in a state where the conditions are as in `truth`."""
        return settled(rest, lambda until: moment.verdict(until, truth[until.left], truth[until.right]))


def untils(node: Node) -> tuple[Until, ...]:
    """The untils of a combination, each once, from left to right."""
    return tuple(dict.fromkeys(part for part in subformulas(node) if isinstance(part, Until)))


def settled(node: Node, verdict: Callable[[Until], bool | None]) -> Node:
    """The combination after some untils have got a verdict, without what no longer matters."""
    match node:
        case Until():
            decision = verdict(node)
            return node if decision is None else Truth(decision)
        case Not(operand):
            return settled(operand, verdict).negation
        case And(operands) | Or(operands):
            rest = dict.fromkeys(settled(operand, verdict) for operand in operands)
            if any(part.negation in rest for part in rest):
                return Truth(isinstance(node, Or))
            return type(node).of(rest)
        case Iff(left, right):  # its meaning has each side twice, so a chain of them would double at every link
            first, second = settled(left, verdict), settled(right, verdict)
            if isinstance(first, Truth):
                return second if first.value else second.negation
            if isinstance(second, Truth):
                return first if second.value else first.negation
            return TRUE if first == second else Iff(first, second)
    return node


def holds(condition: Node, environment: Environment, size: int) -> BoolArray:
    """For every state of the environment, whether it satisfies a condition."""
    match condition:
        case Truth(value):
            return np.full(size, value)
        case Atom(comparison):
            return np.broadcast_to(np.asarray(comparison.evaluate(environment), dtype=np.bool_), size)
        case Not(operand):
            return ~holds(operand, environment, size)
        case And(operands):
            return np.asarray(np.all([holds(operand, environment, size) for operand in operands], axis=0))
        case Or(operands):
            return np.asarray(np.any([holds(operand, environment, size) for operand in operands], axis=0))
        case Iff(left, right):
            return ~(holds(left, environment, size) ^ holds(right, environment, size))
    if condition.meaning is condition:
        raise TypeError(f"{type(condition).__name__} is no condition on a state")
    return holds(condition.meaning, environment, size)


def defined(atom: Atom, environment: Environment, size: int) -> BoolArray:
    """For every state of the environment, whether both sides of a comparison are numbers there."""
    assert isinstance(atom.comparison, Operation)
    sides = (np.broadcast_to(side.evaluate(environment), size) for side in atom.comparison.operands)
    return np.asarray(np.all([~np.isnan(side) for side in sides], axis=0))


def _combination(node: Node, end: float | None) -> Node:
    """The formula with untils as its leaves, their windows cut at `end`: false where nothing is left of one."""
    match node:
        case Truth():
            return node
        case Atom():
            window, left, right = Interval(0.0, 0.0), TRUE, node
        case Eventually(window, right):
            left = TRUE
        case Until(window, left, right):
            pass
        case Not() | And() | Or() | Iff():
            return node.mapped(lambda child: _combination(child, end))
        case _:
            return _combination(node.meaning, end)
    high = window.high if end is None else min(window.high, end)
    return Until(Interval(window.low, high), left, right) if window.low <= high else FALSE


def _refuse_others(root: Node) -> None:
    """Raise if operators of time are nested, or an atom reads the past."""
    for whole in subformulas(root):
        inner = (part for child in whole.children for part in subformulas(child) if isinstance(part, Timed))
        if isinstance(whole, Timed) and (part := next(inner, None)):
            raise ExactError(
                f"{part} stands inside {whole}, and exact does not nest F, G and U: each must stand over conditions on "
                f"the present state\n{_INSTEAD}"
            )
        if isinstance(whole, Atom) and (late := delays_in(whole.comparison)):
            raise ExactError(
                f"{whole} reads {late[0].text()}, which is past, and exact knows only the present state\n{_INSTEAD}"
            )
