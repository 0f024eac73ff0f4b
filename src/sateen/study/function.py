"""The function that a study names in the place of a model: checked by its text alone, and loaded when it is run."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from sateen.core.code import Code, definition, find_code
from sateen.core.errors import InputError

if TYPE_CHECKING:
    from sateen.sampling.source import Function


def find_function(address: str, folder: FilePath) -> Code:
    """The function at an address, which is not run; a file is looked for from `folder` on."""
    code = find_code(address, folder)
    found = definition(code)
    if not code.file or not isinstance(found, ast.FunctionDef | ast.Import | ast.ImportFrom | None):
        raise _not_plain(address)
    if isinstance(found, ast.FunctionDef) and not found.decorator_list and not _takes_two(found.args):
        given = ast.unparse(found.args)
        raise InputError(f"{address} takes ({given}), and a black box is called as f(theta, rng)")
    return code


def load_function(code: Code) -> Function:
    """The function itself; the file it stands in is run."""
    function = code.load()
    plain = inspect.isfunction(function) and function.__name__.isidentifier() and not function.__closure__
    file = FilePath(inspect.getsourcefile(function) or "") if inspect.isfunction(function) and plain else None
    if not callable(function) or file is None or not file.is_file():
        raise _not_plain(code.address)
    return function


def _not_plain(address: str) -> InputError:
    remedy = "write it with `def`, at the top level of a file"
    return InputError(f"{address} is not a plain function, so its runs could not be recognised later; {remedy}")


def _takes_two(arguments: ast.arguments) -> bool:
    """Whether a function can be called with two arguments, by their places."""
    most = len(arguments.posonlyargs) + len(arguments.args)
    enough = most >= 2 or arguments.vararg is not None
    return enough and most - len(arguments.defaults) <= 2 and None not in arguments.kw_defaults
