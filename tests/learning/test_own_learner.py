"""Learners of users: with `fit` and `predict` alone they do all that the built-in ones do, or say what they cannot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta

import sateen as st
from known_functions import LINE, PLANE, observed, wave
from sateen.core.posterior import FullPosterior, complete, fit_learner, training_of
from sateen.core.prediction import Claim, drawn_uniformly
from sateen.core.proportions import beta_quantiles
from sateen.files.container import read_container, write_container

SEED = 5


@dataclass(frozen=True)
class Straight:
    """Fits a plane through the probit of the frequencies; `kind` says what its function gives."""

    ridge: float = 1e-3
    kind: str = "moments"

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        from scipy.special import ndtri

        table = np.column_stack([np.ones(len(observations)), observations.theta])
        latent = ndtri((observations.satisfied + 0.5) / (observations.trials + 1.0))
        gram = table.T @ table + self.ridge * np.eye(table.shape[1])
        weights = np.linalg.solve(gram, table.T @ latent)
        noise = np.random.default_rng(seed).normal(0.0, 0.1, (200, 1))

        def moments(theta: Any) -> tuple[Any, Any]:
            mean = ndtr(weights[0] + theta @ weights[1:])
            return mean, 0.2 * np.sqrt(mean * (1 - mean))

        def draws(theta: Any) -> Any:
            return ndtr(weights[0] + theta @ weights[1:] + noise)

        return st.posterior_from({"moments": moments, "draws": draws}[self.kind], observations, learner=self, seed=seed)


@dataclass(frozen=True)
class BareBelief:
    """A posterior with `space` and `predict`, and nothing else."""

    space: st.Space
    level: float

    def predict(self, points: st.Points, *, level: float = 0.95) -> st.Prediction:
        count = len(points)
        claim = Claim("probability", "credible", level, drawn_uniformly(self.space))
        columns = [np.full(count, value) for value in (self.level, 0.1, self.level - 0.1, self.level + 0.1)]
        return st.Prediction(points, *columns, level, claim)


class Bare:
    """Believes the mean frequency everywhere."""

    def fit(self, observations: st.Observations, *, seed: int) -> BareBelief:
        return BareBelief(observations.space, float(observations.frequency.mean()))


@cache
def straight(kind: str = "moments") -> FullPosterior:
    return st.learn(observed(PLANE, 80, 40, 11), learner=Straight(kind=kind), seed=SEED)


@cache
def bare() -> FullPosterior:
    return st.learn(observed(LINE, 80, 40, 11), learner=Bare(), seed=SEED)


every_kind = pytest.mark.parametrize("posterior", ["moments", "draws", "bare"])


def named(name: str) -> FullPosterior:
    return bare() if name == "bare" else straight(name)


@every_kind
def test_it_is_a_learner_and_gives_a_posterior_with_every_ability(posterior: str) -> None:
    made = named(posterior)
    assert isinstance(made.recipe, st.Learner)
    assert isinstance(made, st.Posterior)
    assert complete(made) is made
    assert made.training.fingerprint == observed(made.space, 80, 40, 11).fingerprint
    assert made.kind == f"{__name__}:{'Bare' if posterior == 'bare' else 'Straight'}"
    assert made.kind in repr(made)
    assert made.kind in str(made.predict(made.space.grid(2)).claim) or posterior == "bare"
    assert math.isnan(made.seconds_per_run)
    assert "does not say whether it converged" in made.record.verdict
    assert set(made.importance()) == set(made.space.names)
    assert made._repr_html_()  # type: ignore[operator]
    assert len(made.unseen_by_prior) == 0
    with pytest.raises(st.InputError, match="has no prior for kl"):
        made.kl()


@every_kind
def test_it_is_calibrated_planned_scored_and_bounded(posterior: str) -> None:
    made = named(posterior)
    held_out = observed(made.space, 200, 40, 12)
    guarantee = st.calibrate(made, held_out, method="icp", level=0.9)
    fresh = observed(made.space, 300, 40, 13)
    promised = guarantee.predict(fresh.points)
    inside = (promised.lower <= fresh.frequency) & (fresh.frequency <= promised.upper)
    assert inside.mean() > 0.8
    assert st.score(made.predict(fresh.points), fresh).rmse < 0.5
    assert 0 < st.bound_error(made, held_out, method="betting").value < 1
    assert st.plan(made, budget=20_000, level=0.9, confidence=0.95, seed=6).points > 0
    with pytest.raises(st.InputError, match="prior"):
        st.bound_error(made, method="catoni", seed=7)


@every_kind
def test_points_may_be_given_in_every_form_and_outside_only_if_allowed(posterior: str) -> None:
    made = named(posterior)
    points = made.space.uniform(5, seed=2)
    columns = dict(zip(made.space.names, points.theta.T, strict=True))
    for given in (points.theta, columns, list(points)):
        assert np.array_equal(made.predict(given).mean, made.predict(points).mean)
    outside = {name: range_.high + 1.0 for name, range_ in made.space.ranges.items()}
    with pytest.raises(st.SpaceError):
        made.predict(outside)
    if posterior == "bare":
        with pytest.raises(st.InputError, match="does not predict outside its space"):
            made.predict(outside, extrapolate=True)
    else:
        assert len(made.predict(outside, extrapolate=True)) == 1


def test_mean_and_deviation_give_the_quantiles_of_a_beta_distribution() -> None:
    points = PLANE.uniform(50, seed=3)
    prediction = straight().predict(points, level=0.9)
    mean, variance = prediction.mean, prediction.std**2
    total = mean * (1 - mean) / variance - 1
    assert np.allclose(prediction.lower, beta.ppf(0.05, mean * total, (1 - mean) * total))
    assert np.allclose(prediction.upper, beta.ppf(0.95, mean * total, (1 - mean) * total))


def test_draws_of_moments_have_them_and_rise_and_fall_together() -> None:
    points = PLANE.uniform(6, seed=3)
    drawn, prediction = straight().sample(points, 4000, seed=1), straight().predict(points)
    assert drawn.shape == (4000, 6)
    assert np.allclose(drawn.mean(axis=0), prediction.mean, atol=6 * prediction.std.max() / 4000**0.5)
    assert np.allclose(drawn.std(axis=0), prediction.std, rtol=0.1)
    assert (np.diff(drawn[np.argsort(drawn[:, 0])], axis=0) >= 0).all()
    assert np.array_equal(drawn, straight().sample(points, 4000, seed=1))
    assert not np.array_equal(drawn, straight().sample(points, 4000, seed=2))


def test_draws_are_summarised_and_drawn_whole() -> None:
    points = PLANE.uniform(6, seed=3)
    posterior = straight("draws")
    drawn, prediction = posterior.sample(points, 2000, seed=1), posterior.predict(points, level=0.8)
    assert len(np.unique(drawn, axis=0)) <= 200
    assert np.allclose(np.quantile(drawn, 0.1, axis=0), prediction.lower, atol=0.02)
    assert np.allclose(drawn.std(axis=0), prediction.std, rtol=0.1)


@pytest.mark.parametrize("kind", ["moments", "draws"])
def test_gradients_are_those_of_the_mean_also_at_the_faces_of_the_box(kind: str) -> None:
    corners, step = PLANE.grid(3), 1e-6
    posterior = straight(kind)
    slopes = posterior.gradient(corners)
    for column, range_ in enumerate(PLANE.ranges.values()):
        moved = np.array([corners.theta, corners.theta])
        moved[0, :, column] -= step
        moved[1, :, column] += step
        below, above = (posterior.predict(theta, extrapolate=True).mean for theta in moved)
        scale = range_.high - range_.low
        assert np.allclose(slopes[:, column] * scale, (above - below) / (2 * step) * scale, atol=0.02)


def test_importance_is_the_steepness_over_the_space_and_needs_no_seed() -> None:
    ranked = straight().importance()
    assert ranked == straight().importance()
    points = PLANE.uniform(4000, seed=1)
    slopes = straight().gradient(points)
    for column, (name, range_) in enumerate(PLANE.ranges.items()):
        length = (range_.high - range_.low) if range_.scale == "linear" else None
        if length is not None:
            assert ranked[name] == pytest.approx(np.sqrt(np.mean((slopes[:, column] * length) ** 2)), rel=0.05)


@every_kind
def test_a_file_keeps_how_it_was_made_and_fits_it_again(posterior: str, tmp_path: Path) -> None:
    made, file = named(posterior), tmp_path / "own.safetensors"
    made.save(file)
    *_, content, _ = read_container(file)
    again = {"learner": made.kind, "seed": SEED}
    assert {**content["refit"], "settings": {}} == {**again, "settings": {}}
    loaded = st.load(file)
    points = made.space.uniform(20, seed=3)
    assert loaded.predict(points).lower.tobytes() == made.predict(points).lower.tobytes()
    assert loaded.training.fingerprint == made.training.fingerprint
    assert type(loaded.recipe) is type(made.recipe)
    assert loaded.record.notes == (*made.record.notes, f"{made.kind} fits it again when it is used")
    loaded.save(file)
    assert st.load(file).record.notes == loaded.record.notes
    assert st.load(file).predict(points).lower.tobytes() == made.predict(points).lower.tobytes()


@every_kind
def test_a_guarantee_of_it_is_saved_and_loaded(posterior: str, tmp_path: Path) -> None:
    made = named(posterior)
    guarantee = st.calibrate(made, observed(made.space, 200, 40, 12), method="icp", level=0.9)
    guarantee.save(tmp_path / "guarded.safetensors")
    points = made.space.uniform(20, seed=3)
    loaded = st.load(tmp_path / "guarded.safetensors")
    assert loaded.predict(points).lower.tobytes() == guarantee.predict(points).lower.tobytes()


def test_a_file_whose_learner_cannot_be_imported_says_so(tmp_path: Path) -> None:
    file = tmp_path / "own.safetensors"
    bare().save(file)
    kind, number, content, arrays = read_container(file)
    content["refit"]["learner"] = "no_such_package:Learner"
    write_container(file, kind, number, content, arrays)
    with pytest.raises(st.InputError, match="no_such_package:Learner cannot be imported"):
        st.load(file)


def test_a_file_can_name_no_function_to_call(tmp_path: Path) -> None:
    file = tmp_path / "own.safetensors"
    bare().save(file)
    kind, number, content, arrays = read_container(file)
    content["refit"] |= {"learner": "os:system", "settings": {"command": "true"}}
    write_container(file, kind, number, content, arrays)
    with pytest.raises(st.InputError, match="os:system is not a learner"):
        st.load(file).predict({"beta": 0.5})


def test_a_setting_that_no_file_keeps_is_named(tmp_path: Path) -> None:
    class Odd(Bare):
        def __init__(self) -> None:
            self.kernel = object()

    posterior = st.learn(observed(LINE, 10, 5, 1), learner=Odd(), seed=1)
    with pytest.raises(st.InputError, match="Odd: kernel is of type object, which a file cannot hold"):
        posterior.save(tmp_path / "odd.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_class_that_no_file_can_name_is_refused(tmp_path: Path) -> None:
    class Hidden(Bare):
        pass

    posterior = st.learn(observed(LINE, 10, 5, 1), learner=Hidden(), seed=1)
    with pytest.raises(st.InputError, match=r"Hidden, a class inside a function; move it out"):
        posterior.save(tmp_path / "hidden.safetensors")


def test_a_posterior_that_does_not_say_what_it_learned_from_still_predicts() -> None:
    posterior = complete(BareBelief(LINE, 0.4))
    assert training_of(posterior) is None
    assert posterior.predict({"beta": 0.5}).mean.tolist() == [0.4]
    assert repr(posterior) == f"<Posterior BareBelief over {LINE!r}>"
    assert math.isnan(posterior.seconds_per_run)
    with pytest.raises(st.InputError, match=r"does not say what it learned from; fit it by st\.learn"):
        _ = posterior.training
    with pytest.raises(st.InputError, match="does not say which learner fitted it"):
        _ = posterior.recipe


def test_the_abilities_of_its_own_come_first() -> None:
    class Able(BareBelief):
        seconds_per_run = 2.0

        def sample(self, points: st.Points, n: int, *, seed: int) -> Any:
            return np.full((n, len(points)), 0.25)

        def gradient(self, points: st.Points) -> Any:
            return np.full((len(points), 1), 7.0)

        def kl(self) -> float:
            return 1.5

        def save(self, file: Any) -> None:
            Path(file).write_text("mine")

    posterior = complete(Able(LINE, 0.4))
    assert (posterior.sample({"beta": 0.5}, 3, seed=1) == 0.25).all()
    assert posterior.gradient({"beta": 0.5}).tolist() == [[7.0]]
    assert posterior.importance() == {"beta": pytest.approx(7.0 * (LINE.ranges["beta"].high - LINE.ranges["beta"].low))}
    assert (posterior.kl(), posterior.seconds_per_run) == (1.5, 2.0)


class TestLearn:
    def test_takes_a_learner_a_name_or_nothing(self) -> None:
        seen = observed(LINE, 60, 30, 3)
        by_object = st.learn(seen, learner=st.EPGP(inducing=12), seed=1)
        assert by_object.kind == "ep-gp"
        assert (
            by_object.predict({"beta": 0.5}).mean == st.EPGP(inducing=12).fit(seen, seed=1).predict({"beta": 0.5}).mean
        )
        assert st.learn(seen, "svi-gp", seed=1).kind == "svi-gp"
        assert st.learn(seen, f"{__name__}:Bare", seed=1).kind == f"{__name__}:Bare"
        assert st.learn(seen, seed=1).record.notes[0].startswith("svi-gp: ")

    def test_progress_and_checkpoint_go_only_to_learners_that_take_them(self, tmp_path: Path) -> None:
        heard: dict[str, Any] = {}

        class Hearing(Bare):
            def fit(self, observations: st.Observations, *, seed: int, progress: Any = None) -> BareBelief:
                heard["progress"] = progress
                return super().fit(observations, seed=seed)

        class Everything(Bare):
            def fit(self, observations: st.Observations, *, seed: int, **options: Any) -> BareBelief:
                heard.update(options)
                return super().fit(observations, seed=seed)

        seen, file = observed(LINE, 60, 30, 3), tmp_path / "fit.safetensors"
        st.learn(seen, learner=Bare(), seed=1, checkpoint=file)
        st.learn(seen, learner=Hearing(), seed=1, checkpoint=file)
        assert list(heard) == ["progress"]
        st.learn(seen, learner=Everything(), seed=1, checkpoint=file)
        assert heard["checkpoint"] == file

    @pytest.mark.parametrize(
        ("learner", "words"),
        [(Bare, "not the class Bare"), (7, "not a int"), ("nobody", "there is no learner 'nobody'")],
    )
    def test_what_is_no_learner_is_refused(self, learner: Any, words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            st.learn(observed(LINE, 10, 5, 1), learner=learner, seed=1)

    def test_what_is_no_posterior_is_refused(self) -> None:
        class Silent:
            def fit(self, observations: st.Observations, *, seed: int) -> Any:
                return None

        with pytest.raises(st.InputError, match="fit of Silent returned a NoneType"):
            fit_learner(Silent(), observed(LINE, 10, 5, 1), seed=1)

    def test_what_is_no_prediction_is_refused(self) -> None:
        class Loose(Bare):
            def fit(self, observations: st.Observations, *, seed: int) -> Any:
                belief = super().fit(observations, seed=seed)
                object.__setattr__(belief, "predict", lambda points, level: (0.5, 0.1))
                return belief

        posterior = st.learn(observed(LINE, 10, 5, 1), learner=Loose(), seed=1)
        with pytest.raises(st.InputError, match="returned a tuple, and a Prediction is needed"):
            posterior.predict({"beta": 0.5})


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda theta: (np.zeros(3), np.zeros(len(theta))), r"the means have the shape \(3,\) for n = 2"),
        (lambda theta: (np.zeros(len(theta)), np.zeros((len(theta), 1))), "standard deviations have the shape"),
        (lambda theta: (np.full(len(theta), np.nan), np.zeros(len(theta))), "return finite numbers"),
        (lambda theta: (np.zeros(len(theta)), np.full(len(theta), -1.0)), "negative standard deviation"),
        (lambda theta: np.zeros(len(theta)), r"the draws have the shape \(2,\)"),
        (lambda theta: np.zeros((0, len(theta))), r"the draws have the shape \(0, 2\)"),
    ],
)
def test_what_a_function_must_not_return_is_refused(function: Any, words: str) -> None:
    posterior = st.posterior_from(function, observed(LINE, 10, 5, 1), learner=Bare(), seed=1)
    with pytest.raises(st.InputError, match=words):
        posterior.predict({"beta": [0.3, 0.4]})


@pytest.mark.parametrize(
    ("mean", "std", "wanted"),
    [
        (0.3, 0.0, [0.3, 0.3]),
        (0.0, 0.2, [0.0, 0.0]),
        (1.0, 0.2, [1.0, 1.0]),
        (0.5, 9.0, [0.0, 1.0]),
        (-2.0, 0.1, [0, 0]),
    ],
)
def test_beta_quantiles_have_their_limits(mean: float, std: float, wanted: list[float]) -> None:
    ends = [beta_quantiles(np.array([mean]), np.array([std]), share)[0] for share in (0.025, 0.975)]
    assert ends == pytest.approx(wanted, abs=1e-6)


def test_it_learns(tmp_path: Path) -> None:
    points = PLANE.uniform(300, seed=99)
    assert np.sqrt(np.mean((straight().predict(points).mean - wave(points)) ** 2)) < 0.3


def test_how_long_a_fit_took_is_known_whatever_it_returns() -> None:
    assert straight().record.seconds >= 0
    assert bare().record.seconds >= 0
