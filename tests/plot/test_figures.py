"""Figures draw the data they are given, hide none of it, and are the same whenever they are drawn."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from sateen.core.ensemble import Ensemble
from sateen.core.errors import InputError, PathError
from sateen.core.path import Path, Verdict
from sateen.core.registry import call_provider
from sateen.plot import figures
from sateen.plot.style import COLOURS

SIR = Path(times=[0, 2, 2, 5], states=[[9, 1, 0], [0, 0, 0], [8, 2, 0], [8, 1, 1]], species=("S", "I", "R"), end=10)
EIGHT = Path(times=[0, 1], states=[range(8), range(8)], species=[f"long_name_{i}" for i in range(8)], end=3)
LANES = [
    ("F[0, 4] (x == 0 U[2, 3] x == 1)", 0, [(0.0, 1.0)], []),
    ("x == 0 U[2, 3] x == 1", 1, [(1.0, 1.0), (2.0, 3.0)], [(8.0, math.inf)]),
    ("x == 1", 2, [], []),
]


def drawn(axes: Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_xydata()) for line in axes.get_lines()}


def bars(axes: Axes) -> list[PolyCollection]:
    return [shape for shape in axes.collections if isinstance(shape, PolyCollection)]


def diamonds(axes: Axes) -> list[tuple[float, float]]:
    lines = [line for line in axes.get_lines() if line.get_marker() == "D"]
    return [tuple(point) for line in lines for point in np.asarray(line.get_xydata()).tolist()]


class TestPath:
    def test_each_species_is_a_line_of_steps_from_zero_to_the_end(self) -> None:
        axes = SIR.plot()
        assert len(axes.get_lines()) == 3
        assert {line.get_drawstyle() for line in axes.get_lines()} == {"steps-post"}
        assert drawn(axes)["I"].tolist() == [[0, 1], [2, 2], [5, 1], [10, 1]]
        assert axes.get_xlim() == (0, 10)

    @given(st.lists(st.sampled_from([0.0, 0.5, 2.0]), max_size=8), st.data())
    def test_every_corner_lies_on_the_path_and_no_jump_that_lasts_is_left_out(
        self, gaps: list[float], data: st.DataObject
    ) -> None:
        times = np.cumsum([0.0, *gaps])
        counts = data.draw(st.lists(st.integers(0, 9), min_size=len(times), max_size=len(times)))
        path = Path(times=times, states=counts, species="x", end=times[-1] + 1)
        points = drawn(figures.path(path, ax=Figure().add_subplot()))["x"]
        assert [value for _, value in points] == [path.at(time)["x"] for time, _ in points]
        assert [time for time, _ in points] == [*sorted(set(times)), path.end]

    def test_only_the_named_species_are_drawn_and_keep_their_colour(self) -> None:
        colours = {line.get_label(): line.get_color() for line in SIR.plot().get_lines()}
        for species in ("R", ["R"], ("R", "I")):
            axes = SIR.plot(species=species)
            assert set(drawn(axes)) == set(species)
            assert all(line.get_color() == colours[line.get_label()] for line in axes.get_lines())

    def test_an_unknown_species_is_an_error(self) -> None:
        with pytest.raises(PathError, match="no species X"):
            SIR.plot(species="X")

    def test_of_a_scaled_model_the_amounts_of_the_file_are_drawn_unless_others_are_named(self) -> None:
        names = ("A_count", "B_count", "dose", "A", "B", "total", "[A]", "[B]")
        scaled = Path(times=[0], states=[range(8)], species=names, end=1, values={"scale": 1000.0})
        assert set(drawn(scaled.plot())) == {"dose", "A", "B", "total"}
        assert set(drawn(scaled.plot(species=["[A]", "A_count"]))) == {"[A]", "A_count"}
        runs = Ensemble([0, 1], np.zeros((3, 2, 8)), names, {"scale": 1000.0})
        assert set(drawn(runs.plot(runs=0))) == {"dose", "A", "B", "total"}

    def test_counts_without_a_scale_and_lone_concentrations_are_drawn(self) -> None:
        plain = Path(times=[0], states=[range(2)], species=("A", "A_count"), end=1, values={"k": 1.0})
        assert set(drawn(plain.plot())) == {"A", "A_count"}
        assert set(drawn(Path(times=[0], states=[[1]], species=("[A]",), end=1).plot())) == {"[A]"}

    def test_it_draws_on_the_axes_it_is_given(self) -> None:
        axes = Figure().add_subplot()
        assert SIR.plot(ax=axes) is axes

    def test_two_paths_on_one_axes_share_colours_and_one_legend(self) -> None:
        axes = SIR.plot()
        Path(times=[0], states=[[1, 2, 3]], species=SIR.species, end=20).plot(ax=axes)
        assert len(axes.get_lines()) == 6
        assert len({line.get_color() for line in axes.get_lines()}) == 3
        assert len(axes.get_legend().get_texts()) == 3
        assert axes.get_xlim() == (0, 20)

    def test_the_legend_hides_no_data_and_its_names_do_not_overlap(self) -> None:
        axes = EIGHT.plot()
        figure = axes.figure
        figure.draw_without_rendering()
        legend = axes.get_legend()
        assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
        assert legend.get_window_extent().x1 <= figure.bbox.x1
        boxes = [text.get_window_extent() for text in legend.get_texts()]
        assert len(boxes) == 8
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])

    def test_the_legend_lists_names_in_the_order_in_which_the_lines_end(self) -> None:
        assert [text.get_text() for text in EIGHT.plot().get_legend().get_texts()] == list(reversed(EIGHT.species))

    def test_eight_species_have_eight_colours_and_more_have_other_strokes(self) -> None:
        assert len({to_hex(line.get_color()) for line in EIGHT.plot().get_lines()}) == 8
        many = Path(times=[0], states=[range(24)], species=[f"x{i}" for i in range(24)], end=1)
        assert len({(line.get_color(), line.get_linestyle()) for line in many.plot().get_lines()}) == 24

    @pytest.mark.filterwarnings("error")
    def test_names_are_text_whatever_signs_they_have(self) -> None:
        names = ("_hidden", "$x", "a_b^c$d$", "<&>")
        axes = Path(times=[0, 1], states=[[4, 3, 2, 1]] * 2, species=names).plot()
        axes.figure.draw_without_rendering()
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(names)

    @pytest.mark.filterwarnings("error")
    def test_a_path_known_at_one_instant_is_a_visible_point(self) -> None:
        axes = Path(times=[0], states=[3], species="x").plot()
        axes.figure.draw_without_rendering()
        assert axes.get_lines()[0].get_marker() == "o"

    def test_counts_have_whole_ticks(self) -> None:
        axes = Path(times=[0, 1], states=[0, 1], species="x", end=2).plot()
        assert all(float(tick).is_integer() for tick in axes.get_yticks())
        assert axes.get_ylabel() == "count"
        assert Path(times=[0, 1], states=[0, 0.5], species="x").plot().get_ylabel() == "value"


class TestEnsemble:
    STATES = np.arange(2 * 3 * 4 * 2).reshape(6, 4, 2) % 7
    RUNS = Ensemble([0, 1, 2, 4], STATES, ("S", "I"))

    def test_each_species_has_its_mean_a_band_of_quantiles_and_some_runs(self) -> None:
        axes = self.RUNS.plot(level=0.5, runs=2)
        assert drawn(axes)["I"].tolist() == np.column_stack([self.RUNS.times, self.RUNS.mean[:, 1]]).tolist()
        assert len(axes.get_lines()) == 2 * (1 + 2)
        low, high = self.RUNS.quantiles([0.25, 0.75])
        (first, _) = bars(axes)
        corners = {tuple(corner) for corner in first.get_paths()[0].vertices.tolist()}
        for place, time in enumerate(self.RUNS.times):
            assert {(time, low[place, 0]), (time, high[place, 0])} <= corners
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["S", "I"]

    def test_named_species_keep_their_colour_and_unknown_ones_are_refused(self) -> None:
        (mean,) = [line for line in self.RUNS.plot(species="I").get_lines() if line.get_label() == "I"]
        assert mean.get_color() == COLOURS[1]
        with pytest.raises(InputError, match="the ensemble has no species X"):
            self.RUNS.plot(species="X")

    def test_where_states_are_unknown_mean_and_band_end(self) -> None:
        states = self.STATES.astype(float)
        states[0, 3] = np.nan
        axes = Ensemble([0, 1, 2, 4], states, ("S", "I")).plot()
        assert np.isnan(drawn(axes)["S"][3, 1])
        assert max(corner[0] for corner in bars(axes)[0].get_paths()[0].vertices.tolist()) == 2

    def test_at_one_time_it_is_a_visible_point(self) -> None:
        (line,) = Ensemble([3], [[[1]], [[2]]], ("S",)).plot(runs=0).get_lines()
        assert line.get_marker() == "o"


class TestExplanation:
    def test_a_bar_spans_each_interval_where_a_formula_holds(self) -> None:
        axes = figures.explanation(LANES, 10.0)
        true = [bar for bar in bars(axes) if not bar.get_hatch()]
        extents = [(p.get_extents().x0, p.get_extents().x1, p.get_extents().y0) for b in true for p in b.get_paths()]
        assert [(x0, x1) for x0, x1, _ in extents] == [(0, 1), (2, 3)]
        assert extents[0][2] < 0.5 < extents[1][2] < 1

    def test_unknown_is_hatched_and_ends_with_the_path(self) -> None:
        (unknown,) = [bar for bar in bars(figures.explanation(LANES, 10.0)) if bar.get_hatch()]
        extent = unknown.get_paths()[0].get_extents()
        assert (extent.x0, extent.x1) == (8, 10)

    def test_a_single_instant_is_a_mark_that_the_frame_does_not_cut(self) -> None:
        axes = figures.explanation(LANES, 10.0)
        assert diamonds(axes) == [(1.0, 1.0)]
        assert not any(line.get_clip_on() for line in axes.get_lines() if line.get_marker() == "D")

    def test_every_lane_has_a_thin_line(self) -> None:
        lines = [line for line in figures.explanation(LANES, 10.0).get_lines() if line.get_marker() != "D"]
        assert [line.get_xydata().tolist() for line in lines] == [[[0, y], [10, y]] for y in range(3)]

    def test_what_lies_outside_the_path_is_not_drawn(self) -> None:
        axes = figures.explanation([("x", 0, [(-3, -1), (-1, 2), (10, 12), (11, 12), (4, 4)], [])], 10.0)
        extents = [path.get_extents() for bar in bars(axes) for path in bar.get_paths()]
        assert [(extent.x0, extent.x1) for extent in extents] == [(0, 2)]
        assert diamonds(axes) == [(10, 0), (4, 0)]

    def test_the_formula_stands_on_top_and_its_parts_are_indented(self) -> None:
        axes = figures.explanation(LANES, 10.0)
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert labels == ["F[0, 4] (x == 0 U[2, 3] x == 1)", "  x == 0 U[2, 3] x == 1", "    x == 1"]
        assert {label.get_family()[0] for label in axes.get_yticklabels()} == {"monospace"}
        assert axes.yaxis_inverted()

    def test_of_a_long_label_both_ends_are_kept(self) -> None:
        long = "G[0, 5] (" + " & ".join(f"species_{i} > 0" for i in range(20)) + ")"
        (label,) = figures.explanation([(long, 0, [], [])], 1.0).get_yticklabels()
        start, end = label.get_text().split("…")
        assert len(label.get_text()) == 56
        assert long.startswith(start)
        assert long.endswith(end)

    def test_labels_overlap_neither_each_other_nor_the_lanes(self) -> None:
        axes = figures.explanation([("x" * 80, depth, [(0, 0)], []) for depth in range(12)], 5.0)
        axes.figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert max(box.x1 for box in boxes) < axes.get_window_extent().x0
        assert min(box.x0 for box in boxes) >= 0

    def test_the_legend_explains_only_the_marks_that_are_there(self) -> None:
        def legend(axes: Axes) -> list[str]:
            return [text.get_text() for text in axes.get_legend().get_texts()]

        assert legend(figures.explanation(LANES, 10.0)) == ["holds", "unknown", "a single instant"]
        assert legend(figures.explanation(LANES[:1], 10.0)) == ["holds"]

    @pytest.mark.parametrize(("verdict", "colour"), [(Verdict.TRUE, COLOURS[2]), (Verdict.FALSE, COLOURS[1])])
    def test_a_verdict_is_marked_at_time_0_of_the_first_lane(self, verdict: Verdict, colour: str) -> None:
        axes = figures.explanation(LANES, 10.0, verdict=verdict)
        (mark,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
        assert mark.get_xydata().tolist() == [[0, 0]]
        assert mark.get_color() == colour
        assert axes.get_legend().get_texts()[-1].get_text() == f"{verdict} at time 0"

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(("rows", "end"), [([], 5.0), ([("x", 0, [(0, 0)], [])], 0.0)])
    def test_nothing_to_explain_and_a_path_of_one_instant_are_drawn_too(self, rows: list, end: float) -> None:
        figures.explanation(rows, end).figure.draw_without_rendering()

    def test_it_draws_on_the_axes_it_is_given(self) -> None:
        axes = Figure().add_subplot()
        assert figures.explanation(LANES, 10.0, ax=axes) is axes


class TestSave:
    @pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.PNG", b"\x89PNG")])
    def test_the_suffix_says_the_format(self, tmp_path, name: str, start: bytes) -> None:
        figures.save(SIR.plot(), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)

    @pytest.mark.parametrize("name", ["a.gif", "a", "svg"])
    def test_another_suffix_is_refused_before_anything_is_written(self, tmp_path, name: str) -> None:
        with pytest.raises(InputError, match=rf"as {name}; end the name in .svg, .pdf or .png"):
            figures.save(SIR.plot(), str(tmp_path / name))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
    def test_the_same_drawing_gives_the_same_bytes(self, tmp_path, suffix: str) -> None:
        for name in ("one", "two"):
            figures.save(figures.explanation(LANES, 10.0), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()

    def test_an_svg_has_no_date(self, tmp_path) -> None:
        figures.save(SIR.plot(), tmp_path / "a.svg")
        assert "date" not in (tmp_path / "a.svg").read_text(encoding="utf-8").lower()

    def test_figures_and_axes_of_subfigures_are_saved_whole(self, tmp_path) -> None:
        whole = Figure()
        left, right = whole.subfigures(1, 2)
        SIR.plot(ax=left.add_subplot())
        figures.save(SIR.plot(ax=right.add_subplot()), tmp_path / "axes.svg")
        figures.save(whole, tmp_path / "figure.svg")
        assert (tmp_path / "axes.svg").read_bytes() == (tmp_path / "figure.svg").read_bytes()


def test_pyplot_is_never_loaded_and_matplotlib_only_for_a_picture(tmp_path) -> None:
    script = f"""
import sys
from sateen.core.path import Path, Verdict
path = Path(times=[0, 1], states=[1, 2], species="x", end=3)
assert not any(name.split(".")[0] in ("matplotlib", "pandas") for name in sys.modules)
axes = path.plot()
assert "matplotlib" in sys.modules
from sateen.plot.figures import explanation, save
for suffix in ("svg", "pdf", "png"):
    save(axes, {str(tmp_path)!r} + "/a." + suffix)
save(explanation([("x", 0, [(0, 1)], [(2, 3)])], 3.0), {str(tmp_path)!r} + "/b.svg")
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_the_painter_is_found_by_name() -> None:
    assert isinstance(call_provider("plot path", SIR), Axes)
