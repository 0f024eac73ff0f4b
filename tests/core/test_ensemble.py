"""Ensembles: what they tell of the states they hold, and what they refuse."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

import sateen as st

STATES = np.array([[[9, 1], [7, 3]], [[9, 1], [8, 2]], [[9, 1], [8, 0]], [[9, 1], [1, 5]]], np.uint8)
SMALL = st.Ensemble([0, 2], STATES, ("X", "Y"), {"k": 0.5}, seed=3, point=4)
CUT = st.Ensemble([0, 2], [[[9.0], [np.nan]], [[8.0], [4.0]]], ("X",))


def test_it_tells_mean_deviation_quantiles_and_histogram():
    assert SMALL.mean.tolist() == [[9, 1], [6, 2.5]]
    assert SMALL.deviation[1] == pytest.approx([np.sqrt(34 / 3), np.sqrt(13 / 3)])
    assert SMALL.deviation[0].tolist() == [0, 0]
    assert SMALL.quantiles(0.5)[1].tolist() == [7, 2]
    assert SMALL.quantiles([0, 0.26, 1])[:, 1, 0].tolist() == [1, 7, 8]
    values, runs = SMALL.histogram("X", 2)
    assert (values.tolist(), runs.tolist()) == ([1, 7, 8], [1, 1, 2])
    assert (SMALL["Y"] == STATES[:, :, 1]).all()
    assert (SMALL.at(2) == STATES[:, 1]).all()
    assert len(SMALL) == 4


@given(arrays.arrays(np.int32, (7, 1, 1), elements=some.integers(-50, 50)), some.floats(0, 1))
def test_a_quantile_is_the_least_value_that_so_many_runs_do_not_exceed(states, level):
    values = np.sort(states.reshape(-1))
    least = next(value for value in values if np.sum(values <= value) >= 7 * level * (1 - 1e-12))
    assert st.Ensemble([1], states, ("X",)).quantiles(level).item() == least


def test_an_unknown_state_makes_unknown_what_depends_on_it_and_nothing_else():
    assert CUT.unknown.tolist() == [0, 1]
    for told in (CUT.mean, CUT.deviation, CUT.quantiles(0.9)):
        assert np.isfinite(told[0]).all()
        assert np.isnan(told[1]).all()
    values, runs = CUT.histogram("X", 2)
    assert (values.tolist(), runs.tolist()) == ([4], [1])
    assert repr(CUT) == "<Ensemble: 2 runs of X at 2 times, 0 to 2, 1 cut short>"


def test_of_one_run_the_deviation_is_unknown_and_of_none_everything():
    assert np.isnan(SMALL.deviation).sum() == 0
    one, none = (st.Ensemble([0, 2], STATES[:runs], ("X", "Y")) for runs in (1, 0))
    assert np.isnan(one.deviation).all()
    assert one.mean.tolist() == [[9, 1], [7, 3]]
    assert all(np.isnan(told).all() for told in (none.mean, none.deviation, none.quantiles(0.5)))


def test_its_table_is_the_same_as_a_frame_and_as_csv():
    stream = io.StringIO()
    SMALL.to_csv(stream, [0.5])
    text = stream.getvalue()
    assert text.startswith(
        "# runs: 4\n# seed: 3\n# value k: 0.5\ntime,species,mean,deviation,quantile 0.5,unknown\n0,X,9,"
    )
    frame = SMALL.frame([0.5])
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(text), comment="#"), frame, check_dtype=False)
    assert frame["mean"].tolist() == [9, 1, 6, 2.5]


def test_a_notebook_shows_some_times_and_always_the_first_and_the_last():
    many = st.Ensemble(np.arange(100), np.zeros((3, 100, 2), np.int16), ("<X>", "Y"))
    page = many._repr_html_()
    assert page.count("<tr>") == 13
    assert "&lt;X&gt;" in page
    assert "<td>0</td>" in page
    assert "<td>99</td>" in page


def test_it_is_read_only_equal_by_content_and_travels():
    copy = pickle.loads(pickle.dumps(CUT))
    assert copy == CUT
    assert hash(copy) == hash(CUT)
    assert CUT != SMALL
    assert SMALL != "an ensemble"
    with pytest.raises(ValueError, match="read-only"):
        SMALL.states[0, 0, 0] = 1


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "times are finite numbers from 0 on, at least one"),
        ([-1.0], "times are finite"),
        ([np.nan], "times are finite"),
        ([np.inf], "times are finite"),
        ([[1.0]], "times are finite"),
        (["soon"], "times must be numbers"),
        ([0.0, 2.0, 1.0], "times has 1 after 2; each must be later than the one before"),
        ([1.0, 1.0], "sort them, and leave out duplicates"),
    ],
)
def test_times_increase_from_0_on(times, message):
    with pytest.raises(st.InputError, match=message):
        st.Ensemble(times, np.zeros((1, len(times), 1)), ("X",))


def test_what_does_not_fit_or_is_not_there_is_refused():
    with pytest.raises(
        st.InputError, match=r"states need numbers in the shape \(runs, 2 times, 1 species\), not float64"
    ):
        st.Ensemble([0, 1], np.zeros((3, 2)), ("X",))
    with pytest.raises(st.InputError, match="the ensemble has no species Z; it has X, Y"):
        SMALL["Z"]
    with pytest.raises(st.InputError, match=r"the runs were not kept at time 1\.5; the nearest is 2"):
        SMALL.at(1.5)
    with pytest.raises(st.InputError, match=r"levels are shares from 0 to 1, not 1\.5"):
        SMALL.quantiles(1.5)
