"""What the paper asks: the functions that are learned, the designs of their data sets, and how their truth is found.

A question has a name: a … i and l are the paper's configurations, in the reading that its published figures come from
(`paper/cases/models.py`); r08/m2 is the second of the three random networks with eight rates. A configuration asks
for one function, a network for three, which share all their runs.

Training sets are numbered from 1 up. Sets with different numbers, and those of different questions, are independent of
each other, of the test set, of the runs behind the truth and of those for calibrations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import sateen as st
from sateen.paper.cases.configurations import CONFIGURATIONS, Design
from sateen.paper.cases.models import unknown_name
from sateen.paper.cases.random_ctmc import KINDS, property_of, random_network
from sateen.paper.published import DIMENSIONS
from sateen.pipeline import stream_seed

Set: TypeAlias = Literal["train", "test", "truth"]
Role: TypeAlias = Set | Literal["held-out"]
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
NETWORKS: Final[Mapping[int, tuple[tuple[int, ...], ...]]] = MappingProxyType(
    {
        2: ((2001, 1, 3, 3, 2, 1), (2003, 3, 2, 2, 3, 3), (2004, 2, 3, 3, 1, 1)),
        3: ((3001, 1, 2, 2, 1, 2), (3002, 1, 4, 4, 1, 1), (3003, 2, 4, 1, 2, 3)),
        4: ((4001, 5, 3, 3, 1, 2), (4005, 3, 4, 4, 5, 1), (4006, 2, 1, 4, 2, 5)),
        8: ((8001, 4, 3, 2, 7, 8), (8002, 6, 5, 5, 3, 7), (8003, 2, 9, 9, 7, 7)),
        12: ((12001, 10, 7, 13, 8, 4), (12002, 6, 11, 1, 9, 7), (12003, 3, 6, 7, 11, 11)),
        16: ((16001, 1, 2, 17, 5, 1), (16002, 4, 11, 1, 4, 14), (16003, 1, 14, 14, 13, 11)),
        20: ((20001, 12, 17, 14, 12, 10), (20002, 18, 13, 9, 18, 6), (20003, 4, 15, 15, 12, 8)),
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
    model: st.Model
    formulas: Mapping[str, st.Formula] = field(hash=False)
    space: st.Space
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
            raise st.InputError(f"a share of the points lies above 0 and is at most 1, not {share:g}")
        runs = None if self.truth_runs is None else max(_FEWEST_TRUTH_RUNS, round(self.truth_runs * share))
        train, test = (self._fewer(design, share) for design in (self.train, self.test))
        return replace(self, train=train, test=test, truth_runs=runs if share < 1 else self.truth_runs, share=share)

    def points(self, role: Set, number: int = 0) -> st.Points:
        """The parameter values of a set; the truth is asked at the test points."""
        if role == "train":
            return self.train.draw(self.space, self._seed("points", role, number))
        return self.test.draw(self.space, self._seed("points", "test"))

    def uniform(self, count: int) -> st.Points:
        """Independent points for calibrations."""
        return self.space.uniform(count, seed=self._seed("points", "held-out"))

    def run_seed(self, role: Role, number: int = 0) -> int:
        """The seed of the runs of a set."""
        return self._seed("runs", role, number)

    def content(self) -> dict[str, object]:
        """All that decides what its runs are, as plain data; without the designs."""
        formulas = {name: [str(formula), formula.end] for name, formula in self.formulas.items()}
        return {"question": self.name, "model": str(self.model), "space": repr(self.space), "formulas": formulas}

    def _fewer(self, design: Design, share: float) -> Design:
        if design.kind == "latin":
            return replace(design, points=max(_FEWEST_POINTS, round(design.points * share)))
        axis = max(_FEWEST_POINTS, round(design.per_axis(self.dimension) * share ** (1 / self.dimension)))
        return replace(design, points=axis**self.dimension)

    def _seed(self, what: str, role: Role, number: int = 0) -> int:
        """The seed of the points or of the runs of a set."""
        return stream_seed(number, "paper", self.name, role, what)


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
            raise unknown_name(f"the paper has no part {part!r}", part, PARTS)
    asked = [_configuration(part) for part in CONFIGURATIONS if part in parts]
    for part, rates in _RATES.items():
        if part in parts or "random" in parts:
            asked += [_network(rates, place) for place in range(len(NETWORKS[rates]))]
    return tuple(question.tried(share) for question in asked)


def _configuration(name: str) -> Question:
    asked = CONFIGURATIONS[name]
    runs = TRUTH_RUNS[asked.case]
    return Question(name, name, asked.model, {name: asked.formula}, asked.space, asked.train, asked.test, runs)


def _network(rates: int, place: int) -> Question:
    seed, *numbers = NETWORKS[rates][place]
    species = [f"S{number}" for number in numbers]
    network = random_network(rates, seed)
    name = f"r{rates:02d}/m{place + 1}"
    pairs = zip(KINDS, (species[0:2], species[2:4], species[4:]), strict=True)
    formulas = {f"{name}/{kind}": property_of(kind, *some) for kind, some in pairs}
    runs = TRUTH_RUNS["random"]
    return Question(name, "random", network.model, formulas, network.space, network.train, network.test, runs)
