"""Fingerprints: hashes of plain data and arrays that are the same on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from sateen.core.types import Array, Arrays


def fingerprint(content: object) -> str:
    """SHA-256 of plain data, whatever the order of its keys.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return checksum(plain_json(content), {})


def checksum(content: object, arrays: Arrays) -> str:
    """SHA-256 of plain data and arrays."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = little_endian(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def little_endian(array: Array) -> Array:
    """The array as files store it: row after row, the lowest byte of a number first."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def plain_json(value: object) -> object:
    """Plain data that JSON can represent: an infinite number becomes the text "inf" or "-inf", NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    if isinstance(value, float):
        return None if value != value else value if abs(value) != float("inf") else str(value)
    return value
