"""Whether counts have a known distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import chisquare

LEVEL = 1e-6


def assert_distributed(counts: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64]) -> None:
    """Chi-square over the values 0, 1, 2, ..., where rare ones share a cell, and the last cell holds all beyond."""
    observed = np.bincount(counts, minlength=len(probabilities)).astype(float)
    expected = np.zeros(len(observed))
    expected[: len(probabilities)] = probabilities * len(counts)
    cells: list[list[float]] = [[0.0, 0.0]]
    for seen, wanted in zip(observed, expected, strict=True):
        if cells[-1][1] >= 10:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += wanted
    if cells[-1][1] < 10 and len(cells) > 1:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    seen, wanted = np.array(cells).T
    assert len(seen) > 5, "too few cells to tell anything"
    assert chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > LEVEL
