"""The command `inspect`: what a model says, what properties or a study ask, or what was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

import sateen as st
from sateen.cli.learned import learned_content, learned_lines
from sateen.cli.options import CONST, JSON
from sateen.cli.output import number, range_text, show, table
from sateen.cli.sources import (
    PROPERTY_SUFFIXES,
    Source,
    check_constants,
    load_learned,
    load_model,
    load_study,
    properties_in,
    text_in,
)
from sateen.core.errors import FormulaError
from sateen.core.text import duration_text, percent
from sateen.study.given import GivenTraining

if TYPE_CHECKING:
    from sateen.language.expression import Expression

_Entry: TypeAlias = dict[str, Any]  # one thing, as JSON has it
_Entries: TypeAlias = dict[str, list[_Entry]]  # of each kind

_SHOWN: Final = 60  # characters of a reward
_DIGITS: Final = 6  # of the ends of a range that is only proposed


@click.command()
@click.argument("model", metavar="FILE")
@CONST
@click.option("-p", "--property", "properties", metavar="FILE.props", help="Also what a file of properties asks of it.")
@JSON
def inspect(model: str, constants: Mapping[str, float], properties: str | None, as_json: bool) -> None:
    """Show what was understood of a FILE.

    Of a model: species and variables with their bounds, constants, parameters with defaults and plausible ranges,
    reactions, events, and what is doubtful. Of a file of properties (.props, .csl, .pctl): its constants, labels and
    properties, and which of them are not supported, and why. Of a posterior or a guarantee (.safetensors): how it was
    learned, from what, and what it promises. Of a study (.toml): what it asks, with its model; every key of the file is
    checked, and nothing is run.

    \b
    sateen inspect examples/sir.sateen
    sateen inspect examples/queue.prism --const capacity=10 -p examples/queue.props
    """
    suffix = model.lower()
    if suffix.endswith((".safetensors", ".toml", *PROPERTY_SUFFIXES)) and (constants or properties):
        raise click.UsageError(f"--const and -p are for a model, and {model} is not one")
    if suffix.endswith(".toml"):
        study = load_study(model)
        described = _described(study.model) if isinstance(study.model, st.Model) else {}
        heading = [""] if described else []
        show(
            as_json,
            lambda: {"file": model, **study.content(), **described},
            lambda: [*table(_study_rows(study)), *heading, *_lines(described)],
        )
    elif suffix.endswith(".safetensors"):
        loaded = load_learned(model)
        about = {"file": model, "kind": "guarantee" if isinstance(loaded, st.Guarantee) else "posterior"}
        show(as_json, lambda: {**about, **learned_content(loaded)}, lambda: learned_lines(loaded))
    elif suffix.endswith(PROPERTY_SUFFIXES):
        asked = _properties_alone(model)
        show(as_json, lambda: {"file": model, **asked}, lambda: _lines(asked))
    else:
        source = load_model(model, constants)
        if properties is None:
            check_constants(source, [])
        described = {**_described(source.model), **_for_properties(source)}
        if properties is not None:
            described["properties"] = _properties_of(source, properties)
        show(
            as_json,
            lambda: {"model": model, **described, "warnings": list(source.model.warnings)},
            lambda: _lines(described),
        )


def _study_rows(study: st.Study) -> Iterator[tuple[str, str]]:
    """What a study asks, a thing on each line."""
    yield "study", f"{study.name}, seed {study.seed}"
    if study.address:
        yield "callable", study.address
    for name, value in study.space.parameters:
        yield name, f"= {number(value)}" if isinstance(value, float) else range_text(value)
    for name, formula in study.properties.items():
        cut = "" if formula is None or formula.end is None else f", read up to {number(formula.end)}"
        yield name, "what the callable returns" if formula is None else f"{formula}{cut}"
    for part, design in (("train", study.train), ("test", study.test)):
        if isinstance(design, GivenTraining):
            yield part, f"{design.points:,} points of {design.file}, {design.runs:,} runs"
        elif design is not None:
            each = " per axis" if design.design == "grid" else ""
            yield part, f"{design.points:,} points{each} ({design.design}){_labelled(design.runs, design.exact)}"
    yield "learn", ", ".join(study.learners)
    if study.calibration is not None and study.guarantee is not None:
        cost, guarantee = study.calibration, study.guarantee
        labelled = _labelled(cost.runs or 0, bool(cost.exact))
        fixed = f"{cost.points:,} points{labelled}" if cost.points else f"{_time_text(cost.seconds)}{labelled}"
        yield (
            "calibrate",
            f"{cost.budget:,} runs" if cost.budget else f"for the width {cost.width}" if cost.width else fixed,
        )
        confidence = guarantee.confidence
        sure = "on average" if confidence is None else f"with confidence {percent(confidence)}"
        yield "guarantee", f"{guarantee.method} of {guarantee.of}, {percent(guarantee.level)} {sure}"
    if (spec := study.decide) is not None:
        limits = [f"{name} {sense} {number(limit)}" for name, (sense, limit) in spec.limits.items()]
        subject = f", subject to {' and '.join(limits)}" if limits else ""
        side = "" if spec.side is None else f" ({spec.side} is asked for)"
        yield "decide", f"{spec.about}: {spec.goal}{side}{subject}, with up to {spec.budget:,} runs"
        if spec.certificate is not None:
            yield "certify", f"by {spec.certificate.by}"
        if spec.bounds is not None:
            yield "bounds", f"at most {number(spec.bounds.width)} apart, or {spec.bounds.cells:,} cells"
    yield "result", str(study.folder)


def _labelled(runs: int, exact: bool) -> str:
    """How the points of a part get their labels."""
    return ", computed" if exact else f" with {runs:,} runs each" if runs else ""


def _time_text(seconds: float | str | None) -> str:
    return "as long as the training takes" if seconds == "training" else duration_text(float(seconds or 0.0))


def plausible_ranges(model: st.Model) -> dict[str, st.Range | None]:
    """A range for each parameter that has a default: a decade to either side of it, on a log scale.

    A share, whose complement 1 - p the model reads, is between 0 and 1. There is none for a parameter without default,
    or whose default is not positive, or that an initial count must be a whole number of.
    """
    shares, counts = _shares(model), _counts(model)
    ranges: dict[str, st.Range | None] = {}
    for parameter in model.parameters:
        default = parameter.default
        if parameter.name in counts or default is None:
            ranges[parameter.name] = None
        elif parameter.name in shares and 0 <= default <= 1:
            ranges[parameter.name] = st.Range(0.0, 1.0)
        else:
            low, high = (float(f"{default * factor:.{_DIGITS}g}") for factor in (0.1, 10.0))
            ranges[parameter.name] = st.Range(low, high, "log") if 0 < low < high < float("inf") else None
    return ranges


def _shares(model: st.Model) -> set[str]:
    """The names p that occur in a term 1 - p."""
    from sateen.language.expression import Name, Number, Operation, in_order

    read = [each.rate for each in model.transitions] + [each.value for each in model.constants]
    updates = [each.update for each in model.transitions] + [each.update for each in model.events]
    read += [value for update in updates for _, value in update]
    shares: set[str] = set()
    for node in (node for expression in read for node in in_order(expression)):
        match node:
            case Operation("+", (Number(1.0), Operation("-", (Name(name),)))):
                shares.add(name)
    return shares


def _counts(model: st.Model) -> set[str]:
    """The parameters that initial counts read, by way of constants too."""
    waiting = [name for each in model.variables if each.whole for name in each.initial.names]
    read = {constant.name: constant.value.names for constant in model.constants}
    counts: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in counts:
            counts.add(name)
            waiting += read.get(name, ())
    return counts


def _described(model: st.Model) -> _Entries:
    """What the model says, as plain data: numbers where they are known, and text."""
    from sateen.model.written import happens

    ranges = plausible_ranges(model)
    return {
        "species": [
            {"name": one.name, "initial": _known(one.initial), "low": one.low, "high": one.high, "whole": one.whole}
            for one in model.variables
        ],
        "constants": [{"name": each.name, "value": _known(each.value)} for each in model.constants],
        "observables": [{"name": each.name, "value": str(each.value)} for each in model.observables],
        "parameters": [
            {"name": each.name, "default": each.default, "range": (range_ := ranges[each.name]) and asdict(range_)}
            for each in model.parameters
        ],
        "reactions": [
            {"name": one.name, "happens": happens(one), "rate": str(one.rate), "guard": one.guard and str(one.guard)}
            for one in model.transitions
        ],
        "events": [
            {"name": one.name, "happens": happens(one), "trigger": str(one.trigger), "initially": one.initially}
            for one in model.events
        ],
        "assumptions": [{"text": text} for text in model.assumptions],
    }


def _for_properties(source: Source) -> _Entries:
    """What a model in the PRISM language has for its properties: rewards, labels, and open constants."""
    scope = source.scope
    return {
        "rewards": [
            {
                "name": each.name or str(place + 1),
                "state": str(each.state.expression),
                "rate": str(each.rate.expression),
            }
            for place, each in enumerate(scope.rewards)
        ],
        "labels": [{"name": name, "condition": str(one.expression)} for name, one in scope.labels.items()],
        "open": [{"name": name, "kind": kind} for name, (kind, value) in scope.open.items() if value is None],
    }


def _known(expression: Expression) -> float | str:
    return str(expression) if expression.names else float(expression.evaluate({}))


def _properties_of(source: Source, file: str) -> list[_Entry]:
    """What each property of a file asks of a model, or why it is refused, and where."""
    properties, order = properties_in(source, file)
    entries: list[_Entry] = []
    for name in order:
        error = properties.refused.get(name)
        if error is not None:
            entries.append({"name": name, "formula": None, "refused": error.message, "line": error.line})
            continue
        asked = properties[name]
        compared = {"comparison": asked.comparison, "bound": asked.bound}
        reward = isinstance(asked.formula, st.Reward)
        horizon = asked.formula.time if reward else asked.formula.horizon
        about = {"name": name, "asks": "R" if reward else "P", "formula": str(asked.formula)}
        entries.append({**about, **compared, "horizon": horizon})
    return entries


def _properties_alone(file: str) -> _Entries:
    """What a file of properties says, as far as it can be told without the model that it is about."""
    from sateen.logic.csl_text import items, parse_definition, parse_question, refused_operator

    text = text_in(file)
    entries: _Entries = {"constants": [], "labels": [], "properties": []}
    for item in items(text):
        line = text.count("\n", 0, item.start) + 1
        written = " ".join(item.text.split())
        try:
            if item.kind == "constant":
                constant = parse_definition(item)
                declared = {"name": constant.name, "kind": constant.kind, "open": constant.value is None}
                entries["constants"].append({**declared, "line": line})
            elif item.kind == "label":
                entries["labels"].append({"name": parse_definition(item).name, "text": written, "line": line})
            else:
                refusal = refused_operator(item)
                if refusal is None:
                    parse_question(item)
                name = item.name or f"property_{len(entries['properties']) + 1}"
                refused = refusal and refusal.message
                entries["properties"].append({"name": name, "text": written, "refused": refused, "line": line})
        except FormulaError as mistake:
            place = item.start + mistake.position
            raise FormulaError(f"{file}: {mistake.message}", text, place, mistake.remedy) from None
    return entries


def _lines(described: _Entries) -> Iterator[str]:
    """A table for each kind of thing that there is."""
    for kind, things in described.items():
        if things:
            yield click.style("left open, for properties" if kind == "open" else kind, bold=True)
            yield from table(_filled([_ROWS[kind](each) for each in things]), indent="  ")


def _filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without the columns in which none has anything."""
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return [[row[place] for place in kept] for row in rows]


def _species_row(each: _Entry) -> list[str]:
    bounds = "" if (each["low"], each["high"]) == (0, None) else "a real number"
    if each["whole"] and bounds:
        low, high = each["low"], each["high"]
        bounds = f"in {'(-inf' if low is None else f'[{low}'}, {'inf)' if high is None else f'{high}]'}"
    return [each["name"], number(each["initial"]), bounds]


def _parameter_row(each: _Entry) -> list[str]:
    proposed = each["range"]
    scale = ", log" if proposed and proposed["scale"] == "log" else ""
    range_ = f"perhaps {number(proposed['low'])} to {number(proposed['high'])}{scale}" if proposed else ""
    return [each["name"], "needs a value" if each["default"] is None else number(each["default"]), range_]


def _property_row(each: _Entry) -> list[str]:
    if each.get("refused"):
        return [each["name"], f"refused, line {each['line']}: {each['refused']}"]
    if "text" in each:
        return [each["name"], each["text"]]
    asked = f"{each['asks']} {each['comparison']} {number(each['bound'])}: " if each["comparison"] else ""
    return [each["name"], f"{asked}{each['formula']}"]


def _constant_row(each: _Entry) -> list[str]:
    if "kind" in each:
        return [each["name"], each["kind"], "needs a value" if each["open"] else ""]
    return [each["name"], number(each["value"])]


def _rates(state: str, rate: str) -> list[str]:
    """What a structure of rewards pays, shortened, and what it comes to with the rewards of transitions."""
    short = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in (state, rate)]
    return [f"{short[0]} in a state", f"{short[1]} per unit of time with transitions" if rate != state else ""]


_ROWS: Final[dict[str, Callable[[_Entry], list[str]]]] = {
    "species": _species_row,
    "constants": _constant_row,
    "parameters": _parameter_row,
    "reactions": lambda each: [
        *(each["name"], each["happens"], f"@ {each['rate']}"),
        f"when {each['guard']}" if each["guard"] else "",
    ],
    "observables": lambda each: [each["name"], f"= {each['value']}"],
    "assumptions": lambda each: [each["text"]],
    "events": lambda each: [
        *(each["name"], each["happens"], f"when {each['trigger']}"),
        "" if each["initially"] else "initially false",
    ],
    "rewards": lambda each: [each["name"], *_rates(each["state"], each["rate"])],
    "labels": lambda each: [each["name"], each.get("condition") or each["text"]],
    "open": lambda each: [each["name"], each["kind"]],
    "properties": _property_row,
}
