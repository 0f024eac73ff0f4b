"""What was found, as rows: means over training sets, next to what the paper has.

All figures are fractions, as in `paper/published.py`; the tables print errors in hundredths and shares in percent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Final

import sateen as st
from sateen.paper.presets import SPARSE_VI, method_of
from sateen.paper.published import METHODS, RANDOM, TABLE_1, Figures, Method

# Whether more of a figure is better, and how many digits of it the paper prints: in its table, and of random networks.
_BETTER: Final = {"rmse": -1, "accuracy": 1, "uncertainty": -1}
_DIGITS: Final = {"rmse": 4, "accuracy": 4, "uncertainty": 3}
_RANDOM_DIGITS: Final = {"rmse": 3, "accuracy": 2, "uncertainty": 3}


@dataclass(frozen=True, slots=True)
class Fit:
    """One training and its score. `kind` is the learner that "default" chose; `seconds` are CPU seconds of the
    training, `evaluation` the seconds of predicting at all test points. `prediction` is kept for one or two parameters.
    """

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
    truth at the test points is less; `p` is the probability of this many if each fails as often as it may.
    """

    level: float
    confidence: float
    points: int
    runs: int
    coverages: Sequence[float]
    widths: Sequence[float]
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
    """A part of the paper and a learner: means over `fits` trainings, and what the paper published.

    The part is a configuration, or the number of rates of random networks. Then the means are over their data sets, and
    `halves` are the half-widths of the means' 95 % intervals; of a configuration, the times are the shortest. Our
    default, and learners of other packages, stand next to the best of the paper's three, each figure by itself; sparse
    VI, which the paper discusses but does not measure, by itself. Nothing is published of a question that the
    paper's figures do not answer. `refused` is why the learner cannot learn.
    """

    part: str
    learner: str
    fits: int
    kinds: tuple[str, ...]
    figures: Mapping[str, float]
    published: Figures
    refused: str = ""
    halves: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def worse(self) -> tuple[str, ...]:
        """The figures in which the paper's are better, in the digits that it prints."""
        digits = _DIGITS if self.part in TABLE_1 else _RANDOM_DIGITS
        published = {name: getattr(self.published, name) for name in _BETTER if name in self.figures}
        known = {name: value for name, value in published.items() if value is not None}
        gains = {name: _BETTER[name] * (self.figures[name] - value) for name, value in known.items()}
        return tuple(name for name, gain in gains.items() if gain < -0.5 * 10.0 ** -digits[name])

    def content(self) -> dict[str, object]:
        """The row as plain data."""
        return {**asdict(self), "worse": list(self.worse)}


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
_TIMES: Final = ("seconds", "evaluation")


def row(part: str, learner: str, fits: Sequence[Fit], refused: str = "", *, compared: bool = True) -> Row:
    """The row of a part and a learner, over all data sets and trainings; `compared` with what the paper published."""
    columns = {name: [getattr(fit.score, name) for fit in fits] for name in _OF_SCORE}
    columns |= {name: [getattr(fit, name) for fit in fits] for name in _TIMES}
    columns = {name: values for name, values in columns.items() if values and None not in values}  # that all fits have
    if part in TABLE_1:
        known, halves = TABLE_1[part].figures, {}
        figures = {name: (min if name in _TIMES else fmean)(values) for name, values in columns.items()}
    else:
        known = {method: RANDOM[method].get(int(part), Figures()) for method in METHODS}
        figures = {name: fmean(values) for name, values in columns.items()}
        halves = {name: half_width(values) for name, values in columns.items()}
    method = method_of(learner)
    published = known[method] if method else Figures() if learner == SPARSE_VI else best_published(known)
    kinds = tuple(dict.fromkeys(fit.kind for fit in fits))
    return Row(part, learner, len(fits), kinds, figures, published if compared else Figures(), refused, halves)


def best_published(known: Mapping[Method, Figures]) -> Figures:
    """The best of the paper's methods, in each figure by itself.

    >>> best_published(TABLE_1["d"].figures)
    Figures(rmse=0.0534, accuracy=0.975, uncertainty=0.03, hours=None)
    """

    def best(name: str, sign: int = -1) -> float | None:
        values = [getattr(each, name) for each in known.values() if getattr(each, name) is not None]
        return float(max(values, key=lambda value: sign * value)) if values else None

    return Figures(best("rmse"), best("accuracy", 1), best("uncertainty"), best("hours"))


def half_width(values: Sequence[float]) -> float | None:
    """The half-width of the 95 % interval of the mean, by Student's distribution; None for one value.

    >>> half_width([2.0]), round(half_width([1.0, 3.0]), 2)
    (None, 12.71)
    """
    from scipy.special import stdtrit

    count = len(values)
    return float(stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5 if count > 1 else None
