"""The command `sensitivity`: which parameters matter, and how surely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import FOLDER, WORKERS, from_study, is_study, refuse_study_options
from sateen.cli.output import draw, show, table
from sateen.cli.sources import load_posterior
from sateen.core.errors import InputError

_HEADER: Final = ("parameter", "first order", "total", "elasticity")


@click.command()
@click.argument("file", metavar="STUDY.toml|POSTERIOR.safetensors")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="The level of the intervals.")
@click.option(
    "--points",
    type=shared.COUNT,
    default=4096,
    show_default=True,
    metavar="N",
    help="The number of points of a design.",
)
@click.option(
    "--draws",
    type=shared.COUNT,
    default=64,
    show_default=True,
    metavar="N",
    help="The number of functions drawn from the posterior.",
)
@shared.SEED
@FOLDER
@WORKERS
@shared.on_option
@shared.PLOT
@shared.NO_CODE
@shared.JSON
@click.pass_context
def sensitivity(
    ctx: click.Context,
    /,
    file: str,
    level: float,
    points: int,
    draws: int,
    seed: int,
    folder: str | None,
    workers: int | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say which parameters matter to the posterior in a file: of the variance of the probability over the space, the
    share that each explains alone (first order) and takes part in (total), and its elasticity; with intervals.

    A STUDY with a table [decide] is run first, if it is not complete, and what it found is shown.

    \b
    sateen sensitivity sir.safetensors
    sateen sensitivity sir.safetensors --draws 200 --plot matter.svg
    """
    from sateen.study.decided import sensitivity_content

    if is_study(file):
        _, decision = from_study(ctx, file, "sensitivity", folder, workers, ("plot",))
        found = decision.sensitivity
        if found is None:
            raise InputError(
                f"{file}: the posterior believes that the probability is constant, so no parameter matters"
            )
    else:
        refuse_study_options(ctx)
        found = st.sensitivity(load_posterior(file), seed=seed, level=level, points=points, draws=draws)
    if plot is not None:
        draw(plot, found.plot())
    files = [plot] if plot else []

    def lines() -> Iterator[str]:
        yield f"{file}, seed {found.seed}"
        yield from table([_HEADER, *(_row(found, name) for name in found.ranked)], str.rjust)
        yield from (str(found.claim), *files)

    show(as_json, lambda: {"file": file, **sensitivity_content(found), "files": files}, lines)


def _row(found: st.Sensitivity, name: str) -> list[str]:
    """Each number with the ends of its interval."""
    cells = [name]
    for kind, means in (("first", found.first), ("total", found.total), ("elasticity", found.elasticity)):
        low, high = found.lower[kind][name], found.upper[kind][name]  # type: ignore[index]
        cells.append(f"{means[name]:.3f} [{low:.3f}, {high:.3f}]")
    return cells
