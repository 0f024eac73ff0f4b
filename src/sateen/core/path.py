"""Path: one trajectory of a process. Verdict: what a formula says of one.

A path is piecewise constant and right-continuous: the state entered at a jump time holds until the next jump, that
instant excluded. It is known on [0, end], both ends included, and for ever if it is absorbed.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.counts import data_frame, read_only
from sateen.core.display import pictured
from sateen.core.errors import PathError, UnknownVerdictError, nearest
from sateen.core.reading import opened_table
from sateen.core.registry import call_provider
from sateen.core.text import html_table, names_text, number_text, plural, read_csv_table
from sateen.core.types import Axes, FloatArray

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

File: TypeAlias = "str | PathLike[str] | TextIO"

_SHOWN_TEXT: Final = 60  # characters of what is not a number
_SHOWN_ROWS: Final = 4  # at each end of the table in a notebook
_DRAWN_STATES: Final = 2000  # of the picture in a notebook
_SHOWN_SPECIES: Final = 6  # in a repr
_ABSORBED: Final = {"true": True, "false": False}  # as a CSV file says it


class Verdict(Enum):
    """What a formula says about a path: TRUE, FALSE, or UNKNOWN if the path is too short to decide.

    A known verdict can be used in `if`, `and`, `or` and `not`; UNKNOWN raises an error there, because either answer
    would be a guess. A verdict never equals a bool: write `verdict is Verdict.TRUE`, not `verdict == True`.

    >>> ~Verdict.of(True)
    <Verdict.FALSE: 'false'>
    >>> print(Verdict.of(None))
    unknown
    """

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, value: bool | None) -> Verdict:
        """The verdict of a truth value; None is unknown."""
        if value is None:
            return cls.UNKNOWN
        return cls.TRUE if value else cls.FALSE

    def __bool__(self) -> bool:
        if self is Verdict.UNKNOWN:
            raise UnknownVerdictError(
                "the path is too short to decide, so the verdict is neither true nor false\n"
                "  simulate further, or test `verdict is Verdict.TRUE`"
            )
        return self is Verdict.TRUE

    def __invert__(self) -> Verdict:
        return self if self is Verdict.UNKNOWN else Verdict.of(not self)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Path:
    """A trajectory: jump times from 0, and the state that holds from each of them on.

    `states` has a row for each time and a column for each species; for one species a plain sequence is enough. If
    several jumps have the same time, the last one counts. `end` is how far the path is known, by default its last time.
    An `absorbed` path keeps its last state for ever. `values` are the parameters and constants it was made under.

    >>> path = Path(times=[0, 2, 5], states=[[9, 1], [8, 2], [8, 1]], species=("S", "I"), end=10)
    >>> path
    Path(S, I: 3 states, 0 to 10)
    >>> path.at(2), path.at(4.9)
    ({'S': 8.0, 'I': 2.0}, {'S': 8.0, 'I': 2.0})
    >>> path["I"]
    array([1., 2., 1.])
    """

    times: FloatArray
    states: FloatArray
    species: tuple[str, ...]
    end: float
    absorbed: bool
    values: Mapping[str, float]

    def __init__(
        self,
        times: npt.ArrayLike,
        states: npt.ArrayLike,
        species: str | Sequence[str],
        end: float | None = None,
        absorbed: bool = False,
        values: Mapping[str, float] | None = None,
    ) -> None:
        names = (species,) if isinstance(species, str) else tuple(species)
        _check_names(names, "species")
        if not names:
            raise PathError("there are no species; name at least one")
        when = _numbers(times, "times") + 0.0  # which turns -0.0 into 0.0
        _check_times(when, lambda row: f"times[{row}]")
        table = _table(_numbers(states, "states"), len(when), names)
        last = float(when[-1])
        until = last if end is None else _number(end, "end")
        if until < last:
            raise PathError(f"end is {number_text(until)}, before the last jump, which is at {number_text(last)}")
        _check_names(tuple(values or {}), "values")
        made_under = {name: _number(value, f"the value {name}", False) for name, value in (values or {}).items()}
        known = (read_only(when), read_only(table), names, until, bool(absorbed), MappingProxyType(made_under))
        for field, value in zip(self.__slots__, known, strict=True):
            object.__setattr__(self, field, value)

    def __reduce__(self) -> tuple[type[Path], tuple[object, ...]]:
        # A read-only mapping does not travel between processes, a dict does.
        return Path, (self.times, self.states, self.species, self.end, self.absorbed, dict(self.values))

    def __len__(self) -> int:
        """How many states are recorded, the initial one among them."""
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        scalars = (self.species, self.end, self.absorbed, self.values)
        arrays = ((self.times, other.times), (self.states, other.states))
        same = scalars == (other.species, other.end, other.absorbed, other.values)
        return same and all(np.array_equal(mine, its) for mine, its in arrays)

    def __hash__(self) -> int:
        return hash((self.species, self.end, self.absorbed, self.times.tobytes()))

    def at(self, time: float) -> dict[str, float]:
        """The value of every species at a time; before 0, the value at 0.

        Beyond `end` the path is unknown, and this raises a PathError, unless it is absorbed.
        """
        if _number(time, "the time", finite=False) > self.end and not self.absorbed:
            raise PathError(
                f"the state at time {number_text(time)} is unknown: the path ends at {number_text(self.end)}\n"
                "  simulate further, or pass absorbed=True if it keeps its last state for ever"
            )
        row = int(np.searchsorted(self.times, max(time, 0.0), side="right")) - 1
        return dict(zip(self.species, self.states[row].tolist(), strict=True))

    def column(self, species: str) -> FloatArray:
        """The values of one species, one for each jump time; `path["I"]` is the same."""
        if species not in self.species:
            hint = nearest(str(species), self.species) or f"it has {', '.join(self.species)}"
            raise PathError(f"the path has no species {species}; {hint}")
        return self.states[:, self.species.index(species)]

    __getitem__ = column

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.species)

    def to_csv(self, file: File) -> None:
        """Write the path as CSV: comments, a header, and a row for each jump. `from_csv` reads back an equal path."""
        stream = io.StringIO() if isinstance(file, str | PathLike) else file
        stream.write(f"# end: {_exact(self.end)}\n# absorbed: {str(self.absorbed).lower()}\n")
        stream.writelines(f"# value {name}: {_exact(value)}\n" for name, value in self.values.items())
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["time", *self.species])
        for time, state in zip(self.times.tolist(), self.states.tolist(), strict=True):
            writer.writerow([_exact(time), *map(_exact, state)])
        if isinstance(stream, io.StringIO) and stream is not file:
            call_provider("write text", file, stream.getvalue())

    @classmethod
    def from_csv(cls, file: File, end: float | None = None, absorbed: bool | None = None) -> Path:
        """The path in a CSV file: a header with a column `time` (or `t`), then a row for each jump.

        Lines that begin with `#` are comments; `# end: 150`, `# absorbed: true` and `# value beta: 0.12` are read; the
        arguments `end` and `absorbed` override them.
        """
        with opened_table(file) if isinstance(file, str | PathLike) else nullcontext(file) as stream:
            try:
                return _read_csv(stream, end, absorbed)
            except (PathError, UnicodeDecodeError, csv.Error) as error:
                name = file if isinstance(file, str | PathLike) else getattr(file, "name", None)
                raise PathError(f"{name}: {error}" if isinstance(name, str | PathLike) else str(error)) from None

    def frame(self) -> DataFrame:
        """A pandas data frame: the column `time`, then one for each species."""
        return data_frame(np.column_stack([self.times, self.states]), ("time", *self.species), len(self))

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        end: float | None = None,
        absorbed: bool = False,
        values: Mapping[str, float] | None = None,
    ) -> Path:
        """The path in a data frame with a column, or an index, `time` (or `t`); the other columns are the species."""
        if str(frame.index.name).lower() in ("time", "t") and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        names = [str(label) for label in frame.columns]
        at = _time_column(names)
        columns = [_numbers(frame.iloc[:, place], f"the column {name}") for place, name in enumerate(names)]
        return _from_table(np.column_stack(columns), names, at, end, absorbed, values)

    def plot(self, ax: object = None, species: str | Sequence[str] | None = None) -> Axes:
        """Draw the species as steps over time, and return the matplotlib Axes."""
        return call_provider("plot path", self, ax=ax, species=species)

    def __repr__(self) -> str:
        shown = ", ".join(self.species[:_SHOWN_SPECIES]) + (", …" if len(self.species) > _SHOWN_SPECIES else "")
        known = f"0 to {number_text(self.end)}{', absorbed' if self.absorbed else ''}"
        return f"Path({shown}: {plural(len(self), 'state')}, {known})"

    def _repr_html_(self) -> str:
        skipped = len(self) - 2 * _SHOWN_ROWS
        rows = [
            [f"{value:.6g}" for value in (self.times[row], *self.states[row])]
            for row in range(len(self))
            if skipped <= 1 or row < _SHOWN_ROWS or row >= len(self) - _SHOWN_ROWS
        ]
        if skipped > 1:
            rows.insert(_SHOWN_ROWS, [f"… {skipped} more …"])
        shown, words = self._thinned(_DRAWN_STATES), repr(self)
        if shown is not self:
            words += f"\ndrawn at {_DRAWN_STATES:,} of its {len(self):,} instants"
        return pictured(shown.plot, words, html_table("", ("time", *self.species), rows))

    def _thinned(self, most: int) -> Path:
        """The path itself, or one of its states at evenly spread times where it has more than this many."""
        if len(self) <= most:
            return self
        times = np.linspace(0.0, float(self.times[-1]), most)
        rows = np.searchsorted(self.times, times, side="right") - 1
        return Path(times, self.states[rows], self.species, self.end, self.absorbed, self.values)


def before_jump(path: Path, number: int) -> Path:
    """The path up to the jump of that number, from 1, which a cap of events keeps a counted run from judging."""
    if len(path) <= number:
        return path
    end = math.nextafter(float(path.times[number]), 0.0)
    return Path(path.times[:number], path.states[:number], path.species, end, values=path.values)


def _numbers(given: npt.ArrayLike, what: str) -> FloatArray:
    """A fresh array of floats."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise PathError(f"{what} must be numbers: {error}") from None


def _check_names(names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            raise PathError(
                f"{what}[{place}] is {ascii(name)[:_SHOWN_TEXT]}; a name is printable text without spaces around it"
            )
        if name in seen:
            raise PathError(f"{what} name {name[:_SHOWN_TEXT]} twice; each needs a name of its own")
        seen.add(name)


def _number(given: object, what: str, finite: bool = True) -> float:
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise PathError(f"{what} is {repr(given)[:_SHOWN_TEXT]}; it must be a number") from None
    if math.isnan(number) or (finite and math.isinf(number)):
        raise PathError(f"{what} is {number}; it must be {'finite' if finite else 'a number'}")
    return number


def _check_times(times: FloatArray, place: Callable[[int], str]) -> None:
    """Times are finite, begin at 0 and never go back; `place` says where a row is."""
    if times.ndim != 1 or not len(times):
        raise PathError(f"times have the shape {times.shape}; a path has one for each jump, and at least time 0")
    if (odd := np.flatnonzero(~np.isfinite(times))).size:
        raise PathError(f"{place(odd[0])}: the time is {times[odd[0]]}; times are finite")
    if times[0] != 0:
        raise PathError(
            f"{place(0)}: the first time is {number_text(times[0])}, and a path begins at 0\n"
            "  add the initial state at time 0, or subtract the first time from all of them"
        )
    if (back := np.flatnonzero(np.diff(times) < 0)).size:
        before, after = map(number_text, times[back[0] : back[0] + 2])
        raise PathError(f"{place(back[0] + 1)}: time goes back from {before} to {after}; sort the jumps by time")


def _table(states: FloatArray, length: int, species: tuple[str, ...]) -> FloatArray:
    """The states as a table of a row for each time and a column for each species, all finite."""
    table = states[:, np.newaxis] if states.ndim == 1 and len(species) == 1 else states
    if table.shape != (length, len(species)):
        needed = f"{length} times and {len(species)} species ({', '.join(species)}) need {(length, len(species))}"
        raise PathError(f"states have the shape {states.shape}; {needed}")
    if (odd := np.argwhere(~np.isfinite(table))).size:
        row, column = odd[0].tolist()
        raise PathError(f"states[{row}]: {species[column]} is {table[row, column]}; states are finite numbers")
    return table


def _exact(value: float) -> str:
    """Text that reads back as the same number, bit by bit."""
    return number_text(value) if value else repr(value)[: -len(".0")]  # minus zero keeps its sign


def _time_column(names: list[str]) -> int:
    """Where the times are: a column `time`, or else `t`; spelt exactly so, or else in other letter case."""
    lowered = [name.lower() for name in names]
    for columns, wanted in ((names, "time"), (lowered, "time"), (names, "t"), (lowered, "t")):
        if wanted in columns:
            return columns.index(wanted)
    raise PathError(f"no column is called time (or t): {names_text(names)}\n  name the columns first, as in time,S,I")


def _from_table(
    table: FloatArray,
    names: list[str],
    at: int,
    end: float | None,
    absorbed: bool,
    values: Mapping[str, float] | None,
) -> Path:
    """The path in a table whose column number `at` holds the times."""
    species = names[:at] + names[at + 1 :]
    return Path(table[:, at], np.delete(table, at, axis=1), species, end, absorbed, values)


def _read_csv(stream: TextIO, end: float | None, absorbed: bool | None) -> Path:
    """The path in CSV text; errors name the line and the column."""
    table = read_csv_table(stream, PathError)
    if not table.names:
        raise PathError("the file has no table; it begins with a header such as time,S,I")
    at = _time_column(table.names)
    _check_names(table.names[:at] + table.names[at + 1 :], f"line {table.line}: species")
    values, lines = array("d"), array("q")
    for line, row in table.rows:
        lines.append(line)
        try:
            values.extend(map(float, row))
        except ValueError:
            for text, name in zip(row, table.names, strict=True):
                _number(text, f"line {line}, column {name}")
    if not lines:
        raise PathError(f"line {table.line}: no rows follow the header; a path has at least its state at time 0")
    numbers = np.array(values).reshape(len(lines), len(table.names))
    if (odd := np.argwhere(~np.isfinite(numbers))).size:
        place, column = odd[0].tolist()
        _number(numbers[place, column], f"line {lines[place]}, column {table.names[column]}")
    _check_times(numbers[:, at], lambda row: f"line {lines[row]}")
    notes = {key.strip(): text.strip() for key, _, text in (comment.rpartition(":") for comment in table.comments)}
    if end is None and "end" in notes:
        end = _number(notes["end"], "the comment `# end`")
    if absorbed is None and (absorbed := _ABSORBED.get(notes.get("absorbed", "false").lower())) is None:
        raise PathError(f"the comment `# absorbed` says {notes['absorbed'][:_SHOWN_TEXT]}; it is true or false")
    told = {key[6:].strip(): _number(text, key, False) for key, text in notes.items() if key.startswith("value ")}
    return _from_table(numbers, table.names, at, end, absorbed, told)
