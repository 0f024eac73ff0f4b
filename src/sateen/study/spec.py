"""What a study asks, as data: the model, the space, properties, what to observe, how to learn, what to guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from sateen.core.code import Code
from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Range, Space
from sateen.study.given import GivenTraining

if TYPE_CHECKING:
    from sateen.core.prediction import Learner
    from sateen.logic.formula import Formula
    from sateen.model.model import Model
    from sateen.study.decide_table import DecideSpec

DesignName: TypeAlias = Literal["sobol", "uniform", "latin", "grid"]
Whole: TypeAlias = Annotated[int, Meta(ge=1, le=10**12)]
RETURNED: Final = "what the callable returns"  # in the place of a formula


@dataclass(frozen=True, slots=True)
class Design:
    """Which points are observed, and how many `runs` are made at each; `points` is per axis for a grid.

    With `exact` no run is made: the probability at each point is computed.
    """

    points: Whole
    runs: Annotated[int, Meta(ge=0, le=10**12)] = 0
    design: DesignName = "uniform"
    exact: bool = False

    def drawn(self, space: Space, seed: int) -> Points:
        """The points themselves."""
        if self.design == "grid":
            return space.grid(self.points)
        draw = {"sobol": space.sobol, "uniform": space.uniform, "latin": space.latin}[self.design]
        return (draw if space.names else space.uniform)(self.points, seed=seed)

    def size(self, space: Space) -> int:
        """The points in all."""
        return int(self.points ** len(space)) if self.design == "grid" else self.points

    def total(self, space: Space) -> int:
        """The runs in all."""
        return self.size(space) * self.runs


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the calibration may cost: a `budget` of runs or a `width` for the planner, or `points` with `runs` each.

    With `exact` the probabilities at the points are computed, without it they are not; None lets a forecast choose
    where `seconds` are given, which may be "training": as long as the training took.
    """

    budget: int | None = None
    width: float | None = None
    points: Whole | None = None
    runs: Whole | None = None
    seconds: Annotated[float, Meta(gt=0)] | Literal["training"] | None = None
    exact: bool | None = None

    @property
    def design(self) -> Design | None:
        """The points and runs, if they are given; None where a plan chooses them."""
        if self.points is None or (self.runs is None and not self.exact):
            return None
        return Design(self.points, self.runs or 0, exact=bool(self.exact))


@dataclass(frozen=True, slots=True)
class GuaranteeSpec:
    """The guarantee that is asked for, and `of` which learner's posterior; `confidence` None is marginal."""

    of: str
    method: str
    level: float
    confidence: float | None
    rank: int | None = None
    normaliser: str | None = None
    split: float | None = None
    allow_trivial: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class StudySpec:
    """What a study asks.

    `model` may be Code in the place of a model, which is not run before the study is. `properties` are formulas by
    name, or None for the one property that such code decides by itself. `learners` are by name, and `settings` what the
    file sets of each; "default" chooses by the observations. `caps` are those of `observe`. `text` is the file as it
    was read. `decide` is what to decide about one of the properties. `on` is the
    address of the workers, which has no part in any result.
    """

    name: str
    seed: int
    model: Model | Code
    space: Space
    properties: Mapping[str, Formula | None]
    train: Design | GivenTraining
    test: Design | None
    calibration: Calibration | None
    learners: Mapping[str, Learner]
    settings: Mapping[str, Mapping[str, object]]
    guarantee: GuaranteeSpec | None
    caps: Mapping[str, int | float]
    text: str
    file: FilePath | None = None
    decide: DecideSpec | None = None
    on: str | None = None

    @property
    def address(self) -> str:
        """Where the callable is that stands in the place of a model; "" for a model."""
        return self.model.address if isinstance(self.model, Code) else ""

    @property
    def code(self) -> str:
        """The SHA-256 of the file of the callable; "" for a model."""
        return self.model.digest if isinstance(self.model, Code) else ""

    @property
    def folder(self) -> FilePath:
        """Where its result goes by default: `<name>-result`, next to its file."""
        beside = FilePath() if self.file is None else self.file.parent
        return beside / f"{self.name}-result"

    def seed_of(self, stage: str) -> int:
        """The seed of a stage, derived from that of the study by the stage's name."""
        return stream_seed(self.seed, stage)

    def seeds(self, part: str) -> dict[str, int]:
        """The seeds of the points and of the runs of a part; those of the calibration are `observe_held_out`'s."""
        stage = "held-out" if part == "calibrate" else part
        return {f"{stage} {what}": self.seed_of(f"{stage} {what}") for what in ("points", "runs")}

    def question(self) -> dict[str, object]:
        """What decides every run of the model or callable, besides the point, the seed and the formula; plain data."""
        parameters = [
            [name, [value.low, value.high, value.scale] if isinstance(value, Range) else value]
            for name, value in self.space.parameters
        ]
        source = {"callable": self.address, "code": self.code} if self.address else {"model": str(self.model)}
        return {**source, "space": parameters, "caps": dict(self.caps)}

    @property
    def given(self) -> FilePath | None:
        """The file with the observations that are learned from, if they are given."""
        if not isinstance(self.train, GivenTraining):
            return None
        return (FilePath() if self.file is None else self.file.parent) / self.train.file

    def content(self) -> dict[str, object]:
        """What it asks, as plain data; without the model, which has its own description."""
        properties = {
            name: RETURNED if formula is None else f"{formula}" + (f", up to {formula.end}" if formula.end else "")
            for name, formula in self.properties.items()
        }
        horizons = {name: formula.horizon for name, formula in self.properties.items() if formula is not None}
        return {
            "study": self.name,
            "seed": self.seed,
            "callable": self.address or None,
            "space": {
                name: asdict(value) if isinstance(value, Range) else value for name, value in self.space.parameters
            },
            "property": properties,
            "horizon": horizons or None,
            "train": asdict(self.train),
            "test": None if self.test is None else asdict(self.test),
            "calibrate": None if self.calibration is None else asdict(self.calibration),
            "caps": dict(self.caps) or None,
            "learners": {name: dict(settings) for name, settings in self.settings.items()},
            "guarantee": None if self.guarantee is None else asdict(self.guarantee),
            "decide": None if self.decide is None else self.decide.content(),
            "folder": str(self.folder),
        }
