"""The command `inspect`: what a model says, what properties or a study ask, or what was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sateen.cli.files import reading, warn
from sateen.cli.options import CONST, JSON
from sateen.cli.sources import PROPERTY_SUFFIXES, Source, no_constant, opened, properties_in, text_in
from sateen.cli.text import aligned, number, print_json
from sateen.core.errors import FormulaError

if TYPE_CHECKING:
    from sateen.core.space import Range
    from sateen.language.expression import Expression
    from sateen.model.model import Model, Variable

__all__ = ["inspect", "plausible_ranges"]

_DIGITS: Final = 6  # of the ends of a range that is only proposed


@click.command(short_help="What a model, properties or a study say, or what was learned.")
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
    if model.lower().endswith((".safetensors", ".toml", *PROPERTY_SUFFIXES)) and (constants or properties):
        raise click.UsageError(f"--const and -p are for a model, and {model} is none")
    if model.lower().endswith(".toml"):
        _inspect_study(model, as_json)
        return
    if model.lower().endswith(".safetensors"):
        _inspect_learned(model, as_json)
        return
    if model.lower().endswith(PROPERTY_SUFFIXES):
        content = _properties_alone(model)
        found = {"file": model}
    else:
        source = opened(model, constants)
        if source.constants and properties is None:
            raise no_constant(source, next(iter(source.constants)))
        content = {**_described(source.model), **_for_properties(source)}
        if properties is not None:
            content["properties"] = _properties_of(source, properties)
        found = {"model": model}
        warn(source.model)
        if as_json:
            content["warnings"] = list(source.model.warnings)
    if as_json:
        print_json({**found, **content})
    else:
        _print_description(content)


def _inspect_learned(file: str, as_json: bool) -> None:
    from sateen.cli.learned import guarantee_content, guarantee_lines, learned_content, learned_lines
    from sateen.guarantee.guarantee import Guarantee
    from sateen.study import stored

    with reading(file):
        known = stored.load(file)
    guaranteed = isinstance(known, Guarantee)
    if as_json:
        content = guarantee_content(known) if isinstance(known, Guarantee) else learned_content(known)
        print_json({"file": file, "kind": "guarantee" if guaranteed else "posterior", **content})
    else:
        click.echo("\n".join(guarantee_lines(known) if isinstance(known, Guarantee) else learned_lines(known)))


def _inspect_study(file: str, as_json: bool) -> None:
    from sateen.cli.inspect_study import study_rows
    from sateen.cli.run import read_study
    from sateen.model.model import Model

    study = read_study(file)
    described = _described(study.model) if isinstance(study.model, Model) else {}
    if as_json:
        print_json({"file": file, **study.content(), **described})
        return
    click.echo("\n".join(aligned(list(study_rows(study)))))
    if described:
        click.echo()
        _print_description(described)


def plausible_ranges(model: Model) -> dict[str, Range | None]:
    """A range for each parameter that has a default: a decade to either side of it, on a log scale.

    A share, whose complement 1 - p the model reads, is between 0 and 1. There is none for a parameter without default,
    or whose default is not positive, or that an initial count must be a whole number of.
    """
    from sateen.core.space import Range

    shares, counts = _shares(model), _counts(model)
    found: dict[str, Range | None] = {}
    for parameter in model.parameters:
        default = parameter.default
        if parameter.name in counts or default is None:
            found[parameter.name] = None
        elif parameter.name in shares and 0 <= default <= 1:
            found[parameter.name] = Range(0.0, 1.0)
        else:
            low, high = (float(f"{default * factor:.{_DIGITS}g}") for factor in (0.1, 10.0))
            found[parameter.name] = Range(low, high, "log") if 0 < low < high < float("inf") else None
    return found


def _shares(model: Model) -> set[str]:
    """The names that stand in a term 1 - p somewhere."""
    from sateen.language.expression import Name, Number, Operation, in_order

    read = [each.rate for each in model.transitions] + [each.value for each in model.constants]
    updates = [each.update for each in model.transitions] + [each.update for each in model.events]
    read += [value for update in updates for _, value in update]
    found: set[str] = set()
    for node in (node for expression in read for node in in_order(expression)):
        match node:
            case Operation("+", (Number(1.0), Operation("-", (Name(name),)))):
                found.add(name)
    return found


def _counts(model: Model) -> set[str]:
    """The parameters that initial counts read, by way of constants too."""
    waiting = [name for each in model.variables if each.whole for name in each.initial.names]
    read = {constant.name: constant.value.names for constant in model.constants}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += read.get(name, ())
    return found


def _described(model: Model) -> dict[str, Any]:
    """What the model says, as plain data: numbers where they are known, and text."""
    from sateen.model.written import happens

    ranges = plausible_ranges(model)
    return {
        "species": [_described_variable(each) for each in model.variables],
        "constants": [{"name": each.name, "value": _known(each.value)} for each in model.constants],
        "parameters": [
            {"name": each.name, "default": each.default, "range": _range_content(ranges[each.name])}
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
    }


def _for_properties(source: Source) -> dict[str, Any]:
    """What a model in the PRISM language has for its properties: labels, and open constants that it does not read."""
    scope = source.scope
    return {
        "labels": [{"name": name, "condition": str(one.expression)} for name, one in scope.labels.items()],
        "open": [{"name": name, "kind": kind} for name, (kind, value) in scope.open.items() if value is None],
    }


def _described_variable(variable: Variable) -> dict[str, Any]:
    bounds = {"low": variable.low, "high": variable.high, "whole": variable.whole}
    return {"name": variable.name, "initial": _known(variable.initial), **bounds}


def _range_content(found: Range | None) -> dict[str, Any] | None:
    return None if found is None else {"low": found.low, "high": found.high, "scale": found.scale}


def _known(expression: Expression) -> float | str:
    return str(expression) if expression.names else float(expression.evaluate({}))


def _properties_of(source: Source, file: str) -> list[dict[str, Any]]:
    """What each property of a file asks of a model, or why it is refused, and where."""
    properties, order = properties_in(source, file)
    found: list[dict[str, Any]] = []
    for name in order:
        error = properties.refused.get(name)
        if error is not None:
            found.append({"name": name, "formula": None, "refused": error.message, "line": error.line})
            continue
        asked = properties[name]
        compared = {"comparison": asked.comparison, "bound": asked.bound}
        found.append({"name": name, "formula": str(asked.formula), **compared, "horizon": asked.formula.horizon})
    return found


def _properties_alone(file: str) -> dict[str, Any]:
    """What a file of properties says, as far as it can be told without the model that it is about."""
    from sateen.language.grammar import Mistake
    from sateen.logic.csl_text import items, parse_constant, parse_label, parse_question, refused_operator

    with reading(file):
        text = text_in(file)
    found: dict[str, list[dict[str, Any]]] = {"constants": [], "labels": [], "properties": []}
    for item in items(text):
        line = text.count("\n", 0, item.start) + 1
        said = " ".join(item.text.split())
        try:
            if item.kind == "constant":
                name, _, kind, value = parse_constant(item)
                found["constants"].append({"name": name, "kind": kind, "open": value is None, "line": line})
            elif item.kind == "label":
                found["labels"].append({"name": parse_label(item)[0], "text": said, "line": line})
            else:
                refusal = refused_operator(item)
                if refusal is None:
                    parse_question(item)
                name = item.name or f"property_{len(found['properties']) + 1}"
                refused = refusal and refusal.message
                found["properties"].append({"name": name, "text": said, "refused": refused, "line": line})
        except Mistake as mistake:
            place = item.start + mistake.position
            raise FormulaError(f"{file}: {mistake.message}", text, place, mistake.remedy) from None
    return found


def _print_description(described: Mapping[str, Any]) -> None:
    """A table for each kind of thing that there is."""
    for kind, things in described.items():
        if things:
            heading = "left open, for properties" if kind == "open" else kind
            click.secho(heading, bold=True)
            for line in aligned(_filled([_ROWS[kind](each) for each in things])):
                click.echo(f"  {line}")


def _filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without the columns in which none has anything."""
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return [[row[place] for place in kept] for row in rows]


def _species_row(each: Mapping[str, Any]) -> list[str]:
    bounds = "" if (each["low"], each["high"]) == (0, None) else "a real number"
    if each["whole"] and bounds:
        low, high = each["low"], each["high"]
        bounds = f"in {'(-inf' if low is None else f'[{low}'}, {'inf)' if high is None else f'{high}]'}"
    return [each["name"], number(each["initial"]), bounds]


def _parameter_row(each: Mapping[str, Any]) -> list[str]:
    proposed = each["range"]
    scale = ", log" if proposed and proposed["scale"] == "log" else ""
    said = f"perhaps {number(proposed['low'])} to {number(proposed['high'])}{scale}" if proposed else ""
    return [each["name"], "needs a value" if each["default"] is None else number(each["default"]), said]


def _property_row(each: Mapping[str, Any]) -> list[str]:
    if each.get("refused"):
        return [each["name"], f"refused, line {each['line']}: {each['refused']}"]
    if "text" in each:
        return [each["name"], each["text"]]
    asked = f"P {each['comparison']} {number(each['bound'])}: " if each["comparison"] else ""
    return [each["name"], f"{asked}{each['formula']}"]


def _constant_row(each: Mapping[str, Any]) -> list[str]:
    if "kind" in each:
        return [each["name"], each["kind"], "needs a value" if each["open"] else ""]
    return [each["name"], number(each["value"])]


_ROWS: Final = {
    "species": _species_row,
    "constants": _constant_row,
    "parameters": _parameter_row,
    "reactions": lambda each: [
        *(each["name"], each["happens"], f"@ {each['rate']}"),
        f"when {each['guard']}" if each["guard"] else "",
    ],
    "events": lambda each: [
        *(each["name"], each["happens"], f"when {each['trigger']}"),
        "" if each["initially"] else "initially false",
    ],
    "labels": lambda each: [each["name"], each.get("condition") or each["text"]],
    "open": lambda each: [each["name"], each["kind"]],
    "properties": _property_row,
}
