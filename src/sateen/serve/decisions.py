"""Decisions on the page: runs where they teach most, and claims about a frozen posterior, tested by fresh runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from msgspec import Meta

import sateen as st
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior
from sateen.core.progress import Progress
from sateen.core.seeds import stream_seed
from sateen.core.types import File, FloatArray
from sateen.serve.documents import Question

Share: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]
Theta: TypeAlias = dict[str, float]
_NEAR: Final = 16  # points of a refinement around a point
_SPREAD: Final = 0.12  # of these, of an axis of length 2
_AIM: Final = 0.02  # of the space undecided, or the mean width: what a search aims at, beyond its budget
WRONG: Final = 0.05  # the share of the region that may be wrong
_SPLIT: Final = (
    "it is certification number {attempt} of the same posterior, so the confidence is split: this one may be wrong "
    "with probability (1 - {confidence:g})/{parts}"
)


@dataclass(frozen=True, slots=True)
class RefineAsked:
    """Runs at chosen points."""

    where: Literal["unsure"] | dict[Literal["theta"], Theta]
    threshold: float | None = None
    runs: Annotated[int, Meta(ge=1, le=10**7)] | None = None


@dataclass(frozen=True, slots=True)
class CertifyAsked:
    """A claim."""

    threshold: float
    region: Literal["above", "below"]
    confidence: Share = 0.95
    runs: Annotated[int, Meta(ge=1, le=10**9)] | None = None


def check_threshold(p: float | None) -> None:
    """Refuse a threshold that no probability can be on both sides of."""
    if p is not None and not 0.0 < p < 1.0:
        raise InputError(f"the threshold p is between 0 and 1, and not {p:g} itself", remedy="move p inside")


def searched(
    question: Question, start: st.Observations, number: int, round_: Mapping[str, Any], options: Mapping[str, Any]
) -> st.Observations:
    """What `st.refine` observes beyond what is there: near a threshold, or where the band is widest."""
    threshold = round_["threshold"]
    goal = st.Width(_AIM) if threshold is None else st.Threshold(threshold, undecided=_AIM)
    seed = stream_seed(question.document.seed, "serve refine", number)
    refined = st.refine(
        question.model,
        question.formula,
        question.space,
        goal=goal,
        budget=round_["budget"],
        seed=seed,
        learner=question.learner,
        start=start,
        **options,
    )
    return refined.observations[len(start) :]


def around(question: Question, theta: Mapping[str, float], number: int) -> FloatArray:
    """The point itself and others around it, inside the space."""
    space = question.space
    centre = space.to_unit(space.points(dict(theta)).theta)
    seed = stream_seed(question.document.seed, "serve near", number)
    cloud = st.Space(dict.fromkeys(space.names, (-1.0, 1.0))).sobol(_NEAR - 1, seed=seed).theta
    near = np.concatenate([centre, np.clip(centre + _SPREAD * cloud, -1.0, 1.0)])
    return space.from_unit(near)


def certified(
    question: Question,
    posterior: FullPosterior,
    before: Sequence[dict[str, Any]],
    body: dict[str, Any],
    store: File,
    progress: Progress,
) -> dict[str, Any]:
    """The claim that a certificate proves, as plain data; every further one of the same posterior is a new attempt."""
    threshold, confidence = body["threshold"], body["confidence"]
    fingerprint = posterior.training.fingerprint
    attempt = 1 + sum(each["posterior"] == fingerprint for each in before)
    seed = stream_seed(question.document.seed, "serve certify", len(before))
    sides: dict[str, float] = {body["region"]: threshold}
    regions = st.decide(posterior, seed=seed, above=sides.get("above"), below=sides.get("below"))
    certificate = st.certify(
        regions,
        question.model,
        question.formula,
        wrong=WRONG,
        confidence=confidence,
        seed=seed,
        attempt=attempt,
        budget=body["runs"],
        store=store,
        progress=progress,
        **question.caps,
    )
    note = _SPLIT.format(attempt=attempt, confidence=confidence, parts=attempt * (attempt + 1))
    return {
        "sentence": str(certificate.claim),
        "text": str(certificate),
        "holds": certificate.holds,
        "threshold": threshold,
        "region": body["region"],
        "confidence": confidence,
        "runs": certificate.runs,
        "attempt": attempt,
        "posterior": fingerprint,
        "note": note if attempt > 1 else None,
        "done": True,
        "progress": 1.0,
    }
