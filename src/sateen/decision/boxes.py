"""The largest box inside a region: an interval for each parameter, as one writes it into a specification.

It is sought among the points of a pool, of which a function says whether each is decided. A box is free if no point
that is not decided lies in it. From a decided point a box grows face by face, each up to the next point that blocks it.
The best of many boxes are improved: one face steps back, and the others grow into the room that this leaves.

Between the points of a pool nothing was looked at. So the box is looked at closely, in fresh points and at its corners;
what is not decided there joins the pool, and the box is cut and improved again. Then faces are pushed out, one after
the other, as long as close looks find nothing. At last they are pulled in by the spacing of what was looked at, and the
box is cut, and no longer enlarged, until fresh points find nothing in it.

All of this is done in unit coordinates: [0, 1] along each axis, on the scale of its range. Volumes are then shares of
the space.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.seeds import stream, stream_seed
from sateen.core.sobol import sobol_cube
from sateen.core.space import Range, Space
from sateen.core.types import FloatArray

_POOL: Final = 16_384  # points in which a box is sought
_STARTS: Final = 128  # boxes that are grown
_IMPROVED: Final = 4  # of them, the largest, that are improved
_SWEEPS: Final = 4  # through all faces of a box that is improved, at most
_STEPS: Final = (0.25, 0.5, 1.0)  # of the way that a face may go: at first none takes all
_BACK: Final = (0.2, 0.05, 0.01)  # of a width, by which a face steps back for the others
_CLOSER: Final = 6  # times that the best box is looked at closely and improved again
_FRESH: Final = 4_096  # points at each close look
_PUSHES: Final = (0.05, 0.01)  # of a width, by which faces are pushed out
_MOST_PUSHES: Final = 10  # of one face, at one step
_MOST_CORNERS: Final = 10  # dimensions in which every corner is looked at
_ROUNDS: Final = 200  # of cutting, at most
_CLEAN: Final = 4  # close looks that must find nothing
_CUT: Final = 0.005  # of a width, the least that a cut takes
_NEARLY: Final = 1.0 - 1e-9  # a face stops before the point that blocks it
_LEAST: Final = 1e-6  # of a range: a box must be wider than this along each axis
_MORE: Final = "st.refine observes more where it is undecided; a lower level decides more, and promises less"

Bools: TypeAlias = npt.NDArray[np.bool_]
Decided: TypeAlias = Callable[[FloatArray], Bools]
Box: TypeAlias = tuple[FloatArray, FloatArray]


def largest_box(decided: Decided, space: Space, what: str, *, seed: int) -> Space:
    """The largest box found in a region of the space, as a space of its own with the same scales and fixed values.

    `decided` says for rows of θ whether each is in the region, which `what` names in an error.

    >>> triangle = lambda theta: theta[:, 0] + theta[:, 1] < 1
    >>> box = largest_box(triangle, Space(a=(0, 1), b=(0, 1)), "below 1", seed=1)
    >>> a, b = box.ranges.values()
    >>> 0.24 < (a.high - a.low) * (b.high - b.low) <= 0.25
    True
    """

    def free(unit: FloatArray) -> Bools:
        return np.asarray(decided(space.from_unit(2.0 * unit - 1.0)), dtype=np.bool_)

    if not space.names:
        if not decided(space.points({}).theta).all():
            raise InputError(f"there is no box: the only point is not {what}", remedy=_MORE)
        return space
    pool = sobol_cube(len(space), _POOL, np.random.default_rng(stream_seed(seed, "box", "pool")))
    good = free(pool)
    if not good.any():
        raise InputError(f"there is no box: none of {len(pool):,} points is {what}", remedy=_MORE)
    rng = stream(seed, "box", "search")
    box = _verified(_searched(pool, good, free, rng), free, rng)
    if _wide(box):
        box = _verified(_pulled_in(_pushed_out(box, free, rng)), free, rng)
    if not _wide(box):
        raise InputError(f"what is {what} is too thin for a box", remedy=_MORE)
    return _in_space(space, *box)


def _searched(pool: FloatArray, good: Bools, free: Decided, rng: np.random.Generator) -> Box:
    """The largest box that is found in the pool, and improved by closer looks."""
    bad = pool[~good]
    middles = pool[good][rng.integers(int(good.sum()), size=_STARTS)]
    grown = [_grown((middle, middle), bad, rng) for middle in middles]
    best = sorted(grown, key=_volume)[-_IMPROVED:]
    box = max((_improved(each, bad, rng) for each in best), key=_volume)
    for _ in range(_CLOSER):
        looked = _looks(box, rng)
        if not len(found := looked[~free(looked)]):
            break
        bad = np.concatenate([bad, found])
        box = _improved(_cut(box, found, rng), bad, rng)
    return box


def _verified(box: Box, free: Decided, rng: np.random.Generator) -> Box:
    """The box, cut until several close looks in a row find only decided points in it; empty if that never happens."""
    clean = 0
    for number in range(_ROUNDS):
        looked = _looks(box, rng)
        found = looked[~free(looked)]
        clean = 0 if len(found) else clean + 1
        if clean == _CLEAN:
            return box
        box = _cut(box, found, rng)
        if number >= _ROUNDS // 2 and len(found):  # it does not settle: give up width everywhere
            width = box[1] - box[0]
            box = box[0] + 0.05 * width, box[1] - 0.05 * width
        if not _wide(box):
            break
    return box[0], box[0]


def _pushed_out(box: Box, free: Decided, rng: np.random.Generator) -> Box:
    """The box with each face moved out, step by step, as long as nothing is found in what it gains."""
    for step in _PUSHES:
        for face in rng.permutation(2 * len(box[0])):
            for _ in range(_MOST_PUSHES):
                gain, wider = _gained(box, int(face), step)
                if not (gain[1] > gain[0]).all() or not free(_looks(gain, rng, _FRESH // 4)).all():
                    break
                box = wider
    return box


def _gained(box: Box, face: int, step: float) -> tuple[Box, Box]:
    """What a box gains when a face moves out by a share of its width, but not out of the space; and the wider box."""
    low, high = box[0].copy(), box[1].copy()
    axis = face % len(low)
    if face < len(low):
        low[axis] = max(low[axis] - step * (high[axis] - low[axis]), 0.0)
        return (low, np.where(np.arange(len(low)) == axis, box[0], high)), (low, high)
    high[axis] = min(high[axis] + step * (high[axis] - low[axis]), 1.0)
    return (np.where(np.arange(len(low)) == axis, box[1], low), high), (low, high)


def _grown(box: Box, bad: FloatArray, rng: np.random.Generator, steps: tuple[float, ...] = _STEPS) -> Box:
    """A free box with every face moved out, in random order, up to the next point that blocks it."""
    low, high = box[0].copy(), box[1].copy()
    outside = (bad < low) | (bad > high)
    axes_out = outside.sum(axis=1)
    for step in steps:
        for face in rng.permutation(2 * len(low)):
            axis, up = face % len(low), face >= len(low)
            beside = bad[axes_out == outside[:, axis], axis]  # inside along every other axis
            if up:
                limit = beside[beside > high[axis]].min(initial=np.inf)
                high[axis] = _moved(high[axis], limit, 1.0, step)
            else:
                limit = beside[beside < low[axis]].max(initial=-np.inf)
                low[axis] = _moved(low[axis], limit, 0.0, step)
            now = (bad[:, axis] < low[axis]) | (bad[:, axis] > high[axis])
            axes_out += now.astype(np.int64) - outside[:, axis]
            outside[:, axis] = now
    return low, high


def _moved(face: float, limit: float, end: float, step: float) -> float:
    """Where a face goes that moves a part of the way: to the end of the axis, or just before what blocks it."""
    blocked = bool(np.isfinite(limit))
    goal = limit if blocked else end
    return end if step == 1.0 and not blocked else face + step * (goal - face) * _NEARLY


def _improved(box: Box, bad: FloatArray, rng: np.random.Generator) -> Box:
    """A free box that is at least as large: one face steps back, the others grow, as long as the volume rises."""
    best = _grown(box, bad, rng, steps=(1.0,))
    for _ in range(_SWEEPS):
        before = _volume(best)
        for face, back in product(rng.permutation(2 * len(best[0])).tolist(), _BACK):
            axis, up = face % len(best[0]), face >= len(best[0])
            low, high = best[0].copy(), best[1].copy()
            (high if up else low)[axis] += (-back if up else back) * (high[axis] - low[axis])
            tried = _grown((low, high), bad, rng, steps=(1.0,))
            best = max(best, tried, key=_volume)
        if _volume(best) <= before * (1.0 + 1e-4):
            break
    return best


def _cut(box: Box, found: FloatArray, rng: np.random.Generator) -> Box:
    """The box without the points found in it: the hardest one first, each by the face where that costs least."""
    low, high = box[0].copy(), box[1].copy()
    while len(found := found[((found >= low) & (found <= high)).all(axis=1)]):
        width = high - low
        depths = np.concatenate([(found - low) / width, (high - found) / width], axis=1)
        depths += _CUT * (1.0 + 1e-3 * rng.random(depths.shape[1]))  # of several equal ones, any
        point = int(depths.min(axis=1).argmax())
        face = int(depths[point].argmin())
        axis, taken = face % len(low), min(float(depths[point, face]), 1.0) * width[face % len(low)]
        if face < len(low):
            low[axis] = min(low[axis] + taken, high[axis])
        else:
            high[axis] = max(high[axis] - taken, low[axis])
        if not (high > low).all():
            break
    return low, high


def _pulled_in(box: Box) -> Box:
    """The box with its faces pulled in by the spacing of the points looked at in it; the ends of the space stay."""
    low, high = box
    step = _CUT * (high - low)
    return np.where(low > 0.0, low + step, low), np.where(high < 1.0, high - step, high)


def _looks(box: Box, rng: np.random.Generator, points: int = _FRESH) -> FloatArray:
    """Fresh points of the box, and its corners, unless they are too many."""
    low, high = box
    unit = sobol_cube(len(low), points, np.random.default_rng(int(rng.integers(2**32))))
    if len(low) <= _MOST_CORNERS:
        unit = np.concatenate([unit, np.array(list(product((0.0, 1.0), repeat=len(low))))])
    return low + unit * (high - low)


def _wide(box: Box) -> bool:
    """Whether it is a box at all, and not a point or a sheet."""
    return bool((box[1] - box[0] > _LEAST).all())


def _volume(box: Box) -> float:
    return float(np.prod(box[1] - box[0]))


def _in_space(space: Space, low: FloatArray, high: FloatArray) -> Space:
    """The space whose ranges are those of a box in unit coordinates."""
    ends = space.from_unit(2.0 * np.array([low, high]) - 1.0)
    ranges = {
        name: Range(float(ends[0, axis]), float(ends[1, axis]), range_.scale)
        for axis, (name, range_) in enumerate(space.ranges.items())
    }
    return Space({name: ranges.get(name, value) for name, value in space.parameters})
