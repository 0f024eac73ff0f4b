"""Notes in a store: decisions that were made once and must not be made otherwise when the work is resumed.

What depends on the clock, such as how many seconds a run took, is written here before it is used. A note is never
changed: the one who comes second reads what is there.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from sateen.core.fingerprints import checksum
from sateen.core.types import File
from sateen.files.plain import FAULTS, fault_text, parse_json
from sateen.sampling.database import Database

_MOST_BYTES: Final = 2**27  # of one note, expanded


class Notes:
    """The notes of one piece of work, known by its `key`; in the store, or without one in memory."""

    def __init__(self, file: File | None, key: str) -> None:
        self.key = key
        self._memory: dict[str, dict[str, Any]] = {}
        self._database = None if file is None else Database(file)

    def __enter__(self) -> Notes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            self._database.__exit__()

    def read(self, name: str) -> dict[str, Any] | None:
        """The note of this name, or None if there is none."""
        if self._database is None:
            return self._memory.get(name)
        with self._database.speaking():
            question = "SELECT content FROM note WHERE key = ?"
            row = self._database.connection.execute(question, (self._place(name),)).fetchone()
        return None if row is None else self._unpacked(self._database, name, row[0])

    def write(self, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Keep a note, and return it; or the one that another process has written in the meantime."""
        if self._database is None:
            return self._memory.setdefault(name, content)
        text = json.dumps({"content": content, "checksum": checksum(content, {})}, allow_nan=False)
        row = (self._place(name), zlib.compress(text.encode(), 1))
        with self._database.speaking(), self._database.writing():
            self._database.connection.execute("INSERT OR IGNORE INTO note VALUES (?, ?)", row)
        kept = self.read(name)
        assert kept is not None
        return kept

    def _place(self, name: str) -> str:
        return f"{self.key} {name}"

    @staticmethod
    def _unpacked(database: Database, name: str, content: object) -> dict[str, Any]:
        try:
            if not isinstance(content, bytes):
                raise ValueError("a note is not of bytes")
            expander = zlib.decompressobj()
            note: Any = parse_json(expander.decompress(content, _MOST_BYTES))
            if not expander.eof or note["checksum"] != checksum(note["content"], {}):
                raise ValueError(f"the note {name} does not match its checksum")
            return dict(note["content"])
        except (*FAULTS, zlib.error) as error:
            raise database.damaged(fault_text(error)) from error
