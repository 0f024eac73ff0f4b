"""One way to write a file: it appears whole, or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import BinaryIO, Final

from sateen.core.types import File

_SHOWN_NAME: Final = 40  # characters of a name that its temporary file bears, for names have a greatest length


@contextmanager
def replacing(file: File) -> Iterator[BinaryIO]:
    """A stream whose bytes become `file` once they are complete and on the disk; after a failure nothing remains.

    A link stays a link, to a new file. A device or a pipe is written to directly.
    """
    path = FilePath(os.path.realpath(file))
    if path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            yield stream
        return
    # No two writers at the same time use this name; and made so, the file gets the permissions of any new file.
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


def write_text(file: File, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(file) as stream:
        stream.write(text.encode())
