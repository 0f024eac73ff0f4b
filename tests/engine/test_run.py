"""Runner and replay: the lanes against the monitor run by run, caps, faults, and the independence of cuts of work."""

from __future__ import annotations

import math
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from lane_checks import (
    FAST,
    FUEL,
    LITTLE,
    MUCH,
    as_a_lane_sees,
    count,
    disagreements,
    formulas_of,
    frequencies,
    lane_verdicts,
    row,
)
from sateen.core.errors import FormulaError, InputError, SimulationError
from sateen.core.path import Verdict
from sateen.engine.emit import REASONS
from sateen.engine.questions import flat
from sateen.engine.run import Counts, Runner, follow, replay
from sateen.language.expression import Number
from sateen.language.grammar import parse_expression
from sateen.logic.formula import Formula, Truth, subformulas
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model, Parameter, Transition, Variable
from strategies import random_pair

FLAT = formulas_of(
    [
        "F[0, 2] x > 1",
        "(x < 3) U[1, 4] (y == 2)",
        "x == 0 & y == 1",
        "F[0.3, 0.3] x == 1 <-> G[0, 1] y >= 1",
        "F[0, 1] x == 2 -> F[1, 3] y == 3",
        "F x >= 3",
        "(y > 0) U (x == 0 & y == 0)",
        "F[0, 3] x^2 - y * two >= k",
        "F[0, 2] `fuel's rest` <= k + half * 3",
        "false",
        "F[2, 6] true",
        ("F[2, 9] x == 1", 3),
    ]
)
MORE_FLAT = formulas_of(
    [
        "G[0.5, 3] y <= 2",
        "(x == 1) U[2, 3] (y >= 1)",
        "(x == 0) U[0, 0] (y == 1)",
        "y > 1 | F[1, 1] x == 1",
        "!F[1, 2] x + half > y",
        "F[0, 2] x > 1 & !F[0, 2] x > 1",
        "G x + y < 5",
        "F[1, inf) x * y > 3",
        "G[0, 3] min(x, y, 5) < 2",
        "F[0, 3] max(x, y) == 3",
        "F[1, 2] if(x > y, x, 2 * y) == 4",
        "F[0, 3] abs(x - y) > two",
        "F[0, 2] floor(x / 2) == 1",
        "F[0, 3] (k > half & x >= two * k)",
        "true",
        ("G[4, 5] x < 0", 3),
        ("F[4, 5] true", 3),
        ("(x < 2) U (y == 3)", 2.5),
    ]
)
NESTED = formulas_of(
    [
        "F[0, 3] (x == 1 & G[0.1, 0.4] x == 1)",
        "F[0, 4] (((x == 0) U[2, 3] (x == 1)) & F[0, 2] x == 1)",
        "F[0.2, 3] (x - x(t-0.1) > half & x(t-0.3) == x(t-0.2))",
        "G (x > 0 -> F[0, 1] y > k)",
        ("F[0, 3] G y < 2", 3),
    ]
)
MORE_NESTED = formulas_of(
    [
        "F F[0, 1] x + y > 3",
        "(F[0, 1] y > 1) U[0.5, 2.5] (G[0, 0.3] x * y < two)",
        "G[0.1, 0.1] F[0.2, 0.2] y == 1 <-> F[0.3, 0.3] y == 1",
        "F[0, 2] (F[0.1, 0.1] F[0.2, 0.2] y == 1 & !F[0.3, 0.3] y == 1)",
        "y(t-1) + x(t-0.5) * y >= 3 | F[1, 2] x(t-1) - `fuel's rest`(t-0.2) > -2",
        "F[0, 2] (true & G[0, 0.5] (x > 1 | y > 1))",
        ("G[0, 9] F[0, 1] x > 0", 2.3),
        ("(x < 2) U[1, 5] ((y > 0) U[1, 4] (x == 0))", 4),
        "F[1, 1] G[1, 1] F[0.5, 0.5] x == 0",
        "F G x + y == 0",
        "G F x > 0",
    ]
)
MIXED = (FLAT[0], FLAT[6], NESTED[0], NESTED[3])


@pytest.fixture(scope="module")
def flat_runner() -> Runner:
    return Runner(FUEL, FLAT)


@pytest.fixture(scope="module")
def nested_runner() -> Runner:
    return Runner(FUEL, NESTED)


@pytest.fixture(scope="module")
def mixed_runner() -> Runner:
    return Runner(FUEL, MIXED)


# Run by run.


def test_the_formulas_here_are_of_the_kinds_that_they_are_meant_to_be() -> None:
    assert all(flat(formula, []) is not None for formula in FLAT + MORE_FLAT)
    lasting = {*NESTED[3:], *(MORE_NESTED[place] for place in (0, 2, 5, 6, 9, 10))}
    for formula in NESTED + MORE_NESTED:
        assert (flat(formula, []) is not None) == (formula in lasting), formula


def test_flat_verdicts_are_the_monitors_run_by_run(flat_runner: Runner) -> None:
    assert disagreements(flat_runner, LITTLE, 80, seed=1, until=200) == []


@pytest.mark.slow
def test_more_flat_verdicts_are_the_monitors_run_by_run() -> None:
    runner = Runner(FUEL, MORE_FLAT)
    assert disagreements(runner, LITTLE, 80, seed=1, until=200) == []
    for caps in ({"max_events": 1}, {"max_events": 5}, {"max_time": 1.3}):
        assert disagreements(runner, MUCH, 40, seed=1, until=30, **caps) == []


def test_nested_and_delayed_verdicts_are_the_monitors_run_by_run(nested_runner: Runner) -> None:
    assert disagreements(nested_runner, LITTLE, 60, seed=2, until=200) == []


def test_long_logs_are_judged_as_the_monitor_does(nested_runner: Runner) -> None:
    """Some thousand entries a run: the log grows several times."""
    theta = {**FAST, "f0": 900.0}
    path = replay(FUEL, theta, until=300, seed=3)
    assert len(path) > 2000
    assert disagreements(nested_runner, theta, 4, seed=3, until=300) == []


def test_flat_and_nested_formulas_of_one_kernel_do_not_disturb_each_other(mixed_runner: Runner) -> None:
    assert disagreements(mixed_runner, LITTLE, 60, seed=4, until=200) == []


@pytest.mark.slow
def test_formulas_together_and_alone_have_the_same_verdicts(
    flat_runner: Runner, nested_runner: Runner, mixed_runner: Runner
) -> None:
    for runner, places in ((flat_runner, (1, 3, 5, 7)), (nested_runner, (0, 2, 3)), (mixed_runner, (3,))):
        together = lane_verdicts(runner, LITTLE, 400, seed=5)
        for place in places:
            (alone,) = lane_verdicts(Runner(FUEL, (runner.formulas[place],)), LITTLE, 400, seed=5)
            assert alone == together[place], runner.formulas[place]


def test_the_verdicts_that_are_compared_are_not_all_one_and_the_same(
    flat_runner: Runner, nested_runner: Runner
) -> None:
    for runner in (flat_runner, nested_runner):
        told = [0.02 < share < 0.98 for share in frequencies(lane_verdicts(runner, LITTLE, 200, seed=6))]
        assert sum(told) >= 0.6 * len(told)


@pytest.mark.slow
def test_more_nested_verdicts_are_the_monitors_run_by_run() -> None:
    assert disagreements(Runner(FUEL, MORE_NESTED), LITTLE, 60, seed=7, until=200) == []


def random_formulas(seed: int, wanted: int) -> tuple[Formula, ...]:
    """Random formulas on x, y, k and half; as many conditions as one kernel takes."""
    rng = random.Random(seed)
    return tuple(random_pair(rng)[0] for _ in range(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_formulas_have_the_monitors_verdicts_run_by_run(seed: int) -> None:
    """At speeds at which the short windows of the random formulas see several jumps; caps leave some undecided."""
    runner = Runner(FUEL, random_formulas(seed, 12))
    assert disagreements(runner, {**LITTLE, "f0": 6, "speed": 2.0}, 40, seed=seed, until=500) == []
    apart = disagreements(runner, LITTLE, 40, seed=seed, until=500, max_events=5)
    assert [each for each in apart if not waits_for_truth(each)] == []


def waits_for_truth(disagreement: str) -> bool:
    """Of `F[2, 6] true` and the like the lanes wait for the window, where the monitor knows at once."""
    return " true'" in disagreement.split(", run")[0] and "lanes unknown" in disagreement


# Time is exact.


QUICK = Model.parse("species A = 1, B = 0, C = 0\nfirst: A -> B @ k * A\nthen: B -> C @ q * B")


@pytest.fixture(scope="module")
def quick_runner() -> Runner:
    return Runner(QUICK, formulas_of(["F[0, 10] B == 1", "(A == 1) U[0, 40] (C == 1)", "F[1, 40] B == 1"]))


def test_a_state_that_lasts_no_time_is_never_seen(quick_runner: Runner) -> None:
    """B is left in the floating-point instant in which it is entered: jumps at one time, of which the last wins."""
    assert disagreements(quick_runner, {"k": 1.0, "q": 1e30}, 20, seed=1, until=100) == []


@pytest.mark.parametrize("rate", [1e-3, 1e-12, 1e-17, 1e-18, 1e-20, 1e-60])
def test_times_of_any_size_are_judged(rate: float) -> None:
    """B always comes, and C always after it; how large the numbers are is a matter of the unit of time."""
    runner = Runner(QUICK, (stl("F (B == 1 & F C == 1)"),))
    assert count(runner, {"k": rate, "q": rate}, 64, seed=1).satisfied.tolist() == [[64]]


@pytest.mark.slow
def test_bounds_with_many_digits_are_judged_at_late_times_or_refused() -> None:
    """Ticks of 1e-12 up to times of 1e9 do not fit in 62 bits; a wrong verdict is no answer to that."""
    runner = Runner(QUICK, (stl("F (B == 1 & F F[0, 0.000000000001] C == 1)"),))
    try:
        counts = count(runner, {"k": 1e-9, "q": 1e-9}, 64, seed=1)
    except FormulaError:
        return
    assert (counts.satisfied + counts.undecided.sum(axis=1)).tolist() == [[64]]


def test_more_digits_than_the_engine_takes_are_refused() -> None:
    with pytest.raises(FormulaError, match="14 digits after the point; the engine takes 12"):
        count(Runner(QUICK, (stl("F (B == 1 & F F[0, 0.00000000000001] C == 1)"),)), {"k": 1, "q": 1}, 1, seed=1)


# The same counts however the work is cut.


def assert_same(one: Counts, other: Counts) -> None:
    assert one.satisfied.tolist() == other.satisfied.tolist()
    assert one.undecided.tolist() == other.undecided.tolist()


def work(points: int, runs: int) -> tuple[list[list[float]], list[list[int]]]:
    """Points of different speeds, all runs of each as one item."""
    thetas = [row(FUEL, {**LITTLE, "speed": 0.5 + 0.3 * point}) for point in range(points)]
    return thetas, [[point, 0, runs] for point in range(points)]


def pieces_of(runs: int, rng: random.Random) -> list[tuple[int, int]]:
    cuts = sorted({0, runs, *(rng.randrange(runs) for _ in range(rng.randint(0, 6)))})
    return list(zip(cuts[:-1], np.diff(cuts).tolist(), strict=True))


def test_counts_do_not_depend_on_how_runs_are_cut_ordered_or_shared_out(mixed_runner: Runner) -> None:
    thetas, items = work(12, 150)
    caps = {"max_events": 7, "max_time": 6.0}
    whole = mixed_runner.run(thetas, items, seed=9, **caps)
    assert whole.undecided[:, 0].sum() > 0
    assert whole.satisfied.sum() > 0
    rng = random.Random(0)
    for _ in range(5):
        pieces = [(point, first, size) for point, _, _ in items for first, size in pieces_of(150, rng)]
        rng.shuffle(pieces)
        given = [thetas[point] for point, _, _ in pieces]
        several = rng.random() < 0.5
        if several:
            middle = len(pieces) // 2
            halves = [
                mixed_runner.run(given[part], pieces[part], seed=9, **caps)
                for part in (slice(middle), slice(middle, None))
            ]
            satisfied = np.concatenate([half.satisfied for half in halves], axis=1)
            undecided = np.concatenate([half.undecided for half in halves], axis=2)
        else:
            counts = mixed_runner.run(given, pieces, seed=9, **caps)
            satisfied, undecided = counts.satisfied, counts.undecided
        for point in range(12):
            own = [place for place, piece in enumerate(pieces) if piece[0] == point]
            assert satisfied[:, own].sum(axis=1).tolist() == whole.satisfied[:, point].tolist()
            assert undecided[:, :, own].sum(axis=2).tolist() == whole.undecided[:, :, point].tolist()


def test_counts_do_not_depend_on_threads(mixed_runner: Runner, flat_runner: Runner) -> None:
    thetas, items = work(16, 200)
    for runner in (mixed_runner, flat_runner):
        run = partial(runner.run, seed=10)
        alone = run(thetas, items)
        with ThreadPoolExecutor(4) as pool:
            shares = list(pool.map(run, [[theta] for theta in thetas], [[item] for item in items]))
            wholes = list(pool.map(run, [thetas] * 4, [items] * 4))
        assert np.concatenate([share.satisfied for share in shares], axis=1).tolist() == alone.satisfied.tolist()
        for whole in wholes:
            assert_same(whole, alone)
            assert whole.events == alone.events


def test_other_seeds_points_and_runs_are_other_trajectories(flat_runner: Runner) -> None:
    first = lane_verdicts(flat_runner, LITTLE, 200, seed=1, point=0)
    assert first == lane_verdicts(flat_runner, LITTLE, 200, seed=1, point=0)
    assert first != lane_verdicts(flat_runner, LITTLE, 200, seed=2, point=0)
    assert first != lane_verdicts(flat_runner, LITTLE, 200, seed=1, point=1)
    assert [each[1:] for each in first] != [each[:-1] for each in first]


def test_an_item_of_no_runs_counts_nothing_and_takes_nothing_from_others(flat_runner: Runner) -> None:
    thetas, _ = work(3, 10)
    counts = flat_runner.run(thetas, [[0, 0, 0], [1, 0, 10], [2, 0, 0]], seed=1)
    assert counts.satisfied[:, [0, 2]].sum() == 0
    assert (
        counts.satisfied[:, 1].tolist() == flat_runner.run(thetas[1:2], [[1, 0, 10]], seed=1).satisfied[:, 0].tolist()
    )
    nothing = flat_runner.run(np.zeros((0, 4)), np.zeros((0, 3)), seed=1)
    assert nothing.satisfied.shape == (len(FLAT), 0)


def test_a_model_without_parameters_runs() -> None:
    model = Model.parse("species X = 6\nX -> 0 @ X")
    counts = Runner(model, (stl("F[0, 100] X == 0"),)).run(np.zeros((2, 0)), [[0, 0, 10], [1, 0, 10]], seed=1)
    assert counts.satisfied.tolist() == [[10, 10]]


# Caps: undecided by reason, never guessed.


@pytest.mark.parametrize(
    "caps", [{"max_events": 1}, {"max_events": 4}, {"max_events": 9}, {"max_time": 0.7}, {"max_time": 2.5}]
)
@pytest.mark.parametrize("theta", [LITTLE, MUCH], ids=["little", "much"])
def test_a_capped_run_is_decided_just_where_the_known_part_of_its_path_decides(
    flat_runner: Runner, nested_runner: Runner, mixed_runner: Runner, theta: dict[str, float], caps: dict[str, float]
) -> None:
    """Except by `true` alone, whose truth at a later time the masks wait for."""
    for runner in (flat_runner, nested_runner, mixed_runner):
        apart = disagreements(runner, theta, 30, seed=11, until=30, **caps)
        assert [each for each in apart if not waits_for_truth(each)] == []


@pytest.mark.parametrize("runs", [200])
def test_a_verdict_that_a_cap_leaves_standing_is_the_uncapped_one(mixed_runner: Runner, runs: int) -> None:
    uncapped = lane_verdicts(mixed_runner, LITTLE, runs, seed=12)
    known_before = [0] * len(MIXED)
    for cap in (1, 2, 4, 8, 16, 64):
        capped = lane_verdicts(mixed_runner, LITTLE, runs, seed=12, max_events=cap)
        for place, (some, full) in enumerate(zip(capped, uncapped, strict=True)):
            assert all(one is other for one, other in zip(some, full, strict=True) if one is not Verdict.UNKNOWN)
            known = runs - some.count(Verdict.UNKNOWN)
            assert known >= known_before[place]
            known_before[place] = known
    assert known_before == [runs] * len(MIXED)


def test_each_cap_is_counted_under_its_own_reason(flat_runner: Runner) -> None:
    unbounded = FLAT.index(stl("F x >= 3"))
    for caps, reason in (({"max_events": 3}, "max_events"), ({"max_time": 0.5}, "max_time")):
        counts = count(flat_runner, MUCH, 300, seed=13, **caps)
        own = counts.undecided[unbounded, :, 0].tolist()
        assert own[REASONS.index(reason)] > 100
        assert sum(own) == own[REASONS.index(reason)]


DEATH = Model.parse("species X = n\nparameter n = 5, d = 1\nX -> 0 @ d * X")


@pytest.fixture(scope="module")
def death_runner() -> Runner:
    return Runner(DEATH, formulas_of(["F X == 0", "F X == 2", "G X > 0"]))


def test_a_run_of_exactly_n_events_needs_one_look_more_than_its_events(death_runner: Runner) -> None:
    """The state that the n-th event enters is looked at when the next event is drawn."""
    for events in range(1, 7):
        counts = count(death_runner, {"n": 5}, 50, seed=1, max_events=events)
        assert counts.satisfied[:, 0].tolist() == [50 if events >= 6 else 0, 50 if events >= 4 else 0, 0]
        assert counts.undecided[:, :, 0].tolist() == [
            [0 if events >= 6 else 50, 0, 0],
            [0 if events >= 4 else 50, 0, 0],
            [0 if events >= 6 else 50, 0, 0],
        ]


def test_events_are_counted(death_runner: Runner) -> None:
    assert count(death_runner, {"n": 5}, 50, seed=1).events == 5 * 50
    assert count(death_runner, {"n": 5}, 50, seed=1, max_events=3).events == 3 * 50


@pytest.mark.slow
def test_a_population_cap_stops_the_run_at_the_first_count_above_it() -> None:
    """Flat and nested formulas alike are decided by what was seen until then."""
    birth = Model.parse("species X = 0, Y = 0\n0 -> X @ k\nX -> X + Y @ X")
    texts = ["F X >= 3", "F X >= 7", "G Y < 2", "F[0, 100] (X >= 1 & F[0, 50] X >= 3)", "F[0, 500] G[0, 1] X >= 40"]
    runner = Runner(birth, formulas_of(texts), max_population=5)
    counts = count(runner, {"k": 2.0}, 100, seed=1)
    assert (counts.undecided[:, :2] == 0).all()
    apart = disagreements(runner, {"k": 2.0}, 50, seed=1, until=20)
    assert apart == []


@pytest.mark.slow
def test_a_cap_on_the_population_leaves_a_verdict_the_same_whatever_is_asked_beside_it() -> None:
    birth = Model.parse("species X = 0\n0 -> X @ k")
    short, long = formulas_of(["F[0, 4] (X >= 1 & F[0, 2] X >= 3)", "F[0, 4000] (X >= 1 & F[0, 2] X >= 300)"])
    alone = lane_verdicts(Runner(birth, (short,), max_population=60), {"k": 10.0}, 50, seed=1)
    beside = lane_verdicts(Runner(birth, (short, long), max_population=60), {"k": 10.0}, 50, seed=1)
    assert beside[0] == alone[0]


# What no process can do, and what comes close.


@pytest.fixture(scope="module")
def bursting_runner() -> Runner:
    return Runner(Model.parse("species X = 1\nX -> 2 X @ k * X"), formulas_of(["F[1e6, 1e6] X > 0", "F[0, 1] X >= 9"]))


@pytest.mark.parametrize("rate", [1.0, 1e199, 1e300])
def test_explosive_and_zeno_like_models_end_undecided_within_a_second(bursting_runner: Runner, rate: float) -> None:
    count(bursting_runner, {"k": rate}, 1, seed=1, max_events=10)  # compiles
    began = time.process_time()
    counts = count(bursting_runner, {"k": rate}, 16, seed=1)
    assert time.process_time() - began < 1.0
    assert counts.undecided[0, :, 0].tolist() == [16, 0, 0]
    assert counts.undecided[1].sum() == 0
    if rate > 1:
        assert counts.satisfied[1].tolist() == [16]


# B grows to 2, where the rate of `odd` becomes low + log(root) + exp(top) - 1: 0 by default, and then all is over.
FAULTY = Model.parse("""
    species A = 0, B = 0
    parameter low = 0, root = 1, top = 0
    odd:  0 -> B @ if(B >= 2, low + log(root) + exp(top) - 1, 1)
    calm: A -> 0 @ A
""")


@pytest.fixture(scope="module")
def faulty_runner() -> Runner:
    return Runner(FAULTY, (stl("F[0, 1000] B >= 3"),))


@pytest.mark.parametrize(
    ("theta", "said"),
    [({"low": -1.0}, "-1"), ({"root": -1.0}, "nan"), ({"root": 0.0}, "-inf"), ({"top": 1000.0}, "inf")],
)
def test_a_rate_that_is_none_is_an_error_that_names_all_that_replays_it(
    faulty_runner: Runner, theta: dict[str, float], said: str
) -> None:
    items = [[4, 6, 0], [4, 6, 5], [9, 0, 3]]
    with pytest.raises(SimulationError) as caught:
        faulty_runner.run([row(FAULTY, theta)] * 3, items, seed=77)
    text = str(caught.value)
    assert f"the rate of odd is {said} at time " in text
    assert "where A = 0, B = 2: if(B >= 2" in text
    assert f"{next(iter(theta))} = {next(iter(theta.values())):g}" in text
    assert "replay it with seed 77, point 4, run " in text
    run = int(text.rsplit("run ", 1)[1])
    assert 6 <= run < 11
    with pytest.raises(SimulationError) as again:
        replay(FAULTY, theta, until=1000, seed=77, point=4, run=run)
    assert str(again.value) == text
    path = replay(FAULTY, theta, until=1000, seed=77, point=4, run=run, max_events=2)
    assert f"at time {path.times[-1]:g}, " in text


def test_a_rate_may_be_large_where_it_is_finite_and_zero_where_all_is_over(faulty_runner: Runner) -> None:
    assert count(faulty_runner, {}, 20, seed=1).satisfied.tolist() == [[0]]
    assert count(faulty_runner, {"low": 1e12}, 20, seed=1).satisfied.tolist() == [[20]]


def test_a_state_is_seen_even_if_it_lasts_less_than_a_double_can_tell(faulty_runner: Runner) -> None:
    """At a rate of 1e300 every further state lasts less than the last digit of the time."""
    assert count(faulty_runner, {"low": 1e300}, 20, seed=1, max_events=1000).satisfied.tolist() == [[20]]
    times = replay(FAULTY, {"low": 1e300}, until=10, seed=1, max_events=50).times
    assert (np.diff(times) > 0).all()


def test_a_bad_rate_that_the_verdict_does_not_wait_for_is_no_error() -> None:
    runner = Runner(FAULTY, (stl("F[0, 1000] B >= 1"),))
    assert count(runner, {"low": -1.0}, 50, seed=1).satisfied.tolist() == [[50]]


def test_negative_coefficients_of_a_safe_form_are_found_too(death_runner: Runner) -> None:
    with pytest.raises(SimulationError, match=r"the rate of .* is -10 at time 0, where X = 5: d \* X"):
        count(death_runner, {"n": 5, "d": -2.0}, 5, seed=1)


def test_a_negative_count_is_an_error_that_names_the_species() -> None:
    leak = Transition("leak", parse_expression("k * (X + 1)"), consumed=(("X", 1),))
    model = Model((Variable("X", Number(2.0)),), (leak,), (Parameter("k"),))
    with pytest.raises(
        SimulationError, match=r"X becomes -1 at time .*, where X = -1: it needs .*\n.*\n.*k = 1; replay it with"
    ):
        count(Runner(model, (stl("F[0, 1000] X == -5"),)), {"k": 1.0}, 5, seed=1)
    with pytest.raises(SimulationError, match="X becomes -1"):
        replay(model, {"k": 1.0}, until=1000, seed=1)


def test_a_rate_that_reads_a_variable_below_zero_is_checked() -> None:
    """A product of counts is safe only where counts are not negative; this variable may be."""
    down = Transition("down", parse_expression("k"), consumed=(("x", 1),))
    up = Transition("up", parse_expression("k * x"), produced=(("x", 1),))
    model = Model((Variable("x", Number(0.0), low=-9),), (down, up), (Parameter("k"),))
    with pytest.raises(SimulationError, match="the rate of up is -1"):
        count(Runner(model, (stl("F[0, 1000] x == -8"),)), {"k": 1.0}, 5, seed=1)


def test_an_update_that_is_no_number_is_an_error() -> None:
    broken = Transition("broken", parse_expression("k"), update=(("x", parse_expression("log(0 - 1 - x)")),))
    model = Model((Variable("x", Number(1.0)),), (broken,), (Parameter("k"),))
    with pytest.raises(SimulationError, match="x becomes nan"):
        count(Runner(model, (stl("F[0, 1000] x == 7"),)), {"k": 1.0}, 5, seed=1)


def test_an_update_assigns_what_it_computes_from_the_state_before() -> None:
    swap = Transition(
        "swap", parse_expression("k * a"), update=(("a", parse_expression("b")), ("b", parse_expression("a - 1")))
    )
    model = Model((Variable("a", Number(6.0), high=6), Variable("b", Number(5.0))), (swap,), (Parameter("k"),))
    runner = Runner(model, formulas_of(["F (a == 5 & b == 5)", "F (a == 4 & b == 4)", "F a == b - 1", "F b == 0"]))
    assert disagreements(runner, {"k": 1.0}, 20, seed=1, until=1e6) == []
    assert count(runner, {"k": 1.0}, 10, seed=1).satisfied[:2].tolist() == [[10], [10]]


def test_an_upper_bound_is_no_wall() -> None:
    grow = Transition("grow", parse_expression("k"), produced=(("x", 1),))
    model = Model((Variable("x", Number(0.0), high=3),), (grow,), (Parameter("k"),))
    with pytest.raises(SimulationError, match="x becomes 4"):
        count(Runner(model, (stl("F[0, 1000] x == 9"),)), {"k": 1.0}, 5, seed=1)


def test_an_undefined_atom_is_an_error_that_names_it() -> None:
    with pytest.raises(FormulaError, match=r"X / X >= 2 is undefined \(such as 0/0\) at time .*, where X = 0"):
        count(Runner(DEATH, (stl("F[0, 1000] X / X >= 2"),)), {"n": 3}, 5, seed=1)


@pytest.mark.slow
def test_faults_are_told_of_runs_with_nested_formulas_too() -> None:
    with pytest.raises(FormulaError, match=r"X / X >= 2 is undefined \(such as 0/0\) at time .*, where X = 0"):
        count(Runner(DEATH, (stl("F[0, 1000] G[0, 1] X / X >= 2"),)), {"n": 3}, 5, seed=1)
    with pytest.raises(SimulationError, match=r"the rate of odd is -1 at time .*, where A = 0, B = 2"):
        count(Runner(FAULTY, (stl("F[0, 1000] G[0, 1] B >= 3"),)), {"low": -1.0}, 5, seed=1)


@pytest.mark.slow
def test_an_undefined_delayed_atom_is_an_error_that_names_it() -> None:
    """0/0 when X has fallen by just 2 within one unit of time; the delayed species is not the model's first."""
    model = Model.parse("species Y = 0, X = n\nparameter n = 30\nX -> Y @ X")
    formula = stl("F[0, 1000] (X(t-1) - X - 2) / (X(t-1) - X - 2) > 1")
    with pytest.raises(FormulaError, match="is undefined") as monitored:
        monitor(formula, replay(model, until=1000, seed=1))
    with pytest.raises(FormulaError, match="is undefined") as caught:
        count(Runner(model, (formula,)), {}, 1, seed=1)
    time = str(monitored.value).split(" at time ")[1].split()[0]
    assert f" at time {float(time):g}" in str(caught.value)


# What is asked wrongly.


def test_what_cannot_be_asked_is_refused_by_name(death_runner: Runner) -> None:
    with pytest.raises(FormulaError, match="Xs is neither a species nor a parameter"):
        Runner(DEATH, (stl("F Xs > 0"),))
    with pytest.raises(FormulaError, match="delays d, which is not a species"):
        Runner(DEATH, (stl("F d(t-1) > 0"),))
    with pytest.raises(InputError, match="seed is a whole number"):
        count(death_runner, {}, 1, seed=-1)
    with pytest.raises(InputError, match="max_events"):
        count(death_runner, {}, 1, seed=1, max_events=0)
    with pytest.raises(InputError, match="max_time"):
        count(death_runner, {}, 1, seed=1, max_time=math.nan)
    with pytest.raises(InputError, match="1 items of work"):
        death_runner.run([[1, 1], [1, 1]], [[0, 0, 1]], seed=1)
    with pytest.raises(InputError, match="the parameter d is nan in row 0"):
        death_runner.run([[1, math.nan]], [[0, 0, 1]], seed=1)
    with pytest.raises(InputError, match=r"X starts at 1\.5"):
        death_runner.run([[1, 1], [1.5, 1]], [[0, 0, 1], [1, 0, 1]], seed=1)
    with pytest.raises(InputError, match="X starts at -1"):
        death_runner.run([[-1, 1]], [[0, 0, 1]], seed=1)


# Replay.


def test_a_replay_is_a_path_of_the_model() -> None:
    path = replay(FUEL, LITTLE, until=4, seed=3, point=2, run=5)
    assert path.species == FUEL.species
    assert path.states[0].tolist() == [0, 1, 4]
    assert path.values["two"] == 2
    changes = {tuple(each.change.get(name, 0) for name in FUEL.species) for each in FUEL.transitions}
    assert {tuple(step) for step in np.diff(path.states, axis=0).astype(int).tolist()} <= changes
    assert (np.diff(path.times) > 0).all()
    assert path.end == 4


def test_a_replay_that_goes_on_begins_the_same_way() -> None:
    short, long = (replay(FUEL, MUCH, until=until, seed=3, run=1) for until in (2, 20))
    assert long.times[: len(short)].tolist() == short.times.tolist()
    assert long.states[: len(short)].tolist() == short.states.tolist()
    assert long.times[len(short)] > 2


def test_a_replay_ends_absorbed_or_at_its_cap() -> None:
    absorbed = replay(DEATH, {"n": 5}, until=1e4, seed=1)
    assert absorbed.absorbed
    assert absorbed["X"].tolist() == [5, 4, 3, 2, 1, 0]
    capped = replay(DEATH, {"n": 5}, until=1e4, seed=1, max_events=2)
    assert not capped.absorbed
    assert capped["X"].tolist() == [5, 4, 3]
    assert capped.end == capped.times[-1]
    assert as_a_lane_sees(absorbed, max_events=2).times.tolist() == [0.0, absorbed.times[1]]


def test_a_replay_without_an_end_is_refused_or_ends_where_the_model_does() -> None:
    try:
        path = replay(DEATH, {"n": 5}, until=math.inf, seed=1)
    except InputError:
        return
    assert path.absorbed
    assert path["X"].tolist() == [5, 4, 3, 2, 1, 0]


def test_the_truths_of_the_random_formulas_are_few() -> None:
    """Most of what is compared reads the path."""
    every = [node for seed in range(3) for each in random_formulas(seed, 12) for node in subformulas(each.root)]
    assert sum(isinstance(node, Truth) for node in every) < 0.1 * len(every)


@pytest.mark.parametrize("caps", [{"max_events": 6}, {"max_events": 1}, {"max_time": 0.5}, {}])
def test_a_run_is_followed_as_far_as_it_was_counted(caps: dict[str, Any]) -> None:
    model = Model.parse("species A = 5, B = 0\nturn: A -> B @ A\nback: B -> A @ B")
    for formula in (stl("F[0, 3] B >= 4"), stl("G[0, 1] A > 0"), stl("F (A == 0)")):
        runner = Runner(model, (formula,))
        items = [[0, run, 1] for run in range(60)]
        most = {"max_events": 1000} | caps
        counts = runner.run([[]], items, seed=7, **most)
        verdicts = [monitor(formula, follow(model, formula, {}, seed=7, run=run, **most)) for run in range(60)]
        unsure = counts.undecided[0].sum(axis=0) > 0
        assert [verdict is Verdict.UNKNOWN for verdict in verdicts] == unsure.tolist()
        assert [verdict is Verdict.TRUE for verdict in verdicts] == (counts.satisfied[0] == 1).tolist()


def test_a_model_of_hundreds_of_reactions_is_counted_and_replayed() -> None:
    reactions = "\n".join(f"r{j}: A -> {j % 3 + 1} B @ 0.01 * A" for j in range(400))
    model = Model.parse(f"species A = 10, B = 0\n{reactions}")
    formula = stl("F[0, 1] B > 19")
    counts = Runner(model, (formula,), max_population=1000).run([[]], [[0, 0, 20]], seed=1)
    found = [monitor(formula, replay(model, until=1, seed=1, run=run)) is Verdict.TRUE for run in range(20)]
    assert counts.satisfied[0, 0] == sum(found)
