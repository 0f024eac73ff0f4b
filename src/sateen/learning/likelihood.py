"""How likely counts are for a latent value g, where f = Φ(g) or the logistic function of g.

A row with k satisfied, u undecided and M runs in all says only that the true count lies in [k, k + u]:

    L(g) = Σ_{j = k}^{k + u} C(M, j) f^j (1 - f)^(M - j),

which for u = 0 is the binomial likelihood. ln L is concave in g for both links, since L is the probability that f lies
between two order statistics of M latent values with a log-concave density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, log_expit, log_ndtr, ndtr

from sateen.core.counts import sealed
from sateen.learning.inputs import FloatArray, Sample

__all__ = ["Counts", "Link", "inverse_link", "normal_nodes", "tilted_moments"]

Link: TypeAlias = Literal["probit", "logit"]
Triple: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
_HALF_LOG_TWO_PI: Final = 0.9189385332046727
_NODES: Final = (
    16  # for the mean of ln L under a narrow normal, which is smooth on the scale of 1 however many the runs
)
_WIDE_NODES: Final = 32
_CENSORED_NODES: Final = 64  # for a censored row, where ln L bends at both ends of [k, k + u]
_WIDE: Final = 1.0  # variance
_TILTED_NODES: Final = 64
_CHUNK: Final = 1 << 17  # values of g at once
_MIXTURE_CHUNK: Final = 1 << 20  # terms of the sum over j at once
_FACTORIALS: Final = 1 << 20  # up to here ln n! is tabulated
_FAR: Final = 20.0  # nats below its peak a density counts as over; twice that is too far out


def inverse_link(g: FloatArray, link: Link) -> FloatArray:
    """f for a latent g: Φ(g) for probit, 1 / (1 + e^-g) for logit."""
    return np.asarray(ndtr(g) if link == "probit" else expit(g))


@cache
def normal_nodes(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Hermite quadrature for the standard normal; the weights sum to 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return sealed(nodes), sealed(weights / weights.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of counts, and the log-likelihood ln L of each as a function of its own latent value."""

    satisfied: FloatArray
    undecided: FloatArray
    trials: FloatArray
    link: Link

    def __post_init__(self) -> None:
        for name in ("satisfied", "undecided", "trials"):
            sealed(getattr(self, name))

    @classmethod
    def of(cls, sample: Sample, link: Link) -> Counts:
        """The counts of a sample."""
        return cls(sample.satisfied, sample.undecided, sample.trials, link)

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, rows: Any) -> Counts:
        return Counts(self.satisfied[rows], self.undecided[rows], self.trials[rows], self.link)

    def guess(self) -> tuple[FloatArray, FloatArray]:
        """Where each ln L peaks, roughly, and how it bends there; undecided runs count half each way."""
        f = (self.satisfied + 0.5 * self.undecided + 0.5) / (self.trials + 1.0)
        decided = np.maximum(self.trials - self.undecided, 0.5)
        if self.link == "logit":
            return np.log(f / (1.0 - f)), decided * f * (1.0 - f)
        from scipy.special import ndtri

        g = ndtri(f)
        return g, decided * np.exp(-g * g - 2.0 * _HALF_LOG_TWO_PI) / (f * (1.0 - f))

    def at(self, g: FloatArray) -> Triple:
        """ln L and its first two derivatives at latent values: one for each row, or a row of them for each."""
        shape = (-1,) + (1,) * (g.ndim - 1)
        trials, satisfied = self.trials.reshape(shape), self.satisfied.reshape(shape)
        log_f, log_not, rise, fall = _log_chances(g, self.link)
        spread = np.zeros(())
        constant = gammaln(trials + 1.0) - gammaln(satisfied + 1.0) - gammaln(trials - satisfied + 1.0)
        if (censored := np.flatnonzero(self.undecided)).size:
            # A mixture over j is the binomial at its mean count, plus what the spread of j adds to the curvature.
            satisfied, spread, excess = self._mixture(censored, log_f, log_not)
            value = constant + self.satisfied.reshape(shape) * log_f
            value = value + (trials - self.satisfied.reshape(shape)) * log_not + excess
        else:
            value = constant + satisfied * log_f + (trials - satisfied) * log_not
        violated = trials - satisfied
        slope = satisfied * rise - violated * fall
        if self.link == "logit":
            return value, slope, spread - trials * rise * fall
        bend = satisfied * rise * (g + rise) + violated * fall * (fall - g)
        return value, slope, spread * (rise + fall) ** 2 - bend

    def expected(self, mean: FloatArray, variance: FloatArray) -> Triple:
        """The means of ln L and of its first two derivatives, under a normal latent value for each row."""
        result: Triple = (np.empty(len(self)), np.empty(len(self)), np.empty(len(self)))
        censored, wide = self.undecided > 0, variance > _WIDE
        groups = {_NODES: ~censored & ~wide, _WIDE_NODES: ~censored & wide, _CENSORED_NODES: censored}
        for count, group in groups.items():
            rows = np.flatnonzero(group)
            nodes, weights = normal_nodes(count)
            step = max(1, _CHUNK // count)
            for start in range(0, len(rows), step):
                own = rows[start : start + step]
                g = mean[own, None] + np.sqrt(variance[own, None]) * nodes
                for column, values in zip(result, self[own].at(g), strict=True):
                    column[own] = values @ weights
        return result

    def _mixture(self, rows: npt.NDArray[np.intp], log_f: FloatArray, log_not: FloatArray) -> Triple:
        """For every row the mean and the variance of the true count given g, and ln L minus its first term."""
        mean = np.broadcast_to(self.satisfied.reshape((-1,) + (1,) * (log_f.ndim - 1)), log_f.shape).copy()
        variance, excess = np.zeros(log_f.shape), np.zeros(log_f.shape)
        largest = int(self.trials[rows].max())
        table = gammaln(np.arange(largest + 1.0) + 1.0) if largest < _FACTORIALS else None
        width = np.minimum(self.undecided[rows] + 1, 8.0 * np.sqrt(self.trials[rows]) + 40.0).max()
        step = max(1, int(_MIXTURE_CHUNK // (width * max(1, log_f[:1].size))))
        for start in range(0, len(rows), step):
            own = rows[start : start + step]
            shape = (-1,) + (1,) * (log_f.ndim - 1)
            columns = (self.satisfied[own], self.undecided[own], self.trials[own])
            low, free, trials = (column.reshape(shape) for column in columns)
            found = _true_counts(low, free, trials, log_f[own], log_not[own], table)
            mean[own], variance[own], excess[own] = found
        return mean, variance, excess


def _log_chances(g: FloatArray, link: Link) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """ln f, ln(1 - f), and the sizes of their slopes in g."""
    if link == "logit":
        return log_expit(g), log_expit(-g), expit(-g), expit(g)
    log_f, log_not = log_ndtr(g), log_ndtr(-g)
    log_density = -0.5 * g * g - _HALF_LOG_TWO_PI
    return log_f, log_not, np.exp(log_density - log_f), np.exp(log_density - log_not)


def _true_counts(
    low: FloatArray,
    free: FloatArray,
    trials: FloatArray,
    log_f: FloatArray,
    log_not: FloatArray,
    table: FloatArray | None,
) -> Triple:
    """Mean and variance of the true count j in [low, low + free], and ln of the sum over j minus ln of its first term.

    Where the interval is long, only the window of it counts in which the binomial distribution lives, 8 deviations
    or more on each side; what lies beyond is less than rounding.
    """
    width = int(min(free.max() + 1, ceil(8.0 * sqrt(trials.max()) + 40.0)))
    centre = np.floor(trials * np.exp(log_f)) - width // 2
    first = np.clip(centre, low, np.maximum(low, low + free - width + 1))
    j = first[..., None] + np.arange(width)
    inside = j <= (low + free)[..., None]
    j = np.minimum(j, trials[..., None])

    def log_factorial(count: FloatArray) -> FloatArray:
        return np.asarray(gammaln(count + 1.0)) if table is None else table[count.astype(np.intp)]

    odds = (log_f - log_not)[..., None]
    ways = log_factorial(low) + log_factorial(trials - low)  # of the first term, to which all are compared
    terms = (j - low[..., None]) * odds + ways[..., None] - log_factorial(j) - log_factorial(trials[..., None] - j)
    terms[~inside] = -np.inf
    peak = terms.max(axis=-1, keepdims=True)
    weights = np.exp(terms - peak)
    total = weights.sum(axis=-1)
    weights /= total[..., None]
    mean = (weights * j).sum(axis=-1)
    variance = (weights * (j - mean[..., None]) ** 2).sum(axis=-1)
    return mean, variance, peak[..., 0] + np.log(total)


def tilted_moments(counts: Counts, mean: FloatArray, variance: FloatArray, start: FloatArray) -> Triple:
    """ln ∫ N(g; mean, variance) L(g) dg for each row, and the mean and the variance of g under that product.

    The product is log-concave. Its peak is found by Newton's method from `start`, then its support on either side; the
    trapezoidal rule between, on a function that dies out at both ends, converges faster than any power.
    """
    results: Triple = (np.empty(len(counts)), np.empty(len(counts)), np.empty(len(counts)))
    step = max(1, _CHUNK // _TILTED_NODES)
    for begin in range(0, len(counts), step):
        own = slice(begin, begin + step)
        found = _tilted(counts[own], mean[own], 1.0 / variance[own], start[own])
        for column, values in zip(results, found, strict=True):
            column[own] = values
    return results


def _tilted(counts: Counts, mean: FloatArray, precision: FloatArray, start: FloatArray) -> Triple:
    peak, top, scale = _peak(counts, mean, precision, start)
    left = _reach(counts, mean, precision, peak, top, -scale)
    right = _reach(counts, mean, precision, peak, top, scale)
    g = peak[:, None] + left[:, None] + (right - left)[:, None] * np.linspace(0.0, 1.0, _TILTED_NODES)
    log_density = counts.at(g)[0] - 0.5 * precision[:, None] * (g - mean[:, None]) ** 2
    weights = np.exp(log_density - top[:, None])
    total = weights.sum(axis=1)
    offset = g - peak[:, None]
    centre = (weights * offset).sum(axis=1) / total
    variance = (weights * (offset - centre[:, None]) ** 2).sum(axis=1) / total
    spacing = (right - left) / (_TILTED_NODES - 1)
    log_normal = 0.5 * np.log(precision) - _HALF_LOG_TWO_PI
    return top + log_normal + np.log(total * spacing), peak + centre, variance


def _peak(counts: Counts, mean: FloatArray, precision: FloatArray, start: FloatArray) -> Triple:
    """Where ln L - precision (g - mean)²/2 peaks, how high, and the deviation that its curvature there tells."""
    g = start.copy()
    value, slope, bend = counts.at(g)
    height = value - 0.5 * precision * (g - mean) ** 2
    for _ in range(30):
        curvature = precision - np.minimum(bend, 0.0)
        move = (slope - precision * (g - mean)) / curvature
        if np.all(np.abs(move) * np.sqrt(curvature) < 1e-2):  # it centres a grid: a hundredth of a deviation will do
            break
        tried = g + move
        value, slope, bend = counts.at(tried)
        new = value - 0.5 * precision * (tried - mean) ** 2
        worse = new < height - 1e-9 * (1.0 + np.abs(height))
        for _ in range(40):
            if not worse.any():
                break
            move = np.where(worse, 0.5 * move, move)
            tried = g + move
            value, slope, bend = counts.at(tried)
            new = value - 0.5 * precision * (tried - mean) ** 2
            worse = new < height - 1e-9 * (1.0 + np.abs(height))
        g, height = tried, new
    return g, height, 1.0 / np.sqrt(precision - np.minimum(bend, 0.0))


def _reach(
    counts: Counts, mean: FloatArray, precision: FloatArray, peak: FloatArray, top: FloatArray, scale: FloatArray
) -> FloatArray:
    """How far from the peak, with the sign of `scale`, the density has died out but not for long."""
    reach = 8.0 * scale

    def drop(rows: npt.NDArray[np.intp], at: FloatArray) -> FloatArray:
        g = peak[rows] + at
        return np.asarray(top[rows] - counts[rows].at(g)[0] + 0.5 * precision[rows] * (g - mean[rows]) ** 2)

    rows = np.arange(len(peak))
    fallen = drop(rows, reach)
    near = rows[fallen < _FAR]
    while near.size:
        reach[near] *= 1.5
        near = near[drop(near, reach[near]) < _FAR]
    wide = rows[fallen > 2.5 * _FAR]
    while wide.size:
        wide = wide[drop(wide, 0.7 * reach[wide]) > _FAR]
        reach[wide] *= 0.7
    return reach
