"""Counts at points, drawn from a known f, for the tests of whoever learns from them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from sateen.core.observations import Observations
from sateen.core.space import Points, Range, Space

__all__ = ["LINE", "PLANE", "observed", "wave"]

LINE: Final = Space(beta=(0.01, 1.0))
PLANE: Final = Space(beta=(0.01, 1.0), gamma=Range(0.1, 10.0, scale="log"), k=2.0)


def wave(points: Points) -> npt.NDArray[np.float64]:
    """A smooth f of the first parameter, and a little of the second, on the scale of each range."""
    unit = points.space.to_unit(points.theta)
    tilt = 0.4 * unit[:, 1] if unit.shape[1] > 1 else 0.0
    return np.asarray(ndtr(1.2 * np.sin(2.0 * unit[:, 0]) - 0.3 + tilt))


def observed(
    space: Space, n: int, runs: int | npt.NDArray[np.int64], seed: int, *, undecided: float = 0.0
) -> Observations:
    """Counts of `runs` at `n` uniform points; of each count a share stays undecided, whatever it would have been."""
    points = space.uniform(n, seed=seed)
    rng = np.random.default_rng([seed, 1])
    trials = np.broadcast_to(np.asarray(runs), (n,))
    satisfied = rng.binomial(trials, wave(points))
    lost = rng.binomial(satisfied, undecided)
    doubtful = lost + rng.binomial(trials - satisfied, undecided)
    return Observations(points, satisfied - lost, doubtful, trials, seed=seed)
