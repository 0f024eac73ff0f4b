"""What a test at fresh points will cost, forecast before it spends a run: margin, points, level and cap of the test.

The posterior says what it expects. Functions f are drawn from it at a pool of points in the region, and the bets are
played on each. From the share of points that are still open after each look, and the runs spent by then, every plan's
cost and its chance to pass follow by the binomial distribution. The plan with the least expected runs until it passes
is taken, among those that pass with a chance of 90 % and keep 90 % of the region's volume, so that it does not buy
cheapness with volume. If the posterior is wrong then the forecast is, too; the claim does not depend on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.seeds import stream, stream_seed
from sateen.core.space import Points
from sateen.core.text import duration_text, percent, plural
from sateen.core.types import FloatArray, IntArray
from sateen.decision.evidence import MOST_LOOKS, Trial
from sateen.decision.fresh import Frozen
from sateen.decision.regions import BoolArray, Regions
from sateen.guarantee.guarantee import Guarantee

_MARGINS: Final = (2.5, 3.0, 3.5, 4.0)  # in standard deviations of g, besides that of the regions' own level
_KEPT: Final = 0.9  # of the region's volume, at least
_LEVELS: Final = (0.3, 0.4, 0.5)  # alpha: half-sure tests at twice the points are cheaper
_CAPS: Final = (1_000, 3_000, 10_000, 30_000, 100_000)
_FLAGS: Final = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 30)  # that a plan may leave room for
_CHANCE: Final = 0.9  # to pass, at least
_SURE: Final = 0.999  # a chance to pass beyond which no more flags are allowed for
_HOPELESS: Final = 0.5  # a chance to pass below which no run is spent
_CANDIDATES: Final = 2**15
_MORE: Final = 4  # times as many candidates, where the region is small
_POOL: Final = 1024  # points at which f is drawn
_DRAWS: Final = 64


@dataclass(frozen=True, slots=True)
class CertificatePlan:
    """A test at fresh points, as planned: nothing is spent yet.

    `margin` z freezes the region, None where a guarantee or a box does; `volume` is its share of the space. `points`
    are drawn in it, each tested at the level `alpha` with at most `cap` runs, and the test passes with at most `flags`
    of them flagged. `error` is the share of 1 - confidence that the attempt may use. `runs` are expected and `chance`
    is the chance to pass, if the posterior is right; `seconds` is None if it is not known how long a run takes.
    """

    margin: float | None
    volume: float
    points: int
    alpha: float
    cap: int
    flags: int
    error: float
    runs: int
    chance: float
    seconds: float | None
    budget: int | None = None

    def __str__(self) -> str:
        margin = "" if self.margin is None else f", margin z = {self.margin:.4g}"
        time = "" if self.seconds is None else f", about {duration_text(self.seconds)}"
        test = f"{plural(self.points, 'fresh point')} in {percent(round(self.volume, 4))} of the space{margin}"
        each = f"each tested at the level {self.alpha:g} with at most {self.cap:,} runs, {self.flags} may fail"
        return f"{test}; {each}; about {self.runs:,} runs{time}; passes with a chance of {100 * self.chance:.0f} %"


def least_points(flags: int, wrong: float, error: float, alpha: float) -> int:
    """With how many points at least the bound is at most `wrong` if this many are flagged.

    >>> least_points(0, 0.01, 0.05, 0.5)
    598
    """
    from scipy.special import bdtr

    share = wrong * (1.0 - alpha)
    most = 2 * (flags + 1)
    while bdtr(flags, most, share) > error:
        most *= 2
    return bisect_left(range(most), True, lo=flags + 1, key=lambda n: bool(bdtr(flags, n, share) <= error))


def forecast(
    regions: Regions,
    *,
    wrong: float,
    error: float,
    seed: int,
    tolerance: float,
    box: object,
    budget: int | None,
) -> CertificatePlan:
    """The plan with the least expected runs; refused where none has a fair chance, or the budget is too small."""
    plans = list(_plans(_pool(regions, seed, tolerance, box), wrong, error, seed))
    per_run = regions.posterior.seconds_per_run
    best = max(plan.chance for plan, _ in plans)
    sure = [(plan, needed) for plan, needed in plans if plan.chance >= min(_CHANCE, best)]
    if best < _HOPELESS:
        raise InputError(
            f"the posterior itself believes that such a test passes with a chance of {100 * best:.0f} % at most: too "
            "much of the region is too near to the threshold, or on the wrong side of it",
            argument="wrong",
            remedy="spend more runs with st.refine, decide at a higher level, or allow a larger {wrong} or {tolerance}",
        )
    within = [(plan, needed) for plan, needed in sure if budget is None or needed <= budget]
    if not within:
        least = _rounded(min(needed for _, needed in sure))
        raise InputError(
            f"a {{budget}} of {plural(budget or 0, 'run')} is too small for this claim",
            argument="budget",
            remedy=f"the smallest that would suffice is about {least:,}; or allow a larger {{wrong}} or {{tolerance}}",
        )
    # Runs by chance: what it costs until it passes, if a failed test is repeated.
    plan, _ = min(within, key=lambda each: each[0].runs / each[0].chance)
    seconds = None if math.isnan(per_run) else plan.runs * per_run
    return replace(plan, seconds=seconds, budget=budget)


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Points of the widest region, f drawn from the posterior there, mirrored where the claim is, and what may be kept.

    Each of `choices` is a margin, which of the points it keeps, and the volume of its region.
    """

    frozen: Frozen
    points: Points
    truth: FloatArray
    choices: tuple[tuple[float | None, BoolArray, float], ...]


def _pool(regions: Regions, seed: int, tolerance: float, box: object) -> _Pool:
    """The points for the forecast, and the margins that may be chosen."""
    space = regions.space
    if box is not None or isinstance(regions.predictor, Guarantee):
        frozen = Frozen(regions, None, tolerance, box)  # type: ignore[arg-type]  # checked there
        chosen = frozen.draw(_POOL, stream_seed(seed, "forecast points"))
        everything = np.ones(len(chosen), np.bool_)
        return _Pool(frozen, chosen, _truth(frozen, chosen, seed), ((None, everything, frozen.volume(seed)),))
    own = own_margin(regions.level)
    frozen = Frozen(regions, own, tolerance)
    if not space.names:
        chosen = frozen.draw(1, seed)
        return _Pool(frozen, chosen, _truth(frozen, chosen, seed), ((own, np.ones(1, np.bool_), 1.0),))
    for count in (_CANDIDATES, _MORE * _CANDIDATES):
        candidates = space.sobol(count, seed=stream_seed(seed, "forecast candidates"))
        margins = _margins(regions, candidates)
        inside = np.flatnonzero(margins > own)[:_POOL]
        if len(inside) >= _POOL // 4:
            break
    if not len(inside):
        raise frozen.empty()
    chosen, least = candidates[inside], _KEPT * float(np.mean(margins > own))
    steps = (own, *(each for each in _MARGINS if each > own))
    volumes = [float(np.mean(margins > z)) for z in steps]
    choices = [(z, margins[inside] > z, volume) for z, volume in zip(steps, volumes, strict=True) if volume >= least]
    return _Pool(frozen, chosen, _truth(frozen, chosen, seed), tuple(each for each in choices if each[1].any()))


def own_margin(level: float) -> float:
    """z of a band of this level: how many deviations of g it reaches to each side."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * level))


def _margins(regions: Regions, points: Points) -> FloatArray:
    """By how many standard deviations g lies on the asked side of the threshold."""
    from scipy.special import ndtri

    mean, std = regions.posterior.latent_moments(points)
    off = (mean - float(ndtri(regions.threshold))) * (1.0 if regions.side == "above" else -1.0)
    return np.asarray(off / np.maximum(std, 1e-300))


def _truth(frozen: Frozen, points: Points, seed: int) -> FloatArray:
    draws = frozen.regions.posterior.sample(points, _DRAWS, seed=stream_seed(seed, "forecast draws"))
    return np.asarray(1.0 - draws if frozen.mirrored else draws)


def _plans(pool: _Pool, wrong: float, error: float, seed: int) -> Iterator[tuple[CertificatePlan, int]]:
    """Every plan for a region, with the budget that it needs to pass with the wanted chance."""

    def trial(alpha: float, cap: int) -> Trial:
        return pool.frozen.trial(pool.points, alpha, cap, 0, None)

    return all_plans(trial, pool.truth, pool.choices, wrong, error, seed)


def all_plans(
    trial_at: Callable[[float, int], Trial],
    truth: FloatArray,
    choices: tuple[tuple[float | None, BoolArray, float], ...],
    wrong: float,
    error: float,
    seed: int,
) -> Iterator[tuple[CertificatePlan, int]]:
    """Every plan, with the budget that it needs to pass with the wanted chance.

    `trial_at(alpha, cap)` is the test at the points whose f is drawn in the rows of `truth`, mirrored where it is.
    """
    from scipy.special import bdtr

    for alpha in _LEVELS:
        trial = trial_at(alpha, _CAPS[-1])
        spent = _schedule(trial)
        shown, ended = _played(trial, spent, truth, seed)
        sizes = {flags: least_points(flags, wrong, error, alpha) for flags in _FLAGS}
        for (margin, kept, volume), cap in product(choices, _CAPS):
            still_open, cost = _shares(spent[:, kept], shown[:, kept], ended[:, kept], cap)
            for flags, points in sizes.items():
                passed = bdtr(flags, points, still_open)  # of each draw, by each look
                runs = points * cost
                ends = np.diff(passed, axis=1, prepend=0.0)
                failed = 1.0 - passed[:, -1]
                expected = math.ceil(float(np.mean((ends * runs).sum(axis=1) + failed * runs[:, -1])))
                chance = float(np.mean(passed[:, -1]))
                needed = _quantile(runs, ends, min(_CHANCE, chance))
                size = margin, volume, points, alpha, cap, flags, error
                yield CertificatePlan(*size, expected, chance, None), needed
                if chance > _SURE:
                    break  # more room for flags only costs


def _schedule(trial: Trial) -> IntArray:
    """The runs at each point after each look, if it stays open so long."""
    spent = np.zeros(len(trial.bet), np.int64)
    rows = []
    for _ in range(MOST_LOOKS):
        spent = spent + trial.batch(spent)
        rows.append(spent)
        if (spent >= trial.cap).all():
            break
    return np.array(rows)


def _played(trial: Trial, spent: IntArray, truth: FloatArray, seed: int) -> tuple[IntArray, IntArray]:
    """For each draw of f and each point, the look at which it is shown, and that at which it ends, shown or given up.

    Either is the number of looks where it never comes.
    """
    rng = stream(seed, "forecast runs")
    never = len(spent)
    shown, ended = np.full(truth.shape, never, np.int64), np.full(truth.shape, never, np.int64)
    successes = np.zeros(truth.shape, np.int64)
    p, goal = trial.threshold, trial.goal
    gain, loss = np.log(trial.bet / p), np.log((1.0 - trial.bet) / (1.0 - p))
    before = np.zeros(len(trial.bet), np.int64)
    rows, columns = (each.ravel() for each in np.indices(truth.shape))
    for look, total in enumerate(spent):
        batch = (total - before)[columns]
        successes[rows, columns] += rng.binomial(batch, np.clip(truth[rows, columns], 0.0, 1.0))
        k = successes[rows, columns]
        evidence = k * gain[columns] + (total[columns] - k) * loss[columns]
        reached = evidence >= goal
        shown[rows[reached], columns[reached]] = look
        over = reached | trial.hopeless(evidence)
        ended[rows[over], columns[over]] = look
        rows, columns, before = rows[~over], columns[~over], total
    return shown, ended


def _shares(spent: IntArray, shown: IntArray, ended: IntArray, cap: int) -> tuple[FloatArray, FloatArray]:
    """For each draw, the share of points still open after each look, and the mean runs at a point by then."""
    looks, (draws, points) = len(spent), shown.shape
    cut = np.minimum(spent, cap)
    steps = np.diff(cut, axis=0, prepend=0).astype(np.float64)
    # A point whose look comes after the cap stays open.
    late = spent[np.minimum(shown, looks - 1), np.arange(points)] > cap
    when = np.where(late, looks, shown)
    rows, columns = (each.ravel() for each in np.indices(when.shape))
    still_open, cost = np.zeros((draws, looks)), np.zeros((draws, looks))
    for look in range(looks):
        cost[:, look] = np.bincount(rows, steps[look, columns], minlength=draws) / points
        left = ended[rows, columns] > look
        rows, columns = rows[left], columns[left]
        still_open[:, look] = np.count_nonzero(when > look, axis=1) / points
    return still_open, np.cumsum(cost, axis=1)


def _quantile(runs: FloatArray, weights: FloatArray, share: float) -> int:
    """With how many runs a share of all draws has passed."""
    order = np.argsort(runs, axis=None)
    passed = np.cumsum(weights.ravel()[order]) / len(runs)
    place = min(int(np.searchsorted(passed, share * (1.0 - 1e-9))), len(order) - 1)
    return math.ceil(float(runs.ravel()[order[place]]))


def _rounded(runs: int) -> int:
    """Rounded up to two digits."""
    unit = 10 ** max(len(str(runs)) - 2, 0)
    return int(-(-runs // unit) * unit)
