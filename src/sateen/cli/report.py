"""The command `report`: the page that shows a result, and its figures for papers."""

from __future__ import annotations

from functools import partial

import click

import sateen as st
from sateen.cli.options import JSON
from sateen.cli.output import say_code, show
from sateen.core.code import refuse_code, watching_code


@click.command()
@click.argument("folder", metavar="RESULT")
@click.option(
    "-o", "--output", "file", metavar="FILE.html", help="The file to write; by default report.html in the result."
)
@click.option("--figures", "pictures", metavar="FOLDER", help="Also write the figures, each to a file of this folder.")
@click.option(
    "--suffix",
    type=click.Choice([".svg", ".pdf", ".png"]),
    default=".svg",
    show_default=True,
    help="The format of --figures.",
)
@click.option("--code", is_flag=True, help="Run code of yours where the report needs it: a learner of your own.")
@JSON
def report(folder: str, file: str | None, pictures: str | None, suffix: str, code: bool, as_json: bool) -> None:
    """Write the report of a result, which is a folder that `sateen run` has filled: one HTML file that needs no
    network, so you can send it to others. The result itself is not changed, and only the runs that are shown are
    simulated.

    \b
    sateen report sir-result
    sateen report sir-result -o sir.html --figures figures --suffix .pdf
    """
    from sateen.report.report import save_figures, write_report

    if file is not None and not file.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"the report is a page: end the name {file} in .html")
    with watching_code(say_code if code else partial(refuse_code, remedy="pass {code=True}")):
        result = st.Result.load(folder)
        page = str(result.folder / "report.html") if file is None else file
        write_report(result, page)
        figures = [] if pictures is None else save_figures(result, pictures, suffix)
    show(as_json, lambda: {"result": folder, "report": page, "figures": figures}, lambda: [*figures, page])
