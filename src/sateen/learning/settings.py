"""The settings of recipes: the words they may be, and the checks that refuse everything else. Light to import."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from sateen.core.errors import InputError, nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Activation",
    "Device",
    "InputScale",
    "KernelName",
    "Link",
    "Precision",
    "check_flag",
    "check_number",
    "check_whole",
    "check_word",
    "normalise_fields",
]

Activation: TypeAlias = Literal["silu", "leaky-relu", "tanh"]
Device: TypeAlias = Literal["auto", "cpu", "gpu"]
InputScale: TypeAlias = Literal["auto", "log", "linear"]
KernelName: TypeAlias = Literal["matern", "rbf"]
Link: TypeAlias = Literal["probit", "logit"]
Precision: TypeAlias = Literal["float32", "float64"]

_WORDS: Final = {
    "activation": ("silu", "leaky-relu", "tanh"),
    "device": ("auto", "cpu", "gpu"),
    "hyperparameters": ("subset", "joint"),
    "inputs": ("auto", "log", "linear"),
    "kernel": ("matern", "rbf"),
    "link": ("probit", "logit"),
    "precision": ("float32", "float64"),
}


def check_word(name: str, word: object) -> None:
    """Refuse a word that is none of those that the setting of that name can be.

    >>> check_word("kernel", "mattern")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: kernel is 'matern' or 'rbf', not 'mattern'; did you mean matern?
    """
    words = _WORDS[name]
    if word not in words:
        *others, last = map(repr, words)
        hint = nearest(str(word), words)
        raise InputError(
            f"{name} is {', '.join(others)} or {last}, not {word!r}" + (f"; {hint}" if hint else ""), argument=name
        )


def check_whole(value: object, name: str, least: int, *, optional: bool = False) -> None:
    """Refuse what is not a whole number from `least` up; None passes where the setting is `optional`."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is a whole number from {least} up, not {value!r}", argument=name)


def check_number(name: str, value: object, *, zero: bool = False, optional: bool = False) -> None:
    """Refuse what is not a finite number above 0, or from 0 up; None passes where the setting is `optional`."""
    if optional and value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0 < value < float("inf") or (zero and value == 0)):  # type: ignore[operator]
        raise InputError(f"{name} is a number {'from 0 up' if zero else 'above 0'}, not {value!r}", argument=name)


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is True or False, not {value!r}", argument=name)


def normalise_fields(recipe: DataclassInstance) -> None:
    """Turn numpy's numbers, and lists, in a frozen recipe into plain numbers and tuples, which files keep."""
    for field in fields(recipe):
        object.__setattr__(recipe, field.name, _plain(getattr(recipe, field.name)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
