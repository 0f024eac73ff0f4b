"""Intervals and stopping rules: what they promise is summed up exactly, over all outcomes, where that can be done."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as hs
from scipy import stats

from sateen.core.errors import InputError
from sateen.sampling.sequential import (
    SequentialTest,
    Tally,
    anytime,
    clopper_pearson,
    credible,
    until_answered,
    until_width,
)

FloatArray = npt.NDArray[np.float64]
BitArray = npt.NDArray[np.bool_]
INTERVALS = (clopper_pearson, credible, anytime)
UNLIKELY = 1e-6


@hs.composite
def counts(draw: hs.DrawFn, most: int = 200) -> tuple[int, int, int]:
    """Satisfied, undecided and all runs."""
    runs = draw(hs.integers(1, most))
    satisfied = draw(hs.integers(0, runs))
    return satisfied, draw(hs.integers(0, runs - satisfied)), runs


class TestIntervals:
    @pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
    def test_clopper_pearson_covers_every_probability_at_its_level(self, level: float) -> None:
        for runs in range(1, 61):
            limits = np.array([clopper_pearson(satisfied, runs, level) for satisfied in range(runs + 1)])
            # Just outside the limits the coverage is least.
            p = np.concatenate([np.linspace(0, 1, 101), limits[1:, 0] - 1e-9, limits[:-1, 1] + 1e-9])
            inside = (limits[:, :1] <= p) & (p <= limits[:, 1:])
            chances = stats.binom.pmf(np.arange(runs + 1)[:, None], runs, p)
            assert (chances * inside).sum(axis=0).min() >= level - 1e-6

    @given(counts(), hs.floats(0.5, 0.9999))
    def test_clopper_pearson_is_the_interval_of_the_exact_binomial_test(
        self, drawn: tuple[int, int, int], level: float
    ) -> None:
        satisfied, _, runs = drawn
        expected = stats.binomtest(satisfied, runs).proportion_ci(level, method="exact")
        assert clopper_pearson(satisfied, runs, level) == pytest.approx((expected.low, expected.high), abs=1e-9)

    @given(counts(), hs.floats(0.5, 0.9999))
    def test_the_credible_interval_is_the_centre_of_a_beta_distribution(
        self, drawn: tuple[int, int, int], level: float
    ) -> None:
        satisfied, _, runs = drawn
        expected = stats.beta(1 + satisfied, 1 + runs - satisfied).interval(level)
        assert credible(satisfied, runs, level) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("interval", INTERVALS)
    @given(drawn=counts(), level=hs.floats(0.5, 0.9999))
    def test_undecided_runs_widen_it_to_hold_the_interval_of_every_hidden_count(
        self, interval: Callable[..., tuple[float, float]], drawn: tuple[int, int, int], level: float
    ) -> None:
        satisfied, undecided, runs = drawn
        lower, upper = interval(satisfied, runs, level, undecided)
        for hidden in {satisfied, satisfied + undecided // 2, satisfied + undecided}:
            low, high = interval(hidden, runs, level)
            assert lower <= low + 1e-12
            assert high <= upper + 1e-12

    @pytest.mark.parametrize("interval", [clopper_pearson, anytime])
    def test_without_runs_everything_is_possible(self, interval: Callable[..., tuple[float, float]]) -> None:
        assert interval(0, 0, 0.95) == (0.0, 1.0)

    @pytest.mark.parametrize("level", [0.5, 0.9])
    @pytest.mark.parametrize("p", [0.003, 0.1, 0.37, 0.5, 0.94])
    def test_anytime_intervals_cover_together_at_every_number_of_runs(self, p: float, level: float) -> None:
        weights, missed = np.ones(1), 0.0  # of the counts so far, while all intervals have covered
        for runs in range(1, 121):
            weights = np.append(weights * (1 - p), 0.0) + np.append(0.0, weights * p)
            limits = [anytime(satisfied, runs, level) for satisfied in range(runs + 1)]
            outside = np.array([not lower <= p <= upper for lower, upper in limits])
            missed += weights[outside].sum()
            weights[outside] = 0.0
        assert 0.0 < missed <= 1 - level

    @given(counts(), hs.floats(0.5, 0.99))
    def test_an_anytime_interval_is_wider_than_one_for_a_fixed_number_of_runs(
        self, drawn: tuple[int, int, int], level: float
    ) -> None:
        satisfied, _, runs = drawn
        lower, upper = anytime(satisfied, runs, level)
        belief = credible(satisfied, runs, level)
        assert lower <= satisfied / runs <= upper
        assert upper - lower >= belief[1] - belief[0]


class _Asked(Exception):
    """The next draw, whose outcome is not chosen yet."""


class TestWidth:
    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def each_interval_once() -> Iterator[None]:
        """The same numbers come up again and again: their interval is computed once, which changes nothing else."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sateen.sampling.sequential.clopper_pearson", cache(clopper_pearson))
            yield

    def test_looking_until_the_width_suits_would_cover_too_seldom(self) -> None:
        p, runs, covered, weights = 0.288, 0, 0.0, np.ones(1)
        while weights.any():
            runs, weights = runs + 1, np.append(weights * (1 - p), 0.0) + np.append(0.0, weights * p)
            limits = np.array([clopper_pearson(satisfied, runs, 0.95) for satisfied in range(runs + 1)])
            stops = np.ptp(limits, axis=1) <= 0.3
            covered += weights[stops & (limits[:, 0] <= p) & (p <= limits[:, 1])].sum()
            weights[stops] = 0.0
        assert covered < 0.94

    @pytest.mark.parametrize(("level", "width"), [(0.6, 0.3), (0.8, 0.3), (0.95, 0.45)])
    def test_it_covers_every_probability_and_reaches_the_width_by_a_sum_over_all_outcomes(
        self, level: float, width: float
    ) -> None:
        """Every sequence of outcomes is followed, with its chance under each of many probabilities."""
        p = np.array([0.001, 0.01, 0.03, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5, 0.65, 0.8, 0.9, 0.98])
        missed, total, stack = np.zeros(len(p)), np.zeros(len(p)), [((), np.ones(len(p)))]
        while stack:
            outcomes, chance = stack.pop()
            if chance.max() < 1e-7:
                missed, total = missed + chance, total + chance  # too rare to follow: counted as wrong
                continue
            left = list(outcomes)

            def draw(runs: int, left: list[int] = left) -> Tally:
                if not left:
                    raise _Asked(runs)
                return Tally(runs, left.pop(0))

            try:
                _, (lower, upper), _ = until_width(draw, width, level, 10**6)
            except _Asked as asked:
                (runs,) = asked.args
                branches = stats.binom.pmf(np.arange(runs + 1)[:, None], runs, p)
                stack += [((*outcomes, count), chance * branches[count]) for count in range(runs + 1)]
                continue
            assert upper - lower <= width
            missed += chance * ~((lower <= p) & (p <= upper))
            total += chance
        assert total == pytest.approx(np.ones(len(p)))
        assert missed.max() <= 1 - level

    @pytest.mark.parametrize("p", [0.0, 0.004, 0.07, 0.5, 0.99])
    def test_it_covers_at_a_finer_width_too(self, p: float) -> None:
        repeats, level, rng = 400, 0.8, np.random.default_rng(1)
        missed = 0
        for _ in range(repeats):
            _, (lower, upper), _ = until_width(lambda n: Tally(n, int(rng.binomial(n, p))), 0.02, level, 10**6)
            assert upper - lower <= 0.02
            missed += not lower <= p <= upper
        assert missed <= stats.binom.isf(UNLIKELY, repeats, 1 - level)

    def test_it_makes_little_more_runs_than_one_who_knew_the_probability(self) -> None:
        rng = np.random.default_rng(1)
        for p, factor in ((0.5, 1.25), (0.3, 1.4), (0.07, 2.0)):
            known = next(n for n in range(100, 10**6, 10) if np.ptp(clopper_pearson(n * p, n, 0.95)) <= 0.02)
            made = [
                until_width(lambda n, p=p: Tally(n, int(rng.binomial(n, p))), 0.02, 0.95, 10**7)[2].runs
                for _ in range(50)
            ]
            assert np.mean(made) <= factor * known

    @pytest.mark.parametrize("runs", [*range(1, 41), 100, 101, 1000, 38_417])
    def test_half_the_runs_satisfied_is_the_widest_outcome(self, runs: int) -> None:
        widest = np.ptp(clopper_pearson(runs / 2, runs, 0.95))
        near = range(runs + 1) if runs <= 1000 else range(runs // 2 - 50, runs // 2 + 50)
        assert all(np.ptp(clopper_pearson(count, runs, 0.95)) <= widest + 1e-12 for count in near)

    @pytest.mark.parametrize("max_runs", [1, 9, 10, 50, 300])
    def test_it_makes_no_more_runs_than_allowed_and_counts_only_fresh_ones(self, max_runs: int) -> None:
        drawn: list[Tally] = []

        def draw(runs: int) -> Tally:
            drawn.append(Tally(runs, runs // 2))
            return drawn[-1]

        counted, limits, seen = until_width(draw, 0.01, 0.95, max_runs)
        assert seen.runs == sum(each.runs for each in drawn) <= max_runs
        assert counted is drawn[-1]
        assert counted.runs >= 0.9 * max_runs
        assert limits == clopper_pearson(counted.satisfied, counted.runs, 1 - 0.96 * (1 - 0.95))

    def test_few_undecided_runs_are_made_up_for_by_more_runs(self) -> None:
        counted, limits, _ = until_width(lambda n: Tally(n, n // 10, (n // 100,)), 0.03, 0.95, 10**6)
        sure, _, _ = until_width(lambda n: Tally(n, n // 10), 0.03, 0.95, 10**6)
        assert np.ptp(limits) <= 0.03
        assert counted.runs > 1.5 * sure.runs

    def test_many_undecided_runs_end_the_search_as_soon_as_chance_is_below_the_width(self) -> None:
        counted, limits, seen = until_width(lambda n: Tally(n, n // 10, (n // 5, 0)), 0.02, 0.95, 10**6)
        assert 0.2 < np.ptp(limits) <= 0.22
        assert seen.runs < 1.5 * counted.runs
        assert counted.runs < 20_000


class TestSequentialTest:
    @pytest.mark.parametrize(
        ("threshold", "indifference", "error"), [(0.3, 0.05, 0.05), (0.05, 0.04, 0.2), (0.9, 0.05, 0.01)]
    )
    def test_it_errs_as_seldom_as_it_says_by_a_sum_over_all_outcomes(
        self, threshold: float, indifference: float, error: float
    ) -> None:
        test = SequentialTest(threshold, indifference, error)
        bound = -math.log(error)
        for p, wrong in ((threshold - indifference, 1), (threshold + indifference, -1)):
            weights, mistaken = np.ones(1), 0.0
            for runs in range(1, 4000):
                weights = np.append(weights * (1 - p), 0.0) + np.append(0.0, weights * p)
                evidence = test.evidence(np.arange(runs + 1), runs)
                mistaken += weights[wrong * evidence >= bound].sum()
                weights[np.abs(evidence) >= bound] = 0.0
            assert 0.3 * error < mistaken <= error
            assert weights.sum() < 1e-3

    @pytest.mark.parametrize(
        ("p", "right"), [(0.25, "rejected"), (0.35, "accepted"), (0.1, "rejected"), (0.8, "accepted")]
    )
    def test_it_errs_as_seldom_as_it_says_on_streams_of_bits(self, p: float, right: str) -> None:
        repeats, rng = 2000, np.random.default_rng(1)
        found = [until_answered(stream(rng, p), SequentialTest(0.3, 0.05, 0.05), 10**6)[1] for _ in range(repeats)]
        assert "undecided" not in found
        assert sum(decision != right for decision in found) <= stats.binom.isf(UNLIKELY, repeats, 0.05)

    @given(hs.integers(0, 2**32), hs.floats(0.05, 0.95))
    def test_the_answer_comes_at_the_very_run_that_decides_it_however_runs_are_batched(
        self, seed: int, p: float
    ) -> None:
        test = SequentialTest(0.4, 0.1, 0.1)
        bits = np.random.default_rng(seed).random(3000) < p
        after, decision = test.first(bits)
        counted, found = until_answered(prescribed(bits, np.zeros((0, 3000), bool)), test, len(bits))
        assert (counted.runs, counted.satisfied, found) == (after, bits[:after].sum(), decision or "undecided")
        evidence = test.evidence(np.cumsum(bits), np.arange(1, len(bits) + 1))
        assert (np.abs(evidence[: after - 1]) < math.log(10)).all()
        assert decision is None or abs(evidence[after - 1]) >= math.log(10)

    @given(hs.integers(0, 2**32), hs.floats(0.0, 1.0), hs.floats(0.0, 0.5))
    def test_an_answer_is_the_one_that_every_reading_of_the_undecided_runs_gives(
        self, seed: int, p: float, share: float
    ) -> None:
        test = SequentialTest(0.5, 0.2, 0.1)
        rng = np.random.default_rng(seed)
        unknown = rng.random(400) < share
        known = (rng.random(400) < p) & ~unknown
        counted, found = until_answered(prescribed(known, unknown[None] & np.array([[True], [False]])), test, 400)
        readings = [known | (unknown & (rng.random(400) < q)) for q in (0.0, 0.3, 0.7, 1.0)]
        answers = {decision for _, decision in map(test.first, readings)}
        if found == "undecided":
            assert len({test.first(bits)[1] for bits in (known, known | unknown)}) == 2 or answers == {None}
        else:
            assert answers == {found}
            assert counted.runs == max(test.first(bits)[0] for bits in (known, known | unknown))
        assert counted.reasons == (unknown[: counted.runs].sum(), 0)

    def test_it_ends_when_both_extreme_readings_have_answered_differently(self) -> None:
        bits, unknown = np.zeros(10**4, bool), np.ones((1, 10**4), bool)
        counted, found = until_answered(prescribed(bits, unknown), SequentialTest(0.5, 0.1, 0.05), 10**4)
        assert found == "undecided"
        assert counted.runs < 50

    def test_it_ends_undecided_after_the_most_runs_allowed(self) -> None:
        bits = np.arange(1000) % 2 == 0
        counted, found = until_answered(
            prescribed(bits, np.zeros((0, 1000), bool)), SequentialTest(0.5, 0.1, 0.05), 777
        )
        assert (counted, found) == (Tally(777, 389), "undecided")

    @pytest.mark.parametrize(
        ("threshold", "indifference"), [(0.005, 0.01), (0.995, 0.01), (0.5, 0), (0.5, -0.1), (0.5, math.nan)]
    )
    def test_the_indifferent_probabilities_lie_between_0_and_1(self, threshold: float, indifference: float) -> None:
        with pytest.raises(InputError, match="a smaller indifference"):
            SequentialTest(threshold, indifference, 0.05)

    @pytest.mark.parametrize("error", [0.0, 0.5, 1.0, math.nan])
    def test_an_error_is_less_than_a_half(self, error: float) -> None:
        with pytest.raises(InputError, match=r"between 0 and 0\.5"):
            SequentialTest(0.5, 0.1, error)


def test_tallies_add_up_reason_by_reason() -> None:
    assert Tally(10, 3, (1, 0)) + Tally(5, 2, (0, 2)) == Tally(15, 5, (1, 2))
    assert (Tally() + Tally(10, 3, (1, 4))).undecided == 5


def stream(rng: np.random.Generator, p: float) -> Callable[[int], tuple[BitArray, BitArray]]:
    """Independent runs that satisfy with probability p, and are all decided."""
    return lambda runs: (rng.random(runs) < p, np.zeros((0, runs), bool))


def prescribed(bits: BitArray, unknown: BitArray) -> Callable[[int], tuple[BitArray, BitArray]]:
    """Runs whose outcomes are given."""
    made = 0

    def draw(runs: int) -> tuple[BitArray, BitArray]:
        nonlocal made
        made += runs
        return bits[made - runs : made], unknown[:, made - runs : made]

    return draw
