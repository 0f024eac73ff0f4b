"""One safe file of arrays and words: a zip of plain arrays, with JSON beside them, and a checksum over all.

It is an .npz file that numpy reads too. Nothing in it is ever run: arrays of objects, which would be pickles, are
refused. The file appears whole or not at all, and what does not match its checksum is not returned.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError

__all__ = ["Arrays", "File", "checksum", "damaged", "plain", "read_archive", "replacing", "write_archive"]

File: TypeAlias = "str | os.PathLike[str]"
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
_REMEDY: Final = "take a copy of it, or make it anew"
_WORDS: Final = "about"  # the array that holds the JSON text
_SHOWN_NAME: Final = 40  # characters of a name that its temporary file bears, for names have a greatest length


def write_archive(file: File, kind: str, version: int, content: Mapping[str, Any], arrays: Arrays) -> None:
    """Write arrays and their words as `file`; whatever happens, a file that was there before is whole, or replaced."""
    stored = {name: plain(array) for name, array in arrays.items()}
    about = {"kind": kind, "version": version, "content": dict(content), "checksum": checksum(content, stored)}
    words = np.frombuffer(json.dumps(about, allow_nan=False).encode(), dtype=np.uint8)
    with replacing(file) as stream:
        np.savez_compressed(stream, **{_WORDS: words, **stored})  # type: ignore[arg-type, unused-ignore]


def read_archive(file: File, kind: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The words and the arrays of a file that `write_archive` made; anything else is an InputError that says what."""
    with open(file, "rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise InputError(f"{file} holds no {kind}: it is no file of sateen, or only a part of one")
        stream.seek(0)
        try:
            about, arrays = _read(stream)
        except Exception as error:  # a damaged file can make the readers of zips and arrays raise nearly anything
            raise InputError(f"{file} is damaged, or not from sateen: {error}\n  {_REMEDY}") from error
    if not isinstance(about, dict) or about.get("kind") != kind:
        raise InputError(f"{file} holds no {kind}")
    if about.get("version") != version:
        raise InputError(f"{file} is of version {about.get('version')}, and this sateen reads {version}; update sateen")
    content = about.get("content")
    if not isinstance(content, dict) or about.get("checksum") != checksum(content, arrays):
        raise damaged(file, "its content does not match its checksum")
    return content, arrays


def checksum(content: Any, arrays: Arrays) -> str:
    """SHA-256 of words and arrays; the same on every machine."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = plain(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def damaged(file: File, why: str) -> InputError:
    """The error that says why a file is not to be trusted, and what to do."""
    return InputError(f"{file} is damaged: {why}\n  {_REMEDY}")


def plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in the order that files have: row after row, the least byte of a number first."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


@contextmanager
def replacing(file: File) -> Iterator[BinaryIO]:
    """A stream whose bytes become `file` once they are whole and on the disk; of a failure nothing remains.

    A link stays a link, to a new file. A device or a pipe is written to, for nothing should take its place.
    """
    path = FilePath(os.path.realpath(file))
    if path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            yield stream
        return
    # No two that write at the same time have this name; and made so, the file gets the permissions of any new file.
    mark = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name[:_SHOWN_NAME]}.{mark}.part")
    try:
        with open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read(stream: BinaryIO) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    with np.load(stream, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    words = arrays.pop(_WORDS)
    return json.loads(words.astype(np.uint8, casting="equiv").tobytes().decode()), arrays
