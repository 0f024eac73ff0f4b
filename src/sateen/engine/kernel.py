"""Kernels compiled, kept on disk, and called.

Source is written once to the user's cache directory, under a name that hashes it together with the versions of all
that compiles it, and is imported from there; numba keeps the machine code beside it. Several processes may do so at
once: files appear whole or not at all. Numba's files are pickles, so they are only ever read from the user's own cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from types import ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

from sateen.engine import runtime
from sateen.engine.emit import ALGEBRA, KernelSource, kernel_source
from sateen.logic import intervals
from sateen.logic.formula import Formula
from sateen.model.model import Model


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel: `run` as `emit.py` describes it, and whether it checks rates and counts."""

    run: Callable[..., Any]
    source: KernelSource

    @property
    def is_cached(self) -> bool:
        """Whether its machine code is on disk already, so that the first call need not compile."""
        return any((cache_directory() / "__pycache__").glob(f"{_name(self.source.text)}.run-*.nbc"))


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
    """The module of a kernel's source, imported from the cache directory, or from a temporary one if that is shut."""
    if ALGEBRA in text and ALGEBRA not in sys.modules:
        sys.modules[ALGEBRA] = _imported(_algebra())
    return _imported(text)


def _algebra() -> str:
    """`logic/intervals.py` with every function compiled, and kept on disk as kernels are: one algebra, one truth."""
    compiled = re.sub(r"^def ", "@njit(nogil=True, cache=True)\ndef ", inspect.getsource(intervals), flags=re.MULTILINE)
    return compiled.replace("from typing import", "from numba import njit\nfrom typing import", 1)


@cache
def _imported(text: str) -> ModuleType:
    name = _name(text)
    try:
        path = _written(cache_directory(), name, text)
    except OSError:
        path = _written(FilePath(tempfile.mkdtemp(prefix="sateen-")), name, text)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _written(folder: FilePath, name: str, text: str) -> FilePath:
    """The file of a kernel, made if it is not there; another process may make the same one at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    return path


def _name(text: str) -> str:
    return f"kernel_{hashlib.sha256((text + _toolchain()).encode()).hexdigest()[:24]}"


@cache
def _toolchain() -> str:
    """All that decides what a kernel compiles to, beside its own source."""
    called = [inspect.getsource(runtime), _algebra()]
    versions = [platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    return "\n".join(called + versions)
