"""Which reactions can fire, against a search through all states that can be reached."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sateen.paper.cases.random_ctmc import Counts, Exchange, all_can_fire, can_be_met

MOST = 12  # individuals in a state of the search


def reached(exchanges: list[Exchange], initial: Counts) -> tuple[set[Counts], bool]:
    """Every state that can be reached through states of at most MOST individuals, and whether that was all of them."""
    seen, waiting, complete = {initial}, [initial], True
    while waiting:
        state = waiting.pop()
        for consumed, produced in exchanges:
            if all(have >= use for have, use in zip(state, consumed, strict=True)):
                after = tuple(have - use + made for have, use, made in zip(state, consumed, produced, strict=True))
                if sum(after) > MOST:
                    complete = False
                elif after not in seen:
                    seen.add(after)
                    waiting.append(after)
    return seen, complete


def sides(species: int, most: int) -> st.SearchStrategy[Counts]:
    return st.lists(st.integers(0, species - 1), max_size=most).map(
        lambda places: tuple(places.count(place) for place in range(species))
    )


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Exchange], Counts]:
    species = draw(st.integers(1, 3))
    exchanges = draw(st.lists(st.tuples(sides(species, 3), sides(species, 2)), min_size=1, max_size=4))
    return exchanges, tuple(draw(st.lists(st.integers(0, 3), min_size=species, max_size=species)))


@given(networks())
def test_a_demand_can_be_met_just_if_the_search_meets_it(network: tuple[list[Exchange], Counts]) -> None:
    exchanges, initial = network
    states, complete = reached(exchanges, initial)
    for demand, _ in exchanges:
        met = any(all(have >= want for have, want in zip(state, demand, strict=True)) for state in states)
        if met or complete:
            assert can_be_met(demand, exchanges, initial) == met


@given(networks())
def test_all_can_fire_just_if_each_can(network: tuple[list[Exchange], Counts]) -> None:
    exchanges, initial = network
    assert all_can_fire(exchanges, initial) == all(can_be_met(used, exchanges, initial) for used, _ in exchanges)


def test_a_pair_cannot_form_from_a_single_one() -> None:
    decay, pair = ((1, 0), (0, 1)), ((0, 2), (1, 0))
    assert not all_can_fire([decay, pair], (1, 0))
    assert all_can_fire([decay, pair], (2, 0))
    assert all_can_fire([decay, pair], (1, 1))


def test_an_inflow_meets_any_demand() -> None:
    assert can_be_met((1000,), [((0,), (1,))], (0,))


def test_two_species_that_only_follow_each_other_are_never_there_together() -> None:
    there, back, meeting = ((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 1), (2, 0))
    assert not all_can_fire([there, back, meeting], (1, 0))
    assert all_can_fire([there, back, meeting], (2, 0))
