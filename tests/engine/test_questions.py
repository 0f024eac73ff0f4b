"""How a formula is decided: which are flat, the core form, and the earliest time of a verdict."""

from __future__ import annotations

import math

import pytest

from brute_force import verdict
from sateen.core.errors import FormulaError
from sateen.core.path import Path, Verdict
from sateen.engine.questions import Lasting, Operator, core_form, earliest, flat, state_condition, tick_digits
from sateen.language.expression import Boolean
from sateen.language.grammar import parse_condition
from sateen.logic.formula import And, Atom, Eventually, Formula, Interval, Not, Or, Truth, Until, subformulas
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from strategies import random_pairs, size, written_out

TEMPORAL = (Eventually, Until)
TRUE = Boolean(True)


def condition(text: str) -> Operator:
    return Operator(parse_condition(text))


# Flat formulas.


@pytest.mark.parametrize(
    ("text", "operators", "verdict"),
    [
        ("x > 1", [condition("x > 1")], "s0"),
        ("x <= 1", [condition("not x > 1")], "s0"),
        ("x > 1 & y > 2", [condition("x > 1 and y > 2")], "s0"),
        ("F[1, 2] x > 1", [Operator(parse_condition("x > 1"), None, Interval(1, 2))], "s0"),
        ("G[1, 2] x <= 1", [Operator(parse_condition("x > 1"), None, Interval(1, 2))], "(-s0)"),
        (
            "(x > 1) U[0, inf) (y > 2)",
            [Operator(parse_condition("y > 2"), parse_condition("x > 1"), Interval(0, math.inf))],
            "s0",
        ),
        (
            "x > 1 & F y > 2",
            [condition("x > 1"), Operator(parse_condition("y > 2"), None, Interval())],
            "min(s0, s1)",
        ),
        (
            "F x > 1 -> F y > 2",
            [Operator(parse_condition(text), None, Interval()) for text in ("x > 1", "y > 2")],
            "max((-s0), s1)",
        ),
        ("F x > 1 & F x > 1", [Operator(parse_condition("x > 1"), None, Interval())], "min(s0, s0)"),
        ("true", [], "1.0"),
        ("false | x < x & false", [], "-1.0"),
        ("F[1, 2] true", [Operator(Boolean(True), None, Interval(1, 2))], "s0"),
    ],
)
def test_flat_formulas_become_operators_and_a_verdict_from_their_statuses(
    text: str, operators: list[Operator], verdict: str
) -> None:
    added: list[Operator] = []
    assert flat(stl(text), added) == verdict
    assert added == operators


@pytest.mark.parametrize(
    ("text", "end", "windows"),
    [
        ("F[1, 9] x > 1", 4, [Interval(1, 4)]),
        ("F[1, 3] x > 1", 4, [Interval(1, 3)]),
        ("G x > 1", 4, [Interval(0, 4)]),
        ("F[4, 9] x > 1", 4, [Interval(4, 4)]),
        ("F[5, 9] x > 1", 4, []),
        ("(x > 1) U[5, 9] (x > 2) & F x > 1", 4, [Interval(0, 4)]),
    ],
)
def test_an_end_cuts_the_windows_of_flat_formulas(text: str, end: float, windows: list[Interval]) -> None:
    added: list[Operator] = []
    assert flat(stl(text, end=end), added) is not None
    assert [operator.window for operator in added] == windows


def lasting(held: str, low: float, high: float, end: float = math.inf) -> Lasting:
    return Lasting(parse_condition(held), Interval(low, high), end)


@pytest.mark.parametrize(
    ("text", "operators", "verdict"),
    [
        ("F[1, 2] G[3, 4] x > 1", [Operator(TRUE, None, Interval(1, 2), lasting("x > 1", 3, 4))], "s0"),
        ("G[1, 2] F[3, 4] x > 1", [Operator(TRUE, None, Interval(1, 2), lasting("not x > 1", 3, 4))], "(-s0)"),
        (
            "G (x > 1 -> F[0, 3] y > 2)",
            [Operator(parse_condition("x > 1"), None, Interval(), lasting("not y > 2", 0, 3))],
            "(-s0)",
        ),
        (
            "(x > 1) U[1, 2] (y > 2 & G[0, 3] x > 3)",
            [Operator(parse_condition("y > 2"), parse_condition("x > 1"), Interval(1, 2), lasting("x > 3", 0, 3))],
            "s0",
        ),
        (
            "F[1, 2] (x > 1 | G[3, 4] y > 2)",
            [
                Operator(parse_condition("x > 1"), None, Interval(1, 2)),
                Operator(TRUE, None, Interval(1, 2), lasting("y > 2", 3, 4)),
            ],
            "max(s0, s1)",
        ),
        ("F[0.1, 1] F[0.2, 2] x > 1", [Operator(parse_condition("x > 1"), None, Interval(0.3, 3))], "s0"),
        ("F[1, 2] G[3, 3] x > 1", [Operator(parse_condition("x > 1"), None, Interval(4, 5))], "s0"),
        (
            "F[1, 2] (x > 1 & G[0, 0] y > 2)",
            [Operator(parse_condition("x > 1 and y > 2"), None, Interval(1, 2))],
            "s0",
        ),
    ],
)
def test_formulas_of_what_lasts_become_operators_too(text: str, operators: list[Operator], verdict: str) -> None:
    added: list[Operator] = []
    assert flat(stl(text), added) == verdict
    assert added == operators
    last = [operator for operator in operators if operator.lasting]
    assert (flat(stl(text), [], eventful=True) is None) == bool(last)


@pytest.mark.parametrize(
    ("text", "end", "operators"),
    [
        ("F[1, 9] G x > 1", 4, [Operator(TRUE, None, Interval(1, 4), lasting("x > 1", 0, math.inf, 4))]),
        ("F[1, 2] G[1, 9] x > 1", 4, [Operator(TRUE, None, Interval(1, 2), lasting("x > 1", 1, 9, 4))]),
        ("F[5, 9] G x > 1", 4, []),
        ("F[1, 2] F[1, 9] x > 1", 4, [Operator(parse_condition("x > 1"), None, Interval(2, 4))]),
    ],
)
def test_an_end_cuts_what_lasts(text: str, end: float, operators: list[Operator]) -> None:
    added: list[Operator] = []
    assert flat(stl(text, end=end), added) is not None
    assert added == operators


def test_what_lasts_trivially_beyond_the_end_needs_a_log() -> None:
    assert flat(stl("F[1, 9] G[1, 2] x > 1", end=4), []) is None


@pytest.mark.parametrize(
    "text",
    [
        "F[0, 3] (x > 1 & G[1, 2] x > 1)",
        "F[0, 3] (G[0, 1] x > 1 & G[0, 2] y > 1)",
        "(F x > 1) U (y > 1)",
        "(x > 1) U (y > 1 & F y > 0)",
        "(x > 1) U[0, 3] (G[1, 1] y > 0)",
        "F[0, 1] G[0, 1] F[0, 1] x > 1",
        "F F true",
        "F[12345678.1, 20000000] G[0, 0.123456789012] x > 1",
        "x(t-1) > 1",
        "F[0, 1] x - x(t-1) > 0",
        "F x > 1 & F[0, 1] x(t-1) > 0",
        "!(x > 1 -> G (x > 1 | F G x > 2))",
    ],
)
def test_other_formulas_that_nest_or_delay_are_not_flat(text: str) -> None:
    added: list[Operator] = []
    assert flat(stl(text), added) is None
    assert not added


def test_delays_are_flat_where_delayed_values_can_be_read_but_not_in_what_lasts() -> None:
    added: list[Operator] = []
    assert flat(stl("F[0, 1] x - x(t-1) > 0"), added, delayed=True) == "s0"
    assert added == [Operator(stl("x - x(t-1) > 0").comparisons[0], None, Interval(0, 1))]
    assert flat(stl("F[0, 1] x(t-1) > 0 & F[0, 1] G[0, 1] x > 0"), [], delayed=True) is not None
    for text in ("F[0, 1] G[0, 1] x(t-1) > 0", "F[0, 1] (x(t-1) > 0 & G[0, 1] x > 0)"):
        assert flat(stl(text), [], delayed=True) is None


def test_random_formulas_without_nesting_are_flat_and_those_with_delays_are_not() -> None:
    plain, nested_ones = 0, 0
    for formula, _ in random_pairs(1, 1000):
        root = core_form(formula.root)
        nested = any(
            isinstance(below, TEMPORAL)
            for node in subformulas(root)
            if isinstance(node, TEMPORAL)
            for child in node.children
            for below in subformulas(child)
        )
        is_flat = flat(formula, []) is not None
        if formula.delays or not nested:
            assert is_flat == (not formula.delays), formula
            plain += is_flat
        else:
            nested_ones += is_flat
    assert plain > 50
    assert nested_ones > 10


# The core form.


def test_the_core_form_has_the_verdict_of_the_formula() -> None:
    apart = []
    for formula, path in random_pairs(7, 800):
        core = Formula(core_form(formula.root), formula.end)
        if verdict(core, path) is not verdict(formula, path):
            apart.append((size(formula, path), f"{core}\n{written_out(formula, path)}"))
    assert not apart, min(apart)[1]


def test_the_core_form_has_few_kinds_of_nodes_and_no_truth_beside_others() -> None:
    for formula, _ in random_pairs(8, 1500):
        for node in subformulas(core_form(formula.root)):
            assert isinstance(node, Atom | Not | And | Or | Truth | Eventually | Until)
            if isinstance(node, And | Or):
                assert len(node.operands) > 1
                assert not any(isinstance(child, Truth) for child in node.operands)
            if isinstance(node, Not):
                assert not isinstance(node.operand, Not | Truth)
            if isinstance(node, Atom):
                assert node.comparison.symbol in (">", ">=", "==")  # type: ignore[attr-defined]


def test_the_core_form_of_a_core_form_is_itself() -> None:
    for formula, _ in random_pairs(9, 500):
        core = core_form(formula.root)
        assert core_form(core) == core


def test_a_state_condition_has_no_operators() -> None:
    for formula, path in random_pairs(10, 1500):
        core = core_form(formula.root)
        found = state_condition(core)
        assert (found is None) == any(isinstance(node, TEMPORAL) for node in subformulas(core))
        if found is not None and not formula.delays:
            here = {**path.values, **path.at(0)}
            assert Verdict.of(bool(found.evaluate(here))) is monitor(Formula(core), path)


# The earliest verdict.


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("x > 1", 0),
        ("F[3, 5] x > 1", 3),
        ("G[3, 5] x > 1", 3),
        ("F[3, 5] G[1, 2] x > 1", 5),
        ("F[3, 5] G[2, 4] x > 1", 7),
        ("(x > 1) U[3, 5] (y > 1)", 0),
        ("true U[3, 5] (y > 1)", 3),
        ("F[3, 5] x > 1 & G[7, 8] y > 1", 5),
        ("F[3, 5] x > 1 | F[7, 8] y > 1", 3),
        ("G F x > 1", math.inf),
    ],
)
def test_the_earliest_verdict_follows_from_the_windows(text: str, time: float) -> None:
    assert earliest(stl(text).root) == time


def test_no_path_decides_before_the_earliest_time() -> None:
    """Prefixes of random paths: what is decided on [0, t] has t from the earliest time on, up to rounding of its sum.

    Formulas in which `true` stands below an operator are left out: the monitor knows it without any path.
    """
    looked, decided = 0, 0
    for formula, path in random_pairs(11, 2000):
        first = earliest(formula.root)
        truths = any(isinstance(node, Truth) for node in subformulas(core_form(formula.root)))
        if truths or first == 0 or formula.end is not None:
            continue
        near = [round(first * part, 9) for part in (0.5, 0.9, 1.0) if first < math.inf]
        ends = sorted({0.0, *path.times.tolist(), path.end, *near})
        for end in ends:
            kept = int((path.times <= end).sum())
            prefix = Path(path.times[:kept], path.states[:kept], path.species, end, values=path.values)
            known = monitor(formula, prefix) is not Verdict.UNKNOWN
            assert not known or end >= first - 1e-9, f"{first}\n{written_out(formula, prefix)}"
            looked += 1
            decided += known
    assert looked > 1000
    assert decided > 25


# Ticks.


@pytest.mark.parametrize(
    ("text", "end", "digits"),
    [
        ("x > 0.001", None, 0),
        ("F[0, 10] x > 1", None, 0),
        ("F[0.5, 10] G[0.125, inf) x > 1", None, 3),
        ("F x(t-0.01) > 1", None, 2),
        ("F[1, 2] x > 1", 7.0625, 4),
        ("F[0, 1e-12] x > 1", None, 12),
        ("F[0, 100] x > 1", None, 0),
        ("F[0, 1e20] x > 1", None, 0),
    ],
)
def test_the_digits_of_a_formula_are_those_of_its_bounds_delays_and_end(
    text: str, end: float | None, digits: int
) -> None:
    assert tick_digits(stl(text, end=end)) == digits


def test_too_many_digits_are_refused_with_what_to_do() -> None:
    with pytest.raises(FormulaError, match="13 digits after the point; the engine takes 12") as caught:
        tick_digits(stl("F[0, 0.0000000000001] x > 1"))
    assert "another unit" in str(caught.value)
