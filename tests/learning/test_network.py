"""The network that two learners share, against plain numpy and scipy's binomial."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import expit, log_ndtr, logit, ndtr, ndtri
from scipy.stats import binom, chi2, kstest

from known_functions import LINE, observed
from sateen.core.errors import InputError
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.networks.network import (
    Net,
    Rows,
    angle,
    arithmetic,
    blocks,
    information,
    jacobian,
    log_likelihood,
    log_ways,
    rows_of,
    window_of,
)
from sateen.learning.networks.recipes import SVIBNN
from sateen.learning.networks.training import first_weights
from sateen.learning.settings import Activation, Link, check_number

FloatArray = npt.NDArray[np.float64]
LEVEL = 1e-6
LATENT = np.array([-6.0, -2.5, -0.4, 0.0, 0.7, 2.0, 5.0])
BEND = {
    "silu": lambda a: a / (1 + np.exp(-a)),
    "tanh": np.tanh,
    "leaky-relu": lambda a: np.where(a > 0, a, 0.01 * a),
}
some_nets = some.builds(Net, some.integers(0, 6), some.integers(1, 9))
_log_likelihood = jax.jit(log_likelihood, static_argnums=(0, 3))
_information = jax.jit(information, static_argnums=(0, 3))
_angle = jax.jit(angle, static_argnums=0)
_jacobian = jax.jit(jacobian, static_argnums=0)
every_link = pytest.mark.parametrize("link", ["probit", "logit"])


def chance(link: Link, g: Any) -> FloatArray:
    return np.asarray(ndtr(g) if link == "probit" else expit(g))


def plain_output(net: Net, weights: FloatArray, x: FloatArray) -> FloatArray:
    """Written out once more, from the words of Net: matrices row by row, then biases."""
    w, d, bend = net.width, net.inputs, BEND[net.activation]
    ends = np.cumsum([0, d * w, w, w * w, w, w, 1])
    W1, b1, W2, b2, W3, b3 = (weights[low:high] for low, high in pairwise(ends))
    hidden = bend(bend(x @ W1.reshape(d, w) + b1) @ W2.reshape(w, w) + b2)
    return np.asarray(hidden @ W3 + b3[0])


def sample(satisfied: Any, undecided: Any, trials: Any) -> Sample:
    columns = [np.array(column, np.float64) for column in (satisfied, undecided, trials)]
    return Sample(np.zeros((len(columns[0]), 1)), *columns)


def log_likelihoods(link: Link, g: FloatArray, counts: Sample) -> FloatArray:
    """What the module says of each row at each g, in double precision, with the factor C(M, k) put back."""
    with arithmetic("cpu", "float64"):
        every = np.broadcast_to(g[:, None], (len(g), len(counts)))
        table = np.asarray(_log_likelihood(link, every, rows_of(counts, "float64"), window_of(counts))).T
    return table + [[log_ways(counts[place : place + 1])] for place in range(len(counts))]


@pytest.mark.parametrize("activation", BEND)
@pytest.mark.parametrize("inputs", [0, 1, 3])
def test_the_output_is_that_of_three_layers_in_plain_numpy(activation: Activation, inputs: int) -> None:
    net, rng = Net(inputs, 4, activation), np.random.default_rng(1)
    weights, x = rng.normal(size=net.size), rng.uniform(-1, 1, (9, inputs))
    with arithmetic("cpu", "float64"):
        assert np.allclose(net.output(jnp.asarray(weights), jnp.asarray(x)), plain_output(net, weights, x), rtol=1e-12)


@every_link
def test_f_is_the_distribution_function_of_the_link(link: Link) -> None:
    with arithmetic("cpu", "float64"):
        assert np.allclose(Net(1, 1, "silu", link).probability(jnp.asarray(LATENT)), chance(link, LATENT), rtol=1e-12)


@given(some_nets)
def test_the_layers_are_all_the_weights_in_their_order(net: Net) -> None:
    weights = np.arange(net.size)
    layers = net.layers(weights)
    assert [matrix.shape for matrix, _ in layers] == list(net.shapes)
    assert [len(bias) for _, bias in layers] == [columns for _, columns in net.shapes]
    assert np.array_equal(np.concatenate([part.ravel() for layer in layers for part in layer]), weights)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_first_weights_keep_the_size_of_what_passes_and_begin_near_a_constant(place: int) -> None:
    """Normal with the variance 2 / inputs of the layer, in the last one a hundredth of it; no biases but the last."""
    net = Net(3, 40)
    drawn = [net.layers(net.first_weights(np.random.default_rng([7, seed]), 0.3))[place] for seed in range(60)]
    rows = net.shapes[place][0]
    scale = math.sqrt(2 / rows) * (0.1 if place == 2 else 1)
    values = np.concatenate([matrix.ravel() for matrix, _ in drawn]) / scale
    assert LEVEL < chi2.cdf(np.sum(values**2), len(values)) < 1 - LEVEL
    assert kstest(values, "norm").pvalue > LEVEL
    for _, bias in drawn:
        assert np.array_equal(bias, [ndtri(0.3)] if place == 2 else np.zeros(40))


@every_link
def test_the_first_output_is_near_the_g_of_the_frequency(link: Link) -> None:
    """Each hidden unit adds at most a tenth of its usual size, so g hardly leaves the last bias."""
    seen = observed(LINE, 30, 40, 2, undecided=0.2)
    decided = int(seen.trials.sum() - seen.undecided.sum())
    frequency = (seen.satisfied.sum() + 0.5) / (decided + 1)
    net, own = Net(1, 20, "silu", link), sample_of(seen, inputs_of(seen, "linear"))
    weights = first_weights(net, own, np.random.default_rng(3), "float64")
    assert weights[-1] == pytest.approx(ndtri(frequency) if link == "probit" else logit(frequency), rel=1e-12)
    g = plain_output(net, weights, own.x)
    assert 0 < np.abs(g - weights[-1]).max() < 0.5
    assert first_weights(net, own, np.random.default_rng(3), "float32").dtype == np.float32
    assert weights.tobytes() == first_weights(net, own, np.random.default_rng(3), "float64").tobytes()
    assert weights.tobytes() != first_weights(net, own, np.random.default_rng(4), "float64").tobytes()


@every_link
def test_the_likelihood_is_the_binomial_one(link: Link) -> None:
    counts = sample([0, 3, 12, 40], [0] * 4, [1, 12, 12, 90])
    wanted = binom.logpmf(counts.satisfied[:, None], counts.trials[:, None], chance(link, LATENT[1:-1]))
    assert np.allclose(log_likelihoods(link, LATENT[1:-1], counts), wanted, rtol=1e-9)


@every_link
def test_undecided_runs_may_have_gone_either_way(link: Link) -> None:
    """A sum over all counts that are possible; the last row, which is decided, is as it would be alone."""
    counts = sample([0, 3, 0, 20, 5], [4, 7, 10, 5, 0], [9, 12, 10, 25, 9])
    g = LATENT[1:-1]
    for row, found in enumerate(log_likelihoods(link, g, counts)):
        low, more, trials = (int(column[row]) for column in (counts.satisfied, counts.undecided, counts.trials))
        terms = binom.logpmf(np.arange(low, low + more + 1)[:, None], trials, chance(link, g))
        assert np.allclose(found, np.logaddexp.reduce(terms), atol=1e-9)


@pytest.mark.parametrize(("satisfied", "undecided"), [(1000, 8000), (0, 10_000), (100, 4000), (9000, 1000)])
def test_a_sum_over_thousands_of_counts_is_taken_where_they_are_likely(satisfied: int, undecided: int) -> None:
    """840 of up to 10,001 terms are summed, and that is enough inside, at the edges and outside."""
    counts = sample([satisfied], [undecided], [10_000])
    assert window_of(counts) == min(undecided + 1, 840)
    g = np.linspace(-2.6, 2.6, 27)
    terms = binom.logpmf(np.arange(satisfied, satisfied + undecided + 1)[:, None], 10_000, ndtr(g))
    found = log_likelihoods("probit", g, counts)[0]
    assert np.allclose(found, np.logaddexp.reduce(terms), rtol=1e-7, atol=1e-6)


def test_there_is_no_window_where_all_is_decided() -> None:
    assert window_of(sample([3, 4], [0, 0], [9, 9])) == 0
    assert window_of(sample([3, 4], [0, 5], [9, 9])) == 6


def test_the_ways_are_those_of_the_counts() -> None:
    counts = sample([0, 3, 12, 40], [0, 2, 0, 5], [1, 12, 12, 90])
    ways = [math.comb(int(trials), int(k)) for k, trials in zip(counts.satisfied, counts.trials, strict=True)]
    assert log_ways(counts) == pytest.approx(sum(map(math.log, ways)), rel=1e-12)


@every_link
def test_information_is_how_sharply_the_likelihood_of_all_counts_bends_on_average(link: Link) -> None:
    """Fisher's: the mean over counts of the squared score, which differences of scipy's binomial tell."""
    trials, g, step = 12, LATENT[1:-1], 1e-5
    counts = np.arange(trials + 1)[:, None]
    ends = [binom.logpmf(counts, trials, chance(link, g + sign * step)) for sign in (1, -1)]
    score = (ends[0] - ends[1]) / (2 * step)
    wanted = np.sum(binom.pmf(counts, trials, chance(link, g)) * score**2, axis=0)
    with arithmetic("cpu", "float64"):
        rows = rows_of(sample([3] * len(g), [0] * len(g), [trials] * len(g)), "float64")
        assert np.allclose(_information(link, jnp.asarray(g), rows, 0), wanted, rtol=1e-6)


@every_link
def test_information_of_undecided_runs_is_how_their_own_likelihood_bends_and_never_more_than_of_decided(
    link: Link,
) -> None:
    g, step = np.linspace(-1.5, 1.5, 7), 1e-3
    counts = sample([4] * 7, [5] * 7, [12] * 7)
    possible = np.arange(4, 10)[:, None]
    left, here, right = (
        np.logaddexp.reduce(binom.logpmf(possible, 12, chance(link, g + move))) for move in (-step, 0.0, step)
    )
    bend = -(left - 2 * here + right) / step**2
    with arithmetic("cpu", "float64"):
        rows = rows_of(counts, "float64")
        found = np.asarray(_information(link, jnp.asarray(g), rows, window_of(counts)))
        whole = np.asarray(_information(link, jnp.asarray(g), rows, 0))
        decided = _information(link, jnp.asarray(g), rows._replace(undecided=0 * rows.undecided), window_of(counts))
    assert np.allclose(found, np.clip(bend, 0, whole), atol=1e-4)
    assert (found < whole).any()
    assert np.array_equal(decided, whole)


@every_link
def test_the_angle_is_the_arc_sine_of_the_root_of_f_even_where_f_is_almost_one(link: Link) -> None:
    net, g = Net(1, 1, "silu", link), np.linspace(-7, 7, 57)
    with arithmetic("cpu", "float64"):
        phi, slope = (np.asarray(values) for values in _angle(net, jnp.asarray(g)))
        above, below = (np.asarray(_angle(net, jnp.asarray(g + sign * 1e-5))[0]) for sign in (1, -1))
    assert np.allclose(np.sin(phi) ** 2, chance(link, g), rtol=1e-10)
    assert np.allclose(np.cos(phi) ** 2, chance(link, -g), rtol=1e-10)
    assert np.allclose(slope, (above - below) / 2e-5, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_nothing_is_lost_far_out(precision: Any) -> None:
    """Where Φ is 0 or 1 to the last digit, information and angles are small but no NaN."""
    far = np.array([-15.0, -9.0, 9.0, 15.0])
    with arithmetic("cpu", precision):
        rows = rows_of(sample([3] * 4, [0] * 4, [9] * 4), precision)
        g = jnp.asarray(far, precision)
        values, known = _log_likelihood("probit", g, rows, 0), _information("probit", g, rows, 0)
        phi, slope = _angle(Net(1, 1), g)
    assert np.allclose(values, 3 * log_ndtr(far) + 6 * log_ndtr(-far), rtol=1e-4)
    for found in (known, phi, slope):
        assert np.isfinite(found).all()
    assert (np.asarray(known) >= 0).all()


@pytest.mark.parametrize("activation", BEND)
def test_the_jacobian_is_that_of_finite_differences(activation: Activation) -> None:
    net, rng, step = Net(2, 3, activation), np.random.default_rng(4), 1e-6
    weights, x = rng.normal(size=net.size), rng.uniform(-1, 1, (5, 2))
    ends = [[plain_output(net, weights + sign * step * unit, x) for unit in np.eye(net.size)] for sign in (1, -1)]
    wanted = (np.array(ends[0]) - np.array(ends[1])).T / (2 * step)
    with arithmetic("cpu", "float64"):
        assert np.allclose(_jacobian(net, jnp.asarray(weights), jnp.asarray(x)), wanted, atol=1e-8)


@given(some.integers(0, 400), some.integers(1, 150), some.integers(0, 3))
def test_blocks_are_all_rows_in_order_and_all_of_one_size(rows: int, size: int, columns: int) -> None:
    x = np.arange(rows * columns, dtype=float).reshape(rows, columns) + 1
    found = list(blocks(x, size, "float32"))
    assert len({whole.shape for _, whole in found}) <= 1
    assert {whole.dtype for _, whole in found} <= {np.dtype("float32")}
    real = [whole[:count] for count, whole in found]
    assert np.array_equal(np.concatenate([np.empty((0, columns)), *real]), x)
    assert all(not whole[count:].any() for count, whole in found)
    assert all(len(whole) == (size if rows > 64 else 64) for _, whole in found)


def test_rows_are_as_wide_as_asked_for() -> None:
    counts = sample([3, 4], [0, 1], [9, 9])
    for precision in ("float32", "float64"):
        with arithmetic("auto", precision):
            rows = rows_of(counts, precision)
        assert isinstance(rows, Rows)
        assert all(column.dtype == precision for column in rows)
        assert rows.undecided.tolist() == [0, 1]


def test_double_precision_ends_where_it_was_asked_for() -> None:
    before = jax.config.jax_enable_x64
    with arithmetic("cpu", "float64"):
        assert jnp.ones(1).dtype == jnp.float64
    with pytest.raises(ZeroDivisionError), arithmetic("cpu", "float64"):
        _ = 1 / 0
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == jnp.float32


def test_networks_are_compiled_even_if_jax_is_told_not_to() -> None:
    """Uncompiled, a fit would take hours; and loops get numpy's arrays, which cannot do what JAX's can."""
    counts, recipe = observed(LINE, 8, 20, seed=1), SVIBNN(steps=30)
    fitted = recipe.fit(counts, seed=1).predict(counts.points).mean
    with jax.disable_jit():
        assert recipe.fit(counts, seed=1).predict(counts.points).mean.tolist() == fitted.tolist()
        assert jax.config.jax_disable_jit


def test_jax_without_memory_is_an_error_of_memory() -> None:
    with pytest.raises(MemoryError, match=r"too little memory: .*Out of memory"), arithmetic("cpu", "float32"):
        jnp.zeros(2**48).block_until_ready()


def test_a_platform_that_jax_lacks_is_told_with_what_to_do() -> None:
    program = "from sateen.learning.networks.network import arithmetic\nwith arithmetic('auto', 'float32'): pass"
    for platform in ("cuda", "abacus"):
        given = {**os.environ, "JAX_PLATFORMS": platform, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)
        assert "InputError: JAX finds nothing to compute on; unset JAX_PLATFORMS" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(any(device.platform == "gpu" for device in jax.devices()), reason="there is a GPU here")
def test_a_device_that_is_missing_is_refused_unless_any_will_do() -> None:
    with pytest.raises(InputError, match="JAX finds no gpu here; take device='auto'"), arithmetic("gpu", "float32"):
        pass
    with arithmetic("gpu", "float32", forgiving=True):
        assert jnp.ones(1).device.platform == "cpu"


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        ("activation", "silo", "activation is 'silu', 'leaky-relu' or 'tanh', not 'silo'; did you mean silu?"),
        ("link", "cauchit", "link is 'probit' or 'logit', not 'cauchit'"),
        ("device", "abacus", "device is 'auto', 'cpu' or 'gpu', not 'abacus'"),
        ("precision", "float16", "precision is 'float32' or 'float64', not 'float16'; did you mean float"),
        ("link", None, "link is 'probit' or 'logit', not None"),
    ],
)
def test_a_word_that_a_setting_cannot_be_is_refused_with_those_that_it_can(name: str, word: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        SVIBNN(**{name: word})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, "1", None, True])
def test_a_number_is_finite_and_above_zero(value: Any) -> None:
    with pytest.raises(InputError, match="rate is a number above 0, not"):
        check_number("rate", value)
    with pytest.raises(InputError, match="rate is a number from 0 up, not"):
        check_number("rate", value, zero=True)


def test_zero_is_a_number_only_where_it_is_allowed() -> None:
    check_number("rate", 0, zero=True)
    check_number("rate", 1e-300)
    with pytest.raises(InputError, match="rate is a number above 0, not 0"):
        check_number("rate", 0)
