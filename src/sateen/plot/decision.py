"""Pictures of decisions: how a refinement went, rigorous bounds, and what matters; regions are drawn in regions.py.

The objects come from the room `decision`, which this room does not see: each function says by a protocol what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Final, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.space import Space
from sateen.core.text import percent
from sateen.core.types import FloatArray
from sateen.plot.regions import regions as regions  # offered here too
from sateen.plot.style import (
    COLOURS,
    FONT_SIZE,
    LEGEND,
    caption,
    colour_bar,
    dress,
    footer,
    label_axis,
    new_axes,
    new_figure,
    short_ticks,
    title_panel,
)

_DARK: Final = "#303030"
_SLICE: Final = 120  # values of each parameter on a slice of bounds
_LEAST_ON_LOG: Final = 1e-6  # where a figure of 0 is drawn if nothing says better
_COLOURS_OF_BOUNDS: Final = "cividis"


class GoalLike(Protocol):
    """A goal of `refine`: the name of its figure, and what the figure is to reach."""

    @property
    def name(self) -> str: ...
    @property
    def aim(self) -> float: ...


class RoundLike(Protocol):
    """A round of `refine`: the runs so far, and the goal's figure after it."""

    @property
    def runs(self) -> int: ...
    @property
    def figure(self) -> float: ...


class RefinementLike(Protocol):
    """What `refinement` draws: sateen.decision.refine.Refinement."""

    @property
    def goal(self) -> GoalLike: ...
    @property
    def rounds(self) -> Sequence[RoundLike]: ...
    @property
    def reason(self) -> str: ...


class BoundsLike(Protocol):
    """What `bounds` draws: sateen.decision.bounds.BoundMap."""

    @property
    def space(self) -> Space: ...
    @property
    def low(self) -> FloatArray: ...
    @property
    def high(self) -> FloatArray: ...
    @property
    def lower(self) -> FloatArray: ...
    @property
    def upper(self) -> FloatArray: ...
    @property
    def claim(self) -> Claim: ...
    def at(self, points: object) -> tuple[FloatArray, FloatArray]: ...


class SensitivityLike(Protocol):
    """What `sensitivity` draws: sateen.decision.sensitivity.Sensitivity."""

    @property
    def ranked(self) -> Sequence[str]: ...
    @property
    def first(self) -> Mapping[str, float]: ...
    @property
    def total(self) -> Mapping[str, float]: ...
    @property
    def lower(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def upper(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def level(self) -> float: ...
    @property
    def claim(self) -> Claim: ...


def refinement(
    refinement: RefinementLike, ax: Axes | None = None, *, forecast: Sequence[tuple[float, float]] | None = None
) -> Axes:
    """The figure of the goal against the runs, both on log scales, with what was to be reached as a line.

    `forecast` are pairs of runs and figure that another design would have had, such as Sobol points.
    """
    axes = new_axes(6.4, 3.6) if ax is None else ax
    runs = np.array([each.runs for each in refinement.rounds], dtype=np.float64)
    values = np.array([each.figure for each in refinement.rounds], dtype=np.float64)
    aim, seen = refinement.goal.aim, runs > 0
    drawable = [value for value in (aim, *values.tolist()) if 0 < value < np.inf]
    floor = min(drawable, default=_LEAST_ON_LOG) / 2
    zero = values <= 0
    axes.plot(
        runs[seen],
        np.where(zero, floor, values)[seen],
        "o-",
        color=COLOURS[0],
        linewidth=1.6,
        markersize=4,
        label="reached",
    )
    if zero.any():
        axes.plot(runs[zero], np.full(zero.sum(), floor), "v", color=COLOURS[0], markersize=7, label="0")
    if forecast:
        x, y = np.array(forecast, dtype=np.float64).T
        axes.plot(x, y, "--", color=COLOURS[1], linewidth=1.4, label="Sobol design, forecast")
    if aim > 0:
        axes.axhline(aim, color=_DARK, linewidth=1.0, linestyle=":")
        axes.annotate(
            f"goal: {aim:.3g}",
            (0, aim),
            xycoords=("axes fraction", "data"),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=FONT_SIZE,
            color=_DARK,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    dress(axes, x="runs", y=refinement.goal.name, grid="y")
    short_ticks(axes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if forecast or zero.any():
        axes.legend(loc="best", **LEGEND)
    title_panel(axes, fill(refinement.reason, 90))
    return axes


def bounds(bounds: BoundsLike, ax: Axes | None = None) -> Axes | Figure:
    """The lower and the upper bound of f in each cell: a staircase over one parameter, two maps over two.

    Over more parameters the maps are a slice over the first two, the others in the middle of their ranges.
    """
    space = bounds.space
    if not space.names:
        raise InputError(f"no parameter varies in {space!r}, so there is nothing to draw")
    if len(space) == 1:
        axes = new_axes(6.4, 3.6) if ax is None else ax
        _staircase(axes, bounds)
        caption(axes, f"{_capital(str(bounds.claim))}.")
        return axes
    if ax is not None:
        raise InputError("the maps of both bounds take a figure of their own; leave ax out")
    figure = new_figure(9.0, 4.4)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, values, word in ((left, bounds.lower, "lower"), (right, bounds.upper, "upper")):
        shape = _cells(axes, bounds, values) if len(space) == 2 else _bound_slice(axes, bounds, word)
        title_panel(axes, f"{word} bound")
    colour_bar(figure, shape, [left, right], "probability")
    right.set_ylabel("")
    rest = [f"{name} = {float(range_.from_unit(0.0)):.3g}" for name, range_ in list(space.ranges.items())[2:]]
    slices = f" A slice at {', '.join(rest)}." if rest else ""
    footer(figure, f"{_capital(str(bounds.claim))}.{slices}")
    return figure


def sensitivity(sensitivity: SensitivityLike, ax: Axes | None = None) -> Axes:
    """The first-order and the total index of each parameter as bars, the most important on top, with intervals."""
    names = list(sensitivity.ranked)
    axes = new_axes(6.4, 1.3 + 0.55 * len(names)) if ax is None else ax
    places = np.arange(len(names), dtype=np.float64)
    look = (
        ("total", -0.19, COLOURS[5], "total: alone and with others"),
        ("first", 0.19, COLOURS[0], "first order: alone"),
    )
    for kind, shift, colour, label in look:
        values = np.array([getattr(sensitivity, kind)[name] for name in names])
        low = np.array([sensitivity.lower[kind][name] for name in names])
        high = np.array([sensitivity.upper[kind][name] for name in names])
        axes.barh(places + shift, values, height=0.36, color=colour, label=label)
        reach = np.maximum([values - low, high - values], 0.0)
        axes.errorbar(
            values, places + shift, xerr=reach, fmt="none", ecolor=_DARK, elinewidth=1.1, capsize=2.5, label="_interval"
        )
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    dress(axes, x="share of the variance of the probability over the space", grid="x")
    axes.tick_params(axis="y", length=0)
    handles, labels = axes.get_legend_handles_labels()
    bar = Line2D([], [], color=_DARK, linewidth=1.1, label=f"{percent(sensitivity.level)} interval")
    axes.legend(
        [*handles, bar],
        [*labels, str(bar.get_label())],
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=3,
        borderaxespad=0.1,
        columnspacing=1.4,
        handlelength=1.4,
        **LEGEND,
    )
    caption(axes, f"{_capital(str(sensitivity.claim))}.")
    return axes


def _staircase(axes: Axes, bounds: BoundsLike) -> None:
    """Between both bounds, a box for each cell, and the bounds as lines."""
    ((name, range_),) = bounds.space.ranges.items()
    order = np.argsort(bounds.low[:, 0])
    low, high = bounds.low[order, 0], bounds.high[order, 0]
    edges = np.append(low, high[-1:])
    for values, label in ((bounds.lower, "lower bound"), (bounds.upper, "upper bound")):
        axes.stairs(values[order], edges, baseline=None, color=COLOURS[0], linewidth=1.2, label=label)
    axes.fill_between(
        np.repeat(edges, 2)[1:-1],
        np.repeat(bounds.lower[order], 2),
        np.repeat(bounds.upper[order], 2),
        color=COLOURS[0],
        alpha=0.25,
        linewidth=0,
    )
    axes.margins(x=0)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, -0.03), min(top, 1.03))
    dress(axes, y="probability", grid="y")
    label_axis(axes, "x", name, range_)
    short_ticks(axes)
    title_panel(axes, f"lower and upper bound of the probability in {len(low):,} cells")


def _cells(axes: Axes, bounds: BoundsLike, values: FloatArray) -> ScalarMappable:
    """Each cell as a rectangle in the colour of its value."""
    (x0, y0), (x1, y1) = bounds.low.T, bounds.high.T
    corners = np.stack([np.stack(each, axis=1) for each in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], axis=1)
    shape = PolyCollection(list(corners), array=values, cmap=_COLOURS_OF_BOUNDS, edgecolors="none", antialiaseds=False)
    shape.set(clim=(0.0, _top(bounds)), rasterized=True)
    axes.add_collection(shape)
    _plane(axes, bounds.space)
    return shape


def _bound_slice(axes: Axes, bounds: BoundsLike, word: str) -> ScalarMappable:
    """A bound over the first two parameters, the others in the middle of their ranges."""
    ranges = list(bounds.space.ranges.values())
    unit = np.linspace(-1.0, 1.0, _SLICE + 1)
    middles = (unit[1:] + unit[:-1]) / 2
    theta = np.tile([float(range_.from_unit(0.0)) for range_ in ranges], (_SLICE * _SLICE, 1))
    table = np.meshgrid(ranges[0].from_unit(middles), ranges[1].from_unit(middles))
    theta[:, :2] = np.reshape(table, (2, -1)).T
    values = bounds.at(bounds.space.points(theta))[0 if word == "lower" else 1].reshape(_SLICE, _SLICE)
    edges = ranges[0].from_unit(unit), ranges[1].from_unit(unit)
    shape = axes.pcolormesh(*edges, values, cmap=_COLOURS_OF_BOUNDS, vmin=0.0, vmax=_top(bounds), rasterized=True)
    _plane(axes, bounds.space)
    return shape


def _top(bounds: BoundsLike) -> float:
    """Where the scale of colours ends: at 1, unless all bounds are small."""
    top = float(bounds.upper.max(initial=0.0))
    return 1.0 if top > 0.5 else top or 1.0


def _plane(axes: Axes, space: Space) -> None:
    """Axes for the first two parameters of a space, as long as their ranges."""
    dress(axes)
    (x, across), (y, up), *_ = space.ranges.items()
    label_axis(axes, "x", x, across)
    label_axis(axes, "y", y, up)
    axes.set_xlim(across.low, across.high)
    axes.set_ylim(up.low, up.high)
    short_ticks(axes)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
