"""Models in the PRISM language: what the text means, against chains computed by hand; and what is refused, and how."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from scipy.linalg import expm
from scipy.stats import binomtest

import sateen as st
from hostile import outcomes_of
from sateen.core.errors import InputError, ModelError, SimulationError
from sateen.engine.exact import exact
from sateen.model.model import Model
from sateen.model.prism import read_prism

LEVEL = 1e-6
NOWHERE = st.Space().uniform(1, seed=1)  # the one point of a model without parameters


def model_of(text: str, **constants) -> Model:
    return read_prism(f"ctmc\n{text}", constants=constants).model


def probability(model: Model, formula: str, theta=None) -> float:
    (found,) = exact(model, st.stl(formula), theta or {})
    return float(found)


def constant(text: str, kind: str = "double") -> float:
    """The value of an expression, by way of a constant."""
    model = model_of(f"const int a = 7; const double d = 2.5; const {kind} v = {text};" + SWITCH)
    return model.values()["v"]


SWITCH = "module switch s : [0..1]; [] s=0 -> 1 : (s'=1); endmodule"


def reached(rates: dict[tuple, float], start, targets, time: float) -> float:
    """The probability that a chain is in one of the targets by `time`, by a dense matrix exponential."""
    states = list(dict.fromkeys([start, *(state for pair in rates for state in pair)]))
    generator = np.zeros((len(states), len(states)))
    for (source, target), rate in rates.items():
        if source not in targets:
            generator[states.index(source), states.index(target)] += rate
            generator[states.index(source), states.index(source)] -= rate
    after = expm(generator * time)[states.index(start)]
    return float(sum(after[states.index(target)] for target in targets if target in states))


# What commands mean.


def test_rates_of_synchronised_commands_multiply():
    model = model_of(
        "module one x : [0..1]; [go] x=0 -> 2 : (x'=1); endmodule\n"
        "module two y : [0..1]; [go] y=0 -> 3 : (y'=1); endmodule"
    )
    assert len(model.transitions) == 1
    assert probability(model, "F[0, 0.1] (x == 1 & y == 1)") == pytest.approx(1 - math.exp(-0.6), abs=1e-9)


def test_a_module_that_knows_an_action_but_has_no_command_enabled_blocks_it():
    model = model_of(
        "module one x : [0..1]; [go] x=0 -> 2 : (x'=1); endmodule\n"
        "module two y : [0..1]; [go] y=1 -> 3 : true; [] y=0 -> 0.5 : (y'=1); endmodule"
    )
    rates = {((0, 0), (0, 1)): 0.5, ((0, 1), (1, 1)): 6.0}
    expected = reached(rates, (0, 0), [(1, 1)], 2.0)
    assert probability(model, "F[0, 2] x == 1") == pytest.approx(expected, abs=1e-9)


def test_every_command_of_an_action_meets_every_command_of_the_others():
    model = model_of(
        "module one x : [0..2]; [go] x=0 -> 2 : (x'=1); [go] x=0 -> 5 : (x'=2); endmodule\n"
        "module two y : [0..2]; [go] y=0 -> 3 : (y'=1) + 7 : (y'=2); endmodule\n"
        "module three z : bool; [go] true -> (z'=true); endmodule"
    )
    assert [each.name for each in model.transitions] == ["go_1", "go_2", "go_3", "go_4"]
    total = (2 + 5) * (3 + 7)
    for x, y, rate in ((1, 1, 6), (1, 2, 14), (2, 1, 15), (2, 2, 35)):
        expected = rate / total * (1 - math.exp(-total * 0.01))
        assert probability(model, f"F[0, 0.01] (x == {x} & y == {y} & z == 1)") == pytest.approx(expected, abs=1e-9)


def test_alternatives_of_a_command_race_and_a_command_without_rate_has_rate_1():
    model = model_of("module m x : [0..3]; [] x=0 -> 2 : (x'=1) + 1 : (x'=2); [] x=0 -> (x'=3); endmodule")
    assert [probability(model, f"F x == {x}") for x in (1, 2, 3)] == pytest.approx([0.5, 0.25, 0.25], abs=1e-9)


def test_an_update_reads_the_state_before_it():
    model = model_of("module m x : [0..5] init 2; y : [0..5] init 5; [] x<y -> 1 : (x'=y) & (y'=x); endmodule")
    assert probability(model, "F (x == 5 & y == 2)") == pytest.approx(1.0)


def test_a_command_that_changes_nothing_is_no_jump():
    model = model_of(
        "module m x : [0..1]; [] x=0 -> 1 : (x'=1); [] x=1 -> 9 : (x'=1); [] true -> 5 : (x'=x); [] x=1 -> true; "
        "endmodule"
    )
    assert [each.name for each in model.transitions] == ["m_1"]
    assert st.simulate(model, until=100, seed=1).absorbed


def test_a_model_of_self_loops_alone_still_runs():
    model = model_of("module m x : [0..1]; [] true -> 1 : true; endmodule")
    assert len(model.transitions) == 1
    assert probability(model, "F[0, 5] x == 1") == 0.0


def test_commands_whose_guards_exclude_each_other_are_left_out():
    model = model_of(
        "module one x : [0..1]; [a] x=0 & y=0 -> 1 : (x'=1); [a] x=0 & y=1 -> 1 : (x'=1); endmodule\n"
        "module two y : [0..1]; [a] y=0 -> 1 : true; [a] y=1 -> 2 : true; [] false -> 1 : (y'=0); endmodule"
    )
    assert [str(each.guard) for each in model.transitions] == ["x == 0 and y == 0", "x == 0 and y == 1"]


def test_constant_changes_are_changes_and_others_are_assignments():
    model = model_of(
        "module m x : [0..9]; b : bool; "
        "[] x<9 -> 1 : (x'=x+1); [] x>1 -> 1 : (x'=x-2); [] x=3 & !b -> 1 : (x'=7) & (b'=true); "
        "[] b -> 1 : (x'=0); endmodule"
    )
    assert [each.change for each in model.transitions] == [{"x": 1}, {"x": -2}, {"x": 4, "b": 1}, {}]
    assert [len(each.update) for each in model.transitions] == [0, 0, 0, 1]


def test_names_of_transitions_are_unique():
    model = model_of(
        "module m x : [0..9]; [m_1] x=0 -> 1 : (x'=1); [] x=1 -> 1 : (x'=2); [] x=2 -> 1 : (x'=3); endmodule"
    )
    assert [each.name for each in model.transitions] == ["m_1", "m_1_", "m_2"]


# Declarations.


def test_variables_begin_at_their_value_or_their_low_bound_or_false():
    model = model_of(
        "const int k = 2; global g : [-3..3]; "
        "module m a : [2..5]; b : bool; c : bool init true; d : [0..9] init k+1; e : int; f : int init -4; "
        "[] a<5 -> 1 : (a'=a+1); endmodule"
    )
    assert model.initial(model.values()) == {"g": -3, "a": 2, "b": 0, "c": 1, "d": 3, "e": 0, "f": -4}
    bounds = {each.name: (each.low, each.high) for each in model.variables}
    assert bounds == {
        "g": (-3, 3),
        "a": (2, 5),
        "b": (0, 1),
        "c": (0, 1),
        "d": (0, 9),
        "e": (None,) * 2,
        "f": (None,) * 2,
    }


def test_booleans_are_read_and_written_as_conditions():
    model = model_of(
        "const bool eager = 1 < 2; "
        "module m a : bool; b : bool init true; n : [0..9]; "
        "[] !a & b & eager -> 2 : (a'=b) & (b'=!b | n>5) & (n'=a?1:(b?2:3)); "
        "[] a=true & b!=true & (a<=>!b) & (a=>n=2) -> 3 : (a'=(n=2)) & (b'=a=b) & (n'=9); "
        "endmodule"
    )
    assert probability(model, "F (a == 1 & b == 0 & n == 2)") == pytest.approx(1.0)
    assert probability(model, "F[0, 1] (a == 1 & b == 0 & n == 9)") == pytest.approx(
        reached({(0, 1): 2.0, (1, 2): 3.0}, 0, [2], 1.0), abs=1e-9
    )


def test_only_commands_without_action_change_globals():
    model = model_of("global g : [0..1];\nmodule m x : [0..1]; [] g=0 -> 2 : (g'=1) & (x'=1); endmodule")
    assert probability(model, "F (g == 1 & x == 1)") == pytest.approx(1.0)
    with pytest.raises(ModelError, match="a command with an action cannot change the global g"):
        model_of("global g : [0..1];\nmodule m x : [0..1]; [a] g=0 -> 2 : (g'=1); endmodule")


def test_constants_may_be_defined_in_any_order_by_formulas_too():
    model = model_of("const double c = b/2; const int b = twice+1; formula twice = 2*a; const int a = 3;" + SWITCH)
    assert model.values() == {"a": 3.0, "b": 7.0, "c": 3.5}
    names = [each.name for each in model.constants]
    assert names.index("a") < names.index("b") < names.index("c")


def test_open_constants_are_parameters_unless_they_are_given():
    text = "const double up; const int start; module m x : [0..9] init start; [] x<9 -> up : (x'=x+1); endmodule"
    model = model_of(text)
    assert [each.name for each in model.parameters] == ["up", "start"]
    assert probability(model, "F[0, 1] x == 9", {"up": 0.7, "start": 8}) == pytest.approx(1 - math.exp(-0.7), abs=1e-9)
    model = model_of(text, start=8)
    assert [each.name for each in model.parameters] == ["up"]
    assert model.initial(model.values({"up": 1})) == {"x": 8}
    assert model_of(text, start=8, up=0.5).parameters == ()


def test_constants_that_bound_a_variable_must_be_given():
    text = "const int N; module m x : [0..2*N]; [] x<N -> 1 : (x'=x+1); endmodule"
    with pytest.raises(ModelError, match=r"the range of x reads N, which has no value(.|\n)*constants=\{\"N\": 5\}"):
        model_of(text)
    assert model_of(text, N=3).variables[0].high == 6
    with pytest.raises(ModelError, match=r"the range of x reads N, which has no value"):
        model_of("const int twice = 2*N; " + text.replace("2*N", "twice"))


def test_open_constants_that_the_model_does_not_need_are_no_parameters():
    model = model_of("const double T; const double twice = 2*T; const double used;" + SWITCH.replace("-> 1", "-> used"))
    assert [each.name for each in model.parameters] == ["used"]
    assert model.constants == ()


@pytest.mark.parametrize(
    ("constants", "error", "words"),
    [
        ({"z": 1}, InputError, "the model has no constant z"),
        ({"Nn": 1}, InputError, "did you mean N?"),
        ({"N": 2.5}, ModelError, "N is an int: a whole number, not 2.5"),
        ({"N": "five"}, ModelError, "the constant N is 'five', not a finite number"),
        ({"N": math.inf}, ModelError, "not a finite number"),
        ({"N": 10**400}, ModelError, "not a finite number"),
        ({"N": 10**6000}, ModelError, "the constant N is a number of too many digits, not a finite number"),
        ({"b": 2}, ModelError, "b is a bool: true or false, not 2"),
        ({"N": 2, "b": True, "a": 3}, ModelError, "the constant a has a value already"),
        ({"N": 2}, ModelError, "the bool constant b has no value"),
    ],
)
def test_values_that_do_not_fit_are_refused(constants, error, words):
    with pytest.raises(error) as caught:
        model_of("const int N; const bool b; const int a = 1;" + SWITCH, **constants)
    assert words in str(caught.value)


# Formulas and renaming.


def test_formulas_are_put_in_and_renamed_with_the_module():
    model = model_of(
        "const double slow = 1; const double fast = 4; formula busy = x>0; formula idle = !busy;\n"
        "module one x : [0..1]; [go1] idle -> slow : (x'=1); [] busy -> 2*slow : (x'=0); endmodule\n"
        "module two = one [x=y, slow=fast, go1=go2] endmodule\n"
        "module three = two [y=z, go2=go3, fast=slow] endmodule"
    )
    written = [(each.name, str(each.rate), str(each.guard)) for each in model.transitions]
    assert written == [
        ("go1", "slow", "not x > 0"),
        ("one_1", "2 * slow", "x > 0"),
        ("go2", "fast", "not y > 0"),
        ("two_1", "2 * fast", "y > 0"),
        ("go3", "slow", "not z > 0"),
        ("three_1", "2 * slow", "z > 0"),
    ]


def test_names_may_be_swapped_in_a_renaming():
    model = model_of(
        "module one x : [0..3]; [] x<y -> 1 : (x'=x+1); endmodule\nmodule two = one [x=y, y=x] endmodule".replace(
            "y=x]", "y=x]"
        )
    )
    assert [str(each.guard) for each in model.transitions] == ["x < y", "y < x"]


def test_a_renamed_copy_of_an_action_synchronises_under_its_new_name():
    model = model_of(
        "module one x : [0..1]; [a] x=0 -> 2 : (x'=1); endmodule\n"
        "module two = one [x=y] endmodule\n"
        "module three = one [x=z, a=b] endmodule"
    )
    assert [(each.name, str(each.rate)) for each in model.transitions] == [("a", "2 * 2"), ("b", "2")]


# Expressions.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7/2", 3.5),
        ("-a+1", -6),
        ("2-3-4", -5),
        ("12/3/2", 2),
        ("-2*-3", 6),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("min(3, a, d)", 2.5),
        ("max(3, a, d)", 7),
        ("floor(-d)", -3),
        ("ceil(-d)", -2),
        ("round(d)", 3),
        ("round(-d)", -2),
        ("pow(2, 10)", 1024),
        ("pow(4, 0.5)", 2),
        ("pow(2.0, -1)", 0.5),
        ("mod(a, 4)", 3),
        ("mod(-a, 4)", 1),
        ("mod(a, a-3)", 3),
        ("log(8, 2)", 3),
        ("func(max, 1, 2)", 2),
        ("a>6 ? 1 : a>7 ? 2 : 3", 1),
        ("a>7 ? 1 : a>6 ? 2 : 3", 2),
        ("(true ? 1 : 2) + 1", 2),
    ],
)
def test_arithmetic_is_that_of_prism(text, expected):
    assert constant(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true | true & false", True),
        ("!true | true", True),
        ("!(true | true)", False),
        ("!a=7", False),
        ("false => false => false", False),  # from the left, as PRISM reads it
        ("false => (false => false)", True),
        ("true => false <=> false", True),
        ("true <=> false | true", True),
        ("a=7 = true", True),
        ("true != false", True),
        ("1 < 2 = true", True),
        ("1+1=2 & 2*2>=4", True),
        ("true ? false : true", False),
        ("a>6 => d>3", False),
        ("mod(a,2)=1", True),
    ],
)
def test_logic_binds_as_in_prism(text, expected):
    assert constant(text, "bool") == expected


@some.composite
def numbers(draw, depth=3):
    """Text and value of arithmetic in brackets."""
    if depth == 0 or draw(some.integers(0, 3)) == 0:
        return draw(some.sampled_from([("0", 0), ("3", 3), ("a", 7), ("d", 2.5), ("0.25", 0.25), ("12", 12)]))
    (one, x), (two, y) = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    condition, holds = draw(conditions(depth - 1))
    made = [
        (f"({one}+{two})", x + y),
        (f"({one}-{two})", x - y),
        (f"({one}*{two})", x * y),
        (f"({one}/(1+{two}*{two}))", x / (1 + y * y)),
        (f"(-{one})", -x),
        (f"min({one}, {two})", min(x, y)),
        (f"max({one}, {two})", max(x, y)),
        (f"floor({one})", math.floor(x)),
        (f"ceil({one})", math.ceil(x)),
        (f"round({one})", math.floor(x + 0.5)),
        (f"mod(floor({one}), 5)", math.floor(x) % 5),
        (f"pow({one}, 2)", x**2),
        (f"({condition} ? {one} : {two})", x if holds else y),
    ]
    return draw(some.sampled_from(made))


@some.composite
def conditions(draw, depth=2):
    """Text and truth of a condition in brackets."""
    if depth <= 0:
        return draw(some.sampled_from([("true", True), ("false", False), ("(a=7)", True), ("(d<2)", False)]))
    (one, x), (two, y) = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    (left, p), (right, q) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    made = [
        (f"({one}<{two})", x < y),
        (f"({one}>={two})", x >= y),
        (f"({one}!={two})", x != y),
        (f"(!{left})", not p),
        (f"({left}&{right})", p and q),
        (f"({left}|{right})", p or q),
        (f"({left}=>{right})", not p or q),
        (f"({left}<=>{right})", p == q),
        (f"({left}={right})", p == q),
        (f"({left}?{right}:{left})", q if p else p),
    ]
    return draw(some.sampled_from(made))


@given(numbers())
@settings(max_examples=150, deadline=None)
def test_expressions_have_the_values_that_python_gives_them(case):
    text, value = case
    assert constant(text) == pytest.approx(value, rel=1e-9, abs=1e-9)


@given(some.lists(some.sampled_from(["1", "2", "0.5", "-3", "a"]), min_size=1, max_size=6), some.data())
@settings(max_examples=100, deadline=None)
def test_arithmetic_without_brackets_binds_as_pythons(values, data):
    text = values[0] + "".join(data.draw(some.sampled_from("+-*/")) + value for value in values[1:])
    assert constant(text) == pytest.approx(eval(text, {"a": 7}), rel=1e-9)


@given(some.lists(some.sampled_from(["1<2", "a=6", "true", "!d>2", "!!false"]), min_size=1, max_size=6), some.data())
@settings(max_examples=100, deadline=None)
@example(["!d>2"], None)
def test_logic_without_brackets_binds_as_pythons(parts, data):
    text = parts[0] + "".join(data.draw(some.sampled_from("&|")) + part for part in parts[1:])
    python = text.replace("!", " not ").replace("=", "==").replace("&", " and ").replace("|", " or ")
    assert constant(text, "bool") == eval(python, {"a": 7, "d": 2.5, "true": True, "false": False})


def test_a_power_of_whole_numbers_with_a_negative_exponent_is_an_error_of_the_run():
    model = model_of("module m x : [-1..9]; [] x=-1 -> 1 : (x'=pow(2, x)); endmodule")
    with pytest.raises(SimulationError, match="takes x to inf"):
        probability(model, "F[0, 1] x == 3")


def test_a_remainder_by_nothing_positive_is_an_error_of_the_run():
    model = model_of("module m x : [0..9]; [] x<9 -> 1 : (x'=mod(5, x)); endmodule")
    with pytest.raises(SimulationError, match="takes x to inf"):
        probability(model, "F[0, 1] x == 3")


# Whole models, against chains written by hand.

POLLING = """
    const double arrive; const double poll = 5; const double serve = 2;
    module server
        at : [1..2];
        busy : bool;
        [skip1]  at=1 & !busy -> poll  : (at'=2);
        [begin1] at=1 & !busy -> poll  : (busy'=true);
        [end1]   at=1 & busy  -> serve : (busy'=false) & (at'=2);
        [skip2]  at=2 & !busy -> poll  : (at'=1);
        [begin2] at=2 & !busy -> poll  : (busy'=true);
        [end2]   at=2 & busy  -> serve : (busy'=false) & (at'=1);
    endmodule
    module station1
        waits1 : bool;
        []       !waits1 -> arrive : (waits1'=true);
        [skip1]  !waits1 -> 1 : true;
        [begin1] waits1  -> 1 : true;
        [end1]   waits1  -> 1 : (waits1'=false);
    endmodule
    module station2 = station1 [waits1=waits2, skip1=skip2, begin1=begin2, end1=end2] endmodule
"""


def polling(arrive: float) -> dict[tuple, float]:
    """The rates of the polling system between states (at, busy, (waits1, waits2))."""
    rates = {}
    for at in (1, 2):
        for waits in ((0, 0), (0, 1), (1, 0), (1, 1)):
            for busy in (0, 1):
                for station in (0, 1):
                    if not waits[station]:
                        more = (1, waits[1]) if station == 0 else (waits[0], 1)
                        rates[(at, busy, waits), (at, busy, more)] = arrive
            if waits[at - 1]:
                rates[(at, 0, waits), (at, 1, waits)] = 5.0
                less = (0, waits[1]) if at == 1 else (waits[0], 0)
                rates[(at, 1, waits), (3 - at, 0, less)] = 2.0
            else:
                rates[(at, 0, waits), (3 - at, 0, waits)] = 5.0
    return rates


def test_a_polling_system_is_the_chain_written_by_hand():
    model = model_of(POLLING)
    for arrive in (0.3, 2.0):
        rates = polling(arrive)
        states = {state for pair in rates for state in pair}
        full = [state for state in states if state[1] and state[2] == (1, 1)]
        expected = reached(rates, (1, 0, (0, 0)), full, 1.5)
        found = probability(model, "F[0, 1.5] (busy == 1 & waits1 == 1 & waits2 == 1)", {"arrive": arrive})
        assert found == pytest.approx(expected, abs=1e-9)


BATCHES = """
    const int N = 4; const double pace = 1.5;
    formula stored = left + right;
    formula share = stored = 0 ? 1 : min(1, N/stored);
    module cells
        left : [0..N] init N;
        right : [0..N];
        spare : [0..N];
        [move]  left>0 & right<N -> left*share*pace : (left'=left-1) & (right'=right+1);
        [flush] right>=2 -> 0.5 : (left'=min(N, left+right)) & (right'=0) & (spare'=mod(spare+right, 3));
        []      spare>0 -> 0.25*spare : (spare'=spare-1);
    endmodule
    module timer
        phase : [0..2];
        [move]  phase<2  -> 1 : (phase'=phase+1) + 0.5 : true;
        [flush] phase>=1 -> phase : (phase'=0);
        [flush] phase=0  -> 0.1 : true;
    endmodule
"""


def batches() -> dict[tuple, float]:
    rates: dict[tuple, float] = {}

    def add(source, target, rate):
        if rate and source != target:
            rates[source, target] = rates.get((source, target), 0.0) + rate

    for left in range(5):
        for right in range(5):
            for spare in range(5):
                for phase in range(3):
                    here = (left, right, spare, phase)
                    share = 1 if left + right == 0 else min(1, 4 / (left + right))
                    if left > 0 and right < 4 and phase < 2:
                        add(here, (left - 1, right + 1, spare, phase + 1), left * share * 1.5)
                        add(here, (left - 1, right + 1, spare, phase), left * share * 1.5 * 0.5)
                    if right >= 2:
                        flushed = (min(4, left + right), 0, (spare + right) % 3)
                        add(here, (*flushed, 0 if phase else phase), 0.5 * (phase or 0.1))
                    if spare > 0:
                        add(here, (left, right, spare - 1, phase), 0.25 * spare)
    return rates


def test_a_model_of_many_features_is_the_chain_written_by_hand_exactly_and_in_runs():
    model = model_of(BATCHES)
    rates = batches()
    states = {state for pair in rates for state in pair}
    goal = [state for state in states if state[2] == 2 and state[3] == 2]
    expected = reached(rates, (4, 0, 0, 0), goal, 6.0)
    assert 0.2 < expected < 0.8
    formula = "F[0, 6] (spare == 2 & phase == 2)"
    assert probability(model, formula) == pytest.approx(expected, abs=1e-9)
    runs = st.observe(model, st.stl(formula), NOWHERE, runs=20_000, seed=3)
    assert binomtest(int(runs.satisfied[0]), 20_000, expected).pvalue > LEVEL
    paths = [st.simulate(model, until=6, seed=seed) for seed in range(300)]
    seen = sum(bool(st.monitor(st.stl(formula), path)) for path in paths)
    assert binomtest(seen, 300, expected).pvalue > LEVEL


def test_names_that_mean_something_to_sateen_are_names_here():
    model = model_of(
        "const double exp = 2; const double species;\n"
        "module when t : [0..2]; and : bool; if : [0..3]; inf : bool; "
        "[or] t=0 & !and -> exp : (t'=1) & (and'=true); "
        "[not] t=1 -> species : (if'=3) & (inf'=true) & (t'=2); endmodule"
    )
    points = st.Space(species=(1.0, 3.0)).grid(2)
    formula = st.stl("F[0, 1] (`t` == 2 & `and` == 1 & `if` == 3 & `inf` == `and`)")
    found = exact(model, formula, points)
    expected = [reached({(0, 1): 2.0, (1, 2): rate}, 0, [2], 1.0) for rate in (1.0, 3.0)]
    assert found == pytest.approx(expected, abs=1e-9)
    runs = st.observe(model, formula, points, runs=5_000, seed=5)
    for seen, wanted in zip(runs.satisfied, expected, strict=True):
        assert binomtest(int(seen), 5_000, wanted).pvalue > LEVEL
    assert "`and` = 0 in [0, 1]" in str(model)


# What goes wrong in a run.

RUNAWAY = "module m x : [0..3] init 2; b : bool; [] true -> 1 : (x'=x+1) & (b'=!b); endmodule"


def test_a_value_outside_its_range_is_an_error_of_exact():
    with pytest.raises(SimulationError, match="m_1 takes x to 4"):
        probability(model_of(RUNAWAY), "F[0, 9] (x == 0)")


def test_a_value_outside_its_range_is_an_error_of_runs():
    model = model_of(RUNAWAY)
    with pytest.raises(SimulationError, match="x becomes 4"):
        st.observe(model, st.stl("F[0, 99] x == 0"), NOWHERE, runs=10, seed=1)
    with pytest.raises(SimulationError, match="m_1 takes x to 4"):
        st.simulate(model, until=99, seed=1)


# What is left out, and what is refused.


def test_rewards_change_nothing_in_the_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = model_of(
            SWITCH + '\nrewards "time" // one\n true : 1;\n [] s=1 : 2;\nendrewards\nrewards s=1 : 5; endrewards'
        )
    assert model == model_of(SWITCH)
    assert model.warnings == ()


@pytest.mark.parametrize("system", ["one || two", "(two) || one", "\n one\n||two // all\n"])
def test_the_parallel_composition_of_all_modules_may_be_written_out(system):
    modules = "module one x : [0..1]; [a] x=0 -> 1 : (x'=1); endmodule module two = one [x=y] endmodule "
    assert model_of(f"{modules} system {system} endsystem") == model_of(modules)


def test_comments_and_line_ends_of_any_kind_do_not_matter():
    text = '// (a ctmc\nctmc // "\r\n' + SWITCH.replace(";", "; // ;\r\n")
    assert read_prism(text).model == model_of(SWITCH)


BASE = "ctmc\n{top}\nmodule m\n  x : [0..5] init 1;\n  b : bool;\n  [] x<5 -> 1 : (x'=x+1);\n  {body}\nendmodule\n{end}"
REFUSED = [
    # (where it stands, the text, the message, the text from the caret on)
    ("type", "dtmc", "the model type dtmc is not supported", "dtmc"),
    ("type", "mdp", "the model type mdp is not supported", "mdp"),
    ("type", "pta", "the model type pta is not supported", "pta"),
    ("type", "", "this model does not say that it is a ctmc", ""),
    ("top", "ctmc", "the model says twice what it is", "ctmc"),
    ("top", "init x=1 endinit", "init ... endinit is not supported", "init x=1"),
    ("top", "const int a = b2; const int b2 = a;", "the constant a is defined by itself: a -> b2 -> a", "a = b2"),
    ("top", "formula f = g; formula g = !f;", "the formula f is defined by itself: f -> g -> f", "f;"),
    ("top", "const int a = 1/2;", "a needs a whole number, and this is a double", "1/2"),
    ("top", "const int a = x;", "the constant a reads the variable x", "x;"),
    ("top", "const int a = 1; const int a = 2;", "a is declared twice", "a = 2"),
    ("top", "const double a = 1e999;", "1e999 is larger than any number here", "1e999"),
    ("top", "const double a = log(0,2);", "the constant a comes to -inf", "log"),
    ("top", "const int F = 1;", "F is a reserved word of PRISM", "F = 1"),
    ("top", "const double rate = 1;", "rate cannot stand here", "rate = 1"),
    ("top", "const int a = 1", "a semicolon is missing before 'module'", "module m"),
    ("top", "global x : bool;", "x is declared twice", "x : [0..5]"),
    ("top", "global c : clock;", "clocks are not supported", "c : clock"),
    ("top", "global y : [3..1];", "y has no value in the range [3..1]", "3..1"),
    ("top", "global y : [0..2.5];", "the range of y needs a whole number", "2.5"),
    ("top", "global y : [0..x];", "the range of y reads the variable x", "x];"),
    ("top", "global y : [0..2] init 3;", "y starts at 3, outside [0..2]", "3;"),
    ("top", "global y : [0..2] init x;", "the initial value of y reads the variable x", "x;"),
    ("top", "global y : bool init 1;", "y needs true or false, and this is an int", "1;"),
    ("top", "#const K#", "# belongs to PRISM's preprocessor", "#const"),
    ("top", "label full = x=5;", "the name of a label stands in double quotes", "full"),
    ("top", 'label "init" = x=5;', 'the label "init" has a meaning in PRISM already', '"init"'),
    ("top", 'label "a" = x;', "a label is a condition, and this is a number", "x;"),
    ("top", 'label "a" = b; label "a" = b;', 'two labels are called "a"', '"a" = b;\n'),
    ("body", "[] y>0 -> 1 : (x'=0);", "y is not a variable, constant or formula", "y>0"),
    ("body", "[] x -> 1 : (x'=0);", "a guard is true or false, and this is a number", "x ->"),
    ("body", "[] b -> b : (x'=0);", "a rate is a number, and this is true or false", "b :"),
    ("body", "[] b -> -2 : (x'=0);", "the rate -2 is never positive", "-2"),
    ("body", "[] b -> 1-2 : (x'=0);", "the rate 1 - 2 is never positive", "1-2"),
    ("body", "[] b -> 1/0 : (x'=0);", "the rate is inf", "1/0"),
    ("body", "[] b -> 1 : (x'=x/2);", "x needs a whole number, and this is a double", "x/2"),
    ("body", "[] b -> 1 : (b'=1);", "b needs true or false, and this is an int", "1);"),
    ("body", "[] b -> 1 : (y'=1);", "y is not a variable", "y'"),
    ("body", "[] b -> 1 : (x'=1) & (x'=2);", "x is assigned twice", "x'=2"),
    ("body", "[] b -> 1 : x'=1;", "an assignment stands in brackets", "x'=1"),
    ("body", "[] b+1>0 -> 1 : (x'=1);", "+ needs numbers, and this is true or false", "b+1"),
    ("body", "[] x=true -> 1 : (x'=1);", "= compares true or false with a number", "true"),
    ("body", "[] x & b -> 1 : (x'=1);", "& needs conditions, and this is a number", "x & b"),
    ("body", "[] (b?1:b)=1 -> 1 : (x'=1);", "one branch is a number, and the other is true or false", "b)=1"),
    ("body", "[] (x?1:2)=1 -> 1 : (x'=1);", "? needs a condition, and this is a number", "x?1"),
    ("body", "[] mod(x,2.5)=1 -> 1 : (x'=1);", "mod needs whole numbers, and this is a double", "2.5"),
    ("body", "[] x==1 -> 1 : (x'=1);", "== is not an operator of PRISM", "=1 ->"),
    ("body", "[] b && b -> 1 : (x'=1);", "&& is not an operator of PRISM", "& b ->"),
    ("body", "[] b || b -> 1 : (x'=1);", "|| is not an operator of PRISM", "| b ->"),
    ("body", "[] x^2>1 -> 1 : (x'=1);", "'^' has no meaning here", "^2"),
    ("body", "[] sqrt(x)>1 -> 1 : (x'=1);", "sqrt is not a function", "(x)>1"),
    ("body", "[] pow(x)>1 -> 1 : (x'=1);", "pow takes two arguments, not 1", "pow"),
    ("body", '[] "full" -> 1 : (x\'=1);', 'the label "full" cannot stand here', '"full"'),
    ("body", "[] -> 1 : (x'=1);", "a command needs a guard before ->", "-> 1"),
    ("body", "[] b -> 1 : (x'=1)", "a semicolon is missing before 'endmodule'", "endmodule"),
    ("body", "invariant b endinvariant", "invariants are not supported", "invariant b"),
    ("end", "module n y : bool; [] b -> 1 : (x'=1); endmodule", "n cannot change x, a variable of m", "x'=1"),
    ("end", "module n = q [x=y] endmodule", "there is no module q to rename", "q ["),
    ("end", "module n = m [x=y] endmodule", "n must rename the variable b", "n = m"),
    ("end", "module n = m [x=y, x=z] endmodule", "x is renamed twice", "x=z"),
    ("end", "formula f = b; module n = m [f=g] endmodule", "the formula f cannot be renamed", "f=g"),
    ("end", "module n = m [min=max] endmodule", "the function min cannot be renamed here", "min=max"),
    ("end", "module m z : bool; endmodule", "two modules are called m", "m z"),
    ("end", "system m", "this system is never closed", "system"),
    ("end", "system m endsystem system m endsystem", "a second system ... endsystem", "system m endsystem"),
    ("end", "rewards true : 1;", "the text ends too soon", ""),
    ("end", 'rewards "r" endrewards rewards "r" endrewards', 'two rewards are called "r"', 'rewards "r" endrewards'),
    ("end", "rewards b : x=1; endrewards", "a reward is a number, and this is true or false", "x=1"),
    ("end", "rewards x : 1; endrewards", "rewards are given under a condition, and this is a number", "x : 1"),
    ("end", "rewards b : -2; endrewards", "a reward is never negative", "-2"),
    ("end", "rewards [go] b : 2; endrewards", "no command has the action go", "go]"),
    ("end", "rewards b : q; endrewards", "q is not a variable, constant or formula", "q;"),
    ("end", "module n y : bool;", "the text ends too soon", ""),
]


@pytest.mark.parametrize(("where", "text", "message", "place"), REFUSED)
def test_what_is_wrong_or_not_supported_is_refused_by_name_and_place(where, text, message, place):
    parts = {"top": "", "body": "", "end": "", where: text}
    whole = BASE.format(**parts) if where != "type" else BASE.format(top="", body="", end="").replace("ctmc", text)
    with pytest.raises(ModelError) as caught:
        read_prism(whole)
    assert caught.value.message.startswith(message)
    assert caught.value.text == whole
    assert whole[caught.value.position :].startswith(place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a model without any text"),
        ("ctmc const int a = 1;", "this model has no module"),
        ("ctmc module m [] true -> true; endmodule", "this model has no variable"),
        ("ctmc module m x : bool; endmodule", "this model has no command"),
        (
            "ctmc module m x : bool; [] 1>2 & false -> true; endmodule",
            "nothing can happen in this model: no guard ever holds",
        ),
        (b"ctmc", "a model is written as text, not as bytes"),
        ("ctmc" + " " * 200_000, "a model of 200,004 characters; at most 200,000 are read"),
    ],
)
def test_what_is_no_model_is_refused(text, message):
    with pytest.raises(ModelError) as caught:
        read_prism(text)
    assert caught.value.message == message


def test_many_combinations_are_fine_where_guards_exclude_most():
    one, two, three = (
        f"module m{k} x{k} : [0..39]; "
        + "".join(f"[a] x1={v} & x{k}={v} -> 1 : (x{k}'={(v + k) % 40}); " for v in range(40))
        + "endmodule\n"
        for k in (1, 2, 3)
    )
    assert len(model_of(one + two + three).transitions) == 40


def test_too_many_combinations_are_refused_at_once():
    modules = "".join(
        f"module m{k} x{k} : [0..1]; [a] x{k}=0 -> 1 : (x{k}'=1); [a] x{k}=1 -> 1 : (x{k}'=0); endmodule\n"
        for k in range(40)
    )
    with pytest.raises(ModelError, match="the action a leads to more transitions than can be run"):
        model_of(modules)


def test_hostile_texts_are_refused_in_little_time_and_memory():
    start = "ctmc module m x : [0..5]; [] x<5 -> 1 : (x'=x+1); endmodule "
    doubled = "formula f0 = x; " + "".join(f"formula f{k + 1} = f{k} + f{k}; " for k in range(60))
    texts = {
        "brackets": "ctmc " + "(" * 100_000,
        "minuses": start + "const int a = " + "-" * 100_000 + "1;",
        "product": start + "const int a = " + "1*" * 90_000 + "1;",
        "choices": start + "const int a = " + "true?1:" * 5_000 + "1;",
        "doubled": start + doubled,
        "chained": start + "".join(f"formula f{k} = f{k + 1}; " for k in range(2_000)) + "formula f2000 = x;",
        "remainders": start + "formula f = " + "mod(" * 90 + "x" + ",x)" * 90 + ";",
        "rewards": "ctmc " + "rewards " * 10_000,
        "quotes": "ctmc " + '"' * 100_000,
        "modules": start + "".join(f"module n{k} = m [x=m] endmodule " for k in range(1_000)),
    }
    assert outcomes_of("sateen.model.prism:read_prism", start, texts) == dict.fromkeys(texts, "ModelError")


# Files.


@pytest.mark.parametrize("name", ["switch.prism", "switch.sm", "SWITCH.SM"])
def test_a_file_is_read_by_its_suffix(tmp_path, name):
    (tmp_path / name).write_text("ctmc const int N; " + SWITCH.replace("0..1", "0..N"), encoding="utf-8")
    assert Model.load(tmp_path / name, constants={"N": 1}).variables[0].high == 1
    with pytest.raises(ModelError, match="which has no value"):
        Model.load(tmp_path / name)


def test_other_languages_take_no_constants(tmp_path):
    (tmp_path / "decay.txt").write_text("species A = 1\nA -> 0 @ A\n", encoding="utf-8")
    assert Model.load(tmp_path / "decay.txt", constants={}).species == ("A",)
    with pytest.raises(ModelError, match=r"decay\.txt takes no constants, and N is given"):
        Model.load(tmp_path / "decay.txt", constants={"N": 1})
