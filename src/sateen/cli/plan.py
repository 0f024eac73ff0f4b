"""The command `plan`: what to observe for a guarantee, and how wide its intervals will be."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import sateen as st
from sateen.cli.options import CONFIDENCE, JSON, LEVEL, MARGINAL, NO_CODE, SEED, usage, written
from sateen.cli.output import show, writing
from sateen.cli.sources import load_posterior
from sateen.guarantee.request import PlanRequest

if TYPE_CHECKING:
    from sateen.core.posterior import FullPosterior


@click.command()
@click.argument("file", metavar="POSTERIOR.safetensors")
@click.option("--width", type=float, metavar="W", help="As few runs as intervals of this mean width need.")
@click.option("--budget", type=int, metavar="RUNS", help="The narrowest intervals for this many runs.")
@LEVEL
@CONFIDENCE
@MARGINAL
@SEED
@click.option(
    "-o", "--output", "target", callback=written, metavar="PLAN.json", help="Save the plan for `calibrate --plan`."
)
@NO_CODE
@JSON
def plan(file: str, seed: int, target: str | None, as_json: bool, **goal: Any) -> None:
    """Say how many points and runs a guarantee of the posterior in a file needs: for intervals of a mean width, or with
    a budget of runs. Nothing is simulated: calibrations are rehearsed on what the posterior holds possible.

    \b
    sateen plan sir.safetensors --width 0.06
    sateen plan sir.safetensors --budget 100000 --marginal -o plan.json
    """
    with usage():
        request = PlanRequest.of(seed=seed, **goal)
    posterior = load_posterior(file)
    planned = plan_for(posterior, request)
    content = {"training": posterior.training.fingerprint, **planned.content()}
    if target is not None:
        with writing(target) as stream:
            stream.write(f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
    files = [target] if target else []
    show(
        as_json,
        lambda: {"file": file, "seed": seed, **content, "files": files},
        lambda: [f"{file}, seed {seed}", *str(planned).splitlines(), *files],
    )


def plan_for(posterior: FullPosterior, request: PlanRequest) -> st.Plan:
    """The plan that is asked for."""
    options = {name: value for name, value in asdict(request).items() if name not in ("fewest", "rank")}
    return st.plan(posterior, **options)
