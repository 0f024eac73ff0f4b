"""A learner of one's own: a random forest on the frequencies, whose trees are draws of the function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import sateen as st


@dataclass(frozen=True)
class Forest:
    trees: int = 200
    leaf: int = 3  # points in a leaf, at least

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        decided = observations.trials - observations.undecided
        known = decided > 0
        forest = RandomForestRegressor(self.trees, min_samples_leaf=self.leaf, random_state=seed)
        frequency = observations.satisfied[known] / decided[known]
        forest.fit(observations.theta[known], frequency, sample_weight=decided[known])

        def draws(theta: np.ndarray) -> np.ndarray:
            return np.array([tree.predict(theta) for tree in forest.estimators_])

        return st.posterior_from(draws, observations, learner=self, seed=seed)
