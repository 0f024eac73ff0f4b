"""The command `paper`: the paper's tables and figures, computed again, with the published ones alongside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from sateen.cli.options import JSON, NO_CODE, on_option, pool_here
from sateen.cli.output import agree, print_json, say, table
from sateen.cli.progress import Bar
from sateen.core.errors import InputError, nearest
from sateen.core.text import duration_text
from sateen.learning.registry import find_learner
from sateen.pools.forecast import Crowd, places_of

if TYPE_CHECKING:
    from sateen.paper.guarantees import GuaranteeFigures
    from sateen.paper.reproduction import Reproduction

_LETTERS: Final = tuple("abcdefghil")
_NETWORKS: Final = ("r02", "r03", "r04", "r08", "r12", "r16", "r20")
_PARTS: Final = (*_LETTERS, "all", *_NETWORKS, "random", "guarantees")
_SIZED: Final = re.compile("r[0-9]+")  # networks with this many rates
_OF_GUARANTEES: Final = ("ep-gp", "svi-gp", "svi-bnn")
_LEARNERS: Final = (*_OF_GUARANTEES, "sparse-vi", "default")
_PRESETS: Final = ("fast", "faithful", "as-run")
_LONG: Final = 3600.0  # seconds, after which the command asks first


def _parts(ctx: click.Context, argument: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Every part once, and `all` as its letters."""
    sizes = {_size(part[1:]) for part in given if _SIZED.fullmatch(part)}
    for part in given:
        if part not in _PARTS and not _SIZED.fullmatch(part):
            hint = nearest(part, _PARTS) or f"there are {', '.join(_PARTS)}"
            raise click.BadParameter(f"the paper has no part {part!r}; {hint}")
    wanted = {*given, *(_LETTERS if "all" in given else ())}
    letters, others = ([part for part in some if part in wanted] for some in (_LETTERS, ("random", "guarantees")))
    return (*letters, *sorted(sizes), *others)


def _rates(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """The parts of the random networks with the numbers of rates in `6,10`."""
    return tuple(dict.fromkeys(_size(each) for each in text.split(","))) if text is not None else ()


def _size(rates: str) -> str:
    """The part of the random networks with this many rates."""
    from sateen.paper.questions import network_part

    try:
        return network_part(rates)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def _learners(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The learners in `ep-gp,my_package:MyLearner`: those of the paper in the order of its table, then the others."""
    named = [name.strip() for text in given for name in text.split(",")]
    names = dict.fromkeys(name if ":" in name else name.lower() for name in named)
    try:
        for name in names:
            find_learner(name)
    except InputError as error:
        raise click.BadParameter(str(error)) from None
    return tuple(sorted(names, key=lambda name: _LEARNERS.index(name) if name in _LEARNERS else len(_LEARNERS)))


def _renamed(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> None:
    if given:
        raise click.UsageError(f"--methods is now called --learners: write --learners {','.join(given)}")


def _runs(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """The whole numbers in `10,50,500`."""
    if text is None:
        return None
    try:
        numbers = tuple(int(item) for item in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 10,50,500")
    return numbers


@click.command(short_help="The paper's tables and figures, with ours next to them.")
@click.argument("parts", nargs=-1, required=True, callback=_parts, metavar="PART...")
@click.option("--preset", "presets", type=click.Choice(_PRESETS), multiple=True, default=["fast"], show_default=True,
              help="Settings of EP-GP, SVI-GP and SVI-BNN: ours, those of the paper's text (faithful) or those of its "
                   "authors' scripts (as-run). Several presets are compared in one table.")  # fmt: skip
@click.option("--variant", type=click.Choice(["paper-data", "as-stated"]), default="paper-data", show_default=True,
              help="as-stated: properties as the paper prints them, not those of its published figures.")  # fmt: skip
@click.option("--rates", callback=_rates, metavar="R,...",
              help="random: networks with this many rates each, 1 to 40, instead of the paper's.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1), metavar="K",
              help="Training sets; by default 3 for a configuration, 1 for a network, 5 for guarantees.")  # fmt: skip
@click.option("-l", "--learners", callback=_learners, multiple=True, metavar="NAME,...",
              help="Only these: ep-gp, svi-gp, svi-bnn, sparse-vi, default (what `learn` chooses), or any other "
                   "learner by its name or package:Class, which gets rows of its own.")  # fmt: skip
@click.option("-m", "--methods", "--method", hidden=True, expose_value=False, multiple=True, callback=_renamed)
@click.option(
    "-o", "--output", "folder", default="paper", show_default=True, metavar="FOLDER", help="The folder for all files."
)
@click.option("--yes", is_flag=True, help="Ask nothing, however long it takes.")
@click.option("--dry-run", is_flag=True, help="Only say what is pending, and about how long it takes.")
@click.option("--finished", is_flag=True, help="Compute nothing: make the tables and figures of what is finished.")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, metavar="S",
              help="Use a share of the points only, to try it.")  # fmt: skip
@click.option("--runs", callback=_runs, metavar="M,...", help="guarantees: runs per training point; 10,20,50,100,...")
@click.option(
    "--suffix",
    type=click.Choice([".png", ".svg", ".pdf"]),
    default=".svg",
    show_default=True,
    help="The format of figures.",
)
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Runs, or else fits, at once; by default all processors."
)
@on_option
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="The number of the first training set.")  # fmt: skip
@NO_CODE
@JSON
def paper(
    parts: tuple[str, ...],
    presets: tuple[str, ...],
    variant: str,
    rates: tuple[str, ...],
    seeds: int | None,
    learners: tuple[str, ...],
    folder: str,
    yes: bool,
    dry_run: bool,
    finished: bool,
    share: float,
    runs: tuple[int, ...] | None,
    suffix: str,
    workers: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compute and draw parts of the paper. PART is one or more of

    \b
    a b c d e f g h i l  its configurations: the table of errors, accuracies and widths, with curves and maps
    all                  all of these
    random               random networks with 2 to 20 parameters, three of each with three properties
    r02 r03 r04 r08 ...  those with this many parameters; any number is possible, as with random --rates 6
    guarantees           how wide bands with guarantees are, on configuration (a)

    Under the presets faithful and as-run, EP-GP and the networks take minutes for a to i. SVI-GP takes about 5 minutes
    of a core for 500 training points, and weeks for l: see --dry-run.

    Our table stands next to the published one, as text, JSON and LaTeX. Every data set, truth, fit and calibration is
    kept in the folder: run the same command again to resume.

    \b
    sateen paper a b
    sateen paper all --seeds 5 -o tables
    sateen paper random --learners svi-gp,default --dry-run
    sateen paper random --rates 6,10 -l default
    sateen paper d e --variant as-stated
    sateen paper a --share 0.05 -o tried
    sateen paper a f --preset fast --preset as-run
    sateen paper a --learners default,my_package:MyLearner
    sateen paper guarantees -l svi-gp --runs 20,100 --seeds 2 -o figures
    """
    if rates and "random" not in parts:
        raise click.UsageError("--rates is for random: write sateen paper random --rates 6")
    if rates:
        parts = tuple(dict.fromkeys(each for part in parts for each in (rates if part == "random" else (part,))))
    learned = [part for part in parts if part != "guarantees"]
    guarantees = "guarantees" in parts
    of_guarantees = tuple(learner for learner in learners or _LEARNERS if learner in _OF_GUARANTEES)
    if runs and not guarantees:
        raise click.UsageError("--runs is for guarantees only")
    if not learned and share != 1:
        raise click.UsageError("--share is for configurations and networks only")
    if guarantees and finished:
        raise click.UsageError("--finished is for configurations and networks only")
    if guarantees and len(presets) > 1:
        raise click.UsageError("guarantees are drawn under one preset at a time; give --preset once")
    if guarantees and not of_guarantees:
        raise click.UsageError(f"guarantees are drawn for ep-gp, svi-gp and svi-bnn, not for {', '.join(learners)}")
    content: dict[str, object] = {"parts": list(parts), "seed": seed}
    files: list[str] = []
    if learned:
        from sateen.paper.reproduction import Reproduction

        reproduction = Reproduction(
            learned,
            folder,
            preset=presets,
            learners=learners or _LEARNERS,
            seeds=seeds,
            first=seed,
            share=share,
            finished=finished,
            variant=variant,
            workers=workers,
            progress=Bar(),
            pool=None if dry_run else pool_here(),
        )
        content |= _announced(reproduction, dry_run, yes, as_json)
        if not dry_run:
            with _saying_how_to_resume():
                findings = reproduction.run()
            files += [str(file) for file in (*reproduction.write(findings), *reproduction.draw(findings, suffix))]
            _say_spent(reproduction)
            content |= {**findings.content(), "spent": dict(reproduction.spent)}
            if not as_json:
                click.echo(findings.text)
    if guarantees:
        from sateen.paper.guarantees import RUNS, GuaranteeFigures

        figures = GuaranteeFigures(
            folder,
            preset=presets[0],
            learners=of_guarantees,
            runs=runs or RUNS,
            trainings=seeds or 5,
            seed=seed,
            workers=workers,
            progress=Bar(),
            pool=None if dry_run else pool_here(),
        )
        content |= _announced(figures, dry_run, yes, as_json)
        if not dry_run:
            with _saying_how_to_resume():
                figures.run()
            files += [str(file) for file in figures.draw(suffix)]
    if not dry_run:
        content["files"] = files
    if as_json:
        print_json(content)
    elif files:
        click.echo("\n".join(files))


def _announced(work: Reproduction | GuaranteeFigures, dry_run: bool, yes: bool, as_json: bool) -> dict[str, object]:
    """Say what is pending and about how long it takes here, and ask before long work; the same as plain data."""
    forecast = work.forecast()
    pending, tasks, seconds = len(work.pipeline.pending()), len(work.pipeline.tasks), sum(forecast.values())
    lines = [f"all of {tasks:,} tasks are finished"]
    if pending:
        lines = [f"{pending:,} of {tasks:,} tasks are pending, which takes about {duration_text(seconds)}:"]
        lines += table([(name, duration_text(each)) for name, each in forecast.items()], indent="  ")
    if dry_run and pending and (pool := pool_here()) is not None:
        lines.append(Crowd(places_of(pool), seconds * work.cores, 1, work.at_once).advice)
    click.echo("\n".join(lines), err=as_json or not dry_run)
    if dry_run:
        return {"pending": pending, "tasks": tasks, "seconds": forecast}
    agree(seconds, _LONG, yes, ", or ask for less")
    return {}


@contextmanager
def _saying_how_to_resume() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        say(str(stop))
        raise


def _say_spent(reproduction: Reproduction) -> None:
    """How long the pending tasks took, by what was done."""
    spent = reproduction.spent
    if spent:
        each = ", ".join(f"{name} {duration_text(seconds)}" for name, seconds in spent.items())
        say(f"computed in {duration_text(sum(spent.values()))}: {each}")
