"""What commands print: aligned columns for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sateen.core.path import Path
    from sateen.logic.monitor import Explanation

__all__ = ["aligned", "explanation_content", "number", "path_content", "print_json"]


def number(value: float | str) -> str:
    """A number as short as it reads back; text as it is."""
    from sateen.core.text import number_text

    return value if isinstance(value, str) else number_text(float(value))


def aligned(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust) -> Iterator[str]:
    """The rows as lines of columns; `justify` says how all but the first column stand."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        rest = (justify(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([row[0].ljust(widths[0]), *rest]).rstrip()


def path_content(path: Path) -> dict[str, Any]:
    """A path as plain data."""
    table = {"species": path.species, "times": path.times.tolist(), "states": path.states.tolist()}
    return {**table, "end": path.end, "absorbed": path.absorbed, "values": dict(path.values)}


def explanation_content(explanation: Explanation | None) -> dict[str, Any]:
    """An explanation as plain data; nothing for none."""
    if explanation is None:
        return {}
    rows = [
        {"formula": str(row.node), "depth": row.depth}
        | {when: [asdict(span) for span in getattr(row, when)] for when in ("holds", "unknown")}
        for row in explanation.rows
    ]
    formula = explanation.formula
    asked = {"formula": str(formula), "end": formula.end, "horizon": formula.horizon}
    return {**asked, "verdict": str(explanation.verdict), "explanation": rows}


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object; an infinite number is a text in it."""
    # Python writes Infinity, which is no JSON.
    words = {"Infinity": "inf", "-Infinity": "-inf"}
    finite = json.loads(json.dumps(content), parse_constant=words.__getitem__)
    click.echo(json.dumps(finite, allow_nan=False))
