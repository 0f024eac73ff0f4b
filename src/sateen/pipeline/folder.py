"""The folder of a result: one run at a time in it, and files that are whole or not there.

    sir-result/
      result.json        the results: verdicts, claims, scores, predictions; the same for every run of the study
      provenance.json    their origin: versions, seeds, hashes, times, the study itself, the command
      stages/            the file of every finished task; its name ends in the fingerprint of what it depends on
      stages/runs.db     the runs of the model as they are made, from which an interrupted simulation resumes

A task is finished if and only if its file is there, for files appear whole, by one rename. So nothing has to be
remembered of a run that was killed: the next one looks which files are there.

A folder may come from someone else. So nothing in it is read or written through a link, every file says by a checksum
whether it is what was written, and no name in a file leads out of the folder.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Final, Generic, TypeVar

from sateen.core.errors import InputError, Interrupted, SateenError, StoreError
from sateen.core.fingerprints import checksum, fingerprint, plain_json
from sateen.core.reading import read_bytes
from sateen.files.atomic import write_text
from sateen.files.plain import FAULTS, fault_text, parse_json

_Value_co = TypeVar("_Value_co", covariant=True)
_LOCK: Final = ".lock"
_STAGES: Final = "stages"
_CHECKSUM: Final = "checksum"  # the key of the checksum of a file
_DIGITS: Final = 16  # of a fingerprint, in the name of a file
_MOST_JSON: Final = 2**28  # bytes of a JSON file
_SHOWN: Final = 60  # characters of a name that is refused
ANEW: Final = "run the study again, which rewrites it"
_REMEDY: Final = "free some space, or repair what is wrong, then run the same again: finished tasks are kept"


def read_checksummed(file: FilePath) -> dict[str, Any]:
    """The content of a file that `write_checksummed` wrote, if it matches its checksum."""
    stored = _read_json(file)
    content = stored.get("content")
    if not isinstance(content, dict) or stored.get(_CHECKSUM) != checksum(content, {}):
        raise InputError(f"{file} is damaged: its content does not match its checksum")
    return content


def read_summary(file: FilePath, format_number: int) -> dict[str, Any]:
    """The content of a file that `write_summary` wrote, if it is of this format and was not changed since."""
    stored = _read_json(file)
    if stored.get("format") != format_number:
        given = ascii(stored.get("format"))[:_DIGITS]
        raise InputError(f"{file} is of the format {given}, and this sateen reads {format_number}")
    if stored.pop(_CHECKSUM, None) != checksum(stored, {}):
        raise InputError(f"{file} was changed after it was written: it does not match its checksum")
    return stored


def _read_json(file: FilePath) -> dict[str, Any]:
    try:
        content = parse_json(read_bytes(file, _MOST_JSON))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{file} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{file} is damaged: it is a {type(content).__name__}, and should be an object with keys")
    return content


def write_json(file: FilePath, content: Mapping[str, object]) -> None:
    """Write plain data; whatever happens, the file is whole, or what it was before."""
    write_text(file, json.dumps(plain_json(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_checksummed(file: FilePath, content: Mapping[str, object]) -> None:
    """Write plain data with a checksum, so that not a digit can change unnoticed."""
    write_json(file, {_CHECKSUM: fingerprint(content), "content": content})


def write_summary(file: FilePath, content: Mapping[str, object]) -> None:
    """Write plain data for other programs too: its own keys, one of which is "format", and a checksum over them."""
    write_json(file, {**content, _CHECKSUM: fingerprint(content)})


@dataclass(frozen=True, slots=True)
class CachedFile(Generic[_Value_co]):
    """The file of a result, how it is read, and what to do if it is damaged."""

    file: FilePath
    read: Callable[[FilePath], _Value_co]
    remedy: str = "delete the file and run the study again: only this file is recomputed"

    def value(self) -> _Value_co:
        """What the file has; if it is damaged, or a link, an error that says how it is recomputed."""
        try:
            if self.file.is_symlink():
                raise InputError(f"{self.file} is a link, and links in a result folder are not followed")
            return self.read(self.file)
        except InputError as error:
            message = str(error).splitlines()[0]
            raise StoreError(f"{message}\n  {self.remedy}") from error
        except FAULTS as error:
            raise StoreError(f"{self.file} is invalid: {fault_text(error)}\n  {self.remedy}") from error
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror or error}\n  {self.remedy}") from None


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A folder with the results of a pipeline, which may not be there yet; `again` says what resumes a run."""

    path: FilePath
    again: str = "run the same again"

    @property
    def stages(self) -> FilePath:
        """Where the files of finished tasks are."""
        return self.path / _STAGES

    @property
    def result(self) -> FilePath:
        """The results."""
        return self.path / "result.json"

    @property
    def provenance(self) -> FilePath:
        """How they were computed."""
        return self.path / "provenance.json"

    def file(self, name: str, key: str, suffix: str) -> FilePath:
        """The file of the task with a name and a fingerprint."""
        return self.stages / f"{name}.{key[:_DIGITS]}{suffix}"

    def named(self, name: object) -> FilePath:
        """The file of a task by the name that a result gives it; a name that leads out of the folder is refused."""
        if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
            raise InputError(f"it names {ascii(name)[:_SHOWN]}, which is not a file in {self.stages}")
        return self.stages / name

    def check(self) -> None:
        """Refuse a folder with a pipe or a device in it, or with a link where a file is opened and not replaced."""
        for folder, linked in ((self.path, (_STAGES, _LOCK)), (self.stages, None)):
            for entry in folder.iterdir() if folder.is_dir() else ():
                form = entry.lstat().st_mode
                link = stat.S_ISLNK(form) and (linked is None or entry.name in linked)
                if link or not (stat.S_ISLNK(form) or stat.S_ISREG(form) or stat.S_ISDIR(form)):
                    what = "a link" if link else "a pipe or a device"
                    raise StoreError(
                        f"{entry} is {what}, and a result folder has ordinary files only\n"
                        "  delete it, and run the study again"
                    )

    def check_idle(self) -> None:
        """Refuse a folder in which a run is at work; the folder itself need not be open to be written."""
        self.check()
        try:
            lock = os.open(self.path / _LOCK, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot read the folder {self.path}: {error.strerror or error}\n  allow it") from None
        try:
            if not _locked(lock, shared=True):
                raise StoreError(f"a run is in progress in {self.path}\n  wait until it has ended, or leave it out")
        finally:
            os.close(lock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder, made if it is not there, and held against other runs. The system frees it when a process ends,
        however it does. Ctrl-C becomes an error that says how to resume."""
        try:
            self.check()
            if self.path.is_dir() and any(self.path.iterdir()) and not self.stages.is_dir():
                raise StoreError(
                    f"{self.path} has files, and none of a study\n  choose another folder, or an empty one"
                )
            self.stages.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise StoreError(
                f"cannot write to the folder {self.path}: {error.strerror or error}\n"
                "  allow it, or choose another folder"
            ) from None
        try:
            if not _locked(lock):
                raise StoreError(
                    f"another run is in progress in {self.path}\n  wait until it has ended, or choose another folder"
                )
            self._clear()
            try:
                yield
            except KeyboardInterrupt as stop:
                message = f"{stop}\n" if isinstance(stop, Interrupted) else ""
                raise Interrupted(f"{message}what is finished is in {self.path}; {self.again} to resume") from None
            finally:
                self._clear()
        finally:
            os.close(lock)  # which frees it

    def _clear(self) -> None:
        """Half-written files, of a process that was killed while it wrote, go."""
        for part in (*self.stages.glob(".*.part"), *self.path.glob(".*.part")):
            if not part.is_dir():
                part.unlink(missing_ok=True)

    @contextmanager
    def writing(self, file: FilePath) -> Iterator[None]:
        """What is written inside is `file`; if that fails, the error says what is kept and what next."""
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write {file}: {error.strerror or error}\n  {_REMEDY}") from None
        except MemoryError as error:
            raise SateenError(
                f"there is not enough memory to compute {file.name}: {str(error) or 'no more could be had'}\n"
                f"  what is finished is kept; {self.again} with fewer workers, or where there is more memory"
            ) from None
        except InputError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            raise StoreError(f"{error}\n  {_REMEDY}") from None


def _locked(lock: int, *, shared: bool = False) -> bool:
    """Whether the open file is now held by this process, or another one holds it; `shared`, with others that read."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
