"""Ensemble: the states of many runs of a process at given times, at one point θ."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np
import numpy.typing as npt

from sateen.core.counts import data_frame, read_only
from sateen.core.display import pictured
from sateen.core.errors import InputError, nearest
from sateen.core.registry import call_provider
from sateen.core.text import html_table, names_text, number_text, plural
from sateen.core.types import Array, Axes, FloatArray, IntArray

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

LEVELS: Final = (0.05, 0.5, 0.95)  # of the quantiles in tables
_SHOWN_ROWS: Final = 12  # of the table in a notebook


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ensemble:
    """The states of many runs at given times, which `simulate` makes with `times` and `runs`.

    `states` is a read-only array (runs, times, species) of the smallest type that holds the values. If `max_events`
    stopped a run early, its later states are unknown: `states` then has floats, and NaN in these places. A mean, a
    deviation or a quantile is NaN at a time at which the state of any run is unknown, because leaving such runs out
    would bias it. `values` are the parameters and constants, and run i is `replay(model, theta, seed=seed, point=point,
    run=i)`.

    >>> runs = Ensemble(times=[0, 1], states=[[[9], [7]], [[9], [8]]], species=("X",))
    >>> runs
    <Ensemble: 2 runs of X at 2 times, 0 to 1>
    >>> runs.mean.tolist(), runs.quantiles(0.5).tolist()
    ([[9.0], [7.5]], [[9.0], [7.0]])
    """

    times: FloatArray
    states: Array
    species: tuple[str, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    point: int = 0

    def __post_init__(self) -> None:
        times, states = check_times(self.times), np.asarray(self.states)
        wanted = (*states.shape[:1], len(times), len(self.species))
        if states.shape != wanted or states.dtype.kind not in "iuf":
            shape = f"(runs, {len(times)} times, {len(self.species)} species)"
            raise InputError(f"states need numbers in the shape {shape}, not {states.dtype.name} in {states.shape}")
        given = (times, read_only(states.view()), tuple(self.species), MappingProxyType(dict(self.values)))
        for name, value in zip(self.__slots__, given, strict=False):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[Ensemble], tuple[object, ...]]:
        # A read-only mapping does not travel between processes, a dict does.
        return Ensemble, (self.times, self.states, self.species, dict(self.values), self.seed, self.point)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.states)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ensemble):
            return NotImplemented
        mine, its = ((each.species, dict(each.values), each.seed, each.point) for each in (self, other))
        same = mine == its and np.array_equal(self.times, other.times)
        return same and np.array_equal(self.states, other.states, equal_nan=True)

    def __hash__(self) -> int:
        return hash((self.species, self.seed, self.point, self.states.shape, self.times.tobytes()))

    @property
    def unknown(self) -> IntArray:
        """For each time, how many runs have an unknown state because `max_events` stopped them before."""
        if self.states.dtype.kind != "f" or not self.species:
            return read_only(np.zeros(len(self.times), np.int64))
        return read_only(np.isnan(self.states[:, :, 0]).sum(axis=0))

    @property
    def mean(self) -> FloatArray:
        """The mean over the runs: a table (times, species)."""
        if not len(self):
            return read_only(np.full(self.states.shape[1:], np.nan))
        return read_only(self.states.mean(axis=0, dtype=np.float64))

    @property
    def deviation(self) -> FloatArray:
        """The standard deviation, from the sum of squares over runs - 1: a table (times, species)."""
        found = np.full(self.states.shape[1:], np.nan)
        for row, column in zip(found, self._by_time() if len(self) > 1 else (), strict=False):
            row[:] = column.std(axis=0, ddof=1)
        return read_only(found)

    def quantiles(self, levels: float | Sequence[float]) -> FloatArray:
        """The smallest values that at least a share `level` of the runs does not exceed.

        For one level, a table (times, species); for several, an array with one such table for each. A quantile of
        counts is a count: nothing is interpolated.
        """
        shares = np.asarray(levels, np.float64)
        if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
            raise InputError(f"levels are shares from 0 to 1, not {levels}", argument="levels")
        found = np.full((shares.size, *self.states.shape[1:]), np.nan)
        for place, column in enumerate(self._by_time() if len(self) else ()):
            found[:, place] = np.quantile(column, shares.reshape(-1), axis=0, method="inverted_cdf")
        return read_only(found.reshape(*shares.shape, *self.states.shape[1:]))

    def histogram(self, species: str, time: float) -> tuple[FloatArray, IntArray]:
        """The values that a species has at one of the times, in order, and how many runs have each.

        Runs whose state at that time is unknown are not included: `unknown` counts them.
        """
        column = self.at(time)[:, self._place(species)].astype(np.float64)
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        return read_only(values), read_only(counts)

    def at(self, time: float) -> Array:
        """The states at one of the times: an array (runs, species)."""
        place = int(np.argmin(np.abs(self.times - time)))
        if self.times[place] != time:
            message = f"the runs were not kept at time {number_text(time)}; the nearest is {self.times[place]:g}"
            raise InputError(message, argument="time")
        states: Array = self.states[:, place]
        return states

    def column(self, species: str) -> Array:
        """The values of one species, an array (runs, times); `ensemble["I"]` is the same."""
        values: Array = self.states[:, :, self._place(species)]
        return values

    __getitem__ = column

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.species)

    def frame(self, levels: Sequence[float] = LEVELS) -> DataFrame:
        """A pandas data frame with a row for each time and species: mean, deviation, quantiles, and unknown runs."""
        header, rows = self._table(levels)
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        return data_frame(dict(zip(header, columns, strict=True)), header, len(rows))

    def to_csv(self, file: str | PathLike[str] | TextIO, levels: Sequence[float] = LEVELS) -> None:
        """Write the table of `frame` as CSV; comments on top give the number of runs and the parameters."""
        stream = io.StringIO() if isinstance(file, str | PathLike) else file
        stream.write(f"# runs: {len(self)}\n" + (f"# seed: {self.seed}\n" if self.seed is not None else ""))
        stream.writelines(f"# value {name}: {number_text(value)}\n" for name, value in self.values.items())
        header, rows = self._table(levels)
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([each if isinstance(each, str) else number_text(each) for each in row] for row in rows)
        if isinstance(stream, io.StringIO) and stream is not file:
            call_provider("write text", file, stream.getvalue())

    def plot(
        self, ax: object = None, species: str | Sequence[str] | None = None, level: float = 0.9, runs: int = 3
    ) -> Axes:
        """Draw the mean of each species, a band with a share `level` of the runs at each time, and a few runs."""
        return call_provider("plot ensemble", self, ax=ax, species=species, level=level, shown=runs)

    def __repr__(self) -> str:
        kept = f"{plural(len(self), 'run')} of {names_text(self.species)} at {plural(len(self.times), 'time')}"
        cut = f", {self.unknown[-1]:,} cut short" if self.unknown.any() else ""
        return f"<Ensemble: {kept}, {self.times[0]:g} to {self.times[-1]:g}{cut}>"

    def _repr_html_(self) -> str:
        header, rows = self._table(LEVELS)
        kept = max(_SHOWN_ROWS // max(len(self.species), 1), 2)
        places = np.unique(np.linspace(0, len(self.times) - 1, kept).round().astype(int)).tolist()
        shown = [row for place in places for row in rows[place * len(self.species) : (place + 1) * len(self.species)]]
        cells = [[each if isinstance(each, str) else f"{each:.6g}" for each in row] for row in shown]
        table = html_table(repr(self), header, cells)
        return pictured(self.plot, repr(self)[1:-1], table) if len(self) and self.species else table

    def _place(self, species: str) -> int:
        if species not in self.species:
            hint = nearest(str(species), self.species) or f"it has {names_text(self.species)}"
            raise InputError(f"the ensemble has no species {species}; {hint}", argument="species")
        return self.species.index(species)

    def _by_time(self) -> Iterator[FloatArray]:
        """The states at each time in turn, as floats: never a copy of all."""
        return (self.states[:, place].astype(np.float64) for place in range(len(self.times)))

    def _table(self, levels: Sequence[float]) -> tuple[list[str], list[list[float | str]]]:
        """The header and the rows of a table of all times and species."""
        header = ["time", "species", "mean", "deviation", *(f"quantile {level:g}" for level in levels), "unknown"]
        parts = np.stack([self.mean, self.deviation, *self.quantiles(list(levels))], axis=-1)
        rows: list[list[float | str]] = [
            [float(time), name, *parts[place, rank].tolist(), int(self.unknown[place])]
            for place, time in enumerate(self.times)
            for rank, name in enumerate(self.species)
        ]
        return header, rows


def check_times(given: npt.ArrayLike) -> FloatArray:
    """Times to look at runs: finite, from 0 on, each later than the one before."""
    try:
        times = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{{times}} must be numbers: {error}", argument="times") from None
    if times.ndim != 1 or not times.size or not np.all(np.isfinite(times) & (times >= 0)):
        raise InputError("{times} are finite numbers from 0 on, at least one", argument="times")
    if (back := np.flatnonzero(np.diff(times) <= 0)).size:
        before, after = map(number_text, times[back[0] : back[0] + 2])
        message = f"{{times}} has {after} after {before}; each must be later than the one before"
        raise InputError(message, argument="times", remedy="sort them, and leave out duplicates")
    return read_only(times + 0.0)  # -0 becomes 0
