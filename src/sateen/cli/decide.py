"""The command `decide`: where the probability is above a threshold, where below, and where that is not known."""

from __future__ import annotations

from collections.abc import Iterator

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import (
    ABOVE,
    BAND,
    BELOW,
    FOLDER,
    WORKERS,
    box_lines,
    from_study,
    is_study,
    refuse_study_options,
)
from sateen.cli.output import draw, show
from sateen.cli.sources import load_learned
from sateen.core.errors import InputError


@click.command()
@click.argument("file", metavar="STUDY.toml|POSTERIOR.safetensors")
@ABOVE
@BELOW
@BAND
@click.option("--box", "with_box", is_flag=True, help="Also find the largest box on the side that is asked for.")
@shared.SEED
@FOLDER
@WORKERS
@shared.on_option
@shared.PLOT
@shared.NO_CODE
@shared.JSON
@click.pass_context
def decide(
    ctx: click.Context,
    /,
    file: str,
    above: float | None,
    below: float | None,
    level: float | None,
    with_box: bool,
    seed: int,
    folder: str | None,
    workers: int | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say on how much of the space the probability is above a threshold and on how much it is below, by the bands of
    the posterior or the guarantee in a file; where a band contains the threshold, it is undecided.

    A STUDY whose table [decide] has a threshold is run first, if it is not complete, and what it decided is
    shown.

    \b
    sateen decide sir.safetensors --above 0.1 --box --plot sir.svg
    sateen decide examples/threshold.toml
    """
    from sateen.study.decided import regions_content

    if is_study(file):
        answer, decision = from_study(ctx, file, "regions", folder, workers, ("with_box", "plot"))
        regions, box = decision.regions, decision.box
        assert regions is not None
        about = {"file": file, "property": answer.name}
    else:
        refuse_study_options(ctx)
        with shared.usage():
            if (above is None) == (below is None):
                raise InputError("which threshold? Give one of {above=P} and {below=P}", argument="above")
        regions = st.decide(load_learned(file), above=above, below=below, level=level, seed=seed)
        box = _box(regions) if with_box else None
        about = {"file": file}
    if plot is not None:
        draw(plot, regions.plot(observations=regions.posterior.training.observations))
    files = [plot] if plot else []

    def lines() -> Iterator[str]:
        yield from (file, str(regions))
        if with_box:
            yield from box_lines(box)
        yield from files

    def content() -> dict[str, object]:
        told = regions_content(regions)
        return {**about, **{key: told[key] for key in told if with_box or key not in ("box", "no_box")}, "files": files}

    show(as_json, content, lines)


def _box(regions: st.Regions) -> st.Space | None:
    try:
        return regions.box()
    except InputError:
        return None
