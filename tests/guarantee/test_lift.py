"""The lift, by exact enumeration: no draw, no tolerance but rounding.

Where θ falls into two groups, the score of a fresh point has finitely many values, whose probabilities are known, and
so has the threshold: the m-th largest of n is at most t when fewer than m scores are above t, a binomial event. So the
coverage of f, and the probability that a calibration breaks a PAC claim, are finite sums.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from sateen import Observations
from sateen.core.proportions import lower_bound, upper_bound
from sateen.guarantee.conformal import conformal_miss, conformal_rank
from sateen.guarantee.lift import fewest_lifted_points, lift_miss, lifted, lifted_distances
from tabled import UNIT

BAD_SHARES = (0.02, 0.05, 0.09, 0.1001, 0.11, 0.15, 0.4)
MISS, CONFIDENCE = 0.1, 0.95


@dataclass(frozen=True)
class Groups:
    """θ in groups: in each, the share of θ, f, the posterior mean, its difficulty, and how many runs are made there."""

    share: np.ndarray
    f: np.ndarray
    mean: np.ndarray
    u: np.ndarray
    runs: np.ndarray

    def outcomes(self, distance):
        """All scores a point can have, and the probability of each."""
        scores, chances = [], []
        for group, runs in enumerate(self.runs):
            counts = np.arange(runs + 1)
            scores.append(distance(counts, runs, np.full(runs + 1, self.mean[group])) / self.u[group])
            chances.append(self.share[group] * binom.pmf(counts, runs, self.f[group]))
        return np.concatenate(scores), np.concatenate(chances)

    def thresholds(self, distance, points, rank):
        """All values of the m-th largest score, and the probability of each."""
        scores, chances = self.outcomes(distance)
        values, place = np.unique(scores, return_inverse=True)
        above = 1.0 - np.cumsum(np.bincount(place, chances))
        at_most = binom.cdf(rank - 1, points, np.clip(above, 0, 1))
        return values, np.diff(at_most, prepend=0.0)

    def covered(self, lower, upper):
        """The share of θ whose f is inside, for each row of ends."""
        return ((lower <= self.f) & (self.f <= upper)) @ self.share


def frequencies(counts, runs, mean):
    return np.abs(counts / runs - mean)


def equal_lift(groups, points, rank, eta):
    """Every coverage that a calibration with one number of runs can have, and its probability."""
    runs = int(groups.runs[0])
    values, chances = groups.thresholds(frequencies, points, rank)
    return groups.covered(*lifted(groups.mean, np.outer(values, groups.u), runs, eta)), chances


def unequal_lift(groups, points, rank, eta):
    """The same for the lift that bounds f at each point first."""

    def bounds(counts, runs, mean):
        place = {"x": np.full(len(counts), 0.5)}
        return lifted_distances(Observations.from_counts(UNIT, place, counts, runs), mean, eta)

    values, chances = groups.thresholds(bounds, points, rank)
    return groups.covered(*around(groups, values)), chances


def around(groups, thresholds):
    """f̂ ± tu, and by a hair more, for each threshold t."""
    reach = np.outer(thresholds, groups.u) + 1e-12
    return groups.mean - reach, groups.mean + reach


def two_groups(bad, f, gap, runs):
    mean = np.array([f, np.clip(f + gap, 0.0, 1.0)])
    return Groups(np.array([1 - bad, bad]), np.full(2, f), mean, np.ones(2), np.broadcast_to(runs, 2))


def adversaries():
    """Posteriors that are right on most θ and wrong on about as many as may be missed, by all kinds of errors."""
    gaps = (-0.3, -0.1, 0.02, 0.05, 0.1, 0.2, 0.5)
    for bad, f, gap, runs in itertools.product(BAD_SHARES, (0.03, 0.5), gaps, (1, 20, 200)):
        yield two_groups(bad, f, gap, runs)


@pytest.mark.parametrize("lift", [equal_lift, unequal_lift])
@pytest.mark.parametrize(("points", "rank"), [(15, 1), (60, 1), (60, 3), (200, 1), (200, 12)])
def test_no_adversary_makes_the_marginal_lift_miss_more_than_it_may(points, rank, lift):
    eta = lift_miss(points, rank, MISS, None)
    worst = 1.0
    for groups in adversaries():
        coverage, chances = lift(groups, points, rank, eta)
        worst = min(worst, coverage @ chances)
    assert worst >= 1.0 - MISS - 1e-9


@pytest.mark.parametrize("lift", [equal_lift, unequal_lift])
@pytest.mark.parametrize(("points", "rank"), [(29, 1), (60, 1), (200, 1), (200, 12)])
def test_no_adversary_breaks_the_pac_lift_more_often_than_its_confidence_allows(points, rank, lift):
    eta = lift_miss(points, rank, MISS, CONFIDENCE)
    worst = 0.0
    for groups in adversaries():
        coverage, chances = lift(groups, points, rank, eta)
        worst = max(worst, chances[coverage < 1.0 - MISS - 1e-12].sum())
    assert worst <= 1.0 - CONFIDENCE + 1e-9


def test_an_adversary_that_knows_the_lift_comes_near_its_confidence():
    """The claim is not true for want of enemies: with errors as large as the bounds just miss, it breaks near δ."""
    points, rank = 60, 1
    eta = lift_miss(points, rank, MISS, CONFIDENCE)
    broken = []
    for gap in np.linspace(0.01, 0.4, 118):
        coverage, chances = equal_lift(two_groups(0.1001, 0.3, gap, 200), points, rank, eta)
        broken.append(chances[coverage < 1.0 - MISS - 1e-12].sum())
    assert 0.03 < max(broken) <= 1.0 - CONFIDENCE + 1e-9


@pytest.mark.parametrize("runs", [(1, 200), (50, 3), (0, 40), (400, 25)])
@pytest.mark.parametrize("confidence", [None, CONFIDENCE])
def test_runs_may_differ_where_the_posterior_is_wrong(runs, confidence):
    points, rank = 100, 1
    eta = lift_miss(points, rank, MISS, confidence)
    for bad, f, gap in itertools.product(BAD_SHARES, (0.05, 0.5), (-0.3, 0.05, 0.15, 0.4)):
        coverage, chances = unequal_lift(two_groups(bad, f, gap, runs), points, rank, eta)
        if confidence is None:
            assert coverage @ chances >= 1.0 - MISS - 1e-9
        else:
            assert chances[coverage < 1.0 - MISS - 1e-12].sum() <= 1.0 - confidence + 1e-9


def test_the_conformal_interval_alone_does_not_cover_the_probability_and_lifted_it_does():
    """f is 0.5, and a posterior says 0.2 on 15 % of θ: with 500 runs, ICP at 90 % covers f on 85 % of them only."""
    points = 1999
    groups = two_groups(0.15, 0.5, -0.3, 500)
    values, chances = groups.thresholds(frequencies, points, conformal_rank(points, MISS, None))
    assert groups.covered(*around(groups, values)) @ chances == pytest.approx(0.851, abs=0.002)
    for rank in (1, 10, 100):
        coverage, chances = equal_lift(groups, points, rank, lift_miss(points, rank, MISS, None))
        assert coverage @ chances >= 0.9


def test_the_conformal_interval_covers_the_frequency_as_it_says():
    points = 1999
    groups = two_groups(0.15, 0.5, -0.3, 500)
    values, chances = groups.thresholds(frequencies, points, conformal_rank(points, MISS, None))
    scores, probabilities = groups.outcomes(frequencies)
    inside = np.array([probabilities[scores <= t].sum() for t in values])
    assert 0.9 <= inside @ chances < 0.91


def test_a_half_that_is_not_lifted_is_provable_for_twice_the_miss():
    """P(|f - f̂| <= τ + 1/M) >= 1 - 2ε, for the ICP of the frequency."""
    for groups in adversaries():
        runs = int(groups.runs[0])
        values, chances = groups.thresholds(frequencies, 99, conformal_rank(99, MISS, None))
        assert groups.covered(*around(groups, values + 1.0 / runs)) @ chances >= 1.0 - 2 * MISS


@pytest.mark.parametrize(
    ("points", "rank", "confidence"), [(10, 1, None), (200, 7, None), (29, 1, 0.95), (500, 9, 0.99)]
)
def test_what_the_conformal_part_and_the_bounds_miss_makes_up_the_whole(points, rank, confidence):
    eta = lift_miss(points, rank, MISS, confidence)
    assert conformal_miss(points, rank, confidence) / (1.0 - eta) == pytest.approx(MISS)


@pytest.mark.parametrize("confidence", [None, 0.5, 0.95, 0.9999])
@pytest.mark.parametrize("rank", [1, 2, 10, 100])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_so_many_points_leave_something_to_the_bounds_and_one_less_does_not(rank, level, confidence):
    miss = 1.0 - level
    enough = fewest_lifted_points(rank, miss, confidence)
    assert lift_miss(enough, rank, miss, confidence) is not None
    assert enough == rank or lift_miss(enough - 1, rank, miss, confidence) is None


def test_at_exactly_as_many_points_as_the_level_needs_nothing_is_left():
    assert lift_miss(9, 1, 1.0 - 0.9, None) is None
    assert lift_miss(10, 1, 1.0 - 0.9, None) == pytest.approx(1 / 11)
    assert lift_miss(3, 5, 0.9, None) is None


def test_no_number_of_points_is_advised_that_nobody_could_observe():
    assert fewest_lifted_points(1, 1e-15, None) is None


def test_a_score_that_is_met_exactly_is_inside():
    """0.3 + 0.1 is a little more than 4/10, and 0.7 - 0.1 a little less than 6/10."""
    mean, reach = np.array([0.3, 0.7]), np.array([0.1, 0.1])
    lower, upper = lifted(mean, reach, 10, 0.5)
    for k, end in ((2, lower[0]), (6, lower[1])):
        assert binom.sf(k - 1, 10, end) == pytest.approx(0.5)
    for k, end in ((4, upper[0]), (8, upper[1])):
        assert binom.cdf(k, 10, end) == pytest.approx(0.5)


def test_the_interval_always_contains_the_mean():
    mean = np.linspace(0, 1, 41)
    for eta, reach in itertools.product((0.01, 0.5, 0.999), (0.0, 0.01, 0.3, np.inf)):
        lower, upper = lifted(mean, np.full(41, reach), 50, eta)
        assert (lower <= mean).all()
        assert (mean <= upper).all()
        assert lower.min() >= 0
        assert upper.max() <= 1


def test_undecided_runs_count_for_both_bounds_where_runs_differ():
    counts = {"satisfied": [3, 3, 0, 0], "trials": [10, 40, 25, 0], "undecided": [0, 9, 25, 0]}
    observed = Observations.from_counts(UNIT, {"x": [0.1, 0.2, 0.3, 0.4]}, **counts)
    for eta, mean in itertools.product((0.05, 0.9), (0.0, 0.2, 0.9)):
        least = lower_bound(counts["satisfied"], counts["trials"], eta)
        most = upper_bound([3, 12, 25, 0], counts["trials"], eta)
        wanted = np.max([most - mean, mean - least, np.zeros(4)], axis=0)
        assert lifted_distances(observed, np.full(4, mean), eta).tolist() == wanted.tolist()
