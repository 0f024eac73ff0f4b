"""One way to derive random streams from a seed: by name.

Streams with different names are independent, so no two stages of a piece of work share random numbers, and adding a
stage does not change the numbers of the others.
"""

from __future__ import annotations

import hashlib
import math
from numbers import Integral
from typing import TYPE_CHECKING, Final

from sateen.core.errors import InputError

if TYPE_CHECKING:
    from numpy.random import Generator, SeedSequence

_WORDS: Final = 4  # of 32 bits, from the hash of the names
_MOST_OF_RUNS: Final = 2**63


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
    """numpy's SeedSequence of the stream with these names; without a seed numpy would take one from the system."""
    from numpy.random import SeedSequence

    check_seed(seed)
    # A separator that no part contains, so that ("ab", "c") and ("a", "bc") differ; a number is not its own text.
    parts = (f"{type(name).__name__} {name}".replace("\0", "\0\0") for name in names)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    key = tuple(int.from_bytes(digest[4 * n : 4 * n + 4], "little") for n in range(_WORDS))
    return SeedSequence(int(seed), spawn_key=key)


def check_seed(seed: object, *, of_runs: bool = False) -> None:
    """Refuse what is not a seed; the engine takes 63 bits of it."""
    whole = int(seed) if isinstance(seed, Integral) and not isinstance(seed, bool) else -1
    if not 0 <= whole < (_MOST_OF_RUNS if of_runs else math.inf):
        limit = "to 2^63 - 1" if of_runs else "up"
        raise InputError(f"a seed is a whole number from 0 {limit}, not {seed!r}", argument="seed")
