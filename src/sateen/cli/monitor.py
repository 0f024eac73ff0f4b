"""The command `monitor`: the verdict of a formula on a run in a table."""

from __future__ import annotations

from collections.abc import Mapping

import click

from sateen.cli.files import read_formula, write
from sateen.cli.options import END, JSON, PLOT, pairs
from sateen.cli.text import explanation_content, print_json
from sateen.core.errors import InputError

__all__ = ["monitor"]


@click.command(short_help="Whether a run in a table satisfies a formula.")
@click.argument("formula")
@click.argument("path", metavar="PATH.csv")
@END
@click.option("--constant", multiple=True, callback=pairs, metavar="T=10", help="The value of a name; repeatable.")
@click.option("--explain", "explained", is_flag=True, help="Show for every part of FORMULA when it holds.")
@PLOT
@JSON
def monitor(
    formula: str,
    path: str,
    end: float | None,
    constant: Mapping[str, float],
    explained: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say whether the run in PATH.csv satisfies FORMULA: true, false, or unknown where it is too short to tell.

    The exit code is 0 whatever the verdict. The table has a column `time`, then one for each species; a state holds
    until the next row. A line `# end: 150` says how far the run is known, beyond its last row; `# absorbed: true` says
    for ever.

    \b
    sateen monitor "F[0, T] I == 0" run.csv --constant T=120 --explain
    """
    from sateen.core.path import Path
    from sateen.logic.monitor import explain
    from sateen.logic.monitor import monitor as decide

    asked = read_formula(formula, constant, end, "give it one, as in --constant T=10")
    try:
        known = Path.from_csv(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    explanation = explain(asked, known) if explained or plot or as_json else None
    files = write(known, explanation, None, plot)
    if as_json:
        print_json({**explanation_content(explanation), "files": files})
        return
    click.echo("\n".join([str(explanation if explained else decide(asked, known)), *files]))
