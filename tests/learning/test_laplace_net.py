"""The ensemble with Laplace approximations: its curvature, its belief and its bands against plain numpy."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom, chi2, kstest, norm

from known_functions import LINE, PLANE, observed
from sateen.core.errors import InputError
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.networks import laplace_net
from sateen.learning.networks import posterior as network_posterior
from sateen.learning.networks import training as network_training
from sateen.learning.networks.laplace_net import Belief, believed, curvature
from sateen.learning.networks.network import Net, arithmetic, window_of
from sateen.learning.networks.posterior import LaplacePosterior
from sateen.learning.networks.recipes import LaplaceNet
from sateen.learning.networks.training import prior_precision
from sateen.learning.settings import Link
from watchers import Watcher

FloatArray = npt.NDArray[np.float64]
LEVEL = 1e-6
QUICK = LaplaceNet(nets=3, width=3, steps=50, batch=8, rate=0.05, draws=40, inputs="linear", precision="float64")
SEEN = observed(LINE, 20, 30, 1)
GRID = LINE.grid(11)


@cache
def fitted() -> LaplacePosterior:
    return QUICK.fit(SEEN, seed=3)


def plain_output(net: Net, weights: FloatArray, x: FloatArray) -> FloatArray:
    """g of a silu network in plain numpy."""
    w, d = net.width, net.inputs
    W1, b1, W2, b2, W3, b3 = (weights[low:high] for low, high in pairwise(np.cumsum([0, d * w, w, w * w, w, w, 1])))
    hidden = x @ W1.reshape(d, w) + b1
    hidden = hidden * expit(hidden) @ W2.reshape(w, w) + b2
    return np.asarray(hidden * expit(hidden) @ W3 + b3[0])


def plain_jacobian(net: Net, weights: FloatArray, x: FloatArray) -> FloatArray:
    """Its derivatives by the weights, by differences."""
    ends = [[plain_output(net, weights + sign * 1e-5 * unit, x) for unit in np.eye(net.size)] for sign in (1, -1)]
    return np.asarray((np.array(ends[0]) - np.array(ends[1])).T / 2e-5)


def plain_curvature(net: Net, weights: FloatArray, sample: Sample) -> FloatArray:
    """Σ M f'² / (f (1 - f)) J Jᵀ, the generalised Gauss-Newton matrix of a binomial likelihood."""
    g, J = plain_output(net, weights, sample.x), plain_jacobian(net, weights, sample.x)
    if net.link == "probit":
        known = sample.trials * norm.pdf(g) ** 2 / (ndtr(g) * ndtr(-g))
    else:
        known = sample.trials * expit(g) * expit(-g)
    return np.asarray(J.T @ (known[:, None] * J))


def plain_log_posterior(net: Net, weights: FloatArray, sample: Sample, decay: float) -> float:
    f = ndtr(plain_output(net, weights, sample.x))
    fit = sample.satisfied @ np.log(f) + (sample.trials - sample.satisfied) @ np.log1p(-f)
    return float(fit - 0.5 * decay * weights @ weights)


def drawn(points: int = 20, undecided: float = 0.0) -> Sample:
    seen = observed(PLANE, points, 15, 4, undecided=undecided)
    return sample_of(seen, inputs_of(seen, "log"))


def some_weights(net: Net, seed: int = 2) -> FloatArray:
    return 0.7 * np.random.default_rng(seed).normal(size=net.size)


def belief(
    net: Net, weights: FloatArray, sample: Sample, decay: float = 1.5, rows: int = 10_000, draws: int = 5
) -> Any:
    with arithmetic("cpu", "float64"):
        return believed(net, weights, sample, decay, rows, draws, np.random.default_rng(7))


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_the_curvature_is_that_of_an_explicit_jacobian(link: Link) -> None:
    net = Net(2, 2, "silu", link)
    with arithmetic("cpu", "float64"):
        found = curvature(net, some_weights(net), drawn(), 0)
    assert np.allclose(found, plain_curvature(net, some_weights(net), drawn()), rtol=1e-6, atol=1e-6)


def test_the_curvature_is_the_hessian_where_the_network_is_linear_in_its_weights() -> None:
    """So it is in the last layer; with logit, where Fisher's information is the second derivative, that is exact."""
    net, sample = Net(2, 2, "silu", "logit"), drawn()
    weights, last = some_weights(net), slice(-3, None)

    def loss(move: FloatArray) -> float:
        g = plain_output(net, np.concatenate([weights[:-3], weights[last] + move]), sample.x)
        return float(sample.trials @ np.logaddexp(0, g) - sample.satisfied @ g)

    step = 1e-3 * np.eye(3)
    hessian = [[loss(a + b) - loss(a - b) - loss(b - a) + loss(-a - b) for a in step] for b in step]
    with arithmetic("cpu", "float64"):
        found = curvature(net, weights, sample, 0)[last, last]
    assert np.allclose(found, np.array(hessian) / 4e-6, rtol=1e-4)


def test_undecided_runs_bend_the_likelihood_less() -> None:
    net, sample = Net(2, 2), drawn(undecided=0.5)
    with arithmetic("cpu", "float64"):
        less = curvature(net, some_weights(net), sample, window_of(sample))
        more = curvature(
            net, some_weights(net), Sample(sample.x, sample.satisfied, 0 * sample.trials, sample.trials), 0
        )
    assert np.linalg.eigvalsh(more - less).min() > -1e-9
    assert np.trace(less) < 0.9 * np.trace(more)


@pytest.mark.parametrize("chunk", [1, 7, 20, 64])
def test_rows_in_chunks_bend_as_all_rows_do(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last chunk is filled up with rows without a run, which tell nothing."""
    net, sample = Net(2, 2), drawn()
    monkeypatch.setattr(laplace_net, "_CHUNK", chunk)
    with arithmetic("cpu", "float64"):
        assert np.allclose(
            curvature(net, some_weights(net), sample, 0), plain_curvature(net, some_weights(net), sample)
        )


def test_draws_have_the_covariance_of_the_inverse_curvature() -> None:
    """|Fᵀ v|² is (vᵀ A⁻¹ v) times a chi-square over its degrees of freedom, whatever the direction v."""
    net, sample, draws = Net(2, 2), drawn(), 5000
    found = belief(net, some_weights(net), sample, draws=draws)
    A = plain_curvature(net, some_weights(net), sample) + 1.5 * np.eye(net.size)
    directions = [*np.eye(net.size), *np.linalg.eigh(A)[1].T, *np.random.default_rng(1).normal(size=(10, net.size))]
    lowest, highest = chi2.ppf([LEVEL / len(directions), 1 - LEVEL / len(directions)], draws)
    for v in directions:
        assert lowest < draws * np.sum((found.factor.T @ v) ** 2) / (v @ np.linalg.solve(A, v)) < highest


def test_effective_weights_are_those_that_the_counts_bend_more_than_the_prior() -> None:
    net, sample = Net(2, 2), drawn()
    bends = np.linalg.eigvalsh(plain_curvature(net, some_weights(net), sample)).clip(0)
    for decay in (0.1, 1.5, 40.0):
        found = belief(net, some_weights(net), sample, decay)
        assert found.effective == pytest.approx(np.sum(bends / (bends + decay)), rel=1e-5)


def test_the_gain_is_that_of_a_newton_step() -> None:
    """Half of gᵀ A⁻¹ g; where the log posterior density is as good as a parabola, it is what is really gained."""
    net, sample = Net(2, 2), drawn()
    weights = some_weights(net)
    ends = [
        [plain_log_posterior(net, weights + sign * 1e-6 * e, sample, 1.5) for e in np.eye(net.size)] for sign in (1, -1)
    ]
    slope = (np.array(ends[0]) - np.array(ends[1])) / 2e-6
    A = plain_curvature(net, weights, sample) + 1.5 * np.eye(net.size)
    assert belief(net, weights, sample).gain == pytest.approx(0.5 * slope @ np.linalg.solve(A, slope), rel=1e-4)


def test_few_rows_stand_for_all() -> None:
    """With rows that are all alike, any few of them, scaled, bend as all do; the slope is that of all rows."""
    one, net = drawn(1), Net(2, 2)
    sample = one[np.zeros(30, int)]
    whole, few = (belief(net, some_weights(net), sample, rows=rows) for rows in (30, 4))
    assert few.effective == pytest.approx(whole.effective, rel=1e-9)
    assert few.gain == pytest.approx(whole.gain, rel=1e-9)


def test_few_rows_are_drawn_at_random_and_not_the_first() -> None:
    net, sample = Net(2, 2), drawn()
    first = belief(net, some_weights(net), sample[:4]).effective
    with arithmetic("cpu", "float64"):
        some = [
            believed(net, some_weights(net), sample, 1.5, 4, 5, np.random.default_rng(seed)).effective
            for seed in range(4)
        ]
    assert len({*some, first}) == 5


def test_a_curvature_that_rounding_made_indefinite_still_has_a_root() -> None:
    summed = np.diag([1e6, 1.0, -1e-3])
    root = laplace_net._root(summed, 1e-4)
    assert np.isfinite(root).all()
    assert np.allclose(root @ root.T, summed + np.eye(3) * (root @ root.T)[1, 1] - np.eye(3), rtol=1e-9)
    assert (root @ root.T)[1, 1] - 1 < 1e-6 * 1e6 + 1e-3
    assert np.allclose(laplace_net._root(np.diag([4.0, 9.0]), 1e-9), np.diag([2.0, 3.0]))


def moments(posterior: LaplacePosterior, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """f, φ and its variance for each network of the posterior, by numpy alone."""
    g = np.array([plain_output(posterior.net, own, x) for own in posterior.weights])
    J = [plain_jacobian(posterior.net, own, x) for own in posterior.weights]
    f = ndtr(g)
    slope = norm.pdf(g) / (2 * np.sqrt(f * (1 - f)))  # of arcsin √f
    variance = [np.sum((own @ factor) ** 2, axis=1) for own, factor in zip(J, posterior.factors, strict=True)]
    return f, np.arcsin(np.sqrt(f)), slope**2 * np.array(variance)


@pytest.mark.parametrize("nets", [1, 3])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_band_is_normal_on_the_arcsine_scale_around_the_plug_in_mean(nets: int, level: float) -> None:
    """Its variance: the mean of the networks' own, theirs among each other, and the misfit."""
    whole = replace(fitted(), floor=0.0)
    posterior = replace(whole, weights=whole.weights[:nets], factors=whole.factors[:nets])
    f, phi, variance = moments(posterior, 2 * (GRID.theta - 0.01) / 0.99 - 1)
    mean = f.mean(axis=0)  # of the networks as they are; nothing is integrated
    between = sum((each - phi.mean(axis=0)) ** 2 for each in phi) / max(nets - 1, 1)
    deviation = np.sqrt(variance.mean(axis=0) + between + posterior.misfit)
    prediction = posterior.predict(GRID, level=level)
    assert np.allclose(prediction.mean, mean, rtol=1e-9)
    reach = norm.ppf((1 + level) / 2) * deviation
    lower, upper = np.arcsin(np.sqrt(mean)) - reach, np.arcsin(np.sqrt(mean)) + reach
    assert np.allclose(prediction.lower, np.where(lower > 0, np.sin(lower) ** 2, 0), rtol=1e-6, atol=1e-12)
    assert np.allclose(prediction.upper, np.where(upper < np.pi / 2, np.sin(upper) ** 2, 1), rtol=1e-6)
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    values = np.sin(np.arcsin(np.sqrt(mean))[:, None] + deviation[:, None] * z) ** 2
    spread = np.sqrt(values**2 @ weights - (values @ weights) ** 2)
    assert np.allclose(prediction.std, spread, rtol=1e-6)


def test_the_misfit_is_what_the_effective_weights_leave_free_for_each_run() -> None:
    posterior, sample = fitted(), sample_of(SEEN, fitted().inputs)
    bends = [np.linalg.eigvalsh(plain_curvature(posterior.net, own, sample)).clip(0) for own in posterior.weights]
    effective = np.mean([np.sum(own / (own + 1.0)) for own in bends])
    assert posterior.misfit == pytest.approx(effective / (4 * 20 * 30), rel=1e-6)


def test_where_networks_saturate_the_mean_is_theirs_and_the_band_reaches_the_end() -> None:
    """The trap: integrated over g, whose variance explodes there, the mean would leave 0 or 1."""
    whole = fitted()
    for bias, end in ((8.0, 1.0), (-8.0, 0.0)):
        weights = whole.weights.copy()
        weights[:, -1] += bias
        prediction = replace(whole, weights=weights, factors=100 * whole.factors).predict(GRID)
        assert np.abs(prediction.mean - end).max() < 1e-6
        assert (np.where(end, prediction.upper, prediction.lower) == end).all()


def test_draws_are_networks_moved_by_the_factor_and_by_one_misfit_for_all_points() -> None:
    whole = replace(fitted(), floor=0.0)
    posterior = replace(whole, weights=whole.weights[:1], factors=0.3 * whole.factors[:1], misfit=4e-4)
    _, phi, variance = moments(posterior, posterior.inputs.unit(GRID.theta))
    found = np.arcsin(np.sqrt(posterior.sample(GRID, 6000, seed=2)))
    inside = [column for column in range(11) if 0.2 < phi[0, column] < np.pi / 2 - 0.2]
    assert len(inside) > 5
    for column in inside:
        standard = (found[:, column] - phi[0, column]) / math.sqrt(variance[0, column] + 4e-4)
        assert kstest(standard, "norm").pvalue > LEVEL / len(inside)
    sure = replace(posterior, factors=0 * whole.factors[:1])
    moved = (np.arcsin(np.sqrt(sure.sample(GRID, 50, seed=2))) - phi)[:, inside]
    assert np.ptp(moved, axis=1).max() < 1e-9
    assert moved.std() > 0.01


def test_every_network_is_drawn_equally_often() -> None:
    whole = fitted()
    apart = np.repeat(whole.weights[:1], 3, axis=0)
    apart[:, -1] += [-3.0, 0.0, 3.0]
    sure = replace(whole, weights=apart, factors=0 * whole.factors, misfit=0.0)
    f = sure.sample({"beta": 0.5}, 3000, seed=5)[:, 0]
    values, counts = np.unique(f.round(9), return_counts=True)
    x = sure.inputs.unit([[0.5]])
    assert np.allclose(values, sorted(ndtr(plain_output(sure.net, own, x))[0] for own in apart), atol=1e-8)
    assert binom.cdf(counts, 3000, 1 / 3).min() > LEVEL
    assert binom.sf(counts, 3000, 1 / 3).min() > LEVEL


def test_prediction_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = LINE.grid(150)

    def found() -> list[FloatArray]:
        prediction = fitted().predict(points)
        bounds = [prediction.mean, prediction.std, prediction.lower, prediction.upper]
        return [*bounds, fitted().sample(points, 3, seed=1), fitted().gradient(points)]

    whole = found()
    monkeypatch.setattr(network_posterior, "_ROWS", 64)
    monkeypatch.setattr("sateen.learning.posterior._BLOCK", 90)
    for one, other in zip(found(), whole, strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-12)


def test_networks_differ_and_so_do_their_draws() -> None:
    posterior = fitted()
    assert posterior.weights.shape == (3, posterior.net.size)
    assert posterior.factors.shape == (3, posterior.net.size, 40)
    for table in (posterior.weights, posterior.factors):
        assert len({own.tobytes() for own in table}) == 3
        assert not table.flags.writeable
        assert table.dtype == np.float64


@pytest.mark.parametrize(("inputs", "decay", "taken"), [(0, None, 1), (4, None, 4), (25, None, 10), (4, 0.3, 0.3)])
def test_the_precision_of_the_prior_is_the_number_of_inputs_unless_told(
    inputs: int, decay: float | None, taken: float
) -> None:
    assert prior_precision(decay, Net(inputs, 3)) == taken


def test_a_longer_fit_ends_where_the_log_posterior_density_is_flat() -> None:
    """It is the mode under the prior: no direction leads up, and the record tells its height."""
    posterior, sample = settled(), sample_of(SEEN, settled().inputs)
    (weights,) = posterior.weights
    height = plain_log_posterior(posterior.net, weights, sample, 1.0)
    ways = binom.logpmf(SEEN.satisfied, SEEN.trials, 0.5).sum() + SEEN.trials.sum() * math.log(2)
    assert posterior.record.values[-1] == pytest.approx(height + ways, abs=0.01)
    for direction in np.random.default_rng(4).normal(size=(20, len(weights))):
        assert plain_log_posterior(posterior.net, weights + 0.03 * direction, sample, 1.0) < height + 1e-6
    assert belief(posterior.net, weights, sample, 1.0).gain < 1e-3


LONG = replace(QUICK, nets=1, steps=3000, batch=20)


@cache
def settled() -> LaplacePosterior:
    return LONG.fit(SEEN, seed=3)


def test_a_long_fit_has_settled() -> None:
    assert settled().record.converged


def test_a_fit_that_could_still_rise_says_so() -> None:
    record = replace(LONG, rate=1e-4).fit(SEEN, seed=3).record
    assert record.values[-1] < settled().record.values[-1] - 20
    assert not record.converged


def with_gain(gain: float) -> Belief:
    return Belief(np.zeros((3, 2)), 10.0, gain)


@pytest.mark.parametrize(
    ("done", "gains", "verdict"),
    [
        (2, (0.1, 15.0), "converged"),
        (2, (0.1, 15.1), "the log-posterior of a network could still rise by about 15.1, with 10 directions"),
        (1, (0.1,), "interrupted with 1 of 2 networks trained: fit again, with a checkpoint"),
        (0, (99.0,), "interrupted with 0 of 2 networks trained: fit again, with a checkpoint"),
    ],
)
def test_the_verdict_says_whether_all_networks_are_near_their_modes(
    done: int, gains: tuple[float, ...], verdict: str
) -> None:
    assert laplace_net._verdict(2, done, [with_gain(gain) for gain in gains]).startswith(verdict)


def test_a_network_that_knows_nothing_and_has_nothing_to_gain_has_settled() -> None:
    assert laplace_net._verdict(QUICK.nets, 3, [Belief(np.zeros((3, 2)), 0.0, 1.0)] * 3) == "converged"


@pytest.mark.parametrize("patience", [1, 49, 50, 51, 149])
def test_ctrl_c_gives_the_networks_that_are_trained_marked_and_a_checkpoint_goes_on(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)  # a step at a time
    file, watcher, whole = tmp_path / "half.safetensors", Watcher(patience), patience // 50
    stopped = QUICK.fit(SEEN, seed=3, progress=watcher, checkpoint=file)
    assert watcher.told == [("laplace-net", 150, "steps")]
    assert watcher.finished == 1
    assert stopped.record.interrupted
    assert stopped.record.verdict.startswith(f"interrupted with {whole} of 3 networks trained: fit again")
    assert not stopped.record.converged
    assert len(stopped.weights) == max(whole, 1)
    assert stopped.weights[:whole].tobytes() == fitted().weights[:whole].tobytes()
    assert stopped.record.steps[-1] == (50 if whole else patience)
    assert np.isfinite(stopped.predict(GRID).width).all()
    resumed = QUICK.fit(SEEN, seed=3, checkpoint=file)
    for name in ("weights", "factors"):
        assert getattr(resumed, name).tobytes() == getattr(fitted(), name).tobytes()
    assert resumed.misfit == fitted().misfit
    assert resumed.record.values.tobytes() == fitted().record.values.tobytes()
    assert not resumed.record.interrupted


def test_ctrl_c_before_the_first_step_is_passed_on() -> None:
    watcher = Watcher(0)
    with pytest.raises(KeyboardInterrupt):
        QUICK.fit(SEEN, seed=3, progress=watcher)
    assert watcher.told == [("laplace-net", 150, "steps")]
    assert watcher.finished == 1


@pytest.mark.parametrize("change", [{"nets": 2}, {"rate": 0.04}, {"draws": 41}, {"weight_decay": 1.0}])
def test_the_checkpoint_of_another_recipe_is_refused_but_not_of_another_device(
    change: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "fit.safetensors"
    QUICK.fit(SEEN, seed=3, checkpoint=file)
    with pytest.raises(InputError, match=r"fit\.safetensors is a checkpoint of another fit"):
        replace(QUICK, **change).fit(SEEN, seed=3, checkpoint=file)
    again = replace(QUICK, device="cpu").fit(SEEN, seed=3, checkpoint=file)
    assert again.weights.tobytes() == fitted().weights.tobytes()


def test_there_is_no_prior_that_has_not_seen_the_data() -> None:
    with pytest.raises(InputError) as caught:
        fitted().kl()
    said = str(caught.value)
    assert said.startswith("laplace-net is linear around networks fitted to the data, so it has no prior for kl()")
    assert "bound_error(method='betting')" in said
    assert len(fitted().unseen_by_prior) == 0


def test_batches_are_larger_where_points_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    of, asked = laplace_net.Batches.of, list[int]()

    def noticed(sample: Sample, batch: int, seed: int, precision: Any) -> Any:
        asked.append(batch)
        return of(sample, 8, seed, precision)

    monkeypatch.setattr(laplace_net.Batches, "of", noticed)
    replace(QUICK, batch=None).fit(SEEN, seed=3)
    monkeypatch.setattr(laplace_net, "MANY_POINTS", 20)
    replace(QUICK, batch=None).fit(SEEN, seed=3)
    QUICK.fit(SEEN, seed=3)
    assert asked == [256, 512, 8]


def test_single_precision_believes_the_same() -> None:
    single = replace(fitted(), recipe=replace(QUICK, precision="float32"))
    assert single.weights.dtype == np.float32
    one, other = single.predict(GRID), fitted().predict(GRID)
    for name in ("mean", "lower", "upper"):
        assert 0 < np.abs(getattr(one, name) - getattr(other, name)).max() < 1e-4


def test_a_fit_that_runs_away_says_what_to_do() -> None:
    with pytest.raises(InputError, match="the fit diverged; lower rate, which is 1e"):
        replace(QUICK, rate=1e300).fit(SEEN, seed=1)


@pytest.mark.skipif(any(device.platform == "gpu" for device in jax.devices()), reason="there is a GPU here")
def test_a_device_that_is_missing_stops_a_fit_but_no_prediction() -> None:
    with pytest.raises(InputError, match="JAX finds no gpu here"):
        replace(QUICK, device="gpu").fit(SEEN, seed=1)
    elsewhere = replace(fitted(), recipe=replace(QUICK, device="gpu"))
    assert elsewhere.predict(GRID).mean.tobytes() == fitted().predict(GRID).mean.tobytes()


@pytest.mark.parametrize("name", ["weights", "factors"])
def test_what_is_no_set_of_weights_is_refused(name: str) -> None:
    own = getattr(fitted(), name)
    for wrong in (own[:, :-1], own[None], np.full_like(own, np.inf)):
        with pytest.raises(InputError, match="has the shape"):
            replace(fitted(), **{name: wrong})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width is a whole number from 1 up, not 0"),
        ({"steps": 2.5}, "steps is a whole number from 1 up, not 2.5"),
        ({"batch": 0}, "batch is a whole number from 1 up, not 0"),
        ({"curvature_rows": None}, "curvature_rows is a whole number from 1 up, not None"),
        ({"draws": True}, "draws is a whole number from 1 up, not True"),
        ({"rate": -1}, "rate is a number above 0, not -1"),
        ({"weight_decay": 0}, "weight_decay is a number above 0, not 0"),
        ({"activation": "silo"}, "activation is 'silu', 'leaky-relu' or 'tanh', not 'silo'; did you mean silu?"),
        ({"precision": "double"}, "precision is 'float32' or 'float64', not 'double'"),
        ({"inputs": "liner"}, "inputs is 'auto', 'log' or 'linear', not 'liner'; did you mean linear?"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        LaplaceNet(**settings)
    assert str(caught.value).startswith(message)
