"""Lower and upper maps of f that hold at every θ: `bounds`, and the BoundMap that it makes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.counts import read_only
from sateen.core.display import pictured
from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.progress import USUAL, Progress, watcher, working
from sateen.core.registry import call_provider
from sateen.core.space import Space
from sateen.core.text import html_table, plural
from sateen.core.types import FloatArray
from sateen.decision.subdivision import Limits, Root, volumes
from sateen.engine.enclosure import Enclosure
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.given import check_model
from sateen.model.model import Model

_CELLS: Final = 16  # halved at once
_MOST: Final = 100_000  # bounds, where neither `cells` nor `seconds` is given
_SHOWN_ROWS: Final = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundMap:
    """A space cut into cells, with a lower and an upper bound of f in each that hold for every θ of the cell.

    `low` and `high` have the ends of the cells, one row for each cell. `width` is the requested difference between the
    bounds; `reached` says whether every cell meets it, and `reason` why the search ended.
    """

    space: Space
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    shares: FloatArray  # of the space's volume that the cells have
    width: float
    reached: bool
    reason: str

    def __post_init__(self) -> None:
        for name in ("low", "high", "lower", "upper", "shares"):
            read_only(getattr(self, name))

    def at(self, points: object) -> tuple[FloatArray, FloatArray]:
        """The bounds at points, given as a dict, an array or a data frame; where cells meet, the narrower bounds."""
        theta = self.space.points(points).theta
        lower, upper = np.zeros(len(theta)), np.ones(len(theta))
        for low, high, least, most in zip(self.low, self.high, self.lower, self.upper, strict=True):
            inside = ((low <= theta) & (theta <= high)).all(axis=1)
            lower[inside], upper[inside] = np.maximum(lower[inside], least), np.minimum(upper[inside], most)
        return lower, upper

    @property
    def widest(self) -> float:
        """The largest difference between the bounds of a cell."""
        return float((self.upper - self.lower).max())

    @property
    def mean_width(self) -> float:
        """The mean difference between the bounds, over the space."""
        return float(self.shares @ (self.upper - self.lower))

    @property
    def supremum(self) -> tuple[float, float]:
        """Two numbers between which the largest value of f lies."""
        return float(self.lower.max()), float(self.upper.max())

    @property
    def infimum(self) -> tuple[float, float]:
        """Two numbers between which the smallest value of f lies."""
        return float(self.lower.min()), float(self.upper.min())

    @property
    def claim(self) -> Claim:
        """What the bounds promise."""
        axes = ", ".join(f"{name} in {range_}" for name, range_ in self.space.ranges.items())
        return Claim("probability", "sure", 1.0, f"of the space ({axes or 'a single point'})")

    def plot(self, ax: object = None) -> object:
        """Draw both bounds over one parameter, or over two as colours."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary")
        return call_provider("plot bounds", self, ax=ax)

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        widths = f"at most {self.widest:.3g} apart, {self.mean_width:.3g} on average"
        return f"<BoundMap of {plural(len(self), 'cell')}: bounds {widths}; {self.reason}>"

    def _repr_html_(self) -> str:
        rows = []
        for row in np.argsort(self.lower - self.upper, kind="stable")[:_SHOWN_ROWS]:
            ends = [f"{a:.4g} to {b:.4g}" for a, b in zip(self.low[row], self.high[row], strict=True)]
            rows.append([*ends, f"{self.lower[row]:.6g}", f"{self.upper[row]:.6g}"])
        caption = f"{self.claim}; the {len(rows)} widest of {plural(len(self), 'cell')}"
        table = html_table(caption, (*self.space.names, "lower", "upper"), rows)
        return pictured(self.plot, repr(self)[1:-1], table) if len(self.space) in (1, 2) else table


def bounds(
    model: Model,
    formula: Formula | str,
    space: Space,
    *,
    width: float = 0.05,
    seconds: float | None = None,
    cells: int | None = None,
    max_states: int = 200_000,
    progress: Progress | None = USUAL,
) -> BoundMap:
    """Lower and upper bounds of f over a whole space, which hold at every θ: computed, not sampled.

    The space is cut into cells, those with the widest bounds first, until no cell's bounds are more than `width` apart.
    `seconds` limits the time, and `cells` the number of bounds that are computed. The bounds found by then still hold;
    they are only wider in places. The model needs a finite chain, and varying parameters may occur in rates only; an
    ExactError names what is refused. By default, at most 100,000 bounds are computed.

    >>> queue = Model.parse('''
    ...     species X = 0
    ...     arrive: 0 -> X @ lam when X < 9
    ...     serve:  X -> 0 @ mu * min(X, 1)
    ... ''')
    >>> found = bounds(queue, "F[0, 10] X == 9", Space(lam=(0.9, 1.1), mu=(1, 1.2)), width=0.02)
    >>> found.reached, found.widest <= 0.02
    (True, True)
    >>> lower, upper = found.at({"lam": 1.0, "mu": 1.0})
    >>> bool(lower[0] <= 0.072067 <= upper[0])
    True
    """
    progress = watcher(progress)
    if not 0.0 < width <= 1.0:
        raise InputError("{width} must lie in (0, 1]", argument="width", remedy="bounds of probabilities are 1 apart")
    check_model(model)
    asked = formula_of(formula)
    enclosure = Enclosure.of(model, asked, space, max_states=max_states)
    most = cells if cells is not None else (_MOST if seconds is None else None)
    root = Root.of(enclosure, None)
    low, high = root.corners
    lower, upper = enclosure.bounds(root.theta(low), root.theta(high))
    heap = [(float(lower[0] - upper[0]), 0, low[0], high[0], float(lower[0]), float(upper[0]))]
    used, limits, reason = 2, Limits.from_now(most, seconds), ""
    with working(progress, "bounds", most or 0, "bounds"):
        progress.advance(2)
        while not reason:
            reached = f"no two bounds are more than {width:g} apart" if -heap[0][0] <= width else ""
            if reason := reached or limits.over(used, float(volumes(heap[0][2][None], heap[0][3][None])[0])):
                break
            taken = [heapq.heappop(heap)]
            while heap and len(taken) < _CELLS and -heap[0][0] > width:
                taken.append(heapq.heappop(heap))
            low, high = root.halves(np.array([each[2] for each in taken]), np.array([each[3] for each in taken]))
            lower, upper = enclosure.bounds(root.theta(low), root.theta(high))
            # What holds in the whole cell holds in its halves.
            lower = np.maximum(lower, np.tile([each[4] for each in taken], 2))
            upper = np.minimum(upper, np.tile([each[5] for each in taken], 2))
            for a, b, least, best in zip(low, high, lower.tolist(), upper.tolist(), strict=True):
                used += 2
                heapq.heappush(heap, (least - best, used, a, b, least, best))
            progress.advance(2 * len(low))
            progress.note(f"the widest bounds are {-heap[0][0]:.3g} apart")
    rows = sorted(heap, key=lambda each: (*each[2].tolist(), each[1]))
    corner_low, corner_high = (np.array([row[place] for row in rows]) for place in (2, 3))
    return BoundMap(
        space=space,
        low=root.theta(corner_low),
        high=root.theta(corner_high),
        lower=np.array([row[4] for row in rows]),
        upper=np.array([row[5] for row in rows]),
        shares=volumes(corner_low, corner_high),
        width=width,
        reached=reason.startswith("no two"),
        reason=reason,
    )
