"""The command `report`: the page that shows a result, and its pictures for papers."""

from __future__ import annotations

from pathlib import Path as FilePath

import click

from sateen.cli.options import JSON
from sateen.cli.text import print_json

__all__ = ["report"]


@click.command(short_help="One HTML page that shows a result; its figures for papers.")
@click.argument("folder", metavar="RESULT")
@click.option("-o", "--output", "file", metavar="FILE.html", help="Where to; report.html in the result if not said.")
@click.option(
    "--figures", "pictures", metavar="FOLDER", help="Also write the figures, each into a file of this folder."
)
@click.option(
    "--suffix",
    type=click.Choice([".svg", ".pdf", ".png"]),
    default=".svg",
    show_default=True,
    help="How the files of --figures end.",
)
@JSON
def report(folder: str, file: str | None, pictures: str | None, suffix: str, as_json: bool) -> None:
    """Write the report of a result, which is a folder that `sateen run` has filled: one HTML file that needs no
    network and can be sent as it is. The result itself is not changed, and nothing is simulated but the runs shown.

    \b
    sateen report sir-result
    sateen report sir-result -o sir.html --figures figures --suffix .pdf
    """
    from sateen.report.report import save_figures, write_report
    from sateen.study.result import Result

    if file is not None and FilePath(file).suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"the report is a page: end the name {file} in .html")
    result = Result.load(folder)
    page = str(result.folder / "report.html") if file is None else file
    write_report(result, page)
    written = [] if pictures is None else save_figures(result, pictures, suffix)
    if as_json:
        print_json({"result": folder, "report": page, "figures": written})
    else:
        click.echo("\n".join([*written, page]))
