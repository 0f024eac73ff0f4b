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
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError

__all__ = ["Arrays", "File", "checksum", "read_archive", "write_archive"]

File: TypeAlias = "str | os.PathLike[str]"
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
_REMEDY: Final = "take a copy of it, or make it anew"
_WORDS: Final = "about"  # the array that holds the JSON text


def write_archive(file: File, kind: str, version: int, content: Mapping[str, Any], arrays: Arrays) -> None:
    """Write arrays and their words as `file`; whatever happens, a file that was there before is whole, or replaced."""
    plain = {name: _plain(array) for name, array in arrays.items()}
    about = {"kind": kind, "version": version, "content": dict(content), "checksum": checksum(content, plain)}
    words = np.frombuffer(json.dumps(about, allow_nan=False).encode(), dtype=np.uint8)
    path = FilePath(file)
    # No two that write at the same time have this name; and made so, the file gets the permissions of any new file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with open(temporary, "wb") as stream:
            np.savez_compressed(stream, **{_WORDS: words, **plain})  # type: ignore[arg-type, unused-ignore]
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
        raise InputError(f"{file} is damaged: its content does not match its checksum\n  {_REMEDY}")
    return content, arrays


def checksum(content: Any, arrays: Arrays) -> str:
    """SHA-256 of words and arrays; the same on every machine."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = _plain(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def _read(stream: BinaryIO) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    with np.load(stream, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    words = arrays.pop(_WORDS)
    return json.loads(words.astype(np.uint8, casting="equiv").tobytes().decode()), arrays


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in the byte order that files have."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
