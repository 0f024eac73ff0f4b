"""Training runs for a report: one that satisfied the property and one that violated it, replayed from their seeds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

import sateen as st
from sateen.core.errors import ModelWarning
from sateen.core.observations import Observations
from sateen.core.registry import call_provider
from sateen.study.result import PropertyResult, Result

__all__ = ["Example", "examples"]

_MOST_JUMPS: Final = 2_000_000  # in runs that are replayed until one has the wanted verdict
_KINDS: Final = ("satisfied", "violated")


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # told when the study was read
        model = st.Model.parse(result.model)
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
