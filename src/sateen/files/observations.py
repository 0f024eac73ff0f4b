"""Observations in files: in the container, and as a table in CSV."""

from __future__ import annotations

import codecs
import csv
import json
import os
from array import array
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, TextIO, TypeAlias, TypedDict

import numpy as np

from sateen.core.counts import origin_of
from sateen.core.errors import InputError
from sateen.core.observations import Failure, Observations
from sateen.core.reading import opened_table
from sateen.core.space import Points, Range, Scale, Space
from sateen.core.text import CsvTable, names_text, read_csv_table
from sateen.core.types import Array, Arrays, Content, File
from sateen.files.atomic import replacing
from sateen.files.container import read_container, write_container
from sateen.files.plain import FAULTS, converted, fault_text, parse_json

KIND: Final = "observations"
FORMAT: Final = 2
_MARK: Final = "sateen observations"
_COUNTS: Final = ("satisfied", "undecided", "trials")
_ARRAYS: Final = ("theta", *_COUNTS, "origin")
Parameter: TypeAlias = tuple[str, float | tuple[float, float, Scale]]
_SHOWN: Final = 40  # characters of a value that is not a number
_COMMENTS: Final = "restore the file, or delete the lines that begin with # and give the space"
_BECAUSE: Final = "undecided: "  # begins the name of a column of runs that are undecided for one reason


class _Known(TypedDict):
    """Everything of observations but the columns."""

    space: list[Parameter]
    design: str
    relevant: list[str]
    reasons: list[str]
    failures: list[Failure]
    seconds: float
    provenance: dict[str, Any]


def save(observations: Observations, file: File) -> None:
    """Write observations as one safe file."""
    write_container(file, KIND, FORMAT, observations_content(observations), observations_arrays(observations))


def load(file: File) -> Observations:
    """The observations that `save` wrote."""
    *_, content, arrays = read_container(file, {KIND: FORMAT})
    try:
        return observations_from(content, arrays)
    except FAULTS as error:
        raise InputError(f"{file} holds no valid observations: {fault_text(error)}") from error


def observations_content(observations: Observations) -> dict[str, object]:
    """Everything but the columns, as JSON has it."""
    return {
        "space": parameters_of(observations.space),
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
    """The observations with this content and these columns; none of their parts is believed unchecked."""
    known = converted(content, _Known)
    chosen = space or space_of(known["space"])
    rows, reasons = len(arrays["satisfied"]), known["reasons"]
    shapes = {"theta": (rows, len(chosen)), **dict.fromkeys(_COUNTS, (rows,)), "origin": (rows, 2)}
    for name, shape in {**shapes, "reasons": (len(reasons), rows)}.items():
        check_array(name, arrays[name], shape, np.float64 if name == "theta" else np.int64)
    return Observations(
        Points(arrays["theta"], chosen, known["design"]),
        *(arrays[name] for name in _COUNTS),
        origin=arrays["origin"],
        provenance=known["provenance"],
        relevant=known["relevant"],
        reasons=dict(zip(reasons, arrays["reasons"], strict=True)),
        failures=known["failures"],
        seconds=known["seconds"],
    )


def check_array(name: str, array: Array, shape: tuple[int, ...], kind: type[np.generic]) -> None:
    """Refuse an array in a file that does not have exactly this shape and type, before anything is made of it."""
    if array.shape != shape or array.dtype != kind:
        told = f"{array.dtype} of the shape {array.shape}"
        raise InputError(f"{name} is {told}, and should be {np.dtype(kind)} of the shape {shape}")


def parameters_of(space: Space) -> list[list[object]]:
    """The parameters of a space as JSON has them."""
    return [
        [name, [value.low, value.high, value.scale] if isinstance(value, Range) else value]
        for name, value in space.parameters
    ]


def space_of(parameters: list[Parameter]) -> Space:
    """The space with these parameters."""
    return Space({name: Range(*value) if isinstance(value, tuple) else value for name, value in parameters})


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
    with opened_table(file) as stream:
        try:
            return _read(stream, space)
        except FAULTS as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            argument, remedy = (error.argument, error.remedy) if isinstance(error, InputError) else ("", _COMMENTS)
            message = error.message if isinstance(error, InputError) else fault_text(error)
            raise InputError(f"{os.fspath(file)}: {message}", argument=argument, remedy=remedy) from None
        except csv.Error as error:
            raise InputError(f"{os.fspath(file)}: {error}") from None


def _read(stream: TextIO, space: Space | None) -> Observations:
    table = read_csv_table(stream)
    known = _known(table.comments)
    if space is None:
        if known is None:
            raise InputError("the file does not state its space", argument="space", remedy="pass {space=Space(...)}")
        space = space_of(known["space"])
    _check_names(space.names)
    if missing := [name for name in (*space.names, "satisfied", "trials") if name not in table.names]:
        raise InputError(
            f"there is no column {names_text(missing[:1])}; the columns are {names_text(table.names) or 'missing'}"
        )
    arrays = _columns(table, dict(space.parameters))
    length = len(arrays["satisfied"])
    undecided = arrays.get("undecided", np.zeros(length, np.int64))
    if known is None:
        given = {name: arrays[name] for name, _ in space.parameters if name in arrays}
        points = space.points(given if given else np.empty((length, 0)))
        return Observations(points, arrays["satisfied"], undecided, arrays["trials"])
    theta = np.column_stack([np.empty((length, 0)), *(arrays[name] for name in space.names)])
    pairs = np.column_stack([arrays["seed"], arrays["point"]]) if "seed" in arrays else None
    origin = origin_of(known["seed"], pairs, length)
    columns = {"theta": theta, **arrays, "undecided": undecided, "origin": origin}
    reasons = np.reshape([arrays[_BECAUSE + name] for name in known["reasons"]], (len(known["reasons"]), length))
    return observations_from(known, {**columns, "reasons": reasons.astype(np.int64)}, space)


def _columns(table: CsvTable, parameters: Mapping[str, object]) -> dict[str, Array]:
    """The columns of parameters and counts, each read into numbers as it comes; of two of one name, the first."""
    kept: dict[str, tuple[int, array[Any]]] = {}
    for place, name in enumerate(table.names):
        if name in parameters or name in (*_COUNTS, "seed", "point") or name.startswith(_BECAUSE):
            kept.setdefault(name, (place, array("d" if name in parameters else "q")))
    for line, row in table.rows:
        for name, (place, column) in kept.items():
            column.append((_real if name in parameters else _whole)(row[place], line, name))
    return {name: np.array(column) for name, (_, column) in kept.items()}


class _Comments(_Known):
    """What the comments before a table say."""

    seed: int | None


def _known(comments: list[str]) -> _Comments | None:
    """What the comments say, if `write_csv` wrote them."""
    notes = {key.strip(): text.strip() for key, _, text in (comment.partition(":") for comment in comments)}
    if _MARK not in notes:
        return None
    if notes.pop(_MARK) != "1":
        raise InputError("a later version of sateen wrote this file; update sateen")
    try:
        known = {key: parse_json(text) for key, text in notes.items() if key in _Comments.__annotations__}
        return converted({"seed": None, **known}, _Comments)
    except ValueError as error:
        raise InputError(f"the comments before the table are damaged: {error}", remedy=_COMMENTS) from None


def _check_names(names: tuple[str, ...]) -> None:
    for name in names:
        if name in (*_COUNTS, "seed", "point") or name.startswith(_BECAUSE):
            raise InputError(f"a parameter called {name} looks like a column of counts; use save and load")


def _real(text: str, line: int, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"line {line}, column {name}: {text[:_SHOWN]!r} is not a number") from None


def _whole(text: str, line: int, name: str) -> int:
    try:
        value = int(text) if "." not in text and len(text) < _SHOWN else float(text)
        if value != int(value) or not -(2**63) <= value < 2**63:
            raise ValueError
        return int(value)
    except (ValueError, OverflowError):
        message = f"line {line}, column {name}: {text[:_SHOWN]!r} is not a whole number, or is too large"
        raise InputError(message) from None
