"""A chain together with what remains to be decided: one Markov chain for each span between the bounds of windows.

Its states are pairs (state of the model, rest of the formula), so operators that depend on each other are decided
together. Pairs whose rest is false or true are lumped into two sinks. A pair's rest changes when a state is entered,
and at the bounds of windows; only pairs that can be reached are kept. Where a new regime of the model begins, a span
ends too, and events may change the state of a pair before its rest is looked at.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.core.errors import ExactError
from sateen.core.types import IntArray
from sateen.engine.chain import Chain, reachable
from sateen.engine.events import BoolArray
from sateen.engine.progression import FALSE, TRUE, Moment, Question, settled, untils
from sateen.engine.regimes import Regime
from sateen.logic.formula import Node

__all__ = ["SINKS", "Phase", "phases_of"]

SINKS: Final[tuple[Node, ...]] = (FALSE, TRUE)  # the first two states of every phase


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The chain of pairs on a span of length `duration` between two instants; the last span may be infinite.

    `sources` and `targets` are its edges; their rates are those of `edges`, which are edges of the regime's chain. When
    the span is over, pair i goes on as pair `onward[i]` of the next phase, or as a sink after the last one. On an
    infinite span, `onward[i]` is the sink of pair i should its rest stay undecided for ever.
    """

    regime: int
    duration: float
    size: int
    sources: IntArray
    targets: IntArray
    edges: IntArray
    onward: IntArray


def phases_of(
    regimes: Sequence[Regime], truths: Sequence[BoolArray], question: Question, max_states: int
) -> tuple[int, tuple[Phase, ...]]:
    """Where a question starts, and the phases that answer it.

    `truths` has, for every regime, a row for every condition of the question and a column for every state of the chain.
    The number is the place of the initial pair in the first phase; without phases, of its sink.
    """
    if question.root in SINKS:
        return SINKS.index(question.root), ()
    kinds, kind_of = np.unique(np.concatenate(truths, axis=1), axis=1, return_inverse=True)
    letters = tuple(dict(zip(question.conditions, kind.tolist(), strict=True)) for kind in kinds.T)
    borders = np.cumsum([len(regime.chain) for regime in regimes])[:-1]
    products = [
        _Product(regime.chain, letters, kind_of_state, max_states)
        for regime, kind_of_state in zip(regimes, np.split(kind_of.reshape(-1), borders), strict=True)
    ]
    rest = question.progress(question.root, Moment(0.0, True), letters[products[0].kind_of[0]])
    if rest in SINKS:
        return SINKS.index(rest), ()
    begins = [regime.begin for regime in regimes]
    instants = sorted({*question.instants, *begins})
    stops = (*instants[1:], math.inf)
    entries: _Entries = {rest: np.arange(len(regimes[0].chain)) == 0}
    spans: list[tuple[int, _Groups, _Passage]] = []
    for start, stop in zip(instants, stops, strict=True):
        place = bisect_right(begins, start) - 1
        groups = products[place].reached(entries, Moment(start, False))
        crosses = place + 1 < len(begins) and begins[place + 1] == stop
        passage = _Passage(products[place + crosses], regimes[place].onward if crosses else None, Moment(stop, True))
        spans.append((place, groups, passage))
        entries = passage.entered(groups)
        if not entries:
            break
    phases = []
    followings = [groups for _, groups, _ in spans[1:]]
    for start, stop, (place, groups, passage), following in zip(
        instants, stops, spans, (*followings, {}), strict=False
    ):
        onward = passage.onward(groups, following)
        phases.append(Phase(place, stop - start, _size(groups), *products[place].edges(groups), onward))
    return spans[0][1][rest].first, tuple(phases)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The pairs with one rest: their states in ascending order, the place of the first of them, and the rest after."""

    states: IntArray
    first: int
    after: tuple[Node, ...]  # entering a state of each kind


_Entries: TypeAlias = dict[Node, BoolArray]  # for every rest, which states it is met with first
_Groups: TypeAlias = dict[Node, _Group]


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """The chain, and the kind of every state: `letters[kind]` says which conditions hold in it."""

    chain: Chain
    letters: tuple[dict[Node, bool], ...]
    kind_of: IntArray
    max_states: int

    def reached(self, entries: _Entries, moment: Moment) -> _Groups:
        """The pairs that can be reached from the entries during a span, by rest.

        Untils are only ever decided, so rests are taken in the order of how much they leave open.
        """
        groups: _Groups = {}
        entries = {rest: states.copy() for rest, states in entries.items()}
        waiting = [(-len(untils(rest)), order, rest) for order, rest in enumerate(entries)]
        heapq.heapify(waiting)
        sources, targets, size = self.chain.sources, self.chain.targets, len(SINKS)
        while waiting:
            rest = heapq.heappop(waiting)[-1]
            after = self.after(rest, moment)
            parts = dict(self.parted(after, targets))
            stays = parts.get(rest, np.empty(0, np.int64))
            states = reachable(len(self.chain), sources[stays], targets[stays], np.flatnonzero(entries[rest]))
            groups[rest] = _Group(states, size, after)
            size += len(states)
            if size > self.max_states + len(SINKS):
                raise ExactError(
                    f"the model's {len(self.chain):,} states make more than {self.max_states:,} pairs with what is "
                    "left of the formula\n  raise max_states, ask for fewer operators at a time, or simulate"
                )
            inside = self.mask(states)
            for other in parts:
                arrived = targets[parts[other][inside[sources[parts[other]]]]]
                if other == rest or other in SINKS or not len(arrived):
                    continue
                if other not in entries:
                    entries[other] = np.zeros(len(self.chain), dtype=np.bool_)
                    heapq.heappush(waiting, (-len(untils(other)), len(entries), other))
                entries[other][arrived] = True
        return groups

    def edges(self, groups: _Groups) -> tuple[IntArray, IntArray, IntArray]:
        """The sources and targets of all edges between pairs, and the edges of the model that they are."""
        blocks = [(np.empty(0, np.int64),) * 3]
        for rest, group in groups.items():
            edges = np.flatnonzero(self.mask(group.states)[self.chain.sources])
            for other, chosen in self.parted(group.after, self.chain.targets[edges]):
                taken = edges[chosen]
                sources = _places(groups, rest, self.chain.sources[taken])
                blocks.append((sources, _places(groups, other, self.chain.targets[taken]), taken))
        sources, targets, edges = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return sources, targets, edges

    def after(self, rest: Node, moment: Moment) -> tuple[Node, ...]:
        """The rest after an instant in a state of each kind; after an infinite time every until is false."""
        if math.isinf(moment.time):
            return (settled(rest, lambda until: False),) * len(self.letters)
        return tuple(Question.progress(rest, moment, letter) for letter in self.letters)

    def parted(self, after: tuple[Node, ...], states: IntArray) -> Iterator[tuple[Node, IntArray]]:
        """The places in `states` that lead to each rest; only rests to which some do."""
        rests = list(dict.fromkeys(after))
        number = np.array([rests.index(rest) for rest in after])[self.kind_of[states]]
        for index, rest in enumerate(rests):
            if len(places := np.flatnonzero(number == index)):
                yield rest, places

    def mask(self, states: IntArray) -> BoolArray:
        mask = np.zeros(len(self.chain), dtype=np.bool_)
        mask[states] = True
        return mask


@dataclass(frozen=True, slots=True, eq=False)
class _Passage:
    """The instant that ends a span: into which product, and to which of its states, if not to the same."""

    product: _Product
    states: IntArray | None
    moment: Moment

    def entered(self, groups: _Groups) -> _Entries:
        """The undecided pairs after the instant."""
        entries: _Entries = {}
        for rest, group in groups.items():
            for other, _, states in self._parted(rest, group):
                if other not in SINKS:
                    entries[other] = entries.get(other, False) | self.product.mask(states)
        return entries

    def onward(self, groups: _Groups, following: _Groups) -> IntArray:
        """For every pair, its place after the instant."""
        places = np.arange(_size(groups))
        for rest, group in groups.items():
            for other, chosen, states in self._parted(rest, group):
                places[group.first + chosen] = _places(following, other, states)
        return places

    def _parted(self, rest: Node, group: _Group) -> Iterator[tuple[Node, IntArray, IntArray]]:
        """Which of the group's states lead to each rest, and to which states of the product."""
        states = group.states if self.states is None else self.states[group.states]
        for other, chosen in self.product.parted(self.product.after(rest, self.moment), states):
            yield other, chosen, states[chosen]


def _size(groups: _Groups) -> int:
    """How many states a phase has, the sinks among them."""
    return len(SINKS) + sum(len(group.states) for group in groups.values())


def _places(groups: _Groups, rest: Node, states: IntArray) -> IntArray:
    if rest in SINKS:
        return np.full(len(states), SINKS.index(rest))
    return groups[rest].first + np.searchsorted(groups[rest].states, states)
