"""A Result: the answer to a study, computed in the folder of the study, and read back from there."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np

from sateen.assess.score import Score
from sateen.core.errors import InputError, SateenError, StoreError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.core.progress import Progress
from sateen.core.registry import call_provider
from sateen.core.space import Points, Range, Space
from sateen.core.types import File
from sateen.core.version import VERSION
from sateen.files.plain import FAULTS, fault_text
from sateen.guarantee.error_bound import ErrorBound
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.plan import Plan
from sateen.pipeline.folder import ANEW, CachedFile, ResultFolder, write_summary
from sateen.pipeline.tasks import Outcome, Task, tell
from sateen.study.decided import DecisionResult, decision_content, decision_from, load_certificate
from sateen.study.decisions import ARRAYS, CERTIFICATE
from sateen.study.findings import REFITTED, is_refitted
from sateen.study.loading import load_guarantee, load_posterior
from sateen.study.spec import StudySpec
from sateen.study.stages import PropertyTasks, StudyTasks, study_tasks
from sateen.study.summary import (
    PROVENANCE_FORMAT,
    RESULT_FORMAT,
    PropertyContent,
    check_hash,
    file_hash,
    load_provenance,
    load_result,
)

_Value = TypeVar("_Value")
_PARTS: Final = ("train", "test", "calibrate")
_PACKAGES: Final = ("numpy", "scipy", "numba", "jax", "optax", "safetensors")  # whose versions are noted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PropertyResult:
    """The results for one property.

    - `formula` as text, with `end`; None where a callable decides by itself.
    - `train`, `test`, `calibrate`: the observations of each part. `calibrate` and `test` are None where the study has
      none. All three have `seconds`, `seed`, `undecided` and `reasons`; each run can be replayed.
    - `posteriors` by learner, in the order of the study; each has `record` (convergence, objective by step, seconds,
      notes) and `importance()`.
    - `guarantee` is that of the posterior of the learner `guaranteed`; `plan` is its plan, None where points and runs
      were given; `error_bound` bounds the mean error over θ.
    - `scores` by learner, against the test runs, of 95 % credible intervals; `guarantee_score` of the guaranteed ones.
    - `predictions` by learner, and `guaranteed_prediction`, at the fixed points of result.json: a grid of 201 points in
      one dimension, 31 by 31 in two, 512 Sobol points in more. For finer pictures ask the posteriors.
    - `claims`, strongest first: of the guarantee, or else of the first posterior (a belief); and of the bound on the
      mean error. Each is a sentence: `str(claim)`.
    - `decision` is what the study decided about it, None where it was not asked to.
    - `verdict` is the answer in one sentence, and after it that of the decision.
    """

    name: str
    formula: str | None
    end: float | None
    train: Observations
    test: Observations | None
    calibrate: Observations | None
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

    def __repr__(self) -> str:
        return f"<PropertyResult {self.verdict}>"

    def _repr_html_(self) -> str:
        scores = "".join(f"<h4>{escape(name)}</h4>{score._repr_html_()}" for name, score in self.scores.items())
        return f"<p>{escape(self.verdict)}</p>{scores}"


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
        """What reproduces it."""
        return str(self.provenance.get("command", ""))

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each task took, also those of earlier runs; runs and fits are measured without waiting."""
        return MappingProxyType(self.provenance.get("seconds", {}))

    @property
    def stages(self) -> Mapping[str, str]:
        """Of each task, in order, whether the last run "computed" or "reused" its result."""
        return MappingProxyType(self.provenance.get("stages", {}))

    @classmethod
    def load(cls, folder: File) -> Result:
        """The result in a folder that `run` has filled. A file in it that was changed since is a StoreError; without
        provenance.json, which has the hashes of all files, each is judged by its own checksum."""
        where = ResultFolder(FilePath(folder))
        if not where.result.is_file():
            hint = "the study has not come to its end there; run it again" if where.stages.is_dir() else "give another"
            raise InputError(f"{folder} has no result of a study; {hint}")
        where.check()
        return cls.from_folder(where, load_provenance(where) if os.path.lexists(where.provenance) else {})

    @classmethod
    def from_folder(cls, where: ResultFolder, provenance: Mapping[str, Any]) -> Result:
        """The result in a folder, with the provenance that is given."""
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
    parts = {part: read(files[part], Observations.load) if part in files else None for part in _PARTS}
    train = parts["train"]
    if train is None:
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
        raise InputError(f"the guarantee is of {content['of']}, which is no learner of {name}")
    formula = content["formula"]
    axes = [predicted["points"][axis] for axis in space.names]
    count = len(predicted["learners"][next(iter(learners))]["mean"])
    points = Points(np.array(axes, dtype=np.float64).T if axes else np.empty((count, 0)), space, "given")
    level, measure = predicted["level"], drawn_uniformly(space)
    predictions: dict[str, Prediction] = {}
    for each, learner in learners.items():
        claim = Claim("probability", "credible", level, measure, by=learner["learner"])  # as in `predict`
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
        plan=None if content["plan"] is None else Plan.from_content(content["plan"]),
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


def run_study(study: StudySpec, path: FilePath, workers: int | None, progress: Progress) -> Result:
    """Compute what is pending in the folder, write the result, and return it."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers is a whole number from 1 up, not {workers!r}")
    tasks = study_tasks(study, path)
    folder = tasks.pipeline.folder
    with folder.held():
        started = _now()
        outcome = tasks.pipeline.run(workers=workers, progress=progress)
        with folder.writing(folder.result):
            write_summary(folder.result, _result(study, tasks))
        result = Result.from_folder(folder, {})
        for name, each in result.properties.items():
            for learner, posterior in each.posteriors.items():
                if is_refitted(posterior) and outcome.states[f"learn {name} {learner}"] == "computed":
                    tell(progress, f"learn {name} {learner}: {REFITTED}")
        provenance = _provenance(study, tasks, outcome, result, workers, started)
        with folder.writing(folder.provenance):
            write_summary(folder.provenance, provenance)
        result = replace(result, provenance=MappingProxyType(provenance))
        with folder.writing(report := path / "report.html"):
            call_provider("update report", result, report)
    return result


def _result(study: StudySpec, tasks: StudyTasks) -> dict[str, object]:
    """result.json: the results, and nothing of how long they took or who computed them."""
    plans = None if tasks.plan is None else tasks.plan.value()
    properties = {
        name: _answer(study, each, None if plans is None else plans[name]) for name, each in tasks.properties.items()
    }
    head = {"format": RESULT_FORMAT, "sateen": VERSION, "study": study.name, "seed": study.seed}
    return {**head, "question": study.question(), "properties": properties}


def _answer(study: StudySpec, tasks: PropertyTasks, plan: Plan | None) -> dict[str, Any]:
    """What result.json says of a property; where something was decided about it, the verdict says so too."""
    answer: dict[str, Any] = {
        **tasks.score.value(),
        "plan": None if plan is None else plan.content(),
        "of": study.guarantee and study.guarantee.of,
        "files": _files(tasks),
    }
    if tasks.decision is not None and study.decide is not None:
        told = {stage: task.value() for stage, task in tasks.decision.named.items()}
        decision = decision_content(study.decide, told)
        answer["verdict"] = f"{answer['verdict']} {decision['sentence']}"
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


def _provenance(
    study: StudySpec, tasks: StudyTasks, outcome: Outcome, result: Result, workers: int | None, started: str
) -> dict[str, object]:
    """provenance.json: with what, by which command and how fast the result was computed."""
    folder = tasks.pipeline.folder
    files = [folder.result, *sorted(file for task in tasks.pipeline.tasks for file in (task.file, *task.extra))]
    seeds = {name: seed for part in _PARTS for name, seed in study.seeds(part).items()}
    seeds |= {stage: study.seed_of(stage) for stage in (*(f"learn {name}" for name in study.learners), "plan")}
    for each in tasks.properties.values():
        seeds |= {} if each.decision is None else {stage: study.seed_of(stage) for stage in each.decision.named}
    return {
        "format": PROVENANCE_FORMAT,
        "study": study.name,
        "file": None if study.file is None else str(study.file),
        "text": study.text,
        "code": study.code or None,
        "command": _command(study, folder),
        "versions": {
            "sateen": VERSION,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "workers": workers,
        "seeds": seeds,
        "hashes": {each.relative_to(folder.path).as_posix(): file_hash(each) for each in files},
        "seconds": _seconds(folder, outcome, result),
        "stages": outcome.states,
        "started": started,
        "finished": _now(),
    }


def _seconds(folder: ResultFolder, outcome: Outcome, result: Result) -> dict[str, float]:
    """How long each task took, also those of earlier runs: observations and posteriors know it themselves."""
    before: dict[str, float] = {}
    with suppress(SateenError):  # if it is not there, or damaged, the times of earlier runs are lost, and nothing else
        before = load_provenance(folder)["seconds"]
    known: dict[str, float] = {}
    for name, each in result.properties.items():
        for part in _PARTS:
            if (observations := getattr(each, part)) is not None:
                known[f"{part} {name}"] = observations.seconds
        known |= {f"learn {name} {learner}": one.record.seconds for learner, one in each.posteriors.items()}
    seconds = {**before, **outcome.seconds, **known}
    return {task: seconds[task] for task in outcome.states if task in seconds}


def _command(study: StudySpec, folder: ResultFolder) -> str:
    if study.file is None:
        return f"sateen.Study.parse(text).run({str(folder.path)!r})"
    elsewhere = [] if folder.path == study.folder else ["-o", str(folder.path)]
    return shlex.join(["sateen", "run", str(study.file), *elsewhere])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
