"""The floor of credible deviations: what it raises, what it leaves, and the joint law of what it adds."""

from dataclasses import replace

import numpy as np
import pytest

import sateen as st
from known_functions import PLANE, observed
from sateen.learning.floor import LEVEL, angle, angle_deviation, floor_of, probability_deviation, raised, shifted

RECIPES = {
    "ep-gp": st.EPGP(),
    "svi-gp": st.SVIGP(),
    "svi-bnn": st.SVIBNN(steps=1500, pretraining=1000),
    "laplace-net": st.LaplaceNet(nets=2, steps=1500),
}


@pytest.fixture(scope="module", params=RECIPES)
def posterior(request):
    return RECIPES[request.param].fit(observed(PLANE, 80, 40, 11), seed=5)


def test_the_floor_is_half_the_mean_variance_of_the_angle_weighted_by_runs(posterior):
    bare, training = replace(posterior, floor=0.0), posterior.training.observations
    band = bare.predict(training.points, level=LEVEL)
    variance = angle_deviation(band.lower, band.upper, LEVEL) ** 2
    assert posterior.floor == pytest.approx(0.5 * np.average(variance, weights=training.trials), rel=1e-9)
    assert floor_of(bare) == pytest.approx(posterior.floor, rel=1e-9)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize(("points", "satisfied"), [(1, 3), (40, 0)], ids=["one-point", "never-satisfied"])
def test_no_learner_is_surer_than_one_parameter_that_the_counts_determine(recipe, points, satisfied):
    """A network whose prior is narrow once gave 3 of 10 runs an interval of the width 0.07."""
    seen = observed(PLANE, points, 10, 11)
    posterior = recipe.fit(replace(seen, satisfied=np.full(points, satisfied)), seed=5)
    assert posterior.floor >= 0.5 / (4 * 10 * points)
    band = posterior.predict(PLANE.uniform(50, seed=2))
    reach = angle_deviation(band.lower, band.upper, LEVEL)
    inside = (band.lower > 0) & (band.upper < 1)  # where neither end is cut
    assert (reach[inside] >= np.sqrt(posterior.floor) * (1 - 1e-9)).all()


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_contain_those_without_a_floor_and_the_mean_stays(posterior, level):
    points, bare = PLANE.uniform(300, seed=2), replace(posterior, floor=0.0)
    with_it, without = posterior.predict(points, level=level), bare.predict(points, level=level)
    assert (with_it.lower <= without.lower).all()
    assert (with_it.upper >= without.upper).all()
    assert (with_it.std >= without.std).all()
    assert np.array_equal(with_it.mean, without.mean)


def test_where_the_learner_is_less_sure_than_the_floor_nothing_changes():
    summary = np.array([0.5]), np.array([0.1]), np.array([0.3]), np.array([0.7])
    assert raised(summary, 0.95, 1e-6) == summary


def test_at_zero_the_floor_gives_the_interval_of_the_angle():
    zero = np.zeros(1)
    mean, std, lower, upper = raised((zero, zero, zero, zero), 0.95, 0.01**2)
    assert (mean, lower) == (0.0, 0.0)
    assert upper == pytest.approx(np.sin(1.959964 * 0.01) ** 2, rel=1e-6)
    assert std == pytest.approx(np.sqrt(2.0) * 0.01**2, rel=1e-3)  # of a multiple of chi-squared with one degree


def test_the_deviation_of_a_squared_sine_is_that_of_draws():
    draws = np.sin(np.random.default_rng(1).normal(0.4, 0.1, 1_000_000)) ** 2
    assert probability_deviation(np.array([0.4]), np.array([0.1]))[0] == pytest.approx(draws.std(), rel=0.005)


def test_draws_get_the_variance_of_the_floor_and_all_points_of_a_draw_are_shifted_together():
    known = np.full((4000, 2), 0.3)
    summary = tuple(np.full(2, value) for value in (0.3, 0.0, 0.3, 0.3))
    drawn = angle(shifted(known, summary, 0.02**2, np.random.default_rng(3)))
    # 4,000 normal draws: the variance has a relative error of 1/sqrt(2000), and 5 of these are allowed.
    assert drawn.var(axis=0) == pytest.approx(0.02**2, rel=5 / np.sqrt(2000))
    assert np.array_equal(drawn[:, 0], drawn[:, 1])


def test_joint_draws_spread_no_less_than_the_prediction_says(posterior):
    """Where the floor alone makes the deviation, draws have it, up to the error of 4,000 of them and to curvature."""
    points = PLANE.uniform(60, seed=9)
    drawn = angle(posterior.sample(points, 4000, seed=1))
    assert (drawn.std(axis=0) > 0.75 * np.sqrt(posterior.floor)).all()


def test_what_picks_further_runs_knows_no_floor(posterior):
    points = PLANE.uniform(20, seed=4)
    for with_it, without in zip(
        posterior.latent_moments(points), replace(posterior, floor=0.0).latent_moments(points), strict=True
    ):
        assert np.array_equal(with_it, without)


def test_a_file_keeps_the_floor(posterior, tmp_path):
    posterior.save(tmp_path / "p.safetensors")
    assert st.load(tmp_path / "p.safetensors").floor == posterior.floor > 0


def test_the_papers_own_settings_and_a_recipe_that_says_so_have_no_floor():
    assert st.SVIGP(floor=False).fit(observed(PLANE, 80, 40, 11), seed=5).floor == 0.0
    assert not st.SVIBNN.faithful().floor
    assert not st.SVIBNN.as_run().floor


def test_a_range_declared_on_a_log_scale_is_learned_on_one():
    """Even a function that is straight in the parameter, and whose evidence says so, does not overrule the user."""
    linear, log = st.Space(k=(0.01, 1)), st.Space(k=st.Range(0.01, 1, scale="log"))
    theta = np.linspace(0.01, 1, 200)[:, None]
    counts = np.random.default_rng(1).binomial(200, 0.5 + 0.45 * np.sin(12 * theta[:, 0]))
    scales = [
        st.SVIGP().fit(st.Observations.from_counts(space, theta, counts, 200), seed=1).inputs.scales
        for space in (linear, log)
    ]
    assert scales == [("linear",), ("log",)]
