"""The command `inspect`: what a model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sateen.cli.files import load, warn
from sateen.cli.options import JSON
from sateen.cli.text import aligned, number, print_json

if TYPE_CHECKING:
    from sateen.core.expression import Expression
    from sateen.model.model import Model

__all__ = ["inspect"]


@click.command(short_help="What a model says.")
@click.argument("model")
@JSON
def inspect(model: str, as_json: bool) -> None:
    """Show what a MODEL file says: species, constants, parameters, reactions, and what is doubtful."""
    system = load(model)
    if as_json:
        print_json({"model": model, **_described(system), "warnings": list(system.warnings)})
    else:
        _print_description(_described(system))
    warn(system)


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
