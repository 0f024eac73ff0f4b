"""The command `predict`: the probability at points, from a posterior or a guarantee in a file."""

from __future__ import annotations

import codecs
import csv
import json
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

import sateen as st
from sateen.cli.options import JSON, NO_CODE, PLOT, pairs, written
from sateen.cli.output import draw, say, shortened, show, writing
from sateen.cli.sources import load_learned, reading
from sateen.core.errors import InputError
from sateen.core.reading import opened_table
from sateen.core.text import names_text, percent, read_csv_table

if TYPE_CHECKING:
    from sateen.core.types import FloatArray

_MOST_POINTS: Final = 10_000_000
_SHOWN: Final = 40  # characters of a value that is not a number
_COLUMNS: Final = ("mean", "std", "lower", "upper")


def _each(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, float]]:
    """A point for each time that the option is given."""
    return [pairs(ctx, option, (text,)) for text in texts]


@click.command()
@click.argument("file", metavar="FILE.safetensors")
@click.option("--at", multiple=True, callback=_each, metavar="a=1,b=2", help="A point to predict at; repeatable.")
@click.option("--points", metavar="FILE.csv", help="The points of a table with a column for each parameter.")
@click.option("--grid", type=click.IntRange(2), metavar="N", help="A grid of N values of each parameter.")
@click.option("--level", type=float, metavar="L", help="The level of the intervals; by default 0.95.")
@click.option("--extrapolate", is_flag=True, help="Allow points outside the space.")
@click.option("--gradient", is_flag=True, help="Also print the derivatives of the mean by each parameter.")
@click.option(
    "-o", "--output", "target", callback=written, metavar="FILE.csv", help="Write a table instead of printing it."
)
@PLOT
@NO_CODE
@JSON
def predict(
    file: str,
    at: list[dict[str, float]],
    points: str | None,
    grid: int | None,
    level: float | None,
    extrapolate: bool,
    gradient: bool,
    target: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Predict at each point how probable it is that a run satisfies the formula, by the posterior or the guarantee in
    FILE: mean, standard deviation, and the ends of an interval, with what the interval promises.

    \b
    sateen predict sir.safetensors --at beta=0.12 --at beta=0.2 --level 0.9
    sateen predict sir.safetensors --grid 200 -o sir.csv --plot sir.svg
    """
    from sateen.core.posterior import complete

    if sum((bool(at), points is not None, grid is not None)) != 1:
        raise click.UsageError("where? Give one of --at beta=0.12, --points FILE.csv and --grid N")
    loaded = load_learned(file)
    if isinstance(loaded, st.Guarantee):
        if level is not None:
            fixed = f"here at {percent(loaded.level)}"
            raise click.UsageError(f"--level: that of a guarantee was fixed at calibration, {fixed}")
        if extrapolate:
            raise click.UsageError("--extrapolate: outside its space a guarantee claims nothing; use the posterior")
        where = _where(loaded.space, at, points, grid, extrapolate=True)  # the guarantee itself refuses what is outside
        prediction, posterior = loaded.predict(where), complete(loaded.posterior)
    else:
        where = _where(loaded.space, at, points, grid, extrapolate=extrapolate)
        prediction = loaded.predict(where, level=0.95 if level is None else level, extrapolate=extrapolate)
        posterior = loaded
    header, columns = _table(prediction, posterior.gradient(where, extrapolate=extrapolate) if gradient else None)
    drawn = None if plot is None else prediction.plot()  # refused, if it is, before anything is written
    if target is not None:
        with writing(target) as binary:
            stream = codecs.getwriter("utf-8")(binary)
            stream.write(f"# from: {json.dumps(file)}\n# claim: {prediction.claim}\n")
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerows([header, *(map(repr, row) for row in columns)])
    if plot is not None:
        draw(plot, drawn)
    files = [each for each in (target, plot) if each]
    about = {"file": file, "level": prediction.level, "claim": prediction.claim.content(), "files": files}
    names = len(prediction.points.space.names)
    show(
        as_json,
        lambda: {**about, "points": [dict(zip(header, row, strict=True)) for row in columns]},
        lambda: [*([] if target else [*_lines(header, columns, names), ""]), str(prediction.claim), *files],
    )


def _where(
    space: st.Space, at: list[dict[str, float]], points: str | None, grid: int | None, *, extrapolate: bool
) -> st.Points:
    if points is not None:
        return space.points(_columns_in(points, space), extrapolate=extrapolate)
    if grid is None:
        return space.points(at, extrapolate=extrapolate)
    if grid ** len(space) > _MOST_POINTS:
        raise InputError(f"a grid of {grid} values of each of {len(space)} parameters is too large; take fewer")
    return space.grid(grid)


def _columns_in(file: str, space: st.Space) -> dict[str, array[float]] | list[dict[str, float]]:
    """The columns of a table that are parameters. The other columns are named, for a name may be misspelt."""
    known, count = dict(space.parameters), 0
    with reading(file), opened_table(file) as stream:
        try:
            table = read_csv_table(stream)
            if missing := [name for name in space.names if name not in table.names]:
                there = names_text(table.names) or "missing"
                raise InputError(f"it has no column {missing[0]}; its columns are {there}")
            columns = {name: array("d") for name in table.names if name in known}
            for line, row in table.rows:
                count += 1
                for name, text in zip(table.names, row, strict=True):
                    if name in known:
                        columns[name].append(_number(text, name, line))
        except (UnicodeDecodeError, csv.Error, InputError) as error:
            raise InputError(f"{file} is not a table: {error}") from None
    if others := [name for name in table.names if name not in known]:
        say(f"not read from {file}, for the space has no such parameter: {names_text(others)}")
    return columns or [{} for _ in range(count)]


def _number(text: str, name: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} is {text[:_SHOWN]!r} in line {line}, which is not a number") from None


def _table(prediction: st.Prediction, slopes: FloatArray | None) -> tuple[list[str], list[list[float]]]:
    """The names of the columns, and for every point its parameters, what is predicted there, and the slopes."""
    import numpy as np

    names = prediction.points.space.names
    header = [*names, *_COLUMNS, *(f"d mean / d {name}" for name in names if slopes is not None)]
    predicted = [getattr(prediction, name)[:, None] for name in _COLUMNS]
    rows = np.hstack([prediction.points.theta, *predicted, *([] if slopes is None else [slopes])])
    return header, rows.tolist()


def _lines(header: Sequence[str], rows: Sequence[Sequence[float]], parameters: int) -> list[str]:
    """A line for every point; of many points, the first and the last ones."""
    texts = [
        [*(f"{value:.6g}" for value in row[:parameters]), *(f"{value:.5g}" for value in row[parameters:])]
        for row in rows
    ]
    return shortened(header, texts, "-o FILE.csv")
