"""Which posteriors a report shows of a property, and what it calls them.

A refinement learns from more runs than the training, so its posterior is shown first. A guarantee belongs to the
posterior that it was calibrated for, which knows the training only; where there is one, that posterior stays first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sateen as st
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Prediction
from sateen.core.text import plural
from sateen.study.findings import credible_width, shown_points
from sateen.study.labels import Labels
from sateen.study.result import PropertyResult


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A posterior with its credible intervals: predictions, their mean width, and their score if there are test data.

    `stage` is "before refinement" or "after refinement", and empty in a study that refines nothing. `guaranteed` is
    whether the guarantee is this posterior's.
    """

    learner: str
    stage: str
    posterior: FullPosterior
    prediction: Prediction
    width: float
    score: st.Score | None
    guaranteed: bool

    @property
    def label(self) -> str:
        """What the report calls it."""
        return f"{self.learner} {self.stage}".strip()

    @property
    def seen(self) -> Observations:
        """What it learned from."""
        return self.posterior.training.observations

    @property
    def runs(self) -> str:
        """How many runs it learned from."""
        return plural(int(self.seen.trials.sum()), "run")

    @property
    def source(self) -> str:
        """Which of several posteriors it is, and from how many runs; empty where there is no refinement."""
        return f"{self.stage}, from {self.runs}" if self.stage else ""


def shown_posteriors(answer: PropertyResult) -> list[Shown]:
    """All posteriors of a property: first the guaranteed one, then that of a refinement."""
    decision = answer.decision
    refined = None if decision is None or decision.refinement is None else decision.posterior
    before, all_ = "" if refined is None else "before refinement", []
    for name, posterior in answer.posteriors.items():
        kept = answer.predictions[name], answer.mean_widths[name], answer.scores.get(name)
        all_.append(Shown(name, before, posterior, *kept, name == answer.guaranteed))
    if refined is not None:
        prediction = refined.predict(shown_points(refined.space), level=all_[0].prediction.level)
        width, score = credible_width(refined, prediction.level), _score(refined, prediction.level, answer.test)
        all_.insert(0, Shown(refined.kind, "after refinement", refined, prediction, width, score, False))
    return sorted(all_, key=lambda one: not one.guaranteed)


def by_label(shown: list[Shown]) -> Mapping[str, FullPosterior]:
    """The posteriors by what the report calls them."""
    return {one.label: one.posterior for one in shown}


def _score(posterior: FullPosterior, level: float, test: Labels | None) -> st.Score | None:
    if test is None:
        return None
    predicted = posterior.predict(test.points, level=level)
    return st.score(predicted, truth=test.values) if isinstance(test, st.Truth) else st.score(predicted, test)
