"""One way to derive random streams from a seed: by name.

Streams with different names are independent, so no two stages of a piece of work share random numbers, and adding a
stage does not change the numbers of the others.
"""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import TYPE_CHECKING, Final

from sateen.core.errors import InputError

if TYPE_CHECKING:
    from numpy.random import Generator, SeedSequence

_WORDS: Final = 4  # of 32 bits, from the hash of the names
_MOST: Final = 2**63


def stream(seed: int, *names: str | int) -> Generator:
    """The generator of the stream with these names.

    >>> bool(stream(1, "order", 3).integers(100) == stream(1, "order", 3).integers(100))
    True
    """
    from numpy.random import default_rng

    return default_rng(seed_sequence(seed, *names))


def stream_seed(seed: int, *names: str | int) -> int:
    """A seed for work that takes a seed itself: a whole number below 2^32.

    >>> stream_seed(1, "train") != stream_seed(1, "test")
    True
    """
    return int(seed_sequence(seed, *names).generate_state(1)[0])


def seed_sequence(seed: int, *names: str | int) -> SeedSequence:
    """numpy's SeedSequence of the stream with these names."""
    from numpy.random import SeedSequence

    # A separator that no part contains, so that ("ab", "c") and ("a", "bc") differ; a number is not its own text.
    parts = (f"{type(name).__name__} {name}".replace("\0", "\0\0") for name in names)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    key = tuple(int.from_bytes(digest[4 * n : 4 * n + 4], "little") for n in range(_WORDS))
    return SeedSequence(seed, spawn_key=key)


def check_seed(seed: object) -> None:
    """Refuses what is not a seed of runs."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < _MOST:
        raise InputError(f"a seed is a whole number from 0 to 2^63 - 1, not {seed!r}", argument="seed")
