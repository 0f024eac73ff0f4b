"""What the tests of Gaussian processes share: small problems whose answers can be had by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from sateen.core.observations import Observations
from sateen.core.space import Range, Space
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import Basis
from sateen.learning.likelihood import Counts

DECADES = Space(k=Range(0.01, 1.0, scale="log"))


def wave(theta):
    """A probability over the first parameter, between 0.02 and 0.9."""
    return ndtr(0.8 * np.sin(3.5 * np.log10(theta[:, 0])) - 0.4)


def observed(points=120, runs=40, seed=5, space=DECADES, f=wave):
    """Counts of a known function at uniform points."""
    drawn = space.uniform(points, seed=seed)
    counts = np.random.default_rng(seed + 1).binomial(runs, f(drawn.theta))
    return Observations(drawn, counts, 0, runs, seed=seed)


class Small:
    """Three points with few runs each: an evidence and a posterior that a grid of 60³ nodes gives exactly."""

    def __init__(self, satisfied=(1, 6, 8), trials=(8, 8, 8), undecided=(0, 0, 0)):
        self.x = np.array([[-0.8], [0.1], [0.5]])
        self.kernel = Kernel("matern", (0.7,), 1.2, 0.5)
        columns = (np.array(column, dtype=float) for column in (satisfied, undecided, trials))
        self.counts = Counts(*columns, "probit")
        self.basis = Basis.of(self.kernel, self.x)
        self.features = self.basis.features(self.x)
        self.spare = self.basis.spare(self.features)
        self._integrate()

    def _integrate(self):
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        weights = weights / weights.sum()
        z = np.array(list(product(nodes, repeat=3)))
        mass = np.prod(np.array(list(product(weights, repeat=3))), axis=1)
        g = z @ np.linalg.cholesky(self.kernel.between(self.x, self.x)).T
        likelihood = np.ones(len(g))
        for i in range(3):
            low, free, trials = self.counts.satisfied[i], self.counts.undecided[i], self.counts.trials[i]
            possible = [binom.pmf(low + j, trials, ndtr(g[:, i])) for j in range(int(free) + 1)]
            likelihood *= np.sum(possible, axis=0)
        weighted = mass * likelihood
        self.log_evidence = float(np.log(weighted.sum()))
        weighted /= weighted.sum()
        self.mean = weighted @ g
        self.deviation = np.sqrt(weighted @ (g - self.mean) ** 2)
