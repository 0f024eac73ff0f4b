"""The monitor against the definition: 10,000 random formulas and paths, not one verdict apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from brute_force import Oracle, verdict, verdict_at
from sateen.core.path import Path, Verdict
from sateen.language.expression import Delayed, in_order
from sateen.logic.formula import (
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Iff,
    Implies,
    Node,
    Not,
    Or,
    Truth,
    Until,
    subformulas,
)
from sateen.logic.monitor import Explanation, Span, explain, monitor
from sateen.logic.parser import stl
from strategies import random_pairs, size, written_out

PAIRS = 1_000
TEMPORAL = (Eventually, Globally, Until)
FEATURES = (
    "delay",
    "tied jumps",
    "single instant",
    "unbounded",
    "finite reading",
    "absorbed",
    "short path",
    "irregular times",
    "until in until",
    "until from a > 0",
)


@pytest.mark.parametrize("seed", range(10))
def test_the_monitor_says_what_the_definition_says(seed: int) -> None:
    apart = []
    for formula, path in random_pairs(seed, PAIRS):
        ours, expected = monitor(formula, path), Verdict.of(verdict(formula, path))
        if ours is not expected:
            apart.append((size(formula, path), f"monitor: {ours}, definition: {expected}", formula, path))
    if apart:
        _, difference, formula, path = min(apart, key=lambda each: each[0])
        pytest.fail(
            f"{len(apart)} of {PAIRS} verdicts apart, the smallest:\n{difference}\n{written_out(formula, path)}"
        )


@pytest.mark.parametrize("seed", range(100, 102))
def test_explanations_say_of_every_subformula_when_it_holds(seed: int) -> None:
    apart = []
    for formula, path in random_pairs(seed, 350):
        found = list(_mistakes(formula, path, explain(formula, path)))
        if found:
            apart.append((size(formula, path), found[0], formula, path))
    if apart:
        _, difference, formula, path = min(apart, key=lambda each: each[0])
        pytest.fail(f"{len(apart)} of 350 explained wrongly, the smallest:\n{difference}\n{written_out(formula, path)}")


def _mistakes(formula: Formula, path: Path, explanation: Explanation) -> Iterable[str]:
    """Where an explanation differs from the definition: at critical instants, between them and beyond."""
    oracle = Oracle(formula, path)
    if [row.node for row in explanation.rows] != list(subformulas(formula.root)):
        yield "the rows are not the subformulas, parents first"
    for row in explanation.rows:
        critical = oracle.critical_instants(row.node)
        holds, unknown = (_exact_spans(spans, critical) for spans in (row.holds, row.unknown))
        if holds is None or unknown is None:
            yield f"{row.node}: {row.holds} and {row.unknown} begin or stop where nothing changes"
            continue
        beyond = critical[-1] + 1
        for instant in (*critical, *((one + other) / 2 for one, other in pairwise(critical)), beyond):
            shown = True if _contains(holds, instant) else None if _contains(unknown, instant) else False
            expected = oracle.verdict(row.node, instant)
            if shown is not expected or (_contains(holds, instant) and _contains(unknown, instant)):
                yield f"{row.node} at {instant}: {row.holds} and {row.unknown}, definition: {Verdict.of(expected)}"


ExactSpan = tuple[Fraction | float, Fraction | float, bool, bool]


def _exact_spans(spans: Iterable[Span], critical: list[Fraction]) -> list[ExactSpan] | None:
    """Spans with the instants that their floats stand for; None if one stands for no critical instant."""
    exact = []
    for span in spans:
        start, stop = _nearest(span.start, critical), _nearest(span.stop, critical)
        if start is None or stop is None:
            return None
        exact.append((start, stop, span.closed_start, span.closed_stop))
    return exact


def _nearest(time: float, critical: list[Fraction]) -> Fraction | float | None:
    if math.isinf(time):
        return time
    nearest = min(critical, key=lambda instant: abs(instant - Fraction(time)))
    return nearest if math.isclose(time, float(nearest), rel_tol=1e-15, abs_tol=1e-15) else None


def _contains(spans: list[ExactSpan], time: Fraction) -> bool:
    return any(
        (start <= time if closed_start else start < time) and (time <= stop if closed_stop else time < stop)
        for start, stop, closed_start, closed_stop in spans
    )


def test_a_single_instant_has_the_probability_it_should() -> None:
    """With a jump at Q, the until holds on [Q-3, Q-2] and the rest from Q-2 on: together at Q-2 alone.

    So the formula is true if and only if 0 <= Q-2 <= 4, and with Q ~ Exp(0.2) that is exp(-0.4) - exp(-1.2) = 0.369.
    """
    from scipy.stats import binomtest

    formula = stl("F[0, 4] (((x == 0) U[2, 3] (x == 1)) & F[0, 2] x == 1)")
    jumps = np.random.default_rng(7).exponential(1 / 0.2, 5_000).tolist()
    verdicts = [monitor(formula, Path([0, jump], [0, 1], "x", end=jump + 10)) for jump in jumps]
    assert verdicts == [Verdict.of(2 <= jump <= 6) for jump in jumps]
    true = verdicts.count(Verdict.TRUE)
    assert binomtest(true, len(jumps), math.exp(-0.4) - math.exp(-1.2)).pvalue > 1e-6


# The random pairs tell right readings from wrong ones.


def test_random_pairs_are_of_every_kind() -> None:
    kinds: Counter[str] = Counter()
    pairs = 5_000
    for formula, path in random_pairs(0, pairs):
        kinds.update(_kinds(formula, path))
    nodes = (Truth, Atom, Not, And, Or, Implies, Iff, Eventually, Globally, Until)
    rare = {kind: kinds[kind] for kind in (*(node.__name__ for node in nodes), *FEATURES) if kinds[kind] < 0.05 * pairs}
    assert not rare


def _kinds(formula: Formula, path: Path) -> set[str]:
    nodes = list(subformulas(formula.root))
    windows = [node.window for node in nodes if isinstance(node, TEMPORAL)]
    leaves = (leaf for node in nodes if isinstance(node, Atom) for leaf in in_order(node.comparison))
    times = path.times.tolist()
    features = {
        "delay": any(isinstance(leaf, Delayed) for leaf in leaves),
        "tied jumps": len(set(times)) < len(times),
        "single instant": any(window.low == window.high for window in windows),
        "unbounded": any(math.isinf(window.high) for window in windows),
        "finite reading": formula.end is not None,
        "absorbed": path.absorbed,
        "short path": not path.absorbed and path.end < formula.horizon,
        "irregular times": any(round(time, 9) != time for time in times),
        "until in until": any(
            _until_below(child) for node in nodes if isinstance(node, Until) for child in node.children
        ),
        "until from a > 0": any(isinstance(node, Until) and node.window.low > 0 for node in nodes),
    }
    return {type(node).__name__ for node in nodes} | {name for name, present in features.items() if present}


def _until_below(node: Node) -> bool:
    return any(isinstance(each, Until) for each in subformulas(node))


def test_random_pairs_tell_wrong_readings_from_the_right_one() -> None:
    """One verdict in twenty hangs on how until treats its witness, one in a thousand on the equality of decimals."""
    pairs, verdicts, closed_until, binary = 2_500, Counter[bool | None](), 0, 0
    for formula, path in random_pairs(0, pairs):
        right = verdict(formula, path)
        verdicts[right] += 1
        if _until_below(formula.root):
            closed_until += verdict(formula, path, closed_until=True) is not right
        binary += verdict(formula, path, read=Fraction) is not right
    assert min(verdicts[each] for each in (True, False, None)) > 0.1 * pairs, verdicts
    assert closed_until > 0.05 * pairs
    assert binary > 0.001 * pairs


# The oracle itself.


def test_truth_is_constant_between_critical_instants() -> None:
    """At a third of the way as in the middle, which is what the brute force relies on."""
    for formula, path in random_pairs(200, 300):
        oracle = Oracle(formula, path, instants=[Fraction(1, 3)])
        for node in subformulas(formula.root):
            critical = oracle.critical_instants(node)
            for one, other in pairwise([*critical, critical[-1] + 7]):
                third, middle = one + (other - one) / 3, (one + other) / 2
                assert oracle.verdict(node, third) is oracle.verdict(node, middle), written_out(formula, path)


def test_the_oracle_keeps_the_laws_of_the_operators() -> None:
    """F is true U, G is not F not, and implication is what it abbreviates."""
    for formula, path in random_pairs(201, 500):
        for node in subformulas(formula.root):
            match node:
                case Eventually(window, operand):
                    same: Node = Until(window, Truth(True), operand)
                case Globally(window, operand):
                    same = Not(Eventually(window, Not(operand)))
                case Implies(left, right):
                    same = Or((Not(left), right))
                case Iff(left, right):
                    same = And((Implies(left, right), Implies(right, left)))
                case _:
                    continue
            one, other = Formula(node, formula.end), Formula(same, formula.end)
            assert verdict(one, path) is verdict(other, path), written_out(one, path)


def test_the_oracle_reads_the_definition_of_until() -> None:
    path = Path([0, 5], [0, 1], "x", end=20)
    formula = stl("(x == 0) U[2, 3] (x == 1)")
    expected = {
        Fraction(19, 10): False,
        Fraction(2): True,
        Fraction(5, 2): True,
        Fraction(3): True,
        Fraction(31, 10): False,
    }
    assert {time: verdict_at(formula, path, time) for time in expected} == expected


def test_decimals_are_equal_where_floats_are_not() -> None:
    assert 0.1 + 0.2 != 0.3
    path = Path([0, 0.3, 0.3000000001], [0, 1, 0], "x", end=1)
    formula = stl("F[0.1, 0.1] F[0.2, 0.2] x == 1")
    assert verdict(formula, path) is True
    assert monitor(formula, path) is Verdict.TRUE
    assert verdict(stl("G[0.1, 0.1] !F[0, 0.2] x == 1"), path) is False
