"""The likelihood of counts, against sums and integrals done the long way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import expit, gammaln, log_expit, log_ndtr, logsumexp, ndtr
from scipy.stats import binom

from sateen.learning.inputs import Sample
from sateen.learning.likelihood import Counts, inverse_link, normal_nodes, tilted_moments

LINKS = ("probit", "logit")


def row(satisfied, undecided, trials, link="probit"):
    """The counts of one row."""
    return Counts(*(np.array([float(n)]) for n in (satisfied, undecided, trials)), link)


def log_sum(satisfied, undecided, trials, g, link):
    """ln L at each g, as the sum over every true count that is possible."""
    log_f, log_not = (log_ndtr(g), log_ndtr(-g)) if link == "probit" else (log_expit(g), log_expit(-g))
    j = np.arange(satisfied, satisfied + undecided + 1.0)
    ways = gammaln(trials + 1) - gammaln(j + 1) - gammaln(trials - j + 1)
    return logsumexp(ways + np.multiply.outer(log_f, j) + np.multiply.outer(log_not, trials - j), axis=-1)


@some.composite
def rows(draw):
    """Satisfied, undecided and all runs of a point."""
    trials = draw(some.integers(1, 200))
    satisfied = draw(some.integers(0, trials))
    return satisfied, draw(some.integers(0, trials - satisfied)), trials


@pytest.mark.parametrize("link", LINKS)
@given(counts=rows(), g=some.floats(-6, 6))
def test_the_likelihood_is_the_sum_over_all_counts_that_are_possible(link, counts, g):
    value = row(*counts, link).at(np.array([g]))[0][0]
    direct = log_sum(*counts, np.array([g]), link)[0]
    assert value == pytest.approx(direct, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("link", LINKS)
def test_without_undecided_runs_it_is_the_binomial_one(link):
    g = np.linspace(-3, 3, 7)
    value = row(3, 0, 10, link).at(g[None])[0][0]
    assert value == pytest.approx(binom.logpmf(3, 10, inverse_link(g, link)), rel=1e-12)


@pytest.mark.parametrize("link", LINKS)
@given(counts=rows(), g=some.floats(-5, 5))
def test_derivatives_are_those_of_the_value(link, counts, g):
    own, h = row(*counts, link), 1e-4
    value, slope, bend = (column[0] for column in own.at(np.array([[g - h, g, g + h]])))
    assert slope[1] == pytest.approx((value[2] - value[0]) / (2 * h), rel=1e-5, abs=1e-4 * (1 + abs(bend[1]) * h))
    assert bend[1] == pytest.approx((slope[2] - slope[0]) / (2 * h), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("link", LINKS)
@given(counts=rows(), g=some.floats(-40, 40))
def test_it_is_finite_and_log_concave_everywhere(link, counts, g):
    value, slope, bend = row(*counts, link).at(np.array([g]))
    assert np.isfinite([value[0], slope[0], bend[0]]).all()
    assert value[0] <= 1e-9
    assert bend[0] <= 1e-9


@pytest.mark.parametrize("link", LINKS)
@given(counts=rows(), g=some.floats(-8, 8))
def test_for_and_against_are_mirror_images(link, counts, g):
    satisfied, undecided, trials = counts
    value, slope, bend = row(*counts, link).at(np.array([g]))
    other = row(trials - satisfied - undecided, undecided, trials, link).at(np.array([-g]))
    assert other[0] == pytest.approx(value, rel=1e-8, abs=1e-10)
    assert other[1] == pytest.approx(-slope, rel=1e-6, abs=1e-8)
    assert other[2] == pytest.approx(bend, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_a_row_without_a_decided_run_says_nothing(link):
    value, slope, bend = row(0, 50, 50, link).at(np.linspace(-5, 5, 11)[None])
    for column in (value, slope, bend):
        assert np.abs(column).max() < 1e-9


@pytest.mark.parametrize("trials", [1000, 100_000])
@pytest.mark.parametrize("g", [-2.5, 0.0, 1.5])
def test_far_from_what_was_counted_the_sum_is_still_right(trials, g):
    """There the likelihood is smaller than any float, and its logarithm comes from a geometric series."""
    satisfied, undecided = trials // 3, trials // 10
    value, slope, bend = (column[0, 0] for column in row(satisfied, undecided, trials).at(np.array([[g]])))
    h = 1e-3
    low, mid, high = log_sum(satisfied, undecided, trials, np.array([g - h, g, g + h]), "probit")
    assert value == pytest.approx(mid, rel=1e-5)
    assert slope == pytest.approx((high - low) / (2 * h), rel=1e-3)
    assert bend == pytest.approx((high - 2 * mid + low) / h**2, rel=2e-2)


def dense_mean(own, mean, deviation):
    z = np.linspace(-9, 9, 20001)
    weights = np.exp(-0.5 * z * z)
    return [float(column[0] @ weights) / weights.sum() for column in own.at((mean + deviation * z)[None])]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("counts", [(0, 1), (0, 50), (20, 50), (300, 1000), (500, 100_000)])
@pytest.mark.parametrize(("deviation", "error"), [(0.05, 1e-9), (0.5, 1e-9), (1.0, 1e-5), (2.5, 1e-3)])
def test_expectations_are_right_however_many_the_runs(link, counts, deviation, error):
    own = row(counts[0], 0, counts[1], link)
    for mean in (-3.0, 0.0, 1.5):
        found = own.expected(np.array([mean]), np.array([deviation**2]))
        for value, dense in zip(found, dense_mean(own, mean, deviation), strict=True):
            assert value[0] == pytest.approx(dense, rel=error, abs=1e-6)


def test_expectations_of_censored_rows_are_right_too():
    own = row(10, 20, 100)
    found = own.expected(np.array([-0.4]), np.array([0.3**2]))
    assert [column[0] for column in found] == pytest.approx(dense_mean(own, -0.4, 0.3), rel=1e-4)


def test_rows_do_not_mix():
    counts = Counts(np.array([0.0, 5, 30]), np.array([0.0, 3, 0]), np.array([10.0, 20, 50]), "probit")
    mean, variance = np.array([-1.0, 0.2, 0.5]), np.array([0.1, 4.0, 0.3])
    together = counts.expected(mean, variance)
    tilted = tilted_moments(counts, mean, variance, mean)
    for i in range(3):
        one = slice(i, i + 1)
        for whole, part in zip(together, counts[one].expected(mean[one], variance[one]), strict=True):
            assert whole[i] == pytest.approx(part[0], rel=1e-12)
        for whole, part in zip(tilted, tilted_moments(counts[one], mean[one], variance[one], mean[one]), strict=True):
            assert whole[i] == pytest.approx(part[0], rel=1e-6)


def dense_tilted(own, mean, deviation):
    """Mass, mean and deviation of normal · likelihood on a grid that is refined around what there is of it."""
    low, high = mean - 12 * deviation, mean + 12 * deviation
    low, high = min(low, -8.0), max(high, 8.0)
    for _ in range(3):
        g = np.linspace(low, high, 20001)
        log_density = own.at(g[None])[0][0] - 0.5 * ((g - mean) / deviation) ** 2
        kept = g[log_density > log_density.max() - 40]
        spacing = g[1] - g[0]
        low, high = kept[0] - 2 * spacing, kept[-1] + 2 * spacing
    peak = log_density.max()
    weights = np.exp(log_density - peak)
    total = weights.sum()
    centre = float(weights @ g / total)
    mass = peak + np.log(total * spacing) - np.log(deviation * np.sqrt(2 * np.pi))
    return mass, centre, float(np.sqrt(weights @ (g - centre) ** 2 / total))


@pytest.mark.parametrize("counts", [(0, 0, 1), (0, 0, 50), (20, 0, 50), (20, 10, 50), (300, 0, 1000), (0, 0, 100_000)])
@pytest.mark.parametrize(("deviation", "error"), [(0.05, 1e-7), (0.5, 1e-6), (2.4, 1e-2), (10.0, 4e-2)])
def test_tilted_moments_are_right_where_the_likelihood_is_much_narrower_than_the_cavity(counts, deviation, error):
    own = row(*counts)
    for mean in (-4.0, 0.0, 2.0):
        found = tilted_moments(own, np.array([mean]), np.array([deviation**2]), np.array([mean]))
        mass, centre, spread = dense_tilted(own, mean, deviation)
        assert found[0][0] == pytest.approx(mass, abs=error + 1e-9 * abs(mass))
        assert (found[1][0] - centre) / spread == pytest.approx(0.0, abs=error)
        assert np.sqrt(found[2][0]) == pytest.approx(spread, rel=error)


def test_a_guess_is_near_the_peak():
    counts = Counts(np.array([10.0, 25]), np.array([0.0, 0]), np.array([50.0, 50]), "probit")
    latent, curvature = counts.guess()
    _, slope, bend = counts.at(latent)
    assert np.abs(slope / np.sqrt(curvature)).max() < 0.2
    assert curvature == pytest.approx(-bend, rel=0.2)


def test_links_and_nodes():
    g = np.array([-1.0, 0.0, 2.0])
    assert inverse_link(g, "probit") == pytest.approx(ndtr(g))
    assert inverse_link(g, "logit") == pytest.approx(expit(g))
    nodes, weights = normal_nodes(16)
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ nodes**4 == pytest.approx(3.0)


def test_counts_come_from_a_sample():
    columns = [np.array([3.0, 4.0]), np.array([0.0, 1.0]), np.array([10.0, 10.0])]
    counts = Counts.of(Sample(np.zeros((2, 1)), *columns), "logit")
    assert len(counts) == 2
    assert counts.link == "logit"
    assert not counts.trials.flags.writeable
