"""What the tests of the lanes share: a small fast model, verdicts run by run, and paths as a lane sees them.

The strongest check of the lanes is run by run: `Runner` counts single runs, `replay` gives the very path of each, and
`monitor`, which shares no code with the kernel but the algebra, must say the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sateen.core.path import Path, Verdict
from sateen.engine.run import Counts, Runner, replay
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor
from sateen.model.model import Model

# Fuel turns into x, x into y, and both fade: with little fuel soon absorbed, with much a stationary flow of one or two.
FUEL = Model.parse("""
    species x = 0, y = 1, `fuel's rest` = f0
    constant two = 2
    parameter f0 = 4, k = 1, half = 0.5, speed = 1
    birth: `fuel's rest` -> x @ speed * two * `fuel's rest` / f0
    turn:  x -> y             @ mass_action(speed * k)
    lose:  x -> 0             @ speed * half * x
    fade:  y -> 0             @ y * speed
""")
LITTLE = {"f0": 4.0, "k": 1.0, "half": 0.5, "speed": 1.0}
MUCH = {"f0": 400.0, "k": 1.0, "half": 0.5, "speed": 1.0}
FAST = {"f0": 9000.0, "k": 1.0, "half": 0.5, "speed": 250.0}


def row(model: Model, theta: Mapping[str, float]) -> list[float]:
    """A row of `theta` as Runner takes it."""
    values = model.values(theta)
    return [values[parameter.name] for parameter in model.parameters]


def count(runner: Runner, theta: Mapping[str, float], runs: int, *, seed: int, point: int = 0, **caps) -> Counts:
    """The counts of one point."""
    return runner.run([row(runner.model, theta)], [[point, 0, runs]], seed=seed, **caps)


def lane_verdicts(
    runner: Runner, theta: Mapping[str, float], runs: int, *, seed: int, point: int = 0, **caps
) -> list[list[Verdict]]:
    """What the lanes say of each formula, run by run."""
    items = [[point, run, 1] for run in range(runs)]
    counts = runner.run([row(runner.model, theta)] * runs, items, seed=seed, **caps)
    unsure = counts.undecided.sum(axis=1)
    assert set(np.unique(counts.satisfied + unsure)) <= {0, 1}
    return [
        [Verdict.UNKNOWN if doubt else Verdict.of(bool(hit)) for hit, doubt in zip(hits, doubts, strict=True)]
        for hits, doubts in zip(counts.satisfied.tolist(), unsure.tolist(), strict=True)
    ]


def as_a_lane_sees(
    path: Path, max_events: float = math.inf, max_time: float = math.inf, max_population: float = math.inf
) -> Path:
    """The path up to where a capped lane knows it: until just before the first jump that it does not follow.

    A lane knows how long its last state lasts, so it knows a little more than max_time; and a state that it enters by
    the last event allowed it has not looked at.
    """
    beyond = [index for index, time in enumerate(path.times.tolist()) if time > max_time or index >= max_events]
    beyond += [index + 1 for index in np.flatnonzero(path.states.max(axis=1) > max_population).tolist()]
    if not beyond or min(beyond) == len(path.times):
        assert path.absorbed or math.isinf(min(max_events, max_time)), "replay further to see where the caps bite"
        return path
    kept = min(beyond)
    return Path(
        path.times[:kept],
        path.states[:kept],
        path.species,
        end=math.nextafter(float(path.times[kept]), 0.0),
        values=path.values,
    )


def disagreements(
    runner: Runner,
    theta: Mapping[str, float],
    runs: int,
    *,
    seed: int,
    until: float,
    point: int = 0,
    **caps,
) -> list[str]:
    """The runs on which the lanes and the monitor differ, each with the path on which they do."""
    found = lane_verdicts(runner, theta, runs, seed=seed, point=point, **caps)
    limits = {**caps, **({} if runner.max_population is None else {"max_population": runner.max_population})}
    apart = []
    for run in range(runs):
        path = as_a_lane_sees(replay(runner.model, theta, until=until, seed=seed, point=point, run=run), **limits)
        for place, formula in enumerate(runner.formulas):
            expected = monitor(formula, path)
            if found[place][run] is not expected:
                apart.append(f"{formula!r}, run {run}: lanes {found[place][run]}, monitor {expected}\n{table(path)}")
    return apart


def table(path: Path) -> str:
    """The first states of a path, for a message."""
    rows = zip(path.times.tolist(), path.states.tolist(), strict=True)
    return "\n".join(f"  {time!r}: {state}" for time, state in list(rows)[:30]) + f"\n  end {path.end}, {path.absorbed}"


def frequencies(verdicts: Sequence[Sequence[Verdict]]) -> list[float]:
    """How often each formula holds."""
    return [list(each).count(Verdict.TRUE) / len(each) for each in verdicts]


def formulas_of(texts: Sequence[str | tuple[str, float]]) -> tuple[Formula, ...]:
    """Formulas from text, or from text and an end."""
    from sateen.logic.parser import stl

    return tuple(stl(each) if isinstance(each, str) else stl(each[0], end=each[1]) for each in texts)
