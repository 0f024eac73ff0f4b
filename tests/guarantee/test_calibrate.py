"""`calibrate`: what it takes, what it refuses and how it says so, and which normaliser it chooses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sateen import InputError, Observations, Range, Space, calibrate
from sateen.core.prediction import Predictor, Training
from sateen.core.proportions import lower_bound, upper_bound
from sateen.core.space import Points
from tabled import UNIT, Table, TabledPosterior, tabled, uniform_counts


def f(x):
    return 0.1 + 0.7 * x


def held_out(points=60, runs=50, seed=1):
    return uniform_counts(f, points, runs, np.random.default_rng(seed))


POSTERIOR = tabled([0.15, 0.78], [0.02, 0.05])
HELD_OUT = held_out()
MIXED = held_out(60, np.arange(60) + 10)
PLACES = UNIT.grid(41)


@dataclass(frozen=True)
class Planned:
    rank: int = 2
    normaliser: str = "constant"
    level: float = 0.8
    confidence: float | None = None


def lift(observations=HELD_OUT, posterior=POSTERIOR, normaliser="predictive", **keywords):
    return calibrate(posterior, observations, normaliser=normaliser, **keywords)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        (
            {"normaliser": "predictive"},
            "with probability 95 % over the calibration draw, the interval contains the true probability for at least "
            "90 % of parameters drawn uniformly from the space (x in [0, 1])",
        ),
        (
            {"normaliser": "predictive", "confidence": None, "level": 0.95},
            "with probability at least 95 % over the calibration draw and a parameter drawn uniformly from the space "
            "(x in [0, 1]), the interval contains the true probability",
        ),
        (
            {"method": "chernoff"},
            "with probability at least 90 % over the calibration draw and a parameter drawn uniformly from the space "
            "(x in [0, 1]), the interval contains the true probability",
        ),
        (
            {"method": "icp"},
            "with probability at least 90 % over the calibration draw and a parameter drawn uniformly from the space "
            "(x in [0, 1]), the interval contains the frequency among 50 fresh runs at the parameter (not the "
            "probability itself)",
        ),
        (
            {"method": "nicp", "confidence": 0.8},
            "with probability 80 % over the calibration draw, the interval contains the frequency among 50 fresh runs "
            "at the parameter (not the probability itself) for at least 90 % of parameters drawn uniformly from the "
            "space (x in [0, 1])",
        ),
        (
            {"method": "icp", "density": lambda theta: 1 + theta[:, 0]},
            "with probability at least 90 % over the calibration draw and a parameter drawn with the given density on "
            "the space (x in [0, 1]), the interval contains the frequency among 50 fresh runs at the parameter (not "
            "the probability itself)",
        ),
        (
            {"method": "chernoff", "held_out": MIXED},
            "with probability at least 90 % over the calibration draw and a parameter drawn uniformly from the space "
            "(x in [0, 1]), the interval contains the true probability, if the numbers of runs per point, which "
            "differ, were fixed before the runs were made",
        ),
        (
            {"normaliser": "predictive", "held_out": MIXED},
            "with probability 95 % over the calibration draw, the interval contains the true probability for at least "
            "90 % of parameters drawn uniformly from the space (x in [0, 1]), if the numbers of runs per point, which "
            "differ, were fixed before the runs were made",
        ),
    ],
)
def test_the_claim_is_one_plain_sentence(keywords, sentence):
    assert str(calibrate(POSTERIOR, **{"held_out": HELD_OUT, **keywords}).claim) == sentence


def test_the_claim_names_a_log_scale_for_it_is_part_of_the_measure():
    space = Space(x=Range(0.1, 1.0, scale="log"))
    training = Observations.from_counts(space, {"x": [0.5]}, 1, 10)
    points = space.uniform(40, seed=1)
    observed = Observations(points, 1, 0, 10)
    made = calibrate(tabled([0.1, 0.1], 0.02, training=training), observed, method="icp")
    assert "x in [0.1, 1] on a log scale" in str(made.claim)


def test_the_claim_carries_the_numbers_it_rests_on():
    claim = lift(level=0.8, confidence=0.99).claim
    assert (claim.level, claim.confidence, claim.points, claim.runs) == (0.8, 0.99, 60, 50)
    assert (claim.target, claim.mode, claim.by) == ("probability", "pac", "lift")


def test_icp_is_the_mean_plus_and_minus_the_score_of_the_rank():
    made = calibrate(POSTERIOR, HELD_OUT, method="icp")
    errors = np.abs(HELD_OUT.frequency - POSTERIOR.predict(HELD_OUT.points).mean)
    assert made.calibration.rank == 6
    assert made.calibration.threshold == np.sort(errors)[-6]
    prediction = made.predict(PLACES)
    mean = POSTERIOR.predict(PLACES).mean
    assert prediction.upper == pytest.approx(np.minimum(mean + made.calibration.threshold, 1), abs=1e-11)
    assert prediction.lower == pytest.approx(np.maximum(mean - made.calibration.threshold, 0), abs=1e-11)


@pytest.mark.parametrize("normaliser", ["posterior", "quantile", "predictive"])
def test_nicp_divides_by_the_difficulty_and_multiplies_by_it_again(normaliser):
    made = calibrate(POSTERIOR, HELD_OUT, method="nicp", normaliser=normaliser, level=0.9)

    def u(points):
        believed = POSTERIOR.predict(points, level=0.9)
        mean = believed.mean
        predictive = np.sqrt(believed.std**2 + mean * (1 - mean) / 50 + 1 / 50**2)
        return {"posterior": believed.std, "quantile": believed.width / 2, "predictive": predictive}[normaliser]

    scores = np.abs(HELD_OUT.frequency - POSTERIOR.predict(HELD_OUT.points).mean) / u(HELD_OUT.points)
    assert made.calibration.threshold == pytest.approx(np.sort(scores)[-6])
    inner = PLACES[12:29]
    assert made.predict(inner).width == pytest.approx(2 * made.calibration.threshold * u(inner), abs=1e-10)


@pytest.mark.parametrize("split", [None, 0.2, 0.8])
def test_chernoff_adds_the_margin_of_its_part_of_the_miss(split):
    made = calibrate(POSTERIOR, HELD_OUT, method="chernoff", split=split)
    conformal = calibrate(POSTERIOR, HELD_OUT, method="icp", level=1 - 0.1 * (split or 0.5))
    margin = np.sqrt(np.log(2 / (0.1 * (1 - (split or 0.5)))) / 100)
    assert made.calibration.threshold == conformal.calibration.threshold
    assert made.calibration.margin == pytest.approx(margin)
    middle = {"x": 0.5}
    assert made.predict(middle).width == pytest.approx(conformal.predict(middle).width + 2 * margin, abs=1e-10)


@pytest.mark.parametrize("confidence", [None, 0.7])
@pytest.mark.parametrize("normaliser", [None, "posterior", "predictive"])
def test_with_equal_runs_chernoff_is_the_conformal_interval_with_one_margin_to_the_last_bit(normaliser, confidence):
    made = calibrate(POSTERIOR, HELD_OUT, method="chernoff", normaliser=normaliser, confidence=confidence)
    method, given = ("icp", {}) if normaliser is None else ("nicp", {"normaliser": normaliser})
    conformal = calibrate(POSTERIOR, HELD_OUT, method=method, level=0.95, confidence=confidence, **given).calibration
    assert (made.calibration.threshold, made.calibration.rank) == (conformal.threshold, conformal.rank)
    assert made.calibration.margin == np.sqrt(np.log(2 / ((1 - 0.9) * 0.5)) / 100)
    assert (made.calibration.runs, made.calibration.floor) == (50, 0.0)
    believed = POSTERIOR.predict(PLACES)
    mean, std = believed.mean, believed.std
    predictive = np.sqrt(std**2 + mean * (1 - mean) / 50 + 1 / 50**2)
    u = {None: np.ones(41), "posterior": std, "predictive": predictive}[normaliser]
    half = conformal.threshold * u + made.calibration.margin
    assert made.predict(PLACES).upper.tolist() == np.clip(mean + half + 1e-12, 0, 1).tolist()
    assert made.predict(PLACES).lower.tolist() == np.clip(mean - half - 1e-12, 0, 1).tolist()


@pytest.mark.parametrize("normaliser", [None, "posterior", "quantile", "predictive"])
def test_where_runs_differ_chernoff_bounds_the_probability_at_each_point_first(normaliser):
    runs, training = np.arange(60) + 40, training_of(60, 80)
    posterior = tabled([0.15, 0.78], [0.02, 0.05], training=training)
    observed = held_out(60, runs, seed=5)
    made = calibrate(posterior, observed, method="chernoff", normaliser=normaliser, split=0.6)

    def v(points):
        believed = posterior.predict(points, level=0.9)
        mean, floor = believed.mean, np.sqrt(np.log(2 / 0.04) / 160)
        predictive = np.sqrt(believed.std**2 + mean * (1 - mean) / 80 + 1 / 80**2)
        u = {"posterior": believed.std, "quantile": believed.width / 2, "predictive": predictive}
        return np.ones(len(mean)) if normaliser is None else u[normaliser] + floor

    mean, margin = posterior.predict(observed.points).mean, np.sqrt(np.log(2 / 0.04) / (2 * runs))
    above = np.minimum(observed.frequency + margin, 1) - mean
    below = mean - np.maximum(observed.frequency - margin, 0)
    threshold = np.sort(np.maximum(above, below) / v(observed.points))[-3]  # the rank floor(61 * 0.06)
    assert made.calibration.rank == 3
    assert made.calibration.threshold == pytest.approx(threshold)
    middle = PLACES[18:23]
    assert made.predict(middle).width == pytest.approx(2 * threshold * v(middle), abs=1e-10)


def test_a_run_more_at_one_point_hardly_changes_chernoff():
    """In the middle of [0, 1], that is; nearer to the ends a bound is cut there, and intervals are narrower."""
    posterior = tabled([0.4, 0.6], 0.03)
    middle = uniform_counts(lambda x: 0.4 + 0.2 * x, 60, 50, np.random.default_rng(1))
    more = Observations.from_counts(UNIT, middle.theta, middle.satisfied, 50 + (np.arange(60) == 7), design="uniform")
    one, other = (calibrate(posterior, each, method="chernoff").predict(PLACES).width for each in (middle, more))
    assert one == pytest.approx(other, abs=0.01)


def test_a_deviation_of_nearly_nothing_at_one_point_does_not_decide_the_width_of_chernoff():
    posterior = tabled([0.1, 0.45, 0.8], [0.03, 1e-9, 0.03], [0, 0.5, 1], training_of(60, 40))
    plain = calibrate(posterior, MIXED, method="chernoff").predict(PLACES).width.mean()
    assert (
        calibrate(posterior, MIXED, method="chernoff", normaliser="posterior").predict(PLACES).width.mean()
        < plain * 1.2
    )


def test_a_point_without_runs_counts_as_one_where_the_probability_can_be_anything():
    runs = np.where(np.arange(60) < 2, 0, 50)
    made = calibrate(POSTERIOR, held_out(60, runs), method="chernoff")  # of rank 3
    assert np.isfinite(made.calibration.threshold)
    none = calibrate(POSTERIOR, held_out(60, np.where(np.arange(60) < 3, 0, 50)), method="chernoff")
    assert none.calibration.threshold > 0.5
    assert made.calibration.threshold < 0.4


def test_nicp_divides_by_the_deviation_unless_told_otherwise_and_chernoff_by_nothing():
    assert calibrate(POSTERIOR, HELD_OUT, method="nicp").calibration.normaliser == "posterior"
    assert calibrate(POSTERIOR, HELD_OUT, method="chernoff").calibration.normaliser == "constant"


def test_the_lift_reads_its_interval_off_the_binomial_bounds():
    made = lift(confidence=None)
    believed = POSTERIOR.predict(HELD_OUT.points)
    u = np.sqrt(believed.std**2 + believed.mean * (1 - believed.mean) / 50 + 1 / 50**2)
    threshold = float(np.max(np.abs(HELD_OUT.frequency - believed.mean) / u))
    eta = 1 - (1 / 61) / 0.1
    assert made.calibration.threshold == threshold
    assert made.calibration.eta == pytest.approx(eta)
    mean, std = 0.465, 0.035  # at the middle
    reach = threshold * np.sqrt(std**2 + mean * (1 - mean) / 50 + 1 / 50**2)
    prediction = made.predict({"x": 0.5})
    assert prediction.upper[0] == pytest.approx(upper_bound(np.floor(50 * (mean + reach)), 50, eta))
    assert prediction.lower[0] == pytest.approx(lower_bound(np.ceil(50 * (mean - reach)), 50, eta))


def test_where_runs_differ_the_lift_bounds_the_probability_at_each_point_first():
    runs = np.arange(60) + 40
    observed = uniform_counts(lambda x: 0.3 + 0.4 * x, 60, runs, np.random.default_rng(1))
    assert observed.satisfied.min() > 0  # at the counts 0 and M, a bound is the frequency
    assert observed.violated.min() > 0
    made = lift(observed, normaliser="constant", confidence=None)
    eta = 1 - (1 / 61) / 0.1
    mean = POSTERIOR.predict(observed.points).mean
    above, below = upper_bound(observed.satisfied, runs, eta) - mean, mean - lower_bound(observed.satisfied, runs, eta)
    threshold = float(np.max([above, below]))
    assert threshold < np.abs(observed.frequency - mean).max() - 0.01
    assert made.calibration.threshold == pytest.approx(threshold)
    assert made.predict({"x": 0.5}).width == pytest.approx(2 * threshold)


def test_where_runs_differ_the_predictive_normaliser_takes_those_of_the_training():
    """A number of runs may depend on what was seen at its point, and the difficulty must not."""
    posterior = tabled([0.1, 0.8], 0.01, training=training_of(60, np.r_[np.full(30, 20), np.full(30, 60)]))
    assert lift(held_out(60, np.arange(60) + 10), posterior).calibration.normaliser_runs == 30  # their harmonic mean
    assert lift(posterior=posterior).calibration.normaliser_runs == 50


def test_the_lift_is_narrower_than_chernoff():
    wide = calibrate(POSTERIOR, HELD_OUT, method="chernoff").predict(PLACES).width.mean()
    assert lift(confidence=None).predict(PLACES).width.mean() < 0.6 * wide


@pytest.mark.parametrize("method", ["icp", "nicp", "chernoff", "lift"])
@pytest.mark.parametrize("std", [0.0, 1e-300])
def test_a_posterior_that_is_certain_can_be_calibrated(method, std):
    sure = tabled([0.1, 0.8], std)
    for normaliser in {"icp": [None], "lift": ["posterior", "predictive", "constant"]}.get(
        method, ["posterior", "quantile", "predictive"]
    ):
        prediction = calibrate(sure, HELD_OUT, method=method, normaliser=normaliser, confidence=None).predict(PLACES)
        assert np.isfinite(prediction.width).all()


@pytest.mark.parametrize("where", [0.0, 1.0])
def test_a_posterior_that_is_certain_and_right_keeps_narrow_intervals(where):
    sure = tabled(where, 0.0)
    observed = uniform_counts(lambda x: np.full_like(x, where), 60, 50, np.random.default_rng(3))
    assert lift(observed, sure, "posterior", confidence=None).predict(PLACES).width.max() < 0.01


KEYWORDS = {
    "rank": ({"rank": 1}, ["icp", "nicp", "chernoff"]),
    "plan": ({"plan": Planned()}, ["icp", "nicp", "chernoff"]),
    "seed": ({"seed": 1}, ["icp", "nicp", "chernoff"]),
    "split": ({"split": 0.5}, ["icp", "nicp", "lift"]),
    "normaliser": ({"normaliser": "posterior"}, ["icp"]),
}


@pytest.mark.parametrize(("name", "method"), [(name, each) for name, (_, some) in KEYWORDS.items() for each in some])
def test_a_keyword_that_does_not_apply_is_refused(name, method):
    with pytest.raises(InputError, match=rf"^{name} does not apply to method='{method}', only to method="):
        calibrate(POSTERIOR, HELD_OUT, method=method, **KEYWORDS[name][0])


def test_every_keyword_is_either_heeded_by_all_methods_or_listed_where_it_applies():
    named = set(inspect.signature(calibrate).parameters) - {"posterior", "held_out", "truth"}
    assert named == {"method", "level", "confidence", "density", "allow_trivial", *KEYWORDS}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"method": "jackknife"}, "method is one of 'icp', 'nicp', 'chernoff', 'lift', not 'jackknife'"),
        ({"level": 1.0}, "level is a number between 0 and 1, such as 0.9, not 1.0"),
        ({"level": 0.0}, "level is a number between 0 and 1"),
        ({"level": 90}, "level is a number between 0 and 1, such as 0.9, not 90"),
        ({"level": float("nan")}, "level is a number between 0 and 1, such as 0.9, not nan"),
        ({"level": True}, "level is a number between 0 and 1, such as 0.9, not True"),
        ({"level": None}, "level is a number between 0 and 1, such as 0.9, not None"),
        ({"level": "high"}, "level is a number between 0 and 1, such as 0.9, not 'high'"),
        ({"confidence": 1.0}, "confidence is a number between 0 and 1, such as 0.95; None is marginal, not 1.0"),
        ({"confidence": -0.1}, "confidence is a number between 0 and 1"),
        ({"method": "chernoff", "split": 1.0}, "split is a number between 0 and 1, such as 0.5, not 1.0"),
        ({"method": "chernoff", "split": 0.0}, "split is a number between 0 and 1"),
        (
            {"normaliser": "quantile"},
            "of method='lift' is one of 'predictive', 'posterior', 'constant', not 'quantile'",
        ),
        ({"method": "nicp", "normaliser": "constant"}, "of method='nicp' is one of 'posterior', 'quantile'"),
        ({"method": "chernoff", "normaliser": "constant"}, "without a normaliser it is constant"),
        ({"normaliser": "predictive", "seed": 1}, "seed applies only where cross-validation chooses the normaliser"),
        ({"seed": -1}, "seed is a whole number from 0 up, not -1"),
        ({"rank": 0}, "rank is a whole number from 1 up, not 0"),
        ({"rank": 1.5}, "rank is a whole number from 1 up, not 1.5"),
        ({"rank": True}, "rank is a whole number from 1 up, not True"),
        ({"density": 3.0}, "density is a function of an .* array of θ, not a float"),
        ({"density": lambda t: t[:, 0] * 0, "confidence": None}, "density is 0 at every held-out point"),
        ({"density": lambda t: t[:, 0], "confidence": 0.9}, "with a density only the marginal guarantee is known"),
        ({"plan": Planned(), "rank": 2}, "rank and plan both fix the rank; give one of them"),
        ({"plan": Planned(), "seed": 2}, "seed applies only where .* and the plan has chosen it"),
        ({"plan": Planned(), "level": 0.9}, "the plan was made for the level 0.8, not 0.9; leave level out"),
        ({"plan": Planned(), "confidence": 0.9}, "the plan was made for the confidence None, not 0.9"),
        ({"plan": Planned(), "normaliser": "posterior"}, "made for the normaliser constant, not posterior"),
        ({"plan": "ten points"}, "plan is what st.plan gives, not a str"),
        ({"allow_trivial": 1}, "allow_trivial is True or False, not 1"),
    ],
)
def test_what_is_invalid_is_refused_in_a_sentence(keywords, message):
    with pytest.raises(InputError, match=message):
        calibrate(POSTERIOR, HELD_OUT, **keywords)


@pytest.mark.parametrize("design", ["grid", "sobol", "latin", "given"])
def test_a_design_that_is_not_independent_is_refused(design):
    observed = Observations(Points(HELD_OUT.theta, UNIT, design), HELD_OUT.satisfied, 0, 50)
    with pytest.raises(InputError, match=rf"held_out has the design '{design}'.*\n  observe space.uniform\(n, seed="):
        lift(observed)


def test_rows_that_may_have_been_chosen_by_looking_are_refused_and_a_slice_is_not():
    assert lift(HELD_OUT[:40]).calibration.points == 40
    with pytest.raises(InputError, match="design 'given'"):
        lift(HELD_OUT[HELD_OUT.satisfied > 10])


def seeded(points, seed):
    return Observations(points, 10, 0, 50, seed=seed)


def test_runs_of_the_training_are_refused():
    training = seeded(UNIT.uniform(30, seed=1), seed=5)
    posterior = tabled([0.1, 0.3], 0.02, training=training)
    with pytest.raises(InputError, match=r"shares the seed 5 with the training.*\n  observe it with another seed"):
        lift(seeded(UNIT.uniform(60, seed=2), seed=5), posterior)
    assert lift(seeded(UNIT.uniform(60, seed=2), seed=6), posterior)


def test_points_of_the_training_are_refused():
    training = seeded(UNIT.uniform(30, seed=1), seed=5)
    posterior = tabled([0.1, 0.3], 0.02, training=training)
    with pytest.raises(InputError, match=r"row 0 of held_out is a point of the training.*\n  draw new points"):
        lift(seeded(UNIT.uniform(60, seed=1), seed=6), posterior)


def test_one_campaign_may_be_cut_into_training_and_held_out():
    whole = seeded(UNIT.uniform(90, seed=1), seed=5)
    assert lift(whole[30:], tabled([0.1, 0.3], 0.02, training=whole[:30])).calibration.points == 60


def test_observations_of_another_question_are_refused():
    asked = {"model": "m", "formula": "F[0, 1] x > 1", "end": None}
    training = Observations(UNIT.uniform(5, seed=1), 1, 0, 5, seed=1, provenance=asked)
    posterior = tabled([0.1, 0.3], 0.02, training=training)
    other = Observations(UNIT.uniform(60, seed=2), 1, 0, 5, seed=2, provenance={**asked, "formula": "G[0, 1] x > 1"})
    with pytest.raises(InputError, match=r"differ in their formula:\n  G\[0, 1\] x > 1\n  F\[0, 1\] x > 1"):
        lift(other, posterior)


def test_another_space_is_refused():
    other = Space(x=(0.0, 2.0))
    observed = Observations(other.uniform(60, seed=1), 10, 0, 50)
    with pytest.raises(InputError, match=r"another space than the posterior's.*\n.*Space\(x=\(0, 2\)\)"):
        lift(observed)


def test_mixed_runs_are_refused_where_one_number_is_needed():
    for runs, said in ((np.r_[np.full(30, 50), np.full(30, 100)], "50 and 100"), (np.arange(60) + 10, "10 to 69")):
        for method in ("icp", "nicp"):
            with pytest.raises(InputError, match=f"mixes {said} runs per point; {method} needs one number"):
                calibrate(POSTERIOR, held_out(60, runs), method=method)
        assert lift(held_out(60, runs)).calibration.runs is None
        assert calibrate(POSTERIOR, held_out(60, runs), method="chernoff").calibration.runs is None


def test_what_has_no_runs_is_refused():
    with pytest.raises(InputError, match="held_out has no runs"):
        lift(Observations(UNIT.uniform(60, seed=1), 0, 0, 0))
    with pytest.raises(InputError, match="held_out has no runs"):
        lift(HELD_OUT[:0])


def test_what_is_no_posterior_and_what_are_no_observations_are_refused():
    with pytest.raises(InputError, match=r"this is a guarantee already; give the posterior"):
        calibrate(lift(), HELD_OUT)
    with pytest.raises(InputError, match=r"a guarantee is made from a posterior, not from a float; see st\.learn"):
        calibrate(0.5, HELD_OUT)
    with pytest.raises(InputError, match=r"held_out are Observations, not a ndarray; see st\.observe"):
        calibrate(POSTERIOR, HELD_OUT.theta)


@pytest.mark.parametrize(
    ("points", "keywords", "enough"),
    [
        (28, {"normaliser": "predictive"}, 29),
        (9, {"normaliser": "predictive", "confidence": None}, 10),
        (30, {"normaliser": "predictive", "confidence": None, "rank": 4}, 40),
        (18, {"method": "icp", "level": 0.95}, 19),
        (18, {"method": "chernoff"}, 19),
        (28, {"method": "nicp", "confidence": 0.95}, 29),
    ],
)
def test_too_few_points_are_refused_with_the_number_that_would_do(points, keywords, enough):
    few = held_out(points)
    with pytest.raises(InputError, match=rf"^{points} held-out points are too few .*: {enough} would suffice\n"):
        calibrate(POSTERIOR, few, **keywords)
    trivial = calibrate(POSTERIOR, few, allow_trivial=True, **keywords)
    assert trivial.calibration.threshold == np.inf
    assert trivial.predict(PLACES).width.tolist() == [1.0] * len(PLACES)
    assert np.isfinite(calibrate(POSTERIOR, held_out(enough), **keywords).calibration.threshold)


def test_no_number_of_points_would_do_for_a_level_beyond_all_reason():
    with pytest.raises(InputError, match="no number that can be observed would suffice"):
        lift(level=1 - 1e-15)


def test_a_density_that_the_points_cannot_bear_is_refused_unless_trivial_intervals_are_allowed():
    few = held_out(12)

    def peak(theta):
        return np.where(theta[:, 0] > 0.93, 1.0, 0.001)

    with pytest.raises(InputError, match=r"12 held-out points are too few for this density: for \d+ % of the"):
        calibrate(POSTERIOR, few, method="icp", density=peak)
    prediction = calibrate(POSTERIOR, few, method="icp", density=peak, allow_trivial=True).predict(PLACES)
    assert prediction.width[-1] == 1.0


@pytest.mark.parametrize("method", ["icp", "nicp", "chernoff", "lift"])
def test_a_constant_density_changes_nothing(method):
    keywords = {"method": method, "confidence": None} | ({"normaliser": "predictive"} if method == "lift" else {})
    plain = calibrate(POSTERIOR, HELD_OUT, **keywords).predict(PLACES)
    weighted = calibrate(POSTERIOR, HELD_OUT, density=lambda t: np.full(len(t), 7.0), **keywords).predict(PLACES)
    assert weighted.lower.tolist() == plain.lower.tolist()
    assert weighted.upper.tolist() == plain.upper.tolist()


def test_a_plan_fixes_rank_normaliser_level_and_confidence():
    planned = calibrate(POSTERIOR, HELD_OUT, plan=Planned())
    by_hand = calibrate(POSTERIOR, HELD_OUT, rank=2, normaliser="constant", level=0.8, confidence=None)
    assert planned.calibration == by_hand.calibration
    assert planned.claim == by_hand.claim
    assert calibrate(POSTERIOR, HELD_OUT, plan=Planned(), level=0.8, confidence=None).claim == by_hand.claim


@settings(max_examples=40)
@given(
    order=some.permutations(range(60)),
    method=some.sampled_from(["icp", "nicp", "chernoff", "lift"]),
    level=some.floats(0.5, 0.9),
)
def test_the_order_of_the_held_out_points_does_not_matter(order, method, level):
    keywords = {"method": method, "level": level} | ({"normaliser": "predictive"} if method == "lift" else {})
    rows = list(order)
    shuffled = Observations.from_counts(UNIT, HELD_OUT.theta[rows], HELD_OUT.satisfied[rows], 50, design="uniform")
    one, other = (calibrate(POSTERIOR, each, **keywords).predict(PLACES) for each in (HELD_OUT, shuffled))
    assert one.lower.tolist() == other.lower.tolist()
    assert one.upper.tolist() == other.upper.tolist()


@settings(max_examples=40)
@given(
    levels=some.lists(some.floats(0.3, 0.92), min_size=2, max_size=2).map(sorted),
    method=some.sampled_from(["icp", "nicp", "chernoff", "lift"]),
    undecided=some.integers(0, 5),
)
def test_a_higher_level_and_more_doubt_make_intervals_wider(levels, method, undecided):
    keywords = {"method": method} | ({"normaliser": "predictive"} if method == "lift" else {})
    if method == "nicp":
        keywords["normaliser"] = "posterior"
    satisfied = np.maximum(HELD_OUT.satisfied - undecided, 0)
    doubtful = Observations.from_counts(
        UNIT, HELD_OUT.theta, satisfied, 50, undecided=HELD_OUT.satisfied - satisfied, design="uniform"
    )
    low, high = (calibrate(POSTERIOR, HELD_OUT, level=level, **keywords).predict(PLACES) for level in levels)
    wide = calibrate(POSTERIOR, doubtful, level=levels[1], **keywords).predict(PLACES)
    for narrow, wider in ((low, high), (high, wide)):
        assert (wider.lower <= narrow.lower + 1e-9).all()
        assert (narrow.upper <= wider.upper + 1e-9).all()


def test_pac_intervals_are_wider_than_marginal_ones():
    marginal, pac, surer = (lift(confidence=each).predict(PLACES).width.mean() for each in (None, 0.95, 0.99))
    assert marginal < pac < surer


def training_of(points=300, runs=50, seed=9):
    return uniform_counts(f, points, runs, np.random.default_rng(seed))


def test_the_normaliser_is_chosen_by_the_training_and_the_guarantee_says_how():
    posterior = tabled([0.1, 0.8], 0.01, training=training_of())
    made = calibrate(posterior, HELD_OUT).calibration
    assert made.normaliser == "predictive"
    assert made.why.startswith("by cross-validation, expected widths: predictive 0.")
    assert "posterior 0." in made.why
    assert "constant 0." in made.why


def test_where_the_deviation_tells_nothing_a_constant_is_chosen():
    knots = np.linspace(0, 1, 101)
    deviations = 10 ** np.random.default_rng(4).uniform(-3, -0.7, 101)
    posterior = tabled(f(knots) + 0.06 * np.sin(40 * knots), deviations, knots, training_of())
    assert calibrate(posterior, held_out(60, 400)).calibration.normaliser == "constant"


def test_where_the_deviation_tells_where_the_errors_are_it_is_used():
    knots = np.linspace(0, 1, 101)
    wrong = np.abs(knots - 0.5) < 0.1
    posterior = tabled(f(knots) + 0.3 * wrong * np.sin(60 * knots), np.where(wrong, 0.2, 0.01), knots, training_of())
    assert calibrate(posterior, held_out(60, 400)).calibration.normaliser in ("posterior", "predictive")


def test_the_choice_is_the_same_every_time_and_does_not_look_at_the_held_out_counts():
    posterior = tabled([0.1, 0.8], 0.01, training=training_of())
    one, again, other = (calibrate(posterior, each).calibration for each in (HELD_OUT, HELD_OUT, held_out(seed=5)))
    assert one == again
    assert (one.normaliser, one.why) == (other.normaliser, other.why)
    assert (
        calibrate(posterior, HELD_OUT, seed=3).calibration.why == calibrate(posterior, HELD_OUT, seed=3).calibration.why
    )


def test_a_training_too_small_to_be_divided_gets_the_predictive_normaliser():
    made = calibrate(tabled([0.1, 0.8], 0.01, training=training_of(20)), HELD_OUT).calibration
    assert (made.normaliser, made.why) == ("predictive", "the training is too small to choose")


@pytest.mark.parametrize("runs", [1, 10])
def test_the_normaliser_can_be_chosen_from_few_runs_and_with_undecided_ones(runs):
    trained = training_of(300, runs)
    undecided = np.minimum(trained.violated, np.arange(300) % 2)
    training = Observations.from_counts(UNIT, trained.theta, trained.satisfied, runs, undecided=undecided)
    made = calibrate(tabled([0.1, 0.8], 0.01, training=training), HELD_OUT)
    assert made.calibration.why.startswith("by cross-validation")


def test_a_learner_that_cannot_be_fitted_again_gets_the_posterior_normaliser_and_the_guarantee_says_why():
    by_hand = SimpleNamespace(knots=[0.0, 1.0], mean=[0.1, 0.8], std=[0.01, 0.01])
    posterior = TabledPosterior(by_hand, Training(training_of()))
    made = calibrate(posterior, HELD_OUT).calibration
    assert (made.normaliser, made.why) == ("posterior", "the posterior cannot be fitted again, so no other was tried")
    assert lift(posterior=posterior).calibration.why == "given"


def test_a_recipe_that_refuses_a_part_of_the_training_says_so_with_a_remedy():
    class Picky(Table):
        def fit(self, observations, *, seed):
            if len(observations) < 300:
                raise InputError("300 points are the least")
            return super().fit(observations, seed=seed)

    recipe = Picky(np.array([0.0, 1.0]), np.array([0.1, 0.8]), np.array([0.01, 0.01]))
    with pytest.raises(InputError, match=r"to parts of the training: 300 points are the least\n  pass normaliser="):
        calibrate(recipe.fit(training_of(), seed=0), HELD_OUT)


def test_a_guarantee_is_a_predictor():
    assert isinstance(lift(), Predictor)
