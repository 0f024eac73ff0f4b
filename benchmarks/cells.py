"""What rigorous bounds over boxes cost: cells that decide a threshold, the largest value, and whether bounds hold.

    python benchmarks/cells.py            prints a table and writes results/cells.json

SIR of the paper, p = 0.1, and the help desk of examples/queue.prism with two rates open. Times are CPU seconds of one
core. "plain" is the method of the prototype in the same run: one box at a time, a loop compiled for each bound without
vectors, Poisson sums instead of Horner's rule; it is given the same edges.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numba
import numpy as np

import sateen as st
from sateen.decision.cells import largest, threshold_cells
from sateen.engine.enclosure import Enclosure
from sateen.engine.motion import poisson_weights
from sateen.engine.walk import Stage

ROOT = Path(__file__).resolve().parents[1]
SIR_SPACE = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
QUEUE_SPACE = st.Space(arrival=(0.5, 2.0), answer=(1.0, 3.0))
RANDOM = 1000


def sir() -> tuple[st.Model, st.Formula]:
    model = st.Model.parse("""
        species S = 95, I = 5, R = 0
        infect:  S + I -> 2 I @ beta * S * I / 100
        recover: I -> R       @ gamma * I
    """)
    return model, st.stl("(I > 0) U[100, 120] (I == 0)")


def queue() -> tuple[st.Model, st.Formula]:
    text = (ROOT / "examples" / "queue.prism").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "desk.prism"
        file.write_text(text.replace("const double answer = 1.5;", "const double answer;"), encoding="utf-8")
        model = st.Model.load(file, constants={"capacity": 10})
    return model, st.stl("F[0, 20] waiting == 10")


@numba.njit  # type: ignore[untyped-decorator, unused-ignore]
def plain_span(v, sources_start, factor, target, coefficient, slow, fast, speed, first, weights):  # type: ignore[no-untyped-def]
    out, now, after = np.zeros_like(v), v.copy(), v.copy()
    for k in range(first + len(weights)):
        if k >= first:
            out += weights[k - first] * now
        for s in range(len(v)):
            here = now[s]
            total = 0.0
            for e in range(sources_start[s], sources_start[s + 1]):
                d = coefficient[e] * (now[target[e]] - here)
                total += d * (fast[factor[e]] if d > 0 else slow[factor[e]])
            after[s] = here + total / speed
        now, after = after, now
    return out


def plain_upper(enclosure: Enclosure, low: np.ndarray, high: np.ndarray) -> float:
    """The upper bound of one box by the plain method; every edge has its factor to itself in these models."""
    slow, fast = enclosure.factors.ranges(low[None], high[None])
    v = np.array([0.0, 1.0])
    for stage in reversed(enclosure.walk.stages):
        assert isinstance(stage, Stage)
        speed = float(stage.speed(fast)[0])
        first, weights = poisson_weights(speed * stage.duration, 1e-7)
        _, start, factor, target, coefficient = stage.edges[:5]
        v = plain_span(
            v[stage.onward], start.astype(np.int64), factor.astype(np.int64), target.astype(np.int64), coefficient,
            slow[0], fast[0], speed, first, weights,
        )  # fmt: skip
    return float(v[enclosure.walk.start])


def boxes(space: st.Space, count: int, half: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around random centres, of half-width `half` in log rates."""
    centre = space.uniform(count, seed=seed).theta
    low = np.array([each.low for each in space.ranges.values()])
    high = np.array([each.high for each in space.ranges.values()])
    return np.clip(centre * np.exp(-half), low, high), np.clip(centre * np.exp(half), low, high)


def case(
    name: str, model: st.Model, formula: st.Formula, space: st.Space, p: float, shares: list[float]
) -> dict[str, Any]:
    begin = time.process_time()
    enclosure = Enclosure.of(model, formula, space)
    build = time.process_time() - begin
    enclosure.bounds(*boxes(space, 1, 0.01, 1))  # compiles, or loads what is compiled
    result: dict[str, Any] = {"case": name, "states": enclosure.states, "p": p, "build_s": round(build, 3)}
    low, high = boxes(space, 64, 0.02, 2)
    begin = time.process_time()
    _, upper = enclosure.bounds(low, high)
    result["ms_per_pair"] = round(1e3 * (time.process_time() - begin) / len(low), 3)
    plain_upper(enclosure, low[0], high[0])
    begin = time.process_time()
    plain = np.array([plain_upper(enclosure, a, b) for a, b in zip(low, high, strict=True)])
    result["plain_ms_per_pair"] = round(2e3 * (time.process_time() - begin) / len(low), 3)
    result["plain_upper_above_ours"] = float((plain - upper).mean())
    theta = space.uniform(RANDOM, seed=3).theta
    truth = st.exact(model, formula, st.Points(theta, space))
    for share in shares:
        begin = time.process_time()
        cover = threshold_cells(enclosure, p, undecided=share)
        seconds = time.process_time() - begin
        wrong, inside = 0, 0
        for a, b, bound, status in zip(cover.low, cover.high, cover.bound, cover.status, strict=True):
            there = truth[((a <= theta) & (theta <= b)).all(axis=1)] if status else truth[:0]
            inside += len(there)
            wrong += int(np.count_nonzero(there < bound - 1e-10 if status > 0 else there > bound + 1e-10))
        row = {"undecided": share, "reached": cover.undecided, "cpu_s": round(seconds, 2), "bounds": cover.bounds_used}
        row |= {"cells": len(cover), "above": cover.above, "below": cover.below, "checked": inside, "wrong": wrong}
        result.setdefault("threshold", []).append(row)
        print(f"{name}, p = {p}: {100 * share:g} % undecided in {seconds:.1f} s, {cover.bounds_used:,} bounds; "
              f"{wrong} wrong of {inside} random points in cells", flush=True)  # fmt: skip
    begin = time.process_time()
    found = largest(enclosure, gap=0.01)
    result["largest"] = {
        "lower": found.lower, "upper": found.upper, "theta": found.theta, "bounds": found.bounds_used,
        "cpu_s": round(time.process_time() - begin, 2),
    }  # fmt: skip
    centre = 0.5 * (low + high)
    lower, upper = enclosure.bounds(low, high)
    exact = st.exact(model, formula, st.Points(centre, space))
    result["boxes_that_fail_at_their_centre"] = int(np.count_nonzero((exact < lower - 1e-10) | (exact > upper + 1e-10)))
    print(f"{name}: a pair of bounds {result['ms_per_pair']} ms, plain {result['plain_ms_per_pair']} ms")
    print(f"  largest value in [{found.lower:.4f}, {found.upper:.4f}] by {found.bounds_used} bounds", flush=True)
    return result


def main() -> None:
    cases = [
        case("SIR", *sir(), SIR_SPACE, 0.1, [0.1, 0.05, 0.03, 0.02]),
        case("queue", *queue(), QUEUE_SPACE, 0.3, [0.1, 0.05, 0.03, 0.02]),
    ]
    begin = time.process_time()
    table = st.bounds(*sir(), SIR_SPACE, width=0.1)
    maps = {"case": "SIR", "width": 0.1, "cells": len(table), "cpu_s": round(time.process_time() - begin, 2)}
    print(f"a map of SIR, bounds at most 0.1 apart: {len(table):,} cells, {maps['cpu_s']} s")
    about = machine.note("numpy", "numba")
    print(machine.write("cells", {"machine": about, "random_points": RANDOM, "cases": cases, "map": maps}))


if __name__ == "__main__":
    main()
