"""The methods `icp`, `nicp` and `chernoff`: intervals from the distance between posterior mean and frequency.

ICP and NICP cover the frequency among as many fresh runs: f̂ ± τ, and f̂ ± τu(θ) with a normaliser u. Chernoff adds to
either the Chernoff bound on how far a frequency is from its probability, and so covers the probability f itself.
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
    fewest_points,
    threshold_of,
)
from sateen.guarantee.methods import Calibration
from sateen.guarantee.normaliser import centre, difficulty

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
        """The threshold of the scores |frequency - f̂|/u, and the margin for the rest of the miss."""
        runs, miss = self._one_number_of_runs(held_out), self._miss(request)
        normaliser = request.normaliser or self.normaliser
        scores = distances(held_out, centre(prediction)) / difficulty(normaliser, prediction, runs)
        rank = conformal_rank(len(held_out), miss, request.confidence)
        if not rank and request.density is None:
            request.refuse_trivial(len(held_out), self.fewest_points(request))
        threshold, weighted = threshold_of(request, held_out, scores, rank, miss)
        calibration = Calibration(
            points=len(held_out),
            runs=runs,
            rank=rank if request.density is None and rank else None,
            threshold=threshold,
            miss=miss,
            normaliser=normaliser,
            normaliser_runs=runs,
            fingerprint=held_out.fingerprint,
            margin=hoeffding_margin(runs, request.miss - miss) if "split" in self.options else 0.0,
            why="given" if request.normaliser else "the default",
        )
        return calibration, weighted

    def interval(self, calibration: Calibration, mean: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f̂ ± (τu + margin)."""
        return around(mean, reach + calibration.margin)

    def _miss(self, request: CalibrateRequest) -> float:
        """ε₁: what the conformal part may miss."""
        return request.miss * (request.split or _SPLIT) if "split" in self.options else request.miss

    def _one_number_of_runs(self, held_out: Observations) -> int:
        """The runs per point: a fresh frequency is one of as many runs, so all points must have the same number."""
        numbers = np.unique(held_out.trials)
        if len(numbers) > 1:
            several = f"{numbers[0]:,} {'and' if len(numbers) == 2 else 'to'} {numbers[-1]:,}"
            raise InputError(
                f"{{held_out}} mixes {several} runs per point; {self.name} needs one number",
                argument="held_out",
                remedy="observe all points with the same runs, or use {method='lift'}, which can do without",
            )
        return int(numbers[0])


_DIFFICULTIES: Final = ("posterior", "quantile", "predictive")
ICP: Final = DistanceMethod("icp", "frequency")
NICP: Final = DistanceMethod("nicp", "frequency", ("normaliser",), _DIFFICULTIES, "posterior")
CHERNOFF: Final = DistanceMethod("chernoff", "probability", ("split", "normaliser"), _DIFFICULTIES)
