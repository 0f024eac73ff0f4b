"""The file of a store: SQLite, opened with care, because it may be damaged, foreign, or in use by others.

It has two kinds of content: campaigns with their runs (`store.py`), and notes, which are decisions that must not be
made twice (`notes.py`).
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import Final, Self

from sateen.core.errors import StoreError
from sateen.core.types import File

_MARK: Final = 0x5A7EE401  # by which SQLite files say whose they are
_VERSION: Final = 2
_PATIENCE: Final = 60.0  # seconds to wait for another process that writes
_CAMPAIGNS: Final = (
    """CREATE TABLE campaign (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, asked TEXT NOT NULL, created TEXT NOT NULL
    )""",
    """CREATE TABLE chunk (
        campaign INTEGER NOT NULL REFERENCES campaign (id), first INTEGER NOT NULL, stop INTEGER NOT NULL,
        content BLOB NOT NULL, PRIMARY KEY (campaign, first)
    ) WITHOUT ROWID""",
)
_NOTES: Final = "CREATE TABLE note (key TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID"
_TABLES: Final = {1: _CAMPAIGNS, 2: (*_CAMPAIGNS, _NOTES)}  # by version
_MOST_VALUE: Final = 2**28  # bytes of any value in the file
_BESIDE: Final = ("-wal", "-shm", "-journal")  # how the names of files end that SQLite keeps next to it
_AGAIN: Final = "run the same again: what is stored is kept"
_WORDS: Final = {
    "SQLITE_NOTADB": "is not a store of sateen\n  it was not touched; choose another name",
    "SQLITE_CORRUPT": "is damaged\n  move it away, or restore a copy, and run the same again",
    "SQLITE_TOOBIG": f"is damaged: a row has more than {_MOST_VALUE:,} bytes\n  move it away, and run the same again",
    "SQLITE_FULL": f"cannot grow: the disk is full\n  free some space, then {_AGAIN}",
    "SQLITE_IOERR": f"cannot be read or written; is the disk full, or removed?\n  fix that, then {_AGAIN}",
    "SQLITE_READONLY": "cannot be written\n  allow it, or choose a name in another folder",
    "SQLITE_CANTOPEN": "cannot be opened\n  look at the permissions of the file and its folder, or choose another",
    "SQLITE_BUSY": f"is held by another process, for more than {_PATIENCE:g} seconds\n  when that is over, {_AGAIN}",
}


class Database:
    """An open store, to be closed by `with`; it is made if it is not there.

    One that is only to be read must be there. It is left as it is, and its folder need not be open to be written.
    """

    def __init__(self, file: File, *, read_only: bool = False) -> None:
        self.file = os.fspath(file)
        path = os.path.abspath(self.file)
        folder = os.path.dirname(path)
        if os.path.isdir(path):
            raise StoreError(f"the store {self.file} is a folder\n  name a file in it, such as {self.file}/runs.db")
        if not os.path.isdir(folder):
            raise StoreError(f"the store {self.file} cannot be made: there is no folder {folder}\n  make it first")
        self._check_files(os.path.realpath(path))
        name = path
        if read_only:
            if not os.path.isfile(path):
                raise StoreError(f"there is no store {self.file}")
            # Where there is no log, nobody writes: then SQLite needs no files of its own next to it.
            still = "" if os.path.exists(os.path.realpath(path) + _BESIDE[0]) else "&immutable=1"
            name = f"{FilePath(path).as_uri()}?mode=ro{still}"
        with self.speaking():
            self.connection = sqlite3.connect(name, timeout=_PATIENCE, isolation_level=None, uri=read_only)
        try:
            self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
            with self.speaking():
                self.empty = not self._look()
                if not read_only:
                    self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What is committed is in the file, or in the log next to it, whether or not closing succeeds.
        with suppress(sqlite3.Error):
            self.connection.close()

    def damaged(self, why: object) -> StoreError:
        """The error of a store whose rows cannot be right."""
        return StoreError(f"the store {self.file} {_WORDS['SQLITE_CORRUPT']}\n  ({why})")

    def _check_files(self, path: str) -> None:
        """Only ordinary files are opened; those that SQLite keeps next to the store, not through a link either."""
        for name in (path, *(path + end for end in _BESIDE)):
            try:
                form = os.lstat(name).st_mode
            except OSError:
                continue  # it is not there, or SQLite will say why not
            if not stat.S_ISREG(form):
                what = "a link" if stat.S_ISLNK(form) else "not a regular file"
                raise StoreError(f"the store {self.file} cannot be used: {name} is {what}\n  move it away")

    def _look(self) -> bool:
        """Check what is there before anything is made of it, and say whether there are tables.

        The tables must be just those that were made: SQLite would compute what any others say, for as long as it takes.
        """
        self.connection.execute("PRAGMA trusted_schema = OFF")
        if tables := bool(self._one("SELECT count(*) FROM sqlite_master")):
            self._check_schema(self._check_mark())
        if self._one("PRAGMA quick_check(1)") != "ok":
            raise StoreError(f"the store {self.file} {_WORDS['SQLITE_CORRUPT']}")
        return tables

    def _prepare(self) -> None:
        """Make what is missing."""
        self._set_log()
        self.connection.execute("PRAGMA synchronous = NORMAL")
        with self.writing():
            there = 0
            if self._one("SELECT count(*) FROM sqlite_master"):
                there = len(_TABLES[self._check_mark()])
            for statement in _TABLES[_VERSION][there:]:  # all of a new store; those that an older one lacks
                self.connection.execute(statement)
            if there < len(_TABLES[_VERSION]):
                self.connection.execute(f"PRAGMA application_id = {_MARK}")
                self.connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._check_mark()

    def _check_mark(self) -> int:
        """The version of the store, if it is one."""
        if self._one("PRAGMA application_id") != _MARK:
            raise StoreError(f"the store {self.file} {_WORDS['SQLITE_NOTADB']}")
        version = self._one("PRAGMA user_version")
        if not isinstance(version, int) or version not in _TABLES:
            raise StoreError(f"the store {self.file} is of version {version}, not {_VERSION}\n  update sateen")
        return version

    def _check_schema(self, version: int) -> None:
        known = [" ".join(statement.split()) for statement in _TABLES[version]]
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
    def writing(self) -> Iterator[None]:
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
    def speaking(self) -> Iterator[None]:
        """Errors of SQLite say which file, what and what next."""
        try:
            yield
        except sqlite3.Error as error:
            name = _name(error)
            words = next((words for kind, words in _WORDS.items() if name.startswith(kind)), f"fails\n  then {_AGAIN}")
            raise StoreError(f"the store {self.file} {words}\n  (SQLite: {error})") from error
        except UnicodeDecodeError as error:  # the text of a table, or of a row
            raise self.damaged(error) from error


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", ""))
