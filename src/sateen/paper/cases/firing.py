"""Which reactions of a network can ever fire: coverability, decided exactly.

A reaction can fire if some state that can be reached from the initial one holds all that it consumes. The states from
which a given demand can be met form an upward closed set, and such a set is kept as its least elements. Working
backwards from what the reaction consumes, one reaction at a time, these are found after finitely many steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["Counts", "Exchange", "all_can_fire", "can_be_met"]

Counts: TypeAlias = tuple[int, ...]  # of each species, in order
Exchange: TypeAlias = tuple[Counts, Counts]  # what a reaction consumes, and what it produces


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
