"""Provenance of a result: with what, by which command and how fast it was computed."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from sateen.core.errors import SateenError
from sateen.core.version import VERSION
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.tasks import Outcome
from sateen.study.budget import MEASURED
from sateen.study.spec import StudySpec
from sateen.study.stages import StudyTasks
from sateen.study.summary import PROVENANCE_FORMAT, file_hash, load_provenance

PARTS: Final = ("train", "test", "calibrate")
_PACKAGES: Final = ("numpy", "scipy", "llvmlite", "jax", "optax", "safetensors")  # whose versions are noted


def provenance_of(
    study: StudySpec,
    tasks: StudyTasks,
    outcome: Outcome,
    known: Mapping[str, float],
    workers: int | None,
    started: str,
) -> dict[str, object]:
    """provenance.json: with what, by which command and how fast the result was computed.

    `known` is how long tasks took of which their results tell.
    """
    folder = tasks.pipeline.folder
    files = [folder.result, *sorted(file for task in tasks.pipeline.tasks for file in (task.file, *task.extra))]
    seeds = {name: seed for part in PARTS for name, seed in study.seeds(part).items()}
    seeds |= {stage: study.seed_of(stage) for stage in (*(f"learn {name}" for name in study.learners), "plan")}
    for each in tasks.properties.values():
        seeds |= {} if each.decision is None else {stage: study.seed_of(stage) for stage in each.decision.named}
    bought = None if tasks.purchase is None else tasks.purchase.value().content()
    machines = {**_before(folder, "elsewhere"), **outcome.machines}
    seconds = {**_before(folder, "seconds"), **outcome.seconds, **known}
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
        **({"elsewhere": machines} if machines else {}),
        "seeds": seeds,
        "hashes": {each.relative_to(folder.path).as_posix(): file_hash(each) for each in files},
        "seconds": {task: seconds[task] for task in outcome.states if task in seconds},
        **({} if bought is None else {"budget": {name: bought[name] for name in MEASURED}}),
        "stages": outcome.states,
        "started": started,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _before(folder: ResultFolder, what: str) -> dict[str, Any]:
    """What earlier runs noted by task; if that is not there, or damaged, it is lost, and nothing else."""
    with suppress(SateenError):
        return dict(load_provenance(folder).get(what, {}))
    return {}


def _command(study: StudySpec, folder: ResultFolder) -> str:
    if study.file is None:
        return f"sateen.Study.parse(text).run({str(folder.path)!r})"
    elsewhere = [] if folder.path == study.folder else ["-o", str(folder.path)]
    return shlex.join(["sateen", "run", str(study.file), *elsewhere])
