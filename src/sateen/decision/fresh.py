"""Tests at fresh θ: a frozen region, points drawn from it, and runs that the posterior has not seen.

The region is frozen first: R = {θ : ±(mean - t) > z std} of a posterior's latent g, the region of a guarantee as
it is, or a box. Then n points are drawn uniformly in R, and each is tested by a bet (evidence.py). Let π be the share
of R where the claim is wrong. A wrong point is shown with probability alpha at most, so the points that are wrong and
never shown are independent coins with a probability of (1 - alpha) π at least, and every one of them is flagged. Hence,
with confidence 1 - δ,

    π <= upper(flags; n, δ) / (1 - alpha),    upper: Clopper and Pearson's bound.

Flags depend on each other, since the trial ends when few points are open; the coins do not, and there are no more of
them than flags: that is all the bound needs.

So that nobody draws until it passes, the seed of the draw is not a free choice. It is a hash of the frozen region, the
question and the number of the attempt, and attempt k has the error δ/(k(k+1)): these sum to δ over all attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import QUESTION, Observations
from sateen.core.posterior import training_of
from sateen.core.prediction import drawn_uniformly
from sateen.core.proportions import upper_bound
from sateen.core.seeds import stream, stream_seed
from sateen.core.space import Points, Range, Space
from sateen.core.text import number_text, percent
from sateen.core.types import FloatArray, IntArray
from sateen.decision.evidence import MOST_LOOKS, Look, Outcome, Trial, bets
from sateen.decision.regions import BoolArray, Regions
from sateen.guarantee.guarantee import Guarantee
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.given import check_model
from sateen.model.model import Model
from sateen.sampling.observe import MAX_EVENTS, observe
from sateen.sampling.source import Function, name_of

_BLOCK: Final = 4096  # candidates that are drawn at once
_MOST_BLOCKS: Final = 1024
_EMPTY_BLOCKS: Final = 16  # without any point of the region, after which it counts as empty
_VOLUME_POINTS: Final = 2**15
_BLACK_BOX: Final = "black box "


@dataclass(frozen=True, slots=True)
class Asked:
    """The question that a certificate answers, as text, with the caps of its runs; a black box by its name."""

    model: str
    formula: str | None
    end: float | None
    max_events: int = MAX_EVENTS
    max_time: float | None = None
    max_population: int | None = None

    @classmethod
    def of(
        cls, model: Model | Function, formula: Formula | None, max_events: int, max_time: float, most: int | None
    ) -> Asked:
        """The question of a model, or of a black box, and a formula."""
        check_model(model, or_callable=True)
        formula = None if formula is None else formula_of(formula)
        if isinstance(model, Model) and formula is None:
            problem = "a model needs a {formula}; without one only black boxes that return bool can be asked"
            raise InputError(problem, argument="formula")
        text = str(model) if isinstance(model, Model) else _BLACK_BOX + name_of(model)
        words, end = (None, None) if formula is None else (str(formula), formula.end)
        return cls(text, words, end, max_events, None if math.isinf(max_time) else float(max_time), most)

    @property
    def black_box(self) -> bool:
        """Whether the runs come from a Python function, which no file can hold."""
        return self.model.startswith(_BLACK_BOX)

    @property
    def caps(self) -> dict[str, Any]:
        """The caps as `observe` takes them; a black box has none."""
        if self.black_box:
            return {}
        limit = math.inf if self.max_time is None else self.max_time
        return {"max_events": self.max_events, "max_time": limit, "max_population": self.max_population}

    def check_same(self, training: Observations) -> None:
        """Refuse a question that the posterior was not trained on."""
        told = training.provenance
        mine = {"model": self.model, "formula": self.formula, "end": self.end}
        if "model" not in told:
            return
        for key in QUESTION:
            if mine[key] != told.get(key):
                problem = f"the certificate and the training differ in their {key}:\n  {mine[key]}\n  {told.get(key)}"
                raise InputError(problem, argument=key, remedy="certify what the posterior was trained on")


@dataclass(frozen=True, slots=True, eq=False)
class Frozen:
    """The region that a claim is about: that of `regions` with the margin `z`, or a `box`; fixed before any draw.

    `z` is None for a guarantee, whose region is taken as it is, and for a box. With a `tolerance` η the claim is
    f >= p - η above, and f <= p + η below.
    """

    regions: Regions
    z: float | None
    tolerance: float = 0.0
    box: Space | None = None

    def __post_init__(self) -> None:
        p, eta = self.regions.threshold, self.tolerance
        room = p if not self.mirrored else 1.0 - p
        if not 0.0 <= eta < room:
            problem = f"{{tolerance}} is a number from 0 to below {room:g} here, not {eta}"
            raise InputError(problem, argument="tolerance", remedy="nothing would be claimed beyond it")
        if self.box is not None:
            _check_box(self.box, self.regions.space)

    @property
    def mirrored(self) -> bool:
        """Whether the claim is f <= p, which is tested as 1 - f >= 1 - p."""
        return self.regions.side == "below"

    @property
    def claimed(self) -> float:
        """The threshold of the claim: p - η above, p + η below."""
        return self.regions.threshold + (self.tolerance if self.mirrored else -self.tolerance)

    @property
    def tested(self) -> float:
        """The threshold of the test: the claimed one, mirrored where the claim is."""
        return 1.0 - self.claimed if self.mirrored else self.claimed

    def guess(self, points: Points) -> FloatArray:
        """The predictor's mean of f, mirrored where the claim is."""
        mean = self.regions.posterior.predict(points).mean
        return np.asarray(1.0 - mean if self.mirrored else mean)

    def trial(self, points: Points, alpha: float, cap: int, allowed: int, budget: int | None) -> Trial:
        """The test at these points, with bets that the posterior fixes."""
        bet = bets(self.tested, self.guess(points))
        return Trial(self.tested, bet, alpha, cap, self.mirrored, allowed, budget)

    def contains(self, points: Points) -> BoolArray:
        """Whether points of the space lie in the region."""
        if self.box is not None:
            return self.box.contains(points.theta)
        return self.regions.decided(points, z=self.z)

    def draw(self, n: int, seed: int) -> Points:
        """`n` independent points, uniform in the region: by rejection from the space's measure, or from the box."""
        space, rng = self.regions.space, stream(seed, "points")
        if self.box is not None or not space.names:
            inside = space if self.box is None else self.box
            points = Points(inside.from_unit(2.0 * rng.random((n, len(space))) - 1.0), space)
            if not self.contains(points[:1]).all():
                raise self.empty()
            return points
        kept: list[FloatArray] = []
        found = 0
        for block in count():
            candidates = Points(space.from_unit(2.0 * rng.random((_BLOCK, len(space))) - 1.0), space)
            kept.append(candidates.theta[self.contains(candidates)])
            found += len(kept[-1])
            if found >= n:
                return Points(np.concatenate(kept)[:n], space)
            if block + 1 >= (_MOST_BLOCKS if found else _EMPTY_BLOCKS):
                break
        raise (
            self.empty()
            if not found
            else InputError(
                f"the region is too small to draw {n:,} points from: {found:,} of {_BLOCK * _MOST_BLOCKS:,} lie in it",
                argument="box",
                remedy="certify a box of it: {box=regions.box()}",
            )
        )

    def empty(self) -> InputError:
        """The refusal of a region in which no point lies."""
        p = number_text(self.regions.threshold)
        return InputError(
            f"no parameter is put {self.regions.side} {p}, so there is nothing to certify",
            argument="regions",
            remedy="spend more runs with st.refine, ask for another threshold or the other side, or lower the level",
        )

    def volume(self, seed: int) -> float:
        """The share of the space that the region takes up: of a box exactly, else at points of a Sobol design."""
        space = self.regions.space
        if self.box is not None:
            ends = np.array([[each.low, each.high] for each in self.box.ranges.values()]).T
            return float(np.prod(np.diff(space.to_unit(ends), axis=0) / 2.0)) if space.names else 1.0
        if not space.names:
            return float(self.contains(space.points({}))[0])
        return float(self.contains(space.sobol(_VOLUME_POINTS, seed=stream_seed(seed, "volume"))).mean())

    def measure(self, volume: float) -> str:
        """How the parameters of the claim are drawn, in words."""
        if self.box is not None:
            where = drawn_uniformly(self.box).replace("from the space", "from the box")
            return f"{where[:-1]}; {_share(volume)} of the space)" if self.box.names else where
        regions, p = self.regions, number_text(self.regions.threshold)
        kind = regions.posterior.kind
        whose, how = (
            (f"the {regions.predictor.method} guarantee of {kind}", percent(regions.level))
            if isinstance(regions.predictor, Guarantee)
            else (kind, f"by more than z = {self.z:.4g} standard deviations on the probit scale")
        )
        space = drawn_uniformly(regions.space).partition("(")[2]
        where = f"the region where {whose} puts the probability {regions.side} {p}"
        return f"drawn uniformly from {where} ({how}; {_share(volume)} of the space, {space}"

    @property
    def statement(self) -> str:
        """What is claimed at a parameter."""
        if not self.tolerance:
            return self.regions.statement
        word, off = ("most", "with") if self.mirrored else ("least", "less")
        p, eta = number_text(self.regions.threshold), number_text(self.tolerance)
        return f"the probability is at {word} {float(f'{self.claimed:.12g}'):g} ({p} {off} the tolerance {eta})"


def fresh_seed(frozen: Frozen, asked: Asked, attempt: int, *more: object) -> int:
    """The seed of the fresh draw: a hash of the frozen region, the question and the number of the attempt."""
    box = None if frozen.box is None else box_content(frozen.box)
    region = [frozen.regions.fingerprint, frozen.z, box, frozen.tolerance]
    told = [*region, asked.model, asked.formula, asked.end, attempt, *more]
    return int(fingerprint(told)[:15], 16)


def attempt_error(confidence: float, attempt: int) -> float:
    """δ/(k(k+1)), the error that attempt k may have; over all attempts these sum to δ = 1 - confidence.

    >>> round(attempt_error(0.95, 1), 6), round(attempt_error(0.95, 2), 6)
    (0.025, 0.008333)
    """
    return (1.0 - confidence) / (attempt * (attempt + 1))


def wrong_bound(flags: int, points: int, error: float, alpha: float) -> float:
    """The bound on the share of the region that is wrong; it misses with probability `error` at most."""
    return min(float(upper_bound(flags, points, error)) / (1.0 - alpha), 1.0)


def look_seed(seed: int, number: int) -> int:
    """The seed of the runs of a look, counted from 0."""
    return stream_seed(seed, "look", number)


def check_fresh_runs(frozen: Frozen, asked: Asked, points: Points, seed: int) -> None:
    """Refuse a posterior that was trained on another question, or that has seen a point or a run of the test.

    What a guarantee was calibrated with is not kept, so it cannot be compared.
    """
    training = training_of(frozen.regions.posterior)
    if training is None:
        return
    seen = training.observations
    asked.check_same(seen)
    mine = [look_seed(seed, number) for number in range(MOST_LOOKS)]
    if shared := sorted(set(mine) & set(seen.seeds)):
        raise InputError(
            f"the posterior has seen runs of the seed {shared[0]}, with which the test would be made",
            argument="attempt",
            remedy="take the next {attempt}, or train with another seed",
        )
    if len(set(mine)) < len(mine):
        raise InputError("two looks of this draw have one seed", argument="attempt", remedy="take the next {attempt}")
    known = {row.tobytes() for row in seen.theta}
    if points.space.names and any(row.tobytes() in known for row in points.theta):
        raise InputError(
            "a drawn point is a point of the training, which the posterior has seen",
            argument="attempt",
            remedy="take the next {attempt}, or train with another seed",
        )


def looker(
    model: Model | Function,
    formula: Formula | None,
    asked: Asked,
    points: Points,
    seed: int,
    options: Mapping[str, Any],
) -> Callable[[int, IntArray], Look]:
    """What makes the runs of a look, each look with a seed of its own."""

    def look(number: int, runs: IntArray) -> Look:
        each = look_seed(seed, number)
        seen = observe(model, formula, points, runs, seed=each, **asked.caps, **options)
        return Look(each, seen.trials, seen.satisfied, seen.undecided)

    return look


@dataclass(frozen=True, slots=True, eq=False)
class FreshTest:
    """The test of a frozen region at fresh points: `seed` of the draw, the points, and what the trial came to."""

    frozen: Frozen
    seed: int
    points: Points
    outcome: Outcome
    error: float

    @property
    def bound(self) -> float:
        """The bound on the wrong share that was reached; valid whatever was asked for."""
        return wrong_bound(self.outcome.flags, len(self.points), self.error, self.outcome.trial.alpha)


def _check_box(box: object, space: Space) -> None:
    """Refuse what is not a box inside the space, on the same scales."""
    if not isinstance(box, Space):
        problem = f"{{box}} is a Space, not a {type(box).__name__}"
        raise InputError(problem, argument="box", remedy="regions.box() finds one")
    if box.names != space.names or box.fixed != space.fixed:
        problem = f"{{box}} has other parameters than the space:\n  {box!r}\n  {space!r}"
        raise InputError(problem, argument="box", remedy="regions.box() finds one")
    for name, range_ in box.ranges.items():
        whole = space.ranges[name]
        if range_.scale != whole.scale or not (whole.low <= range_.low and range_.high <= whole.high):
            problem = f"{{box}} leaves the space: {name} is in {range_!r} there, and in {whole!r} here"
            raise InputError(problem, argument="box", remedy="keep it inside, on the same scales")


def box_content(box: Space) -> list[object]:
    """A box as plain data."""
    return [
        [name, [value.low, value.high, value.scale] if isinstance(value, Range) else value]
        for name, value in box.parameters
    ]


def _share(volume: float) -> str:
    return f"{100.0 * volume:.3g} %"
