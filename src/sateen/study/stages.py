"""The tasks of a study: simulate, learn, plan, guarantee, score. Their files are known before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from sateen.core.code import Code
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.text import plural
from sateen.learning.registry import OwnLearner
from sateen.model.model import Model
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import Pipeline, Rebuild, RunContext, Save, State, Task, folder_task
from sateen.sampling.parts import length
from sateen.study.decisions import DecisionTasks, decision_tasks
from sateen.study.fits import fit_task
from sateen.study.function import load_function
from sateen.study.given import GivenTraining
from sateen.study.label_tasks import ARRAYS, LabelTasks, Planned, of_the_calibration
from sateen.study.loading import formulas_of, load_guarantee, stage_question, store_name
from sateen.study.reading import read_study
from sateen.study.spec import Design, GuaranteeSpec, StudySpec

if TYPE_CHECKING:
    from sateen.guarantee.guarantee import Guarantee
    from sateen.sampling.merge import Coverage
    from sateen.study.budget import Plans, Purchase
    from sateen.study.labels import Labels

# About how many seconds a fit takes: at least, and for each training point.
_ANSWER_FORM: Final = 2  # of what is said of a property; an answer of another form is computed again
_FIT_SECONDS: Final = {
    **dict.fromkeys(("default", "svi-gp", "ep-gp"), (0.1, 0.003)),
    **dict.fromkeys(("svi-bnn", "laplace-net"), (5.0, 0.002)),
}
_LONG_FIT: Final = (60.0, 0.0)  # of any other learner, which is taken to be slow
_PROCESS_SECONDS: Final = 3.0  # what fits must save by processes for these to be worth their start


@dataclass(frozen=True, slots=True)
class PropertyTasks:
    """The tasks of one property: its observations by part, what each learner learns, the guarantee, the scores."""

    parts: Mapping[str, Task[Labels]]
    learned: Mapping[str, Task[FullPosterior]]
    guarantee: Task[Guarantee] | None
    score: Task[dict[str, object]]
    decision: DecisionTasks | None = None


@dataclass(frozen=True, slots=True)
class StudyTasks:
    """All tasks of a study: as a pipeline, and by property."""

    pipeline: Pipeline
    planned: Planned | None
    properties: Mapping[str, PropertyTasks]
    purchase: Task[Purchase] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A task in a forecast: its name, its state, "reused" or "pending", and what it is `about`."""

    stage: str
    state: State
    about: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do: its `steps`, how many `runs` are missing, and about how many `seconds` those take.

    `seconds` are those of one worker, and NaN where nothing is missing, or where no runs in the folder show how long
    one takes. `learning` has the seconds of each fit that can be forecast, once the training is there.
    """

    folder: FilePath
    steps: tuple[Step, ...]
    runs: int
    seconds: float
    learning: Mapping[str, float]


def study_tasks(study: StudySpec, path: FilePath) -> StudyTasks:
    """The tasks of a study whose result is in the folder `path`."""
    return _Tasks(study, ResultFolder(path, "run the same study again")).all()


def forecast_study(study: StudySpec, path: FilePath) -> Forecast:
    """What a run in the folder would do now; nothing is written, and no runs are made."""
    tasks = study_tasks(study, path)
    states = tasks.pipeline.states()
    pending = tasks.pipeline.pending()
    runs = {task.group: task.runs for task in pending if task.runs}  # properties share their runs
    stored = {stage: _stored(study, tasks, stage, design) for stage, design in simulated_stages(study).items()}
    missing = sum(many - length(stored[stage].intervals if stage in stored else ()) for stage, many in runs.items())
    pace = _seconds_per_run(tasks, stored.values()) if missing else math.nan
    learning = {
        task.name: float(study.learners[name].forecast(each.parts["train"].value()))  # type: ignore[attr-defined]
        for each in tasks.properties.values()
        for name, task in each.learned.items()
        if hasattr(study.learners[name], "forecast") and each.parts["train"].finished and not task.finished
    }
    steps = (Step(task.name, states[task.name], task.about) for task in tasks.pipeline.tasks)
    return Forecast(path, tuple(steps), missing, missing * pace, learning)


def load_code(study: StudySpec, path: FilePath) -> None:
    """Run the code of the user's that pending tasks need, before the first of them begins."""
    pending = study_tasks(study, path).pipeline.pending()
    if isinstance(study.model, Code) and any(task.group for task in pending):
        load_function(study.model)
    for learner in study.learners.values() if pending else ():
        if isinstance(learner, OwnLearner):
            learner.make()


def check_computable(study: StudySpec, path: FilePath) -> None:
    """Refuse labels that are to be computed for some seconds and cannot be, before the first task begins."""
    bought = study_tasks(study, path).purchase
    if bought is None or bought.finished or not (study.calibration and study.calibration.exact):
        return
    from sateen.study.budget import forecasts, some_points

    assert isinstance(study.model, Model)
    with of_the_calibration():
        forecasts(study.model, formulas_of(study.properties) or {}, some_points(study.space, 1))


def simulated_stages(study: StudySpec) -> dict[str, Design]:
    """The stages whose runs are fixed by the study alone, and need no fit."""
    designs = {} if isinstance(study.train, GivenTraining) else {"train": study.train}
    if study.test is not None:
        designs["test"] = study.test
    if study.guarantee is not None and study.calibration is not None and study.calibration.design is not None:
        designs["calibrate"] = study.calibration.design
    return {stage: design for stage, design in designs.items() if not design.exact}


def _seconds_per_run(tasks: StudyTasks, stored: Iterable[Coverage]) -> float:
    """How long a run took in a stage that is finished, or so far in one that is not; NaN where none was made."""
    finished = (task.value() for each in tasks.properties.values() for task in each.parts.values() if task.finished)
    known = [(int(each.trials.sum()), each.seconds) for each in finished if isinstance(each, Observations)]
    known += [(length(each.intervals), each.seconds) for each in stored]
    return next((seconds / many for many, seconds in known if many and seconds > 0), math.nan)


def _stored(study: StudySpec, tasks: StudyTasks, stage: str, design: Design) -> Coverage:
    """What the store has of a stage that is not finished; neither is code of the user's run for it, nor a compiler."""
    from sateen.sampling.merge import Coverage, campaigns_in, coverage
    from sateen.sampling.observe import is_about

    file = tasks.pipeline.folder.stages / store_name(study)
    asked = {name: study.properties[name] for name, each in tasks.properties.items() if not each.parts[stage].finished}
    if asked and (campaigns := campaigns_in(file)):
        points, runs, seed = stage_question(study, stage, design)
        for key, words in campaigns.items():
            if is_about(key, words, study.model, formulas_of(asked), points, runs, seed=seed, **study.caps):
                return coverage(file, key)
    return Coverage([], 0.0)


def _rebuilt(text: str, file: FilePath | None, path: FilePath) -> Pipeline:
    """The pipeline of a study, in another process."""
    return study_tasks(read_study(StudySpec, text, file), path).pipeline


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Makes the tasks of a study in a folder."""

    study: StudySpec
    folder: ResultFolder

    def all(self) -> StudyTasks:
        study = self.study
        label = LabelTasks(study, self.folder)
        train = label.training()
        parts: dict[str, Mapping[str, Task[Labels]]] = {"train": train}
        if study.test is not None:
            parts["test"] = label.of("test", study.test)
        learned = {
            name: {learner: self._learn(name, learner, task) for learner in study.learners}
            for name, task in train.items()
        }
        planned: Planned | None = None
        plan: Task[Plans] | None = None
        bought: Task[Purchase] | None = None
        guarantees: dict[str, Task[Guarantee]] = {}
        if study.guarantee is not None and study.calibration is not None:
            trusted = {name: tasks[study.guarantee.of] for name, tasks in learned.items()}
            if study.calibration.design is not None:
                parts["calibrate"] = label.of("calibrate", study.calibration.design)
            else:
                bought = label.purchase(study.guarantee, study.calibration, trusted)
                planned = label.planned(study.guarantee, study.calibration, trusted, bought)
                plan, parts["calibrate"] = planned.plans, planned.labels
            guarantees = {
                name: self._guarantee(name, study.guarantee, task, parts["calibrate"][name], plan)
                for name, task in trusted.items()
            }
        decision = None if study.decide is None else decision_tasks(study, study.decide, self.folder, train)
        properties: dict[str, PropertyTasks] = {}
        for name in study.properties:
            observed = {part: tasks[name] for part, tasks in parts.items()}
            score = self._score(name, observed, learned[name], guarantees.get(name))
            decided = decision if study.decide is not None and study.decide.about == name else None
            properties[name] = PropertyTasks(observed, learned[name], guarantees.get(name), score, decided)
        # What is computed and waits for nothing comes first: what cannot be computed is then found at once.
        first = ("test", "train") if study.test is not None and study.test.exact else ("train", "test")
        early = plan is None and study.calibration is not None and bool(study.calibration.exact)
        held_out = tuple(parts.get("calibrate", {}).values())
        order = (
            *(held_out if early else ()),
            *(task for part in first if part in parts for task in parts[part].values()),
            *(task for tasks in learned.values() for task in tasks.values()),
            *(() if bought is None else (bought,)),
            *(() if plan is None else (plan,)),
            *(() if early else held_out),
            *guarantees.values(),
            *(tasks.score for tasks in properties.values()),
            *(() if decision is None else decision.tasks),
        )
        rebuild = Rebuild(_rebuilt, (study.text, study.file, self.folder.path))
        return StudyTasks(Pipeline(self.folder, order, rebuild), planned, properties, bought)

    def _learn(self, name: str, learner: str, train: Task[Observations]) -> Task[FullPosterior]:
        """What a learner learns of a property."""
        study = self.study
        return fit_task(
            self.folder,
            name,
            (learner, study.settings[learner], study.learners[learner]),
            train,
            study.seed_of(f"learn {learner}"),
            parallel=self._fits_side_by_side(),
            about=plural(study.train.size(study.space), "point"),
            seconds=self._fit_seconds(learner),
        )

    def _fit_seconds(self, learner: str) -> float:
        least, each = _FIT_SECONDS.get(learner, _LONG_FIT)
        return least + each * self.study.train.size(self.study.space)

    def _fits_side_by_side(self) -> bool:
        """Whether fits take long enough for processes of their own."""
        seconds = [self._fit_seconds(learner) for learner in self.study.learners] * len(self.study.properties)
        return sum(seconds) - max(seconds) > _PROCESS_SECONDS

    def _guarantee(
        self,
        name: str,
        spec: GuaranteeSpec,
        trusted: Task[FullPosterior],
        held_out: Task[Labels],
        plan: Task[Plans] | None,
    ) -> Task[Guarantee]:
        def make(context: RunContext) -> Save:
            from sateen.guarantee.guarantee import calibrate
            from sateen.guarantee.truth import Truth

            options = {name: value for name, value in asdict(spec).items() if name != "of"}
            labels = held_out.value()
            if isinstance(labels, Truth):
                return calibrate(trusted.value(), truth=labels, **options).save
            planned = None if plan is None else plan.value().by_name[name]
            if planned is not None:
                options["normaliser"] = None  # the plan has chosen it
            return calibrate(trusted.value(), labels, plan=planned, **options).save

        return folder_task(
            self.folder,
            f"guarantee {name}",
            asdict(spec),
            make,
            read=load_guarantee,
            needs=(trusted, held_out) if plan is None else (trusted, held_out, plan),
            suffix=ARRAYS,
            about=f"{spec.method} of {spec.of}",
        )

    def _score(
        self,
        name: str,
        parts: Mapping[str, Task[Labels]],
        learned: Mapping[str, Task[FullPosterior]],
        guarantee: Task[Guarantee] | None,
    ) -> Task[dict[str, object]]:
        """Scores, predictions, claims and the verdict on a property, as plain data."""

        def make(context: RunContext) -> Save:
            from sateen.study.findings import property_content

            content = property_content(
                name,
                self.study.properties[name],
                {part: task.value() for part, task in parts.items()},
                {learner: task.value() for learner, task in learned.items()},
                None if guarantee is None else guarantee.value(),
            )
            return lambda file: write_checksummed(file, content)

        needs = (*parts.values(), *learned.values(), *(() if guarantee is None else (guarantee,)))
        about = f"by {', '.join(learned)}"
        form = {"form": _ANSWER_FORM}
        return folder_task(self.folder, f"score {name}", form, make, read=read_checksummed, needs=needs, about=about)
