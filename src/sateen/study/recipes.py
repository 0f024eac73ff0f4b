"""Recipes as a study file names them: a method by name, and settings that its class must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_type_hints

from sateen.core.errors import InputError, nearest

__all__ = ["METHODS", "SettingError", "preset", "recipe"]

METHODS: Final = ("auto", "ep-gp", "svi-gp", "svi-bnn", "laplace-net", "svi-gp-faithful", "svi-bnn-faithful")
Read: TypeAlias = Callable[[str, Any, Any, str], Any]
_NONE: Final = "none"  # TOML has no word for it


class SettingError(InputError):
    """A setting that a recipe does not take; `name` is the setting, or "" where several contradict each other."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


def recipe(method: str, settings: Mapping[str, Any], read: Read | None = None) -> Any:
    """The recipe of a method with these settings; None for "auto", where `learn` is to choose.

    `read` makes a value of what was given for a setting, by its name, its type, and that type as it is written.

    >>> recipe("svi-gp", {"inducing": 200}).inducing
    200
    """
    if method == "auto":
        if settings:
            raise SettingError("the method auto chooses for itself, so it takes no settings", next(iter(settings)))
        return None
    own = preset(method)
    hints, known = get_type_hints(type(own)), {field.name: field for field in fields(own)}
    chosen = {}
    for name, value in settings.items():
        if name not in known:
            hint = nearest(name, known) or f"its settings are {', '.join(known)}"
            raise SettingError(f"{method} has no setting {name}; {hint}", name)
        chosen[name] = (read or _value)(name, value, hints[name], str(known[name].type))
    try:
        return replace(own, **chosen)
    except InputError as error:
        guilty = next((name for name in chosen if name in str(error)), "")
        raise SettingError(f"{method}: {error}", guilty) from None


def preset(method: str) -> Any:
    """The recipe of a method, as it is when nothing is set."""
    from sateen.learning.archive import classes_of

    if method == "svi-bnn-faithful":
        from sateen.learning.networks.svi_bnn import SVIBNN

        return SVIBNN.faithful()
    return classes_of(method)[0]()


def _value(name: str, value: Any, hint: Any, written: str) -> Any:
    import msgspec

    if value == _NONE and NoneType in get_args(hint):
        return None
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, TypeError):
        raise SettingError(f"the setting {name} is of type {written}, and {value!r} is not", name) from None
