"""The results for a property as plain data: scores, predictions, claims, and the verdict in short sentences.

Nothing in it depends on the clock or on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import numpy as np

from sateen.assess.score import score
from sateen.assess.widths import Widths, widths_over
from sateen.core.observations import Observations
from sateen.core.posterior import CompletedPosterior, FullPosterior
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.core.space import Points, Space
from sateen.core.text import percent, plural
from sateen.guarantee.error_bound import bound_error
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.truth import Truth
from sateen.learning.stored import RefitPosterior
from sateen.logic.formula import And, Formula, Iff, Implies, Node, Or
from sateen.study.extremes import extreme_of
from sateen.study.labels import Labels

LEVEL: Final = 0.95  # of credible intervals where no guarantee says another, so that all in a table have one level
_ALONG_ONE: Final = 201  # points of the one axis there is
_ALONG_TWO: Final = 31  # points of each of two axes
_ELSEWHERE: Final = 512  # points of a Sobol sequence in more dimensions
_CONFIDENCE: Final = 0.95  # of the bound on the mean error, where the guarantee has none
_MOST_RANGES: Final = 3  # parameters whose ranges a sentence names
_MOST_VALUES: Final = 8  # parameters whose values it names
_SIGNS: Final[dict[type[Node], str]] = {And: "&", Or: "|", Implies: "->", Iff: "<->"}
_COLUMNS: Final = ("mean", "std", "lower", "upper")
REFITTED: Final = "the file keeps the learner, its settings, the training and the seed; using it later fits again"


def shown_points(space: Space) -> Points:
    """The points at which a result has predictions: a grid in one or two dimensions, else a Sobol sequence."""
    if not space.names:
        return space.points({})
    if len(space) <= 2:
        return space.grid(_ALONG_ONE if len(space) == 1 else _ALONG_TWO)
    return space.sobol(_ELSEWHERE, seed=0)


def credible_width(posterior: FullPosterior, level: float) -> float:
    """The mean width of the credible intervals over the space."""
    return _widths(posterior, level).mean


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
    labels: Mapping[str, Labels],
    posteriors: Mapping[str, FullPosterior],
    guarantee: Guarantee | None,
) -> dict[str, object]:
    """All results for a property; the learners are in the order of the study."""
    test, held_out = labels.get("test"), labels.get("calibrate")
    first = next(iter(posteriors.values()))
    train = labels["train"]
    assert isinstance(train, Observations)
    source = f"from {plural(int(train.trials.sum()), 'training run')}"
    where = shown_points(first.space)
    level = LEVEL if guarantee is None else guarantee.level
    widths = {learner: _widths(posterior, level) for learner, posterior in posteriors.items()}
    guaranteed = None if guarantee is None else widths_over(guarantee.space, guarantee.predict)
    extreme = extreme_of(each for each in labels.values() if isinstance(each, Observations))
    predicted = {learner: posterior.predict(where, level=level) for learner, posterior in posteriors.items()}
    guarded = None if guarantee is None else guarantee.predict(where)
    leading = predicted[next(iter(predicted))] if guarded is None else guarded
    bound = None
    if guarantee is not None and held_out is not None:
        known = {"truth": held_out} if isinstance(held_out, Truth) else {"held_out": held_out}
        confidence = guarantee.claim.confidence or _CONFIDENCE
        bound = bound_error(guarantee.posterior, **known, confidence=confidence)
    claims = [leading.claim] if bound is None else [leading.claim, bound.claim]
    return {
        "formula": None if formula is None else {"text": str(formula), "end": formula.end, "horizon": formula.horizon},
        "verdict": "\n".join(
            (
                *(() if extreme is None else (capital(extreme.sentence(name)),)),
                _asked(name, formula, first.space),
                found_text(leading, guaranteed or widths[next(iter(widths))], source),
                promise(leading),
            )
        ),
        "extreme": extreme and {**asdict(extreme), "sentence": extreme.sentence(name)},
        "claims": [claim.content() for claim in claims],
        "observations": {part: _counted(each) for part, each in labels.items()},
        "learners": {
            learner: _learned(posterior, level, widths[learner], test) for learner, posterior in posteriors.items()
        },
        "guarantee": guarantee and guaranteed and _guaranteed(guarantee, guaranteed, test),
        "error_bound": bound and {**asdict(bound), "claim": bound.claim.content()},
        "predictions": {
            "points": {axis: where.theta[:, n].tolist() for n, axis in enumerate(where.space.names)},
            "level": level,
            "learners": {learner: _columns(prediction) for learner, prediction in predicted.items()},
            "guarantee": guarded and _columns(guarded),
        },
    }


def _widths(posterior: FullPosterior, level: float) -> Widths:
    """How wide the credible intervals of a posterior are."""
    return widths_over(posterior.space, lambda points: posterior.predict(points, level=level))


def _asked(name: str, formula: Formula | None, space: Space) -> str:
    what = name if formula is None else f"{name}, {bracketed(formula.root)}"
    ranges = ", ".join(f"{axis} from {range_.low:g} to {range_.high:g}" for axis, range_ in space.ranges.items())
    where = ranges if len(space) <= _MOST_RANGES else f"{', '.join(space.names)} in their ranges"
    return f"Asked: how probable is {what}{where and f', for {where}'}?"


def bracketed(root: Node) -> str:
    """A formula as text, in which whatever `&`, `|`, `->` or `<->` joins stands in brackets, for readers.

    >>> from sateen.logic.parser import stl
    >>> bracketed(stl("G[0, 3] A - B >= 0 & F[3, 6] A > 9 & B > 0").root)
    '(G[0, 3] A - B >= 0) & (F[3, 6] A > 9) & B > 0'
    """
    if (sign := _SIGNS.get(type(root))) is None:
        return str(root)
    return f" {sign} ".join(f"({each})" if each.children else str(each) for each in root.children)


def found_text(leading: Prediction, widths: Widths, source: str) -> str:
    """The lowest and the highest probability with their intervals, and how wide intervals are.

    `source` says what was learned from, for a study may have found something before and after a refinement.
    """
    found = f"Found {source}"
    if len(leading) == 1:
        return f"{found}: the probability is about {interval_text(leading, 0)}."
    low, high = int(np.argmin(leading.mean)), int(np.argmax(leading.mean))
    few = len(leading.points.space) <= _MOST_VALUES
    ends = [interval_text(leading, row) + f" at {place_text(leading.points, row)}" * few for row in (low, high)]
    wide = f"{percent(leading.level)} intervals are {widths.mean:.3g} wide on average"
    return f"{found}: the probability is lowest, {ends[0]}, and highest, {ends[1]}; {wide}."


def refined_text(posterior: FullPosterior) -> str:
    """What was found after a refinement, which adds its runs to those of the training."""
    runs = int(posterior.training.observations.trials.sum())
    leading = posterior.predict(shown_points(posterior.space), level=LEVEL)
    return found_text(leading, _widths(posterior, LEVEL), f"after refinement, from {runs:,} runs")


def shown_verdict(verdict: str, *, guaranteed: bool) -> list[str]:
    """The lines of a verdict as readers see them.

    What a refinement found replaces what the training alone found, unless the latter has a guarantee.

    >>> shown_verdict("Found from 9 training runs: a.\\nDecided: b.\\nFound after refinement: c.", guaranteed=False)
    ['Found after refinement: c.', 'Decided: b.']
    """
    lines = verdict.splitlines()
    refined = next((line for line in lines if line.startswith("Found after refinement")), None)
    if refined is None or guaranteed:
        return lines
    return [refined if line.startswith("Found from") else line for line in lines if line != refined]


def promise(leading: Prediction) -> str:
    """What the intervals guarantee, and what they do not, in a sentence."""
    claim = leading.claim
    if claim.mode == "credible":
        belief = f"the {percent(leading.level)} intervals are what {claim.by} believes"
        rest = f", and it is assumed that {claim.assuming}" if claim.assuming else ""
        return f"Not guaranteed: {belief}{rest}; runs held out for calibration would turn them into a guarantee."
    what, limit = "contain the true probability", "any one given parameter"
    if claim.target == "frequency":
        limit += ", and the probability itself"
        what = f"contain the frequency among {'as many' if claim.runs is None else f'{claim.runs:,}'} fresh runs"
    if claim.mode == "pac":
        space, share = leading.points.space, f"at least {percent(claim.level)}"
        usual = space.names and claim.measure == drawn_uniformly(space)
        where = f"in {share} of the space" if usual else f"for {share} of parameters {claim.measure}"
        sure = f"with confidence {percent(claim.confidence)}, the intervals {what} {where}"
    else:
        sure = f"for a random parameter and calibration, the intervals {what} with probability {percent(claim.level)}"
    return f"Guaranteed: {sure}{_unless(claim)}. Not guaranteed: {limit}."


def _unless(claim: Claim) -> str:
    """What a guarantee takes for granted."""
    fixed = claim.points is not None and claim.runs is None
    terms = ["the numbers of runs per point were fixed before the runs"] * fixed
    terms += [claim.assuming] if claim.assuming else []
    return f", if {' and '.join(terms)}" if terms else ""


def interval_text(predicted: Prediction, row: int) -> str:
    """A mean with its interval."""
    mean, low, high = (getattr(predicted, column)[row] for column in ("mean", "lower", "upper"))
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"


def place_text(points: Points, row: int) -> str:
    """The parameters of a row."""
    values = zip(points.space.names, points.theta[row].tolist(), strict=True)
    return ", ".join(f"{name} = {value:.4g}" for name, value in values)


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _counted(observations: Labels) -> dict[str, object]:
    if isinstance(observations, Truth):
        about: dict[str, object] = {"points": len(observations), "runs": 0, "exact": True}
        return {**about, "design": observations.points.design, "fingerprint": observations.fingerprint}
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


def _scored(prediction: Prediction, test: Labels) -> dict[str, object]:
    return asdict(score(prediction, truth=test.values) if isinstance(test, Truth) else score(prediction, test))


def _learned(posterior: FullPosterior, level: float, widths: Widths, test: Labels | None) -> dict[str, object]:
    record = posterior.record
    scored = None if test is None else _scored(posterior.predict(test.points, level=level), test)
    return {
        "learner": posterior.kind,
        "converged": record.converged,
        "record": record.verdict,
        "notes": notes_of(posterior),
        "importance": posterior.importance(),
        "mean_width": widths.mean,
        "score": scored,
    }


def _guaranteed(guarantee: Guarantee, widths: Widths, test: Labels | None) -> dict[str, object]:
    return {
        "method": guarantee.method,
        "learner": getattr(guarantee.posterior, "kind", ""),
        "calibration": asdict(guarantee.calibration),
        "mean_width": widths.mean,
        "greatest_width": widths.greatest,
        "points_searched": widths.searched,
        "score": None if test is None else _scored(guarantee.predict(test.points), test),
    }


def _columns(predicted: Prediction) -> dict[str, list[float]]:
    return {name: getattr(predicted, name).tolist() for name in _COLUMNS}
