"""Recipes as they are chosen on a command line: a method by name, and settings that its class must know."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import click

from sateen.study.recipes import METHODS, SettingError
from sateen.study.recipes import recipe as chosen

__all__ = ["METHODS", "recipe", "settings"]

_WORDS: Final[dict[Any, dict[str, Any]]] = {NoneType: {"none": None}, bool: {"true": True, "false": False}}


def settings(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """What `--set name=value` gives, by name; the values are read once the method is known."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as batch=100")
        if name in given:
            raise click.BadParameter(f"{name} is given twice")
        given[name] = value
    return given


def recipe(method: str, given: Mapping[str, str]) -> Any:
    """The recipe of a method with these settings, as texts by name; None where `learn` is to choose."""
    if method == "auto" and given:
        many = ", ".join(given)
        raise click.UsageError(f"{many}: the method is auto, which chooses for itself; say which with --method")
    try:
        return chosen(method, given, _read)
    except SettingError as error:
        raise click.UsageError(str(error)) from None


def _read(name: str, text: str, hint: Any, written: str) -> Any:
    try:
        return _value(text, hint)
    except ValueError:
        raise SettingError(f"{name}={text}: the setting {name} is of type {written}", name) from None


def _value(text: str, hint: Any) -> Any:
    """A text as a value of a type; a ValueError if it is none.

    >>> _value("0.3, 1", tuple[float, ...] | None), _value("none", int | None), _value("1e-3", float)
    ((0.3, 1.0), None, 0.001)
    >>> _value("1, 2; 3, 4", tuple[tuple[float, ...], ...])
    ((1.0, 2.0), (3.0, 4.0))
    """
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for each in options:
            try:
                return _value(text, each)
            except ValueError:
                continue
        raise ValueError(text)
    if origin is tuple:
        parts = text.strip("()[]").split(";" if get_origin(options[0]) is tuple else ",")
        return tuple(_value(part.strip(), options[0]) for part in parts if part.strip())
    if origin is Literal:
        return options[[str(one) for one in options].index(text)]
    if hint in (int, float, str):
        return hint(text)
    words: dict[str, Any] = _WORDS.get(hint, {})
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
