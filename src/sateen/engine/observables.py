"""Formulas that read the observables of a model, put into what its variables say; and observables along a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sateen.core.path import Path
from sateen.core.types import FloatArray
from sateen.language.expression import Delayed, Expression, Name, Operation
from sateen.logic.formula import Atom, Formula, Node
from sateen.model.model import Model


def written_out(model: Model, formula: Formula) -> Formula:
    """The formula with what observables stand for in their place."""
    meanings = {name: meaning for name in formula.species if (meaning := model.meaning(name)) is not None}
    definitions = {name: meaning for name, meaning in meanings.items() if meaning != Name(name)}
    if not definitions:
        return formula

    def change(node: Node) -> Node:
        if isinstance(node, Atom):
            return Atom(_delayed(node.comparison.substitute(definitions), definitions, model.species))
        return node.mapped(change)

    return Formula(change(formula.root), formula.end)


def _delayed(node: Expression, definitions: Mapping[str, Expression], species: Sequence[str]) -> Expression:
    """The expression with delayed observables in terms of delayed species."""
    if isinstance(node, Delayed) and node.name in definitions:
        value = definitions[node.name]
        return value.substitute({name: Delayed(name, node.lag) for name in value.names if name in species})
    if isinstance(node, Operation):
        return Operation(node.symbol, tuple(_delayed(each, definitions, species) for each in node.operands))
    return node


def path_of(
    model: Model,
    times: FloatArray | Sequence[float],
    states: object,
    end: float,
    absorbed: bool,
    values: Mapping[str, float],
) -> Path:
    """The path of these states of the model, with a column for each observable behind those of the variables."""
    table = np.asarray(states, np.float64)
    columns = [table]
    if model.observables:
        environment = {**values, **dict(zip(model.species, table.T, strict=True))}
        for observable in model.observables:
            columns.append(np.broadcast_to(observable.value.evaluate(environment), len(table))[:, np.newaxis])
    names = (*model.species, *(observable.name for observable in model.observables))
    return Path(times, np.hstack(columns), names, end, absorbed, values)
