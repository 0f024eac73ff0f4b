"""The command `run`: from a study file to a folder with its answer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import warn
from sateen.cli.options import JSON
from sateen.cli.text import aligned, print_json
from sateen.core.errors import ModelWarning

if TYPE_CHECKING:
    from sateen.assess.score import Score
    from sateen.study.result import PropertyResult, Result
    from sateen.study.running import Forecast
    from sateen.study.study import Study

__all__ = ["read_study", "run"]

_HEADER: Final = ("method", "RMSE", "accuracy", "Wilson", "width", "log score")


@click.command(short_help="A whole study: simulate, learn, calibrate, score, report.")
@click.argument("file", metavar="STUDY.toml")
@click.option("-o", "--output", "folder", metavar="FOLDER", help="Where to; NAME-result beside the study if not said.")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="All processors simulate if not said; one for a callable."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and about how long the runs take.")
@JSON
def run(file: str, folder: str | None, workers: int | None, dry_run: bool, as_json: bool) -> None:
    """Do what the study in a file asks for and what is not done yet: simulate the model, learn by each method,
    calibrate, score, report; and say what was found. The folder has all of it: report.html to look at, result.json,
    provenance.json and every stage.

    A run that was stopped goes on where it was when the same is run again; when the study has changed, only what
    depends on the change is made anew.

    \b
    sateen run examples/sir.toml
    sateen run examples/sir.toml --dry-run -o /tmp/sir
    """
    from sateen.cli.progress import Bar

    study = read_study(file)
    if dry_run:
        _tell_forecast(study, study.forecast(folder), workers, as_json)
        return
    try:
        result = study.run(folder, workers=workers, progress=Bar())
    except KeyboardInterrupt as stop:
        click.echo(f"{stop}", err=True)
        raise
    if as_json:
        told = {"stages": dict(result.stages), "seconds": dict(result.seconds), **_without_predictions(result)}
        print_json({"file": file, "folder": str(result.folder), "report": str(result.folder / "report.html"), **told})
    else:
        click.echo("\n".join(_lines(result)))


def read_study(file: str) -> Study:
    """The study in a file; what the reader of its model doubts goes to stderr."""
    from sateen.model.model import Model
    from sateen.study.study import Study

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        study = Study.load(file)
    if isinstance(study.model, Model):
        warn(study.model)
    return study


def _lines(result: Result) -> Iterator[str]:
    """What was found, in words: what the run did; for each property the verdict and the scores; the report."""
    kinds: dict[str, list[str]] = {"made": [], "taken over": []}
    for stage, state in result.stages.items():
        kinds[state].append(stage.split()[0])
    told = [f"{state}: {', '.join(dict.fromkeys(stages))}" for state, stages in kinds.items() if stages]
    yield "; ".join([f"{result.name}, seed {result.seed}", *told])
    for own in result.properties.values():
        yield ""
        yield own.verdict
        if own.error_bound is not None:
            yield f"{own.error_bound}."
        for method, posterior in own.posteriors.items():
            if not posterior.record.converged:
                yield f"{method}: {posterior.record.verdict}"
        if own.scores:
            yield f"scored against {_runs(own)}, intervals at 95 % or as guaranteed:"
            yield from (f"  {line}" for line in aligned([_HEADER, *_rows(own)], str.rjust))
    yield ""
    yield str(result.folder / "report.html")


def _runs(own: PropertyResult) -> str:
    assert own.test is not None
    return f"{int(own.test.trials.sum()):,} fresh runs at {len(own.test):,} points"


def _rows(own: PropertyResult) -> Iterator[tuple[str, ...]]:
    yield from (_row(method, score) for method, score in own.scores.items())
    if own.guarantee is not None and own.guarantee_score is not None:
        yield _row(f"{own.guaranteed}, {own.guarantee.method}", own.guarantee_score)


def _row(method: str, score: Score) -> tuple[str, ...]:
    shares = (f"{100 * share:.1f} %" for share in (score.accuracy, score.wilson_accuracy))
    return (method, f"{score.rmse:.4f}", *shares, f"{score.uncertainty:.4f}", f"{score.log_score:.4f}")


def _without_predictions(result: Result) -> dict[str, Any]:
    """result.json but for the long columns, which stand in the file."""
    properties = {
        name: {key: value for key, value in own.items() if key != "predictions"}
        for name, own in result.content["properties"].items()
    }
    return {**result.content, "properties": properties}


def _tell_forecast(study: Study, forecast: Forecast, workers: int | None, as_json: bool) -> None:
    steps = [(step.stage, step.state, step.about) for step in forecast.steps]
    seconds = None if math.isnan(forecast.seconds) else forecast.seconds / (workers or 1)
    if as_json:
        stages = {stage: state for stage, state, _ in steps}
        print_json(
            {
                "study": study.name,
                "folder": str(forecast.folder),
                "stages": stages,
                "runs": forecast.runs,
                "seconds": seconds,
            }
        )
        return
    click.echo(f"{study.name}, seed {study.seed}, into {forecast.folder}:")
    for line in aligned(steps):
        click.echo(f"  {line}")
    if seconds is None:
        click.echo("nothing is left to simulate")
    else:
        many = f"{workers} workers" if workers and workers > 1 else "one worker"
        click.echo(f"{forecast.runs:,} runs to make, about {_rounded(seconds)} s by {many}; learning comes on top")
    for stage, long in forecast.learning.items():
        click.echo(f"{stage}: about {_rounded(long)} s")


def _rounded(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
