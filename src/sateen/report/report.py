"""From a Result to its report: what the page says, what it draws, and the same pictures for papers."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sateen.assess.score import Score
from sateen.core.errors import InputError, ModelWarning
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.path import Path, Verdict
from sateen.core.seeds import stream_seed
from sateen.core.text import percent
from sateen.core.types import File
from sateen.files.atomic import replacing
from sateen.study.result import PropertyResult, Result

if TYPE_CHECKING:
    from sateen.logic.formula import Formula
    from sateen.logic.monitor import Explanation
    from sateen.model.model import Model

__all__ = ["Example", "examples", "update_report", "report_stamp", "save_figures", "write_report"]

_MOST_JUMPS: Final = 2_000_000  # in runs that are made again until one has the wanted verdict
_SUFFIXES: Final = (".svg", ".pdf", ".png")
_HEAD: Final = 512  # bytes of a page, among which is its stamp
_FORM: Final = 1  # of the page; another one makes old pages be written anew


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A training run, made once more: `run` of the point in row `point`, with what decides its verdict."""

    point: int
    run: int
    path: Path
    explained: Explanation


def write_report(result: Result, file: File) -> None:
    """Write the report of a result as one HTML file; it is whole, or what it was before."""
    from sateen.report.page import render

    page, drawn = _contents(result)
    text = render(page, drawn, stamp=report_stamp(result))
    try:
        with replacing(file) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise InputError(f"cannot write {os.fspath(file)}: {error.strerror or error}") from None


def update_report(result: Result, file: File) -> None:
    """Write the report, unless the one that is there shows the same."""
    path = FilePath(file)
    if path.is_file():
        with open(path, "rb") as stream:
            if f'content="{report_stamp(result)}"'.encode() in stream.read(_HEAD):
                return
    write_report(result, path)


def report_stamp(result: Result) -> str:
    """A hash of all that a report shows: two results with the same have the same report."""
    about = {key: own for key, own in result.provenance.items() if key not in ("started", "finished", "stages")}
    return fingerprint({"form": _FORM, "content": dict(result.content), "about": about})


def save_figures(result: Result, folder: File, suffix: str = ".svg") -> list[str]:
    """Draw what the report shows for papers, a file for each picture, and return their names."""
    from sateen.plot import figures

    if suffix not in _SUFFIXES:
        raise InputError(f"cannot save figures as {suffix!r}; take .svg, .pdf or .png")
    target = FilePath(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        named = [
            (f"{name}-{what}", drawing)
            for name, own in result.properties.items()
            for what, drawing in _drawn(result, own)
        ]
        written = []
        for name, drawing in named:
            file = target / (re.sub(r"[^\w.-]", "_", name) + suffix)  # a name is no path
            part = file.with_name(f".{file.name}.part{suffix}")
            try:
                figures.save(drawing, part)
                os.replace(part, file)
            finally:
                part.unlink(missing_ok=True)
            written.append(str(file))
    except OSError as error:
        raise InputError(f"cannot write figures to {target}: {error.strerror or error}") from None
    return written


def examples(result: Result, own: PropertyResult) -> dict[str, Example]:
    """A training run that satisfied the property and one that violated it, made again from their seeds.

    Each is of the point where both kinds are nearest to equally many, among the points that have its kind. Runs of a
    callable are not made again, for that would run its file.
    """
    from sateen.logic.parser import stl
    from sateen.model.model import Model

    seen, caps = own.train, result.content["question"]["caps"]
    if own.formula is None or "callable" in result.content["question"] or not isinstance(seen.seed, int):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # told when the study was read
        model = Model.parse(result.model)
    formula = stl(own.formula, end=own.end)
    wanted = {"satisfied": Verdict.TRUE, "violated": Verdict.FALSE}
    found = {kind: _first_run(model, formula, seen, caps, kind, verdict) for kind, verdict in wanted.items()}
    return {kind: example for kind, example in found.items() if example is not None}


def _first_run(
    model: Model, formula: Formula, seen: Observations, caps: Mapping[str, Any], kind: str, verdict: Verdict
) -> Example | None:
    """The first run with the verdict, at the most balanced point that has one; None if none has, or only far on."""
    from sateen.engine.run import follow
    from sateen.logic.monitor import explain, monitor

    assert isinstance(seen.seed, int)
    counts = getattr(seen, kind)
    if not counts.any():
        return None
    balance = np.minimum(seen.satisfied, seen.violated) / np.maximum(seen.trials, 1)
    point = int(np.argmax(np.where(counts > 0, 1.0 + balance, 0.0)))
    crowd, jumps = caps.get("max_population"), 0
    limits = {name: caps[name] for name in ("max_events", "max_time") if caps.get(name)}
    for run in range(int(seen.trials[point])):
        path = follow(model, formula, seen.points[point], seed=seen.seed, point=point, run=run, **limits)
        jumps += len(path)
        counted = crowd is None or path.states.max(initial=0.0) <= crowd  # else it was stopped, and is undecided
        if counted and monitor(formula, path) is verdict:
            return Example(point, run, path, explain(formula, path))
        if jumps > _MOST_JUMPS:
            break
    return None


def _contents(result: Result) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the page says, and what it draws by the id of each property's section."""
    properties, drawn = [], {}
    for number, own in enumerate(result.properties.values(), start=1):
        said, shown = _property(result, own)
        properties.append({"id": f"property-{number}", **said})
        drawn[f"property-{number}"] = shown
    about = result.provenance
    page = {
        "name": result.name,
        "seed": result.seed,
        "sateen": result.content["sateen"],
        "properties": properties,
        "space": [
            (name, f"{own:g}" if isinstance(own, float) else f"{own.low:g} to {own.high:g}, {own.scale} scale")
            for name, own in result.space.parameters
        ],
        "varies": bool(result.space.names),
        "model": result.model,
        "callable": "callable" in result.content["question"],
        "text": result.text,
        "command": result.command,
        "timings": _timings(result.seconds),
        "seeds": [("study", result.seed), *about.get("seeds", {}).items()],
        "versions": list(about.get("versions", {}).items()),
        "machine": about.get("machine", ""),
    }
    return page, drawn


def _property(result: Result, own: PropertyResult) -> tuple[dict[str, Any], dict[str, Any]]:
    from sateen.report.data import function_data, parameters_that_matter

    function = function_data(own.posteriors, own.guarantee, own.guaranteed, own.train)
    method = own.guaranteed or next(iter(own.posteriors))
    covered = _coverage(result, own)
    shown = {kind: _shown(example, own.train) for kind, example in examples(result, own).items()}
    said = {
        "name": own.name,
        "formula": own.formula,
        "end": own.end,
        "verdict": own.verdict,
        "facts": list(_facts(own)),
        "claims": [_sentence(str(claim)) for claim in own.claims],
        "intervals": list(_intervals(own)),
        "doubts": list(_doubts(own)),
        "notes": [
            f"{learner}: {note}."
            for learner, each in result.content["properties"][own.name]["learners"].items()
            for note in each["notes"]
        ],
        "kind": function["kind"],
        "names": result.space.names,
        "bands": function.get("bands", []),
        "method": method,
        "left_out": function.get("left_out", []),
        "matter": parameters_that_matter(own.posteriors[method]) if len(result.space) > 1 else [],
        "covered": covered and {key: covered[key] for key in ("points", "design", "guarantee")},
        "runs": {kind: example["words"] for kind, example in shown.items()},
        "missing": list(_missing(own.train, shown)),
        "scores": list(_score_rows(own)),
        "observed": list(_observed(own)),
    }
    return said, {"function": function, "coverage": covered, "runs": shown}


def _facts(own: PropertyResult) -> Iterator[tuple[str, str, str]]:
    """The few numbers that stand out: label, value, and what goes with it."""
    leading = own.guaranteed_prediction or next(iter(own.predictions.values()))
    names, mean = leading.points.space.names, leading.mean
    for label, row in (("lowest", int(np.argmin(mean))), ("highest", int(np.argmax(mean)))):
        at = ", ".join(f"{name} = {value:.3g}" for name, value in zip(names, leading.points.theta[row], strict=True))
        yield label, f"{mean[row]:.3g}", at
    kind = "credible" if own.guarantee is None else "guaranteed"
    yield "mean width", f"{leading.width.mean():.3g}", f"of {kind} {percent(leading.level)} intervals"
    method = own.guaranteed or next(iter(own.posteriors))
    if method in own.scores:
        yield "error", f"{own.scores[method].rmse:.3g}", f"of {method}, root mean square, against fresh runs"


def _intervals(own: PropertyResult) -> Iterator[tuple[str, str]]:
    """What each kind of interval that is drawn promises: its name, and its claim."""
    from sateen.report.data import interval_label

    drawn = list(own.predictions.items())
    if own.guaranteed_prediction is not None:
        drawn.insert(0, (own.guaranteed or "", own.guaranteed_prediction))
    for method, predicted in drawn:
        yield f"{method}, {interval_label(predicted)}", _sentence(str(predicted.claim))


def _doubts(own: PropertyResult) -> Iterator[str]:
    """What a reader should know before trusting the rest."""
    for method, posterior in own.posteriors.items():
        if not posterior.record.converged:
            yield f"{method}: {posterior.record.verdict}."
    for part in ("train", "test", "calibrate"):
        seen = getattr(own, part)
        if seen is not None and (undecided := int(seen.undecided.sum())):
            total = int(seen.trials.sum())
            yield f"{undecided:,} of the {total:,} runs of {part} are undecided; they widen every interval."


def _missing(train: Observations, shown: Mapping[str, Any]) -> Iterator[str]:
    """Why a kind of run is not shown."""
    for kind, does in (("satisfied", "satisfies"), ("violated", "violates")):
        if kind not in shown and getattr(train, kind).any():
            yield f"Looking for a run that {does} the property would have taken too long."
        elif kind not in shown:
            yield f"No training run {does} the property."


def _score_rows(own: PropertyResult) -> Iterator[tuple[str, ...]]:
    for method, score in own.scores.items():
        yield _score_row(f"{method}, credible {percent(score.level)}", score)
    if own.guarantee is not None and own.guarantee_score is not None:
        label = f"{own.guaranteed}, {own.guarantee.method} {percent(own.guarantee_score.level)}"
        yield _score_row(label, own.guarantee_score)


def _score_row(label: str, score: Score) -> tuple[str, ...]:
    shares = (f"{100 * share:.1f} %" for share in (score.accuracy, score.wilson_accuracy))
    return (label, f"{score.rmse:.4f}", *shares, f"{score.uncertainty:.4f}", f"{score.log_score:.4f}")


def _observed(own: PropertyResult) -> Iterator[tuple[str, ...]]:
    for part in ("train", "calibrate", "test"):
        seen = getattr(own, part)
        if seen is not None:
            counts = (len(seen), int(seen.trials.sum()), int(seen.satisfied.sum()), int(seen.undecided.sum()))
            yield (part, seen.points.design, *(f"{count:,}" for count in counts))


def _coverage(result: Result, own: PropertyResult) -> dict[str, Any] | None:
    from sateen.report.coverage import coverage_data

    if own.test is None or not (own.test.trials > 0).any():
        return None
    met = None if own.guarantee_score is None else own.guarantee_score.wilson_accuracy
    method, seed = own.guaranteed or next(iter(own.posteriors)), stream_seed(result.seed, "report")
    return coverage_data(own.posteriors, method, own.guarantee, met, own.test, seed=seed)


def _shown(example: Example, train: Observations) -> dict[str, Any]:
    from sateen.report.data import run_data

    at = ", ".join(f"{name} = {value:.4g}" for name, value in train.points[example.point].items())
    words = f"Training point {example.point}, run {example.run}{f': {at}' if at else ''}."
    return run_data(example.path, example.explained.lanes, example.explained.formula.species, words)


def _timings(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """How long each stage took; runs that several properties share are told once."""
    told: dict[str, float] = {}
    for stage, own in seconds.items():
        part = stage.split()[0]
        if part in ("train", "test", "calibrate"):
            told[f"simulate: {part}"] = max(own, told.get(f"simulate: {part}", 0.0))
        else:
            told[stage] = own
    return [(stage, f"{own:.3g}") for stage, own in told.items()]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _drawn(result: Result, own: PropertyResult) -> Iterator[tuple[str, Any]]:
    """The pictures of a property, each with the end of its name."""
    from sateen.plot import figures
    from sateen.report import figures as report_figures
    from sateen.report.data import parameters_that_matter

    method = own.guaranteed or next(iter(own.posteriors))
    if result.space.names:
        for each, posterior in own.posteriors.items():
            yield each, figures.learned(posterior)
    if own.guarantee is not None and 1 <= len(result.space) <= 2:
        yield "guaranteed", report_figures.guaranteed(own.guarantee, own.train)
    if len(result.space) > 1:
        yield "parameters", report_figures.parameters(parameters_that_matter(own.posteriors[method]))
    if (covered := _coverage(result, own)) is not None:
        yield "coverage", report_figures.coverage(covered)
    for kind, example in examples(result, own).items():
        yield kind, figures.path_with_explanation(example.path, example.explained)
