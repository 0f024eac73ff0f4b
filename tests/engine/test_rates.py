"""Rates as the kernel computes them: regrouped without a change, and told safe or not from their form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from sateen.engine.rates import Moving, safe_rate
from sateen.language.expression import Delayed, Expression, Name, Number, Operation, in_order
from sateen.language.grammar import parse_condition, parse_expression

MOVING = frozenset({"S", "I", "R"})
FIXED = ("beta", "gamma", "N")
FUNCTIONS = {name: getattr(np, name) for name in ("exp", "log", "sqrt", "floor", "ceil", "minimum", "maximum")}


def regrouped(expression: Expression, values: dict[str, float]) -> tuple[float, list[Expression]]:
    """What the emitted source computes, and the parts that it leaves to be computed once."""
    parts: list[Expression] = []

    def fixed(part: Expression) -> str:
        parts.append(part)
        return f"part{len(parts) - 1}"

    def spell(leaf: Name | Delayed) -> str:
        assert leaf.name in MOVING
        return leaf.name

    source = Moving(MOVING, spell, fixed, regroups=True).source(expression)
    numbers = {name: np.float64(value) for name, value in values.items()}
    with np.errstate(all="ignore"):
        known = {f"part{place}": part.evaluate(values) for place, part in enumerate(parts)}
        found = eval(source, {"__builtins__": {"min": min, "max": max, "abs": abs}, **FUNCTIONS}, {**numbers, **known})
    return float(found), parts


@some.composite
def positive_trees(draw: some.DrawFn, depth: int = 4) -> Expression:
    """Sums, products, quotients, powers and choices of positive things: nothing that magnifies a rounding error."""
    leaves = ("number", "moving", "moving", "fixed")
    kind = draw(
        some.sampled_from((*leaves, "*", "*", "*", "/", "/", "+", "min", "max", "sqrt", "^", "if") if depth else leaves)
    )
    if kind == "number":
        return Number(draw(some.integers(1, 4000)) / 16)
    if kind in ("moving", "fixed"):
        return Name(draw(some.sampled_from(sorted(MOVING) if kind == "moving" else FIXED)))
    smaller = positive_trees(depth - 1)
    if kind == "sqrt":
        return Operation("sqrt", (draw(smaller),))
    if kind == "^":
        return Operation("^", (draw(smaller), Number(float(draw(some.integers(1, 3))))))
    if kind == "if":
        return Operation("if", (parse_condition("S > I and not R >= 3"), draw(smaller), draw(smaller)))
    return Operation(kind, (draw(smaller), draw(smaller)))


def _is_condition(node: Expression) -> bool:
    return isinstance(node, Operation) and node.symbol in ("and", "not", ">", ">=")


VALUES = some.fixed_dictionaries(
    {
        **{name: some.integers(1, 10_000).map(float) for name in sorted(MOVING)},
        **{name: some.floats(1e-6, 1e6) for name in FIXED},
    }
)


@given(positive_trees(), VALUES)
def test_regrouping_moves_a_value_by_a_rounding_error_at_most(tree: Expression, values: dict[str, float]) -> None:
    plain = float(tree.evaluate(values))
    assume(1e-150 < plain < 1e150)
    assume(all(1e-150 < float(node.evaluate(values)) < 1e150 for node in in_order(tree) if not _is_condition(node)))
    found, _ = regrouped(tree, values)
    assert found == pytest.approx(plain, rel=1e-14, abs=0)


@given(positive_trees(), VALUES)
def test_what_is_left_to_be_computed_once_never_moves(tree: Expression, values: dict[str, float]) -> None:
    _, parts = regrouped(tree, values)
    assert all(MOVING.isdisjoint(part.names) for part in parts)


@given(positive_trees())
def test_what_does_not_move_at_all_is_one_fixed_part(tree: Expression) -> None:
    still = tree.substitute({name: Name("beta") for name in MOVING})
    parts: list[Expression] = []
    assert Moving(MOVING, str, lambda part: parts.append(part) or "it").source(still) == "it"
    assert parts == [still]


@pytest.mark.parametrize(
    ("text", "source", "parts"),
    [
        ("beta * S * I / N", "(C0 * S * I)", ["beta / N"]),
        ("S * beta * I * 2 / N", "(C0 * S * I)", ["beta * 2 / N"]),
        ("beta * S / (N + S)", "(C0 * S / ((C1 + S)))", ["beta", "N"]),
        ("-S * beta", "(C0 * S)", ["-1 * beta"]),
        ("beta / (N / S)", "(C0 * S)", ["beta / N"]),
        ("1 / S", "(1 / (S))", []),
        ("S", "S", []),
        ("beta", "C0", ["beta"]),
        ("min(S, N)", "min(S, C0)", ["N"]),
        ("S^2 * beta", "(C0 * (S ** 2))", ["beta"]),
        ("max(S / N, 1)", "maximum((S / C0), 1)", ["N"]),
        ("1 - S / N", "(1 + (- (S / C0)))", ["N"]),
        ("beta * S * (1 - S / N)", "(C0 * S * (1 + (- (S / C1))))", ["beta", "N"]),
        ("beta * floor(S / N)", "(C0 * floor((S / C1)))", ["beta", "N"]),
        ("beta * S * 2 - S * gamma * 2", "(((C0 * S) * 2) + (- ((S * C1) * 2)))", ["beta", "gamma"]),
        ("if(S * N / N > 1, 2, 3)", "(2 if (((S * C0) / C1) > 1) else 3)", ["N", "N"]),
        ("if(S > N, S * beta, gamma / 2)", "((S * C1) if (S > C0) else C2)", ["N", "beta", "gamma / 2"]),
    ],
)
def test_fixed_factors_are_gathered_in_front(text: str, source: str, parts: list[str]) -> None:
    gathered: list[Expression] = []

    def fixed(part: Expression) -> str:
        if not part.names:
            return str(part)
        gathered.append(part)
        return f"C{len(gathered) - 1}"

    moving = Moving(MOVING, lambda leaf: leaf.name, fixed, regroups=True, careful=False)
    assert moving.source(parse_expression(text)) == source
    assert [str(part) for part in gathered] == parts


@pytest.mark.parametrize(
    "text", ["S / I", "beta * S / (S + I)", "S / (I / R)", "1 / (1 / S)", "S * I / I", "(S / I) * I / R"]
)
@pytest.mark.parametrize("zero", [("S",), ("I",), ("R",), ("S", "I"), ("S", "I", "R")])
def test_regrouping_divides_by_zero_as_the_plain_expression_does(text: str, zero: tuple[str, ...]) -> None:
    values = {"S": 3.0, "I": 2.0, "R": 7.0, "beta": 0.5, **dict.fromkeys(zero, 0.0)}
    found, _ = regrouped(parse_expression(text), values)
    plain = float(parse_expression(text).evaluate(values))
    assert found == pytest.approx(plain, rel=1e-15, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "coefficients"),
    [
        ("beta * S * I / N", ["beta / N"]),
        ("gamma * I", ["gamma"]),
        ("I", ["1"]),
        ("beta", ["beta"]),
        ("3", ["3"]),
        ("beta * S * (S - 1) / 2", ["beta / 2"]),
        ("beta * S * (S - 1) * (S - 2) / 6", ["beta / 6"]),
        ("beta * S * S", ["beta"]),
        ("beta * S + gamma * I", ["beta", "gamma"]),
        ("beta * S - gamma", ["beta", "-1 * gamma"]),
        ("-beta * S", ["-1 * beta"]),
        ("(beta - gamma) * S", ["beta - gamma"]),
        ("log(beta) * S", ["log(beta)"]),
        ("beta / (N / S)", ["beta / N"]),
    ],
)
def test_sums_of_products_of_counts_are_safe_but_for_their_coefficients(text: str, coefficients: list[str]) -> None:
    form = safe_rate(parse_expression(text), MOVING, MOVING)
    assert form is not None
    assert [str(each) for each, _ in form] == coefficients


@pytest.mark.parametrize(
    "text",
    [
        "beta * S / I",
        "beta / S",
        "beta * S / (N + S)",
        "beta * (S - 1)",
        "beta * S * (S - 2)",
        "beta * S * (I - 1)",
        "beta * (S - I)",
        "beta * (S - 0.5) * S",
        "S^2",
        "min(S, I)",
        "if(S > 3, beta, gamma)",
        "exp(S)",
        "beta * S + 1 / I",
        "beta * (S + 1)",
        "abs(S - I)",
    ],
)
def test_other_forms_are_left_to_be_checked(text: str) -> None:
    assert safe_rate(parse_expression(text), MOVING, MOVING) is None


@given(VALUES, some.lists(some.sampled_from(["beta*S*I/N", "gamma*I", "N*S*(S-1)/2", "beta", "S*R*gamma"]), min_size=1))
def test_a_safe_rate_with_good_coefficients_is_finite_and_not_negative(
    values: dict[str, float], terms: list[str]
) -> None:
    rate = parse_expression(" + ".join(terms))
    form = safe_rate(rate, MOVING, MOVING)
    assert form is not None
    assert all(0 <= float(each.evaluate(values)) <= 1e200 for each, _ in form)
    for zero in ((), ("S",), ("I",), ("S", "I", "R")):
        here = {**values, **dict.fromkeys(zero, 0.0)}
        assert 0 <= float(rate.evaluate(here)) < math.inf
