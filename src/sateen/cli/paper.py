"""The command `paper`: what the paper shows, computed and drawn anew, with the published figures beside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.options import JSON
from sateen.cli.progress import Bar
from sateen.cli.text import aligned, print_json
from sateen.core.errors import InputError, nearest

if TYPE_CHECKING:
    from sateen.paper.reproduction import PaperWork

__all__ = ["paper"]

_LETTERS: Final = tuple("abcdefghil")
_NETWORKS: Final = ("r02", "r03", "r04", "r08", "r12", "r16", "r20")
_PARTS: Final = (*_LETTERS, "all", *_NETWORKS, "random", "guarantees")
_METHODS: Final = ("ep-gp", "svi-gp", "svi-bnn", "default")
_LONG: Final = 3600.0  # seconds, before which a question is asked


def _parts(ctx: click.Context, argument: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Every part once, and `all` as its letters."""
    for part in given:
        if part not in _PARTS:
            hint = nearest(part, _PARTS) or f"there are {' '.join(_PARTS)}"
            raise click.BadParameter(f"the paper has no part {part!r}; {hint}")
    wanted = {*given, *(_LETTERS if "all" in given else ())} - {"all"}
    return tuple(part for part in _PARTS if part in wanted)


def _methods(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The methods in `ep-gp,svi-gp`, in the order of the table."""
    named = [name.strip().lower() for text in given for name in text.split(",")]
    for name in named:
        if name not in _METHODS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(_METHODS)}")
    return tuple(method for method in _METHODS if method in named)


def _runs(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """The whole numbers in `10,50,500`."""
    if text is None:
        return None
    try:
        found = tuple(int(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 10,50,500")
    return found


@click.command(short_help="The paper's tables and figures, with ours beside.")
@click.argument("parts", nargs=-1, required=True, callback=_parts, metavar="PART...")
@click.option("--preset", type=click.Choice(["fast", "faithful"]), default="fast", show_default=True,
              help="faithful: SVI-GP and SVI-BNN with the paper's own settings, which takes days.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1), metavar="K",
              help="Training sets; if not said 3 of a configuration, 1 of a network, 5 for guarantees.")  # fmt: skip
@click.option("-m", "--methods", "--method", callback=_methods, multiple=True, metavar="NAME,...",
              help="Only these of ep-gp, svi-gp, svi-bnn and default, which is what learn chooses.")  # fmt: skip
@click.option("-o", "--output", "folder", default="paper", show_default=True, metavar="FOLDER", help="For all files.")
@click.option("--yes", is_flag=True, help="Ask nothing, however long it takes.")
@click.option("--dry-run", is_flag=True, help="Only say what is missing, and about how long it takes.")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, metavar="S",
              help="Look at a share of the points only, to try it.")  # fmt: skip
@click.option("--runs", callback=_runs, metavar="M,...", help="guarantees: runs per training point; 10,20,50,100,...")
@click.option("--suffix", type=click.Choice([".png", ".svg", ".pdf"]), default=".svg", show_default=True)
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Runs, or else fits, at once; all processors if not said."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="Number of the first training set.")  # fmt: skip
@JSON
def paper(
    parts: tuple[str, ...],
    preset: str,
    seeds: int | None,
    methods: tuple[str, ...],
    folder: str,
    yes: bool,
    dry_run: bool,
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
    r02 r03 r04 r08 ...  those with so many parameters
    guarantees           how wide bands with guarantees are, on configuration (a)

    Our table stands beside the published one, as text, JSON and LaTeX. Every data set, truth, fit and calibration is
    kept in the folder: what was stopped goes on where it was when the same is run again.

    \b
    sateen paper a b
    sateen paper all --seeds 5 -o tables
    sateen paper random --methods svi-gp,default --dry-run
    sateen paper a --share 0.05 -o tried
    sateen paper guarantees -m svi-gp --runs 20,100 --seeds 2 -o figures
    """
    learned = [part for part in parts if part != "guarantees"]
    guarantees = "guarantees" in parts
    if runs and not guarantees:
        raise click.UsageError("--runs is for guarantees only")
    if not learned and (preset != "fast" or share != 1 or workers):
        raise click.UsageError("--preset, --share and --workers are for configurations and networks only")
    if guarantees and methods == ("default",):
        raise click.UsageError("guarantees are drawn for ep-gp, svi-gp and svi-bnn, not for default")
    told: dict[str, Any] = {"parts": list(parts), "seed": seed}
    if learned:
        from sateen.paper.reproduction import PaperWork

        asked: dict[str, Any] = {"preset": preset, "methods": methods or _METHODS, "seeds": seeds, "first": seed}
        work = PaperWork(learned, folder, **asked, share=share, workers=workers, progress=Bar())
        told |= _forecast(work, as_json) if dry_run else _learn(work, suffix, yes, as_json)
    if guarantees:
        told |= _guarantees(folder, methods, runs, seeds, seed, suffix, dry_run, as_json, told.get("files", []))
    if as_json:
        print_json(told)


def _forecast(work: PaperWork, as_json: bool) -> dict[str, Any]:
    """What is missing, and about how long it takes."""
    forecast = work.forecast()
    _tell(work, forecast, to_stderr=as_json)
    return {"missing": len(work.missing()), "pieces": len(work.pieces), "seconds": forecast}


def _learn(work: PaperWork, suffix: str, yes: bool, as_json: bool) -> dict[str, Any]:
    """The tables and the figures of configurations and networks."""
    from sateen.paper.figures import draw

    forecast = work.forecast()
    _tell(work, forecast, to_stderr=True)
    _consent(sum(forecast.values()), yes)
    try:
        findings = work.run()
    except KeyboardInterrupt as stop:
        click.echo(f"{stop}", err=True)
        raise
    files = [str(file) for file in (*work.write(findings), *draw(work, findings, suffix))]
    _took(work)
    if not as_json:
        click.echo(findings.text)
        click.echo("\n".join(files))
    return {**findings.content(), "spent": work.spent, "files": files}


def _took(work: PaperWork) -> None:
    """How long what was missing took, by what was done."""
    from sateen.paper.forecast import in_words

    if work.spent:
        each = ", ".join(f"{name} {in_words(seconds)}" for name, seconds in work.spent.items())
        click.echo(f"made in {in_words(sum(work.spent.values()))}: {each}", err=True)


def _guarantees(
    folder: str,
    methods: tuple[str, ...],
    runs: tuple[int, ...] | None,
    seeds: int | None,
    seed: int,
    suffix: str,
    dry_run: bool,
    as_json: bool,
    before: Sequence[str],
) -> dict[str, Any]:
    """The figures about guarantees; the files of all figures, with those that were drawn before."""
    from sateen.paper.guarantees import LEARNERS, paper_figures

    if dry_run:
        click.echo("guarantees take about 20 min; fewer --runs, --seeds and --methods take less", err=as_json)
        return {}
    asked: dict[str, Any] = {"runs": runs} if runs else {}
    if methods:
        asked["learners"] = tuple(name for name in LEARNERS if name.lower() in methods)
    drawn = paper_figures(folder, **asked, trainings=seeds or 5, seed=seed, suffix=suffix, progress=Bar())
    files = [str(file) for file in drawn]
    if not as_json:
        click.echo("\n".join(files))
    return {"files": [*before, *files]}


def _tell(work: PaperWork, forecast: dict[str, float], *, to_stderr: bool) -> None:
    """What is to do, and about how long it takes."""
    from sateen.paper.forecast import in_words

    missing, pieces = len(work.missing()), len(work.pieces)
    if not missing:
        click.echo(f"all of {pieces:,} pieces are there", err=to_stderr)
        return
    total = in_words(sum(forecast.values()))
    click.echo(f"{missing:,} of {pieces:,} pieces are to be made, which takes about {total}:", err=to_stderr)
    for line in aligned([(name, in_words(seconds)) for name, seconds in forecast.items()]):
        click.echo(f"  {line}", err=to_stderr)


def _consent(seconds: float, yes: bool) -> None:
    """Go on if it is short or agreed to; ask on a terminal, and refuse elsewhere, where nobody would answer."""
    from sateen.paper.forecast import in_words

    if yes or seconds <= _LONG:
        return
    if not _somebody_is_there():
        raise InputError(
            f"this takes about {in_words(seconds)}, and nobody is there to be asked; say --yes, or ask for less"
        )
    click.confirm("go on?", abort=True, err=True)


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()
