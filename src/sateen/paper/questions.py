"""What the paper asks: the functions that are learned, the designs of their data sets, and how their truth is found.

A question has a name: a … i and l are the paper's configurations, in the reading that its published figures come from
(`paper/cases/models.py`); d/as-stated is configuration (d) as the paper prints it, which has another name only where
that is another question; r08/m2 is the second of the three random networks with eight rates. A configuration asks for
one function, a network for three, which share all their runs.

The networks of the paper's dimensions are known (NETWORKS). Those of any other number of rates are found by the same
rule when they are needed (`paper/networks.py`), so their questions begin without a model.

Training sets are numbered from 1 up. Sets with different numbers, and those of different questions, are independent of
each other, of the test set, of the runs behind the truth and of those for calibrations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import sateen as st
from sateen.paper.cases.configurations import CONFIGURATIONS, Design
from sateen.paper.cases.models import VARIANTS, Variant, in_variant, unknown_name
from sateen.paper.cases.random_ctmc import KINDS, network_designs, network_space, property_of, random_network
from sateen.paper.published import DIMENSIONS
from sateen.pipeline import stream_seed

Set: TypeAlias = Literal["train", "test", "truth"]
Role: TypeAlias = Set | Literal["held-out"]
MOST_RATES: Final = 40  # of random networks: to find larger ones takes more than some minutes
PARTS: Final = (*CONFIGURATIONS, *(f"r{rates:02d}" for rates in DIMENSIONS), "random")

# Runs at each point behind the truth; None where it is computed.
TRUTH_RUNS: Final[Mapping[str, int | None]] = MappingProxyType(
    {"sir": None, "lacz": 5000, "phosphorelay": 50_000, "random": 20_000}
)
_FEWEST_TRUTH_RUNS: Final = 200  # of a part of the work that is done to try it
_FEWEST_POINTS: Final = 4

NETWORKS_OF_A_SIZE: Final = 3

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
    computed. `share` is 1, or the share of the points that are looked at when the work is only tried. Of a network that
    is not found yet, the model and the formulas are None.
    """

    name: str
    part: str
    model: st.Model | None
    formulas: Mapping[str, st.Formula | None] = field(hash=False)
    space: st.Space
    train: Design
    test: Design
    truth_runs: int | None
    share: float = 1.0

    @property
    def dimension(self) -> int:
        """How many parameters vary."""
        return self.space.dimension

    @property
    def is_published(self) -> bool:
        """Whether the paper's figures answer this question: those of a configuration are of its variant paper-data."""
        return self.part == "random" or self.name == self.part

    @property
    def asked(self) -> tuple[st.Model, dict[str, st.Formula]]:
        """The model, and the formula of each function; only of a network that is found."""
        formulas = {name: formula for name, formula in self.formulas.items() if formula is not None}
        if self.model is None or len(formulas) < len(self.formulas):
            raise st.InputError(f"the network of {self.name} is not found yet")
        return self.model, formulas

    def found(self, seed: int, properties: Sequence[st.Formula]) -> Question:
        """The question about the network that the seed draws, with its property of each kind."""
        model = random_network(self.dimension, seed).model
        return replace(self, model=model, formulas=dict(zip(self.formulas, properties, strict=True)))

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
        """All that decides what its runs are, as plain data; without the designs. Of a network that is not found yet,
        the search decides it."""
        if self.model is None:
            return {"question": self.name, "space": repr(self.space), "functions": list(self.formulas)}
        model, asked = self.asked
        formulas = {name: [str(formula), formula.end] for name, formula in asked.items()}
        return {"question": self.name, "model": str(model), "space": repr(self.space), "formulas": formulas}

    def _fewer(self, design: Design, share: float) -> Design:
        if design.kind == "latin":
            return replace(design, points=max(_FEWEST_POINTS, round(design.points * share)))
        axis = max(_FEWEST_POINTS, round(design.per_axis(self.dimension) * share ** (1 / self.dimension)))
        return replace(design, points=axis**self.dimension)

    def _seed(self, what: str, role: Role, number: int = 0) -> int:
        """The seed of the points or of the runs of a set."""
        return stream_seed(number, "paper", self.name, role, what)


def questions(parts: Sequence[str], share: float = 1.0, *, variant: str = "paper-data") -> tuple[Question, ...]:
    """What the parts of the paper ask, in its order: configurations by letter, networks by their number of rates as in
    r08, and "random" for those of the paper. Random networks are the same in both variants.

    >>> [question.name for question in questions(["c", "r02", "a"])]
    ['a', 'c', 'r02/m1', 'r02/m2', 'r02/m3']
    >>> len(questions(["random"]))
    21
    >>> [question.name for question in questions(["a", "d", "r06"], variant="as-stated")]
    ['a', 'd/as-stated', 'r06/m1', 'r06/m2', 'r06/m3']
    """
    sizes = {rates for part in parts if (rates := _rates_of(part))} | {*(DIMENSIONS if "random" in parts else ())}
    reading = in_variant({each: each for each in VARIANTS}, variant)
    asked = [_configuration(part, reading) for part in CONFIGURATIONS if part in parts]
    asked += [_network(rates, place) for rates in sorted(sizes) for place in range(NETWORKS_OF_A_SIZE)]
    return tuple(question.tried(share) for question in asked)


def network_part(rates: str) -> str:
    """The part for random networks with this many rates, a whole number as text.

    >>> network_part("6"), network_part("12")
    ('r06', 'r12')
    """
    number = int(rates) if re.fullmatch("[0-9]{1,4}", rates.strip()) else 0
    if not 1 <= number <= MOST_RATES:
        raise st.InputError(
            f"random networks have a whole number of rates from 1 to {MOST_RATES}, not {rates!r}; write 6, or 6,10"
        )
    return f"r{number:02d}"


def _rates_of(part: str) -> int | None:
    """The number of rates that a part such as r08 names; None of other parts, and an unknown one is refused."""
    if part not in PARTS and not re.fullmatch("r[0-9]+", part):
        raise unknown_name(f"the paper has no part {part!r}", part, PARTS)
    return int(network_part(part[1:])[1:]) if part[1:].isdigit() else None


def _configuration(name: str, variant: Variant) -> Question:
    usual = CONFIGURATIONS[name]
    asked = usual.variant(variant)
    known = name if (asked.formula, asked.space) == (usual.formula, usual.space) else f"{name}/{variant}"
    runs = TRUTH_RUNS[asked.case]
    return Question(known, name, asked.model, {known: asked.formula}, asked.space, asked.train, asked.test, runs)


def _network(rates: int, place: int) -> Question:
    """A network of the paper's dimensions, or the outline of one that is not found yet."""
    name, runs = f"r{rates:02d}/m{place + 1}", TRUTH_RUNS["random"]
    space, designs = network_space(rates), network_designs(rates)
    outline = Question(name, "random", None, {f"{name}/{kind}": None for kind in KINDS}, space, *designs, runs)
    if rates not in NETWORKS:
        return outline
    seed, *numbers = NETWORKS[rates][place]
    one, other, third, fourth, fifth = (f"S{number}" for number in numbers)
    pairs = zip(KINDS, ((one, other), (third, fourth), (fifth,)), strict=True)
    return outline.found(seed, [property_of(kind, *some) for kind, some in pairs])
