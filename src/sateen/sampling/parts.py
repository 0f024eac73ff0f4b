"""Parts of a campaign, for machines that cannot talk to each other: which of its runs belong to which part.

The runs of a campaign lie end to end, point after point (see `ledger.py`), and runs of one point cost alike. So the
runs are dealt like cards, in many rounds, and in each the same number to each part. Where there are fewer points than
rounds, every part gets the same share of every point. Who begins changes from round to round by an irrational share of
the table: otherwise a part would get every fourth point, say, and those of a Sobol sequence lie in one corner of the
space. The parts of one division are disjoint, make up the campaign, and differ by at most one run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from sateen.core.errors import InputError

Part: TypeAlias = "tuple[int, int]"  # its number, from 1 on, and how many there are
Interval: TypeAlias = "tuple[int, int]"
_ROUNDS: Final = 512  # more would balance better, and make more and shorter rows in the store
_GOLDEN: Final = 0x9E3779B97F4A7C15  # of 2^64, the irrational share
_MOST_PARTS: Final = 100_000


def check_part(part: object) -> Part:
    """The part, if it is one: a number from 1 on, and how many parts there are."""
    match part:
        case (int(number), int(parts)) if 1 <= number <= parts <= _MOST_PARTS:
            return number, parts
    raise InputError(
        f"{part!r} is not a part: it has a number, from 1 on, and how many parts there are, at most {_MOST_PARTS:,}",
        remedy="the parts of 40 are (1, 40), (2, 40), ..., (40, 40)",
    )


def part_runs(total: int, part: Part) -> list[Interval]:
    """The runs of a part, as intervals in order."""
    number, parts = part
    share = total // parts
    rounds = max(min(_ROUNDS, share), 1)
    found: list[Interval] = []
    for turn in range(rounds):
        before, after = share * turn // rounds, share * (turn + 1) // rounds
        place = (number - 1 + (turn * _GOLDEN % 2**64 * parts >> 64)) % parts
        first = parts * before + place * (after - before)
        found.append((first, first + after - before))
    if number <= total % parts:
        found.append((total - total % parts + number - 1, total - total % parts + number))
    return union(found)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same runs in as few intervals as possible, in order."""
    found: list[Interval] = []
    for first, stop in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        elif first < stop:
            found.append((first, stop))
    return found


def gaps_between(total: int, intervals: Iterable[Interval]) -> list[Interval]:
    """The runs of a campaign that are in none of the intervals."""
    edges = [0, *(edge for interval in union(intervals) for edge in interval), total]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def common(some: list[Interval], others: list[Interval]) -> list[Interval]:
    """The runs that are in both; each list is in order, and disjoint."""
    found, place = list[Interval](), 0
    for first, stop in some:
        while place < len(others) and others[place][1] <= first:
            place += 1
        for low, high in others[place:]:
            if low >= stop:
                break
            found.append((max(first, low), min(stop, high)))
    return found


def length(intervals: Iterable[Interval]) -> int:
    """How many runs are in disjoint intervals."""
    return sum(stop - first for first, stop in intervals)
