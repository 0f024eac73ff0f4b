"""How fast the engine is: events a second on one core, beside GillesPy2's C++ solver, libRoadRunner and the prototype.

    pip install '.[peers]'; python benchmarks/ssa.py [--quick]

Best of several rounds in one run, in CPU seconds of a call from Python; compilation is left out for all and shown
apart. For GillesPy2 the ratio to its solver's process alone, without the Python around it, stands beside. The peers
return the state at two times and decide nothing; sateen is shown without a formula, and with formulas of every kind. A
trajectory is the same process for all, so one count of events (sateen's) serves all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
from peers import GillesPy2, Prototype, Race, RoadRunner

import sateen as st
from sateen.engine.run import Runner
from sateen.paper.cases import lacz, phosphorelay, sir

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from pinned_networks import FOLDER, pinned

PINNED = pinned(FOLDER, 20)

RACES = (
    Race("SIR", sir.model(), {"beta": 0.12, "gamma": 0.05}, 120.0),
    Race("PGE", lacz.model(), {}, 2300.0),
    Race("PR", phosphorelay.model(), {}, 600.0),
    Race("RND20", PINNED.model, {parameter.name: 0.1 for parameter in PINNED.model.parameters}, 10.0),
)
QUESTIONS = {
    "SIR": {
        "own property": sir.formula("as-stated"),
        "nested": st.stl("F[0, 100] G[0, 10] (I > 20)"),
        "delayed": st.stl("F[0, 100] (I - I(t-10) > 20)"),
        "unbounded": st.stl("F (I == 0)"),
        "nested, unbounded": st.stl("G (I > 20 -> F I == 0)"),
    },
    "PGE": {"own property (nested, delayed)": lacz.formula("as-stated")},
    "PR": {"own property": phosphorelay.formula("as-stated"), "nested": st.stl("F[0, 500] G[0, 50] (L1p > 16)")},
    "RND20": {f"own property {i + 1}": formula for i, formula in enumerate(PINNED.properties)},
}
TRAJECTORIES = {"SIR": 40_000, "PGE": 400, "PR": 40_000, "RND20": 40_000}
PEER_TRAJECTORIES = {"SIR": 10_000, "PGE": 100, "PR": 10_000, "RND20": 10_000}


def run(runner: Runner, race: Race, trajectories: int, seed: int, until: float = np.inf) -> tuple[float, int]:
    """CPU seconds and events of so many trajectories."""
    values = race.model.values(race.theta)
    theta = np.tile([values[name] for name in runner.parameters], (4, 1))
    items = [(point, 0, trajectories // 4) for point in range(4)]
    began = time.process_time()
    counts = runner.run(theta, items, seed=seed, max_time=until, max_events=10**9)
    return time.process_time() - began, counts.events


def ours(race: Race, formula: st.Formula | None) -> tuple[Runner, float]:
    """A compiled runner, and the seconds that compiling took."""
    runner = Runner(race.model, () if formula is None else (formula,))
    began = time.perf_counter()
    run(runner, race, 16, 1, race.until if formula is None else np.inf)
    return runner, time.perf_counter() - began


def measure(race: Race, rounds: int) -> list[dict[str, Any]]:
    """The rows of one model: the peers, the prototype and sateen in turn, best of `rounds`."""
    trajectories = TRAJECTORIES[race.name]
    plain, compiling = ours(race, None)
    _, events = run(plain, race, trajectories, 1, race.until)
    per_run = events / trajectories
    peers = []
    for kind in (GillesPy2, RoadRunner, Prototype):
        try:
            peers.append(kind(race))
        except (ImportError, OSError) as error:
            print(f"  {kind.name} is left out on {race.name}: {error}")
    questions = {label: (*ours(race, formula), formula) for label, formula in QUESTIONS[race.name].items()}
    best: dict[str, float] = {}
    bare = 0.0  # events a second of GillesPy2's solver process alone, without the Python around it
    for round_ in range(rounds):
        for peer in peers:
            many = trajectories if isinstance(peer, Prototype) else PEER_TRAJECTORIES[race.name]
            best[peer.name] = max(best.get(peer.name, 0.0), many * per_run / peer.run(many))
            if isinstance(peer, GillesPy2):
                bare = max(bare, many * per_run / peer.solver_seconds)
        seconds, events = run(plain, race, trajectories, round_, race.until)
        best["sateen"] = max(best.get("sateen", 0.0), events / seconds)
        for label, (runner, _, _) in questions.items():
            seconds, events = run(runner, race, trajectories, round_)
            best[label] = max(best.get(label, 0.0), events / seconds if events > trajectories else 0.0)
    compiled = {peer.name: peer.compile_seconds for peer in peers} | {"sateen": compiling}
    compiled |= {label: each[1] for label, each in questions.items()}
    reference = best.get(GillesPy2.name)
    return [
        {
            "model": race.name,
            "engine": name,
            "formula": str(questions[name][2]) if name in questions else None,
            "events_per_second": speed,
            "times_gillespy2": speed / reference if reference else None,
            "times_gillespy2_process": speed / bare if bare else None,
            "compile_seconds": compiled[name],
            "events_per_run": per_run,
        }
        for name, speed in best.items()
    ]


def two_workers(rounds: int) -> dict[str, float]:
    """How much faster two workers are than one, in wall time, on SIR (a)."""
    space = st.Space(beta=(0.005, 0.3), gamma=0.05)
    points = space.grid(500)
    seconds = {1: np.inf, 2: np.inf}
    for round_ in range(rounds + 1):
        for workers in seconds:
            began = time.perf_counter()
            st.observe(sir.model(), sir.formula("as-stated"), points, 2_000, seed=round_, workers=workers)
            seconds[workers] = min(seconds[workers], time.perf_counter() - began) if round_ else np.inf
    return {"one": seconds[1], "two": seconds[2], "ratio": seconds[1] / seconds[2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds instead of eleven, and nothing written")
    parser.add_argument("--only", nargs="*", default=[race.name for race in RACES], help="models to run")
    options = parser.parse_args()
    rounds = 2 if options.quick else 11
    about = machine.note("sateen", "llvmlite", "numpy", "gillespy2", "libroadrunner")
    print(f"{about['processor']}, load {about['load']}, {about['versions']}")
    rows: list[dict[str, Any]] = []
    for race in RACES:
        if race.name in options.only:
            rows += measure(race, rounds)
            show([row for row in rows if row["model"] == race.name])
    workers = two_workers(rounds)
    print(f"two workers: {workers['ratio']:.2f} times one ({workers['one']:.2f} s, {workers['two']:.2f} s)")
    if not options.quick:
        print(machine.write("ssa", {"machine": about, "rounds": rounds, "rows": rows, "two_workers": workers}))


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{rows[0]['model']}: {rows[0]['events_per_run']:.1f} events a run")
    for row in rows:
        ratio = ""
        if row["times_gillespy2"] is not None:
            ratio = (
                f"{row['times_gillespy2']:7.1f} x GillesPy2 ({row['times_gillespy2_process']:.1f} x its process alone)"
            )
        speed = f"{row['events_per_second'] / 1e6:8.2f} M events/s"
        print(f"  {row['engine']:<32}{speed} {ratio}   compiled in {row['compile_seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
