"""The Bayesian test: its numbers against exact fractions and integrals, and its claim summed over all outcomes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as hs
from scipy import integrate, stats
from scipy.special import expit

from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.sampling import bayes
from sateen.sampling.bayes import BayesTest, answered, log_odds_above
from sateen.sampling.sequential import Tally, credible, until_answered

UNLIKELY = 1e-6
THRESHOLDS = hs.floats(1e-9, 1.0 - 1e-9)
PRIORS = hs.tuples(hs.floats(0.01, 100.0), hs.floats(0.01, 100.0))


def log_of(fraction: Fraction) -> float:
    """The logarithm of a fraction that may be below all floats."""
    shift = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    return shift * math.log(2.0) + math.log(float(fraction * Fraction(2) ** -shift))


def exact_log_odds(threshold: Fraction, satisfied: int, violated: int) -> float:
    """Under the uniform prior, P(X <= q) is the chance of more than `satisfied` among one run more: a finite sum."""
    runs, q = satisfied + violated + 1, threshold
    weights = [math.comb(runs, count) * q**count * (1 - q) ** (runs - count) for count in range(runs + 1)]
    return log_of(sum(weights[: satisfied + 1], Fraction(0))) - log_of(sum(weights[satisfied + 1 :], Fraction(0)))


class TestNumbers:
    @pytest.mark.parametrize("threshold", [Fraction(1, 2**40), Fraction(1, 1024), Fraction(5, 16), Fraction(1, 2)])
    @pytest.mark.parametrize("counts", [(0, 0), (0, 1), (0, 60), (60, 0), (3, 40), (150, 150), (0, 250), (250, 3)])
    def test_the_odds_are_those_of_an_exact_sum(self, threshold: Fraction, counts: tuple[int, int]) -> None:
        satisfied, violated = counts
        for q in (threshold, 1 - threshold):
            exact = exact_log_odds(q, satisfied, violated)
            found = float(log_odds_above(float(q), satisfied + 1, violated + 1))
            assert found == pytest.approx(exact, rel=1e-12, abs=1e-12)

    @given(PRIORS, hs.floats(0.02, 0.98), hs.integers(0, 40), hs.integers(0, 40))
    def test_the_odds_are_those_of_an_integral(
        self, prior: tuple[float, float], threshold: float, satisfied: int, violated: int
    ) -> None:
        a, b = prior[0] + satisfied, prior[1] + violated
        # In the log odds of X the density has no poles.
        middle = math.log(threshold / (1 - threshold))
        top = math.log(a / b)

        def density(logit: float) -> float:
            at = a * -np.logaddexp(0, -logit) + b * -np.logaddexp(0, logit)
            return float(np.exp(at - (a * -np.logaddexp(0, -top) + b * -np.logaddexp(0, top))))

        ends = [middle, *(middle + side * reach for reach in (3.0, 30.0, 300.0, 3000.0) for side in (-1, 1)), top]
        cuts = sorted(ends)
        pieces = [integrate.quad(density, low, high, epsabs=0, limit=200)[0] for low, high in pairwise(cuts)]
        below = sum(piece for low, piece in zip(cuts, pieces, strict=False) if low < middle)
        above = sum(piece for low, piece in zip(cuts, pieces, strict=False) if low >= middle)
        assume(min(below, above) > 1e-200)
        assert float(log_odds_above(threshold, a, b)) == pytest.approx(math.log(above / below), rel=1e-6, abs=1e-6)

    @pytest.mark.parametrize("runs", [10**5, 10**7, 10**9])
    @pytest.mark.parametrize("threshold", [1e-300, 1e-9, 0.3, 1 - 1e-9])
    def test_no_count_is_too_large(self, runs: int, threshold: float) -> None:
        counts = np.array([0, 1, runs // 3, runs - 1, runs])
        odds = log_odds_above(threshold, counts + 1, runs - counts + 1)
        assert np.isfinite(odds).all()
        assert (np.diff(odds) > 0).all()
        # With all runs alike the tail is a power: q^(n + 1), or (1 - q)^(n + 1).
        all_true = (runs + 1) * math.log(threshold)
        none = (runs + 1) * math.log1p(-threshold)
        assert odds[-1] == pytest.approx(-all_true + math.log(-math.expm1(all_true)), rel=1e-9)
        assert odds[0] == pytest.approx(none - math.log(-math.expm1(none)), rel=1e-9)

    @given(hs.floats(0.05, 0.95), hs.integers(1000, 10**7), hs.floats(-34, -20))
    def test_the_logarithmic_branch_meets_the_plain_one(self, threshold: float, runs: int, sigmas: float) -> None:
        """Where both can be computed, they agree: nothing happens at the seam."""
        mean = threshold - sigmas * math.sqrt(threshold * (1 - threshold) / runs)
        assume(mean < 0.99)
        a, b = np.array([runs * mean + 1]), np.array([runs * (1 - mean) + 1])
        plain = stats.beta.cdf(threshold, a, b)
        assume(1e-280 < plain[0] < 1e-50)
        logs = math.log(threshold), math.log1p(-threshold)
        in_logs = bayes._log_tail(np.zeros(1), a, b, threshold, *logs)
        assert in_logs[0] == pytest.approx(math.log(plain[0]), abs=1e-6)

    @given(PRIORS, THRESHOLDS, hs.integers(0, 2000), hs.integers(0, 2000))
    def test_a_probability_and_its_complement_mirror_each_other(
        self, prior: tuple[float, float], threshold: float, satisfied: int, violated: int
    ) -> None:
        threshold = round(threshold * 2**20) / 2**20
        assume(0 < threshold < 1)
        one = BayesTest.of(threshold, prior)
        other = BayesTest.of(1 - threshold, prior[::-1])
        assert one.log_needed == pytest.approx(other.log_needed, rel=1e-9)
        evidence = float(one.evidence(satisfied, violated))
        assert float(other.evidence(violated, satisfied)) == pytest.approx(-evidence, rel=1e-8, abs=1e-8)

    @given(PRIORS, hs.floats(0.001, 0.999), hs.integers(1, 5000))
    def test_the_evidence_rises_with_satisfactions_and_falls_with_violations(
        self, prior: tuple[float, float], threshold: float, runs: int
    ) -> None:
        test = BayesTest.of(threshold, prior)
        counts = np.unique(np.linspace(0, runs, 40).astype(int))
        slack = 1e-9 * runs
        assert (np.diff(test.evidence(counts, runs - counts)) > -slack).all()
        assert (test.evidence(counts + 1, runs - counts) >= test.evidence(counts, runs - counts) - slack).all()
        assert (test.evidence(counts, runs - counts + 1) <= test.evidence(counts, runs - counts) + slack).all()
        assert (np.diff(test.evidence(counts, 0)) > -slack).all()

    def test_before_the_first_run_there_is_no_evidence(self) -> None:
        for prior in ((1, 1), (0.5, 7), (1e-6, 1e9)):
            assert float(BayesTest.of(0.2, prior).evidence(0, 0)) == 0.0


def outcomes(test: BayesTest, runs: int) -> tuple[list[tuple[int, int, bool, float]], Any]:
    """Where the test stops: satisfied, violated, whether accepted, and how many sequences of runs lead there.

    And how many lead to each count of the undecided, all as logarithms of numbers that may be huge.
    """
    ways, ends = np.zeros(1), []
    for made in range(1, runs + 1):
        ways = np.logaddexp(np.append(ways, -np.inf), np.append(-np.inf, ways))
        counts = np.arange(made + 1)
        evidence = test.evidence(counts, made - counts)
        for count in np.flatnonzero((np.abs(evidence) >= test.log_needed) & np.isfinite(ways)):
            ends.append((int(count), int(made - count), bool(evidence[count] > 0), float(ways[count])))
            ways[count] = -np.inf
    return ends, ways


def errors_at(p: float, threshold: float, ends: list[tuple[int, int, bool, float]]) -> float:
    """The probability of a wrong answer at p."""
    wrong = [each for each in ends if each[2] != (p > threshold)]
    return sum(math.exp(ways + k * math.log(p) + v * math.log1p(-p)) for k, v, _, ways in wrong)


SETTINGS = [(0.3, (1.0, 1.0), None, 0.05), (0.8, (2.0, 3.0), None, 0.1), (0.05, (1.0, 1.0), 20.0, 0.05)]


class TestClaim:
    @pytest.mark.parametrize(("threshold", "prior", "factor", "error"), SETTINGS)
    def test_on_average_over_the_prior_it_errs_as_seldom_as_claimed_by_a_sum_over_all_outcomes(
        self, threshold: float, prior: tuple[float, float], factor: float | None, error: float
    ) -> None:
        test = BayesTest.of(threshold, prior, factor, error)
        ends, _ = outcomes(test, 300)
        belief = stats.beta(*prior)
        claimed = 1 - (answered(test, ">", Tally(10, 5)).claim.level or 0.0)
        if factor is None:
            assert claimed == pytest.approx(error)

        def error_density(p: float) -> float:
            return errors_at(p, threshold, ends) * float(belief.pdf(p))

        mean_error = sum(
            integrate.quad(error_density, low, high, limit=200)[0] for low, high in ((0, threshold), (threshold, 1))
        )
        by_answer = {True: [0.0, 0.0], False: [0.0, 0.0]}  # probability under the prior, and that of being wrong
        for k, v, accepted, ways in ends:
            a, b = prior
            chance = math.exp(ways + _log_beta(a + k, b + v) - _log_beta(a, b))
            odds = float(log_odds_above(threshold, a + k, b + v))
            wrong = float(expit(-odds if accepted else odds))
            assert wrong <= claimed * (1 + 1e-9)  # given the runs themselves
            by_answer[accepted][0] += chance
            by_answer[accepted][1] += chance * wrong
        # The same by the posterior after the runs as by the frequency at every p: two ways to one number.
        assert by_answer[True][1] + by_answer[False][1] == pytest.approx(mean_error, rel=1e-4)
        for chance, wrong in by_answer.values():
            assert 0.0 < wrong <= claimed * chance

    @pytest.mark.parametrize(("threshold", "prior", "factor", "error"), SETTINGS)
    def test_the_sharper_bound_of_each_answer_has_the_prior_odds_in_it(
        self, threshold: float, prior: tuple[float, float], factor: float | None, error: float
    ) -> None:
        test = BayesTest.of(threshold, prior, factor, error)
        before = stats.beta(*prior).sf(threshold) / stats.beta(*prior).cdf(threshold)
        needed = math.exp(test.log_needed)
        for k, v, accepted, _ in outcomes(test, 200)[0]:
            above = stats.beta(prior[0] + k, prior[1] + v).sf(threshold)
            if accepted:
                assert 1 - above <= 1 / (1 + needed * before) * (1 + 1e-9)
            else:
                assert above <= 1 / (1 + needed / before) * (1 + 1e-9)

    def test_at_a_given_probability_beside_the_threshold_it_errs_far_more_often(self) -> None:
        """So the claim says that it is no bound there; at 300 runs many are still undecided, and yet."""
        ends, _ = outcomes(BayesTest.of(0.3), 300)
        assert errors_at(0.295, 0.3, ends) > 2 * 0.05

    def test_the_claim_says_what_is_claimed_and_what_is_not(self) -> None:
        claim = answered(BayesTest.of(0.3, (2, 5), error=0.01), "<=", Tally(10, 1)).claim
        assert str(claim) == (
            "if the probability was drawn from Beta(2, 5) before the runs, an answer to P <= 0.3 is right with "
            "probability at least 99 % given the runs: a belief under this prior, which bounds no error at a given "
            "parameter"
        )
        assert (claim.target, claim.mode, claim.runs) == ("answer", "credible", 10)
        assert Claim.from_content(claim.content()) == claim

    @pytest.mark.parametrize("mode", ["frequentist", "marginal"])
    def test_no_other_mode_is_about_an_answer(self, mode: Any) -> None:
        with pytest.raises(InputError, match="a claim about an answer is credible"):
            Claim("answer", mode, 0.9, "Beta(1, 1)")

    def test_a_given_factor_is_claimed_with_the_odds_of_the_prior(self) -> None:
        """With q = 0.2 the odds are 4, so that a rejection is wrong with probability 1/(1 + 16/4) at most."""
        assert answered(BayesTest.of(0.2, factor=16.0), ">", Tally(3, 1)).claim.level == pytest.approx(0.8)
        assert math.exp(BayesTest.of(0.2, error=0.2).log_needed) == pytest.approx(16.0)

    def test_over_many_probabilities_drawn_from_the_prior_it_errs_as_seldom_as_claimed(self) -> None:
        rng, repeats = np.random.default_rng(1), 2000
        wrong = 0
        for p in rng.beta(2.0, 3.0, size=repeats):
            _, found = until_answered(
                lambda n, p=p: (rng.random(n) < p, np.zeros((0, n), bool)), BayesTest.of(0.4, (2, 3), error=0.1), 20_000
            )
            wrong += found == ("rejected" if p > 0.4 else "accepted")
        assert wrong <= stats.binom.isf(UNLIKELY, repeats, 0.1)


class TestRuns:
    @given(hs.integers(0, 2**32), hs.floats(0.0, 1.0), hs.floats(0.1, 0.9), hs.integers(0, 300))
    def test_it_decides_at_the_very_run_that_reaches_the_factor(
        self, seed: int, p: float, threshold: float, before: int
    ) -> None:
        test = BayesTest.of(threshold, factor=30.0)
        bits = np.random.default_rng(seed).random(1500) < p
        satisfied = before // 2
        after, decision = test.first(bits, satisfied, before)
        counts = satisfied + np.cumsum(bits)
        evidence = test.evidence(counts, before + np.arange(1, 1501) - counts)
        beyond = np.flatnonzero(np.abs(evidence) >= math.log(30.0))
        if not len(beyond):
            assert (after, decision) == (1500, None)
        else:
            assert after == beyond[0] + 1
            assert decision == ("accepted" if evidence[beyond[0]] > 0 else "rejected")

    @given(hs.integers(0, 2**32), hs.floats(0.2, 0.4), hs.integers(1, 700))
    def test_the_answer_does_not_depend_on_how_runs_are_batched(self, seed: int, p: float, size: int) -> None:
        test, bits = BayesTest.of(0.3, factor=10.0), np.random.default_rng(seed).random(2000) < p
        whole = test.first(bits)
        made, decision = 0, None
        while decision is None and made < 2000:
            part = bits[made : made + size]
            after, decision = test.first(part, int(bits[:made].sum()), made)
            made += after
        assert (made, decision) == whole

    def test_few_evaluations_are_made_near_the_threshold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked = 0

        def counting(threshold: float, first: Any, second: Any) -> Any:
            nonlocal looked
            looked += np.size(first)
            return log_odds_above(threshold, first, second)

        bits = np.random.default_rng(1).random(200_000) < 0.3
        test = BayesTest.of(0.3, error=1e-9)
        monkeypatch.setattr(bayes, "log_odds_above", counting)
        assert test.first(bits, 300_000, 1_000_000) == (200_000, None)
        assert looked < 10_000

    @given(hs.integers(0, 2**32), hs.floats(0.0, 1.0), hs.floats(0.0, 0.6))
    def test_undecided_runs_never_turn_an_answer(self, seed: int, p: float, share: float) -> None:
        test, rng = BayesTest.of(0.5, factor=20.0), np.random.default_rng(seed)
        unknown = rng.random(400) < share
        known = (rng.random(400) < p) & ~unknown
        made = 0

        def draw(runs: int) -> tuple[Any, Any]:
            nonlocal made
            made += runs
            return known[made - runs : made], unknown[None, made - runs : made]

        counted, found = until_answered(draw, test, 400)
        answer = answered(test, ">", counted)
        low, high = test.evidence(
            np.array([counted.satisfied, counted.satisfied + counted.undecided]),
            counted.runs - np.array([counted.satisfied, counted.satisfied + counted.undecided]),
        )
        assert (answer.log_factor_lower, answer.log_factor_upper) == (low, high)
        readings = [known | (unknown & (rng.random(400) < q)) for q in (0.0, 0.5, 1.0)]
        if found == "accepted":
            assert answer.log_factor_lower >= test.log_needed
            assert {test.first(bits)[1] for bits in readings} == {"accepted"}
        elif found == "rejected":
            assert answer.log_factor_upper <= -test.log_needed
            assert {test.first(bits)[1] for bits in readings} == {"rejected"}
        else:
            assert counted.runs == 400 or {test.first(bits)[1] for bits in (known, known | unknown)} == {
                "accepted",
                "rejected",
            }


class TestAnswer:
    def test_the_reverse_relation_has_the_reverse_factor_and_the_rest_of_the_probability(self) -> None:
        test, counted = BayesTest.of(0.3, (2, 3)), Tally(50, 18, (4, 3))
        above, below = answered(test, ">=", counted), answered(test, "<", counted)
        assert below.log_factor_lower == -above.log_factor_upper
        assert below.probability_lower == pytest.approx(1 - above.probability_upper)
        assert below.probability_before == pytest.approx(1 - above.probability_before)
        assert above.probability_before == pytest.approx(stats.beta(2, 3).sf(0.3))
        assert above.probability_lower == pytest.approx(stats.beta(20, 35).sf(0.3))
        assert above.probability_upper == pytest.approx(stats.beta(27, 28).sf(0.3))
        odds = [p / (1 - p) for p in (above.probability_lower, above.probability_before)]
        assert above.factor_lower == pytest.approx(odds[0] / odds[1])

    def test_it_reads_as_numbers_however_large(self) -> None:
        test = BayesTest.of(0.5)
        assert str(answered(test, ">", Tally(2, 1))) == (
            "Bayes factor 1 (19 or 1/19 decides), probability 0.5 under the prior Beta(1, 1)"
        )
        sure = answered(test, "<", Tally(10**7, 10**7))
        assert str(sure).startswith("Bayes factor 1/10^3.0103e+06 (19 or 1/19 decides), probability 0 under")
        assert (sure.factor_lower, answered(test, ">", Tally(10**7, 10**7)).factor_upper) == (0.0, math.inf)
        wide = str(answered(test, ">", Tally(9, 2, (6,))))
        assert wide.startswith("Bayes factor from 1/17.29 to 92.09 (19 ")

    def test_the_credible_interval_is_that_of_the_prior(self) -> None:
        expected = stats.beta(2.5 + 3, 4 + 7).interval(0.9)
        assert credible(3, 10, 0.9, prior=(2.5, 4)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 0.0}, "a threshold between 0 and 1, not 0"),
        ({"threshold": 1.0}, "a threshold between 0 and 1, not 1"),
        ({"threshold": math.nan}, "a threshold between 0 and 1, not nan"),
        ({"prior": (0, 1)}, "prior is a and b of Beta"),
        ({"prior": (1, -2)}, "prior is a and b of Beta"),
        ({"prior": (1, math.nan)}, "prior is a and b of Beta"),
        ({"prior": (1, math.inf)}, "prior is a and b of Beta"),
        ({"prior": (1, 2, 3)}, "prior is a and b of Beta"),
        ({"prior": 1.0}, "prior is a and b of Beta"),
        ({"prior": "ab"}, "prior is a and b of Beta"),
        ({"factor": 1.0}, "factor is a number above 1"),
        ({"factor": math.inf}, "factor is a number above 1"),
        ({"factor": math.nan}, "factor is a number above 1"),
        ({"error": 0.5}, "error is a probability between 0 and 0.5"),
        ({"error": 0.0}, "error is a probability between 0 and 0.5"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        BayesTest.of(**{"threshold": 0.5, **options})


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
