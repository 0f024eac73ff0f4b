"""A Guarantee: a posterior whose intervals are calibrated, with a Claim that was proven beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from sateen.core.errors import InputError, SpaceError
from sateen.core.posterior import complete
from sateen.core.prediction import Claim, Posterior, Prediction
from sateen.core.registry import call_provider
from sateen.core.space import Points, Space
from sateen.core.text import number_text, percent, plural
from sateen.core.types import Axes, File
from sateen.guarantee.conformal import Threshold, WeightedThreshold
from sateen.guarantee.methods import METHODS, Calibration
from sateen.guarantee.normaliser import centre, difficulty

__all__ = ["Guarantee"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarantee:
    """A posterior with intervals that keep what their `claim` says, however wrong the posterior is.

    `calibrate` makes it. Mean and standard deviation are the posterior's; the level of the intervals was fixed at
    calibration. `calibration` tells how they were made.
    """

    method: str
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
        u = difficulty(self.calibration.normaliser, believed, self.calibration.normaliser_runs)
        reach = self.threshold.at(where.theta) * u
        lower, upper = METHODS[self.method].interval(self.calibration, mean, reach)
        ends = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        return Prediction(where, mean, believed.std, *ends, self.level, self.claim)

    def save(self, file: File) -> None:
        """Write one safe file, with the posterior in it, which `st.load` reads back."""
        call_provider("save guarantee", self, file)

    def plot(self, ax: object = None) -> Axes:
        """Draw the mean and the guaranteed intervals over one parameter, or the mean over two."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return self.predict(self.space.grid(200 if len(self.space) == 1 else 50)).plot(ax=ax)

    def _points(self, points: object) -> Points:
        if isinstance(points, Points) and points.space == self.space:
            where = points  # with its design
        else:
            where = self.space.points(points, extrapolate=True)
        for name, range_, column in zip(self.space.names, self.space.ranges.values(), where.theta.T, strict=True):
            if (outside := (column < range_.low) | (column > range_.high)).any():
                row = int(np.argmax(outside))
                raise SpaceError(
                    f"{name} is {number_text(column[row])} in row {row}, outside its range {range_}, where the "
                    "guarantee claims nothing; move it inside, or ask the posterior: "
                    "posterior.predict(..., extrapolate=True)"
                )
        return where

    def __repr__(self) -> str:
        sure = "" if self.claim.confidence is None else f" with confidence {percent(self.claim.confidence)}"
        promise = f"{percent(self.level)} {self.claim.target}{sure}, from {plural(self.calibration.points, 'point')}"
        return f"<Guarantee {self.method} of {complete(self.posterior).kind} over {self.space!r}: {promise}>"

    def _repr_html_(self) -> str:
        lines = [repr(self), f"{self.claim}.", str(self.calibration)]
        return "<p>" + "<br>".join(escape(line) for line in lines) + "</p>"
