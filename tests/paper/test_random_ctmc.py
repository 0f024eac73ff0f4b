"""Laws of random networks, and of the properties that are asked of them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from pathlib import Path as FilePath

import numpy as np
import pytest
from scipy import stats

from pinned_networks import pinned
from sateen.core.errors import InputError
from sateen.core.path import Verdict
from sateen.core.space import Points, Range, Space
from sateen.engine.simulate import simulate
from sateen.logic.formula import Formula
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.paper.cases.random_ctmc import (
    FORMS,
    KINDS,
    LOOKED_AT,
    RandomNetwork,
    Reaction,
    candidates,
    informative,
    informative_properties,
    propose,
    random_network,
    reference_counts,
    well_posed,
)
from sateen.paper.published import DIMENSIONS

LEAST_P = 1e-6
SEEDS = range(20)
FOLDER = FilePath(__file__).parent.parent / "data" / "random"

DECAY = RandomNetwork(
    Model.parse("species S1 = 5, S2 = 0\nconstant N0 = 5\nS1 -> S2 @ k1 * S1"),
    (stl("G[0, 10] S2 <= S1"), stl("F[0, 10] S1 <= S2"), stl("F[0, 10] G S1 < 20", end=10)),
    Space(k1=Range(0.001, 1, scale="log")),
)


SIZES = {form for form, _ in FORMS}


def assert_well_made(model: Model, reactions: int) -> None:
    """Forms, propensities and initial counts are as the paper has them, and nothing is redundant."""
    transitions = model.transitions
    assert len(transitions) == reactions
    assert len({(frozenset(each.consumed), frozenset(each.produced)) for each in transitions}) == reactions
    allowed = [f"S{number}" for number in range(1, reactions + 2)]
    involved = {name for each in transitions for name, _ in (*each.consumed, *each.produced)}
    assert involved == set(model.species) <= set(allowed)
    assert len(involved) >= 2
    assert [parameter.name for parameter in model.parameters] == [f"k{place}" for place in range(1, reactions + 1)]

    rates = {f"k{place}": 0.1 + place / 100 for place in range(1, reactions + 1)}
    values = model.values(rates)
    initial = model.initial(values)
    assert all(count in range(10) for count in initial.values())
    assert values["N0"] == sum(initial.values()) > 0

    state = {name: 3.0 + place for place, name in enumerate(model.species)}
    for place, each in enumerate(transitions, start=1):
        assert each.change, "every reaction changes something"
        consumed = [name for name, count in each.consumed for _ in range(count)]
        produced = [name for name, count in each.produced for _ in range(count)]
        assert (len(consumed), len(produced)) in SIZES
        ways = 1.0
        for taken, name in enumerate(consumed):
            ways *= state[name] - consumed[:taken].count(name)
        scale = {0: values["N0"], 1: 1.0, 2: 1 / values["N0"]}[len(consumed)]
        assert float(each.rate.evaluate({**values, **state})) == pytest.approx(rates[f"k{place}"] * ways * scale)
        assert every_reactant_can_be_there(model, consumed, initial)


def every_reactant_can_be_there(model: Model, consumed: list[str], initial: dict[str, float]) -> bool:
    """Whether each reactant is there at first or is made by something that can happen: necessary for firing."""
    there = {name for name, count in initial.items() if count}
    for _ in model.transitions:
        for each in model.transitions:
            if {name for name, _ in each.consumed} <= there:
                there |= {name for name, _ in each.produced}
    return set(consumed) <= there


@pytest.mark.parametrize("reactions", [1, *DIMENSIONS])
def test_every_network_is_well_made(reactions: int) -> None:
    for seed in SEEDS:
        assert_well_made(random_network(reactions, seed).model, reactions)


@pytest.mark.parametrize("reactions", DIMENSIONS)
def test_every_pinned_network_is_well_made_by_the_same_rules(reactions: int) -> None:
    assert_well_made(pinned(FOLDER, reactions).model, reactions)


@pytest.mark.parametrize("reactions", [1, *DIMENSIONS])
def test_every_rate_varies_over_three_decades_on_a_log_scale(reactions: int) -> None:
    network = random_network(reactions, 1)
    expected = {f"k{place}": Range(0.001, 1, scale="log") for place in range(1, reactions + 1)}
    assert dict(network.space.ranges) == expected
    assert tuple(parameter.name for parameter in network.model.parameters) == network.space.names


def test_the_same_seed_draws_the_same_network_and_other_seeds_draw_others() -> None:
    assert [random_network(4, seed) for seed in SEEDS] == [random_network(4, seed) for seed in SEEDS]
    assert len({str(random_network(4, seed).model) for seed in SEEDS}) == len(SEEDS)


def test_forms_are_proposed_with_their_probabilities() -> None:
    generator = np.random.default_rng(1)
    reactions = [reaction for _ in range(500) for reaction in propose(20, generator)]
    seen = Counter((len(reaction.consumed), len(reaction.produced)) for reaction in reactions)
    observed = [seen[form] for form, _ in FORMS]
    assert sum(observed) == 10_000
    assert stats.chisquare(observed, [10_000 * share for _, share in FORMS]).pvalue > LEAST_P
    assert dict(FORMS) == {(2, 1): 0.25, (1, 2): 0.25, (1, 1): 0.25, (1, 0): 0.125, (0, 1): 0.125}


def test_species_are_proposed_evenly_and_independently() -> None:
    generator = np.random.default_rng(2)
    reactions = [reaction for _ in range(2000) for reaction in propose(4, generator)]
    every = Counter(number for reaction in reactions for number in (*reaction.consumed, *reaction.produced))
    assert sorted(every) == [1, 2, 3, 4, 5]
    assert stats.chisquare(list(every.values())).pvalue > LEAST_P
    pairs = Counter((one.consumed[0], one.produced[0]) for one in reactions if len(one.consumed + one.produced) == 2)
    assert len(pairs) == 25
    assert stats.chisquare(list(pairs.values())).pvalue > LEAST_P


def law_of_one_reaction() -> dict[tuple[Reaction, tuple[int, ...]], float]:
    """The exact probability of every network with one reaction and so two species, by enumeration."""
    weights: Counter[tuple[Reaction, tuple[int, ...]]] = Counter()
    for ((used, made), share), numbers in product(FORMS, product((1, 2), repeat=3)):
        reaction = Reaction(tuple(sorted(numbers[:used])), tuple(sorted(numbers[used : used + made])))
        if {*reaction.consumed, *reaction.produced} != {1, 2}:
            continue  # fewer than two species take part
        for initial in product(range(10), repeat=2):
            if all(initial[number - 1] >= reaction.consumed.count(number) for number in (1, 2)) and sum(initial):
                weights[reaction, initial] += share
    total = sum(weights.values())
    return {network: weight / total for network, weight in weights.items()}


def test_networks_of_one_reaction_follow_the_law_that_enumeration_gives() -> None:
    law, drawn = law_of_one_reaction(), 600
    by_reaction: Counter[tuple[object, ...]] = Counter()
    by_count: Counter[int] = Counter()
    for (reaction, initial), probability in law.items():
        by_reaction[reaction.consumed, reaction.produced] += probability
        by_count[initial[0]] += probability
    seen_reactions: Counter[tuple[object, ...]] = Counter()
    seen_counts: Counter[int] = Counter()
    for seed in range(drawn):
        model = random_network(1, seed).model
        (transition,) = model.transitions
        sides = (transition.consumed, transition.produced)
        seen_reactions[tuple(tuple(sorted(int(n[1:]) for n, c in side for _ in range(c))) for side in sides)] += 1
        seen_counts[int(model.initial(model.values({"k1": 1}))["S1"])] += 1
    for seen, expected in [(seen_reactions, by_reaction), (seen_counts, by_count)]:
        assert set(seen) <= set(expected)
        observed = [seen[key] for key in expected]
        assert stats.chisquare(observed, [drawn * share for share in expected.values()]).pvalue > LEAST_P


A_TO_B, B_TO_A = Reaction((1,), (2,)), Reaction((2,), (1,))


@pytest.mark.parametrize(
    ("reactions", "initial", "why"),
    [
        ((A_TO_B, A_TO_B), {1: 3, 2: 3}, "a reaction stands there twice"),
        ((A_TO_B, Reaction((1,), (1,))), {1: 3, 2: 3}, "a reaction changes nothing"),
        ((A_TO_B,), {1: 0, 2: 5}, "a reaction can never fire"),
        ((A_TO_B, Reaction((2, 2), (1,))), {1: 1, 2: 0}, "a pair can never form"),
        ((Reaction((), (1,)), Reaction((), (2,))), {1: 0, 2: 0}, "nothing is there at first"),
        ((Reaction((), (1,)), Reaction((1,), ())), {1: 4}, "there is no other species to compare with"),
    ],
)
def test_a_network_is_rejected_if(reactions: tuple[Reaction, ...], initial: dict[int, int], why: str) -> None:
    assert not well_posed(reactions, initial), why


def test_a_network_in_which_everything_can_happen_is_accepted() -> None:
    assert well_posed((A_TO_B, B_TO_A), {1: 0, 2: 5})
    assert well_posed((A_TO_B, Reaction((2, 2), (1,))), {1: 2, 2: 0})
    assert well_posed((Reaction((1, 2), (1,)), Reaction((), (2,))), {1: 1, 2: 0})


@pytest.mark.parametrize("reactions", [0, -1, 2.0, "3"])
def test_a_number_of_reactions_that_is_none_is_refused(reactions: object) -> None:
    with pytest.raises(InputError, match="whole number of reactions"):
        random_network(reactions, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [None, -1, 0.5])
def test_a_network_needs_a_seed(seed: object) -> None:
    with pytest.raises(InputError, match="seed of a random network"):
        random_network(2, seed)  # type: ignore[arg-type]


# Properties

TEXTS = {
    "phi1": r"G\[0, 10\] (S\d+) <= (S\d+)",
    "phi2": r"F\[0, 10\] (S\d+) <= (S\d+)",
    "phi3": r"F\[0, 10\] G (S\d+) < 20",
}


@pytest.mark.parametrize("reactions", [1, 2, 8, 20])
def test_a_network_has_one_property_of_each_kind_over_distinct_species(reactions: int) -> None:
    for seed in SEEDS:
        network = random_network(reactions, seed)
        for kind, formula in zip(KINDS, network.properties, strict=True):
            match = re.fullmatch(TEXTS[kind], str(formula))
            assert match
            assert set(match.groups()) <= set(network.model.species)
            assert len(set(match.groups())) == len(match.groups())
            assert formula.horizon == 10
            assert formula.end == (10 if kind == "phi3" else None)
            assert formula in candidates(network.model, kind)


def test_all_candidates_are_every_pair_and_every_species() -> None:
    model = random_network(20, 1).model
    species = len(model.species)
    assert [len(set(candidates(model, kind))) for kind in KINDS] == [
        species * (species - 1),
        species * (species - 1),
        species,
    ]


def test_the_third_kind_says_that_the_count_at_the_end_is_below_twenty() -> None:
    model = Model.parse("species S1 = 5, S2 = 5\nS1 -> S1 + S2 @ k1 * S1\nS2 -> 0 @ k2 * S2")
    verdicts = Counter()
    for seed in range(60):
        path = simulate(model, {"k1": 0.7, "k2": 0.2}, until=10, seed=seed)
        for formula in candidates(model, "phi3"):
            (name,) = formula.species
            verdict = monitor(formula, path)
            assert verdict is Verdict.of(path.at(10)[name] < 20)
            verdicts[verdict] += 1
    assert verdicts[Verdict.TRUE] > 0 < verdicts[Verdict.FALSE]


# Designs


@pytest.mark.parametrize("reactions", [2, 8, 20])
def test_data_sets_grow_with_the_dimension_and_spread_in_the_logarithm(reactions: int) -> None:
    network = random_network(reactions, 1)
    assert (network.train.points, network.train.runs) == (5000 * reactions, 10)
    assert (network.test.points, network.test.runs) == (100 * reactions, 1000)
    for points, count in [
        (network.train.draw(network.space, 3), 5000 * reactions),
        (network.test.draw(network.space, 4), 100 * reactions),
    ]:
        assert points.theta.shape == (count, reactions)
        assert points.design == "latin"
        slices = np.floor((np.log10(points.theta) + 3) / 3 * count * (1 - 1e-12)).astype(int)
        assert all(np.array_equal(np.sort(column), np.arange(count)) for column in slices.T)


# Informative properties


def test_a_property_is_informative_just_if_its_counts_differ() -> None:
    asked = []

    def counts_of(values: list[int]):
        def observe(model: Model, formula: Formula, points: Points, *, runs: int, seed: int) -> np.ndarray:
            asked.append((model, formula, points, runs))
            return np.array(values)

        return observe

    formula = DECAY.properties[0]
    assert not informative(DECAY, formula, 1, observe=counts_of([10] * 20))
    assert not informative(DECAY, formula, 1, observe=counts_of([0] * 20))
    assert informative(DECAY, formula, 1, observe=counts_of([0] * 19 + [1]))
    first = DECAY.train.draw(DECAY.space, 1)[:LOOKED_AT]
    assert asked == [(DECAY.model, formula, first, 10)] * 3
    assert len(first) == 20


def test_the_reference_simulator_tells_which_properties_of_a_decay_are_informative() -> None:
    never, sometimes, always = stl("G[0, 10] S1 <= S2"), stl("G[0, 10] S2 <= S1"), stl("F[0, 10] S2 <= S1")
    assert [informative(DECAY, formula, 1) for formula in (never, sometimes, always)] == [False, True, False]


def test_the_informative_properties_are_chosen_by_kind_and_missing_where_there_are_none() -> None:
    # Five individuals never become twenty, so the third kind is always true.
    expected = (stl("G[0, 10] S2 <= S1"), stl("F[0, 10] S1 <= S2"), None)
    assert informative_properties(DECAY, 1) == informative_properties(DECAY, 2) == expected


def test_reference_counts_follow_their_seed_and_the_closed_form() -> None:
    # Each of five individuals is still S1 at time 10 with probability exp(-10 k); S2 <= S1 as long as 3 are.
    points = DECAY.space.points([[0.01], [0.05], [0.2]])
    runs = 300
    counts = reference_counts(DECAY.model, stl("G[0, 10] S2 <= S1"), points, runs=runs, seed=1)
    again = reference_counts(DECAY.model, stl("G[0, 10] S2 <= S1"), points, runs=runs, seed=1)
    assert np.array_equal(counts, again)
    exact = stats.binom.sf(2, 5, np.exp(-10 * points.theta[:, 0]))
    for count, probability in zip(counts.tolist(), exact, strict=True):
        assert stats.binomtest(count, runs, probability).pvalue > LEAST_P


def test_a_run_that_stays_undecided_is_not_counted_as_satisfied() -> None:
    # A million events per time unit: the cap ends every run long before time 10.
    model = Model.parse("species S1 = 1, S2 = 0\nconstant N0 = 1\nS1 -> S1 + S2 @ k1 * S1")
    points = Space(k1=(0, 1e6)).points([[1e6]])
    undecided, decided = stl("G[0, 10] S2 >= 0"), stl("F[0, 10] S2 >= 5")
    assert reference_counts(model, undecided, points, runs=2, seed=1).tolist() == [0]
    assert reference_counts(model, decided, points, runs=2, seed=1).tolist() == [2]
