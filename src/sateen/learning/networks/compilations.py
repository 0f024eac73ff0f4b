"""What JAX compiles, kept on disk: the next process that trains networks alike, or predicts, need not compile.

JAX's own cache does it, in a part of sateen's cache directory that is as private as that of kernels. JAX keys its files
by what is compiled, by its versions and by the kind of device, but not by the processor, so the folder has its name. A
user who has given JAX a cache, or told it to have none, is obeyed. Outside of a fit or a prediction JAX is left as it
was.

JAX does not check its files, and never replaces one. So each gets a seal, a file beside it with its hash. What has no
seal, was changed after it, or can be written to by others is removed before JAX reads the folder.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

import jax
from jax.experimental.compilation_cache import compilation_cache

from sateen.core.cache import cache_folder, drop_oldest, keep, kept, private_bytes, warn_that_nothing_is_kept

_FILES: Final = "*-cache"
_DIRECTORY: Final = "jax_compilation_cache_dir"
_SETTINGS: Final = {
    "jax_persistent_cache_min_compile_time_secs": 0.05,  # what takes less is not worth a file
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


class _Use:
    """JAX's cache while any thread uses it: the first to come sets it up, and the last to go leaves JAX as it was."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: dict[str, Any] = {}  # JAX's own settings, where they were changed
        self._folder = Path()  # that JAX uses meanwhile
        self._sealed = (self._folder, 0)  # a folder, and when it last changed before all was sealed

    def begin(self) -> None:
        with self._lock:
            config: Any = jax.config
            is_left_to_us = config.jax_compilation_cache_dir is None and config.jax_enable_compilation_cache
            folder = cache_folder(f"jax-{_processor()}") if not self._users and is_left_to_us else None
            if folder is not None and _is_made_sound(folder):
                self._folder = folder
                chosen = {_DIRECTORY: str(folder), **_SETTINGS}
                self._before = {name: getattr(config, name) for name in chosen}
                self._set(chosen)
            self._users += 1

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._before:
                self._set(self._before)
                self._before = {}
                if self._sealed != (self._folder, _last_change(self._folder)):
                    _seal(self._folder)
                    self._sealed = self._folder, _last_change(self._folder)

    def _set(self, settings: dict[str, Any]) -> None:
        config: Any = jax.config
        for name, value in settings.items():
            config.update(name, value)
        compilation_cache.reset_cache()


_USE: Final = _Use()


@contextmanager
def kept_compilations() -> Iterator[None]:
    """What JAX compiles within is kept, and what was kept is not compiled again; several threads may be within."""
    _USE.begin()
    try:
        yield
    finally:
        _USE.end()


@cache
def _is_made_sound(folder: Path) -> bool:
    """Remove what JAX must not read, and what is too much; once in a process, whose own files are sound.

    False, with a warning, where something that JAX must not read cannot be removed.
    """
    try:
        drop_oldest(folder)
        for file in folder.glob(_FILES):
            digest = _hash(file)
            if digest is None or kept(_seal_of(file)) != digest:
                file.unlink(missing_ok=True)
                _seal_of(file).unlink(missing_ok=True)
    except OSError as error:
        warn_that_nothing_is_kept(folder, f"cannot be written to ({error.strerror})")
        return False
    return True


def _last_change(folder: Path) -> int:
    """When a file was last added or removed, in nanoseconds; 0 if there is no such folder."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _seal(folder: Path) -> None:
    """Seal the files that are new."""
    try:
        for file in folder.glob(_FILES):
            if not _seal_of(file).exists():
                file.chmod(0o600)
                if (digest := _hash(file)) is not None:
                    keep(_seal_of(file), digest)
    except OSError:  # such as a full disk: what has no seal is compiled again
        pass


def _seal_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.seal")


def _hash(file: Path) -> bytes | None:
    """The hash of a file that nobody else can have written."""
    content = private_bytes(file)
    return None if content is None else hashlib.sha256(content).digest()


@cache
def _processor() -> str:
    """A hash of what the processor is and can do, as far as the system says."""
    told = [platform.machine(), platform.processor()]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        told += sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    except OSError:  # not Linux
        pass
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
