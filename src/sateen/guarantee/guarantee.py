"""A Guarantee: a posterior whose intervals are calibrated, with a Claim that was proven beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Final

import numpy as np

from sateen.core.errors import InputError, SpaceError
from sateen.core.prediction import Claim, Posterior, Prediction
from sateen.core.space import Points, Space
from sateen.core.text import number_text, percent
from sateen.core.types import File
from sateen.guarantee.conformal import Threshold, WeightedThreshold
from sateen.guarantee.lift import lifted
from sateen.guarantee.methods import Method, Normaliser
from sateen.guarantee.normaliser import centre, difficulty

__all__ = ["Calibration", "Guarantee"]

_ROUNDING: Final = 1e-12  # by which intervals are widened, so that what lies on their ends is inside


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a guarantee was made: from which held-out points, and with what outcome.

    - `points`, `runs`: how many held-out points, and runs at each; None where the numbers differ.
    - `rank`: the threshold is the score of this rank, counted from the largest; None where a density weighs the scores.
    - `threshold`: what a fresh score seldom exceeds; infinite where the points are too few, None with a density.
    - `miss`: how seldom: ε₁, the conformal part of what the claim may miss.
    - `eta`: how often the binomial bounds of the lift may miss, for which it reads the scores off more tightly.
    - `margin`: what the Chernoff bound adds at each end.
    - `normaliser`: what scores were divided by; `normaliser_runs` the M in it; `why`: how it was chosen.
    - `fingerprint`: that of the held-out observations.
    """

    points: int
    runs: int | None
    rank: int | None
    threshold: float | None
    miss: float
    normaliser: Normaliser
    normaliser_runs: int
    fingerprint: str
    eta: float | None = None
    margin: float = 0.0
    why: str = "given"

    def __str__(self) -> str:
        runs = "different numbers of runs" if self.runs is None else f"{self.runs:,} run{'s' * (self.runs != 1)}"
        parts = [f"{self.points:,} held-out points with {runs}", f"normaliser {self.normaliser} ({self.why})"]
        if self.threshold is not None:
            rank = f" (rank {self.rank})" if self.rank else ", too few points for the level"
            parts.append(f"threshold {self.threshold:.4g}{rank}")
        if self.eta is not None:
            parts.append(f"η {self.eta:.4g}")
        if self.margin:
            parts.append(f"margin {self.margin:.4g}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarantee:
    """A posterior with intervals that keep what their `claim` says, however wrong the posterior is.

    `calibrate` makes it. Mean and standard deviation are the posterior's; the level of the intervals was fixed at
    calibration. `calibration` tells how they were made.
    """

    method: Method
    posterior: Posterior
    claim: Claim
    calibration: Calibration
    threshold: Threshold | WeightedThreshold

    @property
    def space(self) -> Space:
        """Where it predicts, and what its claim is about."""
        return self.posterior.space

    @property
    def level(self) -> float:
        """The share of θ for which the interval is right, as the claim says it."""
        return self.claim.level or 0.0

    def predict(self, points: object) -> Prediction:
        """The posterior's mean and deviation with the guaranteed interval, at points, a dict, an array or a data frame.

        Points outside the space are refused: the claim says nothing there.
        """
        where = self._points(points)
        believed = self.posterior.predict(where, level=self.level)
        mean = centre(believed)
        made = self.calibration
        u = difficulty(made.normaliser, believed, made.normaliser_runs)
        reach = self.threshold.at(where.theta) * u
        if self.method == "lift" and made.runs is not None and made.eta is not None:
            lower, upper = lifted(mean, reach, made.runs, made.eta)
        else:
            half = reach + made.margin + _ROUNDING
            lower, upper = mean - half, mean + half
        ends = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        return Prediction(where, mean, believed.std, *ends, self.level, self.claim)

    def save(self, file: File) -> None:
        """Write one safe file, with the posterior in it, which `st.load` reads back."""
        from sateen.guarantee.archive import write_guarantee

        write_guarantee(self, file)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean and the guaranteed intervals over one parameter, or the mean over two."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return self.predict(self.space.grid(200 if len(self.space) == 1 else 50)).plot(ax=ax)

    def _points(self, points: object) -> Points:
        if isinstance(points, Points) and points.space == self.space:
            where = points  # with its design
        else:
            where = self.space.points(points, extrapolate=True)
        for name, own, column in zip(self.space.names, self.space.ranges.values(), where.theta.T, strict=True):
            if (outside := (column < own.low) | (column > own.high)).any():
                row = int(np.argmax(outside))
                raise SpaceError(
                    f"{name} is {number_text(column[row])} in row {row}, outside its range {own}, where the guarantee "
                    "claims nothing; move it inside, or ask the posterior: posterior.predict(..., extrapolate=True)"
                )
        return where

    def __repr__(self) -> str:
        kind = getattr(self.posterior, "kind", type(self.posterior).__name__)
        sure = "" if self.claim.confidence is None else f" with confidence {percent(self.claim.confidence)}"
        made = self.calibration
        level = f"{percent(self.level)} {self.claim.target}"
        return f"<Guarantee {self.method} of {kind} over {self.space!r}: {level}{sure}, from {made.points:,} points>"

    def _repr_html_(self) -> str:
        lines = [repr(self), f"{self.claim}.", str(self.calibration)]
        return "<p>" + "<br>".join(escape(line) for line in lines) + "</p>"
