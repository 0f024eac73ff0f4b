"""How long a verdict takes, as traces grow, and how long RTAMT takes for the same.

    python benchmarks/monitor.py [--quick]

A trace is a walk on 0..9 with exponential times of mean 1 between jumps. Two formulas are monitored from its first
instant to its last: one of three levels with until and a delay, and one of F and G, on which RTAMT agrees with us.
A time is processor time, the best of several runs of the monitoring alone; formulas are parsed and traces made before.
The table goes to benchmarks/results/monitor.json with a note of the machine and of how busy it was.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path as FilePath
from time import process_time
from typing import Any

import machine
import numpy as np

from sateen.core.path import Path
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl

SEED = 20260101
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
QUICK_SIZES = (300, 1_000, 3_000)
LONGEST = 60.0  # seconds that a single run of RTAMT may take
RESULTS = FilePath(__file__).parent / "results" / "monitor.json"

NESTED = "G[0, {last}] ((x - x(t-1) > 0) -> F[0, 40] ((x < 7.5) U[1, 20] (x > 7.5)))"
SHARED = "G[0, {last}] ((x > 4.5) -> F[0, 300] G[0, 0.5] x < 4.5)"
SHARED_IN_RTAMT = "always[0:{last}] ((x > 4.5) -> (eventually[0:300] (always[0:0.5] (x < 4.5))))"
REACH = 301  # how far SHARED and NESTED look beyond `last`


def random_walk(jumps: int) -> Path:
    """A walk on 0..9 that starts in the middle and is reflected at both ends."""
    rng = np.random.default_rng([SEED, jumps])
    times = np.concatenate([[0.0], np.cumsum(rng.exponential(1.0, jumps - 1))])
    climbs = 5 + np.concatenate([[0], np.cumsum(rng.choice((-1, 1), jumps - 1))])
    states = 9 - np.abs(np.mod(climbs, 18) - 9)
    return Path(times, states, "x", end=math.ceil(times[-1]) + REACH, absorbed=False)


def best_of(run: Callable[[], Any], seconds: float = 2.0) -> float:
    """The shortest of up to seven runs, or of those that fit in `seconds`; at least one."""
    times: list[float] = []
    while len(times) < 7 and sum(times) <= seconds:
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times)


def rtamt_monitor(text: str, path: Path) -> Callable[[], float] | None:
    """A function that asks RTAMT for the robustness at time 0; None where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its parser's runtime uses what Python has deprecated
        try:
            import rtamt
        except ImportError:
            return None
        specification = rtamt.StlDenseTimeSpecification()
        specification.declare_var("x", "float")
        specification.spec = text
        specification.parse()
    samples = [[time, value] for time, (value,) in zip(path.times.tolist(), path.states.tolist(), strict=True)]
    return lambda: specification.evaluate(["x", samples])[0][1]


def measure(jumps: int, rtamt_expected: float) -> dict[str, Any]:
    """One row of the table; RTAMT is left out where it is expected to take longer than `LONGEST`."""
    path = random_walk(jumps)
    last = path.end - REACH
    nested, shared = (stl(text.format(last=last)) for text in (NESTED, SHARED))
    row: dict[str, Any] = {"jumps": jumps}
    for name, formula in (("nested", nested), ("shared", shared)):
        row[f"{name}_verdict"] = str(monitor(formula, path))
        row[f"{name}_ms"] = 1e3 * best_of(partial(monitor, formula, path))
    theirs = rtamt_monitor(SHARED_IN_RTAMT.format(last=last), path)
    if theirs is None:
        row["rtamt_skipped"] = "not installed"
    elif rtamt_expected > LONGEST:
        row["rtamt_skipped"] = f"about {rtamt_expected:,.0f} s expected, more than {LONGEST:.0f} s"
    else:
        row["rtamt_ms"] = 1e3 * best_of(theirs)
        row["ratio"] = row["rtamt_ms"] / row["shared_ms"]
        row["verdicts_agree"] = (theirs() > 0) == (row["shared_verdict"] == "true")
    return row


def growth(rows: list[dict[str, Any]], key: str) -> float | None:
    """The exponent p of time ~ jumps^p, by least squares on logarithms."""
    known = [(row["jumps"], row[key]) for row in rows if key in row]
    if len(known) < 2:
        return None
    sizes, times = np.log(np.array(known)).T
    return float(np.polyfit(sizes, times, 1)[0])


def shown(row: dict[str, Any]) -> str:
    """A row as a line of the table."""
    ours = f"{row['jumps']:>8,} {row['nested_ms']:>11.1f} {1e3 * row['nested_ms'] / row['jumps']:>8.2f}"
    ours += f" {row['shared_ms']:>11.1f} {1e3 * row['shared_ms'] / row['jumps']:>8.2f}"
    if "rtamt_ms" not in row:
        return f"{ours}   RTAMT skipped: {row['rtamt_skipped']}"
    return f"{ours} {row['rtamt_ms']:>11.1f} {row['ratio']:>8.1f}{'' if row['verdicts_agree'] else '  VERDICTS DIFFER'}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a verdict as traces grow, beside RTAMT.")
    parser.add_argument("--quick", action="store_true", help="small traces only; writes no results")
    quick = parser.parse_args().quick
    print(f"nested: {NESTED}\nF and G: {SHARED}\n")
    print(f"{'':>8} {'--- nested, sateen ---':>20} {'-- F and G, sateen -':>20}    - F and G, RTAMT -")
    print(f"{'jumps':>8} {'ms':>11} {'µs/jump':>8} {'ms':>11} {'µs/jump':>8} {'ms':>11} {'ratio':>8}")
    rows: list[dict[str, Any]] = []
    expected = 0.0
    for jumps in QUICK_SIZES if quick else SIZES:
        if rows and "rtamt_ms" in rows[-1]:
            power = max(1.0, growth(rows[-2:], "rtamt_ms") or 2.0)
            expected = 1e-3 * rows[-1]["rtamt_ms"] * (jumps / rows[-1]["jumps"]) ** power
        rows.append(measure(jumps, expected))
        print(shown(rows[-1]), flush=True)
    exponents = {name: growth(rows, f"{name}_ms") for name in ("nested", "shared", "rtamt")}
    print("\ngrowth exponents: " + ", ".join(f"{name} {p:.2f}" for name, p in exponents.items() if p is not None))
    if not quick:
        formulas = {"nested": NESTED, "shared": SHARED, "shared_in_rtamt": SHARED_IN_RTAMT, "last": "end of the walk"}
        about = machine.note("numpy", "rtamt")
        result = {"machine": about, "formulas": formulas, "rows": rows, "growth_exponents": exponents}
        print(machine.write("monitor", result))


if __name__ == "__main__":
    main()
