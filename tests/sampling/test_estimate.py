"""Estimates at one θ: against exact values, whatever the processors, and what they say of themselves."""

from __future__ import annotations

import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import pytest
from scipy import stats

import sateen as st
from sateen.core.progress import Progress
from sateen.core.proportions import clopper_pearson
from sateen.sampling import estimate as estimation
from sateen.sampling.sequential import anytime, credible
from watchers import Watcher

UNLIKELY = 1e-6
SIR = st.Model.load(FilePath(__file__).resolve().parents[2] / "examples" / "sir.sateen")
DIES_OUT = st.stl("(I > 0) U[100, 120] (I == 0)")
THETA = {"beta": 0.12, "gamma": 0.05}
TRUTH = 0.0729933446  # P(DIES_OUT | THETA) by uniformization


def found(**options: Any) -> st.Estimate:
    return st.estimate(SIR, DIES_OUT, THETA, **{"seed": 1, **options})


class TestRuns:
    def test_the_frequency_is_that_of_the_exact_probability(self) -> None:
        estimate = found(runs=400_000)
        assert stats.binomtest(estimate.satisfied, estimate.runs, TRUTH).pvalue > UNLIKELY

    def test_a_closed_form_is_met(self) -> None:
        decay = st.Model.parse("species X = 3\nX -> 0 @ mass_action(k)")
        estimate = st.estimate(decay, st.stl("F[0, 2] X == 0"), {"k": 0.4}, seed=5, runs=100_000)
        truth = (1 - math.exp(-0.8)) ** 3
        assert stats.binomtest(estimate.satisfied, estimate.runs, truth).pvalue > UNLIKELY

    def test_both_intervals_are_those_of_the_counts(self) -> None:
        estimate = found(runs=1000, level=0.9)
        k = estimate.satisfied
        assert estimate.probability == k / 1000
        assert (estimate.lower, estimate.upper) == clopper_pearson(k, 1000, 0.9)
        assert (estimate.bayes_lower, estimate.bayes_upper) == credible(k, 1000, 0.9)
        assert (estimate.level, estimate.runs, estimate.undecided, estimate.planning) == (0.9, 1000, 0, 0)
        assert (estimate.decision, dict(estimate.reasons)) == (None, {})

    def test_the_claim_rounds_outwards_and_names_the_level(self) -> None:
        estimate = found(runs=3000, level=0.99)
        numbers = re.match(r"P is from (\S+) to (\S+): .* at least 99 % of cases$", str(estimate))
        assert numbers
        lower, upper = map(float, numbers.groups())
        assert 0 <= estimate.lower - lower < 0.001
        assert 0 <= upper - estimate.upper < 0.001

    def test_ten_thousand_runs_are_made_where_nothing_is_said(self) -> None:
        assert found().runs == 10_000

    def test_the_same_seed_gives_the_same_counts_and_another_one_others(self) -> None:
        assert found(runs=5000).satisfied == found(runs=5000).satisfied
        assert len({found(runs=5000, seed=seed).satisfied for seed in range(5)}) > 1

    def test_fewer_runs_are_the_first_of_more(self) -> None:
        singly = [found(runs=runs).satisfied for runs in range(1, 80)]
        assert {after - before for before, after in pairwise(singly)} == {0, 1}

    @pytest.mark.parametrize("processors", [1, 2, 3, 8, None])
    @pytest.mark.parametrize(
        "stop", [{"runs": 3001}, {"width": 0.05}, {"test": "P > 0.05"}, {"test": "P > 0.08", "bayes": True}]
    )
    def test_the_number_of_processors_does_not_matter(
        self, processors: int | None, stop: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = found(**stop)
        monkeypatch.setattr(os, "cpu_count", lambda: processors)
        if processors is None:
            monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        else:
            monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
        other = found(**stop)
        assert (usual.satisfied, usual.runs, usual.claim) == (other.satisfied, other.runs, other.claim)
        assert (usual.decision, usual.bayes) == (other.decision, other.bayes)

    def test_it_uses_no_more_processors_than_the_process_may_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pools: list[int | None] = []

        class Pool(ThreadPoolExecutor):
            def __init__(self, max_workers: int | None = None) -> None:
                pools.append(max_workers)
                super().__init__(max_workers)

        monkeypatch.setattr(estimation, "ThreadPoolExecutor", Pool)
        monkeypatch.setattr(os, "cpu_count", lambda: 64)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
        found(runs=500)
        assert pools == [3]

    def test_the_claim_is_about_repetitions_at_one_parameter(self) -> None:
        estimate = found(runs=1000, level=0.9)
        assert estimate.claim == st.Claim("probability", "frequentist", 0.9, "intervals made like this", runs=1000)
        assert str(estimate.claim) == (
            "at the given parameter, intervals made like this contain the true probability in at least 90 % of cases"
        )
        assert st.Claim.from_content(estimate.claim.content()) == estimate.claim

    def test_the_claim_of_a_test_holds_after_all_of_its_runs_together(self) -> None:
        estimate = found(test="P > 0.05")
        assert estimate.claim.measure == "the intervals after all runs of such a test together"
        assert estimate.claim.runs == estimate.runs

    def test_defaults_of_the_model_hold_where_theta_is_silent(self) -> None:
        silent = st.estimate(SIR, DIES_OUT, {"beta": 0.12}, seed=1, runs=500)
        assert silent.satisfied == found(runs=500).satisfied


class TestUndecided:
    def test_runs_that_reach_a_cap_are_counted_by_reason_and_open_the_frequency(self) -> None:
        estimate = found(runs=1000, max_events=150)
        assert 0 < estimate.reasons["max_events"] == estimate.undecided < 1000
        assert math.isnan(estimate.probability)
        assert (estimate.lower, estimate.upper) == clopper_pearson(estimate.satisfied, 1000, 0.95, estimate.undecided)
        assert f"{estimate.undecided} undecided runs count as violations below" in str(estimate)
        assert dict(found(runs=100, max_time=99).reasons) == {"max_time": found(runs=100, max_time=99).undecided}

    def test_the_interval_holds_what_longer_runs_would_have_given(self) -> None:
        short, long = found(runs=1000, max_events=150), found(runs=1000)
        assert short.satisfied <= long.satisfied <= short.satisfied + short.undecided
        assert short.lower <= long.lower < long.upper <= short.upper

    def test_a_width_that_they_put_out_of_reach_is_said_to_be(self) -> None:
        estimate = found(width=0.05, max_events=150)
        assert estimate.upper - estimate.lower > 0.5
        assert str(estimate).endswith("the width 0.05 was not reached: the undecided runs keep it wider")

    def test_a_test_whose_answer_they_could_turn_stays_undecided(self) -> None:
        estimate = found(test="P > 0.05", max_events=150)
        assert estimate.decision == "undecided"
        assert str(estimate).startswith("P > 0.05 stays undecided: it depends on what the undecided runs")

    def test_a_test_whose_answer_they_cannot_turn_is_answered(self) -> None:
        estimate = found(test="P > 0.9", max_events=150)
        assert estimate.undecided > 0
        assert estimate.decision == "rejected"


class TestWidth:
    @pytest.mark.parametrize("width", [0.2, 0.05, 0.01])
    def test_the_interval_is_no_wider_and_holds_the_exact_probability_at_a_high_level(self, width: float) -> None:
        estimate = found(width=width, level=1 - UNLIKELY)
        assert estimate.upper - estimate.lower <= width
        assert estimate.lower <= TRUTH <= estimate.upper
        assert estimate.planning > 0
        assert "not reached" not in str(estimate)

    def test_too_few_runs_are_said_to_be_the_reason(self) -> None:
        estimate = found(width=0.001, max_runs=2000)
        assert estimate.runs + estimate.planning == 2000
        assert str(estimate).endswith("the width 0.001 was not reached: it takes more runs than were allowed")


class TestTest:
    @pytest.mark.parametrize(
        ("test", "decision", "meaning"),
        [
            ("P>0.03", "accepted", "if P were 0.02 or less"),
            ("P >= .03", "accepted", "if P were 0.02 or less"),
            (" p < 0.03 ", "rejected", "if P were 0.02 or less"),
            ("P<=0.2", "accepted", "if P were 0.21 or more"),
            ("P > 2e-1", "rejected", "if P were 0.21 or more"),
        ],
    )
    def test_it_answers_what_was_asked(self, test: str, decision: str, meaning: str) -> None:
        estimate = found(test=test, error=UNLIKELY)
        assert estimate.decision == decision
        assert f"is {decision}: {meaning}, this would happen with probability 1e-06 at most\n" in str(estimate)

    def test_its_runs_are_the_first_ones_counted_one_by_one(self) -> None:
        tested = found(test="P > 0.05")
        assert found(runs=tested.runs).satisfied == tested.satisfied
        assert (tested.lower, tested.upper) == anytime(tested.satisfied, tested.runs, 0.95)
        assert tested.planning == 0

    def test_a_threshold_too_near_is_undecided_after_the_most_runs(self) -> None:
        estimate = found(test="P > 0.073", indifference=1e-4, max_runs=3000)
        assert (estimate.decision, estimate.runs) == ("undecided", 3000)
        assert str(estimate).startswith("P > 0.073 is undecided after 3,000 runs, the most that were allowed\n")

    @pytest.mark.parametrize("text", ["", "P", "P = 0.3", "P > x", "Q > 0.3", "0.3 < P", "P > 0.3 0.4", "P >> 0.3"])
    def test_what_is_no_test_is_told_how_to_write_one(self, text: str) -> None:
        with pytest.raises(st.InputError, match=r"is not a test of a probability; write P > 0\.3"):
            found(test=text)

    @pytest.mark.parametrize("text", ["P > 0", "P > 1", "P > 1.5", "P > nan", "P > -inf"])
    def test_a_threshold_is_a_probability(self, text: str) -> None:
        with pytest.raises(st.InputError, match="must lie between 0 and 1"):
            found(test=text)


class TestBayes:
    @pytest.mark.parametrize(
        ("test", "decision"),
        [("P > 0.03", "accepted"), ("P <= .03", "rejected"), ("P < 0.2", "accepted"), ("P >= 0.2", "rejected")],
    )
    def test_it_answers_what_was_asked(self, test: str, decision: str) -> None:
        estimate = found(test=test, bayes=True, error=UNLIKELY)
        assert estimate.decision == decision
        assert estimate.bayes is not None
        assert str(estimate).startswith(f"{estimate.bayes.claim.by} is {decision}: Bayes factor ")
        assert estimate.bayes.claim.level == pytest.approx(1 - UNLIKELY, abs=1e-9)
        assert (estimate.bayes.log_factor_lower > 0) == (decision == "accepted")

    def test_it_rests_on_the_first_runs_and_stops_at_the_run_that_decides(self) -> None:
        estimate = found(test="P > 0.05", bayes=True, factor=50, prior=(2, 5))
        assert estimate.bayes is not None
        assert found(runs=estimate.runs).satisfied == estimate.satisfied
        posterior = stats.beta(2 + estimate.satisfied, 5 + estimate.runs - estimate.satisfied)
        prior = stats.beta(2, 5)
        odds = [belief.sf(0.05) / belief.cdf(0.05) for belief in (posterior, prior)]
        assert estimate.bayes.factor_lower == pytest.approx(odds[0] / odds[1], rel=1e-6)
        assert estimate.bayes.factor_lower >= 50
        sooner = found(test="P > 0.05", bayes=True, factor=50, prior=(2, 5), max_runs=estimate.runs - 1)
        assert (sooner.decision, sooner.runs) == ("undecided", estimate.runs - 1)
        assert sooner.bayes is not None
        assert sooner.bayes.factor_lower < 50

    def test_its_belief_is_that_of_the_prior_and_its_interval_may_be_read_at_any_time(self) -> None:
        estimate = found(test="P > 0.05", bayes=True, prior=(2, 5), level=0.9)
        k, n = estimate.satisfied, estimate.runs
        assert (estimate.bayes_lower, estimate.bayes_upper) == credible(k, n, 0.9, prior=(2, 5))
        assert (estimate.lower, estimate.upper) == anytime(k, n, 0.9)
        assert estimate.claim.mode == "frequentist"

    def test_after_the_most_runs_it_is_undecided_and_says_what_it_has(self) -> None:
        estimate = found(test="P > 0.073", bayes=True, max_runs=3000)
        assert (estimate.decision, estimate.runs) == ("undecided", 3000)
        assert str(estimate).startswith(
            f"P > 0.073 is undecided after 3,000 runs, the most that were allowed; {estimate.bayes}\n"
        )

    def test_undecided_runs_keep_it_from_an_answer_that_they_could_turn(self) -> None:
        estimate = found(test="P > 0.05", bayes=True, max_events=150)
        assert estimate.decision == "undecided"
        assert str(estimate).startswith("P > 0.05 stays undecided: it depends on what the undecided runs would have")
        assert estimate.bayes is not None
        assert estimate.bayes.log_factor_lower < 0 < estimate.bayes.log_factor_upper
        sure = found(test="P < 0.9", bayes=True, max_events=150)
        assert sure.undecided > 0
        assert sure.decision == "accepted"
        assert sure.bayes is not None
        assert sure.bayes.log_needed <= sure.bayes.log_factor_lower < sure.bayes.log_factor_upper

    def test_without_it_nothing_is_said_of_a_factor(self) -> None:
        assert found(test="P > 0.05").bayes is None
        assert found(runs=10).bayes is None

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"bayes": True}, "bayes is a way to answer a test, and there is none\n  give a test, such as 'P > 0.3'"),
            ({"bayes": True, "runs": 10}, "bayes is a way to answer a test"),
            ({"bayes": 1, "test": "P > 0.3"}, "bayes is True or False, not 1"),
            ({"prior": (1, 1)}, "prior applies only to a Bayesian test; add bayes=True"),
            ({"test": "P > 0.3", "factor": 5}, "factor applies only to a Bayesian test; add bayes=True"),
            ({"test": "P > 0.3", "bayes": True, "indifference": 0.1}, "a Bayesian test has no indifference"),
            ({"test": "P > 0.3", "bayes": True, "factor": 5, "error": 0.1}, "give one of them"),
            ({"test": "P > 0.3", "bayes": True, "prior": (1, 0)}, "prior is a and b of Beta(a, b)"),
            ({"test": "P > 0.3", "bayes": True, "factor": 0.5}, "factor is a number above 1"),
            ({"test": "P > 1", "bayes": True}, "a threshold between 0 and 1, not 1"),
            ({"test": "P = 0.3", "bayes": True}, "is not a test of a probability"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=re.escape(words)):
            found(**options)


class TestInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"runs": 5, "width": 0.1}, "runs and width say in different ways"),
            ({"runs": 5, "test": "P > 0.5", "width": 0.1}, "runs and width and test"),
            ({"runs": 0}, "runs is a whole number from 1 up, not 0"),
            ({"runs": 2.5}, "not 2.5"),
            ({"runs": True}, "not True"),
            ({"max_runs": 0, "width": 0.1}, "max_runs is a whole number"),
            ({"width": 0.0}, "width is between 0 and 1"),
            ({"width": math.nan}, "width is between 0 and 1"),
            ({"level": 1.0}, "level is between 0 and 1"),
            ({"test": "P > 0.5", "error": 0.5}, "between 0 and 0.5"),
            ({"seed": -1}, "a seed is a whole number"),
            ({"max_events": 0}, "max_events is a whole number"),
            ({"max_time": 0.0}, "max_time is a time after 0"),
        ],
    )
    def test_what_cannot_be_used_is_refused_by_name(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=re.escape(words)):
            found(**options)

    def test_names_that_nothing_bears_are_refused(self) -> None:
        with pytest.raises(st.FormulaError, match="did you mean I"):
            st.estimate(SIR, st.stl("F[0, 1] i > 0"), THETA, seed=1)
        with pytest.raises(st.MissingValueError, match="did you mean beta"):
            st.estimate(SIR, DIES_OUT, {"betta": 1}, seed=1)
        with pytest.raises(st.MissingValueError, match="the parameter beta has no value"):
            st.estimate(SIR, DIES_OUT, seed=1)


class TestProgress:
    @pytest.mark.parametrize("stop", [{"runs": 5000}, {"width": 0.05}])
    def test_every_piece_of_work_is_begun_carried_out_and_finished(self, stop: dict[str, Any]) -> None:
        watcher: Progress = Watcher()
        estimate = found(progress=watcher, **stop)
        assert isinstance(watcher, Watcher)
        assert watcher.open == 0
        assert watcher.done_of_each == [total for _, total, _ in watcher.told]
        simulated = [total for _, total, unit in watcher.told if unit == "runs"]
        assert sum(simulated) == estimate.runs + estimate.planning

    def test_a_test_is_one_piece_of_work(self) -> None:
        watcher = Watcher()
        estimate = found(progress=watcher, test="P > 0.05", max_runs=9999)
        assert watcher.told[-1] == ("testing", 9999, "runs")
        assert watcher.done_of_each[-1] >= estimate.runs

    def test_it_is_finished_after_an_error_too(self) -> None:
        watcher = Watcher()
        failing = st.Model.parse("species X = 0\n0 -> X @ 2.5 * k - X")
        with pytest.raises(st.SimulationError, match="replay it with seed 3, point 0, run"):
            st.estimate(failing, st.stl("F[0, 99] X > 5"), {"k": 1}, seed=3, runs=100, progress=watcher)
        assert watcher.told
        assert watcher.open == 0

    def test_compiling_is_noted_the_first_time_only(self, monkeypatch: pytest.MonkeyPatch, tmp_path: FilePath) -> None:
        monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path))
        fresh = st.Model.parse("species X = 7\nX -> 0 @ mass_action(k1k2k3)")
        watchers = [Watcher(), Watcher()]
        for watcher in watchers:
            st.estimate(fresh, st.stl("F[0, 1] X == 3"), {"k1k2k3": 1}, seed=1, runs=10, progress=watcher)
        assert [watcher.notes for watcher in watchers] == [["compiling (once)"], []]
