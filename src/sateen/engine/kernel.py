"""Kernels compiled, kept on disk, and called.

Source stays in memory. Machine code is kept in the user's cache directory, a file for each kernel, under a name that
hashes the source together with all that compiles it. Several processes may do so at once: files appear whole or not at
all. A file holds object code after the hash of its name and content. It is read only if it is the user's, if nobody
else can write to it or to its directory, and if the hash is right; else the kernel is compiled again. The hash finds
damage. Against other users stand the owner and the permissions.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final

import llvmlite  # type: ignore[import-untyped]
import numpy as np

from sateen.core.cache import cache_folder, keep, kept, warn_that_nothing_is_kept
from sateen.core.errors import SateenWarning, SimulationError
from sateen.core.types import FloatArray
from sateen.core.version import VERSION
from sateen.engine import instructions, machine_code, scope, translate
from sateen.engine.emit import ALGEBRA, FULL, REASONS, KernelSource, kernel_source
from sateen.engine.instructions import Kind
from sateen.engine.machine_code import Function, object_code
from sateen.engine.scope import NO_MEMORY
from sateen.logic import intervals
from sateen.logic.formula import Formula
from sateen.model.model import Model

_FIRST_ENTRIES: Final = 256  # of a record
_MOST_LOADED: Final = 128  # kernels that are ready for another use; what is in use stays beyond them


class Code:
    """Machine code that is made, or read from the cache, when it is first called; safe to share between threads.

    `key` is all that it follows from, beside what compiles it; `module` writes its LLVM module.
    """

    def __init__(self, key: str, module: Callable[[], str], arguments: Sequence[tuple[str, Kind, int]]) -> None:
        self.name = _name(key)
        self.compilations = 0
        self._module = module
        self._arguments = arguments
        self._function: Function | None = None
        self._lock = Lock()

    def __call__(self, *given: Any) -> int:
        """Call it, as `machine_code.Function` says."""
        if self._function is None:
            with self._lock:
                self._function = self._function or self._loaded() or self._compiled()
        result = self._function(*given)
        if result == NO_MEMORY:
            raise MemoryError
        return result

    @property
    def is_cached(self) -> bool:
        """Whether it is in memory or on disk already, so that the next call need not compile."""
        folder = None if self._function else cache_folder()
        return self._function is not None or (folder is not None and kept(folder / self.name) is not None)

    def _loaded(self) -> Function | None:
        """What the cache has."""
        if (folder := cache_folder()) is None or not os.path.lexists(file := folder / self.name):
            return None
        if (content := kept(file)) is not None:
            try:
                return Function(content, self._arguments)
            except RuntimeError:  # whole, but no object code
                pass
        problem = f"the compiled kernel {file} is damaged, or not only you can write to it; it is compiled again"
        warnings.warn(problem, SateenWarning, stacklevel=2)
        return None

    def _compiled(self) -> Function:
        content = object_code(self._module())
        self.compilations += 1
        if (folder := cache_folder()) is not None:
            try:
                keep(folder / self.name, content)
            except OSError as error:
                warn_that_nothing_is_kept(folder, f"cannot be written to ({error.strerror})")
        return Function(content, self._arguments)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel: its code, and the source of that."""

    code: Code
    source: KernelSource

    def run(self, *arguments: Any) -> int:
        """Runs, as `emit.py` describes them."""
        try:
            return self.code(*arguments, np.array(self.source.numbers, np.float64))
        except MemoryError:
            raise SimulationError(
                "the runs need more memory than there is\n"
                "  use fewer workers, or make runs shorter with max_events or max_time; what is in a store is kept"
            ) from None

    def record(self, *arguments: Any) -> tuple[FloatArray, float, int]:
        """Every state of one run, the time of the jump after the last, and how the run ended."""
        nothing, nowhere = np.zeros((0, 1), np.int64), np.zeros((0, len(REASONS), 1), np.int64)
        *given, fault = arguments
        entries, outcome = _FIRST_ENTRIES // 2, FULL
        told = np.zeros(2)
        while outcome == FULL:
            entries *= 2
            try:
                book = np.empty((1, entries, 2 + len(self.source.columns)))
            except MemoryError:
                raise SimulationError("the record of the run needs more memory than there is") from None
            outcome = self.run(*given, nothing, nowhere, fault, book, told)
        return book[0, : int(told[1])].copy(), float(told[0]), outcome

    @property
    def is_cached(self) -> bool:
        """Whether its machine code is in memory or on disk already, so that the next call need not compile."""
        return self.code.is_cached


def kernel(
    model: Model,
    formulas: tuple[Formula, ...],
    *,
    checked: bool = False,
    population: bool = False,
    record: bool = False,
    watched: tuple[str, ...] = (),
) -> Kernel:
    """The kernel of a model and formulas, compiled on first use."""
    source = kernel_source(model, formulas, checked=checked, population=population, record=record, watched=watched)
    return Kernel(load_source(source.text), source)


@lru_cache(maxsize=_MOST_LOADED)
def load_source(text: str) -> Code:
    """The code of generated source, whose function `run` is compiled when it is called, or loaded from the cache."""
    whole = text + _algebra() if ALGEBRA in text else text
    return Code(whole, lambda: translate.translated(whole, machine_code.fuses()), translate.arguments(text))


@cache
def _algebra() -> str:
    """`logic/intervals.py`, of which kernels that need it compile what they call: one algebra, one truth."""
    return inspect.getsource(intervals)


def _name(key: str) -> str:
    return f"kernel_{hashlib.sha256((key + _toolchain()).encode()).hexdigest()[:24]}"


@cache
def _toolchain() -> str:
    """All that decides what a kernel compiles to, beside its own source."""
    compilers = [inspect.getsource(module) for module in (instructions, scope, translate, machine_code)]
    return "\n".join([*compilers, VERSION, llvmlite.__version__, *machine_code.processor()])
