"""Where compiled code is kept between processes: a folder that only its user can write to.

Anyone who can put a file there can run code in the user's name. So a folder, or a link to one, that belongs to somebody
else or that others can write to is not used, with a warning. Neither is such a file, nor one that does not begin with
the hash of its name and content. The hash finds damage; against other users stand the owner and the permissions.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Final

from sateen.core.errors import InputError, SateenWarning
from sateen.core.reading import opened

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_MOST_BYTES: Final = 2**28  # of a file
_MOST_OF_ALL: Final = 2**29  # bytes of the files in a folder


def cache_directory() -> Path:
    """SATEEN_CACHE_DIR, or `sateen` in the user's cache directory."""
    if chosen := os.environ.get("SATEEN_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "sateen"


def cache_folder(part: str = "") -> Path | None:
    """The cache directory, or a part of it, made if missing; None, with a warning, where others could write to it."""
    folder = Path("~")
    try:
        folder = cache_directory()
        private = _is_private(folder)
        if part and private:
            folder /= part
            private = _is_private(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        warn_that_nothing_is_kept(folder, f"cannot be used ({getattr(error, 'strerror', error)})")
        return None
    return folder if private else None


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put files there; a folder that is missing is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    link, status = folder.lstat(), folder.stat()
    if not (is_ours(link) and is_ours(status)):
        warn_that_nothing_is_kept(folder, "belongs to another user")
        return False
    if is_open(status):
        warn_that_nothing_is_kept(folder, f"can be written to by other users (chmod go-w {folder} forbids it)")
        return False
    return True


def is_ours(status: os.stat_result) -> bool:
    """Whether it belongs to the user of this process."""
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def is_open(status: os.stat_result) -> bool:
    """Whether other users can write to it."""
    return sys.platform != "win32" and bool(status.st_mode & _WRITABLE_BY_OTHERS)


@cache
def warn_that_nothing_is_kept(folder: Path, why: str) -> None:
    """Say so once for each folder and reason."""
    message = (
        f"compiled kernels are not kept, because the folder {folder} {why}\n"
        "  fix that, or set SATEEN_CACHE_DIR to a folder of your own; until then every process compiles again"
    )
    warnings.warn(message, SateenWarning, stacklevel=2)


def private_bytes(file: Path) -> bytes | None:
    """The bytes of a file that nobody else can have written; None for any other."""
    try:
        with opened(file, _MOST_BYTES) as stream:
            status = os.fstat(stream.fileno())
            return stream.read() if is_ours(status) and not is_open(status) else None
    except (OSError, InputError):
        return None


def kept(file: Path) -> bytes | None:
    """What `keep` put into a file, if it is whole and nobody else can have written it."""
    stored = private_bytes(file)
    if stored is None:
        return None
    size = hashlib.sha256().digest_size
    return stored[size:] if stored[:size] == _digest(file, stored[size:]) else None


def keep(file: Path, content: bytes) -> None:
    """Write a file whole or not at all; another process may write the same one at the same time."""
    drop_oldest(file.parent)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_digest(file, content) + content)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@cache
def drop_oldest(folder: Path, most: int = _MOST_OF_ALL) -> None:
    """Remove the oldest files of a folder that has more than `most` bytes in files; a process looks once."""
    found = [(entry.stat(follow_symlinks=False), entry) for entry in os.scandir(folder)]
    files = [(status, entry) for status, entry in found if stat.S_ISREG(status.st_mode)]
    total = sum(status.st_size for status, _ in files)
    for status, entry in sorted(files, key=lambda each: each[0].st_mtime):
        if total <= most:
            break
        Path(entry).unlink(missing_ok=True)
        total -= status.st_size


def _digest(file: Path, content: bytes) -> bytes:
    return hashlib.sha256(file.name.encode() + b"\n" + content).digest()
