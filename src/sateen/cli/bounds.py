"""The command `bounds`: a lower and an upper bound of the probability for every parameter, computed and not sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import asked_of
from sateen.cli.output import draw, show, writing
from sateen.cli.progress import Bar


@click.command()
@click.argument("model")
@shared.property_option("The formula that a run should satisfy.", several=True)
@shared.VARY
@shared.AT
@shared.CONST
@shared.END
@click.option(
    "--width", type=float, default=0.05, show_default=True, metavar="W", help="How far apart the bounds may be."
)
@click.option("--seconds", type=float, metavar="S", help="How long it may take; bounds found by then hold.")
@click.option("--cells", type=shared.COUNT, metavar="N", help="The largest number of cells.")
@click.option(
    "-o", "--output", "target", callback=shared.written, metavar="FILE.csv", help="Write the cells to a table."
)
@shared.PLOT
@shared.JSON
def bounds(
    model: str,
    texts: Sequence[str],
    vary: Mapping[str, st.Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    width: float,
    seconds: float | None,
    cells: int | None,
    target: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Cut the space into cells, and compute for each a lower and an upper bound of the probability that a run of the
    MODEL in a file satisfies a formula. The bounds hold at every parameter of the cell; no run is made.

    This is for finite chains and two or three parameters. What cannot be bounded is refused, with the reason.

    \b
    sateen bounds examples/sir.sateen -p "(I > 0) U[100, 120] (I == 0)" --vary beta=0.005:0.3 --width 0.1 --seconds 60
    """
    shared.check_files({"-o": target, "--plot": plot})
    system, formulas, space = asked_of(model, texts, vary, at, constants, end)
    if len(formulas) > 1:
        raise click.UsageError("bounds are about one property; give one -p")
    (formula,) = formulas.values()
    found = st.bounds(system, formula, space, width=width, seconds=seconds, cells=cells, progress=Bar())
    if target is not None:
        _write(found, target)
    if plot is not None:
        draw(plot, found.plot())
    files = [each for each in (target, plot) if each]

    def content() -> dict[str, object]:
        from sateen.study.decided import bounds_content

        return {"model": model, "formula": str(formula), **bounds_content(found), "files": files}

    show(as_json, content, lambda: [model, str(found), str(found.claim), *files])


def _write(found: st.BoundMap, file: str) -> None:
    """A row for each cell: the ends of each parameter, and the bounds."""
    names = found.space.names
    header = [f"{name}_{end}" for name in names for end in ("low", "high")] + ["lower", "upper"]
    with writing(file) as stream:
        stream.write(f"{','.join(header)}\n".encode())
        for low, high, lower, upper in zip(found.low, found.high, found.lower, found.upper, strict=True):
            ends = [end for pair in zip(low.tolist(), high.tolist(), strict=True) for end in pair]
            stream.write((",".join(map(repr, [*ends, float(lower), float(upper)])) + "\n").encode())
