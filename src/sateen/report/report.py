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
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any, Final

import sateen as st
from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream_seed
from sateen.core.text import percent
from sateen.core.types import File
from sateen.files.atomic import replacing, write_text
from sateen.report import words
from sateen.report.data import Json, coverage_data, function_data, parameters_that_matter
from sateen.report.decision import decision_data, decision_words, which_matter
from sateen.report.evidence import drawn_run, error_data, examples
from sateen.report.shown import Shown, by_label, shown_posteriors
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
_FORM: Final = 6  # of the page; pages of another form are written again


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


def _contents(result: Result) -> tuple[Json, Json]:
    """What the page says, and what it draws by the id of each property's section."""
    sections, drawn = [], {}
    for number, answer in enumerate(result.properties.values(), start=1):
        told, pictures = _property(result, answer)
        sections.append({"id": f"property-{number}", **told})
        drawn[f"property-{number}"] = pictures
    about = result.provenance
    page = {
        "name": result.name,
        "seed": result.seed,
        "sateen": result.content["sateen"],
        "properties": sections,
        "space": [(name, words.range_text(value)) for name, value in result.space.ranges.items()],
        "fixed": words.fixed_parameters(result),
        "varies": bool(result.space.names),
        "model": result.model,
        "callable": "callable" in result.content["question"],
        "text": result.text,
        "command": result.command,
        "timings": words.timings(result.seconds),
        "seeds": [("study", result.seed), *about.get("seeds", {}).items()],
        "versions": list(about.get("versions", {}).items()),
        "machine": about.get("machine", ""),
    }
    return page, drawn


def _property(result: Result, answer: PropertyResult) -> tuple[Json, Json]:
    shown = shown_posteriors(answer)
    leading, covered = shown[0], _coverage(result, answer, shown)
    guaranteed = leading.label if leading.guaranteed else None
    function = function_data(by_label(shown), answer.guarantee, guaranteed, leading.seen)
    runs = {kind: drawn_run(example, answer.train) for kind, example in examples(result, answer).items()}
    decision, begun = answer.decision, len(answer.train)
    trusted, found = _sensitivity(result, answer, shown)
    errors = error_data(answer, leading.posterior)
    told = {
        "name": answer.name,
        "formula": words.formula_text(answer),
        "end": answer.end,
        "verdict": list(words.verdict_lines(answer, shown)),
        "level": percent(words.leading_prediction(answer, shown).level),
        "facts": list(words.facts(answer, shown)),
        "claims": [words.sentence(str(claim)) for claim in answer.claims],
        "intervals": list(words.interval_claims(answer, shown)),
        "doubts": list(words.doubts(answer)),
        "notes": list(words.notes(shown)),
        "offers": words.calibration_offers(answer),
        "bought": words.budget_text(answer),
        "kind": function["kind"],
        "names": result.space.names,
        "bands": function.get("bands", []),
        "learner": leading.label,
        "guaranteed": leading.guaranteed,
        "dots": "training" if leading.stage != "after refinement" else "training and the refinement",
        "sources": [f"{one.label}: from {one.runs}" for one in shown if one.stage],
        "left_out": function.get("left_out", []),
        "decision": None if decision is None else decision_words(decision, begun),
        "matter": [] if found is None else parameters_that_matter(trusted, found),
        "matters_to": next((one.label for one in shown if one.posterior is trusted), trusted.kind),
        "matter_claim": "" if found is None else words.sentence(str(found.claim)),
        "covered": covered and {key: covered[key] for key in ("points", "design", "guarantee")},
        "runs": {kind: run["words"] for kind, run in runs.items()},
        "missing": list(words.missing(answer.train, runs)),
        "scores": list(words.score_rows(answer, shown)),
        "exactly": isinstance(answer.test, st.Truth),
        "errors": errors and {key: value for key, value in errors.items() if not isinstance(value, list)},
        "observed": list(words.observed(answer)),
    }
    drawn = {"function": function, "coverage": covered, "errors": errors, "runs": runs}
    drawn["decision"] = None if decision is None else decision_data(decision, begun)
    drawn["table"] = {"name": f"{result.name}-{answer.name}.csv", "text": words.predictions_csv(result, answer, shown)}
    return told, drawn


def _sensitivity(
    result: Result, answer: PropertyResult, shown: list[Shown]
) -> tuple[FullPosterior, st.Sensitivity | None]:
    """Which parameters matter, and to which posterior."""
    return which_matter(answer.decision, shown[0].posterior, seed=stream_seed(result.seed, "report"))


def _coverage(result: Result, answer: PropertyResult, shown: list[Shown]) -> Json | None:
    test, seed = answer.test, stream_seed(result.seed, "report")
    if not isinstance(test, Observations) or not (test.trials > 0).any():
        return None
    met = None if answer.guarantee_score is None else answer.guarantee_score.wilson_accuracy
    return coverage_data(by_label(shown), shown[0].label, answer.guarantee, met, test, seed=seed)


def _drawn(result: Result, answer: PropertyResult) -> Iterator[tuple[str, Any]]:
    """The pictures of a property, each with the end of its name."""
    from sateen.plot.figures import path_with_explanation
    from sateen.plot.learning import learned
    from sateen.report import figures

    shown = shown_posteriors(answer)
    if result.space.names:
        for one in shown:
            yield one.label, learned(one.posterior)
    if answer.guarantee is not None and 1 <= len(result.space) <= 2:
        yield "guaranteed", figures.guaranteed(answer.guarantee, answer.train)
    if (decision := answer.decision) is not None:
        if decision.regions is not None and result.space.names:
            observations = decision.posterior.training.observations
            yield "regions", decision.regions.plot(observations=observations)
        if decision.refinement is not None:
            yield "rounds", decision.refinement.plot()
    if (found := _sensitivity(result, answer, shown)[1]) is not None:
        yield "parameters", found.plot()
    if (covered := _coverage(result, answer, shown)) is not None:
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
