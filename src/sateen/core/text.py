"""Numbers, shares, durations and tables as people read them, and tables in CSV text."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Final

from sateen.core.errors import InputError

_SHOWN: Final = 60  # characters of a value in a message
_SHOWN_NAMES: Final = 20  # in a message
_LONGEST_NAME: Final = 60  # characters of a name in a message
_MOST_COLUMNS: Final = 10_000  # of a table in CSV text


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def finite(value: object) -> float | None:
    """The number that a value is; None where it is not a number, or not a finite one.

    >>> finite(3), finite(10**400), finite("3")
    (3.0, None, None)
    """
    try:
        result = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def shown(value: object) -> str:
    """A value as messages show it: as Python writes it, and not longer than a line.

    >>> shown("a"), shown(10**10_000)
    ("'a'", 'a number of too many digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no more than some thousand digits
        return "a number of too many digits"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def values_text(values: Mapping[str, float]) -> str:
    """Names with their values, as messages show a state or parameters: `S = 95, I = 5`."""
    return ", ".join(f"{name} = {number_text(value)}" for name, value in values.items())


def names_text(names: Sequence[str]) -> str:
    """Names as a message lists them: of many, or of very long ones, only so much as can be read.

    >>> names_text(["beta", "gamma"])
    'beta, gamma'
    """
    shown = ", ".join(name[:_LONGEST_NAME] for name in names[:_SHOWN_NAMES])
    return f"{shown}, … ({len(names):,} in all)" if len(names) > _SHOWN_NAMES else shown


def percent(share: float | None) -> str:
    """A share as people read it; of many digits the first four after the point, so that no claim is rounded up.

    >>> percent(0.95), percent(0.999), percent(0.98 + 1 / 300)
    ('95 %', '99.9 %', '98.3333 %')
    """
    hundredths = float(f"{100 * (share or 0.0):.10g}")
    if hundredths > 1.0 and round(hundredths, 4) != hundredths:
        hundredths = math.floor(1e4 * hundredths) / 1e4
    return f"{hundredths:.10g} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "point"), plural(2000, "run")
    ('1 point', '2,000 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """A duration in two digits, in the unit that suits it.

    >>> [duration_text(each) for each in (0.02, 4, 100, 4000, 40_000, 2_000_000)]
    ['0.02 s', '4 s', '1.7 min', '1.1 hours', '11 hours', '23 days']
    """
    for unit, length in (("days", 86_400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length or (unit == "hours" and seconds >= length):
            amount = seconds / length
            return f"{amount:,.0f} {unit}" if amount >= 10 else f"{amount:.2g} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def html_table(caption: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table as notebooks show it, to be scrolled where it is too wide; without a header where that is empty."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>"
    return f"<div style='overflow-x:auto'><table>{title}{head and f'<tr>{head}</tr>'}{body}</table></div>"


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A table in CSV text: the names of its columns, its rows as they are read, and the comments that came before.

    A row goes with the line it stands in; `line` is that of the header. Once all rows are read, `comments` has all.
    """

    names: list[str]
    line: int
    rows: Iterator[tuple[int, list[str]]]
    comments: list[str]  # without their marks


def read_csv_table(text: Iterable[str], error: type[InputError] = InputError) -> CsvTable:
    """Read a table from lines of CSV text, in which lines that begin with # are comments and empty ones are skipped.

    >>> table = read_csv_table(["# end: 3", "time, S", "0, 7"])
    >>> table.names, table.line, list(table.rows), table.comments
    (['time', 'S'], 2, [(3, ['0', '7'])], ['end: 3'])
    """
    line_now = 0  # where the reader is
    comments: list[str] = []

    def table() -> Iterator[str]:
        nonlocal line_now
        for line in text:
            line_now += 1
            if line.lstrip().startswith("#"):
                comments.append(line.strip().removeprefix("#").strip())
            elif line.strip():
                yield line

    reader = csv.reader(table(), skipinitialspace=True, strict=True)
    names = [name.strip() for name in next(reader, [])]
    if len(names) > _MOST_COLUMNS:
        raise error(f"line {line_now}: the table has {len(names):,} columns, and at most {_MOST_COLUMNS:,} are read")

    def rows() -> Iterator[tuple[int, list[str]]]:
        for row in reader:
            if len(row) != len(names):
                raise error(f"line {line_now}: {len(row)} values under {len(names)} columns ({names_text(names)})")
            yield line_now, row

    return CsvTable(names, line_now, rows(), comments)
