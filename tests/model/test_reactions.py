"""Reaction text: what it says, how it reads back, and where each mistake is pointed at."""

from __future__ import annotations

import builtins
import math
import warnings
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile import outcomes_of
from sateen.core.errors import ModelError, ModelWarning
from sateen.engine.simulate import simulate
from sateen.language.expression import Name, Number, Operation, number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Constant, Model, Parameter, Transition, Variable
from sateen.model.reactions_text import mass_action
from strategies import models


def parse(text: str) -> Model:
    """The model, whatever the reader doubts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.parse(text)


def reaction(text: str, species: str = "A = 9, B = 9, C = 9") -> Transition:
    """One reaction among A, B and C."""
    return parse(f"species {species}\n{text}").transitions[0]


# What it says.


def test_a_model_says_species_constants_parameters_and_reactions() -> None:
    model = Model.parse("""
        species S = 95, I = I0, R = 0      # counts
        constant N = 100
        parameter gamma = 0.05, beta
        infect:  S + I -> 2 I  @ beta * S * I / N
        recover: I -> R        @ gamma * I
    """)
    assert model == Model(
        variables=(Variable("S", Number(95.0)), Variable("I", Name("I0")), Variable("R", Number(0.0))),
        transitions=(
            Transition("infect", parse_expression("beta * S * I / N"), (("S", 1), ("I", 1)), (("I", 2),)),
            Transition("recover", parse_expression("gamma * I"), (("I", 1),), (("R", 1),)),
        ),
        parameters=(Parameter("gamma", 0.05), Parameter("beta"), Parameter("I0")),
        constants=(Constant("N", Number(100.0)),),
    )
    assert model.warnings == ()


def test_undeclared_names_are_parameters_without_a_default_in_order_of_appearance() -> None:
    model = Model.parse("parameter z = 1\nspecies A = a\nconstant c = b\nA -> 0 @ A * d / (c + z + e)")
    assert model.parameters == (Parameter("z", 1.0), Parameter("a"), Parameter("b"), Parameter("d"), Parameter("e"))


def test_species_may_be_declared_after_constants_and_parameters_and_in_many_lines() -> None:
    model = Model.parse(
        "constant n = 2 * m\nparameter m\nspecies A = n\nspecies B = 0\nA -> B @ A\nspecies C = 3\nC -> 0 @ C"
    )
    assert model.species == ("A", "B", "C")


@pytest.mark.parametrize("nothing", ["0", "∅"])
def test_nothing_is_written_0(nothing: str) -> None:
    assert reaction(f"{nothing} -> A @ k").consumed == ()
    assert reaction(f"A -> {nothing} @ A").produced == ()


@pytest.mark.parametrize("side", ["2 A", "2A", "2*A", "2 * A", "A + A", "  A+A "])
def test_two_of_a_species_are_written_in_many_ways(side: str) -> None:
    assert reaction(f"{side} -> B @ A * (A - 1)").consumed == (("A", 2),)
    assert reaction(f"B -> {side} @ B").produced == (("A", 2),)


def test_more_of_one_species_adds_up() -> None:
    assert reaction("A + 2 B + A + 3 B -> 0 @ mass_action(k)").consumed == (("A", 2), ("B", 5))
    assert reaction("1000 A -> 0 @ k * A when A >= 1000").consumed == (("A", 1000),)


def test_a_catalyst_stands_on_both_sides() -> None:
    assert reaction("A + B -> A + C @ k * A * B").change == {"B": -1, "C": 1}


def test_reactions_without_a_name_are_numbered_by_their_place() -> None:
    model = Model.parse("species A = 1\nA -> 0 @ A\nr1: A -> 0 @ A\n0 -> A @ k\nx: 0 -> A @ k\n0 -> A @ k")
    assert [transition.name for transition in model.transitions] == ["r1_", "r1", "r3", "x", "r5"]


def test_comments_and_empty_lines_say_nothing() -> None:
    plain = "species A = 1\nA -> 0 @ k * A"
    assert Model.parse("# head\n\n   # more\nspecies A = 1# one\n\nA -> 0 @ k * A   # A -> 0 @ 3\n#") == Model.parse(
        plain
    )


def test_a_number_sign_in_backquotes_begins_no_comment() -> None:
    model = Model.parse("species `A#1` = 4 # A#1\n`A#1` -> 0 @ k * `A#1`  # `")
    assert model.species == ("A#1",)
    assert model.transitions[0].rate == Operation("*", (Name("k"), Name("A#1")))


def test_white_space_is_free() -> None:
    assert Model.parse("species\tA=1 ,B = 2\n\tx :A->B@k*A\r\n") == Model.parse(
        "species A = 1, B = 2\nx: A -> B @ k * A"
    )


@pytest.mark.parametrize(
    ("written", "default"), [("k = 0.5", 0.5), ("k = -2", -2.0), ("k = 1/3", 1 / 3), ("k = 2^10", 1024.0), ("k", None)]
)
def test_a_default_is_a_number(written: str, default: float | None) -> None:
    model = Model.parse(f"species A = 1\nparameter {written}\n0 -> A @ abs(k)")
    assert model.parameters == (Parameter("k", default),)


def test_a_guard_stands_after_when() -> None:
    transition = reaction("A -> B @ k * A when B < 5 and A >= 1")
    assert transition.guard == parse_condition("B < 5 and A >= 1")
    assert transition.rate == parse_expression("k * A")
    assert reaction("A -> B @ k * A").guard is None


def test_a_name_that_holds_when_is_no_guard() -> None:
    assert reaction("A -> B @ whenever * A").guard is None
    assert reaction("A -> B @ `say when` * A").rate == parse_expression("`say when` * A")


# Mass action.


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("0 -> A @ mass_action(k)", "k"),
        ("A -> 0 @ mass_action(k)", "k * A"),
        ("A + B -> C @ mass_action(k)", "k * A * B"),
        ("2 A -> B @ mass_action(k)", "k * A * (A - 1) / 2"),
        ("3 A -> B @ mass_action(k)", "k * A * (A - 1) * (A - 2) / 6"),
        ("2 A + B -> C @ mass_action(k)", "k * A * (A - 1) / 2 * B"),
        ("A -> 0 @ mass_action( 2 * (k + 1) )", "2 * (k + 1) * A"),
        ("A -> 0 @ mass_action(k) when A > 3", "k * A"),
        ("A + B -> 2 A @ mass_action(k / N)", "k / N * A * B"),
    ],
)
def test_mass_action_is_the_constant_times_the_ways_to_choose_the_reactants(text: str, rate: str) -> None:
    assert reaction(text).rate == parse_expression(rate)


@settings(max_examples=60)
@given(st.integers(0, 12), st.integers(0, 6), st.integers(0, 12), st.integers(0, 6))
def test_mass_action_counts_ways_to_choose(a: int, of_a: int, b: int, of_b: int) -> None:
    consumed = tuple((name, count) for name, count in (("A", of_a), ("B", of_b)) if count)
    rate = mass_action(Name("k"), consumed)
    assert rate.evaluate({"k": 0.5, "A": a, "B": b}) == 0.5 * math.comb(a, of_a) * math.comb(b, of_b)


@pytest.mark.parametrize("count", [20, 99, 150, 200, 1000])
def test_mass_action_of_many_is_read_back_or_refused_with_a_caret(count: int) -> None:
    text = f"species A = 2000\n{count} A -> 0 @ mass_action(k)"
    try:
        model = Model.parse(text)
    except ModelError as error:
        _assert_points_into(text, error)
    else:
        assert Model.parse(str(model)) == model
        assert math.isfinite(simulate(model, {"k": 1e-300}, until=1e-9, seed=1).end)


def _assert_points_into(text: str, error: ModelError) -> None:
    assert 0 <= error.position <= len(text)
    assert error.line == text.count("\n", 0, error.position) + 1


@pytest.mark.parametrize("rate", ["my_mass_action_k * A", "`mass_action` * A", "mass_actions * A"])
def test_a_name_that_only_holds_mass_action_is_a_name(rate: str) -> None:
    assert reaction(f"A -> 0 @ {rate}").rate == parse_expression(rate)


# Reading back.

SIR = """
species S = 95, I = I0, R = 0
constant N = 100
parameter gamma = 0.05, beta
infect:  S + I -> 2 I  @ beta * S * I / N
recover: I -> R        @ gamma * I
"""


@pytest.mark.parametrize(
    "text",
    [
        SIR,
        "species A = 1\n0 -> A @ mass_action(k)\n2 A -> 0 @ mass_action(j)\n",
        "species A = n, B = 2 * n + 1\nA + 3 B -> 2 A @ k * A * B * (B - 1) * (B - 2) when A > 0 or B < 7\n",
        "species A = 5\nA -> 0 @ if(A > n, 2 * A, A^2) / max(1, k)\n",
        "species `p53 (active)` = 3, `2x` = 0\n`fast step`: `p53 (active)` -> 2 `2x` @ `k on` * `p53 (active)`\n",
        "species `if` = 3, `min` = 0\n`true`: `if` -> `min` @ `or` * `if`\n",
        "species A = 1\nparameter k = 1e-7, j = 1e+20, i = -0.1, h = 123456789\n0 -> A @ exp(i) * k * j * h\n",
        "species t = 1, time = 2\nt -> time @ t * k\n",
    ],
)
def test_a_model_reads_back_from_its_text(text: str) -> None:
    model = parse(text)
    assert parse(str(model)) == model
    assert str(parse(str(model))) == str(model)


@pytest.mark.parametrize(
    "name",
    ["when", "mass_action", "species", "constant", "parameter", "a->b", "a<-b", "a<=b", "a=>b", "a@b", "a+b", "a:b",
     "a,b", "a=b", "#a", "0", "∅", "2 A", " a", "a ", "a when b", "f(x", "x)", ":=", "inf", "t", "F", "A'"],
)  # fmt: skip
def test_any_name_can_be_written_in_backquotes(name: str) -> None:
    model = Model(
        variables=(Variable(name, Number(3.0)), Variable("B", Name("n"))),
        transitions=(
            Transition("first", parse_expression(f"k * `{name}`"), ((name, 1),), (("B", 1),)),
            Transition(
                name,
                parse_expression(f"k * B * `{name}`"),
                (("B", 1),),
                ((name, 2),),
                guard=parse_condition(f"`{name}` < 9"),
            ),
            Transition("third", parse_expression("k")),
        ),
        parameters=(Parameter("n", 2.0), Parameter("k", 1.0)),
    )
    assert Model.parse(str(model)) == model


@pytest.mark.parametrize("name", ["when", "mass_action", "species", "a->b", "t", "+", "x)"])
def test_parameters_and_constants_may_have_any_name_too(name: str) -> None:
    rate = Operation("*", (Name("A"), Operation("+", (Name(name), Name("c")))))
    parameter = Model(
        (Variable("A", Number(1.0)),), (Transition("r", rate, (("A", 1),)),), (Parameter(name), Parameter("c"))
    )
    assert Model.parse(str(parameter)) == parameter
    constant = Model(
        (Variable("A", Number(1.0)),),
        (Transition("r", rate, (("A", 1),)),),
        (Parameter("k"),),
        (Constant("c", Name("k")), Constant(name, Number(2.0))),
    )
    assert Model.parse(str(constant)) == constant


@settings(max_examples=80)
@given(models())
def test_any_model_of_the_intermediate_form_reads_back_from_its_text(model: Model) -> None:
    assert parse(str(model)) == model


@given(st.lists(st.text(max_size=30), max_size=3).map(tuple))
def test_what_a_model_assumes_reads_back_from_its_text(assumptions: tuple[str, ...]) -> None:
    model = replace(parse("species X = 1\ndecay: X -> 0 @ X"), assumptions=assumptions)
    assert parse(str(model)).assumptions == assumptions


def test_an_assumption_may_be_written_by_hand() -> None:
    model = parse('species X = 1\nassumes "cells #1 do not die"  # but others may\n0 -> X @ 1')
    assert model.assumption == "cells #1 do not die"
    named = parse("species assumes = 1\nassumes -> 0 @ 2 * assumes")
    assert named.species == ("assumes",)
    with pytest.raises(ModelError, match="a sentence in double quotes is missing here"):
        parse('species X = 1\nassumes "cells')


@given(st.text(max_size=60))
def test_any_text_is_a_model_or_refused_with_a_place_in_it(text: str) -> None:
    for whole in (text, f"species A = 1\n{text}", f"species A = 1\nA -> 0 @ {text}"):
        try:
            parse(whole)
        except ModelError as error:
            _assert_points_into(whole, error)


# Mistakes are pointed at.


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "remedy"),
    [
        # Declarations.
        ("species A = 1, A = 2\nA -> 0 @ A", 1, 16, "A is declared twice", "first on line 1"),
        ("species A = 1\n\nconstant A = 2\nA -> 0 @ A", 3, 10, "A is declared twice", "first on line 1"),
        ("parameter k\nspecies A = 1, k = 2\nA -> 0 @ A", 2, 16, "k is declared twice", "first on line 1"),
        ("species A = 1\nconstant c = 1\nparameter `c`\nA -> 0 @ A", 3, 11, "c is declared twice", "first on line 2"),
        ("species A\nA -> 0 @ A", 1, 9, "A needs an initial count", "species A = 0"),
        ("species A = 1\nconstant N\nA -> 0 @ A", 2, 10, "N needs a value", "constant N = 100"),
        ("species A = 1\nparameter k = 2 * j\nA -> 0 @ A", 2, 15, "a default is a number", "constant k = 2 * j"),
        ("species 2A = 1\nA -> 0 @ A", 1, 9, "expected a name and a value", ""),
        ("species A == 1\nA -> 0 @ A", 1, 9, "expected a name and a value", ""),
        ("species A = 1,\nA -> 0 @ A", 1, 15, "expected a name and a value", ""),
        ("species A = 1;\nA -> 0 @ A", 1, 14, "';' has no meaning here", ""),
        ("species A = 1 +\nA -> 0 @ A", 1, 16, "ends too soon", ""),
        ("species __A = 1\n0 -> __A @ k", 1, 9, "names do not begin with two underscores", ""),
        ("species `A\x1b` = 1\n0 -> A @ k", 1, 9, "characters that cannot be seen", "leave them out"),
        ("species A = 1\n`b\u202e`: 0 -> A @ k", 2, 1, "characters that cannot be seen", "leave them out"),
        ("species A = 1\nevent `b\x9b`: A := 0 when A > 2", 2, 7, "characters that cannot be seen", "leave them out"),
        ("specie A = 1\nA -> 0 @ A", 1, 1, "neither a declaration nor a reaction", "did you mean species?"),
        ("species A = 1\n  A + B\nA -> 0 @ A", 2, 3, "neither a declaration nor a reaction", "a reaction looks like"),
        ("species A = B, B = 1\nA -> 0 @ A", 1, 9, "A cannot read the species B", "before the run begins"),
        ("species A = 1\nconstant c = 2 * A\nA -> 0 @ A * c", 2, 10, "c cannot read the species A", "before the run"),
        ("constant a = b\nconstant b = 2\nspecies A = a\nA -> 0 @ A", 1, 10, "which is defined later", "swap"),
        ("constant a = a\nspecies A = a\nA -> 0 @ A", 1, 10, "a reads the constant a", ""),
        # Reactions.
        ("species A = 1\nA -> 0", 2, 7, "this reaction has no rate", "after @"),
        ("species A = 1\nA -> 0 @", 2, 9, "this reaction has no rate", "after @"),
        ("species A = 1\nA -> 0 @ when A > 0", 2, 20, "this reaction has no rate", "after @"),
        ("species A = 1\nA -> 0 @ A @ 3", 2, 14, "a second rate", "one @"),
        ("species A = 1\nA <-> 0 @ A", 2, 3, "arrow of a reaction", "two reactions"),
        ("species A = 1\nA => 0 @ A", 2, 3, "arrow of a reaction", "->"),
        ("species A = 1\nA -> A -> 0 @ A", 2, 1, "one arrow", "looks like"),
        ("species A = 1\nA @ A", 2, 1, "one arrow", "looks like"),
        ("species A = 1\nA -> B @ A", 2, 6, "B is not a species", "declare it first: species B = 0"),
        ("species Alpha = 1\nx: Alpa -> 0 @ k", 2, 4, "Alpa is not a species", "did you mean Alpha?"),
        ("species A = 1\nA + -> 0 @ A", 2, 5, "a species is missing here", ""),
        ("species A = 1\nA -> 0.5 A @ A", 2, 6, "'0.5 A' is not a species", ""),
        ("species A = 1\nA -> k * A @ A", 2, 6, "'k * A' is not a species", "the rate follows @"),
        ("species A = 1\n0 A -> A @ A", 2, 1, "between 1 and 1,000,000,000", ""),
        ("species A = 1\nA -> 1000000001 A @ A", 2, 6, "between 1 and 1,000,000,000", ""),
        ("species A = 1\nx: A -> 0 @ A\n\nx: 0 -> A @ k", 4, 1, "two reactions are called x", "another name"),
        ("species A = 1\nA -> 0 @ 2 * mass_action(k)", 2, 14, "mass_action(k) stands alone", "mass_action(2 * k)"),
        ("species A = 1\nA -> 0 @ mass_action(k) * 2", 2, 10, "mass_action(k) stands alone", "mass_action(2 * k)"),
        ("species A = 1\nA -> 0 @ mass_action(k +)", 2, 25, "ends too soon", ""),
        ("species A = 1\nA -> 0 @ k * (A", 2, 14, "this '(' is never closed", ""),
        ("species A = 1\nA -> 0 @ k * 2 A", 2, 16, "an operator is missing before 'A'", "2 * A"),
        ("species A = 1\nA -> 0 @ k * A when A", 2, 22, "ends too soon", ""),
        ("species A = 1\nA -> 0 @ k * A when A > 0 B", 2, 27, "an operator is missing before 'B'", ""),
        ("species A = 1\nA -> 0 @ A(t-1)", 2, 11, "only formulas have delays", ""),
        ("species A = 1\nA -> 0 @ k * foo(A)", 2, 17, "foo is not a function", "min, max"),
        # Checks.
        ("species A = 1\n\tA -> 0 @  -k * A", 2, 12, "the rate -k * A is never positive", "change its sign"),
        ("species A = 1, B = 2\n x: A + B -> 0 @ k * A", 2, 5, "x consumes B, which its rate", "when B >= 1"),
        ("species A = 1\nA -> 0 @ A * t", 2, 10, "t is not declared", "the clock is time; if t is not a time"),
        ("species A = 1\nconstant c = time\nA -> 0 @ A * time", 2, 10, "c cannot read the clock", "before the run"),
        ("species A = time\nA -> 0 @ A when time > 1", 1, 9, "A cannot read the clock", "before the run"),
        ("species A = 1\nobservable o = time\nA -> 0 @ A * time", 2, 12, "an observable cannot read", "the state"),
        # The whole.
        ("constant N = 3\n", 1, 1, "this model has no species", "species S = 95"),
        ("", 1, 1, "this model has no species", "species S = 95"),
        ("species A = 1", 1, 14, "this model has no reactions", "I -> R"),
    ],
)  # fmt: skip
def test_a_mistake_is_pointed_at(text: str, line: int, column: int, message: str, remedy: str) -> None:
    with pytest.raises(ModelError) as raised:
        Model.parse(text)
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert (raised.value.line, raised.value.column) == (line, column)
    assert raised.value.text == text


def test_a_mistake_is_shown_with_its_line() -> None:
    with pytest.raises(ModelError) as raised:
        Model.parse("species S = 95, I = 5\n\ninfect: S + I -> 2 I @ beta S * I\n")
    assert str(raised.value) == (
        "an operator is missing before 'S' (line 3)\n"
        "  infect: S + I -> 2 I @ beta S * I\n"
        "                              ^\n"
        "  a product is written beta * S"
    )


@pytest.mark.parametrize("given_instead", [None, 3, b"species A = 1"])
def test_what_is_no_text_is_no_model(given_instead: Any) -> None:
    with pytest.raises(ModelError, match="a model is written as text, not as"):
        Model.parse(given_instead)


# Doubts.


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "species A = 1\nA -> 0 @ k when A > 0",
            "line 2: r1 consumes A, which its rate k does not see; only its guard keeps A from falling below 0",
        ),
        ("species A = 1\n\nparameter q = 1\nA -> 0 @ k * A", "line 3: nothing uses the parameter q"),
        (
            "species A = 1\nparameter gamma = 1\nA -> 0 @ gama * A",
            "line 2: nothing uses the parameter gamma; was it meant by gama?",
        ),
        (
            "species A = 9\nx: 2 A -> 0 @ k * A",
            "line 2: x takes 2 A and may still fire with 1 left; "
            "its rate should be 0 there: mass_action(k), or a guard: when A >= 2",
        ),
    ],
)
def test_what_is_legal_but_doubtful_is_a_warning_with_its_line(text: str, warning: str) -> None:
    with pytest.warns(ModelWarning) as caught:
        model = Model.parse(text)
    assert model.warnings == (warning,)
    assert [str(each.message) for each in caught] == [warning]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "text",
    [
        "species A = n\nparameter n\nA -> 0 @ A",
        "species A = 1\nparameter c\nconstant d = c\nA -> 0 @ A * d",
        "species A = 1\nparameter c\nA -> 0 @ A when A > c",
        "species A = 1\nparameter t\nA -> 0 @ A * t",
        "species A = 1, time = 4\nA -> 0 @ A * time",
    ],
)
def test_a_parameter_that_a_count_a_constant_a_rate_or_a_guard_reads_is_used(text: str) -> None:
    assert Model.parse(text).warnings == ()


# Hostile text.

HOSTILE = {
    "10,000 brackets in a rate": "species A = 1\nA -> 0 @ " + "(" * 9_000 + "A" + ")" * 9_000,
    "a dunder": "species A = 1\nA -> 0 @ A * __import__",
    "an attribute": "species A = 1\nA -> 0 @ A.__class__",
    "a tower of powers": "species A = 9^9^9^9\nA -> 0 @ A",
    "ten megabytes": "species A = 1\n" + "A -> 0 @ A\n" * 1_000_000,
    "19,000 backquotes": "species A = 1\n" + "`" * 19_000 + " -> 0 @ A",
    "20,000 plus signs": "species A = 1\n" + "A + " * 20_000 + " -> 0 @ A",
    "a stoichiometry of 5,000 digits": "species A = 1\n" + "9" * 5_000 + " A -> 0 @ A",
    "190,000 equals signs": "species A = 1\n" + "=" * 190_000 + " @ A",
    "190,000 dashes": "species A = 1\n" + "-" * 190_000 + " @ A",
    "190,000 spaces in a term": "species A = 1\n0 -> 2" + " " * 190_000 + "! @ A",
    "190,000 spaces after initially": "species A = 1\nevent e: A := 0 when A > 2 initially" + " " * 190_000 + "x y",
    "half a molecule": "species A = 2.5\nA -> 0 @ A",
    "a negative count": "species A = -1\nA -> 0 @ A",
    "a count beyond the exact whole numbers": "species A = 1e300\nA -> 0 @ A",
}
LARGE = {"a large count": "species A = 4e15\nA -> 0 @ A"}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    harmless = "species A = 1\nA -> 0 @ A"
    return outcomes_of("sateen.model.model:Model.parse", harmless, {**HOSTILE, **LARGE})


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_text_is_refused_soon(label: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(label, "never finished") == "ModelError"


@pytest.mark.parametrize("label", LARGE)
def test_large_counts_are_read_soon(label: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(label, "never finished") == "accepted"


def test_user_text_never_reaches_eval_exec_or_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.parse(SIR)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("Python itself was asked to run something")

    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile"):
            patched.setattr(builtins, name, refuse)
        again = Model.parse(SIR)
        path = simulate(again, {"beta": 0.1, "I0": 5}, until=1, seed=1)
    assert again == model
    assert path.end == 1


def test_numbers_keep_every_digit() -> None:
    for value in (0.1, 1 / 3, 1e-300, 123456789.123456789, -2.5e-9):
        model = Model.parse(f"species A = 1\nparameter k = {value!r}\n0 -> A @ abs(k)")
        assert model.parameters == (Parameter("k", value),)
        assert Model.parse(str(model)).parameters == (Parameter("k", value),)
        assert number(value).evaluate({}) == value
