"""How many events of gene expression (LacZ) are idle: a binding that is undone before anything else comes of it.

    python benchmarks/idle_events.py [RUNS]     prints the events of each reaction, writes results/idle_events.json

Skipping exactly such pairs would leave the other events. The last lines are therefore the most that it could gain in
events: without the releases at the promoter and one binding for each, and the same for ribosomes too.
"""

from __future__ import annotations

import sys
from collections import Counter

import machine
import numpy as np

import sateen as st
from sateen.model.model import Transition
from sateen.paper.cases.models import lacz

END = 2100
PAIRS = {"promoter": ("R1", "R2"), "ribosomes": ("R6", "R7")}


def main(runs: int) -> None:
    model = st.Model.parse(lacz.text)
    known = {reaction.name: changes(model, reaction) for reaction in model.transitions}
    named = {change: name for name, change in known.items()}
    assert len(named) == len(known)  # each reaction is known by what it changes
    events: Counter[str] = Counter()
    for seed in range(runs):
        path = st.simulate(model, {}, until=END, seed=seed)
        events.update(named[tuple(row)] for row in np.diff(path.states, axis=0).astype(int).tolist())
    total = events.total()
    for name in known:
        print(f"{name:4} {events[name] / runs:9.1f} events a run, {events[name] / total:6.1%}")
    left, factors = total, {}
    for pair, (_, release) in PAIRS.items():
        left -= 2 * events[release]
        factors[pair] = round(total / left, 2)
        print(f"without idle events up to the {pair}: {left / total:.1%} of the events, {factors[pair]} times fewer")
    result = {
        "machine": machine.note("sateen", "numpy"),
        "runs": runs,
        "end": END,
        "events a run": {name: round(events[name] / runs, 1) for name in known},
        "at most times fewer": factors,
    }
    print(machine.write("idle_events", result))


def changes(model: st.Model, reaction: Transition) -> tuple[int, ...]:
    """What a reaction adds to each species."""
    made, used = dict(reaction.produced), dict(reaction.consumed)
    return tuple(made.get(name, 0) - used.get(name, 0) for name in model.species)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
