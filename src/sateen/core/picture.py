"""The way from a public object to its picture.

`core` imports no room, and matplotlib is slow to load. So an object that can be drawn asks for its picture by name:
the painter, `sateen.show.figures`, is found when the first picture is asked for, and matplotlib loads only then.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__all__ = ["paint"]

_PAINTER: Final = "sateen.show.figures"


def paint(kind: str, *args: Any, **options: Any) -> Any:
    """Draw with the painter's function `kind`, such as `"path"`, and return the matplotlib Axes it gives."""
    return getattr(import_module(_PAINTER), kind)(*args, **options)
