"""The command `predict`: the probability at points, from a posterior or a guarantee in a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import reading, replacing
from sateen.cli.options import JSON, PLOT, output, pairs
from sateen.cli.text import aligned, print_json
from sateen.core.errors import InputError, SpaceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sateen.core.prediction import Prediction
    from sateen.core.space import Points, Space
    from sateen.guarantee.guarantee import Guarantee

__all__ = ["predict"]

_SHOWN_ROWS: Final = 10  # at each end of the table
_MOST_POINTS: Final = 10_000_000
_COLUMNS: Final = ("mean", "std", "lower", "upper")


def _each(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, float]]:
    """A point for each time that the option is given."""
    return [pairs(ctx, option, (text,)) for text in texts]


@click.command(short_help="The probability at points, by what was learned.")
@click.argument("file", metavar="FILE.safetensors")
@click.option("--at", multiple=True, callback=_each, metavar="a=1,b=2", help="A point; repeatable.")
@click.option("--points", metavar="FILE.csv", help="The points of a table with a column for each parameter.")
@click.option("--grid", type=click.IntRange(2), metavar="N", help="A grid of N values of each parameter.")
@click.option("--level", type=float, metavar="L", help="The level of the intervals; 0.95 if nothing is said.")
@click.option("--extrapolate", is_flag=True, help="Allow points outside the space.")
@click.option("--gradient", is_flag=True, help="Also the derivatives of the mean by each parameter.")
@click.option("-o", "--output", "table", callback=output, metavar="FILE.csv", help="Write a table, not print it.")
@PLOT
@JSON
def predict(
    file: str,
    at: list[dict[str, float]],
    points: str | None,
    grid: int | None,
    level: float | None,
    extrapolate: bool,
    gradient: bool,
    table: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say how probable it is at each point that a run satisfies the formula, by the posterior or the guarantee in FILE:
    mean, standard deviation, and the ends of an interval, with what the interval promises.

    \b
    sateen predict sir.safetensors --at beta=0.12 --at beta=0.2 --level 0.9
    sateen predict sir.safetensors --grid 200 -o sir.csv --plot sir.svg
    """
    if sum((bool(at), points is not None, grid is not None)) != 1:
        raise click.UsageError("where? Give one of --at beta=0.12, --points FILE.csv and --grid N")

    from sateen.guarantee.guarantee import Guarantee
    from sateen.study.stored import load

    with reading(file):
        known = load(file)
    if isinstance(known, Guarantee):
        _check_options(known, level, extrapolate)
    try:
        where = _where(known.space, at, points, grid, extrapolate)
    except SpaceError as error:
        remedy = ": the guarantee claims nothing there" if isinstance(known, Guarantee) else ", or say --extrapolate"
        raise SpaceError(str(error).replace(" or pass extrapolate=True", remedy)) from None
    if isinstance(known, Guarantee):
        predicted, posterior = known.predict(where), known.posterior
    else:
        predicted = known.predict(where, level=0.95 if level is None else level, extrapolate=extrapolate)
        posterior = known
    slopes = posterior.gradient(where, extrapolate=extrapolate) if gradient else None
    drawn: Any = None if plot is None else predicted.plot()  # refused, if it is, before anything is written
    if table is not None:
        _write_table(predicted, slopes, file, table)
    if plot is not None:
        from sateen.plot import figures

        with replacing(plot) as temporary:
            figures.save(drawn, temporary)
    files = [each for each in (table, plot) if each]
    if as_json:
        print_json({"file": file, **_content(predicted, slopes), "files": files})
        return
    shown = [] if table else [*_lines(predicted, slopes), ""]
    click.echo("\n".join([*shown, str(predicted.claim), *files]))


def _check_options(known: Guarantee, level: float | None, extrapolate: bool) -> None:
    """What a guarantee has fixed already is not asked for again."""
    from sateen.core.text import percent

    if level is not None:
        raise click.UsageError(f"--level: that of a guarantee was fixed at calibration, here at {percent(known.level)}")
    if extrapolate:
        raise click.UsageError("--extrapolate: outside its space a guarantee claims nothing; ask the posterior alone")


def _where(space: Space, at: list[dict[str, float]], points: str | None, grid: int | None, extrapolate: bool) -> Points:
    if points is not None:
        return space.points(_columns(points, space), extrapolate=extrapolate)
    if grid is None:
        return space.points(at, extrapolate=extrapolate)
    if grid ** len(space) > _MOST_POINTS:
        raise InputError(f"a grid of {grid} values of each of {len(space)} parameters is too large; take fewer")
    return space.grid(grid)


def _columns(file: str, space: Space) -> Any:
    """The columns of a table that are parameters; what others there are is said, for a name may be misspelt."""
    import numpy as np

    known = dict(space.parameters)
    with reading(file), open(file, encoding="utf-8-sig", newline="") as stream:
        try:
            reader = csv.reader((line for line in stream if line.strip() and line[0] != "#"), strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{file} is no table: {error}") from None
    if missing := [name for name in space.names if name not in header]:
        raise InputError(f"{file} has no column {missing[0]}; its columns are {', '.join(header) or 'not there'}")
    if others := [name for name in header if name not in known]:
        click.echo(f"not read from {file}, for the space has no such parameter: {', '.join(others)}", err=True)
    columns: dict[str, list[float]] = {name: [] for name in header if name in known}
    for line, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(f"{file}: row {line} has {len(row)} values under {len(header)} columns")
        for name, text in zip(header, row, strict=True):
            if name in known:
                try:
                    columns[name].append(float(text))
                except ValueError:
                    raise InputError(f"{file}: {name} is {text!r} in row {line}, which is no number") from None
    return {name: np.array(column) for name, column in columns.items()} if columns else np.empty((len(rows), 0))


def _rows(predicted: Prediction, slopes: npt.NDArray[np.float64] | None) -> Iterator[tuple[list[float], list[float]]]:
    """The point and what is said there, row by row."""
    import numpy as np

    said = np.column_stack([getattr(predicted, name) for name in _COLUMNS])
    if slopes is not None:
        said = np.hstack([said, slopes])
    yield from zip(predicted.points.theta.tolist(), said.tolist(), strict=True)


def _header(predicted: Prediction, slopes: npt.NDArray[np.float64] | None) -> list[str]:
    names = list(predicted.points.space.names)
    return [*names, *_COLUMNS, *(f"d mean / d {name}" for name in names if slopes is not None)]


def _lines(predicted: Prediction, slopes: npt.NDArray[np.float64] | None) -> list[str]:
    """A line for every point; of many points, the first and the last ones."""
    rows = [
        [*(f"{value:.6g}" for value in point), *(f"{value:.5g}" for value in said)]
        for point, said in _rows(predicted, slopes)
    ]
    hidden = len(rows) - 2 * _SHOWN_ROWS if len(rows) > 2 * _SHOWN_ROWS + 1 else 0
    if hidden:
        del rows[_SHOWN_ROWS : _SHOWN_ROWS + hidden]
    lines = list(aligned([_header(predicted, slopes), *rows], str.rjust))
    if hidden:
        lines.insert(1 + _SHOWN_ROWS, f"… {hidden:,} more, which -o FILE.csv writes …")
    return lines


def _write_table(predicted: Prediction, slopes: npt.NDArray[np.float64] | None, source: str, file: str) -> None:
    """The whole table, under its claim."""
    with replacing(file) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        stream.write(f"# from: {json.dumps(source)}\n# claim: {predicted.claim}\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_header(predicted, slopes))
        writer.writerows([*map(repr, point), *map(repr, said)] for point, said in _rows(predicted, slopes))


def _content(predicted: Prediction, slopes: npt.NDArray[np.float64] | None) -> dict[str, Any]:
    """The prediction as plain data."""
    header = _header(predicted, slopes)
    rows = [dict(zip(header, [*point, *said], strict=True)) for point, said in _rows(predicted, slopes)]
    return {"level": predicted.level, "claim": predicted.claim.content(), "points": rows}
