"""The table of scores of a property, as `sateen run` prints it and as notebooks show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from sateen.assess.score import Score
from sateen.core.text import percent, plural
from sateen.guarantee.truth import Truth
from sateen.study.labels import Labels

Scored: TypeAlias = tuple[str, str, Score, float]  # of which learner, the kind of interval, the score, the mean width
_AGAINST_RUNS: Final = ("learner", "RMSE", "accuracy", "Wilson", "width", "log score")
_AGAINST_TRUTH: Final = ("learner", "RMSE", "coverage", "width")


def score_table(scored: Iterable[Scored], test: Labels, level: float) -> tuple[str, list[tuple[str, ...]]]:
    """What the scores are against, and the table, its header first."""
    exact = isinstance(test, Truth)
    against = "the exact probability" if isinstance(test, Truth) else f"{int(test.trials.sum()):,} fresh runs"
    caption = f"scored against {against} at {plural(len(test), 'point')}, with {percent(level)} intervals"
    header = _AGAINST_TRUTH if exact else _AGAINST_RUNS
    named = ((name if kind == "credible" else f"{name}, {kind}", score, wide) for name, kind, score, wide in scored)
    return caption, [header, *(score_row(*each) for each in named)]


def score_row(name: str, score: Score, wide: float) -> tuple[str, ...]:
    """The figures of one kind of interval after its name; against the exact probability there are fewer."""
    width, shares = f"{wide:.4f}", [f"{100 * share:.1f} %" for share in (score.accuracy, score.wilson_accuracy)]
    rest = (shares[0], width) if score.log_score is None else (*shares, width, f"{score.log_score:.4f}")
    return (name, f"{score.rmse:.4f}", *rest)
