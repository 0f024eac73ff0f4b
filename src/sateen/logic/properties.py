"""Properties that a file asks about: a formula each, and what its probability is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass

from sateen.core.errors import FormulaError, nearest
from sateen.logic.formula import Formula

__all__ = ["Properties", "Property"]


@dataclass(frozen=True, slots=True)
class Property:
    """A path formula of which the probability is asked, or compared: `comparison` is None, or one of < <= > >=."""

    name: str
    formula: Formula
    comparison: str | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Properties(Mapping[str, Property]):
    """The properties of a file by name; one without a name is called property_1, by its place among them.

    Iterating gives those in `read`. `refused` are the errors of the others; asking for one of them raises it.
    """

    read: Mapping[str, Property]
    refused: Mapping[str, FormulaError]

    def __getitem__(self, name: str) -> Property:
        if name in self.refused:
            raise copy(self.refused[name])
        if name not in self.read:
            known = [*self.read, *self.refused]
            hint = nearest(name, known) or f"there are {', '.join(known[:10])}{', ...' if known[10:] else ''}"
            raise KeyError(f"no property {name}; {hint}")
        return self.read[name]

    def __contains__(self, name: object) -> bool:
        return name in self.read

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)
