"""The files that the page may see: those below the folder that the server was started in, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Final

from sateen.core.errors import InputError
from sateen.core.reading import read_text

SESSION: Final = "-session"  # how the folders of sessions end
_LANGUAGES: Final = {
    ".sateen": "sateen",
    ".ant": "antimony",
    ".xml": "sbml",
    ".sbml": "sbml",
    ".prism": "prism",
    ".sm": "prism",
}
_STUDY: Final = ".toml"
_MOST_BYTES: Final = 2**24  # of a model
_MOST_STUDY: Final = 2**18  # bytes of a study
_MOST_SHOWN: Final = 200_000  # characters of a model that the page edits
_MOST_LISTED: Final = 500
_MOST_SEEN: Final = 20_000  # entries that are looked at
_DEPTH: Final = 3  # of folders that are listed
_SHOWN: Final = 100  # characters of a name that is refused


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of the server, and the code that the command line named: black boxes, and learners by their class."""

    root: FilePath
    allowed: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()

    def path(self, name: str) -> FilePath:
        """The file or folder of a relative name, with all links resolved; refused if it lies outside."""
        parts = FilePath(name).parts if "\0" not in name else ()
        if not parts or FilePath(name).is_absolute() or ".." in parts or "\\" in name:
            raise InputError(f"{name[:_SHOWN]!r} is not the name of a file below the folder of the server")
        root = self.root.resolve()
        try:
            path = (root / name).resolve()
        except (OSError, RuntimeError):
            raise InputError(f"{name[:_SHOWN]!r} leads nowhere") from None
        if not path.is_relative_to(root):
            raise InputError(f"{name[:_SHOWN]!r} lies outside of the folder of the server")
        return path

    def text(self, name: str) -> str:
        """The text of a model or a study."""
        path = self.path(name)
        if path.suffix.lower() not in (*_LANGUAGES, _STUDY, ".txt"):
            raise InputError(f"{name[:_SHOWN]!r} is neither a model nor a study", remedy=f"{_known()} can be opened")
        try:
            return read_text(path, _MOST_STUDY if is_study(name) else _MOST_BYTES)
        except FileNotFoundError:
            raise InputError(f"there is no file {name[:_SHOWN]}") from None
        except OSError as error:
            raise InputError(f"{name[:_SHOWN]} cannot be read: {error.strerror or error}") from None

    def shown(self, name: str) -> str | None:
        """The text of a model as the page edits it; None for one that is too large to be sent with every request."""
        text = self.text(name)
        return text if len(text) <= _MOST_SHOWN else None

    def beside(self, study: str, name: str) -> str:
        """The name, from the folder on, of a file that a study names; refused if it lies outside."""
        root = self.root.resolve()
        try:
            path = (self.path(study).parent / name).resolve()
        except (OSError, RuntimeError, ValueError):
            raise InputError(f"{name[:_SHOWN]!r}, which {study} names, leads nowhere") from None
        if not path.is_relative_to(root) or path == root:
            remedy = "start `sateen serve` in a folder that has both, or copy the file beside the study"
            raise InputError(f"{study} names {name[:_SHOWN]!r}, outside of the folder of the server", remedy=remedy)
        return path.relative_to(root).as_posix()

    def learner(self, name: str) -> str:
        """The name of a learner. The class of a user's own is code, so the command line must have named it."""
        if ":" in name and name not in self.learners:
            remedy = f"if you trust it, name it on the command line: sateen serve --learner {name[:_SHOWN]}"
            raise InputError(f"the learner {name[:_SHOWN]} is Python code, which is not run here", remedy=remedy)
        return name

    def black_box(self, address: str | None) -> str:
        """The address of a black box, if the command line named it."""
        if address not in self.allowed:
            remedy = "black boxes run your code, so they are named on the command line: sateen serve file.py:name"
            raise InputError(f"{str(address)[:_SHOWN]!r} is not allowed here", remedy=remedy)
        return str(address)

    def listed(self) -> list[dict[str, str]]:
        """The models and studies below the folder, and the black boxes that are allowed."""
        files = [{"path": name, "kind": kind} for name, kind in self._files()]
        return [*files, *({"path": address, "kind": "black-box"} for address in self.allowed)]

    def sessions(self) -> list[FilePath]:
        """The folders of sessions, directly in the folder."""
        found = (path for path in self.root.glob(f"*{SESSION}") if not path.is_symlink())
        return sorted(path for path in found if (path / "session.json").is_file())

    def _files(self) -> Iterator[tuple[str, str]]:
        seen = listed = 0
        for folder, folders, names in os.walk(self.root):
            where = FilePath(folder).relative_to(self.root)
            folders[:] = sorted(
                name
                for name in folders
                if len(where.parts) < _DEPTH and not name.startswith(".") and not name.endswith((SESSION, "-result"))
            )
            for name in sorted(names):
                seen += 1
                if seen > _MOST_SEEN or listed >= _MOST_LISTED:
                    return
                suffix = FilePath(name).suffix.lower()
                if suffix in _LANGUAGES or suffix == _STUDY:
                    path = (where / name).as_posix()
                    try:
                        self.path(path)
                    except InputError:  # a link that leads out
                        continue
                    listed += 1
                    yield path, "study" if suffix == _STUDY else "model"


def language_of(name: str) -> str:
    """The language of a model file."""
    return _LANGUAGES.get(FilePath(name).suffix.lower(), "sateen")


def is_study(name: str) -> bool:
    """Whether a name is that of a study."""
    return name.lower().endswith(_STUDY)


def _known() -> str:
    return ", ".join((*_LANGUAGES, _STUDY))
