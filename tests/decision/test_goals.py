"""Goals: what they want, in words and numbers, and what they refuse."""

from __future__ import annotations

import pickle

import pytest

import sateen as st


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: st.Threshold(0.0), "probability"),
        (lambda: st.Threshold(1.0), "probability"),
        (lambda: st.Threshold("0.1"), "probability"),
        (lambda: st.Threshold(float("nan")), "probability"),
        (lambda: st.Threshold(0.1, undecided=0), "undecided"),
        (lambda: st.Threshold(0.1, level=1.5), "level"),
        (lambda: st.Width(2.0), "width"),
        (lambda: st.Width(0.1, share=0.0), "share"),
        (lambda: st.Error(-0.1), "error"),
        (lambda: st.Optimum(regret=0.0), "regret"),
        (lambda: st.Optimum(within={"k": 0.0}), "within"),
        (lambda: st.Optimum(worst=True), "worst"),
    ],
)
def test_a_goal_that_cannot_be_is_refused_by_its_argument(make, argument):
    with pytest.raises(st.InputError) as error:
        make()
    assert error.value.argument == argument


def test_a_goal_says_what_it_wants_and_where_it_stands():
    goal = st.Threshold(0.1, undecided=0.03)
    assert "3 % of the space undecided about f >= 0.1" in str(goal)
    assert goal.words(0.0512) == "5.12 % undecided"
    assert goal.aim == 0.03


def test_a_goal_travels_to_other_processes():
    goal = st.Optimum(within={"k": 0.1})
    assert pickle.loads(pickle.dumps(goal)) == goal
