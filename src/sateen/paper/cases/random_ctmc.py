"""Random parametric networks: the paper's test of how learning scales with the number of parameters.

A network has r reactions over at most r+1 species, each with a rate constant of its own. A reaction is drawn by its
form, then each species in it uniformly from S1 … S(r+1); only species that take part belong to the model. With N0 the
initial total, the propensities are

    Si -> …  k·Si        Si + Sj -> …  k·Si·Sj/N0        2 Si -> …  k·Si(Si-1)/N0        0 -> Si  k·N0

A draw is rejected as a whole, and repeated, if a reaction changes nothing, stands there twice or can never fire, if
N0 is 0, or if fewer than two species take part, so that none can be compared.

The properties look at random species, Si other than Sj, up to T = 10:

    phi1 = G[0, T] Si <= Sj        phi2 = F[0, T] Si <= Sj        phi3 = F[0, T] G Si < 20, on the path cut at T

The last is the same as Si(T) < 20. The paper keeps a property only if it is `informative`.

Whether a reaction can ever fire is coverability, decided exactly: some state that can be reached from the initial one
must hold all that it consumes. The states from which a given demand can be met form an upward closed set, and such a
set is kept as its least elements. Working backwards from what the reaction consumes, one reaction at a time, these are
found after finitely many steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, permutations
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.cases.configurations import Design

Counts: TypeAlias = tuple[int, ...]  # of each species, in order
Exchange: TypeAlias = tuple[Counts, Counts]  # what a reaction consumes, and what it produces
IntArray: TypeAlias = npt.NDArray[np.int64]
Kind: TypeAlias = Literal["phi1", "phi2", "phi3"]
KINDS: Final[tuple[Kind, ...]] = ("phi1", "phi2", "phi3")

# How many species a reaction consumes and produces, and how probable that form is.
FORMS: Final = (((2, 1), 0.25), ((1, 2), 0.25), ((1, 1), 0.25), ((1, 0), 0.125), ((0, 1), 0.125))

MOST_INITIAL: Final = 9  # of each species
HORIZON: Final = 10
THRESHOLD: Final = 20
RATES: Final = st.Range(0.001, 1.0, scale="log")
MAX_EVENTS: Final = 3000  # of a run; a run that is longer may stay undecided
LOOKED_AT: Final = 20  # training points, to tell whether a property is informative


@dataclass(frozen=True, slots=True)
class Reaction:
    """The numbers of the species that a reaction consumes and produces, each side sorted."""

    consumed: tuple[int, ...]
    produced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RandomNetwork:
    """A random model, one property of each kind, and the space of its rate constants k1 … kr, all on a log scale."""

    model: st.Model
    properties: tuple[st.Formula, ...]
    space: st.Space

    @property
    def train(self) -> Design:
        """5000 points for each dimension, with 10 runs each."""
        return network_designs(self.space.dimension)[0]

    @property
    def test(self) -> Design:
        """100 points for each dimension, with 1000 runs each."""
        return network_designs(self.space.dimension)[1]


def network_space(reactions: int) -> st.Space:
    """The space of the rate constants of a network with this many reactions."""
    return st.Space({f"k{place}": RATES for place in range(1, reactions + 1)})


def network_designs(reactions: int) -> tuple[Design, Design]:
    """The designs of its training and test sets."""
    return Design("latin", 5000 * reactions, 10), Design("latin", 100 * reactions, 1000)


def random_network(reactions: int, seed: int) -> RandomNetwork:
    """The network that `seed` draws, with one property of each kind, whether informative or not.

    >>> network = random_network(3, seed=1)
    >>> network.space.names, [formula.horizon for formula in network.properties]
    (('k1', 'k2', 'k3'), [10.0, 10.0, 10.0])
    """
    if not isinstance(reactions, int) or reactions < 1:
        raise st.InputError(f"a random network has a whole number of reactions from 1 up, not {reactions!r}")
    if not isinstance(seed, int) or seed < 0:
        raise st.InputError(f"the seed of a random network is a whole number from 0 up, not {seed!r}")
    generator = np.random.default_rng(seed)
    while True:
        proposal = propose(reactions, generator)
        species = _involved(proposal)
        initial = dict(zip(species, generator.integers(0, MOST_INITIAL + 1, len(species)).tolist(), strict=True))
        if well_posed(proposal, initial):
            break
    model = st.Model.parse(_text(proposal, initial))
    properties = []
    for kind in KINDS:
        one, other = generator.choice(len(model.species), size=2, replace=False)
        properties.append(property_of(kind, model.species[one], model.species[other]))
    return RandomNetwork(model, tuple(properties), network_space(reactions))


def propose(reactions: int, generator: np.random.Generator) -> tuple[Reaction, ...]:
    """This many reactions, drawn independently: first the form, then each species, from 1 to `reactions` + 1."""
    forms = generator.choice(len(FORMS), size=reactions, p=[probability for _, probability in FORMS])
    drawn = generator.integers(1, reactions + 2, size=(reactions, 3)).tolist()
    sides = [FORMS[form][0] for form in forms]
    return tuple(
        Reaction(tuple(sorted(some[:used])), tuple(sorted(some[used : used + made])))
        for some, (used, made) in zip(drawn, sides, strict=True)
    )


def well_posed(reactions: tuple[Reaction, ...], initial: Mapping[int, int]) -> bool:
    """Whether reactions and initial counts make a network that is well-defined and has nothing redundant."""
    if len(initial) < 2 or not any(initial.values()) or len(set(reactions)) < len(reactions):
        return False
    if any(reaction.consumed == reaction.produced for reaction in reactions):
        return False
    exchanges = [_exchange(reaction, tuple(initial)) for reaction in reactions]
    return all_can_fire(exchanges, tuple(initial.values()))


def all_can_fire(exchanges: Sequence[Exchange], initial: Counts) -> bool:
    """Whether each reaction fires on some path from `initial` when all rates are positive.

    >>> decay, pair = ((1, 0), (0, 1)), ((0, 2), (1, 0))  # A -> B and 2 B -> A
    >>> all_can_fire([decay, pair], (2, 0)), all_can_fire([decay, pair], (1, 0))
    (True, False)
    """
    return all(can_be_met(consumed, exchanges, initial) for consumed, _ in exchanges)


def can_be_met(demand: Counts, exchanges: Sequence[Exchange], initial: Counts) -> bool:
    """Whether a state with at least `demand` of each species can be reached from `initial`."""
    obtainable = _obtainable(exchanges, initial)
    least, waiting = [demand], [demand]
    while waiting:
        wanted = waiting.pop()
        if _within(wanted, initial):
            return True
        for consumed, produced in exchanges:
            if not any(want and made for want, made in zip(wanted, produced, strict=True)):
                continue  # it helps with nothing that is wanted
            before = tuple(
                max(want - made, 0) + used for want, made, used in zip(wanted, produced, consumed, strict=True)
            )
            possible = all(there for want, there in zip(before, obtainable, strict=True) if want)
            if possible and not any(_within(other, before) for other in least):
                least = [other for other in least if not _within(before, other)] + [before]
                waiting.append(before)
    return False


def _obtainable(exchanges: Sequence[Exchange], initial: Counts) -> list[bool]:
    """For each species, whether it could be there at all if nothing were ever used up."""
    there = [count > 0 for count in initial]
    grown = True
    while grown:
        grown = False
        for consumed, produced in exchanges:
            if all(there[place] for place, used in enumerate(consumed) if used):
                for place, made in enumerate(produced):
                    if made and not there[place]:
                        there[place] = grown = True
    return there


def _within(smaller: Counts, larger: Counts) -> bool:
    return all(few <= many for few, many in zip(smaller, larger, strict=True))


def _involved(reactions: tuple[Reaction, ...]) -> list[int]:
    return sorted({number for reaction in reactions for number in (*reaction.consumed, *reaction.produced)})


def _exchange(reaction: Reaction, species: tuple[int, ...]) -> Exchange:
    return (
        tuple(reaction.consumed.count(number) for number in species),
        tuple(reaction.produced.count(number) for number in species),
    )


def _text(reactions: tuple[Reaction, ...], initial: Mapping[int, int]) -> str:
    """The model as reaction text."""
    lines = ["species " + ", ".join(f"S{number} = {count}" for number, count in initial.items())]
    lines.append(f"constant N0 = {sum(initial.values())}")
    for place, reaction in enumerate(reactions, start=1):
        sides = f"{_side(reaction.consumed)} -> {_side(reaction.produced)}"
        lines.append(f"{sides} @ {_propensity(f'k{place}', reaction.consumed)}")
    return "\n".join(lines) + "\n"


def _side(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 2 and numbers[0] == numbers[1]:
        return f"2 S{numbers[0]}"
    return " + ".join(f"S{number}" for number in numbers) or "0"


def _propensity(rate: str, consumed: tuple[int, ...]) -> str:
    match consumed:
        case ():
            return f"{rate} * N0"
        case (one,):
            return f"{rate} * S{one}"
        case (one, other) if one == other:
            return f"{rate} * S{one} * (S{one} - 1) / N0"
    return f"{rate} * S{consumed[0]} * S{consumed[1]} / N0"


def _property(kind: Kind, one: str, other: str) -> tuple[str, float | None]:
    """The text of a property, and where it cuts the path."""
    if kind == "phi3":
        return f"F[0, {HORIZON}] G ({one} < {THRESHOLD})", HORIZON
    return f"{'G' if kind == 'phi1' else 'F'}[0, {HORIZON}] ({one} <= {other})", None


def property_of(kind: Kind, one: str, other: str = "") -> st.Formula:
    """The property of a kind about one species, and about the other unless the kind is phi3."""
    text, end = _property(kind, one, other)
    return st.stl(text, end=end)


def candidates(model: st.Model, kind: Kind) -> tuple[st.Formula, ...]:
    """Every property of a kind that can be asked of the model."""
    texts = dict.fromkeys(_property(kind, one, other) for one, other in permutations(model.species, 2))
    return tuple(st.stl(text, end=end) for text, end in texts)


class Observe(Protocol):
    """Counts, for each point, of the runs that satisfy the formula; as `observe(...).satisfied` gives them."""

    def __call__(
        self, model: st.Model, formula: st.Formula, points: st.Points, *, runs: int, seed: int
    ) -> IntArray: ...


def reference_counts(model: st.Model, formula: st.Formula, points: st.Points, *, runs: int, seed: int) -> IntArray:
    """An Observe that runs the reference simulator: exact, but slow. Undecided runs are not counted as satisfied."""
    return _satisfied(formula, _reference_paths(model, formula, points, runs, seed))


def counts_on_shared_paths() -> Observe:
    """An Observe of one network that counts what `reference_counts` does, but simulates the paths only once and not for
    every formula."""
    paths: list[list[st.Path]] = []

    def counts(model: st.Model, formula: st.Formula, points: st.Points, *, runs: int, seed: int) -> IntArray:
        if not paths:
            paths.extend(_reference_paths(model, formula, points, runs, seed))
        return _satisfied(formula, paths)

    return counts


def _reference_paths(
    model: st.Model, formula: st.Formula, points: st.Points, runs: int, seed: int
) -> Iterator[list[st.Path]]:
    """This many paths of the reference simulator for each point, up to the formula's horizon."""
    seeds = np.random.default_rng(seed).integers(2**63, size=(len(points), runs)).tolist()
    for theta, some in zip(points, seeds, strict=True):
        yield [st.simulate(model, theta, until=formula.horizon, seed=each, max_events=MAX_EVENTS) for each in some]


def _satisfied(formula: st.Formula, paths: Iterable[list[st.Path]]) -> IntArray:
    return np.array([sum(st.monitor(formula, path) is st.Verdict.TRUE for path in some) for some in paths])


def informative(network: RandomNetwork, formula: st.Formula, seed: int, *, observe: Observe = reference_counts) -> bool:
    """Whether the formula tells parameters apart: its satisfied counts at the first 20 are not all the same.

    Those are the first 20 training points that `seed` draws, with as many runs as training has. `observe` may be
    any engine that counts; a fast one is passed as

        lambda *what, **how: sateen.observe(*what, **how, max_events=MAX_EVENTS).satisfied
    """
    points = network.train.draw(network.space, seed)[:LOOKED_AT]
    (run_seed,) = np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(1).tolist()
    counts = observe(network.model, formula, points, runs=network.train.runs, seed=run_seed)
    return bool(np.ptp(counts) > 0)


def informative_properties(
    network: RandomNetwork, seed: int, *, observe: Observe = reference_counts
) -> tuple[st.Formula | None, ...]:
    """For each kind the first candidate, in random order, that is informative; None where no candidate is."""
    generator = np.random.default_rng(seed)

    def first(kind: Kind) -> st.Formula | None:
        every = candidates(network.model, kind)
        shuffled = (every[place] for place in generator.permutation(len(every)))
        return next((each for each in shuffled if informative(network, each, seed, observe=observe)), None)

    return tuple(map(first, KINDS))


def informative_networks(reactions: int) -> Iterator[tuple[int, tuple[st.Formula, ...]]]:
    """The networks with this many reactions that have an informative property of every kind, each by its seed and these
    properties, in the order of the seeds from 1000 · reactions + 1 on. A search with the reference simulator."""
    for seed in count(1000 * reactions + 1):
        kept = informative_properties(random_network(reactions, seed), seed, observe=counts_on_shared_paths())
        properties = tuple(formula for formula in kept if formula is not None)
        if len(properties) == len(KINDS):
            yield seed, properties
