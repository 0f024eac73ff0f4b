"""Even points in the unit cube: scrambled Sobol sequences and Latin hypercubes, the same to the bit as scipy's.

scipy's own need `scipy.stats`, and to import that takes longer than all else before the first run. Here only scipy's
table of direction numbers (Joe and Kuo 2008) is read. Where a version of scipy keeps none, its own sequence is used.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.types import FloatArray

_BITS: Final = 30
_Bits: TypeAlias = npt.NDArray[np.uint32]


def sobol_cube(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """The first `n` points of a scrambled Sobol sequence, as an (n, dimension) table."""
    if not 0 < n <= 2**_BITS:
        raise ValueError(f"a Sobol sequence has from 1 to 2**{_BITS} points, not {n}")
    numbers = _direction_numbers(dimension)
    if numbers is None:
        return _by_scipy(dimension, n, rng)
    rng = rng.spawn(1)[0]  # as scipy does
    shift = rng.integers(2, size=(dimension, _BITS), dtype=np.uint32) @ (1 << np.arange(_BITS, dtype=np.uint32))
    lower = np.tril(rng.integers(2, size=(dimension, _BITS, _BITS), dtype=np.uint32))
    scrambled = _scrambled(numbers, lower)
    # In the order of Gray's code: the second half is the first one backward, with one more number.
    points = np.empty((1 << (n - 1).bit_length(), dimension), dtype=np.uint32)
    points[0] = shift
    for place in range((n - 1).bit_length()):
        half = 1 << place
        points[half : 2 * half] = points[half - 1 :: -1] ^ scrambled[:, place]
    return np.asarray(points[:n] * 2.0**-_BITS)


def latin_cube(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """A Latin hypercube of `n` points: each of `n` equal parts of an axis holds one of them."""
    rng = rng.spawn(1)[0]  # as scipy does
    within = rng.uniform(size=(n, dimension))
    parts = np.tile(np.arange(1, n + 1), (dimension, 1))
    for row in parts:
        rng.shuffle(row)
    return np.asarray((parts.T - within) / n)


def _scrambled(numbers: _Bits, lower: _Bits) -> _Bits:
    """Direction numbers after a random linear map of their bits, the highest first; `lower` gets a diagonal of ones."""
    places = np.arange(_BITS, dtype=np.uint32)[::-1]
    lower[:, places, places] = 1
    bits = (numbers[:, None, :] >> places[:, None]) & 1  # a column of bits for each number
    return np.asarray((((lower @ bits) & 1) << places[:, None]).sum(axis=1, dtype=np.uint32))


@cache
def _table() -> tuple[_Bits, _Bits] | None:
    """The primitive polynomials and first numbers of each dimension, from scipy's file; None where it has none."""
    spec = find_spec("scipy")
    if spec is None or spec.origin is None:
        return None
    try:
        with np.load(Path(spec.origin).parent / "stats" / "_sobol_direction_numbers.npz") as table:
            return table["poly"].astype(np.uint32), table["vinit"].astype(np.uint32)
    except (OSError, KeyError, ValueError):
        return None


def _direction_numbers(dimension: int) -> _Bits | None:
    """The numbers of each dimension, one for each bit of a point's place."""
    table = _table()
    if table is None or dimension > len(table[0]):
        return None
    polynomials, first = table
    numbers = np.ones((dimension, _BITS), dtype=np.uint32)
    for row, polynomial, start in zip(numbers[1:], polynomials[1:].tolist(), first[1:], strict=False):
        degree = polynomial.bit_length() - 1
        row[:degree] = start[:degree]
        for place in range(degree, _BITS):
            row[place] = row[place - degree]
            for back in range(1, degree + 1):
                if (polynomial >> (degree - back)) & 1:
                    row[place] ^= row[place - back] << back
    return numbers << np.arange(_BITS, dtype=np.uint32)[::-1]


def _by_scipy(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """The same by scipy, which refuses more dimensions than it knows."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimension, rng=rng).random_base2((n - 1).bit_length())[:n])
