"""Exact expected rewards: against closed forms, dense matrices, and the values that PRISM's own tests expect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

import sateen as st
from sateen.core.errors import ExactError, MissingValueError, SimulationError
from sateen.language.grammar import parse_condition, parse_expression
from sateen.logic.csl import read_properties
from sateen.logic.rewards import Reward
from sateen.model.prism import read_prism

DEATHS = st.Model.parse("species X = 7\nX -> 0 @ k * X")
QUEUE = st.Model.parse("species X = 0\narrive: 0 -> X @ a when X < 9\nserve: X -> 0 @ m * min(X, 1)")


def accumulated(rate: str, time: float = math.inf) -> Reward:
    return Reward(parse_expression(rate), "C", time)


def at(rate: str, time: float) -> Reward:
    return Reward(parse_expression(rate), "I", time)


def until(goal: str, rate: str = "1") -> Reward:
    return Reward(parse_expression(rate), "F", goal=parse_condition(goal))


def of(model: st.Model, reward: Reward, **theta: float) -> float:
    (found,) = st.exact(model, reward, theta)
    return float(found)


def queue_generator(a: float, m: float) -> np.ndarray:
    """The generator of the queue, whose states are 0 to 9."""
    generator = np.diag([a] * 9, 1) + np.diag([m] * 9, -1)
    return generator - np.diag(generator.sum(axis=1))


@pytest.mark.parametrize("time", [0.0, 1e-9, 0.01, 1.0, 30.0, 4000.0])
def test_the_length_of_a_queue_is_that_of_the_matrix_exponential(time):
    generator, length = queue_generator(1.3, 1.7), np.arange(10.0)
    assert of(QUEUE, at("X", time), a=1.3, m=1.7) == pytest.approx((expm(generator * time) @ length)[0], rel=1e-9)
    # The integral of exp(Qt) is a block of the exponential of a larger matrix.
    block = np.block([[generator, np.eye(10)], [np.zeros((10, 20))]])
    integral = expm(block * time)[:10, 10:]
    assert of(QUEUE, accumulated("X", time), a=1.3, m=1.7) == pytest.approx((integral @ length)[0], rel=1e-9)


def test_a_queue_in_the_long_run_has_its_stationary_length():
    stationary = (1.3 / 1.7) ** np.arange(10.0)
    mean = stationary @ np.arange(10.0) / stationary.sum()
    assert of(QUEUE, at("X", 1e5), a=1.3, m=1.7) == pytest.approx(mean, rel=1e-10)
    assert of(QUEUE, accumulated("X", 1e5), a=1.3, m=1.7) / 1e5 == pytest.approx(mean, rel=1e-3)


def test_the_time_until_all_have_died_is_a_harmonic_sum():
    assert of(DEATHS, until("X == 0"), k=2.0) == pytest.approx(sum(1 / (2.0 * n) for n in range(1, 8)), rel=1e-12)
    assert of(DEATHS, accumulated("min(X, 1)"), k=2.0) == of(DEATHS, until("X == 0"), k=2.0)
    assert of(DEATHS, until("X == 0", "k * X"), k=2.0) == pytest.approx(7.0, rel=1e-12)  # every death is paid 1
    assert of(DEATHS, until("X <= 3", "X"), k=0.5) == pytest.approx(8.0, rel=1e-12)


def test_deaths_up_to_a_time_have_their_closed_forms():
    alive = 7 * math.exp(-2.0 * 0.3)
    assert of(DEATHS, at("X", 0.3), k=2.0) == pytest.approx(alive, rel=1e-11)
    assert of(DEATHS, accumulated("X", 0.3), k=2.0) == pytest.approx((7 - alive) / 2.0, rel=1e-11)


def test_a_rate_that_never_changes_is_earned_all_the_time():
    model = read_prism(
        "ctmc module m x : [0..1]; [tick] true -> 4 : (x'=1-x); endmodule rewards [tick] true : 3; endrewards"
    )
    (reward,) = read_properties("R=? [ C<=2.5 ]", model).values()
    assert of(model.model, reward.formula) == pytest.approx(4 * 2.5 * 3, rel=1e-12)  # Poisson: 10 ticks on average


def test_an_infinite_expectation_is_told_by_the_graph():
    two_ends = st.Model.parse("species X = 1\nup: X -> 2 X @ X when X < 3\ndown: X -> 0 @ k * X when X == 1")
    assert of(two_ends, until("X == 3"), k=1.0) == math.inf
    assert of(two_ends, until("X == 3", "0"), k=1.0) == math.inf  # as in PRISM, whatever is earned
    assert of(two_ends, until("X == 3"), k=0.0) == pytest.approx(1.5)  # no other end is left: 1 + 1/2
    assert of(two_ends, until("X == 5"), k=1.0) == math.inf
    assert of(two_ends, until("X == 1"), k=1.0) == 0.0
    assert of(QUEUE, accumulated("X"), a=1.0, m=1.0) == math.inf
    assert of(QUEUE, accumulated("0 * X"), a=1.0, m=1.0) == 0.0
    assert of(two_ends, accumulated("X"), k=1.0) == math.inf  # for X = 3 may last for ever
    assert of(two_ends, accumulated("if(X == 3, 0, X)"), k=1.0) == pytest.approx(1.0)


def test_many_points_are_computed_in_turn_and_a_formula_may_stand_beside_a_reward():
    found = st.exact(DEATHS, until("X == 0", "X"), st.Space(k=(1, 4)).grid(3))
    assert found == pytest.approx([7.0, 7 / 2.5, 1.75], rel=1e-12)


def test_the_large_numbers_of_a_stiff_chain_are_solved_for_exactly():
    model = st.Model.parse("species X = 0\nup: 0 -> X @ 0.01 when X < 4\ndown: X -> 0 @ X")
    levels = [0.01] * 4
    back = [float(n) for n in range(4)]
    steps = [1 / levels[0]]  # expected times from n to n + 1
    for n in range(1, 4):
        steps.append(1 / levels[n] + back[n] / levels[n] * steps[-1])
    assert of(model, until("X == 4")) == pytest.approx(sum(steps), rel=1e-9)


# Values that PRISM's regression tests expect of small models (prism-tests/functionality/verify/ctmcs/rewards and
# prism-tests/papers/KNP07a-SFM07), which are written here anew.
STEPS = read_prism("""ctmc
    module steps
        at : [0..3];
        [] at=0 -> 5 : (at'=1);  [] at=1 -> 7 : (at'=2);  [] at=2 -> 11 : (at'=3);  [] at=3 -> 13 : true;
    endmodule
    rewards "a" at=0 : 2; at=1 : 5; at=2 : 11; [] at=0 : 3; [] at=1 : 7; endrewards
    rewards "b" at=0 : 2; at=1 : 5; at=2 : 11; [] at=0 : 3; [] at=1 : 7; [] at=3 : 13; at=3 : 17; endrewards
""")
BRANCHES = read_prism("""ctmc
    module branches
        at : [0..5];
        [] at=0 -> 5 : (at'=1) + 5 : (at'=3);  [] at=1 -> 5 : (at'=0) + 2.5 : (at'=2) + 2.5 : (at'=4);
        [hop] at=2 -> 10 : (at'=5);  [] at=3 -> 10 : (at'=3);  [] at=4 -> 10 : (at'=4);  [] at=5 -> 10 : (at'=2);
    endmodule
    rewards "r" at=4 : 3; [hop] true : 17; endrewards
    rewards "r2" at=2 : 5; at=4 : 3; [hop] true : 17; endrewards
    rewards "time" true : 1; endrewards
""")
COMPONENTS = read_prism("""ctmc
    module components
        at : [0..4];
        [] at=0 -> 4 : (at'=1) + 6 : (at'=3);  [] at=1 -> 10 : (at'=2);  [] at=2 -> 10 : (at'=1);
        [] at=3 -> 10 : (at'=4);  [] at=4 -> 10 : (at'=3);
    endmodule
    rewards "a" at=0 : 2; endrewards
    rewards "b" at=0 : 2; at=1 : 5; endrewards
    rewards "c" at=0 : 2; [] at=3 : 5; endrewards
""")
SHORT = read_prism("""ctmc
    module line x : [0..3]; [come] x<3 -> 1.5 : (x'=x+1); [serve] x>0 -> 3 : (x'=x-1); endmodule
    rewards "serve" [serve] true : 1; endrewards
    rewards "line" true : x; endrewards
""")


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        *((STEPS, f'R{{"a"}}=? [ C<={time} ]', value) for time, value in
          ((0, 0.0), (0.1, 2.28944), (0.5, 9.87621), (1, 11.89005), (10, 12.11429), (100, 12.11429))),
        (STEPS, 'R{"a"}=? [ C ]', 12.114285714285716), (STEPS, 'R{"b"}=? [ C ]', math.inf),
        *((STEPS, f'R{{"a"}}=? [ I={time} ]', value) for time, value in
          ((0, 2.0), (0.1, 3.48854), (0.5, 2.05864), (1, 0.25886))),
        (STEPS, 'R{"a"}=? [ F at=0 ]', 0.0), (STEPS, 'R{"a"}=? [ F at=1 ]', 3.4),
        (STEPS, 'R{"a"}=? [ F at=2 ]', 389 / 35), (STEPS, 'R{"a"}=? [ F at>2 ]', 424 / 35),
        (BRANCHES, 'R{"r"}=? [ F at>2 ]', 17 / 6), (BRANCHES, 'R{"r2"}=? [ F at>2 ]', 175 / 60),
        (BRANCHES, 'R{"time"}=? [ F at>2 ]', 13 / 60), (BRANCHES, 'R{"r"}=? [ F at>3 ]', math.inf),
        (BRANCHES, 'R{"r"}=? [ I=0.4 ]', 0.39912), (BRANCHES, 'R{"r"}=? [ C<=10 ]', 143.46388878967119),
        (BRANCHES, 'R{"r"}=? [ C ]', math.inf),
        (COMPONENTS, 'R{"a"}=? [ F at>0 ]', 0.2), (COMPONENTS, 'R{"a"}=? [ F at=1 | at=2 ]', math.inf),
        (COMPONENTS, 'R{"a"}=? [ F at=3 | at=4 ]', math.inf), (COMPONENTS, 'R{"a"}=? [ C ]', 0.2),
        (COMPONENTS, 'R{"b"}=? [ C ]', math.inf), (COMPONENTS, 'R{"c"}=? [ C ]', math.inf),
        (COMPONENTS, 'filter(state, R{"b"}=? [ C ], at=0)', math.inf),
        (SHORT, 'R{"serve"}=? [ C<=5.5 ]', 7.069019518168792), (SHORT, 'R{"line"}=? [ I=1 ]', 0.5929374064162124),
        (SHORT, 'R{"serve"}=? [ F x=3 ]', 8.0),
    ],
)  # fmt: skip
def test_the_values_that_the_tests_of_prism_expect(model, text, expected):
    (asked,) = read_properties(text, model).values()
    digits = 5e-6 if len(str(expected)) <= 8 else 1e-9  # those that are printed there
    assert of(model.model, asked.formula) == pytest.approx(expected, abs=digits, rel=1e-9)


# What is refused.


def test_a_reward_that_is_negative_or_undefined_in_a_state_that_is_reached_is_an_error():
    with pytest.raises(SimulationError, match=r"the reward is -2 where X = 2 \(under k = 1\)"):
        of(DEATHS, accumulated("if(X == 2, -2, X)", 1.0), k=1.0)
    with pytest.raises(SimulationError, match="the reward is nan where X = 0"):
        of(DEATHS, at("0 / X", 1.0), k=1.0)
    assert of(DEATHS, until("X == 4", "X - 4"), k=1.0) == pytest.approx(3 / 7 + 2 / 6 + 1 / 5)  # where X < 4 nothing is


def test_what_exact_cannot_answer_is_refused_by_name():
    births = st.Model.parse("species X = 0\n0 -> X @ 1")
    with pytest.raises(ExactError, match="more than 50 states"):
        st.exact(births, at("X", 1.0), {}, max_states=50)
    with pytest.raises(ExactError, match="10,000,000 is the most"):
        of(QUEUE, at("X", 1e8), a=1.0, m=1.0)
    with pytest.raises(ExactError, match="no rewards of a model with events"):
        of(st.Model.parse("species X = 3\nX -> 0 @ X\nevent e: X := 3 when time >= 1"), at("X", 2.0))
    with pytest.raises(MissingValueError, match="Y is neither a species nor a parameter"):
        of(QUEUE, at("Y", 1.0), a=1.0, m=1.0)
