"""A Study: one question about a model, from the file that asks it to the folder with the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sateen.core.errors import InputError
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points, Range, Space
from sateen.core.types import File

if TYPE_CHECKING:
    from sateen.guarantee.methods import Method
    from sateen.logic.formula import Formula
    from sateen.model.model import Model
    from sateen.sampling.blackbox import Function
    from sateen.study.result import Result
    from sateen.study.running import Forecast

__all__ = ["Calibration", "Design", "GuaranteeSpec", "Study", "seed_of"]

DesignName: TypeAlias = Literal["sobol", "uniform", "latin", "grid"]
_RETURNED: Final = "what the callable returns"
_SEED_WORDS: Final = 4  # of 32 bits, of the hash of a stage's name


def seed_of(seed: int, stage: str) -> int:
    """The seed of a stage: spawned from that of the study by the stage's name, so no two stages share random numbers.

    >>> seed_of(1, "train") != seed_of(1, "test")
    True
    """
    from numpy.random import SeedSequence

    digest = hashlib.sha256(stage.encode()).digest()
    key = tuple(int.from_bytes(digest[4 * n : 4 * n + 4], "little") for n in range(_SEED_WORDS))
    return int(SeedSequence(seed, spawn_key=key).generate_state(1)[0])


@dataclass(frozen=True, slots=True)
class Design:
    """Which points are observed, and how many runs are made at each; `points` is per axis for a grid."""

    points: int
    runs: int
    design: DesignName

    def drawn(self, space: Space, seed: int) -> Points:
        """The points themselves."""
        if self.design == "grid":
            return space.grid(self.points)
        if not space.names:
            return space.uniform(self.points, seed=seed)
        drawn: Points = getattr(space, self.design)(self.points, seed=seed)
        return drawn

    def total(self, space: Space) -> int:
        """The runs in all."""
        points: int = self.points ** len(space) if self.design == "grid" else self.points
        return points * self.runs


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the calibration may cost: a `budget` of runs or a `width` for the planner, or `points` with `runs` each."""

    budget: int | None = None
    width: float | None = None
    points: int | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class GuaranteeSpec:
    """The guarantee that is asked for, and `of` which method's posterior; `confidence` None is marginal."""

    of: str
    method: Method
    level: float
    confidence: float | None
    rank: int | None = None
    normaliser: Any = None
    split: float | None = None
    allow_trivial: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """One question: a model over a space, properties, what to observe, how to learn, what to guarantee.

    `load` reads it from a TOML file, `run` answers it. `properties` are formulas by name, or None for the one property
    that a callable decides by itself. `methods` are recipes by name, None for "auto". `caps` are those of `observe`.
    `text` is the file as it was read, `code` the hash of the Python file that a callable stands in.

    >>> study = Study.parse('''
    ...     study = { name = "decay", seed = 1 }
    ...     model = { text = "species A = 10\\\\nA -> 0 @ mass_action(k)" }
    ...     space = { k = [0.1, 2] }
    ...     property = { gone = "F[0, 2] A == 0" }
    ...     observe = { train = { points = 64, runs = 20 } }
    ... ''')
    >>> study
    <Study decay: gone over Space(k=(0.1, 2)), by auto>
    """

    name: str
    seed: int
    model: Model | Function
    space: Space
    properties: Mapping[str, Formula | None]
    train: Design
    test: Design | None
    calibration: Calibration | None
    methods: Mapping[str, Any]
    promise: GuaranteeSpec | None
    caps: Mapping[str, Any]
    text: str
    file: FilePath | None = None
    address: str = ""
    code: str = ""

    @classmethod
    def load(cls, file: File) -> Study:
        """The study in a TOML file; files that it names are looked for beside it."""
        path = FilePath(file)
        try:
            if path.suffix.lower() != ".toml":
                raise InputError(f"{file} is no study: a study is a TOML file, whose name ends in .toml")
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file} is not text in UTF-8") from None
        return cls.parse(text, file=path)

    @classmethod
    def parse(cls, text: str, *, file: File | None = None) -> Study:
        """The study that a text in TOML says; `file` is where it stands, beside which others are looked for."""
        from sateen.study.reading import read_study

        return read_study(text, None if file is None else FilePath(file))

    @property
    def folder(self) -> FilePath:
        """Where its result goes if nothing else is said: `<name>-result`, beside its file."""
        beside = FilePath() if self.file is None else self.file.parent
        return beside / f"{self.name}-result"

    def seed_of(self, stage: str) -> int:
        """The seed of a stage."""
        return seed_of(self.seed, stage)

    def run(self, folder: File | None = None, *, workers: int | None = None, progress: Progress = SILENT) -> Result:
        """Do what is not done yet, and return the result, which stands in the folder too.

        Every stage is kept in the folder under a fingerprint of all that it depends on. So a run that was stopped,
        by Ctrl-C, kill -9 or a full disk, goes on where it was when the same is run again; and when the study has
        changed, only what depends on the change is made anew. The result is the same to the last bit however often it
        was interrupted, and for any number of `workers`.
        """
        from sateen.study.running import run_study

        return run_study(self, self.folder if folder is None else FilePath(folder), workers, progress)

    def forecast(self, folder: File | None = None) -> Forecast:
        """What `run` would do now, stage by stage, and about how long the runs that are missing take; changes nothing.

        A few runs are made to see how long one takes.
        """
        from sateen.study.running import forecast_study

        return forecast_study(self, self.folder if folder is None else FilePath(folder))

    def question(self) -> dict[str, Any]:
        """What decides every run of the model or callable, beside the point, the seed and the formula; plain data."""
        parameters = [
            [name, [own.low, own.high, own.scale] if isinstance(own, Range) else own]
            for name, own in self.space.parameters
        ]
        source = {"callable": self.address, "code": self.code} if self.address else {"model": str(self.model)}
        return {**source, "space": parameters, "caps": dict(self.caps)}

    def content(self) -> dict[str, Any]:
        """What it asks, as plain data; without the model, which has its own description."""
        properties = {
            name: _RETURNED if own is None else f"{own}" + (f", up to {own.end}" if own.end else "")
            for name, own in self.properties.items()
        }
        horizons = {name: own.horizon for name, own in self.properties.items() if own is not None}
        parts = {"train": self.train, "test": self.test, "calibrate": self.calibration}
        return {
            "study": self.name,
            "seed": self.seed,
            "callable": self.address or None,
            "space": {name: own if isinstance(own, float) else _range(own) for name, own in self.space.parameters},
            "property": properties,
            "horizon": horizons or None,
            **{part: None if own is None else asdict(own) for part, own in parts.items()},
            "caps": dict(self.caps) or None,
            "methods": {name: None if own is None else _changed(own) for name, own in self.methods.items()},
            "guarantee": None if self.promise is None else asdict(self.promise),
            "folder": str(self.folder),
        }

    def __repr__(self) -> str:
        return f"<Study {self.name}: {', '.join(self.properties)} over {self.space!r}, by {', '.join(self.methods)}>"

    def _repr_html_(self) -> str:
        shown = {name: _RETURNED if own is None else str(own) for name, own in self.properties.items()}
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(own)}</td></tr>" for name, own in shown.items())
        return f"<table><caption>{escape(repr(self))}</caption>{rows}</table>"


def _range(own: Range) -> dict[str, Any]:
    return {"low": own.low, "high": own.high, "scale": own.scale}


def _changed(recipe: Any) -> dict[str, Any]:
    """The settings of a recipe that are not those of its class."""
    usual = asdict(type(recipe)())
    return {name: value for name, value in asdict(recipe).items() if value != usual[name]}
