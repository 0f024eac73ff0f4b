"""The figures of the paper from the pieces that were made: curves, maps, and the random networks by dimension."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from sateen.core.prediction import Prediction
from sateen.paper.published import METHODS, RANDOM
from sateen.paper.questions import Question
from sateen.paper.reproduction import Findings, PaperWork
from sateen.paper.rows import LABELS, DimensionRow

__all__ = ["draw"]

_SHOWN: Final = 30  # test points, equally spaced
_PANELS: Final = ("accuracy", "rmse", "uncertainty", "hours")
_HOUR: Final = 3600.0


def draw(work: PaperWork, findings: Findings, suffix: str = ".svg") -> list[FilePath]:
    """Draw every figure of the work's parts into its folder; the paths of the files."""
    from sateen.plot.figures import save

    drawn: dict[str, Any] = {}
    for question in work.questions:
        if question.part != "random" and question.dimension <= 2:
            figure = _learned(work, question)
            if figure is not None:
                drawn[f"paper-{question.part}"] = figure
    if findings.dimensions:
        drawn["paper-random"] = _by_dimension(findings.dimensions)
    files = [work.path / f"{name}{suffix}" for name in drawn]
    for file, figure in zip(files, drawn.values(), strict=True):
        with work.kept.folder.writing(file):
            save(figure, file)
    return files


def _learned(work: PaperWork, question: Question) -> Any:
    """The figure of a configuration with one or two parameters; None if no method has learned it."""
    from sateen.plot.paper import curves, maps

    (function,) = question.formulas
    predictions: dict[str, Prediction] = {}
    for method in work.methods:
        found = work.kept.found_prediction(question, function, method, work.first)
        if found is not None:
            predictions[LABELS[method]] = found
    if not predictions:
        return None
    test, truth = work.kept.found_test(question, function), work.kept.found_truth(question, function)
    title = f"Configuration ({question.part}), training set {work.first}"
    if question.dimension == 2:
        return maps(title, predictions, test.points, truth)
    chosen = np.unique(np.linspace(0, len(test) - 1, min(_SHOWN, len(test))).round().astype(int))
    return curves(title, predictions, test[chosen], test.points, truth)


def _by_dimension(rows: tuple[DimensionRow, ...]) -> Any:
    from sateen.plot.paper import scores_by_dimension

    found: dict[str, dict[str, dict[int, tuple[float, float | None]]]] = {panel: {} for panel in _PANELS}
    reference: dict[int, tuple[float, float | None]] = {}
    for row in (each for each in rows if each.figures):
        for panel in _PANELS:
            own = row.figures["seconds" if panel == "hours" else panel]
            scale = 1 / _HOUR if panel == "hours" else 1.0
            value = scale * own.mean, None if own.half is None else scale * own.half
            found[panel].setdefault(LABELS[row.method], {})[row.rates] = value
        reference.setdefault(row.rates, (row.figures["smc_width"].mean, None))
    return scores_by_dimension(found, _published(), reference=reference)


def _published() -> Mapping[str, Mapping[str, Mapping[int, tuple[float, None]]]]:
    """The paper's figures by panel and method, where it has any."""
    told: dict[str, dict[str, dict[int, tuple[float, None]]]] = {}
    for panel in _PANELS:
        for method in METHODS:
            series = {rates: getattr(own, panel) for rates, own in RANDOM[method].items()}
            known = {rates: (float(value), None) for rates, value in series.items() if value is not None}
            if known:
                told.setdefault(panel, {})[LABELS[method]] = known
    return told
