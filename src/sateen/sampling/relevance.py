"""Which parameters can affect a verdict at all: the cone of influence of a formula in a model."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sateen.language.expression import Expression
from sateen.logic.formula import Formula
from sateen.model.model import Model

__all__ = ["relevant"]


def relevant(model: Model, formula: Formula) -> tuple[str, ...]:
    """The parameters that can affect the probability of `formula`, in the order of the model.

    Let C be the least set of species that holds those the formula reads and, with a species, every species read by the
    rate or the guard of a transition that changes it, or by the value it then gets. A transition that changes nothing
    in C never matters to C, and all others have rates that are functions of C and of parameters alone. So the part of
    the state that lies in C is a Markov chain of its own, whose law, hence that of the verdict, depends only on the
    parameters in those rates, guards, values and initial counts, and in the formula's atoms. The rest has no effect.

    The argument needs runs that end at the formula's horizon. An unbounded operator may be decided because the whole
    model comes to rest, a cap stops a run because of all that happens in it, and an event may be set off by anything:
    with an event or an unbounded operator all parameters are returned, and `observe` does so where a cap was reached.

    >>> from sateen.logic.parser import stl
    >>> model = Model.parse('''
    ...     species A = 10, B = 0
    ...     A -> 0 @ mass_action(decay)
    ...     0 -> B @ birth
    ... ''')
    >>> relevant(model, stl("F[0, 5] A == 0"))
    ('decay',)
    """
    everything = tuple(parameter.name for parameter in model.parameters)
    if model.events or math.isinf(formula.horizon):
        return everything
    reached: set[str] = set()
    waiting = list(formula.species)
    constants = {constant.name: constant.value for constant in model.constants}
    initial = {variable.name: variable.initial for variable in model.variables}
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if name in constants:
            waiting += constants[name].names
        elif name in initial:
            waiting += _names([initial[name], *_influences(model, name)])
    return tuple(name for name in everything if name in reached)


def _influences(model: Model, species: str) -> list[Expression]:
    """What decides when a species changes, and to what."""
    found: list[Expression] = []
    for transition in model.transitions:
        assigned = [value for name, value in transition.update if name == species]
        if assigned or transition.change.get(species):
            found += [transition.rate, *assigned, *([] if transition.guard is None else [transition.guard])]
    return found


def _names(expressions: Iterable[Expression]) -> list[str]:
    return [name for expression in expressions for name in expression.names]
