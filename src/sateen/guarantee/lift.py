"""The binomial lift: from intervals for the frequency of fresh runs to intervals for the probability itself.

Let [A, B] contain the frequency K/M of M fresh runs at θ but for the probability ε₁, and let 0 < η < 1. With Clopper
and Pearson's one-sided bounds, which miss with probability η, let C = [lower_bound(⌈MA⌉), upper_bound(⌊MB⌋)], joined
with the posterior mean. Then C misses f(θ) with probability ε₁/(1 - η) at most. *Proof.* If f > upper_bound(⌊MB⌋), then
P(K <= MB) < η by definition of the bound: a fresh frequency exceeds B with probability 1 - η or more. Below likewise;
and since C is not empty, one θ has only one of the two. So ε₁ >= P(K/M ∉ [A, B]) >= (1 - η) P(f ∉ C). ∎

The claim fixes ε = ε₁/(1 - η); a small ε₁ buys an η above one half, and bounds that lie *inside* [A, B]. Where [A, B]
holds one count or none, such bounds cross, and C is the mean alone: proven, since such θ are few, and absurd, since it
is there that least is known. So what is shown is C joined with the credible interval of the same level, and with the
frequencies within a quarter of a run of the mean, f̂ ± 1/(4M). A larger set misses f no more often than C, so it keeps
the claim; and its width is 1/(4M) at least, wherever f̂ is.

Where the points have different numbers of runs, no single M can stand for a fresh frequency. Then the bounds come
first: S⁺ = max(upper_bound(K) - f̂, f̂ - lower_bound(K), 0)/u at each point, T the m-th largest, and C = f̂ ± Tu.
*Proof.* Let S = |f - f̂|/u, unseen. Given θ_i and M_i, which must be fixed before the runs are made, S⁺_i >= S_i with
probability 1 - η or more. So there are independent coins Z_i, each 1 with probability 1 - η and independent of θ_i,
such that S⁺_i >= S_i where Z_i = 1. Let R_i = S_i where Z_i = 1, and -∞ elsewhere: these are independent and alike, and
their m-th largest T' is at most T. Hence (1 - η) P(S > T) <= (1 - η) P(S > T') = P(R > T') <= ε₁, for a fresh R. ∎

Both proofs also hold given the calibration, which makes them PAC; and, marginally, for a weighted threshold.

Which normaliser is best depends on whether the posterior's deviation tells where it errs. Unless one is given, the
lift finds that out from the training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, inf, log1p
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Learner, Prediction, Target
from sateen.core.proportions import lower_bound, upper_bound
from sateen.core.seeds import stream, stream_seed
from sateen.core.types import FloatArray
from sateen.guarantee.checks import learner_of, refitted
from sateen.guarantee.conformal import (
    ROUNDING,
    WeightedThreshold,
    around,
    conformal_miss,
    density_rank,
    distances,
    farthest,
    largest,
    threshold_of,
)
from sateen.guarantee.methods import Calibration
from sateen.guarantee.normaliser import centre, difficulty, joined, runs_per_point

if TYPE_CHECKING:
    from sateen.guarantee.request import CalibrateRequest

_Bound: TypeAlias = Callable[[FloatArray, int, float], FloatArray]
_MOST_POINTS: Final = 2**40  # that anyone is advised to observe
_FOLDS: Final = 3
_MOST_ROWS: Final = 2000  # of the training that are fitted again
_FEWEST_ROWS: Final = 30
_REPETITIONS: Final = 24  # of the calibration, under the working model
_LEAST_VARIANCE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class LiftMethod:
    """The lift: in its equal form where all points have the same number of runs, else in the other."""

    target: Target = "probability"
    confidence: float | None = 0.95
    options: tuple[str, ...] = ("rank", "plan", "seed", "normaliser")
    normalisers: tuple[str, ...] = ("predictive", "posterior", "constant")

    def fewest_points(self, request: CalibrateRequest) -> int | None:
        """With how many points the rank leaves something to the binomial bounds."""
        return fewest_lifted_points(request.rank or 1, request.miss, request.confidence)

    def calibrate(
        self, request: CalibrateRequest, posterior: FullPosterior, held_out: Observations, prediction: Prediction
    ) -> tuple[Calibration, WeightedThreshold | None]:
        """The threshold for frequencies where all points have the same runs, else that for the bounds on f."""
        points = len(held_out)
        every, runs = runs_per_point(held_out, posterior)
        rank = request.rank or (
            1 if request.density is None else density_rank(request.density, posterior.space, points)
        )
        eta = lift_miss(points, rank, request.miss, request.confidence)
        normaliser, why = request.normaliser, "given"
        threshold: float | None = inf
        weighted: WeightedThreshold | None = None
        if eta is None:
            request = replace(request, rank=rank)
            request.refuse_trivial(points, self.fewest_points(request))
            if normaliser is None:
                normaliser, why = "constant", "no matter which"
        else:
            if normaliser is None:
                normaliser, why = _choose_normaliser(posterior, points, runs, rank, eta, request.level, request.seed)
            mean = centre(prediction)
            distance = distances(held_out, mean) if every is not None else lifted_distances(held_out, mean, eta)
            scores = distance / difficulty(normaliser, prediction, runs)
            threshold, weighted = threshold_of(request, held_out, scores, rank, rank / (points + 1))
        calibration = Calibration(
            points=points,
            runs=every,
            rank=None if eta is None else rank,
            threshold=threshold,
            miss=request.miss if eta is None else conformal_miss(points, rank, request.confidence),
            normaliser=normaliser,
            normaliser_runs=runs,
            fingerprint=held_out.fingerprint,
            eta=eta,
            why=why,
        )
        return calibration, weighted

    def interval(self, calibration: Calibration, mean: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """C, from the frequencies that mean ± reach leaves possible; where runs differ, mean ± reach is C itself."""
        if calibration.runs is not None and calibration.eta is not None:
            return lifted(mean, reach, calibration.runs, calibration.eta)
        return around(mean, reach)


LIFT: Final = LiftMethod()


def lift_miss(points: int, rank: int, miss: float, confidence: float | None) -> float | None:
    """η: how often the binomial bounds may miss when the whole may miss with probability `miss`, ε.

    It is 1 - ε₁/ε, and None where that leaves nothing: the points are too few for the rank.

    >>> lift_miss(199, 1, 0.1, None), lift_miss(9, 1, 0.1, None)
    (0.95, None)
    """
    eta = 1.0 - conformal_miss(points, rank, confidence) / miss if rank <= points else 0.0
    return eta if eta > ROUNDING else None


def fewest_lifted_points(rank: int, miss: float, confidence: float | None) -> int | None:
    """With how many points the rank begins to leave something to the binomial bounds; None beyond all reason.

    >>> fewest_lifted_points(1, 0.1, None), fewest_lifted_points(1, 0.1, 0.95)
    (10, 29)
    """
    if rank == 1 and confidence is not None:  # in closed form, so that a study is read without scipy
        fewest = floor(log1p(-confidence) / log1p(-miss * (1.0 - ROUNDING))) + 1
        return fewest if fewest <= 2 * _MOST_POINTS else None
    high = max(rank, 1)
    while lift_miss(high, rank, miss, confidence) is None:
        if high > _MOST_POINTS:
            return None
        high *= 2
    low = max(rank, high // 2)
    while low < high:
        middle = (low + high) // 2
        enough = lift_miss(middle, rank, miss, confidence) is not None
        low, high = (low, middle) if enough else (middle + 1, high)
    return high


def lifted(mean: FloatArray, reach: FloatArray, runs: int, eta: float) -> tuple[FloatArray, FloatArray]:
    """The lower and upper ends of C, from intervals mean ± reach for the frequency of `runs` runs."""
    slack = ROUNDING + 1e-12 * runs  # a count that rounding misses by a hair is meant; more only widens
    least = np.clip(np.ceil(runs * (mean - reach) - slack), 0, runs)
    most = np.clip(np.floor(runs * (mean + reach) + slack), 0, runs)
    lower, upper = _of_each(lower_bound, least, runs, eta), _of_each(upper_bound, most, runs, eta)
    return np.minimum(lower, mean), np.maximum(upper, mean)


def _of_each(bound: _Bound, counts: FloatArray, runs: int, eta: float) -> FloatArray:
    """The bound of every count, computed once for all that are equal."""
    different, places = np.unique(counts, return_inverse=True)
    return bound(different, runs, eta)[places.reshape(counts.shape)]


def lifted_distances(observations: Observations, mean: FloatArray, eta: float) -> FloatArray:
    """S⁺ times u: how far the bounds on f at each point are from the mean; undecided runs count against both."""
    lower = lower_bound(observations.satisfied, observations.trials, eta)
    upper = upper_bound(observations.satisfied + observations.undecided, observations.trials, eta)
    return np.maximum(farthest(lower, upper, mean), 0.0)


def _choose_normaliser(
    posterior: FullPosterior, points: int, runs: int, rank: int, eta: float, level: float, seed: int | None
) -> tuple[str, str]:
    """The normaliser with which the lift is narrowest, judged by the training alone; and why it was chosen.

    The learner is fitted without a third of the training, three times, which shows its errors at points that it has
    not seen. Less the noise of the frequencies, they make a working model of f, under which calibrations with as many
    points and runs as are available are simulated, with the same draws for all. A training too small to be divided gets
    the predictive normaliser, and a posterior that cannot be fitted again its own deviation.
    """
    learner = learner_of(posterior)
    if learner is None:
        return "posterior", "the posterior cannot be fitted again, so no other was tried"
    training = posterior.training.observations
    known = np.flatnonzero(training.trials > training.undecided)
    if len(known) < _FEWEST_ROWS:
        return "predictive", "the training is too small to choose"
    rows = known[np.linspace(0, len(known) - 1, min(len(known), _MOST_ROWS)).round().astype(int)]
    seed = int(training.fingerprint[:8], 16) if seed is None else seed
    unseen = _cross_validated(learner, training[rows], level, seed)
    mean = centre(unseen)
    likely, doubt = _likely(mean, unseen.std, training[rows])
    rng = stream(seed, "normaliser", "calibrations")
    drawn = rng.integers(len(mean), size=(_REPETITIONS, points))
    truth = np.clip(likely[drawn] + doubt[drawn] * rng.standard_normal(drawn.shape), 0.0, 1.0)
    distance = np.abs(rng.binomial(runs, truth) / runs - mean[drawn])
    widths: dict[str, float] = {}
    for normaliser in LIFT.normalisers:
        u = difficulty(normaliser, unseen, runs)
        reach = np.array([[largest(scores, rank)] for scores in distance / u[drawn]]) * u
        lower, upper = joined(*lifted(mean, reach, runs, eta), unseen, runs)
        widths[normaliser] = float(np.mean(upper - lower))
    shown = ", ".join(f"{name} {width:.3g}" for name, width in widths.items())
    return min(widths, key=lambda name: widths[name]), f"by cross-validation, expected widths: {shown}"


def _cross_validated(learner: Learner, training: Observations, level: float, seed: int) -> Prediction:
    """The prediction at training points by fits that have not seen them."""
    folds = stream(seed, "normaliser", "folds").permutation(len(training)) % _FOLDS
    mean, std, lower, upper = np.empty((4, len(training)))
    for fold in range(_FOLDS):
        held_out = folds == fold
        part = refitted(
            learner,
            training[np.flatnonzero(~held_out)],
            stream_seed(seed, "normaliser", "fit", fold),
            "choosing a normaliser",
            "pass {normaliser='predictive'}, 'posterior' or 'constant'",
        )
        prediction = part.predict(training.points[np.flatnonzero(held_out)], level=level)
        mean[held_out], std[held_out] = prediction.mean, prediction.std
        lower[held_out], upper[held_out] = prediction.lower, prediction.upper
    return Prediction(training.points, mean, std, lower, upper, level, prediction.claim)


def _likely(mean: FloatArray, std: FloatArray, training: Observations) -> tuple[FloatArray, FloatArray]:
    """Where f is likely to be at each row, by the working model: a normal distribution's mean and deviation.

    Before the row's own frequency is used, f lies around f̂ with the variance v = a + bf̂(1 - f̂) + cs², in which a, b
    and c are from 0 up and fit the squared errors best; the frequency then moves it.
    """
    from scipy.optimize import nnls

    frequency, trials = training.frequency_bounds.mean(axis=1), training.trials.astype(np.float64)
    noise = np.where(trials > 1, frequency * (1.0 - frequency) / np.maximum(trials - 1.0, 1.0), mean * (1.0 - mean))
    features = np.column_stack([np.ones(len(mean)), mean * (1.0 - mean), std**2])
    features /= np.maximum(features.mean(axis=0), _LEAST_VARIANCE)
    weights, _ = nnls(features, (frequency - mean) ** 2 - noise)
    variance = features @ weights
    noise = np.maximum(mean * (1.0 - mean) / trials, 1.0 / trials**2)
    weight = variance / (variance + noise)
    return mean + weight * (frequency - mean), np.sqrt(weight * noise)
