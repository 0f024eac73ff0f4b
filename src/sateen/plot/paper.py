"""The paper's pictures of what was learned: curves over one parameter, maps over two, and scores by dimension.

Every function takes what it draws by the name of the method, and returns a Figure with a panel for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from sateen.core.observations import Observations
from sateen.core.prediction import Prediction
from sateen.core.proportions import wilson
from sateen.core.space import Points
from sateen.core.text import percent
from sateen.core.types import FloatArray
from sateen.plot.style import (
    COLOURS,
    FAINT,
    FONT_SIZE,
    SMALL_FONT_SIZE,
    dress,
    label_axis,
    new_figure,
)

__all__ = ["Series", "curves", "maps", "scores_by_dimension"]

Series = Mapping[int, tuple[float, float | None]]  # by dimension a mean, and the half-width of its interval
_PANEL: Final = 3.0  # inches
_MEAN: Final = COLOURS[0]
_TEST: Final = "#404040"
_METHODS: Final = {"EP-GP": (COLOURS[4], "s"), "SVI-GP": (COLOURS[2], "D"), "SVI-BNN": (COLOURS[1], "^")}
_OURS: Final = (COLOURS[0], "o")
_PANELS: Final = {
    "accuracy": "Acc: share of test points where intervals meet",
    "rmse": "RMSE against test frequencies",
    "uncertainty": "Unc: mean width of credible intervals",
    "hours": "training time",
}
_SECOND: Final = 1 / 3600  # of an hour
_TIMES: Final = {
    0.1 * _SECOND: "0.1 s",
    _SECOND: "1 s",
    10 * _SECOND: "10 s",
    60 * _SECOND: "1 min",
    600 * _SECOND: "10 min",
    1.0: "1 h",
    10.0: "10 h",
}
_SHIFT: Final = 0.16  # between methods at one dimension, so that their intervals stand side by side


def curves(
    title: str, predictions: Mapping[str, Prediction], shown: Observations, test: Points, truth: FloatArray
) -> Figure:
    """What each method learned over one parameter, with its band; some test frequencies with their 95 % intervals.

    The thin line is the truth at the test points.
    """
    figure = new_figure(_PANEL * max(len(predictions), 2), 2.9)
    panels = figure.subplots(1, len(predictions), sharey=True, squeeze=False).ravel()
    ((name, own),) = test.space.ranges.items()
    low, high = wilson(shown.frequency, shown.trials)
    size = [np.maximum(shown.frequency - low, 0), np.maximum(high - shown.frequency, 0)]
    runs = f"{int(shown.trials[0]):,} test runs, 95 % by Wilson"
    for axes, (method, each) in zip(panels, predictions.items(), strict=True):
        x = each.points.theta[:, 0]
        band = f"credible interval, {percent(each.level)}: a belief of its model"
        axes.fill_between(x, each.lower, each.upper, color=_MEAN, alpha=0.25, linewidth=0, label=band)
        axes.plot(test.theta[:, 0], truth, color="#000000", linewidth=0.7, label="truth")
        axes.plot(x, each.mean, color=_MEAN, linewidth=1.4, label="posterior mean")
        look: dict[str, Any] = {"fmt": ".", "markersize": 3, "color": _TEST, "elinewidth": 0.9, "zorder": 3}
        axes.errorbar(shown.theta[:, 0], shown.frequency, yerr=size, label=runs, **look)
        dress(axes)
        axes.set_title(method, fontsize=FONT_SIZE, loc="left")
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.margins(x=0.01)
        label_axis(axes, "x", name, own)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    panels[0].set_ylabel("probability", fontsize=FONT_SIZE)
    handles, labels = panels[0].get_legend_handles_labels()
    _legend(figure, handles, labels)
    figure.suptitle(title, fontsize=FONT_SIZE, x=0.01, ha="left")
    return figure


def maps(title: str, predictions: Mapping[str, Prediction], test: Points, truth: FloatArray) -> Figure:
    """The truth and what each method learned over two parameters, on one scale; below, how far each is off."""
    columns = 1 + len(predictions)
    figure = new_figure(2.5 * columns + 0.7, 4.8)
    panels = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    top = max(float(truth.max()), *(float(each.mean.max()) for each in predictions.values()), 1e-9)
    scale: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "vmax": 1.0 if top > 0.5 else top}
    errors = {method: each.mean - truth for method, each in predictions.items()}
    most = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    off: dict[str, Any] = {"cmap": "PuOr", "vmin": -most, "vmax": most}
    shape = _tiles(panels[0, 0], test, truth, scale)
    panels[0, 0].set_title("truth", fontsize=FONT_SIZE, loc="left")
    panels[1, 0].set_visible(False)
    for place, (method, each) in enumerate(predictions.items(), start=1):
        _tiles(panels[0, place], test, each.mean, scale)
        panels[0, place].set_title(method, fontsize=FONT_SIZE, loc="left")
        missed = _tiles(panels[1, place], test, errors[method], off)
        size = float(np.sqrt(np.mean(errors[method] ** 2)))
        panels[1, place].set_title(f"off by {size:.2g} (RMSE)", fontsize=FONT_SIZE, loc="left")
    (across, own_across), (up, own_up) = test.space.ranges.items()
    for axes in (panels[0, 0], *panels[1, 1:]):
        label_axis(axes, "x", across, own_across)
        axes.tick_params(labelbottom=True)
    for axes in (panels[0, 0], panels[1, 1]):
        label_axis(axes, "y", up, own_up)
        axes.tick_params(labelleft=True)
    for bar, text in (
        (figure.colorbar(shape, ax=panels[0, :], aspect=12), "probability"),
        (figure.colorbar(missed, ax=panels[1, :], aspect=12), "mean less truth"),
    ):
        bar.set_label(text, fontsize=FONT_SIZE)
        bar.ax.tick_params(labelsize=FONT_SIZE)
    figure.suptitle(title, fontsize=FONT_SIZE, x=0.01, ha="left")
    return figure


def scores_by_dimension(
    found: Mapping[str, Mapping[str, Series]], published: Mapping[str, Mapping[str, Series]], *, reference: Series
) -> Figure:
    """Acc, RMSE, Unc and training time by the number of parameters, ours in lines, the paper's in dashes.

    Both are given by panel, "accuracy", "rmse", "uncertainty" and "hours", and by method. `reference` is the mean width
    of the intervals of the test frequencies. Intervals are those of means over data sets, at 95 %.
    """
    figure = new_figure(9.2, 6.2)
    panels = figure.subplots(2, 2).ravel()
    every = [*found.values(), *published.values()]
    order = sorted({parameters for panel in every for series in panel.values() for parameters in series})
    for axes, (panel, title) in zip(panels, _PANELS.items(), strict=True):
        for place, (method, series) in enumerate(found[panel].items()):
            _draw_series(axes, series, order, method, _SHIFT * (place - (len(found[panel]) - 1) / 2))
        for method, series in published.get(panel, {}).items():
            _draw_published(axes, series, order, method)
        if panel == "uncertainty" and reference:
            look: dict[str, Any] = {"color": "#000000", "linestyle": ":", "linewidth": 1.2}
            mean = [each for each, _ in reference.values()]
            axes.plot(_places(reference, order), mean, label="intervals of the test frequencies (SMC)", **look)
        dress(axes)
        axes.set_title(title, fontsize=FONT_SIZE, loc="left")
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.set_xticks(range(len(order)), [str(parameters) for parameters in order])
        if panel == "hours":
            _times(axes)
        else:
            axes.set_ylim(None if panel == "accuracy" else 0, 1.01 if panel == "accuracy" else None)
    for axes in panels[2:]:
        axes.set_xlabel("parameters", fontsize=FONT_SIZE)
    handles: dict[str, Any] = {}
    for axes in panels:
        handles |= {str(label): handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    _legend(figure, list(handles.values()), list(handles))
    return figure


def _places(series: Series, order: Sequence[int]) -> FloatArray:
    """Where numbers of parameters stand: side by side, for the small ones are close and the others far apart."""
    return np.array([order.index(parameters) for parameters in series], dtype=np.float64)


def _draw_series(axes: Axes, series: Series, order: Sequence[int], method: str, shift: float) -> None:
    colour, marker = _METHODS.get(method, _OURS)
    x = _places(series, order) + shift
    mean = np.array([each for each, _ in series.values()])
    half = np.array([np.nan if own is None else own for _, own in series.values()])
    axes.plot(x, mean, color=colour, marker=marker, markersize=4, linewidth=1.4, label=method)
    known = np.isfinite(half)
    if known.any():
        axes.errorbar(x[known], mean[known], yerr=half[known], fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)


def _draw_published(axes: Axes, series: Series, order: Sequence[int], method: str) -> None:
    colour, marker = _METHODS.get(method, _OURS)
    look: dict[str, Any] = {"linestyle": (0, (2, 1.5)), "linewidth": 1.0, "alpha": 0.75, "markerfacecolor": "none"}
    mean = [each for each, _ in series.values()]
    label = f"{method}, the paper"
    axes.plot(_places(series, order), mean, color=colour, marker=marker, markersize=4, label=label, **look)


def _times(axes: Axes) -> None:
    """A log scale of times, each in the unit that people say it in."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(list(_TIMES)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda hours, _: _TIMES[min(_TIMES, key=lambda t: abs(t - hours))]))
    axes.yaxis.set_minor_locator(NullLocator())


def _tiles(axes: Axes, points: Points, values: FloatArray, look: Mapping[str, Any]) -> Any:
    """A tile of colour for each point of a grid."""
    across, column = np.unique(points.theta[:, 0], return_inverse=True)
    up, row = np.unique(points.theta[:, 1], return_inverse=True)
    table = np.full((len(up), len(across)), np.nan)
    table[row, column] = values
    dress(axes)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    return axes.pcolormesh(across, up, table, shading="nearest", rasterized=True, **look)


def _legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Below all panels, so that it hides nothing."""
    columns = min(len(labels), 4 if figure.get_figwidth() > 8 else 2)
    look: dict[str, Any] = {"frameon": False, "fontsize": SMALL_FONT_SIZE + 1}
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, **look)
