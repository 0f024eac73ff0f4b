"""Guarantee methods: what one is, what its calibration leaves behind, and the registry of all of them.

A new method is one file with a `GuaranteeMethod` and one line in `METHODS`; another package adds its method by an entry
point in the group `sateen.guarantees`. This module is light, so that `sateen --help` can list the methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sateen.core.registry import Registry

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.posterior import FullPosterior
    from sateen.core.prediction import Prediction, Target
    from sateen.core.types import FloatArray
    from sateen.guarantee.conformal import WeightedThreshold
    from sateen.guarantee.request import CalibrateRequest


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a guarantee was made: from which held-out points, and with what outcome.

    - `points`, `runs`: how many held-out points, and runs at each; None where the numbers differ, 0 where the
      probabilities at the points were computed.
    - `rank`: the threshold is the score of this rank, counted from the largest; None where a density weighs the scores.
    - `threshold`: what a fresh score seldom exceeds; infinite where the points are too few, None with a density.
    - `miss`: how seldom: ε₁, the conformal part of what the claim may miss.
    - `eta`: how often the binomial bounds of the lift may miss, for which it reads the scores off more tightly.
    - `margin`: what the Chernoff bound adds at each end; None where runs differ, and each score has its own in it.
    - `normaliser`: what scores were divided by; `normaliser_runs` the M in it; `why`: how it was chosen.
    - `floor`: what is added to the normaliser everywhere, so that a margin is never divided by nearly 0.
    - `fingerprint`: that of the held-out observations.
    """

    points: int
    runs: int | None
    rank: int | None
    threshold: float | None
    miss: float
    normaliser: str
    normaliser_runs: int
    fingerprint: str
    eta: float | None = None
    margin: float | None = 0.0
    why: str = "given"
    floor: float = 0.0

    def __str__(self) -> str:
        runs = "different numbers of runs" if self.runs is None else f"{self.runs:,} run{'s' * (self.runs != 1)}"
        normaliser = f"normaliser {self.normaliser}" + (f" + {self.floor:.4g}" if self.floor else "")
        labels = "their computed probabilities" if self.runs == 0 else runs
        parts = [f"{self.points:,} held-out points with {labels}", f"{normaliser} ({self.why})"]
        if self.threshold is not None:
            rank = f" (rank {self.rank})" if self.rank else ", too few points for the level"
            parts.append(f"threshold {self.threshold:.4g}{rank}")
        if self.eta is not None:
            parts.append(f"η {self.eta:.4g}")
        if self.margin is None:
            parts.append("each point's margin in its score")
        elif self.margin:
            parts.append(f"margin {self.margin:.4g}")
        return ", ".join(parts)


class GuaranteeMethod(Protocol):
    """One way to prove intervals: which options it takes, how it calibrates, and how it makes an interval."""

    @property
    def target(self) -> Target:
        """What its intervals contain: "probability", or the "frequency" among fresh runs."""

    @property
    def confidence(self) -> float | None:
        """The confidence of its claim by default; None is marginal."""

    @property
    def options(self) -> tuple[str, ...]:
        """Which of "rank", "plan", "seed", "split" and "normaliser" apply to it."""

    @property
    def normalisers(self) -> tuple[str, ...]:
        """The names of the normalisers it can use, of those in `sateen.guarantee.normaliser.NORMALISERS`."""

    def fewest_points(self, request: CalibrateRequest) -> int | None:
        """The fewest held-out points that give a finite threshold; None where no number that can be observed does."""

    def calibrate(
        self, request: CalibrateRequest, posterior: FullPosterior, held_out: Observations, prediction: Prediction
    ) -> tuple[Calibration, WeightedThreshold | None]:
        """The threshold of the scores, besides the calibration only where a density weighs them.

        `prediction` is the posterior's at the held-out points, at the level asked.
        """

    def interval(self, calibration: Calibration, mean: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The ends of the intervals around means; `reach` is the threshold times the difficulty at each point."""


METHODS: Final[Registry[GuaranteeMethod]] = Registry(
    "guarantee method",
    "sateen.guarantees",
    {
        "icp": "sateen.guarantee.distance:ICP",
        "nicp": "sateen.guarantee.distance:NICP",
        "chernoff": "sateen.guarantee.distance:CHERNOFF",
        "lift": "sateen.guarantee.lift:LIFT",
    },
)
