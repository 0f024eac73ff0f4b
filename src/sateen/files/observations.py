"""Observations in files: in the container, and as a table in CSV."""

from __future__ import annotations

import codecs
import csv
import json
import os
from dataclasses import asdict
from typing import Any, Final, TextIO

import numpy as np

from sateen.core.counts import origin_of
from sateen.core.errors import InputError
from sateen.core.observations import Failure, Observations
from sateen.core.space import Points, Range, Space
from sateen.core.text import read_csv_table
from sateen.core.types import Array, Arrays, Content, File
from sateen.files.atomic import replacing
from sateen.files.container import read_container, write_container

KIND: Final = "observations"
FORMAT: Final = 2
_MARK: Final = "sateen observations"
_COUNTS: Final = ("satisfied", "undecided", "trials")
_ARRAYS: Final = ("theta", *_COUNTS, "origin")
_BECAUSE: Final = "undecided: "  # begins the name of a column of runs that are undecided for one reason


def save(observations: Observations, file: File) -> None:
    """Write observations as one safe file."""
    write_container(file, KIND, FORMAT, observations_content(observations), observations_arrays(observations))


def load(file: File) -> Observations:
    """The observations that `save` wrote."""
    *_, content, arrays = read_container(file, {KIND: FORMAT})
    try:
        return observations_from(content, arrays)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{file} holds no valid observations: {error}") from error


def observations_content(observations: Observations) -> dict[str, object]:
    """Everything but the columns, as JSON has it."""
    return {
        "space": [
            [name, [value.low, value.high, value.scale] if isinstance(value, Range) else value]
            for name, value in observations.space.parameters
        ],
        "design": observations.points.design,
        "relevant": list(observations.relevant),
        "reasons": list(observations.reasons),
        "failures": [asdict(failure) | {"theta": dict(failure.theta)} for failure in observations.failures],
        "seconds": observations.seconds,
        "provenance": dict(observations.provenance),
    }


def observations_arrays(observations: Observations) -> dict[str, Array]:
    """The columns; the undecided runs by reason are a row each."""
    shape = (len(observations.reasons), len(observations))
    by_reason = np.reshape(list(observations.reasons.values()), shape).astype(np.int64)
    return {name: getattr(observations, name) for name in _ARRAYS} | {"reasons": by_reason}


def observations_from(content: Content, arrays: Arrays, space: Space | None = None) -> Observations:
    """The observations with this content and these columns."""
    return Observations(
        Points(arrays["theta"], space or _space(content["space"]), content["design"]),
        *(arrays[name] for name in _COUNTS),
        origin=arrays["origin"],
        provenance=content["provenance"],
        relevant=content["relevant"],
        reasons=dict(zip(content["reasons"], arrays["reasons"], strict=True)),
        failures=[Failure(**failure) for failure in content["failures"]],
        seconds=content["seconds"],
    )


def _space(parameters: list[list[Any]]) -> Space:
    return Space({name: Range(*value) if isinstance(value, list) else value for name, value in parameters})


def write_csv(observations: Observations, file: File) -> None:
    """A table of parameters and counts, with what is known of them as comments before it."""
    names = observations.space.names
    _check_names(names)
    known = observations_content(observations)
    columns: dict[str, Array] = {name: getattr(observations, name) for name in _COUNTS}
    columns |= {_BECAUSE + reason: counts for reason, counts in observations.reasons.items()}
    seeds, rows = observations.origin.T
    if np.all(seeds == seeds[:1]) and np.array_equal(rows, np.arange(len(rows)) if observations.seeds else seeds):
        known["seed"] = observations.seed
    else:
        columns |= {"seed": seeds, "point": rows}
    with replacing(file) as binary:
        stream = codecs.getwriter("utf-8")(binary)
        stream.write(f"# {_MARK}: 1\n")
        stream.writelines(f"# {key}: {json.dumps(value)}\n" for key, value in known.items())
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*names, *columns])
        counts = np.column_stack(list(columns.values())).tolist()
        writer.writerows(
            [*map(repr, values), *row] for values, row in zip(observations.theta.tolist(), counts, strict=True)
        )


def read_csv(file: File, space: Space | None = None) -> Observations:
    """The observations in a table; what `write_csv` wrote before it is heeded, other comments are not."""
    with open(file, encoding="utf-8-sig", newline="") as stream:
        try:
            return _read(stream, space)
        except InputError as error:
            message = f"{os.fspath(file)}: {error.message}"
            raise InputError(message, argument=error.argument, remedy=error.remedy) from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{os.fspath(file)}: {error}") from None


def _read(stream: TextIO, space: Space | None) -> Observations:
    table = read_csv_table(stream)
    known = _known(table.comments)
    if space is None:
        if known is None:
            raise InputError("the file does not tell its space", argument="space", remedy="pass {space=Space(...)}")
        space = _space(known["space"])
    _check_names(space.names)
    if missing := [name for name in (*space.names, "satisfied", "trials") if name not in table.names]:
        raise InputError(f"there is no column {missing[0]}; the columns are {', '.join(table.names) or 'not there'}")
    parameters = dict(space.parameters)
    counts = [name for name in table.names if name in (*_COUNTS, "seed", "point") or name.startswith(_BECAUSE)]
    arrays: dict[str, Array] = {}
    for name in [name for name in table.names if name in parameters] + counts:
        place, read = table.names.index(name), _real if name in parameters else _whole
        lines = zip(table.lines[1:], table.rows, strict=True)
        arrays[name] = np.array([read(row[place], f"line {line}, column {name}") for line, row in lines])
    length = len(table.rows)
    undecided = arrays.get("undecided", np.zeros(length, np.int64))
    if known is None:
        given = {name: arrays[name] for name in parameters if name in arrays}
        points = space.points(given if given else np.empty((length, 0)))
        return Observations(points, arrays["satisfied"], undecided, arrays["trials"])
    theta = np.column_stack([np.empty((length, 0)), *(arrays[name] for name in space.names)])
    try:
        pairs = np.column_stack([arrays["seed"], arrays["point"]]) if "seed" in arrays else None
        origin = origin_of(known["seed"], pairs, length)
        columns = {"theta": theta, **arrays, "undecided": undecided, "origin": origin}
        reasons = np.reshape([arrays[_BECAUSE + name] for name in known["reasons"]], (len(known["reasons"]), length))
        return observations_from(known, {**columns, "reasons": reasons}, space)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the comments before the table do not fit it: {error}") from error


def _known(comments: list[str]) -> Content | None:
    """What the comments say, if `write_csv` wrote them."""
    notes = {key.strip(): text.strip() for key, _, text in (comment.partition(":") for comment in comments)}
    if _MARK not in notes:
        return None
    if notes.pop(_MARK) != "1":
        raise InputError("a later version of sateen wrote this file; update sateen")
    try:
        return {"seed": None, **{key: json.loads(text) for key, text in notes.items()}}
    except ValueError as error:
        raise InputError(f"the comments before the table are damaged: {error}") from None


def _check_names(names: tuple[str, ...]) -> None:
    for name in names:
        if name in (*_COUNTS, "seed", "point") or name.startswith(_BECAUSE):
            raise InputError(f"a parameter called {name} looks like a column of counts; use save and load")


def _real(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no number") from None


def _whole(text: str, where: str) -> int:
    try:
        value = float(text)
        return int(value) if value.is_integer() and "." in text else int(text)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {text!r} is no whole number") from None
