"""`calibrate`: from a posterior and held-out observations to a Guarantee."""

from __future__ import annotations

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Posterior, drawn_uniformly
from sateen.core.threads import on_one_thread
from sateen.guarantee.checks import check_held_out, check_posterior
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.methods import METHODS
from sateen.guarantee.request import CalibrateRequest, Default, Density, Planned, PlanRequest

__all__ = ["calibrate"]


@on_one_thread
def calibrate(
    posterior: Posterior,
    held_out: Observations,
    *,
    method: str = "lift",
    level: float | Default = "default",
    confidence: float | Default | None = "default",
    rank: int | None = None,
    normaliser: str | None = None,
    split: float | None = None,
    density: Density | None = None,
    plan: Planned | None = None,
    allow_trivial: bool = False,
    seed: int | None = None,
) -> Guarantee:
    """The posterior with intervals that are right for a share `level` of θ, however wrong the posterior is.

    `held_out` are observations at points drawn independently and uniformly from the space, with no point and no run of
    the training. The level is 0.9, or the plan's. With a `confidence`, such as 0.95, the claim is PAC: that share of
    all calibrations keeps it, or more; with None it is marginal, on average over calibrations. By default the lift is
    PAC with 0.95, or as planned; the others, and everything with a density, are marginal.

    - `method="lift"`, about the probability f: the narrowest. The points may differ in their runs, if the numbers were
      fixed before the runs were made. `rank` m, by default 1 or the `plan`'s, must be fixed before held_out is seen.
      `normaliser` is "predictive", "posterior" or "constant"; by default the plan's, or the one that cross-validation
      on the training finds narrowest, for which the recipe is fitted three times more, with `seed`.
    - `method="icp"` and `"nicp"`, about the frequency among as many fresh runs, not about f: f̂ ± τ and f̂ ± τu(θ), where
      the `normaliser` u is "posterior" (the default), "quantile" or "predictive".
    - `method="chernoff"`, about f: `icp`, or `nicp` with a normaliser, with the Chernoff bound added at each end;
      `split` is the share of 1 - level that the conformal part may miss, by default a half.

    `density` says that θ will be drawn with this density rather than uniformly: it takes an (n, dimension) array and
    gives n numbers, relative to the uniform measure of the space; a constant factor does not matter. Where the points
    are too few for the level, this is refused, unless `allow_trivial`, which gives the interval [0, 1].

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
    check_held_out(held_out, posterior)
    how = METHODS[method]
    prediction = whole.predict(held_out.points, level=request.level)
    calibration, threshold = how.calibrate(request, whole, held_out, prediction)
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
    )
    return Guarantee(method, posterior, claim, calibration, threshold)
