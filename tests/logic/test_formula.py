"""Formulas: horizon, names, joining, and equality of immutable trees."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sateen.core.errors import FormulaError
from sateen.language.expression import Delayed, Name, Number, Operation
from sateen.logic.formula import (
    ALWAYS,
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Implies,
    Interval,
    Node,
    Not,
    Or,
    Truth,
    Until,
    subformulas,
)
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from strategies import formulas, nodes, random_pairs, windows


@pytest.mark.parametrize(
    ("text", "horizon"),
    [
        ("x > 0", 0),
        ("true", 0),
        ("x - x(t-5) > 0", 0),
        ("F[0, 5] x > 0", 5),
        ("G[2, 5] x > 0", 5),
        ("F[3, 3] x > 0", 3),
        ("F[0, 5] G[0, 7] x > 0", 12),
        ("(x > 0) U[100, 120] (x == 0)", 120),
        ("(F[0, 7] x > 0) U[0, 5] (x == 0)", 12),
        ("(x > 0) U[0, 5] (G[1, 9] x == 0)", 14),
        ("F[0, 5] x > 0 & G[0, 8] x > 0", 8),
        ("F[0, 5] x > 0 | x > 0", 5),
        ("F[0, 5] x > 0 -> F[0, 6] x > 0", 6),
        ("F[0, 9] x > 0 <-> F[0, 6] x > 0", 9),
        ("!F[0, 5] x > 0", 5),
        ("F x > 0", math.inf),
        ("F[0, 5] G x > 0", math.inf),
        ("(x > 0) U[4, inf) (x == 0)", math.inf),
        ("F[0, 0] x > 0", 0),
    ],
)
def test_the_horizon_is_the_sum_of_the_bounds_along_the_longest_branch(text: str, horizon: float) -> None:
    assert stl(text).horizon == horizon


@pytest.mark.parametrize(("end", "horizon"), [(3, 3), (12, 12), (100, 12), (0, 0)])
def test_the_horizon_is_at_most_the_end(end: float, horizon: float) -> None:
    assert stl("F[0, 5] G[0, 7] x > 0", end=end).horizon == horizon
    assert stl("G x > 0", end=end).horizon == end


@given(nodes(), windows())
def test_the_horizon_grows_with_every_window(node: Node, window: Interval) -> None:
    below = Formula(node).horizon
    assert Formula(Not(node)).horizon == below
    for larger in (Eventually(window, node), Globally(window, node), Until(window, node, stl("x > 0").root)):
        horizon = Formula(larger).horizon
        assert math.isclose(min(horizon, 1e300), min(window.high + below, 1e300), rel_tol=1e-12)


def test_species_are_the_names_of_all_atoms_once_and_in_order() -> None:
    assert stl("F y > x & G x(t-1) + z > k | y == if(w > 0, 1, 2)").species == ("y", "x", "z", "k", "w")
    assert stl("true").species == ()


def test_delays_are_listed_once_and_in_order() -> None:
    assert stl("x(t-2) > y(t-1) & F x(t-2) > x(t-1)").delays == (
        Delayed("x", 2.0),
        Delayed("y", 1.0),
        Delayed("x", 1.0),
    )
    assert stl("x > 0").delays == ()


# Joining.


def test_formulas_join_with_the_operators_of_python() -> None:
    one, other = stl("F[0, 5] x > 0"), stl("y > 0")
    assert ~one == stl("!F[0, 5] x > 0")
    assert one & other == stl("F[0, 5] x > 0 & y > 0")
    assert one | other == stl("F[0, 5] x > 0 | y > 0")
    assert one & other & one == stl("F[0, 5] x > 0 & y > 0 & F[0, 5] x > 0")
    assert (one | other) & one == stl("(F[0, 5] x > 0 | y > 0) & F[0, 5] x > 0")
    assert one & (other | one) == stl("F[0, 5] x > 0 & (y > 0 | F[0, 5] x > 0)")
    assert str(~one & other) == "!F[0, 5] x > 0 & y > 0"


def test_joining_keeps_the_end() -> None:
    one, other = stl("F x > 0", end=10), stl("G y > 0", end=10)
    assert (~one).end == 10
    assert (one & other).end == 10
    assert (one | other) == stl("F x > 0 | G y > 0", end=10)


@pytest.mark.parametrize(("left", "right"), [(10, None), (None, 10), (10, 11)])
def test_formulas_with_different_ends_do_not_join(left: float | None, right: float | None) -> None:
    one, other = stl("F x > 0", end=left), stl("G y > 0", end=right)
    for join in (lambda: one & other, lambda: one | other):
        with pytest.raises(FormulaError, match="one formula is read up to end=") as raised:
            join()
        assert "the same end=" in raised.value.remedy


@pytest.mark.parametrize("stranger", ["x > 0", True, None, 3])
def test_a_formula_joins_only_formulas(stranger: Any) -> None:
    with pytest.raises(TypeError):
        stl("x > 0") & stranger
    with pytest.raises(TypeError):
        stranger | stl("x > 0")


@given(formulas(), formulas())
def test_what_joining_makes_reads_back(one: Formula, other: Formula) -> None:
    for joined in (one & other, one | other, ~one):
        assert stl(str(joined)) == joined


# Equality and shape.


@given(formulas())
def test_equal_formulas_have_equal_hashes(formula: Formula) -> None:
    again = stl(str(formula))
    assert again == formula
    assert hash(again) == hash(formula)
    assert len({again, formula}) == 1


def test_formulas_differ_by_tree_and_by_end() -> None:
    formula = stl("F[0, 5] x > 0")
    assert formula != stl("F[0, 6] x > 0")
    assert formula != stl("G[0, 5] x > 0")
    assert formula != stl("F[0, 5] x > 0", end=5)
    assert formula != stl("F[0, 5] x >= 0")
    assert stl("x > 0 & y > 0") != stl("y > 0 & x > 0")


def test_formulas_are_frozen() -> None:
    formula = stl("F[0, 5] x > 0")
    with pytest.raises(FrozenInstanceError):
        formula.end = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        formula.root.window = ALWAYS  # type: ignore[misc, union-attr, attr-defined]
    with pytest.raises(FrozenInstanceError):
        ALWAYS.low = 3  # type: ignore[misc]


def test_a_formula_shows_how_to_make_it() -> None:
    assert repr(stl("(I>0) U[100,120] (I==0)")) == "stl('(I > 0) U[100, 120] (I == 0)')"
    assert repr(stl("F x > 0.5", end=10)) == "stl('F x > 0.5', end=10)"
    assert str(stl("F x > 0.5", end=10)) == "F x > 0.5"


def test_a_formula_shows_itself_in_a_notebook_without_becoming_html() -> None:
    shown = stl("x < y & `<b>` > 0", end=10)._repr_html_()
    assert "<b>" not in shown
    assert "x &lt; y" in shown
    assert "read up to 10" in shown


@given(nodes())
def test_subformulas_come_parents_first_and_from_left_to_right(node: Node) -> None:
    def recursively(each: Node) -> Any:
        yield each
        for child in each.children:
            yield from recursively(child)

    assert list(subformulas(node)) == list(recursively(node))


def test_a_deep_formula_is_walked_without_recursion() -> None:
    node: Node = Atom(Operation(">", (Name("x"), Number(0.0))))
    for _ in range(50_000):
        node = Not(node)
    assert sum(1 for _ in subformulas(node)) == 50_001
    assert Formula(node).species == ("x",)


# Windows.


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 5), (5, 2), (math.inf, math.inf), (math.nan, 5), (0, math.nan), (-math.inf, 5), (0, -1)]
)
def test_a_window_begins_at_a_finite_time_from_0_on_and_ends_no_earlier(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="a window needs 0 <= low <= high"):
        Interval(low, high)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Interval(), ""),
        (Interval(0, math.inf), ""),
        (Interval(0, 5), "[0, 5]"),
        (Interval(2.5, 2.5), "[2.5, 2.5]"),
        (Interval(3, math.inf), "[3, inf)"),
    ],
)
def test_windows_print_as_they_are_written(window: Interval, text: str) -> None:
    assert str(window) == text


def test_brackets_stand_where_they_must_and_beside_until_for_the_reader() -> None:
    x, y = stl("x > 0").root, stl("y > 0").root
    assert str(Eventually(ALWAYS, And((x, y)))) == "F (x > 0 & y > 0)"
    assert str(Eventually(ALWAYS, Until(ALWAYS, x, y))) == "F ((x > 0) U (y > 0))"
    assert str(Not(x)) == "!(x > 0)"
    assert str(Not(Or((x, y)))) == "!(x > 0 | y > 0)"
    assert str(And((Or((x, y)), x))) == "(x > 0 | y > 0) & x > 0"
    assert str(Implies(Implies(x, y), x)) == "(x > 0 -> y > 0) -> x > 0"
    assert str(And((And((x, y)), x))) == "(x > 0 & y > 0) & x > 0"


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_windows_keep_every_digit(low: float, high: float) -> None:
    low, high = sorted((low, high))
    assert stl(f"F{Interval(low, high)} x > 0").root.window == Interval(low, high)  # type: ignore[attr-defined]


@given(nodes())
def test_the_core_has_no_derived_operator_and_the_same_horizon(node: Node) -> None:
    assert all(part.meaning is part for part in subformulas(node.core))
    assert all(isinstance(part, Truth | Atom | Not | And | Or | Eventually | Until) for part in subformulas(node.core))
    assert Formula(node.core).horizon == Formula(node).horizon
    assert node.core.core == node.core


def test_the_core_has_the_same_verdict() -> None:
    for formula, path in random_pairs(seed=12, count=300):
        assert monitor(Formula(formula.root.core, formula.end), path) is monitor(formula, path), f"{formula} on {path}"


@given(nodes())
def test_a_node_is_rebuilt_with_changed_children(node: Node) -> None:
    assert node.mapped(lambda child: child) == node
    assert node.mapped(Not).children == tuple(map(Not, node.children))
    assert type(node.mapped(Not)) is type(node)


def test_joining_leaves_out_truth_values() -> None:
    x, y, true, false = stl("x > 0").root, stl("y > 0").root, Truth(True), Truth(False)
    assert And.of([x, true, y]) == And((x, y))
    assert And.of([x, true]) == x
    assert And.of([true, true]) == true
    assert And.of([x, false]) == false
    assert Or.of([x, false, y]) == Or((x, y))
    assert Or.of([x, true]) == true
    assert Or.of([false]) == false


def test_a_double_negation_is_none() -> None:
    x = stl("x > 0").root
    assert (x.negation, Not(x).negation, Truth(True).negation) == (Not(x), x, Truth(False))


def test_all_that_measures_time_is_listed() -> None:
    assert stl("G[1, inf) (x(t-3) > 0 U[0, 5] y > 0)", end=8).measures == [1.0, 0.0, 5.0, 3.0, 8.0]
