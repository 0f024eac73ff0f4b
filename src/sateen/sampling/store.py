"""The store of campaigns: an SQLite file from which a campaign that was stopped resumes.

A campaign is known by a hash of all that decides its counts. Its runs are laid end to end (see `ledger.py`), and each
chunk of them is one row: an interval [first, stop) and its tally. The invariant on which everything rests:

    The intervals of a campaign are disjoint, and each row is the true tally of its interval.

A row is added in one transaction that holds the write lock from before it looks for overlaps until it is committed.
So of two processes that have made the same runs, in chunks cut alike or not, one finds the place taken and adds
nothing: no run is ever counted twice. Rows are never changed or removed. A process that is killed leaves whole rows
or none, and the sum over the rows, no matter who made them, is the campaign.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Final, TypedDict

import numpy as np

from sateen.core.fingerprints import checksum
from sateen.core.observations import Failure
from sateen.core.types import Array, Arrays, File
from sateen.files.plain import FAULTS, converted, expanded, fault_text, parse_json
from sateen.sampling.database import Database
from sateen.sampling.ledger import Chunk, Ledger, Tally

_MOST_WORDS: Final = 2**23  # bytes of a row besides its counts


class _Words(TypedDict):
    """What a row says besides its counts."""

    key: str
    runs: tuple[int, int]
    seconds: float
    failures: list[Failure]


class Store(Database):
    """A campaign in an open store, to be closed by `with`.

    It is known by the words and arrays that are given, and a new one if it is not there yet.
    """

    def __init__(self, file: File, asked: Mapping[str, object], arrays: Arrays, created: str) -> None:
        self.key = checksum(asked, arrays)
        super().__init__(file)
        try:
            with self.speaking(), self.writing():
                self.connection.execute(
                    "INSERT OR IGNORE INTO campaign (key, asked, created) VALUES (?, ?, ?)",
                    (self.key, json.dumps({**asked, "runs": _stretches(arrays["runs"])}), created),
                )
                question = "SELECT id FROM campaign WHERE key = ?"
                (self.number,) = self.connection.execute(question, (self.key,)).fetchone()
        except BaseException:
            self.connection.close()
            raise

    def add(self, chunk: Chunk) -> bool:
        """Commit a chunk, and say so; False, and nothing changed, if any of its runs is there already."""
        row = (self.number, chunk.first, chunk.stop, packed(self.key, chunk))
        with self.speaking(), self.writing():
            # The stored intervals are disjoint: if one overlaps, then the last that begins before the end does.
            last = self.connection.execute(
                "SELECT stop FROM chunk WHERE campaign = ? AND first < ? ORDER BY first DESC LIMIT 1",
                (self.number, chunk.stop),
            ).fetchone()
            free = last is None or last[0] <= chunk.first
            if free:
                self.connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?)", row)
        return free

    def load(self, ledger: Ledger) -> None:
        """Enter all that is stored into an empty ledger."""
        question = "SELECT first, stop, content FROM chunk WHERE campaign = ? ORDER BY first"
        with self.speaking(), closing(self.connection.execute(question, (self.number,))) as rows:
            for first, stop, content in rows:
                try:
                    ledger.add(unpacked(self.key, ledger, first, stop, content))
                except (*FAULTS, zlib.error) as error:
                    raise self.damaged(fault_text(error)) from error


def _stretches(runs: Array) -> list[list[int]]:
    """How many runs each point has, as a list of (points, runs of each): what `merge` must know of a campaign."""
    starts = np.flatnonzero(np.diff(runs, prepend=-1))
    lengths = np.diff(starts, append=len(runs))
    return [[points, each] for points, each in zip(lengths.tolist(), runs[starts].tolist(), strict=True)]


def packed(key: str, chunk: Chunk) -> bytes:
    """A chunk as bytes that say whose they are and that show damage: zlib ends them with a checksum."""
    failures = [asdict(failure) for failure in chunk.tally.failures]
    words = {"key": key, "runs": [chunk.first, chunk.stop], "seconds": chunk.seconds, "failures": failures}
    counts = [array.astype("<i8").tobytes() for array in (chunk.tally.satisfied, chunk.tally.undecided)]
    return zlib.compress(b"".join([json.dumps(words).encode(), b"\n", *counts]), 1)


def unpacked(key: str, ledger: Ledger, first: object, stop: object, content: object) -> Chunk:
    """The chunk in a row, if it is one that these runs can have."""
    if not isinstance(first, int) or not isinstance(stop, int) or not isinstance(content, bytes):
        raise ValueError("a row is not of two whole numbers and bytes")
    if not 0 <= first < stop <= ledger.total:
        raise ValueError(f"there are no runs {first} to {stop}")
    _, items = ledger.items(first, stop)
    middle, runs = ledger.size * len(items), items[:, 2]
    size = 8 * middle * (1 + len(ledger.reasons))
    text, _, table = expanded(content, size + _MOST_WORDS).partition(b"\n")
    words = converted(parse_json(text), _Words)
    if words["key"] != key or words["runs"] != (first, stop):
        raise ValueError(f"the row of the runs {first} to {stop} is about others")
    if len(table) != size:
        raise ValueError(f"the row of the runs {first} to {stop} has {len(table):,} bytes of counts, not {size:,}")
    counts = np.frombuffer(table, "<i8").astype(np.int64)
    satisfied = counts[:middle].reshape(ledger.size, len(items))
    undecided = counts[middle:].reshape(ledger.size, len(ledger.reasons), len(items))
    # Each by itself first: a sum of very large ones is no longer one.
    wrong = (counts < 0).any() or (satisfied > runs).any() or (undecided > runs).any()
    if wrong or (satisfied + undecided.sum(axis=1) > runs).any():
        raise ValueError(f"the row of the runs {first} to {stop} has more verdicts than runs")
    if not 0 <= words["seconds"] < math.inf:
        raise ValueError(f"the runs {first} to {stop} took {words['seconds']} seconds")
    return Chunk(first, stop, Tally(satisfied, undecided, tuple(words["failures"])), words["seconds"])
