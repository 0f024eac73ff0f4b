"""How good a prediction is: against runs that it has not seen, and against the truth where that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Prediction
from sateen.core.proportions import wilson
from sateen.core.text import html_table, percent, plural, values_text
from sateen.core.types import FloatArray, IntArray

Band: TypeAlias = tuple[FloatArray, FloatArray]  # the lower and the upper ends of intervals, one for each point
_AS_GOOD_AS_CERTAIN: Final = 1e-5  # a bound as close as this to 0 or 1 counts as 0 or 1 where intervals are compared
_SLACK: Final = 5e-4  # by which the truth may miss an interval in `coverage_slack`
_LEAST_PROBABILITY: Final = 1e-12  # of a run, in the log score
# At a point with undecided runs as many counts are summed over, the likeliest: ±10 deviations of 10^10 runs.
_MOST_TERMS: Final = 2**20


@dataclass(frozen=True, slots=True)
class Score:
    """How a prediction compares with the runs at its points, and with the truth.

    `rmse` is the root mean square difference between the mean and the frequency. `accuracy` is the share of points
    where the interval overlaps the interval of statistical model checking, frequency ± z·√(frequency·(1 - frequency) /
    trials), with the z of `level`; `wilson_accuracy` is the same with Wilson's interval, which has positive width even
    where the frequency is 0 or 1. Intervals are closed, and a bound of the prediction within 1e-5 of 0 or 1 counts as 0
    or 1 here. `uncertainty` is the mean width of the prediction's intervals, `smc_width` that of the intervals of
    statistical model checking. `log_score` is the mean over points of log Binomial(satisfied; trials, mean), with the
    mean kept 1e-12 away from 0 and 1; greater is better.

    `rmse_truth` is the error against the truth, `coverage` the share of points whose closed interval contains it, and
    `coverage_slack` the share whose interval misses it by 5e-4 at most; all three are None if no truth was given.

    Of the `points`, `undecided` have undecided runs. There the frequency is a range: the error is the distance from
    that range, the intervals of its two ends are joined, and the log score is that of the event that the count lies in
    it. `left_out` further points have no runs and are not scored.

    Without any runs, the truth takes the place of the frequency: `rmse` is `rmse_truth`, the shares are `coverage`,
    `smc_width` is 0, and `log_score` None.
    """

    points: int
    level: float
    rmse: float
    accuracy: float
    wilson_accuracy: float
    uncertainty: float
    smc_width: float
    log_score: float | None
    rmse_truth: float | None = None
    coverage: float | None = None
    coverage_slack: float | None = None
    undecided: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        rows = self._rows()
        wide = max(len(label) for label, _ in rows)
        return "\n".join([self._caption(), *(f"  {label:<{wide}}  {value:>8}" for label, value in rows)])

    def _repr_html_(self) -> str:
        return html_table(self._caption(), (), self._rows())

    def _caption(self) -> str:
        parts = [f"{plural(self.points, 'point')} scored at {percent(self.level)}"]
        parts += [f"{self.undecided:,} with undecided runs"] * bool(self.undecided)
        parts += [f"{plural(self.left_out, 'point')} without runs left out"] * bool(self.left_out)
        return "; ".join(parts)

    def _rows(self) -> list[tuple[str, str]]:
        if self.log_score is None:
            rows = [("mean width of the intervals", f"{self.uncertainty:.4f}")]
            return [*rows, *self._rows_of_the_truth()]
        rows = [
            ("error against frequencies (RMSE)", f"{self.rmse:.5f}"),
            ("accuracy", _share(self.accuracy)),
            ("accuracy by Wilson's interval", _share(self.wilson_accuracy)),
            ("mean width of the intervals", f"{self.uncertainty:.4f}"),
            ("mean width of those of the runs", f"{self.smc_width:.4f}"),
            ("log score", f"{self.log_score:.4f}"),
        ]
        return [*rows, *self._rows_of_the_truth()]

    def _rows_of_the_truth(self) -> list[tuple[str, str]]:
        rows = []
        if self.rmse_truth is not None:
            rows.append(("error against the truth (RMSE)", f"{self.rmse_truth:.5f}"))
        if self.coverage is not None:
            rows.append(("coverage of the truth", _share(self.coverage)))
        if self.coverage_slack is not None:
            rows.append((f"coverage with a slack of {_SLACK:g}", _share(self.coverage_slack)))
        return rows


def score(
    prediction: Prediction, observations: Observations | None = None, truth: npt.ArrayLike | None = None
) -> Score:
    """How good a prediction is, judged by observations at the same points and, if it is known, by the true probability.

    `truth` has a probability for each point, as `st.exact` returns; the observations may then be left out. Do not use
    the observations that the prediction was learned from: the score would be too good.

    >>> from sateen.core.prediction import Claim
    >>> from sateen.core.space import Space
    >>> seen = Observations.from_counts(Space(beta=(0, 1)), {"beta": [0.2, 0.8]}, satisfied=[10, 35], trials=50)
    >>> claim = Claim("probability", "credible", 0.95, "")
    >>> guess = Prediction(seen.points, [0.23, 0.66], [0.02, 0.02], [0.19, 0.62], [0.27, 0.7], 0.95, claim)
    >>> print(score(guess, seen, truth=[0.22, 0.71]))
    2 points scored at 95 %
      error against frequencies (RMSE)   0.03536
      accuracy                           100.0 %
      accuracy by Wilson's interval      100.0 %
      mean width of the intervals         0.0800
      mean width of those of the runs     0.2379
      log score                          -2.1908
      error against the truth (RMSE)     0.03606
      coverage of the truth               50.0 %
      coverage with a slack of 0.0005     50.0 %
    """
    if observations is None:
        return _against_truth(prediction, truth)
    _check(prediction, observations)
    known = None if truth is None else _probabilities(truth, len(observations))
    used = observations.trials > 0
    if not used.any():
        raise InputError("no point has a run to compare the prediction with; observe the formula there first")
    mean, lower, upper = prediction.mean[used], prediction.lower[used], prediction.upper[used]
    trials, undecided = observations.trials[used], observations.undecided[used]
    low, high = observations.frequency_bounds[used].T
    z = _quantile(prediction.level)
    smc_lower, smc_upper = low - z * np.sqrt(low * (1 - low) / trials), high + z * np.sqrt(high * (1 - high) / trials)
    widened = (
        np.where(lower < _AS_GOOD_AS_CERTAIN, 0.0, lower),
        np.where(upper > 1 - _AS_GOOD_AS_CERTAIN, 1.0, upper),
    )
    missed = None if known is None else _missed(lower, upper, known[used])
    return Score(
        points=len(trials),
        level=prediction.level,
        rmse=_root_mean_square(np.maximum(np.maximum(low - mean, mean - high), 0.0)),
        accuracy=_share_meeting(widened, (smc_lower, smc_upper)),
        wilson_accuracy=_share_meeting(widened, (wilson(low, trials, z)[0], wilson(high, trials, z)[1])),
        uncertainty=float(np.mean(upper - lower)),
        smc_width=float(np.mean(smc_upper - smc_lower)),
        log_score=float(np.mean(_log_likelihood(observations.satisfied[used], undecided, trials, mean))),
        rmse_truth=None if known is None else _root_mean_square(mean - known[used]),
        coverage=None if missed is None else float(np.mean(missed == 0)),
        coverage_slack=None if missed is None else float(np.mean(missed <= _SLACK)),
        undecided=int(np.count_nonzero(undecided)),
        left_out=int(np.count_nonzero(~used)),
    )


def _against_truth(prediction: Prediction, truth: npt.ArrayLike | None) -> Score:
    """How the prediction compares with the truth alone, which has no noise."""
    if not isinstance(prediction, Prediction):
        raise InputError(f"score takes a Prediction first, not {type(prediction).__name__}; see posterior.predict")
    if truth is None:
        raise InputError("score compares with observations, or with a truth, and neither is given")
    known = _probabilities(truth, len(prediction))
    missed = _missed(prediction.lower, prediction.upper, known)
    error, covered = _root_mean_square(prediction.mean - known), float(np.mean(missed == 0))
    return Score(
        points=len(known),
        level=prediction.level,
        rmse=error,
        accuracy=covered,
        wilson_accuracy=covered,
        uncertainty=float(np.mean(prediction.width)),
        smc_width=0.0,
        log_score=None,
        rmse_truth=error,
        coverage=covered,
        coverage_slack=float(np.mean(missed <= _SLACK)),
    )


def _missed(lower: FloatArray, upper: FloatArray, known: FloatArray) -> FloatArray:
    """By how much each interval misses the truth."""
    return np.maximum(np.maximum(lower - known, known - upper), 0.0)


def _root_mean_square(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _share_meeting(one: Band, other: Band) -> float:
    """The share of points where the closed intervals have a point in common."""
    return float(np.mean((one[0] <= other[1]) & (other[0] <= one[1])))


def _quantile(level: float) -> float:
    """How many standard deviations a normal interval of this level reaches to each side."""
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise InputError(f"the prediction is of level {level}, and a level lies between 0 and 1, such as 0.95")
    return float(-ndtri((1 - level) / 2))


def _log_likelihood(satisfied: IntArray, undecided: IntArray, trials: IntArray, mean: FloatArray) -> FloatArray:
    """The log of the probability that `satisfied` to `satisfied + undecided` runs hold, if each does with `mean`."""
    from scipy.special import gammaln, logsumexp

    p = np.clip(mean, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)

    def log_binomial(k: IntArray, m: IntArray, p: FloatArray) -> FloatArray:
        ways = gammaln(m + 1.0) - gammaln(k + 1.0) - gammaln(m - k + 1.0)
        return np.asarray(ways + k * np.log(p) + (m - k) * np.log1p(-p))

    likelihood = log_binomial(satisfied, trials, p)
    for row in np.flatnonzero(undecided):
        first, last = int(satisfied[row]), int(satisfied[row] + undecided[row])
        likeliest = int(trials[row] * p[row])  # the further from here, the less a count weighs
        start = min(max(likeliest - _MOST_TERMS // 2, first), max(last - _MOST_TERMS + 1, first))
        counts = np.arange(start, min(start + _MOST_TERMS - 1, last) + 1)
        likelihood[row] = logsumexp(log_binomial(counts, trials[row], p[row]))
    return likelihood


def _check(prediction: Prediction, observations: Observations) -> None:
    """Both are what they should be, at the same points."""
    if not isinstance(prediction, Prediction):
        raise InputError(f"score takes a Prediction first, not {type(prediction).__name__}; see posterior.predict")
    if not isinstance(observations, Observations):
        raise InputError(f"score takes Observations second, not {type(observations).__name__}; see st.observe")
    mine, its = prediction.points, observations.points
    remedy = "predict at observations.points"
    if mine.space.names != its.space.names or mine.space.fixed != its.space.fixed:
        raise InputError(f"the prediction is over {mine.space!r}, the observations over {its.space!r}; {remedy}")
    if len(mine) != len(its):
        raise InputError(
            f"the prediction has {plural(len(mine), 'point')}, the observations {plural(len(its), 'point')}; {remedy}"
        )
    if (differ := (mine.theta != its.theta).any(axis=1)).any():
        row = int(np.argmax(differ))
        places = f"({values_text(mine[row])}) in the prediction and ({values_text(its[row])}) in the observations"
        raise InputError(f"row {row} is at {places}; {remedy}")


def _probabilities(truth: npt.ArrayLike, length: int) -> FloatArray:
    try:
        known = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the truth has a probability for each point: {error}") from None
    if known.shape != (length,):
        raise InputError(f"the truth has the shape {known.shape}; give ({length},), a probability for each point")
    if (wrong := ~((known >= 0) & (known <= 1))).any():
        row = int(np.argmax(wrong))
        raise InputError(f"the truth is {known[row]} in row {row}; a probability lies between 0 and 1")
    return known


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
