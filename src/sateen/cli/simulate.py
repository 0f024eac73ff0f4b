"""The command `simulate`: one run of a model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import click

import sateen as st
from sateen.cli.options import AT, CONST, END, JSON, PLOT, SEED, property_option, written
from sateen.cli.output import number, run_content, show, table, warn, write_run
from sateen.cli.sources import check_constants, load_model, read_property
from sateen.core.text import values_text


@click.command()
@click.argument("model")
@AT
@CONST
@click.option("--until", type=float, metavar="T", help="How long the run is; by default, the horizon of the formula.")
@SEED
@property_option("Say whether the run satisfies it, and why.")
@END
@click.option("--csv", callback=written, metavar="FILE", help="Write the run as a table, which `monitor` reads.")
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
    if end is not None and text is None:
        raise click.UsageError("--end says how a formula is read; give one with -p")
    source = load_model(model, constants)
    system = source.model
    values = system.values(at)
    if text is None:
        check_constants(source, [])
    formula = None if text is None else read_property(source, values, text, end).formula
    if until is None:
        if formula is None or math.isinf(formula.horizon):
            raise click.UsageError("how long is the run? Give --until T, or -p with a formula of finite horizon")
        until = formula.horizon
    if formula is not None:
        st.monitor(formula, st.simulate(system, at, until=0, seed=seed))  # an undefined name is found before the run
    path = st.simulate(system, at, until=until, seed=seed)
    explanation = None if formula is None else st.explain(formula, path)
    if path.end < until:
        warn(f"the run was stopped at time {path.end:g}, after {len(path) - 1} jumps")
    files = write_run(path, explanation, csv, plot)
    given = {"model": model, "seed": seed, "until": until}
    show(
        as_json,
        lambda: {**given, **run_content(path, explanation), "files": files},
        lambda: [f"{model}, seed {seed}, time 0 to {path.end:g}", *_lines(path, explanation, until, files)],
    )


def _lines(path: st.Path, explanation: st.Explanation | None, until: float, files: list[str]) -> Iterator[str]:
    """The values it was made under, how many jumps it has, and the counts of every species; then the verdict."""
    if not files:
        if path.values:
            yield values_text(path.values)
        ending = f"absorbed, nothing happens after {path.times[-1]:g}" if path.absorbed else "not absorbed"
        yield f"jumps: {len(path) - 1}; {ending}"  # the initial state is none
        yield ""
        rows = [["species", "first", "last", "least", "most"]]
        for name in path.species:
            counts = path.column(name)
            rows.append([name, *map(number, (counts[0], counts[-1], counts.min(), counts.max()))])
        yield from table(rows, str.rjust)
    if explanation is not None:
        yield f"\n{explanation}"
        if str(explanation.verdict) == "unknown":
            horizon = explanation.formula.horizon
            enough = f"--until {horizon:g} decides it" if until < horizon < math.inf else "a longer one may decide it"
            yield f"\nthis run is too short to tell; {enough}"
    yield from files
