"""A posterior of one's own, with only `space` and `predict`: what a guarantee can do with it, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

import sateen as st
from sateen.core.prediction import Claim, Prediction
from tabled import UNIT, uniform_counts

METHODS = ("icp", "nicp", "chernoff", "lift")


class Line:
    """f = 0.1 + 0.7 x, give or take 0.03."""

    space = UNIT

    def predict(self, points, *, level):
        mean = 0.1 + 0.7 * points.theta[:, 0]
        half = np.full(len(mean), ndtri((1 + level) / 2) * 0.03)
        claim = Claim("probability", "credible", level, "")
        return Prediction(points, mean, np.full(len(mean), 0.03), mean - half, mean + half, level, claim)


def held_out(runs=50, points=60, seed=1):
    return uniform_counts(lambda x: 0.1 + 0.7 * x, points, runs, np.random.default_rng(seed))


@pytest.mark.parametrize("method", METHODS)
def test_it_can_be_calibrated_by_every_method_and_covers_the_truth(method):
    guarded = st.calibrate(Line(), held_out(), method=method)
    prediction = guarded.predict(UNIT.grid(41))
    truth = 0.1 + 0.7 * prediction.points.theta[:, 0]
    assert ((prediction.lower <= truth) & (truth <= prediction.upper)).mean() >= 0.9
    assert repr(guarded).startswith(f"<Guarantee {method} of Line over ")


def test_the_lift_uses_its_deviation_and_says_why():
    calibration = st.calibrate(Line(), held_out()).calibration
    assert calibration.normaliser == "posterior"
    assert calibration.why == "the posterior cannot be fitted again, so no other was tried"


def test_where_runs_differ_the_predictive_normaliser_counts_on_one_run_for_no_training_tells_more():
    calibration = st.calibrate(Line(), held_out(np.arange(60) + 40), normaliser="predictive").calibration
    assert (calibration.runs, calibration.normaliser_runs) == (None, 1)


def test_it_can_be_planned_for_and_calibrated_as_planned():
    plan = st.plan(Line(), budget=10_000, seed=3)
    assert 0 < plan.width < 0.5
    assert math.isnan(plan.seconds)
    guarded = st.calibrate(Line(), held_out(plan.runs, plan.points), plan=plan)
    assert guarded.predict(UNIT.grid(41)).width.mean() == pytest.approx(plan.width, rel=0.5)


def test_its_error_is_bounded_by_betting():
    bound = st.bound_error(Line(), held_out(runs=400, points=300))
    assert 0 < bound.value < 0.1


@pytest.mark.parametrize("method", ["catoni", "seeger"])
def test_bounds_that_need_a_prior_are_refused_with_the_one_that_does_not(method):
    with pytest.raises(st.InputError, match=r"Line has no prior.*method='betting'"):
        st.bound_error(Line(), method=method, seed=1)


def test_its_predictions_are_scored():
    observed = held_out(points=40, seed=9)
    score = st.score(Line().predict(observed.points, level=0.95), observed)
    assert score.rmse < 0.15
    assert score.points == 40
