"""`sensitivity`: which parameters matter, as Sobol indices and elasticities, with intervals of what is believed.

Let θ be uniform on the space and V the variance of f(θ). The first-order index of θ_i is Var E[f | θ_i] / V: the share
of the variance that would go if θ_i were known. Its total index is E Var[f | all but θ_i] / V: the share that would
stay if all the others were known. They differ by what θ_i does together with others. The elasticity is the mean over
the space of |∂f/∂log θ_i| = |θ_i ∂f/∂θ_i|: by how much f changes for a small relative change of θ_i.

Each is a number that a function f has. So it is computed for functions drawn from the posterior, all on the same
points, and its interval holds the middle of what they give. With A and B two independent designs, and AB_i the design A
with column i of B, the indices are those of Azzini and Rosati (2019), which are exactly 0 for a parameter that f does
not depend on:

    first = 2 E[(f(BA_i) - f(B)) (f(A) - f(AB_i))] / D,        total = E[(f(B) - f(BA_i))² + (f(A) - f(AB_i))²] / D,
    D = E[(f(A) - f(B))² + (f(BA_i) - f(AB_i))²] .

The designs are independent scrambled Sobol sequences. What they differ by is the error of the integrals, and the
intervals are widened by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from sateen.core.counts import data_frame
from sateen.core.display import pictured
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior, complete, training_of
from sateen.core.prediction import Claim, Posterior, drawn_uniformly
from sateen.core.registry import call_provider
from sateen.core.seeds import stream_seed
from sateen.core.sobol import sobol_cube
from sateen.core.space import Space
from sateen.core.text import finite, html_table, percent, shown
from sateen.core.threads import on_one_thread
from sateen.core.types import Axes, FloatArray
from sateen.guarantee.guarantee import Guarantee

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

Kind: TypeAlias = Literal["first", "total", "elasticity"]
KINDS: Final[tuple[Kind, ...]] = ("first", "total", "elasticity")
_DESIGNS: Final = 8  # independent designs, from whose differences the error of the integrals comes
_FEWEST: Final = 64  # points of all designs
_SLOPES: Final = 4  # of this many points of A, one has its derivatives taken
_STEP: Final = 1.0 / 256.0  # of a range, to each side, for differences
_FLAT: Final = 1e-15  # a variance of f below which f counts as constant
_INDICES: Final = ("first", "total")


def sensitivity(
    posterior: Posterior, *, seed: int, level: float = 0.95, points: int = 4096, draws: int = 64
) -> Sensitivity:
    """Which parameters matter: first-order and total Sobol indices, and elasticities, with intervals.

    `points` is the size of each of the designs A and B, and `draws` the number of functions drawn from the posterior.
    For d parameters, this takes about (2.5 d + 2) · points · draws values of f. Parameters that cannot affect the
    verdict have index 0.

    >>> import sateen as st
    >>> space = st.Space(a=(1.0, 2.0), b=(1.0, 2.0))
    >>> points = space.sobol(128, seed=1)
    >>> counts = np.round(100 * (points.theta[:, 0] - 1)**2)
    >>> posterior = st.SVIGP().fit(st.Observations.from_counts(space, points.theta, counts, 100), seed=2)
    >>> found = st.sensitivity(posterior, seed=3)
    >>> found.total["a"] > 0.95 > 0.05 > found.total["b"], found.ranked
    (True, ('a', 'b'))
    """
    if isinstance(posterior, Guarantee):
        remedy = "ask its posterior: st.sensitivity(guarantee.posterior, ...)"
        raise InputError("a guarantee has intervals at points, and no functions to draw", remedy=remedy)
    whole = complete(posterior)
    space = whole.space
    if not space.names:
        raise InputError(f"no parameter varies in {space!r}, so none matters more than another")
    level, points, draws = _level(level), _whole(points, "points", _FEWEST), _whole(draws, "draws", 2)
    if (draws + 1) * (1.0 - level) < 2.0 - 1e-9:
        needed = math.ceil(2.0 / (1.0 - level) - 1.0 - 1e-9)
        problem = f"{{draws}} are too few for intervals of {percent(level)}: {draws}, and {needed:,} are needed"
        raise InputError(problem, argument="draws", remedy=f"pass {{draws={needed}}}, or a lower level")
    values, errors = _of_draws(whole, int(seed), points, draws)
    training = training_of(whole)
    relevant = space.names if training is None else training.observations.relevant
    matter = np.isin(space.names, relevant)
    tables = {name: np.where(matter, np.clip(table, 0.0, _highest(name)), 0.0) for name, table in values.items()}
    ends = {name: _interval(tables[name], errors[name], level, highest=_highest(name)) for name in KINDS}

    def named(columns: FloatArray) -> Mapping[str, float]:
        return MappingProxyType(dict(zip(space.names, columns.tolist(), strict=True)))

    means = {name: named(tables[name].mean(axis=0)) for name in KINDS}
    return Sensitivity(
        space=space,
        first=means["first"],
        total=means["total"],
        elasticity=means["elasticity"],
        lower=MappingProxyType({name: named(ends[name][0]) for name in KINDS}),
        upper=MappingProxyType({name: named(ends[name][1]) for name in KINDS}),
        level=level,
        claim=Claim("region", "credible", level, drawn_uniformly(space), by="each number lies in its interval"),
        learner=whole.kind,
        seed=int(seed),
        points=points,
        draws=draws,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivity:
    """Which parameters matter: for each name, the mean of each index over the draws, and the ends of its interval.

    - `first`: the share of the variance of f over the space that a parameter explains alone.
    - `total`: the share that it takes part in, alone or together with others.
    - `elasticity`: the mean over the space of |θ ∂f/∂θ|, in probability per unit of log θ. In a range that includes 0
      the same formula is used: at θ = 0 a relative change changes nothing, and counts as 0.

    `lower` and `upper` have the ends of the intervals, first by "first", "total" or "elasticity", then by parameter.
    They include the error of the integrals over the space. `learner` is the kind of the posterior.
    """

    space: Space
    first: Mapping[str, float]
    total: Mapping[str, float]
    elasticity: Mapping[str, float]
    lower: Mapping[Kind, Mapping[str, float]]
    upper: Mapping[Kind, Mapping[str, float]]
    level: float
    claim: Claim
    learner: str
    seed: int
    points: int
    draws: int

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order of the space."""
        return self.space.names

    @property
    def ranked(self) -> tuple[str, ...]:
        """The parameters, the one with the largest total index first."""
        return tuple(sorted(self.names, key=lambda name: -self.total[name]))

    @property
    def first_lower(self) -> Mapping[str, float]:
        """The lower ends of the first-order indices."""
        return self.lower["first"]

    @property
    def first_upper(self) -> Mapping[str, float]:
        """The upper ends of the first-order indices."""
        return self.upper["first"]

    @property
    def total_lower(self) -> Mapping[str, float]:
        """The lower ends of the total indices."""
        return self.lower["total"]

    @property
    def total_upper(self) -> Mapping[str, float]:
        """The upper ends of the total indices."""
        return self.upper["total"]

    def frame(self) -> DataFrame:
        """A pandas DataFrame with a row for each parameter: each number, with the ends of its interval."""
        columns = ["parameter", *(f"{kind}{end}" for kind in KINDS for end in ("", "_lower", "_upper"))]
        rows = [[name, *(value for kind in KINDS for value in self._triple(kind, name))] for name in self.names]
        return data_frame(rows, columns, len(rows)).set_index("parameter")

    def plot(self, ax: object = None) -> Axes:
        """Draw both indices of each parameter as bars, with their intervals."""
        return call_provider("plot sensitivity", self, ax=ax)

    def __repr__(self) -> str:
        totals = ", ".join(f"{name} {self.total[name]:.2g}" for name in self.ranked)
        return f"<Sensitivity of {self.learner} over {self.space!r}: total {totals}>"

    def __str__(self) -> str:
        lines = [f"{name}: " + ", ".join(self._text(kind, name) for kind in KINDS) for name in self.ranked]
        return "\n".join([*lines, f"{str(self.claim)[:1].upper()}{str(self.claim)[1:]}."])

    def _repr_html_(self) -> str:
        rows = [[name, *(self._text(kind, name, bare=True) for kind in KINDS)] for name in self.ranked]
        table = html_table(str(self.claim), ("parameter", "first order", "total", "elasticity"), rows)
        return pictured(self.plot, repr(self)[1:-1], table)

    def _triple(self, kind: Kind, name: str) -> tuple[float, float, float]:
        values: Mapping[str, float] = getattr(self, kind)
        return values[name], self.lower[kind][name], self.upper[kind][name]

    def _text(self, kind: Kind, name: str, *, bare: bool = False) -> str:
        value, low, high = self._triple(kind, name)
        return f"{'' if bare else kind + ' '}{value:.3f} [{low:.3f}, {high:.3f}]"


def _level(level: object) -> float:
    number = None if isinstance(level, bool) else finite(level)
    if number is None or not 0.0 < number < 1.0:
        raise InputError(
            f"{{level}} is a share strictly between 0 and 1, such as 0.95, not {shown(level)}", argument="level"
        )
    return number


def _whole(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{{{name}}} is a whole number from {least} up, not {shown(value)}", argument=name)
    return int(value)


@on_one_thread
def _of_draws(
    posterior: FullPosterior, seed: int, points: int, draws: int
) -> tuple[dict[Kind, FloatArray], dict[Kind, FloatArray]]:
    """Of each kind a row for each draw, a column for each parameter; and the standard errors of the integrals."""
    space, size = posterior.space, points // _DESIGNS
    dimension, few = len(space), size // _SLOPES
    designs = [_design(dimension, size, stream_seed(seed, "sensitivity", "points", each)) for each in range(_DESIGNS)]
    moved = [_neighbours(design[:few]) for design in designs]
    unit = np.concatenate([*designs, *moved])
    theta = space.from_unit(2.0 * unit - 1.0)
    functions = posterior.functions(draws, seed=stream_seed(seed, "sensitivity", "draws"))
    # All points in one call: the draws of some posteriors are joint only then.
    f = functions(space.points(theta))
    first = _DESIGNS * len(designs[0])
    mixed = f[:, :first].reshape(draws, _DESIGNS, 2 * dimension + 2, size)
    if float(mixed[:, :, :2].var(axis=(1, 2, 3)).min()) < _FLAT:
        raise InputError(
            f"{posterior.kind} believes that f is constant over {space!r}, so that no parameter matters",
            remedy="widen the space, or ask for a property that is sometimes true and sometimes false",
        )
    sums = _sums(mixed)
    slopes = _slopes(
        theta[:first].reshape(_DESIGNS, 2 * dimension + 2, size, dimension)[:, 0, :few],
        theta[first:].reshape(_DESIGNS, 2, dimension, few, dimension),
        f[:, first:].reshape(draws, _DESIGNS, 2, dimension, few),
    )
    above = {"first": sums[0], "total": sums[1], "elasticity": slopes}
    below = {"first": sums[2], "total": sums[2], "elasticity": np.ones_like(slopes)}
    made = {kind: _ratios(above[kind], below[kind]) for kind in KINDS}
    return {kind: values for kind, (values, _) in made.items()}, {kind: errors for kind, (_, errors) in made.items()}


def _design(dimension: int, size: int, seed: int) -> FloatArray:
    """A, B, then AB_i for each axis, then BA_i for each axis, in [0, 1]^d."""
    both = sobol_cube(2 * dimension, size, np.random.default_rng(seed))
    a, b = both[:, :dimension], both[:, dimension:]
    parts = [a, b]
    for base, other in ((a, b), (b, a)):
        for axis in range(dimension):
            mixed = base.copy()
            mixed[:, axis] = other[:, axis]
            parts.append(mixed)
    return np.concatenate(parts)


def _neighbours(unit: FloatArray) -> FloatArray:
    """The points moved down along each axis, then up along each, but not out of the space."""
    moved = []
    for step in (-_STEP, _STEP):
        for axis in range(unit.shape[1]):
            one = unit.copy()
            one[:, axis] = np.clip(one[:, axis] + step, 0.0, 1.0)
            moved.append(one)
    return np.concatenate(moved)


def _sums(f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both numerators and the denominator, for each draw, design and axis."""
    axes = (f.shape[2] - 2) // 2
    a, b = f[:, :, 0:1], f[:, :, 1:2]
    ab, ba = f[:, :, 2 : 2 + axes], f[:, :, 2 + axes :]
    first = 2.0 * ((ba - b) * (a - ab)).mean(axis=3)
    total = ((b - ba) ** 2 + (a - ab) ** 2).mean(axis=3)
    return first, total, ((a - b) ** 2 + (ba - ab) ** 2).mean(axis=3)


def _slopes(theta: FloatArray, moved: FloatArray, f: FloatArray) -> FloatArray:
    """The mean of |θ ∂f/∂θ| for each draw, design and axis, from f at points moved down and up along each axis."""
    slopes = np.empty((len(f), *theta.shape[::2]))
    for axis in range(theta.shape[2]):
        apart = moved[:, 1, axis, :, axis] - moved[:, 0, axis, :, axis]
        steep = theta[:, :, axis] * (f[:, :, 1, axis] - f[:, :, 0, axis]) / apart
        slopes[:, :, axis] = np.abs(steep).mean(axis=2)
    return slopes


def _ratios(above: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ratios of the means over designs for each draw, and the jackknife's standard error, on average over draws."""
    count = above.shape[1]
    whole = above.sum(axis=1) / below.sum(axis=1)
    without = (above.sum(axis=1, keepdims=True) - above) / (below.sum(axis=1, keepdims=True) - below)
    variance = (count - 1) / count * ((without - without.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return whole, np.sqrt(variance.mean(axis=0))


def _interval(values: FloatArray, errors: FloatArray, level: float, *, highest: float) -> tuple[FloatArray, FloatArray]:
    """The quantiles of the draws, moved apart by the error of the integrals: independent errors add as squares do."""
    from scipy.special import ndtri

    tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
    mean = values.mean(axis=0)
    low, high = np.quantile(values, tails, axis=0, method="weibull")
    reach = float(ndtri(tails[1])) * np.where(values.any(axis=0), errors, 0.0)
    lower, upper = mean - np.hypot(mean - low, reach), mean + np.hypot(high - mean, reach)
    return np.clip(lower, 0.0, highest), np.clip(upper, 0.0, highest)


def _highest(kind: Kind) -> float:
    return 1.0 if kind in _INDICES else math.inf
