"""The store of campaigns: an SQLite file from which a campaign that was stopped goes on.

A campaign is known by a hash of all that decides its counts. Its runs are laid end to end (see `ledger.py`), and each
chunk of them is one row: an interval [first, stop) and its tally. The invariant on which everything rests:

    The intervals of a campaign are disjoint, and each row is the true tally of its interval.

A row is added in one transaction that holds the write lock from before it looks for overlaps until it is committed.
So of two processes that have made the same runs, in chunks cut alike or not, one finds the place taken and adds
nothing: no run is ever counted twice. Rows are never changed or removed. A process that is killed leaves whole rows
or none, and the sum over the rows, whoever made them, is the campaign.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from typing import Final, TypedDict

import numpy as np

from sateen.core.errors import StoreError
from sateen.core.fingerprints import checksum
from sateen.core.observations import Failure
from sateen.core.types import Arrays, File
from sateen.files.plain import FAULTS, converted, fault_text, parse_json
from sateen.sampling.ledger import Chunk, Ledger, Tally

_MARK: Final = 0x5A7EE401  # by which SQLite files say whose they are
_VERSION: Final = 1
_PATIENCE: Final = 60.0  # seconds to wait for another process that writes
_SCHEMA: Final = """
    CREATE TABLE campaign (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, asked TEXT NOT NULL, created TEXT NOT NULL
    );
    CREATE TABLE chunk (
        campaign INTEGER NOT NULL REFERENCES campaign (id), first INTEGER NOT NULL, stop INTEGER NOT NULL,
        content BLOB NOT NULL, PRIMARY KEY (campaign, first)
    ) WITHOUT ROWID;
"""
_MOST_WORDS: Final = 2**23  # bytes of a row besides its counts
_MOST_VALUE: Final = 2**28  # bytes of any value in the file
_BESIDE: Final = ("-wal", "-shm", "-journal")  # how the names of files end that SQLite keeps beside it
_AGAIN: Final = "run the same again: what is stored is kept"
_WORDS: Final = {
    "SQLITE_NOTADB": "is no store of sateen\n  it was not touched; choose another name",
    "SQLITE_CORRUPT": "is damaged\n  move it away, or bring back a copy, and run the same again",
    "SQLITE_TOOBIG": f"is damaged: a row has more than {_MOST_VALUE:,} bytes\n  move it away, and run the same again",
    "SQLITE_FULL": f"cannot grow: the disk is full\n  free some space, then {_AGAIN}",
    "SQLITE_IOERR": f"cannot be read or written; is the disk full, or taken away?\n  mend that, then {_AGAIN}",
    "SQLITE_READONLY": "cannot be written\n  allow it, or choose a name in another folder",
    "SQLITE_CANTOPEN": "cannot be opened\n  look at the permissions of the file and its folder, or choose another",
    "SQLITE_BUSY": f"is held by another process, for more than {_PATIENCE:g} seconds\n  when that is over, {_AGAIN}",
}


class _Words(TypedDict):
    """What a row says besides its counts."""

    key: str
    runs: tuple[int, int]
    seconds: float
    failures: list[Failure]


class Store:
    """A campaign in an open store, to be closed by `with`.

    It is known by the words and arrays that are given, and a new one if it is not there yet.
    """

    def __init__(self, file: File, asked: Mapping[str, object], arrays: Arrays, created: str) -> None:
        self.key = checksum(asked, arrays)
        self.file = os.fspath(file)
        path = os.path.abspath(self.file)
        folder = os.path.dirname(path)
        if os.path.isdir(path):
            raise StoreError(f"the store {self.file} is a folder\n  name a file in it, such as {self.file}/runs.db")
        if not os.path.isdir(folder):
            raise StoreError(f"the store {self.file} cannot be made: there is no folder {folder}\n  make it first")
        self._check_files(os.path.realpath(path))
        with self._speaking():
            self.connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
        try:
            self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
            with self._speaking():
                self._prepare()
                with self._writing():
                    self.connection.execute(
                        "INSERT OR IGNORE INTO campaign (key, asked, created) VALUES (?, ?, ?)",
                        (self.key, json.dumps(asked), created),
                    )
                    question = "SELECT id FROM campaign WHERE key = ?"
                    (self.number,) = self.connection.execute(question, (self.key,)).fetchone()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        # What is committed is in the file, or in the log beside it, whether or not closing succeeds.
        with suppress(sqlite3.Error):
            self.connection.close()

    def add(self, chunk: Chunk) -> bool:
        """Commit a chunk, and say so; False, and nothing changed, if any of its runs is there already."""
        row = (self.number, chunk.first, chunk.stop, _packed(self.key, chunk))
        with self._speaking(), self._writing():
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
        with self._speaking(), closing(self.connection.execute(question, (self.number,))) as rows:
            for first, stop, content in rows:
                try:
                    ledger.add(_unpacked(self.key, ledger, first, stop, content))
                except (*FAULTS, zlib.error) as error:
                    raise self.damaged(fault_text(error)) from error

    def damaged(self, why: object) -> StoreError:
        """The error of a store whose rows cannot be right."""
        return StoreError(f"the store {self.file} {_WORDS['SQLITE_CORRUPT']}\n  ({why})")

    def _check_files(self, path: str) -> None:
        """Only ordinary files are opened; those that SQLite keeps beside the store, not through a link either."""
        for name in (path, *(path + end for end in _BESIDE)):
            try:
                form = os.lstat(name).st_mode
            except OSError:
                continue  # it is not there, or SQLite will say why not
            if not stat.S_ISREG(form):
                what = "a link" if stat.S_ISLNK(form) else "not a regular file"
                raise StoreError(f"the store {self.file} cannot be used: {name} is {what}\n  move it away")

    def _prepare(self) -> None:
        """Look before anything is written, then make what is missing.

        The tables must be just those that were made: SQLite would compute what any others say, for as long as it takes.
        """
        self.connection.execute("PRAGMA trusted_schema = OFF")
        if self._one("SELECT count(*) FROM sqlite_master"):
            self._check_mark()
            self._check_schema()
        if self._one("PRAGMA quick_check(1)") != "ok":
            raise StoreError(f"the store {self.file} {_WORDS['SQLITE_CORRUPT']}")
        self._set_log()
        self.connection.execute("PRAGMA synchronous = NORMAL")
        with self._writing():
            if not self._one("SELECT count(*) FROM sqlite_master"):
                for statement in _SCHEMA.split(";"):
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA application_id = {_MARK}")
                self.connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._check_mark()

    def _check_mark(self) -> None:
        if self._one("PRAGMA application_id") != _MARK:
            raise StoreError(f"the store {self.file} {_WORDS['SQLITE_NOTADB']}")
        if (version := self._one("PRAGMA user_version")) != _VERSION:
            raise StoreError(f"the store {self.file} is of version {version}, not {_VERSION}\n  update sateen")

    def _check_schema(self) -> None:
        known = [" ".join(statement.split()) for statement in _SCHEMA.split(";") if statement.strip()]
        rows = self.connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT 9")
        if [" ".join(str(sql).split()) for (sql,) in rows] != known:
            raise self.damaged("its tables are not those of a store")

    def _set_log(self) -> None:
        """Write-ahead logging; the switch to it needs the file for itself, and SQLite does not wait for that."""
        start = time.monotonic()
        while True:
            try:
                self._one("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not _name(error).startswith("SQLITE_BUSY") or time.monotonic() - start > _PATIENCE:
                    raise
                time.sleep(0.02)

    def _one(self, question: str) -> object:
        (answer,) = self.connection.execute(question).fetchone()
        return answer

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that holds the write lock from its beginning; all of it is kept, or nothing."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # some errors have rolled it back already
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Errors of SQLite say which file, what and what next."""
        try:
            yield
        except sqlite3.Error as error:
            name = _name(error)
            words = next((words for kind, words in _WORDS.items() if name.startswith(kind)), f"fails\n  then {_AGAIN}")
            raise StoreError(f"the store {self.file} {words}\n  (SQLite: {error})") from error
        except UnicodeDecodeError as error:  # the text of a table, or of a row
            raise self.damaged(error) from error


def _packed(key: str, chunk: Chunk) -> bytes:
    """A chunk as bytes that say whose they are and that show damage: zlib ends them with a checksum."""
    failures = [asdict(failure) for failure in chunk.tally.failures]
    words = {"key": key, "runs": [chunk.first, chunk.stop], "seconds": chunk.seconds, "failures": failures}
    counts = [array.astype("<i8").tobytes() for array in (chunk.tally.satisfied, chunk.tally.undecided)]
    return zlib.compress(b"".join([json.dumps(words).encode(), b"\n", *counts]), 1)


def _unpacked(key: str, ledger: Ledger, first: object, stop: object, content: object) -> Chunk:
    """The chunk in a row, if it is one that these runs can have."""
    if not isinstance(first, int) or not isinstance(stop, int) or not isinstance(content, bytes):
        raise ValueError("a row is not of two whole numbers and bytes")
    if not 0 <= first < stop <= ledger.total:
        raise ValueError(f"there are no runs {first} to {stop}")
    _, items = ledger.items(first, stop)
    middle, runs = ledger.size * len(items), items[:, 2]
    size = 8 * middle * (1 + len(ledger.reasons))
    text, _, table = _expanded(content, size + _MOST_WORDS).partition(b"\n")
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


def _expanded(content: bytes, most: int) -> bytes:
    """What was compressed, which may be so many bytes."""
    expander = zlib.decompressobj()
    data = expander.decompress(content, most)
    if not expander.eof or expander.unused_data:
        raise ValueError(f"a row is cut short, or has more than {most:,} bytes")
    return data


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", ""))
