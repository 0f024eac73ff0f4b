"""The command `run`: from a study file to a folder with its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

import sateen as st
from sateen.cli.options import COUNT, JSON, on_option, pool_here
from sateen.cli.output import say, show, table
from sateen.cli.progress import Bar
from sateen.cli.sources import load_study
from sateen.core.text import duration_text, plural
from sateen.pools.forecast import Crowd, places_of
from sateen.study.label_tasks import AS_PLANNED

if TYPE_CHECKING:
    from sateen.study.parts import PartResult
    from sateen.study.stages import Forecast


def _part(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """The numbers in I/N."""
    if text is None:
        return None
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise click.BadParameter(
            f"{text!r} is not a part: write I/N with 1 <= I <= N, such as 3/40, the third of forty"
        )
    return int(number), int(parts)


@click.command()
@click.argument("file", metavar="STUDY.toml")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    help="The folder of the result; by default NAME-result next to the study.",
)
@click.option(
    "--workers",
    type=COUNT,
    metavar="N",
    help="The number of processes that simulate; by default all processors, one for a callable.",
)
@click.option(
    "--part", callback=_part, metavar="I/N", help="Only the I-th of N parts of the runs, to be joined by sateen merge."
)
@on_option
@click.option("--dry-run", is_flag=True, help="Only say what is pending, and how many runs that takes; makes no runs.")
@click.option("--no-code", "code", is_flag=True, help="Refuse to run code of yours: a callable, a learner of your own.")
@JSON
def run(
    file: str,
    folder: str | None,
    workers: int | None,
    part: tuple[int, int] | None,
    dry_run: bool,
    code: bool,
    as_json: bool,
) -> None:
    """Run the study in a file: simulate the model, learn with each learner, calibrate, score and report. The folder has
    the answer: report.html to look at, result.json, provenance.json and every stage.

    A run that was stopped resumes when the same command is run again; when the study has changed, only what depends on
    the change is recomputed. Python code that the study names, a callable or a learner of your own, is run once the
    whole study is checked, and named on stderr first; --dry-run runs none.

    With --part 3/40 only the third of forty disjoint parts of the simulations is made, those that need no fit, by
    default into NAME-part-03-of-40. So the jobs of an array share the work without a network between them: `sateen
    merge` joins their folders, and `sateen run` continues there, with the same result. A part is made on this machine,
    even if the study or SATEEN_ON names a cluster.

    \b
    sateen run examples/sir.toml
    sateen run examples/sir.toml --dry-run -o /tmp/sir
    sateen run examples/sir.toml --part 3/40
    sateen run examples/sir.toml --on local:2
    """
    on_line = click.get_current_context().get_parameter_source("on") is ParameterSource.COMMANDLINE
    if part is not None and on_line:
        raise click.UsageError(
            "--part makes a part on this machine, and --on sends work to others: leave out one of them"
        )
    study = load_study(file, folder)
    if dry_run:
        _show_forecast(study, study.forecast(folder, part=part), workers, part is None, as_json)
        return
    try:
        if part is not None:
            _show_part(file, study.run_part(part, folder, workers=workers, progress=Bar(), code=not code), as_json)
            return
        result = study.run(folder, workers=workers, executor=pool_here(study.on), progress=Bar(), code=not code)
    except KeyboardInterrupt as stop:
        say(f"{stop}")
        raise
    show(as_json, lambda: {"file": file, **_content(result)}, lambda: _lines(result))


def _show_part(file: str, done: PartResult, as_json: bool) -> None:
    number, parts = done.part

    def lines() -> Iterator[str]:
        runs = ", ".join(f"{many:,} of {stage}" for stage, many in done.runs.items())
        yield f"{done.study}: part {number}/{parts} is in {done.folder}: {runs}; {done.made:,} runs made now"
        yield f"after the merge: {', '.join(done.waiting)}"

    about = {"study": done.study, "part": [number, parts], "folder": str(done.folder), "runs": dict(done.runs)}
    show(as_json, lambda: {"file": file, **about, "made": done.made, "waiting": list(done.waiting)}, lines)


def _lines(result: st.Result) -> Iterator[str]:
    """The answer in words: what the run did; for each property the verdict, the cost and the scores; the report."""
    from sateen.study.findings import shown_verdict
    from sateen.study.score_table import score_table

    stages: dict[str, list[str]] = {"computed": []}
    for stage, state in result.stages.items():
        stages.setdefault(state, []).append(stage.split()[0])
    done = [f"{state}: {', '.join(dict.fromkeys(names))}" for state, names in stages.items() if names]
    yield "; ".join([f"{result.name}, seed {result.seed}", *done])
    for answer in result.properties.values():
        yield ""
        yield from shown_verdict(answer.verdict, guaranteed=answer.guarantee is not None)
        if answer.error_bound is not None:
            yield f"{answer.error_bound}."
        for learner, posterior in answer.posteriors.items():
            if not posterior.record.converged:
                yield f"{learner}: {posterior.record.verdict}"
        if answer.budget is not None:
            yield f"{answer.budget['sentence']}"
            yield f"to get the same result anywhere: {answer.budget['repeat']}"
        if answer.plan is not None:
            yield f"the plan: {answer.plan}"
        if answer.scores and answer.test is not None:
            level = next(iter(answer.predictions.values())).level
            caption, rows = score_table(answer.scored(), answer.test, level)
            yield f"{caption}:"
            yield from table(rows, str.rjust, indent="  ")
    yield ""
    yield str(result.folder / "report.html")


def _content(result: st.Result) -> dict[str, object]:
    """result.json without the long columns, which are in the file; and what the run did."""
    properties = {
        name: {key: value for key, value in answer.items() if key != "predictions"}
        for name, answer in result.content["properties"].items()
    }
    files = {"folder": str(result.folder), "report": str(result.folder / "report.html")}
    made = {"stages": dict(result.stages), "seconds": dict(result.seconds)}
    return {**files, **made, **result.content, "properties": properties}


def _show_forecast(
    study: st.Study, forecast: Forecast, workers: int | None, may_be_elsewhere: bool, as_json: bool
) -> None:
    steps = [(step.stage, step.state, step.about) for step in forecast.steps]
    pool = pool_here(study.on) if may_be_elsewhere else None
    alone = None if math.isnan(forecast.seconds) else forecast.seconds
    crew = None if pool is None else Crowd(places_of(pool), alone, forecast.runs)
    seconds = None if alone is None else alone / (workers or 1) if crew is None else crew.seconds

    def lines() -> Iterator[str]:
        yield f"{study.name}, seed {study.seed}, into {forecast.folder}:"
        yield from table(steps, indent="  ")
        many = f"{workers} workers" if workers and workers > 1 else "one worker"
        if crew is not None:
            many = f"the {plural(crew.places, 'worker')} now connected"
        rest = ", plus the time of learning" if any(stage.startswith("learn ") for stage, _, _ in steps) else ""
        about = "" if seconds is None else f", about {duration_text(seconds)} by {many}{rest}"
        planned = any(state == "pending" and text == AS_PLANNED for _, state, text in steps)
        nothing = "the runs of the calibration are planned later" if planned else "nothing is left to simulate"
        yield f"{forecast.runs:,} runs to make{about}" if forecast.runs else nothing
        if crew is not None:
            yield crew.advice
        for stage, long in forecast.learning.items():
            yield f"{stage}: about {duration_text(long)}"

    about: dict[str, object] = {
        "study": study.name,
        "folder": str(forecast.folder),
        "runs": forecast.runs,
        "seconds": seconds,
    }
    if crew is not None:
        about |= {"workers": crew.places, "useful_workers": crew.useful}
    show(as_json, lambda: {**about, "stages": {stage: state for stage, state, _ in steps}}, lines)
