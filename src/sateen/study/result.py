"""A Result: the answer to a study, computed in the folder of the study, and read back from there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from sateen.assess.score import Score
from sateen.assess.widths import Widths
from sateen.core.display import paragraph, pictured
from sateen.core.errors import InputError, StoreError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.core.progress import Progress
from sateen.core.registry import call_provider
from sateen.core.space import Points, Range, Space
from sateen.core.text import html_table
from sateen.core.types import File
from sateen.core.version import VERSION
from sateen.files.plain import FAULTS, fault_text
from sateen.guarantee.error_bound import ErrorBound
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.plan import Plan
from sateen.guarantee.truth import Truth
from sateen.pipeline.folder import ANEW, CachedFile, ResultFolder, write_summary
from sateen.pipeline.tasks import Task, tell
from sateen.pools.pool import Pool
from sateen.study.decided import DecisionResult, decision_content, decision_from, load_certificate
from sateen.study.decisions import ARRAYS, CERTIFICATE
from sateen.study.extremes import Extreme
from sateen.study.findings import REFITTED, is_refitted, shown_verdict
from sateen.study.label_tasks import fewest_points
from sateen.study.labels import load_labels
from sateen.study.loading import load_guarantee, load_posterior
from sateen.study.provenance import PARTS, provenance_of
from sateen.study.score_table import score_table
from sateen.study.spec import StudySpec
from sateen.study.stages import PropertyTasks, StudyTasks, study_tasks
from sateen.study.summary import (
    RESULT_FORMAT,
    PropertyContent,
    check_hash,
    load_provenance,
    load_result,
)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PropertyResult:
    """The results for one property.

    - `formula` as text, with `end`; None where a callable decides by itself.
    - `train`, `test`, `calibrate`: the observations of each part, each run of which can be replayed, or the Truth where
      `exact = true`. `calibrate` and `test` are None where the study has none.
    - `posteriors` by learner, in the order of the study; each has `record` (convergence, objective by step, seconds,
      notes) and `importance()`.
    - `guarantee` is that of the posterior of the learner `guaranteed`; `plan` is its plan, None where points and runs
      were given, or labels were computed; `error_bound` bounds the mean error over θ.
    - `budget` is what seconds bought, None where none were given: "sentence" says what was used and why, and "repeat"
      is the line of a study file that gives the same anywhere.
    - `scores` by learner, against the test runs, of credible intervals; `guarantee_score` of the guaranteed ones. All
      are of the level of the guarantee, or of 95 % where there is none.
    - `predictions` by learner, and `guaranteed_prediction`, at the fixed points of result.json: a grid of 201 points in
      one dimension, 31 by 31 in two, 512 Sobol points in more. For finer pictures ask the posteriors.
    - `claims`, strongest first: of the guarantee or the first posterior (a belief), and of the bound on the mean error.
    - `decision` is what was decided about it; `extreme` what is bounded where no run, or every run, satisfied it.
    - `mean_widths` of the credible intervals by learner, `guaranteed_widths` of the guarantee, over the space.
    - `verdict` is the answer: what was asked, what was found, what is guaranteed and what is not, and what was decided,
      a line each.
    """

    name: str
    formula: str | None
    end: float | None
    train: Observations
    test: Observations | Truth | None
    calibrate: Observations | Truth | None
    posteriors: Mapping[str, FullPosterior]
    guarantee: Guarantee | None
    guaranteed: str | None
    plan: Plan | None
    error_bound: ErrorBound | None
    scores: Mapping[str, Score]
    guarantee_score: Score | None
    predictions: Mapping[str, Prediction]
    guaranteed_prediction: Prediction | None
    claims: tuple[Claim, ...]
    verdict: str
    decision: DecisionResult | None = None
    extreme: Extreme | None = None
    mean_widths: Mapping[str, float] = field(default_factory=dict)
    guaranteed_widths: Widths | None = None
    budget: Mapping[str, Any] | None = None

    def scored(self) -> Iterator[tuple[str, str, Score, float]]:
        """Each kind of interval that has a score: of which learner, what it is, the score, the mean width."""
        yield from ((name, "credible", score, self.mean_widths[name]) for name, score in self.scores.items())
        if self.guarantee is not None and self.guarantee_score is not None and self.guaranteed_widths is not None:
            yield self.guaranteed or "", self.guarantee.method, self.guarantee_score, self.guaranteed_widths.mean

    def __repr__(self) -> str:
        return f"<PropertyResult {' '.join(self.verdict.splitlines())}>"

    def _repr_html_(self) -> str:
        scores = self._scores_html()
        verdict = "\n".join(shown_verdict(self.verdict, guaranteed=self.guarantee is not None))
        if not self.train.space.names:
            return paragraph(verdict) + scores
        shown, leading = self.guaranteed_prediction, self.posteriors[self.guaranteed or next(iter(self.posteriors))]
        if self.decision is not None and self.guarantee is None:
            leading = self.decision.posterior
        few = shown is not None and len(self.train.space) <= 2
        posterior = partial(call_provider, "plot posterior", leading)
        return pictured(shown.plot if few and shown is not None else posterior, verdict, scores, "Scores")

    def _scores_html(self) -> str:
        if self.test is None:
            return ""
        caption, (header, *rows) = score_table(self.scored(), self.test, next(iter(self.predictions.values())).level)
        return html_table(caption, header, rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """The result of a study: `properties` by name, in the order of the study.

    `model` is the model's text, or the address of the callable; `space` where θ lives. `content` is result.json as
    plain data, `provenance` is provenance.json: versions, seeds, hashes, times, the study file, the command.
    """

    name: str
    seed: int
    folder: FilePath
    model: str
    space: Space
    properties: Mapping[str, PropertyResult]
    content: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The study file as it was run."""
        return str(self.provenance.get("text", ""))

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return str(self.provenance.get("command", ""))

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each task took, also those of earlier runs; runs and fits are measured without waiting."""
        return MappingProxyType(self.provenance.get("seconds", {}))

    @property
    def stages(self) -> Mapping[str, str]:
        """For each task, in order, whether the last run "computed" or "reused" its result."""
        return MappingProxyType(self.provenance.get("stages", {}))

    @classmethod
    def load(cls, folder: File) -> Result:
        """The result in a folder that `run` has filled.

        If a file in it was changed since, this raises a StoreError. Without provenance.json, which has the hashes of
        all files, each file is checked by its own checksum.
        """
        where = ResultFolder(FilePath(folder))
        if not where.result.is_file():
            hint = "the study is not finished there; run it again" if where.stages.is_dir() else "give another"
            raise InputError(f"{folder} has no result of a study; {hint}")
        where.check()
        return cls.from_folder(where, load_provenance(where) if os.path.lexists(where.provenance) else {})

    @classmethod
    def from_folder(cls, where: ResultFolder, provenance: Mapping[str, Any]) -> Result:
        """The result in a folder, with the given provenance."""
        plain, content = load_result(where)
        read = _Reader(where, provenance.get("hashes"))
        read(where.result, lambda _: None, ANEW)
        try:
            question = content["question"]
            space = Space(
                {name: Range(*value) if isinstance(value, tuple) else value for name, value in question["space"]}
            )
            properties = {name: _property(read, space, name, each) for name, each in content["properties"].items()}
            return cls(
                name=content["study"],
                seed=content["seed"],
                folder=where.path,
                model=question.get("model") or question["callable"],
                space=space,
                properties=MappingProxyType(properties),
                content=MappingProxyType(plain),
                provenance=MappingProxyType(dict(provenance)),
            )
        except FAULTS as error:
            raise StoreError(f"{where.result} is invalid: {fault_text(error)}\n  {ANEW}") from error

    def __repr__(self) -> str:
        return f"<Result of {self.name} in {self.folder}: {', '.join(self.properties)}>"

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.properties.values())


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads files of a result; those of which `hashes` are known, only if they are what was written."""

    where: ResultFolder
    hashes: Mapping[str, str] | None

    def __call__(self, file: FilePath, read: Callable[[FilePath], _Value], remedy: str = "") -> _Value:
        def checked(file: FilePath) -> _Value:
            if self.hashes is not None:
                check_hash(self.where, self.hashes, file)
            return read(file)

        return (CachedFile(file, checked, remedy) if remedy else CachedFile(file, checked)).value()


def _property(read: _Reader, space: Space, name: str, content: PropertyContent) -> PropertyResult:
    files = {key: read.where.named(file) for key, file in content["files"].items()}
    parts = {part: read(files[part], load_labels) if part in files else None for part in PARTS}
    train = parts["train"]
    if not isinstance(train, Observations):
        raise InputError(f"it names no training of {name}")
    learners, guaranteed, predicted = content["learners"], content["guarantee"], content["predictions"]
    posteriors = {each: read(files[f"learn.{each}"], load_posterior) for each in learners}
    guarantee = None if guaranteed is None else read(files["guarantee"], load_guarantee)
    for part, observations in parts.items():
        if observations is not None and observations.fingerprint != content["observations"][part]["fingerprint"]:
            raise InputError(f"the file of {part} {name} has other observations")
    for each, posterior in posteriors.items():
        if posterior.training.fingerprint != train.fingerprint or posterior.space != space:
            raise InputError(f"the file of learn {name} {each} has a posterior of other observations")
    if guaranteed is not None and content["of"] not in learners:
        raise InputError(f"the guarantee is of {content['of']}, which is not a learner of {name}")
    formula = content["formula"]
    axes = [predicted["points"][axis] for axis in space.names]
    count = len(predicted["learners"][next(iter(learners))]["mean"])
    points = Points(np.array(axes, dtype=np.float64).T if axes else np.empty((count, 0)), space, "given")
    level, measure = predicted["level"], drawn_uniformly(space)
    predictions: dict[str, Prediction] = {}
    for each, learner in learners.items():
        claim = Claim("probability", "credible", level, measure, by=learner["learner"], assuming=train.assumption)
        predictions[each] = Prediction(points, **predicted["learners"][each], level=level, claim=claim)  # type: ignore[arg-type]
    guarded = predicted["guarantee"]
    return PropertyResult(
        name=name,
        formula=None if formula is None else formula["text"],
        end=None if formula is None else formula["end"],
        train=train,
        test=parts["test"],
        calibrate=parts["calibrate"],
        posteriors=MappingProxyType(posteriors),
        guarantee=guarantee,
        guaranteed=None if guaranteed is None else content["of"],
        plan=None
        if content["plan"] is None
        else Plan.from_content(content["plan"]).at_pace(posteriors[content["of"] or ""].seconds_per_run),
        error_bound=content["error_bound"],
        scores=MappingProxyType({each: one["score"] for each, one in learners.items() if one["score"]}),
        guarantee_score=None if guaranteed is None else guaranteed["score"],
        predictions=MappingProxyType(predictions),
        guaranteed_prediction=None
        if guarantee is None or guarded is None
        else Prediction(points, **guarded, level=guarantee.level, claim=guarantee.claim),  # type: ignore[arg-type]
        claims=tuple(content["claims"]),
        verdict=content["verdict"],
        decision=_decision(read, files, content, space),
        extreme=content["extreme"],
        mean_widths=MappingProxyType({each: one["mean_width"] for each, one in learners.items()}),
        guaranteed_widths=guaranteed
        and Widths(guaranteed["mean_width"], guaranteed["greatest_width"], guaranteed["points_searched"]),
        budget=content["budget"],
    )


def _decision(
    read: _Reader, files: Mapping[str, FilePath], content: PropertyContent, space: Space
) -> DecisionResult | None:
    """What was decided, with the posterior and the certificate in their files."""
    if "decision" not in content:
        return None
    posterior = read(files["decision.posterior"], load_posterior)
    if posterior.space != space:
        raise InputError("the file of its decision has a posterior of another space")
    certificate = read(files["certificate"], load_certificate) if "certificate" in files else None
    return decision_from(content["decision"], posterior, certificate)


def run_study(
    study: StudySpec, path: FilePath, workers: int | None, progress: Progress, pool: Pool | None = None
) -> Result:
    """Compute what is pending in the folder, at the places of the pool if there is one; write the result, and return
    it."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers is a whole number from 1 up, not {workers!r}")
    tasks = study_tasks(study, path)
    folder = tasks.pipeline.folder
    with folder.held():
        started = datetime.now(UTC).isoformat(timespec="seconds")
        outcome = tasks.pipeline.run(workers=workers, progress=progress, pool=pool)
        with folder.writing(folder.result):
            write_summary(folder.result, _result(study, tasks))
        result = Result.from_folder(folder, {})
        for name, each in result.properties.items():
            for learner, posterior in each.posteriors.items():
                if is_refitted(posterior) and outcome.states[f"learn {name} {learner}"] == "computed":
                    tell(progress, f"learn {name} {learner}: {REFITTED}")
        provenance = provenance_of(study, tasks, outcome, _known_seconds(result), workers, started)
        with folder.writing(folder.provenance):
            write_summary(folder.provenance, provenance)
        result = replace(result, provenance=MappingProxyType(provenance))
        with folder.writing(report := path / "report.html"):
            call_provider("update report", result, report)
    return result


def _result(study: StudySpec, tasks: StudyTasks) -> dict[str, object]:
    """result.json: the results, and nothing of how long they took or who computed them."""
    plans = {} if tasks.planned is None else tasks.planned.plans.value().by_name
    properties = {
        name: {**_answer(study, each, plans.get(name)), "budget": _budget(study, tasks, name)}
        for name, each in tasks.properties.items()
    }
    head = {"format": RESULT_FORMAT, "sateen": VERSION, "study": study.name, "seed": study.seed}
    return {**head, "question": study.question(), "properties": properties}


def _budget(study: StudySpec, tasks: StudyTasks, name: str) -> dict[str, object] | None:
    """What result.json says of the seconds that a calibration may take, if they are given."""
    if tasks.purchase is None or tasks.planned is None or study.guarantee is None:
        return None
    plans, labels = tasks.planned.plans.value(), tasks.planned.labels[name].value()
    plan, fewest = plans.by_name.get(name), fewest_points(study.guarantee)
    return tasks.purchase.value().used(fewest, labels, plan, reused=plans.reused)


def _answer(study: StudySpec, tasks: PropertyTasks, plan: Plan | None) -> dict[str, Any]:
    """What result.json says of a property; where something was decided about it, the verdict says so last."""
    answer: dict[str, Any] = {
        **tasks.score.value(),
        "plan": None if plan is None else plan.content(),
        "of": study.guarantee and study.guarantee.of,
        "files": _files(tasks),
    }
    if tasks.decision is not None and study.decide is not None:
        told = {stage: task.value() for stage, task in tasks.decision.named.items()}
        decision = decision_content(study.decide, told)
        answer["verdict"] = f"{answer['verdict']}\n{decision['sentence']}"
        answer["claims"] = [*answer["claims"], *decision["claims"]]
        answer["decision"] = decision
    return answer


def _files(tasks: PropertyTasks) -> dict[str, str]:
    """The names of the files of a property, by what is in them."""
    named: dict[str, Task[object]] = {**tasks.parts}
    named |= {f"learn.{learner}": task for learner, task in tasks.learned.items()}
    if tasks.guarantee is not None:
        named["guarantee"] = tasks.guarantee
    files = {name: task.file.name for name, task in named.items()}
    if tasks.decision is not None:
        for stage, task in tasks.decision.named.items():
            kinds = {ARRAYS: "decision.posterior", CERTIFICATE: "certificate"}
            files |= {stage: task.file.name, **{kinds[each.suffix]: each.name for each in task.extra}}
    return files


def _known_seconds(result: Result) -> dict[str, float]:
    """How long each task took of whose time observations and posteriors know themselves."""
    known: dict[str, float] = {}
    for name, each in result.properties.items():
        for part in PARTS:
            if (observations := getattr(each, part)) is not None:
                known[f"{part} {name}"] = observations.seconds
        known |= {f"learn {name} {learner}": one.record.seconds for learner, one in each.posteriors.items()}
    return known
