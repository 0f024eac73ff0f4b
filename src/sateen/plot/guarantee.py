"""Pictures of guarantees: how wide bands are, where, and how far they are from what they bound.

Every function takes plain numbers and predictions by name, and returns a Figure. The colours of the paper's bands are
kept: cyan is ICP, orange NICP, purple the Chernoff band; the lift is blue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sateen.core.observations import Observations
from sateen.core.prediction import Prediction
from sateen.core.proportions import wilson
from sateen.core.types import FloatArray
from sateen.plot.style import FAINT, FONT_SIZE, dress, label_axis, new_figure

__all__ = ["bands_over_parameter", "errors_by_runs", "widths_by_runs"]

# Student's t: with n trainings, the mean ± this many standard errors is a 95 % interval.
_STUDENT: Final = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
_CYAN, _ORANGE, _PURPLE, _BLUE, _GREEN, _GREY, _BLACK = (
    "#56B4E9",
    "#E69F00",
    "#CC79A7",
    "#0072B2",
    "#009E73",
    "#8C8C8C",
    "#000000",
)
_LOOKS: Final[Mapping[str, dict[str, Any]]] = {
    "NICP + Chernoff, 90 %": {"color": _PURPLE, "marker": "v"},
    "PAC-Bayes (Catoni)": {"color": _GREY, "marker": "v"},
    "PAC-Bayes (Seeger)": {"color": _GREY, "marker": "^", "linestyle": (0, (4, 1))},
    "ICP": {"color": _CYAN, "marker": "s"},
    "NICP": {"color": _ORANGE, "marker": "D"},
    "lift": {"color": _BLUE, "marker": "o", "linestyle": (0, (4, 1))},
    "lift, planned": {"color": _BLUE, "marker": "o"},
    "betting": {"color": _GREEN, "marker": "o"},
    "Bayes": {"color": _BLACK, "linestyle": "--"},
    "gen": {"color": _BLACK, "linestyle": ":"},
    "emp": {"color": _BLACK, "linestyle": "-."},
}
_SAID: Final = {"ICP": "ICP, of frequencies", "NICP": "NICP, of frequencies", "lift": "lift, of the same runs"}
_BANDS: Final = ("NICP + Chernoff, 90 %", "ICP", "NICP", "lift, planned, 90 %", "Bayes")  # the widest first


def widths_by_runs(runs: Sequence[int], values: Mapping[str, Mapping[str, FloatArray]]) -> Figure:
    """The mean width of each kind of band as the runs per point grow, a panel for each learner."""
    named = {
        **_SAID,
        "Bayes": "Bayes (Unc), no guarantee",
        "gen": "gen: error on the test",
        "emp": "emp: on the training",
    }
    return _by_runs(runs, values, "mean width of the band", named)


def errors_by_runs(runs: Sequence[int], values: Mapping[str, Mapping[str, FloatArray]]) -> Figure:
    """Bounds on the mean error as the runs per point grow, beside mean half-widths of bands."""
    halves = {name: f"{name}, half-width" for name in ("ICP", "NICP", "lift", "Bayes")}
    named = {**halves, "gen": "gen: error on the test", "emp": "emp: on the training"}
    return _by_runs(runs, values, "mean error, or its bound", named)


def bands_over_parameter(
    learner: str, predictions: Mapping[int, Mapping[str, Prediction]], test: Observations
) -> Figure:
    """The bands over the one parameter, a panel for each number of runs, with test frequencies and their intervals."""
    columns = min(3, len(predictions))
    rows = -(-len(predictions) // columns)
    figure = new_figure(3.3 * columns, 2.5 * rows + 0.5)
    panels = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False).ravel()
    ((name, own),) = test.space.ranges.items()
    for axes, (runs, bands) in zip(panels, predictions.items(), strict=False):
        _draw_bands(axes, bands)
        _draw_test(axes, test)
        dress(axes)
        axes.set_title(f"{runs:,} runs per point", fontsize=FONT_SIZE, loc="left")
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.margins(x=0.01)
        axes.set_ylim(-0.02, None)
    for axes in panels[len(predictions) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("probability", fontsize=FONT_SIZE)
    for axes in panels[len(predictions) - columns : len(predictions)]:
        label_axis(axes, "x", name, own)
        axes.tick_params(labelbottom=True)
    _legend(figure, panels[0], title=f"{learner}, 95 % where no other level stands")
    return figure


def _by_runs(
    runs: Sequence[int], values: Mapping[str, Mapping[str, FloatArray]], label: str, named: Mapping[str, str]
) -> Figure:
    figure = new_figure(max(3.2 * len(values), 4.0), 3.9)
    panels = figure.subplots(1, len(values), sharey=True, squeeze=False).ravel()
    for axes, (learner, curves) in zip(panels, values.items(), strict=True):
        for name in (each for each in _LOOKS if each in curves):
            _draw_curve(axes, runs, curves[name], named.get(name, name), _LOOKS[name])
        dress(axes)
        axes.set_title(learner, fontsize=FONT_SIZE, loc="left")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(list(runs)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        axes.yaxis.set_major_locator(FixedLocator([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.set_xlabel("runs per point", fontsize=FONT_SIZE)
    means = np.concatenate([rows.mean(axis=1) for curves in values.values() for rows in curves.values()])
    panels[0].set_ylim(0.5 * means.min(), 1.5 * means.max())  # however wide the intervals of few trainings are
    panels[0].set_ylabel(label, fontsize=FONT_SIZE)
    _legend(figure, panels[0])
    return figure


def _draw_curve(axes: Axes, runs: Sequence[int], rows: FloatArray, label: str, look: dict[str, Any]) -> None:
    """The mean over trainings, and around it the 95 % interval of that mean."""
    mean = rows.mean(axis=1)
    axes.plot(runs, mean, label=label, linewidth=1.5, markersize=3.5, **look)
    if (count := rows.shape[1]) > 1:
        half = _STUDENT.get(count, 2.0) * rows.std(axis=1, ddof=1) / np.sqrt(count)
        axes.fill_between(
            runs, np.maximum(mean - half, 1e-9), mean + half, color=look["color"], alpha=0.18, linewidth=0
        )


def _draw_bands(axes: Axes, bands: Mapping[str, Prediction]) -> None:
    x = bands["Bayes"].points.theta[:, 0]
    for name in (each for each in _BANDS if each in bands):
        band = bands[name]
        colour = _LOOKS.get(name, _LOOKS["lift, planned"])["color"]
        filled = {"NICP + Chernoff, 90 %": 0.18, "lift, planned, 90 %": 0.35, "Bayes": 0.35}.get(name)
        if filled:
            axes.fill_between(
                x, band.lower, band.upper, color=colour, alpha=filled, linewidth=0, label=_SAID.get(name, name)
            )
        else:
            axes.plot(x, band.lower, color=colour, linewidth=1.1, label=_SAID.get(name, name))
            axes.plot(x, band.upper, color=colour, linewidth=1.1)
    axes.plot(x, bands["Bayes"].mean, color=_BLACK, linewidth=0.8, label="posterior mean")


def _draw_test(axes: Axes, test: Observations) -> None:
    frequency = test.frequency
    low, high = wilson(frequency, test.trials)
    size = [np.maximum(frequency - low, 0), np.maximum(high - frequency, 0)]
    label = f"{int(test.trials[0]):,} test runs, 95 %"
    look: dict[str, Any] = {"fmt": "none", "ecolor": "#606060", "elinewidth": 1.0, "zorder": 3}
    axes.errorbar(test.theta[:, 0], frequency, yerr=size, label=label, **look)


def _legend(figure: Figure, axes: Axes, title: str | None = None) -> None:
    """Below all panels, so that it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=title,
        loc="outside lower center",
        ncols=min(len(labels), 5 if len(figure.axes) > 1 else 2),
        frameon=False,
        fontsize=FONT_SIZE,
        title_fontsize=FONT_SIZE,
    )
