"""Bounds of f over boxes of parameters that hold for every θ in the box: interval uniformization.

f is computed backward. Let v(i) be the probability that the formula will hold, from pair i at the end of a span. Over
a span of length t, with any Λ at least as fast as every state is left, uniformization says

    v before the span = Σ_k Poisson(Λt; k) P_θᵏ v,        P_θ = I + Q_θ/Λ.

The generator is Q_θ = Σ_f f(θ) C_f with factors f that only θ decides and coefficients C_f that only the state decides
(`terms.py`). Let Λ serve the whole box. Then M v = max over the factors, each in its own range and chosen anew for each
state, of (I + Σ_f f C_f/Λ) v. It is monotone, because I + Q/Λ has no negative entry, and P_θ v <= M v for every θ in
the box. So by Horner's rule, from the last k to the first,

    y <- M y + Poisson(Λt; k) v        ends with        y >= Σ_k Poisson(Λt; k) P_θᵏ v        for every θ in the box.

That is an upper bound; a lower bound of f is an upper bound of 1 - f. Where a phase ends, v before is v after at the
pairs that follow. What is cut off the Poisson weights is added, and so is a bound on the rounding: M moves no error
further (it is a contraction in the largest absolute value), a step rounds by at most `_Stage.roundings` units, and
coefficients and factors are intervals, rounded outward. docs/guarantees.md has the proof in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from sateen.core.errors import ExactError, InputError
from sateen.core.space import Space
from sateen.core.text import names_text
from sateen.core.types import Array, FloatArray, IntArray
from sateen.engine.chain import Chain, shown
from sateen.engine.events import BoolArray
from sateen.engine.exact import Phase, check_question, prepare
from sateen.engine.factors import Factors, Shares, factored
from sateen.engine.motion import MOST_STEPS, Limit, poisson_weights
from sateen.engine.progression import Question
from sateen.language.expression import Expression
from sateen.logic.formula import Atom, Formula, subformulas
from sateen.model.model import Model

MOST_PARAMETERS: Final = 6  # that affect f: the cells of a box grow exponentially with them
_ERROR: Final = 1e-10  # of all phases together, for what is cut off the Poisson weights
_UNIT: Final = 2.0**-53  # the relative error of one rounding
_FASTER: Final = 1.0 + 2.0**-20  # of Λ over the fastest state: more than all roundings in either
_AT_ONCE: Final = 256  # bounds whose factors are computed at a time
_INSTEAD: Final = 'tests by simulation take any model: certify(..., by="fresh")'


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
    (array([0.0596]), array([0.0721]))
    """

    model: Model
    formula: Formula
    space: Space
    relevant: tuple[str, ...]
    states: int
    start: int
    factors: Factors
    stages: tuple[_Stage, ...]

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
        _refuse_elsewhere(model, formula, space, constants)
        question = Question.of(formula)
        try:
            prepared, _ = prepare(model, question, values, max_states, None)
        except ExactError as error:
            raise ExactError(error.message, remedy=_INSTEAD) from None
        chains = [regime.chain for regime in prepared.regimes]
        factors, shares = factored(model, space, values, constants, chains)
        for chain, share in zip(chains, shares, strict=True):
            _refuse_other_edges(chain, share, values)
        stages = tuple(_Stage.of(phase, shares[phase.regime], factors, space) for phase in prepared.phases)
        used = sorted({index for stage in stages for index in stage.used.tolist()})
        read = {name for index in used for name in factors.reads(index)}
        relevant = tuple(name for name in space.names if name in read)
        if len(relevant) > MOST_PARAMETERS:
            raise ExactError(
                f"{len(relevant)} parameters that vary affect f ({names_text(relevant)}), and the cells of a box grow "
                f"exponentially with them: at most {MOST_PARAMETERS} are taken",
                remedy=f"fix some of them in the Space, or use what samples: {_INSTEAD}",
            )
        states = max((stage.size for stage in stages), default=len(chains[0]))
        return Enclosure(model, formula, space, relevant, states, prepared.start, factors, stages)

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
        if not self.stages:
            bounds[:] = float(self.start)
            return bounds
        for begin in range(0, len(low), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            bounds[part] = self._sides(low[part], high[part], upper[part])
        return bounds

    def values(self, theta: FloatArray) -> FloatArray:
        """f at points, as the upper bounds over boxes that are points: at most some 1e-9 too large."""
        return self.sides(theta, theta, np.ones(len(theta), dtype=np.bool_))

    def _sides(self, low: FloatArray, high: FloatArray, upper: BoolArray) -> FloatArray:
        from sateen.engine.enclosure_kernel import LANES  # numba is loaded now

        slow, fast = self.factors.ranges(low, high)
        speeds = [stage.speed(fast) for stage in self.stages]
        work = sum(speed * stage.duration for speed, stage in zip(speeds, self.stages, strict=True))
        bounds = np.empty(len(low))
        order = np.argsort(work, kind="stable")
        for begin in range(0, len(order), LANES):
            jobs = order[begin : begin + LANES]
            lanes = np.resize(jobs, LANES)  # a lane that is not needed repeats another
            values = _aligned(2)
            values[0], values[1] = ~upper[lanes], upper[lanes]
            error = np.zeros(LANES)
            for stage, speed in zip(reversed(self.stages), reversed(speeds), strict=True):
                values, more = stage.before(values, slow[lanes], fast[lanes], speed[lanes], _ERROR / len(self.stages))
                error += more
            found = np.clip(values[self.start] + error * (1 + 1e-6), 0.0, 1.0)
            bounds[jobs] = np.where(upper[lanes], found, np.maximum(np.nextafter(1.0 - found, -1.0), 0.0))[: len(jobs)]
        return bounds

    def _check_boxes(self, low: FloatArray, high: FloatArray) -> None:
        width = len(self.space)
        if low.shape != high.shape or low.ndim != 2 or low.shape[1] != width:
            raise InputError(f"boxes need two tables of the shape (n, {width}), not {low.shape} and {high.shape}")
        inside = self.space.contains(low) & self.space.contains(high) & (low <= high).all(axis=1)
        if not inside.all():
            row = int(np.argmin(inside))
            raise InputError(f"box {row} is no box in the space: from {low[row].tolist()} to {high[row].tolist()}")

    def __repr__(self) -> str:
        names = ", ".join(self.relevant) or "no parameter"
        return f"<Enclosure of {self.formula} over {names}: {self.states:,} states, {len(self.stages)} spans>"


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A phase as it is walked backward: its edges by source and factor.

    `lone` are the edges that have a factor to themselves, `grouped` those that share one with others of their source;
    each as the arrays that the kernel takes. `leaving` and `slack` are, for every state and factor, the largest sum of
    coefficients and how uncertain it is. `certain` is the end of an endless span.
    """

    duration: float
    size: int
    onward: IntArray
    lone: tuple[Array, ...]
    grouped: tuple[Array, ...]
    leaving: csr_array
    slack: csr_array
    roundings: int
    certain: FloatArray | None

    @property
    def used(self) -> IntArray:
        """The factors of its edges."""
        return np.unique(self.leaving.indices).astype(np.int64)

    @staticmethod
    def of(phase: Phase, shares: Shares, factors: Factors, space: Space) -> _Stage:
        """The stage of a phase whose edges have these shares of the factors."""
        # An edge of the model may have several terms: each is an edge of its own.
        edge, term = shares.terms_of(phase.edges)
        sources, targets = phase.sources[edge], phase.targets[edge]
        factor, coefficient, width = shares.factor[term], shares.coefficient[term], shares.width[term]
        shape = (phase.size, factors.count)
        leaving = csr_array((coefficient + width, (sources, factor)), shape=shape)
        slack = csr_array((width, (sources, factor)), shape=shape)
        order = np.lexsort((factor, sources))
        sources, targets, factor, coefficient = sources[order], targets[order], factor[order], coefficient[order]
        fresh = np.ones(len(sources), dtype=np.bool_)
        fresh[1:] = (sources[1:] != sources[:-1]) | (factor[1:] != factor[:-1])
        first = np.flatnonzero(fresh)
        counts = np.diff(np.append(first, len(sources)))
        single = first[counts == 1]
        several, sizes = first[counts > 1], counts[counts > 1]
        inner = np.repeat(counts > 1, counts)
        states = np.arange(phase.size + 1)
        lone = (np.searchsorted(sources[single], states), factor[single], targets[single], coefficient[single])
        groups = (np.searchsorted(sources[several], states), factor[several], np.append(0, np.cumsum(sizes)))
        grouped = (*groups, targets[inner], coefficient[inner])
        # Every difference, product and sum of a step, with room: see docs/guarantees.md.
        per_state = int(np.bincount(sources[first], minlength=phase.size).max(initial=0))
        roundings = 4 * per_state + 2 * int(counts.max(initial=0)) + 16
        return _Stage(
            duration=phase.duration,
            size=phase.size,
            onward=phase.onward,
            lone=_narrow(lone),
            grouped=_narrow(grouped),
            leaving=leaving,
            slack=slack,
            roundings=roundings,
            certain=_certain(phase, shares, factors, space),
        )

    def speed(self, fast: FloatArray) -> FloatArray:
        """Λ for each of the boxes: at least as fast as every state is left under every θ."""
        if self.certain is not None:
            return np.zeros(len(fast))
        speed = _FASTER * (self.leaving @ fast.T).max(axis=0, initial=0.0)
        if not (steps := float(speed.max(initial=0.0)) * self.duration) <= MOST_STEPS:
            raise ExactError(
                f"over a span of {self.duration:g} the fastest state is left some {steps:.3g} times, and bounds follow "
                f"at most {MOST_STEPS:,} steps",
                remedy=f"shorten the window or slow the fastest transition down; {_INSTEAD}",
            )
        return np.asarray(speed)

    def before(
        self, after: FloatArray, slow: FloatArray, fast: FloatArray, speed: FloatArray, error: float
    ) -> tuple[FloatArray, FloatArray]:
        """The values at the begin of the span, a column for each lane, and a bound on what they lack."""
        from sateen.engine.enclosure_kernel import LANES, compiled

        if self.certain is not None:
            return np.where(
                after[0] > after[1], 1.0 - self.certain[:, np.newaxis], self.certain[:, np.newaxis]
            ), np.zeros(LANES)
        goal = _aligned(self.size)
        goal[:] = after[self.onward]
        speed = np.maximum(speed, np.finfo(np.float64).tiny)
        windows = [poisson_weights(float(each) * self.duration, error) for each in speed]
        begin, end = min(first for first, _ in windows), max(first + len(window) for first, window in windows)
        weights = _aligned(end - begin)
        for lane, (first, window) in enumerate(windows):
            weights[first - begin : first - begin + len(window), lane] = window
        middle, radius = _aligned(self.leaving.shape[1]), _aligned(self.leaving.shape[1])
        middle[:] = (0.5 * (fast + slow) / speed[:, np.newaxis]).T
        radius[:] = (0.5 * (fast - slow) / speed[:, np.newaxis]).T
        values = compiled().relaxed(
            _aligned(self.size), _aligned(self.size), goal, weights, begin, middle, radius, *self.lone, *self.grouped,
            self.size,
        )  # fmt: skip
        steps = np.array([first + len(window) for first, window in windows])
        uncertain = np.asarray((self.slack @ fast.T).max(axis=0, initial=0.0)) / speed
        lengths = np.array([len(window) for _, window in windows])
        return values.reshape(-1, LANES), error + 8 * lengths * _UNIT + steps * (self.roundings * _UNIT + uncertain)


def _certain(phase: Phase, shares: Shares, factors: Factors, space: Space) -> FloatArray | None:
    """The values of an endless span that the graph alone decides, which it does where no rate can be 0."""
    if not isinstance(phase.motion, Limit):
        return None
    if len(phase.motion.doubtful):
        raise ExactError(
            "an operator without an end depends on rates after the last bound of a window, and bounds over boxes "
            "follow a finite time",
            remedy=f"give the operator a window that ends, such as F[0, 1000]; {_INSTEAD}",
        )
    _, term = shares.terms_of(phase.edges)
    low = np.array([[each.low for each in space.ranges.values()]])
    high = np.array([[each.high for each in space.ranges.values()]])
    slow, _ = factors.ranges(low, high)
    if not (slow[0, shares.factor[term]] * (shares.coefficient[term] - shares.width[term]) > 0.0).all():
        raise ExactError(
            "a rate that an operator without an end waits for may be 0 at an end of the space",
            remedy=f"keep the parameters of the Space away from 0, or give the operator a window that ends; {_INSTEAD}",
        )
    return phase.motion.certain


def _aligned(rows: int) -> FloatArray:
    """A table of zeros with a row of lanes for each of `rows`, none of which crosses a line of the cache."""
    from sateen.engine.enclosure_kernel import LANES

    buffer = np.zeros((rows + 1) * LANES)
    offset = (-buffer.ctypes.data % 64) // 8
    return buffer[offset : offset + rows * LANES].reshape(rows, LANES)


def _narrow(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Whole numbers as the kernel takes them."""
    return tuple(each if each.dtype.kind == "f" else each.astype(np.uint32) for each in arrays)


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
                remedy=f"fix {read[0]} in the Space; {_INSTEAD}",
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
            remedy=f"narrow the Space so that the same transitions fire everywhere in it; {_INSTEAD}",
        )
