"""Figures of what was learned draw all of it, name what they draw, and never show an interval without its claim."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text

import sateen as st
from known_functions import LINE, PLANE, observed, wave
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.core.record import Record
from sateen.core.space import Points, Range, Space
from sateen.learning.posterior import LearnedPosterior
from sateen.plot import figures
from sateen.plot.learning import learned as draw_learned

MANY: Space = Space({"slow": (0.1, 1.0), "fast": Range(0.1, 10.0, scale="log"), "idle": (1.0, 2.0), "odd_$x": (1, 2)})


def predicted(points: Points, mean: npt.ArrayLike | None = None) -> Prediction:
    """A prediction as sure as can be told apart from others: 0.1 below its mean, 0.2 above it."""
    middle = wave(points) * 0.6 + 0.1 if mean is None else np.asarray(mean)
    claim = Claim("probability", "credible", 0.9, drawn_uniformly(points.space), by="a test")
    return Prediction(points, middle, middle * 0 + 0.05, middle - 0.1, middle + 0.2, 0.9, claim)


@cache
def learned(space: Space, n: int = 60) -> LearnedPosterior:
    return st.EPGP(inputs="linear").fit(observed(space, n, 40, 3), seed=1)


@cache
def learned_without_idle() -> LearnedPosterior:
    seen = observed(MANY, 80, 40, 3)
    relevant = ("slow", "fast", "odd_$x")
    known = Observations(seen.points, seen.satisfied, seen.undecided, seen.trials, relevant=relevant)
    return st.EPGP(inputs="linear").fit(known, seed=1)


def words(figure: Figure) -> str:
    """All that is written in a figure, on one line."""
    figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.findobj(Text)]
    return " ".join(" ".join(texts).split())


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of titles, labels and captions that stand on each other."""
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    texts += [axes._left_title for axes in figure.axes]  # type: ignore[attr-defined]
    texts += figure.texts
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text() and t.get_visible()]
    return [(one, other) for i, (one, a) in enumerate(boxes) for other, b in boxes[:i] if a.overlaps(b)]


class TestPrediction:
    def test_over_one_parameter_it_is_a_line_in_a_band_with_its_claim_below(self) -> None:
        prediction = predicted(LINE.grid(100))
        axes = prediction.plot()
        (line,) = axes.get_lines()
        (band,) = [shape for shape in axes.collections if isinstance(shape, FillBetweenPolyCollection)]
        assert line.get_xydata().tolist() == np.column_stack([LINE.grid(100).theta, prediction.mean]).tolist()
        (outline,) = band.get_paths()
        assert outline.get_extents().y0 == prediction.lower.min()
        assert outline.get_extents().y1 == prediction.upper.max()
        assert str(prediction.claim) in words(axes.figure)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("beta", "probability")

    def test_points_in_any_order_give_one_line_from_left_to_right(self) -> None:
        axes = predicted(LINE.uniform(50, seed=1)).plot()
        (line,) = axes.get_lines()
        assert (np.diff(line.get_xdata()) > 0).all()

    def test_between_few_points_nothing_is_drawn(self) -> None:
        prediction = predicted(LINE.grid(5))
        axes = prediction.plot()
        (line,) = axes.get_lines()
        assert (line.get_linestyle(), line.get_marker()) == ("None", "o")
        (bars,) = [shape for shape in axes.collections if isinstance(shape, LineCollection)]
        ends = np.array([path.vertices[:, 1] for path in bars.get_paths()])
        assert np.array_equal(ends, np.column_stack([prediction.lower, prediction.upper]))
        assert "Bar: under the model of a test" in words(axes.figure)

    def test_a_single_point_is_drawn(self) -> None:
        assert words(predicted(LINE.points({"beta": 0.5})).plot().figure)

    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_axes_have_the_scales_of_the_space(self, scale: str) -> None:
        space = Space(a=Range(0.1, 10.0, scale=scale), b=Range(1.0, 1000.0, scale=scale))
        line = predicted(Space(a=space.ranges["a"]).grid(40), np.full(40, 0.5)).plot()
        both = predicted(space.grid(8), np.full(64, 0.5)).plot()
        assert line.get_xscale() == both.get_xscale() == both.get_yscale() == scale

    def test_over_two_parameters_a_grid_is_a_map_of_colours_with_contours(self) -> None:
        prediction = predicted(PLANE.grid({"beta": 20, "gamma": 12}))
        axes = prediction.plot()
        (mesh,) = [shape for shape in axes.collections if isinstance(shape, QuadMesh)]
        colours = np.asarray(mesh.get_array())
        assert colours.shape == (12, 20)
        assert np.array_equal(colours.T.ravel(), prediction.mean)  # the last axis of a grid runs fastest
        assert any(hasattr(shape, "levels") for shape in axes.collections)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("beta", "gamma")

    def test_over_two_parameters_points_that_are_no_grid_are_dots(self) -> None:
        prediction = predicted(PLANE.uniform(30, seed=1))
        (dots,) = [shape for shape in prediction.plot().collections if isinstance(shape, PathCollection)]
        assert np.array_equal(dots.get_offsets(), prediction.points.theta)
        assert np.array_equal(np.asarray(dots.get_array()), prediction.mean)

    def test_a_repeated_point_is_no_grid(self) -> None:
        theta = [[0.1, 1.0], [0.1, 2.0], [0.2, 1.0], [0.1, 1.0]]
        axes = predicted(PLANE.points(theta)).plot()
        assert not any(isinstance(shape, QuadMesh) for shape in axes.collections)

    @pytest.mark.parametrize("mean", [0.1, 0.5, 0.7])
    def test_a_constant_is_drawn_without_contours(self, mean: float) -> None:
        axes = predicted(PLANE.grid(6), np.full(36, mean)).plot()
        assert words(axes.figure)
        assert not any(hasattr(shape, "levels") for shape in axes.collections)

    def test_the_scale_of_probabilities_does_not_go_beyond_them(self) -> None:
        low, high = predicted(LINE.grid(50), np.linspace(0.1, 0.8, 50)).plot().get_ylim()
        assert low >= -0.03
        assert high <= 1.03

    def test_it_draws_on_the_axes_it_is_given(self) -> None:
        axes = Figure().add_subplot()
        assert predicted(LINE.grid(30)).plot(ax=axes) is axes

    @pytest.mark.parametrize("count", [5, 50])
    def test_over_more_parameters_the_points_stand_in_the_order_of_their_means(self, count: int) -> None:
        mean = np.random.default_rng(1).uniform(0.2, 0.8, count)
        axes = predicted(MANY.uniform(count, seed=1), mean).plot()
        (line,) = axes.get_lines()
        assert np.array_equal(line.get_xdata(), np.arange(1, count + 1))
        assert np.array_equal(line.get_ydata(), np.sort(mean))
        assert f"the {count} points, in the order of their means" in words(axes.figure)

    def test_without_a_parameter_nothing_is_drawn(self) -> None:
        with pytest.raises(st.InputError, match="nothing to draw"):
            predicted(Space(k=1.0).points({}), [0.5]).plot()

    @pytest.mark.parametrize("ends", [(0.9, 1.1), (0.02, 0.045), (0.01, 0.09), (3.0, 70.0)])
    def test_a_short_log_scale_has_more_than_one_number(self, ends: tuple[float, float]) -> None:
        space = Space(k=Range(*ends, scale="log"))
        axes = predicted(space.grid(40), np.full(40, 0.5)).plot()
        axes.figure.draw_without_rendering()
        low, high = axes.get_xlim()
        numbers = [each.get_text() for each in axes.xaxis.get_ticklabels() if low <= each.get_position()[0] <= high]
        assert len([each for each in numbers if each]) >= 2


class TestRecord:
    def record(self, values: npt.ArrayLike, verdict: str = "converged") -> Record:
        return Record("elbo", np.arange(np.size(values)), np.asarray(values), verdict, 1.5)

    def test_it_is_the_objective_by_step_under_its_verdict(self) -> None:
        axes = self.record([-9.0, -5.0, -4.0], "the elbo still rose: raise steps").plot()
        (line,) = axes.get_lines()
        assert line.get_xydata().tolist() == [[0, -9], [1, -5], [2, -4]]
        assert axes.get_title(loc="left") == "the elbo still rose: raise steps, 1.5 s"
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "elbo")

    def test_a_steep_beginning_leaves_the_picture_and_is_told(self) -> None:
        values = -100.0 - 1e6 * np.exp(-np.arange(200.0)) + np.sin(np.arange(200.0))
        axes = self.record(values).plot()
        low, high = axes.get_ylim()
        assert high - low < 5
        assert "begins at -1e+06" in words(axes.figure)

    def test_nothing_is_hidden_without_need(self) -> None:
        values = np.log1p(np.arange(100.0))
        low, high = self.record(values).plot().get_ylim()
        assert low <= 0
        assert high >= values.max()

    @pytest.mark.parametrize("values", [[], [1.0], [2.0] * 50, [np.nan, 1.0, 2.0]])
    def test_short_and_flat_and_broken_records_are_drawn(self, values: list[float]) -> None:
        assert words(self.record(values).plot().figure)


class TestLearned:
    def test_over_one_parameter_the_frequencies_stand_around_the_curve(self) -> None:
        posterior = learned(LINE)
        figure = draw_learned(posterior)
        (axes,) = figure.axes
        dots, curve = axes.get_lines()
        seen = posterior.training.observations
        assert dots.get_xydata().tolist() == np.column_stack([seen.theta, seen.frequency]).tolist()
        assert len(curve.get_xdata()) == 200
        assert str(posterior.predict(seen.points).claim) in words(figure)
        assert "by ep-gp" in words(figure)
        legend = axes.get_legend()
        assert [text.get_text() for text in legend.get_texts()] == ["frequency", "95 % interval", "mean"]

    def test_undecided_runs_are_bars_between_the_frequencies_they_leave_open(self) -> None:
        seen = observed(LINE, 20, 40, 3, undecided=0.3)
        (axes,) = draw_learned(learned(LINE), seen).axes
        (bars,) = [shape for shape in axes.collections if isinstance(shape, LineCollection)]
        doubtful = seen.undecided > 0
        ends = np.array([path.vertices[:, 1] for path in bars.get_paths()])
        assert np.array_equal(ends, seen.frequency_bounds[doubtful])

    def test_the_truth_is_a_line_of_its_own(self) -> None:
        seen = observed(LINE, 25, 40, 8)
        (axes,) = draw_learned(learned(LINE), seen, truth=wave(seen.points)).axes
        (truth,) = [line for line in axes.get_lines() if line.get_label() == "truth"]
        order = np.argsort(seen.theta[:, 0])
        assert truth.get_ydata().tolist() == wave(seen.points)[order].tolist()

    def test_over_two_parameters_mean_and_width_stand_side_by_side(self) -> None:
        posterior = learned(PLANE)
        figure = draw_learned(posterior)
        panels = [axes for axes in figure.axes if axes.get_xlabel() == "beta"]
        assert [axes.get_title(loc="left").split(" ")[0] for axes in panels] == ["mean", "width"]
        (dots,) = [shape for shape in panels[1].collections if isinstance(shape, PathCollection)]
        assert len(dots.get_offsets()) == len(posterior.training.observations)
        assert "a belief, which guarantees no coverage" in words(figure)

    def test_over_two_parameters_the_truth_becomes_a_map_of_errors(self) -> None:
        posterior = learned(PLANE)
        seen = observed(PLANE, 30, 40, 9)
        figure = draw_learned(posterior, seen, truth=wave(seen.points))
        error = posterior.predict(seen.points).mean - wave(seen.points)
        assert f"root mean square {np.sqrt(np.mean(error**2)):.3g}" in words(figure)

    def test_over_more_parameters_it_is_slices_with_the_most_important_first(self) -> None:
        posterior = learned_without_idle()
        figure = draw_learned(posterior)
        shown = [axes.get_xlabel() for axes in figure.axes if axes.get_visible()]
        assert shown == [name for name, much in posterior.importance().items() if much > 0]
        assert "The mean does not depend on idle." in words(figure)
        assert "slices through the middle" in words(figure)
        middle = {"slow": 0.55, "fast": 1.0, "idle": 1.5, "odd_$x": 1.5}
        for axes, name in zip(figure.axes, shown, strict=True):
            (curve,) = axes.get_lines()
            wanted = posterior.predict({**middle, name: curve.get_xdata()}).mean
            assert np.allclose(curve.get_ydata(), wanted, atol=1e-12)
        low, high = figure.axes[0].get_ylim()
        assert all(low <= value <= high for axes in figure.axes for value in axes.get_lines()[0].get_ydata())

    def test_of_very_many_parameters_twelve_are_drawn_and_the_others_counted(self) -> None:
        space = Space({f"k{i}": (0.0, 1.0) for i in range(14)})
        figure = draw_learned(learned(space, 40))
        assert len([axes for axes in figure.axes if axes.get_visible()]) == 12
        assert "2 parameters that matter less are not drawn" in words(figure)

    @pytest.mark.parametrize("space", [LINE, PLANE, MANY], ids=["one", "two", "four"])
    def test_nothing_that_is_written_overlaps(self, space: Space) -> None:
        posterior = learned_without_idle() if space is MANY else learned(space)
        assert overlapping(draw_learned(posterior)) == []

    def test_what_cannot_be_drawn_is_refused(self) -> None:
        seen = observed(MANY, 5, 10, 1)
        with pytest.raises(st.InputError, match="over one or two parameters"):
            draw_learned(learned_without_idle(), seen)
        with pytest.raises(st.InputError, match="give a probability for each"):
            draw_learned(learned(LINE), truth=[0.5])
        with pytest.raises(st.InputError, match="these observations are in"):
            draw_learned(learned(LINE), observed(PLANE, 5, 10, 1))
        point = Observations(Space(k=1.0).points([{}]), 3, 0, 10)
        with pytest.raises(st.InputError, match="nothing to draw"):
            draw_learned(st.EPGP().fit(point, seed=1))

    def test_the_same_posterior_gives_the_same_bytes(self, tmp_path) -> None:
        for name in ("one.svg", "two.svg"):
            figures.save(draw_learned(learned(PLANE)), tmp_path / name)
        assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_posterior_draws_itself() -> None:
    assert isinstance(learned(LINE).plot(), Axes)
    assert isinstance(learned(PLANE).plot(), Axes)
