"""Tests at chosen points, each by a bet against the claim being wrong there.

Is the probability f at a point at least p? Runs x = 1 (satisfied) or 0 drive the product

    E = Π (q/p)^x ((1-q)/(1-p))^(1-x),    with p < q < 1 fixed before the runs.

If f < p, then each factor has the mean f q/p + (1-f)(1-q)/(1-p) <= 1, so E is a supermartingale that begins at 1, and
by Ville's inequality it ever reaches 1/alpha with probability alpha at most, whenever one looks and whenever one stops.
A point is *shown* once E >= 1/alpha at a look, and *flagged* if that never comes. For the question whether f is at most
p, the same is done for 1 - f and 1 - p: `mirrored` counts. Undecided runs count against the claim on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.types import FloatArray, IntArray

_LEAN: Final = 0.75  # how far the bet goes from p to the guess: robust where the guess is too far
_LEAST: Final = 0.02  # of the distance from p to the nearer of 0 and 1, by which q differs from p at least
_FIRST: Final = 0.8  # of the runs that the guess says will do, in the first batch
_GROWTH: Final = 0.5  # of the runs so far, in every later batch
_FEWEST: Final = 4  # runs of a batch
_HOPELESS: Final = math.log(1e-4)  # log E at which a point is given up: it hardly ever comes back from there
MOST_LOOKS: Final = 64  # so many batches grow beyond all reason


def bets(threshold: float, guess: FloatArray) -> FloatArray:
    """q for each guess of f: three quarters of the way from p to the guess, but never at p itself.

    >>> bets(0.1, np.array([0.3, 0.1])).round(4)
    array([0.25 , 0.102])
    """
    least = threshold + _LEAST * min(threshold, 1.0 - threshold)
    return np.maximum(threshold + _LEAN * (np.minimum(guess, 1.0) - threshold), least)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One batch of runs: its seed, and at each point the runs, the satisfied and the undecided ones."""

    seed: int
    trials: IntArray
    satisfied: IntArray
    undecided: IntArray

    def __post_init__(self) -> None:
        for name in ("trials", "satisfied", "undecided"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.int64)))
        counts = self.trials, self.satisfied, self.undecided
        if len({each.shape for each in counts}) > 1 or min(int(each.min(initial=0)) for each in counts) < 0:
            raise InputError("the counts of a look are whole numbers from 0 up, as many of each kind as points")
        if (self.satisfied + self.undecided > self.trials).any():
            raise InputError("a look has more verdicts than runs")

    def successes(self, mirrored: bool) -> IntArray:
        """The runs that speak for the claim; undecided ones never do."""
        return self.trials - self.satisfied - self.undecided if mirrored else self.satisfied


Looker: TypeAlias = Callable[[int, IntArray], Look]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """How points are tested: all of it fixed before the first run.

    `threshold` is p, one for all points or one each, and `bet` is q at each point, both mirrored where the claim is
    f <= p. A point is shown at 1/`alpha`, and given up after `cap` runs or once E falls to 1/10,000. The trial ends
    once at most `allowed` points are left open, or before a batch that would exceed the `budget`.
    """

    threshold: float | FloatArray
    bet: FloatArray
    alpha: float
    cap: int
    mirrored: bool
    allowed: int = 0
    budget: int | None = None

    def __post_init__(self) -> None:
        bet = np.array(self.bet, dtype=np.float64)
        object.__setattr__(self, "bet", read_only(bet))
        p = np.asarray(self.threshold, np.float64)
        if not (((p > 0.0) & (p < 1.0)).all() and 0.0 < self.alpha < 1.0 and self.cap >= 1 and self.allowed >= 0):
            raise InputError(f"no test has the threshold {p}, the level {self.alpha} and the cap {self.cap}")
        if bet.ndim != 1 or not ((bet > p) & (bet < 1.0)).all():
            raise InputError("a bet lies between the threshold and 1")

    @property
    def goal(self) -> float:
        """log 1/alpha, which the evidence must reach."""
        return -math.log(self.alpha)

    def evidence(self, successes: IntArray, trials: IntArray) -> FloatArray:
        """log E at each point."""
        p, q = self.threshold, self.bet
        return np.asarray(successes * np.log(q / p) + (trials - successes) * np.log((1.0 - q) / (1.0 - p)))

    def hopeless(self, evidence: FloatArray) -> npt.NDArray[np.bool_]:
        """Where a point is given up before its cap."""
        return np.asarray(evidence <= _HOPELESS)

    def batch(self, spent: IntArray) -> IntArray:
        """The runs of the next look at each point, after `spent` runs there, if it is still open."""
        p, q = self.threshold, self.bet
        gain = q * np.log(q / p) + (1.0 - q) * np.log((1.0 - q) / (1.0 - p))  # of log E by a run, if f = q
        first = np.minimum(np.ceil(_FIRST * self.goal / gain), float(self.cap))
        wanted = np.where(spent == 0, first, np.ceil(_GROWTH * spent))
        return np.minimum(np.maximum(wanted, _FEWEST).astype(np.int64), self.cap - spent)

    def play(self, look: Looker) -> Outcome:
        """Look after look until the trial ends; `look(k, runs)` makes this many runs at each point."""
        count = len(self.bet)
        spent, successes = np.zeros(count, np.int64), np.zeros(count, np.int64)
        looks: list[Look] = []
        while len(looks) < MOST_LOOKS:
            evidence = self.evidence(successes, spent)
            unshown = evidence < self.goal
            runs = np.where(unshown & ~self.hopeless(evidence), self.batch(spent), 0)
            over = self.budget is not None and int(spent.sum() + runs.sum()) > self.budget
            if unshown.sum() <= self.allowed or over or not runs.any():
                break
            seen = look(len(looks), runs)
            looks.append(seen)
            spent += seen.trials
            successes += seen.successes(self.mirrored)
        return Outcome.of(self, tuple(looks))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a trial came to: its looks, and log E at each point at the end."""

    trial: Trial
    looks: tuple[Look, ...]
    evidence: FloatArray

    @classmethod
    def of(cls, trial: Trial, looks: tuple[Look, ...]) -> Outcome:
        """What these looks come to, whether or not they are those that the trial asks for."""
        spent, successes = np.zeros(len(trial.bet), np.int64), np.zeros(len(trial.bet), np.int64)
        for look in looks:
            spent += look.trials
            successes += look.successes(trial.mirrored)
        return cls(trial, looks, trial.evidence(successes, spent))

    @property
    def shown(self) -> npt.NDArray[np.bool_]:
        """Where E has reached 1/alpha."""
        return np.asarray(self.evidence >= self.trial.goal)

    @property
    def flags(self) -> int:
        """How many points are not shown."""
        return int(np.count_nonzero(~self.shown))

    @property
    def spent(self) -> IntArray:
        """The runs at each point."""
        return np.sum([look.trials for look in self.looks], axis=0, dtype=np.int64) + np.zeros_like(
            self.evidence, np.int64
        )

    @property
    def runs(self) -> int:
        """All runs."""
        return int(self.spent.sum())

    @property
    def undecided(self) -> int:
        """All undecided runs."""
        return int(sum(look.undecided.sum() for look in self.looks))


def again(trial: Trial, looks: tuple[Look, ...]) -> Outcome:
    """The trial played again with looks that were kept; an InputError where they are not the looks that it asks for."""

    def kept(number: int, runs: IntArray) -> Look:
        if number >= len(looks):
            raise InputError(f"the test continues after look {number}, and no more looks are kept")
        if not np.array_equal(looks[number].trials, runs):
            row = int(np.argmax(looks[number].trials != runs)) if len(runs) == len(looks[number].trials) else 0
            raise InputError(f"look {number + 1} has other runs than the test asks for, first at point {row}")
        return looks[number]

    outcome = trial.play(kept)
    if len(outcome.looks) < len(looks):
        raise InputError(f"the test ends after look {len(outcome.looks)}, and {len(looks)} are kept")
    return outcome
