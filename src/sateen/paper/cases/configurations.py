"""The paper's ten configurations: which model, what varies, what is asked, and how much data.

A configuration is read in one of two variants (`models.py`): `paper-data`, which its published figures come from, is
the one it begins with; `.variant("as-stated")` is the same experiment as the paper prints it.

>>> e = configuration("e")
>>> e.space, e.variant("as-stated").space
(Space(k2=(10, 10000), k7=(0.45, 450)), Space(k2=(10, 10000), k7=(0.45, 4500)))
>>> e.train.points, e.train.runs, e.published.figures["svi-bnn"].rmse
(2500, 50, 0.0206)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np

import sateen as st
from sateen.paper.cases.models import VARIANTS, Case, Variant, in_variant, lacz, phosphorelay, sir, unknown_name
from sateen.paper.published import TABLE_1, Published

CaseName: TypeAlias = Literal["sir", "lacz", "phosphorelay"]
_CASES: Final[Mapping[CaseName, Case]] = {"sir": sir, "lacz": lacz, "phosphorelay": phosphorelay}


@dataclass(frozen=True, slots=True)
class Design:
    """`points` parameter values, on a grid with as many per axis or in a Latin hypercube, and `runs` at each.

    Both spread evenly on the scale of each range.

    >>> square = Design("grid", points=2500, runs=50)
    >>> len(square.draw(st.Space(beta=(0, 1), gamma=(0, 1)))), square.total
    (2500, 125000)
    """

    kind: Literal["grid", "latin"]
    points: int
    runs: int

    def __post_init__(self) -> None:
        if self.kind not in ("grid", "latin"):
            raise unknown_name(f"{self.kind!r} is not a kind of design", str(self.kind), ("grid", "latin"))
        if min(self.points, self.runs) < 1:
            raise st.InputError(f"a design has points and runs, not {self.points} points of {self.runs} runs")

    @property
    def total(self) -> int:
        """The number of runs in all."""
        return self.points * self.runs

    def per_axis(self, dimension: int) -> int:
        """How many values a grid of this many dimensions has on each axis."""
        count = round(float(self.points ** (1 / dimension)))
        if count**dimension != self.points:
            raise st.InputError(
                f"{self.points} points do not make a grid of dimension {dimension} with as many on each axis"
            )
        return count

    def draw(self, space: st.Space, seed: int | np.random.SeedSequence | None = None) -> st.Points:
        """The points in `space`. A grid is the same for every seed, and needs none; a Latin hypercube needs one."""
        if self.kind == "grid":
            return space.grid(self.per_axis(space.dimension))
        if seed is None:
            raise st.InputError("a Latin hypercube is drawn at random; give it a seed, seed=1")
        return space.latin(self.points, seed=seed)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One experiment of the paper: a case, the space its parameters vary in, its data sets and its published figures.

    Parameters that the space does not name have the model's defaults. `reading` is the variant in which `formula`,
    `space` and the points are understood.
    """

    name: str
    case: CaseName
    spaces: Mapping[Variant, st.Space] = field(hash=False)
    train: Design
    test: Design
    published: Published
    reading: Variant = "paper-data"

    def variant(self, name: str) -> Configuration:
        """The same experiment in the variant `name`, "paper-data" or "as-stated"."""
        return replace(self, reading=in_variant({each: each for each in VARIANTS}, name))

    @property
    def model(self) -> st.Model:
        """The case's model."""
        return _CASES[self.case].model()

    @property
    def formulas(self) -> Mapping[Variant, st.Formula]:
        """What is asked, in each variant."""
        return MappingProxyType({each: _CASES[self.case].formula(each) for each in VARIANTS})

    @property
    def formula(self) -> st.Formula:
        """What is asked."""
        return _CASES[self.case].formula(self.reading)

    @property
    def space(self) -> st.Space:
        """The parameters that vary, and those that the configuration fixes."""
        return self.spaces[self.reading]


def configuration(name: str) -> Configuration:
    """The configuration `name`, one of a b c d e f g h i l, in the variant paper-data."""
    if name not in CONFIGURATIONS:
        raise unknown_name(f"the paper has no configuration {name!r}", str(name), CONFIGURATIONS)
    return CONFIGURATIONS[name]


_BETA: Final = (0.005, 0.3)
_GAMMA: Final = (0.005, 0.2)
_KP: Final = (0.01, 0.2)
_KD: Final = (0.005, 0.1)
_K4: Final = (0.5, 5)
_LAYERS: Final = {"k1": (0.1, 2), "k2": (0.1, 2), "k3": (0.1, 2)}
_PLANE: Final = Design("grid", 2500, 50), Design("grid", 400, 1000)  # 50 and 20 values per axis

_ROWS: Final[tuple[tuple[str, CaseName, st.Space, Design, Design], ...]] = (
    ("a", "sir", st.Space(beta=_BETA, gamma=0.05), Design("grid", 500, 50), Design("grid", 1000, 1000)),
    ("b", "sir", st.Space(beta=0.12, gamma=_GAMMA), Design("grid", 700, 50), Design("grid", 1000, 1000)),
    ("c", "sir", st.Space(beta=_BETA, gamma=_GAMMA), *_PLANE),
    ("d", "lacz", st.Space(k2=(10, 1e5)), Design("grid", 500, 50), Design("grid", 400, 1000)),
    ("e", "lacz", st.Space(k2=(10, 1e4), k7=(0.45, 450)), *_PLANE),
    ("f", "phosphorelay", st.Space(k1=(0.1, 2)), Design("grid", 500, 50), Design("grid", 1000, 1000)),
    ("g", "phosphorelay", st.Space(kp=_KP, kd=_KD), *_PLANE),
    ("h", "phosphorelay", st.Space(_LAYERS), Design("latin", 8000, 20), Design("latin", 1000, 1000)),
    ("i", "phosphorelay", st.Space(_LAYERS, k4=_K4), Design("latin", 10_000, 20), Design("latin", 4096, 1000)),
    (
        "l",
        "phosphorelay",
        st.Space({"kp": _KP, **_LAYERS, "k4": _K4, "kd": _KD}),
        Design("latin", 1_000_000, 20),
        Design("latin", 4096, 1000),
    ),
)

# The text lets k7 reach 4500; the published numbers come from 450.
_AS_STATED: Final = {"e": st.Space(k2=(10, 1e4), k7=(0.45, 4500))}


def _spaces(name: str, space: st.Space) -> Mapping[Variant, st.Space]:
    return MappingProxyType({"paper-data": space, "as-stated": _AS_STATED.get(name, space)})


CONFIGURATIONS: Final[Mapping[str, Configuration]] = MappingProxyType(
    {
        name: Configuration(name, case, _spaces(name, space), train, test, TABLE_1[name])
        for name, case, space, train, test in _ROWS
    }
)
