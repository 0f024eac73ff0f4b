"""observe_held_out: independent uniform points and runs, each from its own stream of one seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sateen as st
from sateen.core.seeds import stream_seed
from sateen.model.model import Model
from sateen.sampling.observe import observe_held_out

DECAY = Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
HALF = st.stl("F[0, 1] A <= 5")
SPACE = st.Space(k=(0.5, 4.0))


def test_it_observes_uniform_points_with_streams_named_after_their_use() -> None:
    held_out = observe_held_out(DECAY, EMPTY, SPACE, 20, 30, seed=7)
    points = SPACE.uniform(20, seed=stream_seed(7, "held-out points"))
    assert held_out.points.iid
    assert held_out.points == points
    expected = st.observe(DECAY, EMPTY, points, 30, seed=stream_seed(7, "held-out runs"))
    assert held_out.satisfied.tolist() == expected.satisfied.tolist()
    assert held_out.seeds == expected.seeds


def test_another_seed_draws_other_points_and_other_runs() -> None:
    first, second = (observe_held_out(DECAY, EMPTY, SPACE, 20, 30, seed=seed) for seed in (7, 8))
    assert not np.isin(first.theta, second.theta).any()
    assert set(first.seeds).isdisjoint(second.seeds)


def test_it_shares_nothing_with_training_observations_of_the_same_seed() -> None:
    training = st.observe(DECAY, EMPTY, SPACE.uniform(20, seed=7), 30, seed=7)
    held_out = observe_held_out(DECAY, EMPTY, SPACE, 20, 30, seed=7)
    assert set(training.seeds).isdisjoint(held_out.seeds)
    assert not np.isin(training.theta, held_out.theta).any()


def test_several_formulas_are_decided_on_one_set_of_runs() -> None:
    both = observe_held_out(DECAY, {"empty": EMPTY, "half": HALF}, SPACE, 10, 20, seed=1)
    alone = observe_held_out(DECAY, HALF, SPACE, 10, 20, seed=1)
    assert list(both) == ["empty", "half"]
    assert both["half"].satisfied.tolist() == alone.satisfied.tolist()
    assert (both["empty"].satisfied <= both["half"].satisfied).all()


def test_options_are_those_of_observe() -> None:
    capped = observe_held_out(DECAY, EMPTY, SPACE, 5, 20, seed=1, max_events=1, workers=1)
    assert capped.undecided.sum() == 100


def test_a_black_box_is_observed_too() -> None:
    def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
        return bool(rng.random() < theta["k"] / 4.0)

    held_out = observe_held_out(coin, None, SPACE, 5, 20, seed=1)
    assert held_out.trials.tolist() == [20] * 5


@pytest.mark.parametrize("seed", [-1, 1.5, True, "seven", 2**63])
def test_a_seed_is_checked_before_it_is_used(seed: Any) -> None:
    with pytest.raises(st.InputError, match="seed is a whole number"):
        observe_held_out(DECAY, EMPTY, SPACE, 5, 20, seed=seed)


@pytest.mark.parametrize("points", [0, -3, 2.5])
def test_a_number_of_points_is_checked(points: Any) -> None:
    with pytest.raises(st.SpaceError, match="whole number from 1 up"):
        observe_held_out(DECAY, EMPTY, SPACE, points, 20, seed=1)
