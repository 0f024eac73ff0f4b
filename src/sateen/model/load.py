"""Model files: the suffix says which reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sateen.core.errors import ModelError
from sateen.model.model import Model
from sateen.model.reactions import MAX_CHARACTERS, read_reactions

if TYPE_CHECKING:
    from sateen.model.prism import PrismModel
    from sateen.model.sbml import SbmlModel

__all__ = ["PRISM_SUFFIXES", "READERS", "SBML_SUFFIXES", "load_model", "load_prism", "load_sbml"]

PRISM_SUFFIXES: Final = (".prism", ".sm")
SBML_SUFFIXES: Final = (".xml", ".sbml", ".ant")


def load_model(path: Path, constants: Mapping[str, Any] | None = None) -> Model:
    """The model in a file, by the reader of its suffix; `constants` are for languages that leave some open."""
    suffix = path.suffix.lower()
    if suffix in PRISM_SUFFIXES:
        return load_prism(path, constants).model
    reader = READERS.get(suffix)
    if reader is None:
        known = ", ".join([*READERS, *PRISM_SUFFIXES])
        raise ModelError(f"{path}: no reader for {path.suffix or 'a file without suffix'}", remedy=f"known: {known}")
    if constants:
        remedy = "they are for models in the PRISM language; other models have parameters"
        raise ModelError(f"{path} takes no constants, and {', '.join(constants)} is given", remedy=remedy)
    return reader(path)


def load_prism(path: Path, constants: Mapping[str, Any] | None = None) -> PrismModel:
    """The model in a file in the PRISM language, with its labels and formulas, for properties."""
    from sateen.model.prism import read_prism

    return read_prism(_text(path), constants=constants)


def load_sbml(path: Path) -> SbmlModel:
    """The model in a file of SBML or Antimony, with what its assignment rules set."""
    if path.suffix.lower() == ".ant":
        from sateen.model.antimony import read_antimony

        return read_antimony(_text(path))
    from sateen.model.sbml import read_sbml
    from sateen.model.sbml_safety import MAX_BYTES

    return read_sbml(_text(path, MAX_BYTES))


def _load_sbml(path: Path) -> Model:
    return load_sbml(path).model


def _read_text(path: Path) -> Model:
    return read_reactions(_text(path))


def _text(path: Path, most: int = 4 * MAX_CHARACTERS) -> str:
    try:
        if path.stat().st_size > most:
            raise ModelError(f"{path} is too large for a model: at most {most:,} bytes are read")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not text in UTF-8") from None


READERS: Final[Mapping[str, Callable[[Path], Model]]] = {
    **dict.fromkeys((".sateen", ".txt"), _read_text),
    **dict.fromkeys(SBML_SUFFIXES, _load_sbml),
}
