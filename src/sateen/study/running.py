"""Running a study in its folder: compute what is pending, write the result, its provenance and the report."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Final

from sateen.core.errors import InputError, SateenError
from sateen.core.progress import Progress
from sateen.core.registry import call_provider
from sateen.core.version import VERSION
from sateen.pipeline.folder import ResultFolder, read_json, write_json
from sateen.pipeline.tasks import Outcome, Task, tell
from sateen.study.findings import REFITTED, is_refitted
from sateen.study.result import FORMAT, Result
from sateen.study.spec import StudySpec
from sateen.study.stages import PropertyTasks, StudyTasks, study_tasks

__all__ = ["run_study"]

_PACKAGES: Final = ("numpy", "scipy", "numba", "jax", "optax", "safetensors")


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
            write_json(folder.result, _result(study, tasks))
        result = Result.from_folder(folder, {})
        for name, each in result.properties.items():
            for learner, posterior in each.posteriors.items():
                if is_refitted(posterior) and outcome.states[f"learn {name} {learner}"] == "computed":
                    tell(progress, f"learn {name} {learner}: {REFITTED}")
        provenance = _provenance(study, tasks, outcome, result, workers, started)
        with folder.writing(folder.provenance):
            write_json(folder.provenance, provenance)
        result = replace(result, provenance=MappingProxyType(provenance))
        with folder.writing(report := path / "report.html"):
            call_provider("update report", result, report)
    return result


def _result(study: StudySpec, tasks: StudyTasks) -> dict[str, object]:
    """result.json: the results, and nothing of how long they took or who computed them."""
    plans = None if tasks.plan is None else tasks.plan.value()
    properties = {
        name: {
            **each.score.value(),
            "plan": None if plans is None else plans[name].content(),
            "of": study.guarantee and study.guarantee.of,
            "files": _files(each),
        }
        for name, each in tasks.properties.items()
    }
    head = {"format": FORMAT, "sateen": VERSION, "study": study.name, "seed": study.seed}
    return {**head, "question": study.question(), "properties": properties}


def _files(tasks: PropertyTasks) -> dict[str, str]:
    """The names of the files of a property, by what is in them."""
    named: dict[str, Task[object]] = {**tasks.parts}
    named |= {f"learn.{learner}": task for learner, task in tasks.learned.items()}
    if tasks.guarantee is not None:
        named["guarantee"] = tasks.guarantee
    return {name: task.file.name for name, task in named.items()}


def _provenance(
    study: StudySpec, tasks: StudyTasks, outcome: Outcome, result: Result, workers: int | None, started: str
) -> dict[str, object]:
    """provenance.json: with what, by which command and how fast the result was computed."""
    folder = tasks.pipeline.folder
    files = [folder.result, *sorted(task.file for task in tasks.pipeline.tasks)]
    seeds = {name: seed for part in ("train", "test", "calibrate") for name, seed in study.seeds(part).items()}
    seeds |= {stage: study.seed_of(stage) for stage in (*(f"learn {name}" for name in study.learners), "plan")}
    return {
        "study": study.name,
        "file": None if study.file is None else str(study.file),
        "text": study.text,
        "code": study.code or None,
        "command": _command(study, folder),
        "versions": {"sateen": VERSION, "python": platform.python_version(), **_versions()},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "workers": workers,
        "seeds": seeds,
        "hashes": {each.relative_to(folder.path).as_posix(): _hash(each) for each in files},
        "seconds": _seconds(folder, outcome, result),
        "stages": outcome.states,
        "started": started,
        "finished": _now(),
    }


def _seconds(folder: ResultFolder, outcome: Outcome, result: Result) -> dict[str, float]:
    """How long each task took, also those of earlier runs: observations and posteriors know it themselves."""
    before: dict[str, float] = {}
    if folder.provenance.is_file():
        with suppress(SateenError):  # if it is damaged, the times of earlier runs are lost, and nothing else
            before = read_json(folder.provenance).get("seconds", {})
    known: dict[str, float] = {}
    for name, each in result.properties.items():
        for part in ("train", "test", "calibrate"):
            if (observations := getattr(each, part)) is not None:
                known[f"{part} {name}"] = observations.seconds
        known |= {f"learn {name} {learner}": one.record.seconds for learner, one in each.posteriors.items()}
    seconds = {**before, **outcome.seconds, **known}
    return {task: seconds[task] for task in outcome.states if task in seconds}


def _hash(file: FilePath) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _command(study: StudySpec, folder: ResultFolder) -> str:
    if study.file is None:
        return f"sateen.Study.parse(text).run({str(folder.path)!r})"
    elsewhere = [] if folder.path == study.folder else ["-o", str(folder.path)]
    return shlex.join(["sateen", "run", str(study.file), *elsewhere])


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
