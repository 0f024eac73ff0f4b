"""What generated kernels call: bits of numbers, the mixing of seeds, and the algebra of `logic`, compiled."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import llvmlite.ir  # type: ignore[import-untyped]
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from sateen.logic import intervals

__all__ = [
    "as_bits",
    "as_double",
    "bit_switches",
    "complement",
    "contains",
    "eventually",
    "filled",
    "intersection",
    "known_until",
    "mixed",
    "union",
    "until",
]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def mixed(z: Any) -> Any:
    """Splitmix64: a bijection of 64 bits that leaves no pattern; seeds the lanes' generators."""
    z = z + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@intrinsic
def as_double(context: Any, bits: Any) -> Any:
    """The double with these 64 bits."""
    return types.float64(types.uint64), lambda _context, builder, _signature, arguments: builder.bitcast(
        arguments[0], llvmlite.ir.DoubleType()
    )


@intrinsic
def as_bits(context: Any, double: Any) -> Any:
    """The 64 bits of a double."""
    return types.uint64(types.float64), lambda _context, builder, _signature, arguments: builder.bitcast(
        arguments[0], llvmlite.ir.IntType(64)
    )


@njit
def bit_switches(places: Any, book: Any, bit: int, size: int, out: Any) -> int:
    """The set on which one bit of a log is 1; where places are equal the last one wins. Room: size."""
    written = 0
    inside = False
    for i in range(size):
        if i + 1 < size and places[i + 1] == places[i]:
            continue
        holds = (np.int64(book[i, 1]) >> bit) & 1 == 1
        if holds != inside:
            out[written] = places[i]
            written += 1
            inside = holds
    return written


def _compiled_algebra() -> dict[str, Any]:
    """The functions of `logic/intervals.py`, each compiled, calling each other compiled: one algebra, one truth."""
    namespace = dict(vars(intervals))
    for name, function in vars(intervals).items():
        if isinstance(function, FunctionType):
            namespace[name] = njit(FunctionType(function.__code__, namespace, name))
    return namespace


_ALGEBRA = _compiled_algebra()
complement = _ALGEBRA["complement"]
contains = _ALGEBRA["contains"]
eventually = _ALGEBRA["eventually"]
intersection = _ALGEBRA["intersection"]
known_until = _ALGEBRA["known_until"]
union = _ALGEBRA["union"]
until = _ALGEBRA["until"]


@njit
def filled(x: Any, n: int, last: int, beyond: bool, endless: bool, out: Any) -> Any:
    """`known_until`, or the set as it is where everything is known. Room: n + 1."""
    if not endless:
        return known_until(x, n, last, beyond, out)
    for i in range(n):
        out[i] = x[i]
    return n
