"""Bounds of f over boxes of parameters that hold for every θ in the box: interval uniformization.

f is computed backward. Let v(i) be the probability that the formula will hold, from pair i at the end of a span. Over
a span of length t, with any Λ at least as fast as every state is left, uniformization says

    v before the span = Σ_k Poisson(Λt; k) P_θᵏ v,        P_θ = I + Q_θ/Λ.

The generator is Q_θ = Σ_f f(θ) C_f with factors f that only θ decides and coefficients C_f that only the state decides
(`factors.py`). Let Λ serve the whole box. Then M v = max over the factors, each in its own range and chosen anew for
each state, of (I + Σ_f f C_f/Λ) v. It is monotone, because I + Q/Λ has no negative entry, and P_θ v <= M v for every θ
in the box. So by Horner's rule, from the last k to the first,

    y <- M y + Poisson(Λt; k) v        ends with        y >= Σ_k Poisson(Λt; k) P_θᵏ v        for every θ in the box.

That is an upper bound; a lower bound of f is an upper bound of 1 - f. Where a phase ends, v before is v after at the
pairs that follow. What is cut off the Poisson weights is added, and so is a bound on the rounding: M moves no error
further (it is a contraction in the largest absolute value), a step rounds by at most `Stage.roundings` units, and
coefficients and factors are intervals, rounded outward. docs/guarantees.md has the proof in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sateen.core.errors import ExactError, InputError
from sateen.core.space import Space
from sateen.core.text import names_text
from sateen.core.types import FloatArray
from sateen.engine.chain import Chain, shown
from sateen.engine.events import BoolArray
from sateen.engine.exact import check_question, prepare
from sateen.engine.factors import Factors, Shares, factored
from sateen.engine.observables import written_out
from sateen.engine.progression import Question
from sateen.engine.walk import INSTEAD, Walk
from sateen.language.expression import Expression
from sateen.logic.formula import Atom, Formula, subformulas
from sateen.model.model import Model

MOST_PARAMETERS: Final = 6  # that affect f: the cells of a box grow exponentially with them
_AT_ONCE: Final = 1024  # bounds whose factors are computed at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enclosure:
    """Bounds of f over boxes of parameters, which hold for every θ of a box; see `of` and `bounds`.

    `relevant` are the parameters that affect f, and `states` is the size of the largest phase.

    >>> from sateen.logic.parser import stl
    >>> queue = Model.parse('''
    ...     species X = 0
    ...     arrive: 0 -> X @ lam when X < 9
    ...     serve:  X -> 0 @ mu * min(X, 1)
    ... ''')
    >>> enclosure = Enclosure.of(queue, stl("F[0, 10] X == 9"), Space(lam=(0.5, 2), mu=(1, 2)))
    >>> lower, upper = enclosure.bounds([[0.98, 1.0]], [[1.0, 1.02]])
    >>> lower.round(4), upper.round(4)
    (array([0.0615]), array([0.0721]))
    """

    model: Model
    formula: Formula
    space: Space
    relevant: tuple[str, ...]
    states: int
    factors: Factors
    walk: Walk

    @staticmethod
    def of(model: Model, formula: Formula, space: Space, *, max_states: int = 200_000) -> Enclosure:
        """The enclosure of f over a space; ExactError names what cannot be bounded, with the alternative.

        Parameters that vary may appear in rates only. The formula is one that `exact` takes; an operator without an end
        is taken where the graph of the chain alone decides it.
        """
        check_question(model, formula, max_states)
        if not isinstance(space, Space):
            raise InputError("bounds over boxes need a Space", argument="space")
        values = model.values({**space.fixed, **_centre(space)})
        constants = _constants(model)
        plain = written_out(model, formula)
        _refuse_elsewhere(model, plain, space, constants)
        question = Question.of(plain)
        try:
            prepared, _ = prepare(model, question, values, max_states, None)
        except ExactError as error:
            raise ExactError(error.message, remedy=INSTEAD) from None
        chains = [regime.chain for regime in prepared.regimes]
        factors, shares = factored(model, space, values, constants, chains)
        for chain, share in zip(chains, shares, strict=True):
            _refuse_other_edges(chain, share, values)
        walk = Walk.of(prepared, shares, factors, space)
        used = sorted({index for stage in walk.stages for index in stage.used.tolist()})
        read = {name for index in used for name in factors.reads(index)}
        relevant = tuple(name for name in space.names if name in read)
        if len(relevant) > MOST_PARAMETERS:
            raise ExactError(
                f"{len(relevant)} parameters that vary affect f ({names_text(relevant)}), and the cells of a box grow "
                f"exponentially with them: at most {MOST_PARAMETERS} are taken",
                remedy=f"fix some of them in the Space, or use what samples: {INSTEAD}",
            )
        states = max((phase.size for phase in prepared.phases), default=len(chains[0]))
        return Enclosure(model, formula, space, relevant, states, factors, walk)

    def bounds(
        self, low: object, high: object, *, lower: bool = True, upper: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of f over boxes: for every θ with low <= θ <= high, a row of each for every box.

        The columns are those of the space. A side that is not asked for is 0 or 1. A bound does not depend on the
        other boxes of the call. Boxes may be points, and must lie in the space.
        """
        lows, highs = (np.array(each, dtype=np.float64, ndmin=2) for each in (low, high))
        sides = [side for side, asked in ((False, lower), (True, upper)) if asked]
        found = {side: np.full(len(lows), float(side)) for side in (False, True)}
        jobs = np.repeat(np.array(sides, dtype=np.bool_), len(lows))
        computed = self.sides(np.tile(lows, (len(sides), 1)), np.tile(highs, (len(sides), 1)), jobs)
        for place, side in enumerate(sides):
            found[side] = computed[place * len(lows) : (place + 1) * len(lows)]
        return found[False], found[True]

    def sides(self, low: FloatArray, high: FloatArray, upper: BoolArray) -> FloatArray:
        """One bound for each box: the upper one where `upper` says so, the lower one elsewhere."""
        self._check_boxes(low, high)
        bounds = np.empty(len(low))
        for begin in range(0, len(low), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            bounds[part] = self.walk.sides(*self.factors.ranges(low[part], high[part]), upper[part])
        return bounds

    def values(self, theta: FloatArray) -> FloatArray:
        """f at points, as the upper bounds over boxes that are points: at most some 1e-9 too large."""
        return self.sides(theta, theta, np.ones(len(theta), dtype=np.bool_))

    def _check_boxes(self, low: FloatArray, high: FloatArray) -> None:
        width = len(self.space)
        if low.shape != high.shape or low.ndim != 2 or low.shape[1] != width:
            raise InputError(f"boxes need two tables of the shape (n, {width}), not {low.shape} and {high.shape}")
        inside = self.space.contains(low) & self.space.contains(high) & (low <= high).all(axis=1)
        if not inside.all():
            row = int(np.argmin(inside))
            raise InputError(f"box {row} is not a box in the space: from {low[row].tolist()} to {high[row].tolist()}")

    def __repr__(self) -> str:
        names = ", ".join(self.relevant) or "no parameter"
        return f"<Enclosure of {self.formula} over {names}: {self.states:,} states, {len(self.walk.stages)} spans>"


def _centre(space: Space) -> dict[str, float]:
    """The parameters in the middle of their ranges, where whatever can fire does."""
    return dict(zip(space.names, space.from_unit(np.zeros((1, len(space))))[0].tolist(), strict=True))


def _constants(model: Model) -> dict[str, Expression]:
    """The model's constants as expressions of parameters alone."""
    written: dict[str, Expression] = {}
    for constant in model.constants:
        written[constant.name] = constant.value.substitute(written)
    return written


def _refuse_elsewhere(model: Model, formula: Formula, space: Space, constants: Mapping[str, Expression]) -> None:
    """Raise if a parameter that varies is read by anything but rates."""
    places: list[tuple[str, Expression]] = []
    for part in subformulas(formula.root):
        if isinstance(part, Atom):
            places.append((f"the formula, in {part}", part.comparison))
    places += [(f"the initial count of {each.name}", each.initial) for each in model.variables]
    for transition in model.transitions:
        if transition.guard is not None:
            places.append((f"the guard of {transition.name}", transition.guard))
        places += [(f"what {transition.name} sets {name} to", value) for name, value in transition.update]
    for event in model.events:
        places.append((f"the trigger of the event {event.name}", event.trigger))
        places += [(f"what the event {event.name} sets {name} to", value) for name, value in event.update]
    for where, expression in places:
        read = [name for name in expression.substitute(constants).names if name in space.ranges]
        if read:
            raise ExactError(
                f"{read[0]} varies and is read by {where}: bounds over a box of parameters need one chain for "
                "the whole box, so that parameters may vary in rates only",
                remedy=f"fix {read[0]} in the Space; {INSTEAD}",
            )


def _refuse_other_edges(chain: Chain, shares: Shares, values: Mapping[str, float]) -> None:
    """Raise if, under some θ, a transition fires where it does not in the chain."""
    others = shares.possible(chain.fires.shape) & ~chain.fires
    if others.any():
        transition, place = np.argwhere(others)[0]
        state = shown(chain.model, chain.states[chain.followed[place]], values)
        raise ExactError(
            f"{chain.model.transitions[transition].name} does not fire where {state}, but may under other parameters "
            "of the space: bounds over boxes need one chain for all of it",
            remedy=f"narrow the Space so that the same transitions fire everywhere in it; {INSTEAD}",
        )
