"""One way to write a file: it appears whole, or not at all, and never through a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import BinaryIO, Final

from sateen.core.errors import InputError
from sateen.core.types import File

_SHOWN_NAME: Final = 40  # characters of a name that its temporary file has, for the length of names is limited
# A new file: were there one of this name, or a link, opening would fail.
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(file: File) -> Iterator[BinaryIO]:
    """A stream whose bytes become `file` once they are complete and on the disk; after a failure nothing remains.

    A link is replaced by the new file, and what it leads to stays as it is. A device or a pipe is written to directly;
    so are the links of the system to its streams, such as /dev/stdout.
    """
    path = FilePath(os.path.abspath(file))
    if _is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name[:_SHOWN_NAME]}.{os.urandom(8).hex()}.part")
    try:
        with open(os.open(temporary, _NEW, 0o666), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(file: File, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(file) as stream:
        stream.write(text.encode())


def _is_stream(path: FilePath) -> bool:
    """Whether a path is a device, a pipe or a folder, which is opened and not replaced, or a link to an open stream."""
    try:
        form = path.lstat().st_mode
    except ValueError:  # a NUL in the name
        raise InputError(f"{str(path)!r} cannot be the name of a file") from None
    except OSError:
        return False
    if stat.S_ISLNK(form):
        home = os.path.realpath(path.parent)
        return home == "/dev" or home.startswith("/proc/")
    return not stat.S_ISREG(form)
