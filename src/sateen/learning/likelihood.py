"""How likely counts are for a latent value g, where f = Φ(g) or the logistic function of g.

A row with k satisfied, u undecided and M runs in all says only that the true count lies in [k, k + u]:

    L(g) = Σ_{j = k}^{k + u} C(M, j) f^j (1 - f)^(M - j),

which for u = 0 is the binomial likelihood. ln L is concave in g for both links, since L is the probability that f lies
between two order statistics of M latent values with a log-concave density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, expit, gammaln, log_expit, log_ndtr, ndtr, ndtri

from sateen.core.counts import read_only
from sateen.core.types import Array, FloatArray
from sateen.learning.inputs import Sample
from sateen.learning.settings import Link

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Triple: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
_HALF_LOG_TWO_PI: Final = 0.9189385332046727
# For the mean of ln L under a narrow normal, which is smooth on the scale of 1 however many the runs; under a wide one;
# and for a censored row, where ln L bends at both ends of [k, k + u].
NODES: Final = (16, 32, 64)
WIDE: Final = 1.0  # variance
_TILTED_NODES: Final = (24, 48, 128, 256)  # the last for censored rows too
_TILTED_BOUNDS: Final = (0.1, 1.0, 16.0)  # between them: variances of the cavity
_CHUNK: Final = 1 << 17  # values of g at once
_TINY: Final = 1e-300
_FAINT: Final = 1e-200  # a probability from which on logarithms are used
_HUGE: Final = 700.0  # whose exponential a float still holds
_FAR: Final = 20.0  # nats below its peak a density counts as over; twice that is too far out


def inverse_link(g: FloatArray, link: Link) -> FloatArray:
    """f for a latent g: Φ(g) for probit, 1 / (1 + e^-g) for logit."""
    return np.asarray(ndtr(g) if link == "probit" else expit(g))


@cache
def normal_nodes(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Hermite quadrature for the standard normal; the weights sum to 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return read_only(nodes), read_only(weights / weights.sum())


def _log_chances(g: FloatArray, link: Link) -> tuple[FloatArray, FloatArray]:
    """ln f and ln(1 - f)."""
    return (log_expit(g), log_expit(-g)) if link == "logit" else (log_ndtr(g), log_ndtr(-g))


def _log_ways(satisfied: FloatArray, violated: FloatArray) -> FloatArray:
    """ln C(M, k)."""
    return np.asarray(gammaln(satisfied + violated + 1.0) - gammaln(satisfied + 1.0) - gammaln(violated + 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Chances:
    """f at latent values: ln f and ln(1 - f), the sizes of their slopes, and ln of the slope of f with its own slope.

    So (ln f)'' = rise (steepness - rise) and (ln(1 - f))'' = -fall (steepness + fall).
    """

    log_f: FloatArray
    log_not: FloatArray
    rise: FloatArray
    fall: FloatArray
    log_slope: FloatArray
    steepness: FloatArray

    @classmethod
    def at(cls, g: FloatArray, link: Link) -> _Chances:
        log_f, log_not = _log_chances(g, link)
        if link == "logit":
            rise, fall = expit(-g), expit(g)
            return cls(log_f, log_not, rise, fall, log_f + log_not, rise - fall)
        log_slope = -0.5 * g * g - _HALF_LOG_TWO_PI
        return cls(log_f, log_not, np.exp(log_slope - log_f), np.exp(log_slope - log_not), log_slope, -g)

    def __getitem__(self, rows: slice | Array) -> _Chances:
        columns = (self.log_f, self.log_not, self.rise, self.fall, self.log_slope, self.steepness)
        return _Chances(*(column[rows] for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of counts, and the log-likelihood ln L of each as a function of its own latent value."""

    satisfied: FloatArray
    undecided: FloatArray
    trials: FloatArray
    link: Link

    @classmethod
    def of(cls, sample: Sample, link: Link) -> Counts:
        """The counts of a sample."""
        return cls(sample.satisfied, sample.undecided, sample.trials, link)

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, rows: slice | Array) -> Counts:
        return Counts(self.satisfied[rows], self.undecided[rows], self.trials[rows], self.link)

    def times(self, number: int) -> Counts:
        """The same counts this many times over."""
        return Counts(self.satisfied * number, self.undecided * number, self.trials * number, self.link)

    def value(self, g: FloatArray) -> FloatArray:
        """ln L alone, which takes half the time."""
        if self.undecided.any():
            return self.at(g)[0]
        shape = (-1,) + (1,) * (g.ndim - 1)
        satisfied, violated = self.satisfied.reshape(shape), (self.trials - self.satisfied).reshape(shape)
        log_f, log_not = _log_chances(g, self.link)
        log_f *= satisfied
        log_not *= violated
        log_f += log_not
        log_f += _log_ways(satisfied, violated)
        return log_f

    def guess(self) -> tuple[FloatArray, FloatArray]:
        """Where each ln L peaks, roughly, and how it bends there; undecided runs count half each way."""
        f = (self.satisfied + 0.5 * self.undecided + 0.5) / (self.trials + 1.0)
        decided = np.maximum(self.trials - self.undecided, 0.5)
        if self.link == "logit":
            return np.log(f / (1.0 - f)), decided * f * (1.0 - f)
        g = ndtri(f)
        return g, decided * np.exp(-g * g - 2.0 * _HALF_LOG_TWO_PI) / (f * (1.0 - f))

    def at(self, g: FloatArray) -> Triple:
        """ln L and its first two derivatives at latent values: one for each row, or a row of them for each."""
        shape = (-1,) + (1,) * (g.ndim - 1)
        trials, satisfied = self.trials.reshape(shape), self.satisfied.reshape(shape)
        violated = trials - satisfied
        chances = _Chances.at(g, self.link)
        log_f, log_not, rise, fall = chances.log_f, chances.log_not, chances.rise, chances.fall
        value = _log_ways(satisfied, violated) + satisfied * log_f + violated * log_not
        slope = satisfied * rise - violated * fall
        bend = satisfied * rise * (chances.steepness - rise) - violated * fall * (chances.steepness + fall)
        if (rows := np.flatnonzero(self.undecided)).size:
            value[rows], slope[rows], bend[rows] = self._censored(rows, chances[rows])
        return value, slope, bend

    def expected(self, mean: FloatArray, variance: FloatArray) -> Triple:
        """The means of ln L and of its first two derivatives, under a normal latent value for each row."""
        result: Triple = (np.empty(len(self)), np.empty(len(self)), np.empty(len(self)))
        censored, wide = self.undecided > 0, variance > WIDE
        groups = ~censored & ~wide, ~censored & wide, censored
        for count, group in zip(NODES, groups, strict=True):
            rows = np.flatnonzero(group)
            nodes, weights = normal_nodes(count)
            step = max(1, _CHUNK // count)
            for start in range(0, len(rows), step):
                block = rows[start : start + step]
                g = mean[block, None] + np.sqrt(variance[block, None]) * nodes
                for column, values in zip(result, self[block].at(g), strict=True):
                    column[block] = values @ weights
        return result

    def _censored(self, rows: npt.NDArray[np.intp], chances: _Chances) -> Triple:
        """ln L and its derivatives for rows with undecided runs.

        L is a difference of two tails of the binomial distribution, taken on the side where they are small; and the
        derivative of a tail by f is the density of an order statistic.
        """
        log_f, log_not, rise, fall = chances.log_f, chances.log_not, chances.rise, chances.fall
        shape = (-1,) + (1,) * (log_f.ndim - 1)
        low, trials = self.satisfied[rows].reshape(shape), self.trials[rows].reshape(shape)
        high = low + self.undecided[rows].reshape(shape)
        above = trials * np.exp(log_f) > 0.5 * (low + high)
        small = np.exp(np.where(above, log_not, log_f))
        nearer = _tail(np.where(above, trials - high, low), trials, small)
        farther = _tail(np.where(above, trials - low, high) + 1.0, trials, small)
        value = np.log(np.maximum(nearer - farther, _TINY))
        # The slopes of the two tails, relative to L, and how each bends.
        into = np.exp(np.minimum(_log_density(low, trials, log_f, log_not) + chances.log_slope - value, _HUGE))
        out = np.exp(np.minimum(_log_density(high + 1.0, trials, log_f, log_not) + chances.log_slope - value, _HUGE))
        slope = into - out
        into_bend = into * ((low - 1.0) * rise - (trials - low) * fall + chances.steepness)
        out_bend = out * (high * rise - (trials - high - 1.0) * fall + chances.steepness)
        bend = into_bend - out_bend - slope * slope
        if (lost := nearer <= _FAINT).any():
            low, high, trials = (np.broadcast_to(column, lost.shape)[lost] for column in (low, high, trials))
            value[lost], slope[lost], bend[lost] = _at_the_end(low, high, trials, chances[lost], above[lost])
        return value, slope, np.minimum(bend, 0.0)


def _at_the_end(low: FloatArray, high: FloatArray, trials: FloatArray, chances: _Chances, above: BoolArray) -> Triple:
    """ln L and its derivatives where f lies so far from [low, high] that only the end next to it counts.

    There the terms of L are a geometric series, so that the true count has a mean and a variance in closed form; and a
    mixture of binomials is the binomial at the mean count, plus what the variance adds to the curvature.
    """
    log_f, log_not, rise, fall = chances.log_f, chances.log_not, chances.rise, chances.fall
    end, odds = np.where(above, high, low), np.where(above, log_not - log_f, log_f - log_not)
    inward, outward = np.where(above, end, trials - end), np.where(above, trials - end, end)
    log_ratio = np.minimum(np.log(np.maximum(inward, _TINY) / (outward + 1.0)) + odds, -1e-9)
    terms = high - low + 1.0
    ratio, rest = np.exp(log_ratio), np.exp(np.maximum(terms * log_ratio, -_HUGE))
    gap, whole = -np.expm1(log_ratio), -np.expm1(terms * log_ratio)
    mean = ratio / gap - terms * rest / whole
    variance = np.maximum(ratio / gap**2 - terms**2 * rest / whole**2, 0.0)
    count = np.where(above, end - mean, end + mean)
    value = _log_ways(end, trials - end) + end * log_f + (trials - end) * log_not + np.log(whole / gap)
    slope = count * rise - (trials - count) * fall
    bend = count * rise * (chances.steepness - rise) - (trials - count) * fall * (chances.steepness + fall)
    return value, slope, bend + variance * (rise + fall) ** 2


def _tail(count: FloatArray, trials: FloatArray, f: FloatArray) -> FloatArray:
    """P(X >= count) for a binomial X."""
    inside = (count >= 1.0) & (count <= trials)
    tail = betainc(np.where(inside, count, 1.0), np.where(inside, trials - count, 0.0) + 1.0, f)
    return np.where(inside, tail, np.where(count < 1.0, 1.0, 0.0))


def _log_density(count: FloatArray, trials: FloatArray, log_f: FloatArray, log_not: FloatArray) -> FloatArray:
    """The log of the derivative of P(X >= count) by f."""
    inside = (count >= 1.0) & (count <= trials)
    least, others = np.where(inside, count, 1.0), np.where(inside, trials - count, 0.0)
    ways = gammaln(trials + 1.0) - gammaln(least) - gammaln(others + 1.0)
    return np.where(inside, ways + (least - 1.0) * log_f + others * log_not, -np.inf)


def tilted_moments(counts: Counts, mean: FloatArray, variance: FloatArray, start: FloatArray) -> Triple:
    """ln ∫ N(g; mean, variance) L(g) dg for each row, and the mean and the variance of g under that product.

    The product is log-concave. Its peak is found by Newton's method from `start`, then its support on either side; the
    trapezoidal rule between, on a function that dies out at both ends, converges faster than any power.
    """
    results: Triple = (np.empty(len(counts)), np.empty(len(counts)), np.empty(len(counts)))
    kinds = np.searchsorted(_TILTED_BOUNDS, np.where(counts.undecided > 0, np.inf, variance), side="right")
    for kind, nodes in enumerate(_TILTED_NODES):
        rows, step = np.flatnonzero(kinds == kind), _CHUNK // nodes
        for begin in range(0, len(rows), step):
            block = rows[begin : begin + step]
            moments = _tilted(counts[block], mean[block], 1.0 / variance[block], start[block], nodes)
            for column, values in zip(results, moments, strict=True):
                column[block] = values
    return results


def _tilted(counts: Counts, mean: FloatArray, precision: FloatArray, start: FloatArray, nodes: int) -> Triple:
    peak, top, scale = _peak(counts, mean, precision, start)
    left = _reach(counts, mean, precision, peak, top, -scale)
    right = _reach(counts, mean, precision, peak, top, scale)
    offset = left[:, None] + (right - left)[:, None] * np.linspace(0.0, 1.0, nodes)
    g = peak[:, None] + offset
    log_density = counts.value(g)
    g -= mean[:, None]
    log_density -= 0.5 * precision[:, None] * g * g
    weights = np.exp(log_density - top[:, None])
    total = weights.sum(axis=1)
    centre = np.einsum("ij,ij->i", weights, offset) / total
    offset -= centre[:, None]
    variance = np.einsum("ij,ij,ij->i", weights, offset, offset) / total
    spacing = (right - left) / (nodes - 1)
    log_normal = 0.5 * np.log(precision) - _HALF_LOG_TWO_PI
    return top + log_normal + np.log(total * spacing), peak + centre, variance


def _peak(counts: Counts, mean: FloatArray, precision: FloatArray, start: FloatArray) -> Triple:
    """Where ln L - precision (g - mean)²/2 peaks, how high, and the deviation that its curvature there tells."""

    def at(g: FloatArray) -> Triple:
        value, slope, bend = counts.at(g)
        return value - 0.5 * precision * (g - mean) ** 2, slope, bend

    g = start.copy()
    height, slope, bend = at(g)
    for _ in range(30):
        curvature = precision - np.minimum(bend, 0.0)
        move = (slope - precision * (g - mean)) / curvature
        if np.all(np.abs(move) * np.sqrt(curvature) < 1e-2):  # it centres a grid: a hundredth of a deviation will do
            break
        for _ in range(41):
            tried = g + move
            new, slope, bend = at(tried)
            worse = new < height - 1e-9 * (1.0 + np.abs(height))
            if not worse.any():
                break
            move = np.where(worse, 0.5 * move, move)
        g, height = tried, new
    return g, height, 1.0 / np.sqrt(precision - np.minimum(bend, 0.0))


def _reach(
    counts: Counts, mean: FloatArray, precision: FloatArray, peak: FloatArray, top: FloatArray, scale: FloatArray
) -> FloatArray:
    """How far from the peak, with the sign of `scale`, the density has died out but not for long."""
    reach = 8.0 * scale

    def drop(rows: npt.NDArray[np.intp], at: FloatArray) -> FloatArray:
        g = peak[rows] + at
        return np.asarray(top[rows] - counts[rows].value(g) + 0.5 * precision[rows] * (g - mean[rows]) ** 2)

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
