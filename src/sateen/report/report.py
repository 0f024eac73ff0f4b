"""From a Result to its report: what the page says, what it draws, and the same pictures for papers.

The page is one HTML file that needs nothing else, neither a network nor another file. A template is filled with plain
data; what comes from the user is text in it, never markup and never code. The pictures are drawn in the browser, from
data that stands in the page, by plotly.js, which stands in it too. A policy in the page lets only these scripts run, by
their hashes, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

import sateen as st
from sateen.core.errors import InputError, ModelWarning
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.registry import call_provider
from sateen.core.seeds import stream_seed
from sateen.core.space import Range
from sateen.core.text import percent
from sateen.core.types import File
from sateen.files.atomic import replacing, write_text
from sateen.report.data import Json, coverage_data, function_data, interval_label, parameters_that_matter, run_data
from sateen.report.decision import decision_data, decision_words, which_matter
from sateen.study.findings import notes_of
from sateen.study.result import PropertyResult, Result

STAMP: Final = "sateen-stamp"  # the name of the <meta> that says what the page was made from
_TEMPLATE: Final = "report.html.jinja"
_SCRIPT: Final = "report.js"
_STYLE: Final = "report.css"
# What would end a script, or a line of one, inside HTML.
_HARMLESS: Final[dict[str, str | int | None]] = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_SUFFIXES: Final = (".svg", ".pdf", ".png")
_HEAD: Final = 512  # bytes of a page, among which is its stamp
_MOST_JUMPS: Final = 2_000_000  # in runs that are replayed until one has the wanted verdict
_KINDS: Final = ("satisfied", "violated")
_FORM: Final = 3  # of the page; pages of another form are written again


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A training run, replayed: `run` of the point in row `point`, with what decides its verdict."""

    point: int
    run: int
    path: st.Path
    explanation: st.Explanation


def write_report(result: Result, file: File) -> None:
    """Write the report of a result as one HTML file; it is whole, or what it was before."""
    page, drawn = _contents(result)
    try:
        write_text(file, render(page, drawn, stamp=report_stamp(result)))
    except OSError as error:
        raise InputError(f"cannot write {os.fspath(file)}: {error.strerror or error}") from error


def update_report(result: Result, file: File) -> None:
    """Write the report, unless the one that is there shows the same."""
    path = FilePath(file)
    if path.is_file() and not path.is_symlink():
        with open(path, "rb") as stream:
            if f'content="{report_stamp(result)}"'.encode() in stream.read(_HEAD):
                return
    write_report(result, path)


def report_stamp(result: Result) -> str:
    """A hash of all that a report shows: two results with the same stamp have the same report."""
    about = {key: value for key, value in result.provenance.items() if key not in ("started", "finished", "stages")}
    return fingerprint({"form": _FORM, "content": dict(result.content), "about": about})


def save_figures(result: Result, folder: File, suffix: str = ".svg") -> list[str]:
    """Draw what the report shows for papers, a file for each picture, and return their names."""
    from sateen.plot import figures

    if suffix not in _SUFFIXES:
        raise InputError(f"cannot save figures as {suffix!r}; take .svg, .pdf or .png")
    target = FilePath(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for answer in result.properties.values():
            for what, drawing in _drawn(result, answer):
                file = target / (re.sub(r"[^\w.-]", "_", f"{answer.name}-{what}") + suffix)  # a name is no path
                with replacing(file) as stream:
                    figures.save(drawing, file, stream)
                written.append(str(file))
    except OSError as error:
        raise InputError(f"cannot write figures to {target}: {error.strerror or error}") from None
    return written


def examples(result: Result, answer: PropertyResult) -> dict[str, Example]:
    """A training run that satisfied the property and one that violated it, replayed from their seeds.

    Each is of the point where both kinds are nearest to equally many, among the points that have its kind. Runs of a
    callable are not replayed, for that would run its file.
    """
    question = result.content["question"]
    if answer.formula is None or "callable" in question or not isinstance(answer.train.seed, int):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # told when the study was read
        model = st.Model.parse(result.model)
    formula = st.stl(answer.formula, end=answer.end)
    runs = {kind: _first_run(model, formula, answer.train, question["caps"], kind) for kind in _KINDS}
    return {kind: example for kind, example in runs.items() if example is not None}


def _first_run(
    model: st.Model, formula: st.Formula, train: Observations, caps: Mapping[str, float], kind: str
) -> Example | None:
    """The first run of a kind, at the most balanced point that has one; None if none has, or only far on."""
    counts = getattr(train, kind)
    if not counts.any():
        return None
    verdict = st.Verdict.TRUE if kind == "satisfied" else st.Verdict.FALSE
    balance = np.minimum(train.satisfied, train.violated) / np.maximum(train.trials, 1)
    point = int(np.argmax(np.where(counts > 0, 1.0 + balance, 0.0)))
    crowd, jumps = caps.get("max_population"), 0
    limits = {name: caps[name] for name in ("max_events", "max_time") if caps.get(name)}
    for run in range(int(train.trials[point])):
        path = call_provider(
            "follow a run", model, formula, train.points[point], seed=train.seed, point=point, run=run, **limits
        )
        assert isinstance(path, st.Path)
        jumps += len(path)
        counted = crowd is None or path.states.max(initial=0.0) <= crowd  # else it was stopped, and is undecided
        if counted and st.monitor(formula, path) is verdict:
            return Example(point, run, path, st.explain(formula, path))
        if jumps > _MOST_JUMPS:
            break
    return None


def _contents(result: Result) -> tuple[Json, Json]:
    """What the page says, and what it draws by the id of each property's section."""
    sections, drawn = [], {}
    for number, answer in enumerate(result.properties.values(), start=1):
        words, pictures = _property(result, answer)
        sections.append({"id": f"property-{number}", **words})
        drawn[f"property-{number}"] = pictures
    about = result.provenance
    page = {
        "name": result.name,
        "seed": result.seed,
        "sateen": result.content["sateen"],
        "properties": sections,
        "space": [(name, _range(value)) for name, value in result.space.parameters],
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


def _leading(answer: PropertyResult) -> str:
    """The learner that a report shows first: the guaranteed one, or else the first."""
    return answer.guaranteed or next(iter(answer.posteriors))


def _property(result: Result, answer: PropertyResult) -> tuple[Json, Json]:
    function = function_data(answer.posteriors, answer.guarantee, answer.guaranteed, answer.train)
    leading, covered = _leading(answer), _coverage(result, answer)
    runs = {kind: _run(example, answer.train) for kind, example in examples(result, answer).items()}
    decision, begun = answer.decision, len(answer.train)
    trusted, found = _sensitivity(result, answer)
    words = {
        "name": answer.name,
        "formula": answer.formula,
        "end": answer.end,
        "verdict": answer.verdict,
        "facts": list(_facts(answer)),
        "claims": [_sentence(str(claim)) for claim in answer.claims],
        "intervals": list(_intervals(answer)),
        "doubts": list(_doubts(answer)),
        "notes": [
            f"{learner}: {note}." for learner, posterior in answer.posteriors.items() for note in notes_of(posterior)
        ],
        "kind": function["kind"],
        "names": result.space.names,
        "bands": function.get("bands", []),
        "learner": leading,
        "left_out": function.get("left_out", []),
        "decision": None if decision is None else decision_words(decision, begun),
        "matter": [] if found is None else parameters_that_matter(trusted, found),
        "matters_to": trusted.kind,
        "matter_claim": "" if found is None else _sentence(str(found.claim)),
        "covered": covered and {key: covered[key] for key in ("points", "design", "guarantee")},
        "runs": {kind: run["words"] for kind, run in runs.items()},
        "missing": list(_missing(answer.train, runs)),
        "scores": list(_score_rows(answer)),
        "observed": list(_observed(answer)),
    }
    drawn = None if decision is None else decision_data(decision, begun)
    return words, {"function": function, "decision": drawn, "coverage": covered, "runs": runs}


def _facts(answer: PropertyResult) -> Iterator[tuple[str, str, str]]:
    """The few numbers that stand out: label, value, and what goes with it."""
    prediction = answer.guaranteed_prediction or next(iter(answer.predictions.values()))
    names, theta, mean = prediction.points.space.names, prediction.points.theta, prediction.mean
    for label, row in (("lowest", int(np.argmin(mean))), ("highest", int(np.argmax(mean)))):
        at = ", ".join(f"{name} = {value:.3g}" for name, value in zip(names, theta[row], strict=True))
        yield label, f"{mean[row]:.3g}", at
    kind = "credible" if answer.guarantee is None else "guaranteed"
    yield "mean width", f"{prediction.width.mean():.3g}", f"of {kind} {percent(prediction.level)} intervals"
    learner = _leading(answer)
    if learner in answer.scores:
        yield "error", f"{answer.scores[learner].rmse:.3g}", f"of {learner}, root mean square, against fresh runs"


def _intervals(answer: PropertyResult) -> Iterator[tuple[str, str]]:
    """What each kind of interval that is drawn claims: its name, and its claim."""
    drawn = list(answer.predictions.items())
    if answer.guaranteed_prediction is not None:
        drawn.insert(0, (answer.guaranteed or "", answer.guaranteed_prediction))
    for learner, prediction in drawn:
        yield f"{learner}, {interval_label(prediction)}", _sentence(str(prediction.claim))


def _parts(answer: PropertyResult) -> Iterator[tuple[str, Observations]]:
    for part, observations in (("train", answer.train), ("calibrate", answer.calibrate), ("test", answer.test)):
        if observations is not None:
            yield part, observations


def _doubts(answer: PropertyResult) -> Iterator[str]:
    """What a reader should know before trusting the rest."""
    for learner, posterior in answer.posteriors.items():
        if not posterior.record.converged:
            yield f"{learner}: {posterior.record.verdict}."
    for part, observations in _parts(answer):
        if undecided := int(observations.undecided.sum()):
            total = int(observations.trials.sum())
            yield f"{undecided:,} of the {total:,} runs of {part} are undecided; they widen every interval."


def _missing(train: Observations, runs: Mapping[str, object]) -> Iterator[str]:
    """Why a kind of run is not shown."""
    for kind, does in (("satisfied", "satisfies"), ("violated", "violates")):
        if kind not in runs and getattr(train, kind).any():
            yield f"Looking for a run that {does} the property would have taken too long."
        elif kind not in runs:
            yield f"No training run {does} the property."


def _score_rows(answer: PropertyResult) -> Iterator[tuple[str, ...]]:
    scores = {f"{learner}, credible {percent(score.level)}": score for learner, score in answer.scores.items()}
    if answer.guarantee is not None and (score := answer.guarantee_score) is not None:
        scores[f"{answer.guaranteed}, {answer.guarantee.method} {percent(score.level)}"] = score
    for label, score in scores.items():
        shares = (f"{100 * share:.1f} %" for share in (score.accuracy, score.wilson_accuracy))
        yield label, f"{score.rmse:.4f}", *shares, f"{score.uncertainty:.4f}", f"{score.log_score:.4f}"


def _observed(answer: PropertyResult) -> Iterator[tuple[str, ...]]:
    for part, observations in _parts(answer):
        counts = (
            len(observations),
            *(getattr(observations, name).sum() for name in ("trials", "satisfied", "undecided")),
        )
        yield part, observations.points.design, *(f"{count:,}" for count in counts)


def _sensitivity(result: Result, answer: PropertyResult) -> tuple[FullPosterior, st.Sensitivity | None]:
    """Which parameters matter, and to which posterior."""
    return which_matter(answer.decision, answer.posteriors[_leading(answer)], seed=stream_seed(result.seed, "report"))


def _coverage(result: Result, answer: PropertyResult) -> Json | None:
    test, seed = answer.test, stream_seed(result.seed, "report")
    if test is None or not (test.trials > 0).any():
        return None
    met = None if answer.guarantee_score is None else answer.guarantee_score.wilson_accuracy
    return coverage_data(answer.posteriors, _leading(answer), answer.guarantee, met, test, seed=seed)


def _run(example: Example, train: Observations) -> Json:
    at = ", ".join(f"{name} = {value:.4g}" for name, value in train.points[example.point].items())
    words = f"Training point {example.point}, run {example.run}{f': {at}' if at else ''}."
    return run_data(example.path, example.explanation.lanes, example.explanation.formula.species, words)


def _timings(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """How long each task took; runs that several properties share are listed once."""
    shown: dict[str, float] = {}
    for task, time in seconds.items():
        part = task.split()[0]
        name = f"simulate: {part}" if part in ("train", "test", "calibrate") else task
        shown[name] = max(time, shown.get(name, 0.0))
    return [(name, f"{time:.3g}") for name, time in shown.items()]


def _range(value: Range | float) -> str:
    return f"{value.low:g} to {value.high:g}, {value.scale} scale" if isinstance(value, Range) else f"{value:g}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _drawn(result: Result, answer: PropertyResult) -> Iterator[tuple[str, Any]]:
    """The pictures of a property, each with the end of its name."""
    from sateen.plot.figures import path_with_explanation
    from sateen.plot.learning import learned
    from sateen.report import figures

    if result.space.names:
        for learner, posterior in answer.posteriors.items():
            yield learner, learned(posterior)
    if answer.guarantee is not None and 1 <= len(result.space) <= 2:
        yield "guaranteed", figures.guaranteed(answer.guarantee, answer.train)
    if (decision := answer.decision) is not None:
        if decision.regions is not None and result.space.names:
            observations = decision.posterior.training.observations
            yield "regions", decision.regions.plot(observations=observations)
        if decision.refinement is not None:
            yield "rounds", decision.refinement.plot()
    if (found := _sensitivity(result, answer)[1]) is not None:
        yield "parameters", found.plot()
    if (covered := _coverage(result, answer)) is not None:
        yield "coverage", figures.coverage(covered)
    for kind, example in examples(result, answer).items():
        yield kind, path_with_explanation(example.path, example.explanation)


def render(page: Mapping[str, object], drawn: Mapping[str, object], *, stamp: str = "") -> str:
    """The page as text: `page` is what its words say, `drawn` the data of its pictures, by the id of their section."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    library, script = get_plotlyjs(), _text(_SCRIPT)
    # A script is hashed as the browser will see it: with its line ends made one kind.
    scripts = [text.replace("\r\n", "\n") for text in (library, script)]
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(_TEMPLATE).render(
        page=page,
        stamp=stamp,
        stamp_name=STAMP,
        style=Markup(_text(_STYLE)),
        library=Markup(scripts[0]),
        script=Markup(scripts[1]),
        hashes=Markup(" ".join(f"'sha256-{_hash(text)}'" for text in scripts)),
        data=Markup(_data(drawn)),
    )


def _data(drawn: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element whatever texts are in it."""
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(str.maketrans(_HARMLESS))


def _text(name: str) -> str:
    return files("sateen.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
