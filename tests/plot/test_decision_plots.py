"""Figures of decisions draw what was decided, name it, and carry its claim."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Patch, StepPatch
from matplotlib.text import Text

import sateen as st
from known_functions import LINE, PLANE, observed
from sateen.plot import decision as draw
from sateen.plot.figures import save

MANY = st.Space({"slow": (0.1, 1.0), "fast": st.Range(0.1, 10.0, scale="log"), "odd_$x": (1, 2)})
COLOURS = {"above": "#0072b2", "undecided": "#dddddd", "below": "#e69f00"}
SURE = st.Claim("probability", "sure", 1.0, "of the space")


@cache
def regions(space: st.Space, threshold: float = 0.4) -> st.Regions:
    posterior = st.EPGP(inputs="linear").fit(observed(space, 60, 40, 3), seed=1)
    return st.decide(posterior, above=threshold, seed=2, points=1024)


def words(figure: Figure) -> str:
    figure.draw_without_rendering()
    return " ".join(" ".join(text.get_text() for text in figure.findobj(Text)).split())


def legend_patches(figure: Figure) -> Iterator[Patch]:
    legends = [axes.get_legend() for axes in figure.axes] + list(figure.legends)
    for legend in legends:
        if legend is not None:
            yield from (each for each in legend.legend_handles if isinstance(each, Patch))


def colour_at(axes: Axes, points: Any) -> list[str]:
    """The colour of a map of sides at each point: of the shape around it, or else of what lies behind all shapes."""
    found = [to_hex(axes.get_facecolor())] * len(points)
    for shape in axes.collections:
        if isinstance(shape, QuadContourSet) and shape.filled:
            (path,) = shape.get_paths()
            inside = path.contains_points(points)
            found = [to_hex(shape.get_facecolor()[0]) if here else old for here, old in zip(inside, found, strict=True)]
    return found


class TestRegions:
    def test_a_map_has_the_three_colours_where_the_sides_are(self) -> None:
        axes = regions(PLANE).plot()
        points = PLANE.uniform(300, seed=1)
        bands = regions(PLANE).bands(points)
        sure = np.minimum(abs(bands.lower - 0.4), abs(bands.upper - 0.4)) > 1e-3  # borders run between the drawn points
        sides = [COLOURS[str(side)] for side in regions(PLANE).of(points)]
        assert set(sides) == set(COLOURS.values())
        drawn = colour_at(axes, points.theta)
        assert [each for each, kept in zip(drawn, sure, strict=True) if kept] == [
            each for each, kept in zip(sides, sure, strict=True) if kept
        ]
        assert sure.mean() > 0.9

    def test_the_legend_tells_each_side_with_its_share_and_the_title_the_threshold(self) -> None:
        for space in (LINE, PLANE, MANY):
            drawn: Any = regions(space).plot()
            figure = drawn if isinstance(drawn, Figure) else drawn.figure
            text = words(figure)
            for side, name in (("above", "above 0.4"), ("below", "below 0.4"), ("undecided", "undecided")):
                assert f"{name}: {100 * getattr(regions(space), side):.3g} %" in text
            assert "Where the probability is above or below 0.4, by bands of 95 %" in text
            assert "a belief, which guarantees nothing." in text
            assert {to_hex(each.get_facecolor()) for each in legend_patches(figure)} == set(COLOURS.values())

    def test_a_band_over_one_parameter_is_coloured_by_stretches(self) -> None:
        axes = regions(LINE).plot()
        bands = [to_hex(shape.get_facecolor()[0]) for shape in axes.collections if len(shape.get_paths())]
        assert bands[0] == COLOURS["above"]
        assert COLOURS["below"] in bands
        spans = [(each.get_x(), each.get_width(), to_hex(each.get_facecolor())) for each in axes.patches]
        assert sum(width for _, width, _ in spans) == pytest.approx(0.99, rel=0.01)
        for left, width, colour in spans:
            (side,) = regions(LINE).of({"beta": left + width / 2})
            assert colour == COLOURS[str(side)]

    def test_runs_are_dots_larger_for_more(self) -> None:
        seen = observed(PLANE, 30, np.arange(1, 31) * 10, 5)
        axes = regions(PLANE).plot(observations=seen)
        (dots,) = (shape for shape in axes.collections if isinstance(shape, PathCollection))
        assert np.allclose(dots.get_offsets(), seen.theta)
        assert (np.diff(dots.get_sizes()) >= 0).all()
        assert dots.get_sizes()[-1] > dots.get_sizes()[0]
        on_a_line: Any = regions(LINE).plot(observations=observed(LINE, 30, 40, 5))
        (dots,) = (shape for shape in on_a_line.collections if isinstance(shape, PathCollection))
        assert np.allclose(dots.get_offsets()[:, 1], observed(LINE, 30, 40, 5).frequency)

    def test_more_parameters_have_a_slice_for_each_pair(self) -> None:
        figure = regions(MANY).plot(observations=observed(MANY, 20, 10, 5))
        assert isinstance(figure, Figure)
        shown = [axes for axes in figure.axes if axes.get_visible()]
        assert len(shown) == 3
        assert "Slices through slow = 0.55, fast = 1, odd_$x = 1.5 (+)" in words(figure)
        other = regions(MANY).plot(at={"slow": 0.2})
        assert "Slices through slow = 0.2, fast = 1, odd_$x = 1.5 (+)" in words(other)
        with pytest.raises(st.SpaceError, match="slow is 3"):
            regions(MANY).plot(at={"slow": 3.0})

    def test_of_very_many_parameters_the_first_are_shown(self) -> None:
        space = st.Space({f"k{axis}": (0.1, 1.0) for axis in range(8)})
        figure = regions(space).plot()
        assert len([axes for axes in figure.axes if axes.get_visible()]) == 15
        assert "Of 8 parameters the first 6 are shown" in words(figure)

    def test_it_draws_on_the_axes_it_is_given_where_one_is_enough(self) -> None:
        axes = Figure().add_subplot()
        assert regions(PLANE).plot(ax=axes) is axes
        with pytest.raises(st.InputError, match="a slice for each pair"):
            regions(MANY).plot(ax=axes)

    def test_nothing_is_drawn_where_nothing_varies(self) -> None:
        seen = st.Observations.from_counts(st.Space(k=2.0), np.empty((1, 0)), [90], [100])
        with pytest.raises(st.InputError, match="nothing to draw"):
            st.decide(st.EPGP().fit(seen, seed=1), above=0.5, seed=1).plot()

    def test_a_space_that_is_all_on_one_side_has_no_line(self) -> None:
        axes = regions(PLANE, 0.999).plot()
        assert set(colour_at(axes, PLANE.uniform(50, seed=1).theta)) <= {COLOURS["below"], COLOURS["undecided"]}
        assert not [each for each in axes.collections if isinstance(each, QuadContourSet) and not each.filled]


def refined(figures: list[float], aim: float = 0.03) -> Any:
    rounds = [SimpleNamespace(runs=1000 * 2**number, figure=figure) for number, figure in enumerate(figures)]
    return SimpleNamespace(
        goal=SimpleNamespace(name="undecided share", aim=aim), rounds=rounds, reason="the budget is spent"
    )


class TestRefinement:
    def test_figures_are_drawn_against_runs_on_log_scales_with_the_goal(self) -> None:
        axes = draw.refinement(refined([0.2, 0.1, 0.05]))
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        line, goal = axes.get_lines()
        assert np.asarray(line.get_xydata()).tolist() == [[1000, 0.2], [2000, 0.1], [4000, 0.05]]
        assert np.asarray(goal.get_ydata()).tolist() == [0.03, 0.03]
        text = words(axes.figure)
        assert "goal: 0.03" in text
        assert "the budget is spent" in text
        assert axes.get_ylabel() == "undecided share"

    def test_a_figure_of_0_is_marked_and_a_forecast_is_named(self) -> None:
        axes = draw.refinement(refined([0.2, 0.05, 0.0]), forecast=[(1000, 0.2), (4000, 0.1)])
        assert {"reached", "0", "Sobol design, forecast"} <= {str(line.get_label()) for line in axes.get_lines()}
        (mark,) = (line for line in axes.get_lines() if line.get_marker() == "v")
        assert 0 < np.asarray(mark.get_ydata())[0] < 0.03
        axes.figure.draw_without_rendering()

    def test_a_single_round_and_a_goal_of_0_can_be_drawn(self) -> None:
        for figures, aim in (([0.2], 0.03), ([0.0], 0.03), ([0.1], 0.0)):
            draw.refinement(refined(figures, aim)).figure.draw_without_rendering()


def cells(space: st.Space, count: int) -> Any:
    """A grid of cells, whose bounds are the means of their ends, a little wider."""
    edges = np.linspace(-1, 1, count + 1)
    low = np.reshape(np.meshgrid(*[edges[:-1]] * len(space), indexing="ij"), (len(space), -1)).T
    high = np.reshape(np.meshgrid(*[edges[1:]] * len(space), indexing="ij"), (len(space), -1)).T
    middle = (low + high).mean(axis=1) / 4 + 0.5

    def at(points: st.Points) -> Any:
        value = space.to_unit(points.theta).mean(axis=1) / 2 + 0.5
        return value - 0.1, value + 0.1

    ends = {"low": space.from_unit(low), "high": space.from_unit(high), "lower": middle - 0.1, "upper": middle + 0.1}
    return SimpleNamespace(space=space, claim=SURE, at=at, **ends)


class TestBounds:
    def test_one_parameter_has_a_staircase(self) -> None:
        made = cells(LINE, 8)
        axes = draw.bounds(made)
        assert isinstance(axes, Axes)
        low, high = (shape.get_data() for shape in axes.patches if isinstance(shape, StepPatch))
        assert np.allclose(low.values, made.lower)
        assert np.allclose(high.values, made.upper)
        assert np.allclose(low.edges, [*made.low[:, 0], 1.0])
        assert "computed, not sampled" in words(axes.figure)
        given = Figure().add_subplot()
        assert draw.bounds(made, ax=given) is given

    def test_two_parameters_have_a_rectangle_for_each_cell_in_two_maps(self) -> None:
        figure = draw.bounds(cells(PLANE, 5))
        assert isinstance(figure, Figure)
        shapes = [shape for axes in figure.axes for shape in axes.collections if type(shape) is PolyCollection]
        assert [len(shape.get_paths()) for shape in shapes] == [25, 25]
        assert np.allclose(np.asarray(shapes[1].get_array()) - np.asarray(shapes[0].get_array()), 0.2)
        text = words(figure)
        assert "lower bound" in text
        assert "upper bound" in text
        with pytest.raises(st.InputError, match="leave ax out"):
            draw.bounds(cells(PLANE, 5), ax=Figure().add_subplot())

    def test_three_parameters_have_a_slice(self) -> None:
        figure = draw.bounds(cells(MANY, 3))
        assert "A slice at odd_$x = 1.5." in words(figure)

    def test_nothing_is_drawn_where_nothing_varies(self) -> None:
        with pytest.raises(st.InputError, match="nothing to draw"):
            draw.bounds(SimpleNamespace(space=st.Space(k=1.0)))  # type: ignore[arg-type]


class TestSensitivity:
    def test_both_indices_are_bars_with_intervals_the_most_important_on_top(self) -> None:
        posterior = st.EPGP(inputs="linear").fit(observed(PLANE, 60, 40, 3), seed=1)
        found = st.sensitivity(posterior, seed=1, points=256)
        axes: Any = found.plot()
        assert [label.get_text() for label in axes.get_yticklabels()] == list(found.ranked)
        bottom, top = axes.get_ylim()
        assert bottom > top
        widths = [bar.get_width() for bar in axes.patches]
        assert widths == [found.total[name] for name in found.ranked] + [found.first[name] for name in found.ranked]
        text = words(axes.figure)
        assert "first order: alone" in text
        assert "95 % interval" in text
        assert "guarantees nothing" in text
        given = Figure().add_subplot()
        assert found.plot(ax=given) is given


def test_all_can_be_saved(tmp_path: Path) -> None:
    for number, drawn in enumerate((regions(PLANE).plot(), regions(MANY).plot(), draw.refinement(refined([0.2, 0.1])))):
        save(drawn, file := tmp_path / f"{number}.svg")
        assert file.stat().st_size > 1000
