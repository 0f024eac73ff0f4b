"""Options that several commands have, and how they are read."""

from __future__ import annotations

import os
import re
from typing import Final

import click

from sateen.core.errors import InputError

__all__ = ["AT", "CONST", "END", "JSON", "PLOT", "SEED", "constants", "output", "pairs"]


def pairs(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `a=1,b=2`, by name."""
    values: dict[str, float] = {}
    for item in (item for text in texts for item in text.split(",")):
        name, _, number = (part.strip(" `") for part in item.rpartition("="))
        try:
            value = float(number)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"{item.strip()!r} is not NAME=NUMBER, such as beta=0.12")
        if name in values:
            raise click.BadParameter(f"{name} is given twice")
        values[name] = value
    return values


def constants(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `N=5,fast=true`, by name; true is 1, and false is 0."""
    words = {"true": "1", "false": "0"}
    return pairs(
        ctx, option, tuple(re.sub(r"(?<==)\s*(true|false)\b", lambda word: words[word[1]], text) for text in texts)
    )


def output(ctx: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """A file that can be written as far as its name tells; said before a long run, not after."""
    if file is not None:
        if option.name == "plot" and not file.lower().endswith((".svg", ".pdf", ".png")):
            raise click.BadParameter(f"{file!r} is no figure: end the name in .svg, .pdf or .png")
        if not os.path.isdir(folder := os.path.dirname(file) or "."):
            raise InputError(f"cannot write {file}: there is no folder {folder}")
    return file


AT: Final = click.option(
    "--at", multiple=True, callback=pairs, metavar="a=1,b=2", help="Values of parameters; repeatable."
)
CONST: Final = click.option(
    "--const",
    "constants",
    multiple=True,
    callback=constants,
    metavar="N=5,T=2",
    help="Constants that a PRISM model or a property leaves open; repeatable.",
)
SEED: Final = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default="1", metavar="N", help="Same seed, same run."
)
END: Final = click.option("--end", type=float, metavar="T", help="Read the formula on the path cut at time T.")
PLOT: Final = click.option("--plot", callback=output, metavar="FILE", help="Draw it as .svg, .pdf or .png.")
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
