"""The Bayesian neural network: its bound against closed forms, its belief against sampled weights."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import expit, ndtr
from scipy.stats import binom, chi2, ks_2samp, kstest, norm

import sateen as st
from known_functions import LINE, observed
from sateen.core.errors import InputError
from sateen.learning.inputs import inputs_of, sample_of
from sateen.learning.networks import posterior as network_posterior
from sateen.learning.networks import svi_bnn
from sateen.learning.networks import training as network_training
from sateen.learning.networks.network import Net, Rows, arithmetic, log_ways, rows_of, window_of
from sateen.learning.networks.posterior import BNNPosterior
from sateen.learning.networks.recipes import SVIBNN
from sateen.learning.networks.svi_bnn import Bound, divergence, noisy_output
from sateen.learning.networks.training import Batches, Trainer
from watchers import Watcher

FloatArray = npt.NDArray[np.float64]
LEVEL = 1e-6
Z = float(-norm.ppf(LEVEL / 2))
QUICK = SVIBNN(width=3, steps=42, pretraining=30, batch=8, draws=61, inputs="linear", precision="float64")
SEEN = observed(LINE, 20, 30, 1)
NET = Net(2, 3)
GRID = LINE.grid(9)


_value_and_slopes = jax.jit(
    lambda loss, at, rows, noise, fixed: jax.value_and_grad(loss)(at, rows, noise, fixed), static_argnums=0
)

_noisy_output = jax.jit(noisy_output, static_argnums=0)


@cache
def fitted() -> BNNPosterior:
    return QUICK.fit(SEEN, seed=3)


def some_guide(net: Net, seed: int) -> tuple[FloatArray, FloatArray]:
    """Means and logarithms of deviations, all different."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=net.size), rng.normal(-1.5, 0.5, net.size)


def silu_output(net: Net, weights: FloatArray, x: FloatArray) -> FloatArray:
    """g of networks in plain numpy, a row of weights each, at each row of `x`."""
    w, d = net.width, net.inputs
    ends = np.cumsum([0, d * w, w, w * w, w, w, 1])
    W1, b1, W2, b2, W3, b3 = (weights[:, low:high] for low, high in pairwise(ends))
    hidden = np.einsum("nd,sdw->snw", x, W1.reshape(-1, d, w)) + b1[:, None]
    hidden = np.einsum("snw,swv->snv", hidden * expit(hidden), W2.reshape(-1, w, w)) + b2[:, None]
    return np.asarray(np.einsum("snw,sw->sn", hidden * expit(hidden), W3) + b3)


@cache
def problem(undecided: float = 0.0) -> Any:
    """Rows in two dimensions, a guide and a prior for the bound, and noise for each row."""
    seen = observed(st.Space(a=(0.0, 1.0), b=(0.0, 1.0)), 10, 15, 4, undecided=undecided)
    sample = sample_of(seen, inputs_of(seen, "linear"))
    rng = np.random.default_rng(9)
    prior = rng.normal(size=NET.size), np.full(NET.size, 0.4), 10.0
    return sample, np.stack(some_guide(NET, 1)), prior, rng.standard_normal((10, 7))


@pytest.mark.parametrize("undecided", [0.0, 0.4])
def test_slopes_of_the_bound_are_those_of_finite_differences_with_the_same_noise(undecided: float) -> None:
    sample, guide, prior, noise = problem(undecided)
    with arithmetic("cpu", "float64"):
        loss = partial(_value_and_slopes, Bound(NET, window_of(sample)))
        others = rows_of(sample, "float64"), noise.ravel(), prior
        slopes = np.asarray(loss(guide, *others)[1])
        for index in np.ndindex(*guide.shape):
            step = np.zeros_like(guide)
            step[index] = 1e-6
            above, below = (float(loss(guide + sign * step, *others)[0]) for sign in (1, -1))
            assert slopes[index] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-7)
    assert np.abs(slopes).min() > 0


def test_the_bound_is_the_mean_likelihood_less_the_divergence_for_each_row() -> None:
    """Layer by layer in numpy: a normal for each unit, with the mean and variance that its weights give it."""
    sample, guide, prior, noise = problem()
    (mean, log_deviation), (centre, spread, size) = guide, prior
    ends = np.cumsum([0, 6, 3, 9, 3, 3, 1])
    own, wide = ([each[low:high] for low, high in pairwise(ends)] for each in (mean, np.exp(2 * log_deviation)))
    values = sample.x
    for layer, (shape, columns) in enumerate([((2, 3), slice(0, 3)), ((3, 3), slice(3, 6)), ((3, 1), slice(6, 7))]):
        values = values * expit(values) if layer else values
        middle = values @ own[2 * layer].reshape(shape) + own[2 * layer + 1]
        variance = values**2 @ wide[2 * layer].reshape(shape) + wide[2 * layer + 1]
        values = middle + np.sqrt(variance) * noise[:, columns]
    fit = binom.logpmf(sample.satisfied, sample.trials, ndtr(values[:, 0])).sum() - log_ways(sample)
    q, p = norm(mean, np.exp(log_deviation)), norm(centre, spread)
    cross = 0.5 * ((q.var() + (mean - centre) ** 2) / p.var() + np.log(2 * np.pi * p.var()))  # -E_q[ln p]
    with arithmetic("cpu", "float64"):
        loss, _ = _value_and_slopes(Bound(NET, 0), guide, rows_of(sample, "float64"), noise.ravel(), prior)
    assert -size * float(loss) == pytest.approx(fit - np.sum(cross - q.entropy()), rel=1e-9)


def test_the_divergence_is_the_mean_of_the_log_ratio() -> None:
    _, (mean, log_deviation), (centre, spread, _), _ = problem()
    with arithmetic("cpu", "float64"):
        found = float(divergence(mean, log_deviation, centre, spread))
        assert float(divergence(centre, np.log(spread), centre, spread)) == pytest.approx(0, abs=1e-12)
    drawn = mean + np.exp(log_deviation) * np.random.default_rng(2).standard_normal((40_000, NET.size))
    ratio = norm.logpdf(drawn, mean, np.exp(log_deviation)) - norm.logpdf(drawn, centre, spread)
    totals = ratio.sum(axis=1)
    assert abs(totals.mean() - found) < Z * totals.std() / 200


def test_the_mean_over_all_batches_is_the_bound_of_all_rows() -> None:
    """The likelihood of a batch counts N / batch times, the divergence once."""
    sample, guide, prior, noise = problem()
    with arithmetic("cpu", "float64"):
        loss, batches = partial(_value_and_slopes, Bound(NET, 0), guide), Batches.of(sample, 4, 5, "float64")
        own = noise[[sample.x.tolist().index(row) for row in np.asarray(batches.rows.x).tolist()]]
        whole, slopes = loss(rows_of(sample, "float64"), noise.ravel(), prior)
        windows = [slice(start, start + 4) for start in range(10)]
        parts = [loss(Rows(*(c[rows] for c in batches.rows)), own[rows].ravel(), prior) for rows in windows]
    assert np.mean([value for value, _ in parts]) == pytest.approx(float(whole), rel=1e-12)
    assert np.allclose(np.mean([each for _, each in parts], axis=0), slopes, rtol=1e-9, atol=1e-12)
    assert np.ptp([value for value, _ in parts]) > 0.1


def test_noise_for_each_unit_gives_g_the_law_that_noise_for_each_weight_gives_it() -> None:
    mean, log_deviation = some_guide(NET, 6)
    deviation, rng, count = np.exp(log_deviation), np.random.default_rng(7), 30_000
    for x in (np.array([[0.3, -0.8]]), np.array([[1.0, 1.0]])):
        sampled = silu_output(NET, mean + deviation * rng.standard_normal((count, NET.size)), x)[:, 0]
        noise = rng.standard_normal((count, 7))
        with arithmetic("cpu", "float64"):
            found = np.asarray(_noisy_output(NET, mean, deviation**2, np.repeat(x, count, axis=0), noise))
        assert ks_2samp(found, sampled).pvalue > LEVEL
        pooled = math.sqrt((found.var() + sampled.var()) / count)
        assert abs(found.mean() - sampled.mean()) < Z * pooled
        squares = [(values - values.mean()) ** 2 for values in (found, sampled)]
        apart = math.sqrt(sum(each.var() for each in squares) / count)
        assert abs(squares[0].mean() - squares[1].mean()) < Z * apart


@pytest.mark.parametrize("unit", [0, 1, 2])
@pytest.mark.parametrize("layer", [0, 1])
def test_a_unit_before_activation_has_the_mean_and_the_variance_of_sampled_weights(layer: int, unit: int) -> None:
    """The layers behind it let it through: their weights are 1 and 0 and sure, and leaky ReLU can be undone."""
    net, count, rng = Net(2, 3, "leaky-relu"), 30_000, np.random.default_rng([8, layer, unit])
    mean, log_deviation = some_guide(net, 3)
    variance = np.exp(2 * log_deviation)
    through = [(np.eye(3)[:, [unit]], np.zeros(1))] if layer else [(np.eye(3), np.zeros(3)), (np.eye(3)[:, [unit]], 0)]
    start = {0: 9, 1: 21}[layer]
    mean[start:] = np.concatenate([np.append(matrix.ravel(), bias) for matrix, bias in through])
    variance[start:] = 0
    x = np.array([0.7, -0.4])
    with arithmetic("cpu", "float64"):
        found = np.asarray(_noisy_output(net, mean, variance, np.tile(x, (count, 1)), rng.standard_normal((count, 7))))
    for _ in range(2 - layer):
        found = np.where(found > 0, found, found / 0.01)
    wide = np.sqrt(variance)
    first = np.einsum("d,sdw->sw", x, (mean[:6] + wide[:6] * rng.standard_normal((count, 6))).reshape(-1, 2, 3))
    first += mean[6:9] + wide[6:9] * rng.standard_normal((count, 3))
    if layer == 0:
        middle, spread = x @ mean[:6].reshape(2, 3) + mean[6:9], x**2 @ variance[:6].reshape(2, 3) + variance[6:9]
        assert kstest((found - middle[unit]) / math.sqrt(spread[unit]), "norm").pvalue > LEVEL
        sampled = first[:, unit]
    else:
        hidden = np.where(first > 0, first, 0.01 * first)
        second = (mean[9:18] + wide[9:18] * rng.standard_normal((count, 9))).reshape(-1, 3, 3)
        bias = mean[18:21] + wide[18:21] * rng.standard_normal((count, 3))
        sampled = (np.einsum("sw,swv->sv", hidden, second) + bias)[:, unit]
    assert abs(found.mean() - sampled.mean()) < Z * math.sqrt((found.var() + sampled.var()) / count)
    squares = [(values - values.mean()) ** 2 for values in (found, sampled)]
    assert abs(squares[0].mean() - squares[1].mean()) < Z * math.sqrt(sum(each.var() for each in squares) / count)


def asked_of_training(recipe: SVIBNN, monkeypatch: pytest.MonkeyPatch) -> tuple[BNNPosterior, dict[str, Any]]:
    """A fit, and what it asked of each training: the start, what is fixed, the course, and what came out."""
    train, asked = Trainer.train, dict[str, Any]()

    def noticed(self: Trainer, name: str, loss: Any, start: Any, batches: Any, fixed: Any, course: Any, seed: Any):
        found = train(self, name, loss, start, batches, fixed, course, seed)
        asked[name] = start, fixed, course, found.parameters
        return found

    monkeypatch.setattr(Trainer, "train", noticed)
    return recipe.fit(SEEN, seed=3), asked


def test_the_prior_is_centred_at_the_trained_network_where_the_guide_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, asked = asked_of_training(replace(QUICK, prior_scale=1.5), monkeypatch)
    alone = asked["net"][-1]
    (mean, log_deviation), (centre, spread, size), course, _ = asked["guide"]
    assert np.array_equal(centre, alone)
    assert np.array_equal(posterior.centre, alone[None])
    assert np.allclose(spread, 1.5 / 3)
    assert size == 20
    assert np.array_equal(mean, alone)
    assert np.allclose(np.exp(log_deviation), 0.2 * 1.5 / 3)
    assert (course.steps, course.rate, course.rest) == (42, 0.005, 0.0)
    assert (asked["net"][2].steps, asked["net"][2].rate, asked["net"][2].rest) == (30, 0.015, 0.0)
    assert 0 < np.abs(posterior.mean - alone).max() < 42 * 0.005 * 1.1  # a step of Adam goes about as far as its rate


@pytest.mark.parametrize(("decay", "taken"), [(None, 1.0), (0.0, 0.0), (7.5, 7.5)])
def test_the_network_is_trained_under_the_weight_decay(
    decay: float | None, taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, asked = asked_of_training(replace(QUICK, weight_decay=decay), monkeypatch)
    assert float(asked["net"][1]) == pytest.approx(taken / 20)


def test_the_record_has_the_bound_of_each_batch_with_the_ways_of_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With almost sure weights the noise says nothing, and the first bound can be reckoned for every first batch."""
    monkeypatch.setattr(svi_bnn, "_FIRST_SPREAD", 1e-5)
    posterior = QUICK.fit(SEEN, seed=3)
    record, size = posterior.record, posterior.net.size
    assert record.objective == "elbo"
    assert record.steps.tolist() == list(range(1, 43))
    x = posterior.inputs.unit(SEEN.theta)
    f = ndtr(silu_output(posterior.net, posterior.centre, x)[0])
    logs = SEEN.satisfied * np.log(f) + (SEEN.trials - SEEN.satisfied) * np.log1p(-f)
    ways = binom.logpmf(SEEN.satisfied, SEEN.trials, f).sum() - logs.sum()
    with arithmetic("cpu", "float64"):
        order = np.asarray(Batches.of(sample_of(SEEN, posterior.inputs), 8, 3, "float64").rows.x)
    logs = logs[[x.tolist().index(row) for row in order.tolist()]]
    kl = size * (0.5 * (1e-10 - 1) - math.log(1e-5))
    possible = np.array([ways + 20 / 8 * logs[start : start + 8].sum() - kl for start in range(20)])
    assert np.abs(possible - record.values[0]).min() < 0.01
    assert np.ptp(possible) > 10


def test_epochs_are_as_many_steps_as_read_all_rows() -> None:
    """To read 20 rows by 8 takes three steps, and four rows are read twice."""
    assert_same(replace(QUICK, steps=None, epochs=14, pretraining=10).fit(SEEN, seed=3), fitted())


def test_rates_stay_as_they_are_without_cooling(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = asked_of_training(replace(QUICK, cooling=False), monkeypatch)
    assert asked["net"][2].rest == asked["guide"][2].rest == 1.0


def test_the_faithful_recipe_is_that_of_the_paper() -> None:
    """d-30-30-1, leaky ReLU, sigmoid; 500 epochs at .01, then 2000 at .001, by 100; sd 1/m; 1000 samples."""
    recipe = SVIBNN.faithful()
    assert (recipe.width, recipe.activation, recipe.link) == (30, "leaky-relu", "logit")
    assert (recipe.pretraining, recipe.pretraining_rate, recipe.epochs, recipe.rate) == (500, 0.01, 2000, 0.001)
    assert (recipe.steps, recipe.batch, recipe.prior_scale, recipe.number_of_draws) == (None, 100, 1.0, 1000)
    assert recipe.guides == 1
    assert (recipe.cooling, recipe.weight_decay, recipe.inputs) == (False, 0.0, "linear")


@given(some.floats(0.005, 0.5))
def test_the_draws_are_the_fewest_that_the_inequality_of_dvoretzky_kiefer_and_wolfowitz_asks_for(error: float) -> None:
    count = SVIBNN(quantile_error=error).number_of_draws
    assert 2 * math.exp(-2 * count * error**2) <= 0.01 * (1 + 1e-9)
    assert count == 1 or 2 * math.exp(-2 * (count - 1) * error**2) > 0.01 * (1 - 1e-9)
    assert SVIBNN(quantile_error=error, draws=17).number_of_draws == 17


def test_the_draws_kept_are_of_the_belief() -> None:
    posterior = replace(QUICK, draws=2000).fit(SEEN, seed=3)
    assert posterior.draws.shape == (2000, posterior.net.size)
    assert posterior.mean.tobytes() == fitted().mean.tobytes()
    standard = (posterior.draws.astype(float) - posterior.mean) / posterior.spread
    assert kstest(standard.ravel(), "norm").pvalue > LEVEL
    lowest, highest = chi2.ppf([LEVEL / 100, 1 - LEVEL / 100], 2000)
    totals = np.sum(standard**2, axis=0)
    assert lowest < totals.min() < totals.max() < highest


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999])
def test_bounds_are_quantiles_of_the_draws_that_were_kept(level: float) -> None:
    """The k-th of n from either end, k = ⌊(n + 1)(1 - level)/2⌋; a new f falls between with the level, or more."""
    posterior = replace(fitted(), floor=0.0)
    x = 2 * (GRID.theta - 0.01) / 0.99 - 1
    f = np.sort(ndtr(silu_output(posterior.net, posterior.draws, x)), axis=0)
    k = max(1, int(62 * (1 - level) / 2))
    prediction = posterior.predict(GRID, level=level)
    assert np.allclose(prediction.lower, f[k - 1], rtol=1e-9)
    assert np.allclose(prediction.upper, f[-k], rtol=1e-9)
    assert np.allclose(prediction.mean, f.mean(axis=0), rtol=1e-9)
    assert np.allclose(prediction.std, f.std(axis=0), rtol=1e-9)
    assert k == 1 or (62 - 2 * k) / 62 >= level


def test_networks_see_parameters_on_the_scale_that_was_asked_for() -> None:
    posterior = replace(QUICK, inputs="log").fit(SEEN, seed=3)
    x = 2 * np.log(GRID.theta / 0.01) / math.log(100) - 1
    f = ndtr(silu_output(posterior.net, posterior.draws, x))
    assert np.allclose(posterior.predict(GRID).mean, f.mean(axis=0), rtol=1e-9)


def test_one_network_is_its_own_quantile() -> None:
    prediction = replace(QUICK, draws=1, floor=False).fit(SEEN, seed=3).predict(GRID)
    assert np.array_equal(prediction.lower, prediction.upper)
    assert np.allclose(prediction.mean, prediction.lower)
    assert not prediction.std.any()


def test_prediction_draws_nothing_and_needs_no_company() -> None:
    posterior = fitted()
    one, again = posterior.predict(GRID), posterior.predict(GRID)
    for name in ("mean", "std", "lower", "upper"):
        assert getattr(one, name).tobytes() == getattr(again, name).tobytes()
        alone = [getattr(posterior.predict(GRID.theta[[row]]), name)[0] for row in range(len(GRID))]
        assert np.allclose(alone, getattr(one, name), rtol=1e-5)


def test_prediction_in_blocks_is_prediction_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    points = LINE.grid(150)
    whole = fitted().predict(points)
    monkeypatch.setattr(network_posterior, "_ROWS", 64)
    parts = fitted().predict(points)
    for name in ("mean", "std", "lower", "upper"):
        assert np.allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9)


def test_new_draws_have_the_law_of_networks_with_sampled_weights() -> None:
    posterior, count = fitted(), 4000
    noise = np.random.default_rng(5).standard_normal((count, posterior.net.size))
    x = posterior.inputs.unit(GRID.theta)
    wanted = ndtr(silu_output(posterior.net, posterior.mean + posterior.spread * noise, x))
    found = posterior.sample(GRID, count, seed=6)
    for column in (0, 4, 8):
        assert ks_2samp(found[:, column], wanted[:, column]).pvalue > LEVEL
    apart = [each[:, 0] - each[:, 8] for each in (found, wanted)]  # and jointly
    assert ks_2samp(*apart).pvalue > LEVEL


def test_numbers_are_as_wide_as_asked_for() -> None:
    double, single = fitted(), replace(fitted(), recipe=replace(QUICK, precision="float32"))
    for name in ("centre", "mean", "spread", "draws"):
        wide, narrow = getattr(double, name), getattr(single, name)
        assert (wide.dtype, narrow.dtype) == (np.float64, np.float32)
        assert not wide.flags.writeable
        assert (wide != narrow).mean() > 0.9  # the digits are there because they were reckoned
    assert 1e-10 < np.abs(double.predict(GRID).mean - single.predict(GRID).mean).max() < 1e-5
    assert jnp.ones(1).dtype == jnp.float32


def test_the_distance_from_standard_normal_weights_is_the_mean_of_the_log_ratio() -> None:
    posterior = fitted()
    q = norm(posterior.mean, posterior.spread)
    cross = 0.5 * np.sum(posterior.spread**2 + posterior.mean**2 + math.log(2 * math.pi))
    assert posterior.kl() == pytest.approx(cross - q.entropy().sum(), rel=1e-12)
    drawn = q.rvs((40_000, posterior.net.size), random_state=np.random.default_rng(1))
    ratio = (q.logpdf(drawn) - norm.logpdf(drawn)).sum(axis=1)
    assert abs(ratio.mean() - posterior.kl()) < Z * ratio.std() / 200


def test_a_scale_that_the_data_chose_costs_the_logarithm_of_two() -> None:
    posterior = fitted()
    chosen = replace(posterior, recipe=replace(QUICK, inputs="auto"))
    assert chosen.kl() == pytest.approx(posterior.kl() + math.log(2), rel=1e-12)
    space = st.Space(beta=(0.0, 1.0))
    no_choice = replace(chosen, training=replace(posterior.training, observations=observed(space, 20, 30, 1)))
    assert no_choice.kl() == posterior.kl()


@pytest.mark.parametrize("patience", [1, 17, 30])
def test_ctrl_c_before_the_guide_is_passed_on_and_a_checkpoint_goes_on(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)  # a step at a time
    file, watcher = tmp_path / "half.safetensors", Watcher(patience)
    with pytest.raises(KeyboardInterrupt):
        QUICK.fit(SEEN, seed=3, progress=watcher, checkpoint=file)
    assert watcher.told == [("svi-bnn", 72, "steps")]
    assert watcher.finished == 1
    assert_same(QUICK.fit(SEEN, seed=3, checkpoint=file), fitted())


@pytest.mark.parametrize("patience", [31, 52, 69])
def test_ctrl_c_in_the_guide_gives_a_marked_posterior_and_a_checkpoint_goes_on(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)
    file, watcher = tmp_path / "half.safetensors", Watcher(patience)
    stopped = QUICK.fit(SEEN, seed=3, progress=watcher, checkpoint=file)
    assert watcher.told == [("svi-bnn", 72, "steps")]
    assert watcher.finished == 1
    assert stopped.record.interrupted
    assert not stopped.record.converged
    assert stopped.record.verdict.startswith(f"interrupted after {patience - 30} of 42 steps: fit again")
    assert stopped.record.verdict in repr(stopped)
    assert stopped.record.steps[-1] == patience - 30
    assert stopped.record.values.tobytes() == fitted().record.values[: patience - 30].tobytes()
    assert stopped.centre.tobytes() == fitted().centre.tobytes()
    assert np.isfinite(stopped.predict(GRID).width).all()
    assert_same(QUICK.fit(SEEN, seed=3, checkpoint=file), fitted())


def assert_same(one: BNNPosterior, other: BNNPosterior) -> None:
    for name in ("centre", "mean", "spread", "draws"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert one.record.values.tobytes() == other.record.values.tobytes()
    assert one.record.verdict == other.record.verdict
    assert not one.record.interrupted


@pytest.mark.parametrize("change", [{"rate": 0.004}, {"width": 4}, {"inputs": "log"}, {"precision": "float32"}])
def test_the_checkpoint_of_another_recipe_is_refused_but_not_of_another_device(
    change: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "fit.safetensors"
    QUICK.fit(SEEN, seed=3, checkpoint=file)
    with pytest.raises(InputError, match=r"fit\.safetensors is a checkpoint of another fit"):
        replace(QUICK, **change).fit(SEEN, seed=3, checkpoint=file)
    with pytest.raises(InputError, match=r"fit\.safetensors is a checkpoint of another fit"):
        QUICK.fit(SEEN, seed=4, checkpoint=file)
    assert_same(replace(QUICK, device="cpu").fit(SEEN, seed=3, checkpoint=file), fitted())


@pytest.mark.parametrize(
    ("values", "done", "verdict"),
    [
        (np.full(100, -50.0), 100, "converged"),
        (np.linspace(-900, -50, 100), 100, "the ELBO still rose by 215 in the last quarter: raise"),
        (np.linspace(-57, -50, 100), 100, "converged"),  # 1.8 nats
        (np.linspace(-59, -50, 100), 100, "the ELBO still rose by 2.27 in"),
        (np.full(19, -50.0), 100, "100 steps are too few to tell whether the ELBO has settled: raise steps"),
        (np.full(40, -50.0), 40, "interrupted after 40 of 100 steps"),
    ],
    ids=["flat", "rising", "hardly", "a little", "short", "interrupted"],
)
def test_the_verdict_says_whether_the_bound_has_settled(values: Any, done: int, verdict: str) -> None:
    assert svi_bnn._verdict(values, done, 100, 20, False).startswith(verdict)


def test_noise_is_no_trend() -> None:
    values = np.random.default_rng(8).normal(-500, 40, 100)
    assert svi_bnn._verdict(values, 10_000, 10_000, 20, False) == "converged"
    assert "still rose" in svi_bnn._verdict(values + np.linspace(0, 1000, 100), 10_000, 10_000, 20, False)


LONG = replace(QUICK, steps=3000, rate=0.02)


@cache
def settled() -> float:
    """The ELBO that a long fit reaches, and says that it has."""
    record = LONG.fit(SEEN, seed=3).record
    assert record.converged
    return float(record.values[-25:].mean())


def test_a_fit_whose_bound_still_rises_says_so() -> None:
    record = replace(LONG, rate=1e-4, cooling=False).fit(SEEN, seed=3).record
    assert record.values[-25:].mean() < settled() - 5
    assert record.verdict.startswith("the ELBO still rose by")
    assert record.verdict.endswith(" in the last quarter: raise steps")
    assert not record.converged


def test_a_fit_that_cooled_down_too_soon_says_so() -> None:
    record = replace(LONG, rate=5e-5).fit(SEEN, seed=3).record
    assert record.values[-25:].mean() < settled() - 20
    assert not record.converged


def test_a_fit_that_runs_away_says_what_to_do() -> None:
    with pytest.raises(InputError, match="the fit diverged; lower rate, which is 1e"):
        replace(QUICK, rate=1e300, pretraining_rate=1e300).fit(SEEN, seed=1)


@pytest.mark.skipif(any(device.platform == "gpu" for device in jax.devices()), reason="there is a GPU here")
def test_a_device_that_is_missing_stops_a_fit_but_no_prediction() -> None:
    with pytest.raises(InputError, match="JAX finds no gpu here"):
        replace(QUICK, device="gpu").fit(SEEN, seed=1)
    elsewhere = replace(fitted(), recipe=replace(QUICK, device="gpu"))
    assert elsewhere.predict(GRID).mean.tobytes() == fitted().predict(GRID).mean.tobytes()


@pytest.mark.parametrize("name", ["centre", "mean", "spread", "draws"])
def test_what_is_no_set_of_weights_is_refused(name: str) -> None:
    own = getattr(fitted(), name)
    for wrong in (own[..., :-1], own[None], np.full_like(own, np.nan)):
        with pytest.raises(InputError, match=f"{name} is not a set of weights of Net"):
            replace(fitted(), **{name: wrong})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width is a whole number from 1 up, not 0"),
        ({"pretraining": 2.5}, "pretraining is a whole number from 1 up, not 2.5"),
        ({"batch": True}, "batch is a whole number from 1 up, not True"),
        ({"draws": -3}, "draws is a whole number from 1 up, not -3"),
        ({"epochs": 10}, "give steps or epochs, and set the other to None"),
        ({"steps": None}, "give steps or epochs, and set the other to None"),
        ({"rate": 0}, "rate is a number above 0, not 0"),
        ({"quantile_error": math.nan}, "quantile_error is a number above 0, not nan"),
        ({"prior_scale": "wide"}, "prior_scale is a number above 0, not 'wide'"),
        ({"weight_decay": -1.0}, "weight_decay is a number from 0 up, not -1.0"),
        ({"cooling": "yes"}, "cooling is True or False, not 'yes'"),
        ({"activation": "relu"}, "activation is 'silu', 'leaky-relu' or 'tanh', not 'relu'"),
        ({"link": "probability"}, "link is 'probit' or 'logit', not 'probability'; "),
        ({"inputs": "liner"}, "inputs is 'auto', 'log' or 'linear', not 'liner'; did you mean linear?"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        SVIBNN(**settings)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(InputError, match="seed is a whole number from 0 up"):
        QUICK.fit(SEEN, seed=seed)


def test_the_prior_of_a_layer_may_have_one_over_its_own_width_as_deviation():
    net = Net(2, 30)
    hidden, output = (2 + 1) * 30 + (30 + 1) * 30, 30 + 1
    every = svi_bnn._prior_spread(replace(SVIBNN.faithful(), layer_prior=False), net)
    layers = svi_bnn._prior_spread(SVIBNN.faithful(), net)
    assert every.tolist() == [np.float32(1 / 30)] * (hidden + output)
    assert layers.tolist() == [np.float32(1 / 30)] * hidden + [1.0] * output


def test_the_papers_presets_differ_in_what_the_text_and_the_scripts_say():
    text, scripts = SVIBNN.faithful(), SVIBNN.as_run()
    assert (text.epochs, text.rate, text.scale_likelihood) == (2000, 0.001, True)
    assert (scripts.epochs, scripts.rate, scripts.scale_likelihood) == (5000, 0.01, False)
    assert replace(scripts, epochs=2000, rate=0.001, scale_likelihood=True) == text


def test_an_unscaled_likelihood_counts_the_prior_once_for_every_batch():
    """It is the fit to one batch's worth of data: with all rows in one batch there is no difference, with a tenth of
    them in each the intervals are wider by about the root of ten where data and not the prior decide."""
    seen = observed(LINE, 80, 30, 1)
    recipe = replace(QUICK, steps=3000, pretraining=2000, rate=0.01, batch=80, draws=400)
    scaled, unscaled = (replace(recipe, scale_likelihood=how).fit(seen, seed=3) for how in (True, False))
    assert np.array_equal(scaled.spread, unscaled.spread)
    few = [replace(recipe, batch=8, scale_likelihood=how).fit(seen, seed=3) for how in (True, False)]
    narrow, wide = (posterior.predict(GRID).width.mean() for posterior in few)
    assert wide > 1.5 * narrow


# A mixture of guides.


@cache
def mixed() -> BNNPosterior:
    return replace(QUICK, guides=3, draws=600).fit(SEEN, seed=3)


def test_the_first_guide_of_a_mixture_is_that_of_a_fit_with_one() -> None:
    posterior = mixed()
    assert posterior.mean.shape == (3, posterior.net.size)
    assert posterior.mean[0].tobytes() == fitted().mean.tobytes()
    assert np.abs(np.diff(posterior.mean, axis=0)).min(axis=1).max() > 0
    assert len(posterior.record.values) == len(fitted().record.values)


def test_the_draws_of_a_mixture_come_from_its_guides_in_equal_parts() -> None:
    posterior = mixed()
    for place in range(3):
        standard = (posterior.draws[place::3].astype(float) - posterior.mean[place]) / posterior.spread[place]
        assert kstest(standard.ravel(), "norm").pvalue > LEVEL
    one = replace(posterior, mean=posterior.mean[:1], spread=posterior.spread[:1], centre=posterior.centre[:1])
    parts = [
        replace(one, mean=m[None], spread=s[None]).kl() for m, s in zip(posterior.mean, posterior.spread, strict=True)
    ]
    assert posterior.kl() == pytest.approx(np.mean(parts))


def test_new_draws_of_a_mixture_have_the_law_of_those_that_are_kept() -> None:
    kept = replace(mixed(), floor=0.0)
    found = kept.sample(GRID, 4000, seed=6)
    x = kept.inputs.unit(GRID.theta)
    rng = np.random.default_rng(8)
    which = rng.integers(3, size=4000)
    weights = kept.mean[which] + kept.spread[which] * rng.standard_normal((4000, kept.net.size))
    wanted = ndtr(silu_output(kept.net, weights, x))
    for column in (0, 4, 8):
        assert ks_2samp(found[:, column], wanted[:, column]).pvalue > LEVEL


def test_a_mixture_is_read_back_from_its_file(tmp_path: Path) -> None:
    mixed().save(tmp_path / "mixed.safetensors")
    assert_same(st.load(tmp_path / "mixed.safetensors"), mixed())


def test_many_points_get_a_mixture_and_larger_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svi_bnn, "MANY_POINTS", 20)
    monkeypatch.setattr(svi_bnn, "BATCH_OF_MANY", 8)
    assert_same(replace(QUICK, batch=None).fit(SEEN, seed=3), replace(QUICK, batch=8, guides=4).fit(SEEN, seed=3))


@pytest.mark.parametrize("patience", [80, 130])  # in the second network, and in its guide
def test_ctrl_c_leaves_the_guides_that_were_found_and_a_checkpoint_goes_on(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)
    file, recipe = tmp_path / "half.safetensors", replace(QUICK, guides=3, draws=600)
    stopped = recipe.fit(SEEN, seed=3, progress=Watcher(patience), checkpoint=file)
    assert stopped.record.interrupted
    assert stopped.record.verdict.startswith("interrupted after 42 of 126 steps")
    assert stopped.mean.tobytes() == fitted().mean.tobytes()
    assert_same(recipe.fit(SEEN, seed=3, checkpoint=file), mixed())
