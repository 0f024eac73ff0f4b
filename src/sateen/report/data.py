"""What the pictures of a report are drawn from: the satisfaction function on grids, as plain data.

A curve over one parameter, maps over two. Over more, slices through a point: everything that two parameters do
together while the others stay, so that a slider moves a second parameter and nothing has to be guessed between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.observations import Observations
from sateen.core.path import Path
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction, Predictor
from sateen.core.space import Space
from sateen.core.text import percent

__all__ = ["Json", "function_data", "interval_label", "parameters_that_matter", "run_data", "short"]

Json: TypeAlias = dict[str, Any]  # plain data, as a page holds it
Lane: TypeAlias = tuple[str, int, list[tuple[float, float]], list[tuple[float, float]]]
_CURVE: Final = 201  # values of the only parameter
_MAP: Final = 41  # values of each of two parameters
_SLICE: Final = 21  # values of each parameter through a point; odd, so that one is the middle
_MOST_SLICES: Final = 6  # parameters with a picture of their own; with each other they make 15 maps
_MOST_DOTS: Final = 2000  # observations that are drawn
_DIRECTION_POINTS: Final = 256
_ONE_WAY: Final = 0.9  # share of the slopes, by size, that must have one sign
_MOST_INSTANTS: Final = 1200  # of a path that are drawn
_COLUMNS: Final = ("mean", "lower", "upper")
_DECIMALS: Final = 4  # of probabilities in a picture: finer than a pixel


def short(values: npt.ArrayLike) -> list[float]:
    """Probabilities as a picture needs them.

    >>> short([0.123456, 1.0])
    [0.1235, 1.0]
    """
    rounded: list[float] = np.round(np.asarray(values, dtype=np.float64), _DECIMALS).tolist()
    return rounded


def interval_label(prediction: Prediction) -> str:
    """What the intervals of a prediction are, in a few words."""
    claim, level = prediction.claim, percent(prediction.level)
    if claim.mode == "credible":
        return f"{level} credible"
    return f"{level} guaranteed" + (f", for frequencies of {claim.runs} runs" if claim.target == "frequency" else "")


def function_data(
    posteriors: Mapping[str, FullPosterior], guarantee: Predictor | None, guaranteed: str | None, train: Observations
) -> Json:
    """The satisfaction function, as each learner has it, with credible and guaranteed intervals."""
    space = train.space
    leading = guaranteed if guarantee is not None and guaranteed is not None else next(iter(posteriors))
    if len(space) > 2:
        return _slices(posteriors[leading], guarantee, leading)
    kind = ("point", "curve", "maps")[len(space)]
    points = space.grid(_CURVE if kind == "curve" else _MAP) if space.names else space.points({})
    bands = [] if guarantee is None else [_band(leading, guarantee.predict(points))]
    bands += [_band(learner, posterior.predict(points)) for learner, posterior in posteriors.items()]
    axes = [_axis(space, name, _CURVE if kind == "curve" else _MAP) for name in space.names]
    return {"kind": kind, "axes": axes, "bands": bands, "seen": _dots(train)}


def parameters_that_matter(posterior: FullPosterior) -> list[Json]:
    """The parameters, the most important first: how steeply the mean changes with each, and which way.

    The steepness is the posterior's `importance`; the way is that of the gradient, where nine tenths of it agree.
    """
    space = posterior.space
    slopes = posterior.gradient(space.sobol(_DIRECTION_POINTS, seed=0))
    total, size = slopes.sum(axis=0), np.abs(slopes).sum(axis=0)
    ranked = posterior.importance()
    most = max(ranked.values(), default=0.0) or 1.0
    rows = []
    for name, steepness in ranked.items():
        column = space.names.index(name)
        lean = total[column] / size[column] if size[column] else 0.0
        ways = ("rises with it", "falls with it", "rises and falls") if steepness else ("does not depend on it",) * 3
        way = ways[0] if lean > 2 * _ONE_WAY - 1 else ways[1] if lean < 1 - 2 * _ONE_WAY else ways[2]
        rows.append({"name": name, "steepness": steepness, "share": steepness / most, "way": way})
    return rows


def run_data(path: Path, lanes: Iterable[Lane], named: Iterable[str], words: str) -> Json:
    """A run as the page draws it, with `lanes` as `explain` gives them; a long one by its state at evenly spread times.

    Of a long one `words` say so too. `named` are the species that the formula is about.
    """
    keep = np.append(np.diff(path.times) > 0, True)  # of jumps at the same time, the last
    times, states = path.times[keep], path.states[keep]
    if len(times) > _MOST_INSTANTS:
        words += f" Drawn at {_MOST_INSTANTS:,} of {len(path):,} instants."
        times = np.linspace(0.0, path.end, _MOST_INSTANTS)
        states = path.states[np.searchsorted(path.times, times, side="right") - 1]
    about = set(named)
    return {
        "words": words,
        "times": _six_digits([*times, path.end]),
        "states": {name: [*states[:, n].tolist(), float(states[-1, n])] for n, name in enumerate(path.species)},
        "named": [name for name in path.species if name in about],
        "lanes": [
            {"label": label, "holds": _within(holds, path.end), "unknown": _within(unknown, path.end)}
            for label, _, holds, unknown in lanes
        ],
        "end": path.end,
    }


def _within(spans: Iterable[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    return [(max(start, 0.0), min(stop, end)) for start, stop in spans if start <= end]


def _axis(space: Space, name: str, count: int) -> Json:
    range_ = space.ranges[name]
    values = range_.from_unit(np.linspace(-1.0, 1.0, count))
    return {"name": name, "log": range_.scale == "log", "values": _six_digits(values)}


def _six_digits(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _band(learner: str, prediction: Prediction) -> Json:
    """A prediction as columns; over two parameters, the second varies fastest."""
    columns = {name: short(getattr(prediction, name)) for name in _COLUMNS}
    guaranteed = prediction.claim.mode != "credible"
    return {"learner": learner, "interval": interval_label(prediction), "guaranteed": guaranteed, **columns}


def _dots(train: Observations) -> Json:
    """The observations: where, and between which frequencies; evenly chosen where they are too many to draw."""
    rows = np.flatnonzero(train.trials > 0)
    if len(rows) > _MOST_DOTS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_DOTS).astype(int)]
    low, high = train.frequency_bounds[rows].T
    theta = {name: _six_digits(train.theta[rows, n]) for n, name in enumerate(train.space.names)}
    runs = train.trials[rows].tolist()
    return {"theta": theta, "low": short(low), "high": short(high), "runs": runs, "all": len(train)}


def _slices(posterior: FullPosterior, guarantee: Predictor | None, learner: str) -> Json:
    """Through the middle, the lowest and the highest point: every pair of the parameters that matter most, as a map."""
    space = posterior.space
    names = list(posterior.importance())[:_MOST_SLICES]
    unit = np.linspace(-1.0, 1.0, _SLICE)
    everywhere = space.sobol(512, seed=0)
    means = posterior.predict(everywhere).mean
    places = {"the middle of the space": np.full(len(space), _SLICE // 2)}
    for words, row in (("where it is lowest", int(np.argmin(means))), ("where it is highest", int(np.argmax(means)))):
        inputs = space.to_unit(everywhere.theta[row : row + 1])[0]
        places[words] = np.abs(inputs[:, None] - unit).argmin(axis=1)
    pairs = list(combinations(names, 2))
    through = []
    for words, place in places.items():
        theta = space.from_unit(unit[np.concatenate([_plane(space, pair, place) for pair in pairs])])
        credible = posterior.predict(theta)
        guaranteed = None if guarantee is None else guarantee.predict(theta)
        values = space.from_unit(unit[place][None, :])[0]
        through.append(
            {
                "words": words,
                "at": {name: int(place[space.names.index(name)]) for name in names},
                "values": {name: f"{value:.4g}" for name, value in zip(space.names, values, strict=True)},
                "credible": _tables(pairs, credible),
                "guaranteed": None if guaranteed is None else _tables(pairs, guaranteed),
            }
        )
    return {
        "kind": "slices",
        "learner": learner,
        "axes": [_axis(space, name, _SLICE) for name in names],
        "intervals": [interval_label(each) for each in (credible, guaranteed) if each is not None],
        "through": through,
        "left_out": [name for name in space.names if name not in names],
    }


def _plane(space: Space, pair: tuple[str, str], place: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The places on the grid where two parameters take all their values, and the others stay; the second is faster."""
    rows = np.tile(place, (_SLICE * _SLICE, 1))
    first, second = np.divmod(np.arange(_SLICE * _SLICE), _SLICE)
    rows[:, space.names.index(pair[0])] = first
    rows[:, space.names.index(pair[1])] = second
    return rows


def _tables(pairs: list[tuple[str, str]], prediction: Prediction) -> list[Json]:
    size = _SLICE * _SLICE
    parts = [slice(n * size, (n + 1) * size) for n in range(len(pairs))]
    return [{name: short(getattr(prediction, name)[part]) for name in _COLUMNS} for part in parts]
