"""What may be better than the best point: where to run so that tests at fresh designs become cheap.

Such a test costs few runs where the posterior knows f, since its bets are good there, and many where it does not. So
before anything is tested, runs go where it is not known whether a design is better. That pays as long as the test, by
its forecast, costs more than all runs so far.

Before the value of the best point is measured, what counts as better is not known yet: then it is the posterior's value
of the best design with most of the gap, again in each round, and some runs go to that design itself. Of many designs
the one that seems best seems better than it is, and its own runs correct that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream_seed
from sateen.core.types import FloatArray, IntArray
from sateen.decision.contest import CHANCE, Bet, Contest
from sateen.decision.goals import Threshold
from sateen.decision.optimum import OptimumStrategy
from sateen.decision.picks import pick_round

Contests: TypeAlias = Callable[[Mapping[str, FullPosterior], tuple[Bet, ...]], Contest]
_ROUNDS_OWN: Final = 0.25  # of a round is for the best design itself, while it may change
_ROUNDS_SEARCH: Final = 0.25  # and so much for the search of a better one
_HOPELESS: Final = 1e6  # the figure where no plan of a test has a fair chance
_LEAST, _MOST = 1e-6, 1.0 - 1e-6  # between which a threshold is one


@dataclass(frozen=True, slots=True, eq=False)
class RivalStrategy:
    """Decides where to run so that a contest costs no more than `aim` times what was spent.

    `contest(posteriors, bets)` is the test. With `search` the first bet moves with the best design: it is `margin`
    beyond the posterior's value there.
    """

    contest: Contests
    bets: tuple[Bet, ...]
    wrong: float
    error: float
    search: OptimumStrategy | None = None
    margin: float = 0.0
    aim: float = 1.0

    def words(self, figure: float) -> str:
        """The figure in words."""
        if figure >= _HOPELESS:
            return "no test of the regret has a fair chance yet"
        return f"a test of the regret would cost {figure:.2g} times as much"

    def identity(self) -> object:
        """What its decisions depend on."""
        bets = [[bet.name, bet.threshold, bet.mirrored] for bet in self.bets]
        search = None if self.search is None else self.search.identity()
        return ["rivals", bets, self.wrong, self.error, search, self.margin, self.aim]

    def _bets(self, posteriors: Mapping[str, FullPosterior], seed: int) -> tuple[Bet, ...]:
        if self.search is None:
            return self.bets
        _, value = self.search.best(posteriors, seed=seed)
        first = self.bets[0]
        bar = value + self.margin if first.mirrored else value - self.margin
        return replace(first, threshold=float(np.clip(bar, _LEAST, _MOST))), *self.bets[1:]

    def figure(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> float:
        """What the test costs by its forecast, for each run so far."""
        contest = self.contest(posteriors, self._bets(posteriors, seed))
        plans = contest.plans(self.wrong, self.error, seed)
        needed = [needed for plan, needed in plans if plan.chance >= CHANCE]
        made = int(posteriors[self.bets[0].name].training.observations.trials.sum())
        return min(min(needed, default=_HOPELESS * made) / made, _HOPELESS)

    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> tuple[FloatArray, IntArray]:
        """The points and runs of the next round: where the bets are not decided, and about the best design."""
        parts: list[tuple[FloatArray, IntArray]] = []
        left = budget
        if self.search is not None:
            own, more = int(_ROUNDS_OWN * budget), int(_ROUNDS_SEARCH * budget)
            if own and more:
                theta, _ = self.search.best(posteriors, seed=stream_seed(seed, "bets"))
                parts.append((theta[None], np.array([own])))
                parts.append(self.search.choose(posteriors, more, seed=stream_seed(seed, "search")))
                left -= own + more
        bets = self._bets(posteriors, stream_seed(seed, "bets"))
        for place, bet in enumerate(bets):
            part = left - (left // 2 if len(bets) > 1 else 0) if place == 0 else left // 2 // (len(bets) - 1)
            if part:
                goal = Threshold(float(np.clip(bet.threshold, _LEAST, _MOST)))
                parts.append(pick_round(goal, posteriors[bet.name], part, seed=stream_seed(seed, "rivals", place)))
        return np.concatenate([theta for theta, _ in parts]), np.concatenate([runs for _, runs in parts])
