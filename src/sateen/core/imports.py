"""The user's modules that a black box imports: which versions this machine has, and which a worker has loaded.

A process imports a module once, so a worker may have a version that was edited since. This process says which versions
are on its disk, and a worker refuses to run with others. Modules of Python and of installed packages are not compared.

What a worker has loaded is known from the file before and after the import: both must be the same. A module that it
had before it was first asked counts as unknown if its file was changed after the process began. A module that is named
nowhere in the code, but was imported by a run, is known only then: the worker says which version it has, and this
process compares it with its disk, or with what the first worker has said.

In the same process nothing is compared: a black box runs there as it is in memory. A process that is forked begins with
what this one has in memory.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pickletools
import platform
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from multiprocessing.reduction import ForkingPickler
from pathlib import Path as FilePath
from threading import RLock
from types import ModuleType
from typing import Any, Final
from uuid import uuid4

from sateen.core.code import Code, SentFunction, module_file, stands_alone, syntax_tree
from sateen.core.errors import InputError, PoolError
from sateen.core.registry import load_object

_DIGITS: Final = 12  # of a hash
_MOST: Final = 10_000  # modules
_NOT_THE_USERS: Final = frozenset(("", "__main__", "sateen", *sys.stdlib_module_names))
_INSTALLED: Final = ("site-packages", "dist-packages")
_NOT_HERE: Final = "no file"


class _Process:
    """What this process knows of the user's modules. A forked one knows nothing yet."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.began, self.forked = time.time(), False
        self.forget()

    def forget(self) -> None:
        self.name = uuid4().hex
        self.waiting: dict[str, str] = {}  # digests of the files of modules that were not loaded when last asked
        self.loaded: dict[str, tuple[ModuleType, str]] = {}  # and the digest of what was loaded; "" if it is unknown
        self.listed: set[str] = set()  # all modules, after the last run
        self.unnamed: dict[str, dict[str, str]] = {}  # digests, by black box: what its runs imported besides

    def after_fork(self) -> None:
        self.lock = RLock()
        self.began, self.forked = time.time(), True
        self.forget()


_HERE: Final = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HERE.after_fork)


@dataclass(frozen=True, slots=True)
class Imports:
    """The digests of the user's modules that a black box imports, by name. Unpickled, it stands on a worker.

    It must be unpickled before the black box: then the worker sees what that imports.
    """

    black_box: str
    versions: tuple[tuple[str, str], ...]
    far: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        return _arrived, (self.black_box, self.versions, _HERE.name)

    def check(self) -> None:
        """On a worker, refuse what it has loaded in another version."""
        if not self.far:
            return
        with _HERE.lock:
            _look(name for name, _ in self.versions)
            for name, wanted in self.versions:
                if name in sys.modules and (there := _HERE.loaded.get(name)) and there[1] != wanted:
                    raise _other_version(name, there[1], wanted, f" on {platform.node()}")

    def unnamed(self) -> dict[str, str]:
        """On a worker, after a run: the digests of what runs of the black box imported, and its code does not name."""
        if not self.far:
            return {}
        named = {name for name, _ in self.versions}
        with _HERE.lock:
            noted = _HERE.unnamed.setdefault(self.black_box, {})
            if len(_HERE.listed) != len(sys.modules):
                for name in set(sys.modules) - _HERE.listed - named:
                    if not stands_alone(name) and is_users(file := _file_of(name)):
                        noted[name] = _digest(file)
                _HERE.listed.update(sys.modules)
            return {name: digest for name, digest in noted.items() if name in sys.modules and name not in named}


def check_unnamed(told: Mapping[str, str], known: dict[str, str]) -> None:
    """Refuse modules that a worker has in another version than this machine; `known` keeps what this campaign runs."""
    for name, digest in told.items():
        if name not in known:
            file = _file_of(name)
            known[name] = _digest(file) if file else digest
        if known[name] != digest:
            raise _other_version(name, digest, known[name])


def imports_of(function: Any, name: str) -> Imports:
    """The user's modules that a function imports, directly or not, in the versions on this machine's disk."""
    found: dict[str, str] = {}
    waiting = list(_named_by(function))
    while waiting and len(found) < _MOST:
        module = waiting.pop()
        if module in found or not is_users(file := _file_of(module)):
            continue
        found[module] = _digest(file)
        with suppress(InputError, OSError):
            package = module if FilePath(file).stem == "__init__" else module.rpartition(".")[0]
            waiting += _named_in(FilePath(file).read_bytes(), file, package)
    return Imports(name, tuple(sorted(found.items())))


def _named_by(function: Any) -> Iterator[str]:
    """The modules that a function itself names: its file does, or whatever is pickled of it."""
    if isinstance(function, SentFunction):
        package = function.code.module.rpartition(".")[0]
        yield from _with_parents(package)
        yield from _named_in(function.code.data, function.code.file, package)
        return
    texts = (argument for _, argument, _ in pickletools.genops(_pickled(function)) if isinstance(argument, str))
    beside = _names_beside()
    for word in {word for text in texts for word in text.split(" ")}:
        if word in sys.modules or word.partition(".")[0] in beside:
            yield from _with_parents(word)


def _names_beside() -> set[str]:
    """The names in the folders where Python looks for modules, besides those of installed packages."""
    found: set[str] = set()
    for folder in {each or os.getcwd() for each in sys.path}:
        with suppress(OSError):
            if is_users(os.path.join(folder, "any.py")):
                found.update(name.partition(".")[0] for name in os.listdir(folder))
    return found


def _pickled(function: Any) -> bytes:
    """As it travels: by name; or else as its code, which needs cloudpickle, as dask and loky have it."""
    with suppress(Exception):
        if b"__main__" not in (data := bytes(ForkingPickler.dumps(function))):
            return data
    with suppress(Exception):
        dumps: Any = load_object("cloudpickle:dumps")
        code: bytes = dumps(function)
        return code
    return bytes(ForkingPickler.dumps(None))


def _named_in(data: bytes, file: str, package: str) -> Iterator[str]:
    """The modules that a file imports anywhere; names that it imports from modules may be modules too."""
    for node in ast.walk(syntax_tree(Code("", "", "", file, data, alone=True))):
        match node:
            case ast.Import():
                names = [each.name for each in node.names]
            case ast.ImportFrom():
                parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*parts, *([node.module] if node.module else [])])
                names = [f"{source}.{each.name}" for each in node.names if source]
            case _:
                continue
        for name in names:
            yield from _with_parents(name)


def _with_parents(name: str) -> Iterator[str]:
    """A module and the packages that it is in, as far as they may be the user's."""
    parts = name.split(".")
    if parts[0] in _NOT_THE_USERS or ((file := _file_of(parts[0])) and not is_users(file)):
        return
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


@lru_cache(maxsize=10_000)
def is_users(file: str) -> bool:
    """Whether a file is a module of the user's: not of Python, of sateen, or of a package that was installed."""
    if not file:
        return False
    path = FilePath(os.path.realpath(file))
    return not (set(_INSTALLED) & set(path.parts) or any(path.is_relative_to(folder) for folder in _installed()))


@cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    python = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(os.path.realpath(each) for each in (*python, str(FilePath(__file__).parents[1])))


def _arrived(black_box: str, versions: tuple[tuple[str, str], ...], process: str) -> Imports:
    """Where the black box is to run, before it is there."""
    far = process != _HERE.name
    if far:
        with _HERE.lock:
            _look(name for name, _ in versions)
            if not _HERE.listed:
                _HERE.listed.update(sys.modules)
    return Imports(black_box, versions, far)


def _look(names: Iterable[str]) -> None:
    """Note the file of each module: until it is loaded, and once after that."""
    for name in names:
        module = sys.modules.get(name)
        if module is not None and name in _HERE.loaded and _HERE.loaded[name][0] is module:
            continue
        file = _file_of(name)
        now = _digest(file)
        if module is not None:
            before = _HERE.waiting.pop(name, None)
            known = not _changed_since_began(file) if before is None else before == now
            _HERE.loaded[name] = module, now if known else ""
        elif name not in sys.modules:  # still
            _HERE.waiting[name] = now


def _file_of(name: str) -> str:
    try:
        return module_file(name)
    except Exception:  # the finders of others may raise anything
        return ""


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(FilePath(file).read_bytes()).hexdigest()[:_DIGITS] if file else _NOT_HERE
    except OSError:
        return _NOT_HERE


def _changed_since_began(file: str) -> bool:
    """Whether a file was changed after this process began, as far as that is known."""
    began = _HERE.began
    if not _HERE.forked:
        with suppress(Exception):
            process: Any = load_object("psutil:Process")  # workers of dask have it
            began = min(began, float(process().create_time()))
    try:
        status = os.stat(file)
    except OSError:
        return True
    return max(status.st_mtime, status.st_ctime) > began


def _other_version(name: str, there: str, here: str, where: str = "") -> PoolError:
    what = f"has loaded another version of the module {name}: sha256 {there} there, sha256 {here} here"
    if not there:
        what = f"had the module {name} before this work, and its file was changed since the worker began"
    return PoolError(
        f"a worker{where} {what}\n"
        "  a process imports a module once: restart the workers, or open the pool again; if they have files of their "
        "own, copy the new one there; what is stored is kept"
    )
