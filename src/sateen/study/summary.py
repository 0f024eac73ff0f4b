"""result.json and provenance.json: what they contain, and how they are read from a folder that may not be trusted.

Both keep their own keys at the top, next to a checksum over them. provenance.json has the SHA-256 of result.json and of
every stage, so that no file of a result can be changed unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, NotRequired, TypedDict

from msgspec import Meta

from sateen.assess.score import Score
from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.reading import opened
from sateen.core.space import Scale
from sateen.files.container import MOST_FILE
from sateen.files.plain import converted
from sateen.guarantee.error_bound import ErrorBound
from sateen.pipeline.folder import ANEW, CachedFile, ResultFolder, read_summary
from sateen.study.extremes import Extreme

RESULT_FORMAT: Final = 4
PROVENANCE_FORMAT: Final = 1


class FormulaContent(TypedDict):
    """A formula as text, and the time up to which it is read."""

    text: str
    end: float | None


class CountedContent(TypedDict):
    """What result.json says of observations."""

    fingerprint: str


class LearnerContent(TypedDict):
    """What result.json says of a posterior."""

    learner: str
    mean_width: float
    score: Score | None


class GuaranteeContent(TypedDict):
    """What result.json says of a guarantee."""

    mean_width: float
    greatest_width: float
    points_searched: int
    score: Score | None


class ColumnsContent(TypedDict):
    """The columns of a prediction."""

    mean: list[float]
    std: list[float]
    lower: list[float]
    upper: list[float]


class PredictionsContent(TypedDict):
    """The predictions of all learners at the same points."""

    points: dict[str, list[float]]
    level: float
    learners: dict[str, ColumnsContent]
    guarantee: ColumnsContent | None


class PropertyContent(TypedDict):
    """What result.json says of a property; "decision" is there where the study decides about it."""

    formula: FormulaContent | None
    verdict: str
    extreme: Extreme | None
    claims: list[Claim]
    observations: dict[str, CountedContent]
    learners: dict[str, LearnerContent]
    guarantee: GuaranteeContent | None
    error_bound: ErrorBound | None
    predictions: PredictionsContent
    plan: dict[str, Any] | None
    budget: dict[str, Any] | None
    of: str | None
    files: dict[str, str]
    decision: NotRequired[dict[str, Any]]


class QuestionContent(TypedDict, total=False):
    """What result.json says of the model, or the callable, and its parameters."""

    model: str
    callable: str
    space: list[tuple[str, float | tuple[float, float, Scale]]]
    caps: dict[str, float]


class ResultContent(TypedDict):
    """result.json."""

    sateen: str
    study: str
    seed: Annotated[int, Meta(ge=0)]
    question: QuestionContent
    properties: dict[str, PropertyContent]


class ProvenanceContent(TypedDict):
    """provenance.json, as far as sateen reads it."""

    text: str
    command: str
    versions: dict[str, str]
    machine: str
    seeds: dict[str, int]
    hashes: dict[str, str]
    seconds: dict[str, float]
    stages: dict[str, str]


def load_result(where: ResultFolder) -> tuple[dict[str, Any], ResultContent]:
    """result.json as it is, and with its parts as objects."""
    return CachedFile(where.result, partial(_typed, number=RESULT_FORMAT, kind=ResultContent), ANEW).value()


def load_provenance(where: ResultFolder) -> dict[str, Any]:
    """provenance.json."""
    reader = partial(_typed, number=PROVENANCE_FORMAT, kind=ProvenanceContent)
    content: dict[str, Any] = CachedFile(where.provenance, reader, ANEW).value()[0]
    return content


def _typed(file: FilePath, *, number: int, kind: Any) -> tuple[dict[str, Any], Any]:
    content = read_summary(file, number)
    try:
        return content, converted(content, kind)
    except InputError as error:
        raise InputError(f"{file} is invalid: {error.message}") from None


def check_hash(where: ResultFolder, hashes: Mapping[str, str], file: FilePath) -> None:
    """Refuse a file of the folder that is not the one of which provenance.json has the hash."""
    name = file.relative_to(where.path).as_posix()
    if hashes.get(name) != file_hash(file):
        raise InputError(f"{file} was changed after it was written: {where.provenance.name} has another hash of it")


def file_hash(file: FilePath) -> str:
    """The SHA-256 of a file."""
    with opened(file, MOST_FILE) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
