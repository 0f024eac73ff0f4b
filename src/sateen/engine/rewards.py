"""Expected rewards of a finite model, computed rather than sampled.

Up to a time, by uniformization: with cₖ the expected rate of earning after k jumps of the uniformized chain, of which
there are N up to time t, the reward at t is Σ P(N = k) cₖ, and what is accumulated is Σ P(N > k) cₖ / Λ. Until a
condition holds, by a linear system, once the graph has shown that it holds with probability 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from sateen.core.errors import ExactError, MissingValueError, SimulationError, nearest
from sateen.core.progress import Progress, working
from sateen.core.text import number_text
from sateen.core.types import FloatArray, IntArray
from sateen.engine.chain import Chain, Environment, explore, reachable, shown
from sateen.engine.events import BoolArray, columns
from sateen.engine.motion import MOST_STEPS, Limit, poisson_weights
from sateen.engine.thinning import is_timed
from sateen.language.expression import Expression
from sateen.logic.rewards import Reward
from sateen.model.model import Model

_ERROR: Final = 1e-13  # of the Poisson weights
_STEADY: Final = 1e-12  # a distribution that all steps left change by less is taken as it is
_INTERVAL: Final = 16  # steps between looks at that
_MARGIN: Final = 1.02  # of Λ over the fastest state, so that every state may stay and steps converge where they can


def check_reward(model: Model, reward: Reward) -> None:
    """Raise if a reward reads a name that the model has not."""
    for name in reward.names:
        if name not in model.names:
            hint = nearest(name, model.names) or f"it has {', '.join(model.names)}"
            raise MissingValueError(f"{name} is neither a species nor a parameter of this model\n  {hint}")


def refuse_timed(model: Model) -> None:
    """Refuse rates that read the clock: the state alone does not say how the chain goes on."""
    for transition in model.transitions if model.timed else ():
        if is_timed(transition):
            guard = "" if transition.guard is None else f" when {transition.guard}"
            raise ExactError(
                f"the rate of {transition.name} depends on time, and exact takes rates that only the state decides: "
                f"{transition.rate}{guard}",
                remedy="simulate instead: runs follow such rates exactly",
            )


def earning(rate: Expression, environment: Environment, size: int) -> FloatArray:
    """The rates of earning in all states of an environment."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(rate.value(environment), dtype=np.float64), size)


def holding(condition: Expression, environment: Environment, size: int) -> BoolArray:
    """In which states of an environment a condition holds."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(condition.value(environment), dtype=np.bool_), size)


def wrong_rate(reward: Reward, earned: float, place: str) -> SimulationError:
    """What to say of a rate of earning that is negative, infinite or undefined."""
    return SimulationError(
        f"the reward is {number_text(earned)} {place}\n  rewards are finite and never negative: guard it with a "
        "condition"
    )


def exact_rewards(
    model: Model, reward: Reward, cases: Sequence[Mapping[str, float]], max_states: int, progress: Progress
) -> FloatArray:
    """The expected reward under each of the values of parameters and constants; infinite where it is."""
    check_reward(model, reward)
    refuse_timed(model)
    if model.events:
        raise ExactError("exact takes no rewards of a model with events\n  simulate instead: runs follow every event")
    found = np.empty(len(cases))
    with working(progress, "exact", len(cases), "points"):
        for index, values in enumerate(cases):
            found[index] = _expected(model, reward, values, max_states)
            progress.advance(1)
    return found


def _expected(model: Model, reward: Reward, values: Mapping[str, float], max_states: int) -> float:
    def reached(environment: Environment, size: int) -> BoolArray:
        return holding(reward.reached, {**values, **environment}, size)

    start = np.array([list(model.initial(values).values())])
    chain, _ = explore(start, model, values, reached, max_states)
    environment = {**values, **columns(model, chain.states)}
    ends = reached(environment, len(chain))
    earned = np.where(ends, 0.0, earning(reward.rate, environment, len(chain)))
    fine = np.isfinite(earned) & (earned >= 0.0)
    if not fine.all():
        worst = int(np.argmin(fine))
        raise wrong_rate(reward, earned[worst], f"where {shown(model, chain.states[worst], values)}")
    rates = chain.rates(values)
    assert rates is not None
    if reward.time < math.inf:
        return _up_to(chain, rates, earned, reward)
    if reward.over == "C":  # what ends it is that nothing is earned any more, whatever happens
        ends = ~_leading(chain, earned > 0.0)
    return _until(chain, rates, earned, ends)


def _up_to(chain: Chain, rates: FloatArray, earned: FloatArray, reward: Reward) -> float:
    """The reward at a time, or accumulated up to it; off by some 1e-12 of the largest rate (times the time) at most."""
    size, time = len(chain), reward.time
    leaving = np.bincount(chain.sources, rates, minlength=size)
    fastest = _MARGIN * float(leaving.max(initial=0.0))
    mean = fastest * time
    if mean == 0.0:
        return float(earned[0]) * (time if reward.over == "C" else 1.0)
    if not mean <= MOST_STEPS:
        raise ExactError(
            f"up to time {time:g} the chain takes about {mean:.3g} steps, and {MOST_STEPS:,} is the most\n"
            "  ask for an earlier time, or simulate"
        )
    first, weights = poisson_weights(mean, _ERROR * min(mean, 1.0))
    expected = _by_step(chain, rates / fastest, 1.0 - leaving / fastest, earned, first + len(weights))
    if reward.over == "I":
        return float(weights @ expected[first:])
    more = np.concatenate([np.ones(first), np.cumsum(weights[::-1])[::-1][1:], [0.0]])  # P(N > k)
    return time * float(more @ expected) / float(more.sum())


def _by_step(chain: Chain, moves: FloatArray, stays: FloatArray, earned: FloatArray, steps: int) -> FloatArray:
    """The expected rate of earning after 0, 1, ... jumps of the uniformized chain."""
    size, stay = len(chain), np.arange(len(chain))
    places = np.concatenate([chain.targets, stay]), np.concatenate([chain.sources, stay])
    step = csr_array((np.concatenate([moves, stays]), places), shape=(size, size))
    now = np.zeros(size)
    now[0] = 1.0
    expected = np.empty(steps)
    for index in range(steps):
        expected[index] = earned @ now
        following: FloatArray = step @ now
        # A step never changes a distribution by more than the step before.
        if index % _INTERVAL == 0 and float(np.abs(following - now).sum()) * (steps - index) <= _STEADY:
            expected[index + 1 :] = earned @ following
            break
        now = following
    return expected


def _until(chain: Chain, rates: FloatArray, earned: FloatArray, ends: BoolArray) -> float:
    """What is accumulated until one of the states that end it; infinite unless that happens with probability 1."""
    if ends[0]:
        return 0.0
    if not _leading(chain, ends).all():  # every state here is reached before any end
        return math.inf
    before = np.flatnonzero(~ends)
    edges = np.flatnonzero(~ends[chain.sources])  # sorted by source
    places = np.searchsorted(before, chain.sources[edges])
    limit = Limit(np.zeros(len(chain)), before, places, chain.targets[edges], edges)
    return float(limit.values(rates, earned)[0])


def _leading(chain: Chain, states: BoolArray) -> BoolArray:
    """Which states lead to some states, or are among them."""
    leads = np.zeros(len(chain), dtype=np.bool_)
    found: IntArray = reachable(len(chain), chain.targets, chain.sources, np.flatnonzero(states))
    leads[found] = True
    return leads
