"""What can go wrong. An error says what is wrong, where, and what to do next.

SateenError
├── InputError (ValueError)       what was given cannot be used
│   ├── TextError                 text, with a caret under the place
│   │   ├── ExpressionError       an arithmetic expression
│   │   ├── ModelError            a model
│   │   └── FormulaError          a formula
│   ├── SpaceError                a range, a space or points in it
│   ├── PathError                 a path or a table of one
│   ├── MissingValueError         a name that has no value
│   └── ExactError                a question that exact cannot answer
├── SimulationError               a run that cannot continue: where, when and why
├── StoreError                    a store that cannot be read or written
├── PoolError                     workers elsewhere that are gone, or differ from this sateen
└── UnknownVerdictError           an unknown verdict was used as true or false

KeyboardInterrupt
└── Interrupted                   Ctrl-C in observe; no SateenError, so that `except Exception` does not catch it

SateenWarning (UserWarning)
└── ModelWarning                  legal, but probably not meant
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from sateen.core.printable import printable

__all__ = [
    "ExactError",
    "ExpressionError",
    "FormulaError",
    "InputError",
    "Interrupted",
    "MissingValueError",
    "ModelError",
    "ModelWarning",
    "PathError",
    "PoolError",
    "SateenError",
    "SateenWarning",
    "SimulationError",
    "SpaceError",
    "StoreError",
    "TextError",
    "UnknownVerdictError",
    "nearest",
]

_ARGUMENT = re.compile(r"\{([a-z_]+)(?:=((?:[^{}]|\{[^{}]*\})*))?\}")
_SHOWN_CHARACTERS = 100  # of a line of user text, around the caret
_LONGEST_LINE = 1_000  # of any other


class SateenError(Exception):
    """The base class of all errors that sateen raises on purpose; their text is always safe to show on a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(SateenError, ValueError):
    """An input that cannot be used.

    `argument` is the Python name of the wrong argument, if there is one, and `remedy` says what to do. Both are data,
    so that Python, the command line and study files can each write them in their own way: in `message` and `remedy`,
    `{level}` stands for an argument and `{rank=2}` for an argument with a value, as long as an `argument` is given.
    `str` writes them as Python does; `worded` writes them as the command line or a study file does.

    >>> error = InputError("{level} must be below 1", argument="level", remedy="pass {allow_trivial=True}")
    >>> print(error)
    level must be below 1
      pass allow_trivial=True
    >>> print(error.worded(lambda name, value: f"--{name}" if value in (None, "True") else f"--{name} {value}"))
    --level must be below 1
      pass --allow_trivial
    """

    def __init__(self, message: str = "", *, argument: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.remedy = remedy

    def worded(self, name: Callable[[str, str | None], str]) -> str:
        """The message and the remedy, with every argument written as `name(argument, value)`; value may be None."""
        text = "\n".join([*_short(self.message), *_indented(self.remedy)])
        return printable(_with_arguments(text, name) if self.argument else text)

    def __str__(self) -> str:
        return self.worded(lambda name, value: name if value is None else f"{name}={value}")


class TextError(InputError):
    """A mistake in a text, shown with a caret under the place and a remedy below.

    `position` counts characters from the start of `text`, which may have many lines. Only the remedy names arguments.
    """

    def __init__(self, message: str, text: str = "", position: int = 0, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.text = text
        self.position = min(max(position, 0), len(text))

    @property
    def line(self) -> int:
        """The line of the mistake, counted from 1."""
        return self.text.count("\n", 0, self.position) + 1

    @property
    def column(self) -> int:
        """The column of the mistake, counted from 1."""
        return self.position - self.text.rfind("\n", 0, self.position)

    def worded(self, name: Callable[[str, str | None], str]) -> str:
        """The message, the place, and the remedy with every argument written as `name(argument, value)`."""
        lines = _short(self.message)
        if self.text:
            lines[-1] += f" (line {self.line})" if "\n" in self.text.strip("\n") else ""
            lines += _pointed(self.text, self.position)
        return printable("\n".join([*lines, *_indented(_with_arguments(self.remedy, name))]))


class ExpressionError(TextError):
    """A mistake in an arithmetic expression."""


class ModelError(TextError):
    """A mistake in a model."""


class FormulaError(TextError):
    """A mistake in a formula."""


class SpaceError(InputError):
    """A range, a space or points that do not fit it."""


class PathError(InputError):
    """A path, or a table, that is not a right-continuous trajectory from time 0."""


class MissingValueError(InputError):
    """A parameter or another name that needs a value and has none."""


class ExactError(InputError):
    """A question that exact cannot answer: too many states, or a formula of another kind."""


class SimulationError(SateenError):
    """A run that cannot continue: a rate or a count that no process can have."""


class StoreError(SateenError):
    """A store that cannot be read or written.

    `partial` are the Observations made so far, if any were: nothing that was simulated is lost with the store.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class PoolError(SateenError):
    """Workers that are gone, do not answer, or run another version of sateen.

    `partial` are the Observations made so far, if any were.
    """

    partial: Any = None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while runs were made.

    `partial` has the Observations made so far, with as many trials at each point as were run there, or a dict of them
    for several formulas. From `simulate` it has the Ensemble of the first runs, or a tuple with one for each point.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class UnknownVerdictError(SateenError):
    """An unknown verdict was used as true or false."""


class SateenWarning(UserWarning):
    """Every warning that sateen gives."""


class ModelWarning(SateenWarning):
    """A model that is legal but probably not what was meant."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`"did you mean gamma?"`, or nothing when no known name is near.

    >>> nearest("gama", ["beta", "gamma"])
    'did you mean gamma?'
    """
    candidates = list(known)
    close = get_close_matches(name, candidates, n=1, cutoff=0.6) or [
        other for other in candidates if other.lower() == name.lower()
    ]
    return f"did you mean {close[0]}?" if close else ""


def _with_arguments(text: str, name: Callable[[str, str | None], str]) -> str:
    return _ARGUMENT.sub(lambda match: name(match[1], match[2]), text)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in _short(text.strip("\n"))] if text else []


def _short(text: str) -> list[str]:
    """The lines of a text, without the middle of those that are very long: they quote what somebody wrote."""
    half = _LONGEST_LINE // 2
    return [line if len(line) <= _LONGEST_LINE else f"{line[:half]} … {line[-half:]}" for line in text.split("\n")]


def _pointed(text: str, position: int) -> list[str]:
    """The line of `text` that holds `position`, and a caret under it."""
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    line = text[start : stop if stop >= 0 else len(text)].rstrip("\r")
    column = min(position - start, len(line))
    cut = max(0, column - _SHOWN_CHARACTERS // 2)
    shown = line[cut : cut + _SHOWN_CHARACTERS]
    before = "…" if cut else ""
    after = "…" if cut + _SHOWN_CHARACTERS < len(line) else ""
    # A tab stays a tab under the line, so that the caret stands where the reader sees it.
    gap = "".join("\t" if mark == "\t" else " " for mark in printable(before + shown[: column - cut]))
    return [f"  {before}{shown}{after}", f"  {gap}^"]
