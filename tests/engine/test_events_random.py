"""Events amid noise: every path is checked step by step against the meaning of events, written out again for it."""

from __future__ import annotations

import pytest

from lane_checks import disagreements, formulas_of, lane_verdicts, row
from path_audit import Unexplained, audited
from sateen.core.path import Path, Verdict
from sateen.engine.run import Runner, replay
from sateen.engine.simulate import simulate
from sateen.model.model import Model

# Events by the clock, by the state, by both, at times that the state decides, and one that sets off another.
CLINIC = Model.parse("""
    species x = 0, y = 1, doses = 0 in [0, 3]
    real k = 1, deadline = 2.5
    parameter speed = 1, T = 1.5
    birth: 0 -> x @ speed * k when x < 8
    turn:  x -> y @ mass_action(speed)
    fade:  y -> 0 @ 0.7 * speed * y
    event surge:  k := k + 0.5, y := y + 2 when time >= T
    event burst:  x := 0, doses := doses + 1 when x >= 3 and doses < 3
    event calm:   k := 0.8 when doses >= 2 and time > 2
    event remind: y := y + 1, deadline := deadline + 1 + 0.25 * y when time >= deadline
    event flush:  y := 1 when y >= 5 and not k < 1
    event first:  x := x + 1 when y == 1 initially false
""")
EVERY_KIND = {"clock", "jump", "jump with events"}


@pytest.mark.parametrize("speed", [0.4, 2.0])
def test_every_step_of_the_reference_simulator_is_explained(speed: float) -> None:
    theta = {"speed": speed, "T": 1.25}
    seen = [audited(CLINIC, simulate(CLINIC, theta, until=8, seed=seed)) for seed in range(60)]
    assert set.union(*seen) == EVERY_KIND


@pytest.mark.parametrize("speed", [0.4, 2.0])
def test_every_step_of_a_lane_is_explained(speed: float) -> None:
    theta = {"speed": speed, "T": 1.25}
    seen = [audited(CLINIC, replay(CLINIC, theta, until=8, seed=3, run=run)) for run in range(60)]
    assert set.union(*seen) == EVERY_KIND


def test_the_audit_sees_an_event_that_is_late_early_missing_or_else() -> None:
    path = replay(CLINIC, {"T": 1.25}, until=1.3, seed=3)
    audited(CLINIC, path)
    surge = path.times.tolist().index(1.25)
    for times, states in (
        ([*path.times[:surge], 1.26, *path.times[surge + 1 :]], path.states),
        ([*path.times[:surge], 1.24, *path.times[surge + 1 :]], path.states),
        ([*path.times[:surge], *path.times[surge + 1 :]], [*path.states[:surge], *path.states[surge + 1 :]]),
        (path.times, path.states + [[0.0, 0.0, 0.0, float(place >= surge), 0.0] for place in range(len(path))]),
    ):
        with pytest.raises(Unexplained):
            audited(CLINIC, Path(times, states, path.species, path.end, path.absorbed, path.values))


# Bounds of windows, and delays, meet instants of events: 1.5 and 2.5.
FORMULAS = formulas_of(
    [
        "F[0, 1.5] y >= 3",
        "F[0.5, 1.5] k > 1.2",
        "G[1.5, 3] k > 1",
        "G[0, 1.5] k == 1",
        "(doses < 1) U[1.5, 4] (y > 3)",
        "(deadline < 3) U[2.5, 3] (y > 2)",
        "F[1, 1.5] G[0, 0.5] x < 2",
        "F[0, 3] (y - y(t-1.5) >= 3)",
        "F[3, 3] (k - k(t-1.5) > 0.4)",
        "(x < 2 U[1.5, 3] y > 3) & F[2.5, 2.5] y > 2",
        "G[0, 2] (x >= 2 -> F[0, 1.5] doses >= 1)",
        "F[2.5, 3.5] (k < 1 U[0, 1] deadline > 4)",
        ("F[0, 2.5] G (deadline < 3 | y > 1)", 2.5),
    ]
)


@pytest.mark.slow
def test_lanes_and_the_monitor_agree_on_every_run() -> None:
    runner = Runner(CLINIC, FORMULAS)
    theta = {"speed": 1.0, "T": 1.5}
    assert not disagreements(runner, theta, 150, seed=5, until=8)
    assert not disagreements(runner, theta, 50, seed=6, until=8, max_time=2.0)
    verdicts = lane_verdicts(runner, theta, 150, seed=5)
    certain = {str(formula): each[0] for formula, each in zip(FORMULAS, verdicts, strict=True) if len(set(each)) == 1}
    # The surge at 1.5 belongs to [0, 1.5], and at 1.5 it is over: who looks at the state before it gets these wrong.
    assert certain == {
        "F[0.5, 1.5] k > 1.2": Verdict.TRUE,
        "G[0, 1.5] k == 1": Verdict.FALSE,
        "F[3, 3] k - k(t-1.5) > 0.4": Verdict.FALSE,
    }


@pytest.mark.slow
def test_a_run_with_events_is_the_same_in_any_chunk() -> None:
    runner = Runner(CLINIC, FORMULAS)
    theta = row(CLINIC, {"speed": 1.0, "T": 1.5})
    whole = runner.run([theta], [[4, 0, 60]], seed=9).satisfied[:, 0]
    parts = runner.run([theta] * 3, [[4, 0, 7], [4, 7, 40], [4, 47, 13]], seed=9).satisfied.sum(axis=1)
    assert whole.tolist() == parts.tolist()
