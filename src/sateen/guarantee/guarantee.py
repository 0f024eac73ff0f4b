"""`calibrate`, and the Guarantee it makes: a posterior with calibrated intervals, whose Claim was proven beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sateen.core.display import paragraph, pictured
from sateen.core.errors import InputError, SpaceError
from sateen.core.observations import Observations
from sateen.core.posterior import complete, training_of
from sateen.core.prediction import Claim, Posterior, Prediction, drawn_uniformly
from sateen.core.registry import call_provider
from sateen.core.space import Points, Space
from sateen.core.text import percent, plural
from sateen.core.threads import on_one_thread
from sateen.core.types import Axes, File
from sateen.guarantee.checks import check_held_out, check_posterior
from sateen.guarantee.conformal import WeightedThreshold
from sateen.guarantee.methods import METHODS, Calibration
from sateen.guarantee.normaliser import centre, difficulty, joined, rounded_outward
from sateen.guarantee.request import CalibrateRequest, Default, Density, PlanRequest
from sateen.guarantee.truth import Truth, calibrate_by_truth

if TYPE_CHECKING:
    from sateen.guarantee.plan import Plan


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarantee:
    """A posterior with intervals that keep their `claim`, however wrong the posterior is.

    `calibrate` makes it. Mean and standard deviation are those of the posterior. The level of the intervals was fixed
    at calibration. If they are about the probability and come from runs, they contain the credible interval of the same
    level. No interval is a single point. `calibration` says how they were made; `weighted` is the threshold if a
    density weights the scores.
    """

    method: str
    posterior: Posterior
    claim: Claim
    calibration: Calibration
    weighted: WeightedThreshold | None = None

    @property
    def space(self) -> Space:
        """Where it predicts, and what its claim is about."""
        return self.posterior.space

    @property
    def level(self) -> float:
        """The share of θ for which the interval is right, according to the claim."""
        return self.claim.level or 0.0

    def predict(self, points: object) -> Prediction:
        """The posterior's mean and deviation with the guaranteed interval, at points, a dict, an array or a data frame.

        Points outside the space are refused, because the claim does not hold there.
        """
        where = self._points(points)
        believed = self.posterior.predict(where, level=self.level)
        mean = centre(believed)
        calibration = self.calibration
        u = difficulty(calibration.normaliser, believed, calibration.normaliser_runs, calibration.floor)
        threshold = self.weighted.at(where.theta) if self.weighted else np.float64(calibration.threshold)
        lower, upper = METHODS[self.method].interval(calibration, mean, threshold * u)
        if self.claim.target == "probability" and calibration.runs != 0:
            lower, upper = joined(lower, upper, believed, calibration.normaliser_runs)
        return Prediction(where, mean, believed.std, *rounded_outward(lower, upper), self.level, self.claim)

    def save(self, file: File) -> None:
        """Write one safe file that contains the posterior too; `st.load` reads it back."""
        call_provider("save guarantee", self, file)

    def plot(self, ax: object = None) -> Axes:
        """Draw the mean and the guaranteed intervals over one parameter, or the mean over two."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return self.predict(self.space.grid(200 if len(self.space) == 1 else 50)).plot(ax=ax)

    def _points(self, points: object) -> Points:
        try:
            return complete(self.posterior)._points(points, extrapolate=False)
        except SpaceError as error:
            if error.argument != "extrapolate":
                raise
            raise SpaceError(
                f"{error.message}, where the guarantee claims nothing; move it inside, or ask the posterior: "
                "posterior.predict(..., extrapolate=True)"
            ) from None

    def __repr__(self) -> str:
        sure = "" if self.claim.confidence is None else f" with confidence {percent(self.claim.confidence)}"
        promise = f"{percent(self.level)} {self.claim.target}{sure}, from {plural(self.calibration.points, 'point')}"
        return f"<Guarantee {self.method} of {complete(self.posterior).kind} over {self.space!r}: {promise}>"

    def _repr_html_(self) -> str:
        words = "\n".join([repr(self), f"{self.claim}.", str(self.calibration)])
        return pictured(self.plot, words) if len(self.space) in (1, 2) else paragraph(words)


@on_one_thread
def calibrate(
    posterior: Posterior,
    held_out: Observations | None = None,
    *,
    truth: tuple[Points, npt.ArrayLike] | Truth | None = None,
    method: str = "lift",
    level: float | Default = "default",
    confidence: float | Default | None = "default",
    rank: int | None = None,
    normaliser: str | None = None,
    split: float | None = None,
    density: Density | None = None,
    plan: Plan | None = None,
    allow_trivial: bool = False,
    seed: int | None = None,
) -> Guarantee:
    """Intervals that are right for a share `level` of θ, however wrong the posterior is.

    `held_out` has observations at points drawn independently and uniformly from the space; it shares no point and no
    run with the training. Or give the `truth` at such points: (points, values), if `st.exact` can compute it. Intervals
    are then as narrow as the errors of the posterior allow. Of the other arguments, only `level`, `confidence`,
    `density`, `allow_trivial` and `normaliser` ("posterior" or "constant") apply then. `level` is by default 0.9, or
    that of the plan. With a `confidence`, such as 0.95, the claim is PAC: it holds for at least that share of all
    calibrations. With None it is marginal: it holds on average over calibrations. By default the lift is PAC with 0.95,
    or as planned; the other methods, and everything with a density, are marginal.

    - `method="lift"`, about the probability f: the narrowest. Points may have different numbers of runs, if these were
      fixed before the runs were made. `rank` m, by default 1 or that of the `plan`, must be fixed before held_out is
      seen. `normaliser` is "predictive", "posterior" or "constant". By default it is that of the plan, or the one that
      cross-validation on the training data finds narrowest, for which the recipe is fitted three more times, with
      `seed`.
    - `method="icp"` and `"nicp"`, about the frequency among as many fresh runs, not about f: f̂ ± τ and f̂ ± τu(θ), where
      the `normaliser` u is "posterior" (the default), "quantile" or "predictive".
    - `method="chernoff"`, about f: `icp`, or `nicp` with a normaliser, with the Chernoff bound added at each end;
      `split` is the share of 1 - level that the conformal part may miss, by default a half. Points may have different
      numbers of runs, as for the lift; then each score includes the bound of its own point.

    `density` says that θ will be drawn with this density instead of uniformly. It takes an (n, dimension) array and
    returns n numbers, relative to the uniform measure of the space; a constant factor does not matter. If there are too
    few points for the level, calibration is refused, unless `allow_trivial` is set, which gives the interval [0, 1].

    A keyword that does not apply to the method is an error.
    """
    whole = check_posterior(posterior)
    if isinstance(plan, PlanRequest):
        raise InputError("{plan} is what st.plan gives, not the request of one", argument="plan")
    request = CalibrateRequest.of(
        method,
        level=level,
        confidence=confidence,
        rank=rank,
        normaliser=normaliser,
        split=split,
        density=density,
        plan=plan,
        allow_trivial=allow_trivial,
        seed=seed,
    )
    how = METHODS[method]
    if truth is not None:
        if held_out is not None or plan is not None:
            other = "held_out" if held_out is not None else "plan"
            problem = f"{{truth}} needs no runs, and {{{other}}} is about runs; leave one of the two out"
            raise InputError(problem, argument=other)
        calibration, weighted = calibrate_by_truth(request, whole, Truth.of(truth))
    else:
        check_held_out(held_out, posterior)
        assert held_out is not None
        prediction = whole.predict(held_out.points, level=request.level)
        calibration, weighted = how.calibrate(request, whole, held_out, prediction)
    measure = drawn_uniformly(posterior.space)
    if density is not None:
        measure = f"drawn with the given density on {measure.removeprefix('drawn uniformly from ')}"
    claim = Claim(
        how.target,
        "marginal" if request.confidence is None else "pac",
        request.level,
        measure,
        confidence=request.confidence,
        points=calibration.points,
        runs=calibration.runs,
        by=method,
        assuming=training.observations.assumption if (training := training_of(posterior)) else "",
    )
    return Guarantee(method, posterior, claim, calibration, weighted)
