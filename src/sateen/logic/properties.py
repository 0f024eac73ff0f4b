"""What a file of properties asks of a model: probabilities of formulas, and expected rewards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sateen.core.errors import FormulaError, nearest
from sateen.logic.formula import Formula
from sateen.logic.rewards import Reward

_Asked_co = TypeVar("_Asked_co", bound=Formula | Reward, covariant=True)


@dataclass(frozen=True, slots=True)
class Property(Generic[_Asked_co]):
    """What is asked: the probability of a path formula, or an expected reward.

    It may be compared with a `bound`: `comparison` is None, or one of < <= > >=.
    """

    name: str
    formula: _Asked_co
    comparison: str | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Properties(Mapping[str, Property[Any]]):
    """The properties of a file by name; one without a name is called property_1, by its place among them.

    Iterating gives those in `read`. `refused` are the errors of the others; asking for one of them raises it.
    """

    read: Mapping[str, Property[Any]]
    refused: Mapping[str, FormulaError]

    def __getitem__(self, name: str) -> Property[Any]:
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
