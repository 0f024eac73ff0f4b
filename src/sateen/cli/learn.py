"""The command `learn`: from observations, or from a model that is observed first, to a posterior in a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict
from types import NoneType, UnionType
from typing import Final, Literal, Union, get_args, get_origin

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.learned import extreme_lines, extreme_of_runs, learned_content, learned_lines
from sateen.cli.output import agree, draw, show
from sateen.cli.progress import Bar
from sateen.cli.sources import kept, load_model, load_observations, read_property
from sateen.core.errors import InputError
from sateen.core.seeds import stream_seed
from sateen.learning.registry import LEARNERS, find_learner, make_learner
from sateen.study.spec import Design, DesignName

_PATIENCE: Final = 600.0  # seconds that a fit may take without a question
_OF_A_MODEL: Final = ("vary", "at", "constants", "end", "design", "points", "runs", "observations", "max_events")
_WORDS: Final[Mapping[object, Mapping[str, bool | None]]] = {
    NoneType: {"none": None},
    bool: {"true": True, "false": False},
}


def _settings(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """What `--set name=value` gives, by name; the values are read once the learner is known."""
    return shared.texts_by_name(iter(texts), "NAME=VALUE, such as batch=100")


def _renamed(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"--method is now called --learner: write --learner {value}")


@click.command()
@click.argument("source", metavar="OBSERVATIONS|MODEL")
@shared.target_option("posterior", "FILE.safetensors", required=True)
@click.option(
    "--learner",
    default="default",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(LEARNERS.builtin)}, or package:Class; default chooses by the observations.",
)
@click.option("--method", hidden=True, expose_value=False, callback=_renamed)
@click.option("--inputs", metavar="auto|log|linear", help="On which scale the learner takes parameters.")
@click.option("--kernel", metavar="matern|rbf", help="How smooth f is, for a Gaussian process.")
@click.option("--inducing", type=shared.COUNT, metavar="N", help="At most N inducing points, for a Gaussian process.")
@click.option(
    "--set",
    "rest",
    multiple=True,
    callback=_settings,
    metavar="a=1",
    help="Another setting of the learner; repeatable.",
)
@click.option(
    "--space",
    multiple=True,
    callback=shared.ranges_or_numbers,
    metavar="a=0:1",
    help="The space of a CSV that does not state it.",
)
@shared.property_option("The formula for which a MODEL is observed first.")
@shared.VARY
@shared.AT
@shared.CONST
@shared.END
@click.option(
    "--design",
    type=click.Choice(["sobol", "uniform", "latin", "grid"]),
    default="sobol",
    show_default=True,
    help="How the points are spread.",
)
@click.option(
    "--points",
    type=shared.COUNT,
    default=400,
    show_default=True,
    metavar="N",
    help="The number of points; of a grid, along each axis.",
)
@click.option(
    "--runs", type=shared.COUNT, default=50, show_default=True, metavar="N", help="The number of runs at each point."
)
@shared.MAX_EVENTS
@shared.OBSERVATIONS
@shared.SEED
@click.option(
    "--checkpoint", callback=shared.written, metavar="FILE", help="Continue from this file, or keep progress in it."
)
@click.option("--yes", is_flag=True, help="Do not ask before a fit that takes more than ten minutes.")
@shared.PLOT
@shared.NO_CODE
@shared.JSON
@click.pass_context
def learn(
    ctx: click.Context,
    /,
    source: str,
    target: str,
    learner: str,
    rest: Mapping[str, str],
    space: Mapping[str, st.Range | float],
    text: str | None,
    vary: Mapping[str, st.Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    design: DesignName,
    points: int,
    runs: int,
    max_events: int,
    observations: str | None,
    seed: int,
    checkpoint: str | None,
    yes: bool,
    plot: str | None,
    as_json: bool,
    **named: object,
) -> None:
    """Learn, from OBSERVATIONS in a file or from a MODEL that is observed first, how probable it is at each θ that a
    run satisfies a formula; and write the posterior to a file that `predict` and `inspect` read.

    Observations are a file that sateen wrote, or a CSV table with columns for the parameters, `satisfied` and `trials`.
    Ctrl-C keeps the best fit so far.

    \b
    sateen learn examples/sir.sateen -p "(I > 0) U[100, 120] (I == 0)" --vary beta=0.005:0.3 -o sir.safetensors
    sateen learn runs.csv --space beta=0.005:0.3 --learner ep-gp --kernel rbf -o sir.safetensors --plot sir.svg
    """
    shared.check_files({"-o": target, "--observations": observations, "--checkpoint": checkpoint, "--plot": plot})
    settings = {name: str(value) for name, value in named.items() if value is not None}  # that have their own option
    if twice := [name for name in rest if name in settings]:
        raise click.UsageError(f"{twice[0]} is given by --{twice[0]} and by --set; give it once")
    with shared.usage():
        find_learner(learner)  # its code is run once all else is checked

    def make() -> st.Learner:
        with shared.usage():
            made = make_learner(learner, {**settings, **rest}, read_setting)
        if checkpoint is not None and "checkpoint" not in inspect.signature(made.fit).parameters:
            raise click.UsageError(f"--checkpoint: the learner {learner} keeps no checkpoint")
        return made

    if text is None:
        if unused := shared.given(ctx, _OF_A_MODEL):  # without a formula nothing is observed
            raise click.UsageError(f"{unused[0]} says how a model is observed; say which formula, with -p FORMULA")
        observed = load_observations(source, space)
        chosen = make()
    else:
        if space:
            raise click.UsageError("--space gives the space of a table; that of a model is given by --vary and --at")
        if not vary:
            raise click.UsageError("what varies? Give each parameter its range, as in --vary beta=0.005:0.3")
        shared.check_once(vary, at)
        model = load_model(source, constants)
        chosen_points = Design(points, runs, design).drawn(
            st.Space({**vary, **at}), stream_seed(seed, "training points")
        )
        formula = read_property(model, model.model.values(chosen_points[0]), text, end).formula
        run_seed = stream_seed(seed, "training runs")
        chosen = make()
        observed = kept(
            observations,
            lambda: st.observe(
                model.model, formula, chosen_points, runs, seed=run_seed, max_events=max_events, progress=Bar()
            ),
        )
    if plot is not None and not observed.space.names:
        raise InputError(f"--plot: no parameter varies in {observed.space!r}, so there is nothing to draw")
    forecast = getattr(chosen, "forecast", None)
    if forecast is not None and not yes:
        agree(float(forecast(observed)), _PATIENCE, yes, ", or take fewer steps with --set")
    posterior = st.learn(observed, chosen, seed=seed, progress=Bar(), checkpoint=checkpoint)
    posterior.save(target)
    if plot is not None:
        from sateen.plot.learning import learned

        draw(plot, learned(posterior))
    files = [file for file in (observations, plot, target) if file]
    extreme = extreme_of_runs(posterior)
    about = {"source": source, "seed": seed, "extreme": extreme and asdict(extreme)}
    show(
        as_json,
        lambda: {**about, **learned_content(posterior), "files": files},
        lambda: [f"{source}, seed {seed}", *extreme_lines(extreme, posterior), *learned_lines(posterior), *files],
    )
    if posterior.record.interrupted:
        raise KeyboardInterrupt


def read_setting(name: str, text: str, hint: object, declared: str) -> object:
    """The value of a setting in a text, read by the type that the learner declares for it."""
    try:
        return _value(text, hint)
    except ValueError:
        raise InputError(f"{name}={text}: the setting {name} is of type {declared}", argument=name) from None


def _value(text: str, hint: object) -> object:
    """A text as a value of a type; a ValueError if it is none.

    >>> _value("0.3, 1", tuple[float, ...] | None), _value("none", int | None), _value("1e-3", float)
    ((0.3, 1.0), None, 0.001)
    >>> _value("1, 2; 3, 4", tuple[tuple[float, ...], ...])
    ((1.0, 2.0), (3.0, 4.0))
    """
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for each in options:
            try:
                return _value(text, each)
            except ValueError:
                continue
        raise ValueError(text)
    if origin is tuple:
        parts = text.strip("()[]").split(";" if get_origin(options[0]) is tuple else ",")
        return tuple(_value(part.strip(), options[0]) for part in parts if part.strip())
    if origin is Literal:
        return options[[str(one) for one in options].index(text)]
    if hint in (int, float, str):
        return hint(text)
    if hint is object:
        return text  # of a learner that declares no types
    words = _WORDS.get(hint, {})
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
