"""Runs that a worker makes: an order says which, as text; parameters and counts travel as bytes.

An order has the model and the formulas as text, the seed, the caps, and who has written it: a worker with another
sateen refuses. A black box is the exception, a function that the pool itself must be able to send. What comes back is
checked against what was asked, like a row of a store.
"""

from __future__ import annotations

import json
import platform
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final

import numpy as np

from sateen.core.code import SentFunction, received, sendable
from sateen.core.errors import InputError, PoolError
from sateen.core.imports import Imports, check_unnamed, imports_of
from sateen.core.observations import Failure
from sateen.core.types import FloatArray, IntArray
from sateen.files.observations import parameters_of, space_of
from sateen.files.plain import FAULTS, converted, expanded, fault_text
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.pools.crew import WrongAnswer
from sateen.pools.messages import answer_of, answering, check_identity, identity, packed
from sateen.sampling.ledger import MOST_FAILURES, Tally
from sateen.sampling.source import BlackBox, Function, Simulated, Source, name_of

_SMALL: Final = tuple(np.dtype(kind) for kind in ("u1", "<u2", "<u4", "<i8"))


def order_of(source: Source) -> bytes:
    """All that a worker must know to make runs, besides their parameters and the function of a black box."""
    formulas = [[str(formula), formula.end] for formula in source.formulas]
    words: dict[str, object] = {"identity": identity(), "formulas": formulas, "seed": source.seed}
    if isinstance(source, BlackBox):
        words["space"] = parameters_of(source.space)
    else:
        words |= {
            "model": str(source.model),
            "columns": source.columns,
            "max_events": source.max_events,
            "max_time": source.max_time,
            "max_population": source.max_population,
            "engine": source.identity()["engine"],
        }
    order = zlib.compress(json.dumps(words).encode())
    if isinstance(source, Simulated):
        _simulated(order)  # a model that its text does not give again is refused here, before anything is sent
    return order


def code_of(source: Source) -> tuple[Imports | None, Function | SentFunction | None]:
    """What must be sent besides the order: a black box, and before it which modules it imports."""
    if not isinstance(source, BlackBox):
        return None, None
    function: Function | SentFunction = sendable(source.function)
    return imports_of(function, name_of(source.function)), function


def spans_of(items: IntArray) -> bytes:
    """The first run and the number of runs at each point of a piece: mostly the same, which takes few bytes."""
    return zlib.compress(items[:, 1:].astype("<i8").tobytes(order="F"), 1)


@answering
def count(
    order: bytes,
    imports: Imports | None,
    function: Function | SentFunction | None,
    point: int,
    theta: bytes,
    spans: bytes,
) -> bytes:
    """The tally of the runs at points from a first one on, on a worker; other processes find it by its name."""
    source = _simulated(order) if function is None else _black_box(order, function)
    if imports is not None:
        imports.check()
    begin, number = np.frombuffer(zlib.decompress(spans), "<i8").reshape(2, -1)
    items = np.column_stack([np.arange(point, point + len(begin)), begin, number]).astype(np.int64)
    rows = np.frombuffer(theta, "<f8").reshape(len(items), -1)
    start = time.perf_counter()
    tally = source.count(rows, items)
    seconds = time.perf_counter() - start
    if imports is not None:
        imports.check()
    counts = np.concatenate([tally.satisfied[:, None], tally.undecided], axis=1)
    some = counts if counts[:, 1:].any() else counts[:, :1]
    kind = next(kind for kind in _SMALL if some.max(initial=0) <= np.iinfo(kind).max)
    failures = [asdict(failure) for failure in tally.failures]
    words = {"kind": kind.str, "seconds": seconds, "failures": failures}
    if imports is not None and (unnamed := imports.unnamed()):
        words["modules"] = unnamed
    return packed(words, zlib.compress(some.astype(kind).tobytes(), 1))


def tally_of(message: object, source: Source, items: IntArray, modules: dict[str, str]) -> tuple[Tally, float]:
    """The tally in an answer, and the seconds it took; WrongAnswer for counts that these runs cannot have.

    `modules` keeps the versions of modules that only runs have named.
    """
    words, parts = answer_of(message)
    try:
        check_unnamed(converted(words.get("modules", {}), dict[str, str]), modules)
        return _checked(words, parts, source, items)
    except (*FAULTS, zlib.error) as error:
        raise WrongAnswer(f"a worker answered with counts that these runs cannot have: {fault_text(error)}") from error


def _checked(words: Mapping[str, Any], parts: list[bytes], source: Source, items: IntArray) -> tuple[Tally, float]:
    kind, reasons, runs = np.dtype(str(words["kind"])), len(source.reasons), items[:, 2]
    if kind not in _SMALL:
        raise ValueError(f"they are of the type {kind}")
    (part,) = parts
    counts = np.frombuffer(expanded(part, 8 * source.size * (1 + reasons) * len(items)), kind).astype(np.int64)
    table = np.zeros((source.size, 1 + reasons, len(items)), np.int64)
    some = counts.reshape(source.size, -1, len(items))
    if some.shape[1] not in (1, 1 + reasons):
        raise ValueError(f"there are {len(counts):,} of them")
    table[:, : some.shape[1]] = some
    if (table < 0).any() or (table > runs).any() or (table.sum(axis=1) > runs).any():
        raise ValueError("there are more verdicts than runs")
    seconds = float(words["seconds"])
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"they took {seconds} seconds")
    failures = converted(words["failures"], tuple[Failure, ...])
    if len(failures) > MOST_FAILURES:
        raise ValueError(f"there are {len(failures):,} failures")
    return Tally(table[:, 0], table[:, 1:], failures), seconds


@lru_cache(maxsize=8)
def _simulated(order: bytes) -> Simulated:
    """The source of an order, one for each process, so that its kernel is compiled once."""
    words = _read(order)
    columns, limits = tuple(words["columns"]), (words["max_events"], words["max_time"], words["max_population"])
    source = Simulated(Model.parse(words["model"]), _formulas(words), columns, words["seed"], *limits)
    if source.identity()["engine"] != words["engine"]:
        raise InputError("the text of this model does not give the same model again\n  run it on this machine")
    return source


def _black_box(order: bytes, function: Function | SentFunction) -> BlackBox:
    words = _read(order)
    space = [(name, tuple(value) if isinstance(value, list) else value) for name, value in words["space"]]
    try:
        itself: Function = received(function)
    except InputError as error:
        raise PoolError(
            f"a worker on {platform.node()} cannot run the black box: {error}\n"
            "  install there what your own code imports, then run the same again: what is stored is kept"
        ) from error
    return BlackBox(itself, _formulas(words), space_of(space), words["seed"])


@lru_cache(maxsize=8)
def _read(order: bytes) -> dict[str, Any]:
    words: dict[str, Any] = json.loads(zlib.decompress(order))
    check_identity(words["identity"])
    return words


def _formulas(words: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(stl(text) if end is None else stl(text, end=end) for text, end in words["formulas"])


def theta_bytes(theta: FloatArray) -> bytes:
    """Parameters as they travel."""
    return np.ascontiguousarray(theta, "<f8").tobytes()
