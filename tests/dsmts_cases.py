"""The cases of the SBML discrete stochastic test suite, run and compared with their known means and deviations.

A case is a folder with a model, its settings, and the mean and the standard deviation of its variables at whole times.
With n runs, mean m and variance v (around the known mean) against the known mu and sigma:

    Z = sqrt(n) (m - mu) / sigma        Y = sqrt(n/2) (v / sigma^2 - 1)

are the suite's own scores. Y has variance 1 only if the variable is normal; `spread`, the error of v over its standard
error from the fourth moment, is a proper Z whatever the distribution is.

The table of case 33 is not that of its model: it is, to all its digits, that of a chain in which 30 dimers fall apart
at the rate 0.5 instead of 30 k2 = 0.3. The case is compared with the table that `dimers` computes for the model.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import expm

import sateen as st
from sateen.language.expression import Name
from sateen.model.sbml import read_sbml

RUNS = 10_000
FAULTY = "00033"


@dataclass(frozen=True, slots=True)
class Scores:
    """How far the runs of a case are from what is known, over all its variables and times with a deviation.

    `wrong` is how many means or deviations differ where the known deviation is 0.
    """

    case: str
    mean: np.ndarray
    spread: np.ndarray
    official: np.ndarray
    wrong: int
    model: str


def case_folders(data: Path) -> list[Path]:
    return sorted(folder for folder in (data / "dsmts").glob("*") if next(folder.glob("*-settings.txt"), None))


def scores(folder: Path, runs: int = RUNS, *, published: bool = False) -> Scores:
    """One case, run with its own number as the seed; case 33 against its own table only if `published`."""
    newest = sorted(folder.glob("*-sbml-*.xml"))[-1]
    made = read_sbml(newest.read_text(encoding="utf-8"))
    mean, deviation = tables(folder)
    assert list(mean) == ["time", *_variables(folder)]
    if folder.name == FAULTY and not published:
        mean, deviation = dimers(mean["time"])
    times = mean.pop("time")
    deviation.pop("time")
    ensemble = st.simulate(made.model, {}, times=times, runs=runs, seed=int(folder.name), max_events=100_000_000)
    values = {**ensemble.values, **{name: ensemble[name].astype(float) for name in ensemble.species}}
    found: list[np.ndarray] = []
    wrong = 0
    for name, known in mean.items():
        amounts = made.rules.get(name, Name(name)).evaluate(values)
        sample = np.broadcast_to(amounts, (runs, len(times)))
        exact = deviation[name] == 0
        wrong += int(np.sum(np.any(sample[:, exact] != known[exact], axis=0)))
        found.append(_compared(sample[:, ~exact], known[~exact], deviation[name][~exact]))
    every = np.concatenate(found, axis=1)
    return Scores(folder.name, *every, wrong, newest.stem)


def tables(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The means and the deviations that a case comes with, by variable."""
    mean, deviation = (_table(next(folder.glob(f"*-{kind}.csv"))) for kind in ("mean", "sd"))
    return mean, deviation


def dimers(times: np.ndarray, *, apart_at_30: float = 0.3) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The tables of case 33 from its generator: up to 30 dimers of 100 molecules, and the 31st resets all.

    `apart_at_30` is the rate at which one of 30 dimers falls apart.
    """
    count = np.arange(31.0)
    single = 100 - 2 * count
    join, apart = 0.001 * single * (single - 1) / 2, 0.01 * count
    apart[30] = apart_at_30
    generator = np.diag(join[:-1], 1) + np.diag(apart[1:], -1)
    generator[30, 0] = join[30]
    generator -= np.diag(generator.sum(axis=1))
    rows = np.array([expm(generator * time)[0] for time in times])
    mean = rows @ count
    deviation = np.sqrt(np.maximum(rows @ count**2 - mean**2, 0.0))
    return {"time": times, "P": 100 - 2 * mean, "P2": mean}, {"time": times, "P": 2 * deviation, "P2": deviation}


def _compared(sample: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    runs = len(sample)
    squares = (sample - mean) ** 2
    z = np.sqrt(runs) * (sample.mean(axis=0) - mean) / deviation
    excess = squares.mean(axis=0) - deviation**2
    return np.array([z, excess / (squares.std(axis=0) / np.sqrt(runs)), np.sqrt(runs / 2) * excess / deviation**2])


def _table(file: Path) -> dict[str, np.ndarray]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        head, *rows = (row for row in csv.reader(stream) if row)
    columns = np.array(rows, float).T
    names = ["time", *(name.strip() for name in head[1:])]
    return dict(zip(names, columns, strict=True))


def _variables(folder: Path) -> list[str]:
    def lines() -> Iterator[str]:
        yield from next(folder.glob("*-settings.txt")).read_text(encoding="utf-8").splitlines()

    (listed,) = [line.partition(":")[2] for line in lines() if line.startswith("variables:")]
    return [name.strip() for name in listed.split(",")]
