"""The command `run`: from a study file to a folder with its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

import sateen as st
from sateen.cli.options import COUNT, JSON
from sateen.cli.output import say, show, table
from sateen.cli.progress import Bar
from sateen.cli.sources import load_study
from sateen.core.text import duration_text

if TYPE_CHECKING:
    from sateen.study.result import PropertyResult
    from sateen.study.stages import Forecast

_HEADER: Final = ("learner", "RMSE", "accuracy", "Wilson", "width", "log score")


@click.command()
@click.argument("file", metavar="STUDY.toml")
@click.option("-o", "--output", "folder", metavar="FOLDER", help="Where to; by default NAME-result beside the study.")
@click.option(
    "--workers", type=COUNT, metavar="N", help="Processes that simulate; by default all processors, one for a callable."
)
@click.option("--dry-run", is_flag=True, help="Only say what is pending, and how many runs that takes; makes no runs.")
@click.option("--no-code", "code", is_flag=True, help="Refuse to run code of yours: a callable, a learner of your own.")
@JSON
def run(file: str, folder: str | None, workers: int | None, dry_run: bool, code: bool, as_json: bool) -> None:
    """Run the study in a file: simulate the model, learn with each learner, calibrate, score and report. The folder has
    the answer: report.html to look at, result.json, provenance.json and every stage.

    A run that was stopped continues when the same is run again; when the study has changed, only what depends on the
    change is recomputed. Python code that the study names, a callable or a learner of your own, is run once the whole
    study is checked, and named on stderr first; --dry-run runs none.

    \b
    sateen run examples/sir.toml
    sateen run examples/sir.toml --dry-run -o /tmp/sir
    """
    study = load_study(file)
    if dry_run:
        _show_forecast(study, study.forecast(folder), workers, as_json)
        return
    try:
        result = study.run(folder, workers=workers, progress=Bar(), code=not code)
    except KeyboardInterrupt as stop:
        say(f"{stop}")
        raise
    show(as_json, lambda: {"file": file, **_content(result)}, lambda: _lines(result))


def _lines(result: st.Result) -> Iterator[str]:
    """The answer in words: what the run did; for each property the verdict and the scores; the report."""
    stages: dict[str, list[str]] = {"computed": []}
    for stage, state in result.stages.items():
        stages.setdefault(state, []).append(stage.split()[0])
    done = [f"{state}: {', '.join(dict.fromkeys(names))}" for state, names in stages.items() if names]
    yield "; ".join([f"{result.name}, seed {result.seed}", *done])
    for answer in result.properties.values():
        yield ""
        yield answer.verdict
        if answer.error_bound is not None:
            yield f"{answer.error_bound}."
        for learner, posterior in answer.posteriors.items():
            if not posterior.record.converged:
                yield f"{learner}: {posterior.record.verdict}"
        if answer.scores and answer.test is not None:
            runs = f"{int(answer.test.trials.sum()):,} fresh runs at {len(answer.test):,} points"
            yield f"scored against {runs}, intervals at 95 % or as guaranteed:"
            yield from table([_HEADER, *_rows(answer)], str.rjust, indent="  ")
    yield ""
    yield str(result.folder / "report.html")


def _rows(answer: PropertyResult) -> Iterator[tuple[str, ...]]:
    scores = dict(answer.scores)
    if answer.guarantee is not None and answer.guarantee_score is not None:
        scores[f"{answer.guaranteed}, {answer.guarantee.method}"] = answer.guarantee_score
    for name, score in scores.items():
        shares = (f"{100 * share:.1f} %" for share in (score.accuracy, score.wilson_accuracy))
        yield (name, f"{score.rmse:.4f}", *shares, f"{score.uncertainty:.4f}", f"{score.log_score:.4f}")


def _content(result: st.Result) -> dict[str, object]:
    """result.json without the long columns, which stand in the file; and what the run did."""
    properties = {
        name: {key: value for key, value in answer.items() if key != "predictions"}
        for name, answer in result.content["properties"].items()
    }
    files = {"folder": str(result.folder), "report": str(result.folder / "report.html")}
    made = {"stages": dict(result.stages), "seconds": dict(result.seconds)}
    return {**files, **made, **result.content, "properties": properties}


def _show_forecast(study: st.Study, forecast: Forecast, workers: int | None, as_json: bool) -> None:
    steps = [(step.stage, step.state, step.about) for step in forecast.steps]
    seconds = None if math.isnan(forecast.seconds) else forecast.seconds / (workers or 1)

    def lines() -> Iterator[str]:
        yield f"{study.name}, seed {study.seed}, into {forecast.folder}:"
        yield from table(steps, indent="  ")
        many = f"{workers} workers" if workers and workers > 1 else "one worker"
        about = "" if seconds is None else f", about {duration_text(seconds)} by {many}; learning comes on top"
        yield f"{forecast.runs:,} runs to make{about}" if forecast.runs else "nothing is left to simulate"
        for stage, long in forecast.learning.items():
            yield f"{stage}: about {duration_text(long)}"

    about = {"study": study.name, "folder": str(forecast.folder), "runs": forecast.runs, "seconds": seconds}
    show(as_json, lambda: {**about, "stages": {stage: state for stage, state, _ in steps}}, lines)
