"""How files are read: regular ones only, and only up to a limit, so that no file can block, or fill the memory."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from sateen.core.errors import InputError

if TYPE_CHECKING:  # which loads numpy, and help does not need it
    from sateen.core.types import File

MOST_TEXT: Final = 2**24  # bytes of a text file, unless its reader says otherwise
_MOST_TABLE: Final = 2**32  # bytes of a table, which is read line by line


@contextmanager
def opened(file: File, most: int) -> Iterator[BinaryIO]:
    """A stream of the bytes of a regular file of at most `most` bytes; any other file is an InputError."""
    # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(file, flags)
    except ValueError:  # a NUL in the name
        raise InputError(f"{os.fspath(file)!r} cannot be the name of a file") from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{os.fspath(file)} is a folder; give a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{os.fspath(file)} is not a regular file; save its content to one")
        if status.st_size > most:
            raise InputError(f"{os.fspath(file)} has {status.st_size:,} bytes, and at most {most:,} are read")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def read_bytes(file: File, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes."""
    with opened(file, most) as stream:
        return stream.read(most)


def read_text(file: File, most: int = MOST_TEXT) -> str:
    """The text of a regular file of at most `most` bytes, in UTF-8."""
    try:
        return read_bytes(file, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{os.fspath(file)} is not text in UTF-8: byte {error.start:,} is wrong"
        raise InputError(message, remedy="save it as UTF-8") from None


@contextmanager
def opened_table(file: File) -> Iterator[TextIO]:
    """A stream of the lines of a table in CSV text, with their ends as they are; what is no UTF-8 is an InputError."""
    with opened(file, _MOST_TABLE) as stream:
        try:
            yield io.TextIOWrapper(stream, "utf-8-sig", newline="")
        except UnicodeDecodeError as error:
            message = f"{os.fspath(file)} is not text in UTF-8: {error.reason}"
            raise InputError(message, remedy="save it as UTF-8") from None
