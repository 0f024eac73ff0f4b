"""Expressions: what is printed reads back, and a tree, arrays and emitted source all mean the same."""

from __future__ import annotations

import builtins
import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hostile import outcomes_of
from sateen.core.errors import ExpressionError
from sateen.core.text import number_text
from sateen.language.expression import (
    FUNCTIONS,
    RESERVED,
    Boolean,
    Delayed,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    number,
)
from sateen.language.grammar import parse_condition, parse_expression
from strategies import conditions, expressions

a, b, c = Name("a"), Name("b"), Name("c")


# What is printed reads back.


@settings(max_examples=150)
@given(expressions())
def test_an_expression_reads_back_from_its_text(expression: Expression) -> None:
    assert parse_expression(str(expression)) == expression


@settings(max_examples=150)
@given(conditions())
def test_a_condition_reads_back_from_its_text(condition: Expression) -> None:
    assert parse_condition(str(condition)) == condition


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "1",
        "0.5",
        "1e-07",
        "1e+300",
        "a + b + c",
        "(a + b) + c",
        "a + (b + c)",
        "a - b - c",
        "a - (b - c)",
        "-a - -b",
        "a * b / c",
        "a / (b * c)",
        "a * (b / c)",
        "-a^b",
        "(-a)^b",
        "a^-b",
        "a^b^c",
        "(a^b)^c",
        "--a",
        "-(a + b)",
        "-(a * b)",
        "-a * b",
        "2 * (a + 1)",
        "min(a, b, c)",
        "min(min(a, b), c)",
        "max(a, -b)",
        "abs(a - b)",
        "exp(log(a)) + sqrt(floor(ceil(b)))",
        "1 + sin(2 * a) - cos(b)",
        "if(a > 0 and not b >= c, a, if(true, b, c))",
        "`a b` + `2x` * `if`",
        "beta_1 * été / π",
    ],
)
def test_a_text_with_no_needless_brackets_prints_as_it_is_written(text: str) -> None:
    assert str(parse_expression(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "a > 0",
        "a == b",
        "a < 1 and b != 2 or c >= 3",
        "a < 1 and (b != 2 or c >= 3)",
        "not a > 0 and b > 0",
        "not (a > 0 and b > 0)",
        "not not a > 0",
        "true or false",
        "(a > 0 and b > 0) and c > 0",
        "a + 1 < b * 2",
    ],
)
def test_a_condition_with_no_needless_brackets_prints_as_it_is_written(text: str) -> None:
    assert str(parse_condition(text)) == text


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_reserved_word_is_a_name_in_backquotes(word: str) -> None:
    assert parse_expression(f"`{word}`") == Name(word)
    assert str(Name(word)) == f"`{word}`"


def test_more_names_may_be_reserved_for_a_text() -> None:
    assert Name("F").text(RESERVED | {"F"}) == "`F`"
    assert Operation("+", (Name("t"), a)).text(RESERVED | {"t"}) == "`t` + a"


# How tightly things bind.


@pytest.mark.parametrize(
    ("written", "bracketed"),
    [
        ("a * b * c", "(a * b) * c"),
        ("a * b / c", "(a * b) / c"),
        ("a / b / c", "(a / b) / c"),
        ("a / b * c", "(a / b) * c"),
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("-a * b", "(-a) * b"),
        ("a * -b", "a * (-b)"),
        ("-a + b", "(-a) + b"),
        ("-a^b", "-(a^b)"),
        ("a^b^c", "a^(b^c)"),
        ("a^-b", "a^(-b)"),
        ("a^-b^c", "a^(-(b^c))"),
        ("a^b * c", "(a^b) * c"),
        ("a * b^c", "a * (b^c)"),
        ("--a", "-(-a)"),
        ("a ** b", "a ^ b"),
        ("-(a)", "-a"),
        ("((a))", "a"),
    ],
)
def test_arithmetic_binds_as_in_mathematics(written: str, bracketed: str) -> None:
    assert parse_expression(written) == parse_expression(bracketed)


@pytest.mark.parametrize(
    ("written", "bracketed"),
    [
        ("a + 1 < b * 2", "(a + 1) < (b * 2)"),
        ("not a > 0 and b > 0", "(not (a > 0)) and (b > 0)"),
        ("a > 0 and b > 0 or c > 0", "((a > 0) and (b > 0)) or (c > 0)"),
        ("a > 0 or b > 0 and c > 0", "(a > 0) or ((b > 0) and (c > 0))"),
        ("not not a > 0", "not (not (a > 0))"),
        ("a > 0 & b > 0", "a > 0 and b > 0"),
        ("a > 0 && b > 0", "a > 0 and b > 0"),
        ("a > 0 | b > 0", "a > 0 or b > 0"),
        ("a > 0 || b > 0", "a > 0 or b > 0"),
        ("!a > 0", "not a > 0"),
        ("a = 1", "a == 1"),
        ("0 < a < 5", "0 < a and a < 5"),
        ("0 < a <= b != c", "0 < a and a <= b and b != c"),
        ("(a) > (0)", "a > 0"),
    ],
)
def test_conditions_bind_comparison_then_not_then_and_then_or(written: str, bracketed: str) -> None:
    assert parse_condition(written) == parse_condition(bracketed)


def test_a_sum_is_flat_and_what_is_subtracted_is_a_negative_term() -> None:
    assert parse_expression("a - b + c") == Operation("+", (a, Operation("-", (b,)), c))
    assert parse_expression("(a - b) + c") == Operation("+", (parse_expression("a - b"), c))
    assert parse_expression("10 - 4 - 3").evaluate({}) == 3
    assert parse_expression("10 - (4 - 3)").evaluate({}) == 9


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("007", 7), (".5", 0.5), ("5.", 5), ("1e3", 1000), ("1.5E-3", 0.0015), ("2e+2", 200), ("0.1", 0.1)],
)
def test_numbers_are_written_as_usual(text: str, value: float) -> None:
    assert parse_expression(text) == Number(value)


@pytest.mark.parametrize("text", ["a+b", " a + b ", "a\n+\tb", "(a)+(b)"])
def test_white_space_means_nothing(text: str) -> None:
    assert parse_expression(text) == Operation("+", (a, b))


@pytest.mark.parametrize(
    "name", ["iffy", "notable", "android", "order", "minimum", "infinite", "truely", "_", "é2", "x²"]
)
def test_names_may_begin_with_a_reserved_word(name: str) -> None:
    assert parse_expression(name) == Name(name)


# What a tree means, against an evaluator written for this test.


class AmbiguousError(Exception):
    """The sign of zero that min and max return of 0.0 and -0.0 is nobody's promise."""


def by_hand(node: Expression, values: dict[str, float]) -> Any:
    """The value of a tree in plain Python: floats and IEEE rules, spelt out."""
    match node:
        case Number(literal) | Boolean(literal):
            return literal
        case Name(name):
            return values[name]
        case Operation("if", (condition, then, otherwise)):
            return by_hand(then if by_hand(condition, values) else otherwise, values)
    assert isinstance(node, Operation)
    values_below = [by_hand(operand, values) for operand in node.operands]
    result = values_below[0]
    if len(values_below) == 1:
        return ONE[node.symbol](result)
    for further in values_below[1:]:
        result = TWO[node.symbol](result, further)
    return result


def divided(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)


def least(x: float, y: float) -> float:
    if x == y == 0 and math.copysign(1, x) != math.copysign(1, y):
        raise AmbiguousError
    return x if math.isnan(x) or x < y else y


def rounded(to_whole: Any) -> Any:
    return lambda x: math.copysign(to_whole(x), x) if math.isfinite(x) else x


ONE = {
    "-": lambda x: -x,
    "not": lambda x: not x,
    "abs": abs,
    "floor": rounded(math.floor),
    "ceil": rounded(math.ceil),
    "sqrt": lambda x: x if x == 0 else math.sqrt(x) if x >= 0 else math.nan,
}
TWO = {
    "+": lambda x, y: x + y,
    "*": lambda x, y: x * y,
    "/": divided,
    "min": least,
    "max": lambda x, y: -least(-x, -y),
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def exactly_rounded(node: Expression) -> Expression:
    """The tree with operations in the place of exp, log, sin, cos and ^ whose result IEEE fixes to the last bit."""
    if not isinstance(node, Operation):
        return node
    symbol = {"exp": "abs", "log": "sqrt", "sin": "floor", "cos": "ceil", "^": "*"}.get(node.symbol, node.symbol)
    return Operation(symbol, tuple(exactly_rounded(operand) for operand in node.operands))


def same(x: Any, y: Any) -> bool:
    return bool(np.all((np.asarray(x) == np.asarray(y)) | (np.isnan(x) & np.isnan(y))))


FLOATS = (
    st.sampled_from((0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e308, 5e-324, math.inf, -math.inf, math.nan)) | st.floats()
)
TREES = (expressions() | conditions()).map(exactly_rounded)


@settings(max_examples=150)
@given(TREES, st.data())
def test_evaluation_agrees_with_plain_python(tree: Expression, data: st.DataObject) -> None:
    values = {name: data.draw(FLOATS) for name in tree.names}
    try:
        expected = by_hand(tree, values)
    except AmbiguousError:
        assume(False)
    assert same(tree.evaluate(values), expected)


@settings(max_examples=100)
@given(TREES, st.data())
def test_emitted_source_means_what_the_tree_means(tree: Expression, data: st.DataObject) -> None:
    values = {name: np.float64(data.draw(FLOATS)) for name in tree.names}
    assert same(meaning_of_source(tree, values), tree.evaluate(values))


def meaning_of_source(tree: Expression, values: dict[str, Any]) -> Any:
    """The value of emitted source. Only here, to show that the source means what the tree says, is it evaluated by
    Python itself; names are spelt v0, v1, ..., so no text of the tree's reaches it."""
    places = {name: place for place, name in enumerate(tree.names)}
    source = tree.emit(lambda leaf: f"v{places[leaf.name]}")
    functions = {
        name: getattr(np, name)
        for name in ("minimum", "maximum", "abs", "exp", "log", "sqrt", "floor", "ceil", "sin", "cos")
    }
    with np.errstate(all="ignore"):
        spelt = {f"v{place}": values[name] for name, place in places.items()}
        return eval(source, {"__builtins__": {}, **functions, **spelt})


@settings(max_examples=100)
@given(TREES, st.data())
def test_on_arrays_a_tree_means_what_it_means_on_each_element(tree: Expression, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 5))
    columns = {name: data.draw(st.lists(FLOATS, min_size=length, max_size=length)) for name in tree.names}
    together = tree.evaluate({name: np.array(column) for name, column in columns.items()})
    one_by_one = [tree.evaluate({name: column[row] for name, column in columns.items()}) for row in range(length)]
    assert same(np.broadcast_to(together, length), one_by_one)


@given(st.floats(0.01, 50), st.floats(-5, 5))
def test_powers_exponentials_and_logarithms_are_those_of_mathematics(x: float, y: float) -> None:
    expected = {
        "exp(y)": math.exp(y),
        "log(x)": math.log(x),
        "sin(y)": math.sin(y),
        "cos(x)": math.cos(x),
        "x^y": x**y,
        "x^0.5": math.sqrt(x),
        "(-x)^3": -(x**3),
    }
    for text, value in expected.items():
        found = parse_expression(text).evaluate({"x": x, "y": y})
        assert math.isclose(found, value, rel_tol=1e-13, abs_tol=1e-15), text


@pytest.mark.parametrize(
    "text",
    ["a^b", "a^b^c", "(a^b)^c", "-a^b", "(-a)^2", "a^-b", "2^a", "a^3", "a^3.5", "exp(a) - log(b)", "sin(a) * cos(b)"],
)
def test_emitted_powers_and_functions_mean_what_the_tree_means(text: str) -> None:
    tree = parse_expression(text)
    values = {"a": np.float64(1.7), "b": np.float64(2.5), "c": np.float64(0.3)}
    assert math.isclose(meaning_of_source(tree, values), tree.evaluate(values), rel_tol=1e-13)


def test_emitted_source_brackets_every_operation_and_spells_names_as_asked() -> None:
    tree = parse_expression("a + b * c - 1")
    assert tree.emit(lambda leaf: leaf.name.upper()) == "(A + (B * C) + (- 1.0))"
    assert Operation("+", (a, Delayed("a", 2.0))).emit(lambda leaf: repr(leaf)) == f"({a!r} + {Delayed('a', 2.0)!r})"
    assert parse_condition("a > 0 or not b == 1 and true").emit(lambda leaf: leaf.name) == (
        "((a > 0.0) | ((not (b == 1.0)) & True))"
    )


@pytest.mark.parametrize("power", [0, 1, 2, 63])
def test_whole_powers_are_emitted_as_whole_numbers(power: int) -> None:
    assert Operation("^", (a, Number(float(power)))).emit(lambda leaf: leaf.name) == f"(a ** {power})"


# Arithmetic is IEEE.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 / x", math.inf),
        ("-1 / x", -math.inf),
        ("1 / -x", -math.inf),
        ("x / x", math.nan),
        ("1 / x - 1 / x", math.nan),
        ("log(x)", -math.inf),
        ("log(x - 1)", math.nan),
        ("sqrt(x - 1)", math.nan),
        ("exp(x + 1000)", math.inf),
        ("x^-1", math.inf),
        ("x^0", 1),
        ("min(x / x, 1)", math.nan),
        ("max(1, x / x)", math.nan),
        ("1e308 * (x + 10)", math.inf),
        ("floor(-0.5 + x)", -1),
        ("ceil(x + 0.2)", 1),
    ],
)
def test_division_by_zero_and_overflow_are_values_and_no_warnings(text: str, value: float) -> None:
    assert same(parse_expression(text).evaluate({"x": 0.0}), value)


def test_only_value_lets_numpys_warnings_through() -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        parse_expression("1 / x").value({"x": 0.0})


def test_comparisons_with_what_is_not_a_number_are_false_but_for_unequal() -> None:
    nan = {"x": math.nan}
    assert [bool(parse_condition(f"x {symbol} x").evaluate(nan)) for symbol in ("<", "<=", ">", ">=", "==", "!=")] == [
        *[False] * 5,
        True,
    ]


def test_if_evaluates_only_the_branch_that_is_taken() -> None:
    choice = parse_expression("if(x > 0, y, z)")
    assert choice.evaluate({"x": 1, "y": 5}) == 5
    assert choice.evaluate({"x": -1, "z": 7}) == 7
    with pytest.raises(KeyError):
        choice.evaluate({"x": -1, "y": 5})


def test_if_guards_a_division_on_arrays_too() -> None:
    guarded = parse_expression("if(x == 0, 0, 1 / x)")
    assert guarded.evaluate({"x": np.array([0.0, 2.0, -4.0])}).tolist() == [0.0, 0.5, -0.25]


def test_counts_may_be_given_as_python_integers() -> None:
    assert parse_expression("a / b").evaluate({"a": 1, "b": 2}) == 0.5
    assert parse_expression("a^-1").evaluate({"a": 4}) == 0.25
    assert parse_expression("a * a").evaluate({"a": 2**40}) == 2.0**80


# Names, nodes, substitution.


def test_names_are_listed_once_in_order_of_appearance() -> None:
    assert parse_expression("c * b + if(a > c, b, d) - min(e, a)").names == ("c", "b", "a", "d", "e")
    assert parse_expression("1 + 2").names == ()
    assert Operation("+", (Delayed("x", 1.0), Name("y"), Name("x"))).names == ("x", "y")


@given(expressions())
def test_every_node_comes_after_its_parent_and_before_its_right_neighbour(expression: Expression) -> None:
    assert list(in_order(expression)) == list(recursively(expression))


def recursively(node: Expression) -> Any:
    yield node
    for child in node.children:
        yield from recursively(child)


def test_substitution_replaces_all_names_at_once() -> None:
    swapped = parse_expression("a - b * a").substitute({"a": b, "b": a})
    assert swapped == parse_expression("b - a * b")


def test_substitution_leaves_what_is_delayed() -> None:
    tree = Operation("+", (a, Delayed("a", 1.0)))
    assert tree.substitute({"a": Number(3.0)}) == Operation("+", (Number(3.0), Delayed("a", 1.0)))


@given(expressions())
def test_substituting_nothing_changes_nothing(expression: Expression) -> None:
    assert expression.substitute({}) == expression
    assert expression.substitute({name: Name(name) for name in expression.names}) == expression


@settings(max_examples=100)
@given(TREES, st.data())
def test_substituting_numbers_is_evaluating_with_them(tree: Expression, data: st.DataObject) -> None:
    values = {name: data.draw(st.floats(allow_nan=False, allow_infinity=False)) for name in tree.names}
    closed = tree.substitute({name: number(value) for name, value in values.items()})
    assert closed.names == ()
    # number(-0.0) is the tree of 0: plain numbers have no sign of zero.
    assert same(closed.evaluate({}), tree.evaluate({name: value + 0.0 for name, value in values.items()}))


def test_a_delayed_value_evaluates_under_its_name_and_lag() -> None:
    tree = Operation("+", (a, Operation("-", (Delayed("a", 1.5),))))
    assert tree.evaluate({"a": 5.0, ("a", 1.5): 3.0}) == 2.0
    assert str(tree) == "a - a(t-1.5)"


def test_trees_are_frozen_and_equal_where_their_parts_are() -> None:
    tree = parse_expression("a + 2 * b")
    assert tree == parse_expression("a+2*b")
    assert hash(tree) == hash(parse_expression("a+2*b"))
    assert tree != parse_expression("a + b * 2")
    with pytest.raises(FrozenInstanceError):
        tree.symbol = "*"  # type: ignore[attr-defined, misc]
    with pytest.raises(FrozenInstanceError):
        a.name = "b"  # type: ignore[misc]


@pytest.mark.parametrize("value", [-1.0, -0.0, math.inf, -math.inf, math.nan])
def test_a_number_is_finite_and_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        Number(value)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (-0.0, "0"), (3, "3"), (-3, "-3"), (-0.5, "-0.5"), (1e20, "1e+20")]
)
def test_number_is_the_tree_of_any_finite_number(value: float, text: str) -> None:
    assert str(number(value)) == text
    assert number(value).evaluate({}) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-3.0, "-3"),
        (0.1, "0.1"),
        (1e14, "100000000000000"),
        (1e15, "1000000000000000.0"),
        (1e-7, "1e-07"),
        (1 / 3, "0.3333333333333333"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (np.float64(2.5), "2.5"),
        (7, "7"),
    ],
)
def test_numbers_print_as_short_as_they_can(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.floats(0, allow_infinity=False, allow_nan=False).map(abs))
def test_every_number_reads_back_bit_by_bit(value: float) -> None:
    assert parse_expression(number_text(value)) == Number(value)


# Mistakes are pointed at.


@pytest.mark.parametrize(
    ("text", "column", "message", "remedy"),
    [
        ("a +", 4, "ends too soon", "must follow '+'"),
        ("a + * b", 5, "'*' cannot stand here", ""),
        ("2 a", 3, "an operator is missing before 'a'", "2 * a"),
        ("a b", 3, "an operator is missing before 'b'", "a * b"),
        ("(a + b) c", 9, "an operator is missing before 'c'", "*"),
        ("(a + b", 1, "'(' is never closed", ""),
        ("a + b)", 6, "')' is never opened", ""),
        ("foo(a)", 4, "foo is not a function", "min, max, abs"),
        ("a(t-1)", 2, "only formulas have delays", "as it is now"),
        ("a(t)", 2, "only formulas have delays", "as it is now"),
        ("min(a)", 1, "min takes two or more arguments, not 1", ""),
        ("1 + abs(a, b)", 5, "abs takes one argument, not 2", ""),
        ("a > 0", 3, "'>' cannot stand here", ""),
        ("a and b", 3, "'and' cannot stand here", ""),
        ("true", 1, "'true' cannot stand here", ""),
        ("a + 1e999", 5, "larger than any number", ""),
        ("a + inf", 5, "inf stands only in windows", "`inf`"),
        ("a.b", 2, "'.' has no meaning here", "backquotes"),
        ("a # b", 3, "'#' has no meaning here", ""),
        ("a + ``", 5, "an empty name", ""),
        ("a + ` `", 5, "an empty name", ""),
        ("a +\n  2 b", 5, "an operator is missing before 'b'", ""),
        ("if(a, b, c)", 5, "',' cannot stand here", ""),
        ("if(a > 0, b)", 12, "')' cannot stand here", ""),
        ("+a", 1, "'+' cannot stand here", ""),
    ],
)
def test_a_mistake_is_pointed_at(text: str, column: int, message: str, remedy: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_expression(text)
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert raised.value.column == column
    assert raised.value.text == text


@pytest.mark.parametrize(
    ("text", "column"), [("a", 2), ("a > 0 and", 10), ("a => 1", 4), ("a > 0 b > 0", 7), ("not", 4)]
)
def test_a_mistake_in_a_condition_is_pointed_at(text: str, column: int) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_condition(text)
    assert raised.value.column == column


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_text_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError, match="without any text"):
        parse_expression(text)


@pytest.mark.parametrize("given_instead", [None, 3, b"a + b", ["a"]])
def test_what_is_no_text_is_no_expression(given_instead: Any) -> None:
    with pytest.raises(ExpressionError, match="written as text, not as"):
        parse_expression(given_instead)


@pytest.mark.parametrize(
    "text", ["1 / 0", "0 / 0", "log(0)", "sqrt(0 - 1)", "1e308 * 10", "9^9^9^9", "a + exp(1000)", "a^9^9^9"]
)
def test_a_constant_that_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="not a finite number"):
        parse_expression(text)


# Hostile text.

HOSTILE = {
    "a dunder name": "__class__",
    "a dunder name in backquotes": "`__class__`",
    "a call of a dunder": "__import__('os').system('true')",
    "an attribute": "a.__class__.__bases__",
    "an attribute of a bracket": "().__class__",
    "a lambda": "lambda: 0",
    "a lambda called": "(lambda x: x)(1)",
    "a subscript": "a[0]",
    "a list comprehension": "[x for x in a]",
    "a string": "'a' * 9",
    "a format string": "f'{a}'",
    "an assignment": "a := 1",
    "a statement": "a; import os",
    "a comment": "a # b",
    "a decorator": "a @ b",
    "a floor division": "a // b",
    "a remainder": "a % b",
    "Python's conditional": "1 if a else 2",
    "a starred argument": "min(*a)",
    "a keyword argument": "min(a=1, b=2)",
    "a number with underscores": "1_000",
    "a hexadecimal number": "0x10",
    "a null": "a\0b",
    "a line separator": "a\u2028b",
    "a right-to-left mark": "a\u202eb",
    "a lone surrogate": "a\ud800",
    "10,000 brackets": "(" * 10_000 + "1" + ")" * 10_000,
    "9,999 brackets": "(" * 9_999 + "1" + ")" * 9_999,
    "10,000 brackets that open": "(" * 10_000,
    "10,000 brackets that close": ")" * 10_000,
    "10,000 square brackets": "[" * 10_000,
    "6,000 nested calls": "abs(" * 4_000 + "a" + ")" * 4_000,
    "2,000 nested choices": "if(a > 0, 1, " * 1_500 + "a" + ")" * 1_500,
    "a tower of powers": "9^9^9^9",
    "a tower of powers beside a name": "a * 9^9^9^9",
    "a tower of 10,000 powers": "^".join("2" * 10_000),
    "5,000 unary minuses": "-" * 5_000 + "1",
    "19,999 unary minuses": "-" * 19_999 + "1",
    "a product of 9,000": "*".join("a" * 9_000),
    "a quotient of 9,000": "/".join("a" * 9_000),
    "a number of 19,000 digits": "9" * 19_000,
    "an exponent of 15,000 digits": "1e" + "9" * 15_000,
    "a name of 19,000 characters": "a" * 19_000,
    "a name of 19,000 characters in backquotes": "`" + "a" * 19_000 + "`",
    "19,999 backquotes": "`" * 19_999,
    "five megabytes of a sum": "1+" * 2_500_000 + "1",
    "five megabytes of spaces": " " * 5_000_000,
    "five megabytes of brackets": "(" * 5_000_000,
    "five megabytes of one name": "a" * 5_000_000,
}
HOSTILE_CONDITIONS = {
    "5,000 negations": "not " * 4_900 + "a > 0",
    "19,000 exclamation marks": "!" * 19_000 + "a > 0",
    "9,999 brackets around a condition": "(" * 9_990 + "a > 0" + ")" * 9_990,
    "five megabytes of and": "a > 0 and " * 500_000 + "a > 0",
    "a dunder in a condition": "__debug__ > 0",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    module = "sateen.language.grammar"
    read = outcomes_of(f"{module}:parse_expression", "1", HOSTILE)
    return read | outcomes_of(f"{module}:parse_condition", "1 > 0", HOSTILE_CONDITIONS)


@pytest.mark.parametrize("label", [*HOSTILE, *HOSTILE_CONDITIONS])
def test_hostile_text_is_refused_soon_and_in_bounded_memory(label: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(label, "never finished") == "ExpressionError"


def test_long_sums_and_long_chains_of_comparisons_are_read() -> None:
    total = parse_expression("+".join("1" * 5_000))
    assert total.evaluate({}) == 5_000
    assert parse_expression(str(parse_expression(" + ".join("a" * 5_000)))).evaluate({"a": 2.0}) == 10_000
    chain = parse_condition("<".join("abc" * 1_000))
    assert len(chain.children) == 2_999


def test_constants_are_worked_out_once_however_deep_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ninety sums of ninety terms, each within the next: were every level worked out anew, that would be 400,000."""
    asked = 0
    value_of = Number.value

    def counted(self: Number, values: Any) -> Any:
        nonlocal asked
        asked += 1
        return value_of(self, values)

    monkeypatch.setattr(Number, "value", counted)
    ones = "+".join("1" * 90)
    tree = parse_expression("(" * 89 + ones + f")+{ones}" * 89)
    assert asked <= 10 * 90 * 90
    monkeypatch.undo()
    assert tree.evaluate({}) == 90 * 90


def test_user_text_never_reaches_eval_exec_or_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_expression("1")
    parse_condition("1 > 0")  # the tables of the grammar are made with the first text

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("Python itself was asked to run something")

    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile"):
            patched.setattr(builtins, name, refuse)
        trees = [parse_expression("a + min(1, 2)^2 * if(a > 0, exp(a), 3)"), parse_condition("a > 0 and not 1 == 2")]
        values = [tree.evaluate({"a": 0.5}) for tree in trees]
        texts = [(str(tree), tree.emit(lambda leaf: leaf.name)) for tree in trees]
        with pytest.raises(ExpressionError):
            parse_expression("__import__('os')")
    assert values == [0.5 + math.exp(0.5), True]
    assert len(texts) == 2


def test_a_name_that_is_a_function_only_before_a_bracket_stays_a_name() -> None:
    tree = parse_expression("sin * sin(cos) + cos(2 * cos)")
    assert tree.names == ("sin", "cos")
    assert parse_expression(str(tree)) == tree
    assert float(tree.evaluate({"sin": 2.0, "cos": 0.5})) == 2.0 * math.sin(0.5) + math.cos(1.0)


def test_every_function_of_the_language_can_be_written() -> None:
    for function in FUNCTIONS:
        arguments = "a, b" if function in ("min", "max") else "a"
        assert parse_expression(f"{function}({arguments})").symbol == function  # type: ignore[attr-defined]


@example("a + b")
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    for parse in (parse_expression, parse_condition):
        try:
            tree = parse(text)
        except ExpressionError as error:
            _assert_points_into(text, error)
        else:
            assert parse(str(tree)) == tree


def _assert_points_into(text: str, error: ExpressionError) -> None:
    assert 0 <= error.position <= len(text)
    assert str(error)
