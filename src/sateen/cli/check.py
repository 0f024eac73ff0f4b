"""The command `check`: the probability at one θ, from runs, with its interval; a test; exact; and one run replayed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import warn, write
from sateen.cli.options import AT, CONST, END, JSON, PLOT, SEED, output
from sateen.cli.sources import asked, opened
from sateen.cli.text import aligned, explanation_content, number, path_content, print_json
from sateen.core.errors import ExactError

if TYPE_CHECKING:
    from sateen.core.path import Path
    from sateen.logic.formula import Formula
    from sateen.logic.properties import Property
    from sateen.model.model import Model
    from sateen.sampling.estimate import Estimate

__all__ = ["check"]

_SHOWN_ROWS: Final = 10  # at each end of the table of a run
_COUNT: Final = click.IntRange(1)
_REMEDIES: Final = {"max_events": "--max-events", "max_time": "--max-time"}


@click.command(short_help="How probable it is that a run satisfies a formula.")
@click.argument("model")
@click.option(
    "-p", "--property", "text", required=True, metavar="FORMULA|FILE[:NAME]", help="What a run is to satisfy."
)
@AT
@CONST
@click.option("--runs", type=_COUNT, metavar="N", help="Make N runs; 10000 if nothing else is said.")
@click.option("--width", type=float, metavar="W", help="Make as many runs as an interval of width W needs.")
@click.option("--test", metavar="'P>0.3'", help="Make as many runs as a yes or no needs.")
@click.option(
    "--indifference",
    type=float,
    default=0.01,
    show_default=True,
    metavar="D",
    help="How near to the threshold of a test either answer will do.",
)
@click.option("--error", type=float, default=0.05, show_default=True, metavar="E", help="How often a test may err.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="How often intervals cover.")
@SEED
@END
@click.option("--max-runs", type=_COUNT, default=10_000_000, metavar="N", help="The most runs for a width or a test.")
@click.option("--max-events", type=_COUNT, default=1_000_000, metavar="N", help="A run is undecided after N jumps.")
@click.option("--max-time", type=float, default=math.inf, metavar="T", help="A run is undecided at time T.")
@click.option("--exact", "exactly", is_flag=True, help="Also compute the probability, where the model is finite.")
@click.option("--replay", type=click.IntRange(0), metavar="RUN", help="Also show one of the runs, counted from 0.")
@click.option("--csv", callback=output, metavar="FILE", help="Write the replayed run as a table.")
@PLOT
@JSON
def check(
    model: str,
    text: str,
    at: Mapping[str, float],
    constants: Mapping[str, float],
    runs: int | None,
    width: float | None,
    test: str | None,
    indifference: float,
    error: float,
    level: float,
    seed: int,
    end: float | None,
    max_runs: int,
    max_events: int,
    max_time: float,
    exactly: bool,
    replay: int | None,
    csv: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Estimate how probable it is that a run of the MODEL in a file satisfies a formula.

    The exit code is 0 whatever the answer. Run RUN of --replay is the very one that was counted. A property may be one
    of a file, FILE.props:NAME, or FILE.props:2 by its place there; P>=0.9 [ ... ] is a test, if --runs and --width do
    not say otherwise.

    \b
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --exact
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --test "P > 0.05"
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --replay 17 --plot run.svg
    """
    if sum(each is not None for each in (runs, width, test)) > 1:
        raise click.UsageError("--runs, --width and --test each say how many runs to make; give one of them")
    if replay is None and (csv or plot):
        raise click.UsageError("--csv and --plot show a single run; say which with --replay RUN")

    from sateen.cli.progress import Bar
    from sateen.sampling.estimate import estimate

    source = opened(model, constants)
    system = source.model
    warn(system)
    values = system.values(at)
    asking = asked(source, values, text, end)
    formula = asking.formula
    if runs is None and width is None and test is None:
        test = _test(asking, indifference)
    found = estimate(
        system,
        formula,
        at,
        seed=seed,
        runs=runs,
        width=width,
        test=test,
        level=level,
        indifference=indifference,
        error=error,
        max_runs=max_runs,
        max_events=max_events,
        max_time=max_time,
        progress=Bar(),
    )
    content: dict[str, Any] = {"model": model, "at": values, "formula": str(formula), "end": formula.end}
    content |= {"property": asking.name or None, "comparison": asking.comparison, "bound": asking.bound}
    content |= {"horizon": formula.horizon, "seed": seed, **_content(found)}
    if not as_json:  # what took long to find is not lost if something goes wrong hereafter
        given = ", ".join([f"seed {seed}", *(f"{name} = {number(value)}" for name, value in values.items())])
        click.echo(f"{model}, {given}\n{f'{asking.name}: ' if asking.name else ''}{formula}\n")
        for line in _lines(found, {"max_events": max_events, "max_time": max_time}):
            click.echo(line)
    if exactly:
        probability, refusal = _exact(system, formula, at)
        content |= {"exact": probability, "exact_refused": refusal or None}
        if not as_json:
            click.echo(_exact_line(found, probability, refusal))
    files: list[str] = []
    if replay is not None:
        from sateen.cli.progress import Bar
        from sateen.engine.run import follow
        from sateen.logic.monitor import explain

        limits: dict[str, Any] = {"max_events": max_events, "max_time": max_time}
        path = follow(system, formula, at, seed=seed, run=replay, **limits, progress=Bar())
        explanation = explain(formula, path)
        files = write(path, explanation, csv, plot)
        content["replay"] = {"run": replay, "path": path_content(path), **explanation_content(explanation)}
        if not as_json:
            stranger = ", which was not among them" if replay >= found.runs + found.planning else ""
            table = [] if files else [*_table(path), ""]
            click.echo("\n".join(["", f"run {replay}{stranger}", *table, str(explanation), *files]))
    if as_json:
        print_json({**content, "files": files})


def _test(asking: Property, indifference: float) -> str | None:
    """The test that a property with a bound asks for, if runs can answer it: they cannot tell 1 from nearly 1."""
    if asking.comparison is None or asking.bound is None:
        return None
    asked = f"P {asking.comparison} {asking.bound!r}"
    if asking.bound - indifference > 0.0 and asking.bound + indifference < 1.0:
        return asked
    near = f"{asking.bound:g} ± {indifference:g} does not lie between 0 and 1"
    click.echo(f"warning: {asked} is not tested, for {near}; runs are counted", err=True)
    return None


def _exact(model: Model, formula: Formula, theta: Mapping[str, float]) -> tuple[float | None, str]:
    """The probability, or why it cannot be computed."""
    from sateen.engine.exact import exact

    try:
        return float(exact(model, formula, theta)[0]), ""
    except ExactError as error:
        return None, str(error)


def _exact_line(found: Estimate, probability: float | None, refusal: str) -> str:
    if probability is None:
        return f"not exact: {refusal}"
    inside = found.lower <= probability <= found.upper
    return f"exact: P = {probability:.10f}, {'inside' if inside else 'outside'} the interval"


def _lines(found: Estimate, caps: Mapping[str, float]) -> Iterator[str]:
    """The estimate in words."""
    least, most = (count / found.runs for count in (found.satisfied, found.satisfied + found.undecided))
    shown = f"P = {least:.6g}" if least == most else f"P is between {least:.6g} and {most:.6g} as counted"
    yield f"{shown}: {found.satisfied:,} of {found.runs:,} runs satisfy it"
    for reason, count in found.reasons.items():
        remedy = f"; {_REMEDIES[reason]} may be raised" if reason in _REMEDIES else ""
        yield f"{count:,} runs are undecided: they reached {reason} = {number(caps[reason])}{remedy}"
    yield str(found)
    belief = f"P is from {found.bayes_lower:.4g} to {found.bayes_upper:.4g} with probability {100 * found.level:.10g} %"
    yield f"Bayes: {belief}, if all values were equally likely before"
    planning = f" and {found.planning:,} to plan them" if found.planning else ""
    rate = f"{found.events / max(found.seconds, 1e-9) / 1e6:.3g} million a second"
    yield f"{found.runs:,} runs{planning}: {found.events:,} events in {found.seconds:.3g} s, {rate}"


def _content(found: Estimate) -> dict[str, Any]:
    """The estimate as plain data; JSON knows no NaN."""
    from dataclasses import fields

    content = {each.name: getattr(found, each.name) for each in fields(found)}
    unknown = math.isnan(found.probability)
    content |= {"claim": found.claim.content(), "reasons": dict(found.reasons)}
    return {**content, "probability": None if unknown else found.probability}


def _table(path: Path) -> list[str]:
    """A line for every jump; of a long run, the first and the last ones."""
    hidden = len(path) - 2 * _SHOWN_ROWS if len(path) > 2 * _SHOWN_ROWS + 1 else 0
    shown = [row for row in range(len(path)) if not (hidden and _SHOWN_ROWS <= row < _SHOWN_ROWS + hidden)]
    rows = [[f"{path.times[row]:.6g}", *map(number, path.states[row])] for row in shown]
    lines = list(aligned([["time", *path.species], *rows], str.rjust))
    if hidden:
        lines.insert(1 + _SHOWN_ROWS, f"… {hidden:,} more, which --csv FILE writes …")
    return [*lines, "absorbed: nothing happens any more" if path.absorbed else f"known until {number(path.end)}"]
