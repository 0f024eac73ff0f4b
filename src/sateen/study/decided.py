"""What was decided about a property: as plain data in result.json, and as the objects that these data describe.

Nothing in it depends on the clock or on the number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sateen.core.display import paragraph
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Claim
from sateen.core.space import Range, Space
from sateen.core.text import number_text, percent
from sateen.decision.goals import Goal
from sateen.decision.refine import Refinement
from sateen.decision.regions import Regions
from sateen.decision.rounds import Round
from sateen.study.decide_table import DecideSpec, goal_from

if TYPE_CHECKING:
    from sateen.decision.best import BestPoint
    from sateen.decision.bounds import BoundMap
    from sateen.decision.certificate import Certificate
    from sateen.decision.sensitivity import Sensitivity

Content = dict[str, Any]
KINDS: Final = ("first", "total", "elasticity")
_CELLS: Final = ("low", "high", "lower", "upper", "shares")
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionResult:
    """What [decide] of a study came to, as far as it asked.

    - `goal` is what it aimed at; `refinement` has the rounds, the observations and the resulting posterior.
    - `regions` are where the probability is above and below the threshold, `box` is the largest box found on the side
      that was asked for, and `certificate` proves it for that side.
    - `best` is the best point, `sensitivity` says which parameters matter, `bounds` is a rigorous map.
    - `claims` are those of all of them; `sentence` is the decision in words, which ends the property's verdict.
    """

    goal: Goal
    posterior: FullPosterior
    refinement: Refinement | None
    regions: Regions | None
    box: Space | None
    certificate: Certificate | None
    best: BestPoint | None
    sensitivity: Sensitivity | None
    bounds: BoundMap | None
    claims: tuple[Claim, ...]
    sentence: str

    def __repr__(self) -> str:
        return f"<DecisionResult {' '.join(self.sentence.splitlines())}>"

    def _repr_html_(self) -> str:
        return paragraph(self.sentence)


def space_content(space: Space) -> list[object]:
    """A space as plain data."""
    return [
        [name, [value.low, value.high, value.scale] if isinstance(value, Range) else value]
        for name, value in space.parameters
    ]


def space_from(content: list[Any]) -> Space:
    """The space that plain data describe."""
    return Space({name: Range(*value) if isinstance(value, list | tuple) else value for name, value in content})


def regions_content(regions: Regions) -> Content:
    """Regions as plain data, with the largest box; the predictor stands in a file of its own."""
    try:
        box, problem = space_content(regions.box()), None
    except InputError as error:
        box, problem = None, error.message
    numbers = {name: getattr(regions, name) for name in ("threshold", "side", "level", "above", "below", "undecided")}
    told = {"errors": dict(regions.errors), "seed": regions.seed, "points": regions.points}
    claim = {"statement": regions.statement, "claim": regions.claim.content()}
    return {**numbers, **told, **claim, "box": box, "no_box": problem}


def regions_from(posterior: FullPosterior, content: Mapping[str, Any]) -> Regions:
    """The regions that plain data describe."""
    names = ("threshold", "side", "level", "above", "below", "undecided")
    told = {name: content[name] for name in (*names, "seed", "points")}
    errors = MappingProxyType(dict(content["errors"]))
    return Regions(posterior, **told, errors=errors, claim=Claim.from_content(content["claim"]))


def without_times(certificate: Certificate) -> Certificate:
    """The certificate without the seconds of its forecast, which differ from run to run."""
    plan = certificate.plan
    return certificate if plan is None else replace(certificate, plan=replace(plan, seconds=None))


def load_certificate(file: FilePath) -> Certificate:
    """The certificate in the file of a task."""
    from sateen.decision.certificate import Certificate
    from sateen.learning.stored import load

    certificate: object = load(file)
    if not isinstance(certificate, Certificate):
        raise InputError(f"{file} has no certificate, but a {type(certificate).__name__}")
    return certificate


def certificate_content(certificate: Certificate) -> Content:
    """A certificate as plain data: its claim, what it cost, and the points that were flagged."""
    plan = certificate.plan
    return {
        "by": certificate.by,
        "holds": certificate.holds,
        "volume": certificate.volume,
        "runs": certificate.runs,
        "tolerance": certificate.tolerance,
        "attempt": certificate.attempt,
        "plan": None if plan is None else {name: value for name, value in asdict(plan).items() if name != "seconds"},
        "claim": certificate.claim.content(),
        "sentence": str(certificate),
        "flags": flags_of(certificate),
    }


def flags_of(certificate: Certificate) -> list[dict[str, float]]:
    """The points at which the claim was not shown, each with its runs; none where bounds were computed."""
    evidence = certificate.evidence
    points = getattr(evidence, "points", None)
    outcome = getattr(evidence, "outcome", None)
    if points is None or outcome is None:
        return []
    spent = outcome.spent
    rows = [row for row, shown in enumerate(outcome.shown.tolist()) if not shown]
    return [{**points[row], "runs": int(spent[row])} for row in rows]


def sensitivity_content(found: Sensitivity) -> Content:
    """Indices and elasticities as plain data."""
    means = {kind: dict(getattr(found, kind)) for kind in KINDS}
    ends = {end: {kind: dict(getattr(found, end)[kind]) for kind in KINDS} for end in ("lower", "upper")}
    told = {name: getattr(found, name) for name in ("level", "learner", "seed", "points", "draws")}
    return {**means, **ends, **told, "claim": found.claim.content()}


def sensitivity_from(content: Mapping[str, Any], space: Space) -> Sensitivity:
    """The indices and elasticities that plain data describe."""
    from sateen.decision.sensitivity import Sensitivity

    told: dict[str, Any] = {kind: MappingProxyType(dict(content[kind])) for kind in KINDS}
    for end in ("lower", "upper"):
        told[end] = MappingProxyType({kind: MappingProxyType(dict(content[end][kind])) for kind in KINDS})
    told |= {name: content[name] for name in ("level", "learner", "seed", "points", "draws")}
    return Sensitivity(space, **told, claim=Claim.from_content(content["claim"]))


def best_content(best: BestPoint) -> Content:
    """A best point as plain data; its posterior stands in a file of its own."""
    told = {name: getattr(best, name) for name in ("value", "lower", "upper", "regret", "runs", "reason", "minimise")}
    limits = {name: {**asdict(each), "claim": each.claim.content()} for name, each in best.constraints.items()}
    return {
        "theta": dict(best.theta),
        **told,
        "holds": best.holds,
        "constraints": limits,
        "rounds": [asdict(each) for each in best.rounds],
        "claims": [claim.content() for claim in best.claims],
    }


def best_from(content: Mapping[str, Any], posterior: FullPosterior) -> BestPoint:
    """The best point that plain data describe."""
    from sateen.decision.best import BestPoint, ConstraintResult

    told = {name: content[name] for name in ("value", "lower", "upper", "regret", "runs", "reason", "minimise")}
    limits = {
        name: ConstraintResult(**{**each, "claim": Claim.from_content(each["claim"])})
        for name, each in content["constraints"].items()
    }
    return BestPoint(
        theta=dict(content["theta"]),
        **told,
        claims=tuple(Claim.from_content(each) for each in content["claims"]),
        constraints=MappingProxyType(limits),
        posterior=posterior,
        observations=posterior.training.observations,
        rounds=tuple(Round(**each) for each in content["rounds"]),
    )


def bounds_content(found: BoundMap) -> Content:
    """A map of bounds as plain data: every cell with its ends and its bounds."""
    arrays = {name: getattr(found, name).tolist() for name in _CELLS}
    told = {"cells": len(found), "widest": found.widest, "mean_width": found.mean_width}
    ends = {"supremum": list(found.supremum), "infimum": list(found.infimum)}
    ended = {"width": found.width, "reached": found.reached, "reason": found.reason}
    return {**told, **ends, **ended, "claim": found.claim.content(), **arrays}


def bounds_from(content: Mapping[str, Any], space: Space) -> BoundMap:
    """The map of bounds that plain data describe."""
    from sateen.decision.bounds import BoundMap

    count = len(content["lower"])
    arrays = {name: np.array(content[name], np.float64) for name in _CELLS}
    arrays |= {name: arrays[name].reshape(count, len(space)) for name in ("low", "high")}
    return BoundMap(space, **arrays, width=content["width"], reached=content["reached"], reason=content["reason"])


def decision_content(spec: DecideSpec, told: Mapping[str, Content]) -> Content:
    """ "decision" in result.json: what each task came to, the claims, and the sentence; `told` is by stage."""
    claims = list(_claims(told))
    sentence = "\n".join(_sentences(told))
    goal = {**spec.content(), "words": str(spec.goal), "aim": spec.goal.aim}
    return {"asked": goal, **told, "claims": [claim.content() for claim in claims], "sentence": sentence}


def _claims(told: Mapping[str, Content]) -> Iterator[Claim]:
    """The claims of all parts, those that are proven first."""
    if "certify" in told:
        yield Claim.from_content(told["certify"]["claim"])
    for content in told.get("optimise", {}).get("claims", ()):
        yield Claim.from_content(content)
    for stage in ("bounds", "decide"):
        if stage in told:
            yield Claim.from_content(told[stage]["claim"])


def _sentences(told: Mapping[str, Content]) -> Iterator[str]:
    """The decision in words, a line each: what was found, where it holds, what is certified, what is best."""
    refined = told.get("refine", NOTHING)
    if "found" in refined:
        yield refined["found"]
    if "decide" in told:
        own, learner = told["decide"], refined.get("learner", "the posterior")
        above, below, undecided = (percent(round(own[name], 3)) for name in ("above", "below", "undecided"))
        puts = f"{learner} puts {above} of the space above {number_text(own['threshold'])} and {below} below"
        yield f"Decided: by its {percent(own['level'])} bands, {puts}; {undecided} is undecided."
    elif refined:
        yield f"Refined: {refined['reason']}."
    if "certify" in told:
        yield from _certified(told["certify"], told["decide"], refined.get("learner", "the posterior"))
    if "optimise" in told:
        yield _best_sentence(told["optimise"])


def _certified(own: Mapping[str, Any], decided: Mapping[str, Any], learner: str) -> Iterator[str]:
    """What is certified, and what is not; the claims say it with all that belongs to it."""
    claim = own["claim"]
    less = "" if own["holds"] else ", though less than was asked for"
    sure = "" if claim["confidence"] is None else f" with confidence {percent(claim['confidence'])}"
    share, volume = math.floor(1000 * claim["level"]) / 1000, f"{100 * own['volume']:.3g} % of the space"
    where = f"at every parameter of a region that is {volume}"
    if share < 1:
        region = f"the region that {learner} puts clearly {decided['side']} {number_text(decided['threshold'])}"
        where = f"in at least {percent(share)} of {region}, which is {volume}"
    given = f", if {claim['assuming']}" if claim["assuming"] else ""
    yield f"Certified{less}{sure}: {claim['by']} {where}{given}."
    if share < 1:
        yield "Not certified: any one given parameter."


def _best_sentence(own: Mapping[str, Any]) -> str:
    at = ", ".join(f"{name} = {value:.4g}" for name, value in own["theta"].items())
    value = f"{own['value']:.3g} there, from {own['lower']:.3g} to {own['upper']:.3g}"
    limits = [
        f"{name} {each['sense']} {each['limit']:g} {'holds' if each['holds'] else 'is not shown'}"
        for name, each in own["constraints"].items()
    ]
    beyond = "nothing is claimed about what may be better"
    if own["regret"] is not None:
        regret = next((claim for claim in own["claims"] if claim["target"] == "regret"), None)
        beyond = str(regret["sentence"]) if regret else ""
    rest = "".join(f"; {each}" for each in (*limits, beyond) if each)
    return f"Best: the probability is {'smallest' if own['minimise'] else 'largest'} at {at}, {value}{rest}."


def decision_from(
    content: Mapping[str, Any],
    posterior: FullPosterior,
    certificate: Certificate | None,
) -> DecisionResult:
    """What plain data of result.json tell of, with the posterior and the certificate that are in files."""
    goal = goal_from(content["asked"])
    refinement = regions = box = best = sensitivity = bound_map = None
    if (told := content.get("refine")) is not None:
        rounds = tuple(Round(**each) for each in told["rounds"])
        observations = posterior.training.observations
        refinement = Refinement(goal, observations, posterior, rounds, told["reached"], told["reason"])
    if (told := content.get("decide")) is not None:
        regions = regions_from(posterior, told)
        box = None if told["box"] is None else space_from(told["box"])
    if (told := content.get("optimise")) is not None:
        best = best_from(told, posterior)
    if (told := content.get("sensitivity", NOTHING)).get("claim") is not None:
        sensitivity = sensitivity_from(told, posterior.space)
    if (told := content.get("bounds")) is not None:
        bound_map = bounds_from(told, posterior.space)
    claims = tuple(Claim.from_content(each) for each in content["claims"])
    parts = refinement, regions, box, certificate, best, sensitivity, bound_map
    return DecisionResult(goal, posterior, *parts, claims, content["sentence"])
