"""What lasts and what is delayed, decided as the lanes run: against the monitor run by run, and where a log remains."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from lane_checks import FAST, FUEL, LITTLE, MUCH, count, disagreements, lane_verdicts
from lane_formulas import Case, formula, looking_back
from sateen.core.path import Path, Verdict
from sateen.engine.emit import kernel_source
from sateen.engine.lanes import Lanes
from sateen.engine.run import Runner, replay
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model


def logged(model: Model, *texts: str) -> list[str]:
    """The formulas that need a log."""
    lanes = Lanes(model, tuple(map(stl, texts)), checked=False, population=False, record=False)
    return [texts[place] for place in lanes.nested]


def test_random_formulas_of_what_lasts_have_the_monitors_verdicts_run_by_run() -> None:
    case = Case.of(1, formula, 5)
    assert len(case.logged) <= 2
    assert case.apart(60) == []


def test_random_formulas_with_delays_have_the_monitors_verdicts_run_by_run() -> None:
    case = Case.of(5, looking_back, 4)
    assert len(case.logged) <= 1
    assert case.apart(60) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [formula, looking_back])
@pytest.mark.parametrize("number", range(10, 14))
def test_more_random_formulas_have_the_monitors_verdicts_run_by_run(number: int, kind) -> None:
    assert Case.of(number, kind).apart(100) == []


def test_the_random_formulas_are_of_both_kinds_and_their_verdicts_of_all_three() -> None:
    rng = random.Random(0)
    for kind in (formula, looking_back):
        texts = [kind(rng) for _ in range(200)]
        assert len(logged(FUEL, *texts)) < 80
    verdicts = Counter(Case.of(1, formula, 5).verdicts(60))
    assert all(verdicts[each] > 10 for each in (Verdict.TRUE, Verdict.FALSE))


# What lasts.


def test_a_stretch_must_go_on_beyond_the_end_of_its_window_and_may_begin_with_it() -> None:
    """Closed ends, at the one time that is not drawn: x stays 0 from time 0 to the first jump and y is 1."""
    still = Model.parse("species x = 0, y = 1\nparameter k = 1\nup: 0 -> x @ k when x < 1")
    runner = Runner(still, (stl("F[0, 0] G[0, 2] x == 0"), stl("F[0, 1] G[1, 2] x == 0"), stl("G[0, 2] x == 0")))
    whole, later, plain = lane_verdicts(runner, {"k": 0.5}, 400, seed=1)
    assert whole == later == plain
    assert disagreements(runner, {"k": 0.5}, 200, seed=1, until=1000) == []


def test_a_lane_stops_at_the_event_that_decides() -> None:
    """A run takes some seven births until x has been 5 or more for one time unit, and a thousand to the horizon."""
    birth = Model.parse("species x = 0\nbirth: 0 -> x @ 1")
    counts = count(Runner(birth, (stl("F[0, 1000] G[0, 1] x >= 5"),)), {}, 64, seed=2)
    assert counts.satisfied.tolist() == [[64]]
    assert counts.events < 10 * 64


def test_verdicts_of_what_lasts_are_those_of_the_path_known_so_far() -> None:
    texts = ("F[0, 3] G[0, 0.4] x == 1", "G (x > 0 -> F[0, 1] y > 1)", "(x < 3) U[0.5, 3] (G[0.1, 0.6] y < 3)")
    assert logged(FUEL, *texts) == []
    runner = Runner(FUEL, tuple(map(stl, texts)))
    for caps in ({"max_events": 1}, {"max_events": 6}, {"max_time": 1.3}):
        assert disagreements(runner, MUCH, 60, seed=3, until=60, **caps) == []


def test_an_unbounded_stretch_is_decided_by_absorption() -> None:
    texts = ("F G x + y == 0", "G F x > 0", "F (x == 1 & G y < 3)")
    assert logged(FUEL, *texts) == []
    runner = Runner(FUEL, tuple(map(stl, texts)))
    assert disagreements(runner, LITTLE, 100, seed=4, until=math.inf) == []
    assert count(runner, LITTLE, 100, seed=4).undecided.sum() == 0


def test_with_events_at_given_times_what_lasts_is_decided_on_a_log() -> None:
    """x is 1 on [0.1, 0.4): just as long as 0.3, which is not long enough for a closed window."""
    model = Model.parse("""
        species x = 0, z = 0
        parameter k = 1
        idle: 0 -> z @ k
        event on: x := 1 when time >= 0.1
        event off: x := 0 when time >= 0.4
    """)
    texts = ("F[0, 1] G[0, 0.3] x == 1", "F[0, 1] G[0, 0.2999] x == 1", "F[0, 1] x - x(t-0.3) > 0")
    assert logged(model, *texts) == list(texts)
    counts = count(Runner(model, tuple(map(stl, texts))), {"k": 1.0}, 10, seed=5)
    assert counts.satisfied.tolist() == [[0], [10], [10]]


# What is delayed.


def test_before_time_0_a_delayed_count_has_its_initial_value() -> None:
    death = Model.parse("species x = 10\nfade: x -> 0 @ x")
    texts = ("G[0, 1] x(t-1) == 10", "G[0, 1.5] x(t-1) == 10", "x(t-0.5) == x")
    assert logged(death, *texts) == []
    counts = count(Runner(death, tuple(map(stl, texts))), {}, 500, seed=6)
    first, longer, now = counts.satisfied[:, 0].tolist()
    assert first == now == 500  # up to time 1 inclusive, what is read is before the first jump
    assert 0 < longer < 40  # no death up to time 1/2 has probability exp(-5)


def test_a_ring_grows_while_more_than_its_rows_lie_within_a_delay() -> None:
    """Thousands of jumps within each delay, and lags of which one is read long after the other."""
    theta = {**FAST, "f0": 900.0}
    texts = ("F[0, 20] x - x(t-4) > 3", "G[0.5, 9] x(t-3) + y(t-0.01) < 9", "(y < 9) U[1, 9] (x(t-1) == 6)")
    runner = Runner(FUEL, tuple(map(stl, texts)))
    assert logged(FUEL, *texts) == []
    assert len(replay(FUEL, theta, until=3, seed=7)) > 1500
    assert disagreements(runner, theta, 20, seed=7, until=300) == []


def test_many_lanes_and_points_share_a_ring() -> None:
    """The verdicts of runs side by side are those of each run alone, whatever the ring held before."""
    runner = Runner(FUEL, (stl("F[0, 3] x - x(t-0.5) > 1"), stl("F[0, 2] y(t-1) > 1")))
    thetas = [list({**LITTLE, "speed": speed}.values()) for speed in (0.1, 1.0, 5.0, 50.0)]
    items = [(point, 0, 300) for point in range(4)]
    together = runner.run(thetas, items, seed=8)
    for point in range(4):
        alone = runner.run([thetas[point]], [items[point]], seed=8)
        assert alone.satisfied[:, 0].tolist() == together.satisfied[:, point].tolist()
    assert 0 < together.satisfied.sum() < 2400


@pytest.mark.parametrize("text", ["F[0, 1] x / (1 + x(t-1)) > 1", "F[0, 1] x(t-1)^2 > 3", "F[0, 1] G[0, 1] x(t-1) > 0"])
def test_sides_that_may_be_undefined_and_stretches_of_the_past_keep_their_log(text: str) -> None:
    assert logged(FUEL, text) == [text]


def test_a_kernel_that_checks_everything_keeps_the_log() -> None:
    asked = (stl("F[0, 1] x - x(t-1) > 0"),)
    plain, checked = (kernel_source(FUEL, asked, checked=each).text for each in (False, True))
    assert "resolve(" in plain
    assert "verdict_0(" not in plain
    assert "resolve(" not in checked
    assert "verdict_0(" in checked


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("F[2, 3] x - x(t-1) > 1", 1.0),
        ("(F[2, 3] x(t-1) > 1) & false", None),
        ("(F[2, 3] x(t-1) > 1) | true", None),
        ("F[2, 3] (x(t-1) > 1 & false)", None),
    ],
)
def test_a_delay_that_cannot_matter_is_not_read(text: str, end: float | None) -> None:
    model = Model.parse("species x = 0\nup: 0 -> x @ 1\ndown: x -> 0 @ x")
    formula = stl(text) if end is None else stl(text, end=end)
    verdict = monitor(formula, replay(model, until=20, seed=1))
    beside = stl("F[2, 3] x - x(t-1) > 1")
    alone = Runner(model, (formula,)).run([[]], [[0, 0, 50]], seed=1)
    assert alone.satisfied.tolist() == [[50 if verdict is Verdict.TRUE else 0]]
    both = Runner(model, (beside, formula)).run([[]], [[0, 0, 50]], seed=1)
    assert both.satisfied[1].tolist() == alone.satisfied[0].tolist()
    assert both.satisfied[0].tolist() == Runner(model, (beside,)).run([[]], [[0, 0, 50]], seed=1).satisfied[0].tolist()


def test_delayed_verdicts_of_hand_made_paths() -> None:
    """The monitor itself, on the path that the words describe: the judge of all the above."""
    path = Path(times=[0, 1, 3], states=[0, 2, 1], species="x", end=5)
    assert monitor(stl("F[0, 4] x - x(t-1) > 1"), path) is Verdict.TRUE
    assert monitor(stl("F[2, 4] x - x(t-1) > 0"), path) is Verdict.FALSE
    assert monitor(stl("F[0, 2] G[1, 2] x == 2"), path) is Verdict.TRUE
    assert monitor(stl("F[0, 2] G[0, 2] x == 2"), path) is Verdict.FALSE
