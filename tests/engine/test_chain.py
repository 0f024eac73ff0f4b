"""State spaces, against a search that takes one state and one transition at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import ExactError, SimulationError
from sateen.engine.chain import Chain, explore
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Model, Parameter, Transition, Variable

SIR = Model.parse("""
    species S = 95, I = 5, R = 0
    infect:  S + I -> 2 I @ beta * S * I / 100
    recover: I -> R       @ gamma * I
""")


def never(environment, size):
    return np.zeros(size, dtype=bool)


def explored(model: Model, theta=None, stop=never, max_states=100_000) -> Chain:
    values = model.values(theta)
    start = np.array([list(model.initial(values).values())])
    return explore(start, model, values, stop, max_states)[0]


def searched(model: Model, theta=None):
    """All reachable states and the rate of every jump that changes the state, found naively."""
    values = model.values(theta)
    initial = tuple(model.initial(values).values())
    waiting, found, jumps = [initial], {initial}, {}
    while waiting:
        state = waiting.pop()
        here = {**values, **dict(zip(model.species, state, strict=True))}
        for number, transition in enumerate(model.transitions):
            if transition.guard is not None and not transition.guard.evaluate(here):
                continue
            rate = float(transition.rate.evaluate(here))
            if rate == 0:
                continue
            after = {name: here[name] + transition.change.get(name, 0) for name in model.species}
            after |= {name: float(value.evaluate(here)) for name, value in transition.update}
            then = tuple(after.values())
            if then != state:
                jumps[state, then, number] = rate
            if then not in found:
                found.add(then)
                waiting.append(then)
    return found, jumps


def as_found(chain: Chain, theta=None):
    states = [tuple(state) for state in chain.states.tolist()]
    rates = chain.rates(chain.model.values(theta))
    assert rates is not None
    which = (chain.slots // len(chain.followed)).tolist()
    ends = zip(chain.sources.tolist(), chain.targets.tolist(), which, rates.tolist(), strict=True)
    return states, {(states[source], states[target], number): rate for source, target, number, rate in ends}


def assert_right(model: Model, theta=None):
    states, jumps = as_found(explored(model, theta), theta)
    expected_states, expected_jumps = searched(model, theta)
    assert len(states) == len(set(states))
    assert set(states) == expected_states
    assert jumps.keys() == expected_jumps.keys()
    assert jumps == pytest.approx(expected_jumps, rel=1e-14)


def test_sir_reaches_5136_states():
    chain = explored(SIR, {"beta": 0.12, "gamma": 0.05})
    assert len(chain) == 5136
    assert chain.states[0].tolist() == [95, 5, 0]
    assert (chain.states.sum(axis=1) == 100).all()


@pytest.mark.parametrize(
    "text",
    [
        "species S = 12, I = 2\nS + I -> 2 I @ S * I\nI -> 0 @ I",
        "species A = 0\n0 -> A @ 2 when A < 300\nA -> 0 @ A",  # thin and long
        "species A = 0, B = 0\n0 -> A @ 1 when A <= B and A < 90\n0 -> B @ 1 when B < A",  # a staircase
        "species A = 7\n2 A -> A @ mass_action(1)\nA -> A @ 3",  # a reaction that changes nothing
        "species A = 3, B = 0, C = 0\nA -> B @ A\nB -> C @ B\nC -> A @ C",
        "species A = 100\nA -> 0 @ if(A > 40, 1, 0)",  # stops on the way down
    ],
)
def test_states_and_jumps_are_those_of_a_naive_search(text):
    assert_right(Model.parse(text))


def test_a_model_in_which_nothing_happens_has_one_state():
    chain = explored(Model((Variable("x", parse_expression("5")),), ()))
    assert chain.states.tolist() == [[5.0]]
    assert chain.sources.tolist() == []
    assert len(explored(Model((), ()))) == 1


def test_updates_by_expression_are_followed():
    variables = (Variable("x", parse_expression("3"), -9, 9), Variable("y", parse_expression("0"), 0, 1))
    wrap = Transition("wrap", parse_expression("1"), update=(("x", parse_expression("if(x >= 9, -4, x + 1)")),))
    swap = Transition(
        "swap", parse_expression("k"), update=(("y", parse_expression("1 - y")), ("x", parse_expression("-x * y")))
    )
    small = Transition(
        "small", parse_expression("2"), update=(("x", parse_expression("0")),), guard=parse_condition("x < 0")
    )
    model = Model(variables, (wrap, swap, small), (Parameter("k", 0.5),))
    assert_right(model)
    states = explored(model).states
    assert not np.signbit(states[states == 0]).any()  # -0 and 0 are one state


small_networks = some.builds(
    lambda caps, starts, reactions: Model.parse(
        "\n".join(
            [
                f"species A = {min(starts[0], caps[0])}, B = {min(starts[1], caps[1])}",
                *(reaction.format(a=caps[0], b=caps[1]) for reaction in reactions),
            ]
        )
    ),
    some.tuples(some.integers(1, 40), some.integers(0, 3)),
    some.tuples(some.integers(0, 40), some.integers(0, 3)),
    some.lists(
        some.sampled_from(
            [
                "0 -> A @ 1 when A < {a}",
                "A -> 0 @ A",
                "0 -> 3 A @ 0.5 when A + 3 <= {a}",
                "2 A -> 0 @ A * (A - 1)",
                "A -> B @ A * if(B < {b}, 1, 0)",
                "B -> 2 A @ B * if(A + 2 <= {a}, 1, 0)",
                "0 -> B @ 2 when B < {b} and A > 2",
                "A + B -> A @ B * A",
            ]
        ),
        unique=True,
        min_size=1,
        max_size=6,
    ),
)


@given(small_networks)
def test_any_small_network_is_explored_as_by_a_naive_search(model):
    assert_right(model)


def test_a_chain_serves_other_rates_while_the_same_transitions_fire():
    chain = explored(SIR, {"beta": 0.12, "gamma": 0.05})
    theta = {"beta": 0.3, "gamma": 0.2}
    assert as_found(chain, theta)[1] == pytest.approx(searched(SIR, theta)[1], rel=1e-14)
    assert chain.rates(SIR.values({"beta": 0.0, "gamma": 0.05})) is None
    assert chain.rates(SIR.values({"beta": -1.0, "gamma": 0.05})) is None


@pytest.mark.parametrize("last", [0, 1, 7, 40, 1000])
def test_states_that_stop_are_kept_but_not_left(last):
    birth = Model.parse("species X = 0\n0 -> X @ 1\nX -> 0 @ X")
    chain = explored(birth, stop=lambda environment, size: environment["X"] >= last)
    assert sorted(chain.states[:, 0].tolist()) == list(range(last + 1))
    assert chain.followed.tolist() == [index for index, (count,) in enumerate(chain.states.tolist()) if count < last]


@pytest.mark.parametrize("text", ["species X = 0\n0 -> X @ 1", "species X = 0, Y = 0\n0 -> X @ 1\nX -> X + Y @ X"])
def test_more_states_than_allowed_are_refused_with_the_count_that_grows(text):
    with pytest.raises(ExactError, match=r"more than 1,000 states.* X = \d+.*\n.*when X < 100.*max_states"):
        explored(Model.parse(text), max_states=1000)


def test_as_many_states_as_allowed_are_fine():
    chain = Model.parse("species X = 0\n0 -> X @ 1 when X < 99")
    assert len(explored(chain, max_states=100)) == 100
    with pytest.raises(ExactError, match="more than 99 states"):
        explored(chain, max_states=99)


@pytest.mark.parametrize(
    ("rate", "shown"),
    [("sqrt(X - 3)", "nan"), ("1 / (X - 2)", "inf"), ("k * (X - 2.5)", "-0.5"), ("k * 1e308 * X", "inf")],
)
def test_a_rate_that_no_process_has_is_an_error_that_names_transition_state_and_parameters(rate, shown):
    model = Model.parse(f"species X = 6\nlose: X -> 0 @ X\nodd: X -> X @ {rate}")
    theta = {"k": 1.0} if "k" in rate else {}
    with pytest.raises(
        SimulationError, match=rf"the rate of odd is {shown} where X = \d.*\n.*finite and not negative"
    ) as caught:
        explored(model, theta, max_states=100)
    assert ("under k = 1" in str(caught.value).replace("\n", " ")) == bool(theta)


def test_a_rate_is_not_evaluated_where_its_guard_does_not_hold():
    model = Model.parse("species X = 3\nlose: X -> 0 @ X\nodd: X -> X @ 1 / X when X > 0")
    assert len(explored(model)) == 4


def test_a_count_outside_its_bounds_is_an_error_that_names_transition_and_state():
    fall = Transition("fall", parse_expression("2"), consumed=(("x", 2),))
    model = Model((Variable("x", parse_expression("5")),), (fall,))
    with pytest.raises(SimulationError, match=r"fall takes x to -1 from x = 1: it needs .*\n.*guard"):
        explored(model)
    rise = Transition("rise", parse_expression("1"), update=(("x", parse_expression("x + 1")),))
    model = Model((Variable("x", parse_expression("0"), 0, 3),), (rise,))
    with pytest.raises(SimulationError, match=r"rise takes x to 4 from x = 3"):
        explored(model)
    blow = Transition("blow", parse_expression("1"), update=(("x", parse_expression("1 / (x - x)")),))
    with pytest.raises(SimulationError, match=r"blow takes x to inf"):
        explored(Model((Variable("x", parse_expression("0")),), (blow,)))
