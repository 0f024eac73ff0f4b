"""The one way to print: lines and tables for people, one JSON object for programs, warnings on stderr; and to write."""

from __future__ import annotations

import codecs
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

import click

from sateen.core.errors import InputError
from sateen.core.printable import printable
from sateen.core.text import duration_text, number_text

if TYPE_CHECKING:
    import sateen as st
    from sateen.core.code import Code

_BOLD: Final = re.compile(r"(\x1b\[[01]m)")  # the beginning and the end
_NARROWEST: Final = 20  # columns of a terminal
_SHOWN_ROWS: Final = 10  # at each end of a long table


def show(as_json: bool, content: Callable[[], Mapping[str, object]], lines: Callable[[], Iterable[str]]) -> None:
    """Print the answer of a command: its content as JSON, or its lines. Only what is printed is computed."""
    if as_json:
        print_json(content())
    else:
        put("\n".join(lines()))


def put(text: str) -> None:
    """Print lines for people to stdout."""
    click.echo(_styled(wrapped(text, sys.stdout)))


def wrapped(text: str, stream: TextIO) -> str:
    """Text whose long lines are wrapped at the width of the terminal that the stream is; elsewhere as it is.

    Tables and what is quoted, which have two spaces in a row, stay as they are.
    """
    if not stream.isatty():
        return text
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> list[str]:
    """A line in parts that fit, those after the first indented; a word that is longer than a line stays whole."""
    if len(line) <= width or "  " in line:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _styled(text: str) -> str:
    """The text as a terminal may show it: `click.style` makes headings bold, and nothing else steers it."""
    return "".join(part if _BOLD.fullmatch(part) else printable(part) for part in _BOLD.split(text))


def print_json(content: Mapping[str, object]) -> None:
    """Print one JSON object, in which an infinite number is a text, and NaN is null."""
    # Python writes Infinity and NaN, which are not JSON.
    words = {"Infinity": "inf", "-Infinity": "-inf", "NaN": None}
    finite = json.loads(json.dumps(content), parse_constant=words.__getitem__)
    click.echo(json.dumps(finite, allow_nan=False))


def say(text: str) -> None:
    """Print a line to stderr, where it does not mix with the output."""
    click.echo(printable(wrapped(text, sys.stderr)), err=True)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    say(f"warning: {text}")


def say_code(code: Code) -> None:
    """Say on stderr which code of the user's is about to be run."""
    say(f"running code of yours: {code}")


def agree(seconds: float, longest: float, yes: bool, remedy: str) -> None:
    """Ask before work that takes more than `longest` seconds; where nobody can answer, refuse it with the remedy."""
    if yes or seconds <= longest:
        return
    announced = f"this takes about {duration_text(seconds)}"
    if not sys.stdin.isatty():
        raise InputError(f"{announced}; not a terminal, so cannot ask; pass --yes{remedy}")
    click.confirm(f"{announced}; continue?", abort=True, err=True)


def number(value: float | str) -> str:
    """A number in the shortest text that reads back the same; text as it is."""
    return value if isinstance(value, str) else number_text(float(value))


def range_text(range_: st.Range) -> str:
    """A range of a parameter in words."""
    return f"in {range_}" + " on a log scale" * (range_.scale == "log")


def table(
    rows: Iterable[Sequence[str]], justify: Callable[[str, int], str] = str.ljust, indent: str = ""
) -> Iterator[str]:
    """The rows as lines of columns; `justify` aligns all columns but the first."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        rest = (justify(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield indent + "  ".join([row[0].ljust(widths[0]), *rest]).rstrip()


def shortened(header: Sequence[str], rows: Sequence[Sequence[str]], option: str) -> list[str]:
    """A table with the first and the last rows of many; `option` writes them all."""
    hidden = len(rows) - 2 * _SHOWN_ROWS if len(rows) > 2 * _SHOWN_ROWS + 1 else 0
    kept = [*rows[:_SHOWN_ROWS], *rows[_SHOWN_ROWS + hidden :]] if hidden else rows
    lines = list(table([header, *kept], str.rjust))
    if hidden:
        lines.insert(1 + _SHOWN_ROWS, f"… {hidden:,} more, which {option} writes …")
    return lines


def run_content(path: st.Path | None, explanation: st.Explanation | None) -> dict[str, object]:
    """A path and the explanation of a formula on it, as plain data; nothing for none."""
    content: dict[str, object] = {}
    if path is not None:
        columns = {"species": path.species, "times": path.times.tolist(), "states": path.states.tolist()}
        values = dict(path.values)
        content["path"] = {**columns, "end": path.end, "absorbed": path.absorbed, "values": values}
    if explanation is not None:
        rows = [
            {"formula": str(row.node), "depth": row.depth}
            | {when: [asdict(span) for span in getattr(row, when)] for when in ("holds", "unknown")}
            for row in explanation.rows
        ]
        formula = explanation.formula
        content |= {"formula": str(formula), "end": formula.end, "horizon": formula.horizon}
        content |= {"verdict": str(explanation.verdict), "explanation": rows}
    return content


def write_run(path: st.Path, explanation: st.Explanation | None, csv: str | None, plot: str | None) -> list[str]:
    """Write a run as a table and a figure, as far as files are given, and return their names."""
    if csv:
        with writing(csv) as stream:
            path.to_csv(codecs.getwriter("utf-8")(stream))
    if plot:
        from sateen.plot import figures

        draw(plot, path.plot() if explanation is None else figures.path_with_explanation(path, explanation))
    return [file for file in (csv, plot) if file]


def draw(file: str, drawn: Any) -> None:
    """Write a figure of matplotlib, or the figure of its Axes."""
    from sateen.plot import figures

    with writing(file) as stream:
        figures.save(drawn, file, stream)


@contextmanager
def writing(file: str) -> Iterator[BinaryIO]:
    """A stream whose bytes become `file` once they are complete; a failure is an error that names the file."""
    from sateen.files.atomic import replacing

    try:
        with replacing(file) as stream:
            yield stream
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None
