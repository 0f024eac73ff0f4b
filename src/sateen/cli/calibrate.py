"""The command `calibrate`: from a posterior and observations that it has not seen to a guarantee in a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from sateen.cli.files import replacing
from sateen.cli.learned import guarantee_content
from sateen.cli.options import JSON, PLOT, output
from sateen.cli.plan import CONFIDENCE, LEVEL, PLAN_SEED, confidence_asked, read_plan, read_posterior, share
from sateen.cli.sources import stored_observations, write_observations
from sateen.cli.text import print_json
from sateen.core.errors import InputError, Interrupted, SateenError
from sateen.guarantee.methods import NORMALISERS_OF

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.guarantee.error_bound import ErrorBound
    from sateen.guarantee.guarantee import Guarantee
    from sateen.guarantee.plan import Plan
    from sateen.learning.posterior import LearnedPosterior
    from sateen.logic.formula import Formula
    from sateen.model.model import Model

__all__ = ["calibrate"]

_METHODS: Final = ("lift", "icp", "nicp", "chernoff")  # the one to take first
_COUNT: Final = click.IntRange(1)
_SHOWN_AT: Final = 512  # points of the space, at which the mean width is taken
_THIRD_CHILD: Final = (2,)  # of a seed draws the points: the command `learn` has the first two
_SEEDS: Final = 2**63
_REST: Final = ("origin", "provenance", "relevant", "reasons", "failures", "seconds")  # of observations
_WAYS: Final = "--width W, --budget RUNS, --plan PLAN.json, or --points N with --runs M"


@dataclass(frozen=True, slots=True)
class _Asked:
    """All that the command line says."""

    file: str
    held_out: str | None
    target: str
    method: Literal["lift", "icp", "nicp", "chernoff"]
    level: float | None
    confidence: float | None
    marginal: bool
    rank: int | None
    normaliser: Any
    split: float | None
    plan: str | None
    width: float | None
    budget: int | None
    points: int | None
    runs: int | None
    seed: int | None
    observations: str | None
    drawn_uniformly: bool
    allow_trivial: bool
    plot: str | None
    as_json: bool

    @property
    def planned(self) -> str | None:
        """The option that says how a plan is come by, if one does."""
        return next((f"--{name}" for name in ("width", "budget", "plan") if getattr(self, name) is not None), None)


def _target(ctx: click.Context, option: click.Parameter, file: str) -> str:
    """The file for the guarantee, by whose name the other commands know it."""
    if not file.lower().endswith(".safetensors"):
        raise click.BadParameter(f"{file!r} is to hold a guarantee: end the name in .safetensors")
    output(ctx, option, file)
    return file


@click.command(short_help="Intervals that keep what they promise.")
@click.argument("file", metavar="POSTERIOR.safetensors")
@click.argument("held_out", metavar="[HELD_OUT]", required=False)
@click.option("-o", "--output", "target", required=True, callback=_target, metavar="FILE.safetensors", help="Keep it.")
@click.option("--method", type=click.Choice(_METHODS), default="lift", show_default=True, help="Which proof.")
@click.option("--level", type=float, callback=share, metavar="L", help="Of how many θ; 0.9 if nothing is said.")
@click.option("--confidence", type=float, callback=share, metavar="C", help="Of how many calibrations; lift: 0.95.")
@click.option("--marginal", is_flag=True, help="On average over calibrations; all but lift, if nothing is said.")
@click.option("--rank", type=_COUNT, metavar="M", help="The lift's, fixed before HELD_OUT was looked at.")
@click.option(
    "--normaliser",
    type=click.Choice(["predictive", "posterior", "quantile", "constant"]),
    help="To what widths are proportional.",
)
@click.option("--split", type=float, callback=share, metavar="S", help="What chernoff leaves to its conformal part.")
@click.option("--plan", metavar="PLAN.json", help="Do as planned.")
@click.option("--width", type=float, callback=share, metavar="W", help="Plan for this width, and observe.")
@click.option("--budget", type=_COUNT, metavar="RUNS", help="Plan with so many runs, and observe.")
@click.option("--points", type=click.IntRange(1, 10_000_000), metavar="N", help="Observe N uniform points.")
@click.option("--runs", type=_COUNT, metavar="N", help="How many at each of --points.")
@click.option(
    "--seed", type=click.IntRange(0, _SEEDS - 1), metavar="N", help="Of what is observed; not the training's."
)
@click.option("--observations", callback=output, metavar="FILE", help="Keep what was observed, as .csv or else .npz.")
@click.option("--drawn-uniformly", is_flag=True, help="HELD_OUT has independent uniform points, if it does not say so.")
@click.option("--allow-trivial", is_flag=True, help="Where points are too few, intervals [0, 1] rather than an error.")
@PLOT
@JSON
def calibrate(**given: Any) -> None:
    """Give the posterior in a file intervals with proven coverage, however wrong it is, from observations at uniform
    points that it has not seen: those in the file HELD_OUT, or fresh ones of the model that it was learned from.

    The claim about the intervals and the bound on the mean error are two statements, each with its own probability.

    \b
    sateen calibrate sir.safetensors --width 0.06 -o sure.safetensors
    sateen calibrate sir.safetensors --method chernoff --points 200 --runs 500 -o sure.safetensors
    sateen calibrate sir.safetensors held_out.npz --marginal -o sure.safetensors --plot sure.svg
    """
    asked = _Asked(**given)
    _check_applies(asked)
    _check_files(asked)

    from sateen.guarantee.calibrate import calibrate as calibrated
    from sateen.guarantee.error_bound import bound_error

    posterior = read_posterior(asked.file)
    if asked.plot is not None and len(posterior.space) not in (1, 2):
        raise InputError(f"--plot shows one or two parameters, and here {len(posterior.space)} vary")
    if asked.held_out is None:  # what cannot be observed is found before it is planned
        question, seed = _question(posterior.training.observations), _seed(asked, posterior)
        plan = _plan(asked, posterior)
        seen = _observed(asked, posterior, plan, question, seed)
    else:
        plan, seed, seen = _plan(asked, posterior), None, _held_out(asked, posterior)
    level, confidence = _promise(asked)
    try:
        guarantee = calibrated(
            posterior,
            seen,
            method=asked.method,
            level=plan.level if plan else level,
            confidence=plan.confidence if plan else confidence,
            rank=asked.rank,
            normaliser=None if plan else asked.normaliser,
            split=asked.split,
            plan=plan,
            allow_trivial=asked.allow_trivial,
        )
        bound = bound_error(posterior, seen, confidence=guarantee.claim.confidence or CONFIDENCE)
    except InputError as error:
        raise InputError(_in_options(str(error), asked.held_out or "what was observed")) from None
    guarantee.save(asked.target)
    if asked.plot is not None:
        from sateen.show import figures

        with replacing(asked.plot) as temporary:
            figures.save(guarantee.plot(), temporary)
    _tell(asked, seed, plan, guarantee, bound)


def _check_applies(asked: _Asked) -> None:
    """An option that does not apply is an error: nothing that a user says is ignored."""
    if asked.held_out is not None:
        for name in ("width", "budget", "points", "runs", "seed", "observations"):
            if getattr(asked, name) is not None:
                raise click.UsageError(f"--{name} says how to observe, and HELD_OUT has been observed; leave one out")
    else:
        if asked.drawn_uniformly:
            raise click.UsageError("--drawn-uniformly says how HELD_OUT was drawn, which is not given")
        by_hand = asked.points is not None or asked.runs is not None
        ways = [way is not None for way in (asked.width, asked.budget, asked.plan)]
        if sum([*ways, by_hand]) != 1:
            raise click.UsageError(f"from what? Give a file HELD_OUT of observations, or one of {_WAYS}")
        if by_hand and (asked.points is None or asked.runs is None):
            raise click.UsageError("--points N and --runs M go together: N points with M runs each")
    method = asked.method
    if asked.planned and method != "lift":
        raise click.UsageError(
            f"{asked.planned}: plans are for the lift; for --method {method} give --points and --runs"
        )
    if asked.rank is not None and method != "lift":
        raise click.UsageError(f"--rank does not apply to --method {method}, only to lift")
    if asked.split is not None and method != "chernoff":
        raise click.UsageError(f"--split does not apply to --method {method}, only to chernoff")
    if asked.normaliser is not None and asked.normaliser not in NORMALISERS_OF[method]:
        allowed = ", ".join(NORMALISERS_OF[method])
        its = f"is one of {allowed}, not {asked.normaliser}" if allowed else "is always constant; leave it out"
        hint = "; without a normaliser it is constant" if (method, asked.normaliser) == ("chernoff", "constant") else ""
        raise click.UsageError(f"--normaliser: that of --method {method} {its}{hint}")
    if asked.planned and asked.rank is not None:
        raise click.UsageError(f"--rank and {asked.planned} both fix the rank; give one of them")
    if asked.plan is not None:
        for name in ("level", "confidence", "marginal", "normaliser"):
            if getattr(asked, name) not in (None, False):
                raise click.UsageError(f"--{name}: {asked.plan} has fixed it; leave it out, or plan anew")
    _promise(asked)


def _check_files(asked: _Asked) -> None:
    """No file is written twice, and none that is read is written over."""
    seen: dict[str, str] = {}
    files = {"POSTERIOR": asked.file, "HELD_OUT": asked.held_out, "--plan": asked.plan}
    files |= {"-o": asked.target, "--observations": asked.observations, "--plot": asked.plot}
    for option, file in files.items():
        if file is not None and (other := seen.setdefault(os.path.realpath(file), option)) != option:
            raise click.UsageError(f"{other} and {option} are the same file, {file}; give them different names")


def _promise(asked: _Asked) -> tuple[float, float | None]:
    """The level and the confidence, without a plan; the lift alone is PAC by default."""
    confidence = confidence_asked(asked.confidence, asked.marginal, CONFIDENCE if asked.method == "lift" else None)
    return LEVEL if asked.level is None else asked.level, confidence


def _plan(asked: _Asked, posterior: LearnedPosterior) -> Plan | None:
    """The plan in a file, or the one that the command `plan` makes."""
    if asked.plan is not None:
        return read_plan(asked.plan, posterior)
    if asked.planned is None:
        return None
    from sateen.guarantee.plan import plan

    level, confidence = _promise(asked)
    goal: dict[str, Any] = {"width": asked.width, "budget": asked.budget, "normaliser": asked.normaliser}
    return plan(posterior, level=level, confidence=confidence, seed=PLAN_SEED, **goal)


def _held_out(asked: _Asked, posterior: LearnedPosterior) -> Observations:
    """The observations in the file; a table of another program is of the posterior's space."""
    from sateen.core.observations import Observations
    from sateen.core.space import Points

    file = str(asked.held_out)
    if file.lower().endswith(".sateen"):
        raise click.UsageError(f"{file} is a model, not observations; to observe what was learned, give one of {_WAYS}")
    try:
        seen = stored_observations(file, {})
    except InputError as error:
        if "does not tell its space" not in str(error):
            raise
        seen = stored_observations(file, dict(posterior.space.parameters))
    if not asked.drawn_uniformly:
        return seen
    if seen.points.design != "given":
        raise click.UsageError(f"--drawn-uniformly: {file} says itself how it was drawn: {seen.points.design}")
    rest: dict[str, Any] = {name: getattr(seen, name) for name in _REST}
    points = Points(seen.theta, seen.space, "uniform")
    return Observations(points, seen.satisfied, seen.undecided, seen.trials, **rest)


def _seed(asked: _Asked, posterior: LearnedPosterior) -> int:
    """The seed of fresh observations: the one after the greatest of the training, if none is given."""
    used = posterior.training.observations.seeds
    if asked.seed is None:
        seed = (max(used, default=0) + 1) % _SEEDS
        return next(number for number in range(seed, _SEEDS) if number not in used)
    if asked.seed in used:
        raise InputError(
            f"--seed {asked.seed} is the training's, whose random numbers the runs would share\n"
            "  give another, or leave it out"
        )
    return asked.seed


def _observed(
    asked: _Asked, posterior: LearnedPosterior, plan: Plan | None, question: tuple[Model, Formula], seed: int
) -> Observations:
    """Fresh observations at uniform points of what the training observed; kept, if asked, before anything is proven."""
    from numpy.random import SeedSequence

    from sateen.cli.progress import Bar
    from sateen.sampling.observe import observe

    points, runs = (plan.points, plan.runs) if plan else (asked.points or 0, asked.runs or 0)
    if plan is None:
        _check_enough(asked, points)
    asked_before = posterior.training.observations.provenance
    told = {name: asked_before.get(name) for name in ("max_events", "max_time", "max_population")}
    caps: dict[str, Any] = {name: cap for name, cap in told.items() if cap is not None}
    child = int(SeedSequence(seed, spawn_key=_THIRD_CHILD).generate_state(1)[0])
    chosen = posterior.space.uniform(points, seed=child)
    try:
        seen = observe(*question, chosen, runs, seed=seed, progress=Bar(), **caps)
    except Interrupted as stop:
        if asked.observations is not None and stop.partial is not None and stop.partial.trials.any():
            write_observations(stop.partial, asked.observations)
            done = f"{int(stop.partial.trials.sum()):,} runs"
            click.echo(f"{asked.observations} has what was observed: {done}", err=True)
        raise
    if asked.observations is not None:
        write_observations(seen, asked.observations)
    return seen


def _check_enough(asked: _Asked, points: int) -> None:
    """Too few points for the level are refused before they are observed, not after."""
    from sateen.core.prediction import percent
    from sateen.guarantee.conformal import fewest_points
    from sateen.guarantee.lift import fewest_lifted_points

    level, confidence = _promise(asked)
    miss = 1.0 - level
    if asked.method == "lift":
        enough = fewest_lifted_points(asked.rank or 1, miss, confidence)
    else:
        left = (0.5 if asked.split is None else asked.split) if asked.method == "chernoff" else 1.0
        enough = fewest_points(left * miss, confidence)
    if not asked.allow_trivial and (enough is None or points < enough):
        sure = "" if confidence is None else f" with the confidence {percent(confidence)}"
        many = "no number that can be observed" if enough is None else f"{enough:,}"
        raise InputError(
            f"--points {points} is too few for the level {percent(level)}{sure}: {many} would do\n"
            "  give more, lower the level, or say --allow-trivial for the interval [0, 1]"
        )


def _question(training: Observations) -> tuple[Model, Formula]:
    """The model and the formula that the training observed, if its observations tell them whole."""
    import warnings

    from sateen.core.errors import ModelWarning
    from sateen.logic.parser import stl
    from sateen.model.model import Model

    text, asked, end = (training.provenance.get(key) for key in ("model", "formula", "end"))
    why = "its observations do not tell the model"
    if isinstance(text, str):
        why = f"it was a {text}" if text.startswith("black box") else "its model cannot be read back from its text"
    if isinstance(text, str) and isinstance(asked, str):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                model = Model.parse(text)
            formula = stl(asked, end=end)
        except SateenError:
            pass
        else:
            if (str(model), str(formula)) == (text, asked):
                return model, formula
    raise InputError(
        f"what the posterior was learned from cannot be observed again: {why}\n"
        "  observe uniform points yourself, and give the file as HELD_OUT"
    )


def _in_options(said: str, held_out: str) -> str:
    """What the library says of its keywords, said of the options of the command."""
    elsewhere = "; if these were drawn so elsewhere, say --drawn-uniformly" if "design 'given'" in said else ""
    changes = {
        r"pass allow_trivial=True": "say --allow-trivial",
        r"method='(\w+)'": r"--method \1",
        r"observe space\.uniform\(.*?\); .*": f"leave HELD_OUT out, and uniform points are observed{elsewhere}",
        r"draw the points anew: space\.uniform\(n, seed=\.\.\.\), with": "draw the points anew, with",
        r"; observe some points: st\.observe\(.*\)": "; observe some points",
    }
    for old, new in changes.items():
        said = re.sub(old, new, said)
    return re.sub(r"\bheld_out\b", lambda _: held_out, said)


def _tell(asked: _Asked, seed: int | None, plan: Plan | None, guarantee: Guarantee, bound: ErrorBound) -> None:
    """The claim, how it was made, how wide its intervals are beside the posterior's own, and the bound on the error."""
    from sateen.core.prediction import percent

    space, level = guarantee.space, guarantee.level
    points = space.sobol(_SHOWN_AT, seed=0) if space.names else space.points({})
    width = float(guarantee.predict(points).width.mean())
    believed = float(guarantee.posterior.predict(points, level=level).width.mean())
    files = [file for file in (asked.observations, asked.plot, asked.target) if file]
    if asked.as_json:
        content: dict[str, Any] = {"file": asked.file, "held_out": asked.held_out, "seed": seed}
        content |= {"plan": plan and plan.content(), **guarantee_content(guarantee)}
        content |= {"mean_width": width, "credible_width": believed}
        content["error_bound"] = {"value": bound.value, "empirical": bound.empirical, "claim": bound.claim.content()}
        print_json({**content, "files": files})
        return
    own = f"the posterior's own {percent(level)} intervals, a belief, have {believed:.3g}"
    lines = [f"{asked.file}, {asked.held_out or f'observed with the seed {seed}'}"]
    lines += [f"the plan: {plan}"] if plan else []
    lines += ["", f"{guarantee.method}: {guarantee.claim}", str(guarantee.calibration)]
    lines += [f"mean width over the space {width:.3g}; {own}", f"{bound.claim.by}: {bound}", ""]
    click.echo("\n".join([*lines, *files]))
