"""The tasks of [decide]: refine, decide, certify, optimise, sensitivity, bounds. Each leaves a file, as all tasks do.

The training is the start. A refinement adds runs where they are most informative, and its result is decided, certified
and looked at. An optimum has its own search in the place of a refinement. The main file of a task is JSON with a
checksum; what is not plain data is next to it, a posterior or a certificate, and is written first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.learning.registry import OwnLearner
from sateen.pipeline.folder import CachedFile, ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import RunContext, Save, Task, folder_task
from sateen.study.decide_table import CertificateSpec, DecideSpec
from sateen.study.file import toml_words
from sateen.study.loading import load_posterior, observing
from sateen.study.spec import StudySpec

if TYPE_CHECKING:
    from sateen.core.posterior import FullPosterior
    from sateen.core.prediction import Learner
    from sateen.decision.planning import CertificatePlan
    from sateen.decision.regions import Regions

ARRAYS: Final = ".safetensors"
CERTIFICATE: Final = ".certificate"
STAGES: Final = ("refine", "decide", "certify", "optimise", "sensitivity", "bounds")  # each with a seed of its own

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DecisionTasks:
    """The tasks of [decide], as far as it asks for them; each has plain data."""

    refine: Task[Content] | None = None
    decide: Task[Content] | None = None
    certify: Task[Content] | None = None
    optimise: Task[Content] | None = None
    sensitivity: Task[Content] | None = None
    bounds: Task[Content] | None = None

    @property
    def named(self) -> dict[str, Task[Content]]:
        """Those that there are, by stage, in the order of the work."""
        return {stage: task for stage in STAGES if (task := getattr(self, stage)) is not None}

    @property
    def tasks(self) -> tuple[Task[Content], ...]:
        """Those that there are."""
        return tuple(self.named.values())


def decision_tasks(
    study: StudySpec, spec: DecideSpec, folder: ResultFolder, train: Mapping[str, Task[Observations]]
) -> DecisionTasks:
    """The tasks of [decide]; `train` are the observations to begin with, by property."""
    return _Decisions(study, spec, folder, train).all()


def learner_of(study: StudySpec) -> str:
    """The learner whose posterior is refined: that of the guarantee, or else the first."""
    return study.guarantee.of if study.guarantee is not None else next(iter(study.learners))


@dataclass(frozen=True, slots=True)
class _Decisions:
    """Makes the tasks of [decide] in a folder."""

    study: StudySpec
    spec: DecideSpec
    folder: ResultFolder
    train: Mapping[str, Task[Observations]]

    def all(self) -> DecisionTasks:
        spec = self.spec
        refine = self._refine() if spec.optimum is None else None
        optimise = self._optimise() if spec.optimum is not None else None
        learned = refine or optimise
        assert learned is not None
        decide = certify = None
        if refine is not None and spec.threshold is not None:
            decide = self._decide(refine)
            if spec.certificate is not None:
                certify = self._certify(spec.certificate, refine, decide)
        sensitivity = self._sensitivity(learned) if spec.sensitivity and self.study.space.names else None
        bounds = self._bounds() if spec.bounds is not None else None
        return DecisionTasks(refine, decide, certify, optimise, sensitivity, bounds)

    def _task(
        self,
        stage: str,
        inputs: Mapping[str, object],
        make: Callable[[RunContext], tuple[Mapping[str, object], Mapping[str, Save]]],
        *,
        needs: tuple[Task[Any], ...] = (),
        beside: str = "",
        about: str = "",
        runs: int | None = None,
    ) -> Task[Content]:
        """A task whose `make` gives plain data, and what writes the files next to it, by their suffixes.

        `runs` is how many it makes at most, 0 if that is not known, and None if it makes none.
        """
        name = f"{stage} {self.spec.about}"

        def saved(context: RunContext) -> Save:
            try:
                content, others = make(context)
            except InputError as error:
                raise InputError(f"{name}: {error.worded(toml_words)}") from error

            def save(file: FilePath) -> None:
                for suffix, write in others.items():
                    write(file.with_suffix(suffix))
                write_checksummed(file, content)

            return save

        group = "" if runs is None else name  # a task with runs has a group, by which a forecast counts them
        return folder_task(
            self.folder,
            name,
            {**inputs, "seed": self.study.seed_of(stage)},
            saved,
            read=read_checksummed,
            needs=needs,
            extra=(beside,) if beside else (),
            about=about,
            runs=runs or 0,
            group=group,
        )

    @property
    def _learner(self) -> Learner:
        return self.study.learners[learner_of(self.study)]

    def _learner_content(self) -> dict[str, object]:
        name, learner = learner_of(self.study), self._learner
        code = learner.code.digest or None if isinstance(learner, OwnLearner) else None
        return {"learner": name, "settings": self.study.settings[name], "code": code}

    def _question(self, *names: str) -> dict[str, object]:
        formulas = {name: self.study.properties[name] for name in names}
        told = {name: formula and [str(formula), formula.end] for name, formula in formulas.items()}
        return {**self.study.question(), "formulas": told}

    def _refine(self) -> Task[Content]:
        study, spec, name = self.study, self.spec, self.spec.about

        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.decision.refine import refine
            from sateen.study.findings import refined_text

            model, options = observing(study, self.folder, context)
            done = refine(
                model,
                study.properties[name],
                study.space,
                goal=spec.goal,
                budget=spec.budget,
                seed=study.seed_of("refine"),
                learner=self._learner,
                start=self.train[name].value(),
                **options,
            )
            rounds = [asdict(each) for each in done.rounds]
            ended = {"reached": done.reached, "reason": done.reason, "rounds": rounds}
            ended |= {"learner": done.posterior.kind, "found": refined_text(done.posterior)}
            return ended, {ARRAYS: done.posterior.save}

        return self._task(
            "refine",
            {**self._question(name), **spec.goal_content(), "budget": spec.budget, **self._learner_content()},
            make,
            needs=(self.train[name],),
            beside=ARRAYS,
            about=f"up to {spec.budget:,} runs",
            runs=spec.budget,
        )

    def _regions(self, refine: Task[Content]) -> Regions:
        from sateen.decision.regions import decide

        asked = {self.spec.side or "above": self.spec.threshold}
        return decide(_posterior(refine), **asked, level=self.spec.level, seed=self.study.seed_of("decide"))  # type: ignore[arg-type]

    def _decide(self, refine: Task[Content]) -> Task[Content]:
        spec = self.spec

        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.study.decided import regions_content

            return regions_content(self._regions(refine)), {}

        asked = {"side": spec.side, "threshold": spec.threshold, "level": spec.level}
        about = f"{spec.side} {spec.threshold:g}"
        return self._task("decide", asked, make, needs=(refine,), about=about)

    def _certify(self, asked: CertificateSpec, refine: Task[Content], decide: Task[Content]) -> Task[Content]:
        study, name = self.study, self.spec.about

        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.decision.certify import certify
            from sateen.study.decided import certificate_content, regions_from, without_times

            model, options = observing(study, self.folder, context)
            options["store"] = context.store  # of its own: it goes when the certificate is there
            regions = regions_from(_posterior(refine), decide.value())
            given = {key: value for key, value in asdict(asked).items() if value is not None}
            seed = study.seed_of("certify")
            made = without_times(certify(regions, model, study.properties[name], seed=seed, **given, **options))
            return certificate_content(made), {CERTIFICATE: made.save}

        budget = asked.budget or 0
        about = f"by {asked.by}, " + (f"up to {budget:,} runs" if budget else "as many runs as its forecast says")
        if asked.by == "cells":
            about = "by cells" + (", or else at corners" if asked.monotone else "")
        return self._task(
            "certify",
            {**self._question(name), **asdict(asked)},
            make,
            needs=(refine, decide),
            beside=CERTIFICATE,
            about=about,
            runs=budget,
        )

    def _optimise(self) -> Task[Content]:
        study, spec, name = self.study, self.spec, self.spec.about
        goal = spec.optimum
        assert goal is not None
        names = (name, *spec.limits)
        claimed = {} if spec.certificate is None else _some(spec.certificate, ("by", "wrong", "confidence"))

        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.decision.optimise import optimise
            from sateen.study.decided import best_content

            model, options = observing(study, self.folder, context)
            several = bool(spec.limits)
            start = {each: self.train[each].value() for each in names}
            formulas: dict[str, Any] = {each: study.properties[each] for each in names}
            best = optimise(
                model,
                formulas if several else study.properties[name],
                study.space,
                budget=spec.budget,
                gap=spec.gap,
                seed=study.seed_of("optimise"),
                within=goal.within,
                worst=goal.worst,
                minimise=goal.minimise,
                subject_to=spec.limits if several else None,
                objective=name if several else None,
                learner=self._learner,
                start=start if several else start[name],
                **claimed,
                **options,
            )
            return best_content(best), {ARRAYS: best.posterior.save}

        return self._task(
            "optimise",
            {
                **self._question(*names),
                **spec.goal_content(),
                "budget": spec.budget,
                **claimed,
                **self._learner_content(),
            },
            make,
            needs=tuple(self.train[each] for each in names),
            beside=ARRAYS,
            about=f"{'smallest' if goal.minimise else 'largest'}, up to {spec.budget:,} runs",
            runs=spec.budget,
        )

    def _sensitivity(self, learned: Task[Content]) -> Task[Content]:
        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.decision.sensitivity import sensitivity
            from sateen.study.decided import sensitivity_content

            try:
                found = sensitivity(_posterior(learned), seed=self.study.seed_of("sensitivity"))
            except InputError as error:  # f is constant according to the posterior: an answer too
                return {"claim": None, "problem": error.message}, {}
            return sensitivity_content(found), {}

        return self._task("sensitivity", {}, make, needs=(learned,), about="which parameters matter")

    def _bounds(self) -> Task[Content]:
        study, name, asked = self.study, self.spec.about, self.spec.bounds
        assert asked is not None

        def make(context: RunContext) -> tuple[Content, dict[str, Save]]:
            from sateen.decision.bounds import bounds
            from sateen.study.decided import bounds_content

            model, _ = observing(study, self.folder, context)
            found = bounds(model, study.properties[name], study.space, **asdict(asked), progress=context.progress)  # type: ignore[arg-type]
            return bounds_content(found), {}

        about = f"at most {asked.width:g} apart, or {asked.cells:,} cells"
        return self._task("bounds", {**self._question(name), **asdict(asked)}, make, about=about)


def planned_certificate(study: StudySpec, tasks: DecisionTasks) -> CertificatePlan:
    """What the certificate of a study will cost, by its forecast; nothing is spent. The refinement must be there."""
    from sateen.decision.certify import plan_certificate
    from sateen.study.decided import regions_from

    asked = None if study.decide is None else study.decide.certificate
    assert asked is not None
    if asked.by == "cells":
        raise InputError("cells make no runs, so there is no forecast of them", remedy="bound them with cells = 20000")
    if tasks.refine is None or tasks.decide is None or not tasks.decide.finished:
        remedy = "run the study up to there first: sateen refine STUDY.toml"
        raise InputError("what a certificate costs depends on the refinement, which does not exist yet", remedy=remedy)
    given = _some(asked, ("wrong", "confidence", "tolerance", "attempt", "budget"))
    regions = regions_from(_posterior(tasks.refine), tasks.decide.value())
    return plan_certificate(regions, seed=study.seed_of("certify"), **given)


def _posterior(task: Task[Content]) -> FullPosterior:
    """The posterior that stands next to the file of a refinement."""
    return CachedFile(task.file.with_suffix(ARRAYS), load_posterior).value()


def _some(spec: CertificateSpec, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(spec, name)) is not None}
