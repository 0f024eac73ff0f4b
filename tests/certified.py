"""Beliefs, coins and a small model with a known f, for the tests of certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import sateen as st

LINE = st.Space(k=(0.0, 1.0))
PLANE = st.Space(k=(0.0, 1.0), r=(0.0, 1.0))
DECAY = st.Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 2] A == 0")
RATES = st.Space(k=(0.1, 3.0))


def decayed(k: Any) -> Any:
    """P(EMPTY) of DECAY: all of ten have decayed by the time 2."""
    return (1.0 - np.exp(-2.0 * np.asarray(k))) ** 10


@dataclass(frozen=True)
class Line:
    """Believes that f is `low` at k = 0 and `high` at k = 1, and linear between, up to `std`, whatever it is shown."""

    low: float = 0.0
    high: float = 1.0
    std: float = 0.01

    def fit(self, observations: st.Observations, *, seed: int) -> st.Posterior:
        def belief(theta: Any) -> Any:
            mean = self.low + (self.high - self.low) * theta[:, 0]
            return mean, np.full(len(theta), self.std)

        return st.posterior_from(belief, observations, learner=self, seed=seed)


def believed(learner: Any, space: st.Space = LINE, seed: int = 1) -> Any:
    """What the learner believes after one point that nobody will draw again."""
    middle = {name: [0.5 * (each.low + each.high)] for name, each in space.ranges.items()}
    seen = st.Observations.from_counts(space, middle, [1], [2])
    return st.learn(seen, learner=learner, seed=seed)


def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    """Heads with probability k."""
    return bool(rng.random() < theta["k"])


def tilted(theta: dict[str, float], rng: np.random.Generator) -> bool:
    """Heads with a probability that rises in k and falls in r."""
    return bool(rng.random() < 0.5 + 0.5 * (theta["k"] - theta["r"]))


def slow_coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    """A coin of which every tenth throw fails to come to rest."""
    if rng.random() < 0.1:
        raise RuntimeError("it stands on its edge")
    return bool(rng.random() < theta["k"])
