"""Pictures of what was learned: predictions with their intervals, how a fit went, and a whole posterior.

A curve over one parameter, colours over two, and slices through the middle of the space over more. Wherever an
interval is drawn, its claim stands below it.
"""

from __future__ import annotations

import math
from textwrap import fill
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction
from sateen.core.record import Record
from sateen.core.space import Points, Space
from sateen.core.text import duration_text, percent, plural
from sateen.core.types import FloatArray, IntArray
from sateen.plot.style import (
    COLOURS,
    EDGE,
    FAINT,
    FONT_SIZE,
    LEGEND,
    POINTS_DRAWN_AS_LINES,
    SMALL_FONT_SIZE,
    caption,
    colour_bar,
    dress,
    label_axis,
    label_plane,
    new_axes,
    new_figure,
    short_ticks,
    table_of,
    title_panel,
)

_MEAN: Final = COLOURS[0]
_TRUTH: Final = COLOURS[1]
_DOTS: Final = "#7F7F7F"
_FEW: Final = 24  # points that are drawn one by one, for what lies between them was not predicted
_CURVE: Final = 200  # values of a parameter along a curve
_MAP: Final = 100  # values of each parameter on a map
_MOST_SLICES: Final = 12
_SLICES_IN_A_ROW: Final = 4
_COLOURS_OF_MEANS: Final = "cividis"
_COLOURS_OF_WIDTHS: Final = "magma"
_COLOURS_OF_ERRORS: Final = "PuOr"
_PALE, _DEEP = "#FEFEFE", "#010101"  # on a map, which no theme changes, lines are not the theme's white and black
_RIM: Final = 0.07  # of a map, where contours bear no numbers
_SETTLED: Final = 0.1  # of the steps are left out when the picture of a fit is scaled, if they would hide the others
_DWARFS: Final = 5.0  # times the height of all the others is too high


def prediction(prediction: Prediction, ax: Axes | None = None) -> Axes:
    """The mean and the intervals over one parameter, with their claim; over two, the mean as colours; over more, ranks.

    A grid over two parameters has contours too; other points are dots. Where few points are given over one parameter
    they stand alone, with no line between them.
    """
    dimension = len(prediction.points.space)
    axes = new_axes(6.4, 4.8 if dimension == 2 else 3.8) if ax is None else ax
    if dimension != 2:
        (_curve if dimension == 1 else _ranking)(axes, prediction)
        mean, interval = ("Dot", "Bar") if len(prediction) <= _FEW else ("Line", "Band")
        caption(axes, f"{mean}: mean. {interval}: {prediction.claim}.")
    else:
        _map(axes, prediction.points, prediction.mean, "mean probability", _COLOURS_OF_MEANS)
    return axes


def record(record: Record, ax: Axes | None = None) -> Axes:
    """The objective of a fit by step, under its verdict.

    Where the first steps rise so far that they would flatten all the others, they leave the picture, and a note says
    where they began.
    """
    axes = new_axes(6.4, 3.4) if ax is None else ax
    dress(axes, x="step", y=record.objective, grid="y")
    few = len(record.steps) <= _FEW
    axes.plot(record.steps, record.values, color=_MEAN, linewidth=1.4, marker="o" if few else "", markersize=3.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    title_panel(axes, fill(f"{record.verdict}, {duration_text(record.seconds)}", 90))
    values = record.values[np.isfinite(record.values)]
    later = values[math.ceil(_SETTLED * len(values)) :]
    if len(later) > 2 and np.ptp(values) > _DWARFS * np.ptp(later) > 0:
        margin = 0.06 * np.ptp(later)
        axes.set_ylim(later.min() - margin, later.max() + margin)
        note = f"begins at {values[0]:,.4g}"
        axes.annotate(note, (0.99, 0.04), fontsize=FONT_SIZE, color=_DOTS, xycoords="axes fraction", ha="right")
    return axes


def learned(
    posterior: FullPosterior, observations: Observations | None = None, truth: npt.ArrayLike | None = None
) -> Figure:
    """A whole posterior: what was learned over its space, and how surely.

    Over one parameter the mean and the 95 % interval among the frequencies of `observations`, by default those of the
    training; over two the mean, and next to it the width of the interval and where the observations are; over more a
    slice through the middle of the space for each parameter that matters, the most important first. `truth` has the
    probability at each of the observations' points, and is drawn over one or two parameters.
    """
    space = posterior.space
    if not space.names:
        raise InputError(f"no parameter varies in {space!r}, so there is nothing to draw")
    if len(space) > 2 and (observations is not None or truth is not None):
        raise InputError(f"observations and truth are drawn over one or two parameters, and here {len(space)} vary")
    seen = posterior.training.observations if observations is None else observations
    if seen.space.names != space.names:
        raise InputError(f"these observations are in {seen.space!r}, and the posterior in {space!r}; give others")
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None and known.shape != (len(seen),):
        raise InputError(f"truth has the shape {known.shape}, for {len(seen)} points; give a probability for each")
    if len(space) > 2:
        return _slices(posterior)
    return (_curve_with_observations if len(space) == 1 else _maps)(posterior, seen, known)


def _curve(axes: Axes, predicted: Prediction) -> None:
    """Mean and interval over the only parameter; few points stand alone."""
    ((name, range_),) = predicted.points.space.ranges.items()
    order = np.argsort(predicted.points.theta[:, 0], kind="stable")
    _intervals(axes, predicted, order, predicted.points.theta[order, 0])
    label_axis(axes, "x", name, range_)
    short_ticks(axes)


def _ranking(axes: Axes, predicted: Prediction) -> None:
    """Mean and interval at points over many parameters, in the order of the means."""
    order = np.argsort(predicted.mean, kind="stable")
    _intervals(axes, predicted, order, np.arange(1.0, len(order) + 1))
    dress(axes, x=f"the {len(order):,} points, in the order of their means")


def _intervals(axes: Axes, predicted: Prediction, order: IntArray, x: FloatArray) -> None:
    """Mean and interval of the rows in this order, at these places."""
    mean, lower, upper = (column[order] for column in (predicted.mean, predicted.lower, predicted.upper))
    label = f"{percent(predicted.level)} interval"
    dress(axes)
    if len(x) <= _FEW:
        axes.vlines(x, lower, upper, color=_MEAN, linewidth=2.0, alpha=0.4, label=label)
        axes.plot(x, mean, "o", color=_MEAN, markersize=4.0, label="mean")
    else:
        axes.fill_between(x, lower, upper, color=_MEAN, alpha=0.25, linewidth=0, label=label)
        axes.plot(x, mean, color=_MEAN, linewidth=1.6, label="mean")
        axes.margins(x=0)
    _probabilities(axes)


def _probabilities(axes: Axes) -> None:
    """A vertical scale of probabilities, which ends where they do."""
    dress(axes, y="probability", grid="y")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -0.03), min(high, 1.03))


def _curve_with_observations(posterior: FullPosterior, seen: Observations, truth: FloatArray | None) -> Figure:
    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot()
    some = seen.trials > 0
    low, high = seen.frequency_bounds[some].T
    x = seen.theta[some, 0]
    decided = low == high
    dots = axes.plot(x[decided], low[decided], ".", color=_DOTS, markersize=3.0, label="frequency")
    bars = (x[~decided], low[~decided], high[~decided])
    lines = [] if decided.all() else [axes.vlines(*bars, color=_DOTS, linewidth=0.8, label="undecided")]
    for artist in (*dots, *lines):
        artist.set(zorder=1.5, rasterized=len(x) > POINTS_DRAWN_AS_LINES)
    predicted = posterior.predict(posterior.space.grid(_CURVE))
    _curve(axes, predicted)
    if truth is not None:
        order = np.argsort(seen.theta[:, 0], kind="stable")
        axes.plot(seen.theta[order, 0], truth[order], "--", color=_TRUTH, linewidth=1.2, label="truth")
    _title(figure, posterior)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), **LEGEND)
    caption(axes, f"Band: {predicted.claim}.")
    return figure


def _title(figure: Figure, posterior: FullPosterior, rest: str = "") -> None:
    """What was asked, and who learned it."""
    seen = posterior.training.observations
    formula, runs = str(seen.provenance.get("formula") or ""), plural(int(seen.trials.sum()), "run")
    words = fill(
        f"{formula or 'probability'}, by {posterior.kind} from {runs}{rest}", int(13.5 * figure.get_figwidth())
    )
    figure.suptitle(words, x=0.01, ha="left", fontsize=FONT_SIZE, parse_math=False)


def _map(axes: Axes, points: Points, values: FloatArray, label: str, colours: str) -> None:
    """Values over two parameters: colours with contours on a grid, coloured dots elsewhere."""
    label_plane(axes, points.space)
    top = float(values.max(initial=0.0))
    top = 1.0 if top > 0.5 else top or 1.0
    across, up, table = table_of(points, values)
    shape: ScalarMappable
    if min(table.shape) > 1 and table.size == len(points) and np.isfinite(table).all():
        shape = axes.pcolormesh(across, up, table, shading="gouraud", rasterized=True, cmap=colours, vmin=0, vmax=top)
        _contours(axes, across, up, table, top)
    else:
        x, y = points.theta.T
        many = len(points) > POINTS_DRAWN_AS_LINES
        shape = axes.scatter(x, y, c=values, s=18, cmap=colours, vmin=0, vmax=top, edgecolors=EDGE, linewidths=0.4)
        shape.set_rasterized(many)
    short_ticks(axes)
    colour_bar(axes.figure, shape, axes, label)


def _contours(axes: Axes, across: FloatArray, up: FloatArray, table: FloatArray, top: float) -> None:
    if np.ptp(table) < 1e-9:
        return
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(float(table.min()), float(table.max()))
    levels = ticks[(table.min() < ticks) & (ticks < table.max())]
    if not levels.size:
        return
    shades = [_PALE if level < 0.5 * top else _DEEP for level in levels]  # the colours begin dark and end pale
    drawn = axes.contour(across, up, table, levels=levels, colors=shades, linewidths=0.8)
    # A number on the rim would stand on the title or on an axis, so only those within are kept.
    tried = axes.clabel(drawn, fontsize=FONT_SIZE - 2, fmt="%g", inline=False)
    places = [text.get_position() for text in tried]
    for text in tried:
        text.remove()
    shares = axes.transAxes.inverted().transform(axes.transData.transform(np.reshape(places, (-1, 2))))
    kept = [place for place, share in zip(places, shares, strict=True) if np.abs(share - 0.5).max() < 0.5 - _RIM]
    if kept:
        axes.clabel(drawn, fontsize=FONT_SIZE - 2, fmt="%g", manual=kept)


def _maps(posterior: FullPosterior, seen: Observations, truth: FloatArray | None) -> Figure:
    """The mean, the width of the interval, and the error where the truth is known, side by side."""
    panels = 2 if truth is None else 3
    figure = new_figure(4.7 * panels, 4.4)
    axes = figure.subplots(1, panels)
    predicted = posterior.predict(posterior.space.grid(_MAP))
    _map(axes[0], predicted.points, predicted.mean, "mean probability", _COLOURS_OF_MEANS)
    title_panel(axes[0], "mean")
    _map(axes[1], predicted.points, predicted.width, "width of the interval", _COLOURS_OF_WIDTHS)
    size = float(np.clip(3000 / max(len(seen), 1), 0.3, 6.0))
    x, y = seen.theta.T
    axes[1].scatter(x, y, s=size, color=COLOURS[5], linewidths=0, rasterized=len(seen) > POINTS_DRAWN_AS_LINES)
    title_panel(axes[1], f"width at {percent(predicted.level)}; dots: observations")
    caption(axes[1], f"Interval: {predicted.claim}.")
    _title(figure, posterior)
    if truth is not None:
        _errors(axes[2], seen.points, posterior.predict(seen.points, extrapolate=True).mean - truth)
    return figure


def _errors(axes: Axes, points: Points, error: FloatArray) -> None:
    label_plane(axes, points.space)
    most = float(np.abs(error).max(initial=0.0)) or 1.0
    x, y = points.theta.T
    colours = _COLOURS_OF_ERRORS
    shape = axes.scatter(x, y, c=error, s=18, linewidths=0.4, cmap=colours, vmin=-most, vmax=most, edgecolors=FAINT)
    short_ticks(axes)
    size = np.sqrt(np.mean(error**2)) if error.size else 0.0
    title_panel(axes, f"mean less truth; root mean square {size:.3g}")
    colour_bar(axes.figure, shape, axes, "mean less truth")


def _slices(posterior: FullPosterior) -> Figure:
    """For each parameter that matters, mean and interval along it with the others in the middle of their ranges."""
    space = posterior.space
    ranked = [name for name, steepness in posterior.importance().items() if steepness > 0] or list(space.names)
    shown = ranked[:_MOST_SLICES]
    rows = math.ceil(len(shown) / _SLICES_IN_A_ROW)
    columns = math.ceil(len(shown) / rows)
    figure = new_figure(1.2 + 2.2 * columns, 1.2 + 2.1 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    middle = {name: float(range_.from_unit(0.0)) for name, range_ in space.ranges.items()}
    for axes, name in zip(panels, shown, strict=False):
        along = space.ranges[name].from_unit(np.linspace(-1.0, 1.0, _CURVE))
        predicted = posterior.predict({**middle, name: along})
        dress(axes)
        axes.fill_between(along, predicted.lower, predicted.upper, color=_MEAN, alpha=0.25, linewidth=0)
        axes.plot(along, predicted.mean, color=_MEAN, linewidth=1.6)
        axes.margins(x=0)
        label_axis(axes, "x", name, space.ranges[name])
        short_ticks(axes)
    for axes in panels:
        _probabilities(axes)
        if axes not in panels[::columns]:
            axes.set_ylabel("")
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    _title(figure, posterior, ": slices through the middle of the space, the most important parameter first")
    words = f"Band: {predicted.claim}.{_left_out(space, ranked, shown)}"
    width = int(18 * figure.get_figwidth())
    figure.supxlabel(fill(words, width), x=0.01, ha="left", fontsize=SMALL_FONT_SIZE, parse_math=False)
    return figure


def _left_out(space: Space, ranked: list[str], shown: list[str]) -> str:
    """Which parameters have no picture, and why."""
    flat = [name for name in space.names if name not in ranked]
    words = f" {len(ranked) - len(shown)} parameters that matter less are not drawn." if ranked[len(shown) :] else ""
    return words + (f" The mean does not depend on {', '.join(flat)}." if flat else "")
