"""A task that another machine computes: the files it needs go there as bytes, and the bytes of its own come back.

The worker makes the task again, by a function of sateen from plain arguments, in a folder of its own. It must come to
the same key, which fixes the result. Nothing of the caller's folder is read or written there.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path as FilePath
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from sateen.core.errors import PoolError
from sateen.core.progress import SILENT
from sateen.core.registry import load_object
from sateen.core.threads import on_one_thread
from sateen.files.atomic import replacing
from sateen.pipeline.context import RunContext
from sateen.pools.crew import WrongAnswer
from sateen.pools.messages import answer_of, answering, check_identity, identity, machine, packed, unpacked

if TYPE_CHECKING:
    from sateen.pipeline.tasks import Task

_OURS: Final = "sateen."


class Elsewhere(NamedTuple):
    """How a worker makes a task: the address of a function of sateen, which gets a folder and plain arguments."""

    function: str
    arguments: tuple[object, ...]


def order_of(task: Task[Any]) -> bytes:
    """All that a worker needs to compute a task."""
    assert task.elsewhere is not None
    address, arguments = task.elsewhere
    files = [file for need in task.needs for file in (need.file, *need.extra)]
    words = {"identity": identity(), "function": address, "arguments": arguments, "key": task.key}
    return packed({**words, "files": [file.name for file in files]}, *(file.read_bytes() for file in files))


@answering
def compute(order: bytes) -> bytes:
    """The files of a task, on a worker; a function that other processes find by its name."""
    words, parts = unpacked(order)
    check_identity(words["identity"])
    if not str(words["function"]).startswith(_OURS):
        raise PoolError(f"{words['function']} is not a function of sateen")
    with _empty_folder() as folder:
        make_task: Any = load_object(words["function"])
        task: Task[Any] = make_task(str(folder), *_tuples(words["arguments"]))
        if task.key != words["key"]:
            raise PoolError(f"a worker makes another task of {task.name!r}\n  install the same sateen there")
        task.file.parent.mkdir(parents=True, exist_ok=True)
        for name, part in zip(words["files"], parts, strict=True):
            (task.file.parent / FilePath(name).name).write_bytes(part)
        start = time.perf_counter()
        save = on_one_thread(task.make)(RunContext(task.file, 1, SILENT))
        save(task.file)
        seconds = time.perf_counter() - start
        files = [file.read_bytes() for file in (task.file, *task.extra)]
        return packed({"key": task.key, "seconds": seconds, "machine": machine()}, *files)


def save_answer(task: Task[Any], message: object) -> tuple[float, dict[str, str]]:
    """Write the files that a worker has made; how many seconds that took it, and what it is."""
    words, parts = answer_of(message)
    try:
        told = {str(name): str(text) for name, text in words["machine"].items()}
        seconds = float(words["seconds"])
        files = dict(zip((*task.extra, task.file), (*parts[1:], parts[0]), strict=True))
        if words["key"] != task.key:
            raise ValueError(f"it is not about {task.name}")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise WrongAnswer(f"a worker answered with files that are not those of the task: {error}") from error
    for file, part in files.items():  # the main one last: with it the task is finished
        with replacing(file) as stream:
            stream.write(part)
    return seconds, told


@contextmanager
def _empty_folder() -> Iterator[FilePath]:
    """A folder for one task. Its path is the same for all tasks of a thread, so that a pipeline can be kept for it."""
    folder = _path(os.getpid(), threading.get_ident())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _path(process: int, thread: int) -> FilePath:
    return FilePath(gettempdir()) / f"sateen-{uuid4().hex}"


def _tuples(value: Any) -> Any:
    """Lists as tuples, which JSON does not know."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
