"""`simulate` with times: the same runs as `replay` shows, however they are made, and with the law they must have."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom, poisson

import sateen as st
from distributions import assert_distributed
from watchers import Watcher

MODEL = st.Model.parse("""
    species X = 20, Y = 0
    real dose = 0.5
    decay: X -> Y @ k * X
    event reset: X := 20, Y := 0, dose := 2 * dose when time >= 3
""")
QUEUE = st.Model.parse("""
    species X = 0, Y = 3
    arrive: 0 -> X @ a when X < 7
    move:   X -> Y @ X when Y < 5
    leave:  Y -> 0 @ 0.8 * Y
""")
DEATH = st.Model.parse("parameter n = 40\nspecies X = n\nX -> 0 @ mass_action(k)")
TIMES = [0.0, 0.7, 2.5, 3.0, 4.0, 9.0]


@pytest.mark.parametrize(
    ("model", "theta"),
    [(MODEL, {"k": 0.5}), (QUEUE, {"a": 1.5}), (DEATH, {"k": 0.8})],
    ids=["events", "queue", "death"],
)
def test_the_states_are_those_of_the_replayed_runs_also_at_the_instant_of_an_event(model, theta):
    found = st.simulate(model, theta, times=TIMES, runs=40, seed=3)
    assert found.species == model.species
    assert dict(found.values) == model.values(theta)
    for run in range(40):
        path = st.replay(model, theta, until=9, seed=3, run=run)
        assert found.states[run].tolist() == [list(path.at(time).values()) for time in TIMES]


def test_what_a_model_observes_is_a_column_too():
    model = st.Model.parse(str(QUEUE) + "\nobservable both = 2 * X + Y\nobservable load = X / c\nconstant c = 4")
    found = st.simulate(model, {"a": 1.5}, times=TIMES, runs=40, seed=3)
    assert found.species == ("X", "Y", "both", "load")
    for run in range(40):
        path = st.replay(model, {"a": 1.5}, until=9, seed=3, run=run)
        assert found.states[run].tolist() == [list(path.at(time).values()) for time in TIMES]
    alone = st.simulate(model, {"a": 1.5}, times=TIMES, runs=40, seed=3, species=["load", "X"])
    assert alone.species == ("load", "X")
    assert np.array_equal(alone["load"], found["load"])
    assert np.array_equal(alone["X"], found["X"])


def test_the_instant_of_an_event_shows_the_state_after_it():
    found = st.simulate(MODEL, {"k": 0.5}, times=[math.nextafter(3.0, 0.0), 3.0], runs=50, seed=1)
    assert found["dose"].tolist() == [[0.5, 1.0]] * 50
    assert (found.at(3.0)[:, 0] == 20).all()
    assert (found["X"][:, 0] < 20).any()


def test_a_run_is_the_same_for_any_number_of_runs_workers_points_species_and_times():
    theta = [{"a": 0.5}, {"a": 2.0}, {"a": 4.0}]
    every = st.simulate(QUEUE, theta, times=TIMES, runs=700, seed=5, workers=1)
    assert [each.point for each in every] == [0, 1, 2]
    for workers in (2, 4):
        assert st.simulate(QUEUE, theta, times=TIMES, runs=700, seed=5, workers=workers) == every
    grid = st.Space(a=(0.5, 4.0)).points(np.array([[0.5], [2.0], [4.0]]))
    assert st.simulate(QUEUE, grid, times=TIMES, runs=700, seed=5) == every
    some = st.simulate(QUEUE, theta[0], times=TIMES[1:3], runs=33, seed=5, species="Y")
    assert (some.states[:, :, 0] == every[0]["Y"][:33, 1:3]).all()
    assert not np.array_equal(every[0].states, st.simulate(QUEUE, theta[0], times=TIMES, runs=700, seed=6).states)


def test_many_points_of_few_runs_and_few_of_many_are_alike():
    rates = np.linspace(0.1, 4, 150)
    many = st.simulate(QUEUE, [{"a": a} for a in rates], times=[1.0, 2.0], runs=7, seed=2)
    assert [len(each) for each in many] == [7] * 150
    for point in (0, 80, 149):
        path = st.replay(QUEUE, {"a": rates[point]}, until=2, seed=2, point=point, run=6)
        assert many[point].states[6].tolist() == [list(path.at(time).values()) for time in (1.0, 2.0)]


def test_counts_take_the_smallest_type_that_holds_them():
    grow = st.Model.parse("species X = n\nparameter n = 5\n0 -> X @ 1")
    for n, kind in ((5, "uint8"), (254, "int16"), (40_000, "int32"), (2**40, "float64")):
        found = st.simulate(grow, {"n": n}, times=[0, 9], runs=60, seed=1)
        assert found.states.dtype == kind
        assert (found.at(0) == n).all()
        assert (found.at(9) >= n).all()
    assert st.simulate(MODEL, {"k": 1.0}, times=[1.0], runs=2, seed=1).states.dtype == "float64"


@pytest.mark.parametrize("time", [1.0, 3.0])
def test_states_have_the_distribution_that_exact_computes(time):
    theta, runs = {"a": 6.0}, 50_000
    found = st.simulate(QUEUE, theta, times=[time], runs=runs, seed=7)
    for name, most in (("X", 7), ("Y", 5)):
        questions = [st.stl(f"F[{time}, {time}] {name} == {count}") for count in range(most + 1)]
        known = np.array([st.exact(QUEUE, each, theta)[0] for each in questions])
        assert known.sum() == pytest.approx(1.0, abs=1e-8)
        counts = found.at(time)[:, found.species.index(name)].astype(np.int64)
        assert_distributed(counts, known)


def test_a_pure_death_is_binomial_and_an_immigration_death_poisson():
    runs = 40_000
    found = st.simulate(DEATH, {"k": 0.8}, times=[0.5, 1.5], runs=runs, seed=11)
    for time in (0.5, 1.5):
        assert_distributed(found.at(time)[:, 0].astype(np.int64), binom.pmf(range(41), 40, math.exp(-0.8 * time)))
    steady = st.Model.parse("species X = 0\n0 -> X @ 12\nX -> 0 @ mass_action(2)")
    found = st.simulate(steady, times=[0.3, 4.0], runs=runs, seed=12)
    for time in (0.3, 4.0):
        law = poisson(6 * (1 - math.exp(-2 * time)))
        assert_distributed(found.at(time)[:, 0].astype(np.int64), law.pmf(range(30)))
        assert abs(found.mean[list(found.times).index(time), 0] - law.mean()) < 4.9 * law.std() / math.sqrt(runs)


def test_an_absorbed_run_keeps_its_state_at_all_later_times():
    found = st.simulate(DEATH, {"k": 5.0}, times=[0.0, 50.0, 1e9], runs=30, seed=1)
    assert found.states[:, :, 0].tolist() == [[40, 0, 0]] * 30
    assert st.simulate(DEATH, {"k": 0.0}, times=[0, 7], runs=2, seed=1).states.tolist() == [[[40], [40]]] * 2


def test_a_run_that_max_events_cuts_short_is_unknown_from_there_on_and_said():
    with pytest.warns(st.SateenWarning, match="30 runs reached max_events = 12; what follows is unknown, and NaN"):
        cut = st.simulate(DEATH, {"k": 1.0}, times=[0.0, 0.1, 9.0], runs=30, seed=1, max_events=12)
    whole = st.simulate(DEATH, {"k": 1.0}, times=[0.0, 0.1, 9.0], runs=30, seed=1)
    assert cut.unknown.tolist() == [0, 0, 30]
    assert np.array_equal(cut.states[:, :2], whole.states[:, :2])
    assert np.isnan(cut.mean[2, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not st.simulate(DEATH, {"k": 1.0}, times=[0.0, 9.0], runs=30, seed=1, max_events=41).unknown.any()


def test_a_cap_falls_where_the_replayed_path_ends():
    times = np.linspace(0, 3, 60)
    with pytest.warns(st.SateenWarning):
        cut = st.simulate(QUEUE, {"a": 3.0}, times=times, runs=20, seed=4, max_events=9)
    for run in range(20):
        path = st.replay(QUEUE, {"a": 3.0}, until=3, seed=4, run=run, max_events=9)
        assert np.isnan(cut["X"][run]).tolist() == (times > path.end).tolist()


def test_a_run_that_fails_says_which_it_is():
    fails_late = st.Model.parse("species X = 0\nup: 0 -> X @ 4\nodd: X -> 0 @ X * (3.5 - X)")
    with pytest.raises(
        st.SimulationError, match=r"the rate of odd is -2 at time [\s\S]*replay it with seed 1, point 0, run \d+"
    ):
        st.simulate(fails_late, times=[50.0], runs=20, seed=1)
    assert (
        len(st.simulate(fails_late, times=[1e-9], runs=20, seed=1)) == 20
    )  # what happens after the last time is nothing


@pytest.mark.parametrize("workers", [1, 3])
def test_after_ctrl_c_the_first_runs_of_each_point_are_handed_over(workers):
    theta = [{"a": 0.5}, {"a": 2.0}]
    whole = st.simulate(QUEUE, theta, times=TIMES, runs=5_000, seed=8)
    with pytest.raises(
        st.Interrupted, match=r"stopped after [\d,]+ of 10,000 runs; \.partial has the first runs"
    ) as caught:
        st.simulate(QUEUE, theta, times=TIMES, runs=5_000, seed=8, workers=workers, progress=Watcher(at=2))
    first, second = caught.value.partial
    assert 0 < len(first) + len(second) < 10_000
    for part, every in zip((first, second), whole, strict=True):
        assert np.array_equal(part.states, every.states[: len(part)])


def test_progress_is_told_of_every_run():
    watcher = Watcher()
    st.simulate(QUEUE, [{"a": 1.0}] * 3, times=TIMES, runs=200, seed=8, progress=watcher)
    assert watcher.told == [("simulate", 600, "runs")]
    assert watcher.done == 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"how long\? pass until for one path, or times and runs for many"),
        ({"until": 3, "times": [1], "runs": 2}, "until makes one path, times and runs make an ensemble"),
        ({"times": [1]}, "pass times with runs, or until alone"),
        ({"until": 3, "runs": 2}, "runs is for many runs, which also need times"),
        ({"until": 3, "species": "X"}, "species is for many runs"),
        ({"until": 3, "theta": [{"k": 1.0}]}, "theta is for many runs"),
        ({"times": [1], "runs": 0}, "runs is a whole number from 1 up, not 0"),
        ({"times": [1], "runs": 2.5}, r"runs is a whole number from 1 up, not 2\.5"),
        ({"times": [1], "runs": 2, "workers": 0}, "workers is a whole number from 1 up, not 0"),
        ({"times": [2, 1], "runs": 2}, "each must be later than the one before"),
        ({"times": [1], "runs": 2, "species": "Z"}, "the model has no species Z; it has X"),
        ({"times": [1], "runs": 2, "species": ["X", "X"]}, "species are names, each once, and at least one"),
        (
            {"times": [1, 2], "runs": 10**12},
            r"1,000,000,000,000 runs at 2 times, 1 value each, are too many to be held",
        ),
        ({"times": [1], "runs": 2, "max_events": 0}, "max_events is a whole number from 1"),
        ({"times": [1], "runs": 2, "seed": -1}, "a seed is a whole number from 0"),
        ({"times": [1], "runs": 2, "seed": 1.5}, r"a seed is a whole number from 0 .* not 1\.5"),
        ({"times": [1], "runs": 2, "seed": None}, "a seed is a whole number from 0 .* not None"),
        ({"until": 1, "seed": None}, "a seed is a whole number from 0 .* not None"),
        ({"times": [1], "runs": 2, "species": 5}, "species are names, not 5"),
        ({"times": [1], "runs": 2, "theta": {"q": 1.0}}, "q"),
        ({"times": [1], "runs": 2, "theta": {}}, "k"),
        ({"times": [1], "runs": 2, "theta": "k=1"}, "theta is a mapping of parameters to values, Points, a data"),
        ({"times": [1], "runs": 2, "theta": 0.5}, r"theta is a mapping of parameters to values, .* not 0\.5"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(options, message):
    with pytest.raises((st.InputError, st.MissingValueError), match=message):
        st.simulate(DEATH, **{"theta": {"k": 1.0}, "seed": 1} | options)


def test_the_start_alone_can_be_asked_for():
    again = st.Model.parse("species X = 3\nX -> 0 @ X\nevent refill: X := 7 when time >= 0 initially false")
    for model, theta, count in ((DEATH, {"k": 1.0}, 40), (again, {}, 7)):
        assert set(st.simulate(model, theta, times=[0], runs=20, seed=1).states.ravel()) == {count}
        assert st.replay(model, theta, until=0, seed=1, run=3).at(0) == {"X": count}


def test_a_data_frame_has_a_point_in_each_row():
    points = st.Space(k=(0.5, 2)).grid(3)
    framed = st.simulate(MODEL, points.frame(), times=TIMES, runs=5, seed=1)
    assert [dict(each.values) for each in framed] == [MODEL.values(each) for each in points]
    known = st.simulate(MODEL, points, times=TIMES, runs=5, seed=1)
    assert all((one.mean == other.mean).all() for one, other in zip(framed, known, strict=True))
    with pytest.raises(st.InputError, match="for many runs"):
        st.simulate(MODEL, points.frame(), until=1, seed=1)


def test_no_points_give_no_ensembles():
    assert st.simulate(DEATH, [], times=[1.0], runs=5, seed=1) == ()


@pytest.mark.parametrize(("until", "most", "least"), [(2.0, 10**7, 80), (1e9, 150, 60), (0.0, 10, 0)])
def test_a_single_path_reports_how_far_it_is_in_time_or_in_jumps(until, most, least):
    busy = st.Model.parse("species X = 300\n0 -> X @ 300\nX -> 0 @ X")
    progress = Watcher()
    path = st.simulate(busy, until=until, seed=1, max_events=most, progress=progress)
    assert progress.told == [("simulating", 100, "%")]
    assert least <= progress.done <= 100
    assert progress.finished == 1
    assert path == st.simulate(busy, until=until, seed=1, max_events=most)
