"""The command `inspect`: what a model says, what was learned, or what a study asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sateen.cli.files import load, reading, warn
from sateen.cli.options import JSON
from sateen.cli.text import aligned, number, print_json

if TYPE_CHECKING:
    from sateen.core.expression import Expression
    from sateen.model.model import Model
    from sateen.study.study import Study

__all__ = ["inspect"]


@click.command(short_help="What a model says, what was learned, or what a study asks.")
@click.argument("model", metavar="MODEL|FILE.safetensors|STUDY.toml")
@JSON
def inspect(model: str, as_json: bool) -> None:
    """Show what a MODEL file says: species, constants, parameters, reactions, and what is doubtful.

    Of a posterior or a guarantee in a FILE.safetensors, show how it was learned, from what, and what it promises. Of a
    study, show what it asks, with its model; every key of the file is checked, and nothing is run.
    """
    if model.lower().endswith(".toml"):
        _inspect_study(model, as_json)
        return
    if model.lower().endswith(".safetensors"):
        _inspect_learned(model, as_json)
        return
    system = load(model)
    if as_json:
        print_json({"model": model, **_described(system), "warnings": list(system.warnings)})
    else:
        _print_description(_described(system))
    warn(system)


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
    from sateen.cli.run import read_study
    from sateen.model.model import Model

    study = read_study(file)
    described = _described(study.model) if isinstance(study.model, Model) else {}
    if as_json:
        print_json({"file": file, **study.content(), **described})
        return
    click.echo("\n".join(aligned(list(_study_rows(study)))))
    if described:
        click.echo()
        _print_description(described)


def _study_rows(study: Study) -> Iterator[tuple[str, str]]:
    """What a study asks, a thing on each line."""
    from sateen.core.prediction import percent

    yield "study", f"{study.name}, seed {study.seed}"
    if study.address:
        yield "callable", study.address
    for name, value in study.space.parameters:
        if isinstance(value, float):
            yield name, f"= {number(value)}"
        else:
            yield name, f"in {value}" + " on a log scale" * (value.scale == "log")
    for name, formula in study.properties.items():
        cut = "" if formula is None or formula.end is None else f", read up to {number(formula.end)}"
        yield name, "what the callable returns" if formula is None else f"{formula}{cut}"
    for part, design in (("train", study.train), ("test", study.test)):
        if design is not None:
            each = " per axis" if design.design == "grid" else ""
            yield part, f"{design.points:,} points{each} ({design.design}) with {design.runs:,} runs each"
    yield "learn", ", ".join(study.methods)
    if study.calibration is not None and study.promise is not None:
        asked, promise = study.calibration, study.promise
        fixed = f"{asked.points or 0:,} points with {asked.runs or 0:,} runs each"
        spent = f"{asked.budget:,} runs" if asked.budget else f"for the width {asked.width}" if asked.width else fixed
        sure = "on average" if promise.confidence is None else f"with confidence {percent(promise.confidence)}"
        yield "calibrate", spent
        yield "guarantee", f"{promise.method} of {promise.of}, {percent(promise.level)} {sure}"
    yield "result", str(study.folder)


def _described(model: Model) -> dict[str, list[dict[str, Any]]]:
    """What the model says, as plain data: numbers where they are known, and text."""
    from sateen.model.written import happens

    return {
        "species": [{"name": each.name, "initial": _known(each.initial)} for each in model.variables],
        "constants": [{"name": each.name, "value": _known(each.value)} for each in model.constants],
        "parameters": [{"name": each.name, "default": each.default} for each in model.parameters],
        "reactions": [
            {"name": one.name, "happens": happens(one), "rate": str(one.rate), "guard": one.guard and str(one.guard)}
            for one in model.transitions
        ],
    }


def _known(expression: Expression) -> float | str:
    return str(expression) if expression.names else float(expression.evaluate({}))


def _print_description(described: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A table for each kind of thing that the model has."""
    words = {"default": lambda value: "needs a value" if value is None else number(value)}
    words |= {"rate": lambda rate: f"@ {rate}", "guard": lambda guard: f"when {guard}" if guard else ""}
    for kind, things in described.items():
        if things:
            click.secho(kind, bold=True)
            for line in aligned([[words.get(key, number)(each[key]) for key in each] for each in things]):
                click.echo(f"  {line}")
