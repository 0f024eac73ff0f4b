"""Kernels compiled, kept on disk, and called.

Source stays in memory. Machine code is kept in the user's cache directory, a file for each compiled function, under a
name that hashes the source together with all that compiles it. Several processes may do so at once: files appear whole
or not at all. A file holds a pickle of numba's after the hash of its name and content. It is read only if it is the
user's, if nobody else can write to it or to its directory, and if the hash is right; else the function is compiled
again. The hash finds damage. Against other users stand the owner and the permissions.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
import stat
import sys
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from types import ModuleType
from typing import Any, Final

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.serialize import dumps, loads

from sateen.core.errors import InputError, SateenWarning, SimulationError
from sateen.core.reading import opened
from sateen.engine import runtime
from sateen.engine.emit import ALGEBRA, KernelSource, kernel_source
from sateen.logic import intervals
from sateen.logic.formula import Formula
from sateen.model.model import Model

_MOST_BYTES: Final = 2**28  # of the machine code of a function
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel: its function, and the source of that."""

    function: Any
    source: KernelSource

    def run(self, *arguments: Any) -> Any:
        """Runs, as `emit.py` describes them."""
        try:
            return self.function(*arguments)
        except MemoryError:
            raise SimulationError(
                "the runs need more memory than there is\n"
                "  use fewer workers, or make runs shorter with max_events or max_time; what is in a store is kept"
            ) from None

    @property
    def is_cached(self) -> bool:
        """Whether its machine code is in memory or on disk already, so that the next call need not compile."""
        if self.function.overloads:
            return True
        folder = _folder()
        files = folder.glob(f"{_name(self.source.text)}.run-*") if folder else ()
        return any(_read(file) is not None for file in files)


def kernel(
    model: Model,
    formulas: tuple[Formula, ...],
    *,
    checked: bool = False,
    population: bool = False,
    record: bool = False,
) -> Kernel:
    """The kernel of a model and formulas, compiled on first use."""
    source = kernel_source(model, formulas, checked=checked, population=population, record=record)
    return Kernel(load_source(source.text).run, source)


def cache_directory() -> FilePath:
    """Where kernels are kept: SATEEN_CACHE_DIR, or `sateen` in the user's cache directory."""
    if chosen := os.environ.get("SATEEN_CACHE_DIR"):
        return FilePath(chosen)
    if sys.platform == "win32":
        base = FilePath(os.environ.get("LOCALAPPDATA", FilePath.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = FilePath.home() / "Library" / "Caches"
    else:
        base = FilePath(os.environ.get("XDG_CACHE_HOME") or FilePath.home() / ".cache")
    return base / "sateen"


def load_source(text: str) -> ModuleType:
    """The module of a kernel's source, whose functions are compiled when they are called, or loaded from the cache."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        raise InputError("NUMBA_DISABLE_JIT is set, but kernels only run compiled", remedy="unset NUMBA_DISABLE_JIT")
    if ALGEBRA in text and ALGEBRA not in sys.modules:
        sys.modules[ALGEBRA] = _loaded(_algebra())
    return _loaded(text)


def _algebra() -> str:
    """`logic/intervals.py` with every function compiled, and kept on disk as kernels are: one algebra, one truth."""
    compiled = re.sub(r"^def ", "@njit(nogil=True)\ndef ", inspect.getsource(intervals), flags=re.MULTILINE)
    return compiled.replace("from typing import", "from numba import njit\nfrom typing import", 1)


@cache
def _loaded(text: str) -> ModuleType:
    name = _name(text)
    module = sys.modules[name] = ModuleType(name)  # numba finds it there by its name
    exec(compile(text, f"<{name}>", "exec", dont_inherit=True), module.__dict__)
    for function, value in list(vars(module).items()):
        if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
            value._cache = _MachineCode(f"{name}.{function}")  # type: ignore[attr-defined, unused-ignore]
    return module


class _MachineCode(NullCache):
    """The machine code of a function on disk, a file for each signature; numba asks for it before it compiles."""

    def __init__(self, name: str) -> None:
        self._name = name

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for this signature, or None."""
        target.refresh()
        if (folder := _folder()) is None or not os.path.lexists(file := folder / self._file_name(signature)):
            return None
        try:
            if (content := _read(file)) is not None:
                known, parts = loads(content)
                if known == signature:
                    return CompileResult._rebuild(target, *parts)  # type: ignore[no-untyped-call, unused-ignore]
        except Exception:  # a pickle may raise anything
            pass
        problem = f"the compiled kernel {file} is damaged, or not only you can write to it; it is compiled again"
        warnings.warn(problem, SateenWarning, stacklevel=2)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for this signature."""
        if compiled.library.has_dynamic_globals or (folder := _folder()) is None:
            return
        content: bytes = dumps((signature, compiled._reduce()))  # type: ignore[no-untyped-call, unused-ignore]
        try:
            _write(folder / self._file_name(signature), content)
        except OSError as error:
            _warn_that_nothing_is_kept(folder, f"cannot be written to ({error.strerror})")

    def _file_name(self, signature: Any) -> str:
        return f"{self._name}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}"


def _folder() -> FilePath | None:
    """The cache directory, made if it is missing; None, with a warning, where others could put code into it."""
    folder = FilePath("~")
    try:
        folder = cache_directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        link, status = folder.lstat(), folder.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        _warn_that_nothing_is_kept(folder, f"cannot be used ({getattr(error, 'strerror', error)})")
        return None
    if not (_is_ours(link) and _is_ours(status)):
        _warn_that_nothing_is_kept(folder, "belongs to another user")
        return None
    if _is_open(status):
        _warn_that_nothing_is_kept(folder, f"can be written to by other users (chmod go-w {folder} forbids it)")
        return None
    return folder


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _is_open(status: os.stat_result) -> bool:
    return sys.platform != "win32" and bool(status.st_mode & _WRITABLE_BY_OTHERS)


@cache
def _warn_that_nothing_is_kept(folder: FilePath, why: str) -> None:
    message = (
        f"compiled kernels are not kept, because the folder {folder} {why}\n"
        "  mend that, or set SATEEN_CACHE_DIR to a folder of your own; until then every process compiles again"
    )
    warnings.warn(message, SateenWarning, stacklevel=2)


def _read(file: FilePath) -> bytes | None:
    """The content of a file that is whole, and that nobody else can have written."""
    try:
        with opened(file, _MOST_BYTES) as stream:
            status = os.fstat(stream.fileno())
            digest, content = stream.read(hashlib.sha256().digest_size), stream.read()
    except (OSError, InputError):
        return None
    return content if _is_ours(status) and not _is_open(status) and digest == _digest(file, content) else None


def _write(file: FilePath, content: bytes) -> None:
    """Write a file whole or not at all; another process may write the same one at the same time."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_digest(file, content) + content)
        os.replace(temporary, file)
    except BaseException:
        FilePath(temporary).unlink(missing_ok=True)
        raise


def _digest(file: FilePath, content: bytes) -> bytes:
    return hashlib.sha256(file.name.encode() + b"\n" + content).digest()


def _name(text: str) -> str:
    return f"kernel_{hashlib.sha256((text + _toolchain()).encode()).hexdigest()[:24]}"


@cache
def _toolchain() -> str:
    """All that decides what a kernel compiles to, beside its own source."""
    called = [inspect.getsource(runtime), _algebra()]
    versions = [sys.version, numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    processor = map(str, cpu_target.target_context.codegen().magic_tuple())
    return "\n".join([*called, *versions, *processor])
