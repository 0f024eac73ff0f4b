"""What travels between this process and a worker: words as JSON and bytes, with a checksum; and who the worker is.

Errors travel as words too, so that nothing that comes back is run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path as FilePath
from typing import Any, Final, NoReturn

from sateen.core import errors
from sateen.core.errors import InputError, PoolError, SateenError, SimulationError
from sateen.core.version import VERSION
from sateen.pools.crew import WrongAnswer

_HEAD: Final = struct.Struct("<II")  # the checksum of all that follows, and the length of the words
_DECISIVE: Final = ("sateen", "source", "numpy", "llvmlite")  # what runs depend on must be the same
_OTHERS: Final = ("scipy", "jax", "jaxlib", "optax")  # what the last digits of a fit depend on, with the processor
_DIGITS: Final = 12  # of a hash
_ERROR: Final = "error"


def packed(words: Mapping[str, object], *parts: bytes) -> bytes:
    """Words and bytes as one message."""
    text = json.dumps({"words": words, "sizes": [len(part) for part in parts]}).encode()
    body = b"".join((text, *parts))
    return _HEAD.pack(zlib.crc32(body), len(text)) + body


def unpacked(message: object) -> tuple[dict[str, Any], list[bytes]]:
    """The words and bytes of a message; WrongAnswer if it is none, or was cut short."""
    try:
        if not isinstance(message, bytes):
            raise TypeError(f"it is a {type(message).__name__}")
        checksum, length = _HEAD.unpack_from(message)
        body = message[_HEAD.size :]
        if zlib.crc32(body) != checksum:
            raise ValueError("its checksum differs")
        content = json.loads(body[:length])
        parts, start = [], length
        for size in content["sizes"]:
            parts.append(body[start : start + size])
            start += size
        return dict(content["words"]), parts
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise WrongAnswer(f"a worker answered with a message that is damaged: {error}") from error


def answering(work: Callable[..., bytes]) -> Callable[..., bytes]:
    """The same function on a worker: its errors are answers too."""

    @wraps(work)
    def answered(*args: object) -> bytes:
        try:
            return work(*args)
        except Exception as error:
            return packed({_ERROR: _described(error)})

    return answered


def answer_of(message: object) -> tuple[dict[str, Any], list[bytes]]:
    """What a worker answered; its error is raised here."""
    words, parts = unpacked(message)
    if isinstance(told := words.get(_ERROR), dict):
        _raise(told)
    return words, parts


@cache
def identity() -> dict[str, str]:
    """What the runs of this process are made with: versions, and a hash of the source of sateen."""
    folder = FilePath(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return {"sateen": VERSION, "source": digest.hexdigest()[:_DIGITS]} | {
        name: _version(name) for name in ("numpy", "llvmlite")
    }


def check_identity(asked: Mapping[str, str]) -> None:
    """On a worker: refuse to work for a sateen that would make other runs."""
    here = identity()
    wrong = [name for name in _DECISIVE if asked.get(name) != here[name]]
    if wrong:
        told = ", ".join(f"{name} {here[name]} there, {asked.get(name)} here" for name in wrong)
        raise PoolError(
            f"a worker on {platform.node()} is not the same as this process: {told}\n"
            "  install the same on both, then run the same again: what is stored is kept"
        )


@cache
def machine() -> dict[str, str]:
    """What the last digits of a fit depend on: the processor, and the versions of libraries."""
    versions = {name: _version(name) for name in ("numpy", *_OTHERS)}
    return {"processor": _processor(), "python": platform.python_version(), **versions}


def _processor() -> str:
    try:
        lines = FilePath("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{platform.machine()} {name}".strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _described(error: Exception) -> dict[str, object]:
    told: dict[str, object] = {"kind": type(error).__name__, "node": f"{platform.node()}:{os.getpid()}"}
    if type(error) is InputError:
        return {**told, "message": error.message, "argument": error.argument, "remedy": error.remedy}
    return {**told, "message": str(error)}


def _raise(told: Mapping[str, Any]) -> NoReturn:
    kind, message = str(told.get("kind")), str(told.get("message"))
    if kind == "InputError":
        raise InputError(message, argument=str(told.get("argument", "")), remedy=str(told.get("remedy", "")))
    if kind == "MemoryError":
        raise SateenError(
            f"a worker, {told.get('node')}, has too little memory: {message}\n"
            "  what is finished is kept; run the same again with fewer workers, or where there is more memory"
        )
    known = getattr(errors, kind, None) if kind in errors.__all__ else None
    if isinstance(known, type) and issubclass(known, SateenError):
        raise (InputError if issubclass(known, InputError) else known)(message)
    raise SimulationError(f"a worker, {told.get('node')}, failed: {kind}: {message}")
