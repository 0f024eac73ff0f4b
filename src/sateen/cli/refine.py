"""The command `refine`: runs where they are most informative about a goal, in rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import (
    ABOVE,
    BELOW,
    BUDGET,
    FOLDER,
    MINIMISE,
    STORE,
    WITHIN,
    WORKERS,
    WORST,
    asked_of,
    from_study,
    goal_of,
    is_study,
    refuse_study_options,
    round_content,
    round_lines,
    saying_what_is_stored,
)
from sateen.cli.output import draw, show
from sateen.cli.progress import Bar
from sateen.cli.sources import kept
from sateen.learning.registry import LEARNERS, make_learner


@click.command()
@click.argument("file", metavar="STUDY.toml|MODEL")
@shared.property_option("The formula that a run should satisfy.", several=True)
@shared.VARY
@shared.AT
@shared.CONST
@shared.END
@click.option(
    "--goal",
    type=click.Choice(["threshold", "width", "error", "optimum"]),
    default="threshold",
    show_default=True,
    help="The goal of the runs.",
)
@ABOVE
@BELOW
@click.option(
    "--undecided", type=float, metavar="U", help="The share of the space that may stay undecided; by default 0.05."
)
@click.option("--width", type=float, metavar="W", help="The target width of the intervals.")
@click.option(
    "--share", type=float, metavar="S", help="The share of the space with intervals this narrow; by default 0.95."
)
@click.option("--error", type=float, metavar="E", help="The target root-mean-square standard deviation.")
@click.option("--regret", type=float, metavar="R", help="The target expected regret; by default 0.003.")
@MINIMISE
@WITHIN
@WORST
@click.option("--level", type=float, metavar="L", help="The level of the bands; by default 0.95.")
@BUDGET
@click.option("--learner", metavar="NAME", help=f"{', '.join(LEARNERS.builtin)}; by default svi-gp.")
@shared.SEED
@shared.MAX_EVENTS
@shared.target_option("posterior", "FILE.safetensors")
@shared.OBSERVATIONS
@STORE
@FOLDER
@WORKERS
@shared.on_option
@shared.PLOT
@shared.NO_CODE
@shared.JSON
@click.pass_context
def refine(
    ctx: click.Context,
    /,
    file: str,
    texts: Sequence[str],
    vary: Mapping[str, st.Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    goal: str,
    budget: int | None,
    learner: str | None,
    seed: int,
    max_events: int,
    target: str | None,
    observations: str | None,
    store: str | None,
    folder: str | None,
    workers: int | None,
    plot: str | None,
    as_json: bool,
    **aims: Any,
) -> None:
    """Run the MODEL in a file where runs are most informative about a goal, and write the posterior to a file. Each
    round chooses points and numbers of runs, until the goal is reached or the budget is spent.

    With --store, a run that was stopped resumes when the same command is run again. A STUDY with a table [decide] is
    run first, if it is not complete, and its rounds are shown. The points depend on earlier results, so `calibrate`
    refuses the observations.

    \b
    sateen refine examples/sir.sateen -p "(I > 0) U[100, 120] (I == 0)" --vary beta=0.005:0.3 \\
      --vary gamma=0.005:0.2:log --above 0.1 --undecided 0.05 --budget 100000 -o sir.safetensors
    sateen refine examples/threshold.toml
    """
    shared.check_files({"-o": target, "--observations": observations, "--store": store, "--plot": plot})
    if is_study(file):
        _, decision = from_study(ctx, file, "refinement", folder, workers, ("plot",))
        done = decision.refinement
        assert done is not None
    else:
        refuse_study_options(ctx)
        if budget is None or target is None:
            missing = "--budget N, the most runs" if budget is None else "-o FILE.safetensors, where the posterior goes"
            raise click.UsageError(f"give {missing}")
        chosen = goal_of(ctx, goal, aims)
        model, formulas, space = asked_of(file, texts, vary, at, constants, end)
        if len(formulas) > 1:
            raise click.UsageError("a refinement is about one property; give one -p")
        with shared.usage():
            made = None if learner is None else make_learner(learner)
        found: list[st.Refinement] = []

        def observe() -> st.Observations:
            found.append(
                st.refine(
                    model,
                    next(iter(formulas.values())),
                    space,
                    goal=chosen,
                    budget=budget,
                    seed=seed,
                    learner=made,
                    store=store,
                    workers=workers,
                    executor=shared.pool_here(),
                    progress=Bar(),
                    max_events=max_events,
                )
            )
            return found[0].observations

        with saying_what_is_stored(store):
            kept(observations, observe)
        (done,) = found
        done.posterior.save(target)
    if plot is not None:
        draw(plot, done.plot())
    files = [each for each in (observations, plot, target) if each]
    show(
        as_json,
        lambda: {"file": file, "seed": seed, **round_content(done), "files": files},
        lambda: [f"{file}, seed {seed}" if target else file, *round_lines(done), *files],
    )
