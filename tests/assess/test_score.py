"""Scores: figures worked out by hand, laws that hold for any prediction, and no guess about undecided runs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as hs
from hypothesis.extra import numpy as hnp

from sateen.assess.score import Score, score
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction
from sateen.core.space import Space

Z = 1.959963984540054  # of 95 %
SPACE = Space(beta=(0, 1), k=2)


def seen(satisfied: Any, trials: Any, undecided: Any = 0) -> Observations:
    count = len(np.atleast_1d(satisfied))
    return Observations.from_counts(SPACE, {"beta": np.linspace(0, 1, count)}, satisfied, trials, undecided)


def said(observations: Observations, mean: Any, lower: Any, upper: Any, level: float = 0.95) -> Prediction:
    columns = [np.broadcast_to(column, len(observations)) for column in (mean, 0.0, lower, upper)]
    return Prediction(observations.points, *columns, level, Claim("probability", "credible", level, ""))


def certain(observations: Observations, values: Any) -> Prediction:
    """A prediction without doubt: intervals of width 0."""
    return said(observations, values, values, values)


@hs.composite
def cases(draw: hs.DrawFn) -> tuple[Prediction, Observations, np.ndarray]:
    """A prediction, observations with undecided runs and points without any, and a truth."""
    count = draw(hs.integers(1, 8))
    parts = [draw(hnp.arrays(np.int64, count, elements=hs.integers(0, 60))) for _ in range(3)]
    assume(sum(part.sum() for part in parts) > 0)
    probabilities = hnp.arrays(np.float64, count, elements=hs.floats(0, 1))
    lower, mean, upper = np.sort([draw(probabilities) for _ in range(3)], axis=0)
    observations = seen(parts[0], sum(parts), parts[1])
    return said(observations, mean, lower, upper, draw(hs.floats(0.5, 0.999))), observations, draw(probabilities)


class TestByHand:
    def test_the_error_is_the_root_of_the_mean_square(self) -> None:
        observations = seen([10, 35, 0], 50)  # frequencies .2, .7 and 0
        found = score(certain(observations, [0.23, 0.66, 0.0]), observations, truth=[0.25, 0.66, 0.12])
        assert found.rmse == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 3))
        assert found.rmse_truth == pytest.approx(math.sqrt((0.02**2 + 0.12**2) / 3))

    def test_intervals_are_met_up_to_their_ends_and_no_further(self) -> None:
        observations = seen([20], 100)
        half = Z * math.sqrt(0.2 * 0.8 / 100)  # .0784
        for gap, met in ((-1e-9, 1.0), (1e-9, 0.0)):
            above = said(observations, 0.3, 0.2 + half + gap, 0.4)
            below = said(observations, 0.1, 0.05, 0.2 - half - gap)
            assert score(above, observations).accuracy == score(below, observations).accuracy == met

    def test_wilsons_interval_is_the_one_of_the_textbook(self) -> None:
        observations = seen([4], 10)  # at 95 % it is [.16818, .68733]
        for lower, upper, met in ((0.1, 0.16817, 0), (0.1, 0.16819, 1), (0.68732, 0.9, 1), (0.68734, 0.9, 0)):
            assert score(said(observations, lower, lower, upper), observations).wilson_accuracy == met

    def test_closed_intervals_that_share_one_point_meet(self) -> None:
        observations = seen([0, 50], 50)  # the intervals of model checking are the points 0 and 1
        assert score(said(observations, [0, 1], [0, 1], [0, 1]), observations).accuracy == 1
        assert score(said(observations, [0.1, 0.9], [0, 0.9], [0.1, 1]), observations).accuracy == 1

    def test_a_bound_next_to_0_or_1_counts_as_0_or_1(self) -> None:
        observations = seen([0, 50], 50)
        near = said(observations, [0.1, 0.9], [9e-6, 0.8], [0.2, 1 - 9e-6])
        far = said(observations, [0.1, 0.9], [1.1e-5, 0.8], [0.2, 1 - 1.1e-5])
        assert (score(near, observations).accuracy, score(far, observations).accuracy) == (1, 0)
        assert score(far, observations).wilson_accuracy == 1
        assert score(near, observations).uncertainty == pytest.approx(0.2 - 9e-6)

    def test_where_no_run_or_every_run_holds_wilson_still_allows_for_doubt(self) -> None:
        observations = seen([0, 1000], 1000)
        end = Z**2 / (1000 + Z**2)  # Wilson's upper end at the frequency 0: .00383
        inside, outside = [[0.9 * end, 1 - 0.9 * end], [1.1 * end, 1 - 1.1 * end]]
        found = score(certain(observations, inside), observations)
        assert (found.accuracy, found.wilson_accuracy) == (0, 1)
        assert score(certain(observations, outside), observations).wilson_accuracy == 0

    def test_widths_are_means(self) -> None:
        observations = seen([10, 0], [40, 7])
        found = score(said(observations, 0.25, [0.1, 0.2], [0.4, 0.3]), observations)
        assert found.uncertainty == pytest.approx((0.3 + 0.1) / 2)
        assert found.smc_width == pytest.approx(2 * Z * math.sqrt(0.25 * 0.75 / 40) / 2)

    @pytest.mark.parametrize(("level", "z"), [(0.95, Z), (0.9, 1.6448536269514722), (0.99, 2.5758293035489004)])
    def test_the_level_of_the_prediction_is_that_of_the_intervals_it_is_held_against(
        self, level: float, z: float
    ) -> None:
        observations = seen([25], 100)
        found = score(said(observations, 0.3, 0.2, 0.4, level), observations)
        assert found.smc_width == pytest.approx(2 * z * math.sqrt(0.25 * 0.75 / 100), rel=1e-12)
        assert found.level == level

    def test_the_log_score_is_the_mean_log_probability_of_the_counts(self) -> None:
        observations = seen([3, 0], [10, 4])
        expected = (math.log(120 * 0.25**3 * 0.75**7) + 4 * math.log(0.9)) / 2
        assert score(certain(observations, [0.25, 0.1]), observations).log_score == pytest.approx(expected, rel=1e-13)

    def test_the_log_score_stays_finite_where_the_prediction_is_certain_and_wrong(self) -> None:
        observations = seen([3, 0], 3)
        found = score(certain(observations, [0.0, 1.0]), observations)
        assert found.log_score == pytest.approx(3 * math.log(1e-12), rel=1e-4)

    def test_coverage_takes_closed_intervals_and_slack_half_a_thousandth_more(self) -> None:
        observations = seen([1] * 5, 2)
        prediction = said(observations, 0.5, 0.25, 0.75)
        found = score(prediction, observations, truth=[0.25, 0.75, 0.2496, 0.7504, 0.7506])
        assert (found.coverage, found.coverage_slack) == (2 / 5, 4 / 5)

    def test_without_a_truth_nothing_is_said_of_it(self) -> None:
        found = score(certain(seen([1], 2), 0.5), seen([1], 2))
        assert (found.rmse_truth, found.coverage, found.coverage_slack) == (None, None, None)


class TestUndecided:
    def test_the_error_is_the_distance_from_what_the_frequency_can_be(self) -> None:
        observations = seen([10, 10, 10], 50, undecided=20)  # between .2 and .6
        found = score(certain(observations, [0.15, 0.4, 0.7]), observations)
        assert found.rmse == pytest.approx(math.sqrt((0.05**2 + 0 + 0.1**2) / 3))
        assert found.undecided == 3

    def test_the_interval_of_the_runs_reaches_over_all_that_the_frequency_can_be(self) -> None:
        observations = seen([10], 50, undecided=20)
        low, high = (p - Z * math.sqrt(p * (1 - p) / 50) * sign for p, sign in ((0.2, 1), (0.6, -1)))
        assert score(certain(observations, 0.4), observations).smc_width == pytest.approx(high - low)
        for value, met in ((low - 1e-9, 0), (low + 1e-9, 1), (high - 1e-9, 1), (high + 1e-9, 0)):
            assert score(certain(observations, value), observations).accuracy == met

    def test_nothing_decided_is_met_by_anything(self) -> None:
        observations = seen([0], 50, undecided=50)
        found = score(certain(observations, 0.3), observations)
        assert (found.rmse, found.accuracy, found.wilson_accuracy) == (0, 1, 1)
        assert found.log_score == pytest.approx(0, abs=1e-12)

    def test_millions_of_undecided_runs_are_summed_where_they_weigh(self) -> None:
        observations = seen([10], 2**30, undecided=2**29)  # the likeliest count is far inside
        assert score(certain(observations, 0.25), observations).log_score == pytest.approx(0, abs=1e-4)

    @given(case=cases())
    def test_however_the_undecided_runs_turn_out_the_score_does_not_claim_more_error(self, case: Any) -> None:
        prediction, open_, _ = case
        found = score(prediction, open_)
        for share in (0, 1):
            decided = seen(open_.satisfied + share * open_.undecided, open_.trials)
            turned = score(prediction, decided)
            assert found.rmse <= turned.rmse + 1e-12
            assert found.accuracy >= turned.accuracy
            assert found.wilson_accuracy >= turned.wilson_accuracy
            assert found.log_score >= turned.log_score - 1e-9

    @given(satisfied=hs.integers(0, 20), undecided=hs.integers(0, 6), violated=hs.integers(0, 20), mean=hs.floats(0, 1))
    def test_the_log_score_is_of_the_event_that_the_count_lies_where_it_can(
        self, satisfied: int, undecided: int, violated: int, mean: float
    ) -> None:
        trials = satisfied + undecided + violated
        assume(trials)
        ways = [
            score(certain(seen([k], trials), mean), seen([k], trials)).log_score
            for k in range(satisfied, satisfied + undecided + 1)
        ]
        observations = seen([satisfied], trials, undecided)
        together = math.log(math.fsum(math.exp(way - max(ways)) for way in ways)) + max(ways)
        found = score(certain(observations, mean), observations).log_score
        assert found == pytest.approx(together, rel=1e-9, abs=1e-9)


class TestLaws:
    @given(case=cases())
    def test_every_figure_is_in_its_range(self, case: Any) -> None:
        found = score(*case)
        assert found.rmse_truth is not None
        assert found.coverage is not None
        assert found.coverage_slack is not None
        assert 0 <= found.rmse <= 1
        assert 0 <= found.rmse_truth <= 1
        assert 0 <= found.accuracy <= 1
        assert 0 <= found.wilson_accuracy <= 1
        assert 0 <= found.coverage <= found.coverage_slack <= 1
        assert found.log_score <= 1e-9
        assert found.points + found.left_out == len(case[1])

    @given(case=cases())
    def test_the_truth_without_doubt_has_no_error_and_full_coverage(self, case: Any) -> None:
        _, observations, truth = case
        found = score(certain(observations, truth), observations, truth)
        assert (found.rmse_truth, found.coverage, found.coverage_slack, found.uncertainty) == (0, 1, 1, 0)

    @given(case=cases())
    def test_the_frequencies_themselves_are_right_by_every_measure_of_the_runs(self, case: Any) -> None:
        _, observations, _ = case
        found = score(certain(observations, observations.frequency_bounds.mean(axis=1)), observations)
        assert (found.rmse, found.accuracy, found.wilson_accuracy) == (0, 1, 1)

    @given(case=cases(), seed=hs.integers(0, 99))
    def test_the_order_of_the_points_does_not_matter(self, case: Any, seed: int) -> None:
        prediction, observations, truth = case
        order = np.random.default_rng(seed).permutation(len(truth))
        turned = asdict(score(prediction[order], observations[order], truth[order]))
        assert turned == pytest.approx(asdict(score(prediction, observations, truth)), rel=1e-12, abs=1e-15)

    @given(case=cases(), more=hs.floats(0, 0.5))
    def test_wider_intervals_meet_and_cover_no_less(self, case: Any, more: float) -> None:
        prediction, observations, truth = case
        lower, upper = np.maximum(prediction.lower - more, 0), np.minimum(prediction.upper + more, 1)
        narrow = score(prediction, observations, truth)
        wide = score(said(observations, prediction.mean, lower, upper, prediction.level), observations, truth)
        for name in ("accuracy", "wilson_accuracy", "coverage", "coverage_slack", "uncertainty"):
            assert getattr(wide, name) >= getattr(narrow, name)
        for name in ("rmse", "rmse_truth", "log_score", "smc_width"):
            assert getattr(wide, name) == getattr(narrow, name)

    @given(case=cases())
    def test_a_formula_and_its_negation_score_alike(self, case: Any) -> None:
        prediction, observations, truth = case
        other = seen(observations.violated, observations.trials, observations.undecided)
        mirrored = said(other, 1 - prediction.mean, 1 - prediction.upper, 1 - prediction.lower, prediction.level)
        one, two = score(prediction, observations, truth), score(mirrored, other, 1 - truth)
        for name in ("rmse", "rmse_truth", "uncertainty", "smc_width"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), abs=1e-9)

    @given(case=cases())
    def test_points_without_runs_count_nowhere(self, case: Any) -> None:
        prediction, observations, truth = case
        used = observations.trials > 0
        found, kept = score(prediction, observations, truth), score(prediction[used], observations[used], truth[used])
        assert {**asdict(found), "left_out": 0} == asdict(kept)
        assert found.left_out == np.count_nonzero(~used)


class TestRefused:
    def test_a_row_at_another_point_is_named(self) -> None:
        observations = seen([1, 1, 1], 2)
        moved = Prediction(SPACE.points({"beta": [0, 0.25, 1]}), *[[0.5] * 3] * 4, 0.95, _claim())
        with pytest.raises(
            InputError, match=r"^row 1 is at \(beta = 0\.25, k = 2\) in the prediction and \(beta = 0\.5, "
        ):
            score(moved, observations)

    def test_another_number_of_points_is_refused(self) -> None:
        with pytest.raises(InputError, match="the prediction has 1 point, the observations 2 points; predict at"):
            score(certain(seen([1], 2), 0.5), seen([1, 1], 2))

    @pytest.mark.parametrize("space", [Space(gamma=(0, 1), k=2), Space(beta=(0, 1), k=3), Space(beta=(0, 1))])
    def test_other_parameters_are_refused(self, space: Space) -> None:
        elsewhere = Observations.from_counts(space, {space.names[0]: [0.0]}, [1], 2)
        with pytest.raises(InputError, match=r"^the prediction is over Space\(.*\), the observations over Space\(beta"):
            score(certain(elsewhere, 0.5), seen([1], 2))

    def test_the_same_points_in_a_wider_space_are_the_same_points(self) -> None:
        observations = seen([1], 2)
        wider = Space(beta=(-1, 5), k=2).points(observations.points)
        assert score(Prediction(wider, [0.5], [0], [0.5], [0.5], 0.95, _claim()), observations).rmse == 0

    @pytest.mark.parametrize(
        ("truth", "words"),
        [
            ([0.5, 1.5], r"^the truth is 1\.5 in row 1; a probability lies between 0 and 1$"),
            ([-0.1, 0.5], r"^the truth is -0\.1 in row 0"),
            ([0.5, np.nan], r"^the truth is nan in row 1"),
            ([0.5], r"^the truth has the shape \(1,\); give \(2,\), a probability for each point$"),
            (0.5, r"^the truth has the shape \(\)"),
            ([[0.5, 0.5]], r"^the truth has the shape \(1, 2\)"),
            (["high", "low"], r"^the truth has a probability for each point: could not convert"),
            ([[0.5], [0.5, 0.1]], r"^the truth has a probability for each point"),
        ],
    )
    def test_a_truth_that_is_none_is_refused(self, truth: Any, words: str) -> None:
        observations = seen([1, 1], 2)
        with pytest.raises(InputError, match=words):
            score(certain(observations, 0.5), observations, truth)

    def test_observations_without_a_run_are_refused(self) -> None:
        for observations in (seen([0, 0], 0), Observations.from_counts(SPACE, {"beta": []}, [], [])):
            with pytest.raises(InputError, match=r"^no point has a run to compare the prediction with; observe"):
                score(certain(observations, 0.5), observations)

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
    def test_a_level_that_is_no_probability_is_refused(self, level: float) -> None:
        observations = seen([1], 2)
        with pytest.raises(InputError, match=r"a level lies between 0 and 1, such as 0\.95"):
            score(said(observations, 0.5, 0.4, 0.6, level), observations)

    def test_arguments_in_the_wrong_order_are_refused(self) -> None:
        observations = seen([1], 2)
        swapped: Any = (observations, certain(observations, 0.5))
        with pytest.raises(InputError, match="score takes a Prediction first, not Observations"):
            score(*swapped)
        with pytest.raises(InputError, match="score takes Observations second, not Prediction"):
            score(swapped[1], swapped[1])


class TestShown:
    def test_a_score_prints_as_a_table(self) -> None:
        observations = seen([10, 10, 0], [50, 50, 0], undecided=[0, 20, 0])
        shown = str(score(said(observations, 0.4, 0.3, 0.5), observations, truth=[0.4, 0.4, 0.4]))
        first, *rows = shown.splitlines()
        assert first == "2 points scored at 95 %; 1 with undecided runs; 1 point without runs left out"
        assert len({len(row) for row in rows}) == 1
        assert rows[0].split() == ["error", "against", "frequencies", "(RMSE)", "0.14142"]
        assert rows[-2].endswith("  100.0 %")

    def test_rows_about_the_truth_stand_only_where_it_is_known(self) -> None:
        observations = seen([1], 2)
        assert "truth" not in str(score(certain(observations, 0.5), observations))
        assert "truth" in str(score(certain(observations, 0.5), observations, [0.5]))

    def test_a_notebook_shows_the_same_figures(self) -> None:
        observations = seen([10], 50)
        found = score(said(observations, 0.4, 0.3, 0.5), observations)
        html = found._repr_html_()
        assert html.count("<tr>") == len(str(found).splitlines()) - 1
        assert "accuracy by Wilson&#x27;s interval" in html
        assert f"{found.rmse:.5f}" in html

    def test_a_score_cannot_be_changed_and_equal_scores_are_equal(self) -> None:
        observations = seen([10], 50)
        found, again = (score(certain(observations, 0.4), observations) for _ in range(2))
        assert isinstance(found, Score)
        assert found == again
        with pytest.raises(AttributeError):
            found.rmse = 0.0  # type: ignore[misc]


def _claim() -> Claim:
    return Claim("probability", "credible", 0.95, "")
