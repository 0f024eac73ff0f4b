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
from sateen.core.prediction import Prediction, percent
from sateen.core.space import Points
from sateen.show.figures_style import (
    COLOURS,
    FAINT,
    FONT_SIZE,
    SMALL_FONT_SIZE,
    FloatArray,
    dress,
    label_axis,
    new_figure,
    wilson,
)

__all__ = ["Series", "curves", "maps", "scores_by_dimension"]

Series = Mapping[int, tuple[float, float | None]]  # by dimension a mean, and the half-width of its interval
_PANEL: Final = 3.0  # inches
_MEAN: Final = COLOURS[0]
_TEST: Final = "#404040"
_METHODS: Final = {"EP-GP": (COLOURS[4], "s"), "SVI-GP": (COLOURS[2], "D"), "SVI-BNN": (COLOURS[1], "^")}
_OURS: Final = (COLOURS[0], "o")
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
    of the intervals of the test frequencies.
    """
    named = {
        "accuracy": "Acc: shares of test points whose intervals meet",
        "rmse": "RMSE against test frequencies",
        "uncertainty": "Unc: mean width of credible intervals",
        "hours": "training, hours",
    }
    figure = new_figure(9.2, 6.2)
    panels = figure.subplots(2, 2).ravel()
    for axes, (panel, title) in zip(panels, named.items(), strict=True):
        methods = list(found[panel])
        for place, method in enumerate(methods):
            shift = _SHIFT * (place - (len(methods) - 1) / 2)
            _draw_series(axes, found[panel][method], method, shift)
        for method, series in published.get(panel, {}).items():
            colour, marker = _METHODS.get(method, _OURS)
            known = dict(sorted(series.items()))
            look: dict[str, Any] = {"linestyle": (0, (2, 1.5)), "linewidth": 1.0, "alpha": 0.75}
            axes.plot(
                _places(known, known), [mean for mean, _ in known.values()], color=colour, marker=marker,
                markerfacecolor="none", markersize=4, label=f"{method}, the paper", **look,
            )  # fmt: skip
        if panel == "uncertainty" and reference:
            _draw_reference(axes, reference)
        dress(axes)
        axes.set_title(title, fontsize=FONT_SIZE, loc="left")
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        _number_dimensions(axes, sorted({rates for series in found[panel].values() for rates in series}))
        if panel == "hours":
            axes.set_yscale("log")
            axes.yaxis.set_minor_locator(NullLocator())
        elif panel != "accuracy":
            axes.set_ylim(0, None)
    for axes in panels[2:]:
        axes.set_xlabel("parameters", fontsize=FONT_SIZE)
    handles: dict[str, Any] = {}
    for axes in panels:
        handles |= {str(label): handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    _legend(figure, list(handles.values()), list(handles))
    return figure


_DIMENSIONS: Final = (2, 3, 4, 8, 12, 16, 20)


def _places(rates: Mapping[int, Any], _: Any = None) -> list[float]:
    """Where numbers of parameters stand: one beside the other, for few are small and the others far apart."""
    return [float(_DIMENSIONS.index(each)) if each in _DIMENSIONS else float(each) for each in rates]


def _draw_series(axes: Axes, series: Series, method: str, shift: float) -> None:
    colour, marker = _METHODS.get(method, _OURS)
    x = np.array(_places(series)) + shift
    mean = np.array([each for each, _ in series.values()])
    half = np.array([np.nan if own is None else own for _, own in series.values()])
    axes.plot(x, mean, color=colour, marker=marker, markersize=4, linewidth=1.4, label=method)
    known = np.isfinite(half)
    if known.any():
        axes.errorbar(x[known], mean[known], yerr=half[known], fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)


def _draw_reference(axes: Axes, reference: Series) -> None:
    mean = [each for each, _ in reference.values()]
    look: dict[str, Any] = {"color": "#000000", "linestyle": ":", "linewidth": 1.2}
    axes.plot(_places(reference), mean, label="intervals of the test frequencies (SMC)", **look)


def _number_dimensions(axes: Axes, rates: Sequence[int]) -> None:
    places = {float(_DIMENSIONS.index(each)): each for each in rates if each in _DIMENSIONS}
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: str(places.get(float(round(value)), ""))))
    axes.xaxis.set_minor_locator(NullLocator())


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
