"""Declared monotonicity: what is shown at a corner holds in the whole orthant behind it.

The user says in which direction f goes along every parameter that varies. Then f(c) >= p at one corner c means f >= p
at every θ that is better in all parameters: the box from c to the best corner of the space. The posterior proposes
corners whose boxes cover most of its region, none of them behind another. Each of the m corners is tested by a bet
(evidence.py) at the level δ/m; so with confidence 1 - δ no corner is shown wrongly, and the claim holds in every box of
a shown corner, if f is monotone as declared. For f <= p the best corner is where f is least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import InputError, nearest
from sateen.core.prediction import drawn_uniformly
from sateen.core.seeds import stream_seed
from sateen.core.space import Points
from sateen.core.text import plural
from sateen.core.types import FloatArray
from sateen.decision.evidence import Outcome, Trial
from sateen.decision.fresh import Frozen
from sateen.decision.regions import BoolArray

MARGIN: Final = 3.0  # of the proposed corners, in standard deviations of g
_POOL: Final = 4096  # points of the space that are to be covered
_CANDIDATES: Final = 1024
_MOST_CORNERS: Final = 64
_LEAST_GAIN: Final = 0.005  # of the region, that one more corner must cover
_CAP: Final = 100_000
_SAFETY: Final = 8.0  # times the runs that the guess says will do, before a corner is given up
_VOLUME_POINTS: Final = 2**15


def check_monotone(monotone: object, names: tuple[str, ...]) -> dict[str, str]:
    """The declared directions in order of the space; refused where a name is unknown or a direction is not a sign."""
    if not isinstance(monotone, Mapping) or not monotone:
        raise InputError("{monotone} maps names of parameters to '+' or '-'", argument="monotone")
    for name, sign in monotone.items():
        if name not in names:
            hint = nearest(str(name), names) or f"these vary: {', '.join(names)}"
            raise InputError(f"{{monotone}} names {name}, which does not vary", argument="monotone", remedy=hint)
        if sign not in ("+", "-"):
            problem = f"{{monotone}} says {sign!r} of {name}, and only '+' and '-' are directions"
            raise InputError(
                problem, argument="monotone", remedy="'+' where f does not fall, '-' where it does not rise"
            )
    return {name: str(monotone[name]) for name in names if name in monotone}


def assumption(monotone: Mapping[str, str]) -> str:
    """What the declaration says, in words.

    >>> assumption({"k1": "+", "k2": "-"})
    'f does not fall in k1 and does not rise in k2'
    """
    words = [f"does not {'fall' if sign == '+' else 'rise'} in {name}" for name, sign in monotone.items()]
    return "f " + (", ".join(words[:-1]) + " and " if words[1:] else "") + words[-1]


@dataclass(frozen=True, slots=True, eq=False)
class CornerTest:
    """Corners, tested: `seed` of the runs, the corners, the directions, and what the trial came to."""

    frozen: Frozen
    monotone: Mapping[str, str]
    seed: int
    points: Points
    outcome: Outcome
    error: float

    @property
    def certified(self) -> FloatArray:
        """The shown corners, a row each."""
        return np.asarray(self.points.theta[self.outcome.shown])

    def contains(self, points: Points) -> BoolArray:
        """Whether points lie in the box of a shown corner; with a box, only inside it."""
        covered = behind(self.frozen, self.monotone, self.certified, points).any(axis=0)
        return np.asarray(covered & self.frozen.contains(points) if self.frozen.box is not None else covered)

    @property
    def volume(self) -> float:
        """The share of the space that is certified: of a box exactly, else at points of a Sobol design."""
        if self.frozen.box is not None:
            return self.frozen.volume(self.seed) if self.outcome.shown.all() else 0.0
        if not len(self.certified):
            return 0.0
        seed = stream_seed(self.seed, "volume")
        return float(self.contains(self.frozen.regions.space.sobol(_VOLUME_POINTS, seed=seed)).mean())

    def left(self, volume: float) -> float:
        """The share of the region that a certified volume leaves uncertified."""
        whole = self.frozen.regions.volume
        return max(0.0, 1.0 - volume / whole) if whole else 1.0

    def measure(self, volume: float) -> str:
        """The certified parameters, in words."""
        if self.frozen.box is not None:
            return self.frozen.measure(volume).replace("drawn uniformly from", "in")
        space = drawn_uniformly(self.frozen.regions.space).partition("(")[2]
        boxes = "1 box" if len(self.certified) == 1 else f"{len(self.certified)} boxes"
        return f"in the union of {boxes} ({100.0 * volume:.3g} % of the space, {space}"


def behind(frozen: Frozen, monotone: Mapping[str, str], corners: FloatArray, points: Points) -> BoolArray:
    """For each corner, a row of whether each point is at least as good in every parameter."""
    mine, others = (_oriented(frozen, monotone, theta) for theta in (corners, points.theta))
    return np.asarray((others[None, :, :] >= mine[:, None, :]).all(axis=2))


def propose(frozen: Frozen, monotone: Mapping[str, str], seed: int) -> Points:
    """Corners whose boxes cover most of the region, chosen greedily, before any run.

    With a box there is one: the worst corner of the box.
    """
    space = frozen.regions.space
    if frozen.box is not None:
        worst = [
            each.low if (monotone[name] == "+") != frozen.mirrored else each.high
            for name, each in frozen.box.ranges.items()
        ]
        return Points(np.array([worst]), space)
    if not space.names:
        return frozen.draw(1, seed)
    pool = space.sobol(_POOL, seed=stream_seed(seed, "corner pool"))
    pool = pool[frozen.contains(pool)]
    if not len(pool):
        raise frozen.empty()
    candidates = pool[:_CANDIDATES]
    covers = behind(frozen, monotone, candidates.theta, pool)
    chosen: list[int] = []
    left = np.ones(len(pool), np.bool_)
    while len(chosen) < _MOST_CORNERS:
        gains = covers[:, left].sum(axis=1)
        best = int(np.argmax(gains))
        if gains[best] < max(_LEAST_GAIN * len(pool), 1):
            break
        chosen.append(best)
        left &= ~covers[best]
    # A corner that came early may lie behind a later one, whose box then contains its own.
    kept = [each for each in chosen if not any(covers[other, each] for other in chosen if other != each)]
    return candidates[sorted(kept)]


def corner_trial(frozen: Frozen, corners: Points, error: float, budget: int | None) -> Trial:
    """The test at the corners, each at its part of the error, with the cap that the guesses ask for."""
    alpha = error / len(corners)
    trial = frozen.trial(corners, alpha, _CAP, 0, budget)
    p, q = trial.threshold, trial.bet
    gain = q * np.log(q / p) + (1.0 - q) * np.log((1.0 - q) / (1.0 - p))
    cap = min(_CAP, math.ceil(_SAFETY * trial.goal / float(gain.min())))
    return frozen.trial(corners, alpha, cap, 0, budget)


def corner_words(test: CornerTest) -> str:
    """How the corners were tested, in words."""
    total, shown = len(test.points), int(test.outcome.shown.sum())
    return f"{plural(total, 'corner')} tested at the level {test.error / total:.3g} each, of which {shown} were shown"


def _oriented(frozen: Frozen, monotone: Mapping[str, str], theta: FloatArray) -> FloatArray:
    """θ with every sign turned so that more is better for the claim."""
    signs = np.array(
        [1.0 if (monotone[name] == "+") != frozen.mirrored else -1.0 for name in frozen.regions.space.names]
    )
    return np.asarray(theta * signs)
