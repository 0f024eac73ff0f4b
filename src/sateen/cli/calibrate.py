"""The command `calibrate`: from a posterior and observations that it has not seen to a guarantee in a file."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import replacing
from sateen.cli.held_out import SEEDS, WAYS, Asked, fresh, in_file, promise, question, seed_of
from sateen.cli.learned import guarantee_content
from sateen.cli.options import JSON, PLOT, output
from sateen.cli.plan import CONFIDENCE, PLAN_SEED, read_plan, read_posterior, share
from sateen.cli.text import print_json
from sateen.core.errors import InputError
from sateen.guarantee.methods import NORMALISERS_OF

if TYPE_CHECKING:
    from sateen.guarantee.error_bound import ErrorBound
    from sateen.guarantee.guarantee import Guarantee
    from sateen.guarantee.plan import Plan
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["calibrate"]

_METHODS: Final = ("lift", "icp", "nicp", "chernoff")  # the one to take first
_COUNT: Final = click.IntRange(1)
_SHOWN_AT: Final = 512  # points of the space, at which the mean width is taken


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
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), metavar="N", help="Of what is observed; not the training's.")
@click.option(
    "--observations", callback=output, metavar="FILE", help="Keep what was observed, as .csv or else .safetensors."
)
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
    sateen calibrate sir.safetensors held_out.safetensors --marginal -o sure.safetensors --plot sure.svg
    """
    asked = Asked(**given)
    _check_applies(asked)
    _check_files(asked)

    from sateen.guarantee.calibrate import calibrate as calibrated
    from sateen.guarantee.error_bound import bound_error

    posterior = read_posterior(asked.file)
    if asked.plot is not None and len(posterior.space) not in (1, 2):
        raise InputError(f"--plot shows one or two parameters, and here {len(posterior.space)} vary")
    if asked.held_out is None:  # what cannot be observed is found before it is planned
        learned, seed = question(posterior.training.observations), seed_of(asked, posterior)
        plan = _plan(asked, posterior)
        seen = fresh(asked, posterior, plan, learned, seed)
    else:
        plan, seed, seen = _plan(asked, posterior), None, in_file(asked, posterior)
    level, confidence = promise(asked)
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
        from sateen.plot import figures

        with replacing(asked.plot) as temporary:
            figures.save(guarantee.plot(), temporary)
    _tell(asked, seed, plan, guarantee, bound)


def _check_applies(asked: Asked) -> None:
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
            raise click.UsageError(f"from what? Give a file HELD_OUT of observations, or one of {WAYS}")
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
    promise(asked)


def _check_files(asked: Asked) -> None:
    """No file is written twice, and none that is read is written over."""
    seen: dict[str, str] = {}
    files = {"POSTERIOR": asked.file, "HELD_OUT": asked.held_out, "--plan": asked.plan}
    files |= {"-o": asked.target, "--observations": asked.observations, "--plot": asked.plot}
    for option, file in files.items():
        if file is not None and (other := seen.setdefault(os.path.realpath(file), option)) != option:
            raise click.UsageError(f"{other} and {option} are the same file, {file}; give them different names")


def _plan(asked: Asked, posterior: LearnedPosterior) -> Plan | None:
    """The plan in a file, or the one that the command `plan` makes."""
    if asked.plan is not None:
        return read_plan(asked.plan, posterior)
    if asked.planned is None:
        return None
    from sateen.guarantee.plan import plan

    level, confidence = promise(asked)
    goal: dict[str, Any] = {"width": asked.width, "budget": asked.budget, "normaliser": asked.normaliser}
    return plan(posterior, level=level, confidence=confidence, seed=PLAN_SEED, **goal)


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


def _tell(asked: Asked, seed: int | None, plan: Plan | None, guarantee: Guarantee, bound: ErrorBound) -> None:
    """The claim, how it was made, how wide its intervals are beside the posterior's own, and the bound on the error."""
    from sateen.core.text import percent

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
