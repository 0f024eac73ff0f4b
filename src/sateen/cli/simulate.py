"""The command `simulate`: one run of a model, or the states of many at given times."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal, DecimalException
from pathlib import Path as FilePath
from typing import Final

import click

import sateen as st
from sateen.cli.options import AT, CONST, COUNT, END, JSON, SEED, given, property_option, usage, written
from sateen.cli.output import draw, number, run_content, shortened, show, table, warn, write_run, writing
from sateen.cli.progress import Bar
from sateen.cli.sources import check_constants, load_model, read_property
from sateen.core.text import values_text

_LEVELS: Final = (0.05, 0.5, 0.95)  # of the quantiles that are shown
_BY_MODEL: Final = ".svg"  # stands for a figure that is named by the model and the seed
_MOST_TIMES: Final = 1_000_000


def _times(ctx: click.Context, option: click.Parameter, text: str | None) -> list[float] | None:
    """The times in `0:50:1` or `0,10,50`; steps are added as decimals, so that 0:1:0.1 has 0.3 itself."""
    found: list[float] = []
    try:
        for part in text.split(",") if text is not None else ():
            low, *rest = map(Decimal, part.split(":"))
            high, step = rest or (low, Decimal(1))
            if not (step > 0 and high >= low and (high - low).is_finite()):
                raise ValueError
            if (high - low) / step >= _MOST_TIMES - len(found):
                raise click.BadParameter(f"{text!r} are more than {_MOST_TIMES:,} times; take a larger step")
            found += [float(low + place * step) for place in range(int((high - low) / step) + 1)]
    except (ValueError, DecimalException):
        raise click.BadParameter(
            f"{text!r} is not LOW:HIGH:STEP such as 0:50:1, nor times separated by commas"
        ) from None
    return None if text is None else found


@click.command()
@click.argument("model")
@AT
@CONST
@click.option("--until", type=float, metavar="T", help="How long the run is; by default, the horizon of the formula.")
@click.option("--runs", type=COUNT, metavar="N", help="Make this many runs, and keep their states at --times.")
@click.option(
    "--times",
    callback=_times,
    metavar="T|LOW:HIGH:STEP,...",
    help="The times at which many runs are recorded, such as 0:50:1.",
)
@click.option(
    "--max-events", type=COUNT, default=10_000_000, metavar="N", help="A run ends after N jumps; 10,000,000 by default."
)
@SEED
@property_option("Say whether the run satisfies it, and why.")
@END
@click.option(
    "--csv", callback=written, metavar="FILE", help="Write the states as a table; `monitor` reads the table of one run."
)
@click.option(
    "--plot",
    callback=written,
    is_flag=False,
    flag_value=_BY_MODEL,
    metavar="[FILE]",
    help="Draw it as .svg, .pdf or .png; without FILE, as MODEL-seedN.svg in this folder.",
)
@JSON
@click.pass_context
def simulate(
    ctx: click.Context,
    model: str,
    at: Mapping[str, float],
    constants: Mapping[str, float],
    until: float | None,
    runs: int | None,
    times: list[float] | None,
    max_events: int,
    seed: int,
    text: str | None,
    end: float | None,
    csv: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Make one run of the MODEL in a file; or with --runs and --times many, and show how their states spread.

    A formula given with -p may name the constants of the model, in its windows too; or -p FILE.props:NAME takes a
    property of a file.

    \b
    sateen simulate examples/sir.sateen --at beta=0.12 --until 150
    sateen simulate examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --plot sir.svg
    sateen simulate examples/sir.sateen --at beta=0.12 --runs 10000 --times 0:150:1 --plot sir.svg
    """
    if plot == _BY_MODEL:
        plot = f"{FilePath(model).stem}-seed{seed}{_BY_MODEL}"
    if (runs is None) != (times is None):
        raise click.UsageError("--runs and --times belong together: how many runs, and when to look at them")
    if runs is not None and times is not None:
        if wrong := given(ctx, ("until", "text", "end")):
            raise click.UsageError(f"{wrong[0]} is about one run, --runs and --times about many; leave out either")
        source = load_model(model, constants)
        check_constants(source, [])
        with usage():
            made = st.simulate(
                source.model, at, times=times, runs=runs, seed=seed, max_events=max_events, progress=Bar()
            )
        _show_many(made, {"model": model, "seed": seed, "runs": runs}, csv, plot, as_json)
        return
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
    path = st.simulate(system, at, until=until, seed=seed, max_events=max_events)
    explanation = None if formula is None else st.explain(formula, path)
    if path.end < until:
        warn(f"the run was stopped at time {path.end:g}, after {len(path) - 1} jumps")
    files = write_run(path, explanation, csv, plot)
    asked = {"model": model, "seed": seed, "until": until}
    show(
        as_json,
        lambda: {**asked, **run_content(path, explanation), "files": files},
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


def _show_many(
    made: st.Ensemble, asked: Mapping[str, object], csv: str | None, plot: str | None, as_json: bool
) -> None:
    """Write what many runs came to, as far as files are given, and print it."""
    if csv:
        with writing(csv) as stream:
            made.to_csv(codecs.getwriter("utf-8")(stream))
    if plot:
        draw(plot, made.plot())
    files = [file for file in (csv, plot) if file]
    quantiles, unknown = made.quantiles(_LEVELS), made.unknown

    def content() -> dict[str, object]:
        columns = {"mean": made.mean.tolist(), "deviation": made.deviation.tolist()}
        columns["quantiles"] = {f"{level:g}": each.tolist() for level, each in zip(_LEVELS, quantiles, strict=True)}
        described = {"values": dict(made.values), "species": made.species, "times": made.times.tolist()}
        return {**asked, **described, **columns, "unknown": unknown.tolist(), "files": files}

    def lines() -> Iterator[str]:
        yield f"{asked['model']}, seed {asked['seed']}: {repr(made).removeprefix('<Ensemble: ').removesuffix('>')}"
        if not files:
            yield from [values_text(made.values), ""] if made.values else [""]
            columns = (made.mean, made.deviation, *quantiles)
            rows = [
                [f"{time:g}", name, *(f"{each[place, rank]:.6g}" for each in columns), f"{unknown[place]:,}"]
                for place, time in enumerate(made.times)
                for rank, name in enumerate(made.species)
            ]
            header = ["time", "species", "mean", "deviation", *(f"{level:.0%}" for level in _LEVELS), "unknown"]
            yield from shortened(header, rows, "--csv FILE")
        yield from files

    show(as_json, content, lines)
