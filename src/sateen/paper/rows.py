"""What was found, as rows: means over training sets, beside what the paper has.

All figures are fractions, as in `paper/published.py`; the tables print errors in hundredths and shares in percent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Final, TypeVar

from sateen.assess.score import Score
from sateen.paper.published import METHODS, RANDOM, TABLE_1, Figures, Method

__all__ = [
    "ALL_METHODS",
    "LABELS",
    "DimensionRow",
    "Fit",
    "Lift",
    "Row",
    "Spread",
    "best_published",
    "dimension_row",
    "row",
    "spread",
]

_Summary = TypeVar("_Summary")
ALL_METHODS: Final = (*METHODS, "default")
LABELS: Final[Mapping[str, str]] = {"ep-gp": "EP-GP", "svi-gp": "SVI-GP", "svi-bnn": "SVI-BNN", "default": "sateen"}

# A figure is worse than the paper's if it is so in the digits that the paper prints: their number, and whether more
# is better.
_PRINTED: Final[Mapping[str, tuple[int, int]]] = {"rmse": (4, -1), "accuracy": (4, 1), "uncertainty": (3, -1)}


@dataclass(frozen=True, slots=True)
class Fit:
    """One training and its score. `kind` is the recipe that learned; `seconds` are those of the training, and
    `evaluation` those of predicting at all test points."""

    function: str
    method: str
    number: int
    kind: str
    score: Score
    seconds: float
    evaluation: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Lift:
    """How often the intervals of the lift contain the truth, in several calibrations of one posterior.

    Each calibration promises, with the confidence, a coverage of the level. In `failures` of them the coverage of the
    truth at the test points is less; `p` is the probability of so many if each fails as often as it may.
    """

    level: float
    confidence: float
    points: int
    runs: int
    coverages: tuple[float, ...]
    widths: tuple[float, ...]
    p: float

    @property
    def failures(self) -> int:
        """The calibrations that cover less than they promise."""
        return sum(coverage < self.level - 1e-12 for coverage in self.coverages)

    @property
    def coverage(self) -> float:
        """The mean over calibrations."""
        return fmean(self.coverages)

    @property
    def width(self) -> float:
        """The mean width of the intervals, over calibrations."""
        return fmean(self.widths)

    def content(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "failures": self.failures, "coverage": self.coverage, "width": self.width}


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration and a method: means over `fits` trainings, the shortest times, and what the paper published.

    For our default the published figures are the best of the paper's three methods, each by itself. `worse` names the
    figures in which ours is worse, in the digits that the paper prints. A method that was `refused` says why.
    """

    part: str
    method: str
    fits: int
    kinds: tuple[str, ...]
    figures: Mapping[str, float]
    published: Figures
    refused: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        """The figures in which the paper's are better."""
        found = []
        for name, (digits, sign) in _PRINTED.items():
            theirs = getattr(self.published, name)
            if theirs is not None and name in self.figures:
                ours = round(self.figures[name], digits)
                found += [name] * (sign * (ours - theirs) < -0.5 * 10.0**-digits)
        return tuple(found)

    def content(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "worse": list(self.worse)}


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, and the half-width of its 95 % interval; None where there is but one value."""

    mean: float
    half: float | None


@dataclass(frozen=True, slots=True)
class DimensionRow:
    """A number of rates and a method: means over the data sets of the random networks, with their 95 % intervals.

    `refused` of the data sets were too large for the method.
    """

    rates: int
    method: str
    fits: int
    kinds: tuple[str, ...]
    figures: Mapping[str, Spread]
    published: Figures
    refused: str = ""

    def content(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self)


_OF_SCORE: Final = (
    "rmse",
    "accuracy",
    "uncertainty",
    "wilson_accuracy",
    "rmse_truth",
    "coverage",
    "coverage_slack",
    "smc_width",
)


def row(part: str, method: str, fits: Sequence[Fit], refused: str = "") -> Row:
    """The row of a configuration and a method."""
    figures: dict[str, float] = _figures(fits, fmean, min)
    published = _beside(TABLE_1[part].figures, method)
    return Row(part, method, len(fits), _kinds(fits), figures, published, refused)


def dimension_row(rates: int, method: str, fits: Sequence[Fit], refused: str = "") -> DimensionRow:
    """The row of a number of rates and a method, over all data sets and trainings."""
    figures: dict[str, Spread] = _figures(fits, spread, spread)
    published = _beside({each: RANDOM[each][rates] for each in METHODS}, method)
    return DimensionRow(rates, method, len(fits), _kinds(fits), figures, published, refused)


def _figures(
    fits: Sequence[Fit], of_score: Callable[[list[float]], _Summary], of_time: Callable[[list[float]], _Summary]
) -> dict[str, _Summary]:
    """The figures that all fits have, each as one; none without a fit."""
    if not fits:
        return {}
    columns = {name: [getattr(fit.score, name) for fit in fits] for name in _OF_SCORE}
    scores = {name: of_score(values) for name, values in columns.items() if None not in values}
    times = {name: of_time([getattr(fit, name) for fit in fits]) for name in ("seconds", "evaluation")}
    return {**scores, **times}


def _beside(known: Mapping[Method, Figures], method: str) -> Figures:
    """The published figures that a method stands beside."""
    return best_published(known) if method == "default" else known[_published(method)]


def best_published(known: Mapping[Method, Figures]) -> Figures:
    """The best of the paper's methods, in each figure by itself.

    >>> best_published(TABLE_1["d"].figures)
    Figures(rmse=0.0534, accuracy=0.975, uncertainty=0.03, hours=None)
    """

    def best(name: str, choose: Any) -> float | None:
        values = [getattr(each, name) for each in known.values() if getattr(each, name) is not None]
        return float(choose(values)) if values else None

    return Figures(best("rmse", min), best("accuracy", max), best("uncertainty", min), best("hours", min))


def spread(values: Sequence[float]) -> Spread:
    """The mean of the values and its 95 % interval, by Student's distribution.

    >>> spread([2.0])
    Spread(mean=2.0, half=None)
    >>> round(spread([1.0, 3.0]).half, 2)
    12.71
    """
    from scipy.special import stdtrit

    count = len(values)
    half = float(stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5 if count > 1 else None
    return Spread(fmean(values), half)


def _kinds(fits: Sequence[Fit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fit.kind for fit in fits))


def _published(method: str) -> Method:
    return next(each for each in METHODS if each == method)
