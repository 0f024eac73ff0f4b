"""What the pictures of a report are drawn from: the satisfaction function on grids, as plain data.

A curve over one parameter, maps over two. Over more, slices through a point: everything that two parameters do
together while the others stay, so that a slider moves a second parameter and nothing has to be guessed between.

With it goes how often intervals are right, judged by runs that nobody learned from: nominal against actual coverage.
The truth is not known at the test points, only the frequency among their runs, which has noise of its own. So what is
judged is the whole forecast of a count: of k satisfied runs among M, if f is as believed and runs are binomial given f.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.core.observations import Observations
from sateen.core.path import Path
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction, Predictor
from sateen.core.seeds import stream
from sateen.core.space import Space
from sateen.core.text import percent
from sateen.core.types import FloatArray, IntArray

Json: TypeAlias = dict[str, Any]  # plain data, as a page holds it
Kind: TypeAlias = Literal["first", "total", "elasticity"]
Lane: TypeAlias = tuple[str, int, list[tuple[float, float]], list[tuple[float, float]]]
CURVE: Final = 201  # values of the only parameter
MAP: Final = 41  # values of each of two parameters
SLICE: Final = 21  # values of each parameter through a point; odd, so that one is the middle
MOST_SLICES: Final = 6  # parameters with a picture of their own; with each other they make 15 maps
_LEVEL: Final = 0.95  # of credible intervals where no guarantee says another
MOST_DOTS: Final = 2000  # observations that are drawn
_DIRECTION_POINTS: Final = 256
_ONE_WAY: Final = 0.9  # share of the slopes, by size, that must have one sign
_MOST_INSTANTS: Final = 1200  # of a path that are drawn
COLUMNS: Final = ("mean", "lower", "upper")
KINDS: Final[tuple[Kind, ...]] = ("first", "total", "elasticity")
_BOTH, _NO_WAY = "rises and falls", "—"
_NOTICEABLE: Final = 0.01  # total index, below which a parameter hardly matters, whichever way
_DECIMALS: Final = 4  # of probabilities in a picture: finer than a pixel
LEVELS: Final = tuple(n / 20 for n in range(1, 20))
_QUANTILES: Final = 32  # of f at each point, over which the forecast of the count is averaged
_ASKED: Final = (0.02, 0.6, 0.9, 0.99)  # levels of the intervals between whose ends the quantiles are interpolated
_LEAST: Final = 1e-12  # length of a range of ranks, and distance of an end from 0 and 1
_DRAWS: Final = 200  # of the whole function, for the band of a right belief
_MOST_SIMULATED: Final = 100  # points for that band


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
        return _slices(posteriors, guarantee, leading)
    kind = ("point", "curve", "maps")[len(space)]
    points = space.grid(CURVE if kind == "curve" else MAP) if space.names else space.points({})
    promised = None if guarantee is None else guarantee.predict(points)
    level = _LEVEL if promised is None else promised.level
    bands = [] if promised is None else [_band(leading, promised)]
    bands += [_band(learner, posterior.predict(points, level=level)) for learner, posterior in posteriors.items()]
    axes = [axis_data(space, name, CURVE if kind == "curve" else MAP) for name in space.names]
    return {"kind": kind, "axes": axes, "bands": bands, "seen": _dots(train)}


def parameters_that_matter(posterior: FullPosterior, found: st.Sensitivity) -> list[Json]:
    """The parameters, the most important first: indices and elasticity, each with its interval, and which way f goes.

    The way is that of the gradient, where nine tenths of it agree.
    """
    space = posterior.space
    slopes = posterior.gradient(space.sobol(_DIRECTION_POINTS, seed=0))
    total, size = slopes.sum(axis=0), np.abs(slopes).sum(axis=0)
    longest = max(found.upper["elasticity"].values()) or 1.0
    most: dict[Kind, float] = {"first": 1.0, "total": 1.0, "elasticity": longest}
    rows = []
    for name in found.ranked:
        column = space.names.index(name)
        lean = total[column] / size[column] if size[column] else 0.0
        way = "rises with it" if lean > 2 * _ONE_WAY - 1 else "falls with it" if lean < 1 - 2 * _ONE_WAY else _BOTH
        way = way if found.total[name] >= _NOTICEABLE else _NO_WAY
        bars: Json = {kind: _bar(found, kind, name, most[kind]) for kind in KINDS}
        rows.append({"name": name, "way": way, **bars})
    return rows


def _bar(found: st.Sensitivity, kind: Kind, name: str, most: float) -> Json:
    """A number with its interval: as text, and in percent of the length of a bar."""
    value, low, high = getattr(found, kind)[name], found.lower[kind][name], found.upper[kind][name]
    shares = [round(100 * min(each / most, 1.0), 1) for each in (value, low, high)]
    texts = {"text": f"{value:.3f}", "ends": f"{low:.3f} to {high:.3f}"}
    return {**texts, **dict(zip(("share", "low", "high"), shares, strict=True))}


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
        "times": six_digits([*times, path.end]),
        "states": {name: [*states[:, n].tolist(), float(states[-1, n])] for n, name in enumerate(path.species)},
        "whole": bool((states == np.round(states)).all()),
        "named": [name for name in path.species if name in about],
        "lanes": [
            {"label": label, "holds": _within(holds, path.end), "unknown": _within(unknown, path.end)}
            for label, _, holds, unknown in lanes
        ],
        "end": path.end,
    }


def _within(spans: Iterable[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    return [(max(start, 0.0), min(stop, end)) for start, stop in spans if start <= end]


def axis_data(space: Space, name: str, count: int) -> Json:
    """An axis: its name, its scale, and evenly spread values on that scale."""
    range_ = space.ranges[name]
    values = range_.from_unit(np.linspace(-1.0, 1.0, count))
    return {"name": name, "log": range_.scale == "log", "values": six_digits(values)}


def six_digits(values: Iterable[float]) -> list[float]:
    """Numbers with the digits that a picture needs."""
    return [float(f"{value:.6g}") for value in values]


def _band(learner: str, prediction: Prediction) -> Json:
    """A prediction as columns; over two parameters, the second varies fastest."""
    columns = {name: short(getattr(prediction, name)) for name in COLUMNS}
    guaranteed = prediction.claim.mode != "credible"
    return {"learner": learner, "interval": interval_label(prediction), "guaranteed": guaranteed, **columns}


def _dots(train: Observations) -> Json:
    """The observations: where, and between which frequencies; evenly chosen where they are too many to draw."""
    rows = np.flatnonzero(train.trials > 0)
    if len(rows) > MOST_DOTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_DOTS).astype(int)]
    low, high = train.frequency_bounds[rows].T
    theta = {name: six_digits(train.theta[rows, n]) for n, name in enumerate(train.space.names)}
    runs = train.trials[rows].tolist()
    return {"theta": theta, "low": short(low), "high": short(high), "runs": runs, "all": len(train)}


def _slices(posteriors: Mapping[str, FullPosterior], guarantee: Predictor | None, leading: str) -> Json:
    """Through the middle, the lowest and the highest point: every pair of the parameters that matter most, as a map.

    By each learner, the `leading` one first, which chooses the points and the parameters.
    """
    posterior = posteriors[leading]
    space = posterior.space
    names = list(posterior.importance())[:MOST_SLICES]
    unit = np.linspace(-1.0, 1.0, SLICE)
    everywhere = space.sobol(512, seed=0)
    means = posterior.predict(everywhere).mean
    places = {"the middle of the space": np.full(len(space), SLICE // 2)}
    for words, row in (("where it is lowest", int(np.argmin(means))), ("where it is highest", int(np.argmax(means)))):
        inputs = space.to_unit(everywhere.theta[row : row + 1])[0]
        places[words] = np.abs(inputs[:, None] - unit).argmin(axis=1)
    pairs = list(combinations(names, 2))
    learners = [leading, *(name for name in posteriors if name != leading)]
    through, labels = [], {}
    for words, place in places.items():
        theta = space.from_unit(unit[np.concatenate([plane_rows(space, pair, place) for pair in pairs])])
        guaranteed = None if guarantee is None else guarantee.predict(theta)
        level = _LEVEL if guaranteed is None else guaranteed.level
        believed = {name: posteriors[name].predict(theta, level=level) for name in learners}
        drawn = {"credible": believed[leading], **({} if guaranteed is None else {"guaranteed": guaranteed})}
        labels = {kind: interval_label(prediction) for kind, prediction in drawn.items()}
        values = space.from_unit(unit[place][None, :])[0]
        through.append(
            {
                "words": words,
                "at": {name: int(place[space.names.index(name)]) for name in names},
                "values": {name: f"{value:.4g}" for name, value in zip(space.names, values, strict=True)},
                "credible": {name: _tables(pairs, prediction) for name, prediction in believed.items()},
                "guaranteed": None if guaranteed is None else _tables(pairs, guaranteed),
            }
        )
    return {
        "kind": "slices",
        "learners": learners,
        "axes": [axis_data(space, name, SLICE) for name in names],
        "intervals": labels,
        "through": through,
        "left_out": [name for name in space.names if name not in names],
    }


def plane_rows(space: Space, pair: tuple[str, str], place: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The places on the grid where two parameters take all their values, and the others stay; the second is faster."""
    rows = np.tile(place, (SLICE * SLICE, 1))
    first, second = np.divmod(np.arange(SLICE * SLICE), SLICE)
    rows[:, space.names.index(pair[0])] = first
    rows[:, space.names.index(pair[1])] = second
    return rows


def _tables(pairs: list[tuple[str, str]], prediction: Prediction) -> list[Json]:
    size = SLICE * SLICE
    parts = [slice(n * size, (n + 1) * size) for n in range(len(pairs))]
    return [{name: short(getattr(prediction, name)[part]) for name in COLUMNS} for part in parts]


def coverage_data(
    posteriors: Mapping[str, FullPosterior],
    leading: str,
    guarantee: Predictor | None,
    met: float | None,
    test: Observations,
    *,
    seed: int,
) -> Json:
    """Nominal and actual coverage of each posterior, the band of the `leading` one, and how the guarantee fares.

    `met` is the share of test points where the guaranteed interval meets that of the runs.
    """
    observed = test[test.trials > 0]
    guaranteed = None
    if guarantee is not None and met is not None:
        prediction = guarantee.predict(observed.points)
        guaranteed = {"level": prediction.level, "inside": share_inside(prediction, observed), "met": met}
    noise = coverage_noise(posteriors[leading], observed, seed=seed)
    return {
        "points": len(observed),
        "design": test.points.design,
        "learner": leading,
        "levels": list(LEVELS),
        "noise": {"low": short(noise[:, 0]), "high": short(noise[:, 1])},
        "actual": {name: short(coverage(forecast_ranks(each, observed))) for name, each in posteriors.items()},
        "guarantee": guaranteed,
    }


def forecast_ranks(posterior: FullPosterior, observed: Observations) -> FloatArray:
    """For each point, between which ranks of its forecast the count lies: P(K < k) and P(K ≤ k), a row each.

    Under a right forecast a uniform draw between the two is uniform on [0, 1]. Undecided runs leave the count open, and
    the range is that much longer.
    """
    return _ranks(
        _quantiles(posterior, observed), observed.satisfied, observed.satisfied + observed.undecided, observed.trials
    )


def _ranks(f: FloatArray, first: IntArray, last: IntArray, trials: IntArray) -> FloatArray:
    """The ranks below `first` and up to `last` in binomial counts averaged over the quantiles `f` of each point."""
    ends = [_up_to(k[:, None], trials[:, None], f).mean(axis=1) for k in (first - 1, last)]
    return np.stack(ends, axis=1)


def _up_to(k: IntArray, trials: IntArray, f: FloatArray) -> FloatArray:
    """The probability of at most `k` satisfied runs, which is a tail of the beta distribution."""
    from scipy.special import betaincc

    inside = np.clip(k, 0, np.maximum(trials - 1, 0))
    tail = betaincc(inside + 1.0, np.maximum(trials - inside, 1.0), f)
    return np.where(k < 0, 0.0, np.where(k >= trials, 1.0, tail))


def _ranks_of_draws(f: FloatArray, counts: IntArray, trials: int) -> FloatArray:
    """The same for many counts at one point, a row each: the probabilities of all counts between are summed up."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(counts.min(), counts.max() + 1)
    ways = gammaln(trials + 1.0) - gammaln(k + 1.0) - gammaln(trials - k + 1.0)
    each = np.exp(ways[:, None] + xlogy(k[:, None], f) + xlog1py(trials - k[:, None], -f)).mean(axis=1)
    before = float(_up_to(k[:1] - 1, np.array([trials]), f).mean())
    up_to = np.minimum(before + np.cumsum(each), 1.0)
    place = counts - k[0]
    return np.stack([np.maximum(up_to[place] - each[place], 0.0), up_to[place]], axis=1)


def _quantiles(posterior: FullPosterior, observed: Observations) -> FloatArray:
    """Evenly spread quantiles of f at each point, a row each.

    They are interpolated on the probit scale, where those of a Gaussian process lie on a line.
    """
    from scipy.special import ndtr, ndtri

    predictions = [posterior.predict(observed.points, level=level) for level in _ASKED]
    tails = [(1 - level) / 2 for level in _ASKED]
    known = ndtri(np.array([*reversed(tails), *(1 - tail for tail in tails)]))
    ends = [each.lower for each in reversed(predictions)] + [each.upper for each in predictions]
    table = ndtri(np.clip(np.stack(ends, axis=1), _LEAST, 1 - _LEAST))
    wanted = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.asarray(ndtr([np.interp(wanted, known, row) for row in table]), dtype=np.float64)


def coverage(ranks: FloatArray, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """The share of points whose count lies in the central interval of each level of its forecast.

    A count whose range of ranks lies only partly inside counts for that part, so the share of a right forecast is the
    level itself on average, also for few runs, and no random number is needed.

    >>> coverage(np.array([[0.0, 1.0], [0.45, 0.55]]), (0.5,)).round(4).tolist()
    [0.75]
    """
    low, high = ranks.T
    length = np.maximum(high - low, _LEAST)
    shares = []
    for level in levels:
        start, stop = (1 - level) / 2, (1 + level) / 2
        inside = np.clip(np.minimum(high, stop) - np.maximum(low, start), 0.0, None) / length
        shares.append(float(np.mean(np.clip(inside, 0.0, 1.0))))
    return np.array(shares)


def coverage_noise(
    posterior: FullPosterior, observed: Observations, levels: tuple[float, ...] = LEVELS, *, seed: int
) -> FloatArray:
    """Between what the coverage lies 95 times in 100 if the posterior's belief is right, a row for each level.

    Functions are drawn from the posterior, jointly over all points, and counts from each. So the band knows that the
    errors at neighbouring points go together: a coverage far from the level may well be the luck of one training.
    """
    rows = evenly(len(observed), _MOST_SIMULATED)
    part = observed[rows]
    f = _quantiles(posterior, part)
    truths = posterior.sample(part.points, _DRAWS, seed=seed)
    counts = stream(seed, "coverage").binomial(part.trials, truths)
    ranks = np.stack([_ranks_of_draws(*row) for row in zip(f, counts.T, part.trials.tolist(), strict=True)], axis=1)
    shares = np.stack([coverage(each, levels) for each in ranks])
    ends: FloatArray = np.quantile(shares, [0.025, 0.975], axis=0).T
    return ends


def evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """All of this many rows, or `most` of them, evenly spread."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def share_inside(prediction: Prediction, observed: Observations) -> float:
    """The share of points whose frequency lies in the predicted interval, for whatever the undecided runs would be."""
    used = observed.trials > 0
    low, high = observed.frequency_bounds[used].T
    inside = (prediction.lower[used] <= low) & (high <= prediction.upper[used])
    return float(np.mean(inside)) if used.any() else float("nan")
