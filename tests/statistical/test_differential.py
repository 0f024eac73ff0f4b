"""The fast engine against replay, monitor, exact and the reference simulator, on random families.

Comparisons in numbers are at 1e-11 each, so that a hundred thousand raise a false alarm with probability 1e-6. The
nightly run is what `benchmarks/differential.py` counts; its last result is in benchmarks/results/differential.json.
"""

from __future__ import annotations

import pytest

from differential import check
from random_families import family


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_a_random_family_is_the_same_for_all(number: int) -> None:
    tally = check(family(number, groups=1, points=30))
    assert not tally.differences, "\n".join(map(str, tally.differences[:5]))


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(200))
def test_every_random_family_is_the_same_for_all(number: int) -> None:
    tally = check(family(number))
    assert not tally.differences, "\n".join(map(str, tally.differences[:5]))
