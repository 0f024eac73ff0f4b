"""The command `monitor`: the verdict of a formula on a run in a table."""

from __future__ import annotations

from collections.abc import Mapping

import click

import sateen as st
from sateen.cli.options import END, JSON, PLOT, pairs
from sateen.cli.output import run_content, show, write_run
from sateen.cli.sources import reading


@click.command()
@click.argument("formula")
@click.argument("path", metavar="PATH.csv")
@END
@click.option("--constant", "constants", multiple=True, callback=pairs, metavar="T=10", help="A value; repeatable.")
@click.option("--explain", "explained", is_flag=True, help="Show for every part of FORMULA when it holds.")
@PLOT
@JSON
def monitor(
    formula: str,
    path: str,
    end: float | None,
    constants: Mapping[str, float],
    explained: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say whether the run in PATH.csv satisfies FORMULA: true, false, or unknown where it is too short to tell.

    The exit code is 0 whatever the verdict. The table has a column `time`, then one for each species; a state holds
    until the next row. A line `# end: 150` says how far the run is known, beyond its last row; `# absorbed: true` says
    forever.

    \b
    sateen monitor "F[0, T] I == 0" run.csv --constant T=120 --explain
    """
    question = st.stl(formula, constants=constants, end=end)
    with reading(path):
        run = st.Path.from_csv(path)
    explanation = st.explain(question, run) if explained or plot or as_json else None
    files = write_run(run, explanation, None, plot)
    show(
        as_json,
        lambda: {**run_content(None, explanation), "files": files},
        lambda: [str(explanation if explained else st.monitor(question, run)), *files],
    )
