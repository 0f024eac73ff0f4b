"""What commands read and write: models, formulas, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sateen.core.errors import FormulaError, InputError, ModelWarning

if TYPE_CHECKING:
    from sateen.core.path import Path
    from sateen.logic.formula import Formula
    from sateen.logic.monitor import Explanation
    from sateen.model.model import Model

__all__ = ["load", "read_formula", "reading", "replacing", "warn", "write"]


def load(file: str) -> Model:
    """The model in a file; its doubts are kept for `warn`."""
    import warnings

    from sateen.model.model import Model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.load(file)


def warn(model: Model) -> None:
    """What the reader of the model doubted, on stderr."""
    for doubt in model.warnings:
        click.echo(f"warning: {doubt}", err=True)


def read_formula(text: str, constants: Mapping[str, float], end: float | None, remedy: str) -> Formula:
    """The formula; a bound without a value gets the remedy of the command line, not that of Python."""
    from sateen.logic.parser import stl

    try:
        return stl(text, constants=constants, end=end)
    except FormulaError as error:
        if "constants=" not in error.remedy:
            raise
        raise FormulaError(error.message, error.text, error.position, remedy) from None


def write(path: Path, explanation: Explanation | None, csv: str | None, plot: str | None) -> list[str]:
    """Write what was asked for, the figure last, and return the names."""
    if csv:
        with replacing(csv) as temporary:
            path.to_csv(temporary)
    if plot:
        from sateen.plot import figures

        drawn = path.plot() if explanation is None else figures.path_with_explanation(path, explanation)
        with replacing(plot) as temporary:
            figures.save(drawn, temporary)
    return [file for file in (csv, plot) if file]


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Says of a file that cannot be read which it is, and why."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


@contextmanager
def replacing(file: str) -> Iterator[str]:
    """A temporary name beside `file`, which takes its place once it is whole; of a failure nothing remains."""
    from tempfile import TemporaryDirectory

    try:
        if os.path.exists(file) and not os.path.isfile(file):
            yield file  # a device or a pipe is written to, not replaced
            return
        target = os.path.realpath(file)
        with TemporaryDirectory(prefix=".sateen-", dir=os.path.dirname(target)) as folder:
            temporary = os.path.join(folder, os.path.basename(target))
            yield temporary
            os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None
