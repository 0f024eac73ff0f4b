"""What all figures share: colours, sizes, axes without a global list of figures, bands, legends and captions.

Colours are those of Okabe and Ito, which people who see colours differently tell apart, and which differ in print.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Final, TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure as Figure  # re-exported, for rooms that may not import matplotlib
from matplotlib.figure import SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from sateen.core.space import Points, Range, Space
from sateen.core.types import FloatArray

# Okabe and Ito's palette, the darker ones first; its yellow, too pale for a line, gives way to grey.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
FAINT: Final = "#D9D9D9"
EDGE: Final = "#7F7F7F"  # of dots whose colour may be that of the paper
FONT_SIZE: Final = 9.0
SMALL_FONT_SIZE: Final = 7.0  # of captions
POINTS_DRAWN_AS_LINES: Final = 20_000  # a longer line becomes an image inside an SVG or a PDF, which stays small


class LegendLook(TypedDict):
    """What all legends share."""

    frameon: bool
    fontsize: float
    title_fontsize: float


LEGEND: Final = LegendLook(frameon=False, fontsize=FONT_SIZE, title_fontsize=FONT_SIZE)
_CAPTION_COLOUR: Final = "#404040"
_CHARACTER_WIDTH: Final = 0.52  # of an average letter, in font sizes


def new_figure(width: float, height: float) -> Figure:
    """A figure, in inches, that no global list keeps alive."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_axes(width: float, height: float) -> Axes:
    """The only Axes of a figure that no global list keeps alive."""
    return new_figure(width, height).add_subplot()


def dress(axes: Axes, *, x: str = "", y: str = "", grid: str = "") -> None:
    """No frame where there is no scale, one size of letters, the names of both axes, and faint lines of a `grid`."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=FONT_SIZE)
    if x:
        axes.set_xlabel(x, fontsize=FONT_SIZE)
    if y:
        axes.set_ylabel(y, fontsize=FONT_SIZE)
    if grid:
        axes.grid(axis="x" if grid == "x" else "y", color=FAINT, linewidth=0.6)


def title_panel(axes: Axes, text: str) -> None:
    """A title above the left edge of a panel; no part of it is mathematics."""
    axes.set_title(text, loc="left", fontsize=FONT_SIZE, parse_math=False)


def label_axis(axes: Axes, which: str, name: str, range_: Range) -> None:
    """Call the axis "x" or "y" by the parameter's name, and give it the parameter's scale."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)(range_.scale)
    axis.set_label_text(name, fontsize=FONT_SIZE, parse_math=False)


def label_plane(axes: Axes, space: Space) -> None:
    """Dress axes for the two parameters of a space."""
    dress(axes)
    for which, (name, range_) in zip("xy", space.ranges.items(), strict=True):
        label_axis(axes, which, name, range_)


def label_ticks(axis: Axis, labels: Mapping[float, str]) -> None:
    """Ticks at these values and nowhere else, each with its label."""
    values = np.array(list(labels))
    axis.set_major_locator(FixedLocator(list(labels)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: labels[float(values[np.abs(values - value).argmin()])]))
    axis.set_minor_locator(NullLocator())


def short_ticks(axes: Axes) -> None:
    """On a log scale of less than two decades, some ticks between the powers of ten have numbers too.

    On a scale so short that at most one of these lies on it, the ticks are those of a linear scale.
    """
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and low > 0 and high / low < 100:
            steps = LogLocator(subs=(1.0, 2.0, 5.0))
            few = sum(low <= tick <= high for tick in steps.tick_values(low, high)) < 2
            axis.set_major_locator(MaxNLocator(nbins=5) if few else steps)
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())


def colour_bar(
    figure: Figure | SubFigure, shape: ScalarMappable, axes: Axes | list[Axes], label: str, aspect: float = 20.0
) -> None:
    """The scale of the colours of `shape`, next to the axes."""
    bar = figure.colorbar(shape, ax=axes, aspect=aspect)
    bar.set_label(label, fontsize=FONT_SIZE)
    bar.ax.tick_params(labelsize=FONT_SIZE)


def table_of(points: Points, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both axes of points over two parameters and the table of their values, a row for each value of the second.

    Where no point is, the table has NaN.
    """
    across, column = np.unique(points.theta[:, 0], return_inverse=True)
    up, row = np.unique(points.theta[:, 1], return_inverse=True)
    table = np.full((len(up), len(across)), np.nan)
    table[row, column] = values
    return across, up, table


def legend_below(figure: Figure, *, columns: int, size: float = FONT_SIZE, title: str | None = None) -> None:
    """A legend below all panels, where it hides nothing; each name once."""
    pairs = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {str(label): handle for handle, label in pairs}
    artists, look = list(handles.values()), LegendLook(frameon=False, fontsize=size, title_fontsize=size)
    ncols = min(len(handles), columns)
    figure.legend(artists, list(handles), loc="outside lower center", ncols=ncols, title=title, **look)


def caption(axes: Axes, text: str) -> None:
    """A sentence in small letters below the axes, as wide as they are."""
    width = axes.get_position().width * axes.get_figure(root=True).get_figwidth() * 72  # type: ignore[union-attr]
    lines = wrap(text, max(20, int(width / (_CHARACTER_WIDTH * SMALL_FONT_SIZE))))
    axes.annotate(
        "\n".join(lines),
        (0, 0),
        xycoords=("axes fraction", axes.xaxis.label),
        xytext=(0, -5),
        textcoords="offset points",
        va="top",
        fontsize=SMALL_FONT_SIZE,
        color=_CAPTION_COLOUR,
        parse_math=False,
        annotation_clip=False,
    )


def footer(figure: Figure, text: str) -> None:
    """A sentence in small letters below all panels, as wide as the figure."""
    width = int(figure.get_figwidth() * 72 / (_CHARACTER_WIDTH * SMALL_FONT_SIZE))
    words = "\n".join(wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), width))
    figure.supxlabel(words, x=0.01, ha="left", fontsize=SMALL_FONT_SIZE, color=_CAPTION_COLOUR, parse_math=False)
