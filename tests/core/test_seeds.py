"""Streams: the same names give the same numbers, different names independent ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from sateen.core.seeds import seed_sequence, stream, stream_seed

seeds = some.integers(0, 2**63 - 1)
names = some.lists(some.one_of(some.text(max_size=5), some.integers(-5, 5)), max_size=4).map(tuple)


@given(seeds, names)
def test_the_same_seed_and_names_give_the_same_numbers(seed, chosen):
    assert (
        stream(seed, *chosen).integers(2**63, size=4).tolist() == stream(seed, *chosen).integers(2**63, size=4).tolist()
    )
    assert stream_seed(seed, *chosen) == stream_seed(seed, *chosen)


@given(seeds, names, names)
def test_other_names_give_other_numbers(seed, one, other):
    kinds = [[(type(name), name) for name in chosen] for chosen in (one, other)]
    assume(kinds[0] != kinds[1])
    assert (
        seed_sequence(seed, *one).generate_state(4).tolist() != seed_sequence(seed, *other).generate_state(4).tolist()
    )


@given(seeds, seeds, names)
def test_other_seeds_give_other_numbers(one, other, chosen):
    assume(one != other)
    assert (
        seed_sequence(one, *chosen).generate_state(4).tolist()
        != seed_sequence(other, *chosen).generate_state(4).tolist()
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", "b"), ("ab",)),
        (("a", "b"), ("b", "a")),
        ((1,), ("1",)),
        ((1, 2), (12,)),
        ((), ("",)),
        (("a",), ("a", "")),
        (("a str b",), ("a", "b")),
        (("a\0str b",), ("a", "b")),
        (("a\0\0str b",), ("a\0", "b")),
    ],
)
def test_names_are_told_apart_by_where_they_end_and_by_their_kind(one, other):
    assert seed_sequence(7, *one).generate_state(4).tolist() != seed_sequence(7, *other).generate_state(4).tolist()


def test_a_seed_of_a_stream_is_a_plain_number_that_every_seed_argument_takes():
    for number in range(100):
        seed = stream_seed(3, "points", number)
        assert type(seed) is int
        assert 0 <= seed < 2**32
        np.random.default_rng(seed)


def test_streams_with_different_names_are_uncorrelated():
    """Of 200 streams, the correlations of neighbours are those of independent numbers: 5 deviations at most."""
    drawn = np.array([stream(1, "stage", number).standard_normal(1000) for number in range(200)])
    correlations = (drawn[1:] * drawn[:-1]).mean(axis=1)
    assert np.abs(correlations).max() < 5 / np.sqrt(1000)


def test_a_stream_does_not_change_when_another_is_drawn_from():
    first, other = stream(1, "a"), stream(1, "b")
    other.random(1000)
    assert first.random(5).tolist() == stream(1, "a").random(5).tolist()
