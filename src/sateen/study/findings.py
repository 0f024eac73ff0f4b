"""The results for a property as plain data: scores, predictions, claims, and the verdict in a sentence.

Nothing in it depends on the clock or on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import numpy as np

from sateen.assess.score import score
from sateen.core.observations import Observations
from sateen.core.posterior import CompletedPosterior, FullPosterior
from sateen.core.prediction import Prediction
from sateen.core.space import Points, Space
from sateen.guarantee.error_bound import bound_error
from sateen.guarantee.guarantee import Guarantee
from sateen.learning.stored import RefitPosterior
from sateen.logic.formula import Formula

LEVEL: Final = 0.95  # of the credible intervals that are scored and shown
_ALONG_ONE: Final = 201  # points of the one axis there is
_ALONG_TWO: Final = 31  # points of each of two axes
_ELSEWHERE: Final = 512  # points of a Sobol sequence in more dimensions
_CONFIDENCE: Final = 0.95  # of the bound on the mean error, where the guarantee has none
_COLUMNS: Final = ("mean", "std", "lower", "upper")
REFITTED: Final = "the file keeps the learner, its settings, the training and the seed; using it later fits again"


def shown_points(space: Space) -> Points:
    """The points at which a result has predictions: a grid in one or two dimensions, else a Sobol sequence."""
    if not space.names:
        return space.points({})
    if len(space) <= 2:
        return space.grid(_ALONG_ONE if len(space) == 1 else _ALONG_TWO)
    return space.sobol(_ELSEWHERE, seed=0)


def is_refitted(posterior: FullPosterior) -> bool:
    """Whether a posterior is kept as what made it, and fitted again when it is used after its file was loaded."""
    completed = isinstance(posterior, CompletedPosterior) and not hasattr(posterior.belief, "save")
    return completed or isinstance(posterior, RefitPosterior)


def notes_of(posterior: FullPosterior) -> list[str]:
    """What the fit noted, and whether loading repeats it."""
    return [*posterior.record.notes, *([REFITTED] if is_refitted(posterior) else [])]


def property_content(
    name: str,
    formula: Formula | None,
    observed: Mapping[str, Observations],
    posteriors: Mapping[str, FullPosterior],
    guarantee: Guarantee | None,
) -> dict[str, object]:
    """All results for a property; the learners are in the order of the study."""
    test, held_out = observed.get("test"), observed.get("calibrate")
    first = next(iter(posteriors.values()))
    where = shown_points(first.space)
    predicted = {learner: posterior.predict(where, level=LEVEL) for learner, posterior in posteriors.items()}
    guarded = None if guarantee is None else guarantee.predict(where)
    leading = predicted[next(iter(predicted))] if guarded is None else guarded
    bound = None
    if guarantee is not None and held_out is not None:
        bound = bound_error(guarantee.posterior, held_out, confidence=guarantee.claim.confidence or _CONFIDENCE)
    claims = [leading.claim] if bound is None else [leading.claim, bound.claim]
    return {
        "formula": None if formula is None else {"text": str(formula), "end": formula.end, "horizon": formula.horizon},
        "verdict": _verdict(name, leading, guarantee is not None),
        "claims": [claim.content() for claim in claims],
        "observations": {part: _counted(observations) for part, observations in observed.items()},
        "learners": {learner: _learned(posterior, test) for learner, posterior in posteriors.items()},
        "guarantee": guarantee and _guaranteed(guarantee, leading, test),
        "error_bound": bound and {**asdict(bound), "claim": bound.claim.content()},
        "predictions": {
            "points": {axis: where.theta[:, n].tolist() for n, axis in enumerate(where.space.names)},
            "level": LEVEL,
            "learners": {learner: _columns(prediction) for learner, prediction in predicted.items()},
            "guarantee": guarded and _columns(guarded),
        },
    }


def _verdict(name: str, leading: Prediction, guaranteed: bool) -> str:
    """Where f is lowest and highest, how wide the intervals are, and what they claim, in one sentence."""
    low, high = int(np.argmin(leading.mean)), int(np.argmax(leading.mean))
    if len(leading) == 1:
        span = f"the probability is about {_number(leading.mean[0])}"
    else:
        ends = [f"{_number(leading.mean[row])} ({_place(leading.points, row)})" for row in (low, high)]
        span = f"the probability is lowest, about {ends[0]}, and highest, about {ends[1]}"
    width = leading.width
    kind = "guaranteed" if guaranteed else "credible"
    wide = f"its {kind} intervals are {_number(width.mean())} wide on average and {_number(width.max())} at most"
    return f"{name}: {span}; {wide}: {leading.claim}."


def _number(value: float) -> str:
    return f"{value:.3g}"


def _place(points: Points, row: int) -> str:
    values = zip(points.space.names, points.theta[row].tolist(), strict=True)
    return "at " + ", ".join(f"{name} = {value:.4g}" for name, value in values)


def _counted(observations: Observations) -> dict[str, object]:
    return {
        "points": len(observations),
        "runs": int(observations.trials.sum()),
        "satisfied": int(observations.satisfied.sum()),
        "undecided": int(observations.undecided.sum()),
        "design": observations.points.design,
        "relevant": list(observations.relevant),
        "seed": observations.seed,
        "fingerprint": observations.fingerprint,
    }


def _learned(posterior: FullPosterior, test: Observations | None) -> dict[str, object]:
    record = posterior.record
    scored = None if test is None else asdict(score(posterior.predict(test.points, level=LEVEL), test))
    return {
        "learner": posterior.kind,
        "converged": record.converged,
        "record": record.verdict,
        "notes": notes_of(posterior),
        "importance": posterior.importance(),
        "score": scored,
    }


def _guaranteed(guarantee: Guarantee, shown: Prediction, test: Observations | None) -> dict[str, object]:
    width = shown.width
    return {
        "method": guarantee.method,
        "learner": getattr(guarantee.posterior, "kind", ""),
        "calibration": asdict(guarantee.calibration),
        "mean_width": float(width.mean()),
        "greatest_width": float(width.max()),
        "score": None if test is None else asdict(score(guarantee.predict(test.points), test)),
    }


def _columns(predicted: Prediction) -> dict[str, list[float]]:
    return {name: getattr(predicted, name).tolist() for name in _COLUMNS}
