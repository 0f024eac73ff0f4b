"""The command `merge`: the parts of a study, run apart, to one folder in which the study continues."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

import click

import sateen as st
from sateen.cli.options import JSON
from sateen.cli.output import show, table
from sateen.cli.progress import Bar

_MOST_NAMED: Final = 20  # parts that are missing


@click.command()
@click.argument("sources", metavar="FOLDER...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "into",
    required=True,
    metavar="FOLDER",
    help="The folder to merge into; what it already has stays.",
)
@JSON
def merge(sources: tuple[str, ...], into: str, as_json: bool) -> None:
    """Join the folders that `sateen run --part` has filled. Their order does not matter, and duplicate runs are counted
    once, for example if a job was queued again. If two folders contradict each other, or belong to different studies,
    nothing is merged.

    Parts may be missing: they can be merged later into the same folder, and `sateen run STUDY.toml -o FOLDER` makes the
    missing runs, and continues. Stores of `observe` in Python, which are files, are merged in the same way.

    \b
    sateen merge sir-part-* -o sir-result
    sateen run examples/sir.toml -o sir-result
    """
    merged = st.merge(sources, into=into, progress=Bar())
    show(as_json, lambda: _content(merged), lambda: _lines(merged))


def _content(merged: st.Merged) -> dict[str, object]:
    about = {"into": merged.into, "study": merged.study, "complete": merged.complete, "added": merged.added}
    runs = {name: {"has": merged.has[name], "total": total} for name, total in merged.total.items()}
    return {**about, "runs": runs, "missing": [f"{number}/{parts}" for number, parts in merged.missing]}


def _lines(merged: st.Merged) -> Iterator[str]:
    yield f"{merged.study or 'stores'}, into {merged.into}: {merged.added:,} runs added"
    rows = [(name, f"{merged.has[name]:,}", "of", f"{total:,} runs") for name, total in merged.total.items()]
    yield from table(rows, str.rjust, indent="  ")
    if merged.missing:
        named = ", ".join(f"{number}/{parts}" for number, parts in merged.missing[:_MOST_NAMED])
        rest = len(merged.missing) - _MOST_NAMED
        yield f"missing, all or in part: {named}" + (f" and {rest:,} more" if rest > 0 else "")
    if merged.study:
        command = shlex.join(["sateen", "run", merged.file or "STUDY.toml", "-o", merged.into])
        yield f"{command} {'continues' if merged.complete else 'makes the runs that are missing, and continues'}"
