"""The command `paper`: what the paper shows, computed and drawn anew."""

from __future__ import annotations

from typing import Any, Final

import click

from sateen.cli.options import JSON, SEED
from sateen.cli.progress import Bar
from sateen.cli.text import print_json

__all__ = ["paper"]

_PARTS: Final = ("guarantees",)
_METHODS: Final = ("EP-GP", "SVI-GP", "SVI-BNN")


def _runs(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """The whole numbers in `10,50,500`."""
    if text is None:
        return None
    try:
        found = tuple(int(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 10,50,500")
    return found


@click.command(short_help="The paper's figures, each with ours beside.")
@click.argument("part", type=click.Choice(_PARTS))
@click.option("-m", "--method", "methods", type=click.Choice(_METHODS, case_sensitive=False), multiple=True,
              help="Only this learner; repeatable. All three if not said.")  # fmt: skip
@click.option("--runs", callback=_runs, metavar="M,...", help="Runs per training point; 10,20,50,100,200,500.")
@click.option("--seeds", "trainings", type=click.IntRange(1), default=5, show_default=True, help="Trainings of each.")
@click.option("--suffix", type=click.Choice([".png", ".svg", ".pdf"]), default=".svg", show_default=True)
@click.option("-o", "--output", "folder", default="paper", show_default=True, metavar="FOLDER", help="For the files.")
@SEED
@JSON
def paper(
    part: str,
    methods: tuple[str, ...],
    runs: tuple[int, ...] | None,
    trainings: int,
    suffix: str,
    folder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Compute and draw a part of the paper, on its configuration (a).

    `guarantees`: how wide Bayesian, ICP, NICP and Chernoff bands are as the runs per point grow, the bands over the
    parameter, and PAC-Bayes bounds beside ICP and NICP; each with the lift beside it. The numbers are kept as JSON.
    All of it takes about a quarter of an hour; one learner, fewer --runs and fewer --seeds take less.

    \b
    sateen paper guarantees
    sateen paper guarantees -m svi-gp --runs 20,100 --seeds 2 -o figures
    """
    from sateen.study.guarantee_figures import paper_figures

    asked: dict[str, Any] = {"runs": runs} if runs else {}
    if methods:
        asked["learners"] = tuple(dict.fromkeys(methods))
    files = paper_figures(folder, **asked, trainings=trainings, seed=seed, suffix=suffix, progress=Bar())
    told = [str(file) for file in files]
    if as_json:
        print_json({"part": part, "seed": seed, "files": told})
    else:
        click.echo("\n".join(told))
