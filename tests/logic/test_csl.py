"""Properties in the PRISM language: which formula each is, what it is compared with, and what is refused by name."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import sateen as st
from sateen.core.errors import FormulaError, InputError
from sateen.engine.exact import exact
from sateen.logic.csl import read_properties
from sateen.logic.properties import Properties, Property
from sateen.model.prism import read_prism

MODEL = read_prism("""
    ctmc
    const int N;
    const double k;
    const double T2;              // for properties alone
    const double T3 = 2 * T2;
    const double T4 = T3 + 0;
    const double pace = 2 * k;
    const int three = 3;
    module m
        x : [0..5] init 1;
        y : int init 2;
        b : bool;
        [] x<5 -> k : (x'=x+1) & (b'=!b);
        [] x>0 -> N : (x'=x-1);
    endmodule
    formula total = x+y;
    formula late = x > T3;
    formula odd = mod(x, 2) = 1;
    label "full" = x=5;
    label "late" = late;
""")
THETA = {"N": 2, "k": 1.5}


def formula(path: str, **constants) -> str:
    properties = read_properties(f"const double T = 4; const double t; P=? [ {path} ];", MODEL, constants=constants)
    return str(properties["property_1"].formula)


def refusal(text: str, **constants) -> FormulaError:
    with pytest.warns(st.SateenWarning, match="1 of 1 properties cannot be asked"):
        properties = read_properties(text, MODEL, constants=constants)
    (error,) = properties.refused.values()
    return error


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("F x=5", "F x == 5"),
        ("F<=3 x=5 & b", "F[0, 3] (x == 5 & b == 1)"),
        ("F x=5 | b", "F (x == 5 | b == 1)"),
        ("F x=5 => b", "F (x == 5 -> b == 1)"),
        ("F x=5 <=> b", "F (x == 5 <-> b == 1)"),
        ("(F<=3 x=5) & b", "F[0, 3] x == 5 & b == 1"),
        ("(F<=1 b) & (G<=2 x>0)", "F[0, 1] b == 1 & G[0, 2] x > 0"),
        ("!(F<=1 b) | (G b)", "!F[0, 1] b == 1 | G b == 1"),
        ("b & x=1 U x=2 | x=3", "(b == 1 & x == 1) U (x == 2 | x == 3)"),
        ("G F<=3 b", "G F[0, 3] b == 1"),
        ("F<=1 b U x=1", "(F[0, 1] b == 1) U (x == 1)"),
        ("true U<=2 !b", "true U[0, 2] (!(b == 1))"),
        ("b = true U x=1", "(b == 1) U (x == 1)"),
        ("F x+y>=N*2-1", "F x + y >= N * 2 - 1"),
        ("F total=three", "F x + y == three"),
        ("F x>pace", "F x > 2 * k"),
        ("F odd", "F x - 2 * floor(x / 2) == 1"),
        ("F !odd", "F !(x - 2 * floor(x / 2) == 1)"),
        ("x=1", "x == 1"),
        ("true", "true"),
    ],
)
def test_operators_of_time_bind_more_loosely_than_those_of_logic(path, meaning):
    assert formula(path) == meaning


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("F<=3 b", "F[0, 3] b == 1"),
        ("F<3 b", "F[0, 3] b == 1"),
        ("F>=2 b", "F[2, inf) b == 1"),
        ("F>2 b", "F[2, inf) b == 1"),
        ("F[1,2.5] b", "F[1, 2.5] b == 1"),
        ("F [ 1 , T ] b", "F[1, 4] b == 1"),
        ("F=2 b", "F[2, 2] b == 1"),
        ("G<=2 b", "G[0, 2] b == 1"),
        ("b U<=T x=1", "(b == 1) U[0, 4] (x == 1)"),
        ("b U>=2 x=1", "(b == 1) U[2, inf) (x == 1)"),
        ("F<=T (b)", "F[0, 4] b == 1"),
        ("F<=T*2+1 (b)", "F[0, 9] b == 1"),
        ("F<=(T+1)/2 b", "F[0, 2.5] b == 1"),
        ("F<=min(T, 3) (b)", "F[0, 3] b == 1"),
        ("F<=three b", "F[0, 3] b == 1"),
        ("F<=t b", "F[0, 7] b == 1"),
        ("F<=T3 b", "F[0, 5] b == 1"),
        ("F<=T4-1 b", "F[0, 4] b == 1"),
    ],
)
def test_bounds_of_time_are_windows(path, meaning):
    assert formula(path, t=7, T2=2.5) == meaning


def test_labels_are_conditions_of_the_model_or_of_the_file():
    text = """
        label "half" = x >= limit & !"full";   // of the file
        const int limit = 3;
        P=? [ "init" U<=1 "half" ]
        P=? [ F "full" & b ]
    """
    found = read_properties(text, MODEL)
    assert [str(each.formula) for each in found.values()] == [
        "(x == 1 & y == 2 & b == 0) U[0, 1] (x >= 3 & x != 5)",
        "F (x == 5 & b == 1)",
    ]


def test_a_label_that_reads_an_open_constant_takes_its_value():
    assert formula('F "late"', T2=1.5) == "F x > 2 * 1.5"


def test_constants_of_the_file_may_be_defined_in_any_order():
    text = "const double a = 2*c; const int c = three+1; const bool yes = a>7; P=? [ F<=a x=c & yes ]"
    assert str(read_properties(text, MODEL)["property_1"].formula) == "F[0, 8] (x == 4 & true)"


def test_a_constant_or_label_without_value_is_an_error_of_what_uses_it_alone():
    text = 'const int c; const double twice = 2*c; label "l" = x>twice; P=? [ F "l" ]; P=? [ F b ]; P=? [ F<=twice b ]'
    with pytest.warns(st.SateenWarning, match="2 of 3 properties cannot be asked"):
        found = read_properties(text, MODEL)
    assert list(found) == ["property_2"]
    messages = [error.message for error in found.refused.values()]
    assert messages == ["the constant twice has no value"] * 2
    assert str(read_properties(text, MODEL, constants={"c": 1})["property_1"].formula) == "F x > 2"


def test_names_comparisons_and_bounds_are_kept():
    text = """
        "safe": P>=0.9 [ G<=5 x<5 ];
        P<1/4 [ F b ]; P<=0.1 [ F b ];;
        "risk": P > T/10 [ F<=T b ];
        const double T = 2;
        "how": P=? [ F b ];
    """
    filtered = 'filter(state, P>=0.2 [ F b ], "init")\n"last": filter(state, P=? [ F b ], "init")\n"end": P=? [ F b ]'
    assert list(read_properties(filtered, MODEL)) == ["property_1", "last", "end"]
    found = read_properties(text, MODEL)
    kept = {name: (each.name, each.comparison, each.bound) for name, each in found.items()}
    assert kept == {
        "safe": ("safe", ">=", 0.9),
        "property_2": ("property_2", "<", 0.25),
        "property_3": ("property_3", "<=", 0.1),
        "risk": ("risk", ">", 0.2),
        "how": ("how", None, None),
    }


def test_properties_may_stand_without_semicolons():
    text = """
        const double T = 1;
        P=? [ F<=T b ]
        "named": P=?[ (F b) ] // and
        P>0.5 [ b U x=1 ]
        label "l" = b;
        P=? [F "l"]
    """
    assert list(read_properties(text, MODEL)) == ["property_1", "named", "property_3", "property_4"]


@pytest.mark.parametrize(
    ("path", "message", "place"),
    [
        ("X b", "X is not supported", "X b"),
        ("b U>2 x=1", "U with a bound > is not supported", "2 x"),
        ("F<=-1 b", "the bound is -1", "-1"),
        ("F<0 b", "nothing lies before time 0", "0 b"),
        ("F[2,1] b", "this window ends before it begins: 2 > 1", "2,1"),
        ("F<=k b", "the bound reads k, which has no value", "k b"),
        ("F<=b b", "the bound is a number, and this is true or false", "b b"),
        ("F<=t b", "the constant t has no value", "t b"),
        ("F x=t", "the constant t has no value", "t ]"),
        ("F x<T2", "the constant T2 has no value", "x<T2"),
        ("F<=T4 b", "the constant T2 has no value", "T4 b"),
        ("F<=pace b", "the bound reads k, which has no value", "pace b"),
        ('F "late"', "the constant T2 has no value", '"late"'),
        ('F "deadlock"', 'the label "deadlock" is not supported', '"dead'),
        ('F "fill"', 'there is no label "fill" before this', '"fill"'),
        ("F z=1", "z is not a variable, constant or formula", "z=1"),
        ("F x", "this is a number, not a property", "x ]"),
        ("F x=b", "= compares true or false with a number", "b ]"),
        ("b & F x=1", "F needs brackets here", "F x=1"),
        ("!F b", "F needs brackets here", "F b"),
        ("G (b => F<=1 x=1)", "F needs brackets here", "F<=1"),
        ("U b", "U needs a formula on its left", "U b"),
        ("a U b U x=1", "U needs brackets here", "U x=1"),
        ("(F b) + 1 > 2", "F is an operator of time, and this is a condition on one moment", "F b"),
        ("F (P>0.5 [ F b ])", "P inside P or R is not supported", "P>0.5"),
        ("F (R>0.5 [ F b ])", "the operator R is not supported inside P or R", "R>0.5"),
        ("F (S>0.5 [ b ])", "the operator S is not supported inside P or R", "S>0.5"),
        ('F b {"init"}{max}', "filters in braces are not supported", '{"init"'),
        ("F x==2", "== is not an operator of PRISM", "=2"),
        ("F b)", "this ')' is never opened", ")"),
        ("F " * 150 + "b", "more than 100 levels of operations", "F "),
        ("(" * 150 + "b", "more than 100 levels of brackets", "("),
    ],
)
def test_paths_that_are_wrong_or_not_supported_are_refused_by_name_and_place(path, message, place):
    text = f"// first\nconst double T = 4; const double t;\nP=? [ {path} ];"
    error = refusal(text)
    assert error.message == message
    assert error.text == text
    assert text[error.position :].startswith(place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('R{"customers"}=? [ S ]', "rewards in the long run (S) are not supported"),
        ("Rmax=? [ F b ]", "Rmax is not supported"),
        ('R{"customers"}min=? [ F b ]', 'R{"customers"}min is not supported'),
        ("R=? [ F b ]", "the model has no rewards"),
        ("S=? [ b ]", "the steady-state operator S is not supported"),
        ("E [ F b ]", "the operator E of CTL is not supported"),
        ("A [ G b ]", "the operator A of CTL is not supported"),
        ("filter(max, P=? [ F b ], x=1)", "this filter(max, ...) is about other states than the initial one"),
        ("Pmin=? [ F b ]", "Pmin is not supported"),
        ("P max=? [ F b ]", "P max is not supported"),
        ("multi(P=? [ F b ], P>=0.5 [ F b ])", "several objectives (multi) are not supported"),
        ("<<a>> P=? [ F b ]", "the strategies of << are not supported"),
        ("P>=2 [ F b ]", "a probability is between 0 and 1, not 2"),
        ("P=0.5 [ F b ]", "P is followed by =?, or by a comparison"),
        ("P=? [ F b ] + 1", "a property ends with ]"),
        ("1 - P=? [ F b ]", "a property begins with P or R"),
        ("P=? [ F b", "the text ends too soon"),
    ],
)
def test_what_asks_for_something_else_is_refused_by_name(text, message):
    assert refusal(text).message == message


def test_a_refused_property_does_not_keep_the_others_from_being_read():
    asked = '"a": S=? [ b ]; "b": P=? [ F<=t b ]; "c": P=? [ F b ]; "d": P=? [ F (b ];'
    with pytest.warns(st.SateenWarning) as warned:
        found = read_properties(f"const double t; {asked}", MODEL)
    assert str(warned[0].message) == (
        "3 of 4 properties cannot be asked:\n"
        "  line 1, a: the steady-state operator S is not supported\n"
        "  line 1, b: the constant t has no value\n"
        "  line 1, d: ']' cannot stand here"
    )
    assert list(found) == ["c"]
    assert set(found.refused) == {"a", "b", "d"}
    assert "c" in found
    assert "a" not in found
    for _ in range(2):
        with pytest.raises(FormulaError, match="the steady-state operator S is not supported"):
            found["a"]
    assert found.get("e") is None
    with pytest.raises(KeyError, match="no property e; there are c, a, b, d"):
        found["e"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("const int a; const int a;", "a is declared already"),
        ("const double k = 1;", "k is declared already"),
        ("const int a = 2.5;", "a needs a whole number, and this is a double"),
        ("const int a = x;", "the constant a reads x, which has no value"),
        ('label "full" = b;', 'the label "full" has a meaning already'),
        ('label "z" = x;', "this is a number, not a property"),
        ('label "z" = b; label "z" = b;', 'the label "z" has a meaning already'),
        ("label z = b;", "the name of a label stands in double quotes"),
        ('"p": P=? [ F b ]; "p": P=? [ G b ];', "two properties are called p"),
        ("P=? [ F b ];" * 1001, "more than 1,000 properties in one file"),
        (" " * 200_001, "properties of 200,001 characters; at most 200,000 are read"),
        (5, "properties are written as text, not as int"),
    ],
)
def test_files_that_are_wrong_as_a_whole_are_refused_at_once(text, words):
    with pytest.raises(FormulaError) as caught:
        read_properties(text, MODEL)
    assert caught.value.message == words


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"z": 1}, "there is no constant z to be given here"),
        ({"tt": 1}, "did you mean t?"),
        ({"k": 1}, "the model has it, but was read without a value for it"),
        ({"three": 10**6000}, "the constant three is a number of too many digits here, but"),
        ({"three": 4}, "the constant three is 4 here, but the model was read with 3"),
        ({"t": "soon"}, "the constant t is 'soon', not a finite number"),
        ({"T2": math.nan}, "not a finite number"),
        ({"T2": 10**400}, "not a finite number"),
        ({"t": 10**6000}, "the constant t is a number of too many digits, not a finite number"),
        ({"T3": 1}, "the constant T3 has a value already: 2 * T2"),
    ],
)
def test_values_that_do_not_fit_are_refused(constants, words):
    with pytest.raises(InputError) as caught:
        read_properties("const double t; P=? [ F<=t b ]", MODEL, constants=constants)
    assert words in str(caught.value)


def test_a_constant_that_has_a_value_is_not_given_another():
    with pytest.raises(FormulaError, match="the constant T has a value already"):
        read_properties("const double T = 1; P=? [ F<=T b ]", MODEL, constants={"T": 2})


def test_the_constants_the_model_was_read_with_may_be_given_again():
    assert read_properties("P=? [ F b ]", MODEL, constants={"three": 3}).keys() == {"property_1"}


def test_an_empty_file_has_no_properties():
    assert dict(read_properties("// nothing\n ;;", MODEL)) == {}


# What W and R mean, by what is known of them.

PATHS = ("x<4", "b", "x=5 | y>3", "odd")
WINDOWS = ("", "<=1.5", "[0,2]", "<=0.25")


def probability(path: str) -> float:
    found = read_properties(f"P=? [ {path} ]", MODEL)["property_1"]
    assert isinstance(found, Property)
    bounded = read_prism(TEXT).model
    return float(exact(bounded, found.formula, THETA)[0])


TEXT = """
    ctmc const int N; const double k;
    module m
        x : [0..5] init 1; y : int init 2; b : bool;
        [] x<5 -> k : (x'=x+1) & (b'=!b);
        [] x>0 -> N : (x'=x-1);
    endmodule
"""


@given(some.sampled_from(PATHS), some.sampled_from(PATHS), some.sampled_from(WINDOWS))
@settings(max_examples=12, deadline=None)
def test_weak_until_is_until_or_always(left, right, window):
    weak = probability(f"{left} W{window} {right}")
    assert weak == pytest.approx(probability(f"({left} U{window} {right}) | (G{window} {left})"), abs=1e-9)


@given(some.sampled_from(PATHS), some.sampled_from(PATHS), some.sampled_from(WINDOWS))
@settings(max_examples=12, deadline=None)
def test_release_is_the_dual_of_until(left, right, window):
    release = probability(f"{left} R{window} {right}")
    assert release == pytest.approx(1 - probability(f"!({left}) U{window} !({right})"), abs=1e-9)


def test_the_formulas_are_those_that_sateens_own_text_gives():
    found = read_properties("P=? [ F<=3 x=5 & b ]; P=? [ G[1,2] x<5 ]; P=? [ b U x>3 ]", MODEL)
    assert isinstance(found, Properties)
    written = ["F[0, 3] (x == 5 & b == 1)", "G[1, 2] x < 5", "b == 1 U x > 3"]
    assert [each.formula for each in found.values()] == [st.stl(text) for text in written]
