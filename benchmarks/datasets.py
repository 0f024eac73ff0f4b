"""The paper's data sets (a)-(l), made anew: seconds for each, and the width of the test sets beside the published one.

    python benchmarks/datasets.py [a b ... l] [--variant as-stated]

The width is the average over the test set of 2 · 1.96 · sqrt(p(1-p)/1000): it tells whether these are the data that the
published figures come from.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import machine
import numpy as np

import sateen as st
from sateen.engine.run import Runner
from sateen.paper.cases.configurations import CONFIGURATIONS, Configuration


def make(configuration: Configuration) -> dict[str, Any]:
    """One configuration's training and test sets, on all cores."""
    model, formula = configuration.model, configuration.formula
    began = time.perf_counter()
    Runner(model, (formula,)).run([list(model.values(_middle(configuration)).values())[: len(model.parameters)]],
                                  [(0, 0, 1)], seed=0)  # fmt: skip
    compiling = time.perf_counter() - began
    began = time.perf_counter()
    st.observe(model, formula, configuration.train.draw(configuration.space, 1), configuration.train.runs, seed=1)
    trained = time.perf_counter()
    test = st.observe(model, formula, configuration.test.draw(configuration.space, 2), configuration.test.runs, seed=2)
    tested = time.perf_counter()
    share = test.satisfied / test.trials
    width = float(np.mean(2 * 1.96 * np.sqrt(share * (1 - share) / configuration.test.runs)))
    return {
        "configuration": configuration.name,
        "runs": configuration.train.total + configuration.test.total,
        "compile_seconds": compiling,
        "train_seconds": trained - began,
        "test_seconds": tested - trained,
        "undecided": int(test.undecided.sum()),
        "width": width,
        "published_width": configuration.published.test_width,
    }


def _middle(configuration: Configuration) -> dict[str, float]:
    return configuration.space.points({name: each.low for name, each in configuration.space.ranges.items()})[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configurations", nargs="*", default=list(CONFIGURATIONS))
    parser.add_argument("--variant", default="paper-data", choices=["paper-data", "as-stated"])
    options = parser.parse_args()
    about = machine.note("llvmlite", "numpy")
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}; variant {options.variant}")
    print("cfg         runs   train s    test s   compile s     width   published")
    rows = []
    for name in options.configurations:
        row = make(CONFIGURATIONS[name].variant(options.variant))
        rows.append(row)
        print(
            f"{name:<4}{row['runs']:>12,}{row['train_seconds']:>10.2f}{row['test_seconds']:>10.2f}"
            f"{row['compile_seconds']:>12.1f}{row['width']:>10.4f}{row['published_width']:>12.3f}",
            flush=True,
        )
    seconds = sum(row["train_seconds"] + row["test_seconds"] for row in rows)
    print(f"all: {seconds:.1f} s")
    if len(rows) == len(CONFIGURATIONS):
        print(machine.write(f"datasets-{options.variant}", {"machine": about, "rows": rows, "seconds": seconds}))


if __name__ == "__main__":
    main()
