"""The algebra of sets of times, position by position against the definitions, in the room that is promised.

Position 2k is the instant k and position 2k + 1 the open gap behind it; on a gap nothing changes. So a set is given by
its members among the positions, and every definition can be read off at each position by looking at all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sateen.logic import intervals
from sateen.logic.intervals import UNBOUNDED

FAR = 60  # nothing changes from here on: switches are at most 20, and bounds at most 12

sets = st.sets(st.integers(0, 20), max_size=8).map(sorted)
bounds = st.integers(0, 6).map(lambda ticks: 2 * ticks)
windows = st.tuples(bounds, bounds).map(sorted) | st.tuples(bounds, st.just(UNBOUNDED))


class Room(list[int]):
    """Exactly so much room: what is written beside it is an error, from the end as well."""

    def __init__(self, size: int) -> None:
        super().__init__([-99] * size)

    def __setitem__(self, index: int, value: int) -> None:  # type: ignore[override]
        assert 0 <= index < len(self), f"{index} is outside a room of {len(self)}"
        super().__setitem__(index, value)


def made(function: Callable[..., int], *arguments: object, room: int) -> list[int]:
    """What a function of the algebra writes, and that it is written in order."""
    out = Room(room)
    size = function(*arguments, out)
    result = out[:size]
    assert result == sorted(set(result)), "switches increase"
    assert all(each >= 0 for each in result), "time begins at 0"
    return result


def complement(x: list[int]) -> list[int]:
    return made(intervals.complement, x, len(x), room=len(x) + 1)


def intersection(x: list[int], y: list[int]) -> list[int]:
    return made(intervals.intersection, x, len(x), y, len(y), room=len(x) + len(y))


def union(x: list[int], y: list[int]) -> list[int]:
    return made(intervals.union, x, len(x), y, len(y), room=len(x) + len(y))


def known_until(x: list[int], last: int, beyond: bool) -> list[int]:
    return made(intervals.known_until, x, len(x), last, beyond, room=len(x) + 1)


def eventually(x: list[int], low: int, high: int) -> list[int]:
    return made(intervals.eventually, x, len(x), low, high, room=len(x))


def until(x: list[int], y: list[int], low: int, high: int) -> list[int]:
    room = 2 * (len(x) + len(y))
    return made(intervals.until, x, len(x), y, len(y), low, high, Room(room), room=room)


def holds(x: Iterable[int], position: int) -> bool:
    """Whether membership has switched an odd number of times."""
    return sum(switch <= position for switch in x) % 2 == 1


def members(x: list[int]) -> list[bool]:
    return [holds(x, position) for position in range(FAR)]


def reach(position: int, low: int, high: int) -> range:
    """The positions of the window [t + low, t + high]; without an upper bound, as far as anything changes."""
    return range(position + low, FAR + 30 if high == UNBOUNDED else position + high + 1)


# Each function against its definition.


@settings(max_examples=300)
@given(sets)
def test_contains(x: list[int]) -> None:
    assert [intervals.contains(x, len(x), position) for position in range(FAR)] == members(x)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=10))
def test_switches(changes: list[tuple[int, bool]]) -> None:
    changes = [(0, changes[0][1]), *sorted(changes[1:], key=lambda change: change[0])]
    positions, truth = [position for position, _ in changes], [value for _, value in changes]
    found = made(intervals.switches, positions, truth, len(changes), room=len(changes))
    latest = [[value for place, value in changes if place <= position][-1] for position in range(FAR)]
    assert members(found) == latest


def test_of_equal_positions_the_last_wins() -> None:
    assert made(intervals.switches, [0, 4, 4, 4], [False, True, False, True], 4, room=4) == [4]
    assert made(intervals.switches, [0, 4, 4], [False, True, False], 3, room=3) == []
    assert made(intervals.switches, [0, 0], [False, True], 2, room=2) == [0]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 7)), min_size=1, max_size=10), st.integers(0, 2))
def test_the_truth_may_be_one_bit_of_a_number(changes: list[tuple[int, int]], bit: int) -> None:
    changes = [(0, changes[0][1]), *sorted(changes[1:], key=lambda change: change[0])]
    positions, numbers = [position for position, _ in changes], [float(number) for _, number in changes]
    truth = [number >> bit & 1 == 1 for _, number in changes]
    found = made(intervals.bit_switches, positions, numbers, bit, len(changes), room=len(changes))
    assert found == made(intervals.switches, positions, truth, len(changes), room=len(changes))


@settings(max_examples=300)
@given(sets)
def test_complement(x: list[int]) -> None:
    assert members(complement(x)) == [not member for member in members(x)]


@settings(max_examples=300)
@given(sets, sets)
def test_intersection_and_union(x: list[int], y: list[int]) -> None:
    pairs = list(zip(members(x), members(y), strict=True))
    assert members(intersection(x, y)) == [one and other for one, other in pairs]
    assert members(union(x, y)) == [one or other for one, other in pairs]


@settings(max_examples=300)
@given(sets, bounds, st.booleans())
@example([], 0, True)
@example([0], 0, False)
@example([4, 5], 4, True)
@example([3], 4, True)
def test_known_until(x: list[int], last: int, beyond: bool) -> None:
    expected = [member if position <= last else beyond for position, member in enumerate(members(x))]
    assert members(known_until(x, last, beyond)) == expected


@settings(max_examples=1000)
@given(sets, windows)
@example([0, 2], [0, 0])
@example([3, 4], [2, 2])
@example([4], [6, UNBOUNDED])
def test_eventually(x: list[int], window: tuple[int, int]) -> None:
    expected = [any(holds(x, other) for other in reach(position, *window)) for position in range(FAR)]
    assert members(eventually(x, *window)) == expected


@settings(max_examples=2000)
@given(sets, sets, windows)
@example([0, 10], [10], [4, 6])
@example([0, 11], [10, 11], [4, 6])
@example([0, 11], [11], [4, 6])
@example([], [3, 4], [0, 0])
@example([0], [7, 8], [2, UNBOUNDED])
def test_until(x: list[int], y: list[int], window: tuple[int, int]) -> None:
    low, high = window

    def witnessed(here: int, there: int) -> bool:
        """Whether y holds at the position `there`, and x from `here` on before it."""
        # A witness inside a gap has a part of that gap before it, unless it is t itself.
        before = range(here, there + 1 if there % 2 == 1 and there > here else there)
        return holds(y, there) and all(holds(x, position) for position in before)

    expected = [any(witnessed(position, other) for other in reach(position, low, high)) for position in range(FAR)]
    assert members(until(x, y, low, high)) == expected


@settings(max_examples=200)
@given(sets, sets, windows)
def test_arrays_of_64_bit_integers_give_what_lists_give(x: list[int], y: list[int], window: tuple[int, int]) -> None:
    a, b = np.array(x, dtype=np.int64), np.array(y, dtype=np.int64)

    def on_arrays(function: Callable[..., int], *arguments: object, room: int) -> list[int]:
        out = np.zeros(room, dtype=np.int64)
        return out[: function(*arguments, out)].tolist()

    n, m = len(x), len(y)
    assert on_arrays(intervals.complement, a, n, room=n + 1) == complement(x)
    assert on_arrays(intervals.union, a, n, b, m, room=n + m) == union(x, y)
    assert on_arrays(intervals.intersection, a, n, b, m, room=n + m) == intersection(x, y)
    assert on_arrays(intervals.eventually, a, n, *window, room=n) == eventually(x, *window)
    spare = np.zeros(2 * (n + m), dtype=np.int64)
    assert on_arrays(intervals.until, a, n, b, m, *window, spare, room=2 * (n + m)) == until(x, y, *window)


def test_positions_of_any_size_are_exact() -> None:
    far = 2 * 10**40
    assert eventually([far, far + 1], 2, 4) == [far - 4, far - 1]
    assert until([0], [far], 0, 10) == [far - 10]


# Laws.


@given(sets)
def test_the_complement_of_the_complement_is_the_set(x: list[int]) -> None:
    assert complement(complement(x)) == x


@given(sets, sets)
def test_de_morgan(x: list[int], y: list[int]) -> None:
    assert complement(union(x, y)) == intersection(complement(x), complement(y))
    assert complement(intersection(x, y)) == union(complement(x), complement(y))


@given(sets, sets, sets)
def test_union_and_intersection_form_a_lattice(x: list[int], y: list[int], z: list[int]) -> None:
    assert union(x, y) == union(y, x)
    assert union(x, union(y, z)) == union(union(x, y), z)
    assert intersection(x, union(y, z)) == union(intersection(x, y), intersection(x, z))
    assert union(x, intersection(x, y)) == x
    assert union(x, x) == intersection(x, x) == x
    assert union(x, complement(x)) == [0]
    assert intersection(x, complement(x)) == []


@given(sets, sets, windows)
def test_eventually_distributes_over_union(x: list[int], y: list[int], window: tuple[int, int]) -> None:
    assert eventually(union(x, y), *window) == union(eventually(x, *window), eventually(y, *window))


@given(sets, windows, windows)
def test_eventually_after_eventually_adds_the_bounds(
    x: list[int], one: tuple[int, int], other: tuple[int, int]
) -> None:
    high = UNBOUNDED if UNBOUNDED in (one[1], other[1]) else one[1] + other[1]
    assert eventually(eventually(x, *one), *other) == eventually(x, one[0] + other[0], high)


@given(sets, windows)
def test_eventually_is_until_with_true_on_the_left(x: list[int], window: tuple[int, int]) -> None:
    assert until([0], x, *window) == eventually(x, *window)


@given(sets, sets, windows)
def test_more_on_either_side_is_more_of_until(x: list[int], y: list[int], window: tuple[int, int]) -> None:
    found = until(x, y, *window)
    for more in (until(union(x, y), y, *window), until(x, union(x, y), *window), until([0], y, *window)):
        assert intersection(found, more) == found


@given(sets, sets, sets, windows)
def test_until_distributes_over_union_on_its_right(
    x: list[int], y: list[int], z: list[int], window: tuple[int, int]
) -> None:
    assert until(x, union(y, z), *window) == union(until(x, y, *window), until(x, z, *window))


@given(sets, sets, bounds)
def test_until_from_0_on_holds_wherever_its_right_side_does(x: list[int], y: list[int], high: int) -> None:
    found = until(x, y, 0, high)
    assert intersection(found, y) == y
    assert until([], y, 0, high) == y
    assert until(x, y, 0, 0) == y
    assert until([], y, 2, high + 2) == []


@given(sets, bounds)
def test_what_is_known_in_no_way_changes_what_is_known(x: list[int], last: int) -> None:
    known = known_until(x, last, False)
    assert intersection(known, x) == known
    assert union(known_until(x, last, True), x) == known_until(x, last, True)
    assert known_until(known, last, False) == known
    assert complement(known_until(x, last, True)) == known_until(complement(x), last, False)


# The two traps of the semantics.


def test_until_with_a_positive_bound_makes_right_closed_sets_and_single_instants() -> None:
    """x == 0 on [0, 5), x == 1 from 5 on: `x==0 U[2,3] x==1` on [2, 3], and with F[0,2] x==1 only at 3."""
    zero, one = [0, 10], [10]
    closed = until(zero, one, 4, 6)
    assert closed == [4, 7]
    assert intersection(closed, eventually(one, 0, 4)) == [6, 7]


def test_an_instant_stays_an_instant_when_it_is_shifted() -> None:
    assert eventually([8, 9], 4, 4) == [4, 5]
    assert eventually([8, 9], 2, 4) == [4, 7]
    assert eventually([8, 10], 2, 4) == [4, 8]
    assert eventually([9, 10], 2, 4) == [5, 8]
    assert eventually([2, 3], 4, 4) == []
    assert eventually([2, 3], 0, 4) == [0, 3]


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_the_promised_room_is_enough_for_many_stretches(count: int) -> None:
    x = list(range(0, 4 * count, 2))
    y = [position + 1 for position in x]
    for low, high in ((0, 0), (0, 2), (2, 2), (2, 6), (0, UNBOUNDED), (4, UNBOUNDED)):
        until(x, y, low, high)
        until(y, x, low, high)
        eventually(x, low, high)
