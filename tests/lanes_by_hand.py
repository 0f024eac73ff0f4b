"""The random numbers of the lanes, and a trajectory, written again in Python from their documentation alone.

Splitmix64 seeds xoshiro256++ by (seed, point, run); every event takes two numbers, of which the upper 52 bits count:
an odd mantissa makes the uniform whose logarithm is the wait, the other picks the transition along the summed rates.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping

from sateen.engine.thinning import bounds, breaks_of
from sateen.model.model import Model

MASK = 2**64 - 1


def splitmix(z: int) -> int:
    """The finaliser of splitmix64, after one step of its counter (Vigna, 2015)."""
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def rotated(z: int, by: int) -> int:
    return ((z << by) | (z >> (64 - by))) & MASK


def xoshiro(seeds: tuple[int, int, int, int]) -> Iterator[int]:
    """xoshiro256++ (Blackman and Vigna, 2019)."""
    s = list(seeds)
    while True:
        yield (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        shifted = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)


def bits(seed: int, point: int, run: int) -> Iterator[int]:
    """The 64-bit numbers of one run."""
    z = splitmix(splitmix(splitmix(seed) ^ point) ^ run)
    return xoshiro(tuple(splitmix((z + place) & MASK) for place in range(4)))  # type: ignore[arg-type]


def uniforms(seed: int, point: int, run: int) -> Iterator[tuple[float, float]]:
    """For every event: a uniform in (0, 1) for the wait, and one in [0, 1) for the choice."""
    source = bits(seed, point, run)
    while True:
        first, second = next(source), next(source)
        yield 2.0 - _double((first >> 12) | 0x3FF0000000000001), _double((second >> 12) | 0x3FF0000000000000) - 1.0


def _double(pattern: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", pattern))[0])


def trajectory(
    model: Model, theta: Mapping[str, float], *, seed: int, point: int = 0, run: int = 0, events: int
) -> tuple[list[float], list[list[float]]]:
    """The first events of a run, by Gillespie's direct method: times and states."""
    values = model.values(theta)
    state = model.initial(values)
    times, states = [0.0], [list(state.values())]
    for wait_uniform, pick in uniforms(seed, point, run):
        if len(times) > events:
            break
        here = {**values, **state}
        rates = [
            float(each.rate.evaluate(here)) if each.guard is None or each.guard.evaluate(here) else 0.0
            for each in model.transitions
        ]
        total = math.fsum(rates)
        if total == 0.0:
            break
        times.append(times[-1] - math.log(wait_uniform) / total)
        target, chosen = pick * total, 0
        while target >= rates[chosen]:
            target -= rates[chosen]
            chosen += 1
        for name, change in model.transitions[chosen].change.items():
            state[name] += change
        states.append(list(state.values()))
    return times, states


def thinned(
    model: Model, theta: Mapping[str, float], *, seed: int, point: int = 0, run: int = 0, until: float
) -> tuple[list[float], list[list[float]]]:
    """A run of a model without events whose rates read the clock, by thinning in the windows of `thinning.py`."""
    values = model.values(theta)
    state = model.initial(values)
    times, states = [0.0], [list(state.values())]
    time, width, quiet = 0.0, math.inf, 0
    for wait_uniform, pick in uniforms(seed, point, run):
        here = {**values, **state}
        marks = [float(side.evaluate(here)) for side in breaks_of(model)]
        far = min([time + width, *(mark for mark in marks if mark > time)])
        bound = sum(bounds(model, here, time, far))
        if not bound < math.inf:
            width = width / 2 if width < math.inf else max(time, 1.0)
            continue
        wait = -math.log(wait_uniform) / (bound * (1 + 2.0**-30)) if bound else math.inf
        stop = min(time + wait, far)
        if stop > until:
            break
        chosen = None
        if stop < far:
            quiet = 0
            target, now = pick * bound * (1 + 2.0**-30), {**here, "time": stop}
            for each in model.transitions:
                rate = float(each.rate.evaluate(now)) if each.guard is None or each.guard.evaluate(now) else 0.0
                if target < rate:
                    chosen = each
                    break
                target -= rate
            if chosen is None:
                width = width / 2 if width < math.inf else max(2 * (stop - time), 1e-12 * (1 + stop))
        elif stop >= time + width:
            quiet += 1
            width = 2 * width if quiet < 20 else math.inf
        time = stop
        if chosen is not None:
            for name, change in chosen.change.items():
                state[name] += change
            times.append(time)
            states.append(list(state.values()))
    return times, states
