"""The tables: ours next to the paper's, as text, Markdown and LaTeX. Pure functions from rows to lines.

Errors are in hundredths and shares in percent, as the paper prints them. A star marks a figure that is worse than the
paper's, and a dash what was refused or not published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.paper.presets import FAST, PRESETS, label, method_of, preset_of
from sateen.paper.published import DIMENSIONS, RANDOM_SOURCE, Figures
from sateen.paper.rows import Lift, Row

FloatArray: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = tuple[str, ...]
Column: TypeAlias = tuple[str, int, int]  # the name of a figure, its factor, and its digits
_DASH: Final = "-"
_HEAD: Final[tuple[Cells, Cells]] = (
    ("", "", "RMSE", "", "Acc", "", "Unc", "", "Wilson", "against f", "", "", "seconds", ""),
    ("", "", "ours", "paper", "ours", "paper", "ours", "paper", "Acc", "RMSE", "cover", "nearly", "train", "predict"),
)
_RANDOM_HEAD: Final[tuple[Cells, Cells]] = (
    ("", "", "RMSE", "", "Acc", "", "Unc", "", "", "Wilson", "against f", "", "", "training", ""),
    (*_HEAD[1][:8], "SMC", *_HEAD[1][8:12], "ours, s", "paper, h"),
)
_COMPARED: Final[tuple[Column, ...]] = (("rmse", 100, 2), ("accuracy", 100, 2), ("uncertainty", 1, 3))
_COLUMNS: Final[tuple[Column, ...]] = (
    ("wilson_accuracy", 100, 2),
    ("rmse_truth", 100, 2),
    ("coverage", 100, 1),
    ("coverage_slack", 100, 1),
)
_RANDOM_COMPARED: Final[tuple[Column, ...]] = (("rmse", 100, 2), ("accuracy", 100, 1), ("uncertainty", 1, 3))
_RANDOM_COLUMNS: Final[tuple[Column, ...]] = (("smc_width", 1, 3), ("wilson_accuracy", 100, 1), *_COLUMNS[1:])
_NEARLY: Final = (
    "Nearly: an interval that misses f by 0.0005 counts too, for a share of runs may be 0 where f is only close to it."
)
_UNITS: Final = "RMSE in hundredths, Acc and coverage in percent"
_LARGEST_EP: Final = 4  # rates for which the paper's EP-GP was run
_WORSE: Final = "* worse than the paper's, in the digits that it prints."


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of a test set: the noise of its labels, which no error goes below; the accuracies that f itself
    would have; the mean width of the intervals of its frequencies, ours and published; and the runs and the standard
    error behind the truth, None and 0 if exact.
    """

    part: str
    noise: float
    accuracy: float
    wilson_accuracy: float
    width: float
    published_width: float | None
    truth_runs: int | None
    truth_error: float


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of cells under one or two lines of heads, a caption above and notes below; `left` columns are words."""

    heads: tuple[Cells, ...]
    cells: tuple[Cells, ...]
    notes: tuple[str, ...] = ()
    caption: str = ""
    left: int = 2

    def text(self) -> str:
        """The table in columns."""
        lines = [self.caption] if self.caption else []
        lines += _aligned([*self.heads, *self.cells], left=self.left)
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The table in Markdown, where a head is one line: that of a group goes before those of its columns."""
        head, group = list(self.heads[-1]), ""
        if len(self.heads) > 1:
            for at, (over, under) in enumerate(zip(*self.heads, strict=True)):
                group = over or group
                head[at] = f"{group} {under}".strip()
        sides = ["---" if at < self.left else "--:" for at in range(len(head))]
        lines = [f"{self.caption}\n"] if self.caption else []
        lines += [f"| {' | '.join(line)} |" for line in (head, sides, *self.cells)]
        lines += ["", *(f"- {note.replace('*', '`*`', 1)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """The table as a `tabular` for booktabs, with a rule above every line that begins a part; without notes."""
        starts = [0, *(at for at, name in enumerate(self.heads[0]) if name), len(self.heads[0])]
        groups = {self.heads[0][start]: stop - start for start, stop in pairwise(starts)}
        columns = "|".join(("r" if name else "l") * count for name, count in groups.items())
        spans = [f"\\multicolumn{{{count}}}{{c}}{{{name}}}" for name, count in groups.items() if name]
        top = " & ".join([""] * groups[""] + spans).replace("against f", "against $f$")
        lines = [f"\\begin{{tabular}}{{{columns}}}", r"    \toprule", rf"    {top} \\", _latex_line(self.heads[1])]
        for cells in self.cells:
            lines += [r"    \midrule", _latex_line(cells)] if cells[0] else [_latex_line(cells)]
        return "\n".join([*lines, r"    \bottomrule", r"\end{tabular}"]) + "\n"


def configuration_tables(
    rows: Sequence[Row], labels: Mapping[str, Labels], lifts: Mapping[str, Lift], variant: str = "paper-data"
) -> list[Table]:
    """The table of the configurations, with notes below it, and that of the lift if it was calibrated."""
    parts = list(dict.fromkeys(row.part for row in rows))
    cells = tuple(cell for part in parts for cell in _part(part, rows, labels.get(part)))
    notes = (*_reading(rows, variant), *_notes(rows, labels))
    return [Table(_HEAD, cells, notes), *_preset_tables(rows), *_lift_tables(lifts)]


def random_tables(rows: Sequence[Row]) -> list[Table]:
    """The table of the random networks by number of rates."""
    fits = max((row.fits for row in rows), default=0)
    notes = [
        f"By number of rates. {_UNITS}; means over up to {fits} fits, ± the half-width of their 95 % intervals.",
        "SMC is the mean width of the 95 % intervals of the test frequencies.",
        *_best(rows),
        _NEARLY,
        *_source(rows),
    ]
    notes += [_WORSE] if any(row.worse for row in rows) else []
    notes += _refusals(rows)
    return [Table(_RANDOM_HEAD, tuple(_by_rates(rows)), tuple(notes)), *_preset_tables(rows)]


def curves_table(caption: str, runs: Sequence[int], curves: Mapping[str, Mapping[str, FloatArray]]) -> Table:
    """Means over trainings by learner and name, a column for each number of runs per point."""
    head = ("", "", *(f"{each:,} run{'s' * (each != 1)}" for each in runs))
    cells = tuple(
        ("" if place else learner, name, *(f"{mean:.4f}" for mean in rows.mean(axis=1)))
        for learner, by_name in curves.items()
        for place, (name, rows) in enumerate(by_name.items())
    )
    return Table((head,), cells, caption=caption)


def _part(part: str, rows: Sequence[Row], labels: Labels | None) -> Iterator[Cells]:
    """The lines of a configuration: its learners, then what is known of its test set."""
    for place, row in enumerate(row for row in rows if row.part == part):
        figures = _figures(row, _COMPARED, _COLUMNS)
        yield ("" if place else part, _heading(row), *figures, _seconds(row.figures.get("evaluation")))
    if labels is not None:
        noise, accuracy = _number(labels.noise, 100, 2), _number(labels.accuracy, 100, 2)
        width, published = f"{labels.width:.4f}", _number(labels.published_width, 1, 3)
        wilson = _number(labels.wilson_accuracy, 100, 2)
        yield ("", "test set", noise, "", accuracy, "", width, published, wilson, *[""] * 5)


def _by_rates(rows: Sequence[Row]) -> Iterator[Cells]:
    last = ""
    for row in rows:
        figures = _figures(row, _RANDOM_COMPARED, _RANDOM_COLUMNS)
        yield ("" if row.part == last else row.part, _heading(row), *figures, _number(row.published.hours, 1, 1))
        last = row.part


def _figures(row: Row, compared: Sequence[Column], others: Sequence[Column]) -> Iterator[str]:
    """Figures next to the published ones, those that the paper does not have, and the time of training."""
    for name, factor, digits in compared:
        text, half = _number(row.figures.get(name), factor, digits), row.halves.get(name)
        text += f" ± {_number(half, factor, digits)}" if half is not None else ""
        yield f"{text}*" if name in row.worse else text
        yield _number(getattr(row.published, name), factor, digits)
    for name, factor, digits in others:
        yield _number(row.figures.get(name), factor, digits)
    yield _seconds(row.figures.get("seconds"))


def _notes(rows: Sequence[Row], labels: Mapping[str, Labels]) -> Iterator[str]:
    fits = sorted({row.fits for row in rows if row.fits})
    over = " to ".join(dict.fromkeys(map(str, (fits[0], fits[-1])))) if fits else "0"
    sets = "training set" if over == "1" else "training sets"
    yield f"{_UNITS}; means over {over} {sets}, the shortest of the times."
    yield from _best(rows)
    yield _NEARLY
    yield "Training times are CPU seconds; the first network of a process is compiled, which takes some of them."
    yield "For a test set, RMSE shows the noise of its labels, and Unc the mean width of their intervals;"
    yield "Acc and Wilson Acc show what f itself would get, as an interval without width."
    if any(row.worse for row in rows):
        yield _WORSE
    for each in labels.values():
        if each.truth_runs is not None:
            about = f"is the share of {each.truth_runs:,} runs, with a standard error of {100 * each.truth_error:.2f}"
            yield f"{each.part}: f {about} in the mean square, which adds to errors and takes from coverage."
    yield from _refusals(rows)


def _reading(rows: Sequence[Row], variant: str) -> Iterator[str]:
    """Which variant the configurations are read in, and what the published figures are of."""
    if variant == "paper-data":
        yield "Variant paper-data: the properties that the published figures come from."
        return
    others = ", ".join(dict.fromkeys(row.part for row in rows if row.published == Figures()))
    yield f"Variant {variant}: the properties as the paper prints them; the published figures are of paper-data."
    if others:
        yield f"For {others} these are other properties, so nothing is compared; a, b and c have the same in both."


def _source(rows: Sequence[Row]) -> Iterator[str]:
    """Where the paper's figures for random networks come from, and why some are missing."""
    if any(row.published != Figures() for row in rows):
        yield "The paper's are of its own networks. No text has the numbers of its figure; they are the means over nine"
        yield f"data sets of the arrays that the authors draw ({RANDOM_SOURCE}), with hours on an A100."
    if any(row.learner == "ep-gp" and int(row.part) > _LARGEST_EP for row in rows):
        yield f"The paper's EP-GP could not be run for more than {_LARGEST_EP} rates."
    sizes = dict.fromkeys(row.part for row in rows if int(row.part) not in DIMENSIONS)
    if sizes:
        yield f"The paper has no networks with {' or '.join(sizes)} rates."


def _best(rows: Sequence[Row]) -> Iterator[str]:
    compared = [row.learner for row in rows if row.published != Figures()]
    names = dict.fromkeys(label(learner) for learner in compared if not method_of(learner))
    if names:
        yield f"For {', '.join(names)} the paper's figure is the best of its three methods, each figure by itself."


def _refusals(rows: Sequence[Row]) -> Iterator[str]:
    return (f"{row.part}, {label(row.learner)}: {row.refused}" for row in rows if row.refused)


def _preset_tables(rows: Sequence[Row]) -> list[Table]:
    """The paper's methods side by side, as published and under each preset, if there is any next to ours."""
    known = {preset_of(row.learner) for row in rows if method_of(row.learner)}
    presets = [preset for preset in reversed(PRESETS) if preset in known]
    if presets in ([], [FAST]):
        return []
    names = {"as-run": "as run", FAST: "ours"}
    under = ("paper", *(names.get(preset, preset) for preset in presets))
    groups = [name for group in ("RMSE", "Acc", "Unc") for name in (group, *[""] * len(presets))]
    heads = ("", "", *groups, "seconds", *[""] * (len(presets) - 1)), ("", "", *under * 3, *under[1:])
    cells, last = [], ""
    for part, method in dict.fromkeys((row.part, method_of(row.learner)) for row in rows if method_of(row.learner)):
        found = {preset_of(row.learner): row for row in rows if (row.part, method_of(row.learner)) == (part, method)}
        published, line = next(iter(found.values())).published, list[str]()
        figures = [found[preset].figures if preset in found else {} for preset in presets]
        for name, factor, digits in _COMPARED:
            values = [getattr(published, name), *(each.get(name) for each in figures)]
            line += [_number(value, factor, digits) for value in values]
        line += [_seconds(each.get("seconds")) for each in figures]
        cells.append(("" if part == last else part, label(method or ""), *line))
        last = part
    return [Table(heads, tuple(cells), caption="The paper's methods: as published, and under each preset:")]


def _lift_tables(lifts: Mapping[str, Lift]) -> list[Table]:
    """The table of the lift, if it was calibrated."""
    if not lifts:
        return []
    first = next(iter(lifts.values()))
    caption = (
        f"The lift of sateen, {len(first.coverages)} calibrations each, that promise {100 * first.level:g} % coverage "
        f"with confidence {100 * first.confidence:g} %:"
    )
    head = ("", "points x runs", "width", "coverage", "least", "below", "p")
    cells = tuple(
        (
            name,
            f"{lift.points} x {lift.runs}",
            f"{lift.width:.4f}",
            f"{100 * lift.coverage:.1f}",
            f"{100 * min(lift.coverages):.1f}",
            f"{lift.failures} of {len(lift.coverages)}",
            f"{lift.p:.2g}",
        )
        for name, lift in lifts.items()
    )
    return [Table((head,), cells, caption=caption, left=1)]


def _heading(row: Row) -> str:
    return f"sateen ({', '.join(row.kinds)})" if row.learner == "default" and row.kinds else label(row.learner)


def _number(value: float | None, factor: float, digits: int) -> str:
    return _DASH if value is None else f"{factor * value:.{digits}f}"


def _seconds(value: float | None) -> str:
    return _DASH if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _aligned(rows: Sequence[Cells], left: int) -> list[str]:
    """The rows as lines of columns, the first `left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append("  ".join(c.ljust(w) if at < left else c.rjust(w) for at, (c, w) in enumerate(cells)).rstrip())
    return lines


def _latex_line(cells: Cells) -> str:
    """A line of a `tabular`; figures have the marks * and ±, and names of learners may have underscores."""
    marks = {"*": r"\rlap{$^*$}", "±": r"$\pm$", "_": r"\_"}
    words = ["--" if cell == _DASH else "".join(marks.get(letter, letter) for letter in cell) for cell in cells]
    return rf"    {' & '.join(words)} \\"
