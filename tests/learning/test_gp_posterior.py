"""What all Gaussian-process learners promise: one suite for EPGP and SVIGP, and the posterior they return."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from processes import DECADES, observed, wave
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Posterior
from sateen.core.space import Points, Range, Space
from sateen.files.container import write_container
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.recipes import EPGP, SVIGP
from sateen.learning.gp.sparse import Basis, choose_inducing
from watchers import Watcher

RECIPES = [EPGP(), SVIGP(), SVIGP(link="logit"), SVIGP(kernel="rbf"), SVIGP(batch=30, passes=3)]
BOTH = [EPGP, SVIGP]
GIVEN = {"length_scales": 0.7, "variance": 1.0, "inputs": "log"}


def named(recipe):
    return f"{type(recipe).__name__}-{getattr(recipe, 'link', '')}-{recipe.kernel}-{getattr(recipe, 'batch', '')}"


def same(one: GPPosterior, other: GPPosterior) -> bool:
    """Whether two posteriors are equal to the last bit."""
    names = ("points", "factor", "mean", "spread")
    return one.kernel == other.kernel and all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


@pytest.fixture(scope="module")
def planar():
    """A posterior over two parameters, of which one is on a log scale."""
    space = Space(a=Range(0.01, 1.0, scale="log"), b=(-1.0, 2.0))
    obs = observed(150, 30, space=space, f=lambda theta: ndtr(np.sin(np.log(theta[:, 0])) + 0.5 * theta[:, 1]))
    return {link: SVIGP(link=link).fit(obs, seed=1) for link in ("probit", "logit")}


@pytest.mark.parametrize("recipe", RECIPES, ids=named)
def test_the_same_seed_gives_the_same_posterior_to_the_last_bit(recipe):
    obs = observed(80)
    assert same(recipe.fit(obs, seed=3), recipe.fit(obs, seed=3))


@pytest.mark.parametrize("recipe", RECIPES, ids=named)
def test_a_fit_is_a_posterior(recipe):
    obs = observed(80)
    posterior = recipe.fit(obs, seed=3)
    assert isinstance(posterior, Posterior)
    assert posterior.recipe == recipe
    assert posterior.training.observations is obs
    assert posterior.kind == ("ep-gp" if isinstance(recipe, EPGP) else "svi-gp")
    pred = posterior.predict(DECADES.grid(50))
    assert np.abs(pred.mean - wave(pred.points.theta)).max() < 0.15
    assert pred.claim.mode == "credible"


def degenerate():
    """Data sets at the edge of what can be learned from."""
    line, rng = Space(a=(0.1, 1.0)), np.random.default_rng(1)
    many = Space({f"k{i}": (0.1, 1.0) for i in range(20)})

    def at(space, n, satisfied, trials, undecided=0, **rest):
        return Observations(space.uniform(n, seed=2), satisfied, undecided, trials, **rest)

    return {
        "all zeros": at(line, 40, 0, 50),
        "all ones": at(line, 40, 50, 50),
        "one point": at(line, 1, 3, 10),
        "one run": at(line, 1, 0, 1),
        "equal points": Observations.from_counts(line, {"a": [0.5, 0.5]}, [3, 4], 10),
        "one trial each": at(line, 40, rng.integers(0, 2, 40), 1),
        "twenty parameters": at(many, 50, rng.binomial(10, 0.3, 50), 10),
        "nothing matters": at(line, 30, rng.binomial(10, 0.2, 30), 10, relevant=()),
        "no parameter": Observations.from_counts(Space(a=1.0), {"a": 1.0}, 3, 10),
        "undecided but one": at(line, 20, [0] * 19 + [3], 10, [10] * 19 + [2]),
        "half undecided": at(line, 20, 3, 10, 5),
        "no run at some": at(line, 20, [3] * 10 + [0] * 10, [10] * 10 + [0] * 10),
        "a cliff": at(line, 40, np.where(line.uniform(40, seed=2).theta[:, 0] > 0.5, 1000, 0), 1000),
        "many runs": at(line, 20, rng.binomial(100_000, 0.3, 20), 100_000),
    }


@pytest.mark.filterwarnings("ignore:.*next to nothing")
@pytest.mark.parametrize("name", list(degenerate()))
@pytest.mark.parametrize("recipe", [EPGP(), SVIGP(), SVIGP(link="logit"), SVIGP(batch=7)], ids=named)
def test_degenerate_data_give_a_posterior_all_the_same(recipe, name):
    obs = degenerate()[name]
    posterior = recipe.fit(obs, seed=1)
    pred = posterior.predict(obs.points)
    decided = np.maximum(obs.trials - obs.undecided, 1)
    assert np.isfinite(pred.width).all()
    assert np.abs(posterior.sample(obs.points[:2], 3, seed=1) - 0.5).max() <= 0.5
    assert np.isfinite(posterior.gradient(obs.points)).all()
    if name in ("one point", "one run", "undecided but one"):
        assert pred.width.max() > 0.3
    if name == "twenty parameters":
        assert pred.width.min() > 0.05
    if name in ("all zeros", "all ones"):
        assert np.abs(pred.mean - obs.satisfied / decided).max() < 0.01


def test_undecided_rows_are_used_for_what_they_say():
    """Half of the runs lost: the interval grows, and stays around what is possible."""
    points = DECADES.uniform(60, seed=1)
    whole = Observations(points, 12, 0, 20)
    lost = Observations(points, 6, 12, 20)
    for recipe in (EPGP(**GIVEN), SVIGP(**GIVEN)):
        narrow, wide = (recipe.fit(obs, seed=1).predict(points) for obs in (whole, lost))
        assert (wide.width > 1.5 * narrow.width).all()
        assert ((wide.mean > 0.3) & (wide.mean < 0.9)).all()


def test_rows_without_a_decided_run_do_not_matter():
    points = DECADES.uniform(60, seed=1)
    counts = np.random.default_rng(1).binomial(20, wave(points.theta))
    counts[30:] = 0
    lost = Observations(points, counts, [0] * 30 + [20] * 30, 20)
    kept = Observations(points[:30], counts[:30], 0, 20)
    for recipe in (EPGP(**GIVEN), SVIGP(**GIVEN)):
        one, other = (recipe.fit(obs, seed=1).predict(points) for obs in (lost, kept))
        assert one.mean == pytest.approx(other.mean, rel=1e-9)


@pytest.mark.parametrize("recipe", BOTH)
def test_nothing_decided_is_an_error_that_says_so(recipe):
    obs = Observations(DECADES.uniform(5, seed=1), 0, 10, 10)
    with pytest.raises(InputError, match="no run at any point was decided"):
        recipe().fit(obs, seed=1)


@pytest.mark.parametrize("recipe", BOTH)
@pytest.mark.parametrize("at", [1, 2, 4, "kernel", "posterior"])
def test_ctrl_c_gives_the_best_so_far_and_says_so(recipe, at):
    obs = observed(80)
    free = Watcher()
    whole = recipe().fit(obs, seed=1, progress=free)
    assert free.open == 0
    steps = len(whole.record.values) - 1
    stopper = Watcher(at={"kernel": steps, "posterior": free.calls}.get(at, at))
    posterior = recipe().fit(obs, seed=1, progress=stopper)
    assert stopper.open == 0
    assert posterior.record.interrupted
    assert "interrupted by Ctrl-C" in posterior.record.verdict
    assert np.isfinite(posterior.predict(DECADES.grid(20)).mean).all()
    assert "Ctrl-C" in repr(posterior)


def test_ctrl_c_before_all_rows_were_read_says_how_many_were():
    obs = observed(5000, 10)
    posterior = SVIGP(**GIVEN, inducing=10).fit(obs, seed=1, progress=Watcher(at=1))
    assert posterior.record.interrupted
    assert "only 4,000 of 5,000 points were read before Ctrl-C" in posterior.record.notes


@pytest.mark.parametrize(
    "recipe", [EPGP(), SVIGP(), SVIGP(optimise_inducing=True, inducing=5), SVIGP(batch=20)], ids=named
)
def test_a_fit_goes_on_from_its_checkpoint_to_the_same_end(recipe, tmp_path):
    obs, file = observed(80), tmp_path / "fit.checkpoint"
    whole = recipe.fit(obs, seed=1)
    free = Watcher()
    recipe.fit(obs, seed=1, progress=free)
    recipe.fit(obs, seed=1, progress=Watcher(at=free.calls), checkpoint=file)
    assert file.exists()
    watch = Watcher()
    resumed = recipe.fit(obs, seed=1, progress=watch, checkpoint=file)
    assert watch.calls < free.calls
    assert not any("kernel" in label for label, _, _ in watch.told)
    assert same(whole, resumed)
    assert np.array_equal(whole.record.values, resumed.record.values)
    assert whole.record.notes == resumed.record.notes


def test_a_search_that_was_interrupted_is_no_checkpoint(tmp_path):
    file = tmp_path / "fit.checkpoint"
    SVIGP().fit(observed(80), seed=1, progress=Watcher(at=2), checkpoint=file)
    assert not file.exists()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    obs, file = observed(80), tmp_path / "fit.checkpoint"
    SVIGP().fit(obs, seed=1, checkpoint=file)
    for other in (lambda: SVIGP().fit(obs, seed=2, checkpoint=file), lambda: EPGP().fit(obs, seed=1, checkpoint=file)):
        with pytest.raises(InputError, match="is a checkpoint of another fit"):
            other()
    with pytest.raises(InputError, match="is a checkpoint of another fit"):
        SVIGP().fit(observed(81), seed=1, checkpoint=file)
    write_container(file, "posterior", 1, {}, {})
    with pytest.raises(InputError):
        SVIGP().fit(obs, seed=1, checkpoint=file)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_gradients_are_the_derivatives_of_the_mean(planar, link):
    posterior, h = planar[link], 1e-5
    theta = posterior.space.uniform(20, seed=4).theta
    slopes = posterior.gradient(theta)
    for axis in range(2):
        step = np.zeros(2)
        step[axis] = h
        up, down = (posterior.predict(theta + sign * step, extrapolate=True).mean for sign in (1, -1))
        assert slopes[:, axis] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_predictions_are_those_of_many_draws(planar, link):
    """At 200,000 draws the means are right to 5 standard errors, the quantiles to 1 % of a probability."""
    posterior, n = planar[link], 200_000
    points = posterior.space.uniform(6, seed=5)
    draws, pred = posterior.sample(points, n, seed=6), posterior.predict(points, level=0.9)
    assert np.abs((draws.mean(axis=0) - pred.mean) / pred.std).max() < 5 / np.sqrt(n)
    assert draws.std(axis=0) == pytest.approx(pred.std, rel=0.02)
    assert np.mean(draws < pred.lower, axis=0) == pytest.approx(0.05, abs=0.005)
    assert np.mean(draws > pred.upper, axis=0) == pytest.approx(0.05, abs=0.005)


def test_draws_at_neighbours_go_together(planar):
    posterior = planar["probit"]
    points = posterior.space.points({"a": [0.1, 0.1001, 0.9], "b": [0.0, 0.0, 1.9]})
    draws = posterior.sample(points, 4000, seed=1)
    correlation = np.corrcoef(draws.T)
    assert correlation[0, 1] > 0.99
    assert abs(correlation[0, 2]) < 0.5


def test_too_many_joint_draws_are_refused_with_the_memory_they_need(planar):
    with pytest.raises(InputError, match=r"joint draws at 6,000 points need 0\.576 GB .* at most 5,000 points"):
        planar["probit"].sample(planar["probit"].space.uniform(6000, seed=1), 1, seed=1)


def test_the_variance_is_the_textbook_one(planar):
    """k(x, x) - aᵀ(I - Q Qᵀ)a, computed straight."""
    posterior = planar["probit"]
    unit = posterior.inputs.unit(posterior.space.uniform(10, seed=8).theta)
    a = np.linalg.solve(posterior.factor, posterior.kernel.between(unit, posterior.points).T)
    spread = np.eye(len(a)) - posterior.spread @ posterior.spread.T
    mean, variance = posterior.latent(unit)
    assert mean == pytest.approx(a.T @ posterior.mean, rel=1e-9)
    straight = posterior.kernel.diagonal - np.einsum("ij,ik,kj->j", a, spread, a)
    assert variance == pytest.approx(straight, rel=1e-6, abs=1e-9)


def test_a_covariance_larger_than_the_prior_is_kept(planar):
    """A variational belief may be wider than the prior in some direction, as the paper's own recipe's can."""
    posterior = planar["probit"]
    wide = replace(posterior, spread=1.5 * np.eye(len(posterior.mean)))
    unit = np.zeros((1, 2))
    a = np.linalg.solve(posterior.factor, posterior.kernel.between(unit, posterior.points).T)
    expected = posterior.kernel.diagonal + 1.25 * float((a**2).sum())
    assert wide.latent(unit)[1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("recipe", BOTH)
def test_words_and_arrays_bring_a_posterior_back(recipe):
    posterior = recipe(split=0.3).fit(observed(60), seed=1)
    words, arrays = posterior.parts()
    common = posterior.recipe, posterior.training, posterior.inputs, posterior.record
    again = GPPosterior.from_parts(common, words, arrays)
    at = DECADES.grid(30)
    assert again.kind == posterior.kind
    assert np.array_equal(again.predict(at).mean, posterior.predict(at).mean)
    assert np.array_equal(again.predict(at).upper, posterior.predict(at).upper)
    assert again.kl() == posterior.kl()


def without_scales(obs):
    """The same, in a space that declares no scale, so that the counts choose one."""
    space = Space({name: (range_.low, range_.high) for name, range_ in obs.space.ranges.items()})
    return Observations(Points(obs.theta, space, obs.points.design), obs.satisfied, obs.undecided, obs.trials)


@pytest.mark.parametrize("recipe", BOTH)
def test_a_declared_scale_is_no_look_at_the_data(recipe):
    posterior = recipe(**{**GIVEN, "inputs": "auto"}).fit(observed(60), seed=1)
    assert posterior.kl() > 0


@pytest.mark.parametrize("recipe", BOTH)
def test_a_prior_that_saw_the_data_has_no_kl(recipe):
    for settings in ({}, {**GIVEN, "inputs": "auto"}, {"length_scales": 0.7, "inputs": "log"}):
        posterior = recipe(**settings).fit(without_scales(observed(60)), seed=1)
        with pytest.raises(InputError, match=r"split=0\.3, or give it length_scales, variance and inputs"):
            posterior.kl()
        assert len(posterior.unseen_by_prior) == 0


@pytest.mark.parametrize("recipe", BOTH)
def test_a_prior_that_was_given_has_seen_nothing(recipe):
    obs = observed(60)
    posterior = recipe(**GIVEN).fit(obs, seed=1)
    assert posterior.unseen_by_prior is obs
    assert posterior.kl() > 0


@pytest.mark.parametrize("recipe", BOTH)
def test_a_split_keeps_rows_from_the_prior_and_the_others_from_the_posterior(recipe):
    obs = observed(100)
    posterior = recipe(split=0.3).fit(obs, seed=1)
    unseen = posterior.unseen_by_prior
    assert len(unseen) == 70
    assert unseen.points.iid
    assert unseen.fingerprint == Observations.__getitem__(obs, posterior.unseen).fingerprint
    assert not np.array_equal(posterior.unseen, recipe(split=0.3).fit(obs, seed=2).unseen)
    given = {"length_scales": posterior.kernel.length_scales, "variance": posterior.kernel.variance}
    alone = recipe(**given, inputs=posterior.inputs.scales[0]).fit(unseen, seed=1)
    at = DECADES.grid(20)
    assert alone.predict(at).mean == pytest.approx(posterior.predict(at).mean, rel=1e-6)
    assert alone.kl() == pytest.approx(posterior.kl(), rel=1e-6)


def test_kl_is_that_of_the_inducing_values():
    """The formula for two normal distributions, unwhitened."""
    posterior = SVIGP(**GIVEN, inducing=6).fit(observed(60), seed=1)
    K = posterior.factor @ posterior.factor.T
    mean = posterior.factor @ posterior.mean
    S = posterior.factor @ posterior.spread @ posterior.spread.T @ posterior.factor.T
    trace = np.trace(np.linalg.solve(K, S)) + mean @ np.linalg.solve(K, mean) - len(mean)
    logs = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    assert posterior.kl() == pytest.approx(0.5 * (trace + logs), rel=1e-8)


def test_splits_that_leave_nothing_are_refused():
    with pytest.raises(InputError, match="split is the share of points"):
        SVIGP(split=1.0)
    with pytest.raises(InputError, match="leaves one of the parts without any"):
        SVIGP(split=0.1).fit(observed(3), seed=1)


@pytest.mark.parametrize("recipe", BOTH)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"length_scales": -1.0}, "length_scales is a positive number"),
        ({"length_scales": (1.0, 0.0)}, "length_scales is a positive number"),
        ({"length_scales": "long"}, "length_scales is a positive number"),
        ({"variance": 0.0}, "variance is a number above 0"),
        ({"variance": True}, "variance is a number above 0"),
        ({"inducing": 2.5}, "inducing is a whole number"),
    ],
)
def test_settings_are_checked_when_the_recipe_is_made(recipe, settings, words):
    with pytest.raises(InputError, match=words):
        recipe(**settings)


@pytest.mark.parametrize("recipe", BOTH)
def test_what_is_given_is_kept(recipe):
    space = Space(a=(0.1, 1.0), b=(0.1, 1.0))
    drawn = space.uniform(30, seed=1)
    obs = Observations(drawn, 3, 0, 10, relevant=("b",))
    posterior = recipe(length_scales=(0.3, 0.6), variance=2, inputs="log").fit(obs, seed=1)
    assert posterior.kernel.length_scales == (0.6,)
    assert posterior.kernel.variance == 2.0
    with pytest.raises(InputError, match="length_scales has 3 numbers, and 2 parameters vary: a, b"):
        recipe(length_scales=(1.0, 1.0, 1.0)).fit(obs, seed=1)


@pytest.mark.parametrize("recipe", BOTH)
def test_numbers_of_numpy_are_as_good_as_any(recipe):
    made = recipe(inducing=np.int64(5), length_scales=np.array([0.5]), variance=np.float64(1.0))
    assert made == recipe(inducing=5, length_scales=(0.5,), variance=1.0)
    assert made.fit(observed(30), seed=np.int64(1)).points.shape == (5, 1)


@pytest.mark.parametrize("recipe", BOTH)
@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(recipe, seed):
    with pytest.raises(InputError, match="seed is a whole number from 0 up"):
        recipe().fit(observed(30), seed=seed)


@pytest.mark.parametrize("recipe", BOTH)
def test_only_observations_are_learned_from(recipe):
    with pytest.raises(InputError, match="a fit takes Observations, not a list"):
        recipe().fit([1, 2], seed=1)


def test_inducing_points_are_chosen_where_least_is_known():
    """Neighbours are not chosen while there are strangers; and no more than are needed."""
    posterior = SVIGP(**GIVEN).fit(observed(60), seed=1)
    x = np.concatenate([np.zeros((10, 1)), np.ones((10, 1)), -np.ones((10, 1))])
    assert np.sort(choose_inducing(posterior.kernel, x, 20)[:, 0]).tolist() == [-1.0, 0.0, 1.0]
    assert len(choose_inducing(posterior.kernel, x, 2)) == 2


def test_a_basis_of_equal_points_gets_by_with_jitter():
    posterior = SVIGP(**GIVEN).fit(observed(60), seed=1)
    basis = Basis.of(posterior.kernel, np.zeros((30, 1)))
    assert np.isfinite(basis.factor).all()
    features = basis.features(np.array([[0.0], [0.5]]))
    assert basis.spare(features)[0] == pytest.approx(0.0, abs=1e-4)
