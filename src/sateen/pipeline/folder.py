"""The folder of a result: one run at a time in it, and files that are whole or not there.

    sir-result/
      result.json        what was found: verdicts, claims, scores, predictions; the same for every run of the study
      provenance.json    how: versions, seeds, hashes, times, the study itself, the command
      stages/            every finished stage, in a file whose name ends in the fingerprint of what it depends on
      stages/runs.db     the runs of the model as they are made, from which a campaign that was stopped goes on

A stage is finished if and only if its file is there, for files appear whole, by one rename. So nothing has to be
remembered of a run that was killed: the next one looks which files are there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Final, Generic, TypeVar

from sateen.core.errors import InputError, StoreError
from sateen.core.fingerprints import fingerprint, plain_json
from sateen.files.atomic import replacing

__all__ = ["CachedFile", "ResultFolder", "read_checksummed", "read_json"]

_Value = TypeVar("_Value")
_LOCK: Final = ".lock"
_STAGES: Final = "stages"
_DIGITS: Final = 16  # of a fingerprint, in the name of a file
_MEND: Final = "free some space, or mend what is wrong, then run the same again: finished stages are kept"


def read_json(file: FilePath) -> dict[str, Any]:
    """The object in a file; what is none is damaged."""
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{file} is damaged: it is a {type(content).__name__}, and should be an object with keys")
    return content


def read_checksummed(file: FilePath) -> dict[str, Any]:
    """The content of a file that `write_checksummed` wrote, if it matches its checksum."""
    told = read_json(file)
    content = told.get("content")
    if not isinstance(content, dict) or told.get("checksum") != fingerprint(content):
        raise InputError(f"{file} is damaged: its content does not match its checksum")
    return content


@dataclass(frozen=True, slots=True)
class CachedFile(Generic[_Value]):
    """A finished stage: its file, and how it is read. `key` is the fingerprint of what it depends on."""

    file: FilePath
    key: str
    read: Callable[[FilePath], _Value]

    def value(self) -> _Value:
        """What the file has; if it is damaged, an error that says how the stage is made anew."""
        remedy = "delete the file and run the study again: this stage, and nothing before it, is made anew"
        try:
            return self.read(self.file)
        except (InputError, KeyError, TypeError) as error:
            said = (
                str(error).splitlines()[0] if isinstance(error, InputError) else f"{self.file} makes no sense: {error}"
            )
            raise StoreError(f"{said}\n  {remedy}") from error
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror or error}\n  {remedy}") from None


class ResultFolder:
    """A folder with the result of a study, or one that is to be made."""

    def __init__(self, path: FilePath) -> None:
        self.path = path

    @property
    def stages(self) -> FilePath:
        """Where finished stages are."""
        return self.path / _STAGES

    @property
    def result(self) -> FilePath:
        """What was found."""
        return self.path / "result.json"

    @property
    def provenance(self) -> FilePath:
        """How it was made."""
        return self.path / "provenance.json"

    def file(self, stage: str, key: str, suffix: str) -> FilePath:
        """The file of a stage with a fingerprint."""
        return self.stages / f"{stage}.{key[:_DIGITS]}{suffix}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder made, if it is not there, and held against other runs. The system frees it when a process ends,
        however it does."""
        try:
            if self.path.is_dir() and any(self.path.iterdir()) and not self.stages.is_dir():
                raise StoreError(
                    f"{self.path} has files in it, and none of a study\n  choose another folder, or an empty one"
                )
            self.stages.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(
                f"cannot write to the folder {self.path}: {error.strerror or error}\n"
                "  allow it, or choose another folder"
            ) from None
        try:
            if not _locked(lock):
                raise StoreError(
                    f"another run is at work in {self.path}\n  wait until it has ended, or choose another folder"
                )
            self._clear()
            try:
                yield
            finally:
                self._clear()
        finally:
            os.close(lock)  # which frees it

    def _clear(self) -> None:
        """Half-written files, of a process that was killed while it wrote, go."""
        for part in (*self.stages.glob(".*.part"), *self.path.glob(".*.part")):
            part.unlink(missing_ok=True)

    @contextmanager
    def writing(self, file: FilePath) -> Iterator[None]:
        """What is written inside is `file`; if that fails, the error says what is kept and what next."""
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write {file}: {error.strerror or error}\n  {_MEND}") from None
        except InputError as error:
            if not str(error).startswith("cannot write"):
                raise
            raise StoreError(f"{error}\n  {_MEND}") from None

    def write_json(self, file: FilePath, content: Mapping[str, Any]) -> None:
        """Write plain data; whatever happens, the file is whole, or what it was before."""
        text = json.dumps(plain_json(content), indent=1, ensure_ascii=False, allow_nan=False)
        with self.writing(file), replacing(file) as stream:
            stream.write(text.encode() + b"\n")

    def write_checksummed(self, file: FilePath, content: Mapping[str, Any]) -> None:
        """Write plain data with a checksum, so that not a digit can change unnoticed."""
        self.write_json(file, {"checksum": fingerprint(content), "content": content})


def _locked(lock: int) -> bool:
    """Whether the open file is now held by this process, or another one holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
