"""What all figures share: colours, sizes, axes without a global list of figures, captions.

Colours are those of Okabe and Ito, which people who see colours differently tell apart, and which differ in print.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sateen.core.space import Range
from sateen.core.types import FloatArray

__all__ = [
    "COLOURS",
    "FAINT",
    "FONT_SIZE",
    "POINTS_DRAWN_AS_LINES",
    "SMALL_FONT_SIZE",
    "FloatArray",
    "caption",
    "dress",
    "label_axis",
    "new_axes",
    "new_figure",
]


# Okabe and Ito's palette, the darker ones first; its yellow, too pale for a line, gives way to grey.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
FAINT: Final = "#D9D9D9"
FONT_SIZE: Final = 9.0
SMALL_FONT_SIZE: Final = 7.0  # of captions
POINTS_DRAWN_AS_LINES: Final = 20_000  # a longer line becomes an image inside an SVG or a PDF, which stays small
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


def dress(axes: Axes) -> None:
    """No frame where there is no scale, nothing of the grid above the data, and one size of letters."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=FONT_SIZE)


def label_axis(axes: Axes, which: str, name: str, own: Range) -> None:
    """Call the axis "x" or "y" by the parameter's name, and give it the parameter's scale."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)(own.scale)
    axis.set_label_text(name, fontsize=FONT_SIZE, parse_math=False)


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
