"""Black boxes: any callable that answers with a bool or a path; what it raises is recorded, and the rest goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sateen as st
from sateen.sampling.ledger import MOST_FAILURES

SPACE = st.Space(p=(0.0, 1.0), c=3)
POINTS = SPACE.grid(5)


def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    return bool(rng.random() < theta["p"])


def step(theta: dict[str, float], rng: np.random.Generator) -> st.Path:
    """From 0 to 1 at an exponential time of rate 5 p, known for one time unit."""
    time = rng.exponential() / max(5 * theta["p"], 1e-9)
    times = [0.0, time] if time < 1 else [0.0]
    return st.Path(times=times, states=[0, 1][: len(times)], species="x", end=1.0)


class TestAnswers:
    def test_a_bool_is_counted(self) -> None:
        from scipy.stats import binomtest

        obs = st.observe(coin, None, POINTS, 400, seed=1)
        assert obs.satisfied[[0, 4]].tolist() == [0, 400]
        for k, p in zip(obs.satisfied.tolist(), POINTS.theta[:, 0].tolist(), strict=True):
            assert binomtest(k, 400, p).pvalue > 1e-6
        assert obs.undecided.sum() == 0

    @pytest.mark.parametrize(
        "kind", [bool, np.bool_, int, np.int64, np.uint8, lambda yes: st.Verdict.TRUE if yes else st.Verdict.FALSE]
    )
    def test_whatever_says_yes_or_no_counts_the_same(self, kind: Any) -> None:
        def other(theta: dict[str, float], rng: np.random.Generator) -> Any:
            return kind(coin(theta, rng))

        obs = st.observe(other, None, POINTS, 50, seed=1)
        assert obs.satisfied.tolist() == st.observe(coin, None, POINTS, 50, seed=1).satisfied.tolist()

    def test_a_path_is_decided_by_the_formula(self) -> None:
        from scipy.stats import binomtest

        obs = st.observe(step, st.stl("F[0, 0.5] x == 1"), POINTS, 300, seed=1)
        for k, p in zip(obs.satisfied.tolist(), POINTS.theta[:, 0].tolist(), strict=True):
            assert binomtest(k, 300, float(1 - np.exp(-2.5 * p))).pvalue > 1e-6

    def test_several_formulas_see_the_same_paths(self) -> None:
        formulas = {"up": st.stl("F[0, 0.5] x == 1"), "down": st.stl("G[0, 0.5] x == 0")}
        obs = st.observe(step, formulas, POINTS, 100, seed=1)
        assert (obs["up"].satisfied + obs["down"].satisfied == 100).all()
        assert obs["up"] == st.observe(step, formulas["up"], POINTS, 100, seed=1)

    def test_a_path_that_is_too_short_is_undecided(self) -> None:
        obs = st.observe(step, st.stl("F[0, 2] x == 1"), POINTS, 100, seed=1)
        assert obs.violated.sum() == 0
        assert obs.undecided[0] == 100
        assert list(obs.reasons) == ["short path"]

    def test_an_unknown_verdict_is_undecided_too(self) -> None:
        obs = st.observe(lambda theta, rng: st.Verdict.UNKNOWN, None, POINTS, 3, seed=1)
        assert obs.reasons["short path"].tolist() == [3] * 5

    def test_a_formula_may_read_the_parameters(self) -> None:
        obs = st.observe(step, st.stl("F[0, 0.5] x == 1 & c == 3 & p > 0.6"), POINTS, 50, seed=1)
        assert obs.satisfied[:3].tolist() == [0, 0, 0]
        assert (obs.satisfied[3:] > 10).all()

    def test_it_is_given_every_parameter_the_fixed_ones_too_and_may_spoil_the_dict(self) -> None:
        def spoiler(theta: dict[str, float], rng: np.random.Generator) -> bool:
            assert set(theta) == {"p", "c"}
            return theta.pop("c") == 3

        assert st.observe(spoiler, None, POINTS, 5, seed=1).frequency.tolist() == [1.0] * 5

    def test_objects_that_can_be_called_are_black_boxes(self) -> None:
        class Coin:
            def __call__(self, theta: dict[str, float], rng: np.random.Generator) -> bool:
                return coin(theta, rng)

        obs = st.observe(Coin(), None, POINTS, 20, seed=1)
        assert obs.provenance["model"].startswith("black box ")
        assert obs.provenance["model"].endswith("Coin")
        assert obs.relevant == ("p",)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ("yes", "returns a str; a black box answers with a bool, or with a Path"),
            (None, "returns a NoneType"),
            (0.5, "returns a float"),
            (2, "returns 2"),
            (-1, "returns -1"),
            (np.zeros(1, bool), "returns a ndarray"),
        ],
    )
    def test_other_answers_stop_everything(self, answer: Any, words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            st.observe(lambda theta, rng: answer, None, POINTS, 5, seed=1)

    def test_paths_need_a_formula_and_bools_refuse_one(self) -> None:
        with pytest.raises(st.InputError, match="returns paths, which a formula must decide"):
            st.observe(step, None, POINTS, 5, seed=1)
        with pytest.raises(st.InputError, match=r"decides by itself.*\n  give formula=None"):
            st.observe(coin, st.stl("F[0, 1] x > 0"), POINTS, 5, seed=1)

    def test_a_name_that_a_path_does_not_have_is_an_error_not_a_failed_run(self) -> None:
        with pytest.raises(st.MissingValueError, match="y is neither a species nor a parameter"):
            st.observe(step, st.stl("F[0, 1] y == 1"), POINTS, 5, seed=1)

    @pytest.mark.parametrize("cap", [{"max_events": 10}, {"max_time": 1.0}, {"max_population": 5}])
    def test_caps_are_not_silently_ignored(self, cap: dict[str, Any]) -> None:
        with pytest.raises(st.InputError, match="a black box ends its own runs"):
            st.observe(coin, None, POINTS, 5, seed=1, **cap)


class TestDeterminism:
    @pytest.mark.parametrize("options", [{"workers": 3}, {"chunk": 1}, {"chunk": 7, "workers": 2}, {"chunk": 1000}])
    def test_a_run_is_the_same_wherever_it_is_made(self, options: dict[str, int]) -> None:
        assert st.observe(coin, None, POINTS, 60, seed=4, **options) == st.observe(coin, None, POINTS, 60, seed=4)

    def test_failures_are_the_same_wherever_they_are_made(self) -> None:
        one, other = (st.observe(shaky, None, POINTS, 300, seed=4, **how) for how in ({}, {"workers": 3, "chunk": 11}))
        assert one == other
        assert one.failures == other.failures
        assert len(one.failures) == MOST_FAILURES

    def test_by_default_it_runs_in_the_thread_that_asked(self) -> None:
        import threading

        seen = set()

        def look(theta: dict[str, float], rng: np.random.Generator) -> bool:
            seen.add(threading.current_thread())
            return True

        st.observe(look, None, POINTS, 5, seed=1)
        assert seen == {threading.current_thread()}
        st.observe(look, None, POINTS, 5, seed=1, workers=2)
        assert len(seen) > 1


def shaky(theta: dict[str, float], rng: np.random.Generator) -> bool:
    if rng.random() < 0.2:
        raise RuntimeError(f"no luck with {theta['p']}")
    return bool(rng.random() < theta["p"])


class TestFailures:
    def test_a_run_that_raises_is_recorded_and_the_rest_goes_on(self) -> None:
        obs = st.observe(shaky, None, POINTS, 100, seed=4)
        assert np.array_equal(obs.satisfied + obs.violated + obs.undecided, obs.trials)
        assert list(obs.reasons) == ["failed"]
        assert 50 < obs.undecided.sum() < 150
        first = obs.failures[0]
        assert first.error == f"RuntimeError: no luck with {first.theta['p']}"
        assert first.seed == 4
        assert first.theta == obs.points[first.point]

    def test_a_failure_can_be_repeated_from_its_record(self) -> None:
        first = st.observe(shaky, None, POINTS, 100, seed=4).failures[0]
        rng = np.random.default_rng(np.random.SeedSequence((first.seed, first.point, first.run)))
        with pytest.raises(RuntimeError, match="no luck"):
            shaky(dict(first.theta), rng)

    def test_of_many_failures_all_are_counted_and_the_first_are_kept(self) -> None:
        obs = st.observe(shaky, None, POINTS, 300, seed=4)
        assert obs.reasons["failed"].sum() > MOST_FAILURES
        places = [(failure.point, failure.run) for failure in obs.failures]
        assert places == sorted(places)
        assert len(places) == MOST_FAILURES

    @pytest.mark.parametrize("options", [{}, {"workers": 2}, {"chunk": 3}])
    def test_if_nothing_succeeds_the_first_exception_is_raised_as_the_cause(self, options: dict[str, int]) -> None:
        def broken(theta: dict[str, float], rng: np.random.Generator) -> bool:
            raise ZeroDivisionError("division by zero")

        with pytest.raises(st.SimulationError, match=r"all of the first \d+ runs of .*broken failed") as caught:
            st.observe(broken, None, POINTS, 1000, seed=4, **options)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert "p = 0, c = 3; seed 4, point 0, run 0" in str(caught.value)

    def test_a_single_run_that_fails_is_nothing_but_failure(self) -> None:
        def broken(theta: dict[str, float], rng: np.random.Generator) -> bool:
            raise KeyError("x")

        with pytest.raises(st.SimulationError, match="all of the first 1 runs"):
            st.observe(broken, None, POINTS[:1], 1, seed=4)

    def test_a_few_failures_at_the_beginning_are_not_the_end(self) -> None:
        calls = []

        def late(theta: dict[str, float], rng: np.random.Generator) -> bool:
            calls.append(1)
            if len(calls) < 15:
                raise RuntimeError("warming up")
            return True

        obs = st.observe(late, None, POINTS, 10, seed=4)
        assert obs.reasons["failed"].sum() == 14
        assert obs.satisfied.sum() == 36
