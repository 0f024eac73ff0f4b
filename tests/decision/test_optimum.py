"""The search for the best point: it finds optima that are known, robust and feasible ones too, and mirrors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sateen as st
from sateen.core.seeds import stream_seed
from sateen.decision.optimum import OptimumStrategy, root
from sateen.decision.tolerance import Tolerance

LINE = st.Space(x=(0.0, 1.0))
SQUARE = st.Space(x=(0.0, 1.0), y=st.Range(0.01, 1.0, scale="log"))


def _peak(theta: np.ndarray) -> np.ndarray:
    """The largest value, 0.8, at x = 0.3, y = 0.1."""
    x, y = theta[:, 0], np.log10(theta[:, 1]) / 2.0 + 1.0
    return 0.1 + 0.7 * np.exp(-6.0 * ((x - 0.3) ** 2 + (y - 0.5) ** 2))


def _two_peaks(x: np.ndarray) -> np.ndarray:
    """A high and narrow peak at 0.2, and a broad one at 0.7."""
    return 0.05 + 0.85 * np.exp(-(((x - 0.2) / 0.05) ** 2)) + 0.6 * np.exp(-(((x - 0.7) / 0.25) ** 2))


def _seen(space: st.Space, f: np.ndarray, theta: np.ndarray, runs: int = 2000) -> st.Observations:
    """Counts that are as the probabilities say, without noise."""
    return st.Observations.from_counts(space, theta, np.round(runs * f), runs)


def _posterior(space: st.Space, f: np.ndarray, theta: np.ndarray, runs: int = 2000) -> st.Posterior:
    return st.EPGP().fit(_seen(space, f, theta, runs), seed=1)


@pytest.fixture(scope="module")
def peak() -> st.Posterior:
    theta = SQUARE.sobol(64, seed=3).theta
    return _posterior(SQUARE, _peak(theta), theta)


@pytest.fixture(scope="module")
def two_peaks() -> st.Posterior:
    theta = np.linspace(0.0, 1.0, 81)[:, None]
    return _posterior(LINE, _two_peaks(theta[:, 0]), theta)


class TestBest:
    def test_the_best_point_is_where_the_mean_is_largest_also_between_candidates(self, peak):
        theta, mean = OptimumStrategy(st.Optimum(), SQUARE).best({"": peak}, seed=1)
        grid = SQUARE.grid(101)
        assert SQUARE.contains(theta[None]).all()
        assert mean >= peak.predict(grid).mean.max() - 1e-3
        assert np.allclose(theta, [0.3, 0.1], rtol=0.25)

    def test_the_seed_moves_it_hardly(self, peak):
        strategy = OptimumStrategy(st.Optimum(), SQUARE)
        means = [strategy.best({"": peak}, seed=seed)[1] for seed in (1, 2, 3)]
        assert np.ptp(means) < 1e-3

    def test_at_a_corner_it_does_not_leave_the_space(self):
        theta = SQUARE.sobol(64, seed=3).theta
        posterior = _posterior(SQUARE, 0.1 + 0.7 * theta[:, 0] * theta[:, 1], theta)
        best, _ = OptimumStrategy(st.Optimum(), SQUARE).best({"": posterior}, seed=1)
        assert SQUARE.contains(best[None]).all()
        assert (best > 0.97).all()

    def test_the_least_of_f_is_the_largest_of_one_minus_f(self):
        theta = SQUARE.sobol(48, seed=3).theta
        f = 0.9 * _peak(theta)
        up = OptimumStrategy(st.Optimum(), SQUARE)
        down = OptimumStrategy(st.Optimum(minimise=True), SQUARE)
        plain, mirrored = _posterior(SQUARE, f, theta, 100), _posterior(SQUARE, 1.0 - f, theta, 100)
        (high, value), (low, other) = up.best({"": plain}, seed=1), down.best({"": mirrored}, seed=1)
        assert np.allclose(high, low, rtol=1e-2)
        assert value == pytest.approx(1.0 - other, abs=1e-3)
        first, second = up.figure({"": plain}, seed=1), down.figure({"": mirrored}, seed=1)
        assert first == pytest.approx(second, rel=0.2)  # normal draws are mirrored only in law


class TestFigure:
    def test_the_expected_regret_falls_with_the_runs(self):
        theta = SQUARE.sobol(64, seed=3).theta
        strategy = OptimumStrategy(st.Optimum(), SQUARE)
        figures = [
            strategy.figure({"": _posterior(SQUARE, _peak(theta), theta, runs)}, seed=1) for runs in (20, 200, 20_000)
        ]
        assert figures == sorted(figures, reverse=True)
        assert 0.0 <= figures[-1] < 0.005

    def test_a_fixed_point_has_no_regret(self):
        space = st.Space(x=0.5)
        seen = st.Observations.from_counts(space, np.zeros((1, 0)), [30], 100)
        posterior = st.EPGP().fit(seen, seed=1)
        strategy = OptimumStrategy(st.Optimum(), space)
        assert strategy.figure({"": posterior}, seed=1) == 0.0
        theta, runs = strategy.choose({"": posterior}, 100, seed=1)
        assert theta.shape == (1, 0)
        assert 0 < runs.sum() <= 100


class TestChoose:
    def test_runs_go_to_what_may_be_best_and_none_are_left_over(self, peak):
        strategy = OptimumStrategy(st.Optimum(), SQUARE)
        theta, runs = strategy.choose({"": peak}, 5000, seed=1)
        assert 4700 <= runs.sum() <= 5000
        assert (runs > 0).all()
        assert np.average(_peak(theta), weights=runs) > 0.7

    def test_the_same_seed_gives_the_same_round(self, peak):
        strategy = OptimumStrategy(st.Optimum(), SQUARE)
        first, second = (strategy.choose({"": peak}, 500, seed=7) for _ in range(2))
        assert np.array_equal(first[0], second[0])
        assert np.array_equal(first[1], second[1])

    def test_dear_points_get_less(self, peak):
        def costs(theta: np.ndarray) -> np.ndarray:
            return np.where(theta[:, 0] > 0.3, 50.0, 1.0)

        shares = []
        for each in (None, costs):
            theta, runs = OptimumStrategy(st.Optimum(), SQUARE, costs=each).choose({"": peak}, 5000, seed=1)
            shares.append(runs[theta[:, 0] > 0.3].sum() / runs.sum())
        assert shares[1] < shares[0]


class TestTolerance:
    def test_half_widths_are_absolute_on_linear_scales_and_factors_on_log_scales(self):
        tolerance = Tolerance.of(SQUARE, {"x": 0.05, "y": 0.1})
        assert np.allclose(tolerance.half, [0.1, 2 * math.log(1.1) / math.log(100)])
        box = tolerance.box(np.zeros(2))
        assert box.ranges["x"].low == pytest.approx(0.45)
        assert box.ranges["y"].high == pytest.approx(0.1 * 1.1)
        assert box.ranges["y"].low == pytest.approx(0.1 / 1.1)

    def test_boxes_of_designs_stay_in_the_space_and_draws_in_the_boxes(self):
        tolerance = Tolerance.of(SQUARE, {"x": 0.2})
        rng = np.random.default_rng(1)
        unit = tolerance.designs(2 * rng.random((500, 2)) - 1)
        assert SQUARE.contains(tolerance.around(unit)).all()
        drawn = tolerance.drawn(unit, rng)
        middle = SQUARE.from_unit(unit)
        assert (np.abs(drawn[:, 0] - middle[:, 0]) <= 0.2 + 1e-12).all()
        assert np.allclose(drawn[:, 1], middle[:, 1])

    def test_a_box_that_does_not_fit_and_a_stranger_are_refused(self):
        with pytest.raises(st.InputError, match="no such box fits"):
            Tolerance.of(LINE, {"x": 0.5})
        with pytest.raises(st.InputError, match="does not vary"):
            Tolerance.of(LINE, {"z": 0.1})

    def test_a_robust_design_prefers_the_broad_peak(self, two_peaks):
        sharp, _ = OptimumStrategy(st.Optimum(), LINE).best({"": two_peaks}, seed=1)
        assert sharp[0] == pytest.approx(0.2, abs=0.03)
        for worst in (False, True):
            goal = st.Optimum(within={"x": 0.15}, worst=worst)
            strategy = OptimumStrategy(goal, LINE)
            theta, value = strategy.best({"": two_peaks}, seed=1)
            assert theta[0] == pytest.approx(0.7, abs=0.05)
            inside = _two_peaks(np.linspace(theta[0] - 0.15, theta[0] + 0.15, 301))
            truth = inside.min() if worst else inside.mean()
            assert value == pytest.approx(truth, abs=0.03)
            assert 0.0 <= strategy.figure({"": two_peaks}, seed=1) < 0.03
            points, runs = strategy.choose({"": two_peaks}, 1000, seed=1)
            assert LINE.contains(points).all()
            assert 900 <= runs.sum() <= 1000

    def test_robust_minimisation_mirrors(self, two_peaks):
        theta = two_peaks.training.observations.theta
        mirrored = _posterior(LINE, 1.0 - _two_peaks(theta[:, 0]), theta)
        goal = st.Optimum(within={"x": 0.15}, worst=True, minimise=True)
        best, value = OptimumStrategy(goal, LINE).best({"": mirrored}, seed=1)
        assert best[0] == pytest.approx(0.7, abs=0.05)
        inside = _two_peaks(np.linspace(best[0] - 0.15, best[0] + 0.15, 301))
        assert value == pytest.approx(1.0 - inside.min(), abs=0.03)


class TestConstraints:
    def _posteriors(self, runs: int = 2000) -> dict[str, st.Posterior]:
        theta = np.linspace(0.0, 1.0, 41)[:, None]
        x = theta[:, 0]
        return {"works": _posterior(LINE, 0.1 + 0.8 * x, theta, runs), "toxic": _posterior(LINE, 0.6 * x, theta, runs)}

    def test_the_recommended_point_satisfies_them_with_a_margin(self):
        limits = {"toxic": ("<=", 0.3)}
        strategy = OptimumStrategy(st.Optimum(), LINE, objective="works", constraints=limits)
        posteriors = self._posteriors()
        theta, _ = strategy.best(posteriors, seed=1)
        assert 0.4 < theta[0] < 0.5  # toxic is 0.3 at 0.5
        assert strategy.figure(posteriors, seed=1) < 0.1

    def test_either_sense(self):
        limits = {"works": (">=", 0.5)}
        strategy = OptimumStrategy(st.Optimum(minimise=True), LINE, objective="toxic", constraints=limits)
        theta, _ = strategy.best(self._posteriors(), seed=1)
        assert 0.5 < theta[0] < 0.6

    def test_a_slack_constraint_changes_nothing(self):
        posteriors = self._posteriors()
        free = OptimumStrategy(st.Optimum(), LINE, objective="works")
        slack = OptimumStrategy(st.Optimum(), LINE, objective="works", constraints={"toxic": ("<=", 0.95)})
        assert np.array_equal(free.best(posteriors, seed=1)[0], slack.best(posteriors, seed=1)[0])
        assert free.figure(posteriors, seed=1) == slack.figure(posteriors, seed=1)

    def test_where_none_is_feasible_the_figure_says_so_and_runs_go_there(self):
        limits = {"toxic": ("<=", 0.3), "works": (">=", 0.8)}
        posteriors = {**self._posteriors(20), "third": self._posteriors()["works"]}
        strategy = OptimumStrategy(st.Optimum(), LINE, objective="third", constraints=limits)
        figure = strategy.figure(posteriors, seed=1)
        assert 1.0 < figure <= 2.0
        assert "no parameter satisfies" in strategy.words(figure)
        theta, runs = strategy.choose(posteriors, 400, seed=1)
        assert 0 < runs.sum() <= 400
        assert LINE.contains(theta).all()

    def test_runs_decide_what_is_feasible(self):
        posteriors = self._posteriors(100)
        strategy = OptimumStrategy(st.Optimum(), LINE, objective="works", constraints={"toxic": ("<=", 0.3)})
        theta, runs = strategy.choose(posteriors, 2000, seed=1)
        near = np.abs(theta[:, 0] - 0.5) < 0.2
        assert runs[near].sum() > 0.5 * runs.sum()


class TestRefine:
    def test_the_goal_is_reached_where_the_optimum_is_known(self):
        def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
            row = np.array([[theta["x"], theta["y"]]])
            return bool(rng.random() < _peak(row)[0])

        goal = st.Optimum(regret=0.02)
        done = st.refine(coin, None, SQUARE, goal=goal, budget=20_000, seed=5)
        assert done.reached
        theta, _ = OptimumStrategy(goal, SQUARE).best({"": done.posterior}, seed=stream_seed(5, "figure"))
        assert _peak(theta[None])[0] > 0.8 - 0.05

    def test_within_and_minimise_go_through(self):
        def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
            return bool(rng.random() < 1.0 - _two_peaks(np.array(theta["x"])))

        goal = st.Optimum(regret=0.05, minimise=True, within={"x": 0.15})
        done = st.refine(coin, None, LINE, goal=goal, budget=6_000, seed=5)
        theta, _ = OptimumStrategy(goal, LINE).best({"": done.posterior}, seed=1)
        assert theta[0] == pytest.approx(0.7, abs=0.12)


def test_a_covariance_of_few_draws_has_a_root_all_the_same():
    draws = np.random.default_rng(1).normal(size=(5, 40))
    covariance = np.cov(draws, rowvar=False)
    factor = root(covariance)
    assert np.allclose(factor @ factor.T, covariance, atol=1e-6 * covariance.max())
