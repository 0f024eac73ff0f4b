"""The tasks of a study: simulate, learn, plan, guarantee, score. Their files are known before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from sateen.core.code import Code
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, fit_learner
from sateen.core.text import plural
from sateen.learning.registry import OwnLearner
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import Pipeline, Rebuild, RunContext, Save, State, Task, folder_task
from sateen.study.decisions import DecisionTasks, decision_tasks
from sateen.study.file import toml_words
from sateen.study.function import load_function
from sateen.study.loading import load_guarantee, load_posterior, observing
from sateen.study.reading import read_study
from sateen.study.spec import Calibration, Design, GuaranteeSpec, StudySpec

if TYPE_CHECKING:
    from sateen.guarantee.guarantee import Guarantee
    from sateen.guarantee.plan import Plan
    from sateen.logic.formula import Formula

_ARRAYS: Final = ".safetensors"
# About how many seconds a fit takes: at least, and for each training point.
_FIT_SECONDS: Final = {
    **dict.fromkeys(("default", "svi-gp", "ep-gp"), (0.1, 0.003)),
    **dict.fromkeys(("svi-bnn", "laplace-net"), (5.0, 0.002)),
}
_LONG_FIT: Final = (60.0, 0.0)  # of any other learner, which is taken to be slow
_PROCESS_SECONDS: Final = 3.0  # what fits must save by processes for these to be worth their start


@dataclass(frozen=True, slots=True)
class PropertyTasks:
    """The tasks of one property: its observations by part, what each learner learns, the guarantee, the scores."""

    parts: Mapping[str, Task[Observations]]
    learned: Mapping[str, Task[FullPosterior]]
    guarantee: Task[Guarantee] | None
    score: Task[dict[str, object]]
    decision: DecisionTasks | None = None


@dataclass(frozen=True, slots=True)
class StudyTasks:
    """All tasks of a study: as a pipeline, and by property."""

    pipeline: Pipeline
    plan: Task[dict[str, Plan]] | None
    properties: Mapping[str, PropertyTasks]


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
    runs = sum({task.group: task.runs for task in pending if task.runs}.values())  # properties share their runs
    finished = [task for each in tasks.properties.values() for task in each.parts.values() if task.finished]
    seconds = runs * _seconds_per_run(finished[0].value()) if runs and finished else math.nan
    learning = {
        task.name: float(study.learners[name].forecast(each.parts["train"].value()))  # type: ignore[attr-defined]
        for each in tasks.properties.values()
        for name, task in each.learned.items()
        if hasattr(study.learners[name], "forecast") and each.parts["train"].finished and not task.finished
    }
    steps = (Step(task.name, states[task.name], task.about) for task in tasks.pipeline.tasks)
    return Forecast(path, tuple(steps), runs, seconds, learning)


def load_code(study: StudySpec, path: FilePath) -> None:
    """Run the code of the user's that pending tasks need, before the first of them begins."""
    pending = study_tasks(study, path).pipeline.pending()
    if isinstance(study.model, Code) and any(task.group for task in pending):
        load_function(study.model)
    for learner in study.learners.values() if pending else ():
        if isinstance(learner, OwnLearner):
            learner.make()


def _seconds_per_run(observations: Observations) -> float:
    runs = int(observations.trials.sum())
    return observations.seconds / runs if runs and observations.seconds > 0 else math.nan


def _rebuilt(text: str, file: FilePath | None, path: FilePath) -> Pipeline:
    """The pipeline of a study, in another process."""
    return study_tasks(read_study(StudySpec, text, file), path).pipeline


def _chosen(design: Design | Calibration, plan: Task[dict[str, Plan]] | None) -> Design:
    """The design that is given, or the one that all plans share."""
    if isinstance(design, Design):
        return design
    assert plan is not None
    first = next(iter(plan.value().values()))
    return Design(first.points, first.runs)


def _load_plans(file: FilePath) -> dict[str, Plan]:
    from sateen.guarantee.plan import Plan

    return {name: Plan.from_content(content) for name, content in read_checksummed(file).items()}


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Makes the tasks of a study in a folder."""

    study: StudySpec
    folder: ResultFolder

    def all(self) -> StudyTasks:
        study = self.study
        parts = {"train": self._simulate("train", study.train)}
        if study.test is not None:
            parts["test"] = self._simulate("test", study.test)
        learned = {
            name: {learner: self._learn(name, learner, train) for learner in study.learners}
            for name, train in parts["train"].items()
        }
        plan = None
        guarantees: dict[str, Task[Guarantee]] = {}
        if study.guarantee is not None and study.calibration is not None:
            trusted = {name: tasks[study.guarantee.of] for name, tasks in learned.items()}
            if study.calibration.design is None:
                plan = self._plan(study.guarantee, study.calibration, trusted)
            parts["calibrate"] = self._simulate("calibrate", study.calibration.design or study.calibration, plan)
            guarantees = {
                name: self._guarantee(name, study.guarantee, task, parts["calibrate"][name], plan)
                for name, task in trusted.items()
            }
        decision = None if study.decide is None else decision_tasks(study, study.decide, self.folder, parts["train"])
        properties: dict[str, PropertyTasks] = {}
        for name in study.properties:
            observed = {part: tasks[name] for part, tasks in parts.items()}
            score = self._score(name, observed, learned[name], guarantees.get(name))
            decided = decision if study.decide is not None and study.decide.about == name else None
            properties[name] = PropertyTasks(observed, learned[name], guarantees.get(name), score, decided)
        order = (
            *(task for part in ("train", "test") if part in parts for task in parts[part].values()),
            *(task for tasks in learned.values() for task in tasks.values()),
            *((plan,) if plan is not None else ()),
            *parts.get("calibrate", {}).values(),
            *guarantees.values(),
            *(tasks.score for tasks in properties.values()),
            *(() if decision is None else decision.tasks),
        )
        rebuild = Rebuild(_rebuilt, (study.text, study.file, self.folder.path))
        return StudyTasks(Pipeline(self.folder, order, rebuild), plan, properties)

    def _simulate(
        self, part: str, design: Design | Calibration, plan: Task[dict[str, Plan]] | None = None
    ) -> dict[str, Task[Observations]]:
        """The observations of a part, for every property; those that are pending share one set of runs.

        With a plan there are as many points and runs as it says.
        """
        study = self.study
        if isinstance(design, Calibration):
            runs = design.budget or 0
            about = f"up to {runs:,} runs" if runs else "as many runs as the plan says"
        else:
            runs = design.total(study.space)
            about = f"{runs:,} runs"
        tasks: dict[str, Task[Observations]] = {}

        def make(context: RunContext) -> Save:
            pending = {name: formula for name, formula in study.properties.items() if not tasks[name].finished}
            observations = self._observe(part, _chosen(design, plan), pending, context)

            def save(file: FilePath) -> None:
                for name, observed in observations.items():
                    observed.save(tasks[name].file)

            return save

        inputs = {**study.question(), "design": asdict(design), "seeds": study.seeds(part)}
        for name, formula in study.properties.items():
            tasks[name] = folder_task(
                self.folder,
                f"{part} {name}",
                {**inputs, "formula": formula and [str(formula), formula.end]},
                make,
                read=Observations.load,
                needs=() if plan is None else (plan,),
                suffix=_ARRAYS,
                group=part,
                about=about,
                runs=runs,
            )
        return tasks

    def _observe(
        self, part: str, design: Design, pending: Mapping[str, Formula | None], context: RunContext
    ) -> Mapping[str, Observations]:
        from sateen.sampling.observe import observe, observe_held_out

        study = self.study
        model, options = observing(study, self.folder, context)
        formulas = {name: formula for name, formula in pending.items() if formula is not None}
        asked = formulas or None
        try:
            if part == "calibrate":
                size = design.points, design.runs
                observed = observe_held_out(model, asked, study.space, *size, seed=study.seed, **options)
            else:
                points = design.drawn(study.space, study.seed_of(f"{part} points"))
                seed = study.seed_of(f"{part} runs")
                observed = observe(model, asked, points, design.runs, seed=seed, **options)
        except InputError as error:
            raise InputError(f"{part}: {error.worded(toml_words)}") from error
        return {next(iter(pending)): observed} if isinstance(observed, Observations) else observed

    def _learn(self, name: str, learner: str, train: Task[Observations]) -> Task[FullPosterior]:
        """What a learner learns of a property."""
        study, fitted, seed = self.study, self.study.learners[learner], self.study.seed_of(f"learn {learner}")

        def make(context: RunContext) -> Save:
            posterior = fit_learner(
                fitted, train.value(), seed=seed, progress=context.progress, checkpoint=context.checkpoint
            )
            if posterior.record.interrupted:
                raise KeyboardInterrupt
            return posterior.save

        code = fitted.code.digest or None if isinstance(fitted, OwnLearner) else None
        inputs = {"learner": learner, "settings": study.settings[learner], "code": code}
        return folder_task(
            self.folder,
            f"learn {name} {learner}",
            {**inputs, "seed": seed},
            make,
            read=load_posterior,
            needs=(train,),
            suffix=_ARRAYS,
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

    def _plan(
        self, spec: GuaranteeSpec, calibration: Calibration, trusted: Mapping[str, Task[FullPosterior]]
    ) -> Task[dict[str, Plan]]:
        """The plans of all properties."""
        seed = self.study.seed_of("plan")

        def make(context: RunContext) -> Save:
            from sateen.study.planning import shared_plans

            plans = shared_plans({name: task.value() for name, task in trusted.items()}, calibration, spec, seed=seed)
            # How long the runs would take is not kept: it differs from run to run.
            content = {name: replace(plan, seconds=math.nan).content() for name, plan in plans.items()}
            return lambda file: write_checksummed(file, content)

        return folder_task(
            self.folder,
            "plan",
            {"calibration": asdict(calibration), "guarantee": asdict(spec), "seed": seed},
            make,
            read=_load_plans,
            needs=tuple(trusted.values()),
            about=f"of {spec.of}",
        )

    def _guarantee(
        self,
        name: str,
        spec: GuaranteeSpec,
        trusted: Task[FullPosterior],
        held_out: Task[Observations],
        plan: Task[dict[str, Plan]] | None,
    ) -> Task[Guarantee]:
        def make(context: RunContext) -> Save:
            from sateen.guarantee.guarantee import calibrate

            planned = None if plan is None else plan.value()[name]
            options = {name: value for name, value in asdict(spec).items() if name != "of"}
            if planned is not None:
                options["normaliser"] = None  # the plan has chosen it
            return calibrate(trusted.value(), held_out.value(), plan=planned, **options).save

        return folder_task(
            self.folder,
            f"guarantee {name}",
            asdict(spec),
            make,
            read=load_guarantee,
            needs=(trusted, held_out) if plan is None else (trusted, held_out, plan),
            suffix=_ARRAYS,
            about=f"{spec.method} of {spec.of}",
        )

    def _score(
        self,
        name: str,
        parts: Mapping[str, Task[Observations]],
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
        return folder_task(self.folder, f"score {name}", {}, make, read=read_checksummed, needs=needs, about=about)
