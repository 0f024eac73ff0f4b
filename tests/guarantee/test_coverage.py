"""Whether guarantees keep their claims, over thousands of calibrations, through the public path.

θ is drawn from a finite population where f is known exactly, so the coverage given a calibration is a share of that
population; or a fresh θ is drawn for each calibration, so the number that is covered is binomial. A claim is rejected
where what was seen has a probability of 1e-6 or less under it.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from sateen import Observations, Space, calibrate
from tabled import Table, tabled, uniform_counts

LEVEL = 1e-6
SIR = Path(__file__).parents[1] / "data" / "sir_exact.csv"


class Population:
    """θ with exact f, each as likely as the others, and a posterior of f."""

    def __init__(self, space, theta, f, mean, std):
        self.space, self.theta, self.f = space, np.asarray(theta, float), np.asarray(f, float)
        middles = (self.theta[1:] + self.theta[:-1]) / 2
        training = Observations.from_counts(space, middles[:, None], satisfied=0, trials=1)
        knots, mean, std = np.broadcast_arrays(self.theta, np.clip(mean, 0, 1), std)
        self.posterior = Table(knots, mean, std).fit(training, seed=0)
        self.points = space.points(self.theta[:, None])

    def draw(self, points, runs, rng, undecided=None):
        """Held-out counts at points of the population; `undecided` has the chances of a true and of a false run."""
        rows = rng.integers(len(self.theta), size=points)
        made = runs[rows] if np.ndim(runs) else np.full(points, runs)
        true = rng.binomial(made, self.f[rows])
        lost = [rng.binomial(n, p) for n, p in zip((true, made - true), undecided or (0.0, 0.0), strict=True)]
        return Observations.from_counts(
            self.space, self.theta[rows][:, None], true - lost[0], made, undecided=sum(lost), design="uniform"
        )

    def coverage(self, guarantee):
        prediction = guarantee.predict(self.points)
        return float(np.mean((prediction.lower <= self.f) & (self.f <= prediction.upper)))


def sir():
    with open(SIR, encoding="utf-8") as stream:
        rows = [row for row in csv.reader(line for line in stream if not line.startswith("#")) if row[0] == "a"]
    beta, f = np.array([[float(row[1]), float(row[3])] for row in rows]).T
    return Space(beta=(0.005, 0.3), gamma=0.05), beta, f


def sir_with(error, std):
    """The population of configuration (a), and a posterior whose mean is off by `error` of θ on [0, 1]."""
    space, beta, f = sir()
    return Population(space, beta, f, f + error(np.linspace(0, 1, len(f))), std)


def not_rejected(covered, trials, level):
    """Whether so many covered, or fewer, are likelier than 1e-6 if the claim holds."""
    return binom.cdf(covered, trials, level) > LEVEL


POSTERIORS = {
    "exact": (lambda x: 0 * x, 0.01),
    "good": (lambda x: 0.01 * np.sin(9 * x), 0.008),
    "sure and wrong": (lambda x: 0.15 * np.sin(9 * x), 0.0005),
    "certain and wrong": (lambda x: 0.4 * x, 0.0),
    "wrong on a tenth": (lambda x: np.where(x > 0.88, 0.3, 0.0), 0.01),
}
CLAIMS = {
    "lift": {"method": "lift", "normaliser": "predictive"},
    "lift, posterior": {"method": "lift", "normaliser": "posterior"},
    "lift, constant": {"method": "lift", "normaliser": "constant"},
    "lift, rank 3": {"method": "lift", "normaliser": "predictive", "rank": 3},
    "chernoff": {"method": "chernoff"},
    "chernoff, split": {"method": "chernoff", "split": 0.8, "normaliser": "posterior"},
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_the_probability_is_covered_on_sir_whatever_the_posterior(posterior, claim):
    population, rng = sir_with(*POSTERIORS[posterior]), np.random.default_rng(7)
    calibrations, covered = 300, 0
    for _ in range(calibrations):
        made = calibrate(population.posterior, population.draw(60, 50, rng), confidence=None, **CLAIMS[claim])
        assert str(made.claim).endswith("contains the true probability")
        fresh = rng.integers(len(population.f))
        prediction = made.predict(population.points[[fresh]])
        covered += int(prediction.lower[0] <= population.f[fresh] <= prediction.upper[0])
    assert not_rejected(covered, calibrations, 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [20, 200])
@pytest.mark.parametrize("posterior", ["good", "sure and wrong", "wrong on a tenth"])
def test_over_a_thousand_calibrations_the_lift_covers_the_exact_probability_of_sir(posterior, runs):
    """A confidence of 90 % instead of 95 % would be noticed in 92 % of cases, for each posterior and number of runs."""
    population, rng = sir_with(*POSTERIORS[posterior]), np.random.default_rng(8)
    calibrations, marginal, broken = 1000, [], 0
    for _ in range(calibrations):
        held_out = population.draw(60, runs, rng)
        made = calibrate(population.posterior, held_out, normaliser="predictive", confidence=None)
        marginal.append(population.coverage(made))
        pac = calibrate(population.posterior, held_out, normaliser="predictive", confidence=0.95)
        broken += population.coverage(pac) < 0.9
    error = np.std(marginal) / np.sqrt(calibrations)
    assert np.mean(marginal) + 4.76 * error >= 0.9  # the normal quantile of 1 - 1e-6
    assert binom.sf(broken - 1, calibrations, 0.05) > LEVEL


@pytest.mark.slow
def test_icp_covers_a_fresh_frequency_neither_less_nor_more_often_than_it_says():
    """n = 200 and ε = 0.05: the rank is 10 and, without ties, the coverage exactly 1 - 10/201."""
    rng, calibrations = np.random.default_rng(9), 5000
    posterior = tabled([0.1, 0.7], 0.01)

    def f(x):
        return 0.2 + 0.5 * x**2

    covered = 0
    for _ in range(calibrations):
        made = calibrate(posterior, uniform_counts(f, 200, 50, rng), method="icp", level=0.95)
        fresh = uniform_counts(f, 1, 50, rng)
        prediction = made.predict(fresh.points)
        covered += int(prediction.lower[0] <= fresh.frequency[0] <= prediction.upper[0])
    exact = 1.0 - 10 / 201
    assert (binom.ppf(5e-7, calibrations, exact), binom.isf(5e-7, calibrations, exact)) == (4673, 4823)
    assert 4673 <= covered <= 4823


@pytest.mark.parametrize("normaliser", ["posterior", "quantile", "predictive"])
def test_nicp_covers_a_fresh_frequency_as_often_as_its_rank_says(normaliser):
    rng, calibrations = np.random.default_rng(10), 600
    posterior = tabled([0.1, 0.2, 0.7], [0.01, 0.05, 0.02], [0, 0.4, 1])
    covered = 0
    for _ in range(calibrations):
        held_out = uniform_counts(lambda x: 0.8 * x, 49, 30, rng)
        made = calibrate(posterior, held_out, method="nicp", normaliser=normaliser, level=0.9)
        fresh = uniform_counts(lambda x: 0.8 * x, 1, 30, rng)
        prediction = made.predict(fresh.points)
        covered += int(prediction.lower[0] <= fresh.frequency[0] <= prediction.upper[0])
    # Ends are clipped to [0, 1], where frequencies are too: nothing is lost or won by that.
    assert binom.ppf(LEVEL / 2, calibrations, 0.9) <= covered <= binom.isf(LEVEL / 2, calibrations, 0.9)


def frequency_coverage(population, guarantee, runs):
    """The probability, given the calibration, that a fresh frequency at a fresh θ is inside: a finite sum."""
    prediction, counts = guarantee.predict(population.points), np.arange(runs + 1)
    inside = (prediction.lower[:, None] <= counts / runs) & (counts / runs <= prediction.upper[:, None])
    return float(np.mean(np.sum(inside * binom.pmf(counts, runs, population.f[:, None]), axis=1)))


def test_icp_of_the_exact_probability_covers_frequencies_of_sir_marginally_and_pac():
    population, rng, runs = sir_with(*POSTERIORS["exact"]), np.random.default_rng(11), 50
    calibrations = 600
    shares, broken = [], 0
    for _ in range(calibrations):
        held_out = population.draw(100, runs, rng)
        marginal = calibrate(population.posterior, held_out, method="icp")
        shares.append(frequency_coverage(population, marginal, runs))
        pac = calibrate(population.posterior, held_out, method="icp", confidence=0.9)
        broken += frequency_coverage(population, pac, runs) < 0.9
    error = np.std(shares) / np.sqrt(calibrations)
    exact = 1.0 - 10 / 101  # and a little more: frequencies have ties
    assert exact - 4.76 * error <= np.mean(shares) <= exact + 0.03
    assert binom.sf(broken - 1, calibrations, 0.1) > LEVEL


def test_the_pac_rank_of_icp_breaks_its_claim_as_often_as_the_beta_distribution_says():
    """Without ties, the share of fresh scores above the m-th largest is Beta(m, n - m + 1)."""
    rng, calibrations, points = np.random.default_rng(12), 1500, 100
    posterior = tabled([0.0, 1.0], 0.01)
    rank = 5  # the greatest m with P(Bin(100, 0.1) >= m) >= 0.95
    exact = binom.cdf(rank - 1, points, 0.1)
    assert binom.sf(rank, points, 0.1) < 0.95 <= 1.0 - exact
    # f is 0, so the frequency is 0 and the score x itself, which is uniform: its share above t is 1 - t.
    broken = 0
    for _ in range(calibrations):
        held_out = uniform_counts(lambda x: 0 * x, points, 10, rng)
        made = calibrate(posterior, held_out, method="icp", confidence=0.95)
        assert made.calibration.rank == rank
        broken += made.calibration.threshold < 0.9
    assert binom.ppf(LEVEL / 2, calibrations, exact) <= broken <= binom.isf(LEVEL / 2, calibrations, exact)


@pytest.mark.parametrize("undecided", [(0.3, 0.0), (0.0, 0.1), (0.2, 0.2), (1.0, 0.0)])
@pytest.mark.parametrize(
    ("claim", "mixed"), [(name, mixed) for name in ("lift", "chernoff") for mixed in (False, True)]
)
def test_undecided_runs_are_covered_whatever_they_would_have_become(undecided, claim, mixed):
    population, rng = sir_with(*POSTERIORS["good"]), np.random.default_rng(13)
    runs = np.where(np.arange(len(population.f)) % 2 == 0, 30, 90) if mixed else 50
    shares = []
    for _ in range(150):
        held_out = population.draw(60, runs, rng, undecided)
        shares.append(population.coverage(calibrate(population.posterior, held_out, confidence=None, **CLAIMS[claim])))
    assert np.mean(shares) + 4.76 * np.std(shares) / np.sqrt(len(shares)) >= 0.9


def test_undecided_runs_that_were_left_out_would_not_have_been_covered():
    """A posterior that learned from decided runs alone is wrong, and counts without the others agree with it."""
    space, beta, f = sir()
    lost = 0.5  # of the true runs
    population = Population(space, beta, f, (1 - lost) * f / (1 - lost * f), 0.005)
    rng, naive, honest = np.random.default_rng(14), [], []
    for _ in range(60):
        held_out = population.draw(60, 200, rng, (lost, 0.0))
        honest.append(population.coverage(calibrate(population.posterior, held_out, normaliser="predictive")))
        few = int((held_out.trials - held_out.undecided).min())
        kept = rng.hypergeometric(held_out.satisfied, held_out.violated, few)
        blind = Observations.from_counts(space, held_out.theta, kept, few, design="uniform")
        naive.append(population.coverage(calibrate(population.posterior, blind, normaliser="predictive")))
    assert np.mean(honest) >= 0.9
    assert np.mean(naive) < 0.8


@pytest.mark.parametrize("posterior", ["good", "sure and wrong", "wrong on a tenth"])
@pytest.mark.parametrize("claim", ["lift", "lift, constant", "chernoff", "chernoff, split"])
def test_runs_that_differ_by_parameter_are_covered(posterior, claim):
    population, rng = sir_with(*POSTERIORS[posterior]), np.random.default_rng(15)
    runs = np.where(np.arange(len(population.f)) % 3 == 0, 20, 150)
    marginal, broken = [], 0
    for _ in range(200):
        held_out = population.draw(60, runs, rng)
        made = calibrate(population.posterior, held_out, confidence=None, **CLAIMS[claim])
        assert made.calibration.runs is None
        marginal.append(population.coverage(made))
        pac = calibrate(population.posterior, held_out, confidence=0.95, **CLAIMS[claim])
        broken += population.coverage(pac) < 0.9
    assert np.mean(marginal) + 4.76 * np.std(marginal) / np.sqrt(len(marginal)) >= 0.9
    assert binom.sf(broken - 1, 200, 0.05) > LEVEL


BAD_SHARE, GOOD_RUNS = 0.12, 2000


def adversary(bad_runs, error):
    """θ of which a few more than may be missed have the wrong mean, by `error`, and their own number of runs."""
    theta = (np.arange(1000) + 0.5) / 1000
    bad = theta > 1 - BAD_SHARE
    population = Population(Space(x=(0.0, 1.0)), theta, np.where(bad, 0.2 + error, 0.2), 0.2, 0.01)
    return population, bad, np.where(bad, bad_runs, GOOD_RUNS)


def betrayed(bad_runs, error, miss):
    """The probability that the score of a bad point is at least its error: a finite sum."""
    counts = np.arange(bad_runs + 1)
    reach = counts / bad_runs - 0.2
    margin = np.sqrt(np.log(2 / miss) / (2 * bad_runs))
    scores = np.maximum(np.minimum(reach + margin, 0.8), np.minimum(margin - reach, 0.2))
    return float(binom.pmf(counts, bad_runs, 0.2 + error)[scores >= error - 1e-9].sum())


@pytest.mark.parametrize(
    ("bad_runs", "error"), [(1, 0.3), (1, 0.1), (3, 0.3), (10, 0.5), (40, 0.1), (40, 0.25), (500, 0.12)]
)
def test_chernoff_covers_a_mixture_of_runs_chosen_against_it_as_often_as_a_sum_says(bad_runs, error):
    """All good θ are covered, and the bad ones are if enough bad points are drawn that betray themselves."""
    population, bad, runs = adversary(bad_runs, error)
    rng, points, calibrations = np.random.default_rng(18), 150, 250
    share = BAD_SHARE * betrayed(bad_runs, error, 0.05)
    ranks = {None: 7, 0.9: 4}  # the greatest ones with which 0.05 is missed, marginally and PAC
    assert binom.cdf(3, points, 0.05) <= 0.1 < binom.cdf(4, points, 0.05)
    for confidence, rank in ranks.items():
        lost = binom.cdf(rank - 1, points, share)  # the probability that all bad θ are missed
        assert BAD_SHARE * lost <= 0.1
        assert confidence is None or lost <= 1 - confidence
        missed = 0
        for _ in range(calibrations):
            made = calibrate(
                population.posterior, population.draw(points, runs, rng), method="chernoff", confidence=confidence
            )
            assert made.calibration.rank == rank
            prediction = made.predict(population.points)
            inside = (prediction.lower <= population.f) & (population.f <= prediction.upper)
            assert inside[~bad].all()
            assert len(set(inside[bad])) == 1
            missed += not inside[bad].any()
        assert binom.ppf(LEVEL / 2, calibrations, lost) <= missed <= binom.isf(LEVEL / 2, calibrations, lost)


def test_one_margin_for_a_mixture_of_runs_would_not_cover():
    """Bad points with two runs seldom betray themselves, which the margin of the mean number of runs forgets."""
    population, _, runs = adversary(2, 0.35)
    margin = np.sqrt(np.log(2 / 0.05) / (2 * runs.mean()))
    rng, points, calibrations, missed = np.random.default_rng(19), 600, 60, 0
    lost = binom.cdf(
        29, points, BAD_SHARE * 0.55**2
    )  # the probability that fewer than 30 bad points have a score > 0.3
    assert BAD_SHARE * lost > 0.11
    for _ in range(calibrations):
        held_out = population.draw(points, runs, rng)
        missed += np.sort(np.abs(held_out.frequency - 0.2))[-30] + margin < 0.35
        assert population.coverage(calibrate(population.posterior, held_out, method="chernoff")) == 1.0
    assert binom.ppf(LEVEL / 2, calibrations, lost) <= missed <= binom.isf(LEVEL / 2, calibrations, lost)


@pytest.mark.parametrize("claim", ["icp", "lift", "chernoff"])
def test_a_density_is_covered_where_the_uniform_claim_would_not_be(claim):
    """The posterior errs where x is large, and there the density lies."""

    def f(x):
        return 0.2 + 0.6 * x**4

    def density(theta):
        return theta[:, 0] ** 3

    rng, calibrations = np.random.default_rng(16), 400
    posterior = tabled([0.2, 0.2], 0.02)
    keywords = {"method": claim, "confidence": None, "level": 0.8}
    if claim == "lift":
        keywords["normaliser"] = "constant"
    weighted = plain = 0
    for _ in range(calibrations):
        held_out = uniform_counts(f, 150, 60, rng)
        fresh = np.array([[rng.random() ** 0.25]])  # has the density 4x³
        target = rng.binomial(60, f(fresh[0, 0])) / 60 if claim == "icp" else f(fresh[0, 0])
        for given in ({"density": density}, {}):
            prediction = calibrate(posterior, held_out, **keywords, **given).predict(fresh)
            inside = int(prediction.lower[0] <= target <= prediction.upper[0])
            weighted, plain = (weighted + inside, plain) if given else (weighted, plain + inside)
    assert not_rejected(weighted, calibrations, 0.8)
    if claim == "icp":
        assert plain < 0.7 * calibrations


def test_the_single_point_of_a_space_without_ranges_can_be_calibrated():
    """All points are the same, so no threshold is about θ: what remains is a bound on one probability."""
    space, rng = Space(k=1.0), np.random.default_rng(17)

    def counts(n, design):
        return Observations.from_counts(space, np.empty((n, 0)), rng.binomial(50, 0.3, size=n), 50, design=design)

    posterior = tabled(0.35, 0.02, training=counts(3, "given"))
    made = calibrate(posterior, counts(40, "uniform"), normaliser="predictive")
    prediction = made.predict(space.points(np.empty((1, 0))))
    assert prediction.lower[0] <= 0.3 <= prediction.upper[0]
    assert "a single point" in str(made.claim)
