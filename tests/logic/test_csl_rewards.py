"""R and filters in the PRISM language: which reward each asks for, and what is refused by name."""

from __future__ import annotations

import math

import pytest

import sateen as st
from sateen.core.errors import FormulaError, InputError
from sateen.language.grammar import parse_condition, parse_expression
from sateen.logic.csl import read_properties
from sateen.logic.rewards import Reward
from sateen.model.prism import read_prism

MODEL = read_prism("""
    ctmc
    const double k;
    const double price;           // of rewards alone
    const int limit = 5;
    module m
        x : [0..5] init 1;
        b : bool;
        [up] x<limit -> k : (x'=x+1);
        [up] x=limit -> 2 : true;
        []   x>0     -> 3 : (x'=x-1) & (b'=!b);
    endmodule
    rewards "held"
        true : x;
        b & x>2 : price;
    endrewards
    rewards
        [up] true : 2;
        [] x>1 : x;
        x=0 : 7;
    endrewards
    label "full" = x=limit;
""")
STATES = [{"x": x, "b": b, "k": 1.5, "price": 4.0, "limit": 5} for x in range(6) for b in (0, 1)]


def asked(text: str, **constants) -> Reward:
    (found,) = read_properties(f"const double T = 4; {text}", MODEL, constants=constants).values()
    return found.formula


def refusal(text: str, **constants) -> FormulaError:
    with pytest.warns(st.SateenWarning, match="cannot be asked"):
        properties = read_properties(f"const double T = 4; {text}", MODEL, constants=constants)
    (error,) = properties.refused.values()
    return error


def test_states_earn_per_unit_of_time_and_transitions_at_their_rates():
    held, second = (asked(f"R{{{place}}}=? [ C<=1 ]", price=4).rate for place in (1, 2))
    for state in STATES:
        x, b = state["x"], state["b"]
        assert held.evaluate(state) == x + (4 if b and x > 2 else 0)
        # A transition that changes nothing, as up does where x is 5, is paid for too.
        up, down = 2 * (1.5 if x < 5 else 2), 3 * x if x > 1 else 0
        assert second.evaluate(state) == up + down + (7 if x == 0 else 0)


def test_the_reward_at_an_instant_is_that_of_states_alone():
    second = asked("R{2}=? [ I=1 ]").rate
    assert [float(second.evaluate(state)) for state in STATES] == [7.0] * 2 + [0.0] * 10


@pytest.mark.parametrize(
    ("text", "over", "time", "name"),
    [
        ("R=? [ C<=T ]", "C", 4, "held"),
        ("R=? [ C<=T/8 ]", "C", 0.5, "held"),
        ('R{"held"}=? [ C ]', "C", math.inf, "held"),
        ("R{2}=? [ I=2*T ]", "I", 8, ""),
        ("R{1+1}=?[I=0]", "I", 0, ""),
        ('R{"held"}=? [ F "full" & b ]', "F", math.inf, "held"),
        ("R=? [ F (x=3) ]", "F", math.inf, "held"),
        ('filter(state, R=? [ C<=T ], "init")', "C", 4, "held"),
    ],
)
def test_what_is_asked_is_a_reward(text, over, time, name):
    reward = asked(text, price=4)
    assert (reward.over, reward.time, reward.name) == (over, time, name)
    assert (reward.goal is not None) == (over == "F")


def test_what_is_waited_for_is_a_condition():
    assert str(asked('R=? [ F "full" & b ]', price=1).goal) == "x == limit and b == 1"


def test_rewards_may_be_compared_and_print_as_they_are_asked():
    found = read_properties('"cheap": R{2}<=2.5 [ C<=3 ]', MODEL)["cheap"]
    assert (found.comparison, found.bound) == ("<=", 2.5)
    assert str(found.formula).startswith("R[C<=3] of if(x == 0, 7, 0) + ")
    assert str(Reward(parse_expression("x"), "F", goal=parse_condition("x > 2"), name="r")) == 'R{"r"}[F x > 2] of x'
    assert len(str(Reward(parse_expression(" + ".join(["x"] * 500)), "C"))) < 300


@pytest.mark.parametrize(
    "text",
    ['filter(state, {}, "init")', 'filter(first, {}, x=1 & !b)', 'filter(max,{}, !b & x=1)', 'filter(+, {}, "init")',
     'filter(sum, {}, "init")', 'filter(avg, {}, "init")', 'filter(min, {}, "init")'],
)  # fmt: skip
def test_a_filter_on_the_initial_state_is_the_value_there(text):
    plain = read_properties('P=? [ F<=2 "full" ]', MODEL)["property_1"]
    assert read_properties(text.format('P=? [ F<=2 "full" ]'), MODEL)["property_1"] == plain


def test_a_filter_on_a_property_with_a_bound_asks_whether_it_holds_initially():
    for operator in ("state", "first", "forall", "exists", "&", "|"):
        (found,) = read_properties(f'filter({operator}, P>=0.5 [ F b ], "init")', MODEL).values()
        assert (found.comparison, found.bound) == (">=", 0.5)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("filter(count, P>=0.5 [ F b ], \"init\")", "filter(count, ...) is not supported", "count"),
        ("filter(argmax, P=? [ F b ], \"init\")", "filter(argmax, ...) is not supported", "argmax"),
        ("filter(print, P=? [ F b ], \"init\")", "filter(print, ...) is not supported", "print"),
        ("filter(forall, P=? [ F b ], \"init\")", "filter(forall, ...) does not fit this property", "forall"),
        ("filter(max, P>=0.5 [ F b ], \"init\")", "filter(max, ...) does not fit this property", "max"),
        ("filter(max, P=? [ F b ])", "this filter(max, ...) is about other states than the initial one", "max"),
        ("filter(max, P=? [ F b ], true)", "this filter(max, ...) is about other states than the initial one", "true"),
        ("filter(state, P=? [ F b ], x=1)", "this filter(state, ...) is about other states than the initial one",
         "x=1"),
        ("filter(state, P=? [ F b ], x=2 & !b)", "this filter(state, ...) is about other states than the initial one",
         "x=2"),
        ("filter(state, x=1, \"init\")", "a filter is about a property P or R", "x=1"),
        ("P=? [ F filter(max, P=? [ F b ]) ]", "filter inside P or R is not supported", "filter"),
        ("R=? [ F<=2 b ]", "rewards are asked for by C<=t, C, I=t or F", "F<=2"),
        ("R=? [ G b ]", "rewards are asked for by C<=t, C, I=t or F", "G b"),
        ("R=? [ b U x=1 ]", "rewards are asked for by C<=t, C, I=t or F", "U x"),
        ("R=? [ F (F b) ]", "F is an operator of time, and this is a condition on one moment", "F b"),
        ("R=? [ F (R>1 [ C ]) ]", "the operator R is not supported inside P or R", "R>1"),
        ("R=? [ x ]", "rewards are asked for by C<=t, C, I=t or F", "x ]"),
        ("R=? [ C<2 ]", "rewards are accumulated up to a time", "<2"),
        ("R=? [ C<=-1 ]", "the time is -1", "-1"),
        ("R=? [ I=b ]", "the time is a number, and this is true or false", "b ]"),
        ("R=? [ I ]", "']' cannot stand here", "]"),
        ("R=? [ S ]", "rewards in the long run (S) are not supported", "R="),
        ('R{"hold"}=? [ C<=1 ]', 'the model has no rewards "hold"', '"hold"'),
        ("R{3}=? [ C<=1 ]", "the model has no rewards 3", "3}"),
        ("R{0.5}=? [ C<=1 ]", "the model has no rewards 0.5", "0.5"),
        ("R{x}=? [ C<=1 ]", "the number of the rewards reads x, which has no value", "x}"),
        ("R=? [ C<=1 ]", "the constant price has no value", "C<=1"),
        ("R{2}>-1 [ C<=1 ]", "a reward is never negative, and this is -1", "-1"),
        ("R [ C<=1 ]", "R is followed by =?, or by a comparison", "["),
        ("Rmin=? [ C<=1 ]", "Rmin is not supported", "Rmin"),
        ("R{2}max=? [ C<=1 ]", "R{2}max is not supported", "R{2}"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_name_and_place(text, message, place):
    error = refusal(text)
    assert error.message == message
    assert error.text[error.position :].startswith(place)


def test_a_file_says_which_properties_it_asks_in_vain_and_reads_the_others():
    text = '"a": P=? [ F b ];\n"b": S=? [ b ];\n"c": R{2}=? [ C<=1 ];\nR=? [ S ];'
    with pytest.warns(st.SateenWarning) as warned:
        found = read_properties(text, MODEL)
    assert str(warned[0].message) == (
        "2 of 4 properties cannot be asked:\n"
        "  line 2, b: the steady-state operator S is not supported\n"
        "  line 4, property_4: rewards in the long run (S) are not supported"
    )
    assert list(found) == ["a", "c"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x > 1", "C", 1.0), "a reward is a number"),
        (("x", "C", -1.0), "at a time from 0 on, not at -1"),
        (("x", "I"), "at a time from 0 on, not at inf"),
        (("x", "I", math.nan), "at a time from 0 on"),
        (("x", "F"), "has that condition"),
    ],
)
def test_rewards_that_ask_nothing_are_refused(arguments, words):
    rate, *others = arguments
    with pytest.raises(InputError, match=words):
        Reward(parse_condition(rate) if ">" in rate else parse_expression(rate), *others)
