"""The command `simulate`: one run of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from sateen.cli.files import warn, write
from sateen.cli.options import AT, CONST, END, JSON, PLOT, SEED, output
from sateen.cli.sources import asked, no_constant, opened
from sateen.cli.text import aligned, explanation_content, number, path_content, print_json

if TYPE_CHECKING:
    from sateen.core.path import Path
    from sateen.logic.formula import Formula

__all__ = ["simulate"]


@click.command(short_help="One run of a model, and whether it satisfies a formula.")
@click.argument("model")
@AT
@CONST
@click.option("--until", type=float, metavar="T", help="How long the run is; by default, the horizon of the formula.")
@SEED
@click.option(
    "-p", "--property", "text", metavar="FORMULA|FILE[:NAME]", help="Say whether the run satisfies it, and why."
)
@END
@click.option("--csv", callback=output, metavar="FILE", help="Write the run as a table, which `monitor` reads.")
@PLOT
@JSON
def simulate(
    model: str,
    at: Mapping[str, float],
    constants: Mapping[str, float],
    until: float | None,
    seed: int,
    text: str | None,
    end: float | None,
    csv: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Make one run of the MODEL in a file.

    A formula given with -p may name the constants of the model, in its windows too; or -p FILE.props:NAME takes a
    property of a file.

    \b
    sateen simulate examples/sir.sateen --at beta=0.12 --until 150
    sateen simulate examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --plot sir.svg
    """
    from sateen.engine.simulate import simulate as run
    from sateen.logic.monitor import explain, monitor

    if end is not None and text is None:
        raise click.UsageError("--end says how a formula is read; give one with -p")
    source = opened(model, constants)
    system = source.model
    warn(system)
    values = system.values(at)
    formula = None
    if text is not None:
        formula = asked(source, values, text, end).formula
    elif source.constants:
        raise no_constant(source, next(iter(source.constants)))
    until = _length(until, formula)
    if formula is not None:
        monitor(formula, run(system, at, until=0, seed=seed))  # a name that nothing bears is found before the run
    path = run(system, at, until=until, seed=seed)
    explanation = None if formula is None else explain(formula, path)
    if path.end < until:
        click.echo(f"warning: the run was stopped at time {path.end:g}, after {len(path) - 1} jumps", err=True)

    files = write(path, explanation, csv, plot)
    if as_json:
        content = {"model": model, "seed": seed, "until": until, "path": path_content(path)}
        print_json({**content, **explanation_content(explanation), "files": files})
        return
    click.echo(f"{model}, seed {seed}, time 0 to {path.end:g}")
    if not files:
        _print_summary(path)
    if explanation is not None:
        click.echo(f"\n{explanation}")
        if str(explanation.verdict) == "unknown":
            horizon = explanation.formula.horizon
            enough = f"--until {horizon:g} decides it" if until < horizon < math.inf else "a longer one may decide it"
            click.echo(f"\nthis run is too short to tell; {enough}")
    for file in files:
        click.echo(file)


def _length(until: float | None, formula: Formula | None) -> float:
    """How long a run is: as long as was said, or as the formula looks ahead."""
    if until is not None:
        return until
    if formula is None or math.isinf(formula.horizon):
        raise click.UsageError("how long is the run? Give --until T, or -p with a formula of finite horizon")
    return formula.horizon


def _print_summary(path: Path) -> None:
    """What the run was made under, how many jumps it has, and the counts of every species."""
    if path.values:
        click.echo(", ".join(f"{name} = {number(value)}" for name, value in path.values.items()))
    ending = f"absorbed, nothing happens after {path.times[-1]:g}" if path.absorbed else "not absorbed"
    click.echo(f"jumps: {len(path) - 1}; {ending}\n")  # the initial state is none
    rows = [["species", "first", "last", "least", "most"]]
    for name in path.species:
        counts = path.column(name)
        rows.append([name, *map(number, (counts[0], counts[-1], counts.min(), counts.max()))])
    for line in aligned(rows, str.rjust):
        click.echo(line)
