"""Machine code: made of LLVM's instructions for this processor, and called with arrays and numbers.

Object code is a block of bytes that names what it needs from outside, so that it can be kept in a file. Nothing else of
a compiler's is loaded to use it again but LLVM's linker.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from sateen.engine.instructions import FLOAT, INDEX, WHOLE, WORD, Kind

_SPEED: Final = 3  # of LLVM's levels of optimisation
_TYPES: Final = {FLOAT: ctypes.c_double, WHOLE: ctypes.c_int64, WORD: ctypes.c_uint64}
_ARRAYS: Final = {
    FLOAT: np.dtype(np.float64),
    WHOLE: np.dtype(np.int64),
    WORD: np.dtype(np.uint64),
    INDEX: np.dtype(np.uint32),
}
_LIBRARIES = itertools.count()
_LOCK: Final = Lock()


def processor() -> tuple[str, ...]:
    """All that decides what the same instructions compile to."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), _features().flatten(), version


def fuses() -> bool:
    """Whether this processor has an instruction for a b + c with one rounding."""
    return not _target().triple.startswith(("x86", "i386", "i686")) or bool(_features().get("fma"))


def _features() -> Any:
    """What this processor can do; nothing where LLVM cannot tell."""
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:
        return llvm.FeatureMap()


def object_code(module: str) -> bytes:
    """The object code of the text of an LLVM module."""
    with _LOCK:
        parsed = llvm.parse_assembly(module)
        target = _target()
        parsed.triple, parsed.data_layout = target.triple, str(target.target_data)
        tuning = llvm.create_pipeline_tuning_options(speed_level=_SPEED)
        tuning.loop_vectorization, tuning.slp_vectorization = True, False
        passes = llvm.create_pass_builder(target, tuning)
        passes.getModulePassManager().run(parsed, passes)
        code: bytes = target.emit_object(parsed)
        return code


class Function:
    """A function `run` in machine code; it is called without Python's lock.

    LLVM frees the code with the last reference to `_linked`. Nobody else keeps the address, and a call keeps its
    Function, so what is freed is not running.
    """

    def __init__(self, code: bytes, arguments: Sequence[tuple[str, Kind, int]]) -> None:
        library = f"kernel{next(_LIBRARIES)}"
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol("run")
        for name in ("PyMem_RawMalloc", "PyMem_RawFree"):
            address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            builder.import_symbol(name, address)
        with _LOCK:
            self._linked = builder.link(_linker(), library)
        self._arguments = arguments
        types = list[Any]()
        for _, kind, axes in arguments:
            types += [ctypes.c_void_p, *[ctypes.c_int64] * axes] if axes else [_TYPES[kind]]
        self._function: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(self._linked["run"])

    def __call__(self, *given: Any) -> int:
        """Call it. Arrays must have the kind, the axes and the order that the source says."""
        parts = list[Any]()
        for (name, kind, axes), value in zip(self._arguments, given, strict=True):
            if not axes:
                parts.append(float(value) if kind is FLOAT else int(value))
                continue
            if value.dtype != _ARRAYS[kind] or value.ndim != axes or not value.flags.c_contiguous:
                raise TypeError(f"{name} is a {value.dtype} array of {value.ndim} axes, not as the kernel has it")
            parts += [value.ctypes.data, *value.shape]
        return self._function(*parts)


@cache
def _target() -> Any:
    """The processor that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    # On x86, code that runs where it was made need not be movable.
    movable = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features().flatten(),
        opt=_SPEED,
        reloc=movable,
        codemodel="jitdefault",
        jit=True,
    )


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_target())
