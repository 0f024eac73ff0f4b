"""The paper's pictures: what was learned over one or two parameters, scores by dimension, and bands with guarantees.

Every function takes plain numbers and predictions by name, and returns a Figure. The colours of the paper's bands are
kept: cyan is ICP, orange NICP, purple the Chernoff band; the lift is blue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import stdtrit

from sateen.core.observations import Observations
from sateen.core.prediction import Prediction
from sateen.core.proportions import wilson
from sateen.core.space import Points
from sateen.core.text import percent
from sateen.core.types import FloatArray
from sateen.plot.style import (
    COLOURS,
    FONT_SIZE,
    SMALL_FONT_SIZE,
    colour_bar,
    dress,
    label_axis,
    label_ticks,
    legend_below,
    new_figure,
    table_of,
    title_panel,
)

Series: TypeAlias = Mapping[int, tuple[float, float | None]]  # by dimension a mean, and its interval's half-width
Curves: TypeAlias = Mapping[str, Mapping[str, FloatArray]]  # by learner and name; a row for each number of runs
Stroke: TypeAlias = str | tuple[int, tuple[float, ...]]

_PANEL: Final = 3.0  # inches
_BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _CYAN, _BLACK, _ = COLOURS
_GREY: Final = "#8C8C8C"
_TEST: Final = "#404040"
_LEARNERS: Final = {"EP-GP": (_ORANGE, "s"), "SVI-GP": (_GREEN, "D"), "SVI-BNN": (_RED, "^"), "sateen": (_BLUE, "o")}
_OTHERS: Final = ((_PURPLE, "v"), (_CYAN, "P"), (_GREY, "X"), (_BLACK, "*"))
_PANELS: Final = {
    "accuracy": "Acc: share of test points where intervals meet",
    "rmse": "RMSE against test frequencies",
    "uncertainty": "Unc: mean width of credible intervals",
    "hours": "training time",
}
_SECOND: Final = 1 / 3600  # of an hour
_TIMES: Final = {
    **{0.1 * _SECOND: "0.1 s", _SECOND: "1 s", 10 * _SECOND: "10 s"},
    **{60 * _SECOND: "1 min", 600 * _SECOND: "10 min", 1.0: "1 h", 10.0: "10 h"},
}
_SHIFT: Final = 0.16  # between learners at one dimension, so that their intervals stand side by side

_DASHED: Final = (0, (4.0, 1.0))
_LOOKS: Final[Mapping[str, tuple[str, str, Stroke]]] = {  # colour, marker and stroke
    "NICP + Chernoff, 90 %": (_PURPLE, "v", "-"),
    "PAC-Bayes (Catoni)": (_GREY, "v", "-"),
    "PAC-Bayes (Seeger)": (_GREY, "^", _DASHED),
    "ICP": (_CYAN, "s", "-"),
    "NICP": (_ORANGE, "D", "-"),
    "lift": (_BLUE, "o", _DASHED),
    "lift, planned": (_BLUE, "o", "-"),
    "betting": (_GREEN, "o", "-"),
    "Bayes": (_BLACK, "", "--"),
    "gen": (_BLACK, "", ":"),
    "emp": (_BLACK, "", "-."),
}
_LABELS: Final = {"ICP": "ICP, of frequencies", "NICP": "NICP, of frequencies", "lift": "lift, of the same runs"}
_ERRORS: Final = {"gen": "gen: error on the test", "emp": "emp: on the training"}
# The widest first, each with its colour and, if it is filled, how much.
_BANDS: Final = {
    "NICP + Chernoff, 90 %": (_PURPLE, 0.18),
    "ICP": (_CYAN, None),
    "NICP": (_ORANGE, None),
    "lift, planned, 90 %": (_BLUE, 0.35),
    "Bayes": (_BLACK, 0.35),
}
_HEIGHTS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def curves(
    title: str, predictions: Mapping[str, Prediction], shown: Observations, test: Points, truth: FloatArray
) -> Figure:
    """What each learner learned over one parameter, with its band; some test frequencies with their 95 % intervals.

    The thin line is the truth at the test points.
    """
    figure = new_figure(_PANEL * max(len(predictions), 2), 2.9)
    panels = figure.subplots(1, len(predictions), sharey=True, squeeze=False).ravel()
    ((name, range_),) = test.space.ranges.items()
    for axes, (learner, each) in zip(panels, predictions.items(), strict=True):
        x = each.points.theta[:, 0]
        label = f"credible interval, {percent(each.level)}: a belief of its model"
        axes.fill_between(x, each.lower, each.upper, color=_BLUE, alpha=0.25, linewidth=0, label=label)
        axes.plot(test.theta[:, 0], truth, color="#000000", linewidth=0.7, label="truth")
        axes.plot(x, each.mean, color=_BLUE, linewidth=1.4, label="posterior mean")
        _draw_test(axes, shown, "95 % by Wilson", marker=".", colour=_TEST, width=0.9)
        dress(axes, grid="y")
        title_panel(axes, learner)
        axes.margins(x=0.01)
        label_axis(axes, "x", name, range_)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    panels[0].set_ylabel("probability", fontsize=FONT_SIZE)
    legend_below(figure, columns=4 if figure.get_figwidth() > 8 else 2, size=SMALL_FONT_SIZE + 1)
    figure.suptitle(title, fontsize=FONT_SIZE, x=0.01, ha="left")
    return figure


def maps(title: str, predictions: Mapping[str, Prediction], test: Points, truth: FloatArray) -> Figure:
    """The truth and what each learner learned over two parameters, on one scale; below, how far each is off."""
    columns = 1 + len(predictions)
    figure = new_figure(2.5 * columns + 0.7, 4.8)
    panels = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    top = max(float(truth.max()), *(float(each.mean.max()) for each in predictions.values()), 1e-9)
    top = 1.0 if top > 0.5 else top
    errors = {learner: each.mean - truth for learner, each in predictions.items()}
    most = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    shape = _tiles(panels[0, 0], "truth", test, truth, "cividis", (0.0, top))
    panels[1, 0].set_visible(False)
    for place, (learner, each) in enumerate(predictions.items(), start=1):
        _tiles(panels[0, place], learner, test, each.mean, "cividis", (0.0, top))
        size = float(np.sqrt(np.mean(errors[learner] ** 2)))
        below = f"off by {size:.2g} (RMSE)"
        missed = _tiles(panels[1, place], below, test, errors[learner], "PuOr", (-most, most))
    (across, range_across), (up, range_up) = test.space.ranges.items()
    for axes in (panels[0, 0], *panels[1, 1:]):
        label_axis(axes, "x", across, range_across)
        axes.tick_params(labelbottom=True)
    for axes in (panels[0, 0], panels[1, 1]):
        label_axis(axes, "y", up, range_up)
        axes.tick_params(labelleft=True)
    colour_bar(figure, shape, panels[0, :].tolist(), "probability", aspect=12)
    colour_bar(figure, missed, panels[1, :].tolist(), "mean less truth", aspect=12)
    figure.suptitle(title, fontsize=FONT_SIZE, x=0.01, ha="left")
    return figure


def scores_by_dimension(
    ours: Mapping[str, Mapping[str, Series]],
    published: Mapping[str, Mapping[str, Series]],
    *,
    reference: Series,
    title: str,
) -> Figure:
    """Acc, RMSE, Unc and training time by the number of parameters, ours in lines, the paper's in dashes.

    Both are given by panel, "accuracy", "rmse", "uncertainty" and "hours", and by learner. `reference` is the mean
    width of the intervals of the test frequencies. Intervals are those of means over data sets, at 95 %.
    """
    figure = new_figure(9.2, 6.2)
    panels = figure.subplots(2, 2).ravel()
    every = [*ours.values(), *published.values()]
    order = sorted({parameters for panel in every for series in panel.values() for parameters in series})
    others = [learner for learner in ours["rmse"] if learner not in _LEARNERS]
    looks = {**_LEARNERS, **{other: _OTHERS[at % len(_OTHERS)] for at, other in enumerate(others)}}
    for axes, (panel, heading) in zip(panels, _PANELS.items(), strict=True):
        for place, (learner, series) in enumerate(ours[panel].items()):
            shift = _SHIFT * (place - (len(ours[panel]) - 1) / 2)
            _draw_series(axes, series, _places(series, order) + shift, learner, *looks[learner])
        for learner, series in published.get(panel, {}).items():
            _draw_published(axes, series, _places(series, order), learner, *looks[learner])
        if panel == "uncertainty" and reference:
            mean = [each for each, _ in reference.values()]
            label = "intervals of the test frequencies (SMC)"
            axes.plot(_places(reference, order), mean, color="#000000", linestyle=":", linewidth=1.2, label=label)
        dress(axes, grid="y")
        title_panel(axes, heading)
        axes.set_xticks(range(len(order)), [str(parameters) for parameters in order])
        if panel == "hours":
            axes.set_yscale("log")
            label_ticks(axes.yaxis, _TIMES)
        else:
            axes.set_ylim(None if panel == "accuracy" else 0, 1.01 if panel == "accuracy" else None)
    for axes in panels[2:]:
        axes.set_xlabel("parameters", fontsize=FONT_SIZE)
    legend_below(figure, columns=4, size=SMALL_FONT_SIZE + 1)
    figure.suptitle(title, fontsize=FONT_SIZE, x=0.01, ha="left")
    return figure


def widths_by_runs(runs: Sequence[int], values: Curves) -> Figure:
    """The mean width of each kind of band as the runs per point grow, a panel for each learner."""
    return _by_runs(runs, values, "mean width of the band", {**_LABELS, "Bayes": "Bayes (Unc), no guarantee"})


def errors_by_runs(runs: Sequence[int], values: Curves) -> Figure:
    """Bounds on the mean error as the runs per point grow, next to mean half-widths of bands."""
    halves = {name: f"{name}, half-width" for name in ("ICP", "NICP", "lift", "Bayes")}
    return _by_runs(runs, values, "mean error, or its bound", halves)


def bands_over_parameter(
    learner: str, predictions: Mapping[int, Mapping[str, Prediction]], test: Observations
) -> Figure:
    """The bands over the one parameter, a panel for each number of runs, with test frequencies and their intervals."""
    columns = min(3, len(predictions))
    rows = -(-len(predictions) // columns)
    figure = new_figure(3.3 * columns, 2.5 * rows + 0.5)
    panels = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False).ravel()
    ((name, range_),) = test.space.ranges.items()
    for axes, (runs, bands) in zip(panels, predictions.items(), strict=False):
        _draw_bands(axes, bands)
        _draw_test(axes, test, "95 %", marker="none", colour="#606060", width=1.0)
        dress(axes, grid="y")
        title_panel(axes, f"{runs:,} runs per point")
        axes.margins(x=0.01)
        axes.set_ylim(-0.02, None)
    for axes in panels[len(predictions) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("probability", fontsize=FONT_SIZE)
    for axes in panels[len(predictions) - columns : len(predictions)]:
        label_axis(axes, "x", name, range_)
        axes.tick_params(labelbottom=True)
    _legend_of_bands(figure, title=f"{learner}, 95 % unless another level is given")
    return figure


def _by_runs(runs: Sequence[int], values: Curves, label: str, labels: Mapping[str, str]) -> Figure:
    figure = new_figure(max(3.2 * len(values), 4.0), 3.9)
    panels = figure.subplots(1, len(values), sharey=True, squeeze=False).ravel()
    for axes, (learner, by_name) in zip(panels, values.items(), strict=True):
        for name in (each for each in _LOOKS if each in by_name):
            _draw_curve(axes, runs, by_name[name], {**labels, **_ERRORS}.get(name, name), *_LOOKS[name])
        dress(axes, x="runs per point", grid="y")
        title_panel(axes, learner)
        axes.set_xscale("log")
        axes.set_yscale("log")
        label_ticks(axes.xaxis, {each: f"{each:.0f}" for each in runs})
        label_ticks(axes.yaxis, {each: f"{each:g}" for each in _HEIGHTS})
    means = np.concatenate([rows.mean(axis=1) for by_name in values.values() for rows in by_name.values()])
    panels[0].set_ylim(0.5 * means.min(), 1.5 * means.max())  # however wide the intervals of few trainings are
    panels[0].set_ylabel(label, fontsize=FONT_SIZE)
    _legend_of_bands(figure)
    return figure


def _draw_curve(
    axes: Axes, runs: Sequence[int], rows: FloatArray, label: str, colour: str, marker: str, stroke: Stroke
) -> None:
    """The mean over trainings, and around it the 95 % interval of that mean, by Student's distribution."""
    mean, trainings = rows.mean(axis=1), rows.shape[1]
    axes.plot(runs, mean, label=label, linewidth=1.5, markersize=3.5, color=colour, marker=marker, linestyle=stroke)
    if trainings > 1:
        half = stdtrit(trainings - 1, 0.975) * rows.std(axis=1, ddof=1) / np.sqrt(trainings)
        low = np.maximum(mean - half, 1e-9)
        axes.fill_between(runs, low, mean + half, color=colour, alpha=0.18, linewidth=0)


def _draw_bands(axes: Axes, bands: Mapping[str, Prediction]) -> None:
    x = bands["Bayes"].points.theta[:, 0]
    for name, (colour, filled) in _BANDS.items():
        if name not in bands:
            continue
        each, label = bands[name], _LABELS.get(name, name)
        if filled:
            axes.fill_between(x, each.lower, each.upper, color=colour, alpha=filled, linewidth=0, label=label)
        else:
            axes.plot(x, each.lower, color=colour, linewidth=1.1, label=label)
            axes.plot(x, each.upper, color=colour, linewidth=1.1)
    axes.plot(x, bands["Bayes"].mean, color=_BLACK, linewidth=0.8, label="posterior mean")


def _draw_test(axes: Axes, test: Observations, level: str, *, marker: str, colour: str, width: float) -> None:
    """Test frequencies with Wilson's intervals."""
    x, y, label = test.theta[:, 0], test.frequency, f"{int(test.trials[0]):,} test runs, {level}"
    low, high = wilson(y, test.trials)
    size = [np.maximum(y - low, 0), np.maximum(high - y, 0)]
    axes.errorbar(x, y, size, fmt=marker, markersize=3, color=colour, elinewidth=width, zorder=3, label=label)


def _legend_of_bands(figure: Figure, title: str | None = None) -> None:
    legend_below(figure, columns=5 if len(figure.axes) > 1 else 2, title=title)


def _places(series: Series, order: Sequence[int]) -> FloatArray:
    """Where numbers of parameters stand: side by side, for the small ones are close and the others far apart."""
    return np.array([order.index(parameters) for parameters in series], dtype=np.float64)


def _draw_series(axes: Axes, series: Series, x: FloatArray, learner: str, colour: str, marker: str) -> None:
    mean = np.array([each for each, _ in series.values()])
    half = np.array([np.nan if width is None else width for _, width in series.values()])
    axes.plot(x, mean, color=colour, marker=marker, markersize=4, linewidth=1.4, label=learner)
    known = np.isfinite(half)
    if known.any():
        axes.errorbar(x[known], mean[known], yerr=half[known], fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)


def _draw_published(axes: Axes, series: Series, x: FloatArray, learner: str, colour: str, marker: str) -> None:
    means, dashes = [each for each, _ in series.values()], (0, (2, 1.5))
    (line,) = axes.plot(x, means, color=colour, linestyle=dashes, linewidth=1.0, alpha=0.75)
    line.set(marker=marker, markersize=4, markerfacecolor="none", label=f"{learner}, the paper")


def _tiles(
    axes: Axes, title: str, points: Points, values: FloatArray, colours: str, limits: tuple[float, float]
) -> QuadMesh:
    """A tile of colour for each point of a grid."""
    dress(axes)
    title_panel(axes, title)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    across, up, table = table_of(points, values)
    mesh = axes.pcolormesh(across, up, table, shading="nearest", rasterized=True, cmap=colours)
    mesh.set_clim(*limits)
    return mesh
