"""The language of formulas: binding, sugar, reading back, and where each mistake is pointed at."""

from __future__ import annotations

import builtins
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile import outcomes_of
from sateen.core.errors import FormulaError
from sateen.core.path import Path, Verdict
from sateen.language.expression import Delayed, Name, Number, Operation
from sateen.logic.formula import (
    ALWAYS,
    FORMULA_RESERVED,
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Iff,
    Implies,
    Interval,
    Not,
    Or,
    Truth,
    Until,
)
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from strategies import formulas


def atom(name: str) -> Atom:
    """`name > 0`."""
    return Atom(Operation(">", (Name(name), Number(0.0))))


a, b, c = atom("a"), atom("b"), atom("c")
WINDOW = Interval(0.0, 5.0)


# Reading back.


@settings(max_examples=500)
@given(formulas())
def test_a_formula_reads_back_from_its_text(formula: Formula) -> None:
    assert stl(str(formula)) == formula


@given(formulas(st.none() | st.floats(0, 1e6)))
def test_a_formula_and_its_end_read_back_from_its_repr(formula: Formula) -> None:
    """`stl('...', end=...)`, taken apart without evaluating it."""
    shown = repr(formula)
    text, _, end = shown.removeprefix("stl(").removesuffix(")").rpartition(", end=")
    if formula.end is None:
        text, end = shown.removeprefix("stl(").removesuffix(")"), ""
    assert repr(str(formula)) == text
    assert (None if not end else float(end)) == formula.end


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "x > 0",
        "!(x > 0)",
        "!true",
        "!!(x > 0)",
        "F x > 0",
        "F[0, 5] x > 0",
        "F[5, inf) x > 0",
        "G[2.5, 2.5] x > 0",
        "F G x > 0",
        "F[0, 5] !(x > 0)",
        "F[0, 5] (x > 0 & y > 0)",
        "F[0, 5] x > 0 & y > 0",
        "(x > 0) U[100, 120] (x == 0)",
        "(x > 0) U ((y > 0) U (x == 0))",
        "((x > 0) U (y > 0)) U (x == 0)",
        "true U (x == 0)",
        "x > 0 & y > 0 & z > 0",
        "(x > 0 & y > 0) & z > 0",
        "x > 0 & y > 0 | z > 0",
        "x > 0 & (y > 0 | z > 0)",
        "x > 0 -> y > 0 -> z > 0",
        "(x > 0 -> y > 0) -> z > 0",
        "x > 0 <-> y > 0 <-> z > 0",
        "x > 0 <-> (y > 0 <-> z > 0)",
        "X - X(t-1) > 2",
        "`G` + `t` > `F`(t-0.5)",
        "if(x > 0 and y > 0, 1, 2) > k",
    ],
)
def test_a_text_with_no_needless_brackets_prints_as_it_is_written(text: str) -> None:
    assert str(stl(text)) == text


# How tightly things bind: tightest first, arithmetic, comparison, prefix, U (right), &, |, -> (right), <->.


@pytest.mark.parametrize(
    ("written", "bracketed"),
    [
        ("x + 1 > y * 2", "(x + 1) > (y * 2)"),
        ("!x > 0", "!(x > 0)"),
        ("F[0,5] x > 0", "F[0,5] (x > 0)"),
        ("F[0,5] x > 0 & y > 0", "(F[0,5] (x > 0)) & (y > 0)"),
        ("G x > 0 | y > 0", "(G (x > 0)) | (y > 0)"),
        ("!x > 0 U y > 0", "(!(x > 0)) U (y > 0)"),
        ("F x > 0 U G y > 0", "(F (x > 0)) U (G (y > 0))"),
        ("F !G x > 0", "F (!(G (x > 0)))"),
        ("x > 0 U y > 0 U z > 0", "(x > 0) U ((y > 0) U (z > 0))"),
        ("x > 0 U[0,1] y > 0 U[2,3] z > 0", "(x > 0) U[0,1] ((y > 0) U[2,3] (z > 0))"),
        ("x > 0 U y > 0 & z > 0", "((x > 0) U (y > 0)) & (z > 0)"),
        ("x > 0 & y > 0 U z > 0", "(x > 0) & ((y > 0) U (z > 0))"),
        ("x > 0 & y > 0 | z > 0", "((x > 0) & (y > 0)) | (z > 0)"),
        ("x > 0 | y > 0 & z > 0", "(x > 0) | ((y > 0) & (z > 0))"),
        ("x > 0 | y > 0 -> z > 0", "((x > 0) | (y > 0)) -> (z > 0)"),
        ("x > 0 -> y > 0 | z > 0", "(x > 0) -> ((y > 0) | (z > 0))"),
        ("x > 0 -> y > 0 -> z > 0", "(x > 0) -> ((y > 0) -> (z > 0))"),
        ("x > 0 -> y > 0 <-> z > 0", "((x > 0) -> (y > 0)) <-> (z > 0)"),
        ("x > 0 <-> y > 0 -> z > 0", "(x > 0) <-> ((y > 0) -> (z > 0))"),
        ("x > 0 <-> y > 0 <-> z > 0", "((x > 0) <-> (y > 0)) <-> (z > 0)"),
        ("((x)) > ((0))", "x > 0"),
        ("(x + 1) * 2 > 3", "((x + 1) * 2) > 3"),
    ],
)
def test_binding(written: str, bracketed: str) -> None:
    assert stl(written) == stl(bracketed)


def test_each_operator_makes_its_node() -> None:
    assert stl("true").root == Truth(True)
    assert stl("false").root == Truth(False)
    assert stl("a > 0").root == a
    assert stl("!a > 0").root == Not(a)
    assert stl("a > 0 & b > 0 & c > 0").root == And((a, b, c))
    assert stl("a > 0 | b > 0 | c > 0").root == Or((a, b, c))
    assert stl("a > 0 -> b > 0").root == Implies(a, b)
    assert stl("a > 0 <-> b > 0").root == Iff(a, b)
    assert stl("F[0,5] a > 0").root == Eventually(WINDOW, a)
    assert stl("G[0,5] a > 0").root == Globally(WINDOW, a)
    assert stl("a > 0 U[0,5] b > 0").root == Until(WINDOW, a, b)
    assert stl("a > 0 U b > 0").root == Until(ALWAYS, a, b)
    assert stl("a > 0 U b > 0 U c > 0").root == Until(ALWAYS, a, Until(ALWAYS, b, c))
    assert stl("a > 0 -> b > 0 -> c > 0").root == Implies(a, Implies(b, c))


# Sugar.


@pytest.mark.parametrize(
    ("sugar", "plain"),
    [
        ("x = 3", "x == 3"),
        ("0 < x < 5", "0 < x & x < 5"),
        ("0 < x <= y != 3", "0 < x & x <= y & y != 3"),
        ("0 < x < 5 & y > 0", "(0 < x & x < 5) & y > 0"),
        ("!0 < x < 5", "!(0 < x & x < 5)"),
        ("F 0 < x < 5", "F (0 < x & x < 5)"),
        ("F[<=5] x > 0", "F[0, 5] x > 0"),
        ("F[>=5] x > 0", "F[5, inf) x > 0"),
        ("x > 0 U[<=5] y > 0", "x > 0 U[0, 5] y > 0"),
        ("F[5, inf] x > 0", "F[5, inf) x > 0"),
        ("F[0, inf) x > 0", "F x > 0"),
        ("F[>=0] x > 0", "F x > 0"),
        ("eventually x > 0", "F x > 0"),
        ("eventually[0, 5] x > 0", "F[0, 5] x > 0"),
        ("globally[<=5] x > 0", "G[0, 5] x > 0"),
        ("always x > 0", "G x > 0"),
        ("x > 0 until y > 0", "x > 0 U y > 0"),
        ("x > 0 until[1, 2] y > 0", "x > 0 U[1, 2] y > 0"),
        ("x > 0 and y > 0", "x > 0 & y > 0"),
        ("x > 0 && y > 0", "x > 0 & y > 0"),
        ("x > 0 or y > 0", "x > 0 | y > 0"),
        ("x > 0 || y > 0", "x > 0 | y > 0"),
        ("not x > 0", "!(x > 0)"),
        ("x > 0 implies y > 0", "x > 0 -> y > 0"),
        ("x > 0 iff y > 0", "x > 0 <-> y > 0"),
        ("x ** 2 > 3", "x^2 > 3"),
        ("F[ 0 ,5 ]x>0", "F[0, 5] x > 0"),
        ("F\n[0,\n5]\tx > 0", "F[0, 5] x > 0"),
        ("F(x > 0)", "F x > 0"),
        ("G(F(x > 0))", "G F x > 0"),
        ("F[1e1, 2.5e1] x > .5", "F[10, 25] x > 0.5"),
        ("x(t) > 0", "x > 0"),
        ("x(t-0) > 0", "x > 0"),
        ("x( t - 1 ) > 0", "x(t-1) > 0"),
        ("x(t-1.0) > 0", "x(t-1) > 0"),
        ("`x` > 0", "x > 0"),
    ],
)
def test_sugar(sugar: str, plain: str) -> None:
    assert stl(sugar) == stl(plain)


@pytest.mark.parametrize(
    "name", ["Fx", "G0", "U_", "tau", "time", "infected", "trueish", "Until", "f", "u", "untilx", "notch"]
)
def test_names_may_begin_with_a_reserved_word(name: str) -> None:
    assert stl(f"{name} > 0").species == (name,)


@pytest.mark.parametrize("word", sorted(FORMULA_RESERVED))
def test_a_reserved_word_is_a_species_in_backquotes(word: str) -> None:
    formula = stl(f"`{word}` > `{word}`(t-1)")
    assert formula.species == (word,)
    assert stl(str(formula)) == formula
    if word in ("sin", "cos"):  # younger than formulas that name them; a function where a bracket follows
        assert stl(f"{word} > 0").species == (word,)
        return
    with pytest.raises(FormulaError):
        stl(f"{word} > 0")


def test_prefix_operators_need_no_space() -> None:
    assert stl("!F!G!(x>0)") == stl("! F ! G ! (x > 0)")


# Constants.


def test_constants_stand_in_windows_delays_and_atoms() -> None:
    formula = stl("F[a, b] x(t-d) > k & G[<=b] y > k", constants={"a": 1, "b": 2.5, "d": 0.5, "k": -3})
    assert formula == stl("F[1, 2.5] x(t-0.5) > -3 & G[0, 2.5] y > -3")
    assert formula.species == ("x", "y")


def test_a_constant_delay_of_0_is_no_delay() -> None:
    assert stl("x(t-d) > 0", constants={"d": 0}) == stl("x > 0")


def test_a_name_with_odd_characters_can_be_a_constant() -> None:
    assert stl("F[0, `T max`] x > `k on`", constants={"T max": 3, "k on": 0.5}) == stl("F[0, 3] x > 0.5")


def test_constants_that_are_not_used_do_no_harm() -> None:
    assert stl("x > 0", constants={"T": 3}) == stl("x > 0")


def test_names_without_a_constant_stay_names() -> None:
    assert stl("x > k", constants={}).species == ("x", "k")


def test_a_delayed_species_is_never_replaced_by_a_constant() -> None:
    formula = stl("x - x(t-1) > 0", constants={"x": 5})
    assert formula.delays == (Delayed("x", 1.0),)


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, -(10**400), "5", None])
def test_a_constant_is_a_finite_number(value: Any) -> None:
    with pytest.raises(FormulaError, match=r"the constant T is .*, not a finite number"):
        stl("F[0, T] x > 0", constants={"T": value})


def test_constants_keep_the_tree_within_its_brackets() -> None:
    assert stl("x^k > 2 * k - k", constants={"k": -1}) == stl("x^(-1) > 2 * (-1) - (-1)")


# The finite reading.


def test_the_end_is_kept_and_is_a_float() -> None:
    formula = stl("F[0, 10] G (S < 20)", end=10)
    assert formula.end == 10.0
    assert isinstance(formula.end, float)
    assert stl("x > 0").end is None
    assert stl("x > 0", end=0).end == 0.0


@pytest.mark.parametrize("end", [-1, math.inf, math.nan, -math.inf, 10**400])
def test_the_end_is_a_time(end: float) -> None:
    with pytest.raises(FormulaError, match="end is a time from 0 on"):
        stl("x > 0", end=end)


# Mistakes are pointed at.


@pytest.mark.parametrize(
    ("text", "column", "message", "remedy"),
    [
        ("(I > 0) U[100, 120 (I == 0)", 20, "expected ']' after the interval", "U[100, 120]"),
        ("F[0, 5 x > 0", 8, "expected ']' after the interval", "F[100, 120]"),
        ("F[0 5] x > 0", 5, "expected ',' between the two bounds", "F[100, 120]"),
        ("G[5] x > 0", 4, "a window has two bounds", "[<=120]"),
        ("F[] x > 0", 3, "a window has two bounds", ""),
        ("F[,5] x > 0", 3, "bounds are numbers or named constants", ""),
        ("F[5, 2] x > 0", 2, "this window ends before it begins: 5 > 2", ""),
        ("F[-1, 5] x > 0", 3, "bounds are not negative", "from 0 up"),
        ("F[0, 5) x > 0", 7, "windows are closed", "[a, inf)"),
        ("F[inf, inf) x > 0", 2, "a window begins at a finite time", ""),
        ("F[<5] x > 0", 3, "a window cannot begin with <", "F[<=5]"),
        ("F[==5] x > 0", 3, "a window cannot begin with ==", "F[<=5]"),
        ("F(0, 5) x > 0", 4, "a comma outside a window", "square brackets"),
        ("F[0, T] x > 0", 6, "the bound T has no value", 'constants={"T": 10}'),
        ("F[0, 1e999] x > 0", 6, "larger than any number", "write inf"),
        ("x", 2, "x is a number, not a property", "x > 0"),
        ("F x", 4, "x is a number, not a property", "x > 0"),
        ("x & y > 0", 3, "x is a number, not a property", "x > 0"),
        ("(x) > 0 & 3", 12, "3 is a number, not a property", "3 > 0"),
        ("x > ", 4, "the text ends too soon", "'>'"),
        ("x > 0 &", 8, "the text ends too soon", "'&'"),
        ("F[0, 5]", 8, "the text ends too soon", "']'"),
        ("x > 0 U", 8, "the text ends too soon", "'U'"),
        ("& x > 0", 1, "& needs a formula on its left", ""),
        ("x > 0 & | y > 0", 9, "| needs a formula on its left", ""),
        ("U[0, 5] x > 0", 1, "U needs a formula on its left", "(I > 0) U[100, 120] (I == 0)"),
        ("x > 0 y > 0", 7, "an operator is missing before 'y'", "&, |, ->"),
        ("x > 0 G y > 0", 7, "an operator is missing before 'G'", "&, |, ->"),
        ("x => 3", 4, "=> is not an operator", ">="),
        ("x =< 3", 4, "=< is not a comparison", ""),
        ("t > 3", 1, "t stands only in delays", "`t`"),
        ("x + t > 3", 5, "t stands only in delays", "`t`"),
        ("x(t+1) > 0", 4, "delays look backwards", "X(t-1)"),
        ("x(t--1) > 0", 5, "bounds are not negative", ""),
        ("x(t-inf) > 0", 5, "a delay is finite", ""),
        ("x(t-d) > 0", 5, "the bound d has no value", 'constants={"d": 10}'),
        ("x(1) > 0", 3, "x is not a function or an operator", "a delay is X(t-1)"),
        ("x(y) > 0", 3, "x is not a function or an operator", "a delay is X(t-1)"),
        ("inf > x", 1, "inf stands only in windows", "`inf`"),
        ("(x > 0", 1, "this '(' is never closed", ""),
        ("x > 0)", 6, "this ')' is never opened", ""),
        ("x(t-1 > 0", 7, "'>' cannot stand here", ""),
        ("x > 1e999", 5, "larger than any number", ""),
        ("min(x) > 0", 1, "min takes two or more arguments, not 1", ""),
        ("x > `` ", 5, "an empty name", ""),
        ("x > y.z", 6, "'.' has no meaning here", "backquotes"),
        ("x ? 3", 3, "'?' has no meaning here", ""),
        ("x[0] > 0", 2, "a window without an operator", "behind F, G or U"),
        ("(x) U[0, 1] (x > 3)", 5, "before U stands a number", "(I > 0)"),
        ("(x > 0) [1, 2] (x > 1)", 9, "a window without an operator", "behind F, G or U"),
        ("(x > 0) => x < 3", 9, "=> is not an operator", "-> for 'implies'"),
        ("2x > 3", 2, "an operator is missing before 'x'", "2 * x"),
        ("x === 3", 5, "=== is not a comparison", "=="),
        ("¬(x > 3)", 1, "has no meaning here", "write !"),
        ("x ≤ 3", 3, "has no meaning here", "write <="),
        ("x > (y > 0)", 8, "'>' cannot stand here", ""),
        ("if(F x > 0, 1, 0) > 0", 4, "'F' cannot stand here", ""),
        ("F[0, 5]\n  x > 0 y", 9, "an operator is missing before 'y'", ""),
    ],
)  # fmt: skip
def test_a_mistake_is_pointed_at(text: str, column: int, message: str, remedy: str) -> None:
    with pytest.raises(FormulaError) as raised:
        stl(text)
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert raised.value.column == column
    assert raised.value.text == text


def test_the_error_of_the_design_reads_as_it_is_drawn_there() -> None:
    with pytest.raises(FormulaError) as raised:
        stl("(I > 0) U[100, 120 (I == 0)")
    assert str(raised.value) == (
        "expected ']' after the interval\n"
        "  (I > 0) U[100, 120 (I == 0)\n"
        "                     ^\n"
        "  intervals look like U[100, 120]"
    )


def test_the_nearest_constant_is_offered() -> None:
    with pytest.raises(FormulaError) as raised:
        stl("F[0, Tmx] x > 0", constants={"Tmax": 10, "k": 3})
    assert (raised.value.column, raised.value.remedy) == (6, "did you mean Tmax?")


@pytest.mark.parametrize("text", ["F[0, T] x > 0", "x(t-T) > 0", "F[T, 3] x > 0"])
def test_a_negative_constant_is_no_bound(text: str) -> None:
    with pytest.raises(FormulaError, match="the bound T = -1 is negative") as raised:
        stl(text, constants={"T": -1})
    assert raised.value.column == text.index("T") + 1


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_text_is_no_formula(text: str) -> None:
    with pytest.raises(FormulaError, match="a formula without any text"):
        stl(text)


@pytest.mark.parametrize("given_instead", [None, 3, b"x > 0", Formula(a)])
def test_what_is_no_text_is_no_formula(given_instead: Any) -> None:
    with pytest.raises(FormulaError, match="a formula is written as text, not as"):
        stl(given_instead)


@pytest.mark.parametrize("text", ["1/0 > x", "x > log(0)", "x > 9^9^9^9", "F x * (0/0) > 1"])
def test_a_constant_that_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(FormulaError, match="not a finite number"):
        stl(text)


def test_a_constant_that_overflows_after_it_is_put_in_is_refused() -> None:
    with pytest.raises(FormulaError, match="not a finite number"):
        stl("x > 1 / k", constants={"k": 0})


# Hostile text.

HOSTILE = {
    "a dunder name": "__class__ > 0",
    "a dunder bound": "F[0, __T] x > 0",
    "an attribute": "x.__class__ > 0",
    "a lambda": "(lambda: 0)() > 0",
    "a call": "__import__('os') > 0",
    "a string": "x > 'a'",
    "a statement": "x > 0; import os",
    "9,990 brackets": "(" * 9_990 + "x > 0" + ")" * 9_990,
    "10,000 brackets that open": "(" * 10_000,
    "10,000 windows that open": "F[" * 9_000,
    "19,990 negations": "!" * 19_990 + "x > 0",
    "9,990 operators": "F " * 9_990 + "x > 0",
    "2,000 windows": "G[0,1]" * 2_000 + "x > 0",
    "2,000 untils": " U ".join(["x > 0"] * 2_000),
    "2,000 implications": " -> ".join(["x > 0"] * 2_000),
    "2,000 equivalences": " <-> ".join(["x > 0"] * 2_000),
    "5,000 unary minuses": "-" * 5_000 + "x > 0",
    "a product of 9,000": "*".join("x" * 9_000) + " > 0",
    "a tower of powers": "x > 9^9^9^9",
    "a number of 19,000 digits": "x > " + "9" * 19_000,
    "a bound of 19,000 digits": "F[0, " + "9" * 19_000 + "] x > 0",
    "a name of 19,000 characters": "x" * 19_000 + " > 0",
    "a bound of 19,000 characters": "F[0, " + "x" * 19_000 + "] x > 0",
    "a name of 19,000 characters in a wrong place": "x" * 19_000 + " y > 0",
    "a number of 19,000 digits before a name": "x > " + "1" * 19_000 + "a",
    "19,999 backquotes": "`" * 19_999,
    "five megabytes": "x > 0 & " * 600_000 + "x > 0",
    "five megabytes of spaces": " " * 5_000_000,
    "a deep atom in a deep formula": "F " * 60 + "-" * 60 + "x > 0",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return outcomes_of("sateen.logic.parser:stl", "x > 0", HOSTILE)


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_text_is_refused_soon_and_in_bounded_memory(label: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(label, "never finished") == "FormulaError"


def test_long_conjunctions_and_chains_are_read_and_decided() -> None:
    path = Path([0], [1], "x", end=1)
    assert monitor(stl(" & ".join(["x > 0"] * 2_000)), path) is Verdict.TRUE
    assert monitor(stl(" < ".join(["x"] * 2_000)), path) is Verdict.FALSE
    assert monitor(stl("+".join(["x"] * 5_000) + " == 5000"), path) is Verdict.TRUE


def test_user_text_never_reaches_eval_exec_or_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(x > 0) U[0, T] (x - x(t-1) == -1 & if(x > 0, 1, 2)^2 > 1)"
    stl(text, constants={"T": 5})

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("Python itself was asked to run something")

    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile"):
            patched.setattr(builtins, name, refuse)
        verdict = monitor(stl(text, constants={"T": 5}), Path([0, 2], [1, 0], "x", end=9))
    assert verdict is Verdict.TRUE


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    for whole in (text, f"F[{text}] x > 0", f"x {text} 0"):
        try:
            formula = stl(whole)
        except FormulaError as error:
            _assert_points_into(whole, error)
        else:
            assert stl(str(formula)) == formula


def _assert_points_into(text: str, error: FormulaError) -> None:
    assert 0 <= error.position <= len(text)
    assert str(error)
