"""The mean and the greatest width of intervals: against functions whose widths are known."""

import numpy as np
import pytest

import sateen as st
from sateen.assess.widths import widths_over
from sateen.core.prediction import Claim, Prediction

CLAIM = Claim("probability", "credible", 0.9, "")


def bump(space, centre, height, size):
    """Intervals that are 0.1 wide, and wider by a bump around a place of the unit box."""

    def predict(points):
        unit = space.to_unit(points.theta)
        width = 0.1 + height * np.exp(-(((unit - np.array(centre)) / size) ** 2).sum(axis=1))
        return Prediction(points, np.full(len(points), 0.5), width, 0.5 - width / 2, 0.5 + width / 2, 0.9, CLAIM)

    return predict


@pytest.mark.parametrize(
    ("space", "centre"),
    [
        (st.Space(k=(0.1, 2)), [0.3172]),
        (st.Space(k=(0.1, 2), m=st.Range(0.01, 1, scale="log")), [-0.413, 0.77]),
        (st.Space(a=(0, 1), b=(0, 1), c=(0, 1)), [0.2, -0.3, 0.6]),
    ],
)
def test_the_widest_place_inside_is_found_though_no_point_of_the_grid_is_there(space, centre):
    found = widths_over(space, bump(space, centre, 0.5, 0.2))
    assert found.greatest == pytest.approx(0.6, rel=2e-3)
    assert found.greatest <= 0.6 + 1e-12  # it is a width that occurs


def test_the_widest_corner_is_found_where_the_sequence_does_not_come(  # by Gaussian processes it often is one
):
    space = st.Space(a=(0, 1), b=(0, 1), c=(0, 1), d=(0, 1))
    assert widths_over(space, bump(space, [1, -1, 1, 1], 0.5, 0.01)).greatest == pytest.approx(0.6, abs=1e-12)


def test_the_mean_is_that_over_the_space():
    space = st.Space(k=(0.1, 2))
    found = widths_over(space, bump(space, [0.0], 0.5, 0.2))
    exact = 0.1 + 0.5 * 0.2 * np.sqrt(np.pi) / 2  # of a bump that ends well inside, over a length of 2
    assert found.mean == pytest.approx(exact, rel=5e-3)


def test_it_says_how_it_was_found_and_finds_the_same_again():
    space = st.Space(k=(0.1, 2))
    found = widths_over(space, bump(space, [0.0], 0.5, 0.2))
    assert f"(the widest found by a search of {found.searched:,} points)" in str(found)
    assert found == widths_over(space, bump(space, [0.0], 0.5, 0.2))


def test_where_nothing_varies_there_is_one_width():
    space = st.Space(k=1.0)
    prediction = Prediction(space.points({}), [0.5], [0.1], [0.4], [0.7], 0.9, CLAIM)
    found = widths_over(space, lambda _: prediction)
    assert (found.mean, found.greatest, found.searched) == (pytest.approx(0.3), pytest.approx(0.3), 1)
    assert str(found) == "0.3 wide"
