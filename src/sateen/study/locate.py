"""Where the keys of a TOML text stand, so that a mistake in a value can be shown in its line.

`tomllib` says where a text is no TOML, but not where in a good text a key was. This walks through a text that it has
read without complaint, and writes down the position of every key and of every entry of a list.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Final, TypeAlias

__all__ = ["KeyPath", "positions"]

KeyPath: TypeAlias = "tuple[str | int, ...]"  # ("observe", "train", "points"); numbers count the entries of lists
_GAP: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACES: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# Of a string in three quotes, the first three that are not escaped end it; one or two more belong to it.
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:\\.|[^"\\])*"' + r"|'[^']*'", re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")


def positions(text: str) -> Mapping[KeyPath, int]:
    """The place of every key of a TOML text that `tomllib` reads, by its path, counted in characters from the start.

    >>> where = positions("[observe]\\ntrain = { points = 400, runs = 50 }")
    >>> where["observe",], where["observe", "train", "runs"]
    (1, 34)
    """
    return _Walk(text).document()


class _Walk:
    """A walk through the text, from key to key."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.found: dict[KeyPath, int] = {}
        self.tables: dict[KeyPath, int] = {}  # how many entries each list of tables has so far

    def document(self) -> dict[KeyPath, int]:
        """Every line: a header, or a key and its value."""
        table: KeyPath = ()
        self._skip(_GAP)
        while self.place < len(self.text):
            if self.text[self.place] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_GAP)
        return self.found

    def _header(self) -> KeyPath:
        """`[a.b]`, or `[[a.b]]`, which begins the next entry of a list."""
        many = self.text.startswith("[[", self.place)
        self.place += 1 + many
        path: KeyPath = ()
        keys = self._key()
        for number, (name, place) in enumerate(keys):
            path = (*path, name)
            self.found.setdefault(path, place)
            if many and number == len(keys) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
                self.found.setdefault(path, place)
        self._skip(_SPACES)
        self.place += 1 + many
        return path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for name, place in self._key():
            path = (*path, name)
            self.found.setdefault(path, place)
        self._skip(_SPACES)
        self.place += 1  # the sign =
        self._skip(_SPACES)
        self._value(path)

    def _key(self) -> list[tuple[str, int]]:
        """The parts of a dotted key, each with its place."""
        parts = []
        while True:
            self._skip(_SPACES)
            start = self.place
            if bare := _BARE_KEY.match(self.text, start):
                self.place, name = bare.end(), bare[0]
            else:
                name = str(tomllib.loads(f"key = {self._string()}")["key"])
            parts.append((name, start))
            self._skip(_SPACES)
            if self.text[self.place : self.place + 1] != ".":
                return parts
            self.place += 1

    def _value(self, path: KeyPath) -> None:
        first = self.text[self.place]
        if first == "[":
            self._entries(path)
        elif first == "{":
            self._pairs(path)
        elif first in "\"'":
            self._string()
        else:
            self._skip(_SCALAR)

    def _entries(self, path: KeyPath) -> None:
        self.place += 1
        number = 0
        while not self._ended("]"):
            self.found[*path, number] = self.place
            self._value((*path, number))
            number += 1

    def _pairs(self, path: KeyPath) -> None:
        self.place += 1
        while not self._ended("}"):
            self._pair(path)

    def _ended(self, mark: str) -> bool:
        """Whether the list or table ends here; what stands between its parts is passed over."""
        self._skip(_GAP)
        if self.text[self.place] == ",":
            self.place += 1
            self._skip(_GAP)
        ended = self.text[self.place] == mark
        self.place += ended
        return ended

    def _string(self) -> str:
        match = _STRING.match(self.text, self.place)
        assert match is not None  # tomllib has read it
        self.place = match.end()
        return match[0]

    def _skip(self, what: re.Pattern[str]) -> None:
        match = what.match(self.text, self.place)
        self.place = match.end() if match else self.place
