"""Covariance functions: their closed forms, and their derivatives."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import gamma, kv

from sateen.core.errors import InputError
from sateen.learning.gp.kernels import Kernel

KERNELS = ("matern", "rbf")

RNG_SEED = 7


def clouds(dimension=3):
    rng = np.random.default_rng(RNG_SEED)
    return rng.uniform(-1, 1, (5, dimension)), rng.uniform(-1, 1, (4, dimension)), rng.normal(size=(5, 4))


def test_matern_is_the_bessel_function_of_order_five_halves():
    x, z = np.array([[0.0]]), np.linspace(0.05, 4, 30)[:, None]
    kernel = Kernel("matern", (0.7,), 1.3, 0.0)
    s = np.sqrt(5) * z[:, 0] / 0.7
    closed = 1.3 * 2 ** (1 - 2.5) / gamma(2.5) * s**2.5 * kv(2.5, s)
    assert kernel.between(x, z)[0] == pytest.approx(closed, rel=1e-10)


def test_rbf_is_the_gaussian_curve():
    x, z, _ = clouds()
    kernel = Kernel("rbf", (0.5, 1.0, 2.0), 2.0, 4.0)
    steps = (x[:, None] - z[None]) / np.array([0.5, 1.0, 2.0])
    assert kernel.between(x, z) == pytest.approx(4.0 + 2.0 * np.exp(-0.5 * (steps**2).sum(-1)), rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@given(scale=some.floats(0.05, 20), variance=some.floats(0.01, 100))
def test_covariances_are_positive_semidefinite(name, scale, variance):
    x, _, _ = clouds()
    table = Kernel(name, (scale,) * 3, variance).between(x, x)
    assert table == pytest.approx(table.T, rel=1e-9)
    assert np.diag(table) == pytest.approx(4.0 + variance, rel=1e-9)
    assert np.linalg.eigvalsh(table).min() > -1e-8 * variance


@pytest.mark.parametrize("name", KERNELS)
def test_a_length_scale_is_a_unit_of_length(name):
    x, z, _ = clouds()
    scales = np.array([0.5, 1.0, 2.0])
    stretched = Kernel(name, (1.0, 1.0, 1.0), 2.0).between(x / scales, z / scales)
    assert Kernel(name, tuple(scales), 2.0).between(x, z) == pytest.approx(stretched, rel=1e-12)


def moved(table, index, step):
    other = table.copy()
    other[index] += step
    return other


@pytest.mark.parametrize("name", KERNELS)
def test_every_derivative_is_that_of_the_covariances(name):
    x, z, adjoint = clouds()
    kernel, h = Kernel(name, (0.5, 1.0, 2.0), 1.7), 1e-5
    pull = kernel.pull(adjoint, x, z)

    def total(kernel=kernel, x=x, z=z):
        return float((adjoint * kernel.between(x, z)).sum())

    def slope(change):
        return (total(**change(h)) - total(**change(-h))) / (2 * h)

    for axis in range(3):
        expected = slope(lambda step, axis=axis: {"kernel": kernel.at_logs(moved(kernel.logs, axis, step))})
        assert pull.length_scales[axis] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    expected = slope(lambda step: {"kernel": kernel.at_logs(moved(kernel.logs, 3, step))})
    assert pull.variance == pytest.approx(expected, rel=1e-6)
    for index in np.ndindex(x.shape):
        expected = slope(lambda step, index=index: {"x": moved(x, index, step)})
        assert pull.first[index] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    for index in np.ndindex(z.shape):
        expected = slope(lambda step, index=index: {"z": moved(z, index, step)})
        assert pull.second[index] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_agrees(name):
    x, z, _ = clouds()
    kernel = Kernel(name, (0.5, 1.0, 2.0), 1.7)
    single = kernel.between(x.astype(np.float32), z.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(kernel.between(x, z), rel=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_without_inputs_it_is_a_constant(name):
    kernel = Kernel(name, (), 2.0, 4.0)
    nowhere = np.empty((3, 0))
    assert kernel.between(nowhere, nowhere) == pytest.approx(np.full((3, 3), 6.0))
    pull = kernel.pull(np.ones((3, 3)), nowhere, nowhere)
    assert pull.variance == pytest.approx(18.0)
    assert pull.first.shape == (3, 0)


def test_logs_and_words_lead_back():
    kernel = Kernel("matern", (0.5, 2.0), 3.0, 1.0)
    again = kernel.at_logs(kernel.logs)
    assert again.length_scales == pytest.approx(kernel.length_scales)
    assert Kernel(**json.loads(json.dumps(asdict(kernel)))) == kernel


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("mattern", (1.0,), 1.0), "did you mean matern"),
        (("rbf", (0.0,), 1.0), "positive"),
        (("rbf", (1.0,), -1.0), "positive"),
        (("rbf", (1.0,), float("nan")), "positive"),
        (("rbf", (1.0,), 1.0, -1.0), "positive"),
    ],
)
def test_what_is_no_kernel_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Kernel(*settings)
