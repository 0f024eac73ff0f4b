"""How often credible intervals contain f, by what they are widened with, from the same fits.

    python benchmarks/intervals.py [PROBLEM ...] [--sets 12] [--first 21] [--learners svi-gp ep-gp] [--name NAME]
    python benchmarks/intervals.py --table      the kept results as in docs/learning.md

Three lines for each problem and learner: as the learner's approximation has them (`bare`), with the floor of the
deviation that is part of every posterior (`floor`), and with the variance of the angle 1.3 times as large besides
(`wider`), which is not. Each has the coverage of f by the 95 % intervals, their mean width, and the interval score of
Gneiting and Raftery (width + 40 times the distance by which f is missed; less is better), all means over independent
training sets. The mean of f, and so the root mean square error, is the same in all three.

Problems are those of learning_data.py. Where f cannot be computed, it is the share of 200,000 runs at each test point,
and of a million on f and l. So its standard error, kept as `truth_error`, is well below the error of what is learned.
With fewer runs, the noise of the truth would count as a fault of the intervals: on l, the share of 50,000 runs errs by
0.002, which is as much as what is learned.

The constants of the floor were chosen on training sets of a, c and f and of random networks that the notes do not name.
The training sets here begin with number 21, which none of them was; on the networks named `fresh` nothing about
intervals was chosen.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from dataclasses import replace
from functools import partial
from typing import Any, Final

import learning_data
import machine
import numpy as np

import sateen as st
from sateen.learning.floor import angle, probability

LEVEL: Final = 0.95
FACTOR: Final = 1.3
TRUTH_RUNS: Final = 200_000  # at each test point, where f cannot be computed
MORE_RUNS: Final = {"f": 1_000_000, "l/fewer": 1_000_000}
RULES: Final = ("bare", "floor", "wider")
KEYS: Final = ("coverage", "width", "score")
ONE_GUIDE: Final = "one-guide"  # SVIBNN as it was for any number of points
LEARNERS: Final[dict[str, Any]] = {
    "svi-gp": st.SVIGP,
    "ep-gp": st.EPGP,
    "svi-bnn": st.SVIBNN,
    ONE_GUIDE: partial(st.SVIBNN, guides=1, batch=100),
    "default": None,
}
PROBLEMS: Final = ("a", "c", "f", "g", "i")


def measured(band: st.Prediction, f: Any) -> tuple[float, float, float]:
    """Coverage, mean width and mean interval score."""
    missed = np.maximum(band.lower - f, 0.0) + np.maximum(f - band.upper, 0.0)
    score = band.width + 2.0 / (1.0 - LEVEL) * missed
    return float(np.mean(missed == 0.0)), float(band.width.mean()), float(score.mean())


def wider(band: st.Prediction) -> st.Prediction:
    """With the variance of the angle 1.3 times as large."""
    ends = [angle(band.lower), angle(band.upper)]
    middle, reach = 0.5 * sum(ends), 0.5 * np.sqrt(FACTOR) * (ends[1] - ends[0])
    lower, upper = (probability(np.clip(middle + sign * reach, 0.0, np.pi / 2.0)) for sign in (-1.0, 1.0))
    return replace(band, lower=np.minimum(lower, band.lower), upper=np.maximum(upper, band.upper))


def row(name: str, learner: str, numbers: range) -> dict[str, Any]:
    problem = learning_data.problem(name)
    truth = learning_data.truth(problem, runs=MORE_RUNS.get(name, TRUTH_RUNS))
    results, errors, kinds, seconds = list[Any](), list[float](), list[str](), list[float]()
    for number in numbers:
        observations = learning_data.training(problem, number)
        recipe, began = LEARNERS[learner], time.process_time()
        fitted: Any = st.learn(observations, recipe and recipe(), seed=number)
        seconds.append(time.process_time() - began)
        band = fitted.predict(truth.points, level=LEVEL)
        bare = replace(fitted, floor=0.0).predict(truth.points, level=LEVEL)
        assert np.array_equal(band.mean, bare.mean)
        results.append([measured(each, truth.probability) for each in (bare, band, wider(band))])
        errors.append(float(np.sqrt(np.mean((band.mean - truth.probability) ** 2))))
        kinds.append(fitted.kind)
    table = np.array(results)
    by_rule = {
        rule: {**dict(zip(KEYS, values.mean(axis=0).tolist(), strict=True)), "by_set": values[:, 0].tolist()}
        for rule, values in zip(RULES, table.swapaxes(0, 1), strict=True)
    }
    return {
        "problem": name,
        "learner": learner,
        "kinds": sorted(set(kinds)),
        "sets": len(table),
        **by_rule,
        "rmse": float(np.mean(errors)),
        "truth_error": float(np.sqrt(np.mean(truth.error**2))),
        "cpu_seconds": seconds,
    }


def table() -> None:
    """The kept results in Markdown. Those of fresh networks with as many rates are one line, their mean."""
    kept = [row for file in machine.RESULTS.glob("intervals*.json") for row in json.loads(file.read_text())["rows"]]
    groups = dict[tuple[str, str, int], list[dict[str, Any]]]()
    for row in sorted(kept, key=lambda row: (row["learner"], row["problem"])):
        about = row["problem"].rpartition("/phi")[0] or row["problem"]
        method = " or ".join(row["kinds"]) + (", one guide" if row["learner"] == ONE_GUIDE else "")
        groups.setdefault((about, method, row["sets"]), []).append(row)
    print("| data | method | functions x sets | coverage without, with | width without, with | score without, with |")
    print("|---|---|---|---|---|---|")
    for (about, kind, sets), rows in groups.items():
        cells = []
        for key, digits in zip(KEYS, (2, 4, 4), strict=True):
            without, floor = (np.mean([row[rule][key] for row in rows]) for rule in RULES[:2])
            cells.append(f"{without:.{digits}f}, {floor:.{digits}f}")
        print(f"| {about} | {kind} | {len(rows)} x {sets} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--sets", type=int, default=12)
    parser.add_argument("--first", type=int, default=21)
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=["svi-gp", "ep-gp"])
    parser.add_argument("--name", default="intervals")
    parser.add_argument("--table", action="store_true", help="print the kept results, measure nothing")
    options = parser.parse_args()
    if options.table:
        table()
        return
    print(f"{'problem':<16}{'learner':<10}{'sets':>5}  {'rule':<6} coverage    width    score     RMSE")
    rows = []
    for name in options.problems:
        for learner in options.learners:
            found = row(name, learner, range(options.first, options.first + options.sets))
            rows.append(found)
            for rule in RULES:
                values = "".join(f"{found[rule][key]:>9.4f}" for key in KEYS)
                print(f"{name:<16}{learner:<10}{found['sets']:>5}  {rule:<6}{values}{found['rmse']:>9.4f}", flush=True)
            machine.write(options.name, {"machine": machine.note("numpy", "scipy", "jax"), "rows": rows})


if __name__ == "__main__":
    main()
