"""The one layout of checkpoints: which fit one belongs to, and its words and arrays, in the container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import exists
from typing import Any, Final

from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.types import Array, Arrays, File
from sateen.files.container import read_container, write_container

_KIND: Final = "checkpoint"
_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A file from which the same fit resumes; `fit` is the fingerprint of the fit. Without a file nothing is kept."""

    file: File | None
    fit: str

    @classmethod
    def of(cls, file: File | None, *fit: object) -> Checkpoint:
        """The checkpoint of a fit that this plain data tells from every other."""
        return cls(file, fingerprint(fit))

    def read(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """The words and arrays that were kept, or None where there is no file; that of another fit is refused."""
        if self.file is None or not exists(self.file):
            return None
        *_, content, arrays = read_container(self.file, {_KIND: _FORMAT})
        if content.pop("fit", None) != self.fit:
            raise self.refusal()
        return content, dict(arrays)

    def write(self, content: Mapping[str, object], arrays: Arrays) -> None:
        """Keep words and arrays in the place of what was kept before."""
        if self.file is not None:
            write_container(self.file, _KIND, _FORMAT, {"fit": self.fit, **content}, arrays)

    def refusal(self) -> InputError:
        """The error that says that the file belongs to another fit."""
        what = "other observations, another seed, or another recipe, such as one with more epochs"
        return InputError(f"{self.file} is a checkpoint of another fit: {what}; delete it, or name another file")
