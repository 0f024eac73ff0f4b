"""The command `learn`: from observations, or from a model that is observed first, to a posterior in a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import replacing
from sateen.cli.learned import learned_content, learned_lines
from sateen.cli.options import AT, CONST, END, JSON, PLOT, SEED, output
from sateen.cli.ranges import ranges, ranges_or_numbers
from sateen.cli.recipes import METHODS, recipe, settings
from sateen.cli.sources import DESIGNS, observed, stored_observations, write_observations
from sateen.cli.text import print_json
from sateen.core.errors import InputError

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.space import Range
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["learn"]

_PATIENCE: Final = 600.0  # seconds that a fit may take without being asked about
_COUNT: Final = click.IntRange(1)
_POINTS: Final = 400
_RUNS: Final = 50
_MAX_EVENTS: Final = 1_000_000
_OF_A_MODEL: Final = ("vary", "at", "constants", "end", "design", "points", "runs", "observations", "max_events")


def _target(ctx: click.Context, option: click.Parameter, file: str) -> str:
    """The file for the posterior, by whose name the other commands know it."""
    if not file.lower().endswith(".safetensors"):
        raise click.BadParameter(f"{file!r} is to hold a posterior: end the name in .safetensors")
    output(ctx, option, file)
    return file


@click.command(short_help="Learn the probability over a whole space.")
@click.argument("source", metavar="OBSERVATIONS|MODEL")
@click.option("-o", "--output", "target", required=True, callback=_target, metavar="FILE.safetensors", help="Where to.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, help="How to learn.")
@click.option("--inputs", type=click.Choice(["auto", "log", "linear"]), help="On which scale parameters are looked at.")
@click.option("--kernel", type=click.Choice(["matern", "rbf"]), help="How smooth f is, for a Gaussian process.")
@click.option("--inducing", type=_COUNT, metavar="N", help="At most N inducing points, for a Gaussian process.")
@click.option("--set", "rest", multiple=True, callback=settings, metavar="a=1", help="Another setting; repeatable.")
@click.option("--space", multiple=True, callback=ranges_or_numbers, metavar="a=0:1", help="The space of a bare CSV.")
@click.option("-p", "--property", "text", metavar="FORMULA|FILE[:NAME]", help="Observe a MODEL first, for this.")
@click.option("--vary", multiple=True, callback=ranges, metavar="a=0:1", help="A range, or a=0.1:10:log; repeatable.")
@AT
@CONST
@END
@click.option("--design", type=click.Choice(DESIGNS), default="sobol", show_default=True, help="How points are spread.")
@click.option(
    "--points",
    type=_COUNT,
    default=_POINTS,
    show_default=True,
    metavar="N",
    help="How many; along each axis of a grid.",
)
@click.option("--runs", type=_COUNT, default=_RUNS, show_default=True, metavar="N", help="How many at each point.")
@click.option("--max-events", type=_COUNT, default=_MAX_EVENTS, metavar="N", help="A run is undecided after N jumps.")
@click.option(
    "--observations", callback=output, metavar="FILE", help="Keep what was observed, as .csv or else .safetensors."
)
@SEED
@click.option(
    "--checkpoint", callback=output, metavar="FILE", help="Go on from here if it is there; else keep it here."
)
@click.option("--yes", is_flag=True, help="Do not ask before a fit that takes more than ten minutes.")
@PLOT
@JSON
@click.pass_context
def learn(
    ctx: click.Context,
    source: str,
    target: str,
    method: str,
    inputs: str | None,
    kernel: str | None,
    inducing: int | None,
    rest: Mapping[str, str],
    space: Mapping[str, Range | float],
    text: str | None,
    vary: Mapping[str, Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    design: str,
    points: int,
    runs: int,
    max_events: int,
    observations: str | None,
    seed: int,
    checkpoint: str | None,
    yes: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Learn, from OBSERVATIONS in a file or from a MODEL that is observed first, how probable it is at each θ that a
    run satisfies a formula; and write the posterior to a file that `predict` and `inspect` read.

    Observations are a file that sateen wrote, or a CSV table with columns for the parameters, `satisfied` and `trials`.
    Ctrl-C keeps the best fit so far.

    \b
    sateen learn examples/sir.sateen -p "(I > 0) U[100, 120] (I == 0)" --vary beta=0.005:0.3 -o sir.safetensors
    sateen learn runs.csv --space beta=0.005:0.3 --method ep-gp --kernel rbf -o sir.safetensors --plot sir.svg
    """
    _check_files({"-o": target, "--observations": observations, "--checkpoint": checkpoint, "--plot": plot})
    named = {"inputs": inputs, "kernel": kernel, "inducing": inducing}
    given = {name: str(value) for name, value in named.items() if value is not None}
    if twice := [name for name in rest if name in given]:
        raise click.UsageError(f"{twice[0]} is given by --{twice[0]} and by --set; give it once")
    chosen = recipe(method, {**given, **rest})
    if text is None:
        _check_source(ctx)
        seen = stored_observations(source, space)
    else:
        if space:
            raise click.UsageError("--space tells the space of a table; that of a model is given by --vary and --at")
        if not vary:
            raise click.UsageError("what varies? Give each parameter its range, as in --vary beta=0.005:0.3")
        campaign: dict[str, Any] = {"end": end, "design": design, "points": points, "runs": runs}
        campaign |= {"max_events": max_events, "seed": seed, "file": observations, "constants": constants}
        seen = observed(source, text, vary, at, **campaign)
        if observations is not None:
            write_observations(seen, observations)
    if plot is not None and not seen.space.names:
        raise InputError(f"--plot: no parameter varies in {seen.space!r}, so there is nothing to draw")
    _ask(chosen, seen, yes)
    posterior = _fitted(chosen, seen, seed, checkpoint)
    posterior.save(target)
    if plot is not None:
        from sateen.plot import figures

        with replacing(plot) as temporary:
            figures.save(figures.learned(posterior), temporary)
    files = [file for file in (observations, plot, target) if file]
    if as_json:
        print_json({"source": source, "seed": seed, **learned_content(posterior), "files": files})
    else:
        click.echo("\n".join([f"{source}, seed {seed}", *learned_lines(posterior), *files]))
    if posterior.record.interrupted:
        raise KeyboardInterrupt


def _check_files(files: Mapping[str, str | None]) -> None:
    seen: dict[str, str] = {}
    for option, file in files.items():
        if file is not None and file in seen:
            raise click.UsageError(f"{seen[file]} and {option} are the same file, {file}; give them different names")
        if file is not None:
            seen[file] = option


def _check_source(ctx: click.Context) -> None:
    """Without a formula nothing is observed, so what says how to observe would be ignored."""
    from click.core import ParameterSource

    for name in _OF_A_MODEL:
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = "--const" if name == "constants" else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} says how a model is observed; say which formula, with -p FORMULA")


def _ask(chosen: Any, seen: Observations, yes: bool) -> None:
    """A fit that takes longer than a user expects is announced before, and begun only if that is all right."""
    forecast = getattr(chosen, "forecast", None)
    if yes or forecast is None:
        return
    seconds = float(forecast(seen))
    if seconds <= _PATIENCE:
        return
    announced = f"this fit will take about {_duration(seconds)}"
    if not sys.stdin.isatty():
        raise InputError(f"{announced}; say --yes if that is all right, or take fewer steps with --set")
    click.confirm(f"{announced}; begin?", abort=True, err=True)


def _fitted(chosen: Any, seen: Observations, seed: int, checkpoint: str | None) -> LearnedPosterior:
    from sateen.cli.progress import Bar

    if chosen is None:
        from sateen.learning.default import learn as learn_by_default

        return learn_by_default(seen, seed=seed, progress=Bar(), checkpoint=checkpoint)
    fitted: LearnedPosterior = chosen.fit(seen, seed=seed, progress=Bar(), checkpoint=checkpoint)
    return fitted


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> [_duration(seconds) for seconds in (780, 9_000, 300_000)]
    ['13 minutes', '2.5 hours', '3.5 days']
    """
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60.0:.0f} minutes"
