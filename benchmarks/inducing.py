"""What sparse inducing points cost, on configuration (c): fixed beforehand, selected, or optimised.

    python benchmarks/inducing.py [--sets 3]        prints a table and writes results/inducing.json

The paper says that sparse variational inference with fixed inducing points loses accuracy, and that optimised ones lose
less. All three are SVIGP on the same training sets of 2500 points with 50 runs; they differ only in the inducing
points: `fixed` is SVIGP.sparse_vi(), a random part of the training points; `selected` is SVIGP(); `optimised` moves the
selected ones. Errors are against f, computed exactly at the 400 test points; all are means over the training sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import fmean
from typing import Any, Final

import machine

import sateen as st
from sateen.paper.questions import questions

NUMBERS: Final = (5, 10, 20, 40, 80)
WAYS: Final[dict[str, Callable[[int], st.Learner]]] = {
    "fixed": lambda inducing: st.SVIGP.sparse_vi(inducing=inducing),
    "selected": lambda inducing: st.SVIGP(inducing=inducing),
    "optimised": lambda inducing: st.SVIGP(inducing=inducing, optimise_inducing=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=3)
    options = parser.parse_args()
    (asked,) = questions(["c"])
    ((name, formula),) = asked.formulas.items()
    test = asked.points("test")
    labels = st.observe(asked.model, formula, test, asked.test.runs, seed=asked.run_seed("test"))
    truth, rows = st.exact(asked.model, formula, test), list[dict[str, Any]]()
    sets = [
        st.observe(
            asked.model, formula, asked.points("train", number), asked.train.runs, seed=asked.run_seed("train", number)
        )
        for number in range(1, options.sets + 1)
    ]
    print(f"configuration {name}, {options.sets} training sets\ninducing  points     RMSE  cover  width  CPU s")
    for inducing in NUMBERS:
        for way, learner in WAYS.items():
            scores, seconds = [], []
            for number, training in enumerate(sets, start=1):
                start = time.process_time()
                posterior = learner(inducing).fit(training, seed=number)
                seconds.append(time.process_time() - start)
                scores.append(st.score(posterior.predict(test), labels, truth))
            row = {
                "inducing": inducing,
                "points": way,
                "rmse": fmean(float(score.rmse_truth or 0.0) for score in scores),
                "coverage": fmean(float(score.coverage or 0.0) for score in scores),
                "width": fmean(score.uncertainty for score in scores),
                "seconds": min(seconds),
            }
            rows.append(row)
            print("{inducing:8d}  {points:9s}  {rmse:.4f}  {coverage:.3f}  {width:.3f}  {seconds:.2f}".format(**row))
    print(machine.write("inducing", {"machine": machine.note("numpy", "scipy"), "sets": options.sets, "rows": rows}))


if __name__ == "__main__":
    main()
