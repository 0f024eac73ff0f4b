"""Model files: the suffix says which reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sateen.core.errors import ModelError
from sateen.model.model import Model
from sateen.model.reactions import MAX_CHARACTERS, read_reactions

__all__ = ["READERS", "load_model"]


def load_model(path: Path) -> Model:
    """The model in a file, by the reader of its suffix."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(READERS)
        raise ModelError(f"{path}: no reader for {path.suffix or 'a file without suffix'}", remedy=f"known: {known}")
    return reader(path)


def _read_text(path: Path) -> Model:
    try:
        if path.stat().st_size > 4 * MAX_CHARACTERS:
            raise ModelError(f"{path} is too large for a model: at most {MAX_CHARACTERS:,} characters are read")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not text in UTF-8") from None
    return read_reactions(text)


READERS: Final[Mapping[str, Callable[[Path], Model]]] = {".sateen": _read_text, ".txt": _read_text}
