"""Model files: each language of models has a reader, which is found by the suffix of a file.

A new language is one file with a ModelReader, and one line in READERS. Another package adds one by an entry point in
the group `sateen.models`, whose name is the suffix:

    [project.entry-points."sateen.models"]
    ".bngl" = "my_package.bngl:READER"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sateen.core.errors import InputError, ModelError
from sateen.core.reading import read_text
from sateen.core.registry import Registry
from sateen.files.atomic import write_text

if TYPE_CHECKING:
    from sateen.model.model import Model

MAX_CHARACTERS: Final = 200_000  # of the text of a model
_TEXT: Final = "sateen.model.reactions:READER"
_SBML: Final = "sateen.model.sbml_written:READER"
_PRISM: Final = "sateen.model.prism:READER"


@dataclass(frozen=True, slots=True)
class ModelReader:
    """How one language of models is read and written.

    `read(text)` makes the model that a text describes; if the language `takes_constants`, that is, lets a model leave
    constants open, it is `read(text, constants=values)`; if it `takes_scale`, because amounts in it may be
    concentrations, it is `read(text, scale=..., split=...)`. `write(model)`, where there is one, makes the text. Files
    of more than `max_bytes` are refused unread.
    """

    read: Callable[..., Model]
    write: Callable[[Model], str] | None = None
    takes_constants: bool = False
    takes_scale: bool = False
    max_bytes: int = 4 * MAX_CHARACTERS


READERS: Final[Registry[ModelReader]] = Registry(
    "model reader",
    "sateen.models",
    {
        ".sateen": _TEXT,
        ".txt": _TEXT,
        ".xml": _SBML,
        ".sbml": _SBML,
        ".ant": "sateen.model.antimony:READER",
        ".prism": _PRISM,
        ".sm": _PRISM,
    },
)


def reader_of(path: Path) -> ModelReader:
    """The reader of a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        remedy = f"known: {', '.join(READERS.names())}"
        raise ModelError(f"{path}: no reader for {path.suffix or 'a file without suffix'}", remedy=remedy)
    return READERS[suffix]


def load_model(
    path: Path,
    constants: Mapping[str, object] | None = None,
    *,
    scale: float | str | None = None,
    split: bool = True,
) -> Model:
    """The model in a file, by the reader of its suffix; `constants` are for languages that leave some open."""
    reader = reader_of(path)
    if constants and not reader.takes_constants:
        remedy = "they are for models in the PRISM language; other models have parameters"
        raise ModelError(f"{path} takes no constants, and {', '.join(constants)} is given", remedy=remedy)
    if not reader.takes_scale and (scale is not None or not split):
        remedy = "it is for SBML and Antimony; in other models species are counts, and every rate has one direction"
        raise ModelError(f"{path} takes no {'split' if scale is None else 'scale'}", remedy=remedy)
    text = read_file(path, reader.max_bytes)
    try:
        if reader.takes_scale:
            return reader.read(text, scale=scale, split=split)
        return reader.read(text, constants=constants) if reader.takes_constants else reader.read(text)
    except ModelError as error:
        if error.text:
            raise
        raise ModelError(f"{path}: {error.message}", remedy=error.remedy) from None


def save_model(model: Model, path: Path) -> None:
    """Write a model in the language of the suffix; what it cannot say is a ModelError, and nothing is written."""
    suffix = path.suffix.lower()
    write = READERS[suffix].write if suffix in READERS else None
    if write is None:
        remedy = f"known: {', '.join(each for each in READERS.names() if READERS[each].write)}"
        raise ModelError(f"{path}: no writer for {path.suffix or 'a file without suffix'}", remedy=remedy)
    write_text(path, write(model))


def read_file(path: Path, max_bytes: int = 4 * MAX_CHARACTERS) -> str:
    """The text of a file; ModelError where it is not a regular file, not text in UTF-8, or too large."""
    try:
        text = read_text(path, max_bytes)
    except InputError as error:
        raise ModelError(error.message, remedy=error.remedy) from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
