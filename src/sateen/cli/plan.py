"""The command `plan`: what to observe for a guarantee, and how wide its intervals will be; and plans in files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import reading, replacing
from sateen.cli.options import JSON, SEED, output
from sateen.cli.text import print_json
from sateen.core.errors import InputError

if TYPE_CHECKING:
    from sateen.guarantee.plan import Plan
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["CONFIDENCE", "LEVEL", "PLAN_SEED", "confidence_asked", "plan", "read_plan", "read_posterior", "share"]

LEVEL: Final = 0.9
CONFIDENCE: Final = 0.95
PLAN_SEED: Final = 1  # of the rehearsal, where nothing is said
_MOST: Final = 10**9  # points or runs; no plan has more


def share(ctx: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """A number strictly between 0 and 1."""
    if value is not None and not 0.0 < value < 1.0:
        raise click.BadParameter(f"{value:g} is not between 0 and 1")
    return value


@click.command(short_help="What a guarantee costs, before it is paid for.")
@click.argument("file", metavar="POSTERIOR.safetensors")
@click.option("--width", type=float, callback=share, metavar="W", help="As few runs as intervals of this width need.")
@click.option("--budget", type=click.IntRange(1), metavar="RUNS", help="The narrowest intervals for so many runs.")
@click.option("--level", type=float, callback=share, default=LEVEL, show_default=True, metavar="L", help="Share of θ.")
@click.option("--confidence", type=float, callback=share, metavar="C", help="Of all calibrations; 0.95 if not said.")
@click.option("--marginal", is_flag=True, help="A guarantee on average over calibrations, which is narrower.")
@SEED
@click.option("-o", "--output", "target", callback=output, metavar="PLAN.json", help="Keep it for `calibrate --plan`.")
@JSON
def plan(
    file: str,
    width: float | None,
    budget: int | None,
    level: float,
    confidence: float | None,
    marginal: bool,
    seed: int,
    target: str | None,
    as_json: bool,
) -> None:
    """Say how many points and runs a guarantee of the posterior in a file needs: for intervals of a mean width, or with
    a budget of runs. Nothing is simulated: calibrations are rehearsed on what the posterior holds possible.

    \b
    sateen plan sir.safetensors --width 0.06
    sateen plan sir.safetensors --budget 100000 --marginal -o plan.json
    """
    if (width is None) == (budget is None):
        raise click.UsageError("a plan is made for a width or for a budget: give one of --width W and --budget RUNS")
    asked = confidence_asked(confidence, marginal, CONFIDENCE)

    from sateen.guarantee.plan import plan as planned

    posterior = read_posterior(file)
    found = planned(posterior, width=width, budget=budget, level=level, confidence=asked, seed=seed)
    kept = {"training": posterior.training.fingerprint, **found.content()}
    if target is not None:
        with replacing(target) as temporary, open(temporary, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    files = [target] if target else []
    if as_json:
        print_json({"file": file, "seed": seed, **kept, "files": files})
    else:
        click.echo("\n".join([f"{file}, seed {seed}", str(found), *files]))


def confidence_asked(confidence: float | None, marginal: bool, default: float | None) -> float | None:
    """The confidence, or None for a marginal guarantee; the default where nothing is said."""
    if confidence is not None and marginal:
        raise click.UsageError("--confidence asks for a guarantee of each calibration, --marginal for one on average")
    return None if marginal else default if confidence is None else confidence


def read_posterior(file: str) -> LearnedPosterior:
    """The posterior in a file; a guarantee has been calibrated already."""
    from sateen.guarantee.guarantee import Guarantee
    from sateen.study.stored import load

    with reading(file):
        known = load(file)
    if isinstance(known, Guarantee):
        raise InputError(f"{file} is a guarantee already; give the posterior that it was made from")
    return known


def read_plan(file: str, posterior: LearnedPosterior) -> Plan:
    """The plan that the command wrote to a file, for a posterior with the same training."""
    with reading(file), open(file, encoding="utf-8") as stream:
        try:
            content = json.load(stream)
        except (ValueError, RecursionError):
            raise InputError(f"{file} is no plan: `sateen plan` writes one, in JSON") from None
    found = _plan(content)
    if found is None:
        raise InputError(f"{file} holds no plan that makes sense; `sateen plan -o` writes one")
    if content["training"] != posterior.training.fingerprint:
        raise InputError(
            f"{file} was planned for a posterior of another training, and promises nothing here; plan anew"
        )
    return found


def _plan(content: Any) -> Plan | None:
    """The plan that plain data tells, if it does."""
    from dataclasses import fields

    from sateen.guarantee.methods import LIFT_NORMALISERS
    from sateen.guarantee.plan import Plan

    if not isinstance(content, dict) or "training" not in content:
        return None
    told: dict[str, Any] = {field.name: content.get(field.name) for field in fields(Plan)}
    if any(type(told[name]) is not int or not 1 <= told[name] <= _MOST for name in ("points", "runs", "rank")):
        return None
    if told["normaliser"] not in LIFT_NORMALISERS or not isinstance(likely := told["likely"], list) or len(likely) != 2:
        return None
    shares = [told["level"], *([] if told["confidence"] is None else [told["confidence"]])]
    seconds = float("nan") if told["seconds"] is None else told["seconds"]
    if not all(isinstance(value, int | float) for value in (told["width"], seconds, *likely, *shares)):
        return None
    return Plan(**{**told, "likely": tuple(likely), "seconds": seconds}) if all(0 < own < 1 for own in shares) else None
