"""What was found, as rows: means over training sets, beside what the paper has.

All figures are fractions, as in `paper/published.py`; the tables print errors in hundredths and shares in percent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Final, TypeVar

import sateen as st
from sateen.paper.published import METHODS, RANDOM, TABLE_1, Figures, Method

__all__ = [
    "ALL_LEARNERS",
    "DimensionRow",
    "Fit",
    "Lift",
    "Row",
    "Spread",
    "best_published",
    "dimension_row",
    "label",
    "row",
    "spread",
]

_Summary = TypeVar("_Summary")
ALL_LEARNERS: Final = (*METHODS, "default")  # the paper's, and ours

# Whether more of a figure is better, and how many digits of it the paper prints: in its table, and of random networks.
_BETTER: Final = {"rmse": -1, "accuracy": 1, "uncertainty": -1}
_DIGITS: Final = {"rmse": 4, "accuracy": 4, "uncertainty": 3}
_RANDOM_DIGITS: Final = {"rmse": 3, "accuracy": 2, "uncertainty": 3}


@dataclass(frozen=True, slots=True)
class Fit:
    """One training and its score. `kind` is the learner that "default" chose; `seconds` are those of the training, and
    `evaluation` those of predicting at all test points. `prediction` is kept for one or two parameters."""

    function: str
    learner: str
    number: int
    kind: str
    score: st.Score
    seconds: float
    evaluation: float
    verdict: str
    prediction: st.Prediction | None = None


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

    def content(self) -> dict[str, object]:
        """All of it as plain data."""
        return {**asdict(self), "failures": self.failures, "coverage": self.coverage, "width": self.width}


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration and a learner: means over `fits` trainings, the shortest times, and what the paper published.

    Our default and learners that the paper does not have stand beside the best of the paper's three, each figure by
    itself. `worse` names the figures in which ours is worse, in the digits that the paper prints. `refused` is why the
    learner cannot learn.
    """

    part: str
    learner: str
    fits: int
    kinds: tuple[str, ...]
    figures: Mapping[str, float]
    published: Figures
    refused: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        """The figures in which the paper's are better."""
        return _worse(self.figures, self.published, _DIGITS)

    def content(self) -> dict[str, object]:
        """The row as plain data."""
        return {**asdict(self), "worse": list(self.worse)}


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, and the half-width of its 95 % interval; None where there is but one value."""

    mean: float
    half: float | None


@dataclass(frozen=True, slots=True)
class DimensionRow:
    """A number of rates and a learner: means over the data sets of the random networks, with their 95 % intervals.

    `refused` is why the learner cannot learn from some of the data sets.
    """

    rates: int
    learner: str
    fits: int
    kinds: tuple[str, ...]
    figures: Mapping[str, Spread]
    published: Figures
    refused: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        """The figures in which the paper's are better."""
        return _worse({name: spread.mean for name, spread in self.figures.items()}, self.published, _RANDOM_DIGITS)

    def content(self) -> dict[str, object]:
        """The row as plain data."""
        return asdict(self)


def _worse(ours: Mapping[str, float], theirs: Figures, digits: Mapping[str, int]) -> tuple[str, ...]:
    """The figures that are worse than the paper's, in the digits that it prints."""
    published = {name: getattr(theirs, name) for name in _BETTER if name in ours}
    gains = {name: _BETTER[name] * (ours[name] - value) for name, value in published.items() if value is not None}
    return tuple(name for name, gain in gains.items() if gain < -0.5 * 10.0 ** -digits[name])


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


def label(learner: str) -> str:
    """The heading of a learner: as the paper prints it, or its name.

    >>> [label(each) for each in ("ep-gp", "default", "laplace-net")]
    ['EP-GP', 'sateen', 'laplace-net']
    """
    return learner.upper() if learner in METHODS else "sateen" if learner == "default" else learner


def row(part: str, learner: str, fits: Sequence[Fit], refused: str = "") -> Row:
    """The row of a configuration and a learner."""
    figures: dict[str, float] = _figures(fits, fmean, min)
    published = _beside(TABLE_1[part].figures, learner)
    return Row(part, learner, len(fits), _kinds(fits), figures, published, refused)


def dimension_row(rates: int, learner: str, fits: Sequence[Fit], refused: str = "") -> DimensionRow:
    """The row of a number of rates and a learner, over all data sets and trainings."""
    figures: dict[str, Spread] = _figures(fits, spread, spread)
    published = _beside({each: RANDOM[each][rates] for each in METHODS}, learner)
    return DimensionRow(rates, learner, len(fits), _kinds(fits), figures, published, refused)


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


def _beside(known: Mapping[Method, Figures], learner: str) -> Figures:
    """The published figures that a learner stands beside."""
    return next((figures for method, figures in known.items() if method == learner), best_published(known))


def best_published(known: Mapping[Method, Figures]) -> Figures:
    """The best of the paper's methods, in each figure by itself.

    >>> best_published(TABLE_1["d"].figures)
    Figures(rmse=0.0534, accuracy=0.975, uncertainty=0.03, hours=None)
    """

    def best(name: str, sign: int = -1) -> float | None:
        values = [getattr(each, name) for each in known.values() if getattr(each, name) is not None]
        return float(max(values, key=lambda value: sign * value)) if values else None

    return Figures(best("rmse"), best("accuracy", 1), best("uncertainty"), best("hours"))


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
