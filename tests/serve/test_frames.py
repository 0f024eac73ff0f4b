"""Frames: small values keep their digits, beside large ones too."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import sateen as st
from sateen.serve.frames import STEPS, View, frame_of, read_frame

SPACE = st.Space(k=(0.1, 2.0))
SEEN = st.Observations.from_counts(SPACE, {"k": [0.5, 1.0, 1.5]}, [1, 2, 3], 5)


def framed(mean):
    """The values of a frame of a posterior with this mean, and its header."""
    band = SimpleNamespace(mean=mean, lower=mean / 2, upper=np.minimum(2 * mean, 1.0))
    posterior = SimpleNamespace(space=SPACE, predict=lambda points, level: band)
    header, values = read_frame(frame_of(posterior, SEEN, View("k"), 1))
    return band, header, values


@pytest.mark.parametrize(("least", "most"), [(3e-6, 1.1e-4), (1e-4, 1.0), (0.3, 0.31), (1e-12, 1e-9)])
def test_a_frame_keeps_the_digits_of_small_values(least, most):
    band, header, values = framed(np.geomspace(least, most, 201))
    for name in header["arrays"]:
        told = getattr(band, name)
        assert np.abs(values[name] / told - 1.0).max() <= 1.001 / (STEPS * np.sqrt(told.min() / told.max()))
        assert np.abs(values[name] / told - 1.0).max() <= 0.002
    assert len(set(values["mean"])) == 201


def test_a_frame_of_zeros_is_one():
    _, _, values = framed(np.zeros(201))
    assert not any(each.any() for each in values.values())


def test_the_numbers_of_a_map_are_less_than_25_kilobytes():
    space = st.Space(a=(0.0, 1.0), b=(0.0, 1.0))
    some = np.full(61 * 61, 0.5)
    band = SimpleNamespace(mean=some, lower=some, upper=some)
    posterior = SimpleNamespace(space=space, predict=lambda points, level: band)
    seen = st.Observations.from_counts(space, {"a": [0.5], "b": [0.5]}, [1], 5)
    frame = frame_of(posterior, seen, View("a", "b"), 1)
    assert len(frame) - int.from_bytes(frame[:4], "little") <= 25_000
