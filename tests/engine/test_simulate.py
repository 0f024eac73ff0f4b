"""The reference simulator: what a seed fixes, where a path ends, and what is no process at all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sateen
from sateen.core.errors import InputError, MissingValueError, SimulationError
from sateen.core.path import Path
from sateen.engine.simulate import simulate
from sateen.language.expression import Number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Model, Transition, Variable

SIR = Model.parse("""
    species S = 95, I = 5, R = 0
    infect:  S + I -> 2 I @ beta * S * I / 100
    recover: I -> R       @ gamma * I
""")
THETA = {"beta": 0.12, "gamma": 0.05}
DEATH = Model.parse("species X = n\nparameter n = 10\nX -> 0 @ X")
BIRTH = Model.parse("species X = 0\n0 -> X @ k\nparameter k = 1")


def bare(rate: str, **parts: Any) -> Model:
    """One variable x from 1 on, and one transition `jump`, unchecked."""
    given = {"consumed": (), "produced": (("x", 1),), **parts}
    return Model((Variable("x", Number(1.0)),), (Transition("jump", parse_expression(rate), **given),))


# What a seed fixes.


@settings(max_examples=20)
@given(st.integers(0, 2**63))
def test_the_same_seed_gives_the_same_path(seed: int) -> None:
    one, other = (simulate(SIR, THETA, until=20, seed=seed) for _ in range(2))
    assert one == other
    assert one.times.tobytes() == other.times.tobytes()


def test_different_seeds_give_different_paths() -> None:
    paths = {simulate(SIR, THETA, until=20, seed=seed).times.tobytes() for seed in range(50)}
    assert len(paths) == 50


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short, long = (simulate(SIR, THETA, until=until, seed=3) for until in (10, 40))
    assert long.times[: len(short)].tolist() == short.times.tolist()
    assert long.states[: len(short)].tolist() == short.states.tolist()
    assert long.times[len(short)] > 10


def test_no_global_generator_is_used_or_moved() -> None:
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002 (it is the global one that must stay where it is)
    simulate(SIR, THETA, until=20, seed=1)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_a_seed_is_asked_for() -> None:
    with pytest.raises(TypeError, match="seed"):
        simulate(SIR, THETA, until=20)  # type: ignore[call-arg]


# What a path is.


def test_a_path_begins_at_the_initial_state_and_changes_as_the_reactions_say() -> None:
    path = simulate(SIR, THETA, until=200, seed=1)
    assert path.species == ("S", "I", "R")
    assert path.at(0) == {"S": 95, "I": 5, "R": 0}
    changes = {tuple(change) for change in np.diff(path.states, axis=0).tolist()}
    assert changes == {(-1, 1, 0), (0, -1, 1)}
    assert (path.states.sum(axis=1) == 100).all()
    assert (path.states >= 0).all()
    assert (np.diff(path.times) > 0).all()
    assert path.times[-1] <= 200


def test_a_path_keeps_the_values_it_was_made_under() -> None:
    model = Model.parse("species X = 1\nconstant c = 2 * k\nparameter j = 3\nX -> 0 @ X * c * j")
    assert dict(simulate(model, {"k": 0.5}, until=1, seed=1).values) == {"k": 0.5, "j": 3.0, "c": 1.0}


def test_the_public_verb_is_this_one() -> None:
    assert sateen.simulate(DEATH, until=3, seed=1) == simulate(DEATH, until=3, seed=1)


def test_initial_counts_may_be_parameters() -> None:
    assert simulate(DEATH, {"n": 3}, until=0, seed=1).at(0) == {"X": 3}
    assert simulate(DEATH, until=0, seed=1).at(0) == {"X": 10}


def test_a_missing_value_is_named() -> None:
    with pytest.raises(MissingValueError, match="the parameter gamma has no value"):
        simulate(SIR, {"beta": 0.1}, until=1, seed=1)


# Where it ends.


def test_a_path_ends_where_it_was_asked_to() -> None:
    path = simulate(BIRTH, until=7.5, seed=1)
    assert path.end == 7.5
    assert not path.absorbed


def test_no_time_is_a_path_of_one_state() -> None:
    path = simulate(BIRTH, until=0, seed=1)
    assert (len(path), path.end) == (1, 0.0)


def test_where_nothing_can_happen_any_more_a_path_is_absorbed() -> None:
    path = simulate(DEATH, until=1000, seed=1)
    assert path.absorbed
    assert len(path) == 11
    assert path.at(10**9) == {"X": 0}
    assert path.end == 1000


def test_a_state_in_which_nothing_happens_at_all_is_absorbed_at_once() -> None:
    path = simulate(DEATH, {"n": 0}, until=5, seed=1)
    assert path.absorbed
    assert len(path) == 1


def test_a_state_that_only_a_guard_holds_is_absorbed() -> None:
    path = simulate(bare("1", guard=parse_condition("x < 4")), until=1000, seed=1)
    assert path.absorbed
    assert path["x"].tolist() == [1, 2, 3, 4]


def test_a_run_that_is_not_over_is_not_absorbed() -> None:
    path = simulate(DEATH, {"n": 1000}, until=0.001, seed=1)
    assert not path.absorbed


@pytest.mark.parametrize("cap", [0, 1, 5, 100])
def test_after_max_events_a_path_ends_there_unfinished(cap: int) -> None:
    path = simulate(BIRTH, {"k": 1000}, until=1000, seed=1, max_events=cap)
    whole = simulate(BIRTH, {"k": 1000}, until=1, seed=1)
    assert len(path) == cap + 1
    assert path.end == path.times[-1] < 1000
    assert not path.absorbed
    assert path.times.tolist() == whole.times[: cap + 1].tolist()


def test_a_cap_that_is_not_reached_changes_nothing() -> None:
    assert simulate(DEATH, until=1000, seed=1, max_events=11) == simulate(DEATH, until=1000, seed=1)


def test_an_explosive_model_ends_by_max_events() -> None:
    """X -> 2 X at rate X^2 makes infinitely many jumps in finite time."""
    explosive = Model.parse("species X = 2\nX -> 2 X @ X^2")
    path = simulate(explosive, until=1000, seed=1, max_events=5_000)
    assert len(path) == 5_001
    assert path.end < 10
    assert path["X"][-1] == 5_002


def test_rates_so_large_that_time_stands_still_end_by_max_events() -> None:
    path = simulate(bare("1e300 * x"), until=1, seed=1, max_events=1_000)
    assert len(path) == 1_001
    assert path.end < 1e-290


@pytest.mark.parametrize("until", [-1, math.inf, math.nan])
def test_the_time_to_run_is_finite_and_not_negative(until: float) -> None:
    with pytest.raises(InputError, match="until is a time from 0 on"):
        simulate(BIRTH, until=until, seed=1)


# What is no process.


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        ("x / (x - 1)", "inf"),
        ("(x - 1) / (x - 1)", "nan"),
        ("x - 3", "-2"),
        ("-x", "-1"),
        ("log(x - 2)", "nan"),
        ("exp(1000 * x)", "inf"),
    ],
)
def test_a_rate_that_is_negative_infinite_or_undefined_is_an_error(rate: str, shown: str) -> None:
    with pytest.raises(SimulationError) as raised:
        simulate(bare(rate), until=10, seed=1)
    message = str(raised.value)
    assert message.startswith(f"the rate of jump is {shown} at time 0, where x = 1: {rate}")
    assert "a rate must be finite and not negative" in message


def test_the_error_names_the_time_and_the_state_in_which_it_happened() -> None:
    path = simulate(bare("4 - x"), until=1000, seed=1, max_events=3)
    assert path["x"].tolist() == [1, 2, 3, 4]
    tipping = bare("if(x < 4, 4 - x, -1)")
    with pytest.raises(SimulationError) as raised:
        simulate(tipping, until=1000, seed=1)
    assert f"the rate of jump is -1 at time {path.times[-1]:g}, where x = 4" in str(raised.value)


def test_a_guard_that_does_not_hold_keeps_the_rate_from_being_asked() -> None:
    path = simulate(bare("1 / (3 - x)", guard=parse_condition("x < 3")), until=1000, seed=1)
    assert path.absorbed
    assert path["x"][-1] == 3


def test_a_count_below_0_is_an_error_that_names_the_reaction() -> None:
    falling = bare("2", consumed=(("x", 1),), produced=())
    with pytest.raises(SimulationError, match=r"^jump takes x to -1 at time .*, from x = 0: it needs a whole"):
        simulate(falling, until=1000, seed=1)


def test_rates_whose_sum_is_infinite_are_an_error_of_the_model() -> None:
    model = bare("1e308")
    doubled = replace(
        model, transitions=(*model.transitions, *(replace(each, name="more") for each in model.transitions))
    )
    with pytest.raises(SimulationError, match="rates"):
        simulate(doubled, until=1, seed=1)


def test_an_update_and_a_change_happen_together() -> None:
    model = Model(
        (Variable("x", Number(5.0)), Variable("y", Number(0.0))),
        (Transition("both", parse_expression("x"), consumed=(("x", 1),), update=(("y", parse_expression("2 * x")),)),),
    )
    path = simulate(model, until=100, seed=1)
    assert path.states.tolist() == [[5, 0], [4, 10], [3, 8], [2, 6], [1, 4], [0, 2]]


# Chances; the distributions are in tests/statistical.


def test_a_transition_with_rate_0_is_never_chosen() -> None:
    model = Model.parse("species A = 500, B = 0, C = 0\nA -> B @ A\nA -> C @ 0 * A\nA -> C @ A * k")
    path = simulate(model, {"k": 0}, until=100, seed=1)
    assert path["C"].max() == 0
    assert path["B"][-1] == 500


def test_transitions_are_chosen_in_proportion_to_their_rates() -> None:
    """Of 20,000 jumps with rates 1 : 2 : 0 : 7, by the chi-square statistic at 1e-6."""
    from scipy.stats import chisquare

    model = Model.parse("species A = 0, B = 0, C = 0, D = 0\n0 -> A @ 1\n0 -> B @ 2\n0 -> C @ 0 * A\n0 -> D @ 7")
    final = simulate(model, until=1e9, seed=2, max_events=20_000).states[-1].tolist()
    assert final[2] == 0
    counts = [final[0], final[1], final[3]]
    assert sum(counts) == 20_000
    assert chisquare(counts, [2_000, 4_000, 14_000]).pvalue > 1e-6


def test_the_result_is_a_path() -> None:
    assert isinstance(simulate(BIRTH, until=1, seed=1), Path)
