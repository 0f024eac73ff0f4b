"""The figures of the paper from the pieces that were made: curves, maps, and the random networks by dimension."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

import numpy as np

from sateen.paper.published import METHODS, RANDOM
from sateen.paper.reproduction import Findings, Reproduction
from sateen.paper.rows import Fit, Row, label
from sateen.paper.tasks import QuestionTasks

if TYPE_CHECKING:
    from sateen.plot.style import Figure

__all__ = ["draw"]

_SHOWN: Final = 30  # test points, equally spaced
_PANELS: Final = ("accuracy", "rmse", "uncertainty", "hours")
_HOUR: Final = 3600.0


def draw(reproduction: Reproduction, findings: Findings, suffix: str = ".svg") -> list[FilePath]:
    """Draw every figure of the parts into the folder; the paths of the files."""
    drawn: dict[str, Figure] = {}
    for tasks in reproduction.by_question.values():
        if tasks.question.part != "random" and tasks.question.dimension <= 2:
            figure = _learned(tasks, reproduction.first)
            if figure is not None:
                drawn[f"paper-{tasks.question.part}"] = figure
    if findings.dimensions:
        drawn["paper-random"] = _by_dimension(findings.dimensions)
    return reproduction.save(drawn, suffix)


def _learned(tasks: QuestionTasks, number: int) -> Figure | None:
    """The figure of a configuration with one or two parameters; None if no learner has learned it."""
    from sateen.plot.paper import curves, maps

    fits = [task.value() for key, task in tasks.fits.items() if key[2] == number]
    predictions = {label(fit.learner): fit.prediction for fit in fits if isinstance(fit, Fit) and fit.prediction}
    if not predictions:
        return None
    ((function, test),) = tasks.test.value().items()
    truth = tasks.truth.value()[function]
    title = f"Configuration ({tasks.question.part}), training set {number}"
    if tasks.question.dimension == 2:
        return maps(title, predictions, test.points, truth)
    chosen = np.unique(np.linspace(0, len(test) - 1, min(_SHOWN, len(test))).round().astype(int))
    return curves(title, predictions, test[chosen], test.points, truth)


def _by_dimension(rows: tuple[Row, ...]) -> Figure:
    from sateen.plot.paper import scores_by_dimension

    ours: dict[str, dict[str, dict[int, tuple[float, float | None]]]] = {panel: {} for panel in _PANELS}
    reference: dict[int, tuple[float, float | None]] = {}
    for row in (each for each in rows if each.figures):
        for panel in _PANELS:
            name, scale = ("seconds", 1 / _HOUR) if panel == "hours" else (panel, 1.0)
            half = row.halves[name]
            value = scale * row.figures[name], None if half is None else scale * half
            ours[panel].setdefault(label(row.learner), {})[int(row.part)] = value
        reference.setdefault(int(row.part), (row.figures["smc_width"], None))
    return scores_by_dimension(ours, _published(), reference=reference)


def _published() -> Mapping[str, Mapping[str, Mapping[int, tuple[float, None]]]]:
    """The paper's figures by panel and method, where it has any."""
    published: dict[str, dict[str, dict[int, tuple[float, None]]]] = {}
    for panel in _PANELS:
        for method in METHODS:
            series = {rates: getattr(figures, panel) for rates, figures in RANDOM[method].items()}
            known = {rates: (float(value), None) for rates, value in series.items() if value is not None}
            if known:
                published.setdefault(panel, {})[label(method)] = known
    return published
