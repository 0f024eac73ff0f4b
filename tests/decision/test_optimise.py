"""`optimise`: what it claims is true where the truth is known, false claims are not made, and it resumes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import sateen as st
from sateen.core.seeds import stream_seed
from sateen.decision.claims import Claims
from sateen.decision.contest import Bet, Contest, Counts, fresh_runs, limit_runs, value_runs
from sateen.decision.refine import Running
from sateen.decision.tolerance import Tolerance
from sateen.paper.cases.models import sir
from watchers import Watcher

CERTAIN = 1e-6
CHAIN = st.Model.parse("species A = 1, B = 0\nA -> B @ mass_action(k)\nB -> 0 @ mass_action(k)")
THERE = "G[1, 1] B == 1"  # with probability k e^-k, which is largest at k = 1
RATE = st.Space(k=(0.1, 4.0))
LINE = st.Space(x=(0.0, 1.0))
DRUG = st.Model.parse("""
    species Sick = 3, Well = 0, Harm = 0
    cure: Sick -> Well @ dose * Sick
    harm: 0 -> Harm @ 0.2 * dose * dose
""")  # P(cured by 1) = (1 - e^-d)^3, P(harm by 1) = 1 - exp(-0.2 d²)
EFFECTS = {"cured": "F[0, 1] Sick == 0", "toxic": "F[0, 1] Harm > 0"}
DOSE = st.Space(dose=(0.1, 5.0))


def there(k):
    return k * np.exp(-k)


def near(best, truth):
    """Whether the value is right but for an error of five standard deviations, or more."""
    return abs(best.value - truth) <= 2.5 * 0.5 * (best.upper - best.lower)


def optimised(**options):
    asked = {"budget": 200_000, "gap": 0.05, "wrong": 0.05, "seed": 1, **options}
    return st.optimise(CHAIN, THERE, RATE, **asked)


QUICK = {"budget": 60_000, "gap": 0.1, "wrong": 0.1}  # the same steps, a third of the time


@pytest.fixture(scope="module")
def best():
    return optimised()


@pytest.fixture(scope="module")
def quick():
    return optimised(**QUICK)


class Coins:
    """A question whose runs are drawn from a known f, at no cost: the law of `observe`."""

    def __init__(self, space, probabilities):
        self.space, self.probabilities = space, probabilities

    def observe(self, points, runs, *, seed, **_):
        rng = np.random.default_rng([seed])
        trials = np.broadcast_to(runs, len(points))
        return {
            name: st.Observations.from_counts(self.space, points.theta, rng.binomial(trials, f(points.theta)), trials)
            for name, f in self.probabilities.items()
        }


class TestBestPoint:
    def test_value_and_regret_are_true(self, best):
        truth = there(best.theta["k"])
        assert near(best, truth)
        assert best.lower <= best.value <= best.upper
        assert best.upper - best.lower <= 2.2 * 0.4 * 0.05
        assert best.regret == 0.05
        grid = there(np.linspace(0.1, 4.0, 2001))
        assert np.mean(grid > truth + best.regret) <= 0.05
        assert best.holds

    def test_its_claims_say_what_was_shown(self, best):
        value, regret = best.claims
        assert value.mode == "frequentist"
        assert value.level == pytest.approx(0.975)
        assert regret.target == "regret"
        assert regret.confidence == pytest.approx(0.95)
        assert "at most 0.05 above that at the best point" in str(regret)
        assert "95 % of the parameters" in str(regret)

    def test_the_budget_is_kept_and_all_runs_are_told(self, best):
        assert best.runs <= 200_000
        assert int(best.observations.trials.sum()) < best.runs

    def test_it_tells_itself(self, best):
        assert "largest at k =" in str(best)
        assert "<table>" in best._repr_html_()
        assert "BestPoint" in repr(best)

    def test_the_posterior_knows_the_runs_of_the_value(self, best):
        prediction = best.posterior.predict({"k": [best.theta["k"]]})
        assert prediction.mean[0] == pytest.approx(best.value, abs=0.03)


class TestVariants:
    def test_the_least_of_a_negation_is_the_largest(self):
        best = st.optimise(CHAIN, ~st.stl(THERE), RATE, **QUICK, seed=1, minimise=True)
        truth = 1.0 - there(best.theta["k"])
        assert near(best, truth)
        assert best.regret == 0.1
        assert truth <= 1.0 - np.exp(-1.0) + 0.1
        assert "below that at the best point" in str(best.claims[1])
        assert str(best).startswith("least at")

    def test_a_black_box(self):
        def coin(theta, rng):
            return bool(rng.random() < 0.9 - (theta["x"] - 0.4) ** 2)

        best = st.optimise(coin, None, LINE, budget=20_000, gap=0.1, wrong=0.1, seed=2)
        truth = 0.9 - (best.theta["x"] - 0.4) ** 2
        assert near(best, truth)
        assert truth > 0.8

    def test_a_certain_optimum_needs_no_test(self):
        def sure(theta, rng):
            return bool(theta["x"] > 0.2 or rng.random() < 0.5)

        best = st.optimise(sure, None, LINE, budget=20_000, gap=0.05, wrong=0.05, seed=2)
        assert best.value == 1.0
        assert best.regret == 0.05
        assert best.claims[1].level == 1.0  # nothing exceeds 1

    def test_fixed_parameters_are_in_theta(self):
        model = st.Model.parse("species A = 1\nparameter c = 1\nA -> 0 @ c * k * A")
        best = st.optimise(
            model, "G[0, 1] A == 1", st.Space(k=(0.1, 4), c=2.0), budget=20_000, gap=0.1, wrong=0.1, seed=3
        )
        assert best.theta["c"] == 2.0
        assert best.theta["k"] < 0.3

    @pytest.mark.slow
    def test_a_mean_over_a_box(self):
        """A draw may fail to show what is claimed, so one of two must have shown it."""
        found = [optimised(**QUICK, within={"k": 0.3}, seed=seed) for seed in (1, 2)]
        for best in found:
            inside = there(np.linspace(best.theta["k"] - 0.3, best.theta["k"] + 0.3, 2001))
            assert 0.4 <= best.theta["k"] <= 3.7
            assert near(best, inside.mean())
            assert best.regret in (None, 0.1)
        (claimed, *_) = [best for best in found if best.regret is not None]
        assert "mean over the box" in str(claimed.claims[1])

    def test_the_least_in_a_box(self):
        best = optimised(**{**QUICK, "wrong": 0.05}, within={"k": 0.5}, worst=True)
        inside = there(np.linspace(best.theta["k"] - 0.5, best.theta["k"] + 0.5, 2001))
        assert best.lower > 0.0
        assert np.mean(inside < best.lower) <= 0.05
        assert inside.min() <= best.upper
        assert best.claims[0].target == "region"
        assert "from the box" in str(best.claims[0])

    def test_every_parameter_by_cells(self):
        best = optimised(by="cells")
        (claim,) = [each for each in best.claims if each.target == "regret"]
        assert claim.mode == "sure"
        truth = there(best.theta["k"])
        assert np.exp(-1.0) <= truth + best.regret + 1e-12
        assert best.regret <= 0.1
        assert best.claims[0].level == pytest.approx(0.95)


class TestConstraints:
    @pytest.mark.slow
    def test_the_best_dose_is_safe_and_shown_to_be(self):
        best = st.optimise(
            DRUG, EFFECTS, DOSE, subject_to={"toxic": ("<=", 0.3)}, budget=400_000, gap=0.05, wrong=0.05, seed=4
        )
        dose = best.theta["dose"]
        toxic = best.constraints["toxic"]
        most = np.sqrt(-np.log(0.7) / 0.2)  # the largest dose that is allowed
        assert dose <= most
        assert toxic.holds
        assert 1.0 - np.exp(-0.2 * dose**2) <= toxic.bound <= 0.3
        assert near(best, (1.0 - np.exp(-dose)) ** 3)
        assert best.regret == 0.05
        allowed = np.linspace(0.1, 5.0, 4001)
        better = (allowed <= most) & ((1.0 - np.exp(-allowed)) ** 3 > (1.0 - np.exp(-dose)) ** 3 + 0.05)
        assert better.mean() <= 0.05
        assert len(best.claims) == 3
        assert "toxic" in str(best)

    def test_what_nothing_satisfies_is_told(self):
        limits, space = {"toxic": ("<=", 0.05)}, st.Space(dose=(2.0, 5.0))
        with pytest.raises(st.InputError, match="no parameter is likely to satisfy"):
            st.optimise(DRUG, EFFECTS, space, subject_to=limits, budget=20_000, gap=0.1, wrong=0.1, seed=4)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"formula": EFFECTS}, "which formula is optimised"),
            ({"formula": EFFECTS, "subject_to": {"toxik": ("<=", 0.1)}}, "toxik"),
            ({"formula": EFFECTS, "subject_to": {"toxic": ("<", 0.1)}}, "a comparison"),
            ({"formula": EFFECTS, "subject_to": {"toxic": ("<=", 1.5)}}, "between 0 and 1"),
            ({"formula": EFFECTS, "subject_to": {"toxic": ("<=", 0.1)}, "objective": "toxic"}, "has no limit"),
            ({"formula": EFFECTS["cured"], "subject_to": {"toxic": ("<=", 0.1)}}, "give a dict"),
            ({"formula": 3}, "Formula or text"),
            ({"by": "guess"}, "'fresh' or 'cells'"),
            ({"gap": 0.0}, "gap is a number between 0 and 1"),
            ({"wrong": 2}, "wrong is a number between 0 and 1"),
            ({"within": {"nose": 1}}, "does not vary"),
            ({"worst": True}, "give within too"),
            ({"space": st.Space(dose=1.0)}, "some parameter varies"),
            ({"seed": -1}, "seed is a whole number"),
            ({"by": "cells", "within": {"dose": 0.1}}, "bounds one property"),
        ],
    )
    def test_bad_questions_are_refused_before_a_run(self, options, words):
        asked = {"formula": EFFECTS["cured"], "space": DOSE, "budget": 100_000, "seed": 1, **options}
        formula, space = asked.pop("formula"), asked.pop("space")
        with pytest.raises(st.InputError, match=words):
            st.optimise(DRUG, formula, space, **asked)

    def test_a_budget_that_cannot_do_says_the_least(self):
        with pytest.raises(st.InputError, match=r"at least [\d,]+ for these claims") as refused:
            optimised(budget=500)
        assert "suffice in most cases" in str(refused.value)
        with pytest.raises(st.InputError, match="budget"):
            optimised(budget="many")

    def test_a_budget_that_is_too_small_for_the_regret_claims_the_value_only(self):
        best = optimised(budget=2_000)
        assert best.regret is None
        assert not best.holds
        assert "nothing is claimed" in best.reason
        assert near(best, there(best.theta["k"]))
        assert best.runs <= 2_000


class TestStatistics:
    @pytest.mark.parametrize("probability", [0.0, 0.003, 0.35, 0.5, 0.98])
    def test_intervals_of_the_value_miss_no_more_than_they_may(self, probability):
        repetitions, miss = 2000, 0.05
        space = st.Space(x=(0.0, 1.0))
        question = Coins(space, {"": lambda theta: np.full(len(theta), probability)})
        tolerance = Tolerance.of(space, None)
        misses = 0
        for seed in range(repetitions):
            seen = fresh_runs(question, tolerance, np.zeros(1), 400, seed, Running())
            low, high = Counts.of(seen[""]).interval(miss)
            misses += not low <= probability <= high
        assert binom.sf(misses - 1, repetitions, miss) > CERTAIN

    def test_runs_in_a_box_have_the_mean_over_the_box(self):
        question = Coins(LINE, {"": lambda theta: theta[:, 0] ** 2})
        tolerance = Tolerance.of(LINE, {"x": 0.3})
        seen = fresh_runs(question, tolerance, np.array([0.2]), 200_000, 5, Running())[""]
        mean = (0.9**3 - 0.3**3) / 3 / 0.6
        assert abs(seen.satisfied.sum() - 200_000 * mean) < 5.0 * np.sqrt(200_000 * mean * (1 - mean))

    def test_undecided_runs_count_against_both_ends(self):
        counts = Counts(50, 10, 100)
        low, high = counts.interval(0.05)
        assert low == Counts(50, 0, 100).interval(0.05)[0]
        assert high == Counts(60, 0, 100).interval(0.05)[1]
        assert counts.bound(("<=", 0.5), 0.05) > Counts(50, 0, 100).bound(("<=", 0.5), 0.05)
        assert counts.bound((">=", 0.5), 0.05) == Counts(50, 0, 100).bound((">=", 0.5), 0.05)

    @pytest.mark.parametrize("planted", [0.06, 0.1])
    def test_a_regret_that_is_false_is_hardly_ever_claimed(self, planted):
        """The posterior believes f = 0.3 everywhere; on the planted share it is above the bar."""
        wrong, error, repetitions = 0.05, 0.05, 400
        theta = np.linspace(0.0, 1.0, 21)[:, None]
        posterior = st.EPGP().fit(st.Observations.from_counts(LINE, theta, np.full(21, 300), 1000), seed=1)
        question = Coins(LINE, {"": lambda theta: np.where(theta[:, 0] < planted, 0.5, 0.3)})

        def draw(count, rng, _):
            return 2.0 * rng.random((count, 1)) - 1.0

        contest = Contest(question, {"": posterior}, Tolerance.of(LINE, None), (Bet("", 0.45, True),), draw)
        plan = min(
            (plan for plan, _ in contest.plans(wrong, error, 1) if plan.chance > 0.9), key=lambda each: each.runs
        )
        claimed = sum(contest.play(plan, wrong, 10**6, seed, Running()).passed for seed in range(repetitions))
        assert binom.sf(claimed - 1, repetitions, error) > CERTAIN

    def test_a_true_regret_is_claimed(self):
        theta = np.linspace(0.0, 1.0, 21)[:, None]
        posterior = st.EPGP().fit(st.Observations.from_counts(LINE, theta, np.full(21, 300), 1000), seed=1)
        question = Coins(LINE, {"": lambda theta: np.full(len(theta), 0.3)})
        contest = Contest(
            question,
            {"": posterior},
            Tolerance.of(LINE, None),
            (Bet("", 0.45, True),),
            lambda n, r, _: 2 * r.random((n, 1)) - 1,
        )
        assert contest.test(0.05, 0.05, 10**6, 1, Running()).passed
        poor = contest.test(0.05, 0.05, 50, 1, Running())
        assert not poor.passed
        assert poor.runs == 0
        assert poor.least > 50

    def test_a_bad_point_gets_no_claim_of_regret(self, monkeypatch):
        """The design is moved to where f is small: the tests at fresh designs must find what is better."""
        asked = Claims.__init__

        def worse(self, *arguments):
            asked(self, *arguments)
            self.design = np.array([0.95])

        monkeypatch.setattr(Claims, "__init__", worse)
        best = optimised(**QUICK)
        assert best.theta["k"] > 3.8
        assert best.regret is None
        assert [claim.target for claim in best.claims] == ["probability"]

    def test_forecasts_of_runs(self):
        runs = value_runs(0.3, 0.01, 0.05)
        low, high = Counts(round(0.3 * runs), 0, runs).interval(0.05)
        assert high - low <= 0.02 < 1.05 * (high - low)
        assert limit_runs(0.2, ("<=", 0.1), 0.05, 777) == 777
        assert limit_runs(0.3, (">=", 0.25), 0.05, 10**6) == pytest.approx(
            limit_runs(0.7, ("<=", 0.75), 0.05, 10**6), abs=2
        )


class TestResuming:
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
    def test_what_was_stopped_goes_on_to_the_same_bits(self, tmp_path, quick, share):
        """Stopped after a share of all runs: at the start, in the search, and in the tests of what is claimed."""
        store = tmp_path / "runs.db"
        with pytest.raises(st.Interrupted):
            optimised(**QUICK, store=store, progress=Watcher(patience=share * quick.runs))
        again = optimised(**QUICK, store=store)
        assert again.theta == quick.theta
        assert (again.value, again.lower, again.upper, again.regret) == (
            quick.value,
            quick.lower,
            quick.upper,
            quick.regret,
        )
        assert (again.runs, again.claims, again.rounds) == (quick.runs, quick.claims, quick.rounds)
        assert again.observations == quick.observations

    def test_observations_to_begin_with(self):
        start = st.observe(CHAIN, st.stl(THERE), RATE.sobol(64, seed=9), 20, seed=10)
        best = optimised(**QUICK, start=start)
        assert best.regret == 0.1
        assert best.runs <= 60_000 + 64 * 20
        seed = stream_seed(stream_seed(1, "value"), "runs")
        start = st.observe(CHAIN, st.stl(THERE), RATE.sobol(64, seed=9), 20, seed=seed)
        with pytest.raises(st.InputError, match="seed"):
            optimised(**QUICK, start=start)


@pytest.mark.slow
def test_sir_end_to_end_against_exact():
    """Value and regret of the paper's SIR model, with exact as the judge."""
    model, formula = sir.model(), sir.formula("as-stated")
    space = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
    best = st.optimise(model, formula, space, budget=200_000, gap=0.05, wrong=0.05, seed=1)
    row = [[best.theta[name] for name in space.names]]
    truth = float(st.exact(model, formula, space.points(np.array(row)))[0])
    assert near(best, truth)
    f = st.exact(model, formula, space.sobol(128, seed=8))
    if best.regret is not None:
        assert np.mean(f > truth + best.regret) <= 0.05 + 0.02
    assert truth > 0.3549 - 0.05  # the largest value on a fine grid is 0.3549
