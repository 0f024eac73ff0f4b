"""What time in rates costs: an epidemic with constant contacts, and with contacts that change with the season.

    python benchmarks/rates_in_time.py          prints a table, writes results/rates_in_time.json

Each is simulated by the lanes: events, CPU seconds as called, and how many times slower an event is than without time.
"""

from __future__ import annotations

import time

import machine

import sateen as st
from sateen.engine.run import Runner

LAWS = {
    "constant": "beta * S * I / 100",
    "a switch": "if(time < 50, beta, beta / 2) * S * I / 100",
    "a wave": "beta * (1 + 0.3 * sin(0.26 * time)) * S * I / 100",
    "a ramp": "beta * (1 + time / 100) * S * I / 100",
}
SIR = "species S = 95, I = 5, R = 0\nparameter beta = 0.12\nS + I -> 2 I @ {}\nI -> R @ 0.05 * I"
RUNS = 400_000


def main() -> None:
    rows = []
    for name, law in LAWS.items():
        runner = Runner(st.Model.parse(SIR.format(law)), (st.stl("(I > 0) U[100, 120] (I == 0)"),))
        runner.run([[0.12]], [[0, 0, 10]], seed=1)
        started = time.process_time()
        events = runner.run([[0.12]], [[0, 0, RUNS]], seed=1).events
        seconds = time.process_time() - started
        rows.append({"law": name, "events": events, "seconds": seconds, "events_a_second": events / seconds})
        slower = rows[0]["events_a_second"] / rows[-1]["events_a_second"]
        speed = events / seconds / 1e6
        print(f"{name:10}{events:>12,} events {seconds:8.3f} s {speed:8.2f} million a second{slower:8.1f}")
    print(machine.write("rates_in_time", {**machine.note("sateen", "llvmlite"), "rows": rows}))


if __name__ == "__main__":
    main()
