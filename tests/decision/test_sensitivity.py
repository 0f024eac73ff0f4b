"""Sensitivity: indices and elasticities against closed forms, and draws of whole functions against joint draws."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import sateen as st
from known_beliefs import Waves
from known_functions import LINE, PLANE, observed
from sateen.core.posterior import FullPosterior
from sateen.decision.sensitivity import KINDS

UNIT = st.Space(a=(0.0, 1.0), b=(0.0, 1.0), c=(0.0, 1.0))
LEARNERS = {
    "svi-gp": st.SVIGP(),
    "ep-gp": st.EPGP(),
    "laplace-net": st.LaplaceNet(nets=2, steps=1500),
    "svi-bnn": st.SVIBNN(steps=1500, pretraining=1000),
}


class Known:
    """Believes in f itself, or in one of several functions, each as much as the others."""

    kind = "known"

    def __init__(self, *functions: Any, space: st.Space = UNIT) -> None:
        self.functions_, self.space = functions, space

    def predict(self, points: object, *, level: float = 0.95) -> st.Prediction:
        where = self.space.points(points)
        values = np.array([f(where.theta) for f in self.functions_])
        claim = st.Claim("probability", "credible", level, "")
        return st.Prediction(where, values.mean(0), values.std(0), values.min(0), values.max(0), level, claim)

    def sample(self, points: object, n: int, *, seed: int) -> Any:
        theta = self.space.points(points).theta
        chosen = np.random.default_rng(seed).integers(len(self.functions_), size=n)
        return np.array([f(theta) for f in self.functions_])[chosen]


@cache
def learned(name: str) -> FullPosterior:
    return LEARNERS[name].fit(observed(PLANE, 150, 50, 3), seed=1)


def product(theta: Any) -> Any:
    """f = a(b + 1)/2, whose variances are known: E a² = 1/3, E (b + 1)² = 7/3."""
    return theta[:, 0] * (theta[:, 1] + 1) / 2


# Of a(b + 1): Var E[f | a] = (3/2)²/12, Var E[f | b] = (1/2)²/12, V = 7/9 - 9/16.
VARIANCE = 7 / 9 - 9 / 16
FIRST = {"a": (9 / 48) / VARIANCE, "b": (1 / 48) / VARIANCE, "c": 0.0}


class TestClosedForms:
    def test_indices_of_a_product_are_those_of_its_integrals(self) -> None:
        found = st.sensitivity(Known(product), seed=1)
        for name, right in FIRST.items():
            assert found.first[name] == pytest.approx(right, abs=0.01)
        both = 1 - sum(FIRST.values())
        assert found.total["a"] == pytest.approx(FIRST["a"] + both, abs=0.01)
        assert found.total["b"] == pytest.approx(FIRST["b"] + both, abs=0.01)

    def test_intervals_of_a_known_function_are_the_error_of_the_integrals(self) -> None:
        missed = 0
        for seed in range(40):
            found = st.sensitivity(Known(product), seed=seed, points=512)
            for name in ("a", "b"):
                assert 0 < found.first_upper[name] - found.first_lower[name] < 0.1
                missed += not found.first_lower[name] <= FIRST[name] <= found.first_upper[name]
        assert missed <= 22  # of 80, at 5 % each: more has the probability 1e-10

    def test_what_f_does_not_depend_on_has_exactly_0(self) -> None:
        found = st.sensitivity(Known(product), seed=1)
        for kind in KINDS:
            assert (getattr(found, kind)["c"], found.lower[kind]["c"], found.upper[kind]["c"]) == (0.0, 0.0, 0.0)

    def test_elasticities_are_mean_absolute_derivatives_by_the_logarithm(self) -> None:
        space = st.Space(a=st.Range(0.1, 1.0, scale="log"), b=(-1.0, 1.0))
        found = st.sensitivity(Known(lambda theta: 0.3 + 0.2 * theta[:, 0] - 0.1 * theta[:, 1], space=space), seed=1)
        assert found.elasticity["a"] == pytest.approx(0.2 * 0.9 / math.log(10), rel=0.01)  # the mean of 0.2 a
        assert found.elasticity["b"] == pytest.approx(0.1 * 0.5, rel=0.01)  # the mean of 0.1 |b|; 0 counts as 0

    def test_a_single_parameter_has_everything(self) -> None:
        found = st.sensitivity(Known(lambda theta: theta[:, 0] ** 2, space=st.Space(a=(0.0, 1.0))), seed=1)
        assert found.first["a"] == pytest.approx(1.0)
        assert found.total["a"] == pytest.approx(1.0)
        assert found.elasticity["a"] == pytest.approx(2 / 3, rel=0.01)  # the mean of 2a²

    def test_the_interval_holds_what_the_draws_give(self) -> None:
        def tilted(share: float) -> Any:
            return lambda theta: 0.5 + 0.4 * (share * (theta[:, 0] - 0.5) + (1 - share) * (theta[:, 1] - 0.5))

        found = st.sensitivity(Known(*(tilted(share) for share in (0.5, 0.6, 0.7, 0.8))), seed=1)
        least, most = 0.5, 0.8**2 / (0.8**2 + 0.2**2)
        assert found.first_lower["a"] == pytest.approx(least, abs=0.02)
        assert found.first_upper["a"] == pytest.approx(most, abs=0.02)
        assert least < found.first["a"] < most


@pytest.mark.parametrize("name", LEARNERS)
class TestLearners:
    def test_each_gives_intervals_around_the_truth(self, name: str) -> None:
        found = st.sensitivity(learned(name), seed=2, points=1024)
        assert found.names == PLANE.names == ("beta", "gamma")
        assert found.ranked == ("beta", "gamma")
        for kind in KINDS:
            for parameter in found.names:
                low, value, high = (
                    found.lower[kind][parameter],
                    getattr(found, kind)[parameter],
                    found.upper[kind][parameter],
                )
                assert 0 <= low <= value <= high
                assert kind == "elasticity" or high <= 1
        assert found.first["beta"] > 0.8
        assert found.total["gamma"] < 0.2
        assert all(found.first[each] <= found.total[each] + 0.01 for each in found.names)

    def test_the_same_seed_gives_the_same_numbers(self, name: str) -> None:
        first, again, other = (st.sensitivity(learned(name), seed=seed, points=256) for seed in (2, 2, 3))
        assert dict(first.total) == dict(again.total)
        assert dict(first.upper["total"]) == dict(again.upper["total"])
        assert dict(first.total) != dict(other.total)

    def test_functions_drawn_are_the_same_at_any_points(self, name: str) -> None:
        points = PLANE.uniform(40, seed=3)
        functions = learned(name).functions(7, seed=4)
        together = functions(points)
        assert together.shape == (7, 40)
        assert ((together >= 0) & (together <= 1)).all()
        assert np.allclose(np.hstack([functions(points[:15]), functions(points[15:])]), together, atol=1e-5)
        with pytest.raises(st.InputError, match="the number of draws"):
            learned(name).functions(0, seed=4)


@pytest.mark.parametrize("recipe", [st.SVIGP(), st.EPGP(kernel="rbf"), st.SVIGP(inducing=8), st.EPGP(inducing=6)])
def test_functions_of_a_gaussian_process_have_the_moments_that_it_predicts(recipe: st.Learner) -> None:
    posterior = replace(recipe.fit(observed(PLANE, 80, 50, 3), seed=1), floor=0.0)  # type: ignore[type-var]
    points = PLANE.uniform(30, seed=5)
    mean, std = posterior.latent_moments(points)  # type: ignore[attr-defined]
    drawn = ndtri(np.clip(posterior.functions(4000, seed=6)(points), 1e-300, 1 - 1e-16))  # type: ignore[attr-defined]
    assert np.abs((drawn.mean(axis=0) - mean) / std).max() < 6 / math.sqrt(4000)
    assert np.abs(drawn.std(axis=0) / std - 1).max() < 0.15  # the rest of few inducing points has heavy tails
    joint, exact = np.cov(drawn, rowvar=False), posterior.latent_covariance(points, seed=1)  # type: ignore[attr-defined]
    assert np.abs(joint - exact).max() < 0.2 * np.diag(exact).max()


def test_parameters_that_cannot_matter_have_0() -> None:
    seen = observed(PLANE, 100, 50, 3)
    known = st.Observations(seen.points, seen.satisfied, seen.undecided, seen.trials, relevant=("beta",))
    for learner in (LEARNERS["svi-gp"], LEARNERS["laplace-net"]):
        found = st.sensitivity(learner.fit(known, seed=1), seed=2, points=256)
        for kind in KINDS:
            assert (getattr(found, kind)["gamma"], found.lower[kind]["gamma"], found.upper[kind]["gamma"]) == (0, 0, 0)
        assert found.total["beta"] == pytest.approx(1.0)


def test_a_posterior_of_ones_own_has_sensitivities() -> None:
    class Straight:
        def fit(self, observations: st.Observations, *, seed: int) -> Any:
            return st.posterior_from(
                lambda theta: (0.1 + 0.8 * theta[:, 0], np.full(len(theta), 0.05)),
                observations,
                learner=self,
                seed=seed,
            )

    found = st.sensitivity(st.learn(observed(PLANE, 50, 20, 3), learner=Straight(), seed=1), seed=2, points=256)
    assert found.first["beta"] == pytest.approx(1.0, abs=1e-6)
    assert found.total["gamma"] == 0
    assert st.sensitivity(Waves(0.02), seed=2).total["beta"] == pytest.approx(1.0)


class TestRefusals:
    def test_a_constant_has_no_variance_to_share(self) -> None:
        with pytest.raises(st.InputError, match="believes that f is constant"):
            st.sensitivity(Known(lambda theta: np.full(len(theta), 0.3)), seed=1)

    def test_a_space_in_which_nothing_varies(self) -> None:
        seen = st.Observations.from_counts(st.Space(k=2.0), np.empty((1, 0)), [90], [100])
        with pytest.raises(st.InputError, match="no parameter varies"):
            st.sensitivity(st.EPGP().fit(seen, seed=1), seed=1)

    def test_a_guarantee_draws_no_functions(self) -> None:
        guarantee = st.calibrate(learned("svi-gp"), observed(PLANE, 100, 50, 8), method="icp", level=0.9)
        with pytest.raises(st.InputError, match=r"ask its posterior: st\.sensitivity\(guarantee\.posterior"):
            st.sensitivity(guarantee, seed=1)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"level": 1.0}, "level is a share strictly between"),
            ({"level": True}, "level is a share strictly between"),
            ({"points": 10}, "points is a whole number from 64 up"),
            ({"draws": 1}, "draws is a whole number from 2 up"),
            ({"level": 0.99}, r"draws are too few for intervals of 99 %: 64, and 199 are needed\n  pass draws=199"),
        ],
    )
    def test_numbers_that_do_not_fit(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            st.sensitivity(Known(product), seed=1, **options)

    def test_as_many_draws_as_are_needed_are_enough(self) -> None:
        found = st.sensitivity(Known(product), seed=1, level=0.99, draws=199, points=64)
        assert found.level == 0.99


def test_it_tells_itself_and_becomes_a_frame() -> None:
    found = st.sensitivity(learned("svi-gp"), seed=2, points=256)
    first, second, claim = str(found).splitlines()
    assert first.startswith("beta: first 0.")
    assert second.startswith("gamma: first 0.")
    assert "a belief, which guarantees nothing" in claim
    assert repr(found).startswith("<Sensitivity of svi-gp over Space(")
    html = found._repr_html_()
    assert "<table>" in html
    assert "elasticity" in html
    frame = found.frame()
    assert list(frame.index) == ["beta", "gamma"]
    assert frame.loc["beta", "total_upper"] == found.total_upper["beta"] == found.upper["total"]["beta"]
    assert frame.loc["gamma", "elasticity"] == found.elasticity["gamma"]
    assert frame.loc["gamma", "total_lower"] == found.total_lower["gamma"]


def test_importance_still_works_beside_it() -> None:
    assert list(st.EPGP().fit(observed(LINE, 40, 40, 3), seed=1).importance()) == ["beta"]
