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
from typing import Any, Final

import numpy as np

from sateen.core.errors import ExactError
from sateen.engine.chain import BoolArray
from sateen.language.expression import Delayed, Operation, in_order
from sateen.logic.formula import (
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
    Truth,
    Until,
    subformulas,
)

__all__ = ["FALSE", "TRUE", "Moment", "Question", "defined", "holds", "settled", "untils"]

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

    def decided(self, environment: Mapping[str, Any], size: int) -> BoolArray:
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
    waiting, found = [node], dict[Until, None]()
    while waiting:
        current = waiting.pop()
        if isinstance(current, Until):
            found[current] = None
        else:
            waiting.extend(reversed(current.children))
    return tuple(found)


def settled(node: Node, verdict: Callable[[Until], bool | None]) -> Node:
    """The combination after some untils have got a verdict, without what no longer matters."""
    match node:
        case Until():
            decision = verdict(node)
            return node if decision is None else Truth(decision)
        case Not(operand):
            inner = settled(operand, verdict)
            return _negation(inner)
        case And(operands):
            return _joined(And, operands, verdict)
        case Or(operands):
            return _joined(Or, operands, verdict)
        case Implies(left, right):
            return _joined(Or, (Not(left), right), verdict)
        case Iff(left, right):
            first, second = settled(left, verdict), settled(right, verdict)
            if isinstance(first, Truth):
                return second if first.value else _negation(second)
            if isinstance(second, Truth):
                return first if second.value else _negation(first)
            return TRUE if first == second else Iff(first, second)
    return node


def _negation(node: Node) -> Node:
    if isinstance(node, Truth):
        return Truth(not node.value)
    return node.operand if isinstance(node, Not) else Not(node)


def _joined(kind: type[And] | type[Or], operands: tuple[Node, ...], verdict: Callable[[Until], bool | None]) -> Node:
    decisive = Truth(kind is Or)
    rest = dict.fromkeys(settled(operand, verdict) for operand in operands)
    if decisive in rest or any(_negation(node) in rest for node in rest):
        return decisive
    open_ones = tuple(node for node in rest if not isinstance(node, Truth))
    if not open_ones:
        return Truth(kind is And)
    return open_ones[0] if len(open_ones) == 1 else kind(open_ones)


def holds(condition: Node, environment: Mapping[str, Any], size: int) -> BoolArray:
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
        case Implies(left, right):
            return ~holds(left, environment, size) | holds(right, environment, size)
        case Iff(left, right):
            return ~(holds(left, environment, size) ^ holds(right, environment, size))
    raise TypeError(f"{type(condition).__name__} is no condition on a state")


def defined(atom: Atom, environment: Mapping[str, Any], size: int) -> BoolArray:
    """For every state of the environment, whether both sides of a comparison are numbers there."""
    assert isinstance(atom.comparison, Operation)
    sides = (np.broadcast_to(side.evaluate(environment), size) for side in atom.comparison.operands)
    return np.asarray(np.all([~np.isnan(side) for side in sides], axis=0))


def _combination(node: Node, end: float | None) -> Node:
    """The formula with untils as its leaves."""
    match node:
        case Truth():
            return node
        case Atom():
            return _until(node, Interval(0.0, 0.0), TRUE, node, end)
        case Not(operand):
            return Not(_combination(operand, end))
        case And(operands):
            return And(tuple(_combination(operand, end) for operand in operands))
        case Or(operands):
            return Or(tuple(_combination(operand, end) for operand in operands))
        case Implies(left, right):
            return Implies(_combination(left, end), _combination(right, end))
        case Iff(left, right):
            return Iff(_combination(left, end), _combination(right, end))
        case Eventually(window, operand):
            return _until(node, window, TRUE, operand, end)
        case Globally(window, operand):
            return Not(_until(node, window, TRUE, Not(operand), end))
        case Until(window, left, right):
            return _until(node, window, left, right, end)
    raise TypeError(f"{type(node).__name__} is no kind of formula")


def _until(whole: Node, window: Interval, left: Node, right: Node, end: float | None) -> Node:
    """`left U right` with its window cut at `end`: false where nothing is left of the window."""
    for part in (node for side in (left, right) for node in subformulas(side)):
        if isinstance(part, Eventually | Globally | Until):
            raise ExactError(
                f"{part} stands inside {whole}, and exact does not nest F, G and U: each must stand over conditions on "
                f"the present state\n{_INSTEAD}"
            )
        if isinstance(part, Atom) and (
            late := [leaf for leaf in in_order(part.comparison) if isinstance(leaf, Delayed)]
        ):
            raise ExactError(
                f"{part} reads {late[0].text()}, which is past, and exact knows only the present state\n{_INSTEAD}"
            )
    high = window.high if end is None else min(window.high, end)
    return Until(Interval(window.low, high), left, right) if window.low <= high else FALSE
