"""Names for the arrays and files that travel between rooms."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame  # type: ignore[import-untyped, unused-ignore]

File: TypeAlias = "str | os.PathLike[str]"
Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = "slice | Sequence[int] | Array"  # what chooses rows of a table: a slice, indices, or a mask
Axes: TypeAlias = Any  # matplotlib's, which only the room plot imports
Content: TypeAlias = Mapping[str, Any]  # plain data, as JSON gives it
