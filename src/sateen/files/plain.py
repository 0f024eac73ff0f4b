"""Plain data from files: JSON of strangers, and its conversion to objects, checked field by field."""

from __future__ import annotations

import json
import math
import re
import zlib
from typing import Any, Final, TypeVar

import numpy as np

from sateen.core.errors import InputError

_Kind = TypeVar("_Kind")
_MOST_LISTS: Final = 10**6  # lists and objects; one of a few bytes takes up to two hundred in memory
_MOST_DIGITS: Final = 300  # of a whole number, so that each is a floating number too
_DEEPEST: Final = 200  # lists and objects inside each other
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))  # bytes that are not brackets
_TEXT: Final = re.compile(rb'"[^"]*"')
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # a half of a character beyond the first 65,536
# What objects raise whose parts do not fit each other, although each is of the right type.
FAULTS: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, AssertionError)


def parse_json(text: str | bytes) -> Any:
    """What JSON text says. Anything that is not strict JSON, too deep or out of proportion is a ValueError."""
    raw = text if isinstance(text, bytes) else text.encode()
    unescaped = raw.replace(rb"\\", b"").replace(rb"\"", b"")  # where every quote begins or ends a text
    brackets = _TEXT.sub(b"", unescaped).translate(_ALIKE, _OTHERS)
    if (count := brackets.count(b"[")) > _MOST_LISTS:
        raise ValueError(f"it has {count:,} lists and objects, and at most {_MOST_LISTS:,} are read")
    steps = np.where(np.frombuffer(brackets, np.uint8) == ord("["), 1, -1)
    if (depth := int(steps.cumsum().max(initial=0))) > _DEEPEST:
        raise ValueError(f"its lists and objects are nested {depth:,} deep, and at most {_DEEPEST} levels are read")
    value = json.loads(raw.decode(), parse_constant=_no_constant, parse_int=_whole, parse_float=_real)
    if _SURROGATE.search(raw):
        json.dumps(value, ensure_ascii=False).encode()  # half of a character is a UnicodeEncodeError
    return value


def converted(content: object, kind: type[_Kind]) -> _Kind:
    """Plain data as an object of a dataclass, a list or a mapping of a declared type; what does not fit is refused.

    >>> converted([1, 2.5], list[float])
    [1.0, 2.5]
    >>> converted({"a": "1"}, dict[str, int])
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: expected `int`, got `str` - at `$[...]`
    """
    from msgspec import ValidationError, convert

    try:
        return convert(content, kind)
    except ValidationError as error:
        words = str(error)
        raise InputError(words[:1].lower() + words[1:]) from None
    except OverflowError:
        raise InputError("a number in it is too large") from None


def expanded(content: bytes, most: int) -> bytes:
    """What was compressed, which may be this many bytes."""
    expander = zlib.decompressobj()
    data = expander.decompress(content, most)
    if not expander.eof or expander.unused_data:
        raise ValueError(f"a row is cut short, or has more than {most:,} bytes")
    return data


def fault_text(error: Exception) -> str:
    """One of the FAULTS in words."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _no_constant(name: str) -> float:
    """Python would read NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is not JSON")


def _real(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise ValueError(f"{digits[:_MOST_DIGITS]} is beyond what a floating number can be")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a whole number in it has {len(digits):,} digits, and at most {_MOST_DIGITS} are read")
    return int(digits)
