"""`certify` end to end: right regions pass, wrong ones do not, and what cannot be claimed is refused with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.certified import DECAY, EMPTY, LINE, PLANE, RATES, Line, believed, coin, decayed, slow_coin, tilted
from tests.watchers import Watcher

import sateen as st
from sateen.decision import fresh
from sateen.decision.certify import run_fresh
from sateen.decision.corners import assumption, behind
from sateen.decision.fresh import Frozen

SURE = 1e-6  # of a statistical test


@pytest.fixture(scope="module")
def learned() -> Any:
    """A posterior of the ten that decay, learned from 200 points."""
    seen = st.observe(DECAY, EMPTY, RATES.sobol(200, seed=1), runs=100, seed=2)
    return st.EPGP().fit(seen, seed=3)


@pytest.fixture(scope="module")
def above(learned: Any) -> Any:
    return st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, wrong=0.03, seed=5)


class TestFresh:
    def test_a_right_region_is_certified(self, above: Any):
        assert above.holds
        assert above.by == "fresh"
        assert above.claim.target == "region"
        assert above.claim.mode == "pac"
        assert above.claim.confidence == 0.95
        assert 0.97 <= above.claim.level <= 1.0 - above.evidence.bound
        assert above.runs == sum(look.trials.sum() for look in above.evidence.outcome.looks)

    def test_the_certified_region_is_right(self, above: Any):
        theta = above.evidence.points.theta[:, 0]
        assert (decayed(theta) < 0.5).mean() <= 0.03

    @pytest.mark.parametrize("side", ["above", "below"])
    def test_right_regions_pass_as_often_as_forecast(self, learned: Any, side: str):
        regions = st.decide(learned, **{side: 0.5}, seed=1)
        certificate = st.certify(regions, DECAY, EMPTY, wrong=0.03, seed=5)
        frozen, plan = certificate.evidence.frozen, certificate.plan
        question: Any = DECAY, EMPTY, certificate.asked, {"workers": 1}
        passed = sum(run_fresh(frozen, plan, seed, *question).bound <= 0.03 for seed in range(60))
        assert binomtest(passed, 60, 0.9, alternative="less").pvalue > SURE
        truth = decayed(certificate.evidence.points.theta[:, 0])
        assert (truth < 0.5 if side == "above" else truth > 0.5).mean() <= certificate.evidence.bound

    def test_the_sentence_says_what_was_drawn_from_what(self, above: Any):
        words = str(above)
        z = f"z = {above.plan.margin:.4g}"
        margin = f"by more than {z} standard deviations on the probit scale"
        assert f"the region where ep-gp puts the probability above 0.5 ({margin}; " in words
        assert "k in [0.1, 3]" in words
        assert "it says nothing about one single parameter" in words
        assert "This is as asked." in words
        assert f"{above.runs:,} runs" in words
        assert "<p>" in above._repr_html_()
        assert "holds" in repr(above)

    def test_the_volume_is_that_of_the_frozen_region(self, above: Any):
        grid = RATES.grid(20_001)
        share = above.regions.decided(grid, z=above.plan.margin).mean()
        assert above.volume == pytest.approx(share, abs=1e-3)
        assert above.volume >= 0.9 * above.regions.above - 1e-3

    def test_the_same_arguments_give_the_same_certificate(self, learned: Any, above: Any):
        again = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, workers=1)
        assert again.claim == above.claim
        np.testing.assert_array_equal(again.evidence.points.theta, above.evidence.points.theta)

    def test_the_seed_feeds_the_forecast_only(self, above: Any):
        other = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=6)
        assert other.plan.margin == above.plan.margin
        assert other.evidence.seed == above.evidence.seed
        few = min(len(other.evidence.points), len(above.evidence.points))
        np.testing.assert_array_equal(other.evidence.points.theta[:few], above.evidence.points.theta[:few])

    def test_another_attempt_draws_anew_and_may_err_less(self, above: Any):
        second = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, attempt=2)
        assert second.evidence.seed != above.evidence.seed
        assert second.evidence.error == pytest.approx(above.evidence.error / 3)
        assert "(attempt 2)" in str(second)

    def test_a_tolerance_is_claimed_and_saves_runs(self, above: Any):
        easy = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, tolerance=0.1)
        assert easy.holds
        assert easy.runs < above.runs
        assert "at least 0.4 (0.5 less the tolerance 0.1)" in str(easy.claim)

    def test_a_guarantee_is_certified_as_it_is(self, learned: Any):
        held_out = st.observe_held_out(DECAY, EMPTY, RATES, 200, 100, seed=9)
        regions = st.decide(st.calibrate(learned, held_out, seed=1), above=0.5, seed=1)
        certificate = st.certify(regions, DECAY, EMPTY, wrong=0.03, seed=5)
        assert certificate.holds
        assert certificate.plan.margin is None
        assert "the lift guarantee of ep-gp puts the probability above 0.5 (90 %; " in str(certificate.claim)
        assert regions.decided(certificate.evidence.points).all()

    def test_a_box_is_certified_whole(self, learned: Any):
        box = st.Space(k=(1.8, 2.8))
        certificate = st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, box=box, wrong=0.03, seed=5)
        assert certificate.holds
        assert certificate.volume == pytest.approx(1.0 / 2.9)
        assert "drawn uniformly from the box (k in [1.8, 2.8]; 34.5 % of the space)" in str(certificate.claim)

    def test_black_boxes_are_certified(self):
        regions = st.decide(believed(Line()), above=0.5, seed=1)
        certificate = st.certify(regions, coin, None, wrong=0.1, seed=2)
        assert certificate.holds
        assert certificate.asked.model == "black box tests.certified.coin"

    def test_undecided_runs_count_against_the_claim(self):
        regions = st.decide(believed(Line(0.93, 0.99)), above=0.9, seed=1)
        certificate = st.certify(regions, slow_coin, None, wrong=0.1, seed=2)
        assert not certificate.holds
        assert certificate.evidence.outcome.undecided > 0
        assert "undecided, which count against the claim" in str(certificate)

    def test_a_space_without_varying_parameters_is_one_point(self):
        space = st.Space(k=0.9)
        seen = st.observe(coin, None, space.points({}), runs=400, seed=1)
        regions = st.decide(st.EPGP().fit(seen, seed=1), above=0.5, seed=1)
        assert st.certify(regions, coin, None, wrong=0.2, seed=2).holds

    def test_a_store_keeps_every_look(self, above: Any, tmp_path: Path):
        first = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, store=tmp_path / "runs")
        watcher = Watcher()
        again = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, store=tmp_path / "runs", progress=watcher)
        assert watcher.done == 0
        assert again.claim == first.claim == above.claim

    def test_progress_is_told(self, above: Any):
        watcher = Watcher()
        certificate = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, progress=watcher)
        assert watcher.done == certificate.runs


@dataclass(frozen=True)
class Planted:
    """A coin that is 0.3 nearly everywhere, but just below 0.1 on the share `wrong` of the line."""

    wrong: float
    __qualname__ = "Planted"

    def __call__(self, theta: dict[str, float], rng: np.random.Generator) -> bool:
        return bool(rng.random() < (0.0999 if theta["k"] < self.wrong else 0.3))


class TestWrongRegions:
    def test_a_region_that_is_wrong_on_a_tenth_is_rejected(self):
        regions = st.decide(believed(Line(0.3, 0.3)), above=0.1, seed=1)
        certificate = st.certify(regions, Planted(0.1), None, wrong=0.05, seed=1)
        assert not certificate.holds
        assert certificate.evidence.bound > 0.05
        assert "This is not what was asked for (at most 5 % wrong)" in str(certificate)

    @pytest.mark.slow
    def test_a_bound_below_a_planted_share_comes_as_rarely_as_claimed(self):
        """One plan, and a draw of its own each time. Half of the bounds below the share would be noticed."""
        missed, repetitions = 0, 80
        regions = st.decide(believed(Line(0.3, 0.3)), above=0.1, seed=1, points=64)
        certificate = st.certify(regions, Planted(0.06), None, wrong=0.055, seed=1, confidence=0.8)
        question: Any = Planted(0.06), None, certificate.asked, {"workers": 1}
        for seed in range(100, 100 + repetitions):
            drawn = run_fresh(certificate.evidence.frozen, certificate.plan, seed, *question)
            missed += drawn.bound < 0.06
        assert binomtest(40, repetitions, 0.2, alternative="greater").pvalue < SURE
        assert binomtest(missed, repetitions, 0.2, alternative="greater").pvalue > SURE


class TestPlan:
    def test_the_plan_is_what_certify_does(self, above: Any):
        plan = st.plan_certificate(above.regions, wrong=0.03, seed=5)
        assert plan == above.plan
        assert plan.points == len(above.evidence.points)
        assert plan.chance >= 0.9
        assert above.runs < 3 * plan.runs < 9 * above.runs

    def test_time_is_forecast_where_it_is_known(self, above: Any, learned: Any):
        assert above.plan.seconds == pytest.approx(above.plan.runs * learned.seconds_per_run)
        assert st.plan_certificate(st.decide(believed(Line()), above=0.5, seed=1), wrong=0.1, seed=1).seconds is None
        assert "passes with a chance of" in str(above.plan)

    def test_a_budget_that_is_too_small_is_refused_with_the_least_that_would_do(self, above: Any):
        with pytest.raises(st.InputError, match=r"a budget of 100 runs is too small") as caught:
            st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, budget=100)
        least = int(caught.value.remedy.partition("about ")[2].partition(";")[0].replace(",", ""))
        certificate = st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5, budget=least)
        assert certificate.runs <= least

    def test_a_smaller_wrong_share_costs_more(self, above: Any):
        costs = [st.plan_certificate(above.regions, wrong=wrong, seed=5).runs for wrong in (0.1, 0.03, 0.01)]
        assert costs == sorted(costs)

    def test_a_region_that_the_posterior_itself_doubts_is_refused_before_a_run(self):
        regions = st.decide(believed(Line(0.5, 0.52, std=0.05)), above=0.5, level=0.1, seed=1)
        with pytest.raises(st.InputError, match="the posterior itself believes"):
            st.certify(regions, coin, None, wrong=0.001, seed=1)


class TestRefusals:
    regions = st.decide(believed(Line()), above=0.5, seed=1)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"wrong": 0.0}, "wrong is a share"),
            ({"wrong": True}, "wrong is a share"),
            ({"confidence": 1.0}, "confidence is a share"),
            ({"attempt": 0}, "attempt is a whole number from 1 up"),
            ({"budget": 0}, "budget is a whole number"),
            ({"seed": -1}, "seed is a whole number"),
            ({"tolerance": 0.5}, "tolerance is a number from 0 to below 0.5"),
            ({"tolerance": -0.1}, "tolerance is a number"),
            ({"by": "magic"}, "by is 'fresh' or 'cells'"),
            ({"monotone": {"k": "+"}}, "monotone is for by='cells'"),
            ({"cells": 3}, "cells is for by='cells'"),
            ({"box": (0, 1)}, "box is a Space"),
            ({"box": st.Space(k=(0.0, 2.0))}, "box leaves the space"),
            ({"box": st.Space(r=(0.0, 1.0))}, "box has other parameters"),
        ],
    )
    def test_what_cannot_be_asked_is_refused_by_name(self, given: dict[str, Any], words: str):
        with pytest.raises(st.InputError, match=words):
            st.certify(self.regions, coin, None, **{"seed": 1, "wrong": 0.1, **given})

    def test_what_is_no_region_model_or_formula_is_refused(self):
        with pytest.raises(st.InputError, match=r"st\.decide"):
            st.certify(LINE, coin, None, seed=1)  # type: ignore[arg-type]
        with pytest.raises(st.InputError, match="model is a Model or a callable"):
            st.certify(self.regions, "A -> B", None, seed=1)  # type: ignore[arg-type]
        with pytest.raises(st.InputError, match="formula is a Formula"):
            st.certify(self.regions, coin, 3, seed=1)  # type: ignore[arg-type]
        with pytest.raises(st.InputError, match="a model needs a formula"):
            st.certify(self.regions, DECAY, None, seed=1)

    def test_an_empty_region_is_refused_with_what_to_do(self):
        regions = st.decide(believed(Line(0.1, 0.2)), above=0.5, seed=1)
        with pytest.raises(st.InputError, match=r"no parameter is put above 0.5(.|\n)*st.refine"):
            st.certify(regions, coin, None, seed=1)

    @pytest.mark.parametrize(
        ("model", "formula", "key"),
        [
            (DECAY, st.stl("F[0, 3] A == 0"), "formula"),
            (DECAY, st.stl("F[0, 2] A == 0", end=1), "end"),
            (st.Model.parse("species A = 9\nA -> 0 @ mass_action(k)"), EMPTY, "model"),
            (coin, None, "model"),
        ],
    )
    def test_another_question_than_the_trainings_is_refused(self, above: Any, model: Any, formula: Any, key: str):
        with pytest.raises(st.InputError, match=f"the training differ in their {key}"):
            st.certify(above.regions, model, formula, seed=1)

    def test_a_posterior_that_saw_the_runs_is_refused(self, above: Any, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(fresh, "look_seed", lambda seed, number: 2 + number)  # 2 is the training's
        with pytest.raises(st.InputError, match="has seen runs of the seed 2"):
            st.certify(above.regions, DECAY, EMPTY, wrong=0.03, seed=5)

    def test_a_posterior_that_saw_a_point_is_refused(self, above: Any, monkeypatch: pytest.MonkeyPatch):
        seen = above.regions.posterior.training.observations.points
        inside = seen[above.regions.decided(seen)]
        monkeypatch.setattr(Frozen, "draw", lambda self, n, seed: inside)
        with pytest.raises(st.InputError, match="a drawn point is a point of the training"):
            st.certify(above.regions, DECAY, EMPTY, wrong=0.2, seed=5, box=st.Space(k=(1.8, 2.8)))


@dataclass(frozen=True)
class Slope:
    """Believes that f is 0.5 + (k - r)/2, as `tilted` is."""

    std: float = 0.01

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        def belief(theta: Any) -> Any:
            return 0.5 + 0.5 * (theta[:, 0] - theta[:, 1]), np.full(len(theta), self.std)

        return st.posterior_from(belief, observations, learner=self, seed=seed)


class TestCorners:
    signs: ClassVar = {"k": "+", "r": "-"}

    @pytest.mark.parametrize("side", ["above", "below"])
    def test_the_boxes_of_shown_corners_are_right_and_cover_most(self, side: str):
        regions = st.decide(believed(Slope(), PLANE), **{side: 0.5}, seed=1)
        certificate = st.certify(regions, tilted, None, by="cells", monotone=self.signs, seed=1)
        assert certificate.holds
        assert certificate.claim.mode == "pac"
        assert certificate.claim.level == 1.0
        assert certificate.claim.assuming == "f does not fall in k and does not rise in r"
        assert "this assumes that f does not fall in k and does not rise in r" in str(certificate)
        points = PLANE.uniform(5000, seed=3)
        inside = certificate.evidence.contains(points)
        truth = 0.5 + 0.5 * (points.theta[:, 0] - points.theta[:, 1])
        assert (truth[inside] >= 0.5).all() if side == "above" else (truth[inside] <= 0.5).all()
        assert certificate.volume == pytest.approx(inside.mean(), abs=0.03)
        assert certificate.volume > 0.7 * regions.volume

    def test_no_corner_lies_behind_another(self):
        regions = st.decide(believed(Slope(), PLANE), above=0.5, seed=1)
        certificate = st.certify(regions, tilted, None, by="cells", monotone=self.signs, seed=1)
        evidence = certificate.evidence
        order = behind(evidence.frozen, self.signs, evidence.points.theta, evidence.points)
        assert order.sum() == len(evidence.points)  # each is behind itself alone

    def test_a_box_has_one_corner(self):
        regions = st.decide(believed(Slope(), PLANE), above=0.5, seed=1)
        box = st.Space(k=(0.7, 1.0), r=(0.0, 0.4))
        certificate = st.certify(regions, tilted, None, by="cells", monotone=self.signs, box=box, seed=1)
        assert certificate.holds
        assert certificate.evidence.points.theta.tolist() == [[0.7, 0.4]]
        assert certificate.volume == pytest.approx(0.12)
        wrong = st.Space(k=(0.3, 1.0), r=(0.0, 0.4))
        assert not st.certify(regions, tilted, None, by="cells", monotone=self.signs, box=wrong, seed=1).holds

    @pytest.mark.slow
    def test_corners_that_are_wrong_by_a_hair_are_shown_as_rarely_as_claimed(self):
        missed, repetitions = 0, 60
        for seed in range(repetitions):
            regions = st.decide(believed(Line(0.3, 0.3), seed=seed), above=0.1, seed=1, points=64)
            options: dict[str, Any] = {"by": "cells", "monotone": {"k": "+"}, "confidence": 0.8}
            missed += st.certify(regions, Planted(1.1), None, **options, seed=1).volume > 0
        assert missed <= binom.isf(SURE, repetitions, 0.1)  # attempt 1 may use half of 20 %

    def test_every_parameter_must_be_declared(self):
        regions = st.decide(believed(Slope(), PLANE), above=0.5, seed=1)
        with pytest.raises(st.InputError, match=r"of r nothing is declared(.|\n)*declare monotone for r too"):
            st.certify(regions, tilted, None, by="cells", monotone={"k": "+"}, seed=1)
        with pytest.raises(st.InputError, match="black box has no states"):
            st.certify(regions, tilted, None, by="cells", seed=1)

    @pytest.mark.parametrize(
        ("given", "words"), [({"q": "+"}, "names q"), ({"k": "up"}, "says 'up' of k"), ({}, "maps names"), (3, "maps")]
    )
    def test_a_declaration_that_says_nothing_is_refused(self, given: Any, words: str):
        regions = st.decide(believed(Slope(), PLANE), above=0.5, seed=1)
        with pytest.raises(st.InputError, match=words):
            st.certify(regions, tilted, None, by="cells", monotone=given, seed=1)

    def test_an_assumption_reads_as_a_sentence(self):
        assert assumption({"a": "-"}) == "f does not rise in a"
        assert assumption({"a": "-", "b": "+", "c": "+"}).count(",") == 1


class TestCells:
    def test_every_parameter_of_the_certified_cells_is_right(self, learned: Any):
        certificate = st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, by="cells", seed=1)
        assert certificate.holds
        assert certificate.claim.mode == "sure"
        assert certificate.claim.level == 1.0
        assert certificate.runs == 0
        cover = certificate.evidence.cover
        theta = RATES.uniform(5000, seed=1).theta
        inside = cover.of(theta) == 1
        assert (decayed(theta[inside, 0]) >= 0.5).all()
        assert inside.mean() == pytest.approx(certificate.volume, abs=0.05)
        assert cover.undecided <= 0.05

    def test_a_box_must_be_filled(self, learned: Any):
        regions = st.decide(learned, above=0.5, seed=1)
        filled = st.certify(regions, DECAY, EMPTY, by="cells", box=st.Space(k=(1.8, 2.8)), seed=1)
        assert filled.holds
        assert "for every parameter in the box (k in [1.8, 2.8]; 34.5 % of the space)" in str(filled.claim)
        open_ = st.certify(regions, DECAY, EMPTY, by="cells", box=st.Space(k=(1.0, 2.8)), seed=1)
        assert not open_.holds
        assert "surely on the other side, such as k = " in str(open_)

    def test_limits_and_declarations_are_told(self, learned: Any):
        regions = st.decide(learned, below=0.5, seed=1)
        few = st.certify(regions, DECAY, EMPTY, by="cells", cells=3, seed=1)
        assert not few.holds
        assert "5 % left undecided" in str(few)
        declared = st.certify(regions, DECAY, EMPTY, by="cells", monotone={"k": "+"}, undecided=0.02, seed=1)
        assert declared.holds
        assert declared.claim.assuming == "f does not fall in k"

    def test_a_budget_of_runs_is_not_for_cells(self, learned: Any):
        with pytest.raises(st.InputError, match="budget is for by='fresh'"):
            st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, by="cells", budget=1000, seed=1)

    def test_a_model_that_cells_cannot_serve_is_refused_or_tested_at_corners(self):
        model = st.Model.parse("species A = 0\n0 -> A @ 20 * k\nA -> 0 @ mass_action(1)")
        formula = st.stl("F[0, 3] G[0, 0.1] A >= 15")  # nested
        seen = st.observe(model, formula, LINE.grid(41), runs=200, seed=1)
        regions = st.decide(st.EPGP().fit(seen, seed=1), below=0.3, seed=1)
        with pytest.raises(st.ExactError):
            st.certify(regions, model, formula, by="cells", seed=1)
        certificate = st.certify(regions, model, formula, by="cells", monotone={"k": "+"}, seed=1)
        assert certificate.holds
        assert certificate.claim.mode == "pac"
        assert certificate.runs > 0
