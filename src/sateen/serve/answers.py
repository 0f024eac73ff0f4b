"""What goes over the wire when something is wrong: an HTTP status and plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sateen.core.errors import (
    ExactError,
    FormulaError,
    InputError,
    MissingValueError,
    ModelError,
    SateenError,
    SimulationError,
    SpaceError,
    StoreError,
    TextError,
)

_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (FormulaError, "formula"),
    (ModelError, "model"),
    (SimulationError, "model"),
    (SpaceError, "space"),
    (MissingValueError, "space"),
    (StoreError, "store"),
    (ExactError, "input"),
    (InputError, "input"),
)
_MORE: Final = "make more runs with Refine where unsure, claim the other side, or move p"
_REMEDIES: Final[Mapping[str, str]] = {  # by the argument of `certify`
    "regions": _MORE,
    "wrong": _MORE,
    "box": _MORE,
    "budget": "leave Runs empty, and as many are made as the claim needs",
    "attempt": "start again with another seed",
}


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content["message"])
        self.content = dict(content)


def error_content(error: BaseException) -> dict[str, object]:
    """The error as the page shows it: its kind, the whole message as Python gives it, and the place in the text.

    Where Python's remedy names what the page does not have, the page has one of its own.
    """
    kind = next((name for each, name in _KINDS if isinstance(error, each)), "server")
    if isinstance(error, InputError) and error.argument in _REMEDIES:
        error = InputError(error.message, argument=error.argument, remedy=_REMEDIES[error.argument])
    message = str(error) if isinstance(error, SateenError) else f"{type(error).__name__}: {error}"
    message = error.worded(_page_words) if isinstance(error, InputError) else message
    content: dict[str, object] = {"kind": kind, "message": message, "line": None, "column": None, "length": None}
    if isinstance(error, TextError) and error.text:
        rest = error.text[error.position :]
        word = next((n for n, mark in enumerate(rest) if not (mark.isalnum() or mark == "_")), len(rest))
        content |= {"line": error.line, "column": error.column, "length": max(word, 1)}
    return {**content, "remedy": _remedy(error)}


def _remedy(error: BaseException) -> str | None:
    """The remedy alone, with its arguments in words."""
    if not isinstance(error, InputError) or not error.remedy:
        return None
    text = isinstance(error, TextError)
    alone = TextError("", remedy=error.remedy) if text else InputError(argument=error.argument, remedy=error.remedy)
    return alone.worded(_page_words).strip()


def _page_words(argument: str, value: str | None) -> str:
    """An argument as the page calls it: the values of names stand below its Parameters."""
    if argument in ("constants", "theta") and value:
        return re.sub(r'[{}"]', "", value).replace(":", " =") + " below Parameters"
    return argument if value is None else f"{argument}={value}"


def refusal(kind: str, message: str, remedy: str | None = None) -> dict[str, object]:
    """An error of the server itself."""
    return {"kind": kind, "message": message, "line": None, "column": None, "length": None, "remedy": remedy}


def status_of(kind: str) -> int:
    """The HTTP status of a kind of error: 200 for what a user types or clicks, since browsers log all others."""
    return {"gone": 503, "auth": 403, "server": 500}.get(kind, 200)
