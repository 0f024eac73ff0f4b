"""A Python callable that a study names, as `file.py:name` or `module:name`, in the place of a model."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path as FilePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sateen.core.errors import InputError, nearest

if TYPE_CHECKING:
    from sateen.sampling.blackbox import Function

__all__ = ["find_function"]


def find_function(address: str, folder: FilePath) -> tuple[Function, str]:
    """The function at an address, and the SHA-256 of the file it stands in.

    A file is looked for from `folder` on, a module where Python looks for modules. What stands at the top level of
    either is run, as by any import: only a study that is trusted should be.
    """
    where, colon, name = address.rpartition(":")
    if not (colon and where and name):
        raise InputError(f"{address!r} is no address of a callable; write file.py:name, or module:name")
    found = _in_file(folder / where, name) if where.endswith(".py") else _in_module(where, name)
    if not callable(found):
        raise InputError(f"{address} is of type {type(found).__name__}, and a black box is a callable: f(theta, rng)")
    named = inspect.isfunction(found) and found.__name__.isidentifier() and not found.__closure__
    file = FilePath(inspect.getsourcefile(found) or "") if named else None
    if file is None or not file.is_file():
        remedy = "write it with `def`, at the top level of a file"
        raise InputError(f"{address} is no plain function, so its runs could not be known again; {remedy}")
    return found, hashlib.sha256(file.read_bytes()).hexdigest()


def _in_file(file: FilePath, name: str) -> Any:
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(f"study_{file.stem}", file)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and the like look for the module they are in
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise InputError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    return _named(module, name, str(file))


def _in_module(where: str, name: str) -> Any:
    try:
        module = pkgutil.resolve_name(where)
    except (ImportError, AttributeError, ValueError) as error:
        remedy = "install it, or give its file, as file.py:name"
        raise InputError(f"the module {where} cannot be imported: {error}; {remedy}") from None
    return _named(module, name, where)


def _named(module: ModuleType, name: str, where: str) -> Any:
    if not hasattr(module, name):
        functions = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        hint = nearest(name, functions) or f"it has {', '.join(functions) or 'no function'}"
        raise InputError(f"{where} has no {name}; {hint}")
    return getattr(module, name)
