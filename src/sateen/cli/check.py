"""The command `check`: the probability at one θ, from runs, with its interval; a test; exact; and one run replayed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click

import sateen as st
from sateen.cli.options import AT, CONST, COUNT, END, JSON, MAX_EVENTS, PLOT, SEED, given, property_option, written
from sateen.cli.output import number, print_json, put, run_content, shortened, show, warn, write_run
from sateen.cli.progress import Bar
from sateen.cli.sources import load_model, read_question
from sateen.core.errors import ExactError
from sateen.core.registry import call_provider
from sateen.core.text import percent, values_text

if TYPE_CHECKING:
    from sateen.logic.properties import Property

_WALDS: Final = ("indifference", "error")
_UNIFORM: Final = "under a uniform prior"
_CAPS: Final = {"max_events": "--max-events", "max_time": "--max-time"}  # which decide more runs when raised


@click.command()
@click.argument("model")
@property_option("The formula that a run should satisfy.", required=True)
@AT
@CONST
@click.option("--runs", type=COUNT, metavar="N", help="Make N runs; by default 10000.")
@click.option("--width", type=float, metavar="W", help="Make as many runs as an interval of width W needs.")
@click.option("--test", metavar="'P>0.3'", help="Make as many runs as a yes-or-no answer needs.")
@click.option(
    "--indifference",
    type=float,
    default=0.01,
    show_default=True,
    metavar="D",
    help="How close to the threshold of a test either answer is acceptable.",
)
@click.option("--error", type=float, default=0.05, show_default=True, metavar="E", help="How often a test may err.")
@click.option(
    "--bayes", is_flag=True, help="Answer the test by its Bayes factor; under a prior, it errs at most this often."
)
@click.option(
    "--prior", type=float, nargs=2, metavar="A B", help="P is Beta(A, B) before the runs; by default uniform, 1 1."
)
@click.option("--factor", type=float, metavar="F", help="The Bayes factor that decides; by default the error says.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="The level of the intervals.")
@SEED
@END
@click.option(
    "--max-runs", type=COUNT, default=10_000_000, metavar="N", help="The largest number of runs for a width or a test."
)
@MAX_EVENTS
@click.option("--max-time", type=float, default=math.inf, metavar="T", help="A run is undecided at time T.")
@click.option("--exact", "exactly", is_flag=True, help="Also compute the probability, where the model is finite.")
@click.option("--replay", type=click.IntRange(0), metavar="RUN", help="Also show one of the runs, counted from 0.")
@click.option("--csv", callback=written, metavar="FILE", help="Write the replayed run as a table.")
@PLOT
@JSON
def check(
    model: str,
    text: str,
    at: Mapping[str, float],
    constants: Mapping[str, float],
    seed: int,
    end: float | None,
    exactly: bool,
    replay: int | None,
    csv: str | None,
    plot: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the probability that a run of the MODEL in a file satisfies a formula, or an expected reward.

    The exit code is 0 whatever the answer. Run RUN of --replay is exactly the one that was counted. A property may be
    one of a file, FILE.props:NAME, or FILE.props:2 by its place there; P>=0.9 [ ... ] is a test, if --runs and --width
    do not say otherwise. Of R=? [ ... ], an expected reward of a model in the PRISM language, --runs are made; of the
    other options --level, --exact, --max-events and --max-time apply.

    \b
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --exact
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --test "P > 0.05" --bayes
    sateen check examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --replay 17 --plot run.svg
    """
    # All options beyond those that are named above are arguments of `estimate`.
    ways = [name for name in ("runs", "width", "test") if options[name] is not None]
    if len(ways) > 1:
        raise click.UsageError("--runs, --width and --test each say how many runs to make; give one of them")
    if replay is None and (csv or plot):
        raise click.UsageError("--csv and --plot show a single run; say which with --replay RUN")
    source = load_model(model, constants)
    system = source.model
    values = system.values(at)
    question = read_question(source, values, text, end)
    formula = question.formula
    heading = f"{model}, seed {seed}{', ' * bool(values)}{values_text(values)}\n"
    heading += f"{question.name}: {formula}\n" if question.name else f"{formula}\n"
    if isinstance(formula, st.Reward):
        if replay is not None:
            raise click.UsageError("--replay explains a verdict, and a reward has none; `sateen simulate` makes a run")
        content = {"model": model, "at": values, "seed": seed, "property": question.name or None}
        answer, lines = _reward(system, question, at, seed, exactly, options)
        show(as_json, lambda: {**content, "reward": str(formula), **answer}, lambda: [heading, *lines])
        return
    if not ways:
        options["test"] = _test(question, None if options["bayes"] else options["indifference"])
    if options["bayes"]:  # which has other defaults
        options |= {name: None for name in _WALDS if not given(click.get_current_context(), (name,))}
    estimate = st.estimate(system, formula, at, seed=seed, progress=Bar(), **options)
    caps = {name: options[name] for name in _CAPS}
    content = {"model": model, "at": values, "formula": str(formula), "end": formula.end}
    content |= {"property": question.name or None, "comparison": question.comparison, "bound": question.bound}
    content |= {"horizon": formula.horizon, "seed": seed, **_content(estimate)}
    if not as_json:  # printed at once: a failure in what follows does not lose a long estimate
        put(heading)
        put("\n".join(_lines(estimate, caps)))
    if exactly:
        computed, line = _exact(system, formula, at, estimate)
        content |= computed
        if not as_json:
            put(line)
    files: list[str] = []
    if replay is not None:
        path = call_provider("follow a run", system, formula, at, seed=seed, run=replay, progress=Bar(), **caps)
        assert isinstance(path, st.Path)
        explanation = st.explain(formula, path)
        files = write_run(path, explanation, csv, plot)
        content["replay"] = {"run": replay, **run_content(path, explanation)}
        if not as_json:
            stranger = ", which was not among them" if replay >= estimate.runs + estimate.planning else ""
            shown = [] if files else [*_table(path), ""]
            put("\n".join(["", f"run {replay}{stranger}", *shown, str(explanation), *files]))
    if as_json:
        print_json({**content, "files": files})


def _reward(
    model: st.Model, question: Property[Any], at: Mapping[str, float], seed: int, exactly: bool, options: dict[str, Any]
) -> tuple[dict[str, object], list[str]]:
    """The estimate of an expected reward, and the reward itself if it is asked for: as plain data, and in lines."""
    reward: st.Reward = question.formula
    context = click.get_current_context()
    options = {name: value for name, value in options.items() if given(context, (name,)) or name in ("level", *_CAPS)}
    estimate = st.estimate(model, reward, at, seed=seed, progress=Bar(), **options)
    content: dict[str, object] = {"comparison": question.comparison, "bound": question.bound, **_content(estimate)}
    mean = estimate.lower if estimate.infinite else estimate.value
    value = f"R = {number(float(f'{mean:.6g}'))}" if not math.isnan(mean) else "R is left open by undecided runs"
    lines = [f"{value}, the mean of {estimate.runs:,} runs (standard deviation {estimate.deviation:.4g})"]
    if estimate.infinite:
        lines = [value]
    for reason, count in estimate.reasons.items():
        lines.append(f"{count:,} runs are undecided: they reached {reason} = {number(options[reason])}")
    lines += [*estimate.sentences, *_assumed(estimate)]
    if question.comparison is not None and question.bound is not None:
        content["holds"], line = _compared(question.comparison, question.bound, estimate)
        lines.append(line)
    if exactly:
        try:
            exact = float(st.exact(model, reward, at)[0])
        except ExactError as error:
            return {**content, "exact": None, "exact_refused": str(error)}, [*lines, f"not exact: {error}"]
        inside = "inside" if estimate.lower <= exact <= estimate.upper else "outside"
        content |= {"exact": exact, "exact_refused": None}
        lines.append(f"exact: R = {exact:.10g}, {inside} the interval")
    return content, lines


def _compared(comparison: str, bound: float, estimate: st.RewardEstimate) -> tuple[bool | None, str]:
    """Whether the whole interval lies on one side of a bound."""
    asked = f"R {comparison} {number(bound)}"
    if estimate.lower > bound or estimate.upper < bound:
        above = estimate.lower > bound
        holds = above == (">" in comparison)
        side = f"the whole interval lies {'above' if above else 'below'} {number(bound)}"
        return holds, f"{asked} {'holds' if holds else 'does not hold'}: {side}"
    return None, f"{asked} stays open: the interval contains {number(bound)}; more --runs make it narrower"


def _test(question: Property[Any], indifference: float | None) -> str | None:
    """The test that a property with a bound asks for, if runs can answer it: they cannot tell 1 from nearly 1."""
    if question.comparison is None or question.bound is None:
        return None
    test = f"P {question.comparison} {question.bound!r}"
    if indifference is None or (question.bound - indifference > 0.0 and question.bound + indifference < 1.0):
        return test
    near = f"{question.bound:g} ± {indifference:g} does not lie between 0 and 1"
    warn(f"{test} is not tested, for {near}; runs are counted")
    return None


def _exact(
    model: st.Model, formula: st.Formula, theta: Mapping[str, float], estimate: st.Estimate
) -> tuple[dict[str, object], str]:
    """The probability, or why it cannot be computed: as plain data, and in a line."""
    try:
        probability = float(st.exact(model, formula, theta)[0])
    except ExactError as error:
        return {"exact": None, "exact_refused": str(error)}, f"not exact: {error}"
    inside = "inside" if estimate.lower <= probability <= estimate.upper else "outside"
    return {"exact": probability, "exact_refused": None}, f"exact: P = {probability:.10f}, {inside} the interval"


def _lines(estimate: st.Estimate, caps: Mapping[str, float]) -> Iterator[str]:
    """The estimate in words."""
    least, most = (count / estimate.runs for count in (estimate.satisfied, estimate.satisfied + estimate.undecided))
    value = f"P = {least:.6g}" if least == most else f"P is between {least:.6g} and {most:.6g} as counted"
    yield f"{value}: {estimate.satisfied:,} of {estimate.runs:,} runs satisfy it"
    for reason, count in estimate.reasons.items():
        remedy = f"; {_CAPS[reason]} may be raised" if reason in _CAPS else ""
        yield f"{count:,} runs are undecided: they reached {reason} = {number(caps[reason])}{remedy}"
    yield str(estimate)
    yield from _assumed(estimate)
    belief = f"P is from {estimate.bayes_lower:.4g} to {estimate.bayes_upper:.4g} with probability"
    before = f"under the prior {estimate.bayes.claim.measure}" if estimate.bayes else _UNIFORM
    yield f"Bayes: {belief} {percent(estimate.level)}, {before}"
    if estimate.bayes:
        yield str(estimate.bayes.claim)
    planning = f" and {estimate.planning:,} to plan them" if estimate.planning else ""
    rate = f"{estimate.events / max(estimate.seconds, 1e-9) / 1e6:.3g} million a second"
    yield f"{estimate.runs:,} runs{planning}: {estimate.events:,} events in {estimate.seconds:.3g} s, {rate}"


def _assumed(estimate: st.Estimate | st.RewardEstimate) -> Iterator[str]:
    """What the interval takes for granted."""
    if estimate.claim.assuming:
        yield f"this assumes that {estimate.claim.assuming}"


def _content(estimate: st.Estimate | st.RewardEstimate) -> dict[str, object]:
    """The estimate as plain data."""
    content = {each.name: getattr(estimate, each.name) for each in fields(estimate)}
    content |= {"reasons": dict(estimate.reasons), "claim": estimate.claim.content()}
    if isinstance(estimate, st.Estimate):
        content["bayes"] = estimate.bayes and estimate.bayes.content()
    return content


def _table(path: st.Path) -> list[str]:
    """A line for every jump; of a long run, the first and the last ones."""
    rows = [[f"{time:.6g}", *map(number, state)] for time, state in zip(path.times, path.states, strict=True)]
    lines = shortened(["time", *path.species], rows, "--csv FILE")
    return [*lines, "absorbed: nothing happens any more" if path.absorbed else f"known until {number(path.end)}"]
