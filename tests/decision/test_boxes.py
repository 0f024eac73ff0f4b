"""The largest box, against shapes whose largest box is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sateen as st
from known_functions import PLANE, observed
from sateen.decision.boxes import largest_box

Shape = Callable[[Any], Any]


def cube(dimension: int) -> st.Space:
    return st.Space({f"k{axis}": (0.0, 1.0) for axis in range(dimension)})


def volume(box: st.Space, space: st.Space) -> float:
    ends = np.array([[range_.low, range_.high] for range_ in box.ranges.values()]).T
    low, high = (space.to_unit(ends) + 1) / 2
    return float(np.prod(high - low))


def corners(box: st.Space) -> Any:
    return box.grid(2).theta


def under_the_diagonal(theta: Any) -> Any:
    return theta.sum(axis=1) < theta.shape[1] / 2  # the largest box has the sides 1/2, by arithmetic and geometric mean


def in_a_ball(theta: Any) -> Any:
    return ((theta - 0.5) ** 2).sum(axis=1) < 0.2  # the largest box is a cube


def in_a_box(theta: Any) -> Any:
    return ((theta > 0.2) & (theta < 0.9)).all(axis=1)


@pytest.mark.parametrize(("dimension", "share"), [(1, 0.97), (2, 0.93), (3, 0.88), (5, 0.75)])
@pytest.mark.parametrize("shape", [under_the_diagonal, in_a_ball, in_a_box])
def test_it_is_inside_and_nearly_the_largest(shape: Shape, dimension: int, share: float) -> None:
    space = cube(dimension)
    box = largest_box(shape, space, "inside", seed=4)
    best = {
        under_the_diagonal: 0.5**dimension,
        in_a_ball: min(2 * math.sqrt(0.2 / dimension), 1.0) ** dimension,
        in_a_box: 0.7**dimension,
    }[shape]
    assert share * best < volume(box, space) <= best * (1 + 1e-9)
    assert shape(corners(box)).all()
    assert shape(box.uniform(10_000, seed=1).theta).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [under_the_diagonal, in_a_box])
def test_ten_parameters_are_not_too_many(shape: Shape) -> None:
    box = largest_box(shape, cube(10), "inside", seed=4)
    assert shape(corners(box)).all()
    assert volume(box, cube(10)) > 0.5 * (0.5 if shape is under_the_diagonal else 0.7) ** 10


def test_holes_are_left_out() -> None:
    def around(theta: Any) -> Any:
        return ((theta - 0.4) ** 2).sum(axis=1) > 0.01  # a hole of radius 0.1: right of it, or above, 0.5 of the square

    space = cube(2)
    box = largest_box(around, space, "outside", seed=4)
    assert around(box.grid(200).theta).all()
    assert 0.48 < volume(box, space) <= 0.5


def test_nothing_is_lost_where_all_is_decided() -> None:
    assert largest_box(lambda theta: np.ones(len(theta), dtype=bool), PLANE, "all", seed=4) == PLANE


def test_scales_and_fixed_values_stay() -> None:
    space = st.Space(k=3.0, a=st.Range(0.01, 100.0, scale="log"), b=(-1.0, 1.0))
    box = largest_box(lambda theta: (theta[:, 0] > 1) & (theta[:, 1] < 0), space, "there", seed=4)
    assert [name for name, _ in box.parameters] == ["k", "a", "b"]
    assert dict(box.fixed) == {"k": 3.0}
    assert (box.ranges["a"].scale, box.ranges["b"].scale) == ("log", "linear")
    assert 1.0 <= box.ranges["a"].low < 1.2
    assert box.ranges["a"].high == 100.0
    assert box.ranges["b"].low == -1.0
    assert -0.05 < box.ranges["b"].high < 0.0


@pytest.mark.parametrize(("seed", "radius"), [(0, 0.1), (7, 0.27), (12_345, 0.43), (2**31, 0.6)])
def test_every_seed_gives_a_box_inside(seed: int, radius: float) -> None:
    def inside(theta: Any) -> Any:
        return ((theta - 0.5) ** 2).sum(axis=1) < radius**2

    box = largest_box(inside, cube(2), "inside", seed=seed)
    assert inside(box.grid(50).theta).all()
    again = largest_box(inside, cube(2), "inside", seed=seed)
    assert box == again


def test_a_region_that_is_empty_or_too_thin_is_refused() -> None:
    with pytest.raises(st.InputError, match=r"none of 16,384 points is above 0\.9\n  st\.refine"):
        largest_box(lambda theta: np.zeros(len(theta), dtype=bool), PLANE, "above 0.9", seed=4)
    thin = np.random.default_rng(0).random
    with pytest.raises(st.InputError, match="too thin"):
        largest_box(lambda theta: thin(len(theta)) < 0.5, PLANE, "noise", seed=4)
    with pytest.raises(st.InputError, match="the only point is not above"):
        largest_box(lambda theta: np.zeros(len(theta), dtype=bool), st.Space(k=1.0), "above 0.9", seed=4)


def test_the_box_of_regions_is_on_the_side_that_was_asked_for() -> None:
    posterior = st.SVIGP().fit(observed(PLANE, 80, 50, 3), seed=1)
    for asked in ({"above": 0.3}, {"below": 0.3}):
        regions = st.decide(posterior, seed=2, **asked)
        box = regions.box()
        inside = PLANE.points(box.uniform(5000, seed=9).theta)
        assert (regions.of(inside) == regions.side).mean() > 0.9995
        assert 0.3 * regions.volume < volume(box, PLANE) < regions.volume
        assert regions.box(seed=2) == box
    with pytest.raises(st.InputError, match=r"is above 0\.999"):
        st.decide(posterior, above=0.999, seed=2).box()
