"""Learners as a user may write them; in a module of its own, which studies name and other processes import."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sateen as st


@dataclass(frozen=True)
class Pooled:
    """Believes that f is the same everywhere: as many pseudo-runs as `strength` say one half."""

    strength: float = 2.0

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        satisfied, runs = observations.satisfied.sum(), observations.trials.sum()
        mean = float((satisfied + self.strength / 2) / (runs + self.strength))
        std = float(np.sqrt(mean * (1 - mean) / (runs + self.strength + 1)))
        function = lambda theta: (np.full(len(theta), mean), np.full(len(theta), std))  # noqa: E731
        return st.posterior_from(function, observations, learner=self, seed=seed)


class Failing:
    """Fits nothing."""

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        raise st.InputError("this learner always fails")


class Hungry:
    """Asks for 64 GB."""

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        raise st.InputError(f"{len(np.empty(2**33))} numbers are there")
