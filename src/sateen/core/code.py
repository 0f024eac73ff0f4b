"""Code of the user's, in Python: found, read and checked without being run, and run only when it is asked for.

An address is `file.py:name`, of a file that is looked for from a folder on; or `module:name`, of a module that is
looked for where Python looks for modules, and then in the current folder. Finding a module imports nothing, not even
the packages that it is in. The bytes that are run are the bytes that were read.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.abc
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from operator import attrgetter
from pathlib import Path as FilePath
from threading import RLock
from types import ModuleType
from typing import Any, Final, NoReturn

from sateen.core.errors import InputError, TextError, nearest
from sateen.core.reading import read_bytes
from sateen.core.registry import load_object

_MOST_BYTES: Final = 2**20  # of a file of code
_MOST_STEPS: Final = 10  # from a name that is imported to where it is defined
_SHOWN_DIGITS: Final = 12  # of a hash
_SHOWN_NAMES: Final = 10
_ALONE: Final = "study_"  # how the modules begin that belong to no package
_NEVER_SENT: Final = ("__main__", "sateen")
_RUNNING: Final = RLock()  # files of the same name make place for each other


@dataclass(frozen=True, slots=True)
class Code:
    """What stands at an address: in which module it has which `name`, and the bytes of the file of that module.

    A module without a file of its own in Python, such as `math`, has neither `file` nor `data`.
    """

    address: str
    module: str
    name: str
    file: str
    data: bytes = field(repr=False)
    alone: bool  # a file that belongs to no package

    @property
    def digest(self) -> str:
        """The SHA-256 of the file; "" where there is none."""
        return hashlib.sha256(self.data).hexdigest() if self.file else ""

    def __str__(self) -> str:
        return f"{self.address} in {self.file} (sha256 {self.digest[:_SHOWN_DIGITS]}…)" if self.file else self.address

    def load(self) -> object:
        """Run the file, unless that was done before, and return what has the name; `watching_code` is told first."""
        if watch := _WATCH.get():
            watch(self)
        try:
            return _run_alone(self) if self.alone else _imported(self)
        except (Exception, SystemExit) as error:
            raise InputError(f"{self.address} cannot be run: {type(error).__name__}: {error}") from error


_WATCH: ContextVar[Callable[[Code], None] | None] = ContextVar("watch", default=None)


@contextmanager
def watching_code(watch: Callable[[Code], None]) -> Iterator[None]:
    """Calls `watch` with the code of each file before it is first run in the block; it may raise an error."""
    told: set[tuple[str, bytes]] = set()

    def once(code: Code) -> None:
        if (code.module, code.data) not in told:
            watch(code)
            told.add((code.module, code.data))

    token = _WATCH.set(once)
    try:
        yield
    finally:
        _WATCH.reset(token)


@dataclass(frozen=True, slots=True)
class SentFunction:
    """A function as it travels: with the bytes of its file. In this process it is still the function itself."""

    code: Code
    function: Any = field(default=None, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        return SentFunction, (self.code,)


def sendable(function: Any) -> Any:
    """The function with the file that defines it, so that no process runs an older version; or the function alone.

    It goes alone if it is no top-level function of a file, or if the file is sateen's own.
    """
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "<")
    there = sys.modules.get(module)
    if there is None or module.partition(".")[0] in _NEVER_SENT or not _has(there, name, function):
        return function
    loader, file = getattr(there.__spec__, "loader", None), getattr(there, "__file__", None) or ""
    if not file.endswith(".py") or not FilePath(file).is_file():
        return function
    data = loader.data if isinstance(loader, _Bytes) else _read(FilePath(file))
    package, _, last = module.rpartition(".")
    if last.startswith(_ALONE):
        return SentFunction(Code(f"{os.path.basename(file)}:{name}", module, name, file, data, True), function)
    beside = f"{package}.{_ALONE}{last}" if package else f"{_ALONE}{last}"  # its relative imports stay what they are
    return SentFunction(Code(f"{module}:{name}", beside, name, file, data, True), function)


def received(function: Any) -> Any:
    """The function that was sent; its file is run first, unless that was done before."""
    if not isinstance(function, SentFunction):
        return function
    return function.function or _run_sent(function.code)


@lru_cache(maxsize=16)
def _run_sent(code: Code) -> object:
    """What has the name in a file that was sent. The file finds its data next to the copy that this machine has."""
    module = code.address.rpartition(":")[0]
    with suppress(InputError):
        code = replace(code, file=(not module.endswith(".py") and module_file(module)) or code.file)
    return code.load()


def stands_alone(module: str) -> bool:
    """Whether a module is a file that was run as its bytes, and is in no package."""
    return module.rpartition(".")[2].startswith(_ALONE)


def _has(module: ModuleType, name: str, thing: object) -> bool:
    """Whether this thing is what has the name in a module."""
    try:
        return attrgetter(name)(module) is thing
    except AttributeError:
        return False


def refuse_code(code: Code, remedy: str = "leave out {code=False}") -> NoReturn:
    """Raise the error that says what would be run, and how to allow it."""
    remedy = f"read it first; if you trust it, {remedy}"
    raise InputError(f"this would run {code}, which is not allowed here", argument="code", remedy=remedy)


def find_code(address: str, folder: FilePath) -> Code:
    """The code at an address; an InputError if there is none, or if it is not Python. Nothing is run."""
    where, colon, name = address.rpartition(":")
    if not (colon and where and name and all(part.isidentifier() for part in name.split("."))):
        raise InputError(f"{address!r} is not the address of code; write file.py:name, or module:name")
    if not where.endswith(".py"):
        code = _in_module(address, where, name)
    else:
        file = folder / where
        module = _ALONE + re.sub(r"\W", "_", file.stem)
        code = Code(address, module, name, str(file.absolute()), _read(file), alone=True)
    _check_name(code, where)
    return code


def definition(code: Code) -> ast.stmt | None:
    """The statement at the top level of the file that defines the name; None where only running it would tell."""
    return _definitions(code).get(code.name.partition(".")[0]) if code.file else None


def _check_name(code: Code, where: str) -> None:
    """Refuse a name that the module does not have, as far as that is known before it is run."""
    imported = None if code.alone else sys.modules.get(code.module)
    known: Mapping[str, object] = _definitions(code) if imported is None else vars(imported)
    told = bool(code.file or imported) and not {"*", "__getattr__"} & set(known)
    if told and code.name.partition(".")[0] not in known:
        public = [name for name in known if not name.startswith("_")]
        hint = nearest(code.name, public) or f"it has {', '.join(public[:_SHOWN_NAMES]) or 'nothing'}"
        raise InputError(f"{where} has no {code.name}; {hint}")


def _read(file: FilePath) -> bytes:
    try:
        return read_bytes(file, _MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"there is no file {file}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def _in_module(address: str, where: str, name: str) -> Code:
    """The code in a module, or in the one from which that module imports the name."""
    code = Code(address, where, name, "", b"", alone=False)
    for _ in range(_MOST_STEPS):
        file = module_file(where)
        if not file:
            return code
        code = Code(address, where, name, file, _read(FilePath(file)), alone=False)
        first, dot, rest = name.partition(".")
        origin = _definitions(code).get(first)
        if not isinstance(origin, ast.ImportFrom):
            return code
        package = where if FilePath(file).stem == "__init__" else where.rpartition(".")[0]
        parts = package.split(".")[: len(package.split(".")) - max(origin.level - 1, 0)] if origin.level else []
        source = ".".join([*parts, *([origin.module] if origin.module else [])])
        name = next(each.name for each in origin.names if (each.asname or each.name) == first) + dot + rest
        try:
            module_file(source)
        except InputError:
            return code  # where it comes from is not known until it is run
        where = source
    return code


def module_file(module: str) -> str:
    """The Python file of a module; "" if it has none."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None) or ""
        return file if file.endswith(".py") else ""
    path: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    importlib.invalidate_caches()
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:end]), path)
        if spec is None:
            missing = f"No module named {'.'.join(parts[:end])!r}"
            remedy = "install it, or write package.module:name"
            raise InputError(f"the module {module} cannot be imported: {missing}; {remedy}")
        path = spec.submodule_search_locations or []
    assert spec is not None
    return spec.origin if spec.origin and spec.origin.endswith(".py") else ""


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """How Python would import a module from a path, None for that of all modules; nothing is imported."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    for finder in sys.meta_path:
        if spec := finder.find_spec(name, path):
            return spec
    return PathFinder.find_spec(name, [os.getcwd()]) if path is None else None


def syntax_tree(code: Code) -> ast.Module:
    """The file as Python reads it; nothing is run."""
    try:
        text = importlib.util.decode_source(code.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code of others
            return ast.parse(text)
    except SyntaxError as error:
        lines = importlib.util.decode_source(code.data).split("\n") if error.lineno else []
        start = sum(len(line) + 1 for line in lines[: (error.lineno or 1) - 1])
        place = start + max((error.offset or 1) - 1, 0)
        raise TextError(f"{code.file} is not Python: {error.msg}", "\n".join(lines), place) from None
    except (ValueError, MemoryError, RecursionError) as error:
        reason = "it is nested too deeply" if not isinstance(error, ValueError) else str(error)
        raise InputError(f"{code.file} is not Python: {reason}") from None


def _definitions(code: Code) -> dict[str, ast.stmt]:
    """What is defined, assigned or imported at the top level, by name; "*" where everything of a module is imported."""
    found: dict[str, ast.stmt] = {}
    waiting: list[ast.AST] = list(reversed(syntax_tree(code).body)) if code.file else []
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.Import() | ast.ImportFrom():
                found |= {each.asname or each.name.partition(".")[0]: node for each in node.names}
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
                found |= {each.id: node for each in names}
            case _:
                waiting += reversed([each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)])
    return found


class _Bytes(importlib.abc.SourceLoader):
    """Loads a module from bytes that were read already: what is run is what was read, and no cache comes between."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file, self.data = file, data

    def get_filename(self, fullname: str) -> str:
        return self.file

    def get_data(self, path: str | bytes) -> bytes:
        return self.data


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module of one piece of code, as its bytes."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.code.module:
            return None
        file = self.code.file
        inside = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        loader = _Bytes(file, self.code.data)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inside)


def _run_alone(code: Code) -> object:
    """Run a file that is in no package, unless that was done before."""
    with _RUNNING:
        return _run_anew(code)


@lru_cache(maxsize=16)
def _run_anew(code: Code) -> object:
    """Run a file. Others of the same name, of other studies, make place for it."""
    sys.modules.pop(code.module, None)
    return _imported(code)


def _imported(code: Code) -> object:
    """What has the name in a module, which is imported unless it is there."""
    if not code.file or code.module in sys.modules:
        loader = getattr(getattr(sys.modules.get(code.module), "__spec__", None), "loader", None)
        if isinstance(loader, _Bytes) and loader.data != code.data:
            raise ImportError(f"{code.file} was changed after this process had run it; start the process again")
        return load_object(f"{code.module}:{code.name}")
    finder = _Finder(code)
    sys.meta_path.insert(0, finder)
    if not code.alone and FilePath(code.file).is_relative_to(os.getcwd()) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # for the packages that it is in, and for what it imports itself
    try:
        return load_object(f"{code.module}:{code.name}")
    finally:
        sys.meta_path.remove(finder)
