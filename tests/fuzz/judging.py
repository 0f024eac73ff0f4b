"""What a reader may do with any input: read it, or refuse it in plain words that name the place or the file."""

from __future__ import annotations

import re
import traceback
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from sateen.core.errors import InputError, SateenError, TextError

MOST_TEXT: Final = 10_000  # characters of an error
SECRET: Final = "Xq7secret"  # stands in files that no input may show
_BIDI: Final = {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}


class Broken(Exception):
    """What was read does not keep a promise; `args` say which."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format: `prepare(folder)` makes valid inputs, `mutate(rng, prepared)` spoils one, `read(data, prepared,
    folder)` reads it with `folder` for its files, and raises Broken if what it read is not right.

    `in_ci` is how many cases CI runs. `warm` is what `read` is called with first, so that all it needs is loaded.
    Errors about a file must have its `name`. `large` makes inputs of nearly ten megabytes, by name.
    """

    prepare: Callable[[Path], Any]
    mutate: Callable[[Random, Any], bytes]
    read: Callable[[bytes, Any, Path], None]
    in_ci: int
    warm: Callable[[Any], bytes]
    name: str = ""
    large: Mapping[str, Callable[[Any], bytes]] = field(default_factory=dict)


def complaint_about(error: BaseException, name: str) -> str | None:
    """What is wrong with an error of a reader that was given the file `name`; None if it is as it should be."""
    if isinstance(error, Broken):
        return f"broken promise: {error}"
    if not isinstance(error, SateenError):
        return f"{type(error).__name__} at {frame_of(error)}: {str(error)[:200]!a}"
    text = str(error)
    raised = f"{type(error).__name__} at {frame_of(error)}"
    if not text.strip():
        return f"empty text: {raised}"
    if odd := [mark for mark in text if is_raw(mark)]:
        return f"raw {odd[0]!a} in the text: {raised}: {text[:200]!a}"
    if len(text) > MOST_TEXT:
        return f"long text: {raised}: {len(text):,} characters"
    if SECRET in text:
        return f"tells another file's content: {raised}: {text[:200]!a}"
    if isinstance(error, TextError):
        if not error.text and name not in text and not re.search(r"\bline \d", text):
            return f"no place: {raised}: {text[:200]!a}"
    elif name not in text and isinstance(error, InputError) and not error.argument:
        return f"no file name: {raised}: {text[:200]!a}"
    return None


def is_raw(mark: str) -> bool:
    """Whether a terminal would obey or refuse the character rather than show it."""
    return (unicodedata.category(mark) in ("Cc", "Cs") and mark not in "\n\t") or mark in _BIDI


def frame_of(error: BaseException) -> str:
    """The last frame inside sateen that the error passed, or the last one at all."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/sateen/" in frame.filename] or frames
    if not inside:
        return "?"
    return f"{inside[-1].filename.rpartition('/sateen/')[2]}:{inside[-1].name}"


def promise(kept: object, what: str) -> None:
    """Raise Broken unless the promise is kept."""
    if not kept:
        raise Broken(what)
