"""Plans: that calibrations come out as they were planned, where f is drawn from what the posterior believes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri

import sateen as st
from known_beliefs import SPACE, Candidates, Known, Waves, drawn_observations, no_observations
from sateen.core.prediction import Training
from sateen.guarantee.guarantee import calibrate
from sateen.guarantee.lift import lift_miss
from sateen.guarantee.plan import Plan, _least_by_golden_section, plan, resized
from sateen.guarantee.rehearsal import error_scale, rehearse

BELIEF = Waves(0.02)


@cache
def planned_for(**asked) -> Plan:
    """The plan of BELIEF for this, made once for all tests that look at it: a plan cannot be changed."""
    return plan(BELIEF, **asked, seed=0)


def obtained(belief, truths, planned, calibrations, seed):
    """The mean widths of calibrations as planned, each of another f."""
    rng = np.random.default_rng(seed)
    widths = []
    for f in truths.functions(calibrations, rng):
        points = SPACE.uniform(planned.points, seed=int(rng.integers(2**31)))
        held_out = drawn_observations(f, points, planned.runs, rng)
        guarded = calibrate(belief, held_out, plan=planned, normaliser=planned.normaliser)
        assert guarded.calibration.rank == planned.rank
        widths.append(guarded.predict(SPACE.grid(40)).width.mean())
    return np.array(widths)


@pytest.mark.parametrize(
    ("spread", "asked"),
    [
        (0.002, {"budget": 5000}),
        (0.02, {"budget": 20_000, "level": 0.8}),
        (0.02, {"budget": 20_000, "confidence": None}),
        (0.02, {"width": 0.15, "level": 0.95, "confidence": None}),
        (0.05, {"width": 0.25, "normaliser": "predictive"}),
        (0.02, {"budget": 20_000, "normaliser": "constant"}),
    ],
)
def test_calibrations_are_as_wide_as_planned(spread, asked):
    belief = Waves(spread)
    planned = plan(belief, **asked, seed=0)
    widths = obtained(belief, belief, planned, 80, seed=1)
    assert widths.mean() == pytest.approx(planned.width, rel=0.15)
    low, high = planned.likely
    assert low < planned.width < high
    assert 0.75 < np.mean((low <= widths) & (widths <= high)) <= 1


def test_a_plan_for_a_width_is_met_and_not_exceeded_by_much():
    planned = planned_for(width=0.12)
    assert 0.96 * 0.12 <= planned.width <= 0.12


def test_more_runs_buy_narrower_intervals_and_narrower_intervals_cost_more_runs():
    widths = [planned_for(budget=budget).width for budget in (1000, 5000, 10_000)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3
    wide, narrow = (planned_for(width=width).budget for width in (planned_for(budget=10_000).width, 0.12))
    assert wide < narrow


def test_a_plan_for_a_budget_does_not_exceed_it_and_undoes_a_plan_for_its_width():
    planned = planned_for(budget=10_000)
    assert 0.99 * 10_000 <= planned.budget <= 10_000
    assert planned_for(width=planned.width).budget == pytest.approx(10_000, rel=0.08)


def test_certainty_beyond_the_average_costs_more():
    marginal, sure = planned_for(budget=10_000, confidence=None), planned_for(budget=10_000)
    assert marginal.width < 0.8 * sure.width
    assert (marginal.confidence, sure.confidence) == (None, 0.95)


def test_no_other_number_of_points_and_no_other_rank_is_narrower_by_much():
    stage = rehearse(BELIEF, 0.9, 0)
    for confidence in (None, 0.95):
        planned = plan(BELIEF, budget=20_000, confidence=confidence, normaliser="predictive", seed=0)
        others = []
        for rank in (1, 2, 3, 5):
            for points in np.unique(np.geomspace(10 * rank, 600, 12).astype(int)):
                eta = lift_miss(int(points), rank, 0.1, confidence)
                if eta is not None:
                    others.append(stage.widths(int(points), 20_000 // int(points), rank, eta, "predictive").mean())
        assert planned.width <= 1.03 * min(others)


def test_where_runs_are_all_that_is_uncertain_the_width_is_that_of_a_normal_model():
    """A half-width of z(1 - m/(2(n+1))) - z(η) standard errors, as derived in docs/guarantees.md."""
    belief = Waves(1e-4, base=lambda theta: np.full(len(theta), 0.5))
    planned = plan(belief, budget=1_000_000, confidence=None, normaliser="predictive", seed=0)
    eta = lift_miss(planned.points, planned.rank, 0.1, None)
    errors = -ndtri(planned.rank / (planned.points + 1) / 2) - ndtri(eta)
    assert planned.width == pytest.approx(2 * errors * math.sqrt(0.25 / planned.runs), rel=0.1)


def test_the_same_seed_gives_the_same_plan():
    assert plan(BELIEF, budget=5000, seed=0) == planned_for(budget=5000)


def trained(belief, truths, n, runs, seed):
    rng = np.random.default_rng(seed)
    observations = drawn_observations(truths.functions(1, rng)[0], SPACE.uniform(n, seed=seed), runs, rng)
    return replace(belief, training=Training(observations))


def test_the_training_shows_a_posterior_that_is_too_certain():
    """Its f lies 5 deviations off, and 400 points with 1000 runs see it."""
    certain = Waves(0.01)
    truth = Waves(0.05)
    scales = [error_scale(trained(certain, truth, 400, 1000, seed), seed) for seed in range(10)]
    assert 3 < np.sqrt(np.mean(np.square(scales))) < 8


def test_the_training_leaves_an_honest_posterior_as_it_is():
    belief = Waves(0.05)
    scales = [error_scale(trained(belief, belief, 400, 1000, seed), seed) for seed in range(10)]
    assert 0.6 < np.sqrt(np.mean(np.square(scales))) < 1.6


def test_a_training_that_shows_nothing_leaves_the_scale_about_where_it_was():
    belief = Waves(0.001)
    assert error_scale(belief, 0) == 1.1
    assert 0.8 < error_scale(trained(belief, belief, 30, 10, 1), 0) < 1.5
    assert error_scale(trained(belief, belief, 5, 10, 1), 0) == 1.1


def test_a_plan_for_a_posterior_that_is_too_certain_is_honest():
    """Taken at its word, it would promise intervals of less than half the width: ratios of 2 and more."""
    ratios = []
    for seed in range(4):
        certain = trained(Waves(0.006), Waves(0.06), 400, 1000, seed)
        f = Waves(0.06).functions(1, np.random.default_rng(seed))[0]
        planned = plan(certain, budget=5000, confidence=None, normaliser="predictive", seed=0)
        rng = np.random.default_rng(seed + 100)
        held_out = [
            drawn_observations(f, SPACE.uniform(planned.points, seed=1000 + k), planned.runs, rng) for k in range(10)
        ]
        made = [calibrate(certain, each, plan=planned, normaliser=planned.normaliser) for each in held_out]
        ratios.append(np.mean([each.predict(SPACE.grid(40)).width.mean() for each in made]) / planned.width)
    assert 0.7 < np.median(ratios) < 1.3


def test_seconds_are_those_of_the_training_runs():
    planned = planned_for(budget=5000)
    assert planned.seconds == pytest.approx(planned.budget * 0.001)

    class Timeless(Waves):
        seconds_per_run = math.nan

    unknown = plan(Timeless(0.02), budget=1000, normaliser="constant", seed=0)
    assert math.isnan(unknown.seconds)
    assert unknown.content()["seconds"] is None
    assert " s)" not in str(unknown)


def test_a_plan_is_a_sentence():
    planned = planned_for(budget=5000)
    text = planned.sentence
    assert text.startswith(f"observe {planned.points} uniform points with {planned.runs} runs each ({planned.budget:,}")
    assert "about 5 s) and calibrate with rank 1; expect intervals of mean width" in text
    assert text.endswith("that cover 90 % of parameters with confidence 95 %")
    marginal = planned_for(budget=10_000, confidence=None).sentence
    assert marginal.endswith("that cover 90 % of parameters on average")
    assert repr(planned) == f"<Plan: {text}>"
    assert planned._repr_html_().startswith(f"<p>{text}.</p>")
    assert "<caption>What this budget and larger budgets give" in planned._repr_html_()
    assert planned.content()["sentence"] == text


def test_high_levels_can_be_planned():
    planned = plan(BELIEF, budget=2_000_000, level=0.999, confidence=None, seed=0)
    assert planned.points >= 1000
    assert 0 < planned.width < 1


def test_a_width_that_the_least_calibration_gives_costs_the_least():
    planned = plan(BELIEF, width=0.999, seed=0)
    assert (planned.points, planned.runs) == (29, 1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "for a width or for a budget; give one"),
        ({"width": 0.1, "budget": 100}, "for a width or for a budget; give one"),
        ({"width": 0}, "width is a number between 0 and 1"),
        ({"width": 1.5}, "width is a number between 0 and 1"),
        ({"budget": 10.5}, "budget is a whole number of runs"),
        ({"budget": True}, "budget is a whole number of runs"),
        ({"budget": 0}, "budget is a whole number of runs"),
        (
            {"budget": 28},
            "a budget of 28 runs is too small for the level 90 % with the confidence 95 %, which needs 29",
        ),
        ({"budget": 9, "confidence": None}, "too small for the level 90 %, which needs 10 points"),
        ({"budget": 1000, "level": 1.0}, "level is a number between 0 and 1"),
        ({"budget": 1000, "confidence": 95}, "confidence is a number between 0 and 1"),
        (
            {"budget": 1000, "normaliser": "postrior"},
            "of method='lift' is one of .*, not 'postrior'; did you mean posterior",
        ),
        ({"budget": 1000, "normaliser": "quantile"}, "of method='lift' is one of .*, not 'quantile'"),
        ({"width": 0.1, "level": 1 - 1e-12}, "no number of points that can be observed gives the level"),
    ],
)
def test_what_cannot_be_planned_is_refused(asked, message):
    with pytest.raises(st.InputError, match=message):
        plan(BELIEF, **asked, seed=0)


def test_a_width_that_no_calibration_reaches_is_refused_with_what_is_possible():
    possible = r"no calibration of this posterior gives a mean width of 0\.0001: even .* give 0\.0[2-9]"
    with pytest.raises(st.InputError, match=possible):
        plan(BELIEF, width=0.0001, confidence=None, normaliser="predictive", seed=0)


def test_what_is_no_posterior_is_refused():
    with pytest.raises(st.InputError, match="a guarantee is made from a posterior, not from a str"):
        plan("posterior", width=0.1, seed=0)


def test_a_posterior_whose_learner_cannot_be_fitted_again_is_taken_to_err_as_is_usual():
    rng = np.random.default_rng(1)
    observations = drawn_observations(lambda theta: 0.5 + 0 * theta[:, 0], SPACE.uniform(50, seed=1), 20, rng)
    fixed = Candidates((lambda theta: np.full(len(theta), 0.5),), np.ones(1), Training(observations))
    assert error_scale(fixed, 0) == 1.1
    assert 0 < plan(fixed, width=0.3, normaliser="predictive", seed=0).width <= 0.3


def test_what_goes_wrong_in_fitting_again_is_reported():
    class Stubborn(Waves):
        def fit(self, observations, *, seed):
            raise st.InputError("too few points for me")

    stubborn = trained(Stubborn(0.02), BELIEF, 50, 20, 1)
    with pytest.raises(st.InputError, match="parts of the training: too few points for me"):
        plan(stubborn, width=0.1, seed=0)


def test_a_space_without_a_varying_parameter_can_be_planned():
    space = st.Space(k=2.0)
    belief = Waves(
        0.0, base=lambda theta: np.full(len(theta), 0.3), space=space, training=Training(no_observations(space))
    )

    class Constant(Waves):
        def _wave(self, theta, a, b):
            return self.base(theta)

    planned = plan(Constant(belief.spread, belief.base, space, belief.training), budget=2000, seed=0)
    assert 0 < planned.width < 0.5


def test_golden_section_finds_the_least_of_a_valley():
    assert isinstance(BELIEF, Known)
    for low, high, least in ((10, 1000, 77), (10, 11, 10), (5, 5, 5), (29, 1160, 29), (29, 1160, 1160)):
        found = _least_by_golden_section(lambda n, least=least: abs(math.log(n / least)), low, high)
        assert low <= found <= high
        assert found == pytest.approx(least, rel=0.05, abs=1)


def test_a_plan_shows_what_more_runs_would_buy_as_a_table_and_keeps_it():
    made = planned_for(budget=5000)
    assert [round(each.budget / made.budget) for each in made.more] == [4, 16][: len(made.more)]
    assert made.more
    assert all(each.width < made.width for each in made.more)
    sentence, header, own, first, *_ = str(made).splitlines()
    assert sentence == made.sentence
    assert header.split() == ["budget", "mean", "width", "time"]
    assert own.split() == [f"{made.budget:,}", "runs", f"{made.width:.3g}", "5", "s"]
    assert first.split()[:3] == [f"{made.more[0].budget:,}", "runs", f"{made.more[0].width:.3g}"]
    content = made.content()
    assert content["more"][0]["width"] == made.more[0].width
    again = Plan.from_content(content)
    assert again.timeless().content() == made.timeless().content()
    assert "not known" in str(made.timeless())
    assert made.timeless().at_pace(0.001).seconds == pytest.approx(made.seconds)


def test_a_resized_plan_offers_only_what_is_more_and_narrower():
    made = planned_for(budget=5000)
    larger = resized(made, BELIEF, 2 * made.points, 8 * made.runs, seed=0)
    assert all(each.budget > larger.budget and each.width < larger.width for each in larger.more)
    assert len(larger.more) < len(made.more)
