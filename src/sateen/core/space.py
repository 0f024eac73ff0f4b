"""The parameters of a model: a Range of values for each, a Space of ranges, and Points in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from keyword import iskeyword
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from sateen.core.counts import data_frame, is_frame, read_only
from sateen.core.errors import SpaceError, nearest
from sateen.core.sobol import latin_cube, sobol_cube
from sateen.core.text import html_table, number_text
from sateen.core.types import FloatArray, Rows

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

Scale: TypeAlias = Literal["linear", "log"]
Seed: TypeAlias = "int | np.random.SeedSequence"
_SHOWN_ROWS: Final = 8  # of the table of points in a notebook


@dataclass(frozen=True, slots=True, repr=False)
class Range:
    """The closed interval [low, high] of one parameter, and the scale on which its values are spread evenly.

    `scale="log"` means that designs are even, and a uniform sample uniform, in the logarithm.
    """

    low: float
    high: float
    scale: Scale = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _number(self.low, "low must be a finite number"))
        object.__setattr__(self, "high", _number(self.high, "high must be a finite number"))
        if not self.low < self.high:
            remedy = "swap them" if self.low > self.high else "a single number fixes a parameter"
            raise SpaceError(f"a range needs low < high, not {self}; {remedy}")
        if self.scale not in ("linear", "log"):
            raise SpaceError(f"scale is 'linear' or 'log', not {self.scale!r}")
        if self.scale == "log" and self.low <= 0:
            raise SpaceError(f"scale='log' needs low > 0, not {self}; raise low or use scale='linear'")
        width = math.log(self.high) - math.log(self.low) if self.scale == "log" else self.high - self.low
        if not 0 < width < math.inf:
            raise SpaceError(f"{self} is too {'wide' if width else 'narrow'} for a {self.scale} scale; move an end")

    def to_unit(self, values: npt.ArrayLike) -> FloatArray:
        """`values` on the scale of the range, with `low` at -1 and `high` at 1; others are outside [-1, 1]."""
        x, low, high = _floats(values, "values"), self.low, self.high
        ends = x == low, x == high  # logarithms may miss them by a rounding error
        if self.scale == "log":
            if (x <= 0).any():
                raise SpaceError(f"{number_text(x[x <= 0][0])} has no logarithm; use scale='linear' or positive values")
            x, low, high = np.log(x), math.log(low), math.log(high)
        return np.asarray(np.select(ends, (-1.0, 1.0), ((x - low) - (high - x)) / (high - low)))

    def from_unit(self, unit: npt.ArrayLike) -> FloatArray:
        """The inverse of `to_unit`; values outside [-1, 1] give the nearest end."""
        u = np.clip(_floats(unit, "unit"), -1.0, 1.0)
        if self.scale == "log":
            x = np.exp(math.log(self.low) * ((1 - u) / 2) + math.log(self.high) * ((1 + u) / 2))
        else:
            x = self.low * ((1 - u) / 2) + self.high * ((1 + u) / 2)
        x = np.where(u == -1, self.low, np.where(u == 1, self.high, x))  # logarithms miss the ends by a rounding error
        return np.clip(x, self.low, self.high)

    def __str__(self) -> str:
        return f"[{number_text(self.low)}, {number_text(self.high)}]"

    def __repr__(self) -> str:
        scale = "" if self.scale == "linear" else f", scale={self.scale!r}"
        return f"Range({str(self)[1:-1]}{scale})"


@dataclass(frozen=True, slots=True, repr=False, eq=False, init=False)
class Space:
    """A box of parameters: a Range, or `(low, high)`, for each that varies; a number for each that is fixed.

    Names that are not identifiers are given in a mapping: `Space({"k 1": (0, 1)}, beta=(0, 2))`. The varying names, in
    order, are the columns of every table of points. Two spaces are equal if these names, their ranges and the fixed
    values are equal.

    >>> space = Space(beta=(0.005, 0.3), gamma=Range(0.005, 0.2, scale="log"), k=0.05)
    >>> space.names, dict(space.fixed), space.dimension
    (('beta', 'gamma'), {'k': 0.05}, 2)
    """

    parameters: tuple[tuple[str, Range | float], ...]

    def __init__(self, given: Mapping[str, object] = MappingProxyType({}), /, **named: object) -> None:
        if not isinstance(given, Mapping):
            raise SpaceError(f"a Space takes names, or a mapping from names, to ranges or numbers, not {given!r}")
        if twice := [name for name in given if name in named]:
            raise SpaceError(f"{twice[0]} is given twice; give it in the mapping or as an argument, not in both")
        parameters: list[tuple[str, Range | float]] = []
        for name, value in {**given, **named}.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"{name!r} cannot name a parameter; a name is text, and not empty")
            with _about(name):
                range_ = Range(*value) if isinstance(value, tuple | list) and len(value) == 2 else value
                parameters.append((name, range_ if isinstance(range_, Range) else _number(range_)))
        object.__setattr__(self, "parameters", tuple(parameters))

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary, in order."""
        return tuple(name for name, value in self.parameters if isinstance(value, Range))

    @property
    def ranges(self) -> Mapping[str, Range]:
        """The range of each parameter that varies, in order."""
        return MappingProxyType({name: value for name, value in self.parameters if isinstance(value, Range)})

    @property
    def fixed(self) -> Mapping[str, float]:
        """The value of each parameter that does not vary."""
        return MappingProxyType({name: value for name, value in self.parameters if not isinstance(value, Range)})

    @property
    def dimension(self) -> int:
        """How many parameters vary."""
        return len(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Range | float:
        """The range of a parameter, or its fixed value."""
        self._check_names([name, *self.names], dict(self.parameters))
        return dict(self.parameters)[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(dict(self.parameters))

    def uniform(self, n: int, *, seed: Seed) -> Points:
        """`n` independent points, uniform on the scale of each range."""
        count, generator = _drawn(n, seed, "uniform")
        return Points(self.from_unit(2 * generator.random((count, len(self))) - 1), self, "uniform")

    def sobol(self, n: int, *, seed: Seed) -> Points:
        """The first `n` points of a scrambled Sobol sequence: more even than random points; best for powers of 2."""
        cube = sobol_cube(len(self), *_drawn(n, seed, "sobol"))
        return Points(self.from_unit(2 * cube - 1), self, "sobol")

    def latin(self, n: int, *, seed: Seed) -> Points:
        """A Latin hypercube: if any axis is cut into `n` equal parts of its scale, each part contains one point."""
        cube = latin_cube(len(self), *_drawn(n, seed, "latin"))
        return Points(self.from_unit(2 * cube - 1), self, "latin")

    def grid(self, n: int | Mapping[str, int]) -> Points:
        """All combinations of `n` even values per axis, ends included; the last axis runs fastest.

        A mapping gives each axis its own number: `space.grid({"beta": 50, "gamma": 10})`.
        """
        counts = n if isinstance(n, Mapping) else dict.fromkeys(self.names, n)
        self._check_names(counts, self.names)
        axes = []
        for name, range_ in self.ranges.items():
            count = _whole(counts[name], f"{name}: a grid has both ends, so the number of its values", least=2)
            spread = np.geomspace if range_.scale == "log" else np.linspace
            axes.append(np.clip(spread(range_.low, range_.high, count), range_.low, range_.high))
        shape = (len(axes), math.prod(map(len, axes)))
        return Points(np.reshape(np.meshgrid(*axes, indexing="ij"), shape).T, self, "grid")

    def points(self, given: object, *, extrapolate: bool = False) -> Points:
        """Points from your own values, checked: all names are present, and every value is finite and in its range.

        `given` is a mapping from names to numbers or columns (numbers are repeated), an (n, dimension) array, a list of
        mappings, a data frame, or Points. `extrapolate=True` lets values lie outside their ranges.
        """
        columns, count = _columns(given, self)
        self._check_names(columns, dict(self.parameters))
        values = _aligned({name: _floats(column, name) for name, column in columns.items()}, count)
        theta = np.reshape([values[name] for name in self.names], (len(self), next(map(len, values.values()), count))).T
        points, parameters = Points(theta, self, "given"), dict(self.parameters)
        for name, column in values.items():
            if isinstance(allowed := parameters[name], Range):
                wrong = ((column < allowed.low) | (column > allowed.high)) & (not extrapolate)
                why, argument = f"outside its range {allowed}", "extrapolate"
                remedy = "move it inside or pass {extrapolate=True}"
            else:
                wrong, why, argument = column != allowed, f"but fixed at {number_text(allowed)}", ""
                remedy = "leave it out, or let it vary"
            if (rows := np.flatnonzero(wrong)).size:
                value = f"{name} is {number_text(column[rows[0]])} in row {rows[0]}"
                raise SpaceError(f"{value}, {why}", argument=argument, remedy=remedy)
        return points

    def to_unit(self, theta: npt.ArrayLike, *, scale: Scale | None = None) -> FloatArray:
        """An (n, dimension) table with every range mapped to [-1, 1] on its own scale, or all of them on `scale`."""
        return self._per_axis(Range.to_unit, theta, scale)

    def from_unit(self, unit: npt.ArrayLike, *, scale: Scale | None = None) -> FloatArray:
        """The inverse of `to_unit`; the ends of ranges are exact and never exceeded."""
        return self._per_axis(Range.from_unit, unit, scale)

    def contains(self, theta: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """For every row of an (n, dimension) table, whether it lies in the box, including its faces."""
        table = _table(theta, self.names)
        low = np.array([allowed.low for allowed in self.ranges.values()])
        high = np.array([allowed.high for allowed in self.ranges.values()])
        return np.asarray(((low <= table) & (table <= high)).all(axis=1))

    def _per_axis(
        self, change: Callable[[Range, FloatArray], FloatArray], values: object, scale: Scale | None
    ) -> FloatArray:
        table = _table(values, self.names)
        changed = np.empty(table.shape)
        for axis, (name, range_) in enumerate(self.ranges.items()):
            with _about(name):
                changed[:, axis] = change(range_ if scale is None else replace(range_, scale=scale), table[:, axis])
        return changed

    def _values(self, row: Iterable[float]) -> dict[str, float]:
        """All parameters by name, those that vary taken from `row`."""
        varying = iter(row)
        return {name: next(varying) if isinstance(value, Range) else value for name, value in self.parameters}

    def _check_names(self, given: Iterable[object], known: Iterable[str], where: str = "") -> None:
        given, known = list(given), list(known)
        if unknown := [name for name in given if name not in known]:
            hint = nearest(str(unknown[0]), known) or "leave it out"
            raise SpaceError(f"{unknown[0]}{where} is not one of ({', '.join(known)}); {hint}")
        if missing := [name for name in self.names if name not in given]:
            raise SpaceError(f"{missing[0]} is missing{where}; give it, or fix it in the Space")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.names == other.names and set(self.parameters) == set(other.parameters)

    def __hash__(self) -> int:
        return hash(frozenset(self.parameters))

    def __repr__(self) -> str:
        texts = {name: number_text(v) if isinstance(v, float) else repr(v) for name, v in self.parameters}
        texts |= {name: f"({str(r)[1:-1]})" for name, r in self.ranges.items() if r.scale == "linear"}
        if all(name.isidentifier() and not iskeyword(name) for name in texts):
            return f"Space({', '.join(f'{name}={text}' for name, text in texts.items())})"
        return f"Space({{{', '.join(f'{name!r}: {text}' for name, text in texts.items())}}})"

    def _repr_html_(self) -> str:
        rows = [(name, str(value), getattr(value, "scale", "fixed")) for name, value in self.parameters]
        return html_table(f"a space of dimension {len(self)}", ("parameter", "values", "scale"), rows)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Points:
    """Rows of parameter values in a Space, and the design that chose them.

    `theta` is a read-only (n, dimension) table with the columns `space.names`. `points[i]` is one point as a dict of
    all parameters, including the fixed ones. A slice keeps the design, because it is chosen without looking at the
    values. A mask or a list of indices may depend on the values, so its design is "given".

    >>> points = Space(beta=(0, 1), k=2).uniform(500, seed=1)
    >>> points.iid, points[:100].iid, points[points.theta[:, 0] > 0.5].iid
    (True, True, False)
    """

    theta: FloatArray
    space: Space
    design: str = "given"

    def __post_init__(self) -> None:
        theta = np.add(_table(self.theta, self.space.names), 0.0, order="C")  # a copy, in which -0 is 0
        if (bad := np.argwhere(~np.isfinite(theta))).size:
            name, value = self.space.names[bad[0, 1]], theta[bad[0, 0], bad[0, 1]]
            raise SpaceError(f"{name} is {value} in row {bad[0, 0]}; every value must be a finite number")
        object.__setattr__(self, "theta", read_only(theta))

    @property
    def iid(self) -> bool:
        """Whether the rows are independent draws from the uniform measure of the space."""
        return self.design == "uniform"

    def frame(self) -> DataFrame:
        """A pandas DataFrame with a column for every parameter, including the fixed ones."""
        columns, count = _columns(self, self.space)
        return data_frame(columns, list(dict(self.space.parameters)), count)

    def __len__(self) -> int:
        return len(self.theta)

    def __iter__(self) -> Iterator[dict[str, float]]:
        return (self.space._values(row) for row in self.theta.tolist())

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> dict[str, float]: ...
    @overload
    def __getitem__(self, index: Rows) -> Points: ...
    def __getitem__(self, index: int | np.integer[Any] | Rows) -> dict[str, float] | Points:
        if isinstance(index, int | np.integer):
            return self.space._values(self.theta[index].tolist())
        if isinstance(index, slice):
            return Points(self.theta[index], self.space, self.design)
        chosen = np.asarray(index) if np.size(index) else np.asarray(index, dtype=np.intp)
        if isinstance(index, tuple) or chosen.ndim != 1 or chosen.dtype.kind not in "iub":
            raise SpaceError(f"points take a whole number, a slice, a list of whole numbers or a mask, not {index!r}")
        return Points(self.theta[chosen], self.space, "given")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Points):
            return NotImplemented
        return (self.space, self.design) == (other.space, other.design) and np.array_equal(self.theta, other.theta)

    def __hash__(self) -> int:
        return hash((self.theta.tobytes(), self.space, self.design))

    def __reduce__(self) -> tuple[type[Points], tuple[FloatArray, Space, str]]:
        return Points, (self.theta, self.space, self.design)  # so that a copy is read-only too

    def __repr__(self) -> str:
        return f"<{len(self)} points, {self.design}, in {self.space!r}>"

    def _repr_html_(self) -> str:
        rows = [[f"{value:.6g}" for value in point.values()] for point in self[:_SHOWN_ROWS]]
        rest = f", of which the first {_SHOWN_ROWS}" if len(self) > _SHOWN_ROWS else ""
        return html_table(f"{len(self)} points, {self.design}{rest}", dict(self.space.parameters), rows)


def _columns(given: Any, space: Space) -> tuple[dict[str, Any], int]:
    """What was given as columns by name, and how many rows it has if no column says."""
    if isinstance(given, Points):
        return {**given.space.fixed, **dict(zip(given.space.names, given.theta.T, strict=True))}, len(given)
    if isinstance(given, Mapping):
        return dict(given), 1
    if is_frame(given):
        return {name: given[name] for name in given.columns}, len(given)
    if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
        for index, row in enumerate(given):
            space._check_names(row, dict(space.parameters), f" in row {index}")
        return {name: [row.get(name, value) for row in given] for name, value in space.parameters}, len(given)
    table = _table(given, space.names)
    return dict(zip(space.names, table.T, strict=True)), len(table)


def _aligned(arrays: Mapping[str, FloatArray], count: int) -> dict[str, FloatArray]:
    """Columns of one length; `count` is that length where all are numbers."""
    if bad := [name for name, array in arrays.items() if array.ndim > 1]:
        raise SpaceError(f"{bad[0]} needs a number or a plain column, not an array of shape {arrays[bad[0]].shape}")
    lengths = {name: len(array) for name, array in arrays.items() if array.ndim}
    first, count = next(iter(lengths.items()), ("", count))
    if bad := [name for name, length in lengths.items() if length != count]:
        raise SpaceError(f"{bad[0]} has {lengths[bad[0]]} values but {first} has {count}; give as many, or one number")
    return {name: np.broadcast_to(array, (count,)) for name, array in arrays.items()}


def _table(values: object, names: tuple[str, ...]) -> FloatArray:
    table = _floats(values, "theta")
    if table.ndim != 2 or table.shape[1] != len(names):
        columns = f"(n, {len(names)}), one column for each of {', '.join(names)}" if names else "(n, 0)"
        hint = "; a single point is theta[None, :], a single column theta[:, None]" if table.ndim == 1 else ""
        raise SpaceError(f"theta needs the shape {columns}, not {table.shape}{hint}")
    return table


def _floats(values: Any, what: str) -> FloatArray:
    """`values` as an array of floats; what is masked is not a number."""
    try:
        array = np.asarray(np.ma.filled(values, np.nan))
        if array.dtype.kind in "iufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpaceError(f"{what} must be numbers: {error}") from None
    raise SpaceError(f"{what} must be numbers, not of type {array.dtype.name}")


def _number(value: object, wanted: str = "a parameter is a finite number, (low, high) or a Range") -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise SpaceError(f"{wanted}, not {value!r}")
    return float(value) + 0.0  # -0 becomes 0: equal spaces behave alike


def _whole(number: object, what: str, least: int) -> int:
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < least:
        raise SpaceError(f"{what} must be a whole number from {least} up, not {number!r}")
    return int(number)


def _drawn(n: int, seed: Seed, design: str) -> tuple[int, np.random.Generator]:
    count = _whole(n, f"the number of points of {design}", least=1)
    if isinstance(seed, np.random.SeedSequence):  # its numbers, not itself: designs spawn from it and change it
        return count, np.random.default_rng(seed.generate_state(4))
    return count, np.random.default_rng(_whole(seed, f"the seed of {design}", least=0))


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Put the name of the parameter before an error about it."""
    try:
        yield
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from None
