"""When enough runs were made, and what their counts then say: intervals for a probability, and rules for stopping.

All of it is plain mathematics on counts and bits; what makes the runs is handed in.

Undecided runs are neither dropped nor guessed. Each of them, left to run on, would satisfy the formula or violate it,
so the hidden count lies between k and k + undecided. The limits grow with the count, so the lower limit of k and the
upper limit of k + undecided enclose the interval of the hidden count, and cover whenever that does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv, betaln

from sateen.core.errors import InputError
from sateen.core.proportions import Limits, clopper_pearson
from sateen.core.types import FloatArray

Decision: TypeAlias = Literal["accepted", "rejected", "undecided"]
Bits: TypeAlias = npt.NDArray[np.bool_]

_SHARES: Final = (0.96, 0.035, 0.005)  # of the chance to be wrong, for each attempt at a width
_PILOT_LEVEL: Final = 0.98  # of the interval that plans; how often a second attempt is needed depends on it, no more
_FEWEST, _MOST = 100, 10_000  # runs between two looks of a sequential test, which change its cost, never its answer


@dataclass(frozen=True, slots=True)
class Tally:
    """Runs, how many of them satisfied the formula, and how many stayed undecided, for each reason."""

    runs: int = 0
    satisfied: int = 0
    reasons: tuple[int, ...] = ()

    @property
    def undecided(self) -> int:
        """Runs that some cap ended before the formula was decided."""
        return sum(self.reasons)

    def __add__(self, other: Tally) -> Tally:
        reasons = zip_longest(self.reasons, other.reasons, fillvalue=0)
        return Tally(self.runs + other.runs, self.satisfied + other.satisfied, tuple(map(sum, reasons)))


def credible(
    satisfied: int, runs: int, level: float, undecided: int = 0, prior: tuple[float, float] = (1.0, 1.0)
) -> Limits:
    """The central part, of weight `level`, of Beta(a + satisfied, b + violated): the belief after the `prior` a, b."""
    (a, b), tail, most = prior, (1.0 - level) / 2.0, satisfied + undecided
    lower = float(betaincinv(satisfied + a, runs - satisfied + b, tail))
    return lower, float(betainccinv(most + a, runs - most + b, tail))


def anytime(satisfied: int, runs: int, level: float, undecided: int = 0) -> Limits:
    """An interval that may be read after any number of runs, also one that the runs themselves decided.

    It holds every p whose likelihood p^k (1-p)^(n-k) is at least 1 - level times its mean over all p, B(k+1, n-k+1).
    Under the true p the mean over the likelihood is a martingale that begins at 1, so by Ville's inequality it ever
    exceeds 1/(1 - level) with probability 1 - level at most: all intervals of one sequence of runs cover together.
    """

    def limit(count: int, end: float) -> float:
        least = math.log(1.0 - level) + float(betaln(count + 1, runs - count + 1))
        inside, outside = count / runs, end
        if inside == outside:
            return end
        while True:
            middle = (inside + outside) / 2
            if middle in (inside, outside):
                return outside
            likelihood = count * math.log(middle) + (runs - count) * math.log1p(-middle)
            inside, outside = (middle, outside) if likelihood >= least else (inside, middle)

    return (limit(satisfied, 0.0), limit(satisfied + undecided, 1.0)) if runs else (0.0, 1.0)


def until_width(draw: Callable[[int], Tally], width: float, level: float, max_runs: int) -> tuple[Tally, Limits, Tally]:
    """Runs until their interval is `width` wide at most: the runs that count, their interval, and all runs made.

    `draw(n)` makes the next n runs. An interval that is looked at again and again, until it suits, covers less often
    than it says. So a pilot plans: it finds the probability nearest 1/2 that it cannot exclude, and how many runs
    suffice for that; then as many *fresh* runs are made, and their Clopper-Pearson interval is the result. Should it be
    too wide after all, a second attempt is planned on all runs so far, and a third one makes as many as suffice for
    any outcome; again only its fresh runs count.

    Proof that it covers. Attempt j has the level 1 - s_j (1 - level), where the shares s_j sum to 1. Given all runs
    before it, its number of runs is fixed, and they are independent of the past: it misses the probability with
    chance s_j (1 - level) at most. So the chance that any attempt misses, whichever is reported, is 1 - level at most.

    Where undecided runs, or `max_runs`, put the width out of reach, the result comes as near as they allow.
    """
    pilot = max_runs // 10
    seen = draw(min(math.ceil(4 / width), pilot))
    # The pilot grows as long as it is shorter than what its uncertainty costs.
    while (more := min(seen.runs // 2 + 1, pilot - seen.runs)) > 0:
        planned = partial(_planned, seen, width, 1.0 - _SHARES[0] * (1.0 - level), max_runs - seen.runs)
        if seen.runs >= planned(_nearest_half(seen))[0] - planned(_nearest_half(seen, level=0.0))[0]:
            break
        seen += draw(more)
    attempts: list[tuple[Limits, Tally]] = []
    for attempt, share in enumerate(_SHARES, start=1):
        attempt_level = 1.0 - share * (1.0 - level)
        probability = _nearest_half(seen) if attempt < len(_SHARES) else 0.5
        runs, gives_up = _planned(seen, width, attempt_level, max_runs - seen.runs, probability)
        fresh = draw(runs)
        seen += fresh
        attempts.append((clopper_pearson(fresh.satisfied, fresh.runs, attempt_level, fresh.undecided), fresh))
        if _width(attempts[-1][0]) <= width or gives_up or seen.runs == max_runs:
            break
    limits, counted = min(attempts, key=lambda each: _width(each[0]))
    return counted, limits, seen


def _planned(seen: Tally, width: float, level: float, most: int, probability: float) -> tuple[int, bool]:
    """The fewest runs, up to `most`, that suffice for a width when they satisfy the formula with that frequency.

    And whether undecided runs, of which there are as many as were seen before, put the width out of reach; then chance
    alone is brought down to it.
    """
    room = width - (seen.undecided / seen.runs if seen.undecided else 0.0)  # what the undecided runs leave

    def suffice(runs: int, probability: float) -> bool:
        return _width(clopper_pearson(runs * probability, runs, level)) <= room

    gives_up = room < width and not suffice(most, _nearest_half(seen))
    room = width if gives_up else room
    return 1 + bisect_left(range(1, most), True, key=lambda runs: suffice(runs, probability)), gives_up


def _nearest_half(seen: Tally, level: float = _PILOT_LEVEL) -> float:
    """Of the probabilities that the runs do not exclude at that level, the one that needs the most runs."""
    lower, upper = clopper_pearson(seen.satisfied, seen.runs, level, seen.undecided)
    return min(max(0.5, lower), upper)


def _width(limits: Limits) -> float:
    return limits[1] - limits[0]


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """Wald's sequential test of P > threshold, run by run, until the evidence suffices.

    The evidence is the log of the likelihood ratio of q + indifference to q - indifference. Beyond ± log(1/error) it
    accepts or rejects. If P <= q - indifference the likelihood ratio is a supermartingale that begins at 1, so by
    Ville's inequality it reaches 1/error, and P > q is wrongly accepted, with probability `error` at most; likewise on
    the other side. (Wald's own bounds, log((1 - error)/error), are a trifle nearer, and hold approximately.) Where P is
    nearer to the threshold q than the indifference, either answer may come.
    """

    threshold: float
    indifference: float
    error: float

    def __post_init__(self) -> None:
        q, half = self.threshold, self.indifference
        if not (half > 0.0 and q - half > 0.0 and q + half < 1.0):
            raise InputError(
                f"a test asks about probabilities {q:g} ± {half:g}, which must lie between 0 and 1",
                argument="indifference",
                remedy="choose another threshold, or a smaller {indifference} above 0",
            )
        if not 0.0 < self.error < 0.5:
            raise InputError(f"{{error}} is a probability between 0 and 0.5, not {self.error:g}", argument="error")

    def evidence(self, satisfied: npt.ArrayLike, runs: npt.ArrayLike) -> FloatArray:
        """How much these counts speak for P > threshold, or, below 0, against it."""
        high, low = self.threshold + self.indifference, self.threshold - self.indifference
        for_it, against = math.log(high / low), math.log1p(-high) - math.log1p(-low)
        count = np.asarray(satisfied, np.float64)
        return np.asarray(count * for_it + (np.asarray(runs, np.float64) - count) * against)

    def first(self, bits: Bits, satisfied: int = 0, runs: int = 0) -> tuple[int, Decision | None]:
        """After how many of the next `bits` it decides, and how, or None; `satisfied` of `runs` came before."""
        counts = satisfied + np.cumsum(bits)
        evidence = self.evidence(counts, runs + np.arange(1, len(bits) + 1))
        return first_beyond(evidence, -math.log(self.error))


def first_beyond(evidence: FloatArray, bound: float) -> tuple[int, Decision | None]:
    """After how many runs the evidence is at least `bound`, or at most its negative; after all, and None, if never."""
    beyond = np.flatnonzero(np.abs(evidence) >= bound)
    if not len(beyond):
        return len(evidence), None
    return int(beyond[0]) + 1, "accepted" if evidence[beyond[0]] > 0.0 else "rejected"


class RunTest(Protocol):
    """A test that is made run by run; its evidence rises with every satisfaction and falls with every violation."""

    def first(self, bits: Bits, satisfied: int = 0, runs: int = 0) -> tuple[int, Decision | None]:
        """After how many of the next `bits` it decides, and how, or None; `satisfied` of `runs` came before."""


def until_answered(draw: Callable[[int], tuple[Bits, Bits]], test: RunTest, max_runs: int) -> tuple[Tally, Decision]:
    """Runs until the test is decided, and its decision; "undecided" after `max_runs`.

    `draw(n)` makes the next n runs and says of each whether it satisfied the formula, and, in a row for every reason,
    whether it stayed undecided. The test is made twice: undecided runs are read as violations, and as satisfactions.
    The hidden evidence lies in between; so where both readings decide alike, the test on the hidden bits has decided so
    before, and errs no more often. Where they decide differently, more runs do not help. The result depends on the
    runs alone, not on how many are drawn at a time.
    """
    counted = Tally()
    decisions: list[Decision | None] = [None, None]
    while None in decisions and counted.runs < max_runs:
        batch = min(max(counted.runs // 4, _FEWEST), _MOST, max_runs - counted.runs)
        satisfied, reasons = draw(batch)
        readings = (satisfied, satisfied | reasons.any(axis=0))
        before = (counted.satisfied, counted.satisfied + counted.undecided)
        used = 0
        for index, (bits, count) in enumerate(zip(readings, before, strict=True)):
            if decisions[index] is None:
                after, decisions[index] = test.first(bits, count, counted.runs)
                used = max(used, after)
        counted += Tally(used, int(satisfied[:used].sum()), tuple(reasons[:, :used].sum(axis=1).tolist()))
    low, high = decisions
    return counted, low if low is not None and low == high else "undecided"
