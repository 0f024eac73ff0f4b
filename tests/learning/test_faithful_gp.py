"""The paper's SVI-GP: its bound against independent reckoning, its steps against the laws they must keep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.linalg import cho_solve, cholesky
from scipy.stats import binom, norm

from known_functions import LINE, PLANE, observed
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.learning import checkpoint as checkpoints
from sateen.learning.gp import faithful as faithful_gp
from sateen.learning.gp.recipes import FaithfulSVIGP
from sateen.learning.inputs import inputs_of, sample_of
from sateen.learning.networks import training as network_training
from sateen.learning.networks.network import Rows, arithmetic
from watchers import Watcher

QUICK = FaithfulSVIGP(epochs=12, batch=8, learning_rate=0.02)
SEEN = observed(LINE, 20, 30, 1)  # its last batch has 4 points
DOUBTFUL = observed(LINE, 20, 30, 1, undecided=0.3)


@contextmanager
def course(recipe: FaithfulSVIGP, seen: Observations, seed: int = 3) -> Iterator[faithful_gp._Course]:
    with arithmetic("cpu", "float64"):
        yield faithful_gp._Course.of(recipe, sample_of(seen, inputs_of(seen, "linear")), seed)


def some_parameters(rng: np.random.Generator, inducing: int, dimension: int) -> faithful_gp.Parameters:
    factor = rng.normal(0, 0.2, (inducing, inducing)) + np.eye(inducing)
    points = rng.uniform(-1, 1, (inducing, dimension))
    values = (-0.4, 0.8, -0.7, points, rng.normal(size=inducing), factor)
    return faithful_gp.Parameters(*(jnp.asarray(value, jnp.float64) for value in values))


_bound = jax.jit(faithful_gp.elbo, static_argnames=("size", "settings"))
_slopes = jax.jit(jax.grad(faithful_gp.elbo), static_argnames=("size", "settings"))


def bound(
    parameters: faithful_gp.Parameters, own: faithful_gp._Course, rows: Any = slice(None), how: Any = _bound
) -> Any:
    batch = Rows(*(column[rows] for column in own.rows))
    weight = jnp.ones(len(batch.x))
    return how(parameters, batch, weight, size=own.size, settings=own.settings)


def reckoned_bound(parameters: faithful_gp.Parameters, own: faithful_gp._Course) -> float:
    """The ELBO of q(u) = N(c + L v, L Q Qᵀ Lᵀ), not whitened, by sums over counts and a fine grid."""
    c, variance, length, points, v, Q = (np.asarray(value) for value in parameters)
    variance, length, Q = np.logaddexp(0, variance), np.logaddexp(0, length), np.tril(Q)
    x, satisfied, undecided, trials = (np.asarray(column) for column in own.rows)

    def covariance(one: Any, other: Any) -> Any:
        return variance * np.exp(-0.5 * np.sum((one[:, None] - other) ** 2, axis=-1) / length**2)

    K_mm = covariance(points, points) + own.recipe.jitter * np.eye(len(points))
    L = cholesky(K_mm, lower=True)
    mean, S = L @ v, L @ Q @ Q.T @ L.T
    A = cho_solve((L, True), covariance(points, x)).T  # K_xm K_mm^-1
    latent = c + A @ mean
    deviation = np.sqrt(variance + np.einsum("ij,jk,ik->i", A, S - K_mm, A))
    z = np.linspace(-9, 9, 3001)
    fit = 0.0
    for row, low in enumerate(satisfied):
        g = latent[row] + deviation[row] * z
        counts = np.arange(low, low + undecided[row] + 1)[:, None]
        ways = binom.logpmf(counts, trials[row], 0.5) + trials[row] * math.log(2)
        terms = ways + counts * norm.logcdf(g) + (trials[row] - counts) * norm.logcdf(-g)
        fit += np.trapezoid(norm.pdf(z) * np.logaddexp.reduce(terms, axis=0), z)
    inverse = np.linalg.inv(K_mm)
    divergence = 0.5 * (np.trace(inverse @ S) + mean @ inverse @ mean - len(v))
    divergence += 0.5 * (np.linalg.slogdet(K_mm)[1] - np.linalg.slogdet(S)[1])
    return float(fit - divergence)


@pytest.mark.parametrize("seen", [SEEN, DOUBTFUL, observed(PLANE, 15, 10, 2)], ids=["line", "undecided", "plane"])
def test_the_bound_is_that_of_the_belief_before_whitening(seen: Observations) -> None:
    with course(replace(QUICK, nodes=60, jitter=1e-4), seen) as own:
        parameters = some_parameters(np.random.default_rng(4), 5, own.rows.x.shape[1])
        assert own.ways + float(bound(parameters, own)) == pytest.approx(reckoned_bound(parameters, own), abs=1e-4)


def test_twenty_nodes_are_enough_for_counts_that_are_known() -> None:
    with course(QUICK, SEEN) as few, course(replace(QUICK, nodes=100), SEEN) as many:
        parameters = some_parameters(np.random.default_rng(4), 5, 1)
        assert float(bound(parameters, few)) == pytest.approx(float(bound(parameters, many)), abs=1e-5)


@pytest.mark.parametrize("seen", [SEEN, DOUBTFUL], ids=["decided", "undecided"])
def test_the_slopes_are_those_of_finite_differences(seen: Observations) -> None:
    rng = np.random.default_rng(5)
    with course(replace(QUICK, jitter=1e-3), seen) as own:
        parameters = some_parameters(rng, 6, 1)
        slopes = bound(parameters, own, how=_slopes)
        for name in parameters._fields:
            value = getattr(parameters, name)
            direction = jnp.asarray(rng.normal(size=value.shape))
            above, below = (
                float(bound(parameters._replace(**{name: value + sign * 1e-5 * direction}), own)) for sign in (1, -1)
            )
            slope = float(jnp.sum(getattr(slopes, name) * direction))
            assert slope == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-5), name


def test_the_slope_of_whitening_is_that_of_the_cholesky_factor() -> None:
    rng = np.random.default_rng(6)
    root, across, weights = rng.normal(size=(7, 7)), rng.normal(size=(7, 4)), rng.normal(size=(7, 4))

    def plain(K_mm: Any, K_mx: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(K_mm), K_mx, lower=True)

    with arithmetic("cpu", "float64"):
        K_mm = jnp.asarray(root @ root.T + np.eye(7))
        for argument in (0, 1):
            own, other = (
                jax.grad(lambda *given, how=how: jnp.sum(weights * how(*given)), argument)(K_mm, jnp.asarray(across))
                for how in (faithful_gp.whitened, plain)
            )
            assert np.allclose(own, other, rtol=1e-10, atol=1e-12)


def test_the_bound_stays_below_the_evidence_and_comes_near_it() -> None:
    seen = Observations.from_counts(LINE, {"beta": [0.2, 0.7]}, [3, 9], 12)
    recipe = FaithfulSVIGP(epochs=3000, learning_rate=0.02)
    posterior = recipe.fit(seen, seed=1)
    unit = posterior.inputs.unit(seen.theta)
    K = posterior.kernel.between(unit, unit)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    pairs = np.array(list(product(nodes, nodes))) @ cholesky(K + 1e-12 * np.eye(2), lower=True).T
    chances = binom.pmf([3, 9], 12, norm.cdf(posterior.offset + pairs)).prod(axis=1)
    evidence = math.log(float(np.prod(list(product(weights, weights)), axis=1) @ chances / (2 * math.pi)))
    assert posterior.record.values[-1] < evidence + 1e-6
    assert posterior.record.values[-1] > evidence - 0.1


def test_batches_of_one_size_tell_on_average_what_all_rows_tell() -> None:
    with course(replace(QUICK, batch=5), SEEN) as own:
        parameters = some_parameters(np.random.default_rng(7), 5, 1)
        parts = [float(bound(parameters, own, slice(start, start + 5))) for start in range(0, 20, 5)]
        assert np.mean(parts) == pytest.approx(float(bound(parameters, own)), rel=1e-12)


@given(size=some.integers(1, 40), batch=some.integers(1, 50), first=some.integers(0, 5))
def test_every_epoch_takes_every_row_once(size: int, batch: int, first: int) -> None:
    with course(replace(QUICK, batch=batch), observed(LINE, size, 5, 1)) as own:
        rows, weights = own._batches(first * own.per_epoch, own.per_epoch)
        taken = rows[: own.per_epoch][weights[: own.per_epoch] > 0]
        assert sorted(taken) == list(range(len(own.rows.x)))
        assert not weights[own.per_epoch :].any()


def test_how_many_steps_are_made_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = QUICK.fit(SEEN, seed=3)
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)
    one_by_one = Watcher()
    found = QUICK.fit(SEEN, seed=3, progress=one_by_one)
    assert one_by_one.done == one_by_one.total == 36
    for name in ("mean", "spread", "points", "factor"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes()
    assert found.record.values.tobytes() == wanted.record.values.tobytes()


FEW_AND_STILL = replace(QUICK, inducing=6, optimise_inducing=False)


def test_the_seed_orders_the_batches_and_chooses_the_inducing_points_among_the_rows() -> None:
    one, same, other = (FEW_AND_STILL.fit(SEEN, seed=seed) for seed in (1, 1, 2))
    assert one.mean.tobytes() == same.mean.tobytes()
    assert one.points.tobytes() != other.points.tobytes()
    rows = one.inputs.unit(SEEN.theta).tolist()
    assert len(one.points) == 6
    assert all(point in rows for point in one.points.tolist())


def test_inducing_points_are_all_rows_where_they_are_few_and_move_if_asked_to() -> None:
    posterior = QUICK.fit(SEEN, seed=3)
    apart = np.abs(posterior.points - posterior.inputs.unit(SEEN.theta)).max()
    assert 0.001 < apart <= 36 * 0.02 * 1.1  # a step of Adam goes about as far as its learning rate


def test_points_that_are_there_twice_are_one_inducing_point() -> None:
    seen = Observations.from_counts(LINE, {"beta": [0.4, 0.8, 0.4]}, [2, 9, 4], 10)
    with course(QUICK, seen) as own:
        assert np.array_equal(own.first, np.asarray(own.rows.x)[:2])


def test_single_precision_learns_the_same() -> None:
    double, single = (replace(QUICK, precision=name).fit(SEEN, seed=1) for name in ("float64", "float32"))
    grid = LINE.grid(30)
    assert np.abs(double.predict(grid).mean - single.predict(grid).mean).max() < 2e-3
    assert single.record.values[-1] == pytest.approx(double.record.values[-1], abs=0.05)


def test_what_jax_takes_for_a_number_is_as_before() -> None:
    QUICK.fit(SEEN, seed=3)
    assert jnp.ones(1).dtype == jnp.float32


def test_the_record_has_the_mean_bound_of_each_epoch_and_in_the_end_that_of_all_rows() -> None:
    posterior = QUICK.fit(SEEN, seed=3)
    assert posterior.record.objective == "elbo"
    assert posterior.record.steps.tolist() == [3.0 * epoch for epoch in range(1, 13)]
    raw = (math.log(math.expm1(value)) for value in (posterior.kernel.variance, posterior.kernel.length_scales[0]))
    learned = (posterior.offset, *raw, posterior.points, posterior.mean, posterior.spread)
    with course(QUICK, SEEN) as own:
        parameters = faithful_gp.Parameters(*(jnp.asarray(value, jnp.float64) for value in learned))
        assert posterior.record.values[-1] == pytest.approx(own.ways + float(bound(parameters, own)), abs=1e-6)


@pytest.mark.parametrize("patience", [1, 3, 20])
def test_ctrl_c_leaves_a_posterior_and_a_checkpoint_from_which_to_go_on(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, watcher = tmp_path / "fit.safetensors", Watcher(patience)
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)  # a step at a time
    stopped = QUICK.fit(SEEN, seed=3, progress=watcher, checkpoint=file)
    assert watcher.finished == 1
    assert stopped.record.interrupted
    assert "interrupted after" in stopped.record.verdict
    assert stopped.record.steps[-1] == watcher.done == patience
    assert np.isfinite(stopped.predict(LINE.grid(5)).width).all()
    resumed, wanted = QUICK.fit(SEEN, seed=3, checkpoint=file), QUICK.fit(SEEN, seed=3)
    assert not resumed.record.interrupted
    assert resumed.mean.tobytes() == wanted.mean.tobytes()
    assert resumed.spread.tobytes() == wanted.spread.tobytes()
    assert resumed.record.values.tobytes() == wanted.record.values.tobytes()


def test_ctrl_c_before_the_first_step_is_passed_on() -> None:
    watcher = Watcher(0)
    with pytest.raises(KeyboardInterrupt):
        QUICK.fit(SEEN, seed=3, progress=watcher)
    assert watcher.finished == 1


def test_a_checkpoint_goes_on_to_more_epochs_but_not_back(tmp_path: Path) -> None:
    file = tmp_path / "fit.safetensors"
    longer = replace(QUICK, epochs=20)
    QUICK.fit(SEEN, seed=3, checkpoint=file)
    found = longer.fit(SEEN, seed=3, checkpoint=file)
    assert found.mean.tobytes() == longer.fit(SEEN, seed=3).mean.tobytes()
    with pytest.raises(InputError, match="more epochs"):
        QUICK.fit(SEEN, seed=3, checkpoint=file)


def test_the_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.safetensors"
    QUICK.fit(SEEN, seed=3, checkpoint=file)
    for recipe, seen, seed in (
        (QUICK, SEEN, 4),
        (QUICK, DOUBTFUL, 3),
        (replace(QUICK, batch=7), SEEN, 3),
        (replace(QUICK, learning_rate=0.01), SEEN, 3),
    ):
        with pytest.raises(InputError, match=r"fit\.safetensors is a checkpoint of another fit"):
            recipe.fit(seen, seed=seed, checkpoint=file)


def test_a_checkpoint_is_written_while_the_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_training, "_CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(network_training, "_BLOCK_SECONDS", 0.0)
    sizes: list[int] = []
    write = checkpoints.write_container

    def counted(file: Any, kind: str, version: int, content: Any, arrays: Any) -> None:
        sizes.append(content["done"].get("fit", 0))
        write(file, kind, version, content, arrays)

    monkeypatch.setattr(checkpoints, "write_container", counted)
    QUICK.fit(SEEN, seed=3, checkpoint=tmp_path / "fit.safetensors")
    assert sizes == [*range(37), 36]


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_step(tmp_path: Path) -> None:
    watcher = Watcher()
    with pytest.raises(InputError, match="cannot write"):
        QUICK.fit(SEEN, seed=3, progress=watcher, checkpoint=tmp_path / "nowhere" / "fit.safetensors")
    assert watcher.done == 0


def test_only_observations_are_fitted() -> None:
    with pytest.raises(InputError, match="a fit takes Observations, not a dict"):
        QUICK.fit({"beta": 1}, seed=3)  # type: ignore[arg-type]


def test_a_forecast_grows_with_the_epochs() -> None:
    short, long = (replace(QUICK, epochs=epochs).forecast(SEEN) for epochs in (1000, 100_000))
    assert 0 < short < long < 10_000
    assert long > 5 * short


@pytest.mark.parametrize(
    ("values", "interrupted", "verdict"),
    [
        (np.full(100, -50.0), False, "converged"),
        (np.linspace(-900.0, -50.0, 100), False, "the ELBO still rose by 85.9 in the last tenth of the epochs"),
        (np.linspace(-50.0, -900.0, 100), False, "lower learning_rate"),
        (np.full(19, -50.0), False, "too few to tell"),
        (np.full(40, -50.0), True, "interrupted after 40 of 100 epochs"),
    ],
    ids=["flat", "rising", "falling", "short", "interrupted"],
)
def test_the_verdict_says_whether_the_bound_has_settled(values: Any, interrupted: bool, verdict: str) -> None:
    assert verdict in faithful_gp._verdict(values, 100, interrupted)


def test_noise_is_no_trend() -> None:
    values = np.random.default_rng(8).normal(-500, 40, 2000)
    assert faithful_gp._verdict(values, 2000, False) == "converged"


def test_a_fit_that_runs_away_says_what_to_do() -> None:
    with pytest.raises(InputError, match="diverged; lower learning_rate, which is 1e"):
        replace(QUICK, learning_rate=1e9).fit(SEEN, seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs is a whole number from 1 up, not 0"),
        ({"batch": -5}, "batch is a whole number from 1 up, not -5"),
        ({"batch": 2.5}, "batch is a whole number from 1 up, not 2.5"),
        ({"inducing": True}, "inducing is a whole number from 1 up, not True"),
        ({"nodes": None}, "nodes is a whole number from 1 up, not None"),
        ({"learning_rate": 0}, "learning_rate is a number above 0, not 0"),
        ({"learning_rate": math.nan}, "learning_rate is a number above 0, not nan"),
        ({"jitter": "small"}, "jitter is a number above 0, not 'small'"),
        ({"inputs": "liner"}, "inputs is 'auto', 'log' or 'linear', not 'liner'; did you mean linear?"),
        ({"optimise_inducing": "yes"}, "optimise_inducing is True or False, not 'yes'"),
        ({"device": "abacus"}, "device is 'auto', 'cpu' or 'gpu', not 'abacus'"),
        ({"precision": "float16"}, "precision is 'float32' or 'float64', not 'float16'; did you mean float"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        FaithfulSVIGP(**settings)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(InputError, match="seed is a whole number from 0 up"):
        QUICK.fit(SEEN, seed=seed)


@pytest.mark.skipif(any(device.platform == "gpu" for device in jax.devices()), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match="JAX finds no gpu here"):
        replace(QUICK, device="gpu").fit(SEEN, seed=1)


def test_the_prior_has_seen_the_data_so_the_divergence_is_refused() -> None:
    posterior = QUICK.fit(SEEN, seed=3)
    assert posterior.kind == "svi-gp-faithful"
    assert not posterior.unseen.any()
    with pytest.raises(InputError, match="svi-gp-faithful"):
        posterior.kl()


def test_training_points_stay_only_where_all_of_them_are_inducing_points():
    fixed = replace(QUICK, fix_training_points=True)
    for recipe, moves in ((QUICK, True), (fixed, False), (replace(fixed, inducing=10), True)):
        posterior = recipe.fit(SEEN, seed=3)
        training = posterior.inputs.unit(SEEN.theta)
        assert (not np.isin(posterior.points, training).all()) == moves


def test_the_authors_scripts_climb_faster_and_fix_the_training_points():
    assert FaithfulSVIGP.as_run() == FaithfulSVIGP(learning_rate=0.01, fix_training_points=True)
