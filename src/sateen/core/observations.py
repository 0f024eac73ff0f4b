"""Observations: how often runs satisfied a formula at each point, and where those runs came from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import numpy.typing as npt

from sateen.core.counts import check_sums, counts_of, origin_of, read_only, reasons_of
from sateen.core.display import pictured
from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.registry import call_provider
from sateen.core.space import Points, Range, Space
from sateen.core.text import html_table, plural
from sateen.core.types import Axes, Content, File, FloatArray, IntArray, Rows

if TYPE_CHECKING:
    from sateen.core.types import DataFrame

_FINGERPRINTED: Final = 1  # what a fingerprint covers; another number for another choice
_SHOWN_ROWS: Final = 8  # of the table in a notebook
_SHOWN_FORMULA: Final = 60  # characters of a formula in a repr
QUESTION: Final = ("model", "formula", "end")  # what a fingerprint covers of a provenance


@dataclass(frozen=True, slots=True)
class Failure:
    """A run of a black box that raised: under which parameters, which run it was, and the error."""

    theta: Mapping[str, float]
    seed: int
    point: int
    run: int
    error: str


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Observations:
    """At each point, how many of its trials satisfied a formula, and how many stayed undecided.

    The others violated it: satisfied + violated + undecided = trials. `reasons` splits the undecided by what stopped
    them. `origin` has the seed and the point index under which each row was simulated, so that any run can be replayed;
    both are -1 if they are not known. `provenance` says what was asked, and which versions made it. `relevant` names
    the parameters that can affect the verdict at all. `seconds` says how long the runs took, or would take one worker.

    >>> space = Space(beta=(0, 1))
    >>> obs = Observations.from_counts(space, {"beta": [0.2, 0.8]}, satisfied=[10, 35], trials=50)
    >>> obs
    <Observations: 2 points, 100 runs: 45 satisfied>
    >>> obs.frequency
    array([0.2, 0.7])
    """

    points: Points
    satisfied: IntArray
    undecided: IntArray
    trials: IntArray
    origin: IntArray
    provenance: Content
    relevant: tuple[str, ...]
    reasons: Mapping[str, IntArray]
    failures: tuple[Failure, ...]
    seconds: float

    def __init__(
        self,
        points: Points,
        satisfied: npt.ArrayLike,
        undecided: npt.ArrayLike,
        trials: npt.ArrayLike,
        *,
        seed: int | None = None,
        origin: npt.ArrayLike | None = None,
        provenance: Content | None = None,
        relevant: Sequence[str] | None = None,
        reasons: Mapping[str, npt.ArrayLike] | None = None,
        failures: Sequence[Failure] = (),
        seconds: float = 0.0,
    ) -> None:
        if not isinstance(points, Points):
            raise InputError(f"observations are made at Points, not at a {type(points).__name__}; see space.points")
        if not (math.isfinite(seconds) and seconds >= 0):
            raise InputError(f"seconds is a duration, not {seconds}")
        columns = {"satisfied": satisfied, "undecided": undecided, "trials": trials}
        counts = {name: counts_of(column, len(points), name) for name, column in columns.items()}
        check_sums(counts["satisfied"], counts["undecided"], counts["trials"])
        chosen = points.space.names if relevant is None else relevant
        if strangers := [name for name in chosen if name not in points.space.names]:
            raise InputError(f"{strangers[0]} cannot be relevant: it does not vary in {points.space!r}")
        made = {
            "points": points,
            **counts,
            "origin": origin_of(seed, origin, len(points)),
            "provenance": MappingProxyType(dict(provenance or {})),
            "relevant": tuple(name for name in points.space.names if name in chosen),
            "reasons": reasons_of(reasons, counts["undecided"]),
            "failures": tuple(failures),
            "seconds": float(seconds),
        }
        for field, value in made.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_counts(
        cls,
        space: Space,
        theta: object,
        satisfied: npt.ArrayLike,
        trials: npt.ArrayLike,
        undecided: npt.ArrayLike = 0,
        design: str = "given",
    ) -> Observations:
        """Observations from counts that were made elsewhere.

        `theta` is whatever `space.points` takes; a single number stands for every point. `design="uniform"` says that
        the points were drawn independently and uniformly from the space, as guarantees require.
        """
        return cls(Points(space.points(theta).theta, space, design), satisfied, undecided, trials)

    @property
    def space(self) -> Space:
        """Where the points lie."""
        return self.points.space

    @property
    def theta(self) -> FloatArray:
        """The points, a row each, with the columns `space.names`."""
        return self.points.theta

    @property
    def violated(self) -> IntArray:
        """How many runs at each point decided against the formula."""
        return read_only(self.trials - self.satisfied - self.undecided)

    @property
    def frequency(self) -> FloatArray:
        """The fraction of satisfied runs at each point; NaN where a run is undecided, or where there are no runs."""
        known = (self.undecided == 0) & (self.trials > 0)
        return read_only(np.where(known, self.satisfied / np.maximum(self.trials, 1), np.nan))

    @property
    def frequency_bounds(self) -> FloatArray:
        """At each point, the fraction if all undecided runs violate the formula, and if all satisfy it.

        Without any runs, these are 0 and 1.
        """
        runs = np.maximum(self.trials, 1)
        low, high = self.satisfied / runs, (self.satisfied + self.undecided) / runs
        return read_only(np.column_stack([low, np.where(self.trials > 0, high, 1.0)]))

    @property
    def seed(self) -> int | tuple[int, ...] | None:
        """The seed of the runs: several if observations were joined, None if it is not known."""
        seeds = self.seeds
        return seeds if len(seeds) > 1 else seeds[0] if seeds else None

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed among the runs, in order of appearance."""
        values, first = np.unique(self.origin[:, 0], return_index=True)
        return tuple(seed for seed in values[np.argsort(first)].tolist() if seed >= 0)

    @property
    def assumption(self) -> str:
        """What the observed model assumes, such as how net rates are split; empty if nothing."""
        return str(self.provenance.get("assuming") or "")

    @property
    def fingerprint(self) -> str:
        """A hash of the question and the counts; it does not depend on workers, chunks or the clock."""
        asked = [self.provenance.get(key) for key in QUESTION]
        arrays = {"theta": self.theta, "satisfied": self.satisfied, "undecided": self.undecided, "trials": self.trials}
        ranges = [[name, str(range_), range_.scale] for name, range_ in self.space.ranges.items()]
        ranges += [[name, repr(value), "fixed"] for name, value in sorted(self.space.fixed.items())]
        return checksum([_FINGERPRINTED, *asked, ranges], {**arrays, "origin": self.origin})

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Observations):
            return NotImplemented
        return len(self) == len(other) and self.points == other.points and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash((self.points, self.satisfied.tobytes()))

    def __getitem__(self, index: Rows) -> Observations:
        """The rows of a slice, of a list of indices, or of a mask; no row twice."""
        if isinstance(index, int | np.integer):
            raise InputError(f"one row of observations is a slice: write obs[{index}:{index + 1 or ''}]")
        points = self.points[index]
        rows = np.arange(len(self))[index]
        if len(np.unique(rows)) < len(rows):
            raise InputError("a row is chosen twice; its runs would count twice")
        kept = {tuple(pair) for pair in self.origin[rows].tolist()} if self.failures else set()
        share = self.trials[rows].sum() / max(int(self.trials.sum()), 1)
        return Observations(
            points,
            self.satisfied[rows],
            self.undecided[rows],
            self.trials[rows],
            origin=self.origin[rows],
            provenance=self.provenance,
            relevant=self.relevant,
            reasons={reason: counts[rows] for reason, counts in self.reasons.items()},
            failures=[each for each in self.failures if (each.seed, each.point) in kept],
            seconds=self.seconds * float(share),
        )

    def __add__(self, other: Observations) -> Observations:
        """The rows of both, one below the other; equal points stay separate rows.

        Both must be about the same parameters, model and formula, and share no run.
        """
        if not isinstance(other, Observations):
            return NotImplemented
        _check_same(self, other)
        _check_disjoint(self, other)

        def joined(mine: IntArray, its: IntArray) -> IntArray:
            return np.concatenate([mine, its])

        nothing = np.zeros(len(self), np.int64), np.zeros(len(other), np.int64)
        return Observations(
            _joined_points(self.points, other.points),
            joined(self.satisfied, other.satisfied),
            joined(self.undecided, other.undecided),
            joined(self.trials, other.trials),
            origin=joined(self.origin, other.origin),
            provenance={key: value for key, value in self.provenance.items() if other.provenance.get(key) == value},
            relevant=self.relevant + other.relevant,
            reasons={
                reason: joined(self.reasons.get(reason, nothing[0]), other.reasons.get(reason, nothing[1]))
                for reason in {**self.reasons, **other.reasons}
            },
            failures=self.failures + other.failures,
            seconds=self.seconds + other.seconds,
        )

    def save(self, file: File) -> None:
        """Write one safe file, which `load` reads back as equal observations."""
        call_provider("save observations", self, file)

    @classmethod
    def load(cls, file: File) -> Observations:
        """The observations that `save` wrote; a damaged file, or one from another program, is refused."""
        return cast("Observations", call_provider("load observations", file))

    def to_csv(self, file: File) -> None:
        """Write a table for people and other programs: parameters, satisfied, undecided, trials; the rest as comments.

        `from_csv` reads it back as equal observations.
        """
        call_provider("write observations as csv", self, file)

    @classmethod
    def from_csv(cls, file: File, space: Space | None = None) -> Observations:
        """The observations in a CSV file: a column for each parameter, `satisfied`, `trials` and perhaps `undecided`.

        A file that `to_csv` wrote contains its space; for any other file, pass `space`.
        """
        return cast("Observations", call_provider("read observations from csv", file, space))

    def frame(self) -> DataFrame:
        """A pandas DataFrame: every parameter, including the fixed ones, then satisfied, undecided and trials."""
        columns = {"satisfied": self.satisfied, "undecided": self.undecided, "trials": self.trials}
        return self.points.frame().assign(**columns)

    @classmethod
    def from_frame(cls, frame: DataFrame, space: Space) -> Observations:
        """The observations in a data frame with a column for each parameter, `satisfied`, `trials`, and `undecided`
        where there are any.
        """
        columns = {str(name): frame[name] for name in frame.columns}
        if missing := [name for name in ("satisfied", "trials", *space.names) if name not in columns]:
            raise InputError(f"the data frame has no column {missing[0]}; it has {', '.join(columns)}")
        theta = {name: columns[name].to_numpy() for name, _ in space.parameters if name in columns}
        undecided = columns["undecided"].to_numpy() if "undecided" in columns else 0
        points = space.points(theta if theta else np.empty((len(frame), 0)))
        return cls(points, columns["satisfied"].to_numpy(), undecided, columns["trials"].to_numpy())

    def plot(self, ax: object = None) -> Axes:
        """Draw the frequencies over one parameter, with their uncertainty, or over two as colours."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return call_provider("plot observations", self, ax=ax)

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not travel between processes, dicts do.
        names = ("points", "satisfied", "undecided", "trials", "origin", "relevant", "failures", "seconds")
        fields = {name: getattr(self, name) for name in names}
        fields |= {"provenance": dict(self.provenance), "reasons": dict(self.reasons)}
        return partial(Observations, **fields), ()

    def __repr__(self) -> str:
        formula = str(self.provenance.get("formula") or "")
        short = formula if len(formula) <= _SHOWN_FORMULA else f"{formula[: _SHOWN_FORMULA - 1]}…"
        asked = f" {short}" if short else ""
        doubt = f", {self.undecided.sum():,} undecided" if self.undecided.any() else ""
        runs = f"{self.trials.sum():,} runs: {self.satisfied.sum():,} satisfied"
        return f"<Observations: {plural(len(self), 'point')}, {runs}{asked}{doubt}>"

    def _repr_html_(self) -> str:
        top = slice(_SHOWN_ROWS)
        counts = np.column_stack([self.satisfied[top], self.undecided[top], self.trials[top]]).tolist()
        rows = [
            [*(f"{value:.6g}" for value in point), *map(str, row)]
            for point, row in zip(self.theta[top].tolist(), counts, strict=True)
        ]
        rest = f"; the first {_SHOWN_ROWS}:" if len(self) > _SHOWN_ROWS else ""
        table = html_table(repr(self)[1:-1] + rest, [*self.space.names, "satisfied", "undecided", "trials"], rows)
        if len(self.space) not in (1, 2) or not self.trials.any():
            return table
        return pictured(self.plot, repr(self)[1:-1], table)


def _check_same(one: Observations, other: Observations) -> None:
    """Both are of one question; where one does not say what was asked, that is up to the user."""
    if not all("model" in each.provenance for each in (one, other)):
        return
    for key in QUESTION:
        mine, its = one.provenance.get(key), other.provenance.get(key)
        if mine != its:
            what = "formulas read up to a different end" if key == "end" else f"different {key}s"
            raise InputError(f"these observations are of {what}, and cannot be joined:\n  {mine}\n  {its}")


def _check_disjoint(one: Observations, other: Observations) -> None:
    """No run is in both: a run is fixed by its seed, its point index and its number."""
    for seed in set(one.seeds) & set(other.seeds):
        mine, its = (each.origin[each.origin[:, 0] == seed, 1] for each in (one, other))
        if (shared := np.intersect1d(mine, its)).size:
            raise InputError(
                f"both have runs of seed {seed} at point {shared[0]}, whose random numbers would count twice\n"
                "  observe one of them with another seed"
            )


def _joined_points(one: Points, other: Points) -> Points:
    """The rows of both, in the smallest space that holds both; independent draws if both are, and none recurs."""
    mine, its = one.space, other.space
    if mine.names != its.names or mine.fixed != its.fixed:
        raise InputError(f"these observations are of different parameters, and cannot be joined:\n  {mine}\n  {its}")
    theta = np.concatenate([one.theta, other.theta])
    if mine == its:
        fresh = one.iid and other.iid and len(np.unique(theta, axis=0)) == len(theta)
        return Points(theta, mine, "uniform" if fresh else "given")
    hull: dict[str, Range | float] = dict(mine.parameters)
    for name, (a, b) in {name: (mine.ranges[name], its.ranges[name]) for name in mine.names}.items():
        if a.scale != b.scale:
            raise InputError(f"{name} has the scale {a.scale} here and {b.scale} there; give both spaces the same")
        hull[name] = Range(min(a.low, b.low), max(a.high, b.high), a.scale)
    return Points(theta, Space(hull))
