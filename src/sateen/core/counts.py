"""Columns: read-only arrays, counts that were checked, and data frames of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError, SateenError
from sateen.core.types import Array, IntArray

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

_Array = TypeVar("_Array", bound=Array)
_MOST = 2**62  # so that sums of two stay whole numbers of 64 bits


def read_only(array: _Array) -> _Array:
    """The array itself, from now on read-only."""
    array.setflags(write=False)
    return array


def is_frame(given: object) -> bool:
    """Whether it is a data frame, of whatever library."""
    return hasattr(given, "columns") and hasattr(given, "to_numpy")


def data_frame(data: object, columns: Sequence[str], length: int) -> DataFrame:
    """A pandas data frame with `length` rows."""
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise SateenError("a data frame needs pandas, which is not installed: pip install pandas") from None
    return pandas.DataFrame(data, index=range(length), columns=list(columns))


def counts_of(given: npt.ArrayLike, length: int, what: str, least: int = 0) -> IntArray:
    """A read-only column of whole numbers from `least` up; a single number is repeated.

    >>> counts_of(50, 3, "trials")
    array([50, 50, 50])
    """
    array = np.asarray(given)
    if array.size == 0 and length == 0:
        array = np.zeros(0, np.int64)
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.all(array == np.floor(array))):
        raise InputError(f"{what} must be whole numbers, and not all of these are: {_shown(array)}")
    if array.shape not in ((), (length,)):
        raise InputError(f"{what} has the shape {array.shape}; {length} points need {length} numbers, or a single one")
    if (wrong := (array < least) | (array > _MOST)).any():
        raise InputError(f"{what} is {array[wrong].flat[0]}{_place(wrong)}; it must be from {least} to 2^62")
    column = np.empty(length, np.int64)
    column[...] = array
    return read_only(column)


def check_sums(satisfied: IntArray, undecided: IntArray, trials: IntArray) -> None:
    """No point has more verdicts than runs."""
    if (wrong := satisfied + undecided > trials).any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"row {row} has {satisfied[row]} satisfied and {undecided[row]} undecided runs of {trials[row]}; "
            "together they cannot be more than its trials"
        )


def origin_of(seed: int | None, origin: npt.ArrayLike | None, length: int) -> IntArray:
    """The seed and the point index of each row: given, or one seed with the indices 0, 1, ...; -1 for not known."""
    if origin is None:
        known = seed is not None
        column = np.full(length, seed if known else -1, np.int64)
        return read_only(np.column_stack([column, np.arange(length) if known else column]))
    pairs = np.array(origin)
    if pairs.shape != (length, 2) or (pairs.size and pairs.dtype.kind not in "iu") or (pairs < -1).any():
        raise InputError(f"origin needs a seed and a point index for each of {length} points, a table of whole numbers")
    return read_only(pairs.astype(np.int64))


def reasons_of(given: Mapping[str, npt.ArrayLike] | None, undecided: IntArray) -> Mapping[str, IntArray]:
    """The undecided runs of each point by reason; those that never occur are left out."""
    if given is None:
        given = {"unknown": undecided}
    columns = {reason: counts_of(counts, len(undecided), f"reasons[{reason!r}]") for reason, counts in given.items()}
    split = sum(columns.values(), start=np.zeros(len(undecided), np.int64))
    if (wrong := split != undecided).any():
        row = int(np.argmax(wrong))
        raise InputError(f"row {row} has {undecided[row]} undecided runs, but reasons for {split[row]} of them")
    return MappingProxyType({reason: counts for reason, counts in columns.items() if counts.any()})


def _shown(array: Array) -> str:
    return np.array2string(array.reshape(-1)[:3], separator=", ", threshold=4)


def _place(wrong: npt.NDArray[np.bool_]) -> str:
    return f" in row {int(np.argmax(wrong))}" if wrong.ndim else ""
