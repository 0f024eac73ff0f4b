"""`refine`: it reaches its goal where the truth is known, resumes to the same bits, and says why it ends."""

from __future__ import annotations

import importlib.util
import linecache
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import sateen as st
from own_learners import Pooled
from sateen.decision.costs import _surface
from sateen.sampling.notes import Notes
from watchers import Watcher

DECAY = st.Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
GONE = st.stl("F[0, 2] A == 0")
RATE = st.Space(k=(0.1, 4.0))
PLANE = st.Space(a=(0.0, 1.0), b=(0.0, 1.0))


def truth(theta):
    """P(all ten are gone by time 2) = (1 - e^(-2k))^10."""
    return (1.0 - np.exp(-2.0 * theta[:, 0])) ** 10


def disc(theta, rng):
    """A black box that is true with probability 0.8 in the middle of the square, falling to 0.1 at its corners."""
    return bool(rng.random() < disc_probability(np.array([[theta["a"], theta["b"]]]))[0])


def disc_probability(theta):
    square = ((theta - 0.5) ** 2).sum(axis=1)
    return 0.1 + 0.7 * np.exp(-6.0 * square)


SLOW = {"seconds": 0.0}


def slowly(theta, rng):
    """Takes longer on the right half, or, once SLOW says so, on the left."""
    time.sleep(SLOW["seconds"] if theta["a"] > 0.5 else 0.0)
    return bool(rng.random() < theta["a"])


def refined(**options):
    asked = {"goal": st.Threshold(0.5, undecided=0.02), "budget": 30_000, "seed": 1, **options}
    return st.refine(DECAY, GONE, RATE, **asked)


@pytest.fixture(scope="module")
def undisturbed():
    return refined()


def same(one, other):
    assert one.observations == other.observations
    assert one.rounds == other.rounds
    assert one.reason == other.reason
    points = one.posterior.space.sobol(64, seed=3)
    for mine, its in zip(one.posterior.latent_moments(points), other.posterior.latent_moments(points), strict=True):
        assert np.array_equal(mine, its)


class TestGoals:
    def test_a_threshold_is_decided_rightly_where_it_is_decided(self, undisturbed):
        assert undisturbed.reached
        assert undisturbed.figure <= 0.02
        points = RATE.grid(400)
        regions = st.decide(undisturbed.posterior, above=0.5, seed=1).of(points)
        f = truth(points.theta)
        assert not (f[regions == "above"] < 0.5 - 0.02).any()
        assert not (f[regions == "below"] > 0.5 + 0.02).any()

    def test_it_needs_far_fewer_runs_than_a_design_that_fills_the_space(self, undisturbed):
        runs = int(undisturbed.observations.trials.sum())
        even = st.observe(DECAY, GONE, RATE.sobol(64, seed=5), runs // 64, seed=6)
        filled = st.SVIGP().fit(even, seed=1)
        assert undisturbed.figure < st.decide(filled, above=0.5, seed=1).undecided

    @pytest.mark.parametrize("goal", [st.Width(0.08, share=0.9), st.Error(0.012)])
    def test_a_width_and_an_error_are_reached(self, goal):
        done = refined(goal=goal, budget=60_000)
        assert done.reached
        prediction = done.posterior.predict(RATE.grid(300))
        if isinstance(goal, st.Width):
            assert np.quantile(prediction.width, 0.85) <= 0.08
        else:
            assert np.sqrt(np.mean((prediction.mean - truth(prediction.points.theta)) ** 2)) < 0.03

    def test_a_property_without_doubt_is_decided_by_the_start(self):
        done = st.refine(DECAY, st.stl("F[0, 2] A <= 10"), RATE, goal=st.Threshold(0.5), budget=5_000, seed=1)
        assert done.reached
        assert len(done.rounds) == 1

    def test_a_space_without_parameters_is_a_single_point(self):
        goal = st.Threshold(0.3)
        done = st.refine(DECAY, GONE, st.Space(k=1.0), goal=goal, budget=5_000, seed=1)
        assert done.reached

    def test_text_is_read_as_a_formula(self, undisturbed):
        again = st.refine(DECAY, "F[0, 2] A == 0", RATE, goal=st.Threshold(0.5, undecided=0.02), budget=30_000, seed=1)
        same(again, undisturbed)


class TestEnds:
    def test_a_spent_budget_ends_it_and_says_so(self):
        done = refined(goal=st.Threshold(0.5, undecided=0.001), budget=4_000)
        assert not done.reached
        assert done.runs <= 4_000
        assert done.runs >= 3_900
        assert "the budget is spent" in done.reason

    def test_a_learner_that_more_runs_do_not_help_ends_it(self):
        done = refined(goal=st.Error(0.0001), learner=Stubborn(), budget=200_000)
        assert not done.reached
        assert "more runs do not help" in done.reason
        assert done.runs < 200_000

    def test_runs_of_the_start_do_not_count(self):
        start = st.observe(DECAY, GONE, RATE.sobol(64, seed=9), 20, seed=10)
        done = refined(start=start, budget=2_000, goal=st.Threshold(0.5, undecided=0.001))
        assert 1_280 + 1_900 <= done.runs <= 1_280 + 2_000
        assert len(done.observations) > 64

    def test_the_design_is_active_and_no_guarantee_rests_on_it(self, undisturbed):
        assert undisturbed.observations.points.design == "active"
        other = st.SVIGP().fit(st.observe(DECAY, GONE, RATE.sobol(64, seed=9), 20, seed=10), seed=1)
        with pytest.raises(st.InputError, match="'active'"):
            st.calibrate(other, undisturbed.observations)

    def test_a_kernel_that_saw_the_data_gives_no_divergence_from_its_prior(self, undisturbed):
        with pytest.raises(st.InputError, match="kl"):
            undisturbed.posterior.kl()
        assert undisturbed.posterior.recipe == st.SVIGP()

    def test_progress_tells_the_figure_and_counts_runs(self):
        watcher = Watcher()
        done = refined(progress=watcher)
        assert watcher.told == [("refine", 30_000, "runs")]
        assert watcher.done == done.runs
        assert any("undecided" in note for note in watcher.notes)
        assert watcher.open == 0


class Stubborn:
    """Never believes to know more."""

    def fit(self, observations, *, seed):
        half = lambda theta: (np.full(len(theta), 0.5), np.full(len(theta), 0.1))  # noqa: E731
        return st.posterior_from(half, observations, learner=self, seed=seed)


class TestResuming:
    @pytest.mark.parametrize("at", [1, 3, 6, 9])
    def test_ctrl_c_in_any_round_and_then_the_same_bits(self, tmp_path, at, undisturbed):
        store = tmp_path / "runs.db"
        with pytest.raises(st.Interrupted, match="run the same again"):
            refined(store=store, progress=Watcher(at=at))
        same(refined(store=store), undisturbed)

    def test_without_a_store_what_is_done_is_in_the_error(self):
        with pytest.raises(st.Interrupted) as stop:
            refined(progress=Watcher(patience=1_500))
        assert stop.value.partial.trials.sum() >= 1_500

    def test_what_is_complete_is_read_and_not_run_again(self, tmp_path, undisturbed):
        store = tmp_path / "runs.db"
        refined(store=store)
        watcher = Watcher()
        same(refined(store=store, progress=watcher), undisturbed)
        assert watcher.done == 0

    def test_workers_and_executors_give_the_same_bits(self, undisturbed):
        same(refined(workers=2), undisturbed)
        with ProcessPoolExecutor(1, get_context("spawn")) as executor:
            same(refined(executor=executor), undisturbed)

    def test_a_black_box_that_changed_is_refined_anew(self, tmp_path):
        file, names = tmp_path / "changing.py", []
        for chance in (0.2, 0.8):
            file.write_text(f"def box(theta, rng):\n    return bool(rng.random() < {chance} * theta['a'])\n")
            spec = importlib.util.spec_from_file_location("changing", file)
            module = importlib.util.module_from_spec(spec)
            linecache.checkcache()
            spec.loader.exec_module(module)
            goal = st.Threshold(0.1, undecided=0.01)
            done = st.refine(
                module.box, None, PLANE, goal=goal, budget=900, seed=1, start=(16, 20), store=tmp_path / "runs.db"
            )
            names.append(done.rounds[0].figure)
        assert names[0] != names[1]

    def test_a_damaged_note_is_an_error_and_not_a_guess(self, tmp_path):
        store = tmp_path / "runs.db"
        refined(store=store)
        connection = sqlite3.connect(store)
        connection.execute("UPDATE note SET content = x'00'")
        connection.commit()
        connection.close()
        with pytest.raises(st.StoreError, match="is damaged"):
            refined(store=store)

    def test_a_note_stays_what_it_was(self, tmp_path):
        with Notes(tmp_path / "runs.db", "work") as notes:
            assert notes.read("a") is None
            assert notes.write("a", {"x": 0.1}) == {"x": 0.1}
            assert notes.write("a", {"x": 0.2}) == {"x": 0.1}
        with Notes(tmp_path / "runs.db", "work") as notes, Notes(tmp_path / "runs.db", "other") as others:
            assert notes.read("a") == {"x": 0.1}
            assert others.read("a") is None

    def test_a_store_of_the_first_version_becomes_one_of_the_second(self, tmp_path):
        store = tmp_path / "runs.db"
        points = RATE.sobol(8, seed=1)
        first = st.observe(DECAY, GONE, points, 50, seed=2, store=store)
        connection = sqlite3.connect(store)
        connection.execute("DROP TABLE note")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
        connection.close()
        watcher = Watcher()
        assert st.observe(DECAY, GONE, points, 50, seed=2, store=store, progress=watcher) == first
        assert watcher.done == 0
        with Notes(store, "work") as notes:
            assert notes.write("a", {}) == {}


class TestOtherSources:
    def test_a_black_box_is_refined_too(self):
        goal = st.Threshold(0.5, undecided=0.12)
        done = st.refine(disc, None, PLANE, goal=goal, budget=20_000, seed=1, start=(64, 20))
        assert done.reached
        points = PLANE.grid(40)
        regions = st.decide(done.posterior, above=0.5, seed=1).of(points)
        wrong = ((regions == "above") & (disc_probability(points.theta) < 0.45)) | (
            (regions == "below") & (disc_probability(points.theta) > 0.55)
        )
        assert wrong.mean() < 0.01

    def test_a_learner_of_ones_own_is_refined_by_its_draws(self):
        done = refined(learner=Pooled(), goal=st.Error(0.01), budget=6_000)
        assert done.reached
        assert done.posterior.kind.endswith("Pooled")

    @pytest.mark.slow
    def test_a_network_is_refined_by_its_draws(self):
        done = refined(learner=st.LaplaceNet(), goal=st.Threshold(0.5, undecided=0.001), budget=1_700, start=(64, 20))
        assert len(done.rounds) == 2
        assert done.rounds[1].figure < done.rounds[0].figure

    def test_events_are_counted_where_time_is_the_cost(self, tmp_path):
        model = st.Model.parse("species A = 0\n0 -> A @ k")
        goal = st.Threshold(0.5, undecided=0.01)
        space = st.Space(k=st.Range(0.5, 50, scale="log"))
        dear = st.refine(model, "F[0, 1] A >= 5", space, goal=goal, budget=6_000, seed=1)
        cheap = st.refine(model, "F[0, 1] A >= 5", space, goal=goal, budget=6_000, seed=1, cost="time")
        assert cheap.rounds[0] == dear.rounds[0]
        assert cheap.observations != dear.observations

    def test_a_cost_surface_follows_what_was_measured(self):
        theta = PLANE.sobol(64, seed=1).theta
        costs = _surface(PLANE, theta, np.exp(1.0 + 2.0 * theta[:, 0]))
        ratio = costs(np.array([[1.0, 0.5]])) / costs(np.array([[0.0, 0.5]]))
        assert ratio[0] == pytest.approx(np.exp(2.0), rel=0.05)

    def test_seconds_are_noted_before_they_are_used(self, tmp_path):
        goal = st.Threshold(0.5, undecided=0.01)
        asked = {"goal": goal, "budget": 900, "seed": 1, "cost": "time", "start": (16, 20), "store": tmp_path / "s.db"}
        SLOW["seconds"] = 0.002
        first = st.refine(slowly, None, PLANE, **asked)
        SLOW["seconds"] = 0.0
        again = st.refine(slowly, None, PLANE, **asked)  # its runs are in the store, and so are the seconds
        same(again, first)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "argument"),
        [
            ({"budget": 10}, "budget"),
            ({"budget": 1e6}, "budget"),
            ({"seed": -1}, "seed"),
            ({"goal": 0.1}, "goal"),
            ({"cost": "euros"}, "cost"),
            ({"start": (10_000, 10_000)}, "start"),
            ({"start": "many"}, "start"),
        ],
    )
    def test_what_cannot_be_is_refused_by_its_argument(self, options, argument):
        with pytest.raises(st.InputError) as error:
            refined(**options)
        assert error.value.argument == argument

    def test_an_unknown_option_is_an_error(self):
        with pytest.raises(TypeError, match="patience"):
            refined(patience=3)

    def test_a_start_of_another_question_is_refused(self):
        other = st.observe(DECAY, st.stl("F[0, 3] A == 0"), RATE.sobol(16, seed=1), 10, seed=2)
        with pytest.raises(st.InputError, match="another formula"):
            refined(start=other)
        elsewhere = st.observe(DECAY, GONE, st.Space(k=(0.1, 2.0)).sobol(16, seed=1), 10, seed=2)
        with pytest.raises(st.InputError, match="another space"):
            refined(start=elsewhere)
