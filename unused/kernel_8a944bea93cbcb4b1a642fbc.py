"""Sets of times, exactly: the algebra that decides formulas.

A *position* is an integer: `2 k` is the instant of tick k, `2 k + 1` the moment just after it, up to the next tick
that anything mentions. Every bound, jump time and delay is a whole number of ticks (`monitor.py` chooses them so), and
so equal instants are equal integers. A set of times is a strictly increasing run of positions at which membership
switches, beginning outside: [s, e) is `2s, 2e`, [s, e] is `2s, 2e+1`, the single instant {s} is `2s, 2s+1`, and an odd
number of switches means "from there on for ever".

The functions are plain loops over anything that can be indexed: on lists of Python's integers they are exact at any
size; the engine compiles the same functions for arrays of 64-bit integers. Each takes the switches and how many there
are, fills `out` and returns how many it wrote. Beside each stands how much room `out` needs. All are linear.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from numba import njit
from typing import TypeAlias

__all__ = [
    "bit_switches",
    "complement",
    "contains",
    "eventually",
    "intersection",
    "known_until",
    "switches",
    "union",
    "until",
]

Switches: TypeAlias = Sequence[int]
Room: TypeAlias = MutableSequence[int]

UNBOUNDED = -1  # in the place of an upper bound


@njit(nogil=True, cache=True)
def switches(positions: Switches, truth: Sequence[bool], count: int, out: Room) -> int:
    """The set on which a piecewise constant condition holds. Room: count.

    `truth[i]` holds from `positions[i]` on. Where positions are equal, the last one wins.
    """
    size = 0
    inside = False
    for i in range(count):
        if i + 1 < count and positions[i + 1] == positions[i]:
            continue  # a value that lasts no time is never seen
        if truth[i] != inside:
            out[size] = positions[i]
            size += 1
            inside = not inside
    return size


@njit(nogil=True, cache=True)
def bit_switches(positions: Switches, bits: Sequence[float], bit: int, count: int, out: Room) -> int:
    """`switches` where the truth is one bit of the whole numbers `bits`. Room: count."""
    size = 0
    inside = False
    for i in range(count):
        if i + 1 < count and positions[i + 1] == positions[i]:
            continue
        if ((int(bits[i]) >> bit) & 1 == 1) != inside:
            out[size] = positions[i]
            size += 1
            inside = not inside
    return size


@njit(nogil=True, cache=True)
def contains(x: Switches, n: int, position: int) -> bool:
    """Whether the set holds `position`."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if x[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low % 2 == 1


@njit(nogil=True, cache=True)
def complement(x: Switches, n: int, out: Room) -> int:
    """All times from 0 on that are not in the set. Room: n + 1."""
    skipped = 1 if n > 0 and x[0] == 0 else 0
    size = 0
    if skipped == 0:
        out[0] = 0
        size = 1
    for i in range(skipped, n):
        out[size] = x[i]
        size += 1
    return size


@njit(nogil=True, cache=True)
def intersection(x: Switches, n: int, y: Switches, m: int, out: Room) -> int:
    """The times in both sets. Room: n + m."""
    return _merged(x, n, y, m, 2, out)


@njit(nogil=True, cache=True)
def union(x: Switches, n: int, y: Switches, m: int, out: Room) -> int:
    """The times in either set. Room: n + m."""
    return _merged(x, n, y, m, 1, out)


@njit(nogil=True, cache=True)
def _merged(x: Switches, n: int, y: Switches, m: int, needed: int, out: Room) -> int:
    """The times in at least `needed` of two sets."""
    i = 0
    j = 0
    size = 0
    inside = False
    while i < n or j < m:
        position = x[i] if j >= m or (i < n and x[i] <= y[j]) else y[j]
        if i < n and x[i] == position:
            i += 1
        if j < m and y[j] == position:
            j += 1
        if (i % 2 + j % 2 >= needed) != inside:
            out[size] = position
            size += 1
            inside = not inside
    return size


@njit(nogil=True, cache=True)
def known_until(x: Switches, n: int, last: int, beyond: bool, out: Room) -> int:
    """The set up to the instant at position `last`, then nothing, or with `beyond` everything. Room: n + 1."""
    size = 0
    while size < n and x[size] <= last:
        out[size] = x[size]
        size += 1
    if (size % 2 == 1) != beyond:
        out[size] = last + 1
        size += 1
    return size


@njit(nogil=True, cache=True)
def eventually(x: Switches, n: int, low: int, high: int, out: Room) -> int:
    """The times t for which the set meets [t + low, t + high]. Room: n.

    Bounds are in positions (two a tick); `high` may be UNBOUNDED. An interval keeps its kind of ends when shifted.
    """
    size = 0
    for i in range(0, n, 2):
        start = 0 if high == UNBOUNDED or x[i] < high else x[i] - high
        endless = i + 1 == n
        size = _append(out, size, start, 0 if endless else x[i + 1] - low, endless)
    return size


@njit(nogil=True, cache=True)
def until(x: Switches, n: int, y: Switches, m: int, low: int, high: int, spare: Room, out: Room) -> int:
    """The times t with a t' in [t + low, t + high], y at t', and x throughout [t, t'). Room: 2 (n + m), both.

    Within one stretch of x the left side never fails, so there until is `eventually` of the witnesses within reach:
    the stretch's own times and the instant at which it ends. With `low` = 0, t may be its own witness, whatever x is.
    """
    if low > 0:
        return _along_stretches(x, n, y, m, low, high, out)
    size = _along_stretches(x, n, y, m, low, high, spare)
    return union(spare, size, y, m, out)


@njit(nogil=True, cache=True)
def _along_stretches(x: Switches, n: int, y: Switches, m: int, low: int, high: int, out: Room) -> int:
    size = 0
    j = 0  # the first stretch of y that is not over when the stretch of x begins
    for i in range(0, n, 2):
        begin = x[i]
        endless = i + 1 == n
        end = 0 if endless else x[i + 1]
        while j + 1 < m and y[j + 1] <= begin:
            j += 2
        for k in range(j, m, 2):
            if not endless and y[k] >= end | 1:
                break
            first = max(y[k], begin)
            start = begin if high == UNBOUNDED or first - begin < high else first - high
            # At the latest, the witness stands where the stretch of x ends.
            stop = (y[k + 1] if k + 1 < m and (endless or y[k + 1] <= end | 1) else end | 1) - low
            forever = endless and k + 1 == m
            size = _append(out, size, start, stop if endless else min(stop, end), forever)
    return size


@njit(nogil=True, cache=True)
def _append(out: Room, size: int, start: int, stop: int, endless: bool) -> int:
    """Adds [start, stop), or [start, for ever), to a set whose stretches begin no later than `start`."""
    if size % 2 == 1 or (not endless and stop <= start):
        return size
    if size > 0 and start <= out[size - 1]:
        if endless:
            return size - 1
        out[size - 1] = max(out[size - 1], stop)
        return size
    out[size] = start
    if endless:
        return size + 1
    out[size + 1] = stop
    return size + 2
