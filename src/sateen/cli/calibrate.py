"""The command `calibrate`: from a posterior and observations that it has not seen to a guarantee in a file."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.learned import extreme_lines, extreme_of_runs, learned_content
from sateen.cli.output import draw, show
from sateen.cli.plan import plan_for
from sateen.cli.progress import Bar
from sateen.cli.sources import caps_of, kept, load_labels, load_posterior, question_of, reading
from sateen.core.errors import InputError
from sateen.core.seeds import stream_seed
from sateen.core.text import percent
from sateen.guarantee.methods import METHODS
from sateen.guarantee.request import CalibrateRequest, PlanRequest, check_truth_options

if TYPE_CHECKING:
    from sateen.core.posterior import FullPosterior
    from sateen.study.budget import Purchase
    from sateen.study.extremes import Extreme

_WAYS: Final = (
    "--seconds S, --width W, --budget RUNS, --plan PLAN.json, --points N with --runs M, or --exact with --points N"
)
# Options of what is observed now.
_FRESH: Final = ("seconds", "exact", "width", "budget", "points", "runs", "seed", "observations")
_ASKED: Final = ("method", "level", "confidence", "marginal", "rank", "normaliser", "split", "allow_trivial")
_SECONDS: Final = click.FloatRange(0.0, min_open=True)
_MOST: Final = 10**9  # points or runs of a plan
_PLAN_SEED: Final = 1  # of the rehearsal: the default of `sateen plan`


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """The command line of `calibrate`."""

    file: str
    held_out: str | None
    target: str
    plan: str | None
    width: float | None
    budget: int | None
    seconds: float | None
    exact: bool | None
    points: int | None
    runs: int | None
    seed: int
    observations: str | None
    drawn_uniformly: bool
    plot: str | None
    as_json: bool
    asked: Mapping[str, Any]  # of the guarantee: arguments of CalibrateRequest.of

    def check(self, fresh: list[str]) -> None:
        """An option that does not apply is an error, and no file is used twice; `fresh` say what to observe."""
        if self.held_out is not None:
            if fresh:
                raise click.UsageError(f"{fresh[0]} says how to observe, and HELD_OUT is observed; leave one out")
        elif self.drawn_uniformly:
            raise click.UsageError("--drawn-uniformly says how HELD_OUT was drawn, which is not given")
        else:
            by_hand = self.points is not None or self.runs is not None
            costs = [self.width, self.budget, self.plan, self.seconds, by_hand or None]
            if sum(cost is not None for cost in costs) > 1:
                raise click.UsageError(
                    f"nothing to calibrate with: give a file HELD_OUT of observations, or one of {_WAYS}"
                )
            if self.exact and (self.runs is not None or (self.points is None and any(costs[:3]))):
                raise click.UsageError("--exact makes no runs; give it --points N or --seconds S, or neither")
            if self.by_time and self.asked["method"] != "lift" and not self.exact:
                method = self.asked["method"]
                raise click.UsageError(f"for --method {method} give --points N with --runs M; seconds plan only a lift")
            if by_hand and not self.exact and (self.points is None or self.runs is None):
                raise click.UsageError("--points N and --runs M go together: N points with M runs each")
        files = {"POSTERIOR": self.file, "HELD_OUT": self.held_out, "--plan": self.plan}
        files |= {"-o": self.target, "--observations": self.observations, "--plot": self.plot}
        shared.check_files(files)

    @property
    def by_time(self) -> bool:
        """Whether seconds say what is observed or computed: those given, or as many as the training took."""
        costs = (self.held_out, self.width, self.budget, self.plan, self.points)
        return all(cost is None for cost in costs)

    @property
    def planned_by(self) -> str:
        """The option that gives the plan, if one does."""
        return next((f"--{name}" for name in ("width", "budget") if getattr(self, name) is not None), "--plan")

    @property
    def purchases(self) -> Path:
        """The file that has what seconds buy of the posterior, beside the guarantee."""
        return Path(self.target).with_name(f"{Path(self.file).stem}.budget.json")

    def plan_request(self) -> PlanRequest | None:
        """The plan to make, if one is asked for."""
        if self.width is None and self.budget is None:
            return None
        goal = {name: self.asked[name] for name in ("level", "confidence", "marginal", "normaliser")}
        return PlanRequest.of(width=self.width, budget=self.budget, seed=_PLAN_SEED, **goal)


def _finite(ctx: click.Context, option: click.Parameter, seconds: float | None) -> float | None:
    if seconds is not None and not math.isfinite(seconds):
        raise click.BadParameter(f"{seconds} is not a finite number of seconds")
    return seconds


@click.command()
@click.argument("file", metavar="POSTERIOR.safetensors")
@click.argument("held_out", metavar="[HELD_OUT]", required=False)
@shared.target_option("guarantee", "FILE.safetensors", required=True)
@click.option(
    "--method", default="lift", show_default=True, metavar="|".join(METHODS.builtin), help="The method of proof."
)
@shared.LEVEL
@shared.CONFIDENCE
@shared.MARGINAL
@click.option("--rank", type=shared.COUNT, metavar="M", help="The rank of the lift, fixed before HELD_OUT was seen.")
@click.option("--normaliser", metavar="NAME", help="What widths are proportional to: predictive, posterior, ...")
@click.option("--split", type=float, metavar="S", help="The share of 1 - L that chernoff's conformal part may miss.")
@click.option("--plan", metavar="PLAN.json", help="Observe and calibrate as planned.")
@click.option("--width", type=float, metavar="W", help="Plan for this width, and observe.")
@click.option("--budget", type=int, metavar="RUNS", help="Plan with this many runs, and observe.")
@click.option(
    "--seconds",
    type=_SECONDS,
    callback=_finite,
    metavar="S",
    help="Spend about S seconds; by default as many as the training. The number of runs is kept in a file, and reused.",
)
@click.option("--exact/--no-exact", default=None, help="Compute the labels, or do not; by default a forecast chooses.")
@click.option("--points", type=shared.Whole(1, 10_000_000), metavar="N", help="Observe N uniform points.")
@click.option("--runs", type=shared.COUNT, metavar="N", help="The number of runs at each of --points.")
@shared.SEED
@shared.OBSERVATIONS
@click.option(
    "--drawn-uniformly",
    is_flag=True,
    help="Declare the points of HELD_OUT independent and uniform, if it does not say so.",
)
@click.option("--allow-trivial", is_flag=True, help="Where points are too few, intervals [0, 1] rather than an error.")
@shared.PLOT
@shared.NO_CODE
@shared.JSON
@click.pass_context
def calibrate(ctx: click.Context, /, **values: Any) -> None:
    """Give the posterior in a file intervals with proven coverage, however wrong it is, from observations at uniform
    points that it has not seen: those in the file HELD_OUT, or fresh ones of the model that it was learned from. With
    --exact the probabilities at such points are computed, which makes narrower intervals where the model is finite.

    Without HELD_OUT and without a cost option, this takes about as long as the training took.

    The claim about the intervals and the bound on the mean error are two statements, each with its own probability.

    \b
    sateen calibrate sir.safetensors -o sure.safetensors
    sateen calibrate sir.safetensors --exact --points 200 -o sure.safetensors
    sateen calibrate sir.safetensors --width 0.06 -o sure.safetensors
    sateen calibrate sir.safetensors --method chernoff --points 200 --runs 500 -o sure.safetensors
    sateen calibrate sir.safetensors held_out.safetensors --marginal -o sure.safetensors --plot sure.svg
    """
    options = CalibrateOptions(asked={name: values.pop(name) for name in _ASKED}, **values)
    options.check(shared.given(ctx, _FRESH))
    with shared.usage(plan=options.planned_by):
        planning = options.plan_request()
        request = CalibrateRequest.of(plan=planning, **options.asked)
    posterior = load_posterior(options.file)
    if options.plot is not None and len(posterior.space) not in (1, 2):
        raise InputError(f"--plot shows one or two parameters, and here {len(posterior.space)} vary")
    again = "observe uniform points yourself, and give the file as HELD_OUT"
    question = None if options.held_out is not None else question_of(posterior.training.observations, again)
    plan = None if options.plan is None else _read_plan(options.plan, posterior)
    bought, fewest = None, _fewest(request)  # of the level; a plan may choose a rank that needs more
    if question is not None and options.by_time:
        bought = _bought(options, request, posterior, *question)
        if not bought.exact(fewest):
            goal = {name: options.asked[name] for name in ("level", "confidence", "marginal", "normaliser")}
            planning = PlanRequest.of(budget=bought.budget(fewest), seed=_PLAN_SEED, **goal)
    if planning is not None:
        plan = plan_for(posterior, planning)
    if plan is not None:
        with shared.usage():
            request = CalibrateRequest.of(plan=plan, **options.asked)
    held_out: st.Observations | st.Truth
    if question is None:
        held_out = _in_file(options, posterior)
    elif plan is None and (bought is not None or options.exact):
        held_out = _computed(options, request, posterior, bought.points if bought else options.points or 0, *question)
    else:
        held_out = _fresh(options, request, posterior, plan, *question)
    guarantee = _calibrated(posterior, held_out, request, plan)
    known = {"truth": held_out} if isinstance(held_out, st.Truth) else {"held_out": held_out}
    bound = st.bound_error(posterior, **known, confidence=guarantee.claim.confidence or 0.95)
    guarantee.save(options.target)
    if options.plot is not None:
        draw(options.plot, guarantee.plot())
    _show(options, bought, fewest, plan, guarantee, bound, extreme_of_runs(posterior, held_out))


def _fewest(request: CalibrateRequest) -> int:
    """The points that the level needs."""
    return METHODS[request.method].fewest_points(request) or 1


def _bought(
    options: CalibrateOptions,
    request: CalibrateRequest,
    posterior: FullPosterior,
    model: st.Model,
    formula: st.Formula,
) -> Purchase:
    """What the seconds buy: measured once, and from then on what the file beside the result has."""
    from sateen.study.budget import kept_purchase, purchase
    from sateen.study.summary import file_hash

    seconds: float | Literal["training"] = "training" if options.seconds is None else options.seconds
    by_lift = request.method == "lift" and request.rank is None and request.normaliser != "predictive"
    if options.exact and not by_lift:
        check_truth_options(request)
    exact = options.exact if by_lift else False
    name = "the formula"
    asked = {"sateen": st.__version__, "posterior": file_hash(Path(options.file)), "seconds": seconds, "exact": exact}
    return kept_purchase(
        options.purchases, asked, lambda: purchase(model, {name: formula}, {name: posterior}, seconds, exact)
    )


def _computed(
    options: CalibrateOptions,
    request: CalibrateRequest,
    posterior: FullPosterior,
    points: int,
    model: st.Model,
    formula: st.Formula,
) -> st.Truth:
    """The truth at fresh uniform points; kept, if asked, before the calibration."""
    with shared.usage():
        check_truth_options(request)
        request.check_points(points, exact=True)
    chosen = posterior.space.uniform(points, seed=stream_seed(options.seed, "held-out points"))
    start = time.process_time()
    values = st.exact(model, formula, chosen, progress=Bar())
    known = st.Truth(chosen, values, time.process_time() - start)
    if options.observations is not None:
        known.save(options.observations)
    return known


def _calibrated(
    posterior: FullPosterior,
    held_out: st.Observations | st.Truth,
    request: CalibrateRequest,
    plan: st.Plan | None,
) -> st.Guarantee:
    asked = asdict(request)
    if isinstance(held_out, st.Truth):
        return st.calibrate(posterior, truth=held_out, **asked)
    if plan is not None:
        asked |= {"rank": None, "normaliser": None}  # the plan has chosen them
    try:
        return st.calibrate(posterior, held_out, plan=plan, **asked)
    except InputError as error:
        if error.argument != "design":
            raise
        remedy = "leave out {held_out} to observe uniform points"
        if held_out.points.design == "given":
            remedy += "; if these were drawn uniformly elsewhere, pass {drawn_uniformly=True}"
        raise InputError(error.message, argument="held_out", remedy=remedy) from None


def _in_file(options: CalibrateOptions, posterior: FullPosterior) -> st.Observations | st.Truth:
    """The observations, or the truth, in the file; a table of another program is of the posterior's space."""
    file = str(options.held_out)
    if file.lower().endswith(".sateen"):
        raise click.UsageError(f"{file} is a model, not observations; to observe what was learned, give one of {_WAYS}")
    try:
        held_out = load_labels(file)
    except InputError as error:
        if error.argument != "space":
            raise
        held_out = load_labels(file, dict(posterior.space.parameters))
    if isinstance(held_out, st.Truth):
        return held_out
    design = held_out.points.design
    if options.drawn_uniformly:
        if design != "given":
            raise click.UsageError(f"--drawn-uniformly: {file} says itself how it was drawn: {design}")
        return replace(held_out, points=st.Points(held_out.theta, held_out.space, "uniform"))
    return held_out


def _fresh(
    options: CalibrateOptions,
    request: CalibrateRequest,
    posterior: FullPosterior,
    plan: st.Plan | None,
    model: st.Model,
    formula: st.Formula,
) -> st.Observations:
    """Fresh observations at uniform points of what the training observed; kept, if asked, before the calibration."""
    points, runs = (plan.points, plan.runs) if plan else (options.points or 0, options.runs or 0)
    request.check_points(points)
    caps = caps_of(posterior.training.observations)
    question = model, formula, posterior.space
    return kept(
        options.observations,
        lambda: st.observe_held_out(*question, points, runs, seed=options.seed, progress=Bar(), **caps),
    )


def _read_plan(file: str, posterior: FullPosterior) -> st.Plan:
    """The plan that `sateen plan` wrote to a file, for a posterior with the same training."""
    import msgspec

    with reading(file), open(file, encoding="utf-8") as stream:
        try:
            content = json.load(stream)
        except (ValueError, RecursionError):
            raise InputError(f"{file} is not a plan: `sateen plan` writes one, in JSON") from None
    try:
        plan = st.Plan.from_content(content if isinstance(content, dict) else {})
        CalibrateRequest.of(plan=plan)
        valid = all(1 <= count <= _MOST for count in (plan.points, plan.runs)) and "training" in content
    except (KeyError, TypeError, InputError, msgspec.ValidationError):
        valid = False
    if not valid:
        raise InputError(f"{file} holds no valid plan; `sateen plan -o` writes one")
    if content["training"] != posterior.training.fingerprint:
        raise InputError(f"{file} was planned for a posterior of another training, and is invalid here; plan again")
    return plan


def _show(
    options: CalibrateOptions,
    purchase: Purchase | None,
    fewest: int,
    plan: st.Plan | None,
    guarantee: st.Guarantee,
    bound: st.ErrorBound,
    extreme: Extreme | None,
) -> None:
    """The claim, how it was made, how wide its intervals and the posterior's own are, and the bound on the error."""
    from sateen.assess.widths import widths_over

    space, level = guarantee.space, guarantee.level
    widths = widths_over(space, guarantee.predict)
    believed = widths_over(space, lambda points: guarantee.posterior.predict(points, level=level)).mean
    bought, repeat, purchases = None, None, None
    if purchase is not None:
        purchases = str(options.purchases)
        bought = purchase.sentence(fewest)
        repeat = f"--budget {purchase.budget(fewest)}" if plan else f"--exact --points {purchase.points}"
    files = [file for file in (purchases, options.observations, options.plot, options.target) if file]
    seed = None if options.held_out else options.seed

    def content() -> dict[str, object]:
        about: dict[str, object] = {"file": options.file, "held_out": options.held_out, "seed": seed}
        about |= {"plan": plan and plan.content(), **learned_content(guarantee)}
        about |= {"mean_width": widths.mean, "greatest_width": widths.greatest, "points_searched": widths.searched}
        about |= {
            "extreme": extreme and asdict(extreme),
            "budget": bought,
            "repeat": repeat,
            "credible_width": believed,
            "files": files,
        }
        error = {"value": bound.value, "empirical": bound.empirical, "claim": bound.claim.content()}
        return {**about, "error_bound": error}

    def lines() -> Iterator[str]:
        yield f"{options.file}, {options.held_out or f'observed with the seed {seed}'}"
        yield from extreme_lines(extreme, guarantee)
        if bought:
            yield bought
            yield f"to get the same result anywhere: {repeat}"
        if plan:
            yield f"the plan: {plan}"
        yield from ("", f"{guarantee.method}: {guarantee.claim}", str(guarantee.calibration))
        credible = f"the posterior's own {percent(level)} intervals, a belief, are {believed:.3g} wide"
        yield f"over the space, intervals are {widths}; {credible} on average"
        yield from (f"{bound.claim.by}: {bound}", "", *files)

    show(options.as_json, content, lines)
