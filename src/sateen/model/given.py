"""What was given where a Model belongs: let through, or refused with the way to make one."""

from __future__ import annotations

import os
from typing import Final

from sateen.core.errors import InputError
from sateen.core.text import shown
from sateen.model.model import Model

_MOST_NAME: Final = 200  # characters of a name of a file in an advice


def check_model(given: object, *, or_callable: bool = False) -> None:
    """Refuse what is no Model; `or_callable` lets a black box through too."""
    if isinstance(given, Model) or (or_callable and callable(given) and not isinstance(given, type)):
        return
    wanted = "a Model or a callable" if or_callable else "a Model"
    what, remedy = type(given).__name__, "st.Model.parse(text) and st.Model.load(file) read one"
    if isinstance(given, type):
        what = f"the class {given.__name__}"
    elif isinstance(given, os.PathLike) or (isinstance(given, str) and _names_a_file(given)):
        what = "the name of a file"
        remedy = f"st.Model.load({shown(os.fspath(given))}) reads the model in that file"
    elif isinstance(given, str):
        what = "text"
        remedy = "st.Model.parse(text) reads the model that text says"
    raise InputError(f"{{model}} is {wanted}, not {what}", argument="model", remedy=remedy)


def _names_a_file(text: str) -> bool:
    """Whether text is rather the name of a file than a model: short, on one line, and with a suffix or a folder."""
    name = os.path.basename(text)
    return len(text) <= _MOST_NAME and text.isprintable() and "->" not in text and (name != text or "." in name)
