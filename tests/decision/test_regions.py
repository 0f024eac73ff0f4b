"""Regions: what is above, below and undecided, against functions that are known in closed form."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import ndtr, ndtri

import sateen as st
from known_beliefs import Waves
from known_functions import LINE, PLANE, observed
from sateen.core.posterior import FullPosterior
from sateen.decision.regions import SIDES

UNIT = st.Space(a=(0.0, 1.0), b=st.Range(1.0, 100.0, scale="log"))


@cache
def line() -> FullPosterior:
    return st.EPGP().fit(observed(LINE, 60, 50, 3), seed=1)


@cache
def plane() -> FullPosterior:
    return st.SVIGP().fit(observed(PLANE, 80, 50, 3), seed=1)


class Plane:
    """Believes that f is u, the place of the first parameter in its range, give or take `half`."""

    def __init__(self, half: float, space: st.Space = UNIT) -> None:
        self.half, self.space = half, space

    def predict(self, points: object, *, level: float = 0.95) -> st.Prediction:
        where = self.space.points(points)
        mean = (self.space.to_unit(where.theta)[:, 0] + 1) / 2
        half = self.half * level
        claim = st.Claim("probability", "credible", level, "")
        std = np.full(len(where), self.half)
        return st.Prediction(where, mean, std, np.maximum(mean - half, 0), np.minimum(mean + half, 1), level, claim)


def guarantee(method: str = "lift", **options: Any) -> st.Guarantee:
    return st.calibrate(
        line(), observed(LINE, 300, 50, 7), method=method, seed=5 if method == "lift" else None, **options
    )


@given(some.floats(0.15, 0.85), some.floats(0.01, 0.1), some.sampled_from([0.5, 0.95]), some.integers(0, 10**6))
def test_volumes_are_those_of_a_known_band(threshold: float, half: float, level: float, seed: int) -> None:
    regions = st.decide(Plane(half), above=threshold, level=level, seed=seed, points=4096)
    exact = (1 - threshold - half * level, threshold - half * level, 2 * half * level)
    for name, volume in zip(SIDES, exact, strict=True):
        assert abs(getattr(regions, name) - volume) < 2 / (4096 / 16)  # each axis of a Sobol design is even
    assert math.isclose(regions.above + regions.below + regions.undecided, 1)
    assert regions.points == 4096


def test_volumes_are_within_their_standard_errors() -> None:
    space = st.Space({f"k{axis}": (0.0, 1.0) for axis in range(4)})

    class Slanted(Plane):
        def predict(self, points: object, *, level: float = 0.95) -> st.Prediction:
            where = self.space.points(points)
            mean = where.theta.mean(axis=1)
            claim = st.Claim("probability", "credible", level, "")
            zero = np.zeros(len(where))
            return st.Prediction(where, mean, zero, mean, mean, level, claim)

    deviations = []
    for seed in range(40):
        regions = st.decide(Slanted(0.0, space), above=0.5, seed=seed, points=2048)
        assert regions.undecided == 0
        assert 0 < regions.errors["above"] < 0.01
        deviations.append((regions.above - 0.5) / regions.errors["above"])  # by symmetry it is a half
    assert np.mean(np.square(deviations)) < 3.0  # Student's t of 15 degrees has the variance 1.15


def test_a_side_is_where_the_whole_band_is_and_the_same_for_either_question() -> None:
    points = PLANE.uniform(500, seed=3)
    band = plane().predict(points, level=0.9)
    for asked in ({"above": 0.4}, {"below": 0.4}):
        regions = st.decide(plane(), level=0.9, seed=2, **asked)
        words = regions.of(points)
        assert np.array_equal(words == "above", band.lower > 0.4)
        assert np.array_equal(words == "below", band.upper < 0.4)
        (side,) = asked
        assert regions.side == side
        assert regions.volume == getattr(regions, side)
        assert np.array_equal(regions.decided(points), words == side)
        assert set(words) == set(SIDES)


def test_a_margin_is_counted_in_deviations_of_the_latent_value() -> None:
    points = PLANE.uniform(500, seed=3)
    mean, std = plane().latent_moments(points)
    above, below = (st.decide(plane(), seed=2, **asked) for asked in ({"above": 0.4}, {"below": 0.4}))
    for z in (0.0, 1.5, 3.0):
        assert np.array_equal(above.decided(points, z=z), mean - ndtri(0.4) > z * std)
        assert np.array_equal(below.decided(points, z=z), ndtri(0.4) - mean > z * std)
    assert np.array_equal(above.decided(points), above.decided(points, z=float(ndtri(0.975))))


def test_the_default_level_is_that_of_predict_and_wider_bands_decide_less() -> None:
    regions = [st.decide(plane(), above=0.4, seed=2, level=level) for level in (None, 0.95, 0.999)]
    assert regions[0].level == 0.95
    assert regions[0].undecided == regions[1].undecided < regions[2].undecided


def test_a_space_in_which_nothing_varies_is_one_point() -> None:
    space = st.Space(k=2.0)
    seen = st.Observations.from_counts(space, np.empty((1, 0)), [90], [100])
    regions = st.decide(st.EPGP().fit(seen, seed=1), above=0.5, seed=1)
    assert (regions.above, regions.below, regions.undecided, regions.points) == (1.0, 0.0, 0.0, 1)
    assert set(regions.errors.values()) == {0.0}
    assert regions.of({}).tolist() == ["above"]
    assert regions.box() == space
    assert "a single point" in str(regions)


def test_the_same_seed_gives_the_same_volumes() -> None:
    first, again, other = (st.decide(plane(), above=0.4, seed=seed) for seed in (2, 2, 3))
    assert (first.above, dict(first.errors)) == (again.above, dict(again.errors))
    assert first.above != other.above


class TestClaims:
    def test_a_posterior_only_believes(self) -> None:
        regions = st.decide(plane(), above=0.4, seed=2)
        assert (regions.claim.target, regions.claim.mode, regions.claim.level) == ("region", "credible", 0.95)
        assert "the probability is at least 0.4 at each parameter of the region above" in str(regions.claim)
        assert "guarantees nothing" in str(regions)
        assert regions.statement == "the probability is at least 0.4"
        assert st.decide(plane(), below=0.4, seed=2).statement == "the probability is at most 0.4"

    def test_a_guarantee_passes_its_own_claim_on(self) -> None:
        pac = st.decide(guarantee(), below=0.4, seed=2)
        assert (pac.claim.mode, pac.claim.confidence, pac.level) == ("pac", 0.95, 0.9)
        assert "for at least 90 % of the parameters drawn uniformly" in str(pac.claim)
        marginal = st.decide(guarantee("chernoff"), below=0.4, seed=2)
        assert (marginal.claim.mode, marginal.claim.confidence) == ("marginal", None)
        assert "over the calibration draw and a parameter drawn uniformly" in str(marginal)

    def test_the_bands_of_a_guarantee_are_its_own(self) -> None:
        made, points = guarantee(), LINE.uniform(300, seed=1)
        regions, band = st.decide(made, above=0.4, seed=2, level=0.9), made.predict(points)
        assert np.array_equal(regions.of(points) == "above", band.lower > 0.4)
        assert np.array_equal(regions.of(points) == "below", band.upper < 0.4)
        with pytest.raises(st.InputError, match=r"calibrated for the level 0\.9"):
            st.decide(made, above=0.4, seed=2, level=0.95)
        with pytest.raises(st.InputError, match="guarantee have no other margin z"):
            regions.decided(points, z=2.0)

    @pytest.mark.parametrize("method", ["icp", "nicp"])
    def test_intervals_of_frequencies_say_nothing_about_f(self, method: str) -> None:
        with pytest.raises(st.InputError, match="say nothing about f\n  calibrate with method='lift'"):
            st.decide(guarantee(method, level=0.9), above=0.4, seed=2)


class TestRefusals:
    @pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1, 2, math.nan, "0.5", True])
    def test_a_threshold_lies_strictly_between_0_and_1(self, wrong: Any) -> None:
        for name in ("above", "below"):
            with pytest.raises(st.InputError, match=f"^{name} is a probability strictly between 0 and 1"):
                st.decide(plane(), seed=1, **{name: wrong})

    def test_one_side_is_asked_for(self) -> None:
        with pytest.raises(st.InputError, match="neither above nor below is given"):
            st.decide(plane(), seed=1)
        with pytest.raises(st.InputError, match="both above and below are given"):
            st.decide(plane(), above=0.1, below=0.2, seed=1)

    @pytest.mark.parametrize("wrong", [0.0, 1.0, 95, math.nan, "high", True])
    def test_a_level_lies_strictly_between_0_and_1(self, wrong: Any) -> None:
        with pytest.raises(st.InputError, match=r"^level is a share strictly between 0 and 1"):
            st.decide(plane(), above=0.1, level=wrong, seed=1)

    @pytest.mark.parametrize("wrong", [3, None, st.EPGP(), LINE])
    def test_a_predictor_predicts(self, wrong: Any) -> None:
        with pytest.raises(st.InputError, match="predictor is a posterior or a guarantee"):
            st.decide(wrong, above=0.1, seed=1)

    @pytest.mark.parametrize("wrong", [0, 63, 1000.5, True])
    def test_points_are_enough_for_every_design(self, wrong: Any) -> None:
        with pytest.raises(st.InputError, match="points is a whole number from 64 up"):
            st.decide(plane(), above=0.1, seed=1, points=wrong)

    @pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "wide", True])
    def test_a_margin_is_a_number_from_0_up(self, wrong: Any) -> None:
        with pytest.raises(st.InputError, match="z is a number of standard deviations"):
            st.decide(plane(), above=0.4, seed=2).decided({"beta": 0.5, "gamma": 1.0}, z=wrong)


class TestFingerprints:
    def test_it_tells_what_was_asked_and_of_whom(self) -> None:
        asked = [
            st.decide(plane(), above=0.4, seed=2),
            st.decide(plane(), above=0.5, seed=2),
            st.decide(plane(), below=0.4, seed=2),
            st.decide(plane(), above=0.4, level=0.9, seed=2),
            st.decide(line(), above=0.4, seed=2),
            st.decide(guarantee(), above=0.4, seed=2),
            st.decide(st.SVIGP().fit(observed(PLANE, 80, 50, 4), seed=1), above=0.4, seed=2),
            st.decide(st.SVIGP(kernel="rbf").fit(observed(PLANE, 80, 50, 3), seed=1), above=0.4, seed=2),
            st.decide(Waves(0.05), above=0.4, seed=2),
            st.decide(Waves(0.06), above=0.4, seed=2),
        ]
        assert len({regions.fingerprint for regions in asked}) == len(asked)
        assert all(len(regions.fingerprint) == 64 for regions in asked)

    def test_neither_seed_nor_clock_changes_it(self) -> None:
        again = st.SVIGP().fit(observed(PLANE, 80, 50, 3), seed=1)
        assert again.record.seconds != plane().record.seconds
        one, other = st.decide(plane(), above=0.4, seed=2), st.decide(again, above=0.4, seed=3, points=64)
        assert one.fingerprint == other.fingerprint

    def test_a_file_keeps_it(self, tmp_path: Path) -> None:
        for number, predictor in enumerate((plane(), guarantee())):
            predictor.save(file := tmp_path / f"{number}.safetensors")
            one, other = (st.decide(each, above=0.4, seed=2) for each in (predictor, st.load(file)))
            assert one.fingerprint == other.fingerprint


def test_it_tells_itself_in_a_paragraph() -> None:
    regions = st.decide(line(), above=0.4, seed=2)
    assert str(regions).startswith("Of the parameters drawn uniformly from the space (beta in [0.01, 1]), ")
    assert "± two standard errors), by credible intervals of 95 % (ep-gp). Under the model" in str(regions)
    assert str(regions).count("\n") == 0
    assert repr(regions).startswith("<Regions of 0.4 over Space(beta=(0.01, 1)): ")
    assert "<p>" in regions._repr_html_()


def test_bands_that_are_right_put_few_points_on_the_wrong_side() -> None:
    points = LINE.grid(2000)
    unit = LINE.to_unit(points.theta)[:, 0]
    truth = ndtr(1.2 * np.sin(2.0 * unit) - 0.3)
    words = st.decide(line(), above=0.4, level=0.999, seed=2).of(points)
    wrong = ((words == "above") & (truth < 0.4)) | ((words == "below") & (truth > 0.4))
    assert wrong.mean() < 0.02
