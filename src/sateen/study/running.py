"""Running a study from beginning to end in its folder, and finding out beforehand what a run would do."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path as FilePath
from typing import Any, Final

from sateen.core.errors import InputError, Interrupted, SateenError
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points
from sateen.core.version import VERSION
from sateen.pipeline.folder import ResultFolder, read_json
from sateen.report.report import keep_report
from sateen.study.result import FORMAT, Result
from sateen.study.stages import Step, StudyRunner
from sateen.study.study import Study

__all__ = ["Forecast", "forecast_study", "run_study"]

_PACKAGES: Final = ("numpy", "scipy", "numba", "jax", "optax", "safetensors")
_PILOT_POINTS: Final = 16
_PILOT_SECONDS: Final = 0.3
_MOST_PILOT_RUNS: Final = 1024  # at each point


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do: its `steps`, how many `runs` are missing, and about how many `seconds` those take.

    `seconds` are for one worker, and NaN where nothing is missing. `learning` has the seconds of each stage of learning
    that can tell: of the methods that take their time, once the training is there.
    """

    folder: FilePath
    steps: tuple[Step, ...]
    runs: int
    seconds: float
    learning: Mapping[str, float]


def run_study(study: Study, path: FilePath, workers: int | None, progress: Progress) -> Result:
    """Do what is missing in the folder, write the result, and return it."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers is a whole number from 1 up, not {workers!r}")
    folder = ResultFolder(path)
    with folder.held():
        started = _now()
        course = StudyRunner(study, folder, workers=workers, progress=progress)
        try:
            found = course.walk()
            assert found is not None  # only a dry walk leaves anything to do
            folder.write_json(folder.result, _result(study, found))
            result = Result.found_in(folder, {})
            provenance = _provenance(study, folder, course, result, workers, started)
            folder.write_json(folder.provenance, provenance)
            result = result.made_by(provenance)
            with folder.writing(page := folder.path / "report.html"):
                keep_report(result, page)
        except KeyboardInterrupt as stop:
            said = f"{stop}\n" if isinstance(stop, Interrupted) else ""
            raise Interrupted(f"{said}what is finished is in {path}; run the same study again to go on") from None
    return result


def forecast_study(study: Study, path: FilePath) -> Forecast:
    """What a run in the folder would do now; nothing is written."""
    course = StudyRunner(study, ResultFolder(path), workers=None, progress=SILENT, dry=True)
    course.walk()
    runs = sum(step.runs for step in course.steps if step.state == "to do")
    seconds = runs * _seconds_per_run(study) if runs else math.nan
    learning = {
        stage: float(recipe.forecast(seen))
        for stage, (recipe, seen) in course.fits.items()
        if hasattr(recipe, "forecast")
    }
    return Forecast(path, tuple(course.steps), runs, seconds, learning)


def _result(study: Study, found: dict[str, Any]) -> dict[str, Any]:
    """result.json: what was found, and nothing of how long it took or of who did it."""
    own = VERSION
    head = {"format": FORMAT, "sateen": own, "study": study.name, "seed": study.seed, "question": study.question()}
    return {**head, "properties": found}


def _provenance(
    study: Study, folder: ResultFolder, course: StudyRunner, result: Result, workers: int | None, started: str
) -> dict[str, Any]:
    """provenance.json: with what, by which command and how fast the result was made."""
    before: dict[str, Any] = {}
    if folder.provenance.is_file():
        try:
            before = read_json(folder.provenance)
        except SateenError:
            before = {}  # damaged: the times of earlier runs are lost, and nothing else
    files = [folder.result, *sorted({step.file for step in course.steps if step.file is not None})]
    stages = ["train", "test", "calibrate"]
    seeds = {f"{part} {what}": study.seed_of(f"{part} {what}") for part in stages for what in ("points", "runs")}
    seeds |= {f"learn {method}": study.seed_of(f"learn {method}") for method in study.methods}
    file = None if study.file is None else str(study.file)
    return {
        "study": study.name,
        "file": file,
        "text": study.text,
        "code": study.code or None,
        "command": _command(study, folder),
        "versions": {
            "sateen": VERSION,
            "python": platform.python_version(),
            **_versions(),
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "workers": workers,
        "seeds": {**seeds, "plan": study.seed_of("plan")},
        "hashes": {each.relative_to(folder.path).as_posix(): _hash(each) for each in files},
        "seconds": _seconds(course, result, before.get("seconds", {})),
        "stages": {step.stage: step.state for step in course.steps},
        "started": started,
        "finished": _now(),
    }


def _seconds(course: StudyRunner, result: Result, before: dict[str, float]) -> dict[str, float]:
    """How long each stage took, also those that were taken over: runs and fits know it themselves."""
    known: dict[str, float] = {}
    for name, own in result.properties.items():
        for part in ("train", "test", "calibrate"):
            if (seen := getattr(own, part)) is not None:
                known[f"{part} {name}"] = seen.seconds
        known |= {f"learn {name} {method}": one.record.seconds for method, one in own.posteriors.items()}
    stages = [step.stage for step in course.steps]
    told = {**before, **course.seconds, **known}
    return {stage: told[stage] for stage in stages if stage in told}


def _hash(file: FilePath) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _command(study: Study, folder: ResultFolder) -> str:
    if study.file is None:
        return f"sateen.Study.parse(text).run({str(folder.path)!r})"
    elsewhere = [] if folder.path == study.folder else ["-o", str(folder.path)]
    return shlex.join(["sateen", "run", str(study.file), *elsewhere])


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _seconds_per_run(study: Study) -> float:
    """How long a run takes by one worker, from a few at points all over the space; NaN where none can be made."""
    from sateen.sampling.observe import observe

    points: Points = study.space.uniform(_PILOT_POINTS, seed=study.seed_of("pilot points"))
    formulas: Any = None if None in study.properties.values() else dict(study.properties)
    runs, seconds = 1, 0.0
    while True:
        start = time.perf_counter()
        observe(study.model, formulas, points, runs, seed=study.seed_of("pilot"), workers=1, **study.caps)
        if runs > 1:  # the first time, something may have been compiled
            seconds = time.perf_counter() - start
        if seconds > _PILOT_SECONDS or runs >= _MOST_PILOT_RUNS:
            return seconds / (runs * _PILOT_POINTS)
        runs *= 4


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
