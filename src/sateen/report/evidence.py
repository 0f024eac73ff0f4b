"""What a report shows of single points: a run of each verdict, and how far the mean is from exact probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

import sateen as st
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.registry import call_provider
from sateen.report.data import MOST_DOTS, Json, axis_data, evenly, run_data, short, six_digits
from sateen.report.words import parsed_model
from sateen.study.result import PropertyResult, Result

_MOST_JUMPS: Final = 2_000_000  # in runs that are replayed until one has the wanted verdict
_KINDS: Final = ("satisfied", "violated")
_ENDS: Final = 2  # values of an axis whose picture has no grid


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A training run, replayed: `run` of the point in row `point`, with what decides its verdict."""

    point: int
    run: int
    path: st.Path
    explanation: st.Explanation


def examples(result: Result, answer: PropertyResult) -> dict[str, Example]:
    """A training run that satisfied the property and one that violated it, replayed from their seeds.

    Each is of the point where both kinds are nearest to equally many, among the points that have its kind. Runs of a
    callable are not replayed, for that would run its file.
    """
    question = result.content["question"]
    if answer.formula is None or "callable" in question or not isinstance(answer.train.seed, int):
        return {}
    model = parsed_model(result)
    formula = st.stl(answer.formula, end=answer.end)
    runs = {kind: _first_run(model, formula, answer.train, question["caps"], kind) for kind in _KINDS}
    return {kind: example for kind, example in runs.items() if example is not None}


def _first_run(
    model: st.Model, formula: st.Formula, train: Observations, caps: Mapping[str, float], kind: str
) -> Example | None:
    """The first run of a kind, at the most balanced point that has one; None if none has, or only far on."""
    counts = getattr(train, kind)
    if not counts.any():
        return None
    verdict = st.Verdict.TRUE if kind == "satisfied" else st.Verdict.FALSE
    balance = np.minimum(train.satisfied, train.violated) / np.maximum(train.trials, 1)
    point = int(np.argmax(np.where(counts > 0, 1.0 + balance, 0.0)))
    crowd, jumps = caps.get("max_population"), 0
    limits = {name: caps[name] for name in ("max_events", "max_time") if caps.get(name)}
    for run in range(int(train.trials[point])):
        path = call_provider(
            "follow a run", model, formula, train.points[point], seed=train.seed, point=point, run=run, **limits
        )
        assert isinstance(path, st.Path)
        jumps += len(path)
        counted = crowd is None or path.states.max(initial=0.0) <= crowd  # else it was stopped, and is undecided
        if counted and st.monitor(formula, path) is verdict:
            return Example(point, run, path, st.explain(formula, path))
        if jumps > _MOST_JUMPS:
            break
    return None


def drawn_run(example: Example, train: Observations) -> Json:
    """An example as the page draws it."""
    at = ", ".join(f"{name} = {value:.4g}" for name, value in train.points[example.point].items())
    words = f"Training point {example.point}, run {example.run}{f': {at}' if at else ''}."
    explanation = example.explanation
    drawn = run_data(example.path, explanation.lanes, explanation.formula.species, words)
    return {**drawn, "verdict": str(explanation.verdict)}


def error_data(answer: PropertyResult, posterior: FullPosterior) -> Json | None:
    """Mean less truth at each point where it was computed, those of the test before those of the calibration.

    And whether the interval contains the truth: the guaranteed one, if there is one. None where nothing was computed.
    Of more than two parameters the most important come first.
    """
    known = next((labels for labels in (answer.test, answer.calibrate) if isinstance(labels, st.Truth)), None)
    if known is None:
        return None
    guarantee, space = answer.guarantee, known.points.space
    names = space.names if len(space) <= 2 else tuple(posterior.importance())
    rows = evenly(len(known), MOST_DOTS)
    points, truth = known.points[rows], known.values[rows]
    predicted = posterior.predict(points) if guarantee is None else guarantee.predict(points)
    inside = (predicted.lower <= truth) & (truth <= predicted.upper)
    error = predicted.mean - truth
    return {
        "axes": [axis_data(space, name, _ENDS) for name in names],
        "theta": {name: six_digits(points.theta[:, n]) for n, name in enumerate(space.names)},
        "truth": short(truth),
        "error": six_digits(error),
        "low": six_digits(predicted.lower - truth),
        "high": six_digits(predicted.upper - truth),
        "inside": inside.tolist(),
        "covered": float(inside.mean()),
        "worst": float(np.abs(error).max()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "points": len(known),
        "design": known.points.design,
        "level": predicted.level,
        "guaranteed": guarantee is not None,
    }
