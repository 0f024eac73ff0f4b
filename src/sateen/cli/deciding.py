"""What the commands that decide share: a study with [decide], goals and limits as options, and what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.output import number, say, table
from sateen.cli.progress import Bar
from sateen.cli.sources import load_model, load_study, read_property
from sateen.core.errors import InputError
from sateen.decision.goals import check_inside

if TYPE_CHECKING:
    from sateen.decision.goals import Goal
    from sateen.study.decided import DecisionResult
    from sateen.study.result import PropertyResult

_GOALS: Final = {
    "threshold": ("above", "below", "undecided", "level"),
    "width": ("width", "share", "level"),
    "error": ("error",),
    "optimum": ("regret", "minimise", "within", "worst"),
}
_MISSING: Final = {
    "refinement": ('its goal is an optimum, which has a search of its own: "sateen optimise" shows it', ""),
    "regions": ("its [decide] has no threshold", "add above = 0.1, or below = 0.1"),
    "certificate": ("its [decide] asks for no certificate", "add certificate = { wrong = 0.01 }"),
    "best": ("its [decide] asks for no optimum", 'add goal = "optimum"'),
    "sensitivity": ("its [decide] has sensitivity = false, or no parameter varies", ""),
}
_NAMED: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?![=>])\s*(.+)", re.DOTALL)  # name=FORMULA; A == 0 is not a name

FOLDER: Final = click.option(
    "--folder", metavar="FOLDER", help="Where the result of a STUDY is; by default NAME-result next to it."
)
WORKERS: Final = click.option(
    "--workers", type=shared.COUNT, metavar="N", help="The number of processes that simulate."
)
ABOVE: Final = click.option("--above", type=float, metavar="P", help="Ask where the probability is at least P.")
BELOW: Final = click.option("--below", type=float, metavar="P", help="Ask where the probability is at most P.")
BAND: Final = click.option("--level", type=float, metavar="L", help="The level of the bands; by default 0.95.")
STORE: Final = click.option(
    "--store", callback=shared.written, metavar="FILE", help="Keep runs in FILE, from which a stopped run resumes."
)
BUDGET: Final = click.option("--budget", type=shared.COUNT, metavar="N", help="The largest number of runs to make.")
WITHIN: Final = click.option(
    "--within", multiple=True, callback=shared.pairs, metavar="k=0.1", help="Tolerances of the best point; repeatable."
)
WORST: Final = click.option(
    "--worst", is_flag=True, help="Judge by the worst value within the tolerances, not by the mean."
)
MINIMISE: Final = click.option("--minimise", is_flag=True, help="Look for the smallest probability.")


def is_study(file: str) -> bool:
    """Whether a file is a study, by its name."""
    return file.lower().endswith(".toml")


def from_study(
    ctx: click.Context, file: str, part: str, folder: str | None, workers: int | None, allowed: Sequence[str] = ()
) -> tuple[PropertyResult, DecisionResult]:
    """What a study decided, whose missing stages are run as `sateen run` would; `part` must be there.

    All other options say what the study says itself, and are refused.
    """
    mine = ("folder", "workers", "on", "insecure", "as_json", "code", *allowed)
    own = tuple(option.name or "" for option in ctx.command.params if isinstance(option, click.Option))
    if strangers := shared.given(ctx, tuple(name for name in own if name not in mine and name != "help")):
        raise click.UsageError(f"{strangers[0]}: a study says this itself, in its table [decide]")
    study = load_study(file, folder)
    check_decides(study, file, part)
    try:
        code, pool = not shared.given(ctx, ("code",)), shared.pool_here(study.on)
        result = study.run(folder, workers=workers, executor=pool, progress=Bar(), code=code)
    except KeyboardInterrupt as stop:
        say(f"{stop}")
        raise
    assert study.decide is not None
    answer = result.properties[study.decide.about]
    assert answer.decision is not None
    return answer, answer.decision


@contextmanager
def saying_what_is_stored(store: str | None) -> Iterator[None]:
    """After Ctrl-C, say that the store has what was done, and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if store is not None:
            say(f"{store} has what was done; run the same again to resume")
        raise


def check_decides(study: st.Study, file: str, part: str) -> None:
    """Refuse a study that does not ask for this part of a decision."""
    spec = study.decide
    if spec is None:
        remedy = "add one, such as [decide] with above = 0.1 and budget = 100000"
        raise InputError(f"{file} has no table [decide], which says what is to be decided", remedy=remedy)
    there = {
        "refinement": spec.optimum is None,
        "regions": spec.threshold is not None,
        "certificate": spec.certificate is not None and spec.threshold is not None,
        "best": spec.optimum is not None,
        "sensitivity": spec.sensitivity and bool(study.space.names),
    }
    if not there[part]:
        problem, remedy = _MISSING[part]
        raise InputError(f"{file}: {problem}", remedy=remedy)


def refuse_study_options(ctx: click.Context) -> None:
    """Refuse options that are for studies, where there is none."""
    if unused := shared.given(ctx, ("folder",)):
        raise click.UsageError(f"{unused[0]} is for a STUDY.toml")


def goal_of(ctx: click.Context, name: str, given: Mapping[str, Any]) -> Goal:
    """The goal that the options describe; an option of another goal is refused."""
    known = tuple({option for options in _GOALS.values() for option in options} - set(_GOALS[name]))
    there = tuple(option.name for option in ctx.command.params)
    if strangers := shared.given(ctx, tuple(sorted(option for option in known if option in there))):
        raise click.UsageError(f"{strangers[0]} is not for --goal {name}")
    options = {option: given[option] for option in _GOALS[name] if given[option] is not None}
    with shared.usage():
        if name == "threshold":
            sides = [side for side in ("above", "below") if side in options]
            if len(sides) != 1:
                raise click.UsageError("which threshold? Give one of --above P and --below P")
            check_inside(options[sides[0]], sides[0], "0.1")
            return st.Threshold(options.pop(sides[0]), **options)
        if name == "optimum":
            return st.Optimum(**{**options, "within": options["within"] or None})
        if name not in options:
            raise click.UsageError(f"--goal {name} needs a target: give --{name}")
        return st.Width(**options) if name == "width" else st.Error(**options)


def asked_of(
    file: str,
    texts: Sequence[str],
    vary: Mapping[str, st.Range],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
) -> tuple[st.Model, dict[str, st.Formula], st.Space]:
    """The model in a file, its properties by name, and the space; a property without a name is called "property"."""
    if not texts:
        raise click.UsageError("which property? Give it with -p FORMULA")
    if not vary:
        raise click.UsageError("what varies? Give each parameter its range, as in --vary beta=0.005:0.3")
    shared.check_once(vary, at)
    source = load_model(file, constants)
    space = st.Space({**vary, **at})
    lowest = {name: each.low if isinstance(each, st.Range) else each for name, each in space.parameters}
    values = source.model.values(lowest)
    formulas: dict[str, st.Formula] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        name, formula = (named[1], named[2]) if named else ("property", text)
        if name in formulas:
            raise click.UsageError(f"two properties are called {name}; name each, as in -p toxic='F[0, 5] X > 9'")
        formulas[name] = read_property(source, values, formula, end).formula
    return source.model, formulas, space


def box_lines(box: st.Space | None) -> Iterator[str]:
    """The largest box that was found, a parameter on each line."""
    if box is None:
        yield "no box: no point looked at is on the side that was asked for"
        return
    yield "the largest box found on that side:"
    rows = [[name, f"from {range_.low:.6g} to {range_.high:.6g}"] for name, range_ in box.ranges.items()]
    yield from table(rows, indent="  ")


def round_lines(done: st.Refinement) -> Iterator[str]:
    """The rounds of a refinement as a table, and why it ended."""
    rows = [[str(each.number), f"{each.points:,}", f"{each.runs:,}", f"{each.figure:.4g}"] for each in done.rounds]
    yield from table([["round", "points", "runs", done.goal.name], *rows], str.rjust)
    yield f"{done.goal}: {done.reason}"


def round_content(done: st.Refinement) -> dict[str, object]:
    """A refinement as plain data."""
    from dataclasses import asdict

    rounds = [asdict(each) for each in done.rounds]
    return {"goal": str(done.goal), "reached": done.reached, "reason": done.reason, "rounds": rounds}


def values_line(theta: Mapping[str, float]) -> str:
    """A point: `beta = 0.1, gamma = 0.05`, with six digits."""
    return ", ".join(f"{name} = {number(float(f'{value:.6g}'))}" for name, value in theta.items())
