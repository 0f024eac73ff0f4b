"""A Python callable that a study names, as `file.py:name` or `module:name`, in the place of a model."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path as FilePath
from types import ModuleType
from typing import TYPE_CHECKING

from sateen.core.errors import InputError, nearest

if TYPE_CHECKING:
    from sateen.sampling.source import Function

__all__ = ["find_function"]


def find_function(address: str, folder: FilePath) -> tuple[Function, str]:
    """The function at an address, and the SHA-256 of the file it stands in.

    A file is looked for from `folder` on, a module where Python looks for modules. What stands at the top level of
    either is run, as by any import: only a study that is trusted should be.
    """
    where, colon, name = address.rpartition(":")
    if not (colon and where and name):
        raise InputError(f"{address!r} is no address of a callable; write file.py:name, or module:name")
    function, code = _in_file(folder / where, name) if where.endswith(".py") else (_in_module(where, name), None)
    if not callable(function):
        kind = type(function).__name__
        raise InputError(f"{address} is of type {kind}, and a black box is a callable: f(theta, rng)")
    plain = inspect.isfunction(function) and function.__name__.isidentifier() and not function.__closure__
    file = FilePath(inspect.getsourcefile(function) or "") if plain else None
    if file is None or not file.is_file():
        remedy = "write it with `def`, at the top level of a file"
        raise InputError(f"{address} is no plain function, so its runs could not be recognised later; {remedy}")
    return function, hashlib.sha256(file.read_bytes() if code is None else code).hexdigest()


class _Bytes(importlib.abc.SourceLoader):
    """Loads a module from bytes that were read already: what is run is what was read, and no cache comes between."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file, self.data = file, data

    def get_filename(self, fullname: str) -> str:
        return self.file

    def get_data(self, path: str | bytes) -> bytes:
        return self.data


def _in_file(file: FilePath, name: str) -> tuple[object, bytes]:
    """What has the name in a file, and the bytes of the file."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {file}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    title = f"study_{file.stem}"
    loader = _Bytes(str(file.absolute()), data)
    spec = importlib.util.spec_from_loader(title, loader, origin=loader.file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module  # where dataclasses and the like look for the module they are in
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[title]
        raise InputError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    return _named(module, name, str(file)), data


def _in_module(where: str, name: str) -> object:
    try:
        module = pkgutil.resolve_name(where)
    except (ImportError, AttributeError, ValueError) as error:
        remedy = "install it, or give its file, as file.py:name"
        raise InputError(f"the module {where} cannot be imported: {error}; {remedy}") from None
    return _named(module, name, where)


def _named(module: ModuleType, name: str, where: str) -> object:
    if not hasattr(module, name):
        functions = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        hint = nearest(name, functions) or f"it has {', '.join(functions) or 'no function'}"
        raise InputError(f"{where} has no {name}; {hint}")
    return getattr(module, name)
