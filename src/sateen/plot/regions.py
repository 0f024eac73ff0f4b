"""Pictures of regions: where f is above a threshold, where below, and where what is known does not decide it.

Blue is above the threshold, orange below, pale grey undecided; the three differ in print and to every eye.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction
from sateen.core.space import Space
from sateen.core.text import number_text, percent
from sateen.core.types import FloatArray
from sateen.plot.style import (
    COLOURS,
    FONT_SIZE,
    LEGEND,
    caption,
    dress,
    footer,
    label_axis,
    new_axes,
    new_figure,
    short_ticks,
    title_panel,
)

_SIDES: Final = ("above", "undecided", "below")
_SIDE_COLOURS: Final = {"above": COLOURS[0], "undecided": "#DDDDDD", "below": COLOURS[4]}  # themes have dark ones
_BAND_COLOURS: Final = {**_SIDE_COLOURS, "undecided": "#ABABAB"}
_DARK: Final = "#303030"
_CURVE: Final = 400  # values of a parameter along a curve
_MAP: Final = 256  # values of each parameter on a map
_SLICE: Final = 96  # and on one of many
_MOST_SLICED: Final = 6  # parameters, of which every pair has a slice


class RegionsLike(Protocol):
    """What `regions` draws: sateen.decision.regions.Regions."""

    @property
    def space(self) -> Space: ...
    @property
    def threshold(self) -> float: ...
    @property
    def level(self) -> float: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def above(self) -> float: ...
    @property
    def below(self) -> float: ...
    @property
    def undecided(self) -> float: ...
    def bands(self, points: object) -> Prediction: ...


def regions(
    regions: RegionsLike,
    ax: Axes | None = None,
    *,
    observations: Observations | None = None,
    at: Mapping[str, float] | None = None,
) -> Axes | Figure:
    """Where f is above the threshold, below, and undecided.

    Over one parameter the band of f, coloured by its side; over two a map; over more a slice for each pair of
    parameters, the others as in `at` or in the middle of their ranges. `observations` are dots, larger for more runs.
    """
    space = regions.space
    if not space.names:
        raise InputError(f"no parameter varies in {space!r}, so there is nothing to draw")
    if len(space) > 2:
        if ax is not None:
            raise InputError(
                f"{len(space)} parameters take a slice for each pair of them, a figure of its own; leave ax out"
            )
        return _region_slices(regions, observations, at)
    axes = new_axes(6.4, 3.8 if len(space) == 1 else 4.6) if ax is None else ax
    (_region_band if len(space) == 1 else _region_map)(axes, regions)
    if observations is not None:
        _runs(axes, observations, space.names)
    title_panel(axes, _title(regions))
    handles = _handles(regions, dots=observations is not None, mean=len(space) == 2)
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=1.4, **LEGEND)
    caption(axes, f"{_capital(str(regions.claim))}.")
    return axes


def _region_band(axes: Axes, regions: RegionsLike) -> None:
    """The band over the only parameter, each stretch in the colour of its side."""
    ((name, range_),) = regions.space.ranges.items()
    points = regions.space.points(range_.from_unit(np.linspace(-1.0, 1.0, _CURVE))[:, None])
    predicted = regions.bands(points)
    x = points.theta[:, 0]
    dress(axes)
    for side in _SIDES:
        # A stretch reaches half way to the next side, so that no gap is left between two.
        here = _is(predicted, side, regions.threshold)
        near = here | np.append(here[1:], False) | np.append(False, here[:-1])
        ends = predicted.lower, predicted.upper
        axes.fill_between(x, *ends, where=near, color=_BAND_COLOURS[side], alpha=0.75, linewidth=0)
        for start, stop in _stretches(here):
            axes.axvspan(x[start], x[stop], ymax=0.035, color=_SIDE_COLOURS[side], linewidth=0)
    axes.plot(x, predicted.mean, color=_DARK, linewidth=1.2)
    axes.axhline(regions.threshold, color=_DARK, linewidth=1.0, linestyle=":")
    axes.margins(x=0)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.04), min(high, 1.03))
    dress(axes, y="probability", grid="y")
    label_axis(axes, "x", name, range_)
    short_ticks(axes)


def _region_map(axes: Axes, regions: RegionsLike) -> None:
    x, y = regions.space.names
    _sides_over(axes, regions, x, y, {}, _MAP)


def _sides_over(
    axes: Axes, regions: RegionsLike, x: str, y: str, others: Mapping[str, float], cells: int, *, line: float = 1.0
) -> None:
    """The sides over two parameters as coloured shapes, and the line where the mean is at the threshold."""
    ranges = regions.space.ranges
    unit = np.linspace(-1.0, 1.0, cells)
    across, up = ranges[x].from_unit(unit), ranges[y].from_unit(unit)
    table = np.reshape(np.meshgrid(across, up), (2, -1))
    points = regions.space.points({**others, x: table[0], y: table[1]})
    bands, p = regions.bands(points), regions.threshold
    # Shapes, not an image: their borders are drawn between the points, and a theme can change their colours.
    axes.set_facecolor(_SIDE_COLOURS["undecided"])
    for side, inside in (("above", bands.lower - p), ("below", p - bands.upper)):
        if inside.max() > 0:
            axes.contourf(across, up, inside.reshape(cells, cells), levels=[0.0, 2.0], colors=[_SIDE_COLOURS[side]])
    if bands.mean.min() < p < bands.mean.max():
        axes.contour(across, up, bands.mean.reshape(cells, cells), levels=[p], colors=[_DARK], linewidths=line)
    dress(axes)
    label_axis(axes, "x", x, ranges[x])
    label_axis(axes, "y", y, ranges[y])
    short_ticks(axes)


def _region_slices(regions: RegionsLike, observations: Observations | None, at: Mapping[str, float] | None) -> Figure:
    """A slice for each pair of parameters, in the rows and columns of a triangle."""
    space = regions.space
    middle = {name: float(range_.from_unit(0.0)) for name, range_ in space.ranges.items()}
    if at is not None:
        inside = space.points({**middle, **at})[0]
        middle = {name: inside[name] for name in space.names}
    shown = space.names[:_MOST_SLICED]
    count = len(shown) - 1
    figure = new_figure(1.0 + 1.9 * count, 1.5 + 1.75 * count)
    panels = figure.subplots(count, count, squeeze=False, sharex="col", sharey="row")
    for axes in panels.ravel():
        axes.set_visible(False)
    for x, y in combinations(range(len(shown)), 2):
        axes = panels[y - 1, x]
        axes.set_visible(True)
        others = {name: value for name, value in middle.items() if name not in (shown[x], shown[y])}
        _sides_over(axes, regions, shown[x], shown[y], others, _SLICE, line=0.8)
        if observations is not None:
            _runs(axes, observations, (shown[x], shown[y]), room=0.4)
        axes.plot(middle[shown[x]], middle[shown[y]], "+", color="black", markersize=7, markeredgewidth=1.0)
        if y < count:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        if x > 0:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    figure.suptitle(_title(regions), x=0.01, ha="left", fontsize=FONT_SIZE, parse_math=False)
    handles = _handles(regions, dots=observations is not None)
    figure.legend(handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.93), **LEGEND)
    values = ", ".join(f"{name} = {value:.3g}" for name, value in middle.items())
    left_out = f" Of {len(space)} parameters the first {len(shown)} are shown." if len(space) > len(shown) else ""
    dots = " Dots: all points with runs, seen along the other axes." if observations is not None else ""
    footer(figure, f"Slices through {values} (+).{left_out}{dots} {_capital(str(regions.claim))}.")
    return figure


def _title(regions: RegionsLike) -> str:
    p, level = number_text(regions.threshold), percent(regions.level)
    return f"Where the probability is above or below {p}, by bands of {level}"


def _handles(regions: RegionsLike, *, dots: bool, mean: bool = True) -> list[Artist]:
    """What the legend shows: each side with its share, the line of the threshold, the dots."""
    p = number_text(regions.threshold)
    names = {"above": f"above {p}", "undecided": "undecided", "below": f"below {p}"}
    handles: list[Artist] = [
        Patch(color=_SIDE_COLOURS[side], label=f"{names[side]}: {100 * getattr(regions, side):.3g} %")
        for side in _SIDES
    ]
    if mean:
        handles.append(Line2D([], [], color=_DARK, linewidth=1.0, label=f"mean at {p}"))
    if dots:
        handles.append(
            Line2D([], [], linestyle="", marker="o", color="white", markeredgecolor="black", markersize=4, label="runs")
        )
    return handles


def _runs(axes: Axes, observations: Observations, names: tuple[str, ...], room: float = 1.0) -> None:
    """Where runs were made: a dot for each point, whose area grows with the runs."""
    seen = observations[observations.trials > 0]
    x, *rest = (seen.theta[:, seen.space.names.index(name)] for name in names)
    largest = float(np.clip(4000 / max(len(seen), 1), 2.0, 24.0)) * room
    sizes: FloatArray = largest * np.maximum(seen.trials / seen.trials.max(initial=1), 0.15)
    y = rest[0] if rest else seen.frequency_bounds.mean(axis=1)
    axes.scatter(x, y, s=sizes, facecolors="white", edgecolors="black", linewidths=0.4, alpha=0.7, zorder=3)


def _is(bands: Prediction, side: str, threshold: float) -> npt.NDArray[np.bool_]:
    """Whether each point is on a side: above or below if its whole band is, and else undecided."""
    above, below = bands.lower > threshold, bands.upper < threshold
    return np.asarray({"above": above, "below": below, "undecided": ~(above | below)}[side])


def _stretches(here: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The first and the last place of each unbroken stretch, one further where there is a next."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], here, [False]]).astype(int)))
    for start, stop in change.reshape(-1, 2).tolist():
        yield start, min(stop, len(here) - 1)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
