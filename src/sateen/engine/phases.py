"""A chain together with what remains to be decided: one Markov chain for each span between the bounds of windows.

Its states are pairs (state of the model, rest of the formula), so operators that depend on each other are decided
together. Pairs whose rest is false or true are lumped into two sinks. A pair's rest changes when a state is entered,
and at the bounds of windows; only pairs that can be reached are kept.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from sateen.core.errors import ExactError
from sateen.engine.chain import BoolArray, Chain, IntArray, reachable
from sateen.engine.progression import FALSE, TRUE, Moment, Question, settled, untils
from sateen.logic.formula import Node

__all__ = ["SINKS", "Phase", "phases_of"]

SINKS: Final[tuple[Node, ...]] = (FALSE, TRUE)  # the first two states of every phase


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The chain of pairs on a span of length `duration` between two instants; the last span may be infinite.

    `sources` and `targets` are its edges; their rates are those of the model's `edges`. When the span is over, pair i
    goes on as pair `onward[i]` of the next phase, or as a sink after the last one. On an infinite span, `onward[i]` is
    the sink of pair i should its rest stay undecided for ever.
    """

    duration: float
    size: int
    sources: IntArray
    targets: IntArray
    edges: IntArray
    onward: IntArray


def phases_of(chain: Chain, truth: BoolArray, question: Question, max_states: int) -> tuple[int, tuple[Phase, ...]]:
    """Where a question starts, and the phases that answer it.

    `truth` has a row for every condition of the question and a column for every state of the chain. The number is the
    place of the initial pair in the first phase; without phases, of its sink.
    """
    if question.root in SINKS:
        return SINKS.index(question.root), ()
    kinds, kind_of = np.unique(truth, axis=1, return_inverse=True)
    letters = tuple(dict(zip(question.conditions, kind.tolist(), strict=True)) for kind in kinds.T)
    product = _Product(chain, letters, kind_of.reshape(-1), max_states)
    rest = question.progress(question.root, Moment(0.0, True), letters[product.kind_of[0]])
    if rest in SINKS:
        return SINKS.index(rest), ()
    stops = (*question.instants[1:], math.inf)
    entries: _Entries = {rest: np.arange(len(chain)) == 0}
    spans: list[_Groups] = []
    for start, stop in zip(question.instants, stops, strict=True):
        spans.append(product.reached(entries, Moment(start, False)))
        entries = product.entered(spans[-1], Moment(stop, True))
        if not entries:
            break
    phases = []
    for start, stop, groups, following in zip(question.instants, stops, spans, (*spans[1:], {}), strict=False):
        onward = product.onward(groups, following, Moment(stop, True))
        phases.append(Phase(stop - start, product.size(groups), *product.edges(groups), onward))
    return spans[0][rest].first, tuple(phases)


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
            after = tuple(Question.progress(rest, moment, letter) for letter in self.letters)
            parts = dict(self._parted(after, targets))
            stays = parts.get(rest, np.empty(0, np.int64))
            states = reachable(len(self.chain), sources[stays], targets[stays], np.flatnonzero(entries[rest]))
            groups[rest] = _Group(states, size, after)
            size += len(states)
            if size > self.max_states + len(SINKS):
                raise ExactError(
                    f"the model's {len(self.chain):,} states make more than {self.max_states:,} pairs with what is "
                    "left of the formula\n  raise max_states, ask for fewer operators at a time, or simulate"
                )
            inside = self._mask(states)
            for other in parts:
                arrived = targets[parts[other][inside[sources[parts[other]]]]]
                if other == rest or other in SINKS or not len(arrived):
                    continue
                if other not in entries:
                    entries[other] = np.zeros(len(self.chain), dtype=np.bool_)
                    heapq.heappush(waiting, (-len(untils(other)), len(entries), other))
                entries[other][arrived] = True
        return groups

    def entered(self, groups: _Groups, moment: Moment) -> _Entries:
        """The undecided pairs after the instant that ends a span."""
        entries: _Entries = {}
        for rest, group in groups.items():
            for other, chosen in self._parted(self._after(rest, moment), group.states):
                if other not in SINKS:
                    entries[other] = entries.get(other, False) | self._mask(group.states[chosen])
        return entries

    def onward(self, groups: _Groups, following: _Groups, moment: Moment) -> IntArray:
        """For every pair, its place after the instant that ends a span."""
        places = np.arange(self.size(groups))
        for rest, group in groups.items():
            for other, chosen in self._parted(self._after(rest, moment), group.states):
                places[group.first + chosen] = _places(following, other, group.states[chosen])
        return places

    def edges(self, groups: _Groups) -> tuple[IntArray, IntArray, IntArray]:
        """The sources and targets of all edges between pairs, and the edges of the model that they are."""
        found = [(np.empty(0, np.int64),) * 3]
        for rest, group in groups.items():
            edges = np.flatnonzero(self._mask(group.states)[self.chain.sources])
            for other, chosen in self._parted(group.after, self.chain.targets[edges]):
                taken = edges[chosen]
                sources = _places(groups, rest, self.chain.sources[taken])
                found.append((sources, _places(groups, other, self.chain.targets[taken]), taken))
        sources, targets, edges = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return sources, targets, edges

    @staticmethod
    def size(groups: _Groups) -> int:
        """How many states a phase has, the sinks among them."""
        return len(SINKS) + sum(len(group.states) for group in groups.values())

    def _after(self, rest: Node, moment: Moment) -> tuple[Node, ...]:
        """The rest after an instant in a state of each kind; after an infinite time every until is false."""
        if math.isinf(moment.time):
            return (settled(rest, lambda until: False),) * len(self.letters)
        return tuple(Question.progress(rest, moment, letter) for letter in self.letters)

    def _parted(self, after: tuple[Node, ...], states: IntArray) -> Iterator[tuple[Node, IntArray]]:
        """The places in `states` that lead to each rest; only rests to which some do."""
        rests = list(dict.fromkeys(after))
        number = np.array([rests.index(rest) for rest in after])[self.kind_of[states]]
        for index, rest in enumerate(rests):
            if len(places := np.flatnonzero(number == index)):
                yield rest, places

    def _mask(self, states: IntArray) -> BoolArray:
        mask = np.zeros(len(self.chain), dtype=np.bool_)
        mask[states] = True
        return mask


def _places(groups: _Groups, rest: Node, states: IntArray) -> IntArray:
    if rest in SINKS:
        return np.full(len(states), SINKS.index(rest))
    return groups[rest].first + np.searchsorted(groups[rest].states, states)
