"""What a study asks, as the command `inspect` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sateen.cli.text import number
from sateen.core.text import percent

if TYPE_CHECKING:
    from sateen.study.study import Study

__all__ = ["study_rows"]


def study_rows(study: Study) -> Iterator[tuple[str, str]]:
    """What a study asks, a thing on each line."""
    yield "study", f"{study.name}, seed {study.seed}"
    if study.address:
        yield "callable", study.address
    for name, value in study.space.parameters:
        if isinstance(value, float):
            yield name, f"= {number(value)}"
        else:
            yield name, f"in {value}" + " on a log scale" * (value.scale == "log")
    for name, formula in study.properties.items():
        cut = "" if formula is None or formula.end is None else f", read up to {number(formula.end)}"
        yield name, "what the callable returns" if formula is None else f"{formula}{cut}"
    for part, design in (("train", study.train), ("test", study.test)):
        if design is not None:
            each = " per axis" if design.design == "grid" else ""
            yield part, f"{design.points:,} points{each} ({design.design}) with {design.runs:,} runs each"
    yield "learn", ", ".join(study.methods)
    if study.calibration is not None and study.promise is not None:
        asked, promise = study.calibration, study.promise
        fixed = f"{asked.points or 0:,} points with {asked.runs or 0:,} runs each"
        spent = f"{asked.budget:,} runs" if asked.budget else f"for the width {asked.width}" if asked.width else fixed
        sure = "on average" if promise.confidence is None else f"with confidence {percent(promise.confidence)}"
        yield "calibrate", spent
        yield "guarantee", f"{promise.method} of {promise.of}, {percent(promise.level)} {sure}"
    yield "result", str(study.folder)
