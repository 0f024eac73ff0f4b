"""The command `optimise`: the parameters for which the probability is largest, or smallest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import (
    BUDGET,
    FOLDER,
    MINIMISE,
    STORE,
    WITHIN,
    WORKERS,
    WORST,
    asked_of,
    from_study,
    is_study,
    refuse_study_options,
    saying_what_is_stored,
    values_line,
)
from sateen.cli.output import show
from sateen.cli.progress import Bar
from sateen.core.errors import InputError, nearest
from sateen.study.decide_table import Comparison, limit_in

_LIMIT: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*([<>]=.*)")


def _limits(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, tuple[Comparison, float]]:
    """What `--subject-to 'toxic <= 0.05'` gives, by the name of the property."""
    limits: dict[str, tuple[Comparison, float]] = {}
    for text in texts:
        parts = _LIMIT.fullmatch(text)
        if parts is None:
            raise click.BadParameter(f"{text!r} is not NAME <= NUMBER or NAME >= NUMBER, such as 'toxic <= 0.05'")
        try:
            limits[parts[1]] = limit_in(parts[2])
        except InputError as error:
            raise click.BadParameter(error.message) from None
    return limits


@click.command()
@click.argument("file", metavar="STUDY.toml|MODEL")
@shared.property_option("The formula that a run should satisfy; NAME=FORMULA where there are several.", several=True)
@shared.VARY
@shared.AT
@shared.CONST
@shared.END
@MINIMISE
@click.option(
    "--subject-to", multiple=True, callback=_limits, metavar="'NAME <= P'", help="A limit on a property; repeatable."
)
@WITHIN
@WORST
@BUDGET
@click.option("--gap", type=float, metavar="G", help="How much the best point may miss; by default 0.01.")
@click.option("--by", type=click.Choice(["fresh", "cells"]), help="How that is proven; by default by fresh points.")
@click.option(
    "--wrong", type=float, metavar="W", help="The share of the space that may still be better; by default 0.01."
)
@click.option("--confidence", type=float, metavar="C", help="The confidence in that; by default 0.95.")
@shared.SEED
@shared.MAX_EVENTS
@shared.target_option("posterior", "FILE.safetensors")
@STORE
@FOLDER
@WORKERS
@shared.on_option
@shared.NO_CODE
@shared.JSON
@click.pass_context
def optimise(
    ctx: click.Context,
    /,
    file: str,
    texts: Sequence[str],
    vary: Mapping[str, st.Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    minimise: bool,
    subject_to: Mapping[str, tuple[Comparison, float]],
    within: Mapping[str, float],
    worst: bool,
    budget: int | None,
    seed: int,
    max_events: int,
    target: str | None,
    store: str | None,
    folder: str | None,
    workers: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find the parameters for which a run of the MODEL in a file is most likely to satisfy a formula; with an interval
    for the probability there, and a statement on how much the best point may miss.

    With --subject-to, other properties are limited: the first -p that has no limit is what is optimised. With --within,
    the best point allows for tolerances: --within k=0.1 averages over k ± 0.1, or over a factor of 1.1 on a log scale.

    \b
    sateen optimise examples/sir.sateen -p "(I > 0) U[100, 120] (I == 0)" --vary beta=0.005:0.3 \\
      --vary gamma=0.02:0.2:log --budget 60000
    sateen optimise examples/best.toml
    """
    shared.check_files({"-o": target, "--store": store})
    if is_study(file):
        _, decision = from_study(ctx, file, "best", folder, workers)
        best = decision.best
        assert best is not None
    else:
        refuse_study_options(ctx)
        if budget is None:
            raise click.UsageError("give --budget N, the most runs")
        model, formulas, space = asked_of(file, texts, vary, at, constants, end)
        objective = _objective(formulas, subject_to)
        with saying_what_is_stored(store):
            best = st.optimise(
                model,
                formulas if subject_to else formulas[objective],
                space,
                budget=budget,
                seed=seed,
                minimise=minimise,
                within=within or None,
                worst=worst,
                subject_to=subject_to or None,
                objective=objective if subject_to else None,
                store=store,
                workers=workers,
                executor=shared.pool_here(),
                progress=Bar(),
                max_events=max_events,
                **{name: value for name, value in asked.items() if value is not None},
            )
        if target is not None:
            best.posterior.save(target)
    files = [target] if target else []

    def content() -> dict[str, object]:
        from sateen.study.decided import best_content

        return {"file": file, **best_content(best), "files": files}

    show(as_json, content, lambda: [file, *best_lines(best), *files])


def _objective(formulas: Mapping[str, st.Formula], limits: Mapping[str, object]) -> str:
    """The property that is optimised: the one without a limit."""
    for name in limits:
        if name not in formulas:
            hint = nearest(name, formulas) or f"name it, as in -p {name}='F[0, 5] X > 9'"
            raise click.UsageError(f"--subject-to: no property is called {name}; {hint}")
    free = [name for name in formulas if name not in limits]
    if len(free) != 1:
        problem = "every property has a limit" if not free else f"{' and '.join(free)} have no limit"
        raise click.UsageError(f"what is optimised? {problem}; give one -p without --subject-to")
    return free[0]


def best_lines(best: st.BestPoint) -> Iterator[str]:
    """The best point, the probability there, and what is claimed of it."""
    yield f"best at {values_line(best.theta)}"
    yield f"the probability there is {best.value:.4g}, between {best.lower:.4g} and {best.upper:.4g}"
    for claim in best.claims:
        yield f"{claim}"
    yield f"{best.runs:,} runs"
