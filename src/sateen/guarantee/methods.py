"""The names of guarantees and of what normalises them, and which go together; light enough for `sateen --help`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

__all__ = ["LIFT_NORMALISERS", "METHODS", "NORMALISERS", "NORMALISERS_OF", "Method", "Normaliser"]

Method: TypeAlias = Literal["icp", "nicp", "chernoff", "lift"]
METHODS: Final[tuple[Method, ...]] = ("icp", "nicp", "chernoff", "lift")
Normaliser: TypeAlias = Literal["posterior", "quantile", "predictive", "constant"]
NORMALISERS: Final[tuple[Normaliser, ...]] = ("posterior", "quantile", "predictive", "constant")
LIFT_NORMALISERS: Final[tuple[Normaliser, ...]] = ("predictive", "posterior", "constant")
NORMALISERS_OF: Final[Mapping[str, tuple[Normaliser, ...]]] = MappingProxyType(
    {
        "icp": (),
        "nicp": ("posterior", "quantile", "predictive"),
        "chernoff": ("posterior", "quantile", "predictive"),
        "lift": LIFT_NORMALISERS,
    }
)
