"""Ranges of parameters as they are written on a command line: `beta=0.005:0.3,gamma=0.005:0.2:log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sateen.core.space import Range

__all__ = ["ranges", "ranges_or_numbers"]

_EXAMPLE = "NAME=LOW:HIGH or NAME=LOW:HIGH:log, such as beta=0.005:0.3"


def ranges(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Range]:
    """The ranges in `a=1:2,b=0.1:10:log`, by name."""
    from sateen.core.space import Range

    found = ranges_or_numbers(ctx, option, texts)
    for name, value in found.items():
        if not isinstance(value, Range):
            raise click.BadParameter(f"{name} has one value and does not vary: write {_EXAMPLE}, or fix it with --at")
    return {name: value for name, value in found.items() if isinstance(value, Range)}


def ranges_or_numbers(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Range | float]:
    """The ranges in `a=1:2,b=0.1:10:log,c=5`, by name, and the numbers of parameters that are fixed."""
    found: dict[str, Range | float] = {}
    for item in (item for text in texts for item in text.split(",")):
        name, _, value = (part.strip(" `") for part in item.rpartition("="))
        if not name:
            raise click.BadParameter(f"{item.strip()!r} is not {_EXAMPLE}")
        if name in found:
            raise click.BadParameter(f"{name} is given twice")
        found[name] = _range_or_number(item.strip(), value)
    return found


def _range_or_number(item: str, text: str) -> Range | float:
    from sateen.core.errors import SpaceError
    from sateen.core.space import Range

    *ends, last = (part.strip() for part in text.split(":"))
    scale = last if last in ("log", "linear") else ""
    try:
        numbers = [float(part) for part in (ends if scale else [*ends, last])]
        if len(numbers) == 1 and not scale:
            return numbers[0]
        low, high = numbers
    except ValueError:
        raise click.BadParameter(f"{item!r} is not {_EXAMPLE}") from None
    try:
        return Range(low, high, "log" if scale == "log" else "linear")
    except SpaceError as error:
        raise click.BadParameter(f"{item!r}: {error}") from None
