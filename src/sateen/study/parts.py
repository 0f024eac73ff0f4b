"""A part of a study: some of the runs of the stages that need no fit, made apart from all others, to be merged.

A folder with a part is the folder of a result that has come no further than its runs: they are in the same store, and
`merge` joins the stores. parts.json next to them says of which study they are, so that parts of another are refused.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Any, Final, TypedDict

from sateen.core.errors import InputError
from sateen.core.fingerprints import plain_json
from sateen.core.interrupts import heeding_interrupts
from sateen.core.progress import Progress
from sateen.core.version import VERSION
from sateen.files.plain import converted
from sateen.pipeline.folder import CachedFile, ResultFolder, read_summary, write_summary
from sateen.pipeline.tasks import RunContext, tell
from sateen.sampling.parts import Part, check_part, common, length, part_runs
from sateen.study.file import toml_words
from sateen.study.loading import formulas_of, observe_stage, observing, stage_question, store_name
from sateen.study.spec import StudySpec
from sateen.study.stages import Forecast, Step, simulated_stages, study_tasks

RECORD: Final = "parts.json"
_FORMAT: Final = 1
_SHOWN: Final = 60  # characters of what differs between two studies


class StageRecord(TypedDict):
    """A stage of simulation: the design, how many runs it has in all, and the key that the store has of them."""

    design: dict[str, Any]
    total: int
    key: str


class PartsRecord(TypedDict):
    """parts.json: of which study the runs are, which parts were begun, and in which file of stages/ they are."""

    sateen: str
    study: str
    file: str | None
    seed: int
    question: dict[str, Any]
    properties: dict[str, Any]
    stages: dict[str, StageRecord]
    store: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class PartResult:
    """A part of a study that is there: how many `runs` it has of each stage, how many of them were `made` just now.

    `waiting` are the stages of the study that come after the merge.
    """

    study: str
    part: Part
    folder: FilePath
    runs: Mapping[str, int]
    made: int
    waiting: tuple[str, ...]


def run_part(study: StudySpec, path: FilePath, part: Part, workers: int | None, progress: Progress) -> PartResult:
    """Make the runs of a part that are missing in the folder."""
    part = check_part(part)
    folder = ResultFolder(path, "run the same part again")
    designs = simulated_stages(study)
    made = 0
    with folder.held(), heeding_interrupts():
        context = RunContext(folder.stages / RECORD, workers, progress)
        record = _record(study, folder, context, part)
        with folder.writing(folder.path / RECORD):
            write_record(folder, record)
        for stage, design in designs.items():
            missing = _missing(folder, record, stage, part)
            tell(progress, f"{stage}, part {part[0]}/{part[1]}: {missing:,} of {design.total(study.space):,} runs")
            if missing:
                observe_stage(study, folder, context, stage, design, study.properties, part)
            made += missing
    runs = {stage: length(part_runs(design.total(study.space), part)) for stage, design in designs.items()}
    return PartResult(study.name, part, path, runs, made, _waiting(study, path))


def forecast_part(study: StudySpec, path: FilePath, part: Part) -> Forecast:
    """What `run_part` would do now; nothing is written, no run is made, and no code of the user's is run."""
    from sateen.sampling.merge import coverage

    part = check_part(part)
    folder = ResultFolder(path)
    record = read_record(folder) if os.path.lexists(path / RECORD) else None
    if record is not None and difference(record, _description(study, _keys(record))):
        record = None
    steps, pending = list[Step](), 0
    for stage, design in simulated_stages(study).items():
        total = design.total(study.space)
        missing = length(part_runs(total, part)) if record is None else _missing(folder, record, stage, part)
        steps.append(Step(stage, "pending" if missing else "reused", f"{missing:,} of {total:,} runs"))
        pending += missing
    seconds = math.nan
    if record is not None and pending:
        known = [coverage(folder.stages / record["store"], each["key"]) for each in record["stages"].values()]
        runs, passed = sum(length(each.intervals) for each in known), sum(each.seconds for each in known)
        seconds = pending * passed / runs if runs and passed else math.nan
    waiting = [Step(stage, "pending", "after the merge") for stage in _waiting(study, path)]
    return Forecast(path, (*steps, *waiting), pending, seconds, {})


def read_record(folder: ResultFolder) -> PartsRecord:
    """What parts.json says of the runs in a folder."""
    remedy = "move it away and run the part again: its runs are kept"
    return CachedFile(folder.path / RECORD, _typed_record, remedy).value()


def _typed_record(file: FilePath) -> PartsRecord:
    content = read_summary(file, _FORMAT)
    try:
        record = converted(content, PartsRecord)
        ResultFolder(file.parent).named(record["store"])
        return {**record, "parts": [check_part(part) for part in record["parts"]]}
    except InputError as error:
        raise InputError(f"{file} is invalid: {error.message}") from None


def write_record(folder: ResultFolder, record: PartsRecord) -> None:
    """Write parts.json."""
    write_summary(folder.path / RECORD, {"format": _FORMAT, **record})


def difference(one: PartsRecord, other: PartsRecord) -> str:
    """In what two studies differ whose runs cannot be joined, in words; "" where they can."""
    for name, mine, its in zip(_NAMES, _compared(one), _compared(other), strict=True):
        if mine != its:
            one_text, other_text = (_short(each) for each in _apart(mine, its))
            same = one_text == other_text
            return f"it has another {name}" if same else f"its {name} is {one_text}, and not {other_text}"
    return ""


def _apart(one: object, other: object) -> tuple[object, object]:
    """Of two tables, what differs."""
    if not (isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()):
        return one, other
    apart = {key: _apart(one[key], other[key]) for key in one if one[key] != other[key]}
    return {key: mine for key, (mine, _) in apart.items()}, {key: its for key, (_, its) in apart.items()}


_NAMES: Final = ("version of sateen", "model", "space", "caps", "seed", "property", "design", "engine")


def _compared(record: PartsRecord) -> tuple[object, ...]:
    question = dict(record["question"])
    space, caps = question.pop("space", None), question.pop("caps", None)
    stages = record["stages"]
    designs = {stage: each["design"] for stage, each in stages.items()}
    return (record["sateen"], question, space, caps, record["seed"], record["properties"], designs, _keys(record))


def _short(value: object) -> str:
    text = ascii(value) if not isinstance(value, str) else ascii(value)[1:-1]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _waiting(study: StudySpec, path: FilePath) -> tuple[str, ...]:
    stages = dict.fromkeys(task.stage for task in study_tasks(study, path).pipeline.tasks)
    return tuple(stage for stage in stages if stage not in simulated_stages(study))


def _missing(folder: ResultFolder, record: PartsRecord, stage: str, part: Part) -> int:
    """How many runs of a part are not in the store."""
    from sateen.sampling.merge import coverage

    asked = record["stages"][stage]
    mine = part_runs(asked["total"], part)
    there = coverage(folder.stages / record["store"], asked["key"]).intervals
    return length(mine) - length(common(mine, there))


def _description(study: StudySpec, keys: Mapping[str, str]) -> PartsRecord:
    """The study as a record has it, with these keys of its stages."""
    stages = {
        stage: {"design": asdict(design), "total": design.total(study.space), "key": keys.get(stage, "")}
        for stage, design in simulated_stages(study).items()
    }
    described: dict[str, object] = {
        "sateen": VERSION,
        "study": study.name,
        "file": None if study.file is None else str(study.file),
        "seed": study.seed,
        "question": study.question(),
        "properties": {name: formula and [str(formula), formula.end] for name, formula in study.properties.items()},
        "stages": stages,
        "store": store_name(study),
        "parts": [],
    }
    return converted(plain_json(described), PartsRecord)


def _keys(record: PartsRecord) -> dict[str, str]:
    return {stage: each["key"] for stage, each in record["stages"].items()}


def _record(study: StudySpec, folder: ResultFolder, context: RunContext, part: Part) -> PartsRecord:
    """The record of a folder with one more part; what it says of another study is forgotten."""
    from sateen.sampling.observe import campaign_key

    model, _ = observing(study, folder, context)
    keys: dict[str, str] = {}
    caps: dict[str, Any] = dict(study.caps)
    for stage, design in simulated_stages(study).items():
        points, runs, seed = stage_question(study, stage, design)
        try:
            keys[stage] = campaign_key(model, formulas_of(study.properties), points, runs, seed=seed, **caps)
        except InputError as error:
            raise InputError(f"{stage}: {error.worded(toml_words)}") from error
    record = _description(study, keys)
    parts = {part}
    if os.path.lexists(folder.path / RECORD) and not difference(before := read_record(folder), record):
        parts |= set(before["parts"])
    return {**record, "parts": sorted(parts)}
