"""Bets at fresh points: where a claim is wrong they rarely say otherwise, and all of it can be made again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.certified import DECAY, EMPTY, LINE, PLANE, RATES, Line, believed, coin, slow_coin

import sateen as st
from sateen.decision.evidence import Look, Outcome, Trial, again, bets
from sateen.decision.fresh import Asked, Frozen, attempt_error, fresh_seed, look_seed, looker, wrong_bound
from sateen.decision.planning import least_points

SURE = 1e-6  # of a statistical test


def drawn(f: Any, rng: np.random.Generator) -> Any:
    """Looks whose runs are coins with the probabilities f."""

    def look(number: int, runs: Any) -> Look:
        return Look(number, runs, rng.binomial(runs, f), np.zeros_like(runs))

    return look


def trial(p: float, guess: Any, *, alpha: float = 0.4, cap: int = 2000, allowed: int = 0, **more: Any) -> Trial:
    return Trial(p, bets(p, np.asarray(guess, float)), alpha, cap, more.pop("mirrored", False), allowed, **more)


class TestBets:
    def test_a_bet_lies_strictly_between_the_threshold_and_one_whatever_the_guess(self):
        for p in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
            q = bets(p, np.array([0.0, p, 0.5, 1.0]))
            assert ((q > p) & (q < 1)).all()

    def test_where_the_claim_is_wrong_no_run_is_expected_to_raise_the_stake(self):
        for p in (0.01, 0.3, 0.95):
            q = bets(p, np.linspace(0, 1, 50))
            f = p * np.linspace(0, 1, 21)[:, None]
            assert (f * q / p + (1 - f) * (1 - q) / (1 - p) <= 1 + 1e-12).all()

    def test_the_evidence_is_the_log_of_the_product(self):
        test = trial(0.2, [0.5, 0.9])
        product = (test.bet / 0.2) ** 3 * ((1 - test.bet) / 0.8) ** 4
        np.testing.assert_allclose(test.evidence(np.array([3, 3]), np.array([7, 7])), np.log(product))

    @pytest.mark.parametrize("alpha", [0.05, 0.3, 0.5])
    @pytest.mark.parametrize("guess", [0.12, 0.2, 0.6])
    def test_a_wrong_point_is_shown_with_probability_alpha_at_most(self, alpha: float, guess: float):
        test = trial(0.1, np.full(20_000, guess), alpha=alpha)
        shown = test.play(drawn(0.1, np.random.default_rng(1))).shown.sum()  # wrong by a hair
        assert binomtest(int(shown), 20_000, alpha, alternative="greater").pvalue > SURE

    def test_a_right_point_is_shown_nearly_always(self):
        outcome = trial(0.1, np.full(2000, 0.3)).play(drawn(0.3, np.random.default_rng(2)))
        assert outcome.flags < 20

    def test_no_point_gets_more_runs_than_the_cap(self):
        outcome = trial(0.1, np.full(50, 0.12), cap=333).play(drawn(0.1, np.random.default_rng(3)))
        assert outcome.spent.max() == 333
        assert outcome.runs == outcome.spent.sum()

    def test_the_budget_is_never_exceeded(self):
        whole = trial(0.1, np.full(50, 0.12)).play(drawn(0.1, np.random.default_rng(3))).runs
        for budget in (0, 1000, whole - 1, whole):
            test = trial(0.1, np.full(50, 0.12), budget=budget)
            assert test.play(drawn(0.1, np.random.default_rng(3))).runs <= budget

    def test_a_point_that_is_clearly_wrong_is_given_up_long_before_the_cap(self):
        outcome = trial(0.1, np.full(50, 0.3)).play(drawn(0.01, np.random.default_rng(3)))
        assert outcome.flags == 50
        assert outcome.spent.max() < 500

    def test_it_ends_when_no_more_points_are_open_than_may_be_flagged(self):
        f = np.where(np.arange(100) < 3, 0.0, 0.5)
        outcome = trial(0.1, np.full(100, 0.5), allowed=3).play(drawn(f, np.random.default_rng(4)))
        assert outcome.flags == 3
        assert outcome.spent[:3].max() < 2000  # the flagged ones did not go on to the cap


class TestUndecided:
    def test_undecided_runs_count_against_the_claim_on_both_sides(self):
        look = Look(1, np.array([10]), np.array([4]), np.array([2]))
        assert look.successes(mirrored=False).tolist() == [4]  # above: as if violated
        assert look.successes(mirrored=True).tolist() == [4]  # below: as if satisfied; only violations speak for it

    def test_a_region_that_is_right_only_if_undecided_runs_were_satisfied_is_flagged(self):
        points = LINE.points({"k": np.full(40, 0.97)})
        asked = Asked.of(slow_coin, None, 1_000_000, np.inf, None)
        test = trial(0.9, np.full(40, 0.97), cap=400)  # f = .97 if all ended; .87 are seen to
        outcome = test.play(looker(slow_coin, None, asked, points, 5, {"workers": 1}))
        assert outcome.undecided > 0
        assert outcome.flags > 20


class TestBound:
    def test_attempts_share_the_error(self):
        assert sum(attempt_error(0.95, k) for k in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)

    def test_least_points_is_the_least(self):
        for flags, wrong, error, alpha in [(0, 0.01, 0.05, 0.5), (3, 0.02, 0.01, 0.3), (30, 0.3, 0.1, 0.4)]:
            n = least_points(flags, wrong, error, alpha)
            assert wrong_bound(flags, n, error, alpha) <= wrong < wrong_bound(flags, n - 1, error, alpha)

    def test_all_flagged_claims_nothing(self):
        assert wrong_bound(10, 10, 0.05, 0.4) == 1.0

    @pytest.mark.parametrize("allowed", [0, 4])
    def test_a_region_wrong_by_a_hair_on_a_share_gets_a_bound_below_it_rarely(self, allowed: int):
        # 1.2 % of the region is wrong, by 0.0001: the bound may be below 1.2 % in a share `error` of repetitions.
        rng, wrong, error, alpha, missed = np.random.default_rng(6), 0.012, 0.05, 0.3, 0
        n, repetitions = least_points(allowed, 0.0119, error, alpha), 1000  # just enough to be tempted
        test = trial(0.1, np.full(n, 0.25), alpha=alpha, cap=1000, allowed=allowed)
        for _ in range(repetitions):
            f = np.where(rng.random(n) < wrong, 0.0999, 0.3)
            flags = test.play(drawn(f, rng)).flags
            missed += wrong_bound(flags, n, error, alpha) < wrong
        assert binomtest(missed, repetitions, error, alternative="greater").pvalue > SURE

    def test_a_right_region_passes(self):
        rng, n = np.random.default_rng(7), least_points(0, 0.01, 0.025, 0.5)
        passed = 0
        for _ in range(50):
            outcome = trial(0.1, np.full(n, 0.3), alpha=0.5, cap=3000).play(drawn(0.3, rng))
            passed += wrong_bound(outcome.flags, n, 0.025, 0.5) <= 0.01
        assert passed >= 45


class TestDraw:
    regions = st.decide(believed(Line()), above=0.5, seed=1)

    def test_points_lie_in_the_region_and_a_shorter_draw_is_the_start_of_a_longer_one(self):
        frozen = Frozen(self.regions, 3.0)
        long, short = frozen.draw(9000, 5), frozen.draw(100, 5)
        assert self.regions.decided(long, z=3.0).all()
        np.testing.assert_array_equal(long.theta[:100], short.theta)

    def test_points_are_uniform_in_the_region(self):
        theta = Frozen(self.regions, 3.0).draw(20_000, 5).theta[:, 0]
        low = self.edge()
        for share in (0.1, 0.5, 0.9):
            below = int((theta < low + share * (1.0 - low)).sum())
            assert binomtest(below, len(theta), share).pvalue > SURE

    def edge(self) -> float:
        grid = np.linspace(0.4, 0.7, 30_001)[:, None]
        return float(grid[np.argmax(self.regions.decided(LINE.points(grid), z=3.0)), 0])

    def test_a_log_scale_is_drawn_evenly_in_the_logarithm(self):
        space = st.Space(k=st.Range(0.01, 1.0, scale="log"))
        regions = st.decide(believed(Line(0.9, 0.9), space), above=0.5, seed=1)
        theta = Frozen(regions, 3.0).draw(20_000, 5).theta[:, 0]
        assert binomtest(int((theta < 0.1).sum()), len(theta), 0.5).pvalue > SURE

    def test_a_box_is_drawn_whole_and_its_volume_is_exact(self):
        box = st.Space(k=(0.25, 0.75), r=(0.5, 0.6))
        regions = st.decide(believed(Line(0.9, 0.9), PLANE), above=0.5, seed=1)
        frozen = Frozen(regions, None, box=box)
        assert box.contains(frozen.draw(1000, 1).theta).all()
        assert frozen.volume(1) == pytest.approx(0.05)

    def test_the_volume_is_that_of_the_region(self):
        assert Frozen(self.regions, 3.0).volume(1) == pytest.approx(1.0 - self.edge(), abs=1e-3)

    def test_an_empty_region_is_refused_with_what_to_do(self):
        regions = st.decide(believed(Line(0.1, 0.2)), above=0.5, seed=1)
        with pytest.raises(st.InputError, match=r"no parameter is put above 0.5(.|\n)*st.refine"):
            Frozen(regions, 3.0).draw(10, 1)

    def test_the_seed_follows_from_the_region_the_question_and_the_attempt(self):
        asked = Asked.of(coin, None, 1_000_000, np.inf, None)
        frozen, others = Frozen(self.regions, 3.0), st.decide(believed(Line(std=0.02)), above=0.5, seed=1)
        below = st.decide(believed(Line()), below=0.5, seed=1)
        seeds = [
            fresh_seed(frozen, asked, 1),
            fresh_seed(frozen, asked, 2),
            fresh_seed(Frozen(self.regions, 3.5), asked, 1),
            fresh_seed(Frozen(self.regions, 3.0, 0.1), asked, 1),
            fresh_seed(Frozen(self.regions, None, box=st.Space(k=(0.6, 1.0))), asked, 1),
            fresh_seed(Frozen(others, 3.0), asked, 1),
            fresh_seed(Frozen(below, 3.0), asked, 1),
            fresh_seed(frozen, Asked.of(slow_coin, None, 1_000_000, np.inf, None), 1),
        ]
        assert len(set(seeds)) == len(seeds)
        again_ = Frozen(st.decide(believed(Line()), above=0.5, seed=7, points=64), 3.0)
        assert fresh_seed(again_, asked, 1) == seeds[0]  # how the volumes were estimated does not matter


class TestAgain:
    def made(self) -> tuple[Trial, tuple[Look, ...]]:
        test = trial(0.1, np.full(30, 0.3))
        return test, test.play(drawn(0.3, np.random.default_rng(1))).looks

    def test_kept_looks_come_to_the_same(self):
        test, looks = self.made()
        np.testing.assert_array_equal(again(test, looks).evidence, Outcome.of(test, looks).evidence)

    def test_looks_that_the_test_does_not_ask_for_are_refused(self):
        test, looks = self.made()
        first = looks[0]
        more = Look(first.seed, first.trials + 1, first.satisfied, first.undecided)
        for altered in (looks[:-1], (*looks, first), (more, *looks[1:])):
            with pytest.raises(st.InputError):
                again(test, altered)

    @pytest.mark.parametrize(
        ("model", "formula", "space"), [(DECAY, EMPTY, RATES), (coin, None, LINE)], ids=["model", "black box"]
    )
    def test_any_part_of_a_look_can_be_made_again(self, model: Any, formula: Any, space: st.Space):
        asked = Asked.of(model, formula, 1_000_000, np.inf, None)
        look = looker(model, formula, asked, space.uniform(20, seed=1), 9, {})
        runs = np.arange(20) % 7 * 3
        whole = look(2, runs)
        assert whole.seed == look_seed(9, 2)
        for chosen in ([3], [0, 5, 19]):
            part = np.zeros_like(runs)
            part[chosen] = runs[chosen]
            np.testing.assert_array_equal(look(2, part).satisfied[chosen], whole.satisfied[chosen])


def test_clopper_pearson_is_what_the_binomial_distribution_says():
    bound = wrong_bound(3, 500, 0.05, 0.0)
    assert binom.cdf(3, 500, bound) == pytest.approx(0.05)
