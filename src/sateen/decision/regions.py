"""`decide`: where f is above a threshold, where it is below, and where what is known does not decide it.

A predictor has a band [lower, upper] for f at each θ. A point is *above* p if its whole band is above p, *below* if its
whole band is below p, and else *undecided*. How much of the space each of the three takes up is estimated at points of
independent scrambled Sobol designs, whose spread gives the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.display import paragraph, pictured
from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum, plain_json
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, complete, training_of
from sateen.core.prediction import Claim, Prediction, Predictor, drawn_uniformly
from sateen.core.registry import call_provider
from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Space
from sateen.core.text import finite, number_text, percent, shown
from sateen.core.types import Array, Arrays, Axes, Content, FloatArray
from sateen.guarantee.guarantee import Guarantee

Side: TypeAlias = Literal["above", "below"]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.str_]
SIDES: Final = ("above", "below", "undecided")
_DESIGNS: Final = 16  # independent designs, from whose spread the errors of the volumes come
_FEWEST: Final = 4  # points of a design
_LEVEL: Final = 0.95
_LOOKS: Final = 1024  # points at which a posterior that no file can hold is told from others
_FINGERPRINTED: Final = 1  # what a fingerprint covers; another number for another choice


def decide(
    predictor: Predictor,
    *,
    above: float | None = None,
    below: float | None = None,
    level: float | None = None,
    seed: int,
    points: int = 32_768,
) -> Regions:
    """Where f is above a threshold and where below, by the bands of a posterior or of a guarantee.

    Ask with `above=0.1` for the θ with f(θ) ≥ 0.1, or with `below=0.1` for those with f(θ) ≤ 0.1. The regions show both
    sides either way; `box`, `certify` and the claim are about the requested side. `level` is the level of a posterior's
    bands, by default 0.95. The bands of a guarantee have the level of its calibration.

    The volumes are shares of the space under its uniform measure, estimated at `points` points.

    >>> import sateen as st
    >>> space = st.Space(beta=(0.0, 1.0))
    >>> theta = np.linspace(0.0, 1.0, 41)[:, None]
    >>> seen = st.Observations.from_counts(space, theta, np.round(100 * theta[:, 0]), 100)
    >>> regions = st.decide(st.EPGP().fit(seen, seed=1), above=0.5, seed=2)
    >>> [str(side) for side in regions.of({"beta": [0.1, 0.5, 0.9]})]
    ['below', 'undecided', 'above']
    >>> 0.4 < regions.above < 0.5, regions.errors["above"] < 0.001
    (True, True)
    """
    asked = {name: value for name, value in (("above", above), ("below", below)) if value is not None}
    if len(asked) != 1:
        many = "both {above} and {below} are" if asked else "neither {above} nor {below} is"
        remedy = "give one of them: {above=0.1} asks for f ≥ 0.1, and {below=0.1} for f ≤ 0.1; each shows both sides"
        raise InputError(f"{many} given", argument="above", remedy=remedy)
    ((name, value),) = asked.items()
    side: Side = "above" if name == "above" else "below"
    threshold = checked_share(value, name, "0.1", "a probability strictly between 0 and 1")
    whole = _predictor(predictor)
    level = _level(whole, level)
    volumes, errors, count = _volumes(whole, threshold, level, seed, points)
    claim = _claim(whole, threshold, level)
    up, down, left = volumes.tolist()
    return Regions(whole, threshold, side, level, up, down, left, errors, int(seed), count, claim)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regions:
    """Where f is `above` a threshold, `below` it and `undecided`: three volumes, which sum to 1.

    `errors` are the standard errors of the volumes, by the same names. `side` is the requested side, and `statement`
    says what is believed, or claimed, about its points. A point is undecided if its band at the level contains the
    threshold.
    """

    predictor: FullPosterior | Guarantee
    threshold: float
    side: Side
    level: float
    above: float
    below: float
    undecided: float
    errors: Mapping[str, float]
    seed: int
    points: int
    claim: Claim

    @property
    def space(self) -> Space:
        """The space that is divided."""
        return self.predictor.space

    @property
    def posterior(self) -> FullPosterior:
        """The posterior that decides, or that of the guarantee."""
        return complete(self.predictor.posterior) if isinstance(self.predictor, Guarantee) else self.predictor

    @property
    def statement(self) -> str:
        """What is said about the requested side, such as "the probability is at least 0.1"."""
        return f"the probability is at {'least' if self.side == 'above' else 'most'} {number_text(self.threshold)}"

    @property
    def volume(self) -> float:
        """The volume of the requested side."""
        return self.above if self.side == "above" else self.below

    def of(self, points: object) -> Words:
        """The side of each point, "above", "below" or "undecided"; points are given as to `predict`."""
        return _sides(self.bands(points), self.threshold)

    def bands(self, points: object) -> Prediction:
        """Mean and band of f at each point: the intervals, at the level, that decide its side."""
        return _bands(self.predictor, points, self.level)

    def decided(self, points: object, *, z: float | None = None) -> BoolArray:
        """Whether each of the points is on the requested side.

        By default its band at the level must be on that side. With `z`, which only a posterior takes, the latent
        g = Φ⁻¹(f) must be on that side of Φ⁻¹(p) by more than z standard deviations.
        """
        if z is None:
            return np.asarray(self.of(points) == self.side)
        if isinstance(self.predictor, Guarantee):
            remedy = "leave it out; decide with the posterior to choose a margin"
            raise InputError("the bands of a guarantee have no other margin {z}", argument="z", remedy=remedy)
        margin = finite(z)
        if margin is None or margin < 0 or isinstance(z, bool):
            raise InputError(f"{{z}} is a number of standard deviations from 0 up, not {shown(z)}", argument="z")
        from scipy.special import ndtri

        mean, std = self.predictor.latent_moments(points)
        sign = 1.0 if self.side == "above" else -1.0
        return np.asarray(sign * (mean - float(ndtri(self.threshold))) > margin * std)

    def box(self, *, seed: int | None = None) -> Space:
        """The largest box found in which every point that was tried is on the requested side.

        Its faces are moved inward a little, so that it can be certified. If no point is on that side, it raises an
        InputError. `seed` is by default that of the regions; the same seed gives the same box.
        """
        from sateen.decision.boxes import largest_box

        side = f"{self.side} {number_text(self.threshold)}"
        return largest_box(self.decided, self.space, side, seed=self.seed if seed is None else seed)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what determines the regions: the predictor, the threshold, the side and the level; no times.

        A posterior that cannot be saved is represented by its predictions at fixed points.
        """
        words, arrays = _predictor_parts(self.predictor)
        asked = [_FINGERPRINTED, self.threshold, self.side, self.level]
        return checksum(plain_json([*asked, words]), arrays)

    def plot(
        self, ax: object = None, *, observations: Observations | None = None, at: Mapping[str, float] | None = None
    ) -> Axes:
        """Draw the sides: intervals over one parameter, a map over two, pairwise slices through `at` over more.

        `at` is by default the middle of the space. `observations` are drawn as dots whose size shows the number of
        runs.
        """
        return call_provider("plot regions", self, ax=ax, observations=observations, at=at)

    def __repr__(self) -> str:
        sides = ", ".join(f"{_percent(getattr(self, name))} {name}" for name in SIDES)
        return f"<Regions of {number_text(self.threshold)} over {self.space!r}: {sides}>"

    def __str__(self) -> str:
        what = "guaranteed intervals" if isinstance(self.predictor, Guarantee) else "credible intervals"
        bands = f"by {what} of {percent(self.level)} ({self.posterior.kind})"
        shares = {name: f"{_percent(getattr(self, name), 2 * self.errors[name])} are {name}" for name in SIDES}
        sides = f"{shares['above']} {number_text(self.threshold)}, {shares['below']} and {shares['undecided']}"
        errors = " (± two standard errors)" if any(self.errors.values()) else ""
        whole = f"Of the parameters {drawn_uniformly(self.space)}"
        return f"{whole}, {sides}{errors}, {bands}. {_capital(str(self.claim))}."

    def _repr_html_(self) -> str:
        return pictured(self.plot, str(self)) if self.space.names else paragraph(str(self))


def _predictor(given: object) -> FullPosterior | Guarantee:
    """The predictor, with every ability if it is a posterior; refused where its bands say nothing about f."""
    if not isinstance(given, Guarantee):
        if not isinstance(given, Predictor):
            problem = f"{{predictor}} is a posterior or a guarantee, not a {type(given).__name__}"
            raise InputError(problem, argument="predictor", remedy="st.learn makes one, and st.calibrate the other")
        return complete(given)  # type: ignore[arg-type]  # of which it asks for more than a Predictor
    if given.claim.target != "probability":
        problem = f"the intervals of {given.method} contain frequencies among fresh runs, and say nothing about f"
        remedy = "calibrate with method='lift' or 'chernoff', whose intervals are about the probability"
        raise InputError(problem, argument="predictor", remedy=remedy)
    return given


def _level(predictor: FullPosterior | Guarantee, level: float | None) -> float:
    """The level of the bands: what was asked of a posterior, and that of a guarantee."""
    given = None if level is None else checked_share(level, "level", "0.95")
    if not isinstance(predictor, Guarantee):
        return _LEVEL if given is None else given
    if given not in (None, predictor.level):
        problem = f"the guarantee was calibrated for the {{level}} {predictor.level:g}, and its bands have no other"
        raise InputError(problem, argument="level", remedy="leave {level} out, or calibrate for another one")
    return predictor.level


def checked_share(value: object, name: str, example: str, what: str = "a share strictly between 0 and 1") -> float:
    """`value` as a number strictly between 0 and 1; `what` says in the error what is asked for."""
    number = None if isinstance(value, bool) else finite(value)
    if number is None or not 0.0 < number < 1.0:
        raise InputError(f"{{{name}}} is {what}, such as {example}, not {shown(value)}", argument=name)
    return number


def _bands(predictor: FullPosterior | Guarantee, points: object, level: float) -> Prediction:
    return predictor.predict(points) if isinstance(predictor, Guarantee) else predictor.predict(points, level=level)


def _sides(bands: Prediction, threshold: float) -> Words:
    words = np.full(len(bands), "undecided")
    words[bands.lower > threshold] = "above"
    words[bands.upper < threshold] = "below"
    return words


def _volumes(
    predictor: FullPosterior | Guarantee, threshold: float, level: float, seed: int, points: int
) -> tuple[FloatArray, Mapping[str, float], int]:
    """The shares of the three sides, their standard errors, and how many points they come from."""
    least = _DESIGNS * _FEWEST
    if isinstance(points, bool) or not isinstance(points, Integral) or points < least:
        raise InputError(f"{{points}} is a whole number from {least} up, not {shown(points)}", argument="points")
    space = predictor.space
    if not space.names:  # a single point, of which all is known
        sides = _sides(_bands(predictor, space.points({}), level), threshold)
        shares = np.array([[float(sides[0] == side) for side in SIDES]])
        return shares[0], MappingProxyType(dict.fromkeys(SIDES, 0.0)), 1
    size = int(points) // _DESIGNS
    seeds = [stream_seed(seed, "regions", design) for design in range(_DESIGNS)]
    theta = np.concatenate([space.sobol(size, seed=each).theta for each in seeds])
    sides = _sides(_bands(predictor, Points(theta, space), level), threshold).reshape(_DESIGNS, size)
    shares = np.array([(sides == side).mean(axis=1) for side in SIDES])
    errors = shares.std(axis=1, ddof=1) / math.sqrt(_DESIGNS)
    return shares.mean(axis=1), MappingProxyType(dict(zip(SIDES, errors.tolist(), strict=True))), sides.size


def _claim(predictor: FullPosterior | Guarantee, threshold: float, level: float) -> Claim:
    """What is believed of every decided point, or what the guarantee's own claim implies for a share of all points."""
    p = number_text(threshold)
    if isinstance(predictor, Guarantee):
        # A point on the wrong side is one whose interval misses f, and of these there are at most 1 - level.
        own = predictor.claim
        by = f"the side of {p} on which a parameter is put is right (an undecided one is put on neither)"
        return Claim(
            "region", own.mode, level, own.measure, own.confidence, own.points, own.runs, by, None, own.assuming
        )
    sides = f"the probability is at least {p} at each parameter of the region above, and at most {p} at each one below,"
    training = training_of(predictor)
    assuming = training.observations.assumption if training else ""
    return Claim("region", "credible", level, drawn_uniformly(predictor.space), by=sides, assuming=assuming)


def _predictor_parts(predictor: FullPosterior | Guarantee) -> tuple[object, dict[str, Array]]:
    """Words and arrays that fix a predictor: what it learned from, by which learner, and what it learned."""
    if not isinstance(predictor, Guarantee):
        return _posterior_parts(predictor)
    words, arrays = _posterior_parts(complete(predictor.posterior))
    told: list[Any] = [predictor.method, predictor.claim.content(), asdict(predictor.calibration), words]
    if (weighted := predictor.weighted) is not None:  # a density is a function: its values stand for it
        arrays = {**arrays, "scores": weighted.scores, "weights": weighted.weights}
        arrays["thresholds"] = weighted.at(_looks(predictor.space).theta)
        told.append(weighted.miss)
    return told, arrays


def _posterior_parts(posterior: FullPosterior) -> tuple[object, dict[str, Array]]:
    kept = ("learner", "recipe", "inputs", "learned", "refit")
    try:
        parts: tuple[Content, Arrays] = call_provider("posterior parts", posterior)  # type: ignore[assignment]
        content, arrays = parts
        words = {name: content[name] for name in kept if name in content}
        words["training"] = posterior.training.fingerprint
    except InputError:
        band = posterior.predict(_looks(posterior.space))
        ends = {"mean": band.mean, "lower": band.lower, "upper": band.upper}
        return {"kind": posterior.kind, "space": repr(posterior.space)}, ends
    return words, {name: array for name, array in arrays.items() if name.startswith("learned/")}


def _looks(space: Space) -> Points:
    return space.sobol(_LOOKS, seed=0) if space.names else space.points({})


def _percent(share: float, error: float = 0.0) -> str:
    """A share, and its error if there is one, in as many digits as say something.

    >>> _percent(0.0753, 0.0004), _percent(0.0753), _percent(1.0)
    ('7.53 ± 0.04 %', '7.53 %', '100 %')
    """
    if not error:
        return f"{100 * share:.3g} %"
    digits = max(0, -math.floor(math.log10(100 * error)))
    return f"{100 * share:.{digits}f} ± {100 * error:.1g} %"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
