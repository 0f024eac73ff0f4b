"""The methods `icp`, `nicp` and `chernoff`: intervals from the distance between posterior mean and frequency.

ICP and NICP cover the frequency among as many fresh runs: f̂ ± τ, and f̂ ± τu(θ) with a normaliser u. Chernoff adds to
either the Chernoff bound on how far a frequency is from its probability, and so covers the probability f itself.

Where the points have the same number M of runs, this is f̂ ± (τu + T₂), T₂ = sqrt(log(2/ε₂)/2M). *Proof.* A fresh
frequency of M runs is within τu of f̂ but for the probability ε₁, and within T₂ of f but for ε₂. ∎

Where their numbers M_i differ, no single M can stand for a fresh frequency, and the bound comes first, with T₂(M_i) at
point i: S⁺_i is how far the interval from K_i/M_i - T₂(M_i) to K_i/M_i + T₂(M_i), cut to [0, 1], reaches from f̂(θ_i),
divided by v(θ_i); T is the m-th largest of them, and f̂ ± Tv covers f but for the probability ε₁ + ε₂. *Proof.* Let
S = |f - f̂|/v, unseen. The M_i may depend on all points, but not on the outcomes of runs. Given the points and the M_i,
the intervals are independent and contain f(θ_i), each with probability 1 - ε₂ or more, so that S⁺_i >= S_i. The coins
of the lift (see lift.py, with η = ε₂) then give P(S > T) <= ε₁/(1 - ε₂), given the calibration too; and that is at most
ε₁ + ε₂ as long as ε₁ + ε₂ <= 1. ∎

What ε₁/(1 - ε₂) leaves of ε₁ + ε₂ is not spent: the bound is then what it is with equal runs, and the lift spends it.
The proof holds for every v that the training alone has fixed. Without a normaliser v = 1, and what equal runs give is
unchanged but for the cut at 0 and 1. With one, v = u + T₂(M₀), M₀ the typical runs of the training: each S⁺_i has a
T₂(M_i) in it, which divided by a small u alone would decide the width of all intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction, Target
from sateen.core.proportions import hoeffding_margin
from sateen.core.types import FloatArray
from sateen.guarantee.conformal import (
    WeightedThreshold,
    around,
    conformal_rank,
    distances,
    farthest,
    fewest_points,
    threshold_of,
)
from sateen.guarantee.methods import Calibration
from sateen.guarantee.normaliser import centre, difficulty, runs_per_point

if TYPE_CHECKING:
    from sateen.guarantee.request import CalibrateRequest

_SPLIT: Final = 0.5  # of what may be missed, for the conformal part


@dataclass(frozen=True, slots=True)
class DistanceMethod:
    """ICP, NICP, or either of them with the Chernoff bound: the latter where `split` is one of its options."""

    name: str
    target: Target
    options: tuple[str, ...] = ()
    normalisers: tuple[str, ...] = ()
    normaliser: str = "constant"  # by default
    confidence: float | None = None

    def fewest_points(self, request: CalibrateRequest) -> int | None:
        """How many points give a rank; with a density that is known only once they are weighed."""
        return 1 if request.density is not None else fewest_points(self._miss(request), request.confidence)

    def calibrate(
        self, request: CalibrateRequest, posterior: FullPosterior, held_out: Observations, prediction: Prediction
    ) -> tuple[Calibration, WeightedThreshold | None]:
        """The threshold of the scores |frequency - f̂|/u, and the margin for the rest of the miss.

        Where the runs differ, each score has its margin in it.
        """
        every, runs = runs_per_point(held_out, posterior)
        miss, normaliser = self._miss(request), request.normaliser or self.normaliser
        mean, margin, floor = centre(prediction), 0.0, 0.0
        if not self._has_margin:
            self._check_equal(held_out)
        else:
            margin = float(hoeffding_margin(runs, request.miss - miss))
        if every is None:
            distance = margined_distances(held_out, mean, request.miss - miss)
            floor = 0.0 if normaliser == "constant" else margin
        else:
            distance = distances(held_out, mean)
        scores = distance / difficulty(normaliser, prediction, runs, floor)
        rank = conformal_rank(len(held_out), miss, request.confidence)
        if not rank and request.density is None:
            request.refuse_trivial(len(held_out), self.fewest_points(request))
        threshold, weighted = threshold_of(request, held_out, scores, rank, miss)
        calibration = Calibration(
            points=len(held_out),
            runs=every,
            rank=rank if request.density is None and rank else None,
            threshold=threshold,
            miss=miss,
            normaliser=normaliser,
            normaliser_runs=runs,
            fingerprint=held_out.fingerprint,
            margin=margin if every is not None else None,
            why="given" if request.normaliser else "the default",
            floor=floor,
        )
        return calibration, weighted

    def interval(self, calibration: Calibration, mean: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f̂ ± (τu + margin); where the scores have the margins in them, f̂ ± τu."""
        return around(mean, reach + (calibration.margin or 0.0))

    def _miss(self, request: CalibrateRequest) -> float:
        """ε₁: what the conformal part may miss."""
        return request.miss * (request.split or _SPLIT) if self._has_margin else request.miss

    @property
    def _has_margin(self) -> bool:
        """Whether the Chernoff bound is added."""
        return "split" in self.options

    def _check_equal(self, held_out: Observations) -> None:
        """Refuse runs that differ: a fresh frequency is one of as many runs, so all points must have the same."""
        numbers = np.unique(held_out.trials)
        if len(numbers) > 1:
            several = f"{numbers[0]:,} {'and' if len(numbers) == 2 else 'to'} {numbers[-1]:,}"
            raise InputError(
                f"{{held_out}} mixes {several} runs per point; {self.name} needs one number",
                argument="held_out",
                remedy="observe all points with the same runs, or use {method='lift'} or {method='chernoff'}, "
                "which can do without",
            )


def margined_distances(observations: Observations, mean: FloatArray, miss: float) -> FloatArray:
    """S⁺ times v: how far f can be from the mean at each point by Chernoff's bound; undecided runs count against it."""
    margin = hoeffding_margin(observations.trials, miss)
    low, high = observations.frequency_bounds.T
    return farthest(np.maximum(low - margin, 0.0), np.minimum(high + margin, 1.0), mean)


_DIFFICULTIES: Final = ("posterior", "quantile", "predictive")
ICP: Final = DistanceMethod("icp", "frequency")
NICP: Final = DistanceMethod("nicp", "frequency", ("normaliser",), _DIFFICULTIES, "posterior")
CHERNOFF: Final = DistanceMethod("chernoff", "probability", ("split", "normaliser"), _DIFFICULTIES)
