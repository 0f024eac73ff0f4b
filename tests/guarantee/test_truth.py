"""Calibration by the truth: what it claims, against exact probabilities; what it refuses; and files."""

import numpy as np
import pytest
from scipy.stats import binom

import sateen as st
from sateen import InputError
from sateen.guarantee.conformal import conformal_rank
from tabled import UNIT, tabled

CERTAIN = 1e-6
DECAY = st.Model.parse("species A = 5\nA -> 0 @ mass_action(k)")
SPACE = st.Space(k=(0.1, 2))
GONE = st.stl("F[0, 2] A == 0")


def f(points):
    """P(all five have decayed by 2), in closed form."""
    return (1 - np.exp(-2 * points.theta[:, 0])) ** 5


@pytest.fixture(scope="module")
def posterior():
    return st.SVIGP(inducing=8).fit(st.observe(DECAY, GONE, SPACE.sobol(24, seed=1), 20, seed=2), seed=3)


@pytest.fixture(scope="module")
def truth():
    points = SPACE.uniform(60, seed=5)
    return st.Truth(points, st.exact(DECAY, GONE, points))


def test_computed_labels_are_the_closed_form(truth):
    assert truth.values == pytest.approx(f(truth.points), abs=1e-10)


def test_the_share_of_calibrations_below_the_level_is_what_the_claim_allows(posterior):
    """PAC 90/95: of 400 calibrations at most 5 % may cover less than 90 % of θ, tested at 1e-6."""
    where = SPACE.grid(2000)
    known, failed = f(where), 0
    for seed in range(400):
        points = SPACE.uniform(100, seed=1000 + seed)
        band = st.calibrate(posterior, truth=(points, f(points))).predict(where)
        failed += ((band.lower <= known) & (known <= band.upper)).mean() < 0.9 - 1e-12
    assert binom.sf(failed - 1, 400, 0.05) > CERTAIN
    assert failed > 0  # and not by being far too wide


def test_marginal_claims_cover_a_fresh_point_as_often_as_they_say(posterior):
    covered = 0
    for seed in range(2000):
        theta = SPACE.uniform(20, seed=10_000 + seed)
        held_out, fresh = theta[np.arange(19)], theta[np.arange(19, 20)]
        points = st.Points(held_out.theta, SPACE, "uniform")
        band = st.calibrate(posterior, truth=(points, f(points)), confidence=None).predict(fresh)
        covered += bool(band.lower[0] <= f(fresh)[0] <= band.upper[0])
    # Without ties the probability is 1 - 2/20 exactly.
    assert binom.cdf(covered, 2000, 0.9) > CERTAIN
    assert binom.sf(covered - 1, 2000, 0.9) > CERTAIN


def test_the_rank_is_the_largest_that_the_claim_allows_and_the_claim_says_what_holds(posterior, truth):
    made = st.calibrate(posterior, truth=truth)
    assert made.calibration.rank == conformal_rank(60, 0.1, 0.95) == 2
    assert made.calibration.runs == 0
    assert "computed probabilities" in str(made.calibration)
    assert (made.claim.mode, made.claim.target, made.claim.level) == ("pac", "probability", pytest.approx(0.9))


def test_intervals_are_never_a_point_even_where_the_posterior_is_right():
    exactly = tabled([0.2, 0.8], [0.0, 0.0])
    points = UNIT.uniform(40, seed=1)
    band = st.calibrate(exactly, truth=(points, exactly.predict(points).mean)).predict(UNIT.grid(11))
    assert (band.width > 0).all()


def test_a_constant_normaliser_gives_intervals_of_one_width(posterior, truth):
    band = st.calibrate(posterior, truth=truth, normaliser="constant").predict(SPACE.grid(21))
    inside = (band.lower > 0) & (band.upper < 1)
    assert np.ptp(band.width[inside]) < 1e-12


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rank": 2}, "rank does not apply to computed labels"),
        ({"seed": 1}, "seed does not apply to computed labels"),
        ({"method": "icp"}, "method='icp' is about runs"),
        ({"method": "chernoff"}, "method='chernoff' is about runs"),
        ({"normaliser": "predictive"}, "the predictive normaliser is about runs"),
        ({"level": 0.99}, "60 held-out points are too few for the level 99 %"),
    ],
)
def test_what_does_not_apply_to_computed_labels_is_refused_by_name(posterior, truth, keywords, message):
    with pytest.raises(InputError, match=message):
        st.calibrate(posterior, truth=truth, **keywords)


def test_runs_and_truth_at_once_are_refused(posterior, truth):
    held_out = st.observe_held_out(DECAY, GONE, SPACE, 40, 20, seed=9)
    with pytest.raises(InputError, match="truth needs no runs, and held_out is about runs"):
        st.calibrate(posterior, held_out, truth=truth)
    with pytest.raises(InputError, match="truth needs no runs, and plan is about runs"):
        st.calibrate(posterior, truth=truth, plan=st.plan(posterior, budget=5000, seed=1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: (SPACE.grid(40), np.full(40, 0.5)), "the design 'grid'"),
        (lambda: (SPACE.uniform(40, seed=1), np.full(39, 0.5)), "values of the shape"),
        (lambda: (SPACE.uniform(40, seed=1), np.full(40, 1.5)), "not a probability"),
        (lambda: (SPACE.uniform(40, seed=1), np.full(40, np.nan)), "not a probability"),
        (lambda: (SPACE.uniform(40, seed=1), ["half"] * 40), "probabilities are numbers"),
        (lambda: (SPACE.uniform(40, seed=1), np.full(40, True)), "probabilities are numbers"),
        (lambda: (SPACE.uniform(40, seed=1), np.full(40, 0.5 + 1j)), "probabilities are numbers"),
        (lambda: (UNIT.uniform(40, seed=1), np.full(40, 0.5)), "another space"),
        (lambda: ([0.1], [0.5]), "Points of a Space"),
        (lambda: 0.5, "truth is a pair"),
    ],
)
def test_a_truth_on_which_nothing_can_rest_is_refused(posterior, given, message):
    with pytest.raises(InputError, match=message):
        st.calibrate(posterior, truth=given())


def test_points_of_the_training_are_refused(posterior):
    seen = st.Points(posterior.training.observations.theta, SPACE, "uniform")
    with pytest.raises(InputError, match="a point of the training"):
        st.calibrate(posterior, truth=(seen, f(seen)))


def test_a_density_weighs_computed_labels(posterior, truth):
    made = st.calibrate(posterior, truth=truth, density=lambda theta: theta[:, 0])
    assert made.claim.mode == "marginal"
    assert made.calibration.rank is None


def test_a_guarantee_by_truth_and_the_truth_itself_survive_a_file(posterior, truth, tmp_path):
    made = st.calibrate(posterior, truth=truth)
    made.save(tmp_path / "sure.safetensors")
    again = st.load(tmp_path / "sure.safetensors")
    assert (again.predict(SPACE.grid(21)).upper == made.predict(SPACE.grid(21)).upper).all()
    assert again.claim == made.claim
    truth.save(tmp_path / "truth.safetensors")
    read = st.load(tmp_path / "truth.safetensors")
    assert (read.values == truth.values).all()
    assert read.points == truth.points
    assert read.fingerprint == truth.fingerprint
    whole = (tmp_path / "truth.safetensors").read_bytes()
    (tmp_path / "truth.safetensors").write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    with pytest.raises(InputError, match="checksum"):
        st.load(tmp_path / "truth.safetensors")


def test_the_mean_error_is_bounded_by_the_truth_and_the_bound_holds(posterior, truth):
    where = SPACE.grid(2000)
    true = float(np.abs(posterior.predict(where).mean - f(where)).mean())
    bound = st.bound_error(posterior, truth=truth)
    assert true < float(bound) < 0.2
    with pytest.raises(InputError, match="truth"):
        st.bound_error(posterior, truth=truth, method="catoni")
    with pytest.raises(InputError, match="held_out"):
        st.bound_error(posterior)


def test_a_score_against_the_truth_alone_has_no_noise(posterior, truth):
    scored = st.score(posterior.predict(truth.points), truth=truth.values)
    assert (
        scored.rmse
        == scored.rmse_truth
        == pytest.approx(np.sqrt(np.mean((posterior.predict(truth.points).mean - truth.values) ** 2)))
    )
    assert scored.accuracy == scored.coverage
    assert scored.log_score is None
    assert "coverage of the truth" in str(scored)
    with pytest.raises(InputError, match="neither is given"):
        st.score(posterior.predict(truth.points))
