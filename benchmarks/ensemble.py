"""Ensembles: the states of many runs at 50 times, beside GillesPy2's C++ solver; and a thousand million events.

    pip install '.[peers]'; python benchmarks/ensemble.py [--quick]

CPU seconds of a call from Python, on one worker, best of several rounds in one run; compilation is left out for both,
and shown apart. Both return all states: GillesPy2 as its Results, sateen as an Ensemble. The CPU time of GillesPy2's
own process counts, and `solver` is that part alone. Means are compared, in standard errors of their difference, to see
that both simulate the same.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import machine
import numpy as np
from peers import GillesPy2, Race

import sateen as st
from sateen.paper.cases import lacz, phosphorelay, sir

POINTS = 50
RACES = [
    (Race("SIR", sir.model(), {"beta": 0.12, "gamma": 0.05}, 120.0, POINTS), 20_000, 2_000),
    (Race("PR", phosphorelay.model(), {}, 600.0, POINTS), 20_000, 2_000),
    (Race("PGE", lacz.model(), {}, 2300.0, POINTS), 1_000, 100),
]
LARGE = "species X = 10000\n0 -> X @ 10000\nX -> 0 @ mass_action(1)"


def measure(race: Race, ours: int, theirs: int, rounds: int) -> dict[str, Any]:
    """Microseconds of CPU a run, for both."""
    times = np.linspace(0.0, race.until, POINTS)
    began = time.perf_counter()
    st.simulate(race.model, race.theta, times=times, runs=16, seed=1, workers=1)
    compiling = time.perf_counter() - began
    peer = GillesPy2(race)
    best = {"sateen": np.inf, "peer": np.inf, "solver": np.inf}
    for round_ in range(rounds):
        best["peer"] = min(best["peer"], peer.run(theirs) / theirs)
        best["solver"] = min(best["solver"], peer.solver_seconds / theirs)
        began = time.process_time()
        ensemble = st.simulate(race.model, race.theta, times=times, runs=ours, seed=round_, workers=1)
        best["sateen"] = min(best["sateen"], (time.process_time() - began) / ours)
    results = peer.model.run(solver=peer.solver, number_of_trajectories=theirs, seed=8)
    other = np.array([[each[f"x_{name}"] for name in ensemble.species] for each in results]).transpose(0, 2, 1)
    spread = np.sqrt(ensemble.deviation**2 / ours + other.var(axis=0, ddof=1) / theirs)
    varies = spread > 0
    apart = np.abs(ensemble.mean - other.mean(axis=0))
    assert not apart[~varies].any()
    return {
        "model": race.name,
        "sateen_us": 1e6 * best["sateen"],
        "gillespy2_us": 1e6 * best["peer"],
        "solver_us": 1e6 * best["solver"],
        "times": best["peer"] / best["sateen"],
        "times_solver": best["solver"] / best["sateen"],
        "compile_seconds": [compiling, peer.compile_seconds],
        "means_apart": float((apart[varies] / spread[varies]).max()),
        "bytes_a_run": ensemble.states.nbytes // len(ensemble),
    }


def large(runs: int) -> dict[str, Any]:
    """An immigration-death process of 10,000 molecules, 2 million events a run, at 51 times."""
    model = st.Model.parse(LARGE)
    st.simulate(model, times=[0.001], runs=16, seed=1)
    before = resource.getrusage(resource.RUSAGE_SELF)
    ensemble = st.simulate(model, times=np.linspace(0, 100, 51), runs=runs, seed=1, max_events=10**8)
    after = resource.getrusage(resource.RUSAGE_SELF)
    error = (ensemble.mean[-1, 0] - 10_000) / np.sqrt(10_000 / runs)  # the process is Poisson(10,000) by then
    return {
        "events": 2e6 * runs,
        "user_seconds": after.ru_utime - before.ru_utime,
        "system_seconds": after.ru_stime - before.ru_stime,
        "mean_in_standard_errors": error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds instead of seven, and nothing written")
    options = parser.parse_args()
    about = machine.note("llvmlite", "numpy", "gillespy2")
    print(f"{about['processor']}, load {about['load']}, {about['versions']}")
    print(f"{'model':6}{'sateen us':>11}{'GillesPy2 us':>14}{'times':>8}{'solver alone':>14}{'means apart':>13}")
    rows = []
    for race, ours, theirs in RACES:
        row = measure(race, ours, theirs, 2 if options.quick else 7)
        rows.append(row)
        print(
            f"{row['model']:6}{row['sateen_us']:11.2f}{row['gillespy2_us']:14.1f}{row['times']:8.1f}"
            f"{row['times_solver']:14.1f}{row['means_apart']:13.2f}",
            flush=True,
        )
    one = large(50 if options.quick else 500)
    print(f"{one['events']:.2g} events: {one['user_seconds']:.1f} s user, {one['system_seconds']:.2f} s system")
    if not options.quick:
        print(machine.write("ensemble", {"machine": about, "points": POINTS, "rows": rows, "large": one}))


if __name__ == "__main__":
    main()
