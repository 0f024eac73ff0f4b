"""What a refinement is for: a goal has a figure that falls as more is known, and is reached when it is small enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from sateen.core.errors import InputError
from sateen.core.text import finite, percent, shown


@dataclass(frozen=True, slots=True)
class Threshold:
    """Know where f is at least `probability`: the share of the space whose band contains it is at most `undecided`.

    The band is the credible interval of the `level`; the share is under the space's measure.

    >>> print(Threshold(0.1, undecided=0.03))
    at most 3 % of the space undecided about f >= 0.1, by bands of 95 %
    """

    probability: float
    undecided: float = 0.05
    level: float = 0.95
    name: ClassVar[str] = "undecided share"

    def __post_init__(self) -> None:
        check_inside(self.probability, "probability", "0.1")
        check_inside(self.undecided, "undecided", "0.05")
        check_inside(self.level, "level", "0.95")

    @property
    def aim(self) -> float:
        """The figure at which it is reached."""
        return self.undecided

    def words(self, figure: float) -> str:
        """The figure in words."""
        return f"{percent(round(figure, 5))} undecided"

    def __str__(self) -> str:
        about = f"about f >= {self.probability:g}, by bands of {percent(self.level)}"
        return f"at most {percent(self.undecided)} of the space undecided {about}"


@dataclass(frozen=True, slots=True)
class Width:
    """Know f everywhere: on a `share` of the space the credible interval of the `level` is at most `width` wide.

    >>> print(Width(0.05))
    credible intervals of 95 % at most 0.05 wide on 95 % of the space
    """

    width: float
    share: float = 0.95
    level: float = 0.95
    name: ClassVar[str] = "width"

    def __post_init__(self) -> None:
        for field, example in (("width", "0.05"), ("share", "0.95"), ("level", "0.95")):
            check_inside(getattr(self, field), field, example)

    @property
    def aim(self) -> float:
        """The figure at which it is reached."""
        return self.width

    def words(self, figure: float) -> str:
        """The figure in words."""
        return f"intervals of width {figure:.3g} on {percent(self.share)} of the space"

    def __str__(self) -> str:
        where = f"on {percent(self.share)} of the space"
        return f"credible intervals of {percent(self.level)} at most {self.width:g} wide {where}"


@dataclass(frozen=True, slots=True)
class Error:
    """Know f on average: the root mean square, over the space, of the standard deviation of f is at most `error`.

    >>> print(Error(0.01))
    root-mean-square standard deviation of f at most 0.01
    """

    error: float
    name: ClassVar[str] = "standard deviation"

    def __post_init__(self) -> None:
        check_inside(self.error, "error", "0.01")

    @property
    def aim(self) -> float:
        """The figure at which it is reached."""
        return self.error

    def words(self, figure: float) -> str:
        """The figure in words."""
        return f"root-mean-square standard deviation {figure:.3g}"

    def __str__(self) -> str:
        return f"root-mean-square standard deviation of f at most {self.error:g}"


@dataclass(frozen=True, slots=True)
class Optimum:
    """Know where f is largest, or smallest with `minimise`: the expected regret of the best point is at most `regret`.

    For a robust design, `within` gives tolerances: f is averaged over a box around the point, with a half-width for
    each parameter that may deviate. The half-width is absolute on a linear scale; on a log scale, 0.1 means a factor of
    1.1 either way. With `worst`, the smallest value in the box counts instead of the mean.

    >>> print(Optimum(regret=0.003))
    expected regret of the best point at most 0.003
    """

    regret: float = 0.003
    minimise: bool = False
    within: Mapping[str, float] | None = None
    worst: bool = False
    name: ClassVar[str] = "expected regret"

    def __post_init__(self) -> None:
        check_inside(self.regret, "regret", "0.003")
        if self.within is not None:
            for name, half in self.within.items():
                if (number := finite(half)) is None or number <= 0:
                    raise InputError(
                        f"{{within}} has {shown(half)} for {name}, and a tolerance is a number above 0",
                        argument="within",
                    )
            object.__setattr__(self, "within", MappingProxyType(dict(self.within)))
        elif self.worst:
            raise InputError("{worst} is about the box of tolerances", argument="worst", remedy="give {within} too")

    @property
    def aim(self) -> float:
        """The figure at which it is reached."""
        return self.regret

    def words(self, figure: float) -> str:
        """The figure in words."""
        return f"expected regret {figure:.3g}"

    def __str__(self) -> str:
        return f"expected regret of the best point at most {self.regret:g}"

    def __reduce__(self) -> tuple[object, ...]:
        within = None if self.within is None else dict(self.within)  # read-only mappings do not travel, dicts do
        return Optimum, (self.regret, self.minimise, within, self.worst)


Goal: TypeAlias = Threshold | Width | Error | Optimum


def check_inside(value: object, argument: str, example: str) -> None:
    """Refuse what is not a number between 0 and 1."""
    number = finite(value)
    if number is None or not 0.0 < number < 1.0 or math.isnan(number):
        raise InputError(
            f"{{{argument}}} is a number between 0 and 1, such as {example}, not {shown(value)}", argument=argument
        )
