"""Laws of ranges, spaces, designs and points."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import qmc

from sateen.core.errors import InputError, SateenError, SpaceError
from sateen.core.space import Points, Range, Seed, Space

EPSILON = float(np.finfo(float).eps)
LEAST_P = 1e-6

SPACE = Space(beta=(0.005, 0.3), gamma=Range(0.005, 0.2, scale="log"), k=0.05)
DRAWN = ("uniform", "sobol", "latin")
seeds = st.integers(0, 2**63)


@st.composite
def ranges(draw: st.DrawFn, scale: str | None = None) -> Range:
    chosen = draw(st.sampled_from(["linear", "log"])) if scale is None else scale
    number = st.floats(1e-300, 1e300) if chosen == "log" else st.floats(-8e307, 8e307)
    low, high = sorted((draw(number), draw(number)))
    if draw(st.booleans()):  # narrow: a few floats wide, where rounding would step outside
        low = math.copysign(max(abs(low), 1e-300), low)
        high = low + draw(st.integers(1, 20)) * math.ulp(low)
    assume(low < high and (chosen == "linear" or math.log(low) < math.log(high)))
    return Range(low, high, scale=chosen)


@st.composite
def spaces(draw: st.DrawFn, least: int = 1) -> Space:
    odd_and_plain = st.sampled_from(["a", "b", "c", "beta_1", "for", "k 1", "é'"])
    names = draw(st.lists(odd_and_plain, min_size=least, max_size=4, unique=True))
    varying = {name: draw(ranges()) for name in names}
    fixed = draw(st.dictionaries(st.sampled_from(["x", "y", "z 2"]), st.floats(-1e9, 1e9), max_size=2))
    return Space({**varying, **fixed})


def draw_points(space: Space, design: str, n: int, seed: Seed) -> Points:
    drawn: Points = getattr(space, design)(n, seed=seed)
    return drawn


# Ranges


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.3, 0.005), r"a range needs low < high, not \[0.3, 0.005\]; swap them"),
        ((1, 1), r"a range needs low < high, not \[1, 1\]; a single number fixes a parameter"),
        ((math.nan, 1), "low must be a finite number, not nan"),
        ((0, math.inf), "high must be a finite number, not inf"),
        (("0", 1), "low must be a finite number, not '0'"),
        ((False, 1), "low must be a finite number, not False"),
        ((0, 1, "log"), r"scale='log' needs low > 0, not \[0, 1\]; raise low or use scale='linear'"),
        ((1, 2, "cubic"), "scale is 'linear' or 'log', not 'cubic'"),
        ((-1.7e308, 1.7e308), "is too wide for a linear scale; move an end"),
        ((1e10, math.nextafter(1e10, math.inf), "log"), "is too narrow for a log scale; move an end"),
    ],
)
def test_a_range_that_cannot_be_says_why_and_what_to_do(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Range(*arguments)


def test_a_range_holds_plain_floats_whatever_numbers_it_was_given() -> None:
    made = Range(np.float32(0.5), Fraction(3, 4))
    assert made == Range(0.5, 0.75)
    assert (type(made.low), type(made.high)) == (float, float)
    assert math.copysign(1, Range(-0.0, 1).low) == 1


def test_a_range_prints_as_it_is_written() -> None:
    assert repr(Range(0, 0.3)) == "Range(0, 0.3)"
    assert repr(Range(0.005, 0.2, scale="log")) == "Range(0.005, 0.2, scale='log')"


@given(ranges())
@example(Range(1.03, 1.0300000000000042, scale="log"))
def test_the_ends_of_a_range_are_exactly_minus_one_and_one(own: Range) -> None:
    assert own.to_unit([own.low, own.high]).tolist() == [-1, 1]
    assert own.from_unit([-1, 1]).tolist() == [own.low, own.high]


@given(ranges(), st.lists(st.floats(-1, 1), min_size=1))
def test_no_unit_value_leaves_the_range_and_beyond_lies_the_nearest_end(own: Range, units: list[float]) -> None:
    inside = own.from_unit(units)
    assert ((own.low <= inside) & (inside <= own.high)).all()
    assert own.from_unit([-1.5, math.nextafter(1, 2)]).tolist() == [own.low, own.high]


@given(ranges(), st.floats(-1, 1))
def test_scaling_there_and_back_changes_a_value_by_rounding_only(own: Range, unit: float) -> None:
    value = float(own.from_unit(unit))
    back = float(own.from_unit(own.to_unit(value)))
    if own.scale == "log":
        size = value * (1 + abs(math.log(own.low)) + abs(math.log(own.high)))
    else:
        size = abs(own.low) + abs(own.high)
    assert abs(back - value) <= 8 * EPSILON * size + 1e-322


@given(ranges(), st.floats(0.01, 0.5))
def test_what_lies_outside_a_range_is_outside_the_unit_interval(own: Range, far: float) -> None:
    factor = 1 + far
    outside = own.high * factor if own.high > 0 else own.high / factor
    assume(math.isfinite(outside) and outside > own.high and math.isfinite(outside - own.low))
    assert own.to_unit(outside) >= 1


def test_the_middle_of_a_scale_is_the_mean_of_its_ends() -> None:
    assert Range(1, 3).from_unit(0) == 2
    assert Range(0.01, 1, scale="log").from_unit(0) == pytest.approx(0.1, rel=1e-15)


# Spaces


def test_a_space_keeps_the_order_of_its_names() -> None:
    space = Space(k=0.05, gamma=[0.1, 0.2], beta=(0, 1))
    assert space.names == ("gamma", "beta")
    assert dict(space.ranges) == {"gamma": Range(0.1, 0.2), "beta": Range(0, 1)}
    assert dict(space.fixed) == {"k": 0.05}
    assert (len(space), space.dimension) == (2, 2)
    assert list(space.uniform(1, seed=1)[0]) == ["k", "gamma", "beta"]


def test_a_mapping_holds_names_that_are_no_identifiers() -> None:
    space = Space({"weird name": (0, 1), "lambda": 2}, self=(0, 1), given=(0, 1))
    assert space.names == ("weird name", "self", "given")
    assert dict(space.fixed) == {"lambda": 2.0}


def test_a_space_prints_as_it_is_written() -> None:
    assert repr(SPACE) == "Space(beta=(0.005, 0.3), gamma=Range(0.005, 0.2, scale='log'), k=0.05)"
    assert repr(Space({"k 1": (0, 1)}, n=100)) == "Space({'k 1': (0, 1), 'n': 100})"
    assert repr(Space({"lambda": (0, 1)})) == "Space({'lambda': (0, 1)})"


@given(spaces(least=0))
def test_the_text_of_a_space_evaluates_to_an_equal_space(space: Space) -> None:
    again = eval(repr(space), {"Space": Space, "Range": Range})
    assert again == space
    assert again.parameters == space.parameters


@given(spaces(least=0))
def test_equal_spaces_have_equal_hashes_and_copies_are_equal(space: Space) -> None:
    for other in (Space(dict(space.parameters)), copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert other == space
        assert hash(other) == hash(space)


def test_spaces_differ_in_columns_ranges_scales_and_fixed_values_but_not_in_where_fixed_values_stand() -> None:
    space = Space(a=(1, 2), b=(1, 2), k=1)
    for other in (
        Space(b=(1, 2), a=(1, 2), k=1),
        Space(a=(1, 3), b=(1, 2), k=1),
        Space(a=Range(1, 2, scale="log"), b=(1, 2), k=1),
        Space(a=(1, 2), b=(1, 2), k=2),
        Space(a=(1, 2), b=(1, 2)),
        "Space(a=(1, 2), b=(1, 2), k=1)",
    ):
        assert space != other
    same = Space(k=1, a=(1, 2), b=(1, 2))
    assert space == same
    assert hash(space) == hash(same)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space(beta=(0.3, 0.005)), r"^beta: a range needs low < high, not \[0.3, 0.005\]"),
        (
            lambda: Space(beta=(0, 1, "log")),
            r"^beta: a parameter is a finite number, \(low, high\) or a Range, not \(0, 1",
        ),
        (lambda: Space(beta="high"), "^beta: a parameter is a finite number, .* not 'high'"),
        (lambda: Space(beta=None), "^beta: a parameter is a finite number, .* not None"),
        (lambda: Space(beta=True), "^beta: a parameter is a finite number, .* not True"),
        (lambda: Space(beta=math.nan), "^beta: a parameter is a finite number, .* not nan"),
        (lambda: Space(beta=(0, "x")), "^beta: high must be a finite number, not 'x'"),
        (lambda: Space({"beta": (0, 1)}, beta=1), "^beta is given twice; give it in the mapping or as an argument"),
        (lambda: Space({"": 1}), "^'' cannot name a parameter; a name is text, and not empty"),
        (lambda: Space({3: 1}), "^3 cannot name a parameter"),
        (lambda: Space(3), "^a Space takes names, or a mapping from names, to ranges or numbers, not 3"),
    ],
)
def test_a_space_that_cannot_be_names_the_parameter(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


def test_spaces_ranges_and_points_cannot_be_changed() -> None:
    points = SPACE.uniform(3, seed=1)
    for thing, attribute in (
        (SPACE, "parameters"),
        (SPACE.ranges["beta"], "low"),
        (points, "theta"),
        (points, "design"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, attribute, 1)
    for mapping in (SPACE.fixed, SPACE.ranges):
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping["k"] = 1  # type: ignore[index]
    for other in (points, points[1:], points[[0, 2]], copy.deepcopy(points), pickle.loads(pickle.dumps(points))):
        with pytest.raises(ValueError, match="read-only"):
            other.theta[0, 0] = 0


def test_space_is_shown_as_a_table_in_a_notebook() -> None:
    html = Space({"a<b": Range(1, 2, scale="log"), "k": 3})._repr_html_()
    assert "<td>a&lt;b</td><td>[1, 2]</td><td>log</td>" in html
    assert "<td>k</td><td>3.0</td><td>fixed</td>" in html


# Scaling and membership


@given(spaces(), seeds)
def test_a_space_scales_each_axis_by_its_own_range(space: Space, seed: int) -> None:
    theta = space.uniform(5, seed=seed).theta
    unit = space.to_unit(theta)
    assert (np.abs(unit) <= 1).all()
    for axis, own in enumerate(space.ranges.values()):
        assert np.array_equal(unit[:, axis], own.to_unit(theta[:, axis]))
        assert np.array_equal(space.from_unit(unit)[:, axis], own.from_unit(unit[:, axis]))


def test_one_scale_may_stand_in_for_all() -> None:
    space = Space(a=(1, 100), b=Range(1, 100, scale="log"))
    for scale in ("linear", "log"):
        unit = space.to_unit([[10, 10]], scale=scale)
        assert unit[0, 0] == unit[0, 1]
        assert space.from_unit(unit, scale=scale) == pytest.approx(np.array([[10, 10]]), rel=1e-14)
    assert space.to_unit([[10, 10]], scale="log") == pytest.approx(np.zeros((1, 2)), abs=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Space(a=(0, 1)).to_unit([[0.5]], scale="log"), r"^a: scale='log' needs low > 0, not \[0, 1\]"),
        (lambda: Space(a=(0, 1)).from_unit([[0.5]], scale="log"), r"^a: scale='log' needs low > 0"),
        (lambda: SPACE.to_unit([[0.1, 0.1]], scale="cubic"), "^beta: scale is 'linear' or 'log', not 'cubic'"),  # type: ignore[arg-type]
        (lambda: SPACE.to_unit([[0.1, -2]]), "^gamma: -2 has no logarithm; use scale='linear' or positive values"),
        (
            lambda: SPACE.to_unit([0.1, 0.1]),
            r"shape \(n, 2\), one column for each of beta, gamma, not \(2,\); a single",
        ),
        (lambda: SPACE.contains([[0.1]]), r"shape \(n, 2\), one column for each of beta, gamma, not \(1, 1\)$"),
    ],
)
def test_scaling_that_cannot_be_names_the_parameter(call: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        call()


def test_a_space_contains_its_faces_and_nothing_outside() -> None:
    rows = [[0.005, 0.005], [0.3, 0.2], [0.1, 0.1], [0.1, math.nextafter(0.2, 1)], [0.004, 0.1], [math.nan, 0.1]]
    assert SPACE.contains(rows).tolist() == [True, True, True, False, False, False]


# Designs


@given(spaces(), st.sampled_from(DRAWN), st.integers(1, 40), seeds)
def test_a_drawn_design_has_n_points_inside_and_is_fixed_by_its_seed(
    space: Space, design: str, n: int, seed: int
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points = draw_points(space, design, n, seed)
    assert points.theta.shape == (n, space.dimension)
    assert space.contains(points.theta).all()
    assert (points.space, points.design, points.iid) == (space, design, design == "uniform")
    again = draw_points(space, design, n, seed)
    assert again.theta.tobytes() == points.theta.tobytes()


@pytest.mark.parametrize("design", DRAWN)
def test_another_seed_draws_other_points(design: str) -> None:
    assert draw_points(SPACE, design, 8, 1) != draw_points(SPACE, design, 8, 2)


@pytest.mark.parametrize("design", DRAWN)
def test_a_seed_sequence_is_a_seed_and_is_left_as_it_was(design: str) -> None:
    sequence, other = np.random.SeedSequence(1).spawn(2)
    points = draw_points(SPACE, design, 8, sequence)
    assert points == draw_points(SPACE, design, 8, sequence)
    assert points != draw_points(SPACE, design, 8, other)
    assert sequence.n_children_spawned == 0


@pytest.mark.parametrize("design", DRAWN)
def test_a_design_without_seed_or_points_says_so(design: str) -> None:
    with pytest.raises(TypeError, match="seed"):
        getattr(SPACE, design)(8)
    for seed in (None, -1, 1.0, True, np.random.default_rng(1)):
        with pytest.raises(SpaceError, match=f"the seed of {design} must be a whole number from 0 up, not"):
            getattr(SPACE, design)(8, seed=seed)
    for n in (0, -3, 2.0, True, "8"):
        with pytest.raises(
            SpaceError, match=f"the number of points of {design} must be a whole number from 1 up, not {n!r}"
        ):
            getattr(SPACE, design)(n, seed=1)


def test_uniform_is_uniform_on_the_scale_of_each_range_and_independent() -> None:
    theta = SPACE.uniform(20_000, seed=1).theta
    beta = stats.uniform(0.005, 0.295)
    gamma = stats.loguniform(0.005, 0.2)
    assert stats.kstest(theta[:, 0], beta.cdf).pvalue > LEAST_P
    assert stats.kstest(theta[:, 1], gamma.cdf).pvalue > LEAST_P
    assert stats.kstest(theta[:, 1], stats.uniform(0.005, 0.195).cdf).pvalue < LEAST_P  # the test can tell them apart
    assert stats.spearmanr(theta[:, 0], theta[:, 1]).pvalue > LEAST_P
    assert stats.spearmanr(theta[:-1, 0], theta[1:, 0]).pvalue > LEAST_P


@pytest.mark.parametrize("n", [64, 100, 256])
def test_sobol_is_more_even_than_every_one_of_twenty_random_samples(n: int) -> None:
    def discrepancy(points: Points) -> float:
        return float(qmc.discrepancy((SPACE.to_unit(points.theta) + 1) / 2))

    random = [discrepancy(SPACE.uniform(n, seed=seed)) for seed in range(20)]
    assert max(discrepancy(SPACE.sobol(n, seed=seed)) for seed in range(20)) < min(random)


@given(st.integers(1, 200), seeds)
def test_sobol_takes_the_first_points_of_the_next_power_of_two(n: int, seed: int) -> None:
    whole = SPACE.sobol(2 ** (n - 1).bit_length(), seed=seed)
    assert SPACE.sobol(n, seed=seed) == whole[:n]


def strata(points: Points) -> np.ndarray:
    """The stratum of every point on every axis, counted from 0."""
    fraction = (points.space.to_unit(points.theta) + 1) / 2
    return np.floor(fraction * len(points)).astype(int)


@pytest.mark.parametrize(("design", "n"), [("latin", 1), ("latin", 7), ("latin", 500), ("sobol", 1), ("sobol", 512)])
def test_every_stratum_of_every_axis_holds_one_point(design: str, n: int) -> None:
    for seed in range(5):
        for column in strata(draw_points(SPACE, design, n, seed)).T:
            assert sorted(column) == list(range(n))


@given(spaces(), st.data())
def test_a_grid_holds_every_combination_with_exact_ends_and_the_last_axis_fastest(
    space: Space, data: st.DataObject
) -> None:
    counts = {name: data.draw(st.integers(2, 5)) for name in space.names}
    points = space.grid(counts)
    table = points.theta.reshape(*counts.values(), space.dimension)
    for axis, own in enumerate(space.ranges.values()):
        values = np.moveaxis(table[..., axis], axis, -1).reshape(-1, table.shape[axis])
        assert (values == values[0]).all()  # the value depends on the index along this axis alone
        assert (values[0, 0], values[0, -1]) == (own.low, own.high)
        assert (np.diff(values[0]) >= 0).all()
    assert space.contains(points.theta).all()
    assert (points.design, points.iid) == ("grid", False)


def test_a_grid_is_even_on_the_scale_of_each_range() -> None:
    points = Space(a=(0, 1), b=Range(0.01, 1, scale="log"), k=3).grid(3)
    assert points.theta[:3, 0].tolist() == [0, 0, 0]
    assert points.theta[:3, 1] == pytest.approx(np.array([0.01, 0.1, 1]), rel=1e-15)
    assert points.theta[::3, 0].tolist() == [0, 0.5, 1]


def test_a_grid_stays_inside_a_range_so_narrow_that_its_logarithms_round_outside() -> None:
    for low in (0.005, 0.7, 293.3461099414553):
        for steps in range(8, 60):
            space = Space(a=Range(low, low + steps * math.ulp(low), scale="log"))
            assert space.contains(space.grid(5).theta).all()


def test_a_grid_takes_its_numbers_in_any_order() -> None:
    assert SPACE.grid({"gamma": 2, "beta": 3}) == SPACE.grid({"beta": 3, "gamma": 2})
    assert SPACE.grid({"gamma": 4, "beta": 4}) == SPACE.grid(4)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (1, "^beta: a grid has both ends, so the number of its values must be a whole number from 2 up, not 1"),
        ({"beta": 3, "gamma": 2.5}, "^gamma: a grid .* whole number from 2 up, not 2.5"),
        ({"beta": 3}, "^gamma is missing; give it, or fix it in the Space"),
        ({"beta": 3, "gama": 3}, r"^gama is not one of \(beta, gamma\); did you mean gamma\?"),
        ({"beta": 3, "gamma": 3, "k": 3}, r"^k is not one of \(beta, gamma\); leave it out"),
    ],
)
def test_a_grid_that_cannot_be_names_the_parameter(counts: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SPACE.grid(counts)


# Points


def test_points_keep_a_copy_of_their_own_in_rows() -> None:
    theta = np.asfortranarray([[0.1, 0.01], [0.2, 0.02]])
    points = Points(theta, SPACE)
    theta[:] = 0.3
    assert points.theta.tolist() == [[0.1, 0.01], [0.2, 0.02]]
    assert points.theta.flags.c_contiguous
    assert points.theta.dtype == np.float64
    assert points.design == "given"


def test_a_point_is_a_dict_of_all_parameters_as_plain_floats() -> None:
    points = SPACE.points({"beta": [0.1, 0.2], "gamma": 0.01})
    assert points[1] == {"beta": 0.2, "gamma": 0.01, "k": 0.05}
    assert points[-1] == points[np.int64(1)] == points[1]
    assert list(points) == [points[0], points[1]]
    assert {type(value) for value in points[0].values()} == {float}
    with pytest.raises(IndexError):
        points[2]


@given(st.integers(0, 20).flatmap(lambda n: st.tuples(st.just(n + 1), st.slices(n + 1))))
def test_a_slice_keeps_the_design_for_it_does_not_look(case: tuple[int, slice]) -> None:
    n, part = case
    points = SPACE.uniform(n, seed=1)
    assert np.array_equal(points[part].theta, points.theta[part])
    assert points[part].iid
    assert SPACE.latin(n, seed=1)[part].design == "latin"


@pytest.mark.parametrize("index", [[2, 0], np.array([2, 0]), np.array([True, False, True, False]), [True] * 4, []])
def test_indices_and_masks_may_have_looked_so_the_design_is_given(index: Any) -> None:
    points = SPACE.uniform(4, seed=1)
    chosen = points[index]
    assert np.array_equal(chosen.theta, points.theta[np.asarray(index, dtype=None if len(index) else int)])
    assert (chosen.design, chosen.iid) == ("given", False)


@pytest.mark.parametrize("index", ["beta", (0, 1), 1.5, [0.5], [[0, 1]]])
def test_an_index_that_is_none_says_what_is(index: Any) -> None:
    with pytest.raises(SpaceError, match="points take a whole number, a slice, a list of whole numbers or a mask, not"):
        SPACE.uniform(4, seed=1)[index]


def test_points_are_equal_by_value_space_and_design() -> None:
    points = SPACE.uniform(4, seed=1)
    same = Points(points.theta, SPACE, "uniform")
    assert points == same
    assert hash(points) == hash(same)
    assert points == copy.deepcopy(points)
    for other in (points[:3], points[[0, 1, 2, 3]], SPACE.uniform(4, seed=2), points.theta.tolist()):
        assert points != other
    zero = Space(a=(-1, 1))
    assert zero.points([[0.0]]) == zero.points([[-0.0]])
    assert hash(zero.points([[0.0]])) == hash(zero.points([[-0.0]]))


def test_points_print_compactly() -> None:
    assert repr(Space(a=(0, 1)).sobol(500, seed=1)) == "<500 points, sobol, in Space(a=(0, 1))>"
    html = Space({"a<b": (0, 1), "k": 2}).grid(9)._repr_html_()
    assert "<caption>9 points, grid, of which the first 8</caption><tr><th>a&lt;b</th><th>k</th></tr>" in html
    assert html.count("<tr>") == 9
    assert "<td>0.125</td><td>2</td>" in html


def test_a_frame_has_all_parameters_in_order_and_reads_back() -> None:
    space = Space(k=2, b=(0, 1), a=(0, 1))
    for points in (space.latin(5, seed=1), space.latin(5, seed=1)[:0], Space(k=2).uniform(3, seed=1)):
        frame = points.frame()
        assert list(frame.columns) == [name for name, _ in points.space.parameters]
        assert frame.to_dict("records") == list(points)
        assert np.array_equal(points.space.points(frame).theta, points.theta)


def test_a_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SateenError, match="a data frame needs pandas, which is not installed: pip install pandas"):
        SPACE.uniform(2, seed=1).frame()


# Points from values of one's own


@given(spaces(), st.integers(1, 6), seeds, st.randoms(use_true_random=False))
def test_every_way_to_give_the_same_points_gives_the_same_points(space: Space, n: int, seed: int, random: Any) -> None:
    drawn = space.uniform(n, seed=seed)
    expected = Points(drawn.theta, space, "given")
    shuffled = list(space.names) + list(space.fixed)
    random.shuffle(shuffled)
    columns = {name: [point[name] for point in drawn] for name in shuffled}
    other = Space({name: dict(space.parameters)[name] for name in shuffled})
    for given_points in (
        drawn.theta,
        drawn.theta.tolist(),
        drawn,
        other.points(columns),
        columns,
        {name: np.array(values) for name, values in columns.items()},
        {**columns, **space.fixed},
        {name: columns[name] for name in space.names},
        list(drawn),
        [{name: point[name] for name in shuffled if name in space.names} for point in drawn],
        drawn.frame(),
        pd.DataFrame(columns),
        pd.DataFrame(columns, dtype="Float64"),
    ):
        assert space.points(given_points) == expected


@given(spaces(), st.integers(1, 5), st.data())
def test_numbers_are_repeated_beside_columns(space: Space, n: int, data: st.DataObject) -> None:
    repeated = data.draw(st.sets(st.sampled_from(space.names)))
    drawn = space.uniform(n, seed=1)
    given_columns: dict[str, Any] = {name: drawn.theta[:, axis] for axis, name in enumerate(space.names)}
    given_columns |= {name: drawn[0][name] for name in repeated}
    points = space.points(given_columns)
    assert len(points) == (n if len(repeated) < space.dimension else 1)
    for axis, name in enumerate(space.names):
        assert (points.theta[:, axis] == given_columns[name]).all()


def test_points_of_a_slice_of_the_space_are_points_of_the_space() -> None:
    line = Space(gamma=(0.01, 0.1), beta=0.2, k=0.05).grid(3)
    assert list(SPACE.points(line)) == list(line)


def test_points_without_rows_are_points() -> None:
    for nothing in ([], np.empty((0, 2)), {"beta": [], "gamma": 0.1}, SPACE.uniform(3, seed=1)[:0]):
        assert SPACE.points(nothing).theta.shape == (0, 2)


def test_a_space_in_which_nothing_varies_still_has_points() -> None:
    space = Space(k=2)
    for points in (
        *(draw_points(space, design, 3, 1) for design in DRAWN),
        space.points({"k": [2, 2, 2]}),
        space.points([{}] * 3),
    ):
        assert points.theta.shape == (3, 0)
        assert list(points) == [{"k": 2.0}] * 3
        assert space.points(points).theta.shape == (3, 0)
        assert space.contains(points.theta).tolist() == [True] * 3
    assert list(space.grid(5)) == list(space.points({})) == [{"k": 2.0}]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": 0.1}, "^gamma is missing; give it, or fix it in the Space$"),
        ([{"beta": 0.1, "gamma": 0.1}, {"beta": 0.1}], "^gamma is missing in row 1; give it, or fix it in the Space$"),
        (pd.DataFrame({"beta": [0.1]}), "^gamma is missing; "),
        (Space(beta=(0.1, 0.2)).grid(2), "^gamma is missing; "),
        ({"beta": 0.1, "gama": 0.1}, r"^gama is not one of \(beta, gamma, k\); did you mean gamma\?$"),
        (
            [{"beta": 0.1, "gamma": 0.1, "width": 1}],
            r"^width in row 0 is not one of \(beta, gamma, k\); leave it out$",
        ),
        (pd.DataFrame([[0.1, 0.1]]), r"^0 is not one of \(beta, gamma, k\); leave it out$"),
        (Space(beta=(0.1, 0.2), gamma=0.1, delta=(0, 1)).grid(2), r"^delta is not one of \(beta, gamma, k\); did you"),
        ({"beta": [0.1, math.nan], "gamma": 0.1}, "^beta is nan in row 1; every value must be a finite number$"),
        ([[0.1, 0.1], [0.1, math.inf]], "^gamma is inf in row 1; every value must be a finite number$"),
        ({"beta": [0.1, None], "gamma": 0.1}, "^beta is nan in row 1; every value must be a finite number$"),
        ({"beta": np.ma.array([0.1, 0.2], mask=[0, 1]), "gamma": 0.1}, "^beta is nan in row 1; "),
        (
            {"beta": 0.1, "gamma": [0.1, 0.1, 0.25]},
            r"^gamma is 0.25 in row 2, outside its range \[0.005, 0.2\]\n  move it inside or pass extrapolate=True$",
        ),
        ([[0.1, 0.1], [0, 0.1]], r"^beta is 0 in row 1, outside its range \[0.005, 0.3\]\n  move it inside"),
        (Space(beta=(0, 1), gamma=0.1).grid(2), r"^beta is 0 in row 0, outside its range \[0.005, 0.3\]"),
        (
            {"beta": 0.1, "gamma": 0.1, "k": [0.05, 0.06]},
            "^k is 0.06 in row 1, but fixed at 0.05\n  leave it out, or let it vary$",
        ),
        ({"beta": 0.1, "gamma": 0.1, "k": math.nan}, "^k is nan in row 0, but fixed at 0.05"),
        (Space(beta=(0.1, 0.2), gamma=0.1, k=1).grid(2), "^k is 1 in row 0, but fixed at 0.05"),
        ({"beta": [0.1, 0.2], "gamma": [0.1] * 3}, "^gamma has 3 values but beta has 2; give as many, or one number$"),
        (
            {"beta": [[0.1, 0.2]], "gamma": 0.1},
            r"^beta needs a number or a plain column, not an array of shape \(1, 2\)$",
        ),
        (
            pd.DataFrame([[0.1, 0.1, 0.1]], columns=["beta", "gamma", "beta"]),
            r"^beta needs a number or a plain column, not an array of shape \(1, 2\)$",
        ),
        ({"beta": [[0.1], [0.1, 0.2]], "gamma": 0.1}, "^beta must be numbers: "),
        ({"beta": ["low", "high"], "gamma": 0.1}, "^beta must be numbers, not of type str"),
        ({"beta": [True, False], "gamma": 0.1}, "^beta must be numbers, not of type bool$"),
        ({"beta": 0.1j, "gamma": 0.1}, "^beta must be numbers, not of type complex128$"),
        ({"beta": 10**400, "gamma": 0.1}, "^beta must be numbers: int too large"),
        (pd.DataFrame({"beta": ["a"], "gamma": [0.1]}), "^beta must be numbers"),
        (
            [0.1, 0.1],
            r"^theta needs the shape \(n, 2\), one column for each of beta, gamma, not \(2,\); a single point is",
        ),
        ([[0.1, 0.1, 0.05]], r"^theta needs the shape \(n, 2\), one column for each of beta, gamma, not \(1, 3\)$"),
        ("beta", "^theta must be numbers, not of type str"),
        (None, r"^theta needs the shape \(n, 2\)"),
    ],
)
def test_points_that_cannot_be_name_the_parameter_and_the_row(values: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SPACE.points(values)


def test_extrapolation_is_allowed_when_asked_for_but_never_past_what_is_finite_or_fixed() -> None:
    points = SPACE.points({"beta": [0.1, 2], "gamma": -1}, extrapolate=True)
    assert points.theta.tolist() == [[0.1, -1], [2, -1]]
    assert SPACE.contains(points.theta).tolist() == [False, False]
    with pytest.raises(SpaceError, match="beta is 2 in row 1, outside its range"):
        SPACE.points({"beta": [0.1, 2], "gamma": 0.1})
    for wrong in ({"beta": math.inf, "gamma": 1}, {"beta": 1, "gamma": 1, "k": 1}):
        with pytest.raises(SpaceError):
            SPACE.points(wrong, extrapolate=True)


@given(spaces(), st.data())
@example(Space(a=(0, 1)), None).via("the smallest float above the range")
def test_a_value_one_step_outside_is_outside(space: Space, data: st.DataObject | None) -> None:
    name = space.names[0] if data is None else data.draw(st.sampled_from(space.names))
    point = space.uniform(1, seed=1)[0]
    for end, beyond in ((space.ranges[name].low, -math.inf), (space.ranges[name].high, math.inf)):
        assert len(space.points({**point, name: end})) == 1
        with pytest.raises(InputError, match="outside its range"):
            space.points({**point, name: math.nextafter(end, beyond)})


def test_a_space_is_made_and_sampled_without_loading_scipy_or_pandas() -> None:
    program = (
        "import sys; from sateen.core.space import Space\n"
        "space = Space(a=(0, 1)); space.points(space.uniform(3, seed=1)); space.grid(3)\n"
        "sys.exit(', '.join({'scipy', 'pandas', 'llvmlite', 'matplotlib', 'lark'} & set(sys.modules)))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.stderr.strip() == ""
