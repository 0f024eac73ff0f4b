"""Numbers, shares and durations as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["duration_text", "number_text", "percent", "plural", "values_text"]


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def values_text(values: Mapping[str, float]) -> str:
    """Names with their values, as messages show a state or parameters: `S = 95, I = 5`."""
    return ", ".join(f"{name} = {number_text(value)}" for name, value in values.items())


def percent(share: float | None) -> str:
    """A share as people read it.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * (share or 0.0):.10g} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "point"), plural(2000, "run")
    ('1 point', '2,000 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """A duration in two digits, in the unit that suits it.

    >>> [duration_text(each) for each in (0.02, 4, 100, 4000, 40_000, 2_000_000)]
    ['0.02 s', '4 s', '1.7 min', '1.1 hours', '11 hours', '23 days']
    """
    for unit, length in (("days", 86_400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length or (unit == "hours" and seconds >= length):
            amount = seconds / length
            return f"{amount:,.0f} {unit}" if amount >= 10 else f"{amount:.2g} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
