"""`calibrate`: from a posterior and held-out observations to a Guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Posterior, Prediction, drawn_uniformly
from sateen.core.proportions import hoeffding_margin
from sateen.core.text import percent
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray
from sateen.guarantee.checks import check_held_out, check_posterior, check_share, one_number_of_runs
from sateen.guarantee.conformal import (
    Density,
    Threshold,
    WeightedThreshold,
    conformal_miss,
    conformal_rank,
    density_rank,
    distances,
    fewest_points,
    largest,
    unbounded_share,
    weights_of,
)
from sateen.guarantee.guarantee import Calibration, Guarantee
from sateen.guarantee.lift import fewest_lifted_points, lift_miss, lifted_distances
from sateen.guarantee.methods import NORMALISERS_OF, Method, Normaliser
from sateen.guarantee.normaliser import centre, chosen, difficulty, typical_runs

__all__ = ["Planned", "calibrate"]

Default: TypeAlias = Literal["default"]
_LEVEL: Final = 0.9
_CONFIDENCE: Final = 0.95
_SPLIT: Final = 0.5
_APPLIES_TO: Final[dict[str, tuple[Method, ...]]] = {
    "rank": ("lift",),
    "plan": ("lift",),
    "seed": ("lift",),
    "split": ("chernoff",),
    "normaliser": ("nicp", "chernoff", "lift"),
}


class Planned(Protocol):
    """What a plan has fixed before the calibration was observed."""

    @property
    def rank(self) -> int:
        """The rank of the score that becomes the threshold."""

    @property
    def normaliser(self) -> Normaliser:
        """What scores shall be divided by."""

    @property
    def level(self) -> float:
        """The level it was made for."""

    @property
    def confidence(self) -> float | None:
        """The confidence it was made for; None is marginal."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the guarantee shall be, every default filled in; no normaliser and no rank where they follow later."""

    method: Method
    level: float
    confidence: float | None
    rank: int | None
    normaliser: Normaliser | None
    split: float
    density: Density | None
    allow_trivial: bool
    seed: int | None

    @property
    def miss(self) -> float:
        """ε: what the claim may miss."""
        return 1.0 - self.level


@on_one_thread
def calibrate(
    posterior: Posterior,
    held_out: Observations,
    *,
    method: Method = "lift",
    level: float | Default = "default",
    confidence: float | Default | None = "default",
    rank: int | None = None,
    normaliser: Normaliser | None = None,
    split: float | None = None,
    density: Density | None = None,
    plan: Planned | None = None,
    allow_trivial: bool = False,
    seed: int | None = None,
) -> Guarantee:
    """The posterior with intervals that are right for a share `level` of θ, however wrong the posterior is.

    `held_out` are observations at points drawn independently and uniformly from the space, with no point and no run of
    the training. The level is 0.9, or the plan's. With a `confidence`, such as 0.95, the claim is PAC: that share of
    all calibrations keeps it, or more; with None it is marginal, on average over calibrations. By default the lift is
    PAC with 0.95, or as planned; the others, and everything with a density, are marginal.

    - `method="lift"`, about the probability f: the narrowest. The points may differ in their runs, if the numbers were
      fixed before the runs were made. `rank` m, by default 1 or the `plan`'s, must be fixed before held_out is seen.
      `normaliser` is "predictive", "posterior" or "constant"; by default the plan's, or the one that cross-validation
      on the training finds narrowest, for which the recipe is fitted three times more, with `seed`.
    - `method="icp"` and `"nicp"`, about the frequency among as many fresh runs, not about f: f̂ ± τ and f̂ ± τu(θ), where
      the `normaliser` u is "posterior" (the default), "quantile" or "predictive".
    - `method="chernoff"`, about f: `icp`, or `nicp` with a normaliser, with the Chernoff bound added at each end;
      `split` is the share of 1 - level that the conformal part may miss, by default a half.

    `density` says that θ will be drawn with this density rather than uniformly: it takes an (n, dimension) array and
    gives n numbers, relative to the uniform measure of the space; a constant factor does not matter. Where the points
    are too few for the level, this is refused, unless `allow_trivial`, which gives the interval [0, 1].

    A keyword that does not apply to the method is an error.
    """
    check_posterior(posterior)
    given = {"rank": rank, "plan": plan, "seed": seed, "split": split, "normaliser": normaliser}
    asked = _asked(method, level, confidence, density, allow_trivial, **given)
    check_held_out(held_out, posterior)
    believed = posterior.predict(held_out.points, level=asked.level)
    if asked.method == "lift":
        return _by_lift(asked, posterior, held_out, believed)
    return _by_distance(asked, posterior, held_out, believed)


def _by_distance(asked: _Asked, posterior: Posterior, held_out: Observations, believed: Prediction) -> Guarantee:
    """ICP and NICP, and either of them with the Chernoff bound."""
    runs = one_number_of_runs(held_out, asked.method)
    share = asked.split if asked.method == "chernoff" else 1.0
    miss = share * asked.miss
    normaliser: Normaliser = asked.normaliser or ("posterior" if asked.method == "nicp" else "constant")
    scores = distances(held_out, centre(believed)) / difficulty(normaliser, believed, runs)
    rank = conformal_rank(len(held_out), miss, asked.confidence)
    if not rank and asked.density is None:
        _refuse_trivial(asked, len(held_out), fewest_points(miss, asked.confidence))
    threshold = _threshold(asked, held_out, scores, rank, miss)
    calibration = Calibration(
        points=len(held_out),
        runs=runs,
        rank=rank if asked.density is None and rank else None,
        threshold=threshold.value if isinstance(threshold, Threshold) else None,
        miss=miss,
        normaliser=normaliser,
        normaliser_runs=runs,
        fingerprint=held_out.fingerprint,
        margin=hoeffding_margin(runs, asked.miss - miss) if asked.method == "chernoff" else 0.0,
        why="given" if asked.normaliser else "the default",
    )
    return _guarantee(asked, posterior, calibration, threshold)


def _by_lift(asked: _Asked, posterior: Posterior, held_out: Observations, believed: Prediction) -> Guarantee:
    """The lift: in its equal form where all points have the same number of runs, else in the other."""
    points = len(held_out)
    numbers = np.unique(held_out.trials)
    equal = len(numbers) == 1
    # Runs that differ may differ by what was seen, and the normaliser must not depend on that.
    runs = int(numbers[0]) if equal else typical_runs(posterior.training.observations)
    rank = asked.rank or (1 if asked.density is None else density_rank(asked.density, posterior.space, points))
    eta = lift_miss(points, rank, asked.miss, asked.confidence)
    normaliser, why = asked.normaliser, "given"
    if eta is None:
        _refuse_trivial(asked, points, fewest_lifted_points(rank, asked.miss, asked.confidence), rank)
        normaliser, why = normaliser or "constant", why if normaliser else "no matter which"
        threshold: Threshold | WeightedThreshold = Threshold(inf)
    else:
        if normaliser is None:
            seed = int(posterior.training.fingerprint[:8], 16) if asked.seed is None else asked.seed
            normaliser, widths = chosen(posterior, points=points, runs=runs, rank=rank, eta=eta, seed=seed)
            found = ", ".join(f"{name} {width:.3g}" for name, width in widths.items())
            why = f"by cross-validation, expected widths: {found}" if found else "the training is too small to choose"
        mean = centre(believed)
        distance = distances(held_out, mean) if equal else lifted_distances(held_out, mean, eta)
        scores = distance / difficulty(normaliser, believed, runs)
        threshold = _threshold(asked, held_out, scores, rank, rank / (points + 1))
    trivial = eta is None
    calibration = Calibration(
        points=points,
        runs=runs if equal else None,
        rank=None if trivial else rank,
        threshold=threshold.value if isinstance(threshold, Threshold) else None,
        miss=asked.miss if trivial else conformal_miss(points, rank, asked.confidence),
        normaliser=normaliser,
        normaliser_runs=runs,
        fingerprint=held_out.fingerprint,
        eta=eta,
        why=why,
    )
    return _guarantee(asked, posterior, calibration, threshold)


def _threshold(
    asked: _Asked, held_out: Observations, scores: FloatArray, rank: int, miss: float
) -> Threshold | WeightedThreshold:
    if asked.density is None:
        return Threshold(largest(scores, rank))
    weights = weights_of(asked.density, held_out.theta)
    if not weights.any():
        raise InputError("density is 0 at every held-out point, so none of them tells anything; observe more points")
    weighted = WeightedThreshold(scores, weights, miss, asked.density)
    lost = unbounded_share(weighted, held_out.space)
    if lost > 0.5 and not asked.allow_trivial:
        raise InputError(
            f"{len(held_out):,} held-out points are too few for this density: for {percent(round(lost, 2))} of the "
            "parameters drawn with it, the interval would be [0, 1]\n"
            "  observe more points, lower the level, or pass allow_trivial=True"
        )
    return weighted


def _refuse_trivial(asked: _Asked, points: int, enough: int | None, rank: int = 0) -> None:
    if asked.allow_trivial:
        return
    sure = "" if asked.confidence is None else f" with the confidence {percent(asked.confidence)}"
    ranked = f" and the rank {rank}" if rank > 1 else ""
    many = "no number that can be observed" if enough is None else f"{enough:,}"
    raise InputError(
        f"{points:,} held-out points are too few for the level {percent(asked.level)}{sure}{ranked}: {many} would do\n"
        "  observe more, lower the level, or pass allow_trivial=True for the interval [0, 1]"
    )


def _guarantee(
    asked: _Asked, posterior: Posterior, calibration: Calibration, threshold: Threshold | WeightedThreshold
) -> Guarantee:
    measure = drawn_uniformly(posterior.space)
    if asked.density is not None:
        measure = f"drawn with the given density on {measure.removeprefix('drawn uniformly from ')}"
    claim = Claim(
        "probability" if asked.method in ("chernoff", "lift") else "frequency",
        "marginal" if asked.confidence is None else "pac",
        asked.level,
        measure,
        confidence=asked.confidence,
        points=calibration.points,
        runs=calibration.runs,
        by=asked.method,
    )
    return Guarantee(asked.method, posterior, claim, calibration, threshold)


def _asked(
    method: Any, level: Any, confidence: Any, density: Any, allow_trivial: Any, *, plan: Any, **given: Any
) -> _Asked:
    """The keywords, each checked, with what they are by default; one that does not apply is refused."""
    if method not in NORMALISERS_OF:
        raise InputError(f"method is one of {', '.join(map(repr, NORMALISERS_OF))}, not {method!r}")
    for name, value in {**given, "plan": plan}.items():
        if value is not None and method not in _APPLIES_TO[name]:
            others = " and ".join(f"method={other!r}" for other in _APPLIES_TO[name])
            raise InputError(f"{name} does not apply to method={method!r}, only to {others}; leave it out")
    if plan is not None:
        level, confidence = _follow(plan, given, level, confidence)
    if level == "default":
        level = _LEVEL
    if confidence == "default":
        confidence = _CONFIDENCE if method == "lift" and density is None else None
    if confidence is not None:
        confidence = check_share(confidence, "confidence", "0.95; None is marginal")
        if density is not None:
            raise InputError(
                "with a density only the marginal guarantee is known to hold, and confidence asks for the PAC one\n"
                "  pass confidence=None"
            )
    if density is not None and not callable(density):
        raise InputError(f"density is a function of an (n, dimension) array of θ, not a {type(density).__name__}")
    split = _SPLIT if given["split"] is None else check_share(given["split"], "split", "0.5")
    _check_normaliser(method, given["normaliser"])
    if given["seed"] is not None and given["normaliser"] is not None:
        raise InputError("seed applies only where cross-validation chooses the normaliser, and one is given")
    for name, least in (("rank", 1), ("seed", 0)):
        value = given[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least):
            raise InputError(f"{name} is a whole number from {least} up, not {value!r}")
    if not isinstance(allow_trivial, bool):
        raise InputError(f"allow_trivial is True or False, not {allow_trivial!r}")
    return _Asked(
        method,
        check_share(level, "level", "0.9"),
        confidence,
        given["rank"],
        given["normaliser"],
        split,
        density,
        allow_trivial,
        given["seed"],
    )


def _follow(plan: Any, given: dict[str, Any], level: Any, confidence: Any) -> tuple[Any, Any]:
    """Put the plan's rank and normaliser into `given`; its level and confidence. Nothing may contradict the plan."""
    if not all(hasattr(plan, name) for name in ("rank", "normaliser", "level", "confidence")):
        raise InputError(f"plan is what st.plan gives, not a {type(plan).__name__}")
    if given["rank"] is not None:
        raise InputError("rank and plan both fix the rank; give one of them")
    if given["seed"] is not None:
        raise InputError("seed applies only where cross-validation chooses the normaliser, and the plan has chosen it")
    wanted = {"level": level, "confidence": confidence, "normaliser": given["normaliser"] or "default"}
    for name, value in wanted.items():
        if value not in ("default", planned := getattr(plan, name)):
            raise InputError(f"the plan was made for the {name} {planned}, not {value}; leave {name} out, or plan anew")
    given |= {"rank": plan.rank, "normaliser": plan.normaliser}
    return plan.level, plan.confidence


def _check_normaliser(method: Method, normaliser: Any) -> None:
    allowed = NORMALISERS_OF[method]
    if normaliser is not None and normaliser not in allowed:
        hint = "; without a normaliser it is constant" if method == "chernoff" and normaliser == "constant" else ""
        names = ", ".join(map(repr, allowed))
        raise InputError(f"the normaliser of method={method!r} is one of {names}, not {normaliser!r}{hint}")
