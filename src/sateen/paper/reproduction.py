"""A reproduction of parts of the paper: its tasks, how long the pending ones take, and the tables that come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import sateen as st
from sateen.paper.networks import Found, search_task
from sateen.paper.presets import ALL_LEARNERS, FAST, label, learners_under
from sateen.paper.published import METHODS, RANDOM, TABLE_1
from sateen.paper.questions import Question, questions
from sateen.paper.rows import Fit, Lift, Row, row
from sateen.paper.tables import Labels, Table, configuration_tables, random_tables
from sateen.paper.tasks import QuestionTasks, question_tasks
from sateen.pipeline import SILENT, Progress, find_code, processors, replacing, write_text
from sateen.pipeline.elsewhere import Elsewhere
from sateen.pipeline.folder import ResultFolder, write_json
from sateen.pipeline.tasks import Pipeline, Rebuild, Task

if TYPE_CHECKING:
    from sateen.plot.style import Figure

_TASKS: Final = "pieces"  # the folder for the files of tasks, inside that of the tables and figures
_SHOWN: Final = 30  # test points in a figure, equally spaced
_PANELS: Final = ("accuracy", "rmse", "uncertainty", "hours")
_HOUR: Final = 3600.0


class PaperRun(ABC):
    """Tasks of the paper, whose files are in a folder next to its tables and figures; `options` say what they are."""

    def __init__(
        self,
        folder: str | FilePath,
        workers: int | None,
        progress: Progress,
        pool: st.Pool | None = None,
        **options: Hashable,
    ) -> None:
        self.options = options
        self.path = FilePath(folder)
        self.folder = ResultFolder(self.path / _TASKS)
        self.workers, self.progress, self.pool = workers, progress, pool
        self.cores = workers or processors()
        self.spent: Mapping[str, float] = {}  # seconds of the last run, by what was done

    @property
    @abstractmethod
    def stages(self) -> Mapping[str, Sequence[Task[object]]]:
        """All tasks by what is done, in the order in which they run."""

    @cached_property
    def pipeline(self) -> Pipeline:
        """All tasks, finished or pending; another process gets the same from the same options."""
        rebuild = Rebuild(_rebuilt, (type(self), self.path, tuple(self.options.items())))
        tasks = (task for some in self.stages.values() for task in some)
        return Pipeline(self.folder, tuple(map(self._portable, tasks)), rebuild)

    @classmethod
    def task_in(cls, folder: str, options: tuple[tuple[str, Hashable], ...], name: str) -> Task[object]:
        """One task in a folder of a worker."""
        asked: dict[str, Any] = dict(options)
        codes = tuple(find_code(each, FilePath()).digest for each in asked.get("learners", ()) if ":" in each)
        return _on_worker(cls, folder, options, codes)[name]

    def _portable(self, task: Task[object]) -> Task[object]:
        """The task, with how a worker elsewhere makes it."""
        if not task.parallel:
            return task
        address = f"{type(self).__module__}:{type(self).__name__}.task_in"
        return replace(task, elsewhere=Elsewhere(address, (tuple(self.options.items()), task.name)))

    def forecast(self) -> dict[str, float]:
        """About how many seconds the pending tasks take, by what is done."""
        pending = {stage: [task for task in some if not task.finished] for stage, some in self.stages.items()}
        return {stage: sum(task.seconds for task in some) for stage, some in pending.items() if some}

    @property
    def at_once(self) -> int | None:
        """How many pending tasks are each for one worker; None if all that is pending are runs, which many share."""
        return sum(task.parallel for task in self.pipeline.pending()) or None

    def compute(self) -> None:
        """Compute what is pending; the folder must be held. Half-written tables and figures of a killed run go."""
        for part in self.path.glob(".*.part"):
            part.unlink(missing_ok=True)
        watcher = self.progress if self.pipeline.pending() else SILENT
        self.spent = self.pipeline.run(workers=self.workers, progress=watcher, pool=self.pool).stage_seconds

    def save(self, figures: Mapping[str, Figure], suffix: str) -> list[FilePath]:
        """Write figures by name into the folder; the paths of the files."""
        from sateen.plot.figures import save

        files = {self.path / f"{name}{suffix}": figure for name, figure in figures.items()}
        for file, figure in files.items():
            with self.folder.writing(file), replacing(file) as stream:
                save(figure, file, stream)
        return list(files)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: rows of both tables, what is known of the test sets, and the lift, by configuration."""

    about: Mapping[str, object]
    rows: tuple[Row, ...]
    labels: Mapping[str, Labels]
    lifts: Mapping[str, Lift]
    dimensions: tuple[Row, ...]

    @property
    def text(self) -> str:
        """The tables as text."""
        return "\n".join([*self._tried(), *(table.text() for table in self._tables())])

    @property
    def markdown(self) -> str:
        """The tables in Markdown."""
        return "\n".join([*self._tried(), *(table.markdown() for table in self._tables())])

    @property
    def latex(self) -> str:
        """The tables of figures as LaTeX."""
        tables = [table.latex() for table in self._tables() if not table.caption]
        return "\n".join([*(f"% {line}" for line in self._tried()), *tables])

    def content(self) -> dict[str, object]:
        """All of it as plain data."""
        return {
            **self.about,
            "rows": [each.content() for each in self.rows],
            "test_sets": {part: asdict(labels) for part, labels in self.labels.items()},
            "lift": {part: lift.content() for part, lift in self.lifts.items()},
            "random": [each.content() for each in self.dimensions],
        }

    def _tables(self) -> list[Table]:
        variant = str(self.about["variant"])
        tables = configuration_tables(self.rows, self.labels, self.lifts, variant) if self.rows else []
        return [*tables, *(random_tables(self.dimensions) if self.dimensions else [])]

    def _tried(self) -> list[str]:
        share = self.about["share"]
        return [] if share == 1 else [f"Tried with a share of {share:g} of the points: no figures to compare.\n"]


class Reproduction(PaperRun):
    """Some parts of the paper in a folder, under one or more presets, for some learners, with this many training sets.

    A learner is one of the paper's, "sparse-vi", "default", or any that `st.learn` knows by name, such as
    "my_package:MyLearner". `seeds` is the number of training sets; without it three of a configuration, and one of each
    random network, whose data sets are nine for each number of rates. They are numbered from `first` on. With a `share`
    below 1 only as many of the points are looked at, to try it. The `variant` is "paper-data", what the published
    figures come from, or "as-stated", the properties as the paper prints them; where both are the same, so are all
    tasks. With `finished` nothing is computed: the tables have what the folder has.
    """

    def __init__(
        self,
        parts: Sequence[str],
        folder: str | FilePath,
        *,
        preset: str | Sequence[str] = FAST,
        learners: Sequence[str] = ALL_LEARNERS,
        seeds: int | None = None,
        first: int = 1,
        share: float = 1.0,
        variant: str = "paper-data",
        finished: bool = False,
        workers: int | None = None,
        progress: Progress = SILENT,
        pool: st.Pool | None = None,
    ) -> None:
        presets = (preset,) if isinstance(preset, str) else tuple(preset)
        if not parts or not learners or not presets or first < 0 or (seeds is not None and seeds < 1):
            least = "one part, one preset, one learner and one training set, numbered from 0 up"
            raise st.InputError(f"there must be at least {least}")
        others = dict.fromkeys(learner for learner in learners if learner not in ALL_LEARNERS)
        for learner in others:
            st.make_learner(learner)  # an unknown one is refused now
        asked_for = (*(learner for learner in ALL_LEARNERS if learner in learners), *others)
        self.learners = learners_under(presets, asked_for)
        self.presets, self.seeds, self.first, self.share, self.variant = presets, seeds, first, share, variant
        asked = {"parts": tuple(parts), "preset": presets, "seeds": seeds, "first": first, "share": share}
        super().__init__(folder, workers, progress, pool, learners=asked_for, variant=variant, **asked)
        self.questions, self.finished = questions(parts, share, variant=variant), finished

    def numbers(self, question: Question) -> range:
        """The numbers of the training sets of a question."""
        count = self.seeds or (1 if question.part == "random" else 3)
        return range(self.first, self.first + count)

    @cached_property
    def searches(self) -> Mapping[int, Task[Found]]:
        """The searches for networks, by their number of rates, where they are not known."""
        sizes = dict.fromkeys(question.dimension for question in self.questions if question.model is None)
        return {rates: search_task(self.folder, rates, self.cores) for rates in sizes}

    @cached_property
    def by_question(self) -> Mapping[str, QuestionTasks]:
        """The tasks of each question."""
        every = {
            question.name: question_tasks(
                self.folder,
                question,
                self.numbers(question),
                self.learners,
                self.cores,
                self.searches[question.dimension] if question.model is None else None,
            )
            for question in self.questions
        }
        if not self.finished:
            return every
        some = {name: tasks for name, each in every.items() if (tasks := each.finished()) is not None}
        if not some:
            raise st.InputError(f"no fit of these parts and learners is finished in {self.path}; compute one first")
        return some

    @cached_property
    def stages(self) -> Mapping[str, Sequence[Task[object]]]:
        """All tasks by what is done, in the order in which they run.

        First come the searches for networks, then all data and truths, each computed by all processors; then the fits,
        and the plans of calibrations, side by side; then the runs for calibrations, and these.
        """
        every = self.by_question.values()
        fits = {
            f"fits of {learner}": [task for each in every for key, task in each.fits.items() if key[1] == learner]
            for learner in self.learners
        }
        return {
            "search for networks": [task for task in self.searches.values() if task.finished or not self.finished],
            "runs for data sets": [task for each in every for task in (*each.train, each.test)],
            "the truth": [each.truth for each in every],
            **fits,
            "plans of calibrations": [each.plan for each in every if each.plan],
            "runs for calibrations": [each.held_out for each in every if each.held_out],
            "calibrations": [each.lift for each in every if each.lift],
        }

    def run(self) -> Findings:
        """Compute what is pending, and collect the findings."""
        with self.folder.held():
            self.compute()
            return self._findings()

    def write(self, findings: Findings) -> list[FilePath]:
        """Write the tables into the folder; the paths of the files."""
        forms = {".txt": findings.text, ".md": findings.markdown, ".tex": findings.latex}
        texts = {self.path / f"table{suffix}": text for suffix, text in forms.items()}
        for file, text in texts.items():
            with self.folder.writing(file):
                write_text(file, text)
        numbers = self.path / "table.json"
        with self.folder.writing(numbers):
            write_json(numbers, findings.content())
        return [*texts, numbers]

    def draw(self, findings: Findings, suffix: str = ".svg") -> list[FilePath]:
        """Draw every figure of the parts into the folder; the paths of the files."""
        drawn: dict[str, Figure] = {}
        for tasks in self.by_question.values():
            if tasks.question.part != "random" and tasks.question.dimension <= 2:
                figure = _learned(tasks, self.first)
                if figure is not None:
                    drawn[f"paper-{tasks.question.name.replace('/', '-')}"] = figure
        if findings.dimensions:
            drawn["paper-random"] = _by_dimension(findings.dimensions)
        return self.save(drawn, suffix)

    def _findings(self) -> Findings:
        rows: list[Row] = []
        labels: dict[str, Labels] = {}
        lifts: dict[str, Lift] = {}
        for tasks in self.by_question.values():
            part = tasks.question.part
            if part != "random":
                compared, learners = tasks.question.is_published, self._fitted([tasks])
                rows += [row(part, each, *_fits([tasks], each), compared=compared) for each in learners]
                labels[part] = _labels(tasks)
                if tasks.lift:
                    lifts[part] = tasks.lift.value()
        return Findings(self._about(), tuple(rows), labels, lifts, tuple(self._by_dimension()))

    def _by_dimension(self) -> Iterator[Row]:
        networks = [each for each in self.by_question.values() if each.question.part == "random"]
        for rates in dict.fromkeys(each.question.dimension for each in networks):
            some = [each for each in networks if each.question.dimension == rates]
            for learner in self._fitted(some):
                yield row(str(rates), learner, *_fits(some, learner))

    def _fitted(self, asked: Sequence[QuestionTasks]) -> list[str]:
        """The learners that have a fit of one of the questions."""
        names = {learner for each in asked for _, learner, _ in each.fits}
        return [learner for learner in self.learners if learner in names]

    def _about(self) -> dict[str, object]:
        counts = {question.part: len(self.numbers(question)) for question in self.questions}
        return {
            "presets": list(self.presets),
            "variant": self.variant,
            "learners": list(self.learners),
            "training_sets": counts,
            "first": self.first,
            "share": self.share,
        }


def _fits(asked: Sequence[QuestionTasks], learner: str) -> tuple[list[Fit], str]:
    """The fits of a learner to all functions of the questions, and why it refused, if it did."""
    values = [task.value() for each in asked for key, task in each.fits.items() if key[1] == learner]
    refusals = [value for value in values if isinstance(value, str)]
    return [value for value in values if isinstance(value, Fit)], refusals[0] if refusals else ""


def _labels(tasks: QuestionTasks) -> Labels:
    question = tasks.question
    ((function, test),) = tasks.test.value().items()
    f = tasks.truth.value()[function]
    claim = st.Claim("probability", "credible", 0.95, "")
    itself = st.score(st.Prediction(test.points, f, 0.0 * f, f, f, 0.95, claim), test)
    noise = float(np.sqrt(np.mean(f * (1 - f) / test.trials)))
    error = 0.0 if question.truth_runs is None else float(np.sqrt(np.mean(f * (1 - f) / question.truth_runs)))
    of_f = itself.accuracy, itself.wilson_accuracy
    widths = itself.smc_width, TABLE_1[question.part].test_width if question.is_published else None
    return Labels(question.part, noise, *of_f, *widths, question.truth_runs, error)


def _learned(tasks: QuestionTasks, number: int) -> Figure | None:
    """The figure of a configuration with one or two parameters; None if no learner has learned it."""
    from sateen.plot.paper import curves, maps

    fits = [task.value() for key, task in tasks.fits.items() if key[2] == number]
    predictions = {label(fit.learner): fit.prediction for fit in fits if isinstance(fit, Fit) and fit.prediction}
    if not predictions:
        return None
    ((function, test),) = tasks.test.value().items()
    truth = tasks.truth.value()[function]
    reading = "" if tasks.question.is_published else " as the paper states it"
    title = f"Configuration ({tasks.question.part}){reading}, training set {number}"
    if tasks.question.dimension == 2:
        return maps(title, predictions, test.points, truth)
    chosen = np.unique(np.linspace(0, len(test) - 1, min(_SHOWN, len(test))).round().astype(int))
    return curves(title, predictions, test[chosen], test.points, truth)


def _by_dimension(rows: tuple[Row, ...]) -> Figure:
    from sateen.plot.paper import scores_by_dimension

    ours: dict[str, dict[str, dict[int, tuple[float, float | None]]]] = {panel: {} for panel in _PANELS}
    reference: dict[int, tuple[float, float | None]] = {}
    for each in (each for each in rows if each.figures):
        rates = int(each.part)
        for panel in _PANELS:
            name, scale = ("seconds", 1 / _HOUR) if panel == "hours" else (panel, 1.0)
            half = each.halves[name]
            value = scale * each.figures[name], None if half is None else scale * half
            ours[panel].setdefault(label(each.learner), {})[rates] = value
        reference.setdefault(rates, (each.figures["smc_width"], None))
    title = "Random networks; those of the paper by the arrays behind its figure, for the text has no numbers"
    return scores_by_dimension(ours, _published(), reference=reference, title=title)


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


def _rebuilt(kind: Callable[..., PaperRun], path: FilePath, options: tuple[tuple[str, Hashable], ...]) -> Pipeline:
    """The pipeline that another process asked for."""
    return kind(folder=path, workers=1, **dict(options)).pipeline


@lru_cache(maxsize=8)
def _on_worker(
    kind: Callable[..., PaperRun], folder: str, options: tuple[tuple[str, Hashable], ...], codes: tuple[str, ...]
) -> Pipeline:
    """The pipeline that a worker makes once for many tasks; `codes` are those of learners that are not sateen's own."""
    return _rebuilt(kind, FilePath(folder), options)
