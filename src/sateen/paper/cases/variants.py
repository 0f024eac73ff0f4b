"""The two readings of the paper's experiments, and how one is chosen by name.

`paper-data` is what the published numbers come from, found by simulating them again; it is the one to compare with
Table 1. `as-stated` is what the paper prints, and the one for everything else. Both are read in dense time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, TypeVar

import sateen as st

__all__ = ["VARIANTS", "Case", "Property", "Variant", "in_variant", "unknown_name"]

Variant: TypeAlias = Literal["paper-data", "as-stated"]
VARIANTS: Final[tuple[Variant, ...]] = ("paper-data", "as-stated")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Property:
    """A formula as text, and the time at which paths are cut before it is read, if they are."""

    text: str
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A model of the paper as text, and its property in each variant."""

    text: str
    properties: Mapping[Variant, Property] = field(hash=False)

    def model(self) -> st.Model:
        """The model, with the paper's default parameters."""
        return st.Model.parse(self.text)

    def formula(self, variant: str) -> st.Formula:
        """The property, as `variant` reads it."""
        chosen = in_variant(self.properties, variant)
        return st.stl(chosen.text, end=chosen.end)


def in_variant(readings: Mapping[Variant, _T], variant: str) -> _T:
    """The reading that `variant` names.

    >>> in_variant({"paper-data": 450, "as-stated": 4500}, "as-stated")
    4500
    """
    for name, reading in readings.items():
        if name == variant:
            return reading
    raise unknown_name(f"{variant!r} is no variant of this case", variant, readings)


def unknown_name(complaint: str, name: str, known: Iterable[str]) -> st.InputError:
    """The error about an unknown name: with the nearest of the known ones, or with all of them."""
    names = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {names[close[0]]}?" if close else f"there are {', '.join(names.values())}"
    return st.InputError(f"{complaint}; {hint}")
