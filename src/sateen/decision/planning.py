"""What a test at fresh points will cost, forecast before it spends a run: margin, points, level and cap of the test.

The posterior says what it expects. Functions f are drawn from it at a pool of points in the region, and the bets are
played on each. From the share of points that are still open after each look, and the runs spent by then, every plan's
cost and its chance to pass follow by the binomial distribution. The plan with the least expected runs is taken, among
those that pass with a chance of 90 % and keep 90 % of the region's volume, so that it does not buy cheapness with
volume. If the posterior is wrong then the forecast is, too; the claim does not depend on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
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

_MARGINS: Final = (2.5, 3.0, 3.5, 4.0)  # in standard deviations of g, beside that of the regions' own level
_KEPT: Final = 0.9  # of the region's volume, at least
_LEVELS: Final = (0.3, 0.4, 0.5)  # alpha: half-sure tests at twice the points are cheaper
_CAPS: Final = (1_000, 3_000, 10_000, 30_000, 100_000)
_MOST_FLAGS: Final = 30  # that a plan leaves room for
_CHANCE: Final = 0.9  # to pass, at least
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
    is the chance to pass, if the posterior is right; `seconds` is None where nobody knows how long a run takes.
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
    """With how many points at least the bound is at most `wrong` if so many are flagged.

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
    plans = [
        (plan, needed)
        for margin, pool in _pools(regions, seed, tolerance, box)
        for plan, needed in _plans(pool, margin, wrong, error, seed)
    ]
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
            remedy=f"the least that would do is about {least:,}; or allow a larger {{wrong}} or {{tolerance}}",
        )
    plan, _ = min(within, key=lambda each: each[0].runs)
    seconds = None if math.isnan(per_run) else plan.runs * per_run
    return CertificatePlan(
        plan.margin,
        plan.volume,
        plan.points,
        plan.alpha,
        plan.cap,
        plan.flags,
        error,
        plan.runs,
        plan.chance,
        seconds,
        budget,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Points of a frozen region, the bets there, and f drawn from the posterior, mirrored where the claim is."""

    frozen: Frozen
    points: Points
    truth: FloatArray
    volume: float


def _pools(regions: Regions, seed: int, tolerance: float, box: object) -> Iterator[tuple[float | None, _Pool]]:
    """The region at each margin that may be chosen, the widest first."""
    space = regions.space
    if box is not None or isinstance(regions.predictor, Guarantee):
        frozen = Frozen(regions, None, tolerance, box)  # type: ignore[arg-type]  # checked there
        chosen = frozen.draw(_POOL, stream_seed(seed, "forecast points"))
        yield None, _Pool(frozen, chosen, _truth(frozen, chosen, seed), frozen.volume(seed))
        return
    own = own_margin(regions.level)
    count = _CANDIDATES
    frozen = Frozen(regions, own, tolerance)
    if not space.names:
        chosen = frozen.draw(1, seed)
        yield own, _Pool(frozen, chosen, _truth(frozen, chosen, seed), 1.0)
        return
    while True:
        candidates = space.sobol(count, seed=stream_seed(seed, "forecast candidates"))
        margins = _margins(regions, candidates)
        inside = np.flatnonzero(margins > own)[:_POOL]
        if len(inside) >= _POOL // 4 or count > _CANDIDATES:
            break
        count *= _MORE
    if not len(inside):
        raise frozen.empty()
    whole = float(np.mean(margins > own))
    chosen = candidates[inside]
    truth = _truth(frozen, chosen, seed)
    for z in (own, *(each for each in _MARGINS if each > own)):
        kept = margins[inside] > z
        volume = float(np.mean(margins > z))
        if kept.any() and volume >= _KEPT * whole:
            yield z, _Pool(Frozen(regions, z, tolerance), chosen[kept], truth[:, kept], volume)


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


def _plans(
    pool: _Pool, margin: float | None, wrong: float, error: float, seed: int
) -> Iterator[tuple[CertificatePlan, int]]:
    """Every plan for a region, with the budget that it needs to pass with the wanted chance."""
    from scipy.special import bdtr

    for alpha in _LEVELS:
        trial = pool.frozen.trial(pool.points, alpha, _CAPS[-1], 0, None)
        spent = _schedule(trial)
        shown = _played(trial, spent, pool.truth, seed)
        for cap in _CAPS:
            open_, cost = _shares(spent, shown, cap)
            for flags in range(_MOST_FLAGS + 1):
                points = least_points(flags, wrong, error, alpha)
                passed = bdtr(flags, points, open_)  # of each draw, by each look
                runs = points * cost
                ends = np.diff(passed, axis=1, prepend=0.0)
                failed = 1.0 - passed[:, -1]
                expected = float(np.mean((ends * runs).sum(axis=1) + failed * runs[:, -1]))
                chance = float(np.mean(passed[:, -1]))
                needed = _quantile(runs, ends, min(_CHANCE, chance))
                plan = CertificatePlan(
                    margin, pool.volume, points, alpha, cap, flags, error, math.ceil(expected), chance, None
                )
                yield plan, needed
                if chance > 0.999:
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


def _played(trial: Trial, spent: IntArray, truth: FloatArray, seed: int) -> IntArray:
    """For each draw of f and each point, the look at which it is shown; the number of looks where it never is."""
    rng = stream(seed, "forecast runs")
    shown = np.full(truth.shape, len(spent), np.int64)
    successes = np.zeros(truth.shape, np.int64)
    before = np.zeros(len(trial.bet), np.int64)
    for look, total in enumerate(spent):
        rows, columns = np.nonzero(shown == len(spent))
        batch = (total - before)[columns]
        successes[rows, columns] += rng.binomial(batch, np.clip(truth[rows, columns], 0.0, 1.0))
        reached = _reached(trial, successes, total, rows, columns)
        shown[rows[reached], columns[reached]] = look
        before = total
    return shown


def _reached(trial: Trial, successes: IntArray, total: IntArray, rows: IntArray, columns: IntArray) -> BoolArray:
    p, q = trial.threshold, trial.bet[columns]
    k, n = successes[rows, columns], total[columns]
    return np.asarray(k * np.log(q / p) + (n - k) * np.log((1.0 - q) / (1.0 - p)) >= trial.goal)


def _shares(spent: IntArray, shown: IntArray, cap: int) -> tuple[FloatArray, FloatArray]:
    """For each draw, the share of points still open after each look, and the mean runs at a point by then."""
    looks, columns = len(spent), np.arange(spent.shape[1])
    # A point whose look comes after the cap stays open.
    last = np.minimum(shown, looks - 1)
    late = (shown == looks) | (spent[last, columns] > cap)
    when = np.where(late, looks, shown)
    open_, cost = np.empty((len(shown), looks)), np.empty((len(shown), looks))
    for look in range(looks):
        open_[:, look] = (when > look).mean(axis=1)
        cost[:, look] = np.minimum(spent[np.minimum(when, look), columns], cap).mean(axis=1)
    return open_, cost


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
