"""Maps of bounds hold at every parameter, and say what they reached."""

from __future__ import annotations

import numpy as np
import pytest

import bounded_chains
import sateen as st
from sateen.core.errors import ExactError, InputError

MODEL = st.Model.parse("""
    species X = 0
    arrive: 0 -> X @ lam when X < 9
    serve:  X -> 0 @ mu * min(X, 1)
""")
FORMULA = "F[0, 10] X == 9"
SPACE = st.Space(lam=(0.8, 1.6), mu=st.Range(0.5, 1.5, scale="log"))


@pytest.fixture(scope="module")
def found() -> st.BoundMap:
    return st.bounds(MODEL, FORMULA, SPACE, width=0.08)


def test_bounds_enclose_exact_values_at_random_parameters(found):
    points = SPACE.uniform(1000, seed=1)
    lower, upper = found.at(points)
    truth = st.exact(MODEL, st.stl(FORMULA), points)
    assert (lower <= truth + 1e-10).all()
    assert (truth <= upper + 1e-10).all()
    assert (upper - lower <= 0.08).all()


def test_it_says_what_it_reached(found):
    assert found.reached
    assert found.widest <= 0.08
    assert found.mean_width < found.widest
    assert found.shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert "0.08 apart" in found.reason
    assert "BoundMap" in repr(found)
    assert "computed, not sampled" in str(found.claim)
    assert found.claim.mode == "sure"
    assert "<table>" in found._repr_html_()


def test_extremes_lie_between_their_bounds(found):
    high, low = (
        st.exact(MODEL, st.stl(FORMULA), theta)[0] for theta in ({"lam": 1.6, "mu": 0.5}, {"lam": 0.8, "mu": 1.5})
    )
    assert found.supremum[0] <= high + 1e-10 <= found.supremum[1] + 2e-10
    assert found.infimum[0] <= low + 1e-10 <= found.infimum[1] + 2e-10


def test_limits_leave_it_wider_but_as_sure():
    few = st.bounds(MODEL, FORMULA, SPACE, width=0.001, cells=100)
    assert not few.reached
    assert "bounds are computed" in few.reason
    points = SPACE.uniform(200, seed=2)
    lower, upper = few.at(points)
    truth = st.exact(MODEL, st.stl(FORMULA), points)
    assert ((lower <= truth + 1e-10) & (truth <= upper + 1e-10)).all()
    none = st.bounds(MODEL, FORMULA, SPACE, width=0.001, seconds=0.0)
    assert len(none) == 1
    assert "seconds" in none.reason


def test_a_parameter_that_does_not_matter_is_not_split():
    model = st.Model.parse("species A = 3, B = 0\nA -> 0 @ k * A\n0 -> B @ j when A > 9")
    found = st.bounds(model, "F[0, 1] A == 0", st.Space(k=(0.5, 2.0), j=(1, 2)), width=0.05)
    assert found.reached
    assert (found.low[:, 1] == 1).all()
    assert (found.high[:, 1] == 2).all()


def test_the_queue_of_the_examples_with_two_parameters(tmp_path):
    model = bounded_chains.queue(tmp_path)
    space = st.Space(arrival=(0.5, 2.0), answer=(1.0, 3.0))
    formula = st.stl("F[0, 20] waiting == 10")
    found = st.bounds(model, formula, space, width=0.15)
    points = space.uniform(300, seed=4)
    lower, upper = found.at(points)
    truth = st.exact(model, formula, points)
    assert found.reached
    assert ((lower <= truth + 1e-10) & (truth <= upper + 1e-10)).all()


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="width"):
        st.bounds(MODEL, FORMULA, SPACE, width=0.0)
    with pytest.raises(ExactError, match="more than 5 states") as caught:
        st.bounds(MODEL, FORMULA, SPACE, max_states=5)
    assert "fresh" in str(caught.value)
    with pytest.raises(st.MissingValueError, match="lum"):
        st.bounds(MODEL, FORMULA, st.Space(lum=(1, 2), lam=1.0, mu=1.0))


def test_points_outside_are_refused(found):
    with pytest.raises(st.SpaceError):
        found.at({"lam": 9.0, "mu": 1.0})


def test_the_same_question_has_the_same_map(found):
    again = st.bounds(MODEL, FORMULA, SPACE, width=0.08)
    assert np.array_equal(found.lower, again.lower)
    assert np.array_equal(found.high, again.high)
