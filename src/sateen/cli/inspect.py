"""The command `inspect`: what a model says, or what was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sateen.cli.files import load, reading, warn
from sateen.cli.options import JSON
from sateen.cli.text import aligned, number, print_json

if TYPE_CHECKING:
    from sateen.core.expression import Expression
    from sateen.model.model import Model

__all__ = ["inspect"]


@click.command(short_help="What a model says, or what was learned.")
@click.argument("model", metavar="MODEL|FILE.safetensors")
@JSON
def inspect(model: str, as_json: bool) -> None:
    """Show what a MODEL file says: species, constants, parameters, reactions, and what is doubtful.

    Of a posterior or a guarantee in a FILE.safetensors, show how it was learned, from what, and what it promises.
    """
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
