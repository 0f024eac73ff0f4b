"""What generated kernels call: the bits of numbers, and the mixing of seeds."""

from __future__ import annotations

from typing import Any

import llvmlite.ir  # type: ignore[import-untyped]
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["as_bits", "as_double", "mixed"]

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
