"""What the paper asks: the functions that are learned, the designs of their data sets, and how their truth is found.

A question has a name: a … i and l are the paper's configurations, in the reading that its published figures come from
(`paper/cases/variants.py`); r08/m2 is the second of the three random networks with eight rates. A configuration asks
for one function, a network for three, which share all their runs.

Training sets are numbered from 1 up. Sets with different numbers, and those of different questions, are independent of
each other, of the test set, of the runs behind the truth and of those for calibrations.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from sateen.core.errors import InputError, nearest
from sateen.core.space import Points, Range, Space
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.paper.cases.configurations import CONFIGURATIONS
from sateen.paper.cases.design import Design
from sateen.paper.cases.random_ctmc import HORIZON, KINDS, random_network
from sateen.paper.published import DIMENSIONS

__all__ = ["NETWORKS", "PARTS", "TRUTH_RUNS", "Question", "Role", "Set", "questions"]

Set: TypeAlias = Literal["train", "test", "truth"]
Role: TypeAlias = Set | Literal["held-out"]
_ROLES: Final[tuple[Role, ...]] = ("train", "test", "truth", "held-out")
_RATES: Final = MappingProxyType({f"r{rates:02d}": rates for rates in DIMENSIONS})
PARTS: Final = (*CONFIGURATIONS, *_RATES, "random")

# Runs at each point behind the truth; None where it is computed.
TRUTH_RUNS: Final[Mapping[str, int | None]] = MappingProxyType(
    {"sir": None, "lacz": 5000, "phosphorelay": 50_000, "random": 20_000}
)
_FEWEST_TRUTH_RUNS: Final = 200  # of a part of the work that is done to try it
_FEWEST_POINTS: Final = 4

# The first three seeds from 1000 r + 1 on whose networks have an informative property of every kind, and the species
# in those that `informative_properties` finds with the seed: Si and Sj of phi1, Si and Sj of phi2, and Si of phi3.
_Network: TypeAlias = tuple[int, str, str, str, str, str]
NETWORKS: Final[Mapping[int, tuple[_Network, ...]]] = MappingProxyType(
    {
        2: (
            (2001, "S1", "S3", "S3", "S2", "S1"),
            (2003, "S3", "S2", "S2", "S3", "S3"),
            (2004, "S2", "S3", "S3", "S1", "S1"),
        ),
        3: (
            (3001, "S1", "S2", "S2", "S1", "S2"),
            (3002, "S1", "S4", "S4", "S1", "S1"),
            (3003, "S2", "S4", "S1", "S2", "S3"),
        ),
        4: (
            (4001, "S5", "S3", "S3", "S1", "S2"),
            (4005, "S3", "S4", "S4", "S5", "S1"),
            (4006, "S2", "S1", "S4", "S2", "S5"),
        ),
        8: (
            (8001, "S4", "S3", "S2", "S7", "S8"),
            (8002, "S6", "S5", "S5", "S3", "S7"),
            (8003, "S2", "S9", "S9", "S7", "S7"),
        ),
        12: (
            (12001, "S10", "S7", "S13", "S8", "S4"),
            (12002, "S6", "S11", "S1", "S9", "S7"),
            (12003, "S3", "S6", "S7", "S11", "S11"),
        ),
        16: (
            (16001, "S1", "S2", "S17", "S5", "S1"),
            (16002, "S4", "S11", "S1", "S4", "S14"),
            (16003, "S1", "S14", "S14", "S13", "S11"),
        ),
        20: (
            (20001, "S12", "S17", "S14", "S12", "S10"),
            (20002, "S18", "S13", "S9", "S18", "S6"),
            (20003, "S4", "S15", "S15", "S12", "S8"),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Question:
    """Functions to learn from the same runs, each P(formula | θ) over the space, and the sizes of the data sets.

    `part` is the part of the paper that asks, a configuration or "random". `truth_runs` is None where the truth is
    computed. `share` is 1, or the share of the points that are looked at when the work is only tried.
    """

    name: str
    part: str
    model: Model
    formulas: Mapping[str, Formula] = field(hash=False)
    space: Space
    train: Design
    test: Design
    truth_runs: int | None
    share: float = 1.0

    @property
    def dimension(self) -> int:
        """How many parameters vary."""
        return self.space.dimension

    def tried(self, share: float) -> Question:
        """The same question with a share of the points, and of the runs behind the truth."""
        if not 0 < share <= 1:
            raise InputError(f"a share of the points lies above 0 and is at most 1, not {share:g}")
        runs = None if self.truth_runs is None else max(_FEWEST_TRUTH_RUNS, round(self.truth_runs * share))
        train, test = (self._fewer(design, share) for design in (self.train, self.test))
        return replace(self, train=train, test=test, truth_runs=runs if share < 1 else self.truth_runs, share=share)

    def points(self, role: Set, number: int = 0) -> Points:
        """The parameter values of a set; the truth is asked at the test points."""
        if role == "train":
            return self.train.draw(self.space, self._seeds(role, number)[0])
        return self.test.draw(self.space, self._seeds("test")[0])

    def uniform(self, count: int) -> Points:
        """Independent points for calibrations."""
        return self.space.uniform(count, seed=self._seeds("held-out")[0])

    def run_seed(self, role: Role, number: int = 0) -> int:
        """The seed of the runs of a set."""
        return int(self._seeds(role, number)[1].generate_state(1, np.uint64)[0] >> 1)

    def content(self) -> dict[str, Any]:
        """All that decides what its runs are, as plain data; without the formulas."""
        parameters = [
            [name, [own.low, own.high, own.scale] if isinstance(own, Range) else own]
            for name, own in self.space.parameters
        ]
        return {"question": self.name, "model": str(self.model), "space": parameters}

    def _fewer(self, design: Design, share: float) -> Design:
        if design.kind == "latin":
            return replace(design, points=max(_FEWEST_POINTS, round(design.points * share)))
        axis = max(_FEWEST_POINTS, round(design.per_axis(self.dimension) * share ** (1 / self.dimension)))
        return replace(design, points=axis**self.dimension)

    def _seeds(self, role: Role, number: int = 0) -> list[np.random.SeedSequence]:
        """The seeds of the design and of the runs of a set."""
        own = (zlib.crc32(self.name.encode()), _ROLES.index(role))
        return np.random.SeedSequence(number, spawn_key=own).spawn(2)


def questions(parts: Sequence[str], share: float = 1.0) -> tuple[Question, ...]:
    """What the parts of the paper ask, in its order: configurations by letter, networks by their number of rates as in
    r08, and "random" for all networks.

    >>> [question.name for question in questions(["c", "r02", "a"])]
    ['a', 'c', 'r02/m1', 'r02/m2', 'r02/m3']
    >>> len(questions(["random"]))
    21
    """
    for part in parts:
        if part not in PARTS:
            hint = nearest(part, PARTS) or f"there are {' '.join(PARTS)}"
            raise InputError(f"the paper has no part {part!r}; {hint}")
    asked = [_configuration(part) for part in CONFIGURATIONS if part in parts]
    for part, rates in _RATES.items():
        if part in parts or "random" in parts:
            asked += [_network(rates, place) for place in range(len(NETWORKS[rates]))]
    return tuple(question.tried(share) for question in asked)


def _configuration(name: str) -> Question:
    own = CONFIGURATIONS[name]
    runs = TRUTH_RUNS[own.case]
    return Question(name, name, own.model, {name: own.formula}, own.space, own.train, own.test, runs)


def _network(rates: int, place: int) -> Question:
    seed, *species = NETWORKS[rates][place]
    network = random_network(rates, seed)
    name = f"r{rates:02d}/m{place + 1}"
    one, other, two, another, three = species
    texts = (
        f"G[0, {HORIZON}] ({one} <= {other})",
        f"F[0, {HORIZON}] ({two} <= {another})",
        f"F[0, {HORIZON}] G ({three} < 20)",
    )
    formulas = {
        f"{name}/{kind}": stl(text, end=HORIZON if kind == "phi3" else None)
        for kind, text in zip(KINDS, texts, strict=True)
    }
    runs = TRUTH_RUNS["random"]
    return Question(name, "random", network.model, formulas, network.space, network.train, network.test, runs)
