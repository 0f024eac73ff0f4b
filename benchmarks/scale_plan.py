"""A campaign on up to 1,000 workers, on paper: events of a client, a scheduler and workers of unlike speed.

    python benchmarks/scale_plan.py     prints a table and writes results/scale_plan.json

A piece passes the client and the scheduler, one after the other, then waits for its worker; two are under way for each
worker. Workers begin within 6.4 to 10.4 seconds, their speeds differ by 15 %, and one of a hundred is ten times slower.
Pieces are sized by the same `Pace` as in real campaigns, and late ones are begun once more. The efficiency is the time
that the same workers would need if nothing had to be handed out and all had begun at once, over the simulated one.
"""

from __future__ import annotations

import heapq
from typing import Any

import machine
import numpy as np

from sateen.pools.forecast import BEGIN, Crowd
from sateen.sampling.campaign import FIRST_SIZE, Pace

SCHEDULER, CLIENT = 3e-3, 0.5e-3  # seconds a piece: what a scheduler needs when answers come in batches, and a client
RUN = 0.6e-6  # seconds of a run of the SIR model on one core
RUNS = (1e9, 1e10, 1e11, 1e12)
WORKERS = (10, 100, 1000)


def simulate(runs: float, workers: int, seed: int = 0) -> tuple[float, float, int]:
    """How long it takes, the efficiency, and the number of pieces."""
    rng = np.random.default_rng(seed)
    rate = np.maximum(0.3, rng.normal(1, 0.15, workers)) * np.where(rng.random(workers) < 0.01, 0.1, 1) / RUN
    free = BEGIN * rng.uniform(0.8, 1.3, workers)
    pace = Pace(None, workers, FIRST_SIZE)
    pace.cost = SCHEDULER
    client = scheduler = end = 0.0
    left, pieces = int(runs), 0
    events: list[tuple[float, int, int, float]] = [(0.0, place % workers, 0, 0.0) for place in range(2 * workers)]
    late: list[tuple[float, float]] = []  # when a piece of the end is done, and when by another worker
    while events:
        now, worker, done, seconds = heapq.heappop(events)
        client = max(client, now) + CLIENT
        if done:
            pace.learn(done, seconds)
        if not left:
            continue
        size = min(left, pace.size(left))
        left, pieces = left - size, pieces + 1
        scheduler = max(scheduler, client) + SCHEDULER
        begin = max(free[worker], scheduler)
        seconds = size / rate[worker]
        free[worker] = begin + seconds
        again = begin + max(2.0, 2 * size * RUN) + size * RUN
        late.append((begin + seconds, again))
        heapq.heappush(events, (begin + seconds, worker, size, seconds))
    end = max(min(pair) for pair in late)
    return end, runs / rate.sum() / end, pieces


def main() -> None:
    """Print the table and keep it."""
    rows: list[dict[str, Any]] = []
    print(f"{'runs':>8} {'workers':>8} {'pieces':>8} {'seconds':>9} {'efficiency':>10} {'useful workers':>15}")
    for runs in RUNS:
        for workers in WORKERS:
            seconds, efficiency, pieces = simulate(runs, workers)
            useful = Crowd(workers, runs * RUN, int(runs)).useful
            print(f"{runs:8.0e} {workers:8} {pieces:8} {seconds:9.1f} {efficiency:10.2f} {useful:15}", flush=True)
            rows.append({"runs": runs, "workers": workers, "pieces": pieces, "seconds": seconds,
                         "efficiency": efficiency, "useful": useful})  # fmt: skip
    about = {"scheduler": SCHEDULER, "client": CLIENT, "run": RUN, "begin": BEGIN}
    print(machine.write("scale_plan", {"machine": machine.note("numpy"), "about": about, "rows": rows}))


if __name__ == "__main__":
    main()
