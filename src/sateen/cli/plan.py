"""The command `plan`: what to observe for a guarantee, and how wide its intervals will be."""

from __future__ import annotations

import json

import click

import sateen as st
from sateen.cli.options import CONFIDENCE, JSON, LEVEL, MARGINAL, SEED, usage, written
from sateen.cli.output import show, writing
from sateen.cli.sources import load_posterior
from sateen.guarantee.request import Default, PlanRequest

__all__ = ["plan"]


@click.command()
@click.argument("file", metavar="POSTERIOR.safetensors")
@click.option("--width", type=float, metavar="W", help="As few runs as intervals of this mean width need.")
@click.option("--budget", type=int, metavar="RUNS", help="The narrowest intervals for so many runs.")
@LEVEL
@CONFIDENCE
@MARGINAL
@SEED
@click.option("-o", "--output", "target", callback=written, metavar="PLAN.json", help="Keep it for `calibrate --plan`.")
@JSON
def plan(
    file: str,
    width: float | None,
    budget: int | None,
    level: float | Default,
    confidence: float | Default,
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
    with usage():
        request = PlanRequest.of(width=width, budget=budget, level=level, confidence=confidence, marginal=marginal)
    posterior = load_posterior(file)
    planned = st.plan(posterior, width=width, budget=budget, level=level, confidence=request.confidence, seed=seed)
    content = {"training": posterior.training.fingerprint, **planned.content()}
    if target is not None:
        with writing(target) as stream:
            stream.write(f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
    files = [target] if target else []
    show(
        as_json,
        lambda: {"file": file, "seed": seed, **content, "files": files},
        lambda: [f"{file}, seed {seed}", str(planned), *files],
    )
