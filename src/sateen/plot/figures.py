"""Pictures, drawn by matplotlib: the one place that knows it.

Every function draws on the Axes it is given, or on a new figure of its own, and returns the Axes. pyplot and its
global list of figures are never used. What was learned is drawn in learning.py, and offered here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import PurePath
from textwrap import shorten
from typing import BinaryIO, Final, Protocol, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from sateen.core.ensemble import Ensemble
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.path import Path, Verdict
from sateen.core.proportions import wilson
from sateen.core.text import values_text
from sateen.plot.style import (
    COLOURS,
    EDGE,
    FAINT,
    FONT_SIZE,
    LEGEND,
    POINTS_DRAWN_AS_LINES,
    colour_bar,
    dress,
    label_axis,
    label_plane,
    new_axes,
    new_figure,
    short_ticks,
    title_panel,
)

Span: TypeAlias = tuple[float, float]
Lane: TypeAlias = tuple[str, int, Iterable[Span], Iterable[Span]]

_STROKES: Final = ("-", "--", ":", "-.")  # a new one each time the colours have been through
_HOLDS: Final = COLOURS[0]
_UNKNOWN: Final = "#8C8C8C"

_MONOSPACE_WIDTH: Final = 0.64  # of a character, in font sizes: 0.60 in print, up to 0.64 on a grid of pixels
_LABEL_LENGTH: Final = 56  # characters of a formula next to its lane, the indentation not counted
_INDENTATION: Final = 2  # characters for each step into the formula
_LANE_INCHES: Final = 0.3  # of height for each lane

# What makes two runs write the same bytes: no date, and identifiers that depend on the drawing alone.
_UNDATED: Final[dict[str, dict[str, None]]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
_SALT: Final = {"svg.hashsalt": "sateen"}


def path(path: Path, ax: Axes | None = None, species: str | Sequence[str] | None = None) -> Axes:
    """The species of a path as steps over time, up to its end; those that are usually drawn, or the ones named.

    Without names, concentrations `[S]` are left out, and so are the counts of a model whose amounts are scaled: next to
    the amounts S, in the unit of the file, one of them would be flat.

    A species has the same colour whichever others are drawn, so paths of one model may share an Axes. The legend
    stands next to the data, in the order in which the lines end.
    """
    chosen = _chosen(path, species)
    columns = [path.column(name) for name in chosen]
    axes = new_axes(6.4, 3.4) if ax is None else ax
    seen = np.append(np.diff(path.times) > 0, True)  # of jumps at the same time, the last
    times = np.append(path.times[seen], path.end)
    for name, column in zip(chosen, columns, strict=True):
        values = np.append(column[seen], column[-1])
        rank = path.species.index(name)
        colour, stroke = COLOURS[rank % len(COLOURS)], _STROKES[rank // len(COLOURS) % len(_STROKES)]
        (line,) = axes.plot(times, values, drawstyle="steps-post", color=colour, linestyle=stroke, linewidth=1.6)
        line.set(label=name, rasterized=len(times) > POINTS_DRAWN_AS_LINES)
        line.set_marker("" if path.end > 0 else "o")  # a path that is known at one instant only is a point
    whole = all(np.array_equal(column, np.round(column)) for column in columns)
    dress(axes, x="time", y="count" if whole else "value", grid="y")
    axes.margins(x=0 if path.end > 0 else None)
    axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1))
    _legend_beside(axes)
    return axes


def ensemble(
    runs: Ensemble,
    ax: Axes | None = None,
    species: str | Sequence[str] | None = None,
    level: float = 0.9,
    shown: int = 3,
) -> Axes:
    """The mean of each species over time, a band that holds a share `level` of the runs, and some runs as thin lines.

    Where the state of a run is unknown, mean and band end. Colours are those of `path`, and so are the species that are
    drawn.
    """
    chosen = _chosen(runs, species)
    columns = [runs.column(name) for name in chosen]
    axes = new_axes(6.4, 3.4) if ax is None else ax
    below, above = runs.quantiles([(1 - level) / 2, (1 + level) / 2])
    for name, column in zip(chosen, columns, strict=True):
        rank = runs.species.index(name)
        colour, stroke = COLOURS[rank % len(COLOURS)], _STROKES[rank // len(COLOURS) % len(_STROKES)]
        axes.fill_between(runs.times, below[:, rank], above[:, rank], color=colour, alpha=0.18, linewidth=0)
        for line in axes.plot(runs.times, column[:shown].T, color=colour, linewidth=0.5, alpha=0.7):
            line.set_label("_child")  # none in the legend
        (line,) = axes.plot(runs.times, runs.mean[:, rank], color=colour, linestyle=stroke, linewidth=1.6)
        line.set_label(name)
        line.set_marker("" if len(runs.times) > 1 else "o")  # at one time only there is no line
    dress(axes, x="time", y="count" if all(column.dtype.kind in "iu" for column in columns) else "value", grid="y")
    axes.margins(x=0 if len(runs.times) > 1 else None)
    _legend_beside(axes)
    return axes


def _chosen(of: Path | Ensemble, species: str | Sequence[str] | None) -> tuple[str, ...]:
    """The species to draw."""
    if species is not None:
        return (species,) if isinstance(species, str) else tuple(species)
    scaled = any(name.startswith("scale") for name in of.values)
    counts = {f"{name}_count" for name in of.species if scaled}
    usual = tuple(name for name in of.species if name not in counts and not name.startswith("["))
    return usual or of.species


def explanation(rows: Iterable[Lane], end: float, ax: Axes | None = None, verdict: Verdict | None = None) -> Axes:
    """When each subformula holds: a lane for each row `(label, depth, true_intervals, unknown_intervals)`.

    A bar where it holds, hatched grey where that is unknown, a thin line where it does not hold; a diamond is a single
    instant. Intervals are `(start, stop)` pairs, of which the part in [0, end] is drawn. A `verdict` is marked at time
    0 of the first lane, from where the whole formula is read.
    """
    lanes = [(_elided(label), depth, _within(true, end), _within(unknown, end)) for label, depth, true, unknown in rows]
    labels = [" " * (_INDENTATION * depth) + label for label, depth, _, _ in lanes]
    axes = new_axes(4.8 + _width(labels) / 72, 0.9 + _LANE_INCHES * len(lanes)) if ax is None else ax
    for height, (_, _, true, unknown) in enumerate(lanes):
        axes.plot([0, end], [height, height], color=FAINT, linewidth=1.0, zorder=1)
        _bars(axes, unknown, height, face="#F2F2F2", edge=_UNKNOWN, hatch="/////")
        _bars(axes, true, height, face=_HOLDS, edge=_HOLDS)
        _instants(axes, unknown, height, face="white", edge=_UNKNOWN)
        _instants(axes, true, height, face=_HOLDS, edge="white")
    dress(axes, x="time", grid="x")
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, end) if end > 0 else axes.set_xlim(-0.5, 0.5)
    axes.set_ylim(max(len(lanes), 1) - 0.5, -0.5)  # the formula itself on top
    _label_lanes(axes, labels)
    mark = None if verdict is None else _verdict(axes, verdict)
    _legend_above(axes, [true for _, _, true, _ in lanes], [unknown for _, _, _, unknown in lanes], mark)
    return axes


def observations(obs: Observations, ax: Axes | None = None) -> Axes:
    """The frequencies at each point: over one parameter with 95 % intervals, over two as colours.

    An interval is Wilson's, from the least frequency that the undecided runs leave open to the greatest; that range
    itself is a grey band behind it. A point with undecided runs is hollow, or ringed; one without runs is left out.
    """
    seen = obs[obs.trials > 0]
    axes = new_axes(6.4, 3.4 if len(obs.space) == 1 else 4.8) if ax is None else ax
    low, high = seen.frequency_bounds.T
    middle, open_ended = (low + high) / 2, seen.undecided > 0
    x = seen.theta[:, 0]
    drawn: list[Artist] = []
    if len(obs.space) == 1:
        below, above = wilson(low, seen.trials)[0], wilson(high, seen.trials)[1]
        drawn += [axes.vlines(x[open_ended], low[open_ended], high[open_ended], color=FAINT, linewidth=5.0, zorder=1)]
        drawn += [axes.vlines(x, below, above, color=_HOLDS, linewidth=0.8, alpha=0.6, zorder=2)]
        for chosen, face in ((~open_ended, _HOLDS), (open_ended, "white")):
            drawn += axes.plot(x[chosen], middle[chosen], "o", color=_HOLDS, markerfacecolor=face, markersize=3.5)
        ((name, range_),) = obs.space.ranges.items()
        label_axis(axes, "x", name, range_)
        axes.set_ylim(-0.03, 1.03)
        dress(axes, y="frequency", grid="y")
    else:
        label_plane(axes, obs.space)
        edges = np.where(open_ended, COLOURS[1], EDGE).tolist()
        rims = np.where(open_ended, 1.5, 0.4).tolist()
        look = {"vmin": 0, "vmax": 1, "cmap": "cividis", "s": 18, "edgecolors": edges, "linewidths": rims}
        dots = axes.scatter(x, seen.theta[:, 1], c=middle, **look)
        colour_bar(axes.figure, dots, axes, "frequency")
        drawn.append(dots)
    for artist in drawn:
        artist.set_rasterized(len(seen) > POINTS_DRAWN_AS_LINES)
    short_ticks(axes)
    return axes


def save(drawn: Axes | Figure, file: str | PathLike[str], stream: BinaryIO | None = None) -> None:
    """Write a figure, or the figure of an Axes, as .svg, .pdf or .png by the suffix of `file`; to `stream`, if given.

    The same drawing gives the same bytes.
    """
    suffix = PurePath(file).suffix.lower()
    if suffix not in _UNDATED:
        raise InputError(f"cannot save a figure as {PurePath(file).name}; end the name in .svg, .pdf or .png")
    figure = drawn.figure
    if isinstance(figure, SubFigure):
        figure = figure.figure
    with mpl.rc_context(_SALT):  # type: ignore[arg-type]
        figure.savefig(stream or file, format=suffix[1:], dpi=200, bbox_inches="tight", metadata=_UNDATED[suffix])


def _labelled(axes: Axes) -> dict[str, Line2D]:
    """The first line of each name, the one that ends highest first."""
    lines: dict[str, Line2D] = {}
    for line in axes.get_lines():
        name = str(line.get_label())
        if not name.startswith("_child"):  # matplotlib's name for what has none
            lines.setdefault(name, line)
    return dict(sorted(lines.items(), key=lambda item: -float(np.asarray(item[1].get_ydata())[-1])))


def _legend_beside(axes: Axes) -> None:
    """A legend to the right of the data, where it hides none."""
    lines = _labelled(axes)
    numbers, columns = [str(place) for place in range(len(lines))], 1 + (len(lines) - 1) // 16
    artists, right = list(lines.values()), (1.01, 0.5)
    legend = axes.legend(
        artists, numbers, loc="center left", bbox_to_anchor=right, ncols=columns, handlelength=1.6, **LEGEND
    )
    # Names are put in afterwards: in `legend` one that begins with "_" is left out, and "$" is mathematics.
    for text, name in zip(legend.get_texts(), lines, strict=True):
        text.set(text=name, parse_math=False)


def _within(spans: Iterable[Span], end: float) -> list[Span]:
    """The parts of the intervals that lie in [0, end]."""
    clipped = [(max(float(start), 0.0), min(float(stop), end)) for start, stop in spans]
    return [(start, stop) for start, stop in clipped if start <= stop]


def _bars(axes: Axes, spans: list[Span], height: int, *, face: str, edge: str, hatch: str | None = None) -> None:
    # The edge makes an interval that is shorter than a pixel visible all the same.
    if lasting := [(start, stop - start) for start, stop in spans if start < stop]:
        where = (height - 0.27, 0.54)
        axes.broken_barh(lasting, where, linewidth=0.8, zorder=2, facecolor=face, edgecolor=edge, hatch=hatch)


def _instants(axes: Axes, spans: list[Span], height: int, *, face: str, edge: str) -> None:
    if times := [start for start, stop in spans if start == stop]:
        (marks,) = axes.plot(times, [height] * len(times), "D", markersize=6.5, clip_on=False, zorder=3)
        marks.set(markerfacecolor=face, markeredgecolor=edge)


def _label_lanes(axes: Axes, labels: list[str]) -> None:
    """Labels left of the lanes, all beginning on one line so that the indentation shows."""
    axes.set_yticks(range(len(labels)), labels, family="monospace", fontsize=FONT_SIZE, ha="left", parse_math=False)
    axes.tick_params(axis="y", length=0, pad=_width(labels) + 8)


def _width(labels: list[str]) -> float:
    """The width of the longest label, in points."""
    return max(map(len, labels), default=0) * _MONOSPACE_WIDTH * FONT_SIZE


def _verdict(axes: Axes, verdict: Verdict) -> Line2D:
    """A mark at time 0 of the first lane."""
    colour = {Verdict.TRUE: COLOURS[2], Verdict.FALSE: COLOURS[1], Verdict.UNKNOWN: _UNKNOWN}[verdict]
    (mark,) = axes.plot([0], [0], "o", color=colour, markersize=9.0, markeredgecolor="white", clip_on=False, zorder=4)
    mark.set(label=f"{verdict} at time 0", linestyle="")
    return mark


def _legend_above(axes: Axes, true: list[list[Span]], unknown: list[list[Span]], mark: Line2D | None) -> None:
    """What the marks mean, above the lanes; only the marks that are there."""
    instant = any(start == stop for spans in true + unknown for start, stop in spans)
    handles: list[Artist] = [Patch(color=_HOLDS, label="holds")]
    if any(unknown):
        handles.append(Patch(facecolor="#F2F2F2", edgecolor=_UNKNOWN, hatch="/////", label="unknown"))
    if instant:
        handles.append(Line2D([], [], color=_HOLDS, linestyle="", marker="D", markersize=6, label="a single instant"))
    handles += [] if mark is None else [mark]
    corner, columns = (1.0, 1.0), len(handles)
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=corner, ncols=columns, borderaxespad=0.2, **LEGEND)


def _elided(label: str) -> str:
    """A label that is not too long; of a long one the middle goes, because both ends tell formulas apart."""
    if len(label) <= _LABEL_LENGTH:
        return label
    kept = _LABEL_LENGTH - 1
    return f"{label[: kept - kept // 2]}…{label[-(kept // 2) :]}"


class Explained(Protocol):
    """What `sateen.explain` returns, as far as it is drawn."""

    @property
    def lanes(self) -> Sequence[Lane]: ...
    @property
    def end(self) -> float: ...
    @property
    def verdict(self) -> Verdict: ...


def path_with_explanation(path: Path, explained: Explained) -> Figure:
    """A path above, and below it, over the same time, when each part of a formula holds.

    The lanes bear their labels on top, so that both panels are wide.
    """
    lanes = explained.lanes
    labels = [" " * (_INDENTATION * depth) + _elided(label) for label, depth, _, _ in lanes]
    heights = (2.8, 0.45 * len(labels))
    figure = new_figure(7.2, 0.9 + sum(heights))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    path.plot(ax=upper)
    explanation([("", 0, holds, unknown) for _, _, holds, unknown in lanes], explained.end, lower, explained.verdict)
    for height, label in enumerate(labels):
        place = (0, height - 0.27)
        text = lower.annotate(label, place, (2, 1), textcoords="offset points", va="bottom", family="monospace")
        text.set(fontsize=FONT_SIZE, parse_math=False)
    lower.set_ylim(max(len(labels), 1) - 0.6, -0.8)  # room for the topmost label
    values = values_text(path.values)
    titles = shorten(values, 100, placeholder=" …"), f"verdict at time 0: {explained.verdict}"
    for axes, title in zip((upper, lower), titles, strict=True):
        title_panel(axes, title)
    upper.set_xlabel("")
    return figure
