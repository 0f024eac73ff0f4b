"""The record of a session, in its folder: what is asked, which rounds were made, and what was claimed.

    sir-session/
      session.json       the document, the rounds, how many of them are complete, the claims
      stages/runs.db     every run, as it is made
      stages/*.safetensors   rounds that were chosen by a search, or that came from a study

A round is written down before its runs are made. So after a kill the same round is made again, from the same seed, and
what is in the store is not run twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Final

from sateen.core.errors import InputError, SateenError, StoreError
from sateen.pipeline.folder import CachedFile, ResultFolder, read_summary, write_summary
from sateen.serve.files import SESSION

FORMAT: Final = 1
_FILE: Final = "session.json"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}")
_AGAIN: Final = "open the session again"
_REMEDY: Final = "start a new session"


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a session: `done` of its `rounds` are complete, and have `runs` runs."""

    document: dict[str, Any]
    rounds: tuple[dict[str, Any], ...] = ()
    done: int = 0
    runs: int = 0
    claims: tuple[dict[str, Any], ...] = ()
    saved: str | None = None

    @property
    def pending(self) -> dict[str, Any] | None:
        """The round that was begun, and is not complete."""
        return self.rounds[self.done] if self.done < len(self.rounds) else None

    def begun(self, round_: dict[str, Any]) -> Record:
        """With a further round, whose runs are about to be made."""
        return replace(self, rounds=(*self.rounds, round_))

    def completed(self, runs: int) -> Record:
        """With the pending round complete, and so many runs in all."""
        return replace(self, done=self.done + 1, runs=runs)


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The folder of a session."""

    path: FilePath
    held: ResultFolder = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", ResultFolder(self.path, _AGAIN))

    @property
    def name(self) -> str:
        """The name of the session."""
        return self.path.name.removesuffix(SESSION)

    @property
    def store(self) -> FilePath:
        """Where the runs are kept."""
        return self.held.stages / "runs.db"

    def write(self, record: Record) -> None:
        """Keep a record."""
        content = {
            "format": FORMAT,
            "document": record.document,
            "rounds": list(record.rounds),
            "done": record.done,
            "runs": record.runs,
            "claims": list(record.claims),
            "saved": record.saved,
        }
        with self.held.writing(file := self.path / _FILE):
            write_summary(file, content)

    def read(self) -> Record:
        """The record that is kept; a StoreError if it is damaged."""
        content = CachedFile(self.path / _FILE, lambda file: read_summary(file, FORMAT), _REMEDY).value()
        try:
            rounds, claims = (tuple(map(dict, content[name])) for name in ("rounds", "claims"))
            record = Record(
                dict(content["document"]), rounds, int(content["done"]), int(content["runs"]), claims, content["saved"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.path / _FILE} is invalid: {error!r}\n  {_REMEDY}") from None
        if not 0 <= record.done <= len(record.rounds) <= record.done + 1:
            raise StoreError(f"{self.path / _FILE} is invalid: it has {record.done} rounds\n  {_REMEDY}")
        return record


def round_file(folder: SessionFolder, number: int) -> FilePath:
    """The file of a round that a search has made, or that came from a study."""
    return folder.held.stages / f"round-{number}.safetensors"


def session_folder(root: FilePath, name: str) -> SessionFolder:
    """The folder of the session with a name."""
    if not _NAME.fullmatch(name):
        problem = f"{name[:100]!r} cannot be part of the name of a folder"
        raise InputError(problem, remedy="take letters, digits, _ and -, at most 60")
    path = root / f"{name}{SESSION}"
    if path.is_symlink():
        raise InputError(f"{path.name} is a link, and no link is followed to a session")
    return SessionFolder(path)


def free_name(root: FilePath, wanted: str) -> str:
    """A name, made of what is wanted, that no session has."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")[:50] or "session"
    number = 1
    while (root / f"{(name := stem if number == 1 else f'{stem}-{number}')}{SESSION}").exists():
        number += 1
    return name


def summary(path: FilePath) -> dict[str, Any] | None:
    """What a list of sessions says of one; None for what is no session, or is damaged."""
    folder = SessionFolder(path)
    try:
        record = folder.read()
    except SateenError:
        return None
    formula = str(record.document.get("formula", ""))
    return {"name": folder.name, "formula": formula, "runs": record.runs, "saved": record.saved}
