"""Fingerprints: the same for the same content, another for every change, on every machine."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from sateen.core.fingerprints import checksum, fingerprint, little_endian, plain_json

leaves = some.one_of(some.none(), some.booleans(), some.integers(-(2**60), 2**60), some.floats(), some.text(max_size=5))
plain = some.recursive(
    leaves,
    lambda inner: some.one_of(
        some.lists(inner, max_size=3), some.dictionaries(some.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def shuffled(value):
    """The same data, with the keys of every dict in the other order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@given(plain)
def test_it_does_not_depend_on_the_order_of_keys(content):
    assert fingerprint(content) == fingerprint(shuffled(content))


@given(plain, plain)
def test_different_content_has_different_fingerprints(one, other):
    texts = [json.dumps(plain_json(each), sort_keys=True) for each in (one, other)]
    assert (fingerprint(one) == fingerprint(other)) == (texts[0] == texts[1])


@given(plain)
def test_plain_data_can_be_written_as_strict_json_and_read_back(content):
    simple = plain_json(content)
    assert json.loads(json.dumps(simple, allow_nan=False)) == simple
    assert plain_json(simple) == simple


def test_numbers_that_json_lacks_become_text_or_null():
    assert plain_json({"a": (math.inf, -math.inf, math.nan), 1: 2.5}) == {"a": ["inf", "-inf", None], "1": 2.5}


def test_a_fingerprint_is_sha_256_of_the_sorted_text():
    assert fingerprint({"b": 1, "a": [2.5, None]}) == hashlib.sha256(b'{"a": [2.5, null], "b": 1}').hexdigest()


arrays = some.sampled_from(
    [np.arange(6.0), np.arange(6), np.arange(6.0).reshape(2, 3), np.ones((3, 2), bool), np.empty((0, 2))]
)


@given(arrays, arrays)
def test_arrays_count_by_kind_shape_and_values(one, other):
    same = (one.dtype, one.shape) == (other.dtype, other.shape) and np.array_equal(one, other)
    assert (checksum(0, {"x": one}) == checksum(0, {"x": other})) == same


def test_the_name_of_an_array_and_the_content_beside_it_count():
    array = np.arange(3)
    sums = {checksum(content, {name: array}) for content in ({}, [], None) for name in ("x", "y")}
    assert len(sums) == 6


@given(arrays)
def test_neither_byte_order_nor_layout_in_memory_counts(array):
    other = np.asfortranarray(array).astype(array.dtype.newbyteorder(">"))
    assert checksum({}, {"x": array}) == checksum({}, {"x": other})
    assert little_endian(other).flags.c_contiguous
    assert little_endian(other).tobytes() == little_endian(array).tobytes()


@given(some.permutations(["a", "b", "c"]))
def test_the_order_of_arrays_does_not_count(order):
    columns = {"a": np.arange(2), "b": np.arange(3), "c": np.zeros(1)}
    assert checksum(1, columns) == checksum(1, {name: columns[name] for name in order})


def test_where_one_array_ends_and_the_next_begins_counts():
    one = checksum({}, {"a": np.arange(2), "b": np.arange(2, 5)})
    assert one != checksum({}, {"a": np.arange(3), "b": np.arange(3, 5)})


@given(some.floats(allow_nan=False, allow_infinity=False), some.floats(allow_nan=False, allow_infinity=False))
def test_two_numbers_have_one_fingerprint_only_if_they_are_the_same(one, other):
    assume(one != other)
    assert fingerprint(one) != fingerprint(other)


def test_what_is_no_plain_data_is_refused():
    with pytest.raises(TypeError):
        fingerprint({"a": object()})
    with pytest.raises(ValueError, match="JSON"):
        checksum(math.nan, {})
