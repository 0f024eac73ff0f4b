"""`certify` and `plan_certificate`: a claim about a region that is tested with fresh runs, or computed by cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

from sateen.core.errors import ExactError, InputError
from sateen.core.posterior import training_of
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.space import Points, Space
from sateen.core.text import shown
from sateen.core.types import File
from sateen.decision.certificate import Certificate, Evidence, claim_of, versions
from sateen.decision.corners import MARGIN, CornerTest, check_monotone, corner_trial, propose
from sateen.decision.fresh import Asked, FreshTest, Frozen, attempt_error, check_fresh_runs, fresh_seed, looker
from sateen.decision.planning import CertificatePlan, forecast
from sateen.decision.regions import Regions, checked_share
from sateen.decision.rigour import cell_test
from sateen.guarantee.guarantee import Guarantee
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.model import Model
from sateen.pools.pool import Executing, with_pool
from sateen.sampling.observe import MAX_EVENTS
from sateen.sampling.source import Function

_UNDECIDED: Final = 0.05  # of the space, at which cells stop by default
_MOST_SEED: Final = 2**63


@with_pool
def certify(
    regions: Regions,
    model: Model | Function,
    formula: Formula | str | None,
    *,
    by: Literal["fresh", "cells"] = "fresh",
    wrong: float = 0.01,
    confidence: float = 0.95,
    seed: int,
    tolerance: float = 0.0,
    monotone: Mapping[str, str] | None = None,
    box: Space | None = None,
    attempt: int = 1,
    budget: int | None = None,
    undecided: float | None = None,
    seconds: float | None = None,
    cells: int | None = None,
    store: File | None = None,
    executor: Executing | None = None,
    workers: int | None = None,
    progress: Progress | None = USUAL,
    max_events: int = MAX_EVENTS,
    max_time: float = math.inf,
    max_population: int | None = None,
) -> Certificate:
    """A certificate that the requested side of `regions` is right: on all but a share of it, or everywhere.

    **by="fresh"**, for any model or black box. The region is fixed first: with a margin z for a posterior, unchanged
    for a guarantee, or as a `box`. Points are drawn from it uniformly, and fresh runs test each of them. The claim:
    with probability `confidence`, all but a share of the region is right. The certificate states the share that was
    shown, and `holds` if it is at most `wrong`. It says nothing about one single θ. z and the size of the test are
    those of `plan_certificate`. At most `budget` runs are made.

    The draw has no free seed, so that nobody can draw until it passes: its seed is a hash of the region, the question
    and the `attempt`. Attempt k on one region may err with probability δ/(k(k+1)), where δ = 1 - confidence, so all
    attempts together err with probability δ at most. `seed` feeds only the forecast of the plan. If you try several
    regions, seeds or plans and show the best, you have made that many attempts: say so with `attempt`.

    **by="cells"**, for finite chains: rigorous bounds show that every θ of the certified cells is right. It ends when
    at most the share `undecided` of the space (0.05) is left, or when `seconds` or `cells` are used up. A `box` must be
    filled completely. `monotone={"k1": "+", "k2": "-"}` declares that f does not fall in k1 and does not rise in k2,
    which the claim then names as its assumption. With it, corners are tested instead if the model is a black box or
    cannot be bounded by cells.

    `tolerance` η weakens the claim to f >= p - η, or f <= p + η, which saves most of the runs near the boundary.
    Undecided runs count against the claim. A posterior that was trained on these runs, or on another question, is
    refused. With a `store`, the runs are kept as they are made, and a test that was stopped resumes.

    >>> import numpy as np, sateen as st
    >>> space = st.Space(k=(0.0, 1.0))
    >>> def coin(theta, rng):
    ...     return rng.random() < theta["k"]
    >>> points = space.grid(41)
    >>> seen = st.observe(coin, None, points, runs=200, seed=1)
    >>> regions = st.decide(st.EPGP().fit(seen, seed=2), above=0.5, seed=3)
    >>> certificate = st.certify(regions, coin, None, wrong=0.1, confidence=0.9, seed=4)
    >>> certificate.holds, certificate.claim.level >= 0.9
    (True, True)
    """
    progress = watcher(progress)
    check_request(regions, wrong, confidence, seed, attempt, budget)
    if by not in ("fresh", "cells"):
        raise InputError(f"{{by}} is 'fresh' or 'cells', not {shown(by)}", argument="by")
    formula = None if formula is None else formula_of(formula)
    asked = Asked.of(model, formula, max_events, max_time, max_population)
    if (training := training_of(regions.posterior)) is not None:
        asked.check_same(training.observations)
    options: dict[str, Any] = {"store": store, "executor": executor, "workers": workers, "progress": progress}
    plan: CertificatePlan | None = None
    evidence: Evidence
    if by == "fresh":
        strangers = {"monotone": monotone, "undecided": undecided, "seconds": seconds, "cells": cells}
        _refuse(strangers, "cells", "fresh")
        plan = forecast(
            regions,
            wrong=wrong,
            error=attempt_error(confidence, attempt),
            seed=seed,
            tolerance=tolerance,
            box=box,
            budget=budget,
        )
        frozen = Frozen(regions, plan.margin, tolerance, box)
        draw = fresh_seed(frozen, asked, attempt)
        evidence = run_fresh(frozen, plan, draw, model, formula, asked, options)
    else:
        undecided = undecided if undecided is None else checked_share(undecided, "undecided", "0.05")
        signs = {} if monotone is None else check_monotone(monotone, regions.space.names)
        why = "a black box has no states to bound" if not isinstance(model, Model) else ""
        found: Evidence | None = None
        if isinstance(model, Model) and formula is not None:
            _refuse({"budget": budget}, "fresh", "cells")
            limits = (_UNDECIDED if undecided is None else undecided, seconds, cells)
            try:
                frozen = Frozen(regions, None, tolerance, box)
                found = cell_test(frozen, model, formula, signs, *limits, progress)
                undecided = limits[0]
            except ExactError as error:
                if monotone is None:
                    raise
                why = str(error)
        if found is None:
            found = _corners(
                regions, signs, why, model, formula, asked, confidence, attempt, tolerance, box, seed, budget, options
            )
        evidence = found
    volume = evidence.frozen.volume(evidence.seed) if isinstance(evidence, FreshTest) else evidence.volume
    claim = claim_of(evidence, volume, confidence)
    told = versions()
    head = by, regions, asked, evidence, claim, volume, float(wrong), float(confidence), int(attempt), int(seed)
    return Certificate(*head, plan, undecided, told, model, formula)


def plan_certificate(
    regions: Regions,
    *,
    wrong: float = 0.01,
    confidence: float = 0.95,
    seed: int,
    tolerance: float = 0.0,
    box: Space | None = None,
    attempt: int = 1,
    budget: int | None = None,
) -> CertificatePlan:
    """What `certify` with the same arguments would do and cost if the posterior is right; it makes no runs.

    It chooses the margin z of the region, the number of points, and the level and the cap of the test at each point.
    Among tests that pass with probability 90 % and keep 90 % of the region, it takes the one with the fewest expected
    runs. A `budget` that is too small is refused, and the error says how much would suffice.
    """
    check_request(regions, wrong, confidence, seed, attempt, budget)
    error = attempt_error(confidence, attempt)
    return forecast(regions, wrong=wrong, error=error, seed=seed, tolerance=tolerance, box=box, budget=budget)


def run_fresh(
    frozen: Frozen,
    plan: CertificatePlan,
    seed: int,
    model: Model | Function,
    formula: Formula | None,
    asked: Asked,
    options: Mapping[str, Any],
) -> FreshTest:
    """The planned test with the draw of a seed; refused where the posterior has seen its points or runs."""
    points = frozen.draw(plan.points, seed)
    check_fresh_runs(frozen, asked, points, seed)
    trial = frozen.trial(points, plan.alpha, plan.cap, plan.flags, plan.budget)
    outcome = trial.play(looker(model, formula, asked, points, seed, options))
    return FreshTest(frozen, seed, points, outcome, plan.error)


def run_corners(
    frozen: Frozen,
    signs: Mapping[str, str],
    corners: Points,
    error: float,
    budget: int | None,
    seed: int,
    model: Model | Function,
    formula: Formula | None,
    asked: Asked,
    options: Mapping[str, Any],
) -> CornerTest:
    """The test of proposed corners with the runs of a seed."""
    check_fresh_runs(frozen, asked, corners, seed)
    trial = corner_trial(frozen, corners, error, budget)
    outcome = trial.play(looker(model, formula, asked, corners, seed, options))
    return CornerTest(frozen, signs, seed, corners, outcome, error)


def _corners(
    regions: Regions,
    signs: Mapping[str, str],
    why: str,
    model: Model | Function,
    formula: Formula | None,
    asked: Asked,
    confidence: float,
    attempt: int,
    tolerance: float,
    box: Space | None,
    seed: int,
    budget: int | None,
    options: Mapping[str, Any],
) -> CornerTest:
    missing = [name for name in regions.space.names if name not in signs]
    if missing:
        raise InputError(
            f"cells cannot bound this: {why}; corners can stand for them if f is monotone in every parameter, and of "
            f"{missing[0]} nothing is declared",
            argument="monotone",
            remedy=f"declare {{monotone}} for {', '.join(missing)} too, or certify with {{by='fresh'}}",
        )
    margin = None if box is not None or isinstance(regions.predictor, Guarantee) else MARGIN
    frozen = Frozen(regions, margin, tolerance, box)
    corners = propose(frozen, signs, seed)
    draw = fresh_seed(frozen, asked, attempt, signs)
    error = attempt_error(confidence, attempt)
    return run_corners(frozen, signs, corners, error, budget, draw, model, formula, asked, options)


def check_request(
    regions: object, wrong: object, confidence: object, seed: object, attempt: object, budget: object
) -> None:
    """Refuse what no certificate can be asked for."""
    if not isinstance(regions, Regions):
        problem = f"{{regions}} are what st.decide gives, not a {type(regions).__name__}"
        raise InputError(problem, argument="regions", remedy="write st.decide(posterior, above=0.1, seed=...)")
    checked_share(wrong, "wrong", "0.01")
    checked_share(confidence, "confidence", "0.95")
    for name, value, least in (("attempt", attempt, 1), ("budget", budget, 1), ("seed", seed, 0)):
        if value is None and name == "budget":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _MOST_SEED:
            problem = f"{{{name}}} is a whole number from {least} up, not {shown(value)}"
            raise InputError(problem, argument=name)


def _refuse(given: Mapping[str, object], its: str, by: str) -> None:
    """Refuse arguments of the other kind of certificate rather than ignore them."""
    if strange := [name for name, value in given.items() if value is not None]:
        problem = f"{{{strange[0]}}} is for by='{its}', and this is by='{by}'"
        raise InputError(problem, argument=strange[0], remedy=f"leave it out, or pass {{by='{its}'}}")
