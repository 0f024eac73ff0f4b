"""The work behind a part of the paper: which pieces it has, how long those that are missing take, and the doing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from sateen.assess.score import score
from sateen.core.errors import InputError, Interrupted, nearest
from sateen.core.prediction import Claim, Prediction
from sateen.core.progress import SILENT, Progress
from sateen.core.threads import processors
from sateen.files.atomic import replacing
from sateen.paper.forecast import expected
from sateen.paper.making import Maker, make_piece
from sateen.paper.pieces import Piece, Pieces
from sateen.paper.published import DIMENSIONS, TABLE_1
from sateen.paper.questions import Question, questions
from sateen.paper.rows import ALL_METHODS, DimensionRow, Fit, Lift, Row, dimension_row, row
from sateen.paper.tables import (
    Labels,
    Table,
    configuration_tables,
    configurations_latex,
    random_latex,
    random_tables,
)
from sateen.pipeline.folder import ResultFolder

__all__ = ["PRESETS", "Findings", "PaperWork"]

PRESETS: Final = ("fast", "faithful")
_PIECES: Final = "pieces"  # the folder for them, inside that of the tables and figures


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: rows of both tables, what is known of the test sets, and the lift, by configuration."""

    about: Mapping[str, Any]
    rows: tuple[Row, ...]
    labels: Mapping[str, Labels]
    lifts: Mapping[str, Lift]
    dimensions: tuple[DimensionRow, ...]

    @property
    def text(self) -> str:
        """The tables as text."""
        return "\n".join([*self._tried(""), *(table.text() for table in self._tables())])

    @property
    def markdown(self) -> str:
        """The tables in Markdown."""
        return "\n".join([*self._tried(""), *(table.markdown() for table in self._tables())])

    @property
    def latex(self) -> str:
        """The tables as LaTeX."""
        tables = [configurations_latex(self.rows, self.labels)] if self.rows else []
        tables += [random_latex(self.dimensions)] if self.dimensions else []
        return "\n".join([*self._tried("% "), *tables])

    def content(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            **self.about,
            "rows": [each.content() for each in self.rows],
            "test_sets": {part: asdict(own) for part, own in self.labels.items()},
            "lift": {part: own.content() for part, own in self.lifts.items()},
            "random": [each.content() for each in self.dimensions],
        }

    def _tables(self) -> list[Table]:
        found = configuration_tables(self.rows, self.labels, self.lifts) if self.rows else []
        return [*found, *(random_tables(self.dimensions) if self.dimensions else [])]

    def _tried(self, comment: str) -> list[str]:
        if self.about["share"] == 1:
            return []
        return [f"{comment}Tried with a share of {self.about['share']:g} of the points: no figures to compare.\n"]


class PaperWork:
    """The pieces of some parts of the paper in a folder, under a preset, with so many training sets.

    `seeds` is the number of training sets; without it three of a configuration, and one of each random network, whose
    data sets are nine for each number of rates. They are numbered from `first` on. With a `share` below 1 only as
    many of the points are looked at, to try it.
    """

    def __init__(
        self,
        parts: Sequence[str],
        folder: str | FilePath,
        *,
        preset: str = "fast",
        methods: Sequence[str] = ALL_METHODS,
        seeds: int | None = None,
        first: int = 1,
        share: float = 1.0,
        workers: int | None = None,
        progress: Progress = SILENT,
    ) -> None:
        if preset not in PRESETS:
            raise InputError(f"there is no preset {preset!r}; there are {' and '.join(PRESETS)}")
        for method in methods:
            if method not in ALL_METHODS:
                hint = nearest(method, ALL_METHODS) or f"there are {', '.join(ALL_METHODS)}"
                raise InputError(f"the paper has no method {method!r}; {hint}")
        if not parts or not methods or first < 0 or (seeds is not None and seeds < 1):
            raise InputError("there must be at least one part, one method and one training set, numbered from 0 up")
        self.path = FilePath(folder)
        self.questions = questions(parts, share)
        self.methods = tuple(method for method in ALL_METHODS if method in methods)
        self.preset, self.seeds, self.first, self.share = preset, seeds, first, share
        self.parts = tuple(parts)
        self.workers, self.progress = workers, progress
        self.spent: dict[str, float] = {}  # seconds, by what was done when it was run
        self.kept = Pieces(ResultFolder(self.path / _PIECES), preset, workers, progress)

    def numbers(self, question: Question) -> range:
        """The numbers of the training sets of a question."""
        count = self.seeds or (1 if question.part == "random" else 3)
        return range(self.first, self.first + count)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, made or not."""
        return tuple(piece for question in self.questions for piece in self._pieces_of(question))

    def missing(self) -> tuple[Piece, ...]:
        """The pieces that are to be made."""
        return tuple(piece for piece in self.pieces if not piece.there)

    def forecast(self) -> dict[str, float]:
        """About how many seconds what is missing takes, by what is done."""
        found: dict[str, float] = {}
        for piece in self.missing():
            name = f"{_NAMES[piece.kind]} of {piece.method}" if piece.method else _NAMES[piece.kind]
            found[name] = found.get(name, 0.0) + self._expected(piece)
        return found

    def run(self) -> Findings:
        """Make what is missing, and say what was found."""
        folder = self.kept.folder
        with folder.held():
            try:
                maker = self._maker()
                self.spent = {_NAMES[kind]: own for kind, own in maker.make(self.missing()).items()}
                maker.clear(self.pieces)
            except KeyboardInterrupt as stop:
                said = f"{stop}\n" if isinstance(stop, Interrupted) else ""
                raise Interrupted(f"{said}what is finished is in {self.path}; run the same again to go on") from None
            return self._found()

    def write(self, findings: Findings) -> list[FilePath]:
        """Write the tables into the folder; the paths of the files."""
        forms = {".txt": findings.text, ".md": findings.markdown, ".tex": findings.latex}
        texts = {self.path / f"table{suffix}": text for suffix, text in forms.items()}
        for file, text in texts.items():
            with self.kept.folder.writing(file), replacing(file) as stream:
                stream.write(text.encode())
        numbers = self.path / "table.json"
        self.kept.folder.write_json(numbers, findings.content())
        return [*texts, numbers]

    def _pieces_of(self, question: Question) -> Iterator[Piece]:
        numbers = self.numbers(question)
        yield from (self.kept.observed(question, "train", number) for number in numbers)
        yield self.kept.observed(question, "test")
        yield self.kept.truth(question)
        for function in question.formulas:
            for method in self.methods:
                for number in numbers:
                    keep = self._lifted(question) and method == "default" and number == self.first
                    yield self.kept.fit(question, function, method, number, keep=keep)
            if self._lifted(question):
                yield from self.kept.lift(question, function, self.first)

    def _lifted(self, question: Question) -> bool:
        return question.part != "random" and "default" in self.methods

    def _expected(self, piece: Piece) -> float:
        return expected(piece, self.preset, self.workers)

    def _maker(self) -> Maker:
        folder, workers = self.kept.folder, self.workers or processors()
        asked = (self.parts, self.path, self.preset, self.methods, self.seeds, self.first, self.share)
        return Maker(folder, workers, self._expected, self._tell, _make_elsewhere, lambda piece: (asked, piece.label))

    def _tell(self, text: str) -> None:
        self.progress.start(text, 1, "piece")
        try:
            self.progress.note(text)
            self.progress.advance(1)
        finally:
            self.progress.finish()

    def _found(self) -> Findings:
        rows: list[Row] = []
        labels: dict[str, Labels] = {}
        lifts: dict[str, Lift] = {}
        for question in (each for each in self.questions if each.part != "random"):
            for method in self.methods:
                rows.append(row(question.part, method, *self._fits([question], method)))
            labels[question.part] = self._labels(question)
            if self._lifted(question):
                lifts[question.part] = self.kept.found_lift(question, question.name, self.first)
        return Findings(self._about(), tuple(rows), labels, lifts, tuple(self._by_dimension()))

    def _by_dimension(self) -> Iterator[DimensionRow]:
        for rates in DIMENSIONS:
            own = [each for each in self.questions if each.part == "random" and each.dimension == rates]
            for method in self.methods if own else ():
                yield dimension_row(rates, method, *self._fits(own, method))

    def _fits(self, asked: Sequence[Question], method: str) -> tuple[list[Fit], str]:
        """The fits of a method to all functions of the questions, and why it refused, if it did."""
        found = [
            self.kept.found_fit(question, function, method, number)
            for question in asked
            for function in question.formulas
            for number in self.numbers(question)
        ]
        return [each for each in found if isinstance(each, Fit)], next((e for e in found if isinstance(e, str)), "")

    def _labels(self, question: Question) -> Labels:
        (function,) = question.formulas
        test, f = self.kept.found_test(question, function), self.kept.found_truth(question, function)
        itself = score(
            Prediction(test.points, f, 0.0 * f, f, f, 0.95, Claim("probability", "credible", 0.95, "")), test
        )
        noise = float(np.sqrt(np.mean(f * (1 - f) / test.trials)))
        error = 0.0 if question.truth_runs is None else float(np.sqrt(np.mean(f * (1 - f) / question.truth_runs)))
        of_f = itself.accuracy, itself.wilson_accuracy
        widths = itself.smc_width, TABLE_1[question.part].test_width
        return Labels(question.part, noise, *of_f, *widths, question.truth_runs, error)

    def _about(self) -> dict[str, Any]:
        counts = {question.part: len(self.numbers(question)) for question in self.questions}
        return {
            "preset": self.preset,
            "methods": list(self.methods),
            "training_sets": counts,
            "first": self.first,
            "share": self.share,
        }


_NAMES: Final = {
    "data": "runs for data sets",
    "truth": "the truth",
    "fit": "fits",
    "plan": "plans of calibrations",
    "held-out": "runs for calibrations",
    "lift": "calibrations",
}


def _make_elsewhere(asked: tuple[Any, ...], label: str) -> None:
    """Make a piece of the work that another process was asked for."""
    folder, pieces = _asked_for(asked)
    make_piece(folder, pieces[label])


@cache
def _asked_for(asked: tuple[Any, ...]) -> tuple[ResultFolder, dict[str, Piece]]:
    parts, path, preset, methods, seeds, first, share = asked
    named: dict[str, Any] = {"preset": preset, "methods": methods, "seeds": seeds, "first": first, "share": share}
    work = PaperWork(parts, path, **named, workers=1)
    return work.kept.folder, {piece.label: piece for piece in work.pieces}
