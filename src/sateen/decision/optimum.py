"""Where f is largest: the search that the goal Optimum makes.

The latent g = Φ⁻¹(f) has a mean μ and a standard deviation s. A round looks at a pool of designs that may be the best:
those with the largest μ + 2.5s among fresh candidates and around the design that is recommended. Joint draws of g on
the pool tell how probable it is that each design x' is the best, P(x'), and what the recommended design x* is expected
to fall short of the best of the pool by: the expected regret, the figure of the goal. More runs go where they tell x'
from x*. With V the value of a design, a chunk of runs at i with the noise v_i lowers the variance of V(x') - V(x*) by

    Cov(V(x') - V(x*), g_i)² / (C_ii + v_i),    weighted by P(x') and summed over x'.

A design with tolerances has the mean of f over its box for a value, or the least f in it, at fixed offsets.

Constraints are about further properties, with posteriors of their own. In each draw, the best is sought among designs
that satisfy them in that draw. The recommended design satisfies each with a probability of 99 %. As long as there is no
such design, the figure is 1 or more, which no regret is, and most runs go where it is not known what is feasible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky
from scipy.special import ndtr

from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream, stream_seed
from sateen.core.space import Points, Space
from sateen.core.text import percent
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray, IntArray
from sateen.decision.goals import Optimum
from sateen.decision.picks import Costs, Gain, candidates, greedy
from sateen.decision.tolerance import Tolerance

Sense: TypeAlias = Literal["<=", ">="]
Limit: TypeAlias = tuple[Sense, float]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
SURE: Final = 0.99  # the probability with which a recommended design satisfies each constraint
_SURE_Z: Final = 2.3263478740408408  # Φ⁻¹(SURE)
_HOPE_Z: Final = 2.5  # deviations above the mean up to which a design may be the best
_PICKS: Final = 48  # of a round
_POOL: Final = 500
_BOX_POOL: Final = 48  # designs, where each is a box of points
_BOX_CANDIDATES: Final = 2048
_LOCAL: Final = 0.2  # of the pool, around the recommended design
_DRAWS: Final = 400
_STEPS: Final = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)  # of a local search, where a range has the length 2
_CLOUD: Final = 128  # designs in a step
_FLOOR: Final = 1e-3  # of the weight is spread evenly: a round needs somewhere to go when all is known
_INFEASIBLE_SHARE: Final = 0.75  # of a round is for the constraints while no design satisfies them


@dataclass(frozen=True, slots=True, eq=False)
class OptimumStrategy:
    """Decides for the goal Optimum, of the property `objective`, subject to constraints on others by name."""

    goal: Optimum
    space: Space
    costs: Costs | None = None
    objective: str = ""
    constraints: Mapping[str, Limit] = field(default_factory=dict)
    tolerance: Tolerance = field(init=False)

    def __post_init__(self) -> None:
        tolerance = Tolerance.of(self.space, self.goal.within, self.goal.worst)
        object.__setattr__(self, "tolerance", tolerance)

    @property
    def aim(self) -> float:
        """The expected regret at which the goal is reached."""
        return self.goal.aim

    def words(self, figure: float) -> str:
        """The figure in words."""
        if figure < 1.0:
            return self.goal.words(figure)
        known = f"{percent(round(2.0 - figure, 3))} at most so far"
        return f"no parameter satisfies the constraints with probability {percent(SURE)} yet ({known})"

    def identity(self) -> object:
        """What its decisions depend on."""
        goal = self.goal
        within = None if goal.within is None else dict(goal.within)
        limits = {name: list(limit) for name, limit in self.constraints.items()}
        asked = [goal.regret, goal.minimise, within, goal.worst]
        return ["Optimum", *asked, self.objective, limits, self.costs is not None]

    def figure(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> float:
        """The expected regret of the recommended design; from 1 to 2 while none is known to be feasible."""
        pool = self._pool(posteriors, seed)
        if not pool.secure:
            return 2.0 - pool.feasible
        return self._beliefs(posteriors, pool, seed).regret

    def best(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> tuple[FloatArray, float]:
        """The recommended θ, and the posterior mean there: of f, or of its mean or least value in the box.

        It has the largest posterior median of f among candidates, which a local search improves between them. With the
        seed of a figure, it is the design whose regret the figure gives.
        """
        design = self.design(posteriors, seed=seed)[None]
        around = Points(self.tolerance.around(design), self.space)
        mean = posteriors[self.objective].predict(around).mean
        value = -self.tolerance.worth(-mean) if self.goal.minimise else self.tolerance.worth(mean)
        return self.space.from_unit(design)[0], float(value)

    def design(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> FloatArray:
        """The recommended design where every range is [-1, 1]."""
        return np.asarray(self._pool(posteriors, seed).unit[0])

    @on_one_thread
    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> tuple[FloatArray, IntArray]:
        """The points and runs of the next round: those of the objective, and those of each constraint."""
        pool = self._pool(posteriors, stream_seed(seed, "pool"))
        beliefs = self._beliefs(posteriors, pool, seed)
        price = np.ones(len(pool.theta)) if self.costs is None else self.costs(pool.theta)
        runs = np.zeros(len(pool.theta), np.int64)
        shares = self._shares(pool, beliefs)
        for name, share in shares.items():
            part = round(share * budget)
            if part < 1:
                continue
            belief = beliefs.by_property[name]
            if name == self.objective:
                gain = _gain(belief.slopes, beliefs.weight, base=0)
            else:
                gain = _gain(belief.slopes, (beliefs.weight + _FLOOR) * belief.unsure, base=None)
            runs += greedy(belief.covariance, belief.mean, gain, part, price, _PICKS)
        spare = int(runs.sum()) - budget
        if spare > 0:  # of rounding
            runs[int(np.argmax(runs))] -= spare
        kept = runs > 0
        return pool.theta[kept], runs[kept]

    def _shares(self, pool: _Pool, beliefs: _Beliefs) -> dict[str, float]:
        """Which part of a round is for which property: a constraint's is large where it is not known and matters."""
        if not self.constraints:
            return {self.objective: 1.0}
        weight = beliefs.weight / max(float(beliefs.weight.sum()), 1e-300)
        active = {name: float(weight @ beliefs.by_property[name].unsure) for name in self.constraints}
        total = sum(active.values())
        if pool.secure:
            return {
                self.objective: 1.0 / (1.0 + total),
                **{name: each / (1.0 + total) for name, each in active.items()},
            }
        even = 1e-3
        total += even * len(active)
        parts = {name: _INFEASIBLE_SHARE * (each + even) / total for name, each in active.items()}
        return {self.objective: 1.0 - _INFEASIBLE_SHARE, **parts}

    # The pool of designs

    @on_one_thread
    def _pool(self, posteriors: Mapping[str, FullPosterior], seed: int) -> _Pool:
        """The recommended design first, then designs that may be the best."""
        tolerance = self.tolerance
        fresh = candidates(self.space, stream_seed(seed, "candidates"))
        theta = fresh.theta if tolerance.exact else fresh.theta[:_BOX_CANDIDATES]
        unit = tolerance.designs(self.space.to_unit(theta))
        screen = self._screen(posteriors, unit)
        size = _POOL if tolerance.exact else _BOX_POOL
        best, near = self._climbed(posteriors, screen, stream(seed, "climb"))
        many = screen.top(size - 1 if not len(self.space) else size - 1 - int(_LOCAL * size))
        few = near.top(int(_LOCAL * size))
        rows = np.concatenate([best.unit, screen.unit[many], near.unit[few]])
        if not len(self.space):
            rows = rows[:1]
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
        return _Pool(rows, tolerance.around(rows), bool(best.secure[0]), float(best.feasible[0]))

    def _climbed(
        self, posteriors: Mapping[str, FullPosterior], screen: _Screen, rng: np.random.Generator
    ) -> tuple[_Screen, _Screen]:
        """The best design that a local search finds from the best candidate, and all that it looked at."""
        best = screen.rows(np.array([screen.best]))
        seen = [best]
        for step in _STEPS if len(self.space) else ():
            moved = best.unit + step * rng.standard_normal((_CLOUD, len(self.space)))
            cloud = self._screen(posteriors, self.tolerance.inside(moved))
            seen.append(cloud)
            both = _Screen.joined([best, cloud])
            best = both.rows(np.array([both.best]))
        return best, _Screen.joined(seen)

    def _screen(self, posteriors: Mapping[str, FullPosterior], unit: FloatArray) -> _Screen:
        """What is known of each design by itself."""
        theta = Points(self.tolerance.around(unit), self.space)
        shape = len(unit), len(self.tolerance.offsets)
        sign = -1.0 if self.goal.minimise else 1.0
        mean, std = (each.reshape(shape) for each in posteriors[self.objective].latent_moments(theta))
        middle = self.tolerance.worth(ndtr(sign * mean))
        hope = self.tolerance.worth(ndtr(sign * mean + _HOPE_Z * std))
        feasible, secure, plausible = np.ones(len(unit)), np.ones(len(unit), bool), np.ones(len(unit), bool)
        for name, (sense, limit) in self.constraints.items():
            mean, std = (each.reshape(shape) for each in posteriors[name].latent_moments(theta))
            toward, bar = (-mean, 1.0 - limit) if sense == "<=" else (mean, limit)  # the mirrored property is >= bar
            # Deviations between the constraint and the mean: how sure it is, if the whole box errs to one side.
            low, high = (self.tolerance.worth(ndtr(toward + z * std)) for z in (-_SURE_Z, _HOPE_Z))
            secure &= low >= bar
            plausible &= high >= bar
            feasible = np.minimum(feasible, self._chance(toward, std, bar))
        return _Screen(unit, middle, hope, feasible, secure, plausible)

    def _chance(self, mean: FloatArray, std: FloatArray, bar: float) -> FloatArray:
        """The probability that a constraint is satisfied, if g errs to one side in a whole box."""
        low, high = np.full(len(mean), -8.0), np.full(len(mean), 8.0)
        for _ in range(30):  # bisection for the shift z at which the worth of Φ(μ + zs) is the bar
            middle = 0.5 * (low + high)
            enough = self.tolerance.worth(ndtr(mean + middle[:, None] * std)) >= bar
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(ndtr(-0.5 * (low + high)))

    # What is believed of a pool

    def _beliefs(self, posteriors: Mapping[str, FullPosterior], pool: _Pool, seed: int) -> _Beliefs:
        """Joint draws of every property on the pool, and what follows for the best design."""
        sign = -1.0 if self.goal.minimise else 1.0
        belief = self._belief(posteriors[self.objective], pool, sign, 0.0, stream_seed(seed, "objective"))
        by_property = {self.objective: belief}
        allowed = np.ones(belief.worth.shape, bool)
        for name, (sense, limit) in self.constraints.items():
            sign, bar = (-1.0, 1.0 - limit) if sense == "<=" else (1.0, limit)
            by_property[name] = each = self._belief(posteriors[name], pool, sign, bar, stream_seed(seed, "limit", name))
            allowed &= each.worth >= bar
        worth = np.where(allowed, belief.worth, -1.0)
        top = worth.argmax(axis=1)
        found = allowed.any(axis=1)
        missed = np.where(found, worth.max(axis=1) - belief.worth[:, 0], 0.0)
        weight = np.bincount(top[found], minlength=worth.shape[1]) / _DRAWS
        return _Beliefs(by_property, weight, float(np.mean(np.maximum(missed, 0.0))))

    @on_one_thread
    def _belief(self, posterior: FullPosterior, pool: _Pool, sign: float, bar: float, seed: int) -> _Belief:
        """Draws of one property on the pool, mirrored where less is better."""
        points = Points(pool.theta, self.space)
        mean, _ = posterior.latent_moments(points)
        covariance = posterior.latent_covariance(points, seed=stream_seed(seed, "covariance"))
        shape = len(pool.unit), len(self.tolerance.offsets)
        normal = stream(seed, "draws").standard_normal((_DRAWS, len(mean)))
        values = ndtr(sign * (mean + normal @ root(covariance).T)).reshape(_DRAWS, *shape)
        worth = self.tolerance.worth(values)
        steep = np.exp(-0.5 * mean**2).reshape(shape)  # dΦ(g)/dg, but for a factor
        if self.tolerance.worst:
            where = np.arange(shape[1]) == values.argmin(axis=2)[..., None]
            share = where.mean(axis=0)
        else:
            share = np.full(shape, 1.0 / shape[1])
        chance = (worth >= bar).mean(axis=0)
        return _Belief(mean, covariance, worth, share * steep, 4.0 * chance * (1.0 - chance))


@dataclass(frozen=True, slots=True, eq=False)
class _Screen:
    """Designs, and what is known of each by itself: the value in the middle and at best; whether it is feasible."""

    unit: FloatArray
    middle: FloatArray
    hope: FloatArray
    feasible: FloatArray
    secure: BoolArray
    plausible: BoolArray

    @property
    def best(self) -> int:
        """The design to recommend: the best that is feasible for sure, else the one that is most probably."""
        if self.secure.any():
            return int(np.argmax(np.where(self.secure, self.middle, -1.0)))
        return int(np.argmax(self.feasible))

    def top(self, count: int) -> IntArray:
        """The designs that may be best; the most probably feasible ones where too few are plausibly feasible."""
        order = np.lexsort((-np.where(self.plausible, self.hope, self.feasible), ~self.plausible))
        return np.asarray(order[: max(count, 0)])

    def rows(self, index: IntArray) -> _Screen:
        """Some of the designs."""
        return _Screen(*(getattr(self, name)[index] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[_Screen]) -> _Screen:
        """The designs of all parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Designs that may be the best, the recommended one first; `theta` has the points of all their boxes."""

    unit: FloatArray
    theta: FloatArray
    secure: bool
    feasible: float


@dataclass(frozen=True, slots=True, eq=False)
class _Belief:
    """What is believed of a property on the pool: moments of g at the points, draws of the worth of the designs.

    `slopes` say how the worth of a design changes with g at each of its points. `unsure` is 4p(1-p), with p the chance
    that a constraint is satisfied at the design.
    """

    mean: FloatArray
    covariance: FloatArray
    worth: FloatArray
    slopes: FloatArray
    unsure: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Beliefs:
    """What is believed of the pool: of each property, how probably each design is best, and the expected regret."""

    by_property: Mapping[str, _Belief]
    weight: FloatArray
    regret: float


def root(covariance: FloatArray) -> FloatArray:
    """A lower triangular root of a covariance, which rounding or few draws may have left short of full rank."""
    scale = max(float(np.max(np.diag(covariance), initial=0.0)), 1e-300)
    jitter = 1e-9
    while True:
        try:
            return np.asarray(cholesky(covariance + jitter * scale * np.eye(len(covariance)), lower=True))
        except LinAlgError:
            jitter *= 10.0
            if jitter > 1.0:
                raise


def _gain(slopes: FloatArray, weight: FloatArray, base: int | None) -> Gain:
    """How much a chunk at each point lowers the weighted variance of the worth, or of its difference to the base."""
    count = slopes.shape[1]
    even = weight + _FLOOR / len(weight)
    kept = np.flatnonzero(even > 0.0)

    def moved(covariance: FloatArray, rows: IntArray) -> FloatArray:
        """The covariance of the worth of designs with g at all points."""
        blocks = covariance.reshape(len(slopes), count, -1)[rows]
        return np.asarray(np.einsum("dk,dkn->dn", slopes[rows], blocks))

    def gain(covariance: FloatArray, variances: FloatArray, noise: FloatArray) -> FloatArray:
        change = moved(covariance, kept)
        if base is not None:
            change = change - moved(covariance, np.array([base]))
        return np.asarray(even[kept] @ (change * change)) / (variances + noise)

    return gain
