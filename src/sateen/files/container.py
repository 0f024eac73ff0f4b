"""The one container for what sateen saves: arrays and words in the safetensors format, which many programs read.

The arrays are its tensors. The text is in its `__metadata__`: the kind of thing that is kept and the number of its
format, the sateen that wrote it, its content as JSON, and a SHA-256 checksum over all of these and the arrays. The
header is written in one way only and read in no other, so the same content gives the same bytes, and not one byte can
change unnoticed. Nothing in the file is ever run, and the file appears whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

import numpy as np

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum, little_endian
from sateen.core.reading import opened
from sateen.core.types import Array, Arrays, Content, File
from sateen.core.version import VERSION
from sateen.files.atomic import replacing
from sateen.files.plain import parse_json

_METADATA: Final = "__metadata__"  # where a safetensors header keeps words
_WORDS: Final = {"kind", "format", "sateen", "content", "checksum"}
_PREFIX: Final = 8  # bytes before the header, which give its length
MOST_FILE: Final = 2**32  # bytes
_MOST_HEADER: Final = 2**24  # bytes; JSON takes some twenty times as much memory when it is read
_DEEPEST: Final = 100  # lists and objects inside each other
_LAST_FORMAT: Final = 10**9 - 1
_SNIFFED: Final = 512  # bytes at the start of a foreign file, which show what it is
_SHOWN: Final = 40  # characters of a foreign word

_REMEDY: Final = "restore it from a copy, or make it again"
_STRANGER: Final = "is a safetensors file, but not from sateen; give one that sateen saved"
_OLDER: Final = "was written by an older sateen, in a format that this one does not read; make it again"

_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]|\(?c[\w.]+\n\w+\n|\([dlt]p\d+\n|[\]}]q\x00")
_ZIP: Final = re.compile(rb"PK(\x03\x04|\x05\x06)")
_MARKUP: Final = re.compile(rb"(\xef\xbb\xbf)?\s*<[!?a-zA-Z]")


def write_container(file: File, kind: str, format_number: int, content: Mapping[str, object], arrays: Arrays) -> None:
    """Write arrays and their words as `file`; whatever happens, a file that was there before is whole, or replaced.

    Content is what JSON can say; tuples are read back as lists, and numpy's numbers as plain ones. Arrays are of
    booleans, or of whole or floating numbers of at most 64 bits, and are read back bit for bit, in the byte order of
    the file: the least byte of a number first.
    """
    from safetensors.numpy import save

    if not (kind and kind.isprintable() and 0 <= format_number <= _LAST_FORMAT):
        raise InputError(f"a kind is a word and a format a whole number from 0 up, not {kind!r} and {format_number!r}")
    tensors = {name: _tensor(name, array) for name, array in arrays.items()}
    text = json.dumps(_plain(content, "content"), allow_nan=False)
    words = {"kind": kind, "format": str(format_number), "sateen": VERSION, "content": text}
    stored = save(tensors, metadata={**words, "checksum": checksum(words, tensors)})
    start = _PREFIX + int.from_bytes(stored[:_PREFIX], "little")
    header = _written(json.loads(stored[_PREFIX:start]))
    if len(header) > _MOST_HEADER:
        many = f"{len(header):,} bytes, and {_MOST_HEADER:,} is the most"
        raise InputError(f"cannot write {file}: its text takes {many}; put long values into arrays")
    try:
        with replacing(file) as stream:
            stream.write(len(header).to_bytes(_PREFIX, "little") + header)
            stream.write(memoryview(stored)[start:])
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def read_container(
    file: File, formats: Mapping[str, int] | None = None
) -> tuple[str, int, dict[str, Any], dict[str, Array]]:
    """Kind, format, content and arrays of a file that `write_container` made; the arrays are read-only.

    `formats` has the kinds that can be read here, each with the number of its format; by default any. Anything else,
    and a file of an older or newer format, is an InputError that says what it is and what to do.
    """
    with opened(file, MOST_FILE) as stream:
        raw, header = _header(stream, file, tuple(formats or ()))
        words = header.get(_METADATA)
        if not isinstance(words, dict) or not {"kind", "format", "sateen"} <= words.keys():
            older = isinstance(words, dict) and {"kind", "version", "sateen"} <= words.keys()
            raise InputError(f"{file} {_OLDER if older else _STRANGER}")
        if strange := [word for word, text in words.items() if not isinstance(text, str)]:
            raise damaged(file, f"its {_short(strange[0])} is not text")
        kind, number = words["kind"], _whole(words["format"], file)
        if formats is not None and kind not in formats:
            only = f"only {_list(tuple(formats))} can be read here"
            raise InputError(f"{file} is of the kind {_short(kind)}, and {only}; give another file, or update sateen")
        if formats is not None and number != formats[kind]:
            whose = f"is of format {number}, and this sateen reads format {formats[kind]}"
            again = f"make it again, or read it with sateen {_short(words['sateen'])}"
            raise InputError(f"{file} {whose}; {'update sateen' if number > formats[kind] else again}")
        arrays = _arrays(stream, file, raw, header)
    stored = words.pop("checksum")
    if stored != checksum(words, arrays):
        raise damaged(file, "its content does not match its checksum")
    return kind, number, _content(words["content"], file), arrays


def damaged(file: File, why: str) -> InputError:
    """The error that says why a file is not to be trusted, and what to do."""
    return InputError(f"{file} is damaged: {why}\n  {_REMEDY}")


def _tensor(name: str, array: Array) -> Array:
    """The array as a file has it."""
    if not name.isprintable() or name in ("", _METADATA):
        raise InputError(f"{name!r} cannot name an array; take letters and digits")
    given = np.asarray(array)
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        remedy = "give booleans, or whole or floating numbers of at most 64 bits"
        raise InputError(f"the array {name} is of type {given.dtype}, which the file cannot hold; {remedy}")
    return little_endian(given)


def _plain(value: object, where: str, depth: int = 0) -> object:
    """`value` in lists, dicts and the plain types of JSON; what is none of them is refused by its place."""
    if depth > _DEEPEST:
        raise InputError(f"{where[:_SHOWN]}… is nested deeper than {_DEEPEST} levels, or inside itself; make it flat")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise InputError(f"{where} has the key {strange[0]!r}, and a key must be text")
        return {key: _plain(each, f"{where}[{key!r}]", depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{where}[{index}]", depth + 1) for index, each in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where} is {value}, which JSON cannot represent; write it as text, or into an array")
    if value is None or isinstance(value, str | bool | float) or (isinstance(value, int) and -(2**63) <= value < 2**64):
        return value
    what = "a whole number beyond 64 bits" if isinstance(value, int) else f"of type {type(value).__name__}"
    raise InputError(f"{where} is {what}; take text, numbers, booleans, None, lists and dicts of them")


def _written(header: Content) -> bytes:
    """The one way in which a header is written: sorted, without spaces, filled up to whole groups of eight bytes."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _header(stream: BinaryIO, file: File, kinds: tuple[str, ...]) -> tuple[bytes, dict[str, Any]]:
    """The header of a safetensors file, as it stands and as it is read."""
    start = stream.read(_SNIFFED)
    length, size = int.from_bytes(start[:_PREFIX], "little"), os.fstat(stream.fileno()).st_size
    if start[_PREFIX : _PREFIX + 1] != b"{" or length > _MOST_HEADER:
        raise InputError(f"{file} {_foreign(start, kinds)}")
    if _PREFIX + length > size:
        raise damaged(file, f"it ends after {size:,} bytes, inside its header")
    stream.seek(_PREFIX)
    raw = stream.read(length)
    try:
        return raw, dict(parse_json(raw))
    except (ValueError, TypeError) as error:
        raise damaged(file, f"its header cannot be read: {error}") from None


def _foreign(start: bytes, kinds: tuple[str, ...]) -> str:
    """What a file is that begins like this, and what to do with it."""
    if not start:
        return "is empty; restore it from a copy, or make it again"
    if _PICKLE.match(start):
        return "is a pickle: sateen reads none, because reading one runs code; save with sateen's `save`"
    if _ZIP.match(start):
        return f"is a zip, not a {_list(kinds or ('file',))} of this sateen; if an older sateen wrote it, make it again"
    if _MARKUP.match(start):
        return "is a web page, not the file itself; download it again"
    if start.isascii() and all(mark.isprintable() or mark.isspace() for mark in start.decode()):
        return "is text, not a safetensors file; give one that sateen saved"
    return "is not a safetensors file, or only a part of one; give one that sateen saved"


def _arrays(stream: BinaryIO, file: File, raw: bytes, header: Content) -> dict[str, Array]:
    """The tensors behind the header; no more is read than the header declares."""
    from safetensors.numpy import load

    size = os.fstat(stream.fileno()).st_size
    try:
        ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != _METADATA]
        whole = _PREFIX + len(raw) + max(ends, default=0)
        if size != whole:
            raise damaged(file, f"it has {size:,} bytes, and its header declares {whole:,}")
        if header[_METADATA].keys() != _WORDS or _written(header) != raw:
            raise damaged(file, "its header was changed, or written by another program")
        arrays = load(len(raw).to_bytes(_PREFIX, "little") + raw + stream.read())
        return {name: read_only(array) for name, array in sorted(arrays.items())}
    except InputError:
        raise
    except Exception as error:  # a damaged header can make the readers of tensors and arrays raise nearly anything
        raise damaged(file, f"its header is invalid: {error}") from error


def _content(text: str, file: File) -> dict[str, Any]:
    try:
        content = parse_json(text)
    except (ValueError, TypeError) as error:
        raise damaged(file, f"its content cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise damaged(file, f"its content is a {type(content).__name__}, and should be an object with keys")
    return content


def _whole(text: object, file: File) -> int:
    if not (isinstance(text, str) and re.fullmatch("[0-9]{1,9}", text)):
        raise damaged(file, f"its format is {_short(text)}, and should be a whole number")
    return int(text)


def _list(kinds: tuple[str, ...]) -> str:
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)


def _short(word: object) -> str:
    """A foreign word, made harmless."""
    shown = ascii(word)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
