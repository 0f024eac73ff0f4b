"""The two readings of the paper's experiments, and how one is chosen by name.

`paper-data` is what the published numbers come from, found by simulating them again; it is the one to compare with
Table 1. `as-stated` is what the paper prints, and the one for everything else. Both are read in dense time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from sateen.core.errors import InputError, nearest

if TYPE_CHECKING:
    from sateen.logic.formula import Formula

__all__ = ["VARIANTS", "Property", "Variant", "in_variant", "property_in_variant"]

Variant: TypeAlias = Literal["paper-data", "as-stated"]
VARIANTS: Final[tuple[Variant, ...]] = ("paper-data", "as-stated")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Property:
    """A formula as text, and the time at which paths are cut before it is read, if they are."""

    text: str
    end: float | None = None


def in_variant(readings: Mapping[Variant, _T], variant: str) -> _T:
    """The reading that `variant` names.

    >>> in_variant({"paper-data": 450, "as-stated": 4500}, "as-stated")
    4500
    """
    for name, reading in readings.items():
        if name == variant:
            return reading
    hint = nearest(str(variant), readings) or f"there are {' and '.join(readings)}"
    raise InputError(f"{variant!r} is no variant of this case; {hint}")


def property_in_variant(readings: Mapping[Variant, Property], variant: str) -> Formula:
    """The formula of the reading that `variant` names."""
    from sateen.logic.parser import stl

    chosen = in_variant(readings, variant)
    return stl(chosen.text, end=chosen.end)
