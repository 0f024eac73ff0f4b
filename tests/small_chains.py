"""Small random chains, flat formulas for them, and their probabilities by dense linear algebra."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as some
from scipy.linalg import expm

import sateen as st
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
)
from sateen.model.model import Model

REACTIONS = (
    "0 -> A @ 0.8 when A < 3",
    "A -> 0 @ 0.5 * A",
    "A -> B @ 0.7 * A * if(B < 2, 1, 0)",
    "B -> 0 @ 1.1 * B",
    "0 -> B @ 0.3 when B < 2",
    "A + B -> 2 A @ 0.6 * A * B * if(A < 3, 1, 0)",
    "B -> A + B @ 0.4 * B when A < 3",
)
ATOMS = ("A == 0", "A > 1", "B >= 1", "A == B", "A + 2 * B < 3", "B != 2")
TIMES = (0.0, 0.5, 1.0, 1.5, 3.0, 4.5)


@some.composite
def models(draw):
    reactions = draw(some.lists(some.sampled_from(REACTIONS), unique=True, min_size=1, max_size=5))
    return Model.parse(
        "\n".join([f"species A = {draw(some.integers(0, 3))}, B = {draw(some.integers(0, 2))}", *reactions])
    )


@some.composite
def conditions(draw) -> Node:
    atoms = [st.stl(draw(some.sampled_from(ATOMS))).root for _ in range(draw(some.integers(1, 2)))]
    node = atoms[0] if len(atoms) == 1 else draw(some.sampled_from((And, Or)))(tuple(atoms))
    return Not(node) if draw(some.booleans()) else node


@some.composite
def windows(draw, unbounded=True) -> Interval:
    low, high = sorted(draw(some.tuples(some.sampled_from(TIMES), some.sampled_from(TIMES))))
    return Interval(low, math.inf if unbounded and draw(some.integers(0, 4)) == 0 else high)


@some.composite
def operators(draw, unbounded=True) -> Node:
    kind = draw(some.sampled_from((Eventually, Globally, Until, Until)))
    operands = [draw(conditions()) for _ in range(2 if kind is Until else 1)]
    return kind(draw(windows(unbounded)), *operands)


@some.composite
def flat_formulas(draw, unbounded=True) -> Formula:
    """Up to three operators, or conditions at time 0, joined in any way; sometimes read up to an end."""
    parts = [
        draw(operators(unbounded) if draw(some.integers(0, 5)) else conditions())
        for _ in range(draw(some.integers(1, 3)))
    ]
    root = parts[0]
    for part in parts[1:]:
        kind = draw(some.sampled_from((And, Or, Implies, Iff)))
        root = kind((root, part)) if kind in (And, Or) else kind(root, part)
    root = Not(root) if draw(some.booleans()) else root
    return Formula(root, draw(some.sampled_from((None, None, None, 1.0, 2.0))))


def brute_force(model: Model, formula: Formula) -> float:
    """The probability by dense exponentials of the chain of (state, status of every operator), straight from the text.

    Statuses are None, True and False. Every combination is a state, reachable or not.
    """
    states = [(float(a), float(b)) for a in range(4) for b in range(3)]
    operators = [node for node in _nodes(formula.root) if isinstance(node, Eventually | Globally | Until)]
    operators = list(dict.fromkeys(operators))
    generator = np.zeros((len(states), len(states)))
    for index, state in enumerate(states):
        here = dict(zip("AB", state, strict=True))
        for transition in model.transitions:
            if transition.guard is None or transition.guard.evaluate(here):
                then = tuple(here[name] + transition.change.get(name, 0) for name in "AB")
                if then != state and (rate := float(transition.rate.evaluate(here))):
                    generator[index, states.index(then)] += rate
    initial = states.index(tuple(model.initial(model.values()).values()))
    end = math.inf if formula.end is None else formula.end
    bounds = {0.0}
    for operator in operators:
        bounds |= {bound for bound in (operator.window.low, min(operator.window.high, end)) if math.isfinite(bound)}
    bounds = sorted(bounds)
    combinations = list(itertools.product((None, True, False), repeat=len(operators)))
    place = {pair: index for index, pair in enumerate(itertools.product(range(len(states)), combinations))}

    def looked(state: int, statuses, time: float, closing: bool):
        """Statuses after being in a state at, or just after, a time."""
        here = dict(zip("AB", states[state], strict=True))
        found = []
        for operator, status in zip(operators, statuses, strict=True):
            low, high = operator.window.low, min(operator.window.high, end)
            if status is None and low > high:
                status = isinstance(operator, Globally)
            elif status is None:
                opened = time >= low
                if isinstance(operator, Eventually) and opened and _holds(operator.operand, here):
                    status = True
                elif isinstance(operator, Globally) and opened and not _holds(operator.operand, here):
                    status = False
                elif isinstance(operator, Until) and opened and _holds(operator.right, here):
                    status = True
                elif isinstance(operator, Until) and not _holds(operator.left, here):
                    status = False
                if status is None and closing and time >= high:
                    status = isinstance(operator, Globally)
            found.append(status)
        return tuple(found)

    now = np.zeros(len(place))
    now[place[initial, (None,) * len(operators)]] = 1.0
    for start, stop in itertools.zip_longest(bounds, bounds[1:], fillvalue=math.inf):
        at_start = np.zeros(len(place))
        for (state, statuses), index in place.items():
            at_start[place[state, looked(state, statuses, start, True)]] += now[index]
        now = at_start
        if not any(now[index] for (_, statuses), index in place.items() if None in statuses):
            break
        live = [pair for pair, index in place.items() if now[index]]
        moves: dict = {}
        for pair in live:  # grows while it is walked
            state, statuses = pair
            moves[pair] = {}
            for then in np.flatnonzero(generator[state]):
                follow = (int(then), looked(int(then), statuses, start, False))
                moves[pair][follow] = moves[pair].get(follow, 0.0) + generator[state, then]
                if follow not in moves and follow not in live:
                    live.append(follow)
        dense = np.zeros((len(live), len(live)))
        for pair, rates in moves.items():
            for follow, rate in rates.items():
                dense[live.index(pair), live.index(follow)] += rate
        dense -= np.diag(dense.sum(axis=1))
        matrix = expm(dense * min(stop - start, 1.0 if math.isinf(stop) else math.inf))
        for _ in range(40 if math.isinf(stop) else 0):
            matrix = matrix @ matrix
            matrix /= matrix.sum(axis=1, keepdims=True)
        later = np.zeros(len(place))
        later[[place[pair] for pair in live]] = np.array([now[place[pair]] for pair in live]) @ matrix
        now = later
    total = 0.0
    here = dict(zip("AB", states[initial], strict=True))
    for (_, statuses), index in place.items():
        if now[index]:
            verdicts = {
                operator: isinstance(operator, Globally) if status is None else status
                for operator, status in zip(operators, statuses, strict=True)
            }
            total += now[index] * _holds(formula.root, here, verdicts)
    return total


def _nodes(node: Node):
    """The nodes of a flat formula, without those below an operator."""
    yield node
    if not isinstance(node, Eventually | Globally | Until):
        for child in node.children:
            yield from _nodes(child)


def _holds(node: Node, here, verdicts=None) -> bool:
    if verdicts and node in verdicts:
        return verdicts[node]
    parts = [_holds(child, here, verdicts) for child in node.children]
    match node:
        case Truth(value):
            return value
        case Atom(comparison):
            return bool(comparison.evaluate(here))
        case Not():
            return not parts[0]
        case And():
            return all(parts)
        case Or():
            return any(parts)
        case Implies():
            return not parts[0] or parts[1]
        case Iff():
            return parts[0] == parts[1]
    raise TypeError(node)
