"""The pictures of a report that only a report has, for papers: drawn with what all figures share.

What was learned and single runs are drawn by `sateen.plot.figures`.
"""

from __future__ import annotations

from typing import Any, Final

from sateen.core.observations import Observations
from sateen.core.prediction import Predictor
from sateen.core.text import percent
from sateen.plot.learning import prediction
from sateen.plot.style import (
    COLOURS,
    FAINT,
    FONT_SIZE,
    POINTS_DRAWN_AS_LINES,
    caption,
    dress,
    label_plane,
    new_axes,
)
from sateen.report.data import Json

_CURVE: Final = 201
_MAP: Final = 60
_GREY: Final = "#7F7F7F"


def guaranteed(guarantee: Predictor, train: Observations) -> Any:
    """The guaranteed intervals over one parameter among the training frequencies; over two, how wide they are."""
    return (_band if len(train.space) == 1 else _widths)(guarantee, train)


def _band(guarantee: Predictor, train: Observations) -> Any:
    axes = new_axes(6.4, 4.2)
    some = train.trials > 0
    middle = train.frequency_bounds[some].mean(axis=1)
    many = len(middle) > POINTS_DRAWN_AS_LINES
    axes.plot(train.theta[some, 0], middle, ".", color=_GREY, markersize=3.0, rasterized=many, zorder=1.5)
    return prediction(guarantee.predict(train.space.grid(_CURVE)), ax=axes)


def _widths(guarantee: Predictor, train: Observations) -> Any:
    axes = new_axes(6.0, 4.8)
    predicted = guarantee.predict(train.space.grid(_MAP))
    across, up = (predicted.points.theta[:, column].reshape(_MAP, _MAP) for column in (0, 1))
    table = predicted.width.reshape(_MAP, _MAP)
    shape = axes.pcolormesh(across, up, table, cmap="magma", vmin=0.0, shading="gouraud", rasterized=True)
    many = len(train) > POINTS_DRAWN_AS_LINES
    axes.scatter(train.theta[:, 0], train.theta[:, 1], s=2.0, color=COLOURS[5], linewidths=0, rasterized=many)
    label_plane(axes, train.space)
    bar = axes.figure.colorbar(shape, ax=axes)
    bar.set_label("width of the guaranteed interval", fontsize=FONT_SIZE)
    caption(axes, f"Dots: training points. Interval: {predicted.claim}.")
    return axes


def coverage(covered: Json) -> Any:
    """Nominal against actual coverage at the test points, and behind it the band in which a right model would lie."""
    axes = new_axes(4.4, 4.2)
    dress(axes)
    levels, noise = covered["levels"], covered["noise"]
    axes.fill_between(
        levels,
        noise["low"],
        noise["high"],
        color=FAINT,
        linewidth=0,
        label=f"95 % band of {covered['learner']},\nif its model is right",
    )
    axes.plot([0, 1], [0, 1], "--", color=_GREY, linewidth=1.0)
    for rank, (learner, actual) in enumerate(covered["actual"].items()):
        colour = COLOURS[rank % len(COLOURS)]
        axes.plot(levels, actual, color=colour, linewidth=1.4, marker="o", markersize=3.0, label=learner)
    if (guarantee := covered["guarantee"]) is not None:
        for key, mark, words in (
            ("inside", "^", "frequency lies inside"),
            ("met", "v", "overlaps interval of the runs"),
        ):
            label = f"guaranteed {percent(guarantee['level'])}:\n{words}"
            axes.plot(guarantee["level"], guarantee[key], mark, color=COLOURS[6], markersize=6.0, label=label)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_xlabel("nominal level", fontsize=FONT_SIZE)
    axes.set_ylabel("actual coverage", fontsize=FONT_SIZE)
    axes.legend(frameon=False, fontsize=FONT_SIZE - 1, loc="upper left")
    return axes
