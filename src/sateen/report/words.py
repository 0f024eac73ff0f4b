"""What a report says of a property in words and numbers."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

import sateen as st
from sateen.core.errors import ModelWarning
from sateen.core.observations import Observations
from sateen.core.prediction import Prediction
from sateen.core.space import Range
from sateen.core.text import number_text, percent
from sateen.report.data import COLUMNS, interval_label
from sateen.report.shown import Shown
from sateen.study.findings import bracketed, notes_of, place_text, shown_verdict
from sateen.study.result import PropertyResult, Result
from sateen.study.score_table import score_row

# How the sentences of a verdict begin that say what they are about.
_LABELS: Final = ("Asked", "Found", "Guaranteed", "Not guaranteed", "Decided", "Certified", "Not certified", "Refined")


def leading_prediction(answer: PropertyResult, shown: list[Shown]) -> Prediction:
    """The guaranteed prediction, or else that of the first posterior."""
    return answer.guaranteed_prediction or shown[0].prediction


def verdict_lines(answer: PropertyResult, shown: list[Shown]) -> Iterator[tuple[str, str]]:
    """The sentences of the verdict, each with the words that it begins with, if they say what it is about."""
    for line in shown_verdict(answer.verdict, guaranteed=answer.guarantee is not None):
        label, colon, rest = line.partition(": ")
        yield (f"{label}:", rest) if colon and label.startswith(_LABELS) else ("", line)


def facts(answer: PropertyResult, shown: list[Shown]) -> Iterator[tuple[str, str, str]]:
    """The few numbers that stand out: label, value, and what goes with it."""
    leading, first = leading_prediction(answer, shown), shown[0]
    source = first.source and f", {first.source}"
    for label, row in (("lowest", int(np.argmin(leading.mean))), ("highest", int(np.argmax(leading.mean)))):
        ends = f"{leading.lower[row]:.3g} to {leading.upper[row]:.3g}"
        at = place_text(leading.points, row)
        yield label, f"{leading.mean[row]:.3g}", f"{ends}{at and f', at {at}'}{source}"
    kind, widths = "credible" if answer.guarantee is None else "guaranteed", answer.guaranteed_widths
    wide = first.width if widths is None else widths.mean
    most = "" if widths is None or widths.searched == 1 else f", at most {widths.greatest:.3g} at the places searched"
    yield "mean width", f"{wide:.3g}", f"of {kind} {percent(leading.level)} intervals{most}{source}"
    if first.score is not None:
        against = "the exact probability" if isinstance(answer.test, st.Truth) else "fresh runs"
        yield "error", f"{first.score.rmse:.3g}", f"of {first.label}, root mean square, against {against}"


def formula_text(answer: PropertyResult) -> str | None:
    """The formula with brackets for readers."""
    return None if answer.formula is None else bracketed(st.stl(answer.formula, end=answer.end).root)


def fixed_parameters(result: Result) -> list[tuple[str, str]]:
    """The parameters that do not vary, each with its value and where that comes from."""
    fixed = [(name, f"{number_text(value)}, fixed by the study") for name, value in result.space.fixed.items()]
    if "callable" in result.content["question"]:
        return fixed
    model, known = parsed_model(result), dict(result.space.parameters)
    rest = ((each.name, each.default) for each in model.parameters if each.name not in known)
    return fixed + [(name, f"{number_text(value)}, the model's default") for name, value in rest if value is not None]


def parsed_model(result: Result) -> st.Model:
    """The model of a result; what is doubtful about it was said when the study was read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return st.Model.parse(result.model)


def predictions_csv(result: Result, answer: PropertyResult, shown: list[Shown]) -> str:
    """A table of what every posterior predicts, and of the guarantee: comments, a header, and a row for each point."""
    drawn = [(f"{one.label} credible", one.prediction) for one in shown]
    if answer.guaranteed_prediction is not None:
        drawn.insert(0, (f"{shown[0].label} guaranteed", answer.guaranteed_prediction))
    points = shown[0].prediction.points
    about = [
        f"study {result.name}, property {answer.name}",
        *([f"formula: {answer.formula}"] if answer.formula else []),
    ]
    about += [f"{label} at {percent(one.level)}: {one.claim}" for label, one in drawn]
    header = [name for name, _ in result.space.parameters]
    header += [f"{label} {column}" for label, _ in drawn for column in COLUMNS]
    stream = io.StringIO()
    stream.writelines(f"# {' '.join(line.split())}\n" for line in about)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    columns = [getattr(one, column) for _, one in drawn for column in COLUMNS]
    for row, point in enumerate(points):
        writer.writerow(f"{value:.6g}" for value in (*point.values(), *(column[row] for column in columns)))
    return stream.getvalue()


def interval_claims(answer: PropertyResult, shown: list[Shown]) -> Iterator[tuple[str, str]]:
    """What each kind of interval that is drawn claims: its name, and its claim."""
    drawn = [(one, one.prediction) for one in shown]
    if answer.guaranteed_prediction is not None:
        drawn.insert(0, (shown[0], answer.guaranteed_prediction))
    for one, prediction in drawn:
        whose = f"{one.learner} {one.source}".strip()
        yield f"{whose}, {interval_label(prediction)}", sentence(str(prediction.claim))


def _parts(answer: PropertyResult) -> Iterator[tuple[str, Observations | st.Truth]]:
    for part, labels in (("train", answer.train), ("calibrate", answer.calibrate), ("test", answer.test)):
        if labels is not None:
            yield part, labels


def doubts(answer: PropertyResult) -> Iterator[str]:
    """What a reader should know before trusting the rest."""
    for learner, posterior in answer.posteriors.items():
        if not posterior.record.converged:
            yield f"{learner}: {posterior.record.verdict}."
    for part, observations in _parts(answer):
        if isinstance(observations, Observations) and (undecided := int(observations.undecided.sum())):
            total = int(observations.trials.sum())
            yield f"{undecided:,} of the {total:,} runs of {part} are undecided; they widen every interval."


def missing(train: Observations, runs: Mapping[str, object]) -> Iterator[str]:
    """Why a kind of run is not shown."""
    for kind, does in (("satisfied", "satisfies"), ("violated", "violates")):
        if kind not in runs and getattr(train, kind).any():
            yield f"Looking for a run that {does} the property would have taken too long."
        elif kind not in runs:
            yield f"No training run {does} the property."


def score_rows(answer: PropertyResult, shown: list[Shown]) -> Iterator[tuple[str, ...]]:
    """Label and figures of each kind of interval that was scored."""
    scored = [(f"{one.label}, credible", one.score, one.width) for one in shown]
    if answer.guarantee is not None and answer.guaranteed_widths is not None:
        label = f"{shown[0].label}, {answer.guarantee.method}"
        scored.append((label, answer.guarantee_score, answer.guaranteed_widths.mean))
    for label, score, wide in scored:
        if score is not None:
            yield score_row(label, score, wide)


def notes(shown: list[Shown]) -> Iterator[tuple[str, str]]:
    """What fits noted: who, and what; what several noted is said once."""
    said: dict[str, list[str]] = {}
    for one in shown:
        for note in notes_of(one.posterior):
            said.setdefault(note, []).append(one.label)
    yield from ((", ".join(whose), sentence(note)) for note, whose in said.items())


def observed(answer: PropertyResult) -> Iterator[tuple[str, ...]]:
    """What was simulated, or computed, for each part of the study and of its decision."""
    for part, labels in _parts(answer):
        if isinstance(labels, st.Truth):
            yield part, labels.points.design, f"{len(labels):,}", "none: computed", "", ""
        else:
            yield part, *_counts(labels)
    if (decision := answer.decision) is None:
        return
    all_, begun = decision.posterior.training.observations, len(answer.train)
    if len(all_) > begun:
        yield "refine" if decision.refinement is not None else "search", *_counts(all_[begun:])
    if (certificate := decision.certificate) is not None and certificate.runs:
        design = "uniform" if certificate.claim.measure.startswith("drawn uniformly") else "corners"
        points = getattr(certificate.evidence, "points", ())
        yield "certify", design, f"{len(points):,}" if len(points) else "", f"{certificate.runs:,}", "", ""


def _counts(labels: Observations) -> tuple[str, ...]:
    """The design, and the points, runs, satisfied and undecided ones."""
    sums = (int(getattr(labels, name).sum()) for name in ("trials", "satisfied", "undecided"))
    return labels.points.design, *(f"{count:,}" for count in (len(labels), *sums))


def calibration_offers(answer: PropertyResult) -> list[tuple[str, ...]]:
    """What the runs of a planned calibration were expected to give, and what more would: runs, mean width, seconds.

    The seconds of more runs are at the pace of this calibration, where that is known.
    """
    plan = answer.plan
    if plan is None:
        return []
    made = answer.calibrate
    pace = made.seconds / made.trials.sum() if isinstance(made, Observations) and made.trials.any() else 0.0
    rows = [("this calibration", plan.budget, plan.width), *(("more runs", one.budget, one.width) for one in plan.more)]
    return [(name, f"{runs:,}", f"{wide:.3g}", f"{runs * pace:.3g}" if pace else "") for name, runs, wide in rows]


def budget_text(answer: PropertyResult) -> str:
    """What the seconds of a budget bought, runs or computed probabilities, and why; empty where none were given."""
    told = None if answer.budget is None else answer.budget.get("sentence")
    return sentence(told) if isinstance(told, str) and told else ""


def timings(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """How long each task took; runs that several properties share are listed once."""
    shown: dict[str, float] = {}
    for task, time in seconds.items():
        part = task.split()[0]
        name = f"simulate: {part}" if part in ("train", "test", "calibrate") else task
        shown[name] = max(time, shown.get(name, 0.0))
    return [(name, f"{time:.3g}") for name, time in shown.items()]


def range_text(value: Range | float) -> str:
    """A range of a parameter, or its fixed value."""
    return f"{value.low:g} to {value.high:g}, {value.scale} scale" if isinstance(value, Range) else f"{value:g}"


def sentence(text: str) -> str:
    """The text with a capital at its beginning and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
