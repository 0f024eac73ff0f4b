"""Runs at one point, which somebody clicked: their verdicts, and each of them with its explanation."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import numpy as np

import sateen as st
from sateen.core.errors import InputError
from sateen.core.path import before_jump
from sateen.core.registry import call_provider
from sateen.core.seeds import stream_seed
from sateen.serve.documents import Question
from sateen.serve.halting import CompilingError, Impatient

Way: TypeAlias = Literal["replay", "simulate"]
_MOST_STEPS: Final = 2000  # of each species that are drawn
_MOST_RUNS: Final = 100
_MOST_EVENTS: Final = 1_000_000
_NO_HORIZON: Final = 100.0  # how long a reference run of a property without a horizon is


class SupersededError(Exception):
    """A newer click has come."""


class Clicks:
    """Makes the runs of clicks. While the engine that replays runs is compiled, in a thread of its own, the reference
    simulator stands in for it; the answer says `by` which of the two a batch was made."""

    def __init__(self) -> None:
        self._compiling: set[str] = set()
        self._newest: Question | None = None  # whose model was looked up there

    def reference(self, question: Question, theta: Mapping[str, float], seed: int) -> dict[str, Any]:
        """One run of the reference simulator, with its explanation."""
        values = question.values(theta)
        if not isinstance(question.model, st.Model):
            return self._shown(question, values, *_asked_function(question, values, seed, 0))
        path = simulated(question, values, seed)
        return self._shown(question, values, st.monitor(_formula(question), path), path)

    def batch(
        self,
        question: Question,
        theta: Mapping[str, float],
        count: int,
        batch: int,
        superseded: Callable[[], bool],
    ) -> dict[str, Any]:
        """The verdicts of `count` runs at a point; another batch has other runs."""
        if not 1 <= count <= _MOST_RUNS:
            raise InputError(f"count is a whole number from 1 to {_MOST_RUNS}, not {count}")
        values, seed = question.values(theta), seed_of(question, batch)
        way = self._way(question, values, seed)
        runs = []
        for run in range(count):
            if superseded():
                raise SupersededError
            verdict, _ = self._made(question, values, seed, run, way)
            runs.append({"verdict": _word(verdict), "seed": seed, "run": run})
        tally = [sum(run["verdict"] == word for run in runs) for word in ("true", "false", "undecided")]
        counts = dict(zip(("holds", "fails", "undecided"), tally, strict=True))
        return {"theta": values, "batch": batch, **counts, "runs": runs, "by": way}

    def one(self, question: Question, theta: Mapping[str, float], run: int, batch: int, way: Way) -> dict[str, Any]:
        """One run of a batch, with its explanation; `way` is what the batch was made by."""
        if not 0 <= run < _MOST_RUNS:
            raise InputError(f"run is a whole number from 0 to {_MOST_RUNS - 1}, not {run}")
        values, seed = question.values(theta), seed_of(question, batch)
        return self._shown(question, values, *self._made(question, values, seed, run, way))

    def compile_soon(self, question: Question) -> None:
        """Have the engine that replays runs compiled, unless it is."""
        model = question.model
        if question is self._newest or not isinstance(model, st.Model):
            return
        self._newest = question
        if str(model) in self._compiling:
            return
        self._compiling.add(str(model))
        point = next(iter(question.space.grid(2)))

        def compile_now() -> None:
            with suppress(st.SateenError):  # of which a click will tell
                st.replay(model, point, until=1e-9, seed=1, progress=None)

        threading.Thread(target=compile_now, name="compile", daemon=True).start()

    def _way(self, question: Question, values: Mapping[str, float], seed: int) -> Way:
        """The engine, unless it must be compiled first, which this begins."""
        if not isinstance(question.model, st.Model):
            return "replay"
        try:
            _replayed(question, values, seed, 0, Impatient())
        except CompilingError:
            self.compile_soon(question)
            return "simulate"
        return "replay"

    def _made(
        self, question: Question, values: dict[str, float], seed: int, run: int, way: Way
    ) -> tuple[st.Verdict, st.Path | None]:
        if not isinstance(question.model, st.Model):
            return _asked_function(question, values, seed, run)
        if way == "simulate":
            path = simulated(question, values, stream_seed(seed, "run", run))
        else:
            path = _replayed(question, values, seed, run, None)
        return st.monitor(_formula(question), path), path

    @staticmethod
    def _shown(
        question: Question, values: dict[str, float], verdict: st.Verdict, path: st.Path | None
    ) -> dict[str, Any]:
        """A run as the page draws it: not more steps than can be seen, and each exact."""
        shown: dict[str, Any] = {"theta": values, "verdict": _word(verdict), "species": [], "times": [], "states": []}
        if path is None:
            return {**shown, "end": 0.0, "bars": []}
        steps = np.arange(len(path))
        if len(path) > _MOST_STEPS:
            steps = np.unique(np.rint(np.linspace(0, len(path) - 1, _MOST_STEPS)).astype(np.int64))
            shown["note"] = f"drawn with {len(steps):,} of its {len(path):,} steps"
        states = [path.states[steps, place].tolist() for place in range(len(path.species))]
        shown |= {"species": list(path.species), "times": path.times[steps].tolist(), "states": states}
        bars = [] if question.formula is None else _bars(st.explain(question.formula, path))
        return {**shown, "end": path.end, "bars": bars}


def seed_of(question: Question, batch: int) -> int:
    """The seed of a batch of runs."""
    return stream_seed(question.document.seed, "click", batch)


def _formula(question: Question) -> st.Formula:
    if question.formula is None:
        raise InputError("a model needs a property")
    return question.formula


def _replayed(
    question: Question, values: Mapping[str, float], seed: int, run: int, progress: Impatient | None
) -> st.Path:
    """The run that `observe` makes, up to where it stops."""
    options: dict[str, Any] = {} if progress is None else {"progress": progress}
    options |= {name: cap for name, cap in question.caps.items() if name != "max_population"}
    formula = _formula(question)
    followed: Any = call_provider(
        "follow a run", question.model, formula, values, seed=seed, point=0, run=run, **options
    )
    assert isinstance(followed, st.Path)
    return _capped(question, followed)


def simulated(question: Question, values: Mapping[str, float], seed: int, most: int = _MOST_EVENTS) -> st.Path:
    """A run of the reference simulator, of `most` events or fewer, which stops where `observe` would stop it."""
    assert isinstance(question.model, st.Model)
    caps, horizon = question.document.caps, _formula(question).horizon
    until = min(horizon if math.isfinite(horizon) else _NO_HORIZON, caps.max_time or math.inf)
    events = min(most, caps.max_events or most)
    return _capped(question, st.simulate(question.model, values, until=until or 1.0, seed=seed, max_events=events))


def _capped(question: Question, path: st.Path) -> st.Path:
    """The path as far as `observe` looks at it: up to jump number `max_events`, which it does not see, and to the end
    of the first state in which a count is above `max_population`."""
    assert isinstance(question.model, st.Model)
    caps = question.document.caps
    stop = caps.max_events or len(path)
    if caps.max_population is not None:
        whole = {variable.name for variable in question.model.variables if variable.whole}
        counts = [place for place, name in enumerate(path.species) if name in whole]
        crowded = np.flatnonzero((path.states[:, counts] > caps.max_population).any(axis=1))
        stop = min(stop, *(int(row) + 1 for row in crowded[:1]), len(path))
    return before_jump(path, stop)


def _asked_function(
    question: Question, values: dict[str, float], seed: int, run: int
) -> tuple[st.Verdict, st.Path | None]:
    """What a black box answers in the very run that `observe` would make, at point 0."""
    assert not isinstance(question.model, st.Model)
    answer = question.model(dict(values), np.random.default_rng(np.random.SeedSequence((seed, 0, run))))
    if isinstance(answer, st.Path):
        return st.monitor(_formula(question), answer), answer
    return answer if isinstance(answer, st.Verdict) else st.Verdict.of(bool(answer)), None


def _bars(told: st.Explanation) -> list[dict[str, Any]]:
    """For every subformula the times at which it is true, false and unknown, up to the end of the run."""
    bars = []
    for text, depth, holds, unknown in told.lanes:
        cut = [[[start, min(stop, told.end)] for start, stop in spans] for spans in (holds, unknown)]
        rest, last = [], 0.0
        for start, stop in sorted(cut[0] + cut[1]):
            if start > last:
                rest.append([last, start])
            last = max(last, stop)
        if last < told.end:
            rest.append([last, told.end])
        bars.append({"text": text, "depth": depth, "true": cut[0], "false": rest, "unknown": cut[1]})
    return bars


def _word(verdict: st.Verdict) -> str:
    return "undecided" if verdict is st.Verdict.UNKNOWN else str(verdict)
