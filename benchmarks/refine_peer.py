"""The CPU time of choosing a round of 96 picks: `refine` beside AEPsych's level-set acquisitions, on the same data.

    pip install torch==2.13.0 aepsych      in an environment of its own (AEPsych asks for an older numpy, and works)
    python benchmarks/refine_peer.py       prints a table and writes results/refine_peer.json

The data are those that `refine` begins with on SIR: 128 points with 20 runs each. AEPsych takes single outcomes, so it
is given 2,560 of them, and chooses one point at a time. Its acquisitions are GlobalMI, a look-ahead for level sets over
256 query points, and MCLevelSetEstimation, a straddle. Each chooses with AEPsych's own defaults, and for 96 picks takes
96 times as long as for one. Fits are timed apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import machine
import numpy as np

import sateen as st
from sateen.decision.picks import PICKS, pick_round
from sateen.paper.cases.models import sir

THRESHOLD, REPEATS = 0.1, 5


def seconds(work: Callable[[], Any]) -> float:
    """The least CPU seconds of a few repetitions."""
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return min(spent)


def main() -> None:
    import torch
    from aepsych.acquisition import GlobalMI, MCLevelSetEstimation
    from aepsych.generators import OptimizeAcqfGenerator
    from aepsych.models import GPClassificationModel

    torch.set_num_threads(1)
    space = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
    seen = st.observe(sir.model(), sir.formula("as-stated"), space.sobol(128, seed=1), 20, seed=2)
    rows = [{"way": "fit: sateen SVIGP", "seconds": seconds(lambda: st.SVIGP().fit(seen, seed=1))}]
    posterior = st.SVIGP().fit(seen, seed=1)
    goal = st.Threshold(THRESHOLD)
    rows.append({"way": "choice: refine", "seconds": seconds(lambda: pick_round(goal, posterior, 96 * 10, seed=1))})

    unit = torch.tensor(0.5 + 0.5 * space.to_unit(seen.theta), dtype=torch.float64)
    x = unit.repeat_interleave(20, dim=0)
    outcomes = [np.arange(20) < count for count in seen.satisfied]
    y = torch.tensor(np.concatenate(outcomes).astype(np.float64))
    lower, upper = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)

    def fitted() -> Any:
        model = GPClassificationModel(dim=2)
        model.fit(x, y)
        return model

    rows.append({"way": "fit: AEPsych GPClassificationModel", "seconds": seconds(fitted)})
    model, target = fitted(), THRESHOLD
    acquisitions = {
        "GlobalMI": (GlobalMI, {"target": target, "query_set_size": 256, "lb": lower, "ub": upper}),
        "MCLevelSetEstimation": (MCLevelSetEstimation, {"target": target}),
    }
    for name, (acquisition, given) in acquisitions.items():
        generator = OptimizeAcqfGenerator(lb=lower, ub=upper, acqf=acquisition, acqf_kwargs=given)
        one = seconds(lambda made=generator: made.gen(1, model))
        rows.append({"way": f"choice: AEPsych {name}, {PICKS} times one point", "seconds": PICKS * one})
    for row in rows:
        print(f"{row['way']:60} {row['seconds']:9.3f} s of CPU")
    packages = ("numpy", "scipy", "sateen", "torch", "aepsych", "botorch", "gpytorch")
    print(machine.write("refine_peer", {"machine": machine.note(*packages), "rows": rows}))


if __name__ == "__main__":
    main()
