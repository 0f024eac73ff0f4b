"""States at given times are those of the paths that `replay` shows."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sampled_states import states_at
from sateen.engine.run import replay

MODEL = st.Model.parse("""
    species X = 20, Y = 0
    decay: X -> Y @ k * X
    event reset: X := 20, Y := 0 when time >= 3
""")


def test_states_at_times_are_those_of_the_replayed_runs_also_at_the_instant_of_an_event():
    times = [4.0, 0.0, 2.5, 3.0, 3.0]
    found = states_at(MODEL, {"k": 0.5}, times, runs=5, seed=3)
    for run in range(5):
        path = replay(MODEL, {"k": 0.5}, until=5, seed=3, run=run)
        assert found[run].tolist() == [list(path.at(time).values()) for time in times]
    assert (found[:, 3] == [20, 0]).all()


@pytest.mark.parametrize("times", [[], [-1.0], [np.nan], [np.inf], [[1.0]]])
def test_times_are_finite_numbers_from_0_on(times):
    with pytest.raises(st.InputError, match="times are finite numbers from 0 on"):
        states_at(MODEL, {"k": 0.5}, times, runs=1, seed=1)


def test_a_run_that_fails_or_does_not_end_says_so():
    with pytest.raises(st.SimulationError, match="the rate of decay is -10"):
        states_at(MODEL, {"k": -0.5}, [1.0], runs=1, seed=1)
    with pytest.raises(st.SimulationError, match="run 0 ended after 3 events, before time 100"):
        states_at(MODEL, {"k": 0.5}, [100.0], runs=1, seed=1, max_events=3)


def test_without_runs_there_are_no_states():
    assert states_at(MODEL, {"k": 0.5}, [1.0], runs=0, seed=1).shape == (0, 1, 2)
